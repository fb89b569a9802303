/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests that share a packet end: refused, lost, given up, flushed, without their memory. Each once, each right. */
#include "merge.h"

#define LATER_EPOCH (GENERATION + (UINT64_C(7) << 32))

/*
 * Takes places of the table, and gives them back so that they are taken the other way round: the first of a group is then
 * behind the others.
 */
static void turn_table_round(void)
{
    struct ndtest_packet p;

    for (unsigned i = 0; i < 6; i++) {
        post_write(100 * i, 8, i);
        unit_run(&b.u);
    }
    for (unsigned i = 0; i < 6; i++) {
        unit_expect_sent(&b.u, &p);
        unit_answer_ok(&b.u, &p, NULL);
        expect_completion(i, NETDAM_STATUS_OK, 8);
    }
}

/* `count` WRITEs of 8 bytes side by side; they share one packet, which is read, or wait for the generation. */
static void post_group(unsigned count, uint64_t generation, struct ndtest_packet *p)
{
    for (unsigned i = 0; i < count; i++) {
        post_write(i * 8, 8, i);
    }
    unit_run(&b.u);
    unit_expect_sent(&b.u, p);
    unit_expect_silence(&b.u);
    assert_int_equal(p->opcode, generation == 0 ? NETDAM_OP_CONFIRM : NETDAM_OP_WRITE);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), count - 1);
}

static void start_group(unsigned count, uint64_t generation, struct ndtest_packet *p)
{
    start(4, generation);
    post_group(count, generation, p);
}

static void expect_all(unsigned count, enum netdam_status status)
{
    for (unsigned i = 0; i < count; i++) {
        expect_completion(i, status, status == NETDAM_STATUS_OK ? 8 : 0);
    }
}

/* In whatever order. */
static void expect_each_flushed(unsigned count)
{
    uint32_t seen = 0;

    for (unsigned i = 0; i < count; i++) {
        struct netdam_completion c = unit_completion(&b.queue);

        assert_int_equal(c.status, NETDAM_STATUS_FLUSHED);
        assert_true(c.length == 0 && c.flags == 0 && c.user_data < count);
        seen |= 1u << c.user_data;
    }
    assert_int_equal(seen, (1u << count) - 1);
}

static void answer_generation(const struct ndtest_packet *confirm)
{
    struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION, .echo = UNIT_ECHO_NONE};

    unit_answer(&b.u, confirm, &stale);
}

static bool is_refusal(unsigned status)
{
    return netdam_status_class_of(status) == NETDAM_STATUS_CLASS_REFUSED;
}

/* The first and the last lie in the region, those between do not: as every refusal would have it. */
static void a_refused_group_is_sent_again_one_by_one(void **state)
{
    unsigned tried = 0;

    (void)state;
    for (unsigned status = 1; status < 0xff; status++) {
        struct unit_answer refused = {.status = (uint8_t)status};
        struct ndtest_packet p, q;

        if (!is_refusal(status)) {
            continue;
        }
        tried++;
        start_group(4, GENERATION, &p);
        unit_answer(&b.u, &p, &refused);
        unit_expect_no_completion(&b.queue);
        for (unsigned i = 0; i < 4; i++) {
            unit_expect_sent(&b.u, &q);
            assert_true(q.number == p.number + 1 + i);
            assert_true(q.address == BENCH_REMOTE + i * 8 && q.length == 8 && q.key == UNIT_KEY);
            assert_int_equal(q.flags, NETDAM_FLAG_PAYLOAD_CRC);
            expect_bytes(q.payload, i, 8);
            if (i == 1 || i == 2) {
                unit_answer(&b.u, &q, &refused);
                expect_completion(i, (enum netdam_status)status, 0);
            } else {
                unit_answer_ok(&b.u, &q, NULL);
                expect_completion(i, NETDAM_STATUS_OK, 8);
            }
        }
        unit_answer(&b.u, &p, &refused); /* once more, and too late */
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_MERGED), 3);
        stop();
    }
    assert_int_equal(tried, 15);
}

