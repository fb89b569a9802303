/* SPDX-License-Identifier: BSD-3-Clause */
/* The two instances, their wire, and the loop of a platform that runs both. */
#define _GNU_SOURCE
#include "nodes.h"
#include "bench.h"

#include "crypto.h"

#include "platform_cpu.h"

#include <stdlib.h>
#include <time.h>

#define RING_LOG2    8u
#define BUDGET_BYTES 65536u /* of one run, as the platforms have it */

uint64_t nodes_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint8_t *wire_begin(void *opaque, size_t bytes)
{
    struct nodes_wire *wire = opaque;

    (void)bytes;
    return wire->tail == NODES_WIRE_FRAMES ? NULL : wire->slots + (size_t)wire->tail * NODES_FRAME_BYTES;
}

static void wire_end(void *opaque, size_t bytes)
{
    struct nodes_wire *wire = opaque;

    wire->bytes[wire->tail++] = bytes;
}

static void wire_entropy(void *opaque, void *buffer, size_t bytes)
{
    static struct ndtest_random random = {20036};

    (void)opaque;
    ndtest_random_fill(&random, buffer, bytes);
}

static void no_interrupt(void *opaque, unsigned vector)
{
    (void)opaque, (void)vector;
}

static void expect(bool condition, const char *what)
{
    if (!condition) {
        bench_fail(what);
    }
}

/* A platform without ears: no trace, no log, no look at every access. */
static void start_node(struct nodes *nodes, unsigned index, const struct nodes_options *options)
{
    struct ndtest_node *node = &nodes->node[index];
    struct netdam_fw_config config;
    const char *error = "";

    ndtest_config_default(&config, index);
    config.memory_bytes = NODES_DATA_START + options->data_bytes;
    config.mtu = options->mtu;
    config.no_payload_crc = !options->payload_crc;
    config.cpu_features = ndfw_platform_cpu_features();
    config.memory = bench_allocate(1u << 21, config.memory_bytes);
    *node = (struct ndtest_node){.ops = netdam_fw_entry(), .config = config, .memory = config.memory, .index = index};
    node->state_bytes = node->ops->state_bytes(&config, &error);
    if (node->state_bytes == 0) {
        bench_fail(error);
    }
    node->state = bench_allocate(1u << 21, node->state_bytes);
    nodes->wire[index].slots = bench_allocate(4096, (size_t)NODES_WIRE_FRAMES * NODES_FRAME_BYTES);
    nodes->crypto[index] = options->tenant_mode == NETDAM_TENANT_MODE_NONE ? NULL : ndsim_crypto_open();
    node->platform = (struct netdam_fw_platform){
        .crypto = nodes->crypto[index],
        .opaque = &nodes->wire[index],
        .transmit_begin = wire_begin,
        .transmit_end = wire_end,
        .interrupt = no_interrupt,
        .entropy = wire_entropy,
    };
    ndtest_node_start(node, nodes_now_ns());
}

/* The region of all data; with a tenant it is the tenant's. */
static void create_region(struct nodes *nodes, unsigned index, const struct nodes_options *options, uint64_t results[])
{
    const uint64_t tenant = options->tenant_mode == NETDAM_TENANT_MODE_NONE ? 0 : 1;
    const uint64_t keys[] = {tenant, UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210), options->tenant_mode};
    const uint64_t region[] = {NODES_DATA_START, options->data_bytes, NETDAM_PERMISSION_ALL, 0, tenant};
    uint64_t now = nodes_now_ns();

    expect((tenant == 0 || ndtest_node_admin(&nodes->node[index], NETDAM_ADMIN_TENANT_SET, keys, 4, results, now) ==
                               NETDAM_ADMIN_STATUS_OK) &&
               ndtest_node_admin(&nodes->node[index], NETDAM_ADMIN_REGION_CREATE, region, 5, results, now) ==
                   NETDAM_ADMIN_STATUS_OK,
           "a node cannot be set up");
}

