/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in memory that somebody else may read and change at any time: what is copied before it is looked at, and what
 * is made elsewhere before it can be seen. Everything that is interpreted is a copy; of a plain packet the payload, which
 * is only ever carried, compared or computed with, stays where it is and is copied once, to its place.
 */
#include "shared.h"

/* Headers of a packet with few segments; a frame no longer than this is copied whole. */
#define HEAD_BYTES 256u

const uint8_t *ndfw_shared_begin_copy(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    if (bytes > NDFW_FRAME_MAX) {
        return frame;
    }
    fw->shared_frame = frame;
    fw->shared_bytes = bytes;
    fw->shared_copied = 0;
    ndfw_shared_copy(fw, bytes < HEAD_BYTES ? bytes : HEAD_BYTES);
    return fw->shared_room;
}

void ndfw_shared_copy(struct ndfw *fw, size_t wanted)
{
    if (wanted > fw->shared_copied) {
        memcpy(fw->shared_room + fw->shared_copied, fw->shared_frame + fw->shared_copied, wanted - fw->shared_copied);
        fw->shared_copied = wanted;
    }
}

const uint8_t *ndfw_shared_place(const struct ndfw *fw, const uint8_t *payload)
{
    if (fw->shared_copied == fw->shared_bytes) {
        return payload;
    }
    return fw->shared_frame + (payload - fw->shared_room);
}

uint8_t *ndfw_shared_make(struct ndfw *fw, uint8_t *frame)
{
    /* A tenant's payload is clear until it is sealed, and its header is what is sealed. */
    fw->transmit_target = frame != NULL && fw->tenant_count != 0 ? frame : NULL;
    return fw->transmit_target != NULL ? fw->transmit_room : frame;
}

void ndfw_shared_made(struct ndfw *fw, size_t bytes)
{
    memcpy(fw->transmit_target, fw->transmit_room, bytes);
}
