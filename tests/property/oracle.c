/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's eyes: every access, every frame, every byte of memory, held against a shadow that does the same work. */
#include "world.h"

#include <stdarg.h>
#include <stdlib.h>

void violation(struct world *world, unsigned invariant, const char *format, ...)
{
    struct tally *tally = world->tally;
    va_list args;

    tally->violations[invariant]++;
    if (!world->failed) {
        size_t used;

        world->failed = true;
        used = (size_t)snprintf(tally->first, sizeof(tally->first), "invariant %u, at %llu ns: ", invariant,
                                (unsigned long long)world->wire.now_ns);
        va_start(args, format);
        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, one line above */
        vsnprintf(tally->first + used, sizeof(tally->first) - used, format, args);
        va_end(args);
        if (!tally->quiet) {
            printf("# %s\n", tally->first);
        }
    }
}

static struct site *site_of(struct world *world, const struct ndtest_node *node)
{
    return &world->sites[node->index];
}

struct region *region_by_key(struct site *site, uint64_t key)
{
    for (unsigned i = 0; i < SITE_REGIONS; i++) {
        if (site->regions[i].live && site->regions[i].key == key) {
            return &site->regions[i];
        }
    }
    return NULL;
}

static bool within(uint64_t offset, uint64_t bytes, uint64_t base, uint64_t length)
{
    return offset >= base && bytes <= length && offset - base <= length - bytes;
}

/* The range that the request being received names, if its region permits what the opcode does. */
static bool request_range(struct site *site, uint64_t *base, uint64_t *length, bool *modifies)
{
    const struct ndtest_packet *packet = &site->packet;
    const struct region *region;
    uint32_t permission;

    if (!site->packet_valid || packet->kind != NETDAM_KIND_REQUEST ||
        (netdam_op_flags(packet->opcode) & NETDAM_OPF_MEMORY) == 0) {
        return false;
    }
    region = region_by_key(site, packet->key);
    *modifies = op_modifies(packet->opcode);
    switch (packet->opcode) {
    case NETDAM_OP_READ:
        permission = NETDAM_PERMISSION_REMOTE_READ;
        break;
    case NETDAM_OP_WRITE:
        permission = NETDAM_PERMISSION_REMOTE_WRITE;
        break;
    case NETDAM_OP_SWAP:
        permission = NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_READ;
        break;
    case NETDAM_OP_REDUCE:
        permission = NETDAM_PERMISSION_REMOTE_ALU;
        break;
    default:
        permission = NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ;
        break;
    }
    if (region == NULL || (region->permissions & permission) != permission ||
        !within(packet->address, packet->length, 0, region->length)) {
        return false;
    }
    *base = region->base + packet->address;
    *length = packet->length;
    return true;
}

static bool access_to_ring(struct site *site, uint64_t offset, uint64_t bytes, bool reads)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];

        if (!queue->open) {
            continue;
        }
        if (within(offset, bytes, queue->sq_base, netdam_ring_bytes(queue->sq_log2, 64))) {
            /* The header is announced as a whole; software's half of it is compared in oracle_compare. */
            return reads || within(offset, bytes, queue->sq_base, 128);
        }
        if (within(offset, bytes, queue->cq_base, netdam_ring_bytes(queue->cq_log2, 32))) {
            return true;
        }
    }
    return false;
}

/* Counters that only witness.c judges: a node's requests to itself reach them without a frame that could be seen. */
static bool access_to_witness(uint64_t offset, uint64_t bytes)
{
    return bytes == 8 && offset % 8 == 0 && within(offset, bytes, WITNESS_BASE, 8 * WITNESS_CELLS);
}

static bool access_to_buffer(struct world *world, struct site *site, uint64_t offset, uint64_t bytes,
                             enum netdam_fw_access access)
{
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->slot == NONE || op->local_dead || !within(offset, bytes, op->local_offset, op->d.length)) {
            continue;
        }
        if (access == NETDAM_FW_ACCESS_READ ? op->d.opcode != NETDAM_OP_READ : op_writes_local(op)) {
            return true;
        }
    }
    return false;
}

