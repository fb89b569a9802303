/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of a switch: a table of MAC addresses, output queues in one shared buffer, ways of equal cost, priorities. */
#ifndef NDSIM_VT_SWITCH_H
#define NDSIM_VT_SWITCH_H

#include "vt/line.h"
#include "vt/queue.h"
#include "vt/random.h"

#define NDSIM_SWITCH_PORTS_MAX 32u
#define NDSIM_SWITCH_MACS_MAX  1024u /* a power of two; half of it is used at most */
#define NDSIM_SWITCH_TREES_MAX 16u

/* How a port is chosen where several lead to the same address. */
enum ndsim_spread {
    NDSIM_SPREAD_ECMP,  /* by a hash of addresses and UDP ports: one flow stays on one way */
    NDSIM_SPREAD_SPRAY, /* each frame by chance */
};

struct ndsim_switch_config {
    uint32_t ports;
    enum ndsim_spread spread;
    uint64_t bits_per_s;     /* of each port; 0: sending takes no time. The link behind should then have 0 itself */
    uint64_t latency_ns;     /* from the last bit in to the head of an empty output queue */
    uint64_t buffer_bytes;   /* all output queues together; 0: no limit */
    uint64_t queue_bytes;    /* one output queue; 0: no limit */
    uint32_t frame_overhead; /* bytes that each frame takes on the line besides its own */
    bool priorities;         /* eight queues for each port, the most urgent first; else one */
};

enum ndsim_switch_count {
    NDSIM_SWITCH_FRAMES,
    NDSIM_SWITCH_FORWARDED, /* copies */
    NDSIM_SWITCH_FLOODED,   /* frames to no known address */
    NDSIM_SWITCH_QUEUE_DROPS,
    NDSIM_SWITCH_BUFFER_DROPS,
    NDSIM_SWITCH_NO_WAY, /* no port is left, or only the one it came from */
    NDSIM_SWITCH_COUNTS
};

struct ndsim_switch_entry {
    uint8_t mac[6];
    bool in_use;
    uint32_t ports; /* bit mask */
};

struct ndsim_switch {
    struct ndsim_switch_config config;
    struct ndsim_random random;
    uint64_t hash_seed;
    uint32_t up; /* mask of ports that are used */
    /* Masks of ports that broadcasts and unknown addresses go to: of all switches, each must make a tree. */
    uint32_t flood[NDSIM_SWITCH_TREES_MAX];
    uint32_t tree_count; /* the same at all switches */
    uint32_t entry_count;
    struct ndsim_line lines[NDSIM_SWITCH_PORTS_MAX];    /* without priorities */
    struct ndsim_queues queues[NDSIM_SWITCH_PORTS_MAX]; /* with them */
    struct ndsim_switch_entry entries[NDSIM_SWITCH_MACS_MAX];
    uint64_t counts[NDSIM_SWITCH_COUNTS];
};

struct ndsim_forward {
    uint32_t port;
    uint32_t priority; /* 0 to 7, see ndsim_switch_priority */
    uint64_t at_ns;    /* the last bit leaves the port; with priorities: it may be sent from here on */
};

/* False if the configuration is impossible. All ports are up and flooded to: one tree. */
bool ndsim_switch_init(struct ndsim_switch *sw, const struct ndsim_switch_config *config, uint64_t seed);
/* Frees the queues of priorities; without them there is nothing to do. */
void ndsim_switch_fini(struct ndsim_switch *sw);

/* Frames to `mac` leave through one of `ports`. Replaces what was known. False if the table is full. */
bool ndsim_switch_route(struct ndsim_switch *sw, const uint8_t mac[6], uint32_t ports);

/* A port that is down is not chosen: what the switch has noticed. What it has not is the link's business. */
void ndsim_switch_port(struct ndsim_switch *sw, uint32_t port, bool up);

/*
 * Frames that find others: broadcasts, ARP, neighbour discovery of IPv6. Nobody relies on their order, and whoever gets
 * no answer sends them again; so trees and ways of equal length take turns, and one that is dead stops nobody for long.
 */
bool ndsim_switch_in_turn(const uint8_t *frame, uint32_t bytes);

/*
 * A frame has arrived at `port`; ndsim_turns_take() has given it `turn` where it entered the network. Returns how many
 * copies leave, where and when. With priorities that is not known yet: the caller puts each copy into its port's queue at
 * once, and takes it out when ndsim_queues_due_ns says so.
 */
unsigned ndsim_switch_forward(struct ndsim_switch *sw, uint32_t port, const uint8_t *frame, uint32_t bytes,
                              uint32_t turn, uint64_t now_ns, struct ndsim_forward forwards[NDSIM_SWITCH_PORTS_MAX]);

/* Puts a copy, by the caller's name for it, into the queue that `forward` tells. False if memory is short. */
bool ndsim_switch_put(struct ndsim_switch *sw, const struct ndsim_forward *forward, uint64_t frame, uint32_t bytes);

/*
 * The priority of a frame: the PCP of its 802.1Q tag, or else the upper three bits of its DSCP (the class selector), or
 * else 0. 7 is the most urgent.
 */
unsigned ndsim_switch_priority(const uint8_t *frame, uint32_t bytes);

/* Bytes in one output queue, and in all. */
uint64_t ndsim_switch_queued(const struct ndsim_switch *sw, uint32_t port, uint64_t now_ns);
uint64_t ndsim_switch_buffered(const struct ndsim_switch *sw, uint64_t now_ns);

#endif
