#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes in a guest share its card through netdamd, over sysfs and over vfio-pci; one is killed (TAP)."""

import functools
import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
for folder in ("guest", "lib"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import boot  # noqa: E402
import ndtest  # noqa: E402

INITRD = os.path.join(ROOT, "build", "tests", "netdamd", "share.cpio")
CARD = ["-device", f"netdam,memdev=mem0,ip=10.0.0.1/24,firmware={boot.FIRMWARE}"]
SECONDS = 900

check = functools.partial(ndtest.check, most=1000)  # all that a guest has said


def has(lines, start):
    return any(line.startswith(start) for line in lines)


def run(way, args, append, interrupt):
    with boot.Guest(f"netdamd-{way}", f"share-inside.sh {way}", initrd=INITRD, memories={"mem0": 16 << 20}, append=append,
                    args=args) as guest:
        status = guest.wait_exit(SECONDS)
        lines = guest.lines
    opened = f"opened broker:/run/netdamd.sock doorbell {way} interrupt {interrupt}"
    check(f"a: {opened}" in lines and f"b: {opened}" in lines,
          f"{way}: two processes share the card, each with a doorbell page of its own", lines)
    check(sum(line.startswith("lease ") for line in lines) == 2, f"{way}: both have leases", lines)
    check("a: killed 9" in lines and any("took back 1 queue pairs, 1 regions, 1 peers" in line for line in lines),
          f"{way}: one is killed, and its leases return", lines)
    check("b: goes on" in lines and has(lines, "c: opened") and "b and c: done" in lines,
          f"{way}: the other goes on, and a third gets what the first had", lines)
    check(any("another process uses it" in line for line in lines) and "restart: works" in lines,
          f"{way}: after kill -9 of netdamd the next one takes over socket and card when the last client has ended", lines)
    check("end: clean" in lines and status == 0, f"{way}: netdamd ends cleanly", lines)


def main():
    boot.exit_on_signals()
    run("sysfs", CARD, "", "no")
    # The kernel's own check of the timer gives up on a busy machine, and with interrupt remapping it then stops.
    run("vfio", boot.iommu() + CARD, "intel_iommu=on no_timer_check", "yes")
    return ndtest.all_checked()


if __name__ == "__main__":
    sys.exit(main())
