/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte-array integers for data on the wire, and the compile-time checks that the other headers share. */
#ifndef NETDAM_TYPES_H
#define NETDAM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define NETDAM_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define NETDAM_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#define NETDAM_ASSERT_SIZE(type, bytes) NETDAM_STATIC_ASSERT(sizeof(type) == (bytes), "size of " #type)
#define NETDAM_ASSERT_OFFSET(type, member, bytes)                                                                      \
    NETDAM_STATIC_ASSERT(offsetof(type, member) == (bytes), "offset of " #member " in " #type)

/*
 * Rings and registers are little-endian, and on-board memory is shared with the CPU as it is; hosts of the other byte
 * order are refused here instead of being wrong at run time.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "NetDAM needs a little-endian host"
#endif

/* Big-endian integers of alignment 1: packet memory is never cast to a wider type. */
typedef struct {
    uint8_t b[2];
} netdam_be16;
typedef struct {
    uint8_t b[4];
} netdam_be32;
typedef struct {
    uint8_t b[6];
} netdam_be48;
typedef struct {
    uint8_t b[8];
} netdam_be64;

static inline uint16_t netdam_be16_get(netdam_be16 v)
{
    uint16_t r;

    __builtin_memcpy(&r, v.b, sizeof(v));
    return __builtin_bswap16(r);
}

static inline uint32_t netdam_be32_get(netdam_be32 v)
{
    uint32_t r;

    __builtin_memcpy(&r, v.b, sizeof(v));
    return __builtin_bswap32(r);
}

static inline uint64_t netdam_be48_get(netdam_be48 v)
{
    uint16_t high;
    uint32_t low;

    __builtin_memcpy(&high, v.b, sizeof(high));
    __builtin_memcpy(&low, v.b + sizeof(high), sizeof(low));
    return (uint64_t)__builtin_bswap16(high) << 32 | __builtin_bswap32(low);
}

static inline uint64_t netdam_be64_get(netdam_be64 v)
{
    uint64_t r;

    __builtin_memcpy(&r, v.b, sizeof(v));
    return __builtin_bswap64(r);
}

static inline netdam_be16 netdam_be16_make(uint16_t v)
{
    uint16_t swapped = __builtin_bswap16(v);
    netdam_be16 r;

    __builtin_memcpy(r.b, &swapped, sizeof(r));
    return r;
}

static inline netdam_be32 netdam_be32_make(uint32_t v)
{
    uint32_t swapped = __builtin_bswap32(v);
    netdam_be32 r;

    __builtin_memcpy(r.b, &swapped, sizeof(r));
    return r;
}

static inline netdam_be48 netdam_be48_make(uint64_t v)
{
    uint16_t high = __builtin_bswap16((uint16_t)(v >> 32));
    uint32_t low = __builtin_bswap32((uint32_t)v);
    netdam_be48 r;

    __builtin_memcpy(r.b, &high, sizeof(high));
    __builtin_memcpy(r.b + sizeof(high), &low, sizeof(low));
    return r;
}

static inline netdam_be64 netdam_be64_make(uint64_t v)
{
    uint64_t swapped = __builtin_bswap64(v);
    netdam_be64 r;

    __builtin_memcpy(r.b, &swapped, sizeof(r));
    return r;
}

#endif
