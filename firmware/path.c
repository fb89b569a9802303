/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many paths: which source port a packet goes out by, what is known of each, and which are left alone for a while. A
 * switch that has several ways of equal cost chooses one by a hash that covers the source port, in both directions.
 */
#include "path.h"

/* Shares of packets lost, of all. */
#define ALL            65535u
#define BAD_PATH       (ALL * 2 / 5)
#define PROBATION      (ALL / 5)
#define CONGESTED_PEER (ALL / 4)
/* How much one packet counts: of a path some packets are seen in a round trip, of a peer some dozens. */
#define PATH_MEMORY 8u
#define PEER_MEMORY 32u
/* A packet that its timer found lost has been missed for many round trips. */
#define TIMER_MEMORY 2u

/* A retired path is probed after so many times of what a probe that is lost costs, and then ever more seldom. */
#define PROBE_ROUNDS   32u
#define PROBE_LEAST_NS UINT64_C(100000)
#define PROBE_MOST_NS  UINT64_C(1000000000)
#define PROBES_MOST    20u

/* The shortest round trip counts for one to two of these: the way may have become longer. */
#define BASE_NS UINT64_C(1000000000)

bool ndfw_is_own_port(const struct ndfw *fw, uint32_t port)
{
    return port - fw->config.udp_port < fw->config.paths;
}

void ndfw_paths_start(struct ndfw_peer *peer)
{
    memset(peer->paths, 0, peer->path_count * sizeof(peer->paths[0]));
    peer->path_next = peer->path_steady = peer->paths_retired = 0;
    peer->path_level = 0;
    peer->loss = 0;
    peer->base_ns = peer->base_before_ns = UINT64_MAX;
    peer->base_turn_ns = 0;
}

/* Goes round: the path behind `path`. */
static uint32_t after(const struct ndfw_peer *peer, uint32_t path)
{
    return path + 1 < peer->path_count ? path + 1 : 0;
}

/*
 * The path with the fewest packets under way, and where several have as few, the next in turn: what is slow or dead
 * fills up and is passed over before anything is known of it. A packet that is sent again takes another path than
 * before; one whose timer ran out may take a retired one, since what is known of paths may be out of date.
 */
uint8_t ndfw_path_choose(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    const struct ndfw_operation *operation = &fw->operations[flight->operation];
    uint32_t best = NDFW_NONE;

    if ((operation->descriptor.flags & NETDAM_DESCRIPTOR_ORDERED) != 0) {
        return peer->path_steady;
    }
    for (uint32_t n = 0, i = peer->path_next; n < peer->path_count; n++, i = after(peer, i)) {
        const struct ndfw_path *path = &peer->paths[i];

        if ((path->retired && !flight->timed) || (flight->tries != 0 && i == flight->path)) {
            continue;
        }
        if (best == NDFW_NONE || path->flying < peer->paths[best].flying) {
            best = i;
        }
        if (flight->timed || path->flying <= peer->path_level) {
            break;
        }
    }
    best = best == NDFW_NONE ? flight->path : best; /* there is no other */
    if (flight->tries == 0) {
        peer->path_level = peer->paths[best].flying;
    }
    peer->path_next = (uint8_t)after(peer, best);
    return (uint8_t)best;
}

void ndfw_path_sent(struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    peer->paths[flight->path].flying++;
}

void ndfw_path_left(struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    if (flight->state == NDFW_FLIGHT_SENT && flight->path != NDFW_PATH_NONE) {
        struct ndfw_path *path = &peer->paths[flight->path];

        path->flying--;
        peer->path_level = path->flying < peer->path_level ? path->flying : peer->path_level;
    }
}

/* `cost_ns`: what it takes to find a probe lost. */
static void plan_probe(const struct ndfw *fw, struct ndfw_path *path, uint64_t cost_ns)
{
    uint64_t wait = cost_ns * PROBE_ROUNDS;

    wait = (wait > PROBE_LEAST_NS ? wait : PROBE_LEAST_NS) << path->probes;
    path->probe_ns = fw->now_ns + (wait < PROBE_MOST_NS ? wait : PROBE_MOST_NS);
    path->probes = (uint8_t)(path->probes + (path->probes < PROBES_MOST));
}

static void restore(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_path *path, uint32_t loss)
{
    path->retired = false;
    peer->path_level = 0;
    path->loss = (uint16_t)loss;
    peer->paths_retired--;
    ndfw_count(fw, NETDAM_COUNTER_PATHS_RESTORED, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_PATH, 0, peer->context, (uint64_t)(path - peer->paths));
}

/* One that is known to work, and loses less than half as much; or NDFW_NONE: then the fault may not be the path's. */
static uint32_t better_path(const struct ndfw_peer *peer, const struct ndfw_path *than)
{
    uint32_t best = NDFW_NONE;

    for (uint32_t i = 0; i < peer->path_count; i++) {
        const struct ndfw_path *path = &peer->paths[i];

        if (path != than && !path->retired && path->srtt_ns != 0 && path->loss <= than->loss / 2 &&
            (best == NDFW_NONE || path->loss < peer->paths[best].loss)) {
            best = i;
        }
    }
    return best;
}

