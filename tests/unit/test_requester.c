/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: from descriptors to packets and from answers to completions. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

/* Bytes that answers return: of remote address `at`. */
static uint8_t remote_byte(uint64_t at)
{
    return (uint8_t)(at * 37 + (at >> 8) + 5);
}

static void fill_remote(uint8_t *to, uint64_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = remote_byte(at + i);
    }
}

static void split_once(uint32_t mtu, unsigned family, unsigned opcode, uint32_t length, uint64_t local)
{
    static struct bench b;
    static uint8_t before[0x30000], returned[NETDAM_MTU_MAX];
    struct netdam_fw_config config = bench_config();
    uint32_t most = netdam_payload_max(family == 6 ? mtu - 20 : mtu);
    uint32_t want = length == 0 ? 1 : (length + most - 1) / most;
    struct netdam_completion completion;
    struct netdam_descriptor d;
    struct bench_packets sent;
    bool lane = opcode != NETDAM_OP_READ && opcode != NETDAM_OP_ECHO;
    bool source = opcode != NETDAM_OP_READ;

    config.mtu = mtu;
    bench_start(&b, &config, family, GENERATION);
    d = bench_descriptor(&b, opcode, local, length, 42);
    if (opcode == NETDAM_OP_REDUCE) {
        d.operation = NETDAM_ALU_SUM;
        d.type = NETDAM_TYPE_U8;
    }
    memcpy(before, b.u.node.memory + BENCH_LOCAL - 64, BENCH_LENGTH + 128);
    bench_do(&b, &d);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, want);
    for (uint32_t i = 0, at = 0; i < want; i++) {
        const struct ndtest_packet *p = &sent.packet[i];
        uint32_t part = length - at < most ? length - at : most;

        assert_int_equal(p->kind, NETDAM_KIND_REQUEST);
        assert_int_equal(p->opcode, opcode);
        assert_int_equal(p->operation, d.operation);
        assert_int_equal(p->type, d.type);
        assert_int_equal(p->length, part);
        assert_int_equal(p->flags, source && part != 0 ? NETDAM_FLAG_PAYLOAD_CRC : 0);
        assert_true(p->key == d.remote_key);
        assert_true(opcode == NETDAM_OP_ECHO || p->address == BENCH_REMOTE + at);
        assert_true(p->generation == (opcode == NETDAM_OP_ECHO ? 0 : GENERATION));
        assert_true(p->number == 1 + i);
        assert_int_equal(p->distance, lane ? i : 0);
        assert_int_equal(p->payload_bytes, source ? part : 0);
        assert_memory_equal(p->payload, before + 64 + local + at, p->payload_bytes);
        at += part;
    }
    /* Answered in reverse order. */
    for (uint32_t i = want; i-- > 0;) {
        uint32_t at = i * most;

        unit_expect_no_completion(&b.queue);
        fill_remote(returned, BENCH_REMOTE + at, sent.packet[i].length);
        unit_answer_ok(&b.u, &sent.packet[i], returned);
    }
    completion = unit_completion(&b.queue);
    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    assert_int_equal(completion.length, length);
    assert_true(completion.user_data == 42 && completion.result == 0);
    assert_int_equal(completion.opcode, opcode);
    assert_int_equal(completion.flags, 0);
    assert_int_equal(completion.queue_pair, b.queue.id);
    unit_expect_no_completion(&b.queue);
    if (!lane) { /* what came back lies where it belongs, and nothing beside */
        fill_remote(before + 64 + local, BENCH_REMOTE, length);
    }
    assert_memory_equal(b.u.node.memory + BENCH_LOCAL - 64, before, BENCH_LENGTH + 128);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void requests_are_split_by_the_mtu(void **state)
{
    static const uint32_t mtus[] = {1500, 1501, 4321, 9000};
    static const uint8_t opcodes[] = {NETDAM_OP_WRITE, NETDAM_OP_READ, NETDAM_OP_REDUCE, NETDAM_OP_ECHO};

    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
        for (unsigned family = 4; family <= 6; family += 2) {
            uint32_t most = netdam_payload_max(family == 6 ? mtus[m] - 20 : mtus[m]);
            const uint32_t lengths[] = {0, 1, most - 1, most, most + 1, 2 * most, 3 * most + 7};

            for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++) {
                for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
                    split_once(mtus[m], family, opcodes[o], lengths[l], l % 2 == 0 ? 0 : BENCH_LENGTH - lengths[l]);
                }
            }
        }
    }
}

