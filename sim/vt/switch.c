/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of a switch. */
#include "vt/switch.h"

#define ETHERNET_BYTES 14u
#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define ETHERTYPE_ARP  0x0806u
#define ETHERTYPE_VLAN 0x8100u
#define VLAN_BYTES     4u
#define PROTOCOL_UDP   17u
#define PROTOCOL_ICMP6 58u
#define IPV6_BYTES     40u
#define DISCOVERY_MIN  133u /* types of ICMPv6: router solicitation to redirect */
#define DISCOVERY_MAX  137u

bool ndsim_switch_init(struct ndsim_switch *sw, const struct ndsim_switch_config *config, uint64_t seed)
{
    memset(sw, 0, sizeof(*sw));
    if (config->ports == 0 || config->ports > NDSIM_SWITCH_PORTS_MAX) {
        return false;
    }
    sw->config = *config;
    sw->random.state = seed;
    sw->hash_seed = ndsim_random_next(&sw->random);
    sw->up = UINT32_MAX >> (32 - config->ports);
    sw->flood[0] = sw->up;
    sw->tree_count = 1;
    for (uint32_t i = 0; i < config->ports; i++) {
        sw->lines[i].bits_per_s = config->bits_per_s;
        ndsim_queues_init(&sw->queues[i], config->bits_per_s);
    }
    return true;
}

void ndsim_switch_fini(struct ndsim_switch *sw)
{
    for (uint32_t i = 0; i < sw->config.ports; i++) {
        ndsim_queues_fini(&sw->queues[i]);
    }
}

/* The place of an address, or the empty one where it would be. */
static struct ndsim_switch_entry *find(struct ndsim_switch *sw, const uint8_t *mac)
{
    uint32_t at = (uint32_t)ndsim_hash(sw->hash_seed, mac, 6);

    for (;; at++) {
        struct ndsim_switch_entry *entry = &sw->entries[at % NDSIM_SWITCH_MACS_MAX];

        if (!entry->in_use || memcmp(entry->mac, mac, sizeof(entry->mac)) == 0) {
            return entry;
        }
    }
}

bool ndsim_switch_route(struct ndsim_switch *sw, const uint8_t mac[6], uint32_t ports)
{
    struct ndsim_switch_entry *entry = find(sw, mac);

    if (!entry->in_use) {
        if (sw->entry_count == NDSIM_SWITCH_MACS_MAX / 2) {
            return false;
        }
        sw->entry_count++;
        entry->in_use = true;
        memcpy(entry->mac, mac, sizeof(entry->mac));
    }
    entry->ports = ports;
    return true;
}

void ndsim_switch_port(struct ndsim_switch *sw, uint32_t port, bool up)
{
    sw->up = up ? sw->up | UINT32_C(1) << port : sw->up & ~(UINT32_C(1) << port);
}

uint64_t ndsim_switch_queued(const struct ndsim_switch *sw, uint32_t port, uint64_t now_ns)
{
    return sw->config.priorities ? ndsim_queues_backlog(&sw->queues[port], now_ns)
                                 : ndsim_line_backlog(&sw->lines[port], now_ns);
}

uint64_t ndsim_switch_buffered(const struct ndsim_switch *sw, uint64_t now_ns)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < sw->config.ports; i++) {
        bytes += ndsim_switch_queued(sw, i, now_ns);
    }
    return bytes;
}

/* What follows Ethernet's header and, if there is one, the tag of a VLAN. */
struct inside {
    const uint8_t *data;
    uint32_t bytes;
    unsigned ethertype;
    unsigned pcp;
    bool tagged;
};

static struct inside look_inside(const uint8_t *frame, uint32_t bytes)
{
    struct inside inside = {.data = frame + ETHERNET_BYTES,
                            .bytes = bytes - ETHERNET_BYTES,
                            .ethertype = (unsigned)frame[12] << 8 | frame[13]};

    if (inside.ethertype == ETHERTYPE_VLAN && inside.bytes >= VLAN_BYTES) {
        inside.tagged = true;
        inside.pcp = inside.data[0] >> 5;
        inside.ethertype = (unsigned)inside.data[2] << 8 | inside.data[3];
        inside.data += VLAN_BYTES;
        inside.bytes -= VLAN_BYTES;
    }
    return inside;
}

unsigned ndsim_switch_priority(const uint8_t *frame, uint32_t bytes)
{
    struct inside inside;

    if (bytes < ETHERNET_BYTES) {
        return 0;
    }
    inside = look_inside(frame, bytes);
    if (inside.tagged || inside.bytes < 2) {
        return inside.pcp;
    }
    if (inside.ethertype == ETHERTYPE_IPV4) {
        return inside.data[1] >> 5;
    }
    return inside.ethertype == ETHERTYPE_IPV6 ? (inside.data[0] & 0xfu) >> 1 : 0;
}

bool ndsim_switch_in_turn(const uint8_t *frame, uint32_t bytes)
{
    static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct inside inside;

    if (bytes < ETHERNET_BYTES) {
        return false;
    }
    inside = look_inside(frame, bytes);
    return memcmp(frame, broadcast, sizeof(broadcast)) == 0 || inside.ethertype == ETHERTYPE_ARP ||
           (inside.ethertype == ETHERTYPE_IPV6 && inside.bytes > IPV6_BYTES && inside.data[6] == PROTOCOL_ICMP6 &&
            inside.data[IPV6_BYTES] >= DISCOVERY_MIN && inside.data[IPV6_BYTES] <= DISCOVERY_MAX);
}

