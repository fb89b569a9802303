/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive rings, and lists of local memory: what tells the device where the bytes of one message lie. */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* Memory for the lists of all slots, and a region through which the device may read it. */
static int lists_create(struct netdam_queue *queue)
{
    struct netdam_device *device = queue->device;
    uint64_t bytes = (uint64_t)queue->slots_count * NETDAM_LIST_MAX * sizeof(struct netdam_list_entry);
    int rc = netdam_alloc(device, bytes, 0, &queue->lists_offset);

    if (rc != 0) {
        return rc;
    }
    rc =
        netdam_region_create(device, queue->lists_offset, bytes, NETDAM_PERMISSION_LOCAL_READ, 0, &queue->lists_region);
    if (rc != 0) {
        netdam_free(device, queue->lists_offset);
        return rc;
    }
    queue->lists = netdam_region_pointer(queue->lists_region);
    return 0;
}

void ndlib_lists_destroy(struct netdam_queue *queue)
{
    struct netdam_device *device = queue->device;

    if (queue->lists && netdam_region_destroy(queue->lists_region) == 0) {
        netdam_free(device, queue->lists_offset);
    }
    queue->lists = NULL;
}

int ndlib_check_region(const struct netdam_queue *queue, const struct netdam_region *region)
{
    if (!region || region->device != queue->device) {
        return -EINVAL;
    }
    return region->epoch == queue->epoch ? 0 : -ESTALE;
}

static int encode_list(struct netdam_queue *queue, struct netdam_descriptor *descriptor,
                       const struct netdam_piece *list, unsigned count)
{
    struct netdam_list_entry entries[NETDAM_LIST_MAX];
    uint64_t length = 0;
    uint32_t place = ndlib_slot_next(queue) * NETDAM_LIST_MAX;
    int rc;

    if (count == 0 || count > NETDAM_LIST_MAX) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < count; i++) {
        rc = ndlib_check_region(queue, list[i].local.region);
        if (rc != 0) {
            return rc;
        }
        entries[i] = (struct netdam_list_entry){
            .local_region = list[i].local.region->index,
            .length = list[i].length,
            .local_address = list[i].local.address,
        };
        length += list[i].length;
    }
    if (length > queue->length_max) {
        return -EMSGSIZE;
    }
    if (descriptor->length != 0 && descriptor->length != length) {
        return -EINVAL;
    }
    if (!queue->lists) {
        rc = lists_create(queue);
        if (rc != 0) {
            return rc;
        }
    }
    /* The slot's last user has completed, so the device reads this place no more. */
    memcpy(&queue->lists[place], entries, count * sizeof(entries[0]));
    descriptor->flags |= NETDAM_DESCRIPTOR_LIST;
    descriptor->list_count = (uint8_t)count;
    descriptor->length = (uint32_t)length;
    descriptor->local_region = queue->lists_region->index;
    descriptor->u.buffer.local_address = (uint64_t)place * sizeof(entries[0]);
    return 0;
}

int ndlib_encode_local(struct netdam_queue *queue, struct netdam_descriptor *descriptor, struct netdam_local local,
                       uint32_t length, const struct netdam_piece *list, unsigned list_count)
{
    int rc;

    descriptor->length = length;
    if (list) {
        return local.region || local.address != 0 ? -EINVAL : encode_list(queue, descriptor, list, list_count);
    }
    rc = ndlib_check_region(queue, local.region);
    if (rc == 0) {
        descriptor->local_region = local.region->index;
        descriptor->u.buffer.local_address = local.address;
    }
    return rc;
}

int netdam_post_receive(struct netdam_queue *queue, const struct netdam_receive *receives, unsigned count)
{
    uint32_t producer = queue->rq_producer;
    unsigned posted;
    int64_t used;
    int rc = -EAGAIN;

    if (!queue->rq) {
        return -EINVAL;
    }
    used = ndlib_ring_used(queue, queue->rq, producer, queue->rq_entries_count);
    if (used < 0) {
        return (int)used;
    }
    for (posted = 0; posted < count; posted++, used++) {
        const struct netdam_receive *receive = &receives[posted];
        struct netdam_descriptor descriptor;

        if (used == queue->rq_entries_count || ndlib_slot_next(queue) == UINT32_MAX) {
            rc = -EAGAIN;
            break;
        }
        if (receive->length > queue->length_max) {
            rc = -EMSGSIZE;
            break;
        }
        memset(&descriptor, 0, sizeof(descriptor));
        rc =
            ndlib_encode_local(queue, &descriptor, receive->local, receive->length, receive->list, receive->list_count);
        if (rc != 0) {
            break;
        }
        descriptor.user_data = ndlib_slot_take(queue, receive->user_data, NDLIB_SLOT_RECEIVE);
        queue->rq_entries[(producer + posted) & (queue->rq_entries_count - 1)] = descriptor;
    }
    if (posted == 0) {
        return count == 0 ? 0 : rc;
    }
    queue->rq_producer = producer + posted;
    ndlib_announce(queue->rq, queue->rq_producer);
    return (int)posted;
}

uint64_t netdam_queue_receive_key(const struct netdam_queue *queue)
{
    return queue->receive_key;
}

unsigned netdam_queue_receives(const struct netdam_queue *queue)
{
    return queue->slots_receive;
}
