/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Carries frames through links and switches as the models decide: the counterpart, in real time and without copies, of
 * vt/net.c. A frame with several ways to go is one buffer with several owners, and is copied only where a fault changes
 * it. What takes no time happens at once, in the same burst.
 */
#include "fabric.h"

#include <rte_lcore.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>

static void arrive(struct ndfab_way *way, struct rte_mbuf *frame, uint64_t now_ns);

/* The same for the same seed as in virtual time. */
static uint64_t part_seed(const struct ndfab_fabric *fabric, unsigned kind, uint32_t index)
{
    return ndsim_mix(fabric->topology.seed ^ ndsim_mix((uint64_t)kind << 32 | index));
}

/* A buffer counts its owners in 16 bits. */
#define OWNERS_MAX 32768u

/* The frame with one more owner; NULL if it has too many. */
static struct rte_mbuf *shared(struct rte_mbuf *frame)
{
    if (rte_mbuf_refcnt_read(frame) >= OWNERS_MAX) {
        return NULL;
    }
    rte_pktmbuf_refcnt_update(frame, 1);
    return frame;
}

/*
 * The pool is a ring, and what lies in the cache of this thread, which is the only one; rte_mempool_avail_count() would look at
 * the caches of all threads that there could be.
 */
bool ndfab_has_room(const struct ndfab_fabric *fabric, uint64_t held)
{
    const struct rte_mempool_cache *cache = rte_mempool_default_cache(fabric->pool, rte_lcore_id());

    return held <= rte_ring_count(fabric->pool->pool_data) + (cache != NULL ? cache->len : 0);
}

static void flip(struct rte_mbuf *frame, uint32_t bit)
{
    uint32_t at = bit / 8;

    while (frame != NULL && at >= frame->data_len) {
        at -= frame->data_len;
        frame = frame->next;
    }
    if (frame != NULL) {
        *rte_pktmbuf_mtod_offset(frame, uint8_t *, at) ^= (uint8_t)(1u << bit % 8);
    }
}

/* The frame with its bits flipped; NULL if there is no memory for the copy that this takes while others own it too. */
static struct rte_mbuf *damaged(const struct ndfab_fabric *fabric, struct rte_mbuf *frame,
                                const struct ndsim_delivery *delivery)
{
    if (delivery->flips != 0 && rte_mbuf_refcnt_read(frame) > 1) {
        struct rte_mbuf *copy = rte_pktmbuf_copy(frame, fabric->pool, 0, UINT32_MAX);

        rte_pktmbuf_free(frame);
        frame = copy;
    }
    for (uint32_t i = 0; frame != NULL && i < delivery->flips; i++) {
        flip(frame, delivery->bits[i]);
    }
    return frame;
}

static void on_arrival(void *opaque, uint64_t frame, uint64_t now_ns)
{
    struct ndfab_way *way = opaque;

    way->in_flight--;
    if (ndsim_link_is_up(&way->link, now_ns)) {
        arrive(way, (struct rte_mbuf *)(uintptr_t)frame, now_ns);
    } else {
        way->link.counts[NDSIM_LINK_DOWN_DROPS]++;
        rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)frame);
    }
}

/*
 * Only what is due at the time that the loop has reached happens at once, lest frames overtake those in the heap. Without a
 * frame, which had too many owners, one is lost.
 */
static void deliver(struct ndfab_way *way, struct rte_mbuf *frame, const struct ndsim_delivery *delivery)
{
    uint64_t now_ns = way->fabric->loop.now_ns;

    if (frame != NULL) {
        frame = damaged(way->fabric, frame, delivery);
    }
    if (frame == NULL) {
        way->lost_copies++;
    } else if (delivery->at_ns <= now_ns) {
        arrive(way, frame, now_ns);
    } else if (ndsim_loop_at(&way->fabric->loop, delivery->at_ns, on_arrival, way, (uintptr_t)frame)) {
        way->in_flight++;
    } else {
        way->lost_copies++;
        rte_pktmbuf_free(frame);
    }
}

