/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop: order of times, order of scheduling, and nothing else. */
#include "vt.h"

#define EVENTS 5000

struct seen {
    struct ndsim_loop *loop;
    uint64_t values[EVENTS];
    uint64_t times[EVENTS];
    unsigned count;
    uint64_t again_ns; /* the handler schedules itself at this time, once */
};

static void see(void *opaque, uint64_t value, uint64_t now_ns)
{
    struct seen *seen = opaque;

    assert_int_equal(seen->loop->now_ns, now_ns);
    seen->values[seen->count] = value;
    seen->times[seen->count++] = now_ns;
    if (seen->again_ns != 0) {
        uint64_t at_ns = seen->again_ns;

        seen->again_ns = 0;
        assert_true(ndsim_loop_at(seen->loop, at_ns, see, seen, value + 1000));
    }
}

static void events_happen_in_the_order_of_their_times_and_ties_in_that_of_their_scheduling(void **state)
{
    struct ndsim_loop loop;
    struct ndsim_random random = {7};
    struct seen *seen = calloc(1, sizeof(*seen));

    (void)state;
    ndsim_loop_init(&loop, 0);
    seen->loop = &loop;
    for (uint64_t i = 0; i < EVENTS; i++) {
        assert_true(ndsim_loop_at(&loop, ndsim_random_below(&random, 100), see, seen, i));
    }
    assert_int_equal(ndsim_loop_run(&loop, NDSIM_NEVER), EVENTS);
    assert_int_equal(seen->count, EVENTS);
    for (unsigned i = 1; i < EVENTS; i++) {
        assert_true(seen->times[i - 1] <= seen->times[i]);
        assert_true(seen->times[i - 1] < seen->times[i] || seen->values[i - 1] < seen->values[i]);
    }
    assert_int_equal(ndsim_loop_next_ns(&loop), NDSIM_NEVER);
    ndsim_loop_fini(&loop);
    free(seen);
}

static void what_lies_behind_the_limit_waits(void **state)
{
    struct ndsim_loop loop;
    struct seen seen = {.loop = &loop};

    (void)state;
    ndsim_loop_init(&loop, 100);
    assert_true(ndsim_loop_at(&loop, 200, see, &seen, 1));
    assert_true(ndsim_loop_at(&loop, 300, see, &seen, 2));
    assert_int_equal(ndsim_loop_next_ns(&loop), 200);
    assert_false(ndsim_loop_step(&loop, 199));
    assert_int_equal(loop.now_ns, 100);
    assert_int_equal(ndsim_loop_run(&loop, 299), 1);
    assert_int_equal(loop.now_ns, 299);
    assert_int_equal(ndsim_loop_run(&loop, 300), 1);
    assert_int_equal(seen.values[1], 2);
    ndsim_loop_fini(&loop);
}

static void an_event_in_the_past_happens_now(void **state)
{
    struct ndsim_loop loop;
    struct seen seen = {.loop = &loop, .again_ns = 5};

    (void)state;
    ndsim_loop_init(&loop, 0);
    assert_true(ndsim_loop_at(&loop, 10, see, &seen, 1));
    assert_true(ndsim_loop_at(&loop, 10, see, &seen, 2));
    assert_int_equal(ndsim_loop_run(&loop, NDSIM_NEVER), 3);
    /* Behind what had been scheduled for the same time before. */
    assert_int_equal(seen.values[1], 2);
    assert_int_equal(seen.values[2], 1001);
    assert_int_equal(seen.times[2], 10);
    ndsim_loop_fini(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_happen_in_the_order_of_their_times_and_ties_in_that_of_their_scheduling),
        cmocka_unit_test(what_lies_behind_the_limit_waits),
        cmocka_unit_test(an_event_in_the_past_happens_now),
    };

    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
