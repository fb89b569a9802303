/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the golden packets to a firmware instance: answers must be the golden ones byte for byte, drops be counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"
#include "netdam/wire.h"

#define MEMORY_BYTES 65536u
#define REGION_BYTES 4096u
#define FRAME_BYTES  (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)
#define FRAMES_MAX   16u
#define NOW_NS       UINT64_C(1000000000)
#define EPOCH        UINT64_C(0x5eed0001)
#define CONTEXT      UINT64_C(0xc0ffee0011223344)
#define KEY_ALL      UINT64_C(0x6b65790123456789)
#define KEY_NO_ALU   UINT64_C(0x6b6579012345678a)
#define KEY_NO_WRITE UINT64_C(0x6b6579012345678b)
#define KEY_RECEIVE  UINT64_C(0x7265637601234567)
#define KEY_NO_READY UINT64_C(0x7265637601234568)

/* Offsets in on-board memory: regions first, then the requester's rings, then those of the node's two queue pairs. */
#define REGIONS_BASE UINT64_C(4096)
#define SQ_BASE      UINT64_C(16384)
#define CQ_BASE      UINT64_C(32768)
#define RING_LOG2    4u
#define PAIR_BASE(i) (UINT64_C(49152) + 4096u * (i))
#define PAIR_CQ      1024u
#define PAIR_RQ      2048u
#define PAIR_LOG2    1u

/* The node's receive buffer, in its first region. */
#define BUFFER_ADDRESS   UINT64_C(0x800)
#define BUFFER_BYTES     64u
#define BUFFER_USER_DATA UINT64_C(0x7573657264617461)

static const char *directory = "tests/golden";

struct instance {
    const struct netdam_fw_ops *ops;
    void *state;
    uint8_t *memory;
    uint8_t *before; /* memory as the node started with it */
    uint64_t entropy;
    uint64_t first_number;
    uint8_t frames[FRAMES_MAX][FRAME_BYTES];
    size_t bytes[FRAMES_MAX];
    unsigned count;
};

static uint8_t *transmit_begin(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    return instance->count < FRAMES_MAX && bytes <= FRAME_BYTES ? instance->frames[instance->count] : NULL;
}

static void transmit_end(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    instance->bytes[instance->count++] = bytes;
}

static void interrupt(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
}

/* Every draw yields the same: the epoch or a receive key of the manifest's node, or the context of its requester. */
static void entropy(void *opaque, void *buffer, size_t bytes)
{
    const struct instance *instance = opaque;

    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)buffer)[i] = (uint8_t)(instance->entropy >> 8 * (i % 8));
    }
}

static void write_register(struct instance *instance, uint32_t offset, unsigned bytes, uint64_t value)
{
    (void)instance->ops->register_write(instance->state, offset, bytes, value, NOW_NS);
}

static uint64_t command(struct instance *instance, enum netdam_admin command_, const uint64_t *arguments,
                        unsigned count)
{
    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        write_register(instance, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, i < count ? arguments[i] : 0);
    }
    write_register(instance, NETDAM_REG_ADMIN_COMMAND, 4, command_);
    assert_int_equal(instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_STATUS, 4), NETDAM_ADMIN_STATUS_OK);
    return instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_RESULT0, 8);
}

/* The region number `index`; `queue`: the queue pair that gets the immediates, plus 1, or 0. */
static void create_region(struct instance *instance, unsigned index, uint64_t permissions, uint64_t key, uint64_t queue)
{
    const uint64_t arguments[] = {
        REGIONS_BASE + (uint64_t)index * REGION_BYTES, REGION_BYTES, permissions, key, 0, queue};

    assert_int_equal(command(instance, NETDAM_ADMIN_REGION_CREATE, arguments, 6), index);
}

