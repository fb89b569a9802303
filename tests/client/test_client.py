#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Exercises every operation, refusal and lane rule of docs/wire-format.md against a node. Prints TAP."""

import math
import random
import struct
import sys
import traceback

import netdam_packet as nd
from netdam_client import Client, Endpoint, Unknown
from node import Node
from test_golden import load, manifest, unwrap

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def equal(got, right, what=""):
    if got != right:
        raise AssertionError("%s: got %r, not %r" % (what, got, right) if what else "got %r, not %r" % (got, right))


def status(answer, right):
    equal(nd.STATUS_NAMES[answer.status], nd.STATUS_NAMES[right], "status")


class Bench:
    """One node for most tests, each of which has a page of memory of its own."""

    def __init__(self):
        self.node = Node(key=0x1F2E3D4C5B6A7988)
        self.base = 0
        self.clients = []
        self.sent = {}  # counter: frames sent that must raise it

    def page(self):
        self.base += 16384
        return self.base

    def client(self, **options):
        client = Client(self.node.address, self.node.port, self.node.key, **options)
        self.clients.append(client)
        return client

    def known(self, **options):
        """A client that has learnt the generation, without a lane."""
        client = self.client(**options)
        answer = client.endpoint.exchange(client.build(nd.CONFIRM, client.next_number, key=0))
        status(answer, nd.STALE)
        client.accept_stale(answer)
        return client

    def close_clients(self):
        for client in self.clients:
            client.close()
        self.clients = []


def check_answer(request, answer):
    """What each answer must repeat of its request."""
    s, a = request.segment, answer.segment
    equal(answer.context, request.context, "context")
    equal(answer.number, request.number, "number")
    equal(answer.distance, request.distance, "distance")
    equal(answer.segment_count, request.segment_count, "segment_count")
    equal(answer.node_form, 0, "node_form")
    if answer.status not in (nd.BAD_VERSION, nd.BAD_FLAGS, nd.BAD_SEGMENTS):
        equal([a[n] for n in ("opcode", "operation", "type")], [s[n] for n in ("opcode", "operation", "type")])
        equal(a["hop"], request.segment_index, "hop")
        equal(a["echo"], s["generation"], "echo")
        if answer.status != nd.OK:
            equal(a["length"], 0, "length of a refusal")
            equal(answer.payload, b"", "payload of a refusal")


def ask(client, packet):
    answer = client.endpoint.exchange(packet)
    check_answer(packet, answer)
    return answer


def answers(client, *packets):
    """All answers to these packets, each sent once. An ECHO behind them tells when the node is through."""
    for packet in packets:
        client.endpoint.send(packet)
    number = client.next_laneless
    client.next_laneless += 1
    echo = nd.request(nd.ECHO, client.context, number, payload=b"through?")
    got = []

    def match(packet):
        if packet.segment["opcode"] == nd.ECHO and packet.number == number and packet.context == client.context:
            return True
        got.append(packet)
        return False

    status(client.endpoint.exchange(echo, match), nd.OK)
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


# ---- operations


@test
def echo_returns_payload_of_any_length(bench):
    client = bench.client()
    for length in (0, 1, 7, 8, 63, nd.payload_max(bench.node.mtu)):
        data = bytes(i * 7 & 0xFF for i in range(length))
        packet = client.build(nd.ECHO, client.next_laneless, key=0, generation=0, payload=data)
        client.next_laneless += 1
        answer = ask(client, packet)
        status(answer, nd.OK)
        equal(answer.payload, data)
        equal(answer.segment["length"], length)
        equal(bool(answer.flags & nd.PAYLOAD_CRC), length > 0, "payload CRC")


@test
def first_contact_is_a_confirm_without_generation(bench):
    client = bench.client()
    packet = client.build(nd.CONFIRM, 1, key=0)
    answer = ask(client, packet)
    status(answer, nd.STALE)
    assert answer.segment["generation"] >> 32 != 0, "no epoch"
    assert len(answer.encode()) <= len(packet.encode()), "a larger answer than its request"
    client.accept_stale(answer)
    answer = client.confirm()
    equal(answer.segment["floor"], 1, "floor")


@test
def first_request_without_generation_is_stale_and_not_executed(bench):
    client, at = bench.client(), bench.page()
    answer = ask(client, add_packet(client, 1, 0, at, 5, generation=0))
    status(answer, nd.STALE)
    client.accept_stale(answer)
    equal(cell(client, at), 0)


@test
def write_and_read_back_any_length_and_alignment(bench):
    client, at = bench.client(), bench.page()
    longest = nd.payload_max(bench.node.mtu)
    for length in (0, 1, 2, 3, 8, 9, 64, longest - 1, longest):
        for offset in (0, 1, 7):
            status(client.write(at, bytes([0xEE]) * longest), nd.OK)
            data = bytes(random.randrange(256) for _ in range(length))
            where = at + 100 + offset
            answer = client.write(where, data)
            status(answer, nd.OK)
            equal(answer.segment["length"], length, "length")
            equal(answer.payload, b"")
            answer = client.read(where, length)
            status(answer, nd.OK)
            equal(answer.payload, data)
            equal(client.read(where - 4, 4).payload, b"\xee" * 4, "bytes before")
            if length < longest - 200:
                equal(client.read(where + length, 4).payload, b"\xee" * 4, "bytes behind")


