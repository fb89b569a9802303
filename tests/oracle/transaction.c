/* SPDX-License-Identifier: BSD-3-Clause */
/* TRANSACTION: compares, fetches and writes on one node. All words of an object that it touches change in one step. */
#include "oracle.h"

#include "netdam/transaction.h"

#include <stdlib.h>

#define DATA_MAX    16u
#define PATTERN     0x5a
#define RESULT_ROOM NETDAM_TRANSACTION_FETCH_MAX

/* One entry as it was drawn. */
struct entry {
    uint8_t kind;
    uint8_t part; /* which of the two objects */
    uint8_t at;   /* bytes in the object */
    uint8_t length;
    uint8_t region;
    bool from_last; /* COMPARE: with what was seen last */
    uint8_t data[DATA_MAX];
};

/* A transaction under way: its entries, and what each of its objects is to be told of them. */
struct transaction {
    struct entry entries[NETDAM_TRANSACTION_ENTRIES_MAX];
    uint32_t count;
    uint32_t bad; /* the entry that has to be refused, or NONE */
    uint32_t bytes;
    uint32_t fetch_bytes;
    struct cell_transaction parts[2];
    uint16_t objects[2];
    uint32_t part_count;
};

static unsigned object_bytes(unsigned object)
{
    return object >= SINGLES && object < SINGLES + GROUPS ? 8 * CELL_WORDS_MAX : 8;
}

static void draw_entry(struct transaction *t, struct entry *entry, struct ndtest_random *random)
{
    static const uint8_t kind[] = {NETDAM_TRANSACTION_COMPARE, NETDAM_TRANSACTION_FETCH, NETDAM_TRANSACTION_WRITE};
    static const uint8_t regions[4][2] = {
        {0, 0}, {REGION_ALL, REGION_READ}, {REGION_ALL, REGION_ALU}, {REGION_ALL, REGION_WRITE}};
    unsigned room;

    entry->kind = kind[draw_below(random, 3)];
    entry->part = (uint8_t)draw_below(random, t->part_count);
    room = object_bytes(t->objects[entry->part]);
    if (draw_percent(random, 75)) {
        entry->length = 8;
        entry->at = (uint8_t)(8 * draw_below(random, room / 8));
    } else {
        entry->length = (uint8_t)draw_below(random, (room < DATA_MAX ? room : DATA_MAX) + 1);
        entry->at = (uint8_t)draw_below(random, room - entry->length + 1u);
    }
    entry->region = regions[entry->kind][draw_below(random, 2)];
    if (entry->region == REGION_ALU && t->objects[entry->part] >= SINGLES) {
        entry->region = REGION_ALL;
    }
    entry->from_last = !draw_percent(random, 10);
    ndtest_random_fill(random, entry->data, sizeof(entry->data));
}

/* Everything that does not depend on the run, drawn anew whenever it is needed. */
static void draw_transaction(const struct world *world, const struct op *op, struct transaction *t)
{
    struct ndtest_random random = {op_random(world, op, 0x7472)};

    memset(t, 0, sizeof(*t));
    t->part_count = draw_percent(&random, 25) ? 2 : 1;
    t->objects[0] = (uint16_t)(SINGLES + draw_below(&random, GROUPS));
    if (t->part_count == 2) {
        t->objects[1] = (uint16_t)draw_object(world, &random);
        if (t->objects[1] == t->objects[0] || world->sites[0].objects[t->objects[1]].operation != NETDAM_ALU_NONE) {
            t->part_count = 1;
        }
    }
    t->count = 1 + (uint32_t)draw_below(&random, draw_percent(&random, 20) ? NETDAM_TRANSACTION_ENTRIES_MAX : 4);
    t->bad = NONE;
    for (uint32_t i = 0; i < t->count; i++) {
        struct entry *entry = &t->entries[i];

        draw_entry(t, entry, &random);
        if (entry->kind == NETDAM_TRANSACTION_FETCH && t->fetch_bytes + entry->length > RESULT_ROOM) {
            entry->kind = NETDAM_TRANSACTION_WRITE;
            entry->region = REGION_ALL;
        }
        t->fetch_bytes += entry->kind == NETDAM_TRANSACTION_FETCH ? entry->length : 0;
        t->bytes += (uint32_t)sizeof(struct netdam_transaction_entry) +
                    netdam_transaction_data_bytes(entry->kind, entry->length);
    }
    if (draw_percent(&random, world->bad_percent)) {
        t->bad = (uint32_t)draw_below(&random, t->count);
    }
}

