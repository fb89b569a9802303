/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the golden packets to a firmware instance: answers must be the golden ones byte for byte, drops be counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "netdam/status.h"
#include "netdam/wire.h"

#define MEMORY_BYTES 65536u
#define REGION_BYTES 4096u
#define FRAME_BYTES  (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)
#define FRAMES_MAX   4u
#define NOW_NS       UINT64_C(1000000000)
#define EPOCH        UINT32_C(0x5eed0001)
#define KEY_ALL      UINT64_C(0x6b65790123456789)
#define KEY_NO_ALU   UINT64_C(0x6b6579012345678a)

static const char *directory = "tests/golden";

struct instance {
    const struct netdam_fw_ops *ops;
    void *state;
    uint8_t *memory;
    uint8_t frames[FRAMES_MAX][FRAME_BYTES];
    size_t bytes[FRAMES_MAX];
    unsigned count;
};

static uint8_t *transmit_begin(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    return instance->count < FRAMES_MAX && bytes <= FRAME_BYTES ? instance->frames[instance->count] : NULL;
}

static void transmit_end(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    instance->bytes[instance->count++] = bytes;
}

static void interrupt(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
}

/* Every draw yields the epoch that the golden packets speak of. */
static void entropy(void *opaque, void *buffer, size_t bytes)
{
    const uint32_t epoch = EPOCH;

    (void)opaque;
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)buffer)[i] = ((const uint8_t *)&epoch)[i % sizeof(epoch)];
    }
}

static void write_register(struct instance *instance, uint32_t offset, unsigned bytes, uint64_t value)
{
    (void)instance->ops->register_write(instance->state, offset, bytes, value, NOW_NS);
}

static void create_region(struct instance *instance, uint64_t base, uint64_t permissions, uint64_t key)
{
    write_register(instance, NETDAM_REG_ADMIN_ARG0, 8, base);
    write_register(instance, NETDAM_REG_ADMIN_ARG1, 8, REGION_BYTES);
    write_register(instance, NETDAM_REG_ADMIN_ARG2, 8, permissions);
    write_register(instance, NETDAM_REG_ADMIN_ARG3, 8, key);
    write_register(instance, NETDAM_REG_ADMIN_ARG4, 8, 0);
    write_register(instance, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_REGION_CREATE);
    assert_int_equal(instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_STATUS, 4), NETDAM_ADMIN_STATUS_OK);
}

/* The node of the manifest, or with last byte 1 its requester. */
static void start(struct instance *instance, uint8_t last_byte)
{
    struct netdam_fw_config config = {
        .abi_version = NETDAM_FW_ABI_VERSION,
        .memory = instance->memory,
        .memory_bytes = MEMORY_BYTES,
        .mac = {2, 0, 0, 0, 0, last_byte},
        .ipv4 = {10, 0, 0, last_byte},
        .ipv6 = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last_byte},
        .peers = 4,
        .lanes = 64,
        .lane_windows = 8,
        .operations = 16,
    };
    struct netdam_fw_platform platform = {
        .opaque = instance,
        .transmit_begin = transmit_begin,
        .transmit_end = transmit_end,
        .interrupt = interrupt,
        .entropy = entropy,
    };
    const char *error = NULL;
    size_t bytes;

    for (size_t i = 0; i < MEMORY_BYTES; i++) {
        instance->memory[i] = (uint8_t)i;
    }
    instance->count = 0;
    bytes = instance->ops->state_bytes(&config, &error);
    assert_null(error);
    if (instance->state == NULL) {
        instance->state = aligned_alloc(64, (bytes + 63) / 64 * 64);
        assert_non_null(instance->state);
    }
    instance->ops->start(instance->state, &config, &platform, NOW_NS);
    create_region(instance, 4096, NETDAM_PERMISSION_ALL, KEY_ALL);
    create_region(instance, 8192, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE, KEY_NO_ALU);
}

static void receive(struct instance *instance, const uint8_t *frame, size_t bytes)
{
    /* A copy of exactly this size, so that a sanitizer sees every byte read too much. */
    uint8_t *copy = malloc(bytes);

    assert_non_null(copy);
    memcpy(copy, frame, bytes);
    instance->ops->receive(instance->state, copy, bytes, NOW_NS);
    free(copy);
}