static void refused_reductions_are_sent_again_with_their_own_operands(void **state)
{
    struct unit_answer refused = {.status = NETDAM_STATUS_NO_PERMISSION};
    struct ndtest_packet p;

    (void)state;
    start(4, GENERATION);
    for (unsigned i = 0; i < 5; i++) {
        struct netdam_descriptor d = reduce_of(NETDAM_ALU_SUM, NETDAM_TYPE_U32, 96, i);

        post(&d);
    }
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    unit_expect_silence(&b.u);
    unit_answer(&b.u, &p, &refused);
    for (unsigned i = 0; i < 5; i++) {
        unit_expect_sent(&b.u, &p);
        assert_true(p.opcode == NETDAM_OP_REDUCE && p.address == BENCH_REMOTE && p.length == 96);
        expect_bytes(p.payload, i, 96);
        unit_answer(&b.u, &p, &refused);
        expect_completion(i, NETDAM_STATUS_NO_PERMISSION, 0);
    }
    stop();
}

/* Descending ones: places in the table have been exchanged, and each is still itself. */
static void a_refused_group_that_grew_downwards_is_sent_again_one_by_one(void **state)
{
    static const uint32_t at[] = {92, 84, 60, 20}, length[] = {8, 8, 24, 40};
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    struct ndtest_packet p;

    (void)state;
    start(4, GENERATION);
    for (unsigned i = 0; i < 4; i++) {
        post_write(at[i], length[i], i);
    }
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    unit_expect_silence(&b.u);
    assert_true(p.address == BENCH_REMOTE + 20 && p.length == 80);
    unit_answer(&b.u, &p, &refused);
    for (unsigned n = 0; n < 4; n++) {
        unsigned i = 3 - n;

        unit_expect_sent(&b.u, &p);
        assert_true(p.address == BENCH_REMOTE + at[i] && p.length == length[i]);
        expect_bytes(p.payload, i, length[i]);
        unit_answer_ok(&b.u, &p, NULL);
        expect_completion(i, NETDAM_STATUS_OK, length[i]);
    }
    stop();
}

static void what_was_split_is_not_merged_again(void **state)
{
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    uint8_t frame[UNIT_FRAME_ROOM];
    struct ndtest_packet p;

    (void)state;
    start_group(2, GENERATION, &p);
    unit_receive(&b.u, frame, unit_answer_frame(frame, 1, &p, &refused));
    /* They wait. What is posted now is adjacent to the first, and the ring knows of nothing in between. */
    for (uint32_t i = 0; i < b.u.fw->config.operations; i++) {
        assert_false(b.u.fw->operations[i].in_use && b.u.fw->operations[i].all_sent);
    }
    post_write(8, 8, 2);
    post_write(16, 8, 3);
    unit_run(&b.u);
    for (unsigned i = 0; i < 3; i++) {
        unit_expect_sent(&b.u, &p);
        assert_true(p.address == BENCH_REMOTE + (i > 0) * 8);
        assert_int_equal(p.length, i < 2 ? 8 : 16);
        unit_answer_ok(&b.u, &p, NULL);
    }
    expect_all(4, NETDAM_STATUS_OK);
    stop();
}

static void a_lost_group_is_repeated_with_the_same_number_and_bytes(void **state)
{
    struct ndtest_packet p, q;

    (void)state;
    start_group(4, GENERATION, &p);
    for (unsigned tries = 0; tries < 5; tries++) {
        unit_memory_put(&b.u, BENCH_LOCAL + 3 + 2 * 2001, 8, tries * UINT64_C(0x0101010101010101));
        unit_run_for(&b.u, (tries < 3 ? 10u << tries : 80u) * UNIT_MS);
        unit_expect_sent(&b.u, &q);
        unit_expect_silence(&b.u);
        assert_true(q.number == p.number && q.distance == p.distance && q.address == p.address && q.length == 32);
        assert_int_equal(q.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_AGAIN);
        for (unsigned i = 0; i < 4; i++) {
            expect_bytes(q.payload + i * 8, i, 8); /* as memory is now */
        }
    }
    unit_answer_ok(&b.u, &p, NULL);
    expect_all(4, NETDAM_STATUS_OK);
    stop();
}

