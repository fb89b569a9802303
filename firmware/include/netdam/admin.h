/* SPDX-License-Identifier: BSD-3-Clause */
/* Administration commands: what software asks for through ADMIN_COMMAND, with arguments and results. */
#ifndef NETDAM_ADMIN_H
#define NETDAM_ADMIN_H

/*
 * X(name, value, arguments, results, text). A command is executed when ADMIN_COMMAND is written; ADMIN_STATUS and the
 * results are valid when the write has returned. On refusal nothing has changed and the results are 0.
 */
#define NETDAM_ADMIN_LIST(X)                                                                                           \
    X(REGION_CREATE, 1,                                                                                                \
      "base, length, permissions, key (0: draw one), tenant, queue pair + 1 that gets the immediates of "              \
      "WRITEs into it (0: none)",                                                                                      \
      "index, key", "make part of on-board memory accessible; base is a multiple of 8")                                \
    X(REGION_DESTROY, 2, "index", "", "end all access through a region; requests that use it fail from here on")       \
    X(QUEUE_CREATE, 3,                                                                                                 \
      "SQ base, SQ log2, CQ base, CQ log2, RQ base, RQ log2 (0: no RQ), type | vector << 16 | tenant << 32, "          \
      "first index",                                                                                                   \
      "queue pair, receive key (0: no RQ)",                                                                            \
      "create a queue pair; the device writes the ring headers and draws the key that SENDs to it name")               \
    X(QUEUE_DESTROY, 4, "queue pair", "", "flush what is outstanding, then forget the pair")                           \
    X(QUEUE_QUERY, 5, "queue pair", "state, outstanding requests, SQ consumer, CQ producer",                           \
      "enum netdam_queue_state and indices")                                                                           \
    X(PEER_OPEN, 6,                                                                                                    \
      "address, first 8 bytes or IPv4 as an integer; address, last 8 bytes; family (4 or 6) | paths (0: as many as "   \
      "the device has) << 8 | port << 16 | tenant << 32",                                                              \
      "peer", "create a requester context towards a node")                                                             \
    X(PEER_CLOSE, 7, "peer", "", "flush what is outstanding towards it, then forget it")                               \
    X(NEIGHBOUR_SET, 8, "as PEER_OPEN without paths, port and tenant, fourth argument: MAC, first byte in bits 47 to 40", "", \
      "static link-layer address")                                                                                     \
    X(OPCODE_QUERY, 9, "opcode, operation, type", "executed (0 or 1), NETDAM_ALG_* flags",                             \
      "what this firmware does with a combination")                                                                    \
    X(STEERING_SET, 10, "queue pair, enum netdam_steering, value", "",                                                 \
      "give a RAW queue pair the other frames that a rule names, until it is destroyed")                               \
    X(TENANT_SET, 11, "tenant (not 0), key, first 8 bytes, key, last 8 bytes (big-endian), enum netdam_tenant_mode",   \
      "", "make a tenant known, give it another key, or forget it; the key's registers read as 0 afterwards")

/* X(name, value, text) */
#define NETDAM_ADMIN_STATUS_LIST(X)                                                                                    \
    X(OK, 0, "done")                                                                                                   \
    X(BAD_COMMAND, 1, "no such command")                                                                               \
    X(BAD_ARGUMENT, 2, "an argument is out of range, misaligned or contradicts another")                               \
    X(NO_SUCH, 3, "region, queue pair, peer or tenant does not exist")                                                 \
    X(NO_SPACE, 4, "the table is full")                                                                                \
    X(EXISTS, 5, "the key or rule is in use; the tenant has regions, queue pairs or peers")                            \
    X(UNSUPPORTED, 6, "defined, but this firmware does not do it")

#define NETDAM_ADMIN_ENUM(name, value, arguments, results, text) NETDAM_ADMIN_##name = (value),
enum netdam_admin { NETDAM_ADMIN_LIST(NETDAM_ADMIN_ENUM) };
#undef NETDAM_ADMIN_ENUM

#define NETDAM_ADMIN_STATUS_ENUM(name, value, text) NETDAM_ADMIN_STATUS_##name = (value),
enum netdam_admin_status { NETDAM_ADMIN_STATUS_LIST(NETDAM_ADMIN_STATUS_ENUM) };
#undef NETDAM_ADMIN_STATUS_ENUM

/* Permissions of a region. LOCAL: through this device's own rings. REMOTE: from the wire. */
#define NETDAM_PERMISSION_LOCAL_READ   0x01u /* source of requests */
#define NETDAM_PERMISSION_LOCAL_WRITE  0x02u /* where answers are stored */
#define NETDAM_PERMISSION_REMOTE_READ  0x04u /* READ; what an atomic returns, and a transaction compares or fetches */
#define NETDAM_PERMISSION_REMOTE_WRITE 0x08u /* WRITE, SWAP, what a transaction writes */
#define NETDAM_PERMISSION_REMOTE_ALU   0x10u /* REDUCE, FETCH_ADD, CAS and the like */
#define NETDAM_PERMISSION_ALL          0x1fu

/* Type of a queue pair. */
enum netdam_queue_type {
    NETDAM_QUEUE_NETDAM = 0, /* descriptors are NetDAM requests */
    NETDAM_QUEUE_RAW = 1,    /* descriptors are whole Ethernet frames that are not NetDAM's */
};

enum netdam_queue_state {
    NETDAM_QUEUE_STATE_NONE = 0,
    NETDAM_QUEUE_STATE_READY = 1,
    NETDAM_QUEUE_STATE_ERROR = 2, /* an index was impossible; destroy and create it again */
};

/*
 * Steering rules of RAW queue pairs: the first match in this order wins; a frame without a match is counted and dropped.
 * No rule takes what is for the NetDAM port of an own address, or a ping to one; ARP and neighbour discovery are taken
 * by the rule as well as by the device.
 */
enum netdam_steering {
    NETDAM_STEERING_ETHERTYPE = 0,   /* value: EtherType, from 0x600 on */
    NETDAM_STEERING_UDP_PORT = 1,    /* value: destination port */
    NETDAM_STEERING_DEFAULT = 2,     /* everything else for the own MAC, broadcast and multicast; value: 0 */
    NETDAM_STEERING_PROMISCUOUS = 3, /* everything for other MACs; value: 0. The pair may send from any address */
};

/* Rules that can exist at once. */
#define NETDAM_STEERING_RULES 64

#define NETDAM_VECTOR_NONE 0xffffu

#endif
