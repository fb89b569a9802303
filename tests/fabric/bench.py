#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How many frames a second one core of the fabric carries through one switch. Writes JSON to the file that is named.

"forwarding": from DPDK's net_null to net_null, without a byte that crosses to another process. "memif": from one memif
port to another, two copies. Per core means per second of CPU time that the fabric used, its waiting included, so that
other work on the machine falsifies little; "wall" is what came through, source and sink beside it on the same cores.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import harness
from harness import Endpoints, Fabric
from ndtest import TOP, end_started

SECONDS = float(os.environ.get("BENCH_SECONDS", "2"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))


def cpu_s(process):
    with open("/proc/%d/stat" % process.pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(fabric, work):
    """Frames in millions per second, of CPU time and of the clock, while `work` goes on."""
    before, used = fabric.control.counters(), cpu_s(fabric.process)
    work()
    after, used = fabric.control.counters(), cpu_s(fabric.process) - used
    frames = after["totals"]["out"] - before["totals"]["out"]
    lost = after["totals"]["dropped"] - before["totals"]["dropped"]
    wall = (after["uptime_ns"] - before["uptime_ns"]) / 1e9
    return {"mpps_per_core": frames / used / 1e6, "mpps_wall": frames / wall / 1e6, "lost": lost / max(1, frames + lost)}


def forwarding(size):
    fabric = Fabric('ports = ( { name = "a"; type = "pmd"; devargs = "net_null0,size=%d"; },'
                    '{ name = "b"; type = "pmd"; devargs = "net_null1,size=%d,no-rx=1"; } ); switches = ( { name = "s"; } );'
                    'links = ( { from = "a"; to = "s"; }, { from = "b"; to = "s"; } );' % (size, size), "--poll")
    until = fabric.control.counters()["uptime_ns"] + SECONDS * 1e9
    result = rates(fabric, lambda: fabric.control.until(lambda c: c["uptime_ns"] >= until, "time"))
    fabric.stop()
    return result


def memif(size):
    fabric = Fabric('ports = ( { name = "e"; count = 2; } ); switches = ( { name = "s"; } );'
                    'links = ( { from = "e"; to = "s"; } );')
    ends = Endpoints("e0", "e1")
    ends.do("up")
    ends.do("careless")
    ends.do("send", 1, 0, 1, size)
    ends.do("wait", 0, 1)
    frames = int((1000000 if size < 1000 else 200000) * SECONDS)

    def work():
        ends.do("send", 0, 1, frames, size)
        fabric.control.until(lambda c: c["ports"][0]["in_frames"] >= frames and c["totals"]["under_way"] == 0, "all through")

    result = rates(fabric, work)
    ends.stop()
    fabric.stop()
    return result


def main():
    rounds = {}
    for _ in range(ROUNDS):
        for kind in (forwarding, memif):
            for size in (64, 9000):
                with tempfile.TemporaryDirectory(prefix="netdam-fabric-") as directory:
                    harness.directory = directory
                    rounds.setdefault((kind.__name__, size), []).append(kind(size))
                    end_started()
    result = {"fabric_mpps_per_core": {}, "switch_rounds": ROUNDS, "cpus": os.cpu_count(),
              "commit": subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                                       check=False).stdout.strip()}
    for (kind, size), measured in rounds.items():
        entry = {key: round(statistics.median(one[key] for one in measured), 4) for key in measured[0]}
        entry["low"], entry["high"] = (round(f(one["mpps_per_core"] for one in measured), 4) for f in (min, max))
        result["fabric_mpps_per_core"].setdefault(kind, {})[str(size)] = entry
        print("%-10s %5d B  %7.3f M frames/s per core (%.3f to %.3f), %7.3f by the clock, lost %.4f" %
              (kind, size, entry["mpps_per_core"], entry["low"], entry["high"], entry["mpps_wall"], entry["lost"]))
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
