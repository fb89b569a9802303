/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings, descriptors and completions in on-board memory: how host software and device talk without registers. */
#ifndef NETDAM_RING_H
#define NETDAM_RING_H

#include "netdam/types.h"

/*
 * A ring is a struct netdam_ring followed by 2^n entries. Indices are free-running 32-bit counts; entry i lies at
 * position i mod 2^n; producer - consumer is the number of entries in use and never exceeds 2^n. The owner of an index
 * alone stores it, with release order after the entries it covers; the other side loads it with acquire order.
 *
 *   submission ring (SQ)  software produces struct netdam_descriptor, the device consumes
 *   receive ring (RQ)     software produces struct netdam_descriptor, the device consumes
 *   completion ring (CQ)  the device produces struct netdam_completion, software consumes
 *
 * Waking the device: after storing `producer`, software issues a full fence and loads `consumer_flags`; only if
 * NEED_WAKEUP is set it writes the queue pair's doorbell. The device sets the flag, issues a full fence and looks at
 * `producer` once more before it sleeps; so one of the two sees the other.
 *
 * Waking software: software adds 1 to the CQ's `arm`, issues a full fence and looks at `producer` once more before it
 * sleeps. The device, after storing `producer` and a full fence, raises the ring's interrupt once for each new value of
 * `arm` that it sees.
 *
 * The device takes a descriptor only when a place in the CQ is free for its completion. Software should not post more
 * than the CQ has room for: a descriptor that waits for that is looked at again only after a millisecond. An index
 * that claims more entries than the ring has puts the queue pair into the error state: everything outstanding is
 * flushed, nothing more is taken, and QUEUE_QUERY tells.
 */
struct netdam_ring {
    /* Line of the producer. */
    uint32_t producer;
    uint32_t producer_flags; /* none defined, 0 */
    uint8_t producer_reserved[56];
    /* Line of the consumer. */
    uint32_t consumer;
    uint32_t consumer_flags; /* enum netdam_ring_flag */
    uint32_t arm;            /* CQ: see above */
    uint8_t consumer_reserved[52];
};

enum netdam_ring_flag {
    NETDAM_RING_NEED_WAKEUP = 0x1, /* SQ: the device sleeps; write the doorbell after producing. An RQ needs none */
};

/* A ring's start is aligned to this. */
#define NETDAM_RING_ALIGN    64
#define NETDAM_RING_LOG2_MIN 1
#define NETDAM_RING_LOG2_MAX 16

/* X(name, value, text): flags of a descriptor. */
#define NETDAM_DESCRIPTOR_FLAG_LIST(X)                                                                                 \
    X(FENCE, 0x0001, "start only after all earlier descriptors of this ring have completed")                           \
    X(RELAXED, 0x0002, "idempotent operation without far-end state: a late copy may be executed again")                \
    X(ORDERED, 0x0004, "sent after all earlier ORDERED descriptors towards this peer have completed")                  \
    X(UNRELIABLE, 0x0008, "sent once, completed when sent; may be lost, or executed more than once")                   \
    X(IMMEDIATE, 0x0010,                                                                                               \
      "WRITE, SEND: the target gets `immediate` with a receive completion, after all of the payload")                  \
    X(REPRODUCIBLE, 0x0020, "float sums in one fixed order")                                                           \
    X(LIST, 0x0040, "`local_address` is a gather list of `list_count` entries in on-board memory")

#define NETDAM_DESCRIPTOR_FLAG_ENUM(name, value, text) NETDAM_DESCRIPTOR_##name = (value),
enum netdam_descriptor_flag { NETDAM_DESCRIPTOR_FLAG_LIST(NETDAM_DESCRIPTOR_FLAG_ENUM) };
#undef NETDAM_DESCRIPTOR_FLAG_ENUM

#define NETDAM_DESCRIPTOR_FLAGS_DEFINED 0x007fu

