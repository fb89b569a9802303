#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns the golden packets (hex text) into inputs of the fuzz targets."""
import pathlib
import struct
import sys

FRAME_RAW, FRAME_REPAIRED, FRAME_CRC, ANSWER, REFLECTION, TIME, POST, CHANGE, PORT_FULL, RECEIVE = range(10)
(REGISTER_WRITE, REGISTER_READ, COMMAND, POKE, POKE_LATER, RUN, SLEEP, PRODUCE, ANSWER_RING, CONSUME, QUEUE, PEER,
 REGION, RECEIVE_RING, RAW, FRAME, SEND_FRAME) = range(17)
(TENANT_RAW, TENANT_SEALED, TENANT_REPLAY, TENANT_TAMPER, TENANT_STRIP, TENANT_ANSWER, TENANT_TIME, TENANT_POST,
 TENANT_CHANGE, TENANT_PORT_FULL, TENANT_RECEIVE) = range(11)


def hex_bytes(path):
    return bytes.fromhex("".join(line.split("#")[0] for line in path.read_text().splitlines()))


def frame(kind, data):
    return bytes([kind]) + struct.pack("<H", len(data)) + data


def post(opcode, operation, type_, length, flags=0, entries=0):
    address = 0 if opcode == SEND else 64
    local = 64 if opcode in ATOMICS else 128
    return (struct.pack("<BBBBHHHB", POST, opcode, operation, type_, length, address, local, 0x80 | flags) +
            (bytes([entries]) if flags & LIST or opcode == TRANSACTION else b"") + segments(opcode, entries))


def receive(length, entries=0):
    return struct.pack("<BHHB", RECEIVE, length, 256, entries)


def answer(which, status):
    return bytes([ANSWER, which, status, 0])


def produce(queue, opcode, operation, type_, length, flags=0, entries=0):
    address = 0 if opcode == SEND else 64
    return (struct.pack("<BBBBBBHHBHB", PRODUCE, queue, opcode, operation, type_, 0, length, address, 0, 128,
                        0x40 | entries & 63 if flags else 0) + (bytes([flags]) if flags else b"") +
            (bytes([entries]) if opcode == TRANSACTION else b"") + segments(opcode, entries))


def receive_ring(queue, length, entries=0):
    return struct.pack("<BBHBHB", RECEIVE_RING, queue, length, 0, 256, 0x40 | entries if entries else 0)


def raw_seeds():
    """RAW queue pairs with each rule: frames that they get, frames that they send."""
    own = bytes.fromhex("0a000002")
    udp = bytes.fromhex("08004500001c000040004011") + bytes(2) + own + bytes.fromhex("0a000001 4e44 1388 0008 0000")
    ports = udp[:-8] + bytes.fromhex("1388 0035 0008 0000")
    version6 = bytes.fromhex("86dd6000000000081140") + bytes(32) + bytes.fromhex("1388 0035 0008 0000")
    arp = bytes.fromhex("0806 0001 0800 0604 0001 020000000001 0a000001 000000000000") + own
    heads = (udp, ports, version6, arp, bytes.fromhex("88b5"), bytes.fromhex("81000005") + ports)
    run = bytes([RUN, 10, 255, 255, CONSUME, 0])
    for rule, value in ((0, 0x0800), (0, 0x88b5), (1, 53), (2, 0), (3, 0)):
        start = bytes([RAW, 0, rule]) + struct.pack("<H", value) + bytes([REGION, 16, 32, 0x3f])
        buffers = receive_ring(0, 2000) + receive_ring(0, 2000, 3) + receive_ring(0, 10)
        yield start + buffers + b"".join(
            bytes([FRAME, to]) + struct.pack("<H", len(head)) + head for head in heads for to in (0, 1, 2, 4)) + run
        yield start + b"".join(
            struct.pack("<BBHHB", SEND_FRAME, 0, length, 0, odd) + head.ljust(84, b"\0") + run
            for head in heads for length in (60, 1514, 1515) for odd in (0, 8, 0x43))


def segments(opcode, names):
    """Of a chain: what each segment does at which peer."""
    if opcode != CHAIN:
        return b""
    return bytes([len(names)]) + bytes("WLCFRA".index(name) | peer << 3 for peer, name in enumerate(names))


SEND, TRANSACTION, CHAIN = 0x12, 0x50, 0x70
ATOMICS = (0x30, 0x31, 0x32, 0x33)
# Descriptor flags.
FENCE, RELAXED, ORDERED, UNRELIABLE, IMMEDIATE, LIST = 1, 2, 4, 8, 16, 64

# Opcode, operation, type, length, flags, entries of the list.
OPS = [(0x01, 0, 0, 100), (0x10, 0, 0, 3000), (0x11, 0, 0, 3000), (0x20, 1, 0x0b, 4096), (0x20, 3, 0x08, 64),
       (0x30, 0, 8, 8), (0x31, 0, 6, 4), (0x32, 0, 8, 8), (0x33, 1, 0x0c, 8), (0x20, 1, 0x09, 64),
       (0x20, 2, 0x0a, 64), (0x20, 8, 0x02, 64), (SEND, 0, 0, 100), (SEND, 0, 0, 100, IMMEDIATE), (SEND, 0, 0, 0),
       (SEND, 0, 0, 1000, LIST, 3), (0x11, 0, 0, 3000, IMMEDIATE), (0x11, 0, 0, 100, IMMEDIATE | FENCE),
       (0x11, 0, 0, 3000, LIST, 4), (0x10, 0, 0, 3000, LIST, 2), (0x01, 0, 0, 100, LIST, 2),
       (0x11, 0, 0, 3000, RELAXED), (0x11, 0, 0, 3000, UNRELIABLE), (0x11, 0, 0, 300, ORDERED),
       (SEND, 0, 0, 100, UNRELIABLE), (0x20, 3, 0x08, 64, RELAXED), (TRANSACTION, 0, 0, 0, 0, 6),
       (TRANSACTION, 0, 0, 0, 0, 0x0b), (TRANSACTION, 0, 0, 0, ORDERED, 0x17)] + [
           (CHAIN, 0, 0, 3000, 0, names) for names in ("WWW", "AAA", "LFW", "CWR", "LAA", "F", "A", "WCF")]


