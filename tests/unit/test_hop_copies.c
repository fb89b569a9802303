/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains at a node: copies, next nodes and origins, what cannot be sent now, edges of the MTU, hostile lists. */
#include "hop.h"

#define OK            NETDAM_STATUS_OK
#define NOT_FORWARDED NETDAM_STATUS_NOT_FORWARDED

static void change_memory(void)
{
    memset(u.node.memory + CHAIN_BASE, 0x11, CHAIN_LENGTH);
}

static void payload_behind(const struct chain *c, uint8_t payload[CHAIN_LENGTH])
{
    memcpy(payload, c->payload, CHAIN_LENGTH);
    if (c->segments[c->index].opcode == NETDAM_OP_LOAD) {
        chain_memory(&u, payload);
    } else if (c->segments[c->index].opcode == NETDAM_OP_LOAD_REDUCE) {
        ndfw_alu_reduce_into(u.fw, payload, payload, u.node.memory + CHAIN_BASE, CHAIN_LENGTH, NETDAM_ALU_SUM,
                             NETDAM_TYPE_U32);
    }
}

static void destroy_region(void)
{
    const uint64_t index = 0;

    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_DESTROY, &index, 1, NULL), NETDAM_ADMIN_STATUS_OK);
}

static void a_copy_is_passed_on_without_being_executed_again(void **state)
{
    static const char *const lists[] = {"W2 W3", "R2 W3", "C2 W3", "L2 W3", "A2 W3", "F2 W3", "W3 R2 W4", "C3 C2 R4"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        uint8_t payload[CHAIN_LENGTH], after[CHAIN_LENGTH];
        struct chain c;

        start();
        c = chain_of(&u, i % 2 == 0 ? 4 : 6, lists[i]);
        payload_behind(&c, payload);
        chain_receive(&u, &c);
        expect_passed_on(lists[i], &c, payload, CHAIN_LENGTH);
        for (unsigned copy = 1; copy <= 2; copy++) {
            change_memory();
            memcpy(after, u.node.memory + CHAIN_BASE, sizeof(after));
            payload_behind(&c, payload); /* of what is there now */
            c.flags = NETDAM_FLAG_AGAIN;
            chain_receive(&u, &c);
            expect_passed_on(lists[i], &c, payload, CHAIN_LENGTH);
            assert_memory_equal(after, u.node.memory + CHAIN_BASE, sizeof(after));
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED),
                         c.segments[c.index].opcode == NETDAM_OP_FORWARD ? 3 : 1);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDED), 3);
        unit_stop(&u);
    }
}

static void the_last_one_answers_a_copy_from_memory(void **state)
{
    static const char *const lists[] = {"W2", "R2", "W3 R2", "L3 W2", "A3 R2"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct ndtest_packet answer;
        struct chain c;

        start();
        c = chain_of(&u, 4, lists[i]);
        for (unsigned copy = 0; copy < 3; copy++) {
            chain_receive(&u, &c);
            answer = expect_answer(lists[i], &c, OK);
            assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, copy != 0 ? NETDAM_FLAG_AGAIN : 0);
            assert_int_equal(answer.length, CHAIN_LENGTH);
            assert_int_equal(answer.payload_bytes, 0);
            if (copy != 0) { /* nothing was done to it */
                assert_int_equal(u.node.memory[CHAIN_BASE], 0x11);
                assert_int_equal(u.node.memory[CHAIN_BASE + 7], 0x11);
            }
            change_memory();
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REPEATED), 2);
        unit_stop(&u);
    }
}

static void a_copy_that_would_be_refused_now_is_dropped_where_it_reads_and_passes_where_it_does_not(void **state)
{
    static const char *const lists[] = {"L2 W3", "A2 W3", "C2 W3", "W2 W3", "R2 W3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        bool reads = lists[i][0] == 'L' || lists[i][0] == 'A';
        uint8_t payload[CHAIN_LENGTH];
        struct chain c;

        start();
        c = chain_of(&u, 4, lists[i]);
        payload_behind(&c, payload);
        chain_receive(&u, &c);
        expect_passed_on(lists[i], &c, payload, CHAIN_LENGTH);
        destroy_region();
        chain_receive(&u, &c);
        if (reads) {
            expect_dropped(lists[i], 1);
        } else {
            expect_passed_on(lists[i], &c, payload, CHAIN_LENGTH);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REFUSED), 0);
        unit_stop(&u);
    }
}

