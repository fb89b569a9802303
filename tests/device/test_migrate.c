/* SPDX-License-Identifier: BSD-3-Clause */
/* Migration: of an idle card with its memory, not of one in use, and never on trust. */
#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"

#define ONBOARD_BYTES 0x400000u
#define REGION        0x200000u
#define REGION_BYTES  0x100000u
#define VECTOR        3u
#define TARGET        0x00100000u

#define PROPERTIES "netdam,id=nd,memdev=m,ip=10.0.0.1/24,mac=02:00:00:00:00:01,mtu=9000,firmware=" NETDAM_TEST_FIRMWARE

/* From here to there. */
static struct machine machines[2];
static struct card cards[2];
static char *files[2];

static void start(unsigned i, const char *properties, const char *incoming)
{
    const char *arguments[] = {"-object",
                               machine_text("memory-backend-file,id=m,size=4M,share=on,mem-path=%s", files[i]),
                               "-device",
                               machine_text(PROPERTIES "%s%s", properties, machine_wire_alone(&machines[i])),
                               incoming != NULL ? "-incoming" : NULL,
                               incoming,
                               NULL};

    machine_start(&machines[i], arguments);
}

static int setup(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        machine_prepare(&machines[i]);
        files[i] = machine_text("%s/onboard", machines[i].directory);
    }
    start(0, "", NULL);
    card_open(&cards[0], &machines[0], 0);
    card_map(&cards[0], files[0], ONBOARD_BYTES);
    return 0;
}

static int teardown(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        card_close(&cards[i]);
        machine_stop(&machines[i]);
        free(files[i]);
    }
    return 0;
}

static void migrate(const char *uri)
{
    machine_monitor(&machines[0], NULL, "{\"execute\": \"migrate\", \"arguments\": {\"uri\": \"%s\"}}\n", uri);
}

static bool migration_is(const char *status)
{
    char *text = machine_text("\"status\": \"%s\"", status);
    char answer[MACHINE_LINE];
    bool is;

    machine_monitor(&machines[0], answer, "{\"execute\": \"query-migrate\"}\n");
    is = strstr(answer, text) != NULL;
    free(text);
    return is;
}

static void wait_until(const char *status)
{
    unsigned i;

    for (i = 0; !migration_is(status); i++) {
        if (i > 6000) {
            fail_msg("migration does not become '%s'", status);
        }
        poll(NULL, 0, 10);
    }
}

/* Finds the card that arrived where it was, without giving its BARs addresses anew. */
static void arrive(void)
{
    unsigned i;
    char answer[MACHINE_LINE];

    for (i = 0;; i++) {
        machine_monitor(&machines[1], answer, "{\"execute\": \"query-status\"}\n");
        if (strstr(answer, "\"running\": true") != NULL) {
            break;
        }
        assert_true(i < 6000);
        poll(NULL, 0, 10);
    }
    cards[1] = cards[0];
    cards[1].machine = &machines[1];
    cards[1].onboard = NULL;
    card_map(&cards[1], files[1], ONBOARD_BYTES);
}

/* Into the BAR, as a guest stores, which migration notices. */
static void store(uint64_t offset, uint64_t value)
{
    machine_write(&machines[0], cards[0].memory + offset, 8, value);
}

static void loopback_works(struct card *c)
{
    struct netdam_descriptor d = {.opcode = NETDAM_OP_WRITE, .length = 4096, .remote_address = 0x2000, .user_data = 9};
    struct netdam_completion completion;
    struct card_queue q;

    card_queue_create(&q, c, 0, NETDAM_VECTOR_NONE);
    d.local_region = card_region(c, REGION, REGION_BYTES, &d.remote_key);
    d.peer = card_peer(c, 1);
    memset(c->onboard + REGION, 0x77, 4096);
    card_post(&q, &d);
    assert_true(card_poll(&q, &completion, 5000));
    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    assert_memory_equal(c->onboard + REGION, c->onboard + REGION + 0x2000, 4096);
}

static void an_idle_card_moves_with_its_memory(void **state)
{
    char *socket = machine_text("unix:%s/stream", machines[1].directory);
    uint64_t generation = card_read(&cards[0], NETDAM_REG_GENERATION, 8);
    uint64_t offset;

    (void)state;
    for (offset = 0; offset < ONBOARD_BYTES; offset += 65536 - 8) {
        store(offset & ~UINT64_C(7), offset * 0x9e3779b97f4a7c15u + 1);
    }
    card_bus_master(&cards[0], true);
    card_msix_enable(&cards[0], true, false);
    card_msix_set(&cards[0], VECTOR, TARGET, 0x1234, true);
    /* Half a command: the arguments. */
    card_write(&cards[0], NETDAM_REG_ADMIN_ARG0 + 16, 8, 0xfeed);
    start(1, "", socket);
    migrate(socket);
    wait_until("completed");
    arrive();

    assert_memory_equal(cards[0].onboard, cards[1].onboard, ONBOARD_BYTES);
    assert_int_equal(card_read(&cards[1], NETDAM_REG_ID, 4), NETDAM_ID);
    assert_int_equal(card_read(&cards[1], NETDAM_REG_ADMIN_ARG0 + 16, 8), 0xfeed);
    assert_int_equal(card_read(&cards[1], NETDAM_REG_ADMIN_ARG0, 8), 0);
    assert_true(card_read(&cards[1], NETDAM_REG_GENERATION, 8) != generation);
    assert_int_equal(card_config_read(&cards[1], card_capability(&cards[1], CARD_CAP_MSIX) + 2, 2) & 0x8000u, 0x8000u);
    loopback_works(&cards[1]);
    free(socket);
}

