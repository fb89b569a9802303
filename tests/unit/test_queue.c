/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: rings that lie, rings that wrap, room for completions, fences, wake-ups, fairness, flushing. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b;

static struct netdam_ring *ring(uint64_t base)
{
    return (struct netdam_ring *)(void *)(b.u.node.memory + base);
}

/* A queue pair of 2^log2 entries each, at `base`, that starts with `first`. */
static void make_queue(struct ndtest_queue *queue, uint64_t base, unsigned sq_log2, unsigned cq_log2, uint32_t first)
{
    assert_int_equal(ndtest_queue_create(queue, &b.u.node, base, sq_log2, base + 0x8000, cq_log2, first, b.u.now_ns),
                     NETDAM_ADMIN_STATUS_OK);
}

static void post(struct ndtest_queue *queue, uint32_t length, uint32_t flags, uint64_t user_data)
{
    struct netdam_descriptor d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, length, user_data);

    d.flags = flags;
    unit_post(&b.u, queue, &d);
}

static uint64_t query(const struct ndtest_queue *queue, unsigned result)
{
    uint64_t args[] = {queue->id}, results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_QUEUE_QUERY, args, 1, results), NETDAM_ADMIN_STATUS_OK);
    return results[result];
}

static void creation_writes_the_ring_heads(void **state)
{
    static const uint32_t firsts[] = {0, 1, 77, 0xffffff00, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
        struct ndtest_queue q;

        bench_start(&b, NULL, 4, GENERATION);
        memset(b.u.node.memory + 0x10000, 0xff, 0x10000);
        make_queue(&q, 0x10000, 2, 3, firsts[i]);
        assert_int_equal(ring(0x10000)->producer, firsts[i]);
        assert_int_equal(ring(0x10000)->consumer, firsts[i]);
        assert_int_equal(ring(0x10000)->consumer_flags, NETDAM_RING_NEED_WAKEUP);
        assert_int_equal(ring(0x18000)->producer, firsts[i]);
        assert_int_equal(ring(0x18000)->consumer, firsts[i]);
        assert_int_equal(ring(0x18000)->arm, 0);
        assert_int_equal(query(&q, 0), NETDAM_QUEUE_STATE_READY);
        assert_int_equal(query(&q, 2), firsts[i]);
        assert_int_equal(query(&q, 3), firsts[i]);
        unit_stop(&b.u);
    }
}

static void indices_run_freely_and_wrap(void **state)
{
    struct ndtest_queue q;
    uint32_t first = 0xffffff00;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 3, 3, first);
    for (uint32_t i = 0; i < 1000; i++) {
        struct ndtest_packet p;

        post(&q, 8, 0, i);
        unit_run(&b.u);
        assert_int_equal(ndtest_queue_taken(&q), first + i + 1);
        unit_expect_sent(&b.u, &p);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&q, i, NETDAM_STATUS_OK);
        assert_int_equal(ring(0x18000)->producer, first + i + 1);
    }
    unit_stop(&b.u);
}

