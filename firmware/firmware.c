/* SPDX-License-Identifier: BSD-3-Clause */
/* The image's entry: configuration, state, and the calls that the platform makes. */
#include "ndfw.h"

#include "path.h"
#include "shared.h"

#define MS UINT64_C(1000000)

/* Descriptors of one queue pair before the next has its turn. */
#define TURN_DESCRIPTORS 16u
/* Enough that a few ways of equal cost have one each, however unfortunate the hash. */
#define PATHS 16u
/* How soon a pair is looked at again whose software leaves no room for completions. */
#define STARVED_NS MS

void ndfw_log(struct ndfw *fw, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b)
{
    if (fw->platform.log != NULL) {
        fw->platform.log(fw->platform.opaque, level, text, a, b);
    }
}

void ndfw_trace(struct ndfw *fw, enum netdam_fw_trace event, uint64_t a, uint64_t b, uint64_t c)
{
    if (fw->platform.trace != NULL) {
        fw->platform.trace(fw->platform.opaque, event, a, b, c);
    }
}

uint64_t ndfw_random(struct ndfw *fw)
{
    uint64_t value = 0;

    fw->platform.entropy(fw->platform.opaque, &value, sizeof(value));
    return value;
}

#define DEFAULT(field, value)                                                                                          \
    do {                                                                                                               \
        if (config->field == 0) {                                                                                      \
            config->field = (value);                                                                                   \
        }                                                                                                              \
    } while (0)

static void fill_defaults(struct netdam_fw_config *config)
{
    DEFAULT(udp_port, NETDAM_UDP_PORT);
    DEFAULT(ipv4_prefix, 24);
    DEFAULT(mtu, NETDAM_MTU_MIN);
    DEFAULT(queue_pairs, 16);
    DEFAULT(regions, 64);
    DEFAULT(peers, 64);
    DEFAULT(neighbours, 64);
    DEFAULT(operations, 1024);
    DEFAULT(chains, 64);
    DEFAULT(collectives, 8);
    DEFAULT(collective_wait_ns, 60000 * MS);
    DEFAULT(lanes, 4096);
    DEFAULT(lane_windows, 256);
    DEFAULT(window, 256);
    DEFAULT(retries, 10);
    DEFAULT(rto_initial_ns, 50 * MS);
    DEFAULT(rto_min_ns, 10 * MS);
    DEFAULT(rto_max_ns, 1000 * MS);
    DEFAULT(confirm_idle_ns, 100 * MS);
    DEFAULT(lane_give_up_ns, 60000 * MS);
    DEFAULT(generation_interval_ns, 1000 * MS);
    DEFAULT(refusal_interval_ns, 10000);
    DEFAULT(refusal_burst, 256);
    DEFAULT(replies, 256);
    DEFAULT(tenants, 16);
    DEFAULT(tenant_senders, 256);
    DEFAULT(first_number, 1);
    /* The ports behind the own one. */
    DEFAULT(paths, config->udp_port <= NDFW_PORT_MAX - PATHS + 1 ? PATHS : NDFW_PORT_MAX - config->udp_port + 1);
}

static bool networks_are_possible(const struct netdam_fw_config *config)
{
    for (unsigned i = 0; i < NETDAM_FW_NETWORKS; i++) {
        const struct netdam_fw_network *network = &config->forward[i];

        if ((network->family != 0 && network->family != 4 && network->family != 6) ||
            network->prefix > (network->family == 4 ? 32 : 128)) {
            return false;
        }
    }
    return true;
}

