/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake device: registers, administration commands and the device's side of the rings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake.h"

static void interrupt_if_armed(struct fake *fake, struct fake_queue *queue)
{
    uint32_t arm = queue->cq->arm;
    uint64_t one = 1;

    if (arm != queue->arm_seen && queue->vector < FAKE_VECTORS && fake->fds[queue->vector] >= 0) {
        queue->arm_seen = arm;
        if (write(fake->fds[queue->vector], &one, sizeof(one)) != sizeof(one)) {
            abort();
        }
    }
}

void fake_complete(struct fake *fake, unsigned index, const struct netdam_completion *completion)
{
    struct fake_queue *queue = &fake->queues[index];
    struct netdam_completion *entries = (void *)(queue->cq + 1);

    entries[queue->cq_producer & (queue->cq_entries - 1)] = *completion;
    queue->cq_producer++;
    __atomic_store_n(&queue->cq->producer, queue->cq_producer, __ATOMIC_RELEASE);
    interrupt_if_armed(fake, queue);
}

static void complete(struct fake *fake, unsigned index, const struct netdam_descriptor *descriptor, uint8_t status,
                     uint64_t result)
{
    struct netdam_completion completion = {
        .user_data = descriptor->user_data,
        .result = result,
        .length = status == NETDAM_STATUS_OK ? descriptor->length : 0,
        .status = status,
        .opcode = descriptor->opcode,
        .queue_pair = index,
    };

    fake_complete(fake, index, &completion);
}

unsigned fake_run(struct fake *fake, unsigned index, unsigned count)
{
    struct fake_queue *queue = &fake->queues[index];
    const struct netdam_descriptor *entries = (const void *)(queue->sq + 1);
    unsigned done = 0;

    queue->sq->consumer_flags = 0;
    while (done < count) {
        uint32_t producer = __atomic_load_n(&queue->sq->producer, __ATOMIC_ACQUIRE);
        uint32_t cq_consumer = __atomic_load_n(&queue->cq->consumer, __ATOMIC_ACQUIRE);
        struct netdam_descriptor descriptor;
        struct fake_result result = {NETDAM_STATUS_OK, 0};

        if (producer == queue->sq_consumer || queue->cq_producer - cq_consumer >= queue->cq_entries) {
            break;
        }
        descriptor = entries[queue->sq_consumer & (queue->sq_entries - 1)];
        queue->sq_consumer++;
        __atomic_store_n(&queue->sq->consumer, queue->sq_consumer, __ATOMIC_RELEASE);
        if (fake->taken_count < FAKE_LOG_MAX) {
            fake->taken[fake->taken_count] = descriptor;
        }
        fake->taken_count++;
        if (fake->script_count > 0) {
            result = *fake->script++;
            fake->script_count--;
        }
        complete(fake, index, &descriptor, result.status, result.result);
        done++;
    }
    queue->sq->consumer_flags = fake->want_wakeup ? NETDAM_RING_NEED_WAKEUP : 0;
    return done;
}

bool fake_message(struct fake *fake, unsigned index, uint8_t opcode, uint32_t length, const uint32_t *immediate,
                  struct netdam_descriptor *taken)
{
    struct fake_queue *queue = &fake->queues[index];
    const struct netdam_descriptor *entries = (const void *)(queue->rq + 1);
    struct netdam_completion completion = {
        .length = length, .opcode = opcode, .flags = NETDAM_COMPLETION_RECEIVE, .queue_pair = index};
    const struct netdam_descriptor *descriptor = &entries[queue->rq_consumer & (queue->rq_entries - 1)];

    if (__atomic_load_n(&queue->rq->producer, __ATOMIC_ACQUIRE) == queue->rq_consumer) {
        return false;
    }
    if (taken) {
        *taken = *descriptor;
    }
    completion.user_data = descriptor->user_data;
    if (immediate) {
        completion.flags |= NETDAM_COMPLETION_IMMEDIATE;
        completion.immediate = *immediate;
        completion.result = *immediate;
    }
    queue->rq_consumer++;
    __atomic_store_n(&queue->rq->consumer, queue->rq_consumer, __ATOMIC_RELEASE);
    fake_complete(fake, index, &completion);
    return true;
}

/* Completes as FLUSHED what is in the submission ring. */
static void flush(struct fake *fake, unsigned index)
{
    struct fake_queue *queue = &fake->queues[index];
    const struct netdam_descriptor *entries = (const void *)(queue->sq + 1);

    while (queue->used && queue->sq_consumer != queue->sq->producer) {
        complete(fake, index, &entries[queue->sq_consumer & (queue->sq_entries - 1)], NETDAM_STATUS_FLUSHED, 0);
        queue->sq_consumer++;
    }
}

