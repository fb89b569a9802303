/* SPDX-License-Identifier: BSD-3-Clause */
/* Two nodes across leaves and spines in virtual time, one of them writing to the other. */
#include "traffic.h"

#include "ndfw.h"

#include <stdlib.h>
#include <string.h>

#define KEY         UINT64_C(0x5a5a5a5a5a5a5a5a)
#define MEMORY      (UINT64_C(4) << 20)
#define REGION_BASE (UINT64_C(1) << 20)
#define REGION      (UINT64_C(2) << 20)
#define QUEUE_LOG2  8u
#define STEP_NS     1000u

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct traffic_setup traffic_default(void)
{
    return (struct traffic_setup){
        .seed = 1,
        .planes = 4,
        .mtu = 9000,
        .node_bits_per_s = UINT64_C(100000000000),
        .trunk_bits_per_s = UINT64_C(100000000000),
        .message_bytes = 65536,
        .depth = 32,
    };
}

static uint8_t *begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct traffic *traffic = opaque;

    return ndsim_node_transmit_begin(&traffic->net.nodes[node->index].node, bytes);
}

static void end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct traffic *traffic = opaque;

    ndsim_node_transmit_end(&traffic->net.nodes[node->index].node, bytes);
}

static void add_node(struct traffic *traffic, unsigned index)
{
    /* The port takes a few frames ahead of the wire, and the firmware as much as it likes at a time. */
    const struct ndsim_node_config config = {.port_bytes = 4 * (traffic->setup.mtu + 100u), .budget_bytes = 65536};
    struct ndtest_hooks hooks = {.opaque = traffic, .transmit_begin = begin, .transmit_end = end};
    struct ndtest_node *node = &traffic->nodes[index];
    struct netdam_fw_config fw_config;
    const char *error;

    ndtest_config_default(&fw_config, index);
    fw_config.memory_bytes = MEMORY;
    fw_config.mtu = traffic->setup.mtu;
    fw_config.paths = traffic->setup.paths;
    fw_config.retries = traffic->setup.retries;
    CHECK(ndtest_node_init(node, netdam_fw_entry(), &fw_config, &hooks, traffic->setup.seed + index, &error));
    node->index = index;
    memset(node->memory, 0, MEMORY);
    for (uint64_t i = 0; index == 0 && i < REGION; i++) {
        node->memory[REGION_BASE + i] = (uint8_t)(i * 131 >> 4);
    }
    ndtest_node_start(node, 0);
    CHECK(ndsim_net_add_node(&traffic->net, node->ops, node->state, node->config.mac, &config) == index);
    ndsim_node_started(&traffic->net.nodes[index].node, 0);
}

static void introduce(struct traffic *traffic)
{
    uint64_t key;
    uint32_t region;

    CHECK(ndtest_neighbour_set(&traffic->nodes[0], &traffic->nodes[1], 4, 0) == NETDAM_ADMIN_STATUS_OK);
    CHECK(ndtest_neighbour_set(&traffic->nodes[1], &traffic->nodes[0], 4, 0) == NETDAM_ADMIN_STATUS_OK);
    CHECK(ndtest_peer_open(&traffic->nodes[0], &traffic->nodes[1], 4, 0, &traffic->peer) == NETDAM_ADMIN_STATUS_OK);
    CHECK(ndtest_region_create(&traffic->nodes[0], REGION_BASE, REGION, NETDAM_PERMISSION_ALL, KEY, 0, &traffic->region,
                               &key) == NETDAM_ADMIN_STATUS_OK);
    CHECK(ndtest_region_create(&traffic->nodes[1], REGION_BASE, REGION, NETDAM_PERMISSION_ALL, KEY, 0, &region, &key) ==
          NETDAM_ADMIN_STATUS_OK);
    CHECK(ndtest_queue_create(&traffic->queue, &traffic->nodes[0], 4096, QUEUE_LOG2, 65536, QUEUE_LOG2, 0, 0) ==
          NETDAM_ADMIN_STATUS_OK);
}

/* Only on the way up to the spines, so that every frame meets it once. */
static void set_loss(struct traffic *traffic)
{
    for (uint32_t i = 0; i < traffic->plan.edge_count; i++) {
        if (traffic->plan.edges[i].trunk) {
            traffic->net.links[2 * i]->link.config.drop.parts_per_million = traffic->setup.loss_ppm;
        }
    }
}

/* Whenever the firmware has done something: what has completed by then. */
static void poll(void *opaque, struct ndsim_node *node, uint64_t now_ns)
{
    struct traffic *traffic = opaque;
    struct netdam_completion completion;

    (void)node;
    while (ndtest_queue_poll(&traffic->queue, &completion)) {
        uint64_t took_ns = now_ns - completion.user_data;

        traffic->completed++;
        if (completion.status == NETDAM_STATUS_OK) {
            traffic->ok++;
            traffic->bytes += completion.length;
        } else {
            traffic->failed++;
            traffic->last_failed_ns = took_ns;
        }
        if (traffic->done != NULL) {
            traffic->done(traffic->opaque, traffic, (enum netdam_status)completion.status, took_ns);
        }
    }
}

struct traffic *traffic_start(const struct traffic_setup *setup)
{
    const struct ndsim_link_config node_link = {
        .bits_per_s = setup->node_bits_per_s, .propagation_ns = 500, .frame_overhead = 24};
    const struct ndsim_link_config trunk_link = {.propagation_ns = 500};
    const struct ndsim_switch_config leaf = {.spread = NDSIM_SPREAD_ECMP,
                                             .bits_per_s = setup->trunk_bits_per_s,
                                             .latency_ns = 400,
                                             .buffer_bytes = UINT64_C(16) << 20,
                                             .frame_overhead = 24};
    struct traffic *traffic = calloc(1, sizeof(*traffic));