/* Returns the name of a field that no device could have, or NULL. */
static const char *check_config(const struct netdam_fw_config *config)
{
#define CHECK(condition, field)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return field;                                                                                              \
        }                                                                                                              \
    } while (0)
    CHECK(config->abi_version == NETDAM_FW_ABI_VERSION, "abi_version");
    CHECK(config->memory != NULL && (uintptr_t)config->memory % 4096 == 0, "memory");
    CHECK(config->memory_bytes != 0 && config->memory_bytes % 4096 == 0, "memory_bytes");
    CHECK(config->memory_bytes <= UINT64_C(1) << 56, "memory_bytes");
    CHECK((config->mac[0] & 1) == 0, "mac");
    CHECK(config->ipv4_prefix <= 32, "ipv4_prefix");
    CHECK(config->mtu >= NETDAM_MTU_MIN && config->mtu <= NETDAM_MTU_MAX, "mtu");
    CHECK(config->queue_pairs <= NETDAM_QUEUE_PAIRS_MAX, "queue_pairs");
    CHECK(config->regions <= 1u << 16, "regions");
    CHECK(config->peers <= 1u << 16, "peers");
    CHECK(config->neighbours <= 1u << 16, "neighbours");
    CHECK(config->operations <= 1u << 20, "operations");
    CHECK(config->chains <= 1u << 16, "chains");
    CHECK(config->collectives <= 1u << 16, "collectives");
    CHECK(config->collective_wait_ns <= UINT64_C(1) << 48, "collective_wait_ns");
    CHECK(networks_are_possible(config), "forward");
    CHECK(config->lanes <= 1u << 24, "lanes");
    CHECK(config->lane_windows < 1u << 16, "lane_windows");
    CHECK(config->replies <= 1u << 20, "replies");
    CHECK(config->window <= NETDAM_WINDOW_MAX && (config->window & (config->window - 1)) == 0, "window");
    CHECK(config->retries <= 1000, "retries");
    CHECK(config->rto_min_ns <= config->rto_max_ns, "rto_max_ns");
    CHECK(config->rto_max_ns <= UINT64_C(1) << 48, "rto_max_ns");
    CHECK(config->rto_initial_ns <= UINT64_C(1) << 48, "rto_initial_ns");
    CHECK(config->tenants <= 1u << 10, "tenants");
    CHECK(config->tenant_senders <= 1u << 16, "tenant_senders");
    CHECK(config->paths <= NETDAM_FW_PATHS_MAX, "paths");
    CHECK(config->paths - 1 <= NDFW_PORT_MAX - config->udp_port, "paths");
    CHECK(config->first_number < NETDAM_NUMBER_MAX, "first_number");
    CHECK(config->function_index == 0, "function_index");
#undef CHECK
    return NULL;
}

/* Hands out parts of the state block, each on a cache line of its own; with a NULL base it only counts. */
struct arena {
    uint8_t *base;
    size_t used;
};

static void *take(struct arena *arena, size_t bytes)
{
    void *part = arena->base == NULL ? NULL : arena->base + arena->used;

    arena->used += (bytes + 63) & ~(size_t)63;
    return part;
}

