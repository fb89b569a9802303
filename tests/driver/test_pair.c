/* SPDX-License-Identifier: BSD-3-Clause */
/* Two soft devices on loopback through the public interface: every operation, and every error status that can be had.
 */
#define _GNU_SOURCE
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdam.h"
#include "netdam/wire.h"

#define REGION_BYTES (UINT64_C(1) << 20)
#define KEY          UINT64_C(0x6b65794b45591234)

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)

struct side {
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_queue *queue;
    struct netdam_peer *peer; /* the other side */
    struct netdam_region *region;
    uint8_t *memory; /* of the region */
};

static struct side a;
static struct side b;

/* A port of this machine that nobody serves, kept bound so that nobody will; and a peer there. */
static int dead_socket;
static struct netdam_peer *dead_peer;
static struct netdam_queue *dead_queue;

static struct netdam_remote at_b(uint64_t address)
{
    return (struct netdam_remote){a.peer, KEY, address};
}

static struct netdam_local from_a(uint64_t address)
{
    return (struct netdam_local){a.region, address};
}

static void side_open(struct side *side, uint64_t key, uint32_t first_index)
{
    const struct netdam_queue_config config = {
        .submission_depth = 64, .completion_depth = 64, .first_index = first_index};
    uint64_t offset;

    assert_int_equal(netdam_open("udp:127.0.0.1:0,memory=4M", NULL, &side->device), 0);
    assert_int_equal(netdam_query(side->device, &side->info), 0);
    assert_int_equal(netdam_alloc(side->device, REGION_BYTES, 4096, &offset), 0);
    assert_int_equal(
        netdam_region_create(side->device, offset, REGION_BYTES, NETDAM_PERMISSION_ALL, key, &side->region), 0);
    side->memory = netdam_region_pointer(side->region);
    assert_int_equal(netdam_queue_create(side->device, &config, &side->queue), 0);
}

static void side_connect(struct side *side, const struct side *other)
{
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", other->info.udp_port);
    assert_int_equal(netdam_peer_open(side->device, address, &side->peer), 0);
}

static int open_both(void **state)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t name_bytes = sizeof(name);
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .user_data = 77, .length = 8};
    char address[32];

    (void)state;
    side_open(&a, 0, 0xffffff00);
    side_open(&b, KEY, 0xffffffff);
    side_connect(&a, &b);
    side_connect(&b, &a);

    /* Posted now, awaited by the last test: the retries take their time while the others run. */
    dead_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead_socket, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(getsockname(dead_socket, (struct sockaddr *)&name, &name_bytes), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(name.sin_port));
    assert_int_equal(netdam_peer_open(a.device, address, &dead_peer), 0);
    assert_int_equal(netdam_queue_create(a.device, NULL, &dead_queue), 0);
    request.remote.peer = dead_peer;
    request.local.region = a.region;
    assert_int_equal(netdam_post(dead_queue, &request, 1), 1);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    netdam_close(a.device);
    netdam_close(b.device);
    close(dead_socket);
    return 0;
}

static void fill(uint8_t *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
    }
}

static void write_and_read_move_exactly_the_bytes(void **state)
{
    const uint32_t payload = a.info.payload_max;
    const uint32_t lengths[] = {0, 1, 7, 8, payload - 1, payload, payload + 1, 5 * payload, 5 * payload + 3, 200001};

    (void)state;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        for (unsigned shift = 0; shift < 4; shift++) {
            uint64_t there = 1000 + shift;
            uint64_t here = 3000 + 3 * shift;
            uint32_t length = lengths[i];

            memset(a.memory, 0x11, REGION_BYTES);
            memset(b.memory, 0x22, REGION_BYTES);
            fill(a.memory + here, length, i);
            assert_int_equal(netdam_write(a.queue, at_b(there), from_a(here), length, SOON), 0);
            assert_memory_equal(b.memory + there, a.memory + here, length);
            assert_int_equal(b.memory[there - 1], 0x22);
            assert_int_equal(b.memory[there + length], 0x22);

            memset(a.memory, 0x11, REGION_BYTES);
            assert_int_equal(netdam_read(a.queue, from_a(here), at_b(there), length, SOON), 0);
            assert_memory_equal(a.memory + here, b.memory + there, length);
            assert_int_equal(a.memory[here - 1], 0x11);
            assert_int_equal(a.memory[here + length], 0x11);
        }
    }
}

