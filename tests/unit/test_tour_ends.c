/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains as their requester sees them: descriptors and lists, first contact, answers, and every way to end. */
#include "tour.h"

#define OK               NETDAM_STATUS_OK
#define LOCAL_DESCRIPTOR NETDAM_STATUS_LOCAL_DESCRIPTOR

static struct tour t;

static void a_chain_names_each_node_with_its_generation_and_leaves_the_origin_open(void **state)
{
    struct tour_packet packet = {0};

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 F3 R4", 16, 1);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
    unit_expect_silence(&t.u);
    assert_int_equal(packet.p.segment_count, 3);
    assert_int_equal(packet.p.segment_index, 0);
    assert_int_equal(packet.p.node_form, NETDAM_NODE_FORM_IPV4);
    assert_int_equal(packet.p.header_bytes, 32 + 8 + 3 * 40);
    assert_int_equal(packet.p.flags, NETDAM_FLAG_PAYLOAD_CRC);
    assert_int_equal(packet.p.distance, 0);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(packet.p.header[32 + i], 0);
    }
    for (unsigned hop = 0; hop < 3; hop++) {
        const uint8_t *segment = packet.p.segments + 40 * hop;

        assert_true(tour_generation(&packet, hop) == (hop == 1 ? 0 : TOUR_GENERATION(2 + hop)));
        assert_true(tour_be(segment + 4, 4) == (hop == 1 ? 0 : 16));
        assert_true(tour_be(segment + 8, 8) == (hop == 1 ? 0 : UNIT_KEY));
        assert_true(tour_be(segment + 16, 8) == (hop == 1 ? 0 : 0x200 + 0x100 * hop));
        assert_true(tour_be(segment + 32, 4) == 0x0a000002 + hop);
        assert_true(tour_be(segment + 36, 2) == NETDAM_UDP_PORT);
        assert_true(tour_be(segment + 38, 2) == 0);
    }
    assert_memory_equal(packet.p.payload, t.u.node.memory + TOUR_SOURCE, 16);
    tour_answer(&t, &packet, 2, OK, TOUR_GENERATION(4), NULL, 0);
    tour_expect_end(&t, 1, OK, 0, 0);
    unit_stop(&t.u);
}

