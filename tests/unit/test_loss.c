/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester does about packets that nobody answers: time-outs by the fake clock, repetition, windows. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b; /* one at a time */

static void retransmissions_back_off_and_end_in_timeout(void **state)
{
    static const uint64_t waits_ms[] = {0, 10, 20, 40, 80, 80}; /* initial 10, doubled, at most 80 */
    uint64_t last, start;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    start = last = b.u.now_ns;
    bench_write(&b, 8, 1);
    for (size_t i = 0; i < ARRAY_SIZE(waits_ms); i++) {
        uint64_t at = bench_next_packet_ns(&b, &p);

        assert_int_equal(at - last, waits_ms[i] * UNIT_MS);
        assert_int_equal(p.opcode, NETDAM_OP_WRITE);
        assert_true(p.number == 1 && p.distance == 0);
        assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | (i != 0 ? NETDAM_FLAG_AGAIN : 0u));
        assert_memory_equal(p.payload, b.u.node.memory + BENCH_LOCAL, 8);
        b.u.node.memory[BENCH_LOCAL] ^= 0xff; /* what is sent again is what is there then */
        last = at;
        unit_expect_no_completion(&b.queue);
    }
    /* One tick before the last wait ends, and its end. */
    unit_run(&b.u);
    assert_true(b.u.result.next_ns == last + 80 * UNIT_MS);
    b.u.now_ns = last + 80 * UNIT_MS - 1;
    unit_run(&b.u);
    unit_expect_no_completion(&b.queue);
    b.u.now_ns++;
    unit_run(&b.u);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_TIMEOUT);
    assert_int_equal(b.u.now_ns - start, 310 * UNIT_MS);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TIMEOUTS), 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RETRANSMISSIONS), 5);
    /* The number is finished: the next request's floor lies above it. */
    bench_write(&b, 8, 2);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 2, GENERATION);
    assert_int_equal(p.distance, 0);
    /* A late answer to the first is for nobody. */
    p.number = 1;
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_no_completion(&b.queue);
    unit_stop(&b.u);
}

static void a_measured_round_trip_sets_the_time_out(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct ndtest_packet p;
    uint64_t last;

    (void)state;
    config.paths = 1; /* nothing that times out is put down to its path */
    bench_start(&b, &config, 4, GENERATION);
    bench_write(&b, 8, 0);
    unit_expect_sent(&b.u, &p);
    unit_advance(&b.u, 9 * UNIT_MS);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 0, NETDAM_STATUS_OK);
    last = b.u.now_ns;
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    /* After the first measurement: the round trip, and four times its half (RFC 6298). */
    assert_in_range(bench_next_packet_ns(&b, &p) - last, 27 * UNIT_MS, 27 * UNIT_MS + 10);
    unit_answer_ok(&b.u, &p, NULL); /* sent twice: measures nothing */
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    last = b.u.now_ns;
    bench_write(&b, 8, 2);
    unit_expect_sent(&b.u, &p);
    assert_in_range(bench_next_packet_ns(&b, &p) - last, 27 * UNIT_MS, 27 * UNIT_MS + 10);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_OK);
    for (unsigned i = 0; i < 30; i++) { /* always 20 ms */
        bench_write(&b, 8, i);
        unit_expect_sent(&b.u, &p);
        unit_advance(&b.u, 9 * UNIT_MS + (i > 2 ? 11 * UNIT_MS : 0));
        unit_answer_ok(&b.u, &p, NULL);
        unit_drop_sent(&b.u);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    last = b.u.now_ns;
    bench_write(&b, 8, 99);
    unit_expect_sent(&b.u, &p);
    assert_in_range(bench_next_packet_ns(&b, &p) - last, 20 * UNIT_MS, 60 * UNIT_MS);
    unit_stop(&b.u);
}

static void the_time_out_is_never_below_its_minimum(void **state)
{
    struct ndtest_packet p;
    uint64_t last;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 30; i++) {
        bench_write(&b, 8, i);
        unit_expect_sent(&b.u, &p);
        unit_advance(&b.u, 1000); /* a fast wire */
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    last = b.u.now_ns;
    bench_write(&b, 8, 99);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(bench_next_packet_ns(&b, &p) - last, 10 * UNIT_MS);
    unit_stop(&b.u);
}

static void the_time_out_is_never_above_its_maximum(void **state)
{
    static const uint64_t ms[] = {10, 20, 40, 50, 50};
    struct netdam_fw_config config = bench_config();

    (void)state;
    config.rto_max_ns = 50 * UNIT_MS;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned tries = 0; tries < ARRAY_SIZE(ms); tries++) {
        assert_true(ndfw_peer_rto_ns(b.u.fw, &b.u.fw->peers[b.peer], tries) == ms[tries] * UNIT_MS);
    }
    unit_stop(&b.u);
}

