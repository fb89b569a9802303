/* SPDX-License-Identifier: BSD-3-Clause */
/* netdamd: holds a device and leases queue pairs, regions, peers and on-board memory to processes. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "broker.h"
#include "listener.h"
#include "report.h"
#include "server.h"
#include "size.h"
#include "hold_streams.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

#define CLIENTS_DEFAULT 64u
#define CLIENTS_LIMIT   4096u

static const char help[] =
    "Usage: netdamd [OPTION]...\n"
    "Hold a NetDAM device and lease parts of it to processes that open it through a unix socket: queue pairs, "
    "regions,\n"
    "peers and on-board memory. What a process had is taken back when it ends, however it ends. Runs in the "
    "foreground,\n"
    "logs to standard error, ends on SIGTERM.\n"
    "\n"
    "This is no security boundary: every client maps all of on-board memory, and may get all of the registers. It "
    "keeps\n"
    "processes that mean well out of each other's way. Let only those you trust connect (--mode, --group).\n"
    "\n"
    "  -d, --device DEVICE      pci, pci:ADDRESS or udp:ADDR:PORT[,memory=64M][,mtu=1500][,queue-pairs=16];\n"
    "                           default: pci (the first card)\n"
    "  -s, --socket PATH        where to listen; default: /run/netdamd.sock\n"
    "  -m, --mode MODE          permissions of the socket, octal; default: 660\n"
    "  -g, --group GROUP        group of the socket, name or number; default: that of netdamd\n"
    "      --max-clients N      clients at once; default: 64\n"
    "      --max-queue-pairs N  for each client; default: no limit but the device's; likewise\n"
    "      --max-regions N\n"
    "      --max-peers N\n"
    "      --max-memory SIZE    on-board memory, in bytes or with K, M, G\n"
    "  -h, --help               print this\n"
    "  -V, --version            print the version\n"
    "\n"
    "Exit status: 0 ended by a signal, 1 failed, 2 wrong usage.\n";

enum {
    OPTION_CLIENTS = 256,
    OPTION_QUEUE_PAIRS,
    OPTION_REGIONS,
    OPTION_PEERS,
    OPTION_MEMORY,
};

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'},
    {"socket", required_argument, NULL, 's'},
    {"mode", required_argument, NULL, 'm'},
    {"group", required_argument, NULL, 'g'},
    {"max-clients", required_argument, NULL, OPTION_CLIENTS},
    {"max-queue-pairs", required_argument, NULL, OPTION_QUEUE_PAIRS},
    {"max-regions", required_argument, NULL, OPTION_REGIONS},
    {"max-peers", required_argument, NULL, OPTION_PEERS},
    {"max-memory", required_argument, NULL, OPTION_MEMORY},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

struct settings {
    const char *device;
    const char *socket;
    mode_t mode;
    gid_t group;
    uint32_t clients_max;
    struct ndbroker_limits limits;
};

static int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int misused(const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    ndbroker_say("%s (see netdamd --help)", text);
    return EXIT_USAGE;
}

static bool parse_count(const char *text, uint32_t most, uint32_t *count)
{
    uint64_t value;

    if (!ndlib_parse_size(text, &value) || value == 0 || value > most) {
        return false;
    }
    *count = (uint32_t)value;
    return true;
}

static bool parse_mode(const char *text, mode_t *mode)
{
    unsigned long value = 0;

    if (text[0] == '\0' || strspn(text, "01234567") != strlen(text) || strlen(text) > 4) {
        return false;
    }
    value = strtoul(text, NULL, 8);
    *mode = (mode_t)value;
    return value <= 0777;
}

static bool parse_group(const char *text, gid_t *id)
{
    const struct group *group;
    unsigned long long number;
    bool found = false;
    FILE *file;

    if (text[0] != '\0' && strspn(text, "0123456789") == strlen(text)) {
        errno = 0;
        number = strtoull(text, NULL, 10);
        *id = (gid_t)number;
        return errno == 0 && number < UINT32_MAX;
    }
    /* Not getgrnam(3), which a statically linked program has only where its very libc is installed. */
    file = fopen("/etc/group", "re");
    while (file && !found && (group = fgetgrent(file)) != NULL) {
        found = strcmp(group->gr_name, text) == 0;
        *id = group->gr_gid;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

/* Returns an exit code, or -1 to go on. */
static int parse_option(int option, struct settings *settings)
{
    bool good = true;

    switch (option) {
    case 'd':
        settings->device = optarg;
        break;
    case 's':
        settings->socket = optarg;
        break;
    case 'm':
        good = parse_mode(optarg, &settings->mode);
        break;
    case 'g':
        if (!parse_group(optarg, &settings->group)) {
            return misused("there is no group \"%s\"", optarg);
        }
        break;
    case OPTION_CLIENTS:
        good = parse_count(optarg, CLIENTS_LIMIT, &settings->clients_max);
        break;
    case OPTION_QUEUE_PAIRS:
        good = parse_count(optarg, UINT32_MAX, &settings->limits.queue_pairs);
        break;
    case OPTION_REGIONS:
        good = parse_count(optarg, UINT32_MAX, &settings->limits.regions);
        break;
    case OPTION_PEERS:
        good = parse_count(optarg, UINT32_MAX, &settings->limits.peers);
        break;
    case OPTION_MEMORY:
        good = ndlib_parse_size(optarg, &settings->limits.memory_bytes) && settings->limits.memory_bytes > 0;
        break;
    case 'h':
        fputs(help, stdout);
        return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
    case 'V':
        printf("netdamd %s\n", netdam_version());
        return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
    default:
        return EXIT_USAGE;
    }
    return good ? -1 : misused("\"%s\" is out of range", optarg);
}

/* A descriptor that becomes readable when netdamd is told to end; before any thread exists, so that all have the mask.
 */
static int open_stop(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return -errno;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const char *listen_text(int error)
{
    switch (error) {
    case -EADDRINUSE:
        return "another broker listens there";
    case -EEXIST:
        return "a file is there that is no socket";
    default:
        return strerror(-error);
    }
}

static int serve(const struct settings *settings, struct ndbroker_listener *listener, struct netdam_device *device,
                 int stop_fd)
{
    struct ndbroker_book *book;
    struct ndlib_share share;
    int rc;

    if (!device->backend.ops->share || device->backend.ops->share(device->backend.opaque, &share) != 0) {
        ndbroker_say("%s: its memory cannot be shared", netdam_device_name(device));
        return EXIT_FAILED;
    }
    rc = ndbroker_book_open(device, &settings->limits, &book);
    if (rc == 0) {
        ndbroker_say("ready: %s at %s", netdam_device_name(device), listener->path);
        rc = ndbroker_serve(book, device, settings->clients_max, listener->fd, stop_fd);
        ndbroker_book_close(book);
    }
    if (rc != 0) {
        ndbroker_say("%s: %s", netdam_device_name(device), strerror(-rc));
        return EXIT_FAILED;
    }
    ndbroker_say("ended");
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    const struct netdam_open_config config = {.log = ndbroker_library_line};
    struct settings settings = {
        .device = "pci",
        .socket = NDLIB_BROKER_SOCKET,
        .mode = 0660,
        .group = (gid_t)-1,
        .clients_max = CLIENTS_DEFAULT,
        .limits = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX},
    };
    struct ndbroker_listener listener;
    struct netdam_device *device;
    int stop_fd;
    int option;
    int rc;

    ndlib_hold_streams();
    while ((option = getopt_long(argc, argv, "+d:s:m:g:hV", options, NULL)) != -1) {
        rc = parse_option(option, &settings);
        if (rc >= 0) {
            return rc;
        }
    }
    if (optind != argc) {
        return misused("unexpected argument \"%s\"", argv[optind]);
    }
    stop_fd = open_stop();
    if (stop_fd < 0) {
        ndbroker_say("cannot take signals: %s", strerror(errno));
        return EXIT_FAILED;
    }
    /* The socket first: it tells whether another broker has the device, before the device is reset. */
    rc = ndbroker_listen(&listener, settings.socket, settings.mode, settings.group);
    if (rc != 0) {
        ndbroker_say("%s: %s", settings.socket, listen_text(rc));
        return EXIT_FAILED;
    }
    rc = ndlib_open_direct(settings.device, &config, &device);
    if (rc != 0) {
        /* One line: the library's says more. */
        if (!ndbroker_library_erred()) {
            ndbroker_say("%s: %s", settings.device, strerror(-rc));
        }
        ndbroker_unlisten(&listener);
        return EXIT_FAILED;
    }
    rc = serve(&settings, &listener, device, stop_fd);
    ndbroker_unlisten(&listener);
    netdam_close(device);
    return rc;
}
