#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Transactions against a node, by docs/wire-format.md. Prints TAP."""

import random
import struct

import netdam_packet as nd
from bench import add_packet, answers, ask, cell, connect, equal, run, status, test
from node import Node

COMPARE, FETCH, WRITE = nd.ENTRY_COMPARE, nd.ENTRY_FETCH, nd.ENTRY_WRITE


def word(value):
    return struct.pack("<q", value)


def packet(client, number, distance, *entries, **fields):
    return client.build(nd.TRANSACTION, number, distance=distance, key=0, payload=b"".join(entries), **fields)


def compare(client, address, data):
    return nd.entry(COMPARE, client.key, address, data)


def fetch(client, address, length):
    return nd.entry(FETCH, client.key, address, length=length)


def write(client, address, data):
    return nd.entry(WRITE, client.key, address, data)


def failed(answer, right, entry):
    status(answer, right)
    equal(answer.segment["length"], entry, "entry")
    equal(answer.payload, b"")


@test
def all_or_nothing(bench):
    client, at = bench.client(), bench.page()
    status(client.write(at, b"0123456789abcdef"), nd.OK)
    answer = client.transact(write(client, at + 3, b"xyz"), compare(client, at + 2, b"23456"), fetch(client, at + 4, 3),
                             fetch(client, at, 2), write(client, at + 5, b"!"))
    status(answer, nd.OK)
    equal(answer.payload, b"45601", "fetched")
    equal(answer.segment["length"], 5, "length")
    equal(client.read(at, 16).payload, b"012xy!6789abcdef", "memory")
    failed(client.transact(write(client, at, b"never"), compare(client, at, b"012"), compare(client, at + 3, b"XY")),
           nd.COMPARE_FAILED, 2)
    equal(client.read(at, 16).payload, b"012xy!6789abcdef", "memory")
    answer = client.transact(write(client, at, b"new"), compare(client, at, b"012"))
    status(answer, nd.OK)
    equal((answer.payload, answer.segment["length"]), (b"", 0))
    client.confirm()


@test
def as_many_entries_and_bytes_as_there_may_be(bench):
    client, at = bench.client(), bench.page()
    data = bytes(range(1, 129))
    status(client.write(at, data), nd.OK)
    answer = client.transact(*[fetch(client, at + 8 * i, 8) for i in range(15, -1, -1)])
    equal(answer.payload, b"".join(data[8 * i:8 * i + 8] for i in range(15, -1, -1)))
    equal(client.transact(fetch(client, at, 128)).payload, data)
    rest = nd.payload_max(1500) - 24
    status(client.transact(write(client, at + 256, b"x" * rest)), nd.OK)
    equal(client.read(at + 256, rest + 1).payload, b"x" * rest + b"\0")
    client.confirm()


@test
def what_is_wrong_with_an_entry_is_remembered(bench):
    client, at = bench.known(), bench.page()
    end = bench.node.bytes
    rows = [(nd.BAD_KEY, nd.entry(COMPARE, client.key ^ 1, at, b"x")), (nd.BAD_KEY, nd.entry(FETCH, 0, 0, length=0)),
            (nd.BAD_KEY, nd.entry(WRITE, client.key + 1, at, b"x")), (nd.BAD_RANGE, compare(client, end - 1, b"xy")),
            (nd.BAD_RANGE, fetch(client, end, 1)), (nd.BAD_RANGE, write(client, 2**64 - 1, b"xy")),
            (nd.BAD_RANGE, write(client, end + 1, b"")), (nd.COMPARE_FAILED, compare(client, at + 8, b"wrong"))]
    for number, (right, entry) in enumerate(rows, 1):
        place = number % 5
        entries = [write(client, at, b"never")] * place + [entry] + [write(client, at, b"never")] * 2
        status(client.relaxed(nd.WRITE, address=at + 8, payload=b"other"), nd.OK)
        for again in (0, nd.AGAIN, nd.AGAIN):
            answer = ask(client, packet(client, number, 0, *entries))
            failed(answer, right, place)
            equal(answer.flags & nd.AGAIN, again, "flags")
            status(client.relaxed(nd.WRITE, address=at + 8, payload=b"wrong"), nd.OK)  # which would hold now
    equal(client.read(at, 8).payload, bytes(8), "memory")
    client.next_number = len(rows) + 1
    client.confirm()


def flaws(client, at):
    good = write(client, at, b"never")
    yield b""
    yield good[:23]
    yield good[:-1]
    yield good + b"\0"
    yield good + bytes(8)
    yield good[:-1] + b"\1"
    for kind in (0, 4, 0x42, 255):
        yield nd.entry(kind, client.key, at, b"never")
        yield good + nd.entry(kind, client.key, at, length=0)
    for reserved in (b"\1\0\0", b"\0\1\0", b"\0\0\x80"):
        yield nd.entry(WRITE, client.key, at, b"never", reserved=reserved)
    for length in (9, 16, 2**31, 2**32 - 7, 2**32 - 1):
        yield nd.entry(WRITE, client.key, at, b"nevernev", length=length)
        yield good + nd.entry(COMPARE, client.key, at, length=length)
    yield fetch(client, at, 129)
    yield fetch(client, at, 64) * 2 + fetch(client, at, 1)
    yield fetch(client, at, 8) + fetch(client, at, 2**32 - 8)
    yield fetch(client, at, 0) * 17
    yield write(client, at, b"") * 17


