/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects behind the library's handles. */
#ifndef NDLIB_INTERNAL_H
#define NDLIB_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "alloc.h"
#include "backend.h"

struct netdam_device {
    struct ndlib_backend backend;
    struct ndlib_log log;
    uint32_t flags; /* enum netdam_open_flag */
    /* Raised by each reset: handles made before it are stale. Stored with the mutex held, loaded without. */
    _Atomic uint32_t epoch;

    /* Guards everything below and the administration registers. */
    pthread_mutex_t mutex;
    struct ndlib_alloc alloc;
    struct netdam_region *regions;
    struct netdam_peer *peers;
    struct netdam_queue *queues;
    struct ndlib_program *programs; /* chains and groups */
    uint64_t vectors_used;          /* bit n: a queue pair has vector n for itself */
    uint32_t vectors;
    uint32_t doorbell_stride;
    uint32_t length_max;
};

struct netdam_region {
    struct netdam_region *next;
    struct netdam_device *device;
    uint64_t offset;
    uint64_t bytes;
    uint64_t key;
    uint32_t index;
    uint32_t epoch;
};

struct netdam_peer {
    struct netdam_peer *next;
    struct netdam_device *device;
    uint32_t index;
    uint32_t epoch;
};

enum ndlib_slot_state {
    NDLIB_SLOT_FREE,
    NDLIB_SLOT_POSTED,    /* by netdam_post() */
    NDLIB_SLOT_BLOCKING,  /* a blocking operation waits for it */
    NDLIB_SLOT_ABANDONED, /* a blocking operation timed out: throw the completion away */
    NDLIB_SLOT_RECEIVE,   /* by netdam_post_receive() */
};

/* A request from post to poll. Its place and its use count are what the descriptor carries as user data. */
struct ndlib_slot {
    uint64_t user_data;
    uint32_t uses;
    uint32_t next_free;
    enum ndlib_slot_state state;
};

struct netdam_queue {
    struct netdam_queue *next;
    struct netdam_device *device;
    uint32_t epoch;
    uint32_t index;
    uint32_t doorbell; /* register offset */
    unsigned vector;   /* NETDAM_VECTOR_NONE: none */
    int fd;            /* of the vector, or -1 */
    bool broken;       /* the device claimed more entries than a ring has */
    uint32_t length_max;
    uint32_t type; /* enum netdam_queue_type */

    /* The device owns sq->consumer and cq->producer; the others are ours, and these copies of them are what counts. */
    struct netdam_ring *sq;
    struct netdam_ring *cq;
    struct netdam_ring *rq; /* its consumer is the device's; NULL: no receive ring */
    struct netdam_descriptor *sq_entries;
    struct netdam_completion *cq_entries;
    struct netdam_descriptor *rq_entries;
    uint32_t sq_entries_count;
    uint32_t cq_entries_count;
    uint32_t rq_entries_count; /* 0: no receive ring */
    uint32_t sq_producer;
    uint32_t rq_producer;
    uint32_t cq_consumer;
    uint32_t cq_producer; /* as last seen */
    uint32_t arm;
    uint64_t sq_offset;
    uint64_t cq_offset;
    uint64_t rq_offset;
    uint64_t receive_key;

    /* How fast requests complete while there are any: wait.c. */
    uint64_t pace_ns;       /* from one completion to the next; 0: not known */
    uint64_t pace_since_ns; /* measured from then on, 0: not under way; */
    uint32_t pace_since;    /* cq_consumer at that time */

    /*
     * The device takes a descriptor only when its completion has a place, so at most all rings' entries are under way;
     * completions set aside by blocking operations keep their slots, so these are enough for all.
     */
    struct ndlib_slot *slots;
    uint32_t slots_count;
    uint32_t first_free; /* UINT32_MAX: none */
    uint32_t slots_posted;
    uint32_t slots_receive;

    /* On-board memory for lists, NETDAM_LIST_MAX entries for each slot; NULL until one is posted. */
    struct netdam_list_entry *lists;
    struct netdam_region *lists_region;
    uint64_t lists_offset;

    /* Completions set aside for netdam_poll(): a ring of slots_count. */
    struct netdam_completion *aside;
    uint32_t aside_first;
    uint32_t aside_count;
};

/* Registers. */
static inline uint64_t ndlib_read(struct netdam_device *device, uint32_t offset, unsigned bytes)
{
    return device->backend.ops->register_read(device->backend.opaque, offset, bytes);
}

static inline void ndlib_write(struct netdam_device *device, uint32_t offset, unsigned bytes, uint64_t value)
{
    device->backend.ops->register_write(device->backend.opaque, offset, bytes, value);
}

static inline bool ndlib_is_stale(struct netdam_device *device, uint32_t epoch)
{
    return atomic_load_explicit(&device->epoch, memory_order_acquire) != epoch;
}

/*
 * Executes an administration command. The mutex is held. `results` may be NULL. Returns 0 or the errno value that
 * ndlib_admin_errno() has for the device's answer; then `results` is untouched.
 */
