/* SPDX-License-Identifier: BSD-3-Clause */
/* Histories of memory: what was done to a few words and what was seen of them, and whether any order explains it. */
#ifndef ORACLE_CELL_H
#define ORACLE_CELL_H

#include "netdam/isa.h"

/* Words of 8 bytes that are judged together. One, or as many as something changes at once. */
#define CELL_WORDS_MAX 4u

/* An entry of a transaction, as far as one object is concerned. */
struct cell_entry {
    uint8_t kind;        /* enum netdam_transaction_kind */
    uint8_t at;          /* bytes from the first word on */
    uint8_t length;      /* bytes */
    bool fails;          /* the comparison did not hold */
    bool unknown;        /* nobody looked at it */
    const uint8_t *data; /* COMPARE, WRITE */
    const uint8_t *seen; /* FETCH: what came back, or NULL */
};

#define CELL_ENTRIES_MAX 16u

/* What a transaction does to all words of an object, in one step. */
struct cell_transaction {
    uint32_t count;
    bool refused; /* a comparison failed, here or in another object: nothing was written */
    struct cell_entry entries[CELL_ENTRIES_MAX];
};

#define CELL_CHOICES_MAX 48u

/* Operands of which one is the right one, and nobody knows which. */
struct cell_choices {
    uint32_t count;
    uint64_t values[CELL_CHOICES_MAX];
};

/* What one operation does to one word, in one step; a transaction: to all of them. */
struct step {
    const struct cell_transaction *transaction; /* or NULL */
    const struct cell_choices *choices;         /* instead of operand[0], or NULL */
    uint8_t opcode;                             /* READ, WRITE, REDUCE or an atomic */
    uint8_t operation;                          /* enum netdam_alu */
    uint8_t type;                               /* enum netdam_type */
    uint8_t word;
    uint8_t offset; /* bytes in the word */
    uint8_t bytes;
    uint64_t operand[2];
};

enum verdict {
    VERDICT_MUST,  /* happened once, between open and close */
    VERDICT_MAY,   /* happened once or never */
    VERDICT_AGAIN, /* happened any number of times, or never */
};

struct record {
    struct step step;
    uint64_t open;
    uint64_t close;
    uint64_t seen; /* what was there before the step, or what a READ returned; low bytes */
    uint32_t op;   /* whose it is */
    uint32_t next; /* the record of the same words that was made before it, or UINT32_MAX */
    uint8_t site;
    uint8_t verdict;
    bool observed; /* `seen` is known */
};

/* Time and the order of what happens at one time, in one number. */
#define CELL_TICK_BITS 20

/* The word after the step. *before gets the bytes concerned as they were. */
uint64_t step_apply(const struct step *step, uint64_t word, uint64_t *before);

enum judgement {
    JUDGED_GOOD,
    JUDGED_BAD,  /* no order explains it */
    JUDGED_OPEN, /* too many orders to tell */
};

/*
 * Judges `count` records, in any order, of `words` words that held `first` at the beginning and hold `last` at the end.
 * *culprit: the record that no order explains, `count` if it is what memory holds at the end.
 */
enum judgement cell_judge(const struct record *records, uint32_t count, unsigned words, const uint64_t *first,
                          const uint64_t *last, uint32_t *culprit);

/*
 * All values that a word may have had at some moment in [open, close]. Returns how many, or UINT32_MAX if there are more
 * than CELL_CHOICES_MAX or it cannot be told.
 */
uint32_t cell_values(const struct record *records, uint32_t count, unsigned words, const uint64_t *first, unsigned word,
                     uint64_t open, uint64_t close, uint64_t values[CELL_CHOICES_MAX]);

/* The word after REDUCE and the like, element by element. */
uint64_t cell_elements(const struct step *step, uint64_t old);

/* Frees what cell_judge keeps from call to call. */
void cell_fini(void);

#endif
