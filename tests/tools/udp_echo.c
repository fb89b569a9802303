/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the measurements are compared with: datagrams over plain sockets, of the same sizes in both directions.
 *   udp_echo serve                                   prints its port, answers until a signal ends it
 *   udp_echo measure PORT REQUEST REPLY COUNT DEPTH  COUNT requests of REQUEST bytes, answered by REPLY bytes, DEPTH
 * under way at once; prints one line of JSON Both ends block in recv(2).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "samples.h"

#define DATAGRAM_MAX 65507u
#define DEPTH_MAX    256u
/* After so long without an answer, what is under way counts as lost and is sent again. */
#define LOST_US 200000

/* In front of each datagram, in the host's byte order: both ends are on one host. */
struct head {
    uint32_t slot;
    uint32_t use; /* of the slot, so that an answer to an earlier use is not taken for one to this */
    uint32_t reply_bytes;
};

static uint8_t datagram[DATAGRAM_MAX];

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int fail(const char *what)
{
    fprintf(stderr, "udp_echo: %s: %s\n", what, strerror(errno));
    return EXIT_FAILURE;
}

static int serve(int fd)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t name_bytes = sizeof(name);

    if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
        getsockname(fd, (struct sockaddr *)&name, &name_bytes) != 0) {
        return fail("bind");
    }
    printf("%u\n", ntohs(name.sin_port));
    fflush(stdout);
    for (;;) {
        struct head head;
        ssize_t got;

        name_bytes = sizeof(name);
        got = recvfrom(fd, datagram, sizeof(datagram), 0, (struct sockaddr *)&name, &name_bytes);
        if (got < (ssize_t)sizeof(head)) {
            if (got < 0 && errno != EINTR) {
                return fail("recvfrom");
            }
            continue;
        }
        memcpy(&head, datagram, sizeof(head));
        if (head.reply_bytes >= sizeof(head) && head.reply_bytes <= DATAGRAM_MAX &&
            sendto(fd, datagram, head.reply_bytes, 0, (struct sockaddr *)&name, name_bytes) < 0) {
            return fail("sendto");
        }
    }
}

struct slot {
    bool outstanding;
    uint32_t use;
    uint64_t stamp_ns;
};

static int send_slot(int fd, struct slot *slots, uint32_t slot, size_t request_bytes, uint32_t reply_bytes)
{
    struct head head = {.slot = slot, .use = slots[slot].use, .reply_bytes = reply_bytes};

    memcpy(datagram, &head, sizeof(head));
    return send(fd, datagram, request_bytes, 0) == (ssize_t)request_bytes ? 0 : -1;
}

static int measure(int fd, uint16_t port, size_t request_bytes, uint32_t reply_bytes, uint64_t count, uint32_t depth)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    struct timeval lost = {.tv_usec = LOST_US};
    static struct slot slots[DEPTH_MAX];
    static struct samples samples;
    uint64_t start_ns = now_ns();
    uint64_t again = 0;
    uint64_t posted = 0;

    if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) != 0) {
        return fail("connect");
    }
    while (samples.count < count) {
        struct head head;
        ssize_t got;

        for (uint32_t i = 0; i < depth && posted < count; i++) {
            if (!slots[i].outstanding) {
                slots[i] = (struct slot){.outstanding = true, .use = slots[i].use + 1, .stamp_ns = now_ns()};
                posted++;
                if (send_slot(fd, slots, i, request_bytes, reply_bytes) != 0) {
                    return fail("send");
                }
            }
        }
        got = recv(fd, datagram, sizeof(datagram), 0);
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return fail("recv");
        }
        if (got < (ssize_t)sizeof(head)) {
            for (uint32_t i = 0; i < depth; i++) {
                again += slots[i].outstanding;
                if (slots[i].outstanding && send_slot(fd, slots, i, request_bytes, reply_bytes) != 0) {
                    return fail("send");
                }
            }
            continue;
        }
        memcpy(&head, datagram, sizeof(head));
        if (head.slot < depth && slots[head.slot].outstanding && slots[head.slot].use == head.use) {
            slots[head.slot].outstanding = false;
            samples_add(&samples, now_ns() - slots[head.slot].stamp_ns);
        }
    }
    printf("{\"iterations\": %" PRIu64 ", \"duration_ns\": %" PRIu64 ", \"retransmissions\": %" PRIu64
           ", \"latency_ns\": {\"min\": %" PRIu64 ", \"median\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"p99_9\": %" PRIu64
           ", \"max\": %" PRIu64 "}}\n",
           count, now_ns() - start_ns, again, samples.min, samples_quantile(&samples, 1, 2),
           samples_quantile(&samples, 99, 100), samples_quantile(&samples, 999, 1000), samples.max);
    return EXIT_SUCCESS;
}

/* A number of the command line; 0 if it is none, or not in range. */
static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    return end != text && *end == '\0' && value >= least && value <= most ? value : 0;
}

int main(int argc, char **argv)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return fail("socket");
    }
    if (argc == 2 && strcmp(argv[1], "serve") == 0) {
        return serve(fd);
    }
    if (argc == 7 && strcmp(argv[1], "measure") == 0) {
        uint64_t port = number(argv[2], 1, UINT16_MAX);
        uint64_t request = number(argv[3], sizeof(struct head), DATAGRAM_MAX);
        uint64_t reply = number(argv[4], sizeof(struct head), DATAGRAM_MAX);
        uint64_t count = number(argv[5], 1, UINT64_MAX);
        uint64_t depth = number(argv[6], 1, DEPTH_MAX);

        if (port != 0 && request != 0 && reply != 0 && count != 0 && depth != 0) {
            return measure(fd, (uint16_t)port, (size_t)request, (uint32_t)reply, count, (uint32_t)depth);
        }
    }
    fprintf(stderr, "udp_echo: wrong arguments: serve, or measure PORT REQUEST REPLY COUNT DEPTH\n");
    return 2;
}