static void echo_returns_what_was_sent(void **state)
{
    const uint32_t lengths[] = {0, 1, 100, a.info.payload_max, 3 * a.info.payload_max + 1};

    (void)state;
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        struct netdam_completion completion;
        struct netdam_request request = {
            .opcode = NETDAM_OP_ECHO, .remote = {a.peer, 0, 0}, .local = from_a(64), .length = lengths[i]};
        uint8_t *copy = malloc(lengths[i] + 1);

        fill(a.memory + 64, lengths[i], 5);
        memcpy(copy, a.memory + 64, lengths[i]);
        assert_int_equal(netdam_echo(a.queue, a.peer, from_a(64), lengths[i], SOON), 0);
        assert_memory_equal(a.memory + 64, copy, lengths[i]);
        free(copy);
        assert_int_equal(netdam_post(a.queue, &request, 1), 1);
        assert_int_equal(netdam_wait(a.queue, &completion, 1, SOON), 1);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.length, lengths[i]);
    }
}

/* What the memory must hold afterwards; the operands are chosen so that double arithmetic is exact. */
static double reduced(unsigned operation, double x, double y)
{
    switch (operation) {
    case NETDAM_ALU_MIN:
        return x < y ? x : y;
    case NETDAM_ALU_MAX:
        return x > y ? x : y;
    default:
        return x + y;
    }
}

static void store_element(unsigned type, uint8_t *place, double value)
{
    int32_t i32 = (int32_t)value;
    int64_t i64 = (int64_t)value;
    float f32 = (float)value;

    switch (type) {
    case NETDAM_TYPE_I32:
        memcpy(place, &i32, 4);
        break;
    case NETDAM_TYPE_I64:
        memcpy(place, &i64, 8);
        break;
    case NETDAM_TYPE_F32:
        memcpy(place, &f32, 4);
        break;
    default:
        memcpy(place, &value, 8);
        break;
    }
}

static void reduce_works_on_every_element_once(void **state)
{
    static const unsigned operations[] = {NETDAM_ALU_SUM, NETDAM_ALU_MIN, NETDAM_ALU_MAX};
    static const unsigned types[] = {NETDAM_TYPE_I32, NETDAM_TYPE_I64, NETDAM_TYPE_F32, NETDAM_TYPE_F64};
    const unsigned counts[] = {0, 1, 3, a.info.payload_max / 8, a.info.payload_max / 8 + 1, 5000};

    (void)state;
    for (unsigned o = 0; o < COUNT(operations); o++) {
        for (unsigned t = 0; t < COUNT(types); t++) {
            unsigned element = netdam_type_bytes(types[t]);

            assert_int_equal(netdam_opcode_query(a.device, NETDAM_OP_REDUCE, operations[o], types[t], NULL), 0);
            for (unsigned c = 0; c < COUNT(counts); c++) {
                unsigned count = counts[c];
                uint8_t expected[8];

                memset(b.memory, 0x22, REGION_BYTES);
                for (unsigned i = 0; i < count; i++) {
                    store_element(types[t], a.memory + i * element, (double)i * 3 - 1000);
                    store_element(types[t], b.memory + 64 + i * element, 2000 - (double)i);
                }
                assert_int_equal(netdam_reduce(a.queue, operations[o], types[t], at_b(64), from_a(0),
                                               (uint64_t)count * element, SOON),
                                 0);
                for (unsigned i = 0; i < count; i++) {
                    store_element(types[t], expected, reduced(operations[o], 2000 - (double)i, (double)i * 3 - 1000));
                    assert_memory_equal(b.memory + 64 + i * element, expected, element);
                }
                assert_int_equal(b.memory[63], 0x22);
                assert_int_equal(b.memory[64 + count * element], 0x22);
            }
        }
    }
}

