/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions as software posts them: what is sent, what a completion says, lists that are wrong or change. */
#include "bench.h"
#include "entries.h"

#define GENERATION UNIT_GENERATION
#define LIST       UINT64_C(0x100)  /* where the list lies in the local region; unaligned lists have a test */
#define RESULT     UINT64_C(0x2001) /* where what is fetched goes */

static struct bench b;
static struct entries e;

static uint8_t *local(uint64_t address)
{
    return b.u.node.memory + BENCH_LOCAL + address;
}

/* The list is what `e` holds. */
static struct netdam_descriptor descriptor(uint64_t list, uint64_t user_data)
{
    struct netdam_descriptor d = {
        .opcode = NETDAM_OP_TRANSACTION,
        .user_data = user_data,
        .peer = b.peer,
        .length = e.length,
        .local_region = b.region,
        .u.buffer = {list, RESULT},
    };

    memcpy(local(list), e.bytes, e.length);
    memset(local(list) + e.length, 0, 16); /* as padding has to be, but none of the list */
    return d;
}

static void post(struct ndtest_packet *sent)
{
    struct netdam_descriptor d = descriptor(LIST, 77);

    bench_do(&b, &d);
    unit_expect_sent(&b.u, sent);
}

static void start(void)
{
    bench_start(&b, NULL, 4, GENERATION);
    entries_base(&e, "12345");
}

static struct netdam_completion completion(enum netdam_status status, uint32_t length, uint64_t result)
{
    struct netdam_completion c = unit_completion(&b.queue);

    assert_int_equal(c.status, status);
    assert_int_equal(c.length, length);
    assert_true(c.result == result);
    assert_int_equal(c.opcode, NETDAM_OP_TRANSACTION);
    assert_int_equal(c.flags, 0);
    assert_int_equal(c.hop, 0);
    unit_expect_no_completion(&b.queue);
    return c;
}

static void lists_are_sent_as_they_are_and_what_comes_back_is_stored(void **state)
{
    (void)state;
    for (uint64_t list = LIST; list < LIST + 8; list++) {
        struct ndtest_packet sent;
        uint8_t around[24];

        start();
        {
            struct netdam_descriptor d = descriptor(list, list);

            bench_do(&b, &d);
        }
        unit_expect_sent(&b.u, &sent);
        unit_expect_silence(&b.u);
        assert_int_equal(sent.opcode, NETDAM_OP_TRANSACTION);
        assert_int_equal(sent.operation | sent.type, 0);
        assert_int_equal(sent.length, e.length);
        assert_int_equal(sent.payload_bytes, e.length);
        assert_memory_equal(sent.payload, e.bytes, e.length);
        assert_true(sent.key == 0 && sent.address == 0 && sent.generation == GENERATION);
        assert_int_equal(sent.flags, NETDAM_FLAG_PAYLOAD_CRC);
        assert_true(sent.number == b.u.fw->peers[b.peer].lane.floor);
        memcpy(around, local(RESULT - 8), sizeof(around));
        unit_answer(&b.u, &sent,
                    &(struct unit_answer){.length = 8, .payload_length = 8, .payload = (const uint8_t *)"fetched!"});
        assert_true(completion(NETDAM_STATUS_OK, 8, 0).user_data == list);
        memcpy(around + 8, "fetched!", 8);
        assert_memory_equal(local(RESULT - 8), around, sizeof(around));
        unit_stop(&b.u);
    }
}

static void completions_of_refusals_name_the_entry(void **state)
{
    static const enum netdam_status statuses[] = {NETDAM_STATUS_BAD_KEY, NETDAM_STATUS_BAD_RANGE,
                                                  NETDAM_STATUS_NO_PERMISSION, NETDAM_STATUS_COMPARE_FAILED};

    (void)state;
    start();
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
        for (uint32_t entry = 0; entry < 16; entry += 5) {
            struct ndtest_packet sent;
            uint8_t before[16];

            post(&sent);
            memcpy(before, local(RESULT), sizeof(before));
            unit_answer(&b.u, &sent, &(struct unit_answer){.status = (uint8_t)statuses[i], .length = entry});
            completion(statuses[i], 0, entry);
            assert_memory_equal(local(RESULT), before, sizeof(before));
        }
    }
    unit_stop(&b.u);
}

