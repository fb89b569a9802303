/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual time and a bad wire: a heap of events, everything drawn from one seed. */
#include "ndtest_wire.h"

#include <stdlib.h>

enum event_kind {
    EVENT_DELIVER,
    EVENT_RUN,
    EVENT_ACTION,
};

/* A port that was full has room again after this. */
#define PORT_RETRY_NS 2000
/* No node runs more often than this in virtual time, whatever timer it names. */
#define RUN_STEP_NS 1000
#define RUNS_MAX    100000

static bool before(const struct ndtest_event *a, const struct ndtest_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct ndtest_wire *wire, struct ndtest_event event)
{
    size_t at;

    if (wire->heap_used == wire->heap_room) {
        wire->heap_room = wire->heap_room == 0 ? 256 : 2 * wire->heap_room;
        wire->heap = realloc(wire->heap, wire->heap_room * sizeof(*wire->heap));
        if (wire->heap == NULL) {
            abort();
        }
    }
    event.order = wire->next_order++;
    at = wire->heap_used++;
    while (at != 0 && before(&event, &wire->heap[(at - 1) / 2])) {
        wire->heap[at] = wire->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    wire->heap[at] = event;
}

static bool pop(struct ndtest_wire *wire, struct ndtest_event *event)
{
    struct ndtest_event last;
    size_t at = 0;

    if (wire->heap_used == 0) {
        return false;
    }
    *event = wire->heap[0];
    last = wire->heap[--wire->heap_used];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= wire->heap_used) {
            break;
        }
        if (child + 1 < wire->heap_used && before(&wire->heap[child + 1], &wire->heap[child])) {
            child++;
        }
        if (!before(&wire->heap[child], &last)) {
            break;
        }
        wire->heap[at] = wire->heap[child];
        at = child;
    }
    wire->heap[at] = last;
    return true;
}

void ndtest_wire_init(struct ndtest_wire *wire, uint64_t seed, uint64_t start_ns)
{
    memset(wire, 0, sizeof(*wire));
    wire->random.state = seed;
    wire->now_ns = start_ns;
    wire->weather.latency_ns = 5000;
    wire->hash = seed;
    for (unsigned i = 0; i < NDTEST_NODES_MAX; i++) {
        wire->run_at_ns[i] = NETDAM_FW_NEVER;
    }
}

void ndtest_wire_fini(struct ndtest_wire *wire)
{
    for (size_t i = 0; i < wire->heap_used; i++) {
        free(wire->heap[i].frame.data);
    }
    free(wire->heap);
    free(wire->outgoing);
    wire->heap = NULL;
    wire->outgoing = NULL;
    wire->heap_used = 0;
}

static bool is_arp(const uint8_t *data)
{
    return data[12] == 0x08 && data[13] == 0x06;
}

static void deliver_later(struct ndtest_wire *wire, unsigned from, unsigned to, const uint8_t *data, size_t bytes,
                          uint64_t delay_ns, bool may_damage)
{
    struct ndtest_event event = {.kind = EVENT_DELIVER, .at_ns = wire->now_ns + delay_ns};

    event.frame = (struct ndtest_frame){
        .data = malloc(bytes),
        .bytes = bytes,
        .from = from,
        .to = to,
        .to_incarnation = wire->incarnation[to],
        .from_incarnation = wire->incarnation[from],
    };
    if (event.frame.data == NULL) {
        abort();
    }
    memcpy(event.frame.data, data, bytes);
    if (may_damage && ndtest_random_chance(&wire->random, wire->weather.corrupt) &&
        (wire->weather.corrupt_ethernet || !is_arp(data))) {
        uint64_t flips = ndtest_random_between(&wire->random, 1, 3);
        uint64_t first = wire->weather.corrupt_ethernet ? 0 : NETDAM_ETHERNET_BYTES * 8;

        for (uint64_t i = 0; i < flips; i++) {
            /* Half of the damage goes where headers are. */
            uint64_t end = ndtest_random_chance(&wire->random, 500000) && bytes > 106 ? 106 * 8 : bytes * 8;
            uint64_t bit = first + ndtest_random_below(&wire->random, end - first);

            event.frame.data[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
        event.frame.damaged = true;
    }
    push(wire, event);
}

static void send_copies(struct ndtest_wire *wire, unsigned from, unsigned to, const uint8_t *data, size_t bytes)
{
    const struct ndtest_weather *weather = &wire->weather;
    unsigned copies = ndtest_random_chance(&wire->random, weather->drop) ? 0 : 1;

    if (wire->cut[from][to]) {
        return;
    }
    if (ndtest_random_chance(&wire->random, weather->duplicate)) {
        copies += (unsigned)ndtest_random_between(&wire->random, 1, 2);
    }
    for (unsigned i = 0; i < copies; i++) {
        uint64_t delay = weather->latency_ns + ndtest_random_below(&wire->random, weather->jitter_ns + 1);

        if (ndtest_random_chance(&wire->random, weather->late)) {
            delay += ndtest_random_below(&wire->random, weather->late_ns + 1);
        }
        deliver_later(wire, from, to, data, bytes, delay, true);
    }
}

static uint8_t *port_begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct ndtest_wire *wire = opaque;

    (void)node;
    if (ndtest_random_chance(&wire->random, wire->weather.port_full)) {
        return NULL;
    }
    free(wire->outgoing);
    wire->outgoing = malloc(bytes);
    wire->outgoing_bytes = bytes;
    return wire->outgoing;
}

static void port_end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct ndtest_wire *wire = opaque;
    const uint8_t *data = wire->outgoing;

    if (bytes > wire->outgoing_bytes || bytes < NETDAM_ETHERNET_BYTES) {
        /* More than was asked for has been written already; nothing that follows would be a test. */
        abort();
    }
    if (wire->hooks.transmitted != NULL) {
        wire->hooks.transmitted(wire->hooks.opaque, node, data, bytes);
    }
    for (unsigned to = 0; to < wire->node_count; to++) {
        if (to != node->index && ((data[0] & 1) != 0 || memcmp(data, wire->nodes[to]->config.mac,
                                                               sizeof(wire->nodes[to]->config.mac)) == 0)) {
            send_copies(wire, node->index, to, data, bytes);
        }
    }
}

