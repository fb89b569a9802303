/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers and administration commands. */
#include "ndfw.h"

static bool ranges_overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes != 0 && b_bytes != 0 && a < b + b_bytes && b < a + a_bytes;
}

static uint64_t sq_bytes(const struct ndfw_queue *queue)
{
    return sizeof(struct netdam_ring) + (uint64_t)queue->sq_entries * sizeof(struct netdam_descriptor);
}

static uint64_t cq_bytes(const struct ndfw_queue *queue)
{
    return sizeof(struct netdam_ring) + (uint64_t)queue->cq_entries * sizeof(struct netdam_completion);
}

static uint64_t rq_bytes(const struct ndfw_queue *queue)
{
    return queue->rq_entries == 0
               ? 0
               : sizeof(struct netdam_ring) + (uint64_t)queue->rq_entries * sizeof(struct netdam_descriptor);
}

static struct ndfw_queue *find_queue(const struct ndfw *fw, uint64_t index)
{
    if (index >= fw->config.queue_pairs || fw->queues[index].state == NETDAM_QUEUE_STATE_NONE) {
        return NULL;
    }
    return &fw->queues[index];
}

static bool has_tenant(const struct ndfw *fw, uint64_t id)
{
    return id == 0 || ndfw_tenant_find(fw, id) != NULL;
}

/* Whoever's the region is. */
static bool key_is_taken(const struct ndfw *fw, uint64_t key)
{
    bool taken = false;

    for (uint32_t i = 0; i < fw->config.regions; i++) {
        taken |= fw->regions[i].in_use && fw->regions[i].key == key;
    }
    return taken;
}

static enum netdam_admin_status region_create(struct ndfw *fw, const uint64_t *args, uint64_t *results)
{
    struct ndfw_region *region = NULL;
    uint32_t index;
    uint64_t key = args[3];

    if (args[1] == 0 || args[1] > fw->config.memory_bytes || args[0] > fw->config.memory_bytes - args[1] ||
        args[0] % 8 != 0 || (args[2] & ~(uint64_t)NETDAM_PERMISSION_ALL) != 0) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    if (!has_tenant(fw, args[4]) || (args[5] != 0 && find_queue(fw, args[5] - 1) == NULL)) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    /* Or one tenant's immediates would end up with another, or NetDAM's among frames that are not. */
    if (args[5] != 0 &&
        (find_queue(fw, args[5] - 1)->tenant != args[4] || find_queue(fw, args[5] - 1)->type != NETDAM_QUEUE_NETDAM)) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    for (index = 0; index < fw->config.regions; index++) {
        if (!fw->regions[index].in_use) {
            region = &fw->regions[index];
            break;
        }
    }
    if (region == NULL) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    while (key == 0) {
        key = ndfw_random(fw);
    }
    if (key_is_taken(fw, key)) {
        return NETDAM_ADMIN_STATUS_EXISTS;
    }
    region->base = args[0];
    region->length = args[1];
    region->permissions = (uint32_t)args[2];
    region->key = key;
    region->queue = (uint32_t)args[5];
    region->tenant = (uint32_t)args[4];
    region->serial++;
    region->in_use = true;
    ndfw_map_insert(&fw->region_by_key, key, index);
    results[0] = index;
    results[1] = key;
    return NETDAM_ADMIN_STATUS_OK;
}

static enum netdam_admin_status region_destroy(struct ndfw *fw, const uint64_t *args)
{
    if (args[0] >= fw->config.regions || !fw->regions[args[0]].in_use) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    fw->regions[args[0]].in_use = false;
    ndfw_map_clear(&fw->region_by_key);
    for (uint32_t i = 0; i < fw->config.regions; i++) {
        if (fw->regions[i].in_use) {
            ndfw_map_insert(&fw->region_by_key, fw->regions[i].key, i);
        }
    }
    return NETDAM_ADMIN_STATUS_OK;
}

