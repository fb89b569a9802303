/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference ALU: integers in 128 bits, floats in a format so wide that only the last step rounds. */
#include "reference.h"

#include <math.h>
#include <string.h>

/* The format of 113 bits. */
#if __LDBL_MANT_DIG__ == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif

static unsigned width(unsigned type)
{
    return 8 * netdam_type_bytes(type);
}

static uint64_t mask_of(unsigned type)
{
    return width(type) == 64 ? UINT64_MAX : (UINT64_C(1) << width(type)) - 1;
}

static bool is_float(unsigned type)
{
    return netdam_type_class_of(type) == NETDAM_TYPE_CLASS_FLOAT;
}

static bool is_signed(unsigned type)
{
    return netdam_type_class_of(type) == NETDAM_TYPE_CLASS_SIGNED;
}

static unsigned mantissa_bits(unsigned type)
{
    switch (type) {
    case NETDAM_TYPE_F16:
        return 10;
    case NETDAM_TYPE_BF16:
        return 7;
    case NETDAM_TYPE_F32:
        return 23;
    default:
        return 52;
    }
}

/* Exponent bits all set, mantissa 0. */
static uint64_t infinity_of(unsigned type)
{
    return (mask_of(type) >> 1) & ~((UINT64_C(1) << mantissa_bits(type)) - 1);
}

bool reference_is_nan(unsigned type, uint64_t bits)
{
    return is_float(type) && (bits & (mask_of(type) >> 1)) > infinity_of(type);
}

uint64_t reference_canonical_nan(unsigned type)
{
    return infinity_of(type) | UINT64_C(1) << (mantissa_bits(type) - 1);
}

/* An integer that orders floats as IEEE 754-2019 minimum and maximum do: -0 below +0. */
static int64_t order(unsigned type, uint64_t bits)
{
    uint64_t magnitude = bits & (mask_of(type) >> 1);

    return magnitude == bits ? (int64_t)magnitude : -(int64_t)magnitude - 1;
}

static __int128 integer_of(unsigned type, uint64_t bits)
{
    __int128 value = (__int128)bits;

    return is_signed(type) && bits > mask_of(type) >> 1 ? value - ((__int128)1 << width(type)) : value;
}

/* The value of a half-width float, which a double holds exactly. */
static double half_value(unsigned type, uint64_t bits)
{
    unsigned mantissa = mantissa_bits(type);
    uint64_t magnitude = bits & (mask_of(type) >> 1);
    int bias = type == NETDAM_TYPE_F16 ? 15 : 127;
    int exponent = (int)(magnitude >> mantissa);
    double fraction = (double)(magnitude & ((UINT64_C(1) << mantissa) - 1));
    double value = magnitude == infinity_of(type) ? INFINITY
                   : exponent == 0                ? ldexp(fraction, 1 - bias - (int)mantissa)
                                   : ldexp(fraction + ldexp(1, (int)mantissa), exponent - bias - (int)mantissa);

    return magnitude == bits ? value : -value;
}

