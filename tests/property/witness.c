/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A second oracle that looks at nothing but completions and final memory: counters in which every addition has a bit of
 * its own, so that each value names the set of additions before it. Adding it is FETCH_ADD, FETCH_OP or REDUCE, with
 * sum, or, or exclusive or; it may be RELAXED where twice is once. The shadow does not know these cells; requests of a
 * node to itself, which no wire shows, are judged by them alone.
 */
#include "world.h"

static uint64_t bit_of(const struct op *op)
{
    return op->bit;
}

static uint64_t all_bits(const struct witness_cell *cell)
{
    return (UINT64_C(1) << cell->used) - 1;
}

static void draw_addition(struct world *world, struct op *op)
{
    static const uint8_t operations[] = {NETDAM_ALU_SUM, NETDAM_ALU_OR, NETDAM_ALU_XOR};
    struct netdam_descriptor *d = &op->d;
    uint64_t which = ndtest_random_below(&world->random, 10);

    d->u.operand[1] = 0;
    d->flags = ndtest_random_below(&world->random, 25) == 0 ? NETDAM_DESCRIPTOR_FENCE : 0;
    d->flags |= ndtest_random_below(&world->random, 6) == 0 ? NETDAM_DESCRIPTOR_ORDERED : 0;
    d->operation = operations[ndtest_random_below(&world->random, sizeof(operations))];
    if (which < 4) {
        d->opcode = NETDAM_OP_FETCH_ADD;
        d->operation = NETDAM_ALU_NONE;
    } else if (which < 7) {
        d->opcode = NETDAM_OP_FETCH_OP;
    } else {
        d->opcode = NETDAM_OP_REDUCE;
        d->u.operand[0] = 0;
        if (d->operation == NETDAM_ALU_OR && which < 9) {
            d->flags &= ~(uint32_t)NETDAM_DESCRIPTOR_ORDERED;
            d->flags |= NETDAM_DESCRIPTOR_RELAXED;
        }
    }
}

bool witness_draw(struct world *world, struct site *target, uint32_t index, struct op *op)
{
    unsigned first = (unsigned)ndtest_random_below(&world->random, 4);

    /* Few at a time, so that they are fought for. */
    for (unsigned i = first; i < WITNESS_CELLS; i += 4) {
        struct witness_cell *cell = &target->witness[i];

        if (cell->used < WITNESS_BITS) {
            draw_addition(world, op);
            op->bit = UINT64_C(1) << cell->used;
            op->d.type = NETDAM_TYPE_U64;
            op->d.length = 8;
            op->d.remote_key = target->regions[WITNESS_REGION].key;
            op->d.remote_address = 8 * i;
            if (op_atomic(op->d.opcode)) {
                op->d.u.operand[0] = op->bit;
            }
            cell->op[cell->used++] = index;
            return true;
        }
    }
    op->witness = false;
    return false;
}

/* Of one that leaves no trace, a refusal speaks of one copy alone. */
static bool was_refused(const struct op *op)
{
    return status_refuses(op->status) && !op_laneless(op);
}

/* Checks what this completion says against all earlier ones of its cell. */
void witness_judge(struct world *world, const struct op *op, uint32_t index)
{
    struct site *target = &world->sites[op->target];
    struct witness_cell *cell = &target->witness[op->d.remote_address / 8];
    bool refused = was_refused(op);
    bool found = op->status == NETDAM_STATUS_OK && op_atomic(op->d.opcode);
    uint64_t set = op->observed;

    world->tally->checks[7]++;
    if (found && ((set & ~all_bits(cell)) != 0 || (set & bit_of(op)) != 0)) {
        violation(world, 2,
                  "node %u: an addition of bit %llx at node %u found %llx: something was added twice, or never "
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
        if (found && was_refused(other) && (set & bit_of(other)) != 0) {
            violation(world, 3, "node %u: an addition that was refused is seen", op->node);
        }
        if (other->status != NETDAM_STATUS_OK) {
            continue;
        }
        if (refused && (other->observed & bit_of(op)) != 0) {
            violation(world, 3, "node %u: an addition that was seen is refused", op->node);
        }
        if (found && other->completed_at <= index && (set & after) != after) {
            violation(world, 7, "node %u: an addition at node %u found %llx, posted after another had left %llx",
                      op->node, op->target, (unsigned long long)set, (unsigned long long)after);
        }
        if (found && (set & other->observed) != set && (set & other->observed) != other->observed) {
            violation(world, 7, "node %u: additions at node %u found %llx and %llx: no order explains both", op->node,
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
            if (there && was_refused(op)) {
                violation(world, 3, "node %u, counter %u: an addition that was refused is there", site->node.index, i);
            }
        }
    }
}
