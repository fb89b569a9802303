#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whatever goes wrong on the RISC-V machine is noticed: programs with faults, each run by itself (TAP)."""

import os
import re
import sys

import machine

IMAGE = os.path.join(machine.BUILD, "faults.elf")
# Program, the line that must tell (None: no test fails), seconds until the watchdog bites.
CASES = [
    ("passes", None, 60),
    ("fails", r"not ok 2 - fails: does_not_hold", 60),
    ("fails", r"# 0x0 != 0x1: zero, 1", 60),
    ("fails_with_words", r"# because of 0", 60),
    ("fails_in_setup", r"not ok 1 - fails_in_setup: holds", 60),
    ("traps", r"# trap: mcause 0x5 .* mtval 0x0 .*", 60),
    ("traps", r"# mepc: loads_from_null tests/riscv/faults.c:\d+", 60),
    ("traps", r"not ok 2 - traps: the machine stopped early, status 255", 60),
    ("writes_constant", r"# trap: mcause 0x7 .*", 60),
    ("overflows_stack", r"# trap: mcause 0x7 .*", 60),
    ("hangs", r"not ok 2 - hangs: nothing was heard for too long", 3),
    ("leaves", r"not ok 2 - leaves: the machine stopped early, status 1", 60),
    ("says_nothing", r"not ok 1 - says_nothing: no plan", 60),
    ("plans_more", r"not ok 2 - plans_more: 1 tests, 2 planned", 60),
    ("forgives", r"not ok 2 - forgives: ends with status 0, and 1 tests have failed", 60),
    ("complains", r"not ok 2 - complains: ends with status 1, and 0 tests have failed", 60),
    ("not_there", r"not ok 1 - the machine's status is 1, and 0 tests have failed", 60),
]


def main():
    heard = {}
    failed = 0
    for number, (program, line, silence) in enumerate(CASES, 1):
        if program not in heard:
            said = []
            judge = machine.Judge(IMAGE, said.append)
            try:
                machine.run(IMAGE, judge, program, silence)
            except machine.MachineError as error:
                print(f"Bail out! {error}")
                return 1
            heard[program] = judge.failed, said
        wrong, said = heard[program]
        if line is None:
            right = wrong == 0 and "ok 2 - passes: is_skipped # SKIP" in said
        else:
            right = wrong != 0 and any(re.fullmatch(line, text) for text in said)
        print(f"{'ok' if right else 'not ok'} {number} - {program}: {line or 'no failure'}", flush=True)
        if not right:
            failed += 1
            print("".join(f"# {text}\n" for text in said), end="")
    print(f"1..{len(CASES)}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
