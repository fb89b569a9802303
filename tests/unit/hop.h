/* SPDX-License-Identifier: BSD-3-Clause */
/* Node 2, which gets chains: what it answers, what it passes on. */
#ifndef UNIT_HOP_H
#define UNIT_HOP_H

#include "chain.h"

static struct unit u;
static uint8_t pattern[CHAIN_BYTES];

static inline void set_neighbour(unsigned last)
{
    const uint64_t ipv4[] = {0x0a000000 + last, 0, 4, UINT64_C(0x020000000000) + last},
                   ipv6[] = {UINT64_C(0xfd) << 56, last, 6, UINT64_C(0x020000000000) + last};

    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_NEIGHBOUR_SET, ipv4, 4, NULL), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_NEIGHBOUR_SET, ipv6, 4, NULL), NETDAM_ADMIN_STATUS_OK);
}

/* Node 2; the link-layer addresses of nodes 1 to 9 are known. */
static inline void start_with(const struct netdam_fw_config *config)
{
    unit_start(&u, 1, config);
    unit_region(&u, CHAIN_BASE, CHAIN_BYTES, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_memory_pattern(&u, CHAIN_BASE, CHAIN_BYTES, 3);
    memcpy(pattern, u.node.memory + CHAIN_BASE, CHAIN_BYTES);
    for (unsigned last = 1; last <= 9; last++) {
        set_neighbour(last);
    }
}

static inline struct netdam_fw_config config_of(uint32_t mtu)
{
    struct netdam_fw_config config = unit_config(1);

    config.mtu = mtu;
    config.refusal_burst = 1u << 16;
    return config;
}

static inline void start(void)
{
    struct netdam_fw_config config = config_of(1500);

    start_with(&config);
}

static inline bool memory_is_as_before(void)
{
    return memcmp(u.node.memory + CHAIN_BASE, pattern, CHAIN_BYTES) == 0;
}

static inline void expect_dropped(const char *what, uint64_t drops)
{
    if (u.count != 0) {
        fail_msg("%s: %u frames were sent", what, u.count);
    }
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_FORWARDS_DROPPED), drops);
}

/* The answer that a chain gets, from the segment with this index. */
static inline struct ndtest_packet expect_answer(const char *what, const struct chain *c, enum netdam_status status)
{
    struct ndtest_packet answer = {0};
    size_t bytes = 0;

    if (unit_sent_frame(&u, &bytes) == NULL) {
        fail_msg("%s: no answer", what);
    }
    assert_true(ndtest_packet_read(u.shown, bytes, chain_target(&u).port, &answer));
    if (answer.kind != NETDAM_KIND_RESPONSE) {
        fail_msg("%s: was passed on", what);
    }
    if (answer.status != (uint8_t)status) {
        fail_msg("%s: status %#x, not %#x", what, answer.status, (unsigned)status);
    }
    assert_true(answer.context == c->context && answer.number == c->number);
    assert_int_equal(answer.distance, c->distance);
    assert_int_equal(answer.segment_count, c->count);
    assert_int_equal(answer.segment_index, c->index);
    assert_int_equal(answer.header[32 + 3], c->index);
    assert_int_equal(answer.node_form, 0);
    return answer;
}

/* The packet that is passed on: the chain with the next index, with this payload, and the origin filled in. */
static inline void expect_passed_on(const char *what, const struct chain *c, const uint8_t *payload, uint32_t bytes)
{
    static uint8_t frame[UNIT_FRAME_ROOM];
    struct chain next = *c;
    const uint8_t *sent;
    size_t got, expected, headers = c->family == 6 ? 62 : 42;
    struct chain_target target;

    next.index++;
    if (next.origin.port == 0) {
        next.origin = chain_node(c->family, 1);
        next.origin.port = c->from_port;
    }
    if (bytes != 0) {
        memcpy(next.payload, payload, bytes);
    }
    next.payload_length = bytes;
    next.from_port = NETDAM_UDP_PORT;
    next.no_crc = c->no_crc && u.fw->config.no_payload_crc != 0;
    expected = chain_frame(frame, &next);
    sent = unit_sent_frame(&u, &got);
    if (sent == NULL) {
        fail_msg("%s: nothing passed on", what);
        return;
    }
    if (got != expected || memcmp(sent + headers, frame + headers, got - headers) != 0) {
        fail_msg("%s: passed on are %zu other bytes than the %zu expected", what, got, expected);
    }
    assert_true(got <= NETDAM_ETHERNET_BYTES + u.fw->config.mtu);
    target = chain_target(&u);
    assert_int_equal(target.address, next.segments[next.index].node.address[c->family == 6 ? 15 : 3]);
    assert_int_equal(target.mac, target.address);
    assert_int_equal(target.port, next.segments[next.index].node.port);
    if (c->family == 6) { /* the UDP checksum is right */
        memcpy(frame, sent, got);
        ndtest_frame_repair(frame, got, false);
        assert_memory_equal(frame, sent, got);
    }
    unit_expect_silence(&u);
}

#endif