/* The nearest half-width float, found by halving the range of all of them; of two equally near ones the even one. */
static uint64_t half_nearest(unsigned type, double value)
{
    uint64_t sign = signbit(value) ? mask_of(type) ^ mask_of(type) >> 1 : 0;
    uint64_t low = 0, high = infinity_of(type);
    double magnitude = fabs(value), half;

    if (isinf(value)) {
        return sign | high;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (half_value(type, middle) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    /* Beyond the greatest finite value the next step would be as long as the one before it. */
    half = high == infinity_of(type) ? half_value(type, low) + (half_value(type, low) - half_value(type, low - 1)) / 2
                                     : half_value(type, low) + (half_value(type, high) - half_value(type, low)) / 2;
    return sign | (magnitude > half || (magnitude == half && (low & 1) != 0) ? high : low);
}

static uint64_t float_result(unsigned operation, unsigned type, uint64_t a, uint64_t b)
{
    bool sum = operation == NETDAM_ALU_SUM;
    uint64_t bits = 0;

    if (type == NETDAM_TYPE_F32) {
        /* 53 bits hold any product of two 24-bit mantissas, and 2 * 24 + 2 make a second rounding harmless. */
        uint32_t a32 = (uint32_t)a, b32 = (uint32_t)b, r32;
        float x, y, z;

        memcpy(&x, &a32, 4);
        memcpy(&y, &b32, 4);
        z = (float)(sum ? (double)x + (double)y : (double)x * (double)y);
        memcpy(&r32, &z, 4);
        bits = r32;
    } else if (type == NETDAM_TYPE_F64) {
        /* The same with 113 bits. */
        double x, y, z;

        memcpy(&x, &a, 8);
        memcpy(&y, &b, 8);
        z = (double)(sum ? (quad)x + (quad)y : (quad)x * (quad)y);
        memcpy(&bits, &z, 8);
    } else {
        double x = half_value(type, a), y = half_value(type, b), z = sum ? x + y : x * y;

        return isnan(z) ? reference_canonical_nan(type) : half_nearest(type, z);
    }
    return reference_is_nan(type, bits) ? reference_canonical_nan(type) : bits;
}

uint64_t reference(unsigned operation, unsigned type, uint64_t a, uint64_t b)
{
    __int128 x, y, low, high, sum;

    if (is_float(type)) {
        if (reference_is_nan(type, a) || reference_is_nan(type, b)) {
            return reference_canonical_nan(type);
        }
        if (operation == NETDAM_ALU_MIN) {
            return order(type, a) < order(type, b) ? a : b;
        }
        if (operation == NETDAM_ALU_MAX) {
            return order(type, a) > order(type, b) ? a : b;
        }
        return float_result(operation, type, a, b);
    }
    x = integer_of(type, a);
    y = integer_of(type, b);
    switch (operation) {
    case NETDAM_ALU_SUM:
        return (uint64_t)(x + y) & mask_of(type);
    case NETDAM_ALU_PRODUCT:
        /* Unsigned, for the product of two 64-bit numbers needs all 128 bits; the low ones are the same. */
        return (uint64_t)((unsigned __int128)a * b) & mask_of(type);
    case NETDAM_ALU_MIN:
        return x < y ? a : b;
    case NETDAM_ALU_MAX:
        return x > y ? a : b;
    case NETDAM_ALU_AND:
        return a & b;
    case NETDAM_ALU_OR:
        return a | b;
    case NETDAM_ALU_XOR:
        return a ^ b;
    default: /* SUM_SATURATING */
        low = is_signed(type) ? -((__int128)1 << (width(type) - 1)) : 0;
        high = is_signed(type) ? ((__int128)1 << (width(type) - 1)) - 1 : (__int128)mask_of(type);
        sum = x + y;
        sum = sum < low ? low : sum > high ? high : sum;
        return (uint64_t)sum & mask_of(type);
    }
}

unsigned reference_edges(unsigned type, uint64_t *values)
{
    uint64_t all = mask_of(type);
    uint64_t top = (all >> 1) + 1;
    unsigned n = 0;

    if (is_float(type)) {
        uint64_t inf = infinity_of(type);
        uint64_t unit = UINT64_C(1) << mantissa_bits(type);
        uint64_t one = (inf >> 1) & ~(unit - 1);
        const uint64_t positive[] = {
            0,        /* zero */
            1,        /* least denormal */
            unit - 1, /* greatest denormal */
            unit,     /* least normal */
            unit + 1,
            one,                              /* 1 */
            one + 1,                          /* the next one */
            one - 1,                          /* the one before */
            one + unit,                       /* 2 */
            one - mantissa_bits(type) * unit, /* half a unit in the last place of 1, nearly */
            one + (unit >> 1) + 7,
            inf - 1, /* greatest finite */
            inf - unit,
            inf,
            inf + 1,         /* signalling NaN */
            inf | unit >> 1, /* quiet NaN */
            all >> 1,        /* NaN, all bits */
        };

        for (unsigned i = 0; i < sizeof(positive) / sizeof(positive[0]); i++) {
            values[n++] = positive[i];
            values[n++] = positive[i] | top;
        }
        return n;
    }
    values[n++] = 0;
    values[n++] = 1;
    values[n++] = 2;
    values[n++] = 3;
    values[n++] = top - 2;
    values[n++] = top - 1;
    values[n++] = top;
    values[n++] = top + 1;
    values[n++] = all - 1;
    values[n++] = all;
    values[n++] = all / 3;
    values[n++] = all / 5;
    values[n++] = UINT64_C(0x0123456789abcdef) & all;
    values[n++] = UINT64_C(0xfedcba9876543210) & all;
    values[n++] = UINT64_C(1) << (width(type) / 2);
    values[n++] = (UINT64_C(1) << (width(type) / 2)) - 1;
    return n;
}
