/* SPDX-License-Identifier: BSD-3-Clause */
/* Two cards with the real firmware on one hub, bus mastering off unless said: rings, doorbells, interrupts, hostile
 * indices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"

#define ONBOARD_BYTES (4u << 20)
#define QUEUES        0x0u
#define DATA          0x200000u
#define DATA_BYTES    0x100000u

/* In the machine's main memory. */
#define TARGET 0x00100000u

static struct machine machine;
static struct card cards[2];
static uint32_t regions[2];
static uint64_t keys[2];

static int setup(void **state)
{
    char *files[2];
    int i;

    (void)state;
    machine_prepare(&machine);
    for (i = 0; i < 2; i++) {
        files[i] = machine_text("%s/onboard%d", machine.directory, i);
    }
    machine_start(&machine,
                  (const char *const[]){
                      "-object", machine_text("memory-backend-file,id=m0,size=4M,share=on,mem-path=%s", files[0]),
                      "-object", machine_text("memory-backend-file,id=m1,size=4M,share=on,mem-path=%s", files[1]),
                      "-netdev", "hubport,id=w0,hubid=0", "-netdev", "hubport,id=w1,hubid=0", "-device",
                      machine_text("netdam,id=nd0,memdev=m0,%s,ip=10.0.0.1/24,mac=02:00:00:00:00:01,firmware=%s",
                                   machine_wire(&machine, &machine, 0), NETDAM_TEST_FIRMWARE),
                      "-device",
                      machine_text("netdam,id=nd1,memdev=m1,%s,ip=10.0.0.2/24,mac=02:00:00:00:00:02,firmware=%s",
                                   machine_wire(&machine, &machine, 1), NETDAM_TEST_FIRMWARE),
                      NULL});
    for (i = 0; i < 2; i++) {
        card_open(&cards[i], &machine, (unsigned)i);
        card_map(&cards[i], files[i], ONBOARD_BYTES);
        card_await_link(&cards[i]);
        regions[i] = card_region(&cards[i], DATA, DATA_BYTES, &keys[i]);
    }
    return 0;
}

/* One card, alone on a hub: QEMU takes one frame of it and never calls back. */
static int setup_alone(void **state)
{
    char *file;

    (void)state;
    machine_prepare(&machine);
    file = machine_text("%s/onboard", machine.directory);
    machine_start(&machine, (const char *const[]){
                                "-object", machine_text("memory-backend-file,id=m0,size=4M,share=on,mem-path=%s", file),
                                "-netdev", "hubport,id=w0,hubid=0", "-device",
                                "netdam,id=nd0,memdev=m0,netdev=w0,ip=10.0.0.1/24,mac=02:00:00:00:00:01,"
                                "neighbours=10.0.0.2=02:00:00:00:00:02,firmware=" NETDAM_TEST_FIRMWARE,
                                NULL});
    card_open(&cards[0], &machine, 0);
    card_map(&cards[0], file, ONBOARD_BYTES);
    regions[0] = card_region(&cards[0], DATA, DATA_BYTES, &keys[0]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    card_close(&cards[0]);
    card_close(&cards[1]);
    machine_stop(&machine);
    return 0;
}

static struct netdam_completion perform(struct card_queue *q, struct netdam_descriptor descriptor)
{
    struct netdam_completion completion;

    card_post(q, &descriptor);
    if (!card_poll(q, &completion, 5000)) {
        fail_msg("descriptor 0x%lx is not completed", (unsigned long)descriptor.user_data);
    }
    assert_int_equal(completion.user_data, descriptor.user_data);
    assert_int_equal(completion.opcode, descriptor.opcode);
    return completion;
}

static struct netdam_descriptor request(enum netdam_op opcode, uint32_t peer, unsigned node, uint32_t length)
{
    static uint64_t user_data = 0x1000;
    struct netdam_descriptor d = {
        .opcode = (uint8_t)opcode,
        .user_data = user_data,
        .peer = peer,
        .length = length,
        .remote_key = keys[node],
    };

    user_data++;
    return d;
}

static void fill(uint8_t *memory, size_t bytes, unsigned seed)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        seed = seed * 1103515245u + 12345u;
        memory[i] = (uint8_t)(seed >> 16);
    }
}

static uint64_t main_memory_bytes(void)
{
    return card_read(&cards[0], NETDAM_REG_MAIN_MEMORY_BYTES, 8) +
           card_read(&cards[1], NETDAM_REG_MAIN_MEMORY_BYTES, 8);
}

