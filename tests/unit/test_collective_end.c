/* SPDX-License-Identifier: BSD-3-Clause */
/* How collectives end: interrupted in each phase, without resources, late, refused, lied to. */
#include "group.h"

enum { COUNT = 3, LENGTH = 28000, VICTIM = 1 };

static void impatient(struct netdam_fw_config *config)
{
    config->collective_wait_ns = 200 * UNIT_MS;
}

static void patient(struct netdam_fw_config *config)
{
    config->collective_wait_ns = 3000 * UNIT_MS;
}

static void start(struct fleet *fleet, uint64_t seed, void (*change)(struct netdam_fw_config *))
{
    fleet_start_changed(fleet, seed, 4, 1500, change);
    fleet->wire.weather = (struct ndtest_weather){.latency_ns = 5000, .jitter_ns = 5000};
}

/* ---- interrupted ---- */

static void destroy_queue(struct fleet *fleet)
{
    assert_int_equal(ndtest_queue_destroy(&fleet->queues[VICTIM], fleet->wire.now_ns), 0);
}

static void restart(struct fleet *fleet)
{
    ndtest_node_stop(&fleet->nodes[VICTIM], fleet->wire.now_ns);
    ndtest_wire_restart(&fleet->wire, VICTIM);
}

static void close_peer(struct fleet *fleet)
{
    assert_int_equal(ndtest_peer_close(&fleet->nodes[VICTIM], fleet->peers[VICTIM][2], fleet->wire.now_ns), 0);
}

static void destroy_region(struct fleet *fleet)
{
    assert_int_equal(ndtest_region_destroy(&fleet->nodes[VICTIM], fleet->shared[VICTIM], fleet->wire.now_ns), 0);
}