static void lists_and_descriptors_of_wrong_form_send_nothing(void **state)
{
    static const struct {
        const char *list;
        enum netdam_status status;
    } lists[] = {
        {"C2 L3", LOCAL_DESCRIPTOR},    {"W2 L3", LOCAL_DESCRIPTOR},    {"A2 L3", LOCAL_DESCRIPTOR},
        {"L2 L3", LOCAL_DESCRIPTOR},    {"L2 W3 W4", LOCAL_DESCRIPTOR}, {"A2 W3 F4", LOCAL_DESCRIPTOR},
        {"A2 R3 W4", LOCAL_DESCRIPTOR}, {"L2 C3 W4", LOCAL_DESCRIPTOR}, {"W2 A3 C4", LOCAL_DESCRIPTOR},
        {"W2 W2", LOCAL_DESCRIPTOR},    {"W2 F3 W2", LOCAL_DESCRIPTOR}, {"A2 A3 A2", LOCAL_DESCRIPTOR},
        {"F2 F3", LOCAL_DESCRIPTOR}, /* with a length */
    };
    static const struct {
        const char *what;
        size_t offset;
        unsigned bytes;
        uint64_t value;
        enum netdam_status status;
    } fields[] = {
#define FIELD(member) offsetof(struct netdam_descriptor, member), sizeof(((struct netdam_descriptor *)0)->member)
        {"operation", FIELD(operation), 1, LOCAL_DESCRIPTOR},
        {"type", FIELD(type), 1, LOCAL_DESCRIPTOR},
        {"no segment", FIELD(list_count), 0, LOCAL_DESCRIPTOR},
        {"33 segments", FIELD(list_count), 33, LOCAL_DESCRIPTOR},
        {"RELAXED", FIELD(flags), NETDAM_DESCRIPTOR_RELAXED, LOCAL_DESCRIPTOR},
        {"ORDERED", FIELD(flags), NETDAM_DESCRIPTOR_ORDERED, LOCAL_DESCRIPTOR},
        {"UNRELIABLE", FIELD(flags), NETDAM_DESCRIPTOR_UNRELIABLE, LOCAL_DESCRIPTOR},
        {"IMMEDIATE", FIELD(flags), NETDAM_DESCRIPTOR_IMMEDIATE, LOCAL_DESCRIPTOR},
        {"LIST", FIELD(flags), NETDAM_DESCRIPTOR_LIST, LOCAL_DESCRIPTOR},
        {"undefined flag", FIELD(flags), 0x100, LOCAL_DESCRIPTOR},
        {"key", FIELD(remote_key), 1, LOCAL_DESCRIPTOR},
        {"list at an odd address", FIELD(remote_address), TOUR_LIST + 4, LOCAL_DESCRIPTOR},
        {"list beyond the region", FIELD(remote_address), 0x3fff8, NETDAM_STATUS_LOCAL_RANGE},
        {"list's address wraps", FIELD(remote_address), UINT64_MAX - 7, NETDAM_STATUS_LOCAL_RANGE},
        {"list in no region", FIELD(immediate), 7, NETDAM_STATUS_LOCAL_REGION},
        {"source in no region", FIELD(local_region), 7, NETDAM_STATUS_LOCAL_REGION},
        {"source beyond the region", FIELD(u.buffer.local_address), 0x40000, NETDAM_STATUS_LOCAL_RANGE},
        {"a result where nothing returns", FIELD(u.buffer.result_address), 8, LOCAL_DESCRIPTOR},
        {"a result region where nothing returns", FIELD(peer), 1, LOCAL_DESCRIPTOR},
        {"too long", FIELD(length), NDFW_LENGTH_MAX + 1u, LOCAL_DESCRIPTOR},
        {"longer than the region", FIELD(length), 0x40000, NETDAM_STATUS_LOCAL_RANGE},
    };
    static const struct {
        const char *what;
        size_t offset;
        unsigned bytes;
        uint64_t value;
        char op; /* of the second segment */
        enum netdam_status status;
    } segments[] = {
#define SEGMENT(member) offsetof(struct netdam_segment, member), sizeof(((struct netdam_segment *)0)->member)
        {"opcode 0", SEGMENT(opcode), 0, 'W', LOCAL_DESCRIPTOR},
        {"READ", SEGMENT(opcode), NETDAM_OP_READ, 'W', LOCAL_DESCRIPTOR},
        {"CHAIN", SEGMENT(opcode), NETDAM_OP_CHAIN, 'W', LOCAL_DESCRIPTOR},
        {"SEND", SEGMENT(opcode), NETDAM_OP_SEND, 'W', LOCAL_DESCRIPTOR},
        {"undefined", SEGMENT(opcode), 0xee, 'W', LOCAL_DESCRIPTOR},
        {"operation", SEGMENT(operation), 1, 'W', LOCAL_DESCRIPTOR},
        {"no operation", SEGMENT(operation), 0, 'R', LOCAL_DESCRIPTOR},
        {"undefined operation", SEGMENT(operation), 99, 'R', LOCAL_DESCRIPTOR},
        {"no type", SEGMENT(type), 0, 'R', LOCAL_DESCRIPTOR},
        {"undefined type", SEGMENT(type), 13, 'R', LOCAL_DESCRIPTOR},
        {"reserved", SEGMENT(reserved), 1, 'W', LOCAL_DESCRIPTOR},
        {"zero", SEGMENT(zero), UINT64_C(1) << 63, 'W', LOCAL_DESCRIPTOR},
        {"peer beyond the table", SEGMENT(peer), UINT32_MAX, 'W', NETDAM_STATUS_LOCAL_PEER},
        {"the context of chains", SEGMENT(peer), 8, 'W', NETDAM_STATUS_LOCAL_PEER},
        {"peer not open", SEGMENT(peer), 7, 'W', NETDAM_STATUS_LOCAL_PEER},
        {"FORWARD with a key", SEGMENT(key), 1, 'F', LOCAL_DESCRIPTOR},
        {"FORWARD with an address", SEGMENT(address), 1, 'F', LOCAL_DESCRIPTOR},
        {"address wraps", SEGMENT(address), UINT64_MAX - 6, 'W', NETDAM_STATUS_BAD_RANGE},
    };

    (void)state;
    tour_start(&t, NULL, true);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        tour_post(&t, lists[i].list, 8, i);
        unit_expect_silence(&t.u);
        tour_expect_end(&t, i, lists[i].status, 0, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        struct netdam_descriptor d = tour_descriptor(&t, "W2 W3", 8, i);

        memcpy((uint8_t *)&d + fields[i].offset, &fields[i].value, fields[i].bytes);
        unit_post(&t.u, &t.queue, &d);
        unit_run(&t.u);
        if (t.u.count != 0) {
            fail_msg("%s: accepted", fields[i].what);
        }
        tour_expect_end(&t, i, fields[i].status, 0, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
        char list[] = "W2 W3";
        struct netdam_descriptor d;

        list[3] = segments[i].op;
        d = tour_descriptor(&t, list, 8, i);
        memcpy(t.u.node.memory + d.remote_address + sizeof(struct netdam_segment) + segments[i].offset,
               &segments[i].value, segments[i].bytes);
        unit_post(&t.u, &t.queue, &d);
        unit_run(&t.u);
        if (t.u.count != 0) {
            fail_msg("%s: accepted", segments[i].what);
        }
        tour_expect_end(&t, i, segments[i].status, 1, 0);
    }
    tour_post(&t, "R2", 6, 0); /* half an element */
    tour_expect_end(&t, 0, LOCAL_DESCRIPTOR, 0, 0);
    {
        struct netdam_descriptor d = tour_descriptor(&t, "R2 W3", 8, 1);

        t.u.node.memory[d.remote_address + offsetof(struct netdam_segment, type)] = NETDAM_TYPE_F32;
        d.flags = NETDAM_DESCRIPTOR_REPRODUCIBLE;
        unit_post(&t.u, &t.queue, &d);
        unit_run(&t.u);
        tour_expect_end(&t, 1, LOCAL_DESCRIPTOR, 0, 0);
        d = tour_descriptor(&t, "L2 A3", 8, 2);
        d.u.buffer.local_address = 8; /* it brings nothing */
        unit_post(&t.u, &t.queue, &d);
        unit_run(&t.u);
        tour_expect_end(&t, 2, LOCAL_DESCRIPTOR, 0, 0);
    }
    unit_expect_silence(&t.u);
    assert_int_equal(t.u.fw->tour_free, 0); /* no place was lost */
    unit_stop(&t.u);
}

static void lists_at_the_edge_of_what_is_right(void **state)
{
    struct netdam_fw_config config = tour_config();
    uint64_t peer[] = {0x0a000002, 0, 4 | UINT64_C(777) << 16},
             ipv6[] = {UINT64_C(0xfd) << 56, 9, 6 | UINT64_C(777) << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    struct tour_packet packet = {0};
    struct netdam_descriptor d;

    (void)state;
    config.no_payload_crc = true;
    config.peers = 64;
    tour_start(&t, &config, true);
    tour_post(&t, "F2 F3", 0, 1); /* nothing but FORWARD, and nothing to carry */
    tour_expect(&t, 2, NETDAM_OP_FORWARD, &packet);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_expect_end(&t, 1, OK, 0, 0);
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), 0);
    t.peers[3] = (uint32_t)results[0]; /* node 2 by its address, at another port */
    tour_way(&t, 3)->generation = TOUR_GENERATION(3);
    tour_post(&t, "W2 W3", 8, 2);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
    assert_int_equal(packet.p.flags & NETDAM_FLAG_PAYLOAD_CRC, 0);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_expect_end(&t, 2, OK, 0, 0);
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_OPEN, ipv6, 3, results), 0);
    t.peers[4] = (uint32_t)results[0];
    tour_post(&t, "W2 W4", 8, 3); /* two families */
    tour_expect_end(&t, 3, LOCAL_DESCRIPTOR, 0, 0);
    /* 24 nodes of 56 bytes and what comes with them leave room for eight bytes, 25 do not. */
    d = tour_descriptor(&t, "W4", 8, 4);
    for (unsigned i = 0; i < 25; i++) {
        struct netdam_segment s = tour_segment(&t, 'W', 4);

        ipv6[1] = 100 + i;
        assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_OPEN, ipv6, 3, results), 0);
        s.peer = (uint32_t)results[0];
        memcpy(t.u.node.memory + d.remote_address + i * sizeof(s), &s, sizeof(s));
    }
    d.list_count = 25;
    unit_post(&t.u, &t.queue, &d);
    unit_run(&t.u);
    tour_expect_end(&t, 4, LOCAL_DESCRIPTOR, 0, 0);
    d.list_count = 24;
    unit_post(&t.u, &t.queue, &d);
    unit_run(&t.u);
    unit_expect_no_completion(&t.queue);
    unit_stop(&t.u);
}

