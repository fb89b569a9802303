/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator's random numbers and its hash: one seed repeats a run bit for bit. */
#ifndef NDSIM_VT_RANDOM_H
#define NDSIM_VT_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ndsim_random {
    uint64_t state;
};

static inline uint64_t ndsim_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* splitmix64: every seed, 0 included, gives a full period. */
static inline uint64_t ndsim_random_next(struct ndsim_random *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    return ndsim_mix(random->state);
}

/* In [0, limit); 0 for limit 0. */
static inline uint64_t ndsim_random_below(struct ndsim_random *random, uint64_t limit)
{
    uint64_t draw = ndsim_random_next(random);

    return limit == 0 ? 0 : draw % limit;
}

static inline bool ndsim_random_chance(struct ndsim_random *random, uint32_t parts_per_million)
{
    return parts_per_million != 0 && ndsim_random_below(random, 1000000) < parts_per_million;
}

/* Goes on with `hash` over bytes; not cryptographic. */
static inline uint64_t ndsim_hash(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    while (bytes != 0) {
        size_t part = bytes < 8 ? bytes : 8;
        uint64_t word = bytes;

        memcpy(&word, at, part);
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 29;
        at += part;
        bytes -= part;
    }
    return ndsim_mix(hash);
}

#endif
