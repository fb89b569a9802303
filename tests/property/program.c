/* SPDX-License-Identifier: BSD-3-Clause */
/* What software does in the property test: random requests, and everything that can be done to them meanwhile. */
#include "world.h"

#define LOCAL_BOTH  (NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE)
#define QUEUE_BYTES 8192u

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

static void heal(struct world *world)
{
    memset(world->wire.cut, 0, sizeof(world->wire.cut));
}

/* ---- regions ---- */

static void any_status_for_key(struct world *world, uint64_t key)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        for (uint32_t j = 0; j < world->sites[i].outstanding_count; j++) {
            struct op *op = &world->ops[world->sites[i].outstanding[j]];

            op->any_status = op->any_status || op->d.remote_key == key;
        }
    }
}

static void region_create(struct world *world, struct site *site, unsigned slot, bool keep_key)
{
    struct region *region = &site->regions[slot];
    uint32_t permissions = NETDAM_PERMISSION_ALL;
    uint64_t old_key = region->key;
    enum netdam_admin_status status;

    if (slot == WITNESS_REGION) {
        region->base = WITNESS_BASE;
        region->length = 8 * WITNESS_CELLS;
    } else if (slot >= TARGET_REGIONS) {
        uint64_t bytes = (uint64_t)SITE_SLOTS / LOCAL_REGIONS * world->slot_bytes;

        region->base = site->slot_base + (slot - TARGET_REGIONS) * bytes;
        region->length = bytes;
        permissions = chance(world, 90) ? LOCAL_BOTH : (uint32_t)draw(world, 4);
    } else {
        region->base = TARGET_BASE + slot * TARGET_BYTES + 8 * (1 + draw(world, 100));
        region->length = chance(world, 75) ? TARGET_BYTES - 1024 - draw(world, 64) : 1 + draw(world, 4096);
        if (chance(world, 20)) {
            permissions = (uint32_t)draw(world, NETDAM_PERMISSION_ALL + 1);
        }
    }
    if (permissions == 0) {
        permissions = NETDAM_PERMISSION_ALL;
    }
    keep_key |= slot == WITNESS_REGION;
    region->permissions = permissions;
    status = ndtest_region_create(&site->node, region->base, region->length, permissions,
                                  keep_key && old_key != 0 ? old_key
                                  : chance(world, 50)      ? 0
                                                           : draw(world, UINT64_MAX),
                                  now(world), &region->index, &region->key);
    if (status != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: REGION_CREATE says %d", site->node.index, (int)status);
        region->key = old_key;
        return;
    }
    region->live = true;
    region->changed_ns = now(world);
    any_status_for_key(world, region->key);
}

/*
 * Handles are used again. What is still in a ring means whatever its handles mean when it is taken, which software must
 * not leave to chance: it does not give a handle back that a descriptor in a ring names.
 */
static bool handle_waits(struct world *world, struct site *site, const struct region *region, const struct peer *peer)
{
    oracle_observe_taken(world, site);
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->state == OP_POSTED && ((region != NULL && op->slot != NONE && op->d.local_region == region->index) ||
                                       (peer != NULL && op->d.peer == peer->handle))) {
            return true;
        }
    }
    return false;
}

static void region_destroy(struct world *world, struct site *site, unsigned slot)
{
    struct region *region = &site->regions[slot];

    if (ndtest_region_destroy(&site->node, region->index, now(world)) != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: REGION_DESTROY failed", site->node.index);
    }
    region->live = false;
    region->changed_ns = now(world);
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        struct op *op = &world->ops[site->outstanding[i]];

        if (op->d.local_region == region->index && !op_atomic(op->d.opcode)) {
            op->any_status = true;
            op->local_dead = true;
            op->flush_due = true;
        }
    }
    any_status_for_key(world, region->key);
}

static void region_change(struct world *world, struct site *site, unsigned slot)
{
    if (!site->regions[slot].live) {
        region_create(world, site, slot, chance(world, 50));
        return;
    }
    if (handle_waits(world, site, &site->regions[slot], NULL)) {
        return;
    }
    region_destroy(world, site, slot);
    if (chance(world, 60)) {
        region_create(world, site, slot, chance(world, 50));
    }
}

/* ---- queue pairs ---- */

