/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests that software posts in the property test, and what it knows of each when it posts it. */
#include "world.h"

#define LOCAL_BOTH (NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE)

static uint64_t draw(struct world *world, uint64_t limit)
{
    return ndtest_random_below(&world->random, limit);
}

static bool chance(struct world *world, unsigned percent)
{
    return ndtest_random_chance(&world->random, percent * 10000);
}

static uint64_t now(const struct world *world)
{
    return world->wire.now_ns;
}

static uint64_t draw_length(struct world *world)
{
    uint64_t payload = world->payload_max;

    switch (draw(world, 10)) {
    case 0:
        return draw(world, 3) == 0 ? 0 : 1 + draw(world, 3);
    case 1:
    case 2:
    case 3:
        return 8 * (1 + draw(world, 4));
    case 4:
        return 1 + draw(world, 64);
    case 5:
        return payload - 1 + draw(world, 3);
    case 6:
        return payload + draw(world, 2 * payload + 1);
    case 7:
        return 8 * draw(world, payload / 8 * 2);
    default:
        return 1 + draw(world, payload);
    }
}

static uint64_t draw_address(struct world *world, uint64_t region_bytes, uint64_t length)
{
    uint64_t room = region_bytes > length ? region_bytes - length : 0;
    uint64_t address;

    switch (draw(world, 6)) {
    case 0:
        return room;
    case 1:
        return draw(world, room + 1);
    case 2:
        return 0;
    default:
        address = 8 * draw(world, 8);
        return address <= room ? address : room;
    }
}

