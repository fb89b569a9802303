/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that belong together, posted at once: what the firmware may put into one packet. */
#include "oracle.h"

static const struct op *before(const struct world *world, const struct op *op)
{
    return op->index != 0 ? &world->ops[op->index - 1] : NULL;
}

static bool object_is_free(const struct world *world, uint32_t address)
{
    unsigned word;

    return world->sites[0].objects[object_of(address, &word)].operation == NETDAM_ALU_NONE;
}

/*
 * Goes on where the operation before it ended, or does the same once more: WRITE beside WRITE, REDUCE on REDUCE. Left
 * out of the program it changes nothing else, as everything that is drawn.
 */
static bool burst_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    const struct op *first = before(world, op);
    uint32_t address;

    if (first == NULL || first->refused || first->d.length == 0 || first->d.length > SMALL_BYTES ||
        (first->d.opcode != NETDAM_OP_WRITE && first->d.opcode != NETDAM_OP_REDUCE) || first->kind->complete == NULL) {
        return false;
    }
    op->at_ns = first->at_ns;
    op->site = first->site;
    op->target = first->target;
    op->queue = first->queue;
    op->peer = first->peer;
    op->region = first->region;
    op->d.opcode = first->d.opcode;
    op->d.operation = first->d.operation;
    op->d.type = first->d.type;
    op->d.length = first->d.length;
    address = shared_address(first);
    if (op->d.opcode == NETDAM_OP_WRITE) {
        bool below = draw_percent(random, 30);

        op->d.length = 1 + (uint32_t)draw_below(random, 16);
        address = below ? address - op->d.length : address + first->d.length;
        if (address >= SHARED_BYTES - SMALL_BYTES || address < 8 * uniform_count(world)) {
            return false; /* among those on which everything is of one operation, or outside */
        }
    }
    if (op->d.opcode == NETDAM_OP_REDUCE && object_is_free(world, address) && draw_percent(random, 20)) {
        /* Something else on the same range, which must not be taken for the same. */
        uint8_t operation = (uint8_t)(1 + draw_below(random, NETDAM_ALU_SUM_SATURATING));
        uint8_t type = (uint8_t)(1 + draw_below(random, NETDAM_TYPE_F64));

        if (netdam_algebra(NETDAM_OP_REDUCE, operation, type) >= 0 && netdam_is_whole(address, type) &&
            netdam_is_whole(op->d.length, type)) {
            op->d.operation = operation;
            op->d.type = type;
        }
    }
    if (draw_percent(random, 10)) {
        draw_mode(world, op, random);
    }
    op->d.remote_address = address - (op->region == REGION_PART ? PART_OFFSET : 0);
    return op->region != REGION_PART || address >= PART_OFFSET;
}

static bool burst_act(struct world *world, struct op *op)
{
    return kind_write.act(world, op);
}

static void burst_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    kind_write.complete(world, op, completion);
}

const struct kind kind_burst = {"burst", burst_draw, burst_act, burst_complete};
