/* SPDX-License-Identifier: BSD-3-Clause */
/* A firmware instance in virtual time. Each event makes one call, so that the firmware's time never runs backwards. */
#include "vt/node.h"

#include <stdlib.h>

/* Frames that may be received before run has its turn. */
#define BATCH_FRAMES 32u
/* A node that always has more to do runs this often, or virtual time would stand still. */
#define STEP_NS       1000u
#define PORT_RETRY_NS 2000u

void ndsim_node_init(struct ndsim_node *node, const struct netdam_fw_ops *ops, void *state, struct ndsim_loop *loop,
                     const struct ndsim_node_config *config, const struct ndsim_port *port, uint64_t seed)
{
    memset(node, 0, sizeof(*node));
    node->ops = ops;
    node->state = state;
    node->loop = loop;
    node->config = *config;
    node->port = *port;
    node->random.state = seed;
    node->run_ns = NDSIM_NEVER;
    node->event_ns = NDSIM_NEVER;
}

static void forget_waiting(struct ndsim_node *node)
{
    for (; node->waiting_count != 0; node->waiting_count--) {
        free(node->waiting[node->waiting_first].data);
        node->waiting_first = (node->waiting_first + 1) % node->waiting_room;
    }
}

static void forget_sent(struct ndsim_node *node)
{
    for (uint32_t i = 0; i < node->sent_count; i++) {
        free(node->sent[i].data);
    }
    node->sent_count = 0;
    node->sent_bytes = 0;
}

void ndsim_node_fini(struct ndsim_node *node)
{
    forget_waiting(node);
    forget_sent(node);
    free(node->waiting);
    free(node->sent);
    node->waiting = NULL;
    node->sent = NULL;
}

