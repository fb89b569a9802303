/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port: frames from and to a QEMU netdev, with its back-pressure; a memif port is passed on to netdam_memif.c. */
#include "qemu/osdep.h"
#include "netdam_device.h"
#include "trace.h"

static NetClientState *netdam_port_client(NetdamState *s)
{
    return qemu_get_queue(s->nic);
}

bool netdam_port_link_up(NetdamState *s)
{
    NetClientState *nc;

    if (netdam_is_threaded(s)) {
        return s->memif.up;
    }
    nc = netdam_port_client(s);
    return nc->peer && !nc->link_down;
}

static unsigned netdam_tx_used(const NetdamTxRing *tx)
{
    return tx->head - tx->tail;
}

static uint8_t *netdam_tx_slot(NetdamTxRing *tx, unsigned index)
{
    return tx->frames + (index % NETDAM_TX_SLOTS) * tx->slot_bytes;
}

uint8_t *netdam_port_transmit_begin(NetdamState *s, size_t bytes)
{
    NetdamTxRing *tx = &s->tx;

    if (netdam_is_threaded(s)) {
        return netdam_memif_transmit_begin(s, bytes);
    }
    if (bytes > tx->slot_bytes) {
        trace_netdam_port_err_frame(netdam_name(s), bytes, tx->slot_bytes);
        return NULL;
    }
    if (netdam_tx_used(tx) == NETDAM_TX_SLOTS) {
        trace_netdam_port_full(netdam_name(s));
        return NULL;
    }
    return netdam_tx_slot(tx, tx->head);
}

void netdam_port_transmit_end(NetdamState *s, size_t bytes)
{
    NetdamTxRing *tx = &s->tx;

    if (netdam_is_threaded(s)) {
        netdam_memif_transmit_end(s, bytes);
        return;
    }
    tx->bytes[tx->head % NETDAM_TX_SLOTS] = MIN(bytes, tx->slot_bytes);
    tx->head++;
}

/* The netdev, or a queue in front of it, has taken or dropped the frame it held. Never called from within firmware. */
static void netdam_port_sent(NetClientState *nc, ssize_t ret)
{
    NetdamState *s = qemu_get_nic_opaque(nc);

    trace_netdam_port_ready(netdam_name(s), netdam_tx_used(&s->tx));
    s->tx.waiting = false;
    netdam_port_flush(s);
    netdam_run_schedule(s);
}

/*
 * Sending may deliver a frame to this device before it returns (two devices on one hub), which may put further frames
 * into the ring; the outermost call sends those too.
 */
unsigned netdam_port_flush(NetdamState *s)
{
    NetdamTxRing *tx = &s->tx;
    unsigned sent = 0;

    if (netdam_is_threaded(s)) {
        return netdam_memif_flush(s);
    }
    if (tx->flushing) {
        return 0;
    }
    tx->flushing = true;
    while (!tx->waiting && netdam_tx_used(tx) > 0) {
        uint8_t *frame = netdam_tx_slot(tx, tx->tail);
        size_t bytes = tx->bytes[tx->tail % NETDAM_TX_SLOTS];
        ssize_t ret;

        ret = qemu_send_packet_async(netdam_port_client(s), frame, bytes, netdam_port_sent);
        trace_netdam_port_send(netdam_name(s), bytes, ret);
        /* 0: QEMU has copied the frame and calls back when it has left. Negative: lost, as on any wire. */
        tx->waiting = ret == 0;
        tx->tail++;
        sent++;
    }
    tx->flushing = false;
    return sent;
}

void netdam_port_discard(NetdamState *s)
{
    if (netdam_is_threaded(s)) {
        ndsim_memif_reset(s->memif.end);
        s->memif.unsent = 0;
        return;
    }
    s->tx.tail = s->tx.head;
    /* Calls back for a frame that is held. */
    qemu_purge_queued_packets(netdam_port_client(s));
    s->tx.waiting = false;
}

/*
 * Frames are taken even when no answer could be sent: two devices that each wait for the other to read would wait for
 * ever. An answer without room is dropped and counted by the firmware, and the request comes again.
 */
static ssize_t netdam_port_receive(NetClientState *nc, const uint8_t *frame, size_t bytes)
{
    NetdamState *s = qemu_get_nic_opaque(nc);

    trace_netdam_port_receive(netdam_name(s), bytes);
    s->image.ops->receive(s->image.state, frame, bytes, netdam_run_now(s));
    netdam_run_settle(s);
    netdam_run_schedule(s);
    return bytes;
}

static void netdam_port_link_status_changed(NetClientState *nc)
{
    NetdamState *s = qemu_get_nic_opaque(nc);

    trace_netdam_port_link(netdam_name(s), netdam_port_link_up(s));
    /* A netdev that goes away may never call back. */
    s->tx.waiting = false;
    netdam_port_flush(s);
    netdam_irq_event(s);
    netdam_irq_schedule(s);
    netdam_run_schedule(s);
}

static NetClientInfo netdam_port_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .receive = netdam_port_receive,
    .link_status_changed = netdam_port_link_status_changed,
};

bool netdam_port_init(NetdamState *s, Error **errp)
{
    DeviceState *dev = DEVICE(s);

    if (netdam_is_threaded(s)) {
        return netdam_memif_open(s, errp);
    }
    s->tx.slot_bytes = NETDAM_ETHERNET_BYTES + s->mtu;
    s->tx.frames = g_malloc(NETDAM_TX_SLOTS * s->tx.slot_bytes);
    s->nic = qemu_new_nic(&netdam_port_info, &s->nic_conf, object_get_typename(OBJECT(s)), dev->id,
                          &dev->mem_reentrancy_guard, s);
    qemu_format_nic_info_str(netdam_port_client(s), s->nic_conf.macaddr.a);
    return true;
}

void netdam_port_exit(NetdamState *s)
{
    if (netdam_is_threaded(s)) {
        netdam_memif_close(s);
        return;
    }
    netdam_port_discard(s);
    qemu_del_nic(s->nic);
    g_free(s->tx.frames);
}
