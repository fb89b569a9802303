/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C: known vectors, tables against instructions, and the copy at every alignment and length. */
#include "unit.h"

#define ROOM 512

static struct ndfw plain; /* tables */
static struct ndfw fast;  /* instructions, where the CPU has them */
static bool has_instructions;

static int set_up(void **state)
{
    (void)state;
    ndfw_crc32c_prepare(&plain);
    ndfw_crc32c_prepare(&fast);
#if defined(__x86_64__)
    has_instructions = __builtin_cpu_supports("sse4.2") != 0;
#endif
    fast.config.cpu_features = has_instructions ? NETDAM_FW_CPU_SSE42 : 0;
    return 0;
}

static void known_vectors(void **state)
{
    static uint8_t zeros[32], ones[32], rising[32], falling[32];
    const struct {
        const void *data;
        size_t bytes;
        uint32_t crc;
    } vectors[] = {
        {"", 0, 0x00000000},
        {"a", 1, 0xc1d04330},
        {"123456789", 9, 0xe3069283},
        /* RFC 3720, B.4 */
        {zeros, 32, 0x8a9136aa},
        {ones, 32, 0x62a8ab43},
        {rising, 32, 0x46dd794e},
        {falling, 32, 0x113fdb5c},
    };

    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        ones[i] = 0xff;
        rising[i] = (uint8_t)i;
        falling[i] = (uint8_t)(31 - i);
    }
    for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
        assert_int_equal(ndfw_crc32c(&plain, 0, vectors[i].data, vectors[i].bytes), vectors[i].crc);
        assert_int_equal(ndfw_crc32c(&fast, 0, vectors[i].data, vectors[i].bytes), vectors[i].crc);
    }
}

static void tables_and_instructions_agree_at_every_length_and_alignment(void **state)
{
    struct ndtest_random random = {7};
    uint8_t data[ROOM];

    (void)state;
    if (!has_instructions) {
        skip();
    }
    ndtest_random_fill(&random, data, sizeof(data));
    for (unsigned start = 0; start < 8; start++) {
        for (unsigned bytes = 0; bytes <= 300; bytes++) {
            uint32_t want = ndtest_crc32c(0, data + start, bytes);

            assert_int_equal(ndfw_crc32c(&plain, 0, data + start, bytes), want);
            assert_int_equal(ndfw_crc32c(&fast, 0, data + start, bytes), want);
        }
    }
}

static void parts_add_up_to_the_whole(void **state)
{
    struct ndtest_random random = {8};
    uint8_t data[100];
    uint32_t whole;

    (void)state;
    ndtest_random_fill(&random, data, sizeof(data));
    whole = ndfw_crc32c(&plain, 0, data, sizeof(data));
    for (unsigned cut = 0; cut <= sizeof(data); cut++) {
        assert_int_equal(ndfw_crc32c(&plain, ndfw_crc32c(&plain, 0, data, cut), data + cut, sizeof(data) - cut), whole);
        assert_int_equal(ndfw_crc32c(&fast, ndfw_crc32c(&fast, 0, data, cut), data + cut, sizeof(data) - cut), whole);
    }
}

static void every_single_bit_counts(void **state)
{
    uint8_t data[64] = {0};
    uint32_t right = ndfw_crc32c(&plain, 0, data, sizeof(data));

    (void)state;
    for (unsigned bit = 0; bit < 8 * sizeof(data); bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(ndfw_crc32c(&plain, 0, data, sizeof(data)), right);
        assert_int_not_equal(ndfw_crc32c(&fast, 0, data, sizeof(data)), right);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void copy_copies_and_sums_at_every_alignment_and_length(void **state)
{
    struct ndtest_random random = {9};
    uint64_t source_words[ROOM / 8], target_words[ROOM / 8];
    uint8_t *source = (uint8_t *)source_words, *target = (uint8_t *)target_words;
    const struct ndfw *firmwares[] = {&plain, &fast};

    (void)state;
    ndtest_random_fill(&random, source, ROOM);
    for (unsigned f = 0; f < 2; f++) {
        for (unsigned from = 0; from < 8; from++) {
            for (unsigned to = 0; to < 8; to++) {
                for (unsigned bytes = 0; bytes <= 72; bytes++) {
                    memset(target, 0xc9, ROOM);
                    assert_int_equal(ndfw_crc32c_copy(firmwares[f], 0, target + 16 + to, source + from, bytes),
                                     ndtest_crc32c(0, source + from, bytes));
                    assert_memory_equal(target + 16 + to, source + from, bytes);
                    for (unsigned i = 0; i < 16 + to; i++) {
                        assert_int_equal(target[i], 0xc9);
                    }
                    for (unsigned i = 16 + to + bytes; i < 128; i++) {
                        assert_int_equal(target[i], 0xc9);
                    }
                }
            }
        }
    }
}

static void copy_reads_nothing_outside(void **state)
{
    uint8_t target[64];

    (void)state;
    /* Exact allocations: a sanitizer, or valgrind, sees a load beyond. */
    for (unsigned bytes = 1; bytes <= 40; bytes++) {
        uint8_t *source = malloc(bytes);

        memset(source, (int)bytes, bytes);
        assert_int_equal(ndfw_crc32c_copy(&fast, 0, target, source, bytes), ndtest_crc32c(0, source, bytes));
        assert_int_equal(ndfw_crc32c_copy(&plain, 0, target, source, bytes), ndtest_crc32c(0, source, bytes));
        free(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_vectors),
        cmocka_unit_test(tables_and_instructions_agree_at_every_length_and_alignment),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(every_single_bit_counts),
        cmocka_unit_test(copy_copies_and_sums_at_every_alignment_and_length),
        cmocka_unit_test(copy_reads_nothing_outside),
    };

    return cmocka_run_group_tests_name("crc32c", tests, set_up, NULL);
}
