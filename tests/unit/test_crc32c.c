/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C: known vectors, tables against instructions, and the copy at every alignment and length. */
#include "unit.h"

#include "platform_cpu.h"

#define ROOM 2048

/* Each with the instructions that it names, where the CPU has them. */
static struct {
    const char *name;
    uint64_t features;
    struct ndfw fw;
    bool here;
} levels[] = {
    {.name = "tables"},
    {.name = "crc32 instruction", .features = NETDAM_FW_CPU_SSE42},
    {.name = "PCLMULQDQ", .features = NETDAM_FW_CPU_SSE42 | NETDAM_FW_CPU_PCLMUL},
    {.name = "VPCLMULQDQ",
     .features = NETDAM_FW_CPU_SSE42 | NETDAM_FW_CPU_PCLMUL | NETDAM_FW_CPU_AVX512F | NETDAM_FW_CPU_VPCLMUL},
};

#define EACH_LEVEL(l)                                                                                                  \
    for (size_t l = 0; l < ARRAY_SIZE(levels); l++)                                                                    \
        if (levels[l].here)

static int set_up(void **state)
{
    (void)state;
    for (size_t l = 0; l < ARRAY_SIZE(levels); l++) {
        ndfw_crc32c_prepare(&levels[l].fw);
        levels[l].fw.config.cpu_features = levels[l].features;
        levels[l].here = (ndfw_platform_cpu_features() & levels[l].features) == levels[l].features;
        if (!levels[l].here) {
            print_message("# not tested: this CPU, or its operating system, does not offer %s\n", levels[l].name);
        }
    }
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
        EACH_LEVEL(l)
        {
            assert_int_equal(ndfw_crc32c(&levels[l].fw, 0, vectors[i].data, vectors[i].bytes), vectors[i].crc);
        }
    }
}

static void levels_agree_at_every_length_and_alignment(void **state)
{
    struct ndtest_random random = {7};
    uint8_t data[ROOM];

    (void)state;
    ndtest_random_fill(&random, data, sizeof(data));
    for (unsigned start = 0; start < 8; start++) {
        for (unsigned bytes = 0; bytes <= 1200; bytes++) {
            uint32_t want = ndtest_crc32c(0, data + start, bytes);

            EACH_LEVEL(l)
            {
                assert_int_equal(ndfw_crc32c(&levels[l].fw, 0, data + start, bytes), want);
            }
        }
    }
}

static void parts_add_up_to_the_whole(void **state)
{
    struct ndtest_random random = {8};
    uint8_t data[700];

    (void)state;
    ndtest_random_fill(&random, data, sizeof(data));
    EACH_LEVEL(l)
    {
        const struct ndfw *fw = &levels[l].fw;
        uint32_t whole = ndtest_crc32c(0, data, sizeof(data));

        for (unsigned cut = 0; cut <= sizeof(data); cut++) {
            assert_int_equal(ndfw_crc32c(fw, ndfw_crc32c(fw, 0, data, cut), data + cut, sizeof(data) - cut), whole);
        }
    }
}

static void every_single_bit_counts(void **state)
{
    uint8_t data[576] = {0};

    (void)state;
    EACH_LEVEL(l)
    {
        uint32_t right = ndfw_crc32c(&levels[l].fw, 0, data, sizeof(data));

        for (unsigned bit = 0; bit < 8 * sizeof(data); bit++) {
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_not_equal(ndfw_crc32c(&levels[l].fw, 0, data, sizeof(data)), right);
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

static void copy_copies_and_sums(const struct ndfw *fw, const uint8_t *source, uint8_t *target, unsigned to,
                                 unsigned bytes)
{
    uint8_t expected[ROOM];

    memset(target, 0xc9, ROOM);
    memset(expected, 0xc9, ROOM);
    memcpy(expected + to, source, bytes);
    assert_int_equal(ndfw_crc32c_copy(fw, 0, target + to, source, bytes), ndtest_crc32c(0, source, bytes));
    assert_memory_equal(target, expected, ROOM);
}

static void copy_copies_and_sums_at_every_alignment_and_length(void **state)
{
    struct ndtest_random random = {9};
    uint64_t source_words[ROOM / 8], target_words[ROOM / 8];
    uint8_t *source = (uint8_t *)source_words, *target = (uint8_t *)target_words;

    (void)state;
    ndtest_random_fill(&random, source, ROOM);
    EACH_LEVEL(l)
    {
        for (unsigned from = 0; from < 8; from++) {
            for (unsigned to = 0; to < 8; to++) {
                for (unsigned bytes = 0; bytes <= 72; bytes++) {
                    copy_copies_and_sums(&levels[l].fw, source + from, target, 16 + to, bytes);
                }
                for (unsigned bytes = 100 + to; bytes <= 1200; bytes += 7) {
                    copy_copies_and_sums(&levels[l].fw, source + from, target, 16 + to, bytes);
                }
            }
        }
    }
}

static void copy_reads_nothing_outside(void **state)
{
    uint8_t target[ROOM];

    (void)state;
    /* Exact allocations: a sanitizer, or valgrind, sees a load beyond. */
    for (unsigned bytes = 1; bytes <= 600; bytes++) {
        uint8_t *source = malloc(bytes);

        memset(source, (int)bytes, bytes);
        EACH_LEVEL(l)
        {
            assert_int_equal(ndfw_crc32c_copy(&levels[l].fw, 0, target, source, bytes),
                             ndtest_crc32c(0, source, bytes));
            assert_int_equal(ndfw_crc32c(&levels[l].fw, 0, source, bytes), ndtest_crc32c(0, source, bytes));
        }
        free(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_vectors),
        cmocka_unit_test(levels_agree_at_every_length_and_alignment),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(every_single_bit_counts),
        cmocka_unit_test(copy_copies_and_sums_at_every_alignment_and_length),
        cmocka_unit_test(copy_reads_nothing_outside),
    };

    return cmocka_run_group_tests_name("crc32c", tests, set_up, NULL);
}
