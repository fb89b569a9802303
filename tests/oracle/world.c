/* SPDX-License-Identifier: BSD-3-Clause */
/* A case from its beginning to its end: cluster, program, weather, calm, judgement. */
#include "oracle.h"

#include <stdlib.h>

/* Every descriptor has ended long before: retries, what it waits for, and the longest silence. */
#define BOUND_NS     UINT64_C(120000000000)
#define SETTLE_NS    UINT64_C(1000000)
#define PROBE_ROUNDS 3u
#define FINISH_TRIES 1000u
#define START_NS     UINT64_C(1000000)
#define SQ_LOG2      6u
#define CQ_LOG2      7u
#define RQ_LOG2      4u
#define OUTSTANDING  1024u

const char *failure_name(enum failure failure)
{
    static const char *const names[] = {
#define FAILURE_NAME(name, text) #name,
        FAILURE_LIST(FAILURE_NAME)
#undef FAILURE_NAME
    };

    return names[failure];
}

const char *failure_text(enum failure failure)
{
    static const char *const texts[] = {
#define FAILURE_TEXT(name, text) text,
        FAILURE_LIST(FAILURE_TEXT)
#undef FAILURE_TEXT
    };

    return texts[failure];
}

void fail(struct world *world, enum failure failure, const char *format, ...)
{
    va_list args;

    if (world->failure != FAILURE_NONE) {
        return;
    }
    world->failure = failure;
    va_start(args, format);
    vsnprintf(world->text, sizeof(world->text), format, args);
    va_end(args);
}

uint64_t world_tick(struct world *world)
{
    uint64_t now = world->net.loop.now_ns << CELL_TICK_BITS;

    world->tick = world->tick < now ? now : world->tick + 1;
    return world->tick;
}

struct allocated {
    struct allocated *next;
    uint64_t data[];
};

void *world_allocate(struct world *world, size_t bytes)
{
    struct allocated *allocated = calloc(1, sizeof(*allocated) + bytes);

    if (allocated == NULL) {
        abort();
    }
    allocated->next = world->allocated;
    world->allocated = allocated;
    return allocated->data;
}

static uint8_t *begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct world *world = opaque;

    return ndsim_node_transmit_begin(&world->net.nodes[node->index].node, bytes);
}

static void end(void *opaque, struct ndtest_node *node, size_t bytes)
{
    struct world *world = opaque;

    ndsim_node_transmit_end(&world->net.nodes[node->index].node, bytes);
}

/* What the firmware tells, for whoever looks at one case. */
static void trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                  uint64_t c)
{
    static const char *const names[] = {
#define TRACE_NAME(name, arguments, text) #name,
        NETDAM_FW_TRACE_LIST(TRACE_NAME)
#undef TRACE_NAME
    };
    struct world *world = opaque;

    printf("# %llu site %u %s 0x%llx 0x%llx 0x%llx\n", (unsigned long long)world->net.loop.now_ns, node->index,
           names[event], (unsigned long long)a, (unsigned long long)b, (unsigned long long)c);
}

static void after_call(void *opaque, struct ndsim_node *node, uint64_t now_ns)
{
    struct world *world = opaque;

    (void)now_ns;
    if (world->failure == FAILURE_NONE) {
        post_poll(world, &world->sites[node->index]);
    }
}

static void reached(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct world *world = opaque;

    if (world->pcap != NULL) {
        pcap_write(world->pcap, frame, bytes, now_ns);
    }
    watch_reached(world, node, frame, bytes);
}

static bool is_listed(const struct fault_list *list, uint32_t link, enum ndsim_link_count fault, uint64_t number)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i].link == link && list->at[i].number == number && list->at[i].kind == (uint32_t)fault) {
            return true;
        }
    }
    return false;
}

static bool permits(void *opaque, const struct ndsim_link *link, enum ndsim_link_count fault, uint64_t number)
{
    const struct link_tag *tag = opaque;
    struct world *world = tag->world;

    (void)link;
    if (world->plan.only != NULL && !is_listed(world->plan.only, tag->index, fault, number)) {
        return false;
    }
    if (world->plan.happened != NULL) {
        fault_add(world->plan.happened, (struct fault){tag->index, (uint32_t)fault, number});
    }
    world->tally->faults++;
    return true;
}

