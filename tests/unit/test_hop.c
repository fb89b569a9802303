/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains at a node: which lists it takes, what each segment does, what is passed on, what copies do. */
#include "hop.h"

#define OK           NETDAM_STATUS_OK
#define BAD_SEGMENTS NETDAM_STATUS_BAD_SEGMENTS
#define BAD_FLAGS    NETDAM_STATUS_BAD_FLAGS
#define BAD_LENGTH   NETDAM_STATUS_BAD_LENGTH

/* The rules on opcodes, once more: what came before and behind. */
static bool list_is_right(const char *ops)
{
    unsigned n = (unsigned)strlen(ops), stores_behind_read = 0;
    bool stores = strpbrk(ops, "WR") != NULL;

    for (unsigned i = 0; i < n; i++) {
        bool read_before = false, named_before = false;

        for (unsigned j = 0; j < i; j++) {
            read_before |= ops[j] == 'L' || ops[j] == 'A';
            named_before |= ops[j] != 'F';
        }
        if ((ops[i] == 'L' && named_before) || (ops[i] == 'C' && read_before && stores)) {
            return false;
        }
        if ((ops[i] == 'W' || ops[i] == 'R') && read_before) {
            stores_behind_read++;
            if (i + 1 != n) {
                return false;
            }
        }
    }
    return stores_behind_read <= 1;
}

/* One list, at the segment `index`. */
static void try_list(const char *ops, unsigned index, unsigned family)
{
    unsigned n = (unsigned)strlen(ops);
    char text[32] = "", *at = text, op = ops[index];
    bool stores_later = strpbrk(ops + index, "WR") != NULL, with_lane = stores_later && op != 'F';
    bool reads = strpbrk(ops, "LA") != NULL, returns = reads && ops[n - 1] != 'W' && ops[n - 1] != 'R';
    bool loads_later = strchr(ops + index, 'L') != NULL && op != 'L', named = strspn(ops, "F") != n;
    uint8_t memory[CHAIN_LENGTH], after[CHAIN_LENGTH];
    uint32_t bytes = named && !loads_later ? CHAIN_LENGTH : 0;
    struct ndtest_packet answer;
    struct chain c;

    for (unsigned i = 0; i < n; i++) {
        *at++ = ops[i];
        *at++ = (char)(i == index ? '2' : i < index ? '3' + i : '2' + i);
        *at++ = i + 1 < n ? ' ' : 0;
    }
    start();
    c = chain_of(&u, family, text);
    chain_memory(&u, memory);
    memcpy(after, c.payload, sizeof(after));
    chain_receive(&u, &c);
    if (!list_is_right(ops)) {
        (void)expect_answer(text, &c, BAD_SEGMENTS);
        unit_expect_silence(&u);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
        assert_true(memory_is_as_before());
        unit_stop(&u);
        return;
    }
    if (op == 'L') {
        memcpy(after, memory, sizeof(after));
    }
    for (unsigned i = 0; i < CHAIN_LENGTH && op == 'A'; i += 4) {
        uint32_t a, b;

        memcpy(&a, c.payload + i, 4);
        memcpy(&b, memory + i, 4);
        a += b;
        memcpy(after + i, &a, 4);
    }
    if (index + 1 == n) {
        answer = expect_answer(text, &c, OK);
        assert_int_equal(answer.length, op == 'F' ? 0 : CHAIN_LENGTH);
        assert_int_equal(answer.payload_bytes, returns ? CHAIN_LENGTH : 0);
        assert_true(!returns || memcmp(answer.payload, after, CHAIN_LENGTH) == 0);
        assert_true(answer.floor == (with_lane ? CHAIN_NUMBER - 2 : 0));
        assert_true(answer.generation == UNIT_GENERATION);
        assert_true(answer.echo == (op == 'F' ? 0 : UNIT_GENERATION));
    } else {
        expect_passed_on(text, &c, after, bytes);
    }
    unit_expect_silence(&u);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), with_lane);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDED), index + 1 != n);
    assert_true(memory_is_as_before() == (op != 'R')); /* a WRITE stores what is there anyway */
    unit_stop(&u);
}

