/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What runs in each of the two guests of `make run`, and as each of the two nodes without a card beside them: obeys one-line commands on standard input and answers each with one
 * line, "ok KEY=VALUE..." or "error TEXT". Everything that crosses the network lies in on-board memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#include <netdam.h>

#define LINE_BYTES    1024
#define WORDS_MAX     12
#define AREA_BYTES    (UINT64_C(16) << 20)
#define VECTOR_COUNT  (UINT32_C(1) << 20)
#define VECTOR_BYTES  (VECTOR_COUNT * sizeof(float))
#define MARKER_BYTES  64
#define MARKER_COPIES 64
#define LATENCY_COUNT 1000
#define BULK_BYTES    (UINT32_C(64) << 10)
#define BULK_COUNT    1024
#define BULK_DEPTH    16
#define MESSAGES      64
#define MESSAGE_BYTES 1024
#define INTERRUPT_MS  20000
#define MEMBERS_MAX   4

/* In the area of small things. */
#define MESSAGES_OFFSET (UINT64_C(1) << 20)
#define CONTROL_OFFSET  (UINT64_C(2) << 20)
#define COMMAND_MASTER  0x4 /* bus master enable, in the PCI command register */

/* One region of 48 MiB in each guest, in three areas: what others write, what is sent, and small things. */
enum area {
    AREA_IN = 0,
    AREA_OUT = 1,
    AREA_SMALL = 2,
    AREAS = 3,
};

struct pair {
    struct netdam_device *device;
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_peer *peer; /* the other guest */
    struct netdam_peer *self;
    struct netdam_group *group;
    uint64_t key;
    uint8_t *memory;
    uint64_t file_bytes;
    uint8_t *main_memory_copy;
};

