/* SPDX-License-Identifier: BSD-3-Clause */
/* Many requesters at one node: far-end state stays within what is configured, is counted, and goes away again. */
#include "unit.h"

#define CROWD 1024u

/* One after another. The bare RISC-V machine is emulated, and fewer show the same there. */
#if defined(__riscv)
#define CONTEXTS 20000u
#else
#define CONTEXTS 1000000u
#endif

static void crowd_start(struct unit *u, uint32_t lanes, uint32_t windows)
{
    struct netdam_fw_config config = unit_config(0);

    config.lanes = lanes;
    config.lane_windows = windows;
    config.generation_interval_ns = UNIT_MS;
    config.refusal_burst = 1u << 20;
    unit_start(u, 0, &config);
    (void)unit_region(u, 0x10000, 0x10000, NETDAM_PERMISSION_ALL, UNIT_KEY);
}

static uint64_t context_of(uint32_t requester)
{
    return UINT64_C(0xc0ffee0000000000) + requester * UINT64_C(0x10001);
}

/* Adds 1 to the requester's own cell; returns the answer's status. */
static unsigned add_one(struct unit *u, uint64_t context, uint64_t number, uint16_t distance, uint64_t *generation,
                        uint64_t cell)
{
    static const uint64_t one = 1;
    struct ndtest_packet answer;
    struct unit_request request = {
        .opcode = NETDAM_OP_FETCH_ADD,
        .type = NETDAM_TYPE_U64,
        .length = 8,
        .payload_length = 8,
        .payload = (const uint8_t *)&one,
        .context = context,
        .number = number,
        .distance = distance,
        .generation = *generation,
        .key = UNIT_KEY,
        .address = cell * 8,
    };

    unit_ask(u, &request, &answer);
    if (answer.status == NETDAM_STATUS_STALE) {
        *generation = answer.generation;
        request.generation = answer.generation;
        unit_ask(u, &request, &answer);
    }
    return answer.status;
}

static unsigned confirm(struct unit *u, uint64_t context, uint64_t floor, uint64_t *generation)
{
    struct ndtest_packet answer;
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM, .context = context, .number = floor, .generation = *generation};

    unit_ask(u, &request, &answer);
    if (answer.status == NETDAM_STATUS_STALE) {
        *generation = answer.generation;
    }
    return answer.status;
}

static uint64_t cell(struct unit *u, uint64_t index)
{
    uint64_t value;

    memcpy(&value, u->node.memory + 0x10000 + index * 8, 8);
    return value;
}

static void a_thousand_requesters_at_once_have_a_window_each(void **state)
{
    struct unit u;
    uint64_t generation;

    (void)state;
    crowd_start(&u, CROWD, CROWD);
    generation = u.fw->generation;
    for (unsigned round = 1; round <= 3; round++) {
        for (uint32_t i = 0; i < CROWD; i++) {
            /* Nothing is finished: the floor stays where it was. */
            assert_int_equal(add_one(&u, context_of(i), round, (uint16_t)(round - 1), &generation, i),
                             NETDAM_STATUS_OK);
        }
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES), CROWD);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), CROWD);
        assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES),
                         CROWD * (sizeof(struct ndfw_lane) + sizeof(struct ndfw_window)));
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        assert_int_equal(cell(&u, i), 3);
        assert_int_equal(confirm(&u, context_of(i), 4, &generation), NETDAM_STATUS_OK);
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 0);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES), CROWD * sizeof(struct ndfw_lane));
    unit_stop(&u);
}

static void whoever_finds_no_window_is_told_busy_and_tries_again(void **state)
{
    const uint32_t windows = 64;
    struct unit u;
    uint64_t generation;
    uint32_t served = 0, busy = 0;
    static bool done[CROWD];

    (void)state;
    crowd_start(&u, CROWD, windows);
    generation = u.fw->generation;
    memset(done, 0, sizeof(done));
    for (unsigned round = 0; served < CROWD; round++) {
        uint32_t before = served;

        assert_true(round < CROWD);
        for (uint32_t i = 0; i < CROWD; i++) {
            unsigned status = done[i] ? NETDAM_STATUS_OK : add_one(&u, context_of(i), 1, 0, &generation, i);

            assert_true(status == NETDAM_STATUS_OK || status == NETDAM_STATUS_BUSY);
            assert_true(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS) <= windows);
            busy += status == NETDAM_STATUS_BUSY;
            if (!done[i] && status == NETDAM_STATUS_OK) {
                done[i] = true;
                served++;
            }
        }
        assert_true(served > before);
        for (uint32_t i = 0; i < CROWD; i++) {
            if (done[i]) {
                assert_int_equal(confirm(&u, context_of(i), 2, &generation), NETDAM_STATUS_OK);
            }
        }
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        assert_int_equal(cell(&u, i), 1);
    }
    assert_true(busy > CROWD);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_BUSY), busy);
    unit_stop(&u);
}

static void very_many_contexts_one_after_another_leave_nothing_behind(void **state)
{
    const uint32_t lanes = 512;
    struct unit u;
    uint64_t generation, epoch;

    (void)state;
    crowd_start(&u, lanes, 16);
    generation = u.fw->generation;
    epoch = generation >> 32;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        assert_int_equal(add_one(&u, context_of(i), 1, 0, &generation, 0), NETDAM_STATUS_OK);
        assert_int_equal(confirm(&u, context_of(i), 2, &generation), NETDAM_STATUS_OK);
        u.now_ns += 10000;
        if (i % 4096 == 0) {
            assert_true(unit_counter(&u, NETDAM_COUNTER_LANE_BYTES) <= lanes * sizeof(struct ndfw_lane));
            assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANE_WINDOWS), 0);
        }
    }
    assert_int_equal(cell(&u, 0), CONTEXTS);
    assert_true(unit_counter(&u, NETDAM_COUNTER_LANES) <= lanes);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES) + unit_counter(&u, NETDAM_COUNTER_LANES_FORGOTTEN),
                     CONTEXTS);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_LANES_GIVEN_UP), 0);
    assert_int_equal(u.fw->generation >> 32, epoch);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_requesters_at_once_have_a_window_each),
        cmocka_unit_test(whoever_finds_no_window_is_told_busy_and_tries_again),
        cmocka_unit_test(very_many_contexts_one_after_another_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
