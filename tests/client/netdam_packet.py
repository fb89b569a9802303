# SPDX-License-Identifier: BSD-3-Clause
"""NetDAM packets, written from docs/wire-format.md alone: building, reading, and a node's checks of form."""

import struct

VERSION = 1
PORT = 20036
REQUEST, RESPONSE = 1, 2
HEADER, SEGMENT, ANSWER = 32, 32, 32
WINDOW = 1024
NODE_BYTES = {0: 0, 4: 8, 6: 24}

PAYLOAD_CRC, IMMEDIATE, TENANT, AGAIN, RELAXED = 0x1, 0x2, 0x4, 0x8, 0x10
ORDERED, UNRELIABLE, REPRODUCIBLE, CONFIRM_WANTED, CONGESTED = 0x20, 0x40, 0x80, 0x100, 0x200
REQUEST_FLAGS = PAYLOAD_CRC | IMMEDIATE | TENANT | AGAIN | RELAXED | ORDERED | UNRELIABLE | REPRODUCIBLE
RESPONSE_FLAGS = PAYLOAD_CRC | TENANT | AGAIN | RELAXED | CONFIRM_WANTED | CONGESTED
EXTENSIONS = ((IMMEDIATE, 8), (TENANT, 48))

ECHO, CONFIRM, READ, WRITE, SEND, REDUCE = 0x01, 0x02, 0x10, 0x11, 0x12, 0x20
FETCH_ADD, CAS, SWAP, FETCH_OP = 0x30, 0x31, 0x32, 0x33
LOAD, LOAD_REDUCE, COMPARE, FORWARD, TRANSACTION = 0x40, 0x41, 0x42, 0x43, 0x50
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, BARRIER = 0x80, 0x81, 0x82, 0x83, 0x84
CHAIN_OPS = (LOAD, LOAD_REDUCE, COMPARE, FORWARD)
WIRE_OPS = (ECHO, CONFIRM, READ, WRITE, SEND, REDUCE, FETCH_ADD, CAS, SWAP, FETCH_OP, TRANSACTION) + CHAIN_OPS
ALU_OPS = (REDUCE, FETCH_OP, LOAD_REDUCE)
ATOMICS = (FETCH_ADD, CAS, SWAP, FETCH_OP)
MODIFYING = (WRITE, SEND, REDUCE, TRANSACTION) + ATOMICS
EXECUTED = (ECHO, CONFIRM, READ, WRITE, SEND, REDUCE, TRANSACTION) + ATOMICS + CHAIN_OPS
ENTRY_COMPARE, ENTRY_FETCH, ENTRY_WRITE = 1, 2, 3

NO_OP, SUM, PRODUCT, MIN, MAX, AND, OR, XOR, SUM_SATURATING = range(9)
BYTES, U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64 = range(13)
TYPE_BYTES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8)
INTEGERS, FLOATS = range(U8, I64 + 1), range(F16, F64 + 1)
UNSIGNED = (U8, U16, U32, U64)

OK, BAD_VERSION, BAD_OPCODE, BAD_OPERATION, BAD_TYPE, BAD_FLAGS, BAD_SEGMENTS, BAD_LENGTH = range(8)
MISALIGNED, BAD_KEY, BAD_RANGE, NO_PERMISSION, UNSUPPORTED = range(8, 13)
NOT_FORWARDED, NOT_READY, COMPARE_FAILED = 0x0D, 0x0E, 0x0F
STALE, BUSY = 0x40, 0x41
STATUS_NAMES = {
    OK: "OK", BAD_VERSION: "BAD_VERSION", BAD_OPCODE: "BAD_OPCODE", BAD_OPERATION: "BAD_OPERATION",
    BAD_TYPE: "BAD_TYPE", BAD_FLAGS: "BAD_FLAGS", BAD_SEGMENTS: "BAD_SEGMENTS", BAD_LENGTH: "BAD_LENGTH",
    MISALIGNED: "MISALIGNED", BAD_KEY: "BAD_KEY", BAD_RANGE: "BAD_RANGE", NO_PERMISSION: "NO_PERMISSION",
    UNSUPPORTED: "UNSUPPORTED", NOT_FORWARDED: "NOT_FORWARDED", NOT_READY: "NOT_READY", COMPARE_FAILED: "COMPARE_FAILED", STALE: "STALE", BUSY: "BUSY",
}


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def payload_max(mtu, ipv6=False):
    return (mtu - 96 - (20 if ipv6 else 0)) & ~7


class Dropped(Exception):
    """A node drops the datagram; the argument is the counter that tells why."""


