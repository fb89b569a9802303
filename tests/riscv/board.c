/* SPDX-License-Identifier: BSD-3-Clause */
/* Serial port, switch and traps of the bare machine, and the C library's way to them. */
#include "board.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Devices of QEMU's `virt` machine: a 16550 and the sifive_test finisher. */
#define UART_TRANSMIT    ((volatile uint8_t *)0x10000000)
#define UART_LINE_STATUS ((volatile uint8_t *)0x10000005)
#define UART_ROOM        0x20u
#define FINISHER         ((volatile uint32_t *)0x100000)
#define FINISHER_PASS    0x5555u
#define FINISHER_FAIL    0x3333u

#define TRAP_STATUS 255

extern const char board_firmware_code[], board_firmware_code_end[];
extern const char board_firmware_constants[], board_firmware_constants_end[];

size_t board_firmware_code_bytes(void)
{
    return (uintptr_t)board_firmware_code_end - (uintptr_t)board_firmware_code;
}

size_t board_firmware_constant_bytes(void)
{
    return (uintptr_t)board_firmware_constants_end - (uintptr_t)board_firmware_constants;
}

static int put(char c, FILE *file)
{
    (void)file;
    while ((*UART_LINE_STATUS & UART_ROOM) == 0) {
    }
    *UART_TRANSMIT = (uint8_t)c;
    return 0;
}

static FILE uart = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdin = &uart;
FILE *const stdout = &uart;
FILE *const stderr = &uart;

_Noreturn void board_exit(int status)
{
    *FINISHER = status == 0 ? FINISHER_PASS : (uint32_t)status << 16 | FINISHER_FAIL;
    for (;;) {
    }
}

/* The C library's own would raise a signal. */
_Noreturn void abort(void)
{
    puts("# abort");
    board_exit(TRAP_STATUS);
}

/* A program that leaves by exit takes the others with it, and the last line is missing: a failure. */
_Noreturn void _exit(int status)
{
    board_exit(status == 0 ? 1 : status & 0xff);
}

_Noreturn void board_trap(uintptr_t cause, uintptr_t pc, uintptr_t value, uintptr_t caller, uintptr_t stack)
{
    printf("\n# trap: mcause 0x%llx mepc 0x%llx mtval 0x%llx ra 0x%llx sp 0x%llx\n", (unsigned long long)cause,
           (unsigned long long)pc, (unsigned long long)value, (unsigned long long)caller, (unsigned long long)stack);
    board_exit(TRAP_STATUS);
}
