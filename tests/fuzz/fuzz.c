/* SPDX-License-Identifier: BSD-3-Clause */
/* The device under the fuzz targets: small tables, small memory, and a judge of every access that it makes. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

void fuzz_fail(const char *text, uint64_t a, uint64_t b)
{
    fprintf(stderr, "fuzz: %s (%llu, %llu)\n", text, (unsigned long long)a, (unsigned long long)b);
    abort();
}

static uint8_t *fuzz_begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct fuzz_device *device = opaque;

    (void)node;
    if (device->port_full != 0) {
        device->port_full--;
        return NULL;
    }
    if (bytes > NETDAM_ETHERNET_BYTES + 1500) {
        fuzz_fail("a frame beyond the MTU", bytes, 0);
    }
    return device->outgoing;
}

static void fuzz_end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct fuzz_device *device = opaque;
    struct ndtest_packet packet;

    (void)node;
    if (!ndtest_packet_read(device->outgoing, bytes, NETDAM_UDP_PORT, &packet) || packet.kind != NETDAM_KIND_REQUEST) {
        return;
    }
    memcpy(device->frames[device->frame_count % FUZZ_FRAMES], device->outgoing, bytes);
    device->frame_bytes[device->frame_count % FUZZ_FRAMES] = bytes;
    device->frame_count++;
}

static void fuzz_entropy(void *opaque, struct ndtest_node *node, void *buffer, size_t bytes)
{
    struct fuzz_device *device = opaque;

    /* First the generation that the golden packets name, then anything. */
    if (device->entropy_draws++ == 0) {
        uint64_t epoch = FUZZ_EPOCH;

        memset(buffer, 0, bytes);
        memcpy(buffer, &epoch, bytes < 8 ? bytes : 8);
        return;
    }
    if (device->admin_running && bytes == 8) {
        uint64_t key = FUZZ_KEY_RECEIVE + device->receive_keys++;

        memcpy(buffer, &key, sizeof(key));
        return;
    }
    ndtest_random_fill(&node->entropy, buffer, bytes);
}

static void change_incoming(struct fuzz_device *device)
{
    for (size_t i = 0; i < device->incoming_bytes; i++) {
        device->incoming[i] = (uint8_t)(device->incoming[i] * 5 + 0x5a);
    }
}

static void fuzz_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                        enum netdam_fw_access access)
{
    struct fuzz_device *device = opaque;

    change_incoming(device);
    /* An entry of a completion ring is stored, then the ring's index: now it is there, and nobody has changed it. */
    if (device->entry != 0) {
        device->entry_receives =
            (node->memory[device->entry + offsetof(struct netdam_completion, flags)] & NETDAM_COMPLETION_RECEIVE) != 0;
        device->entry = 0;
    }
    if (access == NETDAM_FW_ACCESS_WRITE && bytes == sizeof(struct netdam_completion) &&
        offset <= node->config.memory_bytes - bytes) {
        device->entry = offset;
    }
    if (device->poke_bytes != 0 && device->poke_after-- == 0) {
        memcpy(node->memory + device->poke_offset, device->poke, device->poke_bytes);
        device->poke_bytes = 0;
    }
    if (offset > node->config.memory_bytes || bytes > node->config.memory_bytes - offset) {
        fuzz_fail("access outside on-board memory", offset, bytes);
    }
    if (bytes == 0 || device->admin_running) {
        return;
    }
    if (device->permits != NULL && !device->permits(offset, bytes)) {
        fuzz_fail("access for somebody who has proved nothing", offset, bytes);
    }
    for (unsigned i = 0; i < FUZZ_RANGES; i++) {
        const struct fuzz_range *range = &device->ranges[i];

        if (range->in_use && offset >= range->base && offset + bytes <= range->base + range->bytes) {
            return;
        }
    }
    fuzz_fail("access to memory that is neither region nor ring", offset, bytes);
}

