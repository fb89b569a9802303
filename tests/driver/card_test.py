#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The library on the card in a guest: through vfio-pci with interrupts, and through sysfs without (TAP)."""

import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "guest"))
import boot  # noqa: E402

CYCLES = int(os.environ.get("CYCLES", "10000"))
INITRD = os.path.join(ROOT, "build", "tests", "driver", "card.cpio")
FIRMWARE = os.path.join(ROOT, "build", "firmware", "netdam-fw.so")
CARD = ["-device", f"netdam,memdev=mem0,ip=10.0.0.1/24,firmware={FIRMWARE}"]
# The IOMMU has to be there before the devices that it stands in front of.
IOMMU = ["-device", "intel-iommu,intremap=on"]
SECONDS = 900

number = 0
failures = 0


def check(name, condition, lines):
    global number, failures
    number += 1
    if not condition:
        failures += 1
        for line in lines:
            print(f"# {line}")
    print(f"{'ok' if condition else 'not ok'} {number} - {name}", flush=True)


def run(way, args, append=""):
    with boot.Guest(f"card-{way}", f"card-inside.sh {way} {CYCLES}", initrd=INITRD, memories={"mem0": 16 << 20}, append=append,
                    args=args) as guest:
        status = guest.wait_exit(SECONDS)
        return status, guest.lines


def main():
    boot.exit_on_signals()
    print("1..8")
    args = IOMMU + CARD
    if boot.accelerator() == "kvm":
        args = ["-machine", "kernel-irqchip=split"] + args
    status, lines = run("vfio", args, "intel_iommu=on")
    check("the card works through vfio-pci", status == 0, lines)
    check("vfio-pci had it", "driver vfio-pci" in lines, lines)
    check("operations went through", lines.count("operations: done") == 2, lines)
    check(f"{CYCLES} times armed and waited, and no wake-up lost",
          any(line.startswith(f"arm-and-wait: {CYCLES} cycles") for line in lines), lines)
    check("afterwards the card may not write to main memory", "bus master 0" in lines, lines)
    status, lines = run("sysfs", CARD)
    check("the card works through sysfs", status == 0, lines)
    check("operations went through", lines.count("operations: done") == 2, lines)
    check("the card was never allowed to write to main memory", "bus master 0" in lines, lines)
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
