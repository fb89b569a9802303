/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a memif link: Ethernet frames to and from another process through shared memory, by the open memif
 * protocol (version 2.0), with DPDK's or VPP's endpoint or another of these at the other end.
 *
 * An endpoint belongs to one thread at a time and starts none. Nothing here blocks, whatever the peer does, and nothing
 * a peer does is worse than a link that goes down (docs/memif.md, "What a peer can do").
 *
 * How to use it, in a loop:
 *
 *     ndsim_memif_process(memif);                          control channel; cheap, but a system call: on wake-up, and
 *                                                          now and then while busy
 *     ndsim_memif_receive(memif, 64, deliver, opaque);     frames that have come
 *     while (... (frame = ndsim_memif_transmit_begin(memif, bytes)) != NULL) {
 *         ... fill frame ...
 *         ndsim_memif_transmit_end(memif, bytes);
 *     }
 *     ndsim_memif_flush(memif);                            now the peer sees them
 *     if (nothing has happened for a while) {
 *         if (ndsim_memif_arm(memif)) {
 *             poll() on ndsim_memif_fd(memif); with a transmission pending, for NDSIM_MEMIF_RETRY_NS at most
 *         }
 *         ndsim_memif_disarm(memif);
 *     }
 */
#ifndef NDSIM_MEMIF_H
#define NDSIM_MEMIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The protocol calls them master and slave. The server owns the socket's path, the client the shared memory. */
enum ndsim_memif_role {
    NDSIM_MEMIF_SERVER = 0,
    NDSIM_MEMIF_CLIENT = 1,
};

/* Of a message to the log. */
enum ndsim_memif_level {
    NDSIM_MEMIF_LOG_ERROR = 0, /* of this machine: out of memory, no permission */
    NDSIM_MEMIF_LOG_PEER = 1,  /* the peer broke the protocol, or refused */
    NDSIM_MEMIF_LOG_INFO = 2,  /* link up, link down */
};

#define NDSIM_MEMIF_SECRET_BYTES 24    /* longest secret */
#define NDSIM_MEMIF_SLOTS_MAX    16384 /* slots of a ring */
#define NDSIM_MEMIF_FRAME_MAX    16384 /* longest frame of any configuration */

/* Defaults: frames of MTU 9216 with Ethernet header and VLAN tag, rounded up. */
#define NDSIM_MEMIF_SLOTS_DEFAULT 256
#define NDSIM_MEMIF_FRAME_DEFAULT 9280

/* The protocol does not tell a sender when there is room again: it looks again after this. */
#define NDSIM_MEMIF_RETRY_NS UINT64_C(500000)

/* A peer that leaves a full ring full for so long has stalled: until it takes something, frames to it are lost. */
#define NDSIM_MEMIF_STALL_NS UINT64_C(100000000)

struct ndsim_memif_config {
    const char *path; /* of the unix socket */
    enum ndsim_memif_role role;
    uint32_t id;           /* both ends name the same; a socket of DPDK or VPP may serve many */
    const char *secret;    /* NULL or "": none. A server with one refuses clients without it. */
    const char *name;      /* what the peer is told; NULL: "netdam" */
    uint32_t slots;        /* a client's ring slots, a power of two from 2 to NDSIM_MEMIF_SLOTS_MAX; 0: the default. The
                           server may ask for fewer. */
    uint32_t frame_bytes;  /* longest frame sent or received, from 64; 0: the default */
    uint32_t buffer_bytes; /* a client's buffers, one per slot, from 64 to 65535; 0: as frame_bytes. Longer frames take
                              several. */
    /*
     * Frames are built and delivered where they lie in memory shared with the peer, without a copy: the peer may read a
     * frame before it is whole, and change each byte of it between any two looks at it. False: in private memory.
     */
    bool shared_frames;
    void *log_opaque;
    void (*log)(void *opaque, enum ndsim_memif_level level, const char *line); /* may be NULL */
};

