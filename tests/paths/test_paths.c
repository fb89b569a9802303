/* SPDX-License-Identifier: BSD-3-Clause */
/* Many paths across leaves and spines in virtual time: losses, unequal ways, planes that die and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "traffic.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

/* With the default of 10 repetitions: 10, 20, ... 640 ms, then 1 s each; and what is lost before anybody is silent. */
#define GIVE_UP_NS (6 * S)

static double goodput(const struct traffic_setup *setup)
{
    struct traffic *traffic = traffic_start(setup);
    double bits_per_s = traffic_goodput(traffic, MS, 3 * MS);

    assert_int_equal(traffic->failed, 0);
    traffic_end(traffic);
    return bits_per_s;
}

static void goodput_at_random_loss_is_what_the_wire_lets_through(void **state)
{
    static const struct {
        uint32_t loss_ppm;
        double at_least;
    } rows[] = {{1000, 0.99}, {10000, 0.95}, {50000, 0.85}};

    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct traffic_setup setup = traffic_default();
        double lossless;

        setup.seed = seed;
        lossless = goodput(&setup);
        assert_true(lossless > 0.95 * 100e9);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            setup.loss_ppm = rows[i].loss_ppm;
            assert_true(goodput(&setup) > rows[i].at_least * lossless);
        }
    }
}

static void four_planes_carry_more_than_three_times_what_one_path_does(void **state)
{
    struct traffic_setup setup = traffic_default();
    double one;

    (void)state;
    setup.node_bits_per_s = 4 * setup.trunk_bits_per_s;
    setup.paths = 1;
    one = goodput(&setup);
    assert_true(one > 0.9 * (double)setup.trunk_bits_per_s && one < (double)setup.trunk_bits_per_s);
    setup.paths = 0;
    for (setup.seed = 1; setup.seed <= 3; setup.seed++) {
        assert_true(goodput(&setup) > 3 * one);
    }
}

/* The time from now on until no path has been retired for a while. */
static uint64_t retiring_ns(struct traffic *traffic, uint64_t quiet_ns)
{
    uint64_t start_ns = traffic->net.loop.now_ns, last_ns = start_ns;
    uint64_t count = traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED);

    while (traffic->net.loop.now_ns < last_ns + quiet_ns) {
        traffic_run(traffic, US);
        if (traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED) != count) {
            count = traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED);
            last_ns = traffic->net.loop.now_ns;
        }
    }
    return last_ns - start_ns;
}

static void a_plane_that_dies_is_left_within_few_round_trips_and_used_again_when_it_is_back(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct traffic_setup setup = traffic_default();
        struct traffic *traffic;
        uint64_t round_trip_ns, frames;
        double before, after;

        (void)state;
        setup.seed = seed;
        traffic = traffic_start(&setup);
        before = traffic_goodput(traffic, MS, MS);
        round_trip_ns = traffic_round_trip_ns(traffic);
        traffic_plane(traffic, 1, false);
        assert_true(retiring_ns(traffic, MS) < 20 * round_trip_ns);
        assert_in_range(traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED), 2, 14);
        /* Three planes suffice for the node's link; what still goes to the dead one is probes. */
        frames = traffic_plane_frames(traffic, 1);
        after = traffic_goodput(traffic, 0, 2 * MS);
        assert_true(after > 0.95 * before);
        assert_in_range(traffic_plane_frames(traffic, 1) - frames, 0, 60);
        assert_true(traffic_counter(traffic, NETDAM_COUNTER_RETRANSMISSIONS) < 500);
        traffic_plane(traffic, 1, true);
        traffic_run(traffic, 20 * MS);
        assert_int_equal(traffic_counter(traffic, NETDAM_COUNTER_PATHS_RESTORED),
                         traffic_counter(traffic, NETDAM_COUNTER_PATHS_RETIRED));
        frames = traffic_plane_frames(traffic, 1);
        traffic_run(traffic, MS);
        assert_true(traffic_plane_frames(traffic, 1) - frames > 100);
        assert_int_equal(traffic->failed, 0);
        traffic_end(traffic);
    }
}

static void a_transfer_survives_planes_that_die_one_after_the_other(void **state)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);

    (void)state;
    traffic_run(traffic, MS);
    for (uint32_t round = 0; round < 8; round++) {
        traffic_plane(traffic, round % 4, false);
        traffic_run(traffic, 500 * US);
        if (round % 2 == 1) { /* two are dead for a while */
            traffic_plane(traffic, (round + 3) % 4, true);
            traffic_plane(traffic, round % 4, true);
        }
        traffic_run(traffic, 500 * US);
    }
    traffic_drain(traffic, GIVE_UP_NS);
    assert_int_equal(traffic->completed, traffic->posted);
    assert_int_equal(traffic->failed, 0);
    assert_true(traffic_memory_agrees(traffic));
    traffic_end(traffic);
}

