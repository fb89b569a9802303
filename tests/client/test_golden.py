#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pins the independent client's packets to the golden ones, and the golden ones to the manual. Prints TAP."""

import os
import re
import struct
import sys

import link
import netdam_packet as nd
from link import internet_sum, pseudo_ipv6

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from ndtest import all_checked, check  # noqa: E402

GOLDEN = os.path.join(TOP, "tests", "golden")
REQUESTER = (bytes([10, 0, 0, 1]), bytes.fromhex("fd00" + "00" * 13 + "01"))
NODE = (bytes([10, 0, 0, 2]), bytes.fromhex("fd00" + "00" * 13 + "02"))
NEXT = (bytes([10, 0, 0, 3]), bytes.fromhex("fd00" + "00" * 13 + "03"))
REQUESTER_MAC, NODE_MAC = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
GENERATION = 0x5EED000100000001
# Permissions of the regions, with "i" where immediates go somewhere; bytes of the receive buffer posted, if there is one.
KEYS = {0x6B65790123456789: "rwai", 0x6B6579012345678A: "rw", 0x6B6579012345678B: "ra"}
RECEIVE_KEYS = {0x7265637601234567: 64, 0x7265637601234568: None}


def load(name):
    with open(os.path.join(GOLDEN, name + ".hex"), encoding="ascii") as f:
        return bytes.fromhex("".join(line.partition("#")[0] for line in f))


def manifest():
    with open(os.path.join(GOLDEN, "manifest.txt"), encoding="ascii") as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


def owner(frame):
    """Addresses of whoever a frame is for."""
    return {1: REQUESTER, 3: NEXT}.get(frame[5], NODE)


def unwrap(frame):
    """The UDP payload of a frame, and whether it is IPv6; raises Dropped as a node of the manual would."""
    if len(frame) < 14:
        raise nd.Dropped("RX_MALFORMED")
    own = owner(frame)
    ethertype, ip = int.from_bytes(frame[12:14], "big"), frame[14:]
    if ethertype == 0x0800:
        if len(ip) < 20 or ip[0] >> 4 != 4:
            raise nd.Dropped("RX_MALFORMED")
        head, total = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
        if head < 20 or not head <= total <= len(ip):
            raise nd.Dropped("RX_MALFORMED")
        if internet_sum(ip[:head]) != 0xFFFF:
            raise nd.Dropped("RX_CHECKSUM")
        if int.from_bytes(ip[6:8], "big") & 0x3FFF or ip[16:20] != own[0] or ip[9] != 17:
            raise nd.Dropped("RX_OTHER")
        udp, pseudo = ip[head:total], ip[12:20] + b"\0\x11" + (total - head).to_bytes(2, "big")
    elif ethertype == 0x86DD:
        if len(ip) < 40 or ip[0] >> 4 != 6 or int.from_bytes(ip[4:6], "big") > len(ip) - 40:
            raise nd.Dropped("RX_MALFORMED")
        if ip[6] == 58:
            raise nd.Dropped(link.answer(frame, NODE_MAC, *NODE)[0])
        if ip[24:40] != own[1] or ip[6] != 17:
            raise nd.Dropped("RX_OTHER")
        udp = ip[40:40 + int.from_bytes(ip[4:6], "big")]
        pseudo = pseudo_ipv6(ip[8:24], ip[24:40], len(udp), 17)
    else:
        raise nd.Dropped("RX_OTHER")
    if len(udp) < 8 or int.from_bytes(udp[2:4], "big") != nd.PORT:
        raise nd.Dropped("RX_OTHER")
    if int.from_bytes(udp[4:6], "big") != len(udp):
        raise nd.Dropped("RX_MALFORMED")
    if udp[6:8] == b"\0\0":
        if ethertype == 0x86DD:
            raise nd.Dropped("RX_CHECKSUM")
    elif internet_sum(pseudo + udp) != 0xFFFF:
        raise nd.Dropped("RX_CHECKSUM")
    return udp[8:], ethertype == 0x86DD


def transaction_outcome(packet):
    """Status of a transaction at the node of the manifest; the entry that failed, or the bytes that are fetched."""
    entries, fetched = nd.read_entries(packet.payload), b""
    for i, (kind, key, address, length, _) in enumerate(entries):
        status = (nd.BAD_KEY if key not in KEYS else nd.BAD_RANGE if address + length > 4096
                  else nd.NO_PERMISSION if ("w" if kind == nd.ENTRY_WRITE else "r") not in KEYS[key] else nd.OK)
        if status != nd.OK:
            return status, i
    for i, (kind, _, address, length, data) in enumerate(entries):
        memory = bytes(n & 255 for n in range(address, address + length))
        if kind == nd.ENTRY_COMPARE and memory != data:
            return nd.COMPARE_FAILED, i
        fetched += memory if kind == nd.ENTRY_FETCH else b""
    return nd.OK, fetched


