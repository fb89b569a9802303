/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle: a cluster in virtual time, a program that several requesters run on it, and what is known of both. */
#ifndef ORACLE_H
#define ORACLE_H

#include "cell.h"
#include "ndtest_node.h"
#include "vt/net.h"

#include <stdarg.h>
#include <stdio.h>

#define NONE UINT32_MAX

#define SITES_MAX  5u
#define QUEUES     2u
#define KINDS_MAX  24u
#define PIECES_MAX 2048u

/* On-board memory of a site, in bytes from its start. */
#define RINGS_BASE    4096u
#define RING_ROOM     16384u
#define SHARED_BASE   69632u /* what others reach */
#define SINGLES       48u    /* objects of one word, on which operations meet */
#define SINKS         8u     /* of these the last, where tours store */
#define GROUPS        8u     /* objects of CELL_WORDS_MAX words */
#define BULK          720u   /* objects of one word, for what is longer than a packet */
#define BULK_SINKS    240u   /* of these the last, where long tours store */
#define OBJECTS       (SINGLES + GROUPS + BULK)
#define SHARED_WORDS  (SINGLES + GROUPS * CELL_WORDS_MAX + BULK)
#define SHARED_BYTES  (8u * SHARED_WORDS)
#define BULK_FIRST    (8u * (SINGLES + GROUPS * CELL_WORDS_MAX)) /* bytes in the shared part */
#define SMALL_BYTES   256u                                       /* local buffers */
#define SMALL_SLOTS   64u
#define BIG_BYTES     4608u
#define BIG_SLOTS     4u
#define LOCAL_BASE    81920u
#define LOCAL_BYTES   (SMALL_SLOTS * SMALL_BYTES + BIG_SLOTS * BIG_BYTES)
#define RECEIVE_SLOTS 32u
#define RECEIVE_BYTES 256u
#define RECEIVE_BASE  (LOCAL_BASE + LOCAL_BYTES)
#define LIST_BYTES    64u /* NETDAM_LIST_MAX entries */
#define RECEIVE_LISTS (RECEIVE_BASE + RECEIVE_SLOTS * RECEIVE_BYTES)
#define RECEIVE_END   (RECEIVE_LISTS + RECEIVE_SLOTS * LIST_BYTES)
/* Of each user, what collectives work on: two vectors and control words. */
#define TEAM_BASE    ((RECEIVE_END + 4095u) & ~4095u)
#define TEAM_VECTOR  49152u
#define TEAM_CONTROL (2u * TEAM_VECTOR)
#define TEAM_BYTES   (TEAM_CONTROL + 128u)
#define MEMORY_BYTES (((TEAM_BASE + QUEUES * TEAM_BYTES + 4095u) & ~4095u) + 4096u)

/* Regions of every site, in this order; region_index says which index the firmware gives them. */
enum region {
    REGION_LOCAL,
    REGION_ALL,
    REGION_PART, /* from its own start on, so that addresses are others */
    REGION_READ,
    REGION_WRITE, /* immediates of WRITEs go to the queue of the same user */
    REGION_ALU,
    REGION_TEAM,  /* what collectives work on */
    REGION_OTHER, /* of another tenant */
    REGIONS
};

#define REGIONS_ALL (1u + QUEUES * (REGIONS - 1u))
#define PART_OFFSET 24u

/*
 * Users of a world: each has a queue pair, a peer handle towards every site and regions of its own on every site, and
 * belongs to a tenant or to none. TENANT_OTHER has a region, and nobody acts for it.
 */
#define TENANT       7u
#define TENANT_OTHER 8u
#define TENANT_TOO   9u

/* What went wrong; a case that is made smaller must go on failing in the same way. */
#define FAILURE_LIST(X)                                                                                                \
    X(NONE, "nothing")                                                                                                 \
    X(LINEAR, "no order of the operations explains what was seen of a cell")                                           \
    X(PLAIN, "a cell on which everything commutes does not hold what the program in its order leaves")                 \
    X(COMPLETION, "a completion is missing, doubled, or says what cannot be")                                          \
    X(REFUSED, "refused without reason")                                                                               \
    X(ACCEPTED, "accepted what is to be refused")                                                                      \
    X(MESSAGE, "a message was lost, doubled, late, or is not what was sent")                                           \
    X(BUFFER, "a local buffer changed that nothing was to be stored in")                                               \
    X(MEMORY, "memory changed outside of all that was named")                                                          \
    X(COLLECTIVE, "a collective left something else than the plain result, or ended before all had begun")             \
    X(NONCE, "a nonce was used twice under one key")                                                                   \
    X(FENCE, "executed below a floor that the node had confirmed")                                                     \
    X(SECRET, "somebody without the key could read what is a tenant's")                                                \
    X(GUARD, "the firmware left its memory")                                                                           \
    X(ALIVE, "uncertain although nothing was lost, or still uncertain when everything was calm again")