static void atomics_return_the_old_value(void **state)
{
    static const unsigned types[] = {NETDAM_TYPE_I32, NETDAM_TYPE_U32, NETDAM_TYPE_I64, NETDAM_TYPE_U64};
    uint64_t old;

    (void)state;
    for (unsigned t = 0; t < COUNT(types); t++) {
        unsigned width = netdam_type_bytes(types[t]);
        uint64_t all_ones = width == 8 ? UINT64_MAX : UINT32_MAX;
        uint64_t memory = 0;

        memset(b.memory, 0xff, 64);
        assert_int_equal(netdam_fetch_add(a.queue, types[t], at_b(16), 43, &old, SOON), 0);
        assert_int_equal(old, all_ones);
        assert_int_equal(netdam_cas(a.queue, types[t], at_b(16), 41, 7, &old, SOON), 0); /* does not hold */
        assert_int_equal(old, 42);
        assert_int_equal(netdam_cas(a.queue, types[t], at_b(16), 42, 1000, &old, SOON), 0);
        assert_int_equal(old, 42);
        assert_int_equal(netdam_cas(a.queue, types[t], at_b(16), 1000, 1001, NULL, SOON), 0);
        memcpy(&memory, b.memory + 16, width);
        assert_int_equal(memory, 1001);
        assert_int_equal(b.memory[15], 0xff);
        assert_int_equal(b.memory[16 + width], 0xff);
    }
}

static void *count_up(void *opaque)
{
    struct side *side = opaque;
    uint64_t *failures = calloc(1, sizeof(*failures));

    for (unsigned i = 0; i < 500; i++) {
        /* Both count in B: B itself through a peer that is its own address. */
        struct netdam_remote cell = {side->peer, KEY, 4096};
        uint64_t old;

        *failures += netdam_fetch_add(side->queue, NETDAM_TYPE_U64, cell, 1, &old, SOON) != 0;
    }
    return failures;
}

static void concurrent_counters_are_exact(void **state)
{
    struct side own = b;
    uint64_t *failures[2];
    pthread_t thread;
    uint64_t value;

    (void)state;
    side_connect(&own, &b);
    memset(b.memory, 0, 8192);
    assert_int_equal(pthread_create(&thread, NULL, count_up, &own), 0);
    failures[0] = count_up(&a);
    assert_int_equal(pthread_join(thread, (void **)&failures[1]), 0);
    assert_int_equal(*failures[0] + *failures[1], 0);
    free(failures[0]);
    free(failures[1]);
    memcpy(&value, b.memory + 4096, sizeof(value));
    assert_int_equal(value, 1000);
    assert_int_equal(netdam_peer_close(own.peer), 0);
}

/* More requests than the ring has places, in flight together, over the wrap of the indices. */
static void many_requests_in_flight_complete_once(void **state)
{
    enum { TOTAL = 3000, BYTES = 64 };
    static uint8_t seen[TOTAL];
    unsigned posted = 0;
    unsigned completed = 0;

    (void)state;
    memset(seen, 0, sizeof(seen));
    memset(b.memory, 0, REGION_BYTES);
    fill(a.memory, TOTAL * BYTES, 99);
    while (completed < TOTAL) {
        struct netdam_completion completions[16];
        struct netdam_request requests[9];
        unsigned count = 0;
        int rc;

        while (count < 9 && posted + count < TOTAL) {
            uint64_t place = (uint64_t)(posted + count) * BYTES;

            requests[count] = (struct netdam_request){.opcode = NETDAM_OP_WRITE,
                                                      .user_data = posted + count,
                                                      .remote = at_b(place),
                                                      .local = from_a(place),
                                                      .length = BYTES};
            count++;
        }
        rc = netdam_post(a.queue, requests, count);
        assert_true(rc >= 0 || rc == -EAGAIN);
        if (rc > 0) {
            posted += (unsigned)rc;
            continue;
        }
        rc = netdam_wait(a.queue, completions, 16, SOON);
        assert_true(rc > 0);
        for (int i = 0; i < rc; i++) {
            assert_int_equal(completions[i].status, NETDAM_STATUS_OK);
            assert_int_equal(completions[i].length, BYTES);
            assert_int_equal(seen[completions[i].user_data]++, 0);
        }
        completed += (unsigned)rc;
    }
    assert_memory_equal(a.memory, b.memory, TOTAL * BYTES);
    assert_int_equal(netdam_queue_outstanding(a.queue), 0);
}

static void interrupt_wakes_poll(void **state)
{
    struct pollfd pollfd = {.fd = netdam_queue_fd(a.queue), .events = POLLIN};
    struct netdam_request request = {
        .opcode = NETDAM_OP_READ, .user_data = 3, .remote = at_b(0), .local = from_a(0), .length = 8};
    struct netdam_completion completion;

    (void)state;
    assert_true(pollfd.fd >= 0);
    for (unsigned round = 0; round < 20; round++) {
        int rc;

        assert_int_equal(netdam_post(a.queue, &request, 1), 1);
        rc = netdam_queue_arm(a.queue);
        assert_true(rc == 0 || rc == -EAGAIN);
        if (rc == 0) {
            assert_int_equal(poll(&pollfd, 1, 120000), 1);
        }
        assert_int_equal(netdam_poll(a.queue, &completion, 1), 1);
        assert_int_equal(completion.user_data, 3);
    }
}

