#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The unit, golden and property tests of the firmware, and its oracle, on a bare RISC-V machine (TAP).

riscv_test.py [--gdb] [PROGRAM]    all programs of the image, or one
  --gdb    the machine waits for a debugger at localhost:1234
"""

import os
import re
import subprocess
import sys

import machine

IMAGE = os.path.join(machine.BUILD, "image.elf")
TESTS = os.path.dirname(machine.BUILD)
FIRMWARE = os.path.join(machine.BUILD, "firmware.o")
HASH = re.compile(r"# frames( and memory)?: hash ")
MEMORY_FUNCTIONS = {"memcpy", "memmove", "memset", "memcmp"}
# What the processor has no instruction for comes from the compiler's own library.
COMPILER_FUNCTION = re.compile(r"__(clz|ctz|popcount|bswap)[sdt]i2")


def check_firmware(judge):
    """What tests/unit/test_image.sh asks of the shared image."""
    undefined = {line.split()[-1] for line in machine.tool("nm", "-u", FIRMWARE).splitlines()}
    foreign = sorted(name for name in undefined - MEMORY_FUNCTIONS if not COMPILER_FUNCTION.fullmatch(name))
    judge.test(not foreign, "the firmware needs nothing beyond memcpy, memset, memcmp, memmove"
               + "".join(f" {name}" for name in foreign))
    variables = [line for line in machine.tool("nm", FIRMWARE).splitlines() if re.search(r" [bBcCdDgGsS] ", line)]
    judge.test(not variables, "the firmware has no variables" + "".join(f" {line.split()[-1]}" for line in variables))


def path_here(name):
    """Where the program lies that was built for the machine that builds all this."""
    if name.startswith("vt_"):
        return os.path.join(TESTS, "vt", "test_" + name.removeprefix("vt_"))
    room = {"property": "property", "oracle": "oracle", "golden_test": "golden"}.get(name, "unit")
    return os.path.join(TESTS, room, name)


def compare(judge, program, there):
    """The same seeds lead through the same runs here, if the program says hashes of what was sent."""
    name, *arguments = program.split()
    if not os.path.exists(path_here(name)):
        judge.test(False, f"{name} is not built here: make check-riscv")
        return
    said = subprocess.run([path_here(name), *arguments], stdout=subprocess.PIPE, text=True, check=False).stdout
    here = [line for line in said.splitlines() if HASH.match(line)]
    for line in set(here) ^ set(there):
        judge.say(f"# on one machine only: {line}")
    judge.test(here == there, f"{name}: the same here and there, bit for bit")


def main():
    debug = sys.argv[1:2] == ["--gdb"]
    program = "".join(sys.argv[1 + debug:2 + debug])
    hashes = {}

    def say(text):
        print(text, flush=True)
        if HASH.match(text):
            hashes.setdefault(judge.programs[-1], []).append(text)

    judge = machine.Judge(IMAGE, say)
    try:
        if debug:
            machine.run(IMAGE, judge, program, None, ["-S", "-gdb", "tcp:127.0.0.1:1234"])
        else:
            machine.run(IMAGE, judge, program)
        for name, lines in hashes.items():
            compare(judge, name, lines)
        if not program:
            judge.test(len(hashes) >= 3, f"{len(hashes)} programs say hashes")
        check_firmware(judge)
    except machine.MachineError as error:
        print(f"Bail out! {error}")
        return 1
    print(f"# {judge.ran} tests in {judge.programs_run} programs ran on the RISC-V machine")
    print(f"1..{judge.number}")
    return judge.failed != 0


if __name__ == "__main__":
    sys.exit(main())
