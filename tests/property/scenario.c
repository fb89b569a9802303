/* SPDX-License-Identifier: BSD-3-Clause */
/* One scenario: a world drawn from a seed, a storm, the calm after it, and what must hold at the end. */
#include "world.h"

#include <stdlib.h>

static uint64_t draw(struct world *world, uint64_t limit)
{
    return ndtest_random_below(&world->random, limit);
}

static uint32_t pick(struct world *world, const uint32_t *choices, unsigned count)
{
    return choices[draw(world, count)];
}

static void draw_config(struct world *world, struct netdam_fw_config *config, uint32_t mtu, bool no_crc)
{
    static const uint32_t operations[] = {4, 32, 1024};
    static const uint32_t lanes[] = {4, 8, 64, 64};
    static const uint32_t windows[] = {1, 2, 8, 64};
    static const uint32_t window[] = {4, 16, 256, 1024};

    config->mtu = mtu;
    config->no_payload_crc = no_crc;
    config->queue_pairs = 4;
    config->regions = SITE_REGIONS + 1;
    config->peers = 2 * SITE_PEERS;
    config->neighbours = 16;
    config->operations = pick(world, operations, 3);
    config->lanes = pick(world, lanes, 4);
    config->lane_windows = pick(world, windows, 4);
    config->window = pick(world, window, 4);
    /* Drawn from nothing that others draw from. */
    config->paths = (ndtest_mix(world->seed) & 1) != 0 ? 1 : 1 + (uint32_t)(ndtest_mix(world->seed) >> 1) % NDTEST_PATHS;
    config->retries = 4 + (uint32_t)draw(world, 5);
    config->rto_initial_ns = 500000;
    config->rto_min_ns = 200000;
    config->rto_max_ns = 4000000;
    config->confirm_idle_ns = 200000 + draw(world, 800000);
    /* A third of the nodes give a lane up while its requester still tries. */
    config->lane_give_up_ns = draw(world, 3) == 0 ? 2000000 + draw(world, 20000000) : 50000000 + draw(world, 100000000);
    config->generation_interval_ns = draw(world, 2) == 0 ? 1000000 : 10000000;
    if (draw(world, 4) == 0) {
        config->refusal_interval_ns = 500000;
        config->refusal_burst = 2;
    }
    if (draw(world, 3) == 0) {
        config->first_number = NETDAM_NUMBER_MAX - 1 - draw(world, 200);
    }
    if (draw(world, 2) == 0) {
        config->cpu_features = NETDAM_FW_CPU_SSE42;
    }
}

static bool is_executed(struct world *world, unsigned opcode, unsigned operation, unsigned type)
{
    uint64_t args[] = {opcode, operation, type};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    return ndtest_node_admin(&world->sites[0].node, NETDAM_ADMIN_OPCODE_QUERY, args, 3, results, world->wire.now_ns) ==
               NETDAM_ADMIN_STATUS_OK &&
           results[0] == 1;
}

static void learn_what_is_executed(struct world *world)
{
    static const uint8_t plain[] = {NETDAM_OP_FETCH_ADD, NETDAM_OP_CAS, NETDAM_OP_SWAP};
    static const uint8_t reducing[] = {NETDAM_OP_REDUCE, NETDAM_OP_FETCH_OP};

    for (unsigned type = 1; type < 13; type++) {
        for (unsigned operation = 0; operation < 9; operation++) {
            const uint8_t *opcodes = operation == 0 ? plain : reducing;
            bool executed = operation == 0 || reference_knows(operation, type);

            for (unsigned i = 0; i < (operation == 0 ? sizeof(plain) : sizeof(reducing)); i++) {
                executed = executed && (netdam_algebra(opcodes[i], operation, type) < 0 ||
                                        is_executed(world, opcodes[i], operation, type));
            }
            world->executes[type][operation] = executed;
            if (!executed && operation != 0 && netdam_algebra(NETDAM_OP_REDUCE, operation, type) >= 0) {
                violation(world, 2, "REDUCE or FETCH_OP, operation %u, type %u is not executed", operation, type);
            }
        }
    }
    if (!world->executes[NETDAM_TYPE_I64][0] || !world->executes[NETDAM_TYPE_U64][0]) {
        violation(world, 2, "FETCH_ADD, CAS and SWAP are not executed for I64 and U64");
    }
}

