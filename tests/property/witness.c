/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A second oracle that looks at nothing but completions and final memory: counters in which every FETCH_ADD has a bit
 * of its own, so that each value names the set of additions before it. The shadow does not know these cells; requests
 * of a node to itself, which no wire shows, are judged by them alone.
 */
#include "world.h"

static uint64_t bit_of(const struct op *op)
{
    return op->d.u.operand[0];
}

static uint64_t all_bits(const struct witness_cell *cell)
{
    return (UINT64_C(1) << cell->used) - 1;
}

bool witness_draw(struct world *world, struct site *target, uint32_t index, struct netdam_descriptor *d)
{
    unsigned first = (unsigned)ndtest_random_below(&world->random, 4);

    /* Few at a time, so that they are fought for. */
    for (unsigned i = first; i < WITNESS_CELLS; i += 4) {
        struct witness_cell *cell = &target->witness[i];

        if (cell->used < WITNESS_BITS) {
            d->opcode = NETDAM_OP_FETCH_ADD;
            d->operation = NETDAM_ALU_NONE;
            d->type = NETDAM_TYPE_U64;
            d->length = 8;
            d->remote_key = target->regions[WITNESS_REGION].key;
            d->remote_address = 8 * i;
            d->u.operand[0] = UINT64_C(1) << cell->used;
            cell->op[cell->used++] = index;
            return true;
        }
    }
    return false;
}

/* Checks what this completion says against all earlier ones of its cell. */
void witness_judge(struct world *world, const struct op *op, uint32_t index)
{
    struct site *target = &world->sites[op->target];
    struct witness_cell *cell = &target->witness[op->d.remote_address / 8];
    bool refused = status_refuses(op->status);
    uint64_t set = op->observed;

    world->tally->checks[7]++;
    if (op->status == NETDAM_STATUS_OK && ((set & ~all_bits(cell)) != 0 || (set & bit_of(op)) != 0)) {
        violation(world, 2,
                  "node %u: FETCH_ADD of bit %llx at node %u found %llx: something was added twice, or never "
                  "asked for",
                  op->node, (unsigned long long)bit_of(op), op->target, (unsigned long long)set);
        return;
    }
    for (unsigned i = 0; i < cell->used; i++) {
        const struct op *other = &world->ops[cell->op[i]];
        uint64_t after = other->observed | bit_of(other);

        if (cell->op[i] == index || other->state != OP_COMPLETE) {
            continue;
        }
        if (op->status == NETDAM_STATUS_OK && status_refuses(other->status) && (set & bit_of(other)) != 0) {
            violation(world, 3, "node %u: an addition that was refused is seen", op->node);
        }
        if (other->status != NETDAM_STATUS_OK) {
            continue;
        }
        if (refused && (other->observed & bit_of(op)) != 0) {
            violation(world, 3, "node %u: an addition that was seen is refused", op->node);
        }
        if (op->status == NETDAM_STATUS_OK && other->completed_at <= index && (set & after) != after) {
            violation(world, 7, "node %u: FETCH_ADD at node %u found %llx, posted after another had left %llx",
                      op->node, op->target, (unsigned long long)set, (unsigned long long)after);
        }
        if (op->status == NETDAM_STATUS_OK && (set & other->observed) != set &&
            (set & other->observed) != other->observed) {
            violation(world, 7, "node %u: FETCH_ADDs at node %u found %llx and %llx: no order explains both", op->node,
                      op->target, (unsigned long long)set, (unsigned long long)other->observed);
        }
    }
}

void witness_final(struct world *world, struct site *site)
{
    for (unsigned i = 0; i < WITNESS_CELLS && !world->failed; i++) {
        const struct witness_cell *cell = &site->witness[i];
        uint64_t value = reference_load(site->node.memory + WITNESS_BASE + 8 * i, 8);

        world->tally->checks[2]++;
        if ((value & ~all_bits(cell)) != 0) {
            violation(world, 2, "node %u, counter %u holds %llx: something was added twice", site->node.index, i,
                      (unsigned long long)value);
        }
        for (unsigned j = 0; j < cell->used && !world->failed; j++) {
            const struct op *op = &world->ops[cell->op[j]];
            bool there = (value & bit_of(op)) != 0;

            if (op->state != OP_COMPLETE) {
                continue;
            }
            if (op->status == NETDAM_STATUS_OK && (!there || (value & op->observed) != op->observed)) {
                violation(world, 2, "node %u, counter %u: an addition that completed with OK is not there",
                          site->node.index, i);
            }
            if (there && (status_refuses(op->status))) {
                violation(world, 3, "node %u, counter %u: an addition that was refused is there", site->node.index, i);
            }
        }
    }
}