/* Interrupts node VICTIM after so many events of the wire; `posted`: how many of the members have posted by then. */
static unsigned interrupt(void (*what)(struct fleet *), unsigned opcode, unsigned count, unsigned posted,
                          unsigned steps)
{
    struct fleet fleet;
    unsigned failed = 0;

    start(&fleet, steps, patient);
    group_fill(&fleet, count, LENGTH);
    for (unsigned i = 0; i < count; i++) {
        if (i == VICTIM || i < posted) {
            group_post(&fleet, opcode, i, count, opcode == NETDAM_OP_BARRIER ? 0 : LENGTH, 1);
        }
    }
    for (unsigned n = 0; n < steps && ndtest_wire_step(&fleet.wire); n++) {
    }
    what(&fleet);
    ndtest_wire_wake(&fleet.wire, VICTIM);
    for (unsigned i = 0; i < count; i++) {
        if (i != VICTIM && i >= posted) {
            group_post(&fleet, opcode, i, count, opcode == NETDAM_OP_BARRIER ? 0 : LENGTH, 1);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        struct netdam_completion completion = fleet_wait(&fleet, i);

        assert_int_equal(completion.user_data, 1000 + i);
        if (completion.status == NETDAM_STATUS_OK) {
            continue;
        }
        failed++;
        assert_int_not_equal(netdam_status_class_of(completion.status), NETDAM_STATUS_CLASS_NONE);
        assert_int_not_equal(netdam_status_class_of(completion.status), NETDAM_STATUS_CLASS_RETRY);
        assert_int_equal(completion.length, 0);
        if (what == close_peer) {
            assert_true(completion.hop == VICTIM || completion.hop == 2);
        } else {
            assert_int_equal(completion.hop, VICTIM);
        }
        if (i == VICTIM) {
            assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
        }
    }
    group_settle(&fleet, 1000 * UNIT_MS);
    group_expect_clean(&fleet);
    fleet_stop(&fleet);
    return failed;
}

static void an_interruption_ends_it_everywhere(void **state)
{
    static void (*const all[])(struct fleet *) = {destroy_queue, restart, close_peer, destroy_region};
    static const uint8_t opcodes[] = {NETDAM_OP_ALL_REDUCE, NETDAM_OP_BARRIER, NETDAM_OP_BROADCAST};

    (void)state;
    for (unsigned what = 0; what < ARRAY_SIZE(all); what++) {
        for (unsigned o = 0; o < ARRAY_SIZE(opcodes); o++) {
            unsigned failed = 0;

            for (unsigned steps = 3; steps < 400; steps += steps < 40 ? 3 : 29) {
                for (unsigned count = 2; count <= COUNT; count++) {
                    if (what != 2 || count > 2) {
                        failed += interrupt(all[what], opcodes[o], count, 1, steps);
                        failed += interrupt(all[what], opcodes[o], count, count, steps);
                    }
                }
            }
            assert_true(failed > 50);
        }
    }
}

static void a_group_of_one_loses_its_region_on_the_way(void **state)
{
    unsigned flushed = 0;

    (void)state;
    for (unsigned steps = 0; steps < 40; steps++) {
        struct netdam_completion completion;
        struct netdam_member member;
        struct netdam_descriptor d;
        struct fleet fleet;
        unsigned action;

        start(&fleet, steps, NULL);
        fleet.wire.budget_bytes = 512;
        d = group_descriptor(&fleet, NETDAM_OP_ALL_GATHER, 0, 1, 0x7000, 1);
        member = (struct netdam_member){.region = fleet.shared[VICTIM], .input = GROUP_INPUT, .output = GROUP_OUTPUT};
        d.local_region = fleet.everything[VICTIM];
        memcpy(fleet.nodes[VICTIM].memory + LIST, &member, sizeof(member));
        assert_true(ndtest_queue_post(&fleet.queues[VICTIM], &d, fleet.wire.now_ns, &action));
        for (unsigned n = 0; n < steps; n++) {
            struct netdam_fw_run_result result;

            fleet.nodes[VICTIM].ops->run(fleet.nodes[VICTIM].state, fleet.wire.now_ns, 512, &result);
        }
        destroy_region(&fleet);
        ndtest_wire_wake(&fleet.wire, VICTIM);
        completion = fleet_wait(&fleet, VICTIM);
        if (completion.status == NETDAM_STATUS_FLUSHED) {
            flushed++;
            assert_int_equal(completion.hop, 0);
            assert_int_equal(completion.flags, NETDAM_COMPLETION_PARTIAL);
        } else {
            assert_int_equal(completion.status, steps == 0 ? NETDAM_STATUS_LOCAL_REGION : NETDAM_STATUS_OK);
        }
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
    assert_true(flushed > 0);
}

/* ---- short of something ---- */

static void one_collective(struct netdam_fw_config *config)
{
    config->collectives = 1;
}

static void two_chains(struct netdam_fw_config *config)
{
    config->chains = 2;
}

static void four_operations(struct netdam_fw_config *config)
{
    config->operations = 4;
}

/* More of everything than there is room for, in the order in which it was posted; the groups lie apart. */
static void queue_up(void (*change)(struct netdam_fw_config *))
{
    enum { GROUPS = 6, SMALL = 4096 };
    struct fleet fleet;

    start(&fleet, 7, change);
    group_fill(&fleet, COUNT, 0x7000);
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned g = 0; g < GROUPS; g++) {
            struct netdam_member members[NODES];
            struct netdam_descriptor d = group_descriptor(&fleet, NETDAM_OP_ALL_REDUCE, i, COUNT, SMALL, 1);
            struct netdam_descriptor chain = {.opcode = NETDAM_OP_CHAIN,
                                              .list_count = 1,
                                              .length = 5000,
                                              .user_data = 5,
                                              .local_region = fleet.everything[i],
                                              .u.buffer.local_address = 0x30000,
                                              .remote_address = LIST + 0x7000,
                                              .immediate = fleet.everything[i]};
            struct netdam_segment segment = {.opcode = NETDAM_OP_WRITE,
                                             .peer = fleet.peers[i][(i + 1) % COUNT],
                                             .key = KEY((i + 1) % COUNT),
                                             .address = 0x18000};
            unsigned action;

            d.remote_address = LIST + g * 0x400;
            group_members(&fleet, i, COUNT, members);
            for (unsigned m = 0; m < COUNT; m++) {
                members[m].control += g * 0x80;
                members[m].input += g * SMALL;
                members[m].output += g * SMALL;
            }
            memcpy(fleet.nodes[i].memory + d.remote_address, members, sizeof(members));
            memcpy(fleet.nodes[i].memory + chain.remote_address, &segment, sizeof(segment));
            assert_true(ndtest_queue_post(&fleet.queues[i], &d, fleet.wire.now_ns, &action));
            assert_true(ndtest_queue_post(&fleet.queues[i], &chain, fleet.wire.now_ns, &action));
        }
        ndtest_wire_wake(&fleet.wire, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned n = 0; n < 2 * GROUPS; n++) {
            assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
        }
    }
    group_expect_sums(&fleet, COUNT, GROUPS * SMALL);
    group_settle(&fleet, 100 * UNIT_MS);
    group_expect_clean(&fleet);
    fleet_stop(&fleet);
}

