/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU: every operation, type and edge value against the reference, and the algebra's claims as claims. */
#include "unit.h"

#include "platform_cpu.h"
#include "reference.h"

#include <stdio.h>

#define OPERATIONS   9u /* one past SUM_SATURATING */
#define TYPES        13u
#define LENGTH_MOST  300u
#define MANY_MOST    65536u
#define CANARY       0xc9
#define CANARY_BYTES 16u

#define FEATURES_AVX2 (NETDAM_FW_CPU_AVX2 | NETDAM_FW_CPU_F16C)
#define FEATURES_AVX512                                                                                                \
    (FEATURES_AVX2 | NETDAM_FW_CPU_AVX512F | NETDAM_FW_CPU_AVX512BW | NETDAM_FW_CPU_AVX512DQ | NETDAM_FW_CPU_AVX512VL)

struct level {
    uint64_t features;
};
static struct level baseline = {0};
static struct level avx2 = {FEATURES_AVX2};
static struct level avx512 = {FEATURES_AVX512};

static struct ndfw fw;

/* The test goes on with this level's instructions. */
static void use_level(void **state)
{
    const struct level *level = *state;

    fw.config.cpu_features = level->features;
}

/* cmocka passes by what has no name. (What is skipped, cmocka 1.1.5 calls "not ok".) */
static void leave_out_what_is_not_here(struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct level *level = tests[i].initial_state;

        if (level != NULL && (ndfw_platform_cpu_features() & level->features) != level->features) {
            print_message("# not tested, for this CPU or its operating system does not offer it: %s\n", tests[i].name);
            tests[i] = (struct CMUnitTest){.name = NULL};
        }
    }
}

static uint64_t reduce_one(unsigned operation, unsigned type, uint64_t a, uint64_t b)
{
    uint64_t memory = a;

    ndfw_alu_reduce(&fw, (uint8_t *)&memory, (const uint8_t *)&b, netdam_type_bytes(type), operation, type);
    return memory;
}

static void executes_exactly_what_it_should(void **state)
{
    (void)state;
    for (unsigned operation = 0; operation < 256; operation++) {
        for (unsigned type = 0; type < 256; type++) {
            assert_int_equal(ndfw_alu_executes(operation, type),
                             netdam_algebra(NETDAM_OP_REDUCE, operation, type) >= 0);
        }
    }
    /* What a caller could pass by mistake. */
    assert_false(ndfw_alu_executes(0x100 | NETDAM_ALU_SUM, NETDAM_TYPE_I32));
}

/* Elements of one type, with what the reference makes of them. */
struct vector {
    uint64_t a[MANY_MOST], b[MANY_MOST]; /* as the type has them, one beside the other */
    uint64_t want[MANY_MOST];
    unsigned count;
};
static struct vector vector;

static void vector_add(unsigned operation, unsigned type, uint64_t a, uint64_t b)
{
    unsigned bytes = netdam_type_bytes(type);
    uint64_t want = reference(operation, type, a, b);
    size_t at = (size_t)vector.count * bytes;

    assert_true(vector.count < MANY_MOST);
    memcpy((uint8_t *)vector.a + at, &a, bytes);
    memcpy((uint8_t *)vector.b + at, &b, bytes);
    memcpy((uint8_t *)vector.want + at, &want, bytes);
    vector.count++;
}

static uint64_t element(const void *elements, unsigned index, unsigned bytes)
{
    uint64_t value = 0;

    memcpy(&value, (const uint8_t *)elements + (size_t)index * bytes, bytes);
    return value;
}

static void expect(const uint8_t *got, unsigned count, unsigned operation, unsigned type, const char *way)
{
    unsigned bytes = netdam_type_bytes(type);

    if (memcmp(got, vector.want, (size_t)count * bytes) == 0) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        if (element(got, i, bytes) != element(vector.want, i, bytes)) {
            fail_msg("%s: operation %u type %u, element %u of %u: %#llx, %#llx gives %#llx, expected %#llx", way,
                     operation, type, i, count, (unsigned long long)element(vector.a, i, bytes),
                     (unsigned long long)element(vector.b, i, bytes), (unsigned long long)element(got, i, bytes),
                     (unsigned long long)element(vector.want, i, bytes));
        }
    }
}

