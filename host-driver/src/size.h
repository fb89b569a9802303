/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes as people write them: 4096, 0x1000, 4K, 64M, 1G. */
#ifndef NDLIB_SIZE_H
#define NDLIB_SIZE_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* All of `text` must be the number; no sign, no blank. */
static inline bool ndlib_parse_size(const char *text, uint64_t *value)
{
    unsigned long long number;
    unsigned shift = 0;
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    number = strtoull(text, &end, 0);
    if (errno != 0) {
        return false;
    }
    switch (toupper((unsigned char)*end)) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    }
    if (shift != 0) {
        end++;
    }
    if (*end != '\0' || number > UINT64_MAX >> shift) {
        return false;
    }
    *value = (uint64_t)number << shift;
    return true;
}

#endif
