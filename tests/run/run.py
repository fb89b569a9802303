#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boots two guests with a NetDAM card each over one wire, has them work on each other's on-board memory, and writes what
was seen to a JSON file. A second card in each guest shares a network with two nodes that run beside the guests. With
--topology there is one card in each guest, and netdam-fabric is the network of both, of two nodes beside them, and of the
nodes that the file describes. Exits 0 if every check holds."""

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "guest"))
import boot  # noqa: E402

RUN = os.path.join(ROOT, "build", "run")
FIRMWARE = os.path.join(ROOT, "build", "firmware", "netdam-fw.so")
FABRIC = os.path.join(ROOT, "build", "sim", "netdam-fabric")
NODE = os.path.join(ROOT, "build", "sim", "netdam-node")
PAYLOAD = os.path.join(ROOT, "build", "guest", "vmlinuz")
KEY = "6e657464616d2121"
ADDRESSES = {"a": "10.78.0.1", "b": "10.78.0.2"}
CARD = "pci:0000:00:10.0"
# The network of the second cards, and of the nodes.
SHARED = {"a": "10.78.1.1", "b": "10.78.1.2", "c": "10.78.1.3", "d": "10.78.1.4"}
SHARED_CARD = "pci:0000:00:11.0"
# With --topology: ports of the file, and who is at them.
FABRIC_ADDRESSES = {**ADDRESSES, "c": "10.78.0.3", "d": "10.78.0.4"}
FACTORS = {"a": 3, "b": 5, "c": 7, "d": 11}
ONBOARD_BYTES = 64 << 20
MTU = 9000
ADDS = 10000
MARKER_BYTES = 64
LOCKS = 300
OPERATIONS = ["write", "read", "reduce", "fetch-add", "cas"]
BULK = ["write", "read", "reduce"]
CHECKS = ["file_sha256_ok", "readback_ok", "counter_exact", "reduce_ok", "messages_ok", "lock_exact", "all_reduce_ok",
          "bus_master_off_ok", "marker_in_onboard", "marker_control_found", "interrupts_ok"]
FABRIC_CHECKS = ["nodes_ok", "fabric_balanced"]
MACHINE = ["-machine", "kernel-irqchip=split", "-device", "intel-iommu,intremap=on"]


class Card:
    """The program in one guest: commands and their answers."""

    def __init__(self, name, guest):
        self.name = name
        self.guest = guest

    def ask(self, command):
        self.guest.send_line(command)

    def answer(self, command):
        match = self.guest.wait_line(r"^(ok|error)(.*)$")
        if match.group(1) != "ok":
            raise boot.GuestError(f"guest {self.name}: {command}:{match.group(2)}")
        return dict(item.split("=", 1) for item in match.group(2).split())

    def do(self, command):
        self.ask(command)
        return self.answer(command)


class Node:
    """The same program beside the guests: a node without a card, on the network of the second cards."""

    def __init__(self, name, address, port):
        """`port`: of its device, such as "wire=PATH:PEER"."""
        self.name = name
        self.address = address
        self.port = port
        self._process = subprocess.Popen([os.path.join(RUN, "pair")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self._line()
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()

    def _line(self):
        line = self._process.stdout.readline()
        if not line:
            raise boot.GuestError(f"node {self.name} has ended")
        return line.strip()

    def ask(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def answer(self, command):
        line = self._line()
        if not line.startswith("ok"):
            raise boot.GuestError(f"node {self.name}: {command}: {line}")
        return dict(item.split("=", 1) for item in line.split()[1:])

    def do(self, command):
        self.ask(command)
        return self.answer(command)

    def open(self, other=None):
        self.do(f"open {KEY} {self.address} {other or self.address} udp:{self.address}:20036,memory=64M,mtu={MTU},{self.port}")


class Network:
    """netdam-fabric, and the file's nodes."""

    def __init__(self, topology, directory):
        self.control = os.path.join(directory, "control")
        self.topology = topology
        self._stack = contextlib.ExitStack()
        with self._stack:
            self.start_fabric()
            ports = self.ask("list")["ports"]
            self.paths = {port["name"]: port.get("path") for port in ports}
            missing = sorted(set(FABRIC_ADDRESSES) - set(self.paths))
            if missing:
                raise boot.GuestError(f"{topology}: has no port {', '.join(missing)}")
            self.nodes = self._start_nodes(topology) if any(port["node"] for port in ports) else []
            self._stack = self._stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _start(self, command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._stack.callback(self._end, process)
        return process

    def start_fabric(self):
        self._fabric = self._start([FABRIC, "--json", "--control", self.control, self.topology])
        self._ready(self._fabric, "netdam-fabric")

    def kill_fabric(self):
        self._fabric.kill()
        self._fabric.wait()

    @staticmethod
    def _end(process):
        process.terminate()
        process.communicate()

    @staticmethod
    def _ready(process, name):
        line = process.stdout.readline()
        if not line:
            raise boot.GuestError(f"{name} has ended with status {process.wait()}")
        return json.loads(line)

    def _start_nodes(self, topology):
        nodes = []
        process = self._start([NODE, "--json", "--topology", topology])
        while (line := self._ready(process, "netdam-node"))["event"] != "all-ready":
            nodes.append(line)
        return nodes

    def ask(self, command):
        done = subprocess.run([FABRIC, "ctl", self.control, command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise boot.GuestError(f"netdam-fabric: {command}: {done.stdout or done.stderr}")
        return json.loads(done.stdout)

    def link(self, name):
        return f"memif={self.paths[name]},role=client"


def both(cards, commands):
    """One command for each, at the same moment."""
    for card, command in zip(cards, commands):
        card.ask(command)
    return [card.answer(command) for card, command in zip(cards, commands)]


def make_guest(name, link, shared):
    """`link`: the wire between the first cards, as a property of -device, or an end of boot.wire()."""
    wires = [end for end in (shared, link) if end is not None and not isinstance(end, str)]
    number = ord(name) - 96
    args = list(MACHINE)
    for slot, memory, wire, address, mac in (
            (CARD, "onboard", link if isinstance(link, str) else "netdev=net1", ADDRESSES[name], f"02:00:0a:4e:00:0{number}"),
            (SHARED_CARD, "onboard2", "netdev=net0", SHARED[name], f"02:00:0a:4e:01:0{number}"))[:1 if shared is None else 2]:
        args += ["-device", f"netdam,addr=0x{slot[-4:-2]},memdev={memory},{wire},ip={address}/24,mac={mac},mtu={MTU},firmware={FIRMWARE}"]
    return boot.Guest(f"run-{name}", "pair-inside.sh", initrd=os.path.join(RUN, "pair.cpio"),
                      memories={"onboard": ONBOARD_BYTES, "onboard2": ONBOARD_BYTES}, wires=wires, hub=name == "a" and shared is not None, args=args,
                      append="intel_iommu=on")


def links(wire, directory):
    """The two ends of the wire between the first cards."""
    if wire == "netdev":
        return boot.wire("stream")
    path = os.path.join(directory, "link")
    return f"memif={path},role=server", f"memif={path},role=client"


def say(text):
    print(text, flush=True)


def move_file(a, b, result):
    with open(PAYLOAD, "rb") as file:
        expected = hashlib.sha256(file.read()).hexdigest()
    size = int(a.do("load /payload")["bytes"])
    pushed = a.do("push")
    digest = b.do(f"sha256 {size}")["sha256"]
    result["file_bytes"] = size
    result["file_sha256_ok"] = digest == expected
    say(f"A wrote {size} bytes into B's on-board memory in {float(pushed['seconds']) * 1e3:.1f} ms")
    say(f"  sha256 of the file   {expected}\n  sha256 on B          {digest}")
    pulled = a.do("pull")
    digest = a.do(f"sha256 {size}")["sha256"]
    result["readback_ok"] = digest == expected
    say(f"A read them back in {float(pulled['seconds']) * 1e3:.1f} ms\n  sha256 on A          {digest}")


def count(a, b, result):
    answers = both([a, b], [f"add other {ADDS}", f"add self {ADDS}"])
    value = int(b.do("counter")["value"])
    result["counter_value"] = value
    result["counter_interleaved"] = int(answers[0]["interleaved"])
    result["counter_exact"] = value == 2 * ADDS
    say(f"A and B added 1 to one counter {ADDS} times each: it is {value}; "
        f"B came between A's steps {answers[0]['interleaved']} times")


def reduce(a, b, result):
    b.do("base")
    both([a, b], ["vector 3", "vector 5"])
    both([a, b], ["reduce other", "reduce self"])
    check = b.do("check 3 5")
    result["reduce_elements"] = int(check["elements"])
    result["reduce_ok"] = check["wrong"] == "0"
    say(f"A and B each added a vector of {check['elements']} float32 into a buffer on B: {check['wrong']} elements wrong")


def exchange_messages(a, b, result):
    key = b.do("post")["key"]
    sent = a.do(f"send {key}")["messages"]
    got = b.do("receive")
    result["messages_ok"] = sent == got["messages"] and got["wrong"] == "0"
    say(f"A sent {sent} messages of 1 KiB into receive buffers of B: {got['messages']} came, {got['wrong']} bytes wrong")


def lock(a, b, result):
    answers = both([a, b], [f"lock other {LOCKS}", f"lock self {LOCKS}"])
    number = int(b.do("lock self 0")["number"])
    result["lock_exact"] = number == 2 * LOCKS
    say(f"A and B took a compare-and-swap lock {LOCKS} times each to add 1 to a number: it is {number}; "
        f"the lock was taken {sum(int(answer['refused']) for answer in answers)} times when asked for")


def sum_vectors(members, addresses, result):
    """One descriptor in each member's ring; every element is checked by every member."""
    group = " ".join(addresses[member.name] for member in members)
    both(members, [f"group {rank} {group}" for rank in range(len(members))])
    both(members, [f"vector {FACTORS[member.name]}" for member in members])
    answers = both(members, ["all-reduce " + " ".join(str(FACTORS[member.name]) for member in members)] * len(members))
    stats = both(members, ["stat"] * len(members))
    result["all_reduce_members"] = len(members)
    result["all_reduce_elements"] = int(answers[0]["elements"])
    result["all_reduce_seconds"] = max(float(answer["seconds"]) for answer in answers)
    result["all_reduce_ok"] = all(answer["wrong"] == "0" for answer in answers) and all(
        stat["main_memory_bytes"] == "0" for stat in stats)
    say(f"A, B and two nodes beside them summed vectors of {answers[0]['elements']} float32, one descriptor each: "
        f"{', '.join(answer['wrong'] for answer in answers)} elements wrong, {result['all_reduce_seconds'] * 1e3:.0f} ms")


def all_reduce(a, b, result):
    """The second cards of both guests and two nodes beside them, on one hub in A's QEMU."""
    for card in (a, b):
        card.do("close")
        card.do(f"open {KEY} {SHARED[card.name]} {SHARED[card.name]} {SHARED_CARD}")
        card.do("bus-master off")
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="netdam-run-"))
        members = [a, b]
        for name in ("c", "d"):
            path, peer_path = os.path.join(directory, name), os.path.join(directory, f"hub-{name}")
            a.guest.plug(f"node-{name}", peer_path, path)
            node = stack.enter_context(Node(name, SHARED[name], f"wire={path}:{peer_path}"))
            node.open()
            members.append(node)
        sum_vectors(members, SHARED, result)
    still_off = [card.do("bus-master")["bus_master"] for card in (a, b)]
    result["all_reduce_ok"] = result["all_reduce_ok"] and still_off == ["0"] * 2


def all_reduce_through(network, a, b, result):
    """The cards of both guests and two nodes beside them, at four ports of the fabric; then one of these and the file's nodes."""
    with contextlib.ExitStack() as stack:
        members = [a, b]
        for name in ("c", "d"):
            node = stack.enter_context(Node(name, FABRIC_ADDRESSES[name], f"memif={network.paths[name]}"))
            node.open()
            members.append(node)
        sum_vectors(members, FABRIC_ADDRESSES, result)
        result["nodes"] = len(network.nodes)
        result["nodes_ok"] = all(visit(members[2], node) for node in network.nodes)
    say(f"C wrote a file into each of {len(network.nodes)} nodes of the topology and read it back: "
        f"{'as it was' if result['nodes_ok'] else 'WRONG'}")


def visit(card, node):
    """A file there and back."""
    with open(PAYLOAD, "rb") as file:
        expected = hashlib.sha256(file.read()).hexdigest()
    card.do("close")
    card.open(node["address"])
    size = int(card.do(f"load {PAYLOAD}")["bytes"])
    card.do("push")
    card.do("pull")
    return card.do(f"sha256 {size}")["sha256"] == expected


def measure(a, result):
    result["latency_us"] = {}
    result["bandwidth_64k_GBps"] = {}
    say("from posting to completion, A to B      8 B median      p99    64 KiB")
    for name in OPERATIONS:
        latency = a.do(f"latency {name}")
        result["latency_us"][name] = {key: float(latency[f"{key}_us"]) for key in ("min", "p50", "p99")}
        line = f"  {name:36} {float(latency['p50_us']):8.1f} us {float(latency['p99_us']):8.1f} us"
        if name in BULK:
            result["bandwidth_64k_GBps"][name] = float(a.do(f"bandwidth {name}")["GBps"])
            line += f" {result['bandwidth_64k_GBps'][name]:6.2f} GB/s"
        say(line)
    result["write_lat_p50_us"] = result["latency_us"]["write"]["p50"]
    result["write_lat_p99_us"] = result["latency_us"]["write"]["p99"]
    result["write_bw_64k_GBps"] = result["bandwidth_64k_GBps"]["write"]


def wait_by_interrupt(a, b, result):
    """The cards once more, now through vfio-pci, which can tell of interrupts."""
    for card in (a, b):
        card.do("close")
        card.ask("quit")
    for card in (a, b):
        card.guest.wait_line(r"^pair: ready$")
    open_cards(a, b)
    latency = a.do("latency write asleep")
    stat = a.do("stat")
    interrupts = int(stat["interrupts"])
    result["main_memory_bytes"] += int(stat["main_memory_bytes"])
    result["interrupts"] = interrupts
    result["latency_us"]["write, asleep"] = {key: float(latency[f"{key}_us"]) for key in ("min", "p50", "p99")}
    result["interrupts_ok"] = interrupts >= int(latency["count"]) // 2
    say(f"  {'write, asleep until MSI-X':36} {float(latency['p50_us']):8.1f} us {float(latency['p99_us']):8.1f} us"
        f"            {interrupts} interrupts for {latency['count']} writes")


def scan(cards, memory, marker):
    for card in cards:
        card.guest.pause()
    found = {card.name: card.guest.scan(memory, marker) for card in cards}
    for card in cards:
        card.guest.resume()
    return found


def search_marker(a, b, result):
    """The marker is random, crosses the wire in on-board memory, and must not be in any main memory until copied there."""
    marker = secrets.token_bytes(MARKER_BYTES)
    a.do("marker " + bytes(byte ^ 0xFF for byte in marker).hex())
    main = scan([a, b], "ram", marker)
    onboard = scan([a, b], "onboard", marker)
    b.do("copy")
    control = scan([b], "ram", marker)
    result["marker_in_main_memory"] = sum(main.values())
    result["marker_in_onboard"] = all(onboard.values())
    result["marker_control_found"] = all(control.values())
    say(f"marker sent from A to B: {sum(main.values())} times in the guests' main memory, "
        f"{onboard['a']} and {onboard['b']} times on board of A and B; "
        f"after B's CPU copied it: {control['b']} times in B's main memory")


def open_cards(a, b):
    for card, other in ((a, b), (b, a)):
        card.do(f"open {KEY} {ADDRESSES[card.name]} {ADDRESSES[other.name]} {CARD}")


def work(a, b, network, result):
    off = [card.do("bus-master off")["bus_master"] for card in (a, b)]
    say("bus mastering is off on both cards: they cannot reach main memory, nor raise MSI-X")
    move_file(a, b, result)
    count(a, b, result)
    reduce(a, b, result)
    exchange_messages(a, b, result)
    lock(a, b, result)
    search_marker(a, b, result)
    measure(a, result)
    stats = [card.do("stat") for card in (a, b)]
    result["main_memory_bytes"] = sum(int(stat["main_memory_bytes"]) for stat in stats)
    result["retransmissions"] = sum(int(stat["retransmissions"]) for stat in stats)
    still_off = [card.do("bus-master")["bus_master"] for card in (a, b)]
    if network is None:
        all_reduce(a, b, result)
    else:
        all_reduce_through(network, a, b, result)
        totals = network.ask("counters")["totals"]
        result["fabric"] = totals
        result["fabric_balanced"] = totals["balanced"]
        say(f"through the fabric went {totals['in']} frames: {totals['dropped']} lost, {totals['copies']} copies made; "
            f"cards sent {result['retransmissions']} again")
    result["bus_master_off_ok"] = off + still_off == ["0"] * 4 and all(
        result[name] for name in ("file_sha256_ok", "readback_ok", "counter_exact", "reduce_ok", "messages_ok", "lock_exact", "all_reduce_ok"))


def commit():
    try:
        run = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None  # a machine without git
    return run.stdout.strip() or None


def previous_seconds(path):
    try:
        with open(path, encoding="ascii") as file:
            return json.load(file)["run_seconds"]
    except (OSError, ValueError, KeyError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--started", type=int, default=time.time_ns(), help="when the command began, ns since 1970")
    parser.add_argument("--result", default=os.path.join(RUN, "result.json"), help="default: %(default)s")
    parser.add_argument("--wire", choices=("memif", "netdev"), default="memif", help="between the first cards: the fast wire, "
                        "or a QEMU netdev (default: %(default)s)")
    parser.add_argument("--topology", help="netdam-fabric between all, as this file describes: with memif ports a, b, c and d")
    options = parser.parse_args()
    boot.exit_on_signals()
    os.makedirs(RUN, exist_ok=True)
    result = {"accelerator": boot.accelerator(), "cpus": os.cpu_count(), "commit": commit(),
              "wire": options.topology or options.wire, "previous_run_seconds": previous_seconds(options.result)}
    try:
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="netdam-run-"))
            network = None
            if options.topology:
                network = stack.enter_context(Network(options.topology, directory))
                ends, shared = (network.link("a"), network.link("b")), (None, None)
            else:
                ends, shared = links(options.wire, directory), boot.wire("dgram")
            guest_a = stack.enter_context(make_guest("a", ends[0], shared[0]))
            guest_b = stack.enter_context(make_guest("b", ends[1], shared[1]))
            a, b = Card("a", guest_a), Card("b", guest_b)
            for card in (a, b):
                card.guest.wait_line(r"^pair: ready$")
            say(f"two guests are up ({result['accelerator']}, {result['wire']})")
            open_cards(a, b)
            work(a, b, network, result)
            wait_by_interrupt(a, b, result)
            say(f"the cards' own count of bytes moved to or from main memory: {result['main_memory_bytes']}")
            for card in (a, b):
                card.ask("quit")
            status = [card.guest.wait_exit() for card in (a, b)]
    except boot.GuestError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
    result["run_seconds"] = round((time.time_ns() - options.started) / 1e9, 2)
    passed = all(result[name] for name in CHECKS + (FABRIC_CHECKS if options.topology else [])) and result["marker_in_main_memory"] == 0 \
        and result["main_memory_bytes"] == 0 and status == [0, 0]
    result["passed"] = passed
    with open(options.result + ".new", "w", encoding="ascii") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    os.replace(options.result + ".new", options.result)
    say(f"{'passed' if passed else 'FAILED'} in {result['run_seconds']} s; {os.path.relpath(options.result)}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
