/* SPDX-License-Identifier: BSD-3-Clause */
/* A firmware instance under test, reached through netdam_fw_entry() only; rings and registers as ring.h and regs.h say.
 */
#include "ndtest_node.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define NDTEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NDTEST_ASAN 1
#endif
#endif

#ifdef NDTEST_ASAN
#include <sanitizer/asan_interface.h>
#define GUARD_POISON(at, bytes)   __asan_poison_memory_region(at, bytes)
#define GUARD_UNPOISON(at, bytes) __asan_unpoison_memory_region(at, bytes)
#else
#define GUARD_POISON(at, bytes)   ((void)0)
#define GUARD_UNPOISON(at, bytes) ((void)0)
#endif

static uint8_t *node_transmit_begin(void *opaque, size_t bytes)
{
    struct ndtest_node *node = opaque;

    if (node->hooks.transmit_begin != NULL) {
        return node->hooks.transmit_begin(node->hooks.opaque, node, bytes);
    }
    free(node->transmit);
    node->transmit = malloc(bytes);
    return node->transmit;
}

static void node_transmit_end(void *opaque, size_t bytes)
{
    struct ndtest_node *node = opaque;

    if (node->hooks.transmit_end != NULL) {
        node->hooks.transmit_end(node->hooks.opaque, node, bytes);
    }
}

static void node_memory_access(void *opaque, uint64_t offset, uint64_t bytes, enum netdam_fw_access access)
{
    struct ndtest_node *node = opaque;

    if (node->hooks.access != NULL) {
        node->hooks.access(node->hooks.opaque, node, offset, bytes, access);
    }
}

static void node_interrupt(void *opaque, unsigned vector)
{
    struct ndtest_node *node = opaque;

    (void)vector;
    node->interrupts++;
}

static void node_entropy(void *opaque, void *buffer, size_t bytes)
{
    struct ndtest_node *node = opaque;

    if (node->hooks.entropy != NULL) {
        node->hooks.entropy(node->hooks.opaque, node, buffer, bytes);
        return;
    }
    ndtest_random_fill(&node->entropy, buffer, bytes);
}

static void node_log(void *opaque, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b)
{
    struct ndtest_node *node = opaque;

    node->log_lines++;
    if (getenv("NDTEST_LOG") != NULL) {
        fprintf(stderr, "# node %u log %d: %s (%llu, %llu)\n", node->index, (int)level, text, (unsigned long long)a,
                (unsigned long long)b);
    }
}

static void node_trace(void *opaque, enum netdam_fw_trace event, uint64_t a, uint64_t b, uint64_t c)
{
    struct ndtest_node *node = opaque;

    if (node->hooks.trace != NULL) {
        node->hooks.trace(node->hooks.opaque, node, event, a, b, c);
    }
}

void ndtest_config_default(struct netdam_fw_config *config, unsigned index)
{
    memset(config, 0, sizeof(*config));
    config->abi_version = NETDAM_FW_ABI_VERSION;
    config->memory_bytes = 1u << 20;
    config->mac[0] = 2;
    config->mac[5] = (uint8_t)(index + 1);
    config->ipv4[0] = 10;
    config->ipv4[3] = (uint8_t)(index + 1);
    config->ipv6[0] = 0xfd;
    config->ipv6[15] = (uint8_t)(index + 1);
    config->vectors = 4;
    config->no_merge = 1; /* a packet tells which descriptor it is of */
}

bool ndtest_node_init(struct ndtest_node *node, const struct netdam_fw_ops *ops, const struct netdam_fw_config *config,
                      const struct ndtest_hooks *hooks, uint64_t seed, const char **error)
{
    size_t block;

    memset(node, 0, sizeof(*node));
    node->ops = ops;
    node->config = *config;
    node->hooks = hooks != NULL ? *hooks : (struct ndtest_hooks){0};
    node->entropy.state = seed;
    block = (size_t)config->memory_bytes + 2 * NDTEST_GUARD_BYTES;
    node->memory_block = aligned_alloc(4096, block);
    if (node->memory_block == NULL) {
        *error = "out of memory";
        return false;
    }
    memset(node->memory_block, NDTEST_GUARD_BYTE, block);
    node->memory = node->memory_block + NDTEST_GUARD_BYTES;
    node->config.memory = node->memory;
    *error = "";
    node->state_bytes = ops->state_bytes(&node->config, error);
    if (node->state_bytes == 0) {
        free(node->memory_block);
        return false;
    }
    block = (node->state_bytes + 2 * NDTEST_GUARD_BYTES + 4095) & ~(size_t)4095;
    node->state_block = aligned_alloc(4096, block);
    if (node->state_block == NULL) {
        free(node->memory_block);
        *error = "out of memory";
        return false;
    }
    /* The firmware promises nothing about zeroed state: give it rubbish. */
    memset(node->state_block, NDTEST_GUARD_BYTE, block);
    node->state = node->state_block + NDTEST_GUARD_BYTES;
    node->platform = (struct netdam_fw_platform){
        .opaque = node,
        .transmit_begin = node_transmit_begin,
        .transmit_end = node_transmit_end,
        .memory_access = node_memory_access,
        .interrupt = node_interrupt,
        .entropy = node_entropy,
        .log = node_log,
        .trace = node_trace,
    };
    GUARD_POISON(node->memory_block, NDTEST_GUARD_BYTES);
    GUARD_POISON(node->memory + config->memory_bytes, NDTEST_GUARD_BYTES);
    GUARD_POISON(node->state_block, NDTEST_GUARD_BYTES);
    GUARD_POISON((uint8_t *)node->state + node->state_bytes, NDTEST_GUARD_BYTES);
    return true;
}

