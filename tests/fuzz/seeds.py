#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Turns the golden packets (hex text) into inputs of the fuzz targets."""
import pathlib
import struct
import sys

FRAME_RAW, FRAME_REPAIRED, FRAME_CRC, ANSWER, REFLECTION, TIME, POST, CHANGE, PORT_FULL = range(9)
(REGISTER_WRITE, REGISTER_READ, COMMAND, POKE, POKE_LATER, RUN, SLEEP, PRODUCE, ANSWER_RING, CONSUME, QUEUE, PEER,
 REGION) = range(13)


def hex_bytes(path):
    return bytes.fromhex("".join(line.split("#")[0] for line in path.read_text().splitlines()))


def frame(kind, data):
    return bytes([kind]) + struct.pack("<H", len(data)) + data


def post(opcode, operation, type_, length):
    return struct.pack("<BBBBHHHB", POST, opcode, operation, type_, length, 64, 128, 0x80)


def answer(which, status):
    return bytes([ANSWER, which, status, 0])


def produce(queue, opcode, operation, type_, length):
    return struct.pack("<BBBBBBHHBHB", PRODUCE, queue, opcode, operation, type_, 0, length, 64, 0, 128, 0)


OPS = [(0x01, 0, 0, 100), (0x10, 0, 0, 3000), (0x11, 0, 0, 3000), (0x20, 1, 0x0b, 4096), (0x20, 3, 0x08, 64),
       (0x30, 0, 8, 8), (0x31, 0, 6, 4)]


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
    for number, op in enumerate(OPS):
        confirmed = answer(0, 0x40) + answer(0, 0) + answer(0, 0) + answer(1, 0) + answer(2, 0)
        (frames / ("post-%d" % number)).write_bytes(post(*op) + confirmed + post(*op) + bytes([TIME, 30]) + confirmed)
        (frames / ("reflect-%d" % number)).write_bytes(post(*op) + bytes([REFLECTION, 0]))
        start = bytes([REGION, 16, 32, 0x1f, QUEUE, 0, PEER, 1])
        run = bytes([RUN, 10, 255, 255])
        honest = run + bytes([ANSWER_RING, 0, 0x40]) + run + 3 * (bytes([ANSWER_RING, 0, 0]) + run)
        (rings / ("post-%d" % number)).write_bytes(
            start + produce(0, *op) + honest + produce(0, *op) + honest + bytes([CONSUME, 0, SLEEP]))
        (rings / ("timeout-%d" % number)).write_bytes(start + produce(0, *op) + 6 * bytes([RUN, 31, 255, 255]))


if __name__ == "__main__":
    main()