static void require(struct world *world, enum netdam_admin_status status, const char *what)
{
    if (status != NETDAM_ADMIN_STATUS_OK) {
        fail(world, FAILURE_COMPLETION, "%s: administration status %d", what, (int)status);
    }
}

bool world_is_shared(const struct world *world)
{
    return world->tenants[0] != world->tenants[1];
}

unsigned region_index(unsigned user, unsigned region)
{
    return region == REGION_LOCAL ? 0 : region + user * (REGIONS - 1);
}

uint64_t region_key(const struct world *world, unsigned site, unsigned user, unsigned region)
{
    return world->sites[site].region_keys[region_index(user, region)];
}

/* Of a region that the user must not reach: somebody else's, who is there too if there are two tenants. */
static uint32_t other_tenant(const struct world *world, unsigned user)
{
    return world_is_shared(world) ? world->tenants[1 - user] : TENANT_OTHER;
}

static void create_region(struct world *world, struct site *site, unsigned index, uint32_t tenant, uint64_t base,
                          uint64_t length, uint32_t permissions, uint32_t queue)
{
    /* The same key after a reset: what was sent before must not be taken for the new one's. */
    uint64_t key = ndtest_mix(world->seed ^ ((uint64_t)site->index << 32 | index) ^ site->region_changed[index]) | 1;
    uint64_t args[] = {base, length, permissions, key, tenant, queue};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    require(world, ndtest_node_admin(&site->node, NETDAM_ADMIN_REGION_CREATE, args, 6, results, world->net.loop.now_ns),
            "REGION_CREATE");
    if (results[0] != index) {
        fail(world, FAILURE_COMPLETION, "region %u has index %u", index, (unsigned)results[0]);
    }
    site->region_keys[index] = key;
}

static void make_region(struct world *world, struct site *site, unsigned index)
{
    static const struct {
        uint32_t base, length, permissions;
    } regions[] = {
        [REGION_LOCAL] = {LOCAL_BASE, RECEIVE_END - LOCAL_BASE,
                          NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE},
        [REGION_ALL] = {SHARED_BASE, SHARED_BYTES, NETDAM_PERMISSION_ALL},
        [REGION_PART] = {SHARED_BASE + PART_OFFSET, SHARED_BYTES - PART_OFFSET, NETDAM_PERMISSION_ALL},
        [REGION_READ] = {SHARED_BASE, SHARED_BYTES, NETDAM_PERMISSION_REMOTE_READ},
        [REGION_WRITE] = {SHARED_BASE, SHARED_BYTES, NETDAM_PERMISSION_REMOTE_WRITE},
        [REGION_TEAM] = {TEAM_BASE, TEAM_BYTES,
                         NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE | NETDAM_PERMISSION_REMOTE_READ |
                             NETDAM_PERMISSION_REMOTE_WRITE},
        [REGION_OTHER] = {SHARED_BASE, SHARED_BYTES, NETDAM_PERMISSION_ALL},
        [REGION_ALU] = {SHARED_BASE, 8 * SINGLES, NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ},
    };

    unsigned user = index == REGION_LOCAL ? 0 : (index - 1) / (REGIONS - 1);
    unsigned region = index == REGION_LOCAL ? REGION_LOCAL : 1 + (index - 1) % (REGIONS - 1);
    uint32_t tenant = region == REGION_LOCAL   ? 0
                      : region == REGION_OTHER ? other_tenant(world, user)
                                               : world->tenants[user];
    uint64_t base = regions[region].base + (region == REGION_TEAM ? user * TEAM_BYTES : 0);

    create_region(world, site, index, tenant, base, regions[region].length, regions[region].permissions,
                  region == REGION_WRITE ? site->queues[user].id + 1 : 0);
}

static void set_tenant(struct world *world, struct site *site, uint32_t tenant, uint32_t mode)
{
    uint64_t args[] = {tenant, ndtest_mix(world->seed + tenant), ndtest_mix(world->seed - tenant), mode};

    require(world, ndtest_node_admin(&site->node, NETDAM_ADMIN_TENANT_SET, args, 4, NULL, world->net.loop.now_ns),
            "TENANT_SET");
}

