#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""RELAXED, ORDERED, UNRELIABLE, immediates and SEND of docs/wire-format.md against a node without queue pairs. TAP."""

import struct

import netdam_packet as nd
from bench import add_packet, answers, ask, cell, check_answer, connect, equal, run, status, test, write_packet
from node import Node


def sum_packet(client, number, address, value, **fields):
    return client.build(nd.REDUCE, number, address=address, operation=nd.SUM, type=nd.I64,
                        payload=struct.pack("<q", value), **fields)


def other_epoch(client):
    return client.generation ^ 1 << 63


def other_count(client):
    return client.generation ^ 1 << 31


# ---- RELAXED


@test
def relaxed_write_is_executed_and_answered_as_such(bench):
    client, at = bench.known(), bench.page()
    packet = write_packet(client, 1, 0, at, b"relaxed", flags=nd.RELAXED)
    answer = ask(client, packet)
    status(answer, nd.OK)
    equal(answer.flags, nd.RELAXED, "flags")
    equal(answer.segment["length"], 7, "length")
    equal(answer.segment["floor"], 0, "floor")
    equal(answer.segment["generation"], client.generation, "generation")
    equal(client.read(at, 7).payload, b"relaxed")


@test
def relaxed_maximum_minimum_and_or_take_each_type(bench):
    client, at = bench.known(), bench.page()
    for type_ in list(nd.INTEGERS) + list(nd.FLOATS):
        size = nd.TYPE_BYTES[type_]
        one = {nd.F16: b"\0\x3c", nd.BF16: b"\x80\x3f", nd.F32: b"\0\0\x80\x3f", nd.F64: bytes(6) + b"\xf0\x3f"}
        element = one.get(type_, b"\1" + bytes(size - 1))
        status(client.write(at, bytes(size)), nd.OK)
        integer = type_ in nd.INTEGERS
        for operation, right in ((nd.MAX, element), (nd.MIN, element), *(((nd.AND, element), (nd.OR, element)) if integer
                                                                         else ())):
            for _ in range(2):
                status(client.relaxed(nd.REDUCE, address=at, operation=operation, type=type_, payload=element), nd.OK)
                equal(client.read(at, size).payload, right, "type %d operation %d" % (type_, operation))


@test
def copy_of_a_relaxed_write_undoes_a_newer_one(bench):
    first, second, at = bench.known(), bench.client(), bench.page()
    old = write_packet(first, 1, 0, at, b"old", flags=nd.RELAXED)
    status(ask(first, old), nd.OK)
    status(second.write(at, b"new"), nd.OK)
    late = answers(first, old)
    equal([(a.status, a.flags) for a in late], [(nd.OK, nd.RELAXED)])
    equal(second.read(at, 3).payload, b"old")


@test
def relaxed_needs_the_epoch_only(bench):
    client, at = bench.known(), bench.page()
    for generation in (0, other_epoch(client)):
        packet = write_packet(client, 1, 0, at, b"x", flags=nd.RELAXED, generation=generation)
        for _ in range(2):
            answer = ask(client, packet)
            status(answer, nd.STALE)
            equal(answer.flags, nd.RELAXED, "flags")
            equal(answer.segment["generation"], client.generation, "generation")
    equal(client.read(at, 1).payload, b"\0")
    status(ask(client, write_packet(client, 1, 0, at, b"x", flags=nd.RELAXED, generation=other_count(client))), nd.OK)
    equal(client.read(at, 1).payload, b"x")


@test
def relaxed_numbers_are_not_the_lanes(bench):
    client, at = bench.known(), bench.page()
    for number in (5, 1, 1024, 3):
        status(ask(client, write_packet(client, number, 0, at, b"free", flags=nd.RELAXED)), nd.OK)
    # The lane begins only now, with a number that the other sequence has used.
    for answer, again in zip(answers(client, *[add_packet(client, 1, 0, at + 8, 5)] * 2), (0, nd.AGAIN)):
        status(answer, nd.OK)
        equal(answer.flags, nd.PAYLOAD_CRC | again, "flags")
    client.next_number = 2
    client.confirm()
    status(ask(client, write_packet(client, 1, 0, at, b"more", flags=nd.RELAXED)), nd.OK)
    equal(client.read(at, 4).payload, b"more")
    equal(cell(client, at + 8), 5)


