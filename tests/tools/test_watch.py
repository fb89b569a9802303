#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netdam-stat and netdam-regs from outside: what they print, and that they change nothing. Prints TAP."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import harness
from harness import LIMIT_S, expect, one_line, run, stop

SOFT = ("-d", "udp:127.0.0.1:0,memory=1M")
REGS_H = os.path.join(harness.TOP, "firmware", "include", "netdam", "regs.h")
COUNTERS_H = os.path.join(harness.TOP, "firmware", "include", "netdam", "counters.h")


def listed_registers():
    with open(REGS_H, encoding="utf-8") as f:
        rows = re.findall(r"^    X\((\w+), (0x[0-9a-f]+), ([48]), (R[OW]), ", f.read(), re.M)
    return {name.lower(): (int(offset, 16), int(size), access.lower()) for name, offset, size, access in rows}


def listed_counters():
    with open(COUNTERS_H, encoding="utf-8") as f:
        return [name.lower() for name in re.findall(r"^    X\((\w+), \"", f.read(), re.M)]


def registers(*arguments):
    out, _ = run("netdam-regs", *SOFT, "--json", *arguments)
    return {r["name"]: r for r in json.loads(out)["registers"]}


def test_help_version_and_pages(_node):
    for tool in "netdam-stat", "netdam-regs":
        harness.check_version(tool)
        harness.check_page(tool, [tool])


def test_regs_prints_every_register_of_the_specification(_node):
    wanted = listed_registers()
    expect(len(wanted) > 30, "regs.h not understood")
    got = registers()
    expect(set(got) == set(wanted), "differ: %s" % (set(got) ^ set(wanted)))
    for name, register in got.items():
        expect((register["offset"], register["bytes"], register["access"]) == wanted[name], register)
        expect(re.fullmatch("0x[0-9a-f]{%d}" % (2 * register["bytes"]), register["value"]), register)
    out, _ = run("netdam-regs", *SOFT)
    expect(re.findall(r"^0x[0-9a-f]{4}  (\w+) ", out, re.M) == [name.upper() for name in wanted], out)


def test_regs_prints_every_counter_of_the_specification(_node):
    wanted = listed_counters()
    expect(len(wanted) > 30, "counters.h not understood")
    got = registers("--counters")
    expect(set(got) == set(wanted) | set(listed_registers()), "counters differ")
    expect([got[name]["offset"] for name in wanted] == [0x2000 + 8 * i for i in range(len(wanted))], "offsets")


def test_regs_says_what_values_mean(_node):
    got = registers()
    for name, part in [("id", '"NDAM"'), ("spec_version", "1.0"), ("status", "READY LINK_UP"), ("memory_bytes", "1 MiB"),
                       ("mac", "02:00:7f:00:00:01"), ("ipv4", "127.0.0.1"), ("ipv6_high", "none"), ("mtu", "1500"),
                       ("admin_status", "OK"), ("length_max", "1 GiB"), ("generation", "epoch 0x")]:
        expect(part in got[name]["decoded"], "%s: %r" % (name, got[name]["decoded"]))
    expect(int(got["memory_bytes"]["value"], 16) == 1 << 20, got["memory_bytes"])
    expect(got["generation"]["value"][2:10] in got["generation"]["decoded"], got["generation"])


def test_regs_takes_names_counters_and_offsets(_node):
    out, _ = run("netdam-regs", *SOFT, "Mtu", "0x18", "tx_frames", "76")
    expect(re.findall(r"^0x\w+  (\w+)", out, re.M) == ["MTU", "MEMORY_BYTES", "TX_FRAMES", "UDP_PORT"], out)
    for wrong in "nothing", "0x19", "0xffffffffffffffff", "":
        _, stderr = run("netdam-regs", *SOFT, "mtu", wrong, code=2)
        one_line(stderr, "netdam-regs", '"%s"' % wrong)


def test_regs_reads_without_mistakes(_node):
    got = registers("--counters", "register_errors", "admin_errors")
    expect({int(r["value"], 16) for r in got.values()} == {0}, got)