int ndlib_admin(struct netdam_device *device, enum netdam_admin command, const uint64_t *arguments, unsigned count,
                uint64_t results[NETDAM_ADMIN_RESULTS]);

int ndlib_admin_errno(uint32_t admin_status);

/* 0, or -EPERM if the device was opened to observe. */
int ndlib_may_change(const struct netdam_device *device);

/* Posts as netdam_post(), with slots in `state`; *last_slot, if not NULL, becomes the last one used. */
int ndlib_post(struct netdam_queue *queue, const struct netdam_request *requests, unsigned count,
               enum ndlib_slot_state state, uint32_t *last_slot);

/*
 * Takes one completion from the ring. Returns 1 with *completion and *slot (which stays in use), 0 if there is none,
 * -EIO.
 */
int ndlib_take(struct netdam_queue *queue, struct netdam_completion *completion, uint32_t *slot);

/* The slot that ndlib_slot_take() will use, or UINT32_MAX if all are in use. */
static inline uint32_t ndlib_slot_next(const struct netdam_queue *queue)
{
    return queue->first_free;
}

/* Uses that slot; returns what its descriptor carries as user data. */
static inline uint64_t ndlib_slot_take(struct netdam_queue *queue, uint64_t user_data, enum ndlib_slot_state state)
{
    uint32_t index = queue->first_free;
    struct ndlib_slot *slot = &queue->slots[index];

    queue->first_free = slot->next_free;
    slot->user_data = user_data;
    slot->state = state;
    slot->uses++;
    queue->slots_posted += state == NDLIB_SLOT_POSTED;
    queue->slots_receive += state == NDLIB_SLOT_RECEIVE;
    return (uint64_t)slot->uses << 32 | index;
}

/* Ends a slot's use. */
static inline void ndlib_slot_free(struct netdam_queue *queue, uint32_t index)
{
    struct ndlib_slot *slot = &queue->slots[index];

    queue->slots_posted -= slot->state == NDLIB_SLOT_POSTED;
    queue->slots_receive -= slot->state == NDLIB_SLOT_RECEIVE;
    slot->state = NDLIB_SLOT_FREE;
    slot->next_free = queue->first_free;
    queue->first_free = index;
}

/*
 * Entries in use of the submission or receive ring, which holds `entries`, our index being `producer`. -EIO if the
 * device's index is impossible, and the queue pair is broken then.
 */
int64_t ndlib_ring_used(struct netdam_queue *queue, const struct netdam_ring *ring, uint32_t producer,
                        uint32_t entries);

/* Tells the device that entries below `producer` are there. */
void ndlib_announce(struct netdam_ring *ring, uint32_t producer);

/* The same for the submission ring, with the doorbell that it may want. */
void ndlib_submit(struct netdam_queue *queue, uint32_t producer);

/* 0 if a request of this queue pair may name that memory; -EINVAL, -ESTALE. */
int ndlib_check_region(const struct netdam_queue *queue, const struct netdam_region *region);

/*
 * Puts a list, or without a list `local` and `length`, into a descriptor that will use the slot ndlib_slot_next().
 * 0, or an error of netdam_post().
 */
int ndlib_encode_local(struct netdam_queue *queue, struct netdam_descriptor *descriptor, struct netdam_local local,
                       uint32_t length, const struct netdam_piece *list, unsigned list_count);

/* A request with a chain or a group; 0, or an error of netdam_post(). */
int ndlib_encode_program(struct netdam_queue *queue, const struct netdam_request *request,
                         struct netdam_descriptor *descriptor);

/* Releases the chains and groups of a device that is being closed. */
void ndlib_programs_destroy(struct netdam_device *device);

/* Posts one request and waits for it: 0, a positive enum netdam_status, or a negative errno value. */
int ndlib_execute(struct netdam_queue *queue, const struct netdam_request *request, uint64_t deadline_ns,
                  struct netdam_completion *completion);

/* Gives back what ndlib_encode_local() took for lists. The mutex is not held. */
void ndlib_lists_destroy(struct netdam_queue *queue);

/* Tells the device which completions were taken. */
void ndlib_release(struct netdam_queue *queue);

void ndlib_set_aside(struct netdam_queue *queue, const struct netdam_completion *completion, uint32_t slot);

/* Waiting: spin, yield, sleep. Zero-initialize but for the deadline. */
struct ndlib_waiter {
    uint64_t deadline_ns; /* UINT64_MAX: never */
    uint64_t start_ns;    /* when the clock was first looked at; 0: not yet */
    unsigned tries;
};

uint64_t ndlib_now_ns(void);
uint64_t ndlib_deadline(uint64_t timeout_ns);

/* Waits a little for a completion. Returns 0: look again, or -ETIMEDOUT. */
int ndlib_wait_step(struct netdam_queue *queue, struct ndlib_waiter *waiter);

#endif
