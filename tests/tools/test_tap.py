#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""netdam-tap: two kernels' network namespaces on one Ethernet wire, through two soft devices. Prints TAP."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import expect, one_line, run
from ndtest import Skipped

BYTES = 1 << 20
SERVE = """
import hashlib, socket
listening = socket.create_server(("%s", 5001))
print("listening", flush=True)
connection, _ = listening.accept()
seen = hashlib.sha256()
while True:
    part = connection.recv(65536)
    if not part:
        break
    seen.update(part)
print(seen.hexdigest(), flush=True)
"""
# An echo request of a whole packet that is not to be fragmented, until it is answered or 100 s have gone by.
PING = """
import socket, struct, sys, time
address, size = sys.argv[1], int(sys.argv[2])
ping = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
ping.setsockopt(socket.IPPROTO_IP, 10, 2)
ping.settimeout(1)
packet = struct.pack(">BBHHH", 8, 0, 0, 7, 7) + bytes(size - 28)
packet = packet[:2] + struct.pack(">H", 0xffff - sum(struct.unpack(">4H", packet[:8]))) + packet[4:]
until = time.monotonic() + 100
while time.monotonic() < until:
    ping.sendto(packet, (address, 0))
    try:
        answer, sender = ping.recvfrom(65536)
    except socket.timeout:
        continue
    if sender[0] == address and answer[20] == 0 and answer[24:] == packet[4:]:
        sys.exit(0)
sys.exit("no answer")
"""
SEND = """
import socket, sys
connection = socket.create_connection(("%s", 5001), 100)
connection.sendall(sys.stdin.buffer.read())
connection.close()
"""


def apart(*command):
    """A command in a network of its own; root there, whoever we are here."""
    return ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), *command]


def need_network():
    """Root, or a kernel that lets everybody be root in a network of their own."""
    if subprocess.run(apart("test", "-w", "/dev/net/tun"), capture_output=True, check=False).returncode != 0:
        raise Skipped("no network namespaces, or no /dev/net/tun")


