/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread, one poll(2): takes each client's messages one at a time, answers at once or drops the client. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker.h"
#include "report.h"
#include "server.h"

/* Messages of one client before the others get their turn. */
#define MESSAGES_PER_TURN 16

/* Who has not said hello by then holds a place for nothing. */
#define HELLO_NS UINT64_C(5000000000)

/* When descriptors have run out, the listening socket stays readable: look again only after this. */
#define ACCEPT_PAUSE_NS UINT64_C(100000000)

/* In `poll` order: listening socket, stop, clients. */
#define FIXED 2

struct client {
    struct client *next; /* oldest first */
    int fd;
    struct ucred who;
    bool greeted;
    bool is_observer;
    const char *ending; /* why it is to be dropped, or NULL */
    uint64_t hello_until_ns;
    struct ndbroker_owner owner;
};

struct server {
    struct ndbroker_book *book;
    struct netdam_device *device;
    struct ndlib_share share;
    struct client *clients;
    unsigned clients_count;
    unsigned clients_max;
    uint64_t last_id;
    uint64_t accept_after_ns;
    bool device_gone;
    int listen_fd;
    int stop_fd;
};

/* How many values each type of request uses; 0: no such type, for each has some. */
static unsigned values_of(unsigned type)
{
#define VALUES(name, number, values, text) [NDLIB_BROKER_##name] = (values),
    static const uint8_t table[] = {NDLIB_BROKER_LIST(VALUES)};
#undef VALUES

    return type < sizeof(table) ? table[type] : 0;
}

