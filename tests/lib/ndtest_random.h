/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that one printed 64-bit seed repeats bit for bit, and the hash that runs are compared by. */
#ifndef NDTEST_RANDOM_H
#define NDTEST_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ndtest_random {
    uint64_t state;
};

static inline uint64_t ndtest_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* splitmix64: every seed, 0 included, gives a full-period sequence. */
static inline uint64_t ndtest_random_next(struct ndtest_random *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return ndtest_mix(random->state);
}

/* Uniform in [0, limit); 0 for limit 0. The bias of the multiplication is of no interest here. */
static inline uint64_t ndtest_random_below(struct ndtest_random *random, uint64_t limit)
{
    uint64_t draw = ndtest_random_next(random);

    if (limit <= UINT32_MAX) {
        return ((draw >> 32) * limit) >> 32;
    }
    return draw % limit;
}

static inline uint64_t ndtest_random_between(struct ndtest_random *random, uint64_t low, uint64_t high)
{
    return low + ndtest_random_below(random, high - low + 1);
}

static inline bool ndtest_random_chance(struct ndtest_random *random, uint32_t parts_per_million)
{
    return parts_per_million != 0 && ndtest_random_below(random, 1000000) < parts_per_million;
}

static inline void ndtest_random_fill(struct ndtest_random *random, void *buffer, size_t bytes)
{
    uint8_t *at = buffer;

    while (bytes != 0) {
        uint64_t draw = ndtest_random_next(random);
        size_t part = bytes < 8 ? bytes : 8;

        memcpy(at, &draw, part);
        at += part;
        bytes -= part;
    }
}

/* Not cryptographic; four lanes, so that hashing a frame costs less than copying it. */
static inline uint64_t ndtest_hash(uint64_t seed, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint64_t lane[4] = {seed, seed ^ 1, seed ^ 2, seed ^ 3};
    uint64_t word;
    size_t left = bytes;

    while (left >= 32) {
        for (unsigned i = 0; i < 4; i++) {
            memcpy(&word, at + 8 * i, 8);
            lane[i] = (lane[i] ^ word) * UINT64_C(0x9fb21c651e98df25);
            lane[i] ^= lane[i] >> 29;
        }
        at += 32;
        left -= 32;
    }
    while (left != 0) {
        size_t part = left < 8 ? left : 8;

        word = 0;
        memcpy(&word, at, part);
        lane[0] = ndtest_mix(lane[0] ^ word);
        at += part;
        left -= part;
    }
    return ndtest_mix(lane[0] ^ ndtest_mix(lane[1] ^ ndtest_mix(lane[2] ^ ndtest_mix(lane[3] ^ bytes))));
}

#endif
