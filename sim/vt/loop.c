/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: a binary heap of events. */
#include "vt/loop.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 256u

static bool before(const struct ndsim_event *a, const struct ndsim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void ndsim_loop_init(struct ndsim_loop *loop, uint64_t start_ns)
{
    memset(loop, 0, sizeof(*loop));
    loop->now_ns = start_ns;
}

void ndsim_loop_fini(struct ndsim_loop *loop)
{
    free(loop->heap);
    memset(loop, 0, sizeof(*loop));
}

bool ndsim_loop_at(struct ndsim_loop *loop, uint64_t at_ns, ndsim_handler *handler, void *opaque, uint64_t value)
{
    struct ndsim_event event = {
        .at_ns = at_ns > loop->now_ns ? at_ns : loop->now_ns,
        .order = loop->next_order,
        .handler = handler,
        .opaque = opaque,
        .value = value,
    };
    size_t at;

    if (loop->used == loop->room) {
        size_t room = loop->room == 0 ? ROOM_FIRST : 2 * loop->room;
        struct ndsim_event *heap = realloc(loop->heap, room * sizeof(*heap));

        if (heap == NULL) {
            return false;
        }
        loop->heap = heap;
        loop->room = room;
    }
    loop->next_order++;
    at = loop->used++;
    while (at != 0 && before(&event, &loop->heap[(at - 1) / 2])) {
        loop->heap[at] = loop->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    loop->heap[at] = event;
    return true;
}

uint64_t ndsim_loop_next_ns(const struct ndsim_loop *loop)
{
    return loop->used == 0 ? NDSIM_NEVER : loop->heap[0].at_ns;
}

static struct ndsim_event take_first(struct ndsim_loop *loop)
{
    struct ndsim_event first = loop->heap[0];
    struct ndsim_event last = loop->heap[--loop->used];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= loop->used) {
            break;
        }
        if (child + 1 < loop->used && before(&loop->heap[child + 1], &loop->heap[child])) {
            child++;
        }
        if (!before(&loop->heap[child], &last)) {
            break;
        }
        loop->heap[at] = loop->heap[child];
        at = child;
    }
    loop->heap[at] = last;
    return first;
}

bool ndsim_loop_step(struct ndsim_loop *loop, uint64_t until_ns)
{
    struct ndsim_event event;

    if (loop->used == 0 || loop->heap[0].at_ns > until_ns) {
        return false;
    }
    event = take_first(loop);
    loop->now_ns = event.at_ns;
    event.handler(event.opaque, event.value, event.at_ns);
    return true;
}

uint64_t ndsim_loop_run(struct ndsim_loop *loop, uint64_t until_ns)
{
    uint64_t events = 0;

    while (ndsim_loop_step(loop, until_ns)) {
        events++;
    }
    if (until_ns != NDSIM_NEVER && loop->now_ns < until_ns) {
        loop->now_ns = until_ns;
    }
    return events;
}
