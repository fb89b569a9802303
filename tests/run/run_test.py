#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The two-guest run as a test: each check of its result, in TAP."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "lib"))
from ndtest import all_checked, check  # noqa: E402

RESULT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "run", "test.json")
TRUE = ["file_sha256_ok", "readback_ok", "counter_exact", "reduce_ok", "messages_ok", "lock_exact", "all_reduce_ok", "bus_master_off_ok",
        "marker_in_onboard", "marker_control_found", "interrupts_ok"]
ZERO = ["marker_in_main_memory", "main_memory_bytes"]
NUMBERS = ["write_lat_p50_us", "write_bw_64k_GBps", "run_seconds"]


def main(*options, also=()):
    """Runs with these options; further entries of the result have to be true."""
    try:
        os.unlink(RESULT)
    except FileNotFoundError:
        pass
    run = subprocess.run([os.path.join(HERE, "run.py"), "--result", RESULT, *options], capture_output=True, text=True, check=False)
    for line in (run.stdout + run.stderr).splitlines():
        print(f"# {line}")
    try:
        with open(RESULT, encoding="ascii") as file:
            result = json.load(file)
    except (OSError, ValueError):
        result = {}
    check(run.returncode == 0, "the run exits with 0")
    for name in [*TRUE, *also]:
        check(result.get(name) is True, f"{name} is true")
    for name in ZERO:
        check(result.get(name) == 0 and name in result, f"{name} is 0")
    for name in NUMBERS:
        check(isinstance(result.get(name), (int, float)) and result[name] > 0, f"{name} is there")
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
