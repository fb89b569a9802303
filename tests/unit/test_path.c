/* SPDX-License-Identifier: BSD-3-Clause */
/* Many paths: source ports, who is passed over, who is retired and comes back, what is congestion and what is not. */
#include "bench.h"

#include "checksum.h"
#include "path.h"

#define GENERATION UNIT_GENERATION
#define PORT       NETDAM_UDP_PORT
#define PATHS      16u

static struct bench b; /* one at a time */

static struct ndfw_peer *peer(void)
{
    return &b.u.fw->peers[b.peer];
}

static void start(uint32_t paths)
{
    struct netdam_fw_config config = bench_config();

    config.paths = paths;
    config.confirm_idle_ns = 1000000 * UNIT_MS; /* what is confirmed is probes */
    bench_start(&b, &config, 4, GENERATION);
}

static unsigned path_of(const struct ndtest_packet *p)
{
    assert_in_range(p->from_port, PORT, PORT + 63);
    assert_int_equal(p->to_port, PORT);
    return p->from_port - PORT;
}

static struct ndtest_packet write_now(void)
{
    struct ndtest_packet p;

    bench_write(&b, 8, 1);
    unit_expect_sent(&b.u, &p);
    unit_expect_silence(&b.u);
    return p;
}

static void answer(const struct ndtest_packet *p)
{
    unit_answer_ok(&b.u, p, NULL);
    unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
}

/* Round trips of 1 ms, so many on each path. */
static void measure_all(unsigned rounds)
{
    for (unsigned i = 0; i < rounds * peer()->path_count; i++) {
        struct ndtest_packet p = write_now();

        unit_advance(&b.u, UNIT_MS);
        answer(&p);
    }
}

static void packets_go_round_the_ports_from_the_own_one_on(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 16, 64};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        start(counts[i]);
        assert_int_equal(peer()->path_count, counts[i]);
        for (unsigned n = 0; n < 2 * counts[i]; n++) {
            struct ndtest_packet p = write_now();

            assert_int_equal(path_of(&p), n % counts[i]);
            answer(&p);
        }
        unit_stop(&b.u);
    }
    start(0);
    assert_int_equal(b.u.fw->config.paths, PATHS);
    unit_stop(&b.u);
}

static void a_peer_may_have_fewer_paths_than_the_device_and_not_more(void **state)
{
    uint64_t args[] = {0x0a000002, 0, 4 | 3 << 8 | (uint64_t)PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    struct ndtest_packet p;

    (void)state;
    start(8);
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(b.u.fw->peers[results[0]].path_count, 3);
    b.peer = (uint32_t)results[0];
    peer()->generation = GENERATION;
    p = write_now();
    p.from_port = PORT + 5; /* of the device, and not of this peer */
    answer(&p);
    args[2] = 4 | 9 << 8 | (uint64_t)PORT << 16;
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    args[2] = 4 | 8 << 8 | (uint64_t)PORT << 16;
    assert_int_equal(unit_admin(&b.u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    unit_stop(&b.u);
}

static void ports_end_where_there_are_no_more(void **state)
{
    struct netdam_fw_config config = unit_config(0);
    const char *error = NULL;

    (void)state;
    config.udp_port = 65530;
    unit_start(&b.u, 0, &config);
    assert_int_equal(b.u.fw->config.paths, 6);
    assert_true(ndfw_is_own_port(b.u.fw, 65535));
    assert_false(ndfw_is_own_port(b.u.fw, 65529));
    config = b.u.node.config;
    config.paths = 6;
    assert_true(b.u.node.ops->state_bytes(&config, &error) != 0);
    config.paths = 7;
    assert_int_equal(b.u.node.ops->state_bytes(&config, &error), 0);
    assert_string_equal(error, "paths");
    unit_stop(&b.u);
}

static void answers_come_to_any_own_port_and_requests_to_the_first_only(void **state)
{
    static const uint16_t others[] = {PORT - 1, PORT + PATHS};
    struct unit_request request = {.opcode = NETDAM_OP_ECHO, .number = 1};
    struct ndtest_packet p, wrong;
    uint8_t frame[UNIT_FRAME_ROOM];
    size_t bytes;

    (void)state;
    start(0);
    for (unsigned port = PORT - 1; port <= PORT + PATHS; port++) {
        bytes = unit_request_frame(frame, 1, &request);
        unit_put16(frame + 36, port);
        unit_receive(&b.u, frame, bytes);
        unit_run(&b.u);
        assert_int_equal(unit_sent(&b.u, &p), port == PORT);
    }
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), PATHS + 1);
    p = write_now();
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        wrong = p;
        wrong.from_port = others[i];
        unit_answer_ok(&b.u, &wrong, NULL);
        unit_expect_no_completion(&b.queue);
    }
    wrong = p;
    wrong.from_port = PORT + PATHS - 1; /* who is answered is told by the context alone */
    answer(&wrong);
    /* A datagram that ends before it tells what it is. */
    (void)unit_request_frame(frame, 1, &request);
    unit_put16(frame + 36, PORT + 1);
    unit_put16(frame + 16, 29);
    unit_put16(frame + 38, 9);
    frame[24] = frame[25] = 0;
    unit_put16(frame + 24, ndfw_checksum_fold(ndfw_checksum_add(0, frame + 14, 20)));
    unit_receive(&b.u, frame, 43);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), PATHS + 4);
    unit_stop(&b.u);
}

