/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: every opcode, type and edge against memory and a shadow of it; refusals, repetitions, limits. */
#include "unit.h"

#include "reference.h"

#include <stdio.h>

#define MEMORY  0x5000u
#define BASE    0x2008u /* aligned to 8 and to nothing more */
#define LENGTH  0x2003u /* ends in the middle of an element */
#define PAYLOAD 1400u   /* at MTU 1500 */

#define ECHO      NETDAM_OP_ECHO
#define CONFIRM   NETDAM_OP_CONFIRM
#define READ      NETDAM_OP_READ
#define WRITE     NETDAM_OP_WRITE
#define REDUCE    NETDAM_OP_REDUCE
#define FETCH_ADD NETDAM_OP_FETCH_ADD
#define CAS       NETDAM_OP_CAS
#define SWAP      NETDAM_OP_SWAP
#define FETCH_OP  NETDAM_OP_FETCH_OP

struct bench {
    struct unit u;
    uint8_t shadow[MEMORY];
    uint8_t payload[UNIT_FRAME_ROOM];
    uint64_t number;
};

static void bench_start(struct bench *b, uint32_t permissions, const struct netdam_fw_config *given)
{
    struct netdam_fw_config config = given != NULL ? *given : unit_config(1);
    struct ndtest_random random = {21};

    config.memory_bytes = MEMORY;
    unit_start(&b->u, 1, &config);
    unit_region(&b->u, BASE, LENGTH, permissions, UNIT_KEY);
    unit_memory_pattern(&b->u, 0, MEMORY, 3);
    memcpy(b->shadow, b->u.node.memory, MEMORY);
    ndtest_random_fill(&random, b->payload, sizeof(b->payload));
    b->number = 100;
}

static struct unit_request make(struct bench *b, unsigned opcode, unsigned operation, unsigned type, uint64_t address,
                                uint32_t length)
{
    struct unit_request request = {
        .opcode = (uint8_t)opcode,
        .operation = (uint8_t)operation,
        .type = (uint8_t)type,
        .length = length,
        .key = opcode == ECHO ? 0 : UNIT_KEY,
        .address = address,
        .generation = opcode == ECHO ? 0 : UNIT_GENERATION,
        .number = b->number++,
        .payload = b->payload,
        .payload_length = opcode == READ || opcode == CONFIRM ? 0
                          : opcode == CAS                     ? 2 * length
                                                              : length,
    };

    return request;
}

/* What the specification says of it, from the request alone. */
static enum netdam_status judge(const struct unit_request *r, uint32_t permissions)
{
    uint32_t element = netdam_type_bytes(r->type);
    uint32_t needs = r->opcode == READ     ? NETDAM_PERMISSION_REMOTE_READ
                     : r->opcode == WRITE  ? NETDAM_PERMISSION_REMOTE_WRITE
                     : r->opcode == REDUCE ? NETDAM_PERMISSION_REMOTE_ALU
                     : r->opcode == SWAP   ? NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_READ
                                           : NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ;

    if ((r->opcode == READ || r->opcode == ECHO) && r->length > PAYLOAD) {
        return NETDAM_STATUS_BAD_LENGTH;
    }
    if (r->opcode == REDUCE && !netdam_is_whole(r->length, r->type)) {
        return NETDAM_STATUS_BAD_LENGTH;
    }
    if ((netdam_op_flags(r->opcode) & NETDAM_OPF_ATOMIC) != 0 && r->length != element) {
        return NETDAM_STATUS_BAD_LENGTH;
    }
    if (r->opcode == ECHO) {
        return NETDAM_STATUS_OK;
    }
    if (r->key != UNIT_KEY) {
        return NETDAM_STATUS_BAD_KEY;
    }
    if (r->address > LENGTH || LENGTH - r->address < r->length) {
        return NETDAM_STATUS_BAD_RANGE;
    }
    if ((permissions & needs) != needs) {
        return NETDAM_STATUS_NO_PERMISSION;
    }
    if (r->opcode != READ && r->opcode != WRITE && !netdam_is_whole(BASE + r->address, r->type)) {
        return NETDAM_STATUS_MISALIGNED;
    }
    return NETDAM_STATUS_OK;
}

