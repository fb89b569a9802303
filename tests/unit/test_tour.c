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

static struct netdam_segment segment(const struct fleet *fleet, char what, unsigned node)
{
    struct netdam_segment s = {.peer = fleet->peers[0][node], .key = KEY(node)};

    s.opcode = what == 'L'   ? NETDAM_OP_LOAD
               : what == 'A' ? NETDAM_OP_LOAD_REDUCE
               : what == 'C' ? NETDAM_OP_COMPARE
               : what == 'W' ? NETDAM_OP_WRITE
               : what == 'R' ? NETDAM_OP_REDUCE
                             : NETDAM_OP_FORWARD;
    s.operation = what == 'A' || what == 'R' ? NETDAM_ALU_SUM : NETDAM_ALU_NONE;
    s.type = what == 'A' || what == 'R' ? NETDAM_TYPE_U32 : NETDAM_TYPE_NONE;
    s.key = what == 'F' ? 0 : s.key;
    return s;
}

static const struct ndtest_weather storm = {.drop = 30000,
                                            .duplicate = 60000,
                                            .late = 60000,
                                            .corrupt = 10000,
                                            .port_full = 10000,
                                            .latency_ns = 5000,
                                            .jitter_ns = 50000,
                                            .late_ns = 8000000};

/* What is compared or loaded first decides what is stored at the end, from one seed to the next. */
static void compare_and_load_lead_to_one_store(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 40; seed++) {
        struct netdam_segment compare[3], load[3];
        struct netdam_completion completion;
        struct fleet fleet;
        bool equal = seed % 3 != 0;

        fleet_start(&fleet, 100 + seed, seed % 2 == 0 ? 4 : 6, 1500);
        fleet.wire.weather = storm;
        compare[0] = segment(&fleet, 'C', 1);
        compare[1] = segment(&fleet, 'F', 2);
        compare[2] = segment(&fleet, 'W', 3);
        load[0] = segment(&fleet, 'F', 4);
        load[1] = segment(&fleet, 'L', 1);
        load[2] = segment(&fleet, 'R', 2);
        fill_u32(&fleet, 0, BASE, 10, 77);
        fill_u32(&fleet, 1, BASE, 10, equal ? 77 : 78);
        fill_u32(&fleet, 2, BASE, 10, 1000);
        memset(fleet.nodes[3].memory + BASE, 0, 40);
        completion = fleet_chain(&fleet, 0, compare, 3, BASE, 0, 40);
        assert_int_equal(completion.status, equal ? NETDAM_STATUS_OK : NETDAM_STATUS_COMPARE_FAILED);
        assert_int_equal(completion.hop, 0);
        assert_int_equal(completion.flags, 0);
        assert_int_equal(fleet.nodes[3].memory[BASE], equal ? 77 : 0);
        completion = fleet_chain(&fleet, 0, load, 3, 0, 0, 40);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        for (uint32_t i = 0; i < 10; i++) {
            uint32_t value;

            memcpy(&value, fleet.nodes[2].memory + BASE + i * 4u, 4);
            assert_int_equal(value, 1000 + i + (equal ? 77 : 78) + i);
        }
        fleet_stop(&fleet);
    }
}

/* A chain may visit its own node, as the first, the last and in between. */
static void a_chain_may_visit_its_own_node(void **state)
{
    (void)state;
    for (unsigned place = 0; place < 3; place++) {
        for (unsigned stores = 0; stores < 2; stores++) {
            struct netdam_segment segments[3];
            struct netdam_completion completion;
            struct fleet fleet;

            fleet_start(&fleet, place, 4, 1500);
            for (unsigned i = 0; i < 3; i++) {
                unsigned node = i == place ? 0 : i + 1;

                segments[i] = segment(&fleet, stores != 0 ? 'R' : 'A', node);
                fill_u32(&fleet, node, BASE, 1, 100);
            }
            fill_u32(&fleet, 0, BASE + 0x1000, 1, 1);
            completion = fleet_chain(&fleet, 0, segments, 3, BASE + 0x1000, stores != 0 ? 0 : BASE + 0x2000, 4);
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
            for (unsigned i = 0; i < 3 && stores != 0; i++) {
                assert_int_equal(fleet.nodes[i == place ? 0 : i + 1].memory[BASE], 101);
            }
            assert_true(stores != 0 ||
                        (fleet.nodes[0].memory[BASE + 0x2000] | fleet.nodes[0].memory[BASE + 0x2001] << 8) == 301);
            fleet_stop(&fleet);
        }
    }
}

