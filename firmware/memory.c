/* SPDX-License-Identifier: BSD-3-Clause */
/* On-board memory: the one funnel for every access, copies with single-copy atomic elements, regions. */
#include "ndfw.h"

uint8_t *ndfw_memory(struct ndfw *fw, uint64_t offset, uint64_t bytes, enum netdam_fw_access access)
{
    if (bytes > fw->config.memory_bytes || offset > fw->config.memory_bytes - bytes) {
        return NULL;
    }
    if (fw->platform.memory_access != NULL) {
        fw->platform.memory_access(fw->platform.opaque, offset, bytes, access);
    }
    return fw->config.memory + offset;
}

/* The largest power of two up to 8 that divides the address and does not exceed what is left. */
static unsigned piece(uintptr_t address, size_t left)
{
    unsigned bytes = 8;

    while (bytes > left || (address & (bytes - 1)) != 0) {
        bytes >>= 1;
    }
    return bytes;
}

uint64_t ndfw_element_load(const uint8_t *memory, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return __atomic_load_n(memory, __ATOMIC_RELAXED);
    case 2:
        return __atomic_load_n((const uint16_t *)(const void *)memory, __ATOMIC_RELAXED);
    case 4:
        return __atomic_load_n((const uint32_t *)(const void *)memory, __ATOMIC_RELAXED);
    default:
        return __atomic_load_n((const uint64_t *)(const void *)memory, __ATOMIC_RELAXED);
    }
}

void ndfw_element_store(uint8_t *memory, unsigned bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        __atomic_store_n(memory, (uint8_t)value, __ATOMIC_RELAXED);
        break;
    case 2:
        __atomic_store_n((uint16_t *)(void *)memory, (uint16_t)value, __ATOMIC_RELAXED);
        break;
    case 4:
        __atomic_store_n((uint32_t *)(void *)memory, (uint32_t)value, __ATOMIC_RELAXED);
        break;
    default:
        __atomic_store_n((uint64_t *)(void *)memory, value, __ATOMIC_RELAXED);
        break;
    }
}

/*
 * Many words between on-board memory, aligned to 8 on that side, and private bytes anywhere. On x86 a vector access is
 * not one access, but each aligned 8 bytes of it are.
 */
#if defined(__x86_64__)
typedef uint64_t words __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint64_t loose_words __attribute__((vector_size(16), aligned(1), may_alias));

static size_t store_many(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t at = 0;

    for (; bytes - at >= 64; at += 64) {
        const loose_words *source = (const loose_words *)(const void *)(from + at);
        volatile words *target = (volatile words *)(void *)(to + at);
        words a = source[0], b = source[1], c = source[2], d = source[3];

        target[0] = a;
        target[1] = b;
        target[2] = c;
        target[3] = d;
    }
    return at;
}

static size_t load_many(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t at = 0;

    for (; bytes - at >= 64; at += 64) {
        const volatile words *source = (const volatile words *)(const void *)(from + at);
        loose_words *target = (loose_words *)(void *)(to + at);
        words a = source[0], b = source[1], c = source[2], d = source[3];

        target[0] = a;
        target[1] = b;
        target[2] = c;
        target[3] = d;
    }
    return at;
}

typedef uint64_t wide_words __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t loose_wide_words __attribute__((vector_size(32), aligned(1), may_alias));

/* The same with half as many accesses: more lines of memory are under way at once. */
__attribute__((target("avx2"))) static size_t store_wide(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t at = 0;

    for (; bytes - at >= 64; at += 64) {
        const loose_wide_words *source = (const loose_wide_words *)(const void *)(from + at);
        volatile wide_words *target = (volatile wide_words *)(void *)(to + at);
        wide_words a = source[0], b = source[1];

        target[0] = a;
        target[1] = b;
    }
    return at;
}

__attribute__((target("avx2"))) static size_t load_wide(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t at = 0;

    for (; bytes - at >= 64; at += 64) {
        const volatile wide_words *source = (const volatile wide_words *)(const void *)(from + at);
        loose_wide_words *target = (loose_wide_words *)(void *)(to + at);
        wide_words a = source[0], b = source[1];

        target[0] = a;
        target[1] = b;
    }
    return at;
}
#else
static size_t store_many(uint8_t *to, const uint8_t *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return 0;
}

static size_t load_many(uint8_t *to, const uint8_t *from, size_t bytes)
{
    (void)to, (void)from, (void)bytes;
    return 0;
}
#endif