void oracle_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                   enum netdam_fw_access access)
{
    struct world *world = world_of(opaque);
    struct site *site = site_of(world, node);
    bool reads = access == NETDAM_FW_ACCESS_READ;
    uint64_t base;
    uint64_t length;
    bool modifies;

    world->tally->checks[4]++;
    if (bytes == 0) {
        return;
    }
    if (!within(offset, bytes, 0, node->config.memory_bytes)) {
        violation(world, 4, "node %u accesses offset %llu, %llu bytes: outside on-board memory", node->index,
                  (unsigned long long)offset, (unsigned long long)bytes);
        return;
    }
    if (access_to_ring(site, offset, bytes, reads)) {
        return;
    }
    if (request_range(site, &base, &length, &modifies) && within(offset, bytes, base, length) && (reads || modifies)) {
        return;
    }
    if (access_to_buffer(world, site, offset, bytes, access) || access_to_witness(offset, bytes)) {
        return;
    }
    violation(world, 4,
              "node %u accesses (%s) offset %llu, %llu bytes: no ring, no buffer under way, no permitted "
              "range of the request%s",
              node->index, reads ? "read" : "write", (unsigned long long)offset, (unsigned long long)bytes,
              site->packet_valid ? "" : " (no request)");
}

/* PROPERTY_TRACE=1: what the firmware tells, for whoever follows a replay. */
void oracle_trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                  uint64_t c)
{
    static const char *const names[] = {
#define TRACE_NAME(name, arguments, text) #name " (" arguments "): ",
        NETDAM_FW_TRACE_LIST(TRACE_NAME)
#undef TRACE_NAME
    };
    const struct world *world = opaque;

    printf("# %llu node %u %s%llx %llx %llx\n", (unsigned long long)world->wire.now_ns, node->index, names[event],
           (unsigned long long)a, (unsigned long long)b, (unsigned long long)c);
}

/* ---- frames leaving ---- */

static bool piece_matches(const struct site *site, const struct op *op, const struct ndtest_packet *packet)
{
    uint64_t at = packet->address - op->d.remote_address;

    if (op->d.opcode != packet->opcode || op->d.operation != packet->operation || op->d.type != packet->type ||
        op->d.remote_key != packet->key ||
        !within(packet->address, packet->length, op->d.remote_address, op->d.length)) {
        return false;
    }
    /* Split as PAYLOAD_MAX says. */
    if (!op_atomic(packet->opcode) &&
        (at % op->split != 0 || packet->length != (op->d.length - at < op->split ? op->d.length - at : op->split))) {
        return false;
    }
    if (op_atomic(packet->opcode)) {
        unsigned size = netdam_type_bytes(op->d.type);
        unsigned operands = packet->opcode == NETDAM_OP_CAS ? NETDAM_CAS_OPERANDS : NETDAM_ATOMIC_OPERANDS;

        if (packet->payload_bytes != operands * size) {
            return false;
        }
        for (unsigned i = 0; i < operands; i++) {
            uint64_t want = size == 8 ? op->d.u.operand[i] : op->d.u.operand[i] & ((UINT64_C(1) << (8 * size)) - 1);

            if (reference_load(packet->payload + i * size, size) != want) {
                return false;
            }
        }
        return true;
    }
    if (op->d.opcode == NETDAM_OP_READ) {
        return packet->payload_bytes == 0;
    }
    return packet->payload_bytes == packet->length &&
           memcmp(packet->payload, site->node.memory + op->local_offset + at, packet->length) == 0;
}

static bool same_instruction(const struct piece *piece, const struct ndtest_packet *packet)
{
    return piece->opcode == packet->opcode && piece->operation == packet->operation && piece->type == packet->type &&
           piece->key == packet->key && piece->address == packet->address && piece->length == packet->length &&
           piece->payload_hash == ndtest_hash(0, packet->payload, packet->payload_bytes);
}

/* A fenced request starts when everything earlier in its ring has completed. */
static void check_fence(struct world *world, struct site *site, uint32_t index)
{
    const struct op *op = &world->ops[index];
    uint32_t earlier = 0;

    if ((op->d.flags & NETDAM_DESCRIPTOR_FENCE) == 0) {
        return;
    }
    for (uint32_t i = 0; i < site->outstanding_count && site->outstanding[i] != index; i++) {
        earlier += world->ops[site->outstanding[i]].queue == op->queue;
    }
    world->tally->checks[7]++;
    if (earlier > ndtest_queue_ready(&site->queues[op->queue])) {
        violation(world, 7, "node %u queue %u: a fenced request is sent while an earlier one is under way",
                  site->node.index, op->queue);
    }
}

