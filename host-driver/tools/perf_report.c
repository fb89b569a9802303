/* SPDX-License-Identifier: BSD-3-Clause */
/* What a measurement prints: a table for people, or JSON. */
#define _GNU_SOURCE
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "perf.h"

#define BAR_WIDTH 40

/* Bins of the printed histogram: each power of two in 2^BIN_BITS. */
#define BIN_BITS 2

static bool is_latency(const struct perf *perf)
{
    return (perf->test->features & PERF_LATENCY) != 0;
}

/*
 * What executes this CPU's instructions, so that nobody takes an emulated guest for a machine: told by
 * $NETDAM_ACCELERATOR, else by the signature that hypervisors show to their guests. False: unknown.
 */
static bool accelerator(char *text, size_t bytes)
{
    const char *told = getenv("NETDAM_ACCELERATOR");
    char signature[13] = "";

    if (told && told[0]) {
        snprintf(text, bytes, "%s", told);
    } else {
#if defined(__x86_64__) || defined(__i386__)
        unsigned a, b, c, d;

        if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & 0x80000000u) == 0) {
            snprintf(text, bytes, "none");
            return true;
        }
        __cpuid(0x40000000u, a, b, c, d);
        memcpy(signature, &b, 4);
        memcpy(signature + 4, &c, 4);
        memcpy(signature + 8, &d, 4);
#endif
        snprintf(text, bytes, "%s", signature);
    }
    if (strcmp(text, "TCGTCGTCGTCG") == 0) {
        snprintf(text, bytes, "tcg");
    } else if (strcmp(text, "KVMKVMKVM") == 0) {
        snprintf(text, bytes, "kvm");
    }
    for (char *c = text; *c; c++) {
        if (!isprint((unsigned char)*c) || *c == '"' || *c == '\\') {
            *c = '?';
        }
    }
    return text[0] != '\0';
}

static void print_json_name(const char *key, const char *name)
{
    printf(",\n  \"%s\": \"", key);
    print_lower(name);
    printf("\"");
}

static void start_json(const struct perf *perf)
{
    char accelerator_name[64];

    printf("{\n  \"tool\": \"%s\"", tool_name);
    printf(",\n  \"version\": \"%s\"", netdam_version());
    printf(",\n  \"commit\": \"%s\"", perf_commit);
    if (accelerator(accelerator_name, sizeof(accelerator_name))) {
        printf(",\n  \"accelerator\": \"%s\"", accelerator_name);
    } else {
        printf(",\n  \"accelerator\": null");
    }
    printf(",\n  \"cpus\": %ld", sysconf(_SC_NPROCESSORS_ONLN));
    printf(",\n  \"device\": \"%s\"", netdam_device_name(perf->device));
    printf(",\n  \"firmware_version\": \"%u.%u\"", perf->info.firmware_version >> 16,
           perf->info.firmware_version & 0xffff);
    printf(",\n  \"mtu_bytes\": %u", perf->info.mtu);
    printf(",\n  \"peer\": \"%s\"", perf->peer_name);
    print_json_name("opcode", netdam_op_name(perf->opcode));
    print_json_name("operation", netdam_alu_name(perf->operation));
    print_json_name("type", netdam_type_name(perf->type));
    printf(",\n  \"measures\": \"%s\"", is_latency(perf) ? "latency" : "throughput");
    printf(",\n  \"depth\": %" PRIu64, perf->depth);
    printf(",\n  \"bidirectional\": %s", perf->both_ways ? "true" : "false");
    printf(",\n  \"warm_up\": %" PRIu64, perf->warm_up);
    printf(",\n  \"wait\": \"%s\"", perf->events ? "events" : "adaptive");
    printf(",\n  \"latency_is\": \"post to completion\"");
    printf(",\n  \"latency_halved\": false");
    printf(",\n  \"results\": [");
}

static void start_text(const struct perf *perf)
{
    printf("%s", netdam_op_name(perf->opcode));
    if (perf->operation != NETDAM_ALU_NONE) {
        printf(" %s", netdam_alu_name(perf->operation));
    }
    if (perf->type != NETDAM_TYPE_NONE) {
        printf(" %s", netdam_type_name(perf->type));
    }
    printf("%s to %s from %s, %" PRIu64 " under way\n", perf->both_ways ? " and its opposite by turns" : "",
           perf->peer_name, netdam_device_name(perf->device), perf->depth);
    printf("Latency in us, in full: from posting a request to having its completion, not halved.\n");
    if (!is_latency(perf)) {
        printf("Throughput of payload in MB/s (10^6 bytes), of requests in thousands per second.\n");
    }
    printf("%9s %11s", "bytes", "iterations");
    if (!is_latency(perf)) {
        printf(" %11s %11s", "MB/s", "1000/s");
    }
    printf(" %10s %10s %10s %10s %10s\n", "min", "median", "p99", "p99.9", "max");
}

