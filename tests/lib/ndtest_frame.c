/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests' own reader of frames: parses without trusting, and repairs checksums of frames made on purpose. */
#include "ndtest_frame.h"

#include <string.h>

static unsigned get16(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static uint64_t get48(const uint8_t *at)
{
    return (uint64_t)get16(at) << 32 | get32(at + 2);
}

static uint64_t get64(const uint8_t *at)
{
    return (uint64_t)get32(at) << 32 | get32(at + 4);
}

static void put16(uint8_t *at, unsigned value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value & 0xffff);
}

uint32_t ndtest_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    /* The remainders of the 16 nibbles under the reflected polynomial 0x82f63b78. */
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const uint8_t *at = data;

    crc = ~crc;
    while (bytes-- != 0) {
        crc ^= *at++;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return ~crc;
}

/* Finds the UDP header. Returns its offset, or 0; *end is where the IP packet ends. */
static size_t find_udp(const uint8_t *frame, size_t bytes, size_t *end)
{
    if (bytes < NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES) {
        return 0;
    }
    if (get16(frame + 12) == 0x0800) {
        const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
        size_t header = (size_t)(ip[0] & 15) * 4;
        size_t total = get16(ip + 2);

        if (ip[0] >> 4 != 4 || header < 20 || ip[9] != 17 || (get16(ip + 6) & 0x3fff) != 0 ||
            total < header + NETDAM_UDP_BYTES || total > bytes - NETDAM_ETHERNET_BYTES) {
            return 0;
        }
        *end = NETDAM_ETHERNET_BYTES + total;
        return NETDAM_ETHERNET_BYTES + header;
    }
    if (get16(frame + 12) == 0x86dd && bytes >= NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES + NETDAM_UDP_BYTES) {
        const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
        size_t length = get16(ip + 4);

        if (ip[0] >> 4 != 6 || ip[6] != 17 || length < NETDAM_UDP_BYTES ||
            length > bytes - NETDAM_ETHERNET_BYTES - NETDAM_IPV6_BYTES) {
            return 0;
        }
        *end = NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES + length;
        return NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES;
    }
    return 0;
}

static size_t segment_bytes(unsigned node_form)
{
    switch (node_form) {
    case NETDAM_NODE_FORM_IMPLICIT:
        return 32;
    case NETDAM_NODE_FORM_IPV4:
        return 40;
    case NETDAM_NODE_FORM_IPV6:
        return 56;
    default:
        return 0;
    }
}

/* Bytes from the NetDAM header to the payload, or 0 where the header does not tell. */
static size_t header_bytes(const uint8_t *header, size_t left)
{
    size_t bytes = 32;
    unsigned flags;

    if (left < 64) {
        return 0;
    }
    flags = get16(header + 2);
    bytes += (flags & NETDAM_FLAG_IMMEDIATE) != 0 ? 8 : 0;
    bytes += (flags & NETDAM_FLAG_TENANT) != 0 ? 48 : 0;
    if (header[1] == NETDAM_KIND_REQUEST) {
        if (segment_bytes(header[6]) == 0 || header[4] == 0) {
            return 0;
        }
        bytes += segment_bytes(header[6]) - 32 + header[4] * segment_bytes(header[6]);
    } else if (header[1] == NETDAM_KIND_RESPONSE) {
        bytes += 32;
    } else {
        return 0;
    }
    return bytes <= left ? bytes : 0;
}