static void lay_out(struct ndfw *fw, struct arena *arena, const struct netdam_fw_config *config)
{
    struct ndfw scratch;
    struct ndfw_flight *flights;
    struct ndfw_path *paths;

    if (fw == NULL) {
        fw = &scratch;
    }
    (void)take(arena, sizeof(struct ndfw));
    fw->regions = take(arena, config->regions * sizeof(fw->regions[0]));
    fw->region_by_key.mask = ndfw_map_slots(config->regions) - 1;
    fw->region_by_key.slots = take(arena, ((size_t)fw->region_by_key.mask + 1) * sizeof(uint32_t));
    fw->queues = take(arena, config->queue_pairs * sizeof(fw->queues[0]));
    fw->peers = take(arena, (config->peers + 1) * sizeof(fw->peers[0]));
    fw->peer_by_context.mask = ndfw_map_slots(config->peers + 1) - 1;
    fw->peer_by_context.slots = take(arena, ((size_t)fw->peer_by_context.mask + 1) * sizeof(uint32_t));
    paths = take(arena, ((size_t)config->peers + 1) * config->paths * sizeof(paths[0]));
    flights = take(arena, ((size_t)config->peers + 1) * 2 * config->window * sizeof(flights[0]));
    fw->operations = take(arena, config->operations * sizeof(fw->operations[0]));
    fw->tours = take(arena, config->chains * sizeof(fw->tours[0]));
    fw->collectives = take(arena, config->collectives * sizeof(fw->collectives[0]));
    fw->neighbours = take(arena, config->neighbours * sizeof(fw->neighbours[0]));
    fw->lane_mask = ndfw_map_slots(config->lanes) - 1;
    fw->lanes = take(arena, ((size_t)fw->lane_mask + 1) * sizeof(fw->lanes[0]));
    fw->windows = take(arena, config->lane_windows * sizeof(fw->windows[0]));
    fw->replies = take(arena, config->replies * sizeof(fw->replies[0]));
    fw->tenants = take(arena, config->tenants * sizeof(fw->tenants[0]));
    fw->senders = take(arena, config->tenant_senders * sizeof(fw->senders[0]));
    fw->sender_by_salt.mask = ndfw_map_slots(config->tenant_senders) - 1;
    fw->sender_by_salt.slots = take(arena, ((size_t)fw->sender_by_salt.mask + 1) * sizeof(uint32_t));
    fw->tenant_room = take(arena, ndfw_tenant_room_bytes());
    fw->loopback = take(arena, (size_t)NDFW_LOOPBACK_SLOTS * NDFW_FRAME_MAX);
    fw->shared_room = take(arena, config->shared_frames != 0 ? NDFW_FRAME_MAX : 0);
    fw->transmit_room = take(arena, config->shared_frames != 0 ? NDFW_FRAME_MAX : 0);
    for (uint32_t i = 0; arena->base != NULL && i <= config->peers; i++) {
        fw->peers[i].lane.flights = flights + (size_t)i * 2 * config->window;
        fw->peers[i].laneless.flights = fw->peers[i].lane.flights + config->window;
        fw->peers[i].paths = paths + (size_t)i * config->paths;
    }
}

static size_t op_state_bytes(const struct netdam_fw_config *config, const char **error)
{
    struct netdam_fw_config filled = *config;
    struct arena arena = {NULL, 0};
    const char *wrong;

    fill_defaults(&filled);
    wrong = check_config(&filled);
    if (wrong != NULL) {
        if (error != NULL) {
            *error = wrong;
        }
        return 0;
    }
    lay_out(NULL, &arena, &filled);
    return arena.used;
}

static void op_start(void *state, const struct netdam_fw_config *config, const struct netdam_fw_platform *platform,
                     uint64_t now_ns)
{
    struct ndfw *fw = state;
    struct arena arena = {state, 0};

    memset(fw, 0, sizeof(*fw));
    fw->config = *config;
    fill_defaults(&fw->config);
    fw->platform = *platform;
    fw->now_ns = now_ns;
    lay_out(fw, &arena, &fw->config);
    memset(fw->regions, 0, fw->config.regions * sizeof(fw->regions[0]));
    memset(fw->queues, 0, fw->config.queue_pairs * sizeof(fw->queues[0]));
    memset(fw->neighbours, 0, fw->config.neighbours * sizeof(fw->neighbours[0]));
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        fw->peers[i].in_use = false;
        fw->peers[i].serial = 0;
    }
    for (uint32_t i = 0; i < fw->config.chains; i++) {
        fw->tours[i].next_free = i + 1 < fw->config.chains ? i + 1 : NDFW_NONE;
    }
    for (uint32_t i = 0; i < fw->config.operations; i++) {
        fw->operations[i].in_use = false;
        fw->operations[i].next = i + 1 < fw->config.operations ? i + 1 : NDFW_NONE;
    }
    for (uint32_t i = 0; i < fw->config.collectives; i++) {
        fw->collectives[i].operation = NDFW_NONE;
    }
    ndfw_map_clear(&fw->region_by_key);
    ndfw_map_clear(&fw->peer_by_context);
    ndfw_crc32c_prepare(fw);
    ndfw_chain_start(fw);
    ndfw_lane_start(fw);
    ndfw_tenant_start(fw);
}