static void an_unanswered_number_holds_the_floor_and_the_window(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct bench_packets sent;
    struct ndtest_packet p;

    (void)state;
    config.window = 8;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 0; i < 20; i++) {
        bench_write(&b, 8, 1 + i);
    }
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(sent.packet[i].number == 1 + i && sent.packet[i].distance == i);
    }
    for (unsigned i = 1; i < 8; i++) {
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
        unit_expect_completion(&b.queue, 1 + i, NETDAM_STATUS_OK);
        unit_expect_silence(&b.u); /* number 9 would be 8 above the floor */
    }
    unit_answer_ok(&b.u, &sent.packet[0], NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    for (unsigned i = 0; i < 8; i++) {
        bench_expect_request(&b, &p, NETDAM_OP_WRITE, 9 + i, GENERATION);
        assert_int_equal(p.distance, i);
    }
    unit_expect_silence(&b.u);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void a_lost_packet_is_sent_again_when_later_ones_are_answered(void **state)
{
    struct bench_packets sent;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 20; i++) { /* measures a round trip of 1 ms */
        bench_write(&b, 8, i);
        unit_expect_sent(&b.u, &p);
        unit_advance(&b.u, UNIT_MS);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    bench_write(&b, 4 * 1400, 50);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 4);
    unit_advance(&b.u, UNIT_MS);
    for (unsigned i = 1; i < 4; i++) {
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
        unit_expect_silence(&b.u); /* it may be late by a little */
    }
    bench_write(&b, 8, 51);
    unit_expect_sent(&b.u, &p);
    unit_advance(&b.u, 2 * UNIT_MS);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 51, NETDAM_STATUS_OK);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, sent.packet[0].number, GENERATION);
    assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_AGAIN);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 50, NETDAM_STATUS_OK);
    bench_free(&sent);
    unit_stop(&b.u);
}

/* Answers one packet; returns how many new ones that let out. */
static unsigned answer_one(struct bench_packets *queue, unsigned *head)
{
    unsigned before = queue->count;

    unit_answer_ok(&b.u, &queue->packet[(*head)++], NULL);
    while (queue->count < ARRAY_SIZE(queue->packet) && unit_sent(&b.u, &queue->packet[queue->count])) {
        queue->payload[queue->count] = NULL;
        queue->count++;
    }
    return queue->count - before;
}

static void the_congestion_window_grows_by_one_per_round_and_halves_on_loss(void **state)
{
    static struct bench_packets sent;
    struct netdam_descriptor d;
    unsigned head = 0, flying, again = 0;
    struct ndtest_packet p;

    (void)state;
    memset(&sent, 0, sizeof(sent));
    bench_start(&b, NULL, 4, GENERATION);
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 90 * 1400, 1);
    unit_post(&b.u, &b.queue, &d);
    unit_post(&b.u, &b.queue, &d);
    unit_run(&b.u);
    while (unit_sent(&b.u, &sent.packet[sent.count])) {
        sent.count++;
    }
    assert_int_equal(sent.count, 32); /* the first burst */
    for (unsigned i = 1; i < 32; i++) {
        assert_int_equal(answer_one(&sent, &head), 1);
    }
    assert_int_equal(answer_one(&sent, &head), 2); /* a whole window was answered */
    flying = sent.count - head;
    assert_int_equal(flying, 33);
    unit_advance(&b.u, 80 * UNIT_MS);
    unit_run(&b.u); /* all of them are overdue: that is one loss, and not thirty-three */
    while (unit_sent(&b.u, &p)) {
        assert_true((p.flags & NETDAM_FLAG_AGAIN) != 0);
        again++;
    }
    assert_int_equal(again, 33);
    while (flying > 17) { /* half of 33, which 16 answers make 17: nothing new until less are under way */
        assert_int_equal(answer_one(&sent, &head), 0);
        flying--;
    }
    assert_int_equal(answer_one(&sent, &head), 1);
    unit_stop(&b.u);
}

static void many_losses_leave_a_window_of_four(void **state)
{
    struct ndtest_packet p;
    unsigned count = 0;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 5; i++) { /* five losses, each halves 32 */
        bench_write(&b, 8, i);
        unit_run_for(&b.u, 2000 * UNIT_MS);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_TIMEOUT);
    }
    unit_drop_sent(&b.u);
    bench_write(&b, 20 * 1400, 9);
    while (unit_sent(&b.u, &p)) {
        count += p.opcode == NETDAM_OP_WRITE;
    }
    assert_int_equal(count, 4);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retransmissions_back_off_and_end_in_timeout),
        cmocka_unit_test(a_measured_round_trip_sets_the_time_out),
        cmocka_unit_test(the_time_out_is_never_below_its_minimum),
        cmocka_unit_test(the_time_out_is_never_above_its_maximum),
        cmocka_unit_test(an_unanswered_number_holds_the_floor_and_the_window),
        cmocka_unit_test(a_lost_packet_is_sent_again_when_later_ones_are_answered),
        cmocka_unit_test(the_congestion_window_grows_by_one_per_round_and_halves_on_loss),
        cmocka_unit_test(many_losses_leave_a_window_of_four),
    };

    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
