/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours: who has which link-layer address (ARP, IPv6 neighbour discovery, static ones), and ping. */
#include "ndfw.h"

#include "checksum.h"
#include "path.h"

#define ETHERTYPE_ARP         0x0806
#define ETHERTYPE_IPV6        0x86dd
#define ARP_BYTES             28
#define ARP_REQUEST           1
#define ARP_REPLY             2
#define ICMP_BYTES            8
#define ICMP_ECHO             8
#define PROTOCOL_ICMP6        58
#define ICMP6_ECHO            128
#define ICMP6_ECHO_REPLY      129
#define ICMP6_SOLICITATION    135
#define ICMP6_ADVERTISEMENT   136
#define ICMP6_DISCOVERY_BYTES 24 /* solicitation or advertisement without options */
#define ICMP6_LINK_BYTES      8  /* link-layer address option */
#define ICMP6_OPTION_SOURCE   1
#define ICMP6_OPTION_TARGET   2
#define ICMP6_SOLICITED       0x60 /* advertisement: solicited, override */
#define HOP_LIMIT             255  /* of discovery: nothing that a router has passed on is believed */

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
/* Ethernet, IPv4, addresses of 6 and 4 bytes. */
static const uint8_t arp_fixed[6] = {0, 1, 8, 0, 6, 4};

static size_t address_bytes(unsigned family)
{
    return family == 6 ? 16 : 4;
}

bool ndfw_is_self(const struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    if (!ndfw_is_own_port(fw, endpoint->port)) {
        return false;
    }
    return endpoint->family == 6 ? memcmp(endpoint->address, fw->config.ipv6, 16) == 0
                                 : memcmp(endpoint->address, fw->config.ipv4, 4) == 0;
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

bool ndfw_is_static_neighbour(const struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    const struct ndfw_neighbour *neighbour = find_neighbour(fw, endpoint->family, endpoint->address);

    return neighbour != NULL && neighbour->state == NDFW_NEIGHBOUR_STATIC;
}

/* Who is asked for on the link: the peer, or the gateway if the peer lies outside the own prefix. */
static const uint8_t *next_hop(const struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    netdam_be32 own, other;
    uint32_t mask;

    if (endpoint->family == 6 || ndfw_is_zero(fw->config.ipv4_gateway, 4)) {
        return endpoint->address;
    }
    memcpy(&own, fw->config.ipv4, sizeof(own));
    memcpy(&other, endpoint->address, sizeof(other));
    mask = fw->config.ipv4_prefix == 0 ? 0 : UINT32_MAX << (32 - fw->config.ipv4_prefix);
    return ((netdam_be32_get(own) ^ netdam_be32_get(other)) & mask) == 0 ? endpoint->address : fw->config.ipv4_gateway;
}

bool ndfw_net_resolve(struct ndfw *fw, struct ndfw_endpoint *endpoint)
{
    const struct ndfw_neighbour *neighbour;

    if (ndfw_is_self(fw, endpoint)) {
        memcpy(endpoint->mac, fw->config.mac, 6);
        return true;
    }
    neighbour = find_neighbour(fw, endpoint->family, next_hop(fw, endpoint));
    if (neighbour == NULL || neighbour->state == NDFW_NEIGHBOUR_ASKED) {
        return false;
    }
    memcpy(endpoint->mac, neighbour->mac, 6);
    return true;
}

/* Peers keep their own copy of the link-layer address: let them know a new one. An old one stays good enough. */
static void update_peers(struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        struct ndfw_peer *peer = &fw->peers[i];

        if (!peer->in_use || !ndfw_net_resolve(fw, &peer->endpoint) || peer->resolved) {
            continue;
        }
        peer->resolved = true;
        /* What waited for the address waits for the timer no longer: the next control packet goes out now. */
        if (peer->control_deadline_ns != NETDAM_FW_NEVER) {
            peer->control_tries = 0;
            peer->control_deadline_ns = fw->now_ns;
        }
        if (peer->way.deadline_ns != NETDAM_FW_NEVER) {
            peer->way.tries = 0;
            peer->way.deadline_ns = fw->now_ns;
        }
    }
}

/*
 * A place in the table, or NULL. What was asked for is asked for again, and what was learnt can be learnt again: peers
 * keep their copies until then.
 */
