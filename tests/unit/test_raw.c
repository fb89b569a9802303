/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW queue pairs: which frames they may send, the port's room, turns, and their end. */
#include "raw.h"

static void a_frame_of_any_length_up_to_the_mtu_goes_out_as_it_is(void **state)
{
    static const unsigned mtus[] = {1500, 9000};

    (void)state;
    for (size_t m = 0; m < ARRAY_SIZE(mtus); m++) {
        struct netdam_fw_config config = unit_config(0);
        const size_t lengths[] = {14, 15, 60, 77, 78, 79, mtus[m] + 14};

        config.mtu = mtus[m];
        start(&config);
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
            struct netdam_completion c;

            make(other, own, 0x88b5, lengths[i]);
            send(lengths[i], 100 + i);
            expect_wire(lengths[i]);
            c = unit_completion(&raw);
            assert_int_equal(c.user_data, 100 + i);
            assert_int_equal(c.status, NETDAM_STATUS_OK);
            assert_int_equal(c.length, lengths[i]);
            assert_int_equal(c.flags, 0);
        }
        make(other, own, 0x88b5, mtus[m] + 15);
        send(mtus[m] + 15, 1);
        unit_expect_completion(&raw, 1, NETDAM_STATUS_LOCAL_DESCRIPTOR);
        make(other, own, 0x88b5, 13);
        send(13, 2);
        unit_expect_completion(&raw, 2, NETDAM_STATUS_LOCAL_DESCRIPTOR);
        unit_expect_silence(&u);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_SENT), ARRAY_SIZE(lengths));
        unit_stop(&u);
    }
}

static void a_frame_may_be_gathered_from_pieces(void **state)
{
    struct netdam_list_entry entries[] = {{0, 14, 0}, {0, 0, 7}, {0, 100, 0x1000}};
    struct netdam_descriptor d = {.user_data = 9,
                                  .length = 114,
                                  .flags = NETDAM_DESCRIPTOR_LIST | NETDAM_DESCRIPTOR_FENCE,
                                  .list_count = 3,
                                  .u.buffer.local_address = 0x2000};

    (void)state;
    start(NULL);
    make(other, own, 0x88b5, 114);
    memcpy(u.node.memory + DATA, frame, 14);
    memcpy(u.node.memory + DATA + 0x1000, frame + 14, 100);
    memcpy(u.node.memory + DATA + 0x2000, entries, sizeof(entries));
    unit_post(&u, &raw, &d);
    unit_run(&u);
    expect_wire(114);
    unit_expect_completion(&raw, 9, NETDAM_STATUS_OK);
    unit_stop(&u);
}

