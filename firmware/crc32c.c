/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C: of headers, and of payload while it is copied. */
#include "ndfw.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u /* Castagnoli, reflected */

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc_x86(uint32_t crc, const uint8_t *data, size_t bytes)
{
    uint64_t state = crc;

    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;

        memcpy(&word, data, 8);
        state = _mm_crc32_u64(state, word);
    }
    for (; bytes > 0; data++, bytes--) {
        state = _mm_crc32_u8((uint32_t)state, *data);
    }
    return (uint32_t)state;
}

/* `from` is aligned to 8: every load is one access. */
__attribute__((target("sse4.2"))) static uint32_t crc_copy_x86(uint32_t crc, uint8_t *to, const uint8_t *from,
                                                               size_t words)
{
    const uint64_t *source = (const uint64_t *)(const void *)from;
    uint64_t state = crc;

    for (size_t i = 0; i < words; i++) {
        uint64_t word = __atomic_load_n(&source[i], __ATOMIC_RELAXED);

        memcpy(to + i * 8, &word, 8);
        state = _mm_crc32_u64(state, word);
    }
    return (uint32_t)state;
}
#endif

void ndfw_crc32c_prepare(struct ndfw *fw)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
        }
        fw->crc_table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            uint32_t before = fw->crc_table[k - 1][i];

            fw->crc_table[k][i] = (before >> 8) ^ fw->crc_table[0][before & 0xff];
        }
    }
}

static uint32_t crc_word(const struct ndfw *fw, uint32_t crc, uint64_t word)
{
    uint64_t x = word ^ crc;

    return fw->crc_table[7][x & 0xff] ^ fw->crc_table[6][x >> 8 & 0xff] ^ fw->crc_table[5][x >> 16 & 0xff] ^
           fw->crc_table[4][x >> 24 & 0xff] ^ fw->crc_table[3][x >> 32 & 0xff] ^ fw->crc_table[2][x >> 40 & 0xff] ^
           fw->crc_table[1][x >> 48 & 0xff] ^ fw->crc_table[0][x >> 56];
}

static uint32_t crc_raw(const struct ndfw *fw, uint32_t crc, const uint8_t *data, size_t bytes)
{
#if defined(__x86_64__)
    if ((fw->config.cpu_features & NETDAM_FW_CPU_SSE42) != 0) {
        return crc_x86(crc, data, bytes);
    }
#endif
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;

        memcpy(&word, data, 8);
        crc = crc_word(fw, crc, word);
    }
    for (; bytes > 0; data++, bytes--) {
        crc = (crc >> 8) ^ fw->crc_table[0][(crc ^ *data) & 0xff];
    }
    return crc;
}

uint32_t ndfw_crc32c(const struct ndfw *fw, uint32_t crc, const uint8_t *data, size_t bytes)
{
    return ~crc_raw(fw, ~crc, data, bytes);
}

uint32_t ndfw_crc32c_copy(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t head = (size_t)(-(uintptr_t)from & 7);
    size_t words;

    crc = ~crc;
    if (head > bytes) {
        head = bytes;
    }
    ndfw_load(to, from, head);
    crc = crc_raw(fw, crc, to, head);
    to += head;
    from += head;
    bytes -= head;
    words = bytes / 8;
#if defined(__x86_64__)
    if ((fw->config.cpu_features & NETDAM_FW_CPU_SSE42) != 0) {
        crc = crc_copy_x86(crc, to, from, words);
    } else
#endif
    {
        ndfw_load(to, from, words * 8);
        crc = crc_raw(fw, crc, to, words * 8);
    }
    to += words * 8;
    from += words * 8;
    bytes -= words * 8;
    ndfw_load(to, from, bytes);
    return ~crc_raw(fw, crc, to, bytes);
}