static struct ndfw_neighbour *find_place(struct ndfw *fw)
{
    for (unsigned state = NDFW_NEIGHBOUR_FREE; state < NDFW_NEIGHBOUR_STATIC; state++) {
        for (uint32_t i = 0; i < fw->config.neighbours; i++) {
            uint32_t at = (uint32_t)(fw->counters[NETDAM_COUNTER_RX_FRAMES] + i) % fw->config.neighbours;

            if (fw->neighbours[at].state == state) {
                return &fw->neighbours[at];
            }
        }
    }
    return NULL;
}

bool ndfw_net_set_neighbour(struct ndfw *fw, uint8_t family, const uint8_t *address, const uint8_t *mac, bool fixed)
{
    struct ndfw_neighbour *neighbour = find_neighbour(fw, family, address);

    if (neighbour != NULL && neighbour->state == NDFW_NEIGHBOUR_STATIC && !fixed) {
        return true;
    }
    if (neighbour != NULL && neighbour->state != NDFW_NEIGHBOUR_ASKED && memcmp(neighbour->mac, mac, 6) == 0) {
        neighbour->state = fixed ? NDFW_NEIGHBOUR_STATIC : neighbour->state;
        return true;
    }
    if (neighbour == NULL) {
        neighbour = find_place(fw);
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

/* A solicitation or advertisement, with the own link-layer address as its option. */
static void send_discovery(struct ndfw *fw, uint8_t type, const uint8_t *to_mac, const uint8_t *to_address,
                           const uint8_t *target, uint8_t flags)
{
    const size_t icmp_bytes = ICMP6_DISCOVERY_BYTES + ICMP6_LINK_BYTES;
    const size_t bytes = NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES + icmp_bytes;
    uint8_t *frame = ndfw_transmit_begin(fw, false, bytes);
    uint8_t *ip, *icmp;

    if (frame == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, type == ICMP6_ADVERTISEMENT);
        return;
    }
    memset(frame, 0, bytes);
    memcpy(frame, to_mac, 6);
    memcpy(frame + 6, fw->config.mac, 6);
    ndfw_put16(frame + 12, ETHERTYPE_IPV6);
    ip = frame + NETDAM_ETHERNET_BYTES;
    ip[0] = 0x60;
    ndfw_put16(ip + 4, (unsigned)icmp_bytes);
    ip[6] = PROTOCOL_ICMP6;
    ip[7] = HOP_LIMIT;
    memcpy(ip + 8, fw->config.ipv6, 16);
    memcpy(ip + 24, to_address, 16);
    icmp = ip + NETDAM_IPV6_BYTES;
    icmp[0] = type;
    icmp[4] = flags;
    memcpy(icmp + 8, target, 16);
    icmp[ICMP6_DISCOVERY_BYTES] = type == ICMP6_SOLICITATION ? ICMP6_OPTION_SOURCE : ICMP6_OPTION_TARGET;
    icmp[ICMP6_DISCOVERY_BYTES + 1] = 1; /* in units of 8 bytes */
    memcpy(icmp + ICMP6_DISCOVERY_BYTES + 2, fw->config.mac, 6);
    ndfw_put16(icmp + 2, ndfw_checksum_ipv6(ip, PROTOCOL_ICMP6, icmp, icmp_bytes));
    ndfw_transmit_end(fw, bytes);
}

/* Solicitations go to the group of all nodes whose addresses end alike. */
static void solicit_ipv6(struct ndfw *fw, const uint8_t *target)
{
    uint8_t group[16] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};
    uint8_t mac[6] = {0x33, 0x33, 0xff};

    memcpy(group + 13, target + 13, 3);
    memcpy(mac + 3, target + 13, 3);
    send_discovery(fw, ICMP6_SOLICITATION, mac, group, target, 0);
}

void ndfw_net_solicit(struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    if (endpoint->family == 4) {
        send_arp(fw, ARP_REQUEST, broadcast, next_hop(fw, endpoint));
    } else {
        solicit_ipv6(fw, endpoint->address);
    }
}

