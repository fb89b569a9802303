/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash map: everything put in is found, nothing else is, and a search always ends. */
#include "unit.h"

#define ENTRIES 100

static bool find(const struct ndfw_map *map, const uint64_t *ids, uint64_t id, uint32_t *index, unsigned *steps)
{
    *steps = 0;
    for (uint32_t at = ndfw_map_first(map, id); map->slots[at] != 0; at = (at + 1) & map->mask) {
        assert_true(++*steps <= map->mask); /* an empty place ends every search */
        if (ids[map->slots[at] - 1] == id) {
            *index = map->slots[at] - 1;
            return true;
        }
    }
    return false;
}

static void make(struct ndfw_map *map, uint32_t entries)
{
    map->mask = ndfw_map_slots(entries) - 1;
    map->slots = malloc(((size_t)map->mask + 1) * sizeof(map->slots[0]));
    memset(map->slots, 0xc9, ((size_t)map->mask + 1) * sizeof(map->slots[0]));
    ndfw_map_clear(map);
}

static void at_most_half_of_the_places_are_used(void **state)
{
    const uint32_t entries[] = {1, 2, 3, 4, 5, 63, 64, 65, 4096, 1u << 16, 1u << 24};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        uint32_t slots = ndfw_map_slots(entries[i]);

        assert_true(slots >= 2 * entries[i]);
        assert_true((slots & (slots - 1)) == 0);
        assert_true(slots < 4 * entries[i] || slots == 4);
    }
}

static void what_was_inserted_is_found_and_nothing_else(void **state)
{
    struct ndtest_random random = {3};
    uint64_t ids[ENTRIES] = {0};
    struct ndfw_map map;
    uint32_t index = 0;
    unsigned steps;

    (void)state;
    make(&map, ENTRIES);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        /* Neighbouring, equal in the low or high half, and random ids. */
        ids[i] = i < 30 ? i : i < 60 ? (uint64_t)i << 32 : i < 80 ? (uint64_t)i << 56 : ndtest_random_next(&random);
        ndfw_map_insert(&map, ids[i], i);
        for (uint32_t k = 0; k <= i; k++) {
            assert_true(find(&map, ids, ids[k], &index, &steps));
            assert_true(ids[index] == ids[k]);
        }
    }
    for (unsigned i = 0; i < 1000; i++) {
        assert_false(find(&map, ids, ndtest_random_next(&random) | UINT64_C(1) << 20, &index, &steps));
    }
    ndfw_map_clear(&map);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        assert_false(find(&map, ids, ids[i], &index, &steps));
    }
    free(map.slots);
}

static void ids_that_collide_are_kept_apart_across_the_end_of_the_table(void **state)
{
    struct ndtest_random random = {4};
    uint64_t ids[4] = {0};
    struct ndfw_map map;
    uint32_t index = 0;
    unsigned steps;

    (void)state;
    make(&map, ARRAY_SIZE(ids));
    for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++) {
        do { /* all of them want the last place */
            ids[i] = ndtest_random_next(&random);
        } while (ndfw_map_first(&map, ids[i]) != map.mask);
        ndfw_map_insert(&map, ids[i], i);
    }
    for (uint32_t i = 0; i < ARRAY_SIZE(ids); i++) {
        assert_true(find(&map, ids, ids[i], &index, &steps));
        assert_int_equal(index, i);
        assert_int_equal(steps, i + 1);
    }
    free(map.slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_most_half_of_the_places_are_used),
        cmocka_unit_test(what_was_inserted_is_found_and_nothing_else),
        cmocka_unit_test(ids_that_collide_are_kept_apart_across_the_end_of_the_table),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
