/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-stat: what a device counts, as changes and rates over an interval. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common.h"
#include "hold_streams.h"

const char *tool_name = "netdam-stat";

#define NS_PER_S UINT64_C(1000000000)

static const char help[] =
    "Usage: netdam-stat [OPTION]...\n"
    "Print what a NetDAM device counts: how much each counter has changed over an interval, and the rate per second.\n"
    "Changes nothing on a card, also while another process uses it.\n"
    "\n"
    "  -d, --device DEVICE     pci, pci:ADDRESS, broker:SOCKET or\n"
    "                          udp:ADDR:PORT[,memory=64M][,mtu=1500][,queue-pairs=16][,merge=on];\n"
    "                          default: $NETDAM_DEVICE, else pci (through a broker if one listens, else the first "
    "card)\n"
    "  -i, --interval SECONDS  between two samples, 0.001 to 86400 (default 1)\n"
    "  -c, --count N           stop after N samples (default: at SIGINT or SIGTERM)\n"
    "  -a, --all               print counters that have not changed, too\n"
    "  -j, --json              print one JSON object per line: at the start all totals, then each sample\n"
    "  -h, --help              print this\n"
    "  -V, --version           print the version\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'}, {"interval", required_argument, NULL, 'i'},
    {"count", required_argument, NULL, 'c'},  {"all", no_argument, NULL, 'a'},
    {"json", no_argument, NULL, 'j'},         {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},      {NULL, 0, NULL, 0},
};

struct watch {
    const char *device_name;
    uint64_t interval_ns;
    uint64_t count; /* 0: no end */
    bool all;
    bool json;
    struct netdam_device *device;
};

/* One more than the counters: bytes moved to or from main memory are a register of their own. */
#define VALUES                  (NETDAM_COUNTER_COUNT + 1)
#define VALUE_MAIN_MEMORY_BYTES NETDAM_COUNTER_COUNT