static void create_pair(struct instance *instance, unsigned index, uint64_t receive_key)
{
    const uint64_t base = PAIR_BASE(index);
    const uint64_t arguments[] = {
        base, PAIR_LOG2, base + PAIR_CQ, PAIR_LOG2, base + PAIR_RQ, PAIR_LOG2, (uint64_t)NETDAM_VECTOR_NONE << 16};
    const uint64_t before = instance->entropy;

    instance->entropy = receive_key;
    assert_int_equal(command(instance, NETDAM_ADMIN_QUEUE_CREATE, arguments, 7), index);
    instance->entropy = before;
    assert_true(instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_RESULT1, 8) == receive_key);
}

static void post_buffer(struct instance *instance, unsigned pair)
{
    struct netdam_ring *ring = (void *)(instance->memory + PAIR_BASE(pair) + PAIR_RQ);
    const struct netdam_descriptor descriptor = {
        .user_data = BUFFER_USER_DATA,
        .length = BUFFER_BYTES,
        .local_region = 0,
        .u.buffer.local_address = BUFFER_ADDRESS,
    };

    memcpy(ring + 1, &descriptor, sizeof(descriptor));
    ring->producer++;
}

/* The node of the manifest, or with last byte 1 its requester. */
static void start(struct instance *instance, uint8_t last_byte)
{
    struct netdam_fw_config config = {
        .abi_version = NETDAM_FW_ABI_VERSION,
        .memory = instance->memory,
        .memory_bytes = MEMORY_BYTES,
        .mac = {2, 0, 0, 0, 0, last_byte},
        .ipv4 = {10, 0, 0, last_byte},
        .ipv6 = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last_byte},
        .peers = 4,
        .lanes = 64,
        .lane_windows = 8,
        .operations = 16,
        .first_number = instance->first_number,
    };
    struct netdam_fw_platform platform = {
        .opaque = instance,
        .transmit_begin = transmit_begin,
        .transmit_end = transmit_end,
        .interrupt = interrupt,
        .entropy = entropy,
    };
    const char *error = NULL;
    size_t bytes;

    for (size_t i = 0; i < MEMORY_BYTES; i++) {
        instance->memory[i] = (uint8_t)i;
    }
    instance->count = 0;
    bytes = instance->ops->state_bytes(&config, &error);
    assert_null(error);
    if (instance->state == NULL) {
        instance->state = aligned_alloc(64, (bytes + 63) / 64 * 64);
        assert_non_null(instance->state);
    }
    instance->ops->start(instance->state, &config, &platform, NOW_NS);
    if (last_byte == 2) {
        create_pair(instance, 0, KEY_RECEIVE);
        create_pair(instance, 1, KEY_NO_READY);
    }
    create_region(instance, 0, NETDAM_PERMISSION_ALL, KEY_ALL, last_byte == 2 ? 1 : 0);
    create_region(instance, 1, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE, KEY_NO_ALU, 0);
    create_region(instance, 2, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_ALU, KEY_NO_WRITE, 0);
    if (last_byte == 2) {
        post_buffer(instance, 0);
    }
    memcpy(instance->before, instance->memory, MEMORY_BYTES);
}

static void receive(struct instance *instance, const uint8_t *frame, size_t bytes)
{
    /* A copy of exactly this size, so that a sanitizer sees every byte read too much. */
    uint8_t *copy = malloc(bytes);

    assert_non_null(copy);
    memcpy(copy, frame, bytes);
    instance->ops->receive(instance->state, copy, bytes, NOW_NS);
    free(copy);
}

