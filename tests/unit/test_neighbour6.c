/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 neighbours: solicitations and advertisements, whom they convince, ping, and asking anew when a peer falls
 * silent. */
#include "bench.h"

#define GENERATION UNIT_GENERATION

static struct bench b;

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};
static const uint8_t other_mac[6] = {2, 0, 0, 0, 0, 3};
static const uint8_t own[16] = {0xfd, [15] = 1};
static const uint8_t third[16] = {0xfd, [13] = 0x12, [14] = 0x34, [15] = 3};

static uint16_t checksum(const uint8_t *frame, size_t bytes)
{
    uint32_t sum = 58 + (uint32_t)(bytes - 54);

    for (size_t k = 22; k < bytes; k++) {
        sum += k % 2 == 0 ? (uint32_t)frame[k] << 8 : frame[k];
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

static void seal(uint8_t *frame, size_t bytes)
{
    frame[56] = frame[57] = 0;
    unit_put16(frame + 56, checksum(frame, bytes));
}

/* ICMPv6 `type` with `data` bytes behind its first four; 58 bytes and more. */
static size_t icmp(uint8_t *frame, const uint8_t *from, const uint8_t *to, unsigned type, size_t data)
{
    memset(frame, 0, 58 + data);
    memcpy(frame, own_mac, 6);
    memcpy(frame + 6, other_mac, 6);
    unit_put16(frame + 12, 0x86dd);
    frame[14] = 0x60;
    unit_put16(frame + 18, (unsigned)(4 + data));
    frame[20] = 58;
    frame[21] = 255;
    memcpy(frame + 22, from, 16);
    memcpy(frame + 38, to, 16);
    frame[54] = (uint8_t)type;
    seal(frame, 58 + data);
    return 58 + data;
}

/* A solicitation (135) or advertisement (136) about `target`, with the option that goes with it. */
static size_t discovery(uint8_t *frame, const uint8_t *from, unsigned type, const uint8_t *target, const uint8_t *mac)
{
    size_t bytes = icmp(frame, from, own, type, 28);

    memcpy(frame + 62, target, 16);
    frame[78] = type == 135 ? 1 : 2;
    frame[79] = 1;
    memcpy(frame + 80, mac, 6);
    seal(frame, bytes);
    return bytes;
}

static uint32_t open_peer(void)
{
    uint64_t args[] = {UINT64_C(0xfd) << 56, 0x123403, 6 | (uint64_t)NETDAM_UDP_PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    b.u.fw->peers[results[0]].generation = GENERATION;
    return (uint32_t)results[0];
}

static void expect_solicitation(void)
{
    static const uint8_t group_mac[6] = {0x33, 0x33, 0xff, 0x12, 0x34, 3};
    static const uint8_t group[16] = {0xff, 2, [11] = 1, [12] = 0xff, [13] = 0x12, [14] = 0x34, [15] = 3};
    size_t bytes;
    const uint8_t *sent = unit_sent_frame(&b.u, &bytes);

    assert_non_null(sent);
    assert_int_equal(bytes, 86);
    assert_memory_equal(sent, group_mac, 6);
    assert_memory_equal(sent + 6, own_mac, 6);
    assert_int_equal(sent[12] << 8 | sent[13], 0x86dd);
    assert_int_equal(sent[18] << 8 | sent[19], 32);
    assert_int_equal(sent[20], 58);
    assert_int_equal(sent[21], 255);
    assert_memory_equal(sent + 22, own, 16);
    assert_memory_equal(sent + 38, group, 16);
    assert_int_equal(sent[54], 135);
    assert_memory_equal(sent + 62, third, 16);
    assert_int_equal(sent[78], 1);
    assert_int_equal(sent[79], 1);
    assert_memory_equal(sent + 80, own_mac, 6);
    assert_int_equal(checksum(sent, bytes), 0);
}

static void an_unknown_peer_is_solicited_and_then_sent_to(void **state)
{
    uint8_t frame[256];
    const uint8_t *sent;
    size_t bytes;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.peer = open_peer();
    bench_write(&b, 8, 1);
    expect_solicitation();
    unit_expect_silence(&b.u);
    bytes = discovery(frame, third, 136, third, other_mac);
    unit_receive(&b.u, frame, bytes);
    unit_run(&b.u);
    sent = unit_sent_frame(&b.u, &bytes);
    assert_non_null(sent);
    assert_memory_equal(sent, other_mac, 6);
    assert_memory_equal(sent + 38, third, 16);
    unit_stop(&b.u);
}

static void an_unknown_peer_that_does_not_answer_is_unreachable(void **state)
{
    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.peer = open_peer();
    bench_write(&b, 8, 1);
    unit_run_for(&b.u, 1000 * UNIT_MS);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_UNREACHABLE);
    assert_int_equal(b.u.count, 6);
    while (b.u.count != 0) {
        expect_solicitation();
    }
    unit_stop(&b.u);
}

static void solicitations_for_the_own_address_are_answered(void **state)
{
    static const uint8_t group_mac[6] = {0x33, 0x33, 0xff, 0, 0, 1};
    uint8_t frame[256];
    const uint8_t *sent;
    size_t bytes;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (unsigned i = 0; i < 2; i++) {
        bytes = discovery(frame, third, 135, own, other_mac);
        memcpy(frame, i == 0 ? group_mac : own_mac, 6);
        unit_receive(&b.u, frame, bytes);
        sent = unit_sent_frame(&b.u, &bytes);
        assert_non_null(sent);
        assert_int_equal(bytes, 86);
        assert_memory_equal(sent, other_mac, 6);
        assert_memory_equal(sent + 22, own, 16);
        assert_memory_equal(sent + 38, third, 16);
        assert_int_equal(sent[21], 255);
        assert_int_equal(sent[54], 136);
        assert_int_equal(sent[58] & 0x60, 0x60); /* solicited, override */
        assert_memory_equal(sent + 62, own, 16);
        assert_int_equal(sent[78], 2);
        assert_memory_equal(sent + 80, own_mac, 6);
        assert_int_equal(checksum(sent, bytes), 0);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ARP_REQUESTS), 2);
    unit_stop(&b.u);
}

/* Advertisements that must not convince: each differs from a good one in one thing. */
static void what_could_be_forged_from_afar_or_makes_no_sense_is_not_believed(void **state)
{
    static const struct {
        const char *what;
        size_t at;
        uint8_t value;
        bool unsealed;
    } rows[] = {
        {"passed on by a router", 21, 254, false},
        {"code", 55, 1, false},
        {"checksum", 56, 0x5a, true},
        {"of somebody nobody talks to", 77, 9, false},
        {"group MAC", 80, 3, false},
        {"another option", 78, 1, false},
        {"option of no length", 79, 0, false},
        {"option longer than the packet", 79, 2, false},
        {"to another MAC", 5, 9, false},
        {"of a group", 62, 0xff, false},
    };
    uint8_t frame[256];
    size_t bytes;
    uint32_t peer;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bench_start(&b, NULL, 4, GENERATION);
        peer = open_peer();
        bytes = discovery(frame, third, 136, third, other_mac);
        frame[rows[i].at] = rows[i].value;
        if (!rows[i].unsealed) {
            seal(frame, bytes);
        }
        unit_receive(&b.u, frame, bytes);
        if (b.u.fw->peers[peer].resolved) {
            fail_msg("believed: %s", rows[i].what);
        }
        for (size_t cut = 14; cut < 86; cut++) { /* cut, with IP's length cut too */
            (void)discovery(frame, third, 136, third, other_mac);
            unit_receive(&b.u, frame, cut);
            if (cut >= 58) {
                unit_put16(frame + 18, (unsigned)(cut - 54));
                seal(frame, cut);
                unit_receive(&b.u, frame, cut);
            }
            assert_false(b.u.fw->peers[peer].resolved);
        }
        bytes = discovery(frame, third, 136, third, other_mac);
        unit_receive(&b.u, frame, bytes);
        assert_true(b.u.fw->peers[peer].resolved);
        unit_expect_silence(&b.u);
        unit_stop(&b.u);
    }
}

