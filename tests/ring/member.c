/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One member of an all-reduce: a soft device in a process of its own, told by lines on its standard input what to do, and
 * answering with a line of JSON each.
 */
#define _GNU_SOURCE
#include "netdam.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS_MAX    10000
#define CONTROL_BYTES 4096
#define TIMEOUT_NS    UINT64_C(600000000000)

struct member {
    const char *device_name;
    char *names[NETDAM_MEMBERS_MAX]; /* of all members, in their order */
    unsigned count;
    unsigned rank;
    uint64_t key;
    uint64_t bytes; /* room for a vector */
    struct netdam_device *device;
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_group *group;
    struct netdam_peer *peers[NETDAM_MEMBERS_MAX];
    double milliseconds[ROUNDS_MAX];
};

static const char *reason(int result)
{
    return result > 0 ? netdam_status_name((unsigned)result) : result == 0 ? "OK" : strerror(-result);
}

static void log_line(void *opaque, enum netdam_log_level level, const char *line)
{
    (void)opaque;
    if (level != NETDAM_LOG_INFO) {
        fprintf(stderr, "member: %s\n", line);
    }
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Whole numbers whose sum over all members float32 holds exactly, so that every element can be checked. */
static float element(unsigned rank, uint64_t i)
{
    return (float)(rank + 1) * (float)((i * 2654435761u >> 16) % 1000);
}

/* A member that has been restarted knows nothing of what was sent to it before: a peer opened anew does not ask it. */
static int open_peers(struct member *member)
{
    int result = 0;

    for (unsigned i = 0; i < member->count && result == 0; i++) {
        if (member->peers[i] != NULL) {
            result = netdam_peer_close(member->peers[i]);
            member->peers[i] = NULL;
        }
        if (i != member->rank && result == 0) {
            result = netdam_peer_open(member->device, member->names[i], &member->peers[i]);
        }
    }
    return result;
}

/* Input, output, control. */
static void make_group(struct member *member)
{
    struct netdam_group_member members[NETDAM_MEMBERS_MAX] = {{0}};
    int result;

    if (member->group != NULL) {
        (void)netdam_group_destroy(member->group);
        member->group = NULL;
    }
    memset((uint8_t *)netdam_region_pointer(member->region) + 2 * member->bytes, 0, CONTROL_BYTES);
    result = open_peers(member);
    for (unsigned i = 0; i < member->count; i++) {
        members[i].key = member->key;
        members[i].output = member->bytes;
        members[i].control = 2 * member->bytes;
        members[i].peer = member->peers[i];
    }
    if (result == 0) {
        result =
            netdam_group_create(member->device, members, member->count, member->rank, member->region, &member->group);
    }
    printf("{\"event\": \"group\", \"status\": \"%s\"}\n", reason(result));
}

static uint64_t count_wrong(const struct member *member, uint64_t bytes)
{
    const float *output =
        (const float *)(const void *)((uint8_t *)netdam_region_pointer(member->region) + member->bytes);
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        float sum = 0;

        for (unsigned k = 0; k < member->count; k++) {
            sum += element(k, i);
        }
        wrong += output[i] != sum;
    }
    return wrong;
}

static int fill(struct member *member, uint64_t bytes)
{
    uint8_t *memory = netdam_region_pointer(member->region);
    float *input = (float *)(void *)memory;

    if (member->group == NULL || bytes > member->bytes || bytes % sizeof(float) != 0) {
        return -EINVAL;
    }
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        input[i] = element(member->rank, i);
    }
    memset(memory + member->bytes, 0xff, bytes);
    return 0;
}

static int all_reduce(struct member *member, uint64_t bytes, unsigned *at_fault)
{
    return netdam_all_reduce(member->queue, member->group, NETDAM_ALU_SUM, NETDAM_TYPE_F32, (uint32_t)bytes, at_fault,
                             TIMEOUT_NS);
}

