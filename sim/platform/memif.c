/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif endpoint: its socket and connections, when to connect again, and what its owner calls. */
#define _GNU_SOURCE
#include "memif_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A server's clients, of which one is the peer or will be: whoever is the first to say all that is needed. */
#define CONNECTIONS 8

/* From the first message to a link: a peer that takes longer has to try again. */
#define HANDSHAKE_NS UINT64_C(5000000000)

/* A client tries again after this, after twice as long, and so on up to the limit. */
#define RETRY_FIRST_NS UINT64_C(20000000)
#define RETRY_LIMIT_NS UINT64_C(500000000)

/* Of one connection in one call of process. */
#define MESSAGES_AT_ONCE 64

#define NEVER UINT64_MAX

/* What epoll tells of. */
enum source {
    SOURCE_LISTEN = CONNECTIONS, /* below: that connection */
    SOURCE_TIMER,
    SOURCE_FRAMES,
};

struct ndsim_memif {
    struct memif_identity identity;
    struct sockaddr_un path;
    uint32_t frame_bytes;
    uint32_t buffer_bytes;
    bool shared_frames;
    void *log_opaque;
    void (*log)(void *opaque, enum ndsim_memif_level level, const char *line);

    int epoll_fd;
    int timer_fd;
    int listen_fd;
    uint64_t timer_ns;   /* what the timer is set to */
    uint64_t retry_ns;   /* a client: when to connect; a server that could not: when to accept; else NEVER */
    uint64_t retry_wait; /* and how long to wait after the next failure */
    bool failure_told;   /* a client's log is not filled with the same failure */

    struct memif_connection connections[CONNECTIONS];
    struct memif_connection *peer; /* whose link is up */
    struct memif_kicker kicker;
    struct ndsim_memif_statistics statistics;

