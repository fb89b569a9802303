/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and texts, from the lists of the specification and from nowhere else. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>

#include "netdam.h"

struct entry {
    unsigned value;
    const char *name;
    const char *text;
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define STATUS_ENTRY(name_, value_, class_, text_)       {(value_), #name_, text_},
#define OP_ENTRY(name_, value_, flags_, text_)           {(value_), #name_, text_},
#define ALU_ENTRY(name_, value_, text_)                  {(value_), #name_, text_},
#define TYPE_ENTRY(name_, value_, bytes_, class_, text_) {(value_), #name_, text_},
#define COUNTER_ENTRY(name_, text_)                      {NETDAM_COUNTER_##name_, #name_, text_},

static const struct entry statuses[] = {NETDAM_STATUS_LIST(STATUS_ENTRY)};
static const struct entry opcodes[] = {NETDAM_OP_LIST(OP_ENTRY)};
static const struct entry operations[] = {NETDAM_ALU_LIST(ALU_ENTRY)};
static const struct entry types[] = {NETDAM_TYPE_LIST(TYPE_ENTRY)};
static const struct entry counters[] = {NETDAM_COUNTER_LIST(COUNTER_ENTRY)};

static const struct entry *by_value(const struct entry *table, size_t count, unsigned value)
{
    static const struct entry none = {0, NULL, NULL};

    for (size_t i = 0; i < count; i++) {
        if (table[i].value == value) {
            return &table[i];
        }
    }
    return &none;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && *b) {
        int ca = *a == '-' ? '_' : toupper((unsigned char)*a);
        int cb = *b == '-' ? '_' : toupper((unsigned char)*b);

        if (ca != cb) {
            return false;
        }
        a++;
        b++;
    }
    return *a == *b;
}

static int by_name(const struct entry *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (same_name(table[i].name, name)) {
            return (int)table[i].value;
        }
    }
    return -ENOENT;
}

const char *netdam_status_name(unsigned status)
{
    return by_value(statuses, COUNT(statuses), status)->name;
}

const char *netdam_status_text(unsigned status)
{
    return by_value(statuses, COUNT(statuses), status)->text;
}

const char *netdam_op_name(unsigned opcode)
{
    return by_value(opcodes, COUNT(opcodes), opcode)->name;
}

const char *netdam_alu_name(unsigned operation)
{
    return by_value(operations, COUNT(operations), operation)->name;
}

const char *netdam_type_name(unsigned type)
{
    return by_value(types, COUNT(types), type)->name;
}

const char *netdam_counter_name(unsigned counter)
{
    return by_value(counters, COUNT(counters), counter)->name;
}

const char *netdam_counter_text(unsigned counter)
{
    return by_value(counters, COUNT(counters), counter)->text;
}

int netdam_op_by_name(const char *name)
{
    return by_name(opcodes, COUNT(opcodes), name);
}

int netdam_alu_by_name(const char *name)
{
    return by_name(operations, COUNT(operations), name);
}

int netdam_type_by_name(const char *name)
{
    return by_name(types, COUNT(types), name);
}

int netdam_counter_by_name(const char *name)
{
    return by_name(counters, COUNT(counters), name);
}
