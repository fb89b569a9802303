# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the fabric share: a fabric, endpoints at its sockets, pcap files."""

import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from ndtest import BUILD, FABRIC, LIMIT_S, Program, end_started, equal, expect, run, started  # noqa: E402

ENDPOINTS = os.path.join(BUILD, "tests", "fabric", "endpoints")

directory = None


def path(name):
    return os.path.join(directory, name)


def write(name, text):
    with open(path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return path(name)


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


class Fabric(Program):
    def __init__(self, topology, *options, ready=True, user=None):
        self.file = write("net.conf", topology)
        program = FABRIC
        if user is not None:
            # The tree may lie where that user may not go.
            program = shutil.copy(FABRIC, path("netdam-fabric"))
        super().__init__(program, "--json", "--control", path("control"), *options, self.file, stderr=subprocess.PIPE, cwd=directory,
                         user=user, group=user, extra_groups=[] if user is not None else None)
        self.control = None
        if ready:
            self.ready = self.json()
            self.control = Control()

    def stop(self, how=signal.SIGTERM):
        """Ends it; returns the last counters."""
        self.control.close()
        self.process.send_signal(how)
        last = self.json()
        errors = self.process.stderr.read().decode()
        equal((self.process.wait(LIMIT_S), errors), (0, ""), "status and messages at the end")
        expect(last["totals"]["balanced"], "counters do not balance: %s" % json.dumps(last))
        return last

    def kill(self):
        if self.control is not None:
            self.control.close()
        super().kill()


class Endpoints(Program):
    def __init__(self, *names):
        super().__init__(ENDPOINTS, *[path(name + ".sock") for name in names], stdin=subprocess.PIPE)

    def ask(self, *words):
        self.tell(" ".join(str(word) for word in words))
        return self.line()

    def do(self, *words):
        equal(self.ask(*words), "ok", "reply to " + " ".join(str(word) for word in words))

    def report(self):
        return json.loads(self.ask("report"))

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


def last_words():
    """What the programs of a test that fails have said on their other output."""
    for program in list(started):
        if program.process.stderr is not None and not program.process.stderr.closed:
            program.process.kill()
            late = program.process.stderr.read()
            yield late.decode() if isinstance(late, bytes) else late


@contextlib.contextmanager
def place():
    """A directory that all may write to, for one test; its programs end with it."""
    global directory
    directory = tempfile.mkdtemp(prefix="netdam-fabric-")
    os.chmod(directory, 0o777)
    try:
        yield
    except Exception as error:
        error.add_note("".join(last_words()))
        raise
    finally:
        end_started()
        shutil.rmtree(directory)


def main():
    sys.exit(run(around=place))
