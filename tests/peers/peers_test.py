#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The comparison between two guests in its brief form: every figure of every wire and peer is there (TAP)."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
for folder in (HERE, os.path.join(ROOT, "tests", "lib")):
    sys.path.insert(0, folder)
import peers  # noqa: E402
from ndtest import all_checked, check  # noqa: E402

WHOLE = os.path.join(peers.O, "bench", "fabric-quick.json")


def main():
    if os.path.exists(WHOLE):
        os.unlink(WHOLE)
    done = subprocess.run([os.path.join(HERE, "peers.py"), "--quick"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    print("# " + done.stdout.replace("\n", "\n# "))
    check(done.returncode == 0, "NetDAM, SoftRoCE and TCP are measured between the same two guests")
    figures = {}
    if os.path.exists(WHOLE):
        with open(WHOLE, encoding="utf-8") as file:
            figures = json.load(file)
    medians = figures.get("guests", {}).get("medians", {})
    expected = [f"netdam_{name}_write_8b_us" for name, _ in peers.CARDS]
    expected += [f"tcp_{name}_8b_us" for name in peers.ETHERNETS]
    expected += [f"rxe_{name}_read_4k_us" for name in peers.ETHERNETS]
    missing = [name for name in expected if not medians.get(name, 0) > 0]
    check(not missing, "each wire and each peer has figures", missing)
    missing = [name for name in peers.GOALS if not figures.get(name, 0) > 0]
    check(not missing, "each figure that has a goal is written", missing)
    shares = figures.get("guests", {}).get("processor_us", {})
    missing = [f"{name}: {who}" for name, wants in (("netdam_memif_write_8b_mops", ("A vcpu", "A card", "B card")),
                                                    ("netdam_fabric_write_8b_mops", ("A vcpu", "A card", "B card", "fabric")))
               for who in wants if who not in shares.get(name, {})]
    check(not missing, "who needs how much processor time is told", missing)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