static void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void answer(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

static const char *reason(int result)
{
    return result > 0 ? netdam_status_name((unsigned)result) : strerror(-result);
}

static uint8_t *area(const struct pair *pair, enum area which)
{
    return pair->memory + which * AREA_BYTES;
}

static struct netdam_local local_at(const struct pair *pair, uint64_t address)
{
    return (struct netdam_local){.region = pair->region, .address = address};
}

static struct netdam_remote remote_at(const struct pair *pair, struct netdam_peer *peer, uint64_t address)
{
    return (struct netdam_remote){.peer = peer, .key = pair->key, .address = address};
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void log_line(void *opaque, enum netdam_log_level level, const char *line)
{
    (void)opaque;
    if (level != NETDAM_LOG_INFO) {
        fprintf(stderr, "libnetdam: %s\n", line);
    }
}

/* open KEY OWN OTHER [DEVICE]: the device, one region under an agreed key, a queue pair, both nodes as peers. */
static void command_open(struct pair *pair, char **words)
{
    struct netdam_open_config config = {.log = log_line};
    struct netdam_queue_config queue_config = {.receive_depth = MESSAGES};
    struct netdam_device_info info;
    uint64_t offset;
    int result = netdam_open(words[4] != NULL ? words[4] : "pci", &config, &pair->device);

    if (result != 0) {
        answer("error cannot open the card: %s", reason(result));
        return;
    }
    pair->key = strtoull(words[1], NULL, 16);
    result = netdam_alloc(pair->device, AREAS * AREA_BYTES, 4096, &offset);
    result = result != 0 ? result
                         : netdam_region_create(pair->device, offset, AREAS * AREA_BYTES, NETDAM_PERMISSION_ALL,
                                                pair->key, &pair->region);
    result = result != 0 ? result : netdam_queue_create(pair->device, &queue_config, &pair->queue);
    result = result != 0 ? result : netdam_peer_open(pair->device, words[2], &pair->self);
    result = result != 0 ? result : netdam_peer_open(pair->device, words[3], &pair->peer);
    result = result != 0 ? result : netdam_query(pair->device, &info);
    if (result != 0) {
        answer("error cannot prepare the card: %s", reason(result));
        return;
    }
    pair->memory = netdam_region_pointer(pair->region);
    answer("ok device=%s memory=%" PRIu64 " mtu=%u", netdam_device_name(pair->device), info.memory_bytes, info.mtu);
}

/* The PCI command register through sysfs; with `clear`, bus mastering is switched off first. */
static int pci_command(const struct pair *pair, bool clear)
{
    char path[128];
    uint16_t command = 0;
    int result = -1;
    int fd;

    snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", netdam_device_name(pair->device) + strlen("pci:"));
    fd = open(path, O_RDWR);
    if (fd < 0) {
        return -1;
    }
    if (pread(fd, &command, sizeof(command), 4) == (ssize_t)sizeof(command)) {
        result = command;
        if (clear) {
            command &= (uint16_t)~COMMAND_MASTER;
            result = pwrite(fd, &command, sizeof(command), 4) == (ssize_t)sizeof(command) ? command : -1;
        }
    }
    close(fd);
    return result;
}

/* bus-master [off] */
static void command_bus_master(struct pair *pair, char **words)
{
    int command = pci_command(pair, words[1] != NULL);

    if (command < 0) {
        answer("error cannot access the card's PCI configuration");
    } else {
        answer("ok bus_master=%d", (command & COMMAND_MASTER) != 0);
    }
}

/* load FILE: into the area that is sent. */
static void command_load(struct pair *pair, char **words)
{
    int fd = open(words[1], O_RDONLY);
    ssize_t got = 1;

    pair->file_bytes = 0;
    while (fd >= 0 && got > 0 && pair->file_bytes < AREA_BYTES) {
        got = read(fd, area(pair, AREA_OUT) + pair->file_bytes, AREA_BYTES - pair->file_bytes);
        pair->file_bytes += got > 0 ? (uint64_t)got : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (got < 0 || fd < 0 || pair->file_bytes == 0) {
        answer("error cannot read %s", words[1]);
        return;
    }
    answer("ok bytes=%" PRIu64, pair->file_bytes);
}

/* push: the file to the other card. pull: from there back into the own card, elsewhere. */
static void command_move(struct pair *pair, char **words)
{
    bool push = strcmp(words[0], "push") == 0;
    uint64_t start = now_ns();
    int result;

    if (push) {
        result = netdam_write(pair->queue, remote_at(pair, pair->peer, AREA_IN * AREA_BYTES),
                              local_at(pair, AREA_OUT * AREA_BYTES), pair->file_bytes, NETDAM_FOREVER);
    } else {
        memset(area(pair, AREA_IN), 0, pair->file_bytes);
        result = netdam_read(pair->queue, local_at(pair, AREA_IN * AREA_BYTES),
                             remote_at(pair, pair->peer, AREA_IN * AREA_BYTES), pair->file_bytes, NETDAM_FOREVER);
    }
    if (result != 0) {
        answer("error %s: %s", words[0], reason(result));
        return;
    }
    answer("ok bytes=%" PRIu64 " seconds=%.6f", pair->file_bytes, (double)(now_ns() - start) / 1e9);
}

/* sha256 BYTES: of the area that others write, by the system's own tool. */
static void command_sha256(struct pair *pair, char **words)
{
    uint64_t bytes = strtoull(words[1], NULL, 10);
    char digest[65] = "";
    FILE *pipe;

    if (bytes > AREA_BYTES) {
        answer("error the area has only %" PRIu64 " bytes", AREA_BYTES);
        return;
    }
    pipe = popen("sha256sum >/tmp/digest", "w");
    if (pipe == NULL || fwrite(area(pair, AREA_IN), 1, bytes, pipe) != bytes || pclose(pipe) != 0) {
        answer("error cannot run sha256sum");
        return;
    }
    pipe = fopen("/tmp/digest", "r");
    if (pipe == NULL || fscanf(pipe, "%64s", digest) != 1) {
        answer("error sha256sum printed nothing");
    } else {
        answer("ok sha256=%s", digest);
    }
    if (pipe != NULL) {
        fclose(pipe);
    }
}

static struct netdam_peer *peer_named(const struct pair *pair, const char *name)
{
    return strcmp(name, "self") == 0 ? pair->self : pair->peer;
}

/* add self|other TIMES: fetch-and-add 1 to the counter on that card, one after the other. */
static void command_add(struct pair *pair, char **words)
{
    unsigned times = (unsigned)strtoul(words[2], NULL, 10);
    struct netdam_remote counter = remote_at(pair, peer_named(pair, words[1]), AREA_SMALL * AREA_BYTES);
    uint64_t before = 0, old = 0;
    unsigned jumps = 0;

    for (unsigned i = 0; i < times; i++) {
        int result = netdam_fetch_add(pair->queue, NETDAM_TYPE_U64, counter, 1, &old, NETDAM_FOREVER);

        if (result != 0 || (i > 0 && old <= before)) {
            answer("error fetch-and-add %u: %s", i, result != 0 ? reason(result) : "an old value came twice");
            return;
        }
        jumps += i > 0 && old != before + 1; /* the other guest was in between */
        before = old;
    }
    answer("ok last=%" PRIu64 " interleaved=%u", old, jumps);
}

static void command_counter(struct pair *pair, char **words)
{
    (void)words;
    answer("ok value=%" PRIu64, *(volatile uint64_t *)(void *)area(pair, AREA_SMALL));
}

/* Small whole numbers: their float sums are exact in any order. */
static float element(unsigned factor, uint32_t i)
{
    return (float)(int32_t)((i * factor) % 8191) - 4096.0f;
}

/* vector FACTOR: fills the area that is sent. base: fills the area that others reduce into, with factor 1. */
static void command_vector(struct pair *pair, char **words)
{
    bool base = strcmp(words[0], "base") == 0;
    unsigned factor = base ? 1 : (unsigned)strtoul(words[1], NULL, 10);
    float *vector = (float *)(void *)area(pair, base ? AREA_IN : AREA_OUT);

    for (uint32_t i = 0; i < VECTOR_COUNT; i++) {
        vector[i] = element(factor, i);
    }
    answer("ok elements=%u", VECTOR_COUNT);
}

static void command_reduce(struct pair *pair, char **words)
{
    uint64_t start = now_ns();
    int result = netdam_reduce(pair->queue, NETDAM_ALU_SUM, NETDAM_TYPE_F32,
                               remote_at(pair, peer_named(pair, words[1]), AREA_IN * AREA_BYTES),
                               local_at(pair, AREA_OUT * AREA_BYTES), VECTOR_BYTES, NETDAM_FOREVER);

    if (result != 0) {
        answer("error reduce: %s", reason(result));
        return;
    }
    answer("ok seconds=%.6f", (double)(now_ns() - start) / 1e9);
}

/* check FACTOR FACTOR: the area that others reduce into, element by element. */
static void command_check(struct pair *pair, char **words)
{
    unsigned a = (unsigned)strtoul(words[1], NULL, 10);
    unsigned b = (unsigned)strtoul(words[2], NULL, 10);
    const float *vector = (const float *)(const void *)area(pair, AREA_IN);
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < VECTOR_COUNT; i++) {
        wrong += vector[i] != element(1, i) + element(a, i) + element(b, i);
    }
    answer("ok elements=%u wrong=%u", VECTOR_COUNT, wrong);
}

/* group RANK ADDRESS...: all members' addresses, the own one included. */
static void command_group(struct pair *pair, char **words)
{
    struct netdam_group_member members[MEMBERS_MAX] = {{0}};
    unsigned rank = (unsigned)strtoul(words[1], NULL, 10);
    unsigned count = 0;
    int result = 0;

    for (; count < MEMBERS_MAX && words[2 + count] != NULL && result == 0; count++) {
        members[count].key = pair->key;
        members[count].input = AREA_OUT * AREA_BYTES;
        members[count].output = AREA_IN * AREA_BYTES;
        members[count].control = AREA_SMALL * AREA_BYTES + CONTROL_OFFSET;
        if (count != rank) {
            result = netdam_peer_open(pair->device, words[2 + count], &members[count].peer);
        }
    }
    memset(area(pair, AREA_SMALL) + CONTROL_OFFSET, 0, NETDAM_CONTROL_BYTES(MEMBERS_MAX));
    result = result != 0 ? result : netdam_group_create(pair->device, members, count, rank, pair->region, &pair->group);
    if (result != 0) {
        answer("error group: %s", reason(result));
        return;
    }
    answer("ok members=%u", count);
}

/* all-reduce FACTOR...: of the area that is sent, into the other; the sum is checked against all members' factors. */
static void command_all_reduce(struct pair *pair, char **words)
{
    const float *vector = (const float *)(const void *)area(pair, AREA_IN);
    uint64_t start = now_ns(), seconds_ns;
    unsigned member = NETDAM_HOP_NONE;
    uint32_t wrong = 0;
    int result = pair->group == NULL ? -EINVAL
                                     : netdam_all_reduce(pair->queue, pair->group, NETDAM_ALU_SUM, NETDAM_TYPE_F32,
                                                         VECTOR_BYTES, &member, NETDAM_FOREVER);

    if (result != 0) {
        answer("error all-reduce: %s, member %u", reason(result), member);
        return;
    }
    seconds_ns = now_ns() - start;
    for (uint32_t i = 0; i < VECTOR_COUNT; i++) {
        float sum = 0;

        for (unsigned k = 1; words[k] != NULL; k++) {
            sum += element((unsigned)strtoul(words[k], NULL, 10), i);
        }
        wrong += vector[i] != sum;
    }
    answer("ok elements=%u wrong=%u seconds=%.6f", VECTOR_COUNT, wrong, (double)seconds_ns / 1e9);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Operations that are measured; small is what a latency is taken of. */
static const struct {
    const char *name;
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint32_t small;
} measured[] = {
    {"write", NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, 8},
    {"read", NETDAM_OP_READ, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, 8},
    {"reduce", NETDAM_OP_REDUCE, NETDAM_ALU_SUM, NETDAM_TYPE_F32, 8},
    {"fetch-add", NETDAM_OP_FETCH_ADD, NETDAM_ALU_NONE, NETDAM_TYPE_U64, 8},
    {"cas", NETDAM_OP_CAS, NETDAM_ALU_NONE, NETDAM_TYPE_U64, 8},
};

/* A request to the other card, at a place where nothing else is, and with a buffer where it needs one. */
static bool make_request(const struct pair *pair, const char *name, uint32_t bytes, uint64_t place,
                         struct netdam_request *request)
{
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        if (strcmp(measured[i].name, name) == 0) {
            bool atomic = (netdam_op_flags(measured[i].opcode) & NETDAM_OPF_ATOMIC) != 0;

            memset(request, 0, sizeof(*request));
            request->opcode = measured[i].opcode;
            request->operation = measured[i].operation;
            request->type = measured[i].type;
            request->length = bytes != 0 ? bytes : measured[i].small;
            request->remote = remote_at(pair, pair->peer, AREA_IN * AREA_BYTES + place);
            if (!atomic) {
                request->local = local_at(pair, AREA_OUT * AREA_BYTES + place);
            }
            return true;
        }
    }
    return false;
}

/* One request, waited for; with `asleep`, on the card's interrupt. Returns 0, a status or a negative errno. */
static int one_request(struct pair *pair, const struct netdam_request *request, bool asleep)
{
    struct netdam_completion completion;
    int result = netdam_post(pair->queue, request, 1);

    if (result < 0) {
        return result;
    }
    while (asleep && netdam_queue_arm(pair->queue) == 0) {
        struct pollfd waiting = {.fd = netdam_queue_fd(pair->queue), .events = POLLIN};

        if (poll(&waiting, 1, INTERRUPT_MS) != 1) {
            return -ETIMEDOUT;
        }
    }
    result = netdam_wait(pair->queue, &completion, 1, NETDAM_FOREVER);
    return result < 0 ? result : completion.status;
}

/* latency OPERATION [asleep]: from posting a small request to its completion, one at a time. */
static void command_latency(struct pair *pair, char **words)
{
    static uint64_t times[LATENCY_COUNT];
    bool asleep = words[2] != NULL;
    struct netdam_request request;

    if (!make_request(pair, words[1], 0, 0, &request)) {
        answer("error no operation %s", words[1]);
        return;
    }
    for (unsigned i = 0; i < LATENCY_COUNT; i++) {
        uint64_t start = now_ns();
        int result = one_request(pair, &request, asleep);

        times[i] = now_ns() - start;
        if (result != 0) {
            answer("error %s of %u bytes: %s", words[1], request.length, reason(result));
            return;
        }
    }
    qsort(times, LATENCY_COUNT, sizeof(times[0]), compare_u64);
    answer("ok count=%d bytes=%u min_us=%.3f p50_us=%.3f p99_us=%.3f", LATENCY_COUNT, request.length,
           (double)times[0] / 1e3, (double)times[LATENCY_COUNT / 2] / 1e3,
           (double)times[LATENCY_COUNT * 99 / 100] / 1e3);
}

/* bandwidth OPERATION: 64 KiB each, several under way. */
static void command_bandwidth(struct pair *pair, char **words)
{
    unsigned posted = 0, done = 0;
    uint64_t start = now_ns();

    while (done < BULK_COUNT) {
        struct netdam_completion completions[BULK_DEPTH];
        int got;

        while (posted < BULK_COUNT && posted - done < BULK_DEPTH) {
            struct netdam_request request;
            int result = -EINVAL;

            if (make_request(pair, words[1], BULK_BYTES, (posted % BULK_DEPTH) * (uint64_t)BULK_BYTES, &request)) {
                result = netdam_post(pair->queue, &request, 1);
            }
            if (result == -EAGAIN) {
                break;
            }
            if (result < 0) {
                answer("error %s: %s", words[1], reason(result));
                return;
            }
            posted++;
        }
        got = netdam_wait(pair->queue, completions, BULK_DEPTH, NETDAM_FOREVER);
        if (got < 0) {
            answer("error wait: %s", reason(got));
            return;
        }
        for (int i = 0; i < got; i++) {
            if (completions[i].status != NETDAM_STATUS_OK) {
                answer("error %s of 64 KiB: %s", words[1], netdam_status_name(completions[i].status));
                return;
            }
        }
        done += (unsigned)got;
    }
    answer("ok bytes=%" PRIu64 " GBps=%.4f", (uint64_t)BULK_COUNT * BULK_BYTES,
           (double)BULK_COUNT * BULK_BYTES / (double)(now_ns() - start));
}

static uint64_t message_address(unsigned number)
{
    return AREA_SMALL * AREA_BYTES + MESSAGES_OFFSET + (uint64_t)number * MESSAGE_BYTES;
}

/* What message `number` holds. */
static uint8_t message_byte(unsigned number, unsigned at)
{
    return (uint8_t)(number * 7 + at * 13 + (at >> 8));
}

/* post: receive buffers for messages; the key that a sender must name. */
static void command_post(struct pair *pair, char **words)
{
    (void)words;
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct netdam_receive receive = {
            .user_data = i, .local = local_at(pair, message_address(i)), .length = MESSAGE_BYTES};
        int result = netdam_post_receive(pair->queue, &receive, 1);

        if (result != 1) {
            answer("error post of a receive buffer: %s", reason(result));
            return;
        }
    }
    answer("ok key=%016" PRIx64, netdam_queue_receive_key(pair->queue));
}

/* send KEY: a message after another, the number in front. */
static void command_send(struct pair *pair, char **words)
{
    struct netdam_remote to = {.peer = pair->peer, .key = strtoull(words[1], NULL, 16)};

    for (unsigned i = 0; i < MESSAGES; i++) {
        uint8_t *message = area(pair, AREA_SMALL) + MESSAGES_OFFSET;
        int result;

        memcpy(message, &i, sizeof(i));
        for (unsigned at = sizeof(i); at < MESSAGE_BYTES; at++) {
            message[at] = message_byte(i, at);
        }
        result = netdam_send(pair->queue, to, local_at(pair, message_address(0)), MESSAGE_BYTES, NETDAM_FOREVER);
        if (result != 0) {
            answer("error send of message %u: %s", i, reason(result));
            return;
        }
    }
    answer("ok messages=%d", MESSAGES);
}

/* receive: every message once, in whole, in a buffer of its own. */
static void command_receive(struct pair *pair, char **words)
{
    bool seen[MESSAGES] = {false};
    unsigned wrong = 0;

    (void)words;
    for (unsigned n = 0; n < MESSAGES; n++) {
        struct netdam_completion completion;
        const uint8_t *message;
        unsigned number;
        int got = netdam_wait(pair->queue, &completion, 1, UINT64_C(20000000000));

        if (got != 1 || completion.user_data >= MESSAGES) {
            answer("error message %u did not come: %s", n, reason(got));
            return;
        }
        message = pair->memory + message_address((unsigned)completion.user_data);
        memcpy(&number, message, sizeof(number));
        wrong += completion.status != NETDAM_STATUS_OK || (completion.flags & NETDAM_COMPLETION_RECEIVE) == 0 ||
                 completion.length != MESSAGE_BYTES || number >= MESSAGES || seen[number % MESSAGES];
        seen[number % MESSAGES] = true;
        for (unsigned at = sizeof(number); at < MESSAGE_BYTES; at++) {
            wrong += message[at] != message_byte(number, at);
        }
    }
    answer("ok messages=%d wrong=%u", MESSAGES, wrong);
}

/*
 * lock self|other TIMES: takes a lock by compare-and-swap, reads a number, writes it back plus one, releases the lock. The
 * number is as large as both guests' TIMES only if no update was lost.
 */
static void command_lock(struct pair *pair, char **words)
{
    struct netdam_peer *peer = peer_named(pair, words[1]);
    struct netdam_remote lock = remote_at(pair, peer, AREA_SMALL * AREA_BYTES + 64);
    struct netdam_remote number = remote_at(pair, peer, AREA_SMALL * AREA_BYTES + 128);
    struct netdam_local copy = local_at(pair, AREA_SMALL * AREA_BYTES + 192);
    volatile uint64_t *value = (volatile uint64_t *)(void *)(area(pair, AREA_SMALL) + 192);
    unsigned times = (unsigned)strtoul(words[2], NULL, 10);
    unsigned refused = 0;

    for (unsigned i = 0; i < times; i++) {
        uint64_t old = 1;
        int result = 0;

        while (result == 0 && old != 0) {
            result = netdam_cas(pair->queue, NETDAM_TYPE_U64, lock, 0, 1, &old, NETDAM_FOREVER);
            refused += result == 0 && old != 0;
        }
        result = result != 0 ? result : netdam_read(pair->queue, copy, number, 8, NETDAM_FOREVER);
        *value += result == 0;
        result = result != 0 ? result : netdam_write(pair->queue, number, copy, 8, NETDAM_FOREVER);
        result = result != 0 ? result : netdam_cas(pair->queue, NETDAM_TYPE_U64, lock, 1, 0, &old, NETDAM_FOREVER);
        if (result != 0 || old != 1) {
            answer("error lock %u: %s", i, result != 0 ? reason(result) : "somebody else released it");
            return;
        }
    }
    answer("ok times=%u refused=%u number=%" PRIu64, times, refused,
           *(volatile uint64_t *)(void *)(area(pair, AREA_SMALL) + 128));
}

/* close: the card is free for another process, or to be opened again. */
static void command_close(struct pair *pair, char **words)
{
    (void)words;
    netdam_close(pair->device);
    free(pair->main_memory_copy);
    memset(pair, 0, sizeof(*pair));
    answer("ok");
}

/*
 * marker HEX: the marker with every bit inverted. It is turned round word by word in a register and stored in on-board
 * memory only, so that the marker itself never lies in main memory.
 */
static void command_marker(struct pair *pair, char **words)
{
    volatile uint64_t *to = (volatile uint64_t *)(void *)area(pair, AREA_OUT);
    int result;

    if (strlen(words[1]) != 2 * MARKER_BYTES) {
        answer("error a marker has %d bytes", MARKER_BYTES);
        return;
    }
    for (unsigned copy = 0; copy < MARKER_COPIES; copy++) {
        for (unsigned i = 0; i < MARKER_BYTES / 8; i++) {
            char digits[17] = "";

            memcpy(digits, words[1] + i * 16, 16);
            to[copy * (MARKER_BYTES / 8) + i] = ~__builtin_bswap64(strtoull(digits, NULL, 16));
        }
    }
    result = netdam_write(pair->queue, remote_at(pair, pair->peer, AREA_IN * AREA_BYTES),
                          local_at(pair, AREA_OUT * AREA_BYTES), MARKER_COPIES * MARKER_BYTES, NETDAM_FOREVER);
    if (result != 0) {
        answer("error write of the marker: %s", reason(result));
        return;
    }
    answer("ok copies=%d", MARKER_COPIES);
}

/* copy: what the marker's scan must find: the CPU copies it from on-board memory to main memory. */
static void command_copy(struct pair *pair, char **words)
{
    (void)words;
    pair->main_memory_copy = malloc(MARKER_COPIES * MARKER_BYTES);
    if (pair->main_memory_copy == NULL) {
        answer("error no memory");
        return;
    }
    memcpy(pair->main_memory_copy, area(pair, AREA_IN), MARKER_COPIES * MARKER_BYTES);
    answer("ok copies=%d", MARKER_COPIES);
}

static void command_stat(struct pair *pair, char **words)
{
    struct netdam_device_info info;
    uint64_t again = 0, interrupts = 0;
    int result = netdam_query(pair->device, &info);

    (void)words;
    result = result != 0 ? result : netdam_counter_read(pair->device, NETDAM_COUNTER_RETRANSMISSIONS, &again);
    result = result != 0 ? result : netdam_counter_read(pair->device, NETDAM_COUNTER_INTERRUPTS, &interrupts);
    if (result != 0) {
        answer("error query: %s", reason(result));
        return;
    }
    answer("ok main_memory_bytes=%" PRIu64 " retransmissions=%" PRIu64 " interrupts=%" PRIu64, info.main_memory_bytes,
           again, interrupts);
}

static const struct {
    const char *name;
    unsigned words; /* with the name */
    void (*run)(struct pair *pair, char **words);
} commands[] = {
    {"open", 4, command_open},       {"bus-master", 1, command_bus_master},
    {"load", 2, command_load},       {"push", 1, command_move},
    {"pull", 1, command_move},       {"sha256", 2, command_sha256},
    {"add", 3, command_add},         {"counter", 1, command_counter},
    {"vector", 2, command_vector},   {"base", 1, command_vector},
    {"reduce", 2, command_reduce},   {"check", 3, command_check},
    {"latency", 2, command_latency}, {"bandwidth", 2, command_bandwidth},
    {"marker", 2, command_marker},   {"copy", 1, command_copy},
    {"stat", 1, command_stat},       {"post", 1, command_post},
    {"send", 2, command_send},       {"receive", 1, command_receive},
    {"lock", 3, command_lock},       {"close", 1, command_close},
    {"group", 3, command_group},     {"all-reduce", 2, command_all_reduce},
};

static void obey(struct pair *pair, char *line)
{
    char *words[WORDS_MAX + 1] = {NULL};
    unsigned count = 0;

    for (char *word = strtok(line, " \r\n"); word != NULL && count < WORDS_MAX; word = strtok(NULL, " \r\n")) {
        words[count++] = word;
    }
    for (size_t i = 0; count > 0 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, words[0]) == 0 && count >= commands[i].words) {
            if (pair->device == NULL && commands[i].run != command_open) {
                answer("error open first");
            } else {
                commands[i].run(pair, words);
            }
            return;
        }
    }
    answer("error no such command, or too few words");
}

int main(void)
{
    struct pair pair = {0};
    char line[LINE_BYTES];

    answer("pair: ready");
    while (fgets(line, sizeof(line), stdin) != NULL && strncmp(line, "quit", 4) != 0) {
        obey(&pair, line);
    }
    netdam_close(pair.device);
    free(pair.main_memory_copy);
    return 0;
}