/* The whole vector, into memory and into payload. */
static void expect_all(unsigned operation, unsigned type)
{
    static uint64_t memory[MANY_MOST], payload[MANY_MOST];
    size_t bytes = (size_t)vector.count * netdam_type_bytes(type);

    memcpy(memory, vector.a, bytes);
    ndfw_alu_reduce(&fw, (uint8_t *)memory, (const uint8_t *)vector.b, bytes, operation, type);
    expect((const uint8_t *)memory, vector.count, operation, type, "into memory");
    memcpy(payload, vector.a, bytes);
    ndfw_alu_reduce_into(&fw, (uint8_t *)payload, (uint8_t *)payload, (const uint8_t *)vector.b, bytes, operation,
                         type);
    expect((const uint8_t *)payload, vector.count, operation, type, "into payload");
}

static void every_operation_type_and_pair_of_edge_values_agrees_with_the_reference(void **state)
{
    unsigned pairs = 0;

    use_level(state);
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            uint64_t edges[REFERENCE_EDGES];
            unsigned count;

            if (!ndfw_alu_executes(operation, type)) {
                continue;
            }
            count = reference_edges(type, edges);
            vector.count = 0;
            for (unsigned i = 0; i < count; i++) {
                for (unsigned k = 0; k < count; k++, pairs++) {
                    vector_add(operation, type, edges[i], edges[k]);
                }
            }
            expect_all(operation, type);
        }
    }
    assert_true(pairs > 20000);
}

/* Floats whose exponents are far apart say little: half of them are brought together. */
static void vector_add_random(unsigned operation, unsigned type, unsigned count, struct ndtest_random *random)
{
    uint64_t mask = netdam_type_bytes(type) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * netdam_type_bytes(type)) - 1;

    for (unsigned i = 0; i < count; i++) {
        uint64_t a = ndtest_random_next(random) & mask;
        uint64_t b = ndtest_random_next(random) & mask;

        if (i % 2 == 0 && netdam_type_class_of(type) == NETDAM_TYPE_CLASS_FLOAT) {
            b = (a & ~(mask >> 12)) ^ (b & (mask >> 10)) ^ (b << 63 & ~(mask >> 1) & mask);
        }
        vector_add(operation, type, a, b);
    }
}

static void random_values_agree_with_the_reference(void **state)
{
    struct ndtest_random random = {11};

    use_level(state);
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            if (ndfw_alu_executes(operation, type)) {
                vector.count = 0;
                vector_add_random(operation, type, 2000, &random);
                expect_all(operation, type);
            }
        }
    }
}

static void every_half_meets_every_edge(void **state)
{
    use_level(state);
    for (unsigned type = NETDAM_TYPE_F16; type <= NETDAM_TYPE_BF16; type++) {
        uint64_t edges[REFERENCE_EDGES];
        unsigned count = reference_edges(type, edges);

        for (unsigned operation = NETDAM_ALU_SUM; operation <= NETDAM_ALU_MAX; operation++) {
            vector.count = 0;
            for (uint32_t a = 0; a <= UINT16_MAX; a++) {
                vector_add(operation, type, a, edges[(a + operation) % count]);
            }
            expect_all(operation, type);
        }
    }
}

/* Room for a vector at `misalignment` bytes beyond a multiple of 8, with canaries on both sides. */
struct room {
    uint64_t words[LENGTH_MOST + 2 * CANARY_BYTES / 8 + 1];
};

static uint8_t *room_fill(struct room *room, unsigned misalignment, const void *elements, size_t bytes)
{
    uint8_t *at = (uint8_t *)room->words + CANARY_BYTES + misalignment;

    memset(at - CANARY_BYTES, CANARY, CANARY_BYTES);
    memcpy(at, elements, bytes);
    memset(at + bytes, CANARY, CANARY_BYTES);
    return at;
}

