#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many paths in virtual time: runs bench-paths, prints tables, writes them into build/bench/fabric.json.

bench.py [--quick]: quick runs everything briefly, to see that it works, into build/bench/fabric-quick.json. What others
have written into the file stays there; all of this is under the key "virtual_time", and the two figures that have a goal
beside it.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import figures  # noqa: E402


def print_report(report):
    print("write 64 KiB over four planes of 100 Gb/s, in virtual time")
    print("%10s %10s %12s" % ("loss %", "Gb/s", "of lossless"))
    for one in report["goodput"]:
        print("%10.1f %10.2f %12.3f" % (one["loss_percent"], one["gbit_s"], one["of_lossless"]))
    print("\nthe same from a node of 400 Gb/s")
    print("%10s %10s %12s" % ("paths", "Gb/s", "gain"))
    for one in report["spray"]:
        print("%10d %10.2f %12.2f" % (one["paths"], one["gbit_s"], one["gain"]))
    plane, dead = report["dead_plane"], report["all_dead"]
    print("\none plane of four dies: %d paths retired after %.1f round trips of %.1f us; %.1f Gb/s before, %.1f in the "
          "first ms, %.1f after" % (plane["paths_retired"], plane["retired_after_round_trips"], plane["round_trip_us"],
                                    plane["gbit_s_before"], plane["gbit_s_first_ms"], plane["gbit_s_after"]))
    print("all planes die: %d requests have failed after %.0f ms; when they are back, the first success after %.1f ms, "
          "nine tenths of the throughput after %.1f ms" % (dead["requests_failed"], dead["all_ended_after_ms"],
                                                           dead["first_ok_after_ms"], dead["nine_tenths_after_ms"]))
    print("\nlatency of 4 KiB writes, 32 under way, us\n%10s %10s %10s %10s %10s" % ("loss %", "p50", "p99", "p99.9", "max"))
    for one in report["latency"]:
        at = dict((share, value) for share, value in one["us"])
        print("%10.1f %10.1f %10.1f %10.1f %10.1f" % (one["loss_percent"], at[0.5], at[0.99], at[0.999], at[1]))


def main():
    quick = sys.argv[1:] == ["--quick"]
    if sys.argv[1:] and not quick:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    out = pathlib.Path(os.environ.get("O", "build"))
    run = subprocess.run([str(out / "tests/paths/bench-paths"), *sys.argv[1:]], stdout=subprocess.PIPE, text=True,
                         check=False)
    if run.returncode != 0:
        return 1
    report = json.loads(run.stdout)
    path = out / "bench" / ("fabric-quick.json" if quick else "fabric.json")
    figures.merge(path, {"virtual_time": report, "goodput_at_1pct_loss": report["goodput_at_1pct_loss"],
                         "spray_gain": report["spray_gain"]})
    print_report(report)
    print("\n%s" % path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
