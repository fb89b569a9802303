/* SPDX-License-Identifier: BSD-3-Clause */
/* What a completion may say, given what has really happened; and the records it is judged by. */
#include "world.h"

#include <stdlib.h>

void table_init(struct table *table)
{
    memset(table, 0, sizeof(*table));
    memset(table->bucket, 0xff, sizeof(table->bucket));
}

void table_fini(struct table *table)
{
    free(table->items);
    table->items = NULL;
}

void *table_add(struct table *table, size_t item_bytes)
{
    if (table->used == table->room) {
        table->room = table->room == 0 ? 256 : 2 * table->room;
        table->items = realloc(table->items, table->room * item_bytes);
        if (table->items == NULL) {
            abort();
        }
    }
    memset((uint8_t *)table->items + table->used * item_bytes, 0, item_bytes);
    return (uint8_t *)table->items + table->used++ * item_bytes;
}

static unsigned bucket_of(uint64_t a, uint64_t b)
{
    return (unsigned)(ndtest_mix(a ^ b * UINT64_C(0x9e3779b97f4a7c15)) % BUCKETS);
}

struct piece *piece_at(struct world *world, uint32_t index)
{
    return (struct piece *)world->pieces.items + index;
}

struct piece *piece_find(struct world *world, uint64_t context, uint64_t number)
{
    uint32_t at = world->pieces.bucket[bucket_of(context, number)];

    while (at != NONE) {
        struct piece *piece = piece_at(world, at);

        if (piece->context == context && piece->number == number) {
            return piece;
        }
        at = piece->chain;
    }
    return NULL;
}

struct piece *piece_add(struct world *world, uint64_t context, uint64_t number)
{
    struct piece *piece = table_add(&world->pieces, sizeof(*piece));
    unsigned bucket = bucket_of(context, number);

    piece->context = context;
    piece->number = number;
    piece->chain = world->pieces.bucket[bucket];
    piece->next = NONE;
    world->pieces.bucket[bucket] = world->pieces.used - 1;
    return piece;
}

/* The record of a context; made for `node` if there is none and node is not NONE. */
struct context *context_get(struct world *world, uint64_t id, unsigned node)
{
    unsigned bucket = bucket_of(id, 0);
    uint32_t at = world->contexts.bucket[bucket];
    struct context *context;

    while (at != NONE) {
        context = (struct context *)world->contexts.items + at;
        if (context->id == id) {
            return context;
        }
        at = context->chain;
    }
    if (node == NONE) {
        return NULL;
    }
    context = table_add(&world->contexts, sizeof(*context));
    context->id = id;
    context->node = (uint8_t)node;
    context->incarnation = world->wire.incarnation[node];
    context->chain = world->contexts.bucket[bucket];
    world->contexts.bucket[bucket] = world->contexts.used - 1;
    return context;
}

void snapshot_add(struct world *world, const struct snapshot *snapshot)
{
    struct snapshot *copy = table_add(&world->snapshots, sizeof(*copy));
    unsigned bucket = bucket_of(snapshot->address, snapshot->key);

    *copy = *snapshot;
    copy->chain = world->snapshots.bucket[bucket];
    world->snapshots.bucket[bucket] = world->snapshots.used - 1;
}

/*
 * Invariant 7 for READ: each packet's worth of the buffer is what the far end held at a moment between post and
 * completion. On failure *missing is the offset that nothing explains.
 */
bool snapshot_explains(struct world *world, const struct op *op, const uint8_t *bytes, uint64_t *missing)
{
    uint64_t at = 0;
    bool any = false;

    while (at < op->d.length || !any) {
        uint64_t address = op->d.remote_address + at;
        uint32_t item = world->snapshots.bucket[bucket_of(address, op->d.remote_key)];
        const struct snapshot *found = NULL;

        while (item != NONE && found == NULL) {
            const struct snapshot *snapshot = (const struct snapshot *)world->snapshots.items + item;

            if (snapshot->address == address && snapshot->key == op->d.remote_key && snapshot->from == op->node &&
                snapshot->target == op->target && snapshot->at_ns >= op->posted_ns &&
                snapshot->length == (op->d.length - at < op->split ? op->d.length - at : op->split) &&
                snapshot->hash == ndtest_hash(0, bytes + at, snapshot->length)) {
                found = snapshot;
            }
            item = snapshot->chain;
        }
        if (found == NULL) {
            *missing = at;
            return false;
        }
        any = true;
        at += found->length;
    }
    return true;
}

