/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: which requests are executed, repeated, dropped, turned away, and when lanes are forgotten. */
#include "unit.h"

#define W     NETDAM_WINDOW_MAX
#define G     UNIT_GENERATION
#define OTHER UINT64_C(0x5eed000100000002) /* the same epoch, an earlier count */
#define ALIEN UINT64_C(0x0ddba11500000001) /* another epoch */

#define EXECUTE  NDFW_LANE_EXECUTE
#define REPEATED NDFW_LANE_REPEATED
#define DROP     NDFW_LANE_DROP
#define STALE    NDFW_LANE_STALE
#define BUSY     NDFW_LANE_BUSY

/* What the far end remembers of number n. */
static uint64_t value_of(uint64_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

static uint8_t status_of(uint64_t number)
{
    return number % 3 == 0 ? NETDAM_STATUS_BAD_KEY : NETDAM_STATUS_OK;
}

static enum ndfw_lane_verdict admit(struct unit *u, uint64_t context, uint64_t generation, uint64_t number,
                                    uint32_t distance, struct ndfw_lane_result *result)
{
    struct ndfw_packet packet = {
        .context = context, .generation = generation, .number = number, .distance = (uint16_t)distance};
    enum ndfw_lane_verdict verdict;

    memset(result, 0, sizeof(*result));
    verdict = ndfw_lane_admit(u->fw, &packet, false, result);
    if (verdict == EXECUTE) {
        ndfw_lane_consume(result->window, number, status_of(number), value_of(number));
    }
    return verdict;
}

static enum ndfw_lane_verdict confirm(struct unit *u, uint64_t context, uint64_t generation, uint64_t floor,
                                      struct ndfw_lane_result *result)
{
    struct ndfw_packet packet = {.context = context, .generation = generation, .number = floor};

    memset(result, 0, sizeof(*result));
    return ndfw_lane_confirm(u->fw, &packet, result);
}

/* T(generation, number, distance, verdict, floor afterwards); C: a confirmation of the floor `number`. */
struct step {
    char kind;
    uint64_t generation, number;
    uint32_t distance;
    enum ndfw_lane_verdict expected;
    uint64_t floor;
};
/* clang-format off */
#define T(generation, number, distance, verdict, floor) {'T', generation, number, distance, verdict, floor},
#define C(generation, number, verdict, floor)           {'C', generation, number, 0, verdict, floor},
#define NEW                                             {'N', 0, 0, 0, EXECUTE, 0}, /* everything anew */

static const struct step steps[] = {
    /* In order, each finished before the next. */
    T(G, 5, 0, EXECUTE, 5) T(G, 6, 0, EXECUTE, 6) T(G, 7, 0, EXECUTE, 7)
    /* Late copies of all of them. */
    T(G, 5, 0, DROP, 7) T(G, 6, 0, DROP, 7) T(G, 7, 0, REPEATED, 7)
    /* A copy of an old request may carry a smaller floor: the larger one counts. */
    T(G, 7, 2, REPEATED, 7) T(G, 8, 3, EXECUTE, 7) T(G, 8, 3, REPEATED, 7) T(G, 8, 1, REPEATED, 7)
    NEW
    /* Out of order within a window. */
    T(G, 10, 0, EXECUTE, 10) T(G, 13, 3, EXECUTE, 10) T(G, 11, 1, EXECUTE, 10) T(G, 13, 3, REPEATED, 10)
    T(G, 11, 1, REPEATED, 10) T(G, 12, 2, EXECUTE, 10) T(G, 12, 0, REPEATED, 12) T(G, 10, 0, DROP, 12)
    T(G, 11, 1, DROP, 12) T(G, 13, 1, REPEATED, 12)
    NEW
    /* The window's edge. */
    T(G, W, 0, EXECUTE, W) T(G, 2 * W - 1, W - 1, EXECUTE, W) T(G, 2 * W, W, DROP, 0) T(G, 2 * W, W - 1, EXECUTE, W + 1)
    T(G, 2 * W - 1, W - 2, REPEATED, W + 1) T(G, 9 * W, UINT16_MAX, DROP, 0) T(G, 3 * W, 0, EXECUTE, 3 * W)
    /* The same places of the window, anew: nothing of the earlier numbers is left. */
    T(G, 3 * W + 1, 1, EXECUTE, 3 * W) T(G, 4 * W - 1, W - 1, EXECUTE, 3 * W) T(G, 4 * W - 2, W - 2, EXECUTE, 3 * W)
    T(G, 3 * W, 0, REPEATED, 3 * W)
    NEW
    /* The floor moves by one less than the window, by the window, by more. */
    T(G, 1, 0, EXECUTE, 1) T(G, 2, 1, EXECUTE, 1) T(G, W, W - 1, EXECUTE, 1) T(G, W + 1, 1, EXECUTE, W)
    T(G, W, 0, REPEATED, W) T(G, W + 1, 1, REPEATED, W) T(G, W + 2, 2, EXECUTE, W) T(G, 2 * W, 0, EXECUTE, 2 * W)
    T(G, 2 * W + 1, 1, EXECUTE, 2 * W) T(G, 2 * W + 2, 2, EXECUTE, 2 * W) T(G, 100 * W + 1, 0, EXECUTE, 100 * W + 1)
    T(G, 100 * W + 2, 1, EXECUTE, 100 * W + 1) T(G, 100 * W + 1, 0, REPEATED, 100 * W + 1)
    NEW
    /* A distance larger than the number would put the floor below 0. */
    T(G, 0, 0, EXECUTE, 0) T(G, 0, 0, REPEATED, 0) T(G, 0, 1, DROP, 0) T(G, 3, 4, DROP, 0) T(G, 3, 3, EXECUTE, 0)
    T(G, 1, 1, EXECUTE, 0)
    NEW
    /* Numbers near their end. */
    T(G, NETDAM_NUMBER_MAX - W, 0, EXECUTE, NETDAM_NUMBER_MAX - W)
    T(G, NETDAM_NUMBER_MAX - 1, W - 1, EXECUTE, NETDAM_NUMBER_MAX - W)
    T(G, NETDAM_NUMBER_MAX - 1, W - 1, REPEATED, NETDAM_NUMBER_MAX - W)
    T(G, NETDAM_NUMBER_MAX - 1, 0, REPEATED, NETDAM_NUMBER_MAX - 1)
    T(G, NETDAM_NUMBER_MAX - 2, 0, DROP, NETDAM_NUMBER_MAX - 1)
    C(G, NETDAM_NUMBER_MAX, EXECUTE, NETDAM_NUMBER_MAX)
    T(G, NETDAM_NUMBER_MAX - 1, 0, DROP, NETDAM_NUMBER_MAX)
    T(G, 0, 0, DROP, NETDAM_NUMBER_MAX) T(G, 1, 0, DROP, NETDAM_NUMBER_MAX)
    NEW
    /* Only the lane's own generation, or the node's where there is no lane. */
    T(0, 5, 0, STALE, 0) T(OTHER, 5, 0, STALE, 0) T(ALIEN, 5, 0, STALE, 0) T(G + 1, 5, 0, STALE, 0)
    T(G, 5, 0, EXECUTE, 5) T(0, 6, 1, STALE, 0) T(ALIEN, 6, 1, STALE, 0) T(OTHER, 9, 0, STALE, 0)
    /* What is turned away has not moved the floor. */
    T(G, 5, 0, REPEATED, 5) T(G, 6, 1, EXECUTE, 5)
    /* Beyond the window comes before the generation. */
    T(ALIEN, 5 + W, W, DROP, 0)
    NEW
    /* Confirmations: the maximum counts, late ones are harmless. */
    T(G, 5, 0, EXECUTE, 5) T(G, 6, 1, EXECUTE, 5) C(G, 6, EXECUTE, 6) C(G, 5, EXECUTE, 6) T(G, 5, 0, DROP, 6)
    T(G, 6, 0, REPEATED, 6) C(G, 7, EXECUTE, 7) T(G, 6, 0, DROP, 7) C(G, 6, EXECUTE, 7) T(G, 7, 0, EXECUTE, 7)
    T(G, 7, 0, REPEATED, 7) C(0, 8, STALE, 0) C(ALIEN, 8, STALE, 0) C(OTHER, 8, STALE, 0) T(G, 7, 0, REPEATED, 7)
    C(G, 8, EXECUTE, 8) C(G, 8, EXECUTE, 8) T(G, 8, 0, EXECUTE, 8)
    NEW
    /* A confirmation beyond everything that was seen: what comes late is below the floor. */
    T(G, 5, 0, EXECUTE, 5) C(G, 10, EXECUTE, 10) T(G, 9, 4, DROP, 10) T(G, 10, 0, EXECUTE, 10)
    NEW
    /* What lies above a confirmed floor stays known, although something below came after it. */
    T(G, 10, 0, EXECUTE, 10) T(G, 13, 3, EXECUTE, 10) T(G, 11, 1, EXECUTE, 10) C(G, 12, EXECUTE, 12)
    T(G, 13, 1, REPEATED, 12) T(G, 12, 0, EXECUTE, 12)
    NEW
    /* A confirmation is a fence even where there was no lane: nothing below is executed after it. */
    C(0, 5, STALE, 0) C(ALIEN, 5, STALE, 0) C(G, 5, EXECUTE, 5) T(G, 3, 0, DROP, 5) T(G, 4, 1, DROP, 5)
    T(G, 5, 2, EXECUTE, 5)
};
/* clang-format on */

static void verdicts_follow_the_table(void **state)
{
    struct unit u;
    struct ndfw_lane_result result;

    (void)state;
    unit_start(&u, 1, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        const struct step *step = &steps[i];
        enum ndfw_lane_verdict verdict;

        if (step->kind == 'N') {
            unit_stop(&u);
            unit_start(&u, 1, NULL);
            continue;
        }
        verdict = step->kind == 'C' ? confirm(&u, UNIT_CONTEXT, step->generation, step->number, &result)
                                    : admit(&u, UNIT_CONTEXT, step->generation, step->number, step->distance, &result);
        if (verdict != step->expected ||
            (verdict != STALE && verdict != BUSY && step->floor != 0 && result.floor != step->floor)) {
            fail_msg("step %zu (%c %llu distance %u): verdict %d, expected %d; floor %llu, expected %llu", i,
                     step->kind, (unsigned long long)step->number, step->distance, (int)verdict, (int)step->expected,
                     (unsigned long long)result.floor, (unsigned long long)step->floor);
        }
        if (verdict == REPEATED) {
            assert_int_equal(result.status, status_of(step->number)); /* refusals are remembered like executions */
            assert_true(result.value == value_of(step->number));
        }
        if (verdict != DROP) {
            assert_true(result.generation == G);
        }
    }
    unit_stop(&u);
}

/* An oracle with a set instead of a window, and random requests. */
static void random_requests_are_executed_exactly_once(void **state)
{
    enum { NUMBERS = 6000 };
    static bool executed[NUMBERS];
    struct ndtest_random random = {5};
    struct unit u;
    uint64_t floor = 0;

    (void)state;
    memset(executed, 0, sizeof(executed));
    unit_start(&u, 1, NULL);
    for (unsigned i = 0; i < 60000; i++) {
        uint64_t claimed = i * 4000 / 60000 > 60 ? ndtest_random_below(&random, 60) + i * 4000 / 60000 - 60 : 0;
        uint32_t distance = (uint32_t)ndtest_random_below(&random, W + 10);
        uint64_t number = claimed + distance;
        struct ndfw_lane_result result;
        enum ndfw_lane_verdict want;

        if (distance >= W) {
            want = DROP;
        } else {
            floor = claimed > floor ? claimed : floor;
            want = number < floor ? DROP : executed[number] ? REPEATED : EXECUTE;
            executed[number] |= want == EXECUTE;
        }
        assert_int_equal(admit(&u, UNIT_CONTEXT, G, number, distance, &result), want);
        assert_true(want != REPEATED || (result.status == status_of(number) && result.value == value_of(number)));
        assert_true(distance >= W || result.floor == floor);
    }
    unit_stop(&u);
}

static void drops_and_lanes_are_counted(void **state)
{
    struct unit u;
    struct ndfw_lane_result result;

    (void)state;
    unit_start(&u, 1, NULL);
    admit(&u, 1, G, 5, W, &result);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BEYOND_WINDOW), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
    admit(&u, 1, G, 5, 0, &result);
    admit(&u, 2, G, 5, 0, &result);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 2);
    admit(&u, 1, G, 4, 0, &result);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BELOW_FLOOR), 1);
    confirm(&u, 1, G, 6, &result);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 2);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES),
                     2 * sizeof(struct ndfw_lane) + sizeof(struct ndfw_window));
    confirm(&u, 2, G, 6, &result);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES), 2 * 24); /* at rest */
    unit_stop(&u);
}