/* Whole numbers since open. Bytes are those of frames. */
struct ndsim_memif_statistics {
    uint64_t transmit_frames;
    uint64_t transmit_bytes;
    uint64_t transmit_full;     /* transmit_begin found no room */
    uint64_t transmit_down;     /* lost: the link was down, or went down, or was reset before flush */
    uint64_t transmit_stalled;  /* lost: the peer had taken nothing for NDSIM_MEMIF_STALL_NS */
    uint64_t transmit_too_long; /* lost: longer than all buffers of the peer together, or than 64 of them */
    uint64_t transmit_kicks;    /* wake-ups sent to the peer */
    uint64_t receive_frames;
    uint64_t receive_bytes;
    uint64_t receive_too_long;  /* dropped: longer than frame_bytes */
    uint64_t receive_scattered; /* dropped: in more than 64 buffers */
    uint64_t receive_empty;     /* dropped: no bytes */
    uint64_t receive_reset;     /* dropped by ndsim_memif_reset */
    uint64_t connects;          /* the link came up */
    uint64_t disconnects;       /* and went down */
    uint64_t refusals;          /* peers refused before the link was up */
    uint64_t protocol_errors;   /* links and peers given up because the peer broke the protocol */
};

struct ndsim_memif;

/*
 * Opens an endpoint; the link comes up later, by ndsim_memif_process. A server binds `path`, and takes the place of a
 * socket there that nobody listens to any more; a client tries again and again until there is a server. Whichever end
 * goes away, the other waits for the next.
 * Returns 0 and *memif, or -EINVAL (no path, or one that is too long for a unix socket; secret, slots, frame_bytes or
 * buffer_bytes out of range), -EADDRINUSE (another server listens there, or it is no socket), -ENOMEM, or what
 * epoll_create1(2), timerfd_create(2), socket(2), bind(2) or listen(2) say, negated.
 */
int ndsim_memif_open(const struct ndsim_memif_config *config, struct ndsim_memif **memif);

/* Tells the peer, if there is one, and removes a server's path. NULL is ignored. */
void ndsim_memif_close(struct ndsim_memif *memif);

/* Lets go of everything without anybody noticing: for a child after fork, which may call nothing else. */
void ndsim_memif_abandon(struct ndsim_memif *memif);

/*
 * One file descriptor to sleep on with poll(2) for POLLIN: socket, connections, time to connect again, and, while armed,
 * frames that come. Owned by the endpoint, the same from open to close.
 */
int ndsim_memif_fd(const struct ndsim_memif *memif);

/*
 * Everything that concerns the control channel: accepts, connects, answers, gives up. To be called whenever the file
 * descriptor is readable, which this ends, and at least now and then by who never sleeps. Frames handed out by
 * transmit_begin are lost if the link goes down or comes up in it: call it between transmit_end and transmit_begin.
 */
void ndsim_memif_process(struct ndsim_memif *memif);

/* May change with each call of any function here. */
bool ndsim_memif_link_up(const struct ndsim_memif *memif);

/*
 * Room for a frame of `bytes`, or NULL while the ring is full, or if `bytes` is 0 or above frame_bytes. While the link
 * is down there is always room, for frames that are lost, as on any wire; likewise while the peer is stalled. With
 * shared_frames the peer may read and change what is there. Frames are sent in order.
 */
uint8_t *ndsim_memif_transmit_begin(struct ndsim_memif *memif, size_t bytes);

/* The frame is complete and waits for flush; `bytes` is at most what transmit_begin was asked for. 0 takes it back. */
void ndsim_memif_transmit_end(struct ndsim_memif *memif, size_t bytes);

/* Makes all complete frames visible to the peer and wakes it up if it wants that; does nothing if there are none. */
void ndsim_memif_flush(struct ndsim_memif *memif);

/* The last transmit_begin found a full ring. Not while the link is down. */
bool ndsim_memif_blocked(const struct ndsim_memif *memif);

/* `frame` is valid during the call. It may transmit, but call nothing else here. */
typedef void (*ndsim_memif_deliver)(void *opaque, const uint8_t *frame, size_t bytes);

/*
 * Delivers up to `max` frames and gives their buffers back to the peer. Returns how many were taken off the ring, those
 * that were dropped included: 0 means that there is nothing.
 */
unsigned ndsim_memif_receive(struct ndsim_memif *memif, unsigned max, ndsim_memif_deliver deliver, void *opaque);

/*
 * Asks the peer for wake-ups and looks once more: true if the caller may sleep; false if a frame waits, or if, being
 * blocked, there is room again. disarm ends it and must follow either way.
 */
bool ndsim_memif_arm(struct ndsim_memif *memif);
void ndsim_memif_disarm(struct ndsim_memif *memif);

/* Drops frames that wait to be delivered and those not flushed yet. The link stays as it is. */
void ndsim_memif_reset(struct ndsim_memif *memif);

void ndsim_memif_get_statistics(const struct ndsim_memif *memif, struct ndsim_memif_statistics *statistics);

#endif