static uint64_t counter(struct instance *instance, const char *name)
{
#define MATCH(name_, text)                                                                                             \
    if (strcmp(name, #name_) == 0) {                                                                                   \
        return instance->ops->register_read(instance->state, NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_##name_, 8);    \
    }
    NETDAM_COUNTER_LIST(MATCH)
#undef MATCH
    fail_msg("no counter %s", name);
    return 0;
}

static const char *status_name(unsigned status)
{
    switch (status) {
#define CASE(name, value, class_, text)                                                                                \
    case value:                                                                                                        \
        return #name;
        NETDAM_STATUS_LIST(CASE)
#undef CASE
    default:
        return "undefined";
    }
}

/* Where the NetDAM header begins in a well-formed frame. */
static size_t header_at(const uint8_t *frame)
{
    return (frame[12] == 0x08 ? NETDAM_IPV4_BYTES : NETDAM_IPV6_BYTES) + NETDAM_ETHERNET_BYTES + NETDAM_UDP_BYTES;
}

static bool memory_is_untouched(const struct instance *instance)
{
    return memcmp(instance->memory, instance->before, MEMORY_BYTES) == 0;
}

/* Where one request follows another, the name of the other. */
static const char *request_before(const char *name)
{
    return strcmp(name, "write-again-request") == 0         ? "write-request"
           : strcmp(name, "send-again-request") == 0        ? "send-request"
           : strcmp(name, "transaction-again-request") == 0 ? "transaction-request"
                                                            : NULL;
}

/* The frame number `at` that was sent, compared with a golden one; says what differs. */
static bool sent(const struct instance *instance, const char *name, unsigned at)
{
    static uint8_t expected[FRAME_BYTES];
    size_t bytes = golden_load(directory, name, expected, sizeof(expected));

    if (at >= instance->count || bytes == 0 || instance->bytes[at] != bytes) {
        print_error("%s: frame %u of %u has %zu bytes, not %zu\n", name, at, instance->count,
                    at < instance->count ? instance->bytes[at] : (size_t)0, bytes);
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (instance->frames[at][i] != expected[i]) {
            print_error("%s: byte %zu is %02x, not %02x\n", name, i, instance->frames[at][i], expected[i]);
            return false;
        }
    }
    return true;
}

/* What is wrong if a frame should have raised a counter and nothing else, or NULL. */
static const char *wrong_in_silence(struct instance *instance, const char *name)
{
    static char text[64];
    bool executed = strcmp(name, "REQUESTS_EXECUTED") == 0;

    if (instance->count != 0) {
        return "was answered";
    }
    if (strcmp(name, "-") != 0 && counter(instance, name) != 1) {
        snprintf(text, sizeof(text), "%s is %d", name, (int)counter(instance, name));
        return text;
    }
    return memory_is_untouched(instance) != executed ? NULL : "memory is not what it should be";
}

/* What is wrong if a frame should have been answered, or NULL. `first`: the request that came before, or NULL. */
static const char *wrong_answer(struct instance *instance, const struct golden_entry *entry, const char *first)
{
    static char text[128];
    bool link = strcmp(entry->kind, "link") == 0;
    bool executed = !link && first == NULL && strcmp(entry->expected, "OK") == 0;
    const char *got;

    if (instance->count != 1) {
        snprintf(text, sizeof(text), "%u answers", instance->count);
        return text;
    }
    if (!executed && !memory_is_untouched(instance)) {
        return "memory has changed";
    }
    if (link && counter(instance, entry->expected) != 1) {
        return "was not counted";
    }
    got = link ? entry->expected : status_name(instance->frames[0][header_at(instance->frames[0]) + 7]);
    if (strcmp(got, entry->expected) != 0) {
        snprintf(text, sizeof(text), "answered %s, not %s", got, entry->expected);
        return text;
    }
    return strcmp(entry->answer, "-") == 0 || sent(instance, entry->answer, 0) ? NULL : "another answer";
}

/* Starts the node, or the requester if the frame is addressed to it, and lets it have a golden frame. */
static bool play_frame(struct instance *instance, const char *name, const char *first)
{
    static uint8_t frame[FRAME_BYTES];
    size_t bytes = golden_load(directory, name, frame, sizeof(frame));
    bool to_requester = bytes >= 6 && frame[5] == 1;

    instance->entropy = EPOCH;
    instance->first_number = 0;
    start(instance, to_requester ? 1 : 2);
    if (first != NULL) {
        bytes = golden_load(directory, first, frame, sizeof(frame));
        receive(instance, frame, bytes);
        instance->count = 0;
        memcpy(instance->before, instance->memory, MEMORY_BYTES);
        bytes = golden_load(directory, name, frame, sizeof(frame));
    }
    if (bytes != 0) {
        receive(instance, frame, bytes);
    }
    return bytes != 0;
}

/* What is wrong with the doings of node or requester, or NULL. */
static const char *play(struct instance *instance, const struct golden_entry *entry)
{
    bool encode = strcmp(entry->kind, "encode") == 0, decode = strcmp(entry->kind, "decode") == 0;
    bool response = encode && strcmp(entry->answer, "-") == 0;
    const char *first = request_before(entry->name);

    if (!play_frame(instance, entry->name, first)) {
        return "cannot be read";
    }
    if (response) {
        return wrong_in_silence(instance, "RESPONSES_UNMATCHED");
    }
    if (encode || decode || strcmp(entry->answer, "-") != 0) {
        return wrong_answer(instance, entry, first);
    }
    return wrong_in_silence(instance, entry->expected);
}

static void golden_packets_are_answered_and_dropped_as_the_manifest_says(void **state)
{
    struct instance *instance = *state;
    struct golden_entry entry;
    unsigned played = 0, wrong = 0;
    char path[1024];
    FILE *manifest;
    int next;

    snprintf(path, sizeof(path), "%s/manifest.txt", directory);
    manifest = fopen(path, "r");
    assert_non_null(manifest);
    while ((next = golden_next(manifest, &entry)) == 1) {
        const char *problem = play(instance, &entry);

        played++;
        if (problem != NULL) {
            wrong++;
            print_error("%s: %s\n", entry.name, problem);
        }
    }
    fclose(manifest);
    assert_int_equal(next, 0);
    assert_true(played > 100);
    assert_int_equal(wrong, 0);
}

/* What golden requests leave in the node's first region, worked out by hand from docs/. */
static const struct effect {
    const char *name;
    uint16_t address;
    uint8_t bytes;
    uint8_t memory[16];
} effects[] = {
    {"write-request", 0x41, 12, {'H', 'e', 'l', 'l', 'o', ',', ' ', 'n', 'o', 'd', 'e', '!'}},
    {"write-odd-request", 0xfff, 1, {'!'}},
    {"fetch-add-request", 8, 8, {0x0d, 9, 10, 11, 12, 13, 14, 15}},
    {"cas-request", 16, 8, {0xff}},
    {"cas-failed-request", 16, 4, {16, 17, 18, 19}},
    {"swap-request", 8, 8, {9}},
    {"fetch-op-request", 8, 8, {8, 9, 10, 11, 12, 13, 14, 15}},
    /* 0x0908 is 1.2578125 * 2^-13; with 2^-11 it is 1.314453125 * 2^-11. */
    {"fetch-op-f16-request", 8, 2, {0x42, 0x11}},
    {"reduce-request", 0x80, 16, {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0x88, 0x89, 0x8a, 0x8b, 0xf9, 2, 0x15, 0x50}},
    /* 2^-16 twice; 1 and 770 * 2^-24, which is less than half of the last digit. */
    {"reduce-f16-request", 0, 4, {0x00, 0x02, 0x00, 0x3c}},
    /* 2^-125 and 1.015625 * 2^-121, each times 3. */
    {"reduce-bf16-request", 0, 4, {0xc0, 0x01, 0xc3, 0x03}},
    {"reduce-saturating-request", 0xfc, 4, {0xff, 0xff, 0xff, 0xff}},
    {"flag-relaxed-request", 0, 5, {'a', 'b', 'c', 'd', 4}},
    {"flag-ordered-request", 0, 5, {'a', 'b', 'c', 'd', 4}},
    {"flag-unreliable-request", 0, 5, {'a', 'b', 'c', 'd', 4}},
    {"flag-immediate-request", 0, 5, {'a', 'b', 'c', 'd', 4}},
    {"relaxed-reduce-request", 0, 5, {1, 2, 3, 4, 4}},
    {"send-request", BUFFER_ADDRESS, 5, {'a', 'b', 'c', 'd', 4}},
    {"send-immediate-request", BUFFER_ADDRESS, 5, {'a', 'b', 'c', 'd', 4}},
    {"send-empty-request", BUFFER_ADDRESS, 4, {0, 1, 2, 3}},
    {"flag-immediate-request", BUFFER_ADDRESS, 4, {0, 1, 2, 3}},
    {"transaction-request", 16, 8, {16, 17, 'H', 'e', 'l', 'l', '!', 23}},
    {"transaction-write-request", 0x3f, 5, {0x3f, 'o', 'n', 'e', 0x43}},
    {"transaction-write-request", REGION_BYTES + 0x40, 5, {0x40, 't', 'w', 'o', 0x44}},
};

static void golden_requests_leave_in_memory_what_they_should(void **state)
{
    struct instance *instance = *state;
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
        const struct effect *effect = &effects[i];
        const uint8_t *memory = instance->memory + REGIONS_BASE + effect->address;

        assert_true(play_frame(instance, effect->name, NULL));
        if (memcmp(memory, effect->memory, effect->bytes) != 0) {
            wrong++;
            print_error("%s: memory is %02x %02x %02x %02x ...\n", effect->name, memory[0], memory[1], memory[2],
                        memory[3]);
        }
    }
    assert_int_equal(wrong, 0);
}

/* The only completion of a queue pair of the node, or one of zeros. */
static struct netdam_completion completion_of(const struct instance *instance, unsigned pair)
{
    const struct netdam_ring *ring = (const void *)(instance->memory + PAIR_BASE(pair) + PAIR_CQ);
    struct netdam_completion completion = {0};

    if (ring->producer == 1) {
        memcpy(&completion, ring + 1, sizeof(completion));
    }
    return completion;
}

static uint32_t buffers_used(const struct instance *instance, unsigned pair)
{
    return ((const struct netdam_ring *)(const void *)(instance->memory + PAIR_BASE(pair) + PAIR_RQ))->consumer;
}

static void what_arrives_completes_the_receive_buffer(void **state)
{
    struct instance *instance = *state;
    static const struct {
        const char *name, *first;
        uint8_t opcode;
        uint32_t length;
        bool immediate;
    } arrivals[] = {
        {"send-request", NULL, NETDAM_OP_SEND, 4, false},
        {"send-again-request", "send-request", NETDAM_OP_SEND, 4, false},
        {"send-immediate-request", NULL, NETDAM_OP_SEND, 4, true},
        {"send-empty-request", NULL, NETDAM_OP_SEND, 0, false},
        {"flag-immediate-request", NULL, NETDAM_OP_WRITE, 4, true},
    };
    static const char *const others[] = {"send-key-request", "send-not-ready-request", "send-long-request",
                                         "immediate-permission-request", "write-request"};

    for (size_t i = 0; i < sizeof(arrivals) / sizeof(arrivals[0]); i++) {
        struct netdam_completion completion;

        assert_true(play_frame(instance, arrivals[i].name, arrivals[i].first));
        completion = completion_of(instance, 0);
        assert_int_equal(buffers_used(instance, 0), 1);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_true(completion.user_data == BUFFER_USER_DATA);
        assert_int_equal(completion.opcode, arrivals[i].opcode);
        assert_int_equal(completion.length, arrivals[i].length);
        assert_int_equal(completion.queue_pair, 0);
        assert_int_equal(completion.hop, 0);
        assert_int_equal(completion.flags,
                         NETDAM_COMPLETION_RECEIVE | (arrivals[i].immediate ? NETDAM_COMPLETION_IMMEDIATE : 0));
        assert_int_equal(completion.immediate, arrivals[i].immediate ? 42 : 0);
        assert_int_equal(completion.result, arrivals[i].immediate ? 42 : 0);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_true(play_frame(instance, others[i], NULL));
        for (unsigned pair = 0; pair < 2; pair++) {
            assert_int_equal(buffers_used(instance, pair), 0);
            assert_true(completion_of(instance, pair).user_data == 0);
        }
    }
}

static uint64_t get_be(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | from[i];
    }
    return value;
}

