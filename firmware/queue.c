/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: taking descriptors out of rings, completing them, waking software. Nothing read here is trusted. */
#include "ndfw.h"

static struct netdam_ring *ring_at(struct ndfw *fw, uint64_t base)
{
    return (struct netdam_ring *)(void *)ndfw_memory(fw, base, sizeof(struct netdam_ring), NETDAM_FW_ACCESS_UPDATE);
}

void ndfw_queue_set_flags(struct ndfw *fw, uint32_t index, uint32_t flags)
{
    struct netdam_ring *ring = ring_at(fw, fw->queues[index].sq);

    __atomic_store_n(&ring->consumer_flags, flags, __ATOMIC_RELAXED);
}

static void complete(struct ndfw *fw, uint32_t index, const struct netdam_descriptor *descriptor,
                     enum netdam_status status, uint64_t result, uint32_t length, unsigned flags, uint8_t hop)
{
    struct ndfw_queue *queue = &fw->queues[index];
    struct netdam_completion completion = {
        .user_data = descriptor->user_data,
        .result = result,
        .length = length,
        .status = (uint8_t)status,
        .opcode = descriptor->opcode,
        .flags = (uint8_t)flags,
        .hop = hop,
        .queue_pair = index,
        .immediate = (flags & NETDAM_COMPLETION_IMMEDIATE) != 0 ? descriptor->immediate : 0,
    };
    uint64_t place = queue->cq + sizeof(struct netdam_ring) +
                     (uint64_t)(queue->cq_producer & (queue->cq_entries - 1)) * sizeof(completion);
    uint8_t *entry = ndfw_memory(fw, place, sizeof(completion), NETDAM_FW_ACCESS_WRITE);

    ndfw_store(entry, (const uint8_t *)&completion, sizeof(completion));
    queue->cq_producer++;
    queue->outstanding--;
    queue->completed = true;
    fw->signal_first = index < fw->signal_first ? index : fw->signal_first;
    fw->signal_end = index >= fw->signal_end ? index + 1 : fw->signal_end;
    /* Release: software that sees the index sees the entry, and the payload that was stored before it. */
    __atomic_store_n(&ring_at(fw, queue->cq)->producer, queue->cq_producer, __ATOMIC_RELEASE);
    ndfw_count(fw, NETDAM_COUNTER_COMPLETIONS, 1);
    ndfw_count(fw, NETDAM_COUNTER_COMPLETION_ERRORS, status != NETDAM_STATUS_OK);
    ndfw_trace(fw, NETDAM_FW_TRACE_COMPLETION, status, index, descriptor->user_data);
}

void ndfw_queue_signal(struct ndfw *fw)
{
    uint32_t first = fw->signal_first, end = fw->signal_end;

    fw->signal_first = NDFW_NONE;
    fw->signal_end = 0;
    for (uint32_t i = first; i < end; i++) {
        struct ndfw_queue *queue = &fw->queues[i];
        uint32_t arm;

        if (!queue->completed) {
            continue;
        }
        queue->completed = false;
        if (queue->vector >= fw->config.vectors) {
            continue;
        }
        /* Orders the store of `producer` before the load of `arm`; software does the opposite. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        arm = __atomic_load_n(&ring_at(fw, queue->cq)->arm, __ATOMIC_RELAXED);
        if (arm != queue->last_arm) {
            queue->last_arm = arm;
            ndfw_count(fw, NETDAM_COUNTER_INTERRUPTS, 1);
            fw->platform.interrupt(fw->platform.opaque, queue->vector);
        }
    }
}

/* Takes an operation out of its peer's list, wherever it is. */
static void unlist(struct ndfw *fw, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];
    struct ndfw_peer *peer = &fw->peers[operation->peer];
    uint32_t before = NDFW_NONE;

    if (!operation->listed) {
        return;
    }
    for (uint32_t at = peer->list_head; at != index; at = fw->operations[at].next) {
        before = at;
    }
    if (before == NDFW_NONE) {
        peer->list_head = operation->next;
    } else {
        fw->operations[before].next = operation->next;
    }
    if (peer->list_tail == index) {
        peer->list_tail = before;
    }
    operation->listed = false;
}

/* Takes an operation out of those that wait for an earlier ORDERED one. */
static void undefer(struct ndfw *fw, struct ndfw_peer *peer, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];
    uint32_t before = NDFW_NONE;

    for (uint32_t at = peer->deferred_head; at != index; at = fw->operations[at].next) {
        before = at;
    }
    if (before == NDFW_NONE) {
        peer->deferred_head = operation->next;
    } else {
        fw->operations[before].next = operation->next;
    }
    if (peer->deferred_tail == index) {
        peer->deferred_tail = before;
    }
    operation->deferred = false;
}

