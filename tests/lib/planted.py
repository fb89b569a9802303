# SPDX-License-Identifier: BSD-3-Clause
"""Faults planted in the firmware, one at a time: a test program that is linked with each has to notice it. For TAP as of
ndtest.check(). A fault is its name, a file of the firmware, a text to be found there once, and what stands there instead."""

import os
import pathlib
import re
import shlex
import subprocess

from ndtest import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(os.environ.get("O", "build"))
FLAGS = ["-std=c11", "-O2", "-g", "-w", "-ffreestanding", "-fno-strict-aliasing", "-ffp-contract=off", "-Ifirmware/include",
         "-Ifirmware"]
LIBRARIES = ["tests/lib/libndtest.a", "firmware/libndfw.a"]
RUN_SECONDS = 600


def source(name):
    """A module's text, with that of the loops it is made of, if it is one level of the ALU."""
    text = (ROOT / "firmware" / name).read_text()
    loops = '#include "alu_kernels.h"\n'
    return text.replace(loops, (ROOT / "firmware/alu_kernels.h").read_text()) if loops in text else text


def with_fault(file, old, new):
    """A module's text with a fault, and how often its place was found; any white space is like any other."""
    return re.subn(r"\s+".join(re.escape(word) for word in old.split()), lambda _: new, source(file))


def compiler():
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if OUT.name == "san" else []
    return shlex.split(os.environ.get("CC", "gcc")) + sanitizers


def build(room, stem, text, libraries):
    """The program of tests/`room` with one module of the firmware replaced."""
    work = OUT / "tests" / room / "mutants"
    work.mkdir(parents=True, exist_ok=True)
    program = work / stem
    changed, obj = program.with_suffix(".c"), program.with_suffix(".o")
    changed.write_text(text)
    objects = sorted((OUT / "tests" / room).glob("*.o"))
    subprocess.run([*compiler(), *FLAGS, "-c", str(changed), "-o", str(obj)], check=True, cwd=ROOT)
    # The changed module comes first, so that the library's is not taken.
    subprocess.run([*compiler(), *map(str, objects), str(obj), *(str(OUT / name) for name in libraries + LIBRARIES), "-lm", "-o",
                    str(program)], check=True, cwd=ROOT)
    return program


def run(pattern, *command):
    """True if a program found nothing, and what it says first of that form."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
                          timeout=RUN_SECONDS, check=False)
    seen = re.search(pattern, done.stdout, re.M)
    return done.returncode == 0, seen.group(1)[:200] if seen else None


def notices(program, run_program, seeds):
    """What a program says of the fault with the first of the seeds that finds it, or None."""
    try:
        for seed in seeds:
            passed, seen = run_program(program, seed)
            if not passed:
                return seen
    except subprocess.TimeoutExpired:
        pass
    return None


def try_faults(room, faults, run_program, seeds, libraries=()):
    """`run_program(program, seed)`: as run() has it. `libraries`: what the program needs besides LIBRARIES, below OUT."""
    for number, (name, file, old, new) in enumerate(faults, 1):
        text, found = with_fault(file, old, new)
        if found != 1:
            check(False, name, f"text found {found} times in {file}: {old}")
            continue
        program = build(room, f"{number}-{pathlib.Path(file).stem}", text, list(libraries))
        seen = notices(program, run_program, seeds)
        print(f"# {seen or 'nothing noticed'}")
        check(seen is not None, f"noticed: {name}")
