/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: the rings seen from software's side. netdam/ring.h is the contract. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "mmio.h"

#define DEPTH_DEFAULT 256u
#define NO_SLOT       UINT32_MAX

/* Smallest exponent for at least `depth` entries, or -1. */
static int depth_log2(uint32_t depth)
{
    int log2 = NETDAM_RING_LOG2_MIN;

    if (depth == 0) {
        depth = DEPTH_DEFAULT;
    }
    while (log2 <= NETDAM_RING_LOG2_MAX && UINT32_C(1) << log2 < depth) {
        log2++;
    }
    return log2 <= NETDAM_RING_LOG2_MAX ? log2 : -1;
}

/* A vector that no other queue pair has, so that one reader owns its descriptor; else none. The mutex is held. */
static void take_vector(struct netdam_device *device, struct netdam_queue *queue)
{
    queue->vector = NETDAM_VECTOR_NONE;
    queue->fd = -1;
    for (unsigned vector = 0; vector < device->vectors && vector < 64; vector++) {
        int fd;

        if ((device->vectors_used >> vector & 1) != 0) {
            continue;
        }
        fd = device->backend.ops->interrupt_fd(device->backend.opaque, vector);
        if (fd < 0) {
            return;
        }
        device->vectors_used |= UINT64_C(1) << vector;
        queue->vector = vector;
        queue->fd = fd;
        return;
    }
}

static void give_vector(struct netdam_device *device, struct netdam_queue *queue)
{
    if (queue->vector != NETDAM_VECTOR_NONE) {
        device->vectors_used &= ~(UINT64_C(1) << queue->vector);
    }
}

static int create_slots(struct netdam_queue *queue)
{
    queue->slots_count = queue->sq_entries_count + queue->cq_entries_count + queue->rq_entries_count;
    queue->slots = calloc(queue->slots_count, sizeof(*queue->slots));
    queue->aside = calloc(queue->slots_count, sizeof(*queue->aside));
    if (!queue->slots || !queue->aside) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < queue->slots_count; i++) {
        queue->slots[i].next_free = i + 1 < queue->slots_count ? i + 1 : NO_SLOT;
    }
    return 0;
}

static void free_queue(struct netdam_queue *queue)
{
    free(queue->slots);
    free(queue->aside);
    free(queue);
}

/* Has the device create the pair over the rings' memory. The mutex is held. */
static int create_in_device(struct netdam_queue *queue, unsigned sq_log2, unsigned cq_log2, unsigned rq_log2,
                            uint32_t first_index, uint32_t tenant)
{
    struct netdam_device *device = queue->device;
    const uint64_t arguments[NETDAM_ADMIN_ARGS] = {
        queue->sq_offset,
        sq_log2,
        queue->cq_offset,
        cq_log2,
        queue->rq_offset,
        rq_log2,
        queue->type | (uint64_t)queue->vector << 16 | (uint64_t)tenant << 32,
        first_index,
    };
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t doorbell;
    int rc = ndlib_admin(device, NETDAM_ADMIN_QUEUE_CREATE, arguments, NETDAM_ADMIN_ARGS, results);

    if (rc != 0) {
        return rc;
    }
    queue->index = (uint32_t)results[0];
    doorbell = NETDAM_PAGE_DOORBELLS + (uint64_t)queue->index * device->doorbell_stride;
    if (doorbell > NETDAM_BAR0_BYTES - 4) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "%s: queue pair %u has its doorbell outside the registers",
                  device->backend.name, queue->index);
        return -EIO;
    }
    queue->doorbell = (uint32_t)doorbell;
    queue->sq = (struct netdam_ring *)(void *)(device->backend.memory + queue->sq_offset);
    queue->cq = (struct netdam_ring *)(void *)(device->backend.memory + queue->cq_offset);
    queue->sq_entries = (struct netdam_descriptor *)(void *)(queue->sq + 1);
    queue->cq_entries = (struct netdam_completion *)(void *)(queue->cq + 1);
    if (queue->rq_entries_count != 0) {
        queue->rq = (struct netdam_ring *)(void *)(device->backend.memory + queue->rq_offset);
        queue->rq_entries = (struct netdam_descriptor *)(void *)(queue->rq + 1);
        queue->rq_producer = ndlib_load_acquire(&queue->rq->producer);
        queue->receive_key = results[1];
    }
    /* The device has written the headers; what it wrote is where it will go on. */
    queue->sq_producer = ndlib_load_acquire(&queue->sq->producer);
    queue->cq_consumer = ndlib_load_acquire(&queue->cq->consumer);
    queue->cq_producer = queue->cq_consumer;
    queue->arm = ndlib_load_relaxed(&queue->cq->arm);
    return 0;
}

