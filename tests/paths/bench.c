/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of many paths in virtual time, as JSON: throughput over loss, gain of paths, dead planes, latency, queues. */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US    UINT64_C(1000)
#define MS    UINT64_C(1000000)
#define S     UINT64_C(1000000000)
#define SEEDS 3u

static bool quick;

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The median over seeds. */
static double goodput(struct traffic_setup setup)
{
    double values[SEEDS];
    unsigned seeds = quick ? 1 : SEEDS;

    for (unsigned i = 0; i < seeds; i++) {
        struct traffic *traffic;

        setup.seed = i + 1;
        traffic = traffic_start(&setup);
        values[i] = traffic_goodput(traffic, 2 * MS, quick ? MS : 10 * MS);
        traffic_end(traffic);
    }
    qsort(values, seeds, sizeof(values[0]), compare_doubles);
    return values[seeds / 2];
}

static void print_goodput(void)
{
    static const uint32_t losses_ppm[] = {0, 1000, 5000, 10000, 20000, 30000, 50000};
    struct traffic_setup setup = traffic_default();
    double lossless = 0, at_one = 0;

    printf(" \"goodput\": [");
    for (unsigned i = 0; i < sizeof(losses_ppm) / sizeof(losses_ppm[0]); i++) {
        double bits_per_s;

        setup.loss_ppm = losses_ppm[i];
        bits_per_s = goodput(setup);
        lossless = i == 0 ? bits_per_s : lossless;
        at_one = losses_ppm[i] == 10000 ? bits_per_s / lossless : at_one;
        printf("%s\n  {\"loss_percent\": %.1f, \"gbit_s\": %.3f, \"of_lossless\": %.4f}", i == 0 ? "" : ",",
               losses_ppm[i] / 1e4, bits_per_s / 1e9, bits_per_s / lossless);
    }
    printf("\n ],\n \"goodput_at_1pct_loss\": %.4f,\n", at_one);
}

static void print_spray(void)
{
    static const uint32_t counts[] = {1, 2, 4, 8, 16, 32};
    struct traffic_setup setup = traffic_default();
    double one = 0, sixteen = 0;

    setup.node_bits_per_s = 4 * setup.trunk_bits_per_s;
    printf(" \"spray\": [");
    for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        double bits_per_s;

        setup.paths = counts[i];
        bits_per_s = goodput(setup);
        one = i == 0 ? bits_per_s : one;
        sixteen = counts[i] == 16 ? bits_per_s : sixteen;
        printf("%s\n  {\"paths\": %u, \"gbit_s\": %.3f, \"gain\": %.3f}", i == 0 ? "" : ",", counts[i],
               bits_per_s / 1e9, bits_per_s / one);
    }
    printf("\n ],\n \"spray_gain\": %.3f,\n", sixteen / one);
}

static void print_dead_plane(void)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);
    double before = traffic_goodput(traffic, 2 * MS, MS), during, after;
    double round_trip_ns = (double)traffic_round_trip_ns(traffic);
    uint64_t start_ns = traffic->net.loop.now_ns, last_ns = start_ns, retired = 0, bytes = traffic->bytes;

    traffic_plane(traffic, 1, false);
    while (traffic->net.loop.now_ns < start_ns + MS) {
        traffic_run(traffic, US);
        if (traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED) != retired) {
            retired = traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED);
            last_ns = traffic->net.loop.now_ns;
        }
    }
    during = (double)(traffic->bytes - bytes) * 8e9 / (double)MS;
    after = traffic_goodput(traffic, 0, 5 * MS);
    printf(" \"dead_plane\": {\"round_trip_us\": %.3f, \"paths_retired\": %llu, \"retired_after_round_trips\": %.1f, "
           "\"gbit_s_before\": %.3f, \"gbit_s_first_ms\": %.3f, \"gbit_s_after\": %.3f, \"retransmissions\": %llu, "
           "\"requests_failed\": %llu},\n",
           round_trip_ns / 1e3, (unsigned long long)retired, (double)(last_ns - start_ns) / round_trip_ns, before / 1e9,
           during / 1e9, after / 1e9, (unsigned long long)traffic_counter(traffic, NETDAM_COUNTER_RETRANSMISSIONS),
           (unsigned long long)traffic->failed);
    traffic_end(traffic);
}

