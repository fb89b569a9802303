/* SPDX-License-Identifier: BSD-3-Clause */
/* Several nodes over a wire in virtual time, each with a region, a queue pair, and peers for all, itself included. */
#ifndef FLEET_H
#define FLEET_H

#include "unit.h"

#include "ndtest_wire.h"

#define NODES  5
#define KEY(i) (0x6b00000000000000u + (i))
#define BASE   0x10000u
#define BYTES  0x20000u
#define LIST   0x8000u /* in the region that lies at 0 */

struct fleet {
    struct ndtest_wire wire;
    struct ndtest_node nodes[NODES];
    struct ndtest_queue queues[NODES];
    uint32_t everything[NODES]; /* region index: all memory */
    uint32_t shared[NODES];     /* the one with KEY */
    uint32_t peers[NODES][NODES];
};

/* `change` may alter the configuration of each node; or NULL. */
static inline void fleet_start_changed(struct fleet *fleet, uint64_t seed, unsigned family, uint32_t mtu,
                                       void (*change)(struct netdam_fw_config *))
{
    const char *error = "";

    memset(fleet, 0, sizeof(*fleet));
    ndtest_wire_init(&fleet->wire, seed, 1000000);
    for (unsigned i = 0; i < NODES; i++) {
        struct netdam_fw_config config;
        struct ndtest_hooks hooks = {0};

        ndtest_config_default(&config, i);
        config.memory_bytes = 0x40000;
        config.mtu = mtu;
        config.peers = config.regions = 8;
        config.operations = config.window = 64;
        config.chains = config.lane_windows = 32;
        config.rto_initial_ns = 2 * UNIT_MS;
        config.rto_min_ns = UNIT_MS / 2;
        config.rto_max_ns = 20 * UNIT_MS;
        config.confirm_idle_ns = 2 * UNIT_MS;
        if (family == 6) {
            config.forward[0] = (struct netdam_fw_network){.family = 6, .prefix = 8, .address = {0xfd}};
        }
        if (change != NULL) {
            change(&config);
        }
        ndtest_wire_port(&fleet->wire, &hooks);
        assert_true(ndtest_node_init(&fleet->nodes[i], netdam_fw_entry(), &config, &hooks, seed + i, &error));
        ndtest_wire_add(&fleet->wire, &fleet->nodes[i]);
        ndtest_node_start(&fleet->nodes[i], fleet->wire.now_ns);
    }
    for (unsigned i = 0; i < NODES; i++) {
        uint64_t now = fleet->wire.now_ns;
        uint64_t key;

        assert_int_equal(ndtest_region_create(&fleet->nodes[i], 0, 0x40000, NETDAM_PERMISSION_ALL, 0, now,
                                              &fleet->everything[i], &key),
                         0);
        assert_int_equal(ndtest_region_create(&fleet->nodes[i], BASE, BYTES, NETDAM_PERMISSION_ALL, KEY(i), now,
                                              &fleet->shared[i], &key),
                         0);
        assert_int_equal(ndtest_queue_create(&fleet->queues[i], &fleet->nodes[i], 0x1000, 4, 0x2000, 4, 0, now), 0);
        for (unsigned j = 0; j < NODES; j++) {
            assert_int_equal(ndtest_peer_open(&fleet->nodes[i], &fleet->nodes[j], family, now, &fleet->peers[i][j]), 0);
        }
    }
}

static inline void fleet_start(struct fleet *fleet, uint64_t seed, unsigned family, uint32_t mtu)
{
    fleet_start_changed(fleet, seed, family, mtu, NULL);
}

static inline void fleet_stop(struct fleet *fleet)
{
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(ndtest_node_guards_intact(&fleet->nodes[i]));
        ndtest_node_fini(&fleet->nodes[i]);
    }
    ndtest_wire_fini(&fleet->wire);
}

static inline struct netdam_completion fleet_wait(struct fleet *fleet, unsigned node)
{
    struct netdam_completion completion = {0};
    uint64_t end = fleet->wire.now_ns + 10000 * UNIT_MS;

    while (!ndtest_queue_poll(&fleet->queues[node], &completion)) {
        assert_true(fleet->wire.now_ns < end);
        assert_true(ndtest_wire_step(&fleet->wire));
    }
    return completion;
}

#endif
