/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C: of headers, and of payload while it is copied. */
#include "ndfw.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u /* Castagnoli, reflected */

#if defined(__x86_64__)
#include <immintrin.h>

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

/*
 * Folding. A message is a polynomial, first bit first, and its CRC the remainder of it times x^32; so 16 bytes may be
 * replaced by any others that leave the same remainder after what follows. Carried over a distance of D bits they are
 * low * x^(D + 64) + high * x^D, low being the first 8 bytes; x^n modulo the polynomial has 32 bits, so that two
 * carry-less products do that, and many blocks are carried at once. Bits are reflected, which makes of the product of
 * an 8-byte and a 4-byte register that of the polynomials times x^33: the factors are x^(n - 33).
 */
enum fold { FOLD_128, FOLD_512, FOLD_2048 };

#define PCLMUL_TARGET  __attribute__((target("sse4.2,pclmul")))
#define VPCLMUL_TARGET __attribute__((target("sse4.2,pclmul,avx512f,vpclmulqdq")))

PCLMUL_TARGET static inline __m128i carry(__m128i block, __m128i factors)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00), _mm_clmulepi64_si128(block, factors, 0x11));
}

PCLMUL_TARGET static inline __m128i factors_of(const struct ndfw *fw, enum fold distance)
{
    return _mm_loadu_si128((const __m128i_u *)(const void *)fw->crc_fold[distance]);
}

PCLMUL_TARGET static inline uint32_t remainder_of(__m128i block)
{
    uint64_t low = (uint64_t)_mm_cvtsi128_si64(block);
    uint64_t high = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block));

    return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, low), high);
}

/* 16 bytes, aligned to 8 where they are on-board memory: each half is one access. They are copied on the way. */
PCLMUL_TARGET static inline __m128i take_16(uint8_t *to, const uint8_t *from)
{
    __m128i block = _mm_loadu_si128((const __m128i_u *)(const void *)from);

    if (to != NULL) {
        _mm_storeu_si128((__m128i_u *)(void *)to, block);
    }
    return block;
}

/* Whole 64 bytes, at least once. `to` may be NULL. */
PCLMUL_TARGET static inline uint32_t fold_64(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from,
                                             size_t bytes)
{
    const __m128i far = factors_of(fw, FOLD_512), near = factors_of(fw, FOLD_128);
    __m128i block[4];

    for (unsigned i = 0; i < 4; i++) {
        block[i] = take_16(to != NULL ? to + 16 * i : NULL, from + 16 * i);
    }
    block[0] = _mm_xor_si128(block[0], _mm_cvtsi32_si128((int)crc));
    for (size_t at = 64; at < bytes; at += 64) {
        for (unsigned i = 0; i < 4; i++) {
            __m128i next = take_16(to != NULL ? to + at + 16 * i : NULL, from + at + 16 * i);

            block[i] = _mm_xor_si128(carry(block[i], far), next);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        block[i + 1] = _mm_xor_si128(carry(block[i], near), block[i + 1]);
    }
    return remainder_of(block[3]);
}

VPCLMUL_TARGET static inline __m512i carry_wide(__m512i block, __m512i factors)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(block, factors, 0x00),
                            _mm512_clmulepi64_epi128(block, factors, 0x11));
}

VPCLMUL_TARGET static inline __m512i take_64(uint8_t *to, const uint8_t *from)
{
    __m512i block = _mm512_loadu_si512(from);

    if (to != NULL) {
        _mm512_storeu_si512(to, block);
    }
    return block;
}

