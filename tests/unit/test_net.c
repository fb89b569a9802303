/* SPDX-License-Identifier: BSD-3-Clause */
/* Below NetDAM: whose frames are looked at, ARP, ping, neighbours, gateway, and frames to oneself. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b;

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t own_ip[4] = {10, 0, 0, 1};
static const uint8_t other_ip[4] = {10, 0, 0, 2};
static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* An ARP frame of 42 bytes. */
static void arp(uint8_t *frame, const uint8_t *to, unsigned operation, const uint8_t *mac, const uint8_t *ip,
                const uint8_t *target)
{
    static const uint8_t fixed[10] = {0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 0};

    memset(frame, 0, 60);
    memcpy(frame, to, 6);
    memcpy(frame + 6, mac, 6);
    memcpy(frame + 12, fixed, 10);
    frame[21] = (uint8_t)operation;
    memcpy(frame + 22, mac, 6);
    memcpy(frame + 28, ip, 4);
    memcpy(frame + 38, target, 4);
}

static void arp_requests_for_the_own_address_are_answered(void **state)
{
    uint8_t frame[60];
    static const size_t lengths[] = {42, 60}; /* bare, and padded as Ethernet does */

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *sent;
        size_t bytes;

        arp(frame, i == 0 ? everybody : own_mac, 1, other_mac, other_ip, own_ip);
        unit_receive(&b.u, frame, lengths[i]);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_int_equal(bytes, 42);
        assert_memory_equal(sent, other_mac, 6);
        assert_memory_equal(sent + 6, own_mac, 6);
        assert_memory_equal(sent + 12, frame + 12, 9);
        assert_int_equal(sent[21], 2);
        assert_memory_equal(sent + 22, own_mac, 6);
        assert_memory_equal(sent + 28, own_ip, 4);
        assert_memory_equal(sent + 32, other_mac, 6);
        assert_memory_equal(sent + 38, other_ip, 4);
        unit_expect_silence(&b.u);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ARP_REQUESTS), 2);
    /* Asked through a bridge: the answer goes to who asks, not to who passed it on. */
    arp(frame, everybody, 1, other_mac, other_ip, own_ip);
    frame[11] = 0x77;
    unit_receive(&b.u, frame, 42);
    {
        size_t bytes;
        const uint8_t *sent = unit_sent_frame(&b.u, &bytes);

        assert_non_null(sent);
        assert_memory_equal(sent, other_mac, 6);
        assert_memory_equal(sent + 32, other_mac, 6);
    }
    unit_stop(&b.u);
}

static void other_arp_frames_are_not_answered(void **state)
{
    uint8_t frame[60];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    arp(frame, everybody, 1, other_mac, other_ip, other_ip); /* for somebody else */
    unit_receive(&b.u, frame, 42);
    arp(frame, own_mac, 2, other_mac, other_ip, own_ip); /* a reply */
    unit_receive(&b.u, frame, 42);
    arp(frame, everybody, 3, other_mac, other_ip, own_ip); /* RARP */
    unit_receive(&b.u, frame, 42);
    for (size_t at = 14; at < 20; at++) { /* not Ethernet, not IPv4, other address lengths */
        arp(frame, everybody, 1, other_mac, other_ip, own_ip);
        frame[at] ^= 1;
        unit_receive(&b.u, frame, 42);
    }
    for (size_t bytes = 0; bytes < 42; bytes++) {
        arp(frame, everybody, 1, other_mac, other_ip, own_ip);
        unit_receive(&b.u, frame, bytes);
    }
    arp(frame, other_mac, 1, other_mac, other_ip, own_ip); /* to another MAC */
    unit_receive(&b.u, frame, 42);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ARP_REQUESTS), 0);
    unit_stop(&b.u);
}

static unsigned neighbours_known(void)
{
    unsigned known = 0;

    for (uint32_t i = 0; i < b.u.fw->config.neighbours; i++) {
        known += b.u.fw->neighbours[i].state != NDFW_NEIGHBOUR_FREE;
    }
    return known;
}

static uint32_t open_peer(uint32_t ip)
{
    uint64_t args[] = {ip, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16}, results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    b.u.fw->peers[results[0]].generation = GENERATION;
    return (uint32_t)results[0];
}

