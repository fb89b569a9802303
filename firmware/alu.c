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
        bits_type r = of(a) == of(b) ? (a | b) : of(a) < of(b) ? a : b;                                                \
        return of(a) != of(a) || of(b) != of(b) ? (canonical) : r;                                                     \
    }                                                                                                                  \
    static inline bits_type name##_max(bits_type a, bits_type b)                                                       \
    {                                                                                                                  \
        bits_type r = of(a) == of(b) ? (a & b) : of(a) > of(b) ? a : b;                                                \
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

INTEGER_FUNCTIONS(u8, uint8_t, uint8_t)
INTEGER_FUNCTIONS(i8, uint8_t, int8_t)
INTEGER_FUNCTIONS(u16, uint16_t, uint16_t)
INTEGER_FUNCTIONS(i16, uint16_t, int16_t)
INTEGER_FUNCTIONS(u32, uint32_t, uint32_t)
INTEGER_FUNCTIONS(i32, uint32_t, int32_t)
INTEGER_FUNCTIONS(u64, uint64_t, uint64_t)
INTEGER_FUNCTIONS(i64, uint64_t, int64_t)

/* X(operation, type, function prefix, function, bits type) */
#define INTEGER_KERNELS(X, TYPE, name, bits_type)                                                                      \
    X(SUM, TYPE, name, sum, bits_type)                                                                                 \
    X(PRODUCT, TYPE, name, product, bits_type)                                                                         \
    X(MIN, TYPE, name, min, bits_type)                                                                                 \
    X(MAX, TYPE, name, max, bits_type)                                                                                 \
    X(AND, TYPE, name, and, bits_type)                                                                                 \
    X(OR, TYPE, name, or, bits_type)                                                                                   \
    X(XOR, TYPE, name, xor, bits_type)

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
    FLOAT_KERNELS(X, F32, f32, uint32_t)                                                                               \
    FLOAT_KERNELS(X, F64, f64, uint64_t)

/* Memory is aligned to the element, so that each element is one access; the operand lies anywhere in a frame. */
#define KERNEL_FUNCTION(OPERATION, TYPE, name, function, bits_type)                                                    \
    static void reduce_##name##_##function(uint8_t *restrict memory, const uint8_t *restrict operand, size_t count)    \
    {                                                                                                                  \
        bits_type *elements = (bits_type *)(void *)memory;                                                             \
        for (size_t i = 0; i < count; i++) {                                                                           \
            bits_type value;                                                                                           \
            memcpy(&value, operand + i * sizeof(value), sizeof(value));                                                \
            elements[i] = name##_##function(elements[i], value);                                                       \
        }                                                                                                              \
    }
KERNELS(KERNEL_FUNCTION)

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

void ndfw_alu_reduce(uint8_t *memory, const uint8_t *operand, size_t bytes, unsigned operation, unsigned type)
{
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