static void nobody_who_answers_is_a_timeout_for_each(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start_group(16, GENERATION, &p);
    post_write(500, 8, 16);
    post_write(508, 8, 17);
    b.u.port_room = 0; /* this group waits behind the other one */
    unit_run(&b.u);
    b.u.port_room = UINT32_MAX;
    unit_run_for(&b.u, 1000 * UNIT_MS);
    unit_drop_sent(&b.u);
    expect_all(18, NETDAM_STATUS_TIMEOUT);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TIMEOUTS), 2);
    expect_rest();
    unit_stop(&b.u);
}

static void what_waits_behind_silence_or_an_unknown_address_fails_one_by_one(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct ndtest_packet p;

        start_group(3, 0, &p);
        if (way == 1) {
            b.u.fw->peers[b.peer].resolved = false;
        }
        unit_run_for(&b.u, 2000 * UNIT_MS);
        unit_drop_sent(&b.u);
        expect_all(3, way == 0 ? NETDAM_STATUS_TIMEOUT : NETDAM_STATUS_UNREACHABLE);
        stop();
    }
}

static void busy_keeps_the_group(void **state)
{
    struct unit_answer busy = {.status = NETDAM_STATUS_BUSY};
    struct ndtest_packet p, q;

    (void)state;
    start_group(4, GENERATION, &p);
    unit_answer(&b.u, &p, &busy);
    unit_expect_silence(&b.u);
    unit_run_for(&b.u, 10 * UNIT_MS);
    unit_expect_sent(&b.u, &q);
    assert_true(q.number == p.number && q.length == 32);
    unit_answer_ok(&b.u, &q, NULL);
    expect_all(4, NETDAM_STATUS_OK);
    stop();
}

static void stale_within_the_epoch_sends_the_group_again(void **state)
{
    struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION + 1};
    struct ndtest_packet p, q;

    (void)state;
    start_group(4, GENERATION, &p);
    unit_answer(&b.u, &p, &stale);
    unit_expect_sent(&b.u, &q);
    assert_true(q.number == p.number && q.length == 32 && q.generation == GENERATION + 1);
    for (unsigned i = 0; i < 4; i++) {
        expect_bytes(q.payload + i * 8, i, 8);
    }
    unit_answer_ok(&b.u, &q, NULL);
    expect_all(4, NETDAM_STATUS_OK);
    stop();
}

static void stale_across_epochs_leaves_each_unknown(void **state)
{
    struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = LATER_EPOCH};
    uint8_t frame[UNIT_FRAME_ROOM];
    struct ndtest_packet p;

    (void)state;
    start_group(4, GENERATION, &p);
    b.u.port_room = 0;
    post_write(100, 8, 4);
    post_write(108, 8, 5);
    unit_run(&b.u);
    unit_receive(&b.u, frame, unit_answer_frame(frame, 1, &p, &stale));
    expect_all(4, NETDAM_STATUS_UNKNOWN);
    b.u.port_room = UINT32_MAX;
    unit_run(&b.u);
    /* What had not been sent is sent under the new generation, and still shares a packet. */
    unit_expect_sent(&b.u, &p);
    assert_true(p.generation == LATER_EPOCH && p.length == 16 && p.address == BENCH_REMOTE + 100);
    unit_answer_ok(&b.u, &p, NULL);
    expect_completion(4, NETDAM_STATUS_OK, 8);
    expect_completion(5, NETDAM_STATUS_OK, 8);
    stop();
}

/* States in which a group may be met by whatever ends it. */
enum met {
    MET_WAITING,
    MET_SENT,
    MET_TO_BE_REPEATED,
    MET_SPLIT_WAITING,
    MET_SPLIT_SENT,
    MET_STATES,
};

