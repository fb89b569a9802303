/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts QEMU, speaks qtest and monitor over unix sockets with every wait bounded, and ends it by its process id. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "machine.h"

/* No answer within this is a failure; far more than a busy machine needs. */
#define MACHINE_WAIT_MS 60000

static const char *machine_qemu(void)
{
    const char *qemu = getenv("NETDAM_QEMU");

    return qemu != NULL ? qemu : "build/qemu/qemu-system-x86_64";
}

char *machine_text(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    assert_true(length >= 0);
    return text;
}

static int64_t machine_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool machine_wait(int fd, int64_t until_ms)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    int64_t left = until_ms - machine_now_ms();

    return poll(&poller, 1, left > 0 ? (int)left : 0) == 1;
}

static int machine_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* In the child: never returns, and dies with the test program. */
static void machine_exec(const char *const *arguments, const char *const *common, int error_fd)
{
    const char *all[MACHINE_ARGUMENTS_MAX + 1];
    size_t count = 0;
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    all[count++] = machine_qemu();
    while (*common != NULL && count < MACHINE_ARGUMENTS_MAX) {
        all[count++] = *common++;
    }
    while (*arguments != NULL && count < MACHINE_ARGUMENTS_MAX) {
        all[count++] = *arguments++;
    }
    all[count] = NULL;
    if (*arguments != NULL || null < 0) {
        _exit(126);
    }
    dup2(null, 0);
    dup2(null, 1);
    if (error_fd >= 0) {
        dup2(error_fd, 2);
    }
    execv(all[0], (char *const *)all);
    dprintf(2, "%s: %s\n", all[0], strerror(errno));
    _exit(127);
}

void machine_prepare(struct machine *m)
{
    memset(m, 0, sizeof(*m));
    m->qtest.fd = -1;
    m->monitor.fd = -1;
    snprintf(m->directory, sizeof(m->directory), "/tmp/netdam-device-XXXXXX");
    if (mkdtemp(m->directory) == NULL) {
        m->directory[0] = '\0';
        fail_msg("no temporary directory: %s", strerror(errno));
    }
}

static void machine_accept(struct machine *m, struct machine_stream *stream, int listener)
{
    int64_t until = machine_now_ms() + MACHINE_WAIT_MS;

    while (!machine_wait(listener, machine_now_ms() + 50)) {
        if (!machine_is_alive(m)) {
            fail_msg("%s ended at once", machine_qemu());
        }
        if (machine_now_ms() > until) {
            fail_msg("%s does not connect", machine_qemu());
        }
    }
    stream->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(stream->fd >= 0);
    close(listener);
}

static void machine_monitor_answer(struct machine *m, char line[MACHINE_LINE]);

void machine_start(struct machine *m, const char *const *arguments)
{
    char *qtest_path = machine_text("%s/qtest", m->directory);
    char *monitor_path = machine_text("%s/monitor", m->directory);
    const char *const common[] = {"-machine",
                                  "q35",
                                  "-accel",
                                  "qtest",
                                  "-m",
                                  "64M",
                                  "-nodefaults",
                                  "-display",
                                  "none",
                                  "-qtest",
                                  machine_text("unix:%s", qtest_path),
                                  "-qtest-log",
                                  "none",
                                  "-chardev",
                                  machine_text("socket,id=monitor,path=%s", monitor_path),
                                  "-mon",
                                  "chardev=monitor,mode=control",
                                  "-L",
                                  "/usr/share/seabios",
                                  "-L",
                                  "/usr/share/qemu",
                                  NULL};
    int qtest_listener = machine_listen(qtest_path);
    int monitor_listener = machine_listen(monitor_path);
    char *error_path = machine_text("%s/stderr", m->directory);
    int error_fd = open(error_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char greeting[MACHINE_LINE];

    m->pid = fork();
    assert_true(m->pid >= 0);
    if (m->pid == 0) {
        machine_exec(arguments, common, error_fd);
    }
    close(error_fd);
    free(error_path);
    machine_accept(m, &m->monitor, monitor_listener);
    machine_accept(m, &m->qtest, qtest_listener);
    machine_monitor_answer(m, greeting);
    machine_monitor(m, NULL, "{\"execute\": \"qmp_capabilities\"}\n");
    free(qtest_path);
    free(monitor_path);
}

bool machine_is_alive(struct machine *m)
{
    if (m->pid > 0 && waitpid(m->pid, NULL, WNOHANG) == m->pid) {
        m->pid = 0;
    }
    return m->pid > 0;
}

/* SIGTERM first, so that QEMU ends in order (which is part of the test), but not for ever. */
static void machine_end_process(struct machine *m)
{
    int64_t until = machine_now_ms() + 10000;

    if (!machine_is_alive(m)) {
        return;
    }
    kill(m->pid, SIGTERM);
    while (machine_is_alive(m) && machine_now_ms() < until) {
        poll(NULL, 0, 5);
    }
    if (m->pid > 0) {
        kill(m->pid, SIGKILL);
        waitpid(m->pid, NULL, 0);
        m->pid = 0;
    }
}

static void machine_remove_directory(const char *directory)
{
    pid_t pid = fork();

    if (pid == 0) {
        execlp("rm", "rm", "-rf", "--", directory, (char *)NULL);
        _exit(127);
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
    }
}

/* As comments of the test's output. */
static void machine_show_errors(const struct machine *m)
{
    char *path = machine_text("%s/stderr", m->directory);
    FILE *file = fopen(path, "r");
    char line[MACHINE_LINE];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        printf("# %s", line);
    }
    if (file != NULL) {
        fclose(file);
    }
    free(path);
}

