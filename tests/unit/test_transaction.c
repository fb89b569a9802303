/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions at the node: all or nothing, refusals that name the entry, the same bytes again, room for them. */
#include "entries.h"

#include <stdio.h>

#define BASE   0x4008u
#define LENGTH 0x1003u
#define G      UNIT_GENERATION
#define OTHER  UINT64_C(0xabcdef0123456789)

/* Keys of regions that permit one thing only. */
#define KEY_READ  UINT64_C(0x7ead)
#define KEY_WRITE UINT64_C(0x3717e)
#define KEY_NONE  UINT64_C(0x404)

static struct unit u;
static struct entries e;

static void start(const struct netdam_fw_config *config)
{
    unit_start(&u, 1, config);
    unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_region(&u, 0x8000, 64, NETDAM_PERMISSION_ALL & ~(uint32_t)NETDAM_PERMISSION_REMOTE_WRITE, KEY_READ);
    unit_region(&u, 0x8040, 64, NETDAM_PERMISSION_ALL & ~(uint32_t)NETDAM_PERMISSION_REMOTE_READ, KEY_WRITE);
    unit_memory_pattern(&u, BASE - 8, LENGTH + 16, 5);
    e.length = 0;
}

static struct unit_request request(uint64_t context, uint64_t number, uint16_t distance)
{
    struct unit_request r = {
        .opcode = NETDAM_OP_TRANSACTION,
        .context = context,
        .number = number,
        .distance = distance,
        .length = e.length,
        .payload_length = e.length,
        .generation = G,
        .payload = e.bytes,
    };

    return r;
}

static void ask(uint64_t number, uint16_t distance, struct ndtest_packet *answer)
{
    struct unit_request r = request(0, number, distance);

    unit_ask(&u, &r, answer);
    assert_int_equal(answer->opcode, NETDAM_OP_TRANSACTION);
    assert_true(answer->status == NETDAM_STATUS_OK ? answer->length == answer->payload_bytes
                                                   : answer->payload_bytes == 0);
}

static void expect(uint64_t number, uint16_t distance, enum netdam_status status, uint32_t length)
{
    struct ndtest_packet answer;

    ask(number, distance, &answer);
    if (answer.status != status || answer.length != length) {
        fail_msg("status %#x length %u, expected %#x and %u", answer.status, answer.length, (unsigned)status, length);
    }
}

static uint8_t *memory(uint64_t address)
{
    return u.node.memory + BASE + address;
}

static uint64_t replies_bytes(void)
{
    return unit_counter(&u, NETDAM_COUNTER_LANE_BYTES) -
           unit_counter(&u, NETDAM_COUNTER_LANES) * sizeof(struct ndfw_lane) -
           unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS) * sizeof(struct ndfw_window);
}

static void confirm(uint64_t floor)
{
    struct unit_request r = {.opcode = NETDAM_OP_CONFIRM, .number = floor, .generation = G};
    struct ndtest_packet answer;

    unit_ask(&u, &r, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_OK);
}

static void compares_then_fetches_then_writes_whatever_the_order_of_the_list(void **state)
{
    uint8_t before[64];
    struct ndtest_packet answer;

    (void)state;
    start(NULL);
    memcpy(before, memory(0), sizeof(before));
    entries_add(&e, WRITE, 3, 10, "0123456789");
    entries_add(&e, FETCH, 0, 5, NULL);
    entries_add(&e, COMPARE, 2, 9, before + 2); /* what the first entry writes to */
    entries_add(&e, WRITE, 5, 3, "xyz");        /* over the first */
    entries_add(&e, FETCH, 4, 4, NULL);
    entries_add(&e, FETCH, 4, 0, NULL);
    entries_add(&e, WRITE, 40, 0, NULL);
    entries_add(&e, COMPARE, 41, 0, NULL);
    ask(7, 0, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_OK);
    assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, 0);
    assert_int_equal(answer.payload_bytes, 9);
    assert_memory_equal(answer.payload, before, 5);
    assert_memory_equal(answer.payload + 5, before + 4, 4);
    memcpy(before + 3, "01xyz56789", 10);
    assert_memory_equal(memory(0), before, sizeof(before));
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REFUSED), 0);
    unit_stop(&u);
}