static void expect_canaries(const uint8_t *at, size_t bytes)
{
    static const uint8_t canaries[CANARY_BYTES] = {[0 ... CANARY_BYTES - 1] = CANARY};

    assert_memory_equal(at - CANARY_BYTES, canaries, CANARY_BYTES);
    assert_memory_equal(at + bytes, canaries, CANARY_BYTES);
}

/* On-board memory at each alignment that elements have in turn; the frame's bytes at every one, both ways. */
static void every_length_and_alignment(unsigned operation, unsigned type)
{
    static struct room memory_room, frame_room;
    unsigned size = netdam_type_bytes(type);

    for (unsigned count = 0; count <= LENGTH_MOST; count++) {
        size_t bytes = (size_t)count * size;

        for (unsigned misalignment = 0; misalignment < 8; misalignment++) {
            unsigned aligned = (count + misalignment) * size % 8;
            uint8_t *memory = room_fill(&memory_room, aligned, vector.a, bytes);
            uint8_t *frame = room_fill(&frame_room, misalignment, vector.b, bytes);

            ndfw_alu_reduce(&fw, memory, frame, bytes, operation, type);
            expect(memory, count, operation, type, "into memory");
            assert_memory_equal(frame, vector.b, bytes);
            expect_canaries(memory, bytes);

            memory = room_fill(&memory_room, aligned, vector.b, bytes);
            frame = room_fill(&frame_room, misalignment, vector.a, bytes);
            ndfw_alu_reduce_into(&fw, frame, frame, memory, bytes, operation, type);
            expect(frame, count, operation, type, "into payload");
            assert_memory_equal(memory, vector.b, bytes);
            expect_canaries(frame, bytes);
        }
    }
}

static void vectors_of_every_length_at_every_alignment(void **state)
{
    struct ndtest_random random = {12};

    use_level(state);
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            if (ndfw_alu_executes(operation, type)) {
                vector.count = 0;
                vector_add_random(operation, type, LENGTH_MOST, &random);
                every_length_and_alignment(operation, type);
            }
        }
    }
}

static void what_is_not_executed_changes_nothing(void **state)
{
    uint64_t memory = UINT64_C(0x1122334455667788);
    const uint64_t operand = 3;

    use_level(state);
    for (unsigned operation = 0; operation < 256; operation++) {
        for (unsigned type = 0; type < 256; type++) {
            if (!ndfw_alu_executes(operation, type)) {
                ndfw_alu_reduce(&fw, (uint8_t *)&memory, (const uint8_t *)&operand, 8, operation, type);
                ndfw_alu_reduce_into(&fw, (uint8_t *)&memory, (uint8_t *)&memory, (const uint8_t *)&operand, 8,
                                     operation, type);
                assert_true(memory == UINT64_C(0x1122334455667788));
            }
        }
    }
}