static void post(struct instance *instance, const struct netdam_descriptor *descriptor)
{
    struct netdam_ring *ring = (void *)(instance->memory + SQ_BASE);

    memcpy(instance->memory + SQ_BASE + sizeof(*ring) +
               (ring->producer & ((1u << RING_LOG2) - 1)) * sizeof(*descriptor),
           descriptor, sizeof(*descriptor));
    ring->producer++;
}

static void run(struct instance *instance, uint64_t now_ns)
{
    struct netdam_fw_run_result result;

    for (unsigned i = 0; i < 16; i++) {
        instance->ops->run(instance->state, now_ns, 65536, &result);
    }
}

/* The first segment: behind the header and the immediate, if there is one. */
static const uint8_t *segment_of(const uint8_t *header)
{
    unsigned flags = (unsigned)get_be(header + offsetof(struct netdam_wire_header, flags), 2);

    return header + sizeof(struct netdam_wire_header) +
           ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(struct netdam_wire_immediate) : 0u);
}

/* What software would post so that the golden request results; its payload goes to the start of the first region. */
static void describe(struct instance *instance, const uint8_t *frame, uint32_t peer,
                     struct netdam_descriptor *descriptor)
{
    const uint8_t *header = frame + header_at(frame);
    const uint8_t *segment = segment_of(header);
    const uint8_t *payload = segment + sizeof(struct netdam_wire_segment);
    size_t payload_bytes = get_be(header + offsetof(struct netdam_wire_header, payload_length), 2);
    unsigned flags = (unsigned)get_be(header + offsetof(struct netdam_wire_header, flags), 2);

