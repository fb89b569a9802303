/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control channel of a memif connection: which message may come when, and what it may say. A peer that says
 * anything else is told why and given up.
 */
#define _GNU_SOURCE
#include "memif_link.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Descriptors that may come with a message are one; room for more, so that they can be counted and closed. */
#define FDS_MAX 4

#define RING_LOG2_MAX 14

/* A client's messages, each answered before the next is sent. */
enum client_step {
    STEP_INIT,
    STEP_REGION,
    STEP_RING_TRANSMIT,
    STEP_RING_RECEIVE,
    STEP_CONNECT,
};

static void put(uint8_t *message, unsigned offset, uint64_t value, unsigned bits)
{
    memcpy(message + offset, &value, bits / 8); /* little-endian, as memif_wire.h makes sure */
}

static uint64_t get(const uint8_t *message, unsigned offset, unsigned bits)
{
    uint64_t value = 0;

    memcpy(&value, message + offset, bits / 8);
    return value;
}

/* A connection that has to wait here is given up: a well-behaved peer never has so much unread. */
static bool send_message(const struct memif_connection *connection, const uint8_t *message, int fd)
{
    struct iovec vector = {.iov_base = (void *)(uintptr_t)message, .iov_len = MEMIF_MESSAGE_BYTES};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t sent;

    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(int));
        header.msg_control = &control;
        header.msg_controllen = sizeof(control);
    }
    do {
        sent = sendmsg(connection->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == MEMIF_MESSAGE_BYTES;
}

static void set_reason(struct memif_connection *connection, const char *reason)
{
    size_t length = strlen(reason);

    connection->state = MEMIF_STATE_FAILED;
    length = length < sizeof(connection->reason) - 1 ? length : sizeof(connection->reason) - 1;
    memcpy(connection->reason, reason, length);
    connection->reason[length] = 0;
}

void ndsim_memif_control_disconnect(struct memif_connection *connection, const char *reason)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

    set_reason(connection, reason);
    put(message, MEMIF_TYPE_16, MEMIF_DISCONNECT, 16);
    memcpy(message + MEMIF_DISCONNECT_REASON, connection->reason, sizeof(connection->reason));
    (void)send_message(connection, message, -1);
}

static void say(struct memif_connection *connection, uint8_t *message, enum memif_message_type type, int fd)
{
    put(message, MEMIF_TYPE_16, (uint64_t)type, 16);
    if (!send_message(connection, message, fd)) {
        set_reason(connection, "");
    }
}

static void acknowledge(struct memif_connection *connection)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

    say(connection, message, MEMIF_ACK, -1);
}

void ndsim_memif_control_greet(struct memif_connection *connection, const struct memif_identity *identity)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

    memcpy(message + MEMIF_HELLO_NAME, identity->name, MEMIF_NAME_BYTES);
    put(message, MEMIF_HELLO_VERSION_MIN_16, MEMIF_VERSION, 16);
    put(message, MEMIF_HELLO_VERSION_MAX_16, MEMIF_VERSION, 16);
    put(message, MEMIF_HELLO_REGION_MAX_16, MEMIF_REGIONS_MAX - 1, 16);
    put(message, MEMIF_HELLO_LOG2_SLOTS_MAX_8, RING_LOG2_MAX, 8); /* one ring each way: highest index 0 */
    say(connection, message, MEMIF_HELLO, -1);
}

/* The client's side. */

static void send_ring(struct memif_connection *connection, const struct memif_queue *queue, bool s2m)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};
    const struct memif_link *link = &connection->link;

    put(message, MEMIF_RING_FLAGS_16, s2m ? MEMIF_RING_FLAG_S2M : 0, 16);
    put(message, MEMIF_RING_OFFSET_32, (uint64_t)((const uint8_t *)queue->ring - link->regions[0].base), 32);
    put(message, MEMIF_RING_LOG2_SLOTS_8, (uint64_t)__builtin_ctz(queue->slots), 8);
    say(connection, message, MEMIF_ADD_RING, queue->event_fd);
}

