/* SPDX-License-Identifier: BSD-3-Clause */
/* What the replays of model traces share: a firmware instance that stands for a node of the model, and its losses. */
#ifndef TRACE_H
#define TRACE_H

#include "unit.h"

#define TRACE_GENERATIONS 8u
#define TRACE_BASE        UINT64_C(0x10000) /* the region's place */
#define TRACE_LENGTH      UINT64_C(0x1000)

/* Answers, as the models number them. */
enum trace_answer { NONE, A_OK, A_REFUSED, A_STALE, A_OTHER, A_FORWARD };
/* What a node loses, as the models number it. */
enum trace_loss { FORGETS = 1, GIVES_UP, RESET, GIVES_UP_ANOTHER, FORGETS_ANOTHER };

/* X(name, text) */
#define TRACE_COUNT_LIST(X)                                                                                            \
    X(TRACES, "traces")                                                                                                \
    X(EVENTS, "events")                                                                                                \
    X(EXECUTED, "executed")                                                                                            \
    X(REPEATED, "repeated")                                                                                            \
    X(REFUSED, "refused")                                                                                              \
    X(REFUSED_AGAIN, "refused-again")                                                                                  \
    X(DROPPED, "dropped")                                                                                              \
    X(STALE, "stale")                                                                                                  \
    X(BUSY, "busy")                                                                                                    \
    X(CONFIRMED, "confirmed")                                                                                          \
    X(CONFIRM_STALE, "confirm-stale")                                                                                  \
    X(READ, "read")                                                                                                    \
    X(READ_STALE, "read-stale")                                                                                        \
    X(FORGOTTEN, "forgotten")                                                                                          \
    X(GIVEN_UP, "given-up")                                                                                            \
    X(RESETS, "reset")                                                                                                 \
    X(DIVERGED, "diverged")

#define TRACE_COUNT_ENUM(name, text) COUNT_##name,
enum { TRACE_COUNT_LIST(TRACE_COUNT_ENUM) COUNTS };
#undef TRACE_COUNT_ENUM

struct trace {
    struct ndtest_random random;
    const char *line; /* the event that is replayed */
    bool running;
    bool diverged; /* the rest of this trace is passed over */
    uint64_t counts[COUNTS];
};

struct trace_node {
    struct trace *trace;
    struct unit u;
    uint64_t generation[TRACE_GENERATIONS]; /* by the model's number of it */
    unsigned current;
    uint64_t key;
    uint64_t address; /* of the cell, in the region */
    uint32_t region;
    bool key_valid; /* the region is there */
};

/* Something the model says and the firmware has to say too. */
void trace_demand(struct trace *trace, const char *what, uint64_t expected, uint64_t found);
/* A new trace begins. */
void trace_begin(struct trace *trace);

/* Starts a node, 10.0.0.index+1. */
void trace_node_start(struct trace_node *node, struct trace *trace, unsigned index);
void trace_node_stop(struct trace_node *node);
void trace_node_turn_key(struct trace_node *node, bool valid);
uint64_t trace_node_cell(const struct trace_node *node);
void trace_node_set_cell(struct trace_node *node, uint64_t value);
/* From here on the node has no window for a lane that has none; and as before. */
uint32_t trace_node_busy(struct trace_node *node);
void trace_node_not_busy(struct trace_node *node, uint32_t before);

/* A request with one segment comes in from 10.0.0.1; true if it is answered. */
bool trace_ask(struct trace_node *node, struct unit_request *request, struct ndtest_packet *answer);
void trace_confirm(struct trace_node *node, const struct unit_request *request, enum trace_answer answer,
                   uint64_t generation, uint64_t floor);
/* The node loses lanes: `lanes` of them if it forgets, else that of `context`. `now` is its generation after that. */
void trace_lose(struct trace_node *node, enum trace_loss what, uint64_t context, unsigned lanes, unsigned now);

/*
 * Reads the traces that argv names; replay gets each event's name and numbers, and returns false if there is no such
 * event. --first: one divergence is enough. Returns the exit status.
 */
int trace_replay(struct trace *trace, int argc, char **argv,
                 bool (*replay)(const char *name, const unsigned *v, unsigned count), void (*stop)(void));

#endif