static void compares_see_every_byte_at_every_alignment(void **state)
{
    uint8_t data[160];

    (void)state;
    for (uint32_t address = 0; address < 8; address++) {
        for (uint32_t bytes = 0; bytes < 150; bytes += bytes < 20 ? 1 : 13) {
            start(NULL);
            for (uint32_t wrong = 0; wrong <= bytes; wrong++) { /* the last round: none */
                memcpy(data, memory(address), bytes);
                data[wrong] ^= 0x40;
                e.length = 0;
                entries_add(&e, COMPARE, address, bytes, data);
                expect(1 + wrong, 0, wrong < bytes ? NETDAM_STATUS_COMPARE_FAILED : NETDAM_STATUS_OK, 0);
            }
            unit_stop(&u);
        }
    }
}

static void refusals_of_form_leave_no_trace(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(entries_flaws); i++) {
        static uint8_t before[LENGTH];
        struct ndtest_packet answer;
        uint32_t length;

        start(NULL);
        memcpy(before, memory(0), LENGTH);
        entries_base(&e, before);
        length = e.length;
        entries_flaws[i].make(&e);
        ask(3, 0, &answer);
        if (answer.status != NETDAM_STATUS_BAD_LENGTH || answer.length != 0) {
            fail_msg("%s: status %#x length %u", entries_flaws[i].what, answer.status, answer.length);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
        assert_memory_equal(memory(0), before, LENGTH);
        entries_base(&e, before); /* the number was not consumed */
        assert_int_equal(e.length, length);
        expect(3, 0, NETDAM_STATUS_OK, 8);
        assert_memory_equal(memory(64), "abc", 3);
        unit_stop(&u);
    }
}

static void a_length_that_contradicts_the_payload_is_refused(void **state)
{
    (void)state;
    start(NULL);
    for (int by = -8; by <= 8; by += 8) {
        struct ndtest_packet answer;
        struct unit_request r;

        entries_base(&e, memory(0));
        r = request(0, 1, 0);
        r.length = (uint32_t)((int)r.length + by);
        unit_ask(&u, &r, &answer);
        assert_int_equal(answer.status, by == 0 ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_LENGTH);
    }
    unit_stop(&u);
}

/* Nothing a list claims of itself leads beyond its frame: each frame is its own allocation, a sanitizer watches. */
static void hostile_lists_do_no_harm(void **state)
{
    struct ndtest_random random = {4711};
    unsigned executed = 0;

    (void)state;
    start(NULL);
    for (unsigned round = 0; round < 20000; round++) {
        struct ndtest_packet answer;
        struct unit_request r;

        e.length = 0;
        for (uint64_t n = ndtest_random_below(&random, 18); n > 0; n--) {
            unsigned kind = 1 + (unsigned)ndtest_random_below(&random, 3);

            entries_add(&e, kind, ndtest_random_below(&random, 64), (uint32_t)ndtest_random_below(&random, 12),
                        memory(0));
        }
        for (uint64_t n = ndtest_random_below(&random, 3); n > 0 && e.length != 0; n--) {
            uint64_t at = ndtest_random_below(&random, e.length);

            if (ndtest_random_below(&random, 2) != 0) {
                e.bytes[at] = (uint8_t)ndtest_random_below(&random, 256);
            } else {
                entries_put(e.bytes + at, UINT64_MAX << ndtest_random_below(&random, 64), 8);
            }
        }
        if (ndtest_random_below(&random, 4) == 0) {
            e.length = (uint32_t)ndtest_random_below(&random, e.length + 1);
        }
        r = request(0, round + 1, 0);
        u.now_ns += UNIT_MS; /* refusals are not limited at this rate */
        unit_ask(&u, &r, &answer);
        assert_true(answer.payload_bytes <= NETDAM_TRANSACTION_FETCH_MAX && answer.length <= 128);
        executed += answer.status == NETDAM_STATUS_OK;
    }
    assert_true(executed > 100 && executed < 15000);
    unit_stop(&u);
}

