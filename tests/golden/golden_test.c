/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the golden packets to a firmware instance: answers must be the golden ones byte for byte, drops be counted. */
#include "instance.h"

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

/* Whether the execution of a request may store something; of a chain, that of its current segment. */
static bool may_store(const uint8_t *frame)
{
    const uint8_t *header = frame + golden_header_at(frame);
    unsigned form = header[offsetof(struct netdam_wire_header, node_form)];
    size_t node = form == NETDAM_NODE_FORM_IPV4   ? sizeof(struct netdam_wire_node_ipv4)
                  : form == NETDAM_NODE_FORM_IPV6 ? sizeof(struct netdam_wire_node_ipv6)
                                                  : 0;

    return form == NETDAM_NODE_FORM_IMPLICIT ||
           (netdam_op_flags(header[sizeof(struct netdam_wire_header) + node +
                                   header[offsetof(struct netdam_wire_header, segment_index)] *
                                       (sizeof(struct netdam_wire_segment) + node)]) &
            NETDAM_OPF_MODIFIES) != 0;
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
           : strcmp(name, "write-chain-again-request") == 0 ? "write-chain-request"
           : strcmp(name, "transaction-again-request") == 0 ? "transaction-request"
                                                            : NULL;
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
    static uint8_t request[FRAME_BYTES];
    bool link = strcmp(entry->kind, "link") == 0;
    bool executed = !link && first == NULL && strcmp(entry->expected, "OK") == 0 &&
                    golden_load(golden_directory, entry->name, request, sizeof(request)) != 0 && may_store(request);
    const uint8_t *header;
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
    header = instance->frames[0] + golden_header_at(instance->frames[0]);
    got = link ? entry->expected : status_name(header[offsetof(struct netdam_wire_header, status)]);
    if (strcmp(got, entry->expected) != 0) {
        snprintf(text, sizeof(text), "answered %s, not %s", got, entry->expected);
        return text;
    }
    return strcmp(entry->answer, "-") == 0 || instance_sent(instance, entry->answer, 0) ? NULL : "another answer";
}

/* Starts the node, the next one, or the requester, whoever the frame is addressed to, and lets it have a golden frame. */
static bool play_frame(struct instance *instance, const char *name, const char *first)
{
    static uint8_t frame[FRAME_BYTES];
    size_t bytes = golden_load(golden_directory, name, frame, sizeof(frame));
    uint8_t to = bytes >= 6 && (frame[5] == 1 || frame[5] == 3) ? frame[5] : 2;

    instance->entropy = EPOCH;
    instance->first_number = 0;
    instance_start(instance, to);
    if (first != NULL) {
        bytes = golden_load(golden_directory, first, frame, sizeof(frame));
        instance_receive(instance, frame, bytes);
        instance->count = 0;
        memcpy(instance->before, instance->memory, MEMORY_BYTES);
        bytes = golden_load(golden_directory, name, frame, sizeof(frame));
    }
    if (bytes != 0) {
        instance_receive(instance, frame, bytes);
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

    snprintf(path, sizeof(path), "%s/manifest.txt", golden_directory);
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
    {"flag-reproducible-request", 0, 5, {0x61, 0x63, 0x65, 0x67, 4}},
    {"flag-reproducible-write-request", 0, 5, {'a', 'b', 'c', 'd', 4}},
    {"load-request", 0, 8, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"load-passed-on", 0, 9, {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 8}},
    {"load-reduce-request", 0x40, 8, {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47}},
    {"load-reduce-passed-on", 8, 8, {8, 9, 10, 11, 12, 13, 14, 15}},
    {"compare-passed-on", 0x10, 9, {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x18}},
    {"forward-passed-on", 0x18, 9, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 0x20}},
    {"write-chain-request", 0, 9, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 8}},
    {"write-chain-passed-on", 0, 9, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 8}},
    {"write-ipv4-form-request", 0, 9, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 8}},
    {"reduce-chain-ipv6-request", 0, 9, {0x61, 0x63, 0x65, 0x67, 0x69, 0x6b, 0x6d, 0x6f, 8}},
    {"reduce-chain-ipv6-passed-on", 0, 9, {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 8}},
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
        cmocka_unit_test(requester_sends_golden_chains),
        cmocka_unit_test(requester_asks_for_the_link_layer_address),
    };

    if (argc > 1) {
        golden_directory = argv[1];
    }
    return cmocka_run_group_tests_name("golden", tests, setup, teardown);
}