static void lanes_of_chains_are_like_others(void **state)
{
    static const char *const lists[] = {"W2 W3", "L2 W3", "C2 W3", "A2 W3", "R2 F3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        struct ndtest_packet answer;
        struct chain c;

        start();
        c = chain_of(&u, 4, lists[i]);
        for (unsigned wrong = 0; wrong < 3; wrong++) { /* no generation, one of the epoch, another epoch */
            c.segments[0].generation = wrong == 0 ? 0 : wrong == 1 ? UNIT_GENERATION - 1 : UINT64_C(0x0badbad000000003);
            chain_receive(&u, &c);
            answer = expect_answer(lists[i], &c, NETDAM_STATUS_STALE);
            assert_true(answer.generation == UNIT_GENERATION && answer.echo == c.segments[0].generation);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
        c.segments[0].generation = UNIT_GENERATION;
        c.distance = NETDAM_WINDOW_MAX;
        chain_receive(&u, &c);
        c.distance = CHAIN_NUMBER + 1;
        chain_receive(&u, &c);
        unit_expect_silence(&u);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BEYOND_WINDOW), 2);
        assert_true(memory_is_as_before());
        c.distance = 0; /* executed, with a floor of 7 */
        chain_receive(&u, &c);
        assert_int_equal(u.count, 1);
        unit_drop_sent(&u);
        c.number = CHAIN_NUMBER - 1;
        chain_receive(&u, &c);
        unit_expect_silence(&u);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BELOW_FLOOR), 1);
        c.number = CHAIN_NUMBER + 5; /* sparse */
        c.distance = 3;
        chain_receive(&u, &c);
        assert_int_equal(u.count, 1);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 2);
        unit_stop(&u);
    }
}

static void a_tour_needs_a_generation_of_the_epoch(void **state)
{
    static const char *const lists[] = {"L2 A3", "A2 A3", "C2 C3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        uint8_t payload[CHAIN_LENGTH];
        struct ndtest_packet answer;
        struct chain c;

        start();
        c = chain_of(&u, 4, lists[i]);
        payload_behind(&c, payload);
        c.segments[0].generation = 0;
        chain_receive(&u, &c);
        answer = expect_answer(lists[i], &c, NETDAM_STATUS_STALE);
        assert_true(answer.generation == UNIT_GENERATION && answer.echo == 0);
        c.segments[0].generation = UNIT_GENERATION + 5;
        chain_receive(&u, &c);
        expect_passed_on(lists[i], &c, payload, CHAIN_LENGTH);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
        unit_stop(&u);
    }
}

static void without_room_the_answer_is_busy_and_the_number_stays(void **state)
{
    struct netdam_fw_config config = config_of(1500);
    struct chain c;

    (void)state;
    config.lanes = 4;
    config.lane_windows = 1;
    start_with(&config);
    c = chain_of(&u, 4, "W2 W3");
    c.context = 1;
    chain_receive(&u, &c);
    assert_int_equal(u.count, 1);
    unit_drop_sent(&u);
    c.context = 2;
    chain_receive(&u, &c);
    (void)expect_answer("full", &c, NETDAM_STATUS_BUSY);
    unit_expect_silence(&u);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    unit_stop(&u);
}

static void a_node_with_two_names_does_not_pass_on_its_second_visit(void **state)
{
    struct chain c;

    (void)state;
    start();
    c = chain_of(&u, 4, "W2 W3");
    c.segments[0].node.address[3] = 77; /* names that a translator leads here */
    c.segments[1].node.address[3] = 78;
    set_neighbour(78);
    chain_receive(&u, &c);
    expect_passed_on("first visit", &c, c.payload, CHAIN_LENGTH);
    c.origin = chain_node(4, 1);
    c.index = 1;
    change_memory();
    chain_receive(&u, &c);
    expect_dropped("second visit", 1);
    assert_int_equal(u.node.memory[CHAIN_BASE], 0x11);
    unit_stop(&u);
}