/* Applies the request to the shadow; returns the old value of atomics. */
static uint64_t shadow_apply(struct bench *b, const struct unit_request *r)
{
    uint8_t *at = b->shadow + BASE + r->address;
    uint32_t element = netdam_type_bytes(r->type);
    uint64_t old = 0, first = 0, second = 0;

    switch (r->opcode) {
    case WRITE:
        memcpy(at, r->payload, r->length);
        break;
    case REDUCE:
        for (uint32_t i = 0; i < r->length; i += element) {
            uint64_t a = 0, o = 0, result;

            memcpy(&a, at + i, element);
            memcpy(&o, r->payload + i, element);
            result = reference(r->operation, r->type, a, o);
            memcpy(at + i, &result, element);
        }
        break;
    case FETCH_ADD:
    case CAS:
    case SWAP:
    case FETCH_OP:
        memcpy(&old, at, element);
        memcpy(&first, r->payload, element);
        memcpy(&second, r->payload + element, element);
        if (r->opcode == FETCH_ADD) {
            first = reference(NETDAM_ALU_SUM, r->type, old, first);
            memcpy(at, &first, element);
        } else if (r->opcode == FETCH_OP) {
            first = reference(r->operation, r->type, old, first);
            memcpy(at, &first, element);
        } else if (r->opcode == SWAP) {
            memcpy(at, &first, element);
        } else if (old == first) {
            memcpy(at, &second, element);
        }
        break;
    default:
        break;
    }
    return old;
}

/* Sends it and compares status, answer and all of memory with what must be. */
static void check(struct bench *b, const struct unit_request *r, uint32_t permissions)
{
    enum netdam_status want = judge(r, permissions);
    struct ndtest_packet answer;
    uint64_t old = 0;
    uint64_t executed = unit_counter(&b->u, NETDAM_COUNTER_REQUESTS_EXECUTED);
    uint64_t refused = unit_counter(&b->u, NETDAM_COUNTER_REQUESTS_REFUSED);

    executed += want == NETDAM_STATUS_OK;
    refused += want != NETDAM_STATUS_OK;
    unit_ask(&b->u, r, &answer);
    assert_true(unit_counter(&b->u, NETDAM_COUNTER_REQUESTS_EXECUTED) == executed);
    assert_true(unit_counter(&b->u, NETDAM_COUNTER_REQUESTS_REFUSED) == refused);
    if (answer.status != (uint8_t)want) {
        fail_msg("opcode %#x operation %u type %u address %#llx length %u: status %#x, expected %#x", r->opcode,
                 r->operation, r->type, (unsigned long long)r->address, r->length, answer.status, (unsigned)want);
    }
    assert_int_equal(answer.opcode, r->opcode);
    assert_int_equal(answer.operation, r->operation);
    assert_int_equal(answer.type, r->type);
    assert_true(answer.generation == UNIT_GENERATION);
    if (want == NETDAM_STATUS_OK) {
        old = shadow_apply(b, r);
        assert_int_equal(answer.length, r->length);
    } else {
        assert_int_equal(answer.length, 0);
    }
    if (want != NETDAM_STATUS_OK || r->opcode == WRITE || r->opcode == REDUCE) {
        assert_int_equal(answer.payload_bytes, 0);
    } else {
        assert_int_equal(answer.payload_bytes, r->length);
        assert_memory_equal(answer.payload,
                            r->opcode == ECHO   ? r->payload
                            : r->opcode == READ ? b->shadow + BASE + r->address
                                                : (const uint8_t *)&old,
                            r->length);
    }
    assert_memory_equal(b->u.node.memory, b->shadow, MEMORY);
}

/* Addresses worth trying for a length: start, unaligned, end, beyond, wrap. */
static unsigned addresses(uint32_t length, uint64_t *to)
{
    unsigned n = 0;

    for (uint64_t i = 0; i <= 8; i++) {
        to[n++] = i;
    }
    for (uint64_t i = 0; i <= 9; i++) {
        to[n++] = LENGTH - length - i;
        to[n++] = LENGTH - length + i;
    }
    to[n++] = LENGTH;
    to[n++] = LENGTH + 1;
    to[n++] = MEMORY;
    to[n++] = UINT64_MAX;
    to[n++] = UINT64_MAX - length;
    to[n++] = UINT64_MAX - length + 1;
    to[n++] = (uint64_t)0 - BASE;
    to[n++] = UINT64_C(1) << 63;
    to[n++] = UINT64_C(1) << 32;
    return n;
}

