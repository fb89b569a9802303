/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program on the host would write: plain loops over arrays, compiled for the machine at hand. */
#ifndef HOST_LOOPS_H
#define HOST_LOOPS_H

#include <stddef.h>

typedef void (*host_loop)(void *restrict a, const void *restrict b, size_t bytes);

/* a[i] = a[i] op b[i], or NULL where C has no such type. Operation and type as the instruction set numbers them. */
host_loop host_loop_for(unsigned operation, unsigned type);

#endif