#define FAILURE_ENUM(name, text) FAILURE_##name,
enum failure { FAILURE_LIST(FAILURE_ENUM) };
#undef FAILURE_ENUM

enum op_state {
    OP_WAITING, /* its time has not come */
    OP_SKIPPED,
    OP_POSTED, /* an earlier one has to complete before it may be sent */
    OP_OPEN,   /* may have an effect from here on */
    OP_DONE,
};

struct world;
struct op;

/* Part of an operation: one step on one object of one site. */
struct piece {
    uint8_t site;
    uint16_t object;
    bool silent; /* not to be recorded */
    struct step step;
};

/* A kind of operation. One file each; program.c lists them. */
struct kind {
    const char *name;
    /* Draws everything about it that does not depend on the run. Returns false if it is nothing for this world. */
    bool (*draw)(struct world *world, struct op *op, struct ndtest_random *random);
    /* Its time has come. Returns false if it cannot be now. A kind that posts a descriptor returns true afterwards. */
    bool (*act)(struct world *world, struct op *op);
    /* The completion of its descriptor. NULL: it posts none. */
    void (*complete)(struct world *world, struct op *op, const struct netdam_completion *completion);
};

struct op {
    const struct kind *kind;
    uint64_t at_ns;
    struct netdam_descriptor d;
    uint64_t posted;
    uint64_t opened;     /* when it became OP_OPEN */
    uint64_t delivered;  /* when a message or an immediate of it came first; 0: not yet */
    uint64_t expires_ns; /* nothing of it can happen any more; UINT64_MAX: it may */
    uint32_t index;
    uint32_t deliveries;
    void *extra;   /* the kind's own */
    uint16_t slot; /* local buffer */
    uint8_t site;
    uint8_t target;
    uint8_t queue;
    uint8_t peer;   /* which of the two handles towards the target: the user */
    uint8_t region; /* at the target */
    uint8_t state;  /* enum op_state */
    uint8_t status; /* of its completion */
    bool refused;   /* it names what is not, or what is not permitted */
    bool pinned;    /* its objects count it as active */
};

struct object {
    uint64_t first[CELL_WORDS_MAX];
    uint32_t records; /* the newest, or NONE */
    uint16_t active;  /* operations that may act on it now */
    uint8_t words;
    uint8_t operation; /* everything on it is of this operation and type; NONE: anything */
    uint8_t type;
    uint64_t last[CELL_WORDS_MAX]; /* as somebody saw it last */
};

struct site {
    struct ndtest_node node;
    struct ndtest_queue queues[QUEUES];
    uint64_t region_keys[REGIONS_ALL];
    uint64_t region_changed[REGIONS_ALL]; /* when it last got another key; 0: never */
    uint32_t peers[SITES_MAX][2];
    uint32_t started[QUEUES];  /* ops taken from the ring and not completed */
    uint32_t *waiting[QUEUES]; /* ops that are not open yet, in the order of the ring */
    uint32_t waiting_count[QUEUES];
    uint32_t *deferred[SITES_MAX][2]; /* ORDERED ones behind another towards that peer */
    uint32_t deferred_count[SITES_MAX][2];
    uint32_t ordered[SITES_MAX][2]; /* the ORDERED one that is open, or NONE */
    struct object objects[OBJECTS];
    bool slot_used[SMALL_SLOTS + BIG_SLOTS];
    uint64_t slot_hash[SMALL_SLOTS + BIG_SLOTS];    /* of a free slot */
    uint32_t receive_posted[QUEUES][RECEIVE_SLOTS]; /* receive slots in the order of the ring */
    uint32_t receive_count[QUEUES];
    bool receive_used[RECEIVE_SLOTS];
    uint64_t receive_hash[RECEIVE_SLOTS];
    uint64_t receive_pieces[RECEIVE_SLOTS]; /* how it is divided, see gather_draw */
    uint64_t restarted;                     /* when it was started last */
    uint8_t *outside;                       /* memory as it was; of teams, as it has to be */
    uint32_t unsure[QUEUES][2];             /* what a collective that failed may still change: from, to */
    unsigned index;
};

