/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch model: who gets what when, the limits of queues and buffer, ways of equal cost. */
#include "vt.h"

static struct ndsim_switch sw;
static struct ndsim_forward got[NDSIM_SWITCH_PORTS_MAX];
static const uint8_t macs[3][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}};

static void start(struct ndsim_switch_config config)
{
    assert_true(ndsim_switch_init(&sw, &config, 1));
}

/* An IPv4 frame of 100 bytes to a MAC, or an IPv6 one, from a UDP port. */
static uint8_t *frame_to(const uint8_t *mac, unsigned family, unsigned source_port)
{
    static uint8_t frame[100];
    size_t udp = family == 4 ? 34 : 54;

    memset(frame, 0, sizeof(frame));
    memcpy(frame, mac, 6);
    memcpy(frame + 6, macs[0], 6);
    frame[12] = family == 4 ? 0x08 : 0x86;
    frame[13] = family == 4 ? 0x00 : 0xdd;
    frame[14] = family == 4 ? 0x45 : 0x60;
    frame[family == 4 ? 23 : 20] = 17;
    frame[udp] = (uint8_t)(source_port >> 8);
    frame[udp + 1] = (uint8_t)source_port;
    return frame;
}

static void a_frame_goes_to_its_port_after_latency_and_queue(void **state)
{
    (void)state;
    /* 8 Gb/s: a byte each ns. */
    start((struct ndsim_switch_config){.ports = 4, .bits_per_s = 8000000000, .latency_ns = 300, .frame_overhead = 20});
    assert_true(ndsim_switch_route(&sw, macs[1], 1u << 2));
    assert_int_equal(ndsim_switch_forward(&sw, 0, frame_to(macs[1], 4, 1), 100, 0, 1000, got), 1);
    assert_int_equal(got[0].port, 2);
    assert_int_equal(got[0].at_ns, 1000 + 300 + 120);
    assert_int_equal(ndsim_switch_forward(&sw, 1, frame_to(macs[1], 4, 1), 100, 0, 1010, got), 1);
    assert_int_equal(got[0].at_ns, 1000 + 300 + 240);
    assert_int_equal(ndsim_switch_queued(&sw, 2, 1310), 230);
    assert_int_equal(ndsim_switch_buffered(&sw, 1310), 230);
    assert_int_equal(ndsim_switch_queued(&sw, 2, 1540), 0);
}

static void broadcasts_and_unknown_addresses_go_everywhere_but_back(void **state)
{
    static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

    (void)state;
    start((struct ndsim_switch_config){.ports = 4});
    assert_int_equal(ndsim_switch_forward(&sw, 1, frame_to(broadcast, 4, 1), 100, 0, 5, got), 3);
    assert_int_equal(got[0].port, 0);
    assert_int_equal(got[1].port, 2);
    assert_int_equal(got[2].port, 3);
    assert_int_equal(got[2].at_ns, 5);
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[2], 4, 1), 100, 0, 5, got), 3);
    assert_int_equal(sw.counts[NDSIM_SWITCH_FLOODED], 2);
    sw.flood[0] = 1u << 3;
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[2], 4, 1), 100, 0, 5, got), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_NO_WAY], 1);
}

static void a_frame_never_goes_back_where_it_came_from(void **state)
{
    (void)state;
    start((struct ndsim_switch_config){.ports = 2});
    assert_true(ndsim_switch_route(&sw, macs[1], 1u << 1));
    assert_int_equal(ndsim_switch_forward(&sw, 1, frame_to(macs[1], 4, 1), 100, 0, 5, got), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_NO_WAY], 1);
}