static void gossip_does_not_fill_the_table(void **state)
{
    uint8_t frame[60];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(neighbours_known(), 1); /* the static one */
    for (unsigned i = 3; i < 250; i++) {
        const uint8_t ip[4] = {10, 0, 0, (uint8_t)i}, mac[6] = {2, 9, 9, 9, 9, (uint8_t)i};

        arp(frame, own_mac, 1 + i % 2, mac, ip, own_ip);
        unit_receive(&b.u, frame, 42);
        arp(frame, everybody, 2, mac, ip, ip);
        unit_receive(&b.u, frame, 42);
    }
    assert_int_equal(neighbours_known(), 1);
    unit_stop(&b.u);
}

static void who_is_talked_to_is_learnt_but_no_bad_address(void **state)
{
    static const uint8_t mac[6] = {2, 7, 7, 7, 7, 7}, group[6] = {3, 7, 7, 7, 7, 7}, third[4] = {10, 0, 0, 3};
    uint8_t frame[60];
    uint32_t peer;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    peer = open_peer(0x0a000003);
    assert_false(b.u.fw->peers[peer].resolved);
    arp(frame, own_mac, 2, group, third, own_ip); /* a group address is nobody's */
    unit_receive(&b.u, frame, 42);
    assert_false(b.u.fw->peers[peer].resolved);
    arp(frame, own_mac, 2, mac, own_ip, own_ip); /* somebody claims to be us */
    unit_receive(&b.u, frame, 42);
    assert_int_equal(neighbours_known(), 1);
    arp(frame, everybody, 1, mac, third, other_ip); /* it asks for somebody else: heard all the same */
    unit_receive(&b.u, frame, 42);
    assert_true(b.u.fw->peers[peer].resolved);
    assert_memory_equal(b.u.fw->peers[peer].endpoint.mac, mac, 6);
    /* It moves. */
    arp(frame, own_mac, 2, other_mac, third, own_ip);
    unit_receive(&b.u, frame, 42);
    assert_memory_equal(b.u.fw->peers[peer].endpoint.mac, other_mac, 6);
    unit_stop(&b.u);
}

static void what_was_set_is_not_overwritten_by_what_is_heard(void **state)
{
    static const uint8_t mac[6] = {2, 7, 7, 7, 7, 7};
    uint8_t frame[60];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    arp(frame, own_mac, 2, mac, other_ip, own_ip);
    unit_receive(&b.u, frame, 42);
    assert_memory_equal(b.u.fw->peers[b.peer].endpoint.mac, other_mac, 6);
    unit_stop(&b.u);
}

/* Expects an ARP request for `ip`. */
static void expect_solicitation(const uint8_t *ip)
{
    size_t bytes;
    const uint8_t *sent = unit_sent_frame(&b.u, &bytes);

    assert_non_null(sent);
    assert_int_equal(bytes, 42);
    assert_memory_equal(sent, everybody, 6);
    assert_int_equal(sent[12] << 8 | sent[13], 0x0806);
    assert_int_equal(sent[21], 1);
    assert_memory_equal(sent + 22, own_mac, 6);
    assert_memory_equal(sent + 28, own_ip, 4);
    assert_memory_equal(sent + 38, ip, 4);
}

static void an_unknown_peer_is_asked_for_and_then_sent_to(void **state)
{
    static const uint8_t mac[6] = {2, 7, 7, 7, 7, 7}, third[4] = {10, 0, 0, 3};
    uint8_t frame[60];
    const uint8_t *sent;
    size_t bytes;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.peer = open_peer(0x0a000003);
    bench_write(&b, 8, 1);
    expect_solicitation(third);
    unit_expect_silence(&b.u);
    arp(frame, own_mac, 2, mac, third, own_ip);
    unit_receive(&b.u, frame, 60);
    unit_run(&b.u);
    sent = unit_sent_frame(&b.u, &bytes);
    assert_non_null(sent);
    assert_memory_equal(sent, mac, 6);
    assert_memory_equal(sent + 30, third, 4);
    unit_stop(&b.u);
}

