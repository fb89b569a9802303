/* SPDX-License-Identifier: BSD-3-Clause */
/* A RAW queue pair on node 1: frames for it, sent by it, and seen on the wire. */
#ifndef UNIT_RAW_H
#define UNIT_RAW_H

#include "unit.h"

#define RINGS UINT64_C(0x8000)
#define DATA  UINT64_C(0x20000) /* frames to send: region 0 */
#define ROOM  UINT64_C(0x40000) /* frames received: region 1 */
#define LOG2  5u

static struct unit u;
static struct ndtest_queue raw;
static uint8_t frame[UNIT_FRAME_ROOM];

static const uint8_t own[6] = {2, 0, 0, 0, 0, 1}, other[6] = {2, 0, 0, 0, 0, 2};

static inline enum netdam_admin_status steer(uint64_t queue, uint64_t rule, uint64_t value)
{
    uint64_t args[] = {queue, rule, value}, results[NETDAM_ADMIN_RESULTS];

    return unit_admin(&u, NETDAM_ADMIN_STEERING_SET, args, 3, results);
}

static inline void start(const struct netdam_fw_config *config)
{
    unit_start(&u, 0, config);
    unit_region(&u, DATA, 0x10000, NETDAM_PERMISSION_LOCAL_READ, 0);
    unit_region(&u, ROOM, 0x20000, NETDAM_PERMISSION_LOCAL_WRITE, 0);
    assert_int_equal(ndtest_queue_create_raw(&raw, &u.node, RINGS, LOG2, u.now_ns), NETDAM_ADMIN_STATUS_OK);
}

/* Buffers of `bytes`, 0x2800 apart; their user data counts from `first` on. */
static inline void post_buffers(unsigned first, unsigned count, uint32_t bytes)
{
    for (unsigned i = first; i < first + count; i++) {
        struct netdam_descriptor d = {
            .user_data = i, .length = bytes, .local_region = 1, .u.buffer.local_address = (i % 8) * 0x2800};

        assert_true(ndtest_queue_post_receive(&raw, &d));
    }
}

/* A frame of `bytes` whose first 14 say to and from whom; the rest is a pattern. */
static inline void make(const uint8_t *to, const uint8_t *from, unsigned type, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        frame[i] = (uint8_t)(i * 5 + 3);
    }
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    unit_put16(frame + 12, type);
}

/* A UDP packet over IP of `family`, whose addresses end with `from` and `to`. */
static inline size_t make_udp(unsigned family, unsigned from, unsigned to, unsigned from_port, unsigned to_port)
{
    struct unit_request r = {.opcode = NETDAM_OP_ECHO, .family = family};
    size_t bytes = unit_request_frame(frame, 1, &r);
    size_t at = family == 6 ? 54 : 34;

    frame[at - (family == 6 ? 17 : 5)] = (uint8_t)from;
    frame[at - 1] = (uint8_t)to;
    unit_put16(frame + at, from_port);
    unit_put16(frame + at + 2, to_port);
    ndtest_frame_repair(frame, bytes, false);
    if (family == 4) { /* which leaves alone what is not for the NetDAM port */
        unit_repair_ipv4(frame);
    }
    return bytes;
}

static inline void send(size_t bytes, uint64_t user_data)
{
    struct netdam_descriptor d = {.user_data = user_data, .length = (uint32_t)bytes};

    memcpy(u.node.memory + DATA, frame, bytes);
    unit_post(&u, &raw, &d);
    unit_run(&u);
}

static inline void expect_wire(size_t bytes)
{
    size_t sent;
    const uint8_t *got = unit_sent_frame(&u, &sent);

    assert_non_null(got);
    assert_int_equal(sent, bytes);
    assert_memory_equal(got, frame, bytes);
}

#endif