static void frames_never_exceed_the_mtu(void **state)
{
    static struct bench b;

    (void)state;
    for (uint32_t mtu = 1500; mtu <= 9000; mtu += 1250) {
        for (unsigned family = 4; family <= 6; family += 2) {
            struct netdam_fw_config config = bench_config();
            size_t bytes, most = 0;

            config.mtu = mtu;
            bench_start(&b, &config, family, GENERATION);
            bench_write(&b, 60000, 1);
            while (unit_sent_frame(&b.u, &bytes) != NULL) {
                most = bytes > most ? bytes : most;
            }
            assert_true(most <= 14 + mtu && most > 14 + mtu - 8);
            unit_stop(&b.u);
        }
    }
}

static void atomics_carry_their_operands_and_bring_back_the_old_value(void **state)
{
    static struct bench b;
    const uint64_t first = UINT64_C(0x8182838485868788), second = UINT64_C(0x9192939495969798);
    const uint64_t old = UINT64_C(0xf1f2f3f4f5f6f7f8);
    uint64_t number = 0;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_I64; type++) {
        unsigned bytes = netdam_type_bytes(type);

        for (unsigned o = 0; o < 2; o++) {
            struct netdam_descriptor d =
                bench_atomic(&b, o == 0 ? NETDAM_OP_FETCH_ADD : NETDAM_OP_CAS, type, first, o == 0 ? 0 : second, type);
            struct netdam_completion completion;
            struct ndtest_packet p;

            bench_do(&b, &d);
            unit_expect_sent(&b.u, &p);
            assert_int_equal(p.opcode, d.opcode);
            assert_int_equal(p.type, type);
            assert_int_equal(p.length, bytes);
            assert_true(p.number == ++number);
            assert_int_equal(p.payload_bytes, o == 0 ? bytes : 2 * bytes);
            assert_memory_equal(p.payload, &first, bytes);
            assert_true(o == 0 || memcmp(p.payload + bytes, &second, bytes) == 0);
            unit_answer_ok(&b.u, &p, (const uint8_t *)&old);
            completion = unit_completion(&b.queue);
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
            assert_int_equal(completion.length, bytes);
            assert_true(completion.result == (bytes == 8 ? old : old & ((UINT64_C(1) << 8 * bytes) - 1)));
        }
    }
    unit_stop(&b.u);
}

static void refusals_end_up_in_the_completion(void **state)
{
    static struct bench b;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned status = 1; status <= UINT8_MAX; status++) {
        struct unit_answer answer = {.status = (uint8_t)status};
        struct ndtest_packet p;
        bool refusal = netdam_status_class_of(status) == NETDAM_STATUS_CLASS_REFUSED;

        if (status == NETDAM_STATUS_STALE || status == NETDAM_STATUS_BUSY) {
            continue;
        }
        bench_write(&b, 8, status);
        unit_expect_sent(&b.u, &p);
        unit_answer(&b.u, &p, &answer);
        if (refusal) {
            struct netdam_completion completion = unit_completion(&b.queue);

            assert_int_equal(completion.status, status);
            assert_int_equal(completion.length, 0);
            assert_int_equal(completion.flags, 0);
        } else { /* no node may say that: local, uncertain or undefined */
            unit_expect_no_completion(&b.queue);
            unit_answer_ok(&b.u, &p, NULL);
            unit_expect_completion(&b.queue, status, NETDAM_STATUS_OK);
        }
    }
    unit_stop(&b.u);
}

static void an_answer_without_opcode_ends_a_request_of_either_kind(void **state)
{
    static struct bench b;
    static const uint8_t opcodes[] = {NETDAM_OP_WRITE, NETDAM_OP_READ};

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 2; i++) {
        struct netdam_descriptor d = bench_descriptor(&b, opcodes[i], 0, 8, i);
        struct unit_answer answer = {.status = NETDAM_STATUS_BAD_VERSION};
        struct ndtest_packet p;

        bench_do(&b, &d);
        unit_expect_sent(&b.u, &p);
        p.opcode = 0;
        unit_answer(&b.u, &p, &answer);
        unit_expect_completion(&b.queue, i, NETDAM_STATUS_BAD_VERSION);
    }
    unit_stop(&b.u);
}

