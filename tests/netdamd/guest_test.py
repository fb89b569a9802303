#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes in a guest share its card through netdamd, over sysfs and over vfio-pci; one is killed (TAP)."""

import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "guest"))
import boot  # noqa: E402

INITRD = os.path.join(ROOT, "build", "tests", "netdamd", "share.cpio")
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


def has(lines, start):
    return any(line.startswith(start) for line in lines)


def run(way, args, append, interrupt):
    with boot.Guest(f"netdamd-{way}", f"share-inside.sh {way}", initrd=INITRD, memories={"mem0": 16 << 20}, append=append,
                    args=args) as guest:
        status = guest.wait_exit(SECONDS)
        lines = guest.lines
    opened = f"opened broker:/run/netdamd.sock doorbell {way} interrupt {interrupt}"
    check(f"{way}: two processes share the card, each with a doorbell page of its own",
          f"a: {opened}" in lines and f"b: {opened}" in lines, lines)
    check(f"{way}: both have leases", sum(line.startswith("lease ") for line in lines) == 2, lines)
    check(f"{way}: one is killed, and its leases return",
          "a: killed 9" in lines and any("took back 1 queue pairs, 1 regions, 1 peers" in line for line in lines), lines)
    check(f"{way}: the other goes on, and a third gets what the first had",
          "b: goes on" in lines and has(lines, "c: opened") and "b and c: done" in lines, lines)
    check(f"{way}: after kill -9 of netdamd the next one takes over socket and card when the last client has ended",
          any("another process uses it" in line for line in lines) and "restart: works" in lines, lines)
    check(f"{way}: netdamd ends cleanly", "end: clean" in lines and status == 0, lines)


def main():
    boot.exit_on_signals()
    print("1..12")
    run("sysfs", CARD, "", "no")
    args = IOMMU + CARD
    if boot.accelerator() == "kvm":
        args = ["-machine", "kernel-irqchip=split"] + args
    # The kernel's own check of the timer gives up on a busy machine, and with interrupt remapping it then stops.
    run("vfio", args, "intel_iommu=on no_timer_check", "yes")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