def test_regs_writes_only_when_meant(_node):
    out, stderr = run("netdam-regs", *SOFT, "--write", "admin_arg3=0x1122334455667788", "--yes-really")
    one_line(stderr, "netdam-regs", "warning", "ADMIN_ARG3", "0x1122334455667788", "udp:127.0.0.1:")
    expect(re.fullmatch(r"0x1028  ADMIN_ARG3 +rw  0x1122334455667788  \d+\n", out), out)
    before = registers("generation", "--write", "ADMIN_COMMAND=999", "--yes-really", "admin_errors", "admin_status")
    expect(int(before["admin_errors"]["value"], 16) == 1, before)
    expect(before["admin_status"]["decoded"].startswith("BAD_COMMAND"), before)
    for part, arguments in [
            ("--yes-really", ["--write", "CONTROL=1"]), ("ID is read only", ["--write", "ID=1", "--yes-really"]),
            ("TX_FRAMES is read only", ["--write", "TX_FRAMES=1", "--yes-really"]),
            ("NAME=VALUE", ["--write", "CONTROL", "--yes-really"]), ("nonsense", ["-w", "nonsense=1", "--yes-really"]),
            ("4 bytes", ["-w", "CONTROL=0x100000000", "--yes-really"]), ('"x"', ["-w", "CONTROL=x", "--yes-really"])]:
        out, stderr = run("netdam-regs", *SOFT, *arguments, code=2)
        one_line(stderr, "netdam-regs", part, "--help")
        expect(out == "", out)


def test_stat_counts_what_peers_send(_node):
    stat = harness.start("netdam-stat", *SOFT, "--json", "--interval", "0.05")
    try:
        first = json.loads(stat.stdout.readline())
        expect(first["event"] == "start" and first["interval_ns"] == 50000000, first)
        expect(list(first["totals"]) == listed_counters() + ["main_memory_bytes"], first["totals"])
        run("netdam-mem", "echo", "--peer", first["device"][4:], "--length", "100", "--count", "7")
        seen = {}
        time_ns = 0
        while seen.get("requests_executed", 0) < 7:
            sample = json.loads(stat.stdout.readline())
            expect(sample["event"] == "sample" and sample["reset"] is False, sample)
            expect(sample["time_ns"] == time_ns + sample["elapsed_ns"] and sample["elapsed_ns"] > 0, sample)
            time_ns = sample["time_ns"]
            for name, counter in sample["counters"].items():
                expect(counter["change"] != 0, "%s has not changed" % name)
                seen[name] = seen.get(name, 0) + counter["change"]
                expect(counter["total"] == first["totals"][name] + seen[name], "%s: %s" % (name, sample))
                if counter["per_second"] is not None:
                    rate = counter["change"] * 1e9 / sample["elapsed_ns"]
                    expect(abs(counter["per_second"] - rate) <= 0.001 + rate * 1e-6, sample)
        expect(seen["requests_executed"] == 7 and seen["rx_frames"] >= 7, seen)
        expect("main_memory_bytes" not in seen and "rx_malformed" not in seen, seen)
    finally:
        code, _ = harness.stop(stat, signal.SIGINT)
    expect(code == 0, "exit code %d after SIGINT" % code)


def test_through_a_broker(_node):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "broker")
        broker = subprocess.Popen([os.path.join(harness.TOOLS, "netdamd"), "--device", "udp:127.0.0.1:0,memory=8M",
                                   "--socket", path], stderr=subprocess.PIPE, text=True, env=harness.environment())
        harness.started.append(broker)
        line = broker.stderr.readline()
        expect("ready" in line, line)
        out, _ = run("netdam-regs", "-d", "broker:" + path, "-j", "-c")
        got = {r["name"]: r for r in json.loads(out)["registers"]}
        wanted = {name for name, (offset, _, _) in listed_registers().items() if offset < 0x1000}
        expect(set(got) == wanted | set(listed_counters()), "differ: %s" % (set(got) ^ wanted))
        expect(got["memory_bytes"]["decoded"] == "8 MiB" and int(got["register_errors"]["value"], 16) == 0, got)
        for arguments in ["control"], ["-w", "CONTROL=1", "--yes-really"], ["id", "0x1050"]:
            out, stderr = run("netdam-regs", "-d", "broker:" + path, *arguments, code=1)
            one_line(stderr, "netdam-regs", "broker:" + path, "CONTROL" if "id" not in arguments else "ADMIN_RESULT0")
            expect(out == "", out)
        out, _ = run("netdam-stat", "-d", "broker:" + path, "-c", "1", "-i", "0.01", "-a")
        expect("main_memory_bytes" in out and out.startswith("broker:" + path), out)
        target = harness.start("netdam-perf", "send_lat", "--serve", "1M", "-d", "broker:" + path, "--json")
        ready = json.loads(target.stdout.readline())
        # The card's other tenant is the target.
        for tool, key in ("write_lat", ["-k", ready["key"]]), ("send_bw", ["-r", ready["receive_key"]]):
            out, _ = run("netdam-perf", tool, "-d", "broker:" + path, "-p", "127.0.0.1:%d" % ready["port"], *key, "-n",
                         "20", "-j")
            expect(json.loads(out)["results"][0]["iterations"] == 20, out)
        code, _ = harness.stop(target)
        expect(code == 0, "target: exit code %d" % code)


