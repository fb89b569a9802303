/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults put in on purpose, around the firmware and never in it: each must be noticed, or its check is no check. */
#include "world.h"

#include <stdlib.h>

/* How often a fault strikes when it could, in parts per million. */
#define RATE 20000

const struct tamper_kind tamper_kinds[] = {
    {"write-twice", "a WRITE or REDUCE that is executed once more a while later", 0},
    {"late-copy", "a late copy of a finished WRITE that undoes what others wrote", 5},
    {"forget-write", "a WRITE that is acknowledged and not stored", 2},
    {"wrong-byte", "one wrong byte in what a REDUCE leaves", 2},
    {"outside", "a byte changed between two regions", 4},
    {"guard", "a byte changed behind on-board memory", 4},
    {"stray-access", "an access announced outside the range that a key names", 4},
    {"drop-completion", "a completion that is never seen", 0},
    {"double-completion", "a completion that is seen twice", 1},
    {"ok-for-refused", "OK where the request was refused", 0},
    {"refused-for-ok", "a refusal where the request was applied", 3},
    {"wrong-old-value", "an atomic that returns a value that was not there", 7},
    {"wrong-read", "a READ that brings a byte that was not there", 7},
    {"late-response", "a byte that lands in a buffer after its completion", 6},
    {"wrong-length", "a completion that names too many bytes", 0},
    {"same-entropy", "a device that draws the same generations and contexts after each reset", 9},
    {"same-generation", "a device that draws the same generation after each reset", 9},
    {"add-twice", "a FETCH_ADD that is done twice where only its results tell", 0},
    {"no-flush", "a reset that flushes nothing", 1},
    {"no-timers", "timers that never run", 1},
    {"deaf", "a doorbell that is not heard", 1},
    {"new-context", "an old request executed under a new context", 4},
    {"fixed-up-damage", "damage on the wire that the CRC does not show", 4},
    {"lane-bytes", "far-end state that grows beyond the configured", 8},
    {"message-byte", "a wrong byte in a message that was delivered", 2},
    {"wrong-immediate", "an immediate that was not sent", 2},
    {"receive-vanishes", "a receive buffer that is used without a completion", 1},
    {"buffer-reused", "a receive buffer that changes after its completion", 6},
    {"refused-message", "a byte of a message that was refused in the next receive buffer", 0},
    {"wrong-buffer", "a receive completion that names another buffer than the next", 1},
    {"receive-double", "a receive completion that is seen twice", 1},
    {"other-entropy", "a firmware that asks the outside world for a random number", 10},
};
const unsigned tamper_count = sizeof(tamper_kinds) / sizeof(tamper_kinds[0]);

struct tamper {
    struct world *world;
    const char *name;
    struct ndtest_random random;
    struct netdam_fw_ops ops;
    const struct netdam_fw_ops *real;
    uint64_t entropy_seed[NDTEST_NODES_MAX];
    unsigned entropy_count;
    /* For the fault that strikes later. */
    uint8_t bytes[64];
    uint64_t offset;
    uint32_t length;
    struct site *site;
    uint64_t due_ns;
};

/* The ops have no opaque of their own: one fault at a time. */
static struct tamper *current;

static bool is(const struct tamper *tamper, const char *name)
{
    return tamper != NULL && strcmp(tamper->name, name) == 0;
}

static bool strikes(struct tamper *tamper)
{
    return ndtest_random_chance(&tamper->random, RATE);
}

static void run_without_timers(void *state, uint64_t now_ns, uint64_t budget, struct netdam_fw_run_result *result)
{
    current->real->run(state, now_ns, budget, result);
    result->next_ns = NETDAM_FW_NEVER;
}

static unsigned write_without_doorbell(void *state, uint32_t offset, unsigned bytes, uint64_t value, uint64_t now_ns)
{
    if (offset >= NETDAM_PAGE_DOORBELLS) {
        return 0;
    }
    return current->real->register_write(state, offset, bytes, value, now_ns);
}

static uint64_t read_with_more_lanes(void *state, uint32_t offset, unsigned bytes)
{
    uint64_t value = current->real->register_read(state, offset, bytes);

    return offset == NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_LANES && strikes(current) ? value + 1000 : value;
}

