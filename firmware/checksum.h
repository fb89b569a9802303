/* SPDX-License-Identifier: BSD-3-Clause */
/* Small things that all headers below NetDAM need: 16-bit fields, and the Internet checksum (RFC 1071). */
#ifndef NDFW_CHECKSUM_H
#define NDFW_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline unsigned ndfw_get16(const uint8_t *from)
{
    return (unsigned)from[0] << 8 | from[1];
}

static inline void ndfw_put16(uint8_t *to, unsigned value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static inline bool ndfw_is_zero(const uint8_t *bytes, size_t count)
{
    uint8_t all = 0;

    for (size_t i = 0; i < count; i++) {
        all |= bytes[i];
    }
    return all == 0;
}

/* Link-layer addresses. */
static inline bool ndfw_is_same_mac(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, 4) == 0 && memcmp(a + 4, b + 4, 2) == 0;
}

/* Every part but the last has an even number of bytes. Safe for parts of up to 2^32 bytes. */
static inline uint64_t ndfw_checksum_add(uint64_t sum, const uint8_t *data, size_t bytes)
{
    /* 2^16 is 1 in this arithmetic: whether two halves are added one by one or as one word makes no difference. */
    for (; bytes >= 4; data += 4, bytes -= 4) {
        sum += (uint64_t)data[0] << 24 | (uint64_t)data[1] << 16 | (uint64_t)data[2] << 8 | data[3];
    }
    if (bytes >= 2) {
        sum += ndfw_get16(data);
        data += 2;
        bytes -= 2;
    }
    return bytes == 0 ? sum : sum + ((uint64_t)data[0] << 8);
}

static inline uint16_t ndfw_checksum_fold(uint64_t sum)
{
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

#endif
