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
 * The firmware may need this very CPU: more spinning makes latency worse, not better, and sleeping at once costs a
 * wake-up each time. Where there is an interrupt it ends the sleep; a cap bounds the harm if one is ever lost.
 */
#define SPINS            20u
#define YIELDS           64u
#define NAP_MIN_NS       UINT64_C(50000)
#define NAP_MAX_NS       UINT64_C(1000000)
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

int ndlib_wait_step(struct netdam_queue *queue, struct ndlib_waiter *waiter)
{
    uint64_t left = UINT64_MAX;
    unsigned tries = waiter->tries++;

    if (tries < SPINS) {
        ndlib_cpu_relax();
        return 0;
    }
    if (waiter->deadline_ns != UINT64_MAX) {
        uint64_t now = ndlib_now_ns();

        if (now >= waiter->deadline_ns) {
            return -ETIMEDOUT;
        }
        left = waiter->deadline_ns - now;
    }
    if (tries < SPINS + YIELDS) {
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
        unsigned naps = tries - SPINS - YIELDS;
        struct timespec sleep = to_timespec(min_u64(left, min_u64(NAP_MIN_NS << (naps < 8 ? naps : 8), NAP_MAX_NS)));

        nanosleep(&sleep, NULL);
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
    return rc;
}
