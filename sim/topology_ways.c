/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways through a topology: shortest paths between edges, and trees for broadcasts. */
#include "topology.h"

#include "vt/trees.h"

#include <string.h>

/* One direction of a link: from `near` to `far`. */
struct step {
    const struct ndsim_topology_end *near;
    const struct ndsim_topology_end *far;
    bool trunk; /* between switches */
};

/* The i-th direction of all; false if its link is dead. */
static bool get_step(const struct ndsim_topology *topology, const bool *dead, uint32_t i, struct step *step)
{
    step->near = &topology->links[i / 2].ends[i % 2];
    step->far = &topology->links[i / 2].ends[1 - i % 2];
    step->trunk = step->near->kind == NDSIM_END_SWITCH && step->far->kind == NDSIM_END_SWITCH;
    return dead == NULL || !dead[i / 2];
}

/*
 * Distances of all switches, breadth first, from `root`, by hops. A switch's neighbours are found in the list of links:
 * networks are small, and this is done seldom.
 */
static void measure(const struct ndsim_topology *topology, const bool *dead, uint32_t root,
                    uint32_t distance[NDSIM_TOPOLOGY_PARTS_MAX])
{
    bool changed = true;
    struct step step;

    for (uint32_t i = 0; i < topology->switch_count; i++) {
        distance[i] = i == root ? 0 : UINT32_MAX;
    }
    for (uint32_t round = 0; changed; round++) {
        changed = false;
        for (uint32_t i = 0; i < topology->link_count * 2; i++) {
            if (get_step(topology, dead, i, &step) && step.trunk && distance[step.far->index] == round &&
                distance[step.near->index] == UINT32_MAX) {
                distance[step.near->index] = round + 1;
                changed = true;
            }
        }
    }
}

void ndsim_topology_ways(const struct ndsim_topology *topology, const bool *dead, uint32_t port, uint32_t *masks)
{
    uint32_t distance[NDSIM_TOPOLOGY_PARTS_MAX];
    uint32_t root = UINT32_MAX;
    struct step step;

    memset(masks, 0, topology->switch_count * sizeof(*masks));
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        /* The last link is taken even if it is dead: there is no other way. */
        get_step(topology, dead, i, &step);
        if (step.near->kind == NDSIM_END_SWITCH && step.far->kind == NDSIM_END_PORT && step.far->index == port) {
            root = step.near->index;
            masks[root] = UINT32_C(1) << step.near->port;
        }
    }
    if (root == UINT32_MAX) {
        return;
    }
    measure(topology, dead, root, distance);
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        if (get_step(topology, dead, i, &step) && step.trunk && distance[step.far->index] != UINT32_MAX &&
            distance[step.near->index] == distance[step.far->index] + 1) {
            masks[step.near->index] |= UINT32_C(1) << step.near->port;
        }
    }
}

uint32_t ndsim_topology_trees(const struct ndsim_topology *topology, const bool *dead, uint32_t *masks)
{
    struct ndsim_trunk trunks[NDSIM_TOPOLOGY_PARTS_MAX];
    uint32_t edges[NDSIM_TOPOLOGY_PARTS_MAX] = {0};
    uint32_t trunk_count = 0;
    struct step step;

    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        bool alive = get_step(topology, dead, i, &step);

        if (step.near->kind == NDSIM_END_SWITCH && step.far->kind == NDSIM_END_PORT) {
            edges[step.near->index] |= UINT32_C(1) << step.near->port;
        } else if (alive && step.trunk && i % 2 == 0) {
            trunks[trunk_count++] =
                (struct ndsim_trunk){{step.near->index, step.far->index}, {step.near->port, step.far->port}};
        }
    }
    return ndsim_trees(trunks, trunk_count, edges, topology->switch_count, masks);
}
