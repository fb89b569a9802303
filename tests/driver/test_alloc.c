/* SPDX-License-Identifier: BSD-3-Clause */
/* The allocator of on-board memory: no overlap, alignment, merging, refusals. */
#include "test.h"

#include "alloc.h"

#define TOTAL UINT64_C(65536)

static void hands_out_and_takes_back_everything(void **state)
{
    struct ndlib_alloc alloc;
    uint64_t offset;

    (void)state;
    assert_int_equal(ndlib_alloc_init(&alloc, TOTAL), 0);
    assert_int_equal(ndlib_alloc_take(&alloc, TOTAL, 0, &offset), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 1, 0, &offset), -ENOSPC);
    assert_int_equal(ndlib_alloc_give(&alloc, 0), 0);
    assert_int_equal(ndlib_alloc_free_bytes(&alloc), TOTAL);
    assert_int_equal(ndlib_alloc_take(&alloc, TOTAL + 1, 0, &offset), -ENOSPC);
    assert_int_equal(ndlib_alloc_take(&alloc, UINT64_MAX, 0, &offset), -ENOSPC);
    ndlib_alloc_destroy(&alloc);
}

static void rounds_sizes_and_honours_alignment(void **state)
{
    struct ndlib_alloc alloc;
    uint64_t a;
    uint64_t b;
    uint64_t c;

    (void)state;
    assert_int_equal(ndlib_alloc_init(&alloc, TOTAL), 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 1, 1, &a), 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 65, 4096, &b), 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 64, 0, &c), 0);
    assert_int_equal(a, 0);
    assert_int_equal(b, 4096);
    assert_int_equal(c, 64); /* the gap in front of the aligned one is used */
    assert_int_equal(ndlib_alloc_free_bytes(&alloc), TOTAL - 64 - 128 - 64);
    ndlib_alloc_destroy(&alloc);
}

static void refuses_impossible_arguments(void **state)
{
    struct ndlib_alloc alloc;
    uint64_t offset = 77;

    (void)state;
    assert_int_equal(ndlib_alloc_init(&alloc, TOTAL), 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 0, 0, &offset), -EINVAL);
    assert_int_equal(ndlib_alloc_take(&alloc, 64, 3, &offset), -EINVAL);
    assert_int_equal(ndlib_alloc_take(&alloc, 64, 192, &offset), -EINVAL);
    assert_int_equal(ndlib_alloc_take(&alloc, 64, UINT64_C(1) << 63, &offset), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(ndlib_alloc_take(&alloc, 64, UINT64_C(1) << 63, &offset), -ENOSPC);
    assert_int_equal(ndlib_alloc_give(&alloc, 64), -EINVAL);
    assert_int_equal(ndlib_alloc_give(&alloc, 32), -EINVAL);
    assert_int_equal(ndlib_alloc_give(&alloc, TOTAL), -EINVAL);
    assert_int_equal(ndlib_alloc_give(&alloc, 0), 0);
    assert_int_equal(ndlib_alloc_give(&alloc, 0), -EINVAL);
    ndlib_alloc_destroy(&alloc);
}

/* Random takes and gives against a map of which 64-byte units are in use. */
static void never_overlaps_and_never_loses_memory(void **state)
{
    enum { LIVE = 64, UNITS = TOTAL / NDLIB_ALLOC_UNIT };
    struct {
        uint64_t offset;
        uint64_t bytes;
    } live[LIVE] = {{0, 0}};
    static uint8_t used[UNITS];
    struct ndlib_alloc alloc;
    uint32_t random = 12345;

    (void)state;
    print_message("# seed %u\n", random);
    assert_int_equal(ndlib_alloc_init(&alloc, TOTAL), 0);
    for (unsigned round = 0; round < 20000; round++) {
        unsigned which;

        random = random * 1664525 + 1013904223;
        which = (random >> 8) % LIVE;
        if (live[which].bytes != 0) {
            assert_int_equal(ndlib_alloc_give(&alloc, live[which].offset), 0);
            for (uint64_t i = 0; i < live[which].bytes; i += NDLIB_ALLOC_UNIT) {
                used[(live[which].offset + i) / NDLIB_ALLOC_UNIT] = 0;
            }
            live[which].bytes = 0;
        } else {
            uint64_t bytes = 1 + (random >> 14) % 3000;
            uint64_t alignment = UINT64_C(1) << (random >> 27) % 13;
            uint64_t offset;
            int rc = ndlib_alloc_take(&alloc, bytes, alignment, &offset);

            if (rc == -ENOSPC) {
                continue;
            }
            assert_int_equal(rc, 0);
            assert_int_equal(offset % alignment, 0);
            assert_true(offset + bytes <= TOTAL);
            live[which].offset = offset;
            live[which].bytes = bytes;
            for (uint64_t i = 0; i < bytes; i += NDLIB_ALLOC_UNIT) {
                assert_int_equal(used[(offset + i) / NDLIB_ALLOC_UNIT], 0);
                used[(offset + i) / NDLIB_ALLOC_UNIT] = 1;
            }
        }
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (live[i].bytes != 0) {
            assert_int_equal(ndlib_alloc_give(&alloc, live[i].offset), 0);
        }
    }
    /* Free, and in one piece again. */
    assert_int_equal(ndlib_alloc_take(&alloc, TOTAL, 0, &live[0].offset), 0);
    ndlib_alloc_destroy(&alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_out_and_takes_back_everything),
        cmocka_unit_test(rounds_sizes_and_honours_alignment),
        cmocka_unit_test(refuses_impossible_arguments),
        cmocka_unit_test(never_overlaps_and_never_loses_memory),
    };

    return cmocka_run_group_tests_name("driver allocator", tests, NULL, NULL);
}
