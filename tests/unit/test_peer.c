/* SPDX-License-Identifier: BSD-3-Clause */
/* Requester contexts: generations, confirmations, the end of numbers, closing. */
#include "bench.h"

#define GENERATION UNIT_GENERATION
#define LATER      (UNIT_GENERATION + 1) /* the same epoch */
#define NEW_EPOCH  (UNIT_GENERATION + (UINT64_C(9) << 32))
#define LAST       (NETDAM_NUMBER_MAX - 1) /* the last number of a context */

static struct bench b; /* one at a time */

static void answer_stale(const struct ndtest_packet *request, uint64_t generation, uint64_t echo)
{
    struct unit_answer answer = {.status = NETDAM_STATUS_STALE, .generation = generation, .echo = echo};

    unit_answer(&b.u, request, &answer);
}

static void first_contact_asks_for_the_generation(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    unit_run(&b.u);
    unit_expect_silence(&b.u); /* nobody has asked for anything */
    bench_write(&b, 8, 1);
    bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 1, 0);
    assert_int_equal(p.distance, 0);
    assert_int_equal(p.payload_bytes, 0);
    unit_expect_silence(&b.u);
    answer_stale(&p, GENERATION, 0);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1, GENERATION);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

static void echo_needs_no_generation(void **state)
{
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    d = bench_descriptor(&b, NETDAM_OP_ECHO, 0, 8, 1);
    bench_do(&b, &d);
    bench_expect_request(&b, &p, NETDAM_OP_ECHO, 1, 0);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

static void a_node_that_never_answers_the_first_question(void **state)
{
    struct ndtest_packet p;
    unsigned sent = 0;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    bench_write(&b, 8, 1);
    bench_write(&b, 8, 2);
    unit_run_for(&b.u, 2000 * UNIT_MS);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_TIMEOUT);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_TIMEOUT);
    while (unit_sent(&b.u, &p)) {
        assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
        sent++;
    }
    assert_int_equal(sent, 6); /* one and five repetitions */
    assert_true(b.u.result.next_ns == NETDAM_FW_NEVER);
    /* The next request asks anew. */
    bench_write(&b, 8, 3);
    bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 1, 0);
    answer_stale(&p, GENERATION, 0);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1, GENERATION);
    unit_stop(&b.u);
}

