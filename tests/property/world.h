/* SPDX-License-Identifier: BSD-3-Clause */
/* The property test's world: nodes on a lossy wire, what software has asked of them, and what must follow from it. */
#ifndef PROPERTY_WORLD_H
#define PROPERTY_WORLD_H

#include "ndtest_frame.h"
#include "ndtest_wire.h"

#include <stdio.h>

#define TARGET_REGIONS 3u
#define LOCAL_REGIONS  2u
#define WITNESS_REGION (TARGET_REGIONS + LOCAL_REGIONS)
#define SITE_REGIONS   (WITNESS_REGION + 1)
#define WITNESS_CELLS  64u
#define WITNESS_BITS   63u
#define TARGET_BASE    32768u
#define TARGET_BYTES   32768u
#define WITNESS_BASE   (TARGET_BASE + TARGET_REGIONS * TARGET_BYTES + 512)
#define SLOT_BASE      (WITNESS_BASE - 512 + 4096)
#define SITE_QUEUES    3u
#define SITE_PEERS     8u
#define SQ_LOG2_MAX    6u
#define CQ_LOG2_MAX    6u
#define RQ_LOG2_MAX    4u
#define SITE_SLOTS     32u /* local buffers per node */
#define ANSWERS_MAX    4u
#define INVARIANTS     10u /* numbered 1 to 10 as in design.md */
#define NONE           UINT32_MAX

/* What all scenarios of a run add up to. */
struct tally {
    uint64_t checks[INVARIANTS + 1];
    uint64_t violations[INVARIANTS + 1];
    uint64_t statuses[256];
    uint64_t delivered;
    uint64_t operations;
    uint64_t applied;
    uint64_t messages; /* delivered into receive buffers, immediates of WRITEs included */
    uint64_t repeated; /* executions of RELAXED or UNRELIABLE packets after their first */
    uint64_t lists;
    uint64_t ordered;
    uint64_t late_refused; /* copies of finished modifications that arrived and changed nothing */
    uint64_t damaged;
    uint64_t resets;
    uint64_t partial;
    uint64_t exhausted; /* last numbers of a context */
    uint64_t wrapped;   /* rings whose index passed 2^32 */
    uint64_t counters[NETDAM_COUNTER_COUNT];
    uint64_t hash;   /* of all frames, and of memory when the scenarios ended */
    char first[400]; /* the first violation, in words */
    bool quiet;
};

struct region {
    uint64_t base;
    uint64_t length;
    uint64_t key;
    uint64_t changed_ns; /* created or destroyed */
    uint32_t permissions;
    uint32_t index;
    uint32_t queue; /* of the same node: gets the immediates; NONE */
    bool live;
};

struct peer {
    uint32_t handle;
    uint32_t split; /* payload bytes of one packet */
    uint8_t target;
    uint8_t family;
    bool open;
};

enum op_state {
    OP_POSTED, /* in the ring */
    OP_TAKEN,  /* accepted: owed a completion */
    OP_COMPLETE,
    OP_ABANDONED, /* was still in the ring when the ring ceased to exist */
};

struct span {
    uint64_t offset; /* in on-board memory */
    uint32_t length;
};

/* What a descriptor names on its own node. */
struct buffer {
    uint64_t list_offset; /* 0: no list */
    uint32_t slot;        /* NONE: none */
    uint8_t count;
    struct span spans[NETDAM_LIST_MAX]; /* in the order of the list */
};

