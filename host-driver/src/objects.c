/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, peers and neighbours: what administration commands create and destroy. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "netdam/wire.h"

int netdam_region_create_config(struct netdam_device *device, const struct netdam_region_config *config,
                                struct netdam_region **region_out)
{
    const struct netdam_queue *immediates = config->immediates;
    uint64_t offset = config->offset;
    uint64_t bytes = config->bytes;
    const uint64_t arguments[] = {
        offset,      bytes,          config->permissions,
        config->key, config->tenant, immediates ? immediates->index + UINT64_C(1) : 0,
    };
    uint64_t results[NETDAM_ADMIN_RESULTS];
    struct netdam_region *region;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (immediates && (immediates->device != device || !immediates->rq)) {
        return -EINVAL;
    }
    if (bytes == 0 || offset > device->backend.memory_bytes || bytes > device->backend.memory_bytes - offset) {
        return -EINVAL;
    }
    region = calloc(1, sizeof(*region));
    if (!region) {
        return -ENOMEM;
    }
    pthread_mutex_lock(&device->mutex);
    /* The number of a queue pair from before a reset is another one's now. */
    rc = immediates && ndlib_is_stale(device, immediates->epoch)
             ? -ESTALE
             : ndlib_admin(device, NETDAM_ADMIN_REGION_CREATE, arguments, 6, results);
    if (rc == 0) {
        region->device = device;
        region->offset = offset;
        region->bytes = bytes;
        region->index = (uint32_t)results[0];
        region->key = results[1];
        region->epoch = atomic_load_explicit(&device->epoch, memory_order_relaxed);
        region->next = device->regions;
        device->regions = region;
    }
    pthread_mutex_unlock(&device->mutex);
    if (rc != 0) {
        free(region);
        return rc;
    }
    *region_out = region;
    return 0;
}

int netdam_region_create(struct netdam_device *device, uint64_t offset, uint64_t bytes, unsigned permissions,
                         uint64_t key, struct netdam_region **region)
{
    const struct netdam_region_config config = {
        .offset = offset, .bytes = bytes, .key = key, .permissions = permissions};

    return netdam_region_create_config(device, &config, region);
}

int netdam_region_destroy(struct netdam_region *region)
{
    struct netdam_device *device;
    struct netdam_region **link;
    int rc = 0;

    if (!region) {
        return 0;
    }
    device = region->device;
    pthread_mutex_lock(&device->mutex);
    if (!ndlib_is_stale(device, region->epoch)) {
        const uint64_t arguments[] = {region->index};

        rc = ndlib_admin(device, NETDAM_ADMIN_REGION_DESTROY, arguments, 1, NULL);
    }
    for (link = &device->regions; *link != region; link = &(*link)->next) {
    }
    *link = region->next;
    pthread_mutex_unlock(&device->mutex);
    free(region);
    return rc == 0 || rc == -ENODEV ? rc : -EIO;
}

uint64_t netdam_region_key(const struct netdam_region *region)
{
    return region->key;
}

uint32_t netdam_region_index(const struct netdam_region *region)
{
    return region->index;
}

void *netdam_region_pointer(const struct netdam_region *region)
{
    return region->device->backend.memory + region->offset;
}

uint64_t netdam_region_bytes(const struct netdam_region *region)
{
    return region->bytes;
}

