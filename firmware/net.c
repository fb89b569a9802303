/* SPDX-License-Identifier: BSD-3-Clause */
/* Below NetDAM: Ethernet, ARP, IP and UDP headers, ping, neighbours. */
#include "ndfw.h"

#include "checksum.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_ARP  0x0806
#define ETHERTYPE_IPV6 0x86dd
#define PROTOCOL_ICMP  1
#define PROTOCOL_UDP   17
#define ARP_BYTES      28
#define ARP_REQUEST    1
#define ARP_REPLY      2
#define ICMP_BYTES     8
#define ICMP_ECHO      8

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
/* Ethernet, IPv4, addresses of 6 and 4 bytes. */
static const uint8_t arp_fixed[6] = {0, 1, 8, 0, 6, 4};

static unsigned get16(const uint8_t *from)
{
    return (unsigned)from[0] << 8 | from[1];
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    uint8_t all = 0;

    for (size_t i = 0; i < count; i++) {
        all |= bytes[i];
    }
    return all == 0;
}

static size_t address_bytes(unsigned family)
{
    return family == 6 ? 16 : 4;
}

static const uint8_t *own_address(const struct ndfw *fw, unsigned family)
{
    return family == 6 ? fw->config.ipv6 : fw->config.ipv4;
}

bool ndfw_is_self(const struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    return endpoint->port == fw->config.udp_port &&
           memcmp(endpoint->address, own_address(fw, endpoint->family), address_bytes(endpoint->family)) == 0;
}

static struct ndfw_neighbour *find_neighbour(const struct ndfw *fw, unsigned family, const uint8_t *address)
{
    for (uint32_t i = 0; i < fw->config.neighbours; i++) {
        struct ndfw_neighbour *neighbour = &fw->neighbours[i];

        if (neighbour->state != NDFW_NEIGHBOUR_FREE && neighbour->family == family &&
            memcmp(neighbour->address, address, address_bytes(family)) == 0) {
            return neighbour;
        }
    }
    return NULL;
}

/* Who is asked for on the link: the peer, or the gateway if the peer lies outside the own prefix. */
static const uint8_t *next_hop(const struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    netdam_be32 own, other;
    uint32_t mask;

    if (endpoint->family == 6 || is_zero(fw->config.ipv4_gateway, 4)) {
        return endpoint->address;
    }
    memcpy(&own, fw->config.ipv4, sizeof(own));
    memcpy(&other, endpoint->address, sizeof(other));
    mask = fw->config.ipv4_prefix == 0 ? 0 : UINT32_MAX << (32 - fw->config.ipv4_prefix);
    return ((netdam_be32_get(own) ^ netdam_be32_get(other)) & mask) == 0 ? endpoint->address
                                                                          : fw->config.ipv4_gateway;
}

bool ndfw_net_resolve(struct ndfw *fw, struct ndfw_endpoint *endpoint)
{
    const struct ndfw_neighbour *neighbour;

    if (ndfw_is_self(fw, endpoint)) {
        memcpy(endpoint->mac, fw->config.mac, 6);
        return true;
    }
    neighbour = find_neighbour(fw, endpoint->family, next_hop(fw, endpoint));
    if (neighbour == NULL) {
        return false;
    }
    memcpy(endpoint->mac, neighbour->mac, 6);
    return true;
}

/* Peers keep their own copy of the link-layer address: let them know a new one. An old one stays good enough. */
static void update_peers(struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        if (fw->peers[i].in_use && ndfw_net_resolve(fw, &fw->peers[i].endpoint)) {
            fw->peers[i].resolved = true;
        }
    }
}

bool ndfw_net_set_neighbour(struct ndfw *fw, uint8_t family, const uint8_t *address, const uint8_t *mac, bool fixed)
{
    struct ndfw_neighbour *neighbour = find_neighbour(fw, family, address);

    if (neighbour != NULL && neighbour->state == NDFW_NEIGHBOUR_STATIC && !fixed) {
        return true;
    }
    if (neighbour != NULL && memcmp(neighbour->mac, mac, 6) == 0) {
        neighbour->state = fixed ? NDFW_NEIGHBOUR_STATIC : neighbour->state;
        return true;
    }
    for (uint32_t i = 0; neighbour == NULL && i < fw->config.neighbours; i++) {
        if (fw->neighbours[i].state == NDFW_NEIGHBOUR_FREE) {
            neighbour = &fw->neighbours[i];
        }
    }
    /* The table is full: what was learnt can be learnt again, and its peers keep their copies until then. */
    for (uint32_t i = 0; neighbour == NULL && i < fw->config.neighbours; i++) {
        uint32_t at = (uint32_t)(fw->counters[NETDAM_COUNTER_RX_FRAMES] + i) % fw->config.neighbours;

        if (fw->neighbours[at].state == NDFW_NEIGHBOUR_LEARNT) {
            neighbour = &fw->neighbours[at];
        }
    }
    if (neighbour == NULL) {
        return false;
    }
    neighbour->family = family;
    memset(neighbour->address, 0, sizeof(neighbour->address));
    memcpy(neighbour->address, address, address_bytes(family));
    memcpy(neighbour->mac, mac, 6);
    neighbour->state = fixed ? NDFW_NEIGHBOUR_STATIC : NDFW_NEIGHBOUR_LEARNT;
    update_peers(fw);
    return true;
}