static void every_opcode_type_length_and_address_edge(void **state)
{
    static const uint32_t lengths[] = {0, 1,  2,           3,           4,       7,           8,
                                       9, 16, PAYLOAD - 8, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, PAYLOAD + 8};
    static const uint8_t opcodes[] = {ECHO, READ, WRITE, REDUCE, FETCH_ADD, CAS, SWAP, FETCH_OP};
    static struct bench b;
    struct netdam_fw_config config = unit_config(1);
    unsigned tried = 0;

    (void)state;
    config.refusal_burst = UINT32_MAX;
    bench_start(&b, NETDAM_PERMISSION_ALL, &config);
    for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++) {
        for (unsigned type = 0; type <= NETDAM_TYPE_F64; type++) {
            for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
                /* The operation changes with the length: each one with each type is another test's. */
                bool alu = opcodes[o] == REDUCE || opcodes[o] == FETCH_OP;
                unsigned operation = alu ? NETDAM_ALU_SUM + (unsigned)l % 4 : 0;
                uint64_t address[64];
                unsigned count = addresses(lengths[l], address);

                if (netdam_algebra(opcodes[o], operation, type) < 0 ||
                    (opcodes[o] == REDUCE && !ndfw_alu_executes(operation, type))) {
                    continue;
                }
                for (unsigned a = 0; a < (opcodes[o] == ECHO ? 1 : count); a++, tried++) {
                    struct unit_request r = make(&b, opcodes[o], operation, type, address[a], lengths[l]);

                    check(&b, &r, NETDAM_PERMISSION_ALL);
                }
            }
        }
    }
    assert_true(tried > 10000);
    unit_stop(&b.u);
}

static void every_operation_on_every_type(void **state)
{
    static struct bench b;
    unsigned tried = 0;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (unsigned operation = NETDAM_ALU_SUM; operation <= NETDAM_ALU_SUM_SATURATING; operation++) {
        for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_F64; type++) {
            struct unit_request r = make(&b, REDUCE, operation, type, 0x40, 1024);
            uint64_t edges[REFERENCE_EDGES];
            unsigned element = netdam_type_bytes(type), count = reference_edges(type, edges);

            if (!ndfw_alu_executes(operation, type)) {
                continue;
            }
            for (unsigned i = 0; i < 1024 / element; i++) { /* edges against edges */
                memcpy(b.payload + i * element, &edges[i % count], element);
                memcpy(b.u.node.memory + BASE + 0x40 + i * element, &edges[i / count % count], element);
            }
            memcpy(b.shadow, b.u.node.memory, MEMORY);
            check(&b, &r, NETDAM_PERMISSION_ALL);
            tried++;
        }
    }
    assert_int_equal(tried, 8 * 8 + 4 * 4);
    unit_stop(&b.u);
}

static void atomics_return_the_old_value_and_wrap(void **state)
{
    static struct bench b;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_I64; type++) {
        unsigned bytes = netdam_type_bytes(type);
        uint64_t edges[REFERENCE_EDGES];
        unsigned count = reference_edges(type, edges);

        for (unsigned i = 0; i < count * count; i++) {
            uint64_t memory = edges[i % count], operand = edges[i / count];
            struct unit_request add = make(&b, FETCH_ADD, 0, type, 8 * (i % 16), bytes);
            struct unit_request cas;

            memcpy(b.u.node.memory + BASE + add.address, &memory, bytes);
            memcpy(b.shadow + BASE + add.address, &memory, bytes);
            memcpy(b.payload, &operand, bytes);
            check(&b, &add, NETDAM_PERMISSION_ALL);
            memcpy(b.payload + bytes, &memory, bytes);
            /* Compares with what is there, or, nearly always, with something else. */
            memcpy(b.payload, i % 2 == 0 ? (const uint8_t *)&edges[0] : b.shadow + BASE + add.address, bytes);
            cas = make(&b, CAS, 0, type, add.address, bytes);
            check(&b, &cas, NETDAM_PERMISSION_ALL);
        }
    }
    unit_stop(&b.u);
}

