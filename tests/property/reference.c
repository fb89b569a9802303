/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of REDUCE and the atomics, written a second time from isa.h, one element at a time. */
#include "world.h"

uint64_t reference_load(const uint8_t *memory, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = bytes; i-- != 0;) {
        value = value << 8 | memory[i];
    }
    return value;
}

void reference_store(uint8_t *memory, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++) {
        memory[i] = (uint8_t)(value >> (8 * i));
    }
}

bool reference_knows(unsigned operation, unsigned type)
{
    return netdam_algebra(NETDAM_OP_REDUCE, operation, type) >= 0;
}

/* A binary format: sign, exponent and fraction from the top. */
struct format {
    unsigned bytes;
    unsigned exponent_bits;
    unsigned fraction_bits;
};

static struct format format_of(unsigned type)
{
    switch (type) {
    case NETDAM_TYPE_F16:
        return (struct format){2, 5, 10};
    case NETDAM_TYPE_BF16:
        return (struct format){2, 8, 7};
    case NETDAM_TYPE_F32:
        return (struct format){4, 8, 23};
    default:
        return (struct format){8, 11, 52};
    }
}

static uint64_t infinity_of(struct format format)
{
    return ((UINT64_C(1) << format.exponent_bits) - 1) << format.fraction_bits;
}

static bool is_nan(uint64_t bits, struct format format)
{
    uint64_t sign = UINT64_C(1) << (8 * format.bytes - 1);

    return (bits & (sign - 1)) > infinity_of(format);
}

/* Times a power of two, exactly or as double rounds it. */
static double scale(double value, int power)
{
    for (; power > 0; power--) {
        value *= 2;
    }
    for (; power < 0; power++) {
        value /= 2;
    }
    return value;
}

/* The value of a half that is no NaN and not negative: a fraction, and a power of two. */
static double half_value(uint64_t bits, struct format format)
{
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
    double fraction = (double)(bits & ((1u << format.fraction_bits) - 1));
    double magnitude;

    if (exponent == (1 << format.exponent_bits) - 1) {
        magnitude = scale(1, 1000) * scale(1, 1000);
    } else {
        fraction += exponent != 0 ? scale(1, (int)format.fraction_bits) : 0;
        magnitude = scale(fraction, (exponent != 0 ? exponent : 1) - bias - (int)format.fraction_bits);
    }
    return magnitude;
}

/* The same from a table. */
static double half_magnitude(uint64_t bits, struct format format)
{
    static double values[2][0x8000];
    static bool filled[2];
    unsigned which = format.exponent_bits == 8;

    for (unsigned i = 0; !filled[which] && i < 0x8000; i++) {
        values[which][i] = half_value(i, format);
    }
    filled[which] = true;
    return values[which][bits];
}

