/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the memif endpoint know of each other: memory that a peer passed (memif_memory.c), the rings in it
 * (memif_rings.c), the handshake of a connection (memif_control.c), and the endpoint (memif.c).
 */
#ifndef NDSIM_MEMIF_LINK_H
#define NDSIM_MEMIF_LINK_H

#include "memif.h"
#include "memif_wire.h"

#define MEMIF_REGIONS_MAX 16

/* Of all regions of a peer together: whoever touches a page first is charged for it, and that may be us. */
#define MEMIF_REGION_BYTES_MAX (UINT64_C(1) << 30)

/* A frame is spread over at most this many buffers, either way: each may cost a system call. */
#define MEMIF_PIECES_MAX 64

/* Memory of the client. Not sealed against shrinking it is never mapped, but read and written by system calls. */
struct memif_region {
    uint8_t *base; /* NULL: not mapped */
    uint64_t bytes;
    int fd; /* -1 if mapped and no longer needed */
};

/* One direction. Indices run freely; nothing in shared memory is believed twice. */
struct memif_queue {
    struct memif_ring *ring;
    uint16_t slots;
    uint16_t next;      /* descriptor that is filled or taken next */
    uint16_t published; /* transmission: what of it the peer has been told */
    uint16_t limit;     /* first descriptor that is not ours to fill or take, as far as is known */
    int event_fd;
};

/* Where a part of an outgoing frame goes. */
struct memif_piece {
    uint32_t bytes; /* capacity */
    uint16_t region;
    uint32_t offset;
};

/* Why ndsim_memif_link_* gave up; NULL: it did not. Told to the peer. */
typedef const char *memif_reason;

/* A pair of rings in the memory of one peer. */
struct memif_link {
    bool client;
    bool shared_frames;
    uint32_t frame_bytes;
    uint32_t buffer_bytes; /* of a client: per slot, */
    uint32_t stride;       /* this far apart, */
    uint64_t buffers;      /* from this offset on */
    struct memif_region regions[MEMIF_REGIONS_MAX];
    unsigned region_count;
    struct memif_queue transmit;
    struct memif_queue receive;

    uint8_t *transmit_private; /* frame_bytes each, the endpoint's */
    uint8_t *receive_private;

    /* Between transmit_begin and transmit_end. */
    struct memif_piece pieces[MEMIF_PIECES_MAX];
    unsigned piece_count;
    bool direct;     /* the frame is built in pieces[0] */
    uint16_t needed; /* the last MEMIF_ROOM_FULL wanted at least so many buffers */

    unsigned pending_frames; /* complete, not published */
    uint64_t pending_bytes;
    memif_reason broken; /* the peer's fault; nothing is touched any more */
    struct ndsim_memif_statistics *statistics;
};

/* How transmit_begin went. */
enum memif_room {
    MEMIF_ROOM_OK,
    MEMIF_ROOM_FULL,
    MEMIF_ROOM_NEVER, /* the peer's buffers, or the ring, cannot hold this frame */
    MEMIF_ROOM_BROKEN,
};

/* memif_memory.c */

uint64_t ndsim_memif_memory_bytes(uint32_t slots, uint32_t buffer_bytes);
/*
 * The client's memory: rings and buffers of both directions, sealed. Returns 0 or a negated errno; on success
 * regions[0] and both queues are set, but for their eventfds.
 */
int ndsim_memif_memory_create(struct memif_link *link, uint32_t slots);
/* Takes `fd` over. NULL, or why this memory is refused; the descriptor is closed then. */
memif_reason ndsim_memif_memory_add(struct memif_link *link, uint64_t bytes, int fd);
/* Releases regions and eventfds. */
void ndsim_memif_memory_release(struct memif_link *link);
/* False if it is something else, or /proc does not tell. */
bool ndsim_memif_is_eventfd(int fd);
/* Of memory that is not mapped. False if not all of it could be read or written. */
bool ndsim_memif_memory_read(const struct memif_region *region, uint32_t offset, uint8_t *bytes, size_t count);
bool ndsim_memif_memory_write(const struct memif_region *region, uint32_t offset, const uint8_t *bytes, size_t count);

/* memif_kick.c: adds to eventfds that somebody else has too, without ever blocking. */
struct memif_kicker {
    unsigned long context; /* of asynchronous I/O; 0: none */
    int file;
};
void ndsim_memif_kicker_open(struct memif_kicker *kicker);
void ndsim_memif_kicker_close(struct memif_kicker *kicker, bool abandon);
void ndsim_memif_kick(struct memif_kicker *kicker, int event_fd);

/* memif_rings.c. All may set link->broken. */

/* Places a ring found or made at `ring` into service: `slots` is a power of two. NULL, or why not. */
memif_reason ndsim_memif_link_start(struct memif_link *link);
enum memif_room ndsim_memif_link_begin(struct memif_link *link, size_t bytes, uint8_t **frame);
void ndsim_memif_link_end(struct memif_link *link, size_t bytes);
/* Returns true if there was something, and the peer wants to be woken. */
bool ndsim_memif_link_flush(struct memif_link *link);
bool ndsim_memif_link_has_room(struct memif_link *link);
/* *kick: the peer could be waiting for the room that this made. */
unsigned ndsim_memif_link_receive(struct memif_link *link, unsigned max, ndsim_memif_deliver deliver, void *opaque,
                                  bool *kick);
void ndsim_memif_link_mask(struct memif_link *link, bool masked);
/* After mask(false): whether a frame waits. */
bool ndsim_memif_link_waits(struct memif_link *link);
void ndsim_memif_link_drop(struct memif_link *link);

/* memif_control.c */

enum memif_state {
    MEMIF_STATE_FREE,
    MEMIF_STATE_HELLO, /* server: HELLO sent, INIT awaited; client: HELLO awaited */
    MEMIF_STATE_SETUP, /* server: identified, collects regions and rings; client: sends them, one per ACK */
    MEMIF_STATE_UP,
    MEMIF_STATE_FAILED, /* to be taken down */
};

struct memif_connection {
    int fd;
    enum memif_state state;
    unsigned step;                   /* a client's: which message the next ACK answers */
    uint64_t deadline_ns;            /* until it is up */
    char reason[MEMIF_REASON_BYTES]; /* FAILED: why; empty: the peer went away */
    bool reason_is_peers;            /* ...and said so itself */
    struct memif_link link;
};

/* What memif_control.c has to know of the endpoint. */
struct memif_identity {
    bool client;
    uint32_t id;
    uint32_t slots;
    char name[MEMIF_NAME_BYTES];
    char secret[MEMIF_SECRET_BYTES + 1];
};

/* A server's first message. */
void ndsim_memif_control_greet(struct memif_connection *connection, const struct memif_identity *identity);
/*
 * Takes one message. Returns false if there is none. `vacant` tells whether a server's client may become the peer. The
 * state afterwards tells what has come of it.
 */
bool ndsim_memif_control_receive(struct memif_connection *connection, const struct memif_identity *identity,
                                 bool (*vacant)(void *opaque), void *opaque);
/* One message and what came with it, all of whose descriptors are taken over. */
void ndsim_memif_control_message(struct memif_connection *connection, const struct memif_identity *identity,
                                 const uint8_t message[MEMIF_MESSAGE_BYTES], int *fds, unsigned fd_count,
                                 bool (*vacant)(void *opaque), void *opaque);
void ndsim_memif_control_disconnect(struct memif_connection *connection, const char *reason);

#endif
