/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers as their list says, doorbells, the page of counters, and administration commands with bad arguments. */
#include "unit.h"

#define READ(offset, bytes)       u.node.ops->register_read(u.node.state, offset, bytes)
#define PUT(offset, bytes, value) u.node.ops->register_write(u.node.state, offset, bytes, value, u.now_ns)
#define ERRORS()                  unit_counter(&u, NETDAM_COUNTER_REGISTER_ERRORS)

static struct unit u;

struct reg {
    const char *name;
    uint32_t offset;
    unsigned bytes;
    bool writable;
    uint64_t reset;
};

#define ACCESS_RO false
#define ACCESS_RW true
static const struct reg regs[] = {
#define REG_ROW(name, offset, bytes, access, reset, text) {#name, offset, bytes, ACCESS_##access, reset},
    NETDAM_REG_LIST(REG_ROW)};

static struct netdam_fw_config config_of_registers(void)
{
    struct netdam_fw_config config = unit_config(0);

    config.mtu = 4000;
    config.regions = 9;
    config.peers = 7;
    config.window = 128;
    config.udp_port = 999;
    config.vectors = 5;
    config.queue_pairs = 6;
    return config;
}

/* What a register that depends on the configuration should say. */
static uint64_t configured(const char *name)
{
    static const struct {
        const char *name;
        uint64_t value;
    } values[] = {
        {"FIRMWARE_VERSION", NDFW_VERSION},
        {"FIRMWARE_ABI", NETDAM_FW_ABI_VERSION},
        {"STATUS", NETDAM_DEVICE_READY | NETDAM_DEVICE_LINK_UP},
        {"VECTORS", 5},
        {"MEMORY_BYTES", 1 << 20},
        {"QUEUE_PAIRS", 6},
        {"REGIONS", 9},
        {"PEERS", 7},
        {"MTU", 4000},
        {"PAYLOAD_MAX", 3904},
        {"LENGTH_MAX", NDFW_LENGTH_MAX},
        {"WINDOW", 128},
        {"MAC", UINT64_C(0x020000000001)},
        {"IPV4", 0x0a000001},
        {"UDP_PORT", 999},
        {"IPV6_HIGH", UINT64_C(0xfd00000000000000)},
        {"IPV6_LOW", 1},
        {"GENERATION", UNIT_GENERATION},
        {"TIME_NS", 1000 * UNIT_MS},
    };

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        if (strcmp(values[i].name, name) == 0) {
            return values[i].value;
        }
    }
    fail_msg("register %s has no expected value here", name);
    return 0;
}

static void begin(void)
{
    struct netdam_fw_config config = config_of_registers();

    unit_start(&u, 0, &config);
}

static void every_register_reads_as_its_list_says_whole_and_in_halves(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < ARRAY_SIZE(regs); i++) {
        uint64_t want = regs[i].reset != NETDAM_REG_CONFIG ? regs[i].reset : configured(regs[i].name);

        if (READ(regs[i].offset, regs[i].bytes) != want) {
            fail_msg("%s reads %#llx, expected %#llx", regs[i].name,
                     (unsigned long long)READ(regs[i].offset, regs[i].bytes), (unsigned long long)want);
        }
        if (regs[i].bytes == 8) {
            assert_true(READ(regs[i].offset, 4) == (uint32_t)want);
            assert_true(READ(regs[i].offset + 4, 4) == want >> 32);
        }
    }
    assert_int_equal(ERRORS(), 0);
    unit_stop(&u);
}

/* Whether the list allows an access. */
static const struct reg *allowed(uint32_t offset, unsigned bytes, bool write)
{
    for (size_t i = 0; i < ARRAY_SIZE(regs); i++) {
        bool whole = offset == regs[i].offset && bytes == regs[i].bytes;
        bool half = regs[i].bytes == 8 && bytes == 4 && (offset == regs[i].offset || offset == regs[i].offset + 4);

        if ((whole || half) && (!write || regs[i].writable)) {
            return &regs[i];
        }
    }
    return NULL;
}