/* First contact asks for the generation as soon as the address is there, not when the timer of the asking runs out. */
static void an_answer_to_asking_lets_first_contact_go_on_at_once(void **state)
{
    static const uint8_t mac[6] = {2, 7, 7, 7, 7, 7}, third[4] = {10, 0, 0, 3};
    uint8_t frame[60];
    size_t bytes;
    const uint8_t *sent;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    b.peer = open_peer(0x0a000003);
    b.u.fw->peers[b.peer].generation = 0;
    bench_write(&b, 8, 1);
    expect_solicitation(third);
    arp(frame, own_mac, 2, mac, third, own_ip);
    unit_receive(&b.u, frame, 60);
    unit_run(&b.u);
    sent = unit_sent_frame(&b.u, &bytes);
    assert_non_null(sent);
    assert_memory_equal(sent, mac, 6);
    assert_int_equal(sent[14 + 20 + 8 + 32], NETDAM_OP_CONFIRM);
    unit_stop(&b.u);
}

static void an_unknown_peer_that_does_not_answer_is_unreachable(void **state)
{
    static const uint8_t third[4] = {10, 0, 0, 3};

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.peer = open_peer(0x0a000003);
    bench_write(&b, 8, 1);
    bench_write(&b, 8, 2);
    unit_run_for(&b.u, 1000 * UNIT_MS);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_UNREACHABLE);
    unit_expect_completion(&b.queue, 2, NETDAM_STATUS_UNREACHABLE);
    assert_int_equal(b.u.count, 6);
    while (b.u.count != 0) {
        expect_solicitation(third);
    }
    assert_true(b.u.result.next_ns == NETDAM_FW_NEVER);
    unit_stop(&b.u);
}

static void whoever_lies_outside_the_prefix_is_reached_through_the_gateway(void **state)
{
    static const uint8_t gateway[4] = {10, 0, 0, 254}, gateway_mac[6] = {2, 0, 0, 0, 0, 0xfe};
    static const struct {
        uint32_t ip;
        uint8_t prefix;
        bool far;
    } rows[] = {
        {0x0a000003, 24, false}, {0x0a000103, 24, true},  {0x0a000103, 16, false}, {0x0b000001, 8, true},
        {0x0a00ff03, 8, false},  {0x0a000003, 31, true},  {0x0a000003, 32, true},  {0x08080808, 24, true},
        {0x0a000080, 25, true},  {0x0a00007f, 25, false}, {0x8a000001, 1, true},   {0x7a000001, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_fw_config config = bench_config();
        const uint8_t ip[4] = {(uint8_t)(rows[i].ip >> 24), (uint8_t)(rows[i].ip >> 16), (uint8_t)(rows[i].ip >> 8),
                               (uint8_t)rows[i].ip};
        uint8_t frame[60];
        const uint8_t *sent;
        size_t bytes;

        memcpy(config.ipv4_gateway, gateway, 4);
        config.ipv4_prefix = rows[i].prefix;
        bench_start(&b, &config, 4, GENERATION);
        b.peer = open_peer(rows[i].ip);
        bench_write(&b, 8, 1);
        expect_solicitation(rows[i].far ? gateway : ip);
        arp(frame, own_mac, 2, gateway_mac, rows[i].far ? gateway : ip, own_ip);
        unit_receive(&b.u, frame, 42);
        unit_run(&b.u);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_memory_equal(sent, gateway_mac, 6);
        assert_memory_equal(sent + 30, ip, 4); /* the destination is the peer's all the same */
        unit_stop(&b.u);
    }
}

static void a_static_neighbour_spares_asking(void **state)
{
    uint64_t args[] = {0x0a000003, 0, 4, UINT64_C(0x020706050403)};
    const uint8_t *sent;
    size_t bytes;

    (void)state;
    for (unsigned before = 0; before < 2; before++) {
        bench_start(&b, NULL, 4, GENERATION);
        if (before) {
            assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        }
        b.peer = open_peer(0x0a000003);
        if (!before) {
            assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        }
        bench_write(&b, 8, 1);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_memory_equal(sent, "\x02\x07\x06\x05\x04\x03", 6);
        unit_stop(&b.u);
    }
}

static void a_full_table_of_neighbours_forgets_no_packet_under_way(void **state)
{
    static const uint8_t third[4] = {10, 0, 0, 3}, fourth[4] = {10, 0, 0, 4};
    struct netdam_fw_config config = bench_config();
    struct ndtest_packet p;
    uint8_t frame[60];
    uint32_t first, second;

    (void)state;
    config.neighbours = 2; /* one of them static */
    bench_start(&b, &config, 4, GENERATION);
    first = open_peer(0x0a000003);
    second = open_peer(0x0a000004);
    arp(frame, own_mac, 2, (const uint8_t *)"\x02\x03\x03\x03\x03\x03", third, own_ip);
    unit_receive(&b.u, frame, 42);
    b.peer = first;
    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p); /* and is lost */
    arp(frame, own_mac, 2, (const uint8_t *)"\x02\x04\x04\x04\x04\x04", fourth, own_ip);
    unit_receive(&b.u, frame, 42);
    unit_run(&b.u);
    assert_true(b.u.fw->peers[second].resolved);
    /* The first one's entry has made room. Its packet is sent again nevertheless, or given up in the end. */
    for (unsigned i = 0; i < 40 && ndtest_queue_ready(&b.queue) == 0; i++) {
        unit_run_for(&b.u, 50 * UNIT_MS);
    }
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_TIMEOUT);
    unit_stop(&b.u);
}

