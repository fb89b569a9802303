/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU: element by element, one loop per operation and type, plain enough for the compiler to vectorize. */
#include "ndfw.h"

#define CANONICAL_NAN_F32 0x7fc00000u
#define CANONICAL_NAN_F64 UINT64_C(0x7ff8000000000000)

static inline float f32_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline double f64_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t bits_of_f64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Equal values differ in sign only if they are zeros: OR keeps the minus, AND drops it. */
#define FLOAT_FUNCTIONS(name, bits_type, of, bits_of, canonical)                                                       \
    static inline bits_type name##_sum(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = bits_of(of(a) + of(b));                                                                          \
        return of(r) != of(r) ? (canonical) : r;                                                                       \
    }                                                                                                                  \
    static inline bits_type name##_product(bits_type a, bits_type b)                                                   \
    {                                                                                                                  \
        bits_type r = bits_of(of(a) * of(b));                                                                          \
        return of(r) != of(r) ? (canonical) : r;                                                                       \
    }                                                                                                                  \
    static inline bits_type name##_min(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = of(a) == of(b) ? (bits_type)(a | b) : of(a) < of(b) ? a : b;                                     \
        return of(a) != of(a) || of(b) != of(b) ? (canonical) : r;                                                     \
    }                                                                                                                  \
    static inline bits_type name##_max(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = of(a) == of(b) ? (bits_type)(a & b) : of(a) > of(b) ? a : b;                                     \
        return of(a) != of(a) || of(b) != of(b) ? (canonical) : r;                                                     \
    }

FLOAT_FUNCTIONS(f32, uint32_t, f32_of, bits_of_f32, CANONICAL_NAN_F32)
FLOAT_FUNCTIONS(f64, uint64_t, f64_of, bits_of_f64, CANONICAL_NAN_F64)

/* Integers are computed in 64-bit unsigned arithmetic, which wraps, and cut to their width. */
#define INTEGER_FUNCTIONS(name, bits_type, value_type)                                                                 \
    static inline bits_type name##_sum(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (bits_type)((uint64_t)a + b);                                                                           \
    }                                                                                                                  \
    static inline bits_type name##_product(bits_type a, bits_type b)                                                   \
    {                                                                                                                  \
        return (bits_type)((uint64_t)a * b);                                                                           \
    }                                                                                                                  \
    static inline bits_type name##_min(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (value_type)a < (value_type)b ? a : b;                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_max(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return (value_type)a > (value_type)b ? a : b;                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_and(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return a & b;                                                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_or(bits_type a, bits_type b)                                                        \
    {                                                                                                                  \
        return a | b;                                                                                                  \
    }                                                                                                                  \
    static inline bits_type name##_xor(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        return a ^ b;                                                                                                  \
    }

/*
 * Halves are computed in binary32: it has more than twice their digits and two to spare, so that rounding twice gives
 * what rounding once gives (for sums and products).
 */