/* As ndtest_queue_create_receiving, of a tenant. */
static void create_queue(struct world *world, struct site *site, unsigned index)
{
    uint64_t base = RINGS_BASE + 2 * index * RING_ROOM;
    uint32_t first = (uint32_t)ndtest_random_next(&world->random);
    uint64_t args[] = {base,
                       SQ_LOG2,
                       base + RING_ROOM / 2,
                       CQ_LOG2,
                       base + RING_ROOM,
                       RQ_LOG2,
                       (uint64_t)NETDAM_VECTOR_NONE << 16 | (uint64_t)world->tenants[index] << 32,
                       first};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    require(world, ndtest_node_admin(&site->node, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results, world->net.loop.now_ns),
            "QUEUE_CREATE");
    site->queues[index] = (struct ndtest_queue){
        .node = &site->node,
        .sq_base = args[0],
        .cq_base = args[2],
        .rq_base = args[4],
        .receive_key = results[1],
        .sq_log2 = SQ_LOG2,
        .cq_log2 = CQ_LOG2,
        .rq_log2 = RQ_LOG2,
        .id = (uint32_t)results[0],
        .produced = first,
        .consumed = first,
        .receive_produced = first,
        .open = true,
    };
}

/* As ndtest_peer_open, of a tenant. */
static enum netdam_admin_status open_peer(struct world *world, struct site *site, unsigned target, unsigned user,
                                          uint32_t *peer)
{
    const struct netdam_fw_config *config = &world->sites[target].node.config;
    const uint8_t *address = world->family == 4 ? config->ipv4 : config->ipv6;
    uint64_t args[] = {0, 0, world->family | (uint64_t)NETDAM_UDP_PORT << 16 | (uint64_t)world->tenants[user] << 32};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    enum netdam_admin_status status;

    for (unsigned i = 0; i < (world->family == 4 ? 4u : 16u); i++) {
        args[i / 8] = args[i / 8] << 8 | address[i];
    }
    status = ndtest_node_admin(&site->node, NETDAM_ADMIN_PEER_OPEN, args, 3, results, world->net.loop.now_ns);
    *peer = (uint32_t)results[0];
    return status;
}

/* Software's preparations, at the beginning and after each reset. */
static void prepare(struct world *world, struct site *site)
{
    uint64_t now_ns = world->net.loop.now_ns;

    for (unsigned i = 0; i < QUEUES; i++) {
        if (world->tenants[i] != 0 && (i == 0 || world_is_shared(world))) {
            set_tenant(world, site, world->tenants[i], world->tenant_modes[i]);
        }
    }
    set_tenant(world, site, TENANT_OTHER, NETDAM_TENANT_MODE_ENCRYPT);
    for (unsigned i = 0; i < QUEUES; i++) {
        create_queue(world, site, i);
    }
    for (unsigned i = 0; i < REGIONS_ALL; i++) {
        make_region(world, site, i);
    }
    for (unsigned i = 0; i < world->site_count; i++) {
        require(world, ndtest_neighbour_set(&site->node, &world->sites[i].node, world->family, now_ns),
                "NEIGHBOUR_SET");
        for (unsigned n = 0; n < 2; n++) {
            require(world, open_peer(world, site, i, n, &site->peers[i][n]), "PEER_OPEN");
        }
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        for (unsigned n = 0; n < 8; n++) {
            receive_post(world, site, i);
        }
    }
}

static void site_allocate(struct world *world, struct site *site, unsigned index)
{
    struct ndtest_hooks hooks = {
        .opaque = world, .transmit_begin = begin, .transmit_end = end, .trace = world->plan.trace ? trace : NULL};
    struct netdam_fw_config config;
    const char *error = "";

    site->index = index;
    ndtest_config_default(&config, index);
    world->config.abi_version = config.abi_version;
    world->config.vectors = config.vectors;
    memcpy(world->config.mac, config.mac, sizeof(config.mac));
    memcpy(world->config.ipv4, config.ipv4, sizeof(config.ipv4));
    memcpy(world->config.ipv6, config.ipv6, sizeof(config.ipv6));
    if (!ndtest_node_init(&site->node, netdam_fw_entry(), &world->config, &hooks, ndtest_mix(world->seed + index),
                          &error)) {
        fprintf(stderr, "configuration refused: %s\n", error);
        exit(2);
    }
    site->node.index = index;
    site->node.platform.crypto = crypto_make(world);
    site->outside = malloc(MEMORY_BYTES);
    if (site->outside == NULL) {
        abort();
    }
    for (unsigned i = 0; i < QUEUES; i++) {
        site->waiting[i] = calloc(OUTSTANDING, sizeof(uint32_t));
    }
    for (unsigned i = 0; i < SITES_MAX; i++) {
        for (unsigned n = 0; n < 2; n++) {
            site->ordered[i][n] = NONE;
            site->deferred[i][n] = calloc(OUTSTANDING, sizeof(uint32_t));
        }
    }
}