struct op {
    struct netdam_descriptor d;
    struct buffer buffer;
    uint64_t posted_ns;
    uint64_t taken_ns;
    uint64_t bit; /* of a witness */
    uint32_t first_piece;
    uint32_t echo_hash_low;
    uint32_t split; /* payload bytes of one packet towards its peer */
    uint8_t node;
    uint8_t queue;
    uint8_t target;
    uint8_t state; /* enum op_state */
    uint8_t status;
    bool remote_valid; /* as seen when posted */
    bool local_valid;
    bool any_status; /* something it named has changed since */
    bool local_dead; /* its local region is gone: hands off */
    bool flush_due;  /* reset, peer closed, queue or region destroyed: FLUSHED is right */
    bool sent;
    bool delivered;        /* a message to itself */
    bool witness;          /* counts in a cell that the shadow does not know */
    uint32_t completed_at; /* descriptors posted by then */
    uint64_t observed;     /* result of a witness */
    bool calm;             /* posted when nothing was wrong any more: must end well */
};

/* One modifying packet: a lane number and the instruction it stands for, for ever. */
struct piece {
    uint64_t context;
    uint64_t number;
    uint64_t generation; /* the first it was sent under, other than 0 */
    uint64_t key;
    uint64_t address;
    uint64_t payload_hash;
    uint64_t old_value;
    uint64_t applied_incarnation;
    uint32_t length;
    uint32_t op;
    uint32_t next;  /* of the same operation */
    uint32_t chain; /* in the hash table */
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t refusal; /* status it was refused with */
    uint16_t flags;  /* NETDAM_FLAG_*, of delivery */
    uint64_t immediate;
    bool applied;
    bool refused;
};

enum receive_state {
    RECEIVE_POSTED,
    RECEIVE_DONE, /* its completion is in the ring */
    RECEIVE_COMPLETE,
    RECEIVE_ABANDONED,
};

/* A receive buffer. */
struct receive {
    struct buffer buffer;
    struct netdam_completion completion; /* as the device stored it */
    uint32_t length;
    uint8_t node;
    uint8_t queue;
    uint8_t state; /* enum receive_state */
    bool valid;
    bool flush_due;
};

/* What a READ found at the far end. */
struct snapshot {
    uint64_t at_ns;
    uint64_t key;
    uint64_t address;
    uint64_t hash;
    uint32_t length;
    uint32_t chain;
    uint8_t from;
    uint8_t target;
};

struct context {
    uint64_t id;
    uint64_t incarnation;
    uint64_t floor; /* largest the far end has announced */
    uint32_t chain;
    uint32_t ordered[SITE_QUEUES]; /* one more than the last ORDERED op that was applied */
    uint8_t node;
};

struct witness_cell {
    uint32_t used;
    uint32_t op[WITNESS_BITS]; /* by bit */
};

#define BUCKETS 4096u
struct table {
    void *items;
    size_t room;
    uint32_t used;
    uint32_t bucket[BUCKETS];
};

struct site {
    struct ndtest_node node;
    uint8_t *shadow; /* what on-board memory must hold, wherever the device or a peer does not write at the moment */
    struct region regions[SITE_REGIONS];
    struct ndtest_queue queues[SITE_QUEUES];
    uint32_t posted[SITE_QUEUES][1u << SQ_LOG2_MAX]; /* op by position */
    uint32_t seen_taken[SITE_QUEUES];
    struct peer peers[SITE_PEERS];
    uint32_t *outstanding; /* ops posted or taken */
    uint32_t outstanding_count;
    bool slot_used[SITE_SLOTS];
    uint32_t received[SITE_QUEUES][1u << RQ_LOG2_MAX]; /* receive buffer by position */
    uint32_t seen_received[SITE_QUEUES];
    uint32_t seen_produced[SITE_QUEUES]; /* CQ */
    uint32_t owed[SITE_QUEUES];          /* taken and not completed */
    unsigned deliveries;                 /* of the frame being received */
    uint64_t slot_base;
    uint64_t ring_base;
    struct ndtest_packet packet; /* being received */
    bool packet_valid;
    bool receiving;
    unsigned answer_count;
    struct ndtest_packet answers[ANSWERS_MAX]; /* sent while receiving; payload is gone */
    uint64_t answer_values[ANSWERS_MAX];
    uint64_t executed_before;
    struct witness_cell witness[WITNESS_CELLS];
};

