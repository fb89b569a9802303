/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format: what follows the UDP header of a NetDAM frame. Headers are big-endian, payload is little-endian. */
#ifndef NETDAM_WIRE_H
#define NETDAM_WIRE_H

#include "netdam/types.h"

/*
 *   Ethernet | IPv4 or IPv6 | UDP | header 32 | extensions | body | payload | payload CRC
 *
 *   extensions   in the order of their flags: IMMEDIATE 8 bytes, TENANT 48 bytes
 *   body         REQUEST, node_form IMPLICIT: one segment, 32 bytes
 *                REQUEST, other forms (a chain): the origin's node part, then segment_count segments, each with its
 *                node part: 40 or 56 bytes
 *                RESPONSE: one answer, 32 bytes
 *   payload      payload_length bytes
 *   payload CRC  4 bytes, if PAYLOAD_CRC is set and payload_length is not 0: CRC32C of the payload
 *
 * The UDP length names the end exactly: bytes missing or left over make the frame malformed.
 * header_crc is the CRC32C (Castagnoli, reflected, initial value and final exclusive-or 0xffffffff) of the first
 * header_length bytes, that is of header, extensions and body, with header_crc itself taken as 0.
 *
 * In all versions the first 32 bytes keep their meaning. So a node can verify header_crc before it understands anything
 * else, and refuses nothing that the wire has corrupted: a refusal is final, and a good copy may still be on its way.
 *
 * A node checks in this order; "dropped" is counted and not answered:
 *
 *   at least 32 bytes, header_length within them and the datagram     else dropped: RX_MALFORMED
 *   header_crc                                                        else dropped: RX_HEADER_CRC
 *   kind                                                              else dropped: RX_MALFORMED
 *   version                                 REQUEST: BAD_VERSION      RESPONSE: dropped: RX_MALFORMED
 *   TENANT: lengths exact; known; its tag; not seen before            else dropped: RX_MALFORMED, RX_TENANT, RX_REPLAYED
 *   flags defined, status 0, not both       REQUEST: BAD_FLAGS        RESPONSE: dropped: RX_MALFORMED (flags only)
 *   TENANT and PAYLOAD_CRC
 *   segment_count, segment_index, node_form REQUEST: BAD_SEGMENTS     RESPONSE: neither index nor form is looked at
 *   header_length and datagram length exact                           else dropped: RX_MALFORMED
 *   payload CRC                                                       else dropped: RX_PAYLOAD_CRC
 *   reserved bytes of the current segment 0                           BAD_SEGMENTS
 *   opcode, operation, type, their combination                        BAD_OPCODE, BAD_OPERATION, BAD_TYPE, BAD_TYPE
 *   flags that suit opcode and one another                            BAD_FLAGS
 *   executed by this firmware                                         UNSUPPORTED
 *   a chain's list as a whole (see below), origin                     BAD_SEGMENTS
 *   length against payload and type, a transaction's entries          BAD_LENGTH
 *   a chain's next node is one to send to                             NOT_FORWARDED
 *
 * These refusals depend on the packet alone and leave no trace. Then, for requests with a lane: beyond the window
 * (dropped), STALE, below the floor (dropped), repeated, BUSY; then BAD_KEY, BAD_RANGE, NO_PERMISSION, MISALIGNED and
 * what the operation itself finds, which consume the number and are remembered.
 *
 * Chains. The node that the current segment names executes it on the packet's payload, and sends the packet on to the
 * next one with segment_index one higher; the last one, or the one that refuses, answers the origin. Of the list:
 *
 *   - opcodes are LOAD, LOAD_REDUCE, COMPARE, FORWARD, WRITE and REDUCE, whose `length` is the same in all segments but
 *     FORWARD, where it is 0, as are key, address and generation;
 *   - no node is named twice by address and port, and none is 0, multicast or broadcast;
 *   - LOAD only where nothing came before but FORWARD; a chain that begins so carries no payload until then;
 *   - in a chain that stores, no COMPARE behind LOAD or LOAD_REDUCE: copies may have read different things;
 *   - behind LOAD or LOAD_REDUCE at most one segment stores (WRITE, REDUCE), and it is the last;
 *   - no IMMEDIATE, RELAXED, ORDERED or UNRELIABLE.
 *
 * The answer to a chain with LOAD or LOAD_REDUCE carries the payload, unless its last segment stores. The origin with
 * address and port 0 is the sender of the datagram: the node of segment 0 fills in what it sees there, which is what
 * leads back through address translation. A chain that stores has a lane at each node whose segment names memory, up to
 * the last that stores: LOAD, LOAD_REDUCE and COMPARE consume its number there too. One of these three that comes again
 * reads again, or stands by its comparison; where it would now be refused it is dropped, since a copy that was not may
 * be on its way. For the same reason NOT_FORWARDED consumes a number like BAD_KEY where there is a lane, and where there
 * is none, at a FORWARD, a chain that stores is dropped instead. Chains that store nothing need no lane, but the
 * generation as READ does.
 */