static bool ring_is_possible(const struct ndfw *fw, uint64_t base, uint64_t log2, size_t entry_bytes)
{
    uint64_t bytes;

    if (base % NETDAM_RING_ALIGN != 0 || log2 < NETDAM_RING_LOG2_MIN || log2 > NETDAM_RING_LOG2_MAX) {
        return false;
    }
    bytes = netdam_ring_bytes((unsigned)log2, entry_bytes);
    return bytes <= fw->config.memory_bytes && base <= fw->config.memory_bytes - bytes;
}

static bool overlaps_rings(const struct ndfw *fw, uint64_t base, uint64_t bytes)
{
    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        const struct ndfw_queue *queue = &fw->queues[i];

        if (queue->state != NETDAM_QUEUE_STATE_NONE && (ranges_overlap(base, bytes, queue->sq, sq_bytes(queue)) ||
                                                        ranges_overlap(base, bytes, queue->cq, cq_bytes(queue)) ||
                                                        ranges_overlap(base, bytes, queue->rq, rq_bytes(queue)))) {
            return true;
        }
    }
    return false;
}

static void start_ring(struct ndfw *fw, uint64_t base, uint32_t first, uint32_t flags)
{
    struct netdam_ring ring = {.producer = first, .consumer = first, .consumer_flags = flags};

    ndfw_store(ndfw_memory(fw, base, sizeof(ring), NETDAM_FW_ACCESS_WRITE), (const uint8_t *)&ring, sizeof(ring));
}

static bool receive_key_is_taken(const struct ndfw *fw, uint64_t key)
{
    bool taken = false;

    for (uint32_t i = 0; i < fw->config.queue_pairs; i++) {
        taken |= fw->queues[i].receive_key == key;
    }
    return taken;
}

static enum netdam_admin_status queue_create(struct ndfw *fw, const uint64_t *args, uint64_t *results)
{
    uint64_t type = args[6] & 0xffff;
    uint64_t vector = args[6] >> 16 & 0xffff;
    uint64_t tenant = args[6] >> 32;
    struct ndfw_queue made;
    uint32_t index;

    if (!ring_is_possible(fw, args[0], args[1], sizeof(struct netdam_descriptor)) ||
        !ring_is_possible(fw, args[2], args[3], sizeof(struct netdam_completion)) || args[7] > UINT32_MAX ||
        type > NETDAM_QUEUE_RAW || (vector >= fw->config.vectors && vector != NETDAM_VECTOR_NONE)) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    if (type == NETDAM_QUEUE_RAW && fw->config.no_raw) {
        return NETDAM_ADMIN_STATUS_UNSUPPORTED;
    }
    /* Nothing about such a frame is authenticated. */
    if (type == NETDAM_QUEUE_RAW && tenant != 0) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    if (!has_tenant(fw, tenant)) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    if (args[5] != 0 && !ring_is_possible(fw, args[4], args[5], sizeof(struct netdam_descriptor))) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    memset(&made, 0, sizeof(made));
    made.sq = args[0];
    made.sq_entries = UINT32_C(1) << args[1];
    made.cq = args[2];
    made.cq_entries = UINT32_C(1) << args[3];
    if (args[5] != 0) {
        made.rq = args[4];
        made.rq_entries = UINT32_C(1) << args[5];
    }
    while (made.rq_entries != 0 && type == NETDAM_QUEUE_NETDAM &&
           (made.receive_key == 0 || receive_key_is_taken(fw, made.receive_key))) {
        made.receive_key = ndfw_random(fw);
    }
    made.sq_consumer = made.cq_producer = made.rq_consumer = (uint32_t)args[7];
    made.tenant = (uint32_t)tenant;
    made.vector = (uint16_t)vector;
    made.type = (uint8_t)type;
    made.state = NETDAM_QUEUE_STATE_READY;
    if (ranges_overlap(made.sq, sq_bytes(&made), made.cq, cq_bytes(&made)) ||
        ranges_overlap(made.sq, sq_bytes(&made), made.rq, rq_bytes(&made)) ||
        ranges_overlap(made.cq, cq_bytes(&made), made.rq, rq_bytes(&made)) ||
        overlaps_rings(fw, made.sq, sq_bytes(&made)) || overlaps_rings(fw, made.cq, cq_bytes(&made)) ||
        overlaps_rings(fw, made.rq, rq_bytes(&made))) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    for (index = 0; index < fw->config.queue_pairs; index++) {
        if (fw->queues[index].state == NETDAM_QUEUE_STATE_NONE) {
            break;
        }
    }
    if (index == fw->config.queue_pairs) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    start_ring(fw, made.sq, made.sq_consumer, NETDAM_RING_NEED_WAKEUP);
    start_ring(fw, made.cq, made.cq_producer, 0);
    if (made.rq_entries != 0) {
        start_ring(fw, made.rq, made.rq_consumer, 0);
    }
    fw->queues[index] = made;
    results[0] = index;
    results[1] = made.receive_key;
    return NETDAM_ADMIN_STATUS_OK;
}