static void sent_request(struct world *world, struct site *site, const struct ndtest_packet *packet)
{
    struct context *context = context_get(world, packet->context, site->node.index);
    struct piece *piece;
    uint32_t found = NONE;

    world->tally->checks[9]++;
    if (context->node != site->node.index || context->incarnation != world->wire.incarnation[site->node.index]) {
        violation(world, 9, "node %u uses context %llx, which belonged to node %u before", site->node.index,
                  (unsigned long long)packet->context, context->node);
        return;
    }
    if (packet->opcode == NETDAM_OP_CONFIRM || packet->opcode == NETDAM_OP_ECHO) {
        return;
    }
    if (packet->number >= NETDAM_NUMBER_MAX) {
        violation(world, 2, "node %u uses number %llu: its context has ended", site->node.index,
                  (unsigned long long)packet->number);
    }
    piece = op_modifies(packet->opcode) ? piece_find(world, packet->context, packet->number) : NULL;
    if (piece == NULL) {
        for (uint32_t i = 0; i < site->outstanding_count && found == NONE; i++) {
            if (piece_matches(site, &world->ops[site->outstanding[i]], packet)) {
                found = site->outstanding[i];
            }
        }
        if (found == NONE) {
            violation(world, 2,
                      "node %u sends opcode 0x%x to key %llx address %llu length %u, which no descriptor "
                      "under way asked for",
                      site->node.index, packet->opcode, (unsigned long long)packet->key,
                      (unsigned long long)packet->address, packet->length);
            return;
        }
        if (!op_modifies(packet->opcode)) {
            return; /* Two READs may look the same; it does not matter which this is. */
        }
        world->ops[found].sent = true;
        check_fence(world, site, found);
        piece = piece_add(world, packet->context, packet->number);
        piece->op = found;
        piece->opcode = packet->opcode;
        piece->operation = packet->operation;
        piece->type = packet->type;
        piece->key = packet->key;
        piece->address = packet->address;
        piece->length = packet->length;
        piece->payload_hash = ndtest_hash(0, packet->payload, packet->payload_bytes);
        piece->next = world->ops[found].first_piece;
        world->ops[found].first_piece = world->pieces.used - 1;
    } else if (!same_instruction(piece, packet)) {
        violation(world, 2, "node %u uses number %llu of context %llx for two instructions", site->node.index,
                  (unsigned long long)packet->number, (unsigned long long)packet->context);
    } else if (world->ops[piece->op].state == OP_COMPLETE) {
        violation(world, 3, "node %u sends number %llu again after the completion of its request (status 0x%x)",
                  site->node.index, (unsigned long long)packet->number, world->ops[piece->op].status);
    }
    if (piece->generation == 0) {
        piece->generation = packet->generation;
    }
}

/* `value` is what the payload holds, for atomics. */
static void sent_response(struct world *world, struct site *site, const struct ndtest_packet *packet, uint64_t value)
{
    struct piece *piece;
    struct context *context;

    if (packet->opcode != NETDAM_OP_CONFIRM && !op_modifies(packet->opcode)) {
        return;
    }
    if (packet->status == NETDAM_STATUS_OK) {
        context = context_get(world, packet->context, NONE);
        if (context != NULL && packet->floor > context->floor) {
            context->floor = packet->floor;
        }
    }
    piece = op_modifies(packet->opcode) ? piece_find(world, packet->context, packet->number) : NULL;
    if (piece == NULL) {
        return;
    }
    if (packet->status == NETDAM_STATUS_OK) {
        world->tally->checks[2]++;
        if (!piece->applied) {
            violation(world, 2, "node %u acknowledges number %llu of context %llx, which was never applied",
                      site->node.index, (unsigned long long)packet->number, (unsigned long long)packet->context);
        } else if (op_atomic(piece->opcode) && !world->ops[piece->op].witness &&
                   (packet->payload_bytes != piece->length || value != piece->old_value)) {
            violation(world, 7, "node %u answers an atomic with a value that was not there", site->node.index);
        }
    } else if (status_class(packet->status) == NETDAM_STATUS_CLASS_REFUSED) {
        world->tally->checks[3]++;
        piece->refused = true;
        if (piece->applied) {
            violation(world, piece->applied_incarnation == world->wire.incarnation[site->node.index] ? 3 : 9,
                      "node %u refuses (status 0x%x) number %llu, which it has applied", site->node.index,
                      packet->status, (unsigned long long)packet->number);
        }
    }
}

