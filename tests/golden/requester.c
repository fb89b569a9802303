/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester sends the golden requests, given descriptors that say the same. */
#include "instance.h"

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
    const uint8_t *header = frame + golden_header_at(frame);
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
                        ((flags & NETDAM_FLAG_UNRELIABLE) != 0 ? NETDAM_DESCRIPTOR_UNRELIABLE : 0u) |
                        ((flags & NETDAM_FLAG_REPRODUCIBLE) != 0 ? NETDAM_DESCRIPTOR_REPRODUCIBLE : 0u);
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
    size_t bytes = golden_load(golden_directory, name, frame, sizeof(frame));
    const uint8_t *header = frame + golden_header_at(frame);
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
    instance_start(instance, 1);
    if (ipv6) {
        address[0] = UINT64_C(0xfd00000000000000);
        address[1] = 2;
        address[2] = 6;
    }
    (void)instance_command(instance, NETDAM_ADMIN_NEIGHBOUR_SET, address, 4);
    address[2] |= NETDAM_UDP_PORT << 16;
    filler.peer = (uint32_t)instance_command(instance, NETDAM_ADMIN_PEER_OPEN, address, 3);
    (void)instance_command(instance, NETDAM_ADMIN_QUEUE_CREATE, queue, 8);
    describe(instance, frame, filler.peer, &descriptor);
    for (uint64_t i = 0; i < before; i++) {
        post(instance, &filler);
    }
    post(instance, &descriptor);

    run(instance, NOW_NS);
    if (opcode != NETDAM_OP_ECHO) {
        right = laneless || instance_sent(instance, ipv6 ? "confirm-first-ipv6-request" : "confirm-first-request", 0);
        /* The node answers with its generation. */
        bytes = golden_load(golden_directory, ipv6 ? "confirm-first-ipv6-answer" : "confirm-first-answer", stale,
                            sizeof(stale));
        instance->count = 0;
        instance_receive(instance, stale, bytes);
        run(instance, NOW_NS);
    }
    right = right && instance_sent(instance, name, instance->count - 1);
    if (again != NULL) {
        instance->count = 0;
        run(instance, NOW_NS + UINT64_C(1500000000));
        right = right && instance_sent(instance, again, instance->count - 1);
    }
    instance->ops->stop(instance->state, NOW_NS + UINT64_C(2000000000));
    return right;
}

void requester_sends_golden_requests(void **state)
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
        "flag-reproducible-request",
        "flag-reproducible-write-request",
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

/*
 * What software would post so that the golden chain results: payload, list and result one behind the other in `region`.
 */
static void describe_chain(struct instance *instance, const uint8_t *header, const uint32_t peers[2], uint32_t region,
                           struct netdam_descriptor *descriptor)
{
    size_t node = header[offsetof(struct netdam_wire_header, node_form)] == NETDAM_NODE_FORM_IPV6
                      ? sizeof(struct netdam_wire_node_ipv6)
                      : sizeof(struct netdam_wire_node_ipv4);
    const uint8_t *segment = header + sizeof(struct netdam_wire_header) + node;
    size_t payload_bytes = get_be(header + offsetof(struct netdam_wire_header, payload_length), 2);
    unsigned flags = (unsigned)get_be(header + offsetof(struct netdam_wire_header, flags), 2);
    bool loads = false, stores_last = false;

    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->opcode = NETDAM_OP_CHAIN;
    descriptor->list_count = header[offsetof(struct netdam_wire_header, segment_count)];
    descriptor->flags = (flags & NETDAM_FLAG_REPRODUCIBLE) != 0 ? NETDAM_DESCRIPTOR_REPRODUCIBLE : 0u;
    descriptor->remote_address = REGION_BYTES;
    for (unsigned i = 0; i < descriptor->list_count; i++, segment += sizeof(struct netdam_wire_segment) + node) {
        struct netdam_segment entry = {
            .opcode = segment[0],
            .operation = segment[1],
            .type = segment[2],
            .peer = peers[i],
            .key = get_be(segment + 8, 8),
            .address = get_be(segment + 16, 8),
        };

        if (entry.opcode != NETDAM_OP_FORWARD) {
            descriptor->length = (uint32_t)get_be(segment + 4, 4);
        }
        loads |= entry.opcode == NETDAM_OP_LOAD || entry.opcode == NETDAM_OP_LOAD_REDUCE;
        stores_last = (netdam_op_flags(entry.opcode) & NETDAM_OPF_MODIFIES) != 0;
        memcpy(instance->memory + REGIONS_BASE + REGION_BYTES + i * sizeof(entry), &entry, sizeof(entry));
    }
    descriptor->immediate = region;
    if (loads && !stores_last) {
        descriptor->peer = region;
        descriptor->u.buffer.result_address = 2 * REGION_BYTES;
    }
    /* A chain that begins with LOAD takes nothing along. */
    descriptor->local_region = payload_bytes == 0 && descriptor->length != 0 ? 0 : region;
    memcpy(instance->memory + REGIONS_BASE, segment, payload_bytes);
}

