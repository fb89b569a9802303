/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform's cryptography for tenants on a machine that has no library: AES-128-GCM (FIPS 197, SP 800-38D) by the
 * book, for tests. It hides nothing from who measures its time. */
#include "crypto.h"

#include "hkdf.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 16u
#define SLOTS 4096u

struct block {
    uint64_t high, low; /* the first bit of the bytes is the highest */
};

struct key {
    uint8_t round[11][BLOCK];
    struct block hash[128]; /* the hash key times x^i */
};

struct crypto {
    struct netdam_fw_crypto functions;
    struct key *keys[SLOTS];
};

static uint8_t sbox[256];

static uint8_t twice(uint8_t x)
{
    return (uint8_t)(x << 1 ^ (x >> 7) * 0x1b);
}

/* Multiplicative inverses by powers of 3, which go through all numbers but 0; then the affine transformation. */
static void make_sbox(void)
{
    uint8_t power[255], exponent[256] = {0}, x = 1;

    for (unsigned i = 0; i < 255; i++) {
        power[i] = x;
        exponent[x] = (uint8_t)i;
        x ^= twice(x);
    }
    for (unsigned i = 0; i < 256; i++) {
        unsigned inverse = i == 0 ? 0 : power[(255 - exponent[i]) % 255];
        unsigned doubled = inverse << 8 | inverse;

        sbox[i] = (uint8_t)(inverse ^ doubled >> 4 ^ doubled >> 5 ^ doubled >> 6 ^ doubled >> 7 ^ 0x63);
    }
}

static void expand_key(struct key *key, const uint8_t bytes[16])
{
    uint8_t *w = &key->round[0][0], constant = 1;

    memcpy(w, bytes, 16);
    for (unsigned i = 16; i < sizeof(key->round); i += 4) {
        uint8_t t[4];

        memcpy(t, w + i - 4, 4);
        if (i % 16 == 0) {
            uint8_t first = t[0];

            t[0] = sbox[t[1]] ^ constant;
            t[1] = sbox[t[2]];
            t[2] = sbox[t[3]];
            t[3] = sbox[first];
            constant = twice(constant);
        }
        for (unsigned k = 0; k < 4; k++) {
            w[i + k] = w[i + k - 16] ^ t[k];
        }
    }
}

static void encrypt_block(const struct key *key, const uint8_t in[BLOCK], uint8_t out[BLOCK])
{
    uint8_t state[BLOCK], moved[BLOCK];

    for (unsigned i = 0; i < BLOCK; i++) {
        state[i] = in[i] ^ key->round[0][i];
    }
    for (unsigned round = 1; round <= 10; round++) {
        for (unsigned i = 0; i < BLOCK; i++) {
            moved[i] = sbox[state[(i + 4 * (i % 4)) % BLOCK]];
        }
        for (unsigned i = 0; i < BLOCK; i++) {
            const uint8_t *column = moved + i / 4 * 4;
            uint8_t all = column[0] ^ column[1] ^ column[2] ^ column[3];

            state[i] = round == 10 ? moved[i] : moved[i] ^ all ^ twice(moved[i] ^ column[(i + 1) % 4]);
            state[i] ^= key->round[round][i];
        }
    }
    memcpy(out, state, BLOCK);
}

static struct block load(const uint8_t *bytes, size_t count)
{
    struct block block = {0, 0};

    for (unsigned i = 0; i < BLOCK; i++) {
        block.high = block.high << 8 | block.low >> 56;
        block.low = block.low << 8 | (i < count ? bytes[i] : 0);
    }
    return block;
}

static void store(struct block block, uint8_t bytes[BLOCK])
{
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(block.high >> (56 - 8 * i));
        bytes[8 + i] = (uint8_t)(block.low >> (56 - 8 * i));
    }
}

static void prepare_hash(struct key *key)
{
    static const uint8_t zeros[BLOCK];
    uint8_t bytes[BLOCK];
    struct block v;

    encrypt_block(key, zeros, bytes);
    v = load(bytes, BLOCK);
    for (unsigned i = 0; i < 128; i++) {
        uint64_t carry = v.low & 1;

        key->hash[i] = v;
        v.low = v.low >> 1 | v.high << 63;
        v.high = v.high >> 1 ^ (carry != 0 ? UINT64_C(0xe1) << 56 : 0);
    }
}

static struct block hash_block(const struct key *key, struct block sum, struct block block)
{
    uint64_t half[2] = {sum.high ^ block.high, sum.low ^ block.low};
    struct block product = {0, 0};

