/* SPDX-License-Identifier: BSD-3-Clause */
/* The image's entry and configuration: impossible ones are refused by name, defaults are what the header says. */
#include "unit.h"

static uint8_t memory[2 * 4096 + 4096];

static struct netdam_fw_config good(void)
{
    struct netdam_fw_config config = {
        .abi_version = NETDAM_FW_ABI_VERSION,
        .memory = (uint8_t *)(((uintptr_t)memory + 4095) & ~(uintptr_t)4095),
        .memory_bytes = 4096,
        .mac = {2, 0, 0, 0, 0, 1},
    };

    return config;
}

static void the_entry_names_its_versions_and_all_calls(void **state)
{
    const struct netdam_fw_ops *ops = netdam_fw_entry();

    (void)state;
    assert_int_equal(ops->abi_version, NETDAM_FW_ABI_VERSION);
    assert_int_equal(ops->ops_bytes, sizeof(struct netdam_fw_ops));
    assert_int_not_equal(ops->firmware_version, 0);
    assert_int_equal(ops->reserved, 0);
    assert_non_null(ops->name);
    assert_non_null(ops->state_bytes);
    assert_non_null(ops->start);
    assert_non_null(ops->stop);
    assert_non_null(ops->receive);
    assert_non_null(ops->run);
    assert_non_null(ops->prepare_sleep);
    assert_non_null(ops->register_read);
    assert_non_null(ops->register_write);
    assert_ptr_equal(ops, netdam_fw_entry());
}

struct row {
    const char *field; /* the name told; NULL: possible */
    size_t offset;
    unsigned bytes;
    uint64_t value;
};

/* clang-format off */
#define FIELD(member) offsetof(struct netdam_fw_config, member), sizeof(((struct netdam_fw_config *)0)->member)
#define BAD(member, value) {#member, FIELD(member), value}
#define GOOD(member, value) {NULL, FIELD(member), value}
/* clang-format on */