void ndtest_node_fini(struct ndtest_node *node)
{
    GUARD_UNPOISON(node->memory_block, NDTEST_GUARD_BYTES);
    GUARD_UNPOISON(node->memory + node->config.memory_bytes, NDTEST_GUARD_BYTES);
    GUARD_UNPOISON(node->state_block, NDTEST_GUARD_BYTES);
    GUARD_UNPOISON((uint8_t *)node->state + node->state_bytes, NDTEST_GUARD_BYTES);
    free(node->memory_block);
    free(node->state_block);
    free(node->transmit);
    memset(node, 0, sizeof(*node));
}

void ndtest_node_start(struct ndtest_node *node, uint64_t now_ns)
{
    node->ops->start(node->state, &node->config, &node->platform, now_ns);
    node->running = true;
}

void ndtest_node_stop(struct ndtest_node *node, uint64_t now_ns)
{
    node->ops->stop(node->state, now_ns);
    node->running = false;
}

static bool guard_intact(const uint8_t *at)
{
#ifdef NDTEST_ASAN
    /* Poisoned: the sanitizer has already seen whoever came by. */
    (void)at;
    return true;
#else
    return at[0] == NDTEST_GUARD_BYTE && memcmp(at, at + 1, NDTEST_GUARD_BYTES - 1) == 0;
#endif
}

bool ndtest_node_guards_intact(const struct ndtest_node *node)
{
    return guard_intact(node->memory_block) && guard_intact(node->memory + node->config.memory_bytes) &&
           guard_intact(node->state_block) && guard_intact((uint8_t *)node->state + node->state_bytes);
}

static unsigned register_bytes(enum netdam_register reg)
{
    switch (reg) {
#define REGISTER_CASE(name, offset, bytes, access, reset, text)                                                        \
    case NETDAM_REG_##name:                                                                                            \
        return bytes;
        NETDAM_REG_LIST(REGISTER_CASE)
#undef REGISTER_CASE
    default:
        return 4;
    }
}

uint64_t ndtest_node_register(struct ndtest_node *node, enum netdam_register reg)
{
    return node->ops->register_read(node->state, (uint32_t)reg, register_bytes(reg));
}

uint64_t ndtest_node_counter(struct ndtest_node *node, enum netdam_counter counter)
{
    return node->ops->register_read(node->state, NETDAM_PAGE_COUNTERS + 8 * (uint32_t)counter, 8);
}

enum netdam_admin_status ndtest_node_admin(struct ndtest_node *node, enum netdam_admin command, const uint64_t *args,
                                           unsigned count, uint64_t results[NETDAM_ADMIN_RESULTS], uint64_t now_ns)
{
    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        node->ops->register_write(node->state, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, i < count ? args[i] : 0, now_ns);
    }
    node->ops->register_write(node->state, NETDAM_REG_ADMIN_COMMAND, 4, (uint64_t)command, now_ns);
    for (unsigned i = 0; results != NULL && i < NETDAM_ADMIN_RESULTS; i++) {
        results[i] = node->ops->register_read(node->state, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
    }
    return (enum netdam_admin_status)ndtest_node_register(node, NETDAM_REG_ADMIN_STATUS);
}

enum netdam_admin_status ndtest_region_create(struct ndtest_node *node, uint64_t base, uint64_t length,
                                              uint32_t permissions, uint64_t key, uint64_t now_ns, uint32_t *index,
                                              uint64_t *key_out)
{
    uint64_t args[] = {base, length, permissions, key};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    enum netdam_admin_status status = ndtest_node_admin(node, NETDAM_ADMIN_REGION_CREATE, args, 4, results, now_ns);

    *index = (uint32_t)results[0];
    *key_out = results[1];
    return status;
}