static void values_that_one_knows(void **state)
{
    static const struct {
        unsigned operation, type;
        uint64_t a, b, result;
    } rows[] = {
        {NETDAM_ALU_SUM, NETDAM_TYPE_I32, 0x7fffffff, 1, 0x80000000},
        {NETDAM_ALU_SUM, NETDAM_TYPE_U8, 0xff, 2, 1},
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_U16, 0xffff, 0xffff, 1},
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_I64, UINT64_C(0x8000000000000000), UINT64_MAX, UINT64_C(0x8000000000000000)},
        {NETDAM_ALU_MIN, NETDAM_TYPE_I8, 0x80, 0x7f, 0x80},
        {NETDAM_ALU_MIN, NETDAM_TYPE_U8, 0x80, 0x7f, 0x7f},
        {NETDAM_ALU_MAX, NETDAM_TYPE_I64, UINT64_MAX, 0, 0},
        {NETDAM_ALU_MAX, NETDAM_TYPE_U64, UINT64_MAX, 0, UINT64_MAX},
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x3f800000, 0x40000000, 0x40400000},     /* 1 + 2 = 3 */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x7f800000, 0xff800000, 0x7fc00000},     /* inf - inf */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x80000000, 0x80000000, 0x80000000},     /* -0 + -0 */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x80000000, 0x00000000, 0x00000000},     /* -0 + 0 */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x00000001, 0x00000001, 0x00000002},     /* denormals are kept */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0x7f7fffff, 0x7f7fffff, 0x7f800000},     /* overflow */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, 0xffc12345, 0x3f800000, 0x7fc00000},     /* NaN becomes canonical */
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_F32, 0x7f800000, 0x00000000, 0x7fc00000}, /* inf * 0 */
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_F32, 0x00800000, 0x3f000000, 0x00400000}, /* into the denormals */
        {NETDAM_ALU_MIN, NETDAM_TYPE_F32, 0x00000000, 0x80000000, 0x80000000},     /* -0 < +0 */
        {NETDAM_ALU_MIN, NETDAM_TYPE_F32, 0x80000000, 0x00000000, 0x80000000},
        {NETDAM_ALU_MAX, NETDAM_TYPE_F32, 0x80000000, 0x00000000, 0x00000000},
        {NETDAM_ALU_MIN, NETDAM_TYPE_F32, 0xff800000, 0x7f800001, 0x7fc00000}, /* NaN wins over -inf */
        {NETDAM_ALU_MAX, NETDAM_TYPE_F64, UINT64_C(0xfff8000000000001), 0, UINT64_C(0x7ff8000000000000)},
        {NETDAM_ALU_MIN, NETDAM_TYPE_F64, UINT64_C(0xfff0000000000000), UINT64_C(0x0000000000000001),
         UINT64_C(0xfff0000000000000)},
        {NETDAM_ALU_AND, NETDAM_TYPE_U32, 0xff00ff00, 0x0ff00ff0, 0x0f000f00},
        {NETDAM_ALU_OR, NETDAM_TYPE_U32, 0xff00ff00, 0x0ff00ff0, 0xfff0fff0},
        {NETDAM_ALU_SUM_SATURATING, NETDAM_TYPE_I8, 0x7f, 1, 0x7f},
        {NETDAM_ALU_SUM_SATURATING, NETDAM_TYPE_I8, 0x80, 0xff, 0x80},
        {NETDAM_ALU_SUM_SATURATING, NETDAM_TYPE_U8, 0xff, 1, 0xff},
        {NETDAM_ALU_SUM_SATURATING, NETDAM_TYPE_I64, INT64_MAX, INT64_MAX, INT64_MAX},
        {NETDAM_ALU_MIN, NETDAM_TYPE_F16, 0x8000, 0, 0x8000},
        {NETDAM_ALU_MAX, NETDAM_TYPE_BF16, 0xff81, 0, 0x7fc0},
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x3c00, 0x3c00, 0x4000}, /* 1 + 1 = 2 */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x7bff, 0x4bff, 0x7bff}, /* 65504 + 15.99: below half a step */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x7bff, 0x4c00, 0x7c00}, /* 65504 + 16: half a step, to the even: infinity */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x6800, 0x3c00, 0x6800}, /* 2048 + 1: a tie, to the even */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x6801, 0x3c00, 0x6802}, /* 2050 + 1: a tie, to the even */
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_F16, 0x0001, 0x3800, 0x0000},  /* half the least denormal */
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_F16, 0x0003, 0x3800, 0x0002},  /* 1.5 least ones */
        {NETDAM_ALU_SUM, NETDAM_TYPE_BF16, 0x3f80, 0x3b80, 0x3f80},     /* 1 + 2^-8: a tie, to the even */
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_BF16, 0x7f7f, 0x4000, 0x7f80}, /* overflow */
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x7c00, 0xfc00, 0x7e00},      /* inf - inf */
        {NETDAM_ALU_XOR, NETDAM_TYPE_I32, 0xff00ff00, 0x0ff00ff0, 0xf0f0f0f0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_true(reduce_one(rows[i].operation, rows[i].type, rows[i].a, rows[i].b) == rows[i].result);
        assert_true(reference(rows[i].operation, rows[i].type, rows[i].a, rows[i].b) == rows[i].result);
    }
}

