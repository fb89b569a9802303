/* SPDX-License-Identifier: BSD-3-Clause */
/* A network in virtual time: carries frames as the models of links and switches decide. */
#include "vt/net.h"

#include "vt/trees.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* A frame on a link, or in the queue of a switch with priorities. */
struct ndsim_frame {
    struct ndsim_net *net;
    struct ndsim_frame *next;
    struct ndsim_frame **link; /* what points to it */
    uint32_t bytes;
    uint32_t turn;
    uint8_t data[];
};

static void *checked(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static uint64_t part_seed(const struct ndsim_net *net, unsigned kind, uint32_t index)
{
    return ndsim_mix(net->seed ^ ndsim_mix((uint64_t)kind << 32 | index));
}

void ndsim_net_init(struct ndsim_net *net, uint64_t seed, uint64_t start_ns)
{
    memset(net, 0, sizeof(*net));
    ndsim_loop_init(&net->loop, start_ns);
    net->seed = seed;
    net->hash = seed;
    ndsim_turns_init(&net->turns, part_seed(net, 4, 0));
}

void ndsim_net_fini(struct ndsim_net *net)
{
    for (uint32_t i = 0; i < net->node_count; i++) {
        ndsim_node_fini(&net->nodes[i].node);
    }
    for (uint32_t i = 0; i < net->switch_count; i++) {
        ndsim_switch_fini(&net->switches[i]->sw);
        free(net->switches[i]);
    }
    for (uint32_t i = 0; i < net->link_count; i++) {
        free(net->links[i]);
    }
    while (net->under_way != NULL) {
        struct ndsim_frame *frame = net->under_way;

        net->under_way = frame->next;
        free(frame);
    }
    ndsim_loop_fini(&net->loop);
}

struct ndsim_end ndsim_end_node(uint32_t node)
{
    return (struct ndsim_end){.index = node};
}

struct ndsim_end ndsim_end_switch(uint32_t sw, uint32_t port)
{
    return (struct ndsim_end){.is_switch = true, .index = sw, .port = port};
}

static void on_arrival(void *opaque, uint64_t link, uint64_t now_ns);

static struct ndsim_frame *add_frame(struct ndsim_net *net, const uint8_t *data, uint32_t bytes, uint32_t turn)
{
    struct ndsim_frame *frame = checked(malloc(sizeof(*frame) + bytes));

    frame->net = net;
    frame->bytes = bytes;
    frame->turn = turn;
    memcpy(frame->data, data, bytes);
    frame->next = net->under_way;
    frame->link = &net->under_way;
    if (frame->next != NULL) {
        frame->next->link = &frame->next;
    }
    net->under_way = frame;
    return frame;
}

static void remove_frame(struct ndsim_frame *frame)
{
    *frame->link = frame->next;
    if (frame->next != NULL) {
        frame->next->link = frame->link;
    }
    free(frame);
}

/* Puts a frame on a link. */
static void carry(struct ndsim_net *net, uint32_t link, const uint8_t *data, uint32_t bytes, uint32_t turn,
                  uint64_t at_ns)
{
    struct ndsim_delivery deliveries[NDSIM_LINK_COPIES_MAX];
    unsigned count = ndsim_link_send(&net->links[link]->link, bytes, at_ns, deliveries);

    for (unsigned i = 0; i < count; i++) {
        struct ndsim_frame *frame = add_frame(net, data, bytes, turn);

        for (uint32_t n = 0; n < deliveries[i].flips; n++) {
            frame->data[deliveries[i].bits[n] / 8] ^= (uint8_t)(1u << deliveries[i].bits[n] % 8);
        }
        if (!ndsim_loop_at(&net->loop, deliveries[i].at_ns, on_arrival, frame, link)) {
            abort();
        }
    }
}

static void arrive_at_node(struct ndsim_net *net, uint32_t index, const struct ndsim_frame *frame, uint64_t now_ns)
{
    struct ndsim_node *node = &net->nodes[index].node;

    if (!node->running) {
        return;
    }
    net->delivered++;
    net->hash = ndsim_hash(net->hash ^ ndsim_mix(now_ns) ^ index, frame->data, frame->bytes);
    if (net->reached != NULL) {
        net->reached(net->opaque, index, frame->data, frame->bytes, now_ns);
    }
    ndsim_node_receive(node, frame->data, frame->bytes, now_ns);
}

static void on_port(void *opaque, uint64_t switch_and_port, uint64_t now_ns);

static void watch_port(struct ndsim_net *net, uint32_t index, uint32_t port)
{
    struct ndsim_net_switch *at = net->switches[index];
    uint64_t due_ns = ndsim_queues_due_ns(&at->sw.queues[port]);

    /* An earlier event leaves the later one behind, which then finds nothing to do. */
    if (due_ns < at->due_ns[port]) {
        at->due_ns[port] = due_ns;
        if (!ndsim_loop_at(&net->loop, due_ns, on_port, net, (uint64_t)index << 32 | port)) {
            abort();
        }
    }
}

/* A switch with priorities: the port's line is free, or a frame has come through to it. */
static void on_port(void *opaque, uint64_t switch_and_port, uint64_t now_ns)
{
    struct ndsim_net *net = opaque;
    uint32_t index = (uint32_t)(switch_and_port >> 32), port = (uint32_t)switch_and_port;
    struct ndsim_net_switch *at = net->switches[index];
    uint64_t name, leaves_ns;

    if (now_ns != at->due_ns[port]) {
        return;
    }
    at->due_ns[port] = NDSIM_NEVER;
    if (ndsim_queues_take(&at->sw.queues[port], now_ns, &name, &leaves_ns)) {
        struct ndsim_frame *frame = (struct ndsim_frame *)(uintptr_t)name;

        carry(net, at->out[port], frame->data, frame->bytes, frame->turn, leaves_ns);
        remove_frame(frame);
    }
    watch_port(net, index, port);
}

/* Keeps a copy until the port sends it. */
static void wait_at_port(struct ndsim_net *net, uint32_t index, const struct ndsim_forward *forward,
                         const struct ndsim_frame *frame)
{
    struct ndsim_frame *copy = add_frame(net, frame->data, frame->bytes, frame->turn);

    if (!ndsim_switch_put(&net->switches[index]->sw, forward, (uintptr_t)copy, copy->bytes)) {
        abort();
    }
    watch_port(net, index, forward->port);
}

static void arrive_at_switch(struct ndsim_net *net, const struct ndsim_end *end, const struct ndsim_frame *frame,
                             uint64_t now_ns)
{
    struct ndsim_net_switch *at = net->switches[end->index];
    struct ndsim_forward forwards[NDSIM_SWITCH_PORTS_MAX];
    unsigned count = ndsim_switch_forward(&at->sw, end->port, frame->data, frame->bytes, frame->turn, now_ns, forwards);

    for (unsigned i = 0; i < count; i++) {
        if ((at->joined >> forwards[i].port & 1) == 0) {
            continue;
        }
        if (at->sw.config.priorities) {
            wait_at_port(net, end->index, &forwards[i], frame);
        } else {
            carry(net, at->out[forwards[i].port], frame->data, frame->bytes, frame->turn, forwards[i].at_ns);
        }
    }
}

static void on_arrival(void *opaque, uint64_t link, uint64_t now_ns)
{
    struct ndsim_frame *frame = opaque;
    struct ndsim_net *net = frame->net;
    const struct ndsim_net_link *from = net->links[link];

    if (!ndsim_link_is_up(&from->link, now_ns)) {
        net->links[link]->link.counts[NDSIM_LINK_DOWN_DROPS]++;
    } else if (from->to.is_switch) {
        arrive_at_switch(net, &from->to, frame, now_ns);
    } else {
        arrive_at_node(net, from->to.index, frame, now_ns);
    }
    remove_frame(frame);
}

static void node_transmit(void *opaque, struct ndsim_node *node, const uint8_t *frame, uint32_t bytes, uint64_t at_ns)
{
    struct ndsim_net *net = opaque;
    const struct ndsim_net_node *from = &net->nodes[node->index];

    if (net->left != NULL) {
        net->left(net->opaque, (uint32_t)node->index, frame, bytes, at_ns);
    }
    if (from->joined) {
        carry(net, from->out, frame, bytes, ndsim_turns_take(&net->turns, frame, bytes), at_ns);
    }
}

static uint64_t node_backlog(void *opaque, struct ndsim_node *node, uint64_t now_ns)
{
    struct ndsim_net *net = opaque;
    const struct ndsim_net_node *from = &net->nodes[node->index];

    return from->joined ? ndsim_link_backlog(&net->links[from->out]->link, now_ns) : 0;
}

uint32_t ndsim_net_add_node(struct ndsim_net *net, const struct netdam_fw_ops *ops, void *state, const uint8_t mac[6],
                            const struct ndsim_node_config *config)
{
    struct ndsim_port port = {.opaque = net, .transmit = node_transmit, .backlog = node_backlog};
    uint32_t index = net->node_count;

    if (index == NDSIM_NET_NODES_MAX) {
        return NONE;
    }
    net->node_count++;
    ndsim_node_init(&net->nodes[index].node, ops, state, &net->loop, config, &port, part_seed(net, 1, index));
    net->nodes[index].node.index = index;
    memcpy(net->nodes[index].mac, mac, sizeof(net->nodes[index].mac));
    return index;
}

uint32_t ndsim_net_add_switch(struct ndsim_net *net, const struct ndsim_switch_config *config)
{
    uint32_t index = net->switch_count;
    struct ndsim_net_switch *added;

    if (index == NDSIM_NET_SWITCHES_MAX) {
        return NONE;
    }
    added = checked(calloc(1, sizeof(*added)));
    if (!ndsim_switch_init(&added->sw, config, part_seed(net, 2, index))) {
        free(added);
        return NONE;
    }
    for (uint32_t i = 0; i < NDSIM_SWITCH_PORTS_MAX; i++) {
        added->due_ns[i] = NDSIM_NEVER;
    }
    net->switches[index] = added;
    net->switch_count++;
    return index;
}

static bool end_is_free(const struct ndsim_net *net, struct ndsim_end end)
{
    if (!end.is_switch) {
        return end.index < net->node_count && !net->nodes[end.index].joined;
    }
    return end.index < net->switch_count && end.port < net->switches[end.index]->sw.config.ports &&
           (net->switches[end.index]->joined >> end.port & 1) == 0;
}

static void occupy(struct ndsim_net *net, struct ndsim_end end, uint32_t link)
{
    if (end.is_switch) {
        net->switches[end.index]->out[end.port] = link;
        net->switches[end.index]->joined |= UINT32_C(1) << end.port;
    } else {
        net->nodes[end.index].out = link;
        net->nodes[end.index].joined = true;
    }
}

static uint32_t add_link(struct ndsim_net *net, struct ndsim_end from, struct ndsim_end to,
                         const struct ndsim_link_config *config)
{
    uint32_t index = net->link_count++;
    struct ndsim_net_link *link = checked(calloc(1, sizeof(*link)));

    ndsim_link_init(&link->link, config, part_seed(net, 3, index));
    link->from = from;
    link->to = to;
    net->links[index] = link;
    occupy(net, from, index);
    return index;
}

uint32_t ndsim_net_join(struct ndsim_net *net, struct ndsim_end a, struct ndsim_end b,
                        const struct ndsim_link_config *config)
{
    bool same = a.is_switch == b.is_switch && a.index == b.index && a.port == b.port;
    uint32_t link;

    if (same || net->link_count + 2 > NDSIM_NET_LINKS_MAX || !end_is_free(net, a) || !end_is_free(net, b)) {
        return NONE;
    }
    link = add_link(net, a, b, config);
    add_link(net, b, a, config);
    return link;
}

/* Distances of all switches, breadth first, from those where `distance` is 0; the others start as NONE. */
static void measure(const struct ndsim_net *net, uint32_t distance[NDSIM_NET_SWITCHES_MAX])
{
    for (uint32_t round = 0; round < net->switch_count; round++) {
        for (uint32_t i = 0; i < net->link_count; i++) {
            const struct ndsim_net_link *link = net->links[i];

            if (link->from.is_switch && link->to.is_switch && distance[link->to.index] == round &&
                distance[link->from.index] > round + 1) {
                distance[link->from.index] = round + 1;
            }
        }
    }
}

static bool route_to(struct ndsim_net *net, uint32_t node)
{
    uint32_t distance[NDSIM_NET_SWITCHES_MAX];
    uint32_t ports[NDSIM_NET_SWITCHES_MAX] = {0};

    for (uint32_t i = 0; i < NDSIM_NET_SWITCHES_MAX; i++) {
        distance[i] = NONE;
    }
    for (uint32_t i = 0; i < net->link_count; i++) {
        const struct ndsim_net_link *link = net->links[i];

        if (link->from.is_switch && !link->to.is_switch && link->to.index == node) {
            distance[link->from.index] = 0;
            ports[link->from.index] = UINT32_C(1) << link->from.port;
        }
    }
    measure(net, distance);
    for (uint32_t i = 0; i < net->link_count; i++) {
        const struct ndsim_net_link *link = net->links[i];

        if (link->from.is_switch && link->to.is_switch && distance[link->to.index] != NONE &&
            distance[link->from.index] == distance[link->to.index] + 1) {
            ports[link->from.index] |= UINT32_C(1) << link->from.port;
        }
    }
    for (uint32_t i = 0; i < net->switch_count; i++) {
        if (ports[i] != 0 && !ndsim_switch_route(&net->switches[i]->sw, net->nodes[node].mac, ports[i])) {
            return false;
        }
    }
    return true;
}

/* Broadcasts go to all nodes, and between switches along trees. */
static void plant_trees(struct ndsim_net *net)
{
    uint32_t masks[NDSIM_SWITCH_TREES_MAX * NDSIM_NET_SWITCHES_MAX];
    struct ndsim_trunk trunks[NDSIM_NET_LINKS_MAX / 2];
    uint32_t edges[NDSIM_NET_SWITCHES_MAX] = {0};
    uint32_t trunk_count = 0;
    uint32_t tree_count;

    for (uint32_t i = 0; i < net->link_count; i++) {
        const struct ndsim_end *from = &net->links[i]->from, *to = &net->links[i]->to;

        if (from->is_switch && !to->is_switch) {
            edges[from->index] |= UINT32_C(1) << from->port;
        } else if (from->is_switch && i % 2 == 0) {
            trunks[trunk_count++] = (struct ndsim_trunk){{from->index, to->index}, {from->port, to->port}};
        }
    }
    tree_count = ndsim_trees(trunks, trunk_count, edges, net->switch_count, masks);
    for (uint32_t i = 0; i < net->switch_count; i++) {
        struct ndsim_switch *sw = &net->switches[i]->sw;

        sw->tree_count = tree_count;
        for (uint32_t tree = 0; tree < tree_count; tree++) {
            sw->flood[tree] = masks[tree * net->switch_count + i];
        }
    }
}

bool ndsim_net_route(struct ndsim_net *net)
{
    for (uint32_t i = 0; i < net->node_count; i++) {
        if (!route_to(net, i)) {
            return false;
        }
    }
    plant_trees(net);
    return true;
}
