/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains: requests that visit several nodes one after the other. */
#ifndef LIBNETDAM_CHAIN_H
#define LIBNETDAM_CHAIN_H

#include "netdam_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct netdam_hop - what a chain does at one node; zero all of it first
 * @opcode: NETDAM_OP_LOAD: payload = memory, only at the first hop but for FORWARDs; _LOAD_REDUCE: payload = payload op
 *          memory; _COMPARE: stop the chain unless memory equals the payload; _WRITE: memory = payload; _REDUCE: memory
 *          = memory op payload, exactly once; _FORWARD: pass on
 * @operation: enum netdam_alu; @type: enum netdam_type; NONE unless the opcode reduces
 * @remote: the node, and the memory there; FORWARD: key and address 0
 */
struct netdam_hop {
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t reserved[5];
    struct netdam_remote remote;
};

/**
 * netdam_chain_create() - prepare a chain
 * @hops: @count of them, 1 to NETDAM_SEGMENTS_MAX (32); copied. No node twice.
 * @chain: the handle; netdam_chain_destroy() or netdam_close() releases it
 *
 * The list takes on-board memory and a region. A chain may be posted any number of times, by several threads too.
 * Behind a hop that reads into the payload at most one may store, and it is the last.
 *
 * Errors: -EINVAL (@count, no peer or one of another device; what else is wrong shows when it is posted), -ESTALE (a
 * peer was reset), -ENOSPC, -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_chain_create(struct netdam_device *device, const struct netdam_hop *hops, unsigned count,
                                   struct netdam_chain **chain);

/**
 * netdam_chain_destroy() - release a chain that no request uses any more
 * @chain: the handle, or NULL; invalid afterwards, whatever is returned
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone).
 */
NETDAM_API int netdam_chain_destroy(struct netdam_chain *chain);

/**
 * netdam_chain_run() - send @bytes from @from through a chain
 * @from: the payload; no region if the chain begins with LOAD
 * @to: where what comes back is stored; no region if nothing does. Of a chain that reads and does not end with a store
 * @bytes: at most length_max; more than fits a packet makes the tour in several
 * @hop: at which hop it failed, or NETDAM_HOP_NONE; or NULL
 */
NETDAM_API int netdam_chain_run(struct netdam_queue *queue, const struct netdam_chain *chain, struct netdam_local from,
                                struct netdam_local to, uint32_t bytes, unsigned *hop, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
