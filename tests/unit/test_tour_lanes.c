/* SPDX-License-Identifier: BSD-3-Clause */
/* What the context of chains knows of each node: generations, floors, confirmations; closing, flushing, new numbers. */
#include "tour.h"

#define OK    NETDAM_STATUS_OK
#define STALE NETDAM_STATUS_STALE

/* Another epoch of a node, and another count of the same. */
#define OTHER_EPOCH(node) (TOUR_GENERATION(node) + (UINT64_C(0x100) << 32))
#define OTHER_COUNT(node) (TOUR_GENERATION(node) + 1)

static struct tour t;

/* Packets until nothing more comes; CONFIRMs are counted by node. */
static unsigned drain(struct tour_packet *packets, unsigned room, unsigned confirms[TOUR_LAST + 1])
{
    struct tour_packet packet = {0};
    unsigned count = 0;

    while (tour_sent(&t, &packet)) {
        if (packet.p.opcode == NETDAM_OP_CONFIRM && packet.p.node_form == 0) {
            confirms[packet.to]++;
        } else {
            assert_true(count < room);
            packets[count] = packet;
            packets[count].p.header = packets[count].frame + (packet.p.header - packet.frame);
            packets[count].p.segments = packets[count].frame + (packet.p.segments - packet.frame);
            packets[count].p.payload = packets[count].frame + (packet.p.payload - packet.frame);
            count++;
        }
    }
    return count;
}

static void stale_within_an_epoch_sends_what_visits_the_node_again(void **state)
{
    static struct tour_packet sent[4], again[4];
    unsigned confirms[TOUR_LAST + 1] = {0};

    (void)state;
    for (unsigned hop = 0; hop < 3; hop++) {
        unsigned node = 2 + hop;

        tour_start(&t, NULL, true);
        tour_post(&t, "W2 W3 W4", 8, 1);
        tour_post(&t, "A5 A4 A3", 8, 2);
        tour_post(&t, "W5 W6", 8, 3); /* visits none of them */
        assert_int_equal(drain(sent, 4, confirms), 3);
        tour_answer(&t, &sent[0], hop, STALE, OTHER_COUNT(node), NULL, 0);
        assert_true(tour_way(&t, node)->generation == OTHER_COUNT(node));
        assert_int_equal(drain(again, 4, confirms), node == 2 ? 1 : 2);
        assert_true(again[0].p.number == sent[0].p.number);
        for (unsigned k = 0; k < 3; k++) {
            assert_true(tour_generation(&again[0], k) == (k == hop ? OTHER_COUNT(2 + k) : TOUR_GENERATION(2 + k)));
        }
        assert_true(node == 2 || again[1].p.number == sent[1].p.number);
        /* Late copies of that STALE echo the old generation. */
        tour_answer(&t, &sent[0], hop, STALE, OTHER_COUNT(node), NULL, 0);
        tour_answer(&t, &sent[0], hop, STALE, OTHER_EPOCH(node), NULL, 0);
        /* Nor is one believed that names the generation in use, or a number that there is not. */
        tour_answer(&t, &again[0], hop, STALE, OTHER_COUNT(node), NULL, 0);
        again[0].p.number += 7;
        tour_answer(&t, &again[0], hop, STALE, OTHER_EPOCH(node), NULL, 0);
        again[0].p.number -= 7;
        assert_true(tour_way(&t, node)->generation == OTHER_COUNT(node));
        unit_expect_silence(&t.u);
        unit_expect_no_completion(&t.queue);
        for (unsigned i = 0; i < 3; i++) {
            tour_answer(&t, &sent[i], i < 2 ? 2 : 1, OK, 1, t.u.node.memory, i == 1 ? 8 : 0);
            tour_expect_end(&t, i + 1, OK, 0, 0);
        }
        /* It may have a lane there now, which is confirmed as all others are. */
        memset(confirms, 0, sizeof(confirms));
        unit_run_for(&t.u, 105 * UNIT_MS);
        assert_int_equal(drain(again, 0, confirms), 0);
        for (unsigned other = 2; other <= TOUR_LAST; other++) {
            assert_int_equal(confirms[other], 1);
        }
        unit_stop(&t.u);
    }
}