/* ORDERED operations towards one peer are sent one after the other. */
static void start_operation(struct ndfw *fw, struct ndfw_peer *peer, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];

    if ((operation->descriptor.flags & NETDAM_DESCRIPTOR_ORDERED) == 0) {
        ndfw_operation_list(fw, peer, index);
    } else if (peer->ordered == NDFW_NONE) {
        peer->ordered = index;
        ndfw_operation_list(fw, peer, index);
    } else {
        operation->deferred = true;
        operation->next = NDFW_NONE;
        if (peer->deferred_tail == NDFW_NONE) {
            peer->deferred_head = index;
        } else {
            fw->operations[peer->deferred_tail].next = index;
        }
        peer->deferred_tail = index;
    }
}

static void start_next_ordered(struct ndfw *fw, struct ndfw_peer *peer)
{
    uint32_t next = peer->deferred_head;

    peer->ordered = NDFW_NONE;
    if (next != NDFW_NONE) {
        undefer(fw, peer, next);
        start_operation(fw, peer, next);
    }
}

void ndfw_operation_list(struct ndfw *fw, struct ndfw_peer *peer, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];

    operation->listed = true;
    operation->next = NDFW_NONE;
    if (peer->list_tail == NDFW_NONE) {
        peer->list_head = index;
    } else {
        fw->operations[peer->list_tail].next = index;
    }
    peer->list_tail = index;
}

void ndfw_operation_settle(struct ndfw *fw, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];
    unsigned flags = 0;
    uint32_t merged;

    if (!operation->all_sent || operation->flights != 0) {
        return;
    }
    merged = ndfw_merge_pop(fw, index);
    if (operation->status != NETDAM_STATUS_OK && (operation->done_bytes != 0 || operation->partial)) {
        flags |= NETDAM_COMPLETION_PARTIAL;
    }
    if (operation->parent == NDFW_NONE) {
        complete(fw, operation->queue, &operation->descriptor, (enum netdam_status)operation->status, operation->result,
                 operation->done_bytes, flags, operation->hop);
    }
    if (operation->tour != NDFW_NONE) {
        ndfw_tour_release(fw, operation);
    }
    /* What waits for one of these is looked at again. */
    fw->collective_due |= fw->operation_free == NDFW_NONE && fw->collective_count != 0;
    operation->in_use = false;
    operation->next = fw->operation_free;
    fw->operation_free = index;
    if (fw->peers[operation->peer].ordered == index) {
        start_next_ordered(fw, &fw->peers[operation->peer]);
    }
    if (merged != NDFW_NONE) {
        ndfw_operation_settle(fw, merged);
    }
    if (operation->parent != NDFW_NONE) {
        ndfw_collective_child(fw, operation->parent, operation->kind, (enum netdam_status)operation->status,
                              operation->hop);
    }
}

/*
 * Remembers the failure, sends nothing new, and completes once the packets under way have ended. The first failure
 * counts, but one that leaves an effect uncertain outdoes a refusal: it must not read as if nothing had been applied.
 */
void ndfw_operation_fail(struct ndfw *fw, uint32_t index, enum netdam_status status, uint8_t hop)
{
    struct ndfw_operation *operation = &fw->operations[index];

    if (operation->status == NETDAM_STATUS_OK ||
        (netdam_status_class_of(status) == NETDAM_STATUS_CLASS_UNCERTAIN &&
         netdam_status_class_of(operation->status) != NETDAM_STATUS_CLASS_UNCERTAIN)) {
        operation->status = (uint8_t)status;
        operation->hop = hop;
    }
    unlist(fw, index);
    if (operation->deferred) {
        undefer(fw, &fw->peers[operation->peer], index);
    }
    operation->held = false;
    operation->all_sent = true;
    ndfw_operation_settle(fw, index);
}

