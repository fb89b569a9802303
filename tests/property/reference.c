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
    if (netdam_algebra(NETDAM_OP_REDUCE, operation, type) < 0) {
        return false;
    }
    return type != NETDAM_TYPE_F16 && type != NETDAM_TYPE_BF16;
}

static bool is_nan(uint64_t bits, unsigned bytes)
{
    return bytes == 4 ? (bits & 0x7fffffff) > 0x7f800000
                      : (bits & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000);
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

static uint64_t float_op(uint64_t a, uint64_t b, unsigned operation, unsigned bytes)
{
    uint64_t canonical = bytes == 4 ? UINT64_C(0x7fc00000) : UINT64_C(0x7ff8000000000000);
    uint64_t result = 0;

    if (is_nan(a, bytes) || is_nan(b, bytes)) {
        return canonical;
    }
    if (operation == NETDAM_ALU_MIN) {
        return float_less(b, a, bytes) ? b : a;
    }
    if (operation == NETDAM_ALU_MAX) {
        return float_less(a, b, bytes) ? b : a;
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
    return is_nan(result, bytes) ? canonical : result;
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
                ? float_op(a, b, operation, size)
                : integer_op(a, b, operation, size, class_of_type == NETDAM_TYPE_CLASS_SIGNED);
        reference_store(memory + at, size, a);
    }
}