static void contexts_do_not_disturb_one_another(void **state)
{
    struct unit u;
    struct ndfw_lane_result result;
    struct netdam_fw_config config = unit_config(1);

    (void)state;
    config.lanes = 50;
    config.lane_windows = 50;
    unit_start(&u, 1, &config);
    for (unsigned round = 0; round < 4; round++) {
        for (uint64_t context = 1; context <= 50; context++) {
            assert_int_equal(admit(&u, context, G, 10 * context + round, round, &result), EXECUTE);
        }
    }
    for (uint64_t context = 1; context <= 50; context++) {
        for (unsigned round = 0; round < 4; round++) {
            assert_int_equal(admit(&u, context, G, 10 * context + round, round, &result), REPEATED);
            assert_true(result.value == value_of(10 * context + round));
            assert_true(result.floor == 10 * context);
        }
    }
    unit_stop(&u);
}

/* `lanes` lanes, of which the first `confirmed` are at rest. */
static void fill(struct unit *u, uint32_t lanes, uint32_t confirmed)
{
    struct ndfw_lane_result result;

    for (uint32_t i = 1; i <= lanes; i++) {
        assert_int_equal(admit(u, i, G, 5, 0, &result), EXECUTE);
        if (i <= confirmed) {
            assert_int_equal(confirm(u, i, G, 6, &result), EXECUTE);
        }
    }
}

