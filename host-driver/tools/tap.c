/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-tap: makes the card a network card for the kernel, too: a RAW queue pair on one side, a tap interface on the other. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <net/if_arp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

#include "common.h"
#include "hold_streams.h"
#include "netdam/wire.h"

const char *tool_name = "netdam-tap";

#define BUFFERS_DEFAULT 256u
#define BUFFERS_MAX     16384u
/* Frames in one direction before the other has its turn. */
#define BATCH 32u
/* An 802.1Q tag that another card has added. */
#define TAG_BYTES 4u
/* Without an interrupt both sides are looked at this often. */
#define TICK_MS 1

static const char help[] =
    "Usage: netdam-tap [OPTION]...\n"
    "Let the kernel use a NetDAM device as a network card, beside its NetDAM traffic: create a tap interface and "
    "carry\n"
    "Ethernet frames between it and the wire until SIGINT or SIGTERM. Prints a line when it is ready, and what was\n"
    "carried at the end and on SIGUSR1.\n"
    "\n"
    "  -d, --device DEVICE   pci, pci:ADDRESS, broker:SOCKET or udp:ADDR:PORT,wire=PATH:PEERPATH[,mtu=1500]...;\n"
    "                        default: $NETDAM_DEVICE, else pci\n"
    "  -i, --interface NAME  of the tap interface; %d becomes the first free number (default netdam%d)\n"
    "  -m, --mtu BYTES       of the tap interface, 576 to the device's MTU (default: that)\n"
    "  -n, --buffers N       frames on board in each direction, 2 to 16384 (default 256)\n"
    "  -p, --promiscuous     carry frames to and from other addresses, too: for a bridge\n"
    "      --no-reset        leave the card as it is: other processes use it already\n"
    "  -j, --json            print JSON\n"
    "  -h, --help            print this\n"
    "  -V, --version         print the version\n"
    "\n"
    "The interface has the device's MAC address, and is up; give it an address with ip(8).\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

enum { OPTION_NO_RESET = 256 };

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'}, {"interface", required_argument, NULL, 'i'},
    {"mtu", required_argument, NULL, 'm'},    {"buffers", required_argument, NULL, 'n'},
    {"promiscuous", no_argument, NULL, 'p'},  {"no-reset", no_argument, NULL, OPTION_NO_RESET},
    {"json", no_argument, NULL, 'j'},         {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
};

struct tap {
    const char *device_name;
    const char *wanted; /* name of the interface */
    uint64_t mtu;       /* 0: the device's */
    uint64_t buffers;
    bool promiscuous;
    bool no_reset;
    bool json;

    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_region *region;
    struct netdam_queue *queue;
    uint8_t *memory;       /* buffers to receive into, then as many to send from */
    uint32_t buffer_bytes; /* of each */
    uint32_t *idle;        /* buffers to send from that are not in use */
    uint32_t idle_count;
    int tap_fd;
    int signal_fd;
    char interface[IFNAMSIZ];

    uint64_t sent, sent_bytes; /* to the wire */
    uint64_t received, received_bytes;
    uint64_t refused; /* by the device: see netdam_raw_post() */
    uint64_t lost;    /* the interface did not take them, or the buffer was not good any more */
};

static uint32_t least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static struct netdam_local buffer_at(const struct tap *tap, uint32_t index)
{
    return (struct netdam_local){tap->region, (uint64_t)index * tap->buffer_bytes};
}

