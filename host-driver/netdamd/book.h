/* SPDX-License-Identifier: BSD-3-Clause */
/* The broker's book: what each client owns of the device, what it may still have, and how all of it is taken back. */
#ifndef NDBROKER_BOOK_H
#define NDBROKER_BOOK_H

#include "internal.h"

/* Pieces of memory of one client at most, so that searching them stays cheap. */
#define NDBROKER_PIECES_MAX 4096u

struct ndbroker_piece;
struct ndbroker_book;

/* For each client. */
struct ndbroker_limits {
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint64_t memory_bytes;
};

/* What one client owns. Zero-initialize; `id` is not 0 and no other client's. */
struct ndbroker_owner {
    uint64_t id;
    bool is_privileged; /* may set what concerns all clients */
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint32_t vectors;
    uint64_t memory_bytes;
    struct ndbroker_piece *pieces;
    uint32_t pieces_count;
    uint32_t pieces_room;
    uint8_t vector_of[NETDAM_QUEUE_PAIRS_MAX]; /* by its own count: the device's vector + 1, or 0 */
};

/* 0, -ENOMEM, or -EIO (the device claims impossible numbers). The device stays the caller's. */
int ndbroker_book_open(struct netdam_device *device, const struct ndbroker_limits *limits, struct ndbroker_book **book);
void ndbroker_book_close(struct ndbroker_book *book);

/*
 * Executes an administration command for a client, as the device would if it belonged to the client alone: what others
 * own does not exist. Returns enum netdam_admin_status, or UINT32_MAX if the device is gone; results are zeros unless
 * OK.
 */
uint32_t ndbroker_admin(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t command,
                        const uint64_t arguments[NETDAM_ADMIN_ARGS], uint64_t results[NETDAM_ADMIN_RESULTS]);

/* 0, -EINVAL, -ENOSPC (the device is full, or the client's share is) or -ENOMEM. */
int ndbroker_take(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t bytes, uint64_t alignment,
                  uint64_t *offset);

/* 0, -EINVAL (the client has no piece there) or -EBUSY (a region or ring of the client lies in it). */
int ndbroker_give(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t offset);

/* The eventfd of the vector that the client calls `vector`: its own already, or a free one. Else -errno. */
int ndbroker_vector(struct ndbroker_book *book, struct ndbroker_owner *owner, uint64_t vector);

/* Rings, if the client owns that queue pair. */
void ndbroker_doorbell(struct ndbroker_book *book, const struct ndbroker_owner *owner, uint64_t index);

/* Reads a register that any client may read; all ones for any other access. */
uint64_t ndbroker_read(struct ndbroker_book *book, uint64_t offset, uint64_t bytes);

/*
 * Takes everything back: queue pairs first, for what is outstanding uses the rest, then regions and peers, then memory
 * and vectors. False if the device did not let go of something; its memory is then never used again.
 */
bool ndbroker_release(struct ndbroker_book *book, struct ndbroker_owner *owner);

#endif
