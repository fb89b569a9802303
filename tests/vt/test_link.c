/* SPDX-License-Identifier: BSD-3-Clause */
/* The link model: exact times, the queue's limit, each fault by count and by chance, and death. */
#include "vt.h"

static struct ndsim_delivery got[NDSIM_LINK_COPIES_MAX];

static void start(struct ndsim_link *link, struct ndsim_link_config config)
{
    ndsim_link_init(link, &config, 1);
}

static void a_frame_takes_its_bits_and_the_way(void **state)
{
    struct ndsim_link link;

    (void)state;
    /* 10 Gb/s: 0.8 ns a byte. */
    start(&link, (struct ndsim_link_config){.bits_per_s = 10000000000, .propagation_ns = 500, .frame_overhead = 24});
    assert_int_equal(ndsim_link_send(&link, 1000, 1000, got), 1);
    assert_int_equal(got[0].at_ns, 1000 + 820 + 500); /* 1024 bytes are 819.2 ns, rounded up */
    assert_int_equal(got[0].flips, 0);
    /* The next one starts when the first has left, at 1819.2. */
    assert_int_equal(ndsim_link_send(&link, 1000, 1000, got), 1);
    assert_int_equal(got[0].at_ns, 1000 + 1639 + 500); /* 1638.4 */
    /* After a pause the line is free at once. */
    assert_int_equal(ndsim_link_send(&link, 976, 10000, got), 1);
    assert_int_equal(got[0].at_ns, 10000 + 800 + 500);
    assert_int_equal(link.counts[NDSIM_LINK_FRAMES], 3);
    assert_int_equal(link.counts[NDSIM_LINK_DELIVERIES], 3);
    assert_int_equal(link.counts[NDSIM_LINK_BYTES], 2976);
}

static void fractions_of_a_ns_add_up(void **state)
{
    struct ndsim_link link;

    (void)state;
    /* 3 bits a second short of a round number: nothing divides. */
    start(&link, (struct ndsim_link_config){.bits_per_s = 399999999997});
    for (unsigned i = 0; i < 1000000; i++) {
        assert_int_equal(ndsim_link_send(&link, 64, 0, got), 1);
    }
    /* 512e6 bits at that rate: 1280000.0000096 ns */
    assert_int_equal(got[0].at_ns, 1280001);
}

static void without_a_rate_only_the_way_counts(void **state)
{
    struct ndsim_link link;

    (void)state;
    start(&link, (struct ndsim_link_config){.propagation_ns = 7, .queue_bytes = 10000});
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(ndsim_link_send(&link, 9000, 50, got), 1);
        assert_int_equal(got[0].at_ns, 57);
    }
    assert_int_equal(ndsim_link_backlog(&link, 50), 0);
}

static void the_queue_drops_what_does_not_fit_and_takes_again_when_there_is_room(void **state)
{
    struct ndsim_link link;

    (void)state;
    /* 8 Gb/s: a byte each ns. */
    start(&link, (struct ndsim_link_config){.bits_per_s = 8000000000, .queue_bytes = 3000});
    assert_int_equal(ndsim_link_send(&link, 1000, 0, got), 1);
    assert_int_equal(ndsim_link_send(&link, 1000, 0, got), 1);
    assert_int_equal(ndsim_link_send(&link, 1000, 0, got), 1);
    assert_int_equal(got[0].at_ns, 3000);
    assert_int_equal(ndsim_link_backlog(&link, 0), 3000);
    assert_int_equal(ndsim_link_send(&link, 1, 0, got), 0);
    assert_int_equal(link.counts[NDSIM_LINK_TAIL_DROPS], 1);
    assert_int_equal(ndsim_link_backlog(&link, 999), 2001);
    assert_int_equal(ndsim_link_send(&link, 1000, 999, got), 0);
    assert_int_equal(ndsim_link_send(&link, 1000, 1000, got), 1);
    assert_int_equal(got[0].at_ns, 4000);
    assert_int_equal(ndsim_link_backlog(&link, 4000), 0);
}

static void faults_by_count_hit_exactly_those_frames(void **state)
{
    struct ndsim_link link;
    unsigned copies[12];

    (void)state;
    start(&link, (struct ndsim_link_config){.propagation_ns = 10,
                                            .drop = {.nth = 2},
                                            .twice = {.nth = 3, .every = 4},
                                            .reorder = {.nth = 5},
                                            .reorder_ns = 100,
                                            .corrupt = {.nth = 6},
                                            .corrupt_from = 14,
                                            .spike = {.nth = 8},
                                            .spike_ns = 1000000});
    for (unsigned i = 1; i < 12; i++) {
        copies[i] = ndsim_link_send(&link, 64, 0, got);
        if (i == 5) {
            assert_int_equal(got[0].at_ns, 110);
        } else if (i == 8) {
            assert_in_range(got[0].at_ns, 10, 1000010);
            assert_int_not_equal(got[0].at_ns, 10);
        } else if (i != 2) {
            assert_int_equal(got[0].at_ns, 10);
        }
        if (i == 6) {
            assert_in_range(got[0].flips, 1, NDSIM_FLIPS_MAX);
            for (unsigned n = 0; n < got[0].flips; n++) {
                assert_in_range(got[0].bits[n], 14 * 8, 64 * 8 - 1);
            }
        } else if (i != 2) {
            assert_int_equal(got[0].flips, 0);
        }
        assert_int_equal(copies[i], i == 2 ? 0 : i == 3 || i == 7 || i == 11 ? 2 : 1);
    }
    assert_int_equal(link.counts[NDSIM_LINK_DROPS], 1);
    assert_int_equal(link.counts[NDSIM_LINK_DOUBLED], 3);
    assert_int_equal(link.counts[NDSIM_LINK_REORDERED], 1);
    assert_int_equal(link.counts[NDSIM_LINK_CORRUPTED], 1);
    assert_int_equal(link.counts[NDSIM_LINK_SPIKES], 1);
}