static void site_fill(struct world *world, struct site *site)
{
    struct ndtest_random random = {ndtest_mix(world->seed ^ (site->index + 77u))};

    ndtest_random_fill(&random, site->node.memory, MEMORY_BYTES);
    for (unsigned i = 0; i < QUEUES; i++) {
        memset(site->node.memory + TEAM_BASE + i * TEAM_BYTES + TEAM_CONTROL, 0, TEAM_BYTES - TEAM_CONTROL);
    }
    memcpy(site->outside, site->node.memory, MEMORY_BYTES);
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &site->objects[i];

        memcpy(object->first, site->node.memory + SHARED_BASE + object_address(i), 8u * object->words);
        memcpy(object->last, object->first, sizeof(object->last));
    }
    for (uint32_t slot = 0; slot < SMALL_SLOTS + BIG_SLOTS; slot++) {
        slot_release(world, site, slot);
    }
    for (uint32_t slot = 0; slot < RECEIVE_SLOTS; slot++) {
        site->receive_hash[slot] =
            ndtest_hash(slot, site->node.memory + RECEIVE_BASE + slot * RECEIVE_BYTES, RECEIVE_BYTES);
    }
}

static void join(struct world *world, struct ndsim_end a, struct ndsim_end b, bool twice)
{
    uint32_t link = ndsim_net_join(&world->net, a, b, &world->weather);

    for (uint32_t i = link; i < link + 2; i++) {
        struct ndsim_link *at = &world->net.links[i]->link;

        /* Doubled at one place only: what is sent once and without lane comes twice at most. */
        if (!twice || (i == link + 1 && b.is_switch)) {
            at->config.twice.parts_per_million = 0;
        }
        world->tags[i] = (struct link_tag){world, i};
        at->permits = permits;
        at->opaque = &world->tags[i];
    }
}

/* Two leaves, two spines, each frame over either: copies overtake one another without any fault. */
static void build_spines(struct world *world, const struct ndsim_switch_config *config)
{
    for (unsigned i = 0; i < 4; i++) {
        ndsim_net_add_switch(&world->net, config);
    }
    for (unsigned i = 0; i < world->site_count; i++) {
        join(world, ndsim_end_node(i), ndsim_end_switch(i % 2, i), true);
    }
    for (unsigned i = 0; i < 4; i++) {
        join(world, ndsim_end_switch(i % 2, 6 + i / 2), ndsim_end_switch(2 + i / 2, i % 2), false);
    }
    ndsim_net_route(&world->net);
}

static void build_network(struct world *world)
{
    const struct ndsim_switch_config config = {.ports = 8, .latency_ns = 300, .spread = NDSIM_SPREAD_SPRAY};

    if (world->site_count == 2 && ndtest_random_below(&world->random, 2) == 0) {
        join(world, ndsim_end_node(0), ndsim_end_node(1), true);
        return;
    }
    if (ndtest_random_below(&world->random, 3) == 0) {
        build_spines(world, &config);
        return;
    }
    ndsim_net_add_switch(&world->net, &config);
    for (unsigned i = 0; i < world->site_count; i++) {
        join(world, ndsim_end_node(i), ndsim_end_switch(0, i), true);
    }
    ndsim_net_route(&world->net);
}

static void on_op(void *opaque, uint64_t index, uint64_t now_ns)
{
    struct world *world = opaque;
    struct op *op = &world->ops[index];

    (void)now_ns;
    if (world->failure != FAILURE_NONE) {
        return;
    }
    effect_expire(world);
    if (!op->kind->act(world, op)) {
        op->state = OP_SKIPPED;
        world->tally->skipped++;
        return;
    }
    world->tally->posted += op->kind->complete != NULL;
}

