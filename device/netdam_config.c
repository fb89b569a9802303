/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks the properties and makes the firmware's configuration of them. */
#include "qemu/osdep.h"
#include <arpa/inet.h>
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "netdam_device.h"
#include "platform_cpu.h"

#define NETDAM_MEMORY_ALIGN 4096

/* An address that a single host can have. */
static bool netdam_config_unicast(const char *text, uint8_t address[4])
{
    return inet_pton(AF_INET, text, address) == 1 && address[0] != 0 && address[0] < 224;
}

static bool netdam_config_ipv4(NetdamState *s, Error **errp)
{
    g_auto(GStrv) part = NULL;
    unsigned prefix = 24;

    part = g_strsplit(s->ip, "/", 2);
    if (!part[0] || !netdam_config_unicast(part[0], s->config.ipv4) ||
        (part[1] && (qemu_strtoui(part[1], NULL, 10, &prefix) != 0 || prefix < 1 || prefix > 32))) {
        error_setg(errp, "netdam: ip '%s' is not an IPv4 address with a prefix, such as 10.0.0.1/24", s->ip);
        return false;
    }
    s->config.ipv4_prefix = prefix;
    return true;
}

static bool netdam_config_ipv6(NetdamState *s, Error **errp)
{
    static const uint8_t none[16];
    g_auto(GStrv) part = g_strsplit(s->ip6, "/", 2);
    unsigned prefix = 64;

    if (!part[0] || inet_pton(AF_INET6, part[0], s->config.ipv6) != 1 || s->config.ipv6[0] == 0xff ||
        memcmp(s->config.ipv6, none, sizeof(none)) == 0 ||
        (part[1] && (qemu_strtoui(part[1], NULL, 10, &prefix) != 0 || prefix < 1 || prefix > 128))) {
        error_setg(errp, "netdam: ip6 '%s' is not an IPv6 address with a prefix, such as fd00::1/64", s->ip6);
        return false;
    }
    s->config.forward[0] = (struct netdam_fw_network){.family = 6, .prefix = prefix};
    memcpy(s->config.forward[0].address, s->config.ipv6, sizeof(s->config.ipv6));
    return true;
}

/* NETWORK/BITS. */
static bool netdam_config_network(const char *text, struct netdam_fw_network *network)
{
    g_auto(GStrv) part = g_strsplit(text, "/", 2);
    unsigned prefix;

    *network = (struct netdam_fw_network){};
    if (!part[0] || !part[1] || qemu_strtoui(part[1], NULL, 10, &prefix) != 0) {
        return false;
    }
    network->family = strchr(part[0], ':') ? 6 : 4;
    network->prefix = MIN(prefix, UINT8_MAX);
    return prefix <= (network->family == 6 ? 128 : 32) &&
           inet_pton(network->family == 6 ? AF_INET6 : AF_INET, part[0], network->address) == 1;
}

/* Where chains are passed on to: the own IPv6 network, and what the property names. */
static bool netdam_config_forward(NetdamState *s, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(s->forward ?: "", ";", -1);
    unsigned used = s->ip6 ? 1 : 0;
    unsigned i;

    for (i = 0; parts[i]; i++) {
        if (used == NETDAM_FW_NETWORKS || !netdam_config_network(parts[i], &s->config.forward[used++])) {
            error_setg(errp, "netdam: forward: '%s' is not NETWORK/BITS, such as 10.1.0.0/16, or one too many (%d)",
                       parts[i], NETDAM_FW_NETWORKS);
            return false;
        }
    }
    return true;
}

static bool netdam_config_addresses(NetdamState *s, Error **errp)
{
    if (!s->ip && !s->ip6) {
        error_setg(errp, "netdam: ip=ADDRESS/PREFIX or ip6=ADDRESS/PREFIX is required");
        return false;
    }
    if ((s->ip && !netdam_config_ipv4(s, errp)) || (s->ip6 && !netdam_config_ipv6(s, errp))) {
        return false;
    }
    if (s->gateway && !netdam_config_unicast(s->gateway, s->config.ipv4_gateway)) {
        error_setg(errp, "netdam: gateway '%s' is not an IPv4 address", s->gateway);
        return false;
    }
    if (!netdam_config_forward(s, errp)) {
        return false;
    }
    if (s->port == 0) {
        error_setg(errp, "netdam: port must not be 0");
        return false;
    }
    s->config.udp_port = s->port;
    qemu_macaddr_default_if_unset(&s->nic_conf.macaddr);
    if (s->nic_conf.macaddr.a[0] & 1) {
        error_setg(errp, "netdam: mac is a group address");
        return false;
    }
    memcpy(s->config.mac, s->nic_conf.macaddr.a, sizeof(s->config.mac));
    return true;
}

