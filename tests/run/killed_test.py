#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A guest, and the fabric between two guests, killed in the middle: the other guest's requests end with a status, and when there is
another they go on. Prints TAP."""

import contextlib
import os
import signal
import sys
import tempfile

import run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402
from ndtest import equal, test  # noqa: E402

TOPOLOGY = os.path.join(run.HERE, "faulty.conf")
COUNT, FOR_EVER = 100, 1 << 30


class Place:
    """Two guests and nodes round a fabric; `a` survives."""

    def __init__(self, stack):
        self.stack = stack
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="netdam-killed-"))
        self.network = stack.enter_context(run.Network(TOPOLOGY, directory))
        self.guest_a, self.guest_b = self.boot("a"), self.boot("b")
        self.a, self.b = self.card("a", self.guest_a), self.card("b", self.guest_b)

    def boot(self, name):
        return self.stack.enter_context(run.make_guest(name, self.network.link(name), None))

    @staticmethod
    def card(name, guest):
        card = run.Card(name, guest)
        guest.wait_line(r"^pair: ready$")
        other = run.ADDRESSES["b" if name == "a" else "a"]
        card.do(f"open {run.KEY} {run.ADDRESSES[name]} {other} {run.CARD}")
        return card

    def turn_to(self, address):
        """A's card anew, with another peer."""
        self.a.do("close")
        self.a.do(f"open {run.KEY} {run.ADDRESSES['a']} {address} {run.CARD}")

    def count(self):
        """The last old value of `COUNT` additions by A."""
        return int(self.a.do(f"add other {COUNT}")["last"])

    def interrupt(self, kill):
        """What A is told of requests that somebody's death comes between."""
        self.a.ask(f"add other {FOR_EVER}")
        kill()
        return self.guest_a.wait_line(r"^(ok|error)(.*)$").group(0)


def ended(line):
    if not line.startswith("error fetch-and-add ") or not line.endswith((": TIMEOUT", ": UNREACHABLE")):
        raise AssertionError(f"the request ended with: {line}")


@test
def guests_count_in_each_other_s_memory(place):
    equal(place.count(), COUNT - 1, "counter")


@test
def when_the_fabric_is_killed_requests_end_with_a_status(place):
    ended(place.interrupt(place.network.kill_fabric))


@test
def with_another_fabric_they_go_on(place):
    place.network.start_fabric()
    before = place.count()
    equal(place.count(), before + COUNT, "counter")


@test
def when_the_other_guest_is_killed_requests_end_with_a_status(place):
    ended(place.interrupt(lambda: os.kill(place.guest_b.pid, signal.SIGKILL)))


@test
def nodes_are_reached_as_before(place):
    for node in place.network.nodes:
        place.turn_to(node["address"])
        equal(place.count(), COUNT - 1, "counter")


@test
def with_another_guest_they_go_on(place):
    place.guest_b = place.boot("b")
    place.b = place.card("b", place.guest_b)
    place.turn_to(run.ADDRESSES["b"])
    equal(place.count(), COUNT - 1, "counter of a new card")


@test
def the_fabric_has_lost_track_of_nothing(place):
    equal(place.network.ask("counters")["totals"]["balanced"], True, "counters balance")


def main():
    run.boot.exit_on_signals()
    with contextlib.ExitStack() as stack:
        return ndtest.run(Place(stack))


if __name__ == "__main__":
    sys.exit(main())
