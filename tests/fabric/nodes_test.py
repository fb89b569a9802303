#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Nodes, a requester and a plain UDP client through the fabric: faults, paths that die, who is killed. Prints TAP."""

import os
import subprocess
import sys

from harness import Endpoints, Fabric, by_name, main, path, way
from ndtest import BUILD, LIMIT_S, NODE, TOP, Program, equal, expect, test

WRITE = os.path.join(BUILD, "host-driver", "netdam_write_bw")
CLIENT = os.path.join(TOP, "tests", "client", "netdam_client.py")
KEY = "0x1234"

PORTS = 'ports = ( { name = "h"; } );'
NODES = 'nodes = ( { name = "n"; count = 2; address = "10.77.0.10"; memory = "8M"; mtu = 9000; key = "%s"; } );' % KEY
FAULTS = ('drop = "1%"; duplicate = "1%"; reorder = { chance = "5%"; by = "200us"; }; corrupt = "0.1%";'
          'spike = { chance = "0.1%"; by = "5ms"; };')
PLANES = PORTS + NODES + ('shapes = ( { kind = "leaf-spine"; name = "x"; leaves = 2; planes = 4; members = ( "h", "n" );'
                          ' trunk = { delay = "10us"; }; } );')


class Nodes(Program):
    def __init__(self, fabric, *only):
        super().__init__(NODE, "--json", "--topology", fabric.file, *only)
        while self.json()["event"] != "all-ready":
            pass


class Writes(Program):
    """Many WRITEs to a node, under way."""

    def __init__(self, node, count, size="64K", port="h"):
        self.port = port
        device = "udp:10.77.0.%d:20036,memif=%s,memif-role=client,mtu=9000,paths=16" % (1 if port == "h" else 2, path(port + ".sock"))
        super().__init__(WRITE, "--device", device, "--peer", "10.77.0.%d" % (10 + node), "--key", KEY, "--size", size, "--iters",
                         str(count), "--json", stderr=subprocess.PIPE)

    def ended(self):
        """Status and messages, within the time that everything has."""
        status, output, errors = super().ended()
        return status, errors + ("" if status == 0 else output)


def under_way(fabric, frames):
    """Waits until so many more frames have come in from the requester."""
    start = by_name(fabric.control.counters()["ports"], "h")["in_frames"]
    fabric.control.until(lambda c: by_name(c["ports"], "h")["in_frames"] >= start + frames, "%d frames under way" % frames)


@test
def writes_complete_over_links_with_every_fault():
    fabric = Fabric(PORTS + NODES + 'shapes = ( { kind = "star"; name = "s"; members = ( "h", "n" ); link = { %s }; } );' % FAULTS)
    nodes = Nodes(fabric)
    for node in range(2):
        equal(Writes(node, 300).ended(), (0, ""), "writes to node %d" % node)
    nodes.end()
    counters = fabric.stop()
    for fault in ("duplicated", "reordered"):
        expect(sum(w[fault] for w in counters["links"]) > 0, fault)
    expect(sum(w["dropped"]["fault"] for w in counters["links"]) > 0, "dropped")


@test
def a_plane_that_dies_in_mid_transfer_hurts_nobody():
    fabric = Fabric(PLANES)
    nodes = Nodes(fabric)
    writes = Writes(1, 1500)
    under_way(fabric, 500)
    fabric.control.good("down", link="x-leaf0-x-spine1")
    fabric.control.good("down", link="x-leaf1-x-spine1")
    equal(writes.ended(), (0, ""), "writes")
    expect(way(fabric.control.counters(), "x-leaf0-x-spine1")["dropped"]["down"] > 0, "the plane did not die in mid-transfer")
    nodes.end()
    fabric.stop()


@test
def a_plane_that_is_dead_unnoticed_keeps_nobody_from_a_first_contact():
    fabric = Fabric(PLANES)
    nodes = Nodes(fabric)
    for plane in range(4):
        dead = ["x-leaf%d-x-spine%d" % (leaf, plane) for leaf in range(2)]
        for link in dead:
            fabric.control.good("down", link=link)
        # Each requester is new: it asks for both link-layer addresses.
        for node in range(2):
            equal(Writes(node, 1).ended(), (0, ""), "write to node %d past plane %d" % (node, plane))
        for link in dead:
            fabric.control.good("up", link=link)
    nodes.end()
    fabric.stop()


