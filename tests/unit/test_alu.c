/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU: every operation, type and edge value against the reference, and the algebra's claims as claims. */
#include "unit.h"

#include "reference.h"

#include <stdio.h>

#define OPERATIONS 9u /* one past SUM_SATURATING */
#define TYPES      13u

static const struct ndfw fw;

static uint64_t reduce_one(unsigned operation, unsigned type, uint64_t a, uint64_t b)
{
    unsigned bytes = netdam_type_bytes(type);
    uint64_t memory = a;

    ndfw_alu_reduce(&fw, (uint8_t *)&memory, (const uint8_t *)&b, bytes, operation, type);
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

static void every_operation_type_and_pair_of_edge_values_agrees_with_the_reference(void **state)
{
    unsigned pairs = 0;

    (void)state;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            uint64_t edges[REFERENCE_EDGES];
            unsigned count;

            if (!ndfw_alu_executes(operation, type)) {
                continue;
            }
            count = reference_edges(type, edges);
            for (unsigned i = 0; i < count; i++) {
                for (unsigned k = 0; k < count; k++, pairs++) {
                    uint64_t got = reduce_one(operation, type, edges[i], edges[k]);
                    uint64_t want = reference(operation, type, edges[i], edges[k]);

                    if (got != want) {
                        fail_msg("operation %u type %u: %#llx, %#llx gives %#llx, expected %#llx", operation, type,
                                 (unsigned long long)edges[i], (unsigned long long)edges[k], (unsigned long long)got,
                                 (unsigned long long)want);
                    }
                }
            }
        }
    }
    assert_true(pairs > 20000);
}

static void random_values_agree_with_the_reference(void **state)
{
    struct ndtest_random random = {11};

    (void)state;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            uint64_t mask =
                netdam_type_bytes(type) == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * netdam_type_bytes(type)) - 1;

            for (unsigned i = 0; i < 2000 && ndfw_alu_executes(operation, type); i++) {
                uint64_t a = ndtest_random_next(&random) & mask;
                uint64_t b = ndtest_random_next(&random) & mask;

                /* Floats whose exponents are far apart say little: bring half of them together. */
                if (i % 2 == 0 && netdam_type_class_of(type) == NETDAM_TYPE_CLASS_FLOAT) {
                    b = (a & ~(mask >> 12)) ^ (b & (mask >> 10)) ^ (b << 63 & ~(mask >> 1) & mask);
                }
                if (reduce_one(operation, type, a, b) != reference(operation, type, a, b)) {
                    fail_msg("operation %u type %u: %#llx, %#llx", operation, type, (unsigned long long)a,
                             (unsigned long long)b);
                }
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

static void every_half_meets_every_edge(void **state)
{
    (void)state;
    for (unsigned type = NETDAM_TYPE_F16; type <= NETDAM_TYPE_BF16; type++) {
        uint64_t edges[REFERENCE_EDGES];
        unsigned count = reference_edges(type, edges);

        for (unsigned operation = NETDAM_ALU_SUM; operation <= NETDAM_ALU_MAX; operation++) {
            for (uint32_t a = 0; a <= UINT16_MAX; a++) {
                uint64_t e = edges[(a + operation) % count];

                if (reduce_one(operation, type, a, e) != reference(operation, type, a, e)) {
                    fail_msg("operation %u type %u: %#x, %#llx gives %#llx", operation, type, a, (unsigned long long)e,
                             (unsigned long long)reduce_one(operation, type, a, e));
                }
            }
        }
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

static void vectors_of_every_length_with_operands_at_every_alignment(void **state)
{
    static const unsigned counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 175};
    struct ndtest_random random = {12};
    uint64_t memory_words[256], before[256];
    uint8_t operand_room[8 * 200 + 16];
    uint8_t *memory = (uint8_t *)memory_words;

    (void)state;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            unsigned bytes = netdam_type_bytes(type);

            for (unsigned c = 0; c < ARRAY_SIZE(counts) && ndfw_alu_executes(operation, type); c++) {
                unsigned alignment = (c + operation + type) % 8;
                uint8_t *operand = operand_room + alignment;
                unsigned at = bytes * (1 + c % 8); /* memory aligned to the element only */

                ndtest_random_fill(&random, operand_room, sizeof(operand_room));
                ndtest_random_fill(&random, memory_words, sizeof(memory_words));
                memcpy(before, memory_words, sizeof(before));
                ndfw_alu_reduce(&fw, memory + at, operand, (size_t)counts[c] * bytes, operation, type);
                for (unsigned i = 0; i < counts[c]; i++) {
                    uint64_t got = 0, a = 0, b = 0;

                    memcpy(&got, memory + at + i * bytes, bytes);
                    memcpy(&a, (uint8_t *)before + at + i * bytes, bytes);
                    memcpy(&b, operand + i * bytes, bytes);
                    assert_true(got == reference(operation, type, a, b));
                }
                assert_memory_equal(memory, before, at);
                assert_memory_equal(memory + at + counts[c] * bytes, (uint8_t *)before + at + counts[c] * bytes,
                                    sizeof(before) - at - counts[c] * bytes);
            }
        }
    }
}