/* Frames that are for somebody else, or for nobody. */
static void only_frames_for_this_node_and_port_are_looked_at(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
        enum netdam_counter counter;
        bool v6;
    } rows[] = {
        {"another MAC", 5, 9, NETDAM_COUNTER_RX_OTHER, false},
        {"another EtherType", 13, 0x01, NETDAM_COUNTER_RX_OTHER, false},
        {"another IP", 33, 9, NETDAM_COUNTER_RX_OTHER, false},
        {"broadcast IP", 33, 255, NETDAM_COUNTER_RX_OTHER, false},
        {"TCP", 23, 6, NETDAM_COUNTER_RX_OTHER, false},
        {"more fragments", 20, 0x20, NETDAM_COUNTER_RX_OTHER, false},
        {"fragment offset", 21, 1, NETDAM_COUNTER_RX_OTHER, false},
        {"from nowhere", 26, 0, NETDAM_COUNTER_RX_OTHER, false},
        {"from multicast", 26, 224, NETDAM_COUNTER_RX_OTHER, false},
        {"from broadcast", 26, 255, NETDAM_COUNTER_RX_OTHER, false},
        {"another port", 37, 9, NETDAM_COUNTER_RX_OTHER, false},
        {"IP version 6", 14, 0x65, NETDAM_COUNTER_RX_MALFORMED, false},
        {"short IP header", 14, 0x44, NETDAM_COUNTER_RX_MALFORMED, false},
        {"IP longer than the frame", 16, 0xff, NETDAM_COUNTER_RX_MALFORMED, false},
        {"IP shorter than its header", 17, 19, NETDAM_COUNTER_RX_MALFORMED, false},
        {"UDP longer than IP", 39, 0xff, NETDAM_COUNTER_RX_MALFORMED, false},
        {"UDP shorter than IP", 39, 0x20, NETDAM_COUNTER_RX_MALFORMED, false},
        {"v6: another IP", 53, 9, NETDAM_COUNTER_RX_OTHER, true},
        {"v6: not UDP", 20, 6, NETDAM_COUNTER_RX_OTHER, true},
        {"v6: from multicast", 22, 0xff, NETDAM_COUNTER_RX_OTHER, true},
        {"v6: another port", 57, 9, NETDAM_COUNTER_RX_OTHER, true},
        {"v6: version 4", 14, 0x40, NETDAM_COUNTER_RX_MALFORMED, true},
        {"v6: longer than the frame", 18, 0xff, NETDAM_COUNTER_RX_MALFORMED, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = rows[i].v6 ? 6 : 4};
        uint8_t frame[UNIT_FRAME_ROOM];
        size_t bytes;
        uint64_t before;

        bench_start(&b, NULL, 4, GENERATION);
        bytes = unit_request_frame(frame, 1, &r);
        unit_receive(&b.u, frame, bytes); /* unchanged it is answered */
        assert_int_equal(b.u.count, 1);
        unit_drop_sent(&b.u);
        frame[rows[i].at] = rows[i].value;
        if (!rows[i].v6) { /* it is not the checksum that stops it */
            unit_repair_ipv4(frame);
        }
        before = unit_counter(&b.u, rows[i].counter);
        unit_receive(&b.u, frame, bytes);
        unit_expect_silence(&b.u);
        if (unit_counter(&b.u, rows[i].counter) != before + 1) {
            fail_msg("%s: not counted", rows[i].what);
        }
        unit_stop(&b.u);
    }
}

