/* SPDX-License-Identifier: BSD-3-Clause */
/* What all benchmark programs need: memory, and an end when there is none. */
#define _GNU_SOURCE
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

void *bench_allocate(size_t alignment, size_t bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, alignment > 4096 ? alignment : 4096, bytes) != 0) {
        bench_fail("out of memory");
    }
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes);
    return memory;
}

void bench_release(void *memory)
{
    free(memory);
}
