/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that posts chains, written as text: "L2 A3 W4". Nodes 2 to 6 are known by link-layer address. */
#ifndef UNIT_TOUR_H
#define UNIT_TOUR_H

#include "unit.h"

#define TOUR_RINGS  UINT64_C(0x1000)
#define TOUR_LIST   UINT64_C(0x8000)
#define TOUR_SOURCE UINT64_C(0x10000)
#define TOUR_RESULT UINT64_C(0x20000)
#define TOUR_LAST   6u
/* The generation of node 2, 3, and so on. */
#define TOUR_GENERATION(node) ((UINT64_C(0xa0000000) + (node)) << 32 | 5)

struct tour {
    struct unit u;
    struct ndtest_queue queue;
    uint32_t region;
    uint32_t peers[TOUR_LAST + 1];
};

static inline struct netdam_fw_config tour_config(void)
{
    struct netdam_fw_config config = unit_config(0);

    config.rto_initial_ns = 10 * UNIT_MS;
    config.rto_min_ns = 10 * UNIT_MS;
    config.rto_max_ns = 80 * UNIT_MS;
    config.retries = 5;
    config.confirm_idle_ns = 100 * UNIT_MS;
    return config;
}

static inline struct ndfw_peer *tour_context(struct tour *t)
{
    return ndfw_chain_context(t->u.fw);
}

static inline struct ndfw_way *tour_way(struct tour *t, unsigned node)
{
    return &t->u.fw->peers[t->peers[node]].way;
}