void perf_report_start(const struct perf *perf)
{
    if (perf->json) {
        start_json(perf);
    } else {
        start_text(perf);
    }
}

static void histogram_json(const struct samples *samples)
{
    const char *separator = "";

    printf(", \"histogram\": [");
    for (size_t i = 0; i < SAMPLES_BUCKETS; i++) {
        if (samples->buckets[i] != 0) {
            printf("%s\n      {\"from_ns\": %" PRIu64 ", \"to_ns\": %" PRIu64 ", \"count\": %" PRIu64 "}", separator,
                   samples_bucket_low(i), samples_bucket_high(i), samples->buckets[i]);
            separator = ",";
        }
    }
    printf("]");
}

/* The first value of the printed bin that a value belongs to. */
static uint64_t bin_low(uint64_t value)
{
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    unsigned shift = bits > BIN_BITS + 1 ? bits - (BIN_BITS + 1) : 0;

    return value >> shift << shift;
}

/* The bins of all samples, in order; returns how many. */
static unsigned make_bins(const struct samples *samples, uint64_t *lows, uint64_t *counts, unsigned room)
{
    unsigned bins = 0;

    for (size_t i = 0; i < SAMPLES_BUCKETS; i++) {
        uint64_t low = bin_low(samples_bucket_low(i));

        if (samples->buckets[i] == 0) {
            continue;
        }
        if (bins == 0 || lows[bins - 1] != low) {
            if (bins == room) {
                break;
            }
            lows[bins] = low;
            counts[bins++] = 0;
        }
        counts[bins - 1] += samples->buckets[i];
    }
    return bins;
}

static void histogram_text(const struct samples *samples)
{
    uint64_t lows[64 << BIN_BITS];
    uint64_t counts[64 << BIN_BITS];
    unsigned bins = make_bins(samples, lows, counts, 64 << BIN_BITS);
    uint64_t most = 1;

    for (unsigned i = 0; i < bins; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    printf("%23s %11s %11s\n", "from us", "count", "up to, %");
    for (uint64_t seen = 0, i = 0; i < bins; i++) {
        int width = (int)((double)counts[i] * BAR_WIDTH / (double)most);

        seen += counts[i];
        printf("%23.3f %11" PRIu64 " %11.3f  %.*s\n", (double)lows[i] / 1e3, counts[i],
               100.0 * (double)seen / (double)samples->count, width, "########################################");
    }
}

static double per_second(uint64_t amount, uint64_t duration_ns)
{
    return duration_ns == 0 ? 0.0 : (double)amount * 1e9 / (double)duration_ns;
}

void perf_report(const struct perf *perf, const struct perf_result *result, bool first)
{
    const struct samples *latency = &result->latency;
    uint64_t median = samples_quantile(latency, 1, 2);
    uint64_t p99 = samples_quantile(latency, 99, 100);
    uint64_t p99_9 = samples_quantile(latency, 999, 1000);
    double requests = per_second(result->iterations, result->duration_ns);

    if (!perf->json) {
        printf("%9" PRIu64 " %11" PRIu64, result->bytes, result->iterations);
        if (!is_latency(perf)) {
            printf(" %11.2f %11.2f", requests * (double)result->bytes / 1e6, requests / 1e3);
        }
        printf(" %10.2f %10.2f %10.2f %10.2f %10.2f\n", (double)latency->min / 1e3, (double)median / 1e3,
               (double)p99 / 1e3, (double)p99_9 / 1e3, (double)latency->max / 1e3);
        if (perf->histogram) {
            histogram_text(latency);
        }
        if (result->not_ready != 0) {
            printf("%9s the target had no receive buffer %" PRIu64 " times\n", "", result->not_ready);
        }
        return;
    }
    printf("%s\n    {\"size_bytes\": %" PRIu64 ", \"iterations\": %" PRIu64 ", \"duration_ns\": %" PRIu64
           ", \"bytes_per_second\": %.1f, \"requests_per_second\": %.1f, \"retransmissions\": %" PRIu64
           ", \"not_ready\": %" PRIu64 ",\n     \"latency_ns\": {\"min\": %" PRIu64 ", \"median\": %" PRIu64
           ", \"p99\": %" PRIu64 ", \"p99_9\": %" PRIu64 ", \"max\": %" PRIu64 ", \"mean\": %" PRIu64 "}",
           first ? "" : ",", result->bytes, result->iterations, result->duration_ns, requests * (double)result->bytes,
           requests, result->retransmissions, result->not_ready, latency->min, median, p99, p99_9, latency->max,
           samples_mean(latency));
    if (perf->histogram) {
        histogram_json(latency);
    }
    printf("}");
}

void perf_report_end(const struct perf *perf)
{
    if (perf->json) {
        printf("\n  ]\n}\n");
    }
}