/* Writes to a node and reads back, over several packets, odd lengths and addresses. */
static void write_and_read(struct card_queue *q, uint32_t peer, unsigned node)
{
    static const uint32_t lengths[] = {1, 8, 1399, 1400, 1401, 65537};
    uint8_t *local = cards[0].onboard + DATA;
    size_t i;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct netdam_descriptor d = request(NETDAM_OP_WRITE, peer, node, lengths[i]);
        struct netdam_completion completion;
        uint64_t target = 0x40003 + i;

        fill(local, lengths[i], (unsigned)i + 1);
        d.local_region = regions[0];
        d.remote_address = target;
        completion = perform(q, d);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.length, lengths[i]);
        assert_memory_equal(local, cards[node].onboard + DATA + target, lengths[i]);

        d = request(NETDAM_OP_READ, peer, node, lengths[i]);
        d.local_region = regions[0];
        d.u.buffer.local_address = 0x80000;
        d.remote_address = target;
        memset(local + 0x80000, 0, lengths[i] + 1);
        completion = perform(q, d);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_memory_equal(local, local + 0x80000, lengths[i]);
        assert_int_equal(local[0x80000 + lengths[i]], 0);
        /* The guest's loads through the BAR see it too. */
        assert_int_equal(machine_read(&machine, cards[node].memory + DATA + target + lengths[i] - 1, 1),
                         local[lengths[i] - 1]);
    }
}

static void a_request_to_the_own_address_completes(void **state)
{
    struct card_queue q;

    (void)state;
    card_queue_create(&q, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    write_and_read(&q, card_peer(&cards[0], 1), 0);
    assert_int_equal(main_memory_bytes(), 0);
    assert_int_equal(card_counter(&cards[1], NETDAM_COUNTER_REQUESTS_EXECUTED), 0);
}

static void a_request_to_the_other_card_completes_without_main_memory(void **state)
{
    struct card_queue q;
    uint32_t peer;
    unsigned i;

    (void)state;
    card_queue_create(&q, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    peer = card_peer(&cards[0], 2);
    write_and_read(&q, peer, 1);
    for (i = 0; i < 50; i++) {
        struct netdam_descriptor d = request(NETDAM_OP_FETCH_ADD, peer, 1, 8);
        struct netdam_completion completion;

        d.type = NETDAM_TYPE_U64;
        d.remote_address = 0x1000;
        d.u.operand[0] = 3;
        completion = perform(&q, d);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.result, 3 * i);
    }
    assert_int_equal(main_memory_bytes(), 0);
    assert_true(card_counter(&cards[1], NETDAM_COUNTER_REQUESTS_EXECUTED) > 50);
}

/* Both at once: the hub delivers a frame to a card while that card is sending. */
static void two_cards_may_talk_to_each_other_at_once(void **state)
{
    struct card_queue q[2];
    uint32_t peers[2];
    unsigned i, round;

    (void)state;
    for (i = 0; i < 2; i++) {
        card_queue_create(&q[i], &cards[i], QUEUES, NETDAM_VECTOR_NONE);
        peers[i] = card_peer(&cards[i], 2 - i);
        fill(cards[i].onboard + DATA, 65536, i + 77);
    }
    for (round = 0; round < 20; round++) {
        for (i = 0; i < 2; i++) {
            struct netdam_descriptor d = request(NETDAM_OP_WRITE, peers[i], 1 - i, 65536);

            d.local_region = regions[i];
            d.remote_address = 0x20000;
            card_post(&q[i], &d);
        }
    }
    for (round = 0; round < 20; round++) {
        for (i = 0; i < 2; i++) {
            struct netdam_completion completion;

            if (!card_poll(&q[i], &completion, 20000)) {
                fail_msg("round %u of card %u is not completed", round, i);
            }
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
        }
    }
    assert_memory_equal(cards[0].onboard + DATA, cards[1].onboard + DATA + 0x20000, 65536);
    assert_memory_equal(cards[1].onboard + DATA, cards[0].onboard + DATA + 0x20000, 65536);
    assert_int_equal(main_memory_bytes(), 0);
}

static void all_queue_pairs_work_and_no_more_exist(void **state)
{
    struct card_queue q[16];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint32_t peer = card_peer(&cards[0], 2);
    unsigned i;

    (void)state;
    assert_int_equal(card_read(&cards[0], NETDAM_REG_QUEUE_PAIRS, 4), 16);
    for (i = 0; i < 16; i++) {
        card_queue_create(&q[i], &cards[0], QUEUES + i * CARD_QUEUE_BYTES, NETDAM_VECTOR_NONE);
        assert_int_equal(q[i].number, i);
    }
    assert_int_equal(card_admin_args(&cards[0], NETDAM_ADMIN_QUEUE_CREATE, results, 0x100000, 5, 0x110000, 5, 0, 0,
                                     (uint64_t)NETDAM_VECTOR_NONE << 16, 0),
                     NETDAM_ADMIN_STATUS_NO_SPACE);
    for (i = 16; i-- > 0;) {
        struct netdam_descriptor d = request(NETDAM_OP_FETCH_ADD, peer, 1, 4);
        struct netdam_completion completion;

        d.type = NETDAM_TYPE_U32;
        d.u.operand[0] = 1;
        completion = perform(&q[i], d);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.queue_pair, i);
        assert_int_equal(completion.result, 15 - i);
    }
}