static void a_card_in_use_does_not_move_and_goes_on(void **state)
{
    char *socket = machine_text("unix:%s/stream", machines[1].directory);
    char *errors = machine_text("%s/stderr", machines[0].directory);
    char line[1024] = "";
    bool told = false;
    FILE *file;

    (void)state;
    loopback_works(&cards[0]);
    start(1, "", socket);
    migrate(socket);
    wait_until("failed");
    file = fopen(errors, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        told |= strstr(line, "nd is in use and cannot be migrated") != NULL;
    }
    fclose(file);
    assert_true(told);
    free(errors);

    /* It has lost nothing; once reset, it moves. */
    assert_int_equal(card_counter(&cards[0], NETDAM_COUNTER_COMPLETIONS), 1);
    card_write(&cards[0], NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    machine_stop(&machines[1]);
    machine_prepare(&machines[1]);
    free(files[1]);
    free(socket);
    files[1] = machine_text("%s/onboard", machines[1].directory);
    socket = machine_text("unix:%s/stream", machines[1].directory);
    start(1, "", socket);
    migrate(socket);
    wait_until("completed");
    arrive();
    assert_memory_equal(cards[0].onboard, cards[1].onboard, ONBOARD_BYTES);
    free(socket);
}

static unsigned long dirty_syncs(void)
{
    static const char key[] = "\"dirty-sync-count\": ";
    char answer[MACHINE_LINE];
    const char *at;

    machine_monitor(&machines[0], answer, "{\"execute\": \"query-migrate\"}\n");
    at = strstr(answer, key);
    return at != NULL ? strtoul(at + sizeof(key) - 1, NULL, 10) : 0;
}

/* After the first pass over memory only what is known to be dirty is sent again. */
static void what_the_device_stores_during_migration_arrives(void **state)
{
    static const uint64_t scribble = 0x380000;
    char *socket = machine_text("unix:%s/stream", machines[1].directory);
    struct netdam_descriptor d = {.opcode = NETDAM_OP_WRITE, .length = 0x20000, .user_data = 1};
    struct netdam_completion completion;
    struct card_queue q;
    unsigned i;

    (void)state;
    for (i = 0; i < 0x20000; i += 8) {
        store(REGION + i, i ^ 0x1122334455667788u);
    }
    card_queue_create(&q, &cards[0], 0, NETDAM_VECTOR_NONE);
    d.local_region = card_region(&cards[0], REGION, REGION_BYTES, &d.remote_key);
    d.peer = card_peer(&cards[0], 1);
    d.remote_address = 0x40000;
    machine_monitor(&machines[0], NULL,
                    "{\"execute\": \"migrate-set-parameters\", \"arguments\": {\"max-bandwidth\": 500000, "
                    "\"downtime-limit\": 5}}\n");
    start(1, "", socket);
    migrate(socket);
    /* Keeps it from coming to an end: less than a page may be left for that. */
    for (i = 0; dirty_syncs() < 4; i++) {
        unsigned page;

        assert_true(i < 20000 && !migration_is("failed"));
        for (page = 0; page < 64; page++) {
            store(scribble + page * 4096, i);
        }
    }
    card_post(&q, &d);
    for (i = 0; !card_poll(&q, &completion, 1); i++) {
        assert_true(i < 5000);
        store(scribble, i);
    }
    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    card_write(&cards[0], NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    machine_monitor(&machines[0], NULL,
                    "{\"execute\": \"migrate-set-parameters\", \"arguments\": {\"max-bandwidth\": 1000000000, "
                    "\"downtime-limit\": 1000}}\n");
    wait_until("completed");
    arrive();
    assert_memory_equal(cards[0].onboard + REGION, cards[1].onboard + REGION + 0x40000, 0x20000);
    assert_memory_equal(cards[0].onboard + REGION, cards[1].onboard + REGION, REGION_BYTES);
    free(socket);
}

/* A machine that is given a stream it must not believe; returns its status, and what it said. */
static int load_stream(const char *properties, const char *path, char *output, size_t bytes)
{
    const char *arguments[] = {"-object",
                               "memory-backend-ram,id=m,size=4M",
                               "-device",
                               machine_text(PROPERTIES "%s", properties),
                               "-S",
                               "-monitor",
                               "none",
                               "-incoming",
                               machine_text("exec:cat %s", path),
                               NULL};

    return machine_run_to_end(&machines[1], arguments, output, bytes);
}

static void another_card_is_not_taken_for_this_one(void **state)
{
    static const struct {
        const char *property;
        const char *says;
    } others[] = {
        {",mtu=1500", "register MTU is 0x5dc here and 0x2328"},
        {",mac=02:00:00:00:00:02", "register MAC is"},
        {",ip=10.0.0.2/24", "register IPV4 is"},
        {",ip6=fd00::1", "register IPV6_HIGH is"},
        {",queue-pairs=8", "register QUEUE_PAIRS is"},
        {",port=99", "register UDP_PORT is"},
        {",vectors=16", "register VECTORS is"},
    };
    char *path = machine_text("%s/stream", machines[0].directory);
    char *uri = machine_text("exec:cat > %s", path);
    char output[8192];
    size_t i;

    (void)state;
    migrate(uri);
    wait_until("completed");
    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        int status = load_stream(others[i].property, path, output, sizeof(output));

        /* Some differences QEMU itself sees first, in configuration space. */
        if (status <= 0 || (strstr(output, others[i].says) == NULL && strstr(output, "netdam") == NULL)) {
            fail_msg("%s: status %d: %s", others[i].property, status, output);
        }
    }
    free(path);
    free(uri);
}

/* The stream of the card as it is, in memory. */
static size_t take_stream(uint8_t *stream, size_t most, const char *path)
{
    char *uri = machine_text("exec:cat > %s", path);
    size_t bytes;
    FILE *file;

    migrate(uri);
    wait_until("completed");
    file = fopen(path, "rb");
    assert_non_null(file);
    bytes = fread(stream, 1, most, file);
    fclose(file);
    free(uri);
    return bytes;
}

/* Loads it with one byte changed. */
static int load_damaged(uint8_t *stream, size_t bytes, const char *path, size_t at, uint8_t by, char *output,
                        size_t most)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_true(at < bytes);
    stream[at] ^= by;
    assert_int_equal(fwrite(stream, 1, bytes, file), bytes);
    fclose(file);
    stream[at] ^= by;
    return load_stream("", path, output, most);
}

