/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions: several operations on one node, all or nothing. */
#ifndef LIBNETDAM_TRANSACTION_H
#define LIBNETDAM_TRANSACTION_H

#include "netdam_queue.h"

#include <netdam/transaction.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct netdam_transaction - up to NETDAM_TRANSACTION_ENTRIES_MAX operations on one node, all or nothing
 * @request: what netdam_post() takes when the list is complete. @user_data, @flags (FENCE, ORDERED) and nothing else
 *           may be set by the application
 * @room: bytes of on-board memory for the list
 * @entries: operations so far; @fetched: bytes that they return so far
 *
 * netdam_transaction_begin() fills it, netdam_transaction_compare(), netdam_transaction_fetch() and
 * netdam_transaction_write() add operations. However they are mixed, the node first makes all compares, then all
 * fetches, which like the compares see memory as it was before, then all writes in the order in which they were added;
 * and no other operation of the node comes in between. If a compare fails, or a key, range or permission is not right,
 * nothing is done, and @result of the completion is the index of the operation, counted from 0. Otherwise its @length
 * is the number of bytes fetched.
 *
 * It may be posted more than once, but not again before it has completed, as the list is in use until then.
 */
struct netdam_transaction {
    struct netdam_request request;
    uint32_t room;
    uint32_t entries;
    uint32_t fetched;
    uint32_t reserved;
};

/**
 * netdam_transaction_begin() - start a list without operations
 * @list: where the list is put together, anywhere in a region with NETDAM_PERMISSION_LOCAL_READ; in use from here until
 *        the completion
 * @room: bytes there: for each operation 24, and those of its data rounded up to a multiple of 8. The list is one
 *        packet: more than payload_max bytes of it complete as NETDAM_STATUS_LOCAL_DESCRIPTOR
 * @result_address: where in the same region what is fetched is stored, one behind the other in the order of the list;
 *                  it then needs NETDAM_PERMISSION_LOCAL_WRITE, too. Not looked at if nothing is fetched
 *
 * Errors: -EINVAL (no region, or @list with @room lies partly outside it).
 */
NETDAM_API int netdam_transaction_begin(struct netdam_transaction *transaction, struct netdam_local list, uint32_t room,
                                        uint64_t result_address);

/**
 * netdam_transaction_compare() - do nothing at all unless memory at @at equals @data
 * @at: peer, key and address; all operations of a transaction name the same peer. Any alignment
 * @data: @bytes, copied
 *
 * Returns the operation's index. Errors, when nothing was added: -EINVAL (another peer than before, or none), -ENOSPC (no
 * room, or too many operations).
 */
NETDAM_API int netdam_transaction_compare(struct netdam_transaction *transaction, struct netdam_remote at,
                                          const void *data, uint32_t bytes);

/**
 * netdam_transaction_fetch() - return @bytes of memory at @at as they were before
 *
 * They are stored behind those of earlier fetches: @fetched bytes, as it was before the call, from the result address.
 *
 * Returns and errors as netdam_transaction_compare(); -EMSGSIZE (more than NETDAM_TRANSACTION_FETCH_MAX in all).
 */
NETDAM_API int netdam_transaction_fetch(struct netdam_transaction *transaction, struct netdam_remote at,
                                        uint32_t bytes);

/**
 * netdam_transaction_write() - store @data in memory at @at if all compares hold
 *
 * Returns and errors as netdam_transaction_compare().
 */
NETDAM_API int netdam_transaction_write(struct netdam_transaction *transaction, struct netdam_remote at,
                                        const void *data, uint32_t bytes);

/**
 * netdam_transact() - apply a transaction, all of it or nothing
 * @transaction: complete; may be used again if the result is not -ETIMEDOUT
 * @failed: gets the index of the operation because of which nothing was done, if the result is
 *          NETDAM_STATUS_COMPARE_FAILED, BAD_KEY, BAD_RANGE or NO_PERMISSION; or NULL
 */
NETDAM_API int netdam_transact(struct netdam_queue *queue, const struct netdam_transaction *transaction,
                               unsigned *failed, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