static void another_epoch_ends_as_unknown_what_has_a_lane_there(void **state)
{
    static const struct {
        const char *list;
        unsigned hop; /* of node 3 */
        bool unknown;
    } rows[] = {
        {"W2 W3 W4", 1, true},  {"W3", 0, true},        {"C3 W2", 0, true},  {"L3 W2", 0, true},
        {"A3 R2", 0, true},     {"W2 F3 W4", 1, false}, {"F3 W2", 0, false}, {"A2 A3 A4", 1, false},
        {"W2 C3 F4", 1, false}, {"W2 F3", 1, false},    {"W2 A3", 1, false}, {"W2 W4", 99, false},
        {"A2 A3", 1, false},
    };
    static struct tour_packet sent[4], probe[1];
    unsigned confirms[TOUR_LAST + 1] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        tour_start(&t, NULL, true);
        tour_post(&t, rows[i].list, 8, 1);
        assert_int_equal(drain(sent, 1, confirms), 1);
        tour_post(&t, "A3 A5", 8, 2); /* which is told */
        assert_int_equal(drain(probe, 1, confirms), 1);
        tour_answer(&t, &probe[0], 0, STALE, OTHER_EPOCH(3), NULL, 0);
        if (rows[i].unknown) {
            tour_expect_end(&t, 1, NETDAM_STATUS_UNKNOWN, rows[i].hop, 0);
        }
        if (ndtest_queue_ready(&t.queue) != 0) {
            fail_msg("%s: has ended", rows[i].list);
        }
        /* A chain posted now carries the new one, and is not concerned. */
        tour_post(&t, "W3", 8, 3);
        (void)drain(sent, 4, confirms);
        tour_answer(&t, &probe[0], 1, OK, 1, t.u.node.memory, 8);
        tour_expect_end(&t, 2, OK, 0, 0);
        unit_expect_no_completion(&t.queue);
        unit_stop(&t.u);
    }
}

static void an_idle_requester_confirms_its_floor_to_each_node_that_has_a_lane(void **state)
{
    static struct tour_packet packets[3];
    struct tour_packet confirm = {0};

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 C3 F4 R5 A6", 8, 1);
    assert_true(tour_sent(&t, &packets[0]));
    tour_answer(&t, &packets[0], 4, OK, TOUR_GENERATION(6), (uint8_t[8]){0}, 8);
    tour_expect_end(&t, 1, OK, 0, 0);
    unit_run_for(&t.u, 99 * UNIT_MS);
    unit_expect_silence(&t.u);
    unit_run_for(&t.u, 2 * UNIT_MS);
    for (unsigned node = 2; node <= 5; node++) {
        if (node == 4) {
            continue;
        }
        tour_expect(&t, node, NETDAM_OP_CONFIRM, &confirm);
        assert_true(confirm.p.number == 2 && confirm.p.generation == TOUR_GENERATION(node));
        assert_int_equal(confirm.p.distance, t.peers[node]);
        packets[node == 5 ? 2 : node - 2] = confirm;
        packets[node == 5 ? 2 : node - 2].p.segments = packets[node == 5 ? 2 : node - 2].frame + 42 + 32;
    }
    unit_expect_silence(&t.u);
    /* An answer with another distance is another node's. */
    packets[0].p.distance = (uint16_t)t.peers[3];
    tour_answer(&t, &packets[0], 0, OK, TOUR_GENERATION(2), NULL, 0);
    assert_true(!ndfw_way_is_confirmed(tour_way(&t, 2)) && !ndfw_way_is_confirmed(tour_way(&t, 3)));
    packets[0].p.distance = 500;
    tour_answer(&t, &packets[0], 0, OK, TOUR_GENERATION(2), NULL, 0);
    packets[0].p.distance = 7; /* a handle that is not open */
    tour_answer(&t, &packets[0], 0, OK, TOUR_GENERATION(2), NULL, 0);
    packets[0].p.distance = (uint16_t)t.peers[2];
    packets[0].p.number = 3; /* of a floor that there was not yet */
    tour_answer(&t, &packets[0], 0, OK, TOUR_GENERATION(2), NULL, 0);
    assert_false(ndfw_way_is_confirmed(tour_way(&t, 2)));
    assert_int_equal(unit_counter(&t.u, NETDAM_COUNTER_RESPONSES_UNMATCHED), 4);
    packets[0].p.number = 2;
    tour_answer(&t, &packets[0], 0, NETDAM_STATUS_BUSY, TOUR_GENERATION(2), NULL, 0);
    assert_false(ndfw_way_is_confirmed(tour_way(&t, 2)));
    tour_answer(&t, &packets[0], 0, OK, TOUR_GENERATION(2), NULL, 0);
    tour_answer(&t, &packets[1], 0, OK, TOUR_GENERATION(3), NULL, 0);
    assert_true(ndfw_way_is_confirmed(tour_way(&t, 2)) && ndfw_way_is_confirmed(tour_way(&t, 3)));
    /* Who does not answer is asked again, and given up. */
    unit_run_for(&t.u, 1000 * UNIT_MS);
    for (unsigned i = 0; i < 5; i++) {
        tour_expect(&t, 5, NETDAM_OP_CONFIRM, &confirm);
    }
    unit_expect_silence(&t.u);
    assert_true(ndfw_way_is_confirmed(tour_way(&t, 5)));
    unit_stop(&t.u);
}

