/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: SEND and immediates, receive buffers, and that each message comes as often as it may. */
#include "oracle.h"

#define RECEIVE_DATA UINT64_C(0x4ece14e000000000)
#define MAGIC        UINT32_C(0x0ac1e5ed)
#define QUEUE_DEPTH  12u

static bool send_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->d.opcode = NETDAM_OP_SEND;
    if (!draw_route(world, op, random)) {
        return false;
    }
    op->d.length = 8 + (uint32_t)draw_below(random, RECEIVE_BYTES - 8 + 1);
    if (draw_percent(random, world->bad_percent)) {
        op->refused = true;
        if (draw_percent(random, 50)) {
            op->d.length = RECEIVE_BYTES + 1 + (uint32_t)draw_below(random, 32);
        }
    }
    if (draw_percent(random, 40)) {
        op->d.flags |= NETDAM_DESCRIPTOR_IMMEDIATE;
        op->d.immediate = op->index + 1;
    }
    draw_mode(world, op, random);
    op->region = (uint8_t)draw_below(random, QUEUES); /* of the target */
    if (world_is_shared(world) && !draw_percent(random, world->bad_percent)) {
        op->region = op->peer;
    }
    op->refused |= world_is_shared(world) && op->region != op->peer;
    return true;
}

/* What a request carries: of a message the first 8 bytes tell which it is. */
void message_payload(const struct world *world, const struct op *op, uint8_t *bytes)
{
    struct ndtest_random random = {ndtest_mix(world->seed ^ ndtest_mix(op->index + UINT64_C(0x70617900000000)))};
    unsigned element = netdam_type_bytes(op->d.type);

    if (op->d.opcode == NETDAM_OP_REDUCE) {
        for (uint32_t at = 0; at < op->d.length; at += element) {
            uint64_t value = draw_element(&random, op->d.type);

            memcpy(bytes + at, &value, element);
        }
        return;
    }
    ndtest_random_fill(&random, bytes, op->d.length);
    if (op->d.opcode == NETDAM_OP_SEND) {
        uint32_t tag[2] = {op->index, MAGIC ^ op->index};

        memcpy(bytes, tag, sizeof(tag));
    }
}

bool message_is_readable(const uint8_t *bytes)
{
    uint32_t tag[2];

    memcpy(tag, bytes, sizeof(tag));
    return (tag[1] ^ MAGIC) == tag[0];
}

static bool send_act(struct world *world, struct op *op)
{
    uint8_t payload[BIG_BYTES];

    message_payload(world, op, payload);
    if (!buffer_take(world, op, payload)) {
        return false;
    }
    op->d.remote_key = world->sites[op->target].queues[op->region].receive_key;
    if (op->refused && op->d.length <= RECEIVE_BYTES && !(world_is_shared(world) && op->region != op->peer)) {
        op->d.remote_key ^= 1 + ndtest_random_below(&world->random, UINT32_MAX);
    }
    if (!post_descriptor(world, op)) {
        slot_release(world, &world->sites[op->site], op->slot);
        return false;
    }
    return true;
}

static void send_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    enum netdam_status_class class_of_status = netdam_status_class_of(completion->status);
    bool unreliable = (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0;

    slot_release(world, &world->sites[op->site], op->slot);
    message_ended(world, op);
    if (completion->status == NETDAM_STATUS_OK && op->refused && !unreliable) {
        fail(world, FAILURE_ACCEPTED, "message %u", op->index);
    } else if (completion->status == NETDAM_STATUS_OK && completion->length != op->d.length) {
        fail(world, FAILURE_COMPLETION, "message %u of %u bytes: %u", op->index, op->d.length, completion->length);
    } else if (class_of_status != NETDAM_STATUS_CLASS_SUCCESS && class_of_status != NETDAM_STATUS_CLASS_UNCERTAIN &&
               !op->refused && completion->status != NETDAM_STATUS_NOT_READY &&
               /* A queue pair that came back after a reset has another key. */
               !(completion->status == NETDAM_STATUS_BAD_KEY && world->sites[op->target].restarted != 0)) {
        fail(world, FAILURE_REFUSED, "message %u: status 0x%02x", op->index, completion->status);
    }
}

void message_ended(struct world *world, struct op *op)
{
    bool certain = netdam_status_class_of(op->status) != NETDAM_STATUS_CLASS_UNCERTAIN &&
                   (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) == 0;

    /* A message to the node itself may have come within the call, and be noticed after this. */
    op->expires_ns = world->net.loop.now_ns + (certain ? 0 : world->lifetime_ns);
}

