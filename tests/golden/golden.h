/* SPDX-License-Identifier: BSD-3-Clause */
/* Loader of golden packets: reads a NAME.hex file, hexadecimal bytes with comments from # to the line's end. */
#ifndef NETDAM_GOLDEN_H
#define NETDAM_GOLDEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static inline int golden_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

/*
 * Fills `frame` from the file at `path`. Returns the number of bytes, or 0 if the file cannot be read, is empty, is
 * longer than `room`, or holds anything but pairs of lower-case digits, blanks and comments.
 */
static inline size_t golden_load_file(const char *path, uint8_t *frame, size_t room)
{
    FILE *f = fopen(path, "r");
    size_t bytes = 0;
    int c;

    if (f == NULL) {
        return 0;
    }
    while ((c = getc(f)) != EOF) {
        if (c == '#') {
            while (c != '\n' && c != EOF) {
                c = getc(f);
            }
        } else if (c != ' ' && c != '\n') {
            int high = golden_digit(c);
            int low = golden_digit(getc(f));

            if (high < 0 || low < 0 || bytes == room) {
                bytes = 0;
                break;
            }
            frame[bytes++] = (uint8_t)(high << 4 | low);
        }
    }
    fclose(f);
    return bytes;
}

/* The same for the packet `name` in `directory`. */
static inline size_t golden_load(const char *directory, const char *name, uint8_t *frame, size_t room)
{
    char path[1024];
    int n = snprintf(path, sizeof(path), "%s/%s.hex", directory, name);

    return n > 0 && (size_t)n < sizeof(path) ? golden_load_file(path, frame, room) : 0;
}

/* A line of manifest.txt. */
struct golden_entry {
    char name[64];
    char kind[16];     /* encode, decode, dropped or malformed */
    char expected[32]; /* name of a status or counter */
    char answer[64];   /* name of a packet, or "-" */
};

/* The next line that is no comment. Returns 1, 0 at the end, -1 if the line has not four columns. */
static inline int golden_next(FILE *manifest, struct golden_entry *entry)
{
    char line[512];

    while (fgets(line, sizeof(line), manifest) != NULL) {
        if (line[0] != '#' && line[strspn(line, " \n")] != '\0') {
            return sscanf(line, "%63s %15s %31s %63s", entry->name, entry->kind, entry->expected, entry->answer) == 4
                       ? 1
                       : -1;
        }
    }
    return 0;
}

#endif