static void local_permissions_are_needed_for_list_source_and_result(void **state)
{
    (void)state;
    tour_start(&t, NULL, true);
    for (unsigned what = 0; what < 3; what++) {
        for (uint32_t has = 0; has < 4; has++) {
            uint32_t needs = what == 2 ? NETDAM_PERMISSION_LOCAL_WRITE : NETDAM_PERMISSION_LOCAL_READ;
            uint32_t region = unit_region(&t.u, 0, 0x40000, has, 0);
            uint64_t index = region;
            struct netdam_descriptor d = tour_descriptor(&t, "A2 A3", 8, has);

            *(what == 0 ? &d.immediate : what == 1 ? &d.local_region : &d.peer) = region;
            unit_post(&t.u, &t.queue, &d);
            unit_run(&t.u);
            if ((has & needs) != 0) {
                struct tour_packet packet = {0};

                tour_expect(&t, 2, NETDAM_OP_LOAD_REDUCE, &packet);
                tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), (const uint8_t *)"12345678", 8);
                tour_expect_end(&t, has, OK, 0, 0);
            } else {
                unit_expect_silence(&t.u);
                tour_expect_end(&t, has, NETDAM_STATUS_LOCAL_PERMISSION, 0, 0);
            }
            assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_REGION_DESTROY, &index, 1, NULL), 0);
        }
    }
    unit_stop(&t.u);
}