static void the_flag_says_when_the_doorbell_is_needed(void **state)
{
    struct netdam_completion completion;
    struct card_queue q;
    struct netdam_descriptor d;
    unsigned i;

    (void)state;
    card_queue_create(&q, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    d = request(NETDAM_OP_FETCH_ADD, card_peer(&cards[0], 2), 1, 8);
    d.type = NETDAM_TYPE_U64;
    assert_int_equal(perform(&q, d).status, NETDAM_STATUS_OK);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000000);
    }
    /* The device sleeps and has said so; without the doorbell it does not look. */
    assert_true((q.sq->consumer_flags & NETDAM_RING_NEED_WAKEUP) != 0);
    ((struct netdam_descriptor *)(void *)(q.sq + 1))[q.sq->producer & 31u] = d;
    __atomic_store_n(&q.sq->producer, q.sq->producer + 1, __ATOMIC_RELEASE);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(q.sq->consumer + 1, q.sq->producer);
    card_doorbell(&cards[0], q.number);
    assert_true(card_poll(&q, &completion, 5000));
    assert_int_equal(q.sq->consumer, q.sq->producer);
}

static void an_armed_completion_raises_its_vector_once(void **state)
{
    struct card_queue q;
    struct netdam_descriptor d;
    unsigned i;

    (void)state;
    card_queue_create(&q, &cards[0], QUEUES, 5);
    card_bus_master(&cards[0], true);
    card_msix_enable(&cards[0], true, false);
    card_msix_set(&cards[0], 5, TARGET, 0x55, false);
    d = request(NETDAM_OP_FETCH_ADD, card_peer(&cards[0], 2), 1, 8);
    d.type = NETDAM_TYPE_U64;
    /* Not armed: nothing. */
    perform(&q, d);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(machine_read(&machine, TARGET, 4), 0);
    assert_int_equal(card_counter(&cards[0], NETDAM_COUNTER_INTERRUPTS), 0);
    /* Armed once: one interrupt for two completions. */
    card_arm(&q);
    perform(&q, d);
    perform(&q, d);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(machine_read(&machine, TARGET, 4), 0x55);
    assert_int_equal(card_counter(&cards[0], NETDAM_COUNTER_INTERRUPTS), 1);
    assert_int_equal(main_memory_bytes(), 4);
}

