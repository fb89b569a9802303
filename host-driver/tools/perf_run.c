/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurement itself: keep a number of requests under way, and note how long each took. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <time.h>

#include "perf.h"

#define BATCH 64u

/* The device completes every request by itself, with TIMEOUT at the latest; after this long it is broken. */
#define SILENCE_NS UINT64_C(120000000000)
/* How long a target may go without posting a receive buffer. */
#define NOT_READY_NS UINT64_C(5000000000)

/* A run over one size. With one request under way it measures latency, with many throughput. */
struct run {
    struct perf *perf;
    uint64_t bytes;
    uint64_t places;
    uint64_t stride;
    uint64_t iterations;  /* how many to post, */
    uint64_t deadline_ns; /* or until when; UINT64_MAX: by iterations */
    unsigned depth;
    struct samples *samples; /* NULL: warm-up */

    uint64_t posted;
    uint64_t done;
    uint64_t last_ns;          /* of the last completion */
    uint64_t last_progress_ns; /* of the last one with OK */
    uint64_t not_ready;
    uint64_t cas_expected;
    /* A request under way has a slot. */
    uint32_t free_slots[PERF_DEPTH_MAX];
    unsigned free_count;
    uint64_t stamps[PERF_DEPTH_MAX];
    bool again[PERF_DEPTH_MAX]; /* the target was not ready: sent before, keeps its stamp */
};

uint64_t perf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void build(const struct run *run, uint64_t number, uint32_t slot, struct netdam_request *request)
{
    const struct perf *perf = run->perf;
    uint64_t place = slot % run->places * run->stride;

    *request = (struct netdam_request){
        .opcode = (uint8_t)perf->opcode,
        .operation = (uint8_t)perf->operation,
        .type = (uint8_t)perf->type,
        .user_data = slot,
        .remote = {perf->peer, perf->key, perf->address + place},
        .local = {perf->region, place},
        .length = (uint32_t)run->bytes,
    };
    switch (perf->opcode) {
    case NETDAM_OP_SEND:
        request->remote.key = perf->receive_key;
        request->remote.address = 0;
        break;
    case NETDAM_OP_FETCH_ADD:
    case NETDAM_OP_SWAP:
        request->local = (struct netdam_local){.region = NULL};
        request->operand[0] = 1;
        break;
    case NETDAM_OP_CAS:
        /* What was there last, so that it stores unless somebody else does, too. */
        request->local = (struct netdam_local){.region = NULL};
        request->operand[0] = run->cas_expected;
        request->operand[1] = run->cas_expected + 1;
        break;
    default:
        break;
    }
    if (perf->both_ways && number % 2 == 1) {
        request->opcode = perf->opcode == NETDAM_OP_READ ? NETDAM_OP_WRITE : NETDAM_OP_READ;
        request->operation = NETDAM_ALU_NONE;
        request->type = NETDAM_TYPE_NONE;
    }
}

/* Posts as many as there are slots and wanted requests, a batch at most. */
static int post(struct run *run, uint64_t now)
{
    struct netdam_request requests[BATCH];
    uint64_t left = now >= run->deadline_ns ? 0 : run->iterations - run->posted;
    unsigned count = run->free_count < BATCH ? run->free_count : BATCH;
    unsigned posted;
    int rc;

    if (count > left) {
        count = (unsigned)left;
    }
    if (count == 0) {
        return EXIT_OK;
    }
    for (unsigned i = 0; i < count; i++) {
        build(run, run->posted + i, run->free_slots[run->free_count - 1 - i], &requests[i]);
    }
    now = perf_now_ns();
    rc = netdam_post(run->perf->queue, requests, count);
    if (rc < 0 && (rc != -EAGAIN || run->free_count == run->depth)) {
        return failed("post of %s: %s", netdam_op_name(run->perf->opcode), result_text(rc));
    }
    posted = rc < 0 ? 0 : (unsigned)rc;
    for (unsigned i = 0; i < posted; i++) {
        uint32_t slot = run->free_slots[--run->free_count];

        if (!run->again[slot]) {
            run->stamps[slot] = now;
        }
    }
    run->posted += posted;
    return EXIT_OK;
}