void ndfw_net_ask(struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    const uint8_t *address = next_hop(fw, endpoint);
    struct ndfw_neighbour *neighbour = find_neighbour(fw, endpoint->family, address) == NULL ? find_place(fw) : NULL;

    if (neighbour != NULL) {
        neighbour->state = NDFW_NEIGHBOUR_ASKED;
        neighbour->family = endpoint->family;
        memset(neighbour->address, 0, sizeof(neighbour->address));
        memcpy(neighbour->address, address, address_bytes(endpoint->family));
    }
    ndfw_net_solicit(fw, endpoint);
}

/* True of peers, and of what chains have asked for. */
static bool is_next_hop(const struct ndfw *fw, unsigned family, const uint8_t *address)
{
    if (find_neighbour(fw, family, address) != NULL) {
        return true;
    }
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        if (fw->peers[i].in_use && fw->peers[i].endpoint.family == family &&
            memcmp(next_hop(fw, &fw->peers[i].endpoint), address, address_bytes(family)) == 0) {
            return true;
        }
    }
    return false;
}

/* Only those that this node talks to, or passes chains on to, enter the table: gossip cannot fill it. */
enum ndfw_taken ndfw_arp_receive(struct ndfw *fw, const uint8_t *arp, size_t bytes)
{
    bool for_us;

    if (bytes < ARP_BYTES || memcmp(arp, arp_fixed, sizeof(arp_fixed)) != 0 || ndfw_is_zero(fw->config.ipv4, 4)) {
        return NDFW_TAKEN_NOT;
    }
    for_us = memcmp(arp + 24, fw->config.ipv4, 4) == 0;
    if (!ndfw_is_zero(arp + 14, 4) && (arp[8] & 1) == 0 && memcmp(arp + 14, fw->config.ipv4, 4) != 0 &&
        is_next_hop(fw, 4, arp + 14)) {
        (void)ndfw_net_set_neighbour(fw, 4, arp + 14, arp + 8, false);
    }
    if (for_us && ndfw_get16(arp + 6) == ARP_REQUEST) {
        ndfw_count(fw, NETDAM_COUNTER_ARP_REQUESTS, 1);
        send_arp(fw, ARP_REPLY, arp + 8, arp + 14);
    }
    return NDFW_TAKEN_BOTH;
}

/* Answers a ping by turning the frame around. */
enum ndfw_taken ndfw_ping_receive(struct ndfw *fw, const uint8_t *frame, size_t ip_length)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    size_t header = (size_t)(ip[0] & 15) * 4;
    size_t bytes = NETDAM_ETHERNET_BYTES + ip_length;
    uint8_t *answer;
    uint16_t checksum;

    if (ip_length < header + ICMP_BYTES || ip[header] != ICMP_ECHO || ip[header + 1] != 0) {
        return NDFW_TAKEN_NOT;
    }
    if (ndfw_checksum_fold(ndfw_checksum_add(0, ip + header, ip_length - header)) != 0) {
        ndfw_count(fw, NETDAM_COUNTER_RX_CHECKSUM, 1);
        return NDFW_TAKEN_DEVICE;
    }
    answer = ip_length > fw->config.mtu ? NULL : ndfw_transmit_begin(fw, false, bytes);
    if (answer == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, 1);
        return NDFW_TAKEN_DEVICE;
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
    return NDFW_TAKEN_DEVICE;
}

/* Asks anew for somebody who has fallen silent: the address may have been learnt wrongly, or have moved. */
void ndfw_net_doubt(struct ndfw *fw, const struct ndfw_endpoint *endpoint)
{
    const struct ndfw_neighbour *neighbour = find_neighbour(fw, endpoint->family, next_hop(fw, endpoint));

    if (!ndfw_is_self(fw, endpoint) && (neighbour == NULL || neighbour->state != NDFW_NEIGHBOUR_STATIC)) {
        ndfw_net_solicit(fw, endpoint);
    }
}

/* The link-layer address in the options of a discovery message, or NULL. */
static const uint8_t *link_option(const uint8_t *icmp, size_t bytes, unsigned wanted)
{
    size_t at = ICMP6_DISCOVERY_BYTES;

    while (at + ICMP6_LINK_BYTES <= bytes && icmp[at + 1] != 0) {
        if (icmp[at] == wanted && icmp[at + 1] == 1) {
            return icmp + at + 2;
        }
        at += (size_t)icmp[at + 1] * 8;
    }
    return NULL;
}