def may_forward(node):
    """Whether the node of the manifest passes chains on to this (address, port)."""
    return node is not None and (node[0][:3] == NODE[0][:3] if len(node[0]) == 4 else node[0] in (REQUESTER[1], NODE[1], NEXT[1]))


def chain_status(packet, status):
    """What becomes of a chain once its list, its lengths and the rest of its form have been looked at."""
    opcode, later = packet.segment["opcode"], packet.segments[packet.segment_index:]
    if any(packet.origin) and not may_forward(nd.read_node(packet.origin)):
        return "FORWARDS_DROPPED"
    if status != nd.OK:
        return status
    onward = len(later) == 1 or may_forward(nd.read_node(later[1]["node"]))
    stores = any(s["opcode"] in nd.MODIFYING for s in later)
    if opcode == nd.FORWARD:
        return nd.OK if onward else "FORWARDS_DROPPED" if stores else nd.NOT_FORWARDED
    if not stores and not onward:
        return nd.NOT_FORWARDED
    if packet.segment["generation"] != GENERATION and (stores or packet.segment["generation"] >> 32 != GENERATION >> 32):
        return nd.STALE
    return nd.OK if onward else nd.NOT_FORWARDED


def memory(address, length):
    return bytes(n & 255 for n in range(address, address + length))


def add(type_, a, b):
    """Sums of the types that golden chains have."""
    code, size = {nd.I64: ("<Q", 8), nd.F32: ("<f", 4)}[type_]
    both = [[struct.unpack(code, x[i:i + size])[0] for i in range(0, len(x), size)] for x in (a, b)]
    return b"".join(struct.pack(code, x + y if code == "<f" else (x + y) & 2**64 - 1) for x, y in zip(*both))


def payload_behind(packet):
    """The payload of a chain behind its current segment."""
    s = packet.segment
    if s["opcode"] == nd.LOAD:
        return memory(s["address"], s["length"])
    if s["opcode"] == nd.LOAD_REDUCE:
        return add(s["type"], packet.payload, memory(s["address"], s["length"]))
    return packet.payload


def passed_on_problem(packet, passed):
    """What in the frame that is passed on contradicts the request, or None."""
    head, ipv6 = unwrap(passed)
    if not any(packet.origin):
        packet.origin = (REQUESTER[ipv6] + nd.PORT.to_bytes(2, "big")).ljust(len(packet.origin), b"\0")
    packet.payload = payload_behind(packet)
    packet.segment_index += 1
    packet.flags |= nd.PAYLOAD_CRC if packet.payload else 0
    return None if packet.encode() == head else "passed on is %s" % head.hex(" ")


def outcome(frame):
    """What the node of the manifest makes of a frame: a status name or a counter; and the packet."""
    try:
        data, ipv6 = unwrap(frame)
        packet = nd.decode(data)
    except nd.Dropped as dropped:
        return str(dropped), None
    except nd.Refused as refused:
        return nd.STATUS_NAMES[refused.args[0]], None
    if packet.kind == nd.RESPONSE:
        return nd.STATUS_NAMES[packet.status], packet
    status = nd.check_instruction(packet, ipv6=ipv6, own=(owner(frame)[ipv6], nd.PORT))
    s = packet.segment
    if packet.node_form != 0:
        status = chain_status(packet, status)
        if isinstance(status, str):
            return status, packet
    laneless = s["opcode"] == nd.READ or packet.flags & (nd.RELAXED | nd.UNRELIABLE)
    if status == nd.OK and laneless and s["generation"] >> 32 != GENERATION >> 32:
        status = nd.STALE
    elif status == nd.OK and not laneless and s["opcode"] != nd.ECHO and packet.node_form == 0:
        if packet.distance >= nd.WINDOW or packet.distance > packet.number:
            return "REQUESTS_BEYOND_WINDOW", packet
        if s["generation"] != GENERATION:
            status = nd.STALE
    if status == nd.OK and s["opcode"] == nd.SEND:
        room = RECEIVE_KEYS.get(s["key"])
        status = (nd.BAD_KEY if s["key"] not in RECEIVE_KEYS else nd.NOT_READY if room is None
                  else nd.BAD_LENGTH if s["length"] > room else nd.OK)
    elif status == nd.OK and s["opcode"] == nd.TRANSACTION:
        status = transaction_outcome(packet)[0]
    elif status == nd.OK and s["opcode"] not in (nd.CONFIRM, nd.ECHO, nd.FORWARD):
        need = {nd.READ: "r", nd.LOAD: "r", nd.LOAD_REDUCE: "r", nd.COMPARE: "r", nd.WRITE: "w", nd.REDUCE: "a", nd.SWAP: "rw"}.get(s["opcode"], "ra")
        need += "i" if packet.flags & nd.IMMEDIATE else ""
        if s["key"] not in KEYS:
            status = nd.BAD_KEY
        elif s["address"] + s["length"] > 4096:
            status = nd.BAD_RANGE
        elif not set(need) <= set(KEYS[s["key"]]):
            status = nd.NO_PERMISSION
        elif s["opcode"] not in (nd.READ, nd.WRITE) and s["address"] % nd.TYPE_BYTES[s["type"]]:
            status = nd.MISALIGNED
        elif s["opcode"] == nd.COMPARE and memory(s["address"], s["length"]) != packet.payload:
            status = nd.COMPARE_FAILED
    if packet.flags & nd.UNRELIABLE:
        return {nd.OK: "REQUESTS_EXECUTED", nd.STALE: "REQUESTS_STALE"}.get(status, "REQUESTS_REFUSED"), packet
    return nd.STATUS_NAMES[status], packet


