/* SPDX-License-Identifier: BSD-3-Clause */
/* What kind of cluster and weather a seed stands for. */
#include "oracle.h"

#include "platform_cpu.h"

static uint64_t below(struct world *world, uint64_t limit)
{
    return ndtest_random_below(&world->random, limit);
}

static bool one_in(struct world *world, unsigned n)
{
    return below(world, n) == 0;
}

#define PICK(world, list) (list)[below(world, sizeof(list) / sizeof((list)[0]))]

static void draw_config(struct world *world)
{
    static const uint32_t operations[] = {4, 32, 256};
    static const uint32_t lanes[] = {4, 8, 64, 64};
    static const uint32_t windows[] = {1, 2, 8, 32, 32};
    static const uint32_t window[] = {4, 16, 64, 256};
    struct netdam_fw_config *config = &world->config;

    config->memory_bytes = MEMORY_BYTES;
    config->mtu = one_in(world, 8) ? 1500 + (uint32_t)below(world, 2000) : 1500;
    config->no_payload_crc = one_in(world, 12);
    config->no_merge = one_in(world, 3);
    config->replies = one_in(world, 3) ? 2 : 0;
    config->chains = one_in(world, 3) ? 2 : 0;
    config->collectives = one_in(world, 3) ? 1 : 0;
    config->collective_wait_ns = one_in(world, 2) ? 30000000 : 300000000;
    config->tenants = 4;
    config->tenant_senders = one_in(world, 4) ? 2 + (uint32_t)below(world, 8) : 0;
    config->queue_pairs = QUEUES;
    config->regions = REGIONS_ALL + 1;
    config->peers = 4 * SITES_MAX;
    config->neighbours = 2 * SITES_MAX;
    config->operations = PICK(world, operations);
    config->lanes = PICK(world, lanes);
    config->lane_windows = PICK(world, windows);
    config->window = PICK(world, window);
    config->retries = 4 + (uint32_t)below(world, 5);
    config->rto_initial_ns = 500000;
    config->rto_min_ns = 100000;
    config->rto_max_ns = 4000000;
    config->confirm_idle_ns = 100000 + below(world, 900000);
    config->lane_give_up_ns = one_in(world, 3) ? 2000000 + below(world, 20000000) : 50000000 + below(world, 100000000);
    config->generation_interval_ns = one_in(world, 2) ? 300000 : 10000000;
    config->refusal_interval_ns = one_in(world, 6) ? 300000 : 0;
    config->refusal_burst = config->refusal_interval_ns != 0 ? 2 : 0;
    config->first_number = one_in(world, 4) ? NETDAM_NUMBER_MAX - 1 - below(world, 200) : 0;
    /* What the CPU has not makes no difference but in speed: a seed stands for the same on every machine. */
    config->cpu_features = one_in(world, 3) ? 0 : ndtest_random_next(&world->random);
    config->cpu_features |= one_in(world, 2) ? UINT64_MAX : 0;
    config->cpu_features &= ndfw_platform_cpu_features();
}

static struct ndsim_when draw_when(struct world *world)
{
    static const uint32_t rates[] = {1000, 10000, 30000, 100000, 200000};
    struct ndsim_when when = {0};

    if (one_in(world, 2)) {
        when.parts_per_million = PICK(world, rates);
    }
    return when;
}

static void draw_weather(struct world *world)
{
    static const uint64_t spikes[] = {100000, 1000000, 5000000, 30000000, 150000000};
    static const uint64_t rates[] = {0, 1000000000, 10000000000, 100000000000};
    struct ndsim_link_config *weather = &world->weather;

    /* One after another: the order within an initializer is the compiler's. */
    *weather = (struct ndsim_link_config){.corrupt_from = NETDAM_ETHERNET_BYTES};
    weather->propagation_ns = 200 + below(world, 5000);
    weather->jitter_ns = one_in(world, 2) ? below(world, 20000) : 0;
    weather->bits_per_s = PICK(world, rates);
    weather->reorder_ns = 1000 + below(world, 100000);
    weather->spike_ns = PICK(world, spikes);
    if (!one_in(world, 10)) {
        weather->drop = draw_when(world);
        weather->twice = draw_when(world);
        weather->reorder = draw_when(world);
        weather->spike = draw_when(world);
        weather->corrupt = draw_when(world);
    }
    if (world->config.no_payload_crc) {
        /* UDP's checksum alone misses what CRC32C does not. */
        weather->corrupt.parts_per_million = 0;
    }
    /* Over four links at most, with what may wait in the nodes. */
    world->lifetime_ns =
        4 * (weather->propagation_ns + weather->jitter_ns + weather->reorder_ns + weather->spike_ns) + 10000000;
    world->copies = weather->twice.parts_per_million != 0 ? 2 : 1;
}

static void draw_objects(struct world *world)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object object = {.records = NONE, .words = i >= SINGLES && i < SINGLES + GROUPS ? CELL_WORDS_MAX : 1};

        if (i < world->hot * world->uniform_percent / 100) {
            do {
                object.operation = (uint8_t)(1 + below(world, NETDAM_ALU_SUM_SATURATING));
                object.type = (uint8_t)(1 + below(world, NETDAM_TYPE_F64));
            } while (netdam_algebra(NETDAM_OP_REDUCE, object.operation, object.type) < 0 ||
                     (netdam_algebra(NETDAM_OP_REDUCE, object.operation, object.type) & (int)NETDAM_ALG_COMMUTES) == 0);
        }
        for (unsigned site = 0; site < SITES_MAX; site++) {
            world->sites[site].objects[i] = object;
        }
    }
}

