/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum (RFC 1071): a sum of 16-bit big-endian words in one's complement. */
#ifndef NDFW_CHECKSUM_H
#define NDFW_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Every part but the last has an even number of bytes. Safe for parts of up to 2^32 bytes. */
static inline uint64_t ndfw_checksum_add(uint64_t sum, const uint8_t *data, size_t bytes)
{
    for (; bytes >= 2; data += 2, bytes -= 2) {
        sum += (uint64_t)data[0] << 8 | data[1];
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
