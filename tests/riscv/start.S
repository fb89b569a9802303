/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the machine begins, and where it goes when it traps. */
#if __riscv_xlen == 64
#define STORE sd
#else
#define STORE sw
#endif

#define MSTATUS_FS_INITIAL 0x2000

/* Entries of physical memory protection: up to an address, and locked, so that machine mode is bound too. */
#define PMP_NONE 0x88
#define PMP_R    0x89
#define PMP_RW   0x8b
#define PMP_RX   0x8d

    .section .start, "ax"
    .global _start
_start:
    csrr t0, mhartid
    bnez t0, sleep

    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, board_stack_end
    la t0, board_trap_stack_end
    csrw mscratch, t0
    la t0, trap
    csrw mtvec, t0
    li t0, MSTATUS_FS_INITIAL
    csrs mstatus, t0
    csrw fcsr, zero

    la t0, board_bss
    la t1, board_bss_end
1:  bgeu t0, t1, 2f
    STORE zero, 0(t0)
    addi t0, t0, __riscv_xlen / 8
    j 1b

    /* Devices; code; constants; below the stack, nothing. Behind that, whatever is allowed by default. */
2:  la t0, _start
    srli t0, t0, 2
    csrw pmpaddr0, t0
    la t0, board_code_end
    srli t0, t0, 2
    csrw pmpaddr1, t0
    la t0, board_constants_end
    srli t0, t0, 2
    csrw pmpaddr2, t0
    la t0, board_stack
    srli t0, t0, 2
    csrw pmpaddr3, t0
    li t0, PMP_NONE << 24 | PMP_R << 16 | PMP_RX << 8 | PMP_RW
    csrw pmpcfg0, t0

    /* errno and its like: one thread, so the initial values are the variables. */
    la tp, board_tls
    call main
    call board_exit

sleep:
    wfi
    j sleep

/* On a stack of its own: the other one may be what is wrong. */
    .balign 4
trap:
    csrrw sp, mscratch, sp
    la t0, trap_again
    csrw mtvec, t0
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mtval
    mv a3, ra
    csrr a4, mscratch
    call board_trap

    .balign 4
trap_again:
    li a0, 254
    call board_exit
