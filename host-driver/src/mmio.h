/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses to registers and to memory that a device shares with this CPU, and what orders them. */
#ifndef NDLIB_MMIO_H
#define NDLIB_MMIO_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Two kinds of memory are at work.
 *
 * Registers (BAR0) are mapped uncached. Each load and store below is one bus access of exactly that width; the compiler
 * neither splits, merges nor drops it, and the CPU keeps such accesses in program order among themselves. A store is
 * posted: it has left the CPU but need not have reached the device. It is not ordered with ordinary memory by itself
 * on every CPU, hence ndlib_store_barrier() before a doorbell.
 *
 * On-board memory (BAR2) is prefetchable: how the CPU caches it depends on the mapping, from write-back (a virtual
 * card's RAM, the soft device) over write-combining to uncached. C11 release and acquire speak about write-back memory
 * only: on x86 they compile to plain accesses, and a write-combining buffer may drain a descriptor after the index that
 * announces it. So announcing takes two steps: ndlib_store_barrier(), which orders all earlier stores of any kind
 * before all later ones, then a release store of the index. The other way round, ndlib_load_barrier() after the acquire
 * load of an index keeps loads of what it covers from having been made early.
 *
 * Who is at the other end: firmware, in another thread (of this process or of QEMU), which pairs each of these with its
 * own acquire or release.
 */

static inline void ndlib_store_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("fence ow, ow" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    /* For the compiler's and the sanitizers' memory model. */
    atomic_thread_fence(memory_order_release);
}

static inline void ndlib_load_barrier(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshld" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile("fence ir, ir" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    atomic_thread_fence(memory_order_acquire);
}

/* Between the store of one index and the load of the other side's flag (netdam/ring.h: waking). */
static inline void ndlib_full_barrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

/* Ring words. The specification declares them as plain integers; every access to one passes here. */
static inline uint32_t ndlib_load_acquire(const uint32_t *word)
{
    return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_acquire);
}

static inline uint32_t ndlib_load_relaxed(const uint32_t *word)
{
    return atomic_load_explicit((const _Atomic uint32_t *)word, memory_order_relaxed);
}

static inline void ndlib_store_release(uint32_t *word, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *)word, value, memory_order_release);
}

static inline void ndlib_store_relaxed(uint32_t *word, uint32_t value)
{
    atomic_store_explicit((_Atomic uint32_t *)word, value, memory_order_relaxed);
}

static inline uint64_t ndlib_mmio_read(const volatile uint8_t *address, unsigned bytes)
{
    if (bytes == 8) {
        return *(const volatile uint64_t *)address;
    }
    return *(const volatile uint32_t *)address;
}

static inline void ndlib_mmio_write(volatile uint8_t *address, unsigned bytes, uint64_t value)
{
    if (bytes == 8) {
        *(volatile uint64_t *)address = value;
    } else {
        *(volatile uint32_t *)address = (uint32_t)value;
    }
}

static inline void ndlib_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
