/* SPDX-License-Identifier: BSD-3-Clause */
/* Priorities: which frame is sent next, when; what a frame's priority is; switches that have them. */
#include "vt.h"

#include "ndtest_node.h"

static void expect_taken(struct ndsim_queues *queues, uint64_t now_ns, uint64_t frame, uint64_t leaves_ns)
{
    uint64_t name, leaves;

    assert_int_equal(ndsim_queues_due_ns(queues), now_ns);
    assert_false(ndsim_queues_take(queues, now_ns - 1, &name, &leaves));
    assert_true(ndsim_queues_take(queues, now_ns, &name, &leaves));
    assert_int_equal(name, frame);
    assert_int_equal(leaves, leaves_ns);
}

static void the_most_urgent_frame_that_is_ready_is_sent_next_and_none_is_cut_short(void **state)
{
    struct ndsim_queues queues;

    (void)state;
    ndsim_queues_init(&queues, 8000000000); /* a byte each ns */
    assert_int_equal(ndsim_queues_due_ns(&queues), UINT64_MAX);
    assert_true(ndsim_queues_put(&queues, 0, 1, 100, 1000));
    assert_true(ndsim_queues_put(&queues, 0, 2, 100, 1000));
    assert_true(ndsim_queues_put(&queues, 7, 3, 50, 1050));
    assert_true(ndsim_queues_put(&queues, 3, 4, 50, 1060));
    assert_int_equal(ndsim_queues_backlog(&queues, 1000), 300);
    expect_taken(&queues, 1000, 1, 1100);
    assert_int_equal(ndsim_queues_backlog(&queues, 1000), 300);
    assert_int_equal(ndsim_queues_backlog(&queues, 1040), 260);
    expect_taken(&queues, 1100, 3, 1150);
    expect_taken(&queues, 1150, 4, 1200);
    expect_taken(&queues, 1200, 2, 1300);
    assert_int_equal(ndsim_queues_due_ns(&queues), UINT64_MAX);
    assert_int_equal(ndsim_queues_backlog(&queues, 1300), 0);
    ndsim_queues_fini(&queues);
}

static void within_a_priority_frames_keep_their_order_however_many_wait(void **state)
{
    struct ndsim_queues queues;
    uint64_t name, leaves, next = 0;

    (void)state;
    ndsim_queues_init(&queues, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(ndsim_queues_put(&queues, 5, i, 10, 0));
        if (i % 3 == 0) {
            assert_true(ndsim_queues_take(&queues, 1, &name, &leaves));
            assert_int_equal(name, next++);
        }
    }
    while (ndsim_queues_take(&queues, 1, &name, &leaves)) {
        assert_int_equal(name, next++);
    }
    assert_int_equal(next, 1000);
    ndsim_queues_fini(&queues);
}

static void back_to_back_frames_take_exactly_their_time(void **state)
{
    struct ndsim_queues queues;
    uint64_t name, leaves = 0;

    (void)state;
    ndsim_queues_init(&queues, 100000000000); /* 0.08 ns for a byte */
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(ndsim_queues_put(&queues, 1, i, 9024, 0));
    }
    while (ndsim_queues_due_ns(&queues) != UINT64_MAX) {
        assert_true(ndsim_queues_take(&queues, ndsim_queues_due_ns(&queues), &name, &leaves));
    }
    assert_int_equal(leaves, 721920);
    ndsim_queues_fini(&queues);
}

static void the_tag_or_else_the_dscp_tells_the_priority(void **state)
{
    uint8_t frame[60] = {0};

    (void)state;
    assert_int_equal(ndsim_switch_priority(frame, sizeof(frame)), 0);
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[15] = 46 << 2; /* expedited forwarding */
    assert_int_equal(ndsim_switch_priority(frame, sizeof(frame)), 5);
    assert_int_equal(ndsim_switch_priority(frame, 15), 0);
    frame[12] = 0x86;
    frame[13] = 0xdd;
    frame[14] = 0x60 | 48 >> 2; /* class selector 6: 8 bits of traffic class, the upper four of them here */
    frame[15] = 0;
    assert_int_equal(ndsim_switch_priority(frame, sizeof(frame)), 6);
    frame[12] = 0x81;
    frame[13] = 0x00;
    frame[14] = 3 << 5;
    frame[16] = 0x08;
    frame[18] = 0x45;
    frame[19] = 46 << 2; /* the tag counts */
    assert_int_equal(ndsim_switch_priority(frame, sizeof(frame)), 3);
    assert_int_equal(ndsim_switch_priority(frame, 13), 0);
    assert_int_equal(ndsim_switch_priority(frame, 17), 0);
}

