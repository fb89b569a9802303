/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tools share: one-line errors, exit codes, numbers, and names of results. */
#ifndef NETDAM_TOOLS_COMMON_H
#define NETDAM_TOOLS_COMMON_H

#include "netdam.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

extern const char *tool_name;

/* Prints "TOOL: message" and returns EXIT_FAILED. */
int failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with a hint at --help; returns EXIT_USAGE. */
int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a function of the library returned, as text: a status or an errno value. */
const char *result_text(int result);

/*
 * A log callback that keeps the last line about an error, and the line. A function of the library that fails may have
 * said why in more detail than its result does.
 */
void remember_error(void *opaque, enum netdam_log_level level, const char *line);
const char *remembered_error(void);

/* The same as failed(), of a device: the line that is kept, or else what the library returned. */
int device_failed(const char *device, int result);

/* The device that was named, or `otherwise`. */
const char *device_or(const char *device, const char *otherwise);

/* Writes out what was printed; EXIT_OK, or EXIT_FAILED, which is told. */
int flush_output(void);

/* "4096", "0x1000", "4K"; false if it is no such thing. */
bool parse_size(const char *text, uint64_t *value);

/* A value of a type, as the bits of an element; false if it is none or out of range. Not for 16-bit floats. */
bool parse_value(const char *text, unsigned type, uint64_t *bits);

/* A region's key: decimal, or hexadecimal behind 0x; false if it is no such thing. As netdam-node reads it. */
bool parse_key(const char *text, uint64_t *key);

/* A tenant as tools are told of it, "ID:KEY:MODE". */
struct tenant {
    uint32_t id; /* 0: none */
    unsigned mode;
    uint8_t key[16];
};
/* False if it is no such thing. */
bool parse_tenant(const char *text, struct tenant *tenant);

/* Prints a name in lower case. */
void print_lower(const char *name);

#endif
