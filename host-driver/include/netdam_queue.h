/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: requests and receive buffers are posted to them, completions are taken from them. */
#ifndef LIBNETDAM_QUEUE_H
#define LIBNETDAM_QUEUE_H

#include "netdam_device.h"

#include <netdam/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct netdam_queue_config - optional settings of netdam_queue_create(); zero all of it first
 * @submission_depth, @completion_depth: entries, rounded up to a power of two, at most 65536; 0: 256
 * @first_index: where the free-running ring indices start; 0 is as good as any, others are for tests
 * @receive_depth: entries of the receive ring, likewise; 0: no receive ring, nothing can be sent to this queue pair.
 *                 Each message that arrives takes a place in the completion ring, too.
 * @tenant: whose messages the receive ring takes, or 0: those without a tenant
 * @type: enum netdam_queue_type. NETDAM_QUEUE_RAW: for Ethernet frames that are not NetDAM's; @tenant is 0 then
 */
struct netdam_queue_config {
    uint32_t submission_depth;
    uint32_t completion_depth;
    uint32_t first_index;
    uint32_t receive_depth;
    uint32_t tenant;
    uint32_t type;
};

/**
 * netdam_queue_create() - create a queue pair
 * @config: settings, or NULL
 * @queue: the handle; netdam_queue_destroy() or netdam_close() releases it
 *
 * The rings take their place from the same on-board memory as netdam_alloc().
 *
 * Errors: -EINVAL (@config), -ENOSPC (all queue pairs are in use, or on-board memory is full), -EOPNOTSUPP (this
 * firmware knows no receive rings; NETDAM_QUEUE_RAW: the device's port carries NetDAM alone, as a UDP socket does, or a
 * broker has it that leases such a pair to privileged clients only), -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_queue_create(struct netdam_device *device, const struct netdam_queue_config *config,
                                   struct netdam_queue **queue);

/**
 * netdam_queue_destroy() - flush what is outstanding, then release the queue pair
 * @queue: the handle, or NULL; invalid afterwards, whatever is returned. Completions not polled are lost.
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone; the rings' memory then stays reserved).
 */
NETDAM_API int netdam_queue_destroy(struct netdam_queue *queue);

/**
 * netdam_queue_outstanding() - requests posted whose completions have not been polled.
 */
NETDAM_API unsigned netdam_queue_outstanding(const struct netdam_queue *queue);

/**
 * netdam_queue_receive_key() - the key that a SEND to this queue pair must name; 0: it has no receive ring, or is RAW.
 */
NETDAM_API uint64_t netdam_queue_receive_key(const struct netdam_queue *queue);

/**
 * netdam_queue_receives() - receive buffers posted whose completions have not been polled.
 */
NETDAM_API unsigned netdam_queue_receives(const struct netdam_queue *queue);

/* Memory of another node: the region that @key names there, @address bytes from its start. */
struct netdam_remote {
    struct netdam_peer *peer;
    uint64_t key;
    uint64_t address;
};

/* Memory of this device: @address bytes from the start of @region. */
struct netdam_local {
    struct netdam_region *region;
    uint64_t address;
};

/* One part of a list: @length bytes at @local. */
struct netdam_piece {
    struct netdam_local local;
    uint32_t length;
    uint32_t reserved; /* 0 */
};

/**
 * struct netdam_request - one request to post; zero all of it first
 * @opcode: enum netdam_op; @operation: enum netdam_alu; @type: enum netdam_type
 * @list_count: with @list: how many pieces, 1 to NETDAM_LIST_MAX
 * @flags: NETDAM_DESCRIPTOR_* bits, see below
 * @user_data: returned in the completion
 * @remote: peer always; key and address where the opcode names memory; SEND: @key is the receive key of the queue pair
 *          there, @address 0
 * @local: source of WRITE, SEND and REDUCE, where READ stores, source and store of ECHO, also if @length is 0; atomics:
 *         no region
 * @length: bytes, at most length_max; SEND: at most payload_max; atomics: the element's size; with @list: 0, or the sum
 *          of the pieces
 * @immediate: with NETDAM_DESCRIPTOR_IMMEDIATE
 * @operand: atomics: FETCH_ADD, FETCH_OP, SWAP: value; CAS: compare, swap
 * @list: pieces that, in this order, are what @local says, which is then zero; or NULL. Copied
 * @result_address: TRANSACTION: where in the region of @local what is fetched is stored; netdam_transaction_begin()
 *                  sets it
 * @chain: NETDAM_OP_CHAIN: what to do with @length bytes from @local (none if it begins with LOAD); @remote is zero
 * @result: NETDAM_OP_CHAIN: where what comes back is stored; none if nothing does
 * @group: collectives: NETDAM_OP_ALL_REDUCE, _REDUCE_SCATTER, _ALL_GATHER, _BROADCAST, _BARRIER; with operation, type
 *         and @length, the vector's; @remote and @local are zero
 * @root: NETDAM_OP_BROADCAST: the place of the member whose vector it is
 *
 * Flags. Without any a request is executed exactly once, and in any order with others.
 *   NETDAM_DESCRIPTOR_FENCE: started after all earlier requests of this queue pair have completed
 *   NETDAM_DESCRIPTOR_ORDERED: sent after all earlier ORDERED requests towards this peer have completed
 *   NETDAM_DESCRIPTOR_RELAXED: a late copy may be executed again, even after the completion; only what modifies memory,
 *   is idempotent and returns nothing
 *   NETDAM_DESCRIPTOR_UNRELIABLE: completes when sent, with OK; may be lost, refused, or executed more than once. Only
 *   what modifies memory and returns nothing. The first towards a node waits until the node has been heard from
 *   NETDAM_DESCRIPTOR_IMMEDIATE: WRITE, SEND: the target gets @immediate in a receive completion, after the payload
 *   NETDAM_DESCRIPTOR_REPRODUCIBLE: float sums in one fixed order
 *   NETDAM_DESCRIPTOR_LIST: set by the library when @list is given; without @list the application keeps an array of
 *   struct netdam_list_entry in on-board memory, at @local
 *
 * What the firmware does not do completes as NETDAM_STATUS_LOCAL_UNSUPPORTED.
 */
