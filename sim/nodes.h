/* SPDX-License-Identifier: BSD-3-Clause */
/* One node of netdam-node: a soft device, its regions and what is in them, and what it says about itself. */
#ifndef NDSIM_NODES_H
#define NDSIM_NODES_H

#include "options.h"

#include <stdio.h>

struct ndsim_node {
    const struct ndsim_options *options; /* of the process */
    const struct ndsim_node_options *own;
    struct netdam_soft *soft;
    uint64_t keys[NDSIM_REGIONS_MAX]; /* as they were drawn */
    bool told;                        /* the firmware has said what is wrong */
};

/* Opens a node, fills its memory and makes its regions. False: one line on stderr told why; the node is closed. */
bool ndsim_node_open(struct ndsim_node *node, const struct ndsim_options *options,
                     const struct ndsim_node_options *own);
void ndsim_node_close(struct ndsim_node *node);

/* The lines that tell peers how to reach it, the one that says "ready" last; flushed. */
void ndsim_node_print_ready(const struct ndsim_node *node);

/* The same as one JSON object, without newline; `event` is its first member, or NULL. */
void ndsim_node_print_json(const struct ndsim_node *node, const char *event, FILE *file);

void ndsim_node_print_counters(struct ndsim_node *node, bool json);

/* "netdam-node: NAME: WHAT: WHY", without the name if there is none. Returns false. */
bool ndsim_node_fail(const struct ndsim_node_options *own, const char *what, const char *why);

#endif