static struct netdam_fw_config small(uint32_t lanes, uint32_t windows)
{
    struct netdam_fw_config config = unit_config(1);

    config.lanes = lanes;
    config.lane_windows = windows;
    return config;
}

static void a_full_table_of_unconfirmed_lanes_is_busy_and_consumes_nothing(void **state)
{
    struct netdam_fw_config config = small(8, 8);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, &config);
    fill(&u, 8, 0);
    assert_int_equal(admit(&u, 99, G, 5, 0, &result), BUSY);
    assert_true(result.generation == G);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 8);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_FORGOTTEN), 0);
    for (uint64_t i = 1; i <= 8; i++) {
        assert_int_equal(admit(&u, i, G, 5, 0, &result), REPEATED);
    }
    unit_stop(&u);
}

static void a_confirmation_makes_a_lane_at_rest_or_is_told_that_there_is_no_room(void **state)
{
    struct netdam_fw_config config = small(8, 4);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    config.generation_interval_ns = UINT64_C(1) << 40;
    unit_start(&u, 1, &config);
    fill(&u, 4, 0);
    for (uint64_t i = 10; i < 14; i++) {
        assert_int_equal(confirm(&u, i, G, 7, &result), EXECUTE); /* needs no window */
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 8);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 4);
    u.fw->generation_next_ns = UINT64_MAX;
    assert_int_equal(confirm(&u, 99, G, 7, &result), BUSY);
    assert_int_equal(confirm(&u, 1, G, 6, &result), EXECUTE);
    u.fw->generation_next_ns = 0;
    /* Making room changes the generation, which the confirmation does not carry. */
    assert_int_equal(confirm(&u, 99, G, 7, &result), STALE);
    assert_true(result.generation == G + 1);
    assert_int_equal(confirm(&u, 99, G + 1, 7, &result), EXECUTE);
    assert_int_equal(admit(&u, 99, G + 1, 6, 0, &result), DROP);
    unit_stop(&u);
}

