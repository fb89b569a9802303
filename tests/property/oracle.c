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
        if (queue->rq_log2 != 0 && within(offset, bytes, queue->rq_base, netdam_ring_bytes(queue->rq_log2, 64))) {
            return reads || within(offset, bytes, queue->rq_base, 128);
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

        if (access == NETDAM_FW_ACCESS_READ && buffer_lists(&op->buffer, offset, bytes)) {
            return true;
        }
        if (op->local_dead || !buffer_holds(&op->buffer, offset, bytes)) {
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
    if (access_to_buffer(world, site, offset, bytes, access) || access_to_witness(offset, bytes) ||
        receive_access(world, site, offset, bytes, reads)) {
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
        .transmitted = frames_transmitted,
        .before_receive = frames_before_receive,
        .after_receive = frames_after_receive,
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
            site->owed[i]++;
            world->tally->wrapped += site->seen_taken[i] == 0;
        }
    }
    receive_observe(world, site);
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
            if ((completion.flags & NETDAM_COMPLETION_RECEIVE) != 0) {
                receive_polled(world, site, i, &completion);
            } else {
                judge_completion(world, site, i, &completion);
            }
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
        if (queue->open && queue->rq_log2 != 0) {
            const struct netdam_ring *rq = (const void *)(site->node.memory + queue->rq_base);

            if (rq->producer != queue->receive_produced || rq->producer_flags != 0) {
                violation(world, 4, "node %u queue %u: the device has stored in software's half of a receive ring",
                          site->node.index, i);
            }
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

        if (queue->open &&
            (within(offset, 1, queue->sq_base, netdam_ring_bytes(queue->sq_log2, 64)) ||
             within(offset, 1, queue->cq_base, netdam_ring_bytes(queue->cq_log2, 32)) ||
             (queue->rq_log2 != 0 && within(offset, 1, queue->rq_base, netdam_ring_bytes(queue->rq_log2, 64))))) {
            return true;
        }
    }
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op_writes_local(op) && buffer_holds(&op->buffer, offset, 1)) {
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
    world->ops[world->op_count].buffer.slot = NONE;
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
        buffer_release(site, &op->buffer);
        op_forget(site, index);
    }
    receive_abandon(world, site, queue);
    site->owed[queue] = 0;
}