static void every_list_of_up_to_four_segments_is_executed_or_refused_as_the_rules_say(void **state)
{
    static const char kinds[] = "LACFWR";
    unsigned tried = 0;

    (void)state;
    for (unsigned n = 1; n <= 4; n++) {
        unsigned lists = 1;

        for (unsigned i = 0; i < n; i++) {
            lists *= 6;
        }
        for (unsigned list = 0; list < lists; list++) {
            char ops[5] = "";

            for (unsigned i = 0, rest = list; i < n; i++, rest /= 6) {
                ops[i] = kinds[rest % 6];
            }
            for (unsigned index = 0; index < n; index++) {
                if (n < 4 || (list + index) % 4 == 0) { /* one hop of each of the longest */
                    try_list(ops, index, list % 2 == 0 ? 4 : 6);
                    tried++;
                }
            }
        }
    }
    assert_int_equal(tried, 6 + 2 * 36 + 3 * 216 + 1296);
}

static void spoil_reserved(struct chain *c)
{
    c->segments[1].reserved = 1;
}
static void spoil_own_reserved(struct chain *c)
{
    c->segments[0].reserved = 1;
}
static void spoil_node_reserved(struct chain *c)
{
    c->segments[1].node.reserved = 1;
}
static void spoil_own_node_reserved(struct chain *c)
{
    c->segments[0].node.reserved = 1;
}
static void spoil_port(struct chain *c)
{
    c->segments[1].node.port = 0;
}
static void spoil_address(struct chain *c)
{
    memset(c->segments[1].node.address, 0, 16);
}
static void spoil_multicast(struct chain *c)
{
    c->segments[1].node.address[0] = c->family == 6 ? 0xff : 224;
}
static void spoil_broadcast(struct chain *c)
{
    memset(c->segments[1].node.address, 0xff, 16);
}
static void spoil_length(struct chain *c)
{
    c->segments[1].length = 16;
}
static void spoil_self(struct chain *c)
{
    c->segments[1].node = c->segments[0].node;
}
static void spoil_self_by_another_name(struct chain *c)
{
    c->segments[1].node = c->segments[0].node;
    c->segments[0].node.address[c->family == 6 ? 15 : 3] = 77;
}
static void spoil_read(struct chain *c)
{
    c->segments[1].opcode = NETDAM_OP_READ;
}
static void spoil_opcode(struct chain *c)
{
    c->segments[1].opcode = 0xee;
}
static void spoil_fetch(struct chain *c)
{
    c->segments[1].opcode = NETDAM_OP_FETCH_ADD;
}
static void spoil_form(struct chain *c)
{
    c->form = 10 - c->family;
}
static void spoil_origin(struct chain *c)
{
    c->segments[2] = c->segments[0];
    c->segments[0] = c->segments[1];
    c->segments[1] = c->segments[2];
    c->index = 1;
    memset(&c->origin, 0, sizeof(c->origin));
}
static void spoil_payload(struct chain *c)
{
    c->payload_length--;
}
static void spoil_payload_more(struct chain *c)
{
    c->payload_length++;
}
static void spoil_payload_none(struct chain *c)
{
    c->payload_length = 0;
}
static void spoil_element(struct chain *c)
{
    c->segments[0] = chain_segment(c->family, 'R', 2);
    c->segments[0].length = c->segments[1].length = 6;
    c->payload_length = 6;
}
static void spoil_relaxed(struct chain *c)
{
    c->flags = NETDAM_FLAG_RELAXED;
}
static void spoil_ordered(struct chain *c)
{
    c->flags = NETDAM_FLAG_ORDERED;
}
static void spoil_immediate(struct chain *c)
{
    c->immediate = true;
}
static void spoil_own_opcode(struct chain *c)
{
    c->segments[0].opcode = 0xee;
}
static void spoil_operation(struct chain *c)
{
    c->segments[0].operation = NETDAM_ALU_SUM;
}
static void spoil_type(struct chain *c)
{
    c->segments[0].type = NETDAM_TYPE_U8;
}
static void spoil_flags_and_list(struct chain *c)
{
    spoil_relaxed(c);
    spoil_self(c);
}
static void spoil_list_and_length(struct chain *c)
{
    spoil_self(c);
    spoil_payload(c);
}
static void spoil_forward_key(struct chain *c)
{
    c->segments[1] = chain_segment(c->family, 'F', 3);
    c->segments[1].key = 1;
}
static void spoil_forward_length(struct chain *c)
{
    c->segments[1] = chain_segment(c->family, 'F', 3);
    c->segments[1].length = 8;
}
static void spoil_forward_address(struct chain *c)
{
    c->segments[1] = chain_segment(c->family, 'F', 3);
    c->segments[1].address = 8;
}
static void spoil_forward_generation(struct chain *c)
{
    c->segments[1] = chain_segment(c->family, 'F', 3);
    c->segments[1].generation = UNIT_GENERATION;
}
static void spoil_reproducible(struct chain *c)
{
    c->segments[0] = chain_segment(c->family, 'R', 2);
    c->segments[0].type = NETDAM_TYPE_F32;
    c->flags = NETDAM_FLAG_REPRODUCIBLE;
}