static void partial_says_how_much_was_applied(void **state)
{
    /* Per packet of three: 0 refused, 1 applied. */
    static struct bench b;
    struct bench_packets sent;

    (void)state;
    for (unsigned applied = 0; applied < 8; applied++) {
        unsigned count = (applied & 1) + (applied >> 1 & 1) + (applied >> 2);
        struct netdam_completion completion;

        bench_start(&b, NULL, 4, GENERATION);
        bench_write(&b, 3 * 1400, 5);
        bench_collect(&b, &sent);
        assert_int_equal(sent.count, 3);
        for (unsigned i = 0; i < 3; i++) {
            struct unit_answer refused = {.status =
                                              (uint8_t)(i == 0 ? NETDAM_STATUS_BAD_KEY : NETDAM_STATUS_NO_PERMISSION)};

            unit_expect_no_completion(&b.queue);
            if ((applied >> i & 1) != 0) {
                unit_answer_ok(&b.u, &sent.packet[i], NULL);
            } else {
                unit_answer(&b.u, &sent.packet[i], &refused);
            }
        }
        completion = unit_completion(&b.queue);
        /* The first refusal is the one that is told. */
        assert_int_equal(completion.status, count == 3           ? NETDAM_STATUS_OK
                                            : (applied & 1) == 0 ? NETDAM_STATUS_BAD_KEY
                                                                 : NETDAM_STATUS_NO_PERMISSION);
        assert_int_equal(completion.length, count * 1400);
        assert_int_equal(completion.flags, count != 0 && count != 3 ? NETDAM_COMPLETION_PARTIAL : 0);
        bench_free(&sent);
        unit_stop(&b.u);
    }
}

static void after_a_refusal_nothing_more_of_the_request_is_sent(void **state)
{
    static struct bench b;
    struct netdam_fw_config config = bench_config();
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    struct bench_packets sent;

    (void)state;
    config.window = 4;
    bench_start(&b, &config, 4, GENERATION);
    bench_write(&b, 20 * 1400, 5);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 4);
    unit_answer(&b.u, &sent.packet[0], &refused);
    unit_expect_silence(&b.u);
    for (unsigned i = 1; i < 4; i++) {
        unit_expect_no_completion(&b.queue);
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
        unit_expect_silence(&b.u);
    }
    {
        struct netdam_completion completion = unit_completion(&b.queue);

        assert_int_equal(completion.status, NETDAM_STATUS_BAD_RANGE);
        assert_int_equal(completion.flags, NETDAM_COMPLETION_PARTIAL);
        assert_int_equal(completion.length, 3 * 1400);
    }
    bench_free(&sent);
    unit_stop(&b.u);
}

static void what_is_uncertain_outdoes_what_was_refused(void **state)
{
    static struct bench b;
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_RANGE};
    struct netdam_completion completion;
    struct bench_packets sent;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 3 * 1400, 5);
    bench_collect(&b, &sent);
    unit_answer(&b.u, &sent.packet[0], &refused);
    unit_answer_ok(&b.u, &sent.packet[1], NULL);
    unit_run_for(&b.u, 1000 * UNIT_MS); /* the third is never answered */
    completion = unit_completion(&b.queue);
    assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
    assert_int_equal(completion.flags, NETDAM_COMPLETION_PARTIAL);
    assert_int_equal(completion.length, 1400);
    bench_free(&sent);
    unit_stop(&b.u);
}