static void fuzz_trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                       uint64_t c)
{
    struct fuzz_device *device = opaque;

    (void)node;
    (void)b;
    (void)c;
    change_incoming(device);
    device->generation = event == NETDAM_FW_TRACE_GENERATION ? a : device->generation;
    device->receives += event == NETDAM_FW_TRACE_COMPLETION && device->entry_receives;
}

void fuzz_put_list(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, unsigned count,
                   uint32_t region, uint64_t address)
{
    struct netdam_list_entry entries[8] = {0};
    uint32_t left = d->length;

    count = count < 8 ? count : 8;
    for (unsigned i = 0; i < count; i++) {
        entries[i].local_region = region;
        entries[i].length = i + 1 == count ? left : left / 2;
        entries[i].local_address = address + 128 * i;
        left -= entries[i].length;
    }
    d->list_count = (uint8_t)count;
    memcpy(device->node.memory + offset, entries, sizeof(entries));
}

static void add_range(struct fuzz_device *device, uint32_t kind, uint32_t index, uint64_t base, uint64_t bytes)
{
    if (base > FUZZ_MEMORY_BYTES || bytes > FUZZ_MEMORY_BYTES - base) {
        fuzz_fail("a region or ring outside on-board memory was accepted", base, bytes);
    }
    for (unsigned i = 0; i < FUZZ_RANGES; i++) {
        if (!device->ranges[i].in_use) {
            device->ranges[i] = (struct fuzz_range){base, bytes, kind, index, true};
            return;
        }
    }
    fuzz_fail("more regions and rings than were configured", index, kind);
}

static void drop_ranges(struct fuzz_device *device, uint32_t kind, uint32_t index)
{
    for (unsigned i = 0; i < FUZZ_RANGES; i++) {
        if (device->ranges[i].kind == kind && device->ranges[i].index == index) {
            device->ranges[i].in_use = false;
        }
    }
}

/* What a command that was executed means for the ranges. */
static void observe_admin(struct fuzz_device *device)
{
    struct ndtest_node *node = &device->node;
    uint64_t args[NETDAM_ADMIN_ARGS];
    uint32_t result = (uint32_t)ndtest_node_register(node, NETDAM_REG_ADMIN_RESULT0);

    if (ndtest_node_register(node, NETDAM_REG_ADMIN_STATUS) != NETDAM_ADMIN_STATUS_OK) {
        return;
    }
    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        args[i] = node->ops->register_read(node->state, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8);
    }
    switch (ndtest_node_register(node, NETDAM_REG_ADMIN_COMMAND)) {
    case NETDAM_ADMIN_REGION_CREATE:
        add_range(device, NETDAM_ADMIN_REGION_CREATE, result, args[0], args[1]);
        break;
    case NETDAM_ADMIN_REGION_DESTROY:
        drop_ranges(device, NETDAM_ADMIN_REGION_CREATE, (uint32_t)args[0]);
        break;
    case NETDAM_ADMIN_QUEUE_CREATE:
        if (args[1] > NETDAM_RING_LOG2_MAX || args[3] > NETDAM_RING_LOG2_MAX || args[5] > NETDAM_RING_LOG2_MAX) {
            fuzz_fail("a ring of impossible size was accepted", args[1], args[3]);
        }
        add_range(device, NETDAM_ADMIN_QUEUE_CREATE, result, args[0], netdam_ring_bytes((unsigned)args[1], 64));
        add_range(device, NETDAM_ADMIN_QUEUE_CREATE, result, args[2], netdam_ring_bytes((unsigned)args[3], 32));
        if (args[5] != 0) {
            add_range(device, NETDAM_ADMIN_QUEUE_CREATE, result, args[4], netdam_ring_bytes((unsigned)args[5], 64));
        }
        break;
    case NETDAM_ADMIN_QUEUE_DESTROY:
        drop_ranges(device, NETDAM_ADMIN_QUEUE_CREATE, (uint32_t)args[0]);
        break;
    default:
        break;
    }
}

static void restart(struct fuzz_device *device)
{
    ndtest_node_stop(&device->node, device->now_ns);
    memset(device->ranges, 0, sizeof(device->ranges));
    device->receives = device->entry = 0;
    device->entry_receives = false;
    ndtest_node_start(&device->node, device->now_ns);
}