@test
def relaxed_refusals_are_not_remembered(bench):
    client, at = bench.known(), bench.page()
    for right, wrong in ((nd.BAD_KEY, {"key": bench.node.key ^ 1}), (nd.BAD_RANGE, {"address": bench.node.bytes})):
        packet = client.build(nd.WRITE, 1, payload=b"x", flags=nd.RELAXED, **{"address": at, **wrong})
        for _ in range(2):
            answer = ask(client, packet)
            status(answer, right)
            equal(answer.flags, nd.RELAXED, "flags")
        status(ask(client, write_packet(client, 1, 0, at, b"fine", flags=nd.RELAXED)), nd.OK)
    misaligned = client.relaxed(nd.REDUCE, address=at + 1, operation=nd.MAX, type=nd.I16, payload=b"\1\1")
    status(misaligned, nd.MISALIGNED)
    equal(client.read(at, 4).payload, b"fine")


# ---- UNRELIABLE


@test
def unreliable_is_executed_each_time_and_never_answered(bench):
    client, at = bench.known(), bench.page()
    packet = sum_packet(client, 1, at, 5, flags=nd.UNRELIABLE)
    equal(answers(client, packet, packet, packet), [])
    equal(cell(client, at), 15)
    equal(answers(client, write_packet(client, 1, 0, at + 8, b"quiet", flags=nd.UNRELIABLE)), [])
    equal(client.read(at + 8, 5).payload, b"quiet")
    client.unreliable(nd.REDUCE, address=at, operation=nd.MAX, type=nd.I64, payload=struct.pack("<q", 77))
    equal(answers(client), [])
    equal(cell(client, at), 77)


def unreliable_refusals(client, at, end):
    """Fifteen requests that a node must not execute; `end`: where its region ends."""
    quiet = {"flags": nd.UNRELIABLE}
    refused = [write_packet(client, 1, 0, at, b"x", key=client.key ^ 1, **quiet),
               write_packet(client, 1, 0, end, b"x", **quiet),
               write_packet(client, 1, 0, at, b"x", length=2, **quiet),
               write_packet(client, 1, 0, at, b"x", version=2, **quiet),
               write_packet(client, 1, 0, at, b"x", status=1, **quiet),
               write_packet(client, 1, 0, at, b"x", flags=nd.UNRELIABLE | nd.RELAXED),
               write_packet(client, 1, 0, at, b"x", flags=nd.UNRELIABLE | nd.IMMEDIATE, extensions=bytes(8)),
               sum_packet(client, 1, at + 4, 1, **quiet), add_packet(client, 1, 0, at, **quiet),
               client.build(nd.SWAP, 1, address=at, type=nd.I64, payload=bytes(8), **quiet),
               client.build(nd.READ, 1, address=at, length=8, **quiet), client.build(nd.ECHO, 1, payload=b"x", **quiet),
               client.build(nd.CONFIRM, 1, **quiet), client.build(nd.TRANSACTION, 1, payload=b"x", **quiet),
               client.build(nd.SEND, 1, payload=b"x", **quiet)]
    return refused


def check_counters(act, **right):
    """Lets `act` have a node of its own, then compares that node's counters."""
    node = Node()
    try:
        client = connect(node)
        answer = client.endpoint.exchange(client.build(nd.CONFIRM, 1, key=0))
        client.accept_stale(answer)
        act(client)
        client.close()
        counters = node.stop()
        equal({name: counters[name] for name in right}, right, "counters")
    finally:
        node.kill()


@test
def unreliable_is_refused_in_silence(bench):
    def act(client):
        refused = unreliable_refusals(client, 0, bench.node.bytes)
        equal(answers(client, *refused), [])
        equal(client.read(0, 16).payload, bytes(16))

    check_counters(act, REQUESTS_REFUSED=15, REQUESTS_EXECUTED=2, LANES=0)


