/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: decoding NetDAM packets with every check of form, and building the headers of outgoing ones. */
#include "ndfw.h"

#include "checksum.h"
#include "shared.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_UDP   17
#define TIME_TO_LIVE   64

/* A tenant's tag covers the payload: both do not go together. */
#define TENANT_OR_CRC ((unsigned)NETDAM_FLAG_TENANT | (unsigned)NETDAM_FLAG_PAYLOAD_CRC)

static uint32_t extension_bytes(unsigned flags)
{
    return ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? (uint32_t)sizeof(struct netdam_wire_immediate) : 0u) +
           ((flags & NETDAM_FLAG_TENANT) != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0u);
}

uint32_t ndfw_node_bytes(unsigned node_form)
{
    switch (node_form) {
    case NETDAM_NODE_FORM_IPV4:
        return sizeof(struct netdam_wire_node_ipv4);
    case NETDAM_NODE_FORM_IPV6:
        return sizeof(struct netdam_wire_node_ipv6);
    default:
        return 0;
    }
}

/* Not who is meant by it, and not that it is whole: enough that no other program's packet is taken for one. */
bool ndfw_looks_like_answer(const uint8_t *datagram, size_t bytes)
{
    struct netdam_wire_header header;

    if (bytes < sizeof(header)) {
        return false;
    }
    memcpy(&header, datagram, sizeof(header));
    return header.version == NETDAM_WIRE_VERSION && header.kind == NETDAM_KIND_RESPONSE && header.node_form == 0 &&
           netdam_be16_get(header.header_length) ==
               sizeof(header) + extension_bytes(netdam_be16_get(header.flags)) + sizeof(struct netdam_wire_answer);
}

static enum ndfw_decoded drop(enum netdam_counter *counter, enum netdam_counter why)
{
    *counter = why;
    return NDFW_DECODED_DROP;
}

static enum ndfw_decoded refuse(struct ndfw_packet *packet, enum netdam_status why)
{
    packet->status = (uint8_t)why;
    return NDFW_DECODED_REFUSE;
}

static void decode_answer(struct ndfw_packet *packet, const uint8_t *body)
{
    struct netdam_wire_answer answer;

    memcpy(&answer, body, sizeof(answer));
    packet->opcode = answer.opcode;
    packet->operation = answer.operation;
    packet->type = answer.type;
    packet->hop = answer.hop;
    packet->length = netdam_be32_get(answer.length);
    packet->generation = netdam_be64_get(answer.generation);
    packet->echo = netdam_be64_get(answer.echo);
    packet->floor = netdam_be48_get(answer.floor);
}

/* Returns false if a reserved byte is not 0. */
static bool decode_segment(struct ndfw_packet *packet, const uint8_t *body)
{
    struct netdam_wire_segment segment;

    memcpy(&segment, body, sizeof(segment));
    packet->opcode = segment.opcode;
    packet->operation = segment.operation;
    packet->type = segment.type;
    packet->length = netdam_be32_get(segment.length);
    packet->key = netdam_be64_get(segment.key);
    packet->address = netdam_be64_get(segment.address);
    packet->generation = netdam_be64_get(segment.generation);
    return segment.reserved == 0;
}

enum ndfw_decoded ndfw_decode(struct ndfw *fw, const uint8_t *datagram, size_t bytes, struct ndfw_packet *packet,
                              enum netdam_counter *counter)
{
    struct netdam_wire_header header;
    size_t header_length, expected, body;
    uint32_t node_bytes;
    bool request, has_crc;

    if (bytes < sizeof(header)) {
        return drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }
    memcpy(&header, datagram, sizeof(header));
    header_length = netdam_be16_get(header.header_length);
    if (header_length < sizeof(header) || header_length > bytes) {
        return drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }
    ndfw_shared_need(fw, datagram + header_length);
    if (ndfw_crc32c_header(fw, datagram, header_length) != netdam_be32_get(header.header_crc)) {
        return drop(counter, NETDAM_COUNTER_RX_HEADER_CRC);
    }
    if (header.kind != NETDAM_KIND_REQUEST && header.kind != NETDAM_KIND_RESPONSE) {
        return drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }

    request = header.kind == NETDAM_KIND_REQUEST;
    packet->kind = header.kind;
    packet->status = header.status;
    packet->flags = netdam_be16_get(header.flags);
    packet->segment_count = header.segment_count;
    packet->hop = header.segment_index;
    packet->node_form = header.node_form;
    packet->datagram = datagram;
    packet->header_length = (uint32_t)header_length;
    packet->context = netdam_be64_get(header.context);
    packet->number = netdam_be48_get(header.number);
    packet->distance = netdam_be16_get(header.distance);
    packet->payload_length = netdam_be16_get(header.payload_length);
    packet->payload = packet->newcomer = NULL;
    packet->tenant = 0;
    packet->lanes = 0;
    packet->opcode = packet->operation = packet->type = 0;
    packet->length = 0;
    packet->key = packet->address = packet->generation = packet->echo = packet->floor = packet->immediate = 0;

    if (header.version != NETDAM_WIRE_VERSION) {
        return request ? refuse(packet, NETDAM_STATUS_BAD_VERSION) : drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }
    if ((packet->flags & NETDAM_FLAG_TENANT) != 0) {
        ndfw_shared_whole(fw);
    }
    if ((packet->flags & NETDAM_FLAG_TENANT) != 0 && !ndfw_tenant_open(fw, datagram, bytes, packet, counter)) {
        return NDFW_DECODED_DROP;
    }
    if ((packet->flags & ~netdam_flags_defined(header.kind)) != 0 || (request && header.status != 0) ||
        (packet->flags & TENANT_OR_CRC) == TENANT_OR_CRC) {
        return request ? refuse(packet, NETDAM_STATUS_BAD_FLAGS) : drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }
    node_bytes = ndfw_node_bytes(header.node_form);
    if (request &&
        (header.segment_count == 0 || header.segment_count > NETDAM_SEGMENTS_MAX ||
         header.segment_index >= header.segment_count ||
         (node_bytes == 0 && (header.node_form != NETDAM_NODE_FORM_IMPLICIT || header.segment_count != 1)))) {
        return refuse(packet, NETDAM_STATUS_BAD_SEGMENTS);
    }

    body = sizeof(header) + extension_bytes(packet->flags) + (request ? node_bytes : 0u);
    expected = body + (request ? header.segment_count * (sizeof(struct netdam_wire_segment) + node_bytes)
                               : sizeof(struct netdam_wire_answer));
    has_crc = (packet->flags & NETDAM_FLAG_PAYLOAD_CRC) != 0 && packet->payload_length != 0;
    if (header_length != expected || bytes != expected + packet->payload_length + (has_crc ? NETDAM_CRC_BYTES : 0u)) {
        return drop(counter, NETDAM_COUNTER_RX_MALFORMED);
    }
    packet->segments = datagram + body;
    packet->payload = packet->tenant != 0 ? packet->payload : ndfw_shared_payload(fw, datagram + expected);
    if (has_crc) {
        netdam_be32 crc;

        memcpy(&crc, packet->payload + packet->payload_length, sizeof(crc));
        if (ndfw_crc32c(fw, 0, packet->payload, packet->payload_length) != netdam_be32_get(crc)) {
            return drop(counter, NETDAM_COUNTER_RX_PAYLOAD_CRC);
        }
    }
    if ((packet->flags & NETDAM_FLAG_IMMEDIATE) != 0) {
        struct netdam_wire_immediate immediate;

        memcpy(&immediate, datagram + sizeof(header), sizeof(immediate));
        packet->immediate = netdam_be64_get(immediate.value);
    }
    if (!request) {
        decode_answer(packet, datagram + body);
    } else if (!decode_segment(packet, packet->segments +
                                           header.segment_index * (sizeof(struct netdam_wire_segment) + node_bytes))) {
        return refuse(packet, NETDAM_STATUS_BAD_SEGMENTS);
    }
    if ((netdam_op_flags(packet->opcode) & NETDAM_OPF_ENTRIES) != 0 && packet->tenant == 0) {
        ndfw_shared_whole(fw); /* a payload that says where and how much */
        packet->payload = datagram + expected;
    }
    return NDFW_DECODED_OK;
}

