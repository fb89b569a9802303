#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tools from outside: exit codes, one-line errors, data through files and pipes. Prints TAP."""

import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import ndtest  # noqa: E402
from ndtest import BUILD, LIMIT_S, MEM, NODE, TOP, expect  # noqa: E402

INFO = os.path.join(BUILD, "host-driver", "netdam-info")
KEY = "0x6b65794b45591234"


def run(*command, stdin=b"", code=0, env=None):
    """Runs a command that must exit with `code`; returns what it printed on both outputs."""
    environment = {k: v for k, v in os.environ.items() if k != "NETDAM_DEVICE"}
    environment.update(env or {})
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=LIMIT_S, env=environment, check=False)
    expect(done.returncode == code,
           "%s: exit code %d instead of %d: %s" % (" ".join(command), done.returncode, code, done.stderr))
    return done.stdout, done.stderr.decode()


class Node:
    """A headless node, and netdam-mem towards it."""

    def __init__(self, *options):
        self.process = subprocess.Popen([NODE, "-l", "127.0.0.1:0", "-m", "8M", "-k", KEY] + list(options),
                                        stdout=subprocess.PIPE)
        ready = self.process.stdout.readline().decode()
        expect("ready" in ready, "netdam-node: %r" % ready)
        self.address = "127.0.0.1:" + re.search(r"port=(\d+)", ready).group(1)

    def mem(self, command, *arguments, key=KEY, **how):
        return run(MEM, command, "--peer", self.address, "--key", key, *arguments, **how)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        self.process.wait(LIMIT_S)


def one_line(stderr, tool, *parts):
    expect(stderr.count("\n") == 1 and stderr.startswith(tool + ": "), "not one line: %r" % stderr)
    for part in parts:
        expect(part in stderr, "%r does not name %r" % (stderr, part))


def test_help_and_version(_node):
    for tool in INFO, MEM:
        text, _ = run(tool, "--help")
        expect(text.startswith(b"Usage: "), "no usage")
        expect(b"Exit status" in text, "no exit status in the help")
        text, _ = run(tool, "--version")
        expect(re.fullmatch(rb"netdam-\w+ \d+\.\d+\.\d+\n", text), text)
    text, _ = run(MEM, "--help")
    for command in "write read fill compare reduce fetch-add cas echo".split():
        expect(("\n  " + command + " ").encode() in text, command)


def test_wrong_usage_is_told_in_one_line(node):
    peer = ["--peer", node.address]
    key = ["--key", KEY]
    for part, arguments in [
            ("no command", []), ("frobnicate", ["frobnicate"]), ("--peer", ["write"] + key),
            ("--key", ["write"] + peer), ("zz", ["write", "--key", "zz"] + peer),
            ("beef", ["write", "--key", "beef"] + peer), ("--length", ["read"] + peer + key),
            ("--type", ["reduce"] + peer + key), ("f33", ["reduce", "--type", "f33"] + peer + key),
            ("--operation", ["reduce", "--type", "f32"] + peer + key),
            ("plus", ["reduce", "--type", "f32", "--operation", "plus"] + peer + key),
            ("takes no --type", ["write", "--type", "f32"] + peer + key),
            ("takes no --operation", ["write", "--operation", "sum"] + peer + key),
            ("--value", ["fetch-add"] + peer + key), ("256", ["fill", "-n", "8", "-v", "256"] + peer + key),
            ("-1", ["fetch-add", "-t", "u32", "-v", "-1"] + peer + key),
            ("f32", ["fill", "-n", "6", "-t", "f32", "-v", "1"] + peer + key),
            ("--swap", ["cas", "--compare", "1"] + peer + key), ("12Q", ["read", "--length", "12Q"] + peer + key),
            ("--depth", ["write", "--depth", "0"] + peer + key), ("third", ["write", "a", "third"] + peer + key)]:
        _, stderr = run(MEM, *arguments, code=2)
        one_line(stderr, "netdam-mem", part, "--help")
    _, stderr = run(INFO, "extra", code=2)
    one_line(stderr, "netdam-info", "extra")
    run(MEM, "--nonsense", code=2)
    run(INFO, "--nonsense", code=2)