/* A region whose immediates went to the pair keeps taking WRITEs, but has nowhere to put immediates. Its rules end. */
static void forget_queue(struct ndfw *fw, uint32_t index)
{
    for (uint32_t i = 0; i < fw->config.regions; i++) {
        if (fw->regions[i].queue == index + 1) {
            fw->regions[i].queue = 0;
        }
    }
    ndfw_raw_forget(fw, index);
}

static enum netdam_admin_status queue_destroy(struct ndfw *fw, const uint64_t *args)
{
    struct ndfw_queue *queue = find_queue(fw, args[0]);

    if (queue == NULL) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    ndfw_queue_flush(fw, (uint32_t)args[0], true);
    ndfw_queue_signal(fw);
    forget_queue(fw, (uint32_t)args[0]);
    memset(queue, 0, sizeof(*queue));
    return NETDAM_ADMIN_STATUS_OK;
}

static enum netdam_admin_status queue_query(const struct ndfw *fw, const uint64_t *args, uint64_t *results)
{
    const struct ndfw_queue *queue = find_queue(fw, args[0]);

    if (queue == NULL) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    results[0] = queue->state;
    results[1] = queue->outstanding;
    results[2] = queue->sq_consumer;
    results[3] = queue->cq_producer;
    return NETDAM_ADMIN_STATUS_OK;
}

/* False if no packet can go to such an address, or none of this family from here. Paths, port and tenant are behind it. */
static bool parse_address(const struct ndfw *fw, const uint64_t *args, struct ndfw_endpoint *endpoint)
{
    static const uint8_t none[16] = {0};
    unsigned family = args[2] & 0xff;

    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->family = (uint8_t)family;
    endpoint->port = (uint16_t)(args[2] >> 16);
    if (family == 4) {
        netdam_be32 address = netdam_be32_make((uint32_t)args[0]);

        memcpy(endpoint->address, &address, sizeof(address));
        return args[0] <= UINT32_MAX && args[1] == 0 && endpoint->address[0] != 0 && endpoint->address[0] < 224 &&
               memcmp(fw->config.ipv4, none, 4) != 0;
    }
    if (family == 6) {
        netdam_be64 high = netdam_be64_make(args[0]);
        netdam_be64 low = netdam_be64_make(args[1]);

        memcpy(endpoint->address, &high, sizeof(high));
        memcpy(endpoint->address + 8, &low, sizeof(low));
        return memcmp(endpoint->address, none, 16) != 0 && endpoint->address[0] != 0xff &&
               memcmp(fw->config.ipv6, none, 16) != 0;
    }
    return false;
}

static enum netdam_admin_status peer_open(struct ndfw *fw, const uint64_t *args, uint64_t *results)
{
    uint8_t paths = (uint8_t)(args[2] >> 8);
    struct ndfw_endpoint endpoint;

    if (!parse_address(fw, args, &endpoint) || endpoint.port == 0 || paths > fw->config.paths) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    if (!has_tenant(fw, args[2] >> 32)) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        struct ndfw_peer *peer = &fw->peers[i];

