/* SPDX-License-Identifier: BSD-3-Clause */
/* The trees of a network, along which a frame for everybody reaches each edge once. */
#ifndef NDSIM_VT_TREES_H
#define NDSIM_VT_TREES_H

#include "vt/switch.h"

#define NDSIM_TREES_SWITCHES_MAX 1024u

/* A cable between two switches that is alive. */
struct ndsim_trunk {
    uint32_t switches[2];
    uint32_t ports[2];
};

/*
 * Finds trees that differ as much as they can: one around each switch, and one without each trunk that would otherwise be
 * in all of them and that can be spared. `edges` has for each switch the mask of its ports that lead out; switches that
 * lead to no edge are in no tree. Writes masks[tree * switch_count + switch], the ports of a switch that belong to a
 * tree, edges included. `masks` has room for NDSIM_SWITCH_TREES_MAX trees. Returns how many there are, at least one.
 */
uint32_t ndsim_trees(const struct ndsim_trunk *trunks, uint32_t trunk_count, const uint32_t *edges,
                     uint32_t switch_count, uint32_t *masks);

#endif