static uint8_t status_of(const struct netdam_request *request, struct netdam_completion *completion)
{
    assert_int_equal(netdam_post(a.queue, request, 1), 1);
    assert_int_equal(netdam_wait(a.queue, completion, 1, SOON), 1);
    assert_int_equal(completion->opcode, request->opcode);
    return completion->status;
}

static void remote_mistakes_are_refused_and_change_nothing(void **state)
{
    struct netdam_region *readable;
    struct netdam_region *writable;
    uint8_t *before = malloc(REGION_BYTES);
    uint64_t read_key;
    uint64_t write_key;
    uint64_t end = REGION_BYTES;
    uint64_t offset = (uint64_t)(b.memory - (uint8_t *)netdam_memory(b.device));
    uint64_t old = 5;

    (void)state;
    assert_int_equal(netdam_region_create(b.device, offset, 4096, NETDAM_PERMISSION_REMOTE_READ, 0, &readable), 0);
    assert_int_equal(netdam_region_create(b.device, offset, 4096, NETDAM_PERMISSION_REMOTE_WRITE, 0, &writable), 0);
    read_key = netdam_region_key(readable);
    write_key = netdam_region_key(writable);
    assert_int_not_equal(read_key, write_key);
    fill(a.memory, REGION_BYTES, 1);
    fill(b.memory, REGION_BYTES, 2);
    memcpy(before, b.memory, REGION_BYTES);

    const struct {
        struct netdam_request request;
        uint8_t status;
    } table[] = {
        {{.opcode = NETDAM_OP_WRITE, .remote = {a.peer, KEY + 1, 0}, .length = 8}, NETDAM_STATUS_BAD_KEY},
        {{.opcode = NETDAM_OP_READ, .remote = {a.peer, 0, 0}, .length = 8}, NETDAM_STATUS_BAD_KEY},
        {{.opcode = NETDAM_OP_WRITE, .remote = at_b(end - 7), .length = 8}, NETDAM_STATUS_BAD_RANGE},
        {{.opcode = NETDAM_OP_WRITE, .remote = at_b(end), .length = 1}, NETDAM_STATUS_BAD_RANGE},
        {{.opcode = NETDAM_OP_READ, .remote = at_b(UINT64_MAX - 3), .length = 8}, NETDAM_STATUS_BAD_RANGE},
        {{.opcode = NETDAM_OP_READ, .remote = at_b(UINT64_MAX - 8), .length = 8}, NETDAM_STATUS_BAD_RANGE},
        {{.opcode = NETDAM_OP_WRITE, .remote = {a.peer, read_key, 0}, .length = 8}, NETDAM_STATUS_NO_PERMISSION},
        {{.opcode = NETDAM_OP_READ, .remote = {a.peer, write_key, 0}, .length = 8}, NETDAM_STATUS_NO_PERMISSION},
        {{.opcode = NETDAM_OP_REDUCE,
          .operation = NETDAM_ALU_SUM,
          .type = NETDAM_TYPE_F32,
          .remote = {a.peer, write_key, 0},
          .length = 8},
         NETDAM_STATUS_NO_PERMISSION},
        {{.opcode = NETDAM_OP_REDUCE,
          .operation = NETDAM_ALU_SUM,
          .type = NETDAM_TYPE_F64,
          .remote = at_b(4),
          .length = 8},
         NETDAM_STATUS_MISALIGNED},
    };

    for (unsigned i = 0; i < COUNT(table); i++) {
        struct netdam_request request = table[i].request;
        struct netdam_completion completion;

        print_message("# expecting %s\n", netdam_status_name(table[i].status));
        request.local = from_a(0);
        request.user_data = i;
        assert_int_equal(status_of(&request, &completion), table[i].status);
        assert_int_equal(completion.user_data, i);
        assert_int_equal(completion.length, 0);
        assert_int_equal(completion.flags & NETDAM_COMPLETION_PARTIAL, 0);
    }
    assert_int_equal(netdam_fetch_add(a.queue, NETDAM_TYPE_U64, at_b(12), 1, &old, SOON), NETDAM_STATUS_MISALIGNED);
    assert_int_equal(netdam_cas(a.queue, NETDAM_TYPE_U32, at_b(end), 1, 2, &old, SOON), NETDAM_STATUS_BAD_RANGE);
    assert_int_equal(old, 5);
    assert_memory_equal(b.memory, before, REGION_BYTES);

    /* A key that is gone is a bad key. */
    assert_int_equal(netdam_read(a.queue, from_a(0), (struct netdam_remote){a.peer, read_key, 0}, 8, SOON), 0);
    assert_int_equal(netdam_region_destroy(readable), 0);
    assert_int_equal(netdam_read(a.queue, from_a(0), (struct netdam_remote){a.peer, read_key, 0}, 8, SOON),
                     NETDAM_STATUS_BAD_KEY);
    assert_int_equal(netdam_region_destroy(writable), 0);
    free(before);
}