static uint32_t most_deliveries(const struct world *world, const struct op *op)
{
    if (op->refused) {
        return 0;
    }
    return (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0 ? world->copies : 1;
}

static struct op *find_message(struct world *world, const struct netdam_completion *completion, const uint8_t *buffer)
{
    uint32_t tag[2];
    uint32_t index = completion->immediate - 1;

    if (completion->opcode == NETDAM_OP_SEND) {
        memcpy(tag, buffer, sizeof(tag));
        index = tag[0];
        if ((tag[1] ^ MAGIC) != index) {
            return NULL;
        }
    }
    return index < world->op_count ? &world->ops[index] : NULL;
}

static uint8_t filler(const struct world *world, uint32_t slot)
{
    return (uint8_t)(ndtest_mix(world->seed + slot) | 1);
}

static bool content_is_right(const struct world *world, const struct op *op, uint32_t slot, const uint8_t *buffer)
{
    uint8_t expected[RECEIVE_BYTES];

    memset(expected, filler(world, slot), sizeof(expected));
    if (op->d.opcode == NETDAM_OP_SEND) {
        message_payload(world, op, expected);
    }
    return memcmp(buffer, expected, sizeof(expected)) == 0;
}

/* Whoever gets an immediate looks at what was written at once. */
static void look_at_written(struct world *world, struct op *op)
{
    static struct piece pieces[PIECES_MAX];
    const struct site *site = &world->sites[op->target];
    unsigned count = op->d.opcode == NETDAM_OP_WRITE ? pieces_of(world, op, shared_address(op), pieces) : 0;

    for (unsigned i = 0; i < count; i++) {
        struct step step = {.opcode = NETDAM_OP_READ, .word = pieces[i].step.word, .bytes = 8};
        uint64_t seen;

        memcpy(&seen, site->node.memory + SHARED_BASE + object_address(pieces[i].object) + 8u * step.word,
               sizeof(seen));
        effect_instant(world, op, pieces[i].object, &step, true, seen);
    }
}

static void judge_message(struct world *world, struct site *site, unsigned queue, uint32_t slot,
                          const struct netdam_completion *completion)
{
    uint8_t buffer[RECEIVE_BYTES];
    struct gather gather;
    struct op *op;
    bool immediate = (completion->flags & NETDAM_COMPLETION_IMMEDIATE) != 0;
    uint64_t now_ns = world->net.loop.now_ns;

    gather_draw(site->receive_pieces[slot], RECEIVE_BYTES, &gather);
    gather_get(&gather, site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES, buffer);
    op = find_message(world, completion, buffer);
    if (op == NULL || op->d.opcode != completion->opcode || op->target != site->index || op->state == OP_WAITING ||
        op->state == OP_SKIPPED || queue != (op->d.opcode == NETDAM_OP_SEND ? op->region : op->peer) ||
        op->d.length > RECEIVE_BYTES + 8192 || immediate != ((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0) ||
        (immediate && (completion->result != op->d.immediate || completion->immediate != op->d.immediate))) {
        fail(world, FAILURE_MESSAGE, "site %u, queue %u: a message that nobody sent", site->index, queue);
        return;
    }
    world->tally->messages++;
    op->deliveries++;
    if (op->deliveries > most_deliveries(world, op)) {
        fail(world, FAILURE_MESSAGE, "message %u came %u times", op->index, op->deliveries);
    } else if (op->state == OP_POSTED && op->site != op->target) {
        fail(world, FAILURE_MESSAGE, "message %u came before one that it had to wait for had completed", op->index);
    } else if (op->state == OP_DONE && now_ns > op->expires_ns) {
        fail(world, FAILURE_MESSAGE, "message %u came after it had ended with status 0x%02x", op->index, op->status);
    } else if (!content_is_right(world, op, slot, buffer) ||
               (op->d.opcode == NETDAM_OP_SEND && completion->length != op->d.length)) {
        fail(world, FAILURE_MESSAGE, "message %u is not what was sent", op->index);
    } else if (op->delivered == 0) {
        op->delivered = world_tick(world);
        look_at_written(world, op);
    }
}

void message_received(struct world *world, struct site *site, unsigned queue,
                      const struct netdam_completion *completion)
{
    uint64_t slot = completion->user_data ^ RECEIVE_DATA;
    uint32_t *posted = site->receive_posted[queue];

    if (slot >= RECEIVE_SLOTS || site->receive_count[queue] == 0 || posted[0] != slot) {
        fail(world, FAILURE_MESSAGE, "site %u, queue %u: not the receive buffer whose turn it was", site->index, queue);
        return;
    }
    site->receive_count[queue]--;
    memmove(posted, posted + 1, site->receive_count[queue] * sizeof(posted[0]));
    if (completion->status == NETDAM_STATUS_OK) {
        judge_message(world, site, queue, (uint32_t)slot, completion);
    } else if (completion->status != NETDAM_STATUS_FLUSHED) {
        fail(world, FAILURE_MESSAGE, "site %u: a receive buffer ended with status 0x%02x", site->index,
             completion->status);
    }
    site->receive_used[slot] = false;
    site->receive_hash[slot] =
        ndtest_hash(slot, site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES, RECEIVE_BYTES);
    if (completion->status == NETDAM_STATUS_OK && ndtest_random_chance(&world->random, 10000 * world->repost_percent)) {
        receive_post(world, site, queue);
    }
}

static void receive_check(struct world *world, struct site *site, uint32_t slot)
{
    const uint8_t *buffer = site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES;

    if (site->receive_used[slot]) {
        for (uint32_t i = 0; i < RECEIVE_BYTES; i++) {
            if (buffer[i] != filler(world, slot)) {
                fail(world, FAILURE_BUFFER, "site %u: receive buffer %u changed without a message", site->index, slot);
                return;
            }
        }
    } else if (site->receive_hash[slot] != ndtest_hash(slot, buffer, RECEIVE_BYTES)) {
        fail(world, FAILURE_BUFFER, "site %u: receive buffer %u changed after its message", site->index, slot);
    }
}

void receives_check(struct world *world, struct site *site)
{
    for (uint32_t slot = 0; slot < RECEIVE_SLOTS; slot++) {
        receive_check(world, site, slot);
    }
}

void receive_post(struct world *world, struct site *site, unsigned queue)
{
    for (uint32_t slot = 0; slot < RECEIVE_SLOTS; slot++) {
        struct netdam_descriptor descriptor = {
            .user_data = RECEIVE_DATA | slot,
            .length = RECEIVE_BYTES,
            .local_region = REGION_LOCAL,
            .u.buffer.local_address = RECEIVE_BASE - LOCAL_BASE + slot * RECEIVE_BYTES,
        };
        struct gather gather;

        if (site->receive_used[slot] || site->receive_count[queue] >= QUEUE_DEPTH) {
            continue;
        }
        receive_check(world, site, slot);
        memset(site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES, filler(world, slot), RECEIVE_BYTES);
        site->receive_pieces[slot] = 0;
        if (ndtest_random_chance(&world->random, 10000 * world->list_percent)) {
            site->receive_pieces[slot] = ndtest_random_next(&world->random) | 1;
            gather_draw(site->receive_pieces[slot], RECEIVE_BYTES, &gather);
            gather_list(&gather, RECEIVE_BASE - LOCAL_BASE + slot * RECEIVE_BYTES,
                        site->node.memory + RECEIVE_LISTS + slot * LIST_BYTES);
            descriptor.flags = NETDAM_DESCRIPTOR_LIST;
            descriptor.list_count = (uint8_t)gather.count;
            descriptor.u.buffer.local_address = RECEIVE_LISTS - LOCAL_BASE + slot * LIST_BYTES;
        }
        if (ndtest_queue_post_receive(&site->queues[queue], &descriptor)) {
            site->receive_used[slot] = true;
            site->receive_posted[queue][site->receive_count[queue]++] = slot;
        } else {
            site->receive_hash[slot] =
                ndtest_hash(slot, site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES, RECEIVE_BYTES);
        }
        return;
    }
}

static bool receive_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    op->queue = (uint8_t)draw_below(random, QUEUES);
    op->d.length = 1 + (uint32_t)draw_below(random, QUEUE_DEPTH);
    return true;
}

/* Software posts more receive buffers. */
static bool receive_act(struct world *world, struct op *op)
{
    for (uint32_t i = 0; i < op->d.length; i++) {
        receive_post(world, &world->sites[op->site], op->queue);
    }
    return true;
}

void messages_check(struct world *world)
{
    for (uint32_t i = 0; i < world->op_count; i++) {
        const struct op *op = &world->ops[i];
        bool message = op->d.opcode == NETDAM_OP_SEND || (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;

        if (op->state != OP_DONE || !message || (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0) {
            continue;
        }
        if (op->status == NETDAM_STATUS_OK && op->deliveries != 1) {
            fail(world, FAILURE_MESSAGE, "message %u completed as OK and came %u times", i, op->deliveries);
        } else if (netdam_status_class_of(op->status) != NETDAM_STATUS_CLASS_UNCERTAIN &&
                   op->status != NETDAM_STATUS_OK && op->deliveries != 0) {
            fail(world, FAILURE_MESSAGE, "message %u was refused with status 0x%02x and came", i, op->status);
        }
    }
}

const struct kind kind_send = {"send", send_draw, send_act, send_complete};
const struct kind kind_receive = {"receive", receive_draw, receive_act, NULL};