static void the_list_is_copied_when_the_descriptor_is_taken(void **state)
{
    struct netdam_descriptor d;
    struct tour_packet first = {0}, again = {0};

    (void)state;
    tour_start(&t, NULL, true);
    d = tour_descriptor(&t, "W2 W3", 8, 1);
    unit_post(&t.u, &t.queue, &d);
    unit_run(&t.u);
    memset(t.u.node.memory + d.remote_address, 0xff, 64);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &first);
    unit_run_for(&t.u, 25 * UNIT_MS);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &again);
    assert_int_equal(again.p.flags & NETDAM_FLAG_AGAIN, NETDAM_FLAG_AGAIN);
    assert_memory_equal(first.p.segments, again.p.segments, 80);
    assert_true(first.p.number == again.p.number);
    tour_answer(&t, &again, 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_expect_end(&t, 1, OK, 0, 0);
    unit_stop(&t.u);
}

static void first_contact_asks_each_node_that_names_memory(void **state)
{
    struct tour_packet asked[2] = {0}, packet = {0};

    (void)state;
    tour_start(&t, NULL, false);
    tour_post(&t, "W2 F4 W3", 8, 1);
    tour_expect(&t, 2, NETDAM_OP_CONFIRM, &asked[0]);
    tour_expect(&t, 3, NETDAM_OP_CONFIRM, &asked[1]);
    unit_expect_silence(&t.u);
    assert_true(asked[0].p.generation == 0 && asked[1].p.generation == 0);
    assert_int_equal(asked[0].p.distance, t.peers[2]); /* whose answer it will be */
    assert_int_equal(asked[1].p.distance, t.peers[3]);
    tour_answer(&t, &asked[1], 0, NETDAM_STATUS_STALE, TOUR_GENERATION(3), NULL, 0);
    unit_expect_silence(&t.u);
    assert_true(tour_way(&t, 2)->generation == 0 && tour_way(&t, 3)->generation == TOUR_GENERATION(3));
    tour_answer(&t, &asked[0], 0, NETDAM_STATUS_STALE, TOUR_GENERATION(2), NULL, 0);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
    assert_true(tour_generation(&packet, 0) == TOUR_GENERATION(2));
    assert_true(tour_generation(&packet, 1) == 0 && tour_generation(&packet, 2) == TOUR_GENERATION(3));
    tour_answer(&t, &asked[0], 0, NETDAM_STATUS_STALE, TOUR_GENERATION(2) + 1, NULL, 0); /* late: it echoes 0 */
    assert_true(tour_way(&t, 2)->generation == TOUR_GENERATION(2));
    unit_stop(&t.u);
}