static bool is_doorbell(uint32_t offset, unsigned bytes)
{
    return bytes == 4 && offset >= NETDAM_PAGE_DOORBELLS && offset % NETDAM_PAGE_BYTES == 0 &&
           (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES < 6;
}

static void every_other_read_is_counted_and_yields_ones(void **state)
{
    uint64_t errors = 0;

    (void)state;
    begin();
    for (uint32_t offset = 0; offset < NETDAM_PAGE_COUNTERS + 0x400; offset++) {
        for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
            bool counter = offset >= NETDAM_PAGE_COUNTERS && offset < NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_COUNT &&
                           ((bytes == 8 && offset % 8 == 0) || (bytes == 4 && offset % 4 == 0));
            uint64_t value = READ(offset, bytes);

            if (allowed(offset, bytes, false) == NULL && !counter) {
                errors++;
                assert_true((value & (bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1)) ==
                            (bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1));
            }
        }
    }
    assert_true(ERRORS() == errors);
    /* Odd widths, and far outside. */
    static const struct {
        uint32_t offset;
        unsigned bytes;
    } odd[] = {{0, 0},
               {0, 3},
               {0, 5},
               {0, 16},
               {0x10, 64},
               {UINT32_MAX, 4},
               {UINT32_MAX - 3, 4},
               {0x80000, 4},
               {NETDAM_BAR0_BYTES, 8},
               {0x10000, 8},
               {0x10000, 1},
               {0x10004, 4},
               {0x16000, 4},
               {0xf000, 4}};

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        errors++;
        assert_true((READ(odd[i].offset, odd[i].bytes) & 0xff) == 0xff);
        assert_true(ERRORS() == errors);
    }
    unit_stop(&u);
}

static void every_other_write_is_counted_and_changes_nothing(void **state)
{
    static struct ndfw before;
    uint64_t errors = 0;

    (void)state;
    begin();
    memcpy(&before, u.fw, sizeof(before));
    for (uint32_t offset = 0; offset < NETDAM_PAGE_COUNTERS + 0x400; offset++) {
        for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
            if (allowed(offset, bytes, true) == NULL) {
                assert_int_equal(PUT(offset, bytes, UINT64_C(0x0101010101010101)), 0);
                errors++;
            }
        }
    }
    for (uint32_t offset = NETDAM_PAGE_DOORBELLS; offset < NETDAM_BAR0_BYTES + 0x2000; offset += 0x7fc) {
        for (unsigned bytes = 1; bytes <= 8; bytes *= 2) {
            if (!is_doorbell(offset, bytes)) {
                assert_int_equal(PUT(offset, bytes, 1), 0);
                errors++;
            }
        }
    }
    assert_true(ERRORS() == errors);
    before.counters[NETDAM_COUNTER_REGISTER_ERRORS] = errors;
    assert_memory_equal(&before, u.fw, sizeof(before));
    unit_stop(&u);
}

static void arguments_can_be_written_whole_and_in_halves(void **state)
{
    const uint64_t value = UINT64_C(0x1122334455667788);

    (void)state;
    begin();
    for (size_t i = 0; i < ARRAY_SIZE(regs); i++) {
        if (!regs[i].writable || regs[i].bytes != 8) {
            continue;
        }
        assert_int_equal(PUT(regs[i].offset, 8, value), 0);
        assert_true(READ(regs[i].offset, 8) == value);
        assert_int_equal(PUT(regs[i].offset, 4, 0xaabbccdd), 0);
        assert_true(READ(regs[i].offset, 8) == UINT64_C(0x11223344aabbccdd));
        assert_int_equal(PUT(regs[i].offset + 4, 4, 0x99001122), 0);
        assert_true(READ(regs[i].offset, 8) == UINT64_C(0x99001122aabbccdd));
        assert_true(READ(regs[i].offset + 4, 4) == 0x99001122);
    }
    assert_int_equal(ERRORS(), 0);
    unit_stop(&u);
}

static void control_asks_for_a_reset_and_knows_no_other_bit(void **state)
{
    (void)state;
    begin();
    assert_int_equal(PUT(NETDAM_REG_CONTROL, 4, 0), 0);
    assert_int_equal(ERRORS(), 0);
    assert_int_equal(PUT(NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET), NETDAM_FW_ACTION_RESET);
    assert_int_equal(READ(NETDAM_REG_CONTROL, 4), 0);
    for (unsigned bit = 1; bit < 32; bit++) {
        assert_int_equal(PUT(NETDAM_REG_CONTROL, 4, UINT64_C(1) << bit), 0);
        assert_int_equal(PUT(NETDAM_REG_CONTROL, 4, UINT64_C(1) << bit | 1), 0);
    }
    assert_int_equal(ERRORS(), 62);
    unit_stop(&u);
}