static void the_floor_is_confirmed_only_when_nothing_older_is_under_way(void **state)
{
    static struct tour_packet packets[2];
    unsigned confirms[TOUR_LAST + 1] = {0};
    struct netdam_fw_config config = tour_config();

    (void)state;
    config.rto_initial_ns = config.rto_min_ns = config.rto_max_ns = 100000 * UNIT_MS;
    tour_start(&t, &config, true);
    tour_post(&t, "W2 W3", 8, 1); /* stays under way */
    tour_post(&t, "W4 W5", 8, 2);
    assert_int_equal(drain(packets, 2, confirms), 2);
    tour_answer(&t, &packets[1], 1, OK, TOUR_GENERATION(5), NULL, 0);
    unit_run_for(&t.u, 350 * UNIT_MS);
    unit_expect_silence(&t.u);
    tour_answer(&t, &packets[0], 1, OK, TOUR_GENERATION(3), NULL, 0);
    unit_run_for(&t.u, 110 * UNIT_MS);
    assert_int_equal(drain(packets, 0, confirms), 0);
    for (unsigned node = 2; node <= 5; node++) {
        assert_int_equal(confirms[node], 1);
    }
    unit_stop(&t.u);
}

static void closing_a_peer_flushes_what_visits_its_node(void **state)
{
    static struct tour_packet packets[4];
    unsigned confirms[TOUR_LAST + 1] = {0};
    struct tour_packet confirm = {0};
    uint64_t peer;

    (void)state;
    tour_start(&t, NULL, true);
    tour_way(&t, 6)->generation = 0;
    tour_post(&t, "W4 W5", 8, 1);
    tour_post(&t, "W2 W3", 8, 2);
    tour_post(&t, "A3 A4", 8, 3);
    tour_post(&t, "W3 W6", 8, 4); /* waits for node 6 */
    assert_int_equal(drain(packets, 4, confirms), 3);
    assert_int_equal(confirms[6], 1);
    peer = t.peers[3];
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_CLOSE, &peer, 1, NULL), 0);
    tour_expect_end(&t, 2, NETDAM_STATUS_FLUSHED, 1, 0);
    tour_expect_end(&t, 3, NETDAM_STATUS_FLUSHED, 0, 0);
    tour_expect_end(&t, 4, NETDAM_STATUS_FLUSHED, 0, 0);
    unit_expect_no_completion(&t.queue);
    tour_post(&t, "W3", 8, 5);
    tour_expect_end(&t, 5, NETDAM_STATUS_LOCAL_PEER, 0, 0);
    /* The handle stays until the node has heard the floor, which is held down by the other chain. */
    unit_run_for(&t.u, 5 * UNIT_MS);
    assert_true(t.u.fw->peers[peer].in_use && t.u.fw->peers[peer].closing);
    tour_answer(&t, &packets[0], 1, OK, TOUR_GENERATION(5), NULL, 0);
    tour_expect_end(&t, 1, OK, 0, 0);
    unit_run_for(&t.u, 110 * UNIT_MS);
    do {
        assert_true(tour_sent(&t, &confirm));
    } while (confirm.to != 3);
    assert_int_equal(confirm.p.opcode, NETDAM_OP_CONFIRM);
    assert_int_equal(confirm.p.number, tour_context(&t)->lane.floor);
    tour_answer(&t, &confirm, 0, OK, TOUR_GENERATION(3), NULL, 0);
    assert_false(t.u.fw->peers[peer].in_use);
    unit_stop(&t.u);
}