static void a_next_node_outside_the_prefixes_consumes_the_number_where_there_is_a_lane(void **state)
{
    static const char *const lists[] = {"W2 W3", "R2 W3", "C2 W3", "L2 W3", "A2 W3",
                                        "L2 F3", "A2 F3", "C2 F3", "F2 L3"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        bool with_lane = lists[i][0] != 'F' && strpbrk(lists[i], "WR") != NULL;
        const uint64_t neighbour[] = {0xc0000203, 0, 4, UINT64_C(0x020000000003)};
        struct ndtest_packet answer;
        struct chain c;

        start();
        c = chain_of(&u, 4, lists[i]);
        memcpy(c.segments[1].node.address, (uint8_t[]){192, 0, 2, 3}, 4);
        chain_receive(&u, &c);
        answer = expect_answer(lists[i], &c, NOT_FORWARDED);
        assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, 0);
        assert_true(memory_is_as_before());
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), with_lane);
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_NEIGHBOUR_SET, neighbour, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        chain_receive(&u, &c);
        if (with_lane) {
            answer = expect_answer(lists[i], &c, NOT_FORWARDED);
            assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, NETDAM_FLAG_AGAIN);
        } else {
            assert_int_equal(u.count, 1);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDED), 1);
            unit_drop_sent(&u);
        }
        unit_expect_silence(&u);
        assert_true(memory_is_as_before());
        unit_stop(&u);
    }
}

static void a_forward_to_nowhere_is_dropped_in_a_chain_that_stores(void **state)
{
    struct chain c;

    (void)state;
    start();
    c = chain_of(&u, 4, "F2 W3");
    memcpy(c.segments[1].node.address, (uint8_t[]){192, 0, 2, 3}, 4);
    chain_receive(&u, &c);
    expect_dropped("nowhere", 1);
    c = chain_of(&u, 4, "F2 W3");
    c.payload_length--;
    chain_receive(&u, &c);
    expect_dropped("length", 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REFUSED), 0);
    unit_stop(&u);
}

static void a_copy_of_what_was_executed_is_dropped_when_its_next_node_is_none_to_send_to_any_more(void **state)
{
    struct chain c;

    (void)state;
    start();
    c = chain_of(&u, 4, "W2 W3");
    c.segments[1].node.address[3] = 99; /* in the own network, and not set by hand */
    chain_receive(&u, &c);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    unit_drop_sent(&u);
    u.fw->config.ipv4_prefix = 32;
    chain_receive(&u, &c);
    expect_dropped("prefix", 2); /* the first waits for the link-layer address */
    unit_stop(&u);
}