static void what_there_is_no_room_for_waits(void **state)
{
    (void)state;
    queue_up(NULL);
    queue_up(one_collective);
    queue_up(two_chains);
    queue_up(four_operations);
}

/* ---- beside others ---- */

static void two_groups_and_ordinary_traffic_go_side_by_side(void **state)
{
    struct fleet fleet;

    (void)state;
    start(&fleet, 11, NULL);
    fleet.wire.weather.drop = 20000;
    group_fill(&fleet, COUNT, 0x6000);
    for (uint32_t instance = 1; instance <= 20; instance++) {
        for (unsigned i = 0; i < COUNT; i++) {
            for (unsigned g = 0; g < 2; g++) {
                struct netdam_member members[NODES], list[NODES] = {0};
                struct netdam_descriptor d = group_descriptor(&fleet, NETDAM_OP_ALL_REDUCE, i, COUNT, 0x3000, instance);
                struct netdam_descriptor write = {.opcode = NETDAM_OP_WRITE,
                                                  .peer = fleet.peers[i][(i + 1) % COUNT],
                                                  .remote_key = KEY((i + 1) % COUNT),
                                                  .remote_address = 0x10000,
                                                  .length = 3000,
                                                  .local_region = fleet.everything[i]};
                unsigned action;

                /* The second group has its members in the opposite order. */
                group_members(&fleet, i, COUNT, members);
                for (unsigned m = 0; m < COUNT; m++) {
                    list[m] = members[g == 0 ? m : COUNT - 1 - m];
                    list[m].control += g * 0x80;
                    list[m].input += g * 0x3000;
                    list[m].output += g * 0x3000;
                }
                d.peer = g == 0 ? i : COUNT - 1 - i;
                d.remote_address = LIST + g * 0x400;
                memcpy(fleet.nodes[i].memory + d.remote_address, list, sizeof(list));
                assert_true(ndtest_queue_post(&fleet.queues[i], &write, fleet.wire.now_ns, &action));
                assert_true(ndtest_queue_post(&fleet.queues[i], &d, fleet.wire.now_ns, &action));
            }
            ndtest_wire_wake(&fleet.wire, i);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            for (unsigned n = 0; n < 4; n++) {
                assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
            }
        }
        group_expect_sums(&fleet, COUNT, 0x6000);
        for (unsigned i = 0; i < COUNT; i++) {
            memset(group_vector(&fleet, i, GROUP_OUTPUT), 0, 0x6000);
        }
    }
    group_settle(&fleet, 100 * UNIT_MS);
    group_expect_clean(&fleet);
    fleet_stop(&fleet);
}