void fuzz_register_write(struct fuzz_device *device, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct ndtest_node *node = &device->node;
    bool admin = offset == NETDAM_REG_ADMIN_COMMAND && bytes == 4;
    unsigned action;

    /* New rings are written before the command has returned and its ranges are known. */
    device->admin_running = admin && value == NETDAM_ADMIN_QUEUE_CREATE;
    action = node->ops->register_write(node->state, offset, bytes, value, device->now_ns);
    device->admin_running = false;
    if (admin) {
        observe_admin(device);
    }
    if ((action & ~(NETDAM_FW_ACTION_RUN | NETDAM_FW_ACTION_RESET)) != 0) {
        fuzz_fail("register_write asks for an unknown action", action, offset);
    }
    if ((action & NETDAM_FW_ACTION_RESET) != 0) {
        restart(device);
    }
}

enum netdam_admin_status fuzz_admin(struct fuzz_device *device, enum netdam_admin command, const uint64_t *args,
                                    uint64_t results[NETDAM_ADMIN_RESULTS])
{
    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        fuzz_register_write(device, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, args[i]);
    }
    fuzz_register_write(device, NETDAM_REG_ADMIN_COMMAND, 4, (uint64_t)command);
    for (unsigned i = 0; i < NETDAM_ADMIN_RESULTS; i++) {
        results[i] = device->node.ops->register_read(device->node.state, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
    }
    return (enum netdam_admin_status)ndtest_node_register(&device->node, NETDAM_REG_ADMIN_STATUS);
}

void fuzz_device_open(struct fuzz_device *device)
{
    struct netdam_fw_config config;
    struct ndtest_hooks hooks = {
        .opaque = device,
        .transmit_begin = fuzz_begin,
        .transmit_end = fuzz_end,
        .access = fuzz_access,
        .entropy = fuzz_entropy,
        .trace = fuzz_trace,
    };
    struct ndtest_node kept = device->node;
    const char *error;

    memset(device, 0, offsetof(struct fuzz_device, outgoing));
    device->frame_count = device->port_full = device->entropy_draws = 0;
    device->poke_bytes = 0;
    device->receive_keys = 0;
    device->entry = device->receives = 0;
    device->entry_receives = false;
    device->admin_running = false;
    device->now_ns = UINT64_C(1000000000);
    /* Node 1 of the tests is the node of the golden packets: 10.0.0.2. */
    ndtest_config_default(&config, 1);
    config.memory_bytes = FUZZ_MEMORY_BYTES;
    config.shared_frames = 1; /* so that there is room for it */
    config.no_merge = 0;
    config.queue_pairs = 4;
    config.regions = 8;
    config.peers = 4;
    config.neighbours = 4;
    config.operations = 16;
    config.lanes = 4;
    config.lane_windows = 2;
    config.window = 16;
    config.retries = 2;
    if (device->crypto != NULL) {
        config.tenants = 2;
        config.tenant_senders = 3;
    }
    /* The blocks are kept from input to input, for speed; what is in them is not. */
    if (kept.state != NULL) {
        device->node = kept;
        device->node.entropy.state = 1;
        memset(kept.state, NDTEST_GUARD_BYTE, kept.state_bytes);
    } else if (!ndtest_node_init(&device->node, netdam_fw_entry(), &config, &hooks, 1, &error)) {
        fuzz_fail(error, 0, 0);
    }
    memset(device->node.memory, 0, FUZZ_MEMORY_BYTES);
    device->node.config.shared_frames = device->shared_frames;
    device->node.platform.crypto = device->crypto;
    ndtest_node_start(&device->node, device->now_ns);
}