/* Something of an operation may still happen until then. */
struct late {
    uint64_t until_ns;
    uint32_t op;
    uint32_t records; /* first of the ones that end with it */
    uint32_t record_count;
};

/* Sites that do collectives with one another, for one user. */
struct team {
    uint8_t sites[SITES_MAX]; /* in the order of the ring */
    uint32_t count;
    uint32_t round;             /* counts how often it has begun anew */
    uint32_t posted[SITES_MAX]; /* by site: the collectives of this round */
    bool pending[SITES_MAX];    /* by site: the last one has not ended */
    bool broken;                /* one has failed: nobody posts any more */
    bool wrong;        /* one was posted that somebody has to refuse: neither it nor what follows can be sure */
    uint64_t ended_ns; /* when the last one ended */
};

/* A fault that happened, or that alone may happen. */
struct fault {
    uint32_t link;
    uint32_t kind; /* enum ndsim_link_count */
    uint64_t number;
};

struct fault_list {
    struct fault *at;
    uint32_t count;
    uint32_t room;
};

/* Which case is run, and how much of it. */
struct plan {
    uint64_t seed;
    uint32_t operations;           /* of the program */
    uint32_t sites;                /* so many at most */
    const bool *keep;              /* by index; NULL: all */
    const struct fault_list *only; /* NULL: all that chance brings */
    struct fault_list *happened;   /* NULL: of no interest */
    const char *pcap;              /* NULL: none */
    bool tell;                     /* print what failed */
    bool trace;                    /* print what the firmware tells */
};

struct tally {
    uint64_t cases;
    uint64_t posted;
    uint64_t skipped;
    uint64_t completed[256]; /* by status */
    uint64_t by_opcode[256]; /* completed */
    uint64_t records;
    uint64_t unjudged; /* objects */
    uint64_t objects;
    uint64_t plain; /* objects compared with the program in its order */
    uint64_t frames;
    uint64_t hash; /* of all frames, and when they arrived */
    uint64_t faults;
    uint64_t restarts;
    uint64_t messages;
    uint64_t late;        /* uncertain ends */
    uint64_t tours;       /* words that came home or were stored at the end */
    uint64_t tours_open;  /* of these, with too many possible values */
    uint64_t collectives; /* that ended as OK */
    uint64_t strangers;   /* frames of somebody without key */
};

struct world {
    struct ndsim_net net;
    struct plan plan;
    struct ndtest_random random; /* of the run */
    struct site sites[SITES_MAX];
    unsigned site_count;
    uint64_t seed;
    struct tally *tally;

    /* Drawn from the seed. */
    struct netdam_fw_config config;
    struct ndsim_link_config weather;
    uint64_t gap_ns;          /* between two operations */
    uint64_t lifetime_ns;     /* a frame is under way for so long at most */
    uint32_t most_active;     /* operations on one object at a time */
    uint32_t hot;             /* objects that most operations choose from */
    uint32_t uniform_percent; /* objects on which everything is of one operation */
    uint32_t family;          /* 4 or 6 */
    uint32_t bad_percent;
    uint32_t relaxed_percent;
    uint32_t ordered_percent;
    uint32_t fence_percent;
    uint32_t unreliable_percent;
    uint32_t list_percent;    /* buffers in several pieces */
    uint32_t repost_percent;  /* receive buffers that are posted again at once */
    uint32_t tenants[QUEUES]; /* of each user; 0: none */
    uint32_t tenant_modes[QUEUES];
    bool harmless;               /* nothing is lost, and nothing is too small: every request has to succeed */
    uint32_t copies;             /* of one frame at most */
    uint32_t weights[KINDS_MAX]; /* of kinds */
    struct team teams[QUEUES];   /* of each user */
    struct watch *watch;