static void hook_transmitted(void *opaque, struct ndtest_node *node, const uint8_t *data, size_t bytes)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);
    struct ndtest_packet packet;

    if (bytes > NETDAM_ETHERNET_BYTES + (node->config.mtu != 0 ? node->config.mtu : 1500u)) {
        violation(world, 4, "node %u sends a frame of %zu bytes, more than its MTU", node->index, bytes);
    }
    if (!ndtest_packet_read(data, bytes, NETDAM_UDP_PORT, &packet)) {
        return;
    }
    if (packet.kind == NETDAM_KIND_REQUEST) {
        sent_request(world, site, &packet);
    } else {
        uint64_t value = packet.payload_bytes <= 8 ? reference_load(packet.payload, packet.payload_bytes) : 0;

        if (!site->receiving) {
            sent_response(world, site, &packet, value);
        } else if (site->answer_count < ANSWERS_MAX) {
            /* What it answers to is known when receive has returned. */
            site->answers[site->answer_count] = packet;
            site->answer_values[site->answer_count++] = value;
        } else {
            violation(world, 3, "node %u sends more than %u answers to one frame", node->index, ANSWERS_MAX);
        }
    }
}

/* ---- frames arriving ---- */

static void hook_before_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);

    uint64_t base;
    uint64_t length;
    bool modifies;

    tamper_before_receive(world->tamper, frame);
    site->receiving = true;
    site->packet_valid = ndtest_packet_read(frame->data, frame->bytes, NETDAM_UDP_PORT, &site->packet);
    site->executed_before = ndtest_node_counter(node, NETDAM_COUNTER_REQUESTS_EXECUTED);
    /* Whatever changed these bytes since the last request for them was none. */
    if (request_range(site, &base, &length, &modifies) && !within(base, length, WITNESS_BASE, 8 * WITNESS_CELLS) &&
        memcmp(site->shadow + base, node->memory + base, length) != 0) {
        violation(world, 5, "memory of node %u at offset %llu, %llu bytes, has changed between two requests",
                  node->index, (unsigned long long)base, (unsigned long long)length);
        oracle_accept_memory(site, base, length);
    }
}

/* Does to the shadow what the packet says. Returns the old value of an atomic. */
static uint64_t apply_to_shadow(uint8_t *at, const struct ndtest_packet *packet)
{
    unsigned size = netdam_type_bytes(packet->type);
    uint64_t mask = size >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
    uint64_t old;
    uint64_t operand;

    if (packet->opcode == NETDAM_OP_WRITE) {
        memcpy(at, packet->payload, packet->length);
        return 0;
    }
    if (packet->opcode == NETDAM_OP_REDUCE) {
        reference_reduce(at, packet->payload, packet->length, packet->operation, packet->type);
        return 0;
    }
    old = reference_load(at, size);
    operand = reference_load(packet->payload, size);
    if (packet->opcode == NETDAM_OP_FETCH_ADD) {
        reference_store(at, size, (old + operand) & mask);
    } else if (packet->opcode == NETDAM_OP_CAS && old == operand) {
        memcpy(at, packet->payload + size, size);
    } else if (packet->opcode == NETDAM_OP_SWAP) {
        memcpy(at, packet->payload, size);
    } else if (packet->opcode == NETDAM_OP_FETCH_OP) {
        reference_reduce(at, packet->payload, size, packet->operation, packet->type);
    }
    return old;
}

