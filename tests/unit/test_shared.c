/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in shared memory: somebody writes to what is received whenever the firmware calls out. Effects and answers are
 * those of the frame as it came, but for the bytes of a plain payload.
 */
#include "unit.h"

#include "chain.h"
#include "entries.h"

#define MEMORY  0x20000u
#define BASE    0x2000u
#define LENGTH  0x3000u
#define PAYLOAD 1400u
#define UDP_AT  (NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES)

/* Who writes, and where. */
struct writer {
    uint8_t *frame; /* received: all of it but [keep, keep + kept) */
    size_t bytes;
    size_t keep;
    size_t kept;
    uint8_t value;
    unsigned calls;
};

static struct writer writer;

static void write_now(void)
{
    writer.calls++;
    for (size_t i = 0; i < writer.bytes; i++) {
        if (i < writer.keep || i >= writer.keep + writer.kept) {
            writer.frame[i] = (uint8_t)(writer.value + i);
        }
    }
}

static void on_trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                     uint64_t c)
{
    (void)opaque, (void)node, (void)event, (void)a, (void)b, (void)c;
    write_now();
}

static void on_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                      enum netdam_fw_access access)
{
    (void)opaque, (void)node, (void)offset, (void)bytes, (void)access;
    write_now();
}

static uint8_t *(*begin)(void *opaque, struct ndtest_node *node, size_t bytes);

static uint8_t *on_begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    write_now();
    return begin(opaque, node, bytes);
}

static void start(struct unit *u, bool shared)
{
    struct netdam_fw_config config = unit_config(1);

    config.memory_bytes = MEMORY;
    config.shared_frames = shared;
    unit_start(u, 1, &config);
    u->node.hooks.trace = on_trace;
    u->node.hooks.access = on_access;
    begin = u->node.hooks.transmit_begin;
    u->node.hooks.transmit_begin = on_begin;
    unit_region(u, BASE, LENGTH, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_memory_pattern(u, 0, MEMORY, 3);
    memset(&writer, 0, sizeof(writer));
}

/* The frame lies in an allocation of its own, which `writer` knows. */
static void receive(struct unit *u, const uint8_t *frame, size_t bytes, size_t keep, size_t kept)
{
    writer = (struct writer){.frame = malloc(bytes), .bytes = bytes, .keep = keep, .kept = kept, .value = 0xa0};
    memcpy(writer.frame, frame, bytes);
    u->node.ops->receive(u->node.state, writer.frame, bytes, u->now_ns);
    free(writer.frame);
    writer.bytes = 0;
}

/* A frame that is received, and where its plain payload lies; 0 bytes: all of it may change. */
struct sample {
    uint8_t frame[UNIT_FRAME_ROOM];
    size_t bytes;
    size_t keep;
    size_t kept;
};

static void make_request(struct sample *sample, const struct unit_request *request, bool plain)
{
    sample->bytes = unit_request_frame(sample->frame, 0, request);
    sample->keep = sample->kept = 0;
    if (request->family != 6) {
        unit_put16(sample->frame + UDP_AT + 6, 0); /* no checksum, as the firmware sends it */
    }
    if (plain && sample->bytes > 256) {
        sample->kept = request->payload_length + (request->no_crc ? 0u : 4u);
        sample->keep = sample->bytes - sample->kept;
    }
}

/* What comes of a sample: the same in both kinds of memory. */
static void expect_same(const struct sample *sample, bool answered)
{
    static struct unit plain, shared;
    const uint8_t *frames[2];
    size_t bytes[2];

    start(&plain, false);
    unit_receive(&plain, sample->frame, sample->bytes);
    start(&shared, true);
    receive(&shared, sample->frame, sample->bytes, sample->keep, sample->kept);
    frames[0] = unit_sent_frame(&plain, &bytes[0]);
    frames[1] = unit_sent_frame(&shared, &bytes[1]);
    assert_int_equal(frames[0] != NULL, answered);
    assert_int_equal(frames[1] != NULL, answered);
    if (answered) {
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(frames[0], frames[1], bytes[0]);
        assert_true(writer.calls != 0);
    }
    assert_memory_equal(plain.node.memory, shared.node.memory, MEMORY);
    unit_stop(&plain);
    unit_stop(&shared);
}

static uint8_t payload[UNIT_FRAME_ROOM];

static void requests_are_those_that_came(void **state)
{
    static const struct {
        uint8_t opcode, operation, type;
        uint32_t length, payload_length;
    } rows[] = {
        {NETDAM_OP_WRITE, 0, 0, 8, 8},
        {NETDAM_OP_WRITE, 0, 0, 150, 150},
        {NETDAM_OP_WRITE, 0, 0, PAYLOAD, PAYLOAD},
        {NETDAM_OP_READ, 0, 0, PAYLOAD, 0},
        {NETDAM_OP_ECHO, 0, 0, PAYLOAD, PAYLOAD},
        {NETDAM_OP_REDUCE, NETDAM_ALU_SUM, NETDAM_TYPE_U32, PAYLOAD, PAYLOAD},
        {NETDAM_OP_REDUCE, NETDAM_ALU_MIN, NETDAM_TYPE_F64, 64, 64},
        {NETDAM_OP_FETCH_ADD, 0, NETDAM_TYPE_U64, 8, 8},
        {NETDAM_OP_CAS, 0, NETDAM_TYPE_U64, 8, 16},
        {NETDAM_OP_SWAP, 0, NETDAM_TYPE_U32, 4, 4},
        {NETDAM_OP_WRITE, 0, 0, PAYLOAD, PAYLOAD - 8}, /* refused */
        {99, 0, 0, PAYLOAD, PAYLOAD},
    };
    static struct sample sample;

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            struct unit_request request = {.opcode = rows[i].opcode,
                                           .operation = rows[i].operation,
                                           .type = rows[i].type,
                                           .family = (variant & 1) != 0 ? 6 : 4,
                                           .no_crc = (variant & 2) != 0,
                                           .length = rows[i].length,
                                           .payload_length = rows[i].payload_length,
                                           .number = 100,
                                           .key = rows[i].opcode == NETDAM_OP_ECHO ? 0 : UNIT_KEY,
                                           .address = rows[i].opcode == NETDAM_OP_ECHO ? 0 : 0x40,
                                           .generation = rows[i].opcode == NETDAM_OP_ECHO ? 0 : UNIT_GENERATION,
                                           .payload = payload};

            /* Over IPv6 there is a UDP checksum, and all of the frame is copied for it. */
            make_request(&sample, &request, request.family == 4);
            expect_same(&sample, true);
        }
    }
}