    CHECK(traffic != NULL && setup->depth <= TRAFFIC_DEPTH_MAX);
    traffic->setup = *setup;
    traffic->shape = (struct ndsim_shape){NDSIM_SHAPE_LEAF_SPINE, 2, 2, setup->planes};
    ndsim_net_init(&traffic->net, setup->seed, 0);
    add_node(traffic, 0);
    add_node(traffic, 1);
    introduce(traffic);
    CHECK(ndsim_shape_build(&traffic->net, &traffic->shape, &leaf, &node_link, &trunk_link, &traffic->plan));
    for (uint32_t i = 0; i < 2; i++) {
        /* Towards its node a leaf sends as fast as the node does. */
        traffic->net.switches[i]->sw.lines[0].bits_per_s = setup->node_bits_per_s;
    }
    set_loss(traffic);
    traffic->net.nodes[0].node.after_call = poll;
    traffic->net.nodes[0].node.after_call_opaque = traffic;
    return traffic;
}

void traffic_end(struct traffic *traffic)
{
    for (unsigned i = 0; i < 2; i++) {
        ndtest_node_stop(&traffic->nodes[i], traffic->net.loop.now_ns);
        ndtest_node_fini(&traffic->nodes[i]);
    }
    ndsim_net_fini(&traffic->net);
    free(traffic);
}

void traffic_post(struct traffic *traffic)
{
    const uint64_t now_ns = traffic->net.loop.now_ns;
    struct netdam_descriptor descriptor = {
        .opcode = NETDAM_OP_WRITE,
        .flags = (uint16_t)traffic->setup.flags,
        .peer = traffic->peer,
        .length = traffic->setup.message_bytes,
        .remote_key = KEY,
        .local_region = traffic->region,
    };
    unsigned action = 0;
    bool woken = false;

    while (!traffic->stopped && traffic->posted - traffic->completed < traffic->setup.depth) {
        /* One piece of the region after the other. */
        descriptor.u.buffer.local_address =
            traffic->posted % (REGION / traffic->setup.message_bytes) * traffic->setup.message_bytes;
        descriptor.remote_address = descriptor.u.buffer.local_address;
        descriptor.user_data = now_ns;
        CHECK(ndtest_queue_post(&traffic->queue, &descriptor, now_ns, &action));
        traffic->posted++;
        woken |= (action & NETDAM_FW_ACTION_RUN) != 0;
    }
    if (woken) {
        ndsim_node_wake(&traffic->net.nodes[0].node, now_ns);
    }
}

void traffic_run(struct traffic *traffic, uint64_t duration_ns)
{
    uint64_t end_ns = traffic->net.loop.now_ns + duration_ns;

    while (traffic->net.loop.now_ns < end_ns) {
        uint64_t step_ns = traffic->net.loop.now_ns + STEP_NS;
        uint64_t next_ns;

        traffic_post(traffic);
        next_ns = ndsim_loop_next_ns(&traffic->net.loop);
        /* Where nothing happens, time is short. */
        step_ns = next_ns > step_ns ? next_ns : step_ns;
        ndsim_loop_run(&traffic->net.loop, step_ns < end_ns ? step_ns : end_ns);
        if (traffic->stopped && traffic->completed == traffic->posted) {
            break;
        }
    }
}

void traffic_drain(struct traffic *traffic, uint64_t duration_ns)
{
    traffic->stopped = true;
    traffic_run(traffic, duration_ns);
    traffic->stopped = false;
}

double traffic_goodput(struct traffic *traffic, uint64_t warm_ns, uint64_t duration_ns)
{
    uint64_t before;

    traffic_run(traffic, warm_ns);
    before = traffic->bytes;
    traffic_run(traffic, duration_ns);
    return (double)(traffic->bytes - before) * 8e9 / (double)duration_ns;
}

void traffic_plane(struct traffic *traffic, uint32_t plane, bool up)
{
    uint64_t now_ns = traffic->net.loop.now_ns;

    ndsim_shape_plane_down(&traffic->net, &traffic->shape, &traffic->plan, plane, now_ns, up ? now_ns : UINT64_MAX);
}

uint64_t traffic_queued(const struct traffic *traffic)
{
    uint64_t most = 0;

    for (uint32_t port = 1; port <= traffic->setup.planes; port++) {
        uint64_t queued = ndsim_switch_queued(&traffic->net.switches[0]->sw, port, traffic->net.loop.now_ns);

        most = queued > most ? queued : most;
    }
    return most;
}

uint64_t traffic_plane_frames(const struct traffic *traffic, uint32_t plane)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < traffic->plan.edge_count; i++) {
        const struct ndsim_shape_edge *edge = &traffic->plan.edges[i];

        if (edge->trunk && edge->a.index == 0 && edge->b.index == traffic->shape.switches + plane) {
            frames += traffic->net.links[2 * i]->link.counts[NDSIM_LINK_FRAMES];
        }
    }
    return frames;
}

bool traffic_memory_agrees(const struct traffic *traffic)
{
    uint64_t bytes = traffic->posted * traffic->setup.message_bytes;

    return memcmp(traffic->nodes[0].memory + REGION_BASE, traffic->nodes[1].memory + REGION_BASE,
                  bytes < REGION ? bytes : REGION) == 0;
}

uint64_t traffic_round_trip_ns(const struct traffic *traffic)
{
    const struct ndfw *fw = traffic->nodes[0].state;

    return fw->peers[traffic->peer].srtt_ns;
}

uint64_t traffic_counter(struct traffic *traffic, enum netdam_counter counter)
{
    return ndtest_node_counter(&traffic->nodes[0], counter);
}
