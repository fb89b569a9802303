/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways through a topology: shortest paths between edges, and a tree for broadcasts. */
#include "topology.h"

#include <string.h>

/*
 * Distances of all switches, breadth first, from `root`, by hops. A switch's neighbours are found in the list of links:
 * networks are small, and this is done once.
 */
static void measure(const struct ndsim_topology *topology, uint32_t root, uint32_t distance[NDSIM_TOPOLOGY_PARTS_MAX])
{
    bool changed = true;

    for (uint32_t i = 0; i < topology->switch_count; i++) {
        distance[i] = i == root ? 0 : UINT32_MAX;
    }
    for (uint32_t round = 0; changed; round++) {
        changed = false;
        for (uint32_t i = 0; i < topology->link_count * 2; i++) {
            const struct ndsim_topology_end *near = &topology->links[i / 2].ends[i % 2];
            const struct ndsim_topology_end *far = &topology->links[i / 2].ends[1 - i % 2];

            if (near->kind == NDSIM_END_SWITCH && far->kind == NDSIM_END_SWITCH && distance[far->index] == round &&
                distance[near->index] == UINT32_MAX) {
                distance[near->index] = round + 1;
                changed = true;
            }
        }
    }
}

void ndsim_topology_ways(const struct ndsim_topology *topology, uint32_t port, uint32_t *masks)
{
    uint32_t distance[NDSIM_TOPOLOGY_PARTS_MAX];
    uint32_t root = UINT32_MAX;

    memset(masks, 0, topology->switch_count * sizeof(*masks));
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        const struct ndsim_topology_end *near = &topology->links[i / 2].ends[i % 2];
        const struct ndsim_topology_end *far = &topology->links[i / 2].ends[1 - i % 2];

        if (near->kind == NDSIM_END_SWITCH && far->kind == NDSIM_END_PORT && far->index == port) {
            root = near->index;
            masks[root] = UINT32_C(1) << near->port;
        }
    }
    if (root == UINT32_MAX) {
        return;
    }
    measure(topology, root, distance);
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        const struct ndsim_topology_end *near = &topology->links[i / 2].ends[i % 2];
        const struct ndsim_topology_end *far = &topology->links[i / 2].ends[1 - i % 2];

        if (near->kind == NDSIM_END_SWITCH && far->kind == NDSIM_END_SWITCH && distance[far->index] != UINT32_MAX &&
            distance[near->index] == distance[far->index] + 1) {
            masks[near->index] |= UINT32_C(1) << near->port;
        }
    }
}

/* Grows the tree of one part of the network; what is in it already stays alone. */
static void plant(const struct ndsim_topology *topology, uint32_t root, bool *planted, uint32_t *masks)
{
    uint32_t distance[NDSIM_TOPOLOGY_PARTS_MAX];

    measure(topology, root, distance);
    planted[root] = true;
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        const struct ndsim_topology_end *near = &topology->links[i / 2].ends[i % 2];
        const struct ndsim_topology_end *far = &topology->links[i / 2].ends[1 - i % 2];

        if (near->kind == NDSIM_END_SWITCH && far->kind == NDSIM_END_SWITCH && distance[far->index] != UINT32_MAX &&
            distance[far->index] + 1 == distance[near->index] && !planted[near->index]) {
            planted[near->index] = true;
            masks[near->index] |= UINT32_C(1) << near->port;
            masks[far->index] |= UINT32_C(1) << far->port;
        }
    }
}

void ndsim_topology_tree(const struct ndsim_topology *topology, uint32_t *masks)
{
    bool planted[NDSIM_TOPOLOGY_PARTS_MAX] = {false};

    memset(masks, 0, topology->switch_count * sizeof(*masks));
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        const struct ndsim_topology_end *near = &topology->links[i / 2].ends[i % 2];
        const struct ndsim_topology_end *far = &topology->links[i / 2].ends[1 - i % 2];

        if (near->kind == NDSIM_END_SWITCH && far->kind == NDSIM_END_PORT) {
            masks[near->index] |= UINT32_C(1) << near->port;
        }
    }
    for (uint32_t i = 0; i < topology->switch_count; i++) {
        if (!planted[i]) {
            plant(topology, i, planted, masks);
        }
    }
}