static void lists_of_entries_are_those_that_came(void **state)
{
    static struct entries list;
    static struct sample sample;
    struct unit_request request = {.opcode = NETDAM_OP_TRANSACTION,
                                   .number = 100,
                                   .key = UNIT_KEY,
                                   .generation = UNIT_GENERATION,
                                   .payload = list.bytes};

    (void)state;
    list.length = 0;
    for (unsigned i = 0; i < 8; i++) {
        entries_add(&list, WRITE, 0x100 + i * 64, 64, payload + i * 64);
    }
    entries_add(&list, FETCH, 0x800, 64, NULL);
    request.length = request.payload_length = list.length;
    make_request(&sample, &request, false);
    assert_true(sample.bytes > 256);
    expect_same(&sample, true);
}

static void long_lists_of_segments_are_those_that_came(void **state)
{
    static struct sample sample;
    static struct chain chain;
    static struct unit u;

    (void)state;
    start(&u, false);
    chain = chain_of(&u, 4, "W2 W3 W4 W5 W6 W7");
    unit_stop(&u);
    sample.bytes = chain_frame(sample.frame, &chain);
    unit_put16(sample.frame + UDP_AT + 6, 0);
    assert_true(sample.bytes > 256 + CHAIN_LENGTH);
    sample.kept = CHAIN_LENGTH + NETDAM_CRC_BYTES;
    sample.keep = sample.bytes - sample.kept;
    expect_same(&sample, true);
    start(&u, true);
    receive(&u, sample.frame, sample.bytes, sample.keep, sample.kept);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_REQUESTS_EXECUTED), 1);
    unit_stop(&u);
}