static inline uint32_t tour_open(struct tour *t, unsigned node, bool resolved)
{
    uint64_t neighbour[] = {0x0a000000 + node, 0, 4, UINT64_C(0x020000000000) + node};
    uint64_t peer[] = {0x0a000000 + node, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    if (resolved) {
        assert_int_equal(unit_admin(&t->u, NETDAM_ADMIN_NEIGHBOUR_SET, neighbour, 4, results), 0);
    }
    assert_int_equal(unit_admin(&t->u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), 0);
    return (uint32_t)results[0];
}

/* `known`: the nodes have told their generations. */
static inline void tour_start(struct tour *t, const struct netdam_fw_config *config, bool known)
{
    struct netdam_fw_config chosen = config != NULL ? *config : tour_config();

    unit_start(&t->u, 0, &chosen);
    unit_memory_pattern(&t->u, TOUR_SOURCE, 0x20000, 9);
    t->region = unit_region(&t->u, 0, 0x40000, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, 0);
    unit_queue(&t->u, &t->queue, TOUR_RINGS, 6);
    for (unsigned node = 2; node <= TOUR_LAST; node++) {
        t->peers[node] = tour_open(t, node, true);
        tour_way(t, node)->generation = known ? TOUR_GENERATION(node) : 0;
    }
}

static inline struct netdam_segment tour_segment(const struct tour *t, char what, unsigned node)
{
    struct netdam_segment s = {.peer = t->peers[node], .key = UNIT_KEY, .address = 0x100 * node};

    s.opcode = what == 'L'   ? NETDAM_OP_LOAD
               : what == 'A' ? NETDAM_OP_LOAD_REDUCE
               : what == 'C' ? NETDAM_OP_COMPARE
               : what == 'W' ? NETDAM_OP_WRITE
               : what == 'R' ? NETDAM_OP_REDUCE
                             : NETDAM_OP_FORWARD;
    if (what == 'A' || what == 'R') {
        s.operation = NETDAM_ALU_SUM;
        s.type = NETDAM_TYPE_U32;
    } else if (what == 'F') {
        s.key = s.address = 0;
    }
    return s;
}

/* Puts the list into memory, and makes a descriptor for it. */
static inline struct netdam_descriptor tour_descriptor(struct tour *t, const char *text, uint32_t length,
                                                       uint64_t user_data)
{
    bool loads = false, reads = false, stores_last = false;
    struct netdam_descriptor d = {
        .opcode = NETDAM_OP_CHAIN,
        .user_data = user_data,
        .length = length,
        .remote_address = TOUR_LIST + 1024 * (user_data % 16),
        .immediate = t->region,
    };

    for (const char *at = text; *at != 0; at += at[2] == ' ' ? 3 : 2) {
        struct netdam_segment s = tour_segment(t, at[0], (unsigned)(at[1] - '0'));

        memcpy(t->u.node.memory + d.remote_address + d.list_count * sizeof(s), &s, sizeof(s));
        d.list_count++;
        loads |= at[0] == 'L';
        reads |= at[0] == 'L' || at[0] == 'A';
        stores_last = at[0] == 'W' || at[0] == 'R';
    }
    d.local_region = loads ? 0 : t->region;
    d.u.buffer.local_address = loads ? 0 : TOUR_SOURCE;
    if (reads && !stores_last) {
        d.peer = t->region;
        d.u.buffer.result_address = TOUR_RESULT;
    }
    return d;
}

static inline void tour_post(struct tour *t, const char *text, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = tour_descriptor(t, text, length, user_data);

    unit_post(&t->u, &t->queue, &d);
    unit_run(&t->u);
}

/* The packets that were sent, kept. */
struct tour_packet {
    struct ndtest_packet p;
    uint8_t frame[2048];
    unsigned to; /* last byte of the address */
};

static inline bool tour_sent(struct tour *t, struct tour_packet *kept)
{
    size_t bytes;
    struct ndtest_packet ignored;

    if (!unit_sent(&t->u, &ignored)) {
        return false;
    }
    bytes = (size_t)(ignored.payload - t->u.shown) + ignored.payload_bytes;
    assert_true(bytes <= sizeof(kept->frame));
    kept->p = ignored;
    memcpy(kept->frame, t->u.shown, bytes);
    kept->p.header = kept->frame + (ignored.header - t->u.shown);
    kept->p.segments = kept->frame + (ignored.segments - t->u.shown);
    kept->p.payload = kept->frame + (ignored.payload - t->u.shown);
    kept->to = kept->frame[33];
    return true;
}

static inline void tour_expect(struct tour *t, unsigned to, unsigned opcode, struct tour_packet *kept)
{
    if (!tour_sent(t, kept)) {
        fail_msg("nothing was sent to %u", to);
    }
    assert_int_equal(kept->to, to);
    assert_int_equal(kept->p.opcode, opcode);
    assert_true(kept->p.context == tour_context(t)->context);
}

static inline uint64_t tour_be(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* The generation that a segment of a packet carries. */
static inline uint64_t tour_generation(const struct tour_packet *packet, unsigned hop)
{
    return tour_be(packet->p.segments + 40 * hop + 24, 8);
}

/* What the node of a segment says; of a CONFIRM, the node itself. */
static inline void tour_answer(struct tour *t, const struct tour_packet *to, unsigned hop, enum netdam_status status,
                               uint64_t generation, const uint8_t *payload, uint32_t bytes)
{
    bool chain = to->p.node_form != 0;
    const uint8_t *segment = chain ? to->p.segments + 40 * hop : to->p.segments;
    static uint8_t frame[UNIT_FRAME_ROOM];
    struct ndtest_packet request = to->p;
    struct unit_answer answer = {.status = (uint8_t)status, .generation = generation, .payload_length = bytes};
    size_t length;

    request.opcode = segment[0];
    request.operation = segment[1];
    request.type = segment[2];
    request.generation = tour_be(segment + 24, 8);
    answer.echo = request.generation == 0 ? UNIT_ECHO_NONE : 0;
    answer.payload = payload;
    answer.length = status == NETDAM_STATUS_OK ? (uint32_t)tour_be(segment + 4, 4) : 0;
    length = unit_answer_frame(frame, 1, &request, &answer);
    frame[42 + 4] = to->p.segment_count;
    frame[42 + 5] = frame[42 + 32 + 3] = (uint8_t)hop;
    ndtest_frame_repair(frame, length, false);
    unit_receive(&t->u, frame, length);
    unit_run(&t->u);
}

static inline void tour_expect_end(struct tour *t, uint64_t user_data, enum netdam_status status, unsigned hop,
                                   unsigned flags)
{
    struct netdam_completion completion = unit_completion(&t->queue);

    if (completion.user_data != user_data || completion.status != (uint8_t)status) {
        fail_msg("completion of %u with %#x, not of %u with %#x", (unsigned)completion.user_data, completion.status,
                 (unsigned)user_data, (unsigned)status);
    }
    assert_int_equal(completion.hop, hop);
    assert_int_equal(completion.flags, flags);
    assert_int_equal(completion.opcode, NETDAM_OP_CHAIN);
}

#endif
