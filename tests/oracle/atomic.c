/* SPDX-License-Identifier: BSD-3-Clause */
/* FETCH_ADD, CAS, SWAP and FETCH_OP: what they return is an observation. */
#include "oracle.h"

static bool atomic_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    static const uint8_t opcodes[] = {NETDAM_OP_FETCH_ADD, NETDAM_OP_CAS, NETDAM_OP_SWAP, NETDAM_OP_FETCH_OP};
    unsigned object = draw_object(world, random);
    const struct object *at = &world->sites[0].objects[object];
    uint32_t element;

    draw_route(world, op, random);
    op->d.opcode = opcodes[draw_below(random, 4)];
    op->d.operation = NETDAM_ALU_NONE;
    if (at->operation != NETDAM_ALU_NONE) {
        bool sum = at->operation == NETDAM_ALU_SUM && netdam_algebra(NETDAM_OP_FETCH_ADD, 0, at->type) >= 0;

        op->d.opcode = sum && draw_percent(random, 50) ? NETDAM_OP_FETCH_ADD : NETDAM_OP_FETCH_OP;
        op->d.operation = op->d.opcode == NETDAM_OP_FETCH_OP ? at->operation : NETDAM_ALU_NONE;
        op->d.type = at->type;
        if (netdam_algebra(op->d.opcode, op->d.operation, op->d.type) < 0) {
            return false;
        }
    }
    while (at->operation == NETDAM_ALU_NONE && netdam_algebra(op->d.opcode, op->d.operation, op->d.type) < 0) {
        op->d.operation =
            op->d.opcode == NETDAM_OP_FETCH_OP ? (uint8_t)(1 + draw_below(random, NETDAM_ALU_SUM_SATURATING)) : 0;
        op->d.type = (uint8_t)(1 + draw_below(random, NETDAM_TYPE_F64));
        /* Mostly of the whole word: these are compared best. */
        if (op->d.opcode != NETDAM_OP_FETCH_OP && draw_percent(random, 70)) {
            op->d.type = draw_percent(random, 50) ? NETDAM_TYPE_U64 : NETDAM_TYPE_I64;
        }
    }
    element = element_bytes(op->d.type);
    op->d.length = element;
    op->d.u.operand[0] = draw_element(random, op->d.type);
    op->d.u.operand[1] = op->d.opcode == NETDAM_OP_CAS ? ndtest_random_next(random) : 0;
    op->slot = draw_percent(random, 75); /* CAS: compares with what was seen last */
    draw_mode(world, op, random);
    draw_address(world, op, random, object_address(object) + element * (uint32_t)draw_below(random, 8 / element));
    return true;
}

static bool atomic_act(struct world *world, struct op *op)
{
    unsigned word;
    const struct object *object;

    if (!effect_fits(world, op)) {
        return false;
    }
    if (op->d.opcode == NETDAM_OP_CAS && op->slot != 0 && !op->refused) {
        object = &world->sites[op->target].objects[object_of(shared_address(op), &word)];
        op->d.u.operand[0] = object->last[word] >> 8 * (shared_address(op) % 8);
    }
    if (op->d.remote_key == 0) {
        op->d.remote_key = region_key(world, op->target, op->peer, op->region);
    }
    if (!post_descriptor(world, op)) {
        return false;
    }
    effect_pin(world, op, 1);
    return true;
}

static void atomic_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    uint8_t seen[8];

    memcpy(seen, &completion->result, sizeof(seen));
    if (completion->status == NETDAM_STATUS_OK && !op->refused) {
        if (!access_complete_ok(world, op, completion, op->d.length)) {
            return;
        }
        if (op->d.length < 8 && completion->result >> 8 * op->d.length != 0) {
            fail(world, FAILURE_COMPLETION, "op %u of %u bytes returned 0x%llx", op->index, op->d.length,
                 (unsigned long long)completion->result);
            return;
        }
    }
    effect_settle(world, op, completion, seen);
}

/* A question whether the target is there: the sum on one word, which has to succeed. */
static bool probe_act(struct world *world, struct op *op)
{
    op->d.opcode = NETDAM_OP_FETCH_ADD;
    op->d.type = NETDAM_TYPE_U64;
    op->d.length = 8;
    op->d.remote_address = object_address(SINGLES);
    op->d.u.operand[0] = 1;
    op->d.remote_key = region_key(world, op->target, op->peer, op->region);
    if (!post_descriptor(world, op)) {
        fail(world, FAILURE_ALIVE, "site %u: no room in the ring when all is calm", op->site);
        return false;
    }
    effect_pin(world, op, 1);
    return true;
}

static void probe_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    if (completion->status != NETDAM_STATUS_OK && op->slot != 0) {
        fail(world, FAILURE_ALIVE, "site %u towards %u when all is calm: status 0x%02x", op->site, op->target,
             completion->status);
        return;
    }
    atomic_complete(world, op, completion);
}

const struct kind kind_atomic = {"atomic", atomic_draw, atomic_act, atomic_complete};
const struct kind kind_probe = {"probe", NULL, probe_act, probe_complete};
