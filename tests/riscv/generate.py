#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of what an image contains.

generate.py programs NAME[=ARGUMENTS]... -NAME=REASON...
    C: the test programs, whose main functions are called main_NAME, and those that are left out
generate.py files PATH...
    assembly: the files
"""
import re
import sys


def programs(entries):
    split = [entry.partition("=")[::2] for entry in entries]
    print('#include "board.h"\n')
    for name, _ in split:
        if not re.fullmatch(r"-?[a-z0-9_]+", name):
            sys.exit(f"generate.py: {name} is no name of a program")
        if name[0] != "-":
            print(f"int main_{name}(int argc, char **argv);")
    print("\nconst struct board_program board_programs[] = {")
    for name, text in split:
        if name[0] == "-":
            print(f'    {{.name = "{name[1:]}", .reason = "{text}"}},')
        else:
            words = [name, *text.split()]
            argv = ", ".join(f'(char[]){{"{word}"}}' for word in words)
            argv = f"(char *[]){{{argv}, NULL}}"
            print(f'    {{.name = "{name}", .main = main_{name}, .argc = {len(words)}, .argv = {argv}}},')
    print("};")
    print("const size_t board_program_count = sizeof(board_programs) / sizeof(board_programs[0]);")


def files(paths):
    print('    .section .rodata, "a"')
    for number, path in enumerate(paths):
        print(f'path_{number}: .asciz "{path}"')
        print(f'data_{number}: .incbin "{path}"\nend_{number}:')
    print("    .balign 8\n    .global board_files, board_file_count\nboard_files:")
    for number in range(len(paths)):
        print(f"    .dword path_{number}, data_{number}, end_{number} - data_{number}")
    print(f"board_file_count: .dword {len(paths)}")


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in ("programs", "files"):
        sys.exit(__doc__)
    {"programs": programs, "files": files}[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
