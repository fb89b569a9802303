/* SPDX-License-Identifier: BSD-3-Clause */
/* A device for the driver's unit tests: answers administration commands, and completes descriptors as told. */
#ifndef NETDAM_TEST_FAKE_H
#define NETDAM_TEST_FAKE_H

#include "backend.h"

#define FAKE_MEMORY_BYTES (UINT64_C(1) << 20)
#define FAKE_QUEUES       4u
#define FAKE_VECTORS      2u
#define FAKE_LOG_MAX      4096u

struct fake_queue {
    bool used;
    struct netdam_ring *sq;
    struct netdam_ring *cq;
    struct netdam_ring *rq; /* NULL: none */
    uint32_t sq_entries;
    uint32_t cq_entries;
    uint32_t rq_entries;
    uint32_t sq_consumer;
    uint32_t rq_consumer;
    uint32_t cq_producer;
    uint32_t arm_seen;
    unsigned vector;
    unsigned doorbells;
};

/* How one descriptor completes. */
struct fake_result {
    uint8_t status;
    uint64_t result;
};

struct fake {
    struct netdam_device *device;
    uint8_t *memory;
    uint32_t status;       /* register STATUS */
    uint32_t id;           /* register ID */
    uint32_t spec_version; /* register SPEC_VERSION */
    uint64_t claimed_bytes;
    uint64_t arguments[NETDAM_ADMIN_ARGS];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint32_t admin_status;
    uint32_t admin_forced; /* not 0: every command is answered so, and does nothing */
    unsigned commands[16]; /* how often each was given */
    uint64_t last_arguments[16][NETDAM_ADMIN_ARGS];
    unsigned regions;
    unsigned peers;
    unsigned resets;
    unsigned closes;
    bool want_wakeup; /* sets NEED_WAKEUP whenever it has nothing to do */
    bool run_at_doorbell;
    int fds[FAKE_VECTORS]; /* eventfds, or -1: no interrupts */
    struct fake_queue queues[FAKE_QUEUES];

    const struct fake_result *script; /* for the next descriptors; then everything is OK */
    unsigned script_count;

    struct netdam_descriptor taken[FAKE_LOG_MAX]; /* what was taken, from index 0 on */
    unsigned taken_count;
    char log[256]; /* last line */
    unsigned log_lines;
};

/* A device over a fresh fake. `interrupts`: it has FAKE_VECTORS vectors. */
struct fake *fake_open(bool interrupts);
void fake_close(struct fake *fake);

/* A fresh fake, and a backend over it, for tests of opening itself. fake_close() releases it, fake->device being NULL.
 */
struct fake *fake_new(bool interrupts, struct ndlib_backend *backend);

/* Takes and completes up to `count` descriptors of a queue pair; returns how many. */
unsigned fake_run(struct fake *fake, unsigned queue, unsigned count);

#define FAKE_RECEIVE_KEY UINT64_C(0x7265636569766500) /* plus the queue pair's index */

/*
 * Takes the next receive buffer as a message would, without storing one, and completes it. False if there is none.
 * `taken` gets the descriptor and may be NULL.
 */
bool fake_message(struct fake *fake, unsigned queue, uint8_t opcode, uint32_t length, const uint32_t *immediate,
                  struct netdam_descriptor *taken);

/* Stores a completion nobody asked for. */
void fake_complete(struct fake *fake, unsigned queue, const struct netdam_completion *completion);

/* A log callback that keeps the last line; opaque is the fake. */
void fake_log(void *opaque, enum netdam_log_level level, const char *line);

#endif
