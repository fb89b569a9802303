/* SPDX-License-Identifier: BSD-3-Clause */
/* An output port with a queue for each priority: the most urgent frame that waits is sent next, and none is cut short. */
#ifndef NDSIM_VT_QUEUE_H
#define NDSIM_VT_QUEUE_H

#include "vt/line.h"

#include <stdbool.h>

#define NDSIM_PRIORITIES 8u

struct ndsim_queued {
    uint64_t frame;    /* the caller's name for it */
    uint64_t ready_ns; /* it is not sent before */
    uint32_t bytes;    /* on the line */
};

/* First in, first out: a ring that grows. */
struct ndsim_fifo {
    struct ndsim_queued *entries;
    uint32_t room;
    uint32_t first;
    uint32_t count;
};

struct ndsim_queues {
    struct ndsim_line line;
    struct ndsim_fifo fifos[NDSIM_PRIORITIES];
    uint64_t bytes; /* that wait in all of them, without the frame being sent */
};

void ndsim_queues_init(struct ndsim_queues *queues, uint64_t bits_per_s);
/* Frees memory; what waits is the caller's business. */
void ndsim_queues_fini(struct ndsim_queues *queues);

/*
 * Adds a frame at the end of its priority's queue; 7 is the most urgent. `ready_ns` does not run backwards within a
 * priority. False if memory is short.
 */
bool ndsim_queues_put(struct ndsim_queues *queues, unsigned priority, uint64_t frame, uint32_t bytes,
                      uint64_t ready_ns);

/* When the next frame may be taken: the line is free and one is ready; UINT64_MAX if none waits. */
uint64_t ndsim_queues_due_ns(const struct ndsim_queues *queues);

/* Takes the frame that is sent at `now_ns`, with when its last bit leaves. False if none may be taken now. */
bool ndsim_queues_take(struct ndsim_queues *queues, uint64_t now_ns, uint64_t *frame, uint64_t *leaves_ns);

/* Frames that wait. */
uint32_t ndsim_queues_count(const struct ndsim_queues *queues);

/* Bytes that wait, and those of the frame being sent that have not left. */
uint64_t ndsim_queues_backlog(const struct ndsim_queues *queues, uint64_t now_ns);

#endif
