/* SPDX-License-Identifier: BSD-3-Clause */
/* The other side of a control socket. Whoever answers there, it takes bounded time and memory. */
#include "fabric/request.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 15
#define ROOM_FIRST 16384u

int ndfab_connect(const char *path)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int error, fd;

    if (*path == 0 || strlen(path) >= sizeof(address.sun_path)) {
        errno = *path == 0 ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static int64_t clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool send_all(int fd, const char *data, size_t bytes)
{
    while (bytes != 0) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);

        if (sent < 0) {
            return false;
        }
        data += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

static bool send_request(int fd, const json_t *request)
{
    char *text = json_dumps(request, JSON_COMPACT);
    bool sent = text != NULL && send_all(fd, text, strlen(text)) && send_all(fd, "\n", 1);

    free(text);
    return sent;
}

/* Some bytes more, at most `room`. 0 at the end, or with errno EAGAIN when the time is over, which is for the whole reply. */
static size_t receive(int fd, char *data, size_t room, int64_t until_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int64_t left_ms = until_ms - clock_ms();
    int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
    ssize_t got;

    if (ready <= 0) {
        errno = ready == 0 ? EAGAIN : errno;
        return 0;
    }
    got = recv(fd, data, room, MSG_DONTWAIT);
    return got > 0 ? (size_t)got : 0;
}

/* The line, to be freed, without its end. NULL if there is none. */
static char *receive_line(int fd, size_t *bytes)
{
    int64_t until_ms = clock_ms() + (int64_t)PATIENCE_S * 1000;
    size_t room = 0, used = 0, got;
    char *line = NULL;

    do {
        if (used == room) {
            char *larger = room < NDFAB_REPLY_MAX ? realloc(line, room == 0 ? ROOM_FIRST : 2 * room) : NULL;

            if (larger == NULL) {
                errno = room < NDFAB_REPLY_MAX ? ENOMEM : EPROTO;
                break;
            }
            line = larger;
            room = room == 0 ? ROOM_FIRST : 2 * room;
        }
        got = receive(fd, line + used, room - used, until_ms);
        used += got;
        if (got != 0 && memchr(line + used - got, '\n', got) != NULL) {
            *bytes = used - 1;
            if (line[used - 1] == '\n' && memchr(line, '\n', *bytes) == NULL) {
                return line;
            }
            errno = EPROTO; /* something follows, which nobody has asked for */
            break;
        }
    } while (got != 0);
    free(line);
    return NULL;
}

json_t *ndfab_ask(int fd, json_t *request)
{
    json_t *reply = NULL;
    char *line = NULL;
    size_t bytes;

    errno = 0;
    /* Who does not take the request to its end may have said why. */
    if (send_request(fd, request) || errno == EPIPE || errno == ECONNRESET) {
        line = receive_line(fd, &bytes);
    }
    json_decref(request);
    if (line != NULL) {
        reply = json_loadb(line, bytes, 0, NULL);
        errno = reply == NULL ? EPROTO : 0;
    }
    free(line);
    return reply;
}

const char *ndfab_ask_failure(void)
{
    switch (errno) {
    case EAGAIN:
        return "no answer: the fabric is stopped, or others hold all connections";
    case EPROTO:
        return "what answers there is no fabric";
    default:
        return "the fabric has gone";
    }
}