static void carry(struct ndfab_way *way, struct rte_mbuf *frame, uint64_t at_ns)
{
    struct ndsim_delivery deliveries[NDSIM_LINK_COPIES_MAX];
    unsigned count;

    if (way->plain && at_ns <= way->fabric->loop.now_ns) {
        way->link.counts[NDSIM_LINK_FRAMES]++;
        way->link.counts[NDSIM_LINK_BYTES] += frame->pkt_len;
        if (ndsim_link_is_up(&way->link, at_ns)) {
            way->link.counts[NDSIM_LINK_DELIVERIES]++;
            arrive(way, frame, at_ns);
        } else {
            way->link.counts[NDSIM_LINK_DOWN_DROPS]++;
            rte_pktmbuf_free(frame);
        }
        return;
    }
    if (!ndfab_has_room(way->fabric, way->in_flight)) {
        way->link.counts[NDSIM_LINK_FRAMES]++;
        way->link.counts[NDSIM_LINK_BYTES] += frame->pkt_len;
        way->link.counts[NDSIM_LINK_TAIL_DROPS]++;
        rte_pktmbuf_free(frame);
        return;
    }
    count = ndsim_link_send(&way->link, frame->pkt_len, at_ns, deliveries);
    if (count == 0) {
        rte_pktmbuf_free(frame);
    }
    for (unsigned i = 0; i < count; i++) {
        deliver(way, i + 1 < count ? shared(frame) : frame, &deliveries[i]);
    }
}

static void on_port(void *opaque, uint64_t port, uint64_t now_ns);

static void watch_port(struct ndfab_switch *at, uint32_t port)
{
    uint64_t due_ns = ndsim_queues_due_ns(&at->sw.queues[port]);

    /* An earlier event leaves the later one behind, which then finds nothing to do. */
    if (due_ns < at->due_ns[port] && ndsim_loop_at(&at->fabric->loop, due_ns, on_port, at, port)) {
        at->due_ns[port] = due_ns;
    }
}

/* A switch with priorities: the port's line is free, or a frame has come through to it. */
static void on_port(void *opaque, uint64_t port, uint64_t now_ns)
{
    struct ndfab_switch *at = opaque;
    uint64_t frame, leaves_ns;

    if (now_ns < at->due_ns[port]) {
        return;
    }
    at->due_ns[port] = NDSIM_NEVER;
    if (ndsim_queues_take(&at->sw.queues[port], now_ns, &frame, &leaves_ns)) {
        at->waiting--;
        carry(&at->fabric->ways[at->out[port]], (struct rte_mbuf *)(uintptr_t)frame, leaves_ns);
    }
    watch_port(at, (uint32_t)port);
}

static void pass_on(struct ndfab_switch *at, const struct ndsim_forward *forward, struct rte_mbuf *frame)
{
    if (frame == NULL) {
        at->lost_copies++;
    } else if (!at->sw.config.priorities) {
        carry(&at->fabric->ways[at->out[forward->port]], frame, forward->at_ns);
    } else if (ndfab_has_room(at->fabric, ndsim_queues_count(&at->sw.queues[forward->port])) &&
               ndsim_switch_put(&at->sw, forward, (uintptr_t)frame, frame->pkt_len)) {
        at->waiting++;
        watch_port(at, forward->port);
    } else {
        at->lost_copies++;
        rte_pktmbuf_free(frame);
    }
}

static void arrive_at_switch(struct ndfab_switch *at, uint32_t port, struct rte_mbuf *frame, uint64_t now_ns)
{
    struct ndsim_forward forwards[NDSIM_SWITCH_PORTS_MAX];
    uint8_t buffer[NDFAB_HEAD];
    uint64_t *counts = at->sw.counts;
    uint64_t before = counts[NDSIM_SWITCH_FORWARDED] + counts[NDSIM_SWITCH_QUEUE_DROPS] +
                      counts[NDSIM_SWITCH_BUFFER_DROPS] + counts[NDSIM_SWITCH_NO_WAY];
    /* The model looks at less than NDFAB_HEAD bytes, but goes by the length of the whole. */
    const uint8_t *head = rte_pktmbuf_read(frame, 0, RTE_MIN(frame->pkt_len, NDFAB_HEAD), buffer);
    unsigned count = ndsim_switch_forward(&at->sw, port, head, frame->pkt_len, frame->hash.usr, now_ns, forwards);

    at->copies += counts[NDSIM_SWITCH_FORWARDED] + counts[NDSIM_SWITCH_QUEUE_DROPS] +
                  counts[NDSIM_SWITCH_BUFFER_DROPS] + counts[NDSIM_SWITCH_NO_WAY] - before - 1;
    if (count == 0) {
        rte_pktmbuf_free(frame);
    }
    for (unsigned i = 0; i < count; i++) {
        pass_on(at, &forwards[i], i + 1 < count ? shared(frame) : frame);
    }
}