/* True if an operation is of a queue pair, or, with `queue` NDFW_NONE, part of a collective. */
static bool belongs(const struct ndfw_operation *operation, uint32_t queue, uint32_t collective)
{
    return queue != NDFW_NONE ? operation->queue == queue : operation->parent == collective;
}

static void end_operations(struct ndfw *fw, uint32_t queue, uint32_t collective, uint8_t hop)
{
    for (uint32_t p = 0; p <= fw->config.peers; p++) {
        struct ndfw_peer *peer = &fw->peers[p];
        struct ndfw_sequence *sequences[2] = {&peer->lane, &peer->laneless};

        for (int s = 0; peer->in_use && s < 2; s++) {
            uint64_t end = sequences[s]->next;

            for (uint64_t number = sequences[s]->floor; number < end; number++) {
                struct ndfw_flight *flight = ndfw_flight_at(fw, sequences[s], number);

                if (flight->state != NDFW_FLIGHT_FINISHED &&
                    belongs(&fw->operations[flight->operation], queue, collective)) {
                    ndfw_flight_finish(fw, peer, sequences[s], number, NETDAM_STATUS_FLUSHED, hop);
                }
            }
        }
    }
    for (uint32_t i = 0; i < fw->config.operations; i++) {
        const struct ndfw_operation *operation = &fw->operations[i];

        if (operation->in_use && !operation->grouped && belongs(operation, queue, collective)) {
            ndfw_operation_fail(fw, i, NETDAM_STATUS_FLUSHED, hop);
        }
    }
}

void ndfw_operations_end(struct ndfw *fw, uint32_t collective)
{
    end_operations(fw, NDFW_NONE, collective, NETDAM_HOP_NONE);
}

bool ndfw_device_executes(unsigned opcode, unsigned operation, unsigned type)
{
    switch (opcode) {
    case NETDAM_OP_CHAIN:
    case NETDAM_OP_ALL_GATHER:
    case NETDAM_OP_BROADCAST:
    case NETDAM_OP_BARRIER:
        return true;
    case NETDAM_OP_ALL_REDUCE:
    case NETDAM_OP_REDUCE_SCATTER:
        return ndfw_alu_executes(operation, type);
    default:
        return false;
    }
}

static bool is_executed(const struct netdam_descriptor *descriptor)
{
    struct ndfw_packet packet = {
        .opcode = descriptor->opcode,
        .operation = descriptor->operation,
        .type = descriptor->type,
    };

    enum netdam_status status = ndfw_check_instruction(&packet);

    return status == NETDAM_STATUS_OK || status == NETDAM_STATUS_BAD_LENGTH ||
           ndfw_device_executes(descriptor->opcode, descriptor->operation, descriptor->type);
}