static void an_impossible_index_stops_the_queue_pair_and_flushes_it(void **state)
{
    static const struct {
        bool completion_ring;
        int64_t off; /* of the index from the one that is right, entries 8 */
        bool error;
    } rows[] = {
        {false, 8, false}, {false, 9, true}, {false, -1, true}, {false, INT32_MAX, true}, {false, INT32_MIN, true},
        {true, 0, false},  {true, 1, true},  {true, -8, false}, {true, -9, true},         {true, INT32_MIN, true},
    };
    static const uint32_t firsts[] = {0, 0xfffffffc};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows) * 2; i++) {
        const size_t row = i / 2;
        struct ndtest_queue q;
        struct ndtest_packet p;
        uint32_t first = firsts[i % 2];

        bench_start(&b, NULL, 4, GENERATION);
        make_queue(&q, 0x10000, 3, 3, first);
        post(&q, 8, 0, 1);
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        if (rows[row].completion_ring) {
            ring(0x18000)->consumer = first + (uint32_t)rows[row].off;
            post(&q, 8, 0, 2);
        } else {
            ring(0x10000)->producer = first + 1 + (uint32_t)rows[row].off;
        }
        unit_run(&b.u);
        assert_int_equal(query(&q, 0), rows[row].error ? NETDAM_QUEUE_STATE_ERROR : NETDAM_QUEUE_STATE_READY);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RING_ERRORS), rows[row].error);
        if (rows[row].error) {
            unit_expect_silence(&b.u);
            unit_expect_completion(&q, 1, NETDAM_STATUS_FLUSHED);
            assert_int_equal(query(&q, 1), 0);
            /* Nothing more is taken, even if the index is mended; a late answer finds nothing. */
            ring(0x10000)->producer = first + 2;
            ring(0x18000)->consumer = first + 1;
            unit_answer_ok(&b.u, &p, NULL);
            unit_run(&b.u);
            unit_expect_silence(&b.u);
            assert_int_equal(ndtest_queue_taken(&q), first + 1);
            assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RING_ERRORS), 1);
            /* Destroyed and created again, it works. */
            assert_int_equal(ndtest_queue_destroy(&q, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
            make_queue(&q, 0x10000, 3, 3, 0);
            post(&q, 8, 0, 3);
            unit_run(&b.u);
            unit_expect_sent(&b.u, &p);
            unit_answer_ok(&b.u, &p, NULL);
            unit_expect_completion(&q, 3, NETDAM_STATUS_OK);
        }
        unit_stop(&b.u);
    }
}

static void a_descriptor_waits_for_room_in_the_completion_ring_and_is_looked_at_again(void **state)
{
    struct ndtest_queue q;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 4, 2, 0);
    for (unsigned i = 0; i < 10; i++) {
        post(&q, 8, 0, i);
    }
    unit_run(&b.u);
    assert_int_equal(ndtest_queue_taken(&q), 4); /* as many as there are places, and no more */
    assert_int_equal(query(&q, 1), 4);
    assert_int_equal(b.u.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        unit_expect_sent(&b.u, &p);
        unit_answer_ok(&b.u, &p, NULL);
        assert_int_equal(ndtest_queue_taken(&q), 4);
    }
    /* Software has taken none: the firmware may sleep, but looks again after a millisecond. */
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_run(&b.u);
    assert_in_range(b.u.result.next_ns - b.u.now_ns, 1, UNIT_MS);
    unit_expect_completion(&q, 0, NETDAM_STATUS_OK);
    unit_expect_completion(&q, 1, NETDAM_STATUS_OK);
    assert_false(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_run_for(&b.u, UNIT_MS);
    assert_int_equal(ndtest_queue_taken(&q), 6);
    assert_int_equal(b.u.count, 2);
    unit_stop(&b.u);
}

