/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole runs: firmware on leaves and spines, exact times of a round trip, one seed repeats everything bit for bit. */
#include "vt.h"

#include "ndtest_node.h"
#include "vt/shape.h"

#define NODES       4u
#define REGION_BASE 65536u
#define KEY         UINT64_C(0x4b4b4b4b4b4b4b4b)
#define QUEUE_LOG2  8u

struct cluster {
    struct ndsim_net net;
    struct ndtest_node nodes[NODES];
    struct ndtest_queue queues[NODES];
    uint32_t peers[NODES][NODES];
    uint32_t regions[NODES];
    uint64_t done;
    uint64_t ok;
    uint64_t unreachable;
};

static uint8_t *begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct cluster *cluster = opaque;

    return ndsim_node_transmit_begin(&cluster->net.nodes[node->index].node, bytes);
}

static void end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct cluster *cluster = opaque;

    ndsim_node_transmit_end(&cluster->net.nodes[node->index].node, bytes);
}

static void add_node(struct cluster *cluster, unsigned index, const struct ndsim_node_config *config)
{
    struct ndtest_hooks hooks = {.opaque = cluster, .transmit_begin = begin, .transmit_end = end};
    struct ndtest_node *node = &cluster->nodes[index];
    struct netdam_fw_config fw_config;
    const char *error;
    uint64_t key;

    ndtest_config_default(&fw_config, index);
    assert_true(ndtest_node_init(node, netdam_fw_entry(), &fw_config, &hooks, cluster->net.seed + index, &error));
    node->index = index;
    memset(node->memory, 0, fw_config.memory_bytes);
    ndtest_node_start(node, cluster->net.loop.now_ns);
    assert_int_equal(ndsim_net_add_node(&cluster->net, node->ops, node->state, node->config.mac, config), index);
    ndsim_node_started(&cluster->net.nodes[index].node, 0);
    assert_int_equal(ndtest_region_create(node, REGION_BASE, 65536, NETDAM_PERMISSION_ALL, KEY + index, 0,
                                          &cluster->regions[index], &key),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ndtest_queue_create(&cluster->queues[index], node, 4096, QUEUE_LOG2, 32768, QUEUE_LOG2, 0, 0),
                     NETDAM_ADMIN_STATUS_OK);
}

/* `known`: nobody has to be asked for its link-layer address. */
static void open_peers(struct cluster *cluster, unsigned family, bool known)
{
    for (unsigned from = 0; from < NODES; from++) {
        for (unsigned to = 0; to < NODES; to++) {
            if (cluster->nodes[from].ops == NULL || cluster->nodes[to].ops == NULL) {
                continue;
            }
            if (known) {
                assert_int_equal(ndtest_neighbour_set(&cluster->nodes[from], &cluster->nodes[to], family, 0),
                                 NETDAM_ADMIN_STATUS_OK);
            }
            assert_int_equal(
                ndtest_peer_open(&cluster->nodes[from], &cluster->nodes[to], family, 0, &cluster->peers[from][to]),
                NETDAM_ADMIN_STATUS_OK);
        }
    }
}

static void post(struct cluster *cluster, unsigned from, unsigned to, unsigned opcode, uint64_t address)
{
    uint64_t now_ns = cluster->net.loop.now_ns;
    struct netdam_descriptor descriptor = {
        .opcode = (uint8_t)opcode,
        .operation = opcode == NETDAM_OP_REDUCE ? NETDAM_ALU_SUM : NETDAM_ALU_NONE,
        .type = opcode == NETDAM_OP_WRITE || opcode == NETDAM_OP_READ ? NETDAM_TYPE_NONE : NETDAM_TYPE_U64,
        .peer = cluster->peers[from][to],
        .length = opcode == NETDAM_OP_FETCH_ADD ? 8 : 2000,
        .remote_key = KEY + to,
        .remote_address = address,
        .local_region = opcode == NETDAM_OP_FETCH_ADD ? 0 : cluster->regions[from],
    };
    unsigned action;

    if (opcode == NETDAM_OP_FETCH_ADD) {
        descriptor.u.operand[0] = 1;
    } else {
        descriptor.u.buffer.local_address = 8192;
    }
    assert_true(ndtest_queue_post(&cluster->queues[from], &descriptor, now_ns, &action));
    if ((action & NETDAM_FW_ACTION_RUN) != 0) {
        ndsim_node_wake(&cluster->net.nodes[from].node, now_ns);
    }
}