/*
 * Lets a requester send the golden chain `name`, whose number is 2 above the floor: two others are under way.
 * `again`: what it sends after a while without an answer, or NULL.
 */
static bool chain_is_sent(struct instance *instance, const char *name, const char *again)
{
    static const char *const answers[] = {"confirm-first-answer", "confirm-distance-answer"};
    static uint8_t frame[FRAME_BYTES], stale[FRAME_BYTES];
    size_t bytes = golden_load(golden_directory, name, frame, sizeof(frame));
    bool ipv6 = frame[12] == 0x86, right;
    const uint64_t queue[] = {SQ_BASE, RING_LOG2, CQ_BASE, RING_LOG2, 0, 0, (uint64_t)NETDAM_VECTOR_NONE << 16, 0};
    const uint64_t region[] = {REGIONS_BASE, 3 * REGION_BYTES, NETDAM_PERMISSION_ALL, 0, 0, 0};
    struct netdam_descriptor descriptor;
    uint32_t peers[2], index;

    assert_true(bytes != 0);
    instance->entropy = CONTEXT;
    instance->first_number = 5;
    instance_start(instance, 1);
    for (uint8_t i = 0; i < 2; i++) {
        uint64_t address[] = {ipv6 ? UINT64_C(0xfd00000000000000) : UINT64_C(0x0a000002) + i, ipv6 ? 2u + i : 0u,
                              (uint64_t)NETDAM_UDP_PORT << 16 | (ipv6 ? 6u : 4u)};

        instance_set_neighbour(instance, (uint8_t)(2 + i), ipv6 ? 6 : 4);
        instance->entropy++; /* contexts of their own */
        peers[i] = (uint32_t)instance_command(instance, NETDAM_ADMIN_PEER_OPEN, address, 3);
    }
    (void)instance_command(instance, NETDAM_ADMIN_QUEUE_CREATE, queue, 8);
    index = (uint32_t)instance_command(instance, NETDAM_ADMIN_REGION_CREATE, region, 6);
    describe_chain(instance, frame + golden_header_at(frame), peers, index, &descriptor);
    for (unsigned i = 0; i < 3; i++) {
        post(instance, &descriptor);
    }
    run(instance, NOW_NS);
    right =
        ipv6 || descriptor.list_count == 1 || instance_sent(instance, "confirm-distance-request", instance->count - 1);
    for (unsigned i = 0; descriptor.length != 0 && i < descriptor.list_count; i++) {
        bytes = golden_load(golden_directory, answers[i], stale, sizeof(stale));
        instance_receive(instance, stale, bytes);
    }
    run(instance, NOW_NS);
    right = right && instance_sent(instance, name, instance->count - 1);
    if (again != NULL) {
        instance->count = 0;
        run(instance, NOW_NS + UINT64_C(1500000000));
        right = right && instance_sent(instance, again, instance->count - 1);
    }
    instance->ops->stop(instance->state, NOW_NS + UINT64_C(2000000000));
    return right;
}

void requester_sends_golden_chains(void **state)
{
    struct instance *instance = *state;
    static const char *const requests[] = {
        "load-request",        "load-reduce-request",     "compare-request",           "compare-failed-request",
        "forward-request",     "forward-one-request",     "load-one-request",          "load-reduce-float-request",
        "write-chain-request", "write-ipv4-form-request", "reduce-chain-ipv6-request",
    };
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        wrong += !chain_is_sent(instance, requests[i], NULL);
    }
    wrong += !chain_is_sent(instance, "write-chain-request", "write-chain-again-request");
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
    instance_start(instance, 1);
    descriptor.peer =
        (uint32_t)instance_command(instance, NETDAM_ADMIN_PEER_OPEN, ipv6 ? ipv6_address : ipv4_address, 3);
    (void)instance_command(instance, NETDAM_ADMIN_QUEUE_CREATE, queue, 8);
    post(instance, &descriptor);
    run(instance, NOW_NS);
    right = instance->count == 1 && instance_sent(instance, ipv6 ? "solicitation" : "arp", 0);
    bytes = golden_load(golden_directory, ipv6 ? "advertisement" : "arp-reply", frame, sizeof(frame));
    instance->count = 0;
    instance_receive(instance, frame, bytes);
    run(instance, NOW_NS + UINT64_C(2000000000));
    right = right && instance_sent(instance, ipv6 ? "confirm-first-ipv6-request" : "confirm-first-request", 0);
    instance->ops->stop(instance->state, NOW_NS + UINT64_C(2000000000));
    return right;
}

void requester_asks_for_the_link_layer_address(void **state)
{
    assert_true(node_is_found(*state, false));
    assert_true(node_is_found(*state, true));
}
