/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that a broker holds: administration and registers by message, memory and doorbells directly where possible.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backend.h"
#include "broker.h"
#include "mmio.h"

/* A broker answers at once; one that is stopped must not stop its clients for ever. */
#define ANSWER_SECONDS 60

#define VECTORS_MAX NETDAM_QUEUE_PAIRS_MAX

struct broker {
    int fd;
    atomic_bool gone;      /* no answer can be expected any more */
    pthread_mutex_t mutex; /* one request at a time, so that answers meet their requests */
    uint8_t *memory;
    uint64_t memory_bytes;
    int registers_fd; /* BAR0, or -1 */
    uint64_t registers_offset;
    int vector_fds[VECTORS_MAX]; /* -1: not asked for yet */
    /* By queue pair; NULL: by message. The queue pair's owner alone uses its entry. */
    volatile uint8_t *doorbells[NETDAM_QUEUE_PAIRS_MAX];

    /* The administration page, which the device's mutex guards. */
    uint64_t arguments[NETDAM_ADMIN_ARGS];
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint32_t admin_command;
    uint32_t admin_status;
};

const char *ndlib_broker_path(void)
{
    const char *path = secure_getenv("NETDAM_BROKER");

    if (!path) {
        return NDLIB_BROKER_SOCKET;
    }
    return path[0] ? path : NULL;
}