static void every_entry_is_checked_before_anything_is_done_and_the_first_that_fails_is_named(void **state)
{
    static const struct {
        const char *what;
        unsigned kind;
        uint64_t key, address;
        uint32_t length;
        enum netdam_status status;
    } rows[] = {
        {"compare, key", COMPARE, KEY_NONE, 0, 8, NETDAM_STATUS_BAD_KEY},
        {"fetch, key", FETCH, KEY_NONE, 0, 8, NETDAM_STATUS_BAD_KEY},
        {"write, key", WRITE, KEY_NONE, 0, 0, NETDAM_STATUS_BAD_KEY},
        {"compare, range", COMPARE, UNIT_KEY, LENGTH - 7, 8, NETDAM_STATUS_BAD_RANGE},
        {"fetch, range", FETCH, UNIT_KEY, LENGTH, 1, NETDAM_STATUS_BAD_RANGE},
        {"write, range", WRITE, UNIT_KEY, LENGTH - 2, 3, NETDAM_STATUS_BAD_RANGE},
        {"write, range wraps", WRITE, UNIT_KEY, UINT64_MAX - 3, 8, NETDAM_STATUS_BAD_RANGE},
        {"nothing, beyond the end", FETCH, UNIT_KEY, LENGTH + 1, 0, NETDAM_STATUS_BAD_RANGE},
        {"compare, permission", COMPARE, KEY_WRITE, 0, 8, NETDAM_STATUS_NO_PERMISSION},
        {"fetch, permission", FETCH, KEY_WRITE, 0, 8, NETDAM_STATUS_NO_PERMISSION},
        {"write, permission", WRITE, KEY_READ, 0, 8, NETDAM_STATUS_NO_PERMISSION},
        {"compare", COMPARE, UNIT_KEY, 8, 8, NETDAM_STATUS_COMPARE_FAILED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (uint32_t place = 0; place < 16; place += 5) {
            static uint8_t before[LENGTH];
            struct ndtest_packet answer;

            start(NULL);
            memcpy(before, memory(0), LENGTH);
            for (uint32_t k = 0; k < 16; k++) {
                if (k == place) {
                    entries_add_key(&e, rows[i].kind, rows[i].key, rows[i].address, rows[i].length, NULL);
                } else if (k > place && k % 3 == 0) { /* it fails too, but later */
                    entries_add(&e, COMPARE, 0, 4, NULL);
                } else {
                    entries_add(&e, k % 3 == 1 ? FETCH : WRITE, 2 * k, 2, "??");
                }
            }
            for (unsigned copy = 0; copy < 3; copy++) {
                ask(9, 0, &answer);
                if (answer.status != rows[i].status || answer.length != place) {
                    fail_msg("%s at %u: status %#x length %u", rows[i].what, place, answer.status, answer.length);
                }
                assert_int_equal((answer.flags & NETDAM_FLAG_AGAIN) != 0, copy != 0);
                assert_memory_equal(memory(0), before, LENGTH);
                unit_region(&u, 0x8080 + 64 * copy, 64, NETDAM_PERMISSION_ALL, copy == 0 ? KEY_NONE : 0);
                memset(memory(8), 0, 8); /* what was refused stays refused, though it would hold now */
                memcpy(before, memory(0), LENGTH);
            }
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 1);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REPEATED), 2);
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REFUSED), 3);
            assert_int_equal(replies_bytes(), 0);
            unit_stop(&u);
        }
    }
}