static void chains_go_to_the_configured_prefixes(void **state)
{
    static const struct {
        unsigned family, prefix;
        uint8_t network[16], address[16];
        bool inside;
    } rows[] = {
        {4, 0, {0}, {8, 8, 8, 8}, true},
        {4, 8, {172}, {172, 31, 0, 1}, true},
        {4, 8, {172}, {173, 31, 0, 1}, false},
        {4, 12, {172, 16}, {172, 31, 255, 1}, true},
        {4, 12, {172, 16}, {172, 32, 0, 1}, false},
        {4, 31, {172, 16, 0, 2}, {172, 16, 0, 3}, true},
        {4, 32, {172, 16, 0, 2}, {172, 16, 0, 2}, true},
        {4, 32, {172, 16, 0, 2}, {172, 16, 0, 3}, false},
        {6, 0, {0}, {0x20, 1}, true},
        {6, 8, {0xfd}, {0xfd, 9}, true},
        {6, 8, {0xfc}, {0xfd, 9}, false},
        {6, 7, {0xfc}, {0xfd, 9}, true},
        {6, 128, {0xfd, [15] = 50}, {0xfd, [15] = 50}, true},
        {6, 128, {0xfd, [15] = 50}, {0xfd, [15] = 51}, false},
        {6, 127, {0xfd, [15] = 50}, {0xfd, [15] = 51}, true},
        {4, 8, {0}, {172, 31, 0, 1}, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_fw_config config = config_of(1500);
        struct ndfw_endpoint to = {.family = (uint8_t)rows[i].family, .port = 1};

        config.forward[NETDAM_FW_NETWORKS - 1].family = (uint8_t)rows[i].family;
        config.forward[NETDAM_FW_NETWORKS - 1].prefix = (uint8_t)rows[i].prefix;
        memcpy(config.forward[NETDAM_FW_NETWORKS - 1].address, rows[i].network, 16);
        start_with(&config);
        memcpy(to.address, rows[i].address, 16);
        assert_int_equal(ndfw_may_forward(u.fw, &to), rows[i].inside);
        to.family = (uint8_t)(10 - rows[i].family);
        assert_false(ndfw_may_forward(u.fw, &to));
        unit_stop(&u);
    }
    start();
    {
        struct ndfw_endpoint to = {.family = 4, .address = {10, 0, 0, 200}};

        assert_true(ndfw_may_forward(u.fw, &to)); /* the own network */
        to.address[2] = 1;
        assert_false(ndfw_may_forward(u.fw, &to));
        to = (struct ndfw_endpoint){.family = 6, .address = {0xfd, [15] = 3}};
        assert_true(ndfw_may_forward(u.fw, &to)); /* set by hand */
        to.address[15] = 200;
        assert_false(ndfw_may_forward(u.fw, &to));
        to.address[15] = 2;
        to.port = NETDAM_UDP_PORT;
        assert_true(ndfw_may_forward(u.fw, &to)); /* itself */
    }
    unit_stop(&u);
}

static void the_origin_is_the_sender_with_its_port_and_gets_the_answer(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        struct chain c;

        start();
        c = chain_of(&u, family, "W2 W3");
        c.from_port = 5555;
        chain_receive(&u, &c);
        expect_passed_on("origin", &c, c.payload, CHAIN_LENGTH); /* which looks for address and port */
        c = chain_of(&u, family, "W2");
        c.number++;
        c.from_port = 5555;
        chain_receive(&u, &c);
        (void)expect_answer("sender", &c, OK);
        assert_int_equal(chain_target(&u).port, 5555);
        c = chain_of(&u, family, "W3 W2");
        c.number += 2;
        c.origin = chain_node(family, 7);
        c.origin.port = 6666;
        chain_receive(&u, &c);
        (void)expect_answer("origin", &c, OK);
        assert_int_equal(chain_target(&u).port, 6666);
        assert_int_equal(chain_target(&u).address, 7);
        assert_int_equal(chain_target(&u).mac, 7);
        c.segments[1].key++;
        c.number++;
        chain_receive(&u, &c); /* so does a refusal */
        (void)expect_answer("origin", &c, NETDAM_STATUS_BAD_KEY);
        assert_int_equal(chain_target(&u).address, 7);
        unit_stop(&u);
    }
}