static void a_dead_node_ends_what_visits_it_and_nothing_else(void **state)
{
    struct tour_packet packet = {0};
    unsigned asked = 1;

    (void)state;
    tour_start(&t, NULL, true);
    tour_way(&t, 4)->generation = 0; /* never heard of */
    tour_post(&t, "W2 W3 W4", 8, 1);
    tour_post(&t, "F2 A4 A3", 8, 2);
    tour_post(&t, "W2 W3", 8, 3); /* overtakes those */
    tour_expect(&t, 4, NETDAM_OP_CONFIRM, &packet);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_expect_end(&t, 3, OK, 0, 0);
    unit_run_for(&t.u, 1000 * UNIT_MS);
    while (tour_sent(&t, &packet)) { /* the other nodes are told the floor */
        assert_int_equal(packet.p.opcode, NETDAM_OP_CONFIRM);
        asked += packet.to == 4;
    }
    assert_int_equal(asked, 6);
    tour_expect_end(&t, 1, NETDAM_STATUS_TIMEOUT, 2, 0);
    tour_expect_end(&t, 2, NETDAM_STATUS_TIMEOUT, 1, 0);
    unit_expect_no_completion(&t.queue);
    unit_stop(&t.u);
}

/* It answers, but does not say what it was asked. */
static void a_node_that_tells_no_generation_ends_what_visits_it(void **state)
{
    struct tour_packet packet = {0};
    unsigned asked = 0;

    (void)state;
    tour_start(&t, NULL, true);
    tour_way(&t, 4)->generation = 0;
    tour_post(&t, "W2 W4", 8, 1);
    for (unsigned i = 0; i < 300; i++) {
        if (tour_sent(&t, &packet)) {
            assert_int_equal(packet.p.opcode, NETDAM_OP_CONFIRM);
            tour_answer(&t, &packet, 0, OK, 0, NULL, 0);
            asked++;
        }
        unit_run_for(&t.u, 10 * UNIT_MS);
    }
    assert_int_equal(asked, 1 + t.u.fw->config.retries);
    tour_expect_end(&t, 1, NETDAM_STATUS_TIMEOUT, 1, 0);
    unit_stop(&t.u);
}

static void a_node_without_link_layer_address_is_unreachable(void **state)
{
    struct netdam_completion completion;

    (void)state;
    for (unsigned hop = 0; hop < 2; hop++) {
        tour_start(&t, NULL, true);
        t.peers[6] = tour_open(&t, 99, false);
        tour_post(&t, hop == 0 ? "W6 W2" : "W2 W6", 8, 1);
        unit_run_for(&t.u, 1000 * UNIT_MS);
        completion = unit_completion(&t.queue);
        assert_int_equal(completion.status, NETDAM_STATUS_UNREACHABLE);
        assert_int_equal(completion.hop, hop);
        assert_true(t.u.count >= 5); /* it has asked */
        unit_stop(&t.u);
    }
}