#define NETDAM_WIRE_VERSION 1

/* Not registered with IANA; the default of every node and device. */
#define NETDAM_UDP_PORT 20036

#define NETDAM_SEGMENTS_MAX 32

/* A request is at most this far above the floor: number - floor < NETDAM_WINDOW_MAX. */
#define NETDAM_WINDOW_MAX 1024

/* Numbers are 48 bit and never wrap; a context ends before this one. */
#define NETDAM_NUMBER_MAX ((UINT64_C(1) << 48) - 1)

/* X(name, value, text) */
#define NETDAM_KIND_LIST(X)                                                                                            \
    X(REQUEST, 1, "an instruction for the node that the current segment names")                                        \
    X(RESPONSE, 2, "the answer to the originator")

/* X(name, value, text): the node part of each segment. */
#define NETDAM_NODE_FORM_LIST(X)                                                                                       \
    X(IMPLICIT, 0, "no node part: the IP destination executes the only segment")                                       \
    X(IPV4, 4, "4 bytes address, 2 bytes UDP port, 2 bytes zero")                                                      \
    X(IPV6, 6, "16 bytes address, 2 bytes UDP port, 6 bytes zero")

/* X(name, value, where, text): where is REQUEST, RESPONSE or BOTH. */
#define NETDAM_FLAG_LIST(X)                                                                                            \
    X(PAYLOAD_CRC, 0x0001, BOTH, "a CRC32C follows the payload")                                                       \
    X(IMMEDIATE, 0x0002, REQUEST, "an immediate value for the target's completion follows the header")                 \
    X(TENANT, 0x0004, BOTH, "a tenant tag follows the header")                                                         \
    X(AGAIN, 0x0008, BOTH, "request: sent before; response: answered from memory, not executed again")                 \
    X(RELAXED, 0x0010, BOTH,                                                                                           \
      "idempotent operation without lane: a late copy may be executed again; response: to such")                       \
    X(ORDERED, 0x0020, REQUEST, "sent after the answers to all earlier ordered requests")                              \
    X(UNRELIABLE, 0x0040, REQUEST, "no lane, no answer, no repetition")                                                \
    X(REPRODUCIBLE, 0x0080, REQUEST, "float sums in one fixed order")                                                  \
    X(CONFIRM_WANTED, 0x0100, RESPONSE, "the node asks for a CONFIRM when the requester next falls idle")              \
    X(CONGESTED, 0x0200, RESPONSE, "the request met congestion on its way")

/* X(name, value, text) */
#define NETDAM_TENANT_MODE_LIST(X)                                                                                     \
    X(NONE, 0, "TENANT_SET: forget the tenant; never on the wire")                                                     \
    X(AUTHENTICATE, 1, "the tag covers all of the packet, which everybody can read")                                   \
    X(ENCRYPT, 2, "the same, and the payload is encrypted; headers, keys and addresses are not")

#define NETDAM_KIND_ENUM(name, value, text) NETDAM_KIND_##name = (value),
enum netdam_kind { NETDAM_KIND_LIST(NETDAM_KIND_ENUM) };
#undef NETDAM_KIND_ENUM

#define NETDAM_TENANT_MODE_ENUM(name, value, text) NETDAM_TENANT_MODE_##name = (value),
enum netdam_tenant_mode { NETDAM_TENANT_MODE_LIST(NETDAM_TENANT_MODE_ENUM) };
#undef NETDAM_TENANT_MODE_ENUM

#define NETDAM_NODE_FORM_ENUM(name, value, text) NETDAM_NODE_FORM_##name = (value),
enum netdam_node_form { NETDAM_NODE_FORM_LIST(NETDAM_NODE_FORM_ENUM) };
#undef NETDAM_NODE_FORM_ENUM