static void doorbells_wake_and_read_as_zero(void **state)
{
    (void)state;
    begin();
    for (unsigned pair = 0; pair < 6; pair++) { /* whether or not the pair exists */
        uint32_t offset = NETDAM_PAGE_DOORBELLS + pair * NETDAM_PAGE_BYTES;

        assert_int_equal(PUT(offset, 4, pair * 77), NETDAM_FW_ACTION_RUN);
        assert_int_equal(READ(offset, 4), 0);
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_DOORBELLS), 6);
    assert_int_equal(ERRORS(), 0);
    assert_int_equal(PUT(NETDAM_PAGE_DOORBELLS + 6 * NETDAM_PAGE_BYTES, 4, 1), 0);
    assert_int_equal(ERRORS(), 1);
    unit_stop(&u);
}

static void the_page_of_counters_shows_each_and_takes_no_write(void **state)
{
    (void)state;
    begin();
    for (uint32_t c = 0; c < NETDAM_COUNTER_COUNT; c++) {
        u.fw->counters[c] = UINT64_C(0x100000000) * (c + 1) + 7 * c;
    }
    u.fw->counters[NETDAM_COUNTER_REGISTER_ERRORS] = 0;
    for (uint32_t c = 0; c < NETDAM_COUNTER_COUNT; c++) {
        uint64_t want = c == NETDAM_COUNTER_REGISTER_ERRORS ? c : UINT64_C(0x100000000) * (c + 1) + 7 * c;

        assert_true(READ(NETDAM_PAGE_COUNTERS + 8 * c, 8) == want);
        assert_true(READ(NETDAM_PAGE_COUNTERS + 8 * c, 4) == (uint32_t)want);
        assert_true(READ(NETDAM_PAGE_COUNTERS + 8 * c + 4, 4) == want >> 32);
        assert_int_equal(PUT(NETDAM_PAGE_COUNTERS + 8 * c, 8, 1), 0); /* counted as an error */
    }
    unit_stop(&u);
}

static uint32_t link_down(void *opaque)
{
    (void)opaque;
    return NETDAM_DEVICE_FIRMWARE_STALE;
}

static uint64_t some_bytes(void *opaque)
{
    (void)opaque;
    return 12345;
}

static void the_platform_tells_of_link_and_main_memory(void **state)
{
    (void)state;
    begin();
    u.fw->platform.device_status = link_down;
    u.fw->platform.main_memory_bytes = some_bytes;
    assert_int_equal(READ(NETDAM_REG_STATUS, 4), NETDAM_DEVICE_READY | NETDAM_DEVICE_FIRMWARE_STALE);
    assert_int_equal(READ(NETDAM_REG_MAIN_MEMORY_BYTES, 8), 12345);
    unit_stop(&u);
}

/* A command with arguments, and what it says. `results` that should come of it are looked at elsewhere. */
struct command {
    uint32_t command;
    uint64_t args[8];
    enum netdam_admin_status status;
};

#define OK          NETDAM_ADMIN_STATUS_OK
#define BAD         NETDAM_ADMIN_STATUS_BAD_ARGUMENT
#define NO_SUCH     NETDAM_ADMIN_STATUS_NO_SUCH
#define EXISTS      NETDAM_ADMIN_STATUS_EXISTS
#define UNSUPPORTED NETDAM_ADMIN_STATUS_UNSUPPORTED
#define MEMORY      UINT64_C(0x100000)
#define PORT        (UINT64_C(999) << 16)
#define NONE        (UINT64_C(0xffff) << 16)
#define V6          (UINT64_C(0xfd) << 56)

