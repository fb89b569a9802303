/* SPDX-License-Identifier: BSD-3-Clause */
/* A network as a file describes it (docs/topology.md): ports, nodes, switches, and the links between them. */
#ifndef NDSIM_TOPOLOGY_H
#define NDSIM_TOPOLOGY_H

#include "platform/memif.h"
#include "values.h"
#include "vt/link.h"
#include "vt/switch.h"

#include <stdbool.h>
#include <stdint.h>

#define NDSIM_TOPOLOGY_NAME_MAX       31u   /* characters: letters, digits, '_', '-', '.' */
#define NDSIM_TOPOLOGY_PARTS_MAX      1024u /* of each kind */
#define NDSIM_TOPOLOGY_ERROR_MAX      512u
#define NDSIM_SOCKET_PATH_MAX         107u /* characters: what fits into sun_path */
#define NDSIM_NODE_REGIONS_MAX        16u
#define NDSIM_DOWN_WINDOWS_MAX        8u
#define NDSIM_TOPOLOGY_ETHERNET_BYTES 14u /* of a frame's beginning, which corruption spares unless told otherwise */

enum ndsim_port_type {
    NDSIM_PORT_MEMIF,  /* path, role, id, dpdk */
    NDSIM_PORT_TAP,    /* interface: created in the kernel */
    NDSIM_PORT_PACKET, /* interface: one that the kernel has */
    NDSIM_PORT_PCAP,   /* read, write: files; one of them may be NULL */
    NDSIM_PORT_PMD,    /* devargs: any driver of DPDK */
};

struct ndsim_topology_port {
    const char *name;
    unsigned line; /* of the file, for messages */
    enum ndsim_port_type type;
    enum ndsim_memif_role role; /* the fabric's; default: server */
    uint32_t id;
    bool dpdk; /* by DPDK's driver instead of our own endpoint */
    const char *path;
    const char *interface;
    const char *read;
    const char *write;
    const char *devargs;
    const char *capture; /* file, or NULL */
    uint8_t mac[6];      /* of who is at the other end, if has_mac; learned otherwise */
    bool has_mac;
    uint32_t node; /* whom the port is for, or UINT32_MAX */
};

/* Memory that peers reach by a key. */
struct ndsim_topology_region {
    uint64_t offset;
    uint64_t bytes;       /* 0: to the end of memory */
    uint64_t key;         /* 0: draw one */
    uint32_t permissions; /* NETDAM_PERMISSION_* */
    const char *load;     /* file that is copied to its start, or NULL */
    struct ndsim_pattern pattern;
};

enum ndsim_node_join {
    NDSIM_NODE_MEMIF, /* a port of the fabric, by the same name, is the other end */
    NDSIM_NODE_UDP,   /* a socket of the kernel's network; no end of a link */
};

struct ndsim_topology_node {
    const char *name;
    unsigned line;
    enum ndsim_node_join join;
    const char *path;           /* memif: socket, absolute or relative to the working directory */
    enum ndsim_memif_role role; /* the node's, the port's being the other one; default: client */
    uint32_t id;
    const char *listen; /* udp: "ADDR:PORT" */
    uint8_t address[4]; /* memif: IPv4 address; udp: all 0 */
    uint32_t prefix;    /* bits of the network; default 24 */
    uint8_t mac[6];     /* 02:00 and the address, if not given */
    uint64_t memory_bytes;
    uint32_t mtu;
    struct ndsim_topology_region regions[NDSIM_NODE_REGIONS_MAX]; /* at least one */
    uint32_t region_count;
    bool payload_crc;    /* default: true */
    bool merge;          /* default: true */
    const char *capture; /* of its port */
};

struct ndsim_topology_switch {
    const char *name;
    unsigned line;
    struct ndsim_switch_config config; /* ports: as many as links end here */
};

enum ndsim_end_kind {
    NDSIM_END_PORT,
    NDSIM_END_SWITCH,
};

struct ndsim_topology_end {
    enum ndsim_end_kind kind;
    uint32_t index; /* of ports or switches: a node's end is its port */
    uint32_t port;  /* of the switch */
};

struct ndsim_down_window {
    uint64_t from_ns; /* from the start of the network on */
    uint64_t until_ns;
};

/* One direction of a link. */
struct ndsim_topology_way {
    struct ndsim_link_config config;
    struct ndsim_down_window down[NDSIM_DOWN_WINDOWS_MAX]; /* in the order of time, none touching another */
    uint32_t down_count;
    uint64_t flap_up_ns; /* up so long, then down so long, again and again; 0, 0: never */
    uint64_t flap_down_ns;
};

/* A cable. */
struct ndsim_topology_link {
    const char *name;
    unsigned line;
    struct ndsim_topology_end ends[2];
    struct ndsim_topology_way ways[2]; /* from ends[0] to ends[1], and back */
    const char *capture;               /* of both directions, as they arrive */
};

struct ndsim_topology {
    uint64_t seed;         /* default 1 */
    uint32_t frame_bytes;  /* the longest frame; default 9216 */
    uint32_t buffers;      /* frames that are under way at a time; default 8192 */
    const char *directory; /* where sockets without a path of their own are */
    const char *control;   /* the fabric's control socket, or NULL */
    struct ndsim_topology_port *ports;
    uint32_t port_count;
    struct ndsim_topology_node *nodes;
    uint32_t node_count;
    struct ndsim_topology_switch *switches;
    uint32_t switch_count;
    struct ndsim_topology_link *links;
    uint32_t link_count;
    void *strings; /* what the pointers to characters point into */
};

/*
 * Reads a file. On failure the topology is empty and `error` holds one line, "FILE:LINE: reason". All references are
 * resolved, names are unique within each kind and among ports, nodes and switches, and shapes are expanded.
 */
bool ndsim_topology_read(struct ndsim_topology *topology, const char *path, char error[NDSIM_TOPOLOGY_ERROR_MAX]);

/* The same from text, which may not include files; paths are taken from the working directory on. */
bool ndsim_topology_parse(struct ndsim_topology *topology, const char *text, char error[NDSIM_TOPOLOGY_ERROR_MAX]);

/* Of an empty one, too. */
void ndsim_topology_free(struct ndsim_topology *topology);

/*
 * For each switch, in `masks`, the mask of its ports that lead to the edge `port`, all on shortest paths; and of those
 * that belong to the trees for broadcasts, by ndsim_trees(). Links of which `dead` says so are not used; NULL: all are.
 */
void ndsim_topology_ways(const struct ndsim_topology *topology, const bool *dead, uint32_t port, uint32_t *masks);
uint32_t ndsim_topology_trees(const struct ndsim_topology *topology, const bool *dead, uint32_t *masks);

#endif
