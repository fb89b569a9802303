# SPDX-License-Identifier: BSD-3-Clause
"""What a node makes of ARP, neighbour solicitations and pings by docs/wire-format.md, section 3.1: answers built anew."""

import struct

SOLICITATION, ADVERTISEMENT, ECHO6, ECHO6_REPLY = 135, 136, 128, 129


def internet_sum(data):
    data += b"\0" * (len(data) & 1)
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo_ipv6(source, destination, length, protocol):
    return source + destination + struct.pack(">II", length, protocol)


def _with_checksum(message, pseudo=b""):
    return message[:2] + struct.pack(">H", 0xFFFF - internet_sum(pseudo + message[:2] + b"\0\0" + message[4:])) + message[4:]


def _ipv6(to_mac, mac, source, destination, message):
    message = _with_checksum(message, pseudo_ipv6(source, destination, len(message), 58))
    return (to_mac + mac + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(message), 58, 255) + source + destination
            + message)


def answer(frame, mac, ipv4, ipv6):
    """The counter that is raised and the answer, or None for both if there is nothing to do; a counter alone: dropped."""
    sender, ip = frame[6:12], frame[14:]
    if frame[12:14] == b"\x08\x06":
        who, where, target = ip[8:14], ip[14:18], ip[24:28]
        if ip[6:8] != b"\0\1" or target != ipv4:
            return None, None
        return "ARP_REQUESTS", who + mac + frame[12:14] + ip[:6] + b"\0\2" + mac + ipv4 + who + where
    if frame[12:14] == b"\x08\0":
        head, total = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
        message = ip[head:total]
        if message[0] != 8:
            return "RX_OTHER", None
        # The addresses change places, which leaves the header's checksum as it is.
        return "PINGS", (sender + mac + frame[12:14] + ip[:12] + ip[16:20] + ip[12:16] + ip[20:head]
                         + _with_checksum(b"\0" + message[1:]))
    source, destination, message = ip[8:24], ip[24:40], ip[40:40 + int.from_bytes(ip[4:6], "big")]
    if internet_sum(pseudo_ipv6(source, destination, len(message), 58) + message) != 0xFFFF:
        return "RX_CHECKSUM", None
    if message[0] == ECHO6 and message[1] == 0 and destination == ipv6:
        return "PINGS", _ipv6(sender, mac, ipv6, source, bytes([ECHO6_REPLY]) + message[1:])
    if message[0] not in (SOLICITATION, ADVERTISEMENT) or len(message) < 24 or message[1] != 0 or ip[7] != 255:
        return "RX_OTHER", None
    if message[0] == ADVERTISEMENT or message[8:24] != ipv6:
        return None, None
    return "ARP_REQUESTS", _ipv6(sender, mac, ipv6, source, bytes([ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]) + ipv6
                                 + b"\2\1" + mac)