static void poll(struct cluster *cluster)
{
    struct netdam_completion completion;

    for (unsigned i = 0; i < NODES; i++) {
        while (cluster->queues[i].open && ndtest_queue_poll(&cluster->queues[i], &completion)) {
            cluster->done++;
            cluster->ok += completion.status == NETDAM_STATUS_OK;
            cluster->unreachable += completion.status == NETDAM_STATUS_UNREACHABLE;
        }
    }
}

static void fini(struct cluster *cluster)
{
    for (unsigned i = 0; i < NODES; i++) {
        if (cluster->nodes[i].ops != NULL) {
            ndtest_node_stop(&cluster->nodes[i], cluster->net.loop.now_ns);
            ndtest_node_fini(&cluster->nodes[i]);
        }
    }
    ndsim_net_fini(&cluster->net);
    free(cluster);
}

/* Two leaves with two nodes each, two spines, bad links: returns a hash over frames, times and memory. */
static uint64_t run_cluster(uint64_t seed, enum ndsim_spread spread, uint64_t *spine_frames)
{
    const struct ndsim_node_config node_config = {
        .cost = {.run_ns = 200, .frame_ns = 150, .kib_ns = 100}, .receive_frames = 64, .port_bytes = 30000};
    const struct ndsim_when sometimes = {.parts_per_million = 20000};
    const struct ndsim_link_config link = {.bits_per_s = 100000000000,
                                           .propagation_ns = 300,
                                           .queue_bytes = 100000,
                                           .frame_overhead = 24,
                                           .corrupt_from = 14,
                                           .drop = sometimes,
                                           .twice = sometimes,
                                           .reorder = sometimes,
                                           .reorder_ns = 20000,
                                           .corrupt = sometimes,
                                           .spike = sometimes,
                                           .spike_ns = 100000000};
    const struct ndsim_switch_config switch_config = {.ports = 4,
                                                      .spread = spread,
                                                      .bits_per_s = 100000000000,
                                                      .latency_ns = 400,
                                                      .buffer_bytes = 200000,
                                                      .frame_overhead = 24};
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    struct ndsim_random random = {seed};
    uint64_t hash;

    ndsim_net_init(&cluster->net, seed, 0);
    for (unsigned i = 0; i < NODES; i++) {
        add_node(cluster, i, &node_config);
    }
    open_peers(cluster, 4, true);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(ndsim_net_add_switch(&cluster->net, &switch_config), i);
    }
    for (unsigned leaf = 0; leaf < 2; leaf++) {
        for (unsigned i = 0; i < 2; i++) {
            assert_true(ndsim_net_join(&cluster->net, ndsim_end_node(2 * leaf + i), ndsim_end_switch(leaf, i), &link) !=
                        UINT32_MAX);
            assert_true(ndsim_net_join(&cluster->net, ndsim_end_switch(leaf, 2 + i), ndsim_end_switch(2 + i, leaf),
                                       &link) != UINT32_MAX);
        }
    }
    assert_true(ndsim_net_route(&cluster->net));
    for (unsigned round = 0; round < 200; round++) {
        const unsigned opcodes[] = {NETDAM_OP_READ, NETDAM_OP_WRITE, NETDAM_OP_REDUCE, NETDAM_OP_FETCH_ADD};
        /* One after another: the order in which arguments are worked out is the compiler's. */
        unsigned from = (unsigned)ndsim_random_below(&random, NODES);
        unsigned to = (from + 1 + (unsigned)ndsim_random_below(&random, NODES - 1)) % NODES;
        unsigned opcode = opcodes[ndsim_random_below(&random, ARRAY_SIZE(opcodes))];

        post(cluster, from, to, opcode, 8 * ndsim_random_below(&random, 1000));
        ndsim_loop_run(&cluster->net.loop, cluster->net.loop.now_ns + ndsim_random_below(&random, 50000));
        poll(cluster);
    }
    ndsim_loop_run(&cluster->net.loop, cluster->net.loop.now_ns + UINT64_C(60000000000));
    poll(cluster);
    assert_int_equal(cluster->done, 200);
    assert_int_equal(cluster->ok, 200);
    hash = cluster->net.hash;
    for (unsigned i = 0; i < NODES; i++) {
        hash = ndsim_hash(hash, cluster->nodes[i].memory, cluster->nodes[i].config.memory_bytes);
    }
    spine_frames[0] = cluster->net.switches[2]->sw.counts[NDSIM_SWITCH_FRAMES];
    spine_frames[1] = cluster->net.switches[3]->sw.counts[NDSIM_SWITCH_FRAMES];
    fini(cluster);
    return hash;
}

