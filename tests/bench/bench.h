/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring two or more things alternately, and writing down what came out as JSON. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How much is measured. Quick: that everything works, in seconds; the figures mean nothing. */
struct bench_plan {
    bool quick;
    unsigned rounds;      /* of which the median counts */
    size_t large_bytes;   /* arrays far beyond the caches */
    size_t table_bytes;   /* the same, smaller, for the table of all operations */
    size_t small_bytes;   /* arrays that stay in a cache near the core */
    double small_seconds; /* one measurement in cache, about */
    unsigned packets;     /* one measurement of small packets */
};

#define BENCH_ROUNDS_MOST 31u
#define BENCH_SIDES_MOST  4u

/* One of those that are compared: does its work once, or `times` times. */
struct bench_side {
    void (*prepare)(void *opaque); /* before each measurement, not measured; may be NULL */
    void (*run)(void *opaque, unsigned times);
    void *opaque;
};

/* Seconds that this thread has computed: what others do on the same core does not count. */
double bench_now(void);
/* Seconds, for intervals too short for that; what is measured so is repeated, and its median counts. */
double bench_clock(void);
/* As many repetitions as fill about so many seconds. */
unsigned bench_times(const struct bench_side *side, double seconds);
/* Median seconds of one repetition of each side; the sides take turns, `rounds` times. */
void bench_compare(const struct bench_side *sides, unsigned count, unsigned times, unsigned rounds, double *seconds);
/* Memory aligned to `alignment`, in huge pages where there are any, and touched. Ends the program if there is none. */
void *bench_allocate(size_t alignment, size_t bytes);
void bench_release(void *memory);
void bench_fail(const char *what);

/* The parts; each writes members of the one JSON object, with a comma after each. */
void bench_alu(FILE *out, const struct bench_plan *plan);
void bench_packets(FILE *out, const struct bench_plan *plan);
void bench_state(FILE *out);
void bench_anatomy(FILE *out, const struct bench_plan *plan);
void bench_crypto(FILE *out, const struct bench_plan *plan);

#endif
