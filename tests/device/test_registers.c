/* SPDX-License-Identifier: BSD-3-Clause */
/* The function as software finds it: configuration space, BARs, and every register of the specification's list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "netdam/firmware.h"
#include "netdam/wire.h"

#define ONBOARD_BYTES (1u << 20)

static struct machine machine;
static struct card card;

struct reg {
    const char *name;
    uint32_t offset;
    unsigned bytes;
    bool writable;
    uint64_t reset;
};

#define RO                                            false
#define RW                                            true
#define REG(name, offset, bytes, access, reset, text) {#name, offset, bytes, access, reset},
static const struct reg registers[] = {NETDAM_REG_LIST(REG)};
#undef REG
#undef RO
#undef RW

#define REGISTER_COUNT (sizeof(registers) / sizeof(registers[0]))

static const char *const counter_names[] = {
#define NAME(name, text) #name,
    NETDAM_COUNTER_LIST(NAME)
#undef NAME
};

static int setup(void **state)
{
    (void)state;
    machine_prepare(&machine);
    machine_start(&machine, (const char *const[]){
                                "-object", "memory-backend-ram,id=m,size=1M", "-device",
                                machine_text("netdam,id=nd,memdev=m,ip=10.1.2.3/16,mac=02:11:22:33:44:55,mtu=9000,"
                                             "port=4242,queue-pairs=20,vectors=21,regions=33,peers=44,"
                                             "firmware=" NETDAM_TEST_FIRMWARE "%s",
                                             machine_wire_alone(&machine)),
                                NULL});
    card_open(&card, &machine, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    machine_stop(&machine);
    return 0;
}

static uint64_t all_ones(unsigned bytes)
{
    return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
}

static uint64_t bar_size(unsigned bar, unsigned *flags)
{
    const unsigned offset = 0x10 + 4 * bar;
    uint64_t mask;

    card_config_write(&card, offset, 4, UINT32_MAX);
    mask = card_config_read(&card, offset, 4);
    *flags = mask & 0xfu;
    mask &= ~UINT64_C(0xf);
    if ((*flags & 6u) == 4) {
        card_config_write(&card, offset + 4, 4, UINT32_MAX);
        mask |= (uint64_t)card_config_read(&card, offset + 4, 4) << 32;
    } else {
        mask |= UINT64_C(0xffffffff) << 32;
    }
    return ~mask + 1;
}

static void configuration_space_is_as_specified(void **state)
{
    unsigned flags, express, msix;

    (void)state;
    assert_int_equal(card_config_read(&card, 0x00, 2), NETDAM_PCI_VENDOR_ID);
    assert_int_equal(card_config_read(&card, 0x02, 2), NETDAM_PCI_DEVICE_ID);
    assert_int_equal(card_config_read(&card, 0x08, 1), NETDAM_PCI_REVISION);
    assert_int_equal(card_config_read(&card, 0x0a, 2), NETDAM_PCI_CLASS);
    /* No INTx. */
    assert_int_equal(card_config_read(&card, 0x3d, 1), 0);

    card_config_write(&card, 0x04, 2, 0);
    assert_int_equal(bar_size(NETDAM_BAR_REGISTERS, &flags), NETDAM_BAR0_BYTES);
    assert_int_equal(flags, 0x0);
    assert_int_equal(bar_size(NETDAM_BAR_MEMORY, &flags), ONBOARD_BYTES);
    assert_int_equal(flags, 0xc); /* 64 bit, prefetchable */
    assert_true(bar_size(NETDAM_BAR_MSIX, &flags) >= 21 * 16);
    card_bars(&card);

    express = card_capability(&card, CARD_CAP_EXPRESS);
    assert_true(express != 0);
    assert_true((card_config_read(&card, express + 4, 4) & 1u << 28) != 0); /* function level reset */
    msix = card_capability(&card, CARD_CAP_MSIX);
    assert_true(msix != 0);
    assert_int_equal((card_config_read(&card, msix + 2, 2) & 0x7ff) + 1, 21);
    assert_int_equal(card_config_read(&card, msix + 4, 4) & 7u, NETDAM_BAR_MSIX);
    assert_int_equal(card_config_read(&card, msix + 8, 4) & 7u, NETDAM_BAR_MSIX);
}