static bool netdam_config_memory(NetdamState *s, Error **errp)
{
    const char *name;
    MemoryRegion *memory;
    uint64_t bytes;

    if (!s->memdev) {
        error_setg(errp, "netdam: memdev=ID of a memory-backend object is required");
        return false;
    }
    name = object_get_canonical_path_component(OBJECT(s->memdev));
    if (host_memory_backend_is_mapped(s->memdev)) {
        error_setg(errp, "netdam: memdev '%s' is in use already", name);
        return false;
    }
    memory = host_memory_backend_get_memory(s->memdev);
    bytes = memory_region_size(memory);
    if (bytes < NETDAM_MEMORY_ALIGN || !is_power_of_2(bytes)) {
        error_setg(errp, "netdam: memdev '%s' has %" PRIu64 " bytes; a power of two, at least %d, is needed", name,
                   bytes, NETDAM_MEMORY_ALIGN);
        return false;
    }
    if (memory_region_is_rom(memory)) {
        error_setg(errp, "netdam: memdev '%s' is read-only", name);
        return false;
    }
    /*
     * The firmware stores into this memory directly. Migration is told (netdam_migrate_touched); translated guest code
     * in it is not invalidated: on-board memory is for data.
     */
    s->config.memory = memory_region_get_ram_ptr(memory);
    s->config.memory_bytes = bytes;
    return true;
}

/*
 * For somebody who stops the firmware at a breakpoint while the guest's clock goes on: nothing is given up, and nothing
 * is sent again, for as long as one works. A frame that is really lost is then repaired by nothing but later answers.
 */
static void netdam_config_timeouts_off(struct netdam_fw_config *config)
{
    const uint64_t day = 24ull * 3600 * NANOSECONDS_PER_SECOND;

    config->rto_initial_ns = day;
    config->rto_min_ns = day;
    config->rto_max_ns = day;
    config->lane_give_up_ns = 30 * day;
}

bool netdam_config_fill(NetdamState *s, Error **errp)
{
    s->config = (struct netdam_fw_config){
        .abi_version = NETDAM_FW_ABI_VERSION,
        .no_payload_crc = !s->payload_crc,
        .no_merge = !s->merge,
        .shared_frames = s->memif_path != NULL,
        .vectors = s->vectors,
        .mtu = s->mtu,
        .queue_pairs = s->queue_pairs,
        .regions = s->regions,
        .peers = s->peers,
        .lanes = s->lanes,
        .lane_windows = s->lane_windows,
        .paths = s->paths,
        .cpu_features = ndfw_platform_cpu_features(),
    };

    if (!s->firmware) {
        error_setg(errp, "netdam: firmware=PATH of a firmware image is required");
        return false;
    }
    if (s->mtu < NETDAM_MTU_MIN || s->mtu > NETDAM_MTU_MAX) {
        error_setg(errp, "netdam: mtu must be from %d to %d", NETDAM_MTU_MIN, NETDAM_MTU_MAX);
        return false;
    }
    if (s->queue_pairs < 1 || s->queue_pairs > NETDAM_QUEUE_PAIRS_MAX) {
        error_setg(errp, "netdam: queue-pairs must be from 1 to %u", NETDAM_QUEUE_PAIRS_MAX);
        return false;
    }
    if (s->vectors > NETDAM_VECTORS_MAX) {
        error_setg(errp, "netdam: vectors must be from 0 to %d", NETDAM_VECTORS_MAX);
        return false;
    }
    if (s->memif_path && s->nic_conf.peers.ncs[0]) {
        error_setg(errp, "netdam: memif and netdev are two wires; the card has one port");
        return false;
    }
    if (!s->memif_path && (s->memif_role || s->memif_secret || s->memif_id)) {
        error_setg(errp, "netdam: role, memif-id and memif-secret speak of a memif link: memif=PATH is missing");
        return false;
    }
    if (!s->timeouts) {
        netdam_config_timeouts_off(&s->config);
    }
    return netdam_config_memory(s, errp) && netdam_config_addresses(s, errp) && netdam_neighbour_fill(s, errp);
}
