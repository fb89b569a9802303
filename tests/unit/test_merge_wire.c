/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two pairs of nodes, one that merges and one that does not, carry out the same random programs over wires that lose,
 * double, delay and reorder. Whatever order the programs leave open, what they leave in memory is one thing, and so are
 * their completions.
 */
#include <stdio.h>

#include "ndtest_wire.h"
#include "unit.h"

#define START_NS   (UINT64_C(1000) * UNIT_MS)
#define ROUNDS     2000u
#define PROGRAM    48u
#define LOG2       6u
#define SOURCE     UINT64_C(0x20000)
#define SOURCE_ROW UINT64_C(0x800)
#define TARGET     UINT64_C(0x20000)
#define WRITTEN    2048u /* bytes that WRITEs fill, from the target's start */
#define RANGES     4u    /* of REDUCEs, behind them */
#define RANGE      256u
#define TAIL       (WRITTEN + RANGES * RANGE) /* what WRITEs fill that go beyond the end */
#define TARGET_END (TAIL + 24)
#define KEY        UINT64_C(0x1234567890abcdef)

/* Descriptors, their sources, and what they are to leave. */
struct program {
    struct netdam_descriptor descriptors[PROGRAM];
    uint8_t sources[PROGRAM][SOURCE_ROW];
    uint8_t expected[TARGET_END];
    enum netdam_status statuses[PROGRAM];
    unsigned count;
};

struct pair {
    struct ndtest_wire wire;
    struct ndtest_node nodes[2];
    struct ndtest_queue queue;
    uint32_t region;
    uint32_t peer;
};

static struct pair pairs[2]; /* the second one merges */
static struct program program;
static struct ndtest_random dice;

static uint32_t draw(uint32_t limit)
{
    return (uint32_t)ndtest_random_below(&dice, limit);
}

