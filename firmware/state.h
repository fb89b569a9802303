/* SPDX-License-Identifier: BSD-3-Clause */
/* The firmware's state: one block, no variables anywhere else. */
#ifndef NDFW_STATE_H
#define NDFW_STATE_H

#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"
#include "netdam/transaction.h"
#include "netdam/wire.h"

#ifndef NDFW_VERSION
#define NDFW_VERSION 0x00000001u
#endif

#define NDFW_FRAME_MAX      (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)
#define NDFW_LENGTH_MAX     (UINT32_C(1) << 30)
#define NDFW_LOOPBACK_SLOTS 16u
#define NDFW_DOUBT_TRIES    3u /* repetitions without any answer before the link-layer address is asked for anew */
#define NDFW_NONE           UINT32_MAX
#define NDFW_PATH_NONE      UINT8_MAX
#define NDFW_PORT_MAX       65535u
#define NDFW_GROUP_MAX      16u /* requests that share a packet */
#define NDFW_SPANS_MAX      (NDFW_GROUP_MAX * NETDAM_LIST_MAX)

/* A place on the network. IPv4 addresses fill the first four bytes. */
struct ndfw_endpoint {
    uint8_t family; /* 4 or 6 */
    uint8_t address[16];
    uint16_t port;
    uint8_t mac[6];
};

/* Hash map from a random 64-bit id to an index: open addressing, rebuilt whenever something is taken out. */
struct ndfw_map {
    uint32_t *slots; /* index + 1, or 0 */
    uint32_t mask;
};

struct ndfw_region {
    uint64_t base;
    uint64_t length;
    uint64_t key;
    uint32_t permissions;
    uint32_t serial; /* counts the uses of this entry: a request remembers which one it meant */
    uint32_t queue;  /* queue pair + 1 that gets the immediates of WRITEs, or 0 */
    uint32_t tenant;
    bool in_use;
};

struct ndfw_queue {
    uint64_t sq;
    uint64_t cq;
    uint64_t rq;
    uint64_t receive_key; /* 0: nobody can SEND to it */
    uint32_t sq_entries;
    uint32_t cq_entries;
    uint32_t rq_entries; /* 0: no RQ */
    uint32_t sq_consumer;
    uint32_t rq_consumer;
    uint32_t cq_producer;
    uint32_t outstanding; /* descriptors taken and not completed: each has its place in the CQ */
    uint32_t last_arm;
    uint32_t group;     /* the operation whose group the next descriptor may join */
    uint32_t group_end; /* sq_consumer behind the last descriptor of that group */
    uint32_t tenant;    /* who may SEND to it */
    uint16_t vector;
    uint8_t type;   /* enum netdam_queue_type */
    uint8_t state;  /* enum netdam_queue_state */
    bool completed; /* a completion was stored since the interrupt was last considered */
    bool starved;   /* the next descriptor waits for room in the CQ */
};

/* Which frames a RAW queue pair gets. */
struct ndfw_rule {
    uint32_t queue;
    uint16_t value;
    uint8_t kind; /* enum netdam_steering */
};

/* Part of a local buffer: which region, and which use of its entry, was meant when the descriptor was taken. */
struct ndfw_piece {
    uint64_t address; /* bytes from the region's start */
    uint32_t region;
    uint32_t serial;
    uint32_t length;
};

/* A local buffer: what a descriptor or its list names. */
struct ndfw_buffer {
    struct ndfw_piece pieces[NETDAM_LIST_MAX];
    uint32_t count;
    uint32_t result_bytes; /* TRANSACTION: so many at most are returned to result_address */
};

/* Part of a buffer in on-board memory. */
struct ndfw_span {
    uint8_t *memory;
    uint32_t bytes;
};