static void a_late_answer_to_a_peer_that_was_closed_is_not_for_the_next_one(void **state)
{
    struct tour_packet before = {0}, after = {0}, packet = {0};
    uint64_t peer;

    (void)state;
    tour_start(&t, NULL, false);
    tour_post(&t, "W2", 8, 1);
    tour_expect(&t, 2, NETDAM_OP_CONFIRM, &before);
    peer = t.peers[2];
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_CLOSE, &peer, 1, NULL), 0);
    tour_expect_end(&t, 1, NETDAM_STATUS_FLUSHED, 0, 0);
    t.peers[4] = tour_open(&t, 4, true);
    assert_int_equal(t.peers[4], peer);
    tour_post(&t, "W4", 8, 2);
    tour_expect(&t, 4, NETDAM_OP_CONFIRM, &after);
    tour_answer(&t, &before, 0, STALE, TOUR_GENERATION(2), NULL, 0);
    assert_int_equal(tour_way(&t, 4)->generation, 0);
    unit_expect_silence(&t.u);
    tour_answer(&t, &after, 0, STALE, TOUR_GENERATION(4), NULL, 0);
    tour_expect(&t, 4, NETDAM_OP_WRITE, &packet);
    assert_true(tour_generation(&packet, 0) == TOUR_GENERATION(4));
    unit_stop(&t.u);
}

static void a_node_that_wants_to_hear_the_floor_of_chains_hears_it_at_once(void **state)
{
    struct tour_packet packet = {0}, confirm = {0};
    struct unit_answer wish = {.flags = NETDAM_FLAG_CONFIRM_WANTED, .length = 8};
    static uint8_t frame[UNIT_FRAME_ROOM];
    struct ndtest_packet last;
    size_t bytes;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 W3", 8, 1);
    tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
    last = packet.p;
    last.generation = TOUR_GENERATION(3);
    bytes = unit_answer_frame(frame, 1, &last, &wish);
    frame[42 + 4] = 2;
    frame[42 + 5] = frame[42 + 32 + 3] = 1;
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&t.u, frame, bytes);
    unit_run(&t.u);
    tour_expect_end(&t, 1, OK, 0, 0);
    tour_expect(&t, 3, NETDAM_OP_CONFIRM, &confirm); /* the one that answered, not the other */
    unit_expect_silence(&t.u);
    tour_answer(&t, &confirm, 0, OK, TOUR_GENERATION(3), NULL, 0);
    unit_run_for(&t.u, 101 * UNIT_MS);
    tour_expect(&t, 2, NETDAM_OP_CONFIRM, &confirm);
    unit_stop(&t.u);
}

static void confirmations_of_chains_that_are_answered_late_are_sent_all_the_same(void **state)
{
    static struct tour_packet confirm, before, packet;

    (void)state;
    tour_start(&t, NULL, true);
    for (unsigned round = 0; round < 20; round++) {
        before = confirm;
        before.p.segments = before.frame + (confirm.p.segments - confirm.frame);
        tour_post(&t, "W2", 8, round);
        tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
        if (round != 0) {
            tour_answer(&t, &before, 0, OK, TOUR_GENERATION(2), NULL, 0);
        }
        tour_answer(&t, &packet, 0, OK, TOUR_GENERATION(2), NULL, 0);
        tour_expect_end(&t, round, OK, 0, 0);
        unit_run_for(&t.u, 101 * UNIT_MS);
        tour_expect(&t, 2, NETDAM_OP_CONFIRM, &confirm);
        unit_drop_sent(&t.u);
    }
    unit_stop(&t.u);
}

