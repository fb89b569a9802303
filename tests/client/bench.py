# SPDX-License-Identifier: BSD-3-Clause
"""What the client's tests share: a node, clients, exact bursts of packets, the TAP runner."""

import os
import random
import struct
import sys

import netdam_packet as nd
from netdam_client import Client, Endpoint
from node import Node, ndtest

equal, test = ndtest.equal, ndtest.test


def status(answer, right):
    equal(nd.STATUS_NAMES[answer.status], nd.STATUS_NAMES[right], "status")


class Patient(Endpoint):
    """On a busy machine a request is sent again: its other answers are waited for, so that nobody takes them for his."""

    client = None

    def exchange(self, packet, match=None):
        before = self.resent
        answer = super().exchange(packet, match)
        if match is None and self.resent != before:
            barrier(self.client, lambda late: None)
        return answer


def connect(node, **options):
    """A client of the node that keeps apart what was sent twice."""
    client = Client(node.address, node.port, node.key, **options)
    client.endpoint.close()
    client.endpoint = Patient(node.address, node.port)
    client.endpoint.client = client
    client.barriers = set()
    return client


class Bench:
    """One node for most tests, each of which has a page of memory of its own."""

    def __init__(self):
        self.node = Node(key=0x1F2E3D4C5B6A7988)
        self.seed = int(os.environ.get("NETDAM_SEED") or random.SystemRandom().getrandbits(32))
        print("# NETDAM_SEED=%d" % self.seed)
        self.base = 0
        self.clients = []
        self.dropped = {}  # counter: datagrams sent that must have raised it

    def page(self):
        self.base += 16384
        return self.base

    def client(self, **options):
        client = connect(self.node, **options)
        self.clients.append(client)
        return client

    def known(self, **options):
        """A client that has learnt the generation, without a lane."""
        client = self.client(**options)
        answer = client.endpoint.exchange(client.build(nd.CONFIRM, client.next_number, key=0))
        status(answer, nd.STALE)
        client.accept_stale(answer)
        return client

    def drops(self, counter, count=1):
        """Notes that the node has been sent something that it must drop and count."""
        self.dropped[counter] = self.dropped.get(counter, 0) + count

    def check_drops(self):
        """Ends the node and compares its counters with what was noted."""
        self.close_clients()
        counters = self.node.stop()
        assert self.dropped, "nothing was dropped"
        for counter, count in sorted(self.dropped.items()):
            equal(counters[counter], count, counter)
        assert counters["REQUESTS_EXECUTED"] > 0
        equal(counters["MAIN_MEMORY_BYTES"], 0)

    def kill(self):
        self.close_clients()
        self.node.kill()

    def close_clients(self):
        for client in self.clients:
            client.close()
        self.clients = []


def check_answer(request, answer):
    """What each answer must repeat of its request."""
    equal(answer.context, request.context, "context")
    equal(answer.number, request.number, "number")
    equal(answer.distance, request.distance, "distance")
    equal(answer.segment_count, request.segment_count, "segment_count")
    equal(answer.node_form, 0, "node_form")
    if answer.status not in (nd.BAD_VERSION, nd.BAD_FLAGS, nd.BAD_SEGMENTS):
        s, a = request.segment, answer.segment
        equal([a[n] for n in ("opcode", "operation", "type")], [s[n] for n in ("opcode", "operation", "type")])
        equal(a["hop"], request.segment_index, "hop")
        equal(a["echo"], s["generation"], "echo")
        if answer.status != nd.OK:
            if a["opcode"] == nd.TRANSACTION:
                assert a["length"] < 16, "a refusal names entry %d" % a["length"]
            else:
                equal(a["length"], 0, "length of a refusal")
            equal(answer.payload, b"", "payload of a refusal")


def ask(client, packet):
    answer = client.endpoint.exchange(packet)
    check_answer(packet, answer)
    return answer


def barrier(client, seen):
    """An ECHO behind all that was sent: when it is answered the node is through. Passes all other answers to `seen`."""
    number = client.next_laneless
    client.next_laneless += 1
    client.barriers.add(number)
    echo = nd.request(nd.ECHO, client.context, number, payload=b"through?")

    def match(packet):
        if packet.segment["opcode"] == nd.ECHO and packet.context == client.context:
            if packet.number == number:
                return True
            if packet.number in client.barriers:
                return False  # a copy that was answered late
        seen(packet)
        return False

    status(client.endpoint.exchange(echo, match), nd.OK)


def answers(client, *packets):
    """All answers to these packets, each sent once."""
    got = []
    for packet in packets:
        client.endpoint.send(packet)
    barrier(client, got.append)
    return got


def write_packet(client, number, distance, address, data, **fields):
    return client.build(nd.WRITE, number, distance=distance, address=address, payload=data, **fields)


def add_packet(client, number, distance, address, value=1, **fields):
    return client.build(nd.FETCH_ADD, number, distance=distance, address=address, type=nd.I64, length=8,
                        payload=struct.pack("<q", value), **fields)


def cell(client, address):
    answer = client.read(address, 8)
    status(answer, nd.OK)
    return struct.unpack("<q", answer.payload)[0]


def run(start=Bench):
    """Runs the registered tests, one bench or target for all of them; prints TAP; ends the program."""
    bench = start()
    try:
        failed = ndtest.run(bench)
    finally:
        bench.kill()
    sys.exit(failed)