    memset(descriptor, 0, sizeof(*descriptor));
    if ((flags & NETDAM_FLAG_IMMEDIATE) != 0) {
        descriptor->immediate =
            (uint32_t)get_be(header + sizeof(struct netdam_wire_header), sizeof(struct netdam_wire_immediate));
    }
    descriptor->flags = ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? NETDAM_DESCRIPTOR_IMMEDIATE : 0u) |
                        ((flags & NETDAM_FLAG_RELAXED) != 0 ? NETDAM_DESCRIPTOR_RELAXED : 0u) |
                        ((flags & NETDAM_FLAG_ORDERED) != 0 ? NETDAM_DESCRIPTOR_ORDERED : 0u) |
                        ((flags & NETDAM_FLAG_UNRELIABLE) != 0 ? NETDAM_DESCRIPTOR_UNRELIABLE : 0u);
    descriptor->opcode = segment[0];
    descriptor->operation = segment[1];
    descriptor->type = segment[2];
    descriptor->peer = peer;
    descriptor->length = (uint32_t)get_be(segment + 4, 4);
    descriptor->remote_key = get_be(segment + 8, 8);
    descriptor->remote_address = get_be(segment + 16, 8);
    if ((netdam_op_flags(descriptor->opcode) & NETDAM_OPF_ATOMIC) != 0) {
        memcpy(&descriptor->u.operand[0], payload, descriptor->length);
        if (descriptor->opcode == NETDAM_OP_CAS) {
            memcpy(&descriptor->u.operand[1], payload + descriptor->length, descriptor->length);
        }
    } else {
        memcpy(instance->memory + REGIONS_BASE, payload, payload_bytes);
    }
}