static void a_closed_peer_whose_node_confirms_little_by_little_is_released_in_the_end(void **state)
{
    enum { CHAINS = 40 };
    struct tour_packet packet = {0};
    unsigned asked = 0;
    uint64_t peer;

    (void)state;
    tour_start(&t, NULL, true);
    for (unsigned i = 1; i <= CHAINS; i++) {
        tour_post(&t, "W2", 8, i);
        tour_expect(&t, 2, NETDAM_OP_WRITE, &packet);
        tour_answer(&t, &packet, 0, OK, TOUR_GENERATION(2), NULL, 0);
        tour_expect_end(&t, i, OK, 0, 0);
    }
    peer = t.peers[2];
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_CLOSE, &peer, 1, NULL), 0);
    for (unsigned i = 0; i < 10 * CHAINS; i++) {
        unit_run_for(&t.u, 10 * UNIT_MS);
        if (tour_sent(&t, &packet)) {
            assert_int_equal(packet.p.opcode, NETDAM_OP_CONFIRM);
            asked++;
            packet.p.number = 1 + asked;
            tour_answer(&t, &packet, 0, OK, TOUR_GENERATION(2), NULL, 0);
        }
    }
    assert_int_equal(asked, 1 + t.u.fw->config.retries);
    assert_false(t.u.fw->peers[peer].in_use);
    unit_stop(&t.u);
}

static void a_closed_peer_whose_node_is_dead_is_released_in_the_end(void **state)
{
    struct tour_packet packet = {0};
    uint64_t peer;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W3 W2", 8, 1);
    assert_true(tour_sent(&t, &packet));
    peer = t.peers[3];
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_CLOSE, &peer, 1, NULL), 0);
    tour_expect_end(&t, 1, NETDAM_STATUS_FLUSHED, 0, 0);
    unit_run_for(&t.u, 2000 * UNIT_MS);
    assert_false(t.u.fw->peers[peer].in_use);
    unit_stop(&t.u);
    /* One that answers with another generation has nothing to be told. */
    tour_start(&t, NULL, true);
    tour_post(&t, "W3 W2", 8, 1);
    peer = t.peers[3];
    assert_int_equal(unit_admin(&t.u, NETDAM_ADMIN_PEER_CLOSE, &peer, 1, NULL), 0);
    unit_run(&t.u);
    do {
        assert_true(tour_sent(&t, &packet));
    } while (packet.p.opcode != NETDAM_OP_CONFIRM);
    tour_answer(&t, &packet, 0, STALE, OTHER_EPOCH(3), NULL, 0);
    assert_false(t.u.fw->peers[peer].in_use);
    unit_stop(&t.u);
}

