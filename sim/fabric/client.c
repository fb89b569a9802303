/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-fabric ctl: sends commands to a control socket and prints the replies. */
#include "control.h"
#include "request.h"
#include "streams.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "netdam-fabric: %s: %s\n", what, why);
    return 1;
}

/* A request may be one word, too: the command. */
static json_t *request_of(const char *text)
{
    json_error_t error = {.text = "not UTF-8"};
    json_t *request =
        text[0] == '{' ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : json_pack("{s:s}", "command", text);

    if (request == NULL) {
        fprintf(stderr, "netdam-fabric: %s: %s\n", text, error.text);
    }
    return request;
}

static int ask(int fd, const char *text)
{
    json_t *request = request_of(text);
    json_t *reply;
    bool granted;

    if (request == NULL) {
        return 2;
    }
    reply = ndfab_ask(fd, request);
    if (reply == NULL) {
        return fail("control", ndfab_ask_failure());
    }
    granted = json_is_true(json_object_get(reply, "ok"));
    json_dumpf(reply, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(reply);
    return granted ? 0 : 1;
}

int ndfab_client(int argc, char **argv)
{
    int status = 0;
    int fd;

    if (argc < 2) {
        fprintf(stderr, "netdam-fabric: usage: netdam-fabric ctl PATH COMMAND...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    fd = ndfab_connect(argv[0]);
    if (fd < 0) {
        return fail(argv[0], errno == EAGAIN ? ndfab_ask_failure() : strerror(errno));
    }
    for (int i = 1; i < argc && status == 0; i++) {
        status = ask(fd, argv[i]);
    }
    close(fd);
    return ndsim_all_printed("netdam-fabric") || status != 0 ? status : 1;
}