/*
 * Lets a requester send the golden request `name`: it meets the node, then posts as many other requests as lie between
 * the floor and the number, which nobody answers. `again`: what it sends after a while without an answer, or NULL.
 */
static bool request_is_sent(struct instance *instance, const char *name, const char *again)
{
    static uint8_t frame[FRAME_BYTES], stale[FRAME_BYTES];
    size_t bytes = golden_load(directory, name, frame, sizeof(frame));
    const uint8_t *header = frame + header_at(frame);
    bool ipv6 = frame[12] == 0x86;
    uint64_t number = get_be(header + offsetof(struct netdam_wire_header, number), 6);
    uint64_t distance = get_be(header + offsetof(struct netdam_wire_header, distance), 2);
    unsigned flags = (unsigned)get_be(header + offsetof(struct netdam_wire_header, flags), 2);
    uint8_t opcode = *segment_of(header);
    bool laneless = (netdam_op_flags(opcode) & NETDAM_OPF_MODIFIES) == 0 ||
                    (flags & (NETDAM_FLAG_RELAXED | NETDAM_FLAG_UNRELIABLE)) != 0;
    uint64_t before = laneless ? number - 1 : distance;
    const uint64_t queue[] = {SQ_BASE, RING_LOG2, CQ_BASE, RING_LOG2, 0, 0, (uint64_t)NETDAM_VECTOR_NONE << 16, 0};
    uint64_t address[] = {0x0a000002, 0, 4, 0x020000000002};
    struct netdam_descriptor descriptor, filler = {.opcode = laneless ? NETDAM_OP_ECHO : NETDAM_OP_WRITE};
    bool right = true;

    assert_true(bytes != 0);
    instance->entropy = CONTEXT;
    instance->first_number = laneless ? 1 : number - distance;
    start(instance, 1);
    if (ipv6) {
        address[0] = UINT64_C(0xfd00000000000000);
        address[1] = 2;
        address[2] = 6;
    }
    (void)command(instance, NETDAM_ADMIN_NEIGHBOUR_SET, address, 4);
    address[2] |= NETDAM_UDP_PORT << 16;
    filler.peer = (uint32_t)command(instance, NETDAM_ADMIN_PEER_OPEN, address, 3);
    (void)command(instance, NETDAM_ADMIN_QUEUE_CREATE, queue, 8);
    describe(instance, frame, filler.peer, &descriptor);
    for (uint64_t i = 0; i < before; i++) {
        post(instance, &filler);
    }
    post(instance, &descriptor);

    run(instance, NOW_NS);
    if (opcode != NETDAM_OP_ECHO) {
        right = laneless || sent(instance, ipv6 ? "confirm-first-ipv6-request" : "confirm-first-request", 0);
        /* The node answers with its generation. */
        bytes =
            golden_load(directory, ipv6 ? "confirm-first-ipv6-answer" : "confirm-first-answer", stale, sizeof(stale));
        instance->count = 0;
        receive(instance, stale, bytes);
        run(instance, NOW_NS);
    }
    right = right && sent(instance, name, instance->count - 1);
    if (again != NULL) {
        instance->count = 0;
        run(instance, NOW_NS + UINT64_C(1500000000));
        right = right && sent(instance, again, instance->count - 1);
    }
    instance->ops->stop(instance->state, NOW_NS + UINT64_C(2000000000));
    return right;
}

