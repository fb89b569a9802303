/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a case: every history is judged, and all memory is looked at. */
#include "oracle.h"

#include <stdlib.h>

static struct record *collected;
static uint32_t collected_room;

static uint32_t collect(const struct world *world, const struct object *object)
{
    uint32_t count = 0;

    for (uint32_t at = object->records; at != NONE; at = world->records[at].next) {
        if (count == collected_room) {
            collected_room = collected_room == 0 ? 256 : 2 * collected_room;
            collected = realloc(collected, collected_room * sizeof(*collected));
            if (collected == NULL) {
                abort();
            }
        }
        collected[count++] = world->records[at];
    }
    return count;
}

static bool modifies(const struct record *record)
{
    return record->step.opcode != NETDAM_OP_READ;
}

static unsigned operation_of(const struct step *step)
{
    return step->opcode == NETDAM_OP_FETCH_ADD ? NETDAM_ALU_SUM : step->operation;
}

/* What may happen again has happened once for certain. */
static bool has_happened(const struct record *records, uint32_t count, uint32_t op)
{
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].op == op && records[i].verdict == VERDICT_MUST) {
            return true;
        }
    }
    return false;
}

/* True if all modifications of these words are known to have happened, and commute with one another. */
static bool commute(const struct record *records, uint32_t count)
{
    const struct step *first = NULL;

    for (uint32_t i = 0; i < count; i++) {
        const struct step *step = &records[i].step;
        int flags = netdam_algebra(step->opcode, step->operation, step->type);

        if (!modifies(&records[i])) {
            continue;
        }
        if (records[i].verdict == VERDICT_MAY || step->choices != NULL || (flags & (int)NETDAM_ALG_COMMUTES) == 0 ||
            (records[i].verdict == VERDICT_AGAIN &&
             ((flags & (int)NETDAM_ALG_IDEMPOTENT) == 0 || !has_happened(records, count, records[i].op))) ||
            (first != NULL && (operation_of(step) != operation_of(first) || step->type != first->type))) {
            return false;
        }
        first = step;
    }
    return first != NULL;
}

static int by_op(const void *a, const void *b)
{
    const struct record *x = a;
    const struct record *y = b;

    return x->op < y->op ? -1 : x->op > y->op;
}

/* What commutes leaves the same as the program in its own order. */
static bool plain_agrees(struct record *records, uint32_t count, const uint64_t *first, const uint64_t *last)
{
    uint64_t words[CELL_WORDS_MAX];
    uint64_t before;

    memcpy(words, first, sizeof(words));
    qsort(records, count, sizeof(*records), by_op);
    for (uint32_t i = 0; i < count; i++) {
        if (records[i].verdict == VERDICT_MUST) {
            words[records[i].step.word] = step_apply(&records[i].step, words[records[i].step.word], &before);
        }
    }
    return memcmp(words, last, sizeof(words)) == 0;
}

static void tell_history(const struct world *world, const struct object *object, uint32_t count, uint32_t culprit)
{
    static const char *const verdicts[] = {"once", "perhaps", "any times"};

    if (!world->plan.tell) {
        return;
    }
    for (unsigned i = 0; i < object->words; i++) {
        printf("# word %u held 0x%016llx at first\n", i, (unsigned long long)object->first[i]);
    }
    for (uint32_t i = count; i-- != 0;) {
        const struct record *r = &collected[i];
        char seen[40] = "";

        if (r->observed) {
            snprintf(seen, sizeof(seen), ", saw 0x%llx", (unsigned long long)r->seen);
        }
        printf("#%s op %u (%s of site %u): opcode 0x%02x operation %u type %u word %u offset %u bytes %u operands "
               "0x%llx 0x%llx, %s in [%llu.%u, %llu.%u]%s\n",
               i == culprit ? " >" : "  ", r->op, world->ops[r->op].kind->name, world->ops[r->op].site, r->step.opcode,
               r->step.operation, r->step.type, r->step.word, r->step.offset, r->step.bytes,
               (unsigned long long)r->step.operand[0], (unsigned long long)r->step.operand[1], verdicts[r->verdict],
               (unsigned long long)(r->open >> CELL_TICK_BITS), (unsigned)(r->open & 0xfffff),
               (unsigned long long)(r->close >> CELL_TICK_BITS), (unsigned)(r->close & 0xfffff), seen);
    }
}