static void queue_create(struct world *world, struct site *site, unsigned slot)
{
    struct ndtest_queue *queue = &site->queues[slot];
    uint64_t sq = site->ring_base + slot * QUEUE_BYTES + 64;
    uint64_t cq = sq + netdam_ring_bytes(SQ_LOG2_MAX, 64) + 64;
    unsigned sq_log2 = 1 + (unsigned)draw(world, SQ_LOG2_MAX);
    unsigned cq_log2 = 1 + (unsigned)draw(world, CQ_LOG2_MAX);
    uint32_t first = chance(world, 70) ? 0xffffff00u + (uint32_t)draw(world, 256) : (uint32_t)draw(world, UINT32_MAX);
    enum netdam_admin_status status;

    *queue = (struct ndtest_queue){
        .node = &site->node, .sq_base = sq, .cq_base = cq, .sq_log2 = sq_log2, .cq_log2 = cq_log2, .open = true};
    status = ndtest_queue_create(queue, &site->node, sq, sq_log2, cq, cq_log2, first, now(world));
    site->seen_taken[slot] = first;
    if (status != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: QUEUE_CREATE says %d", site->node.index, (int)status);
    }
}

/* The rings are software's again; what they hold now stays. */
static void queue_gone(struct world *world, struct site *site, unsigned slot)
{
    struct ndtest_queue *queue = &site->queues[slot];

    oracle_abandon(world, site, slot);
    oracle_accept_memory(site, queue->sq_base, netdam_ring_bytes(queue->sq_log2, 64));
    oracle_accept_memory(site, queue->cq_base, netdam_ring_bytes(queue->cq_log2, 32));
    queue->open = false;
}

static void flush_is_due(struct world *world, struct site *site, unsigned queue)
{
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        struct op *op = &world->ops[site->outstanding[i]];

        if (queue == NONE || op->queue == queue) {
            op->flush_due = true;
        }
    }
}

static void queue_destroy(struct world *world, struct site *site, unsigned slot)
{
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    flush_is_due(world, site, slot);
    if (ndtest_queue_destroy(&site->queues[slot], now(world)) != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: QUEUE_DESTROY failed", site->node.index);
    }
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    queue_gone(world, site, slot);
}

/* An impossible index: the pair must stop, and flush what it had taken. */
static void queue_break(struct world *world, struct site *site, unsigned slot)
{
    struct ndtest_queue *queue = &site->queues[slot];
    uint32_t wrong = ndtest_queue_taken(queue) + (1u << queue->sq_log2) + 1 + (uint32_t)draw(world, 1000000);

    oracle_observe_taken(world, site);
    flush_is_due(world, site, slot);
    memcpy(site->node.memory + queue->sq_base, &wrong, sizeof(wrong));
    site->node.ops->register_write(site->node.state, NETDAM_PAGE_DOORBELLS + queue->id * NETDAM_PAGE_BYTES, 4, 1,
                                   now(world));
    for (unsigned i = 0; i < 4; i++) {
        struct netdam_fw_run_result result;

        site->node.ops->run(site->node.state, now(world), 65536, &result);
        oracle_observe_taken(world, site);
        oracle_poll(world, site, UINT32_MAX);
    }
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->queue == slot && op->state == OP_TAKEN) {
            violation(world, 1, "node %u queue %u: an impossible index, and opcode 0x%x is not flushed",
                      site->node.index, slot, op->d.opcode);
        }
    }
    queue_destroy(world, site, slot);
    ndtest_wire_wake(&world->wire, site->node.index);
}

/* ---- peers ---- */

static void peer_open(struct world *world, struct site *site, unsigned slot)
{
    struct peer *peer = &site->peers[slot];
    unsigned target = (unsigned)draw(world, world->site_count - 1);
    enum netdam_admin_status status;

    target += target >= site->node.index;
    /* Most of the traffic meets at two nodes. */
    if (chance(world, 60) && site->node.index != target % 2) {
        target %= 2;
    }
    if (chance(world, 12)) {
        target = site->node.index; /* loopback */
    }
    peer->target = (uint8_t)target;
    peer->family = chance(world, 25) ? 6 : 4;
    /* There is no neighbour discovery for IPv6. */
    if (target != site->node.index && (peer->family == 6 || world->all_static || chance(world, 50))) {
        ndtest_neighbour_set(&site->node, &world->sites[target].node, peer->family, now(world));
    }
    status = ndtest_peer_open(&site->node, &world->sites[target].node, peer->family, now(world), &peer->handle);
    if (status == NETDAM_ADMIN_STATUS_UNSUPPORTED && peer->family == 6) {
        peer->family = 4;
        status = ndtest_peer_open(&site->node, &world->sites[target].node, 4, now(world), &peer->handle);
    }
    peer->split =
        netdam_payload_max(site->node.config.mtu - (peer->family == 6 ? NETDAM_IPV6_BYTES - NETDAM_IPV4_BYTES : 0));
    peer->open = status == NETDAM_ADMIN_STATUS_OK;
    /* A closed peer may keep its place until the node has confirmed its end. */
    if (!peer->open && status != NETDAM_ADMIN_STATUS_NO_SPACE) {
        violation(world, 1, "node %u: PEER_OPEN says %d", site->node.index, (int)status);
    }
}

