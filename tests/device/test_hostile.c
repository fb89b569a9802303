/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest that does everything wrong on purpose, on two cards at once, while a thread scribbles over their rings. QEMU
 * has to live, nothing outside what the guest gave away may change, and after a reset the cards work.
 *   HOSTILE_SECONDS  how long (default 6)
 *   HOSTILE_SEED     repeats the main thread's choices (the scribbler's timing is never the same)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "side.h"

/* What is given away: the lower half of each on-board memory, and a page of main memory for messages. */
#define GIVEN_BYTES (SIDE_ONBOARD / 2)
#define RINGS_BYTES 0x40000u
/* From a submission ring to its completion ring, most of the time. */
#define HOSTILE_CQ       0x2000u
#define MAIN_BYTES       0x4000000u
#define MAIN_CHECKED     0x1000000u /* from here on main memory has a pattern */
#define MAIN_CHECKED_END 0x3000000u
#define MESSAGES_PAGE    0x100000u

static struct machine machine;
static struct side sides[2];
static uint8_t *main_memory;
static bool stop_scribbling;

static uint64_t random_state;

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
    return next_random(state) % limit;
}

/* Numbers that find edges. */
static uint64_t awkward(uint64_t *state)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     7,
                                     8,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     4095,
                                     4096,
                                     0xffff,
                                     0x10000,
                                     SIDE_ONBOARD - 1,
                                     SIDE_ONBOARD,
                                     SIDE_ONBOARD + 1,
                                     INT32_MAX,
                                     UINT32_MAX,
                                     UINT64_C(1) << 32,
                                     INT64_MAX,
                                     UINT64_MAX - 7,
                                     UINT64_MAX};

    switch (below(state, 3)) {
    case 0:
        return edges[below(state, sizeof(edges) / sizeof(edges[0]))];
    case 1:
        return below(state, GIVEN_BYTES);
    default:
        return next_random(state) >> below(state, 64);
    }
}

/* Right in most fields, so that much of it is executed. */
static void scribble_descriptor(uint64_t *state, uint8_t *at)
{
    static const uint8_t opcodes[] = {NETDAM_OP_ECHO,      NETDAM_OP_READ, NETDAM_OP_WRITE, NETDAM_OP_REDUCE,
                                      NETDAM_OP_FETCH_ADD, NETDAM_OP_CAS,  NETDAM_OP_SWAP,  NETDAM_OP_SEND};
    struct netdam_descriptor d;

    memset(&d, 0, sizeof(d));
    d.opcode = opcodes[below(state, sizeof(opcodes))];
    d.user_data = next_random(state);
    d.peer = (uint32_t)below(state, 4);
    d.length = (uint32_t)below(state, below(state, 4) == 0 ? 30000 : 600);
    d.remote_key = 1 + below(state, 8);
    d.remote_address = below(state, 0x1000) * 8;
    d.local_region = (uint32_t)below(state, 4);
    d.u.operand[0] = below(state, 0x1000) * 8;
    switch (d.opcode) {
    case NETDAM_OP_REDUCE:
        d.operation = NETDAM_ALU_SUM;
        d.type = NETDAM_TYPE_U32;
        d.length &= ~3u;
        break;
    case NETDAM_OP_FETCH_ADD:
    case NETDAM_OP_CAS:
    case NETDAM_OP_SWAP:
        d.type = NETDAM_TYPE_U64;
        d.length = 8;
        d.local_region = 0;
        break;
    default:
        break;
    }
    memcpy(at, &d, sizeof(d));
    /* And half of them wrong somewhere. */
    if (below(state, 2) == 0) {
        uint64_t word = awkward(state);

        memcpy(at + below(state, 8) * 8, &word, 1 + below(state, 8));
    }
}

