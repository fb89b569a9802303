/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merging: requests that follow one another in a ring and wait share a packet. Adjacent WRITEs are put side by side;
 * REDUCEs of one range are combined by the ALU. Such a group is listed, sent and answered as its first operation, whose
 * descriptor speaks of the whole range meanwhile. If the node refuses the packet, nothing of it was applied, and each
 * request goes by itself.
 */
#include "ndfw.h"

/* Combined at a time: whole elements of every type. */
#define SCRATCH_BYTES 1024u

/* Of a descriptor that was checked, so that the combination is one of the table. */
static bool may_combine(const struct netdam_descriptor *descriptor)
{
    int algebra = netdam_algebra(descriptor->opcode, descriptor->operation, descriptor->type);

    return ((unsigned)algebra & NETDAM_ALG_GROUP) == NETDAM_ALG_GROUP;
}

/* Every flag but LIST asks for packets of one's own. */
static bool may_merge(const struct netdam_descriptor *descriptor)
{
    if ((descriptor->flags & ~(uint32_t)NETDAM_DESCRIPTOR_LIST) != 0 || descriptor->length == 0) {
        return false;
    }
    return descriptor->opcode == NETDAM_OP_WRITE || (descriptor->opcode == NETDAM_OP_REDUCE && may_combine(descriptor));
}

/*
 * True if nothing of a group has been sent, and another operation does the same at the same node and region. Whoever has
 * packets to send is listed, and a group has but one packet. WRITE has no operation, which tells it from REDUCE.
 */
static bool may_take(const struct ndfw_operation *first, const struct ndfw_operation *other)
{
    const struct netdam_descriptor *a = &first->descriptor, *b = &other->descriptor;

    return first->listed && !first->single && first->group_count < NDFW_GROUP_MAX && first->queue == other->queue &&
           a->peer == b->peer && a->remote_key == b->remote_key && a->operation == b->operation && a->type == b->type;
}

static void link_behind(struct ndfw *fw, struct ndfw_operation *first, uint32_t before, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];

    operation->group_next = fw->operations[before].group_next;
    fw->operations[before].group_next = index;
    if (first->group_last == before) {
        first->group_last = index;
    }
    operation->grouped = true;
    first->group_count++;
    ndfw_count(fw, NETDAM_COUNTER_MERGED, 1);
}

/* The place that is listed is the first one's: who comes to stand before it takes that place. */
static void take_first_place(struct ndfw_operation *first, struct ndfw_operation *operation)
{
    struct netdam_descriptor descriptor = first->descriptor;
    struct ndfw_buffer buffer = first->buffer;

    descriptor.length = first->own_length;
    first->descriptor = operation->descriptor;
    first->buffer = operation->buffer;
    first->own_length = operation->descriptor.length;
    operation->descriptor = descriptor;
    operation->own_length = descriptor.length;
    operation->buffer = buffer;
}

/* Members are in the order of their addresses. */
static bool join(struct ndfw *fw, uint32_t first_index, uint32_t index)
{
    struct ndfw_operation *first = &fw->operations[first_index], *operation = &fw->operations[index];
    const struct netdam_descriptor *a = &first->descriptor, *b = &operation->descriptor;
    bool combined = a->opcode == NETDAM_OP_REDUCE;
    uint32_t bytes = combined ? a->length : a->length + b->length;

    if (bytes > ndfw_packet_payload_max(&fw->peers[a->peer], a)) {
        return false;
    }
    if (combined ? a->remote_address == b->remote_address && a->length == b->length
                 : a->remote_address + a->length == b->remote_address) {
        link_behind(fw, first, first->group_last, index);
    } else if (!combined && b->remote_address + b->length == a->remote_address) {
        take_first_place(first, operation);
        link_behind(fw, first, first_index, index);
    } else {
        return false;
    }
    first->descriptor.length = bytes;
    return true;
}

bool ndfw_merge(struct ndfw *fw, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];
    struct ndfw_queue *queue = &fw->queues[operation->queue];
    bool next = queue->group_end + 1 == queue->sq_consumer;
    uint32_t first = queue->group;

    operation->group_next = NDFW_NONE;
    operation->group_last = index;
    operation->group_count = 1;
    operation->own_length = operation->descriptor.length;
    if (fw->config.no_merge || !may_merge(&operation->descriptor)) {
        return false;
    }
    queue->group_end = queue->sq_consumer;
    if (next && may_take(&fw->operations[first], operation) && join(fw, first, index)) {
        return true;
    }
    queue->group = index;
    return false;
}