static void peer_close(struct world *world, struct site *site, unsigned slot)
{
    struct peer *peer = &site->peers[slot];

    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        struct op *op = &world->ops[site->outstanding[i]];

        if (op->d.peer == peer->handle) {
            op->flush_due = true;
            op->any_status = true;
        }
    }
    if (ndtest_peer_close(&site->node, peer->handle, now(world)) != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: PEER_CLOSE failed", site->node.index);
    }
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    for (uint32_t i = 0; i < site->outstanding_count; i++) {
        const struct op *op = &world->ops[site->outstanding[i]];

        if (op->d.peer == peer->handle && op->state == OP_TAKEN) {
            violation(world, 1, "node %u: opcode 0x%x is not flushed by PEER_CLOSE", site->node.index, op->d.opcode);
        }
    }
    peer->open = false;
    ndtest_wire_wake(&world->wire, site->node.index);
}

/* ---- the device as a whole ---- */

void program_setup(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < SITE_REGIONS; i++) {
        region_create(world, site, i, chance(world, 50));
    }
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        queue_create(world, site, i);
    }
    for (unsigned i = 0; i < SITE_PEERS - 2; i++) {
        peer_open(world, site, i);
    }
}

void program_restart(struct world *world, struct site *site)
{
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    flush_is_due(world, site, NONE);
    world->tally->resets++;
    if (!tamper_skips_stop(world->tamper)) {
        ndtest_node_stop(&site->node, now(world));
    }
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        if (site->queues[i].open) {
            queue_gone(world, site, i);
        }
    }
    for (unsigned i = 0; i < SITE_REGIONS; i++) {
        site->regions[i].live = false;
        site->regions[i].changed_ns = now(world);
    }
    for (unsigned i = 0; i < SITE_PEERS; i++) {
        site->peers[i].open = false;
    }
    for (unsigned i = 0; i < NETDAM_COUNTER_COUNT; i++) {
        world->tally->counters[i] += ndtest_node_counter(&site->node, (enum netdam_counter)i);
    }
    tamper_restarting(world->tamper, site);
    ndtest_wire_restart(&world->wire, site->node.index);
    tamper_restarted(world->tamper, site);
    program_setup(world, site);
}

/* ---- requests ---- */

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

    if (which < 30) {
        d->opcode = NETDAM_OP_WRITE;
    } else if (which < 50) {
        d->opcode = NETDAM_OP_READ;
    } else if (which < 65) {
        d->opcode = NETDAM_OP_FETCH_ADD;
    } else if (which < 75) {
        d->opcode = NETDAM_OP_CAS;
    } else if (which < 95) {
        d->opcode = NETDAM_OP_REDUCE;
        do {
            d->operation = (uint8_t)(1 + draw(world, 8));
            d->type = (uint8_t)(1 + draw(world, 12));
        } while (!world->executes[d->type][d->operation]);
    } else {
        d->opcode = NETDAM_OP_ECHO;
    }
    if (op_atomic(d->opcode)) {
        do {
            d->type = (uint8_t)(1 + draw(world, 8));
        } while (!world->executes[d->type][0]);
        d->u.operand[0] = draw(world, UINT64_MAX);
        d->u.operand[1] = d->opcode == NETDAM_OP_CAS ? draw(world, UINT64_MAX) : 0;
    }
}

static uint32_t free_slot(struct world *world, struct site *site)
{
    uint32_t first = (uint32_t)draw(world, SITE_SLOTS);

    for (uint32_t i = 0; i < SITE_SLOTS; i++) {
        if (site->slot_op[(first + i) % SITE_SLOTS] == NONE) {
            return (first + i) % SITE_SLOTS;
        }
    }
    return NONE;
}

