/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soft device: a NetDAM card without a host, as a library. Firmware, memory and an ordinary UDP socket, or an end of
 * an Ethernet wire or of a memif link.
 */
#ifndef NETDAM_SOFT_H
#define NETDAM_SOFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netdam_soft;

/* IPv4 addresses that share their first `prefix` bits. */
struct netdam_soft_network {
    uint8_t address[4];
    uint8_t prefix;
};

#define NETDAM_SOFT_NETWORKS 3

/*
 * X(field, text): how much the firmware keeps, each a field of struct netdam_fw_config; 0 is the firmware's default.
 */
#define NETDAM_SOFT_LIMIT_LIST(X)                                                                                      \
    X(regions, "regions")                                                                                              \
    X(peers, "nodes that requests go to")                                                                              \
    X(neighbours, "link-layer addresses")                                                                              \
    X(operations, "own requests under way at once")                                                                    \
    X(lanes, "lanes of requesters remembered")                                                                         \
    X(lane_windows, "of these, lanes with something unfinished")                                                       \
    X(replies, "what transactions fetched, kept for repetitions")                                                      \
    X(chains, "own chains under way at once")                                                                          \
    X(collectives, "own collectives under way at once")                                                                \
    X(tenants, "tenants")                                                                                              \
    X(tenant_senders, "senders of tenants' frames remembered against replays")

struct netdam_soft_limits {
#define NETDAM_SOFT_LIMIT_FIELD(field, text) uint32_t field;
    NETDAM_SOFT_LIMIT_LIST(NETDAM_SOFT_LIMIT_FIELD)
#undef NETDAM_SOFT_LIMIT_FIELD
};

struct netdam_soft_config {
    const char *listen;    /* "ADDR:PORT", IPv4; port 0: any free one; not 0.0.0.0, for a node has one name */
    uint64_t memory_bytes; /* on-board memory; a multiple of 4096 */
    uint32_t mtu;          /* 0: 1500 */
    uint32_t queue_pairs;  /* 0: the firmware's default */
    bool no_payload_crc;
    bool no_merge; /* every descriptor has packets of its own */
    void *log_opaque;
    void (*log)(void *opaque, int level, const char *line); /* may be NULL; level as enum netdam_fw_log_level */
    /*
     * Every NetDAM datagram sent (outgoing) and taken, from the NetDAM header on. May be NULL. It runs in the thread
     * that runs the firmware, which waits for it; it must not access registers. The opaque pointer is the log's.
     */
    void (*tap)(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes);
    uint32_t retries;        /* repetitions before a packet is given up; 0: the firmware's default */
    uint64_t rto_initial_ns; /* retransmission time-out: before the first measurement, */
    uint64_t rto_min_ns;     /* at least, */
    uint64_t rto_max_ns;     /* and at most; 0: the firmware's default */
    /*
     * Instead of the UDP socket an Ethernet wire of unix datagrams, one frame each, as QEMU's netdev dgram has them: the
     * path to bind, and that of the other end. `listen` is then the node's name on that wire, its port not 0.
     */
    const char *wire_path;
    const char *wire_peer_path;
    uint8_t wire_prefix; /* bits of the wire's network, or the link's; 0: 24 */
    uint8_t wire_mac[6]; /* there; zeros: from the address */
    /*
     * Or a memif link: the path of its unix socket, at which a server listens and to which a client connects, again and
     * again until there is one. `listen` is the node's name there, as on a wire.
     */
    const char *memif_path;
    bool memif_server;
    uint32_t memif_id;
    const char *memif_secret; /* at most 24 bytes; NULL: none */
    uint32_t paths; /* source ports that requests vary on wire or link; 0: the firmware's default. A socket has one */
    /* Where chains are passed on to, besides this machine (127.0.0.0/8) or the /24 of the own address. */
    struct netdam_soft_network forward[NETDAM_SOFT_NETWORKS];
    unsigned forward_count;
    struct netdam_soft_limits limits;
};

/*
 * Opens the socket, starts the firmware and a thread that runs it. All signals are blocked in that thread.
 * Returns 0 and *soft, or -EINVAL (listen, memory_bytes, mtu, queue_pairs, a limit, paths, or what concerns wire or memif
 * impossible; the log is told which field it was if the firmware refuses it), -EADDRINUSE, -EADDRNOTAVAIL, -ENOMEM, or
 * what socket(2), bind(2), memfd_create(2) or pthread_create(3) say, negated.
 */
int netdam_soft_open(const struct netdam_soft_config *config, struct netdam_soft **soft);

/*
 * Flushes everything outstanding, ends the thread, closes the socket, releases the memory. In a child after fork, where
 * the thread does not exist, it only releases what the child holds; no other function may be called there.
 */
void netdam_soft_close(struct netdam_soft *soft);

/* The port that was bound, in host byte order. */
uint16_t netdam_soft_port(const struct netdam_soft *soft);

/* On-board memory, shared with the firmware; valid until close. */
uint8_t *netdam_soft_memory(struct netdam_soft *soft);
uint64_t netdam_soft_memory_bytes(const struct netdam_soft *soft);

/* The memfd of it, to be mapped by other processes too; its size is sealed. Owned by the soft device. */
int netdam_soft_memory_fd(const struct netdam_soft *soft);

/* What the firmware keeps of peers, requests and all else, fixed by the limits; on-board memory is not counted. */
uint64_t netdam_soft_state_bytes(const struct netdam_soft *soft);

/*
 * BAR0 of the soft device (netdam/regs.h): offset, width and effect as on the card, from any thread. A doorbell does
 * not wait for the firmware; every other access does, in the order in which threads ask.
 */
uint64_t netdam_soft_register_read(struct netdam_soft *soft, uint32_t offset, unsigned bytes);
void netdam_soft_register_write(struct netdam_soft *soft, uint32_t offset, unsigned bytes, uint64_t value);

/* An eventfd that counts the interrupts of a vector, owned by the soft device; -EINVAL if there is no such vector. */
int netdam_soft_interrupt_fd(struct netdam_soft *soft, unsigned vector);

/* What happened between firmware and socket, which the firmware's own counters cannot know. */
struct netdam_soft_statistics {
    uint64_t datagrams_sent;
    uint64_t datagrams_taken;
    uint64_t taken_too_long; /* dropped: longer than the largest IP packet of any MTU, or in too many pieces */
    uint64_t not_sendable;   /* frames of the firmware that are neither ARP nor UDP over IPv4 from its own port */
    uint64_t send_errors;    /* datagrams that the socket refused for good; on a memif link, lost because it was down */
    uint64_t send_blocked;   /* times that the socket, or the link's ring, was full */
};
void netdam_soft_get_statistics(struct netdam_soft *soft, struct netdam_soft_statistics *statistics);

/*
 * One line of text, without newline, that tells a datagram (from the NetDAM header on) by names: kind, opcode, context,
 * number, address, status. Any bytes are allowed. Always ends `line` with a zero if `size` is not 0. Needs no device.
 */
void netdam_soft_describe(const uint8_t *datagram, size_t bytes, char *line, size_t size);

#ifdef __cplusplus
}
#endif

#endif
