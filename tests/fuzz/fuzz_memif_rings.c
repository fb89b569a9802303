/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the rings of a memif link, in memory that the peer writes at will between any two steps. Nothing outside
 * the regions is touched, and what the link says of itself stays consistent.
 */
#include "memif_link.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#define SLOTS       8u
#define RING_BYTES  (sizeof(struct memif_ring) + SLOTS * sizeof(struct memif_descriptor))
#define FRAME_BYTES 1500u
#define FIRST_BYTES (2 * RING_BYTES + 2 * SLOTS * BUFFER_BYTES)
#define OTHER_BYTES 3000u

#define BUFFER_BYTES 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum action {
    INDEX,    /* which, by how much */
    DESCRIBE, /* which slot, flags, region, length 2, offset 2 */
    FAR,      /* the same with 32 bits */
    POKE,     /* place 2, value */
    TRANSMIT, /* length 2 */
    FLUSH,
    RECEIVE, /* how many */
    SLEEP,
    DROP,
    ACTION_COUNT,
};

struct input {
    const uint8_t *data;
    size_t left;
};

static uint64_t take(struct input *input, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && input->left != 0; i++, input->left--) {
        value |= (uint64_t)*input->data++ << 8 * i;
    }
    return value;
}

struct bench {
    struct memif_link link;
    struct ndsim_memif_statistics statistics;
    struct memif_ring *rings[2];
    unsigned sum;
    uint64_t frames;
};

static void look(void *opaque, const uint8_t *frame, size_t bytes)
{
    struct bench *bench = opaque;

    CHECK(bytes != 0 && bytes <= FRAME_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        bench->sum += frame[i];
    }
    bench->frames++;
}

static void transmit(struct bench *bench, size_t bytes)
{
    uint8_t *frame = NULL;

    bytes = 1 + bytes % FRAME_BYTES;
    if (ndsim_memif_link_begin(&bench->link, bytes, &frame) == MEMIF_ROOM_OK) {
        memset(frame, 0x5a, bytes);
        ndsim_memif_link_end(&bench->link, bytes);
    }
}

static void step(struct bench *bench, struct input *input)
{
    struct memif_ring *ring = bench->rings[input->left & 1];
    uint64_t low, high;
    bool kick;

    switch (take(input, 1) % ACTION_COUNT) {
    case INDEX:
        low = take(input, 1);
        atomic_fetch_add((low & 1) != 0 ? &ring->head : &ring->tail, (uint16_t)((low & 2) != 0 ? low : low >> 4));
        break;
    case DESCRIBE:
        high = take(input, 1);
        low = take(input, 1) & 1;
        low |= (take(input, 1) & 3) << 16;
        low |= take(input, 2) << 32;
        atomic_store(&ring->descriptor[high % SLOTS].low, low);
        atomic_store(&ring->descriptor[high % SLOTS].high, take(input, 2));
        break;
    case FAR:
        high = take(input, 1);
        atomic_store(&ring->descriptor[high % SLOTS].low, take(input, 8));
        atomic_store(&ring->descriptor[high % SLOTS].high, take(input, 8));
        break;
    case POKE:
        low = take(input, 2) % FIRST_BYTES;
        bench->link.regions[0].base[low] = (uint8_t)take(input, 1);
        break;
    case TRANSMIT:
        transmit(bench, (size_t)take(input, 2));
        break;
    case FLUSH:
        (void)ndsim_memif_link_flush(&bench->link);
        break;
    case RECEIVE:
        (void)ndsim_memif_link_receive(&bench->link, (unsigned)take(input, 1), look, bench, &kick);
        break;
    case SLEEP:
        ndsim_memif_link_mask(&bench->link, false);
        (void)ndsim_memif_link_waits(&bench->link);
        if (bench->link.broken == NULL) {
            (void)ndsim_memif_link_has_room(&bench->link);
            ndsim_memif_link_mask(&bench->link, true);
        }
        break;
    default:
        ndsim_memif_link_drop(&bench->link);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint8_t start = (uint8_t)take(&input, 1);
    struct bench bench = {0};
    struct memif_link *link = &bench.link;
    /* Each in an allocation of its own, so that a byte beyond is seen. */
    uint8_t *memory[4] = {aligned_alloc(64, (FIRST_BYTES + 63) / 64 * 64), malloc(OTHER_BYTES), malloc(FRAME_BYTES),
                          malloc(FRAME_BYTES)};

    CHECK(memory[0] != NULL && memory[1] != NULL && memory[2] != NULL && memory[3] != NULL);
    memset(memory[0], 0, FIRST_BYTES);
    memset(memory[1], 0, OTHER_BYTES);
    *link = (struct memif_link){.client = (start & 1) != 0,
                                .shared_frames = (start & 2) != 0,
                                .frame_bytes = FRAME_BYTES,
                                .buffer_bytes = BUFFER_BYTES,
                                .stride = BUFFER_BYTES,
                                .buffers = 2 * RING_BYTES,
                                .regions = {{.base = memory[0], .bytes = FIRST_BYTES, .fd = -1},
                                            {.base = memory[1], .bytes = OTHER_BYTES, .fd = -1},
                                            {.bytes = OTHER_BYTES, .fd = -1}}, /* nothing can be read or written */
                                .region_count = 3,
                                .transmit_private = memory[2],
                                .receive_private = memory[3],
                                .statistics = &bench.statistics};
    bench.rings[0] = (struct memif_ring *)memory[0];
    bench.rings[1] = (struct memif_ring *)(memory[0] + RING_BYTES);
    link->transmit = (struct memif_queue){.ring = bench.rings[link->client ? 0 : 1], .slots = SLOTS, .event_fd = -1};
    link->receive = (struct memif_queue){.ring = bench.rings[link->client ? 1 : 0], .slots = SLOTS, .event_fd = -1};
    for (unsigned i = 0; i < 2; i++) {
        bench.rings[i]->cookie = MEMIF_COOKIE;
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            atomic_store(&bench.rings[i]->descriptor[slot].low, (uint64_t)BUFFER_BYTES << 32);
            atomic_store(&bench.rings[i]->descriptor[slot].high, 2 * RING_BYTES + (i * SLOTS + slot) * BUFFER_BYTES);
        }
    }
    CHECK(ndsim_memif_link_start(link) == NULL);
    while (input.left != 0 && link->broken == NULL) {
        step(&bench, &input);
        CHECK((uint16_t)(link->receive.limit - link->receive.next) <= SLOTS);
        CHECK((uint16_t)(link->transmit.limit - link->transmit.next) <= SLOTS);
        CHECK(bench.statistics.receive_frames == bench.frames);
    }
    for (unsigned i = 0; i < 4; i++) {
        free(memory[i]);
    }
    return 0;
}
