/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of networks: pair, star, ring, leaf and spine. */
#include "vt/shape.h"

/* The next free port of a switch, which the plan has from here on. */
static struct ndsim_end take_port(struct ndsim_shape_plan *plan, uint32_t sw)
{
    return ndsim_end_switch(sw, plan->ports[sw]++);
}

static void join(struct ndsim_shape_plan *plan, struct ndsim_end a, struct ndsim_end b)
{
    plan->edges[plan->edge_count++] = (struct ndsim_shape_edge){a, b, a.is_switch && b.is_switch};
}

static uint32_t trunks(const struct ndsim_shape *shape)
{
    switch (shape->kind) {
    case NDSIM_SHAPE_RING:
        return shape->switches;
    case NDSIM_SHAPE_LEAF_SPINE:
        return shape->switches * shape->planes;
    default:
        return 0;
    }
}

static bool is_possible(const struct ndsim_shape *shape)
{
    bool right;

    switch (shape->kind) {
    case NDSIM_SHAPE_PAIR:
        right = shape->nodes == 2;
        break;
    case NDSIM_SHAPE_STAR:
        right = true;
        break;
    case NDSIM_SHAPE_RING:
        right = shape->switches >= 3 && shape->switches <= NDSIM_NET_SWITCHES_MAX;
        break;
    case NDSIM_SHAPE_LEAF_SPINE:
        right = shape->switches >= 1 && shape->switches <= NDSIM_NET_SWITCHES_MAX && shape->planes >= 1 &&
                shape->planes <= NDSIM_NET_SWITCHES_MAX && shape->switches + shape->planes <= NDSIM_NET_SWITCHES_MAX;
        break;
    default:
        right = false;
        break;
    }
    return right && shape->nodes >= 1 && shape->nodes <= NDSIM_NET_NODES_MAX &&
           shape->nodes + trunks(shape) <= NDSIM_NET_LINKS_MAX / 2;
}

bool ndsim_shape_plan(const struct ndsim_shape *shape, struct ndsim_shape_plan *plan)
{
    uint32_t edges = shape->kind == NDSIM_SHAPE_STAR ? 1 : shape->switches;

    memset(plan, 0, sizeof(*plan));
    if (!is_possible(shape)) {
        return false;
    }
    if (shape->kind == NDSIM_SHAPE_PAIR) {
        join(plan, ndsim_end_node(0), ndsim_end_node(1));
        return true;
    }
    plan->switch_count = edges + (shape->kind == NDSIM_SHAPE_LEAF_SPINE ? shape->planes : 0);
    for (uint32_t i = 0; i < shape->nodes; i++) {
        join(plan, ndsim_end_node(i), take_port(plan, (uint32_t)((uint64_t)i * edges / shape->nodes)));
    }
    for (uint32_t i = 0; i < trunks(shape); i++) {
        uint32_t from = shape->kind == NDSIM_SHAPE_RING ? i : i / shape->planes;
        uint32_t to = shape->kind == NDSIM_SHAPE_RING ? (i + 1) % edges : edges + i % shape->planes;
        struct ndsim_end a = take_port(plan, from);

        join(plan, a, take_port(plan, to));
    }
    for (uint32_t i = 0; i < plan->switch_count; i++) {
        if (plan->ports[i] > NDSIM_SWITCH_PORTS_MAX) {
            return false;
        }
    }
    return true;
}

bool ndsim_shape_build(struct ndsim_net *net, const struct ndsim_shape *shape, const struct ndsim_switch_config *config,
                       const struct ndsim_link_config *node_link, const struct ndsim_link_config *trunk_link,
                       struct ndsim_shape_plan *plan)
{
    if (!ndsim_shape_plan(shape, plan) || net->node_count != shape->nodes || net->switch_count != 0 ||
        net->link_count != 0) {
        return false;
    }
    for (uint32_t i = 0; i < plan->switch_count; i++) {
        struct ndsim_switch_config one = *config;

        one.ports = plan->ports[i] != 0 ? plan->ports[i] : 1;
        if (ndsim_net_add_switch(net, &one) == UINT32_MAX) {
            return false;
        }
    }
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        const struct ndsim_shape_edge *edge = &plan->edges[i];

        if (ndsim_net_join(net, edge->a, edge->b, edge->trunk ? trunk_link : node_link) == UINT32_MAX) {
            return false;
        }
    }
    return ndsim_net_route(net);
}

void ndsim_shape_plane_down(struct ndsim_net *net, const struct ndsim_shape *shape, const struct ndsim_shape_plan *plan,
                            uint32_t plane, uint64_t from_ns, uint64_t until_ns)
{
    for (uint32_t i = 0; i < plan->edge_count; i++) {
        if (plan->edges[i].trunk && plan->edges[i].b.index == shape->switches + plane) {
            ndsim_link_down(&net->links[2 * i]->link, from_ns, until_ns);
            ndsim_link_down(&net->links[2 * i + 1]->link, from_ns, until_ns);
        }
    }
}