/* To the ports behind the own one, which other programs of this address may use, nobody else's packet is lost. */
static void what_is_no_answer_is_not_taken_from_other_programs(void **state)
{
    static const struct {
        size_t at;
        uint8_t change;
    } rows[] = {
        {offsetof(struct netdam_wire_header, version), 2},
        {offsetof(struct netdam_wire_header, kind), NETDAM_KIND_REQUEST ^ NETDAM_KIND_RESPONSE},
        {offsetof(struct netdam_wire_header, kind), 0x80},
        {offsetof(struct netdam_wire_header, node_form), 1},
        {offsetof(struct netdam_wire_header, header_length), 1},
        {offsetof(struct netdam_wire_header, header_length) + 1, 1},
        {offsetof(struct netdam_wire_header, flags) + (NETDAM_FLAG_TENANT < 256),
         (uint8_t)(NETDAM_FLAG_TENANT | NETDAM_FLAG_TENANT >> 8)},
        {offsetof(struct netdam_wire_header, flags) + (NETDAM_FLAG_IMMEDIATE < 256),
         (uint8_t)(NETDAM_FLAG_IMMEDIATE | NETDAM_FLAG_IMMEDIATE >> 8)},
    };
    struct unit_request request = {.opcode = NETDAM_OP_ECHO, .number = 1};
    uint8_t frame[UNIT_FRAME_ROOM];
    unsigned others = 0;
    size_t bytes;

    (void)state;
    start(0);
    for (unsigned port = PORT; port < PORT + PATHS; port++) {
        bytes = unit_request_frame(frame, 1, &request);
        unit_put16(frame + 36, port);
        unit_put16(frame + 40, 0);
        frame[42 + offsetof(struct netdam_wire_header, kind)] = NETDAM_KIND_RESPONSE;
        unit_receive(&b.u, frame, bytes);
        assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), others);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            frame[42 + rows[i].at] ^= rows[i].change;
            unit_receive(&b.u, frame, bytes);
            frame[42 + rows[i].at] ^= rows[i].change;
            others += port != PORT;
            assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_RX_OTHER), others);
        }
    }
    unit_stop(&b.u);
}

