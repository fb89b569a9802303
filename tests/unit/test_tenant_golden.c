/* SPDX-License-Identifier: BSD-3-Clause */
/* The golden packets of tenants, played to a node that has the keys: answers and what is passed on, byte for byte. */
#include "golden.h"
#include "tenant.h"

#define DIRECTORY    "tests/golden/tenant"
#define REGION_BYTES 4096u
#define KEY_NONE     UINT64_C(0x6b65790123456789)
#define KEY_SEVEN    UINT64_C(0x6b65790123456797)
#define KEY_NINE     UINT64_C(0x6b65790123456799)
/* A test's frame, and whether the epoch has been drawn that the packets name. */
static uint8_t frame[UNIT_FRAME_ROOM];
static uint64_t epoch;

static void entropy(void *opaque, struct ndtest_node *node, void *buffer, size_t bytes)
{
    (void)opaque;
    (void)node;
    if (bytes != 16) {
        memset(buffer, 0, bytes);
        memcpy(buffer, &epoch, bytes < sizeof(epoch) ? bytes : sizeof(epoch));
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)buffer)[i] = (uint8_t)(0xa0 + i); /* a salt */
    }
}

static void set_tenant(struct unit *u, uint8_t id, uint8_t mode)
{
    struct tenant_key tenant = {.id = id, .mode = mode};

    for (unsigned i = 0; i < sizeof(tenant.key); i++) {
        tenant.key[i] = (uint8_t)((id << 4) + i);
    }
    assert_int_equal(tenant_set(u, &tenant), NETDAM_ADMIN_STATUS_OK);
}

/* The node of the manifest. Each tenant that is set begins a new epoch; the last one is the packets'. */
static void start(struct unit *u)
{
    struct netdam_fw_config config = unit_config(1);

    tenant_watch_start();
    config.paths = 1; /* what is written down comes from one port */
    tenant_start(u, 1, &config);
    u->node.hooks.entropy = entropy;
    epoch = 1;
    tenant_restart(u);
    for (uint64_t other = 1; other <= 3; other += 2) {
        const uint64_t args[] = {0x0a000000 + other, 0, 4, UINT64_C(0x020000000000) + other};
        const uint64_t args6[] = {UINT64_C(0xfd00000000000000), other, 6, UINT64_C(0x020000000000) + other};

        assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, args6, 4, NULL), NETDAM_ADMIN_STATUS_OK);
    }
    epoch = 2;
    set_tenant(u, 7, NETDAM_TENANT_MODE_AUTHENTICATE);
    epoch = 0x5eed0001;
    set_tenant(u, 9, NETDAM_TENANT_MODE_ENCRYPT);
    (void)tenant_region(u, REGION_BYTES, REGION_BYTES, KEY_SEVEN, 7);
    (void)tenant_region(u, 2 * REGION_BYTES, REGION_BYTES, KEY_NINE, 9);
    (void)tenant_region(u, 3 * REGION_BYTES, REGION_BYTES, KEY_NONE, 0);
    for (size_t i = 0; i < 4 * REGION_BYTES; i++) {
        u->node.memory[i] = (uint8_t)i;
    }
}

static void receive(struct unit *u, const char *name)
{
    size_t bytes = golden_load(DIRECTORY, name, frame, sizeof(frame));

    if (bytes == 0) {
        fail_msg("%s cannot be read", name);
    }
    unit_receive(u, frame, bytes);
    unit_run(u);
}

static bool is_untouched(const struct unit *u)
{
    for (size_t i = 0; i < 4 * REGION_BYTES; i++) {
        if (u->node.memory[i] != (uint8_t)i) {
            return false;
        }
    }
    return true;
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

static uint64_t counter(struct unit *u, const char *name)
{
#define MATCH(name_, text)                                                                                             \
    if (strcmp(name, #name_) == 0) {                                                                                   \
        return unit_counter(u, NETDAM_COUNTER_##name_);                                                                \
    }
    NETDAM_COUNTER_LIST(MATCH)
#undef MATCH
    fail_msg("no counter %s", name);
    return 0;
}

static void expect_sent(struct unit *u, const struct golden_entry *entry)
{
    static uint8_t expected[UNIT_FRAME_ROOM];
    size_t bytes, room = golden_load(DIRECTORY, entry->answer, expected, sizeof(expected));
    const uint8_t *sent = unit_sent_frame(u, &bytes);

    if (sent == NULL || bytes != room || memcmp(sent, expected, bytes) != 0) {
        fail_msg("%s: what was sent is not %s", entry->name, entry->answer);
    }
}

static void expect_status(struct unit *u, const struct golden_entry *entry)
{
    struct ndtest_packet packet;
    size_t bytes;
    const uint8_t *sent = unit_sent_frame(u, &bytes);

    assert_non_null(sent);
    assert_true(ndtest_packet_read(sent, bytes, NETDAM_UDP_PORT, &packet));
    if (strcmp(status_name(packet.status), entry->expected) != 0) {
        fail_msg("%s: answered %s", entry->name, status_name(packet.status));
    }
    assert_int_equal(packet.payload_bytes, 0);
}

static void play(struct unit *u, const struct golden_entry *entry)
{
    bool dropped = strncmp(entry->expected, "RX_", 3) == 0;
    bool executed = strcmp(entry->expected, "OK") == 0 && strstr(entry->name, "read") == NULL;

    start(u);
    if (strcmp(entry->kind, "again") == 0) {
        receive(u, "authenticate-write-request");
        unit_drop_sent(u);
        executed = true;
    }
    receive(u, entry->name);
    if (dropped && counter(u, entry->expected) != 1) {
        fail_msg("%s: %s was not counted", entry->name, entry->expected);
    }
    if (!dropped && strcmp(entry->answer, "-") != 0) {
        expect_sent(u, entry);
    } else if (!dropped) {
        expect_status(u, entry);
    }
    unit_expect_silence(u);
    if (is_untouched(u) == executed) {
        fail_msg("%s: memory is not what it should be", entry->name);
    }
    unit_stop(u);
}

/* Each request to the node; answers and what is passed on have been compared where they are expected. */
static void tenants_golden_packets_are_answered_and_dropped_as_the_manifest_says(void **state)
{
    static struct unit u;
    struct golden_entry entry;
    FILE *manifest = fopen(DIRECTORY "/manifest.txt", "r");
    unsigned played = 0;
    int next;

    (void)state;
    assert_non_null(manifest);
    while ((next = golden_next(manifest, &entry)) == 1) {
        if (strstr(entry.name, "-request") != NULL) {
            play(&u, &entry);
            played++;
        }
    }
    fclose(manifest);
    assert_int_equal(next, 0);
    assert_true(played > 15);
}

static void golden_writes_of_tenants_store_what_was_sealed(void **state)
{
    static struct unit u;
    static const char *const names[] = {"authenticate-write-request", "encrypt-write-request"};

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        start(&u);
        receive(&u, names[i]);
        assert_memory_equal(u.node.memory + (1 + i) * REGION_BYTES + 0x41, "Hello, node!", 12);
        unit_stop(&u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_golden_packets_are_answered_and_dropped_as_the_manifest_says),
        cmocka_unit_test(golden_writes_of_tenants_store_what_was_sealed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
