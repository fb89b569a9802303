/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PID 1 of the test guests: mounts what programs expect, loads the modules packed with it, runs the command that the
 * kernel command line names, reports its exit status on the second serial port and powers off.
 *
 * The first serial port carries the kernel's messages, the second only what the command and this program say, so that a
 * script can read it line by line:
 *
 *     netdam-up: SECONDS          the kernel's clock when the command starts
 *     ...                         the command's output; its input comes from the port too
 *     netdam-exit: STATUS         0-255 as a shell shows it (128 + N when signal N ended the command)
 *
 * Kernel command line: netdam.run="shell command". Without it a shell is started.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_LINE_BYTES 4096
#define EXIT_NOT_RUN       127

struct mount_point {
    const char *type;
    const char *path;
};

static const struct mount_point mount_points[] = {
    {"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
};

static void mount_all(void)
{
    for (size_t i = 0; i < sizeof(mount_points) / sizeof(mount_points[0]); i++) {
        const struct mount_point *m = &mount_points[i];

        mkdir(m->path, 0755);
        /* EBUSY: the kernel has mounted /dev itself. */
        if (mount(m->type, m->path, m->type, 0, NULL) && errno != EBUSY) {
            printf("netdam-init: cannot mount %s: %s\n", m->path, strerror(errno));
        }
    }
}

/* Opens a serial port without echo or translation; -1 when there is no UART behind the name. */
static int open_port(const char *path)
{
    struct termios t;
    int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    if (tcgetattr(fd, &t)) {
        close(fd);
        return -1;
    }
    cfmakeraw(&t);
    t.c_cflag |= CLOCAL;
    cfsetspeed(&t, B115200);
    tcsetattr(fd, TCSANOW, &t);
    return fd;
}

static void attach_port(void)
{
    static const char *const names[] = {"/dev/ttyS1", "/dev/ttyS0", "/dev/console"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int fd = open_port(names[i]);

        if (fd >= 0) {
            dup2(fd, STDIN_FILENO);
            dup2(fd, STDOUT_FILENO);
            dup2(fd, STDERR_FILENO);
            if (fd > STDERR_FILENO) {
                close(fd);
            }
            return;
        }
    }
}

/* Copies the value of netdam.run to out; the kernel leaves the quotes around it in place. */
static bool find_command(char *out, size_t out_bytes)
{
    static const char key[] = "netdam.run=";
    char line[COMMAND_LINE_BYTES];
    ssize_t n;
    char *p, *end;
    int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    n = read(fd, line, sizeof(line) - 1);
    close(fd);
    if (n <= 0) {
        return false;
    }
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    for (p = line; (p = strstr(p, key)); p++) {
        /* "netdam.run=x" as well as netdam.run="x": the kernel allows either, and QEMU passes either on. */
        bool quoted = p > line && p[-1] == '"';

        if (p > line && p[-1] != ' ' && !quoted) {
            continue;
        }
        p += sizeof(key) - 1;
        if (!quoted && *p == '"') {
            quoted = true;
            p++;
        }
        end = p + strcspn(p, quoted ? "\"" : " ");
        *end = '\0';
        if (strlen(p) >= out_bytes) {
            return false;
        }
        memcpy(out, p, strlen(p) + 1);
        return true;
    }
    return false;
}

/* The list names modules in the order in which they depend on each other. */
static void load_modules(void)
{
    char path[512];
    FILE *list = fopen("/etc/netdam-modules", "re");

    if (!list) {
        return;
    }
    while (fgets(path, sizeof(path), list)) {
        int fd;

        path[strcspn(path, "\n")] = '\0';
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)) {
            printf("netdam-init: cannot load %s: %s\n", path, strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    fclose(list);
}

static void bring_loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return;
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

/*
 * The command gets a session but no controlling terminal: when the leader of a session that has one ends, the kernel
 * hangs the terminal up, and the exit status could not be reported on it any more.
 */
static void run_child(const char *command)
{
    setsid();
    clearenv();
    setenv("PATH", "/bin:/sbin:/usr/bin:/usr/sbin", 1);
    setenv("HOME", "/", 1);
    setenv("TERM", "dumb", 1);
    if (command) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    } else {
        execl("/bin/sh", "-sh", (char *)NULL);
    }
    printf("netdam-init: cannot start /bin/sh: %s\n", strerror(errno));
    fflush(stdout);
    _exit(EXIT_NOT_RUN);
}

/* Waits for the command; whatever else has lost its parent is reaped on the way. */
static int wait_for(pid_t command)
{
    for (;;) {
        int status;
        pid_t pid = wait(&status);

        if (pid == command) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (pid < 0 && errno != EINTR) {
            return EXIT_NOT_RUN;
        }
    }
}

int main(void)
{
    char command[COMMAND_LINE_BYTES];
    struct timespec now;
    bool have_command;
    int status = EXIT_NOT_RUN;
    pid_t pid;

    if (getpid() != 1) {
        fprintf(stderr, "netdam-init: this is a guest's PID 1\n");
        return 2;
    }
    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    attach_port();
    setvbuf(stdout, NULL, _IOLBF, 0);
    mount_all();
    load_modules();
    bring_loopback_up();

    have_command = find_command(command, sizeof(command));
    clock_gettime(CLOCK_BOOTTIME, &now);
    printf("netdam-up: %lld.%02ld\n", (long long)now.tv_sec, now.tv_nsec / 10000000);
    fflush(stdout);

    pid = fork();
    if (pid == 0) {
        run_child(have_command ? command : NULL);
    }
    if (pid > 0) {
        status = wait_for(pid);
    }

    /* What the command left running may not write behind the line that ends the report. */
    kill(-1, SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR) {
    }
    printf("\nnetdam-exit: %d\n", status);
    fflush(stdout);
    tcdrain(STDOUT_FILENO);
    sync();
    reboot(RB_POWER_OFF);
    for (;;) {
        pause();
    }
}