/* A descriptor under way. */
struct ndfw_operation {
    struct netdam_descriptor descriptor;
    struct ndfw_buffer buffer;
    struct ndfw_piece returned; /* CHAIN: where what comes back is stored */
    uint64_t result;
    uint32_t queue;
    uint32_t peer;
    uint32_t tour;        /* CHAIN: index, else NDFW_NONE */
    uint32_t collective;  /* of a collective's descriptor: index, else NDFW_NONE */
    uint32_t parent;      /* the collective that this one is part of, or NDFW_NONE */
    uint32_t kind;        /* which part */
    uint32_t next;        /* in the free list, or in one of the peer's lists */
    uint32_t next_offset; /* first byte not yet sent */
    uint32_t done_bytes;
    uint32_t flights; /* packets sent and not finished */
    uint8_t status;
    uint8_t hop;   /* the one that refused */
    bool partial;  /* a hop before the one that refused has stored */
    bool listed;   /* in the peer's list of those with packets to send */
    bool deferred; /* in the peer's list of those that wait for an earlier ORDERED one */
    bool held;     /* the last packet waits until the others have been answered: it carries the immediate */
    bool all_sent; /* or given up: nothing more will be sent for the first time */
    bool in_use;
    /* merge.c: the first of a group that shares a packet stands for all; its descriptor has the group's length. */
    bool grouped;        /* in a group, and not its first */
    bool single;         /* was in a group that was taken apart: not to be merged again */
    uint8_t group_count; /* of the first: operations in the group */
    uint32_t group_last; /* of the first */
    uint32_t group_next; /* in the group, in the order of addresses */
    uint32_t own_length;
};

/* The segment list of a CHAIN under way, and what follows from it. */
struct ndfw_tour {
    struct netdam_segment segments[NETDAM_SEGMENTS_MAX];
    uint32_t count;
    uint32_t header_bytes;
    uint32_t payload_max;
    uint32_t next_free;
    uint32_t tenant;    /* of all nodes */
    uint8_t family;     /* of all nodes */
    uint8_t last_store; /* index of the last segment that stores, if any does */
    bool loads;         /* begins with LOAD: the packet starts without payload */
    bool stores;
    bool returns; /* the answer carries the payload */
    bool names_memory;
};

#define NDFW_SLOTS 8u

/* A part of a collective's block on its tour, or on its way to all others. */
struct ndfw_slot {
    uint64_t at;
    uint32_t bytes;
    uint8_t state;
};

/* A collective under way. */
struct ndfw_collective {
    struct netdam_member members[NETDAM_MEMBERS_MAX];
    struct ndfw_slot slots[NDFW_SLOTS];
    uint64_t next; /* what of the vector is this member's to send: where the next part begins, and the end */
    uint64_t end;
    uint64_t probe_ns;
    uint64_t give_up_ns;
    uint32_t operation; /* NDFW_NONE: this entry is free */
    uint32_t queue;
    uint32_t count;
    uint32_t rank;
    uint32_t serial; /* of the own region */
    uint32_t instance;
    uint32_t packet_bytes;
    uint32_t flags;    /* of the descriptor, as its chains have them */
    uint32_t children; /* operations under way */
    uint32_t asked;    /* failing: the first of the others, from the own place on, that has not been asked yet */
    uint32_t informed; /* failing: the first that has not been told yet */
    uint8_t opcode;
    uint8_t operation_code;
    uint8_t type;
    uint8_t state;
    uint8_t status;
    uint8_t culprit; /* the member that it failed by */
    bool refused;    /* here, before anything was sent: the others are only told */
    bool told;       /* the word of this state has been sent; failing: another member has told all */
    bool worked;     /* memory of members may have changed */
};

enum ndfw_flight_state {
    NDFW_FLIGHT_FINISHED = 0,
    NDFW_FLIGHT_SENT,
    NDFW_FLIGHT_AGAIN, /* to be sent again as soon as possible */
};

/* One packet that was sent and is not finished. */
struct ndfw_flight {
    uint64_t sent_ns;
    uint32_t operation;
    uint32_t offset;
    uint16_t length;
    uint16_t tries; /* repetitions so far */
    uint8_t state;  /* enum ndfw_flight_state */
    uint8_t path; /* the last one that it was sent by, or NDFW_PATH_NONE: was answered BUSY, and waits for its timer */
    uint8_t repairs; /* times that it was sent again before its timer ran out */
    bool timed;      /* its timer ran out the last time */
};

/* Numbers of one kind towards one peer: those of the lane, or those of requests without lane. */
struct ndfw_sequence {
    struct ndfw_flight *flights; /* by number modulo the window */
    uint64_t floor;              /* oldest unfinished number, or next */
    uint64_t next;               /* first number not used */
    uint64_t deadline_ns;        /* no flight expires before */
    uint32_t again;              /* flights in state AGAIN */
    uint32_t flying;             /* flights not finished */
};

