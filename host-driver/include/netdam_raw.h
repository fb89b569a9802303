/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordinary Ethernet frames, beside NetDAM. */
#ifndef LIBNETDAM_RAW_H
#define LIBNETDAM_RAW_H

#include "netdam_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Ordinary frames: a queue pair of type NETDAM_QUEUE_RAW makes the device a network card. What it may send, and which
 * frames reach it, is in docs/rings.md. Buffers are posted with netdam_post_receive(), and filled with one frame each:
 * the completion has NETDAM_COMPLETION_RECEIVE in its flags, and in @length how long the frame is. A frame for which
 * there is no buffer, or only one that is too short, is dropped (NETDAM_COUNTER_RAW_DROPPED).
 */

/**
 * struct netdam_frame - one Ethernet frame to send; zero all of it first
 * @user_data: returned in the completion
 * @local: where it lies, from the destination address on; the region needs NETDAM_PERMISSION_LOCAL_READ
 * @length: bytes, from 14 to the device's MTU and 14; with @list: 0, or the sum of the pieces
 * @list_count, @list: pieces that follow one another, instead of @local; as in struct netdam_request
 */
struct netdam_frame {
    uint64_t user_data;
    struct netdam_local local;
    uint32_t length;
    uint32_t list_count;
    const struct netdam_piece *list;
};

/**
 * netdam_raw_post() - put frames into the submission ring of a queue pair of type NETDAM_QUEUE_RAW
 * @frames: @count of them; what they and their lists say is copied, the bytes stay in use until the completion
 *
 * They leave in this order. A frame completes when it has left, or as NETDAM_STATUS_LOCAL_PERMISSION: its source is not
 * the device's MAC (and the queue pair has no rule NETDAM_STEERING_PROMISCUOUS), or it would pass for a NetDAM packet of
 * this device. Whether it arrives nobody tells.
 *
 * Returns and errors as netdam_post(); -EINVAL also for a queue pair of another type, for which netdam_post() is, as
 * that is not for this type.
 */
NETDAM_API int netdam_raw_post(struct netdam_queue *queue, const struct netdam_frame *frames, unsigned count);

/**
 * netdam_raw_steer() - have a queue pair of type NETDAM_QUEUE_RAW get the frames that a rule names
 * @rule: enum netdam_steering; @value: an EtherType or a UDP port, otherwise 0
 *
 * The rule lasts as long as the queue pair.
 *
 * Errors: -EINVAL (@value is not of the rule; the queue pair is of another type or has no receive ring), -EEXIST
 * (another queue pair has the rule), -ENOSPC (too many rules), -ESTALE, -EOPNOTSUPP (a broker's client that is not
 * privileged), -ENODEV, -EIO.
 */
NETDAM_API int netdam_raw_steer(struct netdam_queue *queue, enum netdam_steering rule, unsigned value);

#ifdef __cplusplus
}
#endif

#endif
