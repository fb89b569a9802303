/* SPDX-License-Identifier: BSD-3-Clause */
/* How the fabric spends the time in which nothing happens. */
#ifndef NDFAB_WAIT_H
#define NDFAB_WAIT_H

#include "control.h"
#include "share.h"

struct ndfab_wait {
    struct ndfab_fabric *fabric;
    const struct ndfab_control *control;
    bool poll;      /* never sleep */
    bool can_sleep; /* every port can wake us up; else naps, which grow */
    uint32_t idle;  /* rounds without work */
    uint64_t nap_ns;
    struct ndsim_share share;
    struct pollfd *fds;
};

/* False, with a message on stderr, if memory is short. */
bool ndfab_wait_open(struct ndfab_wait *wait, struct ndfab_fabric *fabric, const struct ndfab_control *control,
                     bool poll);
void ndfab_wait_close(struct ndfab_wait *wait);

/* A round was of use; whoever is to answer may need this processor. */
void ndfab_wait_busy(struct ndfab_wait *wait);

/*
 * A round was of none. `blocked`: frames wait for a port that says nothing when it has room. Returns true if it slept
 * until somebody woke it up, so that control channels have to be looked at.
 */
bool ndfab_wait_idle(struct ndfab_wait *wait, bool blocked);

uint64_t ndfab_clock_ns(void);

#endif