static void every_set_of_permissions_for_every_opcode(void **state)
{
    static const struct {
        uint8_t opcode, operation, type;
        uint32_t length;
    } rows[] = {
        {READ, 0, 0, 8},
        {WRITE, 0, 0, 8},
        {REDUCE, NETDAM_ALU_SUM, NETDAM_TYPE_I32, 8},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 8},
        {CAS, 0, NETDAM_TYPE_U64, 8},
        {SWAP, 0, NETDAM_TYPE_U64, 8},
        {FETCH_OP, NETDAM_ALU_MIN, NETDAM_TYPE_F64, 8},
        {READ, 0, 0, 0},
        {WRITE, 0, 0, 0},
    };
    static struct bench b;

    (void)state;
    for (uint32_t permissions = 0; permissions <= NETDAM_PERMISSION_ALL; permissions++) {
        bench_start(&b, permissions, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            struct unit_request r = make(&b, rows[i].opcode, rows[i].operation, rows[i].type, 0, rows[i].length);

            check(&b, &r, permissions);
            r = make(&b, rows[i].opcode, rows[i].operation, rows[i].type, LENGTH, 8 * (rows[i].length != 0));
            check(&b, &r, permissions); /* the range is looked at first */
            r = make(&b, rows[i].opcode, rows[i].operation, rows[i].type, 0, rows[i].length);
            r.key ^= 1;
            check(&b, &r, permissions); /* and the key before that */
        }
        unit_stop(&b.u);
    }
}

static void a_repetition_is_answered_from_memory_and_not_executed(void **state)
{
    static struct bench b;
    struct unit_request r;
    struct ndtest_packet answer;
    uint64_t old, one = 1;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    r = make(&b, FETCH_ADD, 0, NETDAM_TYPE_U64, 0, 8);
    r.payload = (const uint8_t *)&one;
    old = unit_memory_get(&b.u, BASE, 8);
    for (unsigned i = 0; i < 5; i++) {
        r.flags = i != 0 ? NETDAM_FLAG_AGAIN : 0;
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_int_equal(answer.flags, NETDAM_FLAG_PAYLOAD_CRC | (i != 0 ? NETDAM_FLAG_AGAIN : 0u));
        assert_memory_equal(answer.payload, &old, 8);
        assert_true(answer.floor == r.number);
        assert_true(unit_memory_get(&b.u, BASE, 8) == old + 1);
        /* Somebody else's value in between does not change the answer. */
        unit_memory_put(&b.u, BASE, 8, old + 1);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_REPEATED), 4);
    r = make(&b, WRITE, 0, 0, 0x100, 16);
    unit_ask(&b.u, &r, &answer);
    unit_memory_put(&b.u, BASE + 0x100, 8, 77); /* newer, by somebody else */
    unit_ask(&b.u, &r, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_OK);
    assert_int_equal(answer.flags, NETDAM_FLAG_AGAIN);
    assert_int_equal(answer.length, 16);
    assert_true(unit_memory_get(&b.u, BASE + 0x100, 8) == 77);
    unit_stop(&b.u);
}

static void a_refusal_is_final_even_when_its_reason_has_gone(void **state)
{
    static struct bench b;
    static const enum netdam_status reasons[] = {NETDAM_STATUS_BAD_KEY, NETDAM_STATUS_BAD_RANGE,
                                                 NETDAM_STATUS_NO_PERMISSION, NETDAM_STATUS_MISALIGNED};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        struct unit_request r, good;
        struct ndtest_packet answer;

        bench_start(&b, reasons[i] == NETDAM_STATUS_NO_PERMISSION ? 0 : NETDAM_PERMISSION_ALL, NULL);
        r = make(&b, FETCH_ADD, 0, NETDAM_TYPE_U64, 0, 8);
        good = r;
        r.key += reasons[i] == NETDAM_STATUS_BAD_KEY;
        r.address = reasons[i] == NETDAM_STATUS_BAD_RANGE ? LENGTH : reasons[i] == NETDAM_STATUS_MISALIGNED ? 1 : 0;
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.status, reasons[i]);
        assert_int_equal(answer.flags, 0);
        assert_true(answer.floor == r.number);
        b.u.fw->regions[0].permissions = NETDAM_PERMISSION_ALL;
        unit_ask(&b.u, &good, &answer); /* the same number */
        assert_int_equal(answer.status, reasons[i]);
        assert_int_equal(answer.flags, NETDAM_FLAG_AGAIN);
        assert_int_equal(answer.payload_bytes, 0);
        assert_memory_equal(b.u.node.memory, b.shadow, MEMORY);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_REFUSED), 2);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_EXECUTED), 0);
        unit_stop(&b.u);
    }
}