static int open_device(struct tap *tap)
{
    const struct netdam_open_config config = {.flags = tap->no_reset ? NETDAM_OPEN_NO_RESET : 0, .log = remember_error};
    struct netdam_queue_config queue = {.submission_depth = (uint32_t)tap->buffers,
                                        .receive_depth = (uint32_t)tap->buffers,
                                        .completion_depth = 2 * (uint32_t)tap->buffers,
                                        .type = NETDAM_QUEUE_RAW};
    uint64_t offset, bytes;
    int rc = netdam_open(tap->device_name, &config, &tap->device);

    if (rc == 0) {
        rc = netdam_query(tap->device, &tap->info);
    }
    if (rc != 0) {
        return device_failed(tap->device_name, rc);
    }
    if (tap->mtu > tap->info.mtu) {
        return misused("--mtu: %" PRIu64 " is more than the device's %u", tap->mtu, tap->info.mtu);
    }
    tap->mtu = tap->mtu != 0 ? tap->mtu : tap->info.mtu;
    tap->buffer_bytes = (NETDAM_ETHERNET_BYTES + TAG_BYTES + tap->info.mtu + 63) / 64 * 64;
    bytes = 2 * tap->buffers * tap->buffer_bytes;
    rc = netdam_alloc(tap->device, bytes, 0, &offset);
    if (rc != 0) {
        return failed("%s: %" PRIu64 " bytes for buffers: %s", tap->device_name, bytes, result_text(rc));
    }
    rc = netdam_region_create(tap->device, offset, bytes, NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE,
                              0, &tap->region);
    if (rc == 0) {
        rc = netdam_queue_create(tap->device, &queue, &tap->queue);
    }
    if (rc == -EOPNOTSUPP) {
        return failed("%s carries no ordinary frames", tap->device_name);
    }
    if (rc == 0) {
        rc = netdam_raw_steer(tap->queue, NETDAM_STEERING_DEFAULT, 0);
    }
    if (rc == 0 && tap->promiscuous) {
        rc = netdam_raw_steer(tap->queue, NETDAM_STEERING_PROMISCUOUS, 0);
    }
    if (rc == -EEXIST) {
        return failed("%s: another queue pair takes these frames already", tap->device_name);
    }
    tap->memory = rc == 0 ? netdam_region_pointer(tap->region) : NULL;
    return rc == 0 ? EXIT_OK : device_failed(tap->device_name, rc);
}

static int interface_failed(const struct tap *tap, const char *what)
{
    return failed("%s: %s: %s", tap->interface, what, strerror(errno));
}

/* With the device's address and this MTU, and up. */
static int set_interface(const struct tap *tap)
{
    struct ifreq request = {.ifr_flags = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const char *what = NULL;
    int rc = EXIT_OK;

    if (fd < 0) {
        return interface_failed(tap, "socket");
    }
    memcpy(request.ifr_name, tap->interface, IFNAMSIZ);
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    memcpy(request.ifr_hwaddr.sa_data, tap->info.mac, 6);
    if (ioctl(fd, SIOCSIFHWADDR, &request) != 0) {
        what = "MAC address";
    }
    request.ifr_mtu = (int)tap->mtu;
    if (!what && ioctl(fd, SIOCSIFMTU, &request) != 0) {
        what = "MTU";
    }
    if (!what && ioctl(fd, SIOCGIFFLAGS, &request) == 0) {
        request.ifr_flags |= IFF_UP;
    }
    if (!what && ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        what = "up";
    }
    if (what) {
        rc = interface_failed(tap, what);
    }
    close(fd);
    return rc;
}

static int open_interface(struct tap *tap)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};

    strcpy(tap->interface, tap->wanted);
    strcpy(request.ifr_name, tap->wanted);
    tap->tap_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap->tap_fd < 0) {
        return failed("/dev/net/tun: %s", strerror(errno));
    }
    if (ioctl(tap->tap_fd, TUNSETIFF, &request) != 0) {
        return interface_failed(tap, "cannot create it");
    }
    memcpy(tap->interface, request.ifr_name, IFNAMSIZ);
    return set_interface(tap);
}

/* Posts a buffer that frames are received into. */
static int post_buffer(struct tap *tap, uint32_t index)
{
    const struct netdam_receive receive = {
        .user_data = index, .local = buffer_at(tap, index), .length = tap->buffer_bytes};
    int rc = netdam_post_receive(tap->queue, &receive, 1);

    return rc < 0 ? rc : 0;
}

static int prepare_buffers(struct tap *tap)
{
    int rc = 0;

    tap->idle = malloc(tap->buffers * sizeof(*tap->idle));
    if (!tap->idle) {
        return failed("out of memory");
    }
    for (uint32_t i = 0; rc == 0 && i < tap->buffers; i++) {
        rc = post_buffer(tap, i);
        tap->idle[tap->idle_count++] = (uint32_t)tap->buffers + i;
    }
    return rc == 0 ? EXIT_OK : device_failed(tap->device_name, rc);
}

/* A frame from the wire goes to the kernel, straight out of on-board memory. */
static int take_frame(struct tap *tap, const struct netdam_completion *completion)
{
    uint32_t index = (uint32_t)completion->user_data;
    uint32_t bytes = least(completion->length, tap->buffer_bytes);

    /* An interface that is down, or full, takes nothing: a loss as on any wire. */
    if (completion->status == NETDAM_STATUS_OK &&
        write(tap->tap_fd, tap->memory + (size_t)index * tap->buffer_bytes, bytes) == (ssize_t)bytes) {
        tap->received++;
        tap->received_bytes += bytes;
    } else {
        tap->lost++;
    }
    return post_buffer(tap, index);
}

