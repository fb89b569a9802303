/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The thread of a device with memif: runs the firmware and its port; spins a little, yields, then sleeps.
 *
 * Two locks, and always in this order: QEMU's big lock, then the turn. The thread takes the turn only. So whoever holds
 * the big lock (register accesses, reset, migration, the monitor, unplugging) may wait for the turn and even for the
 * thread's end. The turn goes in the order of arrival and the thread offers it after each round, so nobody waits for
 * more than one round, some tens of microseconds.
 *
 *   With the turn      the firmware's image and state, all that it calls (netdam_platform.c), the memif endpoint,
 *                      last_ns, touched, parked, quit. Not from within it: messages of interrupts, which may be aimed at
 *                      this device; they leave from a bottom half that holds the big lock alone.
 *   With both          replacing the image, starting and stopping it: so one of the two is enough to read s->image.
 *   With the big lock  configuration space, MSI-X, in_use, firmware_stale, main_memory_bytes, everything of a netdev.
 *                      The firmware asks for the latter two in register reads alone.
 *   Constant           properties, config, platform, memdev, from realize on.
 *   Atomic             doorbells, doorbell, kicked, asleep; irq_pending; QEMU's own dirty bitmaps.
 *
 * Going to sleep. Three may have something for the thread: software (rings), the peer (its ring), and whoever holds the
 * big lock. For each the thread first says that it wants to be woken, then looks once more; they first store what they
 * have, then look whether it wants that, with a full fence between on either side (Dekker's scheme):
 *   rings      prepare_sleep sets NEED_WAKEUP and looks at the indices; software stores its index and looks at the flag
 *   the peer   ndsim_memif_arm
 *   the others `asleep`, then `doorbells` and `kicked`; see netdam_thread_wake
 * Timers are the fourth: the time-out of ppoll, or where the guest's clock does not go by itself (qtest, icount) a timer
 * of QEMU's main loop, which kicks.
 */
#include "qemu/osdep.h"
#include <poll.h>
#include <sys/eventfd.h>
#include "qemu/rcu.h"
#include "netdam_device.h"
#include "trace.h"

/* Payload bytes per call of run: some tens of microseconds. */
#define NETDAM_THREAD_BUDGET (64u << 10)

/* A busy thread looks at memif's control channel, and at the real world, every so many rounds. */
#define NETDAM_THREAD_PROCESS_ROUNDS 256

/* The caller has stored, atomically, what the thread is to find. */
static void netdam_thread_rouse(NetdamThread *t)
{
    uint64_t one = 1;

    smp_mb();
    if (qatomic_read(&t->asleep) && qatomic_xchg(&t->asleep, false)) {
        ssize_t written = write(t->wake_fd, &one, sizeof(one));

        (void)written; /* EAGAIN: the count is at its limit, so it is readable already */
    }
}

void netdam_thread_wake(NetdamState *s)
{
    qatomic_set(&s->thread.kicked, true);
    netdam_thread_rouse(&s->thread);
}

bool netdam_thread_doorbell(NetdamState *s, uint64_t offset, unsigned bytes)
{
    NetdamThread *t = &s->thread;
    uint64_t pair = (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES;

    if (!t->running || bytes != 4 || offset < NETDAM_PAGE_DOORBELLS || offset % NETDAM_PAGE_BYTES != 0 ||
        pair >= s->queue_pairs) {
        return false;
    }
    qatomic_inc(&t->doorbell[pair]);
    qatomic_or(&t->doorbells, UINT64_C(1) << pair);
    netdam_thread_rouse(t);
    return true;
}

/* The firmware counts doorbells, each of them. */
static bool netdam_thread_ring(NetdamState *s, uint64_t now_ns)
{
    NetdamThread *t = &s->thread;
    uint64_t bits;
    bool any = false;

    if (qatomic_read(&t->doorbells) == 0) {
        return false;
    }
    for (bits = qatomic_xchg(&t->doorbells, 0); bits != 0; bits &= bits - 1) {
        unsigned pair = ctz64(bits);
        unsigned count;

        for (count = qatomic_xchg(&t->doorbell[pair], 0); count != 0; count--) {
            s->image.ops->register_write(s->image.state, NETDAM_PAGE_DOORBELLS + pair * NETDAM_PAGE_BYTES, 4, 1,
                                         now_ns);
        }
        any = true;
    }
    return any;
}

/*
 * A doorbell was written before whatever comes now, and a read may ask for their count. The thread does not miss it: it
 * looks at rings in the same turn in which it goes to sleep, and who rings after that wakes it.
 */
void netdam_enter(NetdamState *s)
{
    if (s->thread.running) {
        ndsim_turn_take(&s->thread.turn);
        netdam_thread_ring(s, netdam_run_now(s));
    }
}

void netdam_leave(NetdamState *s)
{
    if (s->thread.running) {
        ndsim_turn_pass(&s->thread.turn);
    }
}

/* Returns whether anything was done, so that there may soon be more. */
static bool netdam_thread_round(NetdamState *s, struct netdam_fw_run_result *result)
{
    const struct netdam_fw_ops *ops = s->image.ops;
    uint64_t now = netdam_run_now(s);
    bool busy;

    *result = (struct netdam_fw_run_result){.next_ns = NETDAM_FW_NEVER};
    qatomic_set(&s->thread.kicked, false);
    /* Without a link there is nothing but the control channel to wait for: a set-up has several messages. */
    if (s->thread.rounds++ % NETDAM_THREAD_PROCESS_ROUNDS == 0 || !s->memif.up) {
        netdam_memif_process(s);
    }
    busy = netdam_thread_ring(s, now);
    busy |= netdam_memif_receive(s, now) > 0;
    busy |= netdam_run_settle(s) > 0;
    ops->run(s->image.state, now, NETDAM_THREAD_BUDGET, result);
    busy |= netdam_run_settle(s) > 0 || result->work_bytes != 0 || (result->more && !result->port_full);
    if (busy) {
        trace_netdam_run(netdam_name(s), result->work_bytes, result->more, result->port_full, result->next_ns);
    }
    netdam_memif_tell(s);
    return busy;
}

/* How long to wait in poll for a time of the guest's clock; NULL: for ever. */
static struct timespec *netdam_thread_timeout(NetdamState *s, uint64_t until_ns, bool port_full,
                                              struct timespec *timeout)
{
    uint64_t left = UINT64_MAX;

    if (until_ns != NETDAM_FW_NEVER) {
        if (s->thread.alarm) {
            timer_mod_ns(s->thread.alarm, MIN(until_ns, INT64_MAX));
        } else {
            left = until_ns - MIN(until_ns, netdam_run_now(s));
        }
    }
    /* Nobody tells when the peer has made room. */
    if (port_full) {
        left = MIN(left, NDSIM_MEMIF_RETRY_NS);
    }
    if (left == UINT64_MAX) {
        return NULL;
    }
    *timeout = (struct timespec){.tv_sec = left / NANOSECONDS_PER_SECOND, .tv_nsec = left % NANOSECONDS_PER_SECOND};
    return timeout;
}

/* With the turn, but for the sleep itself. */
static void netdam_thread_sleep(NetdamState *s, uint64_t until_ns, bool port_full)
{
    NetdamThread *t = &s->thread;
    struct pollfd fds[] = {
        {.fd = t->wake_fd, .events = POLLIN},
        {.fd = ndsim_memif_fd(s->memif.end), .events = POLLIN},
    };
    struct timespec room;
    struct timespec *timeout;
    uint64_t count;
    int ready = 0;

    qatomic_set(&t->asleep, true);
    smp_mb();
    /* Doorbells that a parked thread is told of keep. */
    if (!qatomic_read(&t->kicked) && (t->parked || qatomic_read(&t->doorbells) == 0)) {
        timeout = netdam_thread_timeout(s, until_ns, port_full, &room);
        trace_netdam_thread_sleep(netdam_name(s), until_ns, port_full);
        ndsim_turn_pass(&t->turn);
        ready = ppoll(fds, t->parked ? 1 : ARRAY_SIZE(fds), timeout, NULL);
        ndsim_turn_take(&t->turn);
        trace_netdam_thread_wake(netdam_name(s), ready > 0 && fds[0].revents, ready > 0 && fds[1].revents);
    }
    qatomic_set(&t->asleep, false);
    if (ready > 0 && fds[0].revents != 0) {
        ssize_t got = read(t->wake_fd, &count, sizeof(count));

        (void)got;
    }
    /* The next round looks at the control channel, which may be why the descriptor was readable. */
    t->rounds = 0;
}

/* False: it would take too long, and nothing was done. */
static bool netdam_thread_yield(NetdamThread *t)
{
    bool yielded;

    ndsim_turn_pass(&t->turn);
    yielded = ndsim_share_yield(&t->share);
    ndsim_turn_take(&t->turn);
    return yielded;
}

static void *netdam_thread_run(void *opaque)
{
    NetdamState *s = opaque;
    NetdamThread *t = &s->thread;
    uint64_t idle = 0;

    ndsim_share_ask_for_short_slices();
    rcu_register_thread();
    ndsim_turn_take(&t->turn);
    while (!t->quit) {
        struct netdam_fw_run_result result;

        if (t->parked) {
            qatomic_set(&t->kicked, false);
            netdam_thread_sleep(s, NETDAM_FW_NEVER, false);
            continue;
        }
        idle = netdam_thread_round(s, &result) ? 0 : idle + 1;
        /* Whoever is to answer may need this processor; and what software posts meanwhile shares a packet. */
        if (idle == 0 && !result.more && netdam_thread_yield(t)) {
            continue;
        }
        ndsim_turn_offer(&t->turn);
        if (t->parked || t->quit || idle <= s->spins) {
            continue;
        }
        if (idle <= (uint64_t)s->spins + s->yields && netdam_thread_yield(t)) {
            continue;
        }
        /* What a full port holds back is not worth staying awake for, and rings are looked at when it is tried again. */
        if (!result.port_full && !s->image.ops->prepare_sleep(s->image.state)) {
            continue;
        }
        if (ndsim_memif_arm(s->memif.end)) {
            netdam_thread_sleep(s, result.next_ns, result.port_full);
        }
        ndsim_memif_disarm(s->memif.end);
        idle = 0;
    }
    ndsim_turn_pass(&t->turn);
    rcu_unregister_thread();
    return NULL;
}

void netdam_thread_park(NetdamState *s, bool park)
{
    if (!s->thread.running) {
        return;
    }
    netdam_enter(s);
    s->thread.parked = park;
    netdam_leave(s);
    netdam_thread_wake(s);
}

bool netdam_thread_is_asleep(NetdamState *s)
{
    NetdamThread *t = &s->thread;
    struct pollfd fds[] = {
        {.fd = t->wake_fd, .events = POLLIN},
        {.fd = t->running ? ndsim_memif_fd(s->memif.end) : -1, .events = POLLIN},
    };
    bool asleep;

    if (!t->running) {
        return false;
    }
    netdam_enter(s);
    asleep = qatomic_read(&t->asleep) && !qatomic_read(&t->kicked) && (t->parked || qatomic_read(&t->doorbells) == 0) &&
             (poll(fds, ARRAY_SIZE(fds), 0) == 0 || (t->parked && fds[0].revents == 0));
    netdam_leave(s);
    return asleep;
}

static void netdam_thread_alarm(void *opaque)
{
    netdam_thread_wake(opaque);
}

/* Whether somebody else makes the guest's clock go. */
static bool netdam_clock_is_driven(void)
{
    return qtest_enabled() || icount_enabled();
}

void netdam_thread_init(NetdamState *s)
{
    NetdamThread *t = &s->thread;

    if (!netdam_is_threaded(s)) {
        return;
    }
    *t = (NetdamThread){.parked = true, .running = true, .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    ndsim_turn_init(&t->turn);
    if (netdam_clock_is_driven()) {
        t->alarm = timer_new_ns(QEMU_CLOCK_VIRTUAL, netdam_thread_alarm, s);
    }
    /* Signals are blocked in threads that QEMU creates. */
    qemu_thread_create(&t->thread, "netdam", netdam_thread_run, s, QEMU_THREAD_JOINABLE);
}

void netdam_thread_exit(NetdamState *s)
{
    NetdamThread *t = &s->thread;

    if (!t->running) {
        return;
    }
    netdam_enter(s);
    t->quit = true;
    netdam_leave(s);
    netdam_thread_wake(s);
    qemu_thread_join(&t->thread);
    t->running = false;
    timer_free(t->alarm);
    t->alarm = NULL;
    close(t->wake_fd);
    ndsim_turn_destroy(&t->turn);
}
