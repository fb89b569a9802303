/* SPDX-License-Identifier: BSD-3-Clause */
/* The book of on-board memory: which parts are in use. Touches none of that memory. */
#ifndef NDLIB_ALLOC_H
#define NDLIB_ALLOC_H

#include <stdint.h>

/* Sizes and offsets are multiples of this: two allocations never share a cache line. */
#define NDLIB_ALLOC_UNIT 64u

struct ndlib_block;
struct ndlib_lease_ops;

struct ndlib_alloc {
    struct ndlib_block *first; /* by offset, without gaps */
    /* Set after init if a broker keeps the book: take and give then ask it. */
    const struct ndlib_lease_ops *lease;
    void *opaque;
};

/* 0 or -ENOMEM. All of `bytes` is free. */
int ndlib_alloc_init(struct ndlib_alloc *alloc, uint64_t bytes);
void ndlib_alloc_destroy(struct ndlib_alloc *alloc);

/* First fit. 0, -EINVAL, -ENOSPC or -ENOMEM. `alignment` is a power of two or 0. */
int ndlib_alloc_take(struct ndlib_alloc *alloc, uint64_t bytes, uint64_t alignment, uint64_t *offset);

/* 0, or -EINVAL if no allocation starts at `offset`; a broker also says -EBUSY. */
int ndlib_alloc_give(struct ndlib_alloc *alloc, uint64_t offset);

/* Bytes not in use, for tests. */
uint64_t ndlib_alloc_free_bytes(const struct ndlib_alloc *alloc);

#endif
