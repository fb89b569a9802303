/* SPDX-License-Identifier: BSD-3-Clause */
/* MSI-X, with the test image raising vectors: messages, masks, and every byte that goes to main memory counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "image.h"

/* In the machine's main memory. */
#define TARGET 0x00100000u

/* A local interrupt controller. */
#define INTERRUPT_CONTROLLER 0xfee00000u

static struct machine machine;
static struct card card;

static int setup(void **state)
{
    (void)state;
    machine_prepare(&machine);
    machine_start(
        &machine,
        (const char *const[]){"-object", "memory-backend-ram,id=m,size=64K", "-device",
                              machine_text("netdam,id=nd,memdev=m,ip=10.0.0.1/24,vectors=9,firmware=" NETDAM_TEST_IMAGES
                                           "/image.so%s",
                                           machine_wire_alone(&machine)),
                              NULL});
    card_open(&card, &machine, 0);
    card_bus_master(&card, true);
    card_msix_enable(&card, true, false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    machine_stop(&machine);
    return 0;
}

/* The device raises from its bottom half, so give the main loop turns: each command is one. */
static uint32_t raise_and_look(unsigned vector)
{
    unsigned i;

    machine_write(&machine, TARGET, 4, 0);
    card_write(&card, IMAGE_RAISE, 8, vector);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    return (uint32_t)machine_read(&machine, TARGET, 4);
}

static uint64_t main_memory_bytes(void)
{
    uint64_t bytes = card_read(&card, NETDAM_REG_MAIN_MEMORY_BYTES, 8);

    assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", "main-memory-bytes"), bytes);
    return bytes;
}

static void a_message_arrives_and_its_four_bytes_are_counted(void **state)
{
    (void)state;
    card_msix_set(&card, 3, TARGET, 0xc0ffee03, false);
    assert_int_equal(main_memory_bytes(), 0);
    assert_int_equal(raise_and_look(3), 0xc0ffee03);
    assert_int_equal(main_memory_bytes(), 4);
    assert_false(card_msix_pending(&card, 3));
    /* The last one of nine. */
    card_msix_set(&card, 8, TARGET, 8, false);
    assert_int_equal(raise_and_look(8), 8);
    assert_int_equal(main_memory_bytes(), 8);
}

static void a_message_to_an_interrupt_controller_is_not_main_memory(void **state)
{
    (void)state;
    card_msix_set(&card, 0, INTERRUPT_CONTROLLER, 0x31, false);
    raise_and_look(0);
    assert_int_equal(main_memory_bytes(), 0);
    /* The first address before and behind them is. */
    card_msix_set(&card, 0, INTERRUPT_CONTROLLER - 4, 0, false);
    raise_and_look(0);
    card_msix_set(&card, 0, INTERRUPT_CONTROLLER + 0x100000, 0, false);
    raise_and_look(0);
    assert_int_equal(main_memory_bytes(), 8);
}

static void a_masked_vector_waits_until_it_is_unmasked(void **state)
{
    (void)state;
    card_msix_set(&card, 2, TARGET, 0x2222, true);
    assert_int_equal(raise_and_look(2), 0);
    assert_true(card_msix_pending(&card, 2));
    assert_false(card_msix_pending(&card, 1));
    assert_int_equal(main_memory_bytes(), 0);
    card_msix_mask(&card, 2, false);
    assert_int_equal(machine_read(&machine, TARGET, 4), 0x2222);
    assert_false(card_msix_pending(&card, 2));
    assert_int_equal(main_memory_bytes(), 4);
}

static void the_function_mask_holds_all_vectors_back(void **state)
{
    (void)state;
    card_msix_set(&card, 1, TARGET, 0x1111, false);
    card_msix_enable(&card, true, true);
    assert_int_equal(raise_and_look(1), 0);
    assert_true(card_msix_pending(&card, 1));
    assert_int_equal(main_memory_bytes(), 0);
    card_msix_enable(&card, true, false);
    assert_int_equal(machine_read(&machine, TARGET, 4), 0x1111);
    assert_int_equal(main_memory_bytes(), 4);
}

static void without_bus_mastering_nothing_leaves(void **state)
{
    (void)state;
    card_msix_set(&card, 1, TARGET, 0x1111, false);
    card_bus_master(&card, false);
    assert_int_equal(raise_and_look(1), 0);
    /* Nor what was pending before. */
    card_msix_mask(&card, 1, true);
    assert_int_equal(raise_and_look(1), 0);
    card_msix_mask(&card, 1, false);
    assert_int_equal(machine_read(&machine, TARGET, 4), 0);
    assert_int_equal(main_memory_bytes(), 0);
    card_bus_master(&card, true);
    assert_int_equal(raise_and_look(1), 0x1111);
}

static void without_msix_nothing_leaves(void **state)
{
    (void)state;
    card_msix_set(&card, 1, TARGET, 0x1111, false);
    card_msix_enable(&card, false, false);
    assert_int_equal(raise_and_look(1), 0);
    assert_int_equal(main_memory_bytes(), 0);
    /* Nor later: it is lost. */
    assert_false(card_msix_pending(&card, 1));
    card_msix_enable(&card, true, false);
    machine_step(&machine, 1000);
    assert_int_equal(machine_read(&machine, TARGET, 4), 0);
}

static void an_impossible_vector_is_ignored(void **state)
{
    (void)state;
    card_msix_set(&card, 0, TARGET, 1, false);
    assert_int_equal(raise_and_look(9), 0);
    assert_int_equal(raise_and_look(0xffff), 0);
    assert_int_equal(raise_and_look(0xffffffff), 0);
    assert_int_equal(raise_and_look(0), 1);
}

/* A guest may aim a message anywhere, also where it makes the device work again. */
static void a_message_to_the_device_itself_is_survived(void **state)
{
    (void)state;
    card_msix_set(&card, 0, card.registers + IMAGE_SEND, 3, false);
    raise_and_look(0);
    assert_int_equal(card_read(&card, IMAGE_SEND, 8), 0);
    /* Raises itself for ever: the machine still answers. */
    card_msix_set(&card, 1, card.registers + IMAGE_RAISE, 1, false);
    card_msix_set(&card, 2, TARGET, 0x2222, false);
    card_write(&card, IMAGE_RAISE, 8, 1);
    assert_int_equal(raise_and_look(2), 0x2222);
    card_msix_mask(&card, 1, true);
    /* Its own MSI-X table. */
    card_msix_set(&card, 3, card.msix + 16 * 3 + 12, 1, false);
    raise_and_look(3);
    assert_int_equal(machine_read(&machine, card.msix + 16 * 3 + 12, 4), 1);
    /* Its own on-board memory. */
    card_msix_set(&card, 4, card.memory + 0x40, 0x4444, false);
    raise_and_look(4);
    assert_int_equal(machine_read(&machine, card.memory + 0x40, 4), 0x4444);
}

static void a_message_may_reset_the_device(void **state)
{
    (void)state;
    /* The stop of the reset raises a further vector. */
    card_msix_set(&card, 0, card.registers + NETDAM_REG_CONTROL, NETDAM_CONTROL_RESET, false);
    card_msix_set(&card, IMAGE_STOP_VECTOR, TARGET, 0x7777, false);
    assert_int_equal(raise_and_look(0), 0x7777);
    assert_int_equal(card_read(&card, IMAGE_STARTS, 8), 1);
    assert_true(machine_is_alive(&machine));
}

static void a_function_reset_forgets_interrupts(void **state)
{
    unsigned i;

    (void)state;
    machine_write(&machine, TARGET, 4, 0);
    /* While the machine stands still interrupts wait; one from before the reset and the stop's own must not outlive it.
     */
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    card_write(&card, IMAGE_RAISE, 8, 2);
    card_function_reset(&card);
    card_bus_master(&card, true);
    card_msix_enable(&card, true, false);
    card_msix_set(&card, 2, TARGET, 0x2222, false);
    card_msix_set(&card, IMAGE_STOP_VECTOR, TARGET, 0x7777, false);
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000);
    }
    assert_int_equal(machine_read(&machine, TARGET, 4), 0);
    assert_false(card_msix_pending(&card, IMAGE_STOP_VECTOR));
}

static void a_machine_that_stands_still_gets_no_message(void **state)
{
    (void)state;
    card_msix_set(&card, 0, TARGET, 0x1234, false);
    machine_monitor(&machine, NULL, "{\"execute\": \"stop\"}\n");
    assert_int_equal(raise_and_look(0), 0);
    machine_monitor(&machine, NULL, "{\"execute\": \"cont\"}\n");
    machine_step(&machine, 1000);
    machine_step(&machine, 1000);
    assert_int_equal(machine_read(&machine, TARGET, 4), 0x1234);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_message_arrives_and_its_four_bytes_are_counted),
        TEST(a_message_to_an_interrupt_controller_is_not_main_memory),
        TEST(a_masked_vector_waits_until_it_is_unmasked),
        TEST(the_function_mask_holds_all_vectors_back),
        TEST(without_bus_mastering_nothing_leaves),
        TEST(without_msix_nothing_leaves),
        TEST(an_impossible_vector_is_ignored),
        TEST(a_message_to_the_device_itself_is_survived),
        TEST(a_message_may_reset_the_device),
        TEST(a_function_reset_forgets_interrupts),
        TEST(a_machine_that_stands_still_gets_no_message),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: interrupts", tests, NULL, NULL);
}
