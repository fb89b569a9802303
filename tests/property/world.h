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
#define SITE_SLOTS     24u /* local buffers per node */
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
    uint64_t late_refused; /* copies of finished modifications that arrived and changed nothing */
    uint64_t damaged;
    uint64_t resets;
    uint64_t partial;
    uint64_t exhausted; /* last numbers of a context */
    uint64_t wrapped;   /* rings whose index passed 2^32 */
    uint64_t counters[NETDAM_COUNTER_COUNT];
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

struct op {
    struct netdam_descriptor d;
    uint64_t posted_ns;
    uint64_t taken_ns;
    uint64_t local_offset; /* in on-board memory */
    uint32_t first_piece;
    uint32_t slot; /* buffer, NONE: none */
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
    bool applied;
    bool refused;
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
    uint32_t slot_op[SITE_SLOTS];
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
    uint64_t bound_ns; /* from taken to completed at most */
    uint64_t calm_at;  /* packets delivered */
    uint64_t mean_ns;  /* between two actions of software */
    uint32_t lazy;     /* parts per million of runs after which nobody looks at the completions */
    bool storm;        /* false: nothing but a perfect wire and requests */
    bool all_static;   /* no link-layer address is learnt */
    bool calm;
    bool failed;
    struct op *ops;
    uint32_t op_count;
    uint32_t op_room;
    struct table pieces;
    struct table snapshots;
    struct table contexts;
    struct tally *tally;
    struct tamper *tamper;
    bool executes[16][16]; /* [type][operation] of REDUCE; [type][0]: FETCH_ADD and CAS */
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

/* judge.c */
void judge_completion(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion);
void table_init(struct table *table);
void table_fini(struct table *table);
struct piece *piece_find(struct world *world, uint64_t context, uint64_t number);
struct piece *piece_add(struct world *world, uint64_t context, uint64_t number);
struct piece *piece_at(struct world *world, uint32_t index);
struct context *context_get(struct world *world, uint64_t id, unsigned node);
void snapshot_add(struct world *world, const struct snapshot *snapshot);
bool snapshot_explains(struct world *world, const struct op *op, const uint8_t *bytes, uint64_t *missing);

/* witness.c */
/* Makes the descriptor, number `index`, an addition to one of the target's counters. False if all are used up. */
bool witness_draw(struct world *world, struct site *target, uint32_t index, struct netdam_descriptor *d);
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

/* program.c: what software does */
void program_setup(struct world *world, struct site *site);
void program_action(struct world *world);
/* Software has made room in completion rings: rings where descriptors still wait. */
void program_ring_all(struct world *world);
void program_calm_prepare(struct world *world);
void program_change_weather(struct world *world);
uint32_t program_calm_post(struct world *world, struct site *site, const struct peer *peer, bool modifying);
void program_restart(struct world *world, struct site *site);

/* tamper.c: faults put in on purpose, each of which a check must notice */
struct tamper_kind {
    const char *name;
    const char *text;
    unsigned invariant; /* that must be the first to break; 0: any */
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
