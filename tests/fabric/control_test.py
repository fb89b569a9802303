#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The control socket and the command line of the fabric: whoever connects gets replies, and no more. Prints TAP."""

import json
import os
import random
import signal
import socket
import stat
import subprocess
import threading
import time

from harness import Control, Endpoints, Fabric, main, path, write
from ndtest import BUILD, FABRIC, LIMIT_S, Program, equal, expect, test

PAIR = 'ports = ( { name = "a"; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; name = "l"; } );'


def ctl(*arguments):
    done = subprocess.run([FABRIC, "ctl", path("control"), *arguments], capture_output=True, timeout=LIMIT_S, text=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@test
def every_wrong_request_gets_a_reason_and_the_connection_lives_on():
    fabric = Fabric(PAIR)
    for request, reason in (
            (b"", "expected near end of file"),
            (b"{", "expected near end of file"),
            (b"[]", "expected an object"),
            (b"{}", "expected one of: list counters"),
            (b'{"command": 1}', "expected one of: list counters"),
            (b'{"command": "dance"}', "expected one of: list counters"),
            (b'{"command": "list", "command": "list"}', "duplicate object key"),
            (b'{"command": "list", "x": 1}', "unknown key x; this command has none"),
            (b'{"command": "capture-stop", "x": 1}', "unknown key x; here belong: port link"),
            (b'{"command": "down"}', "link: expected the name of a link"),
            (b'{"command": "down", "link": "x"}', "no link is called x"),
            (b'{"command": "down", "link": "l", "direction": "up"}', "direction: expected"),
            (b'{"command": "down", "link": "l", "noticed": 1}', "noticed: expected true or false"),
            (b'{"command": "up", "link": "l", "noticed": true}', "unknown key noticed"),
            (b'{"command": "faults", "link": "l"}', "faults: expected an object"),
            (b'{"command": "faults", "link": "l", "faults": {"dorp": "1%"}}', "unknown key dorp; here belong: rate"),
            (b'{"command": "faults", "link": "l", "faults": {"drop": "2"}}', "drop: expected a chance"),
            (b'{"command": "faults", "link": "l", "faults": {"drop": 1.5}}', "no topology file could have"),
            (b'{"command": "faults", "link": "l", "faults": {"a b": "1%"}}', "no topology file could have"),
            (b'{"command": "faults", "link": "l", "faults": {"rate": "1"}}', "rate: less than 1000"),
            (b'{"command": "faults", "link": "l", "faults": {"down": [{"from": "1s"}]}}', "here is a command for it"),
            (b'{"command": "faults", "link": "l", "faults": {"drop": {"nth": {"nth": {"nth": {"nth": {}}}}}}}', "no topology file"),
            (b'{"command": "capture", "port": "x", "file": "y"}', "no port is called x"),
            (b'{"command": "capture", "port": "a"}', "file: expected a path"),
            (b'{"command": "capture-stop", "port": "a"}', "no capture is under way"),
            (b'\xff\xfe\x00', ""),
            (b'{"command": "\\u0000"}', ""),
            (b"[" * 5000, "")):
        reply = fabric.control.raw(request + b"\n")
        expect(reply["ok"] is False and reason in reply["error"], "%r: %r" % (request, reply))
    fabric.control.good("list")
    fabric.stop()


@test
def replies_carry_the_id_of_the_request():
    fabric = Fabric(PAIR)
    equal(fabric.control.ask("list", id=[1, "x"])["id"], [1, "x"], "id")
    equal(fabric.control.ask("no", id=7)["id"], 7, "id of an error")
    expect("id" not in fabric.control.ask("list"), "an id that nobody gave")
    fabric.stop()


@test
def a_faulty_change_changes_nothing():
    fabric = Fabric(PAIR)
    expect(not fabric.control.ask("faults", link="l", faults={"delay": "1s", "drop": "x"})["ok"], "accepted")
    equal(fabric.control.ask("faults", link="l", faults={"flap": {"up": "1s"}})["error"], "flap: needs both up and down", "error")
    fabric.control.good("faults", link="l", faults={"flap": {"up": "1s", "down": "1s"}})
    fabric.control.good("faults", link="l", direction="back", faults={})
    fabric.stop()


@test
def lines_are_bounded():
    fabric = Fabric(PAIR)
    greedy = Control()
    reply = greedy.raw(b"x" * 16384)
    equal(reply["error"], "a line of more than 16383 bytes", "error")
    equal(greedy.file.readline(), b"", "what follows")
    fabric.control.good("list")
    fabric.stop()


@test
def many_requests_in_one_piece_are_all_answered_and_halves_are_put_together():
    fabric = Fabric(PAIR)
    fabric.control.socket.sendall(b'{"command":"list"}\n' * 100 + b'{"comm')
    for _ in range(100):
        expect(json.loads(fabric.control.file.readline())["ok"], "reply")
    expect(fabric.control.raw(b'and":"list"}\n')["ok"], "the half")
    fabric.stop()


MANY_LINKS = ('ports = ( { name = "p"; count = 14; } ); switches = ( { name = "s"; }, { name = "t"; } );'
              'links = ( { from = "p"; to = "s"; }' + ', { from = "s"; to = "t"; }' * 18 + ' );')


@test
def who_reads_slowly_gets_all_replies_however_many_requests_came_at_once():
    fabric = Fabric(MANY_LINKS)
    fabric.control.socket.sendall(b'{"command":"counters"}\n' * 700)
    Control().good("list")  # by then the fabric has seen them
    sum_bytes = 0
    for i in range(700):
        line = fabric.control.file.readline()
        expect(line.endswith(b"}\n") and json.loads(line)["ok"], "reply %d: %r" % (i, line[-100:]))
        sum_bytes += len(line)
    expect(sum_bytes > 4 << 20, "%d bytes of replies are too few for this test" % sum_bytes)
    fabric.stop()


def own_kib(process):
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1])