def test_data_goes_there_and_back(node):
    random.seed(1)
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "data")
        back = os.path.join(directory, "back")
        for size in 0, 1, 1399, 1400, 1401, 65536, 3000001:
            data = random.randbytes(size)
            with open(path, "wb") as f:
                f.write(data)
            for options in [], ["--chunk", "4K", "--depth", "3"], ["--depth", "1"]:
                if size > 100000 and options[:1] == ["--depth"]:
                    continue
                node.mem("fill", "-n", "4M", "-v", "0x5a")
                node.mem("write", "-a", "33", *options, path)
                node.mem("compare", "-a", "33", *options, path)
                node.mem("compare", "-a", "33", *options, "-", stdin=data)
                out, _ = node.mem("read", "-a", "33", "-n", str(size), *options)
                expect(out == data, "read of %d bytes differs" % size)
                node.mem("read", "-a", "32", "-n", str(size + 2), *options, back)
                with open(back, "rb") as f:
                    expect(f.read() == b"\x5a" + data + b"\x5a", "bytes beside %d bytes changed" % size)
        node.mem("write", "-n", "10", path)
        out, _ = node.mem("read", "-n", "10")
        expect(out == data[:10], "--length of write")


def test_compare_names_the_first_difference(node):
    data = bytearray(200000)
    node.mem("write", stdin=bytes(data))
    data[123456] = 7
    _, stderr = node.mem("compare", "--chunk", "4K", stdin=bytes(data), code=1)
    one_line(stderr, "netdam-mem", "byte 123456", "0x07", "0x00", "standard input")


def test_fill_and_reduce(node):
    count = 5000
    node.mem("fill", "-n", str(4 * count), "-t", "f32", "-v", "1.5")
    node.mem("reduce", "-t", "f32", "-o", "sum", "--chunk", "1000",
             stdin=struct.pack("<%df" % count, *range(count)))
    out, _ = node.mem("read", "-n", str(4 * count))
    expect(struct.unpack("<%df" % count, out) == tuple(1.5 + i for i in range(count)), "sums")
    node.mem("fill", "-n", "80", "-t", "i64", "-v", "-5")
    node.mem("reduce", "-t", "I64", "-o", "max", stdin=struct.pack("<10q", *range(-10, 0)))
    out, _ = node.mem("read", "-n", "80")
    expect(struct.unpack("<10q", out) == (-5,) * 6 + (-4, -3, -2, -1), "maxima")


def test_atomics_print_the_old_value(node):
    node.mem("fill", "-n", "16", "-v", "0")
    for arguments, code, printed in [
            (("fetch-add", "-v", "5"), 0, b"0\n"), (("fetch-add", "-v", "0"), 0, b"5\n"),
            (("cas", "-c", "4", "-s", "9"), 1, b"5\n"), (("cas", "-c", "5", "-s", "0xffffffffffffffff"), 0, b"5\n"),
            (("fetch-add", "-t", "i32", "-v", "-2"), 0, b"-1\n"), (("fetch-add", "-t", "i32", "-v", "0"), 0, b"-3\n")]:
        out, _ = node.mem(*arguments, code=code)
        expect(out == printed, "%s printed %r" % (arguments, out))


def test_echo(node):
    for length in 0, 64, 5000:
        out, _ = run(MEM, "echo", "--peer", node.address, "--length", str(length), "--count", "3")
        expect(out.count(b"\n") == 3 and out.startswith(b"%d bytes from " % length), out)
    _, stderr = run(MEM, "echo", "--peer", node.address, "--length", "1M", "--chunk", "4K", code=2)
    one_line(stderr, "netdam-mem", "--length")