struct tamper;

struct world {
    struct ndtest_wire wire; /* first: hooks get it as their opaque */
    uint64_t seed;
    struct ndtest_random random; /* the program's draws */
    struct site sites[NDTEST_NODES_MAX];
    unsigned site_count;
    uint32_t slot_bytes;
    uint32_t payload_max;
    uint64_t key_salt;
    uint64_t bound_ns;              /* from taken to completed at most */
    uint64_t calm_at;               /* packets delivered */
    uint64_t mean_ns;               /* between two actions of software */
    uint32_t lazy;                  /* parts per million of runs after which nobody looks at the completions */
    uint32_t relaxed;               /* percent of what may be RELAXED that is */
    uint32_t bursts;                /* percent of bursts that go to one peer, ORDERED or to one receive queue */
    struct netdam_descriptor burst; /* flags and opcode that all requests of the present one have */
    bool storm;                     /* false: nothing but a perfect wire and requests */
    bool all_static;                /* no link-layer address is learnt */
    bool calm;
    bool failed;
    struct op *ops;
    uint32_t op_count;
    uint32_t op_room;
    struct table pieces;
    struct table snapshots;
    struct table contexts;
    struct table receives;
    uint8_t *scratch; /* one slot */
    struct tally *tally;
    struct tamper *tamper;
    bool executes[16][16]; /* [type][operation] of REDUCE; [type][0]: FETCH_ADD, CAS, SWAP */
};

/* reference.c: the arithmetic, written again */
bool reference_knows(unsigned operation, unsigned type);
void reference_reduce(uint8_t *memory, const uint8_t *payload, size_t bytes, unsigned operation, unsigned type);
uint64_t reference_load(const uint8_t *memory, unsigned bytes);
void reference_store(uint8_t *memory, unsigned bytes, uint64_t value);

/* oracle.c */
void violation(struct world *world, unsigned invariant, const char *format, ...) __attribute__((format(printf, 3, 4)));
void oracle_attach(struct world *world);
struct region *region_by_key(struct site *site, uint64_t key);
void oracle_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                   enum netdam_fw_access access);
void oracle_trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                  uint64_t c);
/* Notices which descriptors have been taken. */
void oracle_observe_taken(struct world *world, struct site *site);
/* Takes up to `most` completions from each ring and judges them. */
void oracle_poll(struct world *world, struct site *site, unsigned most);
/* Whole memory against the shadow, guards, far-end state. */
void oracle_compare(struct world *world, struct site *site);
void oracle_deadlines(struct world *world, struct site *site);
/* Ops still in a ring that is gone. */
void oracle_abandon(struct world *world, struct site *site, unsigned queue);
/* On-board memory as it is becomes what is expected there. */
void oracle_accept_memory(struct site *site, uint64_t offset, uint64_t bytes);
uint32_t op_new(struct world *world);
void op_forget(struct site *site, uint32_t op);

/* frames.c */
void frames_transmitted(void *opaque, struct ndtest_node *node, const uint8_t *data, size_t bytes);
void frames_before_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame);
void frames_after_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame);
/* The range that the request being received names, if its region permits what the opcode does. */
bool request_range(struct site *site, uint64_t *base, uint64_t *length, bool *modifies);

/* buffer.c */
/*
 * Chooses a buffer of d->length bytes for accesses that need `need`, and names it in the descriptor; *valid: the device
 * can use it. `wild`: perhaps one that it cannot. Returns false if no slot is free. The caller marks the slot as used.
 */
bool buffer_draw(struct world *world, struct site *site, struct buffer *buffer, struct netdam_descriptor *d,
                 uint32_t need, bool wild, bool *valid);