/* Answers that match nothing, or not quite; each is counted and changes nothing. */
static void answers_that_do_not_match_are_ignored(void **state)
{
    static const struct {
        const char *what;
        uint8_t opcode; /* 0: the request's */
        uint8_t status;
        int64_t number;   /* added */
        uint64_t context; /* exclusive or */
        uint32_t payload;
    } rows[] = {
        {"wrong context", 0, 0, 0, 1, 16},
        {"the number before", 0, 0, -1, 0, 16},
        {"the number after", 0, 0, 1, 0, 16},
        {"a window further", 0, 0, 256, 0, 16},
        {"number 0", 0, 0, -1, 0, 16},
        {"too short", 0, 0, 0, 0, 15},
        {"empty", 0, 0, 0, 0, 0},
        {"too long", 0, 0, 0, 0, 17},
        {"much too long", 0, 0, 0, 0, 1400},
        {"the opcode of another sequence", NETDAM_OP_WRITE, 0, 0, 0, 0},
        {"another opcode of the same sequence", NETDAM_OP_ECHO, 0, 0, 0, 16},
        {"a confirmation of what is not finished", NETDAM_OP_CONFIRM, 0, 1, 0, 0},
        {"a status of our own", 0, NETDAM_STATUS_TIMEOUT, 0, 0, 0},
        {"an undefined status", 0, 0x30, 0, 0, 0},
    };
    static struct bench b;
    static uint8_t before[0x10000];
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    d = bench_descriptor(&b, NETDAM_OP_READ, 8, 16, 5);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &p);
    memcpy(before, b.u.node.memory + BENCH_LOCAL, sizeof(before));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ndtest_packet wrong = p;
        struct unit_answer answer = {.status = rows[i].status, .length = 16, .payload_length = rows[i].payload};
        uint64_t unmatched = unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED);

        wrong.opcode = rows[i].opcode != 0 ? rows[i].opcode : p.opcode;
        wrong.number += (uint64_t)rows[i].number;
        wrong.context ^= rows[i].context;
        unit_answer(&b.u, &wrong, &answer);
        if (unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED) != unmatched + 1) {
            fail_msg("%s: not counted", rows[i].what);
        }
        unit_expect_no_completion(&b.queue);
        assert_memory_equal(before, b.u.node.memory + BENCH_LOCAL, sizeof(before));
        unit_expect_silence(&b.u);
    }
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_OK);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_MATCHED), 1);
    unit_stop(&b.u);
}

static void doubled_and_late_answers_do_not_touch_a_buffer_in_its_new_use(void **state)
{
    static struct bench b;
    uint8_t first[16], second[16];
    struct netdam_descriptor d;
    struct ndtest_packet p, q;

    (void)state;
    memset(first, 1, 16);
    memset(second, 2, 16);
    bench_start(&b, NULL, 4, GENERATION);
    d = bench_descriptor(&b, NETDAM_OP_READ, 0, 16, 5);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, first);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_OK);
    assert_memory_equal(b.u.node.memory + BENCH_LOCAL, first, 16);
    unit_memory_put(&b.u, BENCH_LOCAL, 8, 99); /* the application's */
    unit_answer_ok(&b.u, &p, first);
    assert_true(unit_memory_get(&b.u, BENCH_LOCAL, 8) == 99);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &q);
    assert_true(q.number == p.number + 1);
    unit_answer_ok(&b.u, &p, first); /* meant for the first */
    unit_expect_no_completion(&b.queue);
    assert_true(unit_memory_get(&b.u, BENCH_LOCAL, 8) == 99);
    unit_answer_ok(&b.u, &q, second);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_OK);
    assert_memory_equal(b.u.node.memory + BENCH_LOCAL, second, 16);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 2);
    unit_stop(&b.u);
}

