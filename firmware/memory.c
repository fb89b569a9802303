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

/* What the vector functions below move at once. */
#define LINE 64u

/*
 * How far ahead the lines of the target are fetched. What is stored in the order of addresses would otherwise wait for
 * each of them: hardware that looks ahead does so for loads, and stops at the end of each page.
 */
#define AHEAD (16 * LINE)

/*
 * Whole lines between on-board memory, aligned to 8, and private bytes anywhere; returns how many bytes it has moved.
 * On x86 a vector access is not one access, but each aligned 8 bytes of it are.
 */
#define COPY_LINES(name, vector_bytes, features)                                                                       \
    typedef uint64_t name##_vector __attribute__((vector_size(vector_bytes), aligned(1), may_alias));                  \
                                                                                                                       \
    __attribute__((target(features))) static size_t name(uint8_t *to, const uint8_t *from, size_t bytes)               \
    {                                                                                                                  \
        size_t end = bytes / LINE * LINE;                                                                              \
                                                                                                                       \
        for (size_t at = 0; at < end && at < AHEAD; at += LINE) {                                                      \
            __builtin_prefetch(to + at);                                                                               \
        }                                                                                                              \
        for (size_t at = 0; at < end; at += LINE) {                                                                    \
            const volatile name##_vector *source = (const volatile name##_vector *)(const void *)(from + at);          \
            volatile name##_vector *target = (volatile name##_vector *)(void *)(to + at);                              \
            name##_vector line[LINE / vector_bytes];                                                                   \
                                                                                                                       \
            if (at + AHEAD < end) {                                                                                    \
                __builtin_prefetch(to + at + AHEAD);                                                                   \
            }                                                                                                          \
            for (unsigned i = 0; i < LINE / vector_bytes; i++) {                                                       \
                line[i] = source[i];                                                                                   \
            }                                                                                                          \
            for (unsigned i = 0; i < LINE / vector_bytes; i++) {                                                       \
                target[i] = line[i];                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        return end;                                                                                                    \
    }

#if defined(__x86_64__)
COPY_LINES(copy_baseline, 16, "sse2")
COPY_LINES(copy_avx2, 32, "avx2")
COPY_LINES(copy_avx512, 64, "avx512f")
#else
static size_t copy_baseline(uint8_t *to, const uint8_t *from, size_t bytes)
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

            for (size_t i = copy_baseline(to, from, bytes) / 8; i < count; i++) {
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

            for (size_t i = copy_baseline(to, from, bytes) / 8; i < count; i++) {
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

static size_t copy_wide(const struct ndfw *fw, uint8_t *to, const uint8_t *from, size_t bytes)
{
#if defined(__x86_64__)
    if ((fw->config.cpu_features & NETDAM_FW_CPU_AVX512F) != 0) {
        return copy_avx512(to, from, bytes);
    }
    if ((fw->config.cpu_features & NETDAM_FW_CPU_AVX2) != 0) {
        return copy_avx2(to, from, bytes);
    }
#else
    (void)fw;
#endif
    return copy_baseline(to, from, bytes);
}

/* Bytes until on-board memory begins a line: from there on no vector lies across two of its lines. */
static size_t bytes_to_line(const uint8_t *memory)
{
    return (size_t)(-(uintptr_t)memory & (LINE - 1));
}

void ndfw_payload_store(const struct ndfw *fw, uint8_t *memory, const uint8_t *payload, size_t bytes)
{
    size_t done = 0;

    if (bytes >= WIDE_FROM) {
        done = bytes_to_line(memory);
        ndfw_store(memory, payload, done);
        done += copy_wide(fw, memory + done, payload + done, bytes - done);
    }
    ndfw_store(memory + done, payload + done, bytes - done);
}

void ndfw_payload_load(const struct ndfw *fw, uint8_t *payload, const uint8_t *memory, size_t bytes)
{
    size_t done = 0;

    if (bytes >= WIDE_FROM) {
        done = bytes_to_line(memory);
        ndfw_load(payload, memory, done);
        done += copy_wide(fw, payload + done, memory + done, bytes - done);
    }
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
