/* SPDX-License-Identifier: BSD-3-Clause */
/* READ, WRITE, REDUCE and ECHO, and what all operations on memory are drawn by. */
#include "oracle.h"

#include "reference.h"

bool draw_route(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->site = (uint8_t)draw_below(random, world->site_count);
    op->target = op->site;
    if (!draw_percent(random, 6)) {
        op->target = (uint8_t)((op->site + 1 + draw_below(random, world->site_count - 1)) % world->site_count);
    }
    op->queue = op->peer = (uint8_t)draw_below(random, QUEUES);
    return true;
}

static bool may_be_relaxed(const struct op *op)
{
    unsigned flags = netdam_op_flags(op->d.opcode);

    return (flags & (NETDAM_OPF_ATOMIC | NETDAM_OPF_ENTRIES)) == 0 &&
           (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) == 0 &&
           (netdam_algebra(op->d.opcode, op->d.operation, op->d.type) & (int)NETDAM_ALG_IDEMPOTENT) != 0;
}

/* An accumulation whose order matters cannot be that, and is refused. */
static void draw_reproducible(const struct world *world, struct op *op, struct ndtest_random *random)
{
    bool associates = (netdam_algebra(op->d.opcode, op->d.operation, op->d.type) & (int)NETDAM_ALG_ASSOCIATES) != 0;

    if (associates || draw_percent(random, world->bad_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_REPRODUCIBLE;
        op->refused |= !associates;
    }
}

void draw_mode(struct world *world, struct op *op, struct ndtest_random *random)
{
    unsigned flags = netdam_op_flags(op->d.opcode);

    if (draw_percent(random, world->fence_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_FENCE;
    }
    if ((flags & (NETDAM_OPF_PAYLOAD | NETDAM_OPF_RETURNS)) != 0 && (flags & NETDAM_OPF_ENTRIES) == 0 &&
        op->d.length + LIST_BYTES <= BIG_BYTES && draw_percent(random, world->list_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_LIST;
    }
    if (op->d.opcode == NETDAM_OP_REDUCE && draw_percent(random, 5)) {
        draw_reproducible(world, op, random);
    }
    if ((flags & NETDAM_OPF_MODIFIES) == 0) {
        return;
    }
    if (draw_percent(random, world->ordered_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_ORDERED;
    } else if (may_be_relaxed(op) && draw_percent(random, world->relaxed_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_RELAXED;
    } else if ((flags & (NETDAM_OPF_ATOMIC | NETDAM_OPF_ENTRIES)) == 0 &&
               draw_percent(random, world->unreliable_percent)) {
        op->d.flags |= NETDAM_DESCRIPTOR_UNRELIABLE;
    }
}

unsigned uniform_count(const struct world *world)
{
    return world->hot * world->uniform_percent / 100;
}

unsigned draw_object(const struct world *world, struct ndtest_random *random)
{
    unsigned draw = (unsigned)draw_below(random, 100);

    if (draw < 6) {
        return SINGLES + (unsigned)draw_below(random, GROUPS);
    }
    if (draw < 10) {
        return (unsigned)draw_below(random, SINGLES);
    }
    return (unsigned)draw_below(random, world->hot);
}

uint64_t draw_element(struct ndtest_random *random, unsigned type)
{
    uint64_t edges[REFERENCE_EDGES];
    uint64_t draw = ndtest_random_next(random);

    switch (draw & 3) {
    case 0:
        return edges[draw_below(random, reference_edges(type, edges))];
    case 1:
        return draw >> 2 & 3;
    default:
        return ndtest_random_next(random);
    }
}

uint64_t op_random(const struct world *world, const struct op *op, uint64_t salt)
{
    return ndtest_mix(world->seed ^ ndtest_mix(op->index ^ salt << 32));
}

static bool permits(unsigned region, unsigned opcode)
{
    switch (region) {
    case REGION_ALL:
    case REGION_PART:
        return true;
    case REGION_READ:
        return opcode == NETDAM_OP_READ;
    case REGION_WRITE:
        return opcode == NETDAM_OP_WRITE;
    case REGION_ALU:
        return opcode != NETDAM_OP_WRITE && opcode != NETDAM_OP_SWAP;
    default:
        return false;
    }
}

void draw_address(struct world *world, struct op *op, struct ndtest_random *random, uint32_t address)
{
    bool immediate = (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;

    if (immediate) {
        op->region = REGION_WRITE;
    } else if (op->region == 0) {
        do {
            op->region = (uint8_t)(REGION_ALL + draw_below(random, REGION_TEAM - REGION_ALL));
        } while (!permits(op->region, op->d.opcode));
    }
    if (op->region == REGION_PART && address < PART_OFFSET) {
        op->region = REGION_ALL;
    }
    if (op->region == REGION_ALU && address + op->d.length > 8 * SINGLES) {
        op->region = REGION_ALL;
    }
    op->d.remote_address = address - (op->region == REGION_PART ? PART_OFFSET : 0);
    if (!draw_percent(random, world->bad_percent) || immediate) {
        return;
    }
    /* Something that has to be refused, in one packet. */
    op->refused = true;
    op->d.length = op->d.length > 64 ? 64 : op->d.length;
    switch (draw_below(random, 4)) {
    case 0:
        op->d.remote_key = 1 + draw_below(random, UINT32_MAX); /* a key that is none */
        break;
    case 1: /* one element over the end */
        op->d.remote_address = (op->region == REGION_PART  ? SHARED_BYTES - PART_OFFSET
                                : op->region == REGION_ALU ? 8 * SINGLES
                                                           : SHARED_BYTES) -
                               op->d.length + netdam_type_bytes(op->d.type);
        break;
    case 2:
        if (netdam_type_bytes(op->d.type) > 1) {
            op->d.remote_address++;
            break;
        }
        op->d.remote_key = 1;
        break;
    default:
        do {
            op->region = (uint8_t)(REGION_READ + draw_below(random, REGIONS - REGION_READ));
        } while (op->region == REGION_TEAM || permits(op->region, op->d.opcode));
        op->d.remote_address = 0;
        break;
    }
}

static uint32_t draw_length(struct ndtest_random *random)
{
    uint64_t draw = draw_below(random, 1000);

    if (draw < 650) {
        return 8;
    }
    if (draw < 900) {
        return 1 + (uint32_t)draw_below(random, 16);
    }
    if (draw < 990) {
        return 8 * (1 + (uint32_t)draw_below(random, 30));
    }
    return draw < 992 ? 0 : 1300 + (uint32_t)draw_below(random, BIG_BYTES - 1300);
}

/* Where an access of so many bytes may begin, from the object `first` on. */
static uint32_t draw_place(const struct world *world, struct ndtest_random *random, uint32_t bytes, unsigned first)
{
    uint32_t address;

    if (bytes > SMALL_BYTES) {
        return BULK_FIRST + (uint32_t)draw_below(random, SHARED_BYTES - BULK_FIRST - bytes + 1);
    }
    do {
        address = object_address(draw_object(world, random));
    } while (address < 8 * first || address + bytes + 8 > SHARED_BYTES);
    return bytes == 8 ? address : address + (uint32_t)draw_below(random, 8);
}

static bool read_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->d.opcode = NETDAM_OP_READ;
    draw_route(world, op, random);
    op->d.length = draw_length(random);
    draw_mode(world, op, random);
    draw_address(world, op, random, draw_place(world, random, op->d.length, 0));
    return true;
}

static bool write_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    unsigned first = uniform_count(world);

    op->d.opcode = NETDAM_OP_WRITE;
    draw_route(world, op, random);
    op->d.length = draw_length(random);
    if (first >= world->hot) {
        return false; /* nothing that anything may be written to */
    }
    if (draw_percent(random, 10)) {
        op->d.flags |= NETDAM_DESCRIPTOR_IMMEDIATE;
        op->d.immediate = op->index + 1;
        if (draw_percent(random, 20)) {
            op->d.length = 1300 + (uint32_t)draw_below(random, BIG_BYTES - 1300);
        }
    }
    draw_mode(world, op, random);
    draw_address(world, op, random, draw_place(world, random, op->d.length, first));
    return true;
}

static bool reduce_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    unsigned object = draw_object(world, random);
    const struct object *at = &world->sites[0].objects[object];
    uint32_t address = object_address(object);
    uint32_t element;
    uint64_t draw = draw_below(random, 100);

    op->d.opcode = NETDAM_OP_REDUCE;
    draw_route(world, op, random);
    op->d.operation = at->operation;
    op->d.type = at->type;
    while (op->d.operation == NETDAM_ALU_NONE || netdam_algebra(NETDAM_OP_REDUCE, op->d.operation, op->d.type) < 0) {
        op->d.operation = (uint8_t)(1 + draw_below(random, NETDAM_ALU_SUM_SATURATING));
        op->d.type = (uint8_t)(1 + draw_below(random, NETDAM_TYPE_F64));
    }
    element = element_bytes(op->d.type);
    op->d.length = 8;
    if (draw < 30) {
        op->d.length = element;
        address += element * (uint32_t)draw_below(random, 8 / element);
    } else if (draw < 40 && at->operation == NETDAM_ALU_NONE && address < 8 * SINGLES) {
        op->d.length = element * (1 + (uint32_t)draw_below(random, 32 / element));
    } else if (draw < 41) {
        op->d.length = element * (uint32_t)(1300 / element + draw_below(random, 3000 / element));
        address = BULK_FIRST + 8 * (uint32_t)draw_below(random, (SHARED_BYTES - BULK_FIRST - op->d.length) / 8);
    }
    if (address + op->d.length > SHARED_BYTES) {
        return false;
    }
    draw_mode(world, op, random);
    draw_address(world, op, random, address);
    return true;
}

static bool echo_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    op->d.opcode = NETDAM_OP_ECHO;
    draw_route(world, op, random);
    op->d.length = (uint32_t)draw_below(random, SMALL_BYTES + 1);
    draw_mode(world, op, random);
    op->refused = false;
    return true;
}

static bool access_act(struct world *world, struct op *op)
{
    bool memory = op->d.opcode != NETDAM_OP_ECHO;
    uint8_t payload[BIG_BYTES];

    if (memory && !effect_fits(world, op)) {
        return false;
    }
    if (op->d.opcode != NETDAM_OP_READ) {
        message_payload(world, op, payload);
    }
    if (!buffer_take(world, op, op->d.opcode != NETDAM_OP_READ ? payload : NULL)) {
        return false;
    }
    if (memory && op->d.remote_key == 0) {
        op->d.remote_key = region_key(world, op->target, op->peer, op->region);
    }
    if (!post_descriptor(world, op)) {
        slot_release(world, &world->sites[op->site], op->slot);
        return false;
    }
    if (memory) {
        effect_pin(world, op, 1);
    }
    return true;
}

bool access_complete_ok(struct world *world, struct op *op, const struct netdam_completion *completion, uint32_t length)
{
    if (completion->length != length || completion->flags != 0 || completion->hop != 0) {
        fail(world, FAILURE_COMPLETION, "op %u of %u bytes: %u bytes, flags 0x%02x, hop %u", op->index, op->d.length,
             completion->length, completion->flags, completion->hop);
        return false;
    }
    return true;
}

static void access_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    uint8_t buffer[BIG_BYTES];
    uint8_t echoed[SMALL_BYTES];

    buffer_get(world, op, buffer);
    slot_release(world, &world->sites[op->site], op->slot);
    if ((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0) {
        message_ended(world, op);
    }
    if (completion->status == NETDAM_STATUS_OK && !op->refused &&
        !access_complete_ok(world, op, completion, op->d.length)) {
        return;
    }
    if (op->d.opcode == NETDAM_OP_ECHO) {
        message_payload(world, op, echoed);
        if (memcmp(buffer, echoed, op->d.length) != 0) {
            fail(world, FAILURE_BUFFER, "echo %u is not what was sent", op->index);
        }
        return;
    }
    effect_settle(world, op, completion, op->d.opcode == NETDAM_OP_READ ? buffer : NULL);
}

const struct kind kind_read = {"read", read_draw, access_act, access_complete};
const struct kind kind_write = {"write", write_draw, access_act, access_complete};
const struct kind kind_reduce = {"reduce", reduce_draw, access_act, access_complete};
const struct kind kind_echo = {"echo", echo_draw, access_act, access_complete};