static void op_stop(void *state, uint64_t now_ns)
{
    struct ndfw *fw = state;

    fw->now_ns = now_ns;
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE) {
            ndfw_queue_flush(fw, i, true);
        }
    }
    /* Once, and without waiting: it spares the nodes from keeping, and then giving up, what nobody will ask for. */
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        struct ndfw_peer *peer = &fw->peers[i];

        if (!peer->in_use || !peer->resolved) {
            continue;
        }
        if (peer->generation != 0 && peer->confirmed != peer->lane.floor) {
            (void)ndfw_send_confirm(fw, peer, peer, peer->generation, peer->path_steady);
        }
        if (!ndfw_way_is_confirmed(&peer->way)) {
            (void)ndfw_send_confirm(fw, ndfw_chain_context(fw), peer, peer->way.generation, peer->path_steady);
        }
    }
    ndfw_queue_signal(fw);
}

static void op_receive(void *state, const uint8_t *frame, size_t bytes, uint64_t now_ns)
{
    struct ndfw *fw = state;

    fw->now_ns = now_ns;
    ndfw_count(fw, NETDAM_COUNTER_RX_FRAMES, 1);
    ndfw_count(fw, NETDAM_COUNTER_RX_BYTES, bytes);
    ndfw_net_receive(fw, ndfw_shared_begin(fw, frame, bytes), bytes);
    ndfw_shared_end(fw);
    ndfw_queue_signal(fw);
}

/* Frames to this node itself. */
static void drain_loopback(struct ndfw *fw)
{
    fw->draining = true;
    while (fw->loopback_head != fw->loopback_tail) {
        uint32_t slot = fw->loopback_head % NDFW_LOOPBACK_SLOTS;

        ndfw_net_receive(fw, fw->loopback + (size_t)slot * NDFW_FRAME_MAX, fw->loopback_bytes[slot]);
        fw->loopback_head++;
    }
    fw->draining = false;
}

/* Goes round: the place `step` behind `from`, both below `count`. */
static uint32_t around(uint32_t from, uint32_t step, uint32_t count)
{
    return from + step < count ? from + step : from + step - count;
}

static bool take_descriptors(struct ndfw *fw)
{
    bool more = false;

    for (uint32_t n = 0; n < fw->config.queue_pairs; n++) {
        uint32_t index = around(fw->next_queue, n, fw->config.queue_pairs);

        if (fw->queues[index].state == NETDAM_QUEUE_STATE_READY && fw->queues[index].type == NETDAM_QUEUE_NETDAM) {
            more |= ndfw_queue_take(fw, index, TURN_DESCRIPTORS) == TURN_DESCRIPTORS;
        }
    }
    fw->next_queue = around(fw->next_queue, 1, fw->config.queue_pairs);
    return more;
}

/* Returns false if the port is full. Peers that no handle has reached are not even looked at. */
static bool pump_peers(struct ndfw *fw, uint64_t budget_end, bool *more)
{
    const uint32_t end = fw->peer_end, first = fw->next_peer <= end ? fw->next_peer : 0;
    uint32_t blocked = NDFW_NONE;
    bool waits = false;

    for (uint32_t n = 0; n <= end; n++) {
        uint32_t index = around(first, n, end + 1);
        struct ndfw_peer *peer = index < end ? &fw->peers[index] : ndfw_chain_context(fw);

        if (!peer->in_use) {
            continue;
        }
        ndfw_peer_timer(fw, peer);
        if (peer->in_use && (!ndfw_peer_pump(fw, peer, budget_end, &waits) || waits)) {
            blocked = index;
            *more |= waits;
            waits = false;
            if (fw->port_full) {
                fw->next_peer = index;
                return false;
            }
        }
    }
    /* Whoever was last to find no budget, or no place among the frames to this node itself, is first next time. */
    fw->next_peer = blocked != NDFW_NONE ? blocked : around(first, 1, end + 1);
    return true;
}