static void nobody_is_answered_whose_ipv6_address_is_unspecified(void **state)
{
    struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = 6};
    uint8_t frame[UNIT_FRAME_ROOM];
    size_t bytes;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bytes = unit_request_frame(frame, 1, &r);
    memset(frame + 22, 0, 16);
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&b.u, frame, bytes);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 1);
    frame[37] = 1; /* anybody else */
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&b.u, frame, bytes);
    assert_int_equal(b.u.count, 1);
    unit_stop(&b.u);
}

static void a_node_without_an_address_answers_nobody(void **state)
{
    static const uint8_t nobody[4] = {0};
    uint8_t frame[UNIT_FRAME_ROOM];

    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        struct netdam_fw_config config = bench_config();
        struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = family};
        size_t bytes = unit_request_frame(frame, 1, &r);

        memset(family == 6 ? config.ipv6 : config.ipv4, 0, family == 6 ? 16 : 4);
        unit_start(&b.u, 0, &config);
        memset(frame + (family == 6 ? 38 : 30), 0, family == 6 ? 16 : 4);
        ndtest_frame_repair(frame, bytes, false);
        unit_receive(&b.u, frame, bytes);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 1);
        if (family == 6) {
            frame[20] = 58; /* ICMPv6 */
        } else {
            arp(frame, everybody, 1, other_mac, other_ip, nobody);
            bytes = 42;
        }
        unit_receive(&b.u, frame, bytes);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 2);
        unit_expect_silence(&b.u);
        unit_stop(&b.u);
    }
}

static void frames_longer_than_any_mtu_are_dropped(void **state)
{
    struct unit_request r = {.opcode = NETDAM_OP_ECHO};
    uint8_t frame[UNIT_FRAME_ROOM] = {0};

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    (void)unit_request_frame(frame, 1, &r);
    unit_receive(&b.u, frame, NDFW_FRAME_MAX + 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_MALFORMED), 1);
    unit_expect_silence(&b.u);
    unit_receive(&b.u, frame, NDFW_FRAME_MAX); /* padded to the utmost */
    assert_int_equal(b.u.count, 1);
    unit_stop(&b.u);
}

static void checksums_are_verified_where_there_are_any(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = family};
        uint8_t frame[UNIT_FRAME_ROOM];
        size_t udp = family == 6 ? 54 : 34, bytes;

        bench_start(&b, NULL, 4, GENERATION);
        bytes = unit_request_frame(frame, 1, &r);
        frame[udp + 7] ^= 1;
        unit_receive(&b.u, frame, bytes);
        unit_expect_silence(&b.u);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_CHECKSUM), 1);
        unit_put16(frame + udp + 6, 0); /* none: allowed over IPv4, not over IPv6 */
        unit_receive(&b.u, frame, bytes);
        assert_int_equal(b.u.count, family == 4);
        unit_drop_sent(&b.u);
        if (family == 4) {
            frame[24] ^= 1;
            unit_receive(&b.u, frame, bytes);
            unit_expect_silence(&b.u);
        }
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_CHECKSUM), 2);
        unit_stop(&b.u);
    }
}

static void what_we_send_over_ipv6_has_a_checksum_that_is_never_zero(void **state)
{
    (void)state;
    bench_start(&b, NULL, 6, GENERATION);
    for (unsigned i = 0; i < 400; i++) {
        const uint8_t *sent;
        size_t bytes;
        uint32_t sum = 17;
        struct unit_request r = {.opcode = NETDAM_OP_ECHO,
                                 .family = 6,
                                 .number = i,
                                 .length = 3,
                                 .payload_length = 3,
                                 .payload = (const uint8_t *)"abc"};

        unit_request(&b.u, &r);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_true(sent[60] != 0 || sent[61] != 0);
        sum += (uint32_t)(bytes - 54);
        for (size_t k = 22; k < bytes; k++) {
            sum += k % 2 == 0 ? (uint32_t)sent[k] << 8 : sent[k];
        }
        while (sum >> 16 != 0) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_int_equal(sum, 0xffff);
    }
    unit_stop(&b.u);
}