/* Waits for completions: as the library does, or on the interrupt at once. As netdam_wait(). */
static int take(const struct run *run, struct netdam_completion *completions, unsigned count)
{
    struct netdam_queue *queue = run->perf->queue;
    uint64_t deadline_ns;
    int rc;

    if (!run->perf->events) {
        return netdam_wait(queue, completions, count, SILENCE_NS);
    }
    deadline_ns = perf_now_ns() + SILENCE_NS;
    while ((rc = netdam_poll(queue, completions, count)) == 0) {
        struct pollfd pollfd = {.fd = netdam_queue_fd(queue), .events = POLLIN};

        rc = netdam_queue_arm(queue);
        if (rc == 0) {
            poll(&pollfd, 1, 1000);
        } else if (rc != -EAGAIN) {
            return rc;
        }
        if (perf_now_ns() > deadline_ns) {
            return -ETIMEDOUT;
        }
    }
    return rc;
}

static int complete(struct run *run, const struct netdam_completion *completion, uint64_t now)
{
    uint32_t slot = (uint32_t)(completion->user_data % PERF_DEPTH_MAX);

    run->free_slots[run->free_count++] = slot;
    run->last_ns = now;
    if (completion->status == NETDAM_STATUS_NOT_READY && now - run->last_progress_ns < NOT_READY_NS) {
        run->again[slot] = true;
        run->posted--;
        run->not_ready++;
        return EXIT_OK;
    }
    if (completion->status != NETDAM_STATUS_OK) {
        return failed("%s of %" PRIu64 " bytes to %s: %s", netdam_op_name(completion->opcode), run->bytes,
                      run->perf->peer_name, result_text(completion->status));
    }
    run->done++;
    run->again[slot] = false;
    run->last_progress_ns = now;
    if (run->perf->opcode == NETDAM_OP_CAS) {
        run->cas_expected = completion->result + (completion->result == run->cas_expected ? 1 : 0);
    }
    if (run->samples) {
        samples_add(run->samples, now - run->stamps[slot]);
    }
    return EXIT_OK;
}

/* Ends what is under way, after a failure that is told already. */
static void drain(const struct run *run)
{
    struct netdam_completion completions[BATCH];

    while (netdam_queue_outstanding(run->perf->queue) > 0 && take(run, completions, BATCH) > 0) {
    }
}

static int pump(struct run *run)
{
    struct netdam_completion completions[BATCH];
    uint64_t now = perf_now_ns();
    int rc = EXIT_OK;

    run->last_progress_ns = now;
    for (unsigned i = 0; i < run->depth; i++) {
        run->free_slots[i] = run->depth - 1 - i;
        run->again[i] = false;
    }
    run->free_count = run->depth;
    while (rc == EXIT_OK) {
        int count;

        rc = post(run, now);
        if (rc != EXIT_OK || run->free_count == run->depth) {
            break;
        }
        count = take(run, completions, BATCH);
        now = perf_now_ns();
        if (count < 0) {
            /* Nothing more will come: netdam_close() flushes. */
            return failed("waiting for %s: %s", netdam_op_name(run->perf->opcode), result_text(count));
        }
        for (int i = 0; i < count && rc == EXIT_OK; i++) {
            rc = complete(run, &completions[i], now);
        }
    }
    if (rc != EXIT_OK) {
        drain(run);
    }
    return rc;
}

static uint64_t retransmissions(const struct perf *perf)
{
    uint64_t value = 0;

    netdam_counter_read(perf->device, NETDAM_COUNTER_RETRANSMISSIONS, &value);
    return value;
}

int perf_run(struct perf *perf, uint64_t bytes, struct perf_result *result)
{
    static struct run run;
    uint64_t retransmitted;
    uint64_t start_ns;
    int rc;

    run = (struct run){
        .perf = perf,
        .bytes = bytes,
        .places = perf_places(perf, bytes),
        .stride = perf_stride(bytes),
        .iterations = perf->warm_up,
        .deadline_ns = UINT64_MAX,
        .depth = (unsigned)perf->depth,
    };
    rc = pump(&run);
    if (rc != EXIT_OK) {
        return rc;
    }
    samples_clear(&result->latency);
    run.samples = &result->latency;
    run.posted = 0;
    run.done = 0;
    run.not_ready = 0;
    run.iterations = perf->iterations;
    retransmitted = retransmissions(perf);
    start_ns = perf_now_ns();
    if (perf->duration_ns != 0) {
        run.iterations = UINT64_MAX;
        run.deadline_ns = start_ns + perf->duration_ns;
    } else if (perf->all && !perf->iterations_given) {
        /* The larger sizes of a whole series would take minutes. */
        uint64_t fewer = (UINT64_C(256) << 20) / bytes;

        run.iterations = fewer < run.iterations ? fewer : run.iterations;
    }
    rc = pump(&run);
    result->bytes = bytes;
    result->iterations = run.done;
    result->duration_ns = run.last_ns - start_ns;
    result->not_ready = run.not_ready;
    result->retransmissions = retransmissions(perf) - retransmitted;
    return rc;
}
