/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens one node of netdam-node, fills its memory, makes its regions, and prints what it is and has counted. */
#define _GNU_SOURCE
#include "nodes.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ndsim_node_fail(const struct ndsim_node_options *own, const char *what, const char *why)
{
    fprintf(stderr, "netdam-node: %s%s%s: %s\n", own->name, *own->name != 0 ? ": " : "", what, why);
    return false;
}

static void log_line(void *opaque, int level, const char *line)
{
    struct ndsim_node *node = opaque;

    if (level == NETDAM_FW_LOG_ERROR || level == NETDAM_FW_LOG_GUEST || node->options->verbose) {
        fprintf(stderr, "netdam-node: %s%s%s\n", node->own->name, *node->own->name != 0 ? ": " : "", line);
        node->told = node->told || level == NETDAM_FW_LOG_ERROR;
    }
}

static void trace(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes)
{
    const struct ndsim_node *node = opaque;
    char line[256];

    netdam_soft_describe(datagram, bytes, line, sizeof(line));
    printf("%s%s%s %s\n", node->own->name, *node->own->name != 0 ? " " : "", outgoing ? "->" : "<-", line);
}

/* What is in memory first. */

static bool load(const struct ndsim_node *node, const char *path, uint64_t offset, uint64_t room)
{
    uint8_t *at = netdam_soft_memory(node->soft) + offset;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    int error;
    char more;

    if (fd < 0) {
        return ndsim_node_fail(node->own, path, strerror(errno));
    }
    while (room != 0 && (got = read(fd, at, room)) > 0) {
        at += got;
        room -= (uint64_t)got;
    }
    if (got >= 0 && room == 0) {
        got = read(fd, &more, 1);
        if (got > 0) {
            close(fd);
            return ndsim_node_fail(node->own, path, "larger than the memory");
        }
    }
    error = errno;
    close(fd);
    return got == 0 || ndsim_node_fail(node->own, path, strerror(error));
}

static bool fill(const struct ndsim_node *node, const struct ndsim_region *region)
{
    uint8_t *at = netdam_soft_memory(node->soft) + region->offset;
    uint64_t i;

    for (i = 0; region->pattern.count && i < region->bytes / 8; i++) {
        memcpy(at + 8 * i, &i, 8);
    }
    for (i = 0; region->pattern.bytes != 0 && i < region->bytes; i++) {
        at[i] = region->pattern.repeated[i % region->pattern.bytes];
    }
    return region->load == NULL || load(node, region->load, region->offset, region->bytes);
}

/* Administration. */

static const char *admin_status_text(uint64_t status)
{
    switch (status) {
#define TEXT(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return text;
        NETDAM_ADMIN_STATUS_LIST(TEXT)
#undef TEXT
    default:
        return "unknown administration status";
    }
}

static bool set_tenant(const struct ndsim_node *node)
{
    const struct ndsim_tenant *tenant = &node->own->tenant;
    uint64_t status;

    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG0, 8, tenant->id);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG1, 8, tenant->key[0]);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG2, 8, tenant->key[1]);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG3, 8, tenant->mode);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_TENANT_SET);
    status = netdam_soft_register_read(node->soft, NETDAM_REG_ADMIN_STATUS, 4);
    return status == NETDAM_ADMIN_STATUS_OK ||
           ndsim_node_fail(node->own, "the tenant is refused", admin_status_text(status));
}

static bool create_region(struct ndsim_node *node, unsigned index)
{
    const struct ndsim_region *region = &node->own->regions[index];
    uint64_t status;
    char what[64];

    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG0, 8, region->offset);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG1, 8, region->bytes);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG2, 8, region->permissions);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG3, 8, region->key);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_ARG4, 8, node->own->tenant.id);
    netdam_soft_register_write(node->soft, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_REGION_CREATE);
    status = netdam_soft_register_read(node->soft, NETDAM_REG_ADMIN_STATUS, 4);
    if (status != NETDAM_ADMIN_STATUS_OK) {
        snprintf(what, sizeof(what), "region %u is refused", index);
        return ndsim_node_fail(node->own, what, admin_status_text(status));
    }
    node->keys[index] = netdam_soft_register_read(node->soft, NETDAM_REG_ADMIN_RESULT1, 8);
    return true;
}