static void a_key_counts_before_a_compare_and_a_permission_suffices(void **state)
{
    (void)state;
    start(NULL);
    entries_add(&e, COMPARE, 0, 4, NULL); /* does not hold */
    entries_add(&e, FETCH, LENGTH, 1, NULL);
    entries_add_key(&e, WRITE, KEY_NONE, 0, 8, NULL);
    expect(1, 0, NETDAM_STATUS_BAD_RANGE, 1);
    e.length = 0;
    entries_add_key(&e, COMPARE, KEY_READ, 0, 8, NULL);
    entries_add_key(&e, FETCH, KEY_READ, 0, 8, NULL);
    entries_add_key(&e, WRITE, KEY_WRITE, 56, 8, "written!");
    expect(2, 0, NETDAM_STATUS_OK, 8);
    assert_memory_equal(u.node.memory + 0x8040 + 56, "written!", 8);
    unit_stop(&u);
}

static void as_much_as_is_allowed_is_done(void **state)
{
    struct ndtest_packet answer;
    uint8_t before[128];

    (void)state;
    start(NULL);
    memcpy(before, memory(0), sizeof(before));
    for (unsigned i = 0; i < 16; i++) {
        entries_add(&e, FETCH, 8 * i, 8, NULL);
    }
    ask(1, 0, &answer);
    assert_int_equal(answer.payload_bytes, 128);
    assert_memory_equal(answer.payload, before, 128);
    e.length = 0;
    entries_add(&e, FETCH, 0, 128, NULL);
    entries_add(&e, WRITE, 0, 1400 - 48, memory(1400));
    assert_int_equal(e.length, 1400);
    ask(2, 0, &answer);
    assert_memory_equal(answer.payload, before, 128);
    assert_memory_equal(memory(0), memory(1400), 1400 - 48);
    unit_stop(&u);
}

static void flags_are_those_of_an_operation_that_returns_something(void **state)
{
    static const struct {
        uint16_t flags;
        enum netdam_status status;
    } rows[] = {
        {NETDAM_FLAG_RELAXED, NETDAM_STATUS_BAD_FLAGS},
        {NETDAM_FLAG_REPRODUCIBLE, NETDAM_STATUS_OK},
        {NETDAM_FLAG_ORDERED, NETDAM_STATUS_OK},
        {NETDAM_FLAG_AGAIN, NETDAM_STATUS_OK},
    };

    (void)state;
    start(NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct ndtest_packet answer;
        struct unit_request r;

        entries_base(&e, memory(0));
        r = request(0, 1 + i, 0);
        r.flags = rows[i].flags;
        unit_ask(&u, &r, &answer);
        assert_int_equal(answer.status, rows[i].status);
    }
    unit_stop(&u);
}

static void a_repetition_is_answered_with_the_same_bytes(void **state)
{
    struct ndtest_packet answer;
    uint8_t kept[2][16];

    (void)state;
    start(NULL);
    for (unsigned i = 0; i < 2; i++) {
        e.length = 0;
        entries_add(&e, FETCH, 3 * i, 16, NULL);
        entries_add_word(&e, WRITE, 0, 0x1111 * (i + 1));
        ask(10 + i, (uint16_t)i, &answer);
        memcpy(kept[i], answer.payload, 16);
    }
    memset(memory(0), 0xee, 64);
    for (unsigned round = 0; round < 6; round++) {
        unsigned i = round % 2;

        e.length = 0;
        entries_add(&e, FETCH, 3 * i, round < 4 ? 16 : 2, NULL); /* even where it asks for something else */
        entries_add_word(&e, WRITE, 0, 0x1111);
        ask(10 + i, (uint16_t)i, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_true((answer.flags & NETDAM_FLAG_AGAIN) != 0);
        assert_int_equal(answer.payload_bytes, 16);
        assert_memory_equal(answer.payload, kept[i], 16);
        assert_int_equal(*memory(0), 0xee);
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_REPEATED), 6);
    assert_int_equal(replies_bytes(), 2 * sizeof(struct ndfw_reply));
    unit_stop(&u);
}

static void make_fetch(uint64_t value)
{
    e.length = 0;
    entries_add(&e, FETCH, 16, 8, NULL);
    entries_add_word(&e, WRITE, 16, value);
}