@test
def lists_of_wrong_form_leave_no_trace(bench):
    client, at = bench.known(), bench.page()
    for payload in flaws(client, at):
        equal(nd.read_entries(payload), None, "%r by the manual" % payload)
        for _ in range(2):
            answer = ask(client, packet(client, 1, 0, payload))
            failed(answer, nd.BAD_LENGTH, 0)
            equal(answer.flags & nd.AGAIN, 0, "flags")
    good = write(client, at, b"good")
    for length in (0, len(good) - 8, len(good) + 8, 2**32 - 1):
        failed(ask(client, packet(client, 1, 0, good, length=length)), nd.BAD_LENGTH, 0)
    failed(ask(client, packet(client, 1, 0, good, flags=nd.RELAXED)), nd.BAD_FLAGS, 0)
    failed(ask(client, packet(client, 1, 0, good, flags=nd.IMMEDIATE, extensions=bytes(8))), nd.BAD_FLAGS, 0)
    equal(answers(client, packet(client, 1, 0, good, flags=nd.UNRELIABLE)), [])
    equal(client.read(at, 8).payload, bytes(8), "memory")
    status(ask(client, packet(client, 1, 0, good, flags=nd.ORDERED)), nd.OK)
    equal(client.read(at, 4).payload, b"good", "memory")
    client.next_number = 2
    client.confirm()


@test
def copies_are_answered_with_the_same_bytes(bench):
    client, at = bench.known(), bench.page()
    kept = []
    for number in range(1, 21):
        entries = [fetch(client, at, 8), write(client, at, word(number))]
        got = answers(client, *[packet(client, number, number - 1, *entries)] * 3)
        equal([a.payload for a in got], [word(number - 1)] * 3, "fetched")
        equal([a.flags & nd.AGAIN for a in got], [0, nd.AGAIN, nd.AGAIN], "flags")
        kept.append(entries)
    client.next_number = 21
    for number in random.Random(bench.seed).sample(range(1, 21), 20):
        answer = ask(client, packet(client, number, number - 1, *kept[number - 1]))
        equal(answer.payload, word(number - 1), "fetched")
    equal(cell(client, at), 20)
    equal(answers(client, packet(client, 21, 1, write(client, at, word(77))),
                  packet(client, 5, 0, *kept[4]))[1:], [])  # below the floor by now
    equal(cell(client, at), 77)
    bench.drops("REQUESTS_BELOW_FLOOR")
    client.next_number = 22
    client.confirm()


@test
def without_room_for_what_is_fetched_the_node_is_busy(bench):
    node = Node()
    try:
        client = connect(node)
        client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, 1, key=0)))
        got = []
        for first in range(1, 301, 20):
            got += answers(client, *[packet(client, n, n - 1, fetch(client, 0, 8), write(client, 0, word(n)))
                                     for n in range(first, first + 20)])
        equal([a.status for a in got], [nd.OK] * 128 + [nd.BUSY] * 172)  # half of 256: it is alone
        equal([a.payload for a in got[:128]], [word(n) for n in range(128)])
        equal(cell(client, 0), 128)
        status(ask(client, packet(client, 301, 300, write(client, 8, word(1)))), nd.OK)  # fetches nothing
        status(ask(client, add_packet(client, 302, 301, 8)), nd.OK)
        # Everything below 7 has ended: six places are free.
        got = [ask(client, packet(client, n, n - 7, fetch(client, 0, 8))) for n in range(129, 136)]
        equal([a.status for a in got], [nd.OK] * 6 + [nd.BUSY])
        equal(got[5].payload, word(128))
        equal(ask(client, packet(client, 7, 0, fetch(client, 0, 8))).payload, word(6))  # those that are kept are kept
        client.next_number = 303
        equal(client.confirm().segment["floor"], 303)
        client.close()
        counters = node.stop()
        equal((counters["LANES"], counters["LANE_BYTES"]), (1, 24))
        assert counters["REQUESTS_BUSY"] >= 173, counters["REQUESTS_BUSY"]
    finally:
        node.kill()


@test
def two_clients_transfer_and_nothing_is_lost(bench):
    at = bench.page()
    clients = [bench.client(), bench.client()]
    rng = random.Random(bench.seed)
    status(clients[0].write(at, word(0) + word(500) + word(500)), nd.OK)
    seen = [None, None]
    done = lost = 0
    while done < 60:
        who = rng.randrange(2)
        client = clients[who]
        if seen[who] is None:
            answer = client.transact(fetch(client, at, 24))
            seen[who] = struct.unpack("<qqq", answer.payload)
            continue
        version, one, two = seen[who]
        amount = rng.randrange(-40, 40)
        answer = client.transact(compare(client, at, word(version)), write(client, at, word(version + 1)),
                                 write(client, at + 8, word(one - amount)), write(client, at + 16, word(two + amount)))
        assert answer.status in (nd.OK, nd.COMPARE_FAILED), "status %d" % answer.status
        done += answer.status == nd.OK
        lost += answer.status == nd.COMPARE_FAILED
        seen[who] = None
        version, one, two = struct.unpack("<qqq", client.read(at, 24).payload)
        equal((version, one + two), (done, 1000), "version and sum")
    assert lost, "nobody was ever too late"
    for client in clients:
        client.confirm()


@test
def the_node_has_counted_what_it_dropped(bench):
    bench.check_drops()


if __name__ == "__main__":
    run()