static void the_path_with_the_fewest_packets_under_way_is_next(void **state)
{
    struct ndtest_packet p[4];

    (void)state;
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        p[i] = write_now();
        assert_int_equal(path_of(&p[i]), i);
    }
    answer(&p[2]);
    p[3] = write_now();
    assert_int_equal(path_of(&p[3]), 2);
    answer(&p[1]);
    p[1] = write_now();
    assert_int_equal(path_of(&p[1]), 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(peer()->paths[i].flying, 1);
    }
    answer(&p[0]);
    answer(&p[1]);
    answer(&p[3]);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(peer()->paths[i].flying, 0);
    }
    unit_stop(&b.u);
}

static void a_path_that_gets_empty_among_full_ones_is_next_at_once(void **state)
{
    struct ndtest_packet p[7];

    (void)state;
    start(3);
    for (unsigned i = 0; i < 7; i++) { /* two on each, and a third one on the first */
        p[i] = write_now();
        assert_int_equal(path_of(&p[i]), i % 3);
    }
    answer(&p[2]);
    answer(&p[5]);
    p[5] = write_now();
    assert_int_equal(path_of(&p[5]), 2);
    unit_stop(&b.u);
}

static void whatever_ends_a_packet_takes_it_off_its_path(void **state)
{
    struct netdam_descriptor d;

    (void)state;
    start(4);
    for (unsigned i = 0; i < 7; i++) {
        (void)write_now();
    }
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 8, 1);
    d.flags = NETDAM_DESCRIPTOR_UNRELIABLE;
    bench_do(&b, &d);
    unit_drop_sent(&b.u);
    unit_run_for(&b.u, 2000 * UNIT_MS); /* time-outs, and their repetitions */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(peer()->paths[i].flying, 0);
    }
    unit_stop(&b.u);
    start(4);
    for (unsigned i = 0; i < 7; i++) {
        (void)write_now();
    }
    assert_int_equal(ndtest_peer_close(&b.u.node, b.peer, b.u.now_ns), NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(peer()->paths[i].flying, 0);
    }
    unit_stop(&b.u);
}

static void a_packet_is_sent_again_by_another_path(void **state)
{
    struct ndtest_packet first, p;
    unsigned last;

    (void)state;
    start(PATHS);
    measure_all(2);
    first = write_now();
    last = path_of(&first);
    for (unsigned i = 0; i < 5; i++) { /* by its timer */
        unit_run_for(&b.u, (10u << i) * UNIT_MS);
        unit_expect_sent(&b.u, &p);
        while (p.opcode == NETDAM_OP_CONFIRM) { /* probes */
            unit_expect_sent(&b.u, &p);
        }
        assert_true(p.number == first.number);
        assert_int_not_equal(path_of(&p), last);
        last = path_of(&p);
        unit_drop_sent(&b.u);
    }
    unit_stop(&b.u);
}

static void not_even_an_empty_path_gets_back_what_it_has_lost(void **state)
{
    struct ndtest_packet lost, p, again;

    (void)state;
    for (unsigned blocked = 0; blocked < 2; blocked++) {
        start(2);
        measure_all(10);
        lost = write_now();
        unit_advance(&b.u, 3 * UNIT_MS);
        p = write_now();
        assert_int_not_equal(path_of(&p), path_of(&lost));
        p = write_now();
        assert_int_equal(path_of(&p), path_of(&lost));
        unit_advance(&b.u, UNIT_MS);
        b.u.port_room = blocked ? 0 : UINT32_MAX; /* the port is full at first */
        answer(&p);
        b.u.port_room = UINT32_MAX;
        unit_run(&b.u);
        unit_expect_sent(&b.u, &again);
        assert_true(again.number == lost.number);
        assert_int_not_equal(path_of(&again), path_of(&lost));
        unit_stop(&b.u);
    }
}

