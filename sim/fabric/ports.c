/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outer ends of the fabric: our own memif endpoint, or any device of DPDK. A frame is copied where it crosses from
 * one memory to another, and nowhere else.
 */
#include "fabric.h"
#include "device.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void log_memif(void *opaque, enum ndsim_memif_level level, const char *line)
{
    struct ndfab_port *port = opaque;
    bool refused =
        level == NDSIM_MEMIF_LOG_PEER && ndsim_refusals_show(&port->refusals, port->memif, port->fabric->loop.now_ns);

    if (level == NDSIM_MEMIF_LOG_ERROR || refused || port->fabric->verbose) {
        fprintf(stderr, "netdam-fabric: port %s: %s\n", port->spec->name, line);
    }
}

static bool open_memif(struct ndfab_port *port)
{
    const struct ndsim_memif_config config = {
        .path = port->spec->path,
        .role = port->spec->role,
        .id = port->spec->id,
        .name = "netdam-fabric",
        .slots = 1024,
        .frame_bytes = port->fabric->topology.frame_bytes,
        .shared_frames = true,
        .log_opaque = port,
        .log = log_memif,
    };
    int error = ndsim_memif_open(&config, &port->memif);

    if (error != 0) {
        fprintf(stderr, "netdam-fabric: port %s: %s: %s\n", port->spec->name, port->spec->path,
                error == -EADDRINUSE ? "another program listens there, or it is no socket" : strerror(-error));
    }
    return error == 0;
}

/* DPDK's driver opens them again, and empties what it is to write. */
static bool claim_files(struct ndfab_port *port)
{
    const char *const paths[] = {port->spec->read, port->spec->write};

    for (unsigned i = 0; i < RTE_DIM(paths); i++) {
        int error = 0;

        if (paths[i] != NULL) {
            port->claims[i] = ndfab_claim(paths[i], i == 0 ? NDFAB_READS : NDFAB_WRITES, &error);
        }
        if (error != 0) {
            fprintf(stderr, "netdam-fabric: port %s: %s: %s\n", port->spec->name, paths[i], ndfab_claim_text(error));
            return false;
        }
    }
    return true;
}

/* A socket of DPDK's serves many ports; the first of them finds what an earlier fabric left. */
static bool open_device(struct ndfab_port *port)
{
    const struct ndsim_topology_port *spec = port->spec;
    bool first = spec->type == NDSIM_PORT_MEMIF && spec->role == NDSIM_MEMIF_SERVER;

    for (uint32_t i = 0; first && i < port->index; i++) {
        const struct ndsim_topology_port *other = port->fabric->ports[i].spec;

        first = other->type != NDSIM_PORT_MEMIF || strcmp(other->path, spec->path) != 0;
    }
    return (!first || ndfab_device_clear(spec)) && claim_files(port) &&
           ndfab_device_open(spec, port->fabric->pool, &port->device);
}

static bool open_port(struct ndfab_port *port)
{
    const struct ndsim_topology_port *spec = port->spec;
    int error = 0;

    port->opened = spec->type == NDSIM_PORT_MEMIF && !spec->dpdk ? open_memif(port) : open_device(port);
    if (port->opened && spec->capture != NULL) {
        port->capture = ndfab_capture_open(spec->capture, port->fabric->topology.frame_bytes, &error);
        if (port->capture == NULL) {
            fprintf(stderr, "netdam-fabric: port %s: %s: %s\n", spec->name, spec->capture, ndfab_claim_text(error));
        }
    }
    return port->opened && error == 0;
}

bool ndfab_ports_open(struct ndfab_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        if (!open_port(&fabric->ports[i])) {
            return false;
        }
    }
    return true;
}

static void drop_output(struct ndfab_port *port)
{
    for (; port->out_count != 0; port->out_count--) {
        rte_pktmbuf_free(port->out[port->out_first]);
        port->out_first = (port->out_first + 1) % NDFAB_OUT_MAX;
        port->counts.out_down++;
    }
}

void ndfab_ports_close(struct ndfab_fabric *fabric)
{
    for (uint32_t i = 0; fabric->ports != NULL && i < fabric->topology.port_count; i++) {
        struct ndfab_port *port = &fabric->ports[i];

        drop_output(port);
        if (port->memif != NULL) {
            ndsim_memif_close(port->memif);
        } else if (port->opened) {
            ndfab_device_close(port->spec, port->device);
        }
        for (unsigned file = 0; file < RTE_DIM(port->claims); file++) {
            if (port->claims[file] >= 0) {
                close(port->claims[file]);
            }
        }
        if (!ndfab_capture_close(port->capture)) {
            fprintf(stderr, "netdam-fabric: port %s: the capture could not be written to its end\n", port->spec->name);
        }
    }
    rte_pktmbuf_free_bulk(fabric->spares, fabric->spare_count);
    fabric->spare_count = 0;
}

static void take_in(void *opaque, const uint8_t *data, size_t bytes)
{
    struct ndfab_port *port = opaque;
    struct rte_mbuf *frame = port->fabric->spares[--port->fabric->spare_count];
    char *room = rte_pktmbuf_append(frame, (uint16_t)bytes);

    if (room != NULL) {
        memcpy(room, data, bytes);
    }
    ndfab_carry_in(port, frame);
}