def test_failures_are_told_in_one_line(node):
    for part, arguments, how in [
            ("BAD_KEY", ["write"], {"key": "1", "stdin": b"x"}),
            ("BAD_RANGE", ["read", "-n", "1", "-a", "8M"], {}),
            ("at byte 4194304: BAD_RANGE", ["write", "-a", "4M"], {"stdin": bytes(5 << 20)}),
            ("MISALIGNED", ["fetch-add", "-a", "4", "-v", "1"], {}),
            ("/nonexistent", ["write", "/nonexistent"], {}),
            ("/nonexistent/x", ["read", "-n", "1", "/nonexistent/x"], {}),
            ("ends before --length", ["write", "-n", "9"], {"stdin": b"12345678"}),
            ("f32", ["reduce", "-t", "f32", "-o", "sum"], {"stdin": b"123456"}),
            ("usb", ["write", "-d", "usb"], {}),
            ("colour", ["write", "-d", "udp,colour=1"], {}),
            ("usb", ["write"], {"env": {"NETDAM_DEVICE": "usb"}}),
            ("memory for staging", ["write", "-d", "udp,memory=1M"], {})]:
        _, stderr = node.mem(*arguments, code=1, **how)
        one_line(stderr, "netdam-mem", part)
    _, stderr = run(MEM, "write", "--peer", "nowhere", "--key", "1", code=1)
    one_line(stderr, "netdam-mem", "nowhere")
    _, stderr = run(MEM, "write", "--peer", "127.0.0.1:x", "--key", "1", code=1)
    one_line(stderr, "netdam-mem", "127.0.0.1:x")
    _, stderr = run(INFO, "-d", "pci:ffff:ff:1f.7", code=1)
    one_line(stderr, "netdam-info", "ffff:ff:1f.7")


def test_trace_names_each_packet(node):
    node.mem("fill", "-n", "64", "-v", "1")
    _, stderr = node.mem("read", "-n", "3000", "--trace")
    lines = stderr.splitlines()
    expect(sum(bool(re.search(r"^-> .*REQUEST  READ ctx .*length 1400\b", line)) for line in lines) == 2, stderr)
    expect(sum(bool(re.search(r"^<- .*RESPONSE READ OK ctx .*length 1400\b", line)) for line in lines) == 2, stderr)
    _, stderr = node.mem("write", "--trace", key="7", stdin=b"x", code=1)
    expect(re.search(r"^<- .*RESPONSE WRITE BAD_KEY ctx ", stderr, re.M), stderr)
    _, stderr = node.mem("reduce", "-t", "f64", "-o", "min", "--trace", stdin=bytes(8))
    expect(re.search(r"^-> .*REQUEST  REDUCE.MIN.F64 ctx [0-9a-f]{16} #1 ", stderr, re.M), stderr)


def test_other_packet_sizes(_node):
    data = random.randbytes(300000)
    node = Node("-M", "9000")
    try:
        node.mem("write", "-d", "udp,mtu=9000", stdin=data)
        out, _ = node.mem("read", "-d", "udp:127.0.0.1:0,mtu=9000,merge=off", "-n", "300000")
        expect(out == data, "differs")
        node.mem("write", stdin=data[::-1])
        node.mem("compare", stdin=data[::-1])
    finally:
        node.stop()


def test_limits_of_a_soft_device(_node):
    out, _ = run(INFO, "-d", "udp:127.0.0.1:0,regions=8,lanes=64", "--json")
    expect(json.loads(out)["regions"] == 8, out)
    for device, part in (("udp:127.0.0.1:0,lanes=100000000", "lanes"), ("udp:127.0.0.1:0,lane=1", "lane"),
                         ("udp:127.0.0.1:0,lanes=0", "lanes=0")):
        _, stderr = run(INFO, "-d", device, code=1)
        expect(part in stderr and stderr.count("\n") == 1, stderr)


