/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All-reduce among four firmware instances in one process: allreduce ROUNDS crc|nocrc BYTES... prints a line "BYTES
 * MILLISECONDS" for each size, the median of the rounds, more of them for small sizes. One thread for each core; frames
 * are handed over in memory. Each node has an input and an output of its own. A round ends when every node's descriptor
 * has completed, which is when every node holds the whole sum in its own memory; that it does is checked behind the
 * last round.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "ndtest_node.h"
#include "platform_cpu.h"

#define NODES        4u
#define THREADS_MOST NODES
#define ROUNDS_MOST  1001u
#define LINE_ENTRIES 256u /* a power of two, more than SLOTS */
#define SLOTS        96u  /* few, and the last one given back is used next: they stay in a cache */
#define FRAME_BYTES  9216u
#define BUDGET_BYTES (UINT64_C(64) << 10)
#define LIST         0x8000u
#define CONTROL      0x10000u
#define DATA         (UINT64_C(2) << 20)

/* From one thread to another: slots, and how long the frames in them are. */
struct line {
    _Alignas(64) _Atomic uint32_t produced;
    _Alignas(64) _Atomic uint32_t consumed;
    _Alignas(64) struct {
        uint32_t slot;
        uint32_t bytes;
    } entries[LINE_ENTRIES];
};

struct machine {
    struct ndtest_node node;
    struct ndtest_queue queue;
    struct line to[NODES];   /* frames for the others */
    struct line back[NODES]; /* slots that they have emptied */
    uint8_t *slots;
    uint32_t free[SLOTS];
    uint32_t free_count;
    uint32_t region;
    uint64_t next_ns;
    uint64_t output;
    uint32_t instance;
    bool busy;
};

static struct machine *machines;
static unsigned threads;
static _Atomic unsigned running;
static pthread_barrier_t barrier;
static uint32_t bytes;
static bool crc;
static unsigned rounds;
static double seconds[ROUNDS_MOST];

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void expect(bool condition, const char *what)
{
    if (!condition) {
        bench_fail(what);
    }
}

static void line_put(struct line *line, uint32_t slot, size_t length)
{
    uint32_t at = atomic_load_explicit(&line->produced, memory_order_relaxed);

    line->entries[at % LINE_ENTRIES].slot = slot;
    line->entries[at % LINE_ENTRIES].bytes = (uint32_t)length;
    atomic_store_explicit(&line->produced, at + 1, memory_order_release);
}

static bool line_get(struct line *line, uint32_t *slot, uint32_t *length)
{
    uint32_t at = atomic_load_explicit(&line->consumed, memory_order_relaxed);

    if (atomic_load_explicit(&line->produced, memory_order_acquire) == at) {
        return false;
    }
    *slot = line->entries[at % LINE_ENTRIES].slot;
    *length = line->entries[at % LINE_ENTRIES].bytes;
    atomic_store_explicit(&line->consumed, at + 1, memory_order_release);
    return true;
}

static uint8_t *begin(void *opaque, size_t length)
{
    struct machine *machine = opaque;
    uint32_t slot, unused;

    (void)length;
    for (unsigned i = 0; machine->free_count == 0 && i < NODES; i++) {
        while (line_get(&machine->back[i], &slot, &unused)) {
            machine->free[machine->free_count++] = slot;
        }
    }
    return machine->free_count == 0 ? NULL
                                    : machine->slots + (size_t)machine->free[machine->free_count - 1] * FRAME_BYTES;
}

static void end(void *opaque, size_t length)
{
    struct machine *machine = opaque;
    uint32_t slot = machine->free[--machine->free_count];

    /* The last byte of a node's link-layer address is its index plus 1. */
    line_put(&machine->to[machine->slots[(size_t)slot * FRAME_BYTES + 5] - 1u], slot, length);
}

static void entropy(void *opaque, void *buffer, size_t length)
{
    static struct ndtest_random random = {20036};

    (void)opaque;
    ndtest_random_fill(&random, buffer, length);
}

static void no_interrupt(void *opaque, unsigned vector)
{
    (void)opaque, (void)vector;
}

