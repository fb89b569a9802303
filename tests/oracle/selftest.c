/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge judged: random small histories, good and bad ones, against a search that simply tries every order. */
#include "selftest.h"

#include "cell.h"
#include "ndtest_random.h"

#include <stdio.h>
#include <string.h>

#define HISTORIES   60000u
#define RECORDS_MAX 6u
#define AGAIN_MAX   10u /* steps of one order at most, repetitions included */

struct history {
    struct record records[RECORDS_MAX];
    uint32_t count;
    unsigned words;
    uint64_t first[CELL_WORDS_MAX];
    uint64_t last[CELL_WORDS_MAX];
};

static void draw_step(struct ndtest_random *random, struct step *step, unsigned words, bool idempotent)
{
    static const uint8_t opcodes[] = {NETDAM_OP_READ, NETDAM_OP_WRITE,     NETDAM_OP_REDUCE,
                                      NETDAM_OP_SWAP, NETDAM_OP_FETCH_ADD, NETDAM_OP_CAS};

    memset(step, 0, sizeof(*step));
    step->opcode = opcodes[ndtest_random_below(random, idempotent ? 3 : sizeof(opcodes))];
    step->type = NETDAM_TYPE_U8;
    step->operation = NETDAM_ALU_NONE;
    if (step->opcode == NETDAM_OP_REDUCE) {
        step->operation = idempotent || ndtest_random_below(random, 2) == 0 ? NETDAM_ALU_MAX : NETDAM_ALU_SUM;
    }
    step->word = (uint8_t)ndtest_random_below(random, words);
    step->offset = (uint8_t)ndtest_random_below(random, 2);
    step->bytes = (uint8_t)(1 + ndtest_random_below(random, 2));
    step->operand[0] = ndtest_random_below(random, 4) * 0x0101;
    step->operand[1] = ndtest_random_below(random, 4) * 0x0101;
}

/* Happens in the order of the records, perhaps with something seen that was not so. */
static void draw_history(struct ndtest_random *random, struct history *history)
{
    uint64_t now = 100;

    memset(history, 0, sizeof(*history));
    history->words = 1 + (unsigned)ndtest_random_below(random, 2);
    history->count = 1 + (uint32_t)ndtest_random_below(random, RECORDS_MAX);
    for (unsigned i = 0; i < history->words; i++) {
        history->first[i] = history->last[i] = ndtest_random_below(random, 4);
    }
    for (uint32_t i = 0; i < history->count; i++) {
        struct record *record = &history->records[i];
        uint64_t before;
        uint64_t after;

        record->verdict = (uint8_t)(ndtest_random_below(random, 3) != 0 ? 0 : ndtest_random_below(random, 3));
        draw_step(random, &record->step, history->words, record->verdict == VERDICT_AGAIN);
        now += 2 + ndtest_random_below(random, 3);
        record->open = now - ndtest_random_below(random, 12);
        record->close = now + ndtest_random_below(random, 12);
        after = step_apply(&record->step, history->last[record->step.word], &before);
        if (record->verdict == VERDICT_MUST || ndtest_random_below(random, 2) == 0) {
            history->last[record->step.word] = after;
        }
        record->observed = record->verdict == VERDICT_MUST && ndtest_random_below(random, 3) != 0;
        record->seen = before;
        if (ndtest_random_below(random, 12) == 0) {
            record->seen ^= 1;
        }
    }
    if (ndtest_random_below(random, 8) == 0) {
        history->last[0] ^= 1;
    }
}

struct attempt {
    const struct history *history;
    bool placed[RECORDS_MAX];
    uint64_t words[CELL_WORDS_MAX];
};

