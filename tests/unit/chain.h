/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains for unit tests, written as text: "L2 A3 W4" loads at node 2, adds at node 3, stores at node 4. */
#ifndef UNIT_CHAIN_H
#define UNIT_CHAIN_H

#include "unit.h"

#define CHAIN_MAX    40u
#define CHAIN_LENGTH 8u
#define CHAIN_BASE   UINT64_C(0x10000)
#define CHAIN_BYTES  UINT64_C(0x10000)
#define CHAIN_NUMBER 7u

struct chain_node {
    uint8_t address[16]; /* IPv4 in the first four */
    uint16_t port;
    uint8_t reserved;
};

struct chain_segment {
    uint8_t opcode, operation, type, reserved;
    uint32_t length;
    uint64_t key, address, generation;
    struct chain_node node;
};

struct chain {
    unsigned family; /* of nodes and packet: 4 or 6 */
    unsigned form;   /* 0: as the family */
    struct chain_segment segments[CHAIN_MAX];
    unsigned count, index;
    struct chain_node origin; /* zeros: the sender */
    uint64_t context, number;
    uint16_t distance, flags, from_port;
    uint32_t payload_length;
    uint8_t payload[NETDAM_MTU_MAX];
    bool no_crc, immediate;
};

/* 10.0.0.last or fd00::last at the usual port. */
static inline struct chain_node chain_node(unsigned family, unsigned last)
{
    struct chain_node node = {.port = NETDAM_UDP_PORT};

    node.address[0] = family == 6 ? 0xfd : 10;
    node.address[family == 6 ? 15 : 3] = (uint8_t)last;
    return node;
}

static inline struct chain_segment chain_segment(unsigned family, char what, unsigned node)
{
    struct chain_segment s = {.length = CHAIN_LENGTH, .key = UNIT_KEY, .generation = UNIT_GENERATION};

    s.node = chain_node(family, node);
    switch (what) {
    case 'L':
        s.opcode = NETDAM_OP_LOAD;
        break;
    case 'A':
        s.opcode = NETDAM_OP_LOAD_REDUCE;
        break;
    case 'C':
        s.opcode = NETDAM_OP_COMPARE;
        break;
    case 'W':
        s.opcode = NETDAM_OP_WRITE;
        break;
    case 'R':
        s.opcode = NETDAM_OP_REDUCE;
        break;
    default:
        s.opcode = NETDAM_OP_FORWARD;
        s.length = 0;
        s.key = s.generation = 0;
        break;
    }
    if (what == 'A' || what == 'R') {
        s.operation = NETDAM_ALU_SUM;
        s.type = NETDAM_TYPE_U32;
    }
    return s;
}

/* What the segment of node 2 finds in an untouched region at address 0. */
static inline void chain_memory(struct unit *u, uint8_t memory[CHAIN_LENGTH])
{
    memcpy(memory, u->node.memory + CHAIN_BASE, CHAIN_LENGTH);
}

/*
 * The current segment is the one of node 2. The origin is given where it is not the first. The payload is what memory
 * holds, so that comparisons hold; none where a LOAD is still to come.
 */
static inline struct chain chain_of(struct unit *u, unsigned family, const char *text)
{
    struct chain c = {.family = family, .context = UNIT_CONTEXT, .number = CHAIN_NUMBER, .distance = 2};
    bool loads = false;

    c.from_port = NETDAM_UDP_PORT;
    for (const char *at = text; *at != 0; at += at[2] == ' ' ? 3 : 2) {
        unsigned node = (unsigned)(at[1] - '0');

        if (node == 2) {
            c.index = c.count;
            loads = false; /* those before have loaded */
        }
        loads |= at[0] == 'L';
        c.segments[c.count++] = chain_segment(family, at[0], node);
    }
    if (c.index != 0) {
        c.origin = chain_node(family, 1);
    }
    if (!loads && strspn(text, "F123456789 ") != strlen(text)) {
        c.payload_length = CHAIN_LENGTH;
        chain_memory(u, c.payload);
    }
    return c;
}

static inline void chain_put(uint8_t **at, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i != 0; i--) {
        *(*at)++ = (uint8_t)(value >> 8 * (i - 1));
    }
}