static void every_register_has_its_value_after_reset(void **state)
{
    static const struct {
        uint32_t offset;
        uint64_t value;
    } configured[] = {
        {NETDAM_REG_FIRMWARE_ABI, NETDAM_FW_ABI_VERSION},
        {NETDAM_REG_STATUS, NETDAM_DEVICE_READY}, /* nobody at the other end, so no link */
        {NETDAM_REG_VECTORS, 21},
        {NETDAM_REG_MEMORY_BYTES, ONBOARD_BYTES},
        {NETDAM_REG_QUEUE_PAIRS, 20},
        {NETDAM_REG_REGIONS, 33},
        {NETDAM_REG_PEERS, 44},
        {NETDAM_REG_MTU, 9000},
        {NETDAM_REG_PAYLOAD_MAX, 8904},
        {NETDAM_REG_MAC, 0x021122334455},
        {NETDAM_REG_IPV4, 0x0a010203},
        {NETDAM_REG_UDP_PORT, 4242},
        {NETDAM_REG_IPV6_HIGH, 0},
        {NETDAM_REG_IPV6_LOW, 0},
    };
    size_t i;

    (void)state;
    for (i = 0; i < REGISTER_COUNT; i++) {
        uint64_t value = card_read(&card, registers[i].offset, registers[i].bytes);

        if (registers[i].reset != NETDAM_REG_CONFIG && value != registers[i].reset) {
            fail_msg("%s is 0x%lx", registers[i].name, (unsigned long)value);
        }
    }
    for (i = 0; i < sizeof(configured) / sizeof(configured[0]); i++) {
        unsigned bytes = 4;
        size_t n;

        for (n = 0; n < REGISTER_COUNT; n++) {
            bytes = registers[n].offset == configured[i].offset ? registers[n].bytes : bytes;
        }
        if (card_read(&card, configured[i].offset, bytes) != configured[i].value) {
            fail_msg("register 0x%x is 0x%lx", configured[i].offset,
                     (unsigned long)card_read(&card, configured[i].offset, bytes));
        }
    }
    assert_true(card_read(&card, NETDAM_REG_FIRMWARE_VERSION, 4) != 0);
    assert_true(card_read(&card, NETDAM_REG_LENGTH_MAX, 4) >= 8904);
    assert_true(card_read(&card, NETDAM_REG_WINDOW, 4) >= 1 &&
                card_read(&card, NETDAM_REG_WINDOW, 4) <= NETDAM_WINDOW_MAX);
    assert_true(card_read(&card, NETDAM_REG_GENERATION, 8) != 0);
    for (i = 0; i < NETDAM_COUNTER_COUNT; i++) {
        assert_int_equal(card_counter(&card, (enum netdam_counter)i), 0);
    }
}

static void wide_registers_may_be_read_in_halves(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < REGISTER_COUNT; i++) {
        uint64_t value;

        if (registers[i].bytes != 8) {
            continue;
        }
        value = card_read(&card, registers[i].offset, 8);
        if (card_read(&card, registers[i].offset, 4) != (uint32_t)value ||
            card_read(&card, registers[i].offset + 4, 4) != value >> 32) {
            fail_msg("halves of %s", registers[i].name);
        }
    }
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS), 0);
}

static void read_only_registers_are_not_changed_by_writes(void **state)
{
    uint64_t errors = 0;
    size_t i;

    (void)state;
    for (i = 0; i < REGISTER_COUNT; i++) {
        uint64_t before, after;

        if (registers[i].writable) {
            continue;
        }
        before = card_read(&card, registers[i].offset, registers[i].bytes);
        card_write(&card, registers[i].offset, registers[i].bytes, ~before);
        after = card_read(&card, registers[i].offset, registers[i].bytes);
        errors++;
        if (after != before || card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS) != errors) {
            fail_msg("%s: 0x%lx, then 0x%lx, %lu errors", registers[i].name, (unsigned long)before,
                     (unsigned long)after, (unsigned long)card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS));
        }
    }
    for (i = 0; i < NETDAM_COUNTER_COUNT; i++) {
        card_write(&card, NETDAM_PAGE_COUNTERS + 8 * (uint32_t)i, 8, 0);
        errors++;
        assert_int_equal(card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS), errors);
    }
}

static void writable_registers_keep_what_they_should(void **state)
{
    uint32_t i;

    (void)state;
    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        card_write(&card, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, UINT64_C(0x0123456789abcdef) + i);
    }
    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8), UINT64_C(0x0123456789abcdef) + i);
    }
    card_write(&card, NETDAM_REG_ADMIN_ARG3 + 4, 4, 0x76543210);
    assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_ARG3, 8), UINT64_C(0x7654321089abcdf2));
    card_write(&card, NETDAM_REG_ADMIN_ARG3, 4, 0xfedcba98);
    assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_ARG3, 8), UINT64_C(0x76543210fedcba98));
    card_write(&card, NETDAM_REG_CONTROL, 4, 0);
    assert_int_equal(card_read(&card, NETDAM_REG_CONTROL, 4), 0);
    card_write(&card, NETDAM_REG_ADMIN_COMMAND, 4, 0x5a5a);
    assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_COMMAND, 4), 0x5a5a);
    assert_int_equal(card_read(&card, NETDAM_REG_ADMIN_STATUS, 4), NETDAM_ADMIN_STATUS_BAD_COMMAND);
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS), 0);
}

static uint64_t errors_so_far;