    uint64_t *discard_counter; /* the frame between begin and end is lost and counted there; NULL: it is sent */
    bool blocked;
    uint64_t full_since_ns; /* 0: there was room */
    uint8_t *transmit_private;
    uint8_t *receive_private;
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void tell(const struct ndsim_memif *memif, enum ndsim_memif_level level, const char *what, const char *detail)
{
    char line[sizeof(memif->path.sun_path) + 2 * MEMIF_REASON_BYTES];

    if (memif->log != NULL) {
        snprintf(line, sizeof(line), "memif %s: %s%s%s", memif->path.sun_path, what, detail[0] != 0 ? ": " : "",
                 detail);
        memif->log(memif->log_opaque, level, line);
    }
}

/* 1: at once. */
static void set_timer(struct ndsim_memif *memif, uint64_t at_ns)
{
    struct itimerspec when = {0};

    if (at_ns == memif->timer_ns) {
        return;
    }
    memif->timer_ns = at_ns;
    if (at_ns != NEVER) {
        when.it_value.tv_sec = (time_t)(at_ns / UINT64_C(1000000000));
        when.it_value.tv_nsec = (long)(at_ns % UINT64_C(1000000000));
    }
    (void)timerfd_settime(memif->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int watch(struct ndsim_memif *memif, int fd, unsigned source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    return epoll_ctl(memif->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

/* Connections. */

static struct memif_connection *add_connection(struct ndsim_memif *memif, int fd)
{
    struct memif_connection *connection = NULL;
    unsigned i;

    for (i = 0; i < CONNECTIONS && connection == NULL; i++) {
        connection = memif->connections[i].state == MEMIF_STATE_FREE ? &memif->connections[i] : NULL;
    }
    if (connection == NULL || watch(memif, fd, (unsigned)(connection - memif->connections), EPOLLIN) != 0) {
        close(fd);
        return NULL;
    }
    memset(connection, 0, sizeof(*connection));
    connection->fd = fd;
    connection->state = MEMIF_STATE_HELLO;
    connection->deadline_ns = clock_ns() + HANDSHAKE_NS;
    connection->link = (struct memif_link){
        .client = memif->identity.client,
        .shared_frames = memif->shared_frames,
        .frame_bytes = memif->frame_bytes,
        .buffer_bytes = memif->buffer_bytes,
        .transmit = {.event_fd = -1},
        .receive = {.event_fd = -1},
        .transmit_private = memif->transmit_private,
        .receive_private = memif->receive_private,
        .statistics = &memif->statistics,
    };
    return connection;
}

static void retry_later(struct ndsim_memif *memif)
{
    memif->retry_ns = clock_ns() + memif->retry_wait;
    memif->retry_wait = memif->retry_wait < RETRY_LIMIT_NS / 2 ? 2 * memif->retry_wait : RETRY_LIMIT_NS;
}

/* The mapping goes here and nowhere else: never while a frame in it is with the owner. */
static void remove_connection(struct ndsim_memif *memif, struct memif_connection *connection)
{
    bool was_up = memif->peer == connection;
    bool at_fault = connection->reason[0] != 0;
    const char *what = !at_fault                     ? "the peer went away"
                       : connection->reason_is_peers ? "the peer disconnected"
                                                     : "disconnected the peer";

    if (was_up) {
        memif->peer = NULL;
        memif->statistics.disconnects++;
        memif->statistics.transmit_down += connection->link.pending_frames;
        memif->blocked = false;
        memif->full_since_ns = 0;
        (void)epoll_ctl(memif->epoll_fd, EPOLL_CTL_DEL, connection->link.receive.event_fd, NULL);
    } else {
        memif->statistics.refusals += at_fault;
    }
    memif->statistics.protocol_errors += at_fault && !connection->reason_is_peers;
    if (was_up || !memif->failure_told) {
        tell(memif, at_fault ? NDSIM_MEMIF_LOG_PEER : NDSIM_MEMIF_LOG_INFO, what, connection->reason);
    }
    memif->failure_told = memif->identity.client && !was_up;
    (void)epoll_ctl(memif->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    close(connection->fd);
    ndsim_memif_memory_release(&connection->link);
    connection->state = MEMIF_STATE_FREE;
    if (memif->identity.client) {
        memif->retry_wait = was_up ? RETRY_FIRST_NS : memif->retry_wait;
        retry_later(memif);
    }
}

static bool has_hung_up(const struct memif_connection *connection)
{
    struct pollfd state = {.fd = connection->fd};

    return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

/* Whether a server has no peer; one that has gone without our having noticed does not count. */
static bool is_vacant(void *opaque)
{
    struct ndsim_memif *memif = opaque;

    if (memif->peer != NULL && has_hung_up(memif->peer)) {
        remove_connection(memif, memif->peer);
    }
    return memif->peer == NULL;
}

static void refuse(struct ndsim_memif *memif, struct memif_connection *connection, const char *reason)
{
    ndsim_memif_control_disconnect(connection, reason);
    remove_connection(memif, connection);
}

static void bring_up(struct ndsim_memif *memif, struct memif_connection *connection)
{
    unsigned i;

    /* Edge-triggered, it needs no read(2), which could block if the peer reads first. */
    if (watch(memif, connection->link.receive.event_fd, SOURCE_FRAMES, EPOLLIN | EPOLLET) != 0) {
        ndsim_memif_control_disconnect(connection, "the event cannot be waited for");
        return;
    }
    memif->peer = connection;
    connection->deadline_ns = NEVER;
    memif->retry_wait = RETRY_FIRST_NS;
    memif->failure_told = false;
    memif->blocked = false;
    memif->full_since_ns = 0;
    memif->statistics.connects++;
    tell(memif, NDSIM_MEMIF_LOG_INFO, "link up", "");
    /* The others' memory is not kept for nothing. */
    for (i = 0; i < CONNECTIONS; i++) {
        if (memif->connections[i].state == MEMIF_STATE_SETUP) {
            refuse(memif, &memif->connections[i], "another was faster");
        }
    }
}

static void talk(struct ndsim_memif *memif, struct memif_connection *connection)
{
    unsigned messages;

    for (messages = 0; messages < MESSAGES_AT_ONCE && connection->state != MEMIF_STATE_FAILED; messages++) {
        if (!ndsim_memif_control_receive(connection, &memif->identity, is_vacant, memif)) {
            break;
        }
        if (connection->state == MEMIF_STATE_UP && memif->peer != connection) {
            bring_up(memif, connection);
        }
    }
    if (connection->state == MEMIF_STATE_FAILED) {
        remove_connection(memif, connection);
    }
}

/* Who goes first when somebody else comes: whoever has said nothing yet, and of those the one that has had most time. */
static bool goes_before(const struct memif_connection *connection, const struct memif_connection *other)
{
    if (other == NULL || connection->state != other->state) {
        return other == NULL || connection->state == MEMIF_STATE_HELLO;
    }
    return connection->deadline_ns < other->deadline_ns;
}

static void make_room(struct ndsim_memif *memif)
{
    struct memif_connection *first = NULL;
    unsigned i;

    for (i = 0; i < CONNECTIONS; i++) {
        struct memif_connection *connection = &memif->connections[i];

        if (connection->state == MEMIF_STATE_FREE) {
            return;
        }
        if (connection != memif->peer && goes_before(connection, first)) {
            first = connection;
        }
    }
    if (first != NULL) {
        refuse(memif, first, "others are waiting");
    }
}

/* One at a time: who has come before gets a chance to speak in between. */
static void accept_one(struct ndsim_memif *memif)
{
    int fd = accept4(memif->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct memif_connection *connection;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* They go on waiting, and would keep the owner awake. */
            (void)epoll_ctl(memif->epoll_fd, EPOLL_CTL_DEL, memif->listen_fd, NULL);
            retry_later(memif);
        }
        return;
    }
    memif->retry_wait = RETRY_FIRST_NS;
    make_room(memif);
    connection = add_connection(memif, fd);
    if (connection != NULL) {
        ndsim_memif_control_greet(connection, &memif->identity);
        if (connection->state == MEMIF_STATE_FAILED) {
            remove_connection(memif, connection);
        }
    }
}

static void listen_again(struct ndsim_memif *memif)
{
    memif->retry_ns = NEVER;
    if (watch(memif, memif->listen_fd, SOURCE_LISTEN, EPOLLIN) != 0) {
        retry_later(memif);
    }
}

static void connect_once(struct ndsim_memif *memif)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    memif->retry_ns = NEVER;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&memif->path, sizeof(memif->path)) != 0) {
        error = errno;
        if (!memif->failure_told) {
            tell(memif, NDSIM_MEMIF_LOG_INFO, "waits for a server", strerror(error));
            memif->failure_told = true;
        }
        /* So many wait to be let in that there is no room for another: others look for it too. */
        memif->retry_wait = error == EAGAIN ? RETRY_FIRST_NS : memif->retry_wait;
        close(fd);
        fd = -1;
    }
    if (fd < 0 || add_connection(memif, fd) == NULL) {
        retry_later(memif);
    }
}

/* Deadlines, and the earliest of what is to come. */
static void look_at_clock(struct ndsim_memif *memif)
{
    uint64_t now_ns = clock_ns();
    uint64_t next_ns = NEVER;
    unsigned i;

    if (memif->retry_ns <= now_ns) {
        if (memif->identity.client) {
            connect_once(memif);
        } else {
            listen_again(memif);
        }
    }
    for (i = 0; i < CONNECTIONS; i++) {
        struct memif_connection *connection = &memif->connections[i];

        if (connection->state != MEMIF_STATE_FREE && connection->link.broken != NULL) {
            refuse(memif, connection, connection->link.broken);
        } else if (connection->state != MEMIF_STATE_FREE && connection->deadline_ns <= now_ns) {
            refuse(memif, connection, "the handshake takes too long");
        }
    }
    for (i = 0; i < CONNECTIONS; i++) {
        if (memif->connections[i].state != MEMIF_STATE_FREE && memif->connections[i].deadline_ns < next_ns) {
            next_ns = memif->connections[i].deadline_ns;
        }
    }
    set_timer(memif, memif->retry_ns < next_ns ? memif->retry_ns : next_ns);
}

void ndsim_memif_process(struct ndsim_memif *memif)
{
    struct epoll_event events[CONNECTIONS + 3];
    int count = epoll_wait(memif->epoll_fd, events, CONNECTIONS + 3, 0);
    bool others = false;
    int i;

    for (i = 0; i < count; i++) {
        unsigned source = events[i].data.u32;

        if (source < CONNECTIONS) {
            /* It may have been removed since for another's sake. */
            if (memif->connections[source].state != MEMIF_STATE_FREE) {
                talk(memif, &memif->connections[source]);
            }
        } else if (source == SOURCE_LISTEN) {
            others = true;
        } else if (source == SOURCE_TIMER) {
            uint64_t expired;
            ssize_t got = read(memif->timer_fd, &expired, sizeof(expired));

            (void)got;
            memif->timer_ns = NEVER;
        }
    }
    if (others) {
        accept_one(memif); /* last: for it somebody may have to go who has just spoken */
    }
    if (count > 0) {
        look_at_clock(memif);
    }
}

/* Opening and closing. */

static bool set_text(char *to, size_t size, const char *from)
{
    size_t length = from != NULL ? strlen(from) : 0;
    size_t i;

    if (length >= size) {
        return false;
    }
    for (i = 0; i < size; i++) {
        to[i] = i < length ? from[i] : 0;
    }
    return true;
}

static bool configure(struct ndsim_memif *memif, const struct ndsim_memif_config *config)
{
    memif->identity.client = config->role == NDSIM_MEMIF_CLIENT;
    memif->identity.id = config->id;
    memif->identity.slots = config->slots != 0 ? config->slots : NDSIM_MEMIF_SLOTS_DEFAULT;
    memif->frame_bytes = config->frame_bytes != 0 ? config->frame_bytes : NDSIM_MEMIF_FRAME_DEFAULT;
    memif->buffer_bytes = config->buffer_bytes != 0 ? config->buffer_bytes : memif->frame_bytes;
    memif->shared_frames = config->shared_frames;
    memif->log = config->log;
    memif->log_opaque = config->log_opaque;
    memif->path.sun_family = AF_UNIX;
    /* An empty secret is one that somebody forgot. */
    return config->path != NULL && config->path[0] != 0 && (config->secret == NULL || config->secret[0] != 0) &&
           set_text(memif->path.sun_path, sizeof(memif->path.sun_path), config->path) &&
           set_text(memif->identity.secret, sizeof(memif->identity.secret), config->secret) &&
           set_text(memif->identity.name, sizeof(memif->identity.name),
                    config->name != NULL ? config->name : "netdam") &&
           (config->role == NDSIM_MEMIF_SERVER || config->role == NDSIM_MEMIF_CLIENT) && memif->identity.slots >= 2 &&
           memif->identity.slots <= NDSIM_MEMIF_SLOTS_MAX &&
           (memif->identity.slots & (memif->identity.slots - 1)) == 0 && memif->frame_bytes >= 64 &&
           memif->frame_bytes <= NDSIM_MEMIF_FRAME_MAX && memif->buffer_bytes >= 64 && memif->buffer_bytes <= 65535 &&
           ndsim_memif_memory_bytes(memif->identity.slots, memif->buffer_bytes) <= MEMIF_REGION_BYTES_MAX;
}

/* A socket that nobody listens on was left by a server that died. */
static int make_way(const struct sockaddr_un *path)
{
    struct stat status;
    int error;
    int fd;

    if (lstat(path->sun_path, &status) != 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return -EADDRINUSE;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    error = connect(fd, (const struct sockaddr *)path, sizeof(*path)) == 0 ? 0 : errno;
    close(fd);
    if (error != ECONNREFUSED) {
        return -EADDRINUSE;
    }
    return unlink(path->sun_path) == 0 || errno == ENOENT ? 0 : -errno;
}

static int open_listener(struct ndsim_memif *memif)
{
    int error = make_way(&memif->path);
    int fd;

    if (error != 0) {
        return error;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (bind(fd, (const struct sockaddr *)&memif->path, sizeof(memif->path)) != 0) {
        error = -errno;
        close(fd);
        return error;
    }
    memif->listen_fd = fd;
    if (listen(fd, CONNECTIONS) != 0) {
        return -errno;
    }
    return watch(memif, fd, SOURCE_LISTEN, EPOLLIN);
}

static int open_parts(struct ndsim_memif *memif)
{
    int error;

    memif->transmit_private = malloc(memif->frame_bytes);
    memif->receive_private = malloc(memif->frame_bytes);
    if (memif->transmit_private == NULL || memif->receive_private == NULL) {
        return -ENOMEM;
    }
    memif->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (memif->epoll_fd < 0) {
        return -errno;
    }
    memif->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (memif->timer_fd < 0) {
        return -errno;
    }
    error = watch(memif, memif->timer_fd, SOURCE_TIMER, EPOLLIN);
    if (error != 0) {
        return error;
    }
    ndsim_memif_kicker_open(&memif->kicker);
    if (!memif->identity.client) {
        return open_listener(memif);
    }
    memif->retry_ns = 1;
    set_timer(memif, 1);
    return 0;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void release(struct ndsim_memif *memif, bool abandon)
{
    unsigned i;

    for (i = 0; i < CONNECTIONS; i++) {
        if (memif->connections[i].state != MEMIF_STATE_FREE) {
            if (!abandon) {
                ndsim_memif_control_disconnect(&memif->connections[i], "closed");
            }
            close(memif->connections[i].fd);
            ndsim_memif_memory_release(&memif->connections[i].link);
        }
    }
    if (memif->listen_fd >= 0 && !abandon) {
        (void)unlink(memif->path.sun_path);
    }
    close_fd(memif->listen_fd);
    close_fd(memif->timer_fd);
    close_fd(memif->epoll_fd);
    ndsim_memif_kicker_close(&memif->kicker, abandon);
    free(memif->transmit_private);
    free(memif->receive_private);
    free(memif);
}

int ndsim_memif_open(const struct ndsim_memif_config *config, struct ndsim_memif **result)
{
    struct ndsim_memif *memif = calloc(1, sizeof(*memif));
    int error;

    if (memif == NULL) {
        return -ENOMEM;
    }
    if (!configure(memif, config)) {
        free(memif);
        return -EINVAL;
    }
    memif->epoll_fd = memif->timer_fd = memif->listen_fd = memif->kicker.file = -1;
    memif->timer_ns = memif->retry_ns = NEVER;
    memif->retry_wait = RETRY_FIRST_NS;
    error = open_parts(memif);
    if (error != 0) {
        release(memif, false);
        return error;
    }
    *result = memif;
    return 0;
}

void ndsim_memif_close(struct ndsim_memif *memif)
{
    if (memif != NULL) {
        release(memif, false);
    }
}

void ndsim_memif_abandon(struct ndsim_memif *memif)
{
    if (memif != NULL) {
        release(memif, true);
    }
}

int ndsim_memif_fd(const struct ndsim_memif *memif)
{
    return memif->epoll_fd;
}

/* Frames. */

static struct memif_link *link_of(const struct ndsim_memif *memif)
{
    return memif->peer != NULL && memif->peer->link.broken == NULL ? &memif->peer->link : NULL;
}

/* A broken link is taken down by process, which its owner is told to call by the descriptor. */
static void check_link(struct ndsim_memif *memif)
{
    if (memif->peer != NULL && memif->peer->link.broken != NULL) {
        memif->blocked = false;
        set_timer(memif, 1);
    }
}

bool ndsim_memif_link_up(const struct ndsim_memif *memif)
{
    return link_of(memif) != NULL;
}

static uint8_t *discard(struct ndsim_memif *memif, uint64_t *counter)
{
    memif->discard_counter = counter;
    return memif->transmit_private;
}

/* Full for the first time, or for too long? */
static uint8_t *no_room(struct ndsim_memif *memif)
{
    uint64_t now_ns = clock_ns();

    memif->statistics.transmit_full++;
    memif->full_since_ns = memif->full_since_ns != 0 ? memif->full_since_ns : now_ns;
    memif->blocked = now_ns - memif->full_since_ns < NDSIM_MEMIF_STALL_NS;
    return memif->blocked ? NULL : discard(memif, &memif->statistics.transmit_stalled);
}

uint8_t *ndsim_memif_transmit_begin(struct ndsim_memif *memif, size_t bytes)
{
    struct memif_link *link = link_of(memif);
    enum memif_room room = MEMIF_ROOM_BROKEN;
    uint8_t *frame = NULL;

    memif->blocked = false;
    memif->discard_counter = NULL;
    if (bytes == 0 || bytes > memif->frame_bytes) {
        return NULL;
    }
    if (link != NULL) {
        room = ndsim_memif_link_begin(link, bytes, &frame);
    }
    switch (room) {
    case MEMIF_ROOM_OK:
        memif->full_since_ns = 0;
        return frame;
    case MEMIF_ROOM_FULL:
        /* What waits for flush fills the ring too, and only leaves it when the peer knows of it. */
        ndsim_memif_flush(memif);
        return no_room(memif);
    case MEMIF_ROOM_NEVER:
        return discard(memif, &memif->statistics.transmit_too_long);
    default:
        check_link(memif);
        return discard(memif, &memif->statistics.transmit_down);
    }
}

void ndsim_memif_transmit_end(struct ndsim_memif *memif, size_t bytes)
{
    if (memif->discard_counter != NULL) {
        *memif->discard_counter += bytes != 0;
        memif->discard_counter = NULL;
        return;
    }
    if (memif->peer != NULL) {
        ndsim_memif_link_end(&memif->peer->link, bytes);
        check_link(memif);
    }
}

static void kick(struct ndsim_memif *memif, const struct memif_link *link)
{
    ndsim_memif_kick(&memif->kicker, link->transmit.event_fd);
    memif->statistics.transmit_kicks++;
}

void ndsim_memif_flush(struct ndsim_memif *memif)
{
    struct memif_link *link = link_of(memif);

    if (link != NULL && ndsim_memif_link_flush(link)) {
        kick(memif, link);
    }
}

bool ndsim_memif_blocked(const struct ndsim_memif *memif)
{
    return memif->blocked;
}

unsigned ndsim_memif_receive(struct ndsim_memif *memif, unsigned max, ndsim_memif_deliver deliver, void *opaque)
{
    struct memif_link *link = link_of(memif);
    unsigned taken;
    bool wake;

    if (link == NULL) {
        return 0;
    }
    taken = ndsim_memif_link_receive(link, max, deliver, opaque, &wake);
    if (wake) {
        kick(memif, link);
    }
    check_link(memif);
    return taken;
}

bool ndsim_memif_arm(struct ndsim_memif *memif)
{
    struct memif_link *link = link_of(memif);
    bool sleep;

    if (link == NULL) {
        return true;
    }
    ndsim_memif_link_mask(link, false);
    sleep = !ndsim_memif_link_waits(link) && !(memif->blocked && ndsim_memif_link_has_room(link));
    check_link(memif);
    return sleep;
}

void ndsim_memif_disarm(struct ndsim_memif *memif)
{
    struct memif_link *link = link_of(memif);

    if (link != NULL) {
        ndsim_memif_link_mask(link, true);
    }
}

void ndsim_memif_reset(struct ndsim_memif *memif)
{
    struct memif_link *link = link_of(memif);

    memif->blocked = false;
    if (link != NULL) {
        ndsim_memif_link_drop(link);
        check_link(memif);
    }
}

void ndsim_memif_get_statistics(const struct ndsim_memif *memif, struct ndsim_memif_statistics *statistics)
{
    *statistics = memif->statistics;
}
