/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of one direction of a link: rate, delay, queue and faults. It decides; whoever carries the frames obeys. */
#ifndef NDSIM_VT_LINK_H
#define NDSIM_VT_LINK_H

#include "vt/line.h"
#include "vt/random.h"

/* When a fault happens: by chance, or to frame number `nth`, counted from 1, and then to every `every`-th after it. */
struct ndsim_when {
    uint32_t parts_per_million;
    uint64_t nth;   /* 0: never by count */
    uint64_t every; /* 0: to that one only */
};

struct ndsim_link_config {
    uint64_t bits_per_s;     /* 0: a frame takes no time to send */
    uint64_t propagation_ns; /* the way itself */
    uint64_t jitter_ns;      /* up to so much more, by chance */
    uint64_t queue_bytes;    /* what may wait to be sent, the frame being sent included; 0: no limit */
    uint32_t frame_overhead; /* bytes that each frame takes besides its own: preamble, checksum, gap */
    uint32_t corrupt_from;   /* the first byte that may be damaged; what lies before never is */

    struct ndsim_when drop;
    struct ndsim_when twice;   /* two copies, the second by its own chances of delay and damage */
    struct ndsim_when reorder; /* comes reorder_ns later, so that others overtake it */
    struct ndsim_when corrupt; /* one to three bits flipped */
    struct ndsim_when spike;   /* comes up to spike_ns later, by chance */
    uint64_t reorder_ns;
    uint64_t spike_ns;
};

enum ndsim_link_count {
    NDSIM_LINK_FRAMES, /* offered */
    NDSIM_LINK_BYTES,
    NDSIM_LINK_DELIVERIES,
    NDSIM_LINK_TAIL_DROPS, /* the queue was full */
    NDSIM_LINK_DOWN_DROPS, /* the link was down */
    NDSIM_LINK_DROPS,      /* by the fault */
    NDSIM_LINK_DOUBLED,
    NDSIM_LINK_REORDERED,
    NDSIM_LINK_CORRUPTED,
    NDSIM_LINK_SPIKES,
    NDSIM_LINK_COUNTS
};

struct ndsim_link {
    struct ndsim_link_config config; /* faults may be changed at any time */
    struct ndsim_line line;
    uint64_t seed;              /* each frame's draws depend on this and on its number alone */
    struct ndsim_random random; /* of the present frame */
    /* Asked before a fault happens: false spares frame `number`. May be NULL. */
    bool (*permits)(void *opaque, const struct ndsim_link *link, enum ndsim_link_count fault, uint64_t number);
    void *opaque;
    uint64_t down_from_ns; /* down in [from, until); from == until: up */
    uint64_t down_until_ns;
    uint64_t flap_from_ns; /* flapping from here on: down for flap_down_ns at the start of each flap_period_ns */
    uint64_t flap_period_ns;
    uint64_t flap_down_ns; /* 0: it does not flap */
    uint64_t counts[NDSIM_LINK_COUNTS];
};

#define NDSIM_LINK_COPIES_MAX 2u
#define NDSIM_FLIPS_MAX       3u

/* One copy that arrives. */
struct ndsim_delivery {
    uint64_t at_ns;
    uint32_t flips; /* bits to be flipped, all different */
    uint32_t bits[NDSIM_FLIPS_MAX];
};

void ndsim_link_init(struct ndsim_link *link, const struct ndsim_link_config *config, uint64_t seed);

/* A frame of `bytes` is offered. Returns how many copies arrive, and what becomes of each. */
unsigned ndsim_link_send(struct ndsim_link *link, uint32_t bytes, uint64_t now_ns,
                         struct ndsim_delivery deliveries[NDSIM_LINK_COPIES_MAX]);

/* Bytes waiting; a sender that wants back-pressure asks before it sends. */
uint64_t ndsim_link_backlog(const struct ndsim_link *link, uint64_t now_ns);

/*
 * The link is dead in [from_ns, until_ns): what is offered then is lost, and what arrives then as well. Who carries the
 * frames asks ndsim_link_is_up at each arrival, since a link may die while they are under way.
 */
void ndsim_link_down(struct ndsim_link *link, uint64_t from_ns, uint64_t until_ns);
/* The link flaps from `from_ns` on: dead for `down_ns` out of every `period_ns`. 0: it stops. */
void ndsim_link_flap(struct ndsim_link *link, uint64_t from_ns, uint64_t period_ns, uint64_t down_ns);
bool ndsim_link_is_up(const struct ndsim_link *link, uint64_t now_ns);

#endif
