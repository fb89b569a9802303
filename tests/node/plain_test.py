#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A plain UDP socket reaches nodes and devices through netdam-fabric, over a tap interface of the kernel. Prints TAP.

All of it is in a network namespace of its own, so nothing of the machine's own network changes."""

import contextlib
import json
import os
import struct
import sys
import tempfile

from machines import Machine, check_programs, enter_user_namespace
from ndtest import BUILD, FABRIC, MEM, NODE, TOP, Program, equal, run, test

sys.path.insert(0, os.path.join(TOP, "tests", "client"))
import netdam_packet as nd  # noqa: E402
from netdam_client import Client, Endpoint  # noqa: E402

SERVE = os.path.join(BUILD, "host-driver", "netdam_write_lat")
KEY = 0x1234
TOPOLOGY = """
control = "control";
ports = ( { name = "kernel"; type = "tap"; interface = "ndkernel"; }, { name = "device"; } );
nodes = ( { name = "n"; count = 3; address = "10.78.0.10"; memory = "1M"; key = "0x1234"; } );
switches = ( { name = "s"; } );
links = ( { from = "device"; to = "s"; }, { from = "n"; to = "s"; },
          { from = "kernel"; to = "s"; drop = "2%"; duplicate = "2%"; corrupt = "0.5%"; reorder = { chance = "5%"; by = "200us"; }; } );
"""


class Wary(Endpoint):
    """Takes a damaged answer for none: the kernel lets some of them pass, trusting the tap interface to have checked."""

    def receive(self, seconds):
        try:
            return super().receive(seconds)
        except nd.Dropped:
            return None


class Place:
    def __init__(self, stack, directory):
        self.directory = directory
        self.machine = Machine("machine")
        stack.callback(self.machine.close)
        topology = os.path.join(directory, "net.conf")
        with open(topology, "w", encoding="ascii") as file:
            file.write(TOPOLOGY)
        self._start(stack, FABRIC, "--json", topology).line()
        self.machine.run("ip", "address", "add", "10.78.0.1/24", "dev", "ndkernel")
        self.machine.run("ip", "link", "set", "ndkernel", "up")
        nodes = self._start(stack, NODE, "--json", "--topology", topology)
        self.nodes = [nodes.json() for _ in range(4)][:3]
        device = self._start(stack, SERVE, "--serve", "64K", "--key", hex(KEY), "--json", "--device",
                             "udp:10.78.0.20:20036,memory=8M,memif=" + os.path.join(directory, "device.sock"))
        self.device = device.json()

    def _start(self, stack, *command):
        program = Program(*self.machine.command(*command))
        stack.callback(program.end)
        return program

    def client(self, address):
        with self.machine.inside():
            client = Client(address, 20036, KEY)
            client.endpoint.close()
            client.endpoint = Wary(address, 20036)
        return client

    def counters(self):
        return json.loads(self.machine.run(FABRIC, "ctl", os.path.join(self.directory, "control"), "counters"))


def ok(answer):
    equal(nd.STATUS_NAMES[answer.status], "OK")
    return answer


def write_read_and_count(place, address):
    client = place.client(address)
    try:
        data = bytes(i * 7 & 0xFF for i in range(1400))
        ok(client.write(4096, data))
        equal(ok(client.read(4096, 1400)).payload, data)
        for i in range(100):
            equal(ok(client.fetch_add(64, nd.U64, 1)).payload, struct.pack("<Q", i))
    finally:
        client.close()


@test
def a_plain_client_reaches_each_node_and_counts_exactly_over_a_bad_link(place):
    for node in place.nodes:
        write_read_and_count(place, node["address"])


@test
def and_a_device_of_a_program(place):
    write_read_and_count(place, "10.78.0.20")


@test
def a_device_on_a_udp_socket_reaches_nodes_through_the_fabric(place):
    path = os.path.join(place.directory, "file")
    with open(path, "wb") as file:
        file.write(os.urandom(300000))
    to = ["--device", "udp:10.78.0.1:0", "--peer", place.nodes[1]["address"], "--key", hex(KEY), "--address", "512K"]
    place.machine.run(MEM, "write", *to, path)
    place.machine.run(MEM, "compare", *to, path)


@test
def the_link_was_bad_and_the_fabric_has_lost_track_of_nothing(place):
    counters = place.counters()
    equal(counters["totals"]["balanced"], True)
    ways = [way for way in counters["links"] if way["link"].startswith("kernel")]
    assert sum(way["dropped"]["fault"] for way in ways) > 0, ways
    assert sum(way["duplicated"] for way in ways) > 0, ways


def main():
    check_programs("ip", "unshare", "nsenter", "setpriv")
    enter_user_namespace()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        print("1..0 # SKIP no tap interfaces: /dev/net/tun is missing or may not be opened")
        return 0
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        return run(Place(stack, directory))


if __name__ == "__main__":
    sys.exit(main())
