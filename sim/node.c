/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-node: a soft device whose whole memory is one region for peers, until a signal ends it. */
#define _GNU_SOURCE
#include "netdam_soft.h"
#include "options.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static void log_line(void *opaque, int level, const char *line)
{
    const struct ndsim_options *options = opaque;

    if (level == NETDAM_FW_LOG_ERROR || options->verbose) {
        fprintf(stderr, "netdam-node: %s\n", line);
    }
}

static void trace(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes)
{
    char line[256];

    (void)opaque;
    netdam_soft_describe(datagram, bytes, line, sizeof(line));
    printf("%s %s\n", outgoing ? "->" : "<-", line);
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "netdam-node: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

/* Copies the file to the start of memory. */
static int load(struct netdam_soft *soft, const char *path)
{
    uint64_t room = netdam_soft_memory_bytes(soft);
    uint8_t *at = netdam_soft_memory(soft);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 0;
    char more;

    if (fd < 0) {
        return fail(path, strerror(errno));
    }
    while (room != 0 && (got = read(fd, at, room)) > 0) {
        at += got;
        room -= (uint64_t)got;
    }
    if (got >= 0 && room == 0) {
        got = read(fd, &more, 1);
        if (got > 0) {
            close(fd);
            return fail(path, "larger than the memory");
        }
    }
    if (got < 0) {
        int error = errno;

        close(fd);
        return fail(path, strerror(error));
    }
    close(fd);
    return EXIT_SUCCESS;
}

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

static int set_tenant(struct netdam_soft *soft, const struct ndsim_options *options)
{
    uint64_t status;

    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG0, 8, options->tenant);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG1, 8, options->tenant_key[0]);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG2, 8, options->tenant_key[1]);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG3, 8, options->tenant_mode);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_TENANT_SET);
    status = netdam_soft_register_read(soft, NETDAM_REG_ADMIN_STATUS, 4);
    return status == NETDAM_ADMIN_STATUS_OK ? EXIT_SUCCESS : fail("the tenant is refused", admin_status_text(status));
}

static int create_region(struct netdam_soft *soft, const struct ndsim_options *options, uint64_t *key)
{
    uint64_t status;

    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG0, 8, 0);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG1, 8, options->memory_bytes);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG2, 8, options->permissions);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG3, 8, options->key);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_ARG4, 8, options->tenant);
    netdam_soft_register_write(soft, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_REGION_CREATE);
    status = netdam_soft_register_read(soft, NETDAM_REG_ADMIN_STATUS, 4);
    if (status != NETDAM_ADMIN_STATUS_OK) {
        return fail("the region is refused", admin_status_text(status));
    }
    *key = netdam_soft_register_read(soft, NETDAM_REG_ADMIN_RESULT1, 8);
    return EXIT_SUCCESS;
}

static void print_ready(struct netdam_soft *soft, const struct ndsim_options *options, uint64_t key)
{
    uint32_t ipv4 = htonl((uint32_t)netdam_soft_register_read(soft, NETDAM_REG_IPV4, 4));
    unsigned mtu = (unsigned)netdam_soft_register_read(soft, NETDAM_REG_MTU, 4);
    char address[INET_ADDRSTRLEN];

    inet_ntop(AF_INET, &ipv4, address, sizeof(address));
    printf(options->json ? "{\"event\": \"ready\", \"address\": \"%s\", \"port\": %u, \"bytes\": %llu, "
                           "\"key\": \"0x%016llx\", \"mtu\": %u}\n"
                         : "netdam-node ready address=%s port=%u bytes=%llu key=0x%016llx mtu=%u\n",
           address, netdam_soft_port(soft), (unsigned long long)netdam_soft_memory_bytes(soft), (unsigned long long)key,
           mtu);
    fflush(stdout);
}

static void print_counter(const struct ndsim_options *options, const char *name, uint64_t value)
{
    printf(options->json ? ", \"%s\": %llu" : "%s %llu\n", name, (unsigned long long)value);
}