class Refused(Exception):
    """A node answers with a status; the arguments are the status and the packet as far as it was read."""


class Packet:
    """One packet. `segments` are dictionaries: of one answer in a response."""

    def __init__(self, kind, **fields):
        self.kind = kind
        self.version = VERSION
        self.flags = 0
        self.segment_count = 1
        self.segment_index = 0
        self.node_form = 0
        self.status = 0
        self.context = 0
        self.number = 0
        self.distance = 0
        self.extensions = b""
        self.origin = None
        self.segments = []
        self.payload = b""
        self.payload_length = None
        self.header_length = None
        for name, value in fields.items():
            if name not in self.__dict__:
                raise TypeError(name)
            setattr(self, name, value)

    def encode(self):
        if self.kind == RESPONSE:
            a = self.segments[0]
            body = struct.pack(">BBBBIQQ", a["opcode"], a["operation"], a["type"], a["hop"], a["length"],
                               a["generation"], a["echo"])
            body += a["floor"].to_bytes(6, "big") + a["depth"].to_bytes(2, "big")
        else:
            body = bytes(NODE_BYTES.get(self.node_form, 0)) if self.origin is None else self.origin
            body += b"".join(
                struct.pack(">BBBBIQQQ", s["opcode"], s["operation"], s["type"], s.get("reserved", 0), s["length"],
                            s["key"], s["address"], s["generation"]) + s.get("node", b"") for s in self.segments)
        body = self.extensions + body
        length = HEADER + len(body) if self.header_length is None else self.header_length
        payload_length = len(self.payload) if self.payload_length is None else self.payload_length
        head = struct.pack(">BBHBBBBQ", self.version, self.kind, self.flags, self.segment_count, self.segment_index,
                           self.node_form, self.status, self.context)
        head += self.number.to_bytes(6, "big") + struct.pack(">HHH", self.distance, payload_length, length)
        tail = self.payload
        if self.flags & PAYLOAD_CRC and self.payload:
            tail += struct.pack(">I", crc32c(self.payload))
        crc = crc32c((head + bytes(4) + body + tail)[:length])
        return head + struct.pack(">I", crc) + body + tail

    @property
    def segment(self):
        return self.segments[0 if self.kind == RESPONSE else self.segment_index]


def request(opcode, context, number, distance=0, generation=0, operation=NO_OP, type=BYTES, length=None, key=0,
            address=0, payload=b"", flags=0, crc=True, **more):
    """A request with one implicit segment."""
    segment = {"opcode": opcode, "operation": operation, "type": type, "reserved": more.pop("reserved", 0),
               "length": len(payload) if length is None else length, "key": key, "address": address,
               "generation": generation}
    flags |= PAYLOAD_CRC if payload and crc else 0
    return Packet(REQUEST, context=context, number=number, distance=distance, flags=flags, segments=[segment],
                  payload=payload, **more)


def _read_segment(data):
    opcode, operation, type_, reserved, length, key, address, generation = struct.unpack(">BBBBIQQQ", data[:SEGMENT])
    return {"opcode": opcode, "operation": operation, "type": type_, "reserved": reserved, "length": length,
            "key": key, "address": address, "generation": generation, "node": data[SEGMENT:]}


def _read_answer(data):
    opcode, operation, type_, hop, length, generation, echo = struct.unpack(">BBBBIQQ", data[:24])
    return {"opcode": opcode, "operation": operation, "type": type_, "hop": hop, "length": length,
            "generation": generation, "echo": echo, "floor": int.from_bytes(data[24:30], "big"),
            "depth": int.from_bytes(data[30:32], "big")}