static void solicitations_that_no_answer_can_be_sent_to_get_none(void **state)
{
    static const uint8_t none[16] = {0}, group[16] = {0xff, 2, [15] = 1};
    static const uint8_t *const froms[] = {none, group, own};
    uint8_t frame[256];
    size_t bytes;
    uint32_t peer;

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    peer = open_peer();
    bytes = discovery(frame, third, 135, third, other_mac); /* for somebody else, but from whom this node talks to */
    unit_receive(&b.u, frame, bytes);
    assert_true(b.u.fw->peers[peer].resolved);
    for (size_t i = 0; i < 2; i++) { /* addresses are being tried out */
        bytes = discovery(frame, froms[i], 135, own, other_mac);
        unit_receive(&b.u, frame, bytes);
        bytes = icmp(frame, froms[i], own, 128, 8);
        unit_receive(&b.u, frame, bytes);
    }
    bytes = icmp(frame, third, own, 128, 8);
    frame[55] = 1; /* a ping of no known code */
    seal(frame, bytes);
    unit_receive(&b.u, frame, bytes);
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 3);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ARP_REQUESTS), 0);
    unit_stop(&b.u);
}

static void nobody_teaches_the_own_address(void **state)
{
    uint64_t args[] = {UINT64_C(0xfd) << 56, 1, 6 | (uint64_t)NETDAM_UDP_PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint8_t frame[256];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    unit_receive(&b.u, frame, discovery(frame, own, 136, own, other_mac));
    assert_memory_equal(b.u.fw->peers[results[0]].endpoint.mac, own_mac, 6);
    for (uint32_t i = 0; i < b.u.fw->config.neighbours; i++) {
        assert_true(b.u.fw->neighbours[i].state != NDFW_NEIGHBOUR_LEARNT);
    }
    unit_stop(&b.u);
}

static void a_full_port_loses_advertisements_and_delays_solicitations(void **state)
{
    uint8_t frame[256];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    b.peer = open_peer();
    b.u.port_room = 0;
    bench_write(&b, 8, 1);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ANSWERS_DROPPED), 0);
    unit_receive(&b.u, frame, discovery(frame, third, 135, own, (const uint8_t[6]){3}));
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_ANSWERS_DROPPED), 1);
    unit_expect_silence(&b.u);
    b.u.port_room = UINT32_MAX;
    unit_run_for(&b.u, 20 * UNIT_MS);
    expect_solicitation();
    unit_stop(&b.u);
}