static void send_step(struct memif_connection *connection, const struct memif_identity *identity)
{
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};
    struct memif_link *link = &connection->link;

    switch (connection->step) {
    case STEP_INIT:
        put(message, MEMIF_INIT_VERSION_16, MEMIF_VERSION, 16);
        put(message, MEMIF_INIT_ID_32, identity->id, 32);
        memcpy(message + MEMIF_INIT_SECRET, identity->secret, MEMIF_SECRET_BYTES);
        memcpy(message + MEMIF_INIT_NAME, identity->name, MEMIF_NAME_BYTES);
        say(connection, message, MEMIF_INIT, -1);
        break;
    case STEP_REGION:
        put(message, MEMIF_REGION_BYTES_64, link->regions[0].bytes, 64);
        say(connection, message, MEMIF_ADD_REGION, link->regions[0].fd);
        break;
    case STEP_RING_TRANSMIT:
        send_ring(connection, &link->transmit, true);
        break;
    case STEP_RING_RECEIVE:
        send_ring(connection, &link->receive, false);
        break;
    default:
        memcpy(message + MEMIF_CONNECT_NAME, identity->name, MEMIF_NAME_BYTES);
        say(connection, message, MEMIF_CONNECT, -1);
        break;
    }
}

static void take_hello(struct memif_connection *connection, const struct memif_identity *identity,
                       const uint8_t *message)
{
    struct memif_link *link = &connection->link;
    unsigned log2_max = (unsigned)get(message, MEMIF_HELLO_LOG2_SLOTS_MAX_8, 8);
    uint32_t slots = identity->slots;

    if (get(message, MEMIF_HELLO_VERSION_MIN_16, 16) > MEMIF_VERSION ||
        get(message, MEMIF_HELLO_VERSION_MAX_16, 16) < MEMIF_VERSION) {
        ndsim_memif_control_disconnect(connection, "no common version: this is 2.0");
        return;
    }
    if (log2_max < RING_LOG2_MAX && slots > 1u << log2_max) {
        slots = 1u << log2_max;
    }
    if (slots < 2) {
        ndsim_memif_control_disconnect(connection, "rings of one slot are not supported");
        return;
    }
    link->transmit.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    link->receive.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (link->transmit.event_fd < 0 || link->receive.event_fd < 0 || ndsim_memif_memory_create(link, slots) != 0) {
        ndsim_memif_control_disconnect(connection, "the client is out of memory or descriptors");
        return;
    }
    connection->state = MEMIF_STATE_SETUP;
    connection->step = STEP_INIT;
    send_step(connection, identity);
}

static void finish(struct memif_connection *connection)
{
    memif_reason reason = ndsim_memif_link_start(&connection->link);

    if (reason != NULL) {
        ndsim_memif_control_disconnect(connection, reason);
        return;
    }
    connection->state = MEMIF_STATE_UP;
}

static void client_takes(struct memif_connection *connection, const struct memif_identity *identity,
                         const uint8_t *message, unsigned type)
{
    if (type == MEMIF_HELLO && connection->state == MEMIF_STATE_HELLO) {
        take_hello(connection, identity, message);
    } else if (type == MEMIF_ACK && connection->state == MEMIF_STATE_SETUP && connection->step < STEP_CONNECT) {
        connection->step++;
        send_step(connection, identity);
    } else if (type == MEMIF_CONNECTED && connection->state == MEMIF_STATE_SETUP && connection->step == STEP_CONNECT) {
        finish(connection);
    } else {
        ndsim_memif_control_disconnect(connection, "unexpected message");
    }
}

/* The server's side. */

/* Takes as long for a wrong secret as for the right one. */
static bool secret_fits(const struct memif_identity *identity, const uint8_t *secret)
{
    unsigned difference = 0;
    unsigned i;

    for (i = 0; i < MEMIF_SECRET_BYTES; i++) {
        difference |= (unsigned)(uint8_t)identity->secret[i] ^ secret[i];
    }
    return identity->secret[0] == 0 || difference == 0;
}