static void print_counters(struct netdam_soft *soft, const struct ndsim_options *options)
{
    struct netdam_soft_statistics statistics;

    netdam_soft_get_statistics(soft, &statistics);
    if (options->json) {
        printf("{\"event\": \"counters\"");
    }
#define PRINT(name, text)                                                                                              \
    print_counter(options, #name, netdam_soft_register_read(soft, NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_##name, 8));
    NETDAM_COUNTER_LIST(PRINT)
#undef PRINT
    print_counter(options, "MAIN_MEMORY_BYTES", netdam_soft_register_read(soft, NETDAM_REG_MAIN_MEMORY_BYTES, 8));
    print_counter(options, "DATAGRAMS_SENT", statistics.datagrams_sent);
    print_counter(options, "DATAGRAMS_TAKEN", statistics.datagrams_taken);
    print_counter(options, "TAKEN_TOO_LONG", statistics.taken_too_long);
    print_counter(options, "NOT_SENDABLE", statistics.not_sendable);
    print_counter(options, "SEND_ERRORS", statistics.send_errors);
    print_counter(options, "SEND_BLOCKED", statistics.send_blocked);
    if (options->json) {
        printf("}\n");
    }
}

static int open_failed(const struct ndsim_options *options, int error)
{
    char what[256];

    if (options->wire_path != NULL && error != -ENOMEM) {
        snprintf(what, sizeof(what), "--wire %s:%s --listen %s", options->wire_path, options->wire_peer_path,
                 options->listen);
        return fail(what, strerror(-error));
    }
    snprintf(what, sizeof(what), "--listen %s --memory %llu --mtu %u", options->listen,
             (unsigned long long)options->memory_bytes, options->mtu);
    if (error == -EADDRINUSE || error == -EADDRNOTAVAIL || error == -EACCES) {
        snprintf(what, sizeof(what), "--listen %s", options->listen);
    } else if (error == -ENOMEM) {
        snprintf(what, sizeof(what), "--memory %llu", (unsigned long long)options->memory_bytes);
    }
    return fail(what, strerror(-error));
}

static int serve(const struct ndsim_options *options, const sigset_t *signals)
{
    struct netdam_soft_config config = {
        .listen = options->listen,
        .memory_bytes = options->memory_bytes,
        .mtu = options->mtu,
        .no_payload_crc = options->no_payload_crc,
        .no_merge = options->no_merge,
        .wire_path = options->wire_path,
        .wire_peer_path = options->wire_peer_path,
        .forward_count = options->forward_count,
        .log_opaque = (void *)(uintptr_t)options,
        .log = log_line,
        .tap = options->trace ? trace : NULL,
    };
    struct netdam_soft *soft;
    uint64_t key = 0;
    int result;

    memcpy(config.forward, options->forward, sizeof(config.forward));
    int signal_number;
    int error = netdam_soft_open(&config, &soft);

    if (error != 0) {
        return open_failed(options, error);
    }
    result = options->load != NULL ? load(soft, options->load) : EXIT_SUCCESS;
    if (result == EXIT_SUCCESS) {
        result = options->tenant != 0 ? set_tenant(soft, options) : EXIT_SUCCESS;
    }
    if (result == EXIT_SUCCESS) {
        result = create_region(soft, options, &key);
    }
    if (result == EXIT_SUCCESS) {
        print_ready(soft, options, key);
        while (sigwait(signals, &signal_number) != 0) {
        }
        if (options->counters) {
            print_counters(soft, options);
        }
    }
    netdam_soft_close(soft);
    return result;
}

int main(int argc, char **argv)
{
    struct ndsim_options options;
    sigset_t signals;

    switch (ndsim_options_parse(argc, argv, &options)) {
    case NDSIM_OPTIONS_DONE:
        return EXIT_SUCCESS;
    case NDSIM_OPTIONS_WRONG:
        return EXIT_USAGE;
    default:
        break;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* Blocked before any thread exists, so that only sigwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    return serve(&options, &signals);
}