/* Some descriptors more, completions taken, the vector armed; now and then one too many. */
static void scribble_indices(uint64_t *state, uint8_t *memory, uint64_t at)
{
    struct netdam_ring *sq = (struct netdam_ring *)(void *)(memory + at);
    struct netdam_ring *cq = (struct netdam_ring *)(void *)(memory + at + HOSTILE_CQ);
    uint32_t consumer = __atomic_load_n(&sq->consumer, __ATOMIC_RELAXED);

    __atomic_store_n(&cq->consumer, __atomic_load_n(&cq->producer, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    __atomic_fetch_add(&cq->arm, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&sq->producer, consumer + (uint32_t)below(state, below(state, 100) == 0 ? 200 : 8),
                     __ATOMIC_RELEASE);
}

/* The other processor of the guest, so to say: it never waits for anything. */
static void *scribble(void *opaque)
{
    uint64_t state = *(const uint64_t *)opaque;
    unsigned round = 0;

    while (!__atomic_load_n(&stop_scribbling, __ATOMIC_RELAXED)) {
        uint8_t *memory = sides[below(&state, 2)].card.onboard;
        uint64_t ring = below(&state, RINGS_BYTES / CARD_QUEUE_BYTES) * CARD_QUEUE_BYTES;
        unsigned kind = (unsigned)below(&state, 256);
        uint32_t word;

        if (kind == 0) {
            word = (uint32_t)awkward(&state);
            __atomic_store_n((uint32_t *)(void *)(memory + ring + below(&state, 32) * 4), word, __ATOMIC_RELAXED);
        } else if (kind < 5) {
            word = (uint32_t)next_random(&state);
            __atomic_store_n((uint32_t *)(void *)(memory + below(&state, GIVEN_BYTES / 4) * 4), word, __ATOMIC_RELAXED);
        } else if (kind < 70) {
            scribble_indices(&state, memory, ring);
        } else {
            scribble_descriptor(&state, memory + ring + sizeof(struct netdam_ring) + below(&state, 32) * 64);
        }
        if (++round % 64 == 0) {
            usleep(50);
        }
    }
    return NULL;
}

/* Creating commands get only what is given away, or what is impossible. */
static void hostile_command(struct card *c)
{
    uint64_t args[NETDAM_ADMIN_ARGS];
    enum netdam_admin command = (enum netdam_admin)(1 + below(&random_state, 11));
    uint64_t base = below(&random_state, GIVEN_BYTES / 2);
    unsigned i;

    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        args[i] = awkward(&random_state);
    }
    /* What lives longer meets more. */
    if ((command == NETDAM_ADMIN_QUEUE_DESTROY || command == NETDAM_ADMIN_REGION_DESTROY ||
         command == NETDAM_ADMIN_PEER_CLOSE) &&
        below(&random_state, 8) != 0) {
        return;
    }
    switch (command) {
    case NETDAM_ADMIN_REGION_CREATE:
        /* Over rings too. */
        args[0] = base & ~UINT64_C(7);
        args[1] = below(&random_state, 8) == 0 ? UINT64_MAX - below(&random_state, SIDE_ONBOARD) : 1 + base;
        args[2] = below(&random_state, 4) == 0 ? args[2] : NETDAM_PERMISSION_ALL;
        args[3] = below(&random_state, 9);
        args[4] = below(&random_state, 8) == 0 ? args[4] : 0;
        args[5] = below(&random_state, 2) == 0 ? args[5] : 0;
        break;
    case NETDAM_ADMIN_QUEUE_CREATE:
        base = below(&random_state, RINGS_BYTES / CARD_QUEUE_BYTES) * CARD_QUEUE_BYTES;
        args[0] = below(&random_state, 8) == 0 ? SIDE_ONBOARD - 64 : base;
        args[1] = below(&random_state, 8) == 0 ? 30 + below(&random_state, 40) : 3 + below(&random_state, 3);
        args[2] = base + (below(&random_state, 8) == 0 ? 0 : HOSTILE_CQ);
        args[3] = 3 + below(&random_state, 3);
        args[4] = below(&random_state, 2) == 0 ? base + 0x3000 : 0;
        args[5] = args[4] == 0 ? 0 : below(&random_state, 6);
        args[6] = below(&random_state, 8) == 0 ? args[6] : below(&random_state, 18) << 16;
        args[7] = below(&random_state, 2) == 0 ? args[7] : 0;
        break;
    case NETDAM_ADMIN_PEER_OPEN:
        args[0] = 0x0a000001u + below(&random_state, 4);
        args[1] = 0;
        args[2] = 4 | (uint64_t)NETDAM_UDP_PORT << 16;
        break;
    case NETDAM_ADMIN_QUEUE_DESTROY:
    case NETDAM_ADMIN_REGION_DESTROY:
    case NETDAM_ADMIN_PEER_CLOSE:
        args[0] = below(&random_state, 20);
        break;
    default:
        break;
    }
    (void)card_admin(c, command, args, NETDAM_ADMIN_ARGS, NULL);
}

/* Any width anywhere, but no command that creates: what that one may be given is decided above. */
static void hostile_access(struct card *c)
{
    static const unsigned widths[] = {1, 2, 4, 8};
    unsigned bytes = widths[below(&random_state, 4)];
    uint32_t offset = (uint32_t)below(&random_state, 2) == 0 ? (uint32_t)below(&random_state, 0x3000)
                                                             : (uint32_t)below(&random_state, NETDAM_BAR0_BYTES - 8);
    uint64_t value = awkward(&random_state);

    offset -= below(&random_state, 4) != 0 ? offset % bytes : 0;
    if (offset + bytes > NETDAM_REG_ADMIN_COMMAND && offset < NETDAM_REG_ADMIN_COMMAND + 4) {
        value = 100;
    }
    /* A reset is somebody else's part. */
    if (offset + bytes > NETDAM_REG_CONTROL && offset < NETDAM_REG_CONTROL + 4) {
        value = 0;
    }
    if (below(&random_state, 2) == 0) {
        (void)card_read(c, offset, bytes);
    } else {
        card_write(c, offset, bytes, value);
    }
}

/* Messages to the page that is given away, to the interrupt controllers, and to the cards' own BARs. */
static void hostile_message(struct card *c)
{
    struct card *aim = &sides[below(&random_state, 2)].card;
    uint64_t address;

    switch (below(&random_state, 6)) {
    case 0:
        address = MESSAGES_PAGE + below(&random_state, 1024) * 4;
        break;
    case 1:
        address = 0xfee00000u + below(&random_state, 0x100000 / 4) * 4;
        break;
    case 2:
        address = aim->registers + NETDAM_PAGE_DOORBELLS + below(&random_state, 64) * NETDAM_PAGE_BYTES;
        break;
    case 3:
        address = aim->registers + (below(&random_state, 4) == 0 ? NETDAM_REG_CONTROL : NETDAM_REG_ADMIN_ARG0);
        break;
    case 4:
        address = aim->memory + below(&random_state, GIVEN_BYTES / 4) * 4;
        break;
    default:
        address = aim->msix + below(&random_state, 17) * 16 + 12;
        break;
    }
    card_msix_set(c, (unsigned)below(&random_state, 17), address, (uint32_t)below(&random_state, 2),
                  below(&random_state, 3) == 0);
}

static void hostile_configuration(struct card *c)
{
    switch (below(&random_state, 5)) {
    case 0:
        card_bus_master(c, below(&random_state, 3) != 0);
        break;
    case 1:
        card_msix_enable(c, below(&random_state, 4) != 0, below(&random_state, 4) == 0);
        break;
    case 2:
        /* Memory decoding off, and BARs elsewhere or over one another. */
        card_config_write(c, 4, 2, (uint32_t)below(&random_state, 8));
        card_config_write(c, 0x10 + 4 * (unsigned)below(&random_state, 6), 4,
                          0xc0000000u + (uint32_t)below(&random_state, 0x1000) * 0x1000u);
        machine_step(&machine, 1000);
        card_bars(c);
        break;
    case 3:
        if (below(&random_state, 8) == 0) {
            card_function_reset(c);
        }
        break;
    default:
        card_write(c, NETDAM_REG_CONTROL, 4,
                   below(&random_state, 16) == 0 ? 1 : (uint32_t)awkward(&random_state) & ~1u);
        break;
    }
}

static void hostile_step(void)
{
    struct card *c = &sides[below(&random_state, 2)].card;

    switch (below(&random_state, 16)) {
    case 0:
    case 1:
    case 2:
        hostile_command(c);
        break;
    case 3:
    case 4:
        hostile_access(c);
        break;
    case 5:
        hostile_message(c);
        break;
    case 6:
        if (below(&random_state, 8) == 0) {
            hostile_configuration(c);
        }
        break;
    case 7:
        machine_step(&machine, below(&random_state, 2) == 0 ? 1000 : 10000000);
        break;
    default:
        card_write(c, NETDAM_PAGE_DOORBELLS + (uint32_t)below(&random_state, 64) * NETDAM_PAGE_BYTES, 4, 1);
        break;
    }
}

static uint64_t pattern(size_t i)
{
    return i * 0xd6e8feb86659fd93u ^ 0x5a5a;
}

static void fill_pattern(uint8_t *memory, size_t from, size_t to)
{
    for (size_t i = from; i < to; i += 8) {
        uint64_t word = pattern(i);

        memcpy(memory + i, &word, 8);
    }
}

static void check_pattern(const char *what, const uint8_t *memory, size_t from, size_t to)
{
    for (size_t i = from; i < to; i += 8) {
        uint64_t word = pattern(i);

        if (memcmp(memory + i, &word, 8) != 0) {
            fail_msg("%s changed at 0x%zx", what, i);
        }
    }
}

static int setup(void **state)
{
    char *files[2];
    char *main_file;
    unsigned i;
    int fd;

    (void)state;
    machine_prepare(&machine);
    memset(sides, 0, sizeof(sides));
    main_file = machine_text("%s/main", machine.directory);
    for (i = 0; i < 2; i++) {
        files[i] = machine_text("%s/onboard%u", machine.directory, i);
    }
    machine_start(&machine,
                  (const char *const[]){
                      "-machine", "memory-backend=main", "-object",
                      machine_text("memory-backend-file,id=main,size=64M,share=on,mem-path=%s", main_file), "-object",
                      machine_text("memory-backend-file,id=m0,size=4M,share=on,mem-path=%s", files[0]), "-object",
                      machine_text("memory-backend-file,id=m1,size=4M,share=on,mem-path=%s", files[1]), "-netdev",
                      "hubport,id=w0,hubid=0", "-netdev", "hubport,id=w1,hubid=0", "-device",
                      machine_text("netdam,id=nd0,memdev=m0,%s,ip=10.0.0.1/24,mac=02:00:00:00:00:01,firmware=%s",
                                   machine_wire(&machine, &machine, 0), NETDAM_TEST_FIRMWARE),
                      "-device",
                      machine_text("netdam,id=nd1,memdev=m1,%s,ip=10.0.0.2/24,mac=02:00:00:00:00:02,firmware=%s",
                                   machine_wire(&machine, &machine, 1), NETDAM_TEST_FIRMWARE),
                      NULL});
    fd = open(main_file, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    main_memory = mmap(NULL, MAIN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(main_memory != MAP_FAILED);
    fill_pattern(main_memory, MAIN_CHECKED, MAIN_CHECKED_END);
    for (i = 0; i < 2; i++) {
        card_open(&sides[i].card, &machine, i);
        card_await_link(&sides[i].card);
        card_map(&sides[i].card, files[i], SIDE_ONBOARD);
        fill_pattern(sides[i].card.onboard, GIVEN_BYTES, SIDE_ONBOARD);
        sides[i].number = i + 1;
        free(files[i]);
    }
    free(main_file);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    munmap(main_memory, MAIN_BYTES);
    card_close(&sides[0].card);
    card_close(&sides[1].card);
    machine_stop(&machine);
    return 0;
}

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const struct {
    enum netdam_counter counter;
    const char *name;
} witness_counters[] = {
    {NETDAM_COUNTER_DESCRIPTORS, "descriptors"},    {NETDAM_COUNTER_COMPLETION_ERRORS, "failed"},
    {NETDAM_COUNTER_REQUESTS_EXECUTED, "executed"}, {NETDAM_COUNTER_REQUESTS_REFUSED, "refused"},
    {NETDAM_COUNTER_RING_ERRORS, "ring errors"},    {NETDAM_COUNTER_REGISTER_ERRORS, "register errors"},
    {NETDAM_COUNTER_INTERRUPTS, "interrupts"},
};

/* Counters added up across resets, as far as they are looked at often enough. */
struct witnessed {
    uint64_t last[sizeof(witness_counters) / sizeof(witness_counters[0])];
    uint64_t sum[sizeof(witness_counters) / sizeof(witness_counters[0])];
};

static void witness(struct card *c, struct witnessed *w)
{
    for (size_t i = 0; i < sizeof(witness_counters) / sizeof(witness_counters[0]); i++) {
        uint64_t value = card_counter(c, witness_counters[i].counter);

        w->sum[i] += value >= w->last[i] ? value - w->last[i] : value;
        w->last[i] = value;
    }
}

/* The fewest requests that one of the cards executed. */
static uint64_t witnessed_least(const struct witnessed w[2])
{
    return w[0].sum[2] < w[1].sum[2] ? w[0].sum[2] : w[1].sum[2];
}

static void a_hostile_guest_harms_only_itself(void **state)
{
    const char *seconds_text = getenv("HOSTILE_SECONDS");
    const char *seed_text = getenv("HOSTILE_SEED");
    double until = now_seconds() + (seconds_text != NULL ? atof(seconds_text) : 6);
    uint64_t seed = seed_text != NULL ? strtoull(seed_text, NULL, 0) : (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
    uint64_t scribbler_seed = seed + 1;
    uint64_t steps = 0;
    struct witnessed witnessed[2] = {0};
    pthread_t thread;
    unsigned i;

    (void)state;
    print_message("# HOSTILE_SEED=0x%llx\n", (unsigned long long)seed);
    random_state = seed;
    stop_scribbling = false;
    assert_int_equal(pthread_create(&thread, NULL, scribble, &scribbler_seed), 0);
    /* On a busy machine for longer, until enough was tried. */
    while (now_seconds() < until || (witnessed_least(witnessed) == 0 && now_seconds() < until + 120)) {
        hostile_step();
        if (++steps % 16 == 0) {
            for (i = 0; i < 2; i++) {
                witness(&sides[i].card, &witnessed[i]);
            }
        }
    }
    __atomic_store_n(&stop_scribbling, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_true(machine_is_alive(&machine));
    for (i = 0; i < 2; i++) {
        struct card *c = &sides[i].card;

        print_message("# card %u: %llu steps", i, (unsigned long long)steps);
        for (size_t j = 0; j < sizeof(witness_counters) / sizeof(witness_counters[0]); j++) {
            print_message(", %llu %s", (unsigned long long)witnessed[i].sum[j], witness_counters[j].name);
        }
        print_message("\n");
        /* The wrong things were tried on a device that worked. */
        assert_true(witnessed_least(witnessed) > 0);
        card_function_reset(c);
        check_pattern("on-board memory that nothing was given of", c->onboard, GIVEN_BYTES, SIDE_ONBOARD);
    }
    check_pattern("main memory", main_memory, MAIN_CHECKED, MAIN_CHECKED_END);
    for (i = 0; i < 2; i++) {
        side_begin(&sides[i]);
    }
    side_check(&sides[0]);
    side_check(&sides[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hostile_guest_harms_only_itself, setup, teardown),
    };
    const char *seconds = getenv("HOSTILE_SECONDS");

    alarm(300 + (seconds != NULL ? (unsigned)atof(seconds) : 0));
    return cmocka_run_group_tests_name("device: hostile guest", tests, NULL, NULL);
}