static memif_reason take_init(const struct memif_identity *identity, const uint8_t *message,
                              bool (*vacant)(void *opaque), void *opaque)
{
    if (get(message, MEMIF_INIT_VERSION_16, 16) != MEMIF_VERSION) {
        return "version is not 2.0";
    }
    if (get(message, MEMIF_INIT_MODE_8, 8) != 0) {
        return "only Ethernet mode is supported";
    }
    if (get(message, MEMIF_INIT_ID_32, 32) != identity->id) {
        return "no interface has this id";
    }
    if (!secret_fits(identity, message + MEMIF_INIT_SECRET)) {
        return "the secret is wrong";
    }
    return vacant(opaque) ? NULL : "already connected";
}

static memif_reason take_region(struct memif_link *link, const uint8_t *message, int *fd)
{
    int memory = *fd;

    if (link->region_count == MEMIF_REGIONS_MAX || get(message, MEMIF_REGION_INDEX_16, 16) != link->region_count) {
        return "a region's index is not the next one";
    }
    *fd = -1;
    return ndsim_memif_memory_add(link, get(message, MEMIF_REGION_BYTES_64, 64), memory);
}

static memif_reason take_ring(struct memif_link *link, const uint8_t *message, int *fd)
{
    unsigned flags = (unsigned)get(message, MEMIF_RING_FLAGS_16, 16);
    unsigned region = (unsigned)get(message, MEMIF_RING_REGION_16, 16);
    unsigned log2_slots = (unsigned)get(message, MEMIF_RING_LOG2_SLOTS_8, 8);
    uint64_t offset = get(message, MEMIF_RING_OFFSET_32, 32);
    struct memif_queue *queue = (flags & MEMIF_RING_FLAG_S2M) != 0 ? &link->receive : &link->transmit;

    if (get(message, MEMIF_RING_INDEX_16, 16) != 0) {
        return "there is one ring each way";
    }
    if (queue->ring != NULL) {
        return "a ring comes twice";
    }
    if (log2_slots == 0 || log2_slots > RING_LOG2_MAX) {
        return "a ring's size is not supported";
    }
    if (region >= link->region_count) {
        return "a ring lies in no region";
    }
    if (link->regions[region].base == NULL) {
        return "a ring lies in memory that is not sealed against shrinking";
    }
    if (offset % _Alignof(struct memif_descriptor) != 0 ||
        offset + sizeof(struct memif_ring) + (sizeof(struct memif_descriptor) << log2_slots) >
            link->regions[region].bytes) {
        return "a ring does not lie within its region";
    }
    if (!ndsim_memif_is_eventfd(*fd)) {
        return "a ring's descriptor is not an eventfd";
    }
    queue->ring = (struct memif_ring *)(link->regions[region].base + offset);
    queue->slots = (uint16_t)(1u << log2_slots);
    queue->event_fd = *fd;
    *fd = -1;
    return NULL;
}

