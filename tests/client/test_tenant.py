#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tenants by docs/tenants.md: the golden packets, and a live node that is asked with the key, without, and twice.

Prints TAP. Needs python3-cryptography.
"""

import copy
import os
import secrets
import socket

import netdam_packet as nd
import test_golden
from bench import connect, equal, run, status, test
from netdam_client import Endpoint
from netdam_tenant import AUTHENTICATE, ENCRYPT, Receiver, Sender, Tenant
from node import Node

GOLDEN = os.path.join(test_golden.GOLDEN, "tenant")
SEVEN = Tenant(7, bytes(range(0x70, 0x80)), AUTHENTICATE)
NINE = Tenant(9, bytes(range(0x90, 0xA0)), ENCRYPT)
REGION = 0x1F2E3D4C5B6A7988
# Somebody who has what a node asks for but the key.
STRANGER = Tenant(9, bytes(16), ENCRYPT)


def golden():
    """Of each packet: name, expected, frame."""
    with open(os.path.join(GOLDEN, "manifest.txt"), encoding="ascii") as f:
        entries = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return [(name, expected, test_golden.load(os.path.join("tenant", name))) for name, _, expected, _ in entries]


def receiver(frame):
    own = test_golden.owner(frame)[1 if frame[12] == 0x86 else 0]
    return Receiver([SEVEN, NINE], (own, nd.PORT))


class SealedEndpoint(Endpoint):
    """Seals what it sends, each time anew, and opens what comes."""

    def __init__(self, address, port, tenant):
        super().__init__(address, port)
        self.sender = Sender(tenant, secrets.token_bytes(16))
        self.opener = Receiver([tenant])

    def seal(self, packet):
        return self.sender.seal(copy.copy(packet), (socket.inet_aton(self.node[0]), self.node[1]))

    def send(self, packet):
        self.socket.sendto(packet if isinstance(packet, bytes) else self.seal(packet), self.node)

    def receive(self, seconds):
        self.socket.settimeout(max(seconds, 0.001))
        try:
            data, source = self.socket.recvfrom(65536)
        except socket.timeout:
            return None
        packet, tenant = self.opener.open(data)
        if source != self.node or packet.kind != nd.RESPONSE or tenant != self.sender.tenant.number:
            raise ValueError("not an answer to this tenant: %r, %d" % (source, tenant))
        return packet


def member(node, tenant=NINE):
    client = connect(node)
    client.endpoint.close()
    client.endpoint = SealedEndpoint(node.address, node.port, tenant)
    client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, client.next_number, key=0)))
    return client


def unanswered(client, data):
    """Sends a datagram, and a question behind it: whatever else comes before the answer to that is a fault."""
    client.endpoint.send(data)
    number = client.next_laneless
    client.next_laneless += 1
    client.endpoint.send(nd.request(nd.ECHO, client.context, number, payload=b"through?"))
    while True:
        answer = client.endpoint.receive(10)
        assert answer is not None, "the node does not answer any more"
        if answer.segment["opcode"] == nd.ECHO and answer.number == number:
            return
        raise AssertionError("answered: %s" % nd.STATUS_NAMES[answer.status])


@test
def golden_packets_are_opened_or_dropped_as_the_manifest_says(_):
    opened = 0
    for name, expected, frame in golden():
        own = receiver(frame)
        if name == "again-request":
            own.open(test_golden.unwrap(test_golden.load(os.path.join("tenant", "authenticate-write-request")))[0])
        try:
            packet, tenant = own.open(test_golden.unwrap(frame)[0])
        except nd.Dropped as reason:
            equal(str(reason), expected, name)
            continue
        assert not expected.startswith("RX_"), "%s was opened" % name
        equal(tenant, 0 if name == "plain-request" else NINE.number if "encrypt" in name else SEVEN.number, name)
        opened += packet.payload == b"Hello, node!"
    assert opened >= 4, "%d greetings" % opened


@test
def golden_packets_sealed_once_more_are_the_same(_):
    sealed = 0
    for name, expected, frame in golden():
        data = test_golden.unwrap(frame)[0]
        if expected.startswith("RX_") or name == "plain-request":
            continue
        packet, tenant = receiver(frame).open(data)
        at = nd.HEADER + len(packet.extensions)
        sender = Sender({7: SEVEN, 9: NINE}[tenant], data[at + 8:at + 24], int.from_bytes(data[at + 24:at + 32], "big") - 1)
        own = test_golden.owner(frame)[1 if frame[12] == 0x86 else 0]
        equal(sender.seal(packet, (own, nd.PORT) if packet.kind == nd.REQUEST else None), data, name)
        sealed += 1
    assert sealed > 15, "%d packets" % sealed


@test
def who_has_the_key_reads_and_writes(node):
    client = member(node)
    status(client.write(64, b"of tenant 9"), nd.OK)
    equal(client.read(64, 11).payload, b"of tenant 9")
    status(client.read(1 << 40, 8), nd.BAD_RANGE)
    client.close()


@test
def what_is_of_a_tenant_is_not_there_for_others(node):
    client = connect(node)
    client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, client.next_number, key=0)))
    for key in (client.key, client.key ^ 1):
        client.key = key
        for answer in (client.read(64, 11), client.write(64, b"x")):
            status(answer, nd.BAD_KEY)
            equal(answer.payload, b"")
    client.close()


@test
def without_the_key_nothing_is_answered(node):
    client = member(node)
    write = client.build(nd.WRITE, client.next_number, address=64, payload=b"from a stranger")
    seal = client.endpoint.seal
    whole = seal(write)
    stranger = Sender(STRANGER, secrets.token_bytes(16))
    here = (socket.inet_aton(node.address), node.port)
    for data in (stranger.seal(copy.copy(write), here),  # another key
                 client.endpoint.sender.seal(copy.copy(write), (here[0], here[1] ^ 1)),  # for another node
                 Sender(Tenant(10, NINE.key, ENCRYPT), secrets.token_bytes(16)).seal(copy.copy(write), here),
                 Sender(Tenant(9, NINE.key, AUTHENTICATE), secrets.token_bytes(16)).seal(copy.copy(write), here),
                 whole[:-1] + bytes([whole[-1] ^ 1])):
        unanswered(client, data)
    status(client.read(64, 15), nd.OK)
    assert client.read(64, 15).payload != b"from a stranger"
    client.close()


@test
def nothing_is_taken_twice(node):
    client = member(node)
    first = client.endpoint.seal(client.build(nd.WRITE, client.next_number, address=128, payload=b"once"))
    client.next_number += 1
    client.endpoint.send(first)
    answer = client.endpoint.wait(10, lambda packet: packet.segment["opcode"] == nd.WRITE)
    status(answer, nd.OK)
    status(client.write(128, b"more"), nd.OK)
    unanswered(client, first)
    equal(client.read(128, 4).payload, b"more")
    client.close()


@test
def frames_that_overtake_one_another_are_all_taken(node):
    client = member(node)
    sealed = [client.endpoint.seal(nd.request(nd.ECHO, client.context, client.next_laneless + n, payload=b"%d" % n))
              for n in range(100)]
    client.next_laneless += 100
    for data in sealed[::-1]:
        client.endpoint.send(data)
        answer = client.endpoint.receive(10)
        assert answer is not None and answer.segment["opcode"] == nd.ECHO
    client.close()


@test
def the_node_has_counted_what_it_dropped(node):
    counters = node.stop()
    equal(counters["RX_TENANT"], 5, "RX_TENANT")
    equal(counters["RX_REPLAYED"], 1, "RX_REPLAYED")


if __name__ == "__main__":
    run(lambda: Node("--tenant", "9:%s:encrypt" % NINE.key.hex(), key=REGION))
