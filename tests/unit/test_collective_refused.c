/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that are refused before anything is sent, and every operation and type that is not. */
#include "group.h"
#include "reference.h"

#include <stddef.h>

enum { RANK = 1, COUNT = 3, LENGTH = 96 };

/* One field that is not as it should be. */
struct wrong {
    const char *what;
    unsigned opcode;
    int member; /* or -1: of the descriptor */
    size_t offset;
    size_t bytes;
    uint64_t value;
    enum netdam_status status;
    unsigned hop;
};

#define FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)
#define D(opcode, field, value)                                                                                        \
#field " = " #value, NETDAM_OP_##opcode, -1, FIELD(struct netdam_descriptor, field), value
#define M(member, field, value)                                                                                        \
    "member: " #field " = " #value, NETDAM_OP_ALL_REDUCE, member, FIELD(struct netdam_member, field), value
#define DESCRIPTOR NETDAM_STATUS_LOCAL_DESCRIPTOR

/* What fleet_start_changed has not made: see setup. */
#define REGION_READ  2
#define REGION_WRITE 3
#define REGION_NONE  7
#define PEER_SIX     5
#define PEER_NONE    7

static const struct wrong wrongs[] = {
    {D(ALL_REDUCE, list_count, 0), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, list_count, 34), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, list_count, 255), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, peer, 3), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, peer, UINT32_MAX), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, immediate, 0), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, remote_address, LIST + 4), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, remote_key, 1), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(REDUCE_SCATTER, remote_key, 2), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_GATHER, remote_key, 1), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(BARRIER, remote_key, 1), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(BROADCAST, remote_key, 3), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(BROADCAST, remote_key, UINT64_MAX), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, u.buffer.local_address, 8), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, u.buffer.result_address, 8), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, length, 97), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(REDUCE_SCATTER, length, 2), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(BARRIER, length, 8), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, NETDAM_DESCRIPTOR_RELAXED), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, NETDAM_DESCRIPTOR_ORDERED), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, NETDAM_DESCRIPTOR_UNRELIABLE), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, NETDAM_DESCRIPTOR_IMMEDIATE), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, NETDAM_DESCRIPTOR_LIST), DESCRIPTOR, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, flags, 0x80), DESCRIPTOR, 0},
    {D(ALL_REDUCE, type, NETDAM_TYPE_NONE), DESCRIPTOR, 0},
    {D(ALL_REDUCE, operation, NETDAM_ALU_NONE), DESCRIPTOR, 0},
    {D(ALL_GATHER, operation, NETDAM_ALU_SUM), DESCRIPTOR, 0},
    {D(ALL_REDUCE, remote_address, 0x40000), NETDAM_STATUS_LOCAL_RANGE, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, remote_address, 0x40000 - COUNT * 40 + 8), NETDAM_STATUS_LOCAL_RANGE, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, remote_address, UINT64_MAX - 7), NETDAM_STATUS_LOCAL_RANGE, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, local_region, REGION_NONE), NETDAM_STATUS_LOCAL_REGION, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, local_region, 8), NETDAM_STATUS_LOCAL_REGION, NETDAM_HOP_NONE},
    {D(ALL_REDUCE, local_region, REGION_WRITE), NETDAM_STATUS_LOCAL_PERMISSION, NETDAM_HOP_NONE},
    {M(0, input, GROUP_INPUT + 4), DESCRIPTOR, 0},
    {M(1, output, GROUP_OUTPUT + 2), DESCRIPTOR, 1},
    {M(2, control, GROUP_CONTROL + 1), DESCRIPTOR, 2},
    {M(0, input, UINT64_MAX - 7), DESCRIPTOR, 0},
    {M(1, input, UINT64_MAX - 7), DESCRIPTOR, 1},
    {M(2, output, UINT64_MAX - LENGTH + 1), DESCRIPTOR, 2},
    {M(2, control, UINT64_MAX - COUNT * 16 + 1), DESCRIPTOR, 2},
    {M(0, output, GROUP_INPUT + LENGTH - 8), DESCRIPTOR, 0},
    {M(1, output, GROUP_INPUT - LENGTH + 8), DESCRIPTOR, 1},
    {M(0, region, 1), DESCRIPTOR, 0},
    {M(1, peer, 1), DESCRIPTOR, 1},
    {M(0, peer, PEER_NONE), NETDAM_STATUS_LOCAL_PEER, 0},
    {M(0, peer, UINT32_MAX), NETDAM_STATUS_LOCAL_PEER, 0},
    {M(0, peer, RANK), DESCRIPTOR, 0}, /* the handle of the own node */
    {M(2, peer, RANK), DESCRIPTOR, 2},
    {M(2, peer, PEER_NONE), NETDAM_STATUS_LOCAL_PEER, 2},
    {M(2, peer, 8), NETDAM_STATUS_LOCAL_PEER, 2},
    {M(2, peer, UINT32_MAX), NETDAM_STATUS_LOCAL_PEER, 2},
    {M(1, region, REGION_NONE), NETDAM_STATUS_LOCAL_REGION, 1},
    {M(1, region, UINT32_MAX), NETDAM_STATUS_LOCAL_REGION, 1},
    {M(1, region, REGION_READ), NETDAM_STATUS_LOCAL_PERMISSION, 1},
    {M(1, region, REGION_WRITE), NETDAM_STATUS_LOCAL_PERMISSION, 1},
    {M(1, input, BYTES - LENGTH + 8), NETDAM_STATUS_LOCAL_RANGE, 1},
    {M(1, output, BYTES - LENGTH + 8), NETDAM_STATUS_LOCAL_RANGE, 1},
    {M(1, control, BYTES - COUNT * 16 + 8), NETDAM_STATUS_LOCAL_RANGE, 1},
    {M(2, peer, 0), DESCRIPTOR, 2}, /* one node twice */
    {M(2, peer, PEER_SIX), DESCRIPTOR, NETDAM_HOP_NONE},
};