static void impossible_values_are_refused_by_the_name_of_the_field(void **state)
{
    /* clang-format off */
    static const struct row rows[] = {
        BAD(abi_version, 0), BAD(abi_version, NETDAM_FW_ABI_VERSION + 1),
        BAD(memory, 0),
        BAD(memory_bytes, 0), BAD(memory_bytes, 4095), BAD(memory_bytes, 4097), BAD(memory_bytes, 8),
        BAD(memory_bytes, UINT64_MAX), BAD(memory_bytes, UINT64_MAX - 4095),
        BAD(memory_bytes, (UINT64_C(1) << 56) + 4096),
        GOOD(memory_bytes, 8192), GOOD(memory_bytes, UINT64_C(1) << 56),
        BAD(mac, 1), BAD(mac, UINT64_C(0xffffffffffff)),
        BAD(ipv4_prefix, 33), BAD(ipv4_prefix, 255), GOOD(ipv4_prefix, 1), GOOD(ipv4_prefix, 32),
        BAD(mtu, 1499), BAD(mtu, 9001), BAD(mtu, 1), BAD(mtu, UINT32_MAX), GOOD(mtu, 1500), GOOD(mtu, 9000),
        BAD(queue_pairs, NETDAM_QUEUE_PAIRS_MAX + 1), BAD(queue_pairs, UINT32_MAX), GOOD(queue_pairs, 1),
        GOOD(queue_pairs, NETDAM_QUEUE_PAIRS_MAX),
        BAD(regions, (1u << 16) + 1), BAD(regions, UINT32_MAX), GOOD(regions, 1), GOOD(regions, 1u << 16),
        BAD(peers, (1u << 16) + 1), BAD(peers, UINT32_MAX), GOOD(peers, 1), GOOD(peers, 1u << 16),
        BAD(neighbours, (1u << 16) + 1), BAD(neighbours, UINT32_MAX), GOOD(neighbours, 1),
        BAD(operations, (1u << 20) + 1), BAD(operations, UINT32_MAX), GOOD(operations, 1),
        BAD(lanes, (1u << 24) + 1), BAD(lanes, UINT32_MAX), GOOD(lanes, 1), GOOD(lanes, 1u << 24),
        BAD(replies, (1u << 20) + 1), GOOD(replies, 1), GOOD(replies, 1u << 20), BAD(lane_windows, 1u << 16), BAD(lane_windows, UINT32_MAX), GOOD(lane_windows, 1), GOOD(lane_windows, 65535),
        BAD(window, NETDAM_WINDOW_MAX * 2), BAD(window, 3), BAD(window, 1000), BAD(window, UINT32_MAX), GOOD(window, 1),
        GOOD(window, 2), GOOD(window, NETDAM_WINDOW_MAX),
        BAD(retries, 1001), BAD(retries, UINT32_MAX), GOOD(retries, 1), GOOD(retries, 1000),
        BAD(rto_max_ns, 1), BAD(rto_max_ns, UINT64_MAX), BAD(rto_initial_ns, UINT64_MAX),
        GOOD(rto_min_ns, 1), GOOD(rto_initial_ns, 1),
        BAD(first_number, NETDAM_NUMBER_MAX), BAD(first_number, UINT64_MAX), GOOD(first_number, NETDAM_NUMBER_MAX - 1),
        BAD(paths, NETDAM_FW_PATHS_MAX + 1), BAD(paths, UINT32_MAX), GOOD(paths, 1), GOOD(paths, NETDAM_FW_PATHS_MAX),
        BAD(function_index, 1), BAD(function_index, UINT32_MAX),
        GOOD(udp_port, 1), GOOD(udp_port, 65535), GOOD(vectors, 65535), GOOD(no_payload_crc, 1), GOOD(no_merge, 1),
        GOOD(refusal_burst, UINT32_MAX), GOOD(refusal_interval_ns, 1), GOOD(cpu_features, UINT64_MAX),
        GOOD(confirm_idle_ns, 1), GOOD(lane_give_up_ns, 1), GOOD(generation_interval_ns, 1),
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_fw_config config = good();
        const char *error = NULL;
        size_t bytes;

        memcpy((uint8_t *)&config + rows[i].offset, &rows[i].value, rows[i].bytes);
        bytes = netdam_fw_entry()->state_bytes(&config, &error);
        if (rows[i].field == NULL) {
            if (bytes < sizeof(struct ndfw) || error != NULL) {
                fail_msg("row %zu is refused: %s", i, error != NULL ? error : "?");
            }
        } else if (bytes != 0 || error == NULL || strcmp(error, rows[i].field) != 0) {
            fail_msg("row %zu: %s = %#llx: %zu bytes, error %s", i, rows[i].field, (unsigned long long)rows[i].value,
                     bytes, error != NULL ? error : "none");
        } else {
            assert_int_equal(netdam_fw_entry()->state_bytes(&config, NULL), 0); /* nobody wants to know */
        }
    }
}

static void misaligned_memory_is_refused(void **state)
{
    (void)state;
    for (unsigned off = 1; off < 4096; off *= 2) {
        struct netdam_fw_config config = good();
        const char *error = NULL;

        config.memory += off;
        assert_int_equal(netdam_fw_entry()->state_bytes(&config, &error), 0);
        assert_string_equal(error, "memory");
    }
}

static void minimum_and_maximum_of_the_time_out_agree(void **state)
{
    struct netdam_fw_config config = good();
    const char *error = NULL;

    (void)state;
    config.rto_min_ns = config.rto_max_ns = 5 * UNIT_MS;
    assert_int_not_equal(netdam_fw_entry()->state_bytes(&config, &error), 0);
    config.rto_min_ns++;
    assert_int_equal(netdam_fw_entry()->state_bytes(&config, &error), 0);
    assert_string_equal(error, "rto_max_ns");
}

