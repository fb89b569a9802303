/* SPDX-License-Identifier: BSD-3-Clause */
/* Cryptography for tenants that is none: keys and tags by a hash, a stream by a mixer. */
#include "ndtest_crypto.h"

#include "ndtest_random.h"

#include <string.h>

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

static bool derive(void *opaque, const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes,
                   const uint8_t *info, size_t info_bytes, uint8_t out[16])
{
    uint64_t hash = ndtest_hash(ndtest_hash(ndtest_hash(1, key, key_bytes), salt, salt_bytes), info, info_bytes);
    uint64_t words[2] = {hash, ndtest_mix(hash + 1)};

    (void)opaque;
    memcpy(out, words, sizeof(words));
    return true;
}

static bool set_key(void *opaque, uint32_t slot, const uint8_t key[16])
{
    struct ndtest_crypto *crypto = opaque;

    if (slot >= NDTEST_CRYPTO_SLOTS) {
        return false;
    }
    crypto->keys[slot][0] = word_at(key);
    crypto->keys[slot][1] = word_at(key + 8);
    return true;
}

/* What stands for one key and one nonce. */
static uint64_t once(const struct ndtest_crypto *crypto, uint32_t slot, const uint8_t nonce[12])
{
    return ndtest_hash(crypto->keys[slot][0] ^ ndtest_mix(crypto->keys[slot][1]), nonce, 12);
}

static void stream(uint64_t secret, const uint8_t *from, uint8_t *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++) {
        to[at] = from[at] ^ (uint8_t)(ndtest_mix(secret + at / 8) >> 8 * (at % 8));
    }
}

static void make_tag(uint64_t secret, const uint8_t *associated, size_t associated_bytes, const uint8_t *sealed,
                     size_t bytes, uint8_t tag[16])
{
    uint64_t hash = ndtest_hash(ndtest_hash(~secret, associated, associated_bytes), sealed, bytes);
    uint64_t words[2] = {hash, ndtest_mix(hash ^ secret)};

    memcpy(tag, words, sizeof(words));
}

static bool seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    struct ndtest_crypto *crypto = opaque;
    uint64_t secret;

    if (slot >= NDTEST_CRYPTO_SLOTS) {
        return false;
    }
    secret = once(crypto, slot, nonce);
    if (crypto->sealed != NULL) {
        crypto->sealed(crypto->opaque, secret);
    }
    stream(secret, text, text, text_bytes);
    make_tag(secret, associated, associated_bytes, text, text_bytes, tag);
    return true;
}

static bool open_sealed(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                        size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16],
                        uint8_t *out)
{
    const struct ndtest_crypto *crypto = opaque;
    uint8_t right[16];
    uint64_t secret;

    if (slot >= NDTEST_CRYPTO_SLOTS) {
        return false;
    }
    secret = once(crypto, slot, nonce);
    make_tag(secret, associated, associated_bytes, text, text_bytes, right);
    if (memcmp(right, tag, sizeof(right)) != 0) {
        return false;
    }
    stream(secret, text, out, text_bytes);
    return true;
}

void ndtest_crypto_init(struct ndtest_crypto *crypto)
{
    memset(crypto, 0, sizeof(*crypto));
    crypto->calls = (struct netdam_fw_crypto){
        .opaque = crypto, .derive = derive, .set_key = set_key, .seal = seal, .open = open_sealed};
}