struct netdam_request {
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t list_count;
    uint32_t flags;
    uint64_t user_data;
    struct netdam_remote remote;
    struct netdam_local local;
    uint32_t length;
    uint32_t immediate;
    uint64_t operand[2];
    const struct netdam_piece *list;
    uint64_t result_address;
    const struct netdam_chain *chain;
    struct netdam_local result;
    struct netdam_group *group;
    uint32_t root;
    uint32_t reserved; /* 0 */
};

/**
 * netdam_post() - hand requests to the device
 * @requests: @count of them; copied
 *
 * Local memory that a request names must stay as it is until the request has completed. The device is woken at most
 * once, and only if it asked for that.
 *
 * Returns how many were posted: all, or those before the first that does not fit or is malformed.
 * Errors, when none was posted: -EAGAIN (the ring is full, or too many completions wait to be polled), -EINVAL (the
 * first is malformed: no peer, handles of another device, a region missing or too much, or an impossible list),
 * -EMSGSIZE (the first is longer than length_max), -ESTALE (the device, or what the request names, was reset), -EIO
 * (the ring is broken: destroy it); and for the first request of a queue pair that has a @list, which needs a region
 * and on-board memory for such lists: -ENOSPC, -ENOMEM.
 */
NETDAM_API int netdam_post(struct netdam_queue *queue, const struct netdam_request *requests, unsigned count);

/**
 * struct netdam_receive - one buffer for a message; zero all of it first
 * @user_data: returned in the completion
 * @local: where the message is stored; the region needs NETDAM_PERMISSION_LOCAL_WRITE
 * @length: room, in bytes; with @list: 0, or the sum of the pieces
 * @list_count, @list: pieces that are filled in this order, instead of @local; as in struct netdam_request
 */
struct netdam_receive {
    uint64_t user_data;
    struct netdam_local local;
    uint32_t length;
    uint32_t list_count;
    const struct netdam_piece *list;
};

/**
 * netdam_post_receive() - give the device buffers for messages
 * @receives: @count of them; copied
 *
 * Each SEND to this queue pair takes one buffer, in the order of posting, and so does each WRITE with an immediate into
 * a region made for that (netdam_region_create_config()), which leaves the buffer as it is. The completion has
 * NETDAM_COMPLETION_RECEIVE in its flags, in @length how long the message is, and with NETDAM_COMPLETION_IMMEDIATE the
 * sender's value in @immediate. Where no buffer is posted the sender's request ends as NETDAM_STATUS_NOT_READY, where
 * it is too short as NETDAM_STATUS_BAD_LENGTH, and nothing happens here.
 *
 * Returns and errors as netdam_post(); -EINVAL also if the queue pair has no receive ring.
 */
NETDAM_API int netdam_post_receive(struct netdam_queue *queue, const struct netdam_receive *receives, unsigned count);

/**
 * netdam_poll() - take completions without waiting
 * @completions: room for @count
 *
 * Completions come in any order. Those with NETDAM_COMPLETION_RECEIVE in their @flags are messages: their @user_data is
 * the receive buffer's, their @opcode the sender's. The others' are the request's. @status is an enum netdam_status.
 *
 * Returns how many were taken, 0 if none is there.
 * Errors: -ESTALE (none is left, and the device was reset), -EIO (the ring is broken: destroy the queue pair).
 */
NETDAM_API int netdam_poll(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count);

/**
 * netdam_wait() - take completions, waiting for the first
 * @timeout_ns: how long at most, or NETDAM_FOREVER
 *
 * Spins shortly, then yields the CPU, then sleeps: on the interrupt where the device has one for this queue pair,
 * otherwise for 50 us to 1 ms at a time.
 *
 * Returns how many were taken, at least 1.
 * Errors: -ETIMEDOUT, -EINVAL (@count is 0), -ESTALE, -EIO as netdam_poll().
 */
NETDAM_API int netdam_wait(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count,
                           uint64_t timeout_ns);

/**
 * netdam_queue_fd() - a descriptor for poll(2): readable when a completion has arrived after netdam_queue_arm()
 *
 * Belongs to the queue pair; do not read or close it.
 *
 * Returns the descriptor. Errors: -ENOTSUP (this device or queue pair has no interrupt).
 */
NETDAM_API int netdam_queue_fd(const struct netdam_queue *queue);

/**
 * netdam_queue_arm() - ask for one interrupt at the next completion
 *
 * Returns 0: sleep in poll(2). Errors: -EAGAIN (completions are there already: poll them), -ENOTSUP, -ESTALE, -EIO.
 */
NETDAM_API int netdam_queue_arm(struct netdam_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