        if (!peer->in_use) {
            peer->endpoint = endpoint;
            peer->tenant = (uint32_t)(args[2] >> 32);
            peer->path_count = paths != 0 ? paths : (uint8_t)fw->config.paths;
            ndfw_peer_start(fw, peer);
            results[0] = i;
            return NETDAM_ADMIN_STATUS_OK;
        }
    }
    return NETDAM_ADMIN_STATUS_NO_SPACE;
}

static enum netdam_admin_status peer_close(struct ndfw *fw, const uint64_t *args)
{
    if (args[0] >= fw->config.peers || !fw->peers[args[0]].in_use || fw->peers[args[0]].closing) {
        return NETDAM_ADMIN_STATUS_NO_SUCH;
    }
    ndfw_peer_close(fw, &fw->peers[args[0]]);
    ndfw_queue_signal(fw);
    return NETDAM_ADMIN_STATUS_OK;
}

static enum netdam_admin_status neighbour_set(struct ndfw *fw, const uint64_t *args)
{
    netdam_be48 mac = netdam_be48_make(args[3]);
    struct ndfw_endpoint endpoint;

    if (!parse_address(fw, args, &endpoint) || args[2] >> 8 != 0 || args[3] >> 48 != 0 || args[3] == 0 ||
        (mac.b[0] & 1) != 0) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    return ndfw_net_set_neighbour(fw, endpoint.family, endpoint.address, mac.b, true) ? NETDAM_ADMIN_STATUS_OK
                                                                                      : NETDAM_ADMIN_STATUS_NO_SPACE;
}

static enum netdam_admin_status opcode_query(const uint64_t *args, uint64_t *results)
{
    struct ndfw_packet packet = {.opcode = (uint8_t)args[0], .operation = (uint8_t)args[1], .type = (uint8_t)args[2]};
    enum netdam_status status;

    if (args[0] > UINT8_MAX || args[1] > UINT8_MAX || args[2] > UINT8_MAX ||
        netdam_algebra(packet.opcode, packet.operation, packet.type) < 0) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    status = ndfw_check_instruction(&packet);
    results[0] = status == NETDAM_STATUS_OK || status == NETDAM_STATUS_BAD_LENGTH ||
                 ndfw_device_executes(packet.opcode, packet.operation, packet.type);
    results[1] = (uint64_t)netdam_algebra(packet.opcode, packet.operation, packet.type);
    return NETDAM_ADMIN_STATUS_OK;
}

static enum netdam_admin_status execute(struct ndfw *fw, uint32_t command, uint64_t *results)
{
    const uint64_t *args = fw->admin_args;

    switch (command) {
    case NETDAM_ADMIN_REGION_CREATE:
        return region_create(fw, args, results);
    case NETDAM_ADMIN_REGION_DESTROY:
        return region_destroy(fw, args);
    case NETDAM_ADMIN_QUEUE_CREATE:
        return queue_create(fw, args, results);
    case NETDAM_ADMIN_QUEUE_DESTROY:
        return queue_destroy(fw, args);
    case NETDAM_ADMIN_QUEUE_QUERY:
        return queue_query(fw, args, results);
    case NETDAM_ADMIN_PEER_OPEN:
        return peer_open(fw, args, results);
    case NETDAM_ADMIN_PEER_CLOSE:
        return peer_close(fw, args);
    case NETDAM_ADMIN_NEIGHBOUR_SET:
        return neighbour_set(fw, args);
    case NETDAM_ADMIN_OPCODE_QUERY:
        return opcode_query(args, results);
    case NETDAM_ADMIN_TENANT_SET:
        return ndfw_tenant_set(fw, args);
    case NETDAM_ADMIN_STEERING_SET:
        return ndfw_raw_steer(fw, args);
    default:
        return NETDAM_ADMIN_STATUS_BAD_COMMAND;
    }
}