static bool transaction_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    struct transaction t;

    op->d.opcode = NETDAM_OP_TRANSACTION;
    draw_route(world, op, random);
    draw_mode(world, op, random);
    draw_transaction(world, op, &t);
    op->d.length = t.bytes;
    op->refused = t.bad != NONE;
    return true;
}

unsigned transaction_pieces(const struct op *op, struct piece *pieces)
{
    const struct transaction *t = op->extra;

    for (uint32_t i = 0; i < t->part_count; i++) {
        pieces[i] = (struct piece){
            .site = op->target,
            .object = t->objects[i],
            .step = {.opcode = NETDAM_OP_TRANSACTION, .bytes = 8, .transaction = &t->parts[i]},
        };
    }
    return t->part_count;
}

static void put_entry(const struct world *world, const struct op *op, const struct transaction *t, uint32_t i,
                      uint8_t **at)
{
    const struct entry *entry = &t->entries[i];
    uint32_t address = object_address(t->objects[entry->part]) + entry->at;
    struct netdam_transaction_entry out = {
        .kind = entry->kind,
        .length = entry->length,
        .key = region_key(world, op->target, op->peer, entry->region),
        .address = address,
    };

    if (i == t->bad) {
        switch (op_random(world, op, 0x626164) % 3) {
        case 0:
            out.key ^= 1;
            break;
        case 1:
            out.address = SHARED_BYTES - entry->length + 1;
            out.key = region_key(world, op->target, op->peer, REGION_ALL);
            break;
        default:
            out.key = region_key(world, op->target, op->peer,
                                 entry->kind == NETDAM_TRANSACTION_WRITE ? REGION_READ : REGION_WRITE);
            break;
        }
    }
    memcpy(*at, &out, sizeof(out));
    *at += sizeof(out);
    if (entry->kind != NETDAM_TRANSACTION_FETCH) {
        uint32_t bytes = netdam_transaction_data_bytes(entry->kind, entry->length);

        memset(*at, 0, bytes);
        memcpy(*at, entry->data, entry->length);
        *at += bytes;
    }
}

/* What each object is told: its own entries, in their order. */
static void divide(struct transaction *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct entry *entry = &t->entries[i];
        struct cell_transaction *part = &t->parts[entry->part];

        part->entries[part->count++] =
            (struct cell_entry){.kind = entry->kind, .at = entry->at, .length = entry->length, .data = entry->data};
    }
}

static struct transaction *allocate(struct world *world)
{
    struct transaction *t = world_allocate(world, sizeof(*t));

    return t;
}

static bool transaction_act(struct world *world, struct op *op)
{
    struct site *site = &world->sites[op->site];
    struct transaction *t = allocate(world);
    uint32_t slot = slot_take(world, site, op->d.length + RESULT_ROOM);
    uint32_t result;
    uint8_t *at;

    if (slot == NONE) {
        return false;
    }
    draw_transaction(world, op, t);
    for (uint32_t i = 0; i < t->count; i++) {
        struct entry *entry = &t->entries[i];

        if (entry->kind == NETDAM_TRANSACTION_COMPARE && entry->from_last) {
            memcpy(entry->data,
                   (const uint8_t *)world->sites[op->target].objects[t->objects[entry->part]].last + entry->at,
                   entry->length);
        }
    }
    divide(t);
    op->extra = t;
    result = slot_offset(slot) + (slot < SMALL_SLOTS ? SMALL_BYTES : BIG_BYTES) - RESULT_ROOM;
    at = site->node.memory + LOCAL_BASE + slot_offset(slot);
    for (uint32_t i = 0; i < t->count; i++) {
        put_entry(world, op, t, i, &at);
    }
    memset(site->node.memory + LOCAL_BASE + result, PATTERN, RESULT_ROOM);
    op->slot = (uint16_t)slot;
    op->d.local_region = REGION_LOCAL;
    op->d.u.buffer.local_address = slot_offset(slot);
    op->d.u.buffer.result_address = t->fetch_bytes != 0 ? result : 0;
    if (!effect_fits(world, op) || !post_descriptor(world, op)) {
        slot_release(world, site, slot);
        return false;
    }
    effect_pin(world, op, 1);
    return true;
}