static void stale_within_the_epoch_sends_everything_again_with_the_same_numbers(void **state)
{
    struct bench_packets sent;
    struct netdam_descriptor read;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 3 * 1400, 1);
    read = bench_descriptor(&b, NETDAM_OP_READ, 0, 8, 2);
    bench_do(&b, &read);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 4);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    answer_stale(&sent.packet[2], LATER, 0);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1, LATER);
    assert_int_equal(p.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_AGAIN); /* for it was sent before */
    assert_memory_equal(p.payload, sent.payload[0], 1400);
    unit_answer_ok(&b.u, &p, NULL);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 3, LATER);
    assert_int_equal(p.distance, 2);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    bench_expect_request(&b, &p, NETDAM_OP_READ, 1, LATER);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_OK);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void stale_across_epochs_ends_what_was_sent_as_unknown_and_sends_the_rest(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct netdam_descriptor read;
    struct bench_packets sent;
    struct netdam_completion completion;
    struct ndtest_packet p;

    (void)state;
    config.window = 4;
    bench_start(&b, &config, 4, GENERATION);
    read = bench_descriptor(&b, NETDAM_OP_READ, 0, 8, 1);
    bench_do(&b, &read);
    bench_write(&b, 3 * 1400, 2); /* all of it sent: the window of four packets is full */
    bench_write(&b, 8, 3);        /* not sent */
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 4);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 4, GENERATION); /* descriptor 3 after all */
    bench_write(&b, 8, 4);                                        /* and this one waits */
    unit_expect_silence(&b.u);
    answer_stale(&sent.packet[2], NEW_EPOCH, 0);
    completion = unit_completion(&b.queue);
    assert_int_equal(completion.status, NETDAM_STATUS_UNKNOWN);
    assert_true(completion.user_data == 2 && completion.length == 1400);
    assert_int_equal(completion.flags, NETDAM_COMPLETION_PARTIAL);
    unit_expect_completion(&b.queue, 3, NETDAM_STATUS_UNKNOWN);
    unit_expect_no_completion(&b.queue);
    /* READ changes nothing and is asked again; what was never sent goes out under the new generation. */
    for (unsigned i = 0; i < 2; i++) {
        unit_expect_sent(&b.u, &p);
        assert_true(p.generation == NEW_EPOCH);
        assert_true(p.opcode == NETDAM_OP_READ ? p.number == 1 : p.number == 5 && p.distance == 0);
        unit_answer_ok(&b.u, &p, NULL);
    }
    unit_expect_silence(&b.u);
    assert_int_equal(ndtest_queue_ready(&b.queue), 2);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void stale_that_does_not_echo_the_generation_in_use_is_ignored(void **state)
{
    struct ndtest_packet p, q;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 8, 1);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1, GENERATION);
    answer_stale(&p, NEW_EPOCH, UNIT_ECHO_NONE);
    answer_stale(&p, NEW_EPOCH, LATER);
    answer_stale(&p, GENERATION, GENERATION); /* says nothing new */
    q = p;
    q.generation = 0;
    answer_stale(&q, 0, GENERATION); /* no generation at all */
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 4);
    unit_expect_silence(&b.u);
    unit_expect_no_completion(&b.queue);
    answer_stale(&p, LATER, GENERATION);
    bench_expect_request(&b, &q, NETDAM_OP_WRITE, 1, LATER);
    /* A late copy of the same STALE, now that the generation has changed. */
    answer_stale(&p, LATER, GENERATION);
    answer_stale(&p, NEW_EPOCH, GENERATION);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &q, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

static void busy_is_tried_again_and_ends_in_bounded_time(void **state)
{
    struct unit_answer busy = {.status = NETDAM_STATUS_BUSY};
    struct ndtest_packet p;
    unsigned sent;

    (void)state;
    for (unsigned until = 1; until <= 7; until++) { /* attempts that are answered BUSY */
        bench_start(&b, NULL, 4, GENERATION);
        bench_write(&b, 8, 1);
        for (sent = 0; bench_next_packet_ns(&b, &p) != 0 && p.opcode == NETDAM_OP_WRITE; sent++) {
            assert_true(p.number == 1);
            if (sent < until) {
                unit_answer(&b.u, &p, &busy);
                unit_answer(&b.u, &p, &busy); /* doubled */
            } else {
                unit_answer_ok(&b.u, &p, NULL);
                break;
            }
            unit_expect_silence(&b.u);
        }
        unit_expect_completion(&b.queue, 1, until < 6 ? NETDAM_STATUS_OK : NETDAM_STATUS_TIMEOUT);
        unit_stop(&b.u);
    }
}

static void what_waits_behind_a_silent_peer_fails_with_it(void **state)
{
    struct netdam_fw_config config = bench_config();

    (void)state;
    config.window = 1;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 0; i < 10; i++) {
        bench_write(&b, 8, i);
    }
    unit_run_for(&b.u, 320 * UNIT_MS); /* the time that one packet takes to time out */
    for (unsigned i = 0; i < 10; i++) {
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_TIMEOUT);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TIMEOUTS), 1); /* of packets: the others were never sent */
    unit_stop(&b.u);
}

static void reads_do_not_use_the_lane(void **state)
{
    struct netdam_descriptor read;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    read = bench_descriptor(&b, NETDAM_OP_READ, 0, 8, 1);
    for (unsigned i = 0; i < 3; i++) {
        bench_write(&b, 8, 1);
        bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1 + i, GENERATION);
        assert_int_equal(p.distance, i);
        bench_do(&b, &read);
        bench_expect_request(&b, &p, NETDAM_OP_READ, 1 + i, GENERATION);
        assert_int_equal(p.distance, 0);
    }
    unit_stop(&b.u);
}