static void applied(struct world *world, struct site *site, const struct ndtest_frame *frame)
{
    const struct ndtest_packet *packet = &site->packet;
    struct piece *piece = piece_find(world, packet->context, packet->number);
    struct context *context;
    struct op *op;
    uint64_t base;
    uint64_t length;
    bool modifies;

    world->tally->applied++;
    world->tally->exhausted += packet->number == NETDAM_NUMBER_MAX - 1;
    if (piece == NULL || !same_instruction(piece, packet)) {
        violation(world, 4, "node %u executed opcode 0x%x, number %llu of context %llx, as nobody has sent it%s",
                  site->node.index, packet->opcode, (unsigned long long)packet->number,
                  (unsigned long long)packet->context, frame->damaged ? " (damaged on the wire)" : "");
        return;
    }
    op = &world->ops[piece->op];
    if (!request_range(site, &base, &length, &modifies)) {
        violation(world, 4,
                  "node %u executed opcode 0x%x on key %llx address %llu length %u: no such region, range or "
                  "permission",
                  site->node.index, packet->opcode, (unsigned long long)packet->key,
                  (unsigned long long)packet->address, packet->length);
        return;
    }
    world->tally->checks[9]++;
    if (frame->to_incarnation != world->wire.incarnation[site->node.index]) {
        violation(world, 9, "node %u executed number %llu, sent to it before its reset", site->node.index,
                  (unsigned long long)packet->number);
    }
    world->tally->checks[2]++;
    if (piece->applied && op->state == OP_COMPLETE && op->status == NETDAM_STATUS_OK) {
        violation(world, 5, "node %u executed number %llu of context %llx again, after its completion with OK",
                  site->node.index, (unsigned long long)packet->number, (unsigned long long)packet->context);
    } else if (piece->applied) {
        violation(world, 2, "node %u executed number %llu of context %llx twice", site->node.index,
                  (unsigned long long)packet->number, (unsigned long long)packet->context);
    } else if (piece->refused || (op->state == OP_COMPLETE && status_refuses(op->status))) {
        violation(world, 3, "node %u executed number %llu of context %llx after its refusal", site->node.index,
                  (unsigned long long)packet->number, (unsigned long long)packet->context);
    }
    context = context_get(world, packet->context, NONE);
    if (context != NULL && packet->number < context->floor) {
        violation(world, 3, "node %u executed number %llu although it had acknowledged floor %llu", site->node.index,
                  (unsigned long long)packet->number, (unsigned long long)context->floor);
    }
    piece->applied = true;
    piece->applied_incarnation = world->wire.incarnation[site->node.index];
    if (!op->witness) {
        piece->old_value = apply_to_shadow(site->shadow + base, packet);
    }
}

static void hook_after_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);
    const struct ndtest_packet *packet = &site->packet;
    uint64_t executed = ndtest_node_counter(node, NETDAM_COUNTER_REQUESTS_EXECUTED) - site->executed_before;
    uint64_t base;
    uint64_t length;
    bool modifies;

    world->tally->damaged += frame->damaged;
    if (executed > 1 || (executed == 1 && !site->packet_valid)) {
        violation(world, 2, "node %u counts %llu executed requests for one frame", node->index,
                  (unsigned long long)executed);
    }
    if (site->packet_valid && packet->kind == NETDAM_KIND_REQUEST) {
        if (executed == 1 && op_modifies(packet->opcode)) {
            applied(world, site, frame);
        } else if (op_modifies(packet->opcode)) {
            const struct piece *piece = piece_find(world, packet->context, packet->number);

            world->tally->checks[5]++;
            world->tally->late_refused += piece != NULL && world->ops[piece->op].state == OP_COMPLETE;
        }
        if (request_range(site, &base, &length, &modifies)) {
            tamper_after_receive(world->tamper, site, frame, executed == 1);
            if (packet->opcode == NETDAM_OP_READ) {
                snapshot_add(world, &(struct snapshot){
                                        .at_ns = world->wire.now_ns,
                                        .key = packet->key,
                                        .address = packet->address,
                                        .length = packet->length,
                                        .hash = ndtest_hash(0, site->shadow + base, packet->length),
                                        .from = (uint8_t)frame->from,
                                        .target = (uint8_t)node->index,
                                    });
            }
            if (!within(base, length, WITNESS_BASE, 8 * WITNESS_CELLS) &&
                memcmp(site->shadow + base, node->memory + base, length) != 0) {
                violation(world, executed != 0 ? 2 : 5,
                          "memory of node %u is not what its requests have made of it: "
                          "offset %llu, %llu bytes, after opcode 0x%x, number %llu (%s)",
                          node->index, (unsigned long long)base, (unsigned long long)length, packet->opcode,
                          (unsigned long long)packet->number, executed != 0 ? "executed" : "not executed");
                oracle_accept_memory(site, base, length);
            }
        }
    }
    site->packet_valid = false;
    site->receiving = false;
    for (unsigned i = 0; i < site->answer_count; i++) {
        sent_response(world, site, &site->answers[i], site->answer_values[i]);
    }
    site->answer_count = 0;
    oracle_observe_taken(world, site);
}