static void arrive(struct ndfab_way *way, struct rte_mbuf *frame, uint64_t now_ns)
{
    way->arrived++;
    if (way->capture != NULL) {
        ndfab_capture_frame(way->capture, frame, way->fabric->wall_ns + now_ns);
    }
    if (way->to.kind == NDSIM_END_PORT) {
        ndfab_port_send(&way->fabric->ports[way->to.index], frame);
    } else {
        arrive_at_switch(&way->fabric->switches[way->to.index], way->to.port, frame, now_ns);
    }
}

void ndfab_carry_in(struct ndfab_port *port, struct rte_mbuf *frame)
{
    struct ndfab_fabric *fabric = port->fabric;
    uint8_t buffer[NDFAB_HEAD];
    const uint8_t *head;

    if (frame->pkt_len < NDFAB_FRAME_MIN || frame->pkt_len > fabric->topology.frame_bytes) {
        port->counts.in_bad++;
        rte_pktmbuf_free(frame);
        return;
    }
    head = rte_pktmbuf_read(frame, 0, RTE_MIN(frame->pkt_len, NDFAB_HEAD), buffer);
    /* Copies of the frame keep it: all switches use the same tree. */
    frame->hash.usr = ndsim_turns_take(&fabric->turns, head, RTE_MIN(frame->pkt_len, NDFAB_HEAD));
    port->counts.in_frames++;
    port->counts.in_bytes += frame->pkt_len;
    if (memcmp(head + 6, port->last_station, sizeof(port->last_station)) != 0) {
        ndfab_station_learn(port, head + 6);
    }
    if (port->capture != NULL) {
        ndfab_capture_frame(port->capture, frame, fabric->wall_ns + fabric->loop.now_ns);
    }
    carry(&fabric->ways[port->way], frame, fabric->loop.now_ns);
}

uint64_t ndfab_carry_due(struct ndfab_fabric *fabric, uint64_t now_ns)
{
    return ndsim_loop_run(&fabric->loop, now_ns);
}

uint64_t ndfab_carry_pending(const struct ndfab_fabric *fabric)
{
    uint64_t frames = 0;

    for (size_t i = 0; i < fabric->loop.used; i++) {
        frames += fabric->loop.heap[i].handler == on_arrival;
    }
    return frames;
}

void ndfab_way_changed(struct ndfab_way *way)
{
    const struct ndsim_link_config *config = &way->link.config;
    const struct ndsim_when *faults[] = {&config->drop, &config->twice, &config->reorder, &config->corrupt,
                                         &config->spike};

    way->link.line.bits_per_s = config->bits_per_s;
    way->plain =
        config->bits_per_s == 0 && config->propagation_ns == 0 && config->jitter_ns == 0 &&
        (config->queue_bytes == 0 || config->queue_bytes >= way->fabric->topology.frame_bytes + config->frame_overhead);
    for (size_t i = 0; i < RTE_DIM(faults); i++) {
        way->plain &= faults[i]->parts_per_million == 0 && faults[i]->nth == 0;
    }
}

void ndfab_way_set(struct ndfab_way *way, bool up)
{
    way->by_hand = true;
    ndsim_link_flap(&way->link, 0, 0, 0);
    ndsim_link_down(&way->link, up ? 0 : way->fabric->loop.now_ns, up ? 0 : UINT64_MAX);
}

