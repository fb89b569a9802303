/* SPDX-License-Identifier: BSD-3-Clause */
/* The bare machine: QEMU's `virt`, its serial port, its switch, and what the image carries along. */
#ifndef RISCV_BOARD_H
#define RISCV_BOARD_H

#include <stddef.h>
#include <stdint.h>

/* A test program. Its main is called once for each start of the machine; without one it is left out for a reason. */
struct board_program {
    const char *name;
    const char *reason;
    int (*main)(int argc, char **argv);
    int argc;
    char **argv;
};
extern const struct board_program board_programs[];
extern const size_t board_program_count;

/* A file as fopen finds it, by its path from the top of the project. */
struct board_file {
    const char *path;
    const uint8_t *data;
    size_t bytes;
};
extern const struct board_file board_files[];
extern const size_t board_file_count;

/* Put there before the machine starts: the program to run, or nothing for all. */
extern const char board_arguments[];

/* What the firmware takes of the image. */
size_t board_firmware_code_bytes(void);
size_t board_firmware_constant_bytes(void);

/* Switches the machine off; QEMU exits with this status. */
_Noreturn void board_exit(int status);
/* Says what has happened and switches the machine off. */
_Noreturn void board_trap(uintptr_t cause, uintptr_t pc, uintptr_t value, uintptr_t caller, uintptr_t stack);

#endif
