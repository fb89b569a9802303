/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordinary frames through a card with the real firmware: of every length both ways, too long ones, and a reset. */
#define _GNU_SOURCE
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

#define ONBOARD_BYTES (4u << 20)
#define LOG2          5u
#define SQ            0x0u
#define CQ            0x2000u
#define RQ            0x4000u
#define DATA          0x100000u
#define DATA_BYTES    0x100000u
#define SEND_AT       0x80000u /* in the region; buffers to receive into lie before it */
#define BUFFER_BYTES  0x2800u
#define FRAME_MAX     9014u
/* Of the main loop, before something is said not to happen. */
#define TURNS 200

static struct machine machine;
static struct card card;
static struct card_queue queue;
static uint32_t region;
static int wire = -1;
static uint8_t frame[65536];

static const uint8_t own[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};

static struct sockaddr_un wire_address(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", machine.directory, name);
    return address;
}

static void create_pair(void)
{
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t key;

    region = card_region(&card, DATA, DATA_BYTES, &key);
    assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_QUEUE_CREATE, results, SQ, LOG2, CQ, LOG2, RQ, LOG2,
                                     NETDAM_QUEUE_RAW | (uint64_t)NETDAM_VECTOR_NONE << 16, 0),
                     NETDAM_ADMIN_STATUS_OK);
    queue = (struct card_queue){.card = &card,
                                .number = (uint32_t)results[0],
                                .base = SQ,
                                .log2 = LOG2,
                                .sq = (struct netdam_ring *)(void *)(card.onboard + SQ),
                                .cq = (struct netdam_ring *)(void *)(card.onboard + CQ)};
    assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_STEERING_SET, NULL, queue.number, NETDAM_STEERING_DEFAULT, 0),
                     NETDAM_ADMIN_STATUS_OK);
}

/* The test is what the card is connected to. */
static int setup(void **state)
{
    struct sockaddr_un address;
    char *file;

    (void)state;
    machine_prepare(&machine);
    file = machine_text("%s/onboard", machine.directory);
    wire = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    address = wire_address("peer");
    if (wire < 0 || bind(wire, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return -1;
    }
    machine_start(&machine,
                  (const char *const[]){
                      "-object", machine_text("memory-backend-file,id=m,size=4M,share=on,mem-path=%s", file), "-netdev",
                      machine_text("dgram,id=w,local.type=unix,local.path=%s/card,"
                                   "remote.type=unix,remote.path=%s/peer",
                                   machine.directory, machine.directory),
                      "-device",
                      "netdam,id=nd,memdev=m,netdev=w,ip=10.0.0.1/24,mac=02:00:00:00:00:01,mtu=9000,"
                      "firmware=" NETDAM_TEST_FIRMWARE,
                      NULL});
    card_open(&card, &machine, 0);
    card_map(&card, file, ONBOARD_BYTES);
    create_pair();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    card_close(&card);
    close(wire);
    wire = -1;
    machine_stop(&machine);
    return 0;
}

static void post_buffer(unsigned index)
{
    struct netdam_ring *rq = (struct netdam_ring *)(void *)(card.onboard + RQ);
    struct netdam_descriptor *entries = (struct netdam_descriptor *)(void *)(rq + 1);
    uint32_t producer = rq->producer;

    entries[producer & ((1u << LOG2) - 1)] = (struct netdam_descriptor){.user_data = index,
                                                                        .length = BUFFER_BYTES,
                                                                        .local_region = region,
                                                                        .u.buffer.local_address = index * BUFFER_BYTES};
    __atomic_store_n(&rq->producer, producer + 1, __ATOMIC_RELEASE);
}

static void make(const uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        frame[i] = (uint8_t)(i * 3 + bytes);
    }
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    frame[12] = 0x88;
    frame[13] = 0xb5;
}

static void inject(size_t bytes)
{
    struct sockaddr_un to = wire_address("card");

    assert_int_equal(sendto(wire, frame, bytes, 0, (struct sockaddr *)&to, sizeof(to)), bytes);
}

