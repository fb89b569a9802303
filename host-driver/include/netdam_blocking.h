/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on another node's memory that wait for their end. */
#ifndef LIBNETDAM_BLOCKING_H
#define LIBNETDAM_BLOCKING_H

#include "netdam_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Blocking operations: post one request, wait for it, return its status. Completions of other requests that arrive
 * meanwhile are kept for netdam_poll().
 *
 * All return 0 if the request was applied exactly once, a positive enum netdam_status if it completed otherwise, or
 * -ETIMEDOUT (no completion within @timeout_ns: the request stays outstanding, may still be applied, and may still use
 * local memory until the peer is closed, the queue pair destroyed or the device reset; its completion is thrown away),
 * -EAGAIN (the ring stayed full, or too many completions wait to be polled: nothing was sent), -EINVAL, -ESTALE, -EIO
 * as netdam_post().
 *
 * The device gives up by itself after bounded retries, with NETDAM_STATUS_TIMEOUT: @timeout_ns may be NETDAM_FOREVER.
 */

/**
 * netdam_write() - copy @bytes from @from to @to
 *
 * More than length_max is sent as several requests one after the other; a failure then leaves those before it applied.
 */
NETDAM_API int netdam_write(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from,
                            uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_read() - copy @bytes from @from to @to; split as netdam_write()
 */
NETDAM_API int netdam_read(struct netdam_queue *queue, struct netdam_local to, struct netdam_remote from,
                           uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_reduce() - memory at @to = memory at @to @operation memory at @from, element by element
 * @operation: enum netdam_alu; @type: enum netdam_type
 * @bytes: a multiple of the element's size; split as netdam_write()
 */
NETDAM_API int netdam_reduce(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote to,
                             struct netdam_local from, uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_fetch_add() - add @value to the element at @at
 * @type: an integer type; sums wrap
 * @old: what was there before, zero-extended; or NULL
 */
NETDAM_API int netdam_fetch_add(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value,
                                uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_cas() - store @swap in the element at @at if it equals @compare
 * @type: an integer type
 * @old: what was there before, zero-extended; the store took place if it equals @compare. Or NULL
 */
NETDAM_API int netdam_cas(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t compare,
                          uint64_t swap, uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_swap() - store @value in the element at @at
 * @type: an integer type
 * @old: what was there before, zero-extended; or NULL
 */
NETDAM_API int netdam_swap(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value,
                           uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_fetch_op() - element at @at = element at @at @operation @value
 * @operation: enum netdam_alu; @type: enum netdam_type
 * @value: the bits of one element, zero-extended
 * @old: what was there before, likewise; or NULL
 */
NETDAM_API int netdam_fetch_op(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote at,
                               uint64_t value, uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_send() - put @bytes from @from into the next receive buffer of a queue pair
 * @to: @key is that queue pair's netdam_queue_receive_key(), @address 0
 * @bytes: at most payload_max: a message is one packet
 *
 * NETDAM_STATUS_NOT_READY: there was no buffer, nothing has changed; try again later.
 */
NETDAM_API int netdam_send(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from,
                           uint32_t bytes, uint64_t timeout_ns);

/**
 * netdam_echo() - have a node send @bytes from @buffer back into @buffer
 * @bytes: at most length_max; more than payload_max travels as several packets
 */
NETDAM_API int netdam_echo(struct netdam_queue *queue, struct netdam_peer *peer, struct netdam_local buffer,
                           uint32_t bytes, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