static void ordered_packets_stay_on_one_path_while_it_works(void **state)
{
    struct netdam_descriptor d;
    struct ndtest_packet p;
    unsigned path;

    (void)state;
    start(PATHS);
    measure_all(1);
    d = bench_descriptor(&b, NETDAM_OP_WRITE, 0, 8, 1);
    d.flags = NETDAM_DESCRIPTOR_ORDERED;
    for (unsigned i = 0; i < 20; i++) {
        bench_do(&b, &d);
        unit_expect_sent(&b.u, &p);
        assert_int_equal(path_of(&p), 0);
        answer(&p);
        p = write_now(); /* others go round */
        answer(&p);
    }
    bench_do(&b, &d);
    unit_drop_sent(&b.u);
    unit_run_for(&b.u, 10 * UNIT_MS);
    unit_expect_sent(&b.u, &p);
    path = path_of(&p);
    assert_int_not_equal(path, 0); /* its timer has run out: that path is given up */
    answer(&p);
    for (unsigned i = 0; i < 20; i++) {
        bench_do(&b, &d);
        while (unit_sent(&b.u, &p) && p.opcode == NETDAM_OP_CONFIRM) {
        }
        assert_int_equal(path_of(&p), path);
        answer(&p);
    }
    unit_stop(&b.u);
}

/* Every packet by path `dead` is lost, each of the others answered after 1 ms. Returns packets lost until it is retired. */
static unsigned lose_path(unsigned dead)
{
    unsigned lost = 0;

    for (unsigned i = 0; i < 1000 && !peer()->paths[dead].retired; i++) {
        struct ndtest_packet p;

        bench_write(&b, 8, 1);
        unit_advance(&b.u, UNIT_MS);
        while (unit_sent(&b.u, &p)) {
            if (path_of(&p) == dead) {
                lost++;
            } else {
                unit_answer_ok(&b.u, &p, NULL);
            }
        }
        while (ndtest_queue_ready(&b.queue) != 0) {
            unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
        }
    }
    return lost;
}

static void a_dead_path_is_retired_and_probed_and_comes_back(void **state)
{
    struct ndtest_packet p, probe = {0};
    uint64_t since, waited[3];
    unsigned probes = 0;

    (void)state;
    start(4);
    measure_all(5);
    assert_in_range(lose_path(2), 4, 5);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_PATHS_RETIRED), 1);
    assert_int_equal(peer()->paths_retired, 1);
    unit_drop_sent(&b.u);
    since = b.u.now_ns;
    for (unsigned i = 0; i < 1000 && probes < 3; i++) {
        bench_write(&b, 8, 1);
        unit_advance(&b.u, UNIT_MS);
        while (unit_sent(&b.u, &p)) {
            if (p.opcode == NETDAM_OP_CONFIRM) {
                assert_int_equal(path_of(&p), 2); /* nothing but probes goes there */
                probe = p;
                waited[probes++] = b.u.now_ns - since;
                since = b.u.now_ns;
            } else {
                assert_int_not_equal(path_of(&p), 2);
                unit_answer_ok(&b.u, &p, NULL);
            }
        }
        while (ndtest_queue_ready(&b.queue) != 0) {
            unit_expect_completion(&b.queue, 1, NETDAM_STATUS_OK);
        }
    }
    assert_int_equal(probes, 3);
    assert_in_range(waited[0], 30 * UNIT_MS, 40 * UNIT_MS); /* some 32 round trips */
    assert_in_range(waited[1], 50 * UNIT_MS, 80 * UNIT_MS);
    assert_in_range(waited[2], 100 * UNIT_MS, 160 * UNIT_MS);
    unit_answer(&b.u, &probe, &(struct unit_answer){0});
    assert_false(peer()->paths[2].retired);
    assert_int_equal(peer()->paths[2].probes, 0);
    assert_int_equal(peer()->paths_retired, 0);
    assert_int_equal(unit_counter(&b.u, NETDAM_COUNTER_PATHS_RESTORED), 1);
    /* On probation: it is soon retired again if it was by chance that the probe came through. */
    assert_in_range(lose_path(2), 1, 3);
    unit_stop(&b.u);
}