struct tamper *tamper_new(const char *name, struct world *world)
{
    struct tamper *tamper;

    if (name == NULL) {
        return NULL;
    }
    for (unsigned i = 0;; i++) {
        if (i == tamper_count) {
            fprintf(stderr, "no such fault: %s\n", name);
            exit(2);
        }
        if (strcmp(tamper_kinds[i].name, name) == 0) {
            break;
        }
    }
    tamper = calloc(1, sizeof(*tamper));
    if (tamper == NULL) {
        abort();
    }
    tamper->world = world;
    tamper->name = name;
    tamper->random.state = world->seed ^ 0x7a317e4;
    return tamper;
}

void tamper_free(struct tamper *tamper)
{
    free(tamper);
}

const struct netdam_fw_ops *tamper_ops(struct tamper *tamper, const struct netdam_fw_ops *ops)
{
    if (tamper == NULL) {
        return ops;
    }
    current = tamper;
    tamper->real = ops;
    tamper->ops = *ops;
    if (is(tamper, "no-timers")) {
        tamper->ops.run = run_without_timers;
    } else if (is(tamper, "deaf")) {
        tamper->ops.register_write = write_without_doorbell;
    } else if (is(tamper, "lane-bytes")) {
        tamper->ops.register_read = read_with_more_lanes;
    }
    return &tamper->ops;
}

uint64_t tamper_entropy(struct tamper *tamper, uint64_t seed)
{
    static uint64_t calls;

    if (is(tamper, "other-entropy")) {
        return seed + ++calls;
    }
    if (tamper != NULL) {
        tamper->entropy_seed[tamper->entropy_count++] = seed;
    }
    return seed;
}

void tamper_restarting(struct tamper *tamper, struct site *site)
{
    if (is(tamper, "same-entropy") || is(tamper, "same-generation")) {
        site->node.entropy.state = tamper->entropy_seed[site->node.index];
    }
}

void tamper_restarted(struct tamper *tamper, struct site *site)
{
    if (is(tamper, "same-generation")) {
        site->node.entropy.state = ndtest_random_next(&tamper->random);
    }
}

bool tamper_skips_stop(const struct tamper *tamper)
{
    return is(tamper, "no-flush");
}

/* Executes what was kept, as a firmware without memory of it would. */
static void strike_late(struct tamper *tamper)
{
    if (tamper->site != NULL && tamper->world->wire.now_ns >= tamper->due_ns) {
        memcpy(tamper->site->node.memory + tamper->offset, tamper->bytes, tamper->length);
        tamper->site = NULL;
    }
}

static void keep_for_later(struct tamper *tamper, struct site *site, uint64_t offset, uint64_t delay_ns)
{
    const struct ndtest_packet *packet = &site->packet;

    if (tamper->site == NULL && packet->length != 0) {
        tamper->length = packet->length < sizeof(tamper->bytes) ? packet->length : sizeof(tamper->bytes);
        memcpy(tamper->bytes, site->node.memory + offset, tamper->length);
        tamper->offset = offset;
        tamper->site = site;
        tamper->due_ns = tamper->world->wire.now_ns + delay_ns;
    }
}

/* The same request again, under a context that nobody has, as its first number, under the node's generation. */
static void inject_under_new_context(struct tamper *tamper, const struct ndtest_frame *frame, uint64_t generation)
{
    uint8_t *copy = malloc(frame->bytes);
    const uint8_t *header = tamper->world->sites[frame->to].packet.header;
    uint8_t *to;

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, frame->data, frame->bytes);
    to = copy + (header - frame->data);
    to[8] ^= 0x55;
    memset(to + 22, 0, 2); /* distance from the floor */
    for (unsigned i = 0; i < 8; i++) {
        to[32 + 24 + i] = (uint8_t)(generation >> (56 - 8 * i));
    }
    ndtest_frame_repair(copy, frame->bytes, false);
    ndtest_wire_inject(&tamper->world->wire, frame->from, frame->to, copy, frame->bytes, 3000000);
    free(copy);
}

