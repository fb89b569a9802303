/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions: the list of entries that is their payload, on the wire as in on-board memory. */
#ifndef NETDAM_TRANSACTION_H
#define NETDAM_TRANSACTION_H

#include "netdam/types.h"

/*
 * The payload of a TRANSACTION is a list of entries, all little-endian: each a struct netdam_transaction_entry, which
 * for COMPARE and WRITE is followed by `length` bytes of data and zeros up to a multiple of 8 bytes. It is one packet,
 * never split; the request's length is its payload_length; its key and address are 0.
 *
 * The node looks at all entries before it does anything:
 *
 *   form, of the whole list: BAD_LENGTH, which leaves no trace; the answer's length is 0
 *     no entry, more than NETDAM_TRANSACTION_ENTRIES_MAX, an entry or its data beyond the payload's end, an undefined
 *     kind, reserved bytes or padding not 0, more than NETDAM_TRANSACTION_FETCH_MAX bytes to fetch in all
 *   key, range and permission, entry by entry: BAD_KEY, BAD_RANGE, NO_PERMISSION
 *   each COMPARE, entry by entry, against memory as it was before: COMPARE_FAILED
 *
 * The latter refusals consume the number; the answer's length is the index of the entry that failed. Then it takes all
 * FETCHes, which see memory as it was before, and makes all WRITEs in the order of the list, so that of two that
 * overlap the later one wins. No other operation of the node comes in between. The answer's payload is what was
 * fetched, in the order of the list, without padding; its length is the bytes of that.
 *
 * A request that comes again is answered with the same bytes: the node keeps them until the lane's floor passes the
 * number. Where it has no room for that it answers BUSY, and has done nothing. Addresses need no alignment; naturally
 * aligned pieces of up to 8 bytes are read and written whole.
 */
struct netdam_transaction_entry {
    uint8_t kind;        /* enum netdam_transaction_kind */
    uint8_t reserved[3]; /* 0 */
    uint32_t length;     /* bytes of memory concerned */
    uint64_t key;        /* region key */
    uint64_t address;    /* bytes from the region's start */
};

/* X(name, value, permission, data, text): permission of the region; data: 1 if the entry is followed by it. */
#define NETDAM_TRANSACTION_KIND_LIST(X)                                                                                \
    X(COMPARE, 1, REMOTE_READ, 1, "nothing is done unless memory equals the data")                                     \
    X(FETCH, 2, REMOTE_READ, 0, "return memory as it was before")                                                      \
    X(WRITE, 3, REMOTE_WRITE, 1, "store the data")

#define NETDAM_TRANSACTION_KIND_ENUM(name, value, permission, data, text) NETDAM_TRANSACTION_##name = (value),
enum netdam_transaction_kind { NETDAM_TRANSACTION_KIND_LIST(NETDAM_TRANSACTION_KIND_ENUM) };
#undef NETDAM_TRANSACTION_KIND_ENUM

#define NETDAM_TRANSACTION_ENTRIES_MAX 16

/* Bytes that all FETCHes of a transaction return together. */
#define NETDAM_TRANSACTION_FETCH_MAX 128

NETDAM_ASSERT_SIZE(struct netdam_transaction_entry, 24);
NETDAM_ASSERT_OFFSET(struct netdam_transaction_entry, length, 4);
NETDAM_ASSERT_OFFSET(struct netdam_transaction_entry, key, 8);
NETDAM_ASSERT_OFFSET(struct netdam_transaction_entry, address, 16);

/* Bytes that an entry's data takes in the list; `length` is at most UINT32_MAX - 7. */
static inline uint32_t netdam_transaction_data_bytes(unsigned kind, uint32_t length)
{
    return kind == NETDAM_TRANSACTION_FETCH ? 0 : (length + 7) & ~UINT32_C(7);
}

#endif
