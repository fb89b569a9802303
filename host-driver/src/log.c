/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines: formatted here, printed by the application or nobody. */
#include <stdarg.h>
#include <stdio.h>

#include "backend.h"

void ndlib_log(const struct ndlib_log *log, enum netdam_log_level level, const char *format, ...)
{
    char line[256];
    va_list arguments;

    if (!log->write) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    log->write(log->opaque, level, line);
}