static void destroying_the_queue_pair_flushes_its_chains_in_every_state(void **state)
{
    static struct tour_packet packets[4];
    unsigned confirms[TOUR_LAST + 1] = {0}, free_before, free_after = 0;
    struct netdam_fw_config config = tour_config();

    (void)state;
    config.chains = 3;
    tour_start(&t, &config, true);
    tour_way(&t, 6)->generation = 0;
    free_before = 3;
    tour_post(&t, "W2 W3", 8, 1); /* under way */
    tour_post(&t, "W6", 8, 2);    /* waits for a generation */
    tour_post(&t, "W2 W3", 2600, 3);
    tour_post(&t, "W4", 8, 4); /* waits for a place */
    assert_int_equal(drain(packets, 4, confirms), 3);
    tour_answer(&t, &packets[1], 1, OK, TOUR_GENERATION(3), NULL, 0);
    assert_int_equal(ndtest_queue_destroy(&t.queue, t.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 1; i <= 4; i++) {
        struct netdam_completion completion = unit_completion(&t.queue);

        assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
        assert_int_equal(completion.flags, completion.user_data == 3 ? NETDAM_COMPLETION_PARTIAL : 0);
    }
    for (uint32_t at = t.u.fw->tour_free; at != NDFW_NONE; at = t.u.fw->tours[at].next_free) {
        free_after++;
    }
    assert_int_equal(free_after, free_before);
    assert_int_equal(tour_context(&t)->lane.flying, 0);
    for (unsigned node = 2; node <= TOUR_LAST; node++) {
        assert_int_equal(tour_way(&t, node)->flying, 0);
    }
    tour_answer(&t, &packets[0], 1, OK, TOUR_GENERATION(3), NULL, 0); /* late */
    unit_run_for(&t.u, 500 * UNIT_MS);
    unit_stop(&t.u);
}

static void stopping_confirms_what_chains_have_left(void **state)
{
    struct tour_packet packet = {0};
    unsigned told = 0;

    (void)state;
    tour_start(&t, NULL, true);
    tour_post(&t, "W2 A3 R4", 8, 1);
    assert_true(tour_sent(&t, &packet));
    ndtest_node_stop(&t.u.node, t.u.now_ns);
    assert_int_equal(unit_completion(&t.queue).status, NETDAM_STATUS_FLUSHED);
    while (tour_sent(&t, &packet)) {
        assert_int_equal(packet.p.opcode, NETDAM_OP_CONFIRM);
        assert_true(packet.p.number == 2);
        told |= 1u << packet.to;
    }
    assert_int_equal(told, 1u << 2 | 1u << 3 | 1u << 4);
    unit_stop(&t.u);
}

static void when_the_numbers_run_out_the_nodes_are_told_and_a_new_context_begins(void **state)
{
    struct netdam_fw_config config = tour_config();
    static struct tour_packet packets[4];
    struct tour_packet confirm = {0};
    unsigned confirms[TOUR_LAST + 1] = {0}, told = 0;
    uint64_t before;

    (void)state;
    config.first_number = NETDAM_NUMBER_MAX - 2;
    tour_start(&t, &config, true);
    before = tour_context(&t)->context;
    for (unsigned i = 1; i <= 4; i++) {
        tour_post(&t, "W2 W3", 8, i);
    }
    assert_int_equal(drain(packets, 4, confirms), 2); /* the last two numbers */
    assert_true(packets[0].p.number == NETDAM_NUMBER_MAX - 2 && packets[1].p.number == NETDAM_NUMBER_MAX - 1);
    for (unsigned i = 0; i < 2; i++) {
        tour_answer(&t, &packets[i], 1, OK, TOUR_GENERATION(3), NULL, 0);
        tour_expect_end(&t, i + 1, OK, 0, 0);
    }
    unit_expect_silence(&t.u);
    unit_run_for(&t.u, 101 * UNIT_MS);
    for (unsigned i = 0; i < 2; i++) { /* in whatever order */
        assert_true(tour_sent(&t, &confirm));
        assert_int_equal(confirm.p.opcode, NETDAM_OP_CONFIRM);
        assert_in_range(confirm.to, 2, 3);
        told |= 1u << confirm.to;
        assert_true(confirm.p.context == before && confirm.p.number == NETDAM_NUMBER_MAX);
        tour_answer(&t, &confirm, 0, OK, TOUR_GENERATION(confirm.to), NULL, 0);
    }
    assert_int_equal(told, 1u << 2 | 1u << 3);
    assert_true(tour_context(&t)->context != before);
    for (unsigned i = 0; i < 2; i++) { /* the new context asks, as any does */
        assert_true(tour_sent(&t, &confirm));
        assert_true(confirm.p.opcode == NETDAM_OP_CONFIRM && confirm.p.generation == 0);
        tour_answer(&t, &confirm, 0, STALE, TOUR_GENERATION(confirm.to), NULL, 0);
    }
    assert_int_equal(drain(packets, 4, confirms), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(packets[i].p.context == tour_context(&t)->context);
        assert_true(packets[i].p.number == config.first_number + i);
        tour_answer(&t, &packets[i], 1, OK, TOUR_GENERATION(3), NULL, 0);
        tour_expect_end(&t, i + 3, OK, 0, 0);
    }
    unit_stop(&t.u);
}

/* One round trip is as many hops as the list has, and one. */
static void the_time_out_grows_with_the_list(void **state)
{
    static struct tour_packet packets[4];
    unsigned confirms[TOUR_LAST + 1] = {0};

    (void)state;
    for (unsigned nodes = 1; nodes <= 4; nodes++) {
        static const char *const lists[] = {"W2", "W2 W3", "W2 W3 W4", "W2 W3 W4 W5"};

        tour_start(&t, NULL, true);
        tour_post(&t, lists[nodes - 1], 8, 1);
        assert_int_equal(drain(packets, 4, confirms), 1);
        unit_run_for(&t.u, 10 * UNIT_MS * ((nodes + 1) / 2 + 1) - 1);
        unit_expect_silence(&t.u);
        unit_run_for(&t.u, 1);
        assert_int_equal(drain(packets, 4, confirms), 1);
        assert_int_equal(packets[0].p.flags & NETDAM_FLAG_AGAIN, NETDAM_FLAG_AGAIN);
        unit_stop(&t.u);
    }
}

static void a_full_port_holds_chains_back_and_confirmations(void **state)
{
    static struct tour_packet packets[4];
    unsigned confirms[TOUR_LAST + 1] = {0};

    (void)state;
    tour_start(&t, NULL, false);
    t.u.port_room = 0;
    tour_post(&t, "W2 W3", 8, 1);
    unit_run_for(&t.u, 5 * UNIT_MS);
    t.u.port_room = UINT32_MAX;
    unit_run(&t.u);
    assert_int_equal(drain(packets, 4, confirms), 0);
    assert_true(confirms[2] == 1 && confirms[3] == 1);
    tour_way(&t, 2)->generation = TOUR_GENERATION(2);
    tour_way(&t, 3)->generation = TOUR_GENERATION(3);
    t.u.port_room = 0;
    unit_run_for(&t.u, UNIT_MS);
    t.u.port_room = UINT32_MAX;
    unit_run(&t.u);
    assert_int_equal(drain(packets, 4, confirms), 1);
    assert_int_equal(packets[0].p.flags & NETDAM_FLAG_AGAIN, 0);
    t.u.port_room = 0;
    unit_advance(&t.u, 25 * UNIT_MS);
    unit_run(&t.u);
    t.u.port_room = UINT32_MAX;
    unit_run(&t.u);
    assert_int_equal(drain(packets, 4, confirms), 1);
    assert_int_equal(packets[0].p.flags & NETDAM_FLAG_AGAIN, NETDAM_FLAG_AGAIN);
    unit_stop(&t.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_within_an_epoch_sends_what_visits_the_node_again),
        cmocka_unit_test(another_epoch_ends_as_unknown_what_has_a_lane_there),
        cmocka_unit_test(an_idle_requester_confirms_its_floor_to_each_node_that_has_a_lane),
        cmocka_unit_test(the_floor_is_confirmed_only_when_nothing_older_is_under_way),
        cmocka_unit_test(closing_a_peer_flushes_what_visits_its_node),
        cmocka_unit_test(a_late_answer_to_a_peer_that_was_closed_is_not_for_the_next_one),
        cmocka_unit_test(a_node_that_wants_to_hear_the_floor_of_chains_hears_it_at_once),
        cmocka_unit_test(confirmations_of_chains_that_are_answered_late_are_sent_all_the_same),
        cmocka_unit_test(a_closed_peer_whose_node_confirms_little_by_little_is_released_in_the_end),
        cmocka_unit_test(a_closed_peer_whose_node_is_dead_is_released_in_the_end),
        cmocka_unit_test(destroying_the_queue_pair_flushes_its_chains_in_every_state),
        cmocka_unit_test(stopping_confirms_what_chains_have_left),
        cmocka_unit_test(when_the_numbers_run_out_the_nodes_are_told_and_a_new_context_begins),
        cmocka_unit_test(the_time_out_grows_with_the_list),
        cmocka_unit_test(a_full_port_holds_chains_back_and_confirmations),
    };

    return cmocka_run_group_tests_name("tour_lanes", tests, NULL, NULL);
}