/* Addresses and UDP ports of a flow: the source port is what a sender varies to use another way. */
static uint64_t flow_hash(uint64_t seed, const uint8_t *frame, uint32_t bytes)
{
    const struct inside inside = look_inside(frame, bytes);
    uint64_t hash = ndsim_hash(seed, frame, 12);
    const uint8_t *ip = inside.data;
    uint32_t left = inside.bytes;
    uint32_t header = IPV6_BYTES;
    unsigned protocol;

    if (inside.ethertype == ETHERTYPE_IPV4 && left >= 20) {
        header = (ip[0] & 0xfu) * 4u;
        protocol = ip[9];
        hash = ndsim_hash(hash, ip + 12, 8);
    } else if (inside.ethertype == ETHERTYPE_IPV6 && left >= header) {
        protocol = ip[6];
        hash = ndsim_hash(hash, ip + 8, 32);
    } else {
        return hash;
    }
    return protocol == PROTOCOL_UDP && left >= header + 4 ? ndsim_hash(hash, ip + header, 4) : hash;
}

/* The n-th port of a mask. */
static uint32_t nth_port(uint32_t mask, uint32_t n)
{
    while (n-- != 0) {
        mask &= mask - 1;
    }
    return (uint32_t)__builtin_ctz(mask);
}

/* True if there was room in the output queue. */
static bool enqueue(struct ndsim_switch *sw, uint32_t port, uint32_t bytes, unsigned priority, uint64_t now_ns,
                    struct ndsim_forward *forward)
{
    const struct ndsim_switch_config *config = &sw->config;
    uint64_t at_ns = now_ns + config->latency_ns;
    uint32_t length = bytes + config->frame_overhead;

    if (config->queue_bytes != 0 && ndsim_switch_queued(sw, port, at_ns) + length > config->queue_bytes) {
        sw->counts[NDSIM_SWITCH_QUEUE_DROPS]++;
        return false;
    }
    if (config->buffer_bytes != 0 && ndsim_switch_buffered(sw, at_ns) + length > config->buffer_bytes) {
        sw->counts[NDSIM_SWITCH_BUFFER_DROPS]++;
        return false;
    }
    sw->counts[NDSIM_SWITCH_FORWARDED]++;
    forward->port = port;
    forward->priority = priority;
    forward->at_ns = config->priorities ? at_ns : ndsim_line_send(&sw->lines[port], length, at_ns);
    return true;
}

bool ndsim_switch_put(struct ndsim_switch *sw, const struct ndsim_forward *forward, uint64_t frame, uint32_t bytes)
{
    return ndsim_queues_put(&sw->queues[forward->port], forward->priority, frame, bytes + sw->config.frame_overhead,
                            forward->at_ns);
}

/* Which of several ways. */
static uint64_t choose_way(struct ndsim_switch *sw, const uint8_t *frame, uint32_t bytes, uint32_t turn)
{
    if (ndsim_switch_in_turn(frame, bytes)) {
        return turn;
    }
    return sw->config.spread == NDSIM_SPREAD_ECMP ? flow_hash(sw->hash_seed, frame, bytes)
                                                  : ndsim_random_next(&sw->random);
}

/* Which of the trees: the same at all switches, so neither by a switch's own seed nor by chance. */
static uint64_t choose_tree(const uint8_t *frame, uint32_t bytes, uint32_t turn)
{
    return ndsim_switch_in_turn(frame, bytes) ? turn : flow_hash(0, frame, bytes);
}

unsigned ndsim_switch_forward(struct ndsim_switch *sw, uint32_t port, const uint8_t *frame, uint32_t bytes,
                              uint32_t turn, uint64_t now_ns, struct ndsim_forward forwards[NDSIM_SWITCH_PORTS_MAX])
{
    const struct ndsim_switch_entry *entry;
    const unsigned priority = ndsim_switch_priority(frame, bytes);
    uint32_t ports;
    unsigned count = 0;

    sw->counts[NDSIM_SWITCH_FRAMES]++;
    if (bytes < ETHERNET_BYTES) {
        sw->counts[NDSIM_SWITCH_NO_WAY]++;
        return 0;
    }
    entry = find(sw, frame);
    if ((frame[0] & 1) == 0 && entry->in_use) {
        uint32_t ways;

        ports = entry->ports & sw->up & ~(UINT32_C(1) << port);
        ways = (uint32_t)__builtin_popcount(ports);
        if (ways > 1) {
            ports = UINT32_C(1) << nth_port(ports, (uint32_t)(choose_way(sw, frame, bytes, turn) % ways));
        }
    } else {
        sw->counts[NDSIM_SWITCH_FLOODED]++;
        ports = sw->flood[choose_tree(frame, bytes, turn) % sw->tree_count] & sw->up & ~(UINT32_C(1) << port);
    }
    if (ports == 0) {
        sw->counts[NDSIM_SWITCH_NO_WAY]++;
    }
    for (; ports != 0; ports &= ports - 1) {
        count += enqueue(sw, (uint32_t)__builtin_ctz(ports), bytes, priority, now_ns, &forwards[count]);
    }
    return count;
}