/* The flags of the answer to a WRITE. */
static unsigned flags_of_answer(struct unit *u, uint64_t context, uint64_t number, uint64_t key)
{
    static const uint8_t payload[8];
    struct unit_request request = {.opcode = NETDAM_OP_WRITE,
                                   .context = context,
                                   .number = number,
                                   .distance = (uint16_t)(number - 5),
                                   .length = 8,
                                   .payload_length = 8,
                                   .key = key,
                                   .generation = G,
                                   .payload = payload};
    struct ndtest_packet answer;

    unit_ask(u, &request, &answer);
    return answer.flags;
}

static void whoever_is_answered_hears_when_windows_or_lanes_run_short(void **state)
{
    static const struct {
        uint32_t lanes, windows, from;
    } rows[] = {{64, 8, 6}, {8, 32, 6}, {64, 1, 1}, {64, 2, 2}, {1, 8, 1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_fw_config config = small(rows[i].lanes, rows[i].windows);
        uint32_t most = rows[i].lanes < rows[i].windows ? rows[i].lanes : rows[i].windows;
        struct ndfw_lane_result result;
        struct unit u;

        unit_start(&u, 1, &config);
        unit_region(&u, 0x1000, 64, NETDAM_PERMISSION_ALL, UNIT_KEY);
        for (uint64_t context = 1; context <= most; context++) {
            unsigned wish = context >= rows[i].from ? NETDAM_FLAG_CONFIRM_WANTED : 0;

            assert_int_equal(flags_of_answer(&u, context, 5, UNIT_KEY), wish);
            assert_int_equal(flags_of_answer(&u, context, 5, UNIT_KEY), wish | NETDAM_FLAG_AGAIN);
            assert_int_equal(flags_of_answer(&u, context, 6, UNIT_KEY + 1), wish);
        }
        if (rows[i].lanes > rows[i].windows && most > 1) {
            while (most >= rows[i].from) { /* until enough have confirmed */
                assert_int_equal(flags_of_answer(&u, 1, 5, UNIT_KEY) & NETDAM_FLAG_CONFIRM_WANTED,
                                 NETDAM_FLAG_CONFIRM_WANTED);
                assert_int_equal(confirm(&u, most--, G, 7, &result), EXECUTE);
            }
            assert_int_equal(flags_of_answer(&u, 1, 5, UNIT_KEY), NETDAM_FLAG_AGAIN);
        }
        unit_stop(&u);
    }
}

static void without_a_free_window_both_new_lanes_and_resting_ones_wait(void **state)
{
    struct netdam_fw_config config = small(16, 4);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, &config);
    assert_int_equal(admit(&u, 50, G, 5, 0, &result), EXECUTE);
    assert_int_equal(confirm(&u, 50, G, 6, &result), EXECUTE);
    fill(&u, 4, 0);
    assert_int_equal(admit(&u, 50, G, 6, 0, &result), BUSY);
    assert_int_equal(admit(&u, 51, G, 6, 0, &result), BUSY);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 5); /* 51 got none */
    confirm(&u, 1, G, 6, &result);
    /* BUSY has not consumed the number. */
    assert_int_equal(admit(&u, 50, G, 6, 0, &result), EXECUTE);
    assert_int_equal(admit(&u, 51, G, 6, 0, &result), BUSY);
    /* And what was below the floor of the resting lane still is. */
    assert_int_equal(admit(&u, 50, G, 5, 0, &result), DROP);
    unit_stop(&u);
}

