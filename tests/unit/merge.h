/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that merges: short descriptors beside one another, and what is left when all has ended. */
#ifndef UNIT_MERGE_H
#define UNIT_MERGE_H

#include "bench.h"

#define GENERATION UNIT_GENERATION
#define OTHER_RING UINT64_C(0x10000)

static struct bench b;

static inline void start(unsigned family, uint64_t generation)
{
    struct netdam_fw_config config = bench_config();

    config.no_merge = 0;
    bench_start(&b, &config, family, generation);
}

/* A WRITE of its own local bytes, `at` bytes from BENCH_REMOTE. */
static inline struct netdam_descriptor write_of(uint64_t at, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = bench_descriptor(&b, NETDAM_OP_WRITE, 3 + user_data * 2001, length, user_data);

    d.remote_address += at;
    return d;
}

static inline struct netdam_descriptor reduce_of(unsigned operation, unsigned type, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = write_of(0, length, user_data);

    d.opcode = NETDAM_OP_REDUCE;
    d.operation = (uint8_t)operation;
    d.type = (uint8_t)type;
    return d;
}

static inline void post(const struct netdam_descriptor *descriptor)
{
    unit_post(&b.u, &b.queue, descriptor);
}

static inline void post_write(uint64_t at, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = write_of(at, length, user_data);

    post(&d);
}

/* Whether `bytes` of a packet are what the WRITE `user_data` reads. */
static inline void expect_bytes(const uint8_t *payload, uint64_t user_data, uint32_t bytes)
{
    assert_memory_equal(payload, b.u.node.memory + BENCH_LOCAL + 3 + user_data * 2001, bytes);
}

static inline void expect_completion(uint64_t user_data, enum netdam_status status, uint32_t length)
{
    struct netdam_completion c = unit_completion(&b.queue);

    assert_int_equal(c.user_data, user_data);
    assert_int_equal(c.status, status);
    assert_int_equal(c.length, length);
    assert_int_equal(c.flags, 0);
    assert_true(c.result == 0);
}

/* Each request that was taken has ended once: no place of the table is left behind. */
static inline void expect_rest(void)
{
    uint32_t free_places = 0;

    unit_expect_silence(&b.u);
    unit_expect_no_completion(&b.queue);
    for (uint32_t at = b.u.fw->operation_free; at != NDFW_NONE; at = b.u.fw->operations[at].next) {
        assert_false(b.u.fw->operations[at].in_use);
        free_places++;
    }
    assert_int_equal(free_places, b.u.fw->config.operations);
    assert_int_equal(b.u.fw->queues[b.queue.id].outstanding, 0);
}

static inline void stop(void)
{
    expect_rest();
    unit_stop(&b.u);
}

#endif