@test
def write_without_payload_crc_is_executed(bench):
    client, at = bench.known(), bench.page()
    status(ask(client, write_packet(client, 1, 0, at, b"no crc", crc=False)), nd.OK)
    equal(client.read(at, 6).payload, b"no crc")


@test
def region_ends_where_it_ends(bench):
    client, end = bench.client(), bench.node.bytes
    status(client.write(end - 8, b"the last"), nd.OK)
    equal(client.read(end - 8, 8).payload, b"the last")
    for address, length in ((end - 7, 8), (end, 1), (end + 1, 0), (end + 4096, 8), (2**64 - 8, 8), (2**64 - 4, 8)):
        status(client.write(address, b"x" * length), nd.BAD_RANGE)
        status(client.read(address, length), nd.BAD_RANGE)
    status(client.write(end, b""), nd.OK)
    status(client.read(end, 0), nd.OK)
    equal(client.read(end - 8, 8).payload, b"the last")


FORMATS = {nd.I32: "<%di", nd.I64: "<%dq", nd.F32: "<%df", nd.F64: "<%dd"}
QUIET = {nd.F32: b"\0\0\xc0\x7f", nd.F64: b"\0\0\0\0\0\0\xf8\x7f"}
SIGNALLING = {nd.F32: b"\1\0\x80\xff", nd.F64: b"\1\0\0\0\0\0\xf0\xff"}


def reduced(operation, type_, a, b):
    """One element, by the manual."""
    size = nd.TYPE_BYTES[type_]
    x, y = (struct.unpack(FORMATS[type_] % 1, v)[0] for v in (a, b))
    if type_ in (nd.I32, nd.I64):
        value = x + y if operation == nd.SUM else min(x, y) if operation == nd.MIN else max(x, y)
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    if math.isnan(x) or math.isnan(y) or (operation == nd.SUM and math.isinf(x) and x == -y):
        return QUIET[type_]
    if operation == nd.SUM:
        try:
            return struct.pack(FORMATS[type_] % 1, x + y)
        except OverflowError:
            return struct.pack(FORMATS[type_] % 1, math.copysign(math.inf, x))
    first, second = sorted((x, y), key=lambda v: (v, math.copysign(1, v)))
    return struct.pack(FORMATS[type_] % 1, first if operation == nd.MIN else second)


def edge_elements(type_):
    size = nd.TYPE_BYTES[type_]
    if type_ in (nd.I32, nd.I64):
        top = 1 << 8 * size - 1
        values = (0, 1, -1, 12345, top - 1, -top, 1 - top)
        return [(v % (1 << 8 * size)).to_bytes(size, "little") for v in values]
    largest = 3.4028234663852886e38 if type_ == nd.F32 else sys.float_info.max
    values = (0.0, -0.0, 1.0, -1.5, 3.0e-38, largest, -largest, math.inf, -math.inf)
    return [struct.pack(FORMATS[type_] % 1, v) for v in values] + [QUIET[type_], SIGNALLING[type_]]


@test
def reduce_sum_min_max_over_edge_values(bench):
    client, at = bench.client(), bench.page()
    for type_ in FORMATS:
        edges = edge_elements(type_)
        memory = b"".join(a for a in edges for _ in edges)
        payload = b"".join(b for _ in edges for b in edges)
        size = nd.TYPE_BYTES[type_]
        for operation in (nd.SUM, nd.MIN, nd.MAX):
            status(client.write(at, memory), nd.OK)
            answer = client.reduce(at, operation, type_, payload)
            status(answer, nd.OK)
            equal(answer.segment["length"], len(payload), "length")
            equal(answer.payload, b"")
            got = client.read(at, len(memory)).payload
            for i in range(0, len(memory), size):
                a, b = memory[i:i + size], payload[i:i + size]
                equal(got[i:i + size].hex(), reduced(operation, type_, a, b).hex(),
                      "type %d operation %d of %s and %s" % (type_, operation, a.hex(), b.hex()))


@test
def reduce_of_nothing_checks_and_changes_nothing(bench):
    client, at = bench.client(), bench.page()
    status(client.reduce(at, nd.SUM, nd.I32, b""), nd.OK)
    equal(cell(client, at), 0)


