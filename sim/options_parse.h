/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts share that read netdam-node's command line and the topology file it names. */
#ifndef NDSIM_OPTIONS_PARSE_H
#define NDSIM_OPTIONS_PARSE_H

#include "options.h"

/* A node as its options are read; key and permissions are those of the whole memory. */
struct ndsim_draft {
    struct ndsim_node_options node;
    uint64_t key;
    uint32_t permissions;
    bool whole; /* --key or --permissions was given */
};

struct ndsim_parser {
    struct ndsim_options *options;
    struct ndsim_draft common; /* what holds for all nodes */
    struct ndsim_draft *drafts;
    unsigned draft_count;
    uint64_t count; /* --nodes; 0: not given */
    bool step_address;
    const char *topology; /* file, or NULL */
    const char *only;     /* names of its nodes, or NULL: all */
};

/* All that return false, or NULL, have told why on stderr. */

/* "--OPTION VALUE: expected WHAT". */
bool ndsim_options_wrong(const char *option, const char *value, const char *expected);
bool ndsim_options_no_memory(void);

/* A text that lives as long as the options. */
char *ndsim_options_keep(struct ndsim_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Another node, with what holds for all; until the next call. */
struct ndsim_draft *ndsim_options_begin_node(struct ndsim_parser *parser, const char *name);

/* The nodes of the topology file. */
bool ndsim_options_add_topology(struct ndsim_parser *parser);

#endif