/* What happens to the local region while the request is under way. */
static void a_local_region_that_goes_in_flight_ends_the_request(void **state)
{
    static const uint8_t opcodes[] = {NETDAM_OP_READ, NETDAM_OP_ECHO, NETDAM_OP_WRITE};
    static struct bench b;

    (void)state;
    for (unsigned replaced = 0; replaced < 2; replaced++) {
        for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
            static uint8_t before[0x20100];
            uint8_t returned[16];
            struct netdam_descriptor d;
            struct ndtest_packet p;

            memset(returned, 0xee, sizeof(returned));
            bench_start(&b, NULL, 4, GENERATION);
            d = bench_descriptor(&b, opcodes[i], 0, 16, 5);
            bench_do(&b, &d);
            unit_expect_sent(&b.u, &p);
            assert_int_equal(ndtest_region_destroy(&b.u.node, b.region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
            if (replaced) { /* the same index, the same bytes, but another region */
                assert_int_equal(unit_region(&b.u, BENCH_LOCAL, BENCH_LENGTH, NETDAM_PERMISSION_ALL, 0), b.region);
            }
            memcpy(before, b.u.node.memory + BENCH_LOCAL, sizeof(before));
            if (opcodes[i] == NETDAM_OP_WRITE) {
                unit_advance(&b.u, 10 * UNIT_MS);
                unit_run(&b.u); /* wants to send again, and may not read any more */
                unit_expect_silence(&b.u);
            } else {
                unit_answer_ok(&b.u, &p, returned);
            }
            /* What was sent and modifies may have been applied: it is not refused any more, but given up. */
            unit_expect_completion(&b.queue, 5,
                                   opcodes[i] == NETDAM_OP_WRITE ? NETDAM_STATUS_FLUSHED : NETDAM_STATUS_LOCAL_REGION);
            assert_memory_equal(before, b.u.node.memory + BENCH_LOCAL, sizeof(before));
            unit_stop(&b.u);
        }
    }
}

/* Taken, but not sent yet: nothing can have been applied. */
static void a_local_region_that_goes_before_sending_refuses_the_request(void **state)
{
    struct unit_answer stale = {.status = NETDAM_STATUS_STALE, .generation = GENERATION};
    static struct bench b;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    bench_write(&b, 16, 5);
    unit_expect_sent(&b.u, &p); /* the question for the generation */
    assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
    assert_int_equal(ndtest_region_destroy(&b.u.node, b.region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_answer(&b.u, &p, &stale);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_LOCAL_REGION);
    unit_expect_silence(&b.u);
    unit_stop(&b.u);
}

/* An ECHO changes nothing: that it cannot be repeated is a plain error. */
static void an_echo_whose_region_goes_is_refused(void **state)
{
    static struct bench b;
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    d = bench_descriptor(&b, NETDAM_OP_ECHO, 0, 16, 5);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(ndtest_region_destroy(&b.u.node, b.region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_run_for(&b.u, 30 * UNIT_MS);
    unit_expect_silence(&b.u);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_LOCAL_REGION);
    unit_stop(&b.u);
}

static void a_write_whose_region_goes_is_still_ok_when_it_was_answered(void **state)
{
    static struct bench b;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bench_write(&b, 16, 5);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(ndtest_region_destroy(&b.u.node, b.region, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_OK);
    unit_stop(&b.u);
}

static void a_full_port_holds_back_and_loses_nothing(void **state)
{
    static struct bench b;
    struct bench_packets sent;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.u.port_room = 2;
    bench_write(&b, 5 * 1400, 5);
    assert_int_equal(b.u.count, 2);
    assert_true(b.u.result.port_full);
    assert_true(b.u.result.more);
    unit_run(&b.u);
    assert_int_equal(b.u.count, 2);
    b.u.port_room = 1;
    unit_run(&b.u);
    assert_int_equal(b.u.count, 3);
    b.u.port_room = UINT32_MAX;
    unit_run(&b.u);
    assert_false(b.u.result.port_full);
    bench_collect(&b, &sent);
    assert_int_equal(sent.count, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(sent.packet[i].number == 1 + i);
        assert_true(sent.packet[i].address == BENCH_REMOTE + 1400u * i);
        unit_answer_ok(&b.u, &sent.packet[i], NULL);
    }
    unit_expect_completion(&b.queue, 5, NETDAM_STATUS_OK);
    bench_free(&sent);
    unit_stop(&b.u);
}

static void the_budget_bounds_one_call_of_run(void **state)
{
    static struct bench b;
    struct netdam_descriptor d;
    unsigned calls = 0;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 20 * 1400, 5);
    unit_post(&b.u, &b.queue, &d);
    do {
        uint32_t before = b.u.count;

        b.u.node.ops->run(b.u.node.state, b.u.now_ns, 3000, &b.u.result);
        assert_in_range(b.u.count - before, 1, 4);
        assert_true(b.u.result.work_bytes >= 1400);
        calls++;
    } while (b.u.result.more);
    assert_int_equal(b.u.count, 20);
    assert_in_range(calls, 5, 20);
    unit_stop(&b.u);
}

static void a_long_request_lets_short_ones_of_the_same_peer_through(void **state)
{
    static struct bench b;
    struct netdam_descriptor lengthy, brief;
    static struct bench_packets sent;
    unsigned position = 128;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    lengthy = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 90 * 1400, 1);
    brief = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 8, 2);
    unit_post(&b.u, &b.queue, &lengthy);
    unit_post(&b.u, &b.queue, &brief);
    unit_run(&b.u);
    bench_collect(&b, &sent);
    for (unsigned i = 0; i < sent.count; i++) {
        position = sent.packet[i].length == 8 ? i : position;
    }
    assert_true(position <= 16);
    assert_int_equal(sent.count, 32); /* and the long one goes on behind it */
    assert_int_equal(sent.packet[31].length, 1400);
    bench_free(&sent);
    unit_stop(&b.u);
}

static unsigned seen[NETDAM_FW_TRACE_COUNT];

static void see(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t x, uint64_t y, uint64_t z)
{
    (void)opaque, (void)node, (void)x, (void)y, (void)z;
    seen[event]++;
}

static void counters_and_traces_tell_what_happened(void **state)
{
    static struct bench b;
    struct unit_answer refused = {.status = NETDAM_STATUS_BAD_KEY};
    struct ndtest_packet p;

    (void)state;
    memset(seen, 0, sizeof(seen));
    bench_start(&b, NULL, 4, GENERATION);
    b.u.node.hooks.trace = see;
    bench_write(&b, 8, 1);
    bench_write(&b, 8, 2);
    unit_expect_sent(&b.u, &p);
    unit_answer_ok(&b.u, &p, NULL);
    unit_expect_sent(&b.u, &p);
    unit_advance(&b.u, 80 * UNIT_MS);
    unit_run(&b.u);
    unit_expect_sent(&b.u, &p);
    unit_answer(&b.u, &p, &refused);
    unit_answer(&b.u, &p, &refused);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_DESCRIPTORS), 2);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_COMPLETIONS), 2);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_COMPLETION_ERRORS), 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TX_FRAMES), 3);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TX_BYTES), 3 * (42 + 64 + 8 + 4));
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_FRAMES), 3);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_BYTES), 3 * (42 + 64));
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RETRANSMISSIONS), 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_MATCHED), 2);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
    assert_int_equal(seen[NETDAM_FW_TRACE_DESCRIPTOR], 2);
    assert_int_equal(seen[NETDAM_FW_TRACE_COMPLETION], 2);
    assert_int_equal(seen[NETDAM_FW_TRACE_TX_REQUEST], 2);
    assert_int_equal(seen[NETDAM_FW_TRACE_RETRANSMIT], 1);
    assert_int_equal(seen[NETDAM_FW_TRACE_RX_RESPONSE], 3);
    /* A platform need not listen. */
    b.u.fw->platform.trace = NULL;
    b.u.fw->platform.log = NULL;
    b.u.node.ops->register_read(b.u.node.state, 3, 1);
    bench_write(&b, 8, 3);
    unit_expect_sent(&b.u, &p);
    unit_stop(&b.u);
}

