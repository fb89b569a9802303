/* SPDX-License-Identifier: BSD-3-Clause */
/* Cryptography for tenants that is none: fast, the same on every machine, without a library. Tests only. */
#ifndef NDTEST_CRYPTO_H
#define NDTEST_CRYPTO_H

#include "netdam/firmware.h"

#define NDTEST_CRYPTO_SLOTS 1024u

struct ndtest_crypto {
    struct netdam_fw_crypto calls; /* for struct netdam_fw_platform */
    /* Something was sealed; `secret` stands for its key and nonce. May be NULL. */
    void (*sealed)(void *opaque, uint64_t secret);
    void *opaque;
    uint64_t keys[NDTEST_CRYPTO_SLOTS][2];
};

/* In place: the calls point to it. */
void ndtest_crypto_init(struct ndtest_crypto *crypto);

#endif