static const struct command commands[] = {
    {0, {0}, NETDAM_ADMIN_STATUS_BAD_COMMAND},
    {12, {0}, NETDAM_ADMIN_STATUS_BAD_COMMAND},
    {UINT32_MAX, {0}, NETDAM_ADMIN_STATUS_BAD_COMMAND},
    /* base, length, permissions, key, tenant */
    {NETDAM_ADMIN_REGION_CREATE, {0, 0, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {0, MEMORY + 1, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {8, MEMORY, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {MEMORY, 1, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {UINT64_MAX - 7, 16, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {16, UINT64_MAX - 7, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {4, 8, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {1, 8, 0x1f, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x20, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, UINT64_C(1) << 32, 0, 0}, BAD},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, 0, 1}, NO_SUCH},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, UNIT_KEY, 0}, EXISTS},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, 0, 0, 2}, NO_SUCH}, /* immediates to pair 1, which is not there */
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, 0, 0, 7}, NO_SUCH},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, 0, 0, UINT64_MAX}, NO_SUCH},
    {NETDAM_ADMIN_REGION_CREATE, {0, 8, 0x1f, 0, 0, UINT64_C(1) << 32}, NO_SUCH},
    {NETDAM_ADMIN_REGION_DESTROY, {1}, NO_SUCH},
    {NETDAM_ADMIN_REGION_DESTROY, {9}, NO_SUCH},
    {NETDAM_ADMIN_REGION_DESTROY, {UINT64_MAX}, NO_SUCH},
    {NETDAM_ADMIN_REGION_DESTROY, {UINT64_C(1) << 32}, NO_SUCH},
    /* SQ base, log2, CQ base, log2, RQ base, log2, type | vector, first */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20001, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20020, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 0, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 17, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 64, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, UINT64_MAX, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4 | UINT64_C(1) << 32, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0, 16, 0x30000, 4, 0, 0, NONE, 0}, BAD}, /* 4 MiB of ring in 1 MiB */
    {NETDAM_ADMIN_QUEUE_CREATE, {MEMORY - 64, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {MEMORY, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {UINT64_MAX - 63, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30008, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 0, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 17, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, MEMORY - 128, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, UINT64_MAX - 63, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, NONE, UINT64_C(1) << 32}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, NONE | 2, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, NONE | 0xffff, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, UINT64_C(5) << 16, 0}, BAD}, /* vectors 0 to 4 */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, UINT64_C(0xfffe) << 16, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, UINT64_C(1) << 32, 0}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, NONE | UINT64_C(1) << 40, 0}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0, 0, NONE | NETDAM_QUEUE_RAW | UINT64_C(1) << 32, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x40020, 4, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x40000, 17, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, MEMORY - 64, 4, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, UINT64_MAX - 63, 4, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x20440, 4, NONE, 0}, BAD}, /* its own SQ */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x30240, 4, NONE, 0}, BAD}, /* its own CQ */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x1440, 4, NONE, 0}, BAD},  /* another's SQ */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x30000, 4, 0x2240, 4, NONE, 0}, BAD},  /* another's CQ */
    /* Overlap: of its own rings, and with those at 0x1000 to 0x1480 and 0x2000 to 0x2280. */
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x20000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x20440, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20240, 4, 0x20000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x1000, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x1440, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x0c00, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x2240, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x1dc0, 4, 0x30000, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x2240, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_CREATE, {0x20000, 4, 0x1dc0, 4, 0, 0, NONE, 0}, BAD},
    {NETDAM_ADMIN_QUEUE_DESTROY, {1}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_DESTROY, {6}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_DESTROY, {UINT64_C(1) << 32}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_QUERY, {1}, NO_SUCH},
    {NETDAM_ADMIN_QUEUE_QUERY, {UINT64_MAX}, NO_SUCH},
    /* address, address, family | port */
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 4}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0, 0, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x00000001, 0, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0xe0000001, 0, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0xffffffff, 0, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {UINT64_C(0x10a000002), 0, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 1, 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 5 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 0 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 17 << 8 | 4 | PORT}, BAD}, /* paths */
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 255 << 8 | 4 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, 4 | PORT | UINT64_C(1) << 32}, NO_SUCH}, /* tenant */
    {NETDAM_ADMIN_PEER_OPEN, {0, 0, 6 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {UINT64_C(0xff02) << 48, 1, 6 | PORT}, BAD},
    {NETDAM_ADMIN_PEER_OPEN, {V6, 2, 6}, BAD},
    {NETDAM_ADMIN_PEER_CLOSE, {1}, NO_SUCH},
    {NETDAM_ADMIN_PEER_CLOSE, {7}, NO_SUCH},
    {NETDAM_ADMIN_PEER_CLOSE, {UINT64_C(1) << 32}, NO_SUCH},
    /* address, address, family, MAC */
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 4, 0}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 4, UINT64_C(0x010000000001)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 4, UINT64_C(0xffffffffffff)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 4, UINT64_C(0x1020000000001)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 4 | PORT, UINT64_C(0x020000000001)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0x0a000003, 0, 7, UINT64_C(0x020000000001)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0, 0, 4, UINT64_C(0x020000000001)}, BAD},
    {NETDAM_ADMIN_NEIGHBOUR_SET, {0, 0, 6, UINT64_C(0x020000000001)}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {0, 0, 0}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {0x100 | NETDAM_OP_READ, 0, 0}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {NETDAM_OP_READ, 0x100, 0}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {NETDAM_OP_READ, 0, 0x100}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {NETDAM_OP_READ, NETDAM_ALU_SUM, 0}, BAD},
    {NETDAM_ADMIN_OPCODE_QUERY, {NETDAM_OP_REDUCE, NETDAM_ALU_AND, NETDAM_TYPE_F32}, BAD},
    {NETDAM_ADMIN_STEERING_SET, {0, NETDAM_STEERING_DEFAULT, 0}, BAD}, /* no RAW queue pair */
    {NETDAM_ADMIN_STEERING_SET, {1, NETDAM_STEERING_DEFAULT, 0}, NO_SUCH},
    {NETDAM_ADMIN_STEERING_SET, {UINT64_MAX, NETDAM_STEERING_DEFAULT, 0}, NO_SUCH},
};