static void an_idle_requester_confirms_its_floor(void **state)
{
    struct ndtest_packet p, q;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    unit_advance(&b.u, 3 * UNIT_MS);
    unit_answer_ok(&b.u, &p, NULL);
    unit_run_for(&b.u, 100 * UNIT_MS - 1);
    unit_expect_silence(&b.u);
    unit_run_for(&b.u, 1);
    unit_run(&b.u);
    bench_expect_request(&b, &q, NETDAM_OP_CONFIRM, 2, GENERATION);
    assert_int_equal(q.distance, 0);
    unit_answer_ok(&b.u, &q, NULL);
    unit_run_for(&b.u, 100000 * UNIT_MS);
    unit_expect_silence(&b.u);
    assert_true(b.u.result.next_ns == NETDAM_FW_NEVER);
    unit_stop(&b.u);
}

static void a_confirmation_that_is_not_acknowledged_is_repeated_a_bounded_number_of_times(void **state)
{
    struct ndtest_packet p;
    unsigned sent = 0;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    while (bench_next_packet_ns(&b, &p) != 0) {
        struct unit_answer wrong = {.generation = LATER}; /* of another generation: not for this one */

        assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
        assert_true(p.number == 2);
        unit_answer(&b.u, &p, &wrong);
        sent++;
    }
    assert_int_equal(sent, 6);
    assert_true(b.u.result.next_ns == NETDAM_FW_NEVER);
    unit_stop(&b.u);
}

static void a_node_that_wants_to_hear_the_floor_hears_it_at_once(void **state)
{
    struct bench_packets sent;
    struct ndtest_packet p;
    struct unit_answer wish = {.flags = NETDAM_FLAG_CONFIRM_WANTED, .length = 8};

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned round = 0; round < 2; round++) {
        bench_write(&b, 8, 1);
        bench_write(&b, 8, 2);
        bench_collect(&b, &sent);
        assert_int_equal(sent.count, 2);
        unit_answer(&b.u, &sent.packet[0], &wish);
        unit_expect_silence(&b.u); /* when it falls idle, not before */
        unit_answer_ok(&b.u, &sent.packet[1], NULL);
        bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 3 + 2 * round, GENERATION);
        unit_answer_ok(&b.u, &p, NULL);
        unit_run_for(&b.u, 1000 * UNIT_MS);
        unit_expect_silence(&b.u);
        bench_free(&sent);
    }
    /* It has wished for that once, not for ever. */
    bench_write(&b, 8, 3);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 5, GENERATION);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_silence(&b.u);
    unit_run_for(&b.u, 100 * UNIT_MS);
    bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 6, GENERATION);
    unit_stop(&b.u);
}

static void work_puts_the_confirmation_off(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 10; i++) {
        bench_write(&b, 8, i);
        bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1 + i, GENERATION);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
        unit_run_for(&b.u, 9 * UNIT_MS);
    }
    unit_expect_silence(&b.u);
    unit_run_for(&b.u, 100 * UNIT_MS);
    bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 11, GENERATION);
    unit_stop(&b.u);
}

static void confirmations_that_are_answered_late_are_sent_as_often_as_there_is_something_to_confirm(void **state)
{
    struct ndtest_packet confirm = {0}, write;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned round = 0; round < 20; round++) {
        struct ndtest_packet before = confirm;

        bench_write(&b, 8, round);
        bench_expect_request(&b, &write, NETDAM_OP_WRITE, 1 + round, GENERATION);
        if (round != 0) {
            unit_answer_ok(&b.u, &before, NULL); /* of what had ended then */
        }
        unit_answer_ok(&b.u, &write, NULL);
        unit_run_for(&b.u, 100 * UNIT_MS);
        bench_expect_request(&b, &confirm, NETDAM_OP_CONFIRM, 2 + round, GENERATION);
        unit_drop_sent(&b.u);
    }
    unit_stop(&b.u);
}

