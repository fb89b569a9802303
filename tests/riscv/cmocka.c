/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the tests of a cmocka group on the bare machine and reports them as TAP. */
#include <cmocka.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum outcome { PASSED, FAILED, SKIPPED };

static jmp_buf leave; /* of the test or fixture that runs */
static bool line_begins = true;

/* Text of any kind becomes comments of TAP, whatever lines it consists of. */
static void print(const char *format, va_list arguments)
{
    char text[512];

    vsnprintf(text, sizeof(text), format, arguments);
    for (const char *c = text; *c != '\0'; c++) {
        if (line_begins && *c != '\n' && *c != '#') {
            fputs("# ", stdout);
        }
        putchar(*c);
        line_begins = *c == '\n';
    }
}

void print_message(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

void print_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

static _Noreturn void fail_at(const char *text, const char *file, int line)
{
    print_error("%s\n%s:%d: failed\n", text, file, line);
    longjmp(leave, FAILED);
}

_Noreturn void cmocka_bare_skip(void)
{
    longjmp(leave, SKIPPED);
}

void cmocka_bare_require(bool holds, const char *text, const char *file, int line)
{
    if (!holds) {
        fail_at(text, file, line);
    }
}

void cmocka_bare_compare(uintmax_t a, uintmax_t b, bool equal, const char *text, const char *file, int line)
{
    if ((a == b) != equal) {
        print_error("0x%llx %s 0x%llx: ", (unsigned long long)a, equal ? "!=" : "==", (unsigned long long)b);
        fail_at(text, file, line);
    }
}

void cmocka_bare_range(uintmax_t value, uintmax_t low, uintmax_t high, const char *text, const char *file, int line)
{
    if (value < low || value > high) {
        print_error("%llu is not in %llu to %llu: ", (unsigned long long)value, (unsigned long long)low,
                    (unsigned long long)high);
        fail_at(text, file, line);
    }
}

void cmocka_bare_memory(const void *a, const void *b, size_t bytes, bool equal, const char *text, const char *file,
                        int line)
{
    const uint8_t *left = a, *right = b;

    if ((memcmp(a, b, bytes) == 0) == equal) {
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (left[i] != right[i]) {
            print_error("byte %zu of %zu: 0x%02x != 0x%02x: ", i, bytes, left[i], right[i]);
            break;
        }
    }
    fail_at(text, file, line);
}

void cmocka_bare_string(const char *a, const char *b, bool equal, const char *text, const char *file, int line)
{
    if ((strcmp(a, b) == 0) != equal) {
        print_error("\"%s\" %s \"%s\": ", a, equal ? "!=" : "==", b);
        fail_at(text, file, line);
    }
}

static enum outcome run_fixture(CMFixtureFunction fixture, void **state)
{
    switch (setjmp(leave)) {
    case PASSED:
        return fixture == NULL || fixture(state) == 0 ? PASSED : FAILED;
    case SKIPPED:
        return SKIPPED;
    default:
        return FAILED;
    }
}

static enum outcome run_function(CMUnitTestFunction function, void **state)
{
    switch (setjmp(leave)) {
    case PASSED:
        function(state);
        return PASSED;
    case SKIPPED:
        return SKIPPED;
    default:
        return FAILED;
    }
}

static enum outcome run_test(const struct CMUnitTest *test, void *group_state)
{
    void *state = test->initial_state != NULL ? test->initial_state : group_state;
    enum outcome outcome = run_fixture(test->setup_func, &state);

    if (outcome != PASSED) {
        return outcome;
    }
    outcome = run_function(test->test_func, &state);
    return run_fixture(test->teardown_func, &state) == PASSED ? outcome : FAILED;
}

int cmocka_bare_run(const char *group, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
                    CMFixtureFunction teardown)
{
    void *state = NULL;
    enum outcome group_outcome = run_fixture(setup, &state);
    size_t named = 0, number = 0;
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        named += tests[i].name != NULL;
    }
    printf("1..%zu\n", named);
    if (group_outcome == FAILED) {
        print_error("%s: the group's setup has failed\n", group);
    }
    for (size_t i = 0; i < count; i++) {
        enum outcome outcome;

        if (tests[i].name == NULL) {
            continue;
        }
        outcome = group_outcome == PASSED ? run_test(&tests[i], state) : group_outcome;
        if (!line_begins) {
            print_message("\n");
        }
        printf("%s %zu - %s%s\n", outcome == FAILED ? "not ok" : "ok", ++number, tests[i].name,
               outcome == SKIPPED ? " # SKIP" : "");
        failed += outcome == FAILED;
    }
    if (group_outcome == PASSED && run_fixture(teardown, &state) != PASSED) {
        print_error("%s: the group's teardown has failed\n", group);
        failed++;
    }
    return failed;
}
