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
    return (uint16_t)((unsigned)v.b[0] << 8 | v.b[1]);
}

static inline uint32_t netdam_be32_get(netdam_be32 v)
{
    return (uint32_t)v.b[0] << 24 | (uint32_t)v.b[1] << 16 | (uint32_t)v.b[2] << 8 | v.b[3];
}

static inline uint64_t netdam_be48_get(netdam_be48 v)
{
    return (uint64_t)v.b[0] << 40 | (uint64_t)v.b[1] << 32 | (uint64_t)v.b[2] << 24 | (uint64_t)v.b[3] << 16 |
           (uint64_t)v.b[4] << 8 | v.b[5];
}

static inline uint64_t netdam_be64_get(netdam_be64 v)
{
    return (uint64_t)v.b[0] << 56 | (uint64_t)v.b[1] << 48 | (uint64_t)v.b[2] << 40 | (uint64_t)v.b[3] << 32 |
           (uint64_t)v.b[4] << 24 | (uint64_t)v.b[5] << 16 | (uint64_t)v.b[6] << 8 | v.b[7];
}

static inline netdam_be16 netdam_be16_make(uint16_t v)
{
    netdam_be16 r = {{(uint8_t)(v >> 8), (uint8_t)v}};
    return r;
}

static inline netdam_be32 netdam_be32_make(uint32_t v)
{
    netdam_be32 r = {{(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
    return r;
}

static inline netdam_be48 netdam_be48_make(uint64_t v)
{
    netdam_be48 r = {{(uint8_t)(v >> 40), (uint8_t)(v >> 32), (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
                      (uint8_t)v}};
    return r;
}

static inline netdam_be64 netdam_be64_make(uint64_t v)
{
    netdam_be64 r = {{(uint8_t)(v >> 56), (uint8_t)(v >> 48), (uint8_t)(v >> 40), (uint8_t)(v >> 32),
                      (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v}};
    return r;
}

#endif
