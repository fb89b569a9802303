/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames: decoder, encoder and node against every golden packet, cut anywhere, with any bit turned over. */
#include "bench.h"

#include "golden.h"

/* From the top folder, where tests are run. */
#define UNIT_GOLDEN "tests/golden"

#define REGION2 UINT64_C(0x6b6579012345678a)
#define REGION3 UINT64_C(0x6b6579012345678b)
#define LOCAL   UINT64_C(0x20000)

static struct {
    struct golden_entry entry;
    uint8_t frame[2048];
    size_t bytes;
} packets[512];
static unsigned packet_count;

static int load(void **state)
{
    FILE *manifest = fopen(UNIT_GOLDEN "/manifest.txt", "r");
    struct golden_entry entry;
    int more;

    (void)state;
    if (manifest == NULL) {
        fprintf(stderr, "# %s is missing: run in the top folder\n", UNIT_GOLDEN);
        return -1;
    }
    while ((more = golden_next(manifest, &entry)) == 1 && packet_count < ARRAY_SIZE(packets)) {
        packets[packet_count].entry = entry;
        packets[packet_count].bytes = golden_load(UNIT_GOLDEN, entry.name, packets[packet_count].frame, 2048);
        if (packets[packet_count].bytes == 0) {
            fprintf(stderr, "# %s cannot be read\n", entry.name);
            return -1;
        }
        packet_count++;
    }
    fclose(manifest);
    return more == 0 && packet_count > 100 ? 0 : -1;
}

static unsigned find(const char *name)
{
    for (unsigned i = 0; i < packet_count; i++) {
        if (strcmp(packets[i].entry.name, name) == 0) {
            return i;
        }
    }
    fail_msg("no golden packet %s", name);
    abort();
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), e = strlen(end);

    return n >= e && strcmp(name + n - e, end) == 0;
}

static int status_value(const char *name)
{
#define STATUS_NAME(name_, value, class_, text)                                                                        \
    if (strcmp(name, #name_) == 0) {                                                                                   \
        return value;                                                                                                  \
    }
    NETDAM_STATUS_LIST(STATUS_NAME)
    return -1;
}

static int counter_index(const char *name)
{
#define COUNTER_NAME(name_, text)                                                                                      \
    if (strcmp(name, #name_) == 0) {                                                                                   \
        return NETDAM_COUNTER_##name_;                                                                                 \
    }
    NETDAM_COUNTER_LIST(COUNTER_NAME)
    return -1;
}

/* Offset of the NetDAM header in a golden frame. */
static size_t datagram_at(const uint8_t *frame)
{
    return frame[12] == 0x86 ? 62 : 42;
}

static uint64_t read_be(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* The node's generation, as the answer to the first question names it. */
static uint64_t node_generation(void)
{
    const unsigned i = find("confirm-first-answer");

    return read_be(packets[i].frame + 42 + 32 + 8, 8);
}

static uint64_t requester_generation(void)
{
    const unsigned i = find("write-request");

    return read_be(packets[i].frame + 42 + 32 + 24, 8);
}

/* The node of the manifest (index 1), the next of a chain (2), or the requester (0). */
static void start(struct unit *u, unsigned index)
{
    struct netdam_fw_config config = unit_config(index);

    config.memory_bytes = 0x8000;
    config.lanes = 4;
    config.lane_windows = 2;
    config.operations = 8;
    config.peers = 2;
    config.paths = 1; /* what is written down comes from one port */
    unit_start(u, index, &config);
    unit_region(u, 0x1000, 4096, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_region(u, 0x2000, 4096, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE, REGION2);
    for (unsigned i = 0; i < 4096; i++) {
        u->node.memory[0x1000 + i] = (uint8_t)i;
    }
    unit_region(u, 0x3000, 4096, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_ALU, REGION3);
    for (uint64_t i = 0; i < 2; i++) { /* the second has no receive buffer */
        const uint64_t rings = 0x4000 + 0x1000 * i,
                       args[] = {rings, 1, rings + 0x200, 2, rings + 0x400, 1, 0xffffu << 16};
        struct netdam_ring *rq = (struct netdam_ring *)(void *)(u->node.memory + rings + 0x400);
        struct netdam_descriptor buffer = {.length = 64, .local_region = unit_region(u, 0x6000, 64, 2, 0)};

        assert_int_equal(unit_admin(u, NETDAM_ADMIN_QUEUE_CREATE, args, 7, NULL), NETDAM_ADMIN_STATUS_OK);
        u->fw->queues[i].receive_key = UINT64_C(0x7265637601234567) + i;
        memcpy(rq + 1, &buffer, sizeof(buffer));
        rq->producer = i == 0;
    }
    for (uint64_t i = 1; i <= 3; i++) {
        const uint64_t ipv4[] = {0x0a000000 + i, 0, 4, UINT64_C(0x020000000000) + i},
                       ipv6[] = {UINT64_C(0xfd) << 56, i, 6, UINT64_C(0x020000000000) + i};

        assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, ipv4, 4, NULL), NETDAM_ADMIN_STATUS_OK);
        assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, ipv6, 4, NULL), NETDAM_ADMIN_STATUS_OK);
    }
    u->fw->regions[0].queue = 1;
    u->fw->generation = node_generation();
}