/* One of the file's times to be down is over: the next one counts. */
static void on_window(void *opaque, uint64_t unused, uint64_t now_ns)
{
    struct ndfab_way *way = opaque;
    const struct ndsim_topology_way *spec = &way->spec->ways[way->index % 2];
    uint64_t start_ns = way->fabric->start_ns;

    (void)unused;
    (void)now_ns;
    if (!way->by_hand && way->next_down < spec->down_count) {
        const struct ndsim_down_window *window = &spec->down[way->next_down++];
        uint64_t until_ns = window->until_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + window->until_ns;

        ndsim_link_down(&way->link, start_ns + window->from_ns, until_ns);
        if (until_ns != UINT64_MAX) {
            ndsim_loop_at(&way->fabric->loop, until_ns, on_window, way, 0);
        }
    }
}

static void open_way(struct ndfab_fabric *fabric, uint32_t index)
{
    struct ndfab_way *way = &fabric->ways[index];
    const struct ndsim_topology_link *spec = &fabric->topology.links[index / 2];
    const struct ndsim_topology_way *direction = &spec->ways[index % 2];
    const struct ndsim_topology_end *from = &spec->ends[index % 2];

    *way = (struct ndfab_way){.fabric = fabric, .spec = spec, .index = index, .to = spec->ends[1 - index % 2]};
    ndsim_link_init(&way->link, &direction->config, part_seed(fabric, 3, index));
    ndfab_way_changed(way);
    if (direction->flap_down_ns != 0) {
        ndsim_link_flap(&way->link, fabric->start_ns + direction->flap_up_ns,
                        direction->flap_up_ns + direction->flap_down_ns, direction->flap_down_ns);
    }
    on_window(way, 0, 0);
    if (from->kind == NDSIM_END_PORT) {
        fabric->ports[from->index].way = index;
    } else {
        fabric->switches[from->index].out[from->port] = index;
    }
}

bool ndfab_carry_open(struct ndfab_fabric *fabric)
{
    const struct ndsim_topology *topology = &fabric->topology;

    ndsim_loop_init(&fabric->loop, fabric->start_ns);
    ndsim_turns_init(&fabric->turns, part_seed(fabric, 4, 0));
    fabric->ways = calloc(topology->link_count * 2 + 1, sizeof(*fabric->ways));
    fabric->switches = calloc(topology->switch_count + 1, sizeof(*fabric->switches));
    if (fabric->ways == NULL || fabric->switches == NULL) {
        fprintf(stderr, "netdam-fabric: not enough memory\n");
        return false;
    }
    for (uint32_t i = 0; i < topology->switch_count; i++) {
        struct ndfab_switch *at = &fabric->switches[i];

        at->fabric = fabric;
        at->spec = &topology->switches[i];
        if (!ndsim_switch_init(&at->sw, &at->spec->config, part_seed(fabric, 2, i))) {
            fprintf(stderr, "netdam-fabric: switch %s has no links\n", at->spec->name);
            return false;
        }
        for (uint32_t port = 0; port < NDSIM_SWITCH_PORTS_MAX; port++) {
            at->due_ns[port] = NDSIM_NEVER;
        }
    }
    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        open_way(fabric, i);
    }
    return true;
}

void ndfab_carry_close(struct ndfab_fabric *fabric)
{
    for (size_t i = 0; i < fabric->loop.used; i++) {
        if (fabric->loop.heap[i].handler == on_arrival) {
            rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)fabric->loop.heap[i].value);
        }
    }
    ndsim_loop_fini(&fabric->loop);
    for (uint32_t i = 0; fabric->switches != NULL && i < fabric->topology.switch_count; i++) {
        struct ndsim_switch *sw = &fabric->switches[i].sw;
        uint64_t frame, leaves_ns;

        for (uint32_t port = 0; sw->config.priorities && port < sw->config.ports; port++) {
            sw->queues[port].line.bits_per_s = 0;
            sw->queues[port].line.free_ns = 0;
            while (ndsim_queues_take(&sw->queues[port], NDSIM_NEVER, &frame, &leaves_ns)) {
                rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)frame);
            }
        }
        ndsim_switch_fini(sw);
    }
    for (uint32_t i = 0; fabric->ways != NULL && i < fabric->topology.link_count * 2; i++) {
        if (i % 2 == 0 && !ndfab_capture_close(fabric->ways[i].capture)) {
            fprintf(stderr, "netdam-fabric: link %s: the capture could not be written to its end\n",
                    fabric->ways[i].spec->name);
        }
    }
    free(fabric->switches);
    free(fabric->ways);
}