static void what_depends_on_the_packet_alone_leaves_no_trace(void **state)
{
    static struct bench b;
    struct ndtest_packet answer;
    struct unit_request r, good;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    good = make(&b, WRITE, 0, 0, 0, 8);
    for (unsigned i = 0; i < 6; i++) {
        r = good;
        r.opcode = i == 0 ? 0xee : i == 1 ? NETDAM_OP_COMPARE : WRITE;
        r.type = i == 2 ? NETDAM_TYPE_U8 : 0;
        r.operation = i == 3 ? NETDAM_ALU_SUM : 0;
        r.length = i == 4 ? 9 : 8;
        r.flags = i == 5 ? NETDAM_FLAG_RELAXED | NETDAM_FLAG_ORDERED : 0;
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.status, i == 0   ? NETDAM_STATUS_BAD_OPCODE
                                        : i == 1 ? NETDAM_STATUS_BAD_SEGMENTS
                                        : i == 2 ? NETDAM_STATUS_BAD_TYPE
                                        : i == 3 ? NETDAM_STATUS_BAD_OPERATION
                                        : i == 4 ? NETDAM_STATUS_BAD_LENGTH
                                                 : NETDAM_STATUS_BAD_FLAGS);
        assert_true(answer.generation == UNIT_GENERATION);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_LANES), 0);
    }
    check(&b, &good, NETDAM_PERMISSION_ALL); /* the number is as good as new */
    unit_stop(&b.u);
}

static void payload_of_the_wrong_length_for_the_opcode(void **state)
{
    static const struct {
        uint8_t opcode, operation, type;
        uint32_t length, payload;
        enum netdam_status status;
    } rows[] = {
        {ECHO, 0, 0, 8, 8, NETDAM_STATUS_OK},
        {ECHO, 0, 0, 8, 7, NETDAM_STATUS_BAD_LENGTH},
        {ECHO, 0, 0, 0, 8, NETDAM_STATUS_BAD_LENGTH},
        {CONFIRM, 0, 0, 0, 0, NETDAM_STATUS_OK},
        {CONFIRM, 0, 0, 1, 0, NETDAM_STATUS_BAD_LENGTH},
        {CONFIRM, 0, 0, 0, 1, NETDAM_STATUS_BAD_LENGTH},
        {CONFIRM, 0, 0, 1, 1, NETDAM_STATUS_BAD_LENGTH},
        {READ, 0, 0, 8, 0, NETDAM_STATUS_OK},
        {READ, 0, 0, 8, 8, NETDAM_STATUS_BAD_LENGTH},
        {READ, 0, 0, UINT32_MAX, 0, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, 8, 8, NETDAM_STATUS_OK},
        {WRITE, 0, 0, 9, 8, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, 7, 8, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, 0, 8, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, 8, 0, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, UINT32_MAX, 8, NETDAM_STATUS_BAD_LENGTH},
        {WRITE, 0, 0, 0x10008, 8, NETDAM_STATUS_BAD_LENGTH},
        {REDUCE, 1, NETDAM_TYPE_I32, 8, 8, NETDAM_STATUS_OK},
        {REDUCE, 1, NETDAM_TYPE_I32, 6, 6, NETDAM_STATUS_BAD_LENGTH},
        {REDUCE, 1, NETDAM_TYPE_I32, 8, 4, NETDAM_STATUS_BAD_LENGTH},
        {REDUCE, 1, NETDAM_TYPE_F64, 4, 4, NETDAM_STATUS_BAD_LENGTH},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 8, 8, NETDAM_STATUS_OK},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 8, 16, NETDAM_STATUS_BAD_LENGTH},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 16, 16, NETDAM_STATUS_BAD_LENGTH},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 8, 0, NETDAM_STATUS_BAD_LENGTH},
        {FETCH_ADD, 0, NETDAM_TYPE_U64, 0, 0, NETDAM_STATUS_BAD_LENGTH},
        {CAS, 0, NETDAM_TYPE_U64, 8, 16, NETDAM_STATUS_OK},
        {CAS, 0, NETDAM_TYPE_U64, 8, 8, NETDAM_STATUS_BAD_LENGTH},
        {CAS, 0, NETDAM_TYPE_U64, 16, 16, NETDAM_STATUS_BAD_LENGTH},
        {CAS, 0, NETDAM_TYPE_U64, 8, 24, NETDAM_STATUS_BAD_LENGTH},
        {CAS, 0, NETDAM_TYPE_U64, 0, 0, NETDAM_STATUS_BAD_LENGTH},
    };
    static struct bench b;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct unit_request r = make(&b, rows[i].opcode, rows[i].operation, rows[i].type, 0, rows[i].length);
        struct ndtest_packet answer;

        r.payload_length = rows[i].payload;
        if (r.opcode == CONFIRM) {
            r.key = 0;
        }
        memcpy(b.shadow, b.u.node.memory, MEMORY);
        unit_ask(&b.u, &r, &answer);
        if (answer.status != (uint8_t)rows[i].status) {
            fail_msg("row %zu: status %#x", i, answer.status);
        }
        assert_true(rows[i].status == NETDAM_STATUS_OK || memcmp(b.shadow, b.u.node.memory, MEMORY) == 0);
    }
    unit_stop(&b.u);
}

