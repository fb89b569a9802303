#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""All-reduce among nodes in processes of their own: exact sums, a member killed in the middle, and on again. Prints TAP."""

import os
import socket
import sys

import ring
from ndtest import equal, run, test

TOPOLOGY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "star.conf")


def sums_are_right(members, sizes, fabric=None):
    devices = fabric.devices if fabric else ring.free_devices
    with ring.Ring(devices(members, ring.MTU, max(sizes)), max(sizes)) as group:
        group.group()
        for size in sizes:
            group.all_reduce(size, 2)  # raises unless every element is right on every member


@test
def four_nodes_sum_exactly():
    sums_are_right(4, [4, 4096, 1 << 20, 100004])


@test
def eight_nodes_sum_exactly():
    sums_are_right(8, [4, 4096, 1 << 18, 100004])


@test
def four_and_eight_nodes_sum_exactly_through_the_fabric():
    with ring.Fabric(TOPOLOGY) as fabric:
        for members in (4, 8):
            sums_are_right(members, [4, 4096, 1 << 20, 100004], fabric)
        equal(fabric.ask("counters")["totals"]["balanced"], True, "counters balance")


@test
def a_node_killed_in_the_middle_is_named_by_all_others_and_after_a_restart_it_goes_on():
    bytes_, victim = 1 << 18, 2
    with ring.Ring(ring.free_devices(4, ring.MTU, bytes_), bytes_) as group:
        group.group()
        for answer in group.all("work %d" % bytes_):
            equal(answer["event"], "working", "event")
        group.members[victim].kill()
        others = [member for member in group.members if member.rank != victim]
        for member in others:
            answer = member.json()
            equal((answer["event"], answer["status"], answer["member"]), ("ended", "TIMEOUT", victim), "member %d" % member.rank)
        group.restart(victim)
        group.group()
        group.all_reduce(bytes_, 3)


@test
def when_the_fabric_is_killed_all_nodes_end_with_a_status_and_with_another_fabric_they_go_on():
    bytes_ = 1 << 18
    with ring.Fabric(TOPOLOGY) as fabric, ring.Ring(fabric.devices(4, ring.MTU, bytes_), bytes_) as group:
        group.group()
        for answer in group.all("work %d" % bytes_):
            equal(answer["event"], "working", "event")
        fabric.kill()
        for member in group.members:
            answer = member.json()
            equal((answer["event"], answer["status"]), ("ended", "TIMEOUT"), "member %d" % member.rank)
        fabric.start()
        group.group()
        group.all_reduce(bytes_, 3)


@test
def all_nodes_leave_their_ports_free():
    devices = ring.free_devices(4, ring.MTU, 4096)
    with ring.Ring(devices, 4096) as group:
        group.group()
        for member in group.members[:2]:
            member.kill()
    for device in devices:
        address, port = device.split(",")[0].split(":")[1:]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind((address, int(port)))
    left = [name for name in os.listdir("/dev/shm") if "netdam" in name]
    equal(left, [], "files in /dev/shm")


if __name__ == "__main__":
    sys.exit(run())