static void start_pair(struct pair *pair, bool merging, uint64_t seed)
{
    struct ndtest_hooks hooks = {0};

    memset(pair, 0, sizeof(*pair));
    ndtest_wire_init(&pair->wire, seed, START_NS);
    pair->wire.weather = (struct ndtest_weather){
        .drop = 40000,
        .duplicate = 60000,
        .late = 30000,
        .port_full = 20000,
        .latency_ns = 5000,
        .jitter_ns = 8000,
        .late_ns = 3 * UNIT_MS,
    };
    ndtest_wire_port(&pair->wire, &hooks);
    for (unsigned i = 0; i < 2; i++) {
        struct netdam_fw_config config = unit_config(i);
        const char *error;

        config.no_merge = !merging;
        config.cpu_features = 0;
        config.rto_initial_ns = config.rto_min_ns = 100000;
        config.rto_max_ns = UNIT_MS;
        config.retries = 40;
        assert_true(ndtest_node_init(&pair->nodes[i], netdam_fw_entry(), &config, &hooks, seed + i, &error));
        memset(pair->nodes[i].memory, 0, config.memory_bytes);
        ndtest_wire_add(&pair->wire, &pair->nodes[i]);
        ndtest_node_start(&pair->nodes[i], START_NS);
    }
    assert_int_equal(ndtest_region_create(&pair->nodes[0], SOURCE, PROGRAM * SOURCE_ROW, NETDAM_PERMISSION_LOCAL_READ,
                                          0, START_NS, &pair->region, &(uint64_t){0}),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ndtest_region_create(&pair->nodes[1], TARGET, TARGET_END,
                                          NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU, KEY, START_NS,
                                          &(uint32_t){0}, &(uint64_t){0}),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ndtest_peer_open(&pair->nodes[0], &pair->nodes[1], 4, START_NS, &pair->peer),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(ndtest_queue_create(&pair->queue, &pair->nodes[0], 0x1000, LOG2, 0x4000, LOG2, 0, START_NS),
                     NETDAM_ADMIN_STATUS_OK);
}

static struct netdam_descriptor *add(unsigned opcode, uint64_t address, uint32_t length)
{
    struct netdam_descriptor *d = &program.descriptors[program.count];
    uint8_t *source = program.sources[program.count];

    *d = (struct netdam_descriptor){
        .opcode = (uint8_t)opcode,
        .user_data = program.count,
        .length = length,
        .remote_key = KEY,
        .remote_address = address,
        .u.buffer.local_address = program.count * SOURCE_ROW + draw(9),
    };
    ndtest_random_fill(&dice, source, SOURCE_ROW);
    program.statuses[program.count++] = address + length > TARGET_END ? NETDAM_STATUS_BAD_RANGE : NETDAM_STATUS_OK;
    return d;
}

static const uint8_t *source_of(const struct netdam_descriptor *d)
{
    return program.sources[d->user_data] + d->u.buffer.local_address % SOURCE_ROW;
}

/* A run of adjacent WRITEs, upwards or downwards; bytes that were written since the last fence are left alone. */
static void add_writes(uint32_t *fresh)
{
    unsigned count = 1 + draw(12);
    uint32_t at = *fresh, lengths[12], bytes = 0;
    bool down = draw(3) == 0;

    for (unsigned i = 0; i < count; i++) {
        lengths[i] = draw(8) == 0 ? draw(300) : 1 + draw(24);
        bytes += lengths[i];
    }
    if (at + bytes > WRITTEN) {
        return;
    }
    *fresh += bytes + draw(2);
    at += down ? bytes : 0;
    for (unsigned i = 0; i < count && program.count < PROGRAM; i++) {
        at -= down ? lengths[i] : 0;
        memcpy(program.expected + at, source_of(add(NETDAM_OP_WRITE, at, lengths[i])), lengths[i]);
        at += down ? 0 : lengths[i];
    }
}

/* Of one operation and type for each range: they commute. */
static void add_reductions(const uint8_t *operations, const uint8_t *types)
{
    unsigned range = draw(RANGES), count = 1 + draw(6);
    uint32_t element = netdam_type_bytes(types[range]);
    uint32_t length = RANGE, at = 0;

    if (draw(4) == 0) {
        at = element * draw(16);
        length = element * draw(17);
    }
    for (unsigned i = 0; i < count && program.count < PROGRAM; i++) {
        uint64_t address = WRITTEN + range * RANGE + at;
        struct netdam_descriptor *d = add(NETDAM_OP_REDUCE, address, length);

        d->operation = operations[range];
        d->type = types[range];
        for (uint32_t n = 0; n < length; n += element) {
            uint64_t value = 0, operand = 0;

            memcpy(&value, program.expected + address + n, element);
            memcpy(&operand, source_of(d) + n, element);
            value = ndfw_alu_apply(value, operand, d->operation, d->type);
            memcpy(program.expected + address + n, &value, element);
        }
    }
}

/* A run of WRITEs of which the last go beyond the region's end. */
static void add_beyond(void)
{
    for (uint64_t at = TAIL; at < TARGET_END + 24 && program.count < PROGRAM; at += 8) {
        struct netdam_descriptor *d = add(NETDAM_OP_WRITE, at, 8);

        if (at < TARGET_END) {
            memcpy(program.expected + at, source_of(d), 8);
        }
    }
}

static void draw_program(void)
{
    static const uint8_t choices[] = {NETDAM_ALU_SUM, NETDAM_ALU_PRODUCT, NETDAM_ALU_MIN, NETDAM_ALU_MAX,
                                      NETDAM_ALU_AND, NETDAM_ALU_OR,      NETDAM_ALU_XOR, NETDAM_ALU_SUM_SATURATING};
    uint8_t operations[RANGES], types[RANGES];
    uint32_t fresh = draw(16);
    bool fence = false, tail = false;

    program.count = 0;
    for (unsigned i = 0; i < RANGES; i++) {
        do {
            operations[i] = choices[draw(ARRAY_SIZE(choices))];
            types[i] = (uint8_t)(1 + draw(12));
        } while (netdam_algebra(NETDAM_OP_REDUCE, operations[i], types[i]) < 0 ||
                 (netdam_algebra(NETDAM_OP_REDUCE, operations[i], types[i]) & (int)NETDAM_ALG_GROUP) !=
                     (int)NETDAM_ALG_GROUP);
    }
    while (program.count < PROGRAM) {
        uint32_t before = program.count, kind = draw(8);

        if (draw(6) == 0) { /* what follows may write what was written before */
            fence = true;
            tail = false;
            fresh = draw(16);
        }
        if (kind == 0 && !tail) {
            add_beyond();
            tail = true;
        } else if (kind < 4) {
            add_reductions(operations, types);
        } else {
            add_writes(&fresh);
        }
        if (fence && program.count != before) {
            program.descriptors[before].flags = NETDAM_DESCRIPTOR_FENCE;
            fence = false;
        }
    }
}

static void carry_out(struct pair *pair)
{
    uint8_t seen[PROGRAM] = {0};
    unsigned posted = 0, done = 0, steps = 0;

    for (unsigned i = 0; i < program.count; i++) {
        memcpy(pair->nodes[0].memory + SOURCE + i * SOURCE_ROW, program.sources[i], SOURCE_ROW);
    }
    while (done < program.count) {
        struct netdam_completion c;
        unsigned action;

        for (uint32_t some = draw(20); posted < program.count && some > 0; some--) {
            struct netdam_descriptor d = program.descriptors[posted++];

            d.peer = pair->peer;
            d.local_region = pair->region;
            assert_true(ndtest_queue_post(&pair->queue, &d, pair->wire.now_ns, &action));
        }
        ndtest_wire_wake(&pair->wire, 0);
        for (unsigned step = 0; step < 20 && ndtest_wire_step(&pair->wire); step++) {
            assert_true(steps++ < 1000000);
        }
        while (ndtest_queue_poll(&pair->queue, &c)) {
            assert_true(c.user_data < program.count && seen[c.user_data]++ == 0);
            assert_int_equal(c.status, program.statuses[c.user_data]);
            assert_int_equal(c.length, c.status == NETDAM_STATUS_OK ? program.descriptors[c.user_data].length : 0);
            done++;
        }
    }
    assert_memory_equal(pair->nodes[1].memory + TARGET, program.expected, TARGET_END);
}

static void merging_changes_nothing_but_the_number_of_packets(void **state)
{
    const char *chosen = getenv("MERGE_SEED");
    uint64_t seed = chosen != NULL ? strtoull(chosen, NULL, 0) : 1;
    uint64_t frames[2];

    (void)state;
    print_message("# seed %llu (MERGE_SEED)\n", (unsigned long long)seed);
    dice.state = seed;
    for (unsigned i = 0; i < 2; i++) {
        start_pair(&pairs[i], i == 1, seed + i);
    }
    memset(program.expected, 0, sizeof(program.expected));
    for (unsigned round = 0; round < ROUNDS; round++) {
        draw_program();
        for (unsigned i = 0; i < 2; i++) {
            carry_out(&pairs[i]);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        struct pair *pair = &pairs[i];

        frames[i] = ndtest_node_counter(&pair->nodes[0], NETDAM_COUNTER_TX_FRAMES);
        assert_true((ndtest_node_counter(&pair->nodes[0], NETDAM_COUNTER_MERGED) != 0) == (i == 1));
        assert_true(ndtest_node_counter(&pair->nodes[0], NETDAM_COUNTER_RETRANSMISSIONS) != 0);
        assert_true(ndtest_node_counter(&pair->nodes[0], NETDAM_COUNTER_DESCRIPTORS) == ROUNDS * PROGRAM);
        for (unsigned n = 0; n < 2; n++) {
            assert_true(ndtest_node_guards_intact(&pair->nodes[n]));
            ndtest_node_fini(&pair->nodes[n]);
        }
        ndtest_wire_fini(&pair->wire);
    }
    print_message("# frames sent: %llu without merging, %llu with\n", (unsigned long long)frames[0],
                  (unsigned long long)frames[1]);
    assert_true(frames[1] < frames[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merging_changes_nothing_but_the_number_of_packets),
    };

    return cmocka_run_group_tests_name("merge_wire", tests, NULL, NULL);
}
