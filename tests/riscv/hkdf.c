/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256, its HMAC, and the key derivation made of them. The constants are worked out as their definition says. */
#include "hkdf.h"

#include <stdbool.h>
#include <string.h>

#define HASH_BYTES  32u
#define BLOCK_BYTES 64u

struct sha256 {
    uint32_t state[8];
    uint8_t block[BLOCK_BYTES];
    uint64_t bytes;
};

static uint32_t round_constant[64]; /* 32 bits behind the point of the cube roots of the first primes */
static uint32_t start_value[8];     /* the same of the square roots */

/* Behind the point, of the `power`-th root of n. */
static uint32_t root_bits(unsigned n, unsigned power)
{
    uint64_t low = 0, high = UINT64_C(1) << 38; /* root times 2^32 is between */

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        unsigned __int128 raised = (unsigned __int128)middle * middle * (power == 3 ? middle : 1);

        if (raised <= (unsigned __int128)n << 32 * power) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

static bool is_prime(unsigned n)
{
    for (unsigned i = 2; i * i <= n; i++) {
        if (n % i == 0) {
            return false;
        }
    }
    return true;
}

static void prepare(void)
{
    unsigned n = 2;

    for (unsigned i = 0; i < 64 && round_constant[63] == 0; n++) {
        if (is_prime(n)) {
            if (i < 8) {
                start_value[i] = root_bits(n, 2);
            }
            round_constant[i++] = root_bits(n, 3);
        }
    }
}

static uint32_t turn(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void mix_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];

    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;

        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, state, sizeof(v));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t1 = v[7] + (turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25)) + choice + round_constant[i] + w[i];
        uint32_t t2 = (turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22)) + majority;

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

static void sha256_start(struct sha256 *sha)
{
    prepare();
    memcpy(sha->state, start_value, sizeof(sha->state));
    sha->bytes = 0;
}

static void sha256_add(struct sha256 *sha, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        sha->block[sha->bytes++ % BLOCK_BYTES] = data[i];
        if (sha->bytes % BLOCK_BYTES == 0) {
            mix_block(sha->state, sha->block);
        }
    }
}

static void sha256_end(struct sha256 *sha, uint8_t out[HASH_BYTES])
{
    static const uint8_t one = 0x80, zero = 0;
    uint64_t bits = 8 * sha->bytes;
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    sha256_add(sha, &one, 1);
    while (sha->bytes % BLOCK_BYTES != BLOCK_BYTES - sizeof(length)) {
        sha256_add(sha, &zero, 1);
    }
    sha256_add(sha, length, sizeof(length));
    for (unsigned i = 0; i < HASH_BYTES; i++) {
        out[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

/* Over `data` and the byte `last`, if there is one (not negative). */
static void hmac(const uint8_t *key, size_t key_bytes, const uint8_t *data, size_t bytes, int last,
                 uint8_t out[HASH_BYTES])
{
    struct sha256 sha;
    uint8_t pad[BLOCK_BYTES] = {0}, inner[HASH_BYTES], end = (uint8_t)last;

    if (key_bytes > BLOCK_BYTES) {
        sha256_start(&sha);
        sha256_add(&sha, key, key_bytes);
        sha256_end(&sha, pad);
    } else if (key_bytes != 0) {
        memcpy(pad, key, key_bytes);
    }
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        pad[i] ^= 0x36;
    }
    sha256_start(&sha);
    sha256_add(&sha, pad, BLOCK_BYTES);
    sha256_add(&sha, data, bytes);
    sha256_add(&sha, &end, last >= 0 ? 1 : 0);
    sha256_end(&sha, inner);
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    sha256_start(&sha);
    sha256_add(&sha, pad, BLOCK_BYTES);
    sha256_add(&sha, inner, HASH_BYTES);
    sha256_end(&sha, out);
}

void hkdf_sha256(const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes, const uint8_t *info,
                 size_t info_bytes, uint8_t out[16])
{
    uint8_t extracted[HASH_BYTES], expanded[HASH_BYTES];

    hmac(salt, salt_bytes, key, key_bytes, -1, extracted);
    hmac(extracted, HASH_BYTES, info, info_bytes, 1, expanded);
    memcpy(out, expanded, 16);
}