/*
 * What goes with what: immediates with WRITE and SEND; at most one way of delivery, and only for what modifies memory;
 * without a lane nothing can be returned exactly once, and RELAXED asks for an operation that may be repeated.
 */
bool ndfw_flags_suit(unsigned flags, unsigned opcode, unsigned operation, unsigned type)
{
    unsigned op_flags = netdam_op_flags(opcode);
    unsigned delivery = flags & (NETDAM_FLAG_RELAXED | NETDAM_FLAG_ORDERED | NETDAM_FLAG_UNRELIABLE);

    if ((flags & NETDAM_FLAG_IMMEDIATE) != 0 && opcode != NETDAM_OP_WRITE && opcode != NETDAM_OP_SEND) {
        return false;
    }
    /* An accumulation takes operands as they come: only where their order does not matter, the sum is the same. */
    if ((flags & NETDAM_FLAG_REPRODUCIBLE) != 0 && (op_flags & NETDAM_OPF_MODIFIES) != 0 &&
        (op_flags & NETDAM_OPF_ALU) != 0 &&
        ((unsigned)netdam_algebra(opcode, operation, type) & NETDAM_ALG_ASSOCIATES) == 0) {
        return false;
    }
    if (delivery == 0) {
        return true;
    }
    if ((delivery & (delivery - 1)) != 0 || (op_flags & NETDAM_OPF_MODIFIES) == 0) {
        return false;
    }
    if (delivery == NETDAM_FLAG_ORDERED) {
        return true;
    }
    if ((op_flags & (NETDAM_OPF_ATOMIC | NETDAM_OPF_RETURNS | NETDAM_OPF_ENTRIES)) != 0) {
        return false;
    }
    return delivery == NETDAM_FLAG_UNRELIABLE ||
           ((flags & NETDAM_FLAG_IMMEDIATE) == 0 &&
            ((unsigned)netdam_algebra(opcode, operation, type) & NETDAM_ALG_IDEMPOTENT) != 0);
}

static bool executes(const struct ndfw_packet *packet)
{
    switch (packet->opcode) {
    case NETDAM_OP_ECHO:
    case NETDAM_OP_CONFIRM:
    case NETDAM_OP_READ:
    case NETDAM_OP_WRITE:
    case NETDAM_OP_SEND:
    case NETDAM_OP_TRANSACTION:
    case NETDAM_OP_FETCH_ADD:
    case NETDAM_OP_CAS:
    case NETDAM_OP_SWAP:
    case NETDAM_OP_LOAD:
    case NETDAM_OP_COMPARE:
    case NETDAM_OP_FORWARD:
        return true;
    case NETDAM_OP_REDUCE:
    case NETDAM_OP_FETCH_OP:
    case NETDAM_OP_LOAD_REDUCE:
        return ndfw_alu_executes(packet->operation, packet->type);
    default:
        return false;
    }
}

static bool length_agrees(const struct ndfw_packet *packet)
{
    unsigned flags = netdam_op_flags(packet->opcode);
    uint32_t element = netdam_type_bytes(packet->type);

    if (packet->node_form != NETDAM_NODE_FORM_IMPLICIT) {
        return true; /* hop.c looks at the list as a whole */
    }
    if ((flags & NETDAM_OPF_ATOMIC) != 0) {
        uint32_t operands = packet->opcode == NETDAM_OP_CAS ? NETDAM_CAS_OPERANDS : NETDAM_ATOMIC_OPERANDS;

        return packet->length == element && packet->payload_length == operands * element;
    }
    if ((flags & NETDAM_OPF_ENTRIES) != 0) {
        return packet->length == packet->payload_length && ndfw_transaction_is_whole(packet);
    }
    if ((flags & NETDAM_OPF_PAYLOAD) != 0) {
        return packet->length == packet->payload_length && netdam_is_whole(packet->length, packet->type);
    }
    if (packet->opcode == NETDAM_OP_CONFIRM && packet->length != 0) {
        return false;
    }
    return packet->payload_length == 0;
}

