/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys in slots, AES-GCM and HKDF for the firmware, by mbed TLS. Without it (NDSIM_NO_CRYPTO) there are no tenants. */
#include "crypto.h"

#ifdef NDSIM_NO_CRYPTO

const struct netdam_fw_crypto *ndsim_crypto_open(void)
{
    return NULL;
}

void ndsim_crypto_close(const struct netdam_fw_crypto *crypto)
{
    (void)crypto;
}

#else

#include <mbedtls/gcm.h>
#include <mbedtls/hkdf.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BITS   128u
#define KEY_BYTES  16u
#define TAG_BYTES  16u
#define NONCE      12u
#define FIRST_SIZE 64u

struct ndsim_crypto {
    struct netdam_fw_crypto functions;
    mbedtls_gcm_context **slots; /* NULL: no key yet */
    uint32_t count;
};

/* Not a cast of the argument, which is constant for everybody else. */
static struct ndsim_crypto *crypto_of(const struct netdam_fw_crypto *functions)
{
    return functions->opaque;
}

static bool derive(void *opaque, const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes,
                   const uint8_t *info, size_t info_bytes, uint8_t out[16])
{
    (void)opaque;
    return mbedtls_hkdf(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), salt, salt_bytes, key, key_bytes, info,
                        info_bytes, out, KEY_BYTES) == 0;
}

static bool make_room(struct ndsim_crypto *crypto, uint32_t slot)
{
    uint32_t count = crypto->count != 0 ? crypto->count : FIRST_SIZE;
    mbedtls_gcm_context **slots;

    while (count <= slot) {
        count *= 2;
    }
    if (count == crypto->count) {
        return true;
    }
    slots = realloc(crypto->slots, count * sizeof(slots[0]));
    if (slots == NULL) {
        return false;
    }
    memset(slots + crypto->count, 0, (count - crypto->count) * sizeof(slots[0]));
    crypto->slots = slots;
    crypto->count = count;
    return true;
}

static bool set_key(void *opaque, uint32_t slot, const uint8_t key[16])
{
    struct ndsim_crypto *crypto = opaque;

    if (!make_room(crypto, slot)) {
        return false;
    }
    if (crypto->slots[slot] == NULL) {
        crypto->slots[slot] = malloc(sizeof(*crypto->slots[slot]));
        if (crypto->slots[slot] == NULL) {
            return false;
        }
        mbedtls_gcm_init(crypto->slots[slot]);
    }
    return mbedtls_gcm_setkey(crypto->slots[slot], MBEDTLS_CIPHER_ID_AES, key, KEY_BITS) == 0;
}

static mbedtls_gcm_context *context_of(const struct ndsim_crypto *crypto, uint32_t slot)
{
    return slot < crypto->count ? crypto->slots[slot] : NULL;
}

static bool seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    mbedtls_gcm_context *context = context_of(opaque, slot);

    return context != NULL && mbedtls_gcm_crypt_and_tag(context, MBEDTLS_GCM_ENCRYPT, text_bytes, nonce, NONCE,
                                                        associated, associated_bytes, text, text, TAG_BYTES, tag) == 0;
}

static bool open_sealed(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                        size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16],
                        uint8_t *out)
{
    mbedtls_gcm_context *context = context_of(opaque, slot);

    return context != NULL && mbedtls_gcm_auth_decrypt(context, text_bytes, nonce, NONCE, associated, associated_bytes,
                                                       tag, TAG_BYTES, text, out) == 0;
}

const struct netdam_fw_crypto *ndsim_crypto_open(void)
{
    struct ndsim_crypto *crypto = calloc(1, sizeof(*crypto));

    if (crypto == NULL) {
        return NULL;
    }
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
    struct ndsim_crypto *crypto;

    if (functions == NULL) {
        return;
    }
    crypto = crypto_of(functions);
    for (uint32_t i = 0; i < crypto->count; i++) {
        if (crypto->slots[i] != NULL) {
            mbedtls_gcm_free(crypto->slots[i]); /* clears it */
            free(crypto->slots[i]);
        }
    }
    free(crypto->slots);
    free(crypto);
}

#endif
