/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues: each message in exactly one posted buffer, in whole, in the order of the ring; exactly one completion
 * for each buffer that is used; nothing touched by what is refused. Completions are judged when the device has stored
 * them, and again, for being the same, when software takes them.
 */
#include "world.h"

#define RECEIVE_TAG UINT64_C(0x80000000)

static uint64_t draw(struct world *world, uint64_t limit)
{
    return ndtest_random_below(&world->random, limit);
}

struct receive *receive_at(struct world *world, uint32_t index)
{
    return (struct receive *)world->receives.items + index;
}

uint32_t receive_queue_by_key(const struct site *site, uint64_t key)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        if (site->queues[i].open && site->queues[i].rq_log2 != 0 && site->queues[i].receive_key == key) {
            return i;
        }
    }
    return NONE;
}

/* A field that a receive buffer does not have. */
static void spoil(struct world *world, struct netdam_descriptor *d)
{
    switch (draw(world, 6)) {
    case 0:
        d->opcode = NETDAM_OP_SEND;
        break;
    case 1:
        d->flags |= NETDAM_DESCRIPTOR_FENCE << draw(world, 6);
        break;
    case 2:
        d->remote_key = 1 + draw(world, 100);
        break;
    case 3:
        d->immediate = 1;
        break;
    case 4:
        d->u.buffer.result_address = 1;
        break;
    default:
        d->peer = 1;
        break;
    }
}

void receive_post(struct world *world, struct site *site, unsigned queue)
{
    struct ndtest_queue *ring = &site->queues[queue];
    struct netdam_descriptor d = {0};
    struct receive *receive;
    struct buffer buffer;
    uint32_t index = world->receives.used;
    bool wild = draw(world, 100) < 6;
    bool valid;

    if (!ring->open || ring->rq_log2 == 0 || buffer_free_slots(site) < SITE_SLOTS / 3 ||
        ring->receive_produced - ndtest_queue_received(ring) >= 1u << ring->rq_log2) {
        return;
    }
    d.length = draw(world, 10) == 0 ? (uint32_t)draw(world, 64) : world->payload_max - (uint32_t)draw(world, 20);
    d.user_data = (index | RECEIVE_TAG) ^ world->key_salt;
    if (!buffer_draw(world, site, &buffer, &d, NETDAM_PERMISSION_LOCAL_WRITE, wild, &valid)) {
        return;
    }
    /* Few in the first local region: it could never be destroyed. */
    if (buffer.slot < SITE_SLOTS / LOCAL_REGIONS && draw(world, 10) != 0) {
        return;
    }
    if (wild && valid) {
        spoil(world, &d);
        valid = false;
    }
    buffer_fill(world, site, &buffer);
    if (!ndtest_queue_post_receive(ring, &d)) {
        return;
    }
    receive = table_add(&world->receives, sizeof(*receive));
    *receive = (struct receive){.buffer = buffer,
                                .length = d.length,
                                .node = (uint8_t)site->node.index,
                                .queue = (uint8_t)queue,
                                .state = RECEIVE_POSTED,
                                .valid = valid};
    if (buffer.slot != NONE) {
        site->slot_used[buffer.slot] = true;
    }
    site->received[queue][(ring->receive_produced - 1) & ((1u << ring->rq_log2) - 1)] = index;
}

/* The n-th buffer, from the next one on, that is still in the ring. */
static struct receive *waiting(struct world *world, struct site *site, unsigned queue, uint32_t n)
{
    const struct ndtest_queue *ring = &site->queues[queue];

    if (ring->receive_produced - site->seen_received[queue] <= n) {
        return NULL;
    }
    return receive_at(world, site->received[queue][(site->seen_received[queue] + n) & ((1u << ring->rq_log2) - 1)]);
}

