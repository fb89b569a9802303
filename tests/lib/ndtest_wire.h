/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time: the event loop that runs nodes, and a wire between them that loses, doubles, delays, reorders, damages.
 */
#ifndef NDTEST_WIRE_H
#define NDTEST_WIRE_H

#include "ndtest_node.h"

#define NDTEST_NODES_MAX 8

struct ndtest_wire;

/* Rates in parts per million. */
struct ndtest_weather {
    uint32_t drop;
    uint32_t duplicate;
    uint32_t late;         /* delayed by up to late_ns, far beyond completion; a duplicate may be late by itself */
    uint32_t corrupt;      /* one to three bits flipped: fewer than CRC32C can miss */
    bool corrupt_ethernet; /* also where only Ethernet's own checksum would tell: its header, ARP */
    uint32_t port_full;    /* transmit_begin yields NULL */
    uint64_t latency_ns;
    uint64_t jitter_ns; /* uniform: above the spacing of packets it reorders */
    uint64_t late_ns;
};

struct ndtest_frame {
    uint8_t *data; /* its own allocation of exactly `bytes` */
    size_t bytes;
    unsigned from;
    unsigned to;
    uint64_t to_incarnation; /* the receiver's when it was sent */
    uint64_t from_incarnation;
    bool damaged;
};

struct ndtest_wire_hooks {
    void *opaque;
    void (*transmitted)(void *opaque, struct ndtest_node *node, const uint8_t *data, size_t bytes);
    /* Around receive. */
    void (*before_receive)(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame);
    void (*after_receive)(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame);
    void (*after_run)(void *opaque, struct ndtest_node *node);
    void (*action)(void *opaque, uint64_t value);
    /* The node never settles: run asks to be called again without an end. */
    void (*restless)(void *opaque, struct ndtest_node *node);
};

struct ndtest_event {
    uint64_t at_ns;
    uint64_t order; /* ties go to who came first */
    uint64_t value;
    struct ndtest_frame frame;
    uint8_t kind;
};

struct ndtest_wire {
    struct ndtest_random random;
    struct ndtest_weather weather;
    struct ndtest_wire_hooks hooks;
    struct ndtest_node *nodes[NDTEST_NODES_MAX];
    uint64_t incarnation[NDTEST_NODES_MAX];
    uint64_t run_at_ns[NDTEST_NODES_MAX];
    bool cut[NDTEST_NODES_MAX][NDTEST_NODES_MAX]; /* [from][to]: nothing passes */
    unsigned node_count;
    uint64_t now_ns;
    uint64_t next_order;
    uint64_t delivered;
    uint64_t hash; /* of every frame delivered, when, where */
    struct ndtest_event *heap;
    size_t heap_used;
    size_t heap_room;
    uint8_t *outgoing;
    size_t outgoing_bytes;
    uint32_t budget_bytes; /* 0: drawn for each run */
};

void ndtest_wire_init(struct ndtest_wire *wire, uint64_t seed, uint64_t start_ns);
void ndtest_wire_fini(struct ndtest_wire *wire);
/* hooks for ndtest_node_init of nodes that use this wire. */
void ndtest_wire_port(struct ndtest_wire *wire, struct ndtest_hooks *hooks);
void ndtest_wire_add(struct ndtest_wire *wire, struct ndtest_node *node);

/* run is called for this node at the present time, after what is already due. */
void ndtest_wire_wake(struct ndtest_wire *wire, unsigned node);
/* hooks.action(value) after `delay_ns`. */
void ndtest_wire_schedule(struct ndtest_wire *wire, uint64_t delay_ns, uint64_t value);
/* A frame that no node has sent. */
void ndtest_wire_inject(struct ndtest_wire *wire, unsigned from, unsigned to, const uint8_t *data, size_t bytes,
                        uint64_t delay_ns);
/* Starts a node that was stopped; its next incarnation begins. */
void ndtest_wire_restart(struct ndtest_wire *wire, unsigned node);

/* Makes the next event happen. False if there is none. */
bool ndtest_wire_step(struct ndtest_wire *wire);

#endif