static void what_depends_on_the_packet_alone_is_refused_without_a_trace(void **state)
{
    static const struct {
        const char *what;
        void (*spoil)(struct chain *c);
        enum netdam_status status;
    } rows[] = {
        {"reserved byte of another segment", spoil_reserved, BAD_SEGMENTS},
        {"reserved byte of the current segment", spoil_own_reserved, BAD_SEGMENTS},
        {"reserved bytes of another node", spoil_node_reserved, BAD_SEGMENTS},
        {"reserved bytes of the current node", spoil_own_node_reserved, BAD_SEGMENTS},
        {"port 0", spoil_port, BAD_SEGMENTS},
        {"address 0", spoil_address, BAD_SEGMENTS},
        {"multicast", spoil_multicast, BAD_SEGMENTS},
        {"broadcast", spoil_broadcast, BAD_SEGMENTS},
        {"lengths differ", spoil_length, BAD_SEGMENTS},
        {"named twice", spoil_self, BAD_SEGMENTS},
        {"named twice, once by another name", spoil_self_by_another_name, BAD_SEGMENTS},
        {"READ", spoil_read, BAD_SEGMENTS},
        {"undefined opcode later", spoil_opcode, BAD_SEGMENTS},
        {"atomic", spoil_fetch, BAD_SEGMENTS},
        {"the other family", spoil_form, BAD_SEGMENTS},
        {"no origin", spoil_origin, BAD_SEGMENTS},
        {"FORWARD with a key", spoil_forward_key, BAD_SEGMENTS},
        {"FORWARD with a length", spoil_forward_length, BAD_SEGMENTS},
        {"FORWARD with an address", spoil_forward_address, BAD_SEGMENTS},
        {"FORWARD with a generation", spoil_forward_generation, BAD_SEGMENTS},
        {"a byte too few", spoil_payload, BAD_LENGTH},
        {"a byte too many", spoil_payload_more, BAD_LENGTH},
        {"no payload", spoil_payload_none, BAD_LENGTH},
        {"half an element", spoil_element, BAD_LENGTH},
        {"RELAXED", spoil_relaxed, BAD_FLAGS},
        {"ORDERED", spoil_ordered, BAD_FLAGS},
        {"IMMEDIATE", spoil_immediate, BAD_FLAGS},
        {"REPRODUCIBLE float sum into memory", spoil_reproducible, BAD_FLAGS},
        {"undefined opcode", spoil_own_opcode, NETDAM_STATUS_BAD_OPCODE},
        {"operation where none belongs", spoil_operation, NETDAM_STATUS_BAD_OPERATION},
        {"type where none belongs", spoil_type, NETDAM_STATUS_BAD_TYPE},
        {"flags before list", spoil_flags_and_list, BAD_FLAGS},
        {"list before length", spoil_list_and_length, BAD_SEGMENTS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (unsigned family = 4; family <= 6; family += 2) {
            struct chain good, bad;

            start();
            good = bad = chain_of(&u, family, "W2 W3");
            rows[i].spoil(&bad);
            for (unsigned again = 0; again < 2; again++) {
                struct ndtest_packet answer;

                chain_receive(&u, &bad);
                answer = expect_answer(rows[i].what, &bad, rows[i].status);
                unit_expect_silence(&u);
                assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, 0);
                assert_int_equal(answer.payload_bytes, 0);
                assert_int_equal(answer.length, 0);
                assert_true(answer.generation == UNIT_GENERATION);
                assert_int_equal(chain_target(&u).address, 1);
            }
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REFUSED), 2);
            assert_true(memory_is_as_before());
            chain_receive(&u, &good); /* the number is as good as new */
            expect_passed_on(rows[i].what, &good, good.payload, CHAIN_LENGTH);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
            unit_stop(&u);
        }
    }
}

