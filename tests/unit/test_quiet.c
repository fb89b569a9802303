/* SPDX-License-Identifier: BSD-3-Clause */
/* What must not be forgotten while something else goes on, or nothing does: confirmations, wake-ups, room for others. */
#include "bench.h"

static struct bench b;

static void expect_confirm(uint64_t floor)
{
    struct ndtest_packet p;

    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
    assert_true(p.number == floor);
    unit_answer_ok(&b.u, &p, NULL);
}

static void a_floor_is_confirmed_although_reads_go_on(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct netdam_descriptor read;
    struct ndtest_packet p;

    (void)state;
    config.window = 4;
    bench_start(&b, &config, 4, UNIT_GENERATION);
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    /* More than the window takes, so that something waits in the list when the timer runs out. */
    unit_advance(&b.u, config.confirm_idle_ns - 1);
    read = bench_descriptor(&b, NETDAM_OP_READ, 0, 8 * 1400, 2);
    bench_do(&b, &read);
    for (unsigned i = 0; i < 4; i++) {
        unit_expect_sent(&b.u, &p);
        assert_int_equal(p.opcode, NETDAM_OP_READ);
    }
    unit_run_for(&b.u, 1);
    unit_run(&b.u);
    expect_confirm(2);
    unit_stop(&b.u);
}

static void a_descriptor_posted_after_the_last_run_is_not_forgotten_for_want_of_room(void **state)
{
    struct netdam_descriptor write;
    struct ndtest_packet p;
    const unsigned entries = 1u << BENCH_LOG2;

    (void)state;
    bench_start(&b, NULL, 4, UNIT_GENERATION);
    for (unsigned i = 0; i < entries; i++) {
        bench_write(&b, 8, i);
        unit_expect_sent(&b.u, &p);
        unit_answer_ok(&b.u, &p, NULL);
    }
    unit_run(&b.u);
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_run(&b.u);
    /* Now, behind the firmware's back, before it sleeps. */
    write = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 8, 99);
    unit_post(&b.u, &b.queue, &write);
    assert_false(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_run(&b.u);
    assert_in_range(b.u.result.next_ns - b.u.now_ns, 1, UNIT_MS);
    assert_true(b.u.node.ops->prepare_sleep(b.u.node.state));
    unit_stop(&b.u);
}

static enum ndfw_lane_verdict admit(uint64_t context, bool stranger)
{
    struct ndfw_packet packet = {.context = context, .generation = UNIT_GENERATION, .number = 1};
    struct ndfw_lane_result result = {0};
    enum ndfw_lane_verdict verdict = ndfw_lane_admit(b.u.fw, &packet, stranger, &result);

    if (verdict == NDFW_LANE_EXECUTE) {
        ndfw_lane_consume(result.window, 1, NETDAM_STATUS_BAD_KEY, 0);
    }
    return verdict;
}

static void strangers_leave_a_quarter_of_the_windows_to_those_who_know_a_key(void **state)
{
    struct netdam_fw_config config = bench_config();

    (void)state;
    config.lane_windows = 32;
    bench_start(&b, &config, 4, UNIT_GENERATION);
    b.u.fw->generation = UNIT_GENERATION;
    for (uint64_t context = 1; context <= 24; context++) {
        assert_int_equal(admit(context, true), NDFW_LANE_EXECUTE);
    }
    assert_int_equal(admit(25, true), NDFW_LANE_BUSY);
    assert_int_equal(admit(24, true), NDFW_LANE_REPEATED); /* what was refused stays refused */
    for (uint64_t context = 26; context < 34; context++) {
        assert_int_equal(admit(context, false), NDFW_LANE_EXECUTE);
    }
    assert_int_equal(admit(34, false), NDFW_LANE_BUSY);
    unit_stop(&b.u);
}

/* A second context towards the node itself. */
static uint32_t open_self(void)
{
    uint64_t peer[] = {0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), NETDAM_ADMIN_STATUS_OK);
    return (uint32_t)results[0];
}

/* A run of one byte's budget is one round over the peers: without fairness the second waits for dozens of them. */
static void one_context_cannot_keep_another_from_the_node_itself(void **state)
{
    struct netdam_fw_run_result result;
    struct netdam_completion completion;
    struct netdam_descriptor echo;
    uint32_t busy, other;
    unsigned rounds = 0;

    (void)state;
    bench_start(&b, NULL, 4, UNIT_GENERATION);
    busy = open_self();
    other = open_self();
    b.peer = busy;
    echo = bench_descriptor(&b, NETDAM_OP_ECHO, 0, 90 * 1400, 1);
    unit_post(&b.u, &b.queue, &echo);
    b.peer = other;
    echo = bench_descriptor(&b, NETDAM_OP_ECHO, 0, 8, 2);
    unit_post(&b.u, &b.queue, &echo);
    do {
        b.u.node.ops->run(b.u.node.state, b.u.now_ns, 1, &result);
        rounds++;
    } while (!ndtest_queue_poll(&b.queue, &completion) && rounds < 1000);
    assert_int_equal(completion.user_data, 2);
    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    assert_in_range(rounds, 1, 12);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_floor_is_confirmed_although_reads_go_on),
        cmocka_unit_test(a_descriptor_posted_after_the_last_run_is_not_forgotten_for_want_of_room),
        cmocka_unit_test(one_context_cannot_keep_another_from_the_node_itself),
        cmocka_unit_test(strangers_leave_a_quarter_of_the_windows_to_those_who_know_a_key),
    };

    return cmocka_run_group_tests_name("quiet", tests, NULL, NULL);
}
