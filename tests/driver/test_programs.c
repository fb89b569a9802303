/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains and collectives through the library: four soft devices on loopback, a thread each where they work together. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

#define NODES   4
#define KEY     UINT64_C(0x4b657900)
#define BYTES   (UINT64_C(1) << 20)
#define INPUT   0x1000u
#define OUTPUT  0x80000u
#define CONTROL 0x100u

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)

struct node {
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_queue *queue;
    struct netdam_region *region;
    struct netdam_peer *peers[NODES]; /* NULL at the own place */
    struct netdam_group *group;
    uint8_t *memory; /* of the region */
    unsigned rank;
    unsigned opcode;
    uint32_t bytes;
    int result;
    unsigned member;
};

static struct node nodes[NODES];

static void node_open(struct node *node, unsigned rank)
{
    uint64_t offset;

    memset(node, 0, sizeof(*node));
    node->rank = rank;
    assert_int_equal(netdam_open("udp:127.0.0.1:0,memory=4M", NULL, &node->device), 0);
    assert_int_equal(netdam_query(node->device, &node->info), 0);
    assert_int_equal(netdam_queue_create(node->device, NULL, &node->queue), 0);
    assert_int_equal(netdam_alloc(node->device, BYTES, 4096, &offset), 0);
    assert_int_equal(
        netdam_region_create(node->device, offset, BYTES, NETDAM_PERMISSION_ALL, KEY + rank, &node->region), 0);
    node->memory = netdam_region_pointer(node->region);
    memset(node->memory, 0, BYTES);
}

static void node_connect(struct node *node)
{
    struct netdam_group_member members[NODES];

    memset(members, 0, sizeof(members));
    for (unsigned i = 0; i < NODES; i++) {
        char address[32];

        members[i].key = KEY + i;
        members[i].input = INPUT;
        members[i].output = OUTPUT;
        members[i].control = CONTROL;
        if (i == node->rank) {
            continue;
        }
        snprintf(address, sizeof(address), "127.0.0.1:%u", nodes[i].info.udp_port);
        assert_int_equal(netdam_peer_open(node->device, address, &node->peers[i]), 0);
        members[i].peer = node->peers[i];
    }
    assert_int_equal(netdam_group_create(node->device, members, NODES, node->rank, node->region, &node->group), 0);
}

static int open_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++) {
        node_open(&nodes[i], i);
    }
    for (unsigned i = 0; i < NODES; i++) {
        node_connect(&nodes[i]);
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NODES; i++) {
        netdam_close(nodes[i].device);
    }
    return 0;
}

static struct netdam_remote at(unsigned from, unsigned node, uint64_t address)
{
    return (struct netdam_remote){nodes[from].peers[node], KEY + node, address};
}

static float *floats(unsigned node, uint64_t address)
{
    return (float *)(void *)(nodes[node].memory + address);
}

static void a_chain_adds_up_what_it_finds(void **state)
{
    struct netdam_hop hops[NODES - 1] = {0};
    struct netdam_chain *chain;
    const uint32_t count = 5000;

    (void)state;
    for (unsigned i = 0; i < NODES; i++) {
        for (uint32_t n = 0; n < count; n++) {
            floats(i, INPUT)[n] = (float)((i + 1) * n);
        }
    }
    for (unsigned i = 1; i < NODES; i++) {
        hops[i - 1].opcode = NETDAM_OP_LOAD_REDUCE;
        hops[i - 1].operation = NETDAM_ALU_SUM;
        hops[i - 1].type = NETDAM_TYPE_F32;
        hops[i - 1].remote = at(0, i, INPUT);
    }
    assert_int_equal(netdam_chain_create(nodes[0].device, hops, NODES - 1, &chain), 0);
    for (unsigned times = 0; times < 2; times++) {
        memset(nodes[0].memory + OUTPUT, 0, count * 4u);
        assert_int_equal(netdam_chain_run(nodes[0].queue, chain, (struct netdam_local){nodes[0].region, INPUT},
                                          (struct netdam_local){nodes[0].region, OUTPUT}, count * 4u, NULL, SOON),
                         0);
        for (uint32_t n = 0; n < count; n++) {
            assert_true(floats(0, OUTPUT)[n] == (float)(10 * n));
        }
    }
    assert_int_equal(netdam_chain_destroy(chain), 0);
}

static void a_chain_names_the_hop_that_refuses(void **state)
{
    struct netdam_hop hops[2] = {{.opcode = NETDAM_OP_WRITE, .remote = at(0, 1, INPUT)},
                                 {.opcode = NETDAM_OP_WRITE, .remote = {nodes[0].peers[2], 12345, 0}}};
    struct netdam_chain *chain;
    unsigned hop = 77;

    (void)state;
    assert_int_equal(netdam_chain_create(nodes[0].device, hops, 2, &chain), 0);
    assert_int_equal(netdam_chain_run(nodes[0].queue, chain, (struct netdam_local){nodes[0].region, INPUT},
                                      (struct netdam_local){0}, 64, &hop, SOON),
                     NETDAM_STATUS_BAD_KEY);
    assert_int_equal(hop, 1);
    assert_int_equal(netdam_chain_destroy(chain), 0);
}

