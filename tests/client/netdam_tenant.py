# SPDX-License-Identifier: BSD-3-Clause
"""Tenants' packets, written from docs/tenants.md and docs/wire-format.md alone: sealing, opening, what comes twice."""

import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

import netdam_packet as nd

AUTHENTICATE, ENCRYPT = 1, 2
EXTENSION = 48
REPLAY_WINDOW = 1024


class Tenant:
    """A tenant as everybody knows it who holds its key."""

    def __init__(self, number, key, mode):
        self.number, self.key, self.mode = number, key, mode

    def cipher(self, mode, salt):
        info = b"NetDAM" + struct.pack(">BBI", nd.VERSION, mode, self.number)
        return AESGCM(HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(self.key)[:16])


def _destination(node):
    """What binds a request to the node it is sent to: (address, port). None: an answer."""
    return bytes(24) if node is None else node[0].ljust(16, b"\0") + struct.pack(">H", node[1]) + bytes(6)


def _associated(data, at, node):
    """`at`: where the extension lies. Header CRC and tag count as 0."""
    length = int.from_bytes(data[26:28], "big")
    head = data[:28] + bytes(4) + data[32:at + 32] + bytes(16) + data[at + 48:length]
    return _destination(node) + head


def _nonce(counter):
    return bytes(4) + struct.pack(">Q", counter)


def _with_crc(data):
    length = int.from_bytes(data[26:28], "big")
    crc = nd.crc32c(data[:28] + bytes(4) + data[32:length])
    return data[:28] + struct.pack(">I", crc) + data[32:]


class Sender:
    """Seals what one sender sends, under a salt of its own and a counter that only goes up."""

    def __init__(self, tenant, salt, counter=0):
        self.tenant, self.salt, self.counter = tenant, salt, counter

    def seal(self, packet, node=None):
        """The datagram of a packet; `node`: (address, port) that a request is sent to."""
        tenant = self.tenant
        self.counter += 1
        packet.flags = packet.flags & ~nd.PAYLOAD_CRC | nd.TENANT
        at = nd.HEADER + len(packet.extensions)
        packet.extensions += struct.pack(">IB3s16sQ16s", tenant.number, tenant.mode, b"", self.salt, self.counter, b"")
        data = packet.encode()
        head, payload = data[:len(data) - len(packet.payload)], packet.payload
        associated, cipher = _associated(head, at, node), tenant.cipher(tenant.mode, self.salt)
        if tenant.mode == ENCRYPT:
            sealed = cipher.encrypt(_nonce(self.counter), payload, associated)
            payload, tag = sealed[:-16], sealed[-16:]
        else:
            tag = cipher.encrypt(_nonce(self.counter), b"", associated + payload)
        return _with_crc(head[:at + 32] + tag + head[at + 48:]) + payload


class Receiver:
    """Opens what comes, and takes nothing twice. `node`: the own (address, port), for requests."""

    def __init__(self, tenants, node=None):
        self.tenants = {t.number: t for t in tenants}
        self.node = node
        self.seen = {}

    def open(self, data):
        """The packet without its tag, decoded, and the tenant's number; raises Dropped as section 3 says."""
        if len(data) < nd.HEADER:
            raise nd.Dropped("RX_MALFORMED")
        flags, length = int.from_bytes(data[2:4], "big"), int.from_bytes(data[26:28], "big")
        payload_length = int.from_bytes(data[24:26], "big")
        if data[28:32] != _with_crc(data)[28:32]:
            raise nd.Dropped("RX_HEADER_CRC")
        if not flags & nd.TENANT:
            return nd.decode(data), 0
        at = nd.HEADER + (8 if flags & nd.IMMEDIATE else 0)
        if length < at + EXTENSION or len(data) != length + payload_length:
            raise nd.Dropped("RX_MALFORMED")
        number, mode, reserved, salt, counter, tag = struct.unpack(">IB3s16sQ16s", data[at:at + EXTENSION])
        tenant = self.tenants.get(number)
        if tenant is None or mode != tenant.mode or any(reserved):
            raise nd.Dropped("RX_TENANT")
        associated = _associated(data[:length], at, self.node if data[1] == nd.REQUEST else None)
        payload, cipher = data[length:], tenant.cipher(mode, salt)
        try:
            if mode == ENCRYPT:
                payload = cipher.decrypt(_nonce(counter), payload + tag, associated)
            else:
                cipher.decrypt(_nonce(counter), tag, associated + payload)
        except InvalidTag:
            raise nd.Dropped("RX_TENANT") from None
        self._take(number, salt, counter)
        if flags & nd.PAYLOAD_CRC:
            raise nd.Refused(nd.BAD_FLAGS, None)
        plain = (data[:2] + struct.pack(">H", flags & ~nd.TENANT) + data[4:26] +
                 struct.pack(">H", length - EXTENSION) + data[28:at] + data[at + EXTENSION:length])
        return nd.decode(_with_crc(plain) + payload), number

    def _take(self, number, salt, counter):
        newest, seen = self.seen.setdefault((number, salt), (0, set()))
        if counter in seen or counter + REPLAY_WINDOW <= newest:
            raise nd.Dropped("RX_REPLAYED")
        newest = max(newest, counter)
        self.seen[number, salt] = newest, {c for c in seen | {counter} if c + REPLAY_WINDOW > newest}
