/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies into and out of on-board memory, and who may touch which bytes of it. */
#include "unit.h"

#include "platform_cpu.h"

#define ROOM   4096
#define CANARY 0xc9

static struct ndfw copier;

static void payload_store(uint8_t *to, const uint8_t *from, size_t bytes)
{
    ndfw_payload_store(&copier, to, from, bytes);
}

static void payload_load(uint8_t *to, const uint8_t *from, size_t bytes)
{
    ndfw_payload_load(&copier, to, from, bytes);
}

static void copies_exactly(void (*copy)(uint8_t *, const uint8_t *, size_t), uint8_t *to, const uint8_t *from,
                           unsigned to_at, unsigned bytes)
{
    uint8_t expected[ROOM];

    memset(to, CANARY, ROOM);
    memset(expected, CANARY, ROOM);
    memcpy(expected + to_at, from, bytes);
    copy(to + to_at, from, bytes);
    assert_memory_equal(to, expected, ROOM);
}

static void copies_move_exactly_the_bytes_at_every_alignment_and_length(void **state)
{
    struct ndtest_random random = {1};
    static uint64_t memory_words[ROOM / 8], other_words[ROOM / 8];
    uint8_t *memory = (uint8_t *)memory_words, *other = (uint8_t *)other_words;
    static const struct {
        void (*copy)(uint8_t *, const uint8_t *, size_t);
        bool into_memory;
        uint64_t features;
    } rows[] = {
        {ndfw_store, true, 0},
        {ndfw_load, false, 0},
        {payload_store, true, 0},
        {payload_load, false, 0},
        {payload_store, true, NETDAM_FW_CPU_AVX2},
        {payload_load, false, NETDAM_FW_CPU_AVX2},
        {payload_store, true, UINT64_MAX},
        {payload_load, false, UINT64_MAX},
    };

    (void)state;
    for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
        uint8_t *to = rows[r].into_memory ? memory : other;
        uint8_t *from = rows[r].into_memory ? other : memory;

        copier.config.cpu_features = ndfw_platform_cpu_features() & rows[r].features;
        ndtest_random_fill(&random, from, ROOM);
        for (unsigned to_at = 0; to_at < 8; to_at++) {
            for (unsigned from_at = 0; from_at < 8; from_at++) {
                for (unsigned bytes = 0; bytes <= 140; bytes++) {
                    copies_exactly(rows[r].copy, to, from + from_at, 16 + to_at, bytes);
                }
                for (unsigned bytes = 250 + to_at; bytes <= 700; bytes += 9) {
                    copies_exactly(rows[r].copy, to, from + from_at, 16 + to_at, bytes);
                }
                for (unsigned bytes = 1000 + from_at; bytes <= 4000; bytes += 487) {
                    copies_exactly(rows[r].copy, to, from + from_at, 16 + to_at, bytes);
                }
            }
        }
    }
}

static void elements_are_stored_and_loaded_at_their_width(void **state)
{
    const uint64_t value = UINT64_C(0xf1e2d3c4b5a69788);
    uint64_t words[4];
    uint8_t *memory = (uint8_t *)words;

    (void)state;
    for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
        uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;

        for (unsigned at = 0; at + bytes <= 16; at += bytes) {
            memset(words, CANARY, sizeof(words));
            ndfw_element_store(memory + at, bytes, value);
            assert_true(ndfw_element_load(memory + at, bytes) == (value & mask));
            for (unsigned i = 0; i < sizeof(words); i++) {
                assert_int_equal(memory[i], i >= at && i < at + bytes ? (uint8_t)(value >> 8 * (i - at)) : CANARY);
            }
        }
    }
}

struct access_log {
    uint64_t offset, bytes;
    unsigned calls;
    enum netdam_fw_access access;
};

static void log_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                       enum netdam_fw_access access)
{
    struct unit *u = opaque;
    struct access_log *log = (struct access_log *)(void *)u->node.memory; /* the first bytes of memory keep the log */

    (void)node;
    *log = (struct access_log){offset, bytes, log->calls + 1, access};
}

