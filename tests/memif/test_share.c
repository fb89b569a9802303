/* SPDX-License-Identifier: BSD-3-Clause */
/* When a thread yields the processor, moves to another one, or goes without: sim/platform/share.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "share.h"

#define MS UINT64_C(1000000)

static void short_yields_change_nothing(void **state)
{
    struct ndsim_share share = {0};

    (void)state;
    for (uint64_t now = MS; now < 100 * MS; now += MS) {
        assert_int_equal(ndsim_share_judge(&share, now, now + 50000, true), NDSIM_SHARE_STAY);
    }
    assert_int_equal(share.moved_ns, 0);
    assert_int_equal(share.crowded_until_ns, 0);
}

static void a_long_yield_moves_to_another_processor(void **state)
{
    struct ndsim_share share = {0};

    (void)state;
    assert_int_equal(ndsim_share_judge(&share, MS, 4 * MS, true), NDSIM_SHARE_MOVE);
    assert_int_equal(share.moved_ns, 4 * MS);
    assert_int_equal(share.crowded_until_ns, 0);
}

static void a_long_yield_there_too_ends_yielding_for_a_while(void **state)
{
    struct ndsim_share share = {0};
    uint64_t first;

    (void)state;
    ndsim_share_judge(&share, MS, 4 * MS, true);
    assert_int_equal(ndsim_share_judge(&share, 5 * MS, 8 * MS, true), NDSIM_SHARE_CROWDED);
    first = share.crowded_until_ns - 8 * MS;
    assert_true(first > 0);
    /* Still so when it is over: longer, */
    assert_int_equal(ndsim_share_judge(&share, 15 * MS, 18 * MS, true), NDSIM_SHARE_CROWDED);
    assert_true(share.crowded_until_ns - 18 * MS > first);
    /* and when it is over again, another processor may be better. */
    assert_int_equal(ndsim_share_judge(&share, 40 * MS, 44 * MS, true), NDSIM_SHARE_MOVE);
}

static void where_there_is_one_processor_nothing_moves(void **state)
{
    struct ndsim_share share = {0};
    uint64_t last = 0;

    (void)state;
    for (uint64_t now = MS, i = 0; i < 20; i++, now += 100 * MS) {
        assert_int_equal(ndsim_share_judge(&share, now, now + 3 * MS, false), NDSIM_SHARE_CROWDED);
        last = share.crowded_until_ns - now - 3 * MS;
    }
    /* It grows, but not without end. */
    assert_true(last <= 50 * MS);
}

static void a_short_yield_makes_the_next_pause_short_again(void **state)
{
    struct ndsim_share share = {0};
    uint64_t first;

    (void)state;
    ndsim_share_judge(&share, 0, 3 * MS, false);
    first = share.crowded_until_ns - 3 * MS;
    ndsim_share_judge(&share, 10 * MS, 13 * MS, false);
    assert_int_equal(ndsim_share_judge(&share, 40 * MS, 40 * MS + 1000, false), NDSIM_SHARE_STAY);
    ndsim_share_judge(&share, 50 * MS, 53 * MS, false);
    assert_int_equal(share.crowded_until_ns - 53 * MS, first);
}

static void a_thread_without_a_use_for_yields_does_not_yield(void **state)
{
    struct ndsim_share share = {.crowded_until_ns = UINT64_MAX};

    (void)state;
    assert_false(ndsim_share_yield(&share));
    share.crowded_until_ns = 0;
    assert_true(ndsim_share_yield(&share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_yields_change_nothing),
        cmocka_unit_test(a_long_yield_moves_to_another_processor),
        cmocka_unit_test(a_long_yield_there_too_ends_yielding_for_a_while),
        cmocka_unit_test(where_there_is_one_processor_nothing_moves),
        cmocka_unit_test(a_short_yield_makes_the_next_pause_short_again),
        cmocka_unit_test(a_thread_without_a_use_for_yields_does_not_yield),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