static uint64_t load_be(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

/* Only digits, 1 to 65535. */
static bool parse_port(const char *text, unsigned *port)
{
    unsigned value = 0;

    if (*text == '\0') {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(*text - '0');
        if (value > 65535) {
            return false;
        }
    }
    *port = value;
    return value != 0;
}

/* What fits into the argument; the device knows how many it has. */
#define PATHS_MAX 255u

/* Turns "ADDR", "ADDR:PORT" or "[ADDR]:PORT" into the three arguments of PEER_OPEN; *port is kept if there is none. */
static bool parse_address(const char *text, uint64_t arguments[3], unsigned *port)
{
    char host[INET6_ADDRSTRLEN];
    uint8_t address[16];
    const char *host_text = text;
    const char *port_text = NULL;
    size_t host_bytes;

    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        if (!end || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        host_text = text + 1;
        host_bytes = (size_t)(end - host_text);
        port_text = end[1] == ':' ? end + 2 : NULL;
    } else {
        const char *colon = strchr(text, ':');

        host_bytes = strlen(text);
        if (colon && !strchr(colon + 1, ':')) { /* more than one: IPv6 without port */
            host_bytes = (size_t)(colon - text);
            port_text = colon + 1;
        }
    }
    if (host_bytes >= sizeof(host) || (port_text && !parse_port(port_text, port))) {
        return false;
    }
    memcpy(host, host_text, host_bytes);
    host[host_bytes] = '\0';
    if (text[0] != '[' && inet_pton(AF_INET, host, address) == 1) {
        arguments[0] = load_be(address, 4);
        arguments[1] = 0;
        arguments[2] = NETDAM_NODE_FORM_IPV4;
        return true;
    }
    if (inet_pton(AF_INET6, host, address) == 1) {
        arguments[0] = load_be(address, 8);
        arguments[1] = load_be(address + 8, 8);
        arguments[2] = NETDAM_NODE_FORM_IPV6;
        return true;
    }
    return false;
}

int netdam_peer_open(struct netdam_device *device, const char *address, struct netdam_peer **peer_out)
{
    return netdam_peer_open_tenant(device, address, 0, peer_out);
}

int netdam_peer_open_tenant(struct netdam_device *device, const char *address, uint32_t tenant,
                            struct netdam_peer **peer_out)
{
    return netdam_peer_open_paths(device, address, tenant, 0, peer_out);
}

int netdam_peer_open_paths(struct netdam_device *device, const char *address, uint32_t tenant, unsigned paths,
                           struct netdam_peer **peer_out)
{
    uint64_t arguments[3];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    unsigned port = NETDAM_UDP_PORT;
    struct netdam_peer *peer;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (!parse_address(address, arguments, &port)) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "peer: \"%s\" is not of the form ADDR, ADDR:PORT or [ADDR]:PORT",
                  address);
        return -EINVAL;
    }
    if (paths > PATHS_MAX) {
        return -EINVAL;
    }
    arguments[2] |= (uint64_t)paths << 8 | (uint64_t)port << 16 | (uint64_t)tenant << 32;
    peer = calloc(1, sizeof(*peer));
    if (!peer) {
        return -ENOMEM;
    }
    pthread_mutex_lock(&device->mutex);
    rc = ndlib_admin(device, NETDAM_ADMIN_PEER_OPEN, arguments, 3, results);
    if (rc == 0) {
        peer->device = device;
        peer->index = (uint32_t)results[0];
        peer->epoch = atomic_load_explicit(&device->epoch, memory_order_relaxed);
        peer->next = device->peers;
        device->peers = peer;
    }
    pthread_mutex_unlock(&device->mutex);
    if (rc != 0) {
        free(peer);
        return rc;
    }
    *peer_out = peer;
    return 0;
}

int netdam_peer_close(struct netdam_peer *peer)
{
    struct netdam_device *device;
    struct netdam_peer **link;
    int rc = 0;

    if (!peer) {
        return 0;
    }
    device = peer->device;
    pthread_mutex_lock(&device->mutex);
    if (!ndlib_is_stale(device, peer->epoch)) {
        const uint64_t arguments[] = {peer->index};

        rc = ndlib_admin(device, NETDAM_ADMIN_PEER_CLOSE, arguments, 1, NULL);
    }
    for (link = &device->peers; *link != peer; link = &(*link)->next) {
    }
    *link = peer->next;
    pthread_mutex_unlock(&device->mutex);
    free(peer);
    return rc == 0 || rc == -ENODEV ? rc : -EIO;
}

int netdam_tenant_set(struct netdam_device *device, uint32_t tenant, const uint8_t key[16], unsigned mode)
{
    bool keeps = mode != NETDAM_TENANT_MODE_NONE;
    uint64_t arguments[] = {tenant, keeps ? load_be(key, 8) : 0, keeps ? load_be(key + 8, 8) : 0, mode};
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    pthread_mutex_lock(&device->mutex);
    rc = ndlib_admin(device, NETDAM_ADMIN_TENANT_SET, arguments, 4, NULL);
    pthread_mutex_unlock(&device->mutex);
    explicit_bzero(arguments, sizeof(arguments));
    return rc;
}

int netdam_neighbour_set(struct netdam_device *device, const char *address, const uint8_t mac[6])
{
    uint64_t arguments[4];
    unsigned port = 0;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (!parse_address(address, arguments, &port) || port != 0) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "neighbour: \"%s\" is no IPv4 or IPv6 address", address);
        return -EINVAL;
    }
    arguments[3] = load_be(mac, 6);
    pthread_mutex_lock(&device->mutex);
    rc = ndlib_admin(device, NETDAM_ADMIN_NEIGHBOUR_SET, arguments, 4, NULL);
    pthread_mutex_unlock(&device->mutex);
    return rc;
}
