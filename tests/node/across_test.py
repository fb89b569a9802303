#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes and programs on different machines: network namespaces with a router and a NAT between them. Prints TAP.

    client 10.1.0.2 -- 10.1.0.1 router 10.2.0.1 -- 10.2.0.2 nat 10.3.0.1 -- 10.3.0.2 node

The node knows no way to the client but through the NAT. Each namespace lives as long as a process that dies with this one."""

import contextlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from machines import Machine, check_programs, enter_user_namespace
from ndtest import MEM, NODE, TOP, Program, equal, run, test

sys.path.insert(0, os.path.join(TOP, "tests", "client"))
import netdam_packet as nd  # noqa: E402
from netdam_client import Client  # noqa: E402

CLIENT, NODE_ADDRESS, NAT_INSIDE, NAT_OUTSIDE, PORT, KEY = "10.1.0.2", "10.3.0.2", "10.2.0.2", "10.3.0.1", 20036, 0xACE5
# Every new mapping gets another port, so that forgetting one moves whoever uses it.
MASQUERADE = """
table ip nat {
    chain source { type nat hook postrouting priority 100; oifname "outside" meta l4proto udp masquerade to :30000-60000 random; }
    chain destination { type nat hook prerouting priority -100; iifname "inside" ip daddr 10.2.0.2 udp dport 20036 dnat to 10.3.0.2; }
}
"""


class Network:
    def __init__(self, stack):
        self.client, self.router, self.nat, self.node = [self._machine(stack, name) for name in ("client", "router", "nat", "node")]
        cable(self.client, "uplink", CLIENT, self.router, "left", "10.1.0.1")
        cable(self.router, "right", "10.2.0.1", self.nat, "inside", NAT_INSIDE)
        cable(self.nat, "outside", NAT_OUTSIDE, self.node, "uplink", NODE_ADDRESS)
        self.client.run("ip", "route", "add", "default", "via", "10.1.0.1")
        self.router.run("ip", "route", "add", "10.3.0.0/24", "via", NAT_INSIDE)
        self.nat.run("ip", "route", "add", "10.1.0.0/24", "via", "10.2.0.1")
        for machine in (self.router, self.nat):
            machine.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        self.nat.run("nft", "-f", "-", text=MASQUERADE)
        self.program = stack.enter_context(Program(*self.node.command(NODE, "--listen", "%s:%d" % (NODE_ADDRESS, PORT), "--memory", "64M",
                                                                      "--key", hex(KEY), "--counters", "--json")))
        equal(self.program.json()["event"], "ready")

    @staticmethod
    def _machine(stack, name):
        machine = Machine(name)
        stack.callback(machine.close)
        return machine

    def mem(self, command, *arguments, peer=NODE_ADDRESS, device="", **how):
        return self.client.run(MEM, command, *self.to(peer, device), *arguments, **how)

    def to(self, peer=NODE_ADDRESS, device=""):
        return ["--device", "udp:%s:0%s" % (CLIENT, device), "--peer", peer, "--key", hex(KEY)]

    def plain(self, peer=NODE_ADDRESS):
        with self.client.inside():
            return Client(peer, PORT, KEY)

    def mapping(self):
        """Ports on which the NAT takes answers."""
        return set(re.findall(r"dst=10\.3\.0\.1 sport=20036 dport=(\d+)", self.nat.run("conntrack", "-L", "-p", "udp")))

    def forget(self):
        self.nat.run("conntrack", "-F")


def cable(left, left_name, left_address, right, right_name, right_address):
    left.run("ip", "link", "add", left_name, "type", "veth", "peer", "name", right_name, "netns", str(right.keeper.pid))
    for machine, name, address in ((left, left_name, left_address), (right, right_name, right_address)):
        machine.run("ip", "address", "add", address + "/24", "dev", name)
        machine.run("ip", "link", "set", name, "up")


def ok(answer):
    equal(nd.STATUS_NAMES[answer.status], "OK")
    return answer


def random_file(directory, name, size):
    path = os.path.join(directory, name)
    with open(path, "wb") as file:
        file.write(os.urandom(size))
    return path


@test
def a_plain_client_writes_reads_and_counts(net, directory):
    client = net.plain()
    ok(client.write(0, b"over the hills"))
    equal(ok(client.read(0, 14)).payload, b"over the hills")
    for i in range(10):
        equal(ok(client.fetch_add(64, nd.U64, 1)).payload, struct.pack("<Q", i))
    client.close()


@test
def a_program_moves_a_file_reduces_and_counts(net, directory):
    path = random_file(directory, "file", 5 << 20)
    net.mem("write", "--address", "1M", path)
    net.mem("compare", "--address", "1M", path)
    net.mem("read", "--address", "1M", "--length", "5M", path + ".back")
    with open(path, "rb") as sent, open(path + ".back", "rb") as back:
        equal(back.read() == sent.read(), True, "the file came back")
    net.mem("fill", "--address", "8M", "--length", "1M", "--type", "u32", "--value", "5")
    equal(net.mem("fetch-add", "--address", "8M", "--value", "1").split()[0], str(5 << 32 | 5))


@test
def a_node_behind_a_port_that_is_forwarded_is_reached_by_the_outer_address(net, directory):
    client = net.plain(NAT_INSIDE)
    ok(client.write(128, b"by another name"))
    equal(ok(client.read(128, 15)).payload, b"by another name")
    client.close()
    path = random_file(directory, "file", 1 << 20)
    net.mem("write", "--address", "1M", path, peer=NAT_INSIDE)
    net.mem("compare", "--address", "1M", path)


@test
def a_plain_client_counts_exactly_while_the_nat_forgets_it(net, directory):
    client = net.plain()
    seen = set()
    for i in range(200):
        equal(ok(client.fetch_add(256, nd.U64, 1)).payload, struct.pack("<Q", i))
        if i % 10 == 0:
            seen |= net.mapping()
            net.forget()
    client.close()
    assert len(seen) > 10, "the NAT has used %d ports" % len(seen)


def under_way(net, command):
    """Runs a command of netdam-mem while the NAT forgets; returns how often it did so before the command ended, and the ports."""
    process = subprocess.Popen(net.client.command(MEM, *command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    forgotten, seen = 0, set()
    try:
        while process.poll() is None:
            seen |= net.mapping()
            net.forget()
            forgotten += 1
    finally:
        process.kill()
        error = process.communicate()[1]
    equal((process.returncode, error), (0, ""))
    return forgotten, seen


@test
def a_transfer_goes_on_when_the_nat_forgets_it_in_the_middle(net, directory):
    path = random_file(directory, "file", 32 << 20)
    forgotten, seen = under_way(net, ["write", *net.to(), "--address", "16M", path])
    assert forgotten >= 3 and len(seen) >= 2, "forgotten %d times, %d ports: too small a file" % (forgotten, len(seen))
    forgotten, seen = under_way(net, ["read", *net.to(), "--address", "16M", "--length", "32M", path + ".back"])
    assert forgotten >= 3 and len(seen) >= 2, "forgotten %d times, %d ports: too small a file" % (forgotten, len(seen))
    with open(path, "rb") as sent, open(path + ".back", "rb") as back:
        equal(back.read() == sent.read(), True, "the file came back")


@test
def sums_are_applied_once_when_the_nat_forgets_in_the_middle(net, directory):
    path = os.path.join(directory, "ones")
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 1) * (2 << 20))
    net.mem("fill", "--address", "16M", "--length", "16M", "--value", "0")
    for _ in range(3):
        under_way(net, ["reduce", *net.to(), "--address", "16M", "--type", "u64", "--operation", "sum", path])
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", 3) * (2 << 20))
    net.mem("compare", "--address", "16M", path)


@contextlib.contextmanager
def narrow(net, mtu):
    """The way between router and NAT takes packets of at most `mtu` bytes."""
    ends = ((net.router, "right"), (net.nat, "inside"))
    for machine, name in ends:
        machine.run("ip", "link", "set", name, "mtu", str(mtu))
    for machine in (net.client, net.node):
        machine.run("ip", "route", "flush", "cache")  # what was found out about paths
    try:
        yield
    finally:
        for machine, name in ends:
            machine.run("ip", "link", "set", name, "mtu", "1500")


@test
def a_narrower_path_is_passed_in_fragments(net, directory):
    path = random_file(directory, "file", 1 << 20)
    with narrow(net, 1400):
        net.mem("write", "--address", "1M", path)
        net.mem("compare", "--address", "1M", path)


@test
def nobody_has_to_be_told_of_a_narrower_path(net, directory):
    path = random_file(directory, "file", 1 << 20)
    block = "table ip block { chain out { type filter hook output priority 0; ip protocol icmp drop; }\n}"
    with narrow(net, 1280):
        for machine in (net.router, net.nat):
            machine.run("nft", "-f", "-", text=block)
        net.mem("write", "--address", "1M", path)
        net.mem("compare", "--address", "1M", path)
        for machine in (net.router, net.nat):
            machine.run("nft", "delete", "table", "ip", "block")


@test
def a_way_that_is_cut_ends_in_a_status_and_heals(net, directory):
    path = random_file(directory, "file", 64 << 10)
    net.router.run("ip", "link", "set", "right", "down")
    assert "TIMEOUT" in net.mem("write", "--address", "1M", path, code=1)
    net.router.run("ip", "link", "set", "right", "up")
    net.router.run("ip", "route", "add", "10.3.0.0/24", "via", NAT_INSIDE)
    net.mem("write", "--address", "1M", path)
    net.mem("compare", "--address", "1M", path)


@test
def the_node_has_lost_nothing(net, directory):
    counters = json.loads(net.program.end())
    equal(counters["RX_MALFORMED"], 0)
    equal(counters["RX_CHECKSUM"], 0)
    equal(counters["MAIN_MEMORY_BYTES"], 0)
    assert counters["REQUESTS_EXECUTED"] > 1000


def check_nat():
    machine = Machine("trial")
    try:
        machine.run("nft", "-f", "-", text=MASQUERADE)
        machine.run("conntrack", "-L")
    except AssertionError as error:
        print("1..0 # SKIP this kernel does not translate addresses: %s" % str(error).splitlines()[0])
        sys.exit(0)
    finally:
        machine.close()


def main():
    check_programs("ip", "nft", "conntrack", "unshare", "nsenter", "setpriv")
    enter_user_namespace()
    check_nat()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        return run(Network(stack), directory)


if __name__ == "__main__":
    sys.exit(main())
