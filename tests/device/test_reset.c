/* SPDX-License-Identifier: BSD-3-Clause */
/* Resets of every kind, firmware images exchanged while QEMU runs, images that cannot be loaded, timers, unplugging. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "image.h"

#define OTHER_VERSION 0x00630001u

static struct machine machine;
static struct card card;
static char *firmware; /* a path in the machine's directory */
static char *onboard;

/* Replaces the content in place, as a careless copy does; a mapped file would be changed under its user. */
static void install(const char *source, size_t most)
{
    static char image[4 << 20];
    FILE *file = fopen(source, "rb");
    size_t bytes;

    if (file == NULL) {
        fail_msg("%s is not there", source);
        return;
    }
    bytes = fread(image, 1, most < sizeof(image) ? most : sizeof(image), file);
    fclose(file);
    file = fopen(firmware, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(image, 1, bytes, file), bytes);
    fclose(file);
}

static void start(const char *image)
{
    machine_prepare(&machine);
    firmware = machine_text("%s/firmware.so", machine.directory);
    onboard = machine_text("%s/onboard", machine.directory);
    install(image, SIZE_MAX);
    machine_start(
        &machine,
        (const char *const[]){
            "-object", machine_text("memory-backend-file,id=m,size=4M,share=on,mem-path=%s", onboard), "-device",
            machine_text("netdam,id=nd,memdev=m,ip=10.0.0.1/24,firmware=%s%s", firmware, machine_wire_alone(&machine)),
            NULL});
    card_open(&card, &machine, 0);
    card_map(&card, onboard, 4 << 20);
}

static int setup_image(void **state)
{
    (void)state;
    start(NETDAM_TEST_IMAGES "/image.so");
    return 0;
}

static int setup_firmware(void **state)
{
    (void)state;
    start(NETDAM_TEST_FIRMWARE);
    return 0;
}

static int setup_nothing(void **state)
{
    (void)state;
    machine_prepare(&machine);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    card_close(&card);
    machine_stop(&machine);
    free(firmware);
    free(onboard);
    firmware = NULL;
    onboard = NULL;
    return 0;
}

static void control_reset(void)
{
    card_write(&card, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
}

static void machine_reset(void)
{
    machine_monitor(&machine, NULL, "{\"execute\": \"system_reset\"}\n");
    /* It happens in the main loop, and takes the BARs' addresses away. */
    machine_step(&machine, 1000);
    machine_step(&machine, 1000);
    card_bars(&card);
}

static void function_reset(void)
{
    card_function_reset(&card);
}

static void (*const resets[])(void) = {control_reset, machine_reset, function_reset};

static uint32_t version(void)
{
    return (uint32_t)card_read(&card, NETDAM_REG_FIRMWARE_VERSION, 4);
}

static bool stale(void)
{
    return (card_read(&card, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_FIRMWARE_STALE) != 0;
}

static void each_kind_of_reset_loads_the_image_anew(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
        install(NETDAM_TEST_IMAGES "/image-2.so", SIZE_MAX);
        /* Changing the file alone changes nothing. */
        assert_int_equal(version(), 0x00010000);
        resets[i]();
        assert_int_equal(version(), 0x00020003);
        assert_int_equal(card_read(&card, IMAGE_STARTS, 8), 1);
        assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", "firmware-version"), 0x00020003);
        install(NETDAM_TEST_IMAGES "/image.so", SIZE_MAX);
        resets[i]();
        assert_int_equal(version(), 0x00010000);
        assert_false(stale());
    }
}

static void an_image_that_cannot_be_loaded_leaves_the_one_before_running(void **state)
{
    static const char *const broken[] = {NETDAM_TEST_IMAGES "/image-abi.so",
                                         NETDAM_TEST_IMAGES "/image-ops.so",
                                         NETDAM_TEST_IMAGES "/image-entry.so",
                                         NETDAM_TEST_IMAGES "/image-state.so",
                                         NETDAM_TEST_IMAGES "/image-hungry.so",
                                         "/etc/os-release",
                                         NULL,
                                         ""};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        if (broken[i] == NULL) {
            assert_int_equal(unlink(firmware), 0);
        } else if (broken[i][0] == '\0') {
            install(NETDAM_TEST_IMAGES "/image-2.so", 9000);
        } else {
            install(broken[i], SIZE_MAX);
        }
        resets[i % 3]();
        assert_true(stale());
        assert_int_equal(version(), 0x00010000);
        resets[(i + 1) % 3]();
        assert_true(stale());
        assert_int_equal(version(), 0x00010000);
        /* It runs: it executes commands and timers. */
        card_write(&card, IMAGE_ALARM, 8, 1000);
        machine_step(&machine, 1000);
        machine_step(&machine, 1000);
        assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 1);
        install(NETDAM_TEST_IMAGES "/image.so", SIZE_MAX);
        control_reset();
        assert_false(stale());
        assert_int_equal(card_read(&card, IMAGE_STARTS, 8), 1);
    }
}

