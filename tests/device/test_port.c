/* SPDX-License-Identifier: BSD-3-Clause */
/* The port, with the test image flooding it: nothing lost or reordered under back-pressure, link state, stop and go on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "image.h"

#define FRAME_MAX 9014

static struct machine machine;
static struct card card;
static int wire = -1;

static struct sockaddr_un wire_address(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", machine.directory, name);
    return address;
}

/* The test is what the card is connected to. */
static int setup(void **state)
{
    struct sockaddr_un address;

    (void)state;
    machine_prepare(&machine);
    wire = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address = wire_address("peer");
    if (wire < 0 || bind(wire, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return -1;
    }
    machine_start(&machine,
                  (const char *const[]){
                      "-object", "memory-backend-ram,id=m,size=64K", "-netdev",
                      machine_text("dgram,id=w,local.type=unix,local.path=%s/card,"
                                   "remote.type=unix,remote.path=%s/peer",
                                   machine.directory, machine.directory),
                      "-device",
                      "netdam,id=nd,memdev=m,netdev=w,ip=10.0.0.1/24,mtu=9000,firmware=" NETDAM_TEST_IMAGES "/image.so",
                      NULL});
    card_open(&card, &machine, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(wire);
    wire = -1;
    machine_stop(&machine);
    return 0;
}

/* Lets the main loop turn. */
static void turn(unsigned times)
{
    while (times-- > 0) {
        machine_step(&machine, 1000);
    }
}

/* The next frame that the card sent; false if none comes although the main loop has had its turns. */
static bool next_frame(uint64_t *sequence, size_t *bytes)
{
    static uint8_t frame[65536];
    unsigned i;

    for (i = 0; i < 50; i++) {
        ssize_t got = recv(wire, frame, sizeof(frame), 0);

        if (got > IMAGE_HEADER_BYTES + (ssize_t)sizeof(*sequence)) {
            memcpy(sequence, frame + IMAGE_HEADER_BYTES, sizeof(*sequence));
            *bytes = (size_t)got;
            return true;
        }
        turn(1);
    }
    return false;
}

static void no_frame_is_lost_when_the_wire_is_slow(void **state)
{
    const uint64_t count = 3000;
    uint64_t sequence, i;
    size_t bytes;

    (void)state;
    card_write(&card, IMAGE_FRAME_BYTES, 8, FRAME_MAX);
    card_write(&card, IMAGE_SEND, 8, count);
    /* Nobody reads: the device comes to rest with frames in hand. */
    turn(50);
    assert_true(card_read(&card, IMAGE_FULL, 8) > 0);
    assert_true(card_read(&card, IMAGE_SEND, 8) > 0);
    for (i = 0; i < count; i++) {
        if (!next_frame(&sequence, &bytes)) {
            fail_msg("frame %lu does not come", (unsigned long)i);
        }
        assert_int_equal(sequence, i);
        assert_int_equal(bytes, FRAME_MAX);
    }
    assert_false(next_frame(&sequence, &bytes));
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
}

static void a_full_port_keeps_no_processor_busy_and_no_timer_from_running(void **state)
{
    uint64_t runs;

    (void)state;
    card_write(&card, IMAGE_SEND, 8, 100000);
    turn(50);
    runs = card_read(&card, IMAGE_RUNS, 8);
    turn(50);
    assert_int_equal(card_read(&card, IMAGE_RUNS, 8), runs);
    card_write(&card, IMAGE_ALARM, 8, 5000000);
    turn(1);
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 0);
    machine_step(&machine, 5000000);
    turn(5);
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 1);
}

/* What comes into the rings meanwhile has to be taken, to end in time. */
static void a_card_whose_netdev_never_calls_back_still_runs_now_and_then(void **state)
{
    uint64_t runs;

    (void)state;
    card_write(&card, IMAGE_SEND, 8, 100000);
    turn(50);
    runs = card_read(&card, IMAGE_RUNS, 8);
    machine_step(&machine, 1000000000);
    turn(5);
    machine_step(&machine, 1000000000);
    turn(5);
    assert_in_range(card_read(&card, IMAGE_RUNS, 8), runs + 2, runs + 200);
}