/* Starts again in the same memory, which is quicker than start. */
static void restart(struct unit *u)
{
    unsigned index = u->node.index;

    unit_stop(u);
    start(u, index);
}

/* Where one request follows another, the name of the other. */
static const char *request_before(const char *name)
{
    return strcmp(name, "write-again-request") == 0         ? "write-request"
           : strcmp(name, "send-again-request") == 0        ? "send-request"
           : strcmp(name, "transaction-again-request") == 0 ? "transaction-request"
           : strcmp(name, "write-chain-again-request") == 0 ? "write-chain-request"
                                                            : NULL;
}

static void a_node_answers_every_golden_request_byte_for_byte(void **state)
{
    struct unit u;
    unsigned answered = 0;

    (void)state;
    for (unsigned i = 0; i < packet_count; i++) {
        const struct golden_entry *e = &packets[i].entry;
        bool passed_on = strcmp(e->kind, "passed-on") == 0;
        const char *before = request_before(e->name);
        const uint8_t *sent;
        size_t bytes;

        if (!passed_on && (strcmp(e->kind, "malformed") == 0 || !ends_with(e->name, "-request") ||
                           strcmp(e->kind, "dropped") == 0 || strcmp(e->kind, "silent") == 0)) {
            continue;
        }
        start(&u, passed_on ? 2 : 1);
        if (before != NULL) {
            unsigned first = find(before);

            unit_receive(&u, packets[first].frame, packets[first].bytes);
            unit_drop_sent(&u);
        }
        unit_receive(&u, packets[i].frame, packets[i].bytes);
        sent = unit_sent_frame(&u, &bytes);
        if (sent == NULL) {
            fail_msg("%s: no answer", e->name);
            return;
        }
        if (sent[datagram_at(sent) + 7] != status_value(e->expected)) {
            fail_msg("%s: status %#x, expected %s", e->name, sent[datagram_at(sent) + 7], e->expected);
        }
        if (strcmp(e->answer, "-") != 0) {
            unsigned a = find(e->answer);

            if (bytes != packets[a].bytes || memcmp(sent, packets[a].frame, bytes) != 0) {
                for (size_t k = 0; k < bytes && k < packets[a].bytes; k++) {
                    if (sent[k] != packets[a].frame[k]) {
                        fail_msg("%s: answer differs from %s at byte %zu: %#x, expected %#x", e->name, e->answer, k,
                                 sent[k], packets[a].frame[k]);
                    }
                }
                fail_msg("%s: answer has %zu bytes, expected %zu", e->name, bytes, packets[a].bytes);
            }
            answered++;
        }
        unit_expect_silence(&u);
        unit_stop(&u);
    }
    assert_true(answered > 50);
}