/* No more than there are buffers for: what finds none waits in the peer's ring. */
static uint32_t receive_memif(struct ndfab_port *port)
{
    struct ndfab_fabric *fabric = port->fabric;
    uint32_t missing = NDFAB_BURST - fabric->spare_count;

    if (missing != 0 && rte_pktmbuf_alloc_bulk(fabric->pool, fabric->spares + fabric->spare_count, missing) == 0) {
        fabric->spare_count += missing;
    }
    return fabric->spare_count == 0 ? 0 : ndsim_memif_receive(port->memif, fabric->spare_count, take_in, port);
}

uint32_t ndfab_ports_receive(struct ndfab_fabric *fabric)
{
    struct rte_mbuf *frames[NDFAB_BURST];
    uint32_t total = 0;

    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        struct ndfab_port *port = &fabric->ports[i];

        if (!port->up) {
            continue;
        }
        if (port->memif != NULL) {
            total += receive_memif(port);
        } else if (port->spec->type != NDSIM_PORT_PCAP || fabric->replaying) {
            uint16_t count = rte_eth_rx_burst(port->device, 0, frames, NDFAB_BURST);

            for (uint16_t k = 0; k < count; k++) {
                ndfab_carry_in(port, frames[k]);
            }
            total += count;
        }
    }
    return total;
}

void ndfab_port_send(struct ndfab_port *port, struct rte_mbuf *frame)
{
    if (!port->up) {
        port->counts.out_down++;
        rte_pktmbuf_free(frame);
    } else if (port->out_count == NDFAB_OUT_MAX || !ndfab_has_room(port->fabric, port->out_count)) {
        port->counts.out_full++;
        rte_pktmbuf_free(frame);
    } else {
        port->out[(port->out_first + port->out_count++) % NDFAB_OUT_MAX] = frame;
    }
}

/* `count` frames have gone; their lengths, and the capture, are taken before since they may be freed by then. */
static void account(struct ndfab_port *port, uint32_t count, uint64_t bytes)
{
    port->out_first = (port->out_first + count) % NDFAB_OUT_MAX;
    port->out_count -= count;
    port->counts.out_frames += count;
    port->counts.out_bytes += bytes;
}

static void capture_output(struct ndfab_port *port, const struct rte_mbuf *frame)
{
    if (port->capture != NULL) {
        ndfab_capture_frame(port->capture, frame, port->fabric->wall_ns + port->fabric->loop.now_ns);
    }
}

static void flush_memif(struct ndfab_port *port)
{
    while (port->out_count != 0) {
        struct rte_mbuf *frame = port->out[port->out_first];
        uint32_t bytes = frame->pkt_len;
        uint8_t *room = ndsim_memif_transmit_begin(port->memif, bytes);

        if (room == NULL) {
            break;
        }
        for (const struct rte_mbuf *part = frame; part != NULL; part = part->next) {
            memcpy(room, rte_pktmbuf_mtod(part, const void *), part->data_len);
            room += part->data_len;
        }
        ndsim_memif_transmit_end(port->memif, bytes);
        capture_output(port, frame);
        account(port, 1, bytes);
        rte_pktmbuf_free(frame);
    }
    ndsim_memif_flush(port->memif);
}

static void flush_device(struct ndfab_port *port)
{
    while (port->out_count != 0) {
        uint32_t count = RTE_MIN(port->out_count, RTE_MIN(NDFAB_BURST, NDFAB_OUT_MAX - port->out_first));
        struct rte_mbuf **frames = &port->out[port->out_first];
        uint32_t lengths[NDFAB_BURST] = {0};
        uint64_t bytes = 0;
        uint16_t sent;

        for (uint32_t i = 0; i < count; i++) {
            lengths[i] = frames[i]->pkt_len;
            if (port->capture != NULL) {
                rte_mbuf_refcnt_update(frames[i], 1);
            }
        }
        sent = rte_eth_tx_burst(port->device, 0, frames, (uint16_t)count);
        for (uint32_t i = 0; i < count; i++) {
            bytes += i < sent ? lengths[i] : 0;
            if (port->capture != NULL) {
                if (i < sent) {
                    capture_output(port, frames[i]);
                }
                rte_pktmbuf_free(frames[i]);
            }
        }
        account(port, sent, bytes);
        if (sent < count) {
            break;
        }
    }
}

bool ndfab_ports_flush(struct ndfab_fabric *fabric)
{
    bool waiting = false;

    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        struct ndfab_port *port = &fabric->ports[i];

        if (port->out_count == 0) {
            continue;
        }
        if (port->memif != NULL) {
            flush_memif(port);
        } else {
            flush_device(port);
        }
        waiting |= port->out_count != 0;
    }
    return waiting;
}

void ndfab_ports_watch(struct ndfab_fabric *fabric)
{
    bool all = true;

    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        struct ndfab_port *port = &fabric->ports[i];
        bool up;

        if (port->memif != NULL) {
            ndsim_memif_process(port->memif);
            up = ndsim_memif_link_up(port->memif);
        } else {
            up = ndfab_device_up(port->device);
        }
        if (port->up && !up) {
            drop_output(port);
            ndfab_stations_forget(port);
        }
        port->up = up;
        all &= up;
    }
    fabric->replaying |= all;
}