static void allowed_flags_and_both_families_work(void **state)
{
    static const uint8_t opcodes[] = {NETDAM_OP_ALL_REDUCE, NETDAM_OP_REDUCE_SCATTER, NETDAM_OP_ALL_GATHER,
                                      NETDAM_OP_BROADCAST, NETDAM_OP_BARRIER};

    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        struct fleet fleet;

        fleet_start(&fleet, family, family, 1500);
        group_fill(&fleet, COUNT, LENGTH);
        for (unsigned o = 0; o < ARRAY_SIZE(opcodes); o++) {
            for (unsigned i = 0; i < COUNT; i++) {
                struct netdam_member members[NODES];
                struct netdam_descriptor d =
                    group_descriptor(&fleet, opcodes[o], i, COUNT, opcodes[o] == NETDAM_OP_BARRIER ? 0 : LENGTH, o + 1);

                d.flags = NETDAM_DESCRIPTOR_FENCE | NETDAM_DESCRIPTOR_REPRODUCIBLE;
                group_members(&fleet, i, COUNT, members);
                group_post_list(&fleet, i, members, &d);
            }
            for (unsigned i = 0; i < COUNT; i++) {
                assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
            }
            if (opcodes[o] == NETDAM_OP_ALL_REDUCE) {
                group_expect_sums(&fleet, COUNT, LENGTH);
            }
        }
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
}

/* Two operations are the least: a collective, and one part of it at a time. */
static void one_operation(struct netdam_fw_config *config)
{
    config->operations = 1;
}

static void two_operations(struct netdam_fw_config *config)
{
    config->operations = 2;
}

