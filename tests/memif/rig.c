/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests' endpoints and scripted peers. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void take_line(void *opaque, enum ndsim_memif_level level, const char *line)
{
    struct rig *rig = opaque;

    (void)level;
    snprintf(rig->log[rig->lines % 8], sizeof(rig->log[0]), "%s", line);
    rig->lines++;
}

int rig_set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    snprintf(rig->directory, sizeof(rig->directory), "/tmp/netdam-memif-XXXXXX");
    assert_non_null(mkdtemp(rig->directory));
    snprintf(rig->path, sizeof(rig->path), "%s/socket", rig->directory);
    *state = rig;
    return 0;
}

int rig_tear_down(void **state)
{
    struct rig *rig = *state;

    (void)unlink(rig->path);
    if (rmdir(rig->directory) != 0) {
        return -1; /* something was left behind */
    }
    free(rig);
    return 0;
}

const char *rig_logged(const struct rig *rig, const char *text)
{
    unsigned i;

    for (i = 0; i < 8; i++) {
        if (strstr(rig->log[i], text) != NULL) {
            return rig->log[i];
        }
    }
    return NULL;
}

struct ndsim_memif_config rig_config(struct rig *rig, enum ndsim_memif_role role)
{
    return (struct ndsim_memif_config){
        .path = rig->path, .role = role, .id = 7, .slots = 16, .log = take_line, .log_opaque = rig};
}

struct ndsim_memif *rig_open(struct rig *rig, const struct ndsim_memif_config *config)
{
    struct ndsim_memif *memif = NULL;

    (void)rig;
    assert_int_equal(ndsim_memif_open(config, &memif), 0);
    return memif;
}

void rig_step(struct ndsim_memif *a, struct ndsim_memif *b)
{
    struct pollfd fds[2] = {{.fd = ndsim_memif_fd(a), .events = POLLIN},
                            {.fd = b != NULL ? ndsim_memif_fd(b) : -1, .events = POLLIN}};

    assert_true(poll(fds, 2, RIG_PATIENCE_MS) > 0);
    ndsim_memif_process(a);
    if (b != NULL) {
        ndsim_memif_process(b);
    }
}

void rig_until_link(struct ndsim_memif *a, struct ndsim_memif *b, bool up)
{
    while (ndsim_memif_link_up(a) != up || (b != NULL && ndsim_memif_link_up(b) != up)) {
        rig_step(a, b);
    }
}

struct ndsim_memif_statistics rig_statistics(const struct ndsim_memif *memif)
{
    struct ndsim_memif_statistics statistics;

    ndsim_memif_get_statistics(memif, &statistics);
    return statistics;
}

unsigned rig_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static uint8_t byte_of(uint64_t seed, size_t at)
{
    return (uint8_t)((seed * 0x9e3779b97f4a7c15u + at * 0xbf58476d1ce4e5b9u) >> 40);
}

void rig_send(struct ndsim_memif *memif, uint64_t seed, size_t bytes)
{
    uint8_t *frame = ndsim_memif_transmit_begin(memif, bytes);
    size_t i;

    assert_non_null(frame);
    for (i = 0; i < bytes; i++) {
        frame[i] = byte_of(seed, i);
    }
    ndsim_memif_transmit_end(memif, bytes);
}

void rig_check(const uint8_t *frame, size_t bytes, uint64_t seed, size_t expected_bytes)
{
    size_t wrong = 0;
    size_t i;

    assert_int_equal(bytes, expected_bytes);
    for (i = 0; i < bytes; i++) {
        wrong += frame[i] != byte_of(seed, i);
    }
    assert_int_equal(wrong, 0);
}

/* Scripts. */

void script_put(uint8_t *message, unsigned offset, uint64_t value, unsigned bits)
{
    memcpy(message + offset, &value, bits / 8);
}

uint64_t script_get(const uint8_t *message, unsigned offset, unsigned bits)
{
    uint64_t value = 0;

    memcpy(&value, message + offset, bits / 8);
    return value;
}

unsigned script_type(const uint8_t *message)
{
    return (unsigned)script_get(message, MEMIF_TYPE_16, 16);
}

void script_describe(struct memif_ring *ring, unsigned slot, unsigned flags, unsigned region, uint32_t length,
                     uint32_t offset)
{
    atomic_store(&ring->descriptor[slot].low, (uint64_t)length << 32 | (uint64_t)region << 16 | flags);
    atomic_store(&ring->descriptor[slot].high, offset);
}

void script_init(struct script *script)
{
    *script = (struct script){.fd = -1, .listener = -1, .memory_fd = -1, .event_fd = {-1, -1}};
}

