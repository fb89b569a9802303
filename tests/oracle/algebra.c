/* SPDX-License-Identifier: BSD-3-Clause */
/* The algebra table as claims about the scalar semantics. */
#include "algebra.h"

#include "ndtest_random.h"
#include "netdam/isa.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>

#define TYPES        (NETDAM_TYPE_F64 + 1u)
#define RANDOM_TRIES 20000u

struct row {
    const char *name;
    uint8_t opcode;
    uint8_t operation;
    uint8_t class_of_type;
    uint8_t flags;
};

#define ROW(opcode_, operation_, class_, flags_)                                                                       \
    {#opcode_ " " #operation_ " " #class_, NETDAM_OP_##opcode_, NETDAM_ALU_##operation_, NETDAM_TYPE_CLASS_##class_,   \
     (flags_)},
static const struct row rows[] = {NETDAM_ALGEBRA_LIST(ROW)};
#undef ROW

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/*
 * True of what it does to memory, and yet not claimed: a repetition would return something else, and nothing in the
 * transport makes use of it.
 */
static const struct {
    uint8_t opcode;
    uint8_t flag;
} declined[] = {
    {NETDAM_OP_CAS, NETDAM_ALG_IDEMPOTENT},
    {NETDAM_OP_TRANSACTION, NETDAM_ALG_IDEMPOTENT},
};

/* Operands: one, and for a comparison a second. */
struct operand {
    uint64_t value;
    uint64_t other;
};

static bool leaves_memory(unsigned opcode)
{
    return (netdam_op_flags(opcode) & (NETDAM_OPF_MODIFIES | NETDAM_OPF_DEVICE)) == 0 &&
           opcode != NETDAM_OP_LOAD_REDUCE;
}

/*
 * What an operation leaves of an element. Of LOAD_REDUCE the payload is what changes, and memory the operand. What a
 * SEND leaves is all messages in the order of their buffers.
 */
static uint64_t leave(const struct row *row, unsigned type, uint64_t state, struct operand operand)
{
    switch (row->opcode) {
    case NETDAM_OP_WRITE:
    case NETDAM_OP_SWAP:
        return operand.value;
    case NETDAM_OP_SEND:
        return ndtest_mix(state ^ operand.value);
    case NETDAM_OP_FETCH_ADD:
        return reference(NETDAM_ALU_SUM, type, state, operand.value);
    case NETDAM_OP_CAS:
    case NETDAM_OP_TRANSACTION:
        return state == operand.value ? operand.other : state;
    case NETDAM_OP_REDUCE:
    case NETDAM_OP_FETCH_OP:
    case NETDAM_OP_LOAD_REDUCE:
        return reference(row->operation, type, state, operand.value);
    default:
        return state;
    }
}

/* The operation that two of them may be combined by, on their operands; NONE: there is none. */
static unsigned combining(const struct row *row)
{
    return row->opcode == NETDAM_OP_FETCH_ADD ? NETDAM_ALU_SUM : row->operation;
}

/* The flags that hold for one memory value and two operands. */
static unsigned hold(const struct row *row, unsigned type, uint64_t memory, struct operand a, struct operand b)
{
    unsigned flags = 0;
    uint64_t once = leave(row, type, memory, a);
    uint64_t both = leave(row, type, once, b);

    if (leave(row, type, once, a) == once) {
        flags |= NETDAM_ALG_IDEMPOTENT;
    }
    if (both == leave(row, type, leave(row, type, memory, b), a)) {
        flags |= NETDAM_ALG_COMMUTES;
    }
    if (leaves_memory(row->opcode)) {
        flags |= NETDAM_ALG_ASSOCIATES;
    } else if (combining(row) != NETDAM_ALU_NONE) {
        struct operand combined = {reference(combining(row), type, a.value, b.value), 0};

        flags |= both == leave(row, type, memory, combined) ? NETDAM_ALG_ASSOCIATES : 0;
    }
    return flags;
}

