/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU's levels: the same functions compiled for different instructions. */
#ifndef NDFW_ALU_H
#define NDFW_ALU_H

#include <stddef.h>
#include <stdint.h>

#define ALU_LEVEL_FUNCTIONS(level)                                                                                     \
    void ndfw_alu_reduce_##level(uint8_t *memory, const uint8_t *operand, size_t bytes, unsigned operation,            \
                                 unsigned type);                                                                       \
    void ndfw_alu_into_##level(uint8_t *to, const uint8_t *payload, const uint8_t *memory, size_t bytes,               \
                               unsigned operation, unsigned type);
ALU_LEVEL_FUNCTIONS(baseline)
#if defined(__x86_64__)
ALU_LEVEL_FUNCTIONS(avx2)
ALU_LEVEL_FUNCTIONS(avx512)
#endif

#endif