def sealed(tenant, salt, data):
    return struct.pack("<BBBHH", TENANT_SEALED, tenant, salt, 0, len(data)) + data


def tenant_post(peer, opcode, operation, type_, length):
    entries = bytes([0x0b]) if opcode == TRANSACTION else b""
    address = 0 if opcode == SEND else 64
    return struct.pack("<BBBBBHHHB", TENANT_POST, peer, opcode, operation, type_, length, address, 128, 0) + entries


def tenants(folder, packets):
    """Each golden packet as a tenant's: with its tag, twice, changed, without; requests with answers of right and wrong
    tenants."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in packets:
        for tenant in (0, 1):
            (folder / ("%s-%d" % (name, tenant))).write_bytes(
                bytes([TENANT_RECEIVE, 0, 1]) + sealed(tenant, 0, data) + bytes([TENANT_REPLAY, 0]) +
                sealed(tenant, 0, data) + bytes([TENANT_TAMPER, 0, 80, 0, 1, TENANT_STRIP, 0, TENANT_CHANGE, tenant,
                                                 TENANT_REPLAY, 0]) + sealed(tenant, 1, data))
    for number, op in enumerate(op for op in OPS if len(op) == 4 or op[0] == TRANSACTION):
        for peer in range(3):
            answers = b"".join(bytes([TENANT_ANSWER, 0, status, tenant, 0, 0])
                               for status in (0x40, 0) for tenant in (2, 1, 0))
            (folder / ("post-%d-%d" % (number, peer))).write_bytes(
                tenant_post(peer, *op[:4]) + answers + tenant_post(peer, *op[:4]) + answers + bytes([TENANT_TIME, 30]) +
                answers)


def main():
    golden, out = map(pathlib.Path, sys.argv[1:3])
    frames = out / "fuzz_frame"
    rings = out / "fuzz_ring"
    frames.mkdir(parents=True, exist_ok=True)
    rings.mkdir(parents=True, exist_ok=True)
    packets = [(path.stem, hex_bytes(path)) for path in sorted(golden.glob("*.hex"))]
    if not packets:
        sys.exit("seeds.py: no golden packets in %s" % golden)
    for name, data in packets:
        (frames / name).write_bytes(frame(FRAME_RAW, data) + frame(FRAME_REPAIRED, data))
    for number, seed in enumerate(raw_seeds()):
        (rings / ("raw-%d" % number)).write_bytes(seed)
    tenants(out / "fuzz_tenant", packets)
    for number, op in enumerate(OPS):
        confirmed = answer(0, 0x40) + answer(0, 0) + answer(0, 0) + answer(1, 0) + answer(2, 0)
        (frames / ("post-%d" % number)).write_bytes(post(*op) + confirmed + post(*op) + bytes([TIME, 30]) + confirmed)
        if op[0] == CHAIN:  # each node tells its generation
            told = answer(0, 0x40) + answer(1, 0x40) + answer(2, 0x40)
            told_ring = bytes([RUN, 10, 255, 255]) + b"".join(bytes([ANSWER_RING, i, 0x40]) for i in range(3))
            (frames / ("chain-%d" % number)).write_bytes(post(*op) + told + answer(0, 0) + answer(1, 0) + post(*op) +
                                                         answer(0, 0x40) + answer(0, 9) + bytes([TIME, 30]) + told)
            three = bytes([QUEUE, 0, REGION, 16, 32, 0x3f, PEER, 1, PEER, 3, PEER, 4])
            run = bytes([RUN, 10, 255, 255])
            (rings / ("chain-%d" % number)).write_bytes(
                three + produce(0, *op) + told_ring + run + bytes([ANSWER_RING, 0, 0]) + run + produce(0, *op) + run +
                bytes([ANSWER_RING, 0, 0x40]) + run + bytes([ANSWER_RING, 0, 0, CONSUME, 0, SLEEP]))
        # Its own request comes back once the generation is known, with receive buffers and without.
        (frames / ("reflect-%d" % number)).write_bytes(
            post(*op) + answer(0, 0x40) + bytes([REFLECTION, 0]) + receive(1400) + receive(1400, 3) + receive(10) +
            4 * (post(*op) + bytes([REFLECTION, 0])))
        start = bytes([QUEUE, 0, REGION, 16, 32, 0x3f, PEER, 1])
        itself = bytes([QUEUE, 0, REGION, 16, 32, 0x3f, PEER, 2])
        run = bytes([RUN, 10, 255, 255])
        honest = run + bytes([ANSWER_RING, 0, 0x40]) + run + 3 * (bytes([ANSWER_RING, 0, 0]) + run)
        (rings / ("post-%d" % number)).write_bytes(
            start + produce(0, *op) + honest + produce(0, *op) + honest + bytes([CONSUME, 0, SLEEP]))
        more = bytes([RUN, 10, 255, 255, CONSUME, 0])
        (rings / ("itself-%d" % number)).write_bytes(
            itself + produce(0, *op) + 2 * more + receive_ring(0, 1400) + receive_ring(0, 1400, 3) +
            receive_ring(0, 10) + 4 * (produce(0, *op) + more))
        (rings / ("timeout-%d" % number)).write_bytes(start + produce(0, *op) + 6 * bytes([RUN, 31, 255, 255]))


if __name__ == "__main__":
    main()