void world_restart(struct world *world, struct site *site)
{
    uint64_t now_ns = world->net.loop.now_ns;

    ndtest_node_stop(&site->node, now_ns);
    post_poll(world, site);
    for (unsigned i = 0; i < QUEUES; i++) {
        if (site->started[i] + site->waiting_count[i] + site->receive_count[i] != 0 && world->failure == FAILURE_NONE) {
            fail(world, FAILURE_COMPLETION, "site %u: not everything was flushed by a reset", site->index);
        }
    }
    ndsim_node_stopped(&world->net.nodes[site->index].node);
    site->restarted = world_tick(world);
    effect_restarted(world, site);
    ndtest_node_start(&site->node, now_ns);
    prepare(world, site);
    ndsim_node_started(&world->net.nodes[site->index].node, now_ns);
}

void world_rekey(struct world *world, struct site *site, unsigned index)
{
    require(world, ndtest_region_destroy(&site->node, index, world->net.loop.now_ns), "REGION_DESTROY");
    site->region_changed[index] = world_tick(world);
    make_region(world, site, index);
}

void world_reopen(struct world *world, struct site *site, unsigned target, unsigned peer)
{
    uint64_t now_ns = world->net.loop.now_ns;
    uint32_t opened;

    /* What still waits in a ring may name the handle, which may soon be another's. */
    for (unsigned i = 0; i < QUEUES; i++) {
        if (ndtest_queue_taken(&site->queues[i]) != site->queues[i].produced) {
            return;
        }
    }
    /* An entry stays until the last floor is confirmed: there may be no room for another. */
    if (open_peer(world, site, target, peer, &opened) != NETDAM_ADMIN_STATUS_OK) {
        return;
    }
    require(world, ndtest_peer_close(&site->node, site->peers[target][peer], now_ns), "PEER_CLOSE");
    site->peers[target][peer] = opened;

    post_poll(world, site);
    ndsim_node_wake(&world->net.nodes[site->index].node, now_ns);
}

static void world_init(struct world *world, const struct plan *plan, struct tally *tally)
{
    struct ndsim_node_config node = {0};

    world->plan = *plan;
    world->seed = plan->seed;
    world->tally = tally;
    world->random.state = plan->seed;
    world_draw(world);
    if (ndtest_random_below(&world->random, 2) == 0) {
        node.cost = (struct ndsim_cost){.run_ns = 100, .frame_ns = 100, .kib_ns = 50};
    }
    /* An answer that finds the port full is lost. */
    node.port_full = ndtest_random_below(&world->random, 4) == 0 && !world->harmless ? 20000 : 0;
    ndsim_net_init(&world->net, ndtest_random_next(&world->random), START_NS);
    world->net.opaque = world;
    world->net.reached = reached;
    world->net.left = watch_left;
    watch_init(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];
        uint32_t index;

        site_allocate(world, site, i);
        index = ndsim_net_add_node(&world->net, site->node.ops, site->node.state, site->node.config.mac, &node);
        world->net.nodes[index].node.after_call = after_call;
        world->net.nodes[index].node.after_call_opaque = world;
        site_fill(world, site);
    }
    build_network(world);
    for (unsigned i = 0; i < world->site_count; i++) {
        ndtest_node_start(&world->sites[i].node, START_NS);
        prepare(world, &world->sites[i]);
        ndsim_node_started(&world->net.nodes[i].node, START_NS);
    }
    world->op_count = plan->operations;
    world->ops =
        calloc(world->op_count + PROBE_ROUNDS * SITES_MAX * SITES_MAX + QUEUES * SITES_MAX, sizeof(*world->ops));
    if (world->ops == NULL) {
        abort();
    }
    if (plan->pcap != NULL) {
        world->pcap = pcap_open(plan->pcap);
    }
    program_draw(world);
    for (uint32_t i = 0; i < world->op_count; i++) {
        const struct op *op = &world->ops[i];

        if ((plan->keep == NULL || plan->keep[i]) && op->site < world->site_count && op->target < world->site_count &&
            !ndsim_loop_at(&world->net.loop, op->at_ns, on_op, world, i)) {
            abort();
        }
    }
}