static void confirmed_lanes_are_forgotten_together_when_room_is_needed(void **state)
{
    struct netdam_fw_config config = small(8, 8);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, &config);
    fill(&u, 8, 5);
    /* The newcomer's generation is out of date by the very act of making room. */
    assert_int_equal(admit(&u, 99, G, 5, 0, &result), STALE);
    assert_true(result.generation == G + 1);
    assert_true(u.fw->generation == G + 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_FORGOTTEN), 5);
    assert_int_equal(u.fw->lane_count, 3);
    assert_int_equal(admit(&u, 99, G + 1, 5, 0, &result), EXECUTE);
    /* What was not confirmed stays, under the generation it was made with. */
    for (uint64_t i = 6; i <= 8; i++) {
        assert_int_equal(admit(&u, i, G, 5, 0, &result), REPEATED);
        assert_true(result.generation == G);
        assert_int_equal(admit(&u, i, G + 1, 6, 1, &result), STALE);
        assert_true(result.generation == G);
        assert_int_equal(admit(&u, i, G, 6, 1, &result), EXECUTE);
    }
    /* What was confirmed and comes late is of an old generation. */
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(admit(&u, i, G, 5, 0, &result), STALE);
        assert_true(result.generation == G + 1);
    }
    unit_stop(&u);
}

static void generations_change_at_most_once_per_interval(void **state)
{
    struct netdam_fw_config config = small(4, 4);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    config.generation_interval_ns = 1000;
    unit_start(&u, 1, &config);
    fill(&u, 4, 4);
    assert_int_equal(admit(&u, 99, G, 5, 0, &result), STALE);
    for (uint32_t i = 11; i <= 14; i++) {
        assert_int_equal(admit(&u, i, G + 1, 5, 0, &result), EXECUTE);
        assert_int_equal(confirm(&u, i, G + 1, 6, &result), EXECUTE);
    }
    u.fw->now_ns += 999;
    assert_int_equal(admit(&u, 99, G + 1, 5, 0, &result), BUSY);
    assert_true(u.fw->generation == G + 1);
    u.fw->now_ns += 1;
    assert_int_equal(admit(&u, 99, G + 1, 5, 0, &result), STALE);
    assert_true(u.fw->generation == G + 2);
    unit_stop(&u);
}

