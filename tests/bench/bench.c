/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the firmware beside what a host does by itself. Writes JSON to stdout; bench.py makes tables of it. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds_by(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double bench_now(void)
{
    return seconds_by(CLOCK_THREAD_CPUTIME_ID);
}

double bench_clock(void)
{
    return seconds_by(CLOCK_MONOTONIC);
}

static double seconds_of(const struct bench_side *side, unsigned times)
{
    double start;

    if (side->prepare != NULL) {
        side->prepare(side->opaque);
    }
    start = bench_now();
    side->run(side->opaque, times);
    return bench_now() - start;
}

unsigned bench_times(const struct bench_side *side, double seconds)
{
    unsigned times = 1;

    while (times < 1u << 24) {
        double took = seconds_of(side, times);

        if (took > seconds / 8) {
            double wanted = (double)times * seconds / took;

            return wanted < 1 ? 1 : (unsigned)wanted;
        }
        times *= 2;
    }
    return times;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_compare(const struct bench_side *sides, unsigned count, unsigned times, unsigned rounds, double *seconds)
{
    double samples[BENCH_SIDES_MOST][BENCH_ROUNDS_MOST];

    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < count; i++) {
            samples[i][round] = seconds_of(&sides[i], times) / times;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        qsort(samples[i], rounds, sizeof(samples[i][0]), ascending);
        seconds[i] = samples[i][rounds / 2];
    }
}

int main(int argc, char **argv)
{
    struct bench_plan plan = {
        .rounds = 7,
        .large_bytes = (size_t)256 << 20,
        .table_bytes = (size_t)64 << 20,
        .small_bytes = (size_t)32 << 10,
        .small_seconds = 0.02,
        .packets = 200000,
    };
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            plan = (struct bench_plan){true, 5, (size_t)1 << 20, (size_t)256 << 10, (size_t)32 << 10, 0.0001, 2000};
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: bench-firmware [--quick] [--only alu|packets|state|anatomy|crypto]\n");
            return 2;
        }
    }
    printf("{\n\"rounds\": %u,\n", plan.rounds);
    if (only == NULL || strcmp(only, "alu") == 0) {
        bench_alu(stdout, &plan);
    }
    if (only == NULL || strcmp(only, "packets") == 0) {
        bench_packets(stdout, &plan);
    }
    if (only == NULL || strcmp(only, "state") == 0) {
        bench_state(stdout);
    }
    if (only == NULL || strcmp(only, "crypto") == 0) {
        bench_crypto(stdout, &plan);
    }
    if (only == NULL || strcmp(only, "anatomy") == 0) {
        bench_anatomy(stdout, &plan);
    }
    printf("\"quick\": %s\n}\n", plan.quick ? "true" : "false");
    return 0;
}