static void the_last_path_is_never_retired(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start(3);
    measure_all(5);
    for (unsigned i = 0; i < 40; i++) {
        bench_write(&b, 8, 1);
        unit_run_for(&b.u, 200 * UNIT_MS);
        unit_drop_sent(&b.u);
    }
    assert_in_range(peer()->paths_retired, 0, 2);
    unit_stop(&b.u);
    start(2);
    measure_all(5);
    peer()->paths[1].retired = true; /* its loss may have been forgotten since */
    peer()->paths[1].probe_ns = NETDAM_FW_NEVER;
    peer()->paths_retired = 1;
    peer()->paths[0].loss = 60000;
    p = write_now();
    assert_int_equal(path_of(&p), 0);
    ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    assert_int_equal(peer()->paths_retired, 1);
    unit_stop(&b.u);
    start(4); /* nobody knows yet whether any works */
    bench_write(&b, 8, 1);
    unit_run_for(&b.u, 200 * UNIT_MS);
    assert_int_equal(peer()->paths_retired, 0);
    unit_stop(&b.u);
    start(1);
    measure_all(20);
    for (unsigned i = 0; i < 10; i++) {
        bench_write(&b, 8, 1);
        unit_run_for(&b.u, 200 * UNIT_MS);
        unit_drop_sent(&b.u);
    }
    assert_int_equal(peer()->paths_retired, 0);
    unit_stop(&b.u);
}

static void a_path_that_loses_no_more_than_the_others_is_kept(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start(4);
    measure_all(5);
    for (unsigned i = 0; i < 4; i++) {
        peer()->paths[i].loss = 30000;
    }
    p = write_now();
    ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    assert_int_equal(peer()->paths_retired, 0);
    peer()->paths[(path_of(&p) + 1) % 4].loss = 0;
    ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    assert_int_equal(peer()->paths_retired, 1);
    assert_true(peer()->paths[path_of(&p)].retired);
    assert_int_not_equal(peer()->path_steady, path_of(&p)); /* what is ORDERED does not stay there */
    unit_stop(&b.u);
}

static void busy_is_no_fault_of_the_path(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start(4);
    measure_all(5);
    p = write_now();
    unit_answer(&b.u, &p, &(struct unit_answer){.status = NETDAM_STATUS_BUSY});
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(peer()->paths[i].flying, 0);
    }
    unit_run_for(&b.u, 10 * UNIT_MS);
    unit_expect_sent(&b.u, &p);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(peer()->paths[i].loss, 0);
    }
    assert_int_equal(peer()->loss, 0);
    answer(&p);
    unit_stop(&b.u);
}

/* One packet is lost among others whose round trips take so long. Returns the window afterwards. */
static uint32_t window_after_loss(uint64_t rtt_ns)
{
    struct ndtest_packet lost, p;
    unsigned before;

    start(4);
    measure_all(5);
    for (unsigned i = 0; i < 60; i++) {
        p = write_now();
        unit_advance(&b.u, rtt_ns);
        answer(&p);
    }
    before = peer()->window;
    assert_in_range(before, 32, 36);
    lost = write_now();
    for (unsigned i = 0; i < 4 && b.u.count == 0; i++) {
        bench_write(&b, 8, 1);
        unit_expect_sent(&b.u, &p);
        unit_advance(&b.u, rtt_ns + rtt_ns / 2);
        answer(&p);
    }
    unit_expect_sent(&b.u, &p);
    assert_true(p.number == lost.number);
    return peer()->window;
}

static void a_loss_is_congestion_where_round_trips_have_grown_and_the_wires_fault_where_not(void **state)
{
    (void)state;
    assert_in_range(window_after_loss(UNIT_MS), 32, 37);
    unit_stop(&b.u);
    assert_in_range(window_after_loss(3 * UNIT_MS), 16, 19);
    unit_stop(&b.u);
}