static void refusals_are_limited_and_answers_are_not(void **state)
{
    static struct bench b;
    struct netdam_fw_config config = unit_config(1);
    struct unit_request bad, good;

    (void)state;
    config.refusal_burst = 4;
    config.refusal_interval_ns = 1000;
    bench_start(&b, NETDAM_PERMISSION_ALL, &config);
    for (unsigned i = 0; i < 10; i++) {
        bad = make(&b, READ, 0, 0, LENGTH, 8);
        unit_request(&b.u, &bad);
        good = make(&b, READ, 0, 0, 0, 8);
        unit_request(&b.u, &good);
    }
    assert_int_equal(b.u.count, 4 + 10);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ANSWERS_LIMITED), 6);
    unit_drop_sent(&b.u);
    /* On average one per interval, whatever the rhythm in which they come. */
    for (unsigned i = 0; i < 1000; i++) {
        unit_advance(&b.u, 100);
        unit_request(&b.u, &bad);
    }
    assert_in_range(b.u.count, 99, 101);
    unit_drop_sent(&b.u);
    while (b.u.count == 0) { /* what is left of the burst */
        bad = make(&b, READ, 0, 0, LENGTH, 8);
        unit_request(&b.u, &bad);
        if (b.u.count == 0) {
            break;
        }
        unit_drop_sent(&b.u);
    }
    /* STALE, BUSY and remembered refusals count too. */
    bad.generation = 0;
    unit_request(&b.u, &bad);
    assert_int_equal(b.u.count, 0);
    unit_advance(&b.u, UINT64_C(1) << 40); /* a long rest saves up no more than the burst */
    for (unsigned i = 0; i < 10; i++) {
        unit_request(&b.u, &bad);
    }
    assert_int_equal(b.u.count, 4);
    unit_stop(&b.u);
}

static void nobody_gets_more_than_three_times_what_an_unproven_address_sent(void **state)
{
    static const uint64_t generations[] = {0, 1, UNIT_GENERATION ^ UINT64_C(1) << 32, UINT64_MAX};
    static struct bench b;
    unsigned answered = 0;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (unsigned opcode = 0; opcode <= UINT8_MAX; opcode++) {
        for (size_t g = 0; g < ARRAY_SIZE(generations); g++) {
            for (unsigned family = 4; family <= 6; family += 2) {
                uint8_t frame[UNIT_FRAME_ROOM];
                struct unit_request r = make(&b, opcode, 0, 0, 0, opcode == ECHO ? 0 : PAYLOAD);
                size_t bytes, received;

                r.payload_length = 0;
                r.family = family;
                r.generation = generations[g];
                bytes = unit_request_frame(frame, 0, &r);
                unit_receive(&b.u, frame, bytes);
                unit_run(&b.u);
                if (unit_sent_frame(&b.u, &received) != NULL) {
                    assert_true(received <= 3 * bytes);
                    answered++;
                }
                unit_expect_silence(&b.u);
            }
        }
        unit_advance(&b.u, UNIT_MS);
    }
    assert_true(answered > 1000);
    /* The shortest packet that is answered: a header of another version. */
    for (unsigned extra = 0; extra <= 64; extra++) {
        uint8_t frame[UNIT_FRAME_ROOM];
        struct unit_request r = make(&b, READ, 0, 0, 0, PAYLOAD);
        size_t received;

        unit_request_frame(frame, 0, &r);
        frame[42] = 9;
        unit_put16(frame + 42 + 26, 32);
        unit_put16(frame + 16, 28 + 32 + extra);
        unit_put16(frame + 38, 8 + 32 + extra);
        ndtest_frame_repair(frame, 42 + 32 + extra, false);
        unit_receive(&b.u, frame, 42 + 32 + extra);
        assert_non_null(unit_sent_frame(&b.u, &received));
        assert_true(received <= 3 * (42 + 32 + extra));
        unit_expect_silence(&b.u);
    }
    unit_stop(&b.u);
}

