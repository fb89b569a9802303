# SPDX-License-Identifier: BSD-3-Clause
"""Runs an image of test programs on QEMU's RISC-V machine and judges what comes out of its serial port."""

import ctypes
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("O", "build"), "tests", "riscv")
QEMU = "qemu-system-riscv64"
TOOLS = "riscv64-unknown-elf-"
SILENCE_SECONDS = 600
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class MachineError(Exception):
    """The machine cannot be started."""


def tool(name, *arguments):
    """What a program of the binary utilities prints."""
    return subprocess.run([TOOLS + name, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout


def _command(image, arguments_file):
    if shutil.which(QEMU) is None:
        raise MachineError(f"no {QEMU}: apt-get install qemu-system-misc")
    if not os.path.exists(image):
        raise MachineError(f"no {image}: make check-riscv")
    symbols = {line.split()[2]: line.split()[0] for line in tool("nm", image).splitlines() if len(line.split()) == 3}
    return [QEMU, "-M", "virt", "-m", "512M", "-bios", "none", "-display", "none", "-monitor", "none",
            "-serial", "stdio", "-no-reboot", "-kernel", image,
            "-device", f"loader,addr=0x{symbols['board_arguments']},file={arguments_file},force-raw=on"]


def _lines(process, silence):
    """Yields the lines as they come. TimeoutError when none comes for `silence` seconds, unless that is None."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest = b""
        heard = time.monotonic()
        while True:
            if not selector.select(silence and max(0, heard + silence - time.monotonic())):
                raise TimeoutError
            data = os.read(process.stdout.fileno(), 65536)
            if not data:
                break
            rest += data
            *whole, rest = rest.split(b"\n")
            if whole:
                heard = time.monotonic()
            for line in whole:
                yield line.decode("ascii", "backslashreplace").rstrip("\r")
        if rest:
            yield rest.decode("ascii", "backslashreplace")


class Judge:
    """Turns what the programs say, each with a plan of its own, into one list of tests."""

    def __init__(self, image, say=print):
        self.image = image
        self.say = say
        self.number = 0
        self.failed = 0
        self.ran = 0  # tests on the machine
        self.programs = []  # those that were begun, with their arguments
        self.programs_run = 0  # those that ended, without what was left out
        self.ended = False
        self._begin(None)

    def _begin(self, program):
        self.program = program
        self.planned = None
        self.left_out = False
        self.seen = 0
        self.wrong = 0

    def test(self, passed, text):
        self.number += 1
        self.failed += not passed
        self.say(f"{'ok' if passed else 'not ok'} {self.number} - {text}")

    def _end(self, status):
        if self.planned is None:
            self.test(False, f"{self.program}: no plan")
        elif self.planned != self.seen or (self.seen == 0 and not self.left_out):
            self.test(False, f"{self.program}: {self.seen} tests, {self.planned} planned")
        elif (status != 0) != (self.wrong != 0):
            self.test(False, f"{self.program}: ends with status {status}, and {self.wrong} tests have failed")
        self.programs_run += not self.left_out
        self._begin(None)

    def _place(self, address):
        said = tool("addr2line", "-f", "-e", self.image, address).split("\n")
        return f"{said[0]} {said[1].removeprefix(TOP + '/')}"

    def line(self, text):
        """One line of the serial port."""
        if match := re.fullmatch(r"# program ((\w+).*)", text):
            self._begin(match[2])
            self.programs.append(match[1])
            self.say(text)
        elif match := re.fullmatch(r"# status (-?\d+)", text):
            self._end(int(match[1]))
        elif re.fullmatch(r"# end: \d+ programs", text):
            self.ended = text == f"# end: {len(self.programs)} programs"
        elif match := re.fullmatch(r"# trap: mcause \w+ mepc (\w+) mtval \w+ ra (\w+) sp \w+", text):
            self.say(text)
            self.say(f"# mepc: {self._place(match[1])}")
            self.say(f"# ra: {self._place(match[2])}")
        elif self.program is not None and (match := re.fullmatch(r"1\.\.(\d+)", text)):
            self.planned = int(match[1])
        elif self.program is not None and (match := re.fullmatch(r"1\.\.0 # SKIP (.*)", text)):
            self.planned = 0
            self.left_out = True
            self.test(True, f"{self.program} # SKIP {match[1]}")
        elif self.program is not None and (match := re.fullmatch(r"(not ok|ok) (\d+) - (.*)", text)):
            self.seen += 1
            self.wrong += match[1] != "ok"
            self.ran += 1
            self.test(match[1] == "ok" and int(match[2]) == self.seen, f"{self.program}: {match[3]}")
        else:
            self.say(text if text.startswith("#") or text == "" else f"# {text}")

    def finish(self, exit_status):
        """The machine is off; `exit_status` is QEMU's, or None if it had to be ended."""
        if exit_status is None:
            self.test(False, f"{self.program or 'the image'}: nothing was heard for too long")
        elif not self.ended:
            self.test(False, f"{self.program or 'the image'}: the machine stopped early, status {exit_status}")
        elif (exit_status != 0) != (self.failed != 0):
            self.test(False, f"the machine's status is {exit_status}, and {self.failed} tests have failed")


def run(image, judge, program="", silence=SILENCE_SECONDS, extra=()):
    """Starts the machine, all programs or one, and lets `judge` hear it. `silence`: seconds of the watchdog or None."""
    with tempfile.NamedTemporaryFile(prefix="netdam-riscv.") as arguments:
        arguments.write(program.encode() + b"\0")
        arguments.flush()
        with subprocess.Popen([*_command(image, arguments.name), *extra], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)) as process:
            try:
                for line in _lines(process, silence):
                    judge.line(line)
                judge.finish(process.wait(60))
            except (TimeoutError, subprocess.TimeoutExpired):
                judge.finish(None)
            finally:
                process.kill()
