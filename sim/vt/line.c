/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of a fixed rate, in exact arithmetic: a million frames take a million times as long as one. */
#include "vt/line.h"

#define BITS_NS UINT64_C(8000000000) /* bits in a byte, times ns in a second */

uint64_t ndsim_line_backlog(const struct ndsim_line *line, uint64_t now_ns)
{
    unsigned __int128 bits_ns;

    if (line->bits_per_s == 0 || line->free_ns < now_ns) {
        return 0;
    }
    bits_ns = (unsigned __int128)(line->free_ns - now_ns) * line->bits_per_s + line->rest;
    return (uint64_t)((bits_ns + BITS_NS - 1) / BITS_NS);
}

uint64_t ndsim_line_send(struct ndsim_line *line, uint32_t bytes, uint64_t now_ns)
{
    uint64_t bits_ns = bytes * BITS_NS;

    if (line->bits_per_s == 0) {
        return now_ns;
    }
    if (line->free_ns < now_ns) {
        line->free_ns = now_ns;
        line->rest = 0;
    }
    line->rest += bits_ns % line->bits_per_s;
    line->free_ns += bits_ns / line->bits_per_s + line->rest / line->bits_per_s;
    line->rest %= line->bits_per_s;
    return line->free_ns + (line->rest != 0);
}
