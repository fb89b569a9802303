/* SPDX-License-Identifier: BSD-3-Clause */
/* A soft device in this process, on an ordinary UDP socket: same registers, rings and memory as the card. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam_soft.h"

#include "backend.h"
#include "size.h"

#define MEMORY_DEFAULT (UINT64_C(64) << 20)

struct udp {
    struct netdam_soft *soft;
    struct netdam_open_config config;
    atomic_bool opened;
    char refusal[128]; /* why it cannot be opened, in the soft device's words */
};

static uint64_t udp_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    struct udp *udp = opaque;

    return netdam_soft_register_read(udp->soft, offset, bytes);
}

static void udp_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct udp *udp = opaque;

    netdam_soft_register_write(udp->soft, offset, bytes, value);
}

static int udp_interrupt_fd(void *opaque, unsigned vector)
{
    struct udp *udp = opaque;

    return netdam_soft_interrupt_fd(udp->soft, vector);
}

/* No registers: they are functions here. */
static int udp_share(void *opaque, struct ndlib_share *share)
{
    const struct udp *udp = opaque;

    *share = (struct ndlib_share){.memory_fd = netdam_soft_memory_fd(udp->soft), .registers_fd = -1};
    return 0;
}

static void udp_close(void *opaque)
{
    struct udp *udp = opaque;

    netdam_soft_close(udp->soft);
    free(udp);
}

static const struct ndlib_backend_ops udp_ops = {
    .register_read = udp_register_read,
    .register_write = udp_register_write,
    .interrupt_fd = udp_interrupt_fd,
    .share = udp_share,
    .close = udp_close,
};

/* The soft device's levels are the firmware's: error, mistake of this host, mistake of a peer, information. */
static void soft_log(void *opaque, int level, const char *line)
{
    struct udp *udp = opaque;
    enum netdam_log_level severity = NETDAM_LOG_INFO;

    if (level == 0) {
        severity = NETDAM_LOG_ERROR;
        if (!atomic_load(&udp->opened)) {
            snprintf(udp->refusal, sizeof(udp->refusal), "%s", line);
            return;
        }
    } else if (level == 1) {
        severity = NETDAM_LOG_WARNING;
    }
    udp->config.log(udp->config.opaque, severity, line);
}

static void soft_tap(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes)
{
    struct udp *udp = opaque;

    udp->config.tap(udp->config.opaque, outgoing, datagram, bytes);
}