/* What can be said of a descriptor before anything is sent. */
static enum netdam_status check_descriptor(struct ndfw *fw, struct ndfw_operation *operation)
{
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    unsigned flags = netdam_op_flags(descriptor->opcode);
    uint32_t element = netdam_type_bytes(descriptor->type);
    bool immediate = (descriptor->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;
    bool send = descriptor->opcode == NETDAM_OP_SEND;
    bool transaction = descriptor->opcode == NETDAM_OP_TRANSACTION;
    enum netdam_status status;

    if (!netdam_op_is_defined(descriptor->opcode) || (flags & (NETDAM_OPF_CONTROL | NETDAM_OPF_CHAIN)) != 0 ||
        !netdam_alu_is_defined(descriptor->operation) ||
        netdam_algebra(descriptor->opcode, descriptor->operation, descriptor->type) < 0 ||
        (descriptor->flags & ~NETDAM_DESCRIPTOR_FLAGS_DEFINED) != 0 || descriptor->length > NDFW_LENGTH_MAX) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (!is_executed(descriptor)) {
        return NETDAM_STATUS_LOCAL_UNSUPPORTED;
    }
    if (descriptor->opcode == NETDAM_OP_CHAIN) {
        return ndfw_tour_check(fw, operation);
    }
    if ((flags & NETDAM_OPF_DEVICE) != 0) {
        return ndfw_collective_check(fw, operation);
    }
    if (!ndfw_flags_suit(ndfw_wire_flags(descriptor), descriptor->opcode, descriptor->operation, descriptor->type) ||
        (descriptor->immediate != 0 && !immediate) ||
        ((flags & NETDAM_OPF_ATOMIC) != 0 &&
         (descriptor->length != element || descriptor->local_region != 0 || descriptor->list_count != 0 ||
          (descriptor->flags & NETDAM_DESCRIPTOR_LIST) != 0)) ||
        (descriptor->opcode != NETDAM_OP_CAS && !transaction && descriptor->u.operand[1] != 0) ||
        ((flags & NETDAM_OPF_MEMORY) == 0 &&
         ((descriptor->remote_key != 0 && !send) || descriptor->remote_address != 0)) ||
        !netdam_is_whole(descriptor->length, descriptor->type)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (descriptor->peer >= fw->config.peers || !fw->peers[descriptor->peer].in_use ||
        fw->peers[descriptor->peer].closing) {
        return NETDAM_STATUS_LOCAL_PEER;
    }
    if ((send || transaction) &&
        descriptor->length > ndfw_packet_payload_max(&fw->peers[descriptor->peer], descriptor)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (descriptor->remote_address > UINT64_MAX - descriptor->length) {
        return NETDAM_STATUS_BAD_RANGE;
    }
    if ((flags & NETDAM_OPF_ATOMIC) != 0) {
        return NETDAM_STATUS_OK;
    }
    status = ndfw_buffer_take(fw, descriptor,
                              ((flags & NETDAM_OPF_PAYLOAD) != 0 ? NETDAM_PERMISSION_LOCAL_READ : 0u) |
                                  ((flags & NETDAM_OPF_RETURNS) != 0 ? NETDAM_PERMISSION_LOCAL_WRITE : 0u),
                              &operation->buffer);
    return status == NETDAM_STATUS_OK && transaction ? ndfw_transaction_take(fw, descriptor, &operation->buffer)
                                                     : status;
}

static void accept(struct ndfw *fw, uint32_t queue, const struct netdam_descriptor *descriptor)
{
    uint32_t index = fw->operation_free;
    struct ndfw_operation *operation = &fw->operations[index];
    uint32_t next = operation->next;
    enum netdam_status status;

    memset(operation, 0, sizeof(*operation));
    operation->descriptor = *descriptor;
    operation->queue = queue;
    operation->peer = descriptor->opcode == NETDAM_OP_CHAIN ? fw->config.peers : descriptor->peer;
    operation->tour = operation->collective = operation->parent = NDFW_NONE;
    status = check_descriptor(fw, operation);
    fw->queues[queue].outstanding++;
    /* Charged, or software that posts nothing but mistakes, and polls them, could keep one run going for ever. */
    fw->work_bytes += sizeof(*descriptor);
    ndfw_count(fw, NETDAM_COUNTER_DESCRIPTORS, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_DESCRIPTOR, descriptor->opcode, queue, descriptor->user_data);
    if (status != NETDAM_STATUS_OK && operation->collective == NDFW_NONE) {
        complete(fw, queue, descriptor, status, 0, 0, 0, operation->hop);
        operation->next = next;
        return;
    }
    fw->operation_free = next;
    operation->in_use = true;
    if (descriptor->opcode == NETDAM_OP_CHAIN) {
        ndfw_tour_take(fw, operation);
    } else if ((netdam_op_flags(descriptor->opcode) & NETDAM_OPF_DEVICE) != 0) {
        ndfw_collective_start(fw, index, status);
        return;
    }
    if (!ndfw_merge(fw, index)) {
        start_operation(fw, &fw->peers[operation->peer], index);
    }
}

/* Everything outstanding ends, nothing more is taken: the ring cannot be believed any longer. */
static void ring_error(struct ndfw *fw, uint32_t index, uint32_t producer, uint32_t consumer)
{
    fw->queues[index].state = NETDAM_QUEUE_STATE_ERROR;
    ndfw_count(fw, NETDAM_COUNTER_RING_ERRORS, 1);
    ndfw_log(fw, NETDAM_FW_LOG_GUEST, "ring index claims more entries than the ring has; queue pair stopped", index,
             producer);
    ndfw_trace(fw, NETDAM_FW_TRACE_ERR_RING, index, producer, consumer);
    ndfw_queue_flush(fw, index, false);
}

/* Descriptors waiting in the SQ, or 0; whether one may be taken is another matter. */
static uint32_t waiting(struct ndfw *fw, uint32_t index)
{
    struct ndfw_queue *queue = &fw->queues[index];
    uint32_t producer;

    if (queue->state != NETDAM_QUEUE_STATE_READY) {
        return 0;
    }
    /* Acquire: the descriptors below the index are complete. */
    producer = __atomic_load_n(&ring_at(fw, queue->sq)->producer, __ATOMIC_ACQUIRE);
    if (producer - queue->sq_consumer > queue->sq_entries) {
        ring_error(fw, index, producer, queue->sq_consumer);
        return 0;
    }
    return producer - queue->sq_consumer;
}

/* Places in the CQ that no outstanding descriptor has a claim to. */
static uint32_t completion_room(struct ndfw *fw, uint32_t index)
{
    struct ndfw_queue *queue = &fw->queues[index];
    uint32_t consumer = __atomic_load_n(&ring_at(fw, queue->cq)->consumer, __ATOMIC_ACQUIRE);
    uint32_t used = queue->cq_producer - consumer;

    if (used > queue->cq_entries) {
        ring_error(fw, index, queue->cq_producer, consumer);
        return 0;
    }
    used += queue->outstanding;
    return used >= queue->cq_entries ? 0 : queue->cq_entries - used;
}

static void copy_descriptor(struct ndfw *fw, const struct ndfw_queue *queue, struct netdam_descriptor *descriptor)
{
    uint64_t place = queue->sq + sizeof(struct netdam_ring) +
                     (uint64_t)(queue->sq_consumer & (queue->sq_entries - 1)) * sizeof(*descriptor);

    ndfw_load((uint8_t *)descriptor, ndfw_memory(fw, place, sizeof(*descriptor), NETDAM_FW_ACCESS_READ),
              sizeof(*descriptor));
}

static void release_descriptor(struct ndfw *fw, struct ndfw_queue *queue)
{
    queue->sq_consumer++;
    /* Release: the copy above is finished before software may use the place again. */
    __atomic_store_n(&ring_at(fw, queue->sq)->consumer, queue->sq_consumer, __ATOMIC_RELEASE);
}

/* A place in its table, and an operation for its parts besides its own. There is one for itself. */
static bool collective_has_room(const struct ndfw *fw)
{
    return ndfw_collective_free(fw) != NDFW_NONE &&
           (fw->operations[fw->operation_free].next != NDFW_NONE || fw->config.operations < 2);
}

/* A fence waits for what is outstanding, a chain or a collective for a place in its table. */
static bool may_start(const struct ndfw *fw, const struct ndfw_queue *queue, const struct netdam_descriptor *descriptor)
{
    return ((descriptor->flags & NETDAM_DESCRIPTOR_FENCE) == 0 || queue->outstanding == 0) &&
           ((netdam_op_flags(descriptor->opcode) & NETDAM_OPF_DEVICE) == 0 ||
            (fw->tour_free != NDFW_NONE && (descriptor->opcode == NETDAM_OP_CHAIN || collective_has_room(fw))));
}

bool ndfw_queue_peek(struct ndfw *fw, uint32_t index, struct netdam_descriptor *descriptor)
{
    struct ndfw_queue *queue = &fw->queues[index];
    bool waits = waiting(fw, index) != 0;
    bool room = waits && completion_room(fw, index) != 0;

    queue->starved = waits && !room && queue->state == NETDAM_QUEUE_STATE_READY;
    if (room) {
        copy_descriptor(fw, queue, descriptor);
    }
    return room;
}

void ndfw_queue_finish(struct ndfw *fw, uint32_t index, const struct netdam_descriptor *descriptor,
                       enum netdam_status status, uint32_t length)
{
    release_descriptor(fw, &fw->queues[index]);
    fw->queues[index].outstanding++;
    fw->work_bytes += sizeof(struct netdam_descriptor);
    ndfw_count(fw, NETDAM_COUNTER_DESCRIPTORS, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_DESCRIPTOR, descriptor->opcode, index, descriptor->user_data);
    complete(fw, index, descriptor, status, 0, length, 0, 0);
}

uint32_t ndfw_queue_take(struct ndfw *fw, uint32_t index, uint32_t most)
{
    struct ndfw_queue *queue = &fw->queues[index];
    uint32_t count = waiting(fw, index);
    uint32_t taken = 0;

    queue->starved = false;
    while (taken < count && taken < most && fw->operation_free != NDFW_NONE) {
        struct netdam_descriptor descriptor;

        if (completion_room(fw, index) == 0) {
            queue->starved = queue->state == NETDAM_QUEUE_STATE_READY;
            break;
        }
        copy_descriptor(fw, queue, &descriptor);
        if (!may_start(fw, queue, &descriptor)) {
            break;
        }
        release_descriptor(fw, queue);
        accept(fw, index, &descriptor);
        taken++;
    }
    return taken;
}

bool ndfw_queue_could_take(struct ndfw *fw, uint32_t index)
{
    struct ndfw_queue *queue = &fw->queues[index];
    struct netdam_descriptor descriptor;
    bool was_ready = queue->state == NETDAM_QUEUE_STATE_READY;
    bool raw = queue->type == NETDAM_QUEUE_RAW;
    bool waits = waiting(fw, index) != 0 && (raw || fw->operation_free != NDFW_NONE);
    bool room = waits && completion_room(fw, index) != 0;

    if (was_ready && queue->state != NETDAM_QUEUE_STATE_READY) {
        return true; /* the ring has just broken, and software is to hear of what was flushed */
    }
    if (waits && !room && !queue->starved) {
        queue->starved = true; /* nobody rings for room in the CQ: the next run has to set the timer */
        return true;
    }
    if (!room || raw) {
        return room;
    }
    copy_descriptor(fw, queue, &descriptor);
    return may_start(fw, queue, &descriptor);
}

static void copy_receive_descriptor(struct ndfw *fw, const struct ndfw_queue *queue,
                                    struct netdam_descriptor *descriptor)
{
    uint64_t place = queue->rq + sizeof(struct netdam_ring) +
                     (uint64_t)(queue->rq_consumer & (queue->rq_entries - 1)) * sizeof(*descriptor);

    ndfw_load((uint8_t *)descriptor, ndfw_memory(fw, place, sizeof(*descriptor), NETDAM_FW_ACCESS_READ),
              sizeof(*descriptor));
}

static void release_receive_descriptor(struct ndfw *fw, struct ndfw_queue *queue)
{
    queue->rq_consumer++;
    __atomic_store_n(&ring_at(fw, queue->rq)->consumer, queue->rq_consumer, __ATOMIC_RELEASE);
}

/* Receive buffers posted. */
static uint32_t receive_waiting(struct ndfw *fw, uint32_t index)
{
    struct ndfw_queue *queue = &fw->queues[index];
    uint32_t producer;

    if (queue->state != NETDAM_QUEUE_STATE_READY || queue->rq_entries == 0) {
        return 0;
    }
    producer = __atomic_load_n(&ring_at(fw, queue->rq)->producer, __ATOMIC_ACQUIRE);
    if (producer - queue->rq_consumer > queue->rq_entries) {
        ring_error(fw, index, producer, queue->rq_consumer);
        return 0;
    }
    return producer - queue->rq_consumer;
}

static enum netdam_status check_receive_descriptor(struct ndfw *fw, const struct netdam_descriptor *descriptor,
                                                   struct ndfw_buffer *buffer)
{
    if (descriptor->opcode != 0 || descriptor->operation != 0 || descriptor->type != 0 ||
        (descriptor->flags & ~(uint32_t)NETDAM_DESCRIPTOR_LIST) != 0 || descriptor->peer != 0 ||
        descriptor->remote_key != 0 || descriptor->remote_address != 0 || descriptor->immediate != 0 ||
        descriptor->u.buffer.result_address != 0 || descriptor->length > NDFW_LENGTH_MAX) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    return ndfw_buffer_take(fw, descriptor, NETDAM_PERMISSION_LOCAL_WRITE, buffer);
}

/* Uses a receive buffer up. */
static void complete_receive(struct ndfw *fw, uint32_t index, const struct netdam_descriptor *descriptor,
                             enum netdam_status status, const struct ndfw_packet *packet)
{
    bool immediate = packet != NULL && (packet->flags & NETDAM_FLAG_IMMEDIATE) != 0;
    struct netdam_descriptor told = {
        .user_data = descriptor->user_data,
        .opcode = packet != NULL ? packet->opcode : 0,
        /* cppcheck-suppress nullPointer ; without a packet there is no immediate */
        .immediate = immediate ? (uint32_t)packet->immediate : 0,
    };

    release_receive_descriptor(fw, &fw->queues[index]);
    fw->queues[index].outstanding++;
    /* cppcheck-suppress nullPointer ; likewise */
    complete(fw, index, &told, status, immediate ? packet->immediate : 0, packet != NULL ? packet->length : 0,
             NETDAM_COMPLETION_RECEIVE | (immediate ? NETDAM_COMPLETION_IMMEDIATE : 0u), 0);
}

uint32_t ndfw_queue_by_receive_key(const struct ndfw *fw, uint64_t key, uint32_t tenant)
{
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE && fw->queues[i].receive_key == key && key != 0 &&
            fw->queues[i].tenant == tenant) {
            return i;
        }
    }
    return NDFW_NONE;
}

enum netdam_status ndfw_queue_receive(struct ndfw *fw, uint32_t index, const struct ndfw_packet *packet,
                                      uint8_t *memory)
{
    struct netdam_descriptor descriptor;
    struct ndfw_buffer buffer;
    struct ndfw_span spans[NETDAM_LIST_MAX];
    uint32_t count = 0;
    enum netdam_status status = NETDAM_STATUS_NOT_READY;

    /* A buffer that cannot be used completes as such, and the next has its chance; once round the ring at most. */
    for (uint32_t n = receive_waiting(fw, index); n > 0 && completion_room(fw, index) != 0; n--) {
        copy_receive_descriptor(fw, &fw->queues[index], &descriptor);
        status = check_receive_descriptor(fw, &descriptor, &buffer);
        if (status == NETDAM_STATUS_OK) {
            break;
        }
        complete_receive(fw, index, &descriptor, status, NULL);
        status = NETDAM_STATUS_NOT_READY;
    }
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if (memory != NULL) {
        ndfw_payload_store(fw, memory, packet->payload, packet->length);
    } else if (packet->length > descriptor.length) {
        return NETDAM_STATUS_BAD_LENGTH;
    } else if (ndfw_buffer_spans(fw, &buffer, 0, packet->length, NETDAM_PERMISSION_LOCAL_WRITE, spans, &count) ==
               NETDAM_STATUS_OK) {
        ndfw_spans_store(fw, spans, count, packet->payload);
    }
    complete_receive(fw, index, &descriptor, NETDAM_STATUS_OK, packet);
    return NETDAM_STATUS_OK;
}

/*
 * Ends everything outstanding of a queue pair. Packets under way lose their operation, so their numbers end too: what
 * they do at the node is not known. With `with_ring`, descriptors still in the ring end as well.
 */
void ndfw_queue_flush(struct ndfw *fw, uint32_t index, bool with_ring)
{
    struct ndfw_queue *queue = &fw->queues[index];

    ndfw_collectives_flush(fw, index);
    end_operations(fw, index, NDFW_NONE, 0);
    /* Software may go on posting meanwhile: what does not fit the ring once is not waited for. */
    for (uint32_t n = 0; with_ring && n < queue->sq_entries; n++) {
        struct netdam_descriptor descriptor;

        if (waiting(fw, index) == 0 || completion_room(fw, index) == 0) {
            break;
        }
        copy_descriptor(fw, queue, &descriptor);
        release_descriptor(fw, queue);
        queue->outstanding++;
        ndfw_count(fw, NETDAM_COUNTER_DESCRIPTORS, 1);
        complete(fw, index, &descriptor, NETDAM_STATUS_FLUSHED, 0, 0, 0, 0);
    }
    for (uint32_t n = 0; with_ring && n < queue->rq_entries; n++) {
        struct netdam_descriptor descriptor;

        if (receive_waiting(fw, index) == 0 || completion_room(fw, index) == 0) {
            break;
        }
        copy_receive_descriptor(fw, queue, &descriptor);
        complete_receive(fw, index, &descriptor, NETDAM_STATUS_FLUSHED, NULL);
    }
}