#define NETDAM_FLAG_ENUM(name, value, where, text) NETDAM_FLAG_##name = (value),
enum netdam_flag { NETDAM_FLAG_LIST(NETDAM_FLAG_ENUM) };
#undef NETDAM_FLAG_ENUM

#define NETDAM_FLAG_WHERE_REQUEST  1
#define NETDAM_FLAG_WHERE_RESPONSE 2
#define NETDAM_FLAG_WHERE_BOTH     3

/* The flags defined for a kind of packet. */
static inline unsigned netdam_flags_defined(unsigned kind)
{
    unsigned where = kind == NETDAM_KIND_REQUEST ? NETDAM_FLAG_WHERE_REQUEST : NETDAM_FLAG_WHERE_RESPONSE;
    unsigned flags = 0;

#define NETDAM_FLAG_OR(name, value, where_, text) flags |= (NETDAM_FLAG_WHERE_##where_ & where) != 0 ? (value) : 0u;
    NETDAM_FLAG_LIST(NETDAM_FLAG_OR)
#undef NETDAM_FLAG_OR
    return flags;
}

struct netdam_wire_header {
    uint8_t version;       /* NETDAM_WIRE_VERSION */
    uint8_t kind;          /* enum netdam_kind */
    netdam_be16 flags;     /* enum netdam_flag */
    uint8_t segment_count; /* REQUEST: 1 to NETDAM_SEGMENTS_MAX, IMPLICIT: 1; RESPONSE: as in the request */
    uint8_t segment_index; /* REQUEST: the segment to execute now; RESPONSE: the one that answers */
    uint8_t node_form;     /* enum netdam_node_form; RESPONSE: 0 */
    uint8_t status;        /* REQUEST: 0; RESPONSE: enum netdam_status */
    netdam_be64 context;   /* random id of the requester context; identity never is address or port */
    netdam_be48 number;    /* modifying: lane number; CONFIRM: the floor; else: a number of its own sequence */
    netdam_be16 distance;  /* lane number minus the requester's floor, below its window; CONFIRM: what the requester
                              likes; RESPONSE: as in the request */
    netdam_be16 payload_length; /* bytes */
    netdam_be16 header_length;  /* bytes of header, extensions and body */
    netdam_be32 header_crc;
};

/* Of a WRITE, the packet that carries it is sent when all others of the request have been answered. */
struct netdam_wire_immediate {
    netdam_be64 value;
};

/*
 * Proves that the sender holds the tenant's key, and that nothing was changed on the way. AES-128-GCM with
 *
 *   key         the first 16 bytes of HKDF-SHA256 with the tenant's key as input keying material, `salt` as salt, and
 *               as info the 12 bytes "NetDAM", version, mode, tenant
 *   nonce       4 bytes zero, `counter`
 *   associated  REQUEST: the address that the datagram is sent to, 16 bytes (IPv4: 4 and 12 zeros), its UDP port and 6
 *               zeros; RESPONSE: 24 zeros. Then the first header_length bytes of the packet, with header_crc and tag
 *               taken as 0, and in mode AUTHENTICATE the payload
 *   text        in mode ENCRYPT the payload, which is sent as ciphertext; else nothing
 *
 * A sender draws a new salt at each start and counts up from 1 what it sends under it, whoever it is for: so no nonce
 * comes twice under one key. A packet that is sent again is a new one here. There is no payload CRC.
 */
struct netdam_wire_tenant {
    netdam_be32 tenant; /* not 0 */
    uint8_t mode;       /* enum netdam_tenant_mode */
    uint8_t reserved[3];
    uint8_t salt[16];
    netdam_be64 counter;
    uint8_t tag[16];
};

/* A segment's instruction; in a chain its node part follows it. */
struct netdam_wire_segment {
    uint8_t opcode;         /* enum netdam_op */
    uint8_t operation;      /* enum netdam_alu */
    uint8_t type;           /* enum netdam_type */
    uint8_t reserved;       /* 0 */
    netdam_be32 length;     /* bytes of memory concerned; atomics: the element's size; ECHO, SEND, TRANSACTION:
                               payload_length */
    netdam_be64 key;        /* region key; SEND: receive key of a queue pair; TRANSACTION: 0 */
    netdam_be64 address;    /* bytes from the region's start; SEND, TRANSACTION: 0 */
    netdam_be64 generation; /* the lane's at that node; 0: not known yet, never executed */
};

struct netdam_wire_node_ipv4 {
    uint8_t address[4];
    netdam_be16 port;
    uint8_t reserved[2];
};