/* Where an option's number goes, or NULL if there is no such option. How much the firmware keeps is named by the limits. */
static uint32_t *number_place(struct netdam_soft_config *soft, const char *option)
{
    if (strcmp(option, "mtu") == 0) {
        return &soft->mtu;
    }
    if (strcmp(option, "paths") == 0) {
        return &soft->paths;
    }
    if (strcmp(option, "queue-pairs") == 0) {
        return &soft->queue_pairs;
    }
    if (strcmp(option, "memif-id") == 0) {
        return &soft->memif_id;
    }
#define LIMIT(field, text)                                                                                             \
    if (strcmp(option, #field) == 0) {                                                                                 \
        return &soft->limits.field;                                                                                    \
    }
    NETDAM_SOFT_LIMIT_LIST(LIMIT)
#undef LIMIT
    return NULL;
}

/* One "name=value" of the device string. */
static int parse_option(char *option, struct netdam_soft_config *soft, const struct ndlib_log *log)
{
    char *value = strchr(option, '=');
    uint32_t *place;
    uint64_t number;

    if (!value) {
        ndlib_log(log, NETDAM_LOG_ERROR, "udp: \"%s\" is not of the form name=value", option);
        return -EINVAL;
    }
    *value++ = '\0';
    if (strcmp(option, "merge") == 0) {
        soft->no_merge = strcmp(value, "off") == 0;
        if (!soft->no_merge && strcmp(value, "on") != 0) {
            ndlib_log(log, NETDAM_LOG_ERROR, "udp: merge: \"%s\" is neither on nor off", value);
            return -EINVAL;
        }
        return 0;
    }
    if (strcmp(option, "wire") == 0) {
        char *peer = strchr(value, ':');

        if (!peer || peer == value || peer[1] == '\0') {
            ndlib_log(log, NETDAM_LOG_ERROR, "udp: wire=%s: not of the form PATH:PEERPATH", value);
            return -EINVAL;
        }
        *peer++ = '\0';
        soft->wire_path = value;
        soft->wire_peer_path = peer;
        return 0;
    }
    if (strcmp(option, "memif") == 0) {
        soft->memif_path = value;
        return 0;
    }
    if (strcmp(option, "memif-secret") == 0) {
        soft->memif_secret = value;
        return 0;
    }
    if (strcmp(option, "memif-role") == 0) {
        soft->memif_server = strcmp(value, "server") == 0;
        if (!soft->memif_server && strcmp(value, "client") != 0) {
            ndlib_log(log, NETDAM_LOG_ERROR, "udp: memif-role: \"%s\" is neither client nor server", value);
            return -EINVAL;
        }
        return 0;
    }
    place = number_place(soft, option);
    if (!place && strcmp(option, "memory") != 0) {
        ndlib_log(log, NETDAM_LOG_ERROR, "udp: unknown option \"%s\"", option);
        return -EINVAL;
    }
    if (!ndlib_parse_size(value, &number)) {
        ndlib_log(log, NETDAM_LOG_ERROR, "udp: %s: \"%s\" is not a size", option, value);
        return -EINVAL;
    }
    if (!place) {
        soft->memory_bytes = number;
        return 0;
    }
    if (number > UINT32_MAX || (number == 0 && place != &soft->memif_id)) {
        ndlib_log(log, NETDAM_LOG_ERROR, "udp: %s=%s is out of range", option, value);
        return -EINVAL;
    }
    *place = (uint32_t)number;
    return 0;
}

void netdam_describe_datagram(const uint8_t *datagram, size_t bytes, char *line, size_t line_bytes)
{
    netdam_soft_describe(datagram, bytes, line, line_bytes);
}

int ndlib_udp_open(const char *arguments, const struct netdam_open_config *config, const struct ndlib_log *log,
                   struct ndlib_backend *backend)
{
    struct netdam_soft_config soft = {.memory_bytes = MEMORY_DEFAULT};
    struct udp *udp = NULL;
    char *copy = strdup(arguments);
    char *rest = copy;
    char *option;
    char *colon;
    int rc = -ENOMEM;

    if (!copy) {
        return -ENOMEM;
    }
    soft.listen = strsep(&rest, ",");
    colon = strrchr(soft.listen, ':');
    if (!colon || colon == soft.listen) {
        ndlib_log(log, NETDAM_LOG_ERROR, "udp: \"%s\" is not of the form ADDR:PORT", soft.listen);
        rc = -EINVAL;
        goto out;
    }
    while ((option = strsep(&rest, ",")) != NULL) {
        rc = parse_option(option, &soft, log);
        if (rc != 0) {
            goto out;
        }
    }
    if (!soft.memif_path && (soft.memif_server || soft.memif_id || soft.memif_secret)) {
        ndlib_log(log, NETDAM_LOG_ERROR,
                  "udp: memif-role, memif-id and memif-secret speak of a link: memif= is missing");
        rc = -EINVAL;
        goto out;
    }
    udp = calloc(1, sizeof(*udp));
    if (!udp) {
        rc = -ENOMEM;
        goto out;
    }
    udp->config = *config;
    soft.log_opaque = udp;
    soft.log = config->log ? soft_log : NULL;
    soft.tap = config->tap ? soft_tap : NULL;
    rc = netdam_soft_open(&soft, &udp->soft);
    if (rc != 0) {
        bool taken = rc == -EADDRINUSE && (soft.wire_path || soft.memif_path);
        const char *reason = taken ? "another program listens there, or it is no socket" : strerror(-rc);

        ndlib_log(log, NETDAM_LOG_ERROR, "udp:%s: %s", arguments, udp->refusal[0] != '\0' ? udp->refusal : reason);
        goto out;
    }
    atomic_store(&udp->opened, true);
    *backend = (struct ndlib_backend){
        .ops = &udp_ops,
        .opaque = udp,
        .memory = netdam_soft_memory(udp->soft),
        .memory_bytes = netdam_soft_memory_bytes(udp->soft),
    };
    *colon = '\0';
    snprintf(backend->name, sizeof(backend->name), "udp:%.40s:%u", soft.listen, netdam_soft_port(udp->soft));
    udp = NULL;

out:
    free(udp);
    free(copy);
    return rc;
}