static uint32_t create_queue(struct fake *fake)
{
    const uint64_t *arguments = fake->arguments;
    unsigned index = 0;
    struct fake_queue *queue;

    while (index < FAKE_QUEUES && fake->queues[index].used) {
        index++;
    }
    if (index == FAKE_QUEUES) {
        return NETDAM_ADMIN_STATUS_NO_SPACE;
    }
    if (arguments[0] % NETDAM_RING_ALIGN != 0 || arguments[2] % NETDAM_RING_ALIGN != 0 ||
        arguments[0] + netdam_ring_bytes((unsigned)arguments[1], 64) > FAKE_MEMORY_BYTES ||
        arguments[2] + netdam_ring_bytes((unsigned)arguments[3], 32) > FAKE_MEMORY_BYTES ||
        (arguments[5] != 0 && (arguments[4] % NETDAM_RING_ALIGN != 0 ||
                               arguments[4] + netdam_ring_bytes((unsigned)arguments[5], 64) > FAKE_MEMORY_BYTES))) {
        return NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    }
    queue = &fake->queues[index];
    *queue = (struct fake_queue){
        .used = true,
        .sq = (void *)(fake->memory + arguments[0]),
        .cq = (void *)(fake->memory + arguments[2]),
        .sq_entries = UINT32_C(1) << arguments[1],
        .cq_entries = UINT32_C(1) << arguments[3],
        .vector = (unsigned)(arguments[6] >> 16),
        .sq_consumer = (uint32_t)arguments[7],
        .cq_producer = (uint32_t)arguments[7],
    };
    *queue->sq = (struct netdam_ring){.producer = queue->sq_consumer, .consumer = queue->sq_consumer};
    *queue->cq = (struct netdam_ring){.producer = queue->cq_producer, .consumer = queue->cq_producer};
    queue->sq->consumer_flags = fake->want_wakeup ? NETDAM_RING_NEED_WAKEUP : 0;
    if (arguments[5] != 0) {
        queue->rq = (void *)(fake->memory + arguments[4]);
        queue->rq_entries = UINT32_C(1) << arguments[5];
        queue->rq_consumer = (uint32_t)arguments[7];
        *queue->rq = (struct netdam_ring){.producer = queue->rq_consumer, .consumer = queue->rq_consumer};
        queue->rq->consumer_flags = fake->want_wakeup ? NETDAM_RING_NEED_WAKEUP : 0;
        fake->results[1] = FAKE_RECEIVE_KEY + index;
    }
    fake->results[0] = index;
    return NETDAM_ADMIN_STATUS_OK;
}

static uint32_t execute(struct fake *fake, uint32_t command)
{
    memset(fake->results, 0, sizeof(fake->results));
    if (command >= 16) {
        return NETDAM_ADMIN_STATUS_BAD_COMMAND;
    }
    fake->commands[command]++;
    memcpy(fake->last_arguments[command], fake->arguments, sizeof(fake->arguments));
    if (fake->admin_forced != 0) {
        return fake->admin_forced;
    }
    switch (command) {
    case NETDAM_ADMIN_REGION_CREATE:
        fake->results[0] = fake->regions++;
        fake->results[1] = fake->arguments[3] != 0 ? fake->arguments[3] : 0x1122334455667788;
        return NETDAM_ADMIN_STATUS_OK;
    case NETDAM_ADMIN_QUEUE_CREATE:
        return create_queue(fake);
    case NETDAM_ADMIN_QUEUE_DESTROY:
        if (fake->arguments[0] >= FAKE_QUEUES || !fake->queues[fake->arguments[0]].used) {
            return NETDAM_ADMIN_STATUS_NO_SUCH;
        }
        fake->queues[fake->arguments[0]].used = false;
        return NETDAM_ADMIN_STATUS_OK;
    case NETDAM_ADMIN_PEER_OPEN:
        fake->results[0] = 100 + fake->peers++;
        return NETDAM_ADMIN_STATUS_OK;
    case NETDAM_ADMIN_OPCODE_QUERY:
        fake->results[0] = fake->arguments[0] == NETDAM_OP_WRITE;
        fake->results[1] = NETDAM_ALG_IDEMPOTENT;
        return NETDAM_ADMIN_STATUS_OK;
    default:
        return NETDAM_ADMIN_STATUS_OK;
    }
}