static void judge_object(struct world *world, struct site *site, unsigned index)
{
    struct object *object = &site->objects[index];
    uint64_t last[CELL_WORDS_MAX] = {0};
    uint32_t count = collect(world, object);
    uint32_t culprit = NONE;
    enum judgement judgement;

    memcpy(last, site->node.memory + SHARED_BASE + object_address(index), 8u * object->words);
    if (count == 0) {
        if (memcmp(last, object->first, 8u * object->words) != 0) {
            fail(world, FAILURE_MEMORY, "site %u, object %u changed, and nobody named it", site->index, index);
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (collected[i].step.choices != NULL && collected[i].step.choices->count == 0) {
            world->tally->unjudged++;
            return;
        }
    }
    world->tally->objects++;
    judgement = cell_judge(collected, count, object->words, object->first, last, &culprit);
    if (judgement == JUDGED_BAD) {
        tell_history(world, object, count, culprit);
        fail(world, FAILURE_LINEAR, "site %u, object %u: %s (op %u), memory 0x%016llx", site->index, index,
             culprit == count ? "what memory holds at the end" : "what was seen or done last",
             culprit == count ? 0 : collected[culprit].op, (unsigned long long)last[0]);
        return;
    }
    world->tally->unjudged += judgement == JUDGED_OPEN;
    if (commute(collected, count)) {
        world->tally->plain++;
        if (!plain_agrees(collected, count, object->first, last)) {
            tell_history(world, object, count, count);
            fail(world, FAILURE_PLAIN, "site %u, object %u: memory 0x%016llx", site->index, index,
                 (unsigned long long)last[0]);
        }
    }
}

static void outside_check(struct world *world, struct site *site)
{
    static const struct {
        uint32_t from, to;
    } parts[] = {
        {0, RINGS_BASE},
        {RINGS_BASE + QUEUES * 2 * RING_ROOM, SHARED_BASE},
        {SHARED_BASE + SHARED_BYTES, LOCAL_BASE},
        {RECEIVE_END, TEAM_BASE},
        {TEAM_BASE + QUEUES * TEAM_BYTES, MEMORY_BYTES},
    };

    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].from < parts[i].to && memcmp(site->node.memory + parts[i].from, site->outside + parts[i].from,
                                                  parts[i].to - parts[i].from) != 0) {
            fail(world, FAILURE_MEMORY, "site %u, between %u and %u", site->index, parts[i].from, parts[i].to);
        }
    }
    if (!ndtest_node_guards_intact(&site->node)) {
        fail(world, FAILURE_GUARD, "site %u", site->index);
    }
}

uint32_t judge_values(struct world *world, unsigned site, unsigned object, unsigned word, uint64_t open, uint64_t close,
                      uint64_t *values)
{
    const struct object *at = &world->sites[site].objects[object];

    return cell_values(collected, collect(world, at), at->words, at->first, word, open, close, values);
}

static void judge_objects(struct world *world, unsigned from, unsigned to)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        for (unsigned n = from; n < to && world->failure == FAILURE_NONE; n++) {
            judge_object(world, &world->sites[i], n);
        }
    }
}

void judge_all(struct world *world)
{
    messages_check(world);
    teams_check(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];

        outside_check(world, site);
        slots_check(world, site);
        receives_check(world, site);
    }
    /* Where tours store comes last: it depends on what they have read. */
    judge_objects(world, 0, SINGLES - SINKS);
    judge_objects(world, SINGLES, OBJECTS - BULK_SINKS);
    for (uint32_t i = 0; i < world->op_count && world->failure == FAILURE_NONE; i++) {
        if (world->ops[i].d.opcode == NETDAM_OP_CHAIN) {
            chain_judge(world, &world->ops[i]);
        }
    }
    judge_objects(world, SINGLES - SINKS, SINGLES);
    judge_objects(world, OBJECTS - BULK_SINKS, OBJECTS);
    world->tally->records += world->record_count;
}

void judge_fini(void)
{
    free(collected);
    collected = NULL;
    collected_room = 0;
    cell_fini();
}
