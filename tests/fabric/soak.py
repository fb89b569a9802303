#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A soak: for SOAK_SECONDS (1200) two requesters write to nodes over four planes with every fault, while planes die and come
back, faults change and captures begin and end. Counters balance at each look, memory is flat, no write fails. TAP."""

import json
import os
import random
import time

from harness import Fabric, main, path
from ndtest import TESTS, expect
from nodes_test import FAULTS, NODES, Nodes, Writes

SECONDS = float(os.environ.get("SOAK_SECONDS", "1200"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or int.from_bytes(os.urandom(4), "little")
LOOK_S = 2
GROWTH_KIB = 2048
TOPOLOGY = ('ports = ( { name = "h"; }, { name = "g"; } );' + NODES +
            'shapes = ( { kind = "leaf-spine"; name = "x"; leaves = 2; planes = 4; members = ( "h", "g", "n" );'
            ' trunk = { delay = "10us"; rate = "800M"; queue = "256K"; %s }; } ); seed = %dL;' % (FAULTS, SEED))


def looks(process):
    """KiB of memory that is the process' own, and file descriptors. Rings and buffers are shared, and bounded by their making."""
    with open("/proc/%d/status" % process.pid, encoding="ascii") as file:
        own = int(next(line for line in file if line.startswith("RssAnon")).split()[1])
    return own, len(os.listdir("/proc/%d/fd" % process.pid))


class Disturbance:
    """One plane at a time is down; faults of some trunk change; a capture runs now and then."""

    def __init__(self, control):
        self.control = control
        self.chance = random.Random(SEED)
        self.down = None
        self.capture = False

    def link(self, plane=None):
        return "x-leaf%d-x-spine%d" % (self.chance.randrange(2), self.chance.randrange(4) if plane is None else plane)

    def act(self):
        if self.down is not None:
            self.control.good("up", link=self.down)
        self.down = self.link()
        # Unnoticed, a run's first packets could all be lost by chance: requests and answers have their ways by a hash.
        self.control.good("down", link=self.down, noticed=True)
        self.control.good("faults", link=self.link(), faults={"drop": "%d%%" % self.chance.randrange(4),
                                                              "jitter": "%dus" % self.chance.randrange(100)})
        self.control.good("capture-stop" if self.capture else "capture", port="h",
                          **({} if self.capture else {"file": path("soak.pcap")}))
        self.capture = not self.capture


def soak():
    fabric = Fabric(TOPOLOGY)
    nodes = Nodes(fabric)
    disturbance = Disturbance(fabric.control)
    watched = {"fabric": fabric.process, "nodes": nodes.process}
    seen = {name: [] for name in watched}
    writers, runs, frames = [], 0, 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for writer in [w for w in writers if w.process.poll() is not None]:
            status, errors = writer.ended()
            expect(status == 0, "writes failed: %s" % errors)
            writers.remove(writer)
            writer.kill()
            runs += 1
        while len(writers) < 2:
            busy = {w.port for w in writers}
            writers.append(Writes(runs % 2, 400, port=next(p for p in ("h", "g") if p not in busy)))
        disturbance.act()
        counters = fabric.control.counters()
        expect(counters["totals"]["balanced"], "counters do not balance: %s" % json.dumps(counters))
        expect(counters["totals"]["in"] >= frames, "counters run backwards")
        frames = counters["totals"]["in"]
        for name, process in watched.items():
            seen[name].append(looks(process))
        time.sleep(LOOK_S)
    for writer in writers:
        status, errors = writer.ended()
        expect(status == 0, "writes failed: %s" % errors)
    nodes.end()
    totals = fabric.stop()["totals"]
    print("# %d runs of writes, %s" % (runs + len(writers), json.dumps(totals)))
    for name, pairs in seen.items():
        half = pairs[len(pairs) // 4:len(pairs) // 2 + 1], pairs[-max(1, len(pairs) // 4):]
        (early, early_fds), (late, late_fds) = ((max(p[0] for p in part), max(p[1] for p in part)) for part in half)
        print("# %s: %d KiB and %d descriptors in the second quarter, %d and %d in the last" % (name, early, early_fds, late, late_fds))
        expect(late <= early + GROWTH_KIB and late_fds <= early_fds + 8, "%s grows: %s" % (name, pairs))


def under_faults_for_long_memory_is_flat_and_counters_balance():
    soak()


if __name__ == "__main__":
    print("# seed %d" % SEED)
    # What nodes_test has registered is not run here.
    TESTS[:] = [under_faults_for_long_memory_is_flat_and_counters_balance]
    main()