static void start_node(unsigned index)
{
    struct machine *machine = &machines[index];
    struct ndtest_node *node = &machine->node;
    struct netdam_fw_config config;
    const char *error = "";
    uint64_t key;

    ndtest_config_default(&config, index);
    machine->output = DATA + (((uint64_t)bytes + 4095) & ~UINT64_C(4095));
    config.memory_bytes = machine->output * 2 - DATA;
    config.mtu = NETDAM_MTU_MAX;
    config.no_payload_crc = !crc;
    config.cpu_features = ndfw_platform_cpu_features();
    config.memory = bench_allocate(1u << 21, config.memory_bytes);
    *node = (struct ndtest_node){.ops = netdam_fw_entry(), .config = config, .memory = config.memory, .index = index};
    node->state_bytes = node->ops->state_bytes(&config, &error);
    if (node->state_bytes == 0) {
        bench_fail(error);
    }
    node->state = bench_allocate(1u << 21, node->state_bytes);
    machine->slots = bench_allocate(4096, (size_t)SLOTS * FRAME_BYTES);
    for (uint32_t i = 0; i < SLOTS; i++) {
        machine->free[machine->free_count++] = i;
    }
    node->platform = (struct netdam_fw_platform){
        .opaque = machine,
        .transmit_begin = begin,
        .transmit_end = end,
        .interrupt = no_interrupt,
        .entropy = entropy,
    };
    ndtest_node_start(node, now_ns());
    expect(ndtest_region_create(node, 0, config.memory_bytes, NETDAM_PERMISSION_ALL, index + 1, now_ns(),
                                &machine->region, &key) == NETDAM_ADMIN_STATUS_OK &&
               ndtest_queue_create(&machine->queue, node, 0x1000, 2, 0x2000, 2, 0, now_ns()) == NETDAM_ADMIN_STATUS_OK,
           "a node cannot be set up");
}

static void introduce(unsigned index)
{
    struct machine *machine = &machines[index];
    struct netdam_member members[NODES] = {0};

    for (unsigned i = 0; i < NODES; i++) {
        members[i].key = i + 1;
        members[i].region = i == index ? machine->region : 0;
        members[i].input = DATA;
        members[i].output = machine->output;
        members[i].control = CONTROL;
        if (i != index) {
            expect(ndtest_neighbour_set(&machine->node, &machines[i].node, 4, now_ns()) == NETDAM_ADMIN_STATUS_OK &&
                       ndtest_peer_open(&machine->node, &machines[i].node, 4, now_ns(), &members[i].peer) ==
                           NETDAM_ADMIN_STATUS_OK,
                   "a peer cannot be opened");
        }
    }
    memcpy(machine->node.memory + LIST, members, sizeof(members));
}

static void post(struct machine *machine)
{
    struct netdam_descriptor d = {
        .opcode = NETDAM_OP_ALL_REDUCE,
        .operation = NETDAM_ALU_SUM,
        .type = NETDAM_TYPE_F32,
        .list_count = NODES,
        .peer = (uint32_t)(machine - machines),
        .length = bytes,
        .remote_address = LIST,
        .local_region = machine->region,
        .immediate = ++machine->instance,
    };
    unsigned action;

    expect(ndtest_queue_post(&machine->queue, &d, now_ns(), &action), "a descriptor cannot be posted");
    machine->next_ns = 0;
    machine->busy = true;
}

/* What a platform does; returns true if there was something to do. */
static bool step(struct machine *machine)
{
    const struct netdam_fw_ops *ops = machine->node.ops;
    struct netdam_completion completion;
    struct netdam_fw_run_result result;
    uint64_t now = now_ns();
    uint32_t slot, length;
    bool due = now >= machine->next_ns;
    unsigned index = (unsigned)(machine - machines);

    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned n = 0; n < 16 && line_get(&machines[i].to[index], &slot, &length); n++) {
            ops->receive(machine->node.state, machines[i].slots + (size_t)slot * FRAME_BYTES, length, now);
            line_put(&machines[i].back[index], slot, 0);
            due = true;
        }
    }
    if (due) {
        ops->run(machine->node.state, now, BUDGET_BYTES, &result);
        machine->next_ns = result.more ? 0 : result.next_ns;
    }
    if (machine->busy && ndtest_queue_poll(&machine->queue, &completion)) {
        expect(completion.status == NETDAM_STATUS_OK, "an all-reduce has failed");
        machine->busy = false;
        atomic_fetch_sub(&running, 1);
    }
    return due;
}

