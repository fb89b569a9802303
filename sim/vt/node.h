/* SPDX-License-Identifier: BSD-3-Clause */
/* A firmware instance in virtual time: one processor that is busy while the firmware works, a receive queue, a port. */
#ifndef NDSIM_VT_NODE_H
#define NDSIM_VT_NODE_H

#include "netdam/firmware.h"

#include "vt/link.h"
#include "vt/loop.h"

struct ndsim_node;

/* What the firmware's work costs. All 0: it takes no time. */
struct ndsim_cost {
    uint64_t run_ns;   /* one call of run */
    uint64_t frame_ns; /* one frame, taken or sent */
    uint64_t kib_ns;   /* 1,024 bytes copied or computed */
};

/* The port of a node. */
struct ndsim_port {
    void *opaque;
    /* A frame leaves at `at_ns`, which may lie ahead of the loop's time by what the call has cost. */
    void (*transmit)(void *opaque, struct ndsim_node *node, const uint8_t *frame, uint32_t bytes, uint64_t at_ns);
    /* Bytes that wait to leave. May be NULL: none. */
    uint64_t (*backlog)(void *opaque, struct ndsim_node *node, uint64_t now_ns);
};

struct ndsim_node_config {
    struct ndsim_cost cost;
    uint32_t receive_frames; /* that may wait for the processor; 0: no limit */
    uint64_t port_bytes;     /* that may wait in the port before it is full; 0: no limit */
    uint32_t port_full;      /* parts per million of frames for which the port is full by chance */
    uint64_t port_retry_ns;  /* a full port is tried again after this; 0: 2 us */
    uint32_t budget_bytes;   /* of one run; 0: drawn for each */
};

struct ndsim_waiting {
    uint8_t *data;
    uint32_t bytes;
};

struct ndsim_node {
    const struct netdam_fw_ops *ops;
    void *state;
    struct ndsim_node_config config;
    struct ndsim_port port;
    struct ndsim_loop *loop;
    struct ndsim_random random;
    uint64_t index;    /* the owner's name for it */
    uint64_t free_ns;  /* the processor works until then */
    uint64_t run_ns;   /* when run is due; NDSIM_NEVER: not */
    uint64_t event_ns; /* when the next event of this node is due; NDSIM_NEVER: none */
    uint64_t incarnation;
    bool running;
    uint32_t since_run; /* frames received since */

    struct ndsim_waiting *waiting; /* a ring */
    uint32_t waiting_room;
    uint32_t waiting_first;
    uint32_t waiting_count;

    struct ndsim_waiting *sent; /* during the present call */
    uint32_t sent_room;
    uint32_t sent_count;
    uint64_t sent_bytes;

    uint64_t calls;
    uint64_t receive_drops;
    /* After each call of receive and run, with what they sent still to leave. May be NULL. */
    void (*after_call)(void *opaque, struct ndsim_node *node, uint64_t now_ns);
    void *after_call_opaque;
};

/*
 * A node around firmware state that the caller keeps; started and stopped by the caller, whose platform passes
 * transmit_begin and transmit_end on.
 */
void ndsim_node_init(struct ndsim_node *node, const struct netdam_fw_ops *ops, void *state, struct ndsim_loop *loop,
                     const struct ndsim_node_config *config, const struct ndsim_port *port, uint64_t seed);
void ndsim_node_fini(struct ndsim_node *node);

/* The firmware has been started: it runs from now on. */
void ndsim_node_started(struct ndsim_node *node, uint64_t now_ns);
/*
 * It has been stopped, or has died: nothing is called any more, what waits to be received is lost, and what it sent last
 * still leaves.
 */
void ndsim_node_stopped(struct ndsim_node *node);

/* run is called as soon as the processor is free: a doorbell, a register write. */
void ndsim_node_wake(struct ndsim_node *node, uint64_t now_ns);

/* A frame has arrived at the port. Copied. */
void ndsim_node_receive(struct ndsim_node *node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns);

/* For struct netdam_fw_platform. */
uint8_t *ndsim_node_transmit_begin(struct ndsim_node *node, size_t bytes);
void ndsim_node_transmit_end(struct ndsim_node *node, size_t bytes);

#endif