/* What has come from the wire, and what has left. Returns how much, or a negative errno value. */
static int take_completions(struct tap *tap)
{
    struct netdam_completion completions[BATCH];
    int count = netdam_poll(tap->queue, completions, BATCH);
    int rc = 0;

    for (int i = 0; i < count && rc == 0; i++) {
        const struct netdam_completion *completion = &completions[i];

        if ((completion->flags & NETDAM_COMPLETION_RECEIVE) != 0) {
            rc = take_frame(tap, completion);
            continue;
        }
        tap->idle[tap->idle_count++] = (uint32_t)completion->user_data;
        if (completion->status == NETDAM_STATUS_OK) {
            tap->sent++;
            tap->sent_bytes += completion->length;
        } else {
            tap->refused++;
        }
    }
    return rc < 0 ? rc : count;
}

/* Frames of the kernel, straight into on-board memory. Likewise. */
static int take_from_kernel(struct tap *tap)
{
    struct netdam_frame frames[BATCH];
    unsigned count = 0;
    int rc = 0;

    while (count < BATCH && tap->idle_count > 0) {
        uint32_t index = tap->idle[tap->idle_count - 1];
        ssize_t bytes = read(tap->tap_fd, tap->memory + (size_t)index * tap->buffer_bytes, tap->buffer_bytes);

        if (bytes <= 0) {
            rc = bytes == 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
            break;
        }
        tap->idle_count--;
        frames[count++] =
            (struct netdam_frame){.user_data = index, .local = buffer_at(tap, index), .length = (uint32_t)bytes};
    }
    for (unsigned posted = 0; posted < count;) {
        int now = netdam_raw_post(tap->queue, frames + posted, count - posted);

        /* The ring has a place for each buffer. */
        if (now <= 0) {
            return now < 0 ? now : -EIO;
        }
        posted += (unsigned)now;
    }
    return rc < 0 ? rc : (int)count;
}

static int print_statistics(const struct tap *tap)
{
    uint64_t dropped = 0;

    (void)netdam_counter_read(tap->device, NETDAM_COUNTER_RAW_DROPPED, &dropped);
    printf(tap->json ? "{\"event\": \"statistics\", \"sent_frames\": %" PRIu64 ", \"sent_bytes\": %" PRIu64
                       ", \"received_frames\": %" PRIu64 ", \"received_bytes\": %" PRIu64 ", \"refused\": %" PRIu64
                       ", \"lost\": %" PRIu64 ", \"dropped\": %" PRIu64 "}\n"
                     : "sent %" PRIu64 " frames, %" PRIu64 " bytes; received %" PRIu64 " frames, %" PRIu64
                       " bytes; refused %" PRIu64 ", lost %" PRIu64 ", dropped by the device %" PRIu64 "\n",
           tap->sent, tap->sent_bytes, tap->received, tap->received_bytes, tap->refused, tap->lost, dropped);
    return flush_output();
}

static int print_ready(const struct tap *tap)
{
    const uint8_t *mac = tap->info.mac;

    printf(tap->json ? "{\"event\": \"ready\", \"interface\": \"%s\", \"mac\": \"%02x:%02x:%02x:%02x:%02x:%02x\", "
                       "\"mtu\": %" PRIu64 ", \"device\": \"%s\"}\n"
                     : "%s: %02x:%02x:%02x:%02x:%02x:%02x, MTU %" PRIu64 ", on %s\n",
           tap->interface, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], tap->mtu, netdam_device_name(tap->device));
    return flush_output();
}