static void requester_sends_golden_requests(void **state)
{
    struct instance *instance = *state;
    static const char *const requests[] = {
        "echo-request",
        "read-request",
        "write-request",
        "write-odd-request",
        "write-empty-request",
        "reduce-request",
        "cas-request",
        "reduce-min-request",
        "cas-failed-request",
        "fetch-add-request",
        "echo-ipv6-request",
        "read-empty-request",
        "read-ipv6-request",
        "write-ipv6-request",
        "reduce-empty-request",
        "send-request",
        "send-immediate-request",
        "send-empty-request",
        "send-key-request",
        "swap-request",
        "fetch-op-request",
        "fetch-op-f16-request",
        "reduce-f16-request",
        "reduce-bf16-request",
        "reduce-saturating-request",
        "flag-relaxed-request",
        "relaxed-reduce-request",
        "flag-ordered-request",
        "flag-unreliable-request",
        "flag-immediate-request",
        "transaction-request",
        "transaction-write-request",
        "transaction-failed-request",
    };
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        wrong += !request_is_sent(instance, requests[i], NULL);
    }
    wrong += !request_is_sent(instance, "write-request", "write-again-request");
    wrong += !request_is_sent(instance, "send-request", "send-again-request");
    wrong += !request_is_sent(instance, "transaction-request", "transaction-again-request");
    assert_int_equal(wrong, 0);
}

