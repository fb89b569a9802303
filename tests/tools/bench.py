#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Latency and throughput of each operation between two soft devices on loopback, beside plain UDP in the same run.

The operation and its peer, datagrams of the same sizes over blocking sockets, are measured by turns, so that whatever
else the machine does hits both. What counts is their ratio, round by round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import harness

ECHO = os.path.join(harness.BUILD, "tests", "tools", "udp_echo")
PACKET = 1400  # payload of one packet at an MTU of 1500
SMALL = 32     # what the other direction carries: about a header
DEPTH = 32     # datagrams of the peer under way at once: as many as fit the default socket buffer

# Tool, arguments, bytes there, bytes back. A long request is compared with a stream of datagrams of one packet each.
LATENCIES = [
    ("write_lat", 8, SMALL, SMALL), ("write_lat", PACKET, PACKET, SMALL),
    ("read_lat", 8, SMALL, SMALL), ("read_lat", PACKET, SMALL, PACKET),
    ("reduce_lat", 8, SMALL, SMALL), ("reduce_lat", PACKET, PACKET, SMALL),
    ("atomic_lat", 8, SMALL, SMALL),
    ("send_lat", 8, SMALL, SMALL), ("send_lat", PACKET, PACKET, SMALL),
]
THROUGHPUTS = [
    ("write_bw", PACKET, PACKET, SMALL), ("write_bw", 65536, PACKET, SMALL),
    ("read_bw", PACKET, SMALL, PACKET), ("read_bw", 65536, SMALL, PACKET),
    ("reduce_bw", PACKET, PACKET, SMALL), ("reduce_bw", 65536, PACKET, SMALL),
    ("send_bw", PACKET, PACKET, SMALL),
]


def output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, env=harness.environment(), check=False)
    if done.returncode != 0:
        sys.exit("bench.py: %s: exit code %d" % (" ".join(command), done.returncode))
    return json.loads(done.stdout)


class Targets:
    """A soft device with a region and receive buffers, and the plain server."""

    def __init__(self):
        self.started = []
        try:
            self.start()
        except (OSError, ValueError):
            self.stop()
            raise

    def start(self):
        device = harness.start("netdam-perf", "write_lat", "--serve", "16M", "-d", "udp:127.0.0.1:0", "--json")
        self.started.append(device)
        echo = subprocess.Popen([ECHO, "serve"], stdout=subprocess.PIPE, text=True)
        self.started.append(echo)
        ready = json.loads(device.stdout.readline())
        self.address = "%s:%d" % (ready["address"], ready["port"])
        self.key = ready["key"]
        self.receive_key = ready["receive_key"]
        self.port = echo.stdout.readline().strip()

    def ours(self, tool, size, count, depth):
        key = ["-r", self.receive_key] if tool.startswith("send") else ["-k", self.key]
        how = ["-t", str(depth)] if tool.endswith("_bw") else []
        return output(os.path.join(harness.TOOLS, "netdam-perf"), tool, "-p", self.address, *key, "-s", str(size), "-n",
                      str(count), "-j", *how)

    def plain(self, there, back, count, depth):
        return output(ECHO, "measure", self.port, str(there), str(back), str(count), str(depth))

    def stop(self):
        for process in self.started:
            harness.stop(process)


def row(targets, case, rounds, count):
    """Measures one line of the table; values are medians over the rounds, the ratio also has its range."""
    tool, size, there, back = case
    latency = tool.endswith("_lat")
    packets = -(-size // PACKET)
    ours, plain, again = [], [], 0
    head = {}
    for _ in range(rounds):
        if latency:
            head = targets.ours(tool, size, count, 1)
            ours.append(head["results"][0]["latency_ns"])
            plain.append(targets.plain(there, back, count, 1)["latency_ns"])
        else:
            requests = max(4, count * 4 // packets)
            head = targets.ours(tool, size, requests, max(2, DEPTH // packets))
            ours.append(head["results"][0]["bytes_per_second"])
            result = targets.plain(there, back, requests * packets, DEPTH)
            plain.append(result["iterations"] * max(there, back) * 1e9 / result["duration_ns"])
        again += head["results"][0]["retransmissions"]
    if latency:
        ratios = [a["median"] / b["median"] for a, b in zip(ours, plain)]
        values = {"ours_" + key + "_ns": statistics.median(x[key] for x in ours) for key in ("min", "median", "p99", "p99_9")}
        values.update({"udp_" + key + "_ns": statistics.median(x[key] for x in plain)
                       for key in ("min", "median", "p99", "p99_9")})
    else:
        ratios = [a / b for a, b in zip(ours, plain)]
        values = {"ours_bytes_per_second": statistics.median(ours), "udp_bytes_per_second": statistics.median(plain)}
    return head, {"tool": "netdam_" + tool, "size_bytes": size, "ratio": statistics.median(ratios), "ratio_min": min(ratios),
                  "ratio_max": max(ratios), "retransmissions": again, **values}


def show(line):
    if "ours_median_ns" in line:
        text = "%9.1f us %9.1f us" % (line["ours_median_ns"] / 1e3, line["udp_median_ns"] / 1e3)
    else:
        text = "%7.1f MB/s %7.1f MB/s" % (line["ours_bytes_per_second"] / 1e6, line["udp_bytes_per_second"] / 1e6)
    print("%-18s %6d  %s %8.2f  (%.2f to %.2f)" % (line["tool"], line["size_bytes"], text, line["ratio"],
                                                  line["ratio_min"], line["ratio_max"]), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Operations between two soft devices on loopback, beside plain UDP.")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured, by turns (default 5)")
    parser.add_argument("--count", type=int, default=1000, help="requests per measurement (default 1000)")
    parser.add_argument("--out", default=os.path.join(harness.BUILD, "bench", "bench.json"), help="where the JSON goes")
    arguments = parser.parse_args()
    lines, head = [], {}
    targets = Targets()
    load = os.getloadavg()[0]
    try:
        print("Two soft devices on loopback beside plain UDP; medians of %d rounds. Latency: median, in full, not halved;\n"
              "a smaller ratio is better. Throughput of payload; a larger ratio is better." % arguments.rounds)
        print("%-18s %6s  %12s %12s %8s  %s" % ("tool", "bytes", "ours", "UDP", "ratio", "of all rounds"))
        for case in LATENCIES + THROUGHPUTS:
            head, line = row(targets, case, arguments.rounds, arguments.count)
            lines.append(line)
            show(line)
    finally:
        targets.stop()
    report = {key: head[key] for key in ("version", "commit", "accelerator", "cpus", "firmware_version", "mtu_bytes",
                                         "latency_is", "latency_halved", "wait")}
    report.update({"rounds": arguments.rounds, "count": arguments.count, "load_average_before": load, "results": lines})
    os.makedirs(os.path.dirname(arguments.out) or ".", exist_ok=True)
    with open(arguments.out, "w", encoding="utf-8") as f:
        json.dump(report, f, indent=2)
        f.write("\n")
    print("written to " + os.path.relpath(arguments.out))


if __name__ == "__main__":
    main()