enum netdam_admin_status ndtest_region_destroy(struct ndtest_node *node, uint32_t index, uint64_t now_ns)
{
    uint64_t args[] = {index};

    return ndtest_node_admin(node, NETDAM_ADMIN_REGION_DESTROY, args, 1, NULL, now_ns);
}

static void node_address(const struct ndtest_node *node, unsigned family, uint64_t args[2])
{
    args[0] = 0;
    args[1] = 0;
    if (family == 4) {
        for (unsigned i = 0; i < 4; i++) {
            args[0] = args[0] << 8 | node->config.ipv4[i];
        }
        return;
    }
    for (unsigned i = 0; i < 16; i++) {
        args[i / 8] = args[i / 8] << 8 | node->config.ipv6[i];
    }
}

enum netdam_admin_status ndtest_peer_open(struct ndtest_node *node, const struct ndtest_node *other, unsigned family,
                                          uint64_t now_ns, uint32_t *peer)
{
    uint64_t args[3];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    unsigned port = other->config.udp_port != 0 ? other->config.udp_port : NETDAM_UDP_PORT;
    enum netdam_admin_status status;

    node_address(other, family, args);
    args[2] = family | (uint64_t)port << 16;
    status = ndtest_node_admin(node, NETDAM_ADMIN_PEER_OPEN, args, 3, results, now_ns);
    *peer = (uint32_t)results[0];
    return status;
}

enum netdam_admin_status ndtest_peer_close(struct ndtest_node *node, uint32_t peer, uint64_t now_ns)
{
    uint64_t args[] = {peer};

    return ndtest_node_admin(node, NETDAM_ADMIN_PEER_CLOSE, args, 1, NULL, now_ns);
}

enum netdam_admin_status ndtest_neighbour_set(struct ndtest_node *node, const struct ndtest_node *other,
                                              unsigned family, uint64_t now_ns)
{
    uint64_t args[4];

    node_address(other, family, args);
    args[2] = family;
    args[3] = 0;
    for (unsigned i = 0; i < 6; i++) {
        args[3] = args[3] << 8 | other->config.mac[i];
    }
    return ndtest_node_admin(node, NETDAM_ADMIN_NEIGHBOUR_SET, args, 4, NULL, now_ns);
}

static enum netdam_admin_status create_queue(struct ndtest_queue *queue, struct ndtest_node *node,
                                             const uint64_t args[NETDAM_ADMIN_ARGS], uint64_t now_ns)
{
    uint32_t first_index = (uint32_t)args[7];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    enum netdam_admin_status status = ndtest_node_admin(node, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results, now_ns);

    *queue = (struct ndtest_queue){
        .node = node,
        .sq_base = args[0],
        .cq_base = args[2],
        .rq_base = args[4],
        .receive_key = results[1],
        .sq_log2 = (unsigned)args[1],
        .cq_log2 = (unsigned)args[3],
        .rq_log2 = (unsigned)args[5],
        .id = (uint32_t)results[0],
        .produced = first_index,
        .consumed = first_index,
        .receive_produced = first_index,
        .open = status == NETDAM_ADMIN_STATUS_OK,
    };
    return status;
}

enum netdam_admin_status ndtest_queue_create_receiving(struct ndtest_queue *queue, struct ndtest_node *node,
                                                       uint64_t sq_base, unsigned sq_log2, uint64_t cq_base,
                                                       unsigned cq_log2, uint64_t rq_base, unsigned rq_log2,
                                                       uint32_t first_index, uint64_t now_ns)
{
    const uint64_t args[] = {sq_base,
                             sq_log2,
                             cq_base,
                             cq_log2,
                             rq_log2 != 0 ? rq_base : 0,
                             rq_log2,
                             NETDAM_QUEUE_NETDAM | (uint64_t)NETDAM_VECTOR_NONE << 16,
                             first_index};

    return create_queue(queue, node, args, now_ns);
}

enum netdam_admin_status ndtest_queue_create_raw(struct ndtest_queue *queue, struct ndtest_node *node, uint64_t base,
                                                 unsigned log2, uint64_t now_ns)
{
    uint64_t rq = base + netdam_ring_bytes(log2, sizeof(struct netdam_descriptor));
    uint64_t cq = rq + netdam_ring_bytes(log2, sizeof(struct netdam_descriptor));
    const uint64_t args[] = {base, log2, cq, log2, rq, log2, NETDAM_QUEUE_RAW | (uint64_t)NETDAM_VECTOR_NONE << 16, 0};

    return create_queue(queue, node, args, now_ns);
}

