/* SPDX-License-Identifier: BSD-3-Clause */
/* The device of a measurement, and what its requests need on it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"
#include "netdam/wire.h"

/* Requests under way use different memory up to this much, then share it. */
#define SPREAD_BYTES (UINT64_C(1) << 20)
/* For the rings of the largest depth, and some. */
#define RINGS_BYTES (UINT64_C(2) << 20)

#define ADDRESS_FORMS "not of the form ADDR, ADDR:PORT or [ADDR]:PORT"

uint64_t perf_stride(uint64_t bytes)
{
    return (bytes + 63) & ~UINT64_C(63);
}

uint64_t perf_places(const struct perf *perf, uint64_t bytes)
{
    uint64_t places = SPREAD_BYTES / perf_stride(bytes);

    if (places > perf->depth) {
        places = perf->depth;
    }
    return places > 0 ? places : 1;
}

static uint64_t memory_bytes(const struct perf *perf)
{
    uint64_t largest = perf->all ? perf->bytes_most : perf->bytes;

    return largest > SPREAD_BYTES ? perf_stride(largest) : SPREAD_BYTES;
}

/* The peer's host as a socket address; false if the name is malformed. */
static bool parse_host(const char *name, struct sockaddr_storage *address, socklen_t *address_bytes)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;
    char host[INET6_ADDRSTRLEN];
    size_t host_bytes;

    memset(address, 0, sizeof(*address));
    if (name[0] == '[') {
        name++;
        host_bytes = strcspn(name, "]");
    } else if (strchr(name, ':') != strrchr(name, ':')) {
        host_bytes = strlen(name);
    } else {
        host_bytes = strcspn(name, ":");
    }
    if (host_bytes >= sizeof(host)) {
        return false;
    }
    memcpy(host, name, host_bytes);
    host[host_bytes] = '\0';
    if (inet_pton(AF_INET, host, &ipv4->sin_addr) == 1) {
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons(NETDAM_UDP_PORT);
        *address_bytes = sizeof(*ipv4);
        return true;
    }
    if (inet_pton(AF_INET6, host, &ipv6->sin6_addr) == 1) {
        ipv6->sin6_family = AF_INET6;
        ipv6->sin6_port = htons(NETDAM_UDP_PORT);
        *address_bytes = sizeof(*ipv6);
        return true;
    }
    return false;
}

/* The local address that the kernel would send to the peer from, as a soft device's name has it. */
static int local_address(const char *peer_name, char *text, size_t bytes)
{
    struct sockaddr_storage name;
    socklen_t name_bytes;
    char host[INET6_ADDRSTRLEN];
    int rc = 0;
    int fd;

    if (!parse_host(peer_name, &name, &name_bytes)) {
        return -EINVAL;
    }
    fd = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (struct sockaddr *)&name, name_bytes) != 0 ||
        getsockname(fd, (struct sockaddr *)&name, &name_bytes) != 0) {
        rc = -errno;
    }
    close(fd);
    if (rc != 0) {
        return rc;
    }
    if (name.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&name)->sin_addr, host, sizeof(host));
        snprintf(text, bytes, "%s", host);
    } else {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&name)->sin6_addr, host, sizeof(host));
        snprintf(text, bytes, "[%s]", host);
    }
    return 0;
}

int perf_open(struct perf *perf, uint64_t memory)
{
    const struct netdam_open_config config = {.log = remember_error};
    const char *name = perf->device_name;
    char full_name[256];
    int rc;

    if (strcmp(name, "udp") == 0 || strncmp(name, "udp,", 4) == 0) {
        char address[INET6_ADDRSTRLEN + 2] = "127.0.0.1";

        rc = perf->serve ? 0 : local_address(perf->peer_name, address, sizeof(address));
        if (rc != 0) {
            return failed("--peer %s: %s", perf->peer_name, rc == -EINVAL ? ADDRESS_FORMS : strerror(-rc));
        }
        /* What the user says comes after, and counts. */
        snprintf(full_name, sizeof(full_name), "udp:%s:%u,memory=%" PRIu64 "%s", address,
                 perf->serve ? NETDAM_UDP_PORT : 0, (memory + RINGS_BYTES + 4095) & ~UINT64_C(4095), name + 3);
        name = full_name;
    }
    rc = netdam_open(name, &config, &perf->device);
    if (rc != 0) {
        return device_failed(name, rc);
    }
    rc = netdam_query(perf->device, &perf->info);
    return rc == 0 ? EXIT_OK : failed("%s: %s", netdam_device_name(perf->device), result_text(rc));
}

/* SEND is one packet; what that holds is known only now. */
static int fit_sizes(struct perf *perf)
{
    if ((perf->test->features & PERF_SEND) != 0 && perf->bytes_most > perf->info.payload_max) {
        perf->bytes_most = perf->info.payload_max;
        if (!perf->bytes_given && perf->bytes > perf->bytes_most) {
            perf->bytes = perf->bytes_most;
        }
    }
    if (perf->bytes > perf->bytes_most) {
        return failed("--size %" PRIu64 ": %s takes at most %" PRIu64 " bytes", perf->bytes,
                      netdam_op_name(perf->opcode), perf->bytes_most);
    }
    return EXIT_OK;
}

int perf_prepare(struct perf *perf)
{
    struct netdam_queue_config queue_config = {.submission_depth = (uint32_t)perf->depth,
                                               .completion_depth = (uint32_t)perf->depth};
    uint64_t bytes = memory_bytes(perf);
    uint64_t offset;
    int rc = perf_open(perf, bytes);

    if (rc == EXIT_OK) {
        rc = fit_sizes(perf);
    }
    if (rc != EXIT_OK) {
        return rc;
    }
    rc = netdam_peer_open(perf->device, perf->peer_name, &perf->peer);
    if (rc != 0) {
        return failed("--peer %s: %s", perf->peer_name, rc == -EINVAL ? ADDRESS_FORMS : result_text(rc));
    }
    rc = netdam_queue_create(perf->device, &queue_config, &perf->queue);
    if (rc != 0) {
        return failed("%s: queue pair: %s", netdam_device_name(perf->device), result_text(rc));
    }
    if (perf->events && netdam_queue_fd(perf->queue) < 0) {
        return failed("--events: %s has no interrupt for this queue pair", netdam_device_name(perf->device));
    }
    rc = netdam_alloc(perf->device, bytes, 4096, &offset);
    if (rc != 0) {
        return failed("%s: no %" PRIu64 " bytes of on-board memory: %s", netdam_device_name(perf->device), bytes,
                      result_text(rc));
    }
    rc = netdam_region_create(perf->device, offset, bytes, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE,
                              0, &perf->region);
    if (rc != 0) {
        return failed("%s: region: %s", netdam_device_name(perf->device), result_text(rc));
    }
    /* The first touch of a page costs more than many requests; zeros are also numbers of every type. */
    memset(netdam_region_pointer(perf->region), 0, bytes);
    return EXIT_OK;
}