@test
def unreliable_needs_the_epoch(bench):
    client, at = bench.known(), bench.page()
    quiet = {"flags": nd.UNRELIABLE}
    equal(answers(client, *[write_packet(client, 1, 0, at, b"x", generation=g, **quiet) for g in (0, other_epoch(client))]),
          [])
    equal(client.read(at, 1).payload, b"\0")
    equal(answers(client, write_packet(client, 1, 0, at, b"x", generation=other_count(client), **quiet)), [])
    equal(client.read(at, 1).payload, b"x")


@test
def what_has_no_lane_leaves_none(bench):
    def act(client):
        for i in range(20):
            status(client.relaxed(nd.WRITE, address=8 * i, payload=b"relaxed"), nd.OK)
            client.unreliable(nd.WRITE, address=8 * i, payload=b"faster")
        equal(answers(client), [])

    check_counters(act, LANES=0, LANE_WINDOWS=0, LANE_BYTES=0)


# ---- ORDERED


@test
def ordered_has_a_lane_like_any_other(bench):
    client, at = bench.known(), bench.page()
    packets = [add_packet(client, n, 0, at, 1 << n, flags=nd.ORDERED) for n in (1, 2)]
    packets.append(client.build(nd.REDUCE, 3, address=at + 8, operation=nd.PRODUCT, type=nd.U8, payload=b"\3",
                                flags=nd.ORDERED))
    packets.append(write_packet(client, 4, 1, at + 16, b"in order", flags=nd.ORDERED))
    got = answers(client, *packets, packets[-1], packets[0])
    equal([(a.number, a.status, bool(a.flags & nd.AGAIN)) for a in got],
          [(1, nd.OK, False), (2, nd.OK, False), (3, nd.OK, False), (4, nd.OK, False), (4, nd.OK, True)])
    for packet, answer in zip(packets, got):
        check_answer(packet, answer)
        equal(answer.flags & nd.RELAXED, 0, "RELAXED")
    bench.drops("REQUESTS_BELOW_FLOOR")
    equal(cell(client, at), 6)
    equal(client.read(at + 16, 8).payload, b"in order")


# ---- immediates and SEND, as far as a node without queue pairs can take them


@test
def immediate_without_queue_pair_is_not_permitted_and_writes_nothing(bench):
    client, at = bench.known(), bench.page()
    packet = write_packet(client, 1, 0, at, b"payload", flags=nd.IMMEDIATE, extensions=struct.pack(">Q", 42))
    for again in (0, nd.AGAIN):
        answer = ask(client, packet)
        status(answer, nd.NO_PERMISSION)
        equal(answer.flags, again, "flags")
    equal(client.read(at, 7).payload, bytes(7))
    status(ask(client, write_packet(client, 2, 0, at, b"payload")), nd.OK)
    # Key and range come first.
    for right, wrong in ((nd.BAD_KEY, {"key": bench.node.key ^ 1}), (nd.BAD_RANGE, {"address": bench.node.bytes})):
        client.next_number += 1
        fields = {"address": at, "flags": nd.IMMEDIATE, "extensions": bytes(8), **wrong}
        status(ask(client, client.build(nd.WRITE, client.next_number + 1, payload=b"x", **fields)), right)


@test
def send_needs_the_receive_key_of_a_queue_pair(bench):
    client, at = bench.known(), bench.page()
    packet = client.build(nd.SEND, 1, payload=b"hello", flags=nd.IMMEDIATE, extensions=bytes(8))
    for again in (0, nd.AGAIN):
        answer = ask(client, packet)
        status(answer, nd.BAD_KEY)
        equal(answer.flags, again, "flags")
        equal(answer.segment["floor"], 1, "floor")
    answer = ask(client, write_packet(client, 1, 0, at, b"the number is used up"))
    status(answer, nd.BAD_KEY)
    status(ask(client, write_packet(client, 2, 1, at, b"others are not hurt")), nd.OK)


@test
def counters_tell_what_was_dropped(bench):
    bench.check_drops()


if __name__ == "__main__":
    run()