/* Nodes lose all they know; each chain that has ended OK has counted once everywhere, any other at most once. */
static void chains_count_once_though_nodes_reset(void **state)
{
    unsigned ok = 0, uncertain = 0;

    (void)state;
    for (unsigned seed = 0; seed < 60; seed++) {
        struct ndtest_random random = {seed};
        struct netdam_segment segments[NODES - 1];
        uint32_t sure = 0, most[NODES] = {0};
        struct fleet fleet;

        fleet_start(&fleet, 1000 + seed, 4, 1500);
        fleet.wire.weather = storm;
        for (unsigned i = 1; i < NODES; i++) {
            segments[i - 1] = segment(&fleet, 'R', i);
            memset(fleet.nodes[i].memory + BASE, 0, 4);
        }
        fill_u32(&fleet, 0, BASE, 1, 1);
        for (unsigned n = 0; n < 12; n++) {
            struct netdam_completion completion;
            struct netdam_descriptor d = {
                .opcode = NETDAM_OP_CHAIN,
                .list_count = NODES - 1,
                .length = 4,
                .remote_address = LIST,
                .u.buffer.local_address = BASE,
            };
            unsigned action, reset = 1 + (unsigned)ndtest_random_below(&random, 8);
            uint64_t key;

            memcpy(fleet.nodes[0].memory + LIST, segments, sizeof(segments));
            assert_true(ndtest_queue_post(&fleet.queues[0], &d, fleet.wire.now_ns, &action));
            ndtest_wire_wake(&fleet.wire, 0);
            for (uint64_t steps = ndtest_random_below(&random, 40); steps != 0; steps--) {
                (void)ndtest_wire_step(&fleet.wire);
            }
            if (reset < NODES) {
                uint32_t index;

                ndtest_wire_restart(&fleet.wire, reset);
                assert_int_equal(ndtest_region_create(&fleet.nodes[reset], BASE, BYTES, NETDAM_PERMISSION_ALL,
                                                      KEY(reset), fleet.wire.now_ns, &index, &key),
                                 0);
            }
            completion = fleet_wait(&fleet, 0);
            sure += completion.status == NETDAM_STATUS_OK;
            ok += completion.status == NETDAM_STATUS_OK;
            uncertain += netdam_status_class_of(completion.status) == NETDAM_STATUS_CLASS_UNCERTAIN;
            assert_true(completion.status == NETDAM_STATUS_OK || completion.status == NETDAM_STATUS_UNKNOWN ||
                        completion.status == NETDAM_STATUS_TIMEOUT);
            for (unsigned i = 1; i < NODES; i++) {
                uint32_t value;

                most[i]++;
                memcpy(&value, fleet.nodes[i].memory + BASE, 4);
                if (value < sure || value > most[i]) {
                    fail_msg("seed %u, chain %u: node %u has counted %u, not %u to %u", seed, n, i, value, sure,
                             most[i]);
                }
            }
        }
        fleet_stop(&fleet);
    }
    assert_true(ok > 300 && uncertain > 20);
}

/* Values of very different sizes: their float sum depends on the order of its terms. */
static float rough(unsigned node, uint32_t n)
{
    static const float sizes[NODES] = {3.0e7f, 1.1f, -3.0e7f, 7.7f, 1.0e-3f};

    return sizes[node] * (float)(1 + n % 7);
}

