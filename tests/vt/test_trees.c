/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees for broadcasts: each reaches every edge once, none is needed by all; and whose turn it is. */
#include "vt.h"

#include "vt/trees.h"
#include "vt/turns.h"

#define SWITCHES_MAX 64u
#define TRUNKS_MAX   128u

static struct ndsim_trunk trunks[TRUNKS_MAX];
static uint32_t trunk_count;
static uint32_t edges[SWITCHES_MAX];
static uint32_t used[SWITCHES_MAX]; /* ports, from 0 */
static uint32_t masks[SWITCHES_MAX * NDSIM_SWITCH_TREES_MAX];

static void start(uint32_t switch_count)
{
    trunk_count = 0;
    memset(edges, 0, sizeof(edges));
    memset(used, 0, sizeof(used));
    assert_true(switch_count <= SWITCHES_MAX);
}

static void add_edge(uint32_t sw)
{
    edges[sw] |= UINT32_C(1) << used[sw]++;
}

static void add_trunk(uint32_t a, uint32_t b)
{
    assert_true(trunk_count < TRUNKS_MAX);
    trunks[trunk_count++] = (struct ndsim_trunk){{a, b}, {used[a], used[b]}};
    used[a]++;
    used[b]++;
}

/* Marks what a frame that enters at `sw` by `port` reaches; twice would be a loop. */
static void walk(const uint32_t *mask, uint32_t sw, uint32_t port, uint32_t *reached)
{
    assert_int_equal(reached[sw], 0);
    reached[sw] = 1;
    for (uint32_t i = 0; i < trunk_count; i++) {
        for (unsigned end = 0; end < 2; end++) {
            if (trunks[i].switches[end] == sw && trunks[i].ports[end] != port &&
                (mask[sw] >> trunks[i].ports[end] & 1) != 0) {
                walk(mask, trunks[i].switches[1 - end], trunks[i].ports[1 - end], reached);
            }
        }
    }
}

/* Finds the trees and looks whether each brings a frame from each edge to every switch with edges, and to none twice. */
static uint32_t grow(uint32_t switch_count)
{
    uint32_t count = ndsim_trees(trunks, trunk_count, edges, switch_count, masks);

    assert_in_range(count, 1, NDSIM_SWITCH_TREES_MAX);
    for (uint32_t tree = 0; tree < count; tree++) {
        const uint32_t *mask = &masks[tree * switch_count];

        for (uint32_t from = 0; from < switch_count; from++) {
            uint32_t reached[SWITCHES_MAX] = {0};

            if (edges[from] == 0) {
                continue;
            }
            walk(mask, from, UINT32_MAX, reached);
            for (uint32_t to = 0; to < switch_count; to++) {
                assert_true(edges[to] == 0 || (reached[to] == 1 && (mask[to] & edges[to]) == edges[to]));
            }
        }
    }
    return count;
}

/* In how many trees a trunk is. */
static uint32_t trees_with(const struct ndsim_trunk *trunk, uint32_t count, uint32_t switch_count)
{
    uint32_t with = 0;

    for (uint32_t tree = 0; tree < count; tree++) {
        with += masks[tree * switch_count + trunk->switches[0]] >> trunk->ports[0] & 1;
    }
    return with;
}

static void leaves_and_spines_have_a_tree_for_each_spine(void **state)
{
    (void)state;
    start(8);
    for (uint32_t leaf = 0; leaf < 4; leaf++) {
        add_edge(leaf);
        for (uint32_t spine = 4; spine < 8; spine++) {
            add_trunk(leaf, spine);
        }
    }
    assert_int_equal(grow(8), 4);
    for (uint32_t i = 0; i < trunk_count; i++) {
        assert_int_equal(trees_with(&trunks[i], 4, 8), 1);
    }
}

static void a_ring_can_do_without_any_of_its_trunks(void **state)
{
    (void)state;
    for (uint32_t switches = 3; switches < 16; switches++) {
        uint32_t count;

        start(switches);
        for (uint32_t i = 0; i < switches; i++) {
            add_edge(i);
            add_trunk(i, (i + 1) % switches);
        }
        count = grow(switches);
        for (uint32_t i = 0; i < trunk_count; i++) {
            assert_true(trees_with(&trunks[i], count, switches) < count);
        }
    }
}

static void of_parallel_trunks_each_has_a_tree(void **state)
{
    (void)state;
    start(2);
    add_edge(0);
    add_edge(1);
    add_trunk(0, 1);
    add_trunk(0, 1);
    assert_int_equal(grow(2), 2);
    assert_int_equal(trees_with(&trunks[0], 2, 2), 1);
    assert_int_equal(trees_with(&trunks[1], 2, 2), 1);
}