static void without_room_for_what_is_fetched_it_is_busy_and_nothing_happens(void **state)
{
    struct netdam_fw_config config = unit_config(1);
    struct ndtest_packet answer;

    (void)state;
    config.replies = 4; /* two for a context that is alone */
    start(&config);
    unit_memory_put(&u, BASE + 16, 8, 0);
    for (uint64_t i = 0; i < 2; i++) {
        make_fetch(i + 1);
        expect(20 + i, (uint16_t)i, NETDAM_STATUS_OK, 8);
        assert_int_equal(replies_bytes(), (i + 1) * sizeof(struct ndfw_reply));
    }
    for (unsigned copy = 0; copy < 2; copy++) {
        make_fetch(3);
        ask(22, 2, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_BUSY);
        assert_int_equal(answer.length, 0);
        assert_int_equal(answer.flags & NETDAM_FLAG_AGAIN, 0);
        assert_true(answer.generation == G && answer.floor == 20);
        assert_true(unit_memory_get(&u, BASE + 16, 8) == 2);
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BUSY), 2);
    make_fetch(9); /* known numbers are answered all the same */
    expect(20, 0, NETDAM_STATUS_OK, 8);
    e.length = 0; /* and so is what needs no room */
    entries_add_word(&e, COMPARE, 16, 2);
    entries_add_word(&e, WRITE, 24, 7);
    expect(23, 3, NETDAM_STATUS_OK, 0);
    make_fetch(4);
    entries_add_word(&e, COMPARE, 16, 99);
    expect(24, 4, NETDAM_STATUS_COMPARE_FAILED, 2);
    make_fetch(3); /* the floor passes one of the two */
    ask(22, 1, &answer);
    assert_int_equal(answer.status, NETDAM_STATUS_OK);
    assert_int_equal(answer.payload[0], 2);
    assert_int_equal(replies_bytes(), 2 * sizeof(struct ndfw_reply));
    make_fetch(5);
    expect(25, 4, NETDAM_STATUS_BUSY, 0);
    ask(21, 0, &answer); /* the other one is still there */
    assert_int_equal(answer.payload[0], 1);
    unit_stop(&u);
}

static void what_was_fetched_is_forgotten_when_the_floor_passes_it(void **state)
{
    static const struct {
        uint64_t number;
        uint16_t distance;
        uint32_t kept;
    } rows[] = {
        {100, 0, 1},
        {101, 1, 2},
        {102, 2, 3},
        {103, 3, 4},                                             /* four */
        {104, 3, 4},                                             /* 100 goes */
        {106, 2, 2},                                             /* 101 to 103 go */
        {106 + NETDAM_WINDOW_MAX - 1, NETDAM_WINDOW_MAX - 1, 2}, /* 104 goes */
        {106 + 3 * NETDAM_WINDOW_MAX, 1, 1},                     /* a whole window is passed over */
        {106 + 3 * NETDAM_WINDOW_MAX + 1, 1, 2},
    };
    struct netdam_fw_config config = unit_config(1);

    (void)state;
    config.replies = 8; /* four for a context that is alone */
    start(&config);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        make_fetch(i);
        expect(rows[i].number, rows[i].distance, NETDAM_STATUS_OK, 8);
        if (replies_bytes() != rows[i].kept * sizeof(struct ndfw_reply)) {
            fail_msg("row %zu: %llu bytes", i, (unsigned long long)replies_bytes());
        }
    }
    confirm(106 + 3 * NETDAM_WINDOW_MAX + 1); /* one stays unfinished, and the window with it */
    assert_int_equal(replies_bytes(), sizeof(struct ndfw_reply));
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 1);
    confirm(106 + 3 * NETDAM_WINDOW_MAX + 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES), 24);
    for (uint64_t i = 0; i < 4; i++) { /* all four places are there again */
        make_fetch(i);
        expect(9000 + i, (uint16_t)i, NETDAM_STATUS_OK, 8);
    }
    make_fetch(1);
    expect(9004, 4, NETDAM_STATUS_BUSY, 0);
    unit_stop(&u);
}

