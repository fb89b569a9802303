/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting samples in buckets, and what can be said of them afterwards. */
#include <string.h>

#include "samples.h"

static unsigned bucket_shift(size_t bucket)
{
    return bucket < (size_t)2 << SAMPLES_BITS ? 0 : (unsigned)(bucket >> SAMPLES_BITS) - 1;
}

/* The upper bits of a value and how many are missing, as one number without gaps. */
size_t samples_bucket(uint64_t value)
{
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    unsigned shift = bits > SAMPLES_BITS + 1 ? bits - (SAMPLES_BITS + 1) : 0;

    return ((size_t)shift << SAMPLES_BITS) + (size_t)(value >> shift);
}

uint64_t samples_bucket_low(size_t bucket)
{
    unsigned shift = bucket_shift(bucket);

    return (uint64_t)(bucket - ((size_t)shift << SAMPLES_BITS)) << shift;
}

uint64_t samples_bucket_high(size_t bucket)
{
    return samples_bucket_low(bucket) + ((UINT64_C(1) << bucket_shift(bucket)) - 1);
}

void samples_clear(struct samples *samples)
{
    memset(samples, 0, sizeof(*samples));
}

void samples_add(struct samples *samples, uint64_t value)
{
    if (samples->count == 0 || value < samples->min) {
        samples->min = value;
    }
    if (value > samples->max) {
        samples->max = value;
    }
    samples->count++;
    samples->sum += value;
    samples->buckets[samples_bucket(value)]++;
}

uint64_t samples_quantile(const struct samples *samples, uint64_t numerator, uint64_t denominator)
{
    uint64_t whole = samples->count / denominator;
    uint64_t rest = samples->count % denominator;
    /* count * numerator / denominator, rounded up, in two parts so that it cannot overflow. */
    uint64_t rank = whole * numerator + (rest * numerator + denominator - 1) / denominator;
    uint64_t seen = 0;

    for (size_t i = 0; i < SAMPLES_BUCKETS; i++) {
        seen += samples->buckets[i];
        if (seen >= rank && seen > 0) {
            uint64_t high = samples_bucket_high(i);

            return high < samples->max ? high : samples->max;
        }
    }
    return 0;
}

uint64_t samples_mean(const struct samples *samples)
{
    return samples->count == 0 ? 0 : samples->sum / samples->count;
}
