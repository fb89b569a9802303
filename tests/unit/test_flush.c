/* SPDX-License-Identifier: BSD-3-Clause */
/* What must come to an end: work for software that never stops posting, and ORDERED requests behind one another. */
#include "bench.h"

#define GENERATION UNIT_GENERATION
#define SQ         UINT64_C(0x10000)
#define CQ         UINT64_C(0x18000)
#define RQ         UINT64_C(0x20000)
#define ENTRIES    16u
/* Where software that is never refused would have given up: far beyond what any of the tests may let it post. */
#define ENOUGH 100000u

static struct bench b;
static uint32_t descriptors_offered, buffers_offered;

static struct netdam_ring *ring(uint64_t base)
{
    return (struct netdam_ring *)(void *)(b.u.node.memory + base);
}

/* Whenever the device looks at the rings, everything has been consumed and they are full again. */
static void refill(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                   enum netdam_fw_access access)
{
    (void)opaque;
    (void)node;
    (void)bytes;
    (void)access;
    if (offset == SQ && descriptors_offered < ENOUGH) {
        descriptors_offered += ENTRIES - (ring(SQ)->producer - ring(SQ)->consumer);
        ring(SQ)->producer = ring(SQ)->consumer + ENTRIES;
    } else if (offset == RQ && buffers_offered < ENOUGH) {
        buffers_offered += ENTRIES - (ring(RQ)->producer - ring(RQ)->consumer);
        ring(RQ)->producer = ring(RQ)->consumer + ENTRIES;
    } else if (offset == CQ) {
        ring(CQ)->consumer = ring(CQ)->producer;
    }
}

/* A queue pair of zeros, which are malformed as descriptors and unusable as receive buffers. */
static uint64_t make_endless_queue(uint64_t *receive_key)
{
    uint64_t args[] = {SQ, 4, CQ, 4, RQ, 4, NETDAM_QUEUE_NETDAM | (uint64_t)NETDAM_VECTOR_NONE << 16, 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), NETDAM_ADMIN_STATUS_OK);
    *receive_key = results[1];
    descriptors_offered = buffers_offered = 0;
    b.u.node.hooks.access = refill;
    return results[0];
}

static void mistakes_that_are_posted_without_end_use_up_the_budget(void **state)
{
    uint64_t key;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_endless_queue(&key);
    for (unsigned i = 1; i <= 4; i++) {
        b.u.node.ops->run(b.u.node.state, b.u.now_ns, 64 * 1000, &b.u.result);
        assert_true(b.u.result.more);
        assert_in_range(b.u.result.work_bytes, 64 * 1000, 64 * 1100);
        assert_in_range(unit_counter(&b.u, NETDAM_COUNTER_DESCRIPTORS), i * 1000, i * 1100);
    }
    assert_true(descriptors_offered < ENOUGH);
    assert_true(unit_counter(&b.u, NETDAM_COUNTER_COMPLETION_ERRORS) == unit_counter(&b.u, NETDAM_COUNTER_DESCRIPTORS));
    b.u.node.hooks.access = NULL;
    unit_stop(&b.u);
}

static void a_queue_that_is_filled_while_it_is_destroyed_goes_all_the_same(void **state)
{
    (void)state;
    for (unsigned by_reset = 0; by_reset < 2; by_reset++) {
        uint64_t key, id;

        bench_start(&b, NULL, 4, GENERATION);
        id = make_endless_queue(&key);
        if (by_reset) {
            ndtest_node_stop(&b.u.node, b.u.now_ns);
        } else {
            assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_QUEUE_DESTROY, &id, 1, NULL), NETDAM_ADMIN_STATUS_OK);
        }
        /* Each ring is emptied as often as it has places, and once more while the last look at it fills it. */
        assert_in_range(descriptors_offered, ENTRIES, 3 * ENTRIES);
        assert_in_range(buffers_offered, ENTRIES, 3 * ENTRIES);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_COMPLETIONS), 2 * ENTRIES);
        b.u.node.hooks.access = NULL;
        unit_stop(&b.u);
    }
}

static void unusable_receive_buffers_without_end_do_not_keep_a_message(void **state)
{
    uint64_t key;
    struct ndtest_packet answer;
    struct unit_request r = {.opcode = NETDAM_OP_SEND, .length = 8, .payload_length = 8, .generation = GENERATION};

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    make_endless_queue(&key);
    memset(b.u.node.memory + RQ + sizeof(struct netdam_ring), 0xff, ENTRIES * sizeof(struct netdam_descriptor));
    r.key = key;
    unit_ask(&b.u, &r, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_NOT_READY);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_COMPLETIONS), ENTRIES);
    b.u.node.hooks.access = NULL;
    unit_stop(&b.u);
}

/* Receive buffers for whose completions there is no room go without. */
static void destroying_does_not_overrun_the_completion_ring(void **state)
{
    uint64_t key, id;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    id = make_endless_queue(&key);
    b.u.node.hooks.access = NULL;
    ring(SQ)->producer = 10;
    ring(RQ)->producer = 10;
    ring(CQ)->consumer = 0;
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_QUEUE_DESTROY, &id, 1, NULL), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ring(CQ)->producer, ENTRIES);
    assert_int_equal(ring(SQ)->consumer, 10);
    assert_int_equal(ring(RQ)->consumer, ENTRIES - 10);
    unit_stop(&b.u);
}

/*
 * ORDERED requests of two queue pairs towards one peer, by turns; places in the firmware's table are taken in an order
 * that is not that of posting, so that those that wait are met before the one they wait for.
 */
