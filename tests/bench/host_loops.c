/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that the ALU is compared with. They know nothing of canonical NaNs: the ALU pays for those, they do not. */
#include "host_loops.h"

#include "netdam/isa.h"

#include <string.h>

#define LOOP(name, T, expression)                                                                                      \
    static void name(void *restrict to, const void *restrict from, size_t bytes)                                       \
    {                                                                                                                  \
        T *restrict a = to;                                                                                            \
        const T *restrict b = from;                                                                                    \
        for (size_t i = 0; i < bytes / sizeof(T); i++) {                                                               \
            a[i] = (T)(expression);                                                                                    \
        }                                                                                                              \
    }

#define INTEGER_LOOPS(name, T, U)                                                                                      \
    LOOP(name##_sum, T, (U)a[i] + (U)b[i])                                                                             \
    LOOP(name##_product, T, 1u * (U)a[i] * (U)b[i])                                                                    \
    LOOP(name##_min, T, a[i] < b[i] ? a[i] : b[i])                                                                     \
    LOOP(name##_max, T, a[i] > b[i] ? a[i] : b[i])                                                                     \
    LOOP(name##_and, T, a[i] & b[i])                                                                                   \
    LOOP(name##_or, T, a[i] | b[i])                                                                                    \
    LOOP(name##_xor, T, a[i] ^ b[i])

INTEGER_LOOPS(u8, uint8_t, uint8_t)
INTEGER_LOOPS(i8, int8_t, uint8_t)
INTEGER_LOOPS(u16, uint16_t, uint16_t)
INTEGER_LOOPS(i16, int16_t, uint16_t)
INTEGER_LOOPS(u32, uint32_t, uint32_t)
INTEGER_LOOPS(i32, int32_t, uint32_t)
INTEGER_LOOPS(u64, uint64_t, uint64_t)
INTEGER_LOOPS(i64, int64_t, uint64_t)

/* Saturating: in a wider type where there is one. */
#define CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
LOOP(u8_saturating, uint8_t, CLAMP(a[i] + b[i], 0, UINT8_MAX))
LOOP(i8_saturating, int8_t, CLAMP(a[i] + b[i], INT8_MIN, INT8_MAX))
LOOP(u16_saturating, uint16_t, CLAMP(a[i] + b[i], 0, UINT16_MAX))
LOOP(i16_saturating, int16_t, CLAMP(a[i] + b[i], INT16_MIN, INT16_MAX))
LOOP(u32_saturating, uint32_t, a[i] + b[i] < a[i] ? UINT32_MAX : a[i] + b[i])
LOOP(i32_saturating, int32_t, CLAMP((int64_t)a[i] + b[i], INT32_MIN, INT32_MAX))
LOOP(u64_saturating, uint64_t, a[i] + b[i] < a[i] ? UINT64_MAX : a[i] + b[i])

static inline int64_t sum_i64(int64_t a, int64_t b)
{
    int64_t sum;

    return !__builtin_add_overflow(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}
LOOP(i64_saturating, int64_t, sum_i64(a[i], b[i]))

#define FLOAT_LOOPS(name, T)                                                                                           \
    LOOP(name##_sum, T, a[i] + b[i])                                                                                   \
    LOOP(name##_product, T, a[i] * b[i])                                                                               \
    LOOP(name##_min, T, a[i] < b[i] ? a[i] : b[i])                                                                     \
    LOOP(name##_max, T, a[i] > b[i] ? a[i] : b[i])

FLOAT_LOOPS(f32, float)
FLOAT_LOOPS(f64, double)
#if defined(__FLT16_MAX__) && !defined(__clang__)
FLOAT_LOOPS(f16, _Float16)
#endif

/* No C type: float's upper half, rounded to the nearest. */
static inline float float_of(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t bfloat_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
LOOP(bf16_sum, uint16_t, bfloat_of(float_of(a[i]) + float_of(b[i])))
LOOP(bf16_product, uint16_t, bfloat_of(float_of(a[i]) * float_of(b[i])))
LOOP(bf16_min, uint16_t, float_of(a[i]) < float_of(b[i]) ? a[i] : b[i])
LOOP(bf16_max, uint16_t, float_of(a[i]) > float_of(b[i]) ? a[i] : b[i])

#define FLOAT_CASES(TYPE, name)                                                                                        \
    case NETDAM_ALU_SUM << 8 | NETDAM_TYPE_##TYPE:                                                                     \
        return name##_sum;                                                                                             \
    case NETDAM_ALU_PRODUCT << 8 | NETDAM_TYPE_##TYPE:                                                                 \
        return name##_product;                                                                                         \
    case NETDAM_ALU_MIN << 8 | NETDAM_TYPE_##TYPE:                                                                     \
        return name##_min;                                                                                             \
    case NETDAM_ALU_MAX << 8 | NETDAM_TYPE_##TYPE:                                                                     \
        return name##_max;
#define INTEGER_CASES(TYPE, name)                                                                                      \
    FLOAT_CASES(TYPE, name)                                                                                            \
    case NETDAM_ALU_AND << 8 | NETDAM_TYPE_##TYPE:                                                                     \
        return name##_and;                                                                                             \
    case NETDAM_ALU_OR << 8 | NETDAM_TYPE_##TYPE:                                                                      \
        return name##_or;                                                                                              \
    case NETDAM_ALU_XOR << 8 | NETDAM_TYPE_##TYPE:                                                                     \
        return name##_xor;                                                                                             \
    case NETDAM_ALU_SUM_SATURATING << 8 | NETDAM_TYPE_##TYPE:                                                          \
        return name##_saturating;

host_loop host_loop_for(unsigned operation, unsigned type)
{
    switch (operation << 8 | type) {
        INTEGER_CASES(U8, u8)
        INTEGER_CASES(I8, i8)
        INTEGER_CASES(U16, u16)
        INTEGER_CASES(I16, i16)
        INTEGER_CASES(U32, u32)
        INTEGER_CASES(I32, i32)
        INTEGER_CASES(U64, u64)
        INTEGER_CASES(I64, i64)
        FLOAT_CASES(F32, f32)
        FLOAT_CASES(F64, f64)
        FLOAT_CASES(BF16, bf16)
#if defined(__FLT16_MAX__) && !defined(__clang__)
        FLOAT_CASES(F16, f16)
#endif
    default:
        return NULL;
    }
}
