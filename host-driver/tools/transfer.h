/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving any amount of data between a stream and a node's memory, through a small staging buffer on board. */
#ifndef NETDAM_TOOLS_TRANSFER_H
#define NETDAM_TOOLS_TRANSFER_H

#include "netdam.h"

/* Requests under way at once, at most. */
#define TRANSFER_DEPTH_MAX 256u

/*
 * Where data comes from or goes to. Both functions are called in the order of the stream and return an exit code,
 * having printed what is wrong.
 */
struct transfer_ends {
    void *opaque;
    /*
     * Before each request: says how many bytes it has, at most `bytes_max`; 0 ends the transfer. What is to be sent is
     * stored in `buffer`.
     */
    int (*next)(void *opaque, unsigned slot, uint8_t *buffer, size_t bytes_max, size_t *bytes);
    /* After each request; NULL if that does not matter. What was read is in `buffer`. */
    int (*done)(void *opaque, unsigned slot, const uint8_t *buffer, size_t bytes, uint64_t offset);
};

struct transfer {
    struct netdam_queue *queue;
    struct netdam_remote remote; /* where the stream's first byte is */
    struct netdam_region *staging;
    size_t chunk_bytes; /* of one request; a multiple of 8 */
    unsigned depth;     /* requests under way at once; the staging region has room for so many chunks */
    unsigned opcode;
    unsigned operation;
    unsigned type;
    uint64_t bytes_done; /* result: bytes whose requests completed with OK, in order */
};

/* Returns an exit code. Nothing is under way when it returns, unless the device fell silent. */
int transfer_run(struct transfer *transfer, const struct transfer_ends *ends);

#endif
