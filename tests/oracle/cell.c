/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linearizability, as Wing and Gong search for it and Lowe prunes it: all states in which memory could be are carried
 * along, and a step is taken at the last moment, when something that was seen, or its end, demands it.
 */
#include "cell.h"

#include "netdam/transaction.h"
#include "reference.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
/* More states than this, or more steps at once, and the words are left unjudged. */
#define STATES_MAX 20000u
#define SLOTS_MAX  24u
#define TABLE_SIZE 65536u

/* A state in which memory may be: which of the open steps have been taken, and what it holds then. */
struct state {
    uint32_t taken;
    uint64_t words[CELL_WORDS_MAX];
};

struct states {
    struct state *at;
    uint32_t count;
    uint32_t *places; /* hash table: index + 1 */
    uint32_t *stamps;
    uint32_t stamp;
};

struct moment {
    uint64_t at;
    uint32_t record;
    bool closes;
};

struct search {
    const struct record *records;
    unsigned words;
    uint32_t slots[SLOTS_MAX]; /* records that are open, or NONE */
    struct states *now;
    struct states *next;
    struct states *closure;
    bool overflow;
};

static struct states kept[3];
static struct moment *moments;
static uint32_t moments_room;

static void *checked(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void states_clear(struct states *states)
{
    if (states->at == NULL) {
        states->at = checked(malloc(STATES_MAX * sizeof(*states->at)));
        states->places = checked(calloc(TABLE_SIZE, sizeof(*states->places)));
        states->stamps = checked(calloc(TABLE_SIZE, sizeof(*states->stamps)));
    }
    states->count = 0;
    states->stamp++;
}

void cell_fini(void)
{
    for (unsigned i = 0; i < 3; i++) {
        free(kept[i].at);
        free(kept[i].places);
        free(kept[i].stamps);
        kept[i] = (struct states){0};
    }
    free(moments);
    moments = NULL;
    moments_room = 0;
}

static bool same(const struct search *search, const struct state *a, const struct state *b)
{
    return a->taken == b->taken && memcmp(a->words, b->words, search->words * sizeof(a->words[0])) == 0;
}

static void add(struct search *search, struct states *states, const struct state *state)
{
    uint64_t hash = state->taken * UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned i = 0; i < search->words; i++) {
        hash = (hash ^ state->words[i]) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 31;
    }
    for (uint32_t at = (uint32_t)(hash >> 20);; at++) {
        uint32_t place = at % TABLE_SIZE;

        if (states->stamps[place] != states->stamp) {
            if (states->count == STATES_MAX) {
                search->overflow = true;
                return;
            }
            states->stamps[place] = states->stamp;
            states->places[place] = states->count;
            states->at[states->count++] = *state;
            return;
        }
        if (same(search, &states->at[states->places[place]], state)) {
            return;
        }
    }
}

