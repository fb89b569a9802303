/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of networks from a few numbers: which switches there are, with how many ports, and which ends are joined. */
#ifndef NDSIM_VT_SHAPE_H
#define NDSIM_VT_SHAPE_H

#include "vt/net.h"

enum ndsim_shape_kind {
    NDSIM_SHAPE_PAIR,       /* two nodes on one cable, no switch */
    NDSIM_SHAPE_STAR,       /* one switch */
    NDSIM_SHAPE_RING,       /* a ring of `switches`, the nodes shared out among them */
    NDSIM_SHAPE_LEAF_SPINE, /* `switches` leaves with the nodes, and `planes` spines, each joined to each leaf once */
};

struct ndsim_shape {
    enum ndsim_shape_kind kind;
    uint32_t nodes;
    uint32_t switches; /* RING: at least 3; LEAF_SPINE: leaves, at least 1; else not looked at */
    uint32_t planes;   /* LEAF_SPINE: at least 1; else not looked at */
};

struct ndsim_shape_edge {
    struct ndsim_end a;
    struct ndsim_end b;
    bool trunk; /* between switches */
};

/* What a shape consists of. Switches are numbered from 0: leaves first, then spines; nodes likewise. */
struct ndsim_shape_plan {
    uint32_t switch_count;
    uint32_t edge_count;
    uint32_t ports[NDSIM_NET_SWITCHES_MAX];
    struct ndsim_shape_edge edges[NDSIM_NET_LINKS_MAX / 2];
};

/* Node i is at leaf or ring switch i * switches / nodes. False if the shape is impossible or too large. */
bool ndsim_shape_plan(const struct ndsim_shape *shape, struct ndsim_shape_plan *plan);

/*
 * Adds the switches (`config`, with the plan's ports) and joins everything, the nodes of the net being those of the
 * shape; then routes. The net has no switches and no links yet. Edge i of the plan is links 2 i (a to b) and 2 i + 1.
 * False if the shape is impossible or does not fit the net.
 */
bool ndsim_shape_build(struct ndsim_net *net, const struct ndsim_shape *shape, const struct ndsim_switch_config *config,
                       const struct ndsim_link_config *node_link, const struct ndsim_link_config *trunk_link,
                       struct ndsim_shape_plan *plan);

/* Takes all trunks of one spine down in [from_ns, until_ns). */
void ndsim_shape_plane_down(struct ndsim_net *net, const struct ndsim_shape *shape, const struct ndsim_shape_plan *plan,
                            uint32_t plane, uint64_t from_ns, uint64_t until_ns);

#endif