static void retire_if_bad(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_path *path, uint64_t cost_ns)
{
    uint32_t better = path->loss >= BAD_PATH && !path->retired ? better_path(peer, path) : NDFW_NONE;

    if (better == NDFW_NONE) {
        return;
    }
    path->retired = true;
    peer->paths_retired++;
    plan_probe(fw, path, cost_ns);
    if (&peer->paths[peer->path_steady] == path) {
        peer->path_steady = (uint8_t)better;
    }
    ndfw_count(fw, NETDAM_COUNTER_PATHS_RETIRED, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_PATH, 1, peer->context, (uint64_t)(path - peer->paths));
}

void ndfw_path_lost(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    struct ndfw_path *path;

    if (flight->path == NDFW_PATH_NONE) {
        return;
    }
    path = &peer->paths[flight->path];
    peer->loss = (uint16_t)(peer->loss + (ALL - peer->loss) / PEER_MEMORY);
    path->loss = (uint16_t)(path->loss + (ALL - path->loss) / (flight->timed ? TIMER_MEMORY : PATH_MEMORY));
    /* Where nothing but ORDERED requests is sent, no other path is known to work. */
    if (flight->timed && flight->path == peer->path_steady) {
        peer->path_steady = (uint8_t)after(peer, peer->path_steady);
    }
    /* What a probe will cost: nobody waits for a CONFIRM, but for a tour its requester does. */
    retire_if_bad(fw, peer, path,
                  flight->timed && ndfw_is_chain_context(fw, peer) ? ndfw_peer_rto_ns(fw, peer, 0) : peer->srtt_ns);
}

void ndfw_path_answered(struct ndfw *fw, struct ndfw_peer *peer, uint32_t port)
{
    uint32_t index = port - fw->config.udp_port;
    struct ndfw_path *path = &peer->paths[index];

    if (index >= peer->path_count) {
        return;
    }
    peer->loss = (uint16_t)(peer->loss - (peer->loss + PEER_MEMORY - 1) / PEER_MEMORY);
    path->loss = (uint16_t)(path->loss - (path->loss + PATH_MEMORY - 1) / PATH_MEMORY);
    path->probes = 0;
    if (path->retired) {
        restore(fw, peer, path, PROBATION);
    }
}

/* Jacobson and Karels. */
static void measure(uint64_t *srtt_ns, uint64_t *rttvar_ns, uint64_t rtt_ns)
{
    if (*srtt_ns == 0) {
        *srtt_ns = rtt_ns + 1;
        *rttvar_ns = rtt_ns / 2;
    } else {
        uint64_t error = rtt_ns > *srtt_ns ? rtt_ns - *srtt_ns : *srtt_ns - rtt_ns;

        *rttvar_ns += error / 4;
        *rttvar_ns -= *rttvar_ns / 4;
        *srtt_ns += rtt_ns / 8 + 1;
        *srtt_ns -= *srtt_ns / 8;
    }
}

void ndfw_path_measure(const struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_flight *flight, uint64_t rtt_ns)
{
    if (flight->path != NDFW_PATH_NONE) {
        struct ndfw_path *path = &peer->paths[flight->path];

        if (path->srtt_ns == 0) { /* as good a guess as any other */
            path->srtt_ns = peer->srtt_ns;
            path->rttvar_ns = peer->rttvar_ns;
        }
        measure(&path->srtt_ns, &path->rttvar_ns, rtt_ns);
    }
    measure(&peer->srtt_ns, &peer->rttvar_ns, rtt_ns);
    if (fw->now_ns >= peer->base_turn_ns) {
        peer->base_before_ns = peer->base_ns;
        peer->base_ns = UINT64_MAX;
        peer->base_turn_ns = fw->now_ns + BASE_NS;
    }
    peer->base_ns = rtt_ns < peer->base_ns ? rtt_ns : peer->base_ns;
}

uint64_t ndfw_path_late_ns(const struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    const struct ndfw_path *path = &peer->paths[flight->path];
    uint64_t srtt_ns = path->srtt_ns != 0 ? path->srtt_ns : peer->srtt_ns;
    uint64_t rttvar_ns = path->srtt_ns != 0 ? path->rttvar_ns : peer->rttvar_ns;

    return srtt_ns + (srtt_ns > rttvar_ns * 4 ? srtt_ns : rttvar_ns * 4);
}

/*
 * A loss is congestion's if round trips take twice as long as the way itself, so that queues are full, or if more is
 * lost than a bad link would lose. Else it is the wire's, and sending less would not mend it.
 */
bool ndfw_peer_is_congested(const struct ndfw_peer *peer)
{
    uint64_t base = peer->base_ns < peer->base_before_ns ? peer->base_ns : peer->base_before_ns;

    return peer->srtt_ns / 2 > base || peer->loss > CONGESTED_PEER;
}

/*
 * A CONFIRM is a probe that costs nothing: it is answered, and at the node nothing depends on how often it comes. Chains
 * go through nodes that no other packet would visit in that order: there the path is used again, on probation.
 */
bool ndfw_paths_probe(struct ndfw *fw, struct ndfw_peer *peer)
{
    bool chain = ndfw_is_chain_context(fw, peer);

    for (uint32_t i = 0; i < peer->path_count && peer->paths_retired != 0; i++) {
        struct ndfw_path *path = &peer->paths[i];

        if (!path->retired || fw->now_ns < path->probe_ns) {
            continue;
        }
        if (chain) {
            restore(fw, peer, path, BAD_PATH - 1);
        } else if (peer->generation == 0) {
            return true;
        } else if (!ndfw_send_confirm(fw, peer, peer, peer->generation, i)) {
            return false;
        } else {
            plan_probe(fw, path, peer->srtt_ns);
        }
    }
    return true;
}