static void what_is_malformed_or_late_is_counted_and_dropped(void **state)
{
    struct unit u;
    unsigned tried = 0;

    (void)state;
    for (unsigned i = 0; i < packet_count; i++) {
        const struct golden_entry *e = &packets[i].entry;
        static uint8_t before[0x8000];
        uint64_t counters[NETDAM_COUNTER_COUNT];
        int counter = counter_index(e->expected);

        if (strcmp(e->kind, "malformed") != 0 && strcmp(e->kind, "dropped") != 0) {
            continue;
        }
        assert_true(counter >= 0);
        start(&u, strncmp(e->name, "response-", 9) == 0 ? 0 : 1);
        memcpy(before, u.node.memory, sizeof(before));
        memcpy(counters, u.fw->counters, sizeof(counters));
        unit_receive(&u, packets[i].frame, packets[i].bytes);
        unit_expect_silence(&u);
        assert_memory_equal(before, u.node.memory, sizeof(before));
        for (int c = 0; c < NETDAM_COUNTER_COUNT; c++) { /* that one, and no other */
            uint64_t by = c == NETDAM_COUNTER_RX_FRAMES || c == counter ? 1
                          : c == NETDAM_COUNTER_RX_BYTES                ? packets[i].bytes
                                                                        : 0;

            if (u.fw->counters[c] != counters[c] + by) {
                fail_msg("%s: counter %d", e->name, c);
            }
        }
        unit_stop(&u);
        tried++;
    }
    assert_true(tried > 30);
}

static void what_wants_no_answer_gets_none(void **state)
{
    struct unit u;
    unsigned tried = 0;

    (void)state;
    for (unsigned i = 0; i < packet_count; i++) {
        int counter = counter_index(packets[i].entry.expected);

        if (strcmp(packets[i].entry.kind, "silent") != 0) {
            continue;
        }
        start(&u, 1);
        assert_true(counter >= 0);
        unit_receive(&u, packets[i].frame, packets[i].bytes);
        unit_expect_silence(&u);
        assert_int_equal(u.fw->counters[counter], 1);
        unit_stop(&u);
        tried++;
    }
    assert_true(tried > 0);
}

static void every_golden_answer_is_accepted_as_a_response(void **state)
{
    struct unit u;
    unsigned tried = 0;

    (void)state;
    start(&u, 0);
    for (unsigned i = 0; i < packet_count; i++) {
        const struct golden_entry *e = &packets[i].entry;
        size_t at = datagram_at(packets[i].frame);
        struct ndfw_packet packet;
        enum netdam_counter counter = NETDAM_COUNTER_COUNT;
        uint64_t unmatched = u.fw->counters[NETDAM_COUNTER_RESPONSES_UNMATCHED];

        if (strcmp(e->kind, "encode") != 0 || !ends_with(e->name, "-answer")) {
            continue;
        }
        assert_int_equal(ndfw_decode(u.fw, packets[i].frame + at, packets[i].bytes - at, &packet, &counter),
                         NDFW_DECODED_OK);
        assert_int_equal(packet.kind, NETDAM_KIND_RESPONSE);
        assert_int_equal(packet.status, status_value(e->expected));
        assert_true(packet.context == UNIT_CONTEXT);
        assert_int_equal(packet.opcode, packets[i].frame[at + 32]);
        assert_int_equal(packet.operation, packets[i].frame[at + 33]);
        assert_int_equal(packet.type, packets[i].frame[at + 34]);
        assert_int_equal(packet.hop, packets[i].frame[at + 35]);
        assert_int_equal(packet.length, read_be(packets[i].frame + at + 36, 4));
        assert_true(packet.generation == read_be(packets[i].frame + at + 40, 8));
        assert_true(packet.echo == read_be(packets[i].frame + at + 48, 8));
        assert_true(packet.floor == read_be(packets[i].frame + at + 56, 6));
        unit_receive(&u, packets[i].frame, packets[i].bytes);
        assert_true(u.fw->counters[NETDAM_COUNTER_RESPONSES_UNMATCHED] == unmatched + 1);
        unit_expect_silence(&u);
        tried++;
    }
    assert_true(tried > 40);
    unit_stop(&u);
}

