/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester context counts and remembers, where mostly its state shows that it is right. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b;

static struct ndfw_peer *peer(void)
{
    return &b.u.fw->peers[b.peer];
}

/* A WRITE of 8 bytes that is sent now. */
static struct ndtest_packet write_now(uint64_t user_data)
{
    struct ndtest_packet p;

    bench_write(&b, 8, user_data);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.opcode, NETDAM_OP_WRITE);
    unit_expect_silence(&b.u);
    return p;
}

static void write_and_answer(uint64_t user_data, uint64_t after_ns)
{
    struct ndtest_packet p = write_now(user_data);

    unit_advance(&b.u, after_ns);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, user_data, NETDAM_STATUS_OK);
}

static void the_congestion_window_stays_within_that_of_the_numbers(void **state)
{
    struct netdam_fw_config config = bench_config();

    (void)state;
    config.window = 8;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 0; i < 100; i++) {
        write_and_answer(i, 0);
        assert_int_equal(peer()->window, 8);
    }
    unit_stop(&b.u);
}

static void what_is_answered_before_it_is_sent_again_need_not_be_sent(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    p = write_now(1);
    b.u.port_room = 0;
    unit_advance(&b.u, 20 * UNIT_MS);
    unit_run(&b.u);
    assert_int_equal(peer()->lane.again, 1);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    assert_int_equal(peer()->lane.again, 0);
    assert_int_equal(peer()->lane.flying, 0);
    b.u.port_room = UINT32_MAX;
    unit_run(&b.u);
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

static void a_node_that_has_forgotten_needs_no_confirmation(void **state)
{
    struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION + 1};
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    write_and_answer(1, 0);
    unit_run_for(&b.u, 100 * UNIT_MS);
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
    unit_answer(&b.u, &p, &stale);
    assert_true(peer()->confirmed == peer()->lane.floor);
    assert_int_equal(ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    assert_false(peer()->in_use);
    unit_run_for(&b.u, 1000 * UNIT_MS);
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

static void a_late_confirmation_takes_no_later_one_back(void **state)
{
    struct ndtest_packet p[2];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 2; i++) {
        write_and_answer(i, 0);
        unit_run_for(&b.u, 100 * UNIT_MS);
        unit_run(&b.u);
        unit_expect_sent(&b.u, &p[i]);
        assert_int_equal(p[i].opcode, NETDAM_OP_CONFIRM);
        assert_true(p[i].number == 2 + i);
        unit_drop_sent(&b.u);
    }
    unit_answer_ok(&b.u, &p[1], NULL);
    assert_true(peer()->confirmed == 3);
    unit_answer_ok(&b.u, &p[0], NULL);
    assert_true(peer()->confirmed == 3);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
    unit_stop(&b.u);
}

static void a_packet_lost_again_and_again_is_left_to_its_timer_in_the_end(void **state)
{
    struct ndtest_packet lost, p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 20; i++) { /* measures a round trip of 1 ms */
        write_and_answer(i, UNIT_MS);
    }
    lost = write_now(50);
    for (unsigned i = 0; i < 8; i++) {
        p = write_now(51);
        unit_advance(&b.u, 3 * UNIT_MS);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, 51, NETDAM_STATUS_OK);
        unit_expect_sent(&b.u, &p);
        assert_true(p.number == lost.number); /* and is lost again */
    }
    p = write_now(52);
    unit_advance(&b.u, 3 * UNIT_MS);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 52, NETDAM_STATUS_OK);
    unit_expect_silence(&b.u);
    unit_run_for(&b.u, 80 * UNIT_MS);
    unit_expect_sent(&b.u, &p);
    assert_true(p.number == lost.number);
    unit_stop(&b.u);
}

static void a_reset_sends_nothing_to_whoever_has_not_been_heard_of(void **state)
{
    const uint64_t args[] = {0x0a000009, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16};
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, NULL), NETDAM_ADMIN_STATUS_OK);
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p); /* the question for the generation */
    ndtest_node_stop(&b.u.node, b.u.now_ns);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_FLUSHED);
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

static void busy_slows_down(void **state)
{
    struct unit_answer busy = {.status = NETDAM_STATUS_BUSY};
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(peer()->window, 32);
    unit_advance(&b.u, 1);
    p = write_now(1);
    unit_answer(&b.u, &p, &busy);
    assert_int_equal(peer()->window, 16);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_congestion_window_stays_within_that_of_the_numbers),
        cmocka_unit_test(what_is_answered_before_it_is_sent_again_need_not_be_sent),
        cmocka_unit_test(a_node_that_has_forgotten_needs_no_confirmation),
        cmocka_unit_test(a_late_confirmation_takes_no_later_one_back),
        cmocka_unit_test(a_packet_lost_again_and_again_is_left_to_its_timer_in_the_end),
        cmocka_unit_test(a_reset_sends_nothing_to_whoever_has_not_been_heard_of),
        cmocka_unit_test(busy_slows_down),
    };

    return cmocka_run_group_tests_name("counts", tests, NULL, NULL);
}
