#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Wireshark dissector under tshark: golden packets, damaged ones, and real traffic over a wire that loses (TAP)."""

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("O", "build"))
GOLDEN = os.path.join(ROOT, "tests", "golden")
SCRIPT = os.environ.get("NETDAM_DISSECTOR", os.path.join(ROOT, "docs", "wireshark", "netdam.lua"))
for folder in ("client", "lib"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
sys.dont_write_bytecode = True
import netdam_packet as nd  # noqa: E402
from ndtest import all_checked, check  # noqa: E402

TSHARK_SECONDS = 300
MUTANTS = 3000


def write_pcap(path, frames):
    """frames: bytes, or (bytes that were captured, length on the wire)."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))
        for index, frame in enumerate(frames):
            data, length = frame if isinstance(frame, tuple) else (frame, len(frame))
            file.write(struct.pack("<IIII", index // 1000, index % 1000 * 1000, len(data), length) + data)


class Tshark:
    """`script` None: the dissector is among the personal plugins."""

    def __init__(self, directory, script=SCRIPT):
        self.script = [] if script is None else ["-X", f"lua_script:{script}"]
        self.environment = {**os.environ, "HOME": directory, "WIRESHARK_CONFIG_DIR": directory, "LC_ALL": "C.UTF-8"}

    def run(self, pcap, *arguments):
        command = ["tshark", "-n", "-r", pcap, *self.script, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, timeout=TSHARK_SECONDS, check=False)
        errors = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if "superuser" not in line and
                  "Running as user" not in line]
        return done.returncode, done.stdout.decode("utf-8", "replace"), errors

    def plugin_folder(self):
        said = subprocess.run(["tshark", "-G", "folders"], env=self.environment, capture_output=True, text=True,
                              timeout=TSHARK_SECONDS, check=True).stdout
        return re.search(r"^Personal Lua Plugins:\s*(.+)$", said, re.M)[1]

    def details(self, pcap):
        """Each packet's tree as text."""
        code, out, errors = self.run(pcap, "-V", "-2")
        return code, re.split(r"(?m)^Frame \d+:", out)[1:], errors

    def fields(self, pcap, names, *arguments):
        """A dictionary for each packet."""
        code, out, errors = self.run(pcap, "-2", *arguments, "-T", "fields", "-E", "occurrence=a", "-E", "separator=/t",
                                     *[a for name in names for a in ("-e", name)])
        if code != 0 or errors:
            raise RuntimeError(f"tshark: exit {code}, {errors}")
        return [dict(zip(names, line.split("\t"))) for line in out.splitlines()]


class Golden:
    """One golden packet: its bytes, and what the comments beside them say."""

    def __init__(self, name, kind, expected):
        self.name, self.kind, self.expected = name, kind, expected
        with open(os.path.join(GOLDEN, name + ".hex"), encoding="ascii") as file:
            self.text = file.read()
        self.frame = bytes.fromhex("".join(line.partition("#")[0] for line in self.text.splitlines()))

    def said(self, what):
        return re.findall(rf"# {what}: ([A-Z0-9_]+)$", self.text, re.M)

    def datagram(self):
        """The UDP payload; only for frames of right form."""
        if self.frame[12:14] == b"\x08\x00":
            return self.frame[14 + 20 + 8:14 + int.from_bytes(self.frame[16:18], "big")]
        return self.frame[14 + 40 + 8:]


def golden_packets():
    with open(os.path.join(GOLDEN, "manifest.txt"), encoding="ascii") as file:
        return [Golden(*line.split()[:3]) for line in file if line.strip() and not line.startswith("#")]


NAMES = (("kind", "Kind"), ("opcode", "Opcode"), ("operation", "Operation"), ("type", "Type"), ("status", "Status"))


def missing_names(golden, tree):
    """What the golden packet's comments call by name and the tree does not."""
    wrong = [f"{golden.name}: {what} {value}" for what, label in NAMES for value in golden.said(what)
             if value.isupper() and not re.search(rf"\b{label}: {value} \(", tree)]
    for flags in re.findall(r"# flags: ([A-Z_, ]+)", golden.text):
        wrong += [f"{golden.name}: flag {flag}" for flag in re.findall(r"[A-Z_]{4,}", flags)
                  if not re.search(rf"= {flag}: True", tree)]
    return wrong


FIELDS = ["netdam.context", "netdam.number", "netdam.distance", "netdam.payload_length", "netdam.header_length",
          "netdam.length", "netdam.generation", "netdam.key", "netdam.address", "netdam.echo", "netdam.floor",
          "netdam.depth", "netdam.hop", "netdam.payload", "netdam.header_crc.status", "netdam.payload_crc.status"]


def wrong_fields(golden, shown):
    """Against the independent client's decoder."""
    packet = nd.decode(golden.datagram())
    body = packet.segments[0]
    expected = {"netdam.context": packet.context, "netdam.number": packet.number, "netdam.distance": packet.distance,
                "netdam.payload_length": len(packet.payload), "netdam.length": body["length"],
                "netdam.generation": body["generation"], "netdam.header_crc.status": 1}
    for name in ("key", "address", "echo", "floor", "depth", "hop"):
        if name in body:
            expected["netdam." + name] = body[name]
    if packet.flags & nd.PAYLOAD_CRC and packet.payload:
        expected["netdam.payload_crc.status"] = 1
    wrong = [f"{golden.name}: {name} is {shown[name]}, not {value}" for name, value in expected.items()
             if int(shown[name].split(",")[0] or "-1", 0) != value]
    if shown["netdam.payload"].replace(":", "") != packet.payload.hex():
        wrong.append(f"{golden.name}: payload is {shown['netdam.payload']}")
    return wrong


ENTRY_FIELDS = ["netdam.entry." + name for name in ("kind", "key", "address", "length", "data")]


def wrong_entries(golden, shown, tree):
    """Of a transaction: its entries against the independent client's reader; a list of wrong form is told."""
    entries = nd.read_entries(nd.decode(golden.datagram()).payload)
    if entries is None:
        return [] if "A node refuses this" in tree or "Warning/Protocol" in tree else [f"{golden.name}: taken for right"]
    columns = [[v for v in shown[name].split(",") if v] for name in ENTRY_FIELDS]
    right = [[e[i] for e in entries] for i in range(4)]
    wrong = [[int(v, 0) for v in column] for column in columns[:4]] != right or "Warning/Protocol" in tree
    wrong |= [bytes.fromhex(v.replace(":", "")) for v in columns[4]] != [e[4] for e in entries if e[4]]
    return [f"{golden.name}: entries are {columns}"] if wrong else []


# What the tree has to say about a packet that is dropped for one of these reasons.
COMPLAINTS = {"RX_HEADER_CRC": "Header CRC: wrong", "RX_PAYLOAD_CRC": "Payload CRC: wrong",
              "RX_MALFORMED": "Error/Malformed"}


def test_golden(tshark, directory, packets):
    pcap = os.path.join(directory, "golden.pcap")
    write_pcap(pcap, [golden.frame for golden in packets])
    code, trees, errors = tshark.details(pcap)
    check(code == 0 and not errors and len(trees) == len(packets), "tshark reads all golden packets", errors)
    check("Lua Error" not in "".join(trees), "no golden packet makes the dissector fail",
          [p.name for p, tree in zip(packets, trees) if "Lua Error" in tree])
    # For what is refused for its form or dropped, parts of the tree may be missing.
    formed = [(p, tree) for p, tree in zip(packets, trees) if p.kind != "malformed" and
              p.expected not in ("BAD_VERSION", "BAD_SEGMENTS")]
    check(len(formed) > 100, "the golden packets of right form are found")
    wrong = [w for p, tree in formed for w in missing_names(p, tree)]
    check(not wrong, "opcodes, operations, types, statuses and flags have their names", wrong)
    wrong = [p.name for p, tree in formed if "Malformed" in tree or "CRC: wrong" in tree]
    check(not wrong, "nothing of right form is called malformed", wrong)
    # Frames that Ethernet, IP or UDP already spoil do not get as far.
    damaged = [(p, tree) for p, tree in zip(packets, trees) if p.expected in COMPLAINTS and
               "Network Direct Attached Memory" in tree]
    check(len(damaged) > 15, "the damaged golden packets are found")
    wrong = [f"{p.name}: {p.expected}" for p, tree in damaged if not re.search(COMPLAINTS[p.expected], tree)]
    check(not wrong, "each damaged golden packet is called what it is", wrong)
    shown = tshark.fields(pcap, FIELDS)
    plain = [(p, s) for p, s in zip(packets, shown) if p.kind == "encode" and len(p.said("opcode")) == 1]
    wrong = [w for p, s in plain for w in wrong_fields(p, s)]
    check(len(plain) > 50 and not wrong, "every field is what the independent client reads", wrong)
    shown = tshark.fields(pcap, ENTRY_FIELDS)
    lists = [(p, s, tree) for p, s, tree in zip(packets, shown, trees) if p.name.startswith("transaction-") and
             p.name.endswith("-request")]
    wrong = [w for p, s, tree in lists for w in wrong_entries(p, s, tree)]
    check(len(lists) > 15 and not wrong, "so are the entries of transactions, and wrong lists are called that", wrong)


def test_chains(tshark, directory, packets):
    by_name = {p.name: p for p in packets}
    names = ("write-chain-request", "write-chain-passed-on", "write-chain-answer", "write-chain-again-request",
             "write-chain-again-passed-on", "reduce-chain-ipv6-request")
    pcap = os.path.join(directory, "chains.pcap")
    write_pcap(pcap, [by_name[name].frame for name in names])
    trees = tshark.details(pcap)[1]
    check(all(re.search(r"(?m)^ +Origin$", tree) and "Segment 1" in tree for i, tree in enumerate(trees) if i != 2),
          "a chain shows its origin and its segments")
    current = [re.findall(r"Segment (\d) \(current\): (\w+)", tree) for tree in trees]
    check(current == [[("0", "WRITE")], [("1", "WRITE")], [], [("0", "WRITE")], [("1", "WRITE")], [("0", "REDUCE")]],
          "and which of them is the current one", [current])
    check("Node address: 10.0.0.1" in trees[1] and "Node address: fd00::3" in trees[5], "nodes have their addresses")
    shown = tshark.fields(pcap, ["netdam.repetition_of", "netdam.request_in"])
    check([s["netdam.repetition_of"] for s in shown][:5] == ["", "", "", "1", "2"],
          "what is passed on is a repetition of what was passed on before only", [shown])
    check(shown[2]["netdam.request_in"] == "2", "the answer names the packet at its hop", [shown[2]])


WARNINGS = ["netdam.repetition", "netdam.stale_copy", "netdam.stale", "netdam.refused_hop"]


def changed(golden, **members):
    """A golden packet with other numbers in its header, and its CRC made right again."""
    places = {"status": (7, 1), "number": (16, 6), "distance": (22, 2), "flags": (2, 2)}
    data = bytearray(golden.datagram())
    for name, value in members.items():
        at, length = places[name]
        data[at:at + length] = value.to_bytes(length, "big")
    return frame_of(with_header_crc(bytes(data)))


def warnings(tshark, directory, frames):
    """For each frame, which of the warnings it has; and the trees."""
    pcap = os.path.join(directory, "warnings.pcap")
    write_pcap(pcap, frames)
    shown = tshark.fields(pcap, WARNINGS)
    return [[name for name in WARNINGS if frame[name]] for frame in shown], tshark.details(pcap)[1]


def test_warnings(tshark, directory, packets):
    by_name = {p.name: p for p in packets}
    tour = [by_name[name].frame for name in ("write-chain-request", "write-chain-passed-on")]
    pcap = os.path.join(directory, "tour.pcap")
    write_pcap(pcap, [*tour, by_name["write-chain-answer"].frame])
    shown = tshark.fields(pcap, ["netdam.tour.previous", "netdam.tour.next", "netdam.tour.start", "netdam.tour.time",
                                 "netdam.response_in", "_ws.col.Info"])
    check([s["netdam.tour.previous"] for s in shown] == ["", "1", ""] and [s["netdam.tour.next"] for s in shown] == ["2", "", ""],
          "a chain's packets name those at the hops before and behind", [shown])
    check([s["netdam.tour.start"] for s in shown] == ["", "1", "1"] and float(shown[2]["netdam.tour.time"]) == 0.002,
          "the answer tells how long the whole tour took", [shown])
    check("hop 0 of 2" in shown[0]["_ws.col.Info"] and "hop 1 of 2" in shown[1]["_ws.col.Info"], "each names its hop", [shown])

    told, trees = warnings(tshark, directory, [*tour, changed(by_name["write-chain-answer"], status=9)])
    check(told == [[], [], ["netdam.refused_hop"]] and "Hop 1, WRITE at 10.0.0.3:20036, has refused: BAD_KEY" in trees[2],
          "a hop that refuses is named, with its address and what it was to do", [told, trees[2][-400:]])
    told, _ = warnings(tshark, directory, [*tour, by_name["write-chain-answer"].frame])
    check(told == [[], [], []], "one that does not is not", [told])

    write = by_name["write-request"]
    told, _ = warnings(tshark, directory, [changed(write, number=1, distance=0), changed(write, number=3, distance=2),
                                           changed(write, number=2, distance=1), changed(write, number=4, distance=0),
                                           changed(write, number=3, distance=2)])
    check(told == [[], [], [], [], ["netdam.repetition", "netdam.stale_copy"]],
          "a copy of what its requester has finished is called late, packets that overtake are not", [told])
    told, _ = warnings(tshark, directory, [changed(write, number=9, distance=0), changed(write, number=5, distance=0, flags=0x11)])
    check(told == [[], []], "what uses no lane is never late", [told])
    told, _ = warnings(tshark, directory, [by_name["stale-request"].frame, by_name["stale-answer"].frame])
    check(told == [[], ["netdam.stale"]], "an answer that asks for another generation is told", [told])
    told, trees = warnings(tshark, directory, [by_name["write-again-request"].frame])
    check(told == [["netdam.repetition"]] and "does not hold it" in trees[0],
          "a repetition is one by its flag, too, if the capture began later", [told])


def with_header_crc(datagram):
    length = int.from_bytes(datagram[26:28], "big")
    if len(datagram) < 32 or not 32 <= length <= len(datagram):
        return datagram
    crc = nd.crc32c(datagram[:28] + bytes(4) + datagram[32:length])
    return datagram[:28] + struct.pack(">I", crc) + datagram[32:]


def frame_of(datagram):
    udp = struct.pack(">HHHH", 20036, 20036, 8 + len(datagram), 0) + datagram
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    return bytes(12) + b"\x08\x00" + ip + udp


def mutate(rng, datagram):
    """Cut, grown, or a few bytes changed, most of them in the header; its CRC made right again in most."""
    data = bytearray(datagram)
    for _ in range(rng.randrange(1, 4)):
        choice = rng.randrange(6)
        if choice == 0:
            del data[rng.randrange(len(data) + 1):]
        elif choice == 1:
            data += rng.randbytes(rng.randrange(1, 80))
        elif data:
            data[rng.randrange(min(len(data), 96))] = rng.choice((0, 1, 2, 4, 6, 32, 33, 64, 127, 255, rng.randrange(256)))
    return with_header_crc(bytes(data)) if rng.randrange(4) else bytes(data)


def test_damaged(tshark, directory, packets):
    seed = int(os.environ.get("NETDAM_SEED", random.SystemRandom().getrandbits(32)))
    print(f"# NETDAM_SEED={seed}")
    rng = random.Random(seed)
    formed = [p for p in packets if p.kind in ("encode", "decode")]
    frames = [frame_of(mutate(rng, rng.choice(formed).datagram())) for _ in range(MUTANTS)]
    # What a capture with a small snapshot length holds: each golden packet cut everywhere.
    for golden in rng.sample(formed, 12):
        frames += [(golden.frame[:length], len(golden.frame)) for length in range(len(golden.frame))]
    pcap = os.path.join(directory, "damaged.pcap")
    write_pcap(pcap, frames)
    code, trees, errors = tshark.details(pcap)
    check(code == 0 and not errors and len(trees) == len(frames), f"tshark reads {len(frames)} damaged packets", errors)
    check(sum("Network Direct Attached Memory" in tree for tree in trees) > MUTANTS // 2, "most of which reach the dissector")
    check("Lua Error" not in "".join(trees), "no damaged packet makes the dissector fail",
          [line for tree in trees if "Lua Error" in tree for line in tree.splitlines() if "Lua Error" in line])


class Program:
    """A program that says where it can be reached, and is ended by its pid."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.ready = dict(item.split("=", 1) for item in self.process.stdout.readline().split() if "=" in item)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, _ = self.process.communicate()
        return out


def traffic(directory, pcap):
    """A file written and read over a wire that loses the first modifying request and an answer to a read; a refusal."""
    node_program = os.path.join(BUILD, "sim", "netdam-node")
    mem = os.path.join(BUILD, "host-driver", "netdam-mem")
    source = os.path.join(directory, "file")
    with open(source, "wb") as file:
        file.write(random.randbytes(20000))
    with Program(node_program, "--listen", "127.0.0.1:0") as node, \
            Program(os.path.join(ROOT, "tests", "hand", "udp_wire.py"), "--to", f"127.0.0.1:{node.ready['port']}",
                    "--pcap", pcap, "--lose-request", "WRITE:1", "--lose-answer", "READ:3") as wire:
        to = ["--peer", f"127.0.0.1:{wire.ready['port']}", "--key", node.ready["key"]]
        codes = [subprocess.run([mem, *command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False,
                                timeout=120).returncode
                 for command in (["write", *to, source], ["read", *to, "--length", "20000", "/dev/null"],
                                 ["fetch-add", *to, "--address", "1M", "--value", "3"],
                                 ["read", *to[:2], "--key", "1", "--length", "8", "/dev/null"])]
        said = wire.end()
    return codes, said


def test_traffic(tshark, directory):
    pcap = os.path.join(directory, "traffic.pcap")
    codes, said = traffic(directory, pcap)
    check(codes == [0, 0, 0, 1], "a file is written, read and a cell changed; a wrong key is refused", [codes, said])
    check(len(re.findall("lost 1$", said, re.M)) == 2, "the wire has lost one request and one answer", [said])
    shown = tshark.fields(pcap, ["frame.number", "netdam.kind", "netdam.status", "netdam.request_in", "netdam.response_in",
                                 "netdam.time", "netdam.repetition_of", "netdam.no_response", "netdam.header_crc.status",
                                 "_ws.col.Info"])
    requests = [s for s in shown if s["netdam.kind"] == "1"]
    responses = [s for s in shown if s["netdam.kind"] == "2"]
    check(len(requests) > 20 and len(responses) > 20 and len(requests) + len(responses) == len(shown),
          "every datagram is recognised, on ports that are not NetDAM's")
    check(all(s["netdam.header_crc.status"] == "1" for s in shown), "and has a right header CRC")
    check(all(s["netdam.request_in"] and float(s["netdam.time"]) >= 0 for s in responses),
          "every answer names its request, and the time between the two", [s for s in responses if not s["netdam.request_in"]])
    by_frame = {s["frame.number"]: s for s in shown}
    check(all(s["_ws.col.Info"].split(" to ")[1].split(" ")[0] == by_frame[s["netdam.request_in"]]["_ws.col.Info"].split(" ")[0]
              for s in responses), "which is of the same operation")
    answered = [s for s in requests if s["netdam.response_in"]]
    check(len(answered) >= len(requests) - 1, "every request names its answer, but for the one that was lost")
    check(sum(bool(s["netdam.repetition_of"]) for s in requests) >= 2, "the repetitions are called that")
    again = [s["frame.number"] for s in requests if s["netdam.repetition_of"] and s["_ws.col.Info"].startswith("WRITE #1 ")]
    check(any(s["netdam.request_in"] in again for s in responses), "the answer to what was lost names the repetition")
    check(any(s["netdam.status"] == "0x09" for s in responses), "the refusal is BAD_KEY", [s["netdam.status"] for s in responses])
    out = tshark.run(pcap, "-2", "-Y", "netdam.repetition_of and netdam.opcode == 0x11")[1]
    check("WRITE #" in out and "AGAIN" in out, "a display filter finds the repeated WRITE", out.splitlines())


def test_plugins(directory, packets):
    """Of that folder Wireshark runs each script by itself, too."""
    pcap = os.path.join(directory, "plugins.pcap")
    home = os.path.join(directory, "home")
    write_pcap(pcap, [golden.frame for golden in packets])
    tshark = Tshark(home, None)
    check(tshark.run(pcap, "-Y", "netdam")[0] != 0, "without the dissector its fields are not known")
    shutil.copytree(os.path.dirname(SCRIPT), tshark.plugin_folder(), ignore=lambda _, names: [
        name for name in names if not name.endswith(".lua")])
    code, out, errors = tshark.run(pcap, "-2", "-Y", "netdam")
    check(code == 0 and not errors and out == Tshark(directory).run(pcap, "-2", "-Y", "netdam")[1] and "NetDAM" in out,
          "copied to the folder for personal plugins, it says what it says where it is named", [code, *errors])


def main():
    if not shutil.which("tshark"):
        print("Bail out! no tshark: install the Debian package tshark")
        return 1
    packets = golden_packets()
    with tempfile.TemporaryDirectory() as directory:
        tshark = Tshark(directory)
        test_golden(tshark, directory, packets)
        test_chains(tshark, directory, packets)
        test_warnings(tshark, directory, packets)
        test_damaged(tshark, directory, packets)
        test_traffic(tshark, directory)
        test_plugins(directory, packets)
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