static void one_element_at_a_time_gives_the_same(void **state)
{
    (void)state;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            uint64_t edges[REFERENCE_EDGES];

            for (unsigned i = 1; ndfw_alu_executes(operation, type) && i < reference_edges(type, edges); i++) {
                assert_true(ndfw_alu_apply(edges[i], edges[i - 1], operation, type) ==
                            reference(operation, type, edges[i], edges[i - 1]));
            }
        }
    }
}

/* Counterexamples to the three properties of memory = memory op operand. */
struct found {
    bool not_idempotent, not_commuting, not_associative;
};

static void look_for_counterexamples(unsigned operation, unsigned type, struct found *found)
{
    struct ndtest_random random = {operation * 100 + type};
    uint64_t edges[REFERENCE_EDGES];
    unsigned count = reference_edges(type, edges);
    uint64_t mask = netdam_type_bytes(type) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * netdam_type_bytes(type)) - 1;

    memset(found, 0, sizeof(*found));
    for (unsigned i = 0; i < 6000; i++) {
        uint64_t v[3], once, one_two, two_one, merged;

        for (unsigned k = 0; k < 3; k++) {
            uint64_t draw = ndtest_random_next(&random);

            v[k] = draw % 3 != 0 ? edges[(draw >> 8) % count] : ndtest_random_next(&random) & mask;
        }
        once = reduce_one(operation, type, v[0], v[1]);
        one_two = reduce_one(operation, type, once, v[2]);
        two_one = reduce_one(operation, type, reduce_one(operation, type, v[0], v[2]), v[1]);
        merged = reduce_one(operation, type, v[0], reduce_one(operation, type, v[1], v[2]));
        found->not_idempotent |= reduce_one(operation, type, once, v[1]) != once;
        found->not_commuting |= one_two != two_one;
        found->not_associative |= one_two != merged;
    }
}

/*
 * The operation that an opcode applies to memory: FETCH_ADD is a sum. Rows whose opcode does not compute (READ, WRITE,
 * CAS and the like), or whose flags say nothing about one memory (collectives), are looked at by other tests.
 */
static bool computes(unsigned opcode, unsigned *operation)
{
    if (opcode == NETDAM_OP_FETCH_ADD) {
        *operation = NETDAM_ALU_SUM;
        return true;
    }
    return opcode == NETDAM_OP_REDUCE || opcode == NETDAM_OP_FETCH_OP || opcode == NETDAM_OP_LOAD_REDUCE;
}

static void every_claim_of_the_algebra_holds_and_what_is_not_claimed_does_not(void **state)
{
    static const uint8_t opcodes[] = {NETDAM_OP_REDUCE, NETDAM_OP_FETCH_ADD, NETDAM_OP_FETCH_OP, NETDAM_OP_LOAD_REDUCE};
    unsigned rows = 0;

    (void)state;
    for (size_t o = 0; o < ARRAY_SIZE(opcodes); o++) {
        for (unsigned named = 0; named < OPERATIONS; named++) {
            for (unsigned type = 0; type < TYPES; type++) {
                int claim = netdam_algebra(opcodes[o], named, type);
                unsigned operation = named;
                struct found found;

                if (claim < 0 || !computes(opcodes[o], &operation) ||
                    netdam_algebra(NETDAM_OP_REDUCE, operation, type) < 0) {
                    continue;
                }
                rows++;
                look_for_counterexamples(operation, type, &found);
                /* A claim has no counterexample; and where there is no claim, there is a reason. */
                if (found.not_idempotent == ((claim & (int)NETDAM_ALG_IDEMPOTENT) != 0) ||
                    found.not_commuting == ((claim & (int)NETDAM_ALG_COMMUTES) != 0) ||
                    found.not_associative == ((claim & (int)NETDAM_ALG_ASSOCIATES) != 0)) {
                    fail_msg("opcode %#x operation %u type %u claims %d; counterexamples: idempotent %d, commutes %d, "
                             "associates %d",
                             opcodes[o], named, type, claim, found.not_idempotent, found.not_commuting,
                             found.not_associative);
                }
            }
        }
    }
    assert_true(rows > 150);
}