void machine_stop(struct machine *m)
{
    if (m->qtest.fd >= 0) {
        close(m->qtest.fd);
        m->qtest.fd = -1;
    }
    machine_end_process(m);
    if (m->monitor.fd >= 0) {
        close(m->monitor.fd);
        m->monitor.fd = -1;
    }
    if (m->directory[0] != '\0') {
        machine_show_errors(m);
        machine_remove_directory(m->directory);
        m->directory[0] = '\0';
    }
}

int machine_run_to_end(struct machine *m, const char *const *arguments, char *output, size_t output_bytes)
{
    const char *const common[] = {
        "-machine",           "q35", "-accel",          "qtest", "-m", "64M", "-nodefaults", "-display", "none", "-L",
        "/usr/share/seabios", "-L",  "/usr/share/qemu", NULL};
    unsigned patience_ms = m->patience_ms != 0 ? m->patience_ms : 10000;
    int64_t until = machine_now_ms() + (m->patience_ms != 0 ? m->patience_ms : MACHINE_WAIT_MS);
    size_t fill = 0;
    int pipe_fd[2];
    int status = 0;

    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    m->pid = fork();
    assert_true(m->pid >= 0);
    if (m->pid == 0) {
        machine_exec(arguments, common, pipe_fd[1]);
    }
    close(pipe_fd[1]);
    while (fill + 1 < output_bytes && machine_wait(pipe_fd[0], until)) {
        ssize_t got = read(pipe_fd[0], output + fill, output_bytes - 1 - fill);

        if (got <= 0) {
            break;
        }
        fill += (size_t)got;
        /* A machine that wrongly starts is not waited for to the end. */
        until = machine_now_ms() + patience_ms;
    }
    output[fill] = '\0';
    close(pipe_fd[0]);
    until = machine_now_ms() + patience_ms;
    while (waitpid(m->pid, &status, WNOHANG) == 0) {
        if (machine_now_ms() > until) {
            machine_end_process(m);
            return -1;
        }
        poll(NULL, 0, 5);
    }
    m->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

static void machine_send(struct machine *m, struct machine_stream *stream, const char *line)
{
    size_t bytes = strlen(line);

    if (send(stream->fd, line, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) {
        fail_msg("QEMU is gone (alive: %d) at: %s", machine_is_alive(m), line);
    }
}

static void machine_receive(struct machine *m, struct machine_stream *stream)
{
    ssize_t got;

    if (stream->fill == sizeof(stream->buffer) || !machine_wait(stream->fd, machine_now_ms() + MACHINE_WAIT_MS)) {
        fail_msg("QEMU does not answer (alive: %d)", machine_is_alive(m));
    }
    got = read(stream->fd, stream->buffer + stream->fill, sizeof(stream->buffer) - stream->fill);
    if (got <= 0) {
        fail_msg("QEMU is gone (alive: %d)", machine_is_alive(m));
    }
    stream->fill += (size_t)got;
}

static void machine_receive_line(struct machine *m, struct machine_stream *stream, char line[MACHINE_LINE])
{
    char *end;
    size_t bytes;

    while ((end = memchr(stream->buffer, '\n', stream->fill)) == NULL) {
        machine_receive(m, stream);
    }
    bytes = (size_t)(end - stream->buffer);
    memcpy(line, stream->buffer, bytes);
    line[bytes] = '\0';
    stream->fill -= bytes + 1;
    memmove(stream->buffer, end + 1, stream->fill);
}

/* One command, one answer "OK value"; lines of another kind tell of interrupts and are skipped. */
static uint64_t machine_command(struct machine *m, const char *format, ...)
{
    char line[MACHINE_LINE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    machine_send(m, &m->qtest, line);
    do {
        machine_receive_line(m, &m->qtest, line);
    } while (strncmp(line, "IRQ", 3) == 0);
    if (strncmp(line, "OK", 2) != 0) {
        fail_msg("qtest answers: %s", line);
    }
    return line[2] == ' ' ? strtoull(line + 3, NULL, 0) : 0;
}

static char machine_suffix(unsigned bytes)
{
    return bytes == 1 ? 'b' : bytes == 2 ? 'w' : bytes == 4 ? 'l' : 'q';
}

uint64_t machine_read(struct machine *m, uint64_t address, unsigned bytes)
{
    return machine_command(m, "read%c 0x%" PRIx64 "\n", machine_suffix(bytes), address);
}

void machine_write(struct machine *m, uint64_t address, unsigned bytes, uint64_t value)
{
    machine_command(m, "write%c 0x%" PRIx64 " 0x%" PRIx64 "\n", machine_suffix(bytes), address, value);
}

uint32_t machine_in(struct machine *m, uint16_t port, unsigned bytes)
{
    return (uint32_t)machine_command(m, "in%c 0x%x\n", machine_suffix(bytes), port);
}

void machine_out(struct machine *m, uint16_t port, unsigned bytes, uint32_t value)
{
    machine_command(m, "out%c 0x%x 0x%x\n", machine_suffix(bytes), port, value);
}

static bool machine_has_memif(void)
{
    const char *name = program_invocation_short_name;
    const char *end = strstr(name, "-memif");

    return end != NULL && end[strlen("-memif")] == '\0';
}

static void machine_add_memif(struct machine *m, const char *card)
{
    assert_true(m->memif_count < 2);
    snprintf(m->memif_cards[m->memif_count++], sizeof(m->memif_cards[0]), "%s", card);
}

char *machine_wire(struct machine *m, const struct machine *place, unsigned end)
{
    if (!machine_has_memif()) {
        return machine_text("netdev=w%u", end);
    }
    machine_add_memif(m, end == 0 ? "nd0" : "nd1");
    return machine_text("memif=%s/link,role=%s", place->directory, end == 0 ? "server" : "client");
}

char *machine_wire_json(const struct machine *place, unsigned end)
{
    if (!machine_has_memif()) {
        return machine_text("\"netdev\": \"w%u\"", end);
    }
    return machine_text("\"memif\": \"%s/link\", \"role\": \"%s\"", place->directory, end == 0 ? "server" : "client");
}

char *machine_wire_alone(struct machine *m)
{
    if (!machine_has_memif()) {
        return machine_text("%s", "");
    }
    machine_add_memif(m, "nd");
    return machine_text(",memif=%s/link,role=server", m->directory);
}

/* Until the threads of all cards sleep; but one that always finds something to do is not waited for. */
static void machine_settle(struct machine *m)
{
    int64_t until = machine_now_ms() + 50;
    char answer[MACHINE_LINE];
    unsigned asleep = 0;

    while (asleep < m->memif_count && machine_now_ms() < until) {
        for (asleep = 0; asleep < m->memif_count; asleep++) {
            machine_monitor(m, answer,
                            "{\"execute\": \"qom-get\", \"arguments\": {\"path\": \"/machine/peripheral/%s\", "
                            "\"property\": \"asleep\"}}\n",
                            m->memif_cards[asleep]);
            /* An error: it is not plugged in. */
            if (strstr(answer, "false") != NULL) {
                break;
            }
        }
    }
}

void machine_step(struct machine *m, uint64_t ns)
{
    if (ns != 0) {
        machine_command(m, "clock_step %" PRIu64 "\n", ns);
    } else {
        /* Only a turn of the main loop: a clock that stands still is an error to QEMU 10. */
        (void)machine_in(m, 0x80, 1);
    }
    machine_settle(m);
}

/* Skips events. */
static void machine_monitor_answer(struct machine *m, char line[MACHINE_LINE])
{
    do {
        machine_receive_line(m, &m->monitor, line);
    } while (strstr(line, "\"event\"") != NULL);
}

void machine_monitor(struct machine *m, char answer[MACHINE_LINE], const char *format, ...)
{
    char line[MACHINE_LINE] = "";
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    machine_send(m, &m->monitor, line);
    machine_monitor_answer(m, line);
    if (answer != NULL) {
        memcpy(answer, line, MACHINE_LINE);
    } else if (strstr(line, "\"error\"") != NULL) {
        fail_msg("monitor: %s", line);
    }
}

uint64_t machine_property(struct machine *m, const char *path, const char *name)
{
    static const char start[] = "{\"return\": ";
    char answer[MACHINE_LINE];
    char *end;
    uint64_t value;

    machine_monitor(m, answer, "{\"execute\": \"qom-get\", \"arguments\": {\"path\": \"%s\", \"property\": \"%s\"}}\n",
                    path, name);
    if (strncmp(answer, start, sizeof(start) - 1) != 0) {
        fail_msg("%s of %s: %s", name, path, answer);
    }
    value = strtoull(answer + sizeof(start) - 1, &end, 10);
    assert_string_equal(end[0] == '}' ? "}" : end, "}");
    return value;
}
