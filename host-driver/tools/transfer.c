/* SPDX-License-Identifier: BSD-3-Clause */
/* A pipeline of requests over chunks of a staging buffer, completed in any order, accounted for in order. */
#include <string.h>

#include "common.h"
#include "transfer.h"

/* The device completes every request by itself, with TIMEOUT at the latest; after this long it is broken. */
#define SILENCE_NS UINT64_C(120000000000)

struct chunk {
    size_t bytes;
    bool completed;
    uint8_t status;
};

struct pipeline {
    struct transfer *transfer;
    const struct transfer_ends *ends;
    struct chunk chunks[TRANSFER_DEPTH_MAX];
    uint64_t head; /* oldest chunk that is not accounted for */
    uint64_t tail; /* next chunk to post */
    uint64_t tail_offset;
    uint64_t head_offset;
    bool ended;
};

static uint8_t *chunk_pointer(const struct pipeline *pipeline, unsigned slot)
{
    return (uint8_t *)netdam_region_pointer(pipeline->transfer->staging) + slot * pipeline->transfer->chunk_bytes;
}

/* Posts the next chunk, if there is one. */
static int post_next(struct pipeline *pipeline)
{
    const struct transfer *transfer = pipeline->transfer;
    unsigned slot = (unsigned)(pipeline->tail % transfer->depth);
    struct chunk *chunk = &pipeline->chunks[slot];
    struct netdam_request request;
    int rc;

    *chunk = (struct chunk){.bytes = 0};
    rc = pipeline->ends->next(pipeline->ends->opaque, slot, chunk_pointer(pipeline, slot), transfer->chunk_bytes,
                              &chunk->bytes);
    if (rc != EXIT_OK) {
        return rc;
    }
    if (chunk->bytes == 0) {
        pipeline->ended = true;
        return EXIT_OK;
    }
    request = (struct netdam_request){
        .opcode = (uint8_t)transfer->opcode,
        .operation = (uint8_t)transfer->operation,
        .type = (uint8_t)transfer->type,
        .user_data = slot,
        .remote = transfer->remote,
        .local = {transfer->staging, slot * transfer->chunk_bytes},
        .length = (uint32_t)chunk->bytes,
    };
    request.remote.address += pipeline->tail_offset;
    rc = netdam_post(transfer->queue, &request, 1);
    if (rc != 1) {
        return failed("%s at byte %llu: %s", netdam_op_name(transfer->opcode),
                      (unsigned long long)pipeline->tail_offset, result_text(rc));
    }
    pipeline->tail++;
    pipeline->tail_offset += chunk->bytes;
    return EXIT_OK;
}

/* Waits for at least one completion. */
static int take_completions(struct pipeline *pipeline)
{
    struct netdam_completion completions[16];
    int count = netdam_wait(pipeline->transfer->queue, completions, 16, SILENCE_NS);

    if (count < 0) {
        return failed("waiting for %s: %s", netdam_op_name(pipeline->transfer->opcode), result_text(count));
    }
    for (int i = 0; i < count; i++) {
        struct chunk *chunk = &pipeline->chunks[completions[i].user_data % TRANSFER_DEPTH_MAX];

        chunk->completed = true;
        chunk->status = completions[i].status;
    }
    return EXIT_OK;
}

/* Accounts for completed chunks from the oldest on. */
static int account(struct pipeline *pipeline)
{
    struct transfer *transfer = pipeline->transfer;

    while (pipeline->head < pipeline->tail) {
        unsigned slot = (unsigned)(pipeline->head % transfer->depth);
        const struct chunk *chunk = &pipeline->chunks[slot];
        int rc = EXIT_OK;

        if (!chunk->completed) {
            break;
        }
        if (chunk->status != NETDAM_STATUS_OK) {
            return failed("%s at byte %llu: %s", netdam_op_name(transfer->opcode),
                          (unsigned long long)pipeline->head_offset, result_text(chunk->status));
        }
        if (pipeline->ends->done) {
            rc = pipeline->ends->done(pipeline->ends->opaque, slot, chunk_pointer(pipeline, slot), chunk->bytes,
                                      pipeline->head_offset);
        }
        if (rc != EXIT_OK) {
            return rc;
        }
        pipeline->head++;
        pipeline->head_offset += chunk->bytes;
        transfer->bytes_done = pipeline->head_offset;
    }
    return EXIT_OK;
}

int transfer_run(struct transfer *transfer, const struct transfer_ends *ends)
{
    struct pipeline pipeline = {.transfer = transfer, .ends = ends};
    int rc = EXIT_OK;

    while (rc == EXIT_OK && !(pipeline.ended && pipeline.head == pipeline.tail)) {
        while (rc == EXIT_OK && !pipeline.ended && pipeline.tail - pipeline.head < transfer->depth) {
            rc = post_next(&pipeline);
        }
        if (rc == EXIT_OK && pipeline.head < pipeline.tail) {
            rc = take_completions(&pipeline);
        }
        if (rc == EXIT_OK) {
            rc = account(&pipeline);
        }
    }
    while (rc != EXIT_OK && netdam_queue_outstanding(transfer->queue) > 0) {
        if (take_completions(&pipeline) != EXIT_OK) {
            break;
        }
    }
    return rc;
}