@test
def fetch_add_wraps_and_returns_the_old_value(bench):
    client, at = bench.client(), bench.page()
    for type_ in nd.INTEGERS:
        size = nd.TYPE_BYTES[type_]
        modulus = 1 << 8 * size
        expected = 0
        status(client.write(at, b"\xaa" * 24), nd.OK)
        status(client.write(at + 8, bytes(size)), nd.OK)
        for value in (1, 2, modulus - 1, modulus // 2, modulus // 2, 7):
            answer = client.fetch_add(at + 8, type_, value)
            status(answer, nd.OK)
            equal(answer.segment["length"], size, "length")
            equal(int.from_bytes(answer.payload, "little"), expected, "old value")
            equal(len(answer.payload), size, "payload")
            expected = (expected + value) % modulus
        equal(client.read(at, 24).payload, b"\xaa" * 8 + expected.to_bytes(size, "little") + b"\xaa" * (16 - size))


@test
def cas_stores_only_if_equal_and_always_returns_the_old_value(bench):
    client, at = bench.client(), bench.page()
    for type_ in nd.INTEGERS:
        size = nd.TYPE_BYTES[type_]
        high = (1 << 8 * size) - 2
        status(client.write(at, b"\xaa" * 8 + bytes(size) + b"\xaa" * (16 - size)), nd.OK)
        for compare, swap, old, new in ((0, high, 0, high), (0, 1, high, high), (high, 5, high, 5), (5, 5, 5, 5)):
            answer = client.cas(at + 8, type_, compare, swap)
            status(answer, nd.OK)
            equal(answer.payload, old.to_bytes(size, "little"), "old value")
            equal(client.read(at, 24).payload, b"\xaa" * 8 + new.to_bytes(size, "little") + b"\xaa" * (16 - size))


# ---- refusals that depend on the packet alone


def other_forms(client, at):
    """Requests in the two forms that name nodes."""
    s = client.build(nd.WRITE, 1, address=at, payload=b"abcdefgh").segments[0]
    node4 = {**s, "node": bytes([127, 0, 0, 1]) + nd.PORT.to_bytes(2, "big") + bytes(2)}
    node6 = {**s, "node": bytes(15) + b"\1" + nd.PORT.to_bytes(2, "big") + bytes(6)}
    for form, node in ((4, node4), (6, node6)):
        for segments in ([node], [node, node], [node] * 16):
            yield nd.Packet(nd.REQUEST, context=client.context, number=1, segments=segments, node_form=form,
                            segment_count=len(segments), payload=b"abcdefgh", flags=nd.PAYLOAD_CRC)


def stateless_refusals(client, at):
    """(status, request) pairs; each would modify `at` if it were executed."""
    def write(**f):
        return client.build(nd.WRITE, 1, address=at, payload=f.pop("payload", b"abcdefgh"), **f)

    def op(opcode, payload=b"abcdefgh", **f):
        return client.build(opcode, 1, address=at, payload=payload, **f)

    for version in (0, 2, 255):
        yield nd.BAD_VERSION, write(version=version)
    yield nd.BAD_VERSION, write(version=2, flags=0x8000)
    for flag in (0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000, nd.CONFIRM_WANTED, nd.CONGESTED):
        yield nd.BAD_FLAGS, write(flags=flag)
    yield nd.BAD_FLAGS, write(status=1)
    for wrong in ({"segment_count": 0}, {"segment_count": 2}, {"segment_count": 33}, {"segment_count": 255},
                  {"segment_index": 1}, {"segment_index": 255}, {"node_form": 1}, {"node_form": 5}, {"node_form": 255},
                  {"reserved": 1}, {"reserved": 255}):
        yield nd.BAD_SEGMENTS, write(**wrong)
    known = nd.WIRE_OPS
    for opcode in (0x00, 0x03, 0x0F, 0x13, 0x21, 0x34, 0x44, 0x51, 0x7F, 0xFF, nd.ALL_REDUCE, nd.REDUCE_SCATTER,
                   nd.ALL_GATHER, nd.BROADCAST, nd.BARRIER):
        assert opcode not in known
        yield nd.BAD_OPCODE, op(opcode)
    for operation in (9, 0x20, 0xFF):
        yield nd.BAD_OPERATION, op(nd.REDUCE, operation=operation, type=nd.I32)
    yield nd.BAD_OPERATION, op(nd.REDUCE, type=nd.I32)
    for opcode in (nd.WRITE, nd.READ, nd.ECHO, nd.CONFIRM, nd.FETCH_ADD, nd.CAS):
        yield nd.BAD_OPERATION, op(opcode, operation=nd.SUM)
    for type_ in (13, 0x20, 0xFF):
        yield nd.BAD_TYPE, op(nd.REDUCE, operation=nd.SUM, type=type_)
        yield nd.BAD_TYPE, op(nd.FETCH_ADD, type=type_)
    yield nd.BAD_TYPE, op(nd.REDUCE, operation=nd.SUM)
    for type_ in nd.FLOATS:
        for operation in (nd.AND, nd.OR, nd.XOR, nd.SUM_SATURATING):
            yield nd.BAD_TYPE, op(nd.REDUCE, operation=operation, type=type_)
        yield nd.BAD_TYPE, op(nd.FETCH_ADD, type=type_)
        yield nd.BAD_TYPE, op(nd.CAS, type=type_)
    for opcode in (nd.WRITE, nd.READ, nd.ECHO, nd.CONFIRM):
        yield nd.BAD_TYPE, op(opcode, type=nd.I64)
    for opcode in (nd.SEND, nd.TRANSACTION, nd.LOAD, nd.COMPARE, nd.FORWARD):
        yield nd.UNSUPPORTED, op(opcode)
    yield nd.UNSUPPORTED, op(nd.SWAP, type=nd.I64)
    yield nd.UNSUPPORTED, op(nd.FETCH_OP, operation=nd.SUM, type=nd.I64)
    yield nd.UNSUPPORTED, op(nd.LOAD_REDUCE, operation=nd.SUM, type=nd.I64)
    for type_ in set(range(nd.U8, nd.F64 + 1)) - set(FORMATS):
        yield nd.UNSUPPORTED, op(nd.REDUCE, operation=nd.SUM, type=type_)
    for operation in (nd.PRODUCT, nd.AND, nd.OR, nd.XOR, nd.SUM_SATURATING):
        yield nd.UNSUPPORTED, op(nd.REDUCE, operation=operation, type=nd.I32)
    for flag in (nd.RELAXED, nd.ORDERED, nd.UNRELIABLE, nd.REPRODUCIBLE):
        yield nd.UNSUPPORTED, write(flags=flag)
    yield nd.UNSUPPORTED, write(flags=nd.IMMEDIATE, extensions=bytes(8))
    yield nd.UNSUPPORTED, write(flags=nd.TENANT, extensions=bytes(32))
    yield nd.UNSUPPORTED, write(flags=nd.IMMEDIATE | nd.TENANT, extensions=bytes(40))
    for packet in other_forms(client, at):
        yield nd.UNSUPPORTED, packet
    yield nd.UNSUPPORTED, write(flags=nd.RELAXED, length=5)
    for length in (0, 7, 9, 2**32 - 1):
        yield nd.BAD_LENGTH, write(length=length)
    yield nd.BAD_LENGTH, write(payload=b"", length=8)
    yield nd.BAD_LENGTH, op(nd.ECHO, length=7)
    yield nd.BAD_LENGTH, op(nd.READ)
    for length in (nd.payload_max(1500) + 1, 9000, 2**32 - 1):
        yield nd.BAD_LENGTH, op(nd.READ, payload=b"", length=length)
    yield nd.BAD_LENGTH, op(nd.CONFIRM)
    yield nd.BAD_LENGTH, op(nd.CONFIRM, payload=b"", length=8)
    yield nd.BAD_LENGTH, op(nd.REDUCE, operation=nd.SUM, type=nd.I32, payload=b"abcdef")
    yield nd.BAD_LENGTH, op(nd.REDUCE, operation=nd.SUM, type=nd.I32, length=4)
    for opcode, right in ((nd.FETCH_ADD, 8), (nd.CAS, 16)):
        for length, carried in ((8, right - 8), (8, right - 1), (8, right + 8), (4, right), (16, right), (0, 0)):
            yield nd.BAD_LENGTH, op(opcode, type=nd.I64, length=length, payload=b"\1" * carried)


@test
def refusals_of_form_are_answered_and_leave_no_trace(bench):
    client, at = bench.known(), bench.page()
    for right, packet in stateless_refusals(client, at):
        what = "%s of opcode 0x%02x, flags 0x%04x" % (nd.STATUS_NAMES[right], packet.segments[0]["opcode"], packet.flags)
        for _ in range(2):
            answer = ask(client, packet)
            equal(nd.STATUS_NAMES[answer.status], nd.STATUS_NAMES[right], what)
            equal(answer.version, nd.VERSION)
            assert not answer.flags & nd.AGAIN, what + ": remembered"
    equal(client.read(at, 64).payload, bytes(64), "memory")
    answer = ask(client, write_packet(client, 1, 0, at, b"number 1"))
    status(answer, nd.OK)
    assert not answer.flags & nd.AGAIN, "a refusal of form has consumed the number"
    equal(client.read(at, 8).payload, b"number 1")


# ---- refusals that the region makes


@test
def refusal_consumes_its_number_even_when_the_reason_has_vanished(bench):
    client, at = bench.known(), bench.page()
    bad = [(nd.BAD_KEY, {"key": bench.node.key ^ 1}), (nd.BAD_RANGE, {"address": bench.node.bytes - 4}),
           (nd.MISALIGNED, {"address": at + 4})]
    for number, (right, wrong) in enumerate(bad, 1):
        packet = add_packet(client, number, 0, wrong.pop("address", at), 5, **wrong)
        answer = ask(client, packet)
        status(answer, right)
        assert not answer.flags & nd.AGAIN
        for again in (packet, add_packet(client, number, 0, at, 5)):
            answer = ask(client, again)
            status(answer, right)
            assert answer.flags & nd.AGAIN, "not answered from memory"
    equal(cell(client, at), 0)
    client.next_number = len(bad) + 1
    status(client.fetch_add(at, nd.I64, 5), nd.OK)
    equal(cell(client, at), 5)


@test
def wrong_keys_are_refused_for_each_operation(bench):
    client, at = bench.client(), bench.page()
    client.confirm()
    for key in (0, bench.node.key ^ 1, bench.node.key ^ 1 << 63):
        client.key = key
        for answer in (client.write(at, b"x"), client.write(at, b""), client.read(at, 8), client.read(at, 0),
                       client.reduce(at, nd.SUM, nd.I32, b"1234"), client.fetch_add(at, nd.I64, 1),
                       client.cas(at, nd.I64, 0, 1)):
            status(answer, nd.BAD_KEY)
    client.key = bench.node.key
    equal(cell(client, at), 0)


@test
def elements_must_be_aligned(bench):
    client, at = bench.client(), bench.page()
    for type_ in nd.INTEGERS:
        for offset in range(1, 8):
            right = nd.OK if offset % nd.TYPE_BYTES[type_] == 0 else nd.MISALIGNED
            status(client.fetch_add(at + offset, type_, 0), right)
            status(client.cas(at + offset, type_, 1, 1), right)
    for type_ in FORMATS:
        for offset in range(1, 8):
            right = nd.OK if offset % nd.TYPE_BYTES[type_] == 0 else nd.MISALIGNED
            status(client.reduce(at + offset, nd.MAX, type_, bytes(nd.TYPE_BYTES[type_])), right)
    equal(client.read(at, 16).payload, bytes(16))


@test
def permissions_are_checked(bench):
    rights = {"r": {"r"}, "w": {"w"}, "a": {"a"}, "ra": {"ra", "a", "r"}, "rwa": {"r", "w", "a", "ra"}}
    for granted, allowed in rights.items():
        node = Node("--permissions", granted)
        try:
            client = Client(node.address, node.port, node.key)
            client.confirm()
            for need, run in (("w", lambda c: c.write(0, b"\1\2\3\4")), ("r", lambda c: c.read(0, 8)),
                              ("a", lambda c: c.reduce(0, nd.SUM, nd.I32, b"1234")),
                              ("ra", lambda c: c.fetch_add(0, nd.I64, 1)), ("ra", lambda c: c.cas(0, nd.I64, 0, 1))):
                answer = run(client)
                equal(nd.STATUS_NAMES[answer.status], "OK" if need in allowed else "NO_PERMISSION",
                      "%s granted, %s needed" % (granted, need))
            client.close()
            node.stop()
        finally:
            node.kill()


# ---- lanes


@test
def copies_are_answered_again_and_executed_once(bench):
    client, at = bench.known(), bench.page()
    packets = [add_packet(client, 1, 0, at, 5)] * 6
    got = answers(client, *packets)
    equal(len(got), 6, "answers")
    for i, answer in enumerate(got):
        check_answer(packets[i], answer)
        status(answer, nd.OK)
        equal(bool(answer.flags & nd.AGAIN), i > 0, "AGAIN in answer %d" % i)
        equal(answer.payload, bytes(8), "old value")
        equal(answer.segment["floor"], 1, "floor")
    equal(cell(client, at), 5)


@test
def copy_of_a_write_does_not_undo_a_newer_one(bench):
    first, second, at = bench.known(), bench.client(), bench.page()
    old = write_packet(first, 1, 0, at, b"old")
    status(ask(first, old), nd.OK)
    status(second.write(at, b"new"), nd.OK)
    equal([a.status for a in answers(first, old)], [nd.OK])
    equal(second.read(at, 3).payload, b"new")
    status(ask(first, write_packet(first, 2, 0, at + 8, b"more")), nd.OK)
    equal(answers(first, old), [], "answers below the floor")
    equal(second.read(at, 3).payload, b"new")


@test
def numbers_above_the_floor_are_executed_in_any_order(bench):
    client, at = bench.known(), bench.page()
    order = [5, 3, 9, 4, 8, 3, 5, 6, 7, 9]
    got = answers(client, *[add_packet(client, n, n - 3, at, 1 << n) for n in order])
    equal([a.number for a in got], order)
    equal([bool(a.flags & nd.AGAIN) for a in got], [n in order[:i] for i, n in enumerate(order)])
    equal(cell(client, at), sum(1 << n for n in set(order)))


@test
def below_the_floor_is_dropped(bench):
    client, at = bench.known(), bench.page()
    early = add_packet(client, 4, 2, at, 1)
    status(ask(client, add_packet(client, 6, 1, at, 2)), nd.OK)
    equal(answers(client, early), [])
    client.next_number = 8
    equal(client.confirm().segment["floor"], 8, "floor")
    equal(answers(client, add_packet(client, 6, 1, at, 2), add_packet(client, 7, 2, at, 4)), [])
    equal(cell(client, at), 2)
    bench.sent["REQUESTS_BELOW_FLOOR"] = bench.sent.get("REQUESTS_BELOW_FLOOR", 0) + 3


@test
def beyond_the_window_is_dropped(bench):
    client, at = bench.known(), bench.page()
    wrong = [add_packet(client, n, d, at) for n, d in ((1024, 1024), (5000, 2000), (70000, 65535), (1, 2), (0, 1))]
    equal(answers(client, *wrong), [])
    status(ask(client, add_packet(client, 1024, 1023, at)), nd.OK)
    status(ask(client, add_packet(client, 1, 0, at)), nd.OK)
    equal(cell(client, at), 2)
    bench.sent["REQUESTS_BEYOND_WINDOW"] = bench.sent.get("REQUESTS_BEYOND_WINDOW", 0) + len(wrong)


@test
def a_full_window_remembers_each_number(bench):
    client, at = bench.known(), bench.page()
    for first in range(0, nd.WINDOW, 64):
        numbers = range(first + 1, first + 65)
        equal(len(answers(client, *[add_packet(client, n, n - 1, at) for n in numbers])), 64)
    for n in (1, 2, 500, 1023, 1024):
        answer = ask(client, add_packet(client, n, n - 1, at))
        assert answer.flags & nd.AGAIN
        equal(answer.payload, struct.pack("<q", n - 1), "old value of number %d" % n)
    equal(cell(client, at), nd.WINDOW)


@test
def numbers_reach_48_bits(bench):
    top = (1 << 48) - 1
    client, at = bench.known(first_number=top - 2), bench.page()
    for number in (top - 2, top - 1, top):
        got = answers(client, *[add_packet(client, number, 0, at)] * 2)
        equal([bool(a.flags & nd.AGAIN) for a in got], [False, True])
    equal(answers(client, add_packet(client, top - 1, 0, at)), [])
    equal(cell(client, at), 3)
    bench.sent["REQUESTS_BELOW_FLOOR"] = bench.sent.get("REQUESTS_BELOW_FLOOR", 0) + 1


@test
def another_generation_is_stale_and_not_executed(bench):
    client, at = bench.known(), bench.page()
    right = client.generation
    wrong = (0, right ^ 1, right + 1 << 32 | right & 0xFFFFFFFF, right ^ 1 << 63)
    for known in (False, True):
        for generation in wrong:
            answer = ask(client, add_packet(client, 2, 0, at, generation=generation))
            status(answer, nd.STALE)
            equal(answer.segment["generation"], right, "generation")
        if not known:
            equal(cell(client, at), 0)
            status(ask(client, add_packet(client, 1, 0, at)), nd.OK)
    equal(cell(client, at), 1)
    answer = ask(client, add_packet(client, 2, 0, at))
    status(answer, nd.OK)
    assert not answer.flags & nd.AGAIN, "STALE has consumed the number"


@test
def reads_need_the_epoch_and_not_the_count(bench):
    client, at = bench.client(), bench.page()
    status(client.write(at, b"12345678"), nd.OK)
    right = client.generation
    cases = ((right, nd.OK), (right ^ 1, nd.OK), (right ^ 0xFFFFFFFF, nd.OK), (0, nd.STALE), (right ^ 1 << 32, nd.STALE),
             (right ^ 1 << 63, nd.STALE), (right & 0xFFFFFFFF, nd.STALE))
    for reader in (client, bench.client()):
        for number, (generation, code) in enumerate(cases, 100):
            answer = ask(reader, reader.build(nd.READ, number, generation=generation, address=at, length=8))
            status(answer, code)
            equal(answer.payload, b"12345678" if code == nd.OK else b"")
            if code == nd.STALE:
                equal(answer.segment["generation"] >> 32, right >> 32, "epoch")


@test
def reads_and_lanes_count_apart(bench):
    client, at = bench.known(), bench.page()
    status(ask(client, add_packet(client, 7, 0, at)), nd.OK)
    for _ in range(2):
        answer = ask(client, client.build(nd.READ, 7, address=at, length=8))
        status(answer, nd.OK)
        equal(answer.payload, struct.pack("<q", 1))
        assert not answer.flags & nd.AGAIN
    status(ask(client, client.build(nd.READ, 1, address=at, length=8)), nd.OK)
    assert ask(client, add_packet(client, 7, 0, at)).flags & nd.AGAIN


@test
def confirm_raises_the_floor_and_never_lowers_it(bench):
    client, at = bench.known(), bench.page()
    status(ask(client, add_packet(client, 10, 5, at)), nd.OK)
    for floor, after in ((3, 5), (5, 5), (8, 8), (6, 8), (11, 11), (8, 11), (11, 11), (2000, 2000), (11, 2000)):
        answer = ask(client, client.build(nd.CONFIRM, floor, key=0))
        status(answer, nd.OK)
        equal(answer.segment["floor"], after, "floor after CONFIRM %d" % floor)
        equal(answer.segment["generation"], client.generation, "generation")
    for generation in (0, client.generation ^ 1, client.generation ^ 1 << 40):
        answer = ask(client, client.build(nd.CONFIRM, 3000, key=0, generation=generation))
        status(answer, nd.STALE)
        equal(answer.segment["generation"], client.generation)
    equal(ask(client, client.build(nd.CONFIRM, 11, key=0)).segment["floor"], 2000, "a STALE has moved the floor")


@test
def an_acknowledged_confirm_is_a_fence_even_where_there_was_no_lane(bench):
    client, at = bench.known(), bench.page()
    late = add_packet(client, 1, 0, at)
    answer = ask(client, client.build(nd.CONFIRM, 2, key=0))
    status(answer, nd.OK)
    equal(answer.segment["floor"], 2, "floor")
    equal(answers(client, late), [], "answers to a request below an acknowledged floor")
    equal(cell(client, at), 0, "a request below an acknowledged floor was executed")
    bench.sent["REQUESTS_BELOW_FLOOR"] = bench.sent.get("REQUESTS_BELOW_FLOOR", 0) + 1


@test
def many_contexts_add_to_one_cell(bench):
    clients, at = [bench.client() for _ in range(8)], bench.page()
    for client in clients:
        client.confirm()
    seen = []
    for _ in range(40):
        for client in clients:
            seen.append(struct.unpack("<q", client.fetch_add(at, nd.I64, 1).payload)[0])
    equal(seen, list(range(320)))
    equal(cell(clients[0], at), 320)


# ---- what a node cannot read


def datagram_of(name):
    return unwrap(load(name))[0]


@test
def malformed_golden_packets_are_dropped(bench):
    client = bench.known()
    counted = ("RX_MALFORMED", "RX_HEADER_CRC", "RX_PAYLOAD_CRC", "RESPONSES_UNMATCHED")
    used = 0
    for name, kind, expected, _ in manifest():
        if kind != "malformed" or expected not in counted:
            continue
        try:
            data = datagram_of(name)
        except nd.Dropped:
            continue  # wrong below UDP, which a socket cannot send
        equal(answers(client, data), [], name)
        bench.sent[expected] = bench.sent.get(expected, 0) + 1
        used += 1
    assert used >= 20, "only %d golden packets" % used


@test
def every_truncation_is_dropped(bench):
    client, at = bench.known(), bench.page()
    whole = write_packet(client, 1, 0, at, b"Hello, node!").encode()
    for first in range(0, len(whole), 32):
        cut = [whole[:n] for n in range(first, min(first + 32, len(whole)))]
        equal(answers(client, *cut), [])
    equal(answers(client, whole + b"\0", whole + whole), [])
    equal(client.read(at, 12).payload, bytes(12))
    bench.sent["RX_MALFORMED"] = bench.sent.get("RX_MALFORMED", 0) + len(whole) + 2


@test
def every_flipped_bit_is_dropped(bench):
    client, at = bench.known(), bench.page()
    whole = write_packet(client, 1, 0, at, b"Hello, node!").encode()
    flips = []
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        flips.append(bytes(data))
        try:
            nd.decode(flips[-1])
            raise AssertionError("the manual does not catch bit %d" % bit)
        except nd.Dropped as dropped:
            bench.sent[str(dropped)] = bench.sent.get(str(dropped), 0) + 1
    for first in range(0, len(flips), 64):
        equal(answers(client, *flips[first:first + 64]), [])
    equal(client.read(at, 12).payload, bytes(12))


@test
def random_datagrams_are_dropped(bench):
    client = bench.known()
    seed = random.randrange(2**32)
    print("# seed %d" % seed)
    generator = random.Random(seed)
    for _ in range(20):
        batch = [generator.randbytes(generator.randrange(0, 200)) for _ in range(20)]
        equal(answers(client, *batch), [])
        for data in batch:
            try:
                nd.decode(data)
            except nd.Dropped as dropped:
                bench.sent[str(dropped)] = bench.sent.get(str(dropped), 0) + 1


@test
def counters_tell_what_was_dropped(bench):
    bench.close_clients()
    counters = bench.node.stop()
    for name, count in sorted(bench.sent.items()):
        equal(counters[name], count, name)
    for name in ("REQUESTS_EXECUTED", "REQUESTS_REPEATED", "REQUESTS_REFUSED", "REQUESTS_STALE", "LANES"):
        assert counters[name] > 0, name + " is 0"
    equal(counters["MAIN_MEMORY_BYTES"], 0)


# ---- full tables, forgotten lanes, restarts: nodes of their own


def learn(node):
    client = Client(node.address, node.port, node.key)
    client.accept_stale(client.endpoint.exchange(client.build(nd.CONFIRM, 1, key=0)))
    return client


def flood(client, packets):
    """Sends requests that may be repeated, some at a time, until each is answered; returns answers by context."""
    todo = {packet.context: packet for packet in packets}
    got = {}
    for _ in range(1000):
        if not todo:
            return got
        for answer in answers(client, *list(todo.values())[:48]):
            if answer.context in todo:
                del todo[answer.context]
                got[answer.context] = answer
    raise AssertionError("%d requests were never answered" % len(todo))


@test
def busy_when_too_many_lanes_are_unfinished_and_the_number_is_not_consumed(_):
    node = Node()
    try:
        client = learn(node)
        contexts = list(range(1000, 1300))
        add = [nd.request(nd.FETCH_ADD, c, 1, generation=client.generation, type=nd.I64, length=8, key=node.key,
                          payload=struct.pack("<q", 1)) for c in contexts]
        got = flood(client, add)
        done = [c for c in contexts if got[c].status == nd.OK]
        busy = [c for c in contexts if got[c].status == nd.BUSY]
        equal(len(done) + len(busy), len(contexts))
        assert busy, "never BUSY"
        equal(cell(client, 0), len(done))
        flood(client, [nd.request(nd.CONFIRM, c, 2, generation=client.generation) for c in done])
        got = flood(client, [add[contexts.index(c)] for c in busy])
        equal({nd.STATUS_NAMES[got[c].status] for c in busy}, {"OK"})
        equal(cell(client, 0), len(contexts))
        client.close()
        assert node.stop()["REQUESTS_BUSY"] >= len(busy)
    finally:
        node.kill()


@test
def confirmed_lanes_are_forgotten_with_a_new_count_and_requests_go_on(_):
    node = Node()
    try:
        client = learn(node)
        status(client.fetch_add(8, nd.I64, 1), nd.OK)
        client.confirm()
        before, changed, context = client.generation, False, 5000
        while not changed and context < 13000:
            batch = range(context, context + 48)
            context += 48
            got = flood(client, [nd.request(nd.WRITE, c, 1, generation=before, key=node.key) for c in batch])
            changed = any(a.status == nd.STALE for a in got.values())
            flood(client, [nd.request(nd.CONFIRM, c, 2, generation=before) for c in batch
                           if got[c].status == nd.OK])
        assert changed, "no lane was ever forgotten"
        answer = client.endpoint.exchange(add_packet(client, client.next_number, 0, 8))
        status(answer, nd.STALE)
        equal(answer.segment["generation"] >> 32, before >> 32, "epoch")
        assert answer.segment["generation"] > before, "count"
        equal(cell(client, 8), 1)
        status(client.fetch_add(8, nd.I64, 1), nd.OK)
        assert client.generation > before
        equal(cell(client, 8), 2)
        client.close()
        assert node.stop()["LANES_FORGOTTEN"] > 0
    finally:
        node.kill()


@test
def a_restarted_node_has_a_new_epoch_and_refuses_what_was_sent_before(_):
    node = Node(key=77)
    try:
        client = Client(node.address, node.port, node.key)
        status(client.fetch_add(0, nd.I64, 1), nd.OK)
        before = client.generation
        node.stop()
        node = Node(port=node.port, key=77)
        try:
            client.fetch_add(0, nd.I64, 1)
            raise AssertionError("a request was executed across an epoch")
        except Unknown:
            pass
        assert client.generation >> 32 != before >> 32, "same epoch"
        equal(cell(client, 0), 0)
        status(client.fetch_add(0, nd.I64, 1), nd.OK)
        equal(cell(client, 0), 1)
        client.close()
        node.stop()
    finally:
        node.kill()


@test
def without_payload_crc_and_with_a_larger_mtu(_):
    node = Node("--no-payload-crc", "--mtu", "9000")
    try:
        client = Client(node.address, node.port, node.key)
        longest = nd.payload_max(9000)
        data = random.randbytes(longest)
        status(client.write(0, data), nd.OK)
        answer = client.read(0, longest)
        status(answer, nd.OK)
        equal(answer.payload, data)
        equal(answer.flags & nd.PAYLOAD_CRC, 0, "payload CRC")
        status(client.read(0, longest + 1), nd.BAD_LENGTH)
        client.close()
        node.stop()
    finally:
        node.kill()


def main():
    failed = 0
    bench = Bench()
    try:
        for number, function in enumerate(TESTS, 1):
            try:
                function(bench)
                print("ok %d - %s" % (number, function.__name__))
            except Exception as error:  # each test reports and the next one runs
                failed += 1
                print("not ok %d - %s" % (number, function.__name__))
                for line in "".join(traceback.format_exception(error)).splitlines():
                    print("# " + line)
            sys.stdout.flush()
    finally:
        bench.close_clients()
        bench.node.kill()
    print("1..%d" % len(TESTS))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