static void a_fence_waits_for_everything_before_it_in_its_ring(void **state)
{
    struct ndtest_queue q, other;
    struct bench_packets sent;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 4, 4, 0);
    make_queue(&other, 0x20000, 4, 4, 0);
    post(&q, 8, NETDAM_DESCRIPTOR_FENCE, 0); /* with nothing before it, it waits for nothing */
    post(&q, 8, 0, 1);
    post(&q, 8, NETDAM_DESCRIPTOR_FENCE, 2);
    post(&q, 8, 0, 3);
    post(&q, 8, NETDAM_DESCRIPTOR_FENCE, 4);
    unit_run(&b.u);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 2);
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    post(&other, 8, 0, 100); /* the other ring is not held up */
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&other, 100, NETDAM_STATUS_OK);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &sent.packet[0], NULL);
    unit_expect_completion(&q, 1, NETDAM_STATUS_OK);
    unit_expect_completion(&q, 0, NETDAM_STATUS_OK);
    bench_free(&sent);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 2); /* the fence itself, and what follows it up to the next */
    unit_answer_ok(&b.u, &sent.packet[0], NULL);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    unit_expect_sent(&b.u, &p);
    unit_expect_silence(&b.u);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void malformed_descriptors_end_with_a_status_and_send_nothing(void **state)
{
    static const struct {
        const char *what;
        size_t offset;
        unsigned bytes;
        uint64_t value;
        uint8_t opcode; /* 0: WRITE of 8 bytes */
        enum netdam_status status;
    } rows[] = {
#define FIELD(member) offsetof(struct netdam_descriptor, member), sizeof(((struct netdam_descriptor *)0)->member)
        {"opcode 0", FIELD(opcode), 0, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined opcode", FIELD(opcode), 0xee, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"CONFIRM", FIELD(opcode), NETDAM_OP_CONFIRM, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"operation where none belongs", FIELD(operation), NETDAM_ALU_SUM, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined operation", FIELD(operation), 99, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no operation", FIELD(operation), 0, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"AND of floats", FIELD(operation), NETDAM_ALU_AND, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"type where none belongs", FIELD(type), NETDAM_TYPE_I32, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined type", FIELD(type), 13, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no type", FIELD(type), 0, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"float compare-and-swap", FIELD(type), NETDAM_TYPE_F64, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list without flag", FIELD(list_count), 1, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined flag", FIELD(flags), 0x80, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined flag, high", FIELD(flags), 0x80000000, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED READ", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_READ, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED sum", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED atomic", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED with immediate", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_IMMEDIATE, 0,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED and ORDERED", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_ORDERED, 0,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"UNRELIABLE and ORDERED", FIELD(flags), NETDAM_DESCRIPTOR_UNRELIABLE | NETDAM_DESCRIPTOR_ORDERED, 0,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"all three", FIELD(flags), 0xe, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"ORDERED READ", FIELD(flags), NETDAM_DESCRIPTOR_ORDERED, NETDAM_OP_READ, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"UNRELIABLE atomic", FIELD(flags), NETDAM_DESCRIPTOR_UNRELIABLE, NETDAM_OP_FETCH_ADD,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"UNRELIABLE ECHO", FIELD(flags), NETDAM_DESCRIPTOR_UNRELIABLE, NETDAM_OP_ECHO, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate with READ", FIELD(flags), NETDAM_DESCRIPTOR_IMMEDIATE, NETDAM_OP_READ,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate with REDUCE", FIELD(flags), NETDAM_DESCRIPTOR_IMMEDIATE, NETDAM_OP_REDUCE,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"REPRODUCIBLE float sum into memory", FIELD(flags), NETDAM_DESCRIPTOR_REPRODUCIBLE, NETDAM_OP_REDUCE,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"LIST of nothing", FIELD(flags), NETDAM_DESCRIPTOR_LIST, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"LIST of an atomic", FIELD(flags), NETDAM_DESCRIPTOR_LIST, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"SEND to an address", FIELD(remote_address), 1, NETDAM_OP_SEND, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"SEND of more than a packet", FIELD(length), 1401, NETDAM_OP_SEND, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate without flag", FIELD(immediate), 1, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"peer not open", FIELD(peer), 1, 0, NETDAM_STATUS_LOCAL_PEER},
        {"peer beyond the table", FIELD(peer), UINT32_MAX, 0, NETDAM_STATUS_LOCAL_PEER},
        {"too long for anything", FIELD(length), NDFW_LENGTH_MAX + 1u, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"longer than the region", FIELD(length), BENCH_LENGTH + 1, 0, NETDAM_STATUS_LOCAL_RANGE},
        {"half an element", FIELD(length), 6, NETDAM_OP_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"atomic of two elements", FIELD(length), 16, NETDAM_OP_FETCH_ADD, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"atomic of nothing", FIELD(length), 0, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"atomic with a local region", FIELD(local_region), 1, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"atomic with a list's length", FIELD(list_count), 1, NETDAM_OP_CAS, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"FETCH_ADD with a second operand", FIELD(u.operand[1]), 1, NETDAM_OP_FETCH_ADD,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"result address", FIELD(u.buffer.result_address), 1, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"reserved field of READ", FIELD(u.buffer.result_address), UINT64_C(1) << 63, NETDAM_OP_READ,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"ECHO with a key", FIELD(remote_key), 1, NETDAM_OP_ECHO, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"ECHO with an address", FIELD(remote_address), 1, NETDAM_OP_ECHO, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"remote address wraps", FIELD(remote_address), UINT64_MAX - 6, 0, NETDAM_STATUS_BAD_RANGE},
        {"region not made", FIELD(local_region), 1, 0, NETDAM_STATUS_LOCAL_REGION},
        {"region beyond the table", FIELD(local_region), UINT32_MAX, 0, NETDAM_STATUS_LOCAL_REGION},
        {"local end", FIELD(u.buffer.local_address), BENCH_LENGTH - 7, 0, NETDAM_STATUS_LOCAL_RANGE},
        {"local wrap", FIELD(u.buffer.local_address), UINT64_MAX - 3, 0, NETDAM_STATUS_LOCAL_RANGE},
        {"local wrap to 0", FIELD(u.buffer.local_address), (uint64_t)0 - BENCH_LOCAL, NETDAM_OP_READ,
         NETDAM_STATUS_LOCAL_RANGE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        unsigned opcode = rows[i].opcode != 0 ? rows[i].opcode : NETDAM_OP_WRITE;
        bool atomic = (netdam_op_flags(opcode) & NETDAM_OPF_ATOMIC) != 0;
        struct netdam_descriptor d;
        struct netdam_completion completion;

        bench_start(&b, NULL, 4, GENERATION);
        d = atomic ? bench_atomic(&b, opcode, NETDAM_TYPE_U64, 1, 0, i) : bench_descriptor(&b, opcode, 0, 8, i);
        if (opcode == NETDAM_OP_REDUCE) {
            d.operation = NETDAM_ALU_SUM;
            d.type = NETDAM_TYPE_F32;
        }
        if (opcode == NETDAM_OP_SEND) {
            d.remote_address = 0;
        }
        bench_do(&b, &d); /* unchanged it is right */
        assert_int_equal(b.u.count, 1);
        unit_drop_sent(&b.u);
        memcpy((uint8_t *)&d + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_do(&b, &d);
        if (b.u.count != 0 || ndtest_queue_ready(&b.queue) == 0) {
            fail_msg("%s: accepted", rows[i].what);
        }
        completion = unit_completion(&b.queue);
        if (completion.status != (uint8_t)rows[i].status) {
            fail_msg("%s: status %#x, expected %#x", rows[i].what, completion.status, (unsigned)rows[i].status);
        }
        assert_true(completion.user_data == i && completion.result == 0);
        assert_int_equal(completion.length, 0);
        assert_int_equal(completion.flags, 0);
        assert_int_equal(completion.opcode, d.opcode);
        unit_expect_no_completion(&b.queue);
        unit_stop(&b.u);
    }
}

static void every_opcode_that_is_not_executed_is_told_apart_from_nonsense(void **state)
{
    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned opcode = 0; opcode <= UINT8_MAX; opcode++) {
        unsigned flags = netdam_op_flags(opcode);
        /* Those of the device lack a list. */
        bool nonsense = flags == 0 || (flags & (NETDAM_OPF_CONTROL | NETDAM_OPF_CHAIN | NETDAM_OPF_DEVICE)) != 0;
        struct netdam_descriptor d = bench_descriptor(&b, opcode, 0, 8, opcode);

        d.operation = (flags & NETDAM_OPF_ALU) != 0 ? NETDAM_ALU_SUM : NETDAM_ALU_NONE;
        d.type = (flags & (NETDAM_OPF_ALU | NETDAM_OPF_ATOMIC)) != 0 ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE;
        if (unit_is_executed(opcode, d.operation, d.type) && !nonsense) {
            continue;
        }
        bench_do(&b, &d);
        unit_expect_silence(&b.u);
        unit_expect_completion(&b.queue, opcode,
                               nonsense ? NETDAM_STATUS_LOCAL_DESCRIPTOR : NETDAM_STATUS_LOCAL_UNSUPPORTED);
    }
    unit_stop(&b.u);
}

static void local_permissions_are_those_the_opcode_needs(void **state)
{
    static const struct {
        uint8_t opcode;
        uint32_t needs;
    } rows[] = {
        {NETDAM_OP_WRITE, NETDAM_PERMISSION_LOCAL_READ},
        {NETDAM_OP_REDUCE, NETDAM_PERMISSION_LOCAL_READ},
        {NETDAM_OP_READ, NETDAM_PERMISSION_LOCAL_WRITE},
        {NETDAM_OP_ECHO, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (uint32_t has = 0; has <= NETDAM_PERMISSION_ALL; has++) {
            struct netdam_descriptor d;

            bench_start(&b, NULL, 4, GENERATION);
            d = bench_descriptor(&b, rows[i].opcode, 0, 8, i);
            d.local_region = unit_region(&b.u, BENCH_LOCAL, 64, has, 0);
            d.operation = rows[i].opcode == NETDAM_OP_REDUCE ? NETDAM_ALU_SUM : 0;
            d.type = rows[i].opcode == NETDAM_OP_REDUCE ? NETDAM_TYPE_U8 : 0;
            bench_do(&b, &d);
            if ((has & rows[i].needs) == rows[i].needs) {
                assert_int_equal(b.u.count, 1);
                unit_expect_no_completion(&b.queue);
            } else {
                unit_expect_silence(&b.u);
                unit_expect_completion(&b.queue, i, NETDAM_STATUS_LOCAL_PERMISSION);
            }
            unit_stop(&b.u);
        }
    }
}

static void destroying_flushes_what_was_taken_and_what_was_not(void **state)
{
    struct ndtest_queue q;
    struct bench_packets sent;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 4, 3, 0);
    for (unsigned i = 0; i < 4; i++) {
        post(&q, 8, 0, i);
    }
    unit_run(&b.u);
    bench_collect(&b, &sent);
    for (unsigned i = 4; i < 14; i++) {
        post(&q, 8, 0, i);
    }
    /* The completion ring has room for 8: the 4 under way and 4 of those in the ring. */
    assert_int_equal(ndtest_queue_destroy(&q, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 8; i++) {
        unit_expect_completion(&q, i, NETDAM_STATUS_FLUSHED);
    }
    unit_expect_no_completion(&q);
    assert_int_equal(ndtest_queue_destroy(&q, b.u.now_ns), NETDAM_ADMIN_STATUS_NO_SUCH);
    memset(b.u.node.memory + 0x10000, 0x77, 0x10000); /* given a new use */
    for (unsigned i = 0; i < sent.count; i++) {
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
    }
    unit_run_for(&b.u, 10);
    unit_expect_silence(&b.u);
    for (unsigned i = 0; i < 0x10000; i++) {
        assert_int_equal(b.u.node.memory[0x10000 + i], 0x77);
    }
    bench_free(&sent);
    unit_stop(&b.u);
}

static void destroying_one_leaves_the_others_alone(void **state)
{
    struct ndtest_queue q;
    struct bench_packets sent;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 4, 4, 0);
    post(&q, 2 * 1400, 0, 1);
    unit_run(&b.u);
    bench_write(&b, 2 * 1400, 2);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 4);
    assert_int_equal(ndtest_queue_destroy(&q, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_expect_completion(&q, 1, NETDAM_STATUS_FLUSHED);
    for (unsigned i = 0; i < 4; i++) {
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
    }
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_OK);
    bench_free(&sent);
    unit_stop(&b.u);
}

/* Descriptors that were taken and wait for the peer's generation, so that nothing of them is under way. */
static void destroying_flushes_what_waits_in_the_middle_of_the_peers_list(void **state)
{
    struct ndtest_packet p;

    (void)state;
    for (unsigned victim = 0; victim < 3; victim++) {
        struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION};
        struct ndtest_queue q[3];
        unsigned sent = 0;

        bench_start(&b, NULL, 4, 0);
        for (unsigned i = 0; i < 3; i++) {
            make_queue(&q[i], 0x10000 + 0x10000 * i, 4, 4, 0);
            post(&q[i], 8 + i, 0, i);
            unit_run(&b.u);
        }
        unit_expect_sent(&b.u, &p); /* the question */
        unit_expect_silence(&b.u);
        assert_int_equal(ndtest_queue_destroy(&q[victim], b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        unit_expect_completion(&q[victim], victim, NETDAM_STATUS_FLUSHED);
        post(&b.queue, 20, 0, 3);
        unit_run(&b.u);
        unit_answer(&b.u, &p, &stale);
        while (b.u.count != 0) {
            unit_expect_sent(&b.u, &p);
            assert_int_not_equal(p.length, 8 + victim);
            unit_answer_ok(&b.u, &p, NULL);
            sent++;
        }
        assert_int_equal(sent, 3);
        for (unsigned i = 0; i < 3; i++) {
            if (i != victim) {
                unit_expect_completion(&q[i], i, NETDAM_STATUS_OK);
            }
        }
        unit_expect_completion(&b.queue, 3, NETDAM_STATUS_OK);
        unit_stop(&b.u);
    }
}

static void the_interrupt_comes_once_for_each_arming(void **state)
{
    uint64_t args[] = {0x10000, 4, 0x18000, 4, 0, 0, NETDAM_QUEUE_NETDAM | 2u << 16, 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    struct ndtest_queue q = {.node = &b.u.node, .sq_base = 0x10000, .cq_base = 0x18000, .sq_log2 = 4, .cq_log2 = 4};
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), NETDAM_ADMIN_STATUS_OK);
    q.id = (uint32_t)results[0];
    for (unsigned i = 0; i < 12; i++) {
        static const uint8_t arm[12] = {0, 0, 1, 0, 0, 1, 1, 3, 0, 255, 0, 1}; /* added before the completion */
        uint64_t before = b.u.node.interrupts;

        post(&q, 8, 0, i);
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        ring(0x18000)->arm += arm[i];
        unit_run(&b.u); /* arming by itself raises nothing */
        assert_true(b.u.node.interrupts == before);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&q, i, NETDAM_STATUS_OK);
        assert_true(b.u.node.interrupts == before + (arm[i] != 0));
        assert_true(arm[i] == 0 || b.u.last_vector == 2);
        unit_run(&b.u);
        assert_true(b.u.node.interrupts == before + (arm[i] != 0));
    }
    assert_true(unit_counter(&b.u, NETDAM_COUNTER_INTERRUPTS) == b.u.node.interrupts);
    /* The flush of a destruction is a completion like others. */
    post(&q, 8, 0, 99);
    ring(0x18000)->arm++;
    {
        uint64_t before = b.u.node.interrupts;

        assert_int_equal(ndtest_queue_destroy(&q, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        assert_true(b.u.node.interrupts == before + 1);
    }
    unit_stop(&b.u);
}

static void without_a_vector_no_interrupt_comes(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION); /* its queue pair has none */
    ring(b.queue.cq_base)->arm++;
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    assert_int_equal(b.u.node.interrupts, 0);
    unit_stop(&b.u);
}

static void need_wakeup_is_set_before_sleep_and_cleared_by_run(void **state)
{
    struct ndtest_queue q;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_queue(&q, 0x10000, 4, 4, 0);
    unit_run(&b.u);
    assert_int_equal(ring(0x10000)->consumer_flags, 0);
    assert_int_equal(ring(BENCH_RINGS)->consumer_flags, 0);
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    assert_int_equal(ring(0x10000)->consumer_flags, NETDAM_RING_NEED_WAKEUP);
    assert_int_equal(ring(BENCH_RINGS)->consumer_flags, NETDAM_RING_NEED_WAKEUP);
    /* A descriptor that came before the last look keeps the device awake. */
    post(&q, 8, 0, 1);
    assert_false(b.u.node.ops->prepare_sleep(b.u.node.state));
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_DOORBELLS), 1);
    unit_run(&b.u);
    assert_int_equal(b.u.count, 1);
    post(&q, 8, 0, 2); /* awake: no doorbell */
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_DOORBELLS), 1);
    unit_run(&b.u);
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_stop(&b.u);
}