static void the_funnel_lets_through_what_lies_in_memory_and_tells(void **state)
{
    struct unit u;
    const struct access_log *log;
    static const struct {
        int64_t offset, bytes; /* negative: from the end, or from 2^64 */
        bool inside;
    } rows[] = {
        {0, 0, true},  {0, 1, true},   {64, 4096, true},    {-1, 1, true},
        {-1, 0, true}, {-1, 2, false}, {-4096, 4096, true}, {-4096, 4097, false},
    };

    (void)state;
    unit_start(&u, 0, NULL);
    u.node.hooks.access = log_access;
    log = (const struct access_log *)(const void *)u.node.memory;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t size = u.node.config.memory_bytes;
        uint64_t offset = rows[i].offset < 0 ? size + (uint64_t)rows[i].offset : (uint64_t)rows[i].offset;
        unsigned calls = log->calls;
        uint8_t *at = ndfw_memory(u.fw, offset, (uint64_t)rows[i].bytes, NETDAM_FW_ACCESS_UPDATE);

        assert_ptr_equal(at, rows[i].inside ? u.node.memory + offset : NULL);
        assert_int_equal(log->calls, calls + rows[i].inside);
        if (rows[i].inside) {
            assert_true(log->offset == offset && log->bytes == (uint64_t)rows[i].bytes);
            assert_int_equal(log->access, NETDAM_FW_ACCESS_UPDATE);
        }
    }
    u.node.hooks.access = NULL;
    /* Whatever wraps. */
    assert_null(ndfw_memory(u.fw, UINT64_MAX, 1, NETDAM_FW_ACCESS_READ));
    assert_null(ndfw_memory(u.fw, UINT64_MAX, 2, NETDAM_FW_ACCESS_READ));
    assert_null(ndfw_memory(u.fw, 1, UINT64_MAX, NETDAM_FW_ACCESS_READ));
    assert_null(ndfw_memory(u.fw, UINT64_MAX - 7, 16, NETDAM_FW_ACCESS_READ));
    assert_null(ndfw_memory(u.fw, 0, u.node.config.memory_bytes + 1, NETDAM_FW_ACCESS_READ));
    assert_non_null(ndfw_memory(u.fw, 0, u.node.config.memory_bytes, NETDAM_FW_ACCESS_READ));
    assert_non_null(ndfw_memory(u.fw, u.node.config.memory_bytes, 0, NETDAM_FW_ACCESS_READ));
    assert_null(ndfw_memory(u.fw, u.node.config.memory_bytes + 1, 0, NETDAM_FW_ACCESS_READ));
    unit_stop(&u);
}

#define BASE   0x1000
#define LENGTH 0x203 /* not a multiple of anything */

struct range_row {
    uint64_t address, bytes;
    bool inside;
};

static const struct range_row ranges[] = {
    {0, 0, true},
    {0, 1, true},
    {0, LENGTH, true},
    {0, LENGTH + 1, false},
    {LENGTH - 1, 1, true},
    {LENGTH - 1, 2, false},
    {LENGTH, 0, true},
    {LENGTH, 1, false},
    {LENGTH + 1, 0, false},
    {LENGTH + 1, 1, false},
    {1, LENGTH, false},
    {UINT64_MAX, 0, false},
    {UINT64_MAX, 1, false},
    {UINT64_MAX, 2, false},
    {UINT64_MAX - 0xff, 0x100, false},
    {UINT64_MAX - 0xff, 0x101, false},
    {1, UINT64_MAX, false},
    {2, UINT64_MAX, false},
    {0, UINT64_MAX, false},
    {(uint64_t)0 - BASE, BASE, false}, /* base + address wraps to 0 */
    {(uint64_t)0 - BASE, 1, false},
};

static void a_region_ends_where_it_ends(void **state)
{
    struct unit u;
    uint32_t region, serial;

    (void)state;
    unit_start(&u, 0, NULL);
    region = unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    serial = u.fw->regions[region].serial;
    for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
        const struct range_row *row = &ranges[i];
        uint64_t remote = 1, local = 1;

        assert_int_equal(
            ndfw_region_access(u.fw, UNIT_KEY, 0, row->address, row->bytes, NETDAM_PERMISSION_REMOTE_WRITE, &remote),
            row->inside ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_RANGE);
        assert_int_equal(
            ndfw_local_access(u.fw, region, serial, row->address, row->bytes, NETDAM_PERMISSION_LOCAL_READ, &local),
            row->inside ? NETDAM_STATUS_OK : NETDAM_STATUS_LOCAL_RANGE);
        if (row->inside) {
            assert_true(remote == BASE + row->address);
            assert_true(local == BASE + row->address);
        } else {
            assert_true(remote == 1 && local == 1);
        }
    }
    unit_stop(&u);
}