uint32_t buffer_free_slots(const struct site *site);
/* True if the range lies in one of its spans; in its list. */
bool buffer_holds(const struct buffer *buffer, uint64_t offset, uint64_t bytes);
bool buffer_lists(const struct buffer *buffer, uint64_t offset, uint64_t bytes);
/* Bytes as the list orders them; valid until the next call. */
const uint8_t *buffer_gather(struct world *world, const struct site *site, const struct buffer *buffer, uint64_t at,
                             uint64_t bytes);
void buffer_scatter(uint8_t *memory, const struct buffer *buffer, const uint8_t *data, uint64_t bytes);
/* New, random content. */
void buffer_fill(struct world *world, struct site *site, const struct buffer *buffer);
/* Its slot holds what the shadow holds. */
bool buffer_as_expected(const struct world *world, const struct site *site, const struct buffer *buffer);
/* The slot is free again, and holds what it holds. */
void buffer_release(struct site *site, const struct buffer *buffer);

/* receive.c: receive queues */
struct receive *receive_at(struct world *world, uint32_t index);
/* The queue pair whose receive key this is, or NONE. */
uint32_t receive_queue_by_key(const struct site *site, uint64_t key);
/* Software posts a receive buffer. */
void receive_post(struct world *world, struct site *site, unsigned queue);
/* Judges the completions that the device has stored since the last call. */
void receive_observe(struct world *world, struct site *site);
/* A completion with flag RECEIVE has been taken from the ring. */
void receive_polled(struct world *world, struct site *site, unsigned queue, const struct netdam_completion *completion);
/* Whether the request being received could be refused with this status. */
void receive_judge_refusal(struct world *world, struct site *site, unsigned status);
bool receive_access(struct world *world, struct site *site, uint64_t offset, uint64_t bytes, bool reads);
void receive_flush_due(struct world *world, struct site *site, unsigned queue);
void receive_abandon(struct world *world, struct site *site, unsigned queue);
/* True if a receive descriptor in a ring names this region. */
bool receive_names(struct world *world, struct site *site, const struct region *region);

/* judge.c */
void judge_completion(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion);
void *table_add(struct table *table, size_t item_bytes);
void table_init(struct table *table);
void table_fini(struct table *table);
struct piece *piece_find(struct world *world, uint64_t context, uint64_t number);
struct piece *piece_add(struct world *world, uint64_t context, uint64_t number);
struct piece *piece_at(struct world *world, uint32_t index);
struct context *context_get(struct world *world, uint64_t id, unsigned node);
void snapshot_add(struct world *world, const struct snapshot *snapshot);
bool snapshot_explains(struct world *world, const struct op *op, const uint8_t *bytes, uint64_t *missing);

/* witness.c */
/* Makes the op, number `index`, an addition to one of the target's counters. False if all are used up. */
bool witness_draw(struct world *world, struct site *target, uint32_t index, struct op *op);
void witness_judge(struct world *world, const struct op *op, uint32_t index);
void witness_final(struct world *world, struct site *site);

/* scenario.c */
struct scenario_options {
    uint64_t seed;
    uint64_t packets;
    const char *tamper; /* NULL: none */
};
/* Runs one scenario. Returns false after a violation. *hash: everything observable, for repeatability. */
bool scenario_run(const struct scenario_options *options, struct tally *tally, uint64_t *hash);

/* request.c: the requests it posts */
enum post_mood {
    POST_STORM,
    POST_CALM,
    POST_CALM_MODIFY,
};
bool request_post(struct world *world, struct site *site, unsigned queue, const struct peer *peer, enum post_mood mood);
/* After the storm: a request in which nothing can go wrong any more. Returns its op, or NONE. */
uint32_t request_post_calm(struct world *world, struct site *site, const struct peer *peer, bool modifying);

/* program.c: what software does */
void program_setup(struct world *world, struct site *site);
void program_action(struct world *world);
/* Software has made room in completion rings: rings where descriptors still wait. */
void program_ring_all(struct world *world);
void program_calm_prepare(struct world *world);
void program_change_weather(struct world *world);
void program_restart(struct world *world, struct site *site);