static bool may_come_next(const struct attempt *attempt, uint32_t index)
{
    const struct record *records = attempt->history->records;

    if (attempt->placed[index] && records[index].verdict != VERDICT_AGAIN) {
        return false;
    }
    for (uint32_t i = 0; i < attempt->history->count; i++) {
        if (i == index) {
            continue;
        }
        /* What had ended before this began comes first, and what began after this had ended comes later. */
        if ((!attempt->placed[i] && records[i].verdict == VERDICT_MUST && records[i].close < records[index].open) ||
            (attempt->placed[i] && records[i].open > records[index].close)) {
            return false;
        }
    }
    return true;
}

static bool is_complete(const struct attempt *attempt)
{
    for (uint32_t i = 0; i < attempt->history->count; i++) {
        if (!attempt->placed[i] && attempt->history->records[i].verdict == VERDICT_MUST) {
            return false;
        }
    }
    return memcmp(attempt->words, attempt->history->last, attempt->history->words * sizeof(attempt->words[0])) == 0;
}

/*
 * Tries everything. What may happen again is placed as often as it changes something: a repetition forbids nothing that
 * the first time has not.
 */
static bool explain(const struct attempt *attempt, unsigned steps)
{
    if (is_complete(attempt)) {
        return true;
    }
    for (uint32_t i = 0; i < attempt->history->count && steps < AGAIN_MAX; i++) {
        const struct record *record = &attempt->history->records[i];
        struct attempt next = *attempt;
        uint64_t before;

        if (!may_come_next(attempt, i)) {
            continue;
        }
        next.words[record->step.word] = step_apply(&record->step, next.words[record->step.word], &before);
        next.placed[i] = true;
        if ((record->observed && before != record->seen) ||
            (record->verdict == VERDICT_AGAIN && next.words[record->step.word] == attempt->words[record->step.word])) {
            continue;
        }
        if (explain(&next, steps + 1)) {
            return true;
        }
    }
    return false;
}

static void tell(const struct history *history)
{
    printf("# words 0x%llx 0x%llx at first, 0x%llx 0x%llx at the end\n", (unsigned long long)history->first[0],
           (unsigned long long)history->first[1], (unsigned long long)history->last[0],
           (unsigned long long)history->last[1]);
    for (uint32_t i = 0; i < history->count; i++) {
        const struct record *r = &history->records[i];

        printf("# verdict %u: opcode 0x%02x operation %u word %u offset %u bytes %u operands 0x%llx 0x%llx in "
               "[%llu, %llu], %s0x%llx\n",
               r->verdict, r->step.opcode, r->step.operation, r->step.word, r->step.offset, r->step.bytes,
               (unsigned long long)r->step.operand[0], (unsigned long long)r->step.operand[1],
               (unsigned long long)r->open, (unsigned long long)r->close, r->observed ? "saw " : "saw not ",
               (unsigned long long)r->seen);
    }
}

bool selftest_run(uint64_t seed)
{
    struct ndtest_random random = {seed};
    unsigned good = 0;
    unsigned bad = 0;

    for (unsigned i = 0; i < HISTORIES; i++) {
        struct history history;
        struct attempt attempt = {.history = &history};
        uint32_t culprit = 0;
        enum judgement judgement;
        bool explained;

        draw_history(&random, &history);
        memcpy(attempt.words, history.first, sizeof(attempt.words));
        explained = explain(&attempt, 0);
        judgement = cell_judge(history.records, history.count, history.words, history.first, history.last, &culprit);
        if (judgement != (explained ? JUDGED_GOOD : JUDGED_BAD)) {
            tell(&history);
            printf("not ok 1 - history %u of seed %llu: judged %d, but %s\n", i, (unsigned long long)seed,
                   (int)judgement, explained ? "an order explains it" : "no order explains it");
            return false;
        }
        good += explained;
        bad += !explained;
    }
    printf("%sok 1 - the judge agrees with a search that tries all orders: %u histories good, %u bad\n",
           good > HISTORIES / 5 && bad > HISTORIES / 5 ? "" : "not ", good, bad);
    return good > HISTORIES / 5 && bad > HISTORIES / 5;
}