static void server_takes(struct memif_connection *connection, const struct memif_identity *identity,
                         const uint8_t *message, unsigned type, int *fd, bool (*vacant)(void *opaque), void *opaque)
{
    struct memif_link *link = &connection->link;
    memif_reason reason;

    if (type == MEMIF_INIT && connection->state == MEMIF_STATE_HELLO) {
        reason = take_init(identity, message, vacant, opaque);
        connection->state = reason == NULL ? MEMIF_STATE_SETUP : connection->state;
    } else if (type == MEMIF_ADD_REGION && connection->state == MEMIF_STATE_SETUP) {
        reason = *fd < 0 ? "a region comes without descriptor" : take_region(link, message, fd);
    } else if (type == MEMIF_ADD_RING && connection->state == MEMIF_STATE_SETUP) {
        reason = *fd < 0 ? "a ring comes without descriptor" : take_ring(link, message, fd);
    } else if (type == MEMIF_CONNECT && connection->state == MEMIF_STATE_SETUP) {
        uint8_t answer[MEMIF_MESSAGE_BYTES] = {0};

        if (link->transmit.ring == NULL || link->receive.ring == NULL) {
            ndsim_memif_control_disconnect(connection, "a ring is missing");
            return;
        }
        finish(connection);
        if (connection->state == MEMIF_STATE_UP) {
            memcpy(answer + MEMIF_CONNECT_NAME, identity->name, MEMIF_NAME_BYTES);
            say(connection, answer, MEMIF_CONNECTED, -1);
        }
        return;
    } else {
        reason = "unexpected message";
    }
    if (reason != NULL) {
        ndsim_memif_control_disconnect(connection, reason);
    } else {
        acknowledge(connection);
    }
}

/* For a log: nothing that could steer a terminal. */
static void take_disconnect(struct memif_connection *connection, const uint8_t *message)
{
    char reason[MEMIF_REASON_BYTES];
    unsigned i;

    memcpy(reason, message + MEMIF_DISCONNECT_REASON, sizeof(reason));
    reason[sizeof(reason) - 1] = 0;
    for (i = 0; reason[i] != 0; i++) {
        reason[i] = reason[i] < ' ' || reason[i] > '~' ? '?' : reason[i];
    }
    set_reason(connection, reason);
    connection->reason_is_peers = true;
}

void ndsim_memif_control_message(struct memif_connection *connection, const struct memif_identity *identity,
                                 const uint8_t message[MEMIF_MESSAGE_BYTES], int *fds, unsigned fd_count,
                                 bool (*vacant)(void *opaque), void *opaque)
{
    unsigned type = (unsigned)get(message, MEMIF_TYPE_16, 16);
    bool wants_fd = type == MEMIF_ADD_REGION || type == MEMIF_ADD_RING;
    int fd = -1;
    unsigned i;

    if (fd_count > (wants_fd ? 1u : 0u)) {
        ndsim_memif_control_disconnect(connection, "more descriptors than belong to the message");
    } else if (type == MEMIF_DISCONNECT) {
        take_disconnect(connection, message);
    } else if (identity->client) {
        client_takes(connection, identity, message, type);
    } else {
        if (fd_count != 0) {
            fd = fds[0];
            fds[0] = -1;
        }
        server_takes(connection, identity, message, type, &fd, vacant, opaque);
    }
    if (fd >= 0) {
        close(fd);
    }
    for (i = 0; i < fd_count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

static unsigned take_fds(struct msghdr *header, int *fds)
{
    struct cmsghdr *part;
    unsigned count = 0;

    for (part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        size_t at;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        for (at = 0; at + sizeof(int) <= bytes && count < FDS_MAX; at += sizeof(int), count++) {
            memcpy(&fds[count], CMSG_DATA(part) + at, sizeof(int));
        }
    }
    return count;
}

bool ndsim_memif_control_receive(struct memif_connection *connection, const struct memif_identity *identity,
                                 bool (*vacant)(void *opaque), void *opaque)
{
    uint8_t message[MEMIF_MESSAGE_BYTES];
    struct iovec vector = {.iov_base = message, .iov_len = sizeof(message)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct msghdr header = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    int fds[FDS_MAX];
    unsigned fd_count;
    ssize_t got;

    do {
        got = recvmsg(connection->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return false;
    }
    if (got <= 0) {
        set_reason(connection, "");
        return true;
    }
    fd_count = take_fds(&header, fds);
    if (got != MEMIF_MESSAGE_BYTES || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        ndsim_memif_control_disconnect(connection, "a message has the wrong size");
        while (fd_count != 0) {
            close(fds[--fd_count]);
        }
        return true;
    }
    ndsim_memif_control_message(connection, identity, message, fds, fd_count, vacant, opaque);
    return true;
}