static void without_payload_crc_requests_carry_none(void **state)
{
    static struct bench b;
    struct netdam_fw_config config = bench_config();
    struct netdam_descriptor d;
    struct ndtest_packet p;

    (void)state;
    config.no_payload_crc = 1;
    bench_start(&b, &config, 4, GENERATION);
    bench_write(&b, 16, 1);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.flags, 0);
    assert_memory_equal(p.payload, b.u.node.memory + BENCH_LOCAL, 16);
    d = bench_atomic(&b, NETDAM_OP_CAS, NETDAM_TYPE_U64, 1, 2, 3);
    bench_do(&b, &d);
    unit_expect_sent(&b.u, &p);
    assert_int_equal(p.flags, 0);
    assert_int_equal(p.payload_bytes, 16);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_split_by_the_mtu),
        cmocka_unit_test(frames_never_exceed_the_mtu),
        cmocka_unit_test(atomics_carry_their_operands_and_bring_back_the_old_value),
        cmocka_unit_test(refusals_end_up_in_the_completion),
        cmocka_unit_test(an_answer_without_opcode_ends_a_request_of_either_kind),
        cmocka_unit_test(partial_says_how_much_was_applied),
        cmocka_unit_test(after_a_refusal_nothing_more_of_the_request_is_sent),
        cmocka_unit_test(what_is_uncertain_outdoes_what_was_refused),
        cmocka_unit_test(answers_that_do_not_match_are_ignored),
        cmocka_unit_test(doubled_and_late_answers_do_not_touch_a_buffer_in_its_new_use),
        cmocka_unit_test(a_local_region_that_goes_in_flight_ends_the_request),
        cmocka_unit_test(a_local_region_that_goes_before_sending_refuses_the_request),
        cmocka_unit_test(an_echo_whose_region_goes_is_refused),
        cmocka_unit_test(a_write_whose_region_goes_is_still_ok_when_it_was_answered),
        cmocka_unit_test(a_full_port_holds_back_and_loses_nothing),
        cmocka_unit_test(the_budget_bounds_one_call_of_run),
        cmocka_unit_test(a_long_request_lets_short_ones_of_the_same_peer_through),
        cmocka_unit_test(counters_and_traces_tell_what_happened),
        cmocka_unit_test(without_payload_crc_requests_carry_none),
    };

    return cmocka_run_group_tests_name("requester", tests, NULL, NULL);
}
