#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guests' runner, with QEMU's own devices: port, QMP, memory scans, a wire, no QEMU left behind (TAP)."""

import os
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import boot

sys.path.insert(0, os.path.join(boot.ROOT, "tests", "lib"))
from ndtest import all_checked, check  # noqa: E402

SMOKE = os.path.join(boot.BUILD, "guest", "smoke.cpio")
WIRE = os.path.join(boot.BUILD, "guest", "wire.cpio")


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def wait_gone(pid, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_probe():
    check(boot.run_probe("tcg", 120), "the accelerator probe runs to its end under TCG")
    check(not boot.run_probe("no-such-accelerator", 120), "an accelerator that does not exist fails the probe")


def test_port_and_memory():
    marker = random.Random().randbytes(8)
    with boot.Guest("port", "talk-inside.sh", initrd=SMOKE, memories={"mem0": 64 << 20},
                    args=["-device", "ivshmem-plain,memdev=mem0"]) as guest:
        guest.wait_line(r"^netdam-up: ")
        guest.send_line("hello there")
        check(guest.wait_line(r"^got (.*)$").group(1) == "hello there", "a line goes in, a line comes out")
        bar = int(guest.wait_line(r"^bar2 (0x[0-9a-f]+)$").group(1), 16)
        check(bar and bar % (64 << 20) == 0, "BAR2 has an address aligned to its size")
        check(set(boot.memfds(guest.pid)) >= {"ram", "mem0"}, "main and on-board memory are found by their ids")
        check(guest.scan("mem0", marker) == 0 and guest.scan("ram", marker) == 0, "a marker not sent is nowhere")
        # In hex, so that what passes the port is not the marker itself.
        guest.send_line(hex(int.from_bytes(marker, "little")))
        guest.wait_line("^stored$")
        guest.pause()
        check(guest.qmp("query-status")["running"] is False, "QMP pauses the guest")
        check(guest.scan("mem0", marker) == 1, "a marker stored through BAR2 is in on-board memory")
        guest.resume()
        text = f"marker-{random.Random().getrandbits(128):032x}"
        guest.send_line(text)
        guest.wait_line("^kept$")
        check(guest.scan("ram", text.encode()) >= 1, "a marker kept in a file of the guest is in main memory")
        check(guest.scan("mem0", text.encode()) == 0, "and not in on-board memory")
        guest.send_line("end")
        pid = guest.pid
        check(guest.wait_exit() == 3, "the exit status comes back")
        check(is_gone(pid), "QEMU has ended by itself")


def test_wire(kind):
    ends = boot.wire(kind)
    guests = []
    for index, end in enumerate(ends):
        guests.append(boot.Guest(
            f"wire-{kind}-{index}", f"wire-inside.sh {index}", initrd=WIRE, wires=[end],
            args=["-device", f"virtio-net-pci,netdev=net0,mac=52:54:00:00:00:0{index + 1},romfile="]))
    with guests[0] as first, guests[1] as second:
        first.wait_line("^configured$")
        second.wait_line("^configured$")
        second.send_line("ping")
        check(second.wait_exit() == 0, f"two guests reach each other over a {kind} wire")
        first.send_line("end")
        check(first.wait_exit() == 0, f"and the other end of the {kind} wire ends too")


def test_end_with_runner(number_of_signal):
    """A runner that is told to end, or killed outright, takes its QEMU along."""
    name = f"orphan-{number_of_signal}"
    runner = subprocess.Popen([os.path.join(os.path.dirname(os.path.realpath(__file__)), "boot.py"), "--initrd", SMOKE,
                               "--name", name, "--run", "echo pid; sleep 1000"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    try:
        runner.stdout.readline()
        with open(f"/proc/{runner.pid}/task/{runner.pid}/children", encoding="ascii") as file:
            children = [int(pid) for pid in file.read().split()]
        runner.send_signal(number_of_signal)
        runner.wait(60)
        check(len(children) == 1 and wait_gone(children[0]),
              f"no QEMU outlives a runner ended by {signal.Signals(number_of_signal).name}")
    finally:
        runner.kill()
        runner.wait()
        runner.stdout.close()


def main():
    boot.exit_on_signals()
    test_probe()
    test_port_and_memory()
    test_wire("stream")
    test_wire("dgram")
    test_end_with_runner(signal.SIGTERM)
    test_end_with_runner(signal.SIGKILL)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
