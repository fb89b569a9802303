#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Exercises every operation and every refusal of docs/wire-format.md against a node. Prints TAP."""

import math
import operator
import random
import struct
import sys

import netdam_packet as nd
from bench import add_packet, ask, cell, connect, equal, run, status, test, write_packet
from node import Node

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


LETTERS = {nd.U8: "B", nd.I8: "b", nd.U16: "H", nd.I16: "h", nd.U32: "I", nd.I32: "i", nd.U64: "Q", nd.I64: "q",
           nd.F16: "e", nd.F32: "f", nd.F64: "d"}
QUIET = {nd.F16: b"\0\x7e", nd.BF16: b"\xc0\x7f", nd.F32: b"\0\0\xc0\x7f", nd.F64: b"\0\0\0\0\0\0\xf8\x7f"}
SIGNALLING = {nd.F16: b"\1\xfc", nd.BF16: b"\x81\xff", nd.F32: b"\1\0\x80\xff", nd.F64: b"\1\0\0\0\0\0\xf0\xff"}
# Largest, smallest normal and smallest value.
LIMITS = {nd.F16: (65504.0, 2.0**-14, 2.0**-24), nd.BF16: (float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-133),
          nd.F32: (3.4028234663852886e38, 2.0**-126, 1.401298464324817e-45),
          nd.F64: (sys.float_info.max, sys.float_info.min, 5e-324)}
OPERATORS = {nd.SUM: operator.add, nd.PRODUCT: operator.mul, nd.AND: operator.and_, nd.OR: operator.or_,
             nd.XOR: operator.xor, nd.MIN: min, nd.MAX: max, nd.SUM_SATURATING: operator.add}


def value_of(type_, element):
    if type_ == nd.BF16:
        return struct.unpack("<f", b"\0\0" + element)[0]
    return struct.unpack("<" + LETTERS[type_], element)[0]


def element_of(type_, value):
    """The float that is nearest, ties to even; infinity beyond the largest."""
    if type_ == nd.BF16 and value and math.isfinite(value):
        # A step is 2^-7 of the power of two below the value, and no less than the smallest value; F64 holds all exactly.
        step = max(math.frexp(value)[1] - 8, -133)
        value = math.copysign(math.ldexp(round(math.ldexp(value, -step)), step), value)
        if abs(value) > LIMITS[nd.BF16][0]:
            value = math.copysign(math.inf, value)
    try:
        return struct.pack("<f", value)[2:] if type_ == nd.BF16 else struct.pack("<" + LETTERS[type_], value)
    except OverflowError:
        return struct.pack("<" + LETTERS[type_], math.copysign(math.inf, value))


def reduced(operation, type_, a, b):
    """One element, by the manual."""
    size, x, y = nd.TYPE_BYTES[type_], value_of(type_, a), value_of(type_, b)
    if operation == nd.SUM_SATURATING:
        signed = LETTERS[type_].islower()
        low, high = (-1 << 8 * size - 1, (1 << 8 * size - 1) - 1) if signed else (0, (1 << 8 * size) - 1)
        return struct.pack("<" + LETTERS[type_], min(max(x + y, low), high))
    if type_ in nd.INTEGERS:
        return (OPERATORS[operation](x, y) % (1 << 8 * size)).to_bytes(size, "little")
    if operation in (nd.MIN, nd.MAX):
        if math.isnan(x) or math.isnan(y):
            return QUIET[type_]
        value = OPERATORS[operation]((x, y), key=lambda v: (v, math.copysign(1, v)))
    else:
        # Sums and products of the shorter types are exact or rounded innocuously in Python's F64; packing rounds again.
        value = OPERATORS[operation](x, y)
    return QUIET[type_] if math.isnan(value) else element_of(type_, value)