static void bad_arguments_are_refused_and_change_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        const struct command *c = &commands[i];
        static uint8_t memory[1 << 20];
        struct ndtest_queue queue;
        uint64_t results[NETDAM_ADMIN_RESULTS], errors;
        enum netdam_admin_status status;

        begin();
        unit_region(&u, 0, 64, 0, UNIT_KEY);
        assert_int_equal(ndtest_queue_create(&queue, &u.node, 0x1000, 4, 0x2000, 4, 0, u.now_ns), OK);
        unit_peer(&u, 4, 0);
        memcpy(memory, u.node.memory, sizeof(memory));
        errors = unit_counter(&u, NETDAM_COUNTER_ADMIN_ERRORS);
        memset(results, 0xff, sizeof(results));
        status = unit_admin(&u, (enum netdam_admin)c->command, c->args, 8, results);
        if (status != c->status) {
            fail_msg("command %u of row %zu: status %u, expected %u", c->command, i, (unsigned)status,
                     (unsigned)c->status);
        }
        assert_true(unit_counter(&u, NETDAM_COUNTER_ADMIN_ERRORS) == errors + 1);
        assert_int_equal(READ(NETDAM_REG_ADMIN_COMMAND, 4), c->command);
        for (unsigned k = 0; k < NETDAM_ADMIN_RESULTS; k++) {
            assert_true(results[k] == 0);
        }
        assert_memory_equal(memory, u.node.memory, sizeof(memory));
        /* The next of each kind gets the next place: none was used up. */
        assert_int_equal(unit_region(&u, 64, 64, 0, 0), 1);
        assert_int_equal(unit_peer(&u, 4, 0), 1);
        assert_int_equal(ndtest_queue_create(&queue, &u.node, 0x1480, 4, 0x2280, 4, 0, u.now_ns), OK);
        assert_int_equal(queue.id, 1);
        unit_stop(&u);
    }
}

static void regions_and_rings_may_end_where_memory_ends(void **state)
{
    struct netdam_fw_config config = config_of_registers();
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    config.memory_bytes = 16 * MEMORY;
    unit_start(&u, 0, &config);
    for (unsigned log2 = NETDAM_RING_LOG2_MIN; log2 <= NETDAM_RING_LOG2_MAX; log2 += NETDAM_RING_LOG2_MAX - 1) {
        uint64_t sq_bytes = netdam_ring_bytes(log2, 64), cq_bytes = netdam_ring_bytes(log2, 32);
        uint64_t args[] = {config.memory_bytes - sq_bytes, log2, 0, log2, 5 * MEMORY, log2, NONE, 0};
        uint64_t id;

        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), OK);
        id = results[0];
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_DESTROY, &id, 1, NULL), OK);
        args[0] = 0;
        args[2] = config.memory_bytes - cq_bytes;
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), OK);
        id = results[0];
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_DESTROY, &id, 1, NULL), OK);
        args[0] += 64; /* beside the others, and one too far */
        args[2] += 64;
        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), BAD);
    }
    unit_region(&u, config.memory_bytes - 8, 8, NETDAM_PERMISSION_ALL, 0);
    unit_region(&u, 0, config.memory_bytes, NETDAM_PERMISSION_ALL, 0);
    unit_stop(&u);
}