void ndtest_wire_port(struct ndtest_wire *wire, struct ndtest_hooks *hooks)
{
    hooks->opaque = wire;
    hooks->transmit_begin = port_begin;
    hooks->transmit_end = port_end;
}

void ndtest_wire_add(struct ndtest_wire *wire, struct ndtest_node *node)
{
    node->index = wire->node_count;
    wire->nodes[wire->node_count++] = node;
}

static void run_no_later(struct ndtest_wire *wire, unsigned node, uint64_t at_ns)
{
    if (at_ns < wire->run_at_ns[node]) {
        wire->run_at_ns[node] = at_ns;
        push(wire, (struct ndtest_event){.kind = EVENT_RUN, .at_ns = at_ns, .value = node});
    }
}

void ndtest_wire_wake(struct ndtest_wire *wire, unsigned node)
{
    run_no_later(wire, node, wire->now_ns);
}

void ndtest_wire_schedule(struct ndtest_wire *wire, uint64_t delay_ns, uint64_t value)
{
    push(wire, (struct ndtest_event){.kind = EVENT_ACTION, .at_ns = wire->now_ns + delay_ns, .value = value});
}

void ndtest_wire_inject(struct ndtest_wire *wire, unsigned from, unsigned to, const uint8_t *data, size_t bytes,
                        uint64_t delay_ns)
{
    deliver_later(wire, from, to, data, bytes, delay_ns, false);
}

void ndtest_wire_restart(struct ndtest_wire *wire, unsigned node)
{
    wire->incarnation[node]++;
    ndtest_node_start(wire->nodes[node], wire->now_ns);
    wire->run_at_ns[node] = NETDAM_FW_NEVER;
    ndtest_wire_wake(wire, node);
}

/* What a platform does: runs until nothing is left to do, then sleeps until the next timer. */
static void run_node(struct ndtest_wire *wire, unsigned index)
{
    struct ndtest_node *node = wire->nodes[index];
    uint64_t next_ns = NETDAM_FW_NEVER;

    wire->run_at_ns[index] = NETDAM_FW_NEVER;
    if (!node->running) {
        return;
    }
    for (unsigned runs = 0;; runs++) {
        struct netdam_fw_run_result result = {0};
        uint64_t budget = wire->budget_bytes;

        if (runs == RUNS_MAX) {
            if (wire->hooks.restless != NULL) {
                wire->hooks.restless(wire->hooks.opaque, node);
            }
            next_ns = wire->now_ns + RUN_STEP_NS;
            break;
        }
        if (budget == 0) {
            budget = ndtest_random_chance(&wire->random, 100000) ? 1 : ndtest_random_between(&wire->random, 1, 65536);
        }
        node->ops->run(node->state, wire->now_ns, budget, &result);
        if (wire->hooks.after_run != NULL) {
            wire->hooks.after_run(wire->hooks.opaque, node);
        }
        if (result.port_full) {
            next_ns = wire->now_ns + PORT_RETRY_NS;
            break;
        }
        if (!result.more && node->ops->prepare_sleep(node->state)) {
            next_ns = result.next_ns;
            if (next_ns != NETDAM_FW_NEVER && next_ns < wire->now_ns + RUN_STEP_NS) {
                next_ns = wire->now_ns + RUN_STEP_NS;
            }
            break;
        }
    }
    if (next_ns != NETDAM_FW_NEVER) {
        run_no_later(wire, index, next_ns);
    }
}

static void deliver(struct ndtest_wire *wire, struct ndtest_frame *frame)
{
    struct ndtest_node *node = wire->nodes[frame->to];

    if (node->running && !wire->cut[frame->from][frame->to]) {
        wire->delivered++;
        wire->hash = ndtest_hash(ndtest_mix(wire->hash ^ wire->now_ns ^ frame->to), frame->data, frame->bytes);
        if (wire->hooks.before_receive != NULL) {
            wire->hooks.before_receive(wire->hooks.opaque, node, frame);
        }
        node->ops->receive(node->state, frame->data, frame->bytes, wire->now_ns);
        if (wire->hooks.after_receive != NULL) {
            wire->hooks.after_receive(wire->hooks.opaque, node, frame);
        }
        ndtest_wire_wake(wire, frame->to);
    }
    free(frame->data);
}

bool ndtest_wire_step(struct ndtest_wire *wire)
{
    struct ndtest_event event;

    if (!pop(wire, &event)) {
        return false;
    }
    wire->now_ns = event.at_ns;
    switch (event.kind) {
    case EVENT_DELIVER:
        deliver(wire, &event.frame);
        break;
    case EVENT_RUN:
        /* An earlier wake-up leaves the later event behind. */
        if (wire->run_at_ns[event.value] == event.at_ns) {
            run_node(wire, (unsigned)event.value);
        }
        break;
    default:
        if (wire->hooks.action != NULL) {
            wire->hooks.action(wire->hooks.opaque, event.value);
        }
        break;
    }
    return true;
}