static void range_that_ends_too_early_is_partial(void **state)
{
    uint32_t payload = a.info.payload_max;
    uint64_t start = REGION_BYTES - 2 * (uint64_t)payload;
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE, .remote = at_b(start), .local = from_a(0), .length = 3 * payload};
    struct netdam_completion completion;

    (void)state;
    memset(b.memory, 0, REGION_BYTES);
    fill(a.memory, 3 * payload, 4);
    assert_int_equal(status_of(&request, &completion), NETDAM_STATUS_BAD_RANGE);
    assert_int_equal(completion.length, 2 * payload);
    assert_int_equal(completion.flags & NETDAM_COMPLETION_PARTIAL, NETDAM_COMPLETION_PARTIAL);
    assert_memory_equal(b.memory + start, a.memory, 2 * payload);
}

static void local_mistakes_are_refused(void **state)
{
    struct netdam_region *source;
    struct netdam_region *sink;
    struct netdam_region *gone;
    uint64_t offset = (uint64_t)(a.memory - (uint8_t *)netdam_memory(a.device));
    uint32_t gone_index;

    (void)state;
    assert_int_equal(netdam_region_create(a.device, offset, 4096, NETDAM_PERMISSION_LOCAL_READ, 0, &source), 0);
    assert_int_equal(netdam_region_create(a.device, offset, 4096, NETDAM_PERMISSION_LOCAL_WRITE, 0, &sink), 0);

    const struct {
        struct netdam_request request;
        uint8_t status;
    } table[] = {
        {{.opcode = 0x7f, .local = {source, 0}, .length = 8}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_CONFIRM, .local = {source, 0}, .length = 0}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_WRITE, .flags = 0x80000000, .local = {source, 0}, .length = 8},
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_WRITE, .operation = NETDAM_ALU_SUM, .local = {source, 0}, .length = 8},
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_REDUCE,
          .operation = NETDAM_ALU_AND,
          .type = NETDAM_TYPE_F32,
          .local = {source, 0},
          .length = 8},
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_REDUCE,
          .operation = NETDAM_ALU_SUM,
          .type = NETDAM_TYPE_F32,
          .local = {source, 0},
          .length = 7},
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_FETCH_ADD, .type = NETDAM_TYPE_F32, .length = 4}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_FETCH_ADD, .type = NETDAM_TYPE_U64, .length = 4}, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {{.opcode = NETDAM_OP_WRITE, .local = {source, 4089}, .length = 8}, NETDAM_STATUS_LOCAL_RANGE},
        {{.opcode = NETDAM_OP_READ, .local = {sink, UINT64_MAX - 3}, .length = 8}, NETDAM_STATUS_LOCAL_RANGE},
        {{.opcode = NETDAM_OP_WRITE, .local = {sink, 0}, .length = 8}, NETDAM_STATUS_LOCAL_PERMISSION},
        {{.opcode = NETDAM_OP_READ, .local = {source, 0}, .length = 8}, NETDAM_STATUS_LOCAL_PERMISSION},
        {{.opcode = NETDAM_OP_ECHO, .local = {source, 0}, .length = 8}, NETDAM_STATUS_LOCAL_PERMISSION},
    };

    for (unsigned i = 0; i < COUNT(table); i++) {
        struct netdam_request request = table[i].request;
        struct netdam_completion completion;

        print_message("# %s, expecting %s\n", netdam_op_name(request.opcode) ? netdam_op_name(request.opcode) : "?",
                      netdam_status_name(table[i].status));
        request.remote.peer = a.peer;
        request.remote.key = request.opcode == NETDAM_OP_ECHO ? 0 : KEY;
        assert_int_equal(status_of(&request, &completion), table[i].status);
        assert_int_equal(completion.length, 0);
    }

    /* The device forgets a region while the handle's number is still in a gather list or a descriptor. */
    assert_int_equal(netdam_region_create(a.device, offset, 4096, NETDAM_PERMISSION_ALL, 0, &gone), 0);
    gone_index = netdam_region_index(gone);
    assert_int_equal(netdam_region_destroy(gone), 0);
    assert_int_equal(netdam_region_create(a.device, offset, 4096, NETDAM_PERMISSION_ALL, 0, &gone), 0);
    assert_int_equal(netdam_region_index(gone), gone_index); /* numbers are reused */
    assert_int_equal(netdam_region_destroy(gone), 0);
    assert_int_equal(netdam_region_destroy(source), 0);
    assert_int_equal(netdam_region_destroy(sink), 0);
}

