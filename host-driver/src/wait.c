/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for completions without ruining a small machine: spin shortly, yield, then sleep. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

#include "internal.h"
#include "mmio.h"

/*
 * The firmware may need this very CPU: much spinning makes latency worse, not better, and sleeping at once costs a
 * wake-up each time. So whoever waits yields for longer than a round trip through a network of this machine takes, and
 * sleeps then. Who has many requests under way that take longer than that knows it, from how fast they have completed:
 * it sleeps at once, for a part of what a request takes anyway, and finds several completions when it wakes up; the
 * firmware has the CPU meanwhile. Where there is an interrupt it ends the long sleep; a cap bounds the harm if one is
 * ever lost. Else naps are a part of the time waited so far, and so end that much too late at most.
 */
#define SPINS            20u
#define YIELD_ONE_NS     UINT64_C(200000)
#define YIELD_MANY_NS    UINT64_C(50000)
#define NAP_MIN_NS       UINT64_C(50000)
#define NAP_WORTH_NS     UINT64_C(250000)
#define NAP_MAX_NS       UINT64_C(1000000)
#define NAP_PART         4u
#define INTERRUPT_CAP_NS UINT64_C(20000000)

uint64_t ndlib_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t ndlib_deadline(uint64_t timeout_ns)
{
    uint64_t now = ndlib_now_ns();

    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
                             .tv_nsec = (long)(ns % UINT64_C(1000000000))};
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void nap(uint64_t ns)
{
    struct timespec sleep = to_timespec(ns);

    nanosleep(&sleep, NULL);
}

/* How long a request takes with so many under way, if they go on completing as they did; 0: not known. */
static uint64_t request_ns(const struct netdam_queue *queue)
{
    return queue->pace_ns * queue->slots_posted;
}

/* Of a wait that has looked at the clock: when it began to, and when it ended. */
static void measure_pace(struct netdam_queue *queue, uint64_t start_ns, uint64_t end_ns)
{
    uint32_t completed;

    if (queue->pace_since_ns == 0) {
        queue->pace_since_ns = start_ns;
    }
    completed = queue->cq_consumer - queue->pace_since;
    if (completed != 0) {
        queue->pace_ns = (queue->pace_ns + (end_ns - queue->pace_since_ns) / completed) / 2;
    }
    queue->pace_since = queue->cq_consumer;
    /* Once nothing is under way, time has nothing to do with the device. */
    queue->pace_since_ns = queue->slots_posted == 0 ? 0 : end_ns;
}

int ndlib_wait_step(struct netdam_queue *queue, struct ndlib_waiter *waiter)
{
    uint64_t now, waited, left;

    if (waiter->tries < SPINS) {
        waiter->tries++;
        ndlib_cpu_relax();
        return 0;
    }
    now = ndlib_now_ns();
    if (now >= waiter->deadline_ns) {
        return -ETIMEDOUT;
    }
    left = waiter->deadline_ns - now;
    if (waiter->start_ns == 0) {
        waiter->start_ns = now;
        if (request_ns(queue) / NAP_PART >= NAP_WORTH_NS && queue->slots_posted > 1) {
            nap(min_u64(left, min_u64(request_ns(queue) / NAP_PART, NAP_MAX_NS)));
            return 0;
        }
    }
    waited = now - waiter->start_ns;
    if (waited < (queue->slots_posted > 1 ? YIELD_MANY_NS : YIELD_ONE_NS)) {
        sched_yield();
        return 0;
    }
    if (queue->device->backend.lease && queue->device->backend.lease->is_gone(queue->device->backend.opaque)) {
        /* Nothing will complete any more: all handles are stale, and so the caller learns. */
        if (!ndlib_is_stale(queue->device, queue->epoch)) {
            atomic_fetch_add_explicit(&queue->device->epoch, 1, memory_order_acq_rel);
        }
        return 0;
    }
    if (queue->fd >= 0 && netdam_queue_arm(queue) == 0) {
        struct pollfd pollfd = {.fd = queue->fd, .events = POLLIN};
        struct timespec sleep = to_timespec(min_u64(left, INTERRUPT_CAP_NS));

        ppoll(&pollfd, 1, &sleep, NULL);
        return 0;
    }
    if (queue->fd < 0) {
        nap(min_u64(left, min_u64(waited / NAP_PART < NAP_MIN_NS ? NAP_MIN_NS : waited / NAP_PART, NAP_MAX_NS)));
    }
    return 0;
}

int netdam_wait(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count, uint64_t timeout_ns)
{
    struct ndlib_waiter waiter = {.tries = 0};
    int rc;

    if (count == 0) {
        return -EINVAL;
    }
    rc = netdam_poll(queue, completions, count);
    if (rc != 0) {
        return rc;
    }
    waiter.deadline_ns = ndlib_deadline(timeout_ns);
    do {
        rc = ndlib_wait_step(queue, &waiter);
        if (rc == 0) {
            rc = netdam_poll(queue, completions, count);
        }
    } while (rc == 0);
    if (waiter.start_ns != 0) {
        measure_pace(queue, waiter.start_ns, ndlib_now_ns());
    }
    return rc;
}
