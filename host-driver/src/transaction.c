/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions: lists of operations, put together in on-board memory. netdam/transaction.h is the contract. */
#include <errno.h>
#include <string.h>

#include "internal.h"

int netdam_transaction_begin(struct netdam_transaction *transaction, struct netdam_local list, uint32_t room,
                             uint64_t result_address)
{
    if (!list.region || list.address > list.region->bytes || room > list.region->bytes - list.address) {
        return -EINVAL;
    }
    memset(transaction, 0, sizeof(*transaction));
    transaction->request.opcode = NETDAM_OP_TRANSACTION;
    transaction->request.local = list;
    transaction->request.result_address = result_address;
    transaction->room = room;
    return 0;
}

/* Adds an entry with its data, if its kind has any. */
static int add(struct netdam_transaction *transaction, unsigned kind, struct netdam_remote at, const void *data,
               uint32_t bytes)
{
    struct netdam_request *request = &transaction->request;
    const struct netdam_transaction_entry entry = {
        .kind = (uint8_t)kind, .length = bytes, .key = at.key, .address = at.address};
    uint32_t padding = kind == NETDAM_TRANSACTION_FETCH ? 0 : (8 - bytes % 8) % 8;
    uint64_t needed = sizeof(entry) + (kind == NETDAM_TRANSACTION_FETCH ? 0 : (uint64_t)bytes + padding);
    uint8_t *place = (uint8_t *)netdam_region_pointer(request->local.region) + request->local.address + request->length;

    if (!at.peer || (transaction->entries != 0 && at.peer != request->remote.peer)) {
        return -EINVAL;
    }
    if (transaction->entries == NETDAM_TRANSACTION_ENTRIES_MAX || needed > transaction->room - request->length) {
        return -ENOSPC;
    }
    memcpy(place, &entry, sizeof(entry));
    if (needed != sizeof(entry)) {
        memcpy(place + sizeof(entry), data, bytes);
        memset(place + sizeof(entry) + bytes, 0, padding);
    }
    request->remote.peer = at.peer;
    request->length += (uint32_t)needed;
    return (int)transaction->entries++;
}

int netdam_transaction_compare(struct netdam_transaction *transaction, struct netdam_remote at, const void *data,
                               uint32_t bytes)
{
    return add(transaction, NETDAM_TRANSACTION_COMPARE, at, data, bytes);
}

int netdam_transaction_fetch(struct netdam_transaction *transaction, struct netdam_remote at, uint32_t bytes)
{
    int rc;

    if (bytes > NETDAM_TRANSACTION_FETCH_MAX - transaction->fetched) {
        return -EMSGSIZE;
    }
    rc = add(transaction, NETDAM_TRANSACTION_FETCH, at, NULL, bytes);
    transaction->fetched += rc >= 0 ? bytes : 0;
    return rc;
}

int netdam_transaction_write(struct netdam_transaction *transaction, struct netdam_remote at, const void *data,
                             uint32_t bytes)
{
    return add(transaction, NETDAM_TRANSACTION_WRITE, at, data, bytes);
}
