# SPDX-License-Identifier: BSD-3-Clause
"""Starts and stops a headless node for the client's tests."""

import os
import select
import signal
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("O", "build"))
READY_S, END_S = 60, 60


class Program:
    """A program that says in one line, `name ready key=value ...`, how it can be reached, and that SIGTERM ends well."""

    def __init__(self, name, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else ""
        if not line.startswith(name + " ready "):
            self.process.kill()
            self.process.wait()
            raise RuntimeError("no ready line: %r" % line)
        self.words = dict(word.split("=", 1) for word in line.split()[2:])
        self.address, self.port, self.key = self.words["address"], int(self.words["port"]), int(self.words["key"], 16)
        self.bytes = int(self.words["bytes"])

    def end(self):
        """Ends the program; returns what it had to say. Raises if it did not end well."""
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if self.process.returncode != 0:
            raise RuntimeError("the program ended with %d" % self.process.returncode)
        return out

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Node(Program):
    """A node on a loopback port, a free one unless named."""

    def __init__(self, *options, address="127.0.0.1", port=0, key=None):
        command = ["--listen", "%s:%d" % (address, port), "--memory", "64M", "--counters"] + list(options)
        if key is not None:
            command += ["--key", "0x%016x" % key]
        super().__init__("netdam-node", os.path.join(BUILD, "sim", "netdam-node"), *command)
        self.mtu = int(self.words["mtu"])

    def stop(self):
        """Ends the node; returns its counters."""
        return {name: int(value) for name, value in (line.split() for line in self.end().splitlines())}


class Target(Program):
    """A soft device with a region, and with a queue pair whose receive buffers are posted again when used."""

    def __init__(self, bytes_):
        super().__init__("netdam-perf", os.path.join(BUILD, "host-driver", "netdam_send_lat"), "--serve", str(bytes_),
                         "--device", "udp:127.0.0.1:0")
        self.receive_key = int(self.words["receive-key"], 16)
