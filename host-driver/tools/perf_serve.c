/* SPDX-License-Identifier: BSD-3-Clause */
/* --serve: a target. A region that peers may do anything with, and a queue pair that takes messages and drops them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "perf.h"

#define BUFFERS 512u

/* How long a signal may go unnoticed. */
#define LOOK_NS UINT64_C(100000000)

struct target {
    struct perf *perf;
    struct netdam_region *buffers;
    uint32_t buffer_bytes;
    uint64_t stride;
    uint64_t messages;
};

static int post_buffer(struct target *target, uint64_t buffer)
{
    const struct netdam_receive receive = {
        .user_data = buffer,
        .local = {target->buffers, buffer * target->stride},
        .length = target->buffer_bytes,
    };
    int rc = netdam_post_receive(target->perf->queue, &receive, 1);

    return rc == 1 ? EXIT_OK : failed("posting a receive buffer: %s", result_text(rc));
}

static int create_region(struct perf *perf, uint64_t bytes, unsigned permissions, uint64_t key,
                         struct netdam_region **region)
{
    uint64_t offset;
    int rc = netdam_alloc(perf->device, bytes, 4096, &offset);

    if (rc == 0) {
        rc = netdam_region_create(perf->device, offset, bytes, permissions, key, region);
    }
    return rc == 0 ? EXIT_OK
                   : failed("%s: region of %" PRIu64 " bytes: %s", netdam_device_name(perf->device), bytes,
                            result_text(rc));
}

static int open_target(struct target *target)
{
    const struct netdam_queue_config config = {.completion_depth = 2 * BUFFERS, .receive_depth = BUFFERS};
    struct perf *perf = target->perf;
    int rc;

    rc = create_region(perf, perf->serve_bytes, NETDAM_PERMISSION_ALL, perf->key, &perf->region);
    if (rc != EXIT_OK) {
        return rc;
    }
    memset(netdam_region_pointer(perf->region), 0, perf->serve_bytes);
    rc = netdam_queue_create(perf->device, &config, &perf->queue);
    if (rc == -EOPNOTSUPP && (perf->test->features & PERF_SEND) == 0) {
        return EXIT_OK; /* older firmware; nobody has asked for messages */
    }
    if (rc != 0) {
        return failed("%s: queue pair with a receive ring: %s", netdam_device_name(perf->device), result_text(rc));
    }
    target->buffer_bytes = perf->info.payload_max;
    target->stride = perf_stride(target->buffer_bytes);
    rc = create_region(perf, BUFFERS * target->stride, NETDAM_PERMISSION_LOCAL_WRITE, 0, &target->buffers);
    for (uint64_t i = 0; rc == EXIT_OK && i < BUFFERS; i++) {
        rc = post_buffer(target, i);
    }
    return rc;
}

/* Addresses as --peer takes them. */
static void print_ready(const struct perf *perf)
{
    static const uint8_t none[4];
    char address[INET6_ADDRSTRLEN];
    uint64_t key = netdam_region_key(perf->region);

    if (memcmp(perf->info.ipv4, none, sizeof(none)) != 0) {
        inet_ntop(AF_INET, perf->info.ipv4, address, sizeof(address));
    } else {
        inet_ntop(AF_INET6, perf->info.ipv6, address, sizeof(address));
    }
    printf(perf->json
               ? "{\"event\": \"ready\", \"device\": \"%s\", \"address\": \"%s\", \"port\": %u, \"bytes\": %" PRIu64
                 ", \"key\": \"0x%016" PRIx64 "\", \"receive_key\": "
               : "netdam-perf ready device=%s address=%s port=%u bytes=%" PRIu64 " key=0x%016" PRIx64 " receive-key=",
           netdam_device_name(perf->device), address, perf->info.udp_port, perf->serve_bytes, key);
    if (perf->queue) {
        printf(perf->json ? "\"0x%016" PRIx64 "\"}\n" : "0x%016" PRIx64 "\n", netdam_queue_receive_key(perf->queue));
    } else {
        printf(perf->json ? "null}\n" : "none\n");
    }
}

/* Takes messages and posts their buffers again, for a moment. */
static int take_messages(struct target *target)
{
    struct netdam_completion completions[64];
    int count = netdam_wait(target->perf->queue, completions, 64, LOOK_NS);
    int rc = EXIT_OK;

    if (count == -ETIMEDOUT) {
        return EXIT_OK;
    }
    if (count < 0) {
        return failed("waiting for messages: %s", result_text(count));
    }
    for (int i = 0; i < count && rc == EXIT_OK; i++) {
        target->messages++;
        rc = post_buffer(target, completions[i].user_data);
    }
    return rc;
}

int perf_serve(struct perf *perf)
{
    struct target target = {.perf = perf};
    struct timespec moment = {.tv_sec = 0};
    uint64_t deadline_ns;
    sigset_t signals;
    int rc;

    /* Blocked before any thread exists, so that only sigtimedwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    rc = perf_open(perf, perf->serve_bytes + BUFFERS * (UINT64_C(16) << 10));
    if (rc == EXIT_OK) {
        rc = open_target(&target);
    }
    if (rc != EXIT_OK) {
        return rc;
    }
    print_ready(perf);
    rc = flush_output();
    if (rc != EXIT_OK) {
        return rc;
    }
    if (!perf->queue) {
        moment.tv_nsec = LOOK_NS;
    }
    deadline_ns = perf->duration_ns == 0 ? UINT64_MAX : perf_now_ns() + perf->duration_ns;
    while (rc == EXIT_OK && perf_now_ns() < deadline_ns && sigtimedwait(&signals, NULL, &moment) < 0) {
        if (perf->queue) {
            rc = take_messages(&target);
        }
    }
    return rc;
}
