/* SPDX-License-Identifier: BSD-3-Clause */
/* Two cards under load in both directions, while one is reset, unplugged, stopped or killed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "side.h"

#define RESETS         200
#define MACHINE_RESETS 50
#define PLUGS          5
#define STOPS          50
#define KILLS          3

static struct machine machines[2];
static struct side sides[2];
static char *files[2];

static void prepare(void)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        machine_prepare(&machines[i]);
        files[i] = machine_text("%s/onboard", machines[i].directory);
        memset(&sides[i], 0, sizeof(sides[i]));
        sides[i].number = i + 1;
        sides[i].seed = i + 1;
    }
}

static char *backend(unsigned i)
{
    return machine_text("memory-backend-file,id=m%u,size=4M,share=on,mem-path=%s", i, files[i]);
}

/* A card, with the wire's end of its number. */
static char *device(unsigned i, const char *wire, const char *more)
{
    return machine_text("netdam,id=nd%u,memdev=m%u,%s,ip=10.0.0.%u/24,mac=02:00:00:00:00:0%u,"
                        "firmware=" NETDAM_TEST_FIRMWARE "%s",
                        i, i, wire, i + 1, i + 1, more);
}

static void begin(unsigned i)
{
    card_await_link(&sides[i].card);
    card_map(&sides[i].card, files[i], SIDE_ONBOARD);
    side_begin(&sides[i]);
}

/* One machine with both cards on a hub. */
static int setup_hub(void **state)
{
    unsigned i;

    (void)state;
    prepare();
    machine_start(&machines[0],
                  (const char *const[]){"-object", backend(0), "-object", backend(1), "-netdev",
                                        "hubport,id=w0,hubid=0", "-netdev", "hubport,id=w1,hubid=0", "-device",
                                        device(0, machine_wire(&machines[0], &machines[0], 0), ""), "-device",
                                        device(1, machine_wire(&machines[0], &machines[0], 1), ""), NULL});
    for (i = 0; i < 2; i++) {
        card_open(&sides[i].card, &machines[0], i);
        begin(i);
    }
    return 0;
}

static int teardown(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        card_close(&sides[i].card);
        machine_stop(&machines[i]);
        free(files[i]);
    }
    return 0;
}

static void load(unsigned rounds)
{
    unsigned i;

    while (rounds-- > 0) {
        for (i = 0; i < 2; i++) {
            side_drain(&sides[i]);
            side_post(&sides[i], 8);
        }
        side_step(&sides[0], 20000);
    }
}

static void function_resets_hurt_nobody(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < RESETS; i++) {
        struct side *s = &sides[i % 2];

        load(1 + i % 7);
        side_drain(s);
        side_post_silently(s);
        card_function_reset(&s->card);
        side_after_reset(s);
        side_begin(s);
    }
    load(10);
    side_check(&sides[0]);
    side_check(&sides[1]);
    for (i = 0; i < 2; i++) {
        assert_true(sides[i].statuses[NETDAM_STATUS_FLUSHED] > 0);
        assert_true(sides[i].statuses[NETDAM_STATUS_OK] > 0);
        assert_int_equal(card_read(&sides[i].card, NETDAM_REG_MAIN_MEMORY_BYTES, 8), 0);
    }
}

static void resets_of_the_machine_hurt_nobody(void **state)
{
    char answer[MACHINE_LINE];
    unsigned i, j;

    (void)state;
    for (i = 0; i < MACHINE_RESETS; i++) {
        load(1 + i % 7);
        for (j = 0; j < 2; j++) {
            side_drain(&sides[j]);
            side_post_silently(&sides[j]);
        }
        machine_monitor(&machines[0], NULL, "{\"execute\": \"system_reset\"}\n");
        /* It is done when the next command is answered and the main loop has turned. */
        machine_monitor(&machines[0], answer, "{\"execute\": \"query-status\"}\n");
        machine_step(&machines[0], 1000);
        for (j = 0; j < 2; j++) {
            card_bars(&sides[j].card);
            side_after_reset(&sides[j]);
            side_begin(&sides[j]);
        }
    }
    load(10);
    side_check(&sides[0]);
    side_check(&sides[1]);
}

/* While the machine stands still, so do rings and data, and afterwards everything goes on. */
static void a_stopped_machine_changes_no_memory(void **state)
{
    uint8_t *copy = malloc(2 * SIDE_ONBOARD);
    unsigned i, j;

    (void)state;
    assert_non_null(copy);
    for (i = 0; i < STOPS; i++) {
        load(1 + i % 5);
        machine_monitor(&machines[0], NULL, "{\"execute\": \"stop\"}\n");
        /* Posted meanwhile, doorbells included. */
        side_post(&sides[i % 2], 4);
        for (j = 0; j < 2; j++) {
            memcpy(copy + j * SIDE_ONBOARD, sides[j].card.onboard, SIDE_ONBOARD);
        }
        for (j = 0; j < 5; j++) {
            machine_step(&machines[0], 30000000);
        }
        for (j = 0; j < 2; j++) {
            assert_int_equal(memcmp(copy + j * SIDE_ONBOARD, sides[j].card.onboard, SIDE_ONBOARD), 0);
        }
        machine_monitor(&machines[0], NULL, "{\"execute\": \"cont\"}\n");
    }
    free(copy);
    for (i = 0; i < 2; i++) {
        side_check(&sides[i]);
        assert_int_equal(sides[i].completed, sides[i].statuses[NETDAM_STATUS_OK]);
    }
}

/* The root port in front of the second card, and what a guest's driver does with it. */
static void bridge(struct card *port)
{
    card_config_write(port, 0x18, 4, 0x00010100);
    card_config_write(port, 0x20, 4, 0xcff0c800);
    card_config_write(port, 0x24, 4, 0x0000fff0);
    card_config_write(port, 0x04, 2, 0x6);
}

