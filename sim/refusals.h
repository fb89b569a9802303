/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lines of a memif endpoint everybody is shown: that a link is refused, once and not with every new attempt. */
#ifndef NDSIM_REFUSALS_H
#define NDSIM_REFUSALS_H

#include "platform/memif.h"

struct ndsim_refusals {
    uint64_t seen;
    uint64_t quiet_until_ns;
};

/*
 * To be asked from within the endpoint's log function, for each line of level NDSIM_MEMIF_LOG_PEER: whether it tells of a
 * refusal, by either side, and none has been shown for a minute. `memif` is NULL as long as it is being opened.
 */
bool ndsim_refusals_show(struct ndsim_refusals *refusals, const struct ndsim_memif *memif, uint64_t now_ns);

#endif
