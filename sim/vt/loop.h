/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: events that happen in the order of their times, and of their being scheduled where times are equal. */
#ifndef NDSIM_VT_LOOP_H
#define NDSIM_VT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NDSIM_NEVER UINT64_MAX

typedef void ndsim_handler(void *opaque, uint64_t value, uint64_t now_ns);

struct ndsim_event {
    uint64_t at_ns;
    uint64_t order;
    ndsim_handler *handler;
    void *opaque;
    uint64_t value;
};

struct ndsim_loop {
    struct ndsim_event *heap;
    size_t used;
    size_t room;
    uint64_t now_ns;
    uint64_t next_order;
};

void ndsim_loop_init(struct ndsim_loop *loop, uint64_t start_ns);
void ndsim_loop_fini(struct ndsim_loop *loop);

/* `handler(opaque, value, at_ns)` at `at_ns`, or now if that has passed. False if memory is short. */
bool ndsim_loop_at(struct ndsim_loop *loop, uint64_t at_ns, ndsim_handler *handler, void *opaque, uint64_t value);

/* When the next event is due, or NDSIM_NEVER. */
uint64_t ndsim_loop_next_ns(const struct ndsim_loop *loop);

/* Makes the next event happen if it is due at `until_ns` at the latest. Returns whether one did. */
bool ndsim_loop_step(struct ndsim_loop *loop, uint64_t until_ns);

/* All events up to `until_ns`; time is `until_ns` afterwards, unless that is NDSIM_NEVER. Returns how many. */
uint64_t ndsim_loop_run(struct ndsim_loop *loop, uint64_t until_ns);

#endif
