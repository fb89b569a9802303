/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A 64 KiB firmware image that runs as a guest's whole software: goes from real mode to long mode with paging, writes
 * and reads back memory, and leaves through QEMU's isa-debug-exit device with 0x2a (QEMU then exits with 85). A guest
 * that gets there has an accelerator that works; it takes milliseconds. Linked to run at 0xF0000, where the chipset
 * shows the image below 1 MiB.
 */
    .set PML4, 0x1000
    .set PDPT, 0x2000
    .set PD, 0x3000
    .set SCRATCH, 0x10000
    .set SCRATCH_WORDS, 0x2000
    .set EXIT_PORT, 0xf4
    .set EXIT_GOOD, 0x2a
    .set EXIT_BAD, 0x01
    .set EFER, 0xc0000080

    .section .text
    .globl start
    .code16
start:
    cli
    /* CS still has its reset base at the top of 4 GiB, where the image is too. */
    lgdtl %cs:gdt_pointer - 0xf0000
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $0x08, $protected

    .code32
protected:
    movw $0x10, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    /* One 2 MiB page, mapped to itself; the rest of these tables is RAM that starts as zeros. */
    movl $(PDPT + 3), PML4
    movl $(PD + 3), PDPT
    movl $0x83, PD
    movl %cr4, %eax
    orl $0x20, %eax
    movl %eax, %cr4
    movl $PML4, %eax
    movl %eax, %cr3
    movl $EFER, %ecx
    rdmsr
    orl $0x100, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80000000, %eax
    movl %eax, %cr0
    ljmpl $0x18, $long

    .code64
long:
    movl $SCRATCH, %edi
    movl $SCRATCH_WORDS, %ecx
    movabsq $0x9e3779b97f4a7c15, %rbx
    xorl %eax, %eax
1:  addq %rbx, %rax
    movq %rax, (%rdi)
    addq $8, %rdi
    decl %ecx
    jnz 1b
    movl $SCRATCH, %edi
    movl $SCRATCH_WORDS, %ecx
    xorl %eax, %eax
2:  addq %rbx, %rax
    cmpq %rax, (%rdi)
    jne bad
    addq $8, %rdi
    decl %ecx
    jnz 2b
    movl $EXIT_GOOD, %eax
    jmp leave
bad:
    movl $EXIT_BAD, %eax
leave:
    outl %eax, $EXIT_PORT
    hlt
    jmp leave

    .balign 8
gdt:
    .quad 0
    .quad 0x00cf9a000000ffff /* 0x08: 32-bit code */
    .quad 0x00cf92000000ffff /* 0x10: data */
    .quad 0x00af9a000000ffff /* 0x18: 64-bit code */
gdt_pointer:
    .word . - gdt - 1
    .long gdt

    .section .reset, "ax"
    .code16
    jmp start
    .org 16, 0xf4
