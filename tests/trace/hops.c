/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has firmware instances do what the hops of tests/model/chain.pml did, frame by frame, and compares what they send on,
 * answer and store.
 *
 * trace-chain.pml describes the lines. Hop h of the model is node 10.0.0.h+2, the requester is 10.0.0.1. A STORE is a
 * WRITE in one trace and a REDUCE SUM in the next, so that a second one shows; a LOAD at the first hop is a LOAD, at
 * another one a LOAD_REDUCE SUM. Payload v of the model is a random base + v, another base for each chain.
 */
#include "trace.h"

#define CONTEXTS 2u
#define NUMBERS  2u
#define HOPS_MAX 3u
#define ORIGIN   0u /* the requester's index */

#define DATAGRAM_AT 42u /* behind Ethernet, IPv4 and UDP */
#define HEADER      32u
#define NAME        8u
#define SEGMENT     40u

enum operation { STORE = 1, LOAD, COMPARE };

/* A copy of a chain's packet, at a hop. */
struct copy {
    unsigned context;
    unsigned number;
    unsigned floor;
    unsigned hop;
    unsigned generation[HOPS_MAX];
    unsigned value;
    uint16_t flags; /* without PAYLOAD_CRC */
};

static struct trace trace;
static struct trace_node nodes[HOPS_MAX];
static uint64_t context[CONTEXTS];
static uint64_t first[CONTEXTS];                     /* the context's number 0 */
static uint64_t base[CONTEXTS][NUMBERS];             /* payload 0 */
static uint64_t cell[HOPS_MAX];                      /* what memory has to hold */
static uint8_t refused[CONTEXTS][NUMBERS][HOPS_MAX]; /* with which status */
static unsigned operation[HOPS_MAX];
static bool valid[HOPS_MAX]; /* the keys */
static unsigned hops, track;
static unsigned started; /* nodes */
static bool adds;        /* a STORE is a REDUCE */

static void stop(void)
{
    while (started != 0) {
        trace_node_stop(&nodes[--started]);
    }
    trace.running = false;
}

static bool stores_from(unsigned hop)
{
    for (unsigned h = hop; h < hops; h++) {
        if (operation[h] == STORE) {
            return true;
        }
    }
    return false;
}

/* The chain's answer carries what was read. */
static bool returns(void)
{
    for (unsigned h = 0; h < hops; h++) {
        if (operation[h] == LOAD) {
            return operation[hops - 1] != STORE;
        }
    }
    return false;
}

/* Value v of a cell that is read or compared, as memory has it. */
static uint64_t cell_value(unsigned hop, unsigned v)
{
    bool alone = operation[hop] == LOAD && hop == 0;

    if (operation[hop] == COMPARE || alone) {
        return base[0][0] + (operation[hop] == COMPARE || hop == track ? v : 0);
    }
    return hop == track ? v : 0; /* is added to the payload */
}

static void neighbour(struct trace_node *node, unsigned index)
{
    uint64_t args[] = {UINT64_C(0x0a000001) + index, 0, 4, UINT64_C(0x020000000001) + index};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    trace_demand(&trace, "neighbour", NETDAM_ADMIN_STATUS_OK,
                 unit_admin(&node->u, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, results));
}

static void meet(unsigned hop)
{
    for (unsigned index = 0; index <= hops; index++) {
        if (index != hop + 1) {
            neighbour(&nodes[hop], index);
        }
    }
}

/* trace: hops, values, operations, followed hop */
static void begin(const unsigned *v)
{
    bool one_base = v[1] > 1; /* values are compared with cells */

    stop();
    trace_begin(&trace);
    hops = v[0] <= HOPS_MAX ? v[0] : HOPS_MAX;
    memcpy(operation, &v[2], sizeof(operation));
    track = v[5];
    adds = trace.counts[COUNT_TRACES] % 2 != 0;
    for (unsigned c = 0; c < CONTEXTS; c++) {
        context[c] = ndtest_random_next(&trace.random);
        first[c] = ndtest_random_below(&trace.random, NETDAM_NUMBER_MAX - 8);
        for (unsigned n = 0; n < NUMBERS; n++) {
            base[c][n] = one_base ? base[0][0] : 0;
            base[c][n] = base[c][n] != 0 ? base[c][n] : ndtest_random_next(&trace.random) >> 8;
        }
    }
    memset(refused, 0, sizeof(refused));
    for (unsigned h = 0; h < hops; h++) {
        trace_node_start(&nodes[h], &trace, h + 1);
        started++;
        meet(h);
        valid[h] = true;
        cell[h] = operation[h] == STORE ? ndtest_random_next(&trace.random) : cell_value(h, 0);
        trace_node_set_cell(&nodes[h], cell[h]);
    }
}

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