struct netdam_wire_node_ipv6 {
    uint8_t address[16];
    netdam_be16 port;
    uint8_t reserved[6];
};

struct netdam_wire_answer {
    uint8_t opcode; /* of the segment that answers */
    uint8_t operation;
    uint8_t type;
    uint8_t hop;            /* index of the segment that answers */
    netdam_be32 length;     /* bytes applied or returned; TRANSACTION: bytes fetched, or the entry that failed */
    netdam_be64 generation; /* the lane's, or the node's current one where there is no lane */
    netdam_be64 echo;       /* the generation in the request */
    netdam_be48 floor;      /* the lane's floor after the request: an acknowledged confirmation is a fence */
    netdam_be16 depth;      /* requests waiting at the node: its congestion signal */
};

NETDAM_ASSERT_SIZE(struct netdam_wire_header, 32);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, segment_count, 4);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, status, 7);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, context, 8);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, number, 16);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, distance, 22);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, payload_length, 24);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, header_length, 26);
NETDAM_ASSERT_OFFSET(struct netdam_wire_header, header_crc, 28);
NETDAM_ASSERT_SIZE(struct netdam_wire_immediate, 8);
NETDAM_ASSERT_SIZE(struct netdam_wire_tenant, 48);
NETDAM_ASSERT_OFFSET(struct netdam_wire_tenant, salt, 8);
NETDAM_ASSERT_OFFSET(struct netdam_wire_tenant, counter, 24);
NETDAM_ASSERT_OFFSET(struct netdam_wire_tenant, tag, 32);
NETDAM_ASSERT_SIZE(struct netdam_wire_segment, 32);
NETDAM_ASSERT_OFFSET(struct netdam_wire_segment, length, 4);
NETDAM_ASSERT_OFFSET(struct netdam_wire_segment, key, 8);
NETDAM_ASSERT_OFFSET(struct netdam_wire_segment, address, 16);
NETDAM_ASSERT_OFFSET(struct netdam_wire_segment, generation, 24);
NETDAM_ASSERT_SIZE(struct netdam_wire_node_ipv4, 8);
NETDAM_ASSERT_SIZE(struct netdam_wire_node_ipv6, 24);
NETDAM_ASSERT_SIZE(struct netdam_wire_answer, 32);
NETDAM_ASSERT_OFFSET(struct netdam_wire_answer, generation, 8);
NETDAM_ASSERT_OFFSET(struct netdam_wire_answer, echo, 16);
NETDAM_ASSERT_OFFSET(struct netdam_wire_answer, floor, 24);
NETDAM_ASSERT_OFFSET(struct netdam_wire_answer, depth, 30);

#define NETDAM_ETHERNET_BYTES 14
#define NETDAM_IPV4_BYTES     20
#define NETDAM_IPV6_BYTES     40
#define NETDAM_UDP_BYTES      8
#define NETDAM_CRC_BYTES      4

/* Headers of a request with one implicit segment, from the IP header on; payload and its CRC come on top. */
#define NETDAM_REQUEST_OVERHEAD_IPV4                                                                                   \
    (NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES + sizeof(struct netdam_wire_header) + sizeof(struct netdam_wire_segment))

/* The largest atomic, an 8-byte compare-and-swap with payload CRC, fits a 128-byte frame. */
NETDAM_STATIC_ASSERT(NETDAM_ETHERNET_BYTES + NETDAM_REQUEST_OVERHEAD_IPV4 + 16 + NETDAM_CRC_BYTES <= 128,
                     "an 8-byte atomic over IPv4 fits a 128-byte frame");

#define NETDAM_MTU_MIN 1500
#define NETDAM_MTU_MAX 9000

/*
 * Payload bytes of one packet at an IP MTU: what is left after the headers of a one-segment request or an answer over
 * IPv4 and the payload CRC, rounded down to whole 8-byte elements. 1400 at 1500, 8904 at 9000. With TENANT, 48 less.
 */
static inline uint32_t netdam_payload_max(uint32_t mtu)
{
    return (mtu - (uint32_t)NETDAM_REQUEST_OVERHEAD_IPV4 - NETDAM_CRC_BYTES) & ~UINT32_C(7);
}

/* Generations: epoch in the high half, count in the low half; 0 means none. */
static inline uint32_t netdam_generation_epoch(uint64_t generation)
{
    return (uint32_t)(generation >> 32);
}

#endif