static void *serve(void *opaque)
{
    unsigned thread = (unsigned)(uintptr_t)opaque;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(thread, &cpus);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t start;

        pthread_barrier_wait(&barrier);
        start = now_ns();
        for (unsigned i = thread; i < NODES; i += threads) {
            post(&machines[i]);
        }
        while (atomic_load_explicit(&running, memory_order_relaxed) != 0) {
            bool any = false;

            for (unsigned i = thread; i < NODES; i += threads) {
                any |= step(&machines[i]);
            }
            if (!any) {
                sched_yield();
            }
        }
        pthread_barrier_wait(&barrier);
        if (thread == 0) {
            seconds[round] = (double)(now_ns() - start) * 1e-9;
            atomic_store(&running, NODES);
        }
    }
    return NULL;
}

static float value(unsigned node, uint32_t n)
{
    return (float)((n + node * 7u) % 1024u);
}

static void check(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        const float *output = (const float *)(const void *)(machines[i].node.memory + machines[i].output);

        for (uint32_t n = 0; n < bytes / 4; n++) {
            expect(output[n] == value(0, n) + value(1, n) + value(2, n) + value(3, n), "a sum is wrong");
        }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(unsigned times)
{
    pthread_t others[THREADS_MOST];

    /* The first round is not counted: addresses, generations and windows are found out in it. */
    rounds = 1 + times * (bytes < 1u << 16 ? 200 : bytes < 1u << 22 ? 20 : 1);
    expect(rounds <= ROUNDS_MOST, "ROUNDS is too large");
    machines = bench_allocate(4096, NODES * sizeof(machines[0]));
    memset(machines, 0, NODES * sizeof(machines[0]));
    for (unsigned i = 0; i < NODES; i++) {
        start_node(i);
    }
    for (unsigned i = 0; i < NODES; i++) {
        float *input = (float *)(void *)(machines[i].node.memory + DATA);

        introduce(i);
        for (uint32_t n = 0; n < bytes / 4; n++) {
            input[n] = value(i, n);
        }
    }
    atomic_store(&running, NODES);
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 1; i < threads; i++) {
        expect(pthread_create(&others[i], NULL, serve, (void *)(uintptr_t)i) == 0, "a thread cannot be started");
    }
    (void)serve((void *)(uintptr_t)0);
    for (unsigned i = 1; i < threads; i++) {
        pthread_join(others[i], NULL);
    }
    check();
    qsort(seconds + 1, rounds - 1, sizeof(seconds[0]), ascending);
    printf("%u %.6f\n", bytes, seconds[1 + (rounds - 1) / 2] * 1e3);
    for (unsigned i = 0; i < NODES; i++) {
        bench_release(machines[i].node.state);
        bench_release(machines[i].node.memory);
        bench_release(machines[i].slots);
    }
    bench_release(machines);
}

int main(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    threads = cores < 1 ? 1 : cores < (long)NODES ? (unsigned)cores : NODES;
    if (argc < 4 || (strcmp(argv[2], "crc") != 0 && strcmp(argv[2], "nocrc") != 0)) {
        fprintf(stderr, "usage: %s ROUNDS crc|nocrc BYTES...\n", argv[0]);
        return 2;
    }
    crc = strcmp(argv[2], "crc") == 0;
    for (int i = 3; i < argc; i++) {
        bytes = (uint32_t)strtoul(argv[i], NULL, 10);
        expect(bytes % 4 == 0 && bytes <= 1u << 30, "BYTES is a multiple of 4, at most 1 GiB");
        measure((unsigned)strtoul(argv[1], NULL, 10));
    }
    return 0;
}
