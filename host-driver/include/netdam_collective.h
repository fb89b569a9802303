/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives: operations of several nodes together. */
#ifndef LIBNETDAM_COLLECTIVE_H
#define LIBNETDAM_COLLECTIVE_H

#include "netdam_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct netdam_group_member - one node of a group; zero all of it first
 * @peer: the node; NULL at the own place
 * @key: of its region, which permits REMOTE_READ and REMOTE_WRITE to the others and LOCAL_READ and LOCAL_WRITE to itself
 * @input, @output: where in that region its vectors lie: the same address, or without overlap; multiples of 8
 * @control: where in that region NETDAM_CONTROL_BYTES(count) bytes lie that the group uses for itself, all 0 when it is
 *           created; a multiple of 8
 */
struct netdam_group_member {
    struct netdam_peer *peer;
    uint64_t key;
    uint64_t input;
    uint64_t output;
    uint64_t control;
};

/**
 * netdam_group_create() - prepare collectives of several nodes
 * @members: @count of them, 1 to NETDAM_MEMBERS_MAX (33), in the same order on every node; copied
 * @rank: the own place in it
 * @region: the own region, whose key is members[rank].key
 * @group: the handle; netdam_group_destroy() or netdam_close() releases it
 *
 * Every member posts the same collectives in the same order. When one has failed, the group is used up: destroy it,
 * clear `control` on every node, and create it anew.
 *
 * Errors: -EINVAL (@count, @rank, a peer missing or too much, or of another device), -ESTALE, -ENOSPC, -ENOMEM, -EPERM,
 * -ENODEV, -EIO.
 */
NETDAM_API int netdam_group_create(struct netdam_device *device, const struct netdam_group_member *members,
                                   unsigned count, unsigned rank, struct netdam_region *region,
                                   struct netdam_group **group);

/**
 * netdam_group_destroy() - release a group whose collectives have completed; as netdam_chain_destroy()
 */
NETDAM_API int netdam_group_destroy(struct netdam_group *group);

/*
 * Collectives, each called by every member of the group. Member i owns block i of a vector (netdam_block()). If one
 * fails, all others fail too, with the same status, and *@member is the place of the one that it is due to
 * (NETDAM_HOP_NONE: not known; or NULL).
 */

/**
 * netdam_all_reduce() - the outputs of all = the inputs of all, combined element by element
 * @operation: enum netdam_alu; @type: enum netdam_type; @bytes: of the vector, a multiple of the element's size
 *
 * Each block is combined in one order, from its owner on round the group: float sums are the same, bit for bit, on every
 * member, in every run.
 */
NETDAM_API int netdam_all_reduce(struct netdam_queue *queue, struct netdam_group *group, unsigned operation,
                                 unsigned type, uint32_t bytes, unsigned *member, uint64_t timeout_ns);

/**
 * netdam_reduce_scatter() - as netdam_all_reduce(), but each member's output gets the own block only, at its place
 */
NETDAM_API int netdam_reduce_scatter(struct netdam_queue *queue, struct netdam_group *group, unsigned operation,
                                     unsigned type, uint32_t bytes, unsigned *member, uint64_t timeout_ns);

/**
 * netdam_all_gather() - the outputs of all = the blocks of all, each from its owner's input
 */
NETDAM_API int netdam_all_gather(struct netdam_queue *queue, struct netdam_group *group, uint32_t bytes,
                                 unsigned *member, uint64_t timeout_ns);

/**
 * netdam_broadcast() - the outputs of all = the input of the member at place @root
 */
NETDAM_API int netdam_broadcast(struct netdam_queue *queue, struct netdam_group *group, unsigned root, uint32_t bytes,
                                unsigned *member, uint64_t timeout_ns);

/**
 * netdam_barrier() - return when every member has called it
 */
NETDAM_API int netdam_barrier(struct netdam_queue *queue, struct netdam_group *group, unsigned *member,
                              uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