/* Answers, with descriptors if there are any. Whoever has no room for it does not read what it asked for. */
static void answer(struct client *client, struct ndlib_broker_reply *reply, const int *fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(NDLIB_BROKER_DESCRIPTORS * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    reply->version = NDLIB_BROKER_VERSION;
    reply->bytes = sizeof(*reply);
    if (reply->descriptors > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(reply->descriptors * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(reply->descriptors * sizeof(int));
        memcpy(CMSG_DATA(head), fds, reply->descriptors * sizeof(int));
    }
    if (sendmsg(client->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(*reply)) {
        client->ending = errno == EAGAIN ? "does not read its answers" : "cannot be answered";
    }
}

static void hello(struct server *server, struct client *client, const struct ndlib_broker_request *request,
                  struct ndlib_broker_reply *reply, int *fds)
{
    if ((request->values[0] & ~(uint64_t)NDLIB_BROKER_OBSERVE) != 0) {
        reply->error = -EINVAL;
        return;
    }
    client->greeted = true;
    client->is_observer = (request->values[0] & NDLIB_BROKER_OBSERVE) != 0;
    reply->values[0] = server->device->backend.memory_bytes;
    memcpy(reply->name, server->device->backend.name, sizeof(reply->name));
    if (client->is_observer) {
        return;
    }
    reply->values[1] = server->share.memory_offset;
    fds[reply->descriptors++] = server->share.memory_fd;
    if (server->share.registers_fd >= 0) {
        reply->values[2] = server->share.registers_offset;
        fds[reply->descriptors++] = server->share.registers_fd;
    }
    ndbroker_say_limited("client %llu (pid %d, uid %u, gid %u): connected", (unsigned long long)client->owner.id,
                         (int)client->who.pid, (unsigned)client->who.uid, (unsigned)client->who.gid);
}

static void lease(const struct server *server, uint64_t after, struct ndlib_broker_reply *reply)
{
    const struct client *client = server->clients;

    while (client && (client->owner.id <= after || !client->greeted || client->is_observer)) {
        client = client->next;
    }
    if (!client) {
        reply->error = -ENOENT;
        return;
    }
    reply->values[0] = client->owner.id;
    reply->values[1] = (uint64_t)client->who.pid;
    reply->values[2] = client->who.uid;
    reply->values[3] = client->owner.queue_pairs;
    reply->values[4] = client->owner.regions;
    reply->values[5] = client->owner.peers;
    reply->values[6] = client->owner.memory_bytes;
}

/* Carries out one well-formed request after HELLO. */
static void execute(struct server *server, struct client *client, const struct ndlib_broker_request *request,
                    struct ndlib_broker_reply *reply, int *fds)
{
    const uint64_t *values = request->values;

    if (client->is_observer && request->type != NDLIB_BROKER_READ && request->type != NDLIB_BROKER_LEASE) {
        reply->error = -EPERM;
        return;
    }
    switch (request->type) {
    case NDLIB_BROKER_READ:
        reply->values[0] = ndbroker_read(server->book, values[0], values[1]);
        break;
    case NDLIB_BROKER_ADMIN:
        reply->values[0] = ndbroker_admin(server->book, &client->owner, values[0], values + 1, reply->values + 1);
        server->device_gone =
            reply->values[0] == UINT32_MAX && ndlib_read(server->device, NETDAM_REG_ID, 4) != NETDAM_ID;
        break;
    case NDLIB_BROKER_TAKE:
        reply->error = ndbroker_take(server->book, &client->owner, values[0], values[1], &reply->values[0]);
        break;
    case NDLIB_BROKER_GIVE:
        reply->error = ndbroker_give(server->book, &client->owner, values[0]);
        break;
    case NDLIB_BROKER_VECTOR:
        fds[0] = ndbroker_vector(server->book, &client->owner, values[0]);
        reply->error = fds[0] < 0 ? fds[0] : 0;
        reply->descriptors = fds[0] < 0 ? 0 : 1;
        break;
    case NDLIB_BROKER_LEASE:
        lease(server, values[0], reply);
        break;
    default:
        break;
    }
}

/* NULL, or what is wrong with a request whose length is right. */
static const char *find_fault(const struct client *client, const struct ndlib_broker_request *request)
{
    unsigned used = values_of(request->type);

    if (request->bytes != sizeof(*request)) {
        return "sent a message with a false length";
    }
    if (used == 0) {
        return "sent a message of unknown type";
    }
    for (unsigned i = used; i < NDLIB_BROKER_VALUES; i++) {
        if (request->values[i] != 0) {
            return "sent a message with undefined values";
        }
    }
    if ((request->type == NDLIB_BROKER_HELLO) == client->greeted) {
        return client->greeted ? "said hello twice" : "did not say hello first";
    }
    return NULL;
}

static void take_request(struct server *server, struct client *client, const struct ndlib_broker_request *request)
{
    struct ndlib_broker_reply reply = {.type = request->type};
    int fds[NDLIB_BROKER_DESCRIPTORS];

    /* The first two fields are the same in all versions, so the other end can be told. */
    if (request->version != NDLIB_BROKER_VERSION) {
        reply.error = -EPROTONOSUPPORT;
        answer(client, &reply, fds);
        client->ending = "speaks another version";
        return;
    }
    client->ending = find_fault(client, request);
    if (client->ending) {
        return;
    }
    if (request->type == NDLIB_BROKER_DOORBELL) {
        if (!client->is_observer) {
            ndbroker_doorbell(server->book, &client->owner, request->values[0]);
        }
        return;
    }
    if (request->type == NDLIB_BROKER_HELLO) {
        hello(server, client, request, &reply, fds);
    } else {
        execute(server, client, request, &reply, fds);
    }
    answer(client, &reply, fds);
}

static void take_messages(struct server *server, struct client *client)
{
    for (int i = 0; i < MESSAGES_PER_TURN && !client->ending; i++) {
        struct ndlib_broker_request request = {0};
        struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
        /* No room for descriptors: the kernel closes those that come. */
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t bytes = recvmsg(client->fd, &message, MSG_DONTWAIT);

        if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (bytes <= 0) {
            /* End of file; a message of no bytes looks the same, and nobody sends one. */
            client->ending = bytes < 0 ? "failed" : "left";
        } else if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
            client->ending = "sent a message that is too long, or descriptors";
        } else if (bytes != (ssize_t)sizeof(request)) {
            client->ending = "sent a message that is too short";
        } else {
            take_request(server, client, &request);
        }
    }
}

static void drop(struct server *server, struct client **link)
{
    struct client *client = *link;
    struct ndbroker_owner had = client->owner;
    bool good = ndbroker_release(server->book, &client->owner);

    if (!client->is_observer || strcmp(client->ending, "left") != 0) {
        ndbroker_say_limited("client %llu (pid %d): %s; took back %u queue pairs, %u regions, %u peers, %llu bytes%s",
                             (unsigned long long)had.id, (int)client->who.pid, client->ending, had.queue_pairs,
                             had.regions, had.peers, (unsigned long long)had.memory_bytes,
                             good ? "" : ", but the device keeps some: its memory is lost until it is reset");
    }
    close(client->fd);
    *link = client->next;
    free(client);
    server->clients_count--;
}

static void accept_client(struct server *server)
{
    struct client *client;
    struct client **link;
    socklen_t bytes = sizeof(client->who);
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            ndbroker_say_limited("cannot accept a client: %s", strerror(errno));
            server->accept_after_ns = ndlib_now_ns() + ACCEPT_PAUSE_NS;
        }
        return;
    }
    client = server->clients_count < server->clients_max ? calloc(1, sizeof(*client)) : NULL;
    if (!client || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &client->who, &bytes) != 0) {
        ndbroker_say_limited("a client was turned away: %s",
                             server->clients_count < server->clients_max ? "out of memory" : "there are too many");
        free(client);
        close(fd);
        return;
    }
    client->fd = fd;
    client->hello_until_ns = ndlib_now_ns() + HELLO_NS;
    client->owner.id = ++server->last_id;
    client->owner.is_privileged = client->who.uid == 0 || client->who.uid == geteuid();
    for (link = &server->clients; *link; link = &(*link)->next) {
    }
    *link = client;
    server->clients_count++;
}

