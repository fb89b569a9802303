#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The measurements from outside: what they print, and what they really do to the target. No time is judged. Prints TAP."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

import harness
from harness import KEY, expect, one_line, run

LATENCY = ["netdam_%s_lat" % name for name in ("write", "read", "atomic", "reduce", "send")]
BANDWIDTH = ["netdam_%s_bw" % name for name in ("write", "read", "reduce", "send")]
HEAD = {"tool", "version", "commit", "accelerator", "cpus", "device", "firmware_version", "mtu_bytes", "peer", "opcode",
        "operation", "type", "measures", "depth", "bidirectional", "warm_up", "wait", "latency_is", "latency_halved",
        "results"}
ROW = {"size_bytes", "iterations", "duration_ns", "bytes_per_second", "requests_per_second", "retransmissions",
       "not_ready", "latency_ns"}
LATENCY_KEYS = ["min", "median", "p99", "p99_9", "max", "mean"]
ON_MEMORY = [tool for tool in LATENCY + BANDWIDTH if "send" not in tool]


def measure(node, tool, *arguments, key=KEY, **how):
    out, _ = run(tool, "--peer", node.address, "--key", key, "--json", *arguments, **how)
    return json.loads(out)


def mem(node, command, *arguments):
    done = subprocess.run([os.path.join(harness.TOOLS, "netdam-mem"), command, "-p", node.address, "-k", KEY] +
                          list(arguments), capture_output=True, timeout=harness.LIMIT_S, env=harness.environment(),
                          check=False)
    expect(done.returncode == 0, done.stderr)
    return done.stdout


