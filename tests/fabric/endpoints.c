/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints for the tests of the fabric: clients of our memif library that send numbered frames to one another, as told
 * by commands on standard input, each answered by one line.
 *   up                          when all links are: "ok"
 *   down                        when none is: "ok"
 *   send FROM TO COUNT BYTES    UDP frames from endpoint FROM to TO (-1: everybody), each from a port of its own
 *   wait AT COUNT               when endpoint AT has got COUNT frames since the start or the last report
 *   careless                    from now on frames have no contents, and nobody looks at them: for benchmarks
 *   report                      per endpoint: frames got, whether in order, how many damaged; and starts anew
 */
#define _GNU_SOURCE
#include "platform/memif.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDPOINTS_MAX 16u
#define HEADER        42u /* Ethernet, IPv4, UDP */
#define BURST         32u

struct endpoint {
    struct ndsim_memif *memif;
    unsigned index;
    uint64_t got;
    uint64_t disorder;
    uint64_t damaged;
    uint32_t next[ENDPOINTS_MAX];       /* number expected from each sender */
    uint32_t number[ENDPOINTS_MAX + 1]; /* to be sent to each, and to everybody */
};

static struct endpoint endpoints[ENDPOINTS_MAX];
static unsigned count;
static bool careless;

static void put32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void build(uint8_t *frame, size_t bytes, unsigned from, int to, uint32_t number)
{
    static const uint8_t header[] = {0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0};

    memset(frame, to < 0 ? 0xff : 0, 6);
    if (to >= 0) {
        frame[0] = 2;
        frame[5] = (uint8_t)to;
    }
    memset(frame + 6, 0, 6);
    frame[6] = 2;
    frame[11] = (uint8_t)from;
    memcpy(frame + 12, header, sizeof(header));
    put32(frame + 26, 0x0a000000 + from);
    put32(frame + 30, 0x0a000000 + (uint32_t)to);
    put32(frame + 34, (40000 + number % 1000) << 16 | 20036);
    put32(frame + 38, 0);
    put32(frame + HEADER, number);
    for (size_t i = HEADER + 4; i < bytes && !careless; i++) {
        frame[i] = (uint8_t)(number + i * 7);
    }
}

static void take(void *opaque, const uint8_t *frame, size_t bytes)
{
    struct endpoint *endpoint = opaque;
    bool intact = bytes >= HEADER + 4 && frame[11] < count;
    uint32_t number = intact ? get32(frame + HEADER) : 0;

    for (size_t i = HEADER + 4; i < bytes && !careless; i++) {
        intact &= frame[i] == (uint8_t)(number + i * 7);
    }
    endpoint->got++;
    if (!intact) {
        endpoint->damaged++;
    } else if (number < endpoint->next[frame[11]]) {
        endpoint->disorder++;
    } else {
        endpoint->next[frame[11]] = number + 1;
    }
}

static void turn(void)
{
    for (unsigned i = 0; i < count; i++) {
        ndsim_memif_process(endpoints[i].memif);
        while (ndsim_memif_receive(endpoints[i].memif, BURST, take, &endpoints[i]) != 0) {
        }
        ndsim_memif_flush(endpoints[i].memif);
    }
}

/* Sleeps until something has come at one of them; a full ring and a missing server tell nothing, hence the limit. */
static void rest(void)
{
    struct pollfd fds[ENDPOINTS_MAX];
    bool quiet = true;

    for (unsigned i = 0; i < count; i++) {
        quiet &= ndsim_memif_arm(endpoints[i].memif);
        fds[i] = (struct pollfd){.fd = ndsim_memif_fd(endpoints[i].memif), .events = POLLIN};
    }
    if (quiet) {
        poll(fds, count, 1);
    }
    for (unsigned i = 0; i < count; i++) {
        ndsim_memif_disarm(endpoints[i].memif);
    }
}

static bool all_are(bool up)
{
    for (unsigned i = 0; i < count; i++) {
        if (ndsim_memif_link_up(endpoints[i].memif) != up) {
            return false;
        }
    }
    return true;
}

static void send_frames(unsigned from, int to, unsigned frames, size_t bytes)
{
    struct endpoint *endpoint = &endpoints[from];
    uint32_t *number = &endpoint->number[to < 0 ? ENDPOINTS_MAX : (unsigned)to];

    while (frames != 0) {
        uint8_t *room = ndsim_memif_transmit_begin(endpoint->memif, bytes);

        if (room == NULL) {
            turn();
            rest();
            continue;
        }
        build(room, bytes, from, to, (*number)++);
        ndsim_memif_transmit_end(endpoint->memif, bytes);
        if (--frames % BURST == 0) {
            turn();
        }
    }
    turn();
}

static void report(void)
{
    printf("[");
    for (unsigned i = 0; i < count; i++) {
        struct endpoint *endpoint = &endpoints[i];

        printf("%s{\"got\": %llu, \"disorder\": %llu, \"damaged\": %llu, \"up\": %s}", i != 0 ? ", " : "",
               (unsigned long long)endpoint->got, (unsigned long long)endpoint->disorder,
               (unsigned long long)endpoint->damaged, ndsim_memif_link_up(endpoint->memif) ? "true" : "false");
        endpoint->got = 0;
        endpoint->disorder = 0;
        endpoint->damaged = 0;
        memset(endpoint->next, 0, sizeof(endpoint->next));
    }
    printf("]\n");
}

/* False: the command is none. */
static bool obey(const char *line)
{
    unsigned from, frames, bytes;
    int to;

    if (strcmp(line, "up\n") == 0 || strcmp(line, "down\n") == 0) {
        for (turn(); !all_are(line[0] == 'u'); turn()) {
            rest();
        }
    } else if (sscanf(line, "send %u %d %u %u", &from, &to, &frames, &bytes) == 4 && from < count && to < (int)count &&
               bytes >= HEADER + 4) {
        send_frames(from, to, frames, bytes);
    } else if (sscanf(line, "wait %u %u", &from, &frames) == 2 && from < count) {
        for (turn(); endpoints[from].got < frames; turn()) {
            rest();
        }
    } else if (strcmp(line, "careless\n") == 0) {
        careless = true;
    } else if (strcmp(line, "report\n") == 0) {
        turn();
        report();
        return true;
    } else {
        return false;
    }
    printf("ok\n");
    return true;
}

int main(int argc, char **argv)
{
    char line[200];
    size_t used = 0;

    for (int i = 1; i < argc && count < ENDPOINTS_MAX; i++) {
        const struct ndsim_memif_config config = {.path = argv[i], .role = NDSIM_MEMIF_CLIENT, .shared_frames = true};

        endpoints[count].index = count;
        if (ndsim_memif_open(&config, &endpoints[count].memif) != 0) {
            fprintf(stderr, "endpoints: %s cannot be opened\n", argv[i]);
            return 1;
        }
        count++;
    }
    /* Between commands, too, connections are looked after and frames taken. */
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    for (;;) {
        ssize_t got = read(STDIN_FILENO, line + used, 1);

        if (got == 0) {
            break;
        }
        if (got < 0) {
            turn();
            rest();
            continue;
        }
        if (line[used++] == '\n') {
            line[used] = 0;
            used = 0;
            if (!obey(line)) {
                printf("no such command: %s", line);
            }
            fflush(stdout);
        } else if (used == sizeof(line) - 1) {
            return 1;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        ndsim_memif_close(endpoints[i].memif);
    }
    return 0;
}