static bool has_payload(const struct copy *copy)
{
    return !(operation[0] == LOAD && copy->hop == 0);
}

/* Ethernet, IP and UDP from one node to another; the checksums are still to be made. */
static size_t put_headers(uint8_t *frame, unsigned from, unsigned to, size_t datagram_bytes)
{
    memset(frame, 0, DATAGRAM_AT);
    put(frame, UINT64_C(0x020000000001) + to, 6);
    put(frame + 6, UINT64_C(0x020000000001) + from, 6);
    put(frame + 12, 0x08004500, 4);
    put(frame + 16, datagram_bytes + 28, 2);
    put(frame + 20, 0x40004011, 4);
    put(frame + 26, 0x0a000001 + from, 4);
    put(frame + 30, 0x0a000001 + to, 4);
    put(frame + 34, NETDAM_UDP_PORT, 2);
    put(frame + 36, NETDAM_UDP_PORT, 2);
    put(frame + 38, datagram_bytes + 8, 2);
    return DATAGRAM_AT + datagram_bytes;
}

static void put_name(uint8_t *to, unsigned index)
{
    put(to, UINT64_C(0x0a000001) + index, 4);
    put(to + 4, NETDAM_UDP_PORT, 2);
    put(to + 6, 0, 2);
}

static void put_segment(uint8_t *to, const struct copy *copy, unsigned h)
{
    static const uint8_t opcode[] = {0, NETDAM_OP_WRITE, NETDAM_OP_LOAD_REDUCE, NETDAM_OP_COMPARE};
    bool computes = (operation[h] == STORE && adds) || (operation[h] == LOAD && h != 0);

    to[0] = operation[h] == STORE && adds ? NETDAM_OP_REDUCE
            : operation[h] == LOAD && !h  ? NETDAM_OP_LOAD
                                          : opcode[operation[h]];
    to[1] = computes ? NETDAM_ALU_SUM : NETDAM_ALU_NONE;
    to[2] = computes ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE;
    to[3] = 0;
    put(to + 4, 8, 4);
    put(to + 8, nodes[h].key, 8);
    put(to + 16, nodes[h].address, 8);
    put(to + 24, nodes[h].generation[copy->generation[h]], 8);
    put_name(to + 32, h + 1);
}

/* The frame of a copy, as it comes to its hop; returns its length. */
static size_t put_copy(uint8_t *frame, const struct copy *copy)
{
    uint32_t payload_bytes = has_payload(copy) ? 8 : 0;
    uint32_t header_bytes = HEADER + NAME + hops * SEGMENT;
    uint64_t payload = base[copy->context][copy->number] + copy->value;
    size_t bytes = put_headers(frame, copy->hop, copy->hop + 1, header_bytes + (payload_bytes != 0 ? 12 : 0));
    uint8_t *header = frame + DATAGRAM_AT;

    memset(header, 0, header_bytes);
    header[0] = NETDAM_WIRE_VERSION;
    header[1] = NETDAM_KIND_REQUEST;
    put(header + 2, copy->flags | (payload_bytes != 0 ? NETDAM_FLAG_PAYLOAD_CRC : 0u), 2);
    header[4] = (uint8_t)hops;
    header[5] = (uint8_t)copy->hop;
    header[6] = NETDAM_NODE_FORM_IPV4;
    put(header + 8, context[copy->context], 8);
    put(header + 16, first[copy->context] + copy->number, 6);
    put(header + 22, copy->number - copy->floor, 2);
    put(header + 24, payload_bytes, 2);
    put(header + 26, header_bytes, 2);
    if (copy->hop != 0) {
        put_name(header + HEADER, ORIGIN);
    }
    for (unsigned h = 0; h < hops; h++) {
        put_segment(header + HEADER + NAME + h * SEGMENT, copy, h);
    }
    memcpy(header + header_bytes, &payload, payload_bytes);
    ndtest_frame_repair(frame, bytes, false);
    return bytes;
}