/*
 * One request. Fields that the opcode does not use are 0. In an RQ, a receive buffer: user_data, length, local_region
 * and local_address (or a list); everything else is 0. A SEND takes one whole buffer, in the order of the ring, and is
 * refused as NOT_READY where there is none, or no room for the completion; a message longer than the buffer is refused
 * as BAD_LENGTH and takes none. A SEND is one packet: its length is at most PAYLOAD_MAX, less 8 with an immediate, and
 * less up to 24 over IPv6, whose header is longer. An immediate that comes with a WRITE takes a buffer too and leaves
 * it as it is.
 *
 * A CHAIN takes `length` bytes from local_region and local_address (0 if it begins with LOAD) through the list_count
 * nodes of a list of struct netdam_segment, which lies at `remote_address` in the local region `immediate`; what comes
 * back, if anything does, is stored at result_address in the local region `peer`, which are 0 otherwise. Operation, type
 * and remote_key are 0; flags are FENCE and REPRODUCIBLE. Longer ones than a packet are split, and each packet makes the
 * tour by itself.
 *
 * A TRANSACTION sends the `length` bytes at local_address, which are the entries just as on the wire (transaction.h), in
 * one packet; type, operation, remote_key and remote_address are 0, and LIST is not allowed. If an entry fetches, what
 * comes back is stored at result_address in the same region, which then has to permit LOCAL_WRITE too. A list that the
 * node would refuse by its form completes as LOCAL_DESCRIPTOR. Software leaves the list as it is until the completion:
 * what is sent (again) is what is there then, and where that has cost the certainty whether it was applied, the
 * completion says FLUSHED or TIMEOUT.
 *
 * In a RAW queue pair a descriptor is a whole Ethernet frame to send: user_data, length, local_region and local_address
 * (or a list), and of the flags FENCE; everything else is 0. A buffer in its RQ is filled with one frame.
 *
 * Collectives (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, BARRIER) are posted once on every node of a group,
 * with the same list of struct netdam_member at `remote_address`, list_count entries, in the local region; `peer` is the
 * own place in it, and `immediate`, without IMMEDIATE, counts the collectives of this group from 1 on. `length` is of
 * the whole vector, of which member i owns block i (netdam_block). BROADCAST: remote_key is the place of the member
 * whose vector it is. Input and output are the addresses in each member's entry: the same, or without overlap.
 */
struct netdam_descriptor {
    uint8_t opcode;    /* enum netdam_op */
    uint8_t operation; /* enum netdam_alu */
    uint8_t type;      /* enum netdam_type */
    uint8_t list_count;
    uint32_t flags;          /* enum netdam_descriptor_flag */
    uint64_t user_data;      /* returned in the completion */
    uint32_t peer;           /* handle from PEER_OPEN */
    uint32_t length;         /* bytes; atomics: the element's size */
    uint64_t remote_key;     /* key of the region at the peer; SEND: receive key of the queue pair there */
    uint64_t remote_address; /* bytes from that region's start */
    uint32_t local_region;   /* index from REGION_CREATE; atomics: 0 */
    uint32_t immediate;
    union {
        struct {
            uint64_t local_address;  /* bytes from the local region's start; source, or where READ and ECHO store */
            uint64_t result_address; /* CHAIN, TRANSACTION, collectives: where what comes back is stored; else 0 */
        } buffer;
        uint64_t operand[2]; /* FETCH_ADD, SWAP: value; CAS: compare, swap; little-endian, low bytes count */
    } u;
};

/* An entry of a gather list. */
struct netdam_list_entry {
    uint32_t local_region;
    uint32_t length;
    uint64_t local_address;
};

#define NETDAM_LIST_MAX 4

/* One hop of a CHAIN. Entries lie in a local region that permits LOCAL_READ, aligned to 8 bytes. */
struct netdam_segment {
    uint8_t opcode;    /* LOAD, LOAD_REDUCE, COMPARE, FORWARD, WRITE or REDUCE */
    uint8_t operation; /* enum netdam_alu */
    uint8_t type;      /* enum netdam_type */
    uint8_t reserved;  /* 0 */
    uint32_t peer;     /* handle from PEER_OPEN: the node */
    uint64_t key;      /* key of the region there; FORWARD: 0 */
    uint64_t address;  /* bytes from that region's start; FORWARD: 0 */
    uint64_t zero;     /* 0 */
};

