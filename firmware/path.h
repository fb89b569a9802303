/* SPDX-License-Identifier: BSD-3-Clause */
/* Many paths: the source ports that requests go out by, one path each, and what is known of them. */
#ifndef NDFW_PATH_H
#define NDFW_PATH_H

#include "ndfw.h"

/* What is known of the packets that go out by one source port. */
struct ndfw_path {
    uint64_t srtt_ns; /* 0: nothing measured */
    uint64_t rttvar_ns;
    uint64_t probe_ns; /* retired: not probed before */
    uint16_t flying;   /* packets under way */
    uint16_t loss;     /* share of packets lost lately, of 65535 */
    uint8_t probes;    /* since it was last heard of */
    bool retired;      /* nothing but probes, and what has been tried elsewhere, is sent by it */
};

/* True for the own port and those behind it that requests go out by, and their answers come to. */
bool ndfw_is_own_port(const struct ndfw *fw, uint32_t port);
void ndfw_paths_start(struct ndfw_peer *peer);
/* For a packet that is about to be sent, for the first time or again. */
uint8_t ndfw_path_choose(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight);
void ndfw_path_sent(struct ndfw_peer *peer, const struct ndfw_flight *flight);
/* What was under way, if it was, is not any more: answered, or given up. Before its state changes. */
void ndfw_path_left(struct ndfw_peer *peer, const struct ndfw_flight *flight);
void ndfw_path_lost(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight);
/* Anything for this context came to `port`. */
void ndfw_path_answered(struct ndfw *fw, struct ndfw_peer *peer, uint32_t port);
void ndfw_path_measure(const struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight,
                       uint64_t rtt_ns);
/* How long after it was sent a packet is late. */
uint64_t ndfw_path_late_ns(const struct ndfw_peer *peer, const struct ndfw_flight *flight);
/* True if what is lost is lost in queues. */
bool ndfw_peer_is_congested(const struct ndfw_peer *peer);
/* Looks whether retired paths work again, where that is due. Returns false if the port is full. */
bool ndfw_paths_probe(struct ndfw *fw, struct ndfw_peer *peer);

#endif