static unsigned frames;

static void count_frame(void *opaque, struct ndtest_node *node, const uint8_t *data, size_t bytes)
{
    (void)opaque;
    (void)node;
    (void)data;
    (void)bytes;
    frames++;
}

/* Of a descriptor nothing is sent; of a list that could be read, those hear that it names rightly. */
static void what_is_malformed_is_refused_and_others_hear_of_it(void **state)
{
    struct fleet fleet;
    uint32_t index;
    uint64_t key;

    (void)state;
    fleet_start(&fleet, 1, 4, 1500);
    assert_int_equal(ndtest_region_create(&fleet.nodes[RANK], BASE, BYTES, NETDAM_PERMISSION_LOCAL_READ, 0,
                                          fleet.wire.now_ns, &index, &key),
                     0);
    assert_int_equal(index, REGION_READ);
    assert_int_equal(ndtest_region_create(&fleet.nodes[RANK], 0, 0x40000, NETDAM_PERMISSION_LOCAL_WRITE, 0,
                                          fleet.wire.now_ns, &index, &key),
                     0);
    assert_int_equal(index, REGION_WRITE);
    assert_int_equal(ndtest_peer_open(&fleet.nodes[RANK], &fleet.nodes[2], 6, fleet.wire.now_ns, &index), 0);
    assert_int_equal(index, PEER_SIX);
    assert_int_equal(fleet.peers[RANK][0], 0);
    group_settle(&fleet, 100 * UNIT_MS);
    fleet.wire.hooks.transmitted = count_frame;
    for (unsigned n = 0; n < ARRAY_SIZE(wrongs); n++) {
        const struct wrong *wrong = &wrongs[n];
        struct netdam_member members[NODES];
        struct netdam_descriptor d = group_descriptor(&fleet, wrong->opcode, RANK, COUNT,
                                                      wrong->opcode == NETDAM_OP_BARRIER ? 0 : LENGTH, n + 1);
        struct netdam_completion completion;
        uint8_t *where;

        group_members(&fleet, RANK, COUNT, members);
        where = wrong->member < 0 ? (uint8_t *)&d : (uint8_t *)&members[wrong->member];
        memcpy(where + wrong->offset, &wrong->value, wrong->bytes);
        frames = 0;
        group_post_list(&fleet, RANK, members, &d);
        completion = fleet_wait(&fleet, RANK);
        group_settle(&fleet, 10 * UNIT_MS);
        if (completion.status != wrong->status || completion.hop != wrong->hop ||
            (frames != 0) != (wrong->member >= 0)) {
            fail_msg("%s: status 0x%x, hop %u, %u frames", wrong->what, completion.status, completion.hop, frames);
        }
        assert_int_equal(completion.user_data, d.user_data);
        assert_int_equal(completion.length, 0);
        assert_int_equal(completion.flags, 0);
        group_expect_clean(&fleet);
    }
    fleet_stop(&fleet);
}