static void slot_power(struct card *port, bool on)
{
    unsigned control = card_capability(port, CARD_CAP_EXPRESS) + 0x18;

    card_config_write(port, control, 2, on ? 0x0100u : 0x0700u);
}

static void unplug(struct card *port)
{
    char answer[MACHINE_LINE];
    unsigned i;

    machine_monitor(&machines[0], NULL, "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"nd1\"}}\n");
    slot_power(port, false);
    for (i = 0; i < 20; i++) {
        machine_step(&machines[0], 1000000);
    }
    machine_monitor(&machines[0], answer,
                    "{\"execute\": \"qom-list\", \"arguments\": {\"path\": \"/machine/peripheral/nd1\"}}\n");
    assert_non_null(strstr(answer, "DeviceNotFound"));
}

static int setup_hotplug(void **state)
{
    (void)state;
    prepare();
    machine_start(&machines[0],
                  (const char *const[]){"-object", backend(0), "-object", backend(1), "-netdev",
                                        "hubport,id=w0,hubid=0", "-netdev", "hubport,id=w1,hubid=0", "-device",
                                        device(0, machine_wire(&machines[0], &machines[0], 0), ",addr=3"), "-device",
                                        "pcie-root-port,id=rp,addr=4,chassis=1,slot=1", "-device",
                                        device(1, machine_wire(&machines[0], &machines[0], 1), ",bus=rp"), "-global",
                                        "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off", NULL});
    card_open(&sides[0].card, &machines[0], 0);
    begin(0);
    return 0;
}

static void unplugging_under_load_ends_what_the_other_waits_for(void **state)
{
    struct card port = {.machine = &machines[0], .devfn = 4 << 3};
    unsigned i;

    (void)state;
    for (i = 0; i < PLUGS; i++) {
        struct side *plugged = &sides[1];

        if (i > 0) {
            machine_monitor(&machines[0], NULL,
                            "{\"execute\": \"device_add\", \"arguments\": {\"driver\": \"netdam\", "
                            "\"id\": \"nd1\", \"bus\": \"rp\", \"memdev\": \"m1\", %s, \"ip\": \"10.0.0.2/24\", "
                            "\"mac\": \"02:00:00:00:00:02\", \"firmware\": \"" NETDAM_TEST_FIRMWARE "\"}}\n",
                            machine_wire_json(&machines[0], 1));
            slot_power(&port, true);
        }
        bridge(&port);
        memset(plugged, 0, sizeof(*plugged));
        plugged->number = 2;
        plugged->seed = i + 100;
        plugged->card.machine = &machines[0];
        plugged->card.bus = 1;
        card_place(&plugged->card, 1);
        begin(1);
        load(10);
        side_check(&sides[0]);
        load(3 + i);
        unplug(&port);
        side_after_reset(plugged);
        card_close(&plugged->card);
        /* Nobody is at the other end any more. */
        side_post(&sides[0], 8);
        side_finish(&sides[0], 120);
        assert_true(sides[0].statuses[NETDAM_STATUS_TIMEOUT] > 0);
    }
}

/* Two machines, a unix datagram socket each. */
static void start_one(unsigned i)
{
    machine_start(&machines[i],
                  (const char *const[]){"-object", backend(i), "-netdev",
                                        machine_text("dgram,id=w%u,local.type=unix,local.path=%s/wire%u,"
                                                     "remote.type=unix,remote.path=%s/wire%u",
                                                     i, machines[0].directory, i, machines[0].directory, 1 - i),
                                        "-device", device(i, machine_wire(&machines[i], &machines[0], i), ""), NULL});
    card_open(&sides[i].card, &machines[i], 0);
    sides[i].other = &machines[1 - i];
}

static int setup_two(void **state)
{
    (void)state;
    prepare();
    start_one(0);
    start_one(1);
    begin(0);
    begin(1);
    return 0;
}

static void a_killed_peer_leaves_nothing_unended(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < KILLS; i++) {
        uint64_t timeouts = sides[0].statuses[NETDAM_STATUS_TIMEOUT];

        load(30);
        side_check(&sides[0]);
        load(3);
        assert_int_equal(kill(machines[1].pid, SIGKILL), 0);
        card_close(&sides[1].card);
        machine_stop(&machines[1]);
        sides[0].other = NULL;
        side_post(&sides[0], 8);
        side_finish(&sides[0], 120);
        assert_true(sides[0].statuses[NETDAM_STATUS_TIMEOUT] > timeouts);
        assert_true(machine_is_alive(&machines[0]));

        /* Another one in its place, with the same address, is served as ever. */
        machine_prepare(&machines[1]);
        free(files[1]);
        files[1] = machine_text("%s/onboard", machines[1].directory);
        memset(&sides[1], 0, sizeof(sides[1]));
        sides[1].number = 2;
        start_one(1);
        begin(1);
        sides[0].other = &machines[1];
        /* What it sends first meets a node that has forgotten its lane, and may end as UNKNOWN. */
        load(2);
        side_check(&sides[0]);
        side_check(&sides[1]);
    }
}

int main(void)
{
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(function_resets_hurt_nobody, setup_hub),
        TEST(resets_of_the_machine_hurt_nobody, setup_hub),
        TEST(a_stopped_machine_changes_no_memory, setup_hub),
        TEST(unplugging_under_load_ends_what_the_other_waits_for, setup_hotplug),
        TEST(a_killed_peer_leaves_nothing_unended, setup_two),
    };
#undef TEST

    alarm(900);
    return cmocka_run_group_tests_name("device: load", tests, NULL, NULL);
}