static bool open_failed(const struct ndsim_node *node, int error)
{
    const struct ndsim_node_options *own = node->own;
    char what[512];

    if (node->told) {
        return false;
    }
    if (error == -ENOMEM) {
        snprintf(what, sizeof(what), "--memory %llu", (unsigned long long)own->memory_bytes);
    } else if (own->wire_path != NULL) {
        snprintf(what, sizeof(what), "--wire %s:%s --listen %s", own->wire_path, own->wire_peer_path, own->listen);
    } else if (own->memif_path != NULL) {
        snprintf(what, sizeof(what), "--memif %s --listen %s", own->memif_path, own->listen);
    } else if (error == -EADDRINUSE || error == -EADDRNOTAVAIL || error == -EACCES) {
        snprintf(what, sizeof(what), "--listen %s", own->listen);
    } else {
        snprintf(what, sizeof(what), "--listen %s --memory %llu --mtu %u", own->listen,
                 (unsigned long long)own->memory_bytes, own->mtu);
    }
    if (error == -EADDRINUSE && (own->wire_path != NULL || own->memif_path != NULL)) {
        return ndsim_node_fail(own, what, "another program listens there, or it is no socket");
    }
    return ndsim_node_fail(own, what, strerror(-error));
}

bool ndsim_node_open(struct ndsim_node *node, const struct ndsim_options *options, const struct ndsim_node_options *own)
{
    struct netdam_soft_config config = {
        .listen = own->listen,
        .memory_bytes = own->memory_bytes,
        .mtu = own->mtu,
        .queue_pairs = 1, /* nobody is there to use one, and each costs a file descriptor */
        .no_payload_crc = own->no_payload_crc,
        .no_merge = own->no_merge,
        .paths = own->paths,
        .wire_path = own->wire_path,
        .wire_peer_path = own->wire_peer_path,
        .wire_prefix = own->prefix,
        .memif_path = own->memif_path,
        .memif_server = own->memif_server,
        .memif_id = own->memif_id,
        .memif_secret = own->memif_secret,
        .forward_count = own->forward_count,
        .limits = own->limits,
        .log_opaque = node,
        .log = log_line,
        .tap = options->trace ? trace : NULL,
    };
    bool good;
    unsigned i;
    int error;

    *node = (struct ndsim_node){.options = options, .own = own};
    if (own->wire_path == NULL && own->memif_path == NULL && own->paths > 1) {
        return ndsim_node_fail(own, "--paths", "a UDP socket is one port: only with --wire or --memif");
    }
    memcpy(config.forward, own->forward, sizeof(config.forward));
    memcpy(config.wire_mac, own->mac, sizeof(config.wire_mac));
    error = netdam_soft_open(&config, &node->soft);
    if (error != 0) {
        node->soft = NULL;
        return open_failed(node, error);
    }
    good = own->load == NULL || load(node, own->load, 0, own->memory_bytes);
    for (i = 0; good && i < own->region_count; i++) {
        good = fill(node, &own->regions[i]);
    }
    good = good && (own->tenant.id == 0 || set_tenant(node));
    for (i = 0; good && i < own->region_count; i++) {
        good = create_region(node, i);
    }
    if (!good) {
        ndsim_node_close(node);
    }
    return good;
}

void ndsim_node_close(struct ndsim_node *node)
{
    netdam_soft_close(node->soft);
    node->soft = NULL;
}

/* What is printed. */

struct reach {
    char address[INET_ADDRSTRLEN];
    unsigned port;
    unsigned mtu;
    unsigned long long bytes;
};

static struct reach reach_of(const struct ndsim_node *node)
{
    uint32_t ipv4 = htonl((uint32_t)netdam_soft_register_read(node->soft, NETDAM_REG_IPV4, 4));
    struct reach reach = {
        .port = netdam_soft_port(node->soft),
        .mtu = (unsigned)netdam_soft_register_read(node->soft, NETDAM_REG_MTU, 4),
        .bytes = netdam_soft_memory_bytes(node->soft),
    };