/* A context as in the golden packets, with the next number and the floor as wanted. */
static void set_peer(struct unit *u, uint32_t index, uint64_t generation, uint64_t floor, uint64_t next)
{
    struct ndfw_peer *peer = &u->fw->peers[index];

    peer->context = UNIT_CONTEXT;
    peer->generation = generation;
    peer->lane.floor = floor;
    peer->lane.next = next;
    peer->laneless.floor = peer->laneless.next = next;
    peer->confirmed = floor;
    /* Whatever lies between floor and next is under way for ever. */
    for (uint64_t n = floor; n < next; n++) {
        ndfw_flight_at(u->fw, &peer->lane, n)->state = NDFW_FLIGHT_SENT;
        ndfw_flight_at(u->fw, &peer->lane, n)->sent_ns = u->now_ns;
    }
    ndfw_peer_index(u->fw);
}

/* For each executed opcode the requester builds the golden request from a descriptor that says the same. */
static void the_requester_builds_every_golden_request_byte_for_byte(void **state)
{
    struct unit u;
    unsigned built = 0;

    (void)state;
    for (unsigned i = 0; i < packet_count; i++) {
        const struct golden_entry *e = &packets[i].entry;
        const uint8_t *header = packets[i].frame + datagram_at(packets[i].frame);
        unsigned flags = (unsigned)read_be(header + 2, 2);
        const uint8_t *segment = header + ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? 40 : 32);
        unsigned family = datagram_at(packets[i].frame) == 62 ? 6 : 4;
        struct netdam_descriptor d = {
            .opcode = segment[0],
            .operation = segment[1],
            .type = segment[2],
            .length = (uint32_t)read_be(segment + 4, 4),
            .remote_key = read_be(segment + 8, 8),
            .remote_address = read_be(segment + 16, 8),
            .immediate = (flags & NETDAM_FLAG_IMMEDIATE) != 0 ? (uint32_t)read_be(header + 36, 4) : 0,
            .flags = ((flags & NETDAM_FLAG_IMMEDIATE) != 0 ? NETDAM_DESCRIPTOR_IMMEDIATE : 0u) |
                     ((flags & NETDAM_FLAG_RELAXED) != 0 ? NETDAM_DESCRIPTOR_RELAXED : 0u) |
                     ((flags & NETDAM_FLAG_ORDERED) != 0 ? NETDAM_DESCRIPTOR_ORDERED : 0u) |
                     ((flags & NETDAM_FLAG_UNRELIABLE) != 0 ? NETDAM_DESCRIPTOR_UNRELIABLE : 0u) |
                     ((flags & NETDAM_FLAG_REPRODUCIBLE) != 0 ? NETDAM_DESCRIPTOR_REPRODUCIBLE : 0u),
        };
        bool atomic = (netdam_op_flags(d.opcode) & NETDAM_OPF_ATOMIC) != 0;
        uint64_t number = read_be(header + 16, 6), distance = read_be(header + 22, 2);
        uint64_t generation = d.opcode == NETDAM_OP_ECHO ? requester_generation() : read_be(segment + 24, 8);
        struct netdam_fw_config config = unit_config(0);
        struct ndtest_queue queue;
        const uint8_t *sent;
        uint32_t peer;
        size_t bytes;

        if ((strcmp(e->kind, "encode") != 0 && strcmp(e->kind, "silent") != 0) || !ends_with(e->name, "-request") ||
            header[6] != NETDAM_NODE_FORM_IMPLICIT) {
            continue;
        }
        config.paths = 1;
        unit_start(&u, 0, &config);
        unit_queue(&u, &queue, 0x1000, 2);
        peer = unit_peer(&u, family, 0);
        set_peer(&u, peer, generation, number - distance, number);
        if (d.opcode == NETDAM_OP_CONFIRM) {
            assert_true(
                ndfw_send_confirm(u.fw, &u.fw->peers[peer], &u.fw->peers[peer], (&u.fw->peers[peer])->generation, 0));
        } else {
            d.peer = peer;
            if (atomic) {
                memcpy(&d.u.operand[0], segment + 32, d.length);
                memcpy(&d.u.operand[1], segment + 32 + d.length, d.opcode == NETDAM_OP_CAS ? d.length : 0);
            } else {
                d.local_region = unit_region(&u, LOCAL, 0x1000, NETDAM_PERMISSION_ALL, 0);
                memcpy(u.node.memory + LOCAL, segment + 32, read_be(header + 24, 2));
            }
            unit_post(&u, &queue, &d);
            unit_run(&u);
        }
        if (ends_with(e->name, "-again-request")) {
            unit_drop_sent(&u);
            unit_advance(&u, 50 * UNIT_MS);
            u.fw->peers[peer].lane.floor = number; /* only this one expires */
            u.fw->peers[peer].lane.deadline_ns = 0;
            ndfw_peer_timer(u.fw, &u.fw->peers[peer]);
            u.fw->peers[peer].lane.floor = number - distance;
            unit_run(&u);
            while (u.count > 1) { /* those under way for ever */
                (void)unit_sent_frame(&u, &bytes);
            }
        }
        if (d.remote_address > UINT64_MAX - d.length) { /* what can only be refused does not leave the house */
            unit_expect_completion(&queue, 0, NETDAM_STATUS_BAD_RANGE);
            unit_expect_silence(&u);
            unit_stop(&u);
            continue;
        }
        if (!ndfw_flags_suit(flags, d.opcode, d.operation, d.type)) {
            unit_expect_completion(&queue, 0, NETDAM_STATUS_LOCAL_DESCRIPTOR);
            unit_expect_silence(&u);
            unit_stop(&u);
            continue;
        }
        sent = unit_sent_frame(&u, &bytes);
        if (generation == 0 && sent != NULL && d.opcode != NETDAM_OP_CONFIRM) { /* it asks before it sends that */
            assert_int_equal(sent[datagram_at(sent) + 32], NETDAM_OP_CONFIRM);
            unit_stop(&u);
            continue;
        }
        if (sent == NULL) {
            fail_msg("%s: nothing sent", e->name);
            return;
        }
        if (bytes != packets[i].bytes || memcmp(sent, packets[i].frame, bytes) != 0) {
            size_t k = 0;

            while (k < bytes && k < packets[i].bytes && sent[k] == packets[i].frame[k]) {
                k++;
            }
            fail_msg("%s: differs at byte %zu of %zu, expected %zu", e->name, k, bytes, packets[i].bytes);
        }
        unit_stop(&u);
        built++;
    }
    assert_true(built >= 20);
}

