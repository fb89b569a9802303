/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways of delivery at both ends: RELAXED, UNRELIABLE, ORDERED; the packet with the immediate; gather lists. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b;

static struct netdam_descriptor write_of(uint32_t length, uint32_t flags, uint64_t user_data)
{
    struct netdam_descriptor d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, length, user_data);

    d.flags = flags;
    return d;
}

static void do_write(uint32_t length, uint32_t flags, uint64_t user_data)
{
    struct netdam_descriptor d = write_of(length, flags, user_data);

    bench_do(&b, &d);
}

static void relaxed_requests_use_the_other_numbers_and_are_repeated(void **state)
{
    struct unit_answer answer = {.length = 8, .flags = NETDAM_FLAG_RELAXED};
    struct ndtest_packet p, lane;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    do_write(8, 0, 1);
    unit_expect_sent(&b.u, &lane);
    do_write(8, NETDAM_DESCRIPTOR_RELAXED, 2);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_RELAXED);
    assert_true(p.number == 1 && p.distance == 0 && p.generation == GENERATION);
    /* An answer without the flag is for the lane's number 1. */
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_expect_no_completion(&b.queue);
    unit_run_for(&b.u, 30 * UNIT_MS);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_RELAXED | NETDAM_FLAG_AGAIN);
    assert_int_equal(b.u.fw->peers[b.peer].laneless.again, 0);
    unit_drop_sent(&b.u);
    unit_answer(&b.u, &p, &answer);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

/* The first may have been applied, as may the last: neither is refused any more, although no lane knows of them. */
static void relaxed_requests_whose_region_goes_are_given_up(void **state)
{
    struct unit_answer answer = {.length = 8, .flags = NETDAM_FLAG_RELAXED};
    struct ndtest_packet p[3];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 3; i++) {
        do_write(8, NETDAM_DESCRIPTOR_RELAXED, i);
        unit_expect_sent(&b.u, &p[i]);
    }
    unit_answer(&b.u, &p[1], &answer);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    assert_int_equal(ndtest_region_destroy(&b.u.node, b.region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_run_for(&b.u, 30 * UNIT_MS);
    unit_expect_silence(&b.u);
    unit_expect_completion(&b.queue, 0, NETDAM_STATUS_FLUSHED);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_FLUSHED);
    unit_stop(&b.u);
}

static void unreliable_requests_complete_when_sent_and_are_not_repeated(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    do_write(3 * 1400 + 8, NETDAM_DESCRIPTOR_UNRELIABLE, 1);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    for (unsigned i = 0; i < 4; i++) {
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_UNRELIABLE);
        assert_true(p.address == BENCH_REMOTE + 1400u * i && p.distance == 0);
    }
    unit_run_for(&b.u, 5000 * UNIT_MS);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &p, NULL); /* nobody waits for one */
    unit_expect_no_completion(&b.queue);
    unit_stop(&b.u);
}

static void ordered_requests_wait_for_one_another_and_for_nothing_else(void **state)
{
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_KEY};
    struct ndtest_packet first[2], p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    do_write(2 * 1400, NETDAM_DESCRIPTOR_ORDERED, 1);
    do_write(16, NETDAM_DESCRIPTOR_ORDERED, 2);
    do_write(24, NETDAM_DESCRIPTOR_ORDERED, 3);
    do_write(32, 0, 4);
    for (unsigned i = 0; i < 2; i++) {
        unit_expect_sent(&b.u, &first[i]);
        assert_int_equal(first[i].flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_ORDERED);
        assert_int_equal(first[i].length, 1400);
    }
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.length, 32);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 4, NETDAM_STATUS_OK);
    unit_answer_ok(&b.u, &first[1], NULL);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &first[0], NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.length, 16);
    unit_expect_silence(&b.u);
    unit_answer(&b.u, &p, &refused); /* one that fails lets the next go as well */
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_BAD_KEY);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.length, 24);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 3, NETDAM_STATUS_OK);
    do_write(40, NETDAM_DESCRIPTOR_ORDERED, 5);
    unit_expect_sent(&b.u, &p);
    unit_stop(&b.u);
}

