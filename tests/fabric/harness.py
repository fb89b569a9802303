# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the fabric share: a fabric, endpoints at its sockets, pcap files, and TAP."""

import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.path.join(TOP, os.environ.get("O", "build"))
FABRIC = os.path.join(O, "sim", "netdam-fabric")
ENDPOINTS = os.path.join(O, "tests", "fabric", "endpoints")
LIMIT_S = 120

TESTS = []
directory = None
started = []


class Failed(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def expect(condition, *what):
    if not condition:
        raise Failed(" ".join(str(w) for w in what))


def equal(got, expected, what):
    expect(got == expected, "%s: got %r instead of %r" % (what, got, expected))


def path(name):
    return os.path.join(directory, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return path(name)


class Lines:
    """A program's output, line by line, with a deadline."""

    def __init__(self, process):
        self.process = process
        self.rest = b""

    def line(self):
        deadline = time.monotonic() + LIMIT_S
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            expect(ready, "no line in %d s" % LIMIT_S)
            got = os.read(self.process.stdout.fileno(), 65536)
            expect(got, "output has ended")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()


class Control:
    """A connection to a control socket."""

    def __init__(self, name="control"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(path(name))
        self.file = self.socket.makefile("rb")

    def raw(self, data):
        self.socket.sendall(data)
        return json.loads(self.file.readline())

    def ask(self, command, **keys):
        return self.raw(json.dumps(dict(keys, command=command)).encode() + b"\n")

    def good(self, command, **keys):
        reply = self.ask(command, **keys)
        expect(reply["ok"], "%s: %s" % (command, reply))
        return reply

    def counters(self):
        return self.good("counters")

    def until(self, condition, what):
        """Counters of which `condition` holds."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            counters = self.counters()
            if condition(counters):
                return counters
            expect(time.monotonic() < deadline, "never: %s: %s" % (what, json.dumps(counters)))
            time.sleep(0.01)

    def close(self):
        self.file.close()
        self.socket.close()


def by_name(parts, name):
    return next(part for part in parts if part["name"] == name)


def way(counters, link, back=False):
    return [part for part in counters["links"] if part["link"] == link][back]


class Fabric:
    def __init__(self, topology, *options, ready=True, user=None):
        self.file = write("net.conf", topology)
        program = FABRIC
        if user is not None:
            # The tree may lie where that user may not go.
            program = shutil.copy(FABRIC, path("netdam-fabric"))
        command = [program, "--json", "--control", path("control"), *options, self.file]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory, user=user,
                                        group=user, extra_groups=[] if user is not None else None)
        started.append(self.process)
        self.lines = Lines(self.process)
        if ready:
            self.ready = json.loads(self.lines.line())
            self.control = Control()

    def stop(self, how=signal.SIGTERM):
        """Ends it; returns the last counters."""
        self.control.close()
        self.process.send_signal(how)
        last = json.loads(self.lines.line())
        errors = self.process.stderr.read().decode()
        equal((self.process.wait(LIMIT_S), errors), (0, ""), "status and messages at the end")
        expect(last["totals"]["balanced"], "counters do not balance: %s" % json.dumps(last))
        return last

    def kill(self):
        self.control.close()
        self.process.kill()
        self.process.wait(LIMIT_S)


class Endpoints:
    def __init__(self, *names):
        self.process = subprocess.Popen([ENDPOINTS, *[path(name + ".sock") for name in names]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=0)
        started.append(self.process)
        self.lines = Lines(self.process)

    def tell(self, *words):
        self.process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        return self.lines.line()

    def do(self, *words):
        equal(self.tell(*words), "ok", "reply to " + " ".join(str(word) for word in words))

    def report(self):
        return json.loads(self.tell("report"))

    def stop(self):
        self.process.stdin.close()
        equal(self.process.wait(LIMIT_S), 0, "status of the endpoints")


def pcap_write(name, frames):
    with open(path(name), "wb") as file:
        file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 0, i, len(frame), len(frame)) + frame)


def pcap_read(name):
    """(magic, frames)"""
    with open(path(name), "rb") as file:
        data = file.read()
    magic, at, frames = struct.unpack_from("<I", data)[0], 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return magic, frames


def numbered(count, size=64, source=1, target=2):
    return [bytes([2, 0, 0, 0, 0, target, 2, 0, 0, 0, 0, source, 0x88, 0xb5]) + struct.pack(">I", i) + bytes(size - 18)
            for i in range(count)]


def numbers(frames):
    return [struct.unpack_from(">I", frame, 14)[0] for frame in frames]


def end_started():
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    started.clear()


def main():
    global directory
    failed = 0
    print("1..%d" % len(TESTS))
    for number, function in enumerate(TESTS, 1):
        directory = tempfile.mkdtemp(prefix="netdam-fabric-")
        os.chmod(directory, 0o777)
        try:
            function()
            print("ok %d - %s" % (number, function.__name__), flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            errors = b""
            for process in started:
                if process.stderr is not None and not process.stderr.closed:
                    process.kill()
                    late = process.stderr.read()
                    errors += late if isinstance(late, bytes) else late.encode()
            print("not ok %d - %s" % (number, function.__name__))
            for line in (traceback.format_exc() + errors.decode()).splitlines():
                print("# " + line)
            sys.stdout.flush()
        end_started()
        shutil.rmtree(directory)
    sys.exit(failed != 0)