void fuzz_put_entries(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, unsigned count)
{
    uint32_t at = 0;

    d->remote_key = d->remote_address = 0;
    d->u.buffer.result_address = d->u.buffer.local_address + 512;
    for (unsigned i = 0; i < (count & 7); i++) {
        struct netdam_transaction_entry entry = {
            .kind = (uint8_t)(1 + ((count >> 3) + i) % 3), .length = 1 + 5 * i, .key = FUZZ_KEY_ALL, .address = 40 * i};
        uint32_t data = netdam_transaction_data_bytes(entry.kind, entry.length);

        if (offset + at + sizeof(entry) + data > FUZZ_MEMORY_BYTES) {
            break;
        }
        memcpy(device->node.memory + offset + at, &entry, sizeof(entry));
        at += (uint32_t)sizeof(entry);
        memset(device->node.memory + offset + at, 0, data); /* what a compare finds in untouched memory */
        at += data;
    }
    d->length = at != 0 ? at : d->length;
}

void fuzz_put_segments(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, uint64_t address,
                       uint32_t region, struct fuzz_input *input)
{
    static const uint8_t opcodes[] = {NETDAM_OP_WRITE,  NETDAM_OP_LOAD,        NETDAM_OP_COMPARE, NETDAM_OP_FORWARD,
                                      NETDAM_OP_REDUCE, NETDAM_OP_LOAD_REDUCE, NETDAM_OP_READ,    0};
    bool reads = false, loads = false, stores = false;

    d->list_count = fuzz_u8(input) & 63;
    d->remote_address = address;
    d->immediate = region;
    d->operation = d->type = 0;
    d->remote_key = 0;
    for (unsigned i = 0; i < d->list_count; i++) {
        uint8_t what = fuzz_u8(input);
        struct netdam_segment segment = {.opcode = opcodes[what & 7], .peer = what >> 3 & 7, .key = FUZZ_KEY_ALL};

        if (offset + (i + 1) * sizeof(segment) > FUZZ_MEMORY_BYTES) {
            break;
        }
        if (segment.opcode == NETDAM_OP_REDUCE || segment.opcode == NETDAM_OP_LOAD_REDUCE) {
            segment.operation = NETDAM_ALU_SUM;
            segment.type = NETDAM_TYPE_U32;
        }
        segment.key = segment.opcode == NETDAM_OP_FORWARD ? 0 : segment.key;
        segment.address = segment.opcode == NETDAM_OP_FORWARD ? 0 : 64u * (what >> 6);
        loads |= segment.opcode == NETDAM_OP_LOAD;
        reads |= segment.opcode == NETDAM_OP_LOAD || segment.opcode == NETDAM_OP_LOAD_REDUCE;
        stores = (netdam_op_flags(segment.opcode) & NETDAM_OPF_MODIFIES) != 0;
        memcpy(device->node.memory + offset + i * sizeof(segment), &segment, sizeof(segment));
    }
    d->peer = reads && !stores ? d->local_region : 0;
    d->u.buffer.result_address = reads && !stores ? d->u.buffer.local_address : 0;
    d->local_region = loads ? 0 : d->local_region;
    d->u.buffer.local_address = loads ? 0 : d->u.buffer.local_address;
}

/* Takes the segment that is to answer for the current one. Returns what the answer carries. */
static uint32_t answer_of_chain(struct ndtest_packet *packet, uint8_t status)
{
    size_t each = packet->node_form == NETDAM_NODE_FORM_IPV6 ? 56 : 40;
    uint32_t length = 0;
    bool reads = false, stores = false;

    for (unsigned i = 0; i < packet->segment_count; i++) {
        const uint8_t *at = packet->segments + i * each;

        reads |= at[0] == NETDAM_OP_LOAD || at[0] == NETDAM_OP_LOAD_REDUCE;
        stores = (netdam_op_flags(at[0]) & NETDAM_OPF_MODIFIES) != 0;
        length = at[0] == NETDAM_OP_FORWARD ? length : (uint32_t)at[6] << 8 | at[7];
        if (i == packet->segment_count - 1u ||
            (status != NETDAM_STATUS_OK && i == packet->number % packet->segment_count)) {
            packet->segment_index = (uint8_t)i;
            packet->opcode = at[0];
            packet->operation = at[1];
            packet->type = at[2];
            packet->length = at[0] == NETDAM_OP_FORWARD ? 0 : length;
            packet->generation = 0;
            for (unsigned k = 24; k < 32; k++) {
                packet->generation = packet->generation << 8 | at[k];
            }
            if (i != packet->segment_count - 1u) {
                return 0;
            }
        }
    }
    return status == NETDAM_STATUS_OK && reads && !stores ? length : 0;
}