/* The packet went on to the next hop, with nothing changed but what has to be. */
static void expect_passed_on(const uint8_t *sent, size_t sent_bytes, const struct copy *copy, unsigned value)
{
    struct copy next = *copy;
    uint8_t frame[512];
    size_t bytes;

    next.hop++;
    next.value = value;
    bytes = put_copy(frame, &next);
    trace_demand(&trace, "bytes passed on", bytes, sent_bytes);
    trace_demand(&trace, "Ethernet destination", 0, (uint64_t)memcmp(frame, sent, 6) & 0xff);
    trace_demand(&trace, "IP addresses", 0, (uint64_t)memcmp(frame + 26, sent + 26, 8) & 0xff);
    for (size_t i = DATAGRAM_AT; i < bytes && !trace.diverged; i++) {
        if (frame[i] != sent[i]) {
            trace_demand(&trace, "byte passed on", (uint64_t)i << 8 | frame[i], (uint64_t)i << 8 | sent[i]);
        }
    }
}

/* v: as arrival() has it. */
static void expect_answer(const uint8_t *sent, size_t bytes, const struct copy *copy, const unsigned *v)
{
    bool lane = stores_from(copy->hop);
    const struct trace_node *node = &nodes[copy->hop];
    uint64_t right = node->generation[copy->generation[copy->hop]], payload;
    uint8_t *was = &refused[copy->context][copy->number][copy->hop];
    uint8_t refusal = v[10] ? *was : !valid[copy->hop] ? NETDAM_STATUS_BAD_KEY : NETDAM_STATUS_COMPARE_FAILED;
    const uint8_t status[] = {0, NETDAM_STATUS_OK, refusal, NETDAM_STATUS_STALE, NETDAM_STATUS_BUSY};
    struct ndtest_packet answer;

    if (!ndtest_packet_read(sent, bytes, NETDAM_UDP_PORT, &answer)) {
        trace_demand(&trace, "a packet", true, false);
        return;
    }
    *was = v[9] == A_REFUSED ? refusal : *was;
    trace_demand(&trace, "kind", NETDAM_KIND_RESPONSE, answer.kind);
    trace_demand(&trace, "status", status[v[9]], answer.status);
    trace_demand(&trace, "last byte of the receiver", 1 + ORIGIN, sent[33]);
    trace_demand(&trace, "hop", copy->hop, answer.header[HEADER + 3]);
    trace_demand(&trace, "context", context[copy->context], answer.context);
    trace_demand(&trace, "number", first[copy->context] + copy->number, answer.number);
    trace_demand(&trace, "distance", copy->number - copy->floor, answer.distance);
    trace_demand(&trace, "echo", right, answer.echo);
    trace_demand(&trace, "answered again", v[10], (answer.flags & NETDAM_FLAG_AGAIN) != 0);
    if (v[9] == A_STALE) {
        trace_demand(&trace, "generation", node->generation[v[11]], answer.generation);
    } else if (lane) {
        trace_demand(&trace, "generation", right, answer.generation);
    }
    if (v[9] == A_OK || v[9] == A_REFUSED) {
        trace_demand(&trace, "floor", lane ? first[copy->context] + v[12] : 0, answer.floor);
    }
    trace_demand(&trace, "payload length", v[9] == A_OK && returns() ? 8 : 0, answer.payload_bytes);
    if (answer.payload_bytes == 8) {
        memcpy(&payload, answer.payload, 8);
        trace_demand(&trace, "payload", base[copy->context][copy->number] + v[13], payload);
    }
}