static void bring_into(enum met met, struct ndtest_packet *p)
{
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    uint8_t frame[UNIT_FRAME_ROOM];

    start(4, GENERATION);
    turn_table_round();
    if (met == MET_WAITING) {
        b.u.fw->peers[b.peer].generation = 0;
        b.u.fw->peers[b.peer].control_deadline_ns = NETDAM_FW_NEVER;
    }
    post_group(5, met == MET_WAITING ? 0 : GENERATION, p);
    switch (met) {
    case MET_TO_BE_REPEATED:
        b.u.port_room = 0;
        unit_advance(&b.u, 10 * UNIT_MS);
        unit_run(&b.u);
        assert_int_equal(b.u.fw->peers[b.peer].lane.again, 1);
        break;
    case MET_SPLIT_WAITING:
        unit_receive(&b.u, frame, unit_answer_frame(frame, 1, p, &refused));
        break;
    case MET_SPLIT_SENT:
        unit_answer(&b.u, p, &refused);
        break;
    default:
        break;
    }
}

static void whatever_ends_a_group_ends_each_of_it_once(void **state)
{
    (void)state;
    for (enum met met = 0; met < MET_STATES; met++) {
        for (unsigned way = 0; way < 4; way++) {
            struct ndtest_packet p;

            bring_into(met, &p);
            switch (way) {
            case 0:
                assert_int_equal(ndtest_queue_destroy(&b.queue, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
                break;
            case 1:
                assert_int_equal(ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
                break;
            case 2: /* an index that cannot be */
                ((struct netdam_ring *)(void *)(b.u.node.memory + b.queue.sq_base))->producer += 1000;
                unit_run(&b.u);
                break;
            default:
                ndtest_node_stop(&b.u.node, b.u.now_ns);
                break;
            }
            expect_each_flushed(5);
            unit_drop_sent(&b.u);
            expect_rest();
            b.u.port_room = UINT32_MAX;
            if (way < 3) {
                unit_answer_ok(&b.u, &p, NULL);
                unit_run_for(&b.u, 3000 * UNIT_MS);
                unit_drop_sent(&b.u);
                expect_rest();
            }
            unit_stop(&b.u);
        }
    }
}

/* The same where the first one has been another one each time. */
static void a_group_that_grew_downwards_is_flushed_each_once(void **state)
{
    (void)state;
    for (unsigned sent = 0; sent < 2; sent++) {
        struct ndtest_packet p;

        start(4, sent ? GENERATION : 0);
        for (unsigned i = 0; i < 5; i++) {
            post_write(100 - 8 * i, 8, i);
        }
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p);
        unit_expect_silence(&b.u);
        assert_int_equal(ndtest_queue_destroy(&b.queue, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        for (unsigned i = 0; i < 5; i++) {
            expect_completion(4 - i, NETDAM_STATUS_FLUSHED, 0);
        }
        expect_rest();
        unit_stop(&b.u);
    }
}

/* Three WRITEs, or REDUCEs, the one in the middle from a region of its own, which goes before or after sending. */
static void start_with_two_regions(bool reduce, uint64_t generation, uint32_t *region, struct ndtest_packet *p)
{
    start(4, generation);
    *region = unit_region(&b.u, BENCH_LOCAL + 2 * BENCH_LENGTH + 2, 4096, NETDAM_PERMISSION_LOCAL_READ, 0);
    for (unsigned i = 0; i < 3; i++) {
        struct netdam_descriptor d = reduce ? reduce_of(NETDAM_ALU_SUM, NETDAM_TYPE_U64, 8, i) : write_of(i * 8, 8, i);

        if (i == 1) {
            d.local_region = *region;
            d.u.buffer.local_address = 16;
        }
        post(&d);
    }
    post_write(100, 16, 3); /* behind them */
    unit_run(&b.u);
    unit_expect_sent(&b.u, p);
}

static void expect_the_one_behind(struct ndtest_packet *p)
{
    unit_expect_sent(&b.u, p);
    assert_true(p->address == BENCH_REMOTE + 100 && p->length == 16);
    unit_answer_ok(&b.u, p, NULL);
    expect_completion(3, NETDAM_STATUS_OK, 16);
}

static void a_region_that_goes_before_sending_fails_its_request_only(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        struct ndtest_packet p;
        uint32_t region;

        start_with_two_regions(way == 1, 0, &region, &p);
        assert_int_equal(ndtest_region_destroy(&b.u.node, region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        answer_generation(&p);
        expect_completion(1, NETDAM_STATUS_LOCAL_REGION, 0);
        for (unsigned i = 0; i < 3; i += 2) {
            unit_expect_sent(&b.u, &p);
            assert_true(p.address == BENCH_REMOTE + (way == 1 ? 0 : i * 8) && p.length == 8);
            expect_bytes(p.payload, i, 8);
            unit_answer_ok(&b.u, &p, NULL);
            expect_completion(i, NETDAM_STATUS_OK, 8);
            if (i == 0) {
                expect_the_one_behind(&p);
            }
        }
        stop();
    }
}

static void a_region_that_goes_after_sending_leaves_all_uncertain(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct ndtest_packet p, behind;
        uint32_t region;

        start_with_two_regions(way % 2 == 1, GENERATION, &region, &p);
        expect_the_one_behind(&behind);
        assert_int_equal(ndtest_region_destroy(&b.u.node, region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
        if (way < 2) {
            unit_run_for(&b.u, 10 * UNIT_MS);
            unit_expect_silence(&b.u);
            expect_all(3, NETDAM_STATUS_FLUSHED);
        } else { /* an answer in time needs no memory */
            unit_answer_ok(&b.u, &p, NULL);
            expect_all(3, NETDAM_STATUS_OK);
        }
        stop();
    }
}

/* Payload that has been combined counts as work, so that a run ends where its budget does. */
static void combining_is_charged(void **state)
{
    uint64_t alone = 0;

    (void)state;
    start(4, GENERATION);
    for (unsigned i = 0; i < 3; i++) {
        struct netdam_descriptor d = reduce_of(NETDAM_ALU_MAX, NETDAM_TYPE_I16, 1000, i);

        post(&d);
        if (i == 0) {
            unit_run(&b.u);
            alone = b.u.result.work_bytes;
        }
    }
    unit_run(&b.u);
    assert_int_equal(b.u.count, 2);
    assert_int_equal(b.u.result.work_bytes, alone + 1000 + sizeof(struct netdam_descriptor));
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_group_is_sent_again_one_by_one),
        cmocka_unit_test(refused_reductions_are_sent_again_with_their_own_operands),
        cmocka_unit_test(a_refused_group_that_grew_downwards_is_sent_again_one_by_one),
        cmocka_unit_test(what_was_split_is_not_merged_again),
        cmocka_unit_test(a_lost_group_is_repeated_with_the_same_number_and_bytes),
        cmocka_unit_test(nobody_who_answers_is_a_timeout_for_each),
        cmocka_unit_test(what_waits_behind_silence_or_an_unknown_address_fails_one_by_one),
        cmocka_unit_test(busy_keeps_the_group),
        cmocka_unit_test(stale_within_the_epoch_sends_the_group_again),
        cmocka_unit_test(stale_across_epochs_leaves_each_unknown),
        cmocka_unit_test(whatever_ends_a_group_ends_each_of_it_once),
        cmocka_unit_test(a_group_that_grew_downwards_is_flushed_each_once),
        cmocka_unit_test(a_region_that_goes_before_sending_fails_its_request_only),
        cmocka_unit_test(a_region_that_goes_after_sending_leaves_all_uncertain),
        cmocka_unit_test(combining_is_charged),
    };

    return cmocka_run_group_tests_name("merge_end", tests, NULL, NULL);
}
