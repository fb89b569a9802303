/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines on standard error. */
#ifndef NDBROKER_REPORT_H
#define NDBROKER_REPORT_H

#include <stdbool.h>

#include "netdam.h"

/* Prints "netdamd: message". What clients can cause is limited to some lines a second; lines left out are counted. */
void ndbroker_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ndbroker_say_limited(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The library's log callback; limited, for peers on the network can cause lines. From any thread. */
void ndbroker_library_line(void *opaque, enum netdam_log_level level, const char *line);

/* Whether that has printed an error yet. */
bool ndbroker_library_erred(void);

#endif