void tamper_before_receive(struct tamper *tamper, const struct ndtest_frame *frame)
{
    struct ndtest_packet packet;

    if (tamper != NULL) {
        strike_late(tamper);
    }
    if (is(tamper, "fixed-up-damage") && strikes(tamper) &&
        ndtest_packet_read(frame->data, frame->bytes, NETDAM_UDP_PORT, &packet) && packet.kind == NETDAM_KIND_REQUEST &&
        packet.opcode == NETDAM_OP_WRITE && packet.payload_bytes != 0) {
        frame->data[packet.payload - frame->data] ^= 1;
        ndtest_frame_repair(frame->data, frame->bytes, false);
    }
}

void tamper_after_receive(struct tamper *tamper, struct site *site, const struct ndtest_frame *frame, bool executed)
{
    const struct ndtest_packet *packet;
    struct region *region;
    uint64_t offset;

    if (tamper == NULL) {
        return;
    }
    packet = &site->packet;
    region = region_by_key(site, packet->key);
    offset = region->base + packet->address;
    if (!executed || packet->length == 0 || !strikes(tamper)) {
        return;
    }
    if (is(tamper, "write-twice") && packet->opcode == NETDAM_OP_REDUCE) {
        reference_reduce(site->node.memory + offset, packet->payload, packet->length, packet->operation, packet->type);
    } else if (is(tamper, "late-copy") && packet->opcode == NETDAM_OP_WRITE) {
        keep_for_later(tamper, site, offset, 2000000);
    } else if (is(tamper, "forget-write") && packet->opcode == NETDAM_OP_WRITE) {
        site->node.memory[offset] ^= packet->payload[0] == 0 ? 1 : packet->payload[0];
    } else if (is(tamper, "wrong-byte") && packet->opcode == NETDAM_OP_REDUCE) {
        site->node.memory[offset + packet->length - 1] ^= 1;
    } else if (is(tamper, "outside")) {
        site->node.memory[TARGET_BASE + TARGET_BYTES - 1] ^= 1; /* no region reaches so far */
    } else if (is(tamper, "guard")) {
#ifndef __SANITIZE_ADDRESS__
        site->node.memory[site->node.config.memory_bytes] ^= 1;
#else
        site->node.memory[0] ^= 1; /* the sanitizer would end the program */
#endif
    } else if (is(tamper, "stray-access")) {
        site->node.platform.memory_access(&site->node, region->base + region->length, 1, NETDAM_FW_ACCESS_READ);
    } else if (is(tamper, "new-context") && packet->opcode != NETDAM_OP_READ) {
        inject_under_new_context(tamper, frame, ndtest_node_register(&site->node, NETDAM_REG_GENERATION));
    } else if (is(tamper, "add-twice") && region == &site->regions[WITNESS_REGION]) {
        reference_store(site->node.memory + offset, 8,
                        reference_load(site->node.memory + offset, 8) + reference_load(packet->payload, 8));
    }
}

static void buffer_flip(struct site *site, const struct buffer *buffer)
{
    for (unsigned i = 0; i < buffer->count; i++) {
        if (buffer->spans[i].length != 0) {
            site->node.memory[buffer->spans[i].offset] ^= 1;
            return;
        }
    }
}

