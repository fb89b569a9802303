/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "share.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The shortest turn of the processor that Linux grants. */
#define SLICE_NS UINT64_C(100000)

/* A yield that took longer was no turn of somebody who had work and has done it. */
#define YIELD_LONG_NS UINT64_C(200000)

/* Another long yield so soon after moving: it is the same everywhere. */
#define MOVE_AGAIN_NS UINT64_C(20000000)

/* Without yielding for so long, twice as long if that was no better, and so on. */
#define CROWDED_FIRST_NS UINT64_C(5000000)
#define CROWDED_LIMIT_NS UINT64_C(40000000)

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

enum ndsim_share_step ndsim_share_judge(struct ndsim_share *share, uint64_t before_ns, uint64_t after_ns, bool may_move)
{
    if (after_ns - before_ns < YIELD_LONG_NS) {
        share->crowded_ns = 0;
        return NDSIM_SHARE_STAY;
    }
    if (may_move && (share->moved_ns == 0 || before_ns - share->moved_ns >= MOVE_AGAIN_NS)) {
        share->moved_ns = after_ns;
        return NDSIM_SHARE_MOVE;
    }
    share->crowded_ns = share->crowded_ns == 0 ? CROWDED_FIRST_NS : share->crowded_ns * 2;
    share->crowded_ns = share->crowded_ns < CROWDED_LIMIT_NS ? share->crowded_ns : CROWDED_LIMIT_NS;
    share->crowded_until_ns = after_ns + share->crowded_ns;
    return NDSIM_SHARE_CROWDED;
}

static bool get_processors(cpu_set_t *all)
{
    return sched_getaffinity(0, sizeof(*all), all) == 0 && CPU_COUNT(all) > 1;
}

/* Away from here; whether this thread stays there is the scheduler's choice again. */
static void move(const cpu_set_t *all)
{
    cpu_set_t others = *all;
    int here = sched_getcpu();

    if (here >= 0 && here < CPU_SETSIZE) {
        CPU_CLR(here, &others);
        (void)sched_setaffinity(0, sizeof(others), &others);
        (void)sched_setaffinity(0, sizeof(*all), all);
    }
}

bool ndsim_share_yield(struct ndsim_share *share)
{
    uint64_t before_ns = clock_ns();
    uint64_t after_ns;
    bool may_move;
    cpu_set_t all;

    if (before_ns < share->crowded_until_ns) {
        return false;
    }
    sched_yield();
    after_ns = clock_ns();
    may_move = after_ns - before_ns >= YIELD_LONG_NS && get_processors(&all);
    if (ndsim_share_judge(share, before_ns, after_ns, may_move) == NDSIM_SHARE_MOVE) {
        move(&all);
    }
    return true;
}

void ndsim_share_ask_for_short_slices(void)
{
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
    } attributes = {0};

    if (syscall(SYS_sched_getattr, 0, &attributes, (unsigned)sizeof(attributes), 0) == 0) {
        attributes.size = sizeof(attributes);
        attributes.runtime = SLICE_NS;
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
}
