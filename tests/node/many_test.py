#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Many nodes in one process: names, addresses, regions and what is in them, readiness, counters, the end. Prints TAP."""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from ndtest import LIMIT_S, MEM, NODE, TOP, Program, equal, run, test  # noqa: E402

sys.path.insert(0, os.path.join(TOP, "tests", "client"))
import netdam_packet as nd  # noqa: E402
from netdam_client import Client  # noqa: E402

MANY = 64


class Process(Program):
    """A netdam-node with --json, from its first line to its last."""

    def __init__(self, *options):
        super().__init__(NODE, "--json", *options)
        self.nodes = []
        while (line := self.json())["event"] != "all-ready":
            self.nodes.append(line)
        self.summary = line

    def counters(self):
        self.process.send_signal(signal.SIGUSR1)
        return {line["name"]: line for line in (self.json() for _ in self.nodes)}


def client_of(node, region=0):
    return Client(node["address"], node["port"], int(node["regions"][region]["key"], 16))


def read(node, address, length, region=0):
    client = client_of(node, region)
    try:
        answer = client.read(address, length)
        equal(nd.STATUS_NAMES[answer.status], "OK")
        return answer.payload
    finally:
        client.close()


def status_of(node, operation, *arguments, region=0):
    client = client_of(node, region)
    try:
        return nd.STATUS_NAMES[getattr(client, operation)(*arguments).status]
    finally:
        client.close()


@test
def each_of_64_nodes_answers_and_keeps_its_own(directory):
    with Process("--nodes", str(MANY), "--listen", "127.0.0.1:0", "--memory", "64K") as nodes:
        equal([node["name"] for node in nodes.nodes], ["node%d" % i for i in range(MANY)])
        equal(len({node["port"] for node in nodes.nodes}), MANY, "ports")
        equal(len({node["key"] for node in nodes.nodes}), MANY, "keys")
        for i, node in enumerate(nodes.nodes):
            client = client_of(node)
            equal(nd.STATUS_NAMES[client.write(8 * i, struct.pack("<Q", i + 1)).status], "OK")
            client.close()
        for i, node in enumerate(nodes.nodes):
            equal(read(node, 0, 8 * MANY), bytes(8 * i) + struct.pack("<Q", i + 1) + bytes(8 * (MANY - 1 - i)))
        counters = nodes.counters()
        for node in nodes.nodes:
            assert counters[node["name"]]["REQUESTS_EXECUTED"] >= 2, node["name"]
        nodes.end()


@test
def what_they_take_is_told(directory):
    with Process("--nodes", "3", "--listen", "127.0.0.1:0", "--memory", "1M") as usual:
        equal(usual.summary["nodes"], 3)
        equal(usual.summary["memory_bytes"], 3 << 20)
        equal(usual.summary["state_bytes"], sum(node["state_bytes"] for node in usual.nodes))
    with Process("--nodes", "3", "--listen", "127.0.0.1:0", "--memory", "1M", "--limit", "lanes=64", "--limit", "lane_windows=16",
                 "--limit", "replies=16", "--limit", "tenant_senders=16") as small:
        assert small.summary["state_bytes"] < usual.summary["state_bytes"], "limits change nothing"


@test
def a_limit_bounds_what_is_kept_of_requesters(directory):
    with Process("--node", "a", "--listen", "127.0.0.1:0", "--memory", "64K", "--limit", "lane_windows=4", "--limit", "lanes=4") as nodes:
        clients = [client_of(nodes.nodes[0]) for _ in range(4)]
        for client in clients:
            client.write(0, b"hold on.")  # not confirmed: its window stays
        other = client_of(nodes.nodes[0])
        packet = other.build(nd.CONFIRM, 1, key=0)
        other.accept_stale(other.endpoint.exchange(packet))
        answer = other.endpoint.exchange(other.build(nd.WRITE, 1, distance=0, address=0, payload=b"one more"))
        equal(nd.STATUS_NAMES[answer.status], "BUSY")
        for client in clients + [other]:
            client.close()
        lanes = nodes.counters()["a"]["LANES"]
        assert lanes <= 4, "%d lanes" % lanes