/* tamper.c: faults put in on purpose, each of which a check must notice */
struct tamper_kind {
    const char *name;
    const char *text;
    unsigned invariant; /* that must be the first to break, in some scenario; 0: any */
};
extern const struct tamper_kind tamper_kinds[];
extern const unsigned tamper_count;
struct tamper *tamper_new(const char *name, struct world *world);
void tamper_free(struct tamper *tamper);
const struct netdam_fw_ops *tamper_ops(struct tamper *tamper, const struct netdam_fw_ops *ops);
uint64_t tamper_entropy(struct tamper *tamper, uint64_t seed);
void tamper_before_receive(struct tamper *tamper, const struct ndtest_frame *frame);
void tamper_after_receive(struct tamper *tamper, struct site *site, const struct ndtest_frame *frame, bool executed);
void tamper_before_poll(struct tamper *tamper, struct site *site);
/* The device has stored completions; nobody has looked yet. `executed`: the message that has just arrived. */
void tamper_after_message(struct tamper *tamper, struct site *site, bool executed);
/* Before and after the firmware starts again. */
void tamper_restarting(struct tamper *tamper, struct site *site);
void tamper_restarted(struct tamper *tamper, struct site *site);
bool tamper_skips_stop(const struct tamper *tamper);

static inline struct world *world_of(struct ndtest_wire *wire)
{
    return (struct world *)(void *)wire;
}

static inline bool op_writes_local(const struct op *op)
{
    return op->d.opcode == NETDAM_OP_READ || op->d.opcode == NETDAM_OP_ECHO;
}

/* Delivery without lane: no numbers of their own, repetition allowed. */
#define FLAGS_LANELESS (NETDAM_FLAG_RELAXED | NETDAM_FLAG_UNRELIABLE)
#define FLAGS_DELIVERY (FLAGS_LANELESS | NETDAM_FLAG_ORDERED)

static inline bool op_laneless(const struct op *op)
{
    return (op->d.flags & (NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_UNRELIABLE)) != 0;
}

static inline bool op_unreliable(const struct op *op)
{
    return (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0;
}

/* Uses a receive buffer. */
static inline bool packet_notifies(const struct ndtest_packet *packet)
{
    return packet->opcode == NETDAM_OP_SEND ||
           (packet->opcode == NETDAM_OP_WRITE && (packet->flags & NETDAM_FLAG_IMMEDIATE) != 0);
}

/* What a piece is found by: lanes and what has none count for themselves. */
static inline uint64_t packet_number(const struct ndtest_packet *packet)
{
    return packet->number | ((packet->flags & FLAGS_LANELESS) != 0 ? UINT64_C(1) << 63 : 0);
}

static inline bool op_modifies(unsigned opcode)
{
    return (netdam_op_flags(opcode) & NETDAM_OPF_MODIFIES) != 0;
}

/* Of a type that is defined. */
static inline unsigned element_bytes(unsigned type)
{
    unsigned bytes = netdam_type_bytes(type);

    return bytes != 0 ? bytes : 1;
}

static inline bool op_atomic(unsigned opcode)
{
    return (netdam_op_flags(opcode) & NETDAM_OPF_ATOMIC) != 0;
}

static inline unsigned status_class(unsigned status)
{
    switch (status) {
#define STATUS_CASE(name, value, class_, text)                                                                         \
    case value:                                                                                                        \
        return NETDAM_STATUS_CLASS_##class_;
        NETDAM_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return UINT32_MAX;
    }
}

/* Refused there or here: nothing of what was refused is applied, ever. */
static inline bool status_refuses(unsigned status)
{
    unsigned class_of_status = status_class(status);

    return class_of_status == NETDAM_STATUS_CLASS_REFUSED || class_of_status == NETDAM_STATUS_CLASS_LOCAL;
}

#endif