static void an_impossible_index_stops_that_pair_only(void **state)
{
    uint64_t results[NETDAM_ADMIN_RESULTS];
    struct card_queue bad, good;
    uint32_t peer = card_peer(&cards[0], 2);
    struct netdam_descriptor d;
    unsigned i;

    (void)state;
    card_queue_create(&bad, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    card_queue_create(&good, &cards[0], QUEUES + CARD_QUEUE_BYTES, NETDAM_VECTOR_NONE);
    __atomic_store_n(&bad.sq->producer, 33, __ATOMIC_RELEASE);
    card_doorbell(&cards[0], bad.number);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(card_admin_args(&cards[0], NETDAM_ADMIN_QUEUE_QUERY, results, bad.number), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(results[0], NETDAM_QUEUE_STATE_ERROR);
    assert_int_equal(card_counter(&cards[0], NETDAM_COUNTER_RING_ERRORS), 1);
    d = request(NETDAM_OP_FETCH_ADD, peer, 1, 8);
    d.type = NETDAM_TYPE_U64;
    assert_int_equal(perform(&good, d).status, NETDAM_STATUS_OK);
    assert_int_equal(card_admin_args(&cards[0], NETDAM_ADMIN_QUEUE_DESTROY, NULL, bad.number), NETDAM_ADMIN_STATUS_OK);
    card_queue_create(&bad, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    assert_int_equal(perform(&bad, d).status, NETDAM_STATUS_OK);
}

/* Whatever a guest writes into rings and descriptors, the device completes it or stops the pair, and lives. */
static void random_descriptors_and_indices_do_no_harm(void **state)
{
    unsigned seed = 20240229, round, i;
    struct card_queue q;
    struct netdam_descriptor d;

    (void)state;
    for (round = 0; round < 60; round++) {
        card_queue_create(&q, &cards[0], QUEUES, (uint16_t)(round % 17));
        (void)card_peer(&cards[0], round % 4 + 1);
        for (i = 0; i < 32; i++) {
            fill((uint8_t *)(q.sq + 1) + i * sizeof(d), sizeof(d), seed++);
            /* Many with a field or two in range, to come further. */
            ((uint8_t *)(q.sq + 1))[i * sizeof(d)] = (uint8_t[]){1, 2, 0x10, 0x11, 0x20, 0x30, 0x31, 0x80}[seed % 8];
            ((struct netdam_descriptor *)(void *)(q.sq + 1))[i].peer = seed % 8;
            ((struct netdam_descriptor *)(void *)(q.sq + 1))[i].length %= 1u << seed % 32;
        }
        q.cq->arm = seed;
        q.cq->consumer = round % 3 == 0 ? seed * 40503u : 0;
        __atomic_store_n(&q.sq->producer, round % 5 == 0 ? seed * 2654435761u : 32, __ATOMIC_RELEASE);
        card_doorbell(&cards[0], q.number);
        for (i = 0; i < 5; i++) {
            machine_step(&machine, 1000000);
        }
        assert_int_equal(card_admin_args(&cards[0], NETDAM_ADMIN_QUEUE_DESTROY, NULL, q.number),
                         NETDAM_ADMIN_STATUS_OK);
    }
    card_write(&cards[0], NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    regions[0] = card_region(&cards[0], DATA, DATA_BYTES, &keys[0]);
    card_queue_create(&q, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    write_and_read(&q, card_peer(&cards[0], 2), 1);
    assert_int_equal(main_memory_bytes(), 0);
}

/* Waits for completions, all of them TIMEOUT, while seconds of the virtual clock run. */
static void all_time_out(struct card_queue *q, unsigned count)
{
    struct netdam_completion completion;
    unsigned steps = 0;

    while (count > 0) {
        if (card_poll(q, &completion, 0)) {
            assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
            count--;
        } else {
            assert_true(steps++ < 60000);
            machine_step(&machine, 1000000);
        }
    }
}

static void requests_end_although_the_netdev_never_calls_back(void **state)
{
    struct netdam_descriptor d;
    struct card_queue q;
    uint32_t peer;
    unsigned i;

    (void)state;
    card_queue_create(&q, &cards[0], QUEUES, NETDAM_VECTOR_NONE);
    peer = card_peer(&cards[0], 2);
    /* More frames than the device holds. */
    for (i = 0; i < 32; i++) {
        d = request(NETDAM_OP_WRITE, peer, 0, 20000);
        d.local_region = regions[0];
        card_post(&q, &d);
    }
    all_time_out(&q, 32);
    /* Whatever is under way of confirmations and the like ends too. */
    for (i = 0; i < 200; i++) {
        machine_step(&machine, 1000000000);
    }
    d = request(NETDAM_OP_WRITE, peer, 0, 8);
    d.local_region = regions[0];
    card_post(&q, &d);
    all_time_out(&q, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_request_to_the_own_address_completes),
        TEST(a_request_to_the_other_card_completes_without_main_memory),
        TEST(two_cards_may_talk_to_each_other_at_once),
        TEST(all_queue_pairs_work_and_no_more_exist),
        TEST(the_flag_says_when_the_doorbell_is_needed),
        TEST(an_armed_completion_raises_its_vector_once),
        TEST(an_impossible_index_stops_that_pair_only),
        TEST(random_descriptors_and_indices_do_no_harm),
        cmocka_unit_test_setup_teardown(requests_end_although_the_netdev_never_calls_back, setup_alone, teardown),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: rings", tests, NULL, NULL);
}
