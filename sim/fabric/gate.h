/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's interrupt thread, held. Some drivers, net_memif above all, take a device's memory apart in that thread as soon as
 * the peer has gone, while ours may be in the middle of a burst over it. So the thread is kept inside a callback of our
 * own, and let go only while no burst is under way.
 */
#ifndef NDFAB_GATE_H
#define NDFAB_GATE_H

#include <stdbool.h>

struct ndfab_gate;

/* NULL, with a message on stderr, if it cannot be. The thread is held from here on. */
struct ndfab_gate *ndfab_gate_open(void);

/* Lets the thread do what has come up for it, and returns when it is held again. NULL is ignored. */
void ndfab_gate_pass(struct ndfab_gate *gate);

/* Lets it go for good. NULL is ignored. */
void ndfab_gate_close(struct ndfab_gate *gate);

#endif