int ndlib_broker_connect(const char *path)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int error;
    int fd;

    if (path[0] == '\0' || strlen(path) >= sizeof(name.sun_path)) {
        return path[0] == '\0' ? -EINVAL : -ENAMETOOLONG;
    }
    memcpy(name.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
        connect(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
        error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

/* After a failure nobody knows which answer would come next. */
static void give_up(struct broker *broker)
{
    atomic_store(&broker->gone, true);
    shutdown(broker->fd, SHUT_RDWR);
}

static bool send_request(struct broker *broker, const struct ndlib_broker_request *request)
{
    ssize_t bytes;

    do {
        bytes = send(broker->fd, request, sizeof(*request), MSG_NOSIGNAL);
    } while (bytes < 0 && errno == EINTR);
    return bytes == (ssize_t)sizeof(*request);
}

/* Takes the descriptors out of a message; false if they are not `count`, and then none is left open. */
static bool take_descriptors(struct msghdr *message, int *fds, unsigned count)
{
    int found[NDLIB_BROKER_DESCRIPTORS];
    unsigned total = 0;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        unsigned here;

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        here = (unsigned)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (unsigned i = 0; i < here && total < NDLIB_BROKER_DESCRIPTORS; i++) {
            memcpy(&found[total++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
        }
    }
    if (total == count && (message->msg_flags & MSG_CTRUNC) == 0) {
        for (unsigned i = 0; i < count; i++) {
            fds[i] = found[i];
        }
        return true;
    }
    for (unsigned i = 0; i < total; i++) {
        close(found[i]);
    }
    return false;
}

/* Waits for the answer. Up to *fd_count descriptors come along; *fd_count becomes how many. */
static bool receive_reply(struct broker *broker, uint16_t type, struct ndlib_broker_reply *reply, int *fds,
                          unsigned *fd_count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(NDLIB_BROKER_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t bytes;
    bool good;

    do {
        bytes = recvmsg(broker->fd, &message, MSG_CMSG_CLOEXEC);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) {
        return false;
    }
    good = bytes == (ssize_t)sizeof(*reply) && (message.msg_flags & MSG_TRUNC) == 0 && reply->bytes == sizeof(*reply) &&
           reply->type == type && reply->descriptors <= *fd_count;
    *fd_count = good ? reply->descriptors : 0;
    return take_descriptors(&message, fds, *fd_count) && good;
}

/*
 * One request and its answer. Returns 0, what the broker says, or -ENODEV if it is gone; then *fd_count is 0.
 */
static int ask(struct broker *broker, uint16_t type, const uint64_t *values, unsigned count,
               struct ndlib_broker_reply *reply, int *fds, unsigned *fd_count)
{
    struct ndlib_broker_request request = {.version = NDLIB_BROKER_VERSION, .type = type, .bytes = sizeof(request)};
    unsigned none = 0;
    int rc = -ENODEV;

    if (!fd_count) {
        fd_count = &none;
    }
    for (unsigned i = 0; i < count; i++) {
        request.values[i] = values[i];
    }
    pthread_mutex_lock(&broker->mutex);
    if (!atomic_load(&broker->gone)) {
        if (send_request(broker, &request) && receive_reply(broker, type, reply, fds, fd_count)) {
            rc = reply->error;
        } else {
            give_up(broker);
        }
    }
    pthread_mutex_unlock(&broker->mutex);
    if (rc != 0) {
        *fd_count = 0;
    }
    return rc;
}

static uint64_t all_ones(unsigned bytes)
{
    return bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

static uint64_t broker_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    struct broker *broker = opaque;
    const uint64_t values[] = {offset, bytes};
    struct ndlib_broker_reply reply;

    if (offset >= NETDAM_REG_ADMIN_RESULT0 && offset < NETDAM_REG_ADMIN_RESULT0 + 8 * NETDAM_ADMIN_RESULTS) {
        return broker->results[(offset - NETDAM_REG_ADMIN_RESULT0) / 8];
    }
    if (offset == NETDAM_REG_ADMIN_STATUS) {
        return broker->admin_status;
    }
    if (offset == NETDAM_REG_ADMIN_COMMAND) {
        return broker->admin_command;
    }
    if (ask(broker, NDLIB_BROKER_READ, values, 2, &reply, NULL, NULL) != 0) {
        return all_ones(bytes);
    }
    return reply.values[0];
}

/* From now on the doorbell of a pair of ours is a store; where that cannot be had, it stays a message. */
static void map_doorbell(struct broker *broker, uint64_t index)
{
    void *page;

    if (broker->registers_fd < 0 || index >= NETDAM_QUEUE_PAIRS_MAX || broker->doorbells[index]) {
        return;
    }
    page = mmap(NULL, NETDAM_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, broker->registers_fd,
                (off_t)(broker->registers_offset + NETDAM_PAGE_DOORBELLS + index * NETDAM_PAGE_BYTES));
    if (page != MAP_FAILED) {
        broker->doorbells[index] = page;
    }
}

static void unmap_doorbell(struct broker *broker, uint64_t index)
{
    if (index < NETDAM_QUEUE_PAIRS_MAX && broker->doorbells[index]) {
        munmap((void *)(uintptr_t)broker->doorbells[index], NETDAM_PAGE_BYTES);
        broker->doorbells[index] = NULL;
    }
}

static void execute(struct broker *broker, uint32_t command)
{
    uint64_t values[1 + NETDAM_ADMIN_ARGS] = {command};
    struct ndlib_broker_reply reply;

    memcpy(values + 1, broker->arguments, sizeof(broker->arguments));
    broker->admin_command = command;
    memset(broker->results, 0, sizeof(broker->results));
    if (ask(broker, NDLIB_BROKER_ADMIN, values, 1 + NETDAM_ADMIN_ARGS, &reply, NULL, NULL) != 0) {
        broker->admin_status = UINT32_MAX;
        return;
    }
    broker->admin_status = (uint32_t)reply.values[0];
    memcpy(broker->results, reply.values + 1, sizeof(broker->results));
    if (broker->admin_status == NETDAM_ADMIN_STATUS_OK && command == NETDAM_ADMIN_QUEUE_CREATE) {
        map_doorbell(broker, broker->results[0]);
    } else if (broker->admin_status == NETDAM_ADMIN_STATUS_OK && command == NETDAM_ADMIN_QUEUE_DESTROY) {
        unmap_doorbell(broker, broker->arguments[0]);
    }
}

static void broker_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct broker *broker = opaque;

    if (offset >= NETDAM_PAGE_DOORBELLS) {
        uint32_t index = (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES;
        struct ndlib_broker_request request = {
            .version = NDLIB_BROKER_VERSION, .type = NDLIB_BROKER_DOORBELL, .bytes = sizeof(request)};

        if (index < NETDAM_QUEUE_PAIRS_MAX && broker->doorbells[index]) {
            ndlib_mmio_write(broker->doorbells[index], bytes, value);
            return;
        }
        request.values[0] = index;
        if (!send_request(broker, &request)) {
            give_up(broker);
        }
    } else if (offset == NETDAM_REG_ADMIN_COMMAND) {
        execute(broker, (uint32_t)value);
    } else if (offset >= NETDAM_REG_ADMIN_ARG0 && offset < NETDAM_REG_ADMIN_ARG0 + 8 * NETDAM_ADMIN_ARGS) {
        broker->arguments[(offset - NETDAM_REG_ADMIN_ARG0) / 8] = value;
    }
}

static int broker_interrupt_fd(void *opaque, unsigned vector)
{
    struct broker *broker = opaque;
    const uint64_t values[] = {vector};
    struct ndlib_broker_reply reply;
    unsigned count = 1;
    int rc;

    if (vector >= VECTORS_MAX) {
        return -EINVAL;
    }
    if (broker->vector_fds[vector] >= 0) {
        return broker->vector_fds[vector];
    }
    rc = ask(broker, NDLIB_BROKER_VECTOR, values, 1, &reply, &broker->vector_fds[vector], &count);
    if (rc != 0) {
        return rc;
    }
    return count == 1 ? broker->vector_fds[vector] : -ENOTSUP;
}

static int broker_take(void *opaque, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    struct broker *broker = opaque;
    const uint64_t values[] = {bytes, alignment};
    struct ndlib_broker_reply reply;
    int rc = ask(broker, NDLIB_BROKER_TAKE, values, 2, &reply, NULL, NULL);

    /* The caller is going to store there. */
    if (rc == 0 && (reply.values[0] > broker->memory_bytes || bytes > broker->memory_bytes - reply.values[0])) {
        return -ENODEV;
    }
    if (rc == 0) {
        *offset = reply.values[0];
    }
    return rc;
}

static int broker_give(void *opaque, uint64_t offset)
{
    struct ndlib_broker_reply reply;

    return ask(opaque, NDLIB_BROKER_GIVE, &offset, 1, &reply, NULL, NULL);
}

static int broker_next(void *opaque, uint64_t after, struct netdam_lease *lease)
{
    struct ndlib_broker_reply reply;
    int rc = ask(opaque, NDLIB_BROKER_LEASE, &after, 1, &reply, NULL, NULL);

    if (rc == 0) {
        *lease = (struct netdam_lease){
            .client = reply.values[0],
            .pid = (uint32_t)reply.values[1],
            .uid = (uint32_t)reply.values[2],
            .queue_pairs = (uint32_t)reply.values[3],
            .regions = (uint32_t)reply.values[4],
            .peers = (uint32_t)reply.values[5],
            .memory_bytes = reply.values[6],
        };
    }
    return rc;
}

static bool broker_is_gone(void *opaque)
{
    struct broker *broker = opaque;
    struct pollfd pollfd = {.fd = broker->fd, .events = POLLRDHUP};

    if (!atomic_load(&broker->gone) && poll(&pollfd, 1, 0) == 1 &&
        (pollfd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
        atomic_store(&broker->gone, true);
    }
    return atomic_load(&broker->gone);
}

static void broker_close(void *opaque)
{
    struct broker *broker = opaque;

    for (unsigned i = 0; i < NETDAM_QUEUE_PAIRS_MAX; i++) {
        unmap_doorbell(broker, i);
    }
    for (unsigned i = 0; i < VECTORS_MAX; i++) {
        if (broker->vector_fds[i] >= 0) {
            close(broker->vector_fds[i]);
        }
    }
    if (broker->memory) {
        munmap(broker->memory, broker->memory_bytes);
    }
    if (broker->registers_fd >= 0) {
        close(broker->registers_fd);
    }
    close(broker->fd);
    pthread_mutex_destroy(&broker->mutex);
    free(broker);
}

static const struct ndlib_backend_ops broker_ops = {
    .register_read = broker_register_read,
    .register_write = broker_register_write,
    .interrupt_fd = broker_interrupt_fd,
    .close = broker_close,
};

static const struct ndlib_lease_ops broker_lease_ops = {
    .take = broker_take,
    .give = broker_give,
    .next = broker_next,
    .is_gone = broker_is_gone,
};

/* Says hello and maps what comes back. */
static int attach(struct broker *broker, const char *path, bool observe, const struct ndlib_log *log)
{
    const uint64_t flags = observe ? NDLIB_BROKER_OBSERVE : 0;
    int fds[NDLIB_BROKER_DESCRIPTORS] = {-1, -1};
    unsigned count = NDLIB_BROKER_DESCRIPTORS;
    struct ndlib_broker_reply reply = {.version = NDLIB_BROKER_VERSION};
    int rc = ask(broker, NDLIB_BROKER_HELLO, &flags, 1, &reply, fds, &count);
    void *memory;

    if (rc == -EPROTONOSUPPORT) {
        ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: speaks version %u, this library %u", path, reply.version,
                  NDLIB_BROKER_VERSION);
        return rc;
    }
    if (rc != 0) {
        ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: refuses: %s", path,
                  rc == -ENODEV ? "it has closed the connection" : strerror(-rc));
        return rc;
    }
    if (observe) {
        for (unsigned i = 0; i < count; i++) {
            close(fds[i]);
        }
        return 0;
    }
    if (count == 2) {
        broker->registers_fd = fds[1];
        broker->registers_offset = reply.values[2];
    }
    if (count == 0 || reply.values[0] == 0 || reply.values[0] > SIZE_MAX / 2) {
        ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: gives no memory", path);
        if (count > 0) {
            close(fds[0]);
        }
        return -EIO;
    }
    memory = mmap(NULL, (size_t)reply.values[0], PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], (off_t)reply.values[1]);
    rc = memory == MAP_FAILED ? -errno : 0;
    close(fds[0]);
    if (rc != 0) {
        ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: cannot map on-board memory: %s", path, strerror(-rc));
        return rc;
    }
    broker->memory = memory;
    broker->memory_bytes = reply.values[0];
    return 0;
}

int ndlib_broker_open(int fd, const char *path, const struct netdam_open_config *config, const struct ndlib_log *log,
                      struct ndlib_backend *backend)
{
    struct broker *broker;
    int rc;

    if (config->tap) {
        ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: packets cannot be tapped", path);
        close(fd);
        return -ENOTSUP;
    }
    broker = calloc(1, sizeof(*broker));
    rc = broker ? -pthread_mutex_init(&broker->mutex, NULL) : -ENOMEM;
    if (rc != 0) {
        free(broker);
        close(fd);
        return rc;
    }
    broker->fd = fd;
    broker->registers_fd = -1;
    for (unsigned i = 0; i < VECTORS_MAX; i++) {
        broker->vector_fds[i] = -1;
    }
    rc = attach(broker, path, (config->flags & NETDAM_OPEN_OBSERVE) != 0, log);
    if (rc != 0) {
        broker_close(broker);
        return rc;
    }
    *backend = (struct ndlib_backend){
        .ops = &broker_ops,
        .opaque = broker,
        .memory = broker->memory,
        .memory_bytes = broker->memory_bytes,
        .lease = &broker_lease_ops,
    };
    snprintf(backend->name, sizeof(backend->name), "broker:%.56s", path);
    return 0;
}