@test
def who_never_reads_costs_no_more_than_one_reply_and_frames_go_on():
    fabric = Fabric(MANY_LINKS.replace("count = 14", "count = 12"))
    before = own_kib(fabric.process)
    deaf = []
    for _ in range(6):
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.connect(path("control"))
        one.setblocking(False)
        deaf.append(one)
    for _ in range(200):
        for one in deaf:
            try:
                one.send(b'{"command":"counters"}\n' * 700)
            except BlockingIOError:
                pass
        fabric.control.good("list")
    ends = Endpoints("p0", "p1")
    ends.do("up")
    ends.do("send", 0, 1, 1000, 100)
    ends.do("wait", 1, 1000)
    after = own_kib(fabric.process)
    expect(after < before + 2048, "%d KiB have become %d" % (before, after))
    for one in deaf:
        one.close()
    ends.stop()
    fabric.stop()


class Impostor:
    """Listens where a fabric would and answers so many requests with the same bytes; then it says no more, or goes on for ever."""

    def __init__(self, answer, endless=False, times=1):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path("impostor"))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, args=(answer, endless, times), daemon=True)
        self.thread.start()

    def serve(self, answer, endless, times):
        connection, _ = self.listener.accept()
        try:
            for _ in range(times):
                while not connection.recv(4096).endswith(b"\n"):
                    pass
                connection.sendall(answer)
            while endless:
                connection.sendall(answer)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
        except OSError:
            pass
        connection.close()

    def close(self):
        self.thread.join(LIMIT_S)
        self.listener.close()
        os.unlink(path("impostor"))


@test
def clients_believe_nobody_who_answers_like_no_fabric():
    top = os.path.join(BUILD, "sim", "netdam-top")
    for answer, endless, reason in ((b"x" * 65536, True, "what answers there is no fabric"),
                                    (b'{"ok":true}\n{"ok":true}\n', False, "what answers there is no fabric"),
                                    (b'{"ok":true\n', False, "what answers there is no fabric"),
                                    (b"[" * 100000 + b"\n", False, "what answers there is no fabric"),
                                    (b"", False, "the fabric has gone"),
                                    (b'{"ok":tr', False, "the fabric has gone"),
                                    (b'{"ok":true}', False, "the fabric has gone")):
        for program in ([FABRIC, "ctl", path("impostor"), "list"], [top, "--once", path("impostor")]):
            impostor = Impostor(answer, endless)
            done = subprocess.run(["prlimit", "--as=1000000000", *program] if "top" in program[0] else program,
                                  capture_output=True, timeout=LIMIT_S, text=True, check=False)
            impostor.close()
            equal((done.returncode, done.stdout), (1, ""), "%s: %r" % (program, answer[:40]))
            expect(reason in done.stderr and done.stderr.count("\n") == 1, done.stderr)


@test
def top_shows_no_escape_sequences_of_whoever_answers():
    evil = {"ok": True, "ports": [{"name": "\x1b]0;x\x07", "in_frames": 1, "dropped": {"\x1b[2J": 3}}], "links": 7,
            "switches": [None, {"name": "\x9b", "frames": 1, "queued_bytes": "x"}], "totals": []}
    impostor = Impostor(json.dumps(evil).encode() + b"\n", times=2)
    top = subprocess.run([os.path.join(BUILD, "sim", "netdam-top"), "--once", "-i", "0.1", path("impostor")], capture_output=True,
                         timeout=LIMIT_S, check=False)
    impostor.close()
    equal((top.returncode, top.stderr), (0, b""), "status and messages")
    expect(b"\x1b" not in top.stdout and b"? 3" in top.stdout and b"0;x" not in top.stdout, top.stdout)


@test
def who_does_not_read_or_vanishes_disturbs_nobody():
    fabric = Fabric(PAIR)
    for _ in range(30):
        rude = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        rude.connect(path("control"))
        rude.send(b'{"command":"counters"}\n' * 50 + b"{")
        rude.close()
    deaf = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3)]
    for one in deaf:
        one.connect(path("control"))
        one.setblocking(False)
        try:
            while True:
                one.send(b'{"command":"counters"}\n' * 100)
        except BlockingIOError:
            pass
    fabric.control.good("list")
    for one in deaf:
        one.close()
    fabric.control.good("list")
    fabric.stop()


