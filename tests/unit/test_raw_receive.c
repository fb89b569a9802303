/* SPDX-License-Identifier: BSD-3-Clause */
/* What RAW queue pairs receive: which frames, into which buffers, and NetDAM beside them. */
#include "raw.h"

static void expect_received(unsigned user_data, size_t bytes)
{
    struct netdam_completion c = unit_completion(&raw);

    assert_int_equal(c.user_data, user_data);
    assert_int_equal(c.status, NETDAM_STATUS_OK);
    assert_int_equal(c.length, bytes);
    assert_int_equal(c.opcode, 0);
    assert_int_equal(c.flags, NETDAM_COMPLETION_RECEIVE);
    assert_memory_equal(u.node.memory + ROOM + (user_data % 8) * 0x2800, frame, bytes);
}

static void the_first_rule_in_the_order_of_kinds_takes_a_frame(void **state)
{
    struct ndtest_queue more[3];
    size_t bytes;

    (void)state;
    start(NULL);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ndtest_queue_create_raw(&more[i], &u.node, RINGS + (i + 1) * 0x2000, LOG2, u.now_ns),
                         NETDAM_ADMIN_STATUS_OK);
        for (unsigned k = 0; k < 8; k++) {
            struct netdam_descriptor d = {.user_data = k, .length = 2000, .local_region = 1};

            assert_true(ndtest_queue_post_receive(&more[i], &d));
        }
    }
    post_buffers(0, 8, 2000);
    /* In the opposite order of what counts. */
    assert_int_equal(steer(raw.id, NETDAM_STEERING_PROMISCUOUS, 0), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(more[0].id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(more[1].id, NETDAM_STEERING_UDP_PORT, 53), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(more[2].id, NETDAM_STEERING_ETHERTYPE, 0x86dd), NETDAM_ADMIN_STATUS_OK);

    for (unsigned family = 4; family <= 6; family += 2) {
        bytes = make_udp(family, 9, 1, 5000, 53);
        unit_receive(&u, frame, bytes);
        unit_expect_completion(family == 6 ? &more[2] : &more[1], 0, NETDAM_STATUS_OK);
    }
    bytes = make_udp(4, 9, 1, 53, 54);
    unit_receive(&u, frame, bytes);
    unit_expect_completion(&more[0], 0, NETDAM_STATUS_OK);
    bytes = make_udp(4, 9, 1, 5000, 53);
    frame[21] = 1; /* a fragment has no ports */
    frame[25]--;
    unit_receive(&u, frame, bytes);
    unit_expect_completion(&more[0], 1, NETDAM_STATUS_OK);
    make((const uint8_t *)"\xff\xff\xff\xff\xff\xff", other, 0x88b5, 60);
    unit_receive(&u, frame, 60);
    unit_expect_completion(&more[0], 2, NETDAM_STATUS_OK);
    make((const uint8_t *)"\x01\x00\x5e\x00\x00\x01", other, 0x0026, 60);
    unit_receive(&u, frame, 60);
    unit_expect_completion(&more[0], 3, NETDAM_STATUS_OK);
    make((const uint8_t *)"\x02\x00\x00\x00\x00\x77", other, 0x86dd, 60);
    unit_receive(&u, frame, 60);
    expect_received(0, 60);
    for (unsigned i = 0; i < 3; i++) {
        unit_expect_no_completion(&more[i]);
    }

    /* A rule goes with its queue pair, and what it took goes where the next one says. */
    assert_int_equal(ndtest_queue_destroy(&more[1], u.now_ns), NETDAM_ADMIN_STATUS_OK);
    bytes = make_udp(4, 9, 1, 5000, 53);
    unit_receive(&u, frame, bytes);
    unit_expect_completion(&more[0], 4, NETDAM_STATUS_OK);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_UDP_PORT, 53), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 0);
    unit_stop(&u);
}

static void without_a_rule_or_a_buffer_a_frame_is_dropped_and_counted(void **state)
{
    (void)state;
    start(NULL);
    make(own, other, 0x88b5, 100);
    unit_receive(&u, frame, 100);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 1);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    unit_receive(&u, frame, 100);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED), 1);
    post_buffers(0, 1, 99);
    unit_receive(&u, frame, 100); /* too short, and is kept for one that fits */
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED), 2);
    unit_expect_no_completion(&raw);
    unit_receive(&u, frame, 99);
    expect_received(0, 99);
    make((const uint8_t *)"\x02\x00\x00\x00\x00\x77", other, 0x88b5, 60);
    unit_receive(&u, frame, 60); /* another card's */
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_RECEIVED), 1);
    unit_stop(&u);
}

