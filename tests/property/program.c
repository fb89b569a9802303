/* SPDX-License-Identifier: BSD-3-Clause */
/* What software does in the property test: everything that can be done to requests meanwhile. */
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
    uint64_t args[6] = {0};
    uint64_t results[NETDAM_ADMIN_RESULTS];
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
    region->queue = NONE;
    if (slot < TARGET_REGIONS && chance(world, 70)) {
        region->queue = (uint32_t)draw(world, SITE_QUEUES);
        region->queue = site->queues[region->queue].open ? region->queue : NONE;
    }
    args[0] = region->base;
    args[1] = region->length;
    args[2] = permissions;
    args[3] = keep_key && old_key != 0 ? old_key : chance(world, 50) ? 0 : draw(world, UINT64_MAX);
    args[5] = region->queue != NONE ? site->queues[region->queue].id + 1 : 0;
    status = ndtest_node_admin(&site->node, NETDAM_ADMIN_REGION_CREATE, args, 6, results, now(world));
    region->index = (uint32_t)results[0];
    region->key = results[1];
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

        if (op->state == OP_POSTED &&
            ((region != NULL && op->buffer.slot != NONE && op->d.local_region == region->index) ||
             (peer != NULL && op->d.peer == peer->handle))) {
            return true;
        }
    }
    return region != NULL && receive_names(world, site, region);
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
    uint64_t rq = cq + netdam_ring_bytes(CQ_LOG2_MAX, 32) + 64;
    unsigned rq_log2 = chance(world, 25) ? 0 : 1 + (unsigned)draw(world, RQ_LOG2_MAX);
    uint32_t first = chance(world, 70) ? 0xffffff00u + (uint32_t)draw(world, 256) : (uint32_t)draw(world, UINT32_MAX);
    enum netdam_admin_status status;

    *queue = (struct ndtest_queue){.node = &site->node,
                                   .sq_base = sq,
                                   .cq_base = cq,
                                   .rq_base = rq,
                                   .sq_log2 = sq_log2,
                                   .cq_log2 = cq_log2,
                                   .rq_log2 = rq_log2,
                                   .open = true};
    status =
        ndtest_queue_create_receiving(queue, &site->node, sq, sq_log2, cq, cq_log2, rq, rq_log2, first, now(world));
    site->seen_taken[slot] = site->seen_received[slot] = site->seen_produced[slot] = first;
    site->owed[slot] = 0;
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
    if (queue->rq_log2 != 0) {
        oracle_accept_memory(site, queue->rq_base, netdam_ring_bytes(queue->rq_log2, 64));
        any_status_for_key(world, queue->receive_key);
    }
    for (unsigned i = 0; i < TARGET_REGIONS; i++) {
        /* It has nowhere to put immediates any more. */
        if (site->regions[i].live && site->regions[i].queue == slot) {
            site->regions[i].queue = NONE;
            site->regions[i].changed_ns = now(world);
            any_status_for_key(world, site->regions[i].key);
        }
    }
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
    receive_flush_due(world, site, queue);
}

/* `broken`: its rings are not believed any more. */
static void queue_destroy(struct world *world, struct site *site, unsigned slot, bool broken)
{
    oracle_observe_taken(world, site);
    oracle_poll(world, site, UINT32_MAX);
    flush_is_due(world, site, slot);
    if (ndtest_queue_destroy(&site->queues[slot], now(world)) != NETDAM_ADMIN_STATUS_OK) {
        violation(world, 1, "node %u: QUEUE_DESTROY failed", site->node.index);
    }
    oracle_observe_taken(world, site);
    if (!broken && site->seen_received[slot] != site->queues[slot].receive_produced &&
        ndtest_queue_ready(&site->queues[slot]) < 1u << site->queues[slot].cq_log2) {
        violation(world, 1, "node %u queue %u: QUEUE_DESTROY leaves receive buffers without completion",
                  site->node.index, slot);
    }
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
    if (queue->rq_log2 != 0 && chance(world, 30)) {
        /* Nobody looks at a receive ring before a message comes, or the end. */
        wrong = ndtest_queue_received(queue) + (1u << queue->rq_log2) + 1 + (uint32_t)draw(world, 1000000);
        memcpy(site->node.memory + queue->rq_base, &wrong, sizeof(wrong));
        queue_destroy(world, site, slot, true);
        return;
    }
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
    queue_destroy(world, site, slot, true);
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
    if (target != site->node.index && (world->all_static || chance(world, 50))) {
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
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        queue_create(world, site, i);
    }
    for (unsigned i = 0; i < SITE_REGIONS; i++) {
        region_create(world, site, i, chance(world, 50));
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
        for (unsigned j = 0; j < 2 * SITE_QUEUES; j++) {
            if (j < SITE_QUEUES && !site->queues[j].open) {
                queue_create(world, site, j);
            }
            receive_post(world, site, j % SITE_QUEUES);
        }
    }
}

static void post_burst(struct world *world, struct site *site)
{
    unsigned queue = (unsigned)draw(world, SITE_QUEUES);
    unsigned count = 1 + (unsigned)draw(world, 6);
    const struct peer *only = NULL;

    for (unsigned i = 0; i < 1 + count / 2; i++) {
        receive_post(world, site, (unsigned)draw(world, SITE_QUEUES));
    }
    /* Many of one kind towards one peer. */
    if (chance(world, world->bursts)) {
        count *= 3 + (unsigned)draw(world, 8);
        only = &site->peers[draw(world, SITE_PEERS)];
        world->burst.flags = chance(world, 60) ? NETDAM_DESCRIPTOR_ORDERED : 0;
        world->burst.opcode = chance(world, 50) ? NETDAM_OP_SEND : 0;
    }
    for (unsigned i = 0; site->queues[queue].open && i < count; i++) {
        const struct peer *peer = only != NULL ? only : &site->peers[draw(world, SITE_PEERS)];

        if (peer->open) {
            request_post(world, site, queue, peer, POST_STORM);
        }
    }
    world->burst = (struct netdam_descriptor){0};
}

/* ---- what else happens ---- */

void program_change_weather(struct world *world)
{
    struct ndtest_weather *weather = &world->wire.weather;
    bool crc = world->sites[0].node.config.no_payload_crc == 0;
    uint32_t bad = 0;

    if (world->storm) {
        bad = chance(world, 15) ? 300000 : 50000;
        bad /= chance(world, 50) ? 1 : 4;
    }
    weather->drop = (uint32_t)draw(world, bad + 1);
    weather->duplicate = (uint32_t)draw(world, bad * 2 + 1);
    weather->late = (uint32_t)draw(world, bad + 1);
    weather->corrupt_ethernet = true;
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

    if (which < 20) {
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
            queue_destroy(world, site, slot, false);
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
