/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking operations: one request at a time, posted and waited for. */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* Moves completions of other requests out of the ring; 1 if `mine` was among them, 0, or -EIO. */
static int take_mine(struct netdam_queue *queue, uint32_t mine, struct netdam_completion *completion)
{
    struct netdam_completion other;
    uint32_t consumer = queue->cq_consumer;
    uint32_t slot;
    int rc;

    while ((rc = ndlib_take(queue, &other, &slot)) == 1) {
        if (slot == mine) {
            *completion = other;
            ndlib_slot_free(queue, slot);
            break;
        }
        ndlib_set_aside(queue, &other, slot);
    }
    if (consumer != queue->cq_consumer) {
        ndlib_release(queue);
    }
    return rc;
}

/* Posts, waiting for room. Nothing was sent unless 0 is returned. */
static int post_one(struct netdam_queue *queue, const struct netdam_request *request, uint64_t deadline_ns,
                    uint32_t *slot)
{
    struct ndlib_waiter waiter = {.deadline_ns = deadline_ns};
    int rc;

    for (;;) {
        struct netdam_completion none;

        rc = ndlib_post(queue, request, 1, NDLIB_SLOT_BLOCKING, slot);
        if (rc != -EAGAIN) {
            return rc == 1 ? 0 : rc;
        }
        /* Emptying the completion ring lets the device go on; slots come free only when the caller polls. */
        rc = take_mine(queue, UINT32_MAX, &none);
        if (rc < 0) {
            return rc;
        }
        if (queue->first_free == UINT32_MAX || ndlib_wait_step(queue, &waiter) != 0) {
            return -EAGAIN;
        }
    }
}

int ndlib_execute(struct netdam_queue *queue, const struct netdam_request *request, uint64_t deadline_ns,
                  struct netdam_completion *completion)
{
    struct ndlib_waiter waiter = {.deadline_ns = deadline_ns};
    uint32_t slot;
    int rc = post_one(queue, request, deadline_ns, &slot);

    if (rc != 0) {
        return rc;
    }
    for (;;) {
        /* Looked at before the ring: what a reset has flushed is there by then. */
        bool was_stale = ndlib_is_stale(queue->device, queue->epoch);

        rc = take_mine(queue, slot, completion);
        if (rc == 1) {
            return completion->status;
        }
        if (rc == 0 && was_stale) {
            rc = -ESTALE;
        }
        if (rc == 0) {
            rc = ndlib_wait_step(queue, &waiter);
        }
        if (rc != 0) {
            queue->slots[slot].state = NDLIB_SLOT_ABANDONED;
            return rc;
        }
    }
}

/* Executes `request` over `bytes`, in pieces that fit a descriptor and consist of whole 8-byte elements. */
static int execute_pieces(struct netdam_queue *queue, struct netdam_request *request, uint64_t bytes,
                          uint64_t timeout_ns)
{
    uint64_t deadline_ns = ndlib_deadline(timeout_ns);
    uint32_t piece_max = queue->length_max & ~UINT32_C(7);
    int rc;

    do {
        struct netdam_completion completion;

        request->length = bytes < piece_max ? (uint32_t)bytes : piece_max;
        rc = ndlib_execute(queue, request, deadline_ns, &completion);
        request->remote.address += request->length;
        request->local.address += request->length;
        bytes -= request->length;
    } while (rc == 0 && bytes > 0 && request->length > 0);
    return rc;
}

int netdam_write(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from, uint64_t bytes,
                 uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .remote = to, .local = from};

    return execute_pieces(queue, &request, bytes, timeout_ns);
}

int netdam_read(struct netdam_queue *queue, struct netdam_local to, struct netdam_remote from, uint64_t bytes,
                uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_READ, .remote = from, .local = to};

    return execute_pieces(queue, &request, bytes, timeout_ns);
}

int netdam_reduce(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote to,
                  struct netdam_local from, uint64_t bytes, uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_REDUCE, .remote = to, .local = from};

    if (operation > UINT8_MAX || type > UINT8_MAX) {
        return -EINVAL;
    }
    request.operation = (uint8_t)operation;
    request.type = (uint8_t)type;
    return execute_pieces(queue, &request, bytes, timeout_ns);
}

static int atomic_operation(struct netdam_queue *queue, struct netdam_request *request, unsigned type, uint64_t *old,
                            uint64_t timeout_ns)
{
    struct netdam_completion completion;
    int rc;

    if (type > UINT8_MAX) {
        return -EINVAL;
    }
    request->type = (uint8_t)type;
    request->length = netdam_type_bytes(type);
    rc = ndlib_execute(queue, request, ndlib_deadline(timeout_ns), &completion);
    if (rc == 0 && old) {
        *old = completion.result;
    }
    return rc;
}

int netdam_fetch_add(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value, uint64_t *old,
                     uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_FETCH_ADD, .remote = at, .operand = {value, 0}};

    return atomic_operation(queue, &request, type, old, timeout_ns);
}

int netdam_cas(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t compare, uint64_t swap,
               uint64_t *old, uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_CAS, .remote = at, .operand = {compare, swap}};

    return atomic_operation(queue, &request, type, old, timeout_ns);
}

int netdam_swap(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value, uint64_t *old,
                uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_SWAP, .remote = at, .operand = {value, 0}};

    return atomic_operation(queue, &request, type, old, timeout_ns);
}

int netdam_fetch_op(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote at,
                    uint64_t value, uint64_t *old, uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_FETCH_OP, .remote = at, .operand = {value, 0}};

    if (operation > UINT8_MAX) {
        return -EINVAL;
    }
    request.operation = (uint8_t)operation;
    return atomic_operation(queue, &request, type, old, timeout_ns);
}

int netdam_send(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from, uint32_t bytes,
                uint64_t timeout_ns)
{
    struct netdam_request request = {.opcode = NETDAM_OP_SEND, .remote = to, .local = from, .length = bytes};
    struct netdam_completion completion;

    return ndlib_execute(queue, &request, ndlib_deadline(timeout_ns), &completion);
}

/* Statuses that an operation of the list is to blame for. */
static bool names_operation(int status)
{
    return status == NETDAM_STATUS_COMPARE_FAILED || status == NETDAM_STATUS_BAD_KEY ||
           status == NETDAM_STATUS_BAD_RANGE || status == NETDAM_STATUS_NO_PERMISSION;
}

int netdam_transact(struct netdam_queue *queue, const struct netdam_transaction *transaction, unsigned *failed,
                    uint64_t timeout_ns)
{
    struct netdam_completion completion;
    int rc = ndlib_execute(queue, &transaction->request, ndlib_deadline(timeout_ns), &completion);

    if (failed && names_operation(rc)) {
        *failed = (unsigned)completion.result;
    }
    return rc;
}

int netdam_echo(struct netdam_queue *queue, struct netdam_peer *peer, struct netdam_local buffer, uint32_t bytes,
                uint64_t timeout_ns)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_ECHO, .remote = {.peer = peer}, .local = buffer, .length = bytes};
    struct netdam_completion completion;

    return ndlib_execute(queue, &request, ndlib_deadline(timeout_ns), &completion);
}