static void hook_after_run(void *opaque, struct ndtest_node *node)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);

    oracle_observe_taken(world, site);
    /* Lazy software leaves completion rings full, and the device waiting for room. */
    if (world->calm || !ndtest_random_chance(&world->random, world->lazy)) {
        oracle_poll(world, site, UINT32_MAX);
    }
}

static void hook_restless(void *opaque, struct ndtest_node *node)
{
    violation(opaque, 1, "node %u asks to be run again without end", node->index);
}

static void hook_action(void *opaque, uint64_t value)
{
    struct world *world = opaque;

    (void)value;
    program_action(world);
}

void oracle_attach(struct world *world)
{
    world->wire.hooks = (struct ndtest_wire_hooks){
        .opaque = world,
        .transmitted = hook_transmitted,
        .before_receive = hook_before_receive,
        .after_receive = hook_after_receive,
        .after_run = hook_after_run,
        .action = hook_action,
        .restless = hook_restless,
    };
}

/* ---- rings and memory ---- */

void oracle_observe_taken(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        struct ndtest_queue *queue = &site->queues[i];
        uint32_t taken;

        if (!queue->open) {
            continue;
        }
        taken = ndtest_queue_taken(queue);
        if (taken - site->seen_taken[i] > queue->produced - site->seen_taken[i]) {
            violation(world, 1, "node %u queue %u: consumer index %u is beyond producer %u or ran back from %u",
                      site->node.index, i, taken, queue->produced, site->seen_taken[i]);
            return;
        }
        while (site->seen_taken[i] != taken) {
            struct op *op = &world->ops[site->posted[i][site->seen_taken[i] & ((1u << queue->sq_log2) - 1)]];

            op->taken_ns = world->wire.now_ns;
            if (op->state == OP_POSTED) {
                op->state = OP_TAKEN;
            }
            site->seen_taken[i]++;
            world->tally->wrapped += site->seen_taken[i] == 0;
        }
    }
}

void oracle_poll(struct world *world, struct site *site, unsigned most)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        struct ndtest_queue *queue = &site->queues[i];
        struct netdam_completion completion;

        if (!queue->open) {
            continue;
        }
        if (ndtest_queue_ready(queue) > 1u << queue->cq_log2) {
            violation(world, 1, "node %u queue %u: more completions than places", site->node.index, i);
            return;
        }
        if (ndtest_queue_ready(queue) != 0) {
            tamper_before_poll(world->tamper, site);
        }
        for (unsigned n = 0; n < most && ndtest_queue_poll(queue, &completion); n++) {
            judge_completion(world, site, i, &completion);
        }
    }
}

void oracle_accept_memory(struct site *site, uint64_t offset, uint64_t bytes)
{
    memcpy(site->shadow + offset, site->node.memory + offset, bytes);
}

/* What software alone stores in the ring headers. */
static void compare_rings(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];
        const struct netdam_ring *sq = (const void *)(site->node.memory + queue->sq_base);
        const struct netdam_ring *cq = (const void *)(site->node.memory + queue->cq_base);

        if (queue->open && (sq->producer != queue->produced || sq->producer_flags != 0 ||
                            cq->consumer != queue->consumed || cq->arm != 0)) {
            violation(world, 4, "node %u queue %u: the device has stored in software's half of a ring header",
                      site->node.index, i);
        }
    }
}

/* Bytes that the device may be changing at the moment: its rings, and buffers of requests under way. */
static bool may_differ(struct world *world, struct site *site, uint64_t offset)
{
    if (within(offset, 1, WITNESS_BASE, 8 * WITNESS_CELLS)) {
        return true;
    }
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];

        if (queue->open && (within(offset, 1, queue->sq_base, netdam_ring_bytes(queue->sq_log2, 64)) ||
                            within(offset, 1, queue->cq_base, netdam_ring_bytes(queue->cq_log2, 32)))) {
            return true;
        }
    }
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->slot != NONE && op_writes_local(op) && within(offset, 1, op->local_offset, op->d.length)) {
            return true;
        }
    }
    return false;
}

