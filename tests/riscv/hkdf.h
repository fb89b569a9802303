/* SPDX-License-Identifier: BSD-3-Clause */
/* HKDF-SHA256 (RFC 5869, FIPS 180-4), for machines that have no library for it. */
#ifndef RISCV_HKDF_H
#define RISCV_HKDF_H

#include <stddef.h>
#include <stdint.h>

/* The first 16 bytes. */
void hkdf_sha256(const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes, const uint8_t *info,
                 size_t info_bytes, uint8_t out[16]);

#endif