static void many_resets_leave_nothing_open(void **state)
{
    char *directory = machine_text("/proc/%d/fd", (int)machine.pid);
    char *command = machine_text("ls %s | wc -l", directory);
    int before, after, i;
    FILE *pipe;

    (void)state;
    pipe = popen(command, "r");
    assert_int_equal(fscanf(pipe, "%d", &before), 1);
    pclose(pipe);
    for (i = 0; i < 300; i++) {
        control_reset();
    }
    pipe = popen(command, "r");
    assert_int_equal(fscanf(pipe, "%d", &after), 1);
    pclose(pipe);
    assert_int_equal(after, before);
    free(command);
    free(directory);
}

static void a_timer_runs_by_the_machines_clock(void **state)
{
    (void)state;
    card_write(&card, IMAGE_ALARM, 8, 1000000);
    machine_step(&machine, 999999);
    machine_step(&machine, 0);
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 0);
    machine_step(&machine, 1);
    machine_step(&machine, 0);
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 1);
    /* A reset forgets timers. */
    card_write(&card, IMAGE_ALARM, 8, 1000000);
    control_reset();
    machine_step(&machine, 10000000);
    machine_step(&machine, 0);
    assert_int_equal(card_read(&card, IMAGE_ALARM, 8), 0);
}

static void what_the_firmware_logs_does_not_stop_it(void **state)
{
    unsigned level;

    (void)state;
    for (level = 0; level < 6; level++) {
        card_write(&card, IMAGE_LOG, 8, level);
        card_write(&card, IMAGE_LOG, 8, level);
    }
    assert_int_equal(card_read(&card, IMAGE_STARTS, 8), 1);
}

static void a_new_version_of_the_firmware_runs_without_restarting_qemu(void **state)
{
    uint64_t key;
    uint32_t before = version();
    pid_t pid = machine.pid;

    (void)state;
    assert_true(before != OTHER_VERSION && before != 0);
    install(NETDAM_TEST_IMAGES "/other/firmware/netdam-fw.so", SIZE_MAX);
    assert_int_equal(version(), before);
    control_reset();
    assert_int_equal(version(), OTHER_VERSION);
    assert_false(stale());
    card_region(&card, 0, 4096, &key);
    install(NETDAM_TEST_FIRMWARE, SIZE_MAX);
    control_reset();
    assert_int_equal(version(), before);
    assert_true(machine_is_alive(&machine) && machine.pid == pid);
}