class End:
    """One host: netdam-tap in a network of its own, over a soft device or what a broker has."""

    def __init__(self, directory, number, mtu, *options, broker=False):
        need_network()
        own, other = (os.path.join(directory, "wire%d" % n) for n in (number, 1 - number))
        device = "udp:10.9.0.%d:20036,memory=8M,mtu=%d,wire=%s:%s" % (number + 1, mtu, own, other)
        self.address = "10.9.1.%d" % (number + 1)
        self.card_address = "10.9.0.%d:20036" % (number + 1)
        self.broker = None
        if broker:
            path = os.path.join(directory, "broker%d" % number)
            self.broker = subprocess.Popen([os.path.join(harness.TOOLS, "netdamd"), "--device", device, "--socket", path],
                                           stderr=subprocess.PIPE, text=True, env=harness.environment())
            harness.started.append(self.broker)
            line = self.broker.stderr.readline()
            expect("ready" in line, line)
            device = "broker:" + path
        self.device = device
        self.tap = subprocess.Popen(apart(os.path.join(harness.TOOLS, "netdam-tap"), "-d", device, "-j", *options),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=harness.environment())
        harness.started.append(self.tap)
        line = self.tap.stdout.readline()
        expect(line, "netdam-tap does not start")
        self.ready = json.loads(line)
        self.do("ip", "addr", "add", self.address + "/24", "dev", self.ready["interface"])

    def inside(self, *command):
        """The same command line, in this end's network."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--net", *user, "--target", str(self.tap.pid), *command]

    def do(self, *command, **how):
        done = subprocess.run(self.inside(*command), capture_output=True, timeout=harness.LIMIT_S, check=False, **how)
        expect(done.returncode == 0, "%s: %s" % (" ".join(command[:4]), done.stdout + done.stderr))
        return done.stdout

    def ping(self, other, size=1000):
        self.do(sys.executable, "-c", PING, other.address, str(size))

    def ask_statistics(self):
        self.tap.send_signal(signal.SIGUSR1)
        return json.loads(self.tap.stdout.readline())

    def stop(self):
        code, rest = harness.stop(self.tap)
        self.tap.stderr.close()
        if self.broker:
            harness.stop(self.broker)
            self.broker.stderr.close()
        expect(code == 0, "netdam-tap: exit code %d" % code)
        return json.loads(rest.splitlines()[-1])


def transfer(server, client, data):
    """By TCP; the other end says what has arrived."""
    serving = subprocess.Popen(server.inside(sys.executable, "-c", SERVE % server.address), stdout=subprocess.PIPE, text=True)
    harness.started.append(serving)
    expect(serving.stdout.readline() == "listening\n", "nobody listens")
    client.do(sys.executable, "-c", SEND % server.address, input=data)
    out, _ = serving.communicate(timeout=harness.LIMIT_S)
    expect(out.strip() == hashlib.sha256(data).hexdigest(), "other bytes have arrived")


def test_help_version_and_page(_node):
    harness.check_version("netdam-tap")
    harness.check_page("netdam-tap", ["netdam-tap"])


def test_ping_and_tcp_both_ways(_node):
    for mtu in 1500, 9000:
        with tempfile.TemporaryDirectory() as directory:
            ends = [End(directory, number, mtu) for number in (0, 1)]
            expect(ends[0].ready["mtu"] == mtu and ends[0].ready["interface"] == "netdam0", ends[0].ready)
            link = json.loads(ends[0].do("ip", "-j", "link", "show", "netdam0"))[0]
            expect(link["address"] == ends[0].ready["mac"] and link["mtu"] == mtu and "UP" in link["flags"], link)
            for one, other in (ends, ends[::-1]):
                one.ping(other, mtu)
                transfer(one, other, os.urandom(BYTES))
            seen = ends[0].ask_statistics()
            expect(seen["event"] == "statistics" and seen["sent_bytes"] > BYTES and seen["received_bytes"] > BYTES, seen)
            last = [end.stop() for end in ends]
            expect(last[0]["refused"] == 0 and last[1]["refused"] == 0, last)
            expect(last[0]["sent_frames"] >= seen["sent_frames"], last)


def test_beside_netdam_traffic(_node):
    with tempfile.TemporaryDirectory() as directory:
        ends = [End(directory, number, 1500, "-n", "64", broker=True) for number in (0, 1)]
        target = harness.start("netdam-perf", "write_bw", "--serve", "1M", "-d", ends[1].device, "--json")
        ready = json.loads(target.stdout.readline())
        writing = harness.start("netdam_write_bw", "-d", ends[0].device, "-p", ends[1].card_address, "-k", ready["key"],
                                "-n", "2000", "-s", "16K", "-j")
        transfer(ends[1], ends[0], os.urandom(BYTES))
        ends[1].ping(ends[0])
        out, _ = writing.communicate(timeout=harness.LIMIT_S)
        expect(json.loads(out)["results"][0]["iterations"] == 2000, out)
        expect(harness.stop(target)[0] == 0, "the target of the WRITEs failed")
        for end in ends:
            expect(end.stop()["refused"] == 0, "the device refused frames of the kernel")


def test_frames_that_the_device_refuses_are_counted(_node):
    with tempfile.TemporaryDirectory() as directory:
        end = End(directory, 0, 1500)
        end.do("ip", "link", "set", "netdam0", "address", "02:00:00:00:00:77")
        # Resolution goes out under the new address, which is not the card's.
        end.do(sys.executable, "-c", "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'1', ('10.9.1.9', 9))")
        until = time.monotonic() + harness.LIMIT_S
        while end.ask_statistics()["refused"] == 0:
            expect(time.monotonic() < until, "nothing was refused")
        end.stop()


def test_it_ends_when_its_interface_does(_node):
    with tempfile.TemporaryDirectory() as directory:
        end = End(directory, 0, 1500)
        end.do("ip", "link", "del", "netdam0")
        _, stderr = end.tap.communicate(timeout=harness.LIMIT_S)
        expect(end.tap.returncode == 1, "exit code %d" % end.tap.returncode)
        one_line(stderr, "netdam-tap", "netdam0")


def test_wrong_usage_and_failures_are_told_in_one_line(_node):
    for part, arguments in [('"575"', ["-m", "575"]), ('"9001"', ["-m", "9001"]), ('"1"', ["-n", "1"]), ('"20000"', ["-n", "20000"]),
                            ('"a/b"', ["-i", "a/b"]), ('""', ["-i", ""]), ('"abcdefghijklmnop"', ["-i", "abcdefghijklmnop"]),
                            ('"extra"', ["extra"])]:
        _, stderr = run("netdam-tap", *arguments, code=2)
        one_line(stderr, "netdam-tap", part, "--help")
    _, stderr = run("netdam-tap", "-d", "udp:127.0.0.1:0", code=1)
    one_line(stderr, "netdam-tap", "udp:127.0.0.1:0", "no ordinary frames")
    _, stderr = run("netdam-tap", "-d", "pci:ffff:ff:1f.7", code=1)
    one_line(stderr, "netdam-tap", "ffff:ff:1f.7")
    with tempfile.TemporaryDirectory() as directory:
        device = "udp:10.9.0.1:20036,memory=64K,wire=%s/a:%s/b" % (directory, directory)
        _, stderr = run("netdam-tap", "-d", device, code=1)
        one_line(stderr, "netdam-tap", "buffers")
        _, stderr = run("netdam-tap", "-d", device, "-m", "9000", code=2)
        one_line(stderr, "netdam-tap", "1500", "--help")


sys.exit(harness.main(globals()))