static uint64_t mask_of(unsigned bytes)
{
    return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

uint64_t cell_elements(const struct step *step, uint64_t old)
{
    unsigned size = netdam_type_bytes(step->type);
    uint64_t mask = mask_of(size);
    uint64_t result = 0;

    for (unsigned at = 0; at < step->bytes; at += size) {
        result |= reference(step->operation, step->type, old >> 8 * at & mask, step->operand[0] >> 8 * at & mask)
                  << 8 * at;
    }
    return result;
}

uint64_t step_apply(const struct step *step, uint64_t word, uint64_t *before)
{
    uint64_t mask = mask_of(step->bytes);
    unsigned shift = 8u * step->offset;
    uint64_t old = word >> shift & mask;
    uint64_t new = old;

    *before = old;
    switch (step->opcode) {
    case NETDAM_OP_WRITE:
    case NETDAM_OP_SWAP:
        new = step->operand[0];
        break;
    case NETDAM_OP_FETCH_ADD:
        new = old + step->operand[0];
        break;
    case NETDAM_OP_CAS:
        new = old == (step->operand[0] & mask) ? step->operand[1] : old;
        break;
    case NETDAM_OP_REDUCE:
    case NETDAM_OP_FETCH_OP:
        new = cell_elements(step, old);
        break;
    default:
        break;
    }
    return (word & ~(mask << shift)) | (new &mask) << shift;
}

/* A transaction in a state. False if what was seen, or that it was applied, contradicts it. */
static bool transact(const struct cell_transaction *transaction, const struct state *from, struct state *to)
{
    const uint8_t *memory = (const uint8_t *)from->words;

    for (uint32_t i = 0; i < transaction->count; i++) {
        const struct cell_entry *entry = &transaction->entries[i];

        if (entry->unknown) {
            continue;
        }
        if (entry->kind == NETDAM_TRANSACTION_COMPARE &&
            (memcmp(memory + entry->at, entry->data, entry->length) == 0) == entry->fails) {
            return false;
        }
        if (entry->kind == NETDAM_TRANSACTION_FETCH && entry->seen != NULL &&
            memcmp(memory + entry->at, entry->seen, entry->length) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < transaction->count && !transaction->refused; i++) {
        const struct cell_entry *entry = &transaction->entries[i];

        if (entry->kind == NETDAM_TRANSACTION_WRITE) {
            memcpy((uint8_t *)to->words + entry->at, entry->data, entry->length);
        }
    }
    return true;
}

static uint32_t choices(const struct search *search, uint32_t slot)
{
    const struct cell_choices *of = search->records[search->slots[slot]].step.choices;

    return of != NULL ? of->count : 1;
}

/* Takes the step of a slot in a state, with one of its choices. False if what was seen contradicts it. */
static bool take(const struct search *search, uint32_t slot, uint32_t choice, const struct state *from,
                 struct state *to)
{
    const struct record *record = &search->records[search->slots[slot]];
    struct step step = record->step;
    uint64_t before;

    if (step.choices != NULL) {
        step.operand[0] = step.choices->values[choice];
    }

    *to = *from;
    if (record->step.transaction != NULL) {
        if (!transact(record->step.transaction, from, to)) {
            return false;
        }
    } else {
        to->words[step.word] = step_apply(&step, from->words[step.word], &before);
        if (record->observed && before != record->seen) {
            return false;
        }
    }
    if (record->verdict != VERDICT_AGAIN) {
        to->taken |= UINT32_C(1) << slot;
    }
    return true;
}

static bool is_takeable(const struct search *search, uint32_t slot, const struct state *state)
{
    return search->slots[slot] != NONE && (state->taken >> slot & 1) == 0;
}

/*
 * The end of a slot's step: every state from which it has been taken by now, perhaps after others. `must`: no other
 * state is left.
 */
static void close_slot(struct search *search, uint32_t slot, bool must)
{
    uint32_t bit = UINT32_C(1) << slot;
    bool again = search->records[search->slots[slot]].verdict == VERDICT_AGAIN;
    struct states *work = search->closure;
    struct states *swap;

    states_clear(work);
    states_clear(search->next);
    for (uint32_t i = 0; i < search->now->count; i++) {
        add(search, work, &search->now->at[i]);
    }
    for (uint32_t i = 0; i < work->count && !search->overflow; i++) {
        struct state from = work->at[i];
        struct state kept_state = from;

        if (!must || (from.taken & bit) != 0) {
            kept_state.taken &= ~bit;
            if (i < search->now->count || (from.taken & bit) != 0) {
                add(search, search->next, &kept_state);
            }
        }
        if ((from.taken & bit) != 0) {
            continue;
        }
        for (uint32_t other = 0; other < SLOTS_MAX; other++) {
            uint32_t count = is_takeable(search, other, &from) ? choices(search, other) : 0;

            for (uint32_t choice = 0; choice < count; choice++) {
                struct state to;

                if (!take(search, other, choice, &from, &to)) {
                    continue;
                }
                if (other != slot || again) {
                    add(search, work, &to);
                }
                if (other == slot) {
                    to.taken &= ~bit;
                    add(search, search->next, &to);
                }
            }
        }
    }
    search->slots[slot] = NONE;
    swap = search->now;
    search->now = search->next;
    search->next = swap;
}

static int compare_moments(const void *a, const void *b)
{
    const struct moment *x = a;
    const struct moment *y = b;

    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    /* What begins and ends at one time begins first. */
    if (x->closes != y->closes) {
        return x->closes ? 1 : -1;
    }
    return x->record < y->record ? -1 : x->record > y->record;
}

static void sort_moments(const struct record *records, uint32_t count)
{
    if (2 * count > moments_room) {
        moments_room = 2 * count + 64;
        moments = checked(realloc(moments, moments_room * sizeof(*moments)));
    }
    for (uint32_t i = 0; i < count; i++) {
        moments[2 * i] = (struct moment){records[i].open, i, false};
        moments[2 * i + 1] = (struct moment){records[i].close, i, true};
    }
    qsort(moments, 2 * (size_t)count, sizeof(*moments), compare_moments);
}

static bool open_slot(struct search *search, uint32_t record)
{
    for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
        if (search->slots[slot] == NONE) {
            search->slots[slot] = record;
            return true;
        }
    }
    return false;
}

static uint32_t slot_of(const struct search *search, uint32_t record)
{
    uint32_t slot = 0;

    while (search->slots[slot] != record) {
        slot++;
    }
    return slot;
}

/* Every value of a word in the present states, and in all that open steps may lead to from them. */
static bool collect_values(struct search *search, unsigned word, uint64_t *values, uint32_t *count)
{
    struct states *work = search->closure;

    states_clear(work);
    for (uint32_t i = 0; i < search->now->count; i++) {
        add(search, work, &search->now->at[i]);
    }
    for (uint32_t i = 0; i < work->count && !search->overflow; i++) {
        struct state from = work->at[i];
        bool known = false;

        for (uint32_t n = 0; n < *count; n++) {
            known |= values[n] == from.words[word];
        }
        if (!known && *count == CELL_CHOICES_MAX) {
            return false;
        }
        if (!known) {
            values[(*count)++] = from.words[word];
        }
        for (uint32_t slot = 0; slot < SLOTS_MAX; slot++) {
            uint32_t most = is_takeable(search, slot, &from) ? choices(search, slot) : 0;

            for (uint32_t choice = 0; choice < most; choice++) {
                struct state to;

                if (take(search, slot, choice, &from, &to)) {
                    add(search, work, &to);
                }
            }
        }
    }
    return !search->overflow;
}

static void begin(struct search *search, const struct record *records, uint32_t count, unsigned words,
                  const uint64_t *first)
{
    struct state state = {0};

    *search =
        (struct search){.records = records, .words = words, .now = &kept[0], .next = &kept[1], .closure = &kept[2]};
    sort_moments(records, count);
    memset(search->slots, 0xff, sizeof(search->slots));
    memcpy(state.words, first, words * sizeof(first[0]));
    states_clear(search->now);
    add(search, search->now, &state);
}

/* Goes on by one moment. False if there is no room for it. */
static bool go_on(struct search *search, const struct moment *moment)
{
    if (!moment->closes) {
        return open_slot(search, moment->record);
    }
    close_slot(search, slot_of(search, moment->record), search->records[moment->record].verdict == VERDICT_MUST);
    return !search->overflow;
}

uint32_t cell_values(const struct record *records, uint32_t count, unsigned words, const uint64_t *first, unsigned word,
                     uint64_t open, uint64_t close, uint64_t values[CELL_CHOICES_MAX])
{
    struct search search;
    uint32_t found = 0;
    uint32_t i = 0;

    begin(&search, records, count, words, first);
    while (i < 2 * count && moments[i].at < open) {
        if (!go_on(&search, &moments[i++])) {
            return NONE;
        }
    }
    for (;;) {
        if (!collect_values(&search, word, values, &found)) {
            return NONE;
        }
        if (i == 2 * count || moments[i].at > close) {
            return found;
        }
        if (!go_on(&search, &moments[i++])) {
            return NONE;
        }
    }
}

enum judgement cell_judge(const struct record *records, uint32_t count, unsigned words, const uint64_t *first,
                          const uint64_t *last, uint32_t *culprit)
{
    struct search search;

    begin(&search, records, count, words, first);
    for (uint32_t i = 0; i < 2 * count; i++) {
        if (!go_on(&search, &moments[i])) {
            return JUDGED_OPEN;
        }
        if (search.now->count == 0) {
            *culprit = moments[i].record;
            return JUDGED_BAD;
        }
    }
    for (uint32_t i = 0; i < search.now->count; i++) {
        if (memcmp(search.now->at[i].words, last, words * sizeof(last[0])) == 0) {
            return JUDGED_GOOD;
        }
    }
    *culprit = count;
    return JUDGED_BAD;
}
