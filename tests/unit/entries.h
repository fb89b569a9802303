/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of entries for transactions, put together byte by byte from the specification. */
#ifndef UNIT_ENTRIES_H
#define UNIT_ENTRIES_H

#include "unit.h"

#define COMPARE NETDAM_TRANSACTION_COMPARE
#define FETCH   NETDAM_TRANSACTION_FETCH
#define WRITE   NETDAM_TRANSACTION_WRITE

struct entries {
    uint8_t bytes[UNIT_FRAME_ROOM];
    uint32_t length;
    uint32_t last; /* where the last entry begins */
};

static inline void entries_put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * i);
    }
}

/* `data` NULL: none follows, or zeros where some has to. */
static inline void entries_add_key(struct entries *e, unsigned kind, uint64_t key, uint64_t address, uint32_t length,
                                   const void *data)
{
    uint8_t *at = e->bytes + e->length;

    memset(at, 0, 24);
    at[0] = (uint8_t)kind;
    entries_put(at + 4, length, 4);
    entries_put(at + 8, key, 8);
    entries_put(at + 16, address, 8);
    e->last = e->length;
    e->length += 24;
    if (kind != FETCH) {
        memset(at + 24, 0, (length + 7) / 8 * 8);
        if (data != NULL) {
            memcpy(at + 24, data, length);
        }
        e->length += (length + 7) / 8 * 8;
    }
}

static inline void entries_add(struct entries *e, unsigned kind, uint64_t address, uint32_t length, const void *data)
{
    entries_add_key(e, kind, UNIT_KEY, address, length, data);
}

static inline void entries_add_word(struct entries *e, unsigned kind, uint64_t address, uint64_t value)
{
    uint8_t bytes[8];

    entries_put(bytes, value, 8);
    entries_add(e, kind, address, 8, bytes);
}

/* What is wrong with a list's form. All are made from one list, whose first entry is a COMPARE of 5 bytes. */
struct entries_flaw {
    const char *what;
    void (*make)(struct entries *e);
};

static inline void flaw_none_left(struct entries *e)
{
    e->length = 0;
}

static inline void flaw_cut_header(struct entries *e)
{
    e->length = e->last + 23;
}

static inline void flaw_tail(struct entries *e)
{
    e->bytes[e->length++] = 0;
}

static inline void flaw_tail_word(struct entries *e)
{
    memset(e->bytes + e->length, 0, 8);
    e->length += 8;
}

static inline void flaw_kind_0(struct entries *e)
{
    e->bytes[0] = 0;
}

static inline void flaw_kind_4(struct entries *e)
{
    e->bytes[e->last] = 4;
}

static inline void flaw_kind_255(struct entries *e)
{
    e->bytes[e->last] = 255;
}

static inline void flaw_reserved_first(struct entries *e)
{
    e->bytes[1] = 1;
}

static inline void flaw_reserved_second(struct entries *e)
{
    e->bytes[e->last + 2] = 0x80;
}

static inline void flaw_reserved_third(struct entries *e)
{
    e->bytes[3] = 1;
}

static inline void flaw_padding_first(struct entries *e)
{
    e->bytes[24 + 5] = 1;
}

static inline void flaw_padding_last(struct entries *e)
{
    e->bytes[24 + 7] = 0x80;
}

static inline void flaw_data_beyond(struct entries *e)
{
    entries_add(e, WRITE, 0, 16, NULL);
    e->length -= 8;
}

static inline void flaw_padding_beyond(struct entries *e)
{
    entries_add(e, WRITE, 0, 13, NULL);
    e->length -= 3;
}

static inline void flaw_data_missing(struct entries *e)
{
    entries_add(e, COMPARE, 0, 1, NULL);
    e->length -= 8;
}

static inline void flaw_length_all_ones(struct entries *e)
{
    entries_put(e->bytes + 4, UINT32_MAX, 4);
}

static inline void flaw_length_wraps(struct entries *e)
{
    entries_put(e->bytes + 4, UINT32_MAX - 6, 4);
}

static inline void flaw_length_wraps_at_the_end(struct entries *e)
{
    entries_add(e, WRITE, 0, 0, NULL);
    entries_put(e->bytes + e->last + 4, UINT32_MAX - 6, 4);
}

static inline void flaw_length_half(struct entries *e)
{
    entries_put(e->bytes + 4, UINT32_C(1) << 31, 4);
}

static inline void flaw_seventeen(struct entries *e)
{
    e->length = 0;
    for (unsigned i = 0; i < 17; i++) {
        entries_add(e, FETCH, 8 * i, 1, NULL);
    }
}

static inline void flaw_fetch_129(struct entries *e)
{
    entries_add(e, FETCH, 0, 129, NULL);
}

static inline void flaw_fetch_sum(struct entries *e)
{
    entries_add(e, FETCH, 0, 64, NULL);
    entries_add(e, FETCH, 0, 64, NULL);
    entries_add(e, FETCH, 0, 1, NULL);
}

static inline void flaw_fetch_wraps(struct entries *e)
{
    entries_add(e, FETCH, 0, 8, NULL);
    entries_add(e, FETCH, 0, UINT32_MAX, NULL);
}

static const struct entries_flaw entries_flaws[] = {
    {"no entry", flaw_none_left},
    {"a header cut short", flaw_cut_header},
    {"a byte left over", flaw_tail},
    {"eight bytes left over", flaw_tail_word},
    {"kind 0", flaw_kind_0},
    {"kind 4", flaw_kind_4},
    {"kind 255", flaw_kind_255},
    {"first reserved byte", flaw_reserved_first},
    {"second reserved byte", flaw_reserved_second},
    {"third reserved byte", flaw_reserved_third},
    {"padding, first byte", flaw_padding_first},
    {"padding, last byte", flaw_padding_last},
    {"data beyond the end", flaw_data_beyond},
    {"padding beyond the end", flaw_padding_beyond},
    {"no data", flaw_data_missing},
    {"a length of 2^32 - 1", flaw_length_all_ones},
    {"a length that padding carries past 2^32", flaw_length_wraps},
    {"a last length that padding carries past 2^32", flaw_length_wraps_at_the_end},
    {"a length of 2^31", flaw_length_half},
    {"17 entries", flaw_seventeen},
    {"129 bytes in one fetch", flaw_fetch_129},
    {"129 bytes in three fetches", flaw_fetch_sum},
    {"fetches whose sum wraps", flaw_fetch_wraps},
};

/* The list that flaws are put into: right, and true of a region that begins with `first5`. */
static inline void entries_base(struct entries *e, const void *first5)
{
    e->length = 0;
    entries_add(e, COMPARE, 0, 5, first5);
    entries_add(e, WRITE, 64, 3, "abc");
    entries_add(e, FETCH, 8, 8, NULL);
}

#endif
