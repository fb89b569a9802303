/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the test programs one after another and frames what they print, so that the host can tell whose it is. */
#include "board.h"

#include <stdio.h>
#include <string.h>

static int run(const struct board_program *program)
{
    int status;

    printf("# program %s", program->name);
    for (int i = 1; i < program->argc; i++) {
        printf(" %s", program->argv[i]);
    }
    printf("\n");
    if (program->main == NULL) {
        printf("1..0 # SKIP %s\n", program->reason);
        status = 0;
    } else {
        status = program->main(program->argc, program->argv);
    }
    printf("# status %d\n", status);
    return status;
}

int main(void)
{
    size_t count = 0;
    unsigned failed = 0;

    printf("# firmware: %zu bytes of code, %zu bytes of constants\n", board_firmware_code_bytes(),
           board_firmware_constant_bytes());
    for (size_t i = 0; i < board_program_count; i++) {
        if (board_arguments[0] == '\0' || strcmp(board_arguments, board_programs[i].name) == 0) {
            failed += run(&board_programs[i]) != 0;
            count++;
        }
    }
    printf("# end: %zu programs\n", count);
    return count == 0 || failed != 0;
}
