/* SPDX-License-Identifier: BSD-3-Clause */
/* The histogram of the measurements: against sorted samples, and at the edges of its buckets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "samples.h"

static struct samples samples;

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void buckets_have_no_gap_and_no_overlap(void **state)
{
    (void)state;
    assert_int_equal(samples_bucket_low(0), 0);
    for (size_t i = 0; i < SAMPLES_BUCKETS; i++) {
        uint64_t low = samples_bucket_low(i);
        uint64_t high = samples_bucket_high(i);

        assert_int_equal(samples_bucket(low), i);
        assert_int_equal(samples_bucket(high), i);
        assert_true(high >= low && high - low <= low >> SAMPLES_BITS);
        if (i + 1 < SAMPLES_BUCKETS) {
            assert_int_equal(samples_bucket_low(i + 1), high + 1);
        } else {
            assert_int_equal(high, UINT64_MAX);
        }
    }
}

static void nothing_is_zero(void **state)
{
    (void)state;
    samples_clear(&samples);
    assert_int_equal(samples_quantile(&samples, 1, 2), 0);
    assert_int_equal(samples_mean(&samples), 0);
    assert_int_equal(samples.min, 0);
    assert_int_equal(samples.max, 0);
}

static void one_sample_is_everything(void **state)
{
    static const uint64_t values[] = {0, 1, 511, 512, 513, 123456789, UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        samples_clear(&samples);
        samples_add(&samples, values[i]);
        assert_int_equal(samples.min, values[i]);
        assert_int_equal(samples.max, values[i]);
        assert_int_equal(samples_mean(&samples), values[i]);
        assert_int_equal(samples_quantile(&samples, 1, 1000), values[i]);
        assert_int_equal(samples_quantile(&samples, 1, 2), values[i]);
        assert_int_equal(samples_quantile(&samples, 1, 1), values[i]);
    }
}

/* Nearest rank: of 1 to 1000 the median is 500, and 99.9 % are at most 999. */
static void ranks_are_exact_among_small_values(void **state)
{
    (void)state;
    samples_clear(&samples);
    for (uint64_t i = 200; i > 0; i--) {
        samples_add(&samples, i);
    }
    assert_int_equal(samples_quantile(&samples, 1, 2), 100);
    assert_int_equal(samples_quantile(&samples, 99, 100), 198);
    assert_int_equal(samples_quantile(&samples, 999, 1000), 200);
    assert_int_equal(samples_quantile(&samples, 1, 200), 1);
    assert_int_equal(samples_mean(&samples), 100);
    samples_add(&samples, 300);
    assert_int_equal(samples_quantile(&samples, 1, 2), 101);
}

static void quantiles_of_any_samples_are_close_from_above(void **state)
{
    static const unsigned quantiles[][2] = {{1, 2}, {9, 10}, {99, 100}, {999, 1000}, {1, 1}};
    static uint64_t values[5000];
    uint64_t random = 20036;

    (void)state;
    for (unsigned round = 1; round <= 40; round++) {
        size_t count = round * round * 3;
        uint64_t sum = 0;

        samples_clear(&samples);
        for (size_t i = 0; i < count; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            /* Of all magnitudes, but not so large that the sum wraps. */
            values[i] = (random >> 16) >> (random >> 40) % 48;
            sum += values[i];
            samples_add(&samples, values[i]);
        }
        qsort(values, count, sizeof(values[0]), compare_u64);
        assert_int_equal(samples.count, count);
        assert_int_equal(samples.min, values[0]);
        assert_int_equal(samples.max, values[count - 1]);
        assert_int_equal(samples_mean(&samples), sum / count);
        for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
            size_t rank = (count * quantiles[i][0] + quantiles[i][1] - 1) / quantiles[i][1];
            uint64_t right = values[rank - 1];
            uint64_t got = samples_quantile(&samples, quantiles[i][0], quantiles[i][1]);

            assert_in_range(got, right, right + (right >> SAMPLES_BITS));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_have_no_gap_and_no_overlap),
        cmocka_unit_test(nothing_is_zero),
        cmocka_unit_test(one_sample_is_everything),
        cmocka_unit_test(ranks_are_exact_among_small_values),
        cmocka_unit_test(quantiles_of_any_samples_are_close_from_above),
    };

    return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}
