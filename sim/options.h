/* SPDX-License-Identifier: BSD-3-Clause */
/* What netdam-node is told on its command line: which nodes, and how they talk about themselves. */
#ifndef NDSIM_OPTIONS_H
#define NDSIM_OPTIONS_H

#include "netdam_soft.h"
#include "values.h"

#include <stdbool.h>
#include <stdint.h>

#define NDSIM_NODES_MAX   4096
#define NDSIM_REGIONS_MAX 32
#define NDSIM_NAME_BYTES  32

/* A part of a node's memory that peers reach by a key of its own, and what is in it at first: zeros unless told. */
struct ndsim_region {
    uint64_t offset;
    uint64_t bytes;
    uint64_t key; /* 0: draw one */
    uint32_t permissions;
    const char *load; /* file to copy to its start, or NULL */
    struct ndsim_pattern pattern;
};

struct ndsim_node_options {
    char name[NDSIM_NAME_BYTES]; /* empty: the only one */
    const char *listen;
    uint64_t memory_bytes;
    const char *load; /* file to copy to the start of memory, or NULL */
    struct ndsim_tenant tenant;
    uint32_t mtu;
    struct ndsim_region regions[NDSIM_REGIONS_MAX];
    unsigned region_count; /* at least 1 when parsing is done */
    struct netdam_soft_network forward[NETDAM_SOFT_NETWORKS];
    unsigned forward_count;
    const char *wire_path; /* NULL: the kernel's network */
    const char *wire_peer_path;
    const char *memif_path; /* NULL: no memif link */
    bool memif_server;
    uint32_t memif_id;
    const char *memif_secret;
    uint8_t prefix; /* of the network of wire or link; 0: 24 */
    uint8_t mac[6]; /* there; zeros: from the address */
    struct netdam_soft_limits limits;
    bool no_payload_crc;
    bool no_merge;
    uint32_t paths; /* 0: the firmware's default */
};

struct ndsim_text;

struct ndsim_options {
    struct ndsim_node_options *nodes;
    unsigned node_count;
    const char *status; /* file to write when all nodes are ready, or NULL */
    bool trace;
    bool json;
    bool counters;
    bool verbose;
    struct ndsim_text *texts; /* what the pointers above point to */
};

enum ndsim_options_result {
    NDSIM_OPTIONS_RUN,
    NDSIM_OPTIONS_DONE,  /* help or version was printed */
    NDSIM_OPTIONS_WRONG, /* one line on stderr told why */
};

/* Whatever it returns, ndsim_options_free is to be called. */
enum ndsim_options_result ndsim_options_parse(int argc, char **argv, struct ndsim_options *options);
void ndsim_options_free(struct ndsim_options *options);

#endif
