/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A port to a memif peer: frames through the endpoint of sim/platform/, called with the turn (netdam_thread.c). */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "netdam_device.h"
#include "trace.h"

/* Frames per round, so that a waiting register access is not kept for long. */
#define NETDAM_MEMIF_BATCH 32

/* The peer is told of so many frames before the rest of a round is ready, so that both work at the same time. */
#define NETDAM_MEMIF_TELL 8

static void netdam_memif_log(void *opaque, enum ndsim_memif_level level, const char *line)
{
    NetdamState *s = opaque;

    if (level == NDSIM_MEMIF_LOG_INFO) {
        trace_netdam_memif_log(netdam_name(s), line);
    } else {
        trace_netdam_memif_err_log(netdam_name(s), line);
    }
}

static bool netdam_memif_role(NetdamState *s, enum ndsim_memif_role *role, Error **errp)
{
    if (!s->memif_role || g_str_equal(s->memif_role, "client")) {
        *role = NDSIM_MEMIF_CLIENT;
    } else if (g_str_equal(s->memif_role, "server")) {
        *role = NDSIM_MEMIF_SERVER;
    } else {
        error_setg(errp, "netdam: role '%s' is neither server nor client", s->memif_role);
        return false;
    }
    return true;
}

bool netdam_memif_open(NetdamState *s, Error **errp)
{
    struct ndsim_memif_config config = {
        .path = s->memif_path,
        .id = s->memif_id,
        .secret = s->memif_secret,
        .name = "QEMU netdam",
        .frame_bytes = NETDAM_ETHERNET_BYTES + s->mtu,
        .shared_frames = true, /* as the firmware is told, and nothing else here looks into a frame */
        .log_opaque = s,
        .log = netdam_memif_log,
    };
    int error;

    if (!netdam_memif_role(s, &config.role, errp)) {
        return false;
    }
    error = ndsim_memif_open(&config, &s->memif.end);
    if (error == -EINVAL) {
        error_setg(errp,
                   "netdam: memif '%s': a path for a unix socket and a secret of at most %d characters are needed",
                   s->memif_path, NDSIM_MEMIF_SECRET_BYTES);
        return false;
    }
    if (error < 0) {
        error_setg_errno(errp, -error, "netdam: memif '%s'", s->memif_path);
        return false;
    }
    s->memif.up = false;
    s->memif.unsent = 0;
    return true;
}

void netdam_memif_close(NetdamState *s)
{
    ndsim_memif_close(s->memif.end);
    s->memif.end = NULL;
}

uint8_t *netdam_memif_transmit_begin(NetdamState *s, size_t bytes)
{
    size_t limit = NETDAM_ETHERNET_BYTES + s->mtu;
    uint8_t *frame;

    if (bytes > limit) {
        trace_netdam_port_err_frame(netdam_name(s), bytes, limit);
        return NULL;
    }
    frame = ndsim_memif_transmit_begin(s->memif.end, bytes);
    if (!frame) {
        trace_netdam_port_full(netdam_name(s));
    }
    return frame;
}

void netdam_memif_transmit_end(NetdamState *s, size_t bytes)
{
    trace_netdam_port_send(netdam_name(s), bytes, ndsim_memif_link_up(s->memif.end) ? bytes : -ENOTCONN);
    ndsim_memif_transmit_end(s->memif.end, bytes);
    s->memif.unsent++;
    if (s->memif.unsent % NETDAM_MEMIF_TELL == 0) {
        ndsim_memif_flush(s->memif.end);
    }
}

unsigned netdam_memif_flush(NetdamState *s)
{
    unsigned sent = s->memif.unsent;

    if (sent > 0) {
        ndsim_memif_flush(s->memif.end);
        s->memif.unsent = 0;
    }
    return sent;
}

static void netdam_memif_deliver(void *opaque, const uint8_t *frame, size_t bytes)
{
    NetdamState *s = opaque;

    trace_netdam_port_receive(netdam_name(s), bytes);
    s->image.ops->receive(s->image.state, frame, bytes, s->memif.now_ns);
    /* At the latest when all have been delivered; but what does not fit is marked too coarsely. */
    if (s->touched.count > NETDAM_TOUCHED_MAX / 2) {
        netdam_migrate_settle(s);
    }
}