def test_stat_as_text(_node):
    out, _ = run("netdam-stat", *SOFT, "-i", "0.01", "-c", "3")
    lines = out.splitlines()
    expect(lines[0].startswith("udp:127.0.0.1:") and lines[0].endswith(", every 0.01 s"), lines)
    expect(len(lines) == 5 and all(line.endswith("nothing has changed") for line in lines[2:]), lines)
    out, _ = run("netdam-stat", *SOFT, "-i", "0.01", "-c", "1", "--all")
    names = [line.split()[1] for line in out.splitlines()[2:]]
    expect(names == listed_counters() + ["main_memory_bytes"], names)
    out, _ = run("netdam-stat", "-c", "1", "-i", "0.001", env={"NETDAM_DEVICE": SOFT[1]})
    expect(out.startswith("udp:127.0.0.1:"), out)


def test_closed_streams_are_nobody_elses(_node):
    def closed(tool, *arguments):
        return subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&-', "sh", os.path.join(harness.TOOLS, tool), *arguments],
                                stderr=subprocess.PIPE, text=True, env=harness.environment())
    for tool, *arguments in (["netdam-stat", "-c", "1"], ["netdam-regs"], ["netdam-info"]):
        process = closed(tool, *SOFT, *arguments)
        _, stderr = process.communicate(timeout=LIMIT_S)
        expect(process.returncode == 1, "%s: %d" % (tool, process.returncode))
        one_line(stderr, tool, "standard output: write error")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "socket")
        process = closed("netdamd", *SOFT, "-s", path)
        harness.started.append(process)
        expect("ready" in process.stderr.readline(), "netdamd is not ready")
        for fd in 0, 1:
            place = os.readlink("/proc/%d/fd/%d" % (process.pid, fd))
            expect(place == "/dev/null", "netdamd has %s as descriptor %d" % (place, fd))
        stop(process)


def test_wrong_usage_and_failures_are_told_in_one_line(_node):
    for part, arguments in [('"0"', ["-i", "0"]), ('"1s"', ["-i", "1s"]), ('"nan"', ["-i", "nan"]), ('"-1"', ["-c", "-1"]),
                            ('"0"', ["-c", "0"]), ('"extra"', ["extra"])]:
        _, stderr = run("netdam-stat", *SOFT, *arguments, code=2)
        one_line(stderr, "netdam-stat", part, "--help")
    for tool in "netdam-stat", "netdam-regs":
        run(tool, "--nonsense", code=2)
        _, stderr = run(tool, "-d", "pci:ffff:ff:1f.7", code=1)
        one_line(stderr, tool, "ffff:ff:1f.7")
        _, stderr = run(tool, "-d", "usb", code=1)
        one_line(stderr, tool, "usb")
        _, stderr = run(tool, "-d", "udp:127.0.0.1:0,colour=1", code=1)
        one_line(stderr, tool, "colour")
    _, stderr = run("netdam-info", "-d", "udp:10.9.0.9:20036,memif=%s,memif-role=server" % harness.TOP, code=1)
    one_line(stderr, "netdam-info", harness.TOP, "another program listens there, or it is no socket")
    _, stderr = run("netdam-info", "-d", "udp:127.0.0.1:0,memif-secret=sesame", code=1)
    one_line(stderr, "netdam-info", "memif= is missing")


sys.exit(harness.main(globals()))
