/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes: what a few numbers make, that every node reaches every other, and what is impossible. */
#include "vt.h"

#include "vt/shape.h"

struct row {
    struct ndsim_shape shape;
    uint32_t switches;
    uint32_t edges;
    uint32_t hops; /* links from node 0 to the last node */
};

static const struct row rows[] = {
    {{NDSIM_SHAPE_PAIR, 2, 0, 0}, 0, 1, 1},          {{NDSIM_SHAPE_STAR, 1, 0, 0}, 1, 1, 0},
    {{NDSIM_SHAPE_STAR, 32, 0, 0}, 1, 32, 2},        {{NDSIM_SHAPE_RING, 3, 3, 0}, 3, 6, 3},
    {{NDSIM_SHAPE_RING, 8, 4, 0}, 4, 12, 3},         {{NDSIM_SHAPE_RING, 5, 16, 0}, 16, 21, 6},
    {{NDSIM_SHAPE_LEAF_SPINE, 8, 4, 4}, 8, 24, 4},   {{NDSIM_SHAPE_LEAF_SPINE, 4, 2, 2}, 4, 8, 4},
    {{NDSIM_SHAPE_LEAF_SPINE, 32, 8, 8}, 16, 96, 4}, {{NDSIM_SHAPE_LEAF_SPINE, 1, 1, 15}, 16, 16, 0},
};

/* Links of equal length: when a frame that is carried through the net arrives tells how many it has crossed. */
static uint64_t arrived_ns;

static void note(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    (void)opaque;
    (void)frame;
    (void)bytes;
    arrived_ns = node == *(uint32_t *)opaque ? now_ns : 1;
}

static void every_node_reaches_every_other_in_as_few_hops_as_there_can_be(void **state)
{
    const struct ndsim_link_config link = {.propagation_ns = 1000};
    struct ndsim_shape_plan plan;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct ndsim_shape *shape = &rows[i].shape;
        struct ndsim_net *net = calloc(1, sizeof(*net));
        uint32_t last = shape->nodes - 1;

        ndsim_net_init(net, i, 0);
        net->reached = note;
        net->opaque = &last;
        for (uint8_t node = 0; node < shape->nodes; node++) {
            uint8_t mac[6] = {2, 0, 0, 0, 1, node};

            assert_int_equal(
                ndsim_net_add_node(net, netdam_fw_entry(), NULL, mac, &(struct ndsim_node_config){.receive_frames = 1}),
                node);
            net->nodes[node].node.running = true; /* frames wait for a processor that is never free */
            net->nodes[node].node.free_ns = UINT64_MAX;
        }
        assert_true(ndsim_shape_build(net, shape, &(struct ndsim_switch_config){0}, &link, &link, &plan));
        assert_int_equal(plan.switch_count, rows[i].switches);
        assert_int_equal(plan.edge_count, rows[i].edges);
        assert_int_equal(net->switch_count, rows[i].switches);
        assert_int_equal(net->link_count, 2 * rows[i].edges);
        for (uint8_t from = 0; from < shape->nodes; from++) {
            uint8_t frame[64] = {2, 0, 0, 0, 1, (uint8_t)last};

            arrived_ns = 0;
            net->nodes[from].node.port.transmit(net, &net->nodes[from].node, frame, sizeof(frame), net->loop.now_ns);
            if (from != last) {
                uint64_t start = net->loop.now_ns;

                ndsim_loop_run(&net->loop, start + 100000);
                assert_true(arrived_ns > start);
                assert_true(from != 0 || arrived_ns - start == rows[i].hops * 1000);
            }
        }
        ndsim_net_fini(net);
        free(net);
    }
}

static void what_is_impossible_or_too_large_is_refused(void **state)
{
    static const struct ndsim_shape wrong[] = {
        {NDSIM_SHAPE_PAIR, 1, 0, 0},
        {NDSIM_SHAPE_PAIR, 3, 0, 0},
        {NDSIM_SHAPE_STAR, 0, 0, 0},
        {NDSIM_SHAPE_STAR, 33, 0, 0},
        {NDSIM_SHAPE_RING, 4, 2, 0},
        {NDSIM_SHAPE_RING, 4, 17, 0},
        {NDSIM_SHAPE_RING, 4, UINT32_MAX, 0},
        {NDSIM_SHAPE_LEAF_SPINE, 4, 0, 4},
        {NDSIM_SHAPE_LEAF_SPINE, 4, 4, 0},
        {NDSIM_SHAPE_LEAF_SPINE, 4, 13, 4},
        {NDSIM_SHAPE_LEAF_SPINE, 4, UINT32_MAX, 4},
        {NDSIM_SHAPE_LEAF_SPINE, 4, 4, UINT32_MAX},
        {NDSIM_SHAPE_LEAF_SPINE, 32, 1, 1},
        {(enum ndsim_shape_kind)9, 2, 2, 2},
    };
    struct ndsim_shape_plan plan;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_false(ndsim_shape_plan(&wrong[i], &plan));
    }
}

static void a_plane_goes_down_and_no_other(void **state)
{
    const struct ndsim_shape shape = {NDSIM_SHAPE_LEAF_SPINE, 2, 2, 4};
    const struct ndsim_link_config link = {.propagation_ns = 1000};
    struct ndsim_shape_plan plan;
    struct ndsim_net *net = calloc(1, sizeof(*net));
    unsigned down = 0;

    (void)state;
    ndsim_net_init(net, 1, 0);
    for (uint8_t node = 0; node < 2; node++) {
        uint8_t mac[6] = {2, 0, 0, 0, 1, node};

        assert_int_equal(ndsim_net_add_node(net, netdam_fw_entry(), NULL, mac, &(struct ndsim_node_config){0}), node);
    }
    assert_true(ndsim_shape_build(net, &shape, &(struct ndsim_switch_config){0}, &link, &link, &plan));
    ndsim_shape_plane_down(net, &shape, &plan, 2, 100, 200);
    for (uint32_t i = 0; i < net->link_count; i++) {
        const struct ndsim_net_link *at = net->links[i];
        bool of_plane = (at->from.is_switch && at->from.index == 4) || (at->to.is_switch && at->to.index == 4);

        assert_int_equal(ndsim_link_is_up(&at->link, 150), !of_plane);
        assert_true(ndsim_link_is_up(&at->link, 99) && ndsim_link_is_up(&at->link, 200));
        down += of_plane;
    }
    assert_int_equal(down, 4);
    ndsim_net_fini(net);
    free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_reaches_every_other_in_as_few_hops_as_there_can_be),
        cmocka_unit_test(what_is_impossible_or_too_large_is_refused),
        cmocka_unit_test(a_plane_goes_down_and_no_other),
    };

    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