static void when_all_planes_are_dead_everything_ends_in_bounded_time_and_recovers_afterwards(void **state)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);
    uint64_t dead_ns, failed;
    double before;

    (void)state;
    before = traffic_goodput(traffic, MS, MS);
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, false);
    }
    dead_ns = traffic->net.loop.now_ns;
    traffic_drain(traffic, 100 * S);
    assert_int_equal(traffic->completed, traffic->posted);
    assert_in_range(traffic->failed, 1, setup.depth);
    assert_true(traffic->net.loop.now_ns - dead_ns < GIVE_UP_NS);
    /* What is asked for while everything is dead ends as well. */
    traffic_post(traffic);
    traffic_drain(traffic, 100 * S);
    assert_int_equal(traffic->completed, traffic->posted);
    assert_true(traffic->last_failed_ns < GIVE_UP_NS);
    failed = traffic->failed;
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, true);
    }
    assert_true(traffic_goodput(traffic, 20 * MS, MS) > 0.95 * before);
    assert_int_equal(traffic->failed, failed);
    traffic_end(traffic);
}

static void an_outage_shorter_than_the_time_to_give_up_costs_no_request(void **state)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);

    (void)state;
    traffic_run(traffic, MS);
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, false);
    }
    traffic_run(traffic, S);
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, true);
    }
    traffic_drain(traffic, 10 * S);
    assert_int_equal(traffic->completed, traffic->posted);
    assert_int_equal(traffic->failed, 0);
    assert_true(traffic_memory_agrees(traffic));
    traffic_end(traffic);
}

static void ordered_requests_survive_the_plane_that_they_are_on(void **state)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic;
    uint64_t ok;

    (void)state;
    setup.flags = NETDAM_DESCRIPTOR_ORDERED;
    setup.message_bytes = 4096;
    traffic = traffic_start(&setup);
    traffic_run(traffic, 2 * MS);
    for (uint32_t plane = 0; plane < setup.planes; plane++) {
        traffic_plane(traffic, plane, false);
        traffic_run(traffic, 100 * MS);
        ok = traffic->ok;
        traffic_run(traffic, 2 * MS);
        assert_true(traffic->ok - ok > 100);
        traffic_plane(traffic, plane, true);
    }
    assert_int_equal(traffic->failed, 0);
    traffic_end(traffic);
}

static void flapping_trunks_slow_a_transfer_and_do_not_break_it(void **state)
{
    struct traffic_setup setup = traffic_default();
    struct traffic *traffic = traffic_start(&setup);

    (void)state;
    for (uint32_t i = 0; i < traffic->plan.edge_count; i++) {
        if (traffic->plan.edges[i].trunk && i % 2 == 0) {
            ndsim_link_flap(&traffic->net.links[2 * i]->link, MS, 400 * US, 100 * US);
        }
    }
    assert_true(traffic_goodput(traffic, MS, 5 * MS) > 0.5 * 100e9);
    traffic_drain(traffic, GIVE_UP_NS);
    assert_int_equal(traffic->failed, 0);
    assert_true(traffic_memory_agrees(traffic));
    traffic_end(traffic);
}

static void one_seed_gives_the_same_run_to_the_bit(void **state)
{
    uint64_t hashes[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct traffic_setup setup = traffic_default();
        struct traffic *traffic;

        setup.loss_ppm = 20000;
        traffic = traffic_start(&setup);
        traffic_run(traffic, MS);
        hashes[i] = traffic->net.hash;
        traffic_end(traffic);
    }
    assert_true(hashes[0] == hashes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goodput_at_random_loss_is_what_the_wire_lets_through),
        cmocka_unit_test(four_planes_carry_more_than_three_times_what_one_path_does),
        cmocka_unit_test(a_plane_that_dies_is_left_within_few_round_trips_and_used_again_when_it_is_back),
        cmocka_unit_test(a_transfer_survives_planes_that_die_one_after_the_other),
        cmocka_unit_test(when_all_planes_are_dead_everything_ends_in_bounded_time_and_recovers_afterwards),
        cmocka_unit_test(an_outage_shorter_than_the_time_to_give_up_costs_no_request),
        cmocka_unit_test(ordered_requests_survive_the_plane_that_they_are_on),
        cmocka_unit_test(flapping_trunks_slow_a_transfer_and_do_not_break_it),
        cmocka_unit_test(one_seed_gives_the_same_run_to_the_bit),
    };

    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