/* Until one fails. */
static void work(struct member *member, uint64_t bytes)
{
    unsigned at_fault = NETDAM_HOP_NONE;
    uint64_t rounds = 0;
    int result = fill(member, bytes);

    while (result == 0) {
        result = all_reduce(member, bytes, &at_fault);
        if (result == 0 && rounds++ == 0) {
            puts("{\"event\": \"working\"}");
            fflush(stdout);
        }
    }
    printf("{\"event\": \"ended\", \"status\": \"%s\", \"member\": %u}\n", reason(result), at_fault);
}

static void run(struct member *member, uint64_t bytes, unsigned rounds)
{
    unsigned at_fault = NETDAM_HOP_NONE;
    unsigned round = 0;
    int result = rounds <= ROUNDS_MAX ? fill(member, bytes) : -EINVAL;

    if (result == 0) {
        result = netdam_barrier(member->queue, member->group, &at_fault, TIMEOUT_NS);
    }
    for (; result == 0 && round < rounds; round++) {
        double start = now_ms();

        result = all_reduce(member, bytes, &at_fault);
        member->milliseconds[round] = now_ms() - start;
    }
    printf("{\"event\": \"done\", \"status\": \"%s\", \"member\": %u, \"wrong\": %" PRIu64 ", \"ms\": [",
           reason(result), at_fault, result == 0 ? count_wrong(member, bytes) : 0);
    for (unsigned i = 0; result == 0 && i < round; i++) {
        printf("%s%.4f", i != 0 ? ", " : "", member->milliseconds[i]);
    }
    puts("]}");
}

static int prepare(struct member *member)
{
    struct netdam_open_config config = {.log = log_line};
    struct netdam_queue_config queue_config = {0};
    uint64_t bytes = 2 * member->bytes + CONTROL_BYTES;
    uint64_t offset;
    int result = netdam_open(member->device_name, &config, &member->device);

    result = result != 0 ? result : netdam_alloc(member->device, bytes, 4096, &offset);
    result = result != 0 ? result
                         : netdam_region_create(member->device, offset, bytes, NETDAM_PERMISSION_ALL, member->key,
                                                &member->region);
    return result != 0 ? result : netdam_queue_create(member->device, &queue_config, &member->queue);
}

static void obey(struct member *member)
{
    char line[256];
    uint64_t bytes;
    unsigned rounds;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (sscanf(line, "run %" SCNu64 " %u", &bytes, &rounds) == 2) {
            run(member, bytes, rounds);
        } else if (sscanf(line, "work %" SCNu64, &bytes) == 1) {
            work(member, bytes);
        } else {
            make_group(member);
        }
        fflush(stdout);
    }
}

/* --device NAME --rank N --key N --bytes N NAME...: the names of all members, the own one included. */
static bool parse(struct member *member, int argc, char **argv)
{
    static const struct option options[] = {
        {"device", required_argument, NULL, 'd'},
        {"rank", required_argument, NULL, 'r'},
        {"key", required_argument, NULL, 'k'},
        {"bytes", required_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "d:r:k:b:", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            member->device_name = optarg;
            break;
        case 'r':
            member->rank = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'k':
            member->key = strtoull(optarg, NULL, 0);
            break;
        case 'b':
            member->bytes = (strtoull(optarg, NULL, 0) + 4095) / 4096 * 4096;
            break;
        default:
            return false;
        }
    }
    for (; optind < argc && member->count < NETDAM_MEMBERS_MAX; optind++) {
        member->names[member->count++] = argv[optind];
    }
    return member->device_name != NULL && member->rank < member->count && member->key != 0 && member->bytes != 0 &&
           optind == argc;
}

int main(int argc, char **argv)
{
    static struct member member;
    int result;

    if (!parse(&member, argc, argv)) {
        fputs("usage: member --device NAME --rank N --key KEY --bytes N MEMBER...\n", stderr);
        return 2;
    }
    result = prepare(&member);
    if (result == 0) {
        printf("{\"event\": \"ready\", \"device\": \"%s\"}\n", netdam_device_name(member.device));
        fflush(stdout);
        obey(&member);
    } else {
        fprintf(stderr, "member: %s: %s\n", member.device_name, reason(result));
    }
    netdam_close(member.device);
    return result == 0 ? 0 : 1;
}