static void stale_names_the_right_generation_and_echoes_the_wrong_one(void **state)
{
    static const uint8_t opcodes[] = {CONFIRM, READ, WRITE, FETCH_ADD};
    static struct bench b;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        struct unit_request r =
            make(&b, opcodes[i], 0, opcodes[i] == FETCH_ADD ? NETDAM_TYPE_U64 : 0, 0, opcodes[i] == CONFIRM ? 0 : 8);
        struct ndtest_packet answer;

        r.generation = UNIT_GENERATION + (UINT64_C(7) << 32);
        unit_ask(&b.u, &r, &answer); /* compares the echo */
        assert_int_equal(answer.status, NETDAM_STATUS_STALE);
        assert_true(answer.generation == UNIT_GENERATION);
        assert_true(answer.floor == 0);
        assert_int_equal(answer.payload_bytes, 0);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_STALE), ARRAY_SIZE(opcodes));
    assert_memory_equal(b.u.node.memory, b.shadow, MEMORY);
    /* READ: the epoch is the proof, the count does not matter. */
    for (unsigned count = 1; count < 5; count++) {
        struct unit_request r = make(&b, READ, 0, 0, 0, 8);
        struct ndtest_packet answer;

        r.generation = (UNIT_GENERATION & ~UINT64_C(0xffffffff)) | count;
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_true(answer.generation == UNIT_GENERATION);
    }
    unit_stop(&b.u);
}

static void busy_leaves_the_number_and_names_generation(void **state)
{
    static struct bench b;
    struct netdam_fw_config config = unit_config(1);
    struct ndtest_packet answer;
    struct unit_request r;

    (void)state;
    config.lane_windows = 1;
    bench_start(&b, NETDAM_PERMISSION_ALL, &config);
    r = make(&b, WRITE, 0, 0, 0, 8);
    unit_ask(&b.u, &r, &answer);
    memcpy(b.shadow, b.u.node.memory, MEMORY);
    r = make(&b, WRITE, 0, 0, 64, 8);
    r.context = 7;
    unit_ask(&b.u, &r, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_BUSY);
    assert_true(answer.generation == UNIT_GENERATION);
    assert_memory_equal(b.u.node.memory, b.shadow, MEMORY);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_REQUESTS_BUSY), 1);
    {
        struct unit_request confirm = make(&b, CONFIRM, 0, 0, 0, 0);

        confirm.key = 0;
        unit_ask(&b.u, &confirm, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_true(answer.floor == confirm.number);
    }
    check(&b, &r, NETDAM_PERMISSION_ALL);
    unit_stop(&b.u);
}

static void a_full_port_loses_the_answer_but_not_the_effect(void **state)
{
    static struct bench b;
    struct unit_request r;
    struct ndtest_packet answer;
    uint64_t one = 1, old;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    old = unit_memory_get(&b.u, BASE, 8);
    r = make(&b, FETCH_ADD, 0, NETDAM_TYPE_U64, 0, 8);
    r.payload = (const uint8_t *)&one;
    b.u.port_room = 0;
    unit_request(&b.u, &r);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ANSWERS_DROPPED), 1);
    assert_true(unit_memory_get(&b.u, BASE, 8) == old + 1);
    b.u.port_room = UINT32_MAX;
    unit_ask(&b.u, &r, &answer);
    assert_int_equal(answer.flags, NETDAM_FLAG_PAYLOAD_CRC | NETDAM_FLAG_AGAIN);
    assert_memory_equal(answer.payload, &old, 8);
    assert_true(unit_memory_get(&b.u, BASE, 8) == old + 1);
    unit_stop(&b.u);
}

