/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket. Nobody who connects can make the fabric wait, or keep more than two bounded buffers: of each client one
 * line is answered at a time, and the next one when the reply has been sent.
 */
#include "control.h"
#include "request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE_MAX_BYTES 16384u

struct client {
    int fd; /* -1: free */
    char line[LINE_MAX_BYTES];
    size_t used;
    char *out;
    size_t out_bytes;
    size_t out_sent;
    bool closing; /* once everything is sent */
};

struct ndfab_control {
    struct ndfab_fabric *fabric;
    char *path;
    int fd;
    struct client clients[NDFAB_CONTROL_CLIENTS];
};

static struct ndfab_control *fail(struct ndfab_control *control, const char *path, int error)
{
    fprintf(stderr, "netdam-fabric: control %s: %s\n", path,
            error == EADDRINUSE ? "another program listens there, or it is no socket" : strerror(error));
    if (control != NULL) {
        if (control->fd >= 0) {
            close(control->fd);
        }
        free(control->path);
        free(control);
    }
    return NULL;
}

static bool is_stale(const struct sockaddr_un *address)
{
    struct stat status;
    bool refused;
    int fd;

    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

struct ndfab_control *ndfab_control_open(struct ndfab_fabric *fabric, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ndfab_control *control = calloc(1, sizeof(*control));
    mode_t mask;
    int error;

    if (control == NULL) {
        return fail(control, path, ENOMEM);
    }
    control->fd = -1;
    for (unsigned i = 0; i < NDFAB_CONTROL_CLIENTS; i++) {
        control->clients[i].fd = -1;
    }
    control->fabric = fabric;
    control->path = strdup(path);
    if (control->path == NULL || strlen(path) >= sizeof(address.sun_path)) {
        return fail(control, path, control->path == NULL ? ENOMEM : ENAMETOOLONG);
    }
    strcpy(address.sun_path, path);
    if (is_stale(&address)) {
        unlink(path);
    }
    control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->fd < 0) {
        return fail(control, path, errno);
    }
    /* Whoever can control the fabric can stop it and write files as its user: nobody else. */
    mask = umask(0177);
    error = bind(control->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ? errno : 0;
    umask(mask);
    if (error == 0 && listen(control->fd, NDFAB_CONTROL_CLIENTS) != 0) {
        error = errno;
        unlink(path);
    }
    return error != 0 ? fail(control, path, error) : control;
}

static void drop(struct client *client)
{
    close(client->fd);
    free(client->out);
    client->out = NULL;
    client->fd = -1;
}

void ndfab_control_close(struct ndfab_control *control)
{
    if (control == NULL) {
        return;
    }
    for (unsigned i = 0; i < NDFAB_CONTROL_CLIENTS; i++) {
        if (control->clients[i].fd >= 0) {
            drop(&control->clients[i]);
        }
    }
    close(control->fd);
    unlink(control->path);
    free(control->path);
    free(control);
}

static void send_out(struct client *client)
{
    while (client->out_sent < client->out_bytes) {
        ssize_t sent = send(client->fd, client->out + client->out_sent, client->out_bytes - client->out_sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                drop(client);
            }
            return;
        }
        client->out_sent += (size_t)sent;
    }
    free(client->out);
    client->out = NULL;
    client->out_bytes = 0;
    client->out_sent = 0;
    if (client->closing) {
        drop(client);
    }
}

/* Takes the reply over; the one before has been sent. */
static void reply(struct client *client, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    size_t bytes = text != NULL ? strlen(text) : 0;

    json_decref(object);
    if (text == NULL || bytes >= NDFAB_REPLY_MAX) {
        free(text);
        drop(client);
        return;
    }
    text[bytes] = '\n'; /* in place of its end */
    client->out = text;
    client->out_bytes = bytes + 1;
    send_out(client);
}

static char *end_of_line(const struct client *client)
{
    return memchr(client->line, '\n', client->used);
}

/* Answers the first line, if it is whole. */
static void answer(struct ndfab_control *control, struct client *client)
{
    const char *end = end_of_line(client);

    if (end != NULL) {
        size_t bytes = (size_t)(end - client->line);

        reply(client, ndfab_command(control->fabric, client->line, bytes));
        client->used -= bytes + 1;
        memmove(client->line, end + 1, client->used);
    } else if (client->used == sizeof(client->line)) {
        client->closing = true;
        client->used = 0;
        reply(client, json_pack("{s:b,s:s}", "ok", 0, "error", "a line of more than 16383 bytes"));
    }
}

static void serve(struct ndfab_control *control, struct client *client)
{
    ssize_t got;

    if (client->out_bytes != 0) {
        send_out(client);
    }
    if (client->fd < 0 || client->out_bytes != 0) {
        return;
    }
    if (end_of_line(client) == NULL) {
        got = recv(client->fd, client->line + client->used, sizeof(client->line) - client->used, MSG_DONTWAIT);
        if (got <= 0) {
            if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
                drop(client);
            }
            return;
        }
        client->used += (size_t)got;
    }
    answer(control, client);
}

void ndfab_control_serve(struct ndfab_control *control)
{
    if (control == NULL) {
        return;
    }
    for (unsigned i = 0; i < NDFAB_CONTROL_CLIENTS; i++) {
        struct client *client = &control->clients[i];

        if (client->fd < 0) {
            client->fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
            client->used = 0;
            client->out_bytes = 0;
            client->out_sent = 0;
            client->closing = false;
        }
        if (client->fd >= 0) {
            serve(control, client);
        }
    }
}

unsigned ndfab_control_fds(const struct ndfab_control *control, struct pollfd fds[NDFAB_CONTROL_FDS])
{
    unsigned count = 0;
    bool room = false;

    if (control == NULL) {
        return 0;
    }
    for (unsigned i = 0; i < NDFAB_CONTROL_CLIENTS; i++) {
        const struct client *client = &control->clients[i];

        room |= client->fd < 0;
        /* A line that waits here is answered as soon as the reply can be sent. */
        if (client->fd >= 0) {
            bool busy = client->out_bytes != 0 || end_of_line(client) != NULL;

            fds[count++] = (struct pollfd){.fd = client->fd, .events = busy ? POLLOUT : POLLIN};
        }
    }
    if (room) {
        fds[count++] = (struct pollfd){.fd = control->fd, .events = POLLIN};
    }
    return count;
}