static void a_float_sum_is_the_same_bit_for_bit_in_a_thousand_kinds_of_weather(void **state)
{
    enum { COUNT = 700 };
    float expected[COUNT];
    bool orders_matter = false;

    (void)state;
    for (uint32_t n = 0; n < COUNT; n++) {
        volatile float up = (((rough(0, n) + rough(1, n)) + rough(2, n)) + rough(3, n)) + rough(4, n);
        volatile float down = (((rough(0, n) + rough(4, n)) + rough(3, n)) + rough(2, n)) + rough(1, n);

        expected[n] = up;
        orders_matter |= up != down;
    }
    assert_true(orders_matter);
    for (unsigned seed = 0; seed < 1000; seed++) {
        struct netdam_segment segments[NODES - 1];
        struct netdam_descriptor d = {
            .opcode = NETDAM_OP_CHAIN,
            .list_count = NODES - 1,
            .flags = NETDAM_DESCRIPTOR_REPRODUCIBLE,
            .length = COUNT * 4,
            .remote_address = LIST,
            .u.buffer = {.local_address = BASE, .result_address = BASE}, /* in place */
        };
        struct fleet fleet;
        unsigned action;

        fleet_start(&fleet, seed, 4, 1500);
        fleet.wire.weather = storm;
        for (unsigned i = 0; i < NODES; i++) {
            for (uint32_t n = 0; n < COUNT; n++) {
                float value = rough(i, n);

                memcpy(fleet.nodes[i].memory + BASE + n * 4u, &value, 4);
            }
            if (i != 0) {
                segments[i - 1] = segment(&fleet, 'A', i);
                segments[i - 1].type = NETDAM_TYPE_F32;
            }
        }
        memcpy(fleet.nodes[0].memory + LIST, segments, sizeof(segments));
        assert_true(ndtest_queue_post(&fleet.queues[0], &d, fleet.wire.now_ns, &action));
        ndtest_wire_wake(&fleet.wire, 0);
        assert_int_equal(fleet_wait(&fleet, 0).status, NETDAM_STATUS_OK);
        if (memcmp(fleet.nodes[0].memory + BASE, expected, sizeof(expected)) != 0) {
            fail_msg("seed %u: another sum", seed);
        }
        fleet_stop(&fleet);
    }
}

static void few_numbers(struct netdam_fw_config *config)
{
    config->first_number = NETDAM_NUMBER_MAX - 3;
    config->retries = 3;
}

/* Numbers start anew once all nodes have confirmed the old ones; one that has gone is not waited for without end. */
static void numbers_start_anew_although_a_node_has_gone(void **state)
{
    (void)state;
    for (unsigned gone = 1; gone < NODES; gone++) {
        for (unsigned turn = 0; turn < NODES; turn++) {
            const unsigned alive = gone == 1 ? 2 : 1;
            struct fleet fleet;

            fleet_start_changed(&fleet, gone * NODES + turn, 4, 1500, few_numbers);
            for (unsigned i = 0; i < 8; i++) {
                unsigned visited = i == 0 ? gone : alive;
                struct netdam_segment segment = {
                    .opcode = NETDAM_OP_WRITE, .peer = fleet.peers[0][visited], .key = KEY(visited)};

                assert_int_equal(fleet_chain(&fleet, 0, &segment, 1, BASE, 0, 64).status, NETDAM_STATUS_OK);
                fleet.wire.cut[0][gone] = fleet.wire.cut[gone][0] = true;
                /* So that it depends on `turn` whom the device looks at first. */
                for (unsigned n = 0; n < turn; n++) {
                    ndtest_wire_wake(&fleet.wire, 0);
                    (void)ndtest_wire_step(&fleet.wire);
                }
            }
            fleet_stop(&fleet);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_start_anew_although_a_node_has_gone),
        cmocka_unit_test(a_tour_adds_up_what_it_finds_and_comes_home),
        cmocka_unit_test(a_broadcast_stores_at_every_hop_exactly_once),
        cmocka_unit_test(compare_and_load_lead_to_one_store),
        cmocka_unit_test(a_chain_may_visit_its_own_node),
        cmocka_unit_test(chains_count_once_though_nodes_reset),
        cmocka_unit_test(a_float_sum_is_the_same_bit_for_bit_in_a_thousand_kinds_of_weather),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