static void a_frame_needs_room_for_its_completion(void **state)
{
    (void)state;
    start(NULL);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    make(own, other, 0x88b5, 60);
    for (unsigned i = 0; i < 32; i++) {
        post_buffers(i, 1, 100);
        unit_receive(&u, frame, 60);
    }
    post_buffers(32, 1, 100);
    unit_receive(&u, frame, 60);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED), 1);
    /* What is sent waits for room too, and is looked at again by and by. */
    make(other, own, 0x88b5, 60);
    send(60, 77);
    unit_expect_silence(&u);
    assert_true(u.result.next_ns <= u.now_ns + UNIT_MS);
    for (unsigned i = 0; i < 32; i++) {
        unit_expect_completion(&raw, i, NETDAM_STATUS_OK);
    }
    unit_run_for(&u, UNIT_MS);
    expect_wire(60);
    unit_expect_completion(&raw, 77, NETDAM_STATUS_OK);
    unit_stop(&u);
}

/* NetDAM's own frames, whatever is wrong with them, pings to the card, and what the card cannot check. */
static void netdam_frames_stay_with_the_device(void **state)
{
    struct unit_request r = {.opcode = NETDAM_OP_ECHO};
    struct ndtest_packet answer;
    size_t bytes;

    (void)state;
    start(NULL);
    post_buffers(0, 8, 2000);
    for (unsigned kind = NETDAM_STEERING_ETHERTYPE; kind <= NETDAM_STEERING_PROMISCUOUS; kind++) {
        uint64_t value = kind == NETDAM_STEERING_ETHERTYPE ? 0x0800 : kind == NETDAM_STEERING_UDP_PORT ? 20036 : 0;

        assert_int_equal(steer(raw.id, kind, value), NETDAM_ADMIN_STATUS_OK);
    }
    unit_ask(&u, &r, &answer);
    r.family = 6;
    unit_request(&u, &r);
    assert_int_equal(u.count, 1);
    unit_drop_sent(&u);
    r.family = 4;
    bytes = unit_request_frame(frame, 1, &r);
    frame[60] ^= 1; /* a wrong CRC */
    unit_receive(&u, frame, bytes);
    frame[60] ^= 1;
    unit_receive(&u, frame, bytes - 30); /* cut */
    frame[26] = 224;                     /* from a group */
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&u, frame, bytes);
    memcpy(frame, "\xff\xff\xff\xff\xff\xff", 6); /* by broadcast */
    unit_receive(&u, frame, bytes);
    bytes = make_udp(6, 2, 1, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
    frame[22] = 0xff;
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&u, frame, bytes);
    bytes = make_udp(4, 2, 1, NETDAM_UDP_PORT, NETDAM_UDP_PORT + 1);
    frame[43] = NETDAM_KIND_RESPONSE; /* an answer to a request that went out by another path */
    unit_receive(&u, frame, bytes);
    unit_expect_no_completion(&raw);
    unit_expect_silence(&u);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 3);

    /* For another address it is somebody else's packet. */
    bytes = make_udp(4, 2, 9, NETDAM_UDP_PORT, NETDAM_UDP_PORT);
    unit_receive(&u, frame, bytes);
    expect_received(0, bytes);
    unit_stop(&u);
}

static size_t make_arp(unsigned operation, unsigned target)
{
    make((const uint8_t *)"\xff\xff\xff\xff\xff\xff", other, 0x0806, 42);
    memcpy(frame + 14, "\x00\x01\x08\x00\x06\x04", 6);
    unit_put16(frame + 20, operation);
    memcpy(frame + 22, other, 6);
    memcpy(frame + 28, "\x0a\x00\x00\x02", 4);
    memset(frame + 32, 0, 6);
    memcpy(frame + 38, "\x0a\x00\x00", 3);
    frame[41] = (uint8_t)target;
    return 42;
}