static void pings_are_answered(void **state)
{
    static const size_t data[] = {4, 5, 60, 1455, 1456};
    uint8_t frame[2048];

    (void)state;
    bench_start(&b, NULL, 4, GENERATION);
    for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
        size_t bytes = icmp(frame, third, own, 128, data[i]), got;
        const uint8_t *sent;

        for (size_t k = 58; k < bytes; k++) {
            frame[k] = (uint8_t)(k * 5);
        }
        seal(frame, bytes);
        unit_receive(&b.u, frame, bytes);
        sent = unit_sent_frame(&b.u, &got);
        assert_non_null(sent);
        assert_int_equal(got, bytes);
        assert_memory_equal(sent, other_mac, 6);
        assert_memory_equal(sent + 22, own, 16);
        assert_memory_equal(sent + 38, third, 16);
        assert_int_equal(sent[54], 129);
        assert_memory_equal(sent + 58, frame + 58, data[i]);
        assert_int_equal(checksum(sent, got), 0);
        frame[60] ^= 1; /* the checksum is wrong now */
        unit_receive(&b.u, frame, bytes);
        unit_expect_silence(&b.u);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_PINGS), ARRAY_SIZE(data));
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_CHECKSUM), ARRAY_SIZE(data));
    unit_receive(&b.u, frame, icmp(frame, third, own, 128, 1457)); /* beyond the MTU */
    unit_receive(&b.u, frame, icmp(frame, third, own, 129, 8));    /* a reply */
    unit_receive(&b.u, frame, icmp(frame, third, own, 1, 8));      /* unreachable */
    unit_receive(&b.u, frame, icmp(frame, third, third, 128, 8));  /* somebody else's */
    unit_expect_silence(&b.u);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), 3);
    unit_stop(&b.u);
}

/* The peer's card was replaced: what was learnt is asked for anew, what was set is not. Of the first question as well. */
static void a_silent_peer_is_asked_for_anew_unless_its_address_was_set(void **state)
{
    static const uint8_t replaced[6] = {2, 0, 0, 0, 0, 0x33};
    uint8_t frame[256];

    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        bool fixed = n % 2 != 0;
        uint64_t args[] = {UINT64_C(0xfd) << 56, 0x123403, 6, UINT64_C(0x020000000003)};
        unsigned requests = 0, solicitations = 0, moved = 0;

        bench_start(&b, NULL, 4, GENERATION);
        b.peer = open_peer();
        if (fixed) {
            assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        } else {
            unit_receive(&b.u, frame, discovery(frame, third, 136, third, other_mac));
        }
        b.u.fw->peers[b.peer].generation = n < 2 ? GENERATION : 0;
        bench_write(&b, 8, 1);
        for (unsigned i = 0; i < 40 && ndtest_queue_ready(&b.queue) == 0; i++) {
            const uint8_t *sent;
            size_t bytes;

            while ((sent = unit_sent_frame(&b.u, &bytes)) != NULL) {
                bool solicitation = sent[20] == 58;

                requests += !solicitation;
                solicitations += solicitation;
                moved += !solicitation && memcmp(sent, replaced, 6) == 0;
                if (solicitation && solicitations == 1) {
                    unit_receive(&b.u, frame, discovery(frame, third, 136, third, replaced));
                }
            }
            unit_run_for(&b.u, 10 * UNIT_MS);
        }
        assert_int_equal(requests, 6);
        assert_int_equal(solicitations != 0, !fixed);
        assert_int_equal(moved != 0, !fixed); /* and the rest goes where the answer said */
        unit_stop(&b.u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_peer_is_solicited_and_then_sent_to),
        cmocka_unit_test(an_unknown_peer_that_does_not_answer_is_unreachable),
        cmocka_unit_test(solicitations_for_the_own_address_are_answered),
        cmocka_unit_test(what_could_be_forged_from_afar_or_makes_no_sense_is_not_believed),
        cmocka_unit_test(solicitations_that_no_answer_can_be_sent_to_get_none),
        cmocka_unit_test(nobody_teaches_the_own_address),
        cmocka_unit_test(a_full_port_loses_advertisements_and_delays_solicitations),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(a_silent_peer_is_asked_for_anew_unless_its_address_was_set),
    };

    return cmocka_run_group_tests_name("neighbour6", tests, NULL, NULL);
}