static void *checked(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

uint8_t *ndsim_node_transmit_begin(struct ndsim_node *node, size_t bytes)
{
    struct ndsim_waiting *place;
    uint64_t backlog = node->sent_bytes + bytes;

    if (node->config.port_bytes != 0) {
        backlog += node->port.backlog != NULL ? node->port.backlog(node->port.opaque, node, node->loop->now_ns) : 0;
        if (backlog > node->config.port_bytes) {
            return NULL;
        }
    }
    if (ndsim_random_chance(&node->random, node->config.port_full)) {
        return NULL;
    }
    if (node->sent_count == node->sent_room) {
        node->sent_room = node->sent_room == 0 ? BATCH_FRAMES : 2 * node->sent_room;
        node->sent = checked(realloc(node->sent, node->sent_room * sizeof(*node->sent)));
    }
    place = &node->sent[node->sent_count];
    place->data = checked(malloc(bytes));
    place->bytes = (uint32_t)bytes;
    node->sent_count++;
    node->sent_bytes += bytes;
    return place->data;
}

void ndsim_node_transmit_end(struct ndsim_node *node, size_t bytes)
{
    /* The firmware may have asked for more than it needed, never for less. */
    if (node->sent_count == 0 || bytes > node->sent[node->sent_count - 1].bytes) {
        abort();
    }
    node->sent_bytes -= node->sent[node->sent_count - 1].bytes - bytes;
    node->sent[node->sent_count - 1].bytes = (uint32_t)bytes;
}

static void on_event(void *opaque, uint64_t incarnation, uint64_t now_ns);

static void schedule(struct ndsim_node *node)
{
    uint64_t at_ns = node->waiting_count != 0 ? 0 : node->run_ns;

    if (!node->running || at_ns == NDSIM_NEVER) {
        return;
    }
    if (at_ns < node->free_ns) {
        at_ns = node->free_ns;
    }
    if (at_ns < node->loop->now_ns) {
        at_ns = node->loop->now_ns;
    }
    /* An earlier event leaves the later one behind, which then finds nothing to do. */
    if (at_ns < node->event_ns) {
        node->event_ns = at_ns;
        if (!ndsim_loop_at(node->loop, at_ns, on_event, node, node->incarnation)) {
            abort();
        }
    }
}

static void transmit_sent(struct ndsim_node *node, uint64_t at_ns)
{
    for (uint32_t i = 0; i < node->sent_count; i++) {
        node->port.transmit(node->port.opaque, node, node->sent[i].data, node->sent[i].bytes, at_ns);
    }
    forget_sent(node);
}

/* The processor has worked; what was sent meanwhile leaves when it is done. */
static void charge(struct ndsim_node *node, uint64_t now_ns, uint64_t fixed_ns, uint64_t work_bytes)
{
    const struct ndsim_cost *cost = &node->config.cost;

    node->calls++;
    if (node->after_call != NULL) {
        node->after_call(node->after_call_opaque, node, now_ns);
    }
    node->free_ns = now_ns + fixed_ns + node->sent_count * cost->frame_ns + work_bytes * cost->kib_ns / 1024;
    transmit_sent(node, node->free_ns);
}

static void receive_one(struct ndsim_node *node, const uint8_t *data, uint32_t bytes, uint64_t now_ns)
{
    node->ops->receive(node->state, data, bytes, now_ns);
    node->since_run++;
    charge(node, now_ns, node->config.cost.frame_ns, bytes + node->sent_bytes);
    node->run_ns = node->free_ns < node->run_ns ? node->free_ns : node->run_ns;
}

static void receive_first(struct ndsim_node *node, uint64_t now_ns)
{
    struct ndsim_waiting first = node->waiting[node->waiting_first];

    node->waiting_first = (node->waiting_first + 1) % node->waiting_room;
    node->waiting_count--;
    receive_one(node, first.data, first.bytes, now_ns);
    free(first.data);
}

static uint64_t draw_budget(struct ndsim_node *node)
{
    if (node->config.budget_bytes != 0) {
        return node->config.budget_bytes;
    }
    return ndsim_random_below(&node->random, 10) == 0 ? 1 : 1 + ndsim_random_below(&node->random, 65536);
}

static void run_once(struct ndsim_node *node, uint64_t now_ns)
{
    struct netdam_fw_run_result result = {0};

    node->run_ns = NDSIM_NEVER;
    node->since_run = 0;
    node->ops->run(node->state, now_ns, draw_budget(node), &result);
    charge(node, now_ns, node->config.cost.run_ns, result.work_bytes);
    if (result.port_full) {
        node->run_ns = now_ns + (node->config.port_retry_ns != 0 ? node->config.port_retry_ns : PORT_RETRY_NS);
    } else if (result.more || !node->ops->prepare_sleep(node->state)) {
        node->run_ns = node->free_ns;
    } else if (result.next_ns != NETDAM_FW_NEVER) {
        node->run_ns = result.next_ns > now_ns + STEP_NS ? result.next_ns : now_ns + STEP_NS;
    }
}

static void on_event(void *opaque, uint64_t incarnation, uint64_t now_ns)
{
    struct ndsim_node *node = opaque;

    if (incarnation != node->incarnation || now_ns != node->event_ns) {
        return;
    }
    node->event_ns = NDSIM_NEVER;
    if (node->free_ns <= now_ns) {
        if (node->waiting_count != 0 && (node->since_run < BATCH_FRAMES || node->run_ns > now_ns)) {
            receive_first(node, now_ns);
        } else if (node->run_ns <= now_ns) {
            run_once(node, now_ns);
        }
    }
    schedule(node);
}

void ndsim_node_started(struct ndsim_node *node, uint64_t now_ns)
{
    node->running = true;
    node->free_ns = now_ns;
    node->run_ns = now_ns;
    schedule(node);
}

void ndsim_node_stopped(struct ndsim_node *node)
{
    transmit_sent(node, node->loop->now_ns > node->free_ns ? node->loop->now_ns : node->free_ns);
    node->running = false;
    node->incarnation++;
    node->event_ns = NDSIM_NEVER;
    node->run_ns = NDSIM_NEVER;
    forget_waiting(node);
}

void ndsim_node_wake(struct ndsim_node *node, uint64_t now_ns)
{
    if (now_ns < node->run_ns) {
        node->run_ns = now_ns;
    }
    schedule(node);
}

void ndsim_node_receive(struct ndsim_node *node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct ndsim_waiting *place;

    if (!node->running) {
        return;
    }
    if (node->free_ns <= now_ns && node->waiting_count == 0 && node->since_run < BATCH_FRAMES) {
        receive_one(node, frame, bytes, now_ns);
        schedule(node);
        return;
    }
    if (node->config.receive_frames != 0 && node->waiting_count >= node->config.receive_frames) {
        node->receive_drops++;
        return;
    }
    if (node->waiting_count == node->waiting_room) {
        uint32_t room = node->waiting_room == 0 ? BATCH_FRAMES : 2 * node->waiting_room;
        struct ndsim_waiting *waiting = checked(malloc(room * sizeof(*waiting)));

        for (uint32_t i = 0; i < node->waiting_count; i++) {
            waiting[i] = node->waiting[(node->waiting_first + i) % node->waiting_room];
        }
        free(node->waiting);
        node->waiting = waiting;
        node->waiting_room = room;
        node->waiting_first = 0;
    }
    place = &node->waiting[(node->waiting_first + node->waiting_count) % node->waiting_room];
    place->data = checked(malloc(bytes));
    place->bytes = bytes;
    memcpy(place->data, frame, bytes);
    node->waiting_count++;
    schedule(node);
}