static void address_resolution_reaches_device_and_host(void **state)
{
    size_t bytes;

    (void)state;
    start(NULL);
    post_buffers(0, 8, 2000);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    bytes = make_arp(1, 1); /* the card answers, and the host knows who asked */
    unit_receive(&u, frame, bytes);
    assert_int_equal(u.count, 1);
    unit_drop_sent(&u);
    expect_received(0, 42);
    bytes = make_arp(1, 9); /* the host's other address */
    unit_receive(&u, frame, bytes);
    unit_expect_silence(&u);
    expect_received(1, 42);
    bytes = make_arp(2, 9);
    unit_receive(&u, frame, bytes);
    expect_received(2, 42);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 0);
    assert_int_equal(ndtest_queue_destroy(&raw, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    unit_receive(&u, frame, bytes); /* not counted: the device has dealt with it */
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RX_OTHER), 0);
    unit_stop(&u);
}

static void an_unusable_buffer_completes_and_the_next_one_is_filled(void **state)
{
    struct netdam_descriptor d = {.user_data = 50, .length = 100, .local_region = 0};

    (void)state;
    start(NULL);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_OK);
    assert_true(ndtest_queue_post_receive(&raw, &d)); /* region 0 is not writable */
    post_buffers(0, 1, 100);
    make(own, other, 0x88b5, 60);
    unit_receive(&u, frame, 60);
    unit_expect_completion(&raw, 50, NETDAM_STATUS_LOCAL_PERMISSION);
    expect_received(0, 60);
    unit_stop(&u);
}

static void steering_is_refused_where_it_makes_no_sense(void **state)
{
    struct ndtest_queue netdam;
    uint64_t deaf[] = {0x70000, 4, 0x71000, 4, 0, 0, NETDAM_QUEUE_RAW | 0xffff0000u, 0};
    uint64_t region[] = {ROOM, 0x100, NETDAM_PERMISSION_ALL, 0, 0, 1};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    start(NULL);
    assert_int_equal(ndtest_queue_create_receiving(&netdam, &u.node, 0x60000, 4, 0x62000, 4, 0x64000, 4, 0, u.now_ns),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, deaf, 8, results), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(results[1], 0);
    assert_int_equal(raw.receive_key, 0);
    assert_int_equal(steer(results[0], NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(netdam.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(3, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(steer(UINT64_C(1) << 32, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(steer(raw.id, 4, 0), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, UINT64_C(1) << 32, 0), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_ETHERTYPE, 0x5ff), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_ETHERTYPE, 0x10800), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_UDP_PORT, 0), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 1), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_PROMISCUOUS, 1), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    /* Immediates would come as if they were frames. */
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_CREATE, region, 6, results), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);

    for (unsigned i = 0; i < NETDAM_STEERING_RULES; i++) {
        assert_int_equal(steer(raw.id, NETDAM_STEERING_UDP_PORT, 1 + i), NETDAM_ADMIN_STATUS_OK);
    }
    assert_int_equal(steer(raw.id, NETDAM_STEERING_UDP_PORT, 1), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_DEFAULT, 0), NETDAM_ADMIN_STATUS_NO_SPACE);
    assert_int_equal(ndtest_queue_create_raw(&netdam, &u.node, 0x80000, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(steer(netdam.id, NETDAM_STEERING_UDP_PORT, 1), NETDAM_ADMIN_STATUS_EXISTS);
    unit_stop(&u);
}

/* Cut anywhere, a frame is read no further than it goes: the sanitizers look on. */
static void frames_cut_short_are_steered_by_what_is_there(void **state)
{
    (void)state;
    start(NULL);
    assert_int_equal(steer(raw.id, NETDAM_STEERING_UDP_PORT, 53), NETDAM_ADMIN_STATUS_OK);
    for (unsigned family = 4; family <= 6; family += 2) {
        size_t bytes = make_udp(family, 2, 9, 5000, 53);
        uint64_t dropped = unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED);

        memcpy(frame, "\xff\xff\xff\xff\xff\xff", 6);
        for (size_t cut = 0; cut <= bytes; cut++) {
            unit_receive(&u, frame, cut);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RAW_DROPPED),
                         dropped + 1); /* cut ones contradict themselves */
    }
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_in_the_order_of_kinds_takes_a_frame),
        cmocka_unit_test(without_a_rule_or_a_buffer_a_frame_is_dropped_and_counted),
        cmocka_unit_test(a_frame_needs_room_for_its_completion),
        cmocka_unit_test(netdam_frames_stay_with_the_device),
        cmocka_unit_test(address_resolution_reaches_device_and_host),
        cmocka_unit_test(an_unusable_buffer_completes_and_the_next_one_is_filled),
        cmocka_unit_test(steering_is_refused_where_it_makes_no_sense),
        cmocka_unit_test(frames_cut_short_are_steered_by_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
