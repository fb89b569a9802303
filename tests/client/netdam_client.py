#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A NetDAM client over a plain UDP socket, written from docs/ alone.

usage: netdam_client.py ADDR:PORT KEY read ADDRESS LENGTH | write ADDRESS HEX | add ADDRESS VALUE
"""

import secrets
import socket
import struct
import sys
import time

import netdam_packet as nd

FIRST_WAIT_S, LAST_WAIT_S, TRIES = 0.25, 2.0, 12


class TimedOut(Exception):
    pass


class Unknown(Exception):
    """The node lost its lanes: the request may have been executed, once."""


class Endpoint:
    """A UDP socket and the node at its other end."""

    def __init__(self, address, port):
        self.node = (address, port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address if address.startswith("127.") else "0.0.0.0", 0))
        self.resent = 0  # requests sent more than once: answers to their copies may come late

    def close(self):
        self.socket.close()

    def send(self, packet):
        self.socket.sendto(packet if isinstance(packet, bytes) else packet.encode(), self.node)

    def receive(self, seconds):
        """The next response within that time, or None. Anything but a sound response from the node raises."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            data, source = self.socket.recvfrom(65536)
        except socket.timeout:
            return None
        packet = nd.decode(data)
        if source != self.node or packet.kind != nd.RESPONSE:
            raise ValueError("not a response from the node: %r" % (source,))
        return packet

    def wait(self, seconds, match):
        """The first response within that time that matches, or None. Others are dropped."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            packet = self.receive(left)
            if packet is not None and match(packet):
                return packet

    def exchange(self, packet, match=None):
        """Sends until answered. The request must be one that may be repeated as it is."""
        if match is None:
            def match(p):
                return p.context == packet.context and p.number == packet.number and (
                    p.status in (nd.BAD_VERSION, nd.BAD_FLAGS, nd.BAD_SEGMENTS)
                    or p.segment["opcode"] == packet.segment["opcode"]
                    and p.flags & nd.RELAXED == packet.flags & nd.RELAXED)
        wait = FIRST_WAIT_S
        for _ in range(TRIES):
            self.send(packet)
            answer = self.wait(wait, match)
            if answer is not None:
                return answer
            self.resent += 1
            packet.flags |= nd.AGAIN
            wait = min(2 * wait, LAST_WAIT_S)
        raise TimedOut()


class Client:
    """A requester context towards one node, one request at a time."""

    def __init__(self, address, port, key, first_number=1):
        self.endpoint = Endpoint(address, port)
        self.context = secrets.randbits(64)
        self.key = key
        self.generation = 0
        self.next_number = first_number  # of the lane; also its floor, as nothing is outstanding between calls
        self.next_laneless = 1

    def close(self):
        self.endpoint.close()

    def build(self, opcode, number, **fields):
        fields.setdefault("key", self.key)
        fields.setdefault("generation", self.generation)
        return nd.request(opcode, self.context, number, **fields)

    def accept_stale(self, answer):
        """Takes a STALE's generation if it speaks of the one in use. Returns whether the epoch is the same."""
        old = self.generation
        if answer.segment["echo"] != old:
            return True
        self.generation = answer.segment["generation"]
        return old == 0 or old >> 32 == self.generation >> 32

    def modify(self, opcode, **fields):
        """A request with a lane: exactly once. Returns the answer, whose status is OK or a refusal."""
        number = self.next_number
        self.next_number += 1
        wait = FIRST_WAIT_S
        for _ in range(TRIES):
            answer = self.endpoint.exchange(self.build(opcode, number, **fields))
            if answer.status == nd.STALE:
                if not self.accept_stale(answer):
                    raise Unknown()
            elif answer.status == nd.BUSY:
                time.sleep(wait)
                wait = min(2 * wait, LAST_WAIT_S)
            else:
                return answer
        raise TimedOut()

    def laneless(self, opcode, **fields):
        """READ, ECHO and what is RELAXED."""
        for _ in range(TRIES):
            number = self.next_laneless
            self.next_laneless += 1
            answer = self.endpoint.exchange(self.build(opcode, number, **fields))
            if answer.status != nd.STALE:
                return answer
            self.accept_stale(answer)
        raise TimedOut()

    def confirm(self, floor=None):
        """Tells the floor; learns the generation on first contact. Returns the last answer."""
        for _ in range(TRIES):
            packet = self.build(nd.CONFIRM, self.next_number if floor is None else floor, key=0)
            answer = self.endpoint.exchange(packet)
            if answer.status == nd.OK:
                return answer
            if answer.status == nd.STALE:
                self.accept_stale(answer)
            else:
                time.sleep(FIRST_WAIT_S)
        raise TimedOut()

    def write(self, address, data):
        return self.modify(nd.WRITE, address=address, payload=data)

    def read(self, address, length):
        return self.laneless(nd.READ, address=address, length=length)

    def echo(self, data):
        return self.laneless(nd.ECHO, key=0, generation=0, payload=data)

    def reduce(self, address, operation, type_, data):
        return self.modify(nd.REDUCE, address=address, operation=operation, type=type_, payload=data)

    def fetch_add(self, address, type_, value):
        size = nd.TYPE_BYTES[type_]
        return self.modify(nd.FETCH_ADD, address=address, type=type_, length=size,
                           payload=(value % (1 << 8 * size)).to_bytes(size, "little"))

    def cas(self, address, type_, compare, swap):
        size = nd.TYPE_BYTES[type_]
        return self.modify(nd.CAS, address=address, type=type_, length=size,
                           payload=compare.to_bytes(size, "little") + swap.to_bytes(size, "little"))

    def swap(self, address, type_, value):
        size = nd.TYPE_BYTES[type_]
        return self.modify(nd.SWAP, address=address, type=type_, length=size, payload=value.to_bytes(size, "little"))

    def fetch_op(self, address, operation, type_, element):
        return self.modify(nd.FETCH_OP, address=address, operation=operation, type=type_, length=len(element),
                           payload=element)

    def transact(self, *entries, **fields):
        """Entries as nd.entry() makes them, all or nothing."""
        return self.modify(nd.TRANSACTION, key=0, payload=b"".join(entries), **fields)

    def send(self, receive_key, data, **fields):
        return self.modify(nd.SEND, key=receive_key, payload=data, **fields)

    def relaxed(self, opcode, **fields):
        """A modification without a lane: its answer is OK, or a refusal that nobody remembers."""
        return self.laneless(opcode, flags=nd.RELAXED, **fields)

    def unreliable(self, opcode, **fields):
        """Sent once. There is no answer, so a generation that has become wrong goes unnoticed."""
        number = self.next_laneless
        self.next_laneless += 1
        self.endpoint.send(self.build(opcode, number, flags=nd.UNRELIABLE | fields.pop("flags", 0), **fields))


def main(arguments):
    if len(arguments) != 5 or arguments[2] not in ("read", "write", "add"):
        sys.stderr.write(__doc__)
        return 2
    address, _, port = arguments[0].rpartition(":")
    client = Client(address, int(port), int(arguments[1], 16))
    at, what = int(arguments[3], 0), arguments[4]
    client.confirm()
    if arguments[2] == "read":
        answer = client.read(at, int(what, 0))
        print(answer.payload.hex())
    elif arguments[2] == "write":
        answer = client.write(at, bytes.fromhex(what))
    else:
        answer = client.fetch_add(at, nd.I64, int(what, 0))
        print(struct.unpack("<q", answer.payload)[0] if answer.payload else "")
    client.confirm()
    client.close()
    print(nd.STATUS_NAMES[answer.status], file=sys.stderr)
    return 0 if answer.status == nd.OK else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