/* Takes the rings' memory. On failure nothing is taken. The mutex is held. */
static int take_rings(struct netdam_queue *queue, unsigned sq_log2, unsigned cq_log2, unsigned rq_log2)
{
    struct ndlib_alloc *alloc = &queue->device->alloc;
    int rc = ndlib_alloc_take(alloc, netdam_ring_bytes(sq_log2, sizeof(struct netdam_descriptor)), NETDAM_RING_ALIGN,
                              &queue->sq_offset);

    if (rc != 0) {
        return rc;
    }
    rc = ndlib_alloc_take(alloc, netdam_ring_bytes(cq_log2, sizeof(struct netdam_completion)), NETDAM_RING_ALIGN,
                          &queue->cq_offset);
    if (rc != 0) {
        ndlib_alloc_give(alloc, queue->sq_offset);
        return rc;
    }
    if (queue->rq_entries_count != 0) {
        rc = ndlib_alloc_take(alloc, netdam_ring_bytes(rq_log2, sizeof(struct netdam_descriptor)), NETDAM_RING_ALIGN,
                              &queue->rq_offset);
        if (rc != 0) {
            ndlib_alloc_give(alloc, queue->cq_offset);
            ndlib_alloc_give(alloc, queue->sq_offset);
        }
    }
    return rc;
}

static void give_rings(struct netdam_queue *queue)
{
    struct ndlib_alloc *alloc = &queue->device->alloc;

    ndlib_alloc_give(alloc, queue->sq_offset);
    ndlib_alloc_give(alloc, queue->cq_offset);
    if (queue->rq_entries_count != 0) {
        ndlib_alloc_give(alloc, queue->rq_offset);
    }
}

int netdam_queue_create(struct netdam_device *device, const struct netdam_queue_config *config,
                        struct netdam_queue **queue_out)
{
    static const struct netdam_queue_config defaults;
    struct netdam_queue *queue;
    int sq_log2;
    int cq_log2;
    int rq_log2 = 0;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (!config) {
        config = &defaults;
    }
    sq_log2 = depth_log2(config->submission_depth);
    cq_log2 = depth_log2(config->completion_depth);
    if (config->receive_depth != 0) {
        rq_log2 = depth_log2(config->receive_depth);
    }
    if (sq_log2 < 0 || cq_log2 < 0 || rq_log2 < 0 || config->type > NETDAM_QUEUE_RAW) {
        return -EINVAL;
    }
    queue = calloc(1, sizeof(*queue));
    if (!queue) {
        return -ENOMEM;
    }
    queue->device = device;
    queue->type = config->type;
    queue->sq_entries_count = UINT32_C(1) << sq_log2;
    queue->cq_entries_count = UINT32_C(1) << cq_log2;
    queue->rq_entries_count = rq_log2 != 0 ? UINT32_C(1) << rq_log2 : 0;
    rc = create_slots(queue);
    if (rc != 0) {
        free_queue(queue);
        return rc;
    }

