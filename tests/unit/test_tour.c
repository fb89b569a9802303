/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains from end to end: several nodes over a wire in virtual time, descriptors in, memory and completions out. */
#include "fleet.h"

static struct netdam_completion fleet_chain(struct fleet *fleet, unsigned node, const struct netdam_segment *segments,
                                            unsigned count, uint64_t source, uint64_t result, uint32_t length)
{
    struct netdam_descriptor d = {
        .opcode = NETDAM_OP_CHAIN,
        .list_count = (uint8_t)count,
        .user_data = 77,
        .length = length,
        .remote_address = LIST,
        .local_region = fleet->everything[node],
        .u.buffer = {.local_address = source, .result_address = result},
    };
    unsigned action;

    memcpy(fleet->nodes[node].memory + LIST, segments, count * sizeof(segments[0]));
    assert_true(ndtest_queue_post(&fleet->queues[node], &d, fleet->wire.now_ns, &action));
    ndtest_wire_wake(&fleet->wire, node);
    return fleet_wait(fleet, node);
}

static void fill_u32(struct fleet *fleet, unsigned node, uint64_t at, uint32_t count, uint32_t start)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = start + i;

        memcpy(fleet->nodes[node].memory + at + i * 4u, &value, 4);
    }
}

static void a_tour_adds_up_what_it_finds_and_comes_home(void **state)
{
    static const unsigned families[] = {4, 6};

    (void)state;
    for (unsigned f = 0; f < 2; f++) {
        struct fleet fleet;
        struct netdam_segment segments[NODES - 1];
        struct netdam_completion completion;
        const uint32_t count = 3001;

        fleet_start(&fleet, 5 + f, families[f], 1500);
        fleet.wire.weather = (struct ndtest_weather){.drop = 50000,
                                                     .duplicate = 50000,
                                                     .latency_ns = 5000,
                                                     .jitter_ns = 20000,
                                                     .corrupt = 20000,
                                                     .port_full = 20000};
        for (unsigned i = 0; i < NODES; i++) {
            fill_u32(&fleet, i, BASE, count, 1000 * i);
        }
        for (unsigned i = 1; i < NODES; i++) {
            segments[i - 1] = (struct netdam_segment){.opcode = NETDAM_OP_LOAD_REDUCE,
                                                      .operation = NETDAM_ALU_SUM,
                                                      .type = NETDAM_TYPE_U32,
                                                      .peer = fleet.peers[0][i],
                                                      .key = KEY(i)};
        }
        completion = fleet_chain(&fleet, 0, segments, NODES - 1, BASE, 0x28000, count * 4);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.user_data, 77);
        assert_int_equal(completion.length, count * 4);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t value;

            memcpy(&value, fleet.nodes[0].memory + 0x28000 + i * 4u, 4);
            assert_int_equal(value, 10000 + 5 * i);
        }
        fleet_stop(&fleet);
    }
}

static void a_broadcast_stores_at_every_hop_exactly_once(void **state)
{
    struct fleet fleet;
    struct netdam_segment segments[NODES - 1];
    const uint32_t count = 2500;

    (void)state;
    fleet_start(&fleet, 11, 4, 1500);
    fleet.wire.weather = (struct ndtest_weather){
        .drop = 50000, .duplicate = 50000, .late = 50000, .latency_ns = 5000, .jitter_ns = 20000, .late_ns = 5000000};
    for (unsigned round = 1; round <= 5; round++) {
        struct netdam_completion completion;

        fill_u32(&fleet, 0, BASE, count, round);
        for (unsigned i = 1; i < NODES; i++) {
            segments[i - 1] = (struct netdam_segment){
                .opcode = i == 2 ? NETDAM_OP_REDUCE : NETDAM_OP_WRITE,
                .operation = i == 2 ? NETDAM_ALU_SUM : NETDAM_ALU_NONE,
                .type = i == 2 ? NETDAM_TYPE_U32 : NETDAM_TYPE_NONE,
                .peer = fleet.peers[0][i],
                .key = KEY(i),
                .address = 8 * i,
            };
            if (round == 1) {
                memset(fleet.nodes[i].memory + BASE, 0, BYTES);
            }
        }
        completion = fleet_chain(&fleet, 0, segments, NODES - 1, BASE, 0, count * 4);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        for (unsigned i = 1; i < NODES; i++) {
            for (uint32_t n = 0; n < count; n++) {
                uint32_t value;

                memcpy(&value, fleet.nodes[i].memory + BASE + 8 * i + n * 4u, 4);
                assert_int_equal(value, i == 2 ? round * (round + 1) / 2 + round * n : round + n);
            }
        }
    }
    /* Idle, it confirms: nothing but lanes at rest is left. */
    for (uint64_t end = fleet.wire.now_ns + 2000 * UNIT_MS; fleet.wire.now_ns < end && ndtest_wire_step(&fleet.wire);) {
    }
    for (unsigned i = 1; i < NODES; i++) {
        assert_int_equal(ndtest_node_counter(&fleet.nodes[i], NETDAM_COUNTER_LANE_WINDOWS), 0);
        assert_int_equal(ndtest_node_counter(&fleet.nodes[i], NETDAM_COUNTER_LANES), 1);
    }
    fleet_stop(&fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tour_adds_up_what_it_finds_and_comes_home),
        cmocka_unit_test(a_broadcast_stores_at_every_hop_exactly_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
