/* SPDX-License-Identifier: BSD-3-Clause */
/* Refused memif links: who tried in vain tries again every half a second. */
#include "refusals.h"

#define QUIET_NS UINT64_C(60000000000)

bool ndsim_refusals_show(struct ndsim_refusals *refusals, const struct ndsim_memif *memif, uint64_t now_ns)
{
    struct ndsim_memif_statistics statistics;
    bool refused;

    if (memif == NULL) {
        return false;
    }
    ndsim_memif_get_statistics(memif, &statistics);
    refused = statistics.refusals != refusals->seen;
    refusals->seen = statistics.refusals;
    if (!refused || now_ns < refusals->quiet_until_ns) {
        return false;
    }
    refusals->quiet_until_ns = now_ns + QUIET_NS;
    return true;
}
