/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU: what it executes, and on which level, as far as the platform says that the CPU goes. */
#include "ndfw.h"

#include "alu.h"

bool ndfw_alu_executes(unsigned operation, unsigned type)
{
    return netdam_algebra(NETDAM_OP_REDUCE, operation, type) >= 0;
}

#if defined(__x86_64__)
#define FEATURES_AVX2 (NETDAM_FW_CPU_AVX2 | NETDAM_FW_CPU_F16C)
#define FEATURES_AVX512                                                                                                \
    (FEATURES_AVX2 | NETDAM_FW_CPU_AVX512F | NETDAM_FW_CPU_AVX512BW | NETDAM_FW_CPU_AVX512DQ | NETDAM_FW_CPU_AVX512VL)

static bool has(const struct ndfw *fw, uint64_t features)
{
    return (fw->config.cpu_features & features) == features;
}
#endif

void ndfw_alu_reduce(const struct ndfw *fw, uint8_t *memory, const uint8_t *operand, size_t bytes, unsigned operation,
                     unsigned type)
{
#if defined(__x86_64__)
    if (has(fw, FEATURES_AVX512)) {
        ndfw_alu_reduce_avx512(memory, operand, bytes, operation, type);
        return;
    }
    if (has(fw, FEATURES_AVX2)) {
        ndfw_alu_reduce_avx2(memory, operand, bytes, operation, type);
        return;
    }
#else
    (void)fw;
#endif
    ndfw_alu_reduce_baseline(memory, operand, bytes, operation, type);
}

void ndfw_alu_reduce_into(const struct ndfw *fw, uint8_t *to, const uint8_t *payload, const uint8_t *memory,
                          size_t bytes, unsigned operation, unsigned type)
{
#if defined(__x86_64__)
    if (has(fw, FEATURES_AVX512)) {
        ndfw_alu_into_avx512(to, payload, memory, bytes, operation, type);
        return;
    }
    if (has(fw, FEATURES_AVX2)) {
        ndfw_alu_into_avx2(to, payload, memory, bytes, operation, type);
        return;
    }
#else
    (void)fw;
#endif
    ndfw_alu_into_baseline(to, payload, memory, bytes, operation, type);
}

uint64_t ndfw_alu_apply(uint64_t value, uint64_t operand, unsigned operation, unsigned type)
{
    ndfw_alu_reduce_baseline((uint8_t *)&value, (const uint8_t *)&operand, netdam_type_bytes(type), operation, type);
    return value;
}
