/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric: a topology in real time. Models say what becomes of a frame and when; this carries it. */
#ifndef NDFAB_FABRIC_H
#define NDFAB_FABRIC_H

#include "refusals.h"
#include "topology.h"
#include "vt/loop.h"
#include "vt/turns.h"

#include <rte_hash.h>
#include <rte_mbuf.h>

#define NDFAB_BURST     32u
#define NDFAB_OUT_MAX   1024u /* frames that wait for a port whose other end is slow */
#define NDFAB_STATIONS  512u  /* MAC addresses that are known, all ports together: what a switch's table takes */
#define NDFAB_HEAD      128u  /* bytes of a frame that switches look at, at most */
#define NDFAB_FRAME_MIN 14u

struct ndfab_fabric;
struct ndfab_capture;

/* What came in, went out, or did not, at a port. */
struct ndfab_port_counts {
    uint64_t in_frames;
    uint64_t in_bytes;
    uint64_t in_bad; /* too short or too long for a frame */
    uint64_t out_frames;
    uint64_t out_bytes;
    uint64_t out_down; /* dropped: nobody is at the other end */
    uint64_t out_full; /* dropped: the other end is too slow */
    uint64_t stations_refused;
};

struct ndfab_port {
    struct ndfab_fabric *fabric;
    const struct ndsim_topology_port *spec;
    uint32_t index;
    struct ndsim_memif *memif; /* our own endpoint; else a device of DPDK */
    struct ndsim_refusals refusals;
    uint16_t device;
    bool opened;
    bool up;
    uint32_t way;                        /* the link's direction that begins here */
    struct rte_mbuf *out[NDFAB_OUT_MAX]; /* a ring */
    uint32_t out_first;
    uint32_t out_count;
    uint8_t last_station[6]; /* the source of the latest frame: known */
    uint32_t station_count;
    struct ndfab_capture *capture;
    int claims[2]; /* of the files that a port of type pcap reads and writes, or -1 */
    struct ndfab_port_counts counts;
};

/* One direction of a link. */
struct ndfab_way {
    struct ndfab_fabric *fabric;
    const struct ndsim_topology_link *spec;
    uint32_t index; /* of the link, times two, plus the direction */
    struct ndsim_link link;
    struct ndsim_topology_end to;
    bool plain;           /* takes no time and has no faults */
    bool by_hand;         /* taken down or up by control: the file's times no longer count */
    uint32_t next_down;   /* of the file's times */
    uint64_t arrived;     /* at the other end */
    uint64_t lost_copies; /* dropped: no memory for a copy or an event, or too many owners */
    uint64_t in_flight;
    struct ndfab_capture *capture;
};

struct ndfab_switch {
    struct ndfab_fabric *fabric;
    const struct ndsim_topology_switch *spec;
    struct ndsim_switch sw;
    uint32_t out[NDSIM_SWITCH_PORTS_MAX]; /* ways */
    uint64_t due_ns[NDSIM_SWITCH_PORTS_MAX];
    uint64_t copies;      /* frames that left more than once, less one each */
    uint64_t lost_copies; /* dropped: no memory, or too many owners */
    uint64_t waiting;     /* in the queues of priorities */
};

struct ndfab_fabric {
    struct ndsim_topology topology;
    struct ndsim_loop loop;
    uint64_t start_ns;
    uint64_t wall_ns; /* what to add to a time to get that of the calendar */
    struct rte_mempool *pool;
    struct rte_mbuf *spares[NDFAB_BURST];
    uint32_t spare_count;
    struct ndfab_port *ports;
    struct ndfab_way *ways;
    struct ndfab_switch *switches;
    uint32_t *masks; /* by port and switch: the switch's ports that lead to that port */
    uint32_t *trees; /* by tree and switch: the switch's ports that belong to that tree */
    struct ndsim_turns turns;
    bool *dead;                /* links that the switches know to be down */
    struct rte_hash *stations; /* MAC address to port */
    uint32_t station_limit;    /* of each port */
    bool replaying;            /* everybody was there once, so frames are read from files */
    bool verbose;              /* tell of peers that come, go, or break the protocol */
    bool stop;
};

/* carry.c: frames through the models. Each takes the frame over. */

/* Sets up links and switches. False, with a message on stderr, if memory is short. */
bool ndfab_carry_open(struct ndfab_fabric *fabric);
void ndfab_carry_close(struct ndfab_fabric *fabric);

/* A frame has come in at a port. */
void ndfab_carry_in(struct ndfab_port *port, struct rte_mbuf *frame);

/* Makes happen what is due at `now_ns`, which is the time of whatever comes in until the next call. Returns how much. */
uint64_t ndfab_carry_due(struct ndfab_fabric *fabric, uint64_t now_ns);

/* To be called after the faults, rate or delay of a link were changed. */
void ndfab_way_changed(struct ndfab_way *way);

/* Down or up by hand, from now on. */
void ndfab_way_set(struct ndfab_way *way, bool up);

/*
 * Whether a link, a queue or a port that holds `held` frames may hold one more: as many as there are buffers left. So whatever
 * is slow leaves as much as it takes, and several such leave enough for all others.
 */
bool ndfab_has_room(const struct ndfab_fabric *fabric, uint64_t held);

/* Frames on links, counted in the heap of events: what the links' own counts have to agree with. */
uint64_t ndfab_carry_pending(const struct ndfab_fabric *fabric);

/* stations.c: who is where, and the ways there. */
bool ndfab_stations_open(struct ndfab_fabric *fabric);
void ndfab_stations_close(struct ndfab_fabric *fabric);
void ndfab_station_learn(struct ndfab_port *port, const uint8_t *mac);
/* Whoever was at the port has gone. */
void ndfab_stations_forget(struct ndfab_port *port);

/* To be called when `dead` has changed. */
void ndfab_stations_reroute(struct ndfab_fabric *fabric);

/* ports.c: the outer ends. */

/* False, with a message on stderr, if a port cannot be opened. */
bool ndfab_ports_open(struct ndfab_fabric *fabric);
void ndfab_ports_close(struct ndfab_fabric *fabric);

/* Takes in what has come at all ports. Returns how many frames. */
uint32_t ndfab_ports_receive(struct ndfab_fabric *fabric);

/* Puts a frame into the port's output. */
void ndfab_port_send(struct ndfab_port *port, struct rte_mbuf *frame);

/* Hands over what waits. Returns whether some still does. */
bool ndfab_ports_flush(struct ndfab_fabric *fabric);

/* Looks who has come and gone; to be called every millisecond or so. */
void ndfab_ports_watch(struct ndfab_fabric *fabric);

/* claim.c: a descriptor to be closed when the file is no longer used, or -1. `error` is 0 or what the text is of. */
enum ndfab_use { NDFAB_READS, NDFAB_WRITES, NDFAB_CAPTURES };
int ndfab_claim(const char *path, enum ndfab_use use, int *error);
const char *ndfab_claim_text(int error);

/* capture.c: pcap files with nanoseconds. */
struct ndfab_capture *ndfab_capture_open(const char *path, uint32_t frame_bytes, int *error);
/* Flushes and frees; NULL is ignored. Returns false if something could not be written. */
bool ndfab_capture_close(struct ndfab_capture *capture);
void ndfab_capture_frame(struct ndfab_capture *capture, const struct rte_mbuf *frame, uint64_t wall_ns);
void ndfab_capture_flush(struct ndfab_capture *capture);

#endif
