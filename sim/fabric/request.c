/* SPDX-License-Identifier: BSD-3-Clause */
/* The other side of a control socket. */
#include "fabric/request.h"

#include <errno.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 15

FILE *ndfab_connect(const char *path)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    FILE *stream = NULL;
    int error, fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return NULL;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        stream = fdopen(fd, "r+");
    }
    if (stream == NULL) {
        error = errno;
        close(fd);
        errno = error;
    }
    return stream;
}

json_t *ndfab_ask(FILE *stream, json_t *request)
{
    json_t *reply = NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t got = -1;
    int error;

    errno = 0;
    if (json_dumpf(request, stream, JSON_COMPACT) == 0 && fputc('\n', stream) != EOF && fflush(stream) == 0) {
        got = getline(&line, &room, stream);
    }
    error = got < 0 ? errno : 0;
    json_decref(request);
    if (got > 0) {
        reply = json_loadb(line, (size_t)got, 0, NULL);
    }
    free(line);
    errno = error;
    return reply;
}

const char *ndfab_ask_failure(void)
{
    return errno == EAGAIN ? "no answer: the fabric is stopped, or others hold all connections" : "the fabric has gone";
}
