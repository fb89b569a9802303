/* SPDX-License-Identifier: BSD-3-Clause */
/* Below NetDAM: what arrives as Ethernet, IP and UDP, with every check of these headers. */
#include "ndfw.h"

#include "checksum.h"
#include "path.h"
#include "shared.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_ICMP  1
#define PROTOCOL_UDP   17
#define PROTOCOL_ICMP6 58

void ndfw_dropped(struct ndfw *fw, enum netdam_counter counter, size_t bytes)
{
    ndfw_count(fw, counter, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_RX_ERR_DROP, counter, bytes, 0);
}

/* Requests come to the own port, answers also to those that requests went out by, which other programs may use too. */
static bool is_ours(const struct ndfw *fw, const uint8_t *udp, size_t bytes)
{
    uint32_t port = ndfw_get16(udp + 2);

    return port == fw->config.udp_port ||
           (ndfw_is_own_port(fw, port) && ndfw_looks_like_answer(udp + NETDAM_UDP_BYTES, bytes - NETDAM_UDP_BYTES));
}

/*
 * `udp` has `bytes` bytes up to the end that IP names; `pseudo` is the sum of the pseudo-header. Of the packet, address
 * and link-layer address of the sender are filled in.
 */
static enum ndfw_taken receive_udp(struct ndfw *fw, struct ndfw_packet *packet, const uint8_t *udp, size_t bytes,
                                   uint64_t pseudo)
{
    enum netdam_counter counter;

    if (bytes < NETDAM_UDP_BYTES || !is_ours(fw, udp, bytes)) {
        return NDFW_TAKEN_NOT;
    }
    if (ndfw_get16(udp + 4) != bytes) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    if (ndfw_get16(udp + 6) != 0) {
        ndfw_shared_whole(fw);
    }
    if (ndfw_get16(udp + 6) == 0 ? packet->from.family == 6
                                 : ndfw_checksum_fold(ndfw_checksum_add(pseudo, udp, bytes)) != 0) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_CHECKSUM, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    packet->from.port = (uint16_t)ndfw_get16(udp);
    packet->to_port = ndfw_get16(udp + 2);
    switch (ndfw_decode(fw, udp + NETDAM_UDP_BYTES, bytes - NETDAM_UDP_BYTES, packet, &counter)) {
    case NDFW_DECODED_DROP:
        ndfw_dropped(fw, counter, bytes);
        break;
    case NDFW_DECODED_REFUSE:
        ndfw_refuse(fw, packet, (enum netdam_status)packet->status);
        break;
    case NDFW_DECODED_OK:
        fw->work_bytes += bytes;
        if (!ndfw_tenant_admit(fw, packet)) {
            break;
        }
        if (packet->kind == NETDAM_KIND_REQUEST) {
            ndfw_trace(fw, NETDAM_FW_TRACE_RX_REQUEST, packet->opcode, packet->context, packet->number);
            ndfw_respond(fw, packet);
        } else {
            ndfw_trace(fw, NETDAM_FW_TRACE_RX_RESPONSE, packet->status, packet->context, packet->number);
            ndfw_peer_receive(fw, packet);
        }
        break;
    }
    return NDFW_TAKEN_DEVICE;
}

static enum ndfw_taken receive_ipv4(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    struct ndfw_packet packet;
    size_t header, length;

    if (bytes < NETDAM_IPV4_BYTES || ip[0] >> 4 != 4) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    header = (size_t)(ip[0] & 15) * 4;
    length = ndfw_get16(ip + 2);
    if (header < NETDAM_IPV4_BYTES || length < header || length > bytes) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    if (ndfw_checksum_fold(ndfw_checksum_add(0, ip, header)) != 0) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_CHECKSUM, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    /* Somebody else's, or a fragment. */
    if (memcmp(ip + 16, fw->config.ipv4, 4) != 0 || ndfw_is_zero(fw->config.ipv4, 4) ||
        (ndfw_get16(ip + 6) & 0x3fff) != 0) {
        return NDFW_TAKEN_NOT;
    }
    /* From an address that no answer can be sent to. */
    if (ip[12] == 0 || ip[12] >= 224) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    if (ip[9] == PROTOCOL_ICMP) {
        ndfw_shared_whole(fw);
        return ndfw_ping_receive(fw, frame, length);
    }
    if (ip[9] != PROTOCOL_UDP) {
        return NDFW_TAKEN_NOT;
    }
    packet.from = (struct ndfw_endpoint){.family = 4};
    memcpy(packet.from.mac, frame + 6, 6);
    memcpy(packet.from.address, ip + 12, 4);
    return receive_udp(fw, &packet, ip + header, length - header,
                       ndfw_checksum_add(PROTOCOL_UDP + length - header, ip + 12, 8));
}

static enum ndfw_taken receive_ipv6(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    struct ndfw_packet packet;
    size_t length;

    if (bytes < NETDAM_IPV6_BYTES || ip[0] >> 4 != 6 || ndfw_get16(ip + 4) > bytes - NETDAM_IPV6_BYTES) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    length = ndfw_get16(ip + 4);
    if (ip[6] == PROTOCOL_ICMP6 && !ndfw_is_zero(fw->config.ipv6, 16)) {
        ndfw_shared_whole(fw);
        return ndfw_icmpv6_receive(fw, frame, ip + NETDAM_IPV6_BYTES, length);
    }
    if (ip[6] != PROTOCOL_UDP || memcmp(ip + 24, fw->config.ipv6, 16) != 0 || ndfw_is_zero(fw->config.ipv6, 16)) {
        return NDFW_TAKEN_NOT;
    }
    if (ndfw_is_zero(ip + 8, 16) || ip[8] == 0xff) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    packet.from = (struct ndfw_endpoint){.family = 6};
    memcpy(packet.from.mac, frame + 6, 6);
    memcpy(packet.from.address, ip + 8, 16);
    return receive_udp(fw, &packet, ip + NETDAM_IPV6_BYTES, length,
                       ndfw_checksum_add(PROTOCOL_UDP + length, ip + 8, 32));
}

void ndfw_net_receive(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *packet = frame + NETDAM_ETHERNET_BYTES;
    enum ndfw_taken taken = NDFW_TAKEN_NOT;
    size_t length;
    bool own_mac;

    if (bytes < NETDAM_ETHERNET_BYTES || bytes > NDFW_FRAME_MAX) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    length = bytes - NETDAM_ETHERNET_BYTES;
    own_mac = (frame[0] & 1) != 0 || ndfw_is_same_mac(frame, fw->config.mac);
    switch (own_mac ? ndfw_get16(frame + 12) : 0) {
    case ETHERTYPE_ARP:
        taken = ndfw_arp_receive(fw, packet, length);
        break;
    case ETHERTYPE_IPV4:
        taken = receive_ipv4(fw, frame, length);
        break;
    case ETHERTYPE_IPV6:
        taken = receive_ipv6(fw, frame, length);
        break;
    default:
        break;
    }
    if (taken != NDFW_TAKEN_DEVICE) {
        ndfw_shared_whole(fw);
        ndfw_raw_receive(fw, frame, bytes, own_mac, taken == NDFW_TAKEN_BOTH);
    }
}
