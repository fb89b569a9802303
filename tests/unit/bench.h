/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that sends: one local region between canaries, one queue pair, one peer, and short descriptors for them. */
#ifndef UNIT_BENCH_H
#define UNIT_BENCH_H

#include "unit.h"

#define BENCH_RINGS  UINT64_C(0x1000)
#define BENCH_LOG2   6u
#define BENCH_LOCAL  UINT64_C(0x40000)
#define BENCH_LENGTH UINT64_C(0x20003)
#define BENCH_REMOTE UINT64_C(0x0123456789ab)

struct bench {
    struct unit u;
    struct ndtest_queue queue;
    uint32_t region;
    uint32_t peer;
};

static inline struct netdam_fw_config bench_config(void)
{
    struct netdam_fw_config config = unit_config(0);

    config.rto_initial_ns = 10 * UNIT_MS;
    config.rto_min_ns = 10 * UNIT_MS;
    config.rto_max_ns = 80 * UNIT_MS;
    config.retries = 5;
    config.confirm_idle_ns = 100 * UNIT_MS;
    return config;
}

/* `generation` 0: the peer has not been heard of. */
static inline void bench_start(struct bench *b, const struct netdam_fw_config *config, unsigned family,
                               uint64_t generation)
{
    struct netdam_fw_config chosen = config != NULL ? *config : bench_config();

    unit_start(&b->u, 0, &chosen);
    unit_memory_pattern(&b->u, BENCH_LOCAL - 64, BENCH_LENGTH + 128, 9);
    b->region =
        unit_region(&b->u, BENCH_LOCAL, BENCH_LENGTH, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, 0);
    unit_queue(&b->u, &b->queue, BENCH_RINGS, BENCH_LOG2);
    b->peer = unit_peer(&b->u, family, generation);
}

static inline struct netdam_descriptor bench_descriptor(const struct bench *b, unsigned opcode, uint64_t local,
                                                        uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = {
        .opcode = (uint8_t)opcode,
        .user_data = user_data,
        .peer = b->peer,
        .length = length,
        .remote_key = opcode == NETDAM_OP_ECHO ? 0 : UNIT_KEY,
        .remote_address = opcode == NETDAM_OP_ECHO ? 0 : BENCH_REMOTE,
        .local_region = b->region,
        .u.buffer.local_address = local,
    };

    return d;
}

static inline struct netdam_descriptor bench_atomic(const struct bench *b, unsigned opcode, unsigned type,
                                                    uint64_t first, uint64_t second, uint64_t user_data)
{
    struct netdam_descriptor d = {
        .opcode = (uint8_t)opcode,
        .type = (uint8_t)type,
        .user_data = user_data,
        .peer = b->peer,
        .length = netdam_type_bytes(type),
        .remote_key = UNIT_KEY,
        .remote_address = BENCH_REMOTE,
        .u.operand = {first, second},
    };

    return d;
}

/* Posts and runs. */
static inline void bench_do(struct bench *b, const struct netdam_descriptor *descriptor)
{
    unit_post(&b->u, &b->queue, descriptor);
    unit_run(&b->u);
}

static inline void bench_write(struct bench *b, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = bench_descriptor(b, NETDAM_OP_WRITE, 0, length, user_data);

    bench_do(b, &d);
}

/* Packets point into frames that go away: these keep theirs. */
struct bench_packets {
    struct ndtest_packet packet[128];
    uint8_t *payload[128];
    unsigned count;
};

static inline void bench_collect(struct bench *b, struct bench_packets *packets)
{
    packets->count = 0;
    while (packets->count < 128 && unit_sent(&b->u, &packets->packet[packets->count])) {
        struct ndtest_packet *packet = &packets->packet[packets->count];

        packets->payload[packets->count] = malloc(packet->payload_bytes + 1u);
        memcpy(packets->payload[packets->count], packet->payload, packet->payload_bytes);
        packet->payload = packets->payload[packets->count];
        packets->count++;
    }
}

static inline void bench_free(struct bench_packets *packets)
{
    for (unsigned i = 0; i < packets->count; i++) {
        free(packets->payload[i]);
    }
    packets->count = 0;
}

/* The next packet has to be this request. */
static inline void bench_expect_request(struct bench *b, struct ndtest_packet *p, unsigned opcode, uint64_t number,
                                        uint64_t generation)
{
    unit_expect_sent(&b->u, p);
    assert_int_equal(p->kind, NETDAM_KIND_REQUEST);
    assert_int_equal(p->opcode, opcode);
    assert_true(p->number == number);
    assert_true(p->generation == generation);
}

/* When the next packet goes out, or 0: runs at exactly the times the firmware asks for. */
static inline uint64_t bench_next_packet_ns(struct bench *b, struct ndtest_packet *p)
{
    for (unsigned i = 0; i < 100; i++) {
        if (b->u.count != 0) {
            unit_expect_sent(&b->u, p);
            return b->u.now_ns;
        }
        if (b->u.result.next_ns == NETDAM_FW_NEVER) {
            break;
        }
        b->u.now_ns = b->u.result.next_ns;
        unit_run(&b->u);
    }
    return 0;
}

#endif