/* Node 1, whose address is its index plus 1. */
static void open_peer(struct nodes *nodes, const struct nodes_options *options)
{
    const uint64_t tenant = options->tenant_mode == NETDAM_TENANT_MODE_NONE ? 0 : 1;
    const uint8_t *ipv4 = nodes->node[1].config.ipv4;
    const uint64_t address[] = {(uint64_t)ipv4[0] << 24 | (uint64_t)ipv4[1] << 16 | (uint64_t)ipv4[2] << 8 | ipv4[3], 0,
                                4 | (uint64_t)NETDAM_UDP_PORT << 16 | tenant << 32};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    expect(ndtest_node_admin(&nodes->node[0], NETDAM_ADMIN_PEER_OPEN, address, 3, results, nodes_now_ns()) ==
               NETDAM_ADMIN_STATUS_OK,
           "the peer cannot be opened");
    nodes->peer = (uint32_t)results[0];
}

void nodes_start(struct nodes *nodes, const struct nodes_options *options)
{
    uint64_t now = nodes_now_ns(), results[NETDAM_ADMIN_RESULTS];

    memset(nodes, 0, sizeof(*nodes));
    start_node(nodes, 0, options);
    start_node(nodes, 1, options);
    create_region(nodes, 0, options, results);
    nodes->region = (uint32_t)results[0];
    create_region(nodes, 1, options, results);
    nodes->key = results[1];
    expect(ndtest_neighbour_set(&nodes->node[0], &nodes->node[1], 4, now) == NETDAM_ADMIN_STATUS_OK &&
               ndtest_queue_create(&nodes->queue, &nodes->node[0], 0, RING_LOG2, NODES_DATA_START / 2, RING_LOG2, 0,
                                   now) == NETDAM_ADMIN_STATUS_OK,
           "the nodes cannot be set up");
    open_peer(nodes, options);
}

void nodes_stop(struct nodes *nodes)
{
    for (unsigned i = 0; i < 2; i++) {
        ndtest_node_stop(&nodes->node[i], nodes_now_ns());
        bench_release(nodes->node[i].state);
        bench_release(nodes->node[i].memory);
        bench_release(nodes->wire[i].slots);
        ndsim_crypto_close(nodes->crypto[i]);
    }
}

struct netdam_descriptor nodes_request(const struct nodes *nodes, unsigned opcode, uint64_t address, uint32_t length)
{
    return (struct netdam_descriptor){
        .opcode = (uint8_t)opcode,
        .peer = nodes->peer,
        .length = length,
        .remote_key = nodes->key,
        .remote_address = address,
        .local_region = nodes->region,
        .u.buffer.local_address = address,
    };
}

void nodes_deliver(struct nodes *nodes, unsigned from, uint64_t now_ns)
{
    struct nodes_wire *wire = &nodes->wire[from];
    struct ndtest_node *to = &nodes->node[1 - from];

    for (; wire->head != wire->tail; wire->head++) {
        to->ops->receive(to->state, wire->slots + (size_t)wire->head * NODES_FRAME_BYTES, wire->bytes[wire->head],
                         now_ns);
    }
    wire->head = wire->tail = 0;
}

/* Takes what has completed; all of it must be well. */
static unsigned poll_completions(struct nodes *nodes)
{
    struct netdam_completion completion;
    unsigned count = 0;

    for (; ndtest_queue_poll(&nodes->queue, &completion); count++) {
        expect(completion.status == NETDAM_STATUS_OK, "a request has failed");
    }
    return count;
}

void nodes_do(struct nodes *nodes, struct netdam_descriptor descriptor, unsigned count, uint64_t stride)
{
    uint64_t end = nodes->node[0].config.memory_bytes - NODES_DATA_START;
    unsigned posted = 0, completed = 0;
    struct netdam_fw_run_result result;

    while (completed < count) {
        uint64_t now = nodes_now_ns();
        unsigned action;

        while (posted < count && posted - completed < 1u << RING_LOG2 &&
               ndtest_queue_post(&nodes->queue, &descriptor, now, &action)) {
            posted++;
            descriptor.user_data++;
            descriptor.remote_address += stride;
            if (descriptor.remote_address + descriptor.length > end) {
                descriptor.remote_address = 0;
            }
            descriptor.u.buffer.local_address = descriptor.remote_address;
        }
        nodes->node[0].ops->run(nodes->node[0].state, now, BUDGET_BYTES, &result);
        nodes_deliver(nodes, 0, now);
        nodes->node[1].ops->run(nodes->node[1].state, now, BUDGET_BYTES, &result);
        nodes_deliver(nodes, 1, now);
        completed += poll_completions(nodes);
    }
}