static void admin_command(struct ndfw *fw, uint32_t command)
{
    memset(fw->admin_results, 0, sizeof(fw->admin_results));
    fw->admin_command = command;
    fw->admin_status = execute(fw, command, fw->admin_results);
    if (command == NETDAM_ADMIN_TENANT_SET) {
        fw->admin_args[1] = fw->admin_args[2] = 0;
    }
    ndfw_count(fw, NETDAM_COUNTER_ADMIN_ERRORS, fw->admin_status != NETDAM_ADMIN_STATUS_OK);
    ndfw_trace(fw, NETDAM_FW_TRACE_ADMIN, command, fw->admin_status, fw->admin_args[0]);
}

/* Width of the register that starts at an offset, or 0. */
static unsigned register_bytes(uint32_t offset, bool *writable)
{
    *writable = false;
    switch (offset) {
#define NETDAM_RO false
#define NETDAM_RW true
#define REGISTER_CASE(name, offset_, bytes, access, reset, text)                                                       \
    case offset_:                                                                                                      \
        *writable = NETDAM_##access;                                                                                   \
        return (bytes);
        NETDAM_REG_LIST(REGISTER_CASE)
#undef REGISTER_CASE
#undef NETDAM_RO
#undef NETDAM_RW
    default:
        break;
    }
    if (offset >= NETDAM_PAGE_COUNTERS && offset < NETDAM_PAGE_COUNTERS + NETDAM_COUNTER_COUNT * 8u &&
        offset % 8 == 0) {
        return 8;
    }
    return 0;
}

