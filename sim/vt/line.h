/* SPDX-License-Identifier: BSD-3-Clause */
/* A line that puts one frame after the other on the wire at a fixed rate: when each has left, and how much waits. */
#ifndef NDSIM_VT_LINE_H
#define NDSIM_VT_LINE_H

#include <stdint.h>

/* Time is kept exactly: `free_ns` plus `rest`/`bits_per_s` ns. */
struct ndsim_line {
    uint64_t bits_per_s; /* 0: takes no time */
    uint64_t free_ns;    /* everything accepted so far has left then */
    uint64_t rest;
};

/* Bytes that are accepted and have not left at `now_ns`, a part of one counted in full. */
uint64_t ndsim_line_backlog(const struct ndsim_line *line, uint64_t now_ns);

/* Accepts `bytes`; returns when the last bit leaves, rounded up to whole ns. */
uint64_t ndsim_line_send(struct ndsim_line *line, uint32_t bytes, uint64_t now_ns);

#endif