/* Whether they came before it or come later, and whatever was wrong. */
static void nobody_waits_for_who_has_refused(void **state)
{
    (void)state;
    for (unsigned n = 0; n < ARRAY_SIZE(wrongs); n++) {
        const struct wrong *wrong = &wrongs[n];
        struct netdam_member members[NODES];
        struct netdam_descriptor d;
        struct netdam_completion completion;
        struct fleet fleet;

        if (wrong->member < 0 || (wrong->value == REGION_READ && wrong->status == NETDAM_STATUS_LOCAL_PERMISSION) ||
            wrong->value == REGION_WRITE || wrong->value == PEER_SIX) {
            continue; /* what is not there in this fleet */
        }
        fleet_start(&fleet, 1 + n, 4, 1500);
        d = group_descriptor(&fleet, wrong->opcode, RANK, COUNT, LENGTH, 1);
        group_members(&fleet, RANK, COUNT, members);
        memcpy((uint8_t *)&members[wrong->member] + wrong->offset, &wrong->value, wrong->bytes);
        group_post(&fleet, wrong->opcode, 0, COUNT, LENGTH, 1);
        group_settle(&fleet, UNIT_MS);
        group_post_list(&fleet, RANK, members, &d);
        completion = fleet_wait(&fleet, RANK);
        assert_true(completion.status == wrong->status && completion.hop == wrong->hop);
        group_post(&fleet, wrong->opcode, 2, COUNT, LENGTH, 1);
        for (unsigned other = 0; other < COUNT; other += 2) {
            completion = fleet_wait(&fleet, other);
            if (completion.status != wrong->status || completion.hop != RANK) {
                fail_msg("%s: member %u ends with status 0x%x by %u", wrong->what, other, completion.status,
                         completion.hop);
            }
        }
        assert_true(fleet.wire.now_ns < 1000 * UNIT_MS);
        group_settle(&fleet, 10 * UNIT_MS);
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
}

static uint64_t edge(const uint64_t *edges, unsigned count, unsigned member, uint32_t n)
{
    return edges[(n * (2 * member + 1) + 5 * member) % count];
}

/* The owner's value first, then the others round the list: each node's memory meets what came to it. */
static uint64_t expected(unsigned operation, unsigned type, const uint64_t *edges, unsigned count, unsigned owner,
                         uint32_t n)
{
    uint64_t value = edge(edges, count, owner, n);

    for (unsigned i = 1; i < COUNT; i++) {
        value = reference(operation, type, edge(edges, count, (owner + i) % COUNT, n), value);
    }
    return value;
}

static void every_operation_and_type_is_reduced(void **state)
{
    struct fleet fleet;
    uint32_t instance = 0;
    unsigned done = 0;

    (void)state;
    fleet_start(&fleet, 2, 4, 1500);
    for (unsigned operation = 0; operation < 256; operation++) {
        for (unsigned type = 0; type < 256; type++) {
            struct netdam_descriptor d;
            uint64_t edges[REFERENCE_EDGES];
            unsigned width = netdam_type_bytes(type), count;

            if (!netdam_alu_is_defined(operation) || netdam_algebra(NETDAM_OP_ALL_REDUCE, operation, type) < 0) {
                continue;
            }
            count = reference_edges(type, edges);
            instance++;
            for (unsigned i = 0; i < COUNT; i++) {
                struct netdam_member members[NODES];

                for (uint32_t n = 0; n < 40; n++) {
                    uint64_t value = edge(edges, count, i, n);

                    memcpy(fleet.nodes[i].memory + BASE + GROUP_INPUT + n * width, &value, width);
                }
                d = group_descriptor(&fleet, NETDAM_OP_ALL_REDUCE, i, COUNT, 40 * width, instance);
                d.operation = (uint8_t)operation;
                d.type = (uint8_t)type;
                group_members(&fleet, i, COUNT, members);
                group_post_list(&fleet, i, members, &d);
            }
            for (unsigned i = 0; i < COUNT; i++) {
                assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
            }
            for (uint32_t n = 0; n < 40; n++) {
                unsigned owner = 0;
                uint64_t wanted, bytes;

                while (netdam_block(40 * width, COUNT, owner, &bytes) + bytes <= n * width) {
                    owner++;
                }
                wanted = expected(operation, type, edges, count, owner, n);
                for (unsigned i = 0; i < COUNT; i++) {
                    uint64_t value = 0;

                    memcpy(&value, fleet.nodes[i].memory + BASE + GROUP_OUTPUT + n * width, width);
                    if (value != wanted) {
                        fail_msg("operation %u, type %u, element %u at %u: %llx, not %llx", operation, type, n, i,
                                 (unsigned long long)value, (unsigned long long)wanted);
                    }
                }
            }
            done++;
        }
    }
    assert_true(done > 50);
    group_expect_clean(&fleet);
    fleet_stop(&fleet);
}

static void the_longest_list_leaves_room_for_payload(void **state)
{
    uint32_t others = NETDAM_MEMBERS_MAX - 1;
    uint32_t four = (uint32_t)(NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES + sizeof(struct netdam_wire_header) +
                               ndfw_node_bytes(4) + NETDAM_CRC_BYTES) +
                    others * ((uint32_t)sizeof(struct netdam_wire_segment) + ndfw_node_bytes(4));

    (void)state;
    assert_int_equal(others, NETDAM_SEGMENTS_MAX);
    assert_int_equal(sizeof(struct netdam_wire_segment) + ndfw_node_bytes(4), 40);
    assert_int_equal((1500 - four) & ~7u, 144);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_malformed_is_refused_and_others_hear_of_it),
        cmocka_unit_test(nobody_waits_for_who_has_refused),
        cmocka_unit_test(every_operation_and_type_is_reduced),
        cmocka_unit_test(the_longest_list_leaves_room_for_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