    pthread_mutex_lock(&device->mutex);
    rc = take_rings(queue, (unsigned)sq_log2, (unsigned)cq_log2, (unsigned)rq_log2);
    if (rc != 0) {
        goto fail;
    }
    take_vector(device, queue);
    rc = create_in_device(queue, (unsigned)sq_log2, (unsigned)cq_log2, (unsigned)rq_log2, config->first_index,
                          config->tenant);
    if (rc != 0) {
        goto fail_rings;
    }
    queue->epoch = atomic_load_explicit(&device->epoch, memory_order_relaxed);
    queue->length_max = device->length_max;
    queue->next = device->queues;
    device->queues = queue;
    pthread_mutex_unlock(&device->mutex);
    *queue_out = queue;
    return 0;

fail_rings:
    give_vector(device, queue);
    give_rings(queue);
fail:
    pthread_mutex_unlock(&device->mutex);
    free_queue(queue);
    return rc;
}

int netdam_queue_destroy(struct netdam_queue *queue)
{
    struct netdam_device *device;
    struct netdam_queue **link;
    int rc = 0;

    if (!queue) {
        return 0;
    }
    device = queue->device;
    pthread_mutex_lock(&device->mutex);
    if (!ndlib_is_stale(device, queue->epoch)) {
        const uint64_t arguments[] = {queue->index};

        rc = ndlib_admin(device, NETDAM_ADMIN_QUEUE_DESTROY, arguments, 1, NULL);
    }
    /* A device that has not let go of the rings may still write them: their memory is then never used again. */
    if (rc == 0) {
        give_rings(queue);
        give_vector(device, queue);
    }
    for (link = &device->queues; *link != queue; link = &(*link)->next) {
    }
    *link = queue->next;
    pthread_mutex_unlock(&device->mutex);
    ndlib_lists_destroy(queue);
    free_queue(queue);
    return rc == 0 || rc == -ENODEV ? rc : -EIO;
}

unsigned netdam_queue_outstanding(const struct netdam_queue *queue)
{
    return queue->slots_posted;
}

/*
 * Turns a request into a descriptor, but for user_data. Whether the combination makes sense is the firmware's to judge;
 * checked here is only what would be lost in translation.
 */
static int encode(struct netdam_queue *queue, const struct netdam_request *request,
                  struct netdam_descriptor *descriptor)
{
    const struct netdam_peer *peer = request->remote.peer;
    unsigned op_flags = netdam_op_flags(request->opcode);

    if (queue->type != NETDAM_QUEUE_NETDAM) {
        return -EINVAL;
    }
    if (request->length > queue->length_max) {
        return -EMSGSIZE;
    }
    if ((op_flags & NETDAM_OPF_DEVICE) != 0) {
        return ndlib_encode_program(queue, request, descriptor);
    }
    if (!peer || peer->device != queue->device || request->chain || request->group) {
        return -EINVAL;
    }
    if (peer->epoch != queue->epoch) {
        return -ESTALE;
    }
    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->opcode = request->opcode;
    descriptor->operation = request->operation;
    descriptor->type = request->type;
    descriptor->list_count = request->list_count;
    descriptor->flags = request->flags;
    descriptor->peer = peer->index;
    descriptor->length = request->length;
    descriptor->remote_key = request->remote.key;
    descriptor->remote_address = request->remote.address;
    descriptor->immediate = request->immediate;
    if ((op_flags & NETDAM_OPF_ATOMIC) != 0) {
        if (request->local.region || request->list) {
            return -EINVAL;
        }
        descriptor->u.operand[0] = request->operand[0];
        descriptor->u.operand[1] = request->operand[1];
        return 0;
    }
    if (!request->list && !request->local.region) {
        /* Without a region its index would be 0, which is another region's. */
        return (op_flags & (NETDAM_OPF_PAYLOAD | NETDAM_OPF_RETURNS)) != 0 ? -EINVAL : 0;
    }
    descriptor->u.buffer.result_address = request->result_address;
    return ndlib_encode_local(queue, descriptor, request->local, request->length, request->list, request->list_count);
}

