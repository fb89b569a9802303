/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties that the guest or the wire can see: addresses, neighbours, time-outs, memory across reset, events. */
#define _GNU_SOURCE
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

#define ONBOARD_BYTES (1u << 20)
#define REGION        0x10000u
#define EVENT_VECTOR  16u /* the last of 17 */
#define TARGET        0x00100000u

#define FRAME_MAX 2048

static struct machine machine;
static struct card card;
static char *onboard;
static char *firmware;
static int wire = -1;

static void start(const char *properties)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *copy;

    machine_prepare(&machine);
    onboard = machine_text("%s/onboard", machine.directory);
    firmware = machine_text("%s/firmware.so", machine.directory);
    copy = machine_text("cp %s %s", NETDAM_TEST_FIRMWARE, firmware);
    assert_int_equal(system(copy), 0);
    free(copy);
    wire = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(wire >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/peer", machine.directory);
    assert_int_equal(bind(wire, (struct sockaddr *)&address, sizeof(address)), 0);
    machine_start(
        &machine,
        (const char *const[]){
            "-object", machine_text("memory-backend-file,id=m,size=1M,share=on,mem-path=%s", onboard), "-netdev",
            machine_text("dgram,id=w,local.type=unix,local.path=%s/card,"
                         "remote.type=unix,remote.path=%s/peer",
                         machine.directory, machine.directory),
            "-device",
            machine_text("netdam,id=nd,memdev=m,netdev=w,ip=10.0.0.1/24,firmware=%s%s", firmware, properties), NULL});
    card_open(&card, &machine, 0);
    card_map(&card, onboard, ONBOARD_BYTES);
}

static int setup(void **state)
{
    (void)state;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    card_close(&card);
    machine_stop(&machine);
    if (wire >= 0) {
        close(wire);
        wire = -1;
    }
    free(onboard);
    free(firmware);
    onboard = NULL;
    firmware = NULL;
    return 0;
}

static void settle(void)
{
    unsigned i;

    for (i = 0; i < 10; i++) {
        machine_step(&machine, 1000);
    }
}

static void reset(unsigned kind)
{
    switch (kind % 3) {
    case 0:
        card_write(&card, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
        break;
    case 1:
        card_function_reset(&card);
        break;
    default:
        machine_monitor(&machine, NULL, "{\"execute\": \"system_reset\"}\n");
        settle();
        card_bars(&card);
        break;
    }
}

/* The next frame that the card sends, or 0. */
static size_t next_frame(uint8_t frame[FRAME_MAX])
{
    ssize_t got = recv(wire, frame, FRAME_MAX, 0);

    return got > 0 ? (size_t)got : 0;
}

/* Posts a READ to a peer and takes what the card then sends. */
static size_t first_frame(struct card_queue *q, unsigned family, uint64_t high, uint64_t low, uint8_t frame[FRAME_MAX])
{
    struct netdam_descriptor d = {.opcode = NETDAM_OP_READ, .length = 8, .user_data = 7, .remote_key = 1};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t key;

    d.local_region = card_region(&card, REGION, 0x1000, &key);
    card_queue_create(q, &card, 0, NETDAM_VECTOR_NONE);
    assert_int_equal(
        card_admin_args(&card, NETDAM_ADMIN_PEER_OPEN, results, high, low, family | (uint64_t)NETDAM_UDP_PORT << 16),
        NETDAM_ADMIN_STATUS_OK);
    d.peer = (uint32_t)results[0];
    while (next_frame(frame) > 0) {
    }
    card_post(q, &d);
    settle();
    return next_frame(frame);
}

static void both_addresses_are_in_registers(void **state)
{
    (void)state;
    start(",ip6=fd00:1::23/48,lanes=8,lane-windows=4");
    assert_int_equal(card_read(&card, NETDAM_REG_IPV4, 4), 0x0a000001);
    assert_int_equal(card_read(&card, NETDAM_REG_IPV6_HIGH, 8), 0xfd00000100000000u);
    assert_int_equal(card_read(&card, NETDAM_REG_IPV6_LOW, 8), 0x23);
}

static void nobody_is_asked_for_a_static_neighbour(void **state)
{
    static const uint8_t macs[2][6] = {{2, 0, 0, 0, 0, 0xaa}, {2, 0, 0, 0, 0, 0xbb}};
    uint8_t frame[FRAME_MAX];
    struct card_queue q;
    unsigned kind, i;

    (void)state;
    start(",ip6=fd00::1/64,neighbours=10.0.0.2=02:00:00:00:00:aa;fd00::2=02:00:00:00:00:bb");
    for (kind = 0; kind < 4; kind++) {
        for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
            assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8), 0);
        }
        assert_true(first_frame(&q, 4, 0x0a000002, 0, frame) > 14);
        assert_memory_equal(frame, macs[0], 6);
        assert_int_equal(frame[12] << 8 | frame[13], 0x0800);
        reset(kind);
        assert_true(first_frame(&q, 6, 0xfd00000000000000u, 2, frame) > 14);
        assert_memory_equal(frame, macs[1], 6);
        assert_int_equal(frame[12] << 8 | frame[13], 0x86dd);
        reset(kind);
    }
    /* Who is not in the list is asked for. */
    assert_true(first_frame(&q, 4, 0x0a000003, 0, frame) > 14);
    assert_int_equal(frame[12] << 8 | frame[13], 0x0806);
}