/* Fails if memory is neither as before nor as the whole frame would leave it. */
static void truncated_frames_do_nothing(void **state)
{
    struct unit u;

    (void)state;
    start(&u, 1);
    for (unsigned i = 0; i < packet_count; i++) {
        static uint8_t before[0x8000];
        size_t datagram = datagram_at(packets[i].frame);

        memcpy(before, u.node.memory, sizeof(before));
        for (size_t bytes = 0; bytes < packets[i].bytes; bytes++) {
            struct ndfw_packet packet;
            enum netdam_counter counter = NETDAM_COUNTER_COUNT;

            unit_receive(&u, packets[i].frame, bytes);
            assert_int_equal(u.count, 0);
            /* And where IP and UDP lengths have been cut as well, so that NetDAM's own lengths must notice. */
            if (bytes > datagram && strcmp(packets[i].entry.kind, "malformed") != 0) {
                uint8_t *exact = malloc(bytes - datagram);

                memcpy(exact, packets[i].frame + datagram, bytes - datagram);
                if (ndfw_decode(u.fw, exact, bytes - datagram, &packet, &counter) == NDFW_DECODED_OK) {
                    fail_msg("%s cut to %zu bytes is accepted", packets[i].entry.name, bytes);
                }
                free(exact);
            }
        }
        assert_memory_equal(before, u.node.memory, sizeof(before));
    }
    assert_int_equal(u.fw->counters[NETDAM_COUNTER_REQUESTS_EXECUTED], 0);
    unit_stop(&u);
}