static void nothing_is_sent_to_a_forged_origin(void **state)
{
    static const struct chain_node origins[] = {
        {{192, 0, 2, 1}, NETDAM_UDP_PORT, 0}, {{10, 0, 0, 1}, 0, 0},        {{0}, NETDAM_UDP_PORT, 0},
        {{224, 0, 0, 1}, NETDAM_UDP_PORT, 0}, {{255, 255, 255, 255}, 1, 0}, {{10, 0, 0, 1}, NETDAM_UDP_PORT, 1},
    };

    (void)state;
    start();
    for (size_t i = 0; i < ARRAY_SIZE(origins); i++) {
        for (unsigned wrong = 0; wrong < 4; wrong++) { /* nothing, opcode, list, length */
            struct chain c = chain_of(&u, 4, "W3 W2");

            c.origin = origins[i];
            c.segments[1].opcode = wrong == 1 ? 0xee : c.segments[1].opcode;
            c.segments[0].length += wrong == 2;
            c.payload_length -= wrong == 3;
            chain_receive(&u, &c);
            expect_dropped("forged", 4 * i + wrong + 1);
        }
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
    assert_true(memory_is_as_before());
    unit_stop(&u);
}

static void an_unknown_link_layer_address_is_asked_for_and_the_repetition_gets_through(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        for (unsigned origin = 0; origin < 2; origin++) {
            struct netdam_fw_config config = config_of(1500);
            const uint8_t *asked;
            struct chain c;
            size_t bytes;

            config.forward[0] = (struct netdam_fw_network){.family = 6, .prefix = 8, .address = {0xfd}};
            start_with(&config);
            c = chain_of(&u, family, origin != 0 ? "W3 W2" : "W2 W3");
            if (origin != 0) {
                c.origin = chain_node(family, 50);
            } else {
                c.segments[1].node = chain_node(family, 50);
            }
            chain_receive(&u, &c);
            asked = unit_sent_frame(&u, &bytes);
            assert_non_null(asked);
            assert_int_equal(asked[0], family == 6 ? 0x33 : 0xff);
            unit_expect_silence(&u);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDS_DROPPED), 1);
            /* Who cannot be answered is not executed; who cannot be passed on has been. */
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), origin == 0);
            set_neighbour(50);
            chain_receive(&u, &c);
            if (origin != 0) {
                (void)expect_answer("origin", &c, OK);
                assert_int_equal(chain_target(&u).mac, 50);
            } else {
                expect_passed_on("next", &c, c.payload, CHAIN_LENGTH);
            }
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
            unit_stop(&u);
        }
    }
}

/* What node `last` says about itself: an ARP reply, or an advertisement. */
static void tell(unsigned family, unsigned last)
{
    uint8_t arp[42] = {2, 0, 0, 0, 0, 2, 2, 0,  0, 0, 0, 0, 8, 6, 0, 1, 8, 0,  6, 4, 0,
                       2, 2, 0, 0, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2};
    uint8_t ndp[86] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 32, 58, 255};
    uint16_t checksum;

    if (family == 4) {
        arp[11] = arp[27] = arp[31] = (uint8_t)last;
        unit_receive(&u, arp, sizeof(arp));
        return;
    }
    ndp[11] = (uint8_t)last;
    ndp[22] = ndp[38] = ndp[62] = 0xfd;
    ndp[37] = ndp[77] = ndp[85] = (uint8_t)last;
    ndp[53] = 2;
    ndp[54] = 136;
    ndp[58] = 0x60;
    ndp[78] = 2;
    ndp[79] = 1;
    ndp[80] = 2;
    checksum = ndfw_checksum_ipv6(ndp + 14, 58, ndp + 54, 32);
    unit_put16(ndp + 56, checksum);
    unit_receive(&u, ndp, sizeof(ndp));
}

/* A node of memory only, which has no peers, learns the addresses of those that chains lead to, and no others. */
static void a_node_without_peers_learns_where_chains_lead(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        for (unsigned crowd = 0; crowd < 2; crowd++) {
            struct netdam_fw_config config = config_of(1500);
            struct chain c;

            config.forward[0] = (struct netdam_fw_network){.family = 6, .prefix = 8, .address = {0xfd}};
            config.neighbours = 20; /* 18 are set by hand */
            start_with(&config);
            for (unsigned i = 0; i < 10 * crowd; i++) { /* asked for in vain */
                c = chain_of(&u, family, "F2 F3");
                c.segments[1].node = chain_node(family, 100 + i);
                chain_receive(&u, &c);
            }
            unit_drop_sent(&u);
            c = chain_of(&u, family, "W2 W3");
            c.segments[1].node = chain_node(family, 50);
            tell(family, 50); /* nobody has asked */
            chain_receive(&u, &c);
            assert_int_equal(u.count, 1); /* the question */
            unit_drop_sent(&u);
            tell(family, 51);
            chain_receive(&u, &c);
            assert_int_equal(u.count, 1);
            unit_drop_sent(&u);
            tell(family, 50);
            chain_receive(&u, &c);
            expect_passed_on("learnt", &c, c.payload, CHAIN_LENGTH);
            unit_stop(&u);
        }
    }
}