/* The last two bytes of the payload, which nothing else sums, are chosen so that the checksum comes out as 0. */
static void a_checksum_of_zero_is_sent_as_its_other_form(void **state)
{
    struct netdam_fw_config config = bench_config();
    uint8_t payload[2] = {0, 0};
    struct unit_request r = {
        .opcode = NETDAM_OP_ECHO, .family = 6, .length = 2, .payload_length = 2, .payload = payload, .no_crc = true};
    const uint8_t *sent;
    size_t bytes;

    (void)state;
    config.no_payload_crc = true;
    bench_start(&b, &config, 4, GENERATION);
    unit_request(&b.u, &r);
    sent = unit_sent_frame(&b.u, &bytes);
    assert_non_null(sent);
    assert_int_equal(bytes % 2, 0);
    memcpy(payload, sent + 60, 2);
    assert_true(payload[0] != 0xff || payload[1] != 0xff);
    unit_request(&b.u, &r);
    sent = unit_sent_frame(&b.u, &bytes);
    assert_non_null(sent);
    assert_true(sent[60] == 0xff && sent[61] == 0xff);
    unit_stop(&b.u);
}

static size_t ping(uint8_t *frame, size_t data)
{
    uint32_t sum = 0;

    memset(frame, 0, 42);
    memcpy(frame, own_mac, 6);
    memcpy(frame + 6, other_mac, 6);
    frame[12] = 8;
    frame[14] = 0x45;
    unit_put16(frame + 16, (unsigned)(28 + data));
    frame[22] = 64;
    frame[23] = 1;
    memcpy(frame + 26, other_ip, 4);
    memcpy(frame + 30, own_ip, 4);
    for (size_t k = 14; k < 34; k += 2) {
        sum += (uint32_t)frame[k] << 8 | frame[k + 1];
    }
    unit_put16(frame + 24, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
    frame[34] = 8;
    frame[38] = 0x12;
    frame[41] = 7;
    for (size_t i = 0; i < data; i++) {
        frame[42 + i] = (uint8_t)(i * 3);
    }
    sum = 0;
    for (size_t k = 34; k < 42 + data; k++) {
        sum += k % 2 == 0 ? (uint32_t)frame[k] << 8 : frame[k];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    unit_put16(frame + 36, ~sum & 0xffff);
    return 42 + data;
}

static void pings_are_answered(void **state)
{
    static const size_t data[] = {0, 1, 2, 55, 56, 57, 1471, 1472};
    uint8_t frame[UNIT_FRAME_ROOM];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
        size_t bytes = ping(frame, data[i]), got;
        const uint8_t *sent;
        uint32_t sum = 0;

        memset(frame + bytes, 0x99, 20); /* padding is no part of it */
        unit_receive(&b.u, frame, bytes + 20);
        sent = unit_sent_frame(&b.u, &got);
        assert_non_null(sent);
        assert_int_equal(got, bytes);
        assert_memory_equal(sent, other_mac, 6);
        assert_memory_equal(sent + 6, own_mac, 6);
        assert_memory_equal(sent + 26, own_ip, 4);
        assert_memory_equal(sent + 30, other_ip, 4);
        assert_int_equal(sent[34], 0);
        assert_memory_equal(sent + 38, frame + 38, 4 + data[i]);
        for (size_t k = 34; k < got; k++) {
            sum += k % 2 == 0 ? (uint32_t)sent[k] << 8 : sent[k];
        }
        while (sum >> 16 != 0) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_int_equal(sum, 0xffff);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_PINGS), ARRAY_SIZE(data));
    unit_stop(&b.u);
}

static void pings_that_are_wrong_or_too_long_are_not(void **state)
{
    uint8_t frame[UNIT_FRAME_ROOM];
    size_t bytes;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    bytes = ping(frame, 56);
    frame[60] ^= 1; /* checksum */
    unit_receive(&b.u, frame, bytes);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_CHECKSUM), 1);
    bytes = ping(frame, 1473); /* longer than the MTU */
    unit_receive(&b.u, frame, bytes);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ANSWERS_DROPPED), 1);
    bytes = ping(frame, 8000);
    unit_receive(&b.u, frame, bytes);
    bytes = ping(frame, 56); /* an echo reply */
    frame[34] = 0;
    frame[36] = (uint8_t)(frame[36] + 8);
    unit_receive(&b.u, frame, bytes);
    bytes = ping(frame, 56); /* code 1 */
    frame[35] = 1;
    unit_receive(&b.u, frame, bytes);
    bytes = ping(frame, 0);
    unit_put16(frame + 16, 27); /* half an ICMP header */
    frame[25] = (uint8_t)(frame[25] + 1);
    unit_receive(&b.u, frame, bytes);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_PINGS), 0);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 3);
    unit_stop(&b.u);
}

