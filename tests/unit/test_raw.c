/* SPDX-License-Identifier: BSD-3-Clause */
/* RAW queue pairs: which frames they get and which they may send, buffers, the port's room, and NetDAM beside them. */
#include "unit.h"

#define RINGS UINT64_C(0x8000)
#define DATA  UINT64_C(0x20000) /* frames to send: region 0 */
#define ROOM  UINT64_C(0x40000) /* frames received: region 1 */
#define LOG2  5u

static struct unit u;
static struct ndtest_queue raw;
static uint8_t frame[UNIT_FRAME_ROOM];

static const uint8_t own[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};

static enum netdam_admin_status steer(uint64_t queue, uint64_t rule, uint64_t value)
{
    uint64_t args[] = {queue, rule, value}, results[NETDAM_ADMIN_RESULTS];

    return unit_admin(&u, NETDAM_ADMIN_STEERING_SET, args, 3, results);
}

static void start(const struct netdam_fw_config *config)
{
    unit_start(&u, 0, config);
    unit_region(&u, DATA, 0x10000, NETDAM_PERMISSION_LOCAL_READ, 0);
    unit_region(&u, ROOM, 0x20000, NETDAM_PERMISSION_LOCAL_WRITE, 0);
    assert_int_equal(ndtest_queue_create_raw(&raw, &u.node, RINGS, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_OK);
}

/* Buffers of `bytes`, 0x2800 apart; their user data counts from `first` on. */
static void post_buffers(unsigned first, unsigned count, uint32_t bytes)
{
    for (unsigned i = first; i < first + count; i++) {
        struct netdam_descriptor d = {
            .user_data = i, .length = bytes, .local_region = 1, .u.buffer.local_address = (i % 8) * 0x2800};

        assert_true(ndtest_queue_post_receive(&raw, &d));
    }
}

/* A frame of `bytes` whose first 14 say to and from whom; the rest is a pattern. */
static void make(const uint8_t *to, const uint8_t *from, unsigned type, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        frame[i] = (uint8_t)(i * 5 + 3);
    }
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    unit_put16(frame + 12, type);
}

/* A UDP packet over IP of `family`, whose addresses end with `from` and `to`. */
static size_t make_udp(unsigned family, unsigned from, unsigned to, unsigned from_port, unsigned to_port)
{
    struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = family};
    size_t bytes = unit_request_frame(frame, 1, &r);
    size_t at = family == 6 ? 54 : 34;

    frame[at - (family == 6 ? 17 : 5)] = (uint8_t)from;
    frame[at - 1] = (uint8_t)to;
    unit_put16(frame + at, from_port);
    unit_put16(frame + at + 2, to_port);
    ndtest_frame_repair(frame, bytes, false);
    if (family == 4) { /* which leaves alone what is not for the NetDAM port */
        uint32_t sum = 0;

        frame[24] = frame[25] = 0;
        for (size_t k = 14; k < 34; k += 2) {
            sum += (uint32_t)frame[k] << 8 | frame[k + 1];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        unit_put16(frame + 24, ~sum & 0xffff);
        unit_put16(frame + 40, 0);
    }
    return bytes;
}

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

static void post_frame(const struct netdam_descriptor *d, size_t bytes)
{
    memcpy(u.node.memory + DATA + d->u.buffer.local_address, frame, bytes);
    unit_post(&u, &raw, d);
}

static void send(size_t bytes, uint64_t user_data)
{
    struct netdam_descriptor d = {.user_data = user_data, .length = (uint32_t)bytes};

    post_frame(&d, bytes);
    unit_run(&u);
}

static void expect_wire(size_t bytes)
{
    size_t sent;
    const uint8_t *got = unit_sent_frame(&u, &sent);

    assert_non_null(got);
    assert_int_equal(sent, bytes);
    assert_memory_equal(got, frame, bytes);
}

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

static void a_port_for_netdam_alone_has_no_raw_queue_pairs(void **state)
{
    struct netdam_fw_config config = unit_config(0);

    (void)state;
    config.no_raw = 1;
    unit_start(&u, 0, &config);
    assert_int_equal(ndtest_queue_create_raw(&raw, &u.node, RINGS, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_UNSUPPORTED);
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
        cmocka_unit_test(a_frame_of_any_length_up_to_the_mtu_goes_out_as_it_is),
        cmocka_unit_test(a_frame_may_be_gathered_from_pieces),
        cmocka_unit_test(a_descriptor_that_is_no_frame_is_refused),
        cmocka_unit_test(frames_in_another_name_are_not_sent),
        cmocka_unit_test(what_is_sent_is_what_was_checked),
        cmocka_unit_test(the_first_rule_in_the_order_of_kinds_takes_a_frame),
        cmocka_unit_test(without_a_rule_or_a_buffer_a_frame_is_dropped_and_counted),
        cmocka_unit_test(a_frame_needs_room_for_its_completion),
        cmocka_unit_test(netdam_frames_stay_with_the_device),
        cmocka_unit_test(address_resolution_reaches_device_and_host),
        cmocka_unit_test(an_unusable_buffer_completes_and_the_next_one_is_filled),
        cmocka_unit_test(a_full_port_serves_both_kinds_in_turn),
        cmocka_unit_test(a_run_has_an_end_however_much_is_posted),
        cmocka_unit_test(queue_pairs_take_turns),
        cmocka_unit_test(destroying_and_stopping_flush_frames_and_buffers),
        cmocka_unit_test(rings_that_lie_stop_the_pair),
        cmocka_unit_test(steering_is_refused_where_it_makes_no_sense),
        cmocka_unit_test(a_port_for_netdam_alone_has_no_raw_queue_pairs),
        cmocka_unit_test(frames_cut_short_are_steered_by_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