static inline float f16_value(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1f;
    uint32_t fraction = half & 0x3ff;

    if (exponent == 0x1f) {
        return f32_of(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent != 0) {
        return f32_of(sign | (exponent + 112) << 23 | fraction << 13);
    }
    return f32_of(sign | bits_of_f32((float)(int32_t)fraction * 0x1p-24f));
}

/* To the nearest, ties to even. */
static inline uint16_t f16_bits(float value)
{
    uint32_t bits = bits_of_f32(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t rest;

    bits &= 0x7fffffffu;
    if (bits >= 0x7f800000u) {
        return (uint16_t)(bits > 0x7f800000u ? 0x7e00u : (uint32_t)sign | 0x7c00u);
    }
    if (bits >= 0x38800000u) {
        bits += 0xfffu + (bits >> 13 & 1);
        return bits >= 0x47800000u ? (uint16_t)(sign | 0x7c00u) : (uint16_t)(sign | ((bits - 0x38000000u) >> 13));
    }
    /* Below the smallest normal half: adding 0.5 leaves, rounded, the multiple of 2^-24 in the low bits. */
    rest = bits_of_f32(f32_of(bits) + 0.5f) - bits_of_f32(0.5f);
    return (uint16_t)(sign | rest);
}

static inline float bf16_value(uint16_t half)
{
    return f32_of((uint32_t)half << 16);
}

static inline uint16_t bf16_bits(float value)
{
    uint32_t bits = bits_of_f32(value);

    if (value != value) {
        return 0x7fc0u;
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

FLOAT_FUNCTIONS(f16, uint16_t, f16_value, f16_bits, 0x7e00u)
FLOAT_FUNCTIONS(bf16, uint16_t, bf16_value, bf16_bits, 0x7fc0u)

INTEGER_FUNCTIONS(u8, uint8_t, uint8_t)
INTEGER_FUNCTIONS(i8, uint8_t, int8_t)
INTEGER_FUNCTIONS(u16, uint16_t, uint16_t)
INTEGER_FUNCTIONS(i16, uint16_t, int16_t)
INTEGER_FUNCTIONS(u32, uint32_t, uint32_t)
INTEGER_FUNCTIONS(i32, uint32_t, int32_t)
INTEGER_FUNCTIONS(u64, uint64_t, uint64_t)
INTEGER_FUNCTIONS(i64, uint64_t, int64_t)

/* Sums that stay at the limit: of the overflowing sum's sign there is only one. */
#define SATURATING_FUNCTION(name, bits_type, value_type, low, high)                                                    \
    static inline bits_type name##_saturating(bits_type a, bits_type b)                                                \
    {                                                                                                                  \
        value_type sum;                                                                                                \
        bool over = __builtin_add_overflow((value_type)a, (value_type)b, &sum);                                        \
        return !over ? (bits_type)sum : (value_type)a < 0 ? (bits_type)(low) : (bits_type)(high);                      \
    }
#define SATURATING_UNSIGNED(name, bits_type)                                                                           \
    static inline bits_type name##_saturating(bits_type a, bits_type b)                                                \
    {                                                                                                                  \
        bits_type sum = (bits_type)((uint64_t)a + b);                                                                  \
        return sum < a ? (bits_type)UINT64_MAX : sum;                                                                  \
    }

SATURATING_UNSIGNED(u8, uint8_t)
SATURATING_UNSIGNED(u16, uint16_t)
SATURATING_UNSIGNED(u32, uint32_t)
SATURATING_UNSIGNED(u64, uint64_t)
SATURATING_FUNCTION(i8, uint8_t, int8_t, INT8_MIN, INT8_MAX)
SATURATING_FUNCTION(i16, uint16_t, int16_t, INT16_MIN, INT16_MAX)
SATURATING_FUNCTION(i32, uint32_t, int32_t, INT32_MIN, INT32_MAX)
SATURATING_FUNCTION(i64, uint64_t, int64_t, INT64_MIN, INT64_MAX)

/* X(operation, type, function prefix, function, bits type) */
#define INTEGER_KERNELS(X, TYPE, name, bits_type)                                                                      \
    X(SUM, TYPE, name, sum, bits_type)                                                                                 \
    X(PRODUCT, TYPE, name, product, bits_type)                                                                         \
    X(MIN, TYPE, name, min, bits_type)                                                                                 \
    X(MAX, TYPE, name, max, bits_type)                                                                                 \
    X(AND, TYPE, name, and, bits_type)                                                                                 \
    X(OR, TYPE, name, or, bits_type)                                                                                   \
    X(XOR, TYPE, name, xor, bits_type)                                                                                 \
    X(SUM_SATURATING, TYPE, name, saturating, bits_type)

#define FLOAT_KERNELS(X, TYPE, name, bits_type)                                                                        \
    X(SUM, TYPE, name, sum, bits_type)                                                                                 \
    X(PRODUCT, TYPE, name, product, bits_type)                                                                         \
    X(MIN, TYPE, name, min, bits_type)                                                                                 \
    X(MAX, TYPE, name, max, bits_type)

#define KERNELS(X)                                                                                                     \
    INTEGER_KERNELS(X, U8, u8, uint8_t)                                                                                \
    INTEGER_KERNELS(X, I8, i8, uint8_t)                                                                                \
    INTEGER_KERNELS(X, U16, u16, uint16_t)                                                                             \
    INTEGER_KERNELS(X, I16, i16, uint16_t)                                                                             \
    INTEGER_KERNELS(X, U32, u32, uint32_t)                                                                             \
    INTEGER_KERNELS(X, I32, i32, uint32_t)                                                                             \
    INTEGER_KERNELS(X, U64, u64, uint64_t)                                                                             \
    INTEGER_KERNELS(X, I64, i64, uint64_t)                                                                             \
    FLOAT_KERNELS(X, F16, f16, uint16_t)                                                                               \
    FLOAT_KERNELS(X, BF16, bf16, uint16_t)                                                                             \
    FLOAT_KERNELS(X, F32, f32, uint32_t)                                                                               \
    FLOAT_KERNELS(X, F64, f64, uint64_t)

/* On-board memory is aligned to the element, so that each element is one access; the frame's bytes lie anywhere. */
#define KERNEL_FUNCTIONS(OPERATION, TYPE, name, function, bits_type)                                                   \
    static void reduce_##name##_##function(uint8_t *restrict memory, const uint8_t *restrict operand, size_t count)    \
    {                                                                                                                  \
        bits_type *elements = (bits_type *)(void *)memory;                                                             \
        for (size_t i = 0; i < count; i++) {                                                                           \
            bits_type value;                                                                                           \
            memcpy(&value, operand + i * sizeof(value), sizeof(value));                                                \
            elements[i] = name##_##function(elements[i], value);                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void into_##name##_##function(uint8_t *restrict payload, const uint8_t *restrict memory, size_t count)      \
    {                                                                                                                  \
        const bits_type *elements = (const bits_type *)(const void *)memory;                                           \
        for (size_t i = 0; i < count; i++) {                                                                           \
            bits_type value;                                                                                           \
            memcpy(&value, payload + i * sizeof(value), sizeof(value));                                                \
            value = name##_##function(value, elements[i]);                                                             \
            memcpy(payload + i * sizeof(value), &value, sizeof(value));                                                \
        }                                                                                                              \
    }
KERNELS(KERNEL_FUNCTIONS)

bool ndfw_alu_executes(unsigned operation, unsigned type)
{
    switch (operation << 8 | type) {
#define KERNEL_CASE(OPERATION, TYPE, name, function, bits_type) case NETDAM_ALU_##OPERATION << 8 | NETDAM_TYPE_##TYPE:
        KERNELS(KERNEL_CASE)
#undef KERNEL_CASE
        return true;
    default:
        return false;
    }
}

void ndfw_alu_reduce(const struct ndfw *fw, uint8_t *memory, const uint8_t *operand, size_t bytes, unsigned operation,
                     unsigned type)
{
    (void)fw;
    switch (operation << 8 | type) {
#define KERNEL_CASE(OPERATION, TYPE, name, function, bits_type)                                                        \
    case NETDAM_ALU_##OPERATION << 8 | NETDAM_TYPE_##TYPE:                                                             \
        reduce_##name##_##function(memory, operand, bytes / sizeof(bits_type));                                        \
        break;
        KERNELS(KERNEL_CASE)
#undef KERNEL_CASE
    default:
        break;
    }
}

void ndfw_alu_reduce_into(const struct ndfw *fw, uint8_t *payload, const uint8_t *memory, size_t bytes,
                          unsigned operation, unsigned type)
{
    (void)fw;
    switch (operation << 8 | type) {
#define KERNEL_CASE(OPERATION, TYPE, name, function, bits_type)                                                        \
    case NETDAM_ALU_##OPERATION << 8 | NETDAM_TYPE_##TYPE:                                                             \
        into_##name##_##function(payload, memory, bytes / sizeof(bits_type));                                          \
        break;
        KERNELS(KERNEL_CASE)
#undef KERNEL_CASE
    default:
        break;
    }
}

uint64_t ndfw_alu_apply(uint64_t value, uint64_t operand, unsigned operation, unsigned type)
{
    ndfw_alu_reduce(NULL, (uint8_t *)&value, (const uint8_t *)&operand, netdam_type_bytes(type), operation, type);
    return value;
}