static void zeros_mean_the_defaults_that_the_header_names(void **state)
{
    struct netdam_fw_config config;
    struct unit u;

    (void)state;
    ndtest_config_default(&config, 0);
    unit_start(&u, 0, &config);
    config = u.fw->config;
    assert_int_equal(config.udp_port, NETDAM_UDP_PORT);
    assert_int_equal(config.ipv4_prefix, 24);
    assert_int_equal(config.mtu, 1500);
    assert_int_equal(config.queue_pairs, 16);
    assert_int_equal(config.regions, 64);
    assert_int_equal(config.peers, 64);
    assert_int_equal(config.neighbours, 64);
    assert_int_equal(config.operations, 1024);
    assert_int_equal(config.lanes, 4096);
    assert_int_equal(config.lane_windows, 256);
    assert_int_equal(config.replies, 256);
    assert_int_equal(config.window, 256);
    assert_int_equal(config.retries, 10);
    assert_true(config.rto_initial_ns == 50 * UNIT_MS);
    assert_true(config.rto_min_ns == 10 * UNIT_MS);
    assert_true(config.rto_max_ns == 1000 * UNIT_MS);
    assert_true(config.confirm_idle_ns == 100 * UNIT_MS);
    assert_true(config.lane_give_up_ns == 60000 * UNIT_MS);
    assert_true(config.generation_interval_ns == 1000 * UNIT_MS);
    assert_true(config.refusal_interval_ns == 10000);
    assert_int_equal(config.refusal_burst, 256);
    assert_true(config.first_number == 1);
    assert_int_equal(config.no_payload_crc, 0);
    unit_stop(&u);
}

static void state_grows_with_every_table(void **state)
{
    static const struct {
        size_t offset;
        unsigned bytes;
    } tables[] = {
        {FIELD(queue_pairs)}, {FIELD(regions)},      {FIELD(peers)},  {FIELD(neighbours)}, {FIELD(operations)},
        {FIELD(lanes)},       {FIELD(lane_windows)}, {FIELD(window)}, {FIELD(replies)},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        struct netdam_fw_config config = good();
        size_t bytes[2];

        for (unsigned k = 0; k < 2; k++) {
            uint32_t value = k == 0 ? 16 : 64;

            memcpy((uint8_t *)&config + tables[i].offset, &value, tables[i].bytes);
            bytes[k] = netdam_fw_entry()->state_bytes(&config, NULL);
        }
        assert_true(bytes[1] > bytes[0]);
    }
}

static void the_smallest_tables_work(void **state)
{
    struct netdam_fw_config config;
    struct unit u;

    (void)state;
    ndtest_config_default(&config, 0);
    config.queue_pairs = config.regions = config.peers = config.neighbours = config.operations = 1;
    config.lanes = config.lane_windows = config.window = config.retries = 1;
    unit_start(&u, 0, &config);
    for (unsigned i = 0; i < 3; i++) { /* a round trip through oneself */
        uint64_t args[] = {0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16}, results[NETDAM_ADMIN_RESULTS];
        struct netdam_descriptor d = {.opcode = NETDAM_OP_FETCH_ADD,
                                      .type = NETDAM_TYPE_U64,
                                      .length = 8,
                                      .remote_key = UNIT_KEY,
                                      .u.operand = {5}};
        struct ndtest_queue queue;

        unit_region(&u, 0x4000, 64, NETDAM_PERMISSION_ALL, UNIT_KEY);
        unit_queue(&u, &queue, 0x1000, 1);
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
        unit_post(&u, &queue, &d);
        unit_post(&u, &queue, &d);
        unit_run(&u);
        unit_expect_completion(&queue, 0, NETDAM_STATUS_OK);
        unit_expect_completion(&queue, 0, NETDAM_STATUS_OK);
        assert_true(unit_memory_get(&u, 0x4000, 8) == 10);
        unit_memory_put(&u, 0x4000, 8, 0);
        ndtest_node_stop(&u.node, u.now_ns);
        ndtest_node_start(&u.node, u.now_ns);
    }
    unit_stop(&u);
}