static void answers_that_no_node_gives_are_none(void **state)
{
    static const struct {
        const char *what;
        struct unit_answer answer;
        uint8_t opcode; /* 0: as in the request */
    } rows[] = {
        {"more than was to be fetched", {.length = 9, .payload_length = 9}, 0},
        {"a whole packet", {.length = 1400, .payload_length = 1400}, 0},
        {"a refusal with payload", {.status = NETDAM_STATUS_COMPARE_FAILED, .length = 1, .payload_length = 8}, 0},
        {"an entry that cannot be", {.status = NETDAM_STATUS_COMPARE_FAILED, .length = 16}, 0},
        {"an entry far away", {.status = NETDAM_STATUS_BAD_KEY, .length = UINT32_MAX}, 0},
        {"OK to a WRITE", {.length = 0}, NETDAM_OP_WRITE},
        {"a status of the requester's own", {.status = NETDAM_STATUS_TIMEOUT}, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ndtest_packet sent, answered;
        uint8_t before[16];

        start();
        memcpy(before, local(RESULT), sizeof(before));
        post(&sent);
        answered = sent;
        answered.opcode = rows[i].opcode != 0 ? rows[i].opcode : sent.opcode;
        unit_answer(&b.u, &answered, &rows[i].answer);
        if (ndtest_queue_ready(&b.queue) != 0) {
            fail_msg("%s: believed", rows[i].what);
        }
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
        assert_memory_equal(local(RESULT), before, sizeof(before));
        unit_answer(&b.u, &sent, &(struct unit_answer){.length = 3, .payload_length = 3}); /* fewer may come */
        completion(NETDAM_STATUS_OK, 3, 0);
        memset(before, 0, 3);
        assert_memory_equal(local(RESULT), before, sizeof(before));
        unit_stop(&b.u);
    }
}

static void lists_of_wrong_form_are_not_sent(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(entries_flaws); i++) {
        struct netdam_descriptor d;

        start();
        d = descriptor(LIST, i);
        bench_do(&b, &d); /* unchanged it is right */
        assert_int_equal(b.u.count, 1);
        unit_drop_sent(&b.u);
        entries_flaws[i].make(&e);
        d = descriptor(LIST, i);
        bench_do(&b, &d);
        if (b.u.count != 0) {
            fail_msg("%s: sent", entries_flaws[i].what);
        }
        completion(NETDAM_STATUS_LOCAL_DESCRIPTOR, 0, 0);
        unit_stop(&b.u);
    }
}