static void a_descriptor_that_is_no_frame_is_refused(void **state)
{
    static const struct {
        const char *what;
        struct netdam_descriptor d;
        enum netdam_status status;
    } rows[] = {
        {"opcode", {.length = 60, .opcode = NETDAM_OP_WRITE}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"chain", {.length = 60, .opcode = NETDAM_OP_CHAIN}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"operation", {.length = 60, .operation = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"type", {.length = 60, .type = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"flag", {.length = 60, .flags = NETDAM_DESCRIPTOR_UNRELIABLE}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined flag", {.length = 60, .flags = 0x80000000u}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"peer", {.length = 60, .peer = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"key", {.length = 60, .remote_key = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"remote address", {.length = 60, .remote_address = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate", {.length = 60, .immediate = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"result", {.length = 60, .u.buffer.result_address = 8}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no length", {.length = 0}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"huge", {.length = UINT32_MAX}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list without flag", {.length = 60, .list_count = 1}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list of none", {.length = 60, .flags = NETDAM_DESCRIPTOR_LIST}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no region", {.length = 60, .local_region = 7}, NETDAM_STATUS_LOCAL_REGION},
        {"beyond the region", {.length = 60, .u.buffer.local_address = 0x10000 - 59}, NETDAM_STATUS_LOCAL_RANGE},
        {"not readable", {.length = 60, .local_region = 1}, NETDAM_STATUS_LOCAL_PERMISSION},
    };

    (void)state;
    start(NULL);
    make(other, own, 0x88b5, 60);
    memcpy(u.node.memory + DATA, frame, 60);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_descriptor d = rows[i].d;

        d.user_data = i;
        unit_post(&u, &raw, &d);
        unit_run(&u);
        unit_expect_completion(&raw, i, rows[i].status);
        if (u.count != 0) {
            fail_msg("%s: sent", rows[i].what);
        }
    }
    send(60, 99);
    expect_wire(60);
    unit_stop(&u);
}

/* What a frame says of its sender: the card's own address, and nothing that peers would take for the card's packets. */
static void frames_in_another_name_are_not_sent(void **state)
{
    static const uint8_t group[6] = {3, 0, 0, 0, 0, 1};
    struct ndtest_queue bridge;
    size_t bytes;

    (void)state;
    start(NULL);
    make(other, other, 0x88b5, 60);
    send(60, 1);
    unit_expect_completion(&raw, 1, NETDAM_STATUS_LOCAL_PERMISSION);
    for (unsigned family = 4; family <= 6; family += 2) {
        bytes = make_udp(family, 1, 2, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
        memcpy(frame, other, 6);
        memcpy(frame + 6, own, 6);
        send(bytes, 2);
        unit_expect_completion(&raw, 2, NETDAM_STATUS_LOCAL_PERMISSION);
        unit_expect_silence(&u);

        bytes = make_udp(family, 1, 2, NETDAM_UDP_PORT + u.fw->config.paths - 1, NETDAM_UDP_PORT);
        memcpy(frame, other, 6);
        memcpy(frame + 6, own, 6);
        send(bytes, 2);
        unit_expect_completion(&raw, 2, NETDAM_STATUS_LOCAL_PERMISSION);
        unit_expect_silence(&u);

        /* From another address of this host, or another port, it is some program's packet. */
        bytes = make_udp(family, 7, 2, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
        memcpy(frame, other, 6);
        memcpy(frame + 6, own, 6);
        send(bytes, 3);
        unit_expect_completion(&raw, 3, NETDAM_STATUS_OK);
        expect_wire(bytes);
        bytes = make_udp(family, 1, 2, NETDAM_UDP_PORT + u.fw->config.paths, NETDAM_UDP_PORT);
        memcpy(frame, other, 6);
        memcpy(frame + 6, own, 6);
        send(bytes, 4);
        unit_expect_completion(&raw, 4, NETDAM_STATUS_OK);
        expect_wire(bytes);
    }

    /* The first of several parts has the ports of the whole; of the others nobody makes a packet. */
    for (unsigned fragment = 0x2000; fragment != 0; fragment = fragment == 0x2000 ? 1 : 0) {
        bytes = make_udp(4, 1, 2, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
        memcpy(frame, other, 6);
        memcpy(frame + 6, own, 6);
        unit_put16(frame + 20, fragment);
        send(bytes, 11);
        if (fragment == 0x2000) {
            unit_expect_completion(&raw, 11, NETDAM_STATUS_LOCAL_PERMISSION);
            unit_expect_silence(&u);
        } else {
            unit_expect_completion(&raw, 11, NETDAM_STATUS_OK);
            expect_wire(bytes);
        }
    }

    /* With options the ports lie further back; a cut header has none. */
    make(other, own, 0x0800, 100);
    memset(frame + 14, 0, 64);
    frame[14] = 0x4f;
    frame[23] = 17;
    memcpy(frame + 26, "\x0a\x00\x00\x01", 4);
    unit_put16(frame + 74, NETDAM_UDP_PORT);
    send(78, 5);
    unit_expect_completion(&raw, 5, NETDAM_STATUS_LOCAL_PERMISSION);
    send(77, 6);
    unit_expect_completion(&raw, 6, NETDAM_STATUS_OK);
    expect_wire(77);

    /* A pair that is told everything may be a bridge, and speak for others; not for groups, and not for the card. */
    assert_int_equal(ndtest_queue_create_raw(&bridge, &u.node, RINGS + 0x2000, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(bridge.id, NETDAM_STEERING_PROMISCUOUS, 0), NETDAM_ADMIN_STATUS_OK);
    make(other, other, 0x88b5, 60);
    send(60, 10);
    unit_expect_completion(&raw, 10, NETDAM_STATUS_LOCAL_PERMISSION); /* not this one */
    assert_int_equal(ndtest_queue_destroy(&bridge, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_PROMISCUOUS, 0), NETDAM_ADMIN_STATUS_OK);
    make(other, other, 0x88b5, 60);
    send(60, 7);
    unit_expect_completion(&raw, 7, NETDAM_STATUS_OK);
    expect_wire(60);
    make(other, group, 0x88b5, 60);
    send(60, 8);
    unit_expect_completion(&raw, 8, NETDAM_STATUS_LOCAL_PERMISSION);
    bytes = make_udp(4, 1, 2, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
    send(bytes, 9);
    unit_expect_completion(&raw, 9, NETDAM_STATUS_LOCAL_PERMISSION);
    unit_expect_silence(&u);
    unit_stop(&u);
}

/* Software that changes a frame while it is sent: what was checked is what leaves. */
static void change_sender(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                          enum netdam_fw_access access)
{
    unsigned *looks = opaque;

    (void)bytes;
    if (offset >= DATA && offset < DATA + 200 && access == NETDAM_FW_ACCESS_READ && ++*looks == 2) {
        memset(node->memory + DATA + 6, 0xee, 6);
    }
}

static void what_is_sent_is_what_was_checked(void **state)
{
    static unsigned looks;

    (void)state;
    start(NULL);
    make(other, own, 0x88b5, 200);
    looks = 0;
    u.node.hooks.access = change_sender;
    u.node.hooks.opaque = &looks;
    memcpy(u.node.memory + DATA, frame, 200);
    unit_post(&u, &raw, &(struct netdam_descriptor){.length = 200});
    u.node.hooks.transmit_begin = NULL; /* the frame is kept by the node itself */
    u.node.hooks.transmit_end = NULL;
    unit_run(&u);
    assert_true(looks >= 2);
    assert_int_equal(u.node.memory[DATA + 6], 0xee);
    assert_memory_equal(u.node.transmit + 6, own, 6);
    unit_expect_completion(&raw, 0, NETDAM_STATUS_OK);
    u.node.hooks.opaque = &u;
    u.node.hooks.access = NULL;
    unit_stop(&u);
}

/* Where the port takes one frame at a time, NetDAM's and RAW frames alternate. */
static void a_full_port_serves_both_kinds_in_turn(void **state)
{
    struct ndtest_queue queue;
    unsigned raw_sent = 0, netdam_sent = 0;
    uint32_t peer;

    (void)state;
    start(NULL);
    unit_region(&u, 0x60000, 0x10000, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_queue(&u, &queue, 0x70000, 5);
    peer = unit_peer(&u, 4, UNIT_GENERATION);
    make(other, own, 0x88b5, 60);
    memcpy(u.node.memory + DATA, frame, 60);
    for (unsigned i = 0; i < 20; i++) {
        struct netdam_descriptor write = {
            .opcode = NETDAM_OP_WRITE, .peer = peer, .length = 64, .local_region = 2, .remote_key = 1};

        unit_post(&u, &raw, &(struct netdam_descriptor){.user_data = i, .length = 60});
        unit_post(&u, &queue, &write);
    }
    u.port_room = 0;
    unit_run(&u);
    assert_true(u.result.port_full && u.result.more);
    for (unsigned i = 0; i < 20; i++) {
        size_t bytes;

        u.port_room = 1;
        unit_run(&u);
        assert_int_equal(u.count, 1);
        (void)unit_sent_frame(&u, &bytes);
        *(bytes == 60 ? &raw_sent : &netdam_sent) += 1;
    }
    assert_int_equal(raw_sent, 10);
    assert_int_equal(netdam_sent, 10);
    for (unsigned i = 0; i < 10; i++) {
        unit_expect_completion(&raw, i, NETDAM_STATUS_OK);
    }
    unit_expect_no_completion(&raw);
    u.port_room = UINT32_MAX;
    unit_run(&u);
    unit_drop_sent(&u);
    assert_int_equal(ndtest_queue_ready(&raw), 10);
    unit_stop(&u);
}

static void a_run_has_an_end_however_much_is_posted(void **state)
{
    struct netdam_fw_run_result result;

    (void)state;
    start(NULL);
    make(other, own, 0x88b5, 1000);
    memcpy(u.node.memory + DATA, frame, 1000);
    for (unsigned i = 0; i < 32; i++) {
        unit_post(&u, &raw, &(struct netdam_descriptor){.user_data = i, .length = 1000});
    }
    u.node.ops->run(u.node.state, u.now_ns, 65536, &result);
    assert_int_equal(u.count, 16);
    assert_true(result.more);
    assert_false(result.port_full);
    assert_int_equal(result.work_bytes, 16 * (1000 + 64));
    u.node.ops->run(u.node.state, u.now_ns, 65536, &result);
    assert_int_equal(u.count, 32);
    while (result.more) {
        u.node.ops->run(u.node.state, u.now_ns, 65536, &result);
    }
    assert_true(u.node.ops->prepare_sleep(u.node.state));
    for (unsigned i = 0; i < 32; i++) {
        unit_expect_completion(&raw, i, NETDAM_STATUS_OK);
    }
    unit_post(&u, &raw, &(struct netdam_descriptor){.opcode = NETDAM_OP_CHAIN, .length = 1});
    assert_false(u.node.ops->prepare_sleep(u.node.state));
    unit_stop(&u);
}

/* However little the budget or the port allows at a time. */
static void queue_pairs_take_turns(void **state)
{
    struct ndtest_queue pairs[2];
    struct netdam_fw_run_result result = {.more = true};

    (void)state;
    for (unsigned way = 0; way < 2; way++) {
        start(NULL);
        make(other, own, 0x88b5, 1000);
        memcpy(u.node.memory + DATA, frame, 1000);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(ndtest_queue_create_raw(&pairs[i], &u.node, RINGS + (i + 1) * 0x2000, LOG2, u.now_ns),
                             NETDAM_ADMIN_STATUS_OK);
            for (unsigned k = 0; k < 8; k++) {
                unit_post(&u, &pairs[i], &(struct netdam_descriptor){.user_data = k, .length = 1000});
            }
        }
        for (unsigned n = 1; n <= 16; n++) {
            u.port_room = way == 0 ? 1 : UINT32_MAX;
            u.node.ops->run(u.node.state, u.now_ns, way == 0 ? 1u << 20 : 100, &result);
            assert_true(result.more || n == 16);
            assert_int_equal(u.count, n);
            assert_int_equal(ndtest_queue_taken(&pairs[0]), (n + 1) / 2);
            assert_int_equal(ndtest_queue_taken(&pairs[1]), n / 2);
        }
        unit_stop(&u);
    }
}

static void destroying_and_stopping_flush_frames_and_buffers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        start(NULL);
        make(other, own, 0x88b5, 60);
        u.port_room = 0;
        send(60, 1);
        assert_true(u.result.port_full && u.result.more);
        post_buffers(2, 1, 100);
        if (i == 0) {
            assert_int_equal(ndtest_queue_destroy(&raw, u.now_ns), NETDAM_ADMIN_STATUS_OK);
        } else {
            ndtest_node_stop(&u.node, u.now_ns);
        }
        unit_expect_completion(&raw, 1, NETDAM_STATUS_FLUSHED);
        unit_expect_completion(&raw, 2, NETDAM_STATUS_FLUSHED);
        unit_expect_no_completion(&raw);
        unit_expect_silence(&u);
        unit_stop(&u);
    }
}

static void rings_that_lie_stop_the_pair(void **state)
{
    struct netdam_ring *sq;

    (void)state;
    start(NULL);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    post_buffers(0, 1, 100);
    sq = (struct netdam_ring *)(void *)(u.node.memory + RINGS);
    sq->producer = 33;
    unit_run(&u);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RING_ERRORS), 1);
    make(own, other, 0x88b5, 60);
    unit_receive(&u, frame, 60);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED), 1);
    unit_expect_no_completion(&raw);
    unit_post(&u, &raw, &(struct netdam_descriptor){.length = 60});
    unit_run(&u);
    unit_expect_no_completion(&raw);
    unit_stop(&u);
}

static void a_port_for_netdam_alone_has_no_raw_queue_pairs(void **state)
{
    struct netdam_fw_config config = unit_config(0);

    (void)state;
    config.no_raw = 1;
    unit_start(&u, 0, &config);
    assert_int_equal(ndtest_queue_create_raw(&raw, &u.node, RINGS, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_UNSUPPORTED);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_of_any_length_up_to_the_mtu_goes_out_as_it_is),
        cmocka_unit_test(a_frame_may_be_gathered_from_pieces),
        cmocka_unit_test(a_descriptor_that_is_no_frame_is_refused),
        cmocka_unit_test(frames_in_another_name_are_not_sent),
        cmocka_unit_test(what_is_sent_is_what_was_checked),
        cmocka_unit_test(a_full_port_serves_both_kinds_in_turn),
        cmocka_unit_test(a_run_has_an_end_however_much_is_posted),
        cmocka_unit_test(queue_pairs_take_turns),
        cmocka_unit_test(destroying_and_stopping_flush_frames_and_buffers),
        cmocka_unit_test(rings_that_lie_stop_the_pair),
        cmocka_unit_test(a_port_for_netdam_alone_has_no_raw_queue_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