    inet_ntop(AF_INET, &ipv4, reach.address, sizeof(reach.address));
    return reach;
}

void ndsim_node_print_json(const struct ndsim_node *node, const char *event, FILE *file)
{
    const struct ndsim_node_options *own = node->own;
    struct reach reach = reach_of(node);
    unsigned i;

    fputc('{', file);
    if (event != NULL) {
        fprintf(file, "\"event\": \"%s\", ", event);
    }
    if (*own->name != 0) {
        fprintf(file, "\"name\": \"%s\", ", own->name);
    }
    fprintf(file,
            "\"address\": \"%s\", \"port\": %u, \"bytes\": %llu, \"key\": \"0x%016llx\", \"mtu\": %u, "
            "\"state_bytes\": %llu, \"regions\": [",
            reach.address, reach.port, reach.bytes, (unsigned long long)node->keys[0], reach.mtu,
            (unsigned long long)netdam_soft_state_bytes(node->soft));
    for (i = 0; i < own->region_count; i++) {
        fprintf(file, "%s{\"at\": %llu, \"bytes\": %llu, \"key\": \"0x%016llx\"}", i != 0 ? ", " : "",
                (unsigned long long)own->regions[i].offset, (unsigned long long)own->regions[i].bytes,
                (unsigned long long)node->keys[i]);
    }
    fputs("]}", file);
}

void ndsim_node_print_ready(const struct ndsim_node *node)
{
    const struct ndsim_node_options *own = node->own;
    const char *name = *own->name != 0 ? " name=" : "";
    struct reach reach = reach_of(node);
    unsigned i;

    if (node->options->json) {
        ndsim_node_print_json(node, "ready", stdout);
        putchar('\n');
    } else {
        for (i = 0; own->region_count > 1 && i < own->region_count; i++) {
            printf("netdam-node region%s%s at=%llu bytes=%llu key=0x%016llx\n", name, own->name,
                   (unsigned long long)own->regions[i].offset, (unsigned long long)own->regions[i].bytes,
                   (unsigned long long)node->keys[i]);
        }
        printf("netdam-node ready%s%s address=%s port=%u bytes=%llu key=0x%016llx mtu=%u\n", name, own->name,
               reach.address, reach.port, reach.bytes, (unsigned long long)node->keys[0], reach.mtu);
    }
    fflush(stdout);
}

static void print_counter(const struct ndsim_node *node, bool json, const char *counter, uint64_t value)
{
    const char *name = node->own->name;

    if (json) {
        printf(", \"%s\": %llu", counter, (unsigned long long)value);
    } else {
        printf("%s%s%s %llu\n", name, *name != 0 ? " " : "", counter, (unsigned long long)value);
    }
}

void ndsim_node_print_counters(struct ndsim_node *node, bool json)
{
    struct netdam_soft_statistics statistics;

    netdam_soft_get_statistics(node->soft, &statistics);
    if (json) {
        printf("{\"event\": \"counters\"");
        if (*node->own->name != 0) {
            printf(", \"name\": \"%s\"", node->own->name);
        }
    }
#define PRINT(counter, text)                                                                                           \
    print_counter(node, json, #counter,                                                                                \
                  netdam_soft_register_read(node->soft, NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_##counter, 8));
    NETDAM_COUNTER_LIST(PRINT)
#undef PRINT
    print_counter(node, json, "MAIN_MEMORY_BYTES",
                  netdam_soft_register_read(node->soft, NETDAM_REG_MAIN_MEMORY_BYTES, 8));
    print_counter(node, json, "DATAGRAMS_SENT", statistics.datagrams_sent);
    print_counter(node, json, "DATAGRAMS_TAKEN", statistics.datagrams_taken);
    print_counter(node, json, "TAKEN_TOO_LONG", statistics.taken_too_long);
    print_counter(node, json, "NOT_SENDABLE", statistics.not_sendable);
    print_counter(node, json, "SEND_ERRORS", statistics.send_errors);
    print_counter(node, json, "SEND_BLOCKED", statistics.send_blocked);
    if (json) {
        printf("}\n");
    }
    fflush(stdout);
}
