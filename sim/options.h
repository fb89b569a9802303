/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of netdam-node. */
#ifndef NDSIM_OPTIONS_H
#define NDSIM_OPTIONS_H

#include "netdam_soft.h"
#include "units.h"

#include <stdbool.h>
#include <stdint.h>

struct ndsim_options {
    const char *listen;
    const char *load; /* file to copy to the start of memory, or NULL */
    uint64_t memory_bytes;
    uint64_t key;         /* 0: draw one */
    uint32_t tenant;      /* whom the region belongs to; 0: nobody */
    unsigned tenant_mode; /* enum netdam_tenant_mode */
    uint64_t tenant_key[2];
    uint32_t mtu;
    uint32_t permissions; /* NETDAM_PERMISSION_* */
    struct netdam_soft_network forward[NETDAM_SOFT_NETWORKS];
    unsigned forward_count;
    const char *wire_path; /* NULL: the kernel's network */
    const char *wire_peer_path;
    bool no_payload_crc;
    bool no_merge;
    bool trace;
    bool json;
    bool counters;
    bool verbose;
};

enum ndsim_options_result {
    NDSIM_OPTIONS_RUN,
    NDSIM_OPTIONS_DONE,  /* help or version was printed */
    NDSIM_OPTIONS_WRONG, /* one line on stderr told why */
};

enum ndsim_options_result ndsim_options_parse(int argc, char **argv, struct ndsim_options *options);

#endif