static void up_to_thirty_two_segments_are_understood(void **state)
{
    static uint8_t datagram[32 + 8 + 40 * 40];
    struct unit u;

    (void)state;
    start(&u, 1);
    for (unsigned count = 0; count <= 40; count++) {
        for (unsigned index = 0; index <= count; index += count > 1 ? count - 1 : 1) {
            size_t bytes = 32 + 8 + 40 * count;
            struct ndfw_packet packet;
            enum netdam_counter counter = NETDAM_COUNTER_COUNT;
            bool good = count >= 1 && count <= NETDAM_SEGMENTS_MAX && index < count;
            netdam_be32 crc;

            memset(datagram, 0, sizeof(datagram));
            datagram[0] = 1;
            datagram[1] = NETDAM_KIND_REQUEST;
            datagram[4] = (uint8_t)count;
            datagram[5] = (uint8_t)index;
            datagram[6] = NETDAM_NODE_FORM_IPV4;
            unit_put16(datagram + 26, (unsigned)bytes);
            crc = netdam_be32_make(ndtest_crc32c(0, datagram, bytes));
            memcpy(datagram + 28, &crc, 4);
            assert_int_equal(ndfw_decode(u.fw, datagram, bytes, &packet, &counter),
                             good ? NDFW_DECODED_OK : NDFW_DECODED_REFUSE);
            assert_int_equal(packet.status, good ? 0 : NETDAM_STATUS_BAD_SEGMENTS);
        }
    }
    unit_stop(&u);
}