static void descriptors_that_contradict_themselves_are_refused(void **state)
{
    static const struct {
        const char *what;
        size_t offset;
        uint64_t value;
        unsigned bytes;
        enum netdam_status status;
    } rows[] = {
#define FIELD(member) offsetof(struct netdam_descriptor, member)
        {"operation", FIELD(operation), NETDAM_ALU_SUM, 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"type", FIELD(type), NETDAM_TYPE_U64, 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list_count", FIELD(list_count), 1, 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"LIST without entries", FIELD(flags), NETDAM_DESCRIPTOR_LIST, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"RELAXED", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"UNRELIABLE", FIELD(flags), NETDAM_DESCRIPTOR_UNRELIABLE, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"IMMEDIATE", FIELD(flags), NETDAM_DESCRIPTOR_IMMEDIATE, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate", FIELD(immediate), 1, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"remote_key", FIELD(remote_key), UNIT_KEY, 8, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"remote_address", FIELD(remote_address), 8, 8, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no length", FIELD(length), 0, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"a longer list than a packet", FIELD(length), 1408, 4, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"local_region", FIELD(local_region), 9, 4, NETDAM_STATUS_LOCAL_REGION},
        {"local_address", FIELD(u.buffer.local_address), BENCH_LENGTH - 87, 8, NETDAM_STATUS_LOCAL_RANGE},
        {"result_address", FIELD(u.buffer.result_address), BENCH_LENGTH - 7, 8, NETDAM_STATUS_LOCAL_RANGE},
        {"result_address wraps", FIELD(u.buffer.result_address), UINT64_MAX - 3, 8, NETDAM_STATUS_LOCAL_RANGE},
        {"peer", FIELD(peer), 3, 4, NETDAM_STATUS_LOCAL_PEER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_completion c;
        struct netdam_descriptor d;

        start();
        d = descriptor(LIST, i);
        memcpy((uint8_t *)&d + rows[i].offset, &rows[i].value, rows[i].bytes);
        bench_do(&b, &d);
        if (b.u.count != 0) {
            fail_msg("%s: sent", rows[i].what);
        }
        c = unit_completion(&b.queue);
        if (c.status != (uint8_t)rows[i].status || c.result != 0 || c.length != 0) {
            fail_msg("%s: status %#x", rows[i].what, c.status);
        }
        unit_stop(&b.u);
    }
}

static void a_gather_list_is_refused_even_where_it_is_right(void **state)
{
    struct netdam_list_entry entry;
    struct netdam_descriptor d;

    (void)state;
    start();
    d = descriptor(LIST, 1);
    entry = (struct netdam_list_entry){b.region, e.length, LIST};
    memcpy(local(0x800), &entry, sizeof(entry));
    d.u.buffer.local_address = 0x800;
    d.flags = NETDAM_DESCRIPTOR_LIST;
    d.list_count = 1;
    bench_do(&b, &d);
    unit_expect_silence(&b.u);
    completion(NETDAM_STATUS_LOCAL_DESCRIPTOR, 0, 0);
    unit_stop(&b.u);
}

static void the_longest_list_is_what_a_packet_holds(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        uint32_t most = family == 4 ? 1400 : 1384;

        bench_start(&b, NULL, family, GENERATION);
        for (uint32_t length = most; length <= most + 8; length += 8) {
            struct netdam_descriptor d;

            e.length = 0;
            entries_add(&e, WRITE, 0, length - 24, NULL);
            d = descriptor(LIST, length);
            bench_do(&b, &d);
            assert_int_equal(b.u.count, length == most);
            unit_drop_sent(&b.u);
        }
        completion(NETDAM_STATUS_LOCAL_DESCRIPTOR, 0, 0);
        unit_stop(&b.u);
    }
}

static void permissions_are_those_that_the_list_needs(void **state)
{
    const uint32_t r = NETDAM_PERMISSION_LOCAL_READ, w = NETDAM_PERMISSION_LOCAL_WRITE;

    (void)state;
    for (unsigned fetches = 0; fetches < 2; fetches++) {
        for (uint32_t permissions = 0; permissions < 4; permissions++) {
            uint32_t has = ((permissions & 1) != 0 ? r : 0) | ((permissions & 2) != 0 ? w : 0);
            uint32_t needs = r | (fetches != 0 ? w : 0);
            struct netdam_descriptor d;

            start();
            if (fetches == 0) {
                e.length = e.last;
            }
            d = descriptor(LIST, 1);
            d.local_region = unit_region(&b.u, BENCH_LOCAL, BENCH_LENGTH - 3, has, 0);
            bench_do(&b, &d);
            assert_int_equal(b.u.count, (has & needs) == needs);
            if (b.u.count == 0) {
                completion(NETDAM_STATUS_LOCAL_PERMISSION, 0, 0);
            }
            unit_stop(&b.u);
        }
    }
}

static void without_a_fetch_nothing_is_stored_and_the_result_address_is_not_looked_at(void **state)
{
    struct ndtest_packet sent;
    struct netdam_descriptor d;

    (void)state;
    start();
    e.length = e.last;
    d = descriptor(LIST, 77);
    d.u.buffer.result_address = UINT64_MAX;
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &sent);
    unit_answer(&b.u, &sent, &(struct unit_answer){.length = 1, .payload_length = 1});
    unit_expect_no_completion(&b.queue);
    unit_answer(&b.u, &sent, &(struct unit_answer){.length = 0});
    completion(NETDAM_STATUS_OK, 0, 0);
    unit_stop(&b.u);
}

/* What was sent before the list changed may still be executed, so that a refusal of the later form says nothing. */
static void a_list_that_changes_costs_certainty_and_nothing_else(void **state)
{
    struct ndtest_packet sent, again;

    (void)state;
    for (unsigned repeated = 0; repeated < 2; repeated++) {
        start();
        post(&sent);
        memset(local(LIST), 0xff, e.length);
        if (repeated != 0) {
            unit_run_for(&b.u, 11 * UNIT_MS);
            unit_expect_sent(&b.u, &again);
            assert_true(again.number == sent.number);
            assert_int_equal(again.payload_bytes, e.length);
            assert_int_equal(again.payload[0], 0xff);
        }
        unit_answer(&b.u, &sent, &(struct unit_answer){.status = NETDAM_STATUS_BAD_LENGTH});
        completion(repeated != 0 ? NETDAM_STATUS_FLUSHED : NETDAM_STATUS_BAD_LENGTH, 0, 0);
        unit_stop(&b.u);
    }
    start(); /* a repeated one may well be refused otherwise */
    post(&sent);
    unit_run_for(&b.u, 11 * UNIT_MS);
    unit_answer(&b.u, &sent, &(struct unit_answer){.status = NETDAM_STATUS_COMPARE_FAILED, .length = 2});
    completion(NETDAM_STATUS_COMPARE_FAILED, 0, 2);
    unit_stop(&b.u);
}