def edge_elements(type_):
    size = nd.TYPE_BYTES[type_]
    if type_ in nd.INTEGERS:
        top = 1 << 8 * size - 1
        values = (0, 1, -1, 100, top - 1, -top, 1 - top, 2 * top // 3)
        return [(v % (1 << 8 * size)).to_bytes(size, "little") for v in values]
    largest, normal, least = LIMITS[type_]
    values = (0.0, -0.0, 1.0, -1.5, 0.1, least, -least, 1.5 * normal, -normal, largest, -largest, math.inf, -math.inf)
    return [element_of(type_, v) for v in values] + [QUIET[type_], SIGNALLING[type_]]


def operations_of(type_, opcode):
    if type_ in nd.FLOATS:
        return nd.SUM, nd.PRODUCT, nd.MIN, nd.MAX
    return [o for o in OPERATORS if o != nd.SUM_SATURATING or opcode == nd.REDUCE]


NUMBERS = list(nd.INTEGERS) + list(nd.FLOATS)


def check_reduce(client, at, operation, type_, memory, payload):
    """One REDUCE over `memory`, element by element."""
    size = nd.TYPE_BYTES[type_]
    status(client.write(at, memory), nd.OK)
    answer = client.reduce(at, operation, type_, payload)
    status(answer, nd.OK)
    equal(answer.segment["length"], len(payload), "length")
    equal(answer.payload, b"")
    got = client.read(at, len(memory)).payload
    equal(len(got), len(memory), "bytes read")
    for i in range(0, len(memory), size):
        a, b = memory[i:i + size], payload[i:i + size]
        equal(got[i:i + size].hex(), reduced(operation, type_, a, b).hex(),
              "type %d operation %d of %s and %s" % (type_, operation, a.hex(), b.hex()))


@test
def reduce_over_edge_values_of_each_type(bench):
    client, at = bench.client(), bench.page()
    for type_ in NUMBERS:
        edges = edge_elements(type_)
        memory = b"".join(a for a in edges for _ in edges)
        payload = b"".join(b for _ in edges for b in edges)
        for operation in operations_of(type_, nd.REDUCE):
            for i in range(0, len(memory), 1200):
                check_reduce(client, at, operation, type_, memory[i:i + 1200], payload[i:i + 1200])


@test
def halves_round_to_nearest_even(bench):
    client, at = bench.client(), bench.page()
    generator = random.Random(bench.seed)
    for type_ in (nd.F16, nd.BF16):
        a, b = (generator.randbytes(1200) for _ in range(2))
        # Sums that lie half way between two halves: 1 and half a step, 1 and a step and half a step, and one bit more.
        step = 2.0**-10 if type_ == nd.F16 else 2.0**-7
        for x, y in ((1, step / 2), (1 + step, step / 2), (-1, -step / 2), (1, step / 2 * 1.5), (1, step / 2 * 0.75)):
            a += element_of(type_, x)
            b += element_of(type_, y)
        for operation in operations_of(type_, nd.REDUCE):
            check_reduce(client, at, operation, type_, a, b)


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


@test
def swap_stores_and_returns_the_old_value(bench):
    client, at = bench.client(), bench.page()
    for type_ in nd.INTEGERS:
        size = nd.TYPE_BYTES[type_]
        old = 0
        status(client.write(at, b"\xaa" * 8 + bytes(size) + b"\xaa" * (16 - size)), nd.OK)
        for new in (1, (1 << 8 * size) - 1, 1 << 8 * size - 1, 7, 7):
            answer = client.swap(at + 8, type_, new)
            status(answer, nd.OK)
            equal(answer.segment["length"], size, "length")
            equal(answer.payload, old.to_bytes(size, "little"), "old value")
            equal(client.read(at, 24).payload, b"\xaa" * 8 + new.to_bytes(size, "little") + b"\xaa" * (16 - size))
            old = new


@test
def fetch_op_does_what_reduce_does_and_returns_the_old_value(bench):
    client, at = bench.client(), bench.page()
    generator = random.Random(bench.seed)
    for type_ in NUMBERS:
        edges, size = edge_elements(type_), nd.TYPE_BYTES[type_]
        for operation in operations_of(type_, nd.FETCH_OP):
            old = edges[0]
            status(client.write(at, b"\xaa" * 8 + old + b"\xaa" * (16 - size)), nd.OK)
            for element in generator.sample(edges, 4) + edges[-1:]:
                answer = client.fetch_op(at + 8, operation, type_, element)
                status(answer, nd.OK)
                what = "type %d operation %d of %s and %s" % (type_, operation, old.hex(), element.hex())
                equal(answer.segment["length"], size, "length")
                equal(answer.payload.hex(), old.hex(), "old value: " + what)
                old = reduced(operation, type_, old, element)
            equal(client.read(at, 24).payload.hex(), (b"\xaa" * 8 + old + b"\xaa" * (16 - size)).hex(), what)


@test
def swap_and_fetch_op_are_executed_once(bench):
    client, at = bench.known(), bench.page()
    swap = client.build(nd.SWAP, 1, address=at, type=nd.U32, length=4, payload=b"\1\2\3\4")
    product = client.build(nd.FETCH_OP, 2, distance=1, address=at + 4, type=nd.I32, operation=nd.SUM, length=4,
                           payload=b"\5\0\0\0")
    for packet in (swap, product, swap, product):
        answer = ask(client, packet)
        status(answer, nd.OK)
        equal(answer.payload, bytes(4), "old value")
    equal(client.read(at, 8).payload, b"\1\2\3\4\5\0\0\0")


# ---- refusals that depend on the packet alone


def chain(client, segments, payload=b"abcdefgh", form=4, flags=0, **f):
    return nd.Packet(nd.REQUEST, context=client.context, number=1, segments=segments, node_form=form, payload=payload,
                     segment_count=len(segments), flags=flags | (nd.PAYLOAD_CRC if payload else 0), **f)


def wrong_chains(client, at):
    """(status, request) pairs of chains that no node takes."""
    def segment(opcode, host, port=nd.PORT, **f):
        s = client.build(opcode, 1, address=at, length=8).segments[0]
        return {**s, **f, "node": bytes([127, 0, 0, host]) + port.to_bytes(2, "big") + f.pop("pad", bytes(2))}

    def forward(host, **f):
        return segment(nd.FORWARD, host, **{"length": 0, "key": 0, "address": 0, "generation": 0, **f})

    write, later = segment(nd.WRITE, 1), segment(nd.WRITE, 2)
    for wrong in ([write, write], [write, later, write], [write] * 16, [write, segment(nd.LOAD, 2)],
                  [segment(nd.LOAD, 1), later, segment(nd.WRITE, 3)], [segment(nd.LOAD, 1), later, forward(3)],
                  [segment(nd.LOAD, 1), segment(nd.COMPARE, 2), segment(nd.WRITE, 3)],
                  [write, segment(nd.WRITE, 2, length=16)], [write, segment(nd.WRITE, 2, reserved=1)],
                  [write, segment(nd.WRITE, 2, port=0)], [write, segment(nd.WRITE, 2, pad=b"\0\1")],
                  [write, forward(2, length=8)], [write, forward(2, key=1)], [write, forward(2, generation=1)],
                  [segment(nd.READ, 1)], [write, segment(nd.ECHO, 2)], [segment(nd.SEND, 1)]):
        yield nd.BAD_SEGMENTS, chain(client, wrong, b"" if wrong[0]["opcode"] in (nd.LOAD, nd.READ) else b"abcdefgh")
    yield nd.BAD_SEGMENTS, chain(client, [{**write, "node": bytes(15) + b"\1" + nd.PORT.to_bytes(2, "big") + bytes(6)}], form=6)
    yield nd.BAD_SEGMENTS, chain(client, [later, write], segment_index=1)
    for flag in (nd.RELAXED, nd.ORDERED):
        yield nd.BAD_FLAGS, chain(client, [write], flags=flag)
    yield nd.BAD_FLAGS, chain(client, [write], flags=nd.IMMEDIATE, extensions=bytes(8))
    yield nd.BAD_LENGTH, chain(client, [write], b"abcdefg")
    yield nd.BAD_LENGTH, chain(client, [segment(nd.LOAD, 1)])
    for opcode in nd.CHAIN_OPS:
        operation, type_ = (nd.SUM, nd.I64) if opcode == nd.LOAD_REDUCE else (nd.NO_OP, nd.BYTES)
        yield nd.BAD_SEGMENTS, client.build(opcode, 1, address=at, payload=b"abcdefgh", operation=operation, type=type_)
        yield nd.BAD_SEGMENTS, client.build(opcode, 1, address=at, length=8, operation=operation, type=type_)


def unsuited_flags(client, at):
    """(BAD_FLAGS, request) pairs; none UNRELIABLE, for those are not answered."""
    def op(opcode, flags, payload=b"abcdefgh", **f):
        extensions = bytes(8 if flags & nd.IMMEDIATE else 0)
        return nd.BAD_FLAGS, client.build(opcode, 1, address=at, payload=payload, flags=flags, extensions=extensions, **f)

    for flags in (nd.RELAXED | nd.ORDERED, nd.RELAXED | nd.IMMEDIATE):
        yield op(nd.WRITE, flags)
    for flag in (nd.RELAXED, nd.ORDERED, nd.IMMEDIATE):
        yield op(nd.ECHO, flag)
        yield op(nd.READ, flag, payload=b"", length=8)
        yield op(nd.CONFIRM, flag, payload=b"")
    yield op(nd.SEND, nd.RELAXED)
    for operation in (nd.SUM, nd.PRODUCT, nd.XOR, nd.SUM_SATURATING):
        yield op(nd.REDUCE, nd.RELAXED, operation=operation, type=nd.I64)
    yield op(nd.REDUCE, nd.IMMEDIATE, operation=nd.MAX, type=nd.I64)
    for type_ in nd.FLOATS:
        for operation in (nd.SUM, nd.PRODUCT):
            yield op(nd.REDUCE, nd.REPRODUCIBLE, operation=operation, type=type_)
            yield op(nd.FETCH_OP, nd.REPRODUCIBLE, operation=operation, type=type_)
    yield op(nd.REDUCE, nd.REPRODUCIBLE, operation=nd.SUM_SATURATING, type=nd.I32)
    for flag in (nd.RELAXED, nd.IMMEDIATE):
        for opcode in (nd.FETCH_ADD, nd.SWAP):
            yield op(opcode, flag, type=nd.I64)
        yield op(nd.CAS, flag, type=nd.I64, length=8, payload=bytes(16))
        yield op(nd.FETCH_OP, flag, operation=nd.MAX, type=nd.I64)


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
    yield from unsuited_flags(client, at)
    yield nd.BAD_LENGTH, op(nd.TRANSACTION)
    yield from wrong_chains(client, at)
    yield nd.BAD_FLAGS, write(flags=nd.RELAXED | nd.ORDERED, length=5)
    yield nd.BAD_TYPE, write(flags=nd.RELAXED | nd.ORDERED, type=nd.I64)
    yield nd.BAD_LENGTH, write(flags=nd.RELAXED, length=5)
    yield nd.BAD_LENGTH, write(flags=nd.ORDERED, length=5)
    yield nd.BAD_LENGTH, write(flags=nd.IMMEDIATE, extensions=bytes(8), length=5)
    yield nd.BAD_LENGTH, op(nd.SEND, length=5)
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
    for opcode, right, operation in ((nd.FETCH_ADD, 8, 0), (nd.CAS, 16, 0), (nd.SWAP, 8, 0), (nd.FETCH_OP, 8, nd.SUM)):
        for length, carried in ((8, right - 8), (8, right - 1), (8, right + 8), (4, right), (16, right), (0, 0)):
            yield nd.BAD_LENGTH, op(opcode, type=nd.I64, operation=operation, length=length, payload=b"\1" * carried)


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
                       client.cas(at, nd.I64, 0, 1), client.swap(at, nd.I64, 1),
                       client.fetch_op(at, nd.MAX, nd.U8, b"\1"), client.send(key, b"x"), client.send(key, b"")):
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
            status(client.swap(at + offset, type_, 0), right)
    for type_ in NUMBERS:
        for offset in range(1, 8):
            right = nd.OK if offset % nd.TYPE_BYTES[type_] == 0 else nd.MISALIGNED
            status(client.reduce(at + offset, nd.MAX, type_, bytes(nd.TYPE_BYTES[type_])), right)
            status(client.fetch_op(at + offset, nd.MAX, type_, bytes(nd.TYPE_BYTES[type_])), right)
    equal(client.read(at, 16).payload, bytes(16))


@test
def permissions_are_checked(bench):
    for granted in ("r", "w", "a", "ra", "rw", "wa", "rwa"):
        node = Node("--permissions", granted)
        try:
            client = connect(node)
            client.confirm()
            for need, act in (("w", lambda c: c.write(0, b"\1\2\3\4")), ("r", lambda c: c.read(0, 8)),
                              ("a", lambda c: c.reduce(0, nd.SUM, nd.I32, b"1234")),
                              ("ra", lambda c: c.fetch_add(0, nd.I64, 1)), ("ra", lambda c: c.cas(0, nd.I64, 0, 1)),
                              ("ra", lambda c: c.fetch_op(0, nd.OR, nd.U16, b"\1\0")),
                              ("rw", lambda c: c.swap(0, nd.U32, 1))):
                answer = act(client)
                equal(nd.STATUS_NAMES[answer.status], "OK" if set(need) <= set(granted) else "NO_PERMISSION",
                      "%s granted, %s needed" % (granted, need))
            client.close()
            node.stop()
        finally:
            node.kill()


if __name__ == "__main__":
    run()