def decode(data):
    """Reads a datagram with the checks of section 3 up to the payload CRC and the reserved byte."""
    if len(data) < HEADER:
        raise Dropped("RX_MALFORMED")
    version, kind, flags, count, index, form, status, context = struct.unpack(">BBHBBBBQ", data[:16])
    number = int.from_bytes(data[16:22], "big")
    distance, payload_length, length, crc = struct.unpack(">HHHI", data[22:32])
    if length < HEADER or length > len(data):
        raise Dropped("RX_MALFORMED")
    if crc32c(data[:28] + bytes(4) + data[32:length]) != crc:
        raise Dropped("RX_HEADER_CRC")
    if kind not in (REQUEST, RESPONSE):
        raise Dropped("RX_MALFORMED")
    packet = Packet(kind, version=version, flags=flags, segment_count=count, segment_index=index, node_form=form,
                    status=status, context=context, number=number, distance=distance)

    def refuse(code):
        raise Refused(code, packet) if kind == REQUEST else Dropped("RX_MALFORMED")

    if version != VERSION:
        refuse(BAD_VERSION)
    if flags & TENANT:
        # A node that knows no tenant.
        whole = length >= HEADER + sum(size for flag, size in EXTENSIONS if flags & flag & (IMMEDIATE | TENANT))
        raise Dropped("RX_TENANT" if whole and len(data) == length + payload_length else "RX_MALFORMED")
    if flags & ~(REQUEST_FLAGS if kind == REQUEST else RESPONSE_FLAGS) or (kind == REQUEST and status):
        refuse(BAD_FLAGS)
    if kind == REQUEST and (not 1 <= count <= 32 or index >= count or form not in NODE_BYTES
                            or (form == 0 and count != 1)):
        refuse(BAD_SEGMENTS)

    extensions = at = HEADER + sum(size for flag, size in EXTENSIONS if flags & flag)
    at += NODE_BYTES[form] if kind == REQUEST else 0
    each = SEGMENT + NODE_BYTES[form] if kind == REQUEST else ANSWER
    body = count * each if kind == REQUEST else ANSWER
    with_crc = bool(flags & PAYLOAD_CRC and payload_length)
    if length != at + body or len(data) != length + payload_length + (4 if with_crc else 0):
        raise Dropped("RX_MALFORMED")
    packet.extensions = data[HEADER:extensions]
    packet.origin = data[extensions:at]
    packet.payload = data[length:length + payload_length]
    if with_crc and crc32c(packet.payload) != int.from_bytes(data[-4:], "big"):
        raise Dropped("RX_PAYLOAD_CRC")
    if kind == RESPONSE:
        packet.segments = [_read_answer(data[at:])]
        return packet
    packet.segments = [_read_segment(data[at + i * each:at + (i + 1) * each]) for i in range(count)]
    if packet.segment["reserved"]:
        refuse(BAD_SEGMENTS)
    return packet


def entry(kind, key, address, data=b"", length=None, reserved=b"\0\0\0"):
    """One entry of a transaction's list; `length` where it is not the data's."""
    head = struct.pack("<B3sIQQ", kind, reserved, len(data) if length is None else length, key, address)
    return head + data + bytes(-len(data) % 8)


def read_entries(payload):
    """A transaction's entries as (kind, key, address, length, data), or None if the list's form is wrong."""
    entries, at, fetched = [], 0, 0
    while at < len(payload):
        if len(payload) - at < 24:
            return None
        kind, reserved, length, key, address = struct.unpack_from("<B3sIQQ", payload, at)
        at += 24
        padded = 0 if kind == ENTRY_FETCH else length + -length % 8
        data, padding = payload[at:at + min(length, padded)], payload[at + length:at + padded]
        if kind not in (ENTRY_COMPARE, ENTRY_FETCH, ENTRY_WRITE) or any(reserved) or padded > len(payload) - at or any(padding):
            return None
        fetched += length if kind == ENTRY_FETCH else 0
        entries.append((kind, key, address, length, data))
        at += padded
    return entries if 1 <= len(entries) <= 16 and fetched <= 128 else None


def in_algebra(opcode, operation, type_):
    if opcode not in ALU_OPS:
        return type_ in INTEGERS if opcode in (FETCH_ADD, CAS, SWAP) else type_ == BYTES
    if operation in (SUM, PRODUCT, MIN, MAX):
        return type_ != BYTES
    return type_ in INTEGERS and (operation != SUM_SATURATING or opcode == REDUCE)


def idempotent(opcode, operation):
    return opcode == WRITE or (opcode == REDUCE and operation in (MIN, MAX, AND, OR))


def associates(operation, type_):
    """Whether an accumulation of many operands is the same in any order."""
    if operation in (SUM, PRODUCT):
        return type_ in INTEGERS
    return operation != SUM_SATURATING or type_ in UNSIGNED


def flags_suit(packet):
    """Whether the flags go with the opcode and with one another."""
    s, flags = packet.segment, packet.flags
    opcode = s["opcode"]
    ways = [flag for flag in (RELAXED, ORDERED, UNRELIABLE) if flags & flag]
    if flags & IMMEDIATE and opcode not in (WRITE, SEND):
        return False
    if flags & REPRODUCIBLE and opcode in (REDUCE, FETCH_OP) and not associates(s["operation"], s["type"]):
        return False
    if not ways:
        return True
    if len(ways) > 1 or opcode not in MODIFYING:
        return False
    if ways[0] == ORDERED:
        return True
    if opcode in ATOMICS or opcode == TRANSACTION:
        return False
    return ways[0] == UNRELIABLE or (idempotent(opcode, s["operation"]) and not flags & IMMEDIATE)