bool ndtest_packet_read(const uint8_t *frame, size_t bytes, uint16_t udp_port, struct ndtest_packet *packet)
{
    size_t end;
    size_t udp = find_udp(frame, bytes, &end);
    const uint8_t *header;
    const uint8_t *body;
    size_t left;
    size_t covered;
    unsigned flags;
    size_t payload;
    size_t crc;

    memset(packet, 0, sizeof(*packet));
    if (udp == 0 || get16(frame + udp + 4) != end - udp) {
        return false;
    }
    header = frame + udp + NETDAM_UDP_BYTES;
    left = end - udp - NETDAM_UDP_BYTES;
    covered = header_bytes(header, left);
    if (covered == 0 || header[0] != NETDAM_WIRE_VERSION ||
        get16(frame + udp + 2) - (unsigned)udp_port >= (header[1] == NETDAM_KIND_RESPONSE ? NDTEST_PATHS : 1u)) {
        return false;
    }
    flags = get16(header + 2);
    payload = get16(header + 24);
    crc = (flags & NETDAM_FLAG_PAYLOAD_CRC) != 0 && payload != 0 ? NETDAM_CRC_BYTES : 0;
    if (get16(header + 26) != covered || covered + payload + crc != left) {
        return false;
    }
    packet->from_port = (uint16_t)get16(frame + udp);
    packet->to_port = (uint16_t)get16(frame + udp + 2);
    packet->kind = header[1];
    packet->status = header[7];
    packet->flags = (uint16_t)flags;
    packet->segment_count = header[4];
    packet->segment_index = header[5];
    packet->node_form = header[6];
    packet->context = get64(header + 8);
    packet->number = get48(header + 16);
    packet->distance = (uint16_t)get16(header + 22);
    packet->payload_bytes = (uint32_t)payload;
    packet->payload = header + covered;
    packet->header = header;
    packet->header_bytes = covered;
    packet->immediate = (flags & NETDAM_FLAG_IMMEDIATE) != 0 ? get64(header + 32) : 0;
    body = header + 32 + ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? 8 : 0) + ((flags & NETDAM_FLAG_TENANT) != 0 ? 48 : 0);
    if (packet->kind == NETDAM_KIND_REQUEST) {
        packet->segments = body + segment_bytes(header[6]) - 32;
        if (packet->segment_index >= packet->segment_count) {
            return false;
        }
        body = packet->segments + packet->segment_index * segment_bytes(header[6]);
    }
    packet->opcode = body[0];
    packet->operation = body[1];
    packet->type = body[2];
    packet->length = get32(body + 4);
    if (packet->kind == NETDAM_KIND_REQUEST) {
        packet->key = get64(body + 8);
        packet->address = get64(body + 16);
        packet->generation = get64(body + 24);
    } else {
        packet->generation = get64(body + 8);
        packet->echo = get64(body + 16);
        packet->floor = get48(body + 24);
    }
    return true;
}

static uint32_t sum16(uint32_t sum, const uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        sum += get16(at + i);
    }
    if ((bytes & 1) != 0) {
        sum += (uint32_t)at[bytes - 1] << 8;
    }
    return sum;
}

static unsigned fold(uint32_t sum)
{
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (unsigned)(~sum & 0xffff);
}

bool ndtest_frame_repair(uint8_t *frame, size_t bytes, bool lengths)
{
    uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    size_t end;
    size_t udp;
    uint8_t *header;
    size_t left;
    size_t covered;
    uint32_t sum;
    bool netdam = false;
    bool v4;

    if (bytes < NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES) {
        return false;
    }
    v4 = get16(frame + 12) == 0x0800;
    if (lengths && v4 && bytes <= UINT16_MAX) {
        put16(ip + 2, (unsigned)(bytes - NETDAM_ETHERNET_BYTES));
    } else if (lengths && !v4 && bytes > NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES && bytes <= UINT16_MAX) {
        put16(ip + 4, (unsigned)(bytes - NETDAM_ETHERNET_BYTES - NETDAM_IPV6_BYTES));
    }
    udp = find_udp(frame, bytes, &end);
    if (v4) {
        size_t ip_bytes = (size_t)(ip[0] & 15) * 4;

        if (ip_bytes >= 20 && NETDAM_ETHERNET_BYTES + ip_bytes <= bytes) {
            put16(ip + 10, 0);
            put16(ip + 10, fold(sum16(0, ip, ip_bytes)));
        }
    }
    if (udp == 0) {
        return false;
    }
    if (lengths) {
        put16(frame + udp + 4, (unsigned)(end - udp));
    }
    header = frame + udp + NETDAM_UDP_BYTES;
    left = end - udp - NETDAM_UDP_BYTES;
    covered = header_bytes(header, left);
    if (covered != 0) {
        size_t payload = get16(header + 24);

        netdam = true;
        if ((get16(header + 2) & NETDAM_FLAG_PAYLOAD_CRC) != 0 && payload != 0 &&
            covered + payload + NETDAM_CRC_BYTES <= left) {
            put32(header + covered + payload, ndtest_crc32c(0, header + covered, payload));
        }
        if (lengths) {
            put16(header + 26, (unsigned)covered);
        }
    }
    /* header_crc is what header_length says, whether or not the rest makes sense. */
    if (left >= 32 && get16(header + 26) >= 32 && get16(header + 26) <= left) {
        put32(header + 28, 0);
        put32(header + 28, ndtest_crc32c(0, header, get16(header + 26)));
    }
    put16(frame + udp + 6, 0);
    sum = v4 ? sum16(0, ip + 12, 8) : sum16(0, ip + 8, 32);
    sum += 17 + (uint32_t)(end - udp);
    sum = fold(sum16(sum, frame + udp, end - udp));
    put16(frame + udp + 6, sum == 0 ? 0xffff : sum);
    return netdam;
}
