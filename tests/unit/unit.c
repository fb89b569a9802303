/* SPDX-License-Identifier: BSD-3-Clause */
/* The firmware instance of the unit tests: its port, its clock, its software; requests and answers built by hand. */
#include "unit.h"

#include "platform_cpu.h"

#include <stdio.h>

static struct unit *unit_of(void *opaque)
{
    return opaque;
}

static uint8_t *port_begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct unit *u = unit_of(opaque);

    (void)node;
    assert_null(u->begun);
    if (u->port_room == 0) {
        return NULL;
    }
    u->begun = malloc(bytes); /* exactly: a sanitizer sees what goes beyond */
    return u->begun;
}

static void port_end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct unit *u = unit_of(opaque);

    (void)node;
    assert_non_null(u->begun);
    assert_true(u->count < UNIT_FRAMES_MAX);
    u->frames[(u->first + u->count) % UNIT_FRAMES_MAX].data = u->begun;
    u->frames[(u->first + u->count) % UNIT_FRAMES_MAX].bytes = bytes;
    u->count++;
    u->begun = NULL;
    if (u->port_room != UINT32_MAX) {
        u->port_room--;
    }
}

static void raise_interrupt(void *opaque, unsigned vector)
{
    struct ndtest_node *node = opaque;

    node->interrupts++;
    unit_of(node->hooks.opaque)->last_vector = vector;
}

struct netdam_fw_config unit_config(unsigned index)
{
    struct netdam_fw_config config;

    ndtest_config_default(&config, index);
    config.cpu_features = ndfw_platform_cpu_features();
    /* Small tables, so that a start costs little. */
    config.queue_pairs = 4;
    config.lanes = 64;
    config.lane_windows = 16;
    config.operations = 256;
    config.peers = 8;
    return config;
}

void unit_start(struct unit *u, unsigned index, const struct netdam_fw_config *config)
{
    struct netdam_fw_config chosen = config != NULL ? *config : unit_config(index);
    struct ndtest_hooks hooks = {.opaque = u, .transmit_begin = port_begin, .transmit_end = port_end};
    const char *error;

    memset(u, 0, sizeof(*u));
    u->port_room = UINT32_MAX;
    u->now_ns = 1000 * UNIT_MS;
    chosen.cpu_features &= ndfw_platform_cpu_features();
    if (!ndtest_node_init(&u->node, netdam_fw_entry(), &chosen, &hooks, 1, &error)) {
        fail_msg("configuration refused: %s", error);
    }
    u->node.index = index;
    u->node.platform.interrupt = raise_interrupt;
    memset(u->node.memory, 0, chosen.memory_bytes);
    ndtest_node_start(&u->node, u->now_ns);
    u->fw = u->node.state;
    u->fw->generation = UNIT_GENERATION;
}

void unit_drop_sent(struct unit *u)
{
    while (u->count != 0) {
        free(u->frames[u->first].data);
        u->first = (u->first + 1) % UNIT_FRAMES_MAX;
        u->count--;
    }
}

void unit_stop(struct unit *u)
{
    assert_true(ndtest_node_guards_intact(&u->node));
    assert_null(u->begun);
    unit_drop_sent(u);
    free(u->shown);
    ndtest_node_fini(&u->node);
    memset(u, 0, sizeof(*u));
}

void unit_receive(struct unit *u, const uint8_t *frame, size_t bytes)
{
    uint8_t *copy = malloc(bytes != 0 ? bytes : 1);

    memcpy(copy, frame, bytes);
    u->node.ops->receive(u->node.state, copy, bytes, u->now_ns);
    free(copy);
}

void unit_run(struct unit *u)
{
    for (unsigned i = 0; i < 1000; i++) {
        u->node.ops->run(u->node.state, u->now_ns, UINT64_C(1) << 40, &u->result);
        if (!u->result.more || u->result.port_full) {
            return;
        }
    }
    fail_msg("run does not come to rest");
}

void unit_advance(struct unit *u, uint64_t ns)
{
    u->now_ns += ns;
}

void unit_run_for(struct unit *u, uint64_t ns)
{
    uint64_t end = u->now_ns + ns;

    unit_run(u);
    for (unsigned i = 0; i < 100000; i++) {
        if (u->result.next_ns > end) {
            u->now_ns = end;
            return;
        }
        assert_true(u->result.next_ns >= u->now_ns);
        u->now_ns = u->result.next_ns > u->now_ns ? u->result.next_ns : u->now_ns + 1;
        unit_run(u);
    }
    fail_msg("timers do not come to rest");
}

