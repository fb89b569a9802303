#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library on the card in a guest: through vfio-pci with interrupts, and through sysfs without (TAP)."""

import functools
import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
for folder in ("guest", "lib"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import boot  # noqa: E402
import ndtest  # noqa: E402

CYCLES = int(os.environ.get("CYCLES", "10000"))
INITRD = os.path.join(ROOT, "build", "tests", "driver", "card.cpio")
CARD = ["-device", f"netdam,memdev=mem0,ip=10.0.0.1/24,firmware={boot.FIRMWARE}"]
SECONDS = 900

check = functools.partial(ndtest.check, most=1000)  # all that a guest has said


def run(way, args, append=""):
    with boot.Guest(f"card-{way}", f"card-inside.sh {way} {CYCLES}", initrd=INITRD, memories={"mem0": 16 << 20}, append=append,
                    args=args) as guest:
        status = guest.wait_exit(SECONDS)
        return status, guest.lines


def main():
    boot.exit_on_signals()
    status, lines = run("vfio", boot.iommu() + CARD, "intel_iommu=on")
    check(status == 0, "the card works through vfio-pci", lines)
    check("driver vfio-pci" in lines, "vfio-pci had it", lines)
    check(lines.count("operations: done") == 2, "operations went through", lines)
    check(any(line.startswith(f"arm-and-wait: {CYCLES} cycles") for line in lines),
          f"{CYCLES} times armed and waited, and no wake-up lost", lines)
    check("bus master 0" in lines, "afterwards the card may not write to main memory", lines)
    status, lines = run("sysfs", CARD)
    check(status == 0, "the card works through sysfs", lines)
    check(lines.count("operations: done") == 2, "operations went through", lines)
    check("bus master 0" in lines, "the card was never allowed to write to main memory", lines)
    return ndtest.all_checked()


if __name__ == "__main__":
    sys.exit(main())
