/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and completions: what is posted, what has to complete before it is sent, and local buffers. */
#include "oracle.h"

#define USER_DATA UINT64_C(0x0ac1e00000000000)

static void open_op(struct world *world, struct op *op)
{
    op->state = OP_OPEN;
    /* What goes to the node itself may have begun within the call after which this is noticed. */
    op->opened = op->site == op->target && world->poll_tick != 0 ? world->poll_tick : world_tick(world);
}

static void start(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];

    if ((op->d.flags & NETDAM_DESCRIPTOR_ORDERED) == 0) {
        open_op(world, op);
    } else if (site->ordered[op->target][op->peer] == NONE) {
        site->ordered[op->target][op->peer] = op->index;
        open_op(world, op);
    } else {
        site->deferred[op->target][op->peer][site->deferred_count[op->target][op->peer]++] = op->index;
    }
}

/* Takes from a ring what may start; a FENCE waits until everything before it has completed. */
static void start_waiting(struct world *world, struct site *site, unsigned queue)
{
    while (site->waiting_count[queue] != 0) {
        struct op *op = &world->ops[site->waiting[queue][0]];

        if ((op->d.flags & NETDAM_DESCRIPTOR_FENCE) != 0 && site->started[queue] != 0) {
            return;
        }
        site->waiting_count[queue]--;
        memmove(site->waiting[queue], site->waiting[queue] + 1, site->waiting_count[queue] * sizeof(uint32_t));
        site->started[queue]++;
        start(world, op);
    }
}

static bool take_out(uint32_t *list, uint32_t *count, uint32_t op)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (list[i] == op) {
            --*count;
            memmove(list + i, list + i + 1, (*count - i) * sizeof(*list));
            return true;
        }
    }
    return false;
}

void post_ended(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];
    uint32_t *deferred = site->deferred[op->target][op->peer];
    uint32_t *deferred_count = &site->deferred_count[op->target][op->peer];

    if (!take_out(site->waiting[op->queue], &site->waiting_count[op->queue], op->index)) {
        site->started[op->queue]--;
        take_out(deferred, deferred_count, op->index);
    }
    op->state = OP_DONE;
    world->unfinished--;
    if (site->ordered[op->target][op->peer] == op->index) {
        site->ordered[op->target][op->peer] = NONE;
        if (*deferred_count != 0) {
            struct op *next = &world->ops[deferred[0]];

            take_out(deferred, deferred_count, next->index);
            start(world, next);
        }
    }
    start_waiting(world, site, op->queue);
}

bool post_descriptor(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];
    struct ndtest_queue *queue = &site->queues[op->queue];
    uint64_t now_ns = world->net.loop.now_ns;
    unsigned action;

    op->d.user_data = USER_DATA | op->index;
    if (op->d.opcode != NETDAM_OP_CHAIN && op->kind != &kind_collective) {
        op->d.peer = site->peers[op->target][op->peer];
    }
    if (!ndtest_queue_post(queue, &op->d, now_ns, &action)) {
        return false;
    }
    if ((action & NETDAM_FW_ACTION_RUN) != 0) {
        ndsim_node_wake(&world->net.nodes[op->site].node, now_ns);
    }
    op->state = OP_POSTED;
    op->posted = world_tick(world);

    world->unfinished++;
    site->waiting[op->queue][site->waiting_count[op->queue]++] = op->index;
    start_waiting(world, site, op->queue);
    return true;
}