static void ordered_requests_that_wait_are_flushed_with_their_queue_and_fail_with_their_peer(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        bench_start(&b, NULL, 4, GENERATION);
        for (unsigned i = 0; i < 4; i++) {
            do_write(8, NETDAM_DESCRIPTOR_ORDERED, i);
        }
        assert_int_equal(b.u.count, 1);
        if (way == 0) {
            assert_int_equal(ndtest_queue_destroy(&b.queue, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        } else if (way == 1) {
            assert_int_equal(ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        } else {
            unit_run_for(&b.u, 400 * UNIT_MS);
        }
        for (unsigned i = 0; i < 4; i++) {
            struct netdam_completion c = unit_completion(&b.queue);

            assert_int_equal(c.status, way == 2 ? NETDAM_STATUS_TIMEOUT : NETDAM_STATUS_FLUSHED);
        }
        unit_expect_no_completion(&b.queue);
        unit_stop(&b.u);
    }
}

static void the_packet_with_the_immediate_goes_last_and_alone(void **state)
{
    struct netdam_descriptor d;
    struct ndtest_packet p[3], last;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    d = write_of(3 * 1392 + 8, NETDAM_DESCRIPTOR_IMMEDIATE, 1);
    d.immediate = 0xcafe0123;
    bench_do(&b, &d);
    for (unsigned i = 0; i < 3; i++) {
        unit_expect_sent(&b.u, &p[i]);
        assert_int_equal(p[i].flags, NETDAM_FLAG_PAYLOAD_CRC);
        assert_int_equal(p[i].length, 1392); /* room for the extension is left in all of them */
    }
    unit_answer_ok(&b.u, &p[2], NULL);
    unit_answer_ok(&b.u, &p[0], NULL);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &p[1], NULL);
    unit_expect_sent(&b.u, &last);
    assert_int_equal(last.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_IMMEDIATE);
    assert_int_equal(last.length, 8);
    assert_int_equal(last.header_bytes, 32 + 8 + 32);
    assert_memory_equal(last.header + 32, "\0\0\0\0\xca\xfe\x01\x23", 8);
    unit_answer_ok(&b.u, &last, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    /* If one of the others is refused, it does not go at all. */
    bench_do(&b, &d);
    for (unsigned i = 0; i < 3; i++) {
        struct unit_answer refused = {.status = (uint8_t)(i == 1 ? NETDAM_STATUS_BAD_RANGE : NETDAM_STATUS_OK)};

        unit_expect_sent(&b.u, &p[i]);
        unit_answer(&b.u, &p[i], &refused);
    }
    unit_expect_silence(&b.u);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_BAD_RANGE);
    unit_stop(&b.u);
}

static void lists_gather_and_scatter_across_packets(void **state)
{
    static const struct netdam_list_entry good[] = {{0, 1000, 3}, {0, 0, 7}, {0, 401, 5000}, {0, 1499, 9001}};
    static uint8_t image[2900];
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    for (unsigned read = 0; read < 2; read++) {
        uint32_t at = 0;

        bench_start(&b, NULL, 4, GENERATION);
        d = bench_descriptor(&b, read ? NETDAM_OP_READ : NETDAM_OP_WRITE, 0x10000, 2900, 1);
        d.flags = NETDAM_DESCRIPTOR_LIST;
        d.list_count = 4;
        memcpy(b.u.node.memory + BENCH_LOCAL + 0x10000, good, sizeof(good));
        for (unsigned i = 0; i < 4; i++) {
            memcpy(image + at, b.u.node.memory + BENCH_LOCAL + good[i].local_address, good[i].length);
            at += good[i].length;
        }
        unit_post(&b.u, &b.queue, &d);
        unit_run(&b.u);
        memset(b.u.node.memory + BENCH_LOCAL + 0x10000, 0xff, sizeof(good)); /* it was copied */
        for (at = 0; at < 2900; at += 1400) {
            uint32_t part = 2900 - at < 1400 ? 2900 - at : 1400;

            unit_expect_sent(&b.u, &p);
            assert_int_equal(p.length, part);
            if (!read) {
                assert_memory_equal(p.payload, image + at, part);
                unit_answer_ok(&b.u, &p, NULL);
            } else {
                for (uint32_t i = 0; i < part; i++) {
                    image[at + i] ^= 0x5a;
                }
                unit_answer_ok(&b.u, &p, image + at);
            }
        }
        unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
        at = 0;
        for (unsigned i = 0; i < 4; i++) {
            assert_memory_equal(b.u.node.memory + BENCH_LOCAL + good[i].local_address, image + at, good[i].length);
            at += good[i].length;
        }
        unit_stop(&b.u);
    }
}

static void lists_that_contradict_themselves_are_refused(void **state)
{
    static const struct {
        struct netdam_list_entry entries[2];
        uint8_t count;
        uint64_t at;
        enum netdam_status status;
    } rows[] = {
        {{{0, 8, 0}, {0, 8, 64}}, 2, 0x10000, NETDAM_STATUS_OK},
        {{{0, 8, 0}, {0, 8, 64}}, 0, 0x10000, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{{0, 8, 0}, {0, 8, 64}}, 5, 0x10000, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{{0, 8, 0}, {0, 8, 64}}, 1, 0x10000, NETDAM_STATUS_LOCAL_DESCRIPTOR}, /* 8 bytes instead of 16 */
        {{{0, 8, 0}, {0, 9, 64}}, 2, 0x10000, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{{0, 0x80000008, 0}, {0, 0x80000008, 0}}, 2, 0x10000, NETDAM_STATUS_LOCAL_RANGE}, /* 16 modulo 2^32 */
        {{{0, 8, 0}, {0, 8, BENCH_LENGTH - 7}}, 2, 0x10000, NETDAM_STATUS_LOCAL_RANGE},
        {{{0, 8, 0}, {0, 8, UINT64_MAX - 3}}, 2, 0x10000, NETDAM_STATUS_LOCAL_RANGE},
        {{{0, 8, 0}, {3, 8, 0}}, 2, 0x10000, NETDAM_STATUS_LOCAL_REGION},
        {{{UINT32_MAX, 8, 0}, {0, 8, 0}}, 2, 0x10000, NETDAM_STATUS_LOCAL_REGION},
        {{{1, 8, 0}, {0, 8, 0}}, 2, 0x10000, NETDAM_STATUS_LOCAL_PERMISSION},
        {{{0, 8, 0}, {0, 8, 64}}, 2, BENCH_LENGTH - 31, NETDAM_STATUS_LOCAL_RANGE}, /* the list itself */
        {{{0, 8, 0}, {0, 8, 64}}, 2, UINT64_MAX - 7, NETDAM_STATUS_LOCAL_RANGE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_descriptor d;

        bench_start(&b, NULL, 4, GENERATION);
        unit_region(&b.u, 0xc0000, 64, NETDAM_PERMISSION_LOCAL_WRITE, 0);
        d = bench_descriptor(&b, NETDAM_OP_WRITE, rows[i].at, 16, i);
        d.flags = NETDAM_DESCRIPTOR_LIST;
        d.list_count = rows[i].count;
        memcpy(b.u.node.memory + BENCH_LOCAL + 0x10000, rows[i].entries, sizeof(rows[i].entries));
        bench_do(&b, &d);
        if (rows[i].status == NETDAM_STATUS_OK) {
            assert_int_equal(b.u.count, 1);
        } else {
            unit_expect_silence(&b.u);
            unit_expect_completion(&b.queue, i, rows[i].status);
        }
        unit_stop(&b.u);
    }
}

/* At the node. */
static void a_node_keeps_no_lane_for_relaxed_and_unreliable_requests(void **state)
{
    uint64_t value = 5;
    struct ndtest_packet answer;
    struct unit u;
    struct unit_request r = {.opcode = NETDAM_OP_WRITE,
                             .flags = NETDAM_FLAG_RELAXED,
                             .length = 8,
                             .key = UNIT_KEY,
                             .generation = GENERATION,
                             .number = 3,
                             .payload_length = 8,
                             .payload = (const uint8_t *)&value};

    (void)state;
    unit_start(&u, 1, NULL);
    unit_region(&u, 0x4000, 64, NETDAM_PERMISSION_ALL, UNIT_KEY);
    for (unsigned i = 0; i < 3; i++, value++) { /* executed as often as it comes */
        unit_ask(&u, &r, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_int_equal(answer.flags, NETDAM_FLAG_RELAXED);
        assert_true(unit_memory_get(&u, 0x4000, 8) == value);
    }
    r.flags = NETDAM_FLAG_UNRELIABLE;
    unit_request(&u, &r);
    assert_true(unit_memory_get(&u, 0x4000, 8) == value);
    r.key++;
    unit_request(&u, &r);
    r.key--;
    r.generation = 0;
    value++;
    unit_request(&u, &r);
    unit_expect_silence(&u); /* never a word, not even a refusal */
    assert_true(unit_memory_get(&u, 0x4000, 8) == value - 1);
    r.flags = NETDAM_FLAG_RELAXED;
    unit_ask(&u, &r, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_STALE);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
    unit_stop(&u);
}

static void flags_suit_the_instruction_or_are_refused(void **state)
{
    const unsigned r = NETDAM_FLAG_RELAXED, o = NETDAM_FLAG_ORDERED, n = NETDAM_FLAG_UNRELIABLE;
    const unsigned ways[] = {0, r, o, n, r | o, r | n, o | n, r | o | n};

    (void)state;
    for (unsigned op = 0; op <= UINT8_MAX; op++) {
        for (unsigned alu = 0; alu <= NETDAM_ALU_SUM_SATURATING; alu++) {
            for (unsigned type = 0; type <= NETDAM_TYPE_F64; type++) {
                for (size_t w = 0; w < ARRAY_SIZE(ways) * 2; w++) {
                    unsigned way = ways[w / 2], immediate = w % 2 != 0 ? NETDAM_FLAG_IMMEDIATE : 0u;
                    unsigned flags = netdam_op_flags(op);
                    int algebra = netdam_algebra(op, alu, type);
                    bool modifies = (flags & NETDAM_OPF_MODIFIES) != 0;
                    bool plain = (flags & (NETDAM_OPF_ATOMIC | NETDAM_OPF_RETURNS | NETDAM_OPF_ENTRIES)) == 0;
                    bool suits = way == 0 || (way == o && modifies) || (way == n && modifies && plain) ||
                                 (way == r && modifies && plain && (algebra & (int)NETDAM_ALG_IDEMPOTENT) != 0 &&
                                  immediate == 0);

                    if (algebra < 0) {
                        continue;
                    }
                    suits = suits && (immediate == 0 || op == NETDAM_OP_WRITE || op == NETDAM_OP_SEND);
                    assert_int_equal(ndfw_flags_suit(way | immediate, op, alu, type), suits);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relaxed_requests_use_the_other_numbers_and_are_repeated),
        cmocka_unit_test(relaxed_requests_whose_region_goes_are_given_up),
        cmocka_unit_test(unreliable_requests_complete_when_sent_and_are_not_repeated),
        cmocka_unit_test(ordered_requests_wait_for_one_another_and_for_nothing_else),
        cmocka_unit_test(ordered_requests_that_wait_are_flushed_with_their_queue_and_fail_with_their_peer),
        cmocka_unit_test(the_packet_with_the_immediate_goes_last_and_alone),
        cmocka_unit_test(lists_gather_and_scatter_across_packets),
        cmocka_unit_test(lists_that_contradict_themselves_are_refused),
        cmocka_unit_test(a_node_keeps_no_lane_for_relaxed_and_unreliable_requests),
        cmocka_unit_test(flags_suit_the_instruction_or_are_refused),
    };

    return cmocka_run_group_tests_name("delivery", tests, NULL, NULL);
}