/*
 * One node of a collective's group. Its region permits REMOTE_READ and REMOTE_WRITE to the others, and LOCAL_READ and
 * LOCAL_WRITE to itself. Addresses are from that region's start, multiples of 8. `control` is NETDAM_CONTROL_BYTES
 * bytes, all 0 before the group's first collective and used by nothing else: the members tell one another there how far
 * they are.
 */
struct netdam_member {
    uint32_t peer;   /* handle from PEER_OPEN; at the own place 0 */
    uint32_t region; /* at the own place the index of the region that `key` names; else 0 */
    uint64_t key;
    uint64_t input;
    uint64_t output;
    uint64_t control;
};

/* Two words for each member: that it has arrived, and that it has done its part. */
#define NETDAM_CONTROL_BYTES(members) ((members)*16u)

/* Members of a collective: a tour visits all others. */
#define NETDAM_MEMBERS_MAX 33

#define NETDAM_HOP_NONE 0xffu

enum netdam_completion_flag {
    NETDAM_COMPLETION_PARTIAL = 0x01, /* not OK, but other packets of the request were applied: `length` bytes in all */
    NETDAM_COMPLETION_RECEIVE = 0x02, /* a receive descriptor was used */
    NETDAM_COMPLETION_IMMEDIATE = 0x04, /* `immediate` is valid */
};

struct netdam_completion {
    uint64_t user_data;
    uint64_t result; /* atomics: the old value, zero-extended; receive: the immediate as it came; TRANSACTION that was
                        refused: index of the entry that failed */
    uint32_t length; /* bytes applied or returned; TRANSACTION: bytes fetched */
    uint8_t status;  /* enum netdam_status */
    uint8_t opcode;  /* of the descriptor; receive: of the request that came */
    uint8_t flags;   /* enum netdam_completion_flag */
    uint8_t hop;     /* CHAIN: index of the segment that answered or is at fault; collectives: place of the member that
                        the failure is due to; NETDAM_HOP_NONE: not known */
    uint32_t queue_pair;
    uint32_t immediate; /* receive: the low half of the immediate */
};

NETDAM_ASSERT_SIZE(struct netdam_ring, 128);
NETDAM_ASSERT_OFFSET(struct netdam_ring, consumer, 64);
NETDAM_ASSERT_OFFSET(struct netdam_ring, arm, 72);
NETDAM_ASSERT_SIZE(struct netdam_descriptor, 64);
NETDAM_ASSERT_OFFSET(struct netdam_descriptor, user_data, 8);
NETDAM_ASSERT_OFFSET(struct netdam_descriptor, peer, 16);
NETDAM_ASSERT_OFFSET(struct netdam_descriptor, remote_key, 24);
NETDAM_ASSERT_OFFSET(struct netdam_descriptor, local_region, 40);
NETDAM_ASSERT_OFFSET(struct netdam_descriptor, u, 48);
NETDAM_ASSERT_SIZE(struct netdam_list_entry, 16);
NETDAM_ASSERT_SIZE(struct netdam_segment, 32);
NETDAM_ASSERT_OFFSET(struct netdam_segment, key, 8);
NETDAM_ASSERT_SIZE(struct netdam_member, 40);
NETDAM_ASSERT_OFFSET(struct netdam_member, control, 32);
NETDAM_ASSERT_SIZE(struct netdam_completion, 32);
NETDAM_ASSERT_OFFSET(struct netdam_completion, length, 16);
NETDAM_ASSERT_OFFSET(struct netdam_completion, status, 20);
NETDAM_ASSERT_OFFSET(struct netdam_completion, queue_pair, 24);

/*
 * Where member `index`'s block of a vector of `length` bytes begins, and how long it is: equal multiples of 64 bytes, but
 * for the last ones, which may be shorter or empty.
 */
static inline uint64_t netdam_block(uint64_t length, uint32_t members, uint32_t index, uint64_t *bytes)
{
    uint64_t block = ((length + members - 1) / members + 63) & ~UINT64_C(63);
    uint64_t start = block * index < length ? block * index : length;

    *bytes = length - start < block ? length - start : block;
    return start;
}

/* Bytes of a ring of 2^log2 entries. */
static inline uint64_t netdam_ring_bytes(unsigned log2, size_t entry_bytes)
{
    return sizeof(struct netdam_ring) + ((uint64_t)entry_bytes << log2);
}

#endif