static void no_context_can_keep_others_from_fetching(void **state)
{
    /* Of 16, as many for each as are left free by all: 8, 4, 2, 1. */
    struct netdam_fw_config config = unit_config(1);

    (void)state;
    config.replies = 16;
    start(&config);
    make_fetch(1);
    for (uint64_t context = 1; context <= 4; context++) {
        for (uint16_t i = 0; i <= 16u >> context; i++) {
            struct unit_request r = request(context, 100 + i, i);
            struct ndtest_packet answer;

            unit_ask(&u, &r, &answer);
            assert_int_equal(answer.status, i == 16u >> context ? NETDAM_STATUS_BUSY : NETDAM_STATUS_OK);
        }
    }
    assert_int_equal(replies_bytes(), 15 * sizeof(struct ndfw_reply));
    unit_stop(&u);
}

static void lanes_do_not_disturb_one_another(void **state)
{
    struct ndtest_packet answer;
    struct unit_request r;

    (void)state;
    start(NULL);
    unit_memory_put(&u, BASE + 16, 8, 0);
    for (uint64_t i = 0; i < 12; i++) {
        make_fetch(i + 1);
        r = request(1 + i % 3, 50 + i / 3, (uint16_t)(i / 3));
        unit_ask(&u, &r, &answer);
        assert_int_equal(answer.payload[0], i);
    }
    make_fetch(0); /* the second context forgets all of its own */
    r = request(2, 54, 0);
    unit_ask(&u, &r, &answer);
    assert_int_equal(replies_bytes(), 9 * sizeof(struct ndfw_reply));
    for (uint64_t i = 0; i < 12; i++) {
        if (i % 3 != 1) {
            r = request(1 + i % 3, 50 + i / 3, (uint16_t)(i / 3));
            unit_ask(&u, &r, &answer);
            assert_true((answer.flags & NETDAM_FLAG_AGAIN) != 0);
            assert_int_equal(answer.payload[0], i);
        }
    }
    unit_stop(&u);
}

static void lanes_that_are_given_up_and_resets_free_what_was_fetched(void **state)
{
    struct netdam_fw_config config = unit_config(1);

    (void)state;
    config.replies = 1;
    start(&config);
    make_fetch(1);
    expect(5, 0, NETDAM_STATUS_OK, 8);
    unit_run_for(&u, UINT64_C(200000) * UNIT_MS);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_GIVEN_UP), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES), 0);
    u.fw->generation = G;
    expect(5, 0, NETDAM_STATUS_OK, 8);
    make_fetch(2);
    expect(6, 1, NETDAM_STATUS_BUSY, 0);
    ndtest_node_stop(&u.node, u.now_ns);
    ndtest_node_start(&u.node, u.now_ns);
    u.fw->generation = G;
    unit_region(&u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES), 0);
    expect(6, 1, NETDAM_STATUS_OK, 8);
    assert_int_equal(replies_bytes(), sizeof(struct ndfw_reply));
    unit_stop(&u);
}

static void who_knows_no_key_gets_no_window_of_the_reserve(void **state)
{
    struct netdam_fw_config config = unit_config(1);

    (void)state;
    start(&config); /* 16 windows, of which 4 are kept */
    for (uint64_t context = 1; context <= 13; context++) {
        struct ndtest_packet answer;
        struct unit_request r;

        e.length = 0;
        entries_add_key(&e, FETCH, KEY_NONE, 0, 8, NULL);
        entries_add(&e, FETCH, 0, 8, NULL);
        r = request(context, 1, 0);
        unit_ask(&u, &r, &answer);
        assert_int_equal(answer.status, context <= 12 ? NETDAM_STATUS_BAD_KEY : NETDAM_STATUS_BUSY);
        make_fetch(1);
    }
    expect(1, 0, NETDAM_STATUS_OK, 8);
    unit_stop(&u);
}

/*
 * Two requesters move money between two accounts, each with a version that every transfer raises by one. Each step of
 * a requester is a READ of both and a transaction upon what it saw, sent twice, as a wire might. In every interleaving
 * the sum stays, a transfer happens once or not at all, and a version counts the transfers.
 */