static void print_all_dead(void)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);
    double before = traffic_goodput(traffic, 2 * MS, MS);
    uint64_t dead_ns, ended_ns, up_ns, first_ns = 0, full_ns = 0, ok;

    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, false);
    }
    dead_ns = traffic->net.loop.now_ns;
    traffic_drain(traffic, 100 * S);
    ended_ns = traffic->net.loop.now_ns - dead_ns;
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, true);
    }
    up_ns = traffic->net.loop.now_ns;
    ok = traffic->ok;
    while (full_ns == 0 && traffic->net.loop.now_ns < up_ns + S) {
        double now = traffic_goodput(traffic, 0, 100 * US);

        first_ns = first_ns == 0 && traffic->ok != ok ? traffic->net.loop.now_ns - up_ns : first_ns;
        full_ns = now > 0.9 * before ? traffic->net.loop.now_ns - up_ns : 0;
    }
    printf(" \"all_dead\": {\"requests_failed\": %llu, \"all_ended_after_ms\": %.3f, \"first_ok_after_ms\": %.3f, "
           "\"nine_tenths_after_ms\": %.3f},\n",
           (unsigned long long)traffic->failed, (double)ended_ns / 1e6, (double)first_ns / 1e6, (double)full_ns / 1e6);
    traffic_end(traffic);
}

#define SAMPLES_MAX 40000u

struct samples {
    double us[SAMPLES_MAX];
    unsigned count;
};

static void note(void *opaque, struct traffic *traffic, enum netdam_status status, uint64_t took_ns)
{
    struct samples *samples = opaque;

    (void)traffic;
    if (status == NETDAM_STATUS_OK && samples->count < SAMPLES_MAX) {
        samples->us[samples->count++] = (double)took_ns / 1e3;
    }
}

static void print_latency(void)
{
    static const uint32_t losses_ppm[] = {0, 10000, 50000};
    static const double shares[] = {0,   0.01, 0.05, 0.1,  0.2,  0.3,   0.4,   0.5,    0.6,    0.7,
                                    0.8, 0.9,  0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1};
    struct samples *samples = calloc(1, sizeof(*samples));

    if (samples == NULL) {
        abort();
    }
    printf(" \"latency\": [");
    for (unsigned i = 0; i < sizeof(losses_ppm) / sizeof(losses_ppm[0]); i++) {
        struct traffic_setup setup = traffic_default();
        struct traffic *traffic;

        setup.loss_ppm = losses_ppm[i];
        setup.message_bytes = 4096;
        samples->count = 0;
        traffic = traffic_start(&setup);
        traffic_run(traffic, MS);
        traffic->done = note;
        traffic->opaque = samples;
        traffic_run(traffic, quick ? MS : 10 * MS);
        qsort(samples->us, samples->count, sizeof(samples->us[0]), compare_doubles);
        printf("%s\n  {\"loss_percent\": %.1f, \"bytes\": %u, \"samples\": %u, \"us\": [", i == 0 ? "" : ",",
               losses_ppm[i] / 1e4, setup.message_bytes, samples->count);
        for (unsigned k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
            printf("%s[%g, %.3f]", k == 0 ? "" : ", ", shares[k],
                   samples->us[(unsigned)(shares[k] * (double)(samples->count - 1))]);
        }
        printf("]}");
        traffic_end(traffic);
    }
    printf("\n ],\n");
    free(samples);
}

static void print_queue(const char *name, uint32_t paths, const char *end)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic;

    setup.node_bits_per_s = 4 * setup.trunk_bits_per_s;
    setup.paths = paths;
    traffic = traffic_start(&setup);
    printf("\n  {\"name\": \"%s\", \"us_bytes\": [", name);
    for (unsigned i = 0; i < 250; i++) {
        traffic_run(traffic, 4 * US);
        printf("%s[%.0f, %llu]", i == 0 ? "" : ", ", (double)traffic->net.loop.now_ns / 1e3,
               (unsigned long long)traffic_queued(traffic));
    }
    printf("]}%s", end);
    traffic_end(traffic);
}

int main(int argc, char **argv)
{
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (argc > 1 && !quick) {
        fputs("usage: bench-paths [--quick]\n", stderr);
        return 2;
    }
    printf("{\n");
    print_goodput();
    print_spray();
    print_dead_plane();
    print_all_dead();
    print_latency();
    printf(" \"queue\": [");
    print_queue("one path", 1, ",");
    print_queue("16 paths", 16, "\n ],\n");
    printf(" \"quick\": %s\n}\n", quick ? "true" : "false");
    return 0;
}
