/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing processors with the threads that one waits for. Who yields to threads that do their work and wait again comes
 * back soon. Who yields to one that computes without end, as a virtual CPU does while its guest waits, comes back with a
 * tick of the scheduler, after milliseconds; who sleeps comes back as soon as it is woken up. Which threads share a
 * processor is the scheduler's choice. So a thread looks at how long its yields take: after a long one it moves to another
 * processor, and if it is no better there, it does without yielding for a while.
 */
#ifndef NDSIM_SHARE_H
#define NDSIM_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one thread. Zero-initialize. */
struct ndsim_share {
    uint64_t moved_ns;         /* when it last changed the processor, */
    uint64_t crowded_until_ns; /* until when it does not yield, */
    uint64_t crowded_ns;       /* and how long that was from its beginning */
};

/* Lets others run, if that is of use; else returns false at once: sleep, or go on. */
bool ndsim_share_yield(struct ndsim_share *share);

/* What follows from a yield between these times. It is what ndsim_share_yield() asks and carries out. */
enum ndsim_share_step {
    NDSIM_SHARE_STAY,    /* it was short */
    NDSIM_SHARE_MOVE,    /* to another processor, if there is one */
    NDSIM_SHARE_CROWDED, /* no more yields for a while */
};
enum ndsim_share_step ndsim_share_judge(struct ndsim_share *share, uint64_t before_ns, uint64_t after_ns,
                                        bool may_move);

/*
 * Linux 6.12 and later let a thread ask for shorter turns of the processor, which it then has sooner: a yield is not paid
 * for with milliseconds, and a wake-up comes before a virtual CPU that spins. Older kernels ignore this.
 */
void ndsim_share_ask_for_short_slices(void);

#endif