/* A number that stands for one descriptor would be bound to a look-alike: none such at the same time. */
static bool ambiguous(struct world *world, struct site *site, const struct netdam_descriptor *d, uint32_t split)
{
    uint64_t tail = d->length % split;

    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct netdam_descriptor *o = &world->ops[site->outstanding[i]].d;

        if (o->opcode != d->opcode || o->remote_key != d->remote_key) {
            continue;
        }
        if (op_atomic(d->opcode)
                ? o->remote_address == d->remote_address && o->type == d->type
                : op_modifies(d->opcode) && (tail < 8 || o->length % world->ops[site->outstanding[i]].split < 8) &&
                      o->remote_address + o->length == d->remote_address + d->length) {
            uint64_t mask = (UINT64_C(1) << (8 * (element_bytes(d->type) & 7))) - 1;

            mask = mask == 0 ? UINT64_MAX : mask;
            if (!op_atomic(d->opcode) || ((o->u.operand[0] ^ d->u.operand[0]) & mask) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void draw_instruction(struct world *world, struct netdam_descriptor *d)
{
    uint64_t which = draw(world, 100);
    bool reduces = false;

    if (world->burst.opcode != 0) {
        d->opcode = world->burst.opcode;
    } else if (which < 24) {
        d->opcode = NETDAM_OP_WRITE;
    } else if (which < 40) {
        d->opcode = NETDAM_OP_READ;
    } else if (which < 48) {
        d->opcode = NETDAM_OP_FETCH_ADD;
    } else if (which < 56) {
        d->opcode = NETDAM_OP_CAS;
    } else if (which < 62) {
        d->opcode = NETDAM_OP_SWAP;
    } else if (which < 69) {
        d->opcode = NETDAM_OP_FETCH_OP;
        reduces = true;
    } else if (which < 86) {
        d->opcode = NETDAM_OP_REDUCE;
        reduces = true;
    } else if (which < 97) {
        d->opcode = NETDAM_OP_SEND;
    } else {
        d->opcode = NETDAM_OP_ECHO;
    }
    while (reduces &&
           (!world->executes[d->type][d->operation] || netdam_algebra(d->opcode, d->operation, d->type) < 0)) {
        d->operation = (uint8_t)(1 + draw(world, 8));
        d->type = (uint8_t)(1 + draw(world, 12));
    }
    if (op_atomic(d->opcode)) {
        while (!reduces && !world->executes[d->type][0]) {
            d->type = (uint8_t)(1 + draw(world, 8));
        }
        d->u.operand[0] = draw(world, UINT64_MAX);
        d->u.operand[1] = d->opcode == NETDAM_OP_CAS ? draw(world, UINT64_MAX) : 0;
    }
}

static bool may_be_relaxed(const struct netdam_descriptor *d)
{
    return op_modifies(d->opcode) && !op_atomic(d->opcode) && (d->flags & NETDAM_DESCRIPTOR_IMMEDIATE) == 0 &&
           (netdam_algebra(d->opcode, d->operation, d->type) & (int)NETDAM_ALG_IDEMPOTENT) != 0;
}

/* How it is delivered, and with what. Returns false if the flags do not suit: `wild`. */
static bool draw_flags(struct world *world, struct netdam_descriptor *d, bool wild)
{
    d->flags = chance(world, 4) ? NETDAM_DESCRIPTOR_FENCE : 0;
    if ((d->opcode == NETDAM_OP_WRITE && chance(world, 20)) || (d->opcode == NETDAM_OP_SEND && chance(world, 40))) {
        d->flags |= NETDAM_DESCRIPTOR_IMMEDIATE;
        d->immediate = (uint32_t)draw(world, UINT32_MAX);
    }
    if (wild && chance(world, 15)) {
        bool relaxed = chance(world, 50);

        d->flags |= relaxed ? NETDAM_DESCRIPTOR_RELAXED : NETDAM_DESCRIPTOR_ORDERED;
        return relaxed ? may_be_relaxed(d) : op_modifies(d->opcode);
    }
    if (!op_modifies(d->opcode)) {
        return true;
    }
    if (chance(world, 15) || world->burst.flags != 0) {
        d->flags |= NETDAM_DESCRIPTOR_ORDERED;
    } else if (may_be_relaxed(d) && chance(world, world->relaxed)) {
        d->flags |= NETDAM_DESCRIPTOR_RELAXED;
    } else if (!op_atomic(d->opcode) && chance(world, 8)) {
        d->flags |= NETDAM_DESCRIPTOR_UNRELIABLE;
    }
    return true;
}

/* A message to itself: a SEND, or an immediate that comes with no bytes; which it is, its immediate says. */
static void draw_message_to_itself(struct world *world, struct netdam_descriptor *d)
{
    d->opcode = chance(world, 70) ? NETDAM_OP_SEND : NETDAM_OP_WRITE;
    d->operation = NETDAM_ALU_NONE;
    d->type = NETDAM_TYPE_NONE;
    d->u.operand[0] = d->u.operand[1] = 0;
    d->flags = NETDAM_DESCRIPTOR_IMMEDIATE | (chance(world, 20) ? NETDAM_DESCRIPTOR_ORDERED : 0u);
    d->immediate = world->op_count;
    d->length = d->opcode == NETDAM_OP_SEND ? (uint32_t)draw(world, world->payload_max / 2) : 0;
}

/* The receive key of one of the target's queue pairs; perhaps one that is none. */
static uint64_t draw_receive_key(struct world *world, const struct site *target, bool wild)
{
    for (unsigned i = 0; i < 8 && !(wild && chance(world, 30)); i++) {
        const struct ndtest_queue *queue = &target->queues[draw(world, SITE_QUEUES)];

        if (queue->open && queue->rq_log2 != 0) {
            return queue->receive_key;
        }
    }
    return 1 + draw(world, UINT64_MAX - 1);
}

static bool draw_buffer(struct world *world, struct site *site, struct op *op, bool wild)
{
    uint32_t need = op->d.opcode == NETDAM_OP_READ   ? NETDAM_PERMISSION_LOCAL_WRITE
                    : op->d.opcode == NETDAM_OP_ECHO ? LOCAL_BOTH
                                                     : NETDAM_PERMISSION_LOCAL_READ;

    return buffer_draw(world, site, &op->buffer, &op->d, need, wild, &op->local_valid);
}

static void check_remote(struct world *world, struct op *op)
{
    const struct region *region = region_by_key(&world->sites[op->target], op->d.remote_key);
    uint32_t need = op->d.opcode == NETDAM_OP_READ     ? NETDAM_PERMISSION_REMOTE_READ
                    : op->d.opcode == NETDAM_OP_WRITE  ? NETDAM_PERMISSION_REMOTE_WRITE
                    : op->d.opcode == NETDAM_OP_SWAP   ? NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_READ
                    : op->d.opcode == NETDAM_OP_REDUCE ? NETDAM_PERMISSION_REMOTE_ALU
                                                       : NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ;
    unsigned size = element_bytes(op->d.type);

    if (op->d.opcode == NETDAM_OP_ECHO) {
        op->remote_valid = true;
        return;
    }
    if (op->d.opcode == NETDAM_OP_SEND) {
        op->remote_valid = receive_queue_by_key(&world->sites[op->target], op->d.remote_key) != NONE;
        return;
    }
    op->remote_valid =
        region != NULL && (region->permissions & need) == need && op->d.remote_address <= region->length &&
        op->d.length <= region->length - op->d.remote_address && (region->base + op->d.remote_address) % size == 0 &&
        op->d.length % size == 0 && ((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) == 0 || region->queue != NONE);
}

/* It is not posted after all. */
static void give_bit_back(struct world *world, const struct op *op)
{
    if (op->witness) {
        world->sites[op->target].witness[op->d.remote_address / 8].used--;
    }
}

/* Another instruction on what the target has. */
static void draw_remote(struct world *world, const struct site *target, struct netdam_descriptor *d, bool wild)
{
    const struct region *region = &target->regions[draw(world, TARGET_REGIONS)];

    if (d->opcode == NETDAM_OP_ECHO) {
        return;
    }
    if (d->opcode == NETDAM_OP_SEND) {
        d->remote_key = draw_receive_key(world, target, wild);
        return;
    }
    /* Few regions have a queue for immediates. */
    for (unsigned i = 0; i < TARGET_REGIONS && (d->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 && !wild; i++) {
        region = region->queue != NONE ? region : &target->regions[i];
    }
    d->remote_key = region->key;
    d->remote_address = draw_address(world, region->length, d->length);
    if (d->type != NETDAM_TYPE_NONE && !(wild && chance(world, 40))) {
        d->remote_address -= d->remote_address % element_bytes(d->type);
    }
    if (wild && chance(world, 30)) {
        d->remote_key = draw(world, UINT64_MAX);
    } else if (wild && chance(world, 40)) {
        d->remote_address = chance(world, 30) ? UINT64_MAX - draw(world, 64) : region->length - draw(world, 8);
    }
}

/* Fills the op in. Returns false if there is no buffer or counter for it. */
static bool draw_op(struct world *world, struct site *site, const struct peer *peer, struct op *op, bool wild)
{
    struct site *target = &world->sites[peer->target];
    bool suits = true;
    bool message = peer->target == site->node.index && chance(world, 40);

    op->d.peer = peer->handle;
    op->target = peer->target;
    op->witness = !message && (peer->target == site->node.index || chance(world, 10));
    if (message) {
        draw_message_to_itself(world, &op->d);
    } else if (!op->witness) {
        suits = draw_flags(world, &op->d, wild);
    }
    op->split = peer->split - ((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 ? 8 : 0);
    if (op->witness) {
        if (!witness_draw(world, target, world->op_count, op)) {
            return false;
        }
    } else {
        if (!message) {
            op->d.length = op_atomic(op->d.opcode) ? element_bytes(op->d.type) : (uint32_t)draw_length(world);
        }
        if (op->d.type != NETDAM_TYPE_NONE && !(wild && chance(world, 20))) {
            op->d.length -= op->d.length % element_bytes(op->d.type);
        }
        if (op->d.opcode == NETDAM_OP_SEND && op->d.length > op->split && !(wild && chance(world, 30))) {
            op->d.length %= op->split + 1;
        }
        if (op->d.opcode == NETDAM_OP_SEND && chance(world, 50)) {
            op->d.length %= 64; /* also fits a small buffer */
        }
        draw_remote(world, target, &op->d, wild && !message);
    }
    if (!op_atomic(op->d.opcode) && !draw_buffer(world, site, op, wild && !op->witness)) {
        return false;
    }
    op->local_valid = (op->local_valid || op_atomic(op->d.opcode)) && suits &&
                      (op->d.opcode != NETDAM_OP_SEND || op->d.length <= op->split);
    check_remote(world, op);
    if (op->d.length % element_bytes(op->d.type) != 0) {
        op->any_status = true; /* the device may refuse it as well as the node */
    }
    return true;
}

/* What it reads from its own memory. */
static void fill_buffer(struct world *world, struct site *site, struct op *op)
{
    buffer_fill(world, site, &op->buffer);
    if (op->witness && op->buffer.slot != NONE) {
        uint8_t bytes[8];

        reference_store(bytes, 8, op->bit);
        buffer_scatter(site->node.memory, &op->buffer, bytes, 8);
        buffer_scatter(site->shadow, &op->buffer, bytes, 8);
    }
    op->echo_hash_low =
        (uint32_t)ndtest_hash(0, buffer_gather(world, site, &op->buffer, 0, op->d.length), op->d.length);
}

/* Half of the compares should hold. Returns false if it would be another's look-alike. */
static bool aim_compare(struct world *world, struct site *site, struct op *op)
{
    const struct site *target = &world->sites[op->target];
    const struct region *region = region_by_key(&world->sites[op->target], op->d.remote_key);

    if (op->d.opcode != NETDAM_OP_CAS || !op->remote_valid || region == NULL || !chance(world, 60)) {
        return true;
    }
    op->d.u.operand[0] =
        reference_load(target->shadow + region->base + op->d.remote_address, element_bytes(op->d.type));
    if (ambiguous(world, site, &op->d, op->split)) {
        op->d.u.operand[0] = ~op->d.u.operand[0];
        return !ambiguous(world, site, &op->d, op->split);
    }
    return true;
}

bool request_post(struct world *world, struct site *site, unsigned queue, const struct peer *peer, enum post_mood mood)
{
    struct op op = {.node = (uint8_t)site->node.index,
                    .queue = (uint8_t)queue,
                    .buffer = {.slot = NONE},
                    .first_piece = NONE,
                    .calm = mood != POST_STORM};
    bool wild = !op.calm && chance(world, 8);
    unsigned action;
    uint32_t index;

    do {
        draw_instruction(world, &op.d);
    } while (mood == POST_CALM_MODIFY && (!op_modifies(op.d.opcode) || op.d.opcode == NETDAM_OP_SEND));
    if (!draw_op(world, site, peer, &op, wild)) {
        give_bit_back(world, &op);
        return false;
    }
    if (op.calm && (!op.remote_valid || !op.local_valid ||
                    (mood == POST_CALM_MODIFY && (op.d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0))) {
        give_bit_back(world, &op);
        return false;
    }
    if (!op.witness && (ambiguous(world, site, &op.d, op.split) || !aim_compare(world, site, &op))) {
        return false;
    }
    if (wild && chance(world, 10)) {
        op.d.peer = 1000 + (uint32_t)draw(world, 100000);
        op.local_valid = false;
    }
    index = op_new(world);
    op.d.user_data = index ^ world->key_salt;
    op.posted_ns = now(world);
    fill_buffer(world, site, &op);
    world->ops[index] = op;
    if (!ndtest_queue_post(&site->queues[queue], &op.d, now(world), &action)) {
        world->op_count--;
        give_bit_back(world, &op);
        return false;
    }
    if (op.buffer.slot != NONE) {
        site->slot_used[op.buffer.slot] = true;
    }
    site->posted[queue][(site->queues[queue].produced - 1) & ((1u << site->queues[queue].sq_log2) - 1)] = index;
    site->outstanding[site->outstanding_count++] = index;
    world->tally->operations++;
    if ((action & NETDAM_FW_ACTION_RUN) != 0) {
        ndtest_wire_wake(&world->wire, site->node.index);
    }
    return true;
}

/* After the storm: a request in which nothing can go wrong any more. Returns its op, or NONE. */
uint32_t request_post_calm(struct world *world, struct site *site, const struct peer *peer, bool modifying)
{
    for (unsigned i = 0; i < 200; i++) {
        if (request_post(world, site, (unsigned)draw(world, SITE_QUEUES), peer,
                         modifying ? POST_CALM_MODIFY : POST_CALM)) {
            return world->op_count - 1;
        }
    }
    return NONE;
}