/* Answers that confirm nothing: neither requests nor contexts wait for such a node without end. */
static void a_node_that_confirms_nothing_is_given_up(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct ndtest_packet p;
    unsigned asked = 0;

    (void)state;
    config.retries = 3;
    bench_start(&b, &config, 4, 0);
    bench_write(&b, 8, 1);
    for (unsigned i = 0; i < 300; i++) {
        if (unit_sent(&b.u, &p)) {
            assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
            unit_answer_ok(&b.u, &p, NULL);
            asked++;
        }
        unit_run_for(&b.u, 10 * UNIT_MS);
    }
    assert_int_equal(asked, 1 + config.retries);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_TIMEOUT);
    unit_stop(&b.u);

    bench_start(&b, &config, 4, GENERATION);
    bench_write(&b, 8, 1);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, 1, GENERATION);
    unit_answer_ok(&b.u, &p, NULL);
    asked = 0;
    for (unsigned i = 0; i < 300; i++) {
        unit_run_for(&b.u, 10 * UNIT_MS);
        if (unit_sent(&b.u, &p)) {
            assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
            p.number--; /* of which it had heard before */
            unit_answer_ok(&b.u, &p, NULL);
            asked++;
        }
    }
    assert_int_equal(asked, 1 + config.retries);
    unit_stop(&b.u);
}

/* A context that has just begun asks for the generation, as any does. */
static void tell_generation(struct ndtest_packet *p, uint64_t number, uint64_t generation)
{
    bench_expect_request(&b, p, NETDAM_OP_CONFIRM, number, 0);
    answer_stale(p, generation, UNIT_ECHO_NONE);
}

static void when_numbers_run_out_the_context_is_confirmed_and_renewed(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct bench_packets sent;
    struct ndtest_packet p, confirm;
    uint64_t context;

    (void)state;
    config.first_number = LAST - 2;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 0; i < 5; i++) {
        bench_write(&b, 8, i);
    }
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 3);
    assert_true(sent.packet[2].number == LAST);
    context = sent.packet[0].context;
    unit_answer_ok(&b.u, &sent.packet[2], NULL);
    unit_answer_ok(&b.u, &sent.packet[0], NULL);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    bench_expect_request(&b, &confirm, NETDAM_OP_CONFIRM, NETDAM_NUMBER_MAX, GENERATION);
    assert_true(confirm.context == context);
    unit_expect_silence(&b.u);
    unit_answer_ok(&b.u, &confirm, NULL);
    /* The node has begun another epoch meanwhile: nothing of the new context can be from before. */
    tell_generation(&p, LAST - 2, NEW_EPOCH);
    for (unsigned i = 0; i < 2; i++) {
        bench_expect_request(&b, &p, NETDAM_OP_WRITE, LAST - 2 + i, NEW_EPOCH);
        assert_true(p.context != context);
        assert_int_equal(p.distance, i);
    }
    /* Late answers to the old context are nobody's. */
    unit_answer_ok(&b.u, &sent.packet[0], NULL);
    assert_int_equal(ndtest_queue_ready(&b.queue), 3);
    unit_answer_ok(&b.u, &p, NULL);
    assert_int_equal(ndtest_queue_ready(&b.queue), 4);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void a_node_that_does_not_acknowledge_cannot_keep_a_context_from_renewal(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct ndtest_packet p;
    unsigned confirms = 0;
    uint64_t context;

    (void)state;
    config.first_number = LAST;
    bench_start(&b, &config, 4, GENERATION);
    bench_write(&b, 8, 1);
    bench_write(&b, 8, 2);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, LAST, GENERATION);
    context = p.context;
    unit_answer_ok(&b.u, &p, NULL);
    while (bench_next_packet_ns(&b, &p) != 0 && p.context == context) {
        assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
        assert_true(p.number == NETDAM_NUMBER_MAX);
        confirms++;
    }
    assert_in_range(confirms, 1, 6);
    assert_true(p.opcode == NETDAM_OP_CONFIRM && p.generation == 0);
    answer_stale(&p, GENERATION, UNIT_ECHO_NONE);
    bench_expect_request(&b, &p, NETDAM_OP_WRITE, LAST, GENERATION);
    assert_true(p.context != context && p.number == LAST);
    unit_stop(&b.u);
}

