/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in memory that somebody else may read and change at any time; where nobody can, this costs next to nothing. */
#ifndef NDFW_SHARED_H
#define NDFW_SHARED_H

#include "ndfw.h"

/* shared.c: the same where frames are shared. */
const uint8_t *ndfw_shared_begin_copy(struct ndfw *fw, const uint8_t *frame, size_t bytes);
void ndfw_shared_copy(struct ndfw *fw, size_t wanted);
const uint8_t *ndfw_shared_place(const struct ndfw *fw, const uint8_t *payload);
uint8_t *ndfw_shared_make(struct ndfw *fw, uint8_t *frame);
void ndfw_shared_made(struct ndfw *fw, size_t bytes);

/* Around a received frame; returns where to read it. Nothing beyond what was asked for is there yet. */
static inline const uint8_t *ndfw_shared_begin(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    return fw->config.shared_frames ? ndfw_shared_begin_copy(fw, frame, bytes) : frame;
}

static inline void ndfw_shared_end(struct ndfw *fw)
{
    fw->shared_frame = NULL;
}

/* Up to `end`, within the frame. */
static inline void ndfw_shared_need(struct ndfw *fw, const uint8_t *end)
{
    if (fw->shared_frame != NULL) {
        ndfw_shared_copy(fw, (size_t)(end - fw->shared_room));
    }
}

static inline void ndfw_shared_whole(struct ndfw *fw)
{
    if (fw->shared_frame != NULL) {
        ndfw_shared_copy(fw, fw->shared_bytes);
    }
}

/* Where to read the payload, once: values, on which nothing but values depends. */
static inline const uint8_t *ndfw_shared_payload(const struct ndfw *fw, const uint8_t *payload)
{
    return fw->shared_frame != NULL ? ndfw_shared_place(fw, payload) : payload;
}

/* Where to make a frame that goes to `frame`, and when it is made. */
static inline uint8_t *ndfw_shared_transmit(struct ndfw *fw, uint8_t *frame)
{
    return fw->config.shared_frames ? ndfw_shared_make(fw, frame) : frame;
}

static inline void ndfw_shared_transmitted(struct ndfw *fw, size_t bytes)
{
    if (fw->transmit_target != NULL) {
        ndfw_shared_made(fw, bytes);
    }
}

#endif