static void a_count_that_is_used_up_begins_a_new_epoch(void **state)
{
    struct netdam_fw_config config = small(4, 4);
    struct ndfw_lane_result result;
    struct unit u;
    uint64_t last = G | UINT32_MAX;

    (void)state;
    unit_start(&u, 1, &config);
    u.fw->generation = last;
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(admit(&u, i, last, 5, 0, &result), EXECUTE);
        assert_int_equal(confirm(&u, i, last, 6, &result), EXECUTE);
    }
    assert_int_equal(admit(&u, 99, last, 5, 0, &result), STALE);
    assert_int_not_equal(netdam_generation_epoch(result.generation), netdam_generation_epoch(last));
    assert_int_not_equal(netdam_generation_epoch(result.generation), 0);
    assert_int_equal((uint32_t)result.generation, 1);
    unit_stop(&u);
}

static void a_silent_unconfirmed_lane_is_given_up_with_a_new_epoch(void **state)
{
    struct netdam_fw_config config = small(8, 8);
    struct ndfw_lane_result result;
    struct unit u;
    uint64_t right;

    (void)state;
    config.lane_give_up_ns = 1000 * UNIT_MS;
    unit_start(&u, 1, &config);
    fill(&u, 3, 0);
    assert_int_equal(confirm(&u, 1, G, 6, &result), EXECUTE); /* its window is free, and taken by nobody */
    assert_true(ndfw_lane_next_ns(u.fw) != NETDAM_FW_NEVER);
    unit_run_for(&u, 600 * UNIT_MS);
    assert_int_equal(admit(&u, 3, G, 6, 1, &result), EXECUTE); /* not silent */
    unit_run_for(&u, 500 * UNIT_MS);
    unit_run_for(&u, 300 * UNIT_MS);
    /* Lane 2 has gone, lane 1 rests, lane 3 is under way. */
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_GIVEN_UP), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 2);
    assert_int_not_equal(netdam_generation_epoch(u.fw->generation), netdam_generation_epoch(G));
    assert_int_equal(admit(&u, 2, G, 5, 0, &result), STALE);
    assert_true(result.generation == u.fw->generation);
    assert_int_equal(admit(&u, 3, G, 6, 1, &result), REPEATED);
    assert_int_equal(admit(&u, 1, G, 6, 0, &result), EXECUTE);
    /* READ: proof is the epoch, of the lane or of the node. */
    assert_true(ndfw_lane_proves(u.fw, 3, G, &right) && right == G);
    assert_true(ndfw_lane_proves(u.fw, 3, OTHER, &right));
    assert_false(ndfw_lane_proves(u.fw, 3, u.fw->generation, &right));
    assert_false(ndfw_lane_proves(u.fw, 77, G, &right));
    assert_true(right == u.fw->generation);
    assert_true(ndfw_lane_proves(u.fw, 77, u.fw->generation, &right));
    assert_false(ndfw_lane_proves(u.fw, 77, 0, &right));
    unit_stop(&u);
}

static void no_timer_runs_while_all_lanes_rest(void **state)
{
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, NULL);
    assert_true(ndfw_lane_next_ns(u.fw) == NETDAM_FW_NEVER);
    admit(&u, 1, G, 5, 0, &result);
    assert_true(ndfw_lane_next_ns(u.fw) != NETDAM_FW_NEVER);
    confirm(&u, 1, G, 6, &result);
    assert_true(ndfw_lane_next_ns(u.fw) == NETDAM_FW_NEVER);
    unit_run_for(&u, 1000000 * UNIT_MS);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 1);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_GIVEN_UP), 0);
    assert_true(u.fw->generation == G);
    unit_stop(&u);
}