static void refusals_name_their_hop_and_tell_what_was_stored_before(void **state)
{
    static const struct {
        const char *list;
        unsigned hop;
        enum netdam_status status;
        bool partial;
    } rows[] = {
        {"W2 W3 W4", 0, NETDAM_STATUS_BAD_KEY, false},        {"W2 W3 W4", 1, NETDAM_STATUS_BAD_RANGE, true},
        {"W2 W3 W4", 2, NETDAM_STATUS_NO_PERMISSION, true},   {"C2 W3 W4", 0, NETDAM_STATUS_COMPARE_FAILED, false},
        {"C2 C3 W4", 1, NETDAM_STATUS_COMPARE_FAILED, false}, {"W2 C3 W4", 1, NETDAM_STATUS_COMPARE_FAILED, true},
        {"F2 W3 W4", 1, NETDAM_STATUS_BAD_KEY, false},        {"A2 A3 A4", 1, NETDAM_STATUS_MISALIGNED, false},
        {"W2 W3 A4", 2, NETDAM_STATUS_BAD_KEY, true},         {"L2 W3", 1, NETDAM_STATUS_BAD_KEY, false},
        {"W2 W3", 0, NETDAM_STATUS_NOT_FORWARDED, false},     {"W2 W3", 1, NETDAM_STATUS_BAD_SEGMENTS, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct tour_packet packet = {0};

        tour_start(&t, NULL, true);
        tour_post(&t, rows[i].list, 8, i);
        assert_true(tour_sent(&t, &packet));
        tour_answer(&t, &packet, rows[i].hop, rows[i].status, TOUR_GENERATION(2 + rows[i].hop), NULL, 0);
        tour_expect_end(&t, i, rows[i].status, rows[i].hop, rows[i].partial ? NETDAM_COMPLETION_PARTIAL : 0);
        tour_answer(&t, &packet, rows[i].hop, rows[i].status, TOUR_GENERATION(2 + rows[i].hop), NULL, 0);
        assert_int_equal(unit_counter(&t.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
        unit_stop(&t.u);
    }
}

static void answers_that_do_not_fit_are_not_taken(void **state)
{
    struct tour_packet packet = {0};
    uint64_t unmatched = 0;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "A2 A3", 16, 1);
    assert_true(tour_sent(&t, &packet));
    /* OK from a hop that is not the last, too short, too long; beyond the list; from somewhere else. */
    tour_answer(&t, &packet, 0, OK, TOUR_GENERATION(2), t.u.node.memory, 16);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, 8);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, 24);
    packet.p.segment_count = 3;
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, 16);
    packet.p.segment_count = 2;
    packet.p.number++;
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, 16);
    packet.p.number -= 2;
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, 16);
    packet.p.number++;
    tour_answer(&t, &packet, 1, NETDAM_STATUS_TIMEOUT, TOUR_GENERATION(3), NULL, 0);
    unmatched = unit_counter(&t.u, NETDAM_COUNTER_RESPONSES_UNMATCHED);
    assert_int_equal(unmatched, 8);
    unit_expect_no_completion(&t.queue);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory + 0x100, 16);
    tour_expect_end(&t, 1, OK, 0, 0);
    assert_memory_equal(t.u.node.memory + TOUR_RESULT, t.u.node.memory + 0x100, 16);
    unit_stop(&t.u);
}