static void where_there_is_one_way_there_is_one_tree_and_dead_ends_are_in_none(void **state)
{
    (void)state;
    /* 0 - 1 - 2 - 3 - 4, with edges at 1 and 3 alone; 5 is by itself. */
    start(6);
    add_edge(1);
    add_edge(3);
    for (uint32_t i = 0; i < 4; i++) {
        add_trunk(i, i + 1);
    }
    assert_int_equal(ndsim_trees(trunks, trunk_count, edges, 6, masks), 1);
    assert_int_equal(masks[0], 0);
    assert_int_equal(masks[1], 1u | 1u << 2);
    assert_int_equal(masks[2], 3);
    assert_int_equal(masks[3], 3);
    assert_int_equal(masks[4], 0);
    assert_int_equal(masks[5], 0);
}

static void parts_that_nothing_joins_have_trees_of_their_own(void **state)
{
    (void)state;
    start(4);
    for (uint32_t i = 0; i < 4; i++) {
        add_edge(i);
    }
    add_trunk(0, 1);
    add_trunk(2, 3);
    assert_int_equal(ndsim_trees(trunks, trunk_count, edges, 4, masks), 1);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(masks[i], 3);
    }
}

/* A broadcast, or a question to one; two that differ in their last byte. */
static const uint8_t *question(uint8_t which)
{
    static uint8_t frame[42];

    memset(frame, 0xff, 6);
    frame[12] = 0x08;
    frame[13] = 0x06;
    frame[41] = which;
    return frame;
}

static void a_frame_that_comes_again_has_the_next_turn(void **state)
{
    static struct ndsim_turns turns;
    uint32_t first[2];

    (void)state;
    ndsim_turns_init(&turns, 1);
    for (uint8_t i = 0; i < 2; i++) {
        first[i] = ndsim_turns_take(&turns, question(i), 42);
    }
    for (uint32_t again = 1; again < 100; again++) {
        for (uint8_t i = 0; i < 2; i++) {
            assert_int_equal(ndsim_turns_take(&turns, question(i), 42), first[i] + again);
        }
    }
}

/* More questions at a time than are remembered: of 64 turns, no question has the same one of two ways all the time. */
static void too_many_questions_are_spread_by_chance(void **state)
{
    enum { MANY = 4096 };
    static struct ndsim_turns turns;
    static uint32_t odd[MANY];
    uint8_t frame[42];

    (void)state;
    ndsim_turns_init(&turns, 1);
    memset(odd, 0, sizeof(odd));
    memcpy(frame, question(0), sizeof(frame));
    for (unsigned round = 0; round < 64; round++) {
        for (unsigned i = 0; i < MANY; i++) {
            frame[40] = (uint8_t)(i >> 8);
            frame[41] = (uint8_t)i;
            odd[i] += ndsim_turns_take(&turns, frame, sizeof(frame)) & 1;
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_in_range(odd[i], 1, 63);
    }
}

static void who_takes_turns(void **state)
{
    static const struct {
        uint8_t to, type[2], next_header, icmp;
        unsigned bytes;
        bool in_turn;
    } frames[] = {
        {0xff, {0x08, 0x00}, 17, 0, 100, true},   {0x02, {0x08, 0x00}, 17, 0, 100, false},
        {0x02, {0x08, 0x06}, 0, 0, 42, true},     {0x33, {0x86, 0xdd}, 58, 135, 86, true},
        {0x02, {0x86, 0xdd}, 58, 136, 86, true},  {0x02, {0x86, 0xdd}, 58, 128, 86, false},
        {0x02, {0x86, 0xdd}, 17, 136, 86, false}, {0x02, {0x86, 0xdd}, 58, 136, 54, false},
        {0xff, {0x08, 0x06}, 0, 0, 13, false},    {0x01, {0x08, 0x00}, 17, 0, 100, false},
    };

    (void)state;
    for (unsigned tagged = 0; tagged < 2; tagged++) {
        for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
            uint8_t frame[104] = {0};
            unsigned at = 12 + 4 * tagged;

            memset(frame, frames[i].to, 6);
            memcpy(frame + 12, "\x81\0\0\0", 4);
            memcpy(frame + at, frames[i].type, 2);
            frame[at + 2 + 6] = frames[i].next_header;
            frame[at + 2 + 40] = frames[i].icmp;
            assert_int_equal(ndsim_switch_in_turn(frame, frames[i].bytes + (frames[i].bytes > 13 ? 4 * tagged : 0)),
                             frames[i].in_turn);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_and_spines_have_a_tree_for_each_spine),
        cmocka_unit_test(a_ring_can_do_without_any_of_its_trunks),
        cmocka_unit_test(of_parallel_trunks_each_has_a_tree),
        cmocka_unit_test(where_there_is_one_way_there_is_one_tree_and_dead_ends_are_in_none),
        cmocka_unit_test(parts_that_nothing_joins_have_trees_of_their_own),
        cmocka_unit_test(a_frame_that_comes_again_has_the_next_turn),
        cmocka_unit_test(too_many_questions_are_spread_by_chance),
        cmocka_unit_test(who_takes_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
