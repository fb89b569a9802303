/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-fabric ctl: sends lines to a control socket and prints the replies. */
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "netdam-fabric: %s: %s\n", what, why);
    return 1;
}

/* A request may be one word, too: the command. */
static json_t *request_of(const char *text)
{
    json_error_t error;
    json_t *request;

    if (text[0] != '{') {
        return json_pack("{s:s}", "command", text);
    }
    request = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (request == NULL) {
        fprintf(stderr, "netdam-fabric: %s: %s\n", text, error.text);
    }
    return request;
}

static int ask(FILE *stream, const char *text)
{
    json_t *request = request_of(text);
    json_t *reply;
    char *line = NULL;
    size_t room = 0;
    bool done;

    if (request == NULL) {
        return 2;
    }
    done = json_dumpf(request, stream, JSON_COMPACT) == 0 && fputc('\n', stream) != EOF && fflush(stream) == 0;
    json_decref(request);
    if (!done || getline(&line, &room, stream) <= 0) {
        free(line);
        return fail("control", "the fabric has gone");
    }
    fputs(line, stdout);
    reply = json_loads(line, 0, NULL);
    done = json_is_true(json_object_get(reply, "ok"));
    json_decref(reply);
    free(line);
    return done ? 0 : 1;
}

int ndfab_client(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int status = 0;
    FILE *stream;
    int fd;

    if (argc < 2) {
        fprintf(stderr, "netdam-fabric: usage: netdam-fabric ctl PATH COMMAND...\n");
        return 2;
    }
    if (strlen(argv[0]) >= sizeof(address.sun_path)) {
        return fail(argv[0], strerror(ENAMETOOLONG));
    }
    strcpy(address.sun_path, argv[0]);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        status = fail(argv[0], strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    stream = fdopen(fd, "r+");
    if (stream == NULL) {
        close(fd);
        return fail(argv[0], strerror(errno));
    }
    for (int i = 1; i < argc && status == 0; i++) {
        status = ask(stream, argv[i]);
    }
    fclose(stream);
    return status;
}
