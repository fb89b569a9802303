/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Migration of a device that nobody uses: what is sent, when it is refused, and which stores are told to it. */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "netdam_device.h"
#include "trace.h"

/*
 * The firmware's state cannot be moved: it belongs to one image, and a stream that somebody else wrote could not be
 * checked. So a device moves only when a reset would lose nothing: while no administration command was written since
 * the last one, and hence no region, queue pair or peer exists. At the other end the firmware starts as after a reset.
 *
 * A driver knows these registers from before, so they have to be the same there.
 */
#define NETDAM_MIGRATE_REGISTERS(X)                                                                                    \
    X(VECTORS, 4)                                                                                                      \
    X(MEMORY_BYTES, 8)                                                                                                 \
    X(QUEUE_PAIRS, 4)                                                                                                  \
    X(REGIONS, 4)                                                                                                      \
    X(PEERS, 4)                                                                                                        \
    X(MTU, 4)                                                                                                          \
    X(PAYLOAD_MAX, 4)                                                                                                  \
    X(LENGTH_MAX, 4)                                                                                                   \
    X(WINDOW, 4)                                                                                                       \
    X(MAC, 8)                                                                                                          \
    X(IPV4, 4)                                                                                                         \
    X(UDP_PORT, 4)                                                                                                     \
    X(IPV6_HIGH, 8)                                                                                                    \
    X(IPV6_LOW, 8)

static const struct {
    uint32_t offset;
    unsigned bytes;
    const char *name;
} netdam_migrate_registers[] = {
#define NETDAM_MIGRATE_REGISTER(name, bytes) {NETDAM_REG_##name, bytes, #name},
    NETDAM_MIGRATE_REGISTERS(NETDAM_MIGRATE_REGISTER)
#undef NETDAM_MIGRATE_REGISTER
};

QEMU_BUILD_BUG_ON(ARRAY_SIZE(netdam_migrate_registers) != NETDAM_MIGRATE_IDENTITY);

static uint64_t netdam_migrate_read(NetdamState *s, uint32_t offset, unsigned bytes)
{
    return s->image.ops->register_read(s->image.state, offset, bytes);
}

static int netdam_migrate_pre_save(void *opaque)
{
    NetdamState *s = opaque;
    unsigned i;

    if (s->in_use) {
        trace_netdam_migrate_err_in_use(netdam_name(s));
        error_report("netdam: %s is in use and cannot be migrated or saved: since its last reset a driver has given it "
                     "commands, and queue pairs and regions live in the firmware. Let the driver close or reset it",
                     netdam_name(s));
        return -EBUSY;
    }
    netdam_enter(s);
    for (i = 0; i < NETDAM_MIGRATE_IDENTITY; i++) {
        s->migrate.identity[i] =
            netdam_migrate_read(s, netdam_migrate_registers[i].offset, netdam_migrate_registers[i].bytes);
    }
    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        s->migrate.arguments[i] = netdam_migrate_read(s, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8);
    }
    netdam_leave(s);
    return 0;
}

static bool netdam_migrate_restart(NetdamState *s)
{
    Error *error = NULL;
    unsigned i;

    netdam_port_discard(s);
    netdam_irq_clear(s);
    s->last_ns = 0;
    if (!netdam_start(s, &error)) {
        error_report_err(error);
        return false;
    }
    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        s->image.ops->register_write(s->image.state, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, s->migrate.arguments[i],
                                     netdam_run_now(s));
    }
    return true;
}

static bool netdam_migrate_is_same(NetdamState *s)
{
    unsigned i;

    for (i = 0; i < NETDAM_MIGRATE_IDENTITY; i++) {
        uint64_t own = netdam_migrate_read(s, netdam_migrate_registers[i].offset, netdam_migrate_registers[i].bytes);

        if (s->migrate.identity[i] != own) {
            trace_netdam_migrate_err_identity(netdam_name(s), netdam_migrate_registers[i].name, own,
                                              s->migrate.identity[i]);
            error_report("netdam: %s: register %s is 0x%" PRIx64 " here and 0x%" PRIx64 " where the stream comes from",
                         netdam_name(s), netdam_migrate_registers[i].name, own, s->migrate.identity[i]);
            return false;
        }
    }
    return true;
}

/*
 * Of what the stream brings, the identity is compared, the arguments may be anything that a guest may write, and the
 * count is only shown. QEMU itself has compared configuration space, MSI-X table size included.
 */
static int netdam_migrate_post_load(void *opaque, int version)
{
    NetdamState *s = opaque;
    bool good;

    netdam_enter(s);
    good = netdam_migrate_is_same(s) && netdam_migrate_restart(s);
    netdam_leave(s);
    if (!good) {
        return -EINVAL;
    }
    /* An event that was under way is told here, and the link may be another one. */
    netdam_irq_event(s);
    netdam_irq_schedule(s);
    trace_netdam_migrate_load(netdam_name(s));
    return 0;
}

const VMStateDescription netdam_vmstate = {
    .name = TYPE_NETDAM,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = netdam_migrate_pre_save,
    .post_load = netdam_migrate_post_load,
    .fields = (const VMStateField[]){VMSTATE_PCI_DEVICE(parent_obj, NetdamState), VMSTATE_MSIX(parent_obj, NetdamState),
                                     VMSTATE_UINT64(main_memory_bytes, NetdamState),
                                     VMSTATE_UINT64_ARRAY(migrate.identity, NetdamState, NETDAM_MIGRATE_IDENTITY),
                                     VMSTATE_UINT64_ARRAY(migrate.arguments, NetdamState, NETDAM_ADMIN_ARGS),
                                     VMSTATE_END_OF_LIST()},
};

/* Of what does not fit, the last range becomes the hull: marking too much is slow, but never wrong. */
void netdam_migrate_touched(NetdamState *s, uint64_t offset, uint64_t bytes)
{
    NetdamTouched *touched = &s->touched;
    unsigned last = touched->count - 1;
    uint64_t end = offset + bytes;

    if (touched->count > 0 && (touched->count == NETDAM_TOUCHED_MAX ||
                               (offset <= touched->range[last].end && end >= touched->range[last].begin))) {
        touched->range[last].begin = MIN(touched->range[last].begin, offset);
        touched->range[last].end = MAX(touched->range[last].end, end);
        return;
    }
    touched->range[touched->count].begin = offset;
    touched->range[touched->count].end = end;
    touched->count++;
}

/*
 * After the stores, since the thread holds no lock that the migration thread takes to collect the marks: one collected
 * before its store would be lost. The fence orders the stores before the look at whether anybody tracks, who first says
 * so and then reads memory.
 */
void netdam_migrate_settle(NetdamState *s)
{
    NetdamTouched *touched = &s->touched;
    unsigned i;

    if (touched->count == 0) {
        return;
    }
    smp_mb();
    if (unlikely(qatomic_read(&global_dirty_tracking) != 0)) {
        for (i = 0; i < touched->count; i++) {
            memory_region_set_dirty(host_memory_backend_get_memory(s->memdev), touched->range[i].begin,
                                    touched->range[i].end - touched->range[i].begin);
        }
    }
    touched->count = 0;
}