static void send_arp(struct ndfw *fw, unsigned operation, const uint8_t *to_mac, const uint8_t *to_address)
{
    uint8_t *frame = ndfw_transmit_begin(fw, false, NETDAM_ETHERNET_BYTES + ARP_BYTES);
    uint8_t *arp;

    if (frame == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, operation == ARP_REPLY);
        return;
    }
    memcpy(frame, to_mac, 6);
    memcpy(frame + 6, fw->config.mac, 6);
    frame[12] = ETHERTYPE_ARP >> 8;
    frame[13] = ETHERTYPE_ARP & 0xff;
    arp = frame + NETDAM_ETHERNET_BYTES;
    memcpy(arp, arp_fixed, sizeof(arp_fixed));
    arp[6] = 0;
    arp[7] = (uint8_t)operation;
    memcpy(arp + 8, fw->config.mac, 6);
    memcpy(arp + 14, fw->config.ipv4, 4);
    if (operation == ARP_REQUEST) {
        memset(arp + 18, 0, 6);
    } else {
        memcpy(arp + 18, to_mac, 6);
    }
    memcpy(arp + 24, to_address, 4);
    ndfw_transmit_end(fw, NETDAM_ETHERNET_BYTES + ARP_BYTES);
}

void ndfw_net_solicit(struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    if (endpoint->family == 4) {
        send_arp(fw, ARP_REQUEST, broadcast, next_hop(fw, endpoint));
    }
}

static bool is_next_hop(const struct ndfw *fw, const uint8_t *address)
{
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        if (fw->peers[i].in_use && fw->peers[i].endpoint.family == 4 &&
            memcmp(next_hop(fw, &fw->peers[i].endpoint), address, 4) == 0) {
            return true;
        }
    }
    return false;
}

/* Only those that this node talks to, or that ask for it, enter the table: gossip cannot fill it. */
static void receive_arp(struct ndfw *fw, const uint8_t *arp, size_t bytes)
{
    bool for_us;

    if (bytes < ARP_BYTES || memcmp(arp, arp_fixed, sizeof(arp_fixed)) != 0 || is_zero(fw->config.ipv4, 4)) {
        ndfw_count(fw, NETDAM_COUNTER_RX_OTHER, 1);
        return;
    }
    for_us = memcmp(arp + 24, fw->config.ipv4, 4) == 0;
    if (!is_zero(arp + 14, 4) && (arp[8] & 1) == 0 && memcmp(arp + 14, fw->config.ipv4, 4) != 0 &&
        is_next_hop(fw, arp + 14)) {
        (void)ndfw_net_set_neighbour(fw, 4, arp + 14, arp + 8, false);
    }
    if (for_us && get16(arp + 6) == ARP_REQUEST) {
        ndfw_count(fw, NETDAM_COUNTER_ARP_REQUESTS, 1);
        send_arp(fw, ARP_REPLY, arp + 8, arp + 14);
    }
}

/* Answers a ping by turning the frame around. */
static void receive_ping(struct ndfw *fw, const uint8_t *frame, size_t ip_length)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    size_t header = (size_t)(ip[0] & 15) * 4;
    size_t bytes = NETDAM_ETHERNET_BYTES + ip_length;
    uint8_t *answer;
    uint16_t checksum;

    if (ip_length < header + ICMP_BYTES || ip[header] != ICMP_ECHO || ip[header + 1] != 0) {
        ndfw_count(fw, NETDAM_COUNTER_RX_OTHER, 1);
        return;
    }
    if (ndfw_checksum_fold(ndfw_checksum_add(0, ip + header, ip_length - header)) != 0) {
        ndfw_count(fw, NETDAM_COUNTER_RX_CHECKSUM, 1);
        return;
    }
    answer = ip_length > fw->config.mtu ? NULL : ndfw_transmit_begin(fw, false, bytes);
    if (answer == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, 1);
        return;
    }
    memcpy(answer, frame, bytes);
    memcpy(answer, frame + 6, 6);
    memcpy(answer + 6, fw->config.mac, 6);
    answer += NETDAM_ETHERNET_BYTES;
    memcpy(answer + 12, ip + 16, 4); /* swapping the addresses leaves the IP checksum right */
    memcpy(answer + 16, ip + 12, 4);
    answer[header] = 0;
    answer[header + 2] = answer[header + 3] = 0;
    checksum = ndfw_checksum_fold(ndfw_checksum_add(0, answer + header, ip_length - header));
    answer[header + 2] = (uint8_t)(checksum >> 8);
    answer[header + 3] = (uint8_t)checksum;
    ndfw_count(fw, NETDAM_COUNTER_PINGS, 1);
    ndfw_transmit_end(fw, bytes);
}

static void dropped(struct ndfw *fw, enum netdam_counter counter, size_t bytes)
{
    ndfw_count(fw, counter, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_RX_ERR_DROP, counter, bytes, 0);
}