static void a_region_that_goes_meanwhile_leaves_it_uncertain(void **state)
{
    (void)state;
    for (unsigned when = 0; when < 2; when++) {
        struct ndtest_packet sent;
        uint8_t before[16];
        uint64_t args[1];

        start();
        memcpy(before, local(RESULT), sizeof(before));
        post(&sent);
        args[0] = b.region;
        assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_REGION_DESTROY, args, 1, NULL), NETDAM_ADMIN_STATUS_OK);
        (void)unit_region(&b.u, BENCH_LOCAL, BENCH_LENGTH, NETDAM_PERMISSION_ALL, 0); /* in the same entry */
        if (when == 0) {
            unit_answer(&b.u, &sent, &(struct unit_answer){.length = 8, .payload_length = 8});
        } else {
            unit_run_for(&b.u, 11 * UNIT_MS);
            unit_expect_silence(&b.u);
        }
        completion(NETDAM_STATUS_FLUSHED, 0, 0);
        assert_memory_equal(local(RESULT), before, sizeof(before));
        unit_stop(&b.u);
    }
}

static void busy_is_tried_again_and_ordered_ones_wait(void **state)
{
    struct ndtest_packet sent, again, second;
    struct netdam_descriptor d;

    (void)state;
    start();
    d = descriptor(LIST, 1);
    d.flags = NETDAM_DESCRIPTOR_ORDERED;
    bench_do(&b, &d);
    d.user_data = 2;
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &sent);
    unit_expect_silence(&b.u);
    assert_true((sent.flags & NETDAM_FLAG_ORDERED) != 0);
    unit_answer(&b.u, &sent, &(struct unit_answer){.status = NETDAM_STATUS_BUSY});
    unit_expect_no_completion(&b.queue);
    unit_run_for(&b.u, 11 * UNIT_MS);
    unit_expect_sent(&b.u, &again);
    unit_expect_silence(&b.u);
    assert_true(again.number == sent.number);
    assert_true((again.flags & NETDAM_FLAG_AGAIN) != 0);
    unit_answer(&b.u, &again, &(struct unit_answer){.length = 8, .payload_length = 8});
    assert_true(completion(NETDAM_STATUS_OK, 8, 0).user_data == 1);
    unit_expect_sent(&b.u, &second);
    assert_true(second.number == sent.number + 1);
    unit_stop(&b.u);
}

/* Requester and node in one: through the frames to the node itself. */
static void a_node_transacts_with_itself(void **state)
{
    uint64_t peer[] = {0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16}, results[NETDAM_ADMIN_RESULTS];
    struct netdam_descriptor d;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    (void)unit_region(&b.u, 0x70000, 0x100, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_memory_put(&b.u, 0x70000, 8, 41);
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), NETDAM_ADMIN_STATUS_OK);
    for (unsigned round = 0; round < 2; round++) { /* the second finds what the first left */
        e.length = 0;
        entries_add_word(&e, COMPARE, 0, 41);
        entries_add(&e, FETCH, 0, 8, NULL);
        entries_add_word(&e, WRITE, 0, 42);
        d = descriptor(LIST, round);
        d.peer = (uint32_t)results[0];
        bench_do(&b, &d);
        if (round == 0) {
            completion(NETDAM_STATUS_OK, 8, 0);
            assert_true(unit_memory_get(&b.u, BENCH_LOCAL + RESULT, 8) == 41);
        } else {
            completion(NETDAM_STATUS_COMPARE_FAILED, 0, 0);
        }
        assert_true(unit_memory_get(&b.u, 0x70000, 8) == 42);
    }
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_sent_as_they_are_and_what_comes_back_is_stored),
        cmocka_unit_test(completions_of_refusals_name_the_entry),
        cmocka_unit_test(answers_that_no_node_gives_are_none),
        cmocka_unit_test(lists_of_wrong_form_are_not_sent),
        cmocka_unit_test(descriptors_that_contradict_themselves_are_refused),
        cmocka_unit_test(a_gather_list_is_refused_even_where_it_is_right),
        cmocka_unit_test(the_longest_list_is_what_a_packet_holds),
        cmocka_unit_test(permissions_are_those_that_the_list_needs),
        cmocka_unit_test(without_a_fetch_nothing_is_stored_and_the_result_address_is_not_looked_at),
        cmocka_unit_test(a_list_that_changes_costs_certainty_and_nothing_else),
        cmocka_unit_test(a_region_that_goes_meanwhile_leaves_it_uncertain),
        cmocka_unit_test(busy_is_tried_again_and_ordered_ones_wait),
        cmocka_unit_test(a_node_transacts_with_itself),
    };

    return cmocka_run_group_tests_name("transaction_post", tests, NULL, NULL);
}