static void where_a_quarter_is_lost_it_is_congestion_whatever_round_trips_say(void **state)
{
    struct ndtest_packet p;

    (void)state;
    start(4);
    measure_all(5);
    p = write_now();
    assert_false(ndfw_peer_is_congested(peer()));
    for (unsigned i = 0; i < 8; i++) {
        assert_false(ndfw_peer_is_congested(peer()));
        ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    }
    ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    ndfw_path_lost(b.u.fw, peer(), ndfw_flight_at(b.u.fw, &peer()->lane, p.number));
    assert_true(ndfw_peer_is_congested(peer()));
    unit_stop(&b.u);
}

static void the_shortest_round_trip_is_forgotten_after_two_seconds(void **state)
{
    (void)state;
    start(4);
    measure_all(5);
    for (unsigned i = 0; i < 500; i++) {
        struct ndtest_packet p = write_now();

        unit_advance(&b.u, 3 * UNIT_MS);
        answer(&p);
        if (i == 100 || i == 400) { /* before a second is over, and soon behind it */
            assert_true(ndfw_peer_is_congested(peer()));
        }
    }
    unit_advance(&b.u, 1000 * UNIT_MS);
    measure_all(1);
    for (unsigned i = 0; i < 700; i++) {
        struct ndtest_packet p = write_now();

        unit_advance(&b.u, 3 * UNIT_MS);
        answer(&p);
    }
    assert_false(ndfw_peer_is_congested(peer())); /* the way is longer now */
    unit_stop(&b.u);
}

static void questions_try_one_path_after_the_other(void **state)
{
    unsigned used = 0, asked = 0;
    struct ndtest_packet p;

    (void)state;
    bench_start(&b, NULL, 4, 0);
    bench_write(&b, 8, 1);
    for (unsigned i = 0; i < 6; i++) {
        while (unit_sent(&b.u, &p)) {
            assert_int_equal(p.opcode, NETDAM_OP_CONFIRM);
            used |= 1u << path_of(&p);
            asked++;
        }
        unit_run_for(&b.u, 100 * UNIT_MS);
    }
    assert_int_equal(asked, 6);
    assert_int_equal(used, 0x3f);
    unit_stop(&b.u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_go_round_the_ports_from_the_own_one_on),
        cmocka_unit_test(a_peer_may_have_fewer_paths_than_the_device_and_not_more),
        cmocka_unit_test(ports_end_where_there_are_no_more),
        cmocka_unit_test(answers_come_to_any_own_port_and_requests_to_the_first_only),
        cmocka_unit_test(what_is_no_answer_is_not_taken_from_other_programs),
        cmocka_unit_test(the_path_with_the_fewest_packets_under_way_is_next),
        cmocka_unit_test(a_path_that_gets_empty_among_full_ones_is_next_at_once),
        cmocka_unit_test(whatever_ends_a_packet_takes_it_off_its_path),
        cmocka_unit_test(a_packet_is_sent_again_by_another_path),
        cmocka_unit_test(not_even_an_empty_path_gets_back_what_it_has_lost),
        cmocka_unit_test(ordered_packets_stay_on_one_path_while_it_works),
        cmocka_unit_test(a_dead_path_is_retired_and_probed_and_comes_back),
        cmocka_unit_test(the_last_path_is_never_retired),
        cmocka_unit_test(a_path_that_loses_no_more_than_the_others_is_kept),
        cmocka_unit_test(busy_is_no_fault_of_the_path),
        cmocka_unit_test(a_loss_is_congestion_where_round_trips_have_grown_and_the_wires_fault_where_not),
        cmocka_unit_test(where_a_quarter_is_lost_it_is_congestion_whatever_round_trips_say),
        cmocka_unit_test(the_shortest_round_trip_is_forgotten_after_two_seconds),
        cmocka_unit_test(questions_try_one_path_after_the_other),
    };

    return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