static void one_seed_repeats_a_run_bit_for_bit_and_another_does_not(void **state)
{
    uint64_t frames[2];

    (void)state;
    for (unsigned spread = NDSIM_SPREAD_ECMP; spread <= NDSIM_SPREAD_SPRAY; spread++) {
        uint64_t first = run_cluster(11, (enum ndsim_spread)spread, frames);

        assert_true(frames[0] + frames[1] > 200);
        assert_true(spread != NDSIM_SPREAD_SPRAY || (frames[0] > 50 && frames[1] > 50));
        assert_true(first == run_cluster(11, (enum ndsim_spread)spread, frames));
        assert_true(first != run_cluster(12, (enum ndsim_spread)spread, frames));
        print_message("# frames and memory: hash 0x%016llx\n", (unsigned long long)first);
    }
}

struct frame_time {
    uint64_t left_ns[8];
    uint64_t reached_ns[8];
    uint32_t bytes[8];
    unsigned left;
    unsigned reached;
};

static void see_left(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct frame_time *times = opaque;

    (void)node;
    (void)frame;
    times->bytes[times->left] = bytes;
    times->left_ns[times->left++] = now_ns;
}

static void see_reached(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct frame_time *times = opaque;

    (void)node;
    (void)frame;
    (void)bytes;
    times->reached_ns[times->reached++] = now_ns;
}

static void a_round_trip_takes_what_processors_and_links_take(void **state)
{
    const struct ndsim_node_config node_config = {.cost = {.run_ns = 1000, .frame_ns = 100}};
    const struct ndsim_link_config link = {.bits_per_s = 8000000000, .propagation_ns = 5000};
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    struct frame_time times = {0};

    (void)state;
    ndsim_net_init(&cluster->net, 1, 0);
    cluster->net.opaque = &times;
    cluster->net.left = see_left;
    cluster->net.reached = see_reached;
    for (unsigned i = 0; i < 2; i++) {
        add_node(cluster, i, &node_config);
    }
    open_peers(cluster, 4, true);
    assert_int_equal(ndsim_net_join(&cluster->net, ndsim_end_node(0), ndsim_end_node(1), &link), 0);
    assert_int_equal(ndsim_net_join(&cluster->net, ndsim_end_node(0), ndsim_end_node(1), &link), UINT32_MAX);
    ndsim_loop_run(&cluster->net.loop, 1000000);
    post(cluster, 0, 1, NETDAM_OP_FETCH_ADD, 0);
    ndsim_loop_run(&cluster->net.loop, 2000000);
    poll(cluster);
    assert_int_equal(cluster->ok, 1);
    /* The question for the generation, STALE, the request, the answer. */
    assert_int_equal(times.left, 4);
    assert_int_equal(times.reached, 4);
    /* Woken at 1 ms: one run that sends one frame. */
    assert_int_equal(times.left_ns[0], 1000000 + 1000 + 100);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(times.reached_ns[i], times.left_ns[i] + times.bytes[i] + 5000);
    }
    /* Received and answered: two frames. */
    assert_int_equal(times.left_ns[1], times.reached_ns[0] + 200);
    /* Received, then run, which sends. */
    assert_int_equal(times.left_ns[2], times.reached_ns[1] + 100 + 1000 + 100);
    assert_int_equal(times.left_ns[3], times.reached_ns[2] + 200);
    fini(cluster);
}

static void a_node_that_has_died_gets_nothing_and_a_dead_path_carries_nothing(void **state)
{
    const struct ndsim_node_config node_config = {0};
    const struct ndsim_link_config link = {.propagation_ns = 1000};
    struct cluster *cluster = calloc(1, sizeof(*cluster));

    (void)state;
    ndsim_net_init(&cluster->net, 1, 0);
    for (unsigned i = 0; i < 2; i++) {
        add_node(cluster, i, &node_config);
    }
    open_peers(cluster, 4, true);
    assert_int_equal(ndsim_net_join(&cluster->net, ndsim_end_node(0), ndsim_end_node(1), &link), 0);
    ndsim_link_down(&cluster->net.links[0]->link, 0, 5000000);
    post(cluster, 0, 1, NETDAM_OP_FETCH_ADD, 0);
    ndsim_loop_run(&cluster->net.loop, 4999999);
    poll(cluster);
    assert_int_equal(cluster->done, 0);
    assert_int_equal(cluster->net.delivered, 0);
    ndsim_loop_run(&cluster->net.loop, 500000000);
    poll(cluster);
    assert_int_equal(cluster->ok, 1);
    ndsim_node_stopped(&cluster->net.nodes[1].node);
    cluster->net.delivered = 0;
    post(cluster, 0, 1, NETDAM_OP_FETCH_ADD, 0);
    ndsim_loop_run(&cluster->net.loop, 30000000000);
    poll(cluster);
    assert_int_equal(cluster->net.delivered, 0);
    assert_int_equal(cluster->done, 2);
    assert_int_equal(cluster->ok, 1);
    fini(cluster);
}