static void count(const unsigned *v)
{
    trace.counts[v[9] == NONE                        ? COUNT_DROPPED
                 : v[9] == A_OK || v[9] == A_FORWARD ? (v[10] ? COUNT_REPEATED : COUNT_EXECUTED)
                 : v[9] == A_REFUSED                 ? (v[10] ? COUNT_REFUSED_AGAIN : COUNT_REFUSED)
                 : v[9] == A_STALE                   ? COUNT_STALE
                                                     : COUNT_BUSY]++;
}

/* hop: context, hop, number, floor, 3 generations, payload, busy, answer, again, generation, floor, payload going on */
static void arrival(const unsigned *v)
{
    struct copy copy = {
        .context = v[0],
        .hop = v[1],
        .number = v[2],
        .floor = v[3],
        .generation = {v[4], v[5], v[6]},
        .value = v[7],
        .flags = ndtest_random_below(&trace.random, 2) != 0 ? NETDAM_FLAG_AGAIN : 0,
    };
    struct trace_node *node = &nodes[copy.hop];
    bool goes_on = v[9] == A_OK || v[9] == A_FORWARD;
    uint8_t frame[512];
    size_t bytes = put_copy(frame, &copy);
    uint32_t windows = v[8] ? trace_node_busy(node) : 0;
    const uint8_t *sent;

    unit_advance(&node->u, 1000);
    unit_receive(&node->u, frame, bytes);
    if (v[8]) {
        trace_node_not_busy(node, windows);
    }
    trace_demand(&trace, "frames sent", v[9] == NONE ? 0 : 1, node->u.count);
    sent = unit_sent_frame(&node->u, &bytes);
    if (sent != NULL && !trace.diverged) {
        if (v[9] == A_FORWARD) {
            expect_passed_on(sent, bytes, &copy, v[13]);
        } else {
            expect_answer(sent, bytes, &copy, v);
        }
    }
    unit_drop_sent(&node->u);
    if (operation[copy.hop] == STORE && goes_on && !v[10]) {
        uint64_t payload = base[copy.context][copy.number] + copy.value;

        cell[copy.hop] = adds ? cell[copy.hop] + payload : payload;
        trace_demand(&trace, "stored", cell[copy.hop], trace_node_cell(node));
        cell[copy.hop] = ndtest_random_next(&trace.random); /* somebody else's newer WRITE */
        trace_node_set_cell(node, cell[copy.hop]);
    }
    count(v);
}

/* confirm: context, node, floor, generation, answer, generation, lane's floor */
static void confirmation(const unsigned *v)
{
    struct trace_node *node = &nodes[v[1]];
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = context[v[0]],
        .number = first[v[0]] + v[2],
        .distance = (uint16_t)ndtest_random_below(&trace.random, 1024), /* whose answer it is */
        .generation = node->generation[v[3]],
    };

    trace_confirm(node, &request, v[4], node->generation[v[5]], first[v[0]] + v[6]);
}

/* lost: what, node, context (2: both), generation */
static void loss(const unsigned *v)
{
    trace_lose(&nodes[v[1]], v[0], v[2] < CONTEXTS ? context[v[2]] : 0, 1, v[3]);
    if (v[0] == RESET) {
        meet(v[1]);
    }
}

/* key: node, valid */
static void turn_key(const unsigned *v)
{
    valid[v[0]] = v[1] != 0;
    trace_node_turn_key(&nodes[v[0]], valid[v[0]]);
}

/* written: node, cell */
static void written(const unsigned *v)
{
    cell[v[0]] = cell_value(v[0], v[1]);
    trace_node_set_cell(&nodes[v[0]], cell[v[0]]);
}

static bool replay(const char *name, const unsigned *v, unsigned numbers)
{
    static const struct {
        const char *name;
        unsigned count;
        void (*replay)(const unsigned *v);
    } events[] = {
        {"trace", 6, begin}, {"hop", 14, arrival}, {"confirm", 7, confirmation},
        {"lost", 4, loss},   {"key", 2, turn_key}, {"written", 2, written},
    };

    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        if (strcmp(name, events[i].name) == 0 && numbers == events[i].count) {
            events[i].replay(v);
            for (unsigned h = 0; h < hops; h++) {
                trace_demand(&trace, "memory", cell[h], trace_node_cell(&nodes[h]));
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    return trace_replay(&trace, argc, argv, replay, stop);
}