/* The nearest half, ties to even, found by halving the interval: halves of one sign are ordered like their bits. */
static uint64_t half_nearest(float value, struct format format)
{
    uint64_t sign = 0;
    double magnitude = value;
    uint64_t low = 0;
    uint64_t high = infinity_of(format);
    /* What the format would hold if its exponents went on. */
    double top = 2 * half_magnitude(high - 1, format) - half_magnitude(high - 2, format);
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (bits >> 31 != 0) {
        sign = 0x8000;
        magnitude = -magnitude;
    }
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;

        if (half_magnitude(middle, format) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (magnitude == half_magnitude(low, format)) {
        return sign | low;
    }
    top = high == infinity_of(format) ? top : half_magnitude(high, format);
    if (magnitude - half_magnitude(low, format) > top - magnitude ||
        (magnitude - half_magnitude(low, format) == top - magnitude && (low & 1) != 0)) {
        return sign | high;
    }
    return sign | low;
}

/* Order of IEEE 754 numbers that are no NaN, -0 below +0: the bits, with negative numbers reversed. */
static bool float_less(uint64_t a, uint64_t b, unsigned bytes)
{
    unsigned top = 8 * bytes - 1;
    uint64_t sign_a = a >> top;
    uint64_t sign_b = b >> top;

    if (sign_a != sign_b) {
        return sign_a > sign_b;
    }
    return sign_a != 0 ? a > b : a < b;
}

static float half_signed(uint64_t bits, struct format format)
{
    double magnitude = half_magnitude(bits & 0x7fff, format);

    return (float)(bits >> 15 != 0 ? -magnitude : magnitude);
}

static uint64_t float_op(uint64_t a, uint64_t b, unsigned operation, unsigned type)
{
    struct format format = format_of(type);
    unsigned bytes = format.bytes;
    uint64_t canonical = infinity_of(format) | UINT64_C(1) << (format.fraction_bits - 1);
    uint64_t result = 0;

    if (is_nan(a, format) || is_nan(b, format)) {
        return canonical;
    }
    if (operation == NETDAM_ALU_MIN) {
        return float_less(b, a, bytes) ? b : a;
    }
    if (operation == NETDAM_ALU_MAX) {
        return float_less(a, b, bytes) ? b : a;
    }
    if (bytes == 2) {
        float x = half_signed(a, format);
        float y = half_signed(b, format);

        x = operation == NETDAM_ALU_SUM ? x + y : x * y;
        return x != x ? canonical : half_nearest(x, format);
    }
    if (bytes == 4) {
        uint32_t word_a = (uint32_t)a;
        uint32_t word_b = (uint32_t)b;
        float x;
        float y;

        memcpy(&x, &word_a, 4);
        memcpy(&y, &word_b, 4);
        x = operation == NETDAM_ALU_SUM ? x + y : x * y;
        memcpy(&word_a, &x, 4);
        result = word_a;
    } else {
        double x;
        double y;

        memcpy(&x, &a, 8);
        memcpy(&y, &b, 8);
        x = operation == NETDAM_ALU_SUM ? x + y : x * y;
        memcpy(&result, &x, 8);
    }
    return is_nan(result, format) ? canonical : result;
}

static int64_t extend(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;

    return (int64_t)(value << shift) >> shift;
}

static uint64_t saturating(uint64_t a, uint64_t b, unsigned bytes, bool is_signed)
{
    uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
    uint64_t top = mask / 2;

    if (!is_signed) {
        return (mask - a) < b ? mask : a + b;
    }
    if (extend(b, bytes) >= 0) {
        return extend(a, bytes) > (int64_t)top - extend(b, bytes) ? top : a + b;
    }
    return extend(a, bytes) < -(int64_t)top - 1 - extend(b, bytes) ? top + 1 : a + b;
}

static uint64_t integer_op(uint64_t a, uint64_t b, unsigned operation, unsigned bytes, bool is_signed)
{
    bool less = is_signed ? extend(a, bytes) < extend(b, bytes) : a < b;

    switch (operation) {
    case NETDAM_ALU_SUM:
        return a + b;
    case NETDAM_ALU_PRODUCT:
        return a * b;
    case NETDAM_ALU_MIN:
        return less ? a : b;
    case NETDAM_ALU_MAX:
        return less ? b : a;
    case NETDAM_ALU_AND:
        return a & b;
    case NETDAM_ALU_OR:
        return a | b;
    case NETDAM_ALU_XOR:
        return a ^ b;
    default:
        return saturating(a, b, bytes, is_signed);
    }
}

void reference_reduce(uint8_t *memory, const uint8_t *payload, size_t bytes, unsigned operation, unsigned type)
{
    unsigned size = netdam_type_bytes(type);
    unsigned class_of_type = netdam_type_class_of(type);

    for (size_t at = 0; at + size <= bytes; at += size) {
        uint64_t a = reference_load(memory + at, size);
        uint64_t b = reference_load(payload + at, size);

        a = class_of_type == NETDAM_TYPE_CLASS_FLOAT
                ? float_op(a, b, operation, type)
                : integer_op(a, b, operation, size, class_of_type == NETDAM_TYPE_CLASS_SIGNED);
        reference_store(memory + at, size, a);
    }
}
