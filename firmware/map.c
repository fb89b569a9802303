/* SPDX-License-Identifier: BSD-3-Clause */
/* A small hash map from random 64-bit ids to indices. */
#include "ndfw.h"

/* A power of two, at most half full with `entries`, so that a search always meets an empty place. */
uint32_t ndfw_map_slots(uint32_t entries)
{
    uint32_t slots = 4;

    while (slots < entries * 2) {
        slots *= 2;
    }
    return slots;
}

void ndfw_map_clear(struct ndfw_map *map)
{
    memset(map->slots, 0, ((size_t)map->mask + 1) * sizeof(map->slots[0]));
}

uint32_t ndfw_map_first(const struct ndfw_map *map, uint64_t id)
{
    return (uint32_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & map->mask;
}

void ndfw_map_insert(struct ndfw_map *map, uint64_t id, uint32_t index)
{
    uint32_t at = ndfw_map_first(map, id);

    while (map->slots[at] != 0) {
        at = (at + 1) & map->mask;
    }
    map->slots[at] = index + 1;
}
