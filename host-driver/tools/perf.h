/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements: one program with many names. What its parts share. */
#ifndef NETDAM_TOOLS_PERF_H
#define NETDAM_TOOLS_PERF_H

#include "common.h"
#include "samples.h"

#define PERF_DEPTH_MAX   4096u
#define PERF_BYTES_LEAST 2u
#define PERF_BYTES_MOST  (UINT64_C(8) << 20)

/* What a tool is about; an option may be for some of them only. */
enum perf_feature {
    PERF_LATENCY = 0x01,
    PERF_BANDWIDTH = 0x02,
    PERF_MEMORY = 0x04, /* names a region at the target */
    PERF_REDUCE = 0x08,
    PERF_ATOMIC = 0x10,
    PERF_SEND = 0x20,
    PERF_BOTH_WAYS = 0x40, /* a request in the opposite direction exists */
};

struct perf_test {
    const char *name;
    unsigned features; /* enum perf_feature */
    unsigned opcode;
};

struct perf {
    const struct perf_test *test;

    /* What the user says. */
    const char *device_name;
    const char *peer_name;
    const char *atomic_name;
    const char *type_name;
    const char *operation_name;
    uint64_t key;
    uint64_t receive_key;
    uint64_t address;
    uint64_t bytes; /* 0: the tool's own size */
    uint64_t iterations;
    uint64_t duration_ns; /* 0: by iterations */
    uint64_t depth;
    uint64_t warm_up;
    uint64_t serve_bytes;
    bool peer_given;
    bool key_given;
    bool receive_key_given;
    bool bytes_given;
    bool iterations_given;
    bool all;
    bool both_ways;
    bool histogram;
    bool events;
    bool json;
    bool serve;

    /* What follows from it. */
    unsigned opcode;
    unsigned operation;
    unsigned type;
    uint64_t bytes_least;
    uint64_t bytes_most;

    /* The device. */
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_queue *queue;
    struct netdam_region *region;
    struct netdam_peer *peer;
};

/* One row of a report. */
struct perf_result {
    uint64_t bytes;
    uint64_t iterations;
    uint64_t duration_ns; /* from the first post to the last completion */
    uint64_t not_ready;   /* SEND: times that no receive buffer was posted, and the message was sent again */
    uint64_t retransmissions;
    struct samples latency; /* ns, from post to completion */
};

/* All functions that return int return an exit code, having printed what is wrong. */

/* Opens the device. `memory_bytes` is what a soft device needs beside its rings. */
int perf_open(struct perf *perf, uint64_t memory_bytes);

/* Everything that requests need: region, queue pair, peer. */
int perf_prepare(struct perf *perf);

/* How many requests of a size have memory of their own; the others share it. */
uint64_t perf_places(const struct perf *perf, uint64_t bytes);
/* From one such place to the next. */
uint64_t perf_stride(uint64_t bytes);

/* Measures one size. */
int perf_run(struct perf *perf, uint64_t bytes, struct perf_result *result);

/* Is a target for others, until a signal or the end of --duration. */
int perf_serve(struct perf *perf);

void perf_report_start(const struct perf *perf);
void perf_report(const struct perf *perf, const struct perf_result *result, bool first);
void perf_report_end(const struct perf *perf);

uint64_t perf_now_ns(void);

/* The commit that the program was linked at, from the build. */
extern const char perf_commit[];

#endif