/* Takes a group apart before or after its packet: from now on each is sent by itself. */
bool ndfw_merge_split(struct ndfw *fw, uint32_t index)
{
    uint32_t count = fw->operations[index].group_count;

    for (uint32_t at = index, left = count; count > 1 && left > 0; left--) {
        struct ndfw_operation *operation = &fw->operations[at];
        uint32_t next = operation->group_next;

        operation->descriptor.length = operation->own_length;
        operation->group_count = 1;
        operation->grouped = false;
        operation->single = true;
        operation->next_offset = 0;
        operation->all_sent = false;
        if (!operation->listed) {
            ndfw_operation_list(fw, &fw->peers[operation->peer], at);
        }
        at = next;
    }
    return count > 1;
}

uint32_t ndfw_merge_pop(struct ndfw *fw, uint32_t index)
{
    struct ndfw_operation *first = &fw->operations[index], *next;

    if (first->group_count <= 1) {
        return NDFW_NONE;
    }
    next = &fw->operations[first->group_next];
    next->group_count = first->group_count - 1;
    next->grouped = false;
    next->all_sent = true;
    next->status = first->status;
    next->done_bytes = first->status == NETDAM_STATUS_OK ? next->own_length : 0;
    first->group_count = 1;
    first->descriptor.length = first->own_length;
    first->done_bytes = first->status == NETDAM_STATUS_OK ? first->own_length : 0;
    return first->group_next;
}

enum netdam_status ndfw_merge_spans(struct ndfw *fw, const struct ndfw_operation *operation,
                                    const struct ndfw_flight *flight, struct ndfw_span *spans, uint32_t *count)
{
    enum netdam_status status = NETDAM_STATUS_OK;

    if (operation->group_count <= 1) {
        return ndfw_buffer_spans(fw, &operation->buffer, flight->offset, flight->length, NETDAM_PERMISSION_LOCAL_READ,
                                 spans, count);
    }
    *count = 0;
    for (uint32_t left = operation->group_count; left > 0 && status == NETDAM_STATUS_OK; left--) {
        uint32_t found;

        status = ndfw_buffer_spans(fw, &operation->buffer, 0, operation->own_length, NETDAM_PERMISSION_LOCAL_READ,
                                   spans + *count, &found);
        *count += found;
        operation = left > 1 ? &fw->operations[operation->group_next] : operation;
    }
    return status;
}

/* The spans hold operands of `bytes` each, one behind the other, each cut anywhere: the first one op the others. */
static void combine(struct ndfw *fw, const struct ndfw_span *spans, uint32_t count, uint8_t *payload, uint32_t bytes,
                    const struct netdam_descriptor *descriptor)
{
    uint64_t scratch[SCRATCH_BYTES / sizeof(uint64_t)];
    uint32_t done = 0, filled = 0; /* of the present operand */
    bool first = true;

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t at = 0; at < spans[i].bytes;) {
            uint32_t step = spans[i].bytes - at;

            step = step < SCRATCH_BYTES - filled ? step : SCRATCH_BYTES - filled;
            ndfw_payload_load(fw, (uint8_t *)scratch + filled, spans[i].memory + at, step);
            at += step;
            filled += step;
            if (filled < SCRATCH_BYTES && done + filled < bytes) {
                continue;
            }
            if (first) {
                memcpy(payload + done, scratch, filled);
            } else {
                ndfw_alu_reduce_into(fw, payload + done, payload + done, (const uint8_t *)scratch, filled,
                                     descriptor->operation, descriptor->type);
                fw->work_bytes += filled;
            }
            first &= done + filled < bytes;
            done = done + filled < bytes ? done + filled : 0;
            filled = 0;
        }
    }
}

uint32_t ndfw_merge_load(struct ndfw *fw, const struct ndfw_operation *operation, const struct ndfw_span *spans,
                         uint32_t count, uint8_t *payload, bool with_crc)
{
    const struct netdam_descriptor *descriptor = &operation->descriptor;

    if (operation->group_count <= 1 || descriptor->opcode != NETDAM_OP_REDUCE) {
        return ndfw_spans_load(fw, spans, count, payload, with_crc);
    }
    combine(fw, spans, count, payload, descriptor->length, descriptor);
    return with_crc ? ndfw_crc32c(fw, 0, payload, descriptor->length) : 0;
}
