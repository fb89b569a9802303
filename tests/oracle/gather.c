/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather lists: local buffers in up to four pieces, which lie in memory in another order than their bytes have. */
#include "oracle.h"

/* Divides a buffer. What is drawn depends on `seed` alone. */
static void draw_pieces(uint64_t seed, uint32_t bytes, struct gather *gather)
{
    struct ndtest_random random = {ndtest_mix(seed)};
    uint32_t order[NETDAM_LIST_MAX];
    uint32_t left = bytes, at = 0;

    gather->count = 1 + (uint32_t)draw_below(&random, NETDAM_LIST_MAX);
    for (uint32_t i = 0; i < gather->count; i++) {
        uint32_t place = (uint32_t)draw_below(&random, i + 1);

        gather->bytes[i] = i + 1 == gather->count ? left : (uint32_t)draw_below(&random, left + 1);
        left -= gather->bytes[i];
        order[i] = order[place];
        order[place] = i;
    }
    for (uint32_t i = 0; i < gather->count; i++) {
        gather->at[order[i]] = at;
        at += gather->bytes[order[i]];
    }
}

void gather_draw(uint64_t seed, uint32_t bytes, struct gather *gather)
{
    if (seed == 0) {
        *gather = (struct gather){.count = 1, .bytes = {bytes}};
    } else {
        draw_pieces(seed, bytes, gather);
    }
}

void gather_list(const struct gather *gather, uint32_t base, uint8_t *list)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        struct netdam_list_entry entry = {
            .local_region = REGION_LOCAL, .length = gather->bytes[i], .local_address = base + gather->at[i]};

        memcpy(list + i * sizeof(entry), &entry, sizeof(entry));
    }
}

void gather_put(const struct gather *gather, uint8_t *memory, const uint8_t *bytes)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        memcpy(memory + gather->at[i], bytes, gather->bytes[i]);
        bytes += gather->bytes[i];
    }
}

void gather_get(const struct gather *gather, const uint8_t *memory, uint8_t *bytes)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        memcpy(bytes, memory + gather->at[i], gather->bytes[i]);
        bytes += gather->bytes[i];
    }
}

static uint64_t seed_of(const struct world *world, const struct op *op)
{
    return (op->d.flags & NETDAM_DESCRIPTOR_LIST) != 0 ? op_random(world, op, 0x6c697374) | 1 : 0;
}

/* A list lies before what it names. */
static uint32_t list_bytes(const struct op *op)
{
    return (op->d.flags & NETDAM_DESCRIPTOR_LIST) != 0 ? LIST_BYTES : 0;
}

bool buffer_take(struct world *world, struct op *op, const uint8_t *bytes)
{
    struct site *site = &world->sites[op->site];
    uint32_t slot = slot_take(world, site, op->d.length + list_bytes(op));
    struct gather gather;
    uint8_t *memory;

    if (slot == NONE) {
        return false;
    }
    memory = site->node.memory + LOCAL_BASE + slot_offset(slot);
    gather_draw(seed_of(world, op), op->d.length, &gather);
    op->slot = (uint16_t)slot;
    op->d.local_region = REGION_LOCAL;
    op->d.u.buffer.local_address = slot_offset(slot);
    if (list_bytes(op) != 0) {
        op->d.list_count = (uint8_t)gather.count;
        gather_list(&gather, slot_offset(slot) + LIST_BYTES, memory);
    }
    if (bytes != NULL) {
        gather_put(&gather, memory + list_bytes(op), bytes);
    }
    return true;
}

void buffer_get(const struct world *world, const struct op *op, uint8_t *bytes)
{
    struct gather gather;

    gather_draw(seed_of(world, op), op->d.length, &gather);
    gather_get(&gather, world->sites[op->site].node.memory + LOCAL_BASE + slot_offset(op->slot) + list_bytes(op),
               bytes);
}