static void a_reset_throws_away_what_has_not_left(void **state)
{
    uint64_t sequence;
    size_t bytes;

    (void)state;
    card_write(&card, IMAGE_SEND, 8, 5000);
    turn(50);
    card_write(&card, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    while (next_frame(&sequence, &bytes)) {
        /* What the socket held already. */
        assert_true(sequence < 5000);
    }
    card_write(&card, IMAGE_SEND, 8, 2);
    assert_true(next_frame(&sequence, &bytes));
    assert_int_equal(sequence, 0);
    assert_true(next_frame(&sequence, &bytes));
    assert_int_equal(sequence, 1);
}

static void a_frame_longer_than_the_mtu_is_not_sent(void **state)
{
    uint64_t sequence;
    size_t bytes;

    (void)state;
    card_write(&card, IMAGE_FRAME_BYTES, 8, FRAME_MAX + 1);
    card_write(&card, IMAGE_SEND, 8, 1);
    assert_false(next_frame(&sequence, &bytes));
    card_write(&card, IMAGE_FRAME_BYTES, 8, FRAME_MAX);
    /* The image still wants to send it; the device asks it again by and by. */
    machine_step(&machine, 10000000);
    assert_true(next_frame(&sequence, &bytes));
    assert_int_equal(sequence, 0);
}

static void send_to_card(uint64_t sequence)
{
    struct sockaddr_un address = wire_address("card");
    uint8_t frame[64] = {0};
    unsigned i;

    memcpy(frame + IMAGE_HEADER_BYTES, &sequence, sizeof(sequence));
    for (i = 0; sendto(wire, frame, sizeof(frame), 0, (struct sockaddr *)&address, sizeof(address)) < 0; i++) {
        if (errno != EAGAIN || i == 1000) {
            fail_msg("cannot send: %s", strerror(errno));
        }
        turn(1);
    }
}

static void frames_are_taken_even_when_none_can_be_sent(void **state)
{
    uint64_t i;

    (void)state;
    card_write(&card, IMAGE_SEND, 8, 100000);
    turn(50);
    assert_true(card_read(&card, IMAGE_FULL, 8) > 0);
    for (i = 1; i <= 100; i++) {
        send_to_card(i);
    }
    turn(150);
    assert_int_equal(card_read(&card, IMAGE_RECEIVED, 8), 100);
    assert_int_equal(card_read(&card, IMAGE_LAST_RECEIVED, 8), 100);
}

static void the_link_is_a_status_bit_and_a_dead_link_swallows(void **state)
{
    uint64_t sequence;
    size_t bytes;

    (void)state;
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY | NETDAM_DEVICE_LINK_UP);
    /* Down while frames wait. */
    card_write(&card, IMAGE_SEND, 8, 1000);
    turn(50);
    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": false}}\n");
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
    turn(50);
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
    while (next_frame(&sequence, &bytes)) {
        assert_true(sequence < 1000);
    }
    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": true}}\n");
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY | NETDAM_DEVICE_LINK_UP);
    card_write(&card, IMAGE_SEND, 8, 1);
    assert_true(next_frame(&sequence, &bytes));
    assert_int_equal(sequence, 1000);
}

static void a_wire_that_is_pulled_leaves_the_device_alive(void **state)
{
    (void)state;
    card_write(&card, IMAGE_SEND, 8, 1000);
    turn(50);
    machine_monitor(&machine, NULL, "{\"execute\": \"netdev_del\", \"arguments\": {\"id\": \"w\"}}\n");
    turn(50);
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
    card_write(&card, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
}

static void a_machine_that_stands_still_neither_takes_nor_computes(void **state)
{
    uint64_t sequence, runs;
    size_t bytes;

    (void)state;
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    runs = card_read(&card, IMAGE_RUNS, 8);
    send_to_card(77);
    card_write(&card, IMAGE_SEND, 8, 3);
    turn(50);
    assert_int_equal(card_read(&card, IMAGE_RECEIVED, 8), 0);
    assert_int_equal(card_read(&card, IMAGE_RUNS, 8), runs);
    assert_false(next_frame(&sequence, &bytes));
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    turn(50);
    assert_int_equal(card_read(&card, IMAGE_RECEIVED, 8), 1);
    assert_int_equal(card_read(&card, IMAGE_LAST_RECEIVED, 8), 77);
    assert_true(next_frame(&sequence, &bytes));
    assert_int_equal(sequence, 0);
}

/* Frames that wait while the machine is stopped are QEMU's to drop; the device must still go on afterwards. */
static void stopping_under_back_pressure_does_not_strand_the_port(void **state)
{
    uint64_t sequence = 0, last = 0, frames = 0;
    size_t bytes;

    (void)state;
    card_write(&card, IMAGE_SEND, 8, 2000);
    turn(50);
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    turn(50);
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    while (next_frame(&sequence, &bytes)) {
        assert_true(frames == 0 || sequence > last);
        last = sequence;
        frames++;
    }
    assert_int_equal(last, 1999);
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_frame_is_lost_when_the_wire_is_slow),
        TEST(a_full_port_keeps_no_processor_busy_and_no_timer_from_running),
        TEST(a_card_whose_netdev_never_calls_back_still_runs_now_and_then),
        TEST(a_reset_throws_away_what_has_not_left),
        TEST(a_frame_longer_than_the_mtu_is_not_sent),
        TEST(frames_are_taken_even_when_none_can_be_sent),
        TEST(the_link_is_a_status_bit_and_a_dead_link_swallows),
        TEST(a_wire_that_is_pulled_leaves_the_device_alive),
        TEST(a_machine_that_stands_still_neither_takes_nor_computes),
        TEST(stopping_under_back_pressure_does_not_strand_the_port),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: port", tests, NULL, NULL);
}