static void a_start_forgets_everything(void **state)
{
    struct ndtest_queue queue;
    struct unit u;
    uint64_t args[] = {0};

    (void)state;
    unit_start(&u, 0, NULL);
    unit_region(&u, 0x4000, 64, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_queue(&u, &queue, 0x1000, 1);
    unit_peer(&u, 4, UNIT_GENERATION);
    ndtest_node_stop(&u.node, u.now_ns);
    ndtest_node_start(&u.node, u.now_ns);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_DESTROY, args, 1, NULL), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_QUERY, args, 1, NULL), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_CLOSE, args, 1, NULL), NETDAM_ADMIN_STATUS_NO_SUCH);
    for (unsigned c = 0; c < NETDAM_COUNTER_COUNT; c++) {
        assert_true(unit_counter(&u, (enum netdam_counter)c) == (c == NETDAM_COUNTER_ADMIN_ERRORS ? 3 : 0));
    }
    unit_run(&u);
    assert_true(u.result.next_ns == NETDAM_FW_NEVER);
    assert_false(u.result.more);
    unit_expect_silence(&u);
    unit_stop(&u);
}

static void the_same_inputs_give_the_same_outputs(void **state)
{
    static uint8_t pictures[2][0x8000];
    uint64_t hashes[2];

    (void)state;
    for (unsigned run = 0; run < 2; run++) {
        struct ndtest_random random = {77};
        struct unit u;
        struct ndtest_queue queue;
        const uint8_t *sent;
        size_t bytes;

        unit_start(&u, 1, NULL);
        unit_region(&u, 0x4000, 0x4000, NETDAM_PERMISSION_ALL, UNIT_KEY);
        unit_queue(&u, &queue, 0x1000, 4);
        unit_peer(&u, 4, 0);
        hashes[run] = 0;
        for (unsigned i = 0; i < 2000; i++) {
            uint8_t payload[64];
            struct unit_request r = {
                .opcode = (uint8_t)(ndtest_random_below(&random, 2) != 0 ? NETDAM_OP_WRITE : NETDAM_OP_READ),
                .key = UNIT_KEY,
                .generation = UNIT_GENERATION,
                .number = ndtest_random_below(&random, 300),
                .payload = payload};
            struct netdam_descriptor d = {.opcode = NETDAM_OP_WRITE, .length = 8, .user_data = i};
            unsigned action;

            r.distance = (uint16_t)ndtest_random_below(&random, r.number + 1);
            r.address = ndtest_random_below(&random, 0x4000);
            r.length = (uint32_t)ndtest_random_below(&random, 64);
            r.payload_length = r.opcode == NETDAM_OP_WRITE ? r.length : 0;
            ndtest_random_fill(&random, payload, sizeof(payload));
            unit_request(&u, &r);
            (void)ndtest_queue_post(&queue, &d, u.now_ns, &action);
            unit_run_for(&u, ndtest_random_below(&random, UNIT_MS));
            while ((sent = unit_sent_frame(&u, &bytes)) != NULL) {
                hashes[run] = ndtest_hash(hashes[run], sent, bytes);
            }
        }
        memcpy(pictures[run], u.node.memory, sizeof(pictures[run]));
        unit_stop(&u);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_memory_equal(pictures[0], pictures[1], sizeof(pictures[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_entry_names_its_versions_and_all_calls),
        cmocka_unit_test(impossible_values_are_refused_by_the_name_of_the_field),
        cmocka_unit_test(misaligned_memory_is_refused),
        cmocka_unit_test(minimum_and_maximum_of_the_time_out_agree),
        cmocka_unit_test(zeros_mean_the_defaults_that_the_header_names),
        cmocka_unit_test(state_grows_with_every_table),
        cmocka_unit_test(the_smallest_tables_work),
        cmocka_unit_test(a_start_forgets_everything),
        cmocka_unit_test(the_same_inputs_give_the_same_outputs),
    };

    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