/* A requester that does not know the node's link-layer address asks for it, and goes on when it is told. */
static bool node_is_found(struct instance *instance, bool ipv6)
{
    const uint64_t ipv4_address[] = {0x0a000002, 0, 4 | NETDAM_UDP_PORT << 16};
    const uint64_t ipv6_address[] = {UINT64_C(0xfd00000000000000), 2, 6 | NETDAM_UDP_PORT << 16};
    const uint64_t queue[] = {SQ_BASE, RING_LOG2, CQ_BASE, RING_LOG2, 0, 0, (uint64_t)NETDAM_VECTOR_NONE << 16, 0};
    static uint8_t frame[FRAME_BYTES];
    struct netdam_descriptor descriptor = {.opcode = NETDAM_OP_READ};
    bool right;
    size_t bytes;

    instance->entropy = CONTEXT;
    instance->first_number = 5;
    start(instance, 1);
    descriptor.peer = (uint32_t)command(instance, NETDAM_ADMIN_PEER_OPEN, ipv6 ? ipv6_address : ipv4_address, 3);
    (void)command(instance, NETDAM_ADMIN_QUEUE_CREATE, queue, 8);
    post(instance, &descriptor);
    run(instance, NOW_NS);
    right = instance->count == 1 && sent(instance, ipv6 ? "solicitation" : "arp", 0);
    bytes = golden_load(directory, ipv6 ? "advertisement" : "arp-reply", frame, sizeof(frame));
    instance->count = 0;
    receive(instance, frame, bytes);
    run(instance, NOW_NS + UINT64_C(2000000000));
    right = right && sent(instance, ipv6 ? "confirm-first-ipv6-request" : "confirm-first-request", 0);
    instance->ops->stop(instance->state, NOW_NS + UINT64_C(2000000000));
    return right;
}

static void requester_asks_for_the_link_layer_address(void **state)
{
    assert_true(node_is_found(*state, false));
    assert_true(node_is_found(*state, true));
}

static int setup(void **state)
{
    struct instance *instance = calloc(1, sizeof(*instance));

    if (instance == NULL) {
        return -1;
    }
    instance->ops = netdam_fw_entry();
    instance->memory = aligned_alloc(4096, MEMORY_BYTES);
    instance->before = malloc(MEMORY_BYTES);
    *state = instance;
    return instance->memory == NULL || instance->before == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    struct instance *instance = *state;

    free(instance->memory);
    free(instance->before);
    free(instance->state);
    free(instance);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_packets_are_answered_and_dropped_as_the_manifest_says),
        cmocka_unit_test(golden_requests_leave_in_memory_what_they_should),
        cmocka_unit_test(what_arrives_completes_the_receive_buffer),
        cmocka_unit_test(requester_sends_golden_requests),
        cmocka_unit_test(requester_asks_for_the_link_layer_address),
    };

    if (argc > 1) {
        directory = argv[1];
    }
    return cmocka_run_group_tests_name("golden", tests, setup, teardown);
}