static void what_is_not_netdam_is_what_came(void **state)
{
    static struct sample sample;
    struct unit_request request = {.opcode = NETDAM_OP_WRITE,
                                   .length = PAYLOAD,
                                   .payload_length = PAYLOAD,
                                   .number = 1,
                                   .key = UNIT_KEY,
                                   .generation = UNIT_GENERATION,
                                   .payload = payload};
    uint8_t *ip = sample.frame + NETDAM_ETHERNET_BYTES;
    uint32_t sum = 0;

    (void)state;
    /* A ping, made of a request. */
    make_request(&sample, &request, false);
    ip[9] = 1;
    ip[10] = ip[11] = 0;
    for (unsigned i = 0; i < 20; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    unit_put16(ip + 10, 0xffffu ^ (sum % 0xffffu));
    memset(ip + 20, 0, 4);
    ip[20] = 8;
    for (sum = 0, ip += 20; ip < sample.frame + sample.bytes; ip += 2) {
        sum += (uint32_t)ip[0] << 8 | (ip + 1 < sample.frame + sample.bytes ? ip[1] : 0u);
    }
    unit_put16(sample.frame + 36, 0xffffu ^ (sum % 0xffffu));
    static struct unit shared;

    start(&shared, true);
    receive(&shared, sample.frame, sample.bytes, 0, 0);
    assert_int_equal(unit_counter(&shared, NETDAM_COUNTER_PINGS), 1);
    unit_stop(&shared);
    expect_same(&sample, true);
}

static void a_payload_that_changes_is_bytes_and_nothing_else(void **state)
{
    static const unsigned opcodes[] = {NETDAM_OP_WRITE, NETDAM_OP_REDUCE, NETDAM_OP_ECHO};
    static struct sample sample;
    static struct unit u;

    (void)state;
    for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
        struct unit_request request = {.opcode = (uint8_t)opcodes[i],
                                       .operation = opcodes[i] == NETDAM_OP_REDUCE ? NETDAM_ALU_SUM : 0,
                                       .type = opcodes[i] == NETDAM_OP_REDUCE ? NETDAM_TYPE_U32 : 0,
                                       .length = PAYLOAD,
                                       .payload_length = PAYLOAD,
                                       .number = 100,
                                       .key = opcodes[i] == NETDAM_OP_ECHO ? 0 : UNIT_KEY,
                                       .generation = opcodes[i] == NETDAM_OP_ECHO ? 0 : UNIT_GENERATION,
                                       .payload = payload};
        struct ndtest_packet answer;
        static uint8_t before[MEMORY];

        make_request(&sample, &request, false); /* nothing is spared */
        start(&u, true);
        memcpy(before, u.node.memory, MEMORY);
        receive(&u, sample.frame, sample.bytes, 0, 0);
        unit_expect_sent(&u, &answer);
        assert_int_equal(answer.status, NETDAM_STATUS_OK);
        assert_memory_equal(u.node.memory, before, BASE);
        assert_memory_equal(u.node.memory + BASE + PAYLOAD, before + BASE + PAYLOAD, MEMORY - BASE - PAYLOAD);
        if (opcodes[i] == NETDAM_OP_WRITE) {
            /* Written before the copy: what the writer made of it. */
            for (size_t at = 0; at < PAYLOAD; at++) {
                assert_int_equal(u.node.memory[BASE + at], (uint8_t)(0xa0 + sample.bytes - 4 - PAYLOAD + at));
            }
        }
        unit_stop(&u);
    }
}

/* The other end may have written anything to the header by the time that it is sealed. */
static void a_header_that_changes_while_it_is_built_does_no_harm(void **state)
{
    static const unsigned families[] = {4, 6};
    static struct unit u;
    const size_t bytes = sizeof(struct netdam_wire_header) + 60;

    (void)state;
    start(&u, true);
    for (unsigned i = 0; i < 4; i++) {
        struct ndfw_endpoint to = {.family = (uint8_t)families[i / 2]};
        struct netdam_wire_header *header;
        uint8_t *datagram = ndfw_frame_begin(u.fw, &to, 0, (uint32_t)bytes);
        int extreme = i % 2 != 0 ? 0xff : 0;

        assert_non_null(datagram);
        memset(datagram, 0, bytes);
        header = (void *)datagram;
        memset(&header->flags, extreme, sizeof(header->flags));
        memset(&header->payload_length, extreme, sizeof(header->payload_length));
        memset(&header->header_length, extreme, sizeof(header->header_length));
        ndfw_seal(u.fw, &to, datagram, (uint32_t)bytes);
        ndfw_frame_end(u.fw, &to, (uint32_t)bytes);
    }
    unit_drop_sent(&u);
    unit_stop(&u);
}

static int fill_payload(void **state)
{
    struct ndtest_random random = {77};

    (void)state;
    ndtest_random_fill(&random, payload, sizeof(payload));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_those_that_came),
        cmocka_unit_test(lists_of_entries_are_those_that_came),
        cmocka_unit_test(long_lists_of_segments_are_those_that_came),
        cmocka_unit_test(what_is_not_netdam_is_what_came),
        cmocka_unit_test(a_payload_that_changes_is_bytes_and_nothing_else),
        cmocka_unit_test(a_header_that_changes_while_it_is_built_does_no_harm),
    };

    return cmocka_run_group_tests(tests, fill_payload, NULL);
}
