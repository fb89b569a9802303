# SPDX-License-Identifier: BSD-3-Clause
"""What tests in Python share: where things lie, programs that do not outlive a test, and TAP. Tests are functions with @test
or of tests_of(), which run() runs, or one check() after another with all_checked() at the end."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("O", "build"))
NODE = os.path.join(BUILD, "sim", "netdam-node")
FABRIC = os.path.join(BUILD, "sim", "netdam-fabric")
MEM = os.path.join(BUILD, "host-driver", "netdam-mem")
LIMIT_S = 120

TESTS = []
started = []  # programs that end_started() ends
checks = []


class Failed(AssertionError):
    pass


class Skipped(Exception):
    """The machine lacks what the test needs; the message says what."""


def expect(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def equal(got, right, what=""):
    expect(got == right, "%sgot %r, not %r" % (what and what + ": ", got, right))


class Program:
    """A program that is read line by line, with a deadline. Options are Popen's."""

    def __init__(self, *command, limit_s=LIMIT_S, **options):
        self.name = os.path.basename(command[0])
        self.limit_s = limit_s
        self.rest = b""
        self.process = subprocess.Popen(command, bufsize=0, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options})
        started.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def line(self):
        deadline = time.monotonic() + self.limit_s
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            expect(ready, "%s: no line in %d s" % (self.name, self.limit_s))
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                raise Failed("%s has ended with status %d" % (self.name, self.process.wait(self.limit_s)))
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def json(self):
        return json.loads(self.line())

    def tell(self, line):
        """For a program whose `stdin` is a pipe."""
        self.process.stdin.write(line.encode() + b"\n")

    def end(self, how=signal.SIGTERM):
        """Asks it to end; returns what it still had to say. It must end well."""
        self.process.send_signal(how)
        status, output, _ = self.ended()
        equal(status, 0, self.name + "'s exit status")
        return output

    def ended(self):
        """Waits for its end: exit status, what it still said, and its messages where `stderr` is a pipe."""
        output, errors = self.process.communicate(timeout=self.limit_s)
        return self.process.returncode, (self.rest + (output or b"")).decode(), (errors or b"").decode()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(self.limit_s)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if self in started:
            started.remove(self)


def end_started():
    while started:
        started[0].kill()


def test(function):
    TESTS.append(function)
    return function


def tests_of(module):
    """Takes a module's functions whose names begin with test_ as tests; `module`: its globals()."""
    TESTS.extend(value for name, value in module.items() if name.startswith("test_"))


def run(*arguments, around=contextlib.nullcontext):
    """Runs the tests, each with these arguments and within `around()`; prints TAP. Returns the exit status."""
    failed = 0
    print("1..%d" % len(TESTS), flush=True)
    for number, function in enumerate(TESTS, 1):
        try:
            with around():
                function(*arguments)
            print("ok %d - %s" % (number, function.__name__), flush=True)
        except Skipped as reason:
            print("ok %d - %s # SKIP %s" % (number, function.__name__, reason), flush=True)
        except Exception as error:  # each test reports and the next one runs
            failed += 1
            print("not ok %d - %s" % (number, function.__name__))
            for line in "".join(traceback.format_exception(error)).splitlines():
                print("# " + line, flush=True)
    return 1 if failed else 0


def check(good, name, why=(), most=40):
    """Prints a line of TAP, and `why`, text or lines, where it is bad: the last `most` of them."""
    checks.append(bool(good))
    print("%s %d - %s" % ("ok" if good else "not ok", len(checks), name), flush=True)
    if not good:
        for line in (str(why).splitlines() if not isinstance(why, (list, tuple)) else why)[-most:]:
            print("# %s" % line, flush=True)
    return good


def skip(name, why):
    checks.append(True)
    print("ok %d - %s # SKIP %s" % (len(checks), name, why), flush=True)


def all_checked():
    """Prints the plan; returns the exit status."""
    print("1..%d" % len(checks))
    return 0 if all(checks) else 1
