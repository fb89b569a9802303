/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the firmware runs. With a netdev: in slices under the big lock, from QEMU's main loop or a doorbell, and asleep
 * between. With memif: in a thread (netdam_thread.c), which is told here.
 */
#include "qemu/osdep.h"
#include "netdam_device.h"
#include "trace.h"

/* Payload bytes per slice: some tens of microseconds, after which the main loop serves everybody else. */
#define NETDAM_RUN_BUDGET (64u << 10)

/* While the port takes nothing, timers are still looked at, but no more often than this. */
#define NETDAM_RUN_PORT_FULL_NS (1000 * SCALE_US)

/*
 * While a netdev holds a frame back, rings and timers are still looked at this often: it calls back when it has room,
 * but that may be never (a hub without another port), and requests end in bounded time all the same.
 */
#define NETDAM_RUN_PORT_HELD_NS (10 * SCALE_MS)

/* The guest's clock, so that the firmware's timers stand still while the machine does. */
uint64_t netdam_run_now(NetdamState *s)
{
    uint64_t now = MAX(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), 0);

    s->last_ns = MAX(s->last_ns, now);
    return s->last_ns;
}

void netdam_run_schedule(NetdamState *s)
{
    if (netdam_is_threaded(s)) {
        netdam_thread_wake(s);
    } else {
        qemu_bh_schedule(s->run_bh);
    }
}

unsigned netdam_run_settle(NetdamState *s)
{
    netdam_migrate_settle(s);
    netdam_irq_schedule(s);
    return netdam_port_flush(s);
}

static void netdam_run_arm(NetdamState *s, uint64_t when)
{
    if (when == NETDAM_FW_NEVER) {
        timer_del(s->run_timer);
    } else {
        timer_mod_ns(s->run_timer, MIN(when, INT64_MAX));
    }
}

/*
 * One slice; then again at once, or when the port has room, or when a timer, a frame or a doorbell says so. A doorbell
 * runs its slice where it is, in the virtual CPU's thread: waking the main loop would take longer than the slice.
 */
static void netdam_run_slice(NetdamState *s)
{
    struct netdam_fw_run_result result = {.next_ns = NETDAM_FW_NEVER};
    const struct netdam_fw_ops *ops = s->image.ops;
    uint64_t now = netdam_run_now(s);
    unsigned sent;

    /* A machine that stands still keeps its memory as it is; netdam_run_vm_change goes on. */
    if (!runstate_is_running()) {
        return;
    }
    ops->run(s->image.state, now, NETDAM_RUN_BUDGET, &result);
    trace_netdam_run(netdam_name(s), result.work_bytes, result.more, result.port_full, result.next_ns);
    sent = netdam_run_settle(s);

    if (result.port_full && sent == 0) {
        uint64_t later = now + NETDAM_RUN_PORT_FULL_NS;

        /* If the netdev holds nothing, the firmware wants what no port takes, and is asked by and by. */
        if (s->tx.waiting) {
            later = MIN(MAX(result.next_ns, later), now + NETDAM_RUN_PORT_HELD_NS);
        }
        netdam_run_arm(s, later);
        return;
    }
    /*
     * prepare_sleep sets NEED_WAKEUP before it looks at the rings, and the guest stores its index before it looks at
     * the flag: a descriptor posted now is either seen here or announced by a doorbell.
     */
    if (result.more || !ops->prepare_sleep(s->image.state)) {
        netdam_run_schedule(s);
    }
    netdam_run_arm(s, result.next_ns);
}

void netdam_run_at_once(NetdamState *s)
{
    if (netdam_is_threaded(s)) {
        netdam_thread_wake(s);
    } else {
        netdam_run_slice(s);
    }
}

static void netdam_run(void *opaque)
{
    netdam_run_slice(opaque);
}

static void netdam_run_vm_change(void *opaque, bool running, RunState state)
{
    NetdamState *s = opaque;

    /* The slice settles what waits, interrupts too. */
    if (netdam_is_threaded(s)) {
        netdam_thread_park(s, !running);
    } else if (running) {
        netdam_run_schedule(s);
    }
}

void netdam_run_init(NetdamState *s)
{
    s->run_bh = qemu_bh_new(netdam_run, s);
    s->run_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, netdam_run, s);
    s->vm_change = qemu_add_vm_change_state_handler(netdam_run_vm_change, s);
}

void netdam_run_exit(NetdamState *s)
{
    qemu_del_vm_change_state_handler(s->vm_change);
    timer_free(s->run_timer);
    qemu_bh_delete(s->run_bh);
}