static void frames_to_oneself_do_not_touch_the_port(void **state)
{
    static const uint8_t opcodes[] = {NETDAM_OP_WRITE, NETDAM_OP_READ, NETDAM_OP_ECHO, NETDAM_OP_REDUCE};
    struct netdam_descriptor d;
    uint64_t before;

    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        uint64_t args[] = {family == 6 ? UINT64_C(0xfd) << 56 : 0x0a000001, family == 6,
                           family | (uint64_t)NETDAM_UDP_PORT << 16};
        uint64_t results[NETDAM_ADMIN_RESULTS];

        bench_start(&b, NULL, 4, GENERATION);
        assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
        b.peer = (uint32_t)results[0];
        unit_region(&b.u, 0x80000, 0x20000, NETDAM_PERMISSION_ALL, UNIT_KEY);
        for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
            d = bench_descriptor(&b, opcodes[i], 0, 50 * 1400, i);
            d.remote_address = 0;
            if (opcodes[i] == NETDAM_OP_REDUCE) {
                d.operation = NETDAM_ALU_XOR;
                d.type = NETDAM_TYPE_U64;
            }
            d.remote_key = opcodes[i] == NETDAM_OP_ECHO ? 0 : UNIT_KEY;
            bench_do(&b, &d);
            unit_expect_completion(&b.queue, i, NETDAM_STATUS_OK);
            if (opcodes[i] == NETDAM_OP_REDUCE) { /* x xor x */
                for (unsigned k = 0; k < 50 * 1400; k += 8) {
                    assert_true(unit_memory_get(&b.u, 0x80000 + k, 8) == 0);
                }
            } else {
                assert_memory_equal(b.u.node.memory + 0x80000, b.u.node.memory + BENCH_LOCAL, 50 * 1400);
            }
        }
        before = unit_memory_get(&b.u, 0x80000 + 64, 8);
        for (unsigned i = 0; i < 40; i++) {
            d = bench_atomic(&b, NETDAM_OP_FETCH_ADD, NETDAM_TYPE_U64, 3, 0, i);
            d.remote_address = 64;
            bench_do(&b, &d);
            assert_true(unit_completion(&b.queue).result == before + 3 * i);
        }
        unit_run_for(&b.u, 10000 * UNIT_MS);
        unit_expect_silence(&b.u);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_TX_FRAMES), 0);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RETRANSMISSIONS), 0);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_LANE_WINDOWS), 0); /* confirmed when idle */
        unit_stop(&b.u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arp_requests_for_the_own_address_are_answered),
        cmocka_unit_test(other_arp_frames_are_not_answered),
        cmocka_unit_test(gossip_does_not_fill_the_table),
        cmocka_unit_test(who_is_talked_to_is_learnt_but_no_bad_address),
        cmocka_unit_test(what_was_set_is_not_overwritten_by_what_is_heard),
        cmocka_unit_test(an_unknown_peer_is_asked_for_and_then_sent_to),
        cmocka_unit_test(an_answer_to_asking_lets_first_contact_go_on_at_once),
        cmocka_unit_test(an_unknown_peer_that_does_not_answer_is_unreachable),
        cmocka_unit_test(whoever_lies_outside_the_prefix_is_reached_through_the_gateway),
        cmocka_unit_test(a_static_neighbour_spares_asking),
        cmocka_unit_test(a_full_table_of_neighbours_forgets_no_packet_under_way),
        cmocka_unit_test(only_frames_for_this_node_and_port_are_looked_at),
        cmocka_unit_test(nobody_is_answered_whose_ipv6_address_is_unspecified),
        cmocka_unit_test(a_node_without_an_address_answers_nobody),
        cmocka_unit_test(frames_longer_than_any_mtu_are_dropped),
        cmocka_unit_test(checksums_are_verified_where_there_are_any),
        cmocka_unit_test(what_we_send_over_ipv6_has_a_checksum_that_is_never_zero),
        cmocka_unit_test(a_checksum_of_zero_is_sent_as_its_other_form),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(pings_that_are_wrong_or_too_long_are_not),
        cmocka_unit_test(frames_to_oneself_do_not_touch_the_port),
    };

    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