static void without_time_outs_nothing_is_given_up_or_repeated(void **state)
{
    struct netdam_completion completion;
    uint8_t frame[FRAME_MAX];
    struct card_queue q;
    unsigned i;

    (void)state;
    start(",x-timeouts=off,neighbours=10.0.0.2=02:00:00:00:00:aa");
    assert_true(first_frame(&q, 4, 0x0a000002, 0, frame) > 14);
    for (i = 0; i < 600; i++) {
        machine_step(&machine, 60000000000);
    }
    assert_int_equal(q.cq->producer, 0);
    assert_int_equal(next_frame(frame), 0);
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_RETRANSMISSIONS), 0);
    /* A reset ends it all the same. */
    reset(0);
    assert_true(card_poll(&q, &completion, 1));
    assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
}

static void with_time_outs_a_silent_peer_is_given_up(void **state)
{
    uint8_t frame[FRAME_MAX];
    struct netdam_completion completion;
    struct card_queue q;
    unsigned i;

    (void)state;
    start(",neighbours=10.0.0.2=02:00:00:00:00:aa");
    assert_true(first_frame(&q, 4, 0x0a000002, 0, frame) > 14);
    for (i = 0; i < 6000 && q.cq->producer == 0; i++) {
        machine_step(&machine, 10000000);
    }
    assert_true(card_poll(&q, &completion, 1));
    assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
    assert_true(next_frame(frame) > 14);
}

/* The card with itself: frames of the tenant are sealed and opened, before and after a reset. */
static void a_tenant_reaches_its_region_and_nobody_else_does(void **state)
{
    const uint64_t port = 4 | (uint64_t)NETDAM_UDP_PORT << 16;
    unsigned round, tenant;

    (void)state;
    start("");
    for (round = 0; round < 2; round++) {
        uint64_t results[NETDAM_ADMIN_RESULTS];
        struct netdam_completion completion;
        struct card_queue q;
        uint64_t key;

        assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_TENANT_SET, results, 7, 0x0123456789abcdef,
                                         0xfedcba9876543210, NETDAM_TENANT_MODE_ENCRYPT),
                         NETDAM_ADMIN_STATUS_OK);
        assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_ARG1, 8), 0);
        assert_int_equal(
            card_admin_args(&card, NETDAM_ADMIN_REGION_CREATE, results, REGION, 0x1000, NETDAM_PERMISSION_ALL, 0, 7),
            NETDAM_ADMIN_STATUS_OK);
        key = results[1];
        card_queue_create(&q, &card, 0x8000, NETDAM_VECTOR_NONE);
        memset(card.onboard + REGION, 0x11 * (round + 1), 64);
        for (tenant = 0; tenant < 2; tenant++) {
            struct netdam_descriptor write = {
                .opcode = NETDAM_OP_WRITE,
                .length = 64,
                .remote_key = key,
                .remote_address = 256,
                .local_region = (uint32_t)results[0],
            };
            uint64_t opened[NETDAM_ADMIN_RESULTS];

            assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_PEER_OPEN, opened, 0x0a000001, 0,
                                             port | (uint64_t)(tenant * 7) << 32),
                             NETDAM_ADMIN_STATUS_OK);
            write.peer = (uint32_t)opened[0];
            card_post(&q, &write);
            assert_true(card_poll(&q, &completion, 1000));
            assert_int_equal(completion.status, tenant ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_KEY);
        }
        assert_memory_equal(card.onboard + REGION, card.onboard + REGION + 256, 64);
        assert_int_equal(card_counter(&card, NETDAM_COUNTER_RX_TENANT), 0);
        reset(0);
    }
}