static void tables_that_are_full_say_so_and_have_room_again(void **state)
{
    uint64_t args[4] = {0}, results[NETDAM_ADMIN_RESULTS];
    struct ndtest_queue queue;

    (void)state;
    begin();
    for (unsigned i = 0; i < 9; i++) {
        assert_int_equal(unit_region(&u, 64 * i, 64, 0, 0), i);
    }
    args[1] = 64;
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_CREATE, args, 4, results), NETDAM_ADMIN_STATUS_NO_SPACE);
    assert_int_equal(ndtest_region_destroy(&u.node, 4, u.now_ns), OK);
    assert_int_equal(unit_region(&u, 0, 64, 0, 0), 4);
    for (unsigned i = 0; i < 7; i++) {
        assert_int_equal(unit_peer(&u, 4, 0), i);
    }
    args[0] = 0x0a000002;
    args[1] = 0;
    args[2] = 4 | PORT;
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_NO_SPACE);
    assert_int_equal(ndtest_peer_close(&u.node, 3, u.now_ns), OK);
    assert_int_equal(unit_peer(&u, 4, 0), 3);
    for (unsigned i = 0; i <= 6; i++) {
        assert_int_equal(
            ndtest_queue_create(&queue, &u.node, 0x10000 * (1 + i), 4, 0x10000 * (1 + i) + 0x8000, 4, 0, u.now_ns),
            i < 6 ? OK : NETDAM_ADMIN_STATUS_NO_SPACE);
    }
    queue.id = 2;
    assert_int_equal(ndtest_queue_destroy(&queue, u.now_ns), OK);
    assert_int_equal(ndtest_queue_create(&queue, &u.node, 0x70000, 4, 0x78000, 4, 0, u.now_ns), OK);
    assert_int_equal(queue.id, 2);
    for (unsigned i = 0; i <= 64; i++) { /* one neighbour is there */
        uint64_t neighbour[] = {0x0a000100 + i, 0, 4, 2 + (UINT64_C(2) << 40)};

        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_NEIGHBOUR_SET, neighbour, 4, NULL),
                         i < 63 ? OK : NETDAM_ADMIN_STATUS_NO_SPACE);
    }
    unit_stop(&u);
}

static void keys_are_drawn_different_and_never_zero(void **state)
{
    uint64_t keys[9];

    (void)state;
    begin();
    for (unsigned i = 0; i < 9; i++) {
        uint32_t index;

        assert_int_equal(ndtest_region_create(&u.node, 0, 8, 0, 0, u.now_ns, &index, &keys[i]), OK);
        assert_true(keys[i] != 0);
        for (unsigned k = 0; k < i; k++) {
            assert_true(keys[i] != keys[k]);
        }
    }
    /* A key that was given back may be given again. */
    assert_int_equal(ndtest_region_destroy(&u.node, 5, u.now_ns), OK);
    assert_int_equal(unit_region(&u, 0, 8, 0, keys[5]), 5);
    unit_stop(&u);
}

/* What `draw` gives: each value twice, 0 first. */
static uint64_t drawn;

static void draw(void *opaque, struct ndtest_node *node, void *buffer, size_t bytes)
{
    uint64_t value = drawn++ / 2;

    (void)opaque;
    (void)node;
    assert_int_equal(bytes, sizeof(value));
    memcpy(buffer, &value, sizeof(value));
}