enum netdam_admin_status ndtest_queue_create(struct ndtest_queue *queue, struct ndtest_node *node, uint64_t sq_base,
                                             unsigned sq_log2, uint64_t cq_base, unsigned cq_log2, uint32_t first_index,
                                             uint64_t now_ns)
{
    return ndtest_queue_create_receiving(queue, node, sq_base, sq_log2, cq_base, cq_log2, 0, 0, first_index, now_ns);
}

enum netdam_admin_status ndtest_queue_destroy(struct ndtest_queue *queue, uint64_t now_ns)
{
    uint64_t args[] = {queue->id};

    return ndtest_node_admin(queue->node, NETDAM_ADMIN_QUEUE_DESTROY, args, 1, NULL, now_ns);
}

static uint32_t *ring_word(const struct ndtest_queue *queue, uint64_t base, size_t offset)
{
    /* Ring headers are aligned to 64 bytes in memory that is aligned to 4096. */
    return (uint32_t *)(void *)(queue->node->memory + base + offset);
}

bool ndtest_queue_post(struct ndtest_queue *queue, const struct netdam_descriptor *descriptor, uint64_t now_ns,
                       unsigned *action)
{
    uint32_t size = UINT32_C(1) << queue->sq_log2;
    uint32_t consumer =
        __atomic_load_n(ring_word(queue, queue->sq_base, offsetof(struct netdam_ring, consumer)), __ATOMIC_ACQUIRE);
    uint64_t at = queue->sq_base + sizeof(struct netdam_ring) + 64 * (uint64_t)(queue->produced & (size - 1));

    *action = 0;
    if (queue->produced - consumer >= size) {
        return false;
    }
    memcpy(queue->node->memory + at, descriptor, sizeof(*descriptor));
    queue->produced++;
    /* Release: the device that sees the index sees the descriptor. */
    __atomic_store_n(ring_word(queue, queue->sq_base, offsetof(struct netdam_ring, producer)), queue->produced,
                     __ATOMIC_RELEASE);
    /* Producer before flags: pairs with the device's fence between setting the flag and its last look. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if ((__atomic_load_n(ring_word(queue, queue->sq_base, offsetof(struct netdam_ring, consumer_flags)),
                         __ATOMIC_RELAXED) &
         NETDAM_RING_NEED_WAKEUP) != 0) {
        *action = queue->node->ops->register_write(queue->node->state,
                                                   NETDAM_PAGE_DOORBELLS + queue->id * NETDAM_PAGE_BYTES, 4, 1, now_ns);
    }
    return true;
}

bool ndtest_queue_post_receive(struct ndtest_queue *queue, const struct netdam_descriptor *descriptor)
{
    uint32_t size = UINT32_C(1) << queue->rq_log2;
    uint64_t at = queue->rq_base + sizeof(struct netdam_ring) + 64 * (uint64_t)(queue->receive_produced & (size - 1));

    if (queue->rq_log2 == 0 || queue->receive_produced - ndtest_queue_received(queue) >= size) {
        return false;
    }
    memcpy(queue->node->memory + at, descriptor, sizeof(*descriptor));
    queue->receive_produced++;
    /* Release: the device that sees the index sees the descriptor. No doorbell: a message looks by itself. */
    __atomic_store_n(ring_word(queue, queue->rq_base, offsetof(struct netdam_ring, producer)), queue->receive_produced,
                     __ATOMIC_RELEASE);
    return true;
}

uint32_t ndtest_queue_received(const struct ndtest_queue *queue)
{
    return __atomic_load_n(ring_word(queue, queue->rq_base, offsetof(struct netdam_ring, consumer)), __ATOMIC_ACQUIRE);
}

uint32_t ndtest_queue_taken(const struct ndtest_queue *queue)
{
    return __atomic_load_n(ring_word(queue, queue->sq_base, offsetof(struct netdam_ring, consumer)), __ATOMIC_ACQUIRE);
}

uint32_t ndtest_queue_ready(const struct ndtest_queue *queue)
{
    return __atomic_load_n(ring_word(queue, queue->cq_base, offsetof(struct netdam_ring, producer)), __ATOMIC_ACQUIRE) -
           queue->consumed;
}

bool ndtest_queue_poll(struct ndtest_queue *queue, struct netdam_completion *completion)
{
    uint32_t size = UINT32_C(1) << queue->cq_log2;
    uint64_t at = queue->cq_base + sizeof(struct netdam_ring) + 32 * (uint64_t)(queue->consumed & (size - 1));

    if (ndtest_queue_ready(queue) == 0) {
        return false;
    }
    memcpy(completion, queue->node->memory + at, sizeof(*completion));
    queue->consumed++;
    __atomic_store_n(ring_word(queue, queue->cq_base, offsetof(struct netdam_ring, consumer)), queue->consumed,
                     __ATOMIC_RELEASE);
    return true;
}