void oracle_compare(struct world *world, struct site *site)
{
    uint64_t lanes;

    world->tally->checks[6]++;
    compare_rings(world, site);
    for (uint64_t at = 0; at < site->node.config.memory_bytes; at += 4096) {
        if (memcmp(site->shadow + at, site->node.memory + at, 4096) == 0) {
            continue;
        }
        for (uint64_t i = at; i < at + 4096; i++) {
            if (site->shadow[i] != site->node.memory[i] && !may_differ(world, site, i)) {
                bool buffer = i >= site->slot_base && i < site->slot_base + (uint64_t)SITE_SLOTS * world->slot_bytes;

                violation(world, buffer ? 6 : 4, "node %u, offset %llu (%s): 0x%02x instead of 0x%02x",
                          site->node.index, (unsigned long long)i,
                          buffer ? "a buffer in no use" : "outside every buffer", site->node.memory[i],
                          site->shadow[i]);
                return;
            }
        }
    }
    if (!ndtest_node_guards_intact(&site->node)) {
        violation(world, 4, "node %u: guards around memory or state are damaged", site->node.index);
    }
    world->tally->checks[8]++;
    lanes = ndtest_node_counter(&site->node, NETDAM_COUNTER_LANES);
    if (lanes > site->node.config.lanes ||
        ndtest_node_counter(&site->node, NETDAM_COUNTER_LANE_WINDOWS) > site->node.config.lane_windows ||
        ndtest_node_counter(&site->node, NETDAM_COUNTER_LANE_BYTES) < 24 * lanes ||
        ndtest_node_counter(&site->node, NETDAM_COUNTER_LANE_BYTES) > site->node.state_bytes) {
        violation(world, 8, "node %u: %llu lanes, %llu windows, %llu bytes: more than configured", site->node.index,
                  (unsigned long long)lanes,
                  (unsigned long long)ndtest_node_counter(&site->node, NETDAM_COUNTER_LANE_WINDOWS),
                  (unsigned long long)ndtest_node_counter(&site->node, NETDAM_COUNTER_LANE_BYTES));
    }
}

void oracle_deadlines(struct world *world, struct site *site)
{
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->state == OP_TAKEN && world->wire.now_ns - op->taken_ns > world->bound_ns) {
            violation(world, 1, "node %u: opcode 0x%x to node %u, %u bytes, accepted at %llu, has no completion yet",
                      site->node.index, op->d.opcode, op->target, op->d.length, (unsigned long long)op->taken_ns);
            return;
        }
    }
}

uint32_t op_new(struct world *world)
{
    if (world->op_count == world->op_room) {
        world->op_room = world->op_room == 0 ? 1024 : 2 * world->op_room;
        world->ops = realloc(world->ops, world->op_room * sizeof(*world->ops));
        if (world->ops == NULL) {
            abort();
        }
    }
    memset(&world->ops[world->op_count], 0, sizeof(*world->ops));
    world->ops[world->op_count].first_piece = NONE;
    world->ops[world->op_count].slot = NONE;
    return world->op_count++;
}

void op_forget(struct site *site, uint32_t op)
{
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        if (site->outstanding[i] == op) {
            /* Keeps the order, which decides between look-alikes. */
            memmove(&site->outstanding[i], &site->outstanding[i + 1],
                    (site->outstanding_count - i - 1) * sizeof(*site->outstanding));
            site->outstanding_count--;
            return;
        }
    }
}

void oracle_abandon(struct world *world, struct site *site, unsigned queue)
{
    for (uint32_t i = site->outstanding_count; i-- != 0;) {
        uint32_t index = site->outstanding[i];
        struct op *op = &world->ops[index];

        if (op->queue != queue) {
            continue;
        }
        if (op->state == OP_TAKEN) {
            violation(world, 1, "node %u queue %u: opcode 0x%x was accepted and not completed when its queue ended",
                      site->node.index, queue, op->d.opcode);
        }
        op->state = OP_ABANDONED;
        if (op->slot != NONE) {
            oracle_accept_memory(site, op->local_offset, op->d.length);
            site->slot_op[op->slot] = NONE;
        }
        op_forget(site, index);
    }
}
