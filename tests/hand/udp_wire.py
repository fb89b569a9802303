#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A wire between programs and a node on UDP: passes datagrams on, loses the ones it is told to, keeps a pcap.

    tests/hand/udp_wire.py --listen 127.0.0.1:20037 --to 127.0.0.1:20036 --pcap wire.pcap --lose-request WRITE:2

Programs then name 127.0.0.1:20037 as their peer. The first request (answer) of that opcode and number vanishes, its
repetitions pass. The capture is made before the place where it vanishes, --capture-after: behind it.
"""

import argparse
import os
import selectors
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "client"))
sys.dont_write_bytecode = True
import netdam_packet as nd  # noqa: E402

DATAGRAM_BYTES = 65536
IDLE_SECONDS = 0.2


class Pcap:
    """Writes UDP datagrams as Ethernet frames."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))

    def add(self, source, destination, payload):
        udp = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0) + payload
        head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, socket.inet_aton(source[0]),
                           socket.inet_aton(destination[0]))
        total = sum(struct.unpack(">10H", head))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        head = head[:10] + struct.pack(">H", total ^ 0xFFFF) + head[12:]
        frame = bytes(12) + b"\x08\x00" + head + udp
        now = time.time_ns()
        self.file.write(struct.pack("<IIII", now // 10**9, now % 10**9 // 1000, len(frame), len(frame)) + frame)
        self.file.flush()


class Direction:
    """Counts what passes in one direction and says what is to vanish."""

    def __init__(self, losses):
        self.losses = list(losses)
        self.count = 0
        self.lost = 0

    def takes(self, data):
        self.count += 1
        # Of a packet without extensions: its opcode and number.
        found = (data[nd.HEADER], int.from_bytes(data[16:22], "big")) if len(data) > nd.HEADER else None
        if found not in self.losses:
            return True
        self.losses.remove(found)
        self.lost += 1
        return False


def address(text):
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


def packet(text):
    name, _, number = text.partition(":")
    opcode = getattr(nd, name, None)
    if opcode not in nd.WIRE_OPS:
        raise ValueError(name)
    return opcode, int(number)


class Wire:
    def __init__(self, options):
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(options.listen)
        self.own = self.front.getsockname()
        self.to = options.to
        self.after = options.capture_after
        self.pcap = Pcap(options.pcap) if options.pcap else None
        self.requests = Direction(options.lose_request)
        self.answers = Direction(options.lose_answer)
        self.backs = {}  # a program's address: the socket that speaks for it
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.front, selectors.EVENT_READ)

    def back_for(self, program):
        if program not in self.backs:
            back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            back.connect(self.to)
            self.backs[program] = back
            self.selector.register(back, selectors.EVENT_READ, program)
        return self.backs[program]

    def pass_on(self, direction, source, destination, data, send):
        passes = direction.takes(data)
        if self.pcap and (passes or not self.after):
            self.pcap.add(source, destination, data)
        if passes:
            try:
                send(data)
            except OSError:
                pass  # nobody there, as on any wire

    def turn(self):
        for key, _ in self.selector.select(IDLE_SECONDS):
            try:
                data, source = key.fileobj.recvfrom(DATAGRAM_BYTES)
            except OSError:
                continue
            if key.data is None:
                self.pass_on(self.requests, source, self.own, data, self.back_for(source).send)
            else:
                self.pass_on(self.answers, self.own, key.data, data, lambda d, to=key.data: self.front.sendto(d, to))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, default=("127.0.0.1", 0), help="what programs name as their peer")
    parser.add_argument("--to", type=address, required=True, help="the node")
    parser.add_argument("--pcap", help="file for what passes")
    parser.add_argument("--lose-request", type=packet, action="append", default=[], metavar="OPCODE:NUMBER",
                        help="lose the first request like this; may be repeated")
    parser.add_argument("--lose-answer", type=packet, action="append", default=[], metavar="OPCODE:NUMBER",
                        help="lose the first answer like this; may be repeated")
    parser.add_argument("--capture-after", action="store_true", help="capture behind the place where datagrams vanish")
    wire = Wire(parser.parse_args())
    ended = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.append(True))
    print(f"udp-wire ready port={wire.own[1]}", flush=True)
    while not ended:
        wire.turn()
    for name, direction in (("requests", wire.requests), ("answers", wire.answers)):
        print(f"{name} {direction.count} lost {direction.lost}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
