/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of a fleet's nodes: their lists of members, descriptors, values, and what is left of them afterwards. */
#ifndef GROUP_H
#define GROUP_H

#include "fleet.h"

#define GROUP_CONTROL 0x100u
#define GROUP_INPUT   0x1000u
#define GROUP_OUTPUT  0x8000u

static inline void group_members(const struct fleet *fleet, unsigned rank, unsigned count,
                                 struct netdam_member members[NODES])
{
    memset(members, 0, NODES * sizeof(members[0]));
    for (unsigned i = 0; i < count; i++) {
        members[i] = (struct netdam_member){.peer = i == rank ? 0 : fleet->peers[rank][i],
                                            .region = i == rank ? fleet->shared[rank] : 0,
                                            .key = KEY(i),
                                            .input = GROUP_INPUT,
                                            .output = GROUP_OUTPUT,
                                            .control = GROUP_CONTROL};
    }
}

static inline struct netdam_descriptor group_descriptor(const struct fleet *fleet, unsigned opcode, unsigned rank,
                                                        unsigned count, uint32_t length, uint32_t instance)
{
    bool reduces = opcode == NETDAM_OP_ALL_REDUCE || opcode == NETDAM_OP_REDUCE_SCATTER;

    return (struct netdam_descriptor){.opcode = (uint8_t)opcode,
                                      .operation = reduces ? NETDAM_ALU_SUM : NETDAM_ALU_NONE,
                                      .type = reduces ? NETDAM_TYPE_U32 : NETDAM_TYPE_NONE,
                                      .list_count = (uint8_t)count,
                                      .user_data = 1000 * instance + rank,
                                      .peer = rank,
                                      .length = length,
                                      .remote_address = LIST,
                                      .local_region = fleet->everything[rank],
                                      .immediate = instance};
}

/* The list goes to LIST, whatever the descriptor says. */
static inline void group_post_list(struct fleet *fleet, unsigned rank, const struct netdam_member members[NODES],
                                   const struct netdam_descriptor *d)
{
    unsigned action;

    memcpy(fleet->nodes[rank].memory + LIST, members, NODES * sizeof(members[0]));
    assert_true(ndtest_queue_post(&fleet->queues[rank], d, fleet->wire.now_ns, &action));
    ndtest_wire_wake(&fleet->wire, rank);
}

static inline void group_post(struct fleet *fleet, unsigned opcode, unsigned rank, unsigned count, uint32_t length,
                              uint32_t instance)
{
    struct netdam_member members[NODES];
    struct netdam_descriptor d = group_descriptor(fleet, opcode, rank, count, length, instance);

    group_members(fleet, rank, count, members);
    group_post_list(fleet, rank, members, &d);
}

static inline uint32_t *group_vector(struct fleet *fleet, unsigned member, uint64_t address)
{
    return (uint32_t *)(void *)(fleet->nodes[member].memory + BASE + address);
}

/* Element n of member i is (i + 1) * 10000 + n. */
static inline void group_fill(struct fleet *fleet, unsigned count, uint32_t length)
{
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t n = 0; n < length / 4; n++) {
            group_vector(fleet, i, GROUP_INPUT)[n] = (i + 1) * 10000 + n;
        }
    }
}

static inline void group_expect_sums(struct fleet *fleet, unsigned count, uint32_t length)
{
    for (unsigned i = 0; i < count; i++) {
        for (uint32_t n = 0; n < length / 4; n++) {
            assert_int_equal(group_vector(fleet, i, GROUP_OUTPUT)[n], count * (count + 1) / 2 * 10000 + count * n);
        }
    }
}

/* Events of the next `ns`. */
static inline void group_settle(struct fleet *fleet, uint64_t ns)
{
    uint64_t end = fleet->wire.now_ns + ns;

    while (fleet->wire.now_ns < end && ndtest_wire_step(&fleet->wire)) {
    }
}

/* Nothing is under way or has been lost: no collective, all operations and tours free, no further completion. */
static inline void group_expect_clean(struct fleet *fleet)
{
    for (unsigned i = 0; i < NODES; i++) {
        const struct ndfw *fw = fleet->nodes[i].state;
        struct netdam_completion completion;
        uint32_t free_tours = 0, free_operations = 0;

        assert_int_equal(fw->collective_count, 0);
        for (uint32_t n = 0; n < fw->config.collectives; n++) {
            assert_int_equal(fw->collectives[n].operation, NDFW_NONE);
        }
        for (uint32_t n = fw->tour_free; n != NDFW_NONE; n = fw->tours[n].next_free) {
            free_tours++;
        }
        for (uint32_t n = fw->operation_free; n != NDFW_NONE; n = fw->operations[n].next) {
            free_operations++;
        }
        assert_int_equal(free_tours, fw->config.chains);
        assert_int_equal(free_operations, fw->config.operations);
        assert_false(ndtest_queue_poll(&fleet->queues[i], &completion));
    }
}

#endif