static void faults_by_chance_come_as_often_as_they_should(void **state)
{
    struct ndsim_link link;
    unsigned arrived = 0;
    const struct ndsim_when tenth = {.parts_per_million = 100000};

    (void)state;
    start(&link,
          (struct ndsim_link_config){
              .drop = tenth, .twice = tenth, .corrupt = tenth, .reorder = tenth, .reorder_ns = 1, .spike = tenth});
    for (unsigned i = 0; i < 100000; i++) {
        arrived += ndsim_link_send(&link, 100, i, got);
    }
    assert_in_range(link.counts[NDSIM_LINK_DROPS], 9500, 10500);
    assert_in_range(link.counts[NDSIM_LINK_DOUBLED], 8500, 9500);
    assert_in_range(link.counts[NDSIM_LINK_CORRUPTED], 9400, 10400);
    assert_in_range(link.counts[NDSIM_LINK_REORDERED], 9400, 10400);
    assert_in_range(link.counts[NDSIM_LINK_SPIKES], 9400, 10400);
    assert_int_equal(arrived, 100000 - link.counts[NDSIM_LINK_DROPS] + link.counts[NDSIM_LINK_DOUBLED]);
    assert_int_equal(arrived, link.counts[NDSIM_LINK_DELIVERIES]);
}

static void a_dead_link_loses_what_is_offered_and_what_is_under_way(void **state)
{
    struct ndsim_link link;

    (void)state;
    start(&link, (struct ndsim_link_config){.propagation_ns = 100});
    ndsim_link_down(&link, 1000, 2000);
    assert_int_equal(ndsim_link_send(&link, 64, 899, got), 1);
    assert_int_equal(ndsim_link_send(&link, 64, 900, got), 0); /* would arrive at 1000 */
    assert_int_equal(ndsim_link_send(&link, 64, 1999, got), 0);
    assert_int_equal(ndsim_link_send(&link, 64, 2000, got), 1);
    assert_int_equal(link.counts[NDSIM_LINK_DOWN_DROPS], 2);
    assert_true(ndsim_link_is_up(&link, 999));
    assert_false(ndsim_link_is_up(&link, 1000));
    assert_false(ndsim_link_is_up(&link, 1999));
    assert_true(ndsim_link_is_up(&link, 2000));
    ndsim_link_down(&link, 3000, NDSIM_NEVER);
    assert_false(ndsim_link_is_up(&link, UINT64_MAX - 1));
}

static void a_flapping_link_is_down_at_the_start_of_each_period(void **state)
{
    struct ndsim_link link;

    (void)state;
    start(&link, (struct ndsim_link_config){.propagation_ns = 100});
    ndsim_link_flap(&link, 1000, 500, 200);
    assert_int_equal(ndsim_link_send(&link, 64, 800, got), 1);
    assert_int_equal(ndsim_link_send(&link, 64, 950, got), 0); /* would arrive at 1050 */
    for (uint64_t period = 1000; period < 3000; period += 500) {
        assert_false(ndsim_link_is_up(&link, period));
        assert_false(ndsim_link_is_up(&link, period + 199));
        assert_true(ndsim_link_is_up(&link, period + 200));
        assert_true(ndsim_link_is_up(&link, period + 499));
        assert_int_equal(ndsim_link_send(&link, 64, period + 150, got), 0);
        assert_int_equal(ndsim_link_send(&link, 64, period + 250, got), 1);
    }
    ndsim_link_down(&link, 3300, 3400); /* both count */
    assert_false(ndsim_link_is_up(&link, 3300));
    ndsim_link_flap(&link, 0, 0, 100);
    assert_true(ndsim_link_is_up(&link, 3000));
    assert_false(ndsim_link_is_up(&link, 3300));
}

static void one_seed_repeats_all_decisions(void **state)
{
    const struct ndsim_when often = {.parts_per_million = 300000};
    struct ndsim_link_config config = {
        .jitter_ns = 1000, .drop = often, .twice = often, .corrupt = often, .spike = often, .spike_ns = 100000};
    uint64_t hashes[3] = {0};

    (void)state;
    for (unsigned run = 0; run < 3; run++) {
        struct ndsim_link link;

        ndsim_link_init(&link, &config, run == 2 ? 6 : 5);
        for (unsigned i = 0; i < 1000; i++) {
            unsigned count = ndsim_link_send(&link, 100, i, got);

            hashes[run] = ndsim_hash(hashes[run] + count, got, count * sizeof(got[0]));
        }
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_takes_its_bits_and_the_way),
        cmocka_unit_test(fractions_of_a_ns_add_up),
        cmocka_unit_test(without_a_rate_only_the_way_counts),
        cmocka_unit_test(the_queue_drops_what_does_not_fit_and_takes_again_when_there_is_room),
        cmocka_unit_test(faults_by_count_hit_exactly_those_frames),
        cmocka_unit_test(faults_by_chance_come_as_often_as_they_should),
        cmocka_unit_test(a_dead_link_loses_what_is_offered_and_what_is_under_way),
        cmocka_unit_test(a_flapping_link_is_down_at_the_start_of_each_period),
        cmocka_unit_test(one_seed_repeats_all_decisions),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