/* Where an entry stands among those of its object. */
static struct cell_entry *part_entry(struct transaction *t, uint32_t index)
{
    uint32_t place = 0;

    for (uint32_t i = 0; i < index; i++) {
        place += t->entries[i].part == t->entries[index].part;
    }
    return &t->parts[t->entries[index].part].entries[place];
}

static void see_fetched(struct world *world, struct op *op, struct transaction *t, const uint8_t *result)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const struct entry *entry = &t->entries[i];
        struct object *object = &world->sites[op->target].objects[t->objects[entry->part]];
        uint8_t *seen;

        if (entry->kind != NETDAM_TRANSACTION_FETCH) {
            continue;
        }
        seen = world_allocate(world, DATA_MAX);
        memcpy(seen, result, entry->length);
        memcpy((uint8_t *)object->last + entry->at, result, entry->length);
        part_entry(t, i)->seen = seen;
        result += entry->length;
    }
}

/* Entries behind the one that failed were not looked at. */
static void see_failure(struct transaction *t, uint32_t failed)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct cell_entry *entry = part_entry(t, i);

        entry->fails = i == failed;
        entry->unknown = i > failed || entry->kind != NETDAM_TRANSACTION_COMPARE;
    }
    for (uint32_t i = 0; i < t->part_count; i++) {
        t->parts[i].refused = true;
    }
}

static void transaction_complete(struct world *world, struct op *op, const struct netdam_completion *completion)
{
    struct site *site = &world->sites[op->site];
    struct transaction *t = op->extra;
    const uint8_t *result = site->node.memory + LOCAL_BASE + slot_offset(op->slot) +
                            (op->slot < SMALL_SLOTS ? SMALL_BYTES : BIG_BYTES) - RESULT_ROOM;
    bool failed = completion->status == NETDAM_STATUS_COMPARE_FAILED && !op->refused;
    uint32_t stored = completion->status == NETDAM_STATUS_OK ? t->fetch_bytes : 0;

    slot_release(world, site, op->slot);
    for (uint32_t i = stored; i < RESULT_ROOM; i++) {
        if (result[i] != PATTERN) {
            fail(world, FAILURE_BUFFER, "transaction %u stored more than %u bytes", op->index, stored);
            return;
        }
    }
    if (completion->status == NETDAM_STATUS_OK && !op->refused) {
        if (!access_complete_ok(world, op, completion, t->fetch_bytes)) {
            return;
        }
        see_fetched(world, op, t, result);
    } else if (completion->status == NETDAM_STATUS_BAD_KEY && completion->result < t->count &&
               effect_rekeyed(world, op, op->target, region_index(op->peer, t->entries[completion->result].region))) {
        effect_pin(world, op, -1);
        return;
    } else if (failed) {
        if (completion->result >= t->count || t->entries[completion->result].kind != NETDAM_TRANSACTION_COMPARE ||
            completion->length != 0) {
            fail(world, FAILURE_COMPLETION, "transaction %u: entry %llu of %u failed its comparison", op->index,
                 (unsigned long long)completion->result, t->count);
            return;
        }
        see_failure(t, (uint32_t)completion->result);
        effect_record(world, op, VERDICT_MUST, world_tick(world), NULL);
        effect_pin(world, op, -1);
        return;
    } else if (op->refused && netdam_status_class_of(completion->status) == NETDAM_STATUS_CLASS_REFUSED &&
               (completion->result != t->bad || completion->status == NETDAM_STATUS_COMPARE_FAILED)) {
        fail(world, FAILURE_COMPLETION, "transaction %u: entry %u had to be refused, not %llu (status 0x%02x)",
             op->index, t->bad, (unsigned long long)completion->result, completion->status);
        return;
    }
    effect_settle(world, op, completion, NULL);
}

const struct kind kind_transaction = {"transaction", transaction_draw, transaction_act, transaction_complete};