/* Into on-board memory: whatever naturally aligned element a CPU loads there, it sees whole. */
void ndfw_store(uint8_t *to, const uint8_t *from, size_t bytes)
{
    while (bytes > 0) {
        unsigned step = piece((uintptr_t)to, bytes);

        if (step == 8) {
            size_t count = bytes / 8;
            uint64_t *words_to = (uint64_t *)(void *)to;

            for (size_t i = store_many(to, from, bytes) / 8; i < count; i++) {
                uint64_t word;

                memcpy(&word, from + i * 8, 8);
                __atomic_store_n(&words_to[i], word, __ATOMIC_RELAXED);
            }
            to += count * 8;
            from += count * 8;
            bytes -= count * 8;
        } else {
            uint64_t value = 0;

            memcpy(&value, from, step);
            ndfw_element_store(to, step, value);
            to += step;
            from += step;
            bytes -= step;
        }
    }
}

/* Out of on-board memory, likewise. */
void ndfw_load(uint8_t *to, const uint8_t *from, size_t bytes)
{
    while (bytes > 0) {
        unsigned step = piece((uintptr_t)from, bytes);

        if (step == 8) {
            size_t count = bytes / 8;
            const uint64_t *words_from = (const uint64_t *)(const void *)from;

            for (size_t i = load_many(to, from, bytes) / 8; i < count; i++) {
                uint64_t word = __atomic_load_n(&words_from[i], __ATOMIC_RELAXED);

                memcpy(to + i * 8, &word, 8);
            }
            to += count * 8;
            from += count * 8;
            bytes -= count * 8;
        } else {
            uint64_t value = ndfw_element_load(from, step);

            memcpy(to, &value, step);
            to += step;
            from += step;
            bytes -= step;
        }
    }
}

/* Below this, which instructions are used makes no difference. */
#define WIDE_FROM 256u

void ndfw_payload_store(const struct ndfw *fw, uint8_t *memory, const uint8_t *payload, size_t bytes)
{
    size_t done = 0;

#if defined(__x86_64__)
    if (bytes >= WIDE_FROM && (fw->config.cpu_features & NETDAM_FW_CPU_AVX2) != 0) {
        size_t head = (size_t)(-(uintptr_t)memory & 7);

        ndfw_store(memory, payload, head);
        done = head + store_wide(memory + head, payload + head, bytes - head);
    }
#else
    (void)fw;
#endif
    ndfw_store(memory + done, payload + done, bytes - done);
}

void ndfw_payload_load(const struct ndfw *fw, uint8_t *payload, const uint8_t *memory, size_t bytes)
{
    size_t done = 0;

#if defined(__x86_64__)
    if (bytes >= WIDE_FROM && (fw->config.cpu_features & NETDAM_FW_CPU_AVX2) != 0) {
        size_t head = (size_t)(-(uintptr_t)memory & 7);

        ndfw_load(payload, memory, head);
        done = head + load_wide(payload + head, memory + head, bytes - head);
    }
#else
    (void)fw;
#endif
    ndfw_load(payload + done, memory + done, bytes - done);
}

struct ndfw_region *ndfw_region_find(const struct ndfw *fw, uint64_t key, uint32_t tenant)
{
    for (uint32_t at = ndfw_map_first(&fw->region_by_key, key); fw->region_by_key.slots[at] != 0;
         at = (at + 1) & fw->region_by_key.mask) {
        struct ndfw_region *region = &fw->regions[fw->region_by_key.slots[at] - 1];

        if (region->key == key) {
            return region->tenant == tenant ? region : NULL;
        }
    }
    return NULL;
}

enum netdam_status ndfw_region_access(const struct ndfw *fw, uint64_t key, uint32_t tenant, uint64_t address,
                                      uint64_t bytes, uint32_t permission, uint64_t *offset)
{
    const struct ndfw_region *region = ndfw_region_find(fw, key, tenant);

    if (region == NULL) {
        return NETDAM_STATUS_BAD_KEY;
    }
    if (bytes > region->length || address > region->length - bytes) {
        return NETDAM_STATUS_BAD_RANGE;
    }
    if ((region->permissions & permission) != permission) {
        return NETDAM_STATUS_NO_PERMISSION;
    }
    *offset = region->base + address;
    return NETDAM_STATUS_OK;
}

enum netdam_status ndfw_local_access(const struct ndfw *fw, uint32_t region, uint32_t serial, uint64_t address,
                                     uint64_t bytes, uint32_t permission, uint64_t *offset)
{
    const struct ndfw_region *local;

    if (region >= fw->config.regions || !fw->regions[region].in_use || fw->regions[region].serial != serial) {
        return NETDAM_STATUS_LOCAL_REGION;
    }
    local = &fw->regions[region];
    if (bytes > local->length || address > local->length - bytes) {
        return NETDAM_STATUS_LOCAL_RANGE;
    }
    if ((local->permissions & permission) != permission) {
        return NETDAM_STATUS_LOCAL_PERMISSION;
    }
    *offset = local->base + address;
    return NETDAM_STATUS_OK;
}