int64_t ndlib_ring_used(struct netdam_queue *queue, const struct netdam_ring *ring, uint32_t producer, uint32_t entries)
{
    uint32_t used;

    if (ndlib_is_stale(queue->device, queue->epoch)) {
        return -ESTALE;
    }
    if (queue->broken) {
        return -EIO;
    }
    /* Acquire: the device has read the entries below `consumer` before we overwrite them. */
    used = producer - ndlib_load_acquire(&ring->consumer);
    if (used > entries) {
        queue->broken = true;
        return -EIO;
    }
    return used;
}

void ndlib_announce(struct netdam_ring *ring, uint32_t producer)
{
    /* Descriptors, and the payload the application has stored, before the index: pairs with the device's acquire. */
    ndlib_store_barrier();
    ndlib_store_release(&ring->producer, producer);
}

void ndlib_submit(struct netdam_queue *queue, uint32_t producer)
{
    queue->sq_producer = producer;
    ndlib_announce(queue->sq, producer);
    /* Index before the flag's load, as the device does flag before index: one of us sees the other. */
    ndlib_full_barrier();
    if ((ndlib_load_relaxed(&queue->sq->consumer_flags) & NETDAM_RING_NEED_WAKEUP) != 0) {
        ndlib_write(queue->device, queue->doorbell, 4, 1);
    }
}

int ndlib_post(struct netdam_queue *queue, const struct netdam_request *requests, unsigned count,
               enum ndlib_slot_state state, uint32_t *last_slot)
{
    uint32_t producer = queue->sq_producer;
    int64_t used = ndlib_ring_used(queue, queue->sq, producer, queue->sq_entries_count);
    unsigned posted;
    int rc = -EAGAIN;

    if (used < 0) {
        return (int)used;
    }
    for (posted = 0; posted < count; posted++, used++) {
        struct netdam_descriptor descriptor;
        uint32_t slot = ndlib_slot_next(queue);

        if (used == queue->sq_entries_count || slot == NO_SLOT) {
            rc = -EAGAIN;
            break;
        }
        rc = encode(queue, &requests[posted], &descriptor);
        if (rc != 0) {
            break;
        }
        descriptor.user_data = ndlib_slot_take(queue, requests[posted].user_data, state);
        if (last_slot) {
            *last_slot = slot;
        }
        queue->sq_entries[(producer + posted) & (queue->sq_entries_count - 1)] = descriptor;
    }
    if (posted == 0) {
        return count == 0 ? 0 : rc;
    }
    ndlib_submit(queue, producer + posted);
    return (int)posted;
}

int netdam_post(struct netdam_queue *queue, const struct netdam_request *requests, unsigned count)
{
    /* No ring holds more than this, so that the result fits an int. */
    if (count > UINT32_C(1) << NETDAM_RING_LOG2_MAX) {
        count = UINT32_C(1) << NETDAM_RING_LOG2_MAX;
    }
    return ndlib_post(queue, requests, count, NDLIB_SLOT_POSTED, NULL);
}

static inline int take(struct netdam_queue *queue, struct netdam_completion *completion, uint32_t *slot_out)
{
    for (;;) {
        uint32_t slot;

        if (queue->cq_consumer == queue->cq_producer) {
            uint32_t producer;

            if (queue->broken) {
                return -EIO;
            }
            /* Acquire: entries below `producer`, and the memory they speak of, are as the device left them. */
            producer = ndlib_load_acquire(&queue->cq->producer);
            if (producer == queue->cq_consumer) {
                return 0;
            }
            if (producer - queue->cq_consumer > queue->cq_entries_count) {
                queue->broken = true;
                return -EIO;
            }
            ndlib_load_barrier();
            queue->cq_producer = producer;
        }
        *completion = queue->cq_entries[queue->cq_consumer & (queue->cq_entries_count - 1)];
        queue->cq_consumer++;

        slot = (uint32_t)completion->user_data;
        if (slot >= queue->slots_count || queue->slots[slot].state == NDLIB_SLOT_FREE ||
            queue->slots[slot].uses != completion->user_data >> 32 ||
            (queue->slots[slot].state == NDLIB_SLOT_RECEIVE) !=
                ((completion->flags & NETDAM_COMPLETION_RECEIVE) != 0)) {
            ndlib_log(&queue->device->log, NETDAM_LOG_WARNING, "%s: queue pair %u completed a request never posted",
                      queue->device->backend.name, queue->index);
            continue;
        }
        if (queue->slots[slot].state == NDLIB_SLOT_ABANDONED) {
            ndlib_slot_free(queue, slot);
            continue;
        }
        completion->user_data = queue->slots[slot].user_data;
        *slot_out = slot;
        return 1;
    }
}