enum netdam_status ndfw_check_instruction(const struct ndfw_packet *packet)
{
    if (!netdam_op_is_defined(packet->opcode) || (netdam_op_flags(packet->opcode) & NETDAM_OPF_DEVICE) != 0) {
        return NETDAM_STATUS_BAD_OPCODE;
    }
    if (!netdam_alu_is_defined(packet->operation) ||
        (packet->operation != NETDAM_ALU_NONE) != ((netdam_op_flags(packet->opcode) & NETDAM_OPF_ALU) != 0)) {
        return NETDAM_STATUS_BAD_OPERATION;
    }
    if (netdam_algebra(packet->opcode, packet->operation, packet->type) < 0) {
        return NETDAM_STATUS_BAD_TYPE;
    }
    if (!ndfw_flags_suit(packet->flags, packet->opcode, packet->operation, packet->type)) {
        return NETDAM_STATUS_BAD_FLAGS;
    }
    if (!executes(packet)) {
        return NETDAM_STATUS_UNSUPPORTED;
    }
    return length_agrees(packet) ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_LENGTH;
}

uint8_t *ndfw_transmit_begin(struct ndfw *fw, bool loopback, size_t bytes)
{
    fw->transmit_loopback = loopback;
    if (!loopback) {
        uint8_t *frame = fw->platform.transmit_begin(fw->platform.opaque, bytes);

        fw->port_full = frame == NULL;
        return ndfw_shared_transmit(fw, frame);
    }
    /* Requests leave half of the places to the answers that they will cause. */
    if (fw->loopback_tail - fw->loopback_head >= (fw->draining ? NDFW_LOOPBACK_SLOTS : NDFW_LOOPBACK_SLOTS / 2)) {
        return NULL;
    }
    return fw->loopback + (size_t)(fw->loopback_tail % NDFW_LOOPBACK_SLOTS) * NDFW_FRAME_MAX;
}

void ndfw_transmit_end(struct ndfw *fw, size_t bytes)
{
    fw->work_bytes += bytes;
    if (fw->transmit_loopback) {
        fw->loopback_bytes[fw->loopback_tail % NDFW_LOOPBACK_SLOTS] = (uint32_t)bytes;
        fw->loopback_tail++;
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_TX_FRAMES, 1);
    ndfw_count(fw, NETDAM_COUNTER_TX_BYTES, bytes);
    ndfw_shared_transmitted(fw, bytes);
    fw->platform.transmit_end(fw->platform.opaque, bytes);
}

static uint32_t ip_bytes(const struct ndfw_endpoint *to)
{
    return to->family == 6 ? NETDAM_IPV6_BYTES : NETDAM_IPV4_BYTES;
}