/* Bytes that a transaction's list fetches, as far as its form is right. */
static uint32_t fetched_bytes(const struct ndtest_packet *packet)
{
    uint32_t at = 0, bytes = 0;

    while (packet->payload_bytes - at >= sizeof(struct netdam_transaction_entry)) {
        struct netdam_transaction_entry entry;

        memcpy(&entry, packet->payload + at, sizeof(entry));
        at += (uint32_t)sizeof(entry);
        if (entry.length > packet->payload_bytes) {
            break;
        }
        bytes += entry.kind == NETDAM_TRANSACTION_FETCH ? entry.length : 0;
        if (netdam_transaction_data_bytes(entry.kind, entry.length) > packet->payload_bytes - at) {
            break;
        }
        at += netdam_transaction_data_bytes(entry.kind, entry.length);
    }
    return bytes;
}

void fuzz_device_run(struct fuzz_device *device, uint64_t budget)
{
    struct netdam_fw_run_result result;

    for (unsigned i = 0; i < 64; i++) {
        memset(&result, 0xc9, sizeof(result));
        device->node.ops->run(device->node.state, device->now_ns, budget, &result);
        if (result.port_full || !result.more) {
            break;
        }
    }
}

void fuzz_check(struct fuzz_device *device)
{
    struct ndtest_node *node = &device->node;

    if (!ndtest_node_guards_intact(node)) {
        fuzz_fail("guards are damaged", 0, 0);
    }
    if (ndtest_node_counter(node, NETDAM_COUNTER_LANES) > node->config.lanes ||
        ndtest_node_counter(node, NETDAM_COUNTER_LANE_WINDOWS) > node->config.lane_windows) {
        fuzz_fail("more lanes than configured", ndtest_node_counter(node, NETDAM_COUNTER_LANES),
                  ndtest_node_counter(node, NETDAM_COUNTER_LANE_WINDOWS));
    }
    if (ndtest_node_counter(node, NETDAM_COUNTER_COMPLETIONS) - device->receives >
        ndtest_node_counter(node, NETDAM_COUNTER_DESCRIPTORS)) {
        fuzz_fail("more completions than descriptors", 0, 0);
    }
    if (ndtest_node_register(node, NETDAM_REG_MAIN_MEMORY_BYTES) != 0) {
        fuzz_fail("main memory was touched", 0, 0);
    }
}

void fuzz_device_close(struct fuzz_device *device)
{
    fuzz_check(device);
    ndtest_node_stop(&device->node, device->now_ns);
    fuzz_check(device);
    if (ndtest_node_counter(&device->node, NETDAM_COUNTER_RING_ERRORS) == 0 &&
        ndtest_node_counter(&device->node, NETDAM_COUNTER_COMPLETIONS) - device->receives !=
            ndtest_node_counter(&device->node, NETDAM_COUNTER_DESCRIPTORS)) {
        fuzz_fail("accepted descriptors without completion after stop",
                  ndtest_node_counter(&device->node, NETDAM_COUNTER_DESCRIPTORS),
                  ndtest_node_counter(&device->node, NETDAM_COUNTER_COMPLETIONS));
    }
}

void fuzz_receive(struct fuzz_device *device, const uint8_t *frame, size_t bytes)
{
    /* Its own allocation: the sanitizer sees a read behind its end. */
    uint8_t *copy = malloc(bytes != 0 ? bytes : 1);

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, frame, bytes);
    if (device->shared_frames) {
        device->incoming = copy;
        device->incoming_bytes = bytes;
    }
    device->node.ops->receive(device->node.state, copy, bytes, device->now_ns);
    device->incoming_bytes = 0;
    if (!device->shared_frames && memcmp(copy, frame, bytes) != 0) {
        fuzz_fail("receive has changed the frame", bytes, 0);
    }
    free(copy);
}

