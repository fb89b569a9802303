/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's view of the wire: every request and answer, and the shadow that does the same work as the node. */
#include "world.h"

static struct site *site_of(struct world *world, const struct ndtest_node *node)
{
    return &world->sites[node->index];
}

static bool within(uint64_t offset, uint64_t bytes, uint64_t base, uint64_t length)
{
    return offset >= base && bytes <= length && offset - base <= length - bytes;
}

bool request_range(struct site *site, uint64_t *base, uint64_t *length, bool *modifies)
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

/* ---- frames leaving ---- */

/* Delivery as the descriptor asks for it; the immediate with the last packet and no other. */
static bool flags_match(const struct op *op, const struct ndtest_packet *packet, uint64_t at)
{
    unsigned flags = ((op->d.flags & NETDAM_DESCRIPTOR_RELAXED) != 0 ? NETDAM_FLAG_RELAXED : 0u) |
                     ((op->d.flags & NETDAM_DESCRIPTOR_ORDERED) != 0 ? NETDAM_FLAG_ORDERED : 0u) |
                     (op_unreliable(op) ? NETDAM_FLAG_UNRELIABLE : 0u);
    bool immediate = (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 && at + packet->length == op->d.length;

    return (packet->flags & FLAGS_DELIVERY) == flags && ((packet->flags & NETDAM_FLAG_IMMEDIATE) != 0) == immediate &&
           packet->immediate == (immediate ? op->d.immediate : 0);
}

static bool piece_matches(struct world *world, const struct site *site, const struct op *op,
                          const struct ndtest_packet *packet)
{
    uint64_t at = packet->address - op->d.remote_address;

    if (op->d.opcode != packet->opcode || op->d.operation != packet->operation || op->d.type != packet->type ||
        op->d.remote_key != packet->key ||
        !within(packet->address, packet->length, op->d.remote_address, op->d.length) || !flags_match(op, packet, at)) {
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
           memcmp(packet->payload, buffer_gather(world, site, &op->buffer, at, packet->length), packet->length) == 0;
}

static bool same_instruction(const struct piece *piece, const struct ndtest_packet *packet)
{
    return piece->opcode == packet->opcode && piece->operation == packet->operation && piece->type == packet->type &&
           piece->key == packet->key && piece->address == packet->address && piece->length == packet->length &&
           piece->flags == (packet->flags & FLAGS_DELIVERY) && piece->immediate == packet->immediate &&
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

/* The packet with the immediate is sent when all others have been answered, so when they have been applied. */
static void check_immediate(struct world *world, struct site *site, const struct piece *piece,
                            const struct ndtest_packet *packet)
{
    uint64_t others = 0;

    if ((packet->flags & NETDAM_FLAG_IMMEDIATE) == 0 || (packet->flags & NETDAM_FLAG_UNRELIABLE) != 0) {
        return;
    }
    for (uint32_t i = piece->next; i != NONE; i = piece_at(world, i)->next) {
        others += piece_at(world, i)->applied ? piece_at(world, i)->length : 0;
    }
    world->tally->checks[7]++;
    if (others + piece->length != world->ops[piece->op].d.length) {
        violation(world, 7, "node %u sends the immediate of a WRITE of %u bytes when %llu others have been applied",
                  site->node.index, world->ops[piece->op].d.length, (unsigned long long)others);
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
    piece = op_modifies(packet->opcode) ? piece_find(world, packet->context, packet_number(packet)) : NULL;
    if (piece == NULL) {
        for (uint32_t i = 0; i < site->outstanding_count && found == NONE; i++) {
            if (piece_matches(world, site, &world->ops[site->outstanding[i]], packet)) {
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
        piece = piece_add(world, packet->context, packet_number(packet));
        piece->op = found;
        piece->opcode = packet->opcode;
        piece->operation = packet->operation;
        piece->type = packet->type;
        piece->key = packet->key;
        piece->address = packet->address;
        piece->length = packet->length;
        piece->flags = packet->flags & FLAGS_DELIVERY;
        piece->immediate = packet->immediate;
        piece->payload_hash = ndtest_hash(0, packet->payload, packet->payload_bytes);
        piece->next = world->ops[found].first_piece;
        world->ops[found].first_piece = world->pieces.used - 1;
        check_immediate(world, site, piece, packet);
    } else if ((packet->flags & NETDAM_FLAG_UNRELIABLE) != 0) {
        violation(world, 2, "node %u sends number %llu, UNRELIABLE, a second time", site->node.index,
                  (unsigned long long)packet->number);
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
    if (packet->status == NETDAM_STATUS_OK && (packet->flags & NETDAM_FLAG_RELAXED) == 0) {
        context = context_get(world, packet->context, NONE);
        if (context != NULL && packet->floor > context->floor) {
            context->floor = packet->floor;
        }
    }
    piece = op_modifies(packet->opcode) ? piece_find(world, packet->context, packet_number(packet)) : NULL;
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
        piece->refusal = packet->status;
        /* A RELAXED one leaves no trace: another copy may have met other circumstances. */
        if (piece->applied && (piece->flags & FLAGS_LANELESS) == 0) {
            violation(world, piece->applied_incarnation == world->wire.incarnation[site->node.index] ? 3 : 9,
                      "node %u refuses (status 0x%x) number %llu, which it has applied", site->node.index,
                      packet->status, (unsigned long long)packet->number);
        }
    }
}

void frames_transmitted(void *opaque, struct ndtest_node *node, const uint8_t *data, size_t bytes)
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

void frames_before_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);

    uint64_t base;
    uint64_t length;
    bool modifies;

    tamper_before_receive(world->tamper, frame);
    site->receiving = true;
    site->packet_valid = ndtest_packet_read(frame->data, frame->bytes, NETDAM_UDP_PORT, &site->packet);
    site->deliveries = 0;
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

/* ORDERED ones of a ring towards a peer take effect in the order of the ring, packets of one among themselves in any.
 */
static void check_order(struct world *world, struct site *site, struct context *context, const struct piece *piece)
{
    uint32_t *last = &context->ordered[world->ops[piece->op].queue];

    if ((piece->flags & NETDAM_FLAG_ORDERED) == 0) {
        return;
    }
    world->tally->checks[7]++;
    world->tally->ordered++;
    if (piece->op + 1 < *last) {
        violation(world, 7, "node %u executed an ORDERED request after a later one of the same ring", site->node.index);
    }
    *last = piece->op + 1;
}

/* What exactly once means for a packet with a lane. */
static void check_once(struct world *world, struct site *site, const struct piece *piece)
{
    const struct ndtest_packet *packet = &site->packet;
    const struct op *op = &world->ops[piece->op];
    struct context *context = context_get(world, packet->context, NONE);

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
    if (context != NULL && packet->number < context->floor) {
        violation(world, 3, "node %u executed number %llu although it had acknowledged floor %llu", site->node.index,
                  (unsigned long long)packet->number, (unsigned long long)context->floor);
    }
    if (context != NULL) {
        check_order(world, site, context, piece);
    }
}

static void applied(struct world *world, struct site *site, const struct ndtest_frame *frame)
{
    const struct ndtest_packet *packet = &site->packet;
    struct piece *piece = piece_find(world, packet->context, packet_number(packet));
    struct op *op;
    uint64_t base = 0;
    uint64_t length;
    bool modifies;

    world->tally->applied++;
    world->tally->exhausted += packet_number(packet) == NETDAM_NUMBER_MAX - 1;
    if (piece == NULL || !same_instruction(piece, packet)) {
        violation(world, 4, "node %u executed opcode 0x%x, number %llu of context %llx, as nobody has sent it%s",
                  site->node.index, packet->opcode, (unsigned long long)packet->number,
                  (unsigned long long)packet->context, frame->damaged ? " (damaged on the wire)" : "");
        return;
    }
    op = &world->ops[piece->op];
    if (packet->opcode == NETDAM_OP_SEND ? receive_queue_by_key(site, packet->key) == NONE
                                         : !request_range(site, &base, &length, &modifies)) {
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
    if ((packet->flags & FLAGS_LANELESS) == 0) {
        check_once(world, site, piece);
    } else {
        world->tally->repeated += piece->applied;
    }
    if (site->deliveries != (packet_notifies(packet) ? 1u : 0u)) {
        violation(world, 1, "node %u executed opcode 0x%x with %u receive completions", site->node.index,
                  packet->opcode, site->deliveries);
    }
    piece->applied = true;
    piece->applied_incarnation = world->wire.incarnation[site->node.index];
    if (!op->witness && packet->opcode != NETDAM_OP_SEND) {
        piece->old_value = apply_to_shadow(site->shadow + base, packet);
    }
}

void frames_after_receive(void *opaque, struct ndtest_node *node, const struct ndtest_frame *frame)
{
    struct world *world = opaque;
    struct site *site = site_of(world, node);
    const struct ndtest_packet *packet = &site->packet;
    uint64_t executed = ndtest_node_counter(node, NETDAM_COUNTER_REQUESTS_EXECUTED) - site->executed_before;
    uint64_t base;
    uint64_t length;
    bool modifies;

    world->tally->damaged += frame->damaged;
    tamper_after_message(world->tamper, site, executed == 1);
    oracle_observe_taken(world, site);
    if (executed > 1 || (executed == 1 && !site->packet_valid)) {
        violation(world, 2, "node %u counts %llu executed requests for one frame", node->index,
                  (unsigned long long)executed);
    }
    if (site->packet_valid && packet->kind == NETDAM_KIND_REQUEST) {
        if (executed == 1 && op_modifies(packet->opcode)) {
            applied(world, site, frame);
        } else if (op_modifies(packet->opcode)) {
            const struct piece *piece = piece_find(world, packet->context, packet_number(packet));

            world->tally->checks[5]++;
            world->tally->late_refused += piece != NULL && world->ops[piece->op].state == OP_COMPLETE;
            if (site->deliveries != 0) {
                violation(world, 3, "node %u did not execute opcode 0x%x, and used a receive buffer for it",
                          node->index, packet->opcode);
            }
        }
        if ((packet->flags & NETDAM_FLAG_UNRELIABLE) != 0 && site->answer_count != 0) {
            violation(world, 2, "node %u answers an UNRELIABLE request", node->index);
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
    for (unsigned i = 0; i < site->answer_count; i++) {
        const struct ndtest_packet *answer = &site->answers[i];

        if (site->packet_valid && packet->kind == NETDAM_KIND_REQUEST && packet_notifies(packet) &&
            (answer->flags & NETDAM_FLAG_AGAIN) == 0 &&
            (answer->status == NETDAM_STATUS_NOT_READY || answer->status == NETDAM_STATUS_BAD_LENGTH)) {
            receive_judge_refusal(world, site, answer->status);
        }
        sent_response(world, site, answer, site->answer_values[i]);
    }
    site->packet_valid = false;
    site->receiving = false;
    site->answer_count = 0;
}