static void closing_a_peer_flushes_what_is_under_way(void **state)
{
    struct sockaddr_in name;
    socklen_t name_bytes = sizeof(name);
    struct netdam_completion completion;
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .user_data = 8, .local = from_a(0), .length = 16};
    struct netdam_peer *peer;
    char address[32];

    (void)state;
    assert_int_equal(getsockname(dead_socket, (struct sockaddr *)&name, &name_bytes), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(name.sin_port));
    assert_int_equal(netdam_peer_open(a.device, address, &peer), 0);
    request.remote.peer = peer;

    /* Nobody answers within this time; the request goes on without us. */
    assert_int_equal(netdam_write(a.queue, (struct netdam_remote){peer, 1, 0}, from_a(0), 8, 2000000), -ETIMEDOUT);
    assert_int_equal(netdam_post(a.queue, &request, 1), 1);
    assert_int_equal(netdam_wait(a.queue, &completion, 1, 1000000), -ETIMEDOUT);
    assert_int_equal(netdam_peer_close(peer), 0);
    assert_int_equal(netdam_wait(a.queue, &completion, 1, SOON), 1);
    assert_int_equal(completion.user_data, 8);
    /* The latter if the machine was so busy that the device had not even taken it. */
    assert_true(completion.status == NETDAM_STATUS_FLUSHED || completion.status == NETDAM_STATUS_LOCAL_PEER);
    assert_int_equal(netdam_poll(a.queue, &completion, 1), 0);
}

static void tenants_regions_need_its_key(void **state)
{
    const uint8_t key[16] = "fifteen letters";
    struct netdam_region_config config = {.offset = (uint64_t)(b.memory - (const uint8_t *)netdam_memory(b.device)),
                                          .bytes = 4096,
                                          .permissions = NETDAM_PERMISSION_ALL,
                                          .key = KEY + 1,
                                          .tenant = 5};
    const struct netdam_queue_config pair = {.receive_depth = 4, .tenant = 5};
    struct netdam_remote remote = {.key = KEY + 1};
    struct netdam_region *region;
    struct netdam_queue *queue;
    char address[32];

    (void)state;
    snprintf(address, sizeof(address), "127.0.0.1:%u", b.info.udp_port);
    assert_int_equal(netdam_region_create_config(b.device, &config, &region), -ENOENT);
    assert_int_equal(netdam_peer_open_tenant(a.device, address, 5, &remote.peer), -ENOENT);
    assert_int_equal(netdam_queue_create(b.device, &pair, &queue), -ENOENT);
    assert_int_equal(netdam_tenant_set(a.device, 5, key, 3), -EINVAL);
    assert_int_equal(netdam_tenant_set(a.device, 5, NULL, NETDAM_TENANT_MODE_NONE), -ENOENT);
    assert_int_equal(netdam_tenant_set(a.device, 5, key, NETDAM_TENANT_MODE_ENCRYPT), 0);
    assert_int_equal(netdam_tenant_set(b.device, 5, key, NETDAM_TENANT_MODE_ENCRYPT), 0);
    assert_int_equal(netdam_region_create_config(b.device, &config, &region), 0);
    assert_int_equal(netdam_peer_open_tenant(a.device, address, 5, &remote.peer), 0);
    assert_int_equal(netdam_queue_create(b.device, &pair, &queue), 0);

    fill(a.memory, 4096, 99);
    assert_int_equal(netdam_write(a.queue, remote, from_a(0), 4096, SOON), 0);
    assert_memory_equal(b.memory, a.memory, 4096);
    memset(a.memory, 0, 4096);
    assert_int_equal(netdam_read(a.queue, from_a(0), remote, 4096, SOON), 0);
    assert_memory_equal(b.memory, a.memory, 4096);
    /* The same region without the key, another one with it. */
    remote.key = KEY;
    assert_int_equal(netdam_read(a.queue, from_a(0), remote, 8, SOON), NETDAM_STATUS_BAD_KEY);
    remote = (struct netdam_remote){a.peer, KEY + 1, 0};
    assert_int_equal(netdam_read(a.queue, from_a(0), remote, 8, SOON), NETDAM_STATUS_BAD_KEY);
    assert_int_equal(netdam_tenant_set(b.device, 5, NULL, NETDAM_TENANT_MODE_NONE), -EEXIST);
    assert_int_equal(netdam_region_destroy(region), 0);
    assert_int_equal(netdam_queue_destroy(queue), 0);
    assert_int_equal(netdam_tenant_set(b.device, 5, NULL, NETDAM_TENANT_MODE_NONE), 0);
}