    struct op *ops;
    uint32_t op_count;
    uint32_t unfinished; /* posted and not completed */
    struct record *records;
    uint32_t record_count;
    uint32_t record_room;
    struct allocated *allocated;
    struct late *late; /* in the order of their ends */
    uint32_t late_first;
    uint32_t late_count;
    uint32_t late_room;
    uint64_t tick;
    uint64_t *nonces; /* used ones, a hash table */
    uint32_t nonce_count;
    uint32_t nonce_room;
    uint64_t poll_tick; /* when the present round of polling began */
    struct link_tag {
        struct world *world;
        uint32_t index;
    } tags[NDSIM_NET_LINKS_MAX];
    enum failure failure;
    char text[400];
    struct pcap *pcap;
};

/* world.c */
enum failure world_run(const struct plan *plan, struct tally *tally, char *text, size_t room);
void fail(struct world *world, enum failure failure, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The present moment, later than any before. */
uint64_t world_tick(struct world *world);
void world_restart(struct world *world, struct site *site);
/* Ends a region and makes it anew with another key. */
void world_rekey(struct world *world, struct site *site, unsigned index);
/* A user's region at the firmware, and its key. */
unsigned region_index(unsigned user, unsigned region);
uint64_t region_key(const struct world *world, unsigned site, unsigned user, unsigned region);
/* True if the users belong to different tenants. */
bool world_is_shared(const struct world *world);
/* Closes a peer handle and opens another one in its place. */
void world_reopen(struct world *world, struct site *site, unsigned target, unsigned peer);
void world_draw(struct world *world);
/* Zeroed memory that lives as long as the case. */
void *world_allocate(struct world *world, size_t bytes);
const char *failure_name(enum failure failure);
const char *failure_text(enum failure failure);

/* program.c */
extern const struct kind *const kinds[];
extern const unsigned kind_count;
void program_draw(struct world *world);
uint64_t draw_below(struct ndtest_random *random, uint64_t limit);
bool draw_percent(struct ndtest_random *random, uint32_t percent);

/* post.c: descriptors, and what has to complete before they may be sent */
/* Fills in peer and remote key, and posts; false if a ring is full. The op counts as active on its objects. */
bool post_descriptor(struct world *world, struct op *op);
/* An op has ended: what waited for it may start. */
void post_ended(struct world *world, struct op *op);
void post_poll(struct world *world, struct site *site);
/* Local buffers. NONE: there is none left. */
uint32_t slot_take(struct world *world, struct site *site, uint32_t bytes);
void slot_release(struct world *world, struct site *site, uint32_t slot);
uint32_t slot_offset(uint32_t slot);
void slots_check(struct world *world, struct site *site);

/* gather.c: buffers in one piece or in several */
struct gather {
    uint32_t count;
    uint32_t at[NETDAM_LIST_MAX]; /* where each lies */
    uint32_t bytes[NETDAM_LIST_MAX];
};
/* One piece for seed 0. */
void gather_draw(uint64_t seed, uint32_t bytes, struct gather *gather);
void gather_list(const struct gather *gather, uint32_t base, uint8_t *list);
void gather_put(const struct gather *gather, uint8_t *memory, const uint8_t *bytes);
void gather_get(const struct gather *gather, const uint8_t *memory, uint8_t *bytes);
/* A local buffer for a descriptor, which names it, with these bytes in it unless NULL. False: there is none left. */
bool buffer_take(struct world *world, struct op *op, const uint8_t *bytes);
void buffer_get(const struct world *world, const struct op *op, uint8_t *bytes);

/* effect.c: from operations to records */
/* The pieces of an access to `bytes` from `address` in the shared part; returns how many. */
unsigned pieces_of(const struct world *world, const struct op *op, uint32_t address, struct piece *pieces);
/* Address in the shared part that a descriptor names. */
uint32_t shared_address(const struct op *op);
bool effect_fits(struct world *world, const struct op *op);
/* True if the region has got another key since the op was posted: it may be refused, or have ended before that. */
bool effect_rekeyed(const struct world *world, const struct op *op, unsigned site, unsigned index);
void effect_pin(struct world *world, struct op *op, int by);
/* Records what the op did: `verdict` between its opening and `close`. `seen`: what came back, or NULL. */
void effect_record(struct world *world, struct op *op, enum verdict verdict, uint64_t close, const uint8_t *seen);
/* By its status, with everything that follows from it. */
void effect_settle(struct world *world, struct op *op, const struct netdam_completion *completion, const uint8_t *seen);
void effect_instant(struct world *world, struct op *op, unsigned object, const struct step *step, bool observed,
                    uint64_t seen);
/* Something of it may still happen: records that end with the life of a frame, `times` of them. */
void effect_late(struct world *world, struct op *op, enum verdict verdict, unsigned times);
void effect_expire(struct world *world);
void effect_restarted(struct world *world, const struct site *site);
/* The object of an address in the shared part, and the word in it; and back. */
unsigned object_of(uint32_t address, unsigned *word);
uint32_t object_address(unsigned object);

/* judge.c */
void judge_all(struct world *world);
void judge_fini(void);
/* As cell_values, of an object. */
uint32_t judge_values(struct world *world, unsigned site, unsigned object, unsigned word, uint64_t open, uint64_t close,
                      uint64_t *values);

/* message.c */
extern const struct kind kind_send;
extern const struct kind kind_receive;
void message_received(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion);
/* True if bytes are the beginning of a message. */
bool message_is_readable(const uint8_t *bytes);
void message_payload(const struct world *world, const struct op *op, uint8_t *bytes);
void message_ended(struct world *world, struct op *op);
void messages_check(struct world *world);
void receive_post(struct world *world, struct site *site, unsigned queue);
void receive_forget(struct world *world, struct site *site);
void receives_check(struct world *world, struct site *site);

/* access.c, burst.c, atomic.c, transaction.c, host.c */
extern const struct kind kind_read;
extern const struct kind kind_write;
extern const struct kind kind_reduce;
extern const struct kind kind_atomic;
extern const struct kind kind_echo;
extern const struct kind kind_burst;
extern const struct kind kind_transaction;
extern const struct kind kind_chain;
extern const struct kind kind_load;
extern const struct kind kind_store;
extern const struct kind kind_restart;
extern const struct kind kind_outage;
extern const struct kind kind_rekey;
extern const struct kind kind_reopen;
extern const struct kind kind_probe;

/* access.c: what all operations on memory are drawn by */
bool draw_route(struct world *world, struct op *op, struct ndtest_random *random);
void draw_mode(struct world *world, struct op *op, struct ndtest_random *random);
/* An object, and the place of an element or of bytes in it. Sets remote_address, and region. */
unsigned draw_object(const struct world *world, struct ndtest_random *random);
/* The first objects are those on which everything is of one operation; so many. */
unsigned uniform_count(const struct world *world);
void draw_address(struct world *world, struct op *op, struct ndtest_random *random, uint32_t address);
uint64_t draw_element(struct ndtest_random *random, unsigned type);
uint64_t op_random(const struct world *world, const struct op *op, uint64_t salt);
bool access_complete_ok(struct world *world, struct op *op, const struct netdam_completion *completion,
                        uint32_t length);

/* Of a type that is defined. */
static inline uint32_t element_bytes(unsigned type)
{
    uint32_t bytes = netdam_type_bytes(type);

    return bytes != 0 ? bytes : 1;
}

/* crypto.c */
const struct netdam_fw_crypto *crypto_make(struct world *world);

/* chain.c */
unsigned chain_pieces(const struct op *op, struct piece *pieces);
/* Compares a tour's result with what it may have read, and finds what it may have stored. */
void chain_judge(struct world *world, struct op *op);

/* collective.c */
extern const struct kind kind_collective;
void teams_draw(struct world *world, struct ndtest_random *random);
/* Whoever has not posted what others wait for does so. Returns how many descriptors still have to be posted. */
unsigned teams_finish(struct world *world);
void teams_check(struct world *world);

/* watch.c */
extern const struct kind kind_stranger;
void watch_init(struct world *world);
void watch_left(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);
void watch_reached(struct world *world, uint32_t node, const uint8_t *frame, uint32_t bytes);

/* transaction.c */
unsigned transaction_pieces(const struct op *op, struct piece *pieces);

/* pcap.c */
struct pcap;
struct pcap *pcap_open(const char *path);
void pcap_write(struct pcap *pcap, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);
bool pcap_close(struct pcap *pcap);

/* shrink.c */
struct shrunk {
    bool *keep;
    struct fault_list faults;
    uint32_t kept;
    uint32_t sites; /* 0: as drawn */
    uint32_t runs;
    bool by_chance; /* the faults could not be listed: chance brings them */
};
/* Makes a failing case smaller while it fails in the same way. */
void shrink(const struct plan *plan, enum failure failure, struct shrunk *shrunk);
void fault_add(struct fault_list *list, struct fault fault);

#endif
