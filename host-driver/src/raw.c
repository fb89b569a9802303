/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordinary frames: queue pairs of type RAW, and which frames they get. */
#include <errno.h>
#include <string.h>

#include "internal.h"

int netdam_raw_post(struct netdam_queue *queue, const struct netdam_frame *frames, unsigned count)
{
    uint32_t producer = queue->sq_producer;
    unsigned posted;
    int64_t used;
    int rc = -EAGAIN;

    if (queue->type != NETDAM_QUEUE_RAW) {
        return -EINVAL;
    }
    used = ndlib_ring_used(queue, queue->sq, producer, queue->sq_entries_count);
    if (used < 0) {
        return (int)used;
    }
    for (posted = 0; posted < count; posted++, used++) {
        const struct netdam_frame *frame = &frames[posted];
        struct netdam_descriptor descriptor;

        if (used == queue->sq_entries_count || ndlib_slot_next(queue) == UINT32_MAX) {
            rc = -EAGAIN;
            break;
        }
        if (frame->length > queue->length_max) {
            rc = -EMSGSIZE;
            break;
        }
        memset(&descriptor, 0, sizeof(descriptor));
        rc = ndlib_encode_local(queue, &descriptor, frame->local, frame->length, frame->list, frame->list_count);
        if (rc != 0) {
            break;
        }
        descriptor.user_data = ndlib_slot_take(queue, frame->user_data, NDLIB_SLOT_POSTED);
        queue->sq_entries[(producer + posted) & (queue->sq_entries_count - 1)] = descriptor;
    }
    if (posted == 0) {
        return count == 0 ? 0 : rc;
    }
    ndlib_submit(queue, producer + posted);
    return (int)posted;
}

int netdam_raw_steer(struct netdam_queue *queue, enum netdam_steering rule, unsigned value)
{
    struct netdam_device *device = queue->device;
    const uint64_t arguments[] = {queue->index, rule, value};
    int rc;

    pthread_mutex_lock(&device->mutex);
    rc = ndlib_is_stale(device, queue->epoch) ? -ESTALE
                                              : ndlib_admin(device, NETDAM_ADMIN_STEERING_SET, arguments, 3, NULL);
    pthread_mutex_unlock(&device->mutex);
    return rc;
}
