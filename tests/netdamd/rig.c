/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting netdamd and clients, and never leaving one behind. */
#define _GNU_SOURCE
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 5000000

static void nap(void)
{
    const struct timespec time = {.tv_nsec = NAP_NS};

    nanosleep(&time, NULL);
}

static time_t seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void build_path(char *path, size_t bytes, const char *name)
{
    const char *build = getenv("O");

    snprintf(path, bytes, "%s/host-driver/%s", build && build[0] ? build : "build", name);
}

void rig_open(struct rig *rig)
{
    memset(rig, 0, sizeof(*rig));
    snprintf(rig->directory, sizeof(rig->directory), "/tmp/netdamd-test-XXXXXX");
    assert_non_null(mkdtemp(rig->directory));
    snprintf(rig->socket, sizeof(rig->socket), "%s/socket", rig->directory);
    snprintf(rig->device, sizeof(rig->device), "broker:%s", rig->socket);
    snprintf(rig->log, sizeof(rig->log), "%s/log", rig->directory);
}

void rig_close(struct rig *rig)
{
    if (rig->pid > 0) {
        rig_end(rig, SIGKILL);
    }
    unlink(rig->socket);
    unlink(rig->log);
    assert_int_equal(rmdir(rig->directory), 0);
}

/* In a child: becomes the program. */
static void become(const char *name, const char *const *arguments)
{
    char path[256];

    build_path(path, sizeof(path), name);
    execv(path, (char *const *)(uintptr_t)arguments);
    dprintf(STDERR_FILENO, "cannot run %s\n", path);
    _exit(127);
}

static pid_t fork_tied(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(126);
        }
    }
    return pid;
}

void rig_start(struct rig *rig, const char *const *options)
{
    const char *arguments[32] = {"netdamd", "--device", "udp:127.0.0.1:0,memory=16M", "--socket", rig->socket};
    unsigned count = 5;

    while (options && *options) {
        arguments[count++] = *options++;
    }
    unlink(rig->log);
    rig->pid = fork_tied();
    if (rig->pid == 0) {
        int log = open(rig->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

        dup2(log, STDERR_FILENO);
        become("netdamd", arguments);
    }
    assert_true(rig_says(rig, "ready: "));
}

int rig_wait(pid_t pid)
{
    time_t until = seconds() + SOON_SECONDS;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (seconds() > until) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            fail_msg("process %d does not end", (int)pid);
        }
        nap();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int rig_end(struct rig *rig, int number)
{
    pid_t pid = rig->pid;

    rig->pid = 0;
    kill(pid, number);
    return rig_wait(pid);
}

int rig_run(const char *name, const char *const *arguments, char *text, size_t text_bytes)
{
    size_t taken = 0;
    ssize_t bytes;
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork_tied();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        become(name, arguments);
    }
    close(ends[1]);
    while (taken + 1 < text_bytes && (bytes = read(ends[0], text + taken, text_bytes - 1 - taken)) > 0) {
        taken += (size_t)bytes;
    }
    text[taken] = '\0';
    close(ends[0]);
    return rig_wait(pid);
}

bool rig_said(const struct rig *rig, const char *text)
{
    static char log[1 << 20];
    FILE *file = fopen(rig->log, "re");
    size_t bytes;

    if (!file) {
        return false;
    }
    bytes = fread(log, 1, sizeof(log) - 1, file);
    log[bytes] = '\0';
    fclose(file);
    return strstr(log, text) != NULL;
}

bool rig_says(const struct rig *rig, const char *text)
{
    time_t until = seconds() + SOON_SECONDS;

    while (!rig_said(rig, text)) {
        if (seconds() > until || (rig->pid > 0 && waitpid(rig->pid, NULL, WNOHANG | WNOWAIT) > 0)) {
            return false;
        }
        nap();
    }
    return true;
}

bool rig_wait_clients(struct netdam_device *observer, int count)
{
    time_t until = seconds() + SOON_SECONDS;

    while (netdam_leases(observer, NULL, 0) != count) {
        if (seconds() > until) {
            return false;
        }
        nap();
    }
    return true;
}

pid_t rig_fork(int (*body)(void *argument), void *argument)
{
    pid_t pid = fork_tied();

    if (pid == 0) {
        _exit(body(argument));
    }
    return pid;
}

int raw_connect(const struct rig *rig)
{
    const struct timeval limit = {.tv_sec = SOON_SECONDS};
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(name.sun_path, rig->socket, sizeof(rig->socket));
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
                    connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool raw_send(int fd, const void *bytes, size_t count)
{
    return send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

bool raw_request(int fd, unsigned type, const uint64_t *values, unsigned count)
{
    struct ndlib_broker_request request = {
        .version = NDLIB_BROKER_VERSION, .type = (uint16_t)type, .bytes = sizeof(request)};

    for (unsigned i = 0; i < count; i++) {
        request.values[i] = values[i];
    }
    return raw_send(fd, &request, sizeof(request));
}

bool raw_reply(int fd, struct ndlib_broker_reply *reply, int *fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(NDLIB_BROKER_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t bytes = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); bytes > 0 && head; head = CMSG_NXTHDR(&message, head)) {
        for (size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int one;

            memcpy(&one, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
            if (fds) {
                fds[i] = one;
            } else {
                close(one);
            }
        }
    }
    return bytes == (ssize_t)sizeof(*reply);
}

int raw_ask(int fd, unsigned type, const uint64_t *values, unsigned count, struct ndlib_broker_reply *reply)
{
    if (!raw_request(fd, type, values, count) || !raw_reply(fd, reply, NULL) || reply->type != type) {
        return -ENODEV;
    }
    return reply->error;
}

int raw_open(const struct rig *rig, uint64_t flags, struct ndlib_broker_reply *reply, int *fds)
{
    int fd = raw_connect(rig);

    assert_true(fd >= 0);
    assert_true(raw_request(fd, NDLIB_BROKER_HELLO, &flags, 1));
    assert_true(raw_reply(fd, reply, fds));
    assert_int_equal(reply->error, 0);
    return fd;
}

uint32_t raw_admin(int fd, uint64_t command, const uint64_t *arguments, unsigned count,
                   struct ndlib_broker_reply *reply)
{
    uint64_t values[1 + NETDAM_ADMIN_ARGS] = {command};

    memcpy(values + 1, arguments, count * sizeof(*arguments));
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_ADMIN, values, 1 + NETDAM_ADMIN_ARGS, reply), 0);
    return (uint32_t)reply->values[0];
}

bool raw_ends(int fd)
{
    time_t until = seconds() + SOON_SECONDS;
    char bytes[4096];
    ssize_t count;

    do {
        count = recv(fd, bytes, sizeof(bytes), 0);
    } while (count > 0 && seconds() <= until);
    return count == 0 || (count < 0 && errno == ECONNRESET);
}

bool raw_ends_mute(int fd)
{
    char byte;
    ssize_t count = recv(fd, &byte, 1, 0);

    return count == 0 || (count < 0 && errno == ECONNRESET);
}