static void rings_take_turns(void **state)
{
    struct ndtest_queue q[3];
    struct netdam_fw_config config = bench_config();
    uint32_t most = 0, least = UINT32_MAX;

    (void)state;
    config.operations = 48; /* scarce: whoever comes first could take all */
    config.window = 1024;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 0; i < 3; i++) {
        make_queue(&q[i], 0x10000 + 0x10000 * i, 7, 7, 0);
        for (unsigned k = 0; k < 100; k++) {
            post(&q[i], 8, 0, k);
        }
    }
    unit_run(&b.u);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t taken = ndtest_queue_taken(&q[i]);

        most = taken > most ? taken : most;
        least = taken < least ? taken : least;
    }
    assert_int_equal(most, 16);
    assert_int_equal(least, 16);
    /* Served to the end, nobody is starved on the way. */
    for (unsigned round = 0;
         round < 100 && ndtest_queue_taken(&q[0]) + ndtest_queue_taken(&q[1]) + ndtest_queue_taken(&q[2]) < 300;
         round++) {
        struct bench_packets sent;

        bench_collect(&b, &sent);
        for (unsigned i = 0; i < sent.count; i++) {
            unit_answer_ok(&b.u, &sent.packet[i], NULL);
        }
        for (unsigned i = 0; i < 3 && ndtest_queue_taken(&q[0]) < 84; i++) {
            assert_in_range(ndtest_queue_taken(&q[i]) + 48, ndtest_queue_taken(&q[0]), ndtest_queue_taken(&q[0]) + 96);
        }
        bench_free(&sent);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ndtest_queue_taken(&q[i]), 100);
    }
    unit_stop(&b.u);
}

