/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of one direction of a link. */
#include "vt/link.h"

void ndsim_link_init(struct ndsim_link *link, const struct ndsim_link_config *config, uint64_t seed)
{
    memset(link, 0, sizeof(*link));
    link->config = *config;
    link->line.bits_per_s = config->bits_per_s;
    link->seed = seed;
}

uint64_t ndsim_link_backlog(const struct ndsim_link *link, uint64_t now_ns)
{
    return ndsim_line_backlog(&link->line, now_ns);
}

void ndsim_link_down(struct ndsim_link *link, uint64_t from_ns, uint64_t until_ns)
{
    link->down_from_ns = from_ns;
    link->down_until_ns = until_ns;
}

bool ndsim_link_is_up(const struct ndsim_link *link, uint64_t now_ns)
{
    bool flapped = link->flap_down_ns != 0 && now_ns >= link->flap_from_ns &&
                   (now_ns - link->flap_from_ns) % link->flap_period_ns < link->flap_down_ns;

    return !flapped && (now_ns < link->down_from_ns || now_ns >= link->down_until_ns);
}

void ndsim_link_flap(struct ndsim_link *link, uint64_t from_ns, uint64_t period_ns, uint64_t down_ns)
{
    link->flap_from_ns = from_ns;
    link->flap_period_ns = period_ns;
    link->flap_down_ns = period_ns != 0 ? down_ns : 0;
}

/* Frame number `number` meets the fault. */
static bool happens(struct ndsim_link *link, const struct ndsim_when *when, enum ndsim_link_count fault,
                    uint64_t number)
{
    bool counted = when->nth != 0 && number >= when->nth &&
                   (number == when->nth || (when->every != 0 && (number - when->nth) % when->every == 0));
    /* Drawn in any case: what one fault does must not hang on another. */
    bool drawn = ndsim_random_below(&link->random, 1000000) < when->parts_per_million;

    return (counted || drawn) && (link->permits == NULL || link->permits(link->opaque, link, fault, number));
}

static void damage(struct ndsim_link *link, uint32_t bytes, struct ndsim_delivery *delivery)
{
    uint32_t first = link->config.corrupt_from;
    uint32_t flips = 1 + (uint32_t)ndsim_random_below(&link->random, NDSIM_FLIPS_MAX);

    if (bytes <= first) {
        return;
    }
    while (delivery->flips < flips) {
        uint32_t bit = first * 8 + (uint32_t)ndsim_random_below(&link->random, (uint64_t)(bytes - first) * 8);
        bool fresh = true;

        for (uint32_t i = 0; i < delivery->flips; i++) {
            fresh &= delivery->bits[i] != bit;
        }
        if (fresh) {
            delivery->bits[delivery->flips++] = bit;
        }
    }
    link->counts[NDSIM_LINK_CORRUPTED]++;
}

static void draw_copy(struct ndsim_link *link, uint32_t bytes, uint64_t number, uint64_t sent_ns,
                      struct ndsim_delivery *delivery)
{
    const struct ndsim_link_config *config = &link->config;

    memset(delivery, 0, sizeof(*delivery));
    delivery->at_ns = sent_ns + config->propagation_ns;
    if (config->jitter_ns != 0) {
        delivery->at_ns += ndsim_random_below(&link->random, config->jitter_ns + 1);
    }
    if (happens(link, &config->reorder, NDSIM_LINK_REORDERED, number)) {
        delivery->at_ns += config->reorder_ns;
        link->counts[NDSIM_LINK_REORDERED]++;
    }
    if (happens(link, &config->spike, NDSIM_LINK_SPIKES, number)) {
        delivery->at_ns += ndsim_random_below(&link->random, config->spike_ns + 1);
        link->counts[NDSIM_LINK_SPIKES]++;
    }
    if (happens(link, &config->corrupt, NDSIM_LINK_CORRUPTED, number)) {
        damage(link, bytes, delivery);
    }
}

unsigned ndsim_link_send(struct ndsim_link *link, uint32_t bytes, uint64_t now_ns,
                         struct ndsim_delivery deliveries[NDSIM_LINK_COPIES_MAX])
{
    const struct ndsim_link_config *config = &link->config;
    uint64_t number = ++link->counts[NDSIM_LINK_FRAMES];
    uint64_t waiting = ndsim_link_backlog(link, now_ns);
    uint32_t length = bytes + config->frame_overhead;
    unsigned copies = 1;
    unsigned arrive = 0;
    uint64_t sent_ns;

    link->counts[NDSIM_LINK_BYTES] += bytes;
    if (!ndsim_link_is_up(link, now_ns)) {
        link->counts[NDSIM_LINK_DOWN_DROPS]++;
        return 0;
    }
    if (config->queue_bytes != 0 && waiting + length > config->queue_bytes) {
        link->counts[NDSIM_LINK_TAIL_DROPS]++;
        return 0;
    }
    sent_ns = ndsim_line_send(&link->line, length, now_ns);
    link->random.state = ndsim_mix(link->seed + ndsim_mix(number));
    if (happens(link, &config->drop, NDSIM_LINK_DROPS, number)) {
        link->counts[NDSIM_LINK_DROPS]++;
        return 0;
    }
    if (happens(link, &config->twice, NDSIM_LINK_DOUBLED, number)) {
        link->counts[NDSIM_LINK_DOUBLED]++;
        copies = NDSIM_LINK_COPIES_MAX;
    }
    for (unsigned i = 0; i < copies; i++) {
        draw_copy(link, bytes, number, sent_ns, &deliveries[arrive]);
        if (ndsim_link_is_up(link, deliveries[arrive].at_ns)) {
            arrive++;
        } else {
            link->counts[NDSIM_LINK_DOWN_DROPS]++;
        }
    }
    link->counts[NDSIM_LINK_DELIVERIES] += arrive;
    return arrive;
}