def answer_problem(packet, answer, expected):
    """What in an answer contradicts its request, or None."""
    a, s = answer.segment, packet.segment
    length = s["length"] if expected == "OK" else 0
    if s["opcode"] == nd.TRANSACTION and expected not in ("BAD_LENGTH", "BAD_FLAGS"):
        told = transaction_outcome(packet)[1]
        length = len(told) if expected == "OK" else told
        if expected == "OK" and answer.payload != told:
            return "fetched %s, not %s" % (answer.payload.hex(), told.hex())
    same = [("context", answer.context, packet.context), ("number", answer.number, packet.number),
            ("distance", answer.distance, packet.distance), ("count", answer.segment_count, packet.segment_count),
            ("opcode", a["opcode"], s["opcode"]), ("operation", a["operation"], s["operation"]),
            ("type", a["type"], s["type"]), ("hop", a["hop"], packet.segment_index),
            ("echo", a["echo"], s["generation"]), ("generation", a["generation"], GENERATION),
            ("status", nd.STATUS_NAMES[answer.status], expected),
            ("RELAXED", answer.flags & nd.RELAXED, packet.flags & nd.RELAXED),
            ("length", a["length"], length)]
    for name, got, right in same:
        if got != right:
            return "%s %r, not %r" % (name, got, right)
    returned = length if expected == "OK" and s["opcode"] in (nd.READ, nd.ECHO, nd.TRANSACTION) + nd.ATOMICS else 0
    if packet.node_form != 0 and expected == "OK" and s["opcode"] in (nd.LOAD, nd.LOAD_REDUCE):
        behind = payload_behind(packet)
        return None if answer.payload == behind else "returned %s, not %s" % (answer.payload.hex(), behind.hex())
    return None if len(answer.payload) == returned else "%d bytes of payload" % len(answer.payload)


def examine_link(frame, expected, answer):
    mac, own = (NODE_MAC, NODE) if answer != "-" else (REQUESTER_MAC, REQUESTER)
    counter, built = link.answer(frame, mac, *own)
    if (counter or "-") != expected:
        return "got %s, expected %s" % (counter, expected)
    return None if built == (load(answer) if answer != "-" else None) else "another answer: %s" % (built and built.hex(" "))


def examine(name, kind, expected, answer):
    frame = load(name)
    if kind == "link":
        return examine_link(frame, expected, answer)
    got, packet = outcome(frame)
    if kind == "malformed" and expected == "RESPONSES_UNMATCHED":
        return None if packet is not None and packet.kind == nd.RESPONSE else "got " + got
    if got != expected:
        return "got %s, expected %s" % (got, expected)
    if packet is not None and kind in ("encode", "decode", "silent", "passed-on") and packet.encode() != unwrap(frame)[0]:
        return "encoding what was decoded does not give the same bytes"
    if packet is not None and answer != "-":
        if answer.endswith("-passed-on"):
            return passed_on_problem(packet, load(answer))
        decoded = outcome(load(answer))[1]
        return "no answer" if decoded is None else answer_problem(packet, decoded, expected)
    return None


def missing_opcodes(entries):
    """Opcodes of the manual's table that lack a golden request or a golden answer."""
    seen = set()
    for name, kind, _, _ in entries:
        if kind in ("encode", "decode"):
            try:
                packet = nd.decode(unwrap(load(name))[0])
            except (nd.Refused, nd.Dropped):
                continue
            seen.add((packet.kind, packet.segment["opcode"]))
    with open(os.path.join(TOP, "docs", "tables", "opcodes.md"), encoding="ascii") as f:
        table = re.findall(r"^\| ([A-Z_]+) \| (0x\w\w) \|", f.read(), re.M)
    return [name for name, value in table for kind in (nd.REQUEST, nd.RESPONSE) if (kind, int(value, 16)) not in seen]


def main():
    entries = manifest()
    crc = nd.crc32c(b"123456789")
    check(crc == 0xE3069283, "crc32c of 123456789", hex(crc))
    for entry in entries:
        problem = examine(*entry) if len(entry) == 4 else "not four columns"
        check(problem is None, entry[0], problem)
    lacking = missing_opcodes(entries)
    check(not lacking, "a request and an answer for every opcode", lacking)
    files = {name[:-4] for name in os.listdir(GOLDEN) if name.endswith(".hex")}
    odd = files ^ {entry[0] for entry in entries}
    check(not odd, "manifest and files agree", sorted(odd))
    return all_checked()


if __name__ == "__main__":
    sys.exit(main())