/*
 * Everybody writes to everybody for the first time while one plane is dead and no switch knows it. Everybody is found. Of
 * two planes or three it can be by chance that no path is alive both there and back; of more, everybody is reached.
 */
static void make_first_contacts(unsigned family, uint32_t planes, uint32_t dead, uint64_t seed)
{
    const struct ndsim_shape shape = {NDSIM_SHAPE_LEAF_SPINE, NODES, 2, planes};
    const struct ndsim_node_config node_config = {0};
    const struct ndsim_switch_config switch_config = {.spread = NDSIM_SPREAD_ECMP};
    const struct ndsim_link_config link = {.propagation_ns = 1000};
    struct cluster *cluster = calloc(1, sizeof(*cluster));
    struct ndsim_shape_plan plan;

    ndsim_net_init(&cluster->net, seed, 0);
    for (unsigned i = 0; i < NODES; i++) {
        add_node(cluster, i, &node_config);
    }
    open_peers(cluster, family, false);
    assert_true(ndsim_shape_build(&cluster->net, &shape, &switch_config, &link, &link, &plan));
    ndsim_shape_plane_down(&cluster->net, &shape, &plan, dead, 0, UINT64_MAX);
    for (unsigned from = 0; from < NODES; from++) {
        for (unsigned to = 0; to < NODES; to++) {
            if (from != to) {
                post(cluster, from, to, NETDAM_OP_WRITE, 0);
            }
        }
    }
    ndsim_loop_run(&cluster->net.loop, UINT64_C(60000000000));
    poll(cluster);
    assert_int_equal(cluster->done, NODES * (NODES - 1));
    assert_int_equal(cluster->unreachable, 0);
    assert_true(cluster->ok == cluster->done || planes < 4);
    fini(cluster);
}

static void a_plane_that_is_dead_unnoticed_keeps_nobody_from_a_first_contact(void **state)
{
    static const uint32_t planes[] = {2, 3, 4, 8};

    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        for (size_t i = 0; i < ARRAY_SIZE(planes); i++) {
            for (uint32_t dead = 0; dead < planes[i]; dead++) {
                for (uint64_t seed = 1; seed <= 5; seed++) {
                    make_first_contacts(family, planes[i], dead, seed);
                }
            }
        }
    }
}

/* A broadcast from each node in turn reaches each other one once, and never its sender. */
static void a_broadcast_reaches_everybody_once(void **state)
{
    static const struct ndsim_shape shapes[] = {
        {NDSIM_SHAPE_STAR, NODES, 1, 0}, {NDSIM_SHAPE_RING, NODES, 4, 0}, {NDSIM_SHAPE_LEAF_SPINE, NODES, 2, 4}};
    const struct ndsim_node_config node_config = {0};
    const struct ndsim_switch_config switch_config = {.spread = NDSIM_SPREAD_SPRAY};
    const struct ndsim_link_config link = {.propagation_ns = 1000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        struct cluster *cluster = calloc(1, sizeof(*cluster));
        struct ndsim_shape_plan plan;

        ndsim_net_init(&cluster->net, 1, 0);
        for (unsigned node = 0; node < NODES; node++) {
            add_node(cluster, node, &node_config);
        }
        assert_true(ndsim_shape_build(&cluster->net, &shapes[i], &switch_config, &link, &link, &plan));
        for (unsigned round = 0; round < 100; round++) {
            unsigned from = round % NODES;
            uint8_t *frame = ndsim_node_transmit_begin(&cluster->net.nodes[from].node, 60);

            assert_non_null(frame);
            memset(frame, 0, 60);
            memset(frame, 0xff, 6);
            memcpy(frame + 6, cluster->net.nodes[from].mac, 6);
            cluster->net.delivered = 0;
            ndsim_node_transmit_end(&cluster->net.nodes[from].node, 60);
            ndsim_node_wake(&cluster->net.nodes[from].node, cluster->net.loop.now_ns);
            ndsim_loop_run(&cluster->net.loop, cluster->net.loop.now_ns + 1000000);
            assert_int_equal(cluster->net.delivered, NODES - 1);
        }
        fini(cluster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_repeats_a_run_bit_for_bit_and_another_does_not),
        cmocka_unit_test(a_round_trip_takes_what_processors_and_links_take),
        cmocka_unit_test(a_node_that_has_died_gets_nothing_and_a_dead_path_carries_nothing),
        cmocka_unit_test(a_plane_that_is_dead_unnoticed_keeps_nobody_from_a_first_contact),
        cmocka_unit_test(a_broadcast_reaches_everybody_once),
    };

    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
