# SPDX-License-Identifier: BSD-3-Clause
"""Starts and stops a headless node for the client's tests."""

import os
import select
import signal
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(TOP, os.environ.get("O", "build"), "sim", "netdam-node")
READY_S, END_S = 60, 60


class Node:
    """A node on a loopback port, a free one unless named."""

    def __init__(self, *options, port=0, key=None):
        command = [BINARY, "--listen", "127.0.0.1:%d" % port, "--memory", "64M", "--counters"] + list(options)
        if key is not None:
            command += ["--key", "%016x" % key]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        readable, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline() if readable else ""
        if not line.startswith("netdam-node ready "):
            self.process.kill()
            self.process.wait()
            raise RuntimeError("no ready line: %r" % line)
        words = dict(word.split("=", 1) for word in line.split()[2:])
        self.address, self.port, self.key = words["address"], int(words["port"]), int(words["key"], 16)
        self.bytes, self.mtu = int(words["bytes"]), int(words["mtu"])

    def stop(self):
        """Ends the node; returns its counters. Raises if it did not end well."""
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if self.process.returncode != 0:
            raise RuntimeError("the node ended with %d" % self.process.returncode)
        return {name: int(value) for name, value in (line.split() for line in out.splitlines())}

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