static uint64_t fake_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    const struct fake *fake = opaque;

    (void)bytes;
    if (offset >= NETDAM_REG_ADMIN_RESULT0 && offset < NETDAM_REG_ADMIN_RESULT0 + 8 * NETDAM_ADMIN_RESULTS) {
        return fake->results[(offset - NETDAM_REG_ADMIN_RESULT0) / 8];
    }
    if (offset >= NETDAM_PAGE_COUNTERS && offset < NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_COUNT) {
        return 1000 + (offset - NETDAM_PAGE_COUNTERS) / 8;
    }
    switch (offset) {
    case NETDAM_REG_ID:
        return fake->id;
    case NETDAM_REG_STATUS:
        return fake->status;
    case NETDAM_REG_SPEC_VERSION:
        return fake->spec_version;
    case NETDAM_REG_MEMORY_BYTES:
        return fake->claimed_bytes;
    case NETDAM_REG_VECTORS:
        return fake->fds[0] >= 0 ? FAKE_VECTORS : 0;
    case NETDAM_REG_DOORBELL_STRIDE:
        return NETDAM_PAGE_BYTES;
    case NETDAM_REG_LENGTH_MAX:
        return 4096;
    case NETDAM_REG_MAC:
        return 0x020304050607;
    case NETDAM_REG_IPV4:
        return 0x0a000001;
    case NETDAM_REG_COUNTERS:
        return NETDAM_COUNTER_COUNT;
    case NETDAM_REG_ADMIN_STATUS:
        return fake->admin_status;
    default:
        return 0;
    }
}

static void fake_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct fake *fake = opaque;

    (void)bytes;
    if (offset >= NETDAM_PAGE_DOORBELLS) {
        unsigned queue = (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES;

        fake->queues[queue].doorbells++;
        if (fake->run_at_doorbell) {
            fake_run(fake, queue, UINT32_MAX);
        }
    } else if (offset >= NETDAM_REG_ADMIN_ARG0 && offset < NETDAM_REG_ADMIN_ARG0 + 8 * NETDAM_ADMIN_ARGS) {
        fake->arguments[(offset - NETDAM_REG_ADMIN_ARG0) / 8] = value;
    } else if (offset == NETDAM_REG_ADMIN_COMMAND) {
        fake->admin_status = execute(fake, (uint32_t)value);
    } else if (offset == NETDAM_REG_CONTROL && value == NETDAM_CONTROL_RESET) {
        fake->resets++;
        for (unsigned i = 0; i < FAKE_QUEUES; i++) {
            flush(fake, i);
            fake->queues[i].used = false;
        }
    }
}

static int fake_interrupt_fd(void *opaque, unsigned vector)
{
    const struct fake *fake = opaque;

    return vector < FAKE_VECTORS && fake->fds[vector] >= 0 ? fake->fds[vector] : -ENOTSUP;
}

static void fake_backend_close(void *opaque)
{
    struct fake *fake = opaque;

    fake->closes++;
}

void fake_log(void *opaque, enum netdam_log_level level, const char *line)
{
    struct fake *fake = opaque;

    (void)level;
    snprintf(fake->log, sizeof(fake->log), "%s", line);
    fake->log_lines++;
}

struct fake *fake_new(bool interrupts, struct ndlib_backend *backend)
{
    static const struct ndlib_backend_ops ops = {
        .register_read = fake_register_read,
        .register_write = fake_register_write,
        .interrupt_fd = fake_interrupt_fd,
        .close = fake_backend_close,
    };
    struct fake *fake = calloc(1, sizeof(*fake));

    if (!fake) {
        abort();
    }
    fake->memory = aligned_alloc(4096, FAKE_MEMORY_BYTES);
    if (!fake->memory) {
        abort();
    }
    memset(fake->memory, 0xa5, FAKE_MEMORY_BYTES);
    fake->id = NETDAM_ID;
    fake->status = NETDAM_DEVICE_READY;
    fake->spec_version = NETDAM_SPEC_VERSION;
    fake->claimed_bytes = FAKE_MEMORY_BYTES;
    for (unsigned i = 0; i < FAKE_VECTORS; i++) {
        fake->fds[i] = interrupts ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
    }
    *backend = (struct ndlib_backend){
        .ops = &ops,
        .opaque = fake,
        .memory = fake->memory,
        .memory_bytes = FAKE_MEMORY_BYTES,
        .name = "fake",
    };
    return fake;
}

struct fake *fake_open(bool interrupts)
{
    struct ndlib_backend backend;
    struct fake *fake = fake_new(interrupts, &backend);
    const struct netdam_open_config config = {.opaque = fake, .log = fake_log};

    if (ndlib_device_open(&backend, &config, &fake->device) != 0) {
        abort();
    }
    return fake;
}

void fake_close(struct fake *fake)
{
    netdam_close(fake->device);
    for (unsigned i = 0; i < FAKE_VECTORS; i++) {
        if (fake->fds[i] >= 0) {
            close(fake->fds[i]);
        }
    }
    free(fake->memory);
    free(fake);
}