static void every_permission_is_asked_for_by_itself(void **state)
{
    struct unit u;

    (void)state;
    unit_start(&u, 0, NULL);
    for (uint32_t has = 0; has <= NETDAM_PERMISSION_ALL; has++) {
        uint32_t region = unit_region(&u, BASE, LENGTH, has, UNIT_KEY);
        uint32_t serial = u.fw->regions[region].serial;

        for (uint32_t wants = 0; wants <= NETDAM_PERMISSION_ALL; wants++) {
            bool may = (wants & ~has) == 0;
            uint64_t offset;

            assert_int_equal(ndfw_region_access(u.fw, UNIT_KEY, 0, 0, 8, wants, &offset),
                             may ? NETDAM_STATUS_OK : NETDAM_STATUS_NO_PERMISSION);
            assert_int_equal(ndfw_local_access(u.fw, region, serial, 0, 8, wants, &offset),
                             may ? NETDAM_STATUS_OK : NETDAM_STATUS_LOCAL_PERMISSION);
        }
        assert_int_equal(ndtest_region_destroy(&u.node, region, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    }
    unit_stop(&u);
}

static void refusals_come_in_order_key_range_permission(void **state)
{
    struct unit u;
    uint64_t offset;

    (void)state;
    unit_start(&u, 0, NULL);
    unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_REMOTE_READ, UNIT_KEY);
    assert_int_equal(ndfw_region_access(u.fw, UNIT_KEY + 1, 0, LENGTH, 1, NETDAM_PERMISSION_REMOTE_WRITE, &offset),
                     NETDAM_STATUS_BAD_KEY);
    assert_int_equal(ndfw_region_access(u.fw, UNIT_KEY, 0, LENGTH, 1, NETDAM_PERMISSION_REMOTE_WRITE, &offset),
                     NETDAM_STATUS_BAD_RANGE);
    assert_int_equal(ndfw_region_access(u.fw, UNIT_KEY, 0, LENGTH - 1, 1, NETDAM_PERMISSION_REMOTE_WRITE, &offset),
                     NETDAM_STATUS_NO_PERMISSION);
    /* The key of no region, 0, is nobody's. */
    assert_int_equal(ndfw_region_access(u.fw, 0, 0, 0, 0, 0, &offset), NETDAM_STATUS_BAD_KEY);
    unit_stop(&u);
}

static void a_region_that_was_destroyed_is_not_meant_by_its_successor(void **state)
{
    struct unit u;
    uint32_t first, second, serial;
    uint64_t offset;

    (void)state;
    unit_start(&u, 0, NULL);
    first = unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    serial = u.fw->regions[first].serial;
    assert_int_equal(ndtest_region_destroy(&u.node, first, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ndfw_local_access(u.fw, first, serial, 0, 1, 0, &offset), NETDAM_STATUS_LOCAL_REGION);
    assert_int_equal(ndfw_region_access(u.fw, UNIT_KEY, 0, 0, 1, 0, &offset), NETDAM_STATUS_BAD_KEY);
    second = unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    assert_int_equal(second, first);
    assert_int_equal(ndfw_local_access(u.fw, first, serial, 0, 1, 0, &offset), NETDAM_STATUS_LOCAL_REGION);
    assert_int_equal(ndfw_local_access(u.fw, second, u.fw->regions[second].serial, 0, 1, 0, &offset), NETDAM_STATUS_OK);
    /* Indices beyond the table. */
    assert_int_equal(ndfw_local_access(u.fw, u.fw->config.regions, serial, 0, 0, 0, &offset),
                     NETDAM_STATUS_LOCAL_REGION);
    assert_int_equal(ndfw_local_access(u.fw, UINT32_MAX, serial, 0, 0, 0, &offset), NETDAM_STATUS_LOCAL_REGION);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_move_exactly_the_bytes_at_every_alignment_and_length),
        cmocka_unit_test(elements_are_stored_and_loaded_at_their_width),
        cmocka_unit_test(the_funnel_lets_through_what_lies_in_memory_and_tells),
        cmocka_unit_test(a_region_ends_where_it_ends),
        cmocka_unit_test(every_permission_is_asked_for_by_itself),
        cmocka_unit_test(refusals_come_in_order_key_range_permission),
        cmocka_unit_test(a_region_that_was_destroyed_is_not_meant_by_its_successor),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