static void a_queue_has_its_limit_and_the_buffer_is_shared(void **state)
{
    (void)state;
    start((struct ndsim_switch_config){.ports = 4, .bits_per_s = 8000000000, .queue_bytes = 300, .buffer_bytes = 500});
    for (unsigned i = 0; i < 3; i++) {
        assert_true(ndsim_switch_route(&sw, macs[i], 1u << i));
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[0], 4, 1), 100, 0, 0, got), 1);
    }
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[0], 4, 1), 100, 0, 0, got), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_QUEUE_DROPS], 1);
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[1], 4, 1), 100, 0, 0, got), 1);
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[1], 4, 1), 100, 0, 0, got), 1);
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[2], 4, 1), 100, 0, 0, got), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_BUFFER_DROPS], 1);
    /* 50 ns later both queues have sent 50 bytes each. */
    assert_int_equal(ndsim_switch_forward(&sw, 3, frame_to(macs[2], 4, 1), 100, 0, 50, got), 1);
    assert_int_equal(got[0].at_ns, 150);
}

static unsigned ports_used(unsigned family, bool vary)
{
    uint32_t used = 0;

    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(ndsim_switch_forward(&sw, 0, frame_to(macs[1], family, vary ? 1000 + i : 7), 100, 0, 0, got),
                         1);
        used |= 1u << got[0].port;
    }
    return used;
}

static void a_flow_stays_on_one_way_and_another_source_port_is_another_flow(void **state)
{
    (void)state;
    start((struct ndsim_switch_config){.ports = 5});
    assert_true(ndsim_switch_route(&sw, macs[1], 0x1e));
    for (unsigned family = 4; family <= 6; family += 2) {
        assert_int_equal(__builtin_popcount(ports_used(family, false)), 1);
        assert_int_equal(ports_used(family, true), 0x1e);
    }
}

static void spraying_takes_all_ways_for_one_flow(void **state)
{
    (void)state;
    start((struct ndsim_switch_config){.ports = 5, .spread = NDSIM_SPREAD_SPRAY});
    assert_true(ndsim_switch_route(&sw, macs[1], 0x1e));
    assert_int_equal(ports_used(4, false), 0x1e);
}

static void a_port_that_is_down_is_not_used(void **state)
{
    (void)state;
    start((struct ndsim_switch_config){.ports = 5});
    assert_true(ndsim_switch_route(&sw, macs[1], 0x1e));
    ndsim_switch_port(&sw, 2, false);
    assert_int_equal(ports_used(4, true), 0x1a);
    ndsim_switch_port(&sw, 2, true);
    assert_int_equal(ports_used(4, true), 0x1e);
}

static void the_table_says_when_it_is_full(void **state)
{
    uint8_t mac[6] = {2};

    (void)state;
    start((struct ndsim_switch_config){.ports = 2});
    for (unsigned i = 0; i < NDSIM_SWITCH_MACS_MAX / 2; i++) {
        mac[4] = (uint8_t)(i >> 8);
        mac[5] = (uint8_t)i;
        assert_true(ndsim_switch_route(&sw, mac, 1));
    }
    assert_true(ndsim_switch_route(&sw, mac, 2));
    mac[3] = 1;
    assert_false(ndsim_switch_route(&sw, mac, 1));
}

static void impossible_switches_are_refused(void **state)
{
    struct ndsim_switch_config config = {.ports = 0};

    (void)state;
    assert_false(ndsim_switch_init(&sw, &config, 1));
    config.ports = NDSIM_SWITCH_PORTS_MAX;
    assert_true(ndsim_switch_init(&sw, &config, 1));
    config.ports = NDSIM_SWITCH_PORTS_MAX + 1;
    assert_false(ndsim_switch_init(&sw, &config, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_goes_to_its_port_after_latency_and_queue),
        cmocka_unit_test(broadcasts_and_unknown_addresses_go_everywhere_but_back),
        cmocka_unit_test(a_frame_never_goes_back_where_it_came_from),
        cmocka_unit_test(a_queue_has_its_limit_and_the_buffer_is_shared),
        cmocka_unit_test(a_flow_stays_on_one_way_and_another_source_port_is_another_flow),
        cmocka_unit_test(spraying_takes_all_ways_for_one_flow),
        cmocka_unit_test(a_port_that_is_down_is_not_used),
        cmocka_unit_test(the_table_says_when_it_is_full),
        cmocka_unit_test(impossible_switches_are_refused),
    };

    return cmocka_run_group_tests_name("switch", tests, NULL, NULL);
}
