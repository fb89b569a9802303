/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole requests, from the descriptor to the completion, between two firmware instances on one core. */
#include "bench.h"
#include "nodes.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 32u

struct work {
    struct nodes nodes;
    uint32_t length;
    unsigned count;     /* requests in one repetition */
    unsigned datagrams; /* the same, of the kernel's, which is slower */
    uint8_t *from, *to;
    size_t bytes;
    int sockets[2];
};

static void run_writes(void *opaque, unsigned times)
{
    struct work *work = opaque;

    for (unsigned n = 0; n < times; n++) {
        nodes_do(&work->nodes, nodes_request(&work->nodes, NETDAM_OP_WRITE, 0, work->length), work->count,
                 work->length);
    }
}

static void run_copies(void *opaque, unsigned times)
{
    struct work *work = opaque;

    for (unsigned n = 0; n < times; n++) {
        for (size_t at = 0; at + work->length <= work->bytes; at += work->length) {
            memcpy(work->to + at, work->from + at, work->length);
            __asm__ volatile("" : : : "memory");
        }
    }
}

/* What no way through frames could undercut: each piece into one of a few frames, and out of it. */
static void run_double_copies(void *opaque, unsigned times)
{
    struct work *work = opaque;
    unsigned frame = 0;

    for (unsigned n = 0; n < times; n++) {
        for (size_t at = 0; at + work->length <= work->bytes; at += work->length) {
            uint8_t *slot = work->nodes.wire[0].slots + (size_t)(frame++ % 8) * NODES_FRAME_BYTES;

            memcpy(slot, work->from + at, work->length);
            __asm__ volatile("" : : : "memory");
            memcpy(work->to + at, slot, work->length);
            __asm__ volatile("" : : : "memory");
        }
    }
}

/* A datagram of 8 bytes and its answer over the kernel's loopback, in batches, with both ends in this thread. */
static void run_datagrams(void *opaque, unsigned times)
{
    struct work *work = opaque;
    uint64_t value = 0;

    for (unsigned n = 0; n < times; n++) {
        for (unsigned done = 0; done < work->datagrams; done += BATCH) {
            for (unsigned way = 0; way < 2; way++) {
                for (unsigned i = 0; i < BATCH; i++) {
                    if (send(work->sockets[way], &value, sizeof(value), 0) != sizeof(value)) {
                        bench_fail("send");
                    }
                }
                for (unsigned i = 0; i < BATCH; i++) {
                    if (recv(work->sockets[1 - way], &value, sizeof(value), 0) != sizeof(value)) {
                        bench_fail("recv");
                    }
                }
            }
        }
    }
}

static void open_sockets(int sockets[2])
{
    struct sockaddr_in address[2];

    for (unsigned i = 0; i < 2; i++) {
        socklen_t size = sizeof(address[i]);

        address[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (sockets[i] < 0 || bind(sockets[i], (struct sockaddr *)&address[i], size) != 0 ||
            getsockname(sockets[i], (struct sockaddr *)&address[i], &size) != 0) {
            bench_fail("no UDP socket on loopback");
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        if (connect(sockets[i], (struct sockaddr *)&address[1 - i], sizeof(address[i])) != 0) {
            bench_fail("connect");
        }
    }
}

static void small_writes(FILE *out, const struct bench_plan *plan)
{
    static struct work work;
    const struct nodes_options options = {.data_bytes = 1u << 20, .mtu = 1500, .payload_crc = true};
    const struct bench_side sides[] = {{NULL, run_writes, &work}, {NULL, run_datagrams, &work}};
    double seconds[2];

    work.length = 8;
    work.count = plan->packets;
    work.datagrams = plan->packets / 10 / BATCH * BATCH;
    nodes_start(&work.nodes, &options);
    open_sockets(work.sockets);
    run_writes(&work, 1);
    bench_compare(sides, 2, 1, plan->rounds, seconds);
    fprintf(out,
            "\"loopback_mpps\": {\"mpps\": %.3f, \"ns\": %.1f, \"udp_mpps\": %.3f, \"udp_ns\": %.1f, "
            "\"ratio\": %.3f},\n",
            1e-6 * work.count / seconds[0], 1e9 * seconds[0] / work.count, 1e-6 * work.datagrams / seconds[1],
            1e9 * seconds[1] / work.datagrams, seconds[1] / work.datagrams / seconds[0] * work.count);
    close(work.sockets[0]);
    close(work.sockets[1]);
    nodes_stop(&work.nodes);
}

static void large_writes(FILE *out, const struct bench_plan *plan, bool payload_crc)
{
    static struct work work;
    const struct nodes_options options = {.data_bytes = plan->large_bytes, .mtu = 9000, .payload_crc = payload_crc};
    const struct bench_side sides[] = {
        {NULL, run_writes, &work}, {NULL, run_copies, &work}, {NULL, run_double_copies, &work}};
    double seconds[3];

    work.length = 8192;
    work.bytes = plan->large_bytes;
    work.count = (unsigned)(work.bytes / work.length);
    nodes_start(&work.nodes, &options);
    /* The same bytes: from one node's memory into the other's. */
    work.from = work.nodes.node[0].memory + NODES_DATA_START;
    work.to = work.nodes.node[1].memory + NODES_DATA_START;
    run_writes(&work, 1);
    bench_compare(sides, 3, 1, plan->rounds, seconds);
    fprintf(out, "{\"gb_s\": %.3f, \"memcpy_gb_s\": %.3f, \"double_gb_s\": %.3f, \"ratio\": %.3f, \"ns\": %.1f}",
            1e-9 * (double)work.bytes / seconds[0], 1e-9 * (double)work.bytes / seconds[1],
            1e-9 * (double)work.bytes / seconds[2], seconds[1] / seconds[0], 1e9 * seconds[0] / work.count);
    nodes_stop(&work.nodes);
}

void bench_packets(FILE *out, const struct bench_plan *plan)
{
    small_writes(out, plan);
    fprintf(out, "\"write_8k_vs_memcpy\": {\"bytes\": %zu, \"without_crc\": ", plan->large_bytes);
    large_writes(out, plan, false);
    fprintf(out, ", \"with_crc\": ");
    large_writes(out, plan, true);
    fprintf(out, "},\n");
}
