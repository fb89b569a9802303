/* SPDX-License-Identifier: BSD-3-Clause */
/* From operations to records: which words an operation touches, and when it did, may have done, or did not. */
#include "oracle.h"

#include <stdlib.h>

static uint32_t packet_bytes(const struct world *world, const struct op *op)
{
    uint32_t most = netdam_payload_max(world->config.mtu - (world->family == 6 ? 20 : 0)) -
                    (world->tenants[op->peer] != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0);

    return most - ((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 ? 8 : 0);
}

unsigned object_of(uint32_t address, unsigned *word)
{
    uint32_t at = address / 8;

    *word = 0;
    if (at < SINGLES) {
        return at;
    }
    if (at < SINGLES + GROUPS * CELL_WORDS_MAX) {
        *word = (at - SINGLES) % CELL_WORDS_MAX;
        return SINGLES + (at - SINGLES) / CELL_WORDS_MAX;
    }
    return at - GROUPS * (CELL_WORDS_MAX - 1);
}

uint32_t object_address(unsigned object)
{
    if (object < SINGLES) {
        return 8 * object;
    }
    if (object < SINGLES + GROUPS) {
        return 8 * (SINGLES + (object - SINGLES) * CELL_WORDS_MAX);
    }
    return 8 * (object + GROUPS * (CELL_WORDS_MAX - 1));
}

uint32_t shared_address(const struct op *op)
{
    return (uint32_t)op->d.remote_address + (op->region == REGION_PART ? PART_OFFSET : 0);
}

static bool is_atomic(const struct op *op)
{
    return (netdam_op_flags(op->d.opcode) & NETDAM_OPF_ATOMIC) != 0;
}

static uint64_t load(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;

    memcpy(&value, bytes, count);
    return value;
}

unsigned pieces_of(const struct world *world, const struct op *op, uint32_t address, struct piece *pieces)
{
    uint32_t packet = packet_bytes(world, op);
    uint8_t payload[PIECES_MAX * 8];
    unsigned count = 0;
    uint32_t at = 0;

    if (op->d.opcode == NETDAM_OP_TRANSACTION) {
        return transaction_pieces(op, pieces);
    }
    if (op->d.opcode == NETDAM_OP_CHAIN) {
        return chain_pieces(op, pieces);
    }
    if (op->d.opcode == NETDAM_OP_WRITE || op->d.opcode == NETDAM_OP_REDUCE) {
        message_payload(world, op, payload);
    }
    while (at < op->d.length) {
        uint32_t in_word = 8 - (address + at) % 8;
        uint32_t in_packet = packet - at % packet;
        uint32_t bytes = op->d.length - at;
        struct piece *piece = &pieces[count++];
        unsigned word;

        bytes = bytes < in_word ? bytes : in_word;
        bytes = bytes < in_packet ? bytes : in_packet;
        piece->silent = false;
        piece->site = op->target;
        piece->object = (uint16_t)object_of(address + at, &word);
        piece->step = (struct step){
            .opcode = op->d.opcode,
            .operation = op->d.operation,
            .type = op->d.type,
            .word = (uint8_t)word,
            .offset = (uint8_t)((address + at) % 8),
            .bytes = (uint8_t)bytes,
        };
        if (is_atomic(op)) {
            piece->step.operand[0] = op->d.u.operand[0];
            piece->step.operand[1] = op->d.u.operand[1];
        } else if (op->d.opcode != NETDAM_OP_READ) {
            piece->step.operand[0] = load(payload + at, bytes);
        }
        at += bytes;
    }
    return count;
}

/* Records that an op may leave behind at most at one time. */
static uint32_t weight(const struct world *world, const struct op *op)
{
    return (op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0 ? world->copies : 1;
}

bool effect_fits(struct world *world, const struct op *op)
{
    static struct piece pieces[PIECES_MAX];
    unsigned count;

    if (op->refused) {
        return true;
    }
    count = pieces_of(world, op, shared_address(op), pieces);
    for (unsigned i = 0; i < count; i++) {
        if (world->sites[pieces[i].site].objects[pieces[i].object].active + weight(world, op) > world->most_active) {
            return false;
        }
    }
    return true;
}

void effect_pin(struct world *world, struct op *op, int by)
{
    static struct piece pieces[PIECES_MAX];
    unsigned count;

    if (op->refused) {
        return;
    }
    op->pinned = by > 0;
    count = pieces_of(world, op, shared_address(op), pieces);
    for (unsigned i = 0; i < count; i++) {
        struct object *object = &world->sites[pieces[i].site].objects[pieces[i].object];

        object->active = (uint16_t)(object->active + by * (int)weight(world, op));
    }
}

bool effect_rekeyed(const struct world *world, const struct op *op, unsigned site, unsigned index)
{
    return world->sites[site].region_changed[index] > op->posted;
}

static struct record *add_record(struct world *world, struct object *object)
{
    struct record *record;

    if (world->record_count == world->record_room) {
        world->record_room = world->record_room == 0 ? 4096 : 2 * world->record_room;
        world->records = realloc(world->records, world->record_room * sizeof(*world->records));
        if (world->records == NULL) {
            abort();
        }
    }
    record = &world->records[world->record_count];
    memset(record, 0, sizeof(*record));
    record->next = object->records;
    object->records = world->record_count++;
    return record;
}

void effect_instant(struct world *world, struct op *op, unsigned object, const struct step *step, bool observed,
                    uint64_t seen)
{
    struct record *record = add_record(world, &world->sites[op->target].objects[object]);

    record->step = *step;
    record->open = record->close = world_tick(world);
    record->seen = seen;
    record->observed = observed;
    record->op = op->index;
    record->verdict = VERDICT_MUST;
}

/* Nothing happens under a key that has ended. False if nothing can have happened at all. */
static bool ends_with_key(struct world *world, struct op *op, enum verdict verdict, uint64_t *close)
{
    uint64_t changed = world->sites[op->target].region_changed[region_index(op->peer, op->region)];

    if ((netdam_op_flags(op->d.opcode) & NETDAM_OPF_MEMORY) == 0 || changed <= op->posted || changed >= *close) {
        return true;
    }
    *close = changed;
    if (changed > op->opened) {
        return true;
    }
    if (verdict == VERDICT_MUST) {
        fail(world, FAILURE_ACCEPTED, "op %u was executed under a key that had ended", op->index);
    }
    return false;
}

void effect_record(struct world *world, struct op *op, enum verdict verdict, uint64_t close, const uint8_t *seen)
{
    static struct piece pieces[PIECES_MAX];
    unsigned count = pieces_of(world, op, shared_address(op), pieces);
    uint32_t at = 0;

    if (!ends_with_key(world, op, verdict, &close)) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        struct object *object = &world->sites[pieces[i].site].objects[pieces[i].object];
        struct record *record;

        if (pieces[i].silent) {
            continue;
        }
        record = add_record(world, object);

        record->step = pieces[i].step;
        record->site = pieces[i].site;
        record->open = op->opened;
        record->close = close;
        record->op = op->index;
        record->verdict = (uint8_t)verdict;
        if (seen != NULL) {
            record->observed = true;
            record->seen = load(seen + at, pieces[i].step.bytes);
            if (pieces[i].step.bytes == 8) {
                object->last[pieces[i].step.word] = record->seen;
            }
        }
        at += pieces[i].step.bytes;
    }
}

/* The op may still have an effect for as long as a frame lives, unless its target is started anew. */
void effect_late(struct world *world, struct op *op, enum verdict verdict, unsigned times)
{
    uint64_t until_ns = world->net.loop.now_ns + world->lifetime_ns;
    struct late *late;
    uint32_t first = world->record_count;

    op->expires_ns = until_ns;
    for (unsigned i = 0; i < times; i++) {
        effect_record(world, op, verdict, until_ns << CELL_TICK_BITS, NULL);
    }
    if (world->late_first + world->late_count == world->late_room) {
        world->late_room = world->late_room == 0 ? 256 : 2 * world->late_room;
        world->late = realloc(world->late, world->late_room * sizeof(*world->late));
        if (world->late == NULL) {
            abort();
        }
    }
    late = &world->late[world->late_first + world->late_count++];
    *late = (struct late){until_ns, op->index, first, world->record_count - first};
}

void effect_expire(struct world *world)
{
    while (world->late_count != 0 && world->late[world->late_first].until_ns < world->net.loop.now_ns) {
        effect_pin(world, &world->ops[world->late[world->late_first].op], -1);
        world->late_first++;
        world->late_count--;
    }
}

/* Invariant 9: nothing sent to a device before its reset is executed by it afterwards. */
void effect_restarted(struct world *world, const struct site *site)
{
    for (uint32_t i = 0; i < world->late_count; i++) {
        const struct late *late = &world->late[world->late_first + i];

        for (uint32_t n = 0; n < late->record_count; n++) {
            struct record *record = &world->records[late->records + n];

            if (record->site == site->index && record->close > site->restarted) {
                record->close = site->restarted;
            }
        }
    }
}

static void settle_ok(struct world *world, struct op *op, const uint8_t *seen)
{
    bool immediate = (op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;

    if (op->refused) {
        if ((op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) == 0) {
            fail(world, FAILURE_ACCEPTED, "op %u completed as OK", op->index);
        }
        return;
    }
    if ((op->d.flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0) {
        effect_late(world, op, VERDICT_MAY, world->copies);
        return;
    }
    effect_record(world, op, VERDICT_MUST, immediate && op->delivered != 0 ? op->delivered : world_tick(world), seen);
    if ((op->d.flags & NETDAM_DESCRIPTOR_RELAXED) != 0) {
        effect_late(world, op, VERDICT_AGAIN, 1);
        return;
    }
    effect_pin(world, op, -1);
}

void effect_settle(struct world *world, struct op *op, const struct netdam_completion *completion, const uint8_t *seen)
{
    bool modifies = (netdam_op_flags(op->d.opcode) & NETDAM_OPF_MODIFIES) != 0;
    bool laneless = (op->d.flags & (NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_UNRELIABLE)) != 0;
    enum netdam_status_class class_of_status = netdam_status_class_of(completion->status);

    if (completion->status == NETDAM_STATUS_OK) {
        settle_ok(world, op, seen);
        return;
    }

    if (class_of_status != NETDAM_STATUS_CLASS_UNCERTAIN && !op->refused &&
        !(completion->status == NETDAM_STATUS_BAD_KEY &&
          effect_rekeyed(world, op, op->target, region_index(op->peer, op->region))) &&
        !((op->d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 && completion->status == NETDAM_STATUS_NOT_READY)) {
        fail(world, FAILURE_REFUSED, "op %u, status 0x%02x", op->index, completion->status);
        return;
    }
    if (op->refused) {
        return;
    }
    if (!modifies || op->state != OP_OPEN ||
        (class_of_status != NETDAM_STATUS_CLASS_UNCERTAIN && op->d.length <= packet_bytes(world, op) && !laneless)) {
        effect_pin(world, op, -1);
        return;
    }
    world->tally->late++;
    if (op->delivered != 0) {
        /* Its immediate came, and so had everything else. */
        effect_record(world, op, VERDICT_MUST, op->delivered, NULL);
        if (!laneless) {
            effect_pin(world, op, -1);
            return;
        }
    }
    effect_late(world, op, (op->d.flags & NETDAM_DESCRIPTOR_RELAXED) != 0 ? VERDICT_AGAIN : VERDICT_MAY,
                weight(world, op));
}
