/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU with AVX2 and F16C. Which instructions may be used stands here and not in the compiler's arguments: so
 * whoever compiles the firmware gets all levels. */
#include "ndfw.h"

#include "alu.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#define ALU_LEVEL avx2
#define ALU_F16C
#include "alu_kernels.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