struct sample {
    uint64_t time_ns;
    unsigned counters; /* that this device has and this program can name */
    uint64_t values[VALUES];
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Those that say how many there are at the moment go down as well as up. */
static bool is_gauge(unsigned counter)
{
    return counter == NETDAM_COUNTER_LANES || counter == NETDAM_COUNTER_LANE_WINDOWS ||
           counter == NETDAM_COUNTER_LANE_BYTES;
}

/* Prints a name in lower case, padded to `width`. */
static void print_name(unsigned counter, int width)
{
    const char *name = counter == VALUE_MAIN_MEMORY_BYTES ? "MAIN_MEMORY_BYTES" : netdam_counter_name(counter);

    print_lower(name);
    printf("%*s", width > (int)strlen(name) ? width - (int)strlen(name) : 0, "");
}

static bool is_present(const struct sample *sample, unsigned counter)
{
    return counter < sample->counters || counter == VALUE_MAIN_MEMORY_BYTES;
}

/* Returns an exit code. */
static int take(struct watch *stat, struct sample *sample)
{
    struct netdam_device_info info;
    int rc = netdam_query(stat->device, &info);

    if (rc != 0) {
        return failed("%s: %s", netdam_device_name(stat->device), result_text(rc));
    }
    sample->time_ns = now_ns();
    sample->values[VALUE_MAIN_MEMORY_BYTES] = info.main_memory_bytes;
    sample->counters = info.counters < NETDAM_COUNTER_COUNT ? info.counters : NETDAM_COUNTER_COUNT;
    for (unsigned i = 0; i < sample->counters; i++) {
        rc = netdam_counter_read(stat->device, i, &sample->values[i]);
        if (rc != 0) {
            return failed("%s: counter %s: %s", netdam_device_name(stat->device), netdam_counter_name(i),
                          result_text(rc));
        }
    }
    return EXIT_OK;
}

/* A device that was reset in between has started from 0. */
static bool was_reset(const struct sample *before, const struct sample *after)
{
    for (unsigned i = 0; i < VALUES; i++) {
        if (is_present(after, i) && !is_gauge(i) && after->values[i] < before->values[i]) {
            return true;
        }
    }
    return false;
}

static void print_start(const struct watch *stat, const struct sample *first)
{
    const char *separator = "";

    if (!stat->json) {
        printf("%s, every %g s\n", netdam_device_name(stat->device), (double)stat->interval_ns / (double)NS_PER_S);
        printf("%10s  %-22s %20s %14s %14s\n", "time s", "counter", "total", "change", "per second");
        return;
    }
    printf("{\"event\": \"start\", \"device\": \"%s\", \"interval_ns\": %" PRIu64 ", \"totals\": {",
           netdam_device_name(stat->device), stat->interval_ns);
    for (unsigned i = 0; i < VALUES; i++) {
        if (is_present(first, i)) {
            printf("%s\"", separator);
            print_name(i, 0);
            printf("\": %" PRIu64, first->values[i]);
            separator = ", ";
        }
    }
    printf("}}\n");
}

static void print_sample(const struct watch *stat, uint64_t start_ns, const struct sample *before,
                         const struct sample *after)
{
    static const struct sample zero;
    double seconds = (double)(after->time_ns - before->time_ns) / (double)NS_PER_S;
    double time = (double)(after->time_ns - start_ns) / (double)NS_PER_S;
    bool reset = was_reset(before, after);
    bool empty = true;

    if (stat->json) {
        printf("{\"event\": \"sample\", \"time_ns\": %" PRIu64 ", \"elapsed_ns\": %" PRIu64
               ", \"reset\": %s, \"counters\": {",
               after->time_ns - start_ns, after->time_ns - before->time_ns, reset ? "true" : "false");
    } else if (reset) {
        printf("%10.3f  the device was reset\n", time);
    }
    if (reset) {
        before = &zero;
    }
    for (unsigned i = 0; i < VALUES; i++) {
        int64_t change = (int64_t)(after->values[i] - before->values[i]);
        double rate = (double)change / seconds;

        if (!is_present(after, i) || (change == 0 && !stat->all)) {
            continue;
        }
        if (!stat->json) {
            printf("%10.3f  ", time);
            print_name(i, 22);
            printf(" %20" PRIu64 " %14" PRId64, after->values[i], change);
            if (is_gauge(i)) {
                printf(" %14s\n", "-");
            } else {
                printf(" %14.1f\n", rate);
            }
            empty = false;
            continue;
        }
        printf("%s\"", empty ? "" : ", ");
        print_name(i, 0);
        printf("\": {\"total\": %" PRIu64 ", \"change\": %" PRId64 ", \"per_second\": ", after->values[i], change);
        if (is_gauge(i)) {
            printf("null}");
        } else {
            printf("%.3f}", rate);
        }
        empty = false;
    }
    if (stat->json) {
        printf("}}\n");
    } else if (empty) {
        printf("%10.3f  nothing has changed\n", time);
    }
}

/* Sleeps until a point in time; false if a signal ends the program instead. */
static bool sleep_until(uint64_t deadline_ns, const sigset_t *signals)
{
    for (;;) {
        uint64_t now = now_ns();
        struct timespec left = {.tv_sec = 0};

        if (now < deadline_ns) {
            left.tv_sec = (time_t)((deadline_ns - now) / NS_PER_S);
            left.tv_nsec = (long)((deadline_ns - now) % NS_PER_S);
        }
        if (sigtimedwait(signals, NULL, &left) > 0) {
            return false;
        }
        if (now >= deadline_ns) {
            return true;
        }
    }
}

static int run(struct watch *stat, const sigset_t *signals)
{
    struct sample samples[2] = {{.time_ns = 0}};
    uint64_t start_ns;
    uint64_t due_ns;
    int rc = take(stat, &samples[0]);

    if (rc != EXIT_OK) {
        return rc;
    }
    start_ns = samples[0].time_ns;
    due_ns = start_ns;
    print_start(stat, &samples[0]);
    rc = flush_output();
    for (uint64_t i = 0; rc == EXIT_OK && (stat->count == 0 || i < stat->count); i++) {
        const struct sample *before = &samples[i % 2];
        struct sample *after = &samples[(i + 1) % 2];

        /* From the start on, so that what printing takes does not add up; what was missed is not made up for. */
        due_ns += stat->interval_ns;
        if (due_ns <= before->time_ns) {
            due_ns = before->time_ns + stat->interval_ns;
        }
        if (!sleep_until(due_ns, signals)) {
            break;
        }
        rc = take(stat, after);
        if (rc == EXIT_OK) {
            print_sample(stat, start_ns, before, after);
            rc = flush_output();
        }
    }
    return rc;
}

static int parse_interval(const char *text, uint64_t *interval_ns)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0.001 && seconds <= 86400)) {
        return misused("--interval: \"%s\" is no number of seconds from 0.001 to 86400", text);
    }
    *interval_ns = (uint64_t)llround(seconds * (double)NS_PER_S);
    return EXIT_OK;
}

/* Returns an exit code with which to leave, or -1 to go on. */
static int parse_options(struct watch *stat, int argc, char **argv)
{
    int option;
    int rc = EXIT_OK;

    while (rc == EXIT_OK && (option = getopt_long(argc, argv, "+d:i:c:ajhV", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            stat->device_name = optarg;
            break;
        case 'i':
            rc = parse_interval(optarg, &stat->interval_ns);
            break;
        case 'c':
            if (!parse_size(optarg, &stat->count) || stat->count == 0) {
                rc = misused("--count: \"%s\" is no number of samples", optarg);
            }
            break;
        case 'a':
            stat->all = true;
            break;
        case 'j':
            stat->json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_OK;
        case 'V':
            printf("netdam-stat %s\n", netdam_version());
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

int main(int argc, char **argv)
{
    const struct netdam_open_config config = {.flags = NETDAM_OPEN_OBSERVE, .log = remember_error};
    struct watch stat = {.device_name = getenv("NETDAM_DEVICE"), .interval_ns = NS_PER_S};
    sigset_t signals;
    int rc;

    ndlib_hold_streams();
    rc = parse_options(&stat, argc, argv);
    if (rc != -1) {
        return rc;
    }
    stat.device_name = device_or(stat.device_name, "pci");
    /* Blocked before any thread exists, so that only sigtimedwait sees them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    rc = netdam_open(stat.device_name, &config, &stat.device);
    if (rc != 0) {
        return device_failed(stat.device_name, rc);
    }
    rc = run(&stat, &signals);
    netdam_close(stat.device);
    return rc;
}