void tamper_after_message(struct tamper *tamper, struct site *site, bool executed)
{
    const struct ndtest_packet *packet = &site->packet;
    struct world *world = tamper != NULL ? tamper->world : NULL;

    if (tamper == NULL || !site->packet_valid || packet->kind != NETDAM_KIND_REQUEST || !packet_notifies(packet) ||
        !strikes(tamper)) {
        return;
    }
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        const struct ndtest_queue *queue = &site->queues[i];
        uint32_t producer = queue->consumed + (queue->open ? ndtest_queue_ready(queue) : 0);
        uint64_t at = queue->cq_base + 128 + 32 * (uint64_t)((producer - 1) & ((1u << queue->cq_log2) - 1));
        struct netdam_completion *last = (struct netdam_completion *)(void *)(site->node.memory + at);
        const struct receive *next;

        if (!queue->open || queue->rq_log2 == 0 || site->seen_received[i] == queue->receive_produced) {
            continue;
        }
        next = receive_at(world, site->received[i][site->seen_received[i] & ((1u << queue->rq_log2) - 1)]);
        if (!executed && is(tamper, "refused-message")) {
            buffer_flip(site, &next->buffer);
        }
        if (!executed || producer == site->seen_produced[i]) {
            continue;
        }
        if (is(tamper, "message-byte") && packet->opcode == NETDAM_OP_SEND && packet->length != 0) {
            buffer_flip(site, &next->buffer);
        } else if (is(tamper, "wrong-immediate") && (packet->flags & NETDAM_FLAG_IMMEDIATE) != 0) {
            last->immediate ^= 0x100;
        } else if (is(tamper, "wrong-buffer")) {
            last->user_data ^= 1;
        } else if (is(tamper, "receive-vanishes")) {
            producer--;
            memcpy(site->node.memory + queue->cq_base, &producer, sizeof(producer));
        }
    }
}

void tamper_before_poll(struct tamper *tamper, struct site *site)
{
    if (tamper == NULL) {
        return;
    }
    for (unsigned i = 0; i < SITE_QUEUES; i++) {
        struct ndtest_queue *queue = &site->queues[i];
        uint32_t size = 1u << queue->cq_log2;
        struct netdam_completion *completion;
        const struct op *op;
        uint64_t index;

        if (!queue->open || ndtest_queue_ready(queue) == 0 || !strikes(tamper)) {
            continue;
        }
        completion = (struct netdam_completion *)(void *)(site->node.memory + queue->cq_base + 128 +
                                                          32 * (uint64_t)(queue->consumed & (size - 1)));
        index = completion->user_data ^ tamper->world->key_salt;
        if ((completion->flags & NETDAM_COMPLETION_RECEIVE) != 0) {
            if (is(tamper, "buffer-reused")) {
                buffer_flip(site, &receive_at(tamper->world, (uint32_t)index & 0x7fffffff)->buffer);
            } else if (is(tamper, "receive-double")) {
                uint32_t place = queue->consumed - 1;

                queue->consumed -= ndtest_queue_ready(queue) < size;
                memmove(site->node.memory + queue->cq_base + 128 + 32 * (uint64_t)(place & (size - 1)), completion,
                        sizeof(*completion));
            }
            continue;
        }
        if (index >= tamper->world->op_count) {
            continue;
        }
        op = &tamper->world->ops[index];
        if (is(tamper, "drop-completion")) {
            struct netdam_completion dropped;

            ndtest_queue_poll(queue, &dropped);
        } else if (is(tamper, "double-completion")) {
            queue->consumed -= ndtest_queue_ready(queue) < size;
            memcpy(site->node.memory + queue->cq_base + 128 + 32 * (uint64_t)(queue->consumed & (size - 1)), completion,
                   sizeof(*completion));
        } else if (is(tamper, "ok-for-refused") && status_class(completion->status) == NETDAM_STATUS_CLASS_REFUSED) {
            completion->status = NETDAM_STATUS_OK;
            completion->length = op->d.length;
        } else if (is(tamper, "refused-for-ok") && completion->status == NETDAM_STATUS_OK) {
            completion->status = NETDAM_STATUS_BAD_KEY;
            completion->length = 0;
        } else if (is(tamper, "wrong-old-value") && op_atomic(op->d.opcode)) {
            completion->result ^= 1;
        } else if (is(tamper, "wrong-read") && op->d.opcode == NETDAM_OP_READ && op->d.length != 0 &&
                   completion->status == NETDAM_STATUS_OK) {
            buffer_flip(site, &op->buffer);
        } else if (is(tamper, "late-response") && site->outstanding_count < SITE_SLOTS) {
            for (unsigned slot = 0; slot < SITE_SLOTS; slot++) {
                if (!site->slot_used[slot]) {
                    site->node.memory[site->slot_base + (uint64_t)slot * tamper->world->slot_bytes] ^= 1;
                    break;
                }
            }
        } else if (is(tamper, "wrong-length")) {
            completion->length += 8;
        }
    }
}