static void answers_go_where_the_request_came_from(void **state)
{
    static struct bench b;
    uint8_t frame[UNIT_FRAME_ROOM];
    const uint8_t *sent;
    size_t bytes;
    struct unit_request r;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (unsigned family = 4; family <= 6; family += 2) {
        size_t source = family == 6 ? 22 : 26, ports = family == 6 ? 54 : 34;

        r = make(&b, READ, 0, 0, 0, 8);
        r.family = family;
        bytes = unit_request_frame(frame, 0, &r);
        frame[7] = 0x55;       /* a router's MAC */
        frame[source + 2] = 9; /* another network */
        unit_put16(frame + ports, 1234);
        ndtest_frame_repair(frame, bytes, false);
        unit_receive(&b.u, frame, bytes);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_memory_equal(sent, frame + 6, 6);
        assert_memory_equal(sent + 6, b.u.node.config.mac, 6);
        assert_memory_equal(sent + source + (family == 6 ? 16 : 4), frame + source, family == 6 ? 16 : 4);
        assert_memory_equal(sent + ports + 2, frame + ports, 2);
        assert_int_equal(sent[ports] << 8 | sent[ports + 1], NETDAM_UDP_PORT);
    }
    unit_stop(&b.u);
}

static void without_payload_crc_answers_carry_none_and_are_otherwise_the_same(void **state)
{
    static struct bench b;
    struct netdam_fw_config config = unit_config(1);
    struct ndtest_packet answer;
    struct unit_request r;

    (void)state;
    config.no_payload_crc = 1;
    bench_start(&b, NETDAM_PERMISSION_ALL, &config);
    for (uint32_t length = 0; length < 40; length++) {
        r = make(&b, READ, 0, 0, length, length);
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.flags, 0);
        assert_int_equal(answer.payload_bytes, length);
        assert_memory_equal(answer.payload, b.shadow + BASE + length, length);
        r = make(&b, ECHO, 0, 0, 0, length);
        r.no_crc = true;
        unit_ask(&b.u, &r, &answer);
        assert_memory_equal(answer.payload, b.payload, length);
    }
    unit_stop(&b.u);
}

static void over_ipv6_answers_are_shorter_by_the_longer_header(void **state)
{
    static struct bench b;
    struct ndtest_packet answer;
    struct unit_request r;

    (void)state;
    bench_start(&b, NETDAM_PERMISSION_ALL, NULL);
    for (uint32_t length = PAYLOAD - 40; length <= PAYLOAD; length++) {
        r = make(&b, READ, 0, 0, 0, length);
        r.family = 6;
        unit_ask(&b.u, &r, &answer);
        assert_int_equal(answer.status,
                         length <= netdam_payload_max(1500 - 20) ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_LENGTH);
    }
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_type_length_and_address_edge),
        cmocka_unit_test(every_operation_on_every_type),
        cmocka_unit_test(atomics_return_the_old_value_and_wrap),
        cmocka_unit_test(every_set_of_permissions_for_every_opcode),
        cmocka_unit_test(a_repetition_is_answered_from_memory_and_not_executed),
        cmocka_unit_test(a_refusal_is_final_even_when_its_reason_has_gone),
        cmocka_unit_test(what_depends_on_the_packet_alone_leaves_no_trace),
        cmocka_unit_test(payload_of_the_wrong_length_for_the_opcode),
        cmocka_unit_test(refusals_are_limited_and_answers_are_not),
        cmocka_unit_test(nobody_gets_more_than_three_times_what_an_unproven_address_sent),
        cmocka_unit_test(stale_names_the_right_generation_and_echoes_the_wrong_one),
        cmocka_unit_test(busy_leaves_the_number_and_names_generation),
        cmocka_unit_test(a_full_port_loses_the_answer_but_not_the_effect),
        cmocka_unit_test(answers_go_where_the_request_came_from),
        cmocka_unit_test(without_payload_crc_answers_carry_none_and_are_otherwise_the_same),
        cmocka_unit_test(over_ipv6_answers_are_shorter_by_the_longer_header),
    };

    return cmocka_run_group_tests_name("responder", tests, NULL, NULL);
}