    for (unsigned i = 0; i < 128; i++) {
        if ((half[i / 64] >> (63 - i % 64) & 1) != 0) {
            product.high ^= key->hash[i].high;
            product.low ^= key->hash[i].low;
        }
    }
    return product;
}

static struct block hash_bytes(const struct key *key, struct block sum, const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at < count; at += BLOCK) {
        sum = hash_block(key, sum, load(bytes + at, count - at));
    }
    return sum;
}

static void tag_of(const struct key *key, const uint8_t counter[BLOCK], const uint8_t *associated,
                   size_t associated_bytes, const uint8_t *cipher, size_t bytes, uint8_t tag[BLOCK])
{
    const struct block lengths = {8 * (uint64_t)associated_bytes, 8 * (uint64_t)bytes};
    struct block sum = {0, 0};
    uint8_t mask[BLOCK];

    sum = hash_bytes(key, sum, associated, associated_bytes);
    sum = hash_bytes(key, sum, cipher, bytes);
    store(hash_block(key, sum, lengths), tag);
    encrypt_block(key, counter, mask);
    for (unsigned i = 0; i < BLOCK; i++) {
        tag[i] ^= mask[i];
    }
}

static void count_up(uint8_t counter[BLOCK])
{
    for (unsigned i = BLOCK; i-- > 12 && ++counter[i] == 0;) {
    }
}

/* Both ways; `first` is the counter of the tag. */
static void crypt(const struct key *key, const uint8_t first[BLOCK], const uint8_t *in, uint8_t *out, size_t bytes)
{
    uint8_t counter[BLOCK], mask[BLOCK];

    memcpy(counter, first, BLOCK);
    for (size_t i = 0; i < bytes; i++) {
        if (i % BLOCK == 0) {
            count_up(counter);
            encrypt_block(key, counter, mask);
        }
        out[i] = in[i] ^ mask[i % BLOCK];
    }
}

static const struct key *begin(void *opaque, uint32_t slot, const uint8_t nonce[12], uint8_t counter[BLOCK])
{
    const struct crypto *crypto = opaque;

    memset(counter, 0, BLOCK);
    memcpy(counter, nonce, 12);
    counter[15] = 1;
    return slot < SLOTS ? crypto->keys[slot] : NULL;
}

static bool derive(void *opaque, const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes,
                   const uint8_t *info, size_t info_bytes, uint8_t out[16])
{
    (void)opaque;
    hkdf_sha256(key, key_bytes, salt, salt_bytes, info, info_bytes, out);
    return true;
}

static bool set_key(void *opaque, uint32_t slot, const uint8_t key[16])
{
    struct crypto *crypto = opaque;

    if (slot >= SLOTS) {
        return false;
    }
    if (crypto->keys[slot] == NULL) {
        crypto->keys[slot] = malloc(sizeof(*crypto->keys[slot]));
    }
    if (crypto->keys[slot] == NULL) {
        return false;
    }
    expand_key(crypto->keys[slot], key);
    prepare_hash(crypto->keys[slot]);
    return true;
}

static bool seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    uint8_t counter[BLOCK];
    const struct key *key = begin(opaque, slot, nonce, counter);

    if (key == NULL) {
        return false;
    }
    crypt(key, counter, text, text, text_bytes);
    tag_of(key, counter, associated, associated_bytes, text, text_bytes, tag);
    return true;
}

static bool open_sealed(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                        size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16],
                        uint8_t *out)
{
    uint8_t counter[BLOCK], right[BLOCK];
    const struct key *key = begin(opaque, slot, nonce, counter);

    if (key == NULL) {
        return false;
    }
    tag_of(key, counter, associated, associated_bytes, text, text_bytes, right);
    crypt(key, counter, text, out, text_bytes);
    return memcmp(tag, right, BLOCK) == 0;
}

const struct netdam_fw_crypto *ndsim_crypto_open(void)
{
    struct crypto *crypto = calloc(1, sizeof(*crypto));

    if (crypto == NULL) {
        return NULL;
    }
    make_sbox();
    crypto->functions = (struct netdam_fw_crypto){
        .opaque = crypto,
        .derive = derive,
        .set_key = set_key,
        .seal = seal,
        .open = open_sealed,
    };
    return &crypto->functions;
}

void ndsim_crypto_close(const struct netdam_fw_crypto *functions)
{
    struct crypto *crypto;

    if (functions == NULL) {
        return;
    }
    crypto = functions->opaque;
    for (unsigned i = 0; i < SLOTS; i++) {
        free(crypto->keys[i]);
    }
    free(crypto);
}