static void limits_hold_with_priorities_too(void **state)
{
    static struct ndsim_switch sw;
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    struct ndsim_forward forwards[NDSIM_SWITCH_PORTS_MAX];
    uint8_t frame[100] = {2, 0, 0, 0, 0, 9};

    (void)state;
    assert_true(ndsim_switch_init(&sw,
                                  &(struct ndsim_switch_config){.ports = 3,
                                                                .bits_per_s = 8000000000,
                                                                .latency_ns = 40,
                                                                .queue_bytes = 300,
                                                                .buffer_bytes = 400,
                                                                .priorities = true},
                                  1));
    assert_true(ndsim_switch_route(&sw, mac, 1u << 2));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ndsim_switch_forward(&sw, 0, frame, sizeof(frame), 0, 1000, forwards), 1);
        assert_int_equal(forwards[0].at_ns, 1040);
        assert_true(ndsim_switch_put(&sw, &forwards[0], i, sizeof(frame)));
    }
    assert_int_equal(ndsim_switch_forward(&sw, 0, frame, sizeof(frame), 0, 1000, forwards), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_QUEUE_DROPS], 1);
    assert_true(ndsim_switch_route(&sw, mac, 1u << 1));
    assert_int_equal(ndsim_switch_forward(&sw, 0, frame, sizeof(frame), 0, 1000, forwards), 1);
    assert_true(ndsim_switch_put(&sw, &forwards[0], 3, sizeof(frame)));
    assert_int_equal(ndsim_switch_buffered(&sw, 1000), 400);
    assert_int_equal(ndsim_switch_forward(&sw, 0, frame, sizeof(frame), 0, 1000, forwards), 0);
    assert_int_equal(sw.counts[NDSIM_SWITCH_BUFFER_DROPS], 1);
    ndsim_switch_fini(&sw);
}

/* Frames that a net delivers: firmware that only notes what it is given. */
struct sink {
    uint8_t first[64];
    uint64_t at_ns[64];
    unsigned count;
};

static void note(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct sink *sink = opaque;

    (void)node;
    (void)bytes;
    sink->first[sink->count] = frame[40];
    sink->at_ns[sink->count++] = now_ns;
}

static void a_net_of_switches_with_priorities_sends_urgent_frames_first(void **state)
{
    const struct ndsim_link_config link = {.propagation_ns = 100};
    const struct ndsim_switch_config config = {.ports = 3, .bits_per_s = 8000000000, .priorities = true};
    struct ndsim_net *net = calloc(1, sizeof(*net));
    struct ndtest_node node;
    struct ndtest_hooks hooks = {0};
    struct netdam_fw_config fw_config;
    struct sink sink = {0};
    const char *error;

    (void)state;
    ndtest_config_default(&fw_config, 0);
    assert_true(ndtest_node_init(&node, netdam_fw_entry(), &fw_config, &hooks, 1, &error));
    ndtest_node_start(&node, 0);
    ndsim_net_init(net, 1, 0);
    net->opaque = &sink;
    net->reached = note;
    for (uint8_t i = 0; i < 3; i++) {
        uint8_t mac[6] = {2, 0, 0, 0, 0, i};

        assert_int_equal(
            ndsim_net_add_node(net, node.ops, node.state, mac, &(struct ndsim_node_config){.receive_frames = 1}), i);
    }
    net->nodes[2].node.running = true; /* it is given frames, and never runs */
    net->nodes[2].node.free_ns = UINT64_MAX;
    assert_int_equal(ndsim_net_add_switch(net, &config), 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(ndsim_net_join(net, ndsim_end_node(i), ndsim_end_switch(0, i), &link), 2 * i);
    }
    assert_true(ndsim_net_route(net));
    for (uint8_t i = 0; i < 6; i++) {
        uint8_t frame[100] = {2, 0, 0, 0, 0, 2, [12] = 8, [14] = 0x45, [40] = i};

        frame[15] = i >= 3 ? 46 << 2 : 0;
        net->nodes[0].node.port.transmit(net, &net->nodes[i % 2].node, frame, sizeof(frame), i == 0 ? 1000 : 1001);
    }
    ndsim_loop_run(&net->loop, 1000000);
    assert_int_equal(sink.count, 6);
    /* The first is being sent when the others come, the less urgent of them first. */
    assert_memory_equal(sink.first, ((uint8_t[]){0, 3, 4, 5, 1, 2}), 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(sink.at_ns[i], 1000 + 100 + 100 * (i + 1) + 100);
    }
    assert_null(net->under_way);
    ndsim_net_fini(net);
    ndtest_node_stop(&node, 0);
    ndtest_node_fini(&node);
    free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_urgent_frame_that_is_ready_is_sent_next_and_none_is_cut_short),
        cmocka_unit_test(within_a_priority_frames_keep_their_order_however_many_wait),
        cmocka_unit_test(back_to_back_frames_take_exactly_their_time),
        cmocka_unit_test(the_tag_or_else_the_dscp_tells_the_priority),
        cmocka_unit_test(limits_hold_with_priorities_too),
        cmocka_unit_test(a_net_of_switches_with_priorities_sends_urgent_frames_first),
    };

    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