/* payload = payload op memory: the payload at every alignment, the memory at every one that its elements have. */
static void memory_goes_into_payloads_of_every_length_at_every_alignment(void **state)
{
    struct ndtest_random random = {13};
    uint64_t memory_words[64], memory_before[64];
    uint8_t room[8 * 64], before[8 * 64];

    (void)state;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned type = 0; type < TYPES; type++) {
            unsigned bytes = netdam_type_bytes(type);

            for (unsigned count = 0; ndfw_alu_executes(operation, type) && count <= 40; count++) {
                unsigned at = 8 + count % 8;
                const uint8_t *memory = (const uint8_t *)memory_words + bytes * (count % 3);

                ndtest_random_fill(&random, memory_words, sizeof(memory_words));
                ndtest_random_fill(&random, room, sizeof(room));
                memcpy(memory_before, memory_words, sizeof(memory_before));
                memcpy(before, room, sizeof(before));
                ndfw_alu_reduce_into(&fw, room + at, memory, (size_t)count * bytes, operation, type);
                for (unsigned i = 0; i < count; i++) {
                    uint64_t got = 0, a = 0, b = 0;

                    memcpy(&got, room + at + i * bytes, bytes);
                    memcpy(&a, before + at + i * bytes, bytes);
                    memcpy(&b, memory + i * bytes, bytes);
                    assert_true(got == reference(operation, type, a, b));
                }
                assert_memory_equal(memory_words, memory_before, sizeof(memory_words));
                assert_memory_equal(room, before, at);
                assert_memory_equal(room + at + count * bytes, before + at + count * bytes,
                                    sizeof(room) - at - count * bytes);
            }
        }
    }
}

static void what_is_not_executed_changes_nothing(void **state)
{
    uint64_t memory = UINT64_C(0x1122334455667788);
    const uint64_t operand = 3;

    (void)state;
    for (unsigned operation = 0; operation < 256; operation++) {
        for (unsigned type = 0; type < 256; type++) {
            if (!ndfw_alu_executes(operation, type)) {
                ndfw_alu_reduce(&fw, (uint8_t *)&memory, (const uint8_t *)&operand, 8, operation, type);
                assert_true(memory == UINT64_C(0x1122334455667788));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executes_exactly_what_it_should),
        cmocka_unit_test(every_operation_type_and_pair_of_edge_values_agrees_with_the_reference),
        cmocka_unit_test(random_values_agree_with_the_reference),
        cmocka_unit_test(values_that_one_knows),
        cmocka_unit_test(every_half_meets_every_edge),
        cmocka_unit_test(one_element_at_a_time_gives_the_same),
        cmocka_unit_test(vectors_of_every_length_with_operands_at_every_alignment),
        cmocka_unit_test(memory_goes_into_payloads_of_every_length_at_every_alignment),
        cmocka_unit_test(what_is_not_executed_changes_nothing),
        cmocka_unit_test(every_claim_of_the_algebra_holds_and_what_is_not_claimed_does_not),
        cmocka_unit_test(writes_repeat_but_do_not_commute),
        cmocka_unit_test(compare_and_swap_neither_commutes_nor_merges),
    };

    return cmocka_run_group_tests_name("alu", tests, NULL, NULL);
}