static void memory_is_kept_across_reset_unless_it_is_scrubbed(void **state)
{
    unsigned kind, scrub, i;

    for (scrub = 0; scrub < 2; scrub++) {
        start(scrub ? ",scrub-on-reset=on" : "");
        for (kind = 0; kind < 3; kind++) {
            memset(card.onboard, 0x5a, ONBOARD_BYTES);
            reset(kind);
            for (i = 0; i < ONBOARD_BYTES; i += 509) {
                assert_int_equal(card.onboard[i], scrub ? 0 : 0x5a);
            }
            assert_int_equal(card.onboard[ONBOARD_BYTES - 1], scrub ? 0 : 0x5a);
        }
        teardown(state);
    }
}

/* Whether the event vector's message came since the last time. */
static bool event(void)
{
    bool told;

    settle();
    told = machine_read(&machine, TARGET, 4) == 0xe7e7;
    machine_write(&machine, TARGET, 4, 0);
    return told;
}

static void the_last_vector_tells_of_events(void **state)
{
    struct card_queue q;
    char *remove;

    (void)state;
    start("");
    card_bus_master(&card, true);
    card_msix_enable(&card, true, false);
    card_msix_set(&card, EVENT_VECTOR, TARGET, 0xe7e7, false);
    assert_false(event());

    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": false}}\n");
    assert_true(event());
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": true}}\n");
    assert_true(event());

    card_queue_create(&q, &card, 0, NETDAM_VECTOR_NONE);
    assert_false(event());
    __atomic_store_n(&q.sq->producer, 1000, __ATOMIC_RELEASE);
    card_doorbell(&card, q.number);
    assert_true(event());

    remove = machine_text("mv %s %s.away", firmware, firmware);
    assert_int_equal(system(remove), 0);
    free(remove);
    reset(0);
    assert_true(event());
    assert_true((card_read(&card, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_FIRMWARE_STALE) != 0);
    reset(0);
    assert_false(event());

    /* Masked: kept. */
    card_msix_mask(&card, EVENT_VECTOR, true);
    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": false}}\n");
    assert_false(event());
    assert_true(card_msix_pending(&card, EVENT_VECTOR));
    card_msix_mask(&card, EVENT_VECTOR, false);
    assert_true(event());
}

static void a_card_without_vectors_has_no_events(void **state)
{
    (void)state;
    start(",vectors=0");
    machine_monitor(&machine, NULL, "{\"execute\": \"set_link\", \"arguments\": {\"name\": \"w\", \"up\": false}}\n");
    settle();
    assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
    assert_int_equal(card_capability(&card, CARD_CAP_MSIX), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(both_addresses_are_in_registers),
        TEST(nobody_is_asked_for_a_static_neighbour),
        TEST(without_time_outs_nothing_is_given_up_or_repeated),
        TEST(with_time_outs_a_silent_peer_is_given_up),
        TEST(a_tenant_reaches_its_region_and_nobody_else_does),
        TEST(memory_is_kept_across_reset_unless_it_is_scrubbed),
        TEST(the_last_vector_tells_of_events),
        TEST(a_card_without_vectors_has_no_events),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: settings", tests, NULL, NULL);
}
