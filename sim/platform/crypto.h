/* SPDX-License-Identifier: BSD-3-Clause */
/* The platform's cryptography for tenants, by mbed TLS. */
#ifndef NDSIM_CRYPTO_H
#define NDSIM_CRYPTO_H

#include "netdam/firmware.h"

/* What a platform offers its firmware, for one thread; NULL if this was built without mbed TLS, or memory is short. */
const struct netdam_fw_crypto *ndsim_crypto_open(void);
/* Forgets all keys. NULL is ignored. */
void ndsim_crypto_close(const struct netdam_fw_crypto *crypto);

#endif