def test_info(_node):
    text, _ = run(INFO, "-d", "udp:127.0.0.1:0,memory=8M", "-c")
    for part in b"specification      1.0", b"8388608 bytes", b"127.0.0.1", b"tx_frames: ":
        expect(part in text, part)
    out, _ = run(INFO, "-d", "udp:127.0.0.1:0,memory=8M,mtu=9000", "--json", "-c", "-o")
    info = json.loads(out)
    expect(info["memory_bytes"] == 8 << 20, "memory_bytes")
    expect(info["main_memory_bytes"] == 0, "main_memory_bytes")
    expect(info["mtu_bytes"] == 9000 and info["payload_max_bytes"] == 8904, "mtu")
    expect(info["ipv4"] == "127.0.0.1" and info["ipv6"] is None and info["ready"] is True, "addresses")
    expect(info["device"] == "udp:127.0.0.1:%d" % info["udp_port"], info["device"])
    expect(info["counters"]["register_errors"] == 0, "register errors")
    operations = {(o["opcode"], o["operation"], o["type"]) for o in info["operations"]}
    expect(("write", "none", "none") in operations and ("reduce", "sum", "f32") in operations, operations)
    out, _ = run(INFO, env={"NETDAM_DEVICE": "udp:127.0.0.1:0"})
    expect(b"udp:127.0.0.1:" in out, out)


def test_first_program(node):
    for name in "first_program", "first_program_static":
        path = os.path.join(BUILD, "tests", "driver", name)
        if name.endswith("static") and not os.path.exists(path):
            print("# no static program: sanitizers do not link statically")
            continue
        out, _ = run(path, "udp:127.0.0.1:0", node.address, KEY)
        expect(out == b"Hello, memory!\n", out)
        out, _ = run(path, "udp:127.0.0.1:0", node.address, "1", code=1)
        expect(out == b"no region has this key\n", out)
    with open(os.path.join(TOP, "host-driver", "examples", "first_program.c"), encoding="utf-8") as f:
        program = f.read()
    with open(os.path.join(TOP, "docs", "driver.md"), encoding="utf-8") as f:
        expect(program[program.index("#include"):] in f.read(), "docs/driver.md shows another first_program.c")


def test_python_example(node):
    if os.environ.get("O", "build") != "build":
        print("# not with sanitizers: Python is not linked with them")
        return
    script = os.path.join(TOP, "host-driver", "examples", "ctypes_example.py")
    env = {"LD_LIBRARY_PATH": os.path.join(BUILD, "host-driver")}
    node.mem("fill", "-n", "8", "-v", "0")
    out, _ = run(sys.executable, script, "udp:127.0.0.1:0", node.address, KEY, env=env)
    expect(out.decode().splitlines() == ["Hello from Python!"] + ["the counter was %d" % n for n in range(3)], out)
    _, stderr = run(sys.executable, script, "udp:127.0.0.1:0", node.address, "1", env=env, code=1)
    expect(stderr == "no region has this key\n", stderr)
    _, stderr = run(sys.executable, script, env=env, code=1)
    expect("DEVICE PEER KEY" in stderr, stderr)


def test_symbols(_node):
    declared = set()
    for header in glob.glob(os.path.join(TOP, "host-driver", "include", "netdam*.h")):
        with open(header, encoding="utf-8") as f:
            declared.update(re.findall(r"^NETDAM_API [^;]*?\b(netdam_\w+)\(", f.read(), re.M))
    library = os.path.join(BUILD, "host-driver", "libnetdam.so.0")
    out, _ = run("nm", "-D", "--defined-only", library)
    exported = {line.split()[2].split("@")[0] for line in out.decode().splitlines() if line.split()[1] == "T"}
    expect(len(declared) > 40, "headers not understood")
    expect(declared == exported, "headers and libnetdam.so.0 differ: %s" % (declared ^ exported))
    with open(os.path.join(TOP, "docs", "driver.md"), encoding="utf-8") as f:
        manual = f.read()
    missing = [name for name in declared if name + "()" not in manual]
    expect(not missing, "docs/driver.md does not mention %s" % missing)


def main():
    ndtest.tests_of(globals())
    node = Node()
    try:
        return ndtest.run(node)
    finally:
        node.stop()


sys.exit(main())