static void a_reset_flushes_what_is_outstanding_and_forgets_all_state(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(resets) / sizeof(resets[0]); i++) {
        uint64_t generation = card_read(&card, NETDAM_REG_GENERATION, 8);
        const struct netdam_completion *completion;
        struct netdam_descriptor d = {.opcode = NETDAM_OP_READ, .length = 8, .user_data = 0xabc0 + i};
        struct card_queue q;
        uint64_t key;
        unsigned step;

        card_queue_create(&q, &card, 0, NETDAM_VECTOR_NONE);
        d.local_region = card_region(&card, 0x10000, 0x10000, &key);
        d.remote_key = key;
        d.peer = card_peer(&card, 99); /* who does not exist, and there is no wire */
        card_post(&q, &d);
        for (step = 0; step < 10; step++) {
            machine_step(&machine, 1000);
        }
        assert_int_equal(q.sq->consumer, 1);
        assert_int_equal(q.cq->producer, 0);
        assert_true(card_counter(&card, NETDAM_COUNTER_DESCRIPTORS) > 0);

        resets[i]();
        completion = (const struct netdam_completion *)(const void *)(q.cq + 1);
        assert_int_equal(q.cq->producer, 1);
        assert_int_equal(completion->user_data, 0xabc0 + i);
        assert_int_equal(completion->status, NETDAM_STATUS_FLUSHED);

        assert_true(card_read(&card, NETDAM_REG_GENERATION, 8) != generation);
        assert_int_equal(card_counter(&card, NETDAM_COUNTER_DESCRIPTORS), 0);
        assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_QUEUE_QUERY, NULL, q.number), NETDAM_ADMIN_STATUS_NO_SUCH);
        assert_int_equal(card_admin_args(&card, NETDAM_ADMIN_REGION_DESTROY, NULL, d.local_region),
                         NETDAM_ADMIN_STATUS_NO_SUCH);
        assert_int_equal(card_read(&card, NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY);
    }
}

/* The port's hot-plug controller does as a guest's driver would: power off, and the card leaves. */
static void unplug(unsigned port_devfn)
{
    struct card port = {.machine = &machine, .devfn = port_devfn};
    unsigned control = card_capability(&port, CARD_CAP_EXPRESS) + 0x18;
    unsigned i;

    machine_monitor(&machine, NULL, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"nd\"}}\n");
    card_config_write(&port, control, 2, 0x0400u | 0x0300u);
    for (i = 0; i < 20; i++) {
        machine_step(&machine, 1000000);
    }
}

static void a_card_can_be_unplugged_and_plugged_in_again(void **state)
{
    static const char plug[] = "{\"execute\": \"device_add\", \"arguments\": {\"driver\": \"netdam\", \"id\": \"nd\", "
                               "\"bus\": \"rp\", \"memdev\": \"m\", \"netdev\": \"w\", \"ip\": \"10.0.0.1/24\", "
                               "\"firmware\": \"" NETDAM_TEST_FIRMWARE "\"}}\n";
    char answer[MACHINE_LINE];
    int i;

    (void)state;
    machine_start(&machine,
                  (const char *const[]){"-object", "memory-backend-ram,id=m,size=1M", "-netdev", "hubport,id=w,hubid=0",
                                        "-device", "pcie-root-port,id=rp,addr=4,chassis=1,slot=1", "-global",
                                        "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off", NULL});
    for (i = 0; i < 3; i++) {
        machine_monitor(&machine, NULL, "%s", plug);
        assert_int_equal(machine_property(&machine, "/machine/peripheral/nd", "counter-doorbells"), 0);
        unplug(4 << 3);
        machine_monitor(&machine, answer,
                        "{\"execute\": \"qom-list\", \"arguments\": {\"path\": \"/machine/peripheral/nd\"}}\n");
        assert_non_null(strstr(answer, "DeviceNotFound"));
    }
}

int main(void)
{
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_kind_of_reset_loads_the_image_anew, setup_image),
        TEST(an_image_that_cannot_be_loaded_leaves_the_one_before_running, setup_image),
        TEST(many_resets_leave_nothing_open, setup_image),
        TEST(a_timer_runs_by_the_machines_clock, setup_image),
        TEST(what_the_firmware_logs_does_not_stop_it, setup_image),
        TEST(a_new_version_of_the_firmware_runs_without_restarting_qemu, setup_firmware),
        TEST(a_reset_flushes_what_is_outstanding_and_forgets_all_state, setup_firmware),
        TEST(a_card_can_be_unplugged_and_plugged_in_again, setup_nothing),
    };
#undef TEST

    alarm(600);
    return cmocka_run_group_tests_name("device: reset", tests, NULL, NULL);
}