/* `udp` has `bytes` bytes up to the end that IP names; `pseudo` is the sum of the pseudo-header. */
static void receive_udp(struct ndfw *fw, const struct ndfw_endpoint *from, const uint8_t *udp, size_t bytes,
                        uint64_t pseudo)
{
    struct ndfw_packet packet;
    enum netdam_counter counter;

    if (bytes < NETDAM_UDP_BYTES || get16(udp + 2) != fw->config.udp_port) {
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return;
    }
    if (get16(udp + 4) != bytes) {
        dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    if (get16(udp + 6) == 0 ? from->family == 6
                            : ndfw_checksum_fold(ndfw_checksum_add(pseudo, udp, bytes)) != 0) {
        dropped(fw, NETDAM_COUNTER_RX_CHECKSUM, bytes);
        return;
    }
    packet.from = *from;
    packet.from.port = (uint16_t)get16(udp);
    switch (ndfw_decode(fw, udp + NETDAM_UDP_BYTES, bytes - NETDAM_UDP_BYTES, &packet, &counter)) {
    case NDFW_DECODED_DROP:
        dropped(fw, counter, bytes);
        break;
    case NDFW_DECODED_REFUSE:
        ndfw_refuse(fw, &packet, (enum netdam_status)packet.status);
        break;
    case NDFW_DECODED_OK:
        fw->work_bytes += bytes;
        if (packet.kind == NETDAM_KIND_REQUEST) {
            ndfw_trace(fw, NETDAM_FW_TRACE_RX_REQUEST, packet.opcode, packet.context, packet.number);
            ndfw_respond(fw, &packet);
        } else {
            ndfw_trace(fw, NETDAM_FW_TRACE_RX_RESPONSE, packet.status, packet.context, packet.number);
            ndfw_peer_receive(fw, &packet);
        }
        break;
    }
}

static void receive_ipv4(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    struct ndfw_endpoint from = {.family = 4};
    size_t header, length;

    if (bytes < NETDAM_IPV4_BYTES || ip[0] >> 4 != 4) {
        dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    header = (size_t)(ip[0] & 15) * 4;
    length = get16(ip + 2);
    if (header < NETDAM_IPV4_BYTES || length < header || length > bytes) {
        dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    if (ndfw_checksum_fold(ndfw_checksum_add(0, ip, header)) != 0) {
        dropped(fw, NETDAM_COUNTER_RX_CHECKSUM, bytes);
        return;
    }
    /* Somebody else's, a fragment, or from an address that no answer can be sent to. */
    if (memcmp(ip + 16, fw->config.ipv4, 4) != 0 || is_zero(fw->config.ipv4, 4) || (get16(ip + 6) & 0x3fff) != 0 ||
        ip[12] == 0 || ip[12] >= 224) {
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return;
    }
    if (ip[9] == PROTOCOL_ICMP) {
        receive_ping(fw, frame, length);
    } else if (ip[9] == PROTOCOL_UDP) {
        memcpy(from.mac, frame + 6, 6);
        memcpy(from.address, ip + 12, 4);
        receive_udp(fw, &from, ip + header, length - header,
                    ndfw_checksum_add(PROTOCOL_UDP + length - header, ip + 12, 8));
    } else {
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
    }
}

static void receive_ipv6(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    struct ndfw_endpoint from = {.family = 6};
    size_t length;

    if (bytes < NETDAM_IPV6_BYTES || ip[0] >> 4 != 6 || get16(ip + 4) > bytes - NETDAM_IPV6_BYTES) {
        dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    if (ip[6] != PROTOCOL_UDP || memcmp(ip + 24, fw->config.ipv6, 16) != 0 || is_zero(fw->config.ipv6, 16) ||
        is_zero(ip + 8, 16) || ip[8] == 0xff) {
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return;
    }
    length = get16(ip + 4);
    memcpy(from.mac, frame + 6, 6);
    memcpy(from.address, ip + 8, 16);
    receive_udp(fw, &from, ip + NETDAM_IPV6_BYTES, length, ndfw_checksum_add(PROTOCOL_UDP + length, ip + 8, 32));
}

void ndfw_net_receive(struct ndfw *fw, const uint8_t *frame, size_t bytes)
{
    const uint8_t *packet = frame + NETDAM_ETHERNET_BYTES;
    size_t length;

    if (bytes < NETDAM_ETHERNET_BYTES || bytes > NDFW_FRAME_MAX) {
        dropped(fw, NETDAM_COUNTER_RX_MALFORMED, bytes);
        return;
    }
    length = bytes - NETDAM_ETHERNET_BYTES;
    if ((frame[0] & 1) == 0 && memcmp(frame, fw->config.mac, 6) != 0) {
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        return;
    }
    switch (get16(frame + 12)) {
    case ETHERTYPE_ARP:
        receive_arp(fw, packet, length);
        break;
    case ETHERTYPE_IPV4:
        receive_ipv4(fw, frame, length);
        break;
    case ETHERTYPE_IPV6:
        receive_ipv6(fw, frame, length);
        break;
    default:
        dropped(fw, NETDAM_COUNTER_RX_OTHER, bytes);
        break;
    }
}