/* Chooses the local buffer. Returns false if none is free. */
static bool draw_buffer(struct world *world, struct site *site, struct op *op, bool wild)
{
    const struct region *region;
    uint32_t need = op->d.opcode == NETDAM_OP_READ   ? NETDAM_PERMISSION_LOCAL_WRITE
                    : op->d.opcode == NETDAM_OP_ECHO ? LOCAL_BOTH
                                                     : NETDAM_PERMISSION_LOCAL_READ;
    uint32_t slot = free_slot(world, site);
    uint64_t shift;

    if (slot == NONE) {
        return false;
    }
    region = &site->regions[TARGET_REGIONS + slot / (SITE_SLOTS / LOCAL_REGIONS)];
    shift = draw(world, world->slot_bytes - op->d.length);
    if (!region->live) {
        op->d.local_region = 77 + (uint32_t)draw(world, 1000000);
        return true;
    }
    op->d.local_region = region->index;
    op->d.u.buffer.local_address = (uint64_t)(slot % (SITE_SLOTS / LOCAL_REGIONS)) * world->slot_bytes + shift;
    op->local_offset = site->slot_base + (uint64_t)slot * world->slot_bytes + shift;
    op->local_valid = (region->permissions & need) == need;
    if (wild && chance(world, 30)) {
        op->local_valid = false;
        if (chance(world, 50)) {
            op->d.local_region = 77 + (uint32_t)draw(world, 1000000);
        } else {
            op->d.u.buffer.local_address =
                chance(world, 50) ? UINT64_MAX - draw(world, 64) : region->length - op->d.length + 1 + draw(world, 100);
        }
        op->slot = NONE;
        return true;
    }
    op->slot = slot;
    return true;
}

static void check_remote(struct world *world, struct op *op)
{
    const struct region *region = region_by_key(&world->sites[op->target], op->d.remote_key);
    uint32_t need = op->d.opcode == NETDAM_OP_READ     ? NETDAM_PERMISSION_REMOTE_READ
                    : op->d.opcode == NETDAM_OP_WRITE  ? NETDAM_PERMISSION_REMOTE_WRITE
                    : op->d.opcode == NETDAM_OP_REDUCE ? NETDAM_PERMISSION_REMOTE_ALU
                                                       : NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ;
    unsigned size = element_bytes(op->d.type);

    if (op->d.opcode == NETDAM_OP_ECHO) {
        op->remote_valid = true;
        return;
    }
    op->remote_valid = region != NULL && (region->permissions & need) == need &&
                       op->d.remote_address <= region->length &&
                       op->d.length <= region->length - op->d.remote_address &&
                       (region->base + op->d.remote_address) % size == 0 && op->d.length % size == 0;
}

enum post_mood {
    POST_STORM,
    POST_CALM,
    POST_CALM_MODIFY,
};

/* It is not posted after all. */
static void give_bit_back(struct world *world, const struct op *op)
{
    if (op->witness) {
        world->sites[op->target].witness[op->d.remote_address / 8].used--;
    }
}

static bool post_one(struct world *world, struct site *site, unsigned queue, const struct peer *peer,
                     enum post_mood mood)
{
    struct op op = {.node = (uint8_t)site->node.index, .queue = (uint8_t)queue, .slot = NONE, .first_piece = NONE};
    struct site *target = &world->sites[peer->target];
    const struct region *region = &target->regions[draw(world, TARGET_REGIONS)];
    bool calm = mood != POST_STORM;
    bool wild = !calm && chance(world, 8);
    unsigned action;
    uint32_t index;

