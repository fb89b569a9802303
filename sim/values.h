/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as the command line and topology files write them. Each returns false if the text is no such thing. */
#ifndef NDSIM_VALUES_H
#define NDSIM_VALUES_H

#include "netdam_soft.h"
#include "units.h"

#include <stdbool.h>
#include <stdint.h>

/* Whom a region belongs to. */
struct ndsim_tenant {
    uint32_t id;   /* 0: nobody */
    unsigned mode; /* enum netdam_tenant_mode */
    uint64_t key[2];
};

#define NDSIM_PATTERN_BYTES 64

/* Bytes of a node's memory: what the firmware takes. */
#define NDSIM_MEMORY_MAX (UINT64_C(1) << 56)

/* What memory is filled with: zeros if it is neither. */
struct ndsim_pattern {
    bool count;     /* 64-bit words 0, 1, 2, ... */
    unsigned bytes; /* of those that are repeated; 0: none */
    uint8_t repeated[NDSIM_PATTERN_BYTES];
};

/* "4660" or "0x1234": 64 bits. */
bool ndsim_number_parse(const char *text, uint64_t *value);

/* A number, and not 0. */
bool ndsim_key_parse(const char *text, uint64_t *key);

/* "ID:KEY:MODE". */
bool ndsim_tenant_parse(const char *text, struct ndsim_tenant *tenant);

/* Letters out of "rwa": NETDAM_PERMISSION_REMOTE_*. */
bool ndsim_permissions_parse(const char *text, uint32_t *permissions);

/* A size in NETDAM_MTU_MIN to NETDAM_MTU_MAX. */
bool ndsim_mtu_parse(const char *text, uint32_t *mtu);

/* "10.1.0.0/16". */
bool ndsim_network_parse(const char *text, struct netdam_soft_network *network);

/* "count", or an even number of hexadecimal digits. */
bool ndsim_pattern_parse(const char *text, struct ndsim_pattern *pattern);

#endif