static void limits_are_told(void **state)
{
    struct netdam_queue *queues[NETDAM_QUEUE_PAIRS_MAX];
    struct netdam_queue_config config = {.submission_depth = 2, .completion_depth = 2};
    struct netdam_region *region = NULL;
    struct netdam_region *regions[128];
    unsigned count = 0;
    int rc;

    (void)state;
    while (count < NETDAM_QUEUE_PAIRS_MAX && (rc = netdam_queue_create(b.device, &config, &queues[count])) == 0) {
        count++;
    }
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(count + 1, b.info.queue_pairs); /* one was there before */
    while (count > 0) {
        assert_int_equal(netdam_queue_destroy(queues[--count]), 0);
    }
    while (count < COUNT(regions) && (rc = netdam_region_create(b.device, 0, 4096, 1, 0, &regions[count])) == 0) {
        count++;
    }
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(count + 1, b.info.regions);
    while (count > 0) {
        assert_int_equal(netdam_region_destroy(regions[--count]), 0);
    }
    assert_int_equal(netdam_region_create(b.device, 0, 4096, 1, KEY, &region), -EEXIST);
    assert_int_equal(netdam_region_create(b.device, 0, 4096, 0x80000000, 0, &region), -EINVAL);
    assert_int_equal(netdam_region_create(b.device, 0, b.info.memory_bytes + 1, 1, 0, &region), -EINVAL);
    assert_null(region);
}

static void reset_flushes_and_the_device_works_again(void **state)
{
    struct side c;
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .user_data = 5, .length = 8};
    struct netdam_completion completion;
    struct netdam_device_info info;
    struct sockaddr_in name;
    socklen_t name_bytes = sizeof(name);
    char address[32];

    (void)state;
    side_open(&c, 0, 7);
    assert_int_equal(getsockname(dead_socket, (struct sockaddr *)&name, &name_bytes), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(name.sin_port));
    assert_int_equal(netdam_peer_open(c.device, address, &c.peer), 0);
    request.remote.peer = c.peer;
    request.local.region = c.region;
    assert_int_equal(netdam_post(c.queue, &request, 1), 1);
    assert_int_equal(netdam_reset(c.device), 0);
    assert_int_equal(netdam_wait(c.queue, &completion, 1, SOON), 1);
    assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
    assert_int_equal(completion.user_data, 5);
    assert_int_equal(netdam_poll(c.queue, &completion, 1), -ESTALE);
    assert_int_equal(netdam_query(c.device, &info), 0);
    assert_int_not_equal(netdam_generation_epoch(info.generation), netdam_generation_epoch(c.info.generation));
    assert_int_equal(netdam_queue_destroy(c.queue), 0);
    assert_int_equal(netdam_region_destroy(c.region), 0);
    assert_int_equal(netdam_peer_close(c.peer), 0);

    assert_int_equal(netdam_queue_create(c.device, NULL, &c.queue), 0);
    assert_int_equal(netdam_region_create(c.device, 0, 4096, NETDAM_PERMISSION_ALL, 0, &c.region), 0);
    side_connect(&c, &b);
    memcpy(netdam_region_pointer(c.region), "after reset", 12);
    assert_int_equal(
        netdam_write(c.queue, (struct netdam_remote){c.peer, KEY, 0}, (struct netdam_local){c.region, 0}, 12, SOON), 0);
    assert_string_equal((const char *)b.memory, "after reset");
    netdam_close(c.device);
}