static bool was_refused_with(struct world *world, const struct op *op, unsigned status)
{
    for (uint32_t i = op->first_piece; i != NONE; i = piece_at(world, i)->next) {
        if (piece_at(world, i)->refused && piece_at(world, i)->refusal == status) {
            return true;
        }
    }
    return false;
}

static bool refusal_has_cause(struct world *world, const struct op *op, unsigned status)
{
    struct site *target = &world->sites[op->target];
    const struct region *region = region_by_key(target, op->d.remote_key);

    if (status == NETDAM_STATUS_NOT_READY || status == NETDAM_STATUS_BAD_LENGTH) {
        bool notifies = op->d.opcode == NETDAM_OP_SEND || (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;

        /* receive.c has judged the answer; what a node tells itself is on no wire. */
        if (notifies && (op->target == op->node || was_refused_with(world, op, status))) {
            return true;
        }
    }
    if (op->d.opcode == NETDAM_OP_SEND) {
        return !op->remote_valid || op->any_status || receive_queue_by_key(target, op->d.remote_key) == NONE;
    }
    return !op->remote_valid || op->any_status || region == NULL || region->changed_ns >= op->posted_ns;
}

/* Bytes of a request that were applied, and whether any of it was applied twice. */
static uint64_t applied_bytes(struct world *world, const struct op *op, bool *twice, bool *any)
{
    uint64_t bytes = 0;

    *twice = false;
    *any = false;
    for (uint32_t i = op->first_piece; i != NONE; i = piece_at(world, i)->next) {
        const struct piece *piece = piece_at(world, i);

        if (!piece->applied) {
            continue;
        }
        *any = true;
        bytes += piece->length;
        for (uint32_t j = piece->next; j != NONE; j = piece_at(world, j)->next) {
            const struct piece *other = piece_at(world, j);

            *twice |= other->applied && other->address < piece->address + piece->length &&
                      piece->address < other->address + other->length;
        }
    }
    return bytes;
}

static void judge_ok(struct world *world, struct site *site, const struct op *op,
                     const struct netdam_completion *completion)
{
    uint64_t missing;
    bool twice;
    bool any;

    if (op->target == op->node) {
        /* To itself: no frame shows it; witness.c judges, and the receiver of a message. */
        if (!op->witness && op_modifies(op->d.opcode) && !op->delivered && !op_unreliable(op)) {
            violation(world, 2, "node %u: a message to itself completed with OK and was not delivered", op->node);
        }
    } else if (op_modifies(op->d.opcode)) {
        uint64_t bytes = applied_bytes(world, op, &twice, &any);

        world->tally->checks[2]++;
        if (op_unreliable(op) ? bytes > op->d.length : bytes != op->d.length || twice || !any) {
            violation(world, 2, "node %u: opcode 0x%x of %u bytes completed with OK, %llu bytes were applied%s",
                      op->node, op->d.opcode, op->d.length, (unsigned long long)bytes, twice ? ", some twice" : "");
            return;
        }
        if (op_atomic(op->d.opcode) && !op->witness) {
            world->tally->checks[7]++;
            if (completion->result != piece_at(world, op->first_piece)->old_value) {
                violation(world, 7, "node %u: opcode 0x%x returned %llx, memory held %llx", op->node, op->d.opcode,
                          (unsigned long long)completion->result,
                          (unsigned long long)piece_at(world, op->first_piece)->old_value);
            }
        }
    } else if (op->d.opcode == NETDAM_OP_READ) {
        world->tally->checks[7]++;
        if (!snapshot_explains(world, op, buffer_gather(world, site, &op->buffer, 0, op->d.length), &missing)) {
            violation(world, 7,
                      "node %u: READ of %u bytes at node %u completed with OK; bytes from %llu on were never "
                      "there between post and completion",
                      op->node, op->d.length, op->target, (unsigned long long)missing);
        }
    } else if (op->d.opcode == NETDAM_OP_ECHO) {
        world->tally->checks[7]++;
        if ((uint32_t)ndtest_hash(0, buffer_gather(world, site, &op->buffer, 0, op->d.length), op->d.length) !=
            op->echo_hash_low) {
            violation(world, 7, "node %u: ECHO of %u bytes came back changed", op->node, op->d.length);
        }
    }
    if (completion->length != op->d.length || (completion->flags & NETDAM_COMPLETION_PARTIAL) != 0) {
        violation(world, 2, "node %u: opcode 0x%x completed with OK, length %u flags 0x%x instead of %u", op->node,
                  op->d.opcode, completion->length, completion->flags, op->d.length);
    }
    if (!op->local_valid && !op->any_status) {
        violation(world, 4, "node %u: opcode 0x%x with an impossible local buffer completed with OK", op->node,
                  op->d.opcode);
    }
}

/* Where something was refused, here or there, each packet that was sent has its answer: the count is exact. */
static void judge_partial(struct world *world, const struct op *op, const struct netdam_completion *completion)
{
    bool twice;
    bool any;
    uint64_t bytes = applied_bytes(world, op, &twice, &any);
    bool partial = (completion->flags & NETDAM_COMPLETION_PARTIAL) != 0;

    world->tally->checks[3]++;
    world->tally->partial += partial;
    if (!op_modifies(op->d.opcode) || op_unreliable(op)) {
        return;
    }
    /* Of a RELAXED packet that was refused there, another copy may have been applied. */
    if (op_laneless(op) && status_class(completion->status) == NETDAM_STATUS_CLASS_REFUSED
            ? completion->length > bytes || partial != (completion->length != 0)
            : completion->length != bytes || partial != (bytes != 0)) {
        violation(world, 3, "node %u: opcode 0x%x refused (status 0x%x) names %u bytes%s; %llu were applied", op->node,
                  op->d.opcode, completion->status, completion->length, partial ? ", partial" : "",
                  (unsigned long long)bytes);
    }
}

static void judge_refusal(struct world *world, const struct op *op, const struct netdam_completion *completion)
{
    if (!refusal_has_cause(world, op, completion->status)) {
        violation(world, 3, "node %u: opcode 0x%x to node %u was refused (status 0x%x) without a cause", op->node,
                  op->d.opcode, op->target, completion->status);
    }
    judge_partial(world, op, completion);
}

static void judge_local(struct world *world, const struct op *op, const struct netdam_completion *completion)
{
    judge_partial(world, op, completion);
    if (completion->status == NETDAM_STATUS_UNREACHABLE) {
        return;
    }
    if (op->local_valid && !op->any_status) {
        violation(world, 3, "node %u: opcode 0x%x was refused locally (status 0x%x) without a cause", op->node,
                  op->d.opcode, completion->status);
    }
    if (!op->any_status && op->sent) {
        violation(world, 3, "node %u: opcode 0x%x was refused locally (status 0x%x) after it was sent", op->node,
                  op->d.opcode, completion->status);
    }
}

static void judge_uncertain(struct world *world, const struct op *op, const struct netdam_completion *completion)
{
    bool twice;
    bool any;
    uint64_t bytes = applied_bytes(world, op, &twice, &any);

    world->tally->checks[3]++;
    if (twice || completion->length > bytes) {
        if (op_modifies(op->d.opcode) && !op_unreliable(op)) {
            violation(world, 3, "node %u: opcode 0x%x ended with status 0x%x and %u bytes; %llu were applied%s",
                      op->node, op->d.opcode, completion->status, completion->length, (unsigned long long)bytes,
                      twice ? ", some twice" : "");
        }
    }
    if (completion->status == NETDAM_STATUS_FLUSHED && !op->flush_due) {
        violation(world, 9, "node %u: opcode 0x%x was flushed though nothing was reset, closed or destroyed", op->node,
                  op->d.opcode);
    }
    /* What a node sends to itself is on no wire, so its generation is not known here. */
    if (completion->status == NETDAM_STATUS_UNKNOWN && op->target != op->node) {
        uint64_t now = ndtest_node_register(&world->sites[op->target].node, NETDAM_REG_GENERATION);
        bool old = false;

        /* Only what was sent under an epoch that the node has left since. */
        for (uint32_t i = op->first_piece; i != NONE; i = piece_at(world, i)->next) {
            uint64_t generation = piece_at(world, i)->generation;

            old |= generation != 0 && netdam_generation_epoch(generation) != netdam_generation_epoch(now);
        }
        if (!old) {
            violation(world, 3, "node %u: opcode 0x%x is UNKNOWN though node %u lost nothing it was sent under",
                      op->node, op->d.opcode, op->target);
        }
    }
}

void judge_completion(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion)
{
    uint64_t index = completion->user_data ^ world->key_salt;
    unsigned class_of_status = status_class(completion->status);
    struct op *op;

    world->tally->checks[1]++;
    if (index >= world->op_count || world->ops[index].node != site->node.index || world->ops[index].queue != queue) {
        violation(world, 1, "node %u queue %u: a completion (user data %llx) that belongs to no descriptor of it",
                  site->node.index, queue, (unsigned long long)completion->user_data);
        return;
    }
    op = &world->ops[index];
    if (op->state != OP_TAKEN) {
        violation(world, op->state == OP_ABANDONED ? 9 : 1, "node %u: a %s completion for opcode 0x%x",
                  site->node.index, op->state == OP_COMPLETE ? "second" : "premature", op->d.opcode);
        return;
    }
    op->state = OP_COMPLETE;
    op->status = completion->status;
    op->observed = op->witness && completion->status == NETDAM_STATUS_OK ? completion->result : 0;
    op->completed_at = world->op_count;
    world->tally->statuses[completion->status]++;
    world->wire.hash = ndtest_hash(world->wire.hash, completion, sizeof(*completion));
    if (world->wire.now_ns - op->taken_ns > world->bound_ns) {
        violation(world, 1, "node %u: opcode 0x%x completed %llu ns after it was taken", site->node.index, op->d.opcode,
                  (unsigned long long)(world->wire.now_ns - op->taken_ns));
    }
    if (completion->opcode != op->d.opcode || completion->queue_pair != site->queues[queue].id ||
        (completion->flags & ~(unsigned)NETDAM_COMPLETION_PARTIAL) != 0 || completion->hop != 0) {
        violation(world, 1, "node %u: completion names opcode 0x%x, queue pair %u, flags 0x%x, hop %u",
                  site->node.index, completion->opcode, completion->queue_pair, completion->flags, completion->hop);
    }
    switch (class_of_status) {
    case NETDAM_STATUS_CLASS_SUCCESS:
        judge_ok(world, site, op, completion);
        break;
    case NETDAM_STATUS_CLASS_REFUSED:
        judge_refusal(world, op, completion);
        break;
    case NETDAM_STATUS_CLASS_LOCAL:
        judge_local(world, op, completion);
        break;
    case NETDAM_STATUS_CLASS_UNCERTAIN:
        judge_uncertain(world, op, completion);
        break;
    default:
        violation(world, 1, "node %u: a completion with status 0x%x", site->node.index, completion->status);
        break;
    }
    if (op->witness) {
        witness_judge(world, op, (uint32_t)index);
    }
    if (op->calm && completion->status != NETDAM_STATUS_OK && completion->status != NETDAM_STATUS_UNKNOWN &&
        completion->status != NETDAM_STATUS_NOT_READY && completion->status != NETDAM_STATUS_BAD_LENGTH) {
        violation(world, 1, "node %u: opcode 0x%x to node %u ended with status 0x%x over a perfect wire",
                  site->node.index, op->d.opcode, op->target, completion->status);
    }
    op_forget(site, (uint32_t)index);
    /* New use: whatever still comes for the old one must not show. */
    if (op_writes_local(op)) {
        buffer_fill(world, site, &op->buffer);
    }
    buffer_release(site, &op->buffer);
}