static void what_is_wrong_with_a_chain_or_a_group_is_said(void **state)
{
    struct netdam_hop hop = {.opcode = NETDAM_OP_WRITE, .remote = at(0, 1, 0)};
    struct netdam_hop foreign = {.opcode = NETDAM_OP_WRITE, .remote = at(1, 0, 0)};
    struct netdam_group_member members[2] = {{.key = KEY}, {.key = KEY + 1, .peer = nodes[0].peers[1]}};
    struct netdam_local here = {nodes[0].region, 0};
    struct netdam_chain *chain;
    struct netdam_group *group;
    struct netdam_request request = {.opcode = NETDAM_OP_CHAIN, .local = here, .length = 8};

    (void)state;
    assert_int_equal(netdam_chain_create(nodes[0].device, &hop, 0, &chain), -EINVAL);
    assert_int_equal(netdam_chain_create(nodes[0].device, &hop, 33, &chain), -EINVAL);
    assert_int_equal(netdam_chain_create(nodes[0].device, &foreign, 1, &chain), -EINVAL);
    assert_int_equal(netdam_group_create(nodes[0].device, members, 0, 0, nodes[0].region, &group), -EINVAL);
    assert_int_equal(netdam_group_create(nodes[0].device, members, 2, 2, nodes[0].region, &group), -EINVAL);
    assert_int_equal(netdam_group_create(nodes[0].device, members, 2, 1, nodes[0].region, &group), -EINVAL);
    assert_int_equal(netdam_group_create(nodes[0].device, members, 2, 0, nodes[1].region, &group), -EINVAL);
    assert_int_equal(netdam_post(nodes[0].queue, &request, 1), -EINVAL);
    request.opcode = NETDAM_OP_BARRIER;
    assert_int_equal(netdam_post(nodes[0].queue, &request, 1), -EINVAL);
    assert_int_equal(netdam_chain_create(nodes[0].device, &hop, 1, &chain), 0);
    request.opcode = NETDAM_OP_WRITE;
    request.remote = at(0, 1, 0);
    request.chain = chain;
    assert_int_equal(netdam_post(nodes[0].queue, &request, 1), -EINVAL);
    assert_int_equal(netdam_chain_run(nodes[1].queue, chain, here, (struct netdam_local){0}, 8, NULL, SOON), -EINVAL);
    /* A chain of WRITEs returns nothing. */
    assert_int_equal(
        netdam_chain_run(nodes[0].queue, chain, here, (struct netdam_local){nodes[0].region, 64}, 8, NULL, SOON),
        NETDAM_STATUS_LOCAL_DESCRIPTOR);
    assert_int_equal(netdam_chain_destroy(chain), 0);
    assert_int_equal(netdam_chain_destroy(NULL), 0);
    assert_int_equal(netdam_group_destroy(NULL), 0);
}

static void *take_part(void *opaque)
{
    struct node *node = opaque;

    switch (node->opcode) {
    case NETDAM_OP_ALL_REDUCE:
        node->result = netdam_all_reduce(node->queue, node->group, NETDAM_ALU_SUM, NETDAM_TYPE_F32, node->bytes,
                                         &node->member, SOON);
        break;
    case NETDAM_OP_REDUCE_SCATTER:
        node->result = netdam_reduce_scatter(node->queue, node->group, NETDAM_ALU_SUM, NETDAM_TYPE_F32, node->bytes,
                                             &node->member, SOON);
        break;
    case NETDAM_OP_ALL_GATHER:
        node->result = netdam_all_gather(node->queue, node->group, node->bytes, &node->member, SOON);
        break;
    case NETDAM_OP_BROADCAST:
        node->result = netdam_broadcast(node->queue, node->group, 2, node->bytes, &node->member, SOON);
        break;
    default:
        node->result = netdam_barrier(node->queue, node->group, &node->member, SOON);
        break;
    }
    return NULL;
}

static unsigned owner_of(uint64_t byte, uint64_t length)
{
    uint64_t bytes;
    unsigned owner = 0;

    while (byte >= netdam_block(length, NODES, owner, &bytes) + bytes) {
        owner++;
    }
    return owner;
}

static void all_members_end_with_their_part(void **state)
{
    static const unsigned opcodes[] = {NETDAM_OP_BARRIER, NETDAM_OP_ALL_REDUCE, NETDAM_OP_REDUCE_SCATTER,
                                       NETDAM_OP_ALL_GATHER, NETDAM_OP_BROADCAST};
    const uint32_t count = 30001;

    (void)state;
    for (unsigned o = 0; o < sizeof(opcodes) / sizeof(opcodes[0]); o++) {
        pthread_t threads[NODES];

        for (unsigned i = 0; i < NODES; i++) {
            for (uint32_t n = 0; n < count; n++) {
                floats(i, INPUT)[n] = (float)(i * 100000 + n);
                floats(i, OUTPUT)[n] = -1;
            }
            nodes[i].opcode = opcodes[o];
            nodes[i].bytes = count * 4;
            assert_int_equal(pthread_create(&threads[i], NULL, take_part, &nodes[i]), 0);
        }
        for (unsigned i = 0; i < NODES; i++) {
            pthread_join(threads[i], NULL);
        }
        for (unsigned i = 0; i < NODES; i++) {
            assert_int_equal(nodes[i].result, 0);
            for (uint32_t n = 0; opcodes[o] != NETDAM_OP_BARRIER && n < count; n++) {
                unsigned owner = owner_of(n * 4u, count * 4u);
                float sum = (float)(600000 + 4 * n);
                float expected = opcodes[o] == NETDAM_OP_ALL_REDUCE   ? sum
                                 : opcodes[o] == NETDAM_OP_ALL_GATHER ? (float)(owner * 100000 + n)
                                 : opcodes[o] == NETDAM_OP_BROADCAST  ? (float)(200000 + n)
                                 : owner == i                         ? sum
                                                                      : -1;

                assert_true(floats(i, OUTPUT)[n] == expected);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_adds_up_what_it_finds),
        cmocka_unit_test(a_chain_names_the_hop_that_refuses),
        cmocka_unit_test(what_is_wrong_with_a_chain_or_a_group_is_said),
        cmocka_unit_test(all_members_end_with_their_part),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