void script_close(struct script *script)
{
    int fds[5] = {script->fd, script->listener, script->memory_fd, script->event_fd[0], script->event_fd[1]};
    unsigned i;

    for (i = 0; i < 5; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    if (script->memory != NULL) {
        munmap(script->memory, script->memory_bytes);
    }
    script_init(script);
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

void script_connect(struct script *script, const char *path)
{
    struct sockaddr_un address = address_of(path);

    script->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(script->fd >= 0);
    assert_int_equal(connect(script->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

void script_listen(struct script *script, const char *path)
{
    struct sockaddr_un address = address_of(path);

    script->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(script->listener >= 0);
    assert_int_equal(bind(script->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(script->listener, 4), 0);
}

static void wait_for(int fd, struct ndsim_memif *memif)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                            {.fd = memif != NULL ? ndsim_memif_fd(memif) : -1, .events = POLLIN}};

    for (;;) {
        assert_true(poll(fds, 2, RIG_PATIENCE_MS) > 0);
        if (fds[1].revents != 0) {
            ndsim_memif_process(memif);
        }
        if (fds[0].revents != 0) {
            return;
        }
    }
}

void script_accept(struct script *script, struct ndsim_memif *memif)
{
    wait_for(script->listener, memif);
    script->fd = accept(script->listener, NULL, NULL);
    assert_true(script->fd >= 0);
}

void script_send(struct script *script, const uint8_t message[MEMIF_MESSAGE_BYTES], const int *fds, unsigned fd_count)
{
    struct iovec vector = {.iov_base = (void *)(uintptr_t)message, .iov_len = MEMIF_MESSAGE_BYTES};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(16 * sizeof(int))];
    } control = {0};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};

    if (fd_count != 0) {
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    }
    (void)sendmsg(script->fd, &header, MSG_NOSIGNAL); /* the endpoint may have given up: what it says is read next */
}

unsigned script_wait(struct script *script, struct ndsim_memif *memif, uint8_t message[MEMIF_MESSAGE_BYTES], int *fd)
{
    struct iovec vector = {.iov_base = message, .iov_len = MEMIF_MESSAGE_BYTES};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t got;

    wait_for(script->fd, memif);
    got = recvmsg(script->fd, &header, MSG_CMSG_CLOEXEC);
    if (got <= 0) {
        return 0;
    }
    assert_int_equal(got, MEMIF_MESSAGE_BYTES);
    if (CMSG_FIRSTHDR(&header) != NULL) {
        int passed;

        memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(passed));
        if (fd != NULL) {
            *fd = passed;
        } else {
            close(passed);
        }
    }
    return script_type(message);
}

void script_expect_end(struct script *script, struct ndsim_memif *memif, const char *text)
{
    uint8_t message[MEMIF_MESSAGE_BYTES];
    unsigned type;

    while ((type = script_wait(script, memif, message, NULL)) != 0) {
        if (type == MEMIF_DISCONNECT) {
            memcpy(script->reason, message + MEMIF_DISCONNECT_REASON, sizeof(script->reason));
            script->reason[sizeof(script->reason) - 1] = 0;
        }
    }
    if (strstr(script->reason, text) == NULL) {
        fail_msg("given up because \"%s\", not \"%s\"", script->reason, text);
    }
}

void script_make_memory(struct script *script, const struct script_client *client)
{
    unsigned log2_slots = client->log2_slots != 0 ? client->log2_slots : 4;
    size_t slots = (size_t)1 << log2_slots;
    size_t ring = sizeof(struct memif_ring) + slots * sizeof(struct memif_descriptor);
    unsigned i;

    script->memory_bytes = 2 * ring + 2 * slots * SCRIPT_BUFFER_BYTES;
    script->memory_fd = memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(script->memory_fd >= 0);
    assert_int_equal(ftruncate(script->memory_fd, (off_t)script->memory_bytes), 0);
    script->memory = mmap(NULL, script->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, script->memory_fd, 0);
    assert_true(script->memory != MAP_FAILED);
    for (i = 0; i < 2; i++) {
        script->ring[i] = (struct memif_ring *)(script->memory + i * ring);
        script->ring[i]->cookie = client->no_cookie ? 0 : MEMIF_COOKIE;
        script->event_fd[i] = eventfd(0, EFD_CLOEXEC); /* blocking, as a peer may have it */
        assert_true(script->event_fd[i] >= 0);
        for (size_t slot = 0; slot < slots; slot++) {
            script_describe(script->ring[i], (unsigned)slot, 0, 0, SCRIPT_BUFFER_BYTES,
                            (uint32_t)(2 * ring + (i * slots + slot) * SCRIPT_BUFFER_BYTES));
        }
    }
    if (client->missing_bytes != 0) {
        assert_int_equal(ftruncate(script->memory_fd, (off_t)(script->memory_bytes - client->missing_bytes)), 0);
    }
    if (!client->unsealed) {
        assert_int_equal(fcntl(script->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    }
}

/* Sends a message and waits for the answer; false: it was another one than `expected`. */
static bool exchange(struct script *script, struct ndsim_memif *memif, const struct script_client *client,
                     uint8_t *message, int fd, unsigned expected)
{
    uint8_t answer[MEMIF_MESSAGE_BYTES];
    int fds[16] = {fd};
    unsigned fd_count = fd >= 0 ? 1 : 0;
    unsigned type;

    if (client->tamper == NULL || client->tamper(message, fds, &fd_count)) {
        script_send(script, message, fds, fd_count);
        type = script_wait(script, memif, answer, NULL);
        if (type == MEMIF_DISCONNECT) {
            memcpy(script->reason, answer + MEMIF_DISCONNECT_REASON, sizeof(script->reason));
        }
        return type == expected;
    }
    return true;
}

static bool add_ring(struct script *script, struct ndsim_memif *memif, const struct script_client *client, unsigned i)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

    script_put(message, MEMIF_TYPE_16, MEMIF_ADD_RING, 16);
    script_put(message, MEMIF_RING_FLAGS_16, i == SCRIPT_S2M ? MEMIF_RING_FLAG_S2M : 0, 16);
    script_put(message, MEMIF_RING_OFFSET_32, (uint64_t)((uint8_t *)script->ring[i] - script->memory), 32);
    script_put(message, MEMIF_RING_LOG2_SLOTS_8, client->log2_slots != 0 ? client->log2_slots : 4, 8);
    return exchange(script, memif, client, message, script->event_fd[i], MEMIF_ACK);
}

static bool add_region(struct script *script, struct ndsim_memif *memif, const struct script_client *client,
                       unsigned index, uint64_t bytes, int fd)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

    script_put(message, MEMIF_TYPE_16, MEMIF_ADD_REGION, 16);
    script_put(message, MEMIF_REGION_INDEX_16, index, 16);
    script_put(message, MEMIF_REGION_BYTES_64, bytes, 64);
    return exchange(script, memif, client, message, fd, MEMIF_ACK);
}

