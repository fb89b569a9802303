/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests use of cmocka, for a machine without an operating system: same names, same meaning, TAP always. */
#ifndef RISCV_CMOCKA_H
#define RISCV_CMOCKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    CMUnitTestFunction test_func;
    CMFixtureFunction setup_func;
    CMFixtureFunction teardown_func;
    void *initial_state;
};

#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                                            \
    {                                                                                                                  \
#f, f, setup, teardown, NULL                                                                                   \
    }
#define cmocka_unit_test_setup(f, setup)       cmocka_unit_test_setup_teardown(f, setup, NULL)
#define cmocka_unit_test_teardown(f, teardown) cmocka_unit_test_setup_teardown(f, NULL, teardown)
#define cmocka_unit_test(f)                    cmocka_unit_test_setup_teardown(f, NULL, NULL)

#define cmocka_run_group_tests_name(name, tests, setup, teardown)                                                      \
    cmocka_bare_run(name, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run_group_tests_name(#tests, tests, setup, teardown)

/* How many tests have failed. A failing group setup fails them all; what has no name is none. */
int cmocka_bare_run(const char *group, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                    CMFixtureFunction teardown);

/* Numbers and pointers alike are compared as 64 bits, as cmocka does it. */
#define CMOCKA_BARE_VALUE(x)   ((uintmax_t)(x))
#define CMOCKA_BARE_POINTER(x) ((uintmax_t)(uintptr_t)(x))

#define assert_true(c)     cmocka_bare_require(CMOCKA_BARE_VALUE(c) != 0, "not true: " #c, __FILE__, __LINE__)
#define assert_false(c)    cmocka_bare_require(CMOCKA_BARE_VALUE(c) == 0, "not false: " #c, __FILE__, __LINE__)
#define assert_null(p)     cmocka_bare_require(CMOCKA_BARE_POINTER(p) == 0, "not NULL: " #p, __FILE__, __LINE__)
#define assert_non_null(p) cmocka_bare_require(CMOCKA_BARE_POINTER(p) != 0, "NULL: " #p, __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                                                         \
    cmocka_bare_compare(CMOCKA_BARE_VALUE(a), CMOCKA_BARE_VALUE(b), true, #a ", " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b)                                                                                     \
    cmocka_bare_compare(CMOCKA_BARE_VALUE(a), CMOCKA_BARE_VALUE(b), false, #a ", " #b, __FILE__, __LINE__)
#define assert_ptr_equal(a, b)                                                                                         \
    cmocka_bare_compare(CMOCKA_BARE_POINTER(a), CMOCKA_BARE_POINTER(b), true, #a ", " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b)                                                                                     \
    cmocka_bare_compare(CMOCKA_BARE_POINTER(a), CMOCKA_BARE_POINTER(b), false, #a ", " #b, __FILE__, __LINE__)
#define assert_in_range(value, low, high)                                                                              \
    cmocka_bare_range(CMOCKA_BARE_VALUE(value), CMOCKA_BARE_VALUE(low), CMOCKA_BARE_VALUE(high), #value, __FILE__,     \
                      __LINE__)
#define assert_memory_equal(a, b, bytes)                                                                               \
    cmocka_bare_memory((const void *)(a), (const void *)(b), bytes, true, #a ", " #b, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, bytes)                                                                           \
    cmocka_bare_memory((const void *)(a), (const void *)(b), bytes, false, #a ", " #b, __FILE__, __LINE__)
#define assert_string_equal(a, b)     cmocka_bare_string(a, b, true, #a ", " #b, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) cmocka_bare_string(a, b, false, #a ", " #b, __FILE__, __LINE__)
#define fail()                        cmocka_bare_require(false, "fail()", __FILE__, __LINE__)
#define skip()                        cmocka_bare_skip()
#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        print_error(__VA_ARGS__);                                                                                      \
        print_error("\n");                                                                                             \
        fail();                                                                                                        \
    } while (0)

void cmocka_bare_require(bool holds, const char *text, const char *file, int line);
void cmocka_bare_compare(uintmax_t a, uintmax_t b, bool equal, const char *text, const char *file, int line);
void cmocka_bare_range(uintmax_t value, uintmax_t low, uintmax_t high, const char *text, const char *file, int line);
void cmocka_bare_memory(const void *a, const void *b, size_t bytes, bool equal, const char *text, const char *file,
                        int line);
void cmocka_bare_string(const char *a, const char *b, bool equal, const char *text, const char *file, int line);
_Noreturn void cmocka_bare_skip(void);

__attribute__((format(printf, 1, 2))) void print_message(const char *format, ...);
__attribute__((format(printf, 1, 2))) void print_error(const char *format, ...);

#endif
