/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the control channel of a memif connection. Messages like good ones but for some bytes, or of any bytes,
 * in any order, with descriptors of all kinds; and what comes of them is used. No descriptor is lost.
 */
#define _GNU_SOURCE
#include "memif_link.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#define MEMORY_BYTES 65536u
#define RING_BYTES   (sizeof(struct memif_ring) + 16 * sizeof(struct memif_descriptor))
#define FRAME_BYTES  2048u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { KIND_NONE, KIND_SEALED, KIND_UNSEALED, KIND_EVENT, KIND_PIPE, KIND_READ_ONLY, KIND_COUNT };

struct input {
    const uint8_t *data;
    size_t left;
};

static uint8_t take(struct input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->data++;
}

static int make(enum kind kind)
{
    int pipe_fds[2];
    uint8_t *memory;
    int fd = -1;

    switch (kind) {
    case KIND_EVENT:
        return eventfd(0, EFD_NONBLOCK);
    case KIND_PIPE:
        CHECK(pipe(pipe_fds) == 0);
        close(pipe_fds[1]);
        return pipe_fds[0];
    case KIND_NONE:
        return -1;
    default:
        fd = memfd_create("fuzz", MFD_ALLOW_SEALING);
        CHECK(fd >= 0 && ftruncate(fd, MEMORY_BYTES) == 0);
        memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(memory != MAP_FAILED);
        for (unsigned i = 0; i < 2; i++) {
            struct memif_ring *ring = (struct memif_ring *)(memory + i * RING_BYTES);

            ring->cookie = MEMIF_COOKIE;
            atomic_store(&ring->head, 16);
            for (unsigned slot = 0; slot < 16; slot++) {
                atomic_store(&ring->descriptor[slot].low, (uint64_t)1024 << 32);
                atomic_store(&ring->descriptor[slot].high, 4096 + 1024 * slot);
            }
        }
        munmap(memory, MEMORY_BYTES);
        CHECK(kind == KIND_UNSEALED ||
              fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | (kind == KIND_READ_ONLY ? F_SEAL_WRITE : 0)) == 0);
        return fd;
    }
}

/* One of each kind, for as long as the process lives. */
static int of_kind(enum kind kind)
{
    static int fds[KIND_COUNT];

    if (kind == KIND_NONE) {
        return -1;
    }
    if (fds[kind] == 0) {
        fds[kind] = make(kind);
    }
    return dup(fds[kind]);
}

static void put(uint8_t *message, unsigned offset, uint64_t value, unsigned bits)
{
    memcpy(message + offset, &value, bits / 8);
}

/* A good message, and the descriptor that goes with it. */
static enum kind good_message(unsigned which, uint8_t *message)
{
    static const uint8_t types[] = {MEMIF_INIT,    MEMIF_ADD_REGION, MEMIF_ADD_RING, MEMIF_ADD_RING,
                                    MEMIF_CONNECT, MEMIF_HELLO,      MEMIF_ACK,      MEMIF_CONNECTED};

    put(message, MEMIF_TYPE_16, types[which], 16);
    switch (which) {
    case 0:
        put(message, MEMIF_INIT_VERSION_16, MEMIF_VERSION, 16);
        return KIND_NONE;
    case 1:
        put(message, MEMIF_REGION_BYTES_64, MEMORY_BYTES, 64);
        return KIND_SEALED;
    case 2:
    case 3:
        put(message, MEMIF_RING_FLAGS_16, which == 2 ? MEMIF_RING_FLAG_S2M : 0, 16);
        put(message, MEMIF_RING_OFFSET_32, which == 2 ? 0 : RING_BYTES, 32);
        put(message, MEMIF_RING_LOG2_SLOTS_8, 4, 8);
        return KIND_EVENT;
    case 5:
        put(message, MEMIF_HELLO_VERSION_MIN_16, MEMIF_VERSION, 16);
        put(message, MEMIF_HELLO_VERSION_MAX_16, MEMIF_VERSION, 16);
        put(message, MEMIF_HELLO_LOG2_SLOTS_MAX_8, 4, 8);
        return KIND_NONE;
    default:
        return KIND_NONE;
    }
}

static bool vacant(void *opaque)
{
    return (*(uint8_t *)opaque & 1) == 0;
}

static void look(void *opaque, const uint8_t *frame, size_t bytes)
{
    unsigned *sum = opaque;

    for (size_t i = 0; i < bytes; i++) {
        *sum += frame[i];
    }
}

static void use(struct memif_link *link)
{
    uint8_t *frame;
    unsigned sum = 0;
    bool kick;

    if (ndsim_memif_link_begin(link, 100, &frame) == MEMIF_ROOM_OK) {
        memset(frame, 1, 100);
        ndsim_memif_link_end(link, 100);
        (void)ndsim_memif_link_flush(link);
    }
    if (link->broken == NULL) {
        (void)ndsim_memif_link_receive(link, 4, look, &sum, &kick);
    }
}

/* A bit for each. */
static uint64_t open_descriptors(void)
{
    uint64_t bits = 0;

    for (int fd = 0; fd < 64; fd++) {
        bits |= (uint64_t)(fcntl(fd, F_GETFD) != -1) << fd;
    }
    return bits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t private[2][FRAME_BYTES];
    struct ndsim_memif_statistics statistics = {0};
    struct input input = {data, size};
    uint8_t start = take(&input);
    struct memif_identity identity = {.client = (start & 2) != 0, .slots = 8, .name = "fuzz"};
    struct memif_connection connection = {.state = MEMIF_STATE_HELLO};
    uint64_t before;
    int pair[2];

    for (unsigned kind = 1; kind < KIND_COUNT; kind++) {
        close(of_kind((enum kind)kind));
    }
    before = open_descriptors();
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0);
    connection.fd = pair[0];
    connection.link = (struct memif_link){.client = identity.client,
                                          .shared_frames = (start & 4) != 0,
                                          .frame_bytes = FRAME_BYTES,
                                          .buffer_bytes = 1024,
                                          .transmit = {.event_fd = -1},
                                          .receive = {.event_fd = -1},
                                          .transmit_private = private[0],
                                          .receive_private = private[1],
                                          .statistics = &statistics};
    while (input.left != 0 && connection.state != MEMIF_STATE_FAILED) {
        uint8_t message[MEMIF_MESSAGE_BYTES] = {0};
        uint8_t action = take(&input);
        enum kind kind = good_message(action & 7, message);
        unsigned changes = action >> 3 & 3;
        unsigned fd_count = 0;
        int fds[4];

        for (; changes != 0; changes--) {
            unsigned at = take(&input);

            message[at % MEMIF_MESSAGE_BYTES] = take(&input);
        }
        if ((action & 0x20) != 0) { /* other descriptors than there should be */
            for (unsigned wanted = take(&input) & 3; wanted != 0; wanted--) {
                fds[fd_count] = of_kind((enum kind)(1 + take(&input) % (KIND_COUNT - 1)));
                fd_count++;
            }
        } else if (kind != KIND_NONE) {
            fds[fd_count++] = of_kind(kind);
        }
        ndsim_memif_control_message(&connection, &identity, message, fds, fd_count, vacant, &start);
        if (connection.state == MEMIF_STATE_UP && connection.link.broken == NULL) {
            use(&connection.link);
        }
    }
    ndsim_memif_memory_release(&connection.link);
    close(pair[0]);
    close(pair[1]);
    CHECK(open_descriptors() == before);
    return 0;
}