uint8_t *ndfw_frame_begin(struct ndfw *fw, const struct ndfw_endpoint *to, uint32_t path, uint32_t datagram_bytes)
{
    uint32_t udp_bytes = NETDAM_UDP_BYTES + datagram_bytes;
    uint32_t bytes = NETDAM_ETHERNET_BYTES + ip_bytes(to) + udp_bytes;
    uint8_t *frame = ndfw_transmit_begin(fw, ndfw_is_self(fw, to), bytes);
    uint8_t *ip, *udp;

    if (frame == NULL) {
        return NULL;
    }
    memcpy(frame, to->mac, 6);
    memcpy(frame + 6, fw->config.mac, 6);
    ndfw_put16(frame + 12, to->family == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
    ip = frame + NETDAM_ETHERNET_BYTES;
    if (to->family == 6) {
        memset(ip, 0, NETDAM_IPV6_BYTES);
        ip[0] = 0x60;
        ndfw_put16(ip + 4, udp_bytes);
        ip[6] = PROTOCOL_UDP;
        ip[7] = TIME_TO_LIVE;
        memcpy(ip + 8, fw->config.ipv6, 16);
        memcpy(ip + 24, to->address, 16);
    } else {
        memset(ip, 0, NETDAM_IPV4_BYTES);
        ip[0] = 0x45;
        ndfw_put16(ip + 2, NETDAM_IPV4_BYTES + udp_bytes);
        ndfw_put16(ip + 6, 0x4000); /* do not fragment */
        ip[8] = TIME_TO_LIVE;
        ip[9] = PROTOCOL_UDP;
        memcpy(ip + 12, fw->config.ipv4, 4);
        memcpy(ip + 16, to->address, 4);
        /* Of what has just been stored, but from where it came: reading it back at another width would have to wait. */
        ndfw_put16(ip + 10, ndfw_checksum_fold(
                                ndfw_checksum_add(ndfw_checksum_add(0x4500u + NETDAM_IPV4_BYTES + udp_bytes + 0x4000u +
                                                                        ((unsigned)TIME_TO_LIVE << 8 | PROTOCOL_UDP),
                                                                    fw->config.ipv4, 4),
                                                  to->address, 4)));
    }
    udp = ip + ip_bytes(to);
    ndfw_put16(udp, fw->config.udp_port + path);
    ndfw_put16(udp + 2, to->port);
    ndfw_put16(udp + 4, udp_bytes);
    ndfw_put16(udp + 6, 0);
    return udp + NETDAM_UDP_BYTES;
}

void ndfw_frame_end(struct ndfw *fw, const struct ndfw_endpoint *to, uint32_t datagram_bytes)
{
    ndfw_transmit_end(fw, NETDAM_ETHERNET_BYTES + ip_bytes(to) + NETDAM_UDP_BYTES + datagram_bytes);
}

uint16_t ndfw_checksum_ipv6(const uint8_t *ip, unsigned protocol, const uint8_t *data, size_t bytes)
{
    return ndfw_checksum_fold(ndfw_checksum_add(ndfw_checksum_add(protocol + bytes, ip + 8, 32), data, bytes));
}

/* Over IPv4 the UDP checksum stays 0: header and payload have CRCs. Over IPv6 it must not be 0. */
static void seal_udp(uint8_t *datagram, uint32_t datagram_bytes)
{
    uint8_t *udp = datagram - NETDAM_UDP_BYTES;
    uint16_t folded = ndfw_checksum_ipv6(udp - NETDAM_IPV6_BYTES, PROTOCOL_UDP, udp, NETDAM_UDP_BYTES + datagram_bytes);

    ndfw_put16(udp + 6, folded == 0 ? 0xffffu : folded);
}

bool ndfw_has_crc(const struct ndfw *fw, uint32_t payload_length, uint32_t tenant)
{
    return payload_length != 0 && !fw->config.no_payload_crc && tenant == 0;
}

uint32_t ndfw_datagram_bytes(const struct ndfw *fw, uint32_t payload_length, bool immediate, uint32_t tenant)
{
    NETDAM_STATIC_ASSERT(sizeof(struct netdam_wire_segment) == sizeof(struct netdam_wire_answer),
                         "requests and answers of one segment have the same overhead");
    return (uint32_t)(sizeof(struct netdam_wire_header) + sizeof(struct netdam_wire_segment)) + payload_length +
           (ndfw_has_crc(fw, payload_length, tenant) ? NETDAM_CRC_BYTES : 0u) +
           (immediate ? (uint32_t)sizeof(struct netdam_wire_immediate) : 0u) +
           (tenant != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0u);
}

void ndfw_seal(struct ndfw *fw, const struct ndfw_endpoint *to, uint8_t *datagram, uint32_t datagram_bytes)
{
    /* Where others can write to the frame it may be anything by now: read once, what is checked is what is used. */
    const volatile uint8_t *at = datagram + offsetof(struct netdam_wire_header, header_length);
    uint32_t header_length;
    netdam_be32 crc;

    ndfw_tenant_seal(fw, to, datagram);
    header_length = (uint32_t)at[0] << 8;
    header_length |= at[1];
    if (header_length > datagram_bytes || header_length < sizeof(struct netdam_wire_header)) {
        header_length = sizeof(struct netdam_wire_header);
    }
    crc = netdam_be32_make(ndfw_crc32c_header(fw, datagram, header_length));
    memcpy(datagram + offsetof(struct netdam_wire_header, header_crc), &crc, sizeof(crc));
    if (to->family == 6) {
        seal_udp(datagram, datagram_bytes);
    }
}