static void the_descriptor_is_copied_before_it_is_looked_at(void **state)
{
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0); /* no generation yet: the descriptor is taken and waits */
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 8, 1);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(ndtest_queue_taken(&b.queue), 1);
    memset(b.u.node.memory + BENCH_RINGS + sizeof(struct netdam_ring), 0xff, 64);
    {
        struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION};

        unit_answer(&b.u, &p, &stale);
    }
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.opcode, NETDAM_OP_WRITE);
    assert_int_equal(p.length, 8);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_writes_the_ring_heads),
        cmocka_unit_test(indices_run_freely_and_wrap),
        cmocka_unit_test(an_impossible_index_stops_the_queue_pair_and_flushes_it),
        cmocka_unit_test(a_descriptor_waits_for_room_in_the_completion_ring_and_is_looked_at_again),
        cmocka_unit_test(a_fence_waits_for_everything_before_it_in_its_ring),
        cmocka_unit_test(malformed_descriptors_end_with_a_status_and_send_nothing),
        cmocka_unit_test(every_opcode_that_is_not_executed_is_told_apart_from_nonsense),
        cmocka_unit_test(local_permissions_are_those_the_opcode_needs),
        cmocka_unit_test(destroying_flushes_what_was_taken_and_what_was_not),
        cmocka_unit_test(destroying_one_leaves_the_others_alone),
        cmocka_unit_test(destroying_flushes_what_waits_in_the_middle_of_the_peers_list),
        cmocka_unit_test(the_interrupt_comes_once_for_each_arming),
        cmocka_unit_test(without_a_vector_no_interrupt_comes),
        cmocka_unit_test(need_wakeup_is_set_before_sleep_and_cleared_by_run),
        cmocka_unit_test(rings_take_turns),
        cmocka_unit_test(the_descriptor_is_copied_before_it_is_looked_at),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
