/* SPDX-License-Identifier: BSD-3-Clause */
/* One-line errors, exit codes, numbers and names for the tools. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#include "netdam/wire.h"
#include "size.h"

static pthread_mutex_t last_error_mutex = PTHREAD_MUTEX_INITIALIZER;
static char last_error[256];

int failed(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", tool_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int misused(const char *format, ...)
{
    va_list arguments;

    fprintf(stderr, "%s: ", tool_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, " (see %s --help)\n", tool_name);
    return EXIT_USAGE;
}

const char *result_text(int result)
{
    static _Thread_local char text[160];

    if (result < 0) {
        return strerror(-result);
    }
    if (!netdam_status_name((unsigned)result)) {
        snprintf(text, sizeof(text), "undefined status 0x%02x", (unsigned)result);
    } else {
        snprintf(text, sizeof(text), "%s: %s", netdam_status_name((unsigned)result),
                 netdam_status_text((unsigned)result));
    }
    return text;
}

void remember_error(void *opaque, enum netdam_log_level level, const char *line)
{
    (void)opaque;
    if (level != NETDAM_LOG_ERROR) {
        return;
    }
    pthread_mutex_lock(&last_error_mutex);
    snprintf(last_error, sizeof(last_error), "%s", line);
    pthread_mutex_unlock(&last_error_mutex);
}

const char *remembered_error(void)
{
    static char copy[sizeof(last_error)];

    pthread_mutex_lock(&last_error_mutex);
    memcpy(copy, last_error, sizeof(copy));
    pthread_mutex_unlock(&last_error_mutex);
    return copy;
}

int device_failed(const char *device, int result)
{
    return remembered_error()[0] ? failed("%s", remembered_error()) : failed("%s: %s", device, result_text(result));
}

const char *device_or(const char *device, const char *otherwise)
{
    return device != NULL && device[0] != '\0' ? device : otherwise;
}

int flush_output(void)
{
    return fflush(stdout) == 0 ? EXIT_OK : failed("standard output: write error");
}

bool parse_size(const char *text, uint64_t *value)
{
    return ndlib_parse_size(text, value);
}

static bool parse_float(const char *text, unsigned type, uint64_t *bits)
{
    char *end;

    errno = 0;
    if (type == NETDAM_TYPE_F32) {
        float value = strtof(text, &end);
        uint32_t word;

        memcpy(&word, &value, sizeof(word));
        *bits = word;
    } else if (type == NETDAM_TYPE_F64) {
        double value = strtod(text, &end);

        memcpy(bits, &value, sizeof(*bits));
    } else {
        return false;
    }
    return end != text && *end == '\0' && errno == 0;
}

bool parse_value(const char *text, unsigned type, uint64_t *bits)
{
    unsigned width = 8 * netdam_type_bytes(type);
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    char *end;

    if (width == 0 || isspace((unsigned char)text[0])) {
        return false;
    }
    if (netdam_type_class_of(type) == NETDAM_TYPE_CLASS_FLOAT) {
        return parse_float(text, type, bits);
    }
    errno = 0;
    if (text[0] == '-') {
        long long value = strtoll(text, &end, 0);
        long long least = width == 64 ? INT64_MIN : -(INT64_C(1) << (width - 1));

        if (netdam_type_class_of(type) != NETDAM_TYPE_CLASS_SIGNED || value < least) {
            return false;
        }
        *bits = (uint64_t)value & mask;
    } else {
        unsigned long long value = strtoull(text, &end, 0);
        uint64_t largest = netdam_type_class_of(type) == NETDAM_TYPE_CLASS_SIGNED ? mask >> 1 : mask;

        if (value > largest) {
            return false;
        }
        *bits = value;
    }
    return end != text && *end == '\0' && errno == 0;
}

bool parse_key(const char *text, uint64_t *key)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end;

    if (!isxdigit((unsigned char)text[hex ? 2 : 0])) {
        return false;
    }
    errno = 0;
    *key = strtoull(hex ? text + 2 : text, &end, hex ? 16 : 10);
    return *end == '\0' && errno == 0;
}

bool parse_tenant(const char *text, struct tenant *tenant)
{
    const char *key = strchr(text, ':');
    unsigned long long id;
    char *end;

    if (key == NULL || *text < '0' || *text > '9' || strspn(key + 1, "0123456789abcdefABCDEF") != 32 ||
        key[33] != ':') {
        return false;
    }
    for (unsigned i = 0; i < 16; i++) {
        const char digits[3] = {key[1 + 2 * i], key[2 + 2 * i], 0};

        tenant->key[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    id = strtoull(text, &end, 10);
    tenant->id = (uint32_t)id;
    tenant->mode = strcmp(key + 34, "encrypt") == 0        ? NETDAM_TENANT_MODE_ENCRYPT
                   : strcmp(key + 34, "authenticate") == 0 ? NETDAM_TENANT_MODE_AUTHENTICATE
                                                           : NETDAM_TENANT_MODE_NONE;
    return end == key && id != 0 && id <= UINT32_MAX && tenant->mode != NETDAM_TENANT_MODE_NONE;
}

void print_lower(const char *name)
{
    for (; *name; name++) {
        putchar(tolower((unsigned char)*name));
    }
}