static void expect_memory(struct world *world, struct site *site, const struct receive *receive, const char *what)
{
    world->tally->checks[2]++;
    if (!buffer_as_expected(world, site, &receive->buffer)) {
        violation(world, 2, "node %u queue %u: a receive buffer of %u bytes does not hold %s", site->node.index,
                  receive->queue, receive->length, what);
    }
}

/* A message or immediate that a frame has brought. */
static void delivered(struct world *world, struct site *site, struct receive *receive)
{
    const struct ndtest_packet *packet = &site->packet;
    const struct netdam_completion *c = &receive->completion;
    const struct region *region = region_by_key(site, packet->key);
    bool immediate = (packet->flags & NETDAM_FLAG_IMMEDIATE) != 0;
    uint32_t queue = NONE;

    site->deliveries++;
    if (site->packet_valid && packet->kind == NETDAM_KIND_REQUEST && packet_notifies(packet)) {
        queue = packet->opcode == NETDAM_OP_SEND ? receive_queue_by_key(site, packet->key)
                : region != NULL                 ? region->queue
                                                 : NONE;
    }
    if (queue != receive->queue) {
        violation(world, 2, "node %u queue %u: a receive buffer is used by what is for none of this queue",
                  site->node.index, receive->queue);
        return;
    }
    if (c->opcode != packet->opcode || c->length != packet->length || c->result != packet->immediate ||
        c->immediate != (uint32_t)packet->immediate ||
        c->flags != (NETDAM_COMPLETION_RECEIVE | (immediate ? NETDAM_COMPLETION_IMMEDIATE : 0u))) {
        violation(world, 2, "node %u queue %u: a receive completion says opcode 0x%x length %u flags 0x%x result %llx",
                  site->node.index, receive->queue, c->opcode, c->length, c->flags, (unsigned long long)c->result);
    }
    if (packet->opcode == NETDAM_OP_SEND) {
        if (packet->length > receive->length) {
            violation(world, 4, "node %u queue %u: a message of %u bytes in a buffer of %u", site->node.index,
                      receive->queue, packet->length, receive->length);
            return;
        }
        buffer_scatter(site->shadow, &receive->buffer, packet->payload, packet->length);
    }
    expect_memory(world, site, receive, "its message, in whole, and nothing else");
}

/* A message to itself, which no wire shows: its immediate names the request. */
static void delivered_to_itself(struct world *world, struct site *site, struct receive *receive)
{
    const struct netdam_completion *c = &receive->completion;
    struct op *op = c->immediate < world->op_count ? &world->ops[c->immediate] : NULL;

    if (op == NULL || op->node != site->node.index || op->target != op->node || op->d.opcode != c->opcode ||
        c->flags != (NETDAM_COMPLETION_RECEIVE | NETDAM_COMPLETION_IMMEDIATE) || c->length != op->d.length ||
        c->result != c->immediate) {
        violation(world, 2, "node %u queue %u: a receive completion for a message (%x, %u bytes) that nobody has sent",
                  site->node.index, receive->queue, c->immediate, c->length);
        return;
    }
    if (op->delivered && !op_unreliable(op)) {
        violation(world, 2, "node %u queue %u: a message to itself is delivered twice", site->node.index,
                  receive->queue);
    }
    if (op->state != OP_TAKEN && !op_laneless(op)) {
        violation(world, op->state == OP_COMPLETE && status_refuses(op->status) ? 3 : 5,
                  "node %u queue %u: a message to itself is delivered when its request is over", site->node.index,
                  receive->queue);
    }
    op->delivered = true;
    if (op->d.opcode == NETDAM_OP_SEND) {
        const uint8_t *bytes = buffer_gather(world, site, &receive->buffer, 0, op->d.length);

        if (op->d.length > receive->length || (uint32_t)ndtest_hash(0, bytes, op->d.length) != op->echo_hash_low) {
            violation(world, 2, "node %u queue %u: a message to itself is not what was sent", site->node.index,
                      receive->queue);
            return;
        }
        buffer_scatter(site->shadow, &receive->buffer, bytes, op->d.length);
    }
    expect_memory(world, site, receive, "its message and nothing else");
}