static void put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

size_t fuzz_make_answer(struct fuzz_device *device, unsigned which, uint8_t status, uint8_t *frame)
{
    const uint8_t *request;
    struct ndtest_packet packet;
    size_t bytes;
    size_t headers;
    unsigned place;
    uint32_t payload;
    uint8_t *header;
    unsigned ip_bytes;

    if (device->frame_count == 0) {
        return 0;
    }
    which %= device->frame_count < FUZZ_FRAMES ? device->frame_count : FUZZ_FRAMES;
    place = (device->frame_count - 1 - which) % FUZZ_FRAMES;
    request = device->frames[place];
    bytes = device->frame_bytes[place];
    if (!ndtest_packet_read(request, bytes, NETDAM_UDP_PORT, &packet)) {
        return 0;
    }
    headers = (size_t)(packet.header - request);
    ip_bytes = (unsigned)headers - NETDAM_ETHERNET_BYTES - NETDAM_UDP_BYTES;
    memcpy(frame, request, headers);
    memcpy(frame, request + 6, 6);
    memcpy(frame + 6, request, 6);
    if (ip_bytes == NETDAM_IPV4_BYTES) {
        memcpy(frame + 26, request + 30, 4);
        memcpy(frame + 30, request + 26, 4);
    } else {
        memcpy(frame + 22, request + 38, 16);
        memcpy(frame + 38, request + 22, 16);
    }
    payload =
        status == NETDAM_STATUS_OK && (netdam_op_flags(packet.opcode) & NETDAM_OPF_RETURNS) != 0 ? packet.length : 0;
    if (status == NETDAM_STATUS_OK && (netdam_op_flags(packet.opcode) & NETDAM_OPF_ATOMIC) != 0) {
        payload = packet.length;
    }
    if (status == NETDAM_STATUS_OK && packet.opcode == NETDAM_OP_TRANSACTION) {
        payload = fetched_bytes(&packet);
    }
    if (packet.node_form != 0) {
        payload = answer_of_chain(&packet, status);
    }
    if (headers + 64 + payload + NETDAM_CRC_BYTES > FUZZ_FRAME_BYTES) {
        return 0;
    }
    header = frame + headers;
    memset(header, 0, 64);
    header[0] = NETDAM_WIRE_VERSION;
    header[1] = NETDAM_KIND_RESPONSE;
    put(header + 2, (payload != 0 ? NETDAM_FLAG_PAYLOAD_CRC : 0u) | (packet.flags & NETDAM_FLAG_RELAXED), 2);
    header[4] = packet.segment_count;
    header[5] = packet.segment_index;
    header[7] = status;
    put(header + 8, packet.context, 8);
    put(header + 16, packet.number, 6);
    put(header + 22, packet.distance, 2);
    put(header + 24, payload, 2);
    put(header + 26, 64, 2);
    header[32] = packet.opcode;
    header[33] = packet.operation;
    header[34] = packet.type;
    header[35] = packet.segment_index;
    /* Of a transaction that is refused: the entry that failed. */
    put(header + 36, packet.opcode == NETDAM_OP_TRANSACTION ? (payload != 0 ? payload : status & 15u) : packet.length,
        4);
    put(header + 40, packet.generation != 0 && status != NETDAM_STATUS_STALE ? packet.generation : FUZZ_EPOCH << 32 | 2,
        8);
    put(header + 48, packet.generation, 8);
    put(header + 56, packet.opcode == NETDAM_OP_CONFIRM ? packet.number : packet.number - packet.distance, 6);
    for (uint32_t i = 0; i < payload; i++) {
        header[64 + i] = (uint8_t)i;
    }
    bytes = headers + 64 + payload + (payload != 0 ? NETDAM_CRC_BYTES : 0);
    ndtest_frame_repair(frame, bytes, true);
    return bytes;
}