static void a_full_port_drops_what_was_executed_and_a_copy_gets_through(void **state)
{
    struct chain c;

    (void)state;
    start();
    c = chain_of(&u, 4, "R2 W3");
    u.port_room = 0;
    chain_receive(&u, &c);
    expect_dropped("full", 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDED), 0);
    u.port_room = UINT32_MAX;
    chain_receive(&u, &c);
    expect_passed_on("room", &c, c.payload, CHAIN_LENGTH);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    unit_stop(&u);
}

/* A chain whose origin is this node itself: the answer comes through the loopback. */
static void the_origin_may_be_the_node_itself(void **state)
{
    struct chain c;

    (void)state;
    start();
    c = chain_of(&u, 4, "W3 W2");
    c.origin = chain_node(4, 2);
    chain_receive(&u, &c);
    unit_expect_silence(&u);
    unit_run(&u);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 1);
    unit_stop(&u);
}

static void payload_grows_up_to_the_mtu_and_no_further(void **state)
{
    static const char *const ops = "WLA";

    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        for (unsigned mtu = 1500; mtu <= 9000; mtu += 7500) {
            for (unsigned op = 0; op < 3; op++) {
                unsigned overhead = (family == 6 ? 40 : 20) + 8 + 32 + 4, node = family == 6 ? 24 : 8;
                struct netdam_fw_config config = config_of(mtu);
                struct chain c;
                uint32_t most;

                start_with(&config);
                c = chain_of(&u, family, "F2");
                c.segments[0] = chain_segment(family, ops[op], 2);
                for (c.count = 1; c.count < NETDAM_SEGMENTS_MAX; c.count++) {
                    c.segments[c.count] = chain_segment(family, 'F', c.count + 2);
                }
                if (overhead + node + c.count * (32 + node) > mtu) { /* the list alone is too long */
                    c.count = (mtu - overhead - node) / (32 + node);
                }
                most = (mtu - overhead - node - c.count * (32 + node)) & ~3u;
                c.segments[0].length = most;
                c.payload_length = ops[op] == 'L' ? 0 : most;
                chain_receive(&u, &c);
                assert_int_equal(u.count, 1);
                assert_true(u.frames[u.first].bytes <= 14 + mtu && u.frames[u.first].bytes > 10 + mtu);
                assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDED), 1);
                unit_drop_sent(&u);
                c.number++;
                c.no_crc = true; /* so that it comes in, but could not go on with one */
                c.segments[0].length += 4;
                c.payload_length += ops[op] == 'L' ? 0 : 4;
                chain_receive(&u, &c);
                (void)expect_answer("too long", &c, NETDAM_STATUS_BAD_LENGTH);
                unit_expect_silence(&u);
                unit_stop(&u);
            }
        }
    }
}

static void a_crc_is_kept_or_added_as_configured(void **state)
{
    (void)state;
    for (unsigned without = 0; without < 2; without++) {
        struct netdam_fw_config config = config_of(1500);
        struct chain c;

        config.no_payload_crc = without != 0;
        start_with(&config);
        c = chain_of(&u, 4, "W2 W3");
        chain_receive(&u, &c);
        expect_passed_on("with", &c, c.payload, CHAIN_LENGTH);
        c.number++;
        c.no_crc = true;
        chain_receive(&u, &c);
        expect_passed_on("without", &c, c.payload, CHAIN_LENGTH);
        c = chain_of(&u, 4, "F2 F3");
        c.flags = NETDAM_FLAG_PAYLOAD_CRC; /* set, and there is nothing to cover */
        chain_receive(&u, &c);
        c.flags = 0;
        expect_passed_on("nothing", &c, c.payload, 0);
        unit_stop(&u);
    }
}