static void longer_frames_are_padding_to_ethernet_and_an_error_to_udp(void **state)
{
    struct unit u;
    unsigned i = find("read-request");
    uint8_t frame[256];

    (void)state;
    for (size_t extra = 1; extra < 40; extra++) {
        start(&u, 1);
        memcpy(frame, packets[i].frame, packets[i].bytes);
        memset(frame + packets[i].bytes, 0xee, extra);
        unit_receive(&u, frame, packets[i].bytes + extra);
        assert_int_equal(u.count, 1);
        unit_drop_sent(&u);
        unit_put16(frame + 16, (unsigned)(packets[i].bytes - 14 + extra));
        unit_put16(frame + 38, (unsigned)(packets[i].bytes - 34 + extra));
        unit_put16(frame + 24, 0);
        {
            uint32_t sum = 0;

            for (size_t k = 14; k < 34; k += 2) {
                sum += (uint32_t)frame[k] << 8 | frame[k + 1];
            }
            unit_put16(frame + 24, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
        }
        unit_receive(&u, frame, packets[i].bytes + extra);
        assert_int_equal(u.count, 0);
        assert_int_equal(u.fw->counters[NETDAM_COUNTER_RX_MALFORMED], 1);
        unit_stop(&u);
    }
}

/* In the datagram one bit more or less is always noticed, save in a payload that carries no CRC. */
static void a_flipped_bit_in_the_datagram_is_never_accepted(void **state)
{
    struct unit u;
    unsigned flips = 0;

    (void)state;
    start(&u, 1);
    for (unsigned i = 0; i < packet_count; i++) {
        size_t at = datagram_at(packets[i].frame), bytes = packets[i].bytes - at, protected;
        uint8_t *datagram;

        if (strcmp(packets[i].entry.kind, "malformed") == 0 || strcmp(packets[i].entry.kind, "link") == 0) {
            continue;
        }
        datagram = malloc(bytes);
        memcpy(datagram, packets[i].frame + at, bytes);
        protected = (datagram[3] & NETDAM_FLAG_PAYLOAD_CRC) != 0 ? bytes : read_be(datagram + 26, 2);
        for (size_t bit = 0; bit < 8 * protected; bit++, flips++) {
            struct ndfw_packet packet;
            enum netdam_counter counter = NETDAM_COUNTER_COUNT;

            datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
            /* Not even refused: a good copy may be on its way. Except a refusal that comes before the payload CRC. */
            if (ndfw_decode(u.fw, datagram, bytes, &packet, &counter) == NDFW_DECODED_OK ||
                (bit / 8 < read_be(packets[i].frame + at + 26, 2) && counter == NETDAM_COUNTER_COUNT)) {
                fail_msg("%s: bit %zu of the datagram", packets[i].entry.name, bit);
            }
            datagram[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(datagram);
    }
    assert_true(flips > 50000);
    unit_stop(&u);
}

/* In the whole frame: whatever is executed is what the unharmed frame would have done. */
static void a_flipped_bit_anywhere_never_changes_what_is_executed(void **state)
{
    static const char *const names[] = {"write-request", "reduce-request",     "fetch-add-request", "cas-request",
                                        "read-request",  "write-ipv6-request", "write-odd-request", "echo-request"};
    static uint8_t before[0x8000], after[0x8000];
    struct unit u;
    unsigned executed = 0;

    (void)state;
    start(&u, 1);
    for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
        unsigned i = find(names[n]);
        uint8_t frame[2048];

        restart(&u);
        memcpy(before, u.node.memory, sizeof(before));
        unit_receive(&u, packets[i].frame, packets[i].bytes);
        assert_int_equal(u.fw->counters[NETDAM_COUNTER_REQUESTS_EXECUTED], 1);
        memcpy(after, u.node.memory, sizeof(after));
        memcpy(frame, packets[i].frame, packets[i].bytes);
        for (size_t bit = 0; bit < 8 * packets[i].bytes; bit++) {
            memcpy(u.node.memory, before, sizeof(before));
            u.fw->counters[NETDAM_COUNTER_REQUESTS_EXECUTED] = 0;
            u.fw->counters[NETDAM_COUNTER_REQUESTS_REFUSED] = 0;
            ndfw_lane_start(u.fw); /* as if nothing had come before */
            u.fw->generation = node_generation();
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            unit_receive(&u, frame, packets[i].bytes);
            frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(u.fw->counters[NETDAM_COUNTER_REQUESTS_REFUSED], 0);
            if (u.fw->counters[NETDAM_COUNTER_REQUESTS_EXECUTED] != 0) {
                executed++; /* who sent it, and what routers set, is not protected and does not matter */
                assert_true(bit / 8 < datagram_at(frame));
                assert_memory_equal(u.node.memory, after, sizeof(after));
            } else {
                assert_memory_equal(u.node.memory, before, sizeof(before));
            }
            unit_drop_sent(&u);
        }
    }
    assert_true(executed > 0);
    unit_stop(&u);
}

static void random_bytes_behind_good_headers_do_nothing(void **state)
{
    struct ndtest_random random = {31};
    unsigned i = find("write-request");
    struct unit u;
    uint8_t frame[2048];

    (void)state;
    start(&u, 1);
    for (unsigned n = 0; n < 20000; n++) {
        size_t bytes = 42 + ndtest_random_below(&random, 200);

        memcpy(frame, packets[i].frame, 42);
        ndtest_random_fill(&random, frame + 42, bytes - 42);
        if (n % 2 == 0 && bytes >= 42 + 32) { /* plausible lengths, rightly sealed: only the content is nonsense */
            frame[42] = 1;
            frame[43] = 1;
            unit_put16(frame + 42 + 26, (unsigned)(32 + ndtest_random_below(&random, bytes - 42 - 31)));
        }
        unit_put16(frame + 16, (unsigned)(bytes - 14));
        unit_put16(frame + 38, (unsigned)(bytes - 34));
        ndtest_frame_repair(frame, bytes, false);
        unit_receive(&u, frame, bytes);
        unit_drop_sent(&u);
    }
    assert_int_equal(u.fw->counters[NETDAM_COUNTER_REQUESTS_EXECUTED], 0);
    for (unsigned k = 0; k < 4096; k++) {
        assert_int_equal(u.node.memory[0x1000 + k], (uint8_t)k);
    }
    assert_true(u.fw->counters[NETDAM_COUNTER_RX_MALFORMED] > 0);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_answers_every_golden_request_byte_for_byte),
        cmocka_unit_test(what_is_malformed_or_late_is_counted_and_dropped),
        cmocka_unit_test(what_wants_no_answer_gets_none),
        cmocka_unit_test(every_golden_answer_is_accepted_as_a_response),
        cmocka_unit_test(the_requester_builds_every_golden_request_byte_for_byte),
        cmocka_unit_test(truncated_frames_do_nothing),
        cmocka_unit_test(up_to_thirty_two_segments_are_understood),
        cmocka_unit_test(longer_frames_are_padding_to_ethernet_and_an_error_to_udp),
        cmocka_unit_test(a_flipped_bit_in_the_datagram_is_never_accepted),
        cmocka_unit_test(a_flipped_bit_anywhere_never_changes_what_is_executed),
        cmocka_unit_test(random_bytes_behind_good_headers_do_nothing),
    };

    return cmocka_run_group_tests_name("frame", tests, load, NULL);
}