unsigned netdam_memif_receive(NetdamState *s, uint64_t now_ns)
{
    s->memif.now_ns = now_ns;
    return ndsim_memif_receive(s->memif.end, NETDAM_MEMIF_BATCH, netdam_memif_deliver, s);
}

void netdam_memif_process(NetdamState *s)
{
    ndsim_memif_process(s->memif.end);
}

void netdam_memif_tell(NetdamState *s)
{
    bool up = ndsim_memif_link_up(s->memif.end);

    if (up != s->memif.up) {
        s->memif.up = up;
        trace_netdam_port_link(netdam_name(s), up);
        netdam_irq_event(s);
        netdam_irq_schedule(s);
    }
}

/* X(field of struct ndsim_memif_statistics, property, text) */
#define NETDAM_MEMIF_STATISTICS(X)                                                                                     \
    X(transmit_frames, "memif-transmit-frames", "frames sent over the memif link")                                     \
    X(transmit_bytes, "memif-transmit-bytes", "bytes sent over the memif link")                                        \
    X(transmit_full, "memif-transmit-full", "times that the ring to the peer was full")                                \
    X(transmit_down, "memif-transmit-down", "frames lost because the link was down")                                   \
    X(transmit_stalled, "memif-transmit-stalled", "frames lost because the peer had stopped reading")                  \
    X(transmit_too_long, "memif-transmit-too-long", "frames lost because the peer's buffers are too small")            \
    X(transmit_kicks, "memif-transmit-kicks", "wake-ups sent to the peer")                                             \
    X(receive_frames, "memif-receive-frames", "frames received over the memif link")                                   \
    X(receive_bytes, "memif-receive-bytes", "bytes received over the memif link")                                      \
    X(receive_too_long, "memif-receive-too-long", "frames dropped because they were longer than the MTU allows")       \
    X(receive_scattered, "memif-receive-scattered", "frames dropped because they came in more than 64 buffers")        \
    X(receive_empty, "memif-receive-empty", "frames without bytes, dropped")                                           \
    X(receive_reset, "memif-receive-reset", "frames dropped by a reset of the card")                                   \
    X(connects, "memif-connects", "times that the link came up")                                                       \
    X(disconnects, "memif-disconnects", "times that it went down")                                                     \
    X(refusals, "memif-refusals", "peers refused before the link was up")                                              \
    X(protocol_errors, "memif-protocol-errors", "peers given up because they broke the protocol")

static void netdam_memif_get(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
    NetdamState *s = NETDAM(obj);
    struct ndsim_memif_statistics statistics = {};
    uint64_t value;

    if (s->memif.end) {
        netdam_enter(s);
        ndsim_memif_get_statistics(s->memif.end, &statistics);
        netdam_leave(s);
    }
    value = *(uint64_t *)((char *)&statistics + (uintptr_t)opaque);
    visit_type_uint64(v, name, &value, errp);
}

static void netdam_memif_add(ObjectClass *klass, size_t offset, const char *name, const char *text)
{
    g_autofree char *description = g_strdup_printf("%s (read only)", text);

    object_class_property_add(klass, name, "uint64", netdam_memif_get, NULL, NULL, (void *)(uintptr_t)offset);
    object_class_property_set_description(klass, name, description);
}

static bool netdam_memif_get_asleep(Object *obj, Error **errp)
{
    return netdam_thread_is_asleep(NETDAM(obj));
}

void netdam_memif_add_properties(ObjectClass *klass)
{
#define NETDAM_MEMIF_ADD(field, name, text)                                                                            \
    netdam_memif_add(klass, offsetof(struct ndsim_memif_statistics, field), name, text);
    NETDAM_MEMIF_STATISTICS(NETDAM_MEMIF_ADD)
#undef NETDAM_MEMIF_ADD
    object_class_property_add_bool(klass, "asleep", netdam_memif_get_asleep, NULL);
    object_class_property_set_description(klass, "asleep",
                                          "with memif: whether the firmware's thread sleeps, and nothing has come up "
                                          "that it should look at (read only)");
}