def check_report(report, tool, sizes, iterations):
    """Keys, and that the numbers of a row agree with one another."""
    expect(set(report) == HEAD, "keys: %s" % (set(report) ^ HEAD))
    expect(report["tool"] == tool and report["latency_halved"] is False, report)
    expect(re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", report["commit"]), report["commit"])
    expect(report["cpus"] == os.sysconf("SC_NPROCESSORS_ONLN"), report["cpus"])
    expect(report["accelerator"] is None or isinstance(report["accelerator"], str), report["accelerator"])
    expect(report["measures"] == ("latency" if tool.endswith("_lat") else "throughput"), report["measures"])
    expect([row["size_bytes"] for row in report["results"]] == sizes, "sizes: %s" % report)
    for row in report["results"]:
        expect(set(row) - {"histogram"} == ROW, "keys: %s" % (set(row) ^ ROW))
        expect(list(row["latency_ns"]) == LATENCY_KEYS, row)
        times = [row["latency_ns"][key] for key in LATENCY_KEYS]
        expect(0 < times[0] and times[:5] == sorted(times[:5]) and times[0] <= times[5] <= times[4], row)
        expect(iterations is None or row["iterations"] == iterations, row)
        expect(row["duration_ns"] >= times[4], "one request took longer than all: %s" % row)
        rate = row["iterations"] * 1e9 / row["duration_ns"]
        expect(abs(row["requests_per_second"] - rate) <= 0.1 + rate * 1e-6, row)
        expect(abs(row["bytes_per_second"] - rate * row["size_bytes"]) <= 0.1 + rate * row["size_bytes"] * 1e-6, row)


def test_help_versions_and_pages(_node):
    for tool in LATENCY + BANDWIDTH:
        harness.check_version(tool)
        expect(harness.page(tool).strip().endswith(".so man1/netdam-perf.1"), "page of " + tool)
        expect(tool in harness.page("netdam-perf").split(".SH DESCRIPTION")[0], "netdam-perf(1) does not name " + tool)
    harness.check_page("netdam-perf", LATENCY + BANDWIDTH)
    out, _ = run("netdam-perf", "--help")
    expect(re.findall(r"^  (netdam_\w+)$", out, re.M) == LATENCY + BANDWIDTH, out)
    out, _ = run("netdam-perf", "--version")
    expect(re.fullmatch(r"netdam-perf \d+\.\d+\.\d+\n", out), out)


def test_every_tool_reports(node):
    for tool in ON_MEMORY:
        bandwidth = tool.endswith("_bw")
        report = measure(node, tool, "-n", "30", *(["-t", "7"] if bandwidth else []))
        check_report(report, tool, [65536 if bandwidth else 8], 30)
        expect(report["depth"] == (7 if bandwidth else 1), report["depth"])
        expect(report["peer"] == node.address and report["device"].startswith("udp:127.0.0.1:"), report)
        expect(report["opcode"] == {"write": "write", "read": "read", "reduce": "reduce", "atomic": "fetch_add"}
               [tool.split("_")[1]], report["opcode"])
        expect((report["operation"], report["type"]) == (("sum", "f32") if "reduce" in tool else
                                                         ("none", "u64" if "atomic" in tool else "none")), report)


def test_every_tool_as_text(node):
    for tool in ON_MEMORY:
        out, _ = run(tool, "-p", node.address, "-k", KEY, "-n", "20", "-s", "8")
        expect("Latency in us, in full" in out and "not halved" in out, out)
        expect(("MB/s" in out) == tool.endswith("_bw"), out)
        fields = out.splitlines()[-1].split()
        expect(fields[:2] == ["8", "20"] and len(fields) == (9 if tool.endswith("_bw") else 7), out)


def test_as_many_requests_as_said_reach_the_target(_node):
    for tool, arguments, wanted in [
            ("netdam_write_lat", [], {"WRITE": 43}), ("netdam_read_lat", [], {"READ": 43}),
            ("netdam_reduce_lat", [], {"REDUCE": 43}), ("netdam_atomic_lat", [], {"FETCH_ADD": 43}),
            ("netdam_atomic_lat", ["-A", "swap"], {"SWAP": 43}), ("netdam_write_bw", ["-s", "1K"], {"WRITE": 43}),
            ("netdam_read_bw", ["-s", "1K", "-b"], {"READ": 22, "WRITE": 21}),
            ("netdam_reduce_bw", ["-s", "1K", "-b", "-t", "1"], {"READ": 21, "REDUCE": 22}),
            ("netdam_write_bw", ["-s", "3K", "-t", "9"], {"WRITE": 3 * 43})]:
        node = harness.Node("--trace")
        measure(node, tool, "-n", "40", "-w", "3", *arguments)
        _, trace = harness.stop(node.process)
        # Numbers, because a packet may be sent again.
        got = {}
        for opcode, number in set(re.findall(r"^<- REQUEST +(\w+)[.\w]* ctx \w+ #(\d+) ", trace, re.M)):
            got[opcode] = got.get(opcode, 0) + 1
        got.pop("CONFIRM", None)
        expect(got == wanted, "%s %s sent %s, not %s" % (tool, arguments, got, wanted))


def test_memory_is_used_where_said(node):
    for tool, arguments, places in [("netdam_write_lat", ["-s", "100"], 1),
                                    ("netdam_write_bw", ["-s", "100", "-t", "4"], 4)]:
        mem(node, "fill", "-n", "4096", "-v", "0x5a")
        measure(node, tool, "-n", "64", "--address", "256", *arguments)
        wanted = b"\x5a" * 256 + (bytes(100) + b"\x5a" * 28) * places
        got = mem(node, "read", "-n", "4096")
        expect(got == wanted.ljust(4096, b"\x5a"), "%s changed %s" % (tool, got.hex()))


def test_atomics_add_up(node):
    mem(node, "fill", "-n", "64", "-v", "0")
    measure(node, "netdam_atomic_lat", "-n", "50", "-w", "5")
    expect(mem(node, "fetch-add", "-v", "0") == b"55\n", "fetch-add")
    for size, type_name in ("1", "u8"), ("2", "u16"), ("4", "u32"), ("8", "u64"):
        mem(node, "fill", "-n", "64", "-v", "0")
        report = measure(node, "netdam_atomic_lat", "-A", "cas", "-n", "50", "-w", "0", "-s", size)
        expect(report["opcode"] == "cas" and report["type"] == type_name, report)
        expect(mem(node, "fetch-add", "-v", "0", "-t", type_name) == b"50\n", "not every CAS has stored")


def test_reduce_takes_operations_and_types(node):
    for operation, type_name in ("max", "i64"), ("xor", "u8"), ("sum", "f64"):
        report = measure(node, "netdam_reduce_lat", "-O", operation, "-T", type_name, "-n", "10")
        expect((report["operation"], report["type"]) == (operation, type_name), report)


def test_all_sizes(node):
    sizes = [2 << i for i in range(23)]
    check_report(measure(node, "netdam_write_lat", "-a", "-n", "1", "-w", "0"), "netdam_write_lat", sizes, 1)
    report = measure(node, "netdam_reduce_bw", "-a", "-n", "2", "-t", "2", "-w", "0", "-T", "u64")
    check_report(report, "netdam_reduce_bw", sizes[2:], 2)


def test_duration(node):
    for tool, arguments in ("netdam_write_lat", []), ("netdam_read_bw", ["-s", "64", "-t", "5"]):
        report = measure(node, tool, "-D", "0.05", *arguments)
        check_report(report, tool, [64 if arguments else 8], None)
        expect(report["results"][0]["duration_ns"] >= 50000000, "ended early: %s" % report)


def test_histogram_holds_every_sample(node):
    row = measure(node, "netdam_read_lat", "-H", "-n", "77")["results"][0]
    bins = row["histogram"]
    expect(sum(b["count"] for b in bins) == 77 and all(b["count"] > 0 for b in bins), bins)
    expect(all(a["to_ns"] < b["from_ns"] for a, b in zip(bins, bins[1:])), bins)
    expect(bins[0]["from_ns"] <= row["latency_ns"]["min"] <= bins[0]["to_ns"], row)
    expect(bins[-1]["from_ns"] <= row["latency_ns"]["max"] <= bins[-1]["to_ns"], row)
    out, _ = run("netdam_write_bw", "-p", node.address, "-k", KEY, "-H", "-n", "77", "-s", "64")
    counts = [int(line.split()[1]) for line in out.split("up to, %\n")[1].splitlines()]
    expect(sum(counts) == 77, out)


def test_both_ways_and_events(node):
    for tool in "netdam_write_bw", "netdam_read_bw", "netdam_reduce_bw":
        for depth in "1", "2", "17":
            report = measure(node, tool, "-b", "-n", "41", "-s", "4K", "-t", depth)
            check_report(report, tool, [4096], 41)
            expect(report["bidirectional"] is True and report["wait"] == "adaptive", report)
    report = measure(node, "netdam_write_lat", "-e", "-n", "20")
    check_report(report, "netdam_write_lat", [8], 20)
    expect(report["wait"] == "events", report)


def test_environment_is_recorded(node):
    report = measure(node, "netdam_write_lat", "-n", "1", env={"NETDAM_ACCELERATOR": 'a"b', "NETDAM_DEVICE": "udp,mtu=9000"})
    expect(report["accelerator"] == "a?b" and report["mtu_bytes"] == 9000, report)


def test_one_program_with_many_names(node):
    out, _ = run("netdam-perf", "write_lat", "-p", node.address, "-k", KEY, "-n", "3", "-j")
    check_report(json.loads(out), "netdam_write_lat", [8], 3)
    out, _ = run("netdam-perf", "netdam_read_bw", "-p", node.address, "-k", KEY, "-n", "3", "-j")
    check_report(json.loads(out), "netdam_read_bw", [65536], 3)
    _, stderr = run("netdam-perf", "nonsense", code=2)
    one_line(stderr, "netdam-perf", "nonsense", "--help")
    _, stderr = run("netdam-perf", code=2)
    one_line(stderr, "netdam-perf", "--help")


def test_static_program(node):
    if not os.path.exists(os.path.join(harness.TOOLS, "static", "netdam-perf")):
        print("# no static program: sanitizers do not link statically")
        return
    out, _ = run("static/netdam-perf", "write_lat", "-p", node.address, "-k", KEY, "-n", "3", "-j")
    check_report(json.loads(out), "netdam_write_lat", [8], 3)
    for tool in "netdam-stat", "netdam-regs":
        run("static/" + tool, "--version")


def test_a_tool_can_be_the_target(_node):
    for json_line in False, True:
        target = harness.start("netdam_write_lat", "--serve", "1M", "-d", "udp:127.0.0.1:0,memory=8M", "-k", "0x77",
                               *(["--json"] if json_line else []))
        try:
            line = target.stdout.readline()
            if json_line:
                ready = json.loads(line)
                expect(ready["event"] == "ready" and ready["bytes"] == 1 << 20 and ready["key"] == "0x%016x" % 0x77, line)
                address = "%s:%d" % (ready["address"], ready["port"])
            else:
                match = re.fullmatch(r"netdam-perf ready device=udp:\S+ address=(\S+) port=(\d+) bytes=1048576 "
                                     r"key=0x0000000000000077 receive-key=\S+\n", line)
                expect(match, line)
                address = "%s:%s" % match.groups()
            for tool in "netdam_write_bw", "netdam_read_lat", "netdam_atomic_lat":
                out, _ = run(tool, "-p", address, "-k", "0x77", "-n", "10", "-j")
                check_report(json.loads(out), tool, [65536 if tool.endswith("_bw") else 8], 10)
            _, stderr = run("netdam_write_lat", "-p", address, "-k", "0x77", "--address", "1M", code=1)
            one_line(stderr, "netdam_write_lat", "BAD_RANGE")
        finally:
            code, _ = harness.stop(target, signal.SIGINT if json_line else signal.SIGTERM)
        expect(code == 0, "exit code %d after a signal" % code)
    out, _ = run("netdam_read_bw", "--serve", "64K", "-d", "udp:127.0.0.1:0,memory=8M", "-D", "0.01")
    expect(out.startswith("netdam-perf ready "), out)


def test_messages(_node):
    target = harness.start("netdam_send_bw", "--serve", "64K", "-d", "udp:127.0.0.1:0,memory=8M", "--json")
    try:
        ready = json.loads(target.stdout.readline())
        to = ["-p", "%s:%d" % (ready["address"], ready["port"]), "-r", ready["receive_key"], "--json"]
        for tool, arguments, sizes, count in [
                ("netdam_send_lat", ["-n", "50"], [8], 50), ("netdam_send_lat", ["-a", "-n", "5"],
                                                             [2 << i for i in range(10)], 5),
                # More than the target has buffers.
                ("netdam_send_bw", ["-n", "2000"], [1024], 2000), ("netdam_send_bw", ["-n", "20", "-s", "1400"], [1400], 20)]:
            out, _ = run(tool, *to, *arguments)
            check_report(json.loads(out), tool, sizes, count)
        _, stderr = run("netdam_send_lat", *to, "-s", "1401", code=1)
        one_line(stderr, "netdam_send_lat", "1401", "1400")
        to[3] = "1"
        _, stderr = run("netdam_send_lat", *to, code=1)
        one_line(stderr, "netdam_send_lat", "BAD_KEY")
        # The same target has a region.
        out, _ = run("netdam_read_lat", *to[:2], "-k", ready["key"], "-j", "-n", "5")
        check_report(json.loads(out), "netdam_read_lat", [8], 5)
    finally:
        code, _ = harness.stop(target)
    expect(code == 0, "exit code %d after a signal" % code)


def test_refusals_and_a_dead_peer_end_with_a_status(node):
    for status, arguments, key in [("BAD_KEY", [], "1"), ("BAD_RANGE", ["--address", "16M"], KEY),
                                   ("BAD_RANGE", ["--address", "15M", "-s", "2M"], KEY)]:
        for tool in "netdam_write_lat", "netdam_read_bw":
            out, stderr = run(tool, "-p", node.address, "-k", key, "-n", "4", *arguments, code=1)
            one_line(stderr, tool, status, node.address)
            expect(out == "", "a report in spite of %s: %s" % (status, out))
    _, stderr = run("netdam_atomic_lat", "-p", node.address, "-k", KEY, "--address", "4", code=1)
    one_line(stderr, "netdam_atomic_lat", "MISALIGNED")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        started = [(tool, subprocess.Popen([os.path.join(harness.TOOLS, tool), "-p", address, "-k", KEY, "--json"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                           env=harness.environment()))
                   for tool in ("netdam_write_lat", "netdam_read_lat", "netdam_write_bw", "netdam_read_bw")]
        for tool, process in started:
            out, stderr = process.communicate(timeout=harness.LIMIT_S)
            expect(process.returncode == 1 and out == "", "%s: %d, %r" % (tool, process.returncode, out))
            one_line(stderr, tool, "TIMEOUT", address)


def test_benchmark_beside_plain_udp(_node):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "new", "bench.json")
        done = subprocess.run([os.path.join(harness.TOP, "tests", "tools", "bench.py"), "--rounds", "2", "--count", "20",
                               "--out", path], capture_output=True, text=True, timeout=harness.LIMIT_S, check=False)
        expect(done.returncode == 0, done.stderr)
        with open(path, encoding="utf-8") as f:
            report = json.load(f)
    expect({"commit", "accelerator", "cpus", "latency_halved", "rounds", "load_average_before"} < set(report), report)
    expect({line["tool"] for line in report["results"]} == set(LATENCY + BANDWIDTH), "a tool is missing")
    for line in report["results"]:
        expect(0 < line["ratio_min"] <= line["ratio"] <= line["ratio_max"], line)
        expect("%s " % line["tool"] in done.stdout, "the table lacks " + line["tool"])
        values = {"ours_median_ns", "udp_median_ns"} if "_lat" in line["tool"] else {"ours_bytes_per_second"}
        expect(values < set(line), line)


def test_wrong_usage_is_told_in_one_line(node):
    peer = ["--peer", node.address]
    key = ["--key", KEY]
    for tool, part, arguments in [
            ("write_lat", "--peer", key), ("write_lat", "--key", peer), ("send_lat", "--receive-key", peer),
            ("write_lat", '"x"', peer + ["-k", "x"]), ("write_lat", '"0"', peer + key + ["-s", "0"]),
            ("write_lat", '"1T"', peer + key + ["-s", "1T"]), ("write_lat", '"0"', peer + key + ["-n", "0"]),
            ("write_lat", "--all", peer + key + ["-a", "-s", "8"]), ("write_lat", '"0"', peer + key + ["-D", "0"]),
            ("write_lat", "--iters", peer + key + ["-D", "1", "-n", "5"]),
            ("write_lat", "--tx-depth", peer + key + ["-t", "5"]),
            ("write_lat", "--bidirectional", peer + key + ["-b"]), ("send_bw", "--bidirectional", peer + ["-b"]),
            ("write_bw", '"4097"', peer + key + ["-t", "4097"]), ("write_bw", "--atomic", peer + key + ["-A", "cas"]),
            ("write_bw", "--type", peer + key + ["-T", "u8"]), ("send_lat", "--key", peer + key),
            ("atomic_lat", '"add"', peer + key + ["-A", "add"]), ("atomic_lat", "--size", peer + key + ["-s", "3"]),
            ("atomic_lat", "--all", peer + key + ["-a"]), ("reduce_lat", "f33", peer + key + ["-T", "f33"]),
            ("reduce_lat", "plus", peer + key + ["-O", "plus"]), ("reduce_bw", "f32", peer + key + ["-s", "6"]),
            ("reduce_bw", "REDUCE AND of F32", peer + key + ["-O", "and"]), ("read_bw", '"extra"', peer + key + ["extra"]),
            ("read_bw", "--peer", peer + ["--serve", "1M"]), ("read_bw", '"x"', ["--serve", "x"])]:
        _, stderr = run("netdam_" + tool, *arguments, code=2)
        one_line(stderr, "netdam_" + tool, part, "--help")
    run("netdam_write_lat", "--nonsense", code=2)
    for part, arguments in [("nowhere", ["-p", "nowhere"]), ("127.0.0.1:x", ["-p", "127.0.0.1:x"]),
                            ("usb", peer + ["-d", "usb"]), ("colour", peer + ["-d", "udp,colour=1"]),
                            ("on-board memory", peer + ["-d", "udp,memory=1M", "-s", "1M"])]:
        _, stderr = run("netdam_write_lat", *arguments, *key, code=1)
        one_line(stderr, "netdam_write_lat", part)


sys.exit(harness.main(globals()))