/* A node that is reset has lost its lanes; the next modification meets STALE underneath and succeeds. */
static void peer_that_was_reset_is_found_again(void **state)
{
    uint64_t offset = (uint64_t)(b.memory - (uint8_t *)netdam_memory(b.device));
    int rc;

    (void)state;
    assert_int_equal(netdam_write(a.queue, at_b(0), from_a(0), 8, SOON), 0);
    assert_int_equal(netdam_reset(b.device), 0);
    assert_int_equal(netdam_queue_destroy(b.queue), 0);
    assert_int_equal(netdam_region_destroy(b.region), 0);
    assert_int_equal(netdam_peer_close(b.peer), 0);
    assert_int_equal(netdam_region_create(b.device, offset, REGION_BYTES, NETDAM_PERMISSION_ALL, KEY, &b.region), 0);
    assert_int_equal(netdam_queue_create(b.device, NULL, &b.queue), 0);
    side_connect(&b, &a);

    /* Sent under the old epoch, so its fate is unknown by the rules, though it was not applied; then all is well. */
    memcpy(a.memory, "UNKNOWN!", 8);
    rc = netdam_write(a.queue, at_b(0), from_a(0), 8, SOON);
    assert_true(rc == NETDAM_STATUS_UNKNOWN || rc == 0);
    memcpy(a.memory, "written!", 8);
    assert_int_equal(netdam_write(a.queue, at_b(0), from_a(0), 8, SOON), 0);
    assert_memory_equal(b.memory, "written!", 8);
}

static void payload_never_moves_through_main_memory(void **state)
{
    struct netdam_device_info info;
    uint64_t executed;
    uint64_t errors;

    (void)state;
    assert_int_equal(netdam_query(a.device, &info), 0);
    assert_int_equal(info.main_memory_bytes, 0);
    assert_int_equal(netdam_counter_read(b.device, NETDAM_COUNTER_REQUESTS_EXECUTED, &executed), 0);
    assert_true(executed > 0);
    /* The library never misuses a register. */
    assert_int_equal(netdam_counter_read(a.device, NETDAM_COUNTER_REGISTER_ERRORS, &errors), 0);
    assert_int_equal(errors, 0);
    assert_int_equal(netdam_counter_read(a.device, NETDAM_COUNTER_RING_ERRORS, &errors), 0);
    assert_int_equal(errors, 0);
}

static void request_to_a_dead_port_times_out(void **state)
{
    struct netdam_completion completion;

    (void)state;
    assert_int_equal(netdam_wait(dead_queue, &completion, 1, SOON), 1);
    assert_int_equal(completion.user_data, 77);
    assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
    assert_int_equal(completion.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_and_read_move_exactly_the_bytes),
        cmocka_unit_test(echo_returns_what_was_sent),
        cmocka_unit_test(reduce_works_on_every_element_once),
        cmocka_unit_test(atomics_return_the_old_value),
        cmocka_unit_test(concurrent_counters_are_exact),
        cmocka_unit_test(many_requests_in_flight_complete_once),
        cmocka_unit_test(interrupt_wakes_poll),
        cmocka_unit_test(remote_mistakes_are_refused_and_change_nothing),
        cmocka_unit_test(range_that_ends_too_early_is_partial),
        cmocka_unit_test(local_mistakes_are_refused),
        cmocka_unit_test(closing_a_peer_flushes_what_is_under_way),
        cmocka_unit_test(limits_are_told),
        cmocka_unit_test(tenants_regions_need_its_key),
        cmocka_unit_test(reset_flushes_and_the_device_works_again),
        cmocka_unit_test(peer_that_was_reset_is_found_again),
        cmocka_unit_test(payload_never_moves_through_main_memory),
        cmocka_unit_test(request_to_a_dead_port_times_out),
    };

    return cmocka_run_group_tests_name("driver over two soft devices", tests, open_both, close_both);
}