static void long_chains_are_split_by_what_the_list_leaves_of_a_packet(void **state)
{
    struct tour_packet packet = {0};
    uint32_t most = (1500 - 72 - 2 * 40) & ~7u, seen = 0;
    uint64_t numbers = 0;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "A2 A3", 3 * most + 4, 1);
    for (unsigned i = 0; i < 4; i++) {
        tour_expect(&t, 2, NETDAM_OP_LOAD_REDUCE, &packet);
        assert_int_equal(packet.p.payload_bytes, i < 3 ? most : 4);
        assert_true(tour_be(packet.p.segments + 16, 8) == 0x200 + seen);
        assert_true(tour_be(packet.p.segments + 40 + 16, 8) == 0x300 + seen);
        assert_memory_equal(packet.p.payload, t.u.node.memory + TOUR_SOURCE + seen, packet.p.payload_bytes);
        seen += packet.p.payload_bytes;
        numbers |= UINT64_C(1) << packet.p.number;
        assert_int_equal(packet.p.distance, i); /* all of them at once */
        tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), packet.p.payload, packet.p.payload_bytes);
    }
    assert_true(numbers == 0x1e);
    tour_expect_end(&t, 1, OK, 0, 0);
    assert_memory_equal(t.u.node.memory + TOUR_RESULT, t.u.node.memory + TOUR_SOURCE, 3 * most + 4);
    unit_stop(&t.u);
}

static void a_refused_packet_of_many_leaves_the_rest_of_a_chain_partial(void **state)
{
    struct tour_packet packets[2] = {0};

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 W3", 2600, 1);
    assert_true(tour_sent(&t, &packets[0]) && tour_sent(&t, &packets[1]));
    tour_answer(&t, &packets[0], 1, OK, TOUR_GENERATION(3), NULL, 0);
    tour_answer(&t, &packets[1], 0, NETDAM_STATUS_BAD_RANGE, TOUR_GENERATION(2), NULL, 0);
    tour_expect_end(&t, 1, NETDAM_STATUS_BAD_RANGE, 0, NETDAM_COMPLETION_PARTIAL);
    unit_stop(&t.u);
}

static void more_chains_than_places_wait_in_the_ring(void **state)
{
    struct netdam_fw_config config = tour_config();
    static struct tour_packet packets[5];
    unsigned sent = 0;

    (void)state;
    config.chains = 2;
    tour_start(&t, &config, true);
    for (unsigned i = 0; i < 5; i++) {
        tour_post(&t, "W2 W3", 8, i);
    }
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(ndtest_queue_taken(&t.queue), i < 3 ? 2 + i : 5);
        while (t.u.count != 0) {
            tour_expect(&t, 2, NETDAM_OP_WRITE, &packets[sent++]);
        }
        assert_int_equal(sent, i < 3 ? 2 + i : 5);
        tour_answer(&t, &packets[i], 1, OK, TOUR_GENERATION(3), NULL, 0);
        tour_expect_end(&t, i, OK, 0, 0);
    }
    unit_expect_silence(&t.u);
    unit_stop(&t.u);
}

static void busy_is_waited_out_and_ends_as_a_timeout(void **state)
{
    struct tour_packet packet = {0};
    unsigned sent = 0;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 W3", 8, 1);
    for (unsigned i = 0; i < 40; i++) {
        while (tour_sent(&t, &packet)) {
            sent += packet.p.opcode == NETDAM_OP_WRITE;
            tour_answer(&t, &packet, 1, NETDAM_STATUS_BUSY, TOUR_GENERATION(3), NULL, 0);
        }
        if (ndtest_queue_ready(&t.queue) != 0) {
            break;
        }
        unit_run_for(&t.u, 20 * UNIT_MS);
    }
    assert_int_equal(sent, 6);
    tour_expect_end(&t, 1, NETDAM_STATUS_TIMEOUT, NETDAM_HOP_NONE, 0);
    unit_stop(&t.u);
}

