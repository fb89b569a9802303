/* SPDX-License-Identifier: BSD-3-Clause */
/* What happens beside the requests: the host's own loads and stores, resets, links that fail. */
#include "oracle.h"

static uint8_t *word_at(struct world *world, const struct op *op)
{
    return world->sites[op->target].node.memory + SHARED_BASE + op->d.remote_address;
}

static bool load_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    op->d.remote_address = object_address(draw_object(world, random));
    return true;
}

static bool load_act(struct world *world, struct op *op)
{
    struct step step = {.opcode = NETDAM_OP_READ, .bytes = 8};
    unsigned word;
    unsigned object = object_of((uint32_t)op->d.remote_address, &word);
    uint64_t seen;

    memcpy(&seen, word_at(world, op), sizeof(seen));
    effect_instant(world, op, object, &step, true, seen);
    return true;
}

static bool store_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    unsigned object = draw_object(world, random);

    op->d.opcode = NETDAM_OP_WRITE;
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    op->d.remote_address = object_address(object);
    op->d.u.operand[0] = ndtest_random_next(random);
    return world->sites[0].objects[object].operation == NETDAM_ALU_NONE;
}

static bool store_act(struct world *world, struct op *op)
{
    struct step step = {.opcode = NETDAM_OP_WRITE, .bytes = 8, .operand = {op->d.u.operand[0]}};
    unsigned word;
    unsigned object = object_of((uint32_t)op->d.remote_address, &word);

    memcpy(word_at(world, op), &step.operand[0], sizeof(step.operand[0]));
    effect_instant(world, op, object, &step, false, 0);
    return true;
}

static bool restart_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    return true;
}

static bool restart_act(struct world *world, struct op *op)
{
    world_restart(world, &world->sites[op->site]);
    world->tally->restarts++;
    return true;
}

static bool outage_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    op->d.remote_address = draw_below(random, UINT32_MAX); /* which link */
    op->d.length = (uint32_t)draw_below(random, draw_percent(random, 20) ? 100000000 : 5000000);
    return true;
}

static bool outage_act(struct world *world, struct op *op)
{
    uint64_t now_ns = world->net.loop.now_ns;

    ndsim_link_down(&world->net.links[op->d.remote_address % world->net.link_count]->link, now_ns,
                    now_ns + op->d.length);
    return true;
}

const struct kind kind_load = {"load", load_draw, load_act, NULL};
const struct kind kind_store = {"store", store_draw, store_act, NULL};
const struct kind kind_restart = {"restart", restart_draw, restart_act, NULL};
const struct kind kind_outage = {"outage", outage_draw, outage_act, NULL};

static bool rekey_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = op->target = (uint8_t)draw_below(random, world->site_count);
    op->region = (uint8_t)(REGION_ALL + draw_below(random, REGIONS_ALL - REGION_ALL)); /* of either user */
    return true;
}

static bool rekey_act(struct world *world, struct op *op)
{
    world_rekey(world, &world->sites[op->site], op->region);
    return true;
}

static bool reopen_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    return draw_route(world, op, random);
}

static bool reopen_act(struct world *world, struct op *op)
{
    world_reopen(world, &world->sites[op->site], op->target, op->peer);
    return true;
}

const struct kind kind_rekey = {"rekey", rekey_draw, rekey_act, NULL};
const struct kind kind_reopen = {"reopen", reopen_draw, reopen_act, NULL};
