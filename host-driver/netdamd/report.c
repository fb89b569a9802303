/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines, each with one write(2), and a limit on those that others cause. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "internal.h"
#include "report.h"

#define LINES_BURST  200u
#define LINE_COST_NS UINT64_C(50000000) /* 20 lines a second */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t paid_until_ns; /* lines so far are paid for when this time has come */
static unsigned left_out;
static atomic_bool erred;

static void print(const char *format, va_list arguments)
{
    char line[512];
    int bytes = snprintf(line, sizeof(line), "netdamd: ");

    vsnprintf(line + bytes, sizeof(line) - (size_t)bytes - 1, format, arguments);
    for (bytes = 0; line[bytes]; bytes++) {
        /* A socket's path may hold anything. */
        if ((unsigned char)line[bytes] < ' ') {
            line[bytes] = '?';
        }
    }
    line[bytes++] = '\n';
    /* Nobody can be told that this fails. */
    if (write(STDERR_FILENO, line, (size_t)bytes) < 0) {
        return;
    }
}

void ndbroker_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print(format, arguments);
    va_end(arguments);
}

/* Whether one more line is affordable; *missed becomes how many were not since the last that was. */
static bool may_print(unsigned *missed)
{
    uint64_t now = ndlib_now_ns();
    bool good;

    pthread_mutex_lock(&mutex);
    if (paid_until_ns < now) {
        paid_until_ns = now;
    }
    good = paid_until_ns - now < LINES_BURST * LINE_COST_NS;
    if (good) {
        paid_until_ns += LINE_COST_NS;
        *missed = left_out;
        left_out = 0;
    } else {
        left_out++;
    }
    pthread_mutex_unlock(&mutex);
    return good;
}

static void print_limited(const char *format, va_list arguments)
{
    unsigned missed;

    if (!may_print(&missed)) {
        return;
    }
    if (missed > 0) {
        ndbroker_say("%u lines left out", missed);
    }
    print(format, arguments);
}

void ndbroker_say_limited(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_limited(format, arguments);
    va_end(arguments);
}

void ndbroker_library_line(void *opaque, enum netdam_log_level level, const char *line)
{
    (void)opaque;
    if (level == NETDAM_LOG_ERROR) {
        atomic_store(&erred, true);
    }
    if (level != NETDAM_LOG_INFO) {
        ndbroker_say_limited("%s", line);
    }
}

bool ndbroker_library_erred(void)
{
    return atomic_load(&erred);
}
