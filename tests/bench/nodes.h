/* SPDX-License-Identifier: BSD-3-Clause */
/* Two firmware instances in one process and thread, joined by a direct wire: what one sends waits in memory until the
 * other takes it. */
#ifndef BENCH_NODES_H
#define BENCH_NODES_H

#include "ndtest_node.h"

#define NODES_WIRE_FRAMES 64u
#define NODES_FRAME_BYTES 9216u /* the longest frame, and what keeps slots apart */

/* One direction. Emptied before it is filled again, so that few slots are in use and stay in a cache. */
struct nodes_wire {
    uint8_t *slots;
    size_t bytes[NODES_WIRE_FRAMES];
    uint32_t head, tail;
};

struct nodes {
    struct ndtest_node node[2];
    struct nodes_wire wire[2]; /* what node i has sent */
    const struct netdam_fw_crypto *crypto[2];
    struct ndtest_queue queue; /* of node 0 */
    uint32_t peer;             /* node 1 at node 0 */
    uint32_t region;           /* all data of node 0 */
    uint64_t key;              /* all data of node 1 */
    uint64_t user_data;
};

/* Where data starts: rings lie before. */
#define NODES_DATA_START ((uint64_t)1 << 20)

struct nodes_options {
    size_t data_bytes; /* on each node */
    uint32_t mtu;
    bool payload_crc;
    unsigned tenant_mode; /* enum netdam_tenant_mode; NONE: no tenant */
};

void nodes_start(struct nodes *nodes, const struct nodes_options *options);
void nodes_stop(struct nodes *nodes);
/* A descriptor for `length` bytes at the same place of both nodes' data. */
struct netdam_descriptor nodes_request(const struct nodes *nodes, unsigned opcode, uint64_t address, uint32_t length);
/* Posts it `count` times, `stride` bytes further each time and round within the data, and does what a platform and a
 * program do until all have completed. */
void nodes_do(struct nodes *nodes, struct netdam_descriptor descriptor, unsigned count, uint64_t stride);
/* Hands over what node `from` has sent so far. */
void nodes_deliver(struct nodes *nodes, unsigned from, uint64_t now_ns);
uint64_t nodes_now_ns(void);

#endif
