/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of a network, breadth first. */
#include "vt/trees.h"

#define NONE UINT16_MAX

/* Who is at the other end of each port. */
struct graph {
    uint32_t switch_count;
    uint16_t peer[NDSIM_TREES_SWITCHES_MAX][NDSIM_SWITCH_PORTS_MAX]; /* a switch, or NONE */
    uint8_t back[NDSIM_TREES_SWITCHES_MAX][NDSIM_SWITCH_PORTS_MAX];  /* its port */
};

static void connect(struct graph *graph, const struct ndsim_trunk *trunk, bool joined)
{
    for (unsigned i = 0; i < 2; i++) {
        graph->peer[trunk->switches[i]][trunk->ports[i]] = joined ? (uint16_t)trunk->switches[1 - i] : NONE;
        graph->back[trunk->switches[i]][trunk->ports[i]] = (uint8_t)trunk->ports[1 - i];
    }
}

static uint32_t bit(uint32_t port)
{
    return UINT32_C(1) << port;
}

/* Takes the switch out of the tree if it leads nowhere: no edge, and one other switch. Returns that one, or NONE. */
static uint32_t prune(const struct graph *graph, const uint32_t *edges, uint32_t leaf, uint32_t *masks)
{
    uint32_t port, peer;

    if (edges[leaf] != 0 || __builtin_popcount(masks[leaf]) != 1) {
        return NONE;
    }
    port = (uint32_t)__builtin_ctz(masks[leaf]);
    peer = graph->peer[leaf][port];
    masks[leaf] = 0;
    masks[peer] &= ~bit(graph->back[leaf][port]);
    return peer;
}

/* Grows the tree of the part of the network that `root` is in. */
static void plant(const struct graph *graph, const uint32_t *edges, uint32_t root, bool *planted, uint32_t *masks)
{
    uint16_t order[NDSIM_TREES_SWITCHES_MAX];
    uint32_t count = 0;

    order[count++] = (uint16_t)root;
    planted[root] = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t near = order[i];

        for (uint32_t port = 0; port < NDSIM_SWITCH_PORTS_MAX; port++) {
            uint32_t far = graph->peer[near][port];

            if (far != NONE && !planted[far]) {
                planted[far] = true;
                masks[near] |= bit(port);
                masks[far] |= bit(graph->back[near][port]);
                order[count++] = (uint16_t)far;
            }
        }
    }
    while (--count > 0) {
        (void)prune(graph, edges, order[count], masks);
    }
    while (root != NONE) {
        root = prune(graph, edges, root, masks);
    }
}

/* The tree around `root`; parts that it does not reach get one of their own. Returns how many parts there are. */
static uint32_t plant_all(const struct graph *graph, const uint32_t *edges, uint32_t root, uint32_t *masks)
{
    bool planted[NDSIM_TREES_SWITCHES_MAX] = {false};
    uint32_t parts = 1;

    memcpy(masks, edges, graph->switch_count * sizeof(*masks));
    plant(graph, edges, root, planted, masks);
    for (uint32_t i = 0; i < graph->switch_count; i++) {
        if (!planted[i]) {
            plant(graph, edges, i, planted, masks);
            parts++;
        }
    }
    return parts;
}

/* Whether the last tree is unlike all `count` before it. */
static bool is_new(const uint32_t *masks, uint32_t count, uint32_t switch_count)
{
    const uint32_t *last = masks + (size_t)count * switch_count;

    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(masks + (size_t)i * switch_count, last, switch_count * sizeof(*masks)) == 0) {
            return false;
        }
    }
    return true;
}

static bool is_in_all(const uint32_t *masks, uint32_t count, uint32_t switch_count, const struct ndsim_trunk *trunk)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((masks[(size_t)i * switch_count + trunk->switches[0]] & bit(trunk->ports[0])) == 0) {
            return false;
        }
    }
    return true;
}

uint32_t ndsim_trees(const struct ndsim_trunk *trunks, uint32_t trunk_count, const uint32_t *edges,
                     uint32_t switch_count, uint32_t *masks)
{
    struct graph graph = {.switch_count = switch_count};
    uint32_t count = 0;
    uint32_t parts = 0;

    memset(graph.peer, 0xff, sizeof(graph.peer));
    for (uint32_t i = 0; i < trunk_count; i++) {
        connect(&graph, &trunks[i], true);
    }
    for (uint32_t root = 0; root < switch_count && count < NDSIM_SWITCH_TREES_MAX; root++) {
        parts = plant_all(&graph, edges, root, masks + (size_t)count * switch_count);
        count += is_new(masks, count, switch_count);
    }
    for (uint32_t i = 0; i < trunk_count && count < NDSIM_SWITCH_TREES_MAX; i++) {
        if (is_in_all(masks, count, switch_count, &trunks[i])) {
            connect(&graph, &trunks[i], false);
            count += plant_all(&graph, edges, trunks[i].switches[0], masks + (size_t)count * switch_count) == parts;
            connect(&graph, &trunks[i], true);
        }
    }
    return count == 0 ? 1 : count;
}