static void completed(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion)
{
    uint64_t index = completion->user_data ^ USER_DATA;
    struct op *op;

    if (index >= world->op_count || world->ops[index].site != site->index || world->ops[index].queue != queue ||
        (world->ops[index].state != OP_POSTED && world->ops[index].state != OP_OPEN)) {
        fail(world, FAILURE_COMPLETION, "site %u: a completion for nothing: user data 0x%llx, status 0x%02x",
             site->index, (unsigned long long)completion->user_data, completion->status);
        return;
    }
    op = &world->ops[index];
    op->status = completion->status;
    world->tally->completed[completion->status]++;
    world->tally->by_opcode[op->d.opcode]++;
    if (completion->opcode != op->d.opcode || completion->queue_pair != site->queues[queue].id ||
        netdam_status_class_of(completion->status) == NETDAM_STATUS_CLASS_NONE ||
        netdam_status_class_of(completion->status) == NETDAM_STATUS_CLASS_RETRY) {
        fail(world, FAILURE_COMPLETION, "op %u: opcode 0x%02x, status 0x%02x", op->index, completion->opcode,
             completion->status);
        return;
    }
    if (op->state == OP_POSTED && completion->status == NETDAM_STATUS_OK) {
        fail(world, FAILURE_COMPLETION, "op %u completed before one that it had to wait for", op->index);
        return;
    }
    if (world->harmless && !op->refused &&
        netdam_status_class_of(completion->status) == NETDAM_STATUS_CLASS_UNCERTAIN) {
        fail(world, FAILURE_ALIVE, "op %u: status 0x%02x", op->index, completion->status);
        return;
    }
    op->kind->complete(world, op, completion);
    post_ended(world, op);
}

void post_poll(struct world *world, struct site *site)
{
    struct netdam_completion completion;

    world->poll_tick = 0;
    for (unsigned queue = 0; queue < QUEUES; queue++) {
        while (ndtest_queue_ready(&site->queues[queue]) != 0) {
            if (world->poll_tick == 0) {
                world->poll_tick = world_tick(world);
            }
            if (ndtest_queue_ready(&site->queues[queue]) > UINT32_C(1) << site->queues[queue].cq_log2) {
                fail(world, FAILURE_COMPLETION, "site %u: more completions than the ring holds", site->index);
                return;
            }
            ndtest_queue_poll(&site->queues[queue], &completion);
            if ((completion.flags & NETDAM_COMPLETION_RECEIVE) != 0) {
                message_received(world, site, queue, &completion);
            } else {
                completed(world, site, queue, &completion);
            }
            if (world->failure != FAILURE_NONE) {
                return;
            }
        }
    }
    world->poll_tick = 0;
}

uint32_t slot_offset(uint32_t slot)
{
    return slot < SMALL_SLOTS ? slot * SMALL_BYTES : SMALL_SLOTS * SMALL_BYTES + (slot - SMALL_SLOTS) * BIG_BYTES;
}

static uint64_t slot_hash(const struct site *site, uint32_t slot)
{
    return ndtest_hash(slot, site->node.memory + LOCAL_BASE + slot_offset(slot),
                       slot < SMALL_SLOTS ? SMALL_BYTES : BIG_BYTES);
}

static void slot_check(struct world *world, struct site *site, uint32_t slot)
{
    if (slot_hash(site, slot) != site->slot_hash[slot]) {
        fail(world, FAILURE_BUFFER, "site %u: buffer %u changed after its operation had completed", site->index, slot);
    }
}

uint32_t slot_take(struct world *world, struct site *site, uint32_t bytes)
{
    uint32_t first = bytes <= SMALL_BYTES ? 0 : SMALL_SLOTS;
    uint32_t count = bytes <= SMALL_BYTES ? SMALL_SLOTS : BIG_SLOTS;
    uint32_t from = (uint32_t)ndtest_random_below(&world->random, count);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first + (from + i) % count;

        if (!site->slot_used[slot]) {
            slot_check(world, site, slot);
            site->slot_used[slot] = true;
            return slot;
        }
    }
    return NONE;
}

void slot_release(struct world *world, struct site *site, uint32_t slot)
{
    (void)world;
    site->slot_used[slot] = false;
    site->slot_hash[slot] = slot_hash(site, slot);
}

void slots_check(struct world *world, struct site *site)
{
    for (uint32_t slot = 0; slot < SMALL_SLOTS + BIG_SLOTS; slot++) {
        if (!site->slot_used[slot]) {
            slot_check(world, site, slot);
        }
    }
}