    do {
        draw_instruction(world, &op.d);
    } while (mood == POST_CALM_MODIFY && !op_modifies(op.d.opcode));
    op.calm = calm;
    op.witness = peer->target == site->node.index || chance(world, 10);
    op.d.flags = chance(world, 4) ? NETDAM_DESCRIPTOR_FENCE : 0;
    op.d.peer = peer->handle;
    op.target = peer->target;
    op.split = peer->split;
    op.d.length = op_atomic(op.d.opcode) ? element_bytes(op.d.type) : (uint32_t)draw_length(world);
    if (op.d.type != NETDAM_TYPE_NONE && !(wild && chance(world, 20))) {
        op.d.length -= op.d.length % element_bytes(op.d.type);
    }
    if (op.witness) {
        op.d.u.operand[1] = 0;
        wild = false;
        if (!witness_draw(world, target, world->op_count, &op.d)) {
            return false;
        }
    } else if (op.d.opcode != NETDAM_OP_ECHO) {
        op.d.remote_key = region->key;
        op.d.remote_address = draw_address(world, region->length, op.d.length);
        if (op.d.type != NETDAM_TYPE_NONE && !(wild && chance(world, 40))) {
            op.d.remote_address -= op.d.remote_address % element_bytes(op.d.type);
        }
        if (wild && chance(world, 30)) {
            op.d.remote_key = draw(world, UINT64_MAX);
        } else if (wild && chance(world, 40)) {
            op.d.remote_address = chance(world, 30) ? UINT64_MAX - draw(world, 64) : region->length - draw(world, 8);
        }
    }
    if (!op_atomic(op.d.opcode) && !draw_buffer(world, site, &op, wild)) {
        return false;
    }
    op.local_valid = op.local_valid || op_atomic(op.d.opcode);
    check_remote(world, &op);
    if (calm && (!op.remote_valid || !op.local_valid)) {
        give_bit_back(world, &op);
        return false;
    }
    if (op.d.length % element_bytes(op.d.type) != 0) {
        op.any_status = true; /* the device may refuse it as well as the node */
    }
    if (!op.witness && ambiguous(world, site, &op.d, op.split)) {
        return false;
    }
    if (wild && chance(world, 10)) {
        op.d.peer = 1000 + (uint32_t)draw(world, 100000);
        op.local_valid = false;
    }
    index = op_new(world);
    op.d.user_data = index ^ world->key_salt;
    op.posted_ns = now(world);
    if (op.slot != NONE) {
        ndtest_random_fill(&world->random, site->node.memory + op.local_offset, op.d.length);
        oracle_accept_memory(site, op.local_offset, op.d.length);
        op.echo_hash_low = (uint32_t)ndtest_hash(0, site->node.memory + op.local_offset, op.d.length);
    }
    if (op.d.opcode == NETDAM_OP_CAS && !op.witness && chance(world, 60) && op.remote_valid) {
        /* Half of the compares should hold. */
        op.d.u.operand[0] =
            reference_load(target->shadow + region->base + op.d.remote_address, element_bytes(op.d.type));
        if (ambiguous(world, site, &op.d, op.split)) {
            op.d.u.operand[0] = ~op.d.u.operand[0];
            if (ambiguous(world, site, &op.d, op.split)) {
                world->op_count--;
                return false;
            }
        }
    }
    world->ops[index] = op;
    if (!ndtest_queue_post(&site->queues[queue], &op.d, now(world), &action)) {
        world->op_count--;
        give_bit_back(world, &op);
        return false;
    }
    if (op.slot != NONE) {
        site->slot_op[op.slot] = index;
    }
    site->posted[queue][(site->queues[queue].produced - 1) & ((1u << site->queues[queue].sq_log2) - 1)] = index;
    site->outstanding[site->outstanding_count++] = index;
    world->tally->operations++;
    if ((action & NETDAM_FW_ACTION_RUN) != 0) {
        ndtest_wire_wake(&world->wire, site->node.index);
    }
    return true;
}

/* Whatever is missing after the storm is there again. */
void program_calm_prepare(struct world *world)
{
    heal(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];

        for (unsigned j = 0; j < SITE_REGIONS; j++) {
            if (!site->regions[j].live) {
                region_create(world, site, j, false);
            }
        }
        for (unsigned j = 0; j < SITE_QUEUES; j++) {
            if (!site->queues[j].open) {
                queue_create(world, site, j);
            }
        }
    }
}

static void post_burst(struct world *world, struct site *site)
{
    unsigned queue = (unsigned)draw(world, SITE_QUEUES);
    unsigned count = 1 + (unsigned)draw(world, 6);

    if (!site->queues[queue].open) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct peer *peer = &site->peers[draw(world, SITE_PEERS)];

        if (peer->open) {
            post_one(world, site, queue, peer, POST_STORM);
        }
    }
}

/* After the storm: a request in which nothing can go wrong any more. Returns its op, or NONE. */
uint32_t program_calm_post(struct world *world, struct site *site, const struct peer *peer, bool modifying)
{
    for (unsigned i = 0; i < 200; i++) {
        if (post_one(world, site, (unsigned)draw(world, SITE_QUEUES), peer, modifying ? POST_CALM_MODIFY : POST_CALM)) {
            return world->op_count - 1;
        }
    }
    return NONE;
}

