/* SPDX-License-Identifier: BSD-3-Clause */
/* Two nodes across leaves and spines in virtual time, one of them writing to the other: what tests and bench share. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "ndtest_node.h"
#include "vt/shape.h"

#define TRAFFIC_DEPTH_MAX 64u

struct traffic_setup {
    uint64_t seed;
    uint32_t planes;
    uint32_t paths; /* 0: the firmware's default */
    uint32_t mtu;
    uint64_t node_bits_per_s;
    uint64_t trunk_bits_per_s;
    uint32_t loss_ppm; /* each way, once */
    uint32_t message_bytes;
    uint32_t depth; /* messages under way */
    uint32_t retries;
    uint32_t flags; /* NETDAM_DESCRIPTOR_* */
};

/* 100 Gb/s everywhere, frames of 9,000 bytes, messages of 64 KiB, 32 of them under way, four planes. */
struct traffic_setup traffic_default(void);

struct traffic {
    struct traffic_setup setup;
    struct ndsim_net net;
    struct ndsim_shape shape;
    struct ndsim_shape_plan plan;
    struct ndtest_node nodes[2];
    struct ndtest_queue queue; /* of node 0 */
    uint32_t region;           /* of node 0 */
    uint32_t peer;
    uint64_t posted;
    bool stopped;       /* nothing more is posted */
    uint64_t completed; /* of these, with: */
    uint64_t ok;
    uint64_t failed;
    uint64_t last_failed_ns; /* how long the last one that failed took */
    uint64_t bytes;          /* of those that are OK */
    /* A message has completed. May be NULL. */
    void *opaque;
    void (*done)(void *opaque, struct traffic *traffic, enum netdam_status status, uint64_t took_ns);
};

/* Aborts where something cannot be: these are not tests of setting up. */
struct traffic *traffic_start(const struct traffic_setup *setup);
void traffic_end(struct traffic *traffic);

/* Keeps `depth` messages under way for so long. */
void traffic_run(struct traffic *traffic, uint64_t duration_ns);

/* Posts nothing more, and runs until all has completed or so much time is over. */
void traffic_drain(struct traffic *traffic, uint64_t duration_ns);

/* Payload bits per second of what completes in `duration_ns`, once `warm_ns` are over. */
double traffic_goodput(struct traffic *traffic, uint64_t warm_ns, uint64_t duration_ns);

/* All trunks of a plane: down from now on, or up. */
void traffic_plane(struct traffic *traffic, uint32_t plane, bool up);

/* Posts what is missing to `depth` messages under way. */
void traffic_post(struct traffic *traffic);

/* The bytes that wait before the busiest trunk port of the sender's leaf. */
uint64_t traffic_queued(const struct traffic *traffic);

/* Frames that were offered to the trunks of a plane in direction of the node that is written to. */
uint64_t traffic_plane_frames(const struct traffic *traffic, uint32_t plane);

/* True if the memory written to is what was written. */
bool traffic_memory_agrees(const struct traffic *traffic);

/* The sender's smoothed round trip, and what its counters say. */
uint64_t traffic_round_trip_ns(const struct traffic *traffic);
uint64_t traffic_counter(struct traffic *traffic, enum netdam_counter counter);

#endif