static uint64_t counter(struct instance *instance, const char *name)
{
#define MATCH(name_, text)                                                                                             \
    if (strcmp(name, #name_) == 0) {                                                                                   \
        return instance->ops->register_read(instance->state, NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_##name_, 8);    \
    }
    NETDAM_COUNTER_LIST(MATCH)
#undef MATCH
    fail_msg("no counter %s", name);
    return 0;
}

static const char *status_name(unsigned status)
{
    switch (status) {
#define CASE(name, value, class_, text)                                                                                \
    case value:                                                                                                        \
        return #name;
        NETDAM_STATUS_LIST(CASE)
#undef CASE
    default:
        return "undefined";
    }
}

/* Where the NetDAM header begins in a well-formed frame. */
static size_t header_at(const uint8_t *frame)
{
    return (frame[12] == 0x08 ? NETDAM_IPV4_BYTES : NETDAM_IPV6_BYTES) + NETDAM_ETHERNET_BYTES + NETDAM_UDP_BYTES;
}

static bool memory_is_untouched(const struct instance *instance)
{
    for (size_t i = 0; i < MEMORY_BYTES; i++) {
        if (instance->memory[i] != (uint8_t)i) {
            return false;
        }
    }
    return true;
}

/* What is wrong with the node's doings, or NULL. */
static const char *play(struct instance *instance, const struct golden_entry *entry)
{
    static char text[256];
    static uint8_t frame[FRAME_BYTES], expected[FRAME_BYTES];
    size_t bytes = golden_load(directory, entry->name, frame, sizeof(frame));
    size_t expected_bytes;
    bool response, encode = strcmp(entry->kind, "encode") == 0, decode = strcmp(entry->kind, "decode") == 0;
    const char *got;

    if (bytes == 0) {
        return "cannot be read";
    }
    response = bytes >= 6 && frame[5] == 1;
    start(instance, response ? 1 : 2);
    if (strcmp(entry->name, "write-again-request") == 0) {
        expected_bytes = golden_load(directory, "write-request", expected, sizeof(expected));
        receive(instance, expected, expected_bytes);
        instance->count = 0;
    }
    receive(instance, frame, bytes);

    if (response || !(encode || decode)) {
        const char *name = encode ? "RESPONSES_UNMATCHED" : entry->expected;

        if (instance->count != 0) {
            return "was answered";
        }
        if (counter(instance, name) != 1) {
            snprintf(text, sizeof(text), "%s is %d", name, (int)counter(instance, name));
            return text;
        }
        return memory_is_untouched(instance) ? NULL : "memory has changed";
    }
    if (instance->count != 1) {
        snprintf(text, sizeof(text), "%u answers", instance->count);
        return text;
    }
    got = status_name(instance->frames[0][header_at(instance->frames[0]) + 7]);
    if (strcmp(got, entry->expected) != 0) {
        snprintf(text, sizeof(text), "answered %s, not %s", got, entry->expected);
        return text;
    }
    if (strcmp(entry->expected, "OK") != 0 && !memory_is_untouched(instance)) {
        return "refused, but memory has changed";
    }
    if (strcmp(entry->answer, "-") == 0) {
        return NULL;
    }
    expected_bytes = golden_load(directory, entry->answer, expected, sizeof(expected));
    if (expected_bytes != instance->bytes[0]) {
        snprintf(text, sizeof(text), "the answer has %zu bytes, not %zu", instance->bytes[0], expected_bytes);
        return text;
    }
    for (size_t i = 0; i < expected_bytes; i++) {
        if (instance->frames[0][i] != expected[i]) {
            snprintf(text, sizeof(text), "byte %zu of the answer is %02x, not %02x", i, instance->frames[0][i],
                     expected[i]);
            return text;
        }
    }
    return NULL;
}

static void golden_packets_are_answered_and_dropped_as_the_manifest_says(void **state)
{
    struct instance *instance = *state;
    struct golden_entry entry;
    unsigned played = 0, wrong = 0;
    char path[1024];
    FILE *manifest;
    int next;

    snprintf(path, sizeof(path), "%s/manifest.txt", directory);
    manifest = fopen(path, "r");
    assert_non_null(manifest);
    while ((next = golden_next(manifest, &entry)) == 1) {
        const char *problem = play(instance, &entry);

        played++;
        if (problem != NULL) {
            wrong++;
            print_error("%s: %s\n", entry.name, problem);
        }
    }
    fclose(manifest);
    assert_int_equal(next, 0);
    assert_true(played > 100);
    assert_int_equal(wrong, 0);
}

static int setup(void **state)
{
    struct instance *instance = calloc(1, sizeof(*instance));

    if (instance == NULL) {
        return -1;
    }
    instance->ops = netdam_fw_entry();
    instance->memory = aligned_alloc(4096, MEMORY_BYTES);
    *state = instance;
    return instance->memory == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct instance *instance = *state;

    free(instance->memory);
    free(instance->state);
    free(instance);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_packets_are_answered_and_dropped_as_the_manifest_says),
    };

    if (argc > 1) {
        directory = argv[1];
    }
    return cmocka_run_group_tests_name("golden", tests, setup, teardown);
}