static inline void chain_put_node(uint8_t **at, unsigned form, const struct chain_node *node)
{
    unsigned bytes = form == 6 ? 16 : 4, rest = form == 6 ? 6 : 2;

    memcpy(*at, node->address, bytes);
    *at += bytes;
    chain_put(at, node->port, 2);
    chain_put(at, node->reserved, rest);
}

/* Into UNIT_FRAME_ROOM bytes: from node 1 to node 2, by the specification. */
static inline size_t chain_frame(uint8_t *frame, const struct chain *c)
{
    unsigned form = c->form != 0 ? c->form : c->family, node_bytes = form == 6 ? 24 : 8;
    unsigned extensions = c->immediate ? 8u : 0u;
    unsigned flags = c->flags | (c->payload_length != 0 && !c->no_crc ? NETDAM_FLAG_PAYLOAD_CRC : 0u) |
                     (c->immediate ? NETDAM_FLAG_IMMEDIATE : 0u);
    unsigned crc = (flags & NETDAM_FLAG_PAYLOAD_CRC) != 0 && c->payload_length != 0 ? 4 : 0;
    struct chain_node from = chain_node(c->family, 1), to = chain_node(c->family, 2);
    uint8_t *at = frame;

    memset(frame, 0, 54 + 8);
    chain_put(&at, UINT64_C(0x020000000002), 6);
    chain_put(&at, UINT64_C(0x020000000001), 6);
    chain_put(&at, c->family == 6 ? 0x86dd : 0x0800, 2);
    if (c->family == 6) {
        chain_put(&at, 0x60000000, 4);
        chain_put(&at, 0, 2);
        chain_put(&at, 17, 1);
        chain_put(&at, 64, 1);
        memcpy(at, from.address, 16);
        memcpy(at + 16, to.address, 16);
        at += 32;
    } else {
        chain_put(&at, 0x45000000, 4);
        chain_put(&at, 0x4000, 4);
        chain_put(&at, 64u << 8 | 17, 2);
        chain_put(&at, 0, 2);
        memcpy(at, from.address, 4);
        memcpy(at + 4, to.address, 4);
        at += 8;
    }
    chain_put(&at, c->from_port, 2);
    chain_put(&at, NETDAM_UDP_PORT, 2);
    chain_put(&at, 0, 4);

    chain_put(&at, 1, 1);
    chain_put(&at, NETDAM_KIND_REQUEST, 1);
    chain_put(&at, flags, 2);
    chain_put(&at, c->count, 1);
    chain_put(&at, c->index, 1);
    chain_put(&at, form, 1);
    chain_put(&at, 0, 1);
    chain_put(&at, c->context, 8);
    chain_put(&at, c->number, 6);
    chain_put(&at, c->distance, 2);
    chain_put(&at, c->payload_length, 2);
    chain_put(&at, 32 + extensions + node_bytes + c->count * (32 + node_bytes), 2);
    chain_put(&at, 0, 4);
    memset(at, 0, extensions);
    at += extensions;
    chain_put_node(&at, form, &c->origin);
    for (unsigned i = 0; i < c->count; i++) {
        const struct chain_segment *s = &c->segments[i];

        chain_put(&at, s->opcode, 1);
        chain_put(&at, s->operation, 1);
        chain_put(&at, s->type, 1);
        chain_put(&at, s->reserved, 1);
        chain_put(&at, s->length, 4);
        chain_put(&at, s->key, 8);
        chain_put(&at, s->address, 8);
        chain_put(&at, s->generation, 8);
        chain_put_node(&at, form, &s->node);
    }
    memcpy(at, c->payload, c->payload_length);
    at += c->payload_length + crc;
    ndtest_frame_repair(frame, (size_t)(at - frame), true);
    return (size_t)(at - frame);
}

static inline void chain_receive(struct unit *u, const struct chain *c)
{
    static uint8_t frame[UNIT_FRAME_ROOM];

    unit_receive(u, frame, chain_frame(frame, c));
}

/* Where the frame that was looked at last goes. */
struct chain_target {
    unsigned mac, address; /* last bytes */
    uint16_t port;
};

static inline struct chain_target chain_target(const struct unit *u)
{
    bool ipv6 = u->shown[12] == 0x86;
    const uint8_t *udp = u->shown + (ipv6 ? 54 : 34);

    return (struct chain_target){u->shown[5], u->shown[ipv6 ? 53 : 33], (uint16_t)(udp[2] << 8 | udp[3])};
}

#endif
