/* SPDX-License-Identifier: BSD-3-Clause */
/* First-fit allocation from a list of blocks that covers on-board memory without gaps. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "alloc.h"
#include "backend.h"

struct ndlib_block {
    struct ndlib_block *next;
    uint64_t offset;
    uint64_t bytes;
    bool used;
};

static struct ndlib_block *block_new(uint64_t offset, uint64_t bytes, bool used, struct ndlib_block *next)
{
    struct ndlib_block *block = malloc(sizeof(*block));

    if (block) {
        *block = (struct ndlib_block){.next = next, .offset = offset, .bytes = bytes, .used = used};
    }
    return block;
}

int ndlib_alloc_init(struct ndlib_alloc *alloc, uint64_t bytes)
{
    struct ndlib_block *block = block_new(0, bytes & ~(uint64_t)(NDLIB_ALLOC_UNIT - 1), false, NULL);

    if (!block) {
        return -ENOMEM;
    }
    *alloc = (struct ndlib_alloc){.first = block};
    return 0;
}

void ndlib_alloc_destroy(struct ndlib_alloc *alloc)
{
    struct ndlib_block *block = alloc->first;

    while (block) {
        struct ndlib_block *next = block->next;

        free(block);
        block = next;
    }
    alloc->first = NULL;
}

int ndlib_alloc_take(struct ndlib_alloc *alloc, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    struct ndlib_block *block;

    if (alignment < NDLIB_ALLOC_UNIT) {
        if ((alignment & (alignment - 1)) != 0) {
            return -EINVAL;
        }
        alignment = NDLIB_ALLOC_UNIT;
    }
    if (bytes == 0 || (alignment & (alignment - 1)) != 0) {
        return -EINVAL;
    }
    if (bytes > UINT64_MAX - NDLIB_ALLOC_UNIT) {
        return -ENOSPC;
    }
    if (alloc->lease) {
        return alloc->lease->take(alloc->opaque, bytes, alignment, offset);
    }
    bytes = (bytes + NDLIB_ALLOC_UNIT - 1) & ~(uint64_t)(NDLIB_ALLOC_UNIT - 1);

    for (block = alloc->first; block; block = block->next) {
        uint64_t before = (0 - block->offset) & (alignment - 1);
        struct ndlib_block *rest = NULL;

        if (block->used || block->bytes < before || block->bytes - before < bytes) {
            continue;
        }
        /* Both new blocks first, so that running out of memory leaves the list as it was. */
        if (block->bytes - before > bytes) {
            rest = block_new(block->offset + before + bytes, block->bytes - before - bytes, false, block->next);
            if (!rest) {
                return -ENOMEM;
            }
        }
        if (before > 0) {
            struct ndlib_block *taken = block_new(block->offset + before, bytes, true, rest ? rest : block->next);

            if (!taken) {
                free(rest);
                return -ENOMEM;
            }
            block->bytes = before;
            block->next = taken;
            *offset = taken->offset;
        } else {
            block->bytes = bytes;
            block->used = true;
            if (rest) {
                block->next = rest;
            }
            *offset = block->offset;
        }
        return 0;
    }
    return -ENOSPC;
}

/* Makes one block of a free block and a free successor. */
static void merge_next(struct ndlib_block *block)
{
    struct ndlib_block *next = block->next;

    if (next && !block->used && !next->used) {
        block->bytes += next->bytes;
        block->next = next->next;
        free(next);
    }
}

int ndlib_alloc_give(struct ndlib_alloc *alloc, uint64_t offset)
{
    struct ndlib_block *before = NULL;
    struct ndlib_block *block;

    if (alloc->lease) {
        return alloc->lease->give(alloc->opaque, offset);
    }
    for (block = alloc->first; block && block->offset < offset; block = block->next) {
        before = block;
    }
    if (!block || block->offset != offset || !block->used) {
        return -EINVAL;
    }
    block->used = false;
    merge_next(block);
    if (before) {
        merge_next(before);
    }
    return 0;
}

uint64_t ndlib_alloc_free_bytes(const struct ndlib_alloc *alloc)
{
    uint64_t bytes = 0;

    for (const struct ndlib_block *block = alloc->first; block; block = block->next) {
        bytes += block->used ? 0 : block->bytes;
    }
    return bytes;
}