static void a_list_is_refused_wherever_the_fault_lies(void **state)
{
    (void)state;
    for (unsigned index = 0; index < NETDAM_SEGMENTS_MAX; index++) {
        struct netdam_fw_config config = config_of(9000);
        struct chain c;

        start_with(&config);
        c = chain_of(&u, 4, "W2");
        for (c.count = 1; c.count < NETDAM_SEGMENTS_MAX; c.count++) {
            c.segments[c.count] = chain_segment(4, 'W', 100 + c.count);
        }
        if (index != 0) {
            c.segments[index].node.port = 0;
            chain_receive(&u, &c);
            (void)expect_answer("port 0", &c, BAD_SEGMENTS);
            c.segments[index].node.port = NETDAM_UDP_PORT;
            c.segments[index].opcode = NETDAM_OP_SEND;
            chain_receive(&u, &c);
            (void)expect_answer("SEND", &c, BAD_SEGMENTS);
            c.segments[index] = c.segments[0];
            chain_receive(&u, &c);
            (void)expect_answer("named twice", &c, BAD_SEGMENTS);
            c.segments[index] = chain_segment(4, 'W', 100 + index);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
        unit_stop(&u);
    }
}

/* Segments that name memory, on every operation and type that they have. */
static void reductions_are_the_alus_for_every_operation_and_type(void **state)
{
    unsigned tried = 0;

    (void)state;
    start();
    for (unsigned operation = 0; operation <= NETDAM_ALU_SUM_SATURATING; operation++) {
        for (unsigned type = 0; type <= NETDAM_TYPE_F64; type++) {
            struct ndtest_packet answer;
            uint8_t expected[64];
            struct chain c = chain_of(&u, 4, "A2");

            if (netdam_algebra(NETDAM_OP_LOAD_REDUCE, operation, type) < 0) {
                continue;
            }
            c.number += tried;
            c.segments[0].operation = (uint8_t)operation;
            c.segments[0].type = (uint8_t)type;
            c.segments[0].length = c.payload_length = 64;
            c.segments[0].address = 64;
            for (unsigned i = 0; i < 64; i++) {
                c.payload[i] = (uint8_t)(i * 37 + operation);
            }
            memcpy(expected, c.payload, 64);
            ndfw_alu_reduce_into(u.fw, expected, expected, u.node.memory + CHAIN_BASE + 64, 64, operation, type);
            chain_receive(&u, &c);
            answer = expect_answer("LOAD_REDUCE", &c, OK);
            assert_int_equal(answer.payload_bytes, 64);
            assert_memory_equal(answer.payload, expected, 64);
            assert_int_equal(answer.operation, operation);
            assert_int_equal(answer.type, type);
            tried++;
        }
    }
    assert_int_equal(tried, 8 * 7 + 4 * 4);
    assert_true(memory_is_as_before());
    unit_stop(&u);
}

/* What the region says, with a lane and without: the first is remembered. */
static void refusals_by_the_region_are_remembered_where_there_is_a_lane(void **state)
{
    static const char *const lists[] = {"L2 W3", "L2 F3", "A2 W3", "A2 F3", "C2 W3", "C2 F3", "W2 F3", "R2 W3"};
    static const struct {
        enum netdam_status status;
        uint64_t key, address;
    } rows[] = {
        {NETDAM_STATUS_BAD_KEY, UNIT_KEY + 1, 0},
        {NETDAM_STATUS_BAD_RANGE, UNIT_KEY, CHAIN_BYTES - 4},
        {NETDAM_STATUS_BAD_RANGE, UNIT_KEY, UINT64_MAX - 3},
        {NETDAM_STATUS_NO_PERMISSION, UNIT_KEY + 2, 0},
        {NETDAM_STATUS_MISALIGNED, UNIT_KEY, 2},
        {NETDAM_STATUS_COMPARE_FAILED, UNIT_KEY, 8},
    };

    (void)state;
    for (size_t l = 0; l < ARRAY_SIZE(lists); l++) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            bool with_lane = strpbrk(lists[l], "WR") != NULL, typed = lists[l][0] == 'A' || lists[l][0] == 'R';
            struct ndtest_packet answer;
            struct chain c;

            if ((rows[i].status == NETDAM_STATUS_MISALIGNED && !typed) ||
                (rows[i].status == NETDAM_STATUS_COMPARE_FAILED && lists[l][0] != 'C')) {
                continue;
            }
            start();
            unit_region(&u, CHAIN_BASE, 64, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, UNIT_KEY + 2);
            c = chain_of(&u, 4, lists[l]);
            c.segments[0].key = rows[i].key;
            c.segments[0].address = rows[i].address;
            chain_receive(&u, &c);
            answer = expect_answer(lists[l], &c, rows[i].status);
            assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, 0);
            unit_expect_silence(&u);
            assert_true(memory_is_as_before());
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), with_lane);
            /* The same number, and nothing to object to any more. */
            c.segments[0].key = UNIT_KEY;
            c.segments[0].address = 0;
            chain_receive(&u, &c);
            if (with_lane) {
                answer = expect_answer(lists[l], &c, rows[i].status);
                assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, NETDAM_FLAG_AGAIN);
                assert_int_equal(answer.payload_bytes, 0);
                assert_true(memory_is_as_before());
            } else {
                uint8_t payload[CHAIN_LENGTH];

                memcpy(payload, c.payload, sizeof(payload));
                if (lists[l][0] == 'A') {
                    ndfw_alu_reduce_into(u.fw, payload, payload, u.node.memory + CHAIN_BASE, 8, 1, NETDAM_TYPE_U32);
                } else if (lists[l][0] == 'L') {
                    memcpy(payload, u.node.memory + CHAIN_BASE, 8);
                }
                expect_passed_on(lists[l], &c, payload, CHAIN_LENGTH);
            }
            unit_expect_silence(&u);
            unit_stop(&u);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_list_of_up_to_four_segments_is_executed_or_refused_as_the_rules_say),
        cmocka_unit_test(what_depends_on_the_packet_alone_is_refused_without_a_trace),
        cmocka_unit_test(a_list_is_refused_wherever_the_fault_lies),
        cmocka_unit_test(reductions_are_the_alus_for_every_operation_and_type),
        cmocka_unit_test(refusals_by_the_region_are_remembered_where_there_is_a_lane),
    };

    return cmocka_run_group_tests_name("hop", tests, NULL, NULL);
}