bool script_be_client(struct script *script, struct ndsim_memif *memif, const struct script_client *client)
{
    uint8_t message[MEMIF_MESSAGE_BYTES];
    unsigned i;

    script_make_memory(script, client);
    if (script_wait(script, memif, message, NULL) != MEMIF_HELLO) {
        return false;
    }
    memset(message, 0, sizeof(message));
    script_put(message, MEMIF_TYPE_16, MEMIF_INIT, 16);
    script_put(message, MEMIF_INIT_VERSION_16, MEMIF_VERSION, 16);
    script_put(message, MEMIF_INIT_ID_32, 7, 32);
    if (!exchange(script, memif, client, message, -1, MEMIF_ACK)) {
        return false;
    }
    if (!add_region(script, memif, client, 0, script->memory_bytes, script->memory_fd)) {
        return false;
    }
    for (i = 1; i <= client->more_regions; i++) {
        if (!add_region(script, memif, client, i, client->more_bytes, client->more_fd)) {
            return false;
        }
    }
    if (!add_ring(script, memif, client, SCRIPT_S2M) || !add_ring(script, memif, client, SCRIPT_M2S)) {
        return false;
    }
    memset(message, 0, sizeof(message));
    script_put(message, MEMIF_TYPE_16, MEMIF_CONNECT, 16);
    return exchange(script, memif, client, message, -1, MEMIF_CONNECTED);
}

void script_be_server(struct script *script, struct ndsim_memif *memif, unsigned log2_max)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};
    uint8_t answer[MEMIF_MESSAGE_BYTES] = {0};
    unsigned type;
    int fd = -1;

    script_put(message, MEMIF_TYPE_16, MEMIF_HELLO, 16);
    script_put(message, MEMIF_HELLO_VERSION_MIN_16, MEMIF_VERSION, 16);
    script_put(message, MEMIF_HELLO_VERSION_MAX_16, MEMIF_VERSION, 16);
    script_put(message, MEMIF_HELLO_LOG2_SLOTS_MAX_8, log2_max, 8);
    script_send(script, message, NULL, 0);
    while ((type = script_wait(script, memif, message, &fd)) != MEMIF_CONNECT) {
        if (type == MEMIF_ADD_REGION) {
            script->memory_fd = fd;
            script->memory_bytes = (size_t)script_get(message, MEMIF_REGION_BYTES_64, 64);
            script->memory = mmap(NULL, script->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            assert_true(script->memory != MAP_FAILED);
        } else if (type == MEMIF_ADD_RING) {
            unsigned i = script_get(message, MEMIF_RING_FLAGS_16, 16) != 0 ? SCRIPT_S2M : SCRIPT_M2S;

            script->event_fd[i] = fd;
            script->ring[i] = (struct memif_ring *)(script->memory + script_get(message, MEMIF_RING_OFFSET_32, 32));
        } else {
            assert_int_equal(type, MEMIF_INIT);
        }
        script_put(answer, MEMIF_TYPE_16, MEMIF_ACK, 16);
        script_send(script, answer, NULL, 0);
    }
    script_put(answer, MEMIF_TYPE_16, MEMIF_CONNECTED, 16);
    script_send(script, answer, NULL, 0);
    rig_until_link(memif, NULL, true);
}