/* What the context of chains knows of one node. */
struct ndfw_way {
    uint64_t generation;
    uint64_t used;        /* one more than the largest number that may have a lane there */
    uint64_t confirmed;   /* floor that the node has acknowledged */
    uint64_t deadline_ns; /* CONFIRM or ARP request: to be sent (again) then */
    uint32_t flying;      /* packets under way that visit it */
    uint16_t tries;
    bool wanted;         /* a chain waits for address or generation */
    bool confirm_wanted; /* the node has asked for a CONFIRM */
};

/* A requester context towards one node, or, behind the last peer, the context of all chains. */
struct ndfw_peer {
    struct ndfw_endpoint endpoint;
    struct ndfw_way way;
    struct ndfw_sequence lane;
    struct ndfw_sequence laneless;
    uint64_t context;
    uint64_t generation;
    uint64_t srtt_ns; /* 0: nothing measured */
    uint64_t rttvar_ns;
    uint64_t base_ns; /* shortest round trip, since base_turn_ns minus a while; and in the while before */
    uint64_t base_before_ns;
    uint64_t base_turn_ns;
    struct ndfw_path *paths;      /* by source port, from the own port on */
    uint64_t recovery_ns;         /* losses of packets sent before this have been answered for */
    uint64_t heard_ns;            /* last answer that matched */
    uint64_t control_deadline_ns; /* CONFIRM or ARP request: to be sent (again) then */
    uint64_t confirmed;           /* floor that the node has acknowledged */
    uint32_t window;              /* congestion window in packets */
    uint32_t window_credit;
    uint32_t list_head; /* operations with packets to send */
    uint32_t list_tail;
    uint32_t ordered;       /* the ORDERED operation under way */
    uint32_t deferred_head; /* ORDERED operations behind it */
    uint32_t deferred_tail;
    uint32_t payload_max;
    uint32_t tenant; /* 0: frames towards it carry no tag */
    uint16_t control_tries;
    uint16_t loss;       /* share of packets lost lately, of 65535 */
    uint16_t path_level; /* no path that is not retired has fewer packets under way */
    uint8_t path_count;
    uint8_t path_next;     /* where the turn among paths begins */
    uint8_t path_steady;   /* what is ORDERED stays on it */
    uint8_t paths_retired; /* how many */
    uint16_t serial;       /* counts the uses of this entry that have ended: a late answer may be for one of them */
    bool in_use;
    bool confirm_wanted; /* the node has asked for a CONFIRM */
    bool closing;        /* only waits for its last floor to be confirmed */
    bool resolved;       /* endpoint.mac is valid */
};

enum ndfw_neighbour_state {
    NDFW_NEIGHBOUR_FREE = 0,
    NDFW_NEIGHBOUR_ASKED, /* on behalf of a chain; there is no link-layer address yet */
    NDFW_NEIGHBOUR_LEARNT,
    NDFW_NEIGHBOUR_STATIC,
};

struct ndfw_neighbour {
    uint8_t family;
    uint8_t address[16];
    uint8_t mac[6];
    uint8_t state; /* enum ndfw_neighbour_state */
};

/* Far-end state of a lane at rest: 24 bytes. */
struct ndfw_lane {
    uint64_t context;
    uint64_t generation; /* 0: no lane in this place */
    uint8_t floor[6];
    uint16_t window; /* index + 1 of the lane's window while something is unfinished, else 0 */
};
NETDAM_ASSERT_SIZE(struct ndfw_lane, 24);

/* Far-end state of a lane with something unfinished. Places are numbers modulo NETDAM_WINDOW_MAX. */
struct ndfw_window {
    uint64_t context;
    uint64_t seen_ns; /* last request of this lane */
    uint64_t above;   /* one more than the largest number consumed */
    uint64_t bits[NETDAM_WINDOW_MAX / 64];
    uint64_t values[NETDAM_WINDOW_MAX];
    uint8_t statuses[NETDAM_WINDOW_MAX];
    uint64_t replied[NETDAM_WINDOW_MAX / 64]; /* the value is the place of a reply, plus 1 */
    uint32_t replies;                         /* so many of them */
    uint32_t next_free;
    bool in_use;
};

/* What a transaction fetched, kept while its number is unfinished. */
struct ndfw_reply {
    uint32_t next_free;
    uint32_t length;
    uint8_t bytes[NETDAM_TRANSACTION_FETCH_MAX];
};

