/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has a firmware instance do what the node of tests/model/lane.pml did, frame by frame, and compares the answers.
 *
 * trace.pml describes the lines. A context of the model becomes a random id, its number n a random 48-bit base + n, its
 * generation g whatever the firmware drew when the model came to g, its memory cell 8 bytes in a region.
 */
#include "trace.h"

#define CONTEXTS 2u

static struct trace trace;
static struct trace_node node;
static uint64_t context[CONTEXTS];
static uint64_t first[CONTEXTS]; /* the context's number 0 */
static uint64_t cell;            /* what memory has to hold */
static uint64_t read_number;
static bool values;  /* the model knows the cell */
static bool started; /* the node */

static void stop(void)
{
    if (started) {
        trace_node_stop(&node);
    }
    started = trace.running = false;
}

/* trace: values */
static void begin(const unsigned *v)
{
    stop();
    trace_begin(&trace);
    for (unsigned c = 0; c < CONTEXTS; c++) {
        context[c] = ndtest_random_next(&trace.random);
        first[c] = ndtest_random_below(&trace.random, NETDAM_NUMBER_MAX - 8);
    }
    read_number = ndtest_random_below(&trace.random, NETDAM_NUMBER_MAX - 1000);
    cell = 0;
    values = v[0] != 0;
    trace_node_start(&node, &trace, 1);
    started = true;
}

/* mod: context, number, floor, generation, busy, add, answer, again, generation, lane's floor, value, cell */
static void modification(const unsigned *v)
{
    static const uint8_t status[] = {0, NETDAM_STATUS_OK, NETDAM_STATUS_BAD_KEY, NETDAM_STATUS_STALE,
                                     NETDAM_STATUS_BUSY};
    uint64_t payload = v[5] ? 1 : 2 + 2 * v[0] + v[1], value = 0;
    struct unit_request request = {
        .opcode = v[5] ? NETDAM_OP_FETCH_ADD : NETDAM_OP_WRITE,
        .type = v[5] ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE,
        .context = context[v[0]],
        .number = first[v[0]] + v[1],
        .distance = (uint16_t)(v[1] - v[2]),
        .generation = node.generation[v[3]],
        .key = node.key,
        .address = node.address,
        .length = 8,
        .payload_length = 8,
        .payload = (const uint8_t *)&payload,
    };
    uint32_t windows = v[4] ? trace_node_busy(&node) : 0;
    struct ndtest_packet answer;
    bool answered = trace_ask(&node, &request, &answer);

    if (v[4]) {
        trace_node_not_busy(&node, windows);
    }
    trace_demand(&trace, "answered", v[6] != NONE, answered);
    if (answered && !trace.diverged) {
        trace_demand(&trace, "status", status[v[6]], answer.status);
        trace_demand(&trace, "answered again", v[7], (answer.flags & NETDAM_FLAG_AGAIN) != 0);
        trace_demand(&trace, "generation", node.generation[v[6] == A_STALE ? v[8] : v[3]], answer.generation);
        if (v[6] == A_OK || v[6] == A_REFUSED || (v[6] == A_OTHER && answer.floor != 0)) {
            trace_demand(&trace, "floor", first[v[0]] + v[9], answer.floor);
        }
        if (v[6] == A_OK && v[5]) {
            trace_demand(&trace, "payload length", 8, answer.payload_bytes);
            memcpy(&value, answer.payload, 8);
            trace_demand(&trace, "value", v[10], value);
        }
    }
    if (v[6] == A_OK && !v[7]) {
        cell = v[5] ? cell + 1 : payload;
    }
    if (values) {
        trace_demand(&trace, "cell", v[11], cell);
    }
    trace.counts[v[6] == NONE        ? COUNT_DROPPED
                 : v[6] == A_OK      ? (v[7] ? COUNT_REPEATED : COUNT_EXECUTED)
                 : v[6] == A_REFUSED ? (v[7] ? COUNT_REFUSED_AGAIN : COUNT_REFUSED)
                 : v[6] == A_STALE   ? COUNT_STALE
                                     : COUNT_BUSY]++;
}

/* confirm: context, floor, generation, answer, generation, lane's floor */
static void confirmation(const unsigned *v)
{
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = context[v[0]],
        .number = first[v[0]] + v[1],
        .generation = node.generation[v[2]],
    };

    trace_confirm(&node, &request, v[3], node.generation[v[4]], first[v[0]] + v[5]);
}

/* read: generation, answer, generation, cell */
static void reading(const unsigned *v)
{
    struct unit_request request = {
        .opcode = NETDAM_OP_READ,
        .context = context[0],
        .number = read_number++,
        .generation = node.generation[v[0]],
        .key = node.key,
        .address = node.address,
        .length = 8,
    };
    struct ndtest_packet answer;
    uint64_t value;
    bool stale = v[1] == A_STALE;

    trace_demand(&trace, "answered", true, trace_ask(&node, &request, &answer));
    if (!trace.diverged) {
        trace_demand(&trace, "status", stale ? NETDAM_STATUS_STALE : NETDAM_STATUS_OK, answer.status);
    }
    if (!trace.diverged && stale) {
        trace_demand(&trace, "generation", node.generation[v[2]], answer.generation);
    } else if (!trace.diverged) {
        trace_demand(&trace, "payload length", 8, answer.payload_bytes);
        memcpy(&value, answer.payload, 8);
        trace_demand(&trace, "value", v[3], value);
    }
    trace.counts[stale ? COUNT_READ_STALE : COUNT_READ]++;
}

/* lost: what, context (2: both), generation */
static void loss(const unsigned *v)
{
    trace_lose(&node, v[0], v[1] < CONTEXTS ? context[v[1]] : 0, v[1] < CONTEXTS ? 1 : CONTEXTS, v[2]);
}

/* key: valid */
static void turn_key(const unsigned *v)
{
    trace_node_turn_key(&node, v[0] != 0);
}

/* written: cell */
static void written(const unsigned *v)
{
    cell = v[0];
    trace_node_set_cell(&node, cell);
}

static bool replay(const char *name, const unsigned *v, unsigned count)
{
    static const struct {
        const char *name;
        unsigned count;
        void (*replay)(const unsigned *v);
    } events[] = {
        {"trace", 1, begin}, {"mod", 12, modification}, {"confirm", 6, confirmation}, {"read", 4, reading},
        {"lost", 3, loss},   {"key", 1, turn_key},      {"written", 1, written},
    };

    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        if (strcmp(name, events[i].name) == 0 && count == events[i].count) {
            events[i].replay(v);
            trace_demand(&trace, "memory", cell, trace_node_cell(&node));
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    return trace_replay(&trace, argc, argv, replay, stop);
}