/* Whatever the list says: nothing beyond the region, nothing to strangers, nothing longer than the MTU. */
static void hostile_lists_do_no_harm(void **state)
{
    static uint8_t frame[UNIT_FRAME_ROOM], outside[CHAIN_BASE];
    static const char *const lists[] = {"W2 W3 W4", "L2 A3 W4", "A2 A3",    "C2 W3",    "F2 W3",
                                        "L3 W2",    "W3 R2",    "A3 A2 A4", "F3 L2 A4", "C2 C3 C4"};
    struct ndtest_random random = {20261130};
    struct netdam_fw_config config = config_of(1500);
    unsigned passed = 0, answered = 0;

    (void)state;
    start_with(&config);
    memcpy(outside, u.node.memory, sizeof(outside));
    for (unsigned n = 0; n < 60000; n++) {
        struct chain c = chain_of(&u, n % 2 == 0 ? 4 : 6, lists[n % ARRAY_SIZE(lists)]);
        size_t headers = n % 2 == 0 ? 42 : 62, bytes, got;
        const uint8_t *sent;

        c.number += n / 4;
        c.distance = (uint16_t)(n % 8);
        bytes = chain_frame(frame, &c);
        for (uint64_t flips = ndtest_random_below(&random, 4); flips != 0; flips--) {
            frame[headers + ndtest_random_below(&random, bytes - headers)] = (uint8_t)ndtest_random_next(&random);
        }
        ndtest_frame_repair(frame, bytes, false);
        unit_receive(&u, frame, bytes);
        while ((sent = unit_sent_frame(&u, &got)) != NULL) {
            assert_true(got <= 14 + 1500);
            if ((sent[12] == 8 && sent[13] == 0) || sent[12] == 0x86) { /* not ARP */
                bool request = sent[12] == 8 ? sent[43] == NETDAM_KIND_REQUEST : sent[63] == NETDAM_KIND_REQUEST;

                assert_true(sent[12] == 8 ? sent[30] == 10 && sent[31] == 0 && sent[32] == 0
                                          : sent[38] == 0xfd || sent[38] == 0xff);
                passed += request;
                answered += !request;
            }
        }
        unit_advance(&u, UNIT_MS);
        if (n % 1000 == 0) {
            assert_true(ndtest_node_guards_intact(&u.node));
            assert_memory_equal(outside, u.node.memory, sizeof(outside));
        }
    }
    assert_true(passed > 1000 && answered > 1000);
    assert_memory_equal(outside, u.node.memory, sizeof(outside));
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_passed_on_without_being_executed_again),
        cmocka_unit_test(the_last_one_answers_a_copy_from_memory),
        cmocka_unit_test(a_copy_that_would_be_refused_now_is_dropped_where_it_reads_and_passes_where_it_does_not),
        cmocka_unit_test(lanes_of_chains_are_like_others),
        cmocka_unit_test(a_tour_needs_a_generation_of_the_epoch),
        cmocka_unit_test(without_room_the_answer_is_busy_and_the_number_stays),
        cmocka_unit_test(a_node_with_two_names_does_not_pass_on_its_second_visit),
        cmocka_unit_test(a_next_node_outside_the_prefixes_consumes_the_number_where_there_is_a_lane),
        cmocka_unit_test(a_forward_to_nowhere_is_dropped_in_a_chain_that_stores),
        cmocka_unit_test(a_copy_of_what_was_executed_is_dropped_when_its_next_node_is_none_to_send_to_any_more),
        cmocka_unit_test(chains_go_to_the_configured_prefixes),
        cmocka_unit_test(the_origin_is_the_sender_with_its_port_and_gets_the_answer),
        cmocka_unit_test(nothing_is_sent_to_a_forged_origin),
        cmocka_unit_test(an_unknown_link_layer_address_is_asked_for_and_the_repetition_gets_through),
        cmocka_unit_test(a_node_without_peers_learns_where_chains_lead),
        cmocka_unit_test(a_full_port_drops_what_was_executed_and_a_copy_gets_through),
        cmocka_unit_test(the_origin_may_be_the_node_itself),
        cmocka_unit_test(payload_grows_up_to_the_mtu_and_no_further),
        cmocka_unit_test(a_crc_is_kept_or_added_as_configured),
        cmocka_unit_test(hostile_lists_do_no_harm),
    };

    return cmocka_run_group_tests_name("hop_copies", tests, NULL, NULL);
}