static uint64_t random_element(struct ndtest_random *random, unsigned type)
{
    unsigned bits = 8 * netdam_type_bytes(type);
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t value = ndtest_random_next(random) & mask;

    switch (ndtest_random_below(random, 3)) {
    case 0:
        return value & 7; /* small: equal ones meet */
    case 1:
        if (netdam_type_class_of(type) == NETDAM_TYPE_CLASS_FLOAT) {
            /* Of about the size of 1, so that sums and products round and do not vanish. */
            uint64_t edges[REFERENCE_EDGES];
            uint64_t one = (reference_edges(type, edges), edges[10]);

            return (one + (value >> (bits / 2 + 2))) & mask;
        }
        return value;
    default:
        return value;
    }
}

static unsigned hold_for_type(const struct row *row, unsigned type, struct ndtest_random *random)
{
    uint64_t edges[REFERENCE_EDGES];
    unsigned count = reference_edges(type == NETDAM_TYPE_NONE ? NETDAM_TYPE_U8 : type, edges);
    unsigned flags = NETDAM_ALG_LATTICE;

    for (unsigned m = 0; m < count; m++) {
        for (unsigned a = 0; a < count; a++) {
            for (unsigned b = 0; b < count; b++) {
                struct operand first = {edges[a], edges[(a + 1) % count]};
                struct operand second = {edges[b], edges[(b + 1) % count]};

                flags &= hold(row, type, edges[m], first, second);
            }
        }
    }
    for (unsigned i = 0; i < RANDOM_TRIES; i++) {
        unsigned drawn = type == NETDAM_TYPE_NONE ? NETDAM_TYPE_U64 : type;
        struct operand first = {random_element(random, drawn), random_element(random, drawn)};
        struct operand second = {random_element(random, drawn), random_element(random, drawn)};

        flags &= hold(row, type, random_element(random, drawn), first, second);
    }
    return flags;
}

/* The flags that hold for every type of a row. What only a device does by itself is never repeated or merged. */
static unsigned hold_for_row(const struct row *row, struct ndtest_random *random)
{
    unsigned flags = NETDAM_ALG_LATTICE;

    if ((netdam_op_flags(row->opcode) & NETDAM_OPF_DEVICE) != 0) {
        return 0;
    }
    for (unsigned type = 0; type < TYPES; type++) {
        if ((netdam_type_class_of(type) & row->class_of_type) != 0) {
            flags &= hold_for_type(row, type, random);
        }
    }
    return flags;
}

static unsigned declined_for(unsigned opcode)
{
    unsigned flags = 0;

    for (unsigned i = 0; i < sizeof(declined) / sizeof(declined[0]); i++) {
        flags |= declined[i].opcode == opcode ? declined[i].flag : 0u;
    }
    return flags;
}

/* True if a row claims what holds, all of it, and nothing that is declined. */
static bool row_is_right(const struct row *row, unsigned claimed, unsigned holds)
{
    return claimed == (holds & ~declined_for(row->opcode));
}

bool algebra_run(uint64_t seed)
{
    struct ndtest_random random = {seed};
    unsigned holds[ROWS];
    unsigned wrong = 0;
    unsigned unnoticed = 0;

    for (unsigned i = 0; i < ROWS; i++) {
        holds[i] = hold_for_row(&rows[i], &random);
        if (!row_is_right(&rows[i], rows[i].flags, holds[i])) {
            printf("# %s: claims %u, but %u holds\n", rows[i].name, rows[i].flags, holds[i]);
            wrong++;
        }
    }
    printf("%sok 1 - %u rows of the algebra table claim what holds\n", wrong == 0 ? "" : "not ", (unsigned)ROWS);
    for (unsigned i = 0; i < ROWS; i++) {
        for (unsigned flag = NETDAM_ALG_IDEMPOTENT; flag <= NETDAM_ALG_ASSOCIATES; flag <<= 1) {
            if (row_is_right(&rows[i], rows[i].flags ^ flag, holds[i])) {
                printf("# %s: flag %u may be either\n", rows[i].name, flag);
                unnoticed++;
            }
        }
    }
    printf("%sok 2 - a table with any one of %u flags flipped is noticed\n", unnoticed == 0 ? "" : "not ",
           3 * (unsigned)ROWS);
    return wrong == 0 && unnoticed == 0;
}
