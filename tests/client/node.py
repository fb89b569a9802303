# SPDX-License-Identifier: BSD-3-Clause
"""Starts and stops a headless node for the client's tests."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402
from ndtest import BUILD, NODE  # noqa: E402


class Program(ndtest.Program):
    """A program that says in one line, `name ready key=value ...`, how it can be reached, and that SIGTERM ends well."""

    def __init__(self, name, *command):
        super().__init__(*command)
        line = self.line()
        ndtest.expect(line.startswith(name + " ready "), "no ready line: %r" % line)
        self.words = dict(word.split("=", 1) for word in line.split()[2:])
        self.address, self.port, self.key = self.words["address"], int(self.words["port"]), int(self.words["key"], 16)
        self.bytes = int(self.words["bytes"])


class Node(Program):
    """A node on a loopback port, a free one unless named."""

    def __init__(self, *options, address="127.0.0.1", port=0, key=None):
        command = ["--listen", "%s:%d" % (address, port), "--memory", "64M", "--counters"] + list(options)
        if key is not None:
            command += ["--key", "0x%016x" % key]
        super().__init__("netdam-node", NODE, *command)
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