/* Sleeps until there is something to do. Returns the signal that has come, 0, or a negative errno value. */
static int sleep_until_due(struct tap *tap)
{
    struct pollfd fds[3] = {
        {.fd = tap->signal_fd, .events = POLLIN},
        /* Without a buffer there is nothing to be done with what the kernel has. */
        {.fd = tap->tap_fd, .events = tap->idle_count > 0 ? POLLIN : 0},
        {.fd = netdam_queue_fd(tap->queue), .events = POLLIN},
    };
    int armed = fds[2].fd >= 0 ? netdam_queue_arm(tap->queue) : 0;
    int timeout = armed == -EAGAIN ? 0 : fds[2].fd >= 0 ? -1 : TICK_MS;
    struct signalfd_siginfo signal;

    if (armed < 0 && armed != -EAGAIN) {
        return armed;
    }
    if (poll(fds, 3, timeout) < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    if ((fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        return -ENODEV; /* somebody has deleted the interface */
    }
    if (fds[0].revents != 0 && read(tap->signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
        return (int)signal.ssi_signo;
    }
    return 0;
}

/* Until a signal ends it. */
static int carry(struct tap *tap)
{
    for (;;) {
        int done = take_completions(tap);
        int taken = done < 0 ? done : take_from_kernel(tap);
        int due = taken < 0 ? taken : 0;

        /* Signals are looked at even while there is always something to do. */
        if (due == 0) {
            due = done > 0 || taken > 0 ? 0 : sleep_until_due(tap);
        }
        if (due == 0) {
            struct signalfd_siginfo signal;

            due = read(tap->signal_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal) ? (int)signal.ssi_signo : 0;
        }
        if (due < 0) {
            return failed("%s: %s", tap->interface, due == -ESTALE ? "the device was reset" : strerror(-due));
        }
        if (due == SIGUSR1 && print_statistics(tap) != EXIT_OK) {
            return EXIT_FAILED;
        }
        if (due == SIGINT || due == SIGTERM) {
            return EXIT_OK;
        }
    }
}

/* Returns an exit code with which to leave, or -1 to go on. */
static int parse_options(struct tap *tap, int argc, char **argv)
{
    int option;
    int rc = EXIT_OK;

    while (rc == EXIT_OK && (option = getopt_long(argc, argv, "+d:i:m:n:pjhV", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            tap->device_name = optarg;
            break;
        case 'i':
            tap->wanted = optarg;
            if (optarg[0] == '\0' || strlen(optarg) >= IFNAMSIZ || strchr(optarg, '/')) {
                rc = misused("--interface: \"%s\" is no name of an interface", optarg);
            }
            break;
        case 'm':
            if (!parse_size(optarg, &tap->mtu) || tap->mtu < 576 || tap->mtu > NETDAM_MTU_MAX) {
                rc = misused("--mtu: \"%s\" is no number from 576 to %u", optarg, NETDAM_MTU_MAX);
            }
            break;
        case 'n':
            if (!parse_size(optarg, &tap->buffers) || tap->buffers < 2 || tap->buffers > BUFFERS_MAX) {
                rc = misused("--buffers: \"%s\" is no number from 2 to %u", optarg, BUFFERS_MAX);
            }
            break;
        case 'p':
            tap->promiscuous = true;
            break;
        case OPTION_NO_RESET:
            tap->no_reset = true;
            break;
        case 'j':
            tap->json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_OK;
        case 'V':
            printf("netdam-tap %s\n", netdam_version());
            return EXIT_OK;
        default:
            return EXIT_USAGE;
        }
    }
    if (rc == EXIT_OK && optind != argc) {
        rc = misused("unexpected argument \"%s\"", argv[optind]);
    }
    return rc != EXIT_OK ? rc : -1;
}

static int run(struct tap *tap)
{
    int rc = open_device(tap);

    if (rc == EXIT_OK) {
        rc = open_interface(tap);
    }
    if (rc == EXIT_OK) {
        rc = prepare_buffers(tap);
    }
    if (rc == EXIT_OK) {
        rc = print_ready(tap);
    }
    if (rc == EXIT_OK) {
        rc = carry(tap);
        if (print_statistics(tap) != EXIT_OK) {
            rc = EXIT_FAILED;
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct tap tap = {
        .device_name = getenv("NETDAM_DEVICE"), .wanted = "netdam%d", .buffers = BUFFERS_DEFAULT, .tap_fd = -1};
    sigset_t signals;
    int rc;

    ndlib_hold_streams();
    rc = parse_options(&tap, argc, argv);
    if (rc != -1) {
        return rc;
    }
    tap.device_name = device_or(tap.device_name, "pci");
    /* Blocked before any thread exists, so that they arrive at the descriptor only. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    tap.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    rc = tap.signal_fd < 0 ? failed("signalfd: %s", strerror(errno)) : run(&tap);
    if (tap.tap_fd >= 0) {
        close(tap.tap_fd);
    }
    netdam_close(tap.device);
    free(tap.idle);
    return rc;
}