static void world_fini(struct world *world)
{
    for (unsigned i = 0; i < world->site_count; i++) {
        struct site *site = &world->sites[i];

        ndtest_node_fini(&site->node);
        free(site->outside);
        for (unsigned n = 0; n < QUEUES; n++) {
            free(site->waiting[n]);
        }
        for (unsigned p = 0; p < SITES_MAX; p++) {
            free(site->deferred[p][0]);
            free(site->deferred[p][1]);
        }
    }
    world->tally->frames += world->net.delivered;
    world->tally->hash = ndtest_mix(world->tally->hash ^ world->net.hash);
    ndsim_net_fini(&world->net);
    if (world->pcap != NULL && !pcap_close(world->pcap)) {
        fprintf(stderr, "the pcap file could not be written\n");
    }
    while (world->allocated != NULL) {
        struct allocated *next = world->allocated->next;

        free(world->allocated);
        world->allocated = next;
    }
    free(world->ops);
    free(world->records);
    free(world->late);
    free(world->nonces);
    free(world);
}

static void run_until(struct world *world, uint64_t until_ns, bool until_finished)
{
    while (world->failure == FAILURE_NONE && !(until_finished && world->unfinished == 0) &&
           ndsim_loop_step(&world->net.loop, until_ns)) {
    }
}

static void calm(struct world *world)
{
    const struct ndsim_when never = {0};

    for (uint32_t i = 0; i < world->net.link_count; i++) {
        struct ndsim_link_config *config = &world->net.links[i]->link.config;

        ndsim_link_down(&world->net.links[i]->link, 0, 0);
        config->drop = config->twice = config->reorder = config->spike = config->corrupt = never;
    }
}

static void tell_missing(struct world *world)
{
    for (uint32_t i = 0; i < world->op_count; i++) {
        const struct op *op = &world->ops[i];

        if (op->state == OP_POSTED || op->state == OP_OPEN) {
            fail(world, FAILURE_COMPLETION, "op %u (%s of site %u towards %u) never completed; %u in all", i,
                 op->kind->name, op->site, op->target, world->unfinished);
            return;
        }
    }
}

/*
 * When all is calm again every node answers every other; what has little room for others may be busy. A node that has
  * given a lane up meanwhile says so to whoever asks first: UNKNOWN is nothing new the first time, nor for a context that
 * follows one without numbers.
 */
static void probe(struct world *world, unsigned round)
{
    uint32_t first = world->op_count;

    if (world->config.lane_windows < 8 || world->config.lanes < 64 || world->config.first_number != 0 ||
        world->config.tenant_senders != 0 || world->failure != FAILURE_NONE) {
        return;
    }
    for (uint32_t i = 0; i < world->site_count * world->site_count; i++) {
        struct op *op = &world->ops[world->op_count++];

        *op = (struct op){
            .kind = &kind_probe,
            .index = first + i,
            .site = (uint8_t)(i / world->site_count),
            .target = (uint8_t)(i % world->site_count),
            .region = REGION_ALL,
            .slot = round + 1 == PROBE_ROUNDS,
            .expires_ns = UINT64_MAX,
        };
        on_op(world, op->index, world->net.loop.now_ns);
    }
    run_until(world, world->net.loop.now_ns + BOUND_NS, true);
    tell_missing(world);
}

enum failure world_run(const struct plan *plan, struct tally *tally, char *text, size_t room)
{
    struct world *world = calloc(1, sizeof(*world));
    enum failure failure;
    uint64_t last_ns;

    if (world == NULL) {
        abort();
    }
    world_init(world, plan, tally);
    last_ns = world->op_count != 0 ? world->ops[world->op_count - 1].at_ns : START_NS;
    run_until(world, last_ns, false);
    /* A full ring has room again soon. */
    for (unsigned i = 0; i < FINISH_TRIES && teams_finish(world) != 0; i++) {
        run_until(world, world->net.loop.now_ns + SETTLE_NS, false);
    }
    run_until(world, world->net.loop.now_ns + BOUND_NS, true);
    tell_missing(world);
    calm(world);
    /* What is late comes now, and what strangers have left behind is given up. */
    run_until(world, world->net.loop.now_ns + world->lifetime_ns + 2 * world->config.lane_give_up_ns + SETTLE_NS,
              false);
    for (unsigned round = 0; round < PROBE_ROUNDS; round++) {
        probe(world, round);
    }

    if (world->failure == FAILURE_NONE) {
        judge_all(world);
    }
    tally->cases++;
    failure = world->failure;
    snprintf(text, room, "%s", world->text);
    world_fini(world);
    return failure;
}