static void begin_ordered(struct ndtest_queue *other, struct ndtest_packet *first)
{
    struct netdam_descriptor d;

    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(ndtest_queue_create(other, &b.u.node, SQ, 4, CQ, 4, 0, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 6; i++) {
        bench_write(&b, 8, i);
    }
    for (unsigned i = 0; i < 6; i++) {
        struct ndtest_packet p;

        unit_expect_sent(&b.u, &p);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    for (unsigned i = 0; i < 6; i++) {
        d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 16 + i, i);
        d.flags = NETDAM_DESCRIPTOR_ORDERED;
        unit_post(&b.u, i % 2 == 0 ? &b.queue : other, &d);
        unit_run(&b.u);
    }
    unit_expect_sent(&b.u, first);
    assert_int_equal(first->length, 16);
    unit_expect_silence(&b.u);
}

/* The rest goes on in order: expects the requests `from`, `from` + 2, ... and answers them. */
static void expect_rest(struct ndtest_queue *queue, unsigned from)
{
    for (unsigned i = from; i < 6; i += 2) {
        struct ndtest_packet p;

        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, 16 + i);
        unit_expect_silence(&b.u);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(queue, i, NETDAM_STATUS_OK);
    }
    unit_expect_silence(&b.u);
}

static void destroying_the_queue_of_an_ordered_request_lets_the_other_queues_go_on(void **state)
{
    struct ndtest_queue other;
    struct ndtest_packet first;

    (void)state;
    begin_ordered(&other, &first);
    assert_int_equal(ndtest_queue_destroy(&b.queue, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_run(&b.u);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(unit_completion(&b.queue).status, NETDAM_STATUS_FLUSHED);
    }
    unit_expect_no_completion(&b.queue);
    unit_answer_ok(&b.u, &first, NULL); /* of no concern any more */
    expect_rest(&other, 1);
    unit_stop(&b.u);
}

static void destroying_the_queue_of_those_that_wait_leaves_the_chain_whole(void **state)
{
    struct ndtest_queue other;
    struct ndtest_packet first;
    struct netdam_descriptor d;

    (void)state;
    begin_ordered(&other, &first);
    assert_int_equal(ndtest_queue_destroy(&other, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 3; i++) { /* with nothing sent */
        assert_int_equal(unit_completion(&other).status, NETDAM_STATUS_FLUSHED);
    }
    unit_expect_no_completion(&other);
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 16 + 6, 6); /* behind all that still wait */
    d.flags = NETDAM_DESCRIPTOR_ORDERED;
    bench_do(&b, &d);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &first, NULL);
    unit_expect_completion(&b.queue, 0, NETDAM_STATUS_OK);
    for (unsigned i = 2; i <= 6; i += 2) {
        struct ndtest_packet p;

        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.length, 16 + i);
        unit_expect_silence(&b.u);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

static void closing_the_peer_ends_all_that_wait_in_order(void **state)
{
    struct ndtest_queue other;
    struct ndtest_packet first;
    struct netdam_descriptor d;

    (void)state;
    begin_ordered(&other, &first);
    assert_int_equal(ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 6; i++) {
        unit_expect_completion(i % 2 == 0 ? &b.queue : &other, i, NETDAM_STATUS_FLUSHED);
    }
    /* A peer opened in its place starts afresh. */
    unit_run_for(&b.u, 1000 * UNIT_MS);
    unit_drop_sent(&b.u);
    assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer);
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 40, 7);
    d.flags = NETDAM_DESCRIPTOR_ORDERED;
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &first);
    assert_int_equal(first.length, 40);
    unit_stop(&b.u);
}

static void an_ordered_request_that_fails_or_is_lost_lets_the_next_go(void **state)
{
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    struct unit_answer elsewhere = {.status = NETDAM_STATUS_STALE, .generation = GENERATION + (UINT64_C(7) << 32)};
    struct ndtest_queue other;
    struct ndtest_packet first, p;

    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        begin_ordered(&other, &first);
        unit_answer(&b.u, &first, way == 0 ? &refused : &elsewhere);
        unit_expect_completion(&b.queue, 0, way == 0 ? NETDAM_STATUS_BAD_RANGE : NETDAM_STATUS_UNKNOWN);
        for (unsigned i = 1; i < 6; i++) {
            unit_expect_sent(&b.u, &p);
            assert_int_equal(p.length, 16 + i);
            unit_expect_silence(&b.u);
            unit_answer_ok(&b.u, &p, NULL);
            unit_expect_completion(i % 2 == 0 ? &b.queue : &other, i, NETDAM_STATUS_OK);
        }
        unit_stop(&b.u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_that_are_posted_without_end_use_up_the_budget),
        cmocka_unit_test(a_queue_that_is_filled_while_it_is_destroyed_goes_all_the_same),
        cmocka_unit_test(unusable_receive_buffers_without_end_do_not_keep_a_message),
        cmocka_unit_test(destroying_does_not_overrun_the_completion_ring),
        cmocka_unit_test(destroying_the_queue_of_an_ordered_request_lets_the_other_queues_go_on),
        cmocka_unit_test(destroying_the_queue_of_those_that_wait_leaves_the_chain_whole),
        cmocka_unit_test(closing_the_peer_ends_all_that_wait_in_order),
        cmocka_unit_test(an_ordered_request_that_fails_or_is_lost_lets_the_next_go),
    };

    return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