@test
def noise_is_survived():
    seed = int.from_bytes(os.urandom(4), "little")
    print("# seed %d" % seed)
    noise = random.Random(seed)
    fabric = Fabric(PAIR)
    words = [b'"command"', b'"faults"', b'"link"', b'"l"', b":", b",", b"{", b"}", b"[", b"]", b'"drop"', b'"1%"', b"1", b"true",
             b'"direction"', b'"capture"', b'"port"', b'"a"', b"\xff", b'"down"', b"\\", b"-", b"1e999", b'"id"']
    for _ in range(2000):
        line = b"".join(noise.choice(words) for _ in range(noise.randrange(1, 20)))
        expect("ok" in fabric.control.raw(line + b"\n"), line)
    fabric.stop()


@test
def only_the_owner_may_connect():
    fabric = Fabric(PAIR)
    equal(stat.S_IMODE(os.stat(path("control")).st_mode), 0o600, "mode")
    fabric.stop()


@test
def ctl_sends_words_and_objects_and_tells_success():
    fabric = Fabric(PAIR)
    status, replies, _ = ctl("list", '{"command": "down", "link": "l"}')
    equal((status, len(replies), replies[1]), (0, 2, {"ok": True}), "ctl")
    status, replies, _ = ctl("dance", "list")
    equal((status, len(replies)), (1, 1), "ctl with a wrong command")
    equal(ctl("{")[0], 2, "ctl with a wrong object")
    equal(ctl()[0], 2, "ctl without a command")
    status, replies, _ = ctl("quit")
    equal((status, replies), (0, [{"ok": True}]), "quit")
    fabric.stop(0)
    status, _, errors = ctl("list")
    expect(status == 1 and "No such file" in errors, errors)


@test
def ctl_does_not_wait_for_ever_for_a_fabric_that_is_stopped():
    fabric = Fabric(PAIR)
    fabric.process.send_signal(signal.SIGSTOP)
    try:
        status, _, errors = ctl("list")
        expect(status == 1 and "no answer" in errors, errors)
    finally:
        fabric.process.send_signal(signal.SIGCONT)
    fabric.stop()


@test
def a_request_that_is_not_taken_is_told_why():
    fabric = Fabric(PAIR)
    status, replies, _ = ctl('{"command": "list", "id": "%s"}' % ("x" * 100000))
    equal((status, [reply["error"] for reply in replies]), (1, ["a line of more than 16383 bytes"]), "a long request")
    done = subprocess.run([FABRIC, "ctl", path("control"), b"\xff"], capture_output=True, timeout=LIMIT_S, check=False)
    equal((done.returncode, done.stderr), (2, b"netdam-fabric: \xff: not UTF-8\n"), "no UTF-8")
    fabric.stop()


@test
def output_that_cannot_be_written_is_a_failure():
    top = os.path.join(BUILD, "sim", "netdam-top")
    fabric = Fabric(PAIR)
    for command in ([FABRIC, "--help"], [FABRIC, "--version"], [FABRIC, "ctl", path("control"), "list"], [top, "--help"], [top, "--version"],
                    [top, "--once", path("control")], [top, path("control")], [top, "--json", path("control")]):
        for output in ">/dev/full", ">&-":
            done = subprocess.run(["sh", "-c", 'exec "$@" ' + output, "sh", *command], stderr=subprocess.PIPE, timeout=LIMIT_S, text=True,
                                  check=False)
            equal((done.returncode, done.stderr), (1, "%s: standard output: write error\n" % os.path.basename(command[0])), " ".join(command))
    fabric.stop()


@test
def closed_streams_are_nobody_elses():
    file = write("closed.conf", 'control = "closed"; ' + PAIR)
    with Program("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", FABRIC, file) as fabric:
        deadline = time.monotonic() + LIMIT_S
        while not os.path.exists(path("closed")):
            expect(time.monotonic() < deadline, "no control socket")
            time.sleep(0.01)
        equal({os.readlink("/proc/%d/fd/%d" % (fabric.process.pid, fd)) for fd in range(3)}, {"/dev/null"}, "standard streams")
        Control("closed").good("quit")
        equal(fabric.process.wait(LIMIT_S), 0, "status")


@test
def the_command_line_is_checked():
    right = write("right.conf", PAIR)
    for arguments, status in ((["--help"], 0), (["--version"], 0), ([], 2), (["--nonsense"], 2), (["a", "b"], 2), (["ctl"], 2),
                              (["/nowhere"], 2),
                              (["--check", right], 0), (["--check", "--control", "", right], 2), (["--check", right, "--", *["-v"] * 53], 2)):
        done = subprocess.run([FABRIC, *arguments], capture_output=True, timeout=LIMIT_S, text=True, check=False)
        equal(done.returncode, status, "status of %s" % arguments)
        expect((done.stdout != "") == (status == 0 and right not in arguments) and (done.stderr != "") == (status != 0), arguments)


main()