static void used(struct world *world, struct site *site, unsigned queue, const struct netdam_completion *c)
{
    uint64_t index = c->user_data ^ world->key_salt ^ RECEIVE_TAG;
    struct receive *receive = waiting(world, site, queue, 0);

    world->tally->checks[1]++;
    if (receive == NULL || index >= world->receives.used || receive_at(world, (uint32_t)index) != receive ||
        receive->state != RECEIVE_POSTED) {
        violation(world, 1, "node %u queue %u: a receive completion (user data %llx) that is not the next buffer's",
                  site->node.index, queue, (unsigned long long)c->user_data);
        return;
    }
    site->seen_received[queue]++;
    receive->completion = *c;
    receive->state = RECEIVE_DONE;
    if (c->queue_pair != site->queues[queue].id || c->hop != 0) {
        violation(world, 1, "node %u queue %u: a receive completion names queue pair %u, hop %u", site->node.index,
                  queue, c->queue_pair, c->hop);
    }
    if (c->status == NETDAM_STATUS_OK) {
        world->tally->messages++;
        if (!receive->valid) {
            violation(world, 4, "node %u queue %u: an impossible receive buffer was used", site->node.index, queue);
        }
        if (site->receiving) {
            delivered(world, site, receive);
        } else {
            delivered_to_itself(world, site, receive);
        }
        return;
    }
    if (c->flags != NETDAM_COMPLETION_RECEIVE || c->length != 0 || c->result != 0 || c->opcode != 0) {
        violation(world, 1, "node %u queue %u: an unused receive buffer completes with flags 0x%x, %u bytes",
                  site->node.index, queue, c->flags, c->length);
    }
    if (c->status == NETDAM_STATUS_FLUSHED ? !receive->flush_due
                                           : receive->valid || status_class(c->status) != NETDAM_STATUS_CLASS_LOCAL) {
        violation(world, c->status == NETDAM_STATUS_FLUSHED ? 9 : 3,
                  "node %u queue %u: a receive buffer completes with status 0x%x without a cause", site->node.index,
                  queue, c->status);
    }
    expect_memory(world, site, receive, "what it held before");
}

void receive_observe(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];
        uint32_t ready = queue->open ? ndtest_queue_ready(queue) : 0;

        if (!queue->open || ready > 1u << queue->cq_log2) {
            continue; /* said by whoever takes completions */
        }
        while (site->seen_produced[i] != queue->consumed + ready && !world->failed) {
            struct netdam_completion completion;
            uint32_t place = site->seen_produced[i]++ & ((1u << queue->cq_log2) - 1);

            memcpy(&completion, site->node.memory + queue->cq_base + 128 + 32 * (uint64_t)place, sizeof(completion));
            if ((completion.flags & NETDAM_COMPLETION_RECEIVE) != 0) {
                used(world, site, i, &completion);
            } else {
                site->owed[i]--;
            }
        }
        if (queue->rq_log2 != 0 && ndtest_queue_received(queue) != site->seen_received[i]) {
            violation(world, 1, "node %u queue %u: receive buffers up to %u are used, completions tell of %u",
                      site->node.index, i, ndtest_queue_received(queue), site->seen_received[i]);
        }
    }
}

