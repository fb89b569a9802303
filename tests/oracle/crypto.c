/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cryptography for tenants that is none: fast, the same on every machine, and it notices what real cryptography would
 * not forgive, a nonce that is used twice under one key.
 */
#include "oracle.h"

#include <stdlib.h>

#define SLOTS_MAX 1024u

struct crypto {
    struct netdam_fw_crypto calls;
    struct world *world;
    uint64_t keys[SLOTS_MAX][2];
};

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
    struct crypto *crypto = opaque;

    if (slot >= SLOTS_MAX) {
        return false;
    }
    crypto->keys[slot][0] = word_at(key);
    crypto->keys[slot][1] = word_at(key + 8);
    return true;
}

/* What stands for one key and one nonce. */
static uint64_t once(const struct crypto *crypto, uint32_t slot, const uint8_t nonce[12])
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

static void watch(struct world *world, uint64_t secret)
{
    if (2 * world->nonce_count >= world->nonce_room) {
        uint32_t room = world->nonce_room == 0 ? 4096 : 2 * world->nonce_room;
        uint64_t *nonces = calloc(room, sizeof(*nonces));

        if (nonces == NULL) {
            abort();
        }
        for (uint32_t i = 0; i < world->nonce_room; i++) {
            uint32_t place = (uint32_t)world->nonces[i] % room;

            while (world->nonces[i] != 0 && nonces[place] != 0) {
                place = (place + 1) % room;
            }
            if (world->nonces[i] != 0) {
                nonces[place] = world->nonces[i];
            }
        }
        free(world->nonces);
        world->nonces = nonces;
        world->nonce_room = room;
    }
    for (uint32_t place = (uint32_t)(secret | 1) % world->nonce_room;; place = (place + 1) % world->nonce_room) {
        if (world->nonces[place] == (secret | 1)) {
            fail(world, FAILURE_NONCE, "after %u frames", world->nonce_count);
            return;
        }
        if (world->nonces[place] == 0) {
            world->nonces[place] = secret | 1;
            world->nonce_count++;
            return;
        }
    }
}

static bool seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    struct crypto *crypto = opaque;
    uint64_t secret;

    if (slot >= SLOTS_MAX) {
        return false;
    }
    secret = once(crypto, slot, nonce);
    watch(crypto->world, secret);
    stream(secret, text, text, text_bytes);
    make_tag(secret, associated, associated_bytes, text, text_bytes, tag);
    return true;
}

static bool open_sealed(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                        size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16],
                        uint8_t *out)
{
    const struct crypto *crypto = opaque;
    uint8_t right[16];
    uint64_t secret;

    if (slot >= SLOTS_MAX) {
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

const struct netdam_fw_crypto *crypto_make(struct world *world)
{
    struct crypto *crypto = world_allocate(world, sizeof(*crypto));

    crypto->world = world;
    crypto->calls = (struct netdam_fw_crypto){
        .opaque = crypto, .derive = derive, .set_key = set_key, .seal = seal, .open = open_sealed};
    return &crypto->calls;
}