static void what_was_drawn_already_is_drawn_again(void **state)
{
    uint64_t results[NETDAM_ADMIN_RESULTS], key;
    uint32_t index;

    (void)state;
    begin();
    u.node.hooks.entropy = draw;
    drawn = 0;
    assert_int_equal(ndtest_region_create(&u.node, 0, 8, 0, 0, u.now_ns, &index, &key), OK);
    assert_true(key == 1);
    drawn = 0;
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t args[] = {0x10000 * i + 0x10000, 2, 0x10000 * i + 0x14000, 2, 0x10000 * i + 0x18000, 2, NONE, 0};

        assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), OK);
        assert_true(results[1] == i + 1);
    }
    unit_stop(&u);
}

static void a_family_that_the_node_has_not_is_refused(void **state)
{
    struct netdam_fw_config config = config_of_registers();
    const uint64_t v4[] = {0x0a000002, 0, 4 | PORT}, v6[] = {V6, 2, 6 | PORT};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    memset(config.ipv6, 0, 16);
    unit_start(&u, 0, &config);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, v6, 3, results), BAD);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, v4, 3, results), OK);
    unit_stop(&u);
    config = config_of_registers();
    memset(config.ipv4, 0, 4);
    unit_start(&u, 0, &config);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, v4, 3, results), BAD);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_PEER_OPEN, v6, 3, results), OK);
    unit_stop(&u);
}

static void opcode_query_tells_for_every_combination(void **state)
{
    unsigned executed = 0;

    (void)state;
    begin();
    for (uint64_t op = 0; op <= UINT8_MAX; op++) {
        for (uint64_t alu = 0; alu <= 9; alu++) {
            for (uint64_t type = 0; type <= 13; type++) {
                uint64_t args[] = {op, alu, type}, results[NETDAM_ADMIN_RESULTS];
                int algebra = netdam_algebra((unsigned)op, (unsigned)alu, (unsigned)type);
                enum netdam_admin_status status = unit_admin(&u, NETDAM_ADMIN_OPCODE_QUERY, args, 3, results);
                bool runs = unit_is_executed((unsigned)op, (unsigned)alu, (unsigned)type) ||
                            (netdam_op_flags((unsigned)op) & NETDAM_OPF_DEVICE) != 0;

                assert_int_equal(status, algebra >= 0 ? OK : BAD);
                assert_true(results[0] == (algebra >= 0 && runs));
                assert_true(results[1] == (uint64_t)(algebra >= 0 ? algebra : 0));
                executed += results[0] != 0;
            }
        }
    }
    assert_int_equal(executed, 13 + 3 * 8 + (8 * 8 + 4 * 4) + 4 * (8 * 7 + 4 * 4));
    unit_stop(&u);
}

static void a_refusal_leaves_no_results_of_the_command_before(void **state)
{
    const uint64_t good[] = {NETDAM_OP_READ, 0, 0}, bad[] = {0, 0, 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    begin();
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_OPCODE_QUERY, good, 3, results), OK);
    assert_int_equal(results[1], NETDAM_ALG_LATTICE);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_OPCODE_QUERY, bad, 3, results), BAD);
    assert_true((results[0] | results[1] | results[2] | results[3]) == 0);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_register_reads_as_its_list_says_whole_and_in_halves),
        cmocka_unit_test(every_other_read_is_counted_and_yields_ones),
        cmocka_unit_test(every_other_write_is_counted_and_changes_nothing),
        cmocka_unit_test(arguments_can_be_written_whole_and_in_halves),
        cmocka_unit_test(control_asks_for_a_reset_and_knows_no_other_bit),
        cmocka_unit_test(doorbells_wake_and_read_as_zero),
        cmocka_unit_test(the_page_of_counters_shows_each_and_takes_no_write),
        cmocka_unit_test(the_platform_tells_of_link_and_main_memory),
        cmocka_unit_test(bad_arguments_are_refused_and_change_nothing),
        cmocka_unit_test(regions_and_rings_may_end_where_memory_ends),
        cmocka_unit_test(tables_that_are_full_say_so_and_have_room_again),
        cmocka_unit_test(keys_are_drawn_different_and_never_zero),
        cmocka_unit_test(what_was_drawn_already_is_drawn_again),
        cmocka_unit_test(a_family_that_the_node_has_not_is_refused),
        cmocka_unit_test(opcode_query_tells_for_every_combination),
        cmocka_unit_test(a_refusal_leaves_no_results_of_the_command_before),
    };

    return cmocka_run_group_tests_name("registers", tests, NULL, NULL);
}