/* Until when to sleep, in ms for poll(2): until the next hello is overdue, or accepting may be tried again. */
static int sleep_ms(const struct server *server, uint64_t now)
{
    uint64_t until = server->accept_after_ns > now ? server->accept_after_ns : UINT64_MAX;

    for (const struct client *client = server->clients; client; client = client->next) {
        if (!client->greeted && client->hello_until_ns < until) {
            until = client->hello_until_ns;
        }
    }
    if (until == UINT64_MAX) {
        return -1;
    }
    return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

/* One look at everybody. 1: go on, 0: told to stop, or -errno. */
static int turn(struct server *server, struct pollfd *polls)
{
    uint64_t now = ndlib_now_ns();
    nfds_t count = FIXED;
    struct client **link;

    /* A negative descriptor is not looked at. */
    polls[0] = (struct pollfd){.fd = server->accept_after_ns > now ? -1 : server->listen_fd, .events = POLLIN};
    polls[1] = (struct pollfd){.fd = server->stop_fd, .events = POLLIN};
    for (const struct client *client = server->clients; client; client = client->next) {
        polls[count++] = (struct pollfd){.fd = client->fd, .events = POLLIN};
    }
    if (poll(polls, count, sleep_ms(server, now)) < 0) {
        return errno == EINTR ? 1 : -errno;
    }
    if (polls[1].revents != 0) {
        return 0;
    }
    now = ndlib_now_ns();
    link = &server->clients;
    for (nfds_t i = FIXED; i < count; i++) {
        struct client *client = *link;

        if (polls[i].revents != 0) {
            take_messages(server, client);
        }
        if (!client->greeted && !client->ending && client->hello_until_ns <= now) {
            client->ending = "did not say hello in time";
        }
        if (client->ending) {
            drop(server, link);
        } else {
            link = &client->next;
        }
    }
    if (polls[0].revents != 0) {
        accept_client(server);
    }
    return 1;
}

int ndbroker_serve(struct ndbroker_book *book, struct netdam_device *device, unsigned clients_max, int listen_fd,
                   int stop_fd)
{
    struct server server = {
        .book = book, .device = device, .clients_max = clients_max, .listen_fd = listen_fd, .stop_fd = stop_fd};
    struct pollfd *polls = calloc((size_t)clients_max + FIXED, sizeof(*polls));
    int rc = polls ? device->backend.ops->share(device->backend.opaque, &server.share) : -ENOMEM;

    while (rc == 0) {
        rc = turn(&server, polls);
        if (rc <= 0) {
            break;
        }
        rc = server.device_gone ? -ENODEV : 0;
    }
    while (server.clients) {
        server.clients->ending = "ended with the broker";
        drop(&server, &server.clients);
    }
    free(polls);
    return rc;
}