static void site_init(struct world *world, unsigned index, uint32_t mtu, bool no_crc)
{
    struct site *site = &world->sites[index];
    struct netdam_fw_config config;
    struct ndtest_hooks hooks = {0};
    const char *error = "";

    ndtest_config_default(&config, index);
    draw_config(world, &config, mtu, no_crc);
    site->ring_base = 4096;
    site->slot_base = SLOT_BASE;
    config.memory_bytes = (site->slot_base + (uint64_t)SITE_SLOTS * world->slot_bytes + 8191) & ~UINT64_C(4095);
    ndtest_wire_port(&world->wire, &hooks);
    hooks.access = oracle_access;
    hooks.trace = getenv("PROPERTY_TRACE") != NULL ? oracle_trace : NULL;
    if (!ndtest_node_init(&site->node, tamper_ops(world->tamper, netdam_fw_entry()), &config, &hooks,
                          tamper_entropy(world->tamper, ndtest_mix(world->seed + index)), &error)) {
        fprintf(stderr, "configuration refused: %s\n", error);
        exit(2);
    }
    ndtest_wire_add(&world->wire, &site->node);
    ndtest_random_fill(&world->random, site->node.memory, config.memory_bytes);
    site->shadow = malloc(config.memory_bytes);
    site->outstanding = malloc(sizeof(uint32_t) * SITE_QUEUES * 4 * (1u << SQ_LOG2_MAX));
    if (site->shadow == NULL || site->outstanding == NULL) {
        abort();
    }
    memset(site->node.memory + WITNESS_BASE, 0, 8 * WITNESS_CELLS);
    memcpy(site->shadow, site->node.memory, config.memory_bytes);
    for (unsigned i = 0; i < SITE_SLOTS; i++) {
        site->slot_used[i] = false;
    }
    ndtest_node_start(&site->node, world->wire.now_ns);
}

static void world_init(struct world *world, const struct scenario_options *options, struct tally *tally)
{
    static const uint32_t mtus[] = {1500, 1500, 1500, 1501, 2304, 4096, 9000};
    uint64_t start_ns;
    uint32_t mtu;
    bool no_crc;

    memset(world, 0, sizeof(*world));
    world->seed = options->seed;
    world->random.state = options->seed;
    world->tally = tally;
    table_init(&world->pieces);
    table_init(&world->snapshots);
    table_init(&world->contexts);
    table_init(&world->receives);
    mtu = pick(world, mtus, sizeof(mtus) / sizeof(mtus[0]));
    no_crc = draw(world, 8) == 0;
    world->payload_max = netdam_payload_max(mtu);
    world->slot_bytes = (3 * world->payload_max + 511) & ~63u;
    world->scratch = malloc(world->slot_bytes);
    if (world->scratch == NULL) {
        abort();
    }
    world->key_salt = ndtest_random_next(&world->random) & ~UINT64_C(0xffffffff);
    world->all_static = draw(world, 3) == 0;
    world->storm = draw(world, 8) != 0;
    world->mean_ns = UINT64_C(10000) << draw(world, 6);
    world->lazy = draw(world, 3) == 0 ? 700000 : 0;
    world->relaxed = draw(world, 4) == 0 ? 80 : 15;
    world->bursts = draw(world, 3) == 0 ? 30 : 5;
    world->calm_at = options->packets;
    start_ns = draw(world, UINT64_C(1) << 40);
    ndtest_wire_init(&world->wire, ndtest_random_next(&world->random), start_ns);
    oracle_attach(world);
    world->tamper = tamper_new(options->tamper, world);
    world->site_count = 3 + (unsigned)draw(world, 3);
    for (unsigned i = 0; i < world->site_count; i++) {
        site_init(world, i, mtu, no_crc);
    }
    world->bound_ns = 400000000;
    learn_what_is_executed(world);
    program_change_weather(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        program_setup(world, &world->sites[i]);
        ndtest_wire_wake(&world->wire, i);
    }
    ndtest_wire_schedule(&world->wire, 0, 0);
}

static void world_fini(struct world *world)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];

        for (unsigned c = 0; c < NETDAM_COUNTER_COUNT; c++) {
            world->tally->counters[c] += ndtest_node_counter(&site->node, (enum netdam_counter)c);
        }
        ndtest_node_fini(&site->node);
        free(site->shadow);
        free(site->outstanding);
    }
    ndtest_wire_fini(&world->wire);
    tamper_free(world->tamper);
    table_fini(&world->pieces);
    table_fini(&world->snapshots);
    table_fini(&world->contexts);
    table_fini(&world->receives);
    free(world->scratch);
    free(world->ops);
}

static void inspect(struct world *world, unsigned site)
{
    oracle_compare(world, &world->sites[site]);
    oracle_deadlines(world, &world->sites[site]);
}

static bool anything_outstanding(const struct world *world)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        if (world->sites[i].outstanding_count != 0) {
            return true;
        }
    }
    return false;
}

