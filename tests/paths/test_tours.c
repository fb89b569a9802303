/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains across leaves and spines in virtual time: each takes its path all the way round, waypoints, planes that die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ndtest_node.h"
#include "vt/shape.h"

#define NODES  4u
#define PLANES 4u
#define MEMORY (UINT64_C(1) << 20)
#define KEY    UINT64_C(0x4b4b4b4b4b4b4b4b)
#define MS     UINT64_C(1000000)
#define BASE   65536u /* of each node's region */
#define BYTES  4096u  /* of a vector, at the region's start */
#define RESULT 16384u /* in the region: where what comes back is stored */
#define LIST   32768u

static struct ndsim_net net;
static struct ndsim_shape_plan plan;
static struct ndtest_node nodes[NODES];
static struct ndtest_queue queue; /* of node 0 */
static uint32_t peers[NODES];     /* of node 0 */
static uint32_t region;
static unsigned tour_frames[NODES]; /* requests that reached each node by now */
static unsigned ports_seen[NODES];  /* and a bit for each source port of them, from the own one on */

static const struct ndsim_shape shape = {NDSIM_SHAPE_LEAF_SPINE, NODES, NODES, PLANES};

static uint8_t *begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    (void)opaque;
    return ndsim_node_transmit_begin(&net.nodes[node->index].node, bytes);
}

static void end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    (void)opaque;
    ndsim_node_transmit_end(&net.nodes[node->index].node, bytes);
}

/* IPv4 and UDP as the firmware makes them: no options. */
static void see_reached(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    unsigned from_port = (unsigned)frame[34] << 8 | frame[35];

    (void)opaque;
    (void)now_ns;
    if (bytes > 74 && frame[43] == NETDAM_KIND_REQUEST && frame[48] != NETDAM_NODE_FORM_IMPLICIT) {
        tour_frames[node]++;
        ports_seen[node] |= 1u << (from_port - NETDAM_UDP_PORT);
    }
}

static uint64_t value(unsigned node, unsigned index)
{
    return (uint64_t)node * 1000003 + index;
}

static void add_node(unsigned index)
{
    struct ndtest_hooks hooks = {.transmit_begin = begin, .transmit_end = end};
    struct netdam_fw_config config;
    const char *error;
    uint64_t key;
    uint32_t own;

    ndtest_config_default(&config, index);
    assert_int_equal(config.memory_bytes, MEMORY);
    assert_true(ndtest_node_init(&nodes[index], netdam_fw_entry(), &config, &hooks, index + 1, &error));
    nodes[index].index = index;
    memset(nodes[index].memory, 0, MEMORY);
    for (unsigned i = 0; i < BYTES / 8; i++) {
        uint64_t word = value(index, i);

        memcpy(nodes[index].memory + BASE + 8 * i, &word, sizeof(word));
    }
    ndtest_node_start(&nodes[index], 0);
    assert_int_equal(ndsim_net_add_node(&net, nodes[index].ops, nodes[index].state, nodes[index].config.mac,
                                        &(struct ndsim_node_config){.budget_bytes = 65536}),
                     index);
    ndsim_node_started(&net.nodes[index].node, 0);
    assert_int_equal(
        ndtest_region_create(&nodes[index], BASE, 65536, NETDAM_PERMISSION_ALL, KEY + index, 0, &own, &key),
        NETDAM_ADMIN_STATUS_OK);
    region = index == 0 ? own : region;
}

static void start(void)
{
    const struct ndsim_link_config link = {.bits_per_s = UINT64_C(100000000000), .propagation_ns = 500};
    const struct ndsim_switch_config leaf = {.bits_per_s = UINT64_C(100000000000), .latency_ns = 400};

    memset(tour_frames, 0, sizeof(tour_frames));
    memset(ports_seen, 0, sizeof(ports_seen));
    ndsim_net_init(&net, 7, 0);
    for (unsigned i = 0; i < NODES; i++) {
        add_node(i);
    }
    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned j = 0; j < NODES; j++) {
            assert_int_equal(ndtest_neighbour_set(&nodes[i], &nodes[j], 4, 0), NETDAM_ADMIN_STATUS_OK);
        }
        assert_int_equal(ndtest_peer_open(&nodes[0], &nodes[i], 4, 0, &peers[i]), NETDAM_ADMIN_STATUS_OK);
    }
    assert_int_equal(ndtest_queue_create(&queue, &nodes[0], 4096, 6, 32768, 6, 0, 0), NETDAM_ADMIN_STATUS_OK);
    assert_true(
        ndsim_shape_build(&net, &shape, &leaf, &link, &(struct ndsim_link_config){.propagation_ns = 500}, &plan));
    net.reached = see_reached;
}

static void stop(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        ndtest_node_stop(&nodes[i], net.loop.now_ns);
        ndtest_node_fini(&nodes[i]);
    }
    ndsim_net_fini(&net);
}

/* One segment at node `hop`; the vector begins at the region's start. */
static struct netdam_segment segment(unsigned opcode, unsigned hop)
{
    struct netdam_segment result = {.opcode = (uint8_t)opcode, .peer = peers[hop]};

    if (opcode == NETDAM_OP_LOAD_REDUCE || opcode == NETDAM_OP_REDUCE) {
        result.operation = NETDAM_ALU_SUM;
        result.type = NETDAM_TYPE_U64;
    }
    result.key = opcode != NETDAM_OP_FORWARD ? KEY + hop : 0;
    return result;
}