static void a_region_that_goes_ends_a_chain_that_is_sent_again(void **state)
{
    static const struct {
        const char *list;
        enum netdam_status status;
    } rows[] = {{"W2 W3", NETDAM_STATUS_FLUSHED}, {"A2 A3", NETDAM_STATUS_LOCAL_REGION}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t index;
        struct tour_packet packet = {0};

        tour_start(&t, NULL, true);
        index = t.region;
        tour_post(&t, rows[i].list, 8, 1);
        assert_true(tour_sent(&t, &packet));
        assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_REGION_DESTROY, &index, 1, NULL), 0);
        unit_run_for(&t.u, 30 * UNIT_MS);
        assert_int_equal(unit_completion(&t.queue).status, rows[i].status);
        tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory, i == 0 ? 0 : 8);
        unit_expect_no_completion(&t.queue);
        unit_stop(&t.u);
    }
    tour_start(&t, NULL, false); /* before anything was sent */
    {
        uint64_t index = t.region;
        struct tour_packet asked = {0};

        tour_post(&t, "W2", 8, 1);
        tour_expect(&t, 2, NETDAM_OP_CONFIRM, &asked);
        assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_REGION_DESTROY, &index, 1, NULL), 0);
        tour_answer(&t, &asked, 0, NETDAM_STATUS_STALE, TOUR_GENERATION(2), NULL, 0);
        assert_int_equal(unit_completion(&t.queue).status, NETDAM_STATUS_LOCAL_REGION);
        unit_expect_silence(&t.u);
    }
    unit_stop(&t.u);
}

static void a_result_region_that_goes_gets_nothing(void **state)
{
    struct tour_packet packet = {0};
    struct netdam_descriptor d;
    uint64_t index;

    (void)state;
    tour_start(&t, NULL, true);
    index = unit_region(&t.u, 0x30000, 0x1000, NETDAM_PERMISSION_LOCAL_WRITE, 0);
    d = tour_descriptor(&t, "A2 A3", 8, 1);
    d.peer = (uint32_t)index;
    d.u.buffer.result_address = 0x10;
    unit_post(&t.u, &t.queue, &d);
    unit_run(&t.u);
    assert_true(tour_sent(&t, &packet));
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_REGION_DESTROY, &index, 1, NULL), 0);
    unit_memory_put(&t.u, 0x30010, 8, 7);
    tour_answer(&t, &packet, 1, OK, TOUR_GENERATION(3), t.u.node.memory + TOUR_SOURCE, 8);
    assert_int_equal(unit_completion(&t.queue).status, NETDAM_STATUS_LOCAL_REGION);
    assert_true(unit_memory_get(&t.u, 0x30010, 8) == 7);
    unit_stop(&t.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_names_each_node_with_its_generation_and_leaves_the_origin_open),
        cmocka_unit_test(lists_and_descriptors_of_wrong_form_send_nothing),
        cmocka_unit_test(lists_at_the_edge_of_what_is_right),
        cmocka_unit_test(local_permissions_are_needed_for_list_source_and_result),
        cmocka_unit_test(the_list_is_copied_when_the_descriptor_is_taken),
        cmocka_unit_test(first_contact_asks_each_node_that_names_memory),
        cmocka_unit_test(a_dead_node_ends_what_visits_it_and_nothing_else),
        cmocka_unit_test(a_node_that_tells_no_generation_ends_what_visits_it),
        cmocka_unit_test(a_node_without_link_layer_address_is_unreachable),
        cmocka_unit_test(refusals_name_their_hop_and_tell_what_was_stored_before),
        cmocka_unit_test(answers_that_do_not_fit_are_not_taken),
        cmocka_unit_test(long_chains_are_split_by_what_the_list_leaves_of_a_packet),
        cmocka_unit_test(a_refused_packet_of_many_leaves_the_rest_of_a_chain_partial),
        cmocka_unit_test(more_chains_than_places_wait_in_the_ring),
        cmocka_unit_test(busy_is_waited_out_and_ends_as_a_timeout),
        cmocka_unit_test(a_region_that_goes_ends_a_chain_that_is_sent_again),
        cmocka_unit_test(a_result_region_that_goes_gets_nothing),
    };

    return cmocka_run_group_tests_name("tour_ends", tests, NULL, NULL);
}