static void reads_alone_use_up_numbers_too(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct netdam_descriptor read;
    struct ndtest_packet p;
    uint64_t context = 0;

    (void)state;
    config.first_number = LAST;
    bench_start(&b, &config, 4, GENERATION);
    read = bench_descriptor(&b, NETDAM_OP_READ, 0, 8, 1);
    for (unsigned i = 0; i < 3; i++) {
        bench_do(&b, &read);
        if (i != 0) {
            tell_generation(&p, LAST, GENERATION);
        }
        bench_expect_request(&b, &p, NETDAM_OP_READ, LAST, GENERATION);
        assert_true(p.context != context);
        context = p.context;
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    }
    unit_stop(&b.u);
}

/* Of what is UNRELIABLE nothing is heard that could make the device go on. */
static void what_is_sent_and_forgotten_uses_up_numbers_too(void **state)
{
    struct netdam_fw_config config = bench_config();
    struct netdam_descriptor write;
    struct ndtest_packet p;
    uint64_t context = 0;

    (void)state;
    config.first_number = LAST;
    bench_start(&b, &config, 4, GENERATION);
    write = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 3 * 1400, 1);
    write.flags = NETDAM_DESCRIPTOR_UNRELIABLE;
    for (unsigned i = 0; i < 2; i++) {
        bench_do(&b, &write);
        for (unsigned n = 0; n < 3; n++) {
            if (i + n != 0) {
                tell_generation(&p, LAST, GENERATION);
            }
            bench_expect_request(&b, &p, NETDAM_OP_WRITE, LAST, GENERATION);
            assert_true(p.context != context);
            context = p.context;
        }
        unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
    }
    unit_stop(&b.u);
}

static enum netdam_admin_status close_peer(void)
{
    return ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns);
}

static void closing_flushes_confirms_and_frees_the_place(void **state)
{
    struct ndtest_packet p, confirm;

    (void)state;
    for (unsigned answered = 0; answered < 2; answered++) {
        bench_start(&b, NULL, 4, GENERATION);
        bench_write(&b, 8, 1);
        unit_expect_sent(&b.u, &p);
        assert_int_equal(close_peer(), NETDAM_ADMIN_STATUS_OK);
        unit_expect_completion(&b.queue, 1, NETDAM_STATUS_FLUSHED);
        assert_int_equal(close_peer(), NETDAM_ADMIN_STATUS_NO_SUCH);
        unit_run(&b.u);
        bench_expect_request(&b, &confirm, NETDAM_OP_CONFIRM, 2, GENERATION);
        unit_answer_ok(&b.u, &p, NULL); /* too late */
        unit_expect_no_completion(&b.queue);
        bench_write(&b, 8, 2); /* the handle is not open any more */
        unit_expect_completion(&b.queue, 2, NETDAM_STATUS_LOCAL_PEER);
        assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer + 1);
        if (answered) {
            unit_answer_ok(&b.u, &confirm, NULL);
        } else {
            unit_run_for(&b.u, 1000 * UNIT_MS);
        }
        assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer);
        assert_true(b.u.fw->peers[b.peer].context != p.context);
        unit_stop(&b.u);
    }
}

