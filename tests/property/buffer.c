/* SPDX-License-Identifier: BSD-3-Clause */
/* Local buffers of the property test: one range of a slot, or a list of up to four, in any order. */
#include "world.h"

/* A slot starts with room for a list. */
#define LIST_BYTES (NETDAM_LIST_MAX * sizeof(struct netdam_list_entry))

static uint64_t draw(struct world *world, uint64_t limit)
{
    return ndtest_random_below(&world->random, limit);
}

static uint32_t free_slot(struct world *world, const struct site *site)
{
    uint32_t first = (uint32_t)draw(world, SITE_SLOTS);

    for (uint32_t i = 0; i < SITE_SLOTS; i++) {
        if (!site->slot_used[(first + i) % SITE_SLOTS]) {
            return (first + i) % SITE_SLOTS;
        }
    }
    return NONE;
}

uint32_t buffer_free_slots(const struct site *site)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SITE_SLOTS; i++) {
        count += !site->slot_used[i];
    }
    return count;
}

static uint64_t slot_offset(const struct world *world, const struct site *site, uint32_t slot)
{
    return site->slot_base + (uint64_t)slot * world->slot_bytes;
}

/* Cuts `length` bytes into the buffer's spans, with gaps, first to last or the other way round. */
static void draw_spans(struct world *world, struct buffer *buffer, uint64_t from, uint32_t room, uint32_t length)
{
    uint64_t at = from;
    uint32_t gaps = room - length;
    bool backwards = draw(world, 2) == 0;

    for (unsigned i = 0; i < buffer->count; i++) {
        struct span *span = &buffer->spans[backwards ? buffer->count - 1 - i : i];
        uint32_t gap = (uint32_t)draw(world, gaps / NETDAM_LIST_MAX + 1);

        span->length = i + 1 == buffer->count ? length : (uint32_t)draw(world, length + 1);
        span->offset = at + gap;
        at += gap + span->length;
        length -= span->length;
    }
}

/* Stores the list. `wrong`: with one thing in it that cannot be. */
static void put_list(struct world *world, struct site *site, const struct buffer *buffer, const struct region *region,
                     struct netdam_descriptor *d, bool wrong)
{
    struct netdam_list_entry entries[NETDAM_LIST_MAX] = {0};
    unsigned which = (unsigned)draw(world, buffer->count);

    for (unsigned i = 0; i < buffer->count; i++) {
        entries[i].local_region = region->index;
        entries[i].length = buffer->spans[i].length;
        entries[i].local_address = buffer->spans[i].offset - region->base;
    }
    d->flags |= NETDAM_DESCRIPTOR_LIST;
    d->list_count = buffer->count;
    d->u.buffer.local_address = buffer->list_offset - region->base;
    switch (wrong ? draw(world, 4) : 4) {
    case 0:
        entries[which].length ^= 1;
        break;
    case 1:
        entries[which].local_region = 77 + (uint32_t)draw(world, 1000000);
        break;
    case 2:
        entries[which].local_address = region->length - entries[which].length + 1 + draw(world, 100);
        break;
    case 3:
        d->list_count = draw(world, 2) == 0 ? 0 : (uint8_t)(NETDAM_LIST_MAX + 1 + draw(world, 200));
        break;
    default:
        break;
    }
    memcpy(site->node.memory + buffer->list_offset, entries, sizeof(entries));
    oracle_accept_memory(site, buffer->list_offset, sizeof(entries));
}

