/* SPDX-License-Identifier: BSD-3-Clause */
/* The memif port, with the test image in the card and the test at the other end: link, both directions, bad peers. */
#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "image.h"
#include "memif.h"

#define FRAME_MAX 9014
#define VECTORS   9
/* In the machine's main memory. */
#define TARGET 0x00100000u

/* Turns of a loop that sleeps a millisecond when there is nothing to do. */
#define PATIENCE 60000

static struct machine machine;
static struct card card;
static struct ndsim_memif *peer;
static char *path;

/* What the peer has seen. */
static struct {
    uint64_t frames;
    uint64_t last;
    bool in_order;
    bool whole;
} seen;

static struct ndsim_memif *open_peer(void)
{
    struct ndsim_memif_config config = {.path = path, .role = NDSIM_MEMIF_CLIENT, .frame_bytes = FRAME_MAX};
    struct ndsim_memif *memif = NULL;

    assert_int_equal(ndsim_memif_open(&config, &memif), 0);
    return memif;
}

static int setup(void **state)
{
    (void)state;
    machine_prepare(&machine);
    path = machine_text("%s/link", machine.directory);
    peer = NULL;
    memset(&seen, 0, sizeof(seen));
    seen.in_order = true;
    seen.whole = true;
    machine_start(&machine, (const char *const[]){
                                "-object", "memory-backend-ram,id=m,size=64K", "-device",
                                machine_text("netdam,id=nd,memdev=m,memif=%s,role=server,ip=10.0.0.1/24,mtu=9000,"
                                             "vectors=%d,firmware=" NETDAM_TEST_IMAGES "/image.so",
                                             path, VECTORS),
                                NULL});
    card_open(&card, &machine, 0);
    card_write(&card, IMAGE_FRAME_BYTES, 8, FRAME_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ndsim_memif_close(peer);
    peer = NULL;
    machine_stop(&machine);
    free(path);
    return 0;
}

static void take(void *opaque, const uint8_t *frame, size_t bytes)
{
    uint64_t sequence;

    (void)opaque;
    if (bytes != FRAME_MAX) {
        seen.whole = false;
        return;
    }
    memcpy(&sequence, frame + IMAGE_HEADER_BYTES, sizeof(sequence));
    seen.in_order = seen.in_order && (seen.frames == 0 || sequence > seen.last);
    seen.last = sequence;
    seen.frames++;
}

/* Gives the peer its turn: a millisecond if there is nothing for it. */
static void turn(bool reads)
{
    struct pollfd poller = {.fd = peer != NULL ? ndsim_memif_fd(peer) : -1, .events = POLLIN};

    if (peer == NULL) {
        poll(NULL, 0, 1);
        return;
    }
    ndsim_memif_process(peer);
    if (reads && ndsim_memif_receive(peer, 64, take, NULL) > 0) {
        return;
    }
    if (!reads || ndsim_memif_arm(peer)) {
        poll(&poller, 1, 1);
    }
    ndsim_memif_disarm(peer);
}

static bool link_is_up(void)
{
    return (card_read(&card, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_LINK_UP) != 0;
}

static void until_link(bool up)
{
    unsigned i;

    for (i = 0; link_is_up() != up || (peer != NULL && ndsim_memif_link_up(peer) != up); i++) {
        if (i == PATIENCE) {
            fail_msg("the link does not go %s", up ? "up" : "down");
        }
        turn(true);
    }
}

static void connect_peer(void)
{
    peer = open_peer();
    until_link(true);
}

/* Until the register is at least that. */
static void until_register(uint32_t offset, uint64_t least)
{
    unsigned i;

    for (i = 0; card_read(&card, offset, 8) < least; i++) {
        if (i == PATIENCE) {
            fail_msg("register 0x%x stays below %lu", offset, (unsigned long)least);
        }
        turn(true);
    }
}

static void until_all_is_sent(bool reads)
{
    unsigned i;

    for (i = 0; card_read(&card, IMAGE_SEND, 8) > 0; i++) {
        if (i == PATIENCE) {
            fail_msg("%lu frames are never sent", (unsigned long)card_read(&card, IMAGE_SEND, 8));
        }
        turn(reads);
    }
}

static void send_to_card(struct ndsim_memif *from, uint64_t sequence)
{
    uint8_t *frame = NULL;
    unsigned i;

    for (i = 0; (frame = ndsim_memif_transmit_begin(from, 64)) == NULL; i++) {
        assert_true(i < PATIENCE);
        poll(NULL, 0, 1);
    }
    memset(frame, 0, 64);
    memcpy(frame + IMAGE_HEADER_BYTES, &sequence, sizeof(sequence));
    ndsim_memif_transmit_end(from, 64);
    ndsim_memif_flush(from);
}

static uint64_t statistic(const char *name)
{
    return machine_property(&machine, "/machine/peripheral/nd", name);
}

static bool is_asleep(void)
{
    char answer[MACHINE_LINE];

    machine_monitor(&machine, answer,
                    "{\"execute\": \"qom-get\", \"arguments\": {\"path\": \"/machine/peripheral/nd\", "
                    "\"property\": \"asleep\"}}\n");
    return strstr(answer, "true") != NULL;
}

static void until_asleep(void)
{
    unsigned i;

    for (i = 0; !is_asleep(); i++) {
        assert_true(i < PATIENCE);
        turn(true);
    }
}

static void until_event(uint32_t data)
{
    unsigned i;

    for (i = 0; machine_read(&machine, TARGET, 4) != data; i++) {
        assert_true(i < PATIENCE);
        turn(true);
    }
    machine_write(&machine, TARGET, 4, 0);
}

static void the_link_is_a_status_bit_and_an_event(void **state)
{
    (void)state;
    card_bus_master(&card, true);
    card_msix_enable(&card, true, false);
    card_msix_set(&card, VECTORS - 1, TARGET, 0x11223344, false);
    assert_false(link_is_up());
    connect_peer();
    until_event(0x11223344);
    ndsim_memif_close(peer);
    peer = NULL;
    until_link(false);
    until_event(0x11223344);
    connect_peer();
    until_event(0x11223344);
    assert_int_equal(statistic("memif-connects"), 2);
    assert_int_equal(statistic("memif-disconnects"), 1);
}

static void frames_leave_in_order_and_come_in_order(void **state)
{
    const uint64_t count = 3000;
    uint64_t i;

    (void)state;
    connect_peer();
    card_write(&card, IMAGE_SEND, 8, count);
    for (i = 1; i <= count; i++) {
        send_to_card(peer, i);
        if (i % 50 == 0) {
            turn(true);
        }
    }
    until_all_is_sent(true);
    until_register(IMAGE_RECEIVED, count);
    assert_int_equal(card_read(&card, IMAGE_LAST_RECEIVED, 8), count);
    /* A machine so busy that the test does not run for a tenth of a second is a peer that has stalled. */
    for (i = 0; seen.frames + statistic("memif-transmit-stalled") < count; i++) {
        assert_true(i < PATIENCE);
        turn(true);
    }
    assert_true(seen.in_order);
    assert_true(seen.whole);
    assert_true(seen.frames > 0);
    assert_int_equal(statistic("memif-transmit-frames"), seen.frames);
    assert_int_equal(statistic("memif-receive-frames"), count);
}

static void a_peer_that_reads_nothing_holds_up_nobody(void **state)
{
    uint64_t i;

    (void)state;
    connect_peer();
    card_write(&card, IMAGE_SEND, 8, 20000);
    for (i = 1; i <= 100; i++) {
        send_to_card(peer, i);
    }
    until_register(IMAGE_RECEIVED, 100);
    until_all_is_sent(false);
    assert_true(card_read(&card, IMAGE_FULL, 8) > 0);
    assert_true(statistic("memif-transmit-stalled") > 0);
    /* When it reads again, it is served again. */
    for (i = 0; seen.last < 20000; i++) {
        assert_true(i < PATIENCE);
        turn(true);
        if (card_read(&card, IMAGE_SEND, 8) == 0) {
            card_write(&card, IMAGE_SEND, 8, 1);
        }
    }
    assert_true(seen.in_order);
}

static void a_card_with_nothing_to_do_sleeps_until_somebody_comes(void **state)
{
    uint64_t runs;

    (void)state;
    connect_peer();
    until_asleep();
    runs = card_read(&card, IMAGE_RUNS, 8);
    assert_true(is_asleep());
    machine_step(&machine, 1000000000);
    assert_int_equal(card_read(&card, IMAGE_RUNS, 8), runs);
    send_to_card(peer, 1);
    until_register(IMAGE_RECEIVED, 1);
    until_asleep();
    card_write(&card, IMAGE_SEND, 8, 1);
    until_all_is_sent(true);
    until_asleep();
    card_write(&card, IMAGE_ALARM, 8, 5000000);
    until_asleep();
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 0);
    machine_step(&machine, 5000000);
    until_register(IMAGE_ALARM, 1);
}

static void a_machine_that_stands_still_neither_takes_nor_computes(void **state)
{
    uint64_t runs;

    (void)state;
    connect_peer();
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    runs = card_read(&card, IMAGE_RUNS, 8);
    send_to_card(peer, 77);
    card_write(&card, IMAGE_SEND, 8, 3);
    until_asleep();
    assert_int_equal(card_read(&card, IMAGE_RECEIVED, 8), 0);
    assert_int_equal(card_read(&card, IMAGE_RUNS, 8), runs);
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    until_register(IMAGE_RECEIVED, 1);
    assert_int_equal(card_read(&card, IMAGE_LAST_RECEIVED, 8), 77);
    until_all_is_sent(true);
}

static void a_reset_drops_what_has_come_and_what_has_not_left(void **state)
{
    (void)state;
    connect_peer();
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    send_to_card(peer, 1);
    send_to_card(peer, 2);
    card_write(&card, IMAGE_SEND, 8, 100);
    machine_monitor(&machine, NULL, "{\"execute\": \"system_reset\"}\n");
    card_bars(&card);
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    send_to_card(peer, 3);
    until_register(IMAGE_RECEIVED, 1);
    assert_int_equal(card_read(&card, IMAGE_LAST_RECEIVED, 8), 3);
    assert_int_equal(card_read(&card, IMAGE_RECEIVED, 8), 1);
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
    assert_true(link_is_up());
    assert_int_equal(statistic("memif-receive-reset"), 2);
}

/* Floods the card until it is killed. */
static void flood(void)
{
    struct ndsim_memif_config config = {.path = path, .role = NDSIM_MEMIF_CLIENT, .frame_bytes = FRAME_MAX};
    struct ndsim_memif *memif;

    if (ndsim_memif_open(&config, &memif) != 0) {
        _exit(1);
    }
    for (;;) {
        uint8_t *frame;

        ndsim_memif_process(memif);
        while ((frame = ndsim_memif_transmit_begin(memif, FRAME_MAX)) != NULL && ndsim_memif_link_up(memif)) {
            memset(frame, 0, FRAME_MAX);
            ndsim_memif_transmit_end(memif, FRAME_MAX);
        }
        ndsim_memif_flush(memif);
        poll(NULL, 0, 1);
    }
}

static void a_peer_that_is_killed_is_missed_and_may_be_replaced(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 3; i++) {
        uint64_t received = card_read(&card, IMAGE_RECEIVED, 8);
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            flood();
        }
        card_write(&card, IMAGE_SEND, 8, 100000);
        until_register(IMAGE_RECEIVED, received + 1000);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        until_link(false);
        /* On a dead link frames vanish. */
        until_all_is_sent(true);
    }
    connect_peer();
    card_write(&card, IMAGE_SEND, 8, 1);
    until_all_is_sent(true);
    for (i = 0; seen.frames == 0; i++) {
        assert_true(i < PATIENCE);
        turn(true);
    }
    assert_int_equal(statistic("memif-disconnects"), 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_link_is_a_status_bit_and_an_event),
        TEST(frames_leave_in_order_and_come_in_order),
        TEST(a_peer_that_reads_nothing_holds_up_nobody),
        TEST(a_card_with_nothing_to_do_sleeps_until_somebody_comes),
        TEST(a_machine_that_stands_still_neither_takes_nor_computes),
        TEST(a_reset_drops_what_has_come_and_what_has_not_left),
        TEST(a_peer_that_is_killed_is_missed_and_may_be_replaced),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: memif", tests, NULL, NULL);
}