static void the_smallest_pools_of_operations(void **state)
{
    (void)state;
    for (unsigned operations = 1; operations <= 2; operations++) {
        struct fleet fleet;

        start(&fleet, operations, operations == 1 ? one_operation : two_operations);
        group_fill(&fleet, COUNT, LENGTH);
        for (unsigned i = 0; i < COUNT; i++) {
            group_post(&fleet, NETDAM_OP_ALL_REDUCE, i, COUNT, LENGTH, 1);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            assert_int_equal(fleet_wait(&fleet, i).status,
                             operations == 1 ? NETDAM_STATUS_LOCAL_UNSUPPORTED : NETDAM_STATUS_OK);
        }
        if (operations == 2) {
            group_expect_sums(&fleet, COUNT, LENGTH);
        }
        group_settle(&fleet, 100 * UNIT_MS);
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
}

/* ---- late, or never ---- */

static void who_is_late_is_waited_for(void **state)
{
    struct fleet fleet;
    struct netdam_completion completion;

    (void)state;
    start(&fleet, 12, NULL);
    group_fill(&fleet, COUNT, LENGTH / 2);
    group_post(&fleet, NETDAM_OP_ALL_REDUCE, 0, COUNT, LENGTH / 2, 1);
    group_post(&fleet, NETDAM_OP_ALL_REDUCE, 2, COUNT, LENGTH / 2, 1);
    group_settle(&fleet, 300 * UNIT_MS);
    assert_false(ndtest_queue_poll(&fleet.queues[0], &completion));
    assert_false(ndtest_queue_poll(&fleet.queues[2], &completion));
    group_post(&fleet, NETDAM_OP_ALL_REDUCE, 1, COUNT, LENGTH / 2, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
    }
    group_expect_sums(&fleet, COUNT, LENGTH / 2);
    group_expect_clean(&fleet);
    fleet_stop(&fleet);
}

static void who_never_comes_is_named_when_the_wait_is_over(void **state)
{
    (void)state;
    for (unsigned count = 2; count <= NODES; count++) {
        struct fleet fleet;
        uint64_t began;

        start(&fleet, 13, impatient);
        began = fleet.wire.now_ns;
        for (unsigned i = 0; i < count; i++) {
            if (i != VICTIM) {
                group_post(&fleet, NETDAM_OP_ALL_GATHER, i, count, 4096, 1);
            }
        }
        for (unsigned i = 0; i < count; i++) {
            struct netdam_completion completion;

            if (i == VICTIM) {
                continue;
            }
            completion = fleet_wait(&fleet, i);
            assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
            assert_int_equal(completion.hop, VICTIM);
            assert_int_equal(completion.flags, 0);
            assert_true(fleet.wire.now_ns >= began + 200 * UNIT_MS);
            assert_true(fleet.wire.now_ns < began + 400 * UNIT_MS);
        }
        group_settle(&fleet, 100 * UNIT_MS);
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
}

/* ---- refused ---- */

static void who_refuses_is_named_by_all(void **state)
{
    static const struct {
        uint32_t permissions;
        enum netdam_status status; /* to the others */
        enum netdam_status own;
    } table[] = {
        {NETDAM_PERMISSION_ALL & ~(uint32_t)NETDAM_PERMISSION_REMOTE_READ, NETDAM_STATUS_NO_PERMISSION,
         NETDAM_STATUS_NO_PERMISSION},
        {NETDAM_PERMISSION_ALL & ~(uint32_t)NETDAM_PERMISSION_REMOTE_WRITE, NETDAM_STATUS_NO_PERMISSION,
         NETDAM_STATUS_LOCAL_PERMISSION},
        {0, NETDAM_STATUS_BAD_KEY, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {NETDAM_PERMISSION_ALL, NETDAM_STATUS_BAD_RANGE, NETDAM_STATUS_BAD_RANGE},
    };

    (void)state;
    for (unsigned n = 0; n < ARRAY_SIZE(table) * 2; n++) {
        unsigned count = n % 2 != 0 ? COUNT : 2;
        struct fleet fleet;
        uint64_t key;

        n /= 2;
        start(&fleet, 14 + n, impatient);
        destroy_region(&fleet);
        /* The key of another region, or fewer permissions, or too short for what the others believe. */
        assert_int_equal(ndtest_region_create(&fleet.nodes[VICTIM], BASE,
                                              table[n].status == NETDAM_STATUS_BAD_RANGE ? GROUP_OUTPUT + 2048 : BYTES,
                                              table[n].permissions != 0 ? table[n].permissions : NETDAM_PERMISSION_ALL,
                                              table[n].permissions != 0 ? KEY(VICTIM) : KEY(9), fleet.wire.now_ns,
                                              &fleet.shared[VICTIM], &key),
                         0);
        for (unsigned i = 0; i < count; i++) {
            struct netdam_member members[NODES];
            struct netdam_descriptor d = group_descriptor(&fleet, NETDAM_OP_ALL_REDUCE, i, count, 8192, 1);

            group_members(&fleet, i, count, members);
            if (i == VICTIM && table[n].status == NETDAM_STATUS_BAD_RANGE) {
                members[VICTIM].output = GROUP_INPUT;
            }
            group_post_list(&fleet, i, members, &d);
        }
        for (unsigned i = 0; i < count; i++) {
            struct netdam_completion completion = fleet_wait(&fleet, i);

            /* What the others find out by themselves, or hear from the one who refuses. */
            assert_true(completion.status == table[n].own || (i != VICTIM && completion.status == table[n].status));
            assert_int_equal(completion.hop, VICTIM);
        }
        group_settle(&fleet, 100 * UNIT_MS);
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
        n = n * 2 + (count == COUNT);
    }
}

/* ---- lied to ---- */

static uint64_t error_word(unsigned status, unsigned culprit, uint32_t instance)
{
    return UINT64_C(1) << 63 | (uint64_t)culprit << 40 | (uint64_t)status << 32 | instance;
}

static void words_that_no_firmware_stores_do_no_harm(void **state)
{
    static const struct {
        unsigned status, culprit;
        enum netdam_status seen;
        unsigned hop;
    } table[] = {
        {NETDAM_STATUS_TIMEOUT, 2, NETDAM_STATUS_TIMEOUT, 2},
        {NETDAM_STATUS_BAD_KEY, 0, NETDAM_STATUS_BAD_KEY, 0},
        {NETDAM_STATUS_TIMEOUT, NETDAM_HOP_NONE, NETDAM_STATUS_TIMEOUT, NETDAM_HOP_NONE},
        {NETDAM_STATUS_TIMEOUT, COUNT, NETDAM_STATUS_TIMEOUT, NETDAM_HOP_NONE},
        {NETDAM_STATUS_TIMEOUT, 200, NETDAM_STATUS_TIMEOUT, NETDAM_HOP_NONE},
        {0x33, 2, NETDAM_STATUS_UNKNOWN, 2},
        {0xff, 1, NETDAM_STATUS_UNKNOWN, 1},
        {NETDAM_STATUS_OK, 1, NETDAM_STATUS_UNKNOWN, 1},
        {NETDAM_STATUS_STALE, 1, NETDAM_STATUS_UNKNOWN, 1},
        {NETDAM_STATUS_BUSY, 1, NETDAM_STATUS_UNKNOWN, 1},
    };

    (void)state;
    for (unsigned n = 0; n < ARRAY_SIZE(table); n++) {
        for (unsigned word = 0; word < 2; word++) {
            uint64_t value = error_word(table[n].status, table[n].culprit, 1);
            struct netdam_completion completion;
            struct fleet fleet;

            start(&fleet, 20 + n, impatient);
            memcpy(fleet.nodes[0].memory + BASE + GROUP_CONTROL + VICTIM * 16u + 8 * word, &value, 8);
            for (unsigned i = 0; i < COUNT; i++) {
                if (i != VICTIM || word != 0) {
                    group_post(&fleet, NETDAM_OP_ALL_REDUCE, i, COUNT, 4096, 1);
                }
            }
            completion = fleet_wait(&fleet, 0);
            assert_int_equal(completion.status, table[n].seen);
            assert_int_equal(completion.hop, table[n].hop);
            assert_int_not_equal(fleet_wait(&fleet, 2).status, NETDAM_STATUS_OK);
            group_settle(&fleet, 500 * UNIT_MS);
            (void)ndtest_queue_poll(&fleet.queues[VICTIM], &completion);
            group_expect_clean(&fleet);
            fleet_stop(&fleet);
        }
    }
}

/* Of earlier collectives, whose words are smaller, and errors of others: neither arrives nor fails anything. */
static void words_of_other_collectives_are_not_believed(void **state)
{
    static const uint64_t values[] = {0, 4, UINT32_MAX - 5, UINT64_C(0x12345600000004)};

    (void)state;
    for (unsigned n = 0; n <= ARRAY_SIZE(values); n++) {
        uint64_t value = n < ARRAY_SIZE(values) ? values[n] : error_word(NETDAM_STATUS_TIMEOUT, 2, 4);
        struct netdam_completion completion;
        struct fleet fleet;

        start(&fleet, 40 + n, NULL);
        group_fill(&fleet, COUNT, 4096);
        for (unsigned word = 0; word < 2; word++) {
            memcpy(fleet.nodes[0].memory + BASE + GROUP_CONTROL + VICTIM * 16u + 8 * word, &value, 8);
        }
        group_post(&fleet, NETDAM_OP_ALL_REDUCE, 0, COUNT, 4096, 5);
        group_post(&fleet, NETDAM_OP_ALL_REDUCE, 2, COUNT, 4096, 5);
        group_settle(&fleet, 100 * UNIT_MS);
        assert_false(ndtest_queue_poll(&fleet.queues[0], &completion));
        group_post(&fleet, NETDAM_OP_ALL_REDUCE, VICTIM, COUNT, 4096, 5);
        for (unsigned i = 0; i < COUNT; i++) {
            assert_int_equal(fleet_wait(&fleet, i).status, NETDAM_STATUS_OK);
        }
        group_expect_sums(&fleet, COUNT, 4096);
        group_expect_clean(&fleet);
        fleet_stop(&fleet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interruption_ends_it_everywhere),
        cmocka_unit_test(a_group_of_one_loses_its_region_on_the_way),
        cmocka_unit_test(what_there_is_no_room_for_waits),
        cmocka_unit_test(two_groups_and_ordinary_traffic_go_side_by_side),
        cmocka_unit_test(allowed_flags_and_both_families_work),
        cmocka_unit_test(the_smallest_pools_of_operations),
        cmocka_unit_test(who_is_late_is_waited_for),
        cmocka_unit_test(who_never_comes_is_named_when_the_wait_is_over),
        cmocka_unit_test(who_refuses_is_named_by_all),
        cmocka_unit_test(words_that_no_firmware_stores_do_no_harm),
        cmocka_unit_test(words_of_other_collectives_are_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
