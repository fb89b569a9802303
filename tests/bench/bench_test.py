#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make bench-firmware in its quick mode: it runs, and what it writes is whole. The figures are not judged. TAP."""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from ndtest import all_checked, check, skip  # noqa: E402

OPERATIONS, TYPES = 8, 12
NUMBER = (int, float)

# What has to be there; a type means a number or a text of it.
PAIR = {"bytes": int, "device_gb_s": NUMBER, "host_gb_s": NUMBER, "ratio": NUMBER}
WRITES = {"gb_s": NUMBER, "memcpy_gb_s": NUMBER, "double_gb_s": NUMBER, "ratio": NUMBER, "ns": NUMBER}
TARGET = {"decode_ns": NUMBER, "payload_crc_ns": NUMBER, "lane_ns": NUMBER, "region_ns": NUMBER, "answer_ns": NUMBER,
          "rest_ns": NUMBER}
STAGES = {"bytes": int, "total_ns": NUMBER, "descriptor_ns": NUMBER, "request_ns": NUMBER, "target_ns": NUMBER,
          "completion_ns": NUMBER}
SHAPE = {
    "machine": {"cpu": str, "cpus": int, "kernel": str, "compiler": str},
    "rounds": int,
    "cpu_features": int,
    "alu_add_f32_ratio": {"memory": PAIR, "cache": PAIR},
    "loopback_mpps": {"mpps": NUMBER, "ns": NUMBER, "udp_mpps": NUMBER, "udp_ns": NUMBER, "ratio": NUMBER},
    "write_8k_vs_memcpy": {"bytes": int, "without_crc": WRITES, "with_crc": WRITES},
    "state_bytes_per_peer": {"requester": NUMBER, "lane_in_table": NUMBER, "lane_at_rest": int,
                             "lane_unfinished": NUMBER, "default_total": NUMBER},
    "crypto": {"bytes": int, "without": {"gb_s": NUMBER},
               "authenticated": {"gb_s": NUMBER, "library_gb_s": NUMBER, "ratio": NUMBER},
               "encrypted": {"gb_s": NUMBER, "library_gb_s": NUMBER, "ratio": NUMBER}},
    "anatomy": {"write_8": {**STAGES, "target": {**TARGET, "store_ns": NUMBER}},
                "reduce_8k": {**STAGES, "target": {**TARGET, "alu_ns": NUMBER}}},
}


def is_difference(path):
    """Of two times, which on a busy machine may come out as nothing or less."""
    return ".target." in path


def missing(shape, report, path=""):
    """Names of what is not there or of another type."""
    found = []
    for key, want in shape.items():
        here = "%s.%s" % (path, key) if path else key
        if not isinstance(report, dict) or key not in report:
            found.append(here)
        elif isinstance(want, dict):
            found += missing(want, report[key], here)
        elif not isinstance(report[key], want) or (want != str and report[key] <= 0 and not is_difference(here)):
            found.append("%s = %r" % (here, report[key]))
    return found


def missing_in_table(table):
    """Operations by type that the table lacks, or whose entries are not whole."""
    rows = {(one["operation"], one["type"]): one for one in table}
    found = ["%s %s" % key for key, one in rows.items()
             for where in ("memory", "cache") if missing({**PAIR, "host_gb_s": (int, float, type(None)),
                                                          "ratio": (int, float, type(None))}
                                                         if one[where]["ratio"] is None and one["type"] == "F16"
                                                         else PAIR, one[where])]
    # Integers know all operations, the four float types four of them.
    return found + ([] if len(rows) == 8 * OPERATIONS + 4 * 4 else ["%d rows" % len(rows)])


def main():
    out = pathlib.Path(os.environ.get("O", "build"))
    run = subprocess.run([str(HERE / "bench.py"), "--quick"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False, timeout=300)
    check(run.returncode == 0, "runs to its end", run.stdout)
    try:
        report = json.loads((out / "bench/quick.json").read_text())
    except (OSError, ValueError) as error:
        print("Bail out! no report: %s" % error)
        return 1
    found = missing(SHAPE, report)
    check(not found, "every figure is there", found)
    found = missing_in_table(report.get("alu", []))
    check(not found, "every operation of every type is in the table", found)
    check(report.get("quick") is True, "says that the figures mean nothing")
    peer = report.get("allreduce_vs_openmpi_shm", {})
    sizes = peer.get("sizes", [])
    check(sizes and all(not missing({"bytes": int, "netdam_ms": NUMBER, "netdam_crc_ms": NUMBER}, one) for one in sizes),
        "the devices' all-reduce", repr(peer))
    if "skipped" in peer:
        skip("Open MPI's all-reduce", peer["skipped"])
    else:
        check(sizes and all(not missing({"openmpi_ms": NUMBER, "speedup": NUMBER}, one) for one in sizes),
            "Open MPI's all-reduce", repr(peer))
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