/* Memory of one small value under the operations that choose instead of computing. */
static unsigned write_to(unsigned memory, unsigned value)
{
    (void)memory;
    return value;
}

static unsigned compare_and_swap(unsigned memory, unsigned compare, unsigned value)
{
    return memory == compare ? value : memory;
}

static void writes_repeat_but_do_not_commute(void **state)
{
    bool commutes = true;

    (void)state;
    for (unsigned m = 0; m < 4; m++) {
        for (unsigned a = 0; a < 4; a++) {
            assert_int_equal(write_to(write_to(m, a), a), write_to(m, a));
            for (unsigned b = 0; b < 4; b++) {
                commutes &= write_to(write_to(m, a), b) == write_to(write_to(m, b), a);
            }
        }
    }
    assert_false(commutes);
    assert_int_equal(netdam_algebra(NETDAM_OP_WRITE, 0, 0), NETDAM_ALG_IDEMPOTENT);
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_I64; type++) {
        assert_int_equal(netdam_algebra(NETDAM_OP_SWAP, 0, type), NETDAM_ALG_IDEMPOTENT);
    }
}

static void compare_and_swap_neither_commutes_nor_merges(void **state)
{
    bool commutes = true, merges = true;

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        unsigned c1 = i & 3, v1 = i >> 2 & 3, c2 = i >> 4 & 3, v2 = i >> 6;
        bool some = false;

        for (unsigned m = 0; m < 4; m++) {
            commutes &= compare_and_swap(compare_and_swap(m, c1, v1), c2, v2) ==
                        compare_and_swap(compare_and_swap(m, c2, v2), c1, v1);
        }
        /* One compare-and-swap that does what the two do to every memory. */
        for (unsigned k = 0; k < 16 && !some; k++) {
            some = true;
            for (unsigned m = 0; m < 4; m++) {
                some &= compare_and_swap(compare_and_swap(m, c1, v1), c2, v2) == compare_and_swap(m, k & 3, k >> 2);
            }
        }
        merges &= some;
    }
    assert_false(commutes);
    assert_false(merges);
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_I64; type++) {
        assert_int_equal(netdam_algebra(NETDAM_OP_CAS, 0, type), 0);
    }
}

#define ON(level, test)                                                                                                \
    {                                                                                                                  \
#test " on " #level, test, NULL, NULL, &(level)                                                                \
    }
#define ON_EACH_LEVEL(test) ON(baseline, test), ON(avx2, test), ON(avx512, test)

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(executes_exactly_what_it_should),
        ON_EACH_LEVEL(every_operation_type_and_pair_of_edge_values_agrees_with_the_reference),
        ON_EACH_LEVEL(random_values_agree_with_the_reference),
        ON_EACH_LEVEL(every_half_meets_every_edge),
        ON_EACH_LEVEL(vectors_of_every_length_at_every_alignment),
        ON_EACH_LEVEL(what_is_not_executed_changes_nothing),
        cmocka_unit_test(values_that_one_knows),
        cmocka_unit_test(one_element_at_a_time_gives_the_same),
        cmocka_unit_test(every_claim_of_the_algebra_holds_and_what_is_not_claimed_does_not),
        cmocka_unit_test(writes_repeat_but_do_not_commute),
        cmocka_unit_test(compare_and_swap_neither_commutes_nor_merges),
    };

    leave_out_what_is_not_here(tests, ARRAY_SIZE(tests));
    return cmocka_run_group_tests_name("alu", tests, NULL, NULL);
}
