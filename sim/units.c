/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units. */
#include "units.h"

#include <stddef.h>
#include <string.h>

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit sizes[] = {
    {"", 1}, {"K", UINT64_C(1) << 10}, {"M", UINT64_C(1) << 20}, {"G", UINT64_C(1) << 30}, {"T", UINT64_C(1) << 40},
};
static const struct unit rates[] = {
    {"", 1}, {"K", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", UINT64_C(1000000000000)},
};
static const struct unit times[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
static const struct unit chances[] = {{"ppm", 1}, {"%", 10000}};

/*
 * Exact: a fraction is taken only where it makes a whole number of the smallest unit. Without a unit only 0 is, unless
 * the table has an empty one.
 */
static bool parse(const char *text, const struct unit *units, size_t count, uint64_t *value)
{
    uint64_t digits = 0, divisor = 1;
    bool fraction = false;

    if (*text < '0' || *text > '9') {
        return false;
    }
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = true;
            if (text[1] < '0' || text[1] > '9') {
                return false;
            }
            continue;
        }
        if (digits > (UINT64_MAX - 9) / 10 || (fraction && divisor > UINT64_MAX / 10)) {
            return false;
        }
        digits = digits * 10 + (unsigned)(*text - '0');
        divisor *= fraction ? 10 : 1;
    }
    if (*text == 0 && digits == 0) {
        *value = 0;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, units[i].suffix) == 0) {
            if (digits > UINT64_MAX / units[i].factor || digits * units[i].factor % divisor != 0) {
                return false;
            }
            *value = digits * units[i].factor / divisor;
            return true;
        }
    }
    return false;
}

#define PARSE(text, units, value) parse(text, units, sizeof(units) / sizeof((units)[0]), value)

bool ndsim_size_parse(const char *text, uint64_t *bytes)
{
    return strchr(text, '.') == NULL && PARSE(text, sizes, bytes);
}

bool ndsim_rate_parse(const char *text, uint64_t *bits_per_s)
{
    return PARSE(text, rates, bits_per_s);
}

bool ndsim_time_parse(const char *text, uint64_t *ns)
{
    return PARSE(text, times, ns);
}

bool ndsim_chance_parse(const char *text, uint32_t *parts_per_million)
{
    uint64_t value;

    if (!PARSE(text, chances, &value) || value > 1000000) {
        return false;
    }
    *parts_per_million = (uint32_t)value;
    return true;
}