bool buffer_draw(struct world *world, struct site *site, struct buffer *buffer, struct netdam_descriptor *d,
                 uint32_t need, bool wild, bool *valid)
{
    const struct region *region;
    uint32_t slot = free_slot(world, site);
    uint32_t room = world->slot_bytes - (uint32_t)LIST_BYTES;
    bool wrong = wild && draw(world, 10) < 3;
    uint64_t from;

    *buffer = (struct buffer){.slot = NONE};
    *valid = false;
    if (slot == NONE) {
        return false;
    }
    region = &site->regions[TARGET_REGIONS + slot / (SITE_SLOTS / LOCAL_REGIONS)];
    if (!region->live) {
        d->local_region = 77 + (uint32_t)draw(world, 1000000);
        return true;
    }
    d->local_region = region->index;
    from = slot_offset(world, site, slot) + LIST_BYTES;
    if (draw(world, 4) == 0) {
        buffer->slot = slot;
        buffer->count = (uint8_t)(1 + draw(world, NETDAM_LIST_MAX));
        buffer->list_offset = slot_offset(world, site, slot);
        draw_spans(world, buffer, from, room, d->length);
        put_list(world, site, buffer, region, d, wrong);
        buffer->count = wrong ? 0 : buffer->count;
        world->tally->lists++;
        *valid = !wrong &&
                 (region->permissions & (need | NETDAM_PERMISSION_LOCAL_READ)) == (need | NETDAM_PERMISSION_LOCAL_READ);
        return true;
    }
    buffer->count = 1;
    draw_spans(world, buffer, from, room, d->length);
    d->u.buffer.local_address = buffer->spans[0].offset - region->base;
    if (wrong) {
        buffer->count = 0;
        if (draw(world, 2) == 0) {
            d->local_region = 77 + (uint32_t)draw(world, 1000000);
        } else {
            d->u.buffer.local_address =
                draw(world, 2) == 0 ? UINT64_MAX - draw(world, 64) : region->length - d->length + 1 + draw(world, 100);
        }
        return true;
    }
    buffer->slot = slot;
    *valid = (region->permissions & need) == need;
    return true;
}

bool buffer_holds(const struct buffer *buffer, uint64_t offset, uint64_t bytes)
{
    for (unsigned i = 0; buffer->slot != NONE && i < buffer->count; i++) {
        const struct span *span = &buffer->spans[i];

        if (offset >= span->offset && bytes <= span->length && offset - span->offset <= span->length - bytes) {
            return true;
        }
    }
    return false;
}

bool buffer_lists(const struct buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return buffer->slot != NONE && buffer->list_offset != 0 && offset >= buffer->list_offset &&
           offset + bytes <= buffer->list_offset + LIST_BYTES;
}

/* Both directions: bytes [at, at + bytes) of the buffer are `each` of memory. */
static void copy(uint8_t *memory, const struct buffer *buffer, uint64_t at, uint64_t bytes, uint8_t *data, bool in)
{
    for (unsigned i = 0; i < buffer->count && bytes != 0; i++) {
        const struct span *span = &buffer->spans[i];
        uint64_t step;

        if (at >= span->length) {
            at -= span->length;
            continue;
        }
        step = span->length - at < bytes ? span->length - at : bytes;
        if (in) {
            memcpy(memory + span->offset + at, data, step);
        } else {
            memcpy(data, memory + span->offset + at, step);
        }
        data += step;
        bytes -= step;
        at = 0;
    }
    if (!in && bytes != 0) {
        memset(data, 0, bytes); /* a buffer that cannot be: nobody's random bytes */
    }
}

const uint8_t *buffer_gather(struct world *world, const struct site *site, const struct buffer *buffer, uint64_t at,
                             uint64_t bytes)
{
    copy(site->node.memory, buffer, at, bytes, world->scratch, false);
    return world->scratch;
}

void buffer_scatter(uint8_t *memory, const struct buffer *buffer, const uint8_t *data, uint64_t bytes)
{
    uint8_t *from = (uint8_t *)(uintptr_t)data; /* only read in this direction */

    copy(memory, buffer, 0, bytes, from, true);
}

void buffer_fill(struct world *world, struct site *site, const struct buffer *buffer)
{
    for (unsigned i = 0; buffer->slot != NONE && i < buffer->count; i++) {
        ndtest_random_fill(&world->random, site->node.memory + buffer->spans[i].offset, buffer->spans[i].length);
        oracle_accept_memory(site, buffer->spans[i].offset, buffer->spans[i].length);
    }
}

bool buffer_as_expected(const struct world *world, const struct site *site, const struct buffer *buffer)
{
    uint64_t offset = slot_offset(world, site, buffer->slot);

    return buffer->slot == NONE || memcmp(site->shadow + offset, site->node.memory + offset, world->slot_bytes) == 0;
}

void buffer_release(struct site *site, const struct buffer *buffer)
{
    if (buffer->slot == NONE) {
        return;
    }
    for (unsigned i = 0; i < buffer->count; i++) {
        oracle_accept_memory(site, buffer->spans[i].offset, buffer->spans[i].length);
    }
    site->slot_used[buffer->slot] = false;
}
