/* SPDX-License-Identifier: BSD-3-Clause */
/* A network in virtual time: nodes and switches, joined by links, all on one event loop. */
#ifndef NDSIM_VT_NET_H
#define NDSIM_VT_NET_H

#include "vt/link.h"
#include "vt/loop.h"
#include "vt/node.h"
#include "vt/switch.h"
#include "vt/turns.h"

#define NDSIM_NET_NODES_MAX    32u
#define NDSIM_NET_SWITCHES_MAX 16u
#define NDSIM_NET_LINKS_MAX    256u

/* One end of a cable. */
struct ndsim_end {
    bool is_switch;
    uint32_t index;
    uint32_t port; /* of a switch */
};

struct ndsim_net_link {
    struct ndsim_link link;
    struct ndsim_end from;
    struct ndsim_end to;
};

struct ndsim_net_node {
    struct ndsim_node node;
    uint8_t mac[6];
    uint32_t out; /* link */
    bool joined;
};

struct ndsim_net_switch {
    struct ndsim_switch sw;
    uint32_t out[NDSIM_SWITCH_PORTS_MAX];    /* links */
    uint32_t joined;                         /* mask of ports */
    uint64_t due_ns[NDSIM_SWITCH_PORTS_MAX]; /* with priorities: when the port is looked at next; NDSIM_NEVER: not */
};

struct ndsim_net {
    struct ndsim_loop loop;
    uint64_t seed;
    uint64_t hash; /* over every frame that reached a node: which, when, what */
    uint64_t delivered;
    struct ndsim_turns turns;
    struct ndsim_net_node nodes[NDSIM_NET_NODES_MAX];
    struct ndsim_net_switch *switches[NDSIM_NET_SWITCHES_MAX];
    struct ndsim_net_link *links[NDSIM_NET_LINKS_MAX];
    uint32_t node_count;
    uint32_t switch_count;
    uint32_t link_count;
    struct ndsim_frame *under_way; /* frames on links and in queues of priorities */
    /* A frame leaves a node, and reaches one. May be NULL. */
    void *opaque;
    void (*left)(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);
    void (*reached)(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);
};

void ndsim_net_init(struct ndsim_net *net, uint64_t seed, uint64_t start_ns);
void ndsim_net_fini(struct ndsim_net *net);

/* A node around firmware state that the caller keeps. Returns its index, or UINT32_MAX if there are too many. */
uint32_t ndsim_net_add_node(struct ndsim_net *net, const struct netdam_fw_ops *ops, void *state, const uint8_t mac[6],
                            const struct ndsim_node_config *config);
uint32_t ndsim_net_add_switch(struct ndsim_net *net, const struct ndsim_switch_config *config);

/*
 * Joins two ends by a cable, a link each way with this configuration. A node has one port, and may be joined to
 * another node directly. Returns the index of the link a to b, the other direction being the next; UINT32_MAX if an end
 * is taken or does not exist.
 */
uint32_t ndsim_net_join(struct ndsim_net *net, struct ndsim_end a, struct ndsim_end b,
                        const struct ndsim_link_config *config);

/*
 * Fills the tables of all switches: towards each node every port on a shortest way; broadcasts along trees in turn.
 * To be called when everything is joined. False if a table is full.
 */
bool ndsim_net_route(struct ndsim_net *net);

/* Ends for ndsim_net_join. */
struct ndsim_end ndsim_end_node(uint32_t node);
struct ndsim_end ndsim_end_switch(uint32_t sw, uint32_t port);

#endif