int ndlib_take(struct netdam_queue *queue, struct netdam_completion *completion, uint32_t *slot)
{
    return take(queue, completion, slot);
}

void ndlib_release(struct netdam_queue *queue)
{
    /* Release: our loads of the entries come before the device may overwrite them. */
    ndlib_store_release(&queue->cq->consumer, queue->cq_consumer);
}

void ndlib_set_aside(struct netdam_queue *queue, const struct netdam_completion *completion, uint32_t slot)
{
    struct netdam_completion *place = &queue->aside[(queue->aside_first + queue->aside_count) % queue->slots_count];

    *place = *completion;
    /* user_data is in the slot, and the slot must be known when it is polled. */
    place->user_data = slot;
    queue->aside_count++;
}

int netdam_poll(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count)
{
    bool was_stale = ndlib_is_stale(queue->device, queue->epoch);
    unsigned taken = 0;
    int rc = 0;

    if (count > INT32_MAX) {
        count = INT32_MAX;
    }
    while (taken < count && queue->aside_count > 0) {
        uint32_t slot = (uint32_t)queue->aside[queue->aside_first].user_data;

        completions[taken] = queue->aside[queue->aside_first];
        completions[taken].user_data = queue->slots[slot].user_data;
        queue->aside_first = (queue->aside_first + 1) % queue->slots_count;
        queue->aside_count--;
        ndlib_slot_free(queue, slot);
        taken++;
    }
    if (taken < count) {
        uint32_t consumer = queue->cq_consumer;
        uint32_t slot;

        while (taken < count && (rc = take(queue, &completions[taken], &slot)) == 1) {
            ndlib_slot_free(queue, slot);
            taken++;
        }
        if (consumer != queue->cq_consumer) {
            ndlib_release(queue);
        }
    }
    if (taken > 0) {
        return (int)taken;
    }
    if (rc == 0 && count > 0 && was_stale) {
        return -ESTALE;
    }
    return rc;
}

int netdam_queue_fd(const struct netdam_queue *queue)
{
    return queue->fd >= 0 ? queue->fd : -ENOTSUP;
}

int netdam_queue_arm(struct netdam_queue *queue)
{
    struct pollfd pollfd = {.fd = queue->fd, .events = POLLIN};
    uint64_t events;

    if (queue->fd < 0) {
        return -ENOTSUP;
    }
    if (queue->broken) {
        return -EIO;
    }
    if (ndlib_is_stale(queue->device, queue->epoch)) {
        return -ESTALE;
    }
    /* What is left from last time would end the sleep at once. */
    if (poll(&pollfd, 1, 0) == 1 && read(queue->fd, &events, sizeof(events)) < 0) {
        return -errno;
    }
    ndlib_store_relaxed(&queue->cq->arm, ++queue->arm);
    /* Our arm before our look at the index, as the device does index before arm: one of us sees the other. */
    ndlib_full_barrier();
    if (queue->aside_count > 0 || ndlib_load_relaxed(&queue->cq->producer) != queue->cq_consumer) {
        return -EAGAIN;
    }
    return 0;
}
