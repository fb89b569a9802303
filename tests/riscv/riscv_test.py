#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The unit, golden and property tests of the firmware on a bare RISC-V machine (TAP).

riscv_test.py [--gdb] [PROGRAM]    all programs of the image, or one
  --gdb    the machine waits for a debugger at localhost:1234
"""

import os
import re
import subprocess
import sys

import machine

IMAGE = os.path.join(machine.BUILD, "image.elf")
PROPERTY = os.path.join(os.path.dirname(machine.BUILD), "property", "property")
FIRMWARE = os.path.join(machine.BUILD, "firmware.o")
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


def property_says(lines):
    """The lines of the property test that tell what has happened."""
    return [line for line in lines if re.match(r"# (\d+ |completions|counters|frames and memory)", line)]


def compare_property(judge, heard):
    """The same seed leads through the same scenarios to the same memory as on the machine that builds all this."""
    for program in judge.programs:
        if program.startswith("property "):
            here = subprocess.run([PROPERTY, *program.split()[1:]], stdout=subprocess.PIPE, text=True, check=False)
            ours, theirs = property_says(here.stdout.splitlines()), property_says(heard)
            for line in set(ours) ^ set(theirs):
                judge.say(f"# on one machine only: {line}")
            judge.test(len(theirs) > 3 and ours == theirs,
                       "the property test comes to the same frames and memory here and there, bit for bit")


def main():
    debug = sys.argv[1:2] == ["--gdb"]
    program = "".join(sys.argv[1 + debug:2 + debug])
    heard = []

    def say(text):
        print(text, flush=True)
        heard.append(text)

    judge = machine.Judge(IMAGE, say)
    try:
        if debug:
            machine.run(IMAGE, judge, program, None, ["-S", "-gdb", "tcp:127.0.0.1:1234"])
        else:
            machine.run(IMAGE, judge, program)
        compare_property(judge, heard)
        check_firmware(judge)
    except machine.MachineError as error:
        print(f"Bail out! {error}")
        return 1
    print(f"# {judge.ran} tests in {judge.programs_run} programs ran on the RISC-V machine")
    print(f"1..{judge.number}")
    return judge.failed != 0


if __name__ == "__main__":
    sys.exit(main())