def read_node(part):
    """(address, port) of a node part, or None if no chain may name it."""
    size = 4 if len(part) == 8 else 16
    address, port = part[:size], int.from_bytes(part[size:size + 2], "big")
    if any(part[size + 2:]) or port == 0 or not any(address):
        return None
    if size == 4 and (address[0] == 0 or address[0] >= 224) or size == 16 and address[0] == 0xFF:
        return None
    return address, port


def chain_is_right(packet, own):
    """Whether a chain's list as a whole is one to execute; `own`: addresses and port of the node that looks."""
    size = 4 if packet.node_form == 4 else 16
    if len(own[0]) != size or packet.node_form == 0:
        return False
    nodes = [read_node(s["node"]) for s in packet.segments]
    if None in nodes:
        return False
    others = nodes[:packet.segment_index] + nodes[packet.segment_index + 1:]
    if nodes[packet.segment_index] in others or tuple(own) in others:
        return False
    named = [s for s in packet.segments if s["opcode"] != FORWARD]
    for s in packet.segments:
        if s["opcode"] not in CHAIN_OPS + (WRITE, REDUCE) or s["reserved"]:
            return False
        if s["opcode"] == FORWARD and (s["length"] or s["key"] or s["address"] or s["generation"]):
            return False
    if len({s["length"] for s in named}) > 1 or any(s["opcode"] == LOAD for s in named[1:]):
        return False
    reads = [i for i, s in enumerate(packet.segments) if s["opcode"] in (LOAD, LOAD_REDUCE)]
    stores = [i for i, s in enumerate(packet.segments) if s["opcode"] in (WRITE, REDUCE)]
    compares = [i for i, s in enumerate(packet.segments) if s["opcode"] == COMPARE]
    if reads and stores and compares and compares[-1] > reads[0]:
        return False
    late = [i for i in stores if reads and i > reads[0]]
    return not late or late == [len(packet.segments) - 1]


def chain_is_long(packet, mtu, ipv6):
    """Whether lengths in a chain contradict one another, or its packet would not fit the MTU at some hop."""
    s = packet.segment
    named = [x for x in packet.segments if x["opcode"] != FORWARD]
    length = named[0]["length"] if named else 0
    loads = [i for i, x in enumerate(packet.segments) if x["opcode"] == LOAD]
    before = 0 if loads and loads[0] >= packet.segment_index else length
    after = 0 if loads and loads[0] > packet.segment_index else length
    node = NODE_BYTES[packet.node_form]
    whole = HEADER + len(packet.extensions) + node + len(packet.segments) * (SEGMENT + node)
    room = mtu - (48 if ipv6 else 28) - whole - 4
    return len(packet.payload) != before or s["length"] % TYPE_BYTES[s["type"]] or after > room


def check_instruction(packet, mtu=1500, ipv6=False, own=None):
    """The rest of section 3 that depends on the packet alone: a status. `own`: address and port of the node."""
    s = packet.segment
    opcode, operation, type_, length = s["opcode"], s["operation"], s["type"], s["length"]
    if opcode not in WIRE_OPS:
        return BAD_OPCODE
    if operation > SUM_SATURATING or (operation != NO_OP) != (opcode in ALU_OPS):
        return BAD_OPERATION
    if type_ >= len(TYPE_BYTES) or not in_algebra(opcode, operation, type_):
        return BAD_TYPE
    if not flags_suit(packet):
        return BAD_FLAGS
    if opcode not in EXECUTED:
        return UNSUPPORTED
    if packet.node_form != 0:
        if packet.flags & (IMMEDIATE | RELAXED | ORDERED | UNRELIABLE):
            return BAD_FLAGS
        if not chain_is_right(packet, own) or (packet.segment_index and not any(packet.origin)):
            return BAD_SEGMENTS
        return BAD_LENGTH if chain_is_long(packet, mtu, ipv6) else OK
    if opcode in CHAIN_OPS:
        return BAD_SEGMENTS
    element, carried = TYPE_BYTES[type_], len(packet.payload)
    if opcode in ATOMICS:
        right = length == element and carried == element * (2 if opcode == CAS else 1)
    elif opcode == CONFIRM:
        right = length == 0 and carried == 0
    elif opcode == TRANSACTION:
        right = length == carried and read_entries(packet.payload) is not None
    elif opcode == READ:
        right = carried == 0 and length <= payload_max(mtu, ipv6)
    else:
        right = length == carried and length % element == 0
        right = right and (opcode != ECHO or length <= payload_max(mtu, ipv6))
    return OK if right else BAD_LENGTH