/* Posts a chain over node 0's vector, or one that begins with a load and returns; runs until it has completed. */
static enum netdam_status tour(const struct netdam_segment *segments, unsigned count, bool loads, bool returns)
{
    struct netdam_completion completion = {0};
    struct netdam_descriptor descriptor = {
        .opcode = NETDAM_OP_CHAIN,
        .list_count = (uint8_t)count,
        .length = 1024,
        .immediate = region,
        .remote_address = LIST,
        .peer = returns ? region : 0,
        .local_region = loads ? 0 : region,
        .u.buffer = {.result_address = returns ? RESULT : 0},
    };
    uint64_t end_ns = net.loop.now_ns + 10000 * MS;
    unsigned action;

    memcpy(nodes[0].memory + BASE + LIST, segments, count * sizeof(segments[0]));
    assert_true(ndtest_queue_post(&queue, &descriptor, net.loop.now_ns, &action));
    if ((action & NETDAM_FW_ACTION_RUN) != 0) {
        ndsim_node_wake(&net.nodes[0].node, net.loop.now_ns);
    }
    while (!ndtest_queue_poll(&queue, &completion)) {
        assert_true(ndsim_loop_step(&net.loop, end_ns));
    }
    return (enum netdam_status)completion.status;
}

static void expect_words(unsigned node, uint64_t at, uint64_t (*expected)(unsigned index))
{
    for (unsigned i = 0; i < 1024 / 8; i++) {
        uint64_t word;

        memcpy(&word, nodes[node].memory + BASE + at + 8 * i, sizeof(word));
        assert_true(word == expected(i));
    }
}

static uint64_t own_value(unsigned index)
{
    return value(0, index);
}

static uint64_t value_of_2(unsigned index)
{
    return value(2, index);
}

static uint64_t sum_of_all(unsigned index)
{
    return value(0, index) + value(1, index) + value(2, index) + value(3, index);
}

static void a_write_goes_by_way_of_the_nodes_that_its_list_names(void **state)
{
    uint8_t before[BYTES];

    (void)state;
    start();
    memcpy(before, nodes[1].memory + BASE, BYTES);
    {
        const struct netdam_segment list[] = {segment(NETDAM_OP_FORWARD, 3), segment(NETDAM_OP_FORWARD, 1),
                                              segment(NETDAM_OP_WRITE, 2)};

        assert_int_equal(tour(list, 3, false, false), NETDAM_STATUS_OK);
    }
    expect_words(2, 0, own_value);
    assert_memory_equal(nodes[1].memory + BASE, before, BYTES);
    for (unsigned i = 1; i < NODES; i++) {
        assert_int_equal(tour_frames[i], 1);
    }
    stop();
}

static void a_read_goes_by_way_of_a_node_and_comes_back_at_once(void **state)
{
    (void)state;
    start();
    {
        const struct netdam_segment list[] = {segment(NETDAM_OP_FORWARD, 1), segment(NETDAM_OP_LOAD, 2)};

        assert_int_equal(tour(list, 2, true, true), NETDAM_STATUS_OK);
    }
    expect_words(0, RESULT, value_of_2);
    assert_int_equal(tour_frames[1], 1);
    assert_int_equal(tour_frames[2], 1);
    assert_int_equal(tour_frames[3], 0);
    stop();
}

static void a_tour_keeps_its_path_all_the_way_and_the_next_takes_another(void **state)
{
    (void)state;
    start();
    for (unsigned i = 0; i < 32; i++) {
        const struct netdam_segment list[] = {segment(NETDAM_OP_LOAD_REDUCE, 1), segment(NETDAM_OP_LOAD_REDUCE, 2),
                                              segment(NETDAM_OP_LOAD_REDUCE, 3)};

        memset(ports_seen, 0, sizeof(ports_seen));
        assert_int_equal(tour(list, 3, false, true), NETDAM_STATUS_OK);
        expect_words(0, RESULT, sum_of_all);
        for (unsigned hop = 1; hop < NODES; hop++) {
            assert_int_equal(ports_seen[hop], ports_seen[1]);
        }
        assert_int_equal(ports_seen[1], 1u << i % 16);
    }
    stop();
}

static void tours_survive_a_plane_that_dies_and_stores_happen_once(void **state)
{
    uint64_t counts[2] = {0};

    (void)state;
    start();
    for (unsigned i = 0; i < 120; i++) {
        const struct netdam_segment list[] = {segment(NETDAM_OP_FORWARD, 1), segment(NETDAM_OP_FORWARD, 3),
                                              segment(NETDAM_OP_REDUCE, 2)};

        if (i == 20) {
            ndsim_shape_plane_down(&net, &shape, &plan, 0, net.loop.now_ns, UINT64_MAX);
        }
        assert_int_equal(tour(list, 3, false, false), NETDAM_STATUS_OK);
        if (i == 59 || i == 119) {
            counts[i == 119] = ndtest_node_counter(&nodes[0], NETDAM_COUNTER_RETRANSMISSIONS);
        }
    }
    for (unsigned i = 0; i < 1024 / 8; i++) {
        uint64_t word;

        memcpy(&word, nodes[2].memory + BASE + 8 * i, sizeof(word));
        assert_true(word == value(2, i) + 120 * value(0, i));
    }
    assert_true(counts[0] > 0);
    /* Paths that cross the dead plane are retired, so that ever fewer tours have to be repeated. */
    assert_true(counts[1] - counts[0] < counts[0]);
    assert_true(ndtest_node_counter(&nodes[0], NETDAM_COUNTER_PATHS_RETIRED) > 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_by_way_of_the_nodes_that_its_list_names),
        cmocka_unit_test(a_read_goes_by_way_of_a_node_and_comes_back_at_once),
        cmocka_unit_test(a_tour_keeps_its_path_all_the_way_and_the_next_takes_another),
        cmocka_unit_test(tours_survive_a_plane_that_dies_and_stores_happen_once),
    };

    return cmocka_run_group_tests_name("tours", tests, NULL, NULL);
}