void receive_polled(struct world *world, struct site *site, unsigned queue, const struct netdam_completion *completion)
{
    uint64_t index = completion->user_data ^ world->key_salt ^ RECEIVE_TAG;
    struct receive *receive = index < world->receives.used ? receive_at(world, (uint32_t)index) : NULL;

    world->tally->checks[1]++;
    if (receive == NULL || receive->node != site->node.index || receive->queue != queue ||
        receive->state != RECEIVE_DONE || memcmp(completion, &receive->completion, sizeof(*completion)) != 0) {
        violation(world, 1,
                  "node %u queue %u: a receive completion that was not stored, or has changed, or comes twice",
                  site->node.index, queue);
        return;
    }
    receive->state = RECEIVE_COMPLETE;
    world->wire.hash = ndtest_hash(world->wire.hash, completion, sizeof(*completion));
    world->tally->checks[6]++;
    if (!buffer_as_expected(world, site, &receive->buffer)) {
        violation(world, 6, "node %u queue %u: a receive buffer has changed after its completion", site->node.index,
                  queue);
    }
    buffer_fill(world, site, &receive->buffer);
    buffer_release(site, &receive->buffer);
}

void receive_judge_refusal(struct world *world, struct site *site, unsigned status)
{
    const struct ndtest_packet *packet = &site->packet;
    const struct region *region = region_by_key(site, packet->key);
    uint32_t queue = packet->opcode == NETDAM_OP_SEND ? receive_queue_by_key(site, packet->key)
                     : region != NULL                 ? region->queue
                                                      : NONE;
    const struct receive *next;
    const struct ndtest_queue *ring;
    bool room;

    world->tally->checks[3]++;
    if (!packet_notifies(packet) || queue == NONE) {
        violation(world, 3, "node %u refuses opcode 0x%x with status 0x%x: there is no receive queue to it",
                  site->node.index, packet->opcode, status);
        return;
    }
    next = waiting(world, site, queue, 0);
    ring = &site->queues[queue];
    room = ndtest_queue_ready(ring) + site->owed[queue] < 1u << ring->cq_log2;
    if (status == NETDAM_STATUS_NOT_READY
            ? next != NULL && room
            : packet->opcode != NETDAM_OP_SEND || next == NULL || !next->valid || next->length >= packet->length) {
        violation(world, 3, "node %u queue %u refuses a message of %u bytes with status 0x%x: a buffer of %u is there",
                  site->node.index, queue, packet->length, status, next != NULL ? next->length : 0);
    }
}

bool receive_access(struct world *world, struct site *site, uint64_t offset, uint64_t bytes, bool reads)
{
    bool message = !site->receiving ||
                   (site->packet_valid && site->packet.kind == NETDAM_KIND_REQUEST && packet_notifies(&site->packet));

    for (unsigned i = 0; i < SITE_QUEUES && message; i++) {
        const struct receive *receive;

        for (uint32_t n = 0; site->queues[i].open && (receive = waiting(world, site, i, n)) != NULL; n++) {
            if (reads ? buffer_lists(&receive->buffer, offset, bytes)
                      : receive->valid && buffer_holds(&receive->buffer, offset, bytes)) {
                return true;
            }
        }
    }
    return false;
}

void receive_flush_due(struct world *world, struct site *site, unsigned queue)
{
    struct receive *receive;

    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        for (uint32_t n = 0;
             (queue == NONE || queue == i) && site->queues[i].open && (receive = waiting(world, site, i, n)) != NULL;
             n++) {
            receive->flush_due = true;
        }
    }
}

void receive_abandon(struct world *world, struct site *site, unsigned queue)
{
    struct receive *receive;

    for (uint32_t n = 0; (receive = waiting(world, site, queue, n)) != NULL; n++) {
        receive->state = RECEIVE_ABANDONED;
        expect_memory(world, site, receive, "what it held before");
        buffer_release(site, &receive->buffer);
    }
    site->seen_received[queue] = site->queues[queue].receive_produced;
}

bool receive_names(struct world *world, struct site *site, const struct region *region)
{
    const struct receive *receive;

    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        for (uint32_t n = 0; site->queues[i].open && (receive = waiting(world, site, i, n)) != NULL; n++) {
            uint32_t slot = receive->buffer.slot;

            if (slot != NONE && region == &site->regions[TARGET_REGIONS + slot / (SITE_SLOTS / LOCAL_REGIONS)]) {
                return true;
            }
        }
    }
    return false;
}