/* Weights in the order of kinds. */
static const uint32_t moods[][KINDS_MAX] = {
    /* read, write, reduce, atomic, send, receive, echo, load, store, restart, outage, burst, transaction, chain, rekey,
       reopen, collective, stranger */
    {300, 200, 150, 200, 60, 15, 5, 15, 5, 0, 0, 50, 50, 50, 0, 0, 30, 30}, /* all of it */
    {300, 300, 100, 100, 20, 5, 5, 5, 5, 1, 1, 50, 50, 50, 3, 3, 30, 30},   /* nodes and links fail */
    {250, 0, 400, 200, 0, 0, 0, 20, 0, 0, 0, 200, 0, 0},                    /* what commutes, mostly */
    {200, 100, 0, 500, 0, 0, 0, 20, 20, 0, 0, 0, 0, 0},                     /* atomics */
    {50, 150, 20, 50, 500, 100, 20, 0, 0, 0, 1, 0, 0, 0},                   /* messages */
    {300, 400, 50, 50, 20, 5, 0, 20, 10, 0, 0, 100, 0, 20, 2, 2},           /* who wrote last? */
    {200, 200, 50, 20, 0, 0, 0, 10, 10, 0, 0, 0, 600, 0},                   /* transactions */
    {200, 200, 50, 50, 0, 0, 0, 20, 20, 0, 0, 0, 0, 500},                   /* chains */
    {200, 200, 50, 50, 0, 0, 0, 20, 20, 1, 1, 0, 0, 500, 3, 3},             /* chains while nodes and links fail */
    {100, 200, 200, 0, 20, 10, 0, 10, 10, 0, 0, 600, 0, 0},                 /* what may share a packet */
    {50, 50, 50, 50, 20, 5, 5, 0, 0, 0, 0, 0, 0, 50, 0, 0, 500, 30},        /* collectives */
    {50, 50, 50, 50, 20, 5, 5, 0, 0, 1, 1, 0, 0, 50, 2, 2, 500, 30},        /* collectives while nodes and links fail */
};

/* Resets, outages and closed handles leave requests uncertain. */
static bool brings_failures(const uint32_t *mood)
{
    for (unsigned i = 0; i < kind_count; i++) {
        if (mood[i] != 0 && (kinds[i] == &kind_restart || kinds[i] == &kind_outage || kinds[i] == &kind_reopen)) {
            return true;
        }
    }
    return false;
}

/* Every tenth world or so loses nothing and has room for everything. */
static void draw_harmless(struct world *world)
{
    struct netdam_fw_config *config = &world->config;
    const struct ndsim_when never = {0};

    world->harmless = true;
    world->weather.drop = world->weather.corrupt = never;
    world->weather.spike_ns = 200000;
    config->operations = 256;
    config->lanes = 64;
    config->lane_windows = 32;
    config->replies = 0;
    config->tenant_senders = 0;
    config->collectives = 0; /* or those of one team keep out those of the other, each somewhere else */
    config->collective_wait_ns = 2000000000;
    config->first_number = 0; /* contexts that soon end fill the table of lanes */
    config->refusal_interval_ns = config->refusal_burst = 0;
    config->lane_give_up_ns = 100000000;
}

/* Half of all worlds know no tenant. In the others both users are of one, or each of another one, or one is of none. */
static void draw_tenants(struct world *world)
{
    static const uint32_t tenants[][QUEUES] = {
        {0, 0}, {0, 0}, {0, 0}, {0, 0}, {TENANT, TENANT}, {TENANT, TENANT_TOO}, {TENANT, TENANT_TOO}, {TENANT, 0}};
    const uint32_t *drawn = PICK(world, tenants);

    for (unsigned i = 0; i < QUEUES; i++) {
        world->tenants[i] = drawn[i];
        world->tenant_modes[i] = one_in(world, 2) ? NETDAM_TENANT_MODE_ENCRYPT : NETDAM_TENANT_MODE_AUTHENTICATE;
    }
}

void world_draw(struct world *world)
{
    static const uint64_t gaps[] = {300, 1000, 3000, 10000, 40000};
    unsigned mood = (unsigned)below(world, sizeof(moods) / sizeof(moods[0]));

    draw_config(world);
    draw_weather(world);
    if (one_in(world, 8) && !brings_failures(moods[mood])) {
        draw_harmless(world);
    }
    world->site_count = 2 + (unsigned)below(world, SITES_MAX - 1);
    world->family = one_in(world, 4) ? 6 : 4;
    draw_tenants(world);
    world->gap_ns = PICK(world, gaps);
    world->most_active = 2 + (uint32_t)below(world, 4);
    world->hot = 2 + (uint32_t)below(world, SINGLES - SINKS - 4);
    world->uniform_percent = mood == 2 ? 90 : one_in(world, 2) ? 30 : 0;
    world->bad_percent = one_in(world, 2) ? 3 : 0;
    world->relaxed_percent = one_in(world, 3) ? 40 : one_in(world, 2) ? 5 : 0;
    world->ordered_percent = one_in(world, 3) ? 40 : 8;
    world->fence_percent = one_in(world, 3) ? 10 : 1;
    world->unreliable_percent = one_in(world, 3) ? 8 : 0;
    world->list_percent = one_in(world, 2) ? 15 : 0;
    world->repost_percent = one_in(world, 2) ? 90 : 20;
    memcpy(world->weights, moods[mood], sizeof(moods[mood]));
    draw_objects(world);
    teams_draw(world, &world->random);
    if (world->plan.sites != 0 && world->plan.sites < world->site_count) {
        world->site_count = world->plan.sites;
    }
}