/* Many rounds of filling, confirming some and forgetting: no lane is ever lost or found twice. */
static void forgetting_leaves_every_other_lane_where_a_search_finds_it(void **state)
{
    struct netdam_fw_config config = small(32, 32);
    struct ndtest_random random = {6};
    struct ndfw_lane_result result;
    struct unit u;
    uint64_t kept[32], generations[32];
    uint32_t count = 0;

    (void)state;
    config.generation_interval_ns = 1;
    unit_start(&u, 1, &config);
    for (unsigned round = 0; round < 200; round++) {
        while (count < 32) {
            uint32_t home;

            do { /* crowded around the table's end, so that searches are long and go round */
                kept[count] = ndtest_random_next(&random);
                home = (uint32_t)((kept[count] * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & u.fw->lane_mask;
            } while (home >= 8 && home < u.fw->lane_mask - 8);
            generations[count] = u.fw->generation;
            assert_int_equal(admit(&u, kept[count], generations[count], 5, 0, &result), EXECUTE);
            count++;
        }
        for (uint32_t i = 0; i < count;) {
            if (i == 0 || ndtest_random_chance(&random, 400000)) {
                assert_int_equal(confirm(&u, kept[i], generations[i], 6, &result), EXECUTE);
                count--;
                kept[i] = kept[count];
                generations[i] = generations[count];
            } else {
                i++;
            }
        }
        u.fw->now_ns += 1;
        assert_int_equal(admit(&u, 1, u.fw->generation, 5, 0, &result), STALE);
        assert_int_equal(u.fw->lane_count, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(admit(&u, kept[i], generations[i], 5, 0, &result), REPEATED);
            assert_true(result.value == value_of(5));
        }
    }
    unit_stop(&u);
}

static void a_start_draws_another_epoch_and_forgets_everything(void **state)
{
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, NULL);
    fill(&u, 5, 2);
    ndtest_node_stop(&u.node, u.now_ns);
    ndtest_node_start(&u.node, u.now_ns);
    assert_int_not_equal(netdam_generation_epoch(u.fw->generation), netdam_generation_epoch(G));
    assert_int_not_equal(netdam_generation_epoch(u.fw->generation), 0);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), 0);
    for (uint64_t i = 1; i <= 5; i++) {
        assert_int_equal(admit(&u, i, G, 5, 0, &result), STALE);
    }
    unit_stop(&u);
}

/* Two times nothing, two times the epoch in use, then another. */
static void draw_epochs(void *opaque, struct ndtest_node *node, void *buffer, size_t bytes)
{
    static uint32_t drawn;
    uint64_t value = drawn < 2 ? 0 : drawn < 4 ? netdam_generation_epoch(G) : 77;

    (void)opaque;
    (void)node;
    drawn++;
    memcpy(buffer, &value, bytes);
}

static void no_epoch_is_zero_or_that_before(void **state)
{
    struct netdam_fw_config config = small(1, 1);
    struct ndfw_lane_result result;
    struct unit u;

    (void)state;
    unit_start(&u, 1, &config);
    u.node.hooks.entropy = draw_epochs;
    assert_int_equal(admit(&u, 1, G, 5, 0, &result), EXECUTE);
    unit_advance(&u, 2 * u.fw->config.lane_give_up_ns);
    unit_run(&u);
    assert_true(u.fw->generation == (UINT64_C(77) << 32 | 1));
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_follow_the_table),
        cmocka_unit_test(random_requests_are_executed_exactly_once),
        cmocka_unit_test(drops_and_lanes_are_counted),
        cmocka_unit_test(contexts_do_not_disturb_one_another),
        cmocka_unit_test(a_full_table_of_unconfirmed_lanes_is_busy_and_consumes_nothing),
        cmocka_unit_test(a_confirmation_makes_a_lane_at_rest_or_is_told_that_there_is_no_room),
        cmocka_unit_test(whoever_is_answered_hears_when_windows_or_lanes_run_short),
        cmocka_unit_test(without_a_free_window_both_new_lanes_and_resting_ones_wait),
        cmocka_unit_test(confirmed_lanes_are_forgotten_together_when_room_is_needed),
        cmocka_unit_test(generations_change_at_most_once_per_interval),
        cmocka_unit_test(a_count_that_is_used_up_begins_a_new_epoch),
        cmocka_unit_test(a_silent_unconfirmed_lane_is_given_up_with_a_new_epoch),
        cmocka_unit_test(no_timer_runs_while_all_lanes_rest),
        cmocka_unit_test(forgetting_leaves_every_other_lane_where_a_search_finds_it),
        cmocka_unit_test(no_epoch_is_zero_or_that_before),
        cmocka_unit_test(a_start_draws_another_epoch_and_forgets_everything),
    };

    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