/* ---- what else happens ---- */

void program_change_weather(struct world *world)
{
    struct ndtest_weather *weather = &world->wire.weather;
    bool crc = world->sites[0].node.config.no_payload_crc == 0;
    uint32_t bad = !world->storm ? 0 : (uint32_t)(chance(world, 15) ? 300000 : 50000) / (chance(world, 50) ? 1 : 4);

    weather->drop = (uint32_t)draw(world, bad + 1);
    weather->duplicate = (uint32_t)draw(world, bad * 2 + 1);
    weather->late = (uint32_t)draw(world, bad + 1);
    weather->corrupt_ethernet = world->all_static;
    weather->corrupt = crc ? (uint32_t)draw(world, bad + 1) : 0;
    weather->port_full = chance(world, 30) ? (uint32_t)draw(world, bad + 1) : 0;
    weather->latency_ns = 1000 + draw(world, 40000);
    weather->jitter_ns = chance(world, 50) ? draw(world, 100000) : 0;
    weather->late_ns = chance(world, 30) ? 200000000 : 5000000;
}

static void disturb(struct world *world, struct site *site)
{
    uint64_t which = draw(world, 100);
    unsigned slot;

    if (which < 25) {
        region_change(world, site, (unsigned)draw(world, TARGET_REGIONS));
    } else if (which < 32) {
        region_change(world, site, TARGET_REGIONS + (unsigned)draw(world, LOCAL_REGIONS + 1));
    } else if (which < 52) {
        slot = (unsigned)draw(world, SITE_PEERS);
        if (site->peers[slot].open && handle_waits(world, site, NULL, &site->peers[slot])) {
            return;
        }
        if (site->peers[slot].open) {
            peer_close(world, site, slot);
        } else {
            peer_open(world, site, slot);
        }
    } else if (which < 62) {
        slot = (unsigned)draw(world, SITE_QUEUES);
        if (!site->queues[slot].open) {
            queue_create(world, site, slot);
        } else if (chance(world, 75)) {
            queue_destroy(world, site, slot);
        } else {
            queue_break(world, site, slot);
        }
    } else if (which < 66) {
        program_restart(world, site);
    } else if (which < 74) {
        unsigned other = (unsigned)draw(world, world->site_count);

        world->wire.cut[site->node.index][other] = true;
        world->wire.cut[other][site->node.index] |= chance(world, 50);
    } else if (which < 84) {
        heal(world);
    } else {
        program_change_weather(world);
    }
}

/* Room in a completion ring is no event for the device: software that has made some, and has descriptors waiting,
 * rings. */
static void ring_if_waiting(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];
        uint32_t doorbell;

        if (!queue->open || ndtest_queue_taken(queue) == queue->produced) {
            continue;
        }
        doorbell = NETDAM_PAGE_DOORBELLS + queue->id * NETDAM_PAGE_BYTES;
        if ((site->node.ops->register_write(site->node.state, doorbell, 4, 1, now(world)) & NETDAM_FW_ACTION_RUN) !=
            0) {
            ndtest_wire_wake(&world->wire, site->node.index);
        }
    }
}

void program_ring_all(struct world *world)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        oracle_poll(world, &world->sites[i], UINT32_MAX);
        ring_if_waiting(world, &world->sites[i]);
    }
}

void program_action(struct world *world)
{
    struct site *site = &world->sites[draw(world, world->site_count)];
    uint64_t delay = draw(world, 2 * world->mean_ns);

    if (world->calm || world->failed) {
        return;
    }
    if (world->wire.delivered >= world->calm_at) {
        world->calm = true;
        heal(world);
        return;
    }
    if (world->storm && ndtest_random_chance(&world->random, 20000)) {
        disturb(world, site);
    } else {
        post_burst(world, site);
    }
    oracle_observe_taken(world, site);
    if (chance(world, 50)) {
        oracle_poll(world, site, (unsigned)draw(world, 4));
        ring_if_waiting(world, site);
    }
    if (ndtest_random_chance(&world->random, 500)) {
        heal(world);
        delay += site->node.config.lane_give_up_ns * (1 + draw(world, 2)); /* a long silence */
    }
    ndtest_wire_schedule(&world->wire, delay, 0);
}
