#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netdam-top: tables, JSON, the live view on a terminal; and the manual pages of the fabric's programs. Prints TAP."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time

from harness import Endpoints, Fabric, main, path
from ndtest import BUILD, FABRIC, LIMIT_S, TOP, equal, expect, test

sys.path.insert(0, os.path.join(TOP, "tests", "driver"))
import man_test  # noqa: E402

PROGRAM = os.path.join(BUILD, "sim", "netdam-top")
STAR = ('ports = ( { name = "e"; count = 3; } ); switches = ( { name = "s"; } );'
        'links = ( { from = "e"; to = "s"; drop = { every = 10; }; back = { drop = "0"; }; } );')


def top(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=LIMIT_S, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def busy():
    fabric = Fabric(STAR)
    ends = Endpoints("e0", "e1", "e2")
    ends.do("up")
    ends.do("send", 0, 1, 1000, 100)
    ends.do("wait", 1, 900)
    return fabric, ends


@test
def once_prints_a_table_of_what_has_traffic():
    fabric, ends = busy()
    status, table, _ = top("--once", "--interval", "0.1", path("control"))
    equal(status, 0, "status")
    for line in (r"^up [0-9.]+ s  in 1000  copies 900  out 1800  dropped 100  under way 0$", r"^e0 +up ", r"^e0 > s +up ",
                 r"fault 100", r"^s > e1 ", r"^s +0 "):
        expect(re.search(line, table, re.M), "no line %s in\n%s" % (line, table))
    expect("e2 > s" not in table, table)
    expect("e2 > s" in top("--once", "--all", "-i", "0.1", path("control"))[1], "--all leaves something out")
    ends.stop()
    fabric.stop()


@test
def json_has_counters_and_rates():
    fabric, ends = busy()
    status, output, _ = top("--once", "--json", "--interval", "0.1", path("control"))
    equal(status, 0, "status")
    look = json.loads(output)
    equal(set(look["ports"][0]["rates"]), {"in_frames", "in_bytes", "out_frames", "out_bytes"}, "rates of a port")
    equal(set(look["links"][0]["rates"]), {"frames", "bytes", "delivered"}, "rates of a link")
    equal(set(look["switches"][0]["rates"]), {"frames", "forwarded"}, "rates of a switch")
    equal(look["ports"][0]["in_frames"], 1000, "counter")
    ends.stop()
    fabric.stop()


def live_view(rows, columns):
    """The first pictures on a terminal of that size, as lists of lines."""
    fabric, ends = busy()
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(follower)
    process = subprocess.Popen([PROGRAM, "-i", "0.1", path("control")], stdin=follower, stdout=follower)
    screen = b""
    deadline = time.monotonic() + LIMIT_S
    while screen.count(b"\x1b[J") < 3:
        expect(time.monotonic() < deadline and select.select([leader], [], [], LIMIT_S)[0], "no picture")
        screen += os.read(leader, 65536)
    os.write(leader, b"q")
    while b"\x1b[?1049l" not in screen:
        expect(select.select([leader], [], [], LIMIT_S)[0], "no end")
        screen += os.read(leader, 65536)
    equal(process.wait(LIMIT_S), 0, "status")
    equal(termios.tcgetattr(follower), before, "terminal")
    os.close(leader)
    os.close(follower)
    ends.stop()
    fabric.stop()
    return [[line.replace(b"\x1b[K", b"") for line in picture.split(b"\x1b[J")[0].split(b"\r\n")]
            for picture in screen.split(b"\x1b[H")[1:4]]


@test
def the_live_view_keeps_to_the_screen_and_gives_the_terminal_back():
    for lines in live_view(8, 50):
        expect(len(lines) <= 8, "%d lines" % len(lines))
        expect(all(len(line) <= 50 for line in lines), lines)


@test
def the_live_view_takes_a_terminal_of_no_size_for_a_usual_one():
    for lines in live_view(0, 0):
        expect(len(lines) > 8 and any(line.startswith(b"PORT ") for line in lines), lines)


@test
def a_fabric_that_goes_away_ends_it():
    fabric, ends = busy()
    process = subprocess.Popen([PROGRAM, "--json", "--interval", "0.1", path("control")], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    expect(json.loads(process.stdout.readline())["ok"], "look")
    ends.stop()
    fabric.stop()
    _, errors = process.communicate(timeout=LIMIT_S)
    equal((process.returncode, errors), (1, "netdam-top: %s: the fabric has gone\n" % path("control")), "end")
    status, _, errors = top(path("control"))
    equal((status, errors), (1, "netdam-top: %s: No such file or directory\n" % path("control")), "nobody there")


@test
def arguments_are_checked():
    for arguments, status in ((["--help"], 0), (["--version"], 0), ([], 2), (["a", "b"], 2), (["--interval", "0", "x"], 2),
                              (["--interval", "nan", "x"], 2), (["--nonsense"], 2)):
        result, output, errors = top(*arguments)
        equal(result, status, "status of %s" % arguments)
        expect((output != "") == (status == 0) and (errors != "") == (status != 0), arguments)


@test
def manual_pages_tell_all_options_and_are_well_formed():
    for program in (FABRIC, PROGRAM):
        name = os.path.basename(program)
        page = os.path.join(TOP, "sim", "man", name + ".1")
        equal(man_test.options(page, [(name, program)]), [], "options")
        if shutil.which("groff"):
            equal(man_test.warnings([page], os.path.join(TOP, "sim", "man", "man1")), [], "warnings")


main()
