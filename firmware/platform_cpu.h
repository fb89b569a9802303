/* SPDX-License-Identifier: BSD-3-Clause */
/* For platforms: what the firmware may be told of the CPU. The firmware itself asks nobody. */
#ifndef NDFW_PLATFORM_CPU_H
#define NDFW_PLATFORM_CPU_H

#include "netdam/firmware.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* NETDAM_FW_CPU_* of what the CPU has and the operating system keeps the registers of (the compiler asks xgetbv). */
static inline uint64_t ndfw_platform_cpu_features(void)
{
    uint64_t features = 0;

#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;

    __builtin_cpu_init();
    features |= __builtin_cpu_supports("sse4.2") ? NETDAM_FW_CPU_SSE42 : 0;
    features |= __builtin_cpu_supports("avx2") ? NETDAM_FW_CPU_AVX2 : 0;
    features |= __builtin_cpu_supports("avx512f") ? NETDAM_FW_CPU_AVX512F : 0;
    features |= __builtin_cpu_supports("avx512bw") ? NETDAM_FW_CPU_AVX512BW : 0;
    features |= __builtin_cpu_supports("avx512dq") ? NETDAM_FW_CPU_AVX512DQ : 0;
    features |= __builtin_cpu_supports("avx512vl") ? NETDAM_FW_CPU_AVX512VL : 0;
    features |= __builtin_cpu_supports("pclmul") ? NETDAM_FW_CPU_PCLMUL : 0;
    features |= __builtin_cpu_supports("vpclmulqdq") ? NETDAM_FW_CPU_VPCLMUL : 0;
    /* Not every compiler knows this one by name; its registers are AVX's. */
    if (__builtin_cpu_supports("avx") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0) {
        features |= NETDAM_FW_CPU_F16C;
    }
#endif
    return features;
}

#endif