/* A tenant, and how this node seals its frames: under keys derived with a salt of its own. */
struct ndfw_tenant {
    uint32_t id;  /* 0: none in this place */
    uint8_t mode; /* enum netdam_tenant_mode */
    uint8_t key[16];
    uint8_t salt[16];
    uint64_t counter; /* of the frame sealed last */
    uint64_t lanes;   /* what the lanes of its contexts are told from those of others by */
};

/* Counters that a sender may be behind its newest one. */
#define NDFW_REPLAY_WINDOW 1024u

/* Whose frames are known not to come twice. */
struct ndfw_sender {
    uint64_t seen_ns;
    uint64_t highest;
    uint64_t bits[NDFW_REPLAY_WINDOW / 64]; /* of the counters up to it, modulo the window */
    uint8_t salt[16];
    uint32_t tenant; /* 0: none in this place */
    uint32_t slot;   /* of the derived key at the platform */
};

struct ndfw {
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    uint64_t now_ns;
    uint64_t counters[NETDAM_COUNTER_COUNT];
    uint64_t generation;
    uint64_t generation_next_ns; /* lanes are not forgotten before */
    uint64_t give_up_check_ns;
    uint64_t refusal_due_ns; /* when the refusals sent so far are paid for */
    uint64_t work_bytes;
    bool port_full;
    uint32_t signal_first; /* queue pairs with completions of which the interrupt has not been considered */
    uint32_t signal_end;

    uint64_t admin_args[NETDAM_ADMIN_ARGS];
    uint64_t admin_results[NETDAM_ADMIN_RESULTS];
    uint32_t admin_command;
    uint32_t admin_status;

    uint32_t crc_table[8][256];
    uint64_t crc_fold[3][2]; /* what carries 8 bytes over a distance, see crc32c.c */

    struct ndfw_region *regions;
    struct ndfw_map region_by_key;
    struct ndfw_queue *queues;
    struct ndfw_peer *peers;
    struct ndfw_map peer_by_context;
    struct ndfw_operation *operations;
    uint32_t operation_free;
    struct ndfw_tour *tours;
    uint32_t tour_free;
    struct ndfw_collective *collectives;
    uint32_t collective_count;
    bool collective_due; /* one of them has something to do */
    bool chains_due;     /* a chain that waited may go on */
    struct ndfw_neighbour *neighbours;

    struct ndfw_lane *lanes;
    uint32_t lane_mask;
    uint32_t lane_count;
    struct ndfw_window *windows;
    uint32_t window_free;
    uint32_t window_count;
    struct ndfw_reply *replies;
    uint32_t reply_free;
    uint32_t reply_count;

    struct ndfw_tenant *tenants;
    uint32_t tenant_count;
    struct ndfw_sender *senders;
    struct ndfw_map sender_by_salt;
    uint32_t sender_spare; /* the platform's slot for the keys of senders that are not known */
    uint8_t *tenant_room;  /* what is authenticated, and what was deciphered, of the frame in hand */

    uint8_t *loopback; /* NDFW_LOOPBACK_SLOTS frames */
    uint32_t loopback_bytes[NDFW_LOOPBACK_SLOTS];
    uint32_t loopback_head;
    uint32_t loopback_tail;
    bool transmit_loopback; /* the frame begun goes there */

    const uint8_t *shared_frame; /* received, and others may change it; NULL: nobody can */
    size_t shared_bytes;
    size_t shared_copied;     /* of it, to shared_room */
    uint8_t *shared_room;     /* NDFW_FRAME_MAX, if frames are shared */
    uint8_t *transmit_room;   /* the same */
    uint8_t *transmit_target; /* where the frame begun goes from there; NULL: it is made in place */
    bool draining;            /* frames are being taken out of it */

    struct ndfw_rule rules[NETDAM_STEERING_RULES];
    uint32_t rule_count;
    uint32_t next_raw; /* where the next round over RAW queue pairs starts */
    bool raw_first;    /* in this run RAW frames are sent before NetDAM's */
    bool raw_waits;    /* one has waited for the port in this run */

    uint32_t next_queue; /* where the next round over the rings starts */
    uint32_t next_peer;  /* likewise over the peers that may be open, and the context of chains behind them */
    uint32_t peer_end;   /* no peer from here on is open */
};

#endif