static bool is_doorbell(const struct ndfw *fw, uint32_t offset, unsigned bytes)
{
    return offset >= NETDAM_PAGE_DOORBELLS && bytes == 4 && offset % NETDAM_PAGE_BYTES == 0 &&
           (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES < fw->config.queue_pairs;
}

/* The register that an access means, with the bits to shift a half by; false if there is none. */
static bool find_register(uint32_t offset, unsigned bytes, uint32_t *start, unsigned *shift, bool *writable)
{
    unsigned width = register_bytes(offset, writable);

    *start = offset;
    *shift = 0;
    if (width == bytes || (width == 8 && bytes == 4)) {
        return width != 0;
    }
    if (width == 0 && bytes == 4 && offset >= 4 && register_bytes(offset - 4, writable) == 8) {
        *start = offset - 4;
        *shift = 32;
        return true;
    }
    return false;
}

static void register_error(struct ndfw *fw, uint32_t offset, unsigned bytes, bool write)
{
    ndfw_count(fw, NETDAM_COUNTER_REGISTER_ERRORS, 1);
    ndfw_log(fw, NETDAM_FW_LOG_GUEST, "register access refused", offset, bytes);
    ndfw_trace(fw, NETDAM_FW_TRACE_ERR_REGISTER, offset, bytes, write);
}

static uint64_t read_be(const uint8_t *bytes, unsigned count)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < count; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static uint64_t read_register(struct ndfw *fw, uint32_t start)
{
    const struct netdam_fw_platform *platform = &fw->platform;

    switch (start) {
    case NETDAM_REG_ID:
        return NETDAM_ID;
    case NETDAM_REG_SPEC_VERSION:
        return NETDAM_SPEC_VERSION;
    case NETDAM_REG_FIRMWARE_VERSION:
        return NDFW_VERSION;
    case NETDAM_REG_FIRMWARE_ABI:
        return NETDAM_FW_ABI_VERSION;
    case NETDAM_REG_STATUS:
        return NETDAM_DEVICE_READY |
               (platform->device_status != NULL ? platform->device_status(platform->opaque) : NETDAM_DEVICE_LINK_UP);
    case NETDAM_REG_VECTORS:
        return fw->config.vectors;
    case NETDAM_REG_MEMORY_BYTES:
        return fw->config.memory_bytes;
    case NETDAM_REG_QUEUE_PAIRS:
        return fw->config.queue_pairs;
    case NETDAM_REG_DOORBELL_STRIDE:
        return NETDAM_PAGE_BYTES;
    case NETDAM_REG_REGIONS:
        return fw->config.regions;
    case NETDAM_REG_PEERS:
        return fw->config.peers;
    case NETDAM_REG_MTU:
        return fw->config.mtu;
    case NETDAM_REG_PAYLOAD_MAX:
        return netdam_payload_max(fw->config.mtu);
    case NETDAM_REG_LENGTH_MAX:
        return NDFW_LENGTH_MAX;
    case NETDAM_REG_WINDOW:
        return fw->config.window;
    case NETDAM_REG_MAC:
        return read_be(fw->config.mac, 6);
    case NETDAM_REG_IPV4:
        return read_be(fw->config.ipv4, 4);
    case NETDAM_REG_UDP_PORT:
        return fw->config.udp_port;
    case NETDAM_REG_IPV6_HIGH:
        return read_be(fw->config.ipv6, 8);
    case NETDAM_REG_IPV6_LOW:
        return read_be(fw->config.ipv6 + 8, 8);
    case NETDAM_REG_MAIN_MEMORY_BYTES:
        return platform->main_memory_bytes != NULL ? platform->main_memory_bytes(platform->opaque) : 0;
    case NETDAM_REG_GENERATION:
        return fw->generation;
    case NETDAM_REG_TIME_NS:
        return fw->now_ns;
    case NETDAM_REG_COUNTERS:
        return NETDAM_COUNTER_COUNT;
    case NETDAM_REG_ADMIN_COMMAND:
        return fw->admin_command;
    case NETDAM_REG_ADMIN_STATUS:
        return fw->admin_status;
    default:
        break;
    }
    if (start >= NETDAM_REG_ADMIN_ARG0 && start <= NETDAM_REG_ADMIN_ARG7) {
        return fw->admin_args[(start - NETDAM_REG_ADMIN_ARG0) / 8];
    }
    if (start >= NETDAM_REG_ADMIN_RESULT0 && start <= NETDAM_REG_ADMIN_RESULT3) {
        return fw->admin_results[(start - NETDAM_REG_ADMIN_RESULT0) / 8];
    }
    if (start >= NETDAM_PAGE_COUNTERS) {
        return fw->counters[(start - NETDAM_PAGE_COUNTERS) / 8];
    }
    return 0; /* CONTROL */
}

uint64_t ndfw_register_read(struct ndfw *fw, uint32_t offset, unsigned bytes)
{
    uint32_t start;
    unsigned shift;
    bool writable;
    uint64_t value;

    if (is_doorbell(fw, offset, bytes)) {
        return 0;
    }
    if (!find_register(offset, bytes, &start, &shift, &writable)) {
        register_error(fw, offset, bytes, false);
        return UINT64_MAX;
    }
    value = read_register(fw, start) >> shift;
    return bytes == 4 ? (uint32_t)value : value;
}

unsigned ndfw_register_write(struct ndfw *fw, uint32_t offset, unsigned bytes, uint64_t value)
{
    uint32_t start;
    unsigned shift;
    bool writable;

    if (is_doorbell(fw, offset, bytes)) {
        ndfw_count(fw, NETDAM_COUNTER_DOORBELLS, 1);
        return NETDAM_FW_ACTION_RUN;
    }
    if (!find_register(offset, bytes, &start, &shift, &writable) || !writable ||
        (start == NETDAM_REG_CONTROL && (value & ~(uint64_t)NETDAM_CONTROL_RESET) != 0)) {
        register_error(fw, offset, bytes, true);
        return 0;
    }
    if (start == NETDAM_REG_CONTROL) {
        return value != 0 ? NETDAM_FW_ACTION_RESET : 0;
    }
    if (start == NETDAM_REG_ADMIN_COMMAND) {
        admin_command(fw, (uint32_t)value);
        return NETDAM_FW_ACTION_RUN;
    }
    uint64_t *arg = &fw->admin_args[(start - NETDAM_REG_ADMIN_ARG0) / 8];

    if (bytes == 8) {
        *arg = value;
    } else {
        *arg = (*arg & ~(UINT64_C(0xffffffff) << shift)) | (value & UINT32_MAX) << shift;
    }
    return 0;
}