static void transfers_of_two_requesters_are_atomic_in_every_interleaving(void **state)
{
    enum { STEPS = 6 }; /* of each: look, transact, the same again, then all once more */
    unsigned interleavings = 0;

    (void)state;
    for (unsigned order = 0; order < 1u << 2 * STEPS; order++) {
        uint64_t seen[2][2], version[2] = {0}, applied = 0;
        unsigned at[2] = {0};

        if (__builtin_popcount(order) != STEPS) {
            continue;
        }
        interleavings++;
        start(NULL);
        unit_memory_put(&u, BASE + 0, 8, 0);
        unit_memory_put(&u, BASE + 16, 8, 500);
        unit_memory_put(&u, BASE + 24, 8, 500);
        for (unsigned n = 0; n < 2 * STEPS; n++) {
            unsigned who = order >> n & 1, step = at[who]++;
            struct ndtest_packet answer;
            struct unit_request r;
            uint64_t now = unit_memory_get(&u, BASE, 8);

            if (step % 3 == 0) {
                version[who] = now;
                seen[who][0] = unit_memory_get(&u, BASE + 16, 8);
                seen[who][1] = unit_memory_get(&u, BASE + 24, 8);
                continue;
            }
            e.length = 0;
            entries_add_word(&e, COMPARE, 0, version[who]);
            entries_add(&e, FETCH, 16, 16, NULL);
            entries_add_word(&e, WRITE, 0, version[who] + 1);
            entries_add_word(&e, WRITE, 16, seen[who][0] - (who == 0 ? 70 : 11));
            entries_add_word(&e, WRITE, 24, seen[who][1] + (who == 0 ? 70 : 11));
            r = request(who == 0 ? UNIT_CONTEXT : OTHER, 1 + step / 3, (uint16_t)(step / 3));
            unit_ask(&u, &r, &answer);
            if (step % 3 == 1) {
                assert_int_equal(answer.status, version[who] == now ? NETDAM_STATUS_OK : NETDAM_STATUS_COMPARE_FAILED);
                applied += answer.status == NETDAM_STATUS_OK;
            }
            if (answer.status == NETDAM_STATUS_OK) {
                assert_memory_equal(answer.payload, seen[who], 16);
            }
            assert_true(unit_memory_get(&u, BASE, 8) == applied);
            assert_true(unit_memory_get(&u, BASE + 16, 8) + unit_memory_get(&u, BASE + 24, 8) == 1000);
        }
        assert_true(applied >= 2);
        unit_stop(&u);
    }
    assert_int_equal(interleavings, 924);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_then_fetches_then_writes_whatever_the_order_of_the_list),
        cmocka_unit_test(compares_see_every_byte_at_every_alignment),
        cmocka_unit_test(refusals_of_form_leave_no_trace),
        cmocka_unit_test(a_length_that_contradicts_the_payload_is_refused),
        cmocka_unit_test(hostile_lists_do_no_harm),
        cmocka_unit_test(every_entry_is_checked_before_anything_is_done_and_the_first_that_fails_is_named),
        cmocka_unit_test(a_key_counts_before_a_compare_and_a_permission_suffices),
        cmocka_unit_test(as_much_as_is_allowed_is_done),
        cmocka_unit_test(flags_are_those_of_an_operation_that_returns_something),
        cmocka_unit_test(a_repetition_is_answered_with_the_same_bytes),
        cmocka_unit_test(without_room_for_what_is_fetched_it_is_busy_and_nothing_happens),
        cmocka_unit_test(what_was_fetched_is_forgotten_when_the_floor_passes_it),
        cmocka_unit_test(no_context_can_keep_others_from_fetching),
        cmocka_unit_test(lanes_do_not_disturb_one_another),
        cmocka_unit_test(lanes_that_are_given_up_and_resets_free_what_was_fetched),
        cmocka_unit_test(who_knows_no_key_gets_no_window_of_the_reserve),
        cmocka_unit_test(transfers_of_two_requesters_are_atomic_in_every_interleaving),
    };

    return cmocka_run_group_tests_name("transaction", tests, NULL, NULL);
}