static uint8_t stream_bytes[8 << 20];

static void a_damaged_identity_is_refused(void **state)
{
    /* VECTORS, MEMORY_BYTES and QUEUE_PAIRS, big-endian. */
    static const uint8_t identity[24] = {[7] = 17, [13] = 0x40, [23] = 16};
    char *path = machine_text("%s/stream", machines[0].directory);
    size_t bytes = take_stream(stream_bytes, sizeof(stream_bytes), path);
    const uint8_t *at = memmem(stream_bytes, bytes, identity, sizeof(identity));
    char output[8192];
    unsigned word;

    (void)state;
    assert_non_null(at);
    for (word = 0; word < 14; word += 3) {
        size_t place = (size_t)(at - stream_bytes) + word * 8 + word % 8;

        assert_true(load_damaged(stream_bytes, bytes, path, place, 0x40, output, sizeof(output)) > 0);
        assert_non_null(strstr(output, "where the stream comes from"));
    }
    free(path);
}

/* Anywhere in the card's section: taken or refused, but never the end by a signal. */
static void a_damaged_stream_does_no_harm(void **state)
{
    char *path = machine_text("%s/stream", machines[0].directory);
    size_t bytes = take_stream(stream_bytes, sizeof(stream_bytes), path);
    const uint8_t *section = memmem(stream_bytes, bytes, "/netdam", 7);
    char output[8192];
    unsigned i;

    (void)state;
    assert_non_null(section);
    /* A machine that takes the stream is ended after this. */
    machines[1].patience_ms = 1500;
    for (i = 0; i < 12; i++) {
        size_t at = (size_t)(section - stream_bytes) + 24 + i * 421u;
        int status = load_damaged(stream_bytes, bytes, path, at, i % 2 ? 0xff : 0x81, output, sizeof(output));

        if (status < -1 || strstr(output, "Assert") != NULL) {
            fail_msg("byte %zu: %s", at, output);
        }
    }
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_idle_card_moves_with_its_memory),
        TEST(a_card_in_use_does_not_move_and_goes_on),
        TEST(what_the_device_stores_during_migration_arrives),
        TEST(another_card_is_not_taken_for_this_one),
        TEST(a_damaged_identity_is_refused),
        TEST(a_damaged_stream_does_no_harm),
    };
#undef TEST

    alarm(900);
    return cmocka_run_group_tests_name("device: migration", tests, NULL, NULL);
}