static void learn_ipv6(struct ndfw *fw, const uint8_t *address, const uint8_t *mac)
{
    if (mac != NULL && (mac[0] & 1) == 0 && !ndfw_is_zero(address, 16) && address[0] != 0xff &&
        memcmp(address, fw->config.ipv6, 16) != 0 && is_next_hop(fw, 6, address)) {
        (void)ndfw_net_set_neighbour(fw, 6, address, mac, false);
    }
}

static enum ndfw_taken receive_discovery(struct ndfw *fw, const uint8_t *frame, const uint8_t *icmp, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    const uint8_t *from = ip + 8;

    if (bytes < ICMP6_DISCOVERY_BYTES || ip[7] != HOP_LIMIT || icmp[1] != 0) {
        return NDFW_TAKEN_NOT;
    }
    if (icmp[0] == ICMP6_ADVERTISEMENT) {
        learn_ipv6(fw, icmp + 8, link_option(icmp, bytes, ICMP6_OPTION_TARGET));
        return NDFW_TAKEN_BOTH;
    }
    learn_ipv6(fw, from, link_option(icmp, bytes, ICMP6_OPTION_SOURCE));
    if (memcmp(icmp + 8, fw->config.ipv6, 16) == 0 && !ndfw_is_zero(from, 16) && from[0] != 0xff) {
        ndfw_count(fw, NETDAM_COUNTER_ARP_REQUESTS, 1);
        send_discovery(fw, ICMP6_ADVERTISEMENT, frame + 6, from, fw->config.ipv6, ICMP6_SOLICITED);
    }
    return NDFW_TAKEN_BOTH;
}

static enum ndfw_taken receive_ping_ipv6(struct ndfw *fw, const uint8_t *frame, const uint8_t *icmp, size_t bytes)
{
    const uint8_t *ip = frame + NETDAM_ETHERNET_BYTES;
    size_t all = NETDAM_ETHERNET_BYTES + NETDAM_IPV6_BYTES + bytes;
    uint8_t *answer;

    if (icmp[1] != 0 || memcmp(ip + 24, fw->config.ipv6, 16) != 0 || ndfw_is_zero(ip + 8, 16) || ip[8] == 0xff) {
        return NDFW_TAKEN_NOT;
    }
    answer = NETDAM_IPV6_BYTES + bytes > fw->config.mtu ? NULL : ndfw_transmit_begin(fw, false, all);
    if (answer == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, 1);
        return NDFW_TAKEN_DEVICE;
    }
    memcpy(answer, frame, all);
    memcpy(answer, frame + 6, 6);
    memcpy(answer + 6, fw->config.mac, 6);
    answer += NETDAM_ETHERNET_BYTES;
    memcpy(answer + 8, ip + 24, 16);
    memcpy(answer + 24, ip + 8, 16);
    answer[7] = HOP_LIMIT;
    answer[NETDAM_IPV6_BYTES] = ICMP6_ECHO_REPLY;
    ndfw_put16(answer + NETDAM_IPV6_BYTES + 2, 0);
    ndfw_put16(answer + NETDAM_IPV6_BYTES + 2,
               ndfw_checksum_ipv6(answer, PROTOCOL_ICMP6, answer + NETDAM_IPV6_BYTES, bytes));
    ndfw_count(fw, NETDAM_COUNTER_PINGS, 1);
    ndfw_transmit_end(fw, all);
    return NDFW_TAKEN_DEVICE;
}

enum ndfw_taken ndfw_icmpv6_receive(struct ndfw *fw, const uint8_t *frame, const uint8_t *icmp, size_t bytes)
{
    if (bytes < ICMP_BYTES) {
        return NDFW_TAKEN_NOT;
    }
    if (ndfw_checksum_ipv6(frame + NETDAM_ETHERNET_BYTES, PROTOCOL_ICMP6, icmp, bytes) != 0) {
        ndfw_dropped(fw, NETDAM_COUNTER_RX_CHECKSUM, bytes);
        return NDFW_TAKEN_DEVICE;
    }
    if (icmp[0] == ICMP6_SOLICITATION || icmp[0] == ICMP6_ADVERTISEMENT) {
        return receive_discovery(fw, frame, icmp, bytes);
    }
    return icmp[0] == ICMP6_ECHO ? receive_ping_ipv6(fw, frame, icmp, bytes) : NDFW_TAKEN_NOT;
}