/* Each answer confirms one number more: as many questions as to a node that says nothing. */
static void closing_does_not_wait_for_a_node_that_confirms_little_by_little(void **state)
{
    enum { NUMBERS = 40 };
    struct netdam_fw_config config = bench_config();
    struct ndtest_packet p;
    unsigned asked = 0;

    (void)state;
    config.retries = 3;
    bench_start(&b, &config, 4, GENERATION);
    for (unsigned i = 1; i <= NUMBERS; i++) {
        bench_write(&b, 8, i);
        bench_expect_request(&b, &p, NETDAM_OP_WRITE, i, GENERATION);
        unit_answer_ok(&b.u, &p, NULL);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
    }
    assert_int_equal(close_peer(), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 10 * NUMBERS; i++) {
        unit_run_for(&b.u, 10 * UNIT_MS);
        if (unit_sent(&b.u, &p)) {
            assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
            assert_int_equal(p.number, NUMBERS + 1);
            asked++;
            p.number = 1 + asked;
            unit_answer_ok(&b.u, &p, NULL);
        }
    }
    assert_int_equal(asked, 1 + config.retries);
    assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer);
    unit_stop(&b.u);
}

static void closing_without_anything_to_confirm_frees_the_place_at_once(void **state)
{
    (void)state;
    bench_start(&b, NULL, 4, 0);
    assert_int_equal(close_peer(), NETDAM_ADMIN_STATUS_OK);
    unit_run(&b.u);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer);
    unit_stop(&b.u);
    /* Neither does a descriptor that waits for a generation keep it. */
    bench_start(&b, NULL, 4, 0);
    bench_write(&b, 8, 1);
    assert_int_equal(close_peer(), NETDAM_ADMIN_STATUS_OK);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_FLUSHED);
    assert_int_equal(unit_peer(&b.u, 4, GENERATION), b.peer);
    unit_stop(&b.u);
}

static void stopping_flushes_everything_and_confirms_once(void **state)
{
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 8, 1);
    bench_write(&b, 8, 2);
    unit_drop_sent(&b.u);
    ndtest_node_stop(&b.u.node, b.u.now_ns);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_FLUSHED);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_FLUSHED);
    bench_expect_request(&b, &p, NETDAM_OP_CONFIRM, 3, GENERATION);
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_contact_asks_for_the_generation),
        cmocka_unit_test(echo_needs_no_generation),
        cmocka_unit_test(a_node_that_never_answers_the_first_question),
        cmocka_unit_test(stale_within_the_epoch_sends_everything_again_with_the_same_numbers),
        cmocka_unit_test(stale_across_epochs_ends_what_was_sent_as_unknown_and_sends_the_rest),
        cmocka_unit_test(stale_that_does_not_echo_the_generation_in_use_is_ignored),
        cmocka_unit_test(busy_is_tried_again_and_ends_in_bounded_time),
        cmocka_unit_test(what_waits_behind_a_silent_peer_fails_with_it),
        cmocka_unit_test(reads_do_not_use_the_lane),
        cmocka_unit_test(an_idle_requester_confirms_its_floor),
        cmocka_unit_test(a_confirmation_that_is_not_acknowledged_is_repeated_a_bounded_number_of_times),
        cmocka_unit_test(confirmations_that_are_answered_late_are_sent_as_often_as_there_is_something_to_confirm),
        cmocka_unit_test(a_node_that_confirms_nothing_is_given_up),
        cmocka_unit_test(a_node_that_wants_to_hear_the_floor_hears_it_at_once),
        cmocka_unit_test(work_puts_the_confirmation_off),
        cmocka_unit_test(when_numbers_run_out_the_context_is_confirmed_and_renewed),
        cmocka_unit_test(a_node_that_does_not_acknowledge_cannot_keep_a_context_from_renewal),
        cmocka_unit_test(what_is_sent_and_forgotten_uses_up_numbers_too),
        cmocka_unit_test(reads_alone_use_up_numbers_too),
        cmocka_unit_test(closing_flushes_confirms_and_frees_the_place),
        cmocka_unit_test(closing_does_not_wait_for_a_node_that_confirms_little_by_little),
        cmocka_unit_test(closing_without_anything_to_confirm_frees_the_place_at_once),
        cmocka_unit_test(stopping_flushes_everything_and_confirms_once),
    };

    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