@test
def addresses_count_upward_from_the_first(directory):
    with Process("--nodes", "3", "--listen", "127.0.0.1:0", "--memory", "4K", "--step", "address") as nodes:
        equal([node["address"] for node in nodes.nodes], ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        for node in nodes.nodes:
            equal(read(node, 0, 8), bytes(8))


@test
def ports_count_upward_from_the_first(directory):
    with Process("--node", "a", "--listen", "127.0.0.9:0", "--memory", "4K") as first:
        port = first.nodes[0]["port"]
    if port > 65000:
        port -= 1000
    with Process("--nodes", "3", "--listen", "127.0.0.9:%d" % port, "--memory", "4K") as nodes:
        equal([node["port"] for node in nodes.nodes], [port, port + 1, port + 2])


@test
def a_section_differs_from_what_holds_for_all(directory):
    with Process("--memory", "64K", "--listen", "127.0.0.1:0", "--key", "0x77", "--node", "left", "--node", "right", "--memory", "1M",
                 "--permissions", "r", "--mtu", "9000") as nodes:
        left, right = nodes.nodes
        equal([left["name"], left["bytes"], left["mtu"], int(left["key"], 16)], ["left", 65536, 1500, 0x77])
        equal([right["name"], right["bytes"], right["mtu"], int(right["key"], 16)], ["right", 1 << 20, 9000, 0x77])
        equal(status_of(left, "write", 0, b"1"), "OK")
        equal(status_of(right, "write", 0, b"1"), "NO_PERMISSION")


@test
def regions_have_keys_permissions_and_content(directory):
    path = os.path.join(directory, "file")
    with open(path, "wb") as file:
        file.write(b"from a file")
    with Process("--listen", "127.0.0.1:0", "--memory", "64K", "--node", "a",
                 "--region", "bytes=4K,key=1,permissions=r,load=" + path,
                 "--region", "bytes=4K,key=0x2,pattern=c0ffee",
                 "--region", "bytes=4K,pattern=count,permissions=rw",
                 "--region", "permissions=a",
                 "--region", "at=8K,bytes=16,key=5") as nodes:
        node = nodes.nodes[0]
        equal([(r["at"], r["bytes"]) for r in node["regions"]], [(0, 4096), (4096, 4096), (8192, 4096), (12288, 53248), (8192, 16)])
        equal([int(r["key"], 16) for r in node["regions"]][:2], [1, 2])
        equal(read(node, 0, 16), b"from a file" + bytes(5))
        equal(read(node, 4088, 8), bytes(8))
        equal(read(node, 0, 7, 1), bytes.fromhex("c0ffeec0ffeec0"))
        equal(read(node, 4095, 1, 1), b"\xc0")
        equal(read(node, 8 * 510, 16, 2), struct.pack("<QQ", 510, 511))
        equal(read(node, 0, 16, 4), struct.pack("<QQ", 0, 1), "two regions over the same memory")
        equal(status_of(node, "write", 0, b"1"), "NO_PERMISSION")
        equal(status_of(node, "read", 0, 8, region=3), "NO_PERMISSION")
        equal(status_of(node, "write", 0, b"1", region=2), "OK")
        equal(status_of(node, "write", 4089, bytes(8), region=2), "BAD_RANGE")


@test
def each_node_loads_its_own_file(directory):
    for i in range(3):
        with open(os.path.join(directory, "part-%d" % i), "w", encoding="ascii") as file:
            file.write("part %d" % i)
    with Process("--listen", "127.0.0.1:0", "--nodes", "3", "--memory", "4K", "--load", os.path.join(directory, "part-%n")) as nodes:
        equal([read(node, 0, 6) for node in nodes.nodes], [b"part 0", b"part 1", b"part 2"])


TOPOLOGY = """
nodes = ( { name = "n"; count = 11; join = "udp"; listen = "127.0.0.1:0"; memory = "64K"; key = "0x12"; },
          { name = "big"; join = "udp"; listen = "127.0.0.1:0"; memory = "1M"; mtu = 9000;
            regions = ( { bytes = "4K"; permissions = "r"; load = "content"; }, { offset = "4K"; key = "77"; pattern = "count"; } ); },
          { name = "link"; address = "10.9.0.1"; path = "link.sock"; role = "server"; pattern = "c0ffee"; key = "5"; } );
"""


def topology(directory, text=TOPOLOGY):
    for name, content in (("content", "beside it"), ("net.conf", text)):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write(content)
    return os.path.join(directory, "net.conf")


@test
def a_topology_file_names_the_nodes(directory):
    with Process("--topology", topology(directory)) as nodes:
        equal([node["name"] for node in nodes.nodes], ["n%d" % i for i in range(11)] + ["big", "link"])
        equal({node["key"] for node in nodes.nodes[:11]}, {"0x%016x" % 0x12})
        big = nodes.nodes[11]
        equal([big["bytes"], big["mtu"]], [1 << 20, 9000])
        equal([(r["at"], r["bytes"]) for r in big["regions"]], [(0, 4096), (4096, (1 << 20) - 4096)])
        equal(int(big["regions"][1]["key"], 16), 77)
        equal(read(big, 0, 9), b"beside it")
        equal(status_of(big, "write", 0, b"1"), "NO_PERMISSION")
        equal(read(big, 8, 16, region=1), struct.pack("<QQ", 1, 2))
        equal(status_of(big, "write", 0, b"1", region=1), "OK")
        equal([nodes.nodes[12]["address"], nodes.nodes[12]["port"]], ["10.9.0.1", 20036])
        back = subprocess.run([MEM, "read", "--device", "udp:10.9.0.2:20036,memif=" + os.path.join(directory, "link.sock"), "--peer", "10.9.0.1",
                               "--key", "5", "--length", "4"], capture_output=True, timeout=LIMIT_S, check=False)
        equal((back.returncode, back.stdout, back.stderr), (0, b"\xc0\xff\xee\xc0", b""), "through the link")


@test
def a_process_takes_some_of_a_topology(directory):
    path = topology(directory)
    for only, names in (("n1,big", ["n1", "big"]), ("n", ["n%d" % i for i in range(11)]), ("n10", ["n10"])):
        with Process("--topology", path, "--only", only) as nodes:
            equal([node["name"] for node in nodes.nodes], names)


@test
def a_wrong_topology_is_told_in_one_line(directory):
    good = topology(directory)
    wrong = os.path.join(directory, "wrong.conf")
    with open(wrong, "w", encoding="ascii") as file:
        file.write("\nnodes = ( { name = 5; } );\n")
    for part, options in ((wrong + ":2: ", ["--topology", wrong]), ("/nonexistent", ["--topology", "/nonexistent"]),
                          ("--only n,other", ["--topology", good, "--only", "n,other"]),
                          ("--only n,", ["--topology", good, "--only", "n,"]), ("--only n", ["--only", "n"]),
                          ("--topology", ["--topology", good, "--nodes", "2"]), ("--key", ["--topology", good, "--key", "1"]),
                          ("--memif", ["--topology", good, "--memif", "/nowhere/x"])):
        done = subprocess.run([NODE, *options], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        equal(done.returncode, 2, part)
        equal(done.stdout, "")
        equal(done.stderr.count("\n"), 1, part)
        assert part in done.stderr, done.stderr


@test
def two_nodes_cannot_have_the_same_end_of_a_link(directory):
    link = os.path.join(directory, "link")
    many = ["--memory", "4K", "--nodes", "2", "--listen", "10.0.0.1:20036", "--step", "address"]
    done = subprocess.run([NODE, *many, "--memif", link], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    equal((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
    assert "node0 and node1" in done.stderr and link in done.stderr, done.stderr
    with Process(*many, "--memif", link + "-%n") as nodes:
        nodes.end()
    both = ["--node", "a", "--listen", "10.0.0.1:20036", "--memif", link + ",role=server", "--node", "b", "--listen", "10.0.0.2:20036"]
    with Process("--memory", "4K", *both, "--memif", link) as nodes:
        nodes.end()


@test
def the_status_file_is_whole_private_and_removed(directory):
    path = os.path.join(directory, "status")
    with Process("--listen", "127.0.0.1:0", "--nodes", "5", "--memory", "4K", "--status", path) as nodes:
        with open(path, encoding="ascii") as file:
            status = json.load(file)
        equal(status["pid"], nodes.process.pid)
        equal([{"event": "ready", **node} for node in status["nodes"]], nodes.nodes)
        equal(os.stat(path).st_mode & 0o777, 0o600)
        nodes.end()
        equal([name for name in os.listdir(directory) if name.startswith("status")], [], "files")


@test
def the_status_file_takes_the_place_of_a_file_and_of_nothing_else(directory):
    path = os.path.join(directory, "status")
    link, pipe = os.path.join(directory, "link"), os.path.join(directory, "pipe")
    with open(path, "w", encoding="ascii") as file:
        file.write("of yesterday")
    os.symlink("/dev/null", link)
    os.mkfifo(pipe)
    for wrong in (link, pipe, directory):
        before = os.lstat(wrong).st_mode
        with subprocess.Popen([NODE, "--listen", "127.0.0.1:0", "--memory", "4K", "--status", wrong], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as node:
            try:
                first = node.stdout.readline()
            finally:
                node.terminate()
            equal(first, "")
            assert wrong in node.stderr.read()
            equal(node.wait(LIMIT_S), 1)
        equal(os.lstat(wrong).st_mode, before)
    with Process("--listen", "127.0.0.1:0", "--nodes", "1", "--memory", "4K", "--status", path) as nodes:
        with open(path, encoding="ascii") as file:
            equal(json.load(file)["pid"], nodes.process.pid)
        nodes.end()


@test
def a_status_file_belongs_to_one_process_at_a_time(directory):
    path = os.path.join(directory, "status")
    arguments = ["--listen", "127.0.0.1:0", "--nodes", "1", "--memory", "4K", "--status", path]
    with Process(*arguments) as first:
        for _ in range(2):
            second = subprocess.run([NODE, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
            equal((second.returncode, second.stdout, second.stderr),
                  (1, "", "netdam-node: %s: another netdam-node that runs keeps its status there\n" % path))
            with open(path, encoding="ascii") as file:
                equal(json.load(file)["pid"], first.process.pid)
        equal([name for name in os.listdir(directory) if name.startswith("status")], ["status"], "files")
        # What a process that was killed has left is in nobody's way, nor is a file that was removed meanwhile anybody's.
        first.process.kill()
        first.process.wait(LIMIT_S)
    with Process(*arguments) as third:
        with open(path, encoding="ascii") as file:
            equal(json.load(file)["pid"], third.process.pid)
        os.unlink(path)
        with Process(*arguments) as fourth:
            third.end()
            with open(path, encoding="ascii") as file:
                equal(json.load(file)["pid"], fourth.process.pid)
            fourth.end()
        equal([name for name in os.listdir(directory) if name.startswith("status")], [], "files")


@test
def what_is_printed_to_closed_streams_goes_nowhere(directory):
    path = os.path.join(directory, "status")
    options = ["--listen", "127.0.0.1:0", "--memory", "64K", "--key", "0x1234", "--status", path, "--counters", "--trace"]
    for closed in "<&- >&- 2>&-", "<&- >&-", ">&-", "2>&-":
        with Program("sh", "-c", 'exec "$@" ' + closed, "sh", NODE, *options) as node:
            deadline = time.monotonic() + LIMIT_S
            while not os.path.exists(path):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            with open(path, encoding="ascii") as file:
                reach = json.load(file)["nodes"][0]
            node.process.send_signal(signal.SIGUSR1)
            for _ in range(3):
                equal(read(reach, 0, 1024), bytes(1024), "memory of a node with " + closed)
            node.process.terminate()
            equal(node.process.wait(LIMIT_S), int(">&-" in closed.split()), "status with counters and " + closed)


@test
def output_that_cannot_be_written_is_a_failure(_directory):
    for option in "--help", "--version", "--limit=help":
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([NODE, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        equal((done.returncode, done.stderr), (1, "netdam-node: standard output: write error\n"), option)


@test
def a_node_that_cannot_start_takes_none_with_it(directory):
    path = os.path.join(directory, "status")
    with Process("--node", "a", "--listen", "127.0.0.1:0", "--memory", "4K") as other:
        taken = "127.0.0.1:%d" % other.nodes[0]["port"]
        wires = ["--wire", os.path.join(directory, "end-%n") + ":" + os.path.join(directory, "peer-%n")]
        done = subprocess.run([NODE, "--memory", "4K", "--status", path, "--node", "b", "--listen", "10.0.0.1:20036", *wires, "--node", "c",
                               "--listen", taken], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        equal(done.returncode, 1)
        equal(done.stdout, "")
        equal(done.stderr, "netdam-node: c: --listen %s: Address already in use\n" % taken)
        equal([name for name in os.listdir(directory) if name.startswith(("status", "end"))], [], "files")
        equal(read(other.nodes[0], 0, 1), b"\0")


def main():
    with tempfile.TemporaryDirectory() as directory:
        return run(directory)


if __name__ == "__main__":
    sys.exit(main())