const uint8_t *unit_sent_frame(struct unit *u, size_t *bytes)
{
    free(u->shown);
    u->shown = NULL;
    if (u->count == 0) {
        return NULL;
    }
    u->shown = u->frames[u->first].data;
    *bytes = u->frames[u->first].bytes;
    u->first = (u->first + 1) % UNIT_FRAMES_MAX;
    u->count--;
    return u->shown;
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

void unit_put16(uint8_t *to, unsigned value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

void unit_repair_ipv4(uint8_t *frame)
{
    uint32_t sum = 0;

    frame[24] = frame[25] = 0;
    for (size_t k = 14; k < 34; k += 2) {
        sum += (uint32_t)frame[k] << 8 | frame[k + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    unit_put16(frame + 24, ~sum & 0xffff);
    unit_put16(frame + 40, 0);
}

static void put64(uint8_t *at, uint64_t value)
{
    put32(at, (uint32_t)(value >> 32));
    put32(at + 4, (uint32_t)value);
}

static void put48(uint8_t *at, uint64_t value)
{
    unit_put16(at, (unsigned)(value >> 32 & 0xffff));
    put32(at + 2, (uint32_t)value);
}

bool unit_sent(struct unit *u, struct ndtest_packet *packet)
{
    size_t bytes;
    const uint8_t *frame = unit_sent_frame(u, &bytes);
    uint8_t header[NETDAM_MTU_MAX];

    if (frame == NULL) {
        return false;
    }
    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, packet)) {
        fail_msg("what was sent is no NetDAM packet: EtherType %02x%02x, %zu bytes", frame[12], frame[13], bytes);
    }
    memcpy(header, packet->header, packet->header_bytes);
    put32(header + 28, 0);
    assert_int_equal(ndtest_crc32c(0, header, packet->header_bytes), get32(packet->header + 28));
    if ((packet->flags & NETDAM_FLAG_PAYLOAD_CRC) != 0) {
        assert_int_not_equal(packet->payload_bytes, 0);
        assert_int_equal(ndtest_crc32c(0, packet->payload, packet->payload_bytes),
                         get32(packet->payload + packet->payload_bytes));
    }
    return true;
}

void unit_expect_sent(struct unit *u, struct ndtest_packet *packet)
{
    if (!unit_sent(u, packet)) {
        fail_msg("nothing was sent");
    }
}

void unit_expect_silence(struct unit *u)
{
    assert_int_equal(u->count, 0);
}

uint64_t unit_counter(struct unit *u, enum netdam_counter counter)
{
    return ndtest_node_counter(&u->node, counter);
}

/* Ethernet, IP and UDP headers from node `from` to the other; returns where the NetDAM header goes. */
static size_t put_headers(uint8_t *frame, unsigned from, unsigned family, size_t datagram_bytes)
{
    unsigned to = 1 - from;
    uint8_t *ip = frame + 14;
    size_t at = family == 6 ? 54 : 34;

    memset(frame, 0, at + 8);
    frame[0] = frame[6] = 2;
    frame[5] = (uint8_t)(to + 1);
    frame[11] = (uint8_t)(from + 1);
    unit_put16(frame + 12, family == 6 ? 0x86dd : 0x0800);
    if (family == 6) {
        ip[0] = 0x60;
        unit_put16(ip + 4, (unsigned)datagram_bytes + 8);
        ip[6] = 17;
        ip[7] = 64;
        ip[8] = ip[24] = 0xfd;
        ip[23] = (uint8_t)(from + 1);
        ip[39] = (uint8_t)(to + 1);
    } else {
        ip[0] = 0x45;
        unit_put16(ip + 2, (unsigned)datagram_bytes + 28);
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = 17;
        ip[12] = ip[16] = 10;
        ip[15] = (uint8_t)(from + 1);
        ip[19] = (uint8_t)(to + 1);
    }
    unit_put16(frame + at, NETDAM_UDP_PORT);
    unit_put16(frame + at + 2, NETDAM_UDP_PORT);
    unit_put16(frame + at + 4, (unsigned)datagram_bytes + 8);
    return at + 8;
}

size_t unit_request_frame(uint8_t *frame, unsigned from, const struct unit_request *request)
{
    bool has_crc = request->payload_length != 0 && !request->no_crc;
    size_t datagram = 64 + request->payload_length + (has_crc ? 4u : 0u);
    size_t at = put_headers(frame, from, request->family == 6 ? 6 : 4, datagram);
    uint8_t *header = frame + at;
    uint8_t *segment = header + 32;

    memset(header, 0, 64);
    header[0] = 1;
    header[1] = 1;
    unit_put16(header + 2, request->flags | (has_crc ? 1u : 0u));
    header[4] = 1;
    put64(header + 8, request->context != 0 ? request->context : UNIT_CONTEXT);
    put48(header + 16, request->number);
    unit_put16(header + 22, request->distance);
    unit_put16(header + 24, request->payload_length);
    unit_put16(header + 26, 64);
    segment[0] = request->opcode;
    segment[1] = request->operation;
    segment[2] = request->type;
    put32(segment + 4, request->length);
    put64(segment + 8, request->key);
    put64(segment + 16, request->address);
    put64(segment + 24, request->generation);
    if (request->payload_length != 0) {
        if (request->payload != NULL) {
            memcpy(segment + 32, request->payload, request->payload_length);
        } else {
            memset(segment + 32, 0, request->payload_length);
        }
    }
    ndtest_frame_repair(frame, at + datagram, false);
    return at + datagram;
}

void unit_request(struct unit *u, const struct unit_request *request)
{
    uint8_t *frame = malloc(UNIT_FRAME_ROOM);
    size_t bytes = unit_request_frame(frame, 1 - u->node.index, request);

    unit_receive(u, frame, bytes);
    free(frame);
}

void unit_ask(struct unit *u, const struct unit_request *request, struct ndtest_packet *answer)
{
    unit_request(u, request);
    unit_expect_sent(u, answer);
    assert_int_equal(answer->kind, NETDAM_KIND_RESPONSE);
    assert_true(answer->context == (request->context != 0 ? request->context : UNIT_CONTEXT));
    assert_true(answer->number == request->number);
    assert_int_equal(answer->distance, request->distance);
    assert_true(answer->echo == request->generation);
    unit_expect_silence(u);
}

size_t unit_answer_frame(uint8_t *frame, unsigned from, const struct ndtest_packet *request,
                         const struct unit_answer *answer)
{
    bool has_crc = answer->payload_length != 0;
    size_t datagram = 64 + answer->payload_length + (has_crc ? 4u : 0u);
    size_t at = put_headers(frame, from, 4, datagram);
    uint8_t *header = frame + at;
    uint8_t *body = header + 32;

    memset(header, 0, 64);
    header[0] = 1;
    header[1] = 2;
    unit_put16(header + 2, answer->flags | (has_crc ? 1u : 0u));
    header[4] = 1;
    header[7] = answer->status;
    put64(header + 8, request->context);
    put48(header + 16, request->number);
    unit_put16(header + 22, request->distance);
    unit_put16(header + 24, answer->payload_length);
    unit_put16(header + 26, 64);
    body[0] = request->opcode;
    body[1] = request->operation;
    body[2] = request->type;
    put32(body + 4, answer->length);
    put64(body + 8, answer->generation != 0 ? answer->generation : request->generation);
    put64(body + 16, answer->echo == 0 ? request->generation : answer->echo == UNIT_ECHO_NONE ? 0 : answer->echo);
    put48(body + 24, request->number - request->distance);
    unit_put16(frame + at - 6, request->from_port != 0 ? request->from_port : NETDAM_UDP_PORT);
    if (answer->payload_length != 0) {
        if (answer->payload != NULL) {
            memcpy(body + 32, answer->payload, answer->payload_length);
        } else {
            memset(body + 32, 0, answer->payload_length);
        }
    }
    ndtest_frame_repair(frame, at + datagram, false);
    return at + datagram;
}

void unit_answer(struct unit *u, const struct ndtest_packet *request, const struct unit_answer *answer)
{
    uint8_t *frame = malloc(UNIT_FRAME_ROOM);
    size_t bytes = unit_answer_frame(frame, 1 - u->node.index, request, answer);

    unit_receive(u, frame, bytes);
    free(frame);
    unit_run(u);
}

void unit_answer_ok(struct unit *u, const struct ndtest_packet *request, const uint8_t *payload)
{
    bool returns = request->opcode == NETDAM_OP_READ || request->opcode == NETDAM_OP_ECHO ||
                   request->opcode == NETDAM_OP_FETCH_ADD || request->opcode == NETDAM_OP_CAS;
    struct unit_answer answer = {
        .length = request->length,
        .payload_length = returns ? request->length : 0,
        .payload = payload,
    };

    unit_answer(u, request, &answer);
}

enum netdam_admin_status unit_admin(struct unit *u, enum netdam_admin command, const uint64_t *args, unsigned count,
                                    uint64_t results[NETDAM_ADMIN_RESULTS])
{
    return ndtest_node_admin(&u->node, command, args, count, results, u->now_ns);
}

uint32_t unit_region(struct unit *u, uint64_t base, uint64_t length, uint32_t permissions, uint64_t key)
{
    uint64_t got;
    uint32_t index;

    assert_int_equal(ndtest_region_create(&u->node, base, length, permissions, key, u->now_ns, &index, &got),
                     NETDAM_ADMIN_STATUS_OK);
    assert_true(key == 0 || got == key);
    return index;
}

uint32_t unit_peer(struct unit *u, unsigned family, uint64_t generation)
{
    uint64_t other = 1 - u->node.index;
    uint64_t neighbour[] = {family == 6 ? UINT64_C(0xfd) << 56 : 0x0a000001 + other, family == 6 ? other + 1 : 0,
                            family, UINT64_C(0x020000000001) + other};
    uint64_t peer[] = {neighbour[0], neighbour[1], family | (uint64_t)NETDAM_UDP_PORT << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, neighbour, 4, results), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(unit_admin(u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), NETDAM_ADMIN_STATUS_OK);
    u->fw->peers[results[0]].generation = generation;
    return (uint32_t)results[0];
}

void unit_queue(struct unit *u, struct ndtest_queue *queue, uint64_t base, unsigned log2)
{
    uint64_t cq = base + ((netdam_ring_bytes(log2, 64) + 63) & ~UINT64_C(63));

    assert_int_equal(ndtest_queue_create(queue, &u->node, base, log2, cq, log2, 0, u->now_ns), NETDAM_ADMIN_STATUS_OK);
}

void unit_post(struct unit *u, struct ndtest_queue *queue, const struct netdam_descriptor *descriptor)
{
    unsigned action;

    assert_true(ndtest_queue_post(queue, descriptor, u->now_ns, &action));
}

struct netdam_completion unit_completion(struct ndtest_queue *queue)
{
    struct netdam_completion completion;

    memset(&completion, 0, sizeof(completion));
    if (!ndtest_queue_poll(queue, &completion)) {
        fail_msg("no completion");
    }
    return completion;
}

static const char *status_name(unsigned status)
{
    switch (status) {
#define STATUS_CASE(name, value, class_, text)                                                                         \
    case value:                                                                                                        \
        return #name;
        NETDAM_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    default:
        return "?";
    }
}

void unit_expect_completion(struct ndtest_queue *queue, uint64_t user_data, enum netdam_status status)
{
    struct netdam_completion completion = unit_completion(queue);

    if (completion.user_data != user_data || completion.status != (uint8_t)status) {
        fail_msg("completion of %llu with %s, expected %llu with %s", (unsigned long long)completion.user_data,
                 status_name(completion.status), (unsigned long long)user_data, status_name((unsigned)status));
    }
}

void unit_expect_no_completion(struct ndtest_queue *queue)
{
    assert_int_equal(ndtest_queue_ready(queue), 0);
}

bool unit_is_executed(unsigned opcode, unsigned operation, unsigned type)
{
    static const uint8_t opcodes[] = {
        NETDAM_OP_ECHO,   NETDAM_OP_CONFIRM,     NETDAM_OP_READ,    NETDAM_OP_WRITE,    NETDAM_OP_SEND,
        NETDAM_OP_REDUCE, NETDAM_OP_CAS,         NETDAM_OP_SWAP,    NETDAM_OP_FETCH_OP, NETDAM_OP_FETCH_ADD,
        NETDAM_OP_LOAD,   NETDAM_OP_LOAD_REDUCE, NETDAM_OP_COMPARE, NETDAM_OP_FORWARD,  NETDAM_OP_TRANSACTION,
    };

    return netdam_algebra(opcode, operation, type) >= 0 && memchr(opcodes, (int)opcode, sizeof(opcodes)) != NULL;
}

uint64_t unit_memory_get(const struct unit *u, uint64_t offset, unsigned bytes)
{
    uint64_t value = 0;

    memcpy(&value, u->node.memory + offset, bytes);
    return value;
}

void unit_memory_put(struct unit *u, uint64_t offset, unsigned bytes, uint64_t value)
{
    memcpy(u->node.memory + offset, &value, bytes);
}

void unit_memory_pattern(struct unit *u, uint64_t offset, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        u->node.memory[offset + i] = (uint8_t)(seed + i * 7 + (i >> 8));
    }
}