/* Until virtual time `until_ns`, or, if `idle`, until nothing is outstanding any more. */
static void run_until(struct world *world, uint64_t until_ns, bool idle)
{
    for (uint64_t steps = 0; !world->failed && world->wire.now_ns < until_ns; steps++) {
        if (idle && !anything_outstanding(world)) {
            return;
        }
        if (!ndtest_wire_step(&world->wire)) {
            return;
        }
        if (steps % 2048 == 0) {
            inspect(world, (unsigned)(steps / 2048 % world->site_count));
        }
    }
}

static void demand_all_complete(struct world *world)
{
    for (unsigned i = 0; i < world->site_count && !world->failed; i++) {
        struct site *site = &world->sites[i];

        oracle_observe_taken(world, site);
        oracle_poll(world, site, UINT32_MAX);
        if (site->outstanding_count != 0) {
            const struct op *op = &world->ops[site->outstanding[0]];

            violation(world, 1, "node %u: opcode 0x%x to node %u, %u bytes, posted at %llu, %s, is never completed", i,
                      op->d.opcode, op->target, op->d.length, (unsigned long long)op->posted_ns,
                      op->state == OP_TAKEN ? "taken" : "not even taken");
        }
    }
}

/*
 * Progress: over a perfect wire, one requester at a time, everything ends well. What it had sent under an epoch that
 * the node has left since may be UNKNOWN; then it knows the new one.
 */
static void calm_exchange(struct world *world, struct site *site, const struct peer *peer)
{
    for (unsigned try = 0; try < 3 && !world->failed; try++) {
        uint32_t read = request_post_calm(world, site, peer, false);
        uint32_t index = request_post_calm(world, site, peer, true);

        (void)read;
        run_until(world, world->wire.now_ns + world->bound_ns, true);
        demand_all_complete(world);
        /* Idle, it confirms: its lane makes room for the next. */
        run_until(world, world->wire.now_ns + 15000000, false);
        if (world->failed || index == NONE || world->ops[index].status == NETDAM_STATUS_OK) {
            return;
        }
    }
    violation(world, 1, "node %u: UNKNOWN from node %u over a perfect wire, again and again", site->node.index,
              peer->target);
}

static void calm_after_storm(struct world *world)
{
    world->calm = true;
    memset(&world->wire.weather, 0, sizeof(world->wire.weather));
    world->wire.weather.latency_ns = 5000;
    program_ring_all(world);
    run_until(world, world->wire.now_ns + 4 * world->bound_ns, true);
    demand_all_complete(world);
    /* The latest of the late copies. */
    run_until(world, world->wire.now_ns + 250000000, false);
    program_calm_prepare(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        for (unsigned j = 0; j < SITE_PEERS && !world->failed; j++) {
            if (world->sites[i].peers[j].open) {
                calm_exchange(world, &world->sites[i], &world->sites[i].peers[j]);
            }
        }
    }
    /* Everyone has confirmed or was given up by now: nothing but 24 bytes per lane is left. */
    run_until(world, world->wire.now_ns + 250000000, false);
    for (unsigned i = 0; i < world->site_count && !world->failed; i++) {
        struct ndtest_node *node = &world->sites[i].node;
        uint64_t lanes = ndtest_node_counter(node, NETDAM_COUNTER_LANES);

        world->tally->checks[8]++;
        if (ndtest_node_counter(node, NETDAM_COUNTER_LANE_WINDOWS) != 0 ||
            ndtest_node_counter(node, NETDAM_COUNTER_LANE_BYTES) != 24 * lanes) {
            violation(world, 8, "node %u: %llu lanes at rest, %llu windows, %llu bytes", i, (unsigned long long)lanes,
                      (unsigned long long)ndtest_node_counter(node, NETDAM_COUNTER_LANE_WINDOWS),
                      (unsigned long long)ndtest_node_counter(node, NETDAM_COUNTER_LANE_BYTES));
        }
    }
}

bool scenario_run(const struct scenario_options *options, struct tally *tally, uint64_t *hash)
{
    struct world *world = malloc(sizeof(*world));
    bool passed;

    if (world == NULL) {
        abort();
    }
    world_init(world, options, tally);
    for (uint64_t steps = 0; !world->failed && !world->calm; steps++) {
        if (!ndtest_wire_step(&world->wire)) {
            break;
        }
        if (steps % 2048 == 0) {
            inspect(world, (unsigned)(steps / 2048 % world->site_count));
        }
    }
    if (!world->failed) {
        calm_after_storm(world);
    }
    *hash = world->wire.hash;
    for (unsigned i = 0; i < world->site_count; i++) {
        if (!world->failed) {
            inspect(world, i);
            witness_final(world, &world->sites[i]);
        }
        *hash = ndtest_hash(*hash, world->sites[i].node.memory, world->sites[i].node.config.memory_bytes);
    }
    tally->delivered += world->wire.delivered;
    passed = !world->failed;
    world_fini(world);
    free(world);
    return passed;
}
