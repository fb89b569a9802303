/* SPDX-License-Identifier: BSD-3-Clause */
/* Any number of samples in a fixed amount of memory: a histogram with buckets of 0.4 % or finer. */
#ifndef NETDAM_TOOLS_SAMPLES_H
#define NETDAM_TOOLS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Values below 2^(SAMPLES_BITS + 1) have a bucket each; above, each power of two is divided into 2^SAMPLES_BITS equal
 * buckets.
 */
#define SAMPLES_BITS    8
#define SAMPLES_BUCKETS ((65 - SAMPLES_BITS) << SAMPLES_BITS)

/* Zero-initialize, or samples_clear(). */
struct samples {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* exact, as is the largest; 0 if there is none */
    uint64_t max;
    uint64_t buckets[SAMPLES_BUCKETS];
};

void samples_clear(struct samples *samples);
void samples_add(struct samples *samples, uint64_t value);

/*
 * The smallest value that at least `numerator` of `denominator` samples do not exceed (nearest rank), up to the width
 * of its bucket too large; 0 if there is no sample. The numerator is at least 1.
 */
uint64_t samples_quantile(const struct samples *samples, uint64_t numerator, uint64_t denominator);

uint64_t samples_mean(const struct samples *samples);

/* The bucket of a value, and the values of a bucket. */
size_t samples_bucket(uint64_t value);
uint64_t samples_bucket_low(size_t bucket);
uint64_t samples_bucket_high(size_t bucket);

#endif