static void frames_of_every_length_leave_as_they_are(void **state)
{
    static const uint32_t lengths[] = {14, 59, 60, 1514, 9013, FRAME_MAX};
    static uint8_t got[65536];

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct netdam_descriptor d = {
            .user_data = i, .length = lengths[i], .local_region = region, .u.buffer.local_address = SEND_AT};
        struct netdam_completion c;
        ssize_t bytes = -1;

        make(other, own, lengths[i]);
        memcpy(card.onboard + DATA + SEND_AT, frame, lengths[i]);
        card_post(&queue, &d);
        assert_true(card_poll(&queue, &c, 1000));
        assert_int_equal(c.user_data, i);
        assert_int_equal(c.status, NETDAM_STATUS_OK);
        for (unsigned n = 0; n < TURNS && bytes < 0; n++) {
            bytes = recv(wire, got, sizeof(got), 0);
            machine_step(&machine, 1000);
        }
        assert_int_equal(bytes, lengths[i]);
        assert_memory_equal(got, frame, lengths[i]);
    }
}

static void frames_arrive_on_board_and_longer_ones_are_dropped(void **state)
{
    static const size_t lengths[] = {60, 61, 1514, 9013, FRAME_MAX};
    static const size_t longer[] = {FRAME_MAX + 1, FRAME_MAX + 4, 20000, 65000};
    struct netdam_completion c;

    (void)state;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        post_buffer(i);
        make(own, other, lengths[i]);
        inject(lengths[i]);
        assert_true(card_poll(&queue, &c, 1000));
        assert_int_equal(c.user_data, i);
        assert_int_equal(c.status, NETDAM_STATUS_OK);
        assert_int_equal(c.flags, NETDAM_COMPLETION_RECEIVE);
        assert_int_equal(c.length, lengths[i]);
        assert_memory_equal(card.onboard + DATA + (size_t)i * BUFFER_BYTES, frame, lengths[i]);
    }
    post_buffer(0);
    for (unsigned i = 0; i < sizeof(longer) / sizeof(longer[0]); i++) {
        make(own, other, longer[i]);
        inject(longer[i]);
        for (unsigned n = 0; n < TURNS && card_counter(&card, NETDAM_COUNTER_RX_MALFORMED) == i; n++) {
            machine_step(&machine, 1000);
        }
        assert_int_equal(card_counter(&card, NETDAM_COUNTER_RX_MALFORMED), i + 1);
    }
    assert_false(card_poll(&queue, &c, 1));
    assert_int_equal(card_read(&card, NETDAM_REG_MAIN_MEMORY_BYTES, 8), 0);
}

/* What was posted ends as flushed, and a pair made anew starts without rules and frames of the old one. */
static void a_reset_flushes_frames_and_buffers(void **state)
{
    struct netdam_completion c;

    (void)state;
    for (unsigned n = 0; n < TURNS; n++) {
        machine_step(&machine, 1000); /* what the commands have asked for is done, and the device sleeps */
    }
    post_buffer(3);
    card_post_silently(&queue,
                       &(struct netdam_descriptor){
                           .user_data = 9, .length = 60, .local_region = region, .u.buffer.local_address = SEND_AT});
    card_write(&card, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    assert_true(card_poll(&queue, &c, 0));
    assert_int_equal(c.user_data, 9);
    assert_int_equal(c.status, NETDAM_STATUS_FLUSHED);
    assert_true(card_poll(&queue, &c, 0));
    assert_int_equal(c.user_data, 3);
    assert_int_equal(c.status, NETDAM_STATUS_FLUSHED);
    make(own, other, 60);
    inject(60);
    for (unsigned n = 0; n < TURNS && card_counter(&card, NETDAM_COUNTER_RX_OTHER) == 0; n++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_RX_OTHER), 1);
    create_pair();
    post_buffer(4);
    inject(60);
    assert_true(card_poll(&queue, &c, 1000));
    assert_int_equal(c.user_data, 4);
    assert_int_equal(c.status, NETDAM_STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_of_every_length_leave_as_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(frames_arrive_on_board_and_longer_ones_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_reset_flushes_frames_and_buffers, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
