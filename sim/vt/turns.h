/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose turn it is: a frame that is sent again goes along another tree, or another way, than the time before. */
#ifndef NDSIM_VT_TURNS_H
#define NDSIM_VT_TURNS_H

#include "vt/random.h"

#define NDSIM_TURNS 1024u /* different frames that are remembered; a power of two */

struct ndsim_turn {
    uint32_t frame; /* a hash of it */
    uint32_t next;
};

struct ndsim_turns {
    struct ndsim_random random; /* where frames that are new begin */
    struct ndsim_turn turns[NDSIM_TURNS];
};

void ndsim_turns_init(struct ndsim_turns *turns, uint64_t seed);

/*
 * To be asked once for each frame, where it enters the network: all switches have to use the same tree for it. Counts
 * up from frame to equal frame, for those of ndsim_switch_in_turn(); 0 for others.
 */
uint32_t ndsim_turns_take(struct ndsim_turns *turns, const uint8_t *frame, uint32_t bytes);

#endif