@test
def when_all_planes_die_writes_end_with_a_status_and_work_again_afterwards():
    fabric = Fabric(PLANES)
    nodes = Nodes(fabric)
    writes = Writes(1, 100000)
    under_way(fabric, 500)
    for plane in range(4):
        fabric.control.good("down", link="x-leaf0-x-spine%d" % plane)
    status, errors = writes.ended()
    expect(status == 1 and errors != "", "status %d, %r" % (status, errors))
    for plane in range(4):
        fabric.control.good("up", link="x-leaf0-x-spine%d" % plane)
    equal(Writes(1, 200).ended(), (0, ""), "writes")
    nodes.end()
    fabric.stop()


@test
def a_link_that_is_refused_is_told_once_by_both_ends():
    def wrong(address):
        return Program(NODE, "--memory", "4K", "--listen", address + ":20036", "--memif", path("a.sock"), stderr=subprocess.PIPE)

    fabric = Fabric('ports = ( { name = "a"; id = 5; }, { name = "b"; } ); links = ( { from = "a"; to = "b"; } );')
    node = wrong("10.77.0.1")
    equal(node.process.stderr.readline().decode(),
          "netdam-node: memif %s: the peer disconnected: no interface has this id\n" % path("a.sock"), "the node's line")
    told = fabric.process.stderr.readline().decode()
    expect(told.startswith("netdam-fabric: port a: memif ") and told.endswith(": disconnected the peer: no interface has this id\n"), told)
    # Other nodes are refused like this one, which tries again and again meanwhile; then one comes that is not.
    for _ in range(5):
        other = wrong("10.77.0.2")
        expect(b"no interface has this id" in other.process.stderr.readline(), "another node says nothing")
        other.end()
    right = Endpoints("b")
    right.do("up")
    right.stop()
    node.process.terminate()
    status, _, errors = node.ended()
    equal((status, errors), (0, ""), "the node's end")
    fabric.stop()


@test
def a_fabric_that_is_killed_and_started_again_is_noticed_by_nobody_who_waits():
    fabric = Fabric(PLANES)
    nodes = Nodes(fabric)
    writes = Writes(1, 1500)
    under_way(fabric, 500)
    fabric.kill()
    fabric = Fabric(PLANES)
    status, errors = writes.ended()
    # A machine that stands still may take longer to start the fabric than requests live; then that is what is said.
    expect(status in (0, 1) and (status == 1) == (errors != ""), "status %d, %r" % (status, errors))
    equal(Writes(1, 200).ended(), (0, ""), "writes")
    nodes.end()
    fabric.stop()


@test
def a_node_that_is_killed_takes_nobody_with_it():
    fabric = Fabric(PLANES)
    first, second = Nodes(fabric, "--only", "n0"), Nodes(fabric, "--only", "n1")
    writes = Writes(1, 100000)
    under_way(fabric, 500)
    second.kill()
    status, errors = writes.ended()
    expect(status == 1 and errors != "", "status %d, %r" % (status, errors))
    equal(Writes(0, 200).ended(), (0, ""), "writes to the other")
    second = Nodes(fabric, "--only", "n1")
    equal(Writes(1, 200).ended(), (0, ""), "writes to the new one")
    first.end()
    second.end()
    fabric.stop()


def inside():
    """What runs in a network namespace of its own: an interface of the kernel, and the plain client over it."""
    subprocess.run(["ip", "address", "add", "10.77.0.1/24", "dev", "ndk0"], check=True)
    subprocess.run(["ip", "link", "set", "ndk0", "up"], check=True)
    for i in range(60):
        node = "10.77.0.%d:20036" % (10 + i % 2)
        done = subprocess.run(["/usr/bin/python3", CLIENT, node, KEY, "add", "0x80", "5"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        equal((done.returncode, done.stdout), (0, "%d\n" % (i // 2 * 5)), "add %d: %s" % (i, done.stderr))


@test
def the_plain_udp_client_reaches_nodes_over_an_interface_of_the_kernel():
    fabric = Fabric('ports = ( { name = "k"; type = "tap"; interface = "ndk0"; } );' + NODES +
                    'shapes = ( { kind = "star"; name = "s"; members = ( "k", "n" ); link = { %s }; } );' % FAULTS)
    nodes = Nodes(fabric)
    inside()
    nodes.end()
    fabric.stop()


if __name__ == "__main__":
    # The last test makes an interface: in a network namespace, of a user namespace where that takes one.
    if not os.environ.get("NETDAM_NAMESPACE"):
        command = ["unshare", "--net"] + ([] if os.getuid() == 0 else ["--map-root-user"])
        if subprocess.run(command + ["true"], check=False, stderr=subprocess.DEVNULL).returncode == 0:
            os.execvpe("unshare", command + [sys.executable] + sys.argv, dict(os.environ, NETDAM_NAMESPACE="1"))
        print("Bail out! no network namespace to be had: kernel.unprivileged_userns_clone, or root")
        sys.exit(1)
    main()
