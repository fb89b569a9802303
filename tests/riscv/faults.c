/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that go wrong, each in its own way, and one that does not: what runs the others has to tell them apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "board.h"

static const int constant = 1;
static volatile int zero; /* the compiler does not know */

static void holds(void **state)
{
    (void)state;
    assert_int_equal(zero, 0);
}

static void is_skipped(void **state)
{
    (void)state;
    skip();
}

static void does_not_hold(void **state)
{
    (void)state;
    assert_int_equal(zero, 1);
}

static void says_why(void **state)
{
    (void)state;
    fail_msg("because of %d", zero);
}

static void loads_from_null(void **state)
{
    (void)state;
    (void)*(volatile int *)(uintptr_t)zero;
}

static void stores_into_a_constant(void **state)
{
    (void)state;
    *(volatile int *)(uintptr_t)&constant = 2;
}

static unsigned descend(volatile const uint8_t *above)
{
    volatile uint8_t frame[4096];

    frame[0] = above == NULL ? 0 : above[0];
    return zero == 0 ? descend(frame) + frame[0] : 0;
}

static void recurses_without_end(void **state)
{
    (void)state;
    assert_int_equal(descend(NULL), 0);
}

static void waits_without_end(void **state)
{
    (void)state;
    while (zero == 0) {
    }
}

static void exits(void **state)
{
    (void)state;
    exit(0);
}

static int setup_fails(void **state)
{
    (void)state;
    return -1;
}

#define RUN(test, setup)                                                                                               \
    (void)argc;                                                                                                        \
    (void)argv;                                                                                                        \
    const struct CMUnitTest tests[] = {cmocka_unit_test(holds), cmocka_unit_test(test), cmocka_unit_test(holds)};      \
    return cmocka_run_group_tests_name("faults", tests, setup, NULL)

static int passes(int argc, char **argv)
{
    RUN(is_skipped, NULL);
}

static int fails(int argc, char **argv)
{
    RUN(does_not_hold, NULL);
}

static int fails_with_words(int argc, char **argv)
{
    RUN(says_why, NULL);
}

static int fails_in_setup(int argc, char **argv)
{
    RUN(holds, setup_fails);
}

static int traps(int argc, char **argv)
{
    RUN(loads_from_null, NULL);
}

static int writes_constant(int argc, char **argv)
{
    RUN(stores_into_a_constant, NULL);
}

static int overflows_stack(int argc, char **argv)
{
    RUN(recurses_without_end, NULL);
}

static int hangs(int argc, char **argv)
{
    RUN(waits_without_end, NULL);
}

static int leaves(int argc, char **argv)
{
    RUN(exits, NULL);
}

static int says_nothing(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return zero;
}

static int plans_more(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("1..2\nok 1 - the only one");
    return zero;
}

static int forgives(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("1..1\nnot ok 1 - and yet it ends with status 0");
    return zero;
}

static int complains(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("1..1\nok 1 - and yet it ends with status 1");
    return 1;
}

const struct board_program board_programs[] = {
    {.name = "passes", .main = passes},
    {.name = "fails", .main = fails},
    {.name = "fails_with_words", .main = fails_with_words},
    {.name = "fails_in_setup", .main = fails_in_setup},
    {.name = "traps", .main = traps},
    {.name = "writes_constant", .main = writes_constant},
    {.name = "overflows_stack", .main = overflows_stack},
    {.name = "hangs", .main = hangs},
    {.name = "leaves", .main = leaves},
    {.name = "says_nothing", .main = says_nothing},
    {.name = "plans_more", .main = plans_more},
    {.name = "forgives", .main = forgives},
    {.name = "complains", .main = complains},
};
const size_t board_program_count = sizeof(board_programs) / sizeof(board_programs[0]);