static void refused(uint32_t offset, unsigned bytes)
{
    uint64_t value = card_read(&card, offset, bytes);

    errors_so_far++;
    if (value != all_ones(bytes) || card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS) != errors_so_far) {
        fail_msg("read of 0x%x, %u bytes: 0x%lx, %lu errors instead of %lu", offset, bytes, (unsigned long)value,
                 (unsigned long)card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS), (unsigned long)errors_so_far);
    }
    card_write(&card, offset, bytes, 0);
    errors_so_far++;
    if (card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS) != errors_so_far) {
        fail_msg("write of 0x%x, %u bytes is not counted", offset, bytes);
    }
}

static void every_other_access_is_refused_and_counted(void **state)
{
    uint64_t generation = card_read(&card, NETDAM_REG_GENERATION, 8);
    size_t i;

    (void)state;
    errors_so_far = 0;
    for (i = 0; i < REGISTER_COUNT; i++) {
        const struct reg *r = &registers[i];

        refused(r->offset, 1);
        refused(r->offset, 2);
        refused(r->offset + 1, 1);
        refused(r->offset + 2, 2);
        refused(r->offset + r->bytes - 1, 1);
        /* Across the border to whatever follows. */
        refused(r->offset + 2, 4);
        refused(r->offset + r->bytes - 1, 8);
        if (r->bytes == 4) {
            refused(r->offset, 8);
        } else {
            refused(r->offset + 4, 8);
        }
    }
    refused(0x0080, 4);
    refused(0x0ffc, 4);
    refused(NETDAM_REG_CONTROL + 4, 4);
    refused(NETDAM_REG_ADMIN_RESULT3 + 8, 8);
    refused(NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_COUNT, 8);
    refused(0x3000, 4);
    refused(NETDAM_PAGE_DOORBELLS - 4, 4);
    refused(NETDAM_PAGE_DOORBELLS, 1);
    refused(NETDAM_PAGE_DOORBELLS, 2);
    refused(NETDAM_PAGE_DOORBELLS, 8);
    refused(NETDAM_PAGE_DOORBELLS + 4, 4);
    refused(NETDAM_PAGE_DOORBELLS + 2, 4);
    refused(NETDAM_PAGE_DOORBELLS + 20 * NETDAM_PAGE_BYTES, 4);
    refused(NETDAM_BAR0_BYTES - 8, 8);
    refused(NETDAM_BAR0_BYTES - 1, 1);
    assert_int_equal(card_read(&card, NETDAM_REG_GENERATION, 8), generation);
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_DOORBELLS), 0);
}

static void doorbells_are_counted_and_read_as_zero(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 20; i++) {
        card_doorbell(&card, i);
        assert_int_equal(card_read(&card, NETDAM_PAGE_DOORBELLS + i * NETDAM_PAGE_BYTES, 4), 0);
        assert_int_equal(card_counter(&card, NETDAM_COUNTER_DOORBELLS), i + 1);
    }
    assert_int_equal(card_counter(&card, NETDAM_COUNTER_REGISTER_ERRORS), 0);
}

static void counters_are_properties_too(void **state)
{
    size_t i;

    (void)state;
    card_doorbell(&card, 0);
    card_doorbell(&card, 0);
    card_doorbell(&card, 0);
    assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", "counter-doorbells"), 3);
    for (i = 0; i < NETDAM_COUNTER_COUNT; i++) {
        char *name = machine_text("counter-%s", counter_names[i]);
        char *p;

        for (p = name; *p != '\0'; p++) {
            *p = *p == '_' ? '-' : *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
        }
        assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", name),
                         card_counter(&card, (enum netdam_counter)i));
        free(name);
    }
    assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", "firmware-version"),
                     card_read(&card, NETDAM_REG_FIRMWARE_VERSION, 4));
}

static void on_board_memory_is_plain_memory(void **state)
{
    (void)state;
    machine_write(&machine, card.memory, 8, UINT64_C(0x1122334455667788));
    machine_write(&machine, card.memory + ONBOARD_BYTES - 1, 1, 0xa5);
    machine_write(&machine, card.memory + 3, 4, 0xdeadbeef);
    assert_int_equal(machine_read(&machine, card.memory, 8), UINT64_C(0x11deadbeef667788));
    assert_int_equal(machine_read(&machine, card.memory + ONBOARD_BYTES - 1, 1), 0xa5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(configuration_space_is_as_specified),      TEST(every_register_has_its_value_after_reset),
        TEST(wide_registers_may_be_read_in_halves),     TEST(read_only_registers_are_not_changed_by_writes),
        TEST(writable_registers_keep_what_they_should), TEST(every_other_access_is_refused_and_counted),
        TEST(doorbells_are_counted_and_read_as_zero),   TEST(counters_are_properties_too),
        TEST(on_board_memory_is_plain_memory),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: registers", tests, NULL, NULL);
}