static uint64_t next_deadline(const struct ndfw *fw)
{
    uint64_t next = ndfw_lane_next_ns(fw);

    for (uint32_t i = 0; i <= fw->peer_end; i++) {
        const struct ndfw_peer *peer = i < fw->peer_end ? &fw->peers[i] : ndfw_chain_context(fw);

        if (peer->in_use && ndfw_peer_next_ns(peer) < next) {
            next = ndfw_peer_next_ns(peer);
        }
    }
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (fw->queues[i].starved && fw->now_ns + STARVED_NS < next) {
            next = fw->now_ns + STARVED_NS;
        }
    }
    return ndfw_collectives_next_ns(fw) < next ? ndfw_collectives_next_ns(fw) : next;
}

static void op_run(void *state, uint64_t now_ns, uint64_t budget_bytes, struct netdam_fw_run_result *result)
{
    struct ndfw *fw = state;
    bool more, more_raw = false;

    fw->now_ns = now_ns;
    fw->work_bytes = 0;
    fw->port_full = fw->raw_waits = false;
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE) {
            ndfw_queue_set_flags(fw, i, 0);
        }
    }
    ndfw_lane_timer(fw);
    /* Taking turns: where the port takes one frame at a time, each kind gets every other one. */
    fw->raw_first = !fw->raw_first;
    if (fw->raw_first) {
        more_raw = ndfw_raw_run(fw, budget_bytes / 2);
    }
    do {
        drain_loopback(fw);
        more = take_descriptors(fw);
        more |= ndfw_collectives_run(fw, budget_bytes);
        fw->chains_due = false;
        if (!pump_peers(fw, budget_bytes, &more)) {
            break;
        }
        more |= fw->collective_due | fw->chains_due;
        more |= fw->loopback_head != fw->loopback_tail;
    } while (more && fw->work_bytes < budget_bytes);
    if (!fw->raw_first) {
        more_raw = ndfw_raw_run(fw, budget_bytes / 2);
    }
    ndfw_queue_signal(fw);
    result->next_ns = next_deadline(fw);
    result->work_bytes = fw->work_bytes;
    result->port_full = fw->port_full || fw->raw_waits;
    result->more = more || more_raw || result->port_full;
    if (result->port_full && result->next_ns < now_ns + MS) {
        result->next_ns = now_ns + MS; /* what is due waits for the port */
    }
}

static bool op_prepare_sleep(void *state)
{
    struct ndfw *fw = state;

    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (fw->queues[i].state != NETDAM_QUEUE_STATE_NONE) {
            ndfw_queue_set_flags(fw, i, NETDAM_RING_NEED_WAKEUP);
        }
    }
    /* Orders the stores of the flags before the loads of the producer indices; software does the opposite. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        if (ndfw_queue_could_take(fw, i)) {
            return false;
        }
    }
    return fw->loopback_head == fw->loopback_tail && !fw->collective_due;
}

static uint64_t op_register_read(void *state, uint32_t offset, unsigned bytes)
{
    return ndfw_register_read(state, offset, bytes);
}

static unsigned op_register_write(void *state, uint32_t offset, unsigned bytes, uint64_t value, uint64_t now_ns)
{
    struct ndfw *fw = state;

    fw->now_ns = now_ns;
    return ndfw_register_write(fw, offset, bytes, value);
}

static const struct netdam_fw_ops ops = {
    .abi_version = NETDAM_FW_ABI_VERSION,
    .ops_bytes = sizeof(struct netdam_fw_ops),
    .firmware_version = NDFW_VERSION,
    .name = "ndfw",
    .state_bytes = op_state_bytes,
    .start = op_start,
    .stop = op_stop,
    .receive = op_receive,
    .run = op_run,
    .prepare_sleep = op_prepare_sleep,
    .register_read = op_register_read,
    .register_write = op_register_write,
};

__attribute__((visibility("default"))) const struct netdam_fw_ops *netdam_fw_entry(void)
{
    return &ops;
}