/* Whole 64 bytes, at least four times. */
VPCLMUL_TARGET static inline uint32_t fold_256(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from,
                                               size_t bytes)
{
    const __m512i far = _mm512_broadcast_i32x4(factors_of(fw, FOLD_2048));
    const __m512i middle = _mm512_broadcast_i32x4(factors_of(fw, FOLD_512));
    const __m128i near = factors_of(fw, FOLD_128);
    __m512i block[4];
    __m128i last;
    size_t at = 256;

    for (unsigned i = 0; i < 4; i++) {
        block[i] = take_64(to != NULL ? to + 64 * i : NULL, from + 64 * i);
    }
    block[0] = _mm512_xor_si512(block[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (; bytes - at >= 256; at += 256) {
        for (unsigned i = 0; i < 4; i++) {
            __m512i next = take_64(to != NULL ? to + at + 64 * i : NULL, from + at + 64 * i);

            block[i] = _mm512_xor_si512(carry_wide(block[i], far), next);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        block[i + 1] = _mm512_xor_si512(carry_wide(block[i], middle), block[i + 1]);
    }
    for (; at < bytes; at += 64) {
        block[3] = _mm512_xor_si512(carry_wide(block[3], middle), take_64(to != NULL ? to + at : NULL, from + at));
    }
    last = _mm512_castsi512_si128(block[3]);
    last = _mm_xor_si128(carry(last, near), _mm512_extracti32x4_epi32(block[3], 1));
    last = _mm_xor_si128(carry(last, near), _mm512_extracti32x4_epi32(block[3], 2));
    last = _mm_xor_si128(carry(last, near), _mm512_extracti32x4_epi32(block[3], 3));
    return remainder_of(last);
}

PCLMUL_TARGET static uint32_t crc_64(const struct ndfw *fw, uint32_t crc, const uint8_t *data, size_t bytes)
{
    return fold_64(fw, crc, NULL, data, bytes);
}

PCLMUL_TARGET static uint32_t crc_copy_64(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from,
                                          size_t bytes)
{
    return fold_64(fw, crc, to, from, bytes);
}

VPCLMUL_TARGET static uint32_t crc_256(const struct ndfw *fw, uint32_t crc, const uint8_t *data, size_t bytes)
{
    return fold_256(fw, crc, NULL, data, bytes);
}

VPCLMUL_TARGET static uint32_t crc_copy_256(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from,
                                            size_t bytes)
{
    return fold_256(fw, crc, to, from, bytes);
}

static bool has(const struct ndfw *fw, uint64_t features)
{
    return (fw->config.cpu_features & features) == features;
}

/* Goes on with as many bytes as folding pays for, copies them if `to` is not NULL, and returns how many. */
static size_t fold(const struct ndfw *fw, uint32_t *crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t whole = bytes & ~(size_t)63;

    if (whole >= 256 &&
        has(fw, NETDAM_FW_CPU_SSE42 | NETDAM_FW_CPU_PCLMUL | NETDAM_FW_CPU_AVX512F | NETDAM_FW_CPU_VPCLMUL)) {
        *crc = to != NULL ? crc_copy_256(fw, *crc, to, from, whole) : crc_256(fw, *crc, from, whole);
        return whole;
    }
    if (whole >= 128 && has(fw, NETDAM_FW_CPU_SSE42 | NETDAM_FW_CPU_PCLMUL)) {
        *crc = to != NULL ? crc_copy_64(fw, *crc, to, from, whole) : crc_64(fw, *crc, from, whole);
        return whole;
    }
    return 0;
}
#else
static size_t fold(const struct ndfw *fw, uint32_t *crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
    (void)fw, (void)crc, (void)to, (void)from, (void)bytes;
    return 0;
}
#endif

/* x^n modulo the polynomial, reflected. */
static uint64_t power(uint32_t n)
{
    uint32_t value = 0x80000000u;

    while (n-- > 0) {
        value = (value >> 1) ^ ((value & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
    }
    return value;
}

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
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t distance = 128u << 2 * i;

        fw->crc_fold[i][0] = power(distance + 64 - 33);
        fw->crc_fold[i][1] = power(distance - 33);
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
    size_t folded = fold(fw, &crc, NULL, data, bytes);

    data += folded;
    bytes -= folded;
    if (has(fw, NETDAM_FW_CPU_SSE42)) {
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

#define HEADER_CRC_AT offsetof(struct netdam_wire_header, header_crc)
NETDAM_STATIC_ASSERT(HEADER_CRC_AT == 28 && sizeof(struct netdam_wire_header) == 32,
                     "the header's CRC is the second half of its fourth word");

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_header_x86(const uint8_t *header, size_t bytes)
{
    uint64_t state = UINT32_MAX, words[4];

    memcpy(words, header, sizeof(words));
    state = _mm_crc32_u64(state, words[0]);
    state = _mm_crc32_u64(state, words[1]);
    state = _mm_crc32_u64(state, words[2]);
    state = _mm_crc32_u64(state, words[3] & UINT32_MAX);
    return ~crc_x86((uint32_t)state, header + sizeof(words), bytes - sizeof(words));
}
#endif

uint32_t ndfw_crc32c_header(const struct ndfw *fw, const uint8_t *header, size_t bytes)
{
    static const uint8_t zero[sizeof(netdam_be32)] = {0};
    uint32_t crc;

#if defined(__x86_64__)
    if (has(fw, NETDAM_FW_CPU_SSE42)) {
        return crc_header_x86(header, bytes);
    }
#endif
    crc = ndfw_crc32c(fw, 0, header, HEADER_CRC_AT);
    crc = ndfw_crc32c(fw, crc, zero, sizeof(zero));
    return ndfw_crc32c(fw, crc, header + HEADER_CRC_AT + sizeof(zero), bytes - HEADER_CRC_AT - sizeof(zero));
}

uint32_t ndfw_crc32c_copy(const struct ndfw *fw, uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t head = (size_t)(-(uintptr_t)from & 7);
    size_t words, folded;

    crc = ~crc;
    if (head > bytes) {
        head = bytes;
    }
    ndfw_load(to, from, head);
    crc = crc_raw(fw, crc, to, head);
    to += head;
    from += head;
    bytes -= head;
    folded = fold(fw, &crc, to, from, bytes);
    to += folded;
    from += folded;
    bytes -= folded;
    words = bytes / 8;
#if defined(__x86_64__)
    if (has(fw, NETDAM_FW_CPU_SSE42)) {
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
