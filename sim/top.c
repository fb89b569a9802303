/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-top: what goes on in a fabric, from its counters, as a table that renews itself, once, or as JSON. */
#define _GNU_SOURCE
#include "fabric/request.h"
#include "streams.h"
#include "netdam/regs.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static const char help[] =
    "usage: netdam-top [OPTION]... SOCKET\n"
    "Shows ports, links and switches of the fabric whose control socket is SOCKET.\n\n"
    "  -i, --interval SECONDS   between two looks, 0.1 to 3600; default 1\n"
    "  -1, --once               print one table and end\n"
    "  -j, --json               a JSON object for each look, rates per second in \"rates\"\n"
    "  -a, --all                parts without traffic, too, in tables\n"
    "  -V, --version            print the version\n"
    "  -h, --help               print this\n\n"
    "Keys: q ends it, a shows all. Status: 0; 1 if the fabric cannot be reached or has gone; 2 if an\n"
    "argument is wrong.\n";

static const struct option long_options[] = {
    {"interval", required_argument, NULL, 'i'},
    {"once", no_argument, NULL, '1'},
    {"json", no_argument, NULL, 'j'},
    {"all", no_argument, NULL, 'a'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct options {
    const char *path;
    double interval_s;
    bool once;
    bool json;
    bool all;
};

static volatile sig_atomic_t ended;
static struct termios terminal_before;

static void on_signal(int signal)
{
    (void)signal;
    ended = 1;
}

/* Two looks at the same part, and the time between them. */
struct part {
    const json_t *before;
    const json_t *now;
    double seconds;
};

static uint64_t value(const json_t *part, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(part, key));
}

static double rate(const struct part *part, const char *key)
{
    return (double)(value(part->now, key) - value(part->before, key)) / part->seconds;
}

static uint64_t sum_of(const json_t *object)
{
    const char *key;
    json_t *one;
    uint64_t sum = 0;

    json_object_foreach((json_t *)(uintptr_t)object, key, one)
    {
        sum += (uint64_t)json_integer_value(one);
    }
    return sum;
}

/* "12.3M": four characters of figures, powers of 1000. */
static const char *short_number(double number, char text[16])
{
    static const char suffixes[] = " KMGTP";
    unsigned i = 0;

    while (number >= 999.95 && suffixes[i + 1] != 0) {
        number /= 1000;
        i++;
    }
    snprintf(text, 16, number < 9.995 && i != 0 ? "%.2f%c" : i != 0 ? "%.1f%c" : "%.0f%c", number, suffixes[i]);
    return text;
}

/* What a terminal shows and does not obey, whoever has sent it. */
static const char *harmless(const char *text)
{
    for (const char *at = text; at != NULL && *at != 0; at++) {
        if (*at < ' ' || *at > '~') {
            return "?";
        }
    }
    return text != NULL ? text : "?";
}

/* "queue 3 fault 7": the reasons that there are. */
static void print_reasons(FILE *out, const json_t *dropped)
{
    const char *key;
    json_t *one;

    json_object_foreach((json_t *)(uintptr_t)dropped, key, one)
    {
        if (json_integer_value(one) != 0) {
            fprintf(out, " %s %" JSON_INTEGER_FORMAT, harmless(key), json_integer_value(one));
        }
    }
}

static const char *text_of(const json_t *part, const char *key)
{
    return harmless(json_string_value(json_object_get(part, key)));
}

static const char *state_of(const json_t *part)
{
    return json_is_true(json_object_get(part, "up")) ? "up" : "DOWN";
}

static void print_port(FILE *out, const struct part *part, bool all)
{
    char in[16], in_bytes[16], gone[16], gone_bytes[16];

    if (all || value(part->now, "in_frames") + value(part->now, "out_frames") +
                       sum_of(json_object_get(part->now, "dropped")) !=
                   0) {
        fprintf(out, "%-20s %-4s %8s %8s %8s %8s %6" PRIu64, text_of(part->now, "name"), state_of(part->now),
                short_number(rate(part, "in_frames"), in), short_number(rate(part, "in_bytes"), in_bytes),
                short_number(rate(part, "out_frames"), gone), short_number(rate(part, "out_bytes"), gone_bytes),
                value(part->now, "queued"));
        print_reasons(out, json_object_get(part->now, "dropped"));
        fputc('\n', out);
    }
}

static void print_link(FILE *out, const struct part *part, bool all)
{
    static const char *const faults[] = {"duplicated", "reordered", "corrupted", "spikes"};
    char name[80], frames[16], bytes[16];

    if (!all && value(part->now, "frames") == 0) {
        return;
    }
    snprintf(name, sizeof(name), "%s > %s", text_of(part->now, "from"), text_of(part->now, "to"));
    fprintf(out, "%-28s %-4s %8s %8s %8" PRIu64 " %8" PRIu64, name, state_of(part->now),
            short_number(rate(part, "frames"), frames), short_number(rate(part, "bytes"), bytes),
            value(part->now, "in_flight"), value(part->now, "queued_bytes"));
    print_reasons(out, json_object_get(part->now, "dropped"));
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (value(part->now, faults[i]) != 0) {
            fprintf(out, " %s %" PRIu64, faults[i], value(part->now, faults[i]));
        }
    }
    fputc('\n', out);
}

static void print_switch(FILE *out, const struct part *part, bool all)
{
    char frames[16], forwarded[16];
    uint64_t queued = 0, longest = 0;
    const json_t *one;
    size_t i;

    if (!all && value(part->now, "frames") == 0) {
        return;
    }
    json_array_foreach(json_object_get(part->now, "queued_bytes"), i, one)
    {
        uint64_t bytes = (uint64_t)json_integer_value(one);

        queued += bytes;
        longest = bytes > longest ? bytes : longest;
    }
    fprintf(out, "%-25s %8s %8s %8" PRIu64 " %8" PRIu64, text_of(part->now, "name"),
            short_number(rate(part, "frames"), frames), short_number(rate(part, "forwarded"), forwarded), queued,
            longest);
    print_reasons(out, json_object_get(part->now, "dropped"));
    fputc('\n', out);
}

struct section {
    const char *key;
    const char *head;
    void (*print)(FILE *out, const struct part *part, bool all);
    const char *const *rates; /* counters that are told per second, too */
};

static const char *const port_rates[] = {"in_frames", "in_bytes", "out_frames", "out_bytes", NULL};
static const char *const link_rates[] = {"frames", "bytes", "delivered", NULL};
static const char *const switch_rates[] = {"frames", "forwarded", NULL};

static const struct section sections[] = {
    {"ports", "PORT                 STATE   in/s    inB/s    out/s   outB/s queued dropped", print_port, port_rates},
    {"links", "LINK                         STATE    /s       B/s  in flight  queued dropped and faults", print_link,
     link_rates},
    {"switches", "SWITCH                         in/s    out/s   queued  longest dropped", print_switch, switch_rates},
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

static struct part nth_part(const json_t *before, const json_t *now, const char *key, size_t i)
{
    double seconds = (double)(value(now, "uptime_ns") - value(before, "uptime_ns")) / 1e9;

    return (struct part){json_array_get(json_object_get(before, key), i), json_array_get(json_object_get(now, key), i),
                         seconds > 0 ? seconds : 1};
}

static void print_table(FILE *out, const json_t *before, const json_t *now, bool all)
{
    const json_t *totals = json_object_get(now, "totals");

    fprintf(out,
            "up %.1f s  in %" PRIu64 "  copies %" PRIu64 "  out %" PRIu64 "  dropped %" PRIu64 "  under way %" PRIu64
            "%s\n",
            (double)value(now, "uptime_ns") / 1e9, value(totals, "in"), value(totals, "copies"), value(totals, "out"),
            value(totals, "dropped"), value(totals, "under_way"),
            json_is_true(json_object_get(totals, "balanced")) ? "" : "  DOES NOT BALANCE");
    for (size_t s = 0; s < SECTIONS; s++) {
        size_t count = json_array_size(json_object_get(now, sections[s].key));

        if (count != 0) {
            fprintf(out, "\n%s\n", sections[s].head);
        }
        for (size_t i = 0; i < count; i++) {
            const struct part part = nth_part(before, now, sections[s].key, i);

            sections[s].print(out, &part, all);
        }
    }
}

/* The counters, and beside each that has a rate the rate. */
static void print_json(const json_t *before, json_t *now)
{
    for (size_t s = 0; s < SECTIONS; s++) {
        for (size_t i = 0; i < json_array_size(json_object_get(now, sections[s].key)); i++) {
            const struct part part = nth_part(before, now, sections[s].key, i);
            json_t *rates = json_object();

            for (const char *const *key = sections[s].rates; *key != NULL; key++) {
                json_object_set_new(rates, *key, json_real(rate(&part, *key)));
            }
            json_object_set_new((json_t *)(uintptr_t)part.now, "rates", rates);
        }
    }
    json_dumpf(now, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
}

/* What fits on the screen of a table, from its top left corner on. */
static void draw(const char *table)
{
    struct winsize size;
    unsigned rows = 0;

    /* A serial console has no size that anybody knows. */
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    fputs("\033[H", stdout);
    while (*table != 0 && rows + 1 < size.ws_row) {
        int length = (int)strcspn(table, "\n");

        printf("%.*s\033[K\n", length < size.ws_col ? length : size.ws_col, table);
        table += length + (table[length] == '\n');
        rows++;
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

static void show(const struct options *options, const json_t *before, json_t *now, bool live)
{
    char *table = NULL;
    size_t bytes = 0;
    FILE *out;

    if (options->json) {
        print_json(before, now);
    } else if (!live) {
        print_table(stdout, before, now, options->all);
        fflush(stdout);
    } else if ((out = open_memstream(&table, &bytes)) != NULL) {
        print_table(out, before, now, options->all);
        fclose(out);
        draw(table);
        free(table);
    }
}

static void restore_terminal(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* Keys without return, and a screen of its own. False if this is no terminal. */
static bool take_terminal(void)
{
    struct termios raw;

    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &terminal_before) != 0) {
        return false;
    }
    raw = terminal_before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l", stdout);
    return true;
}

/* Until it is time to look again, or a key says something. */
static void pause_for(struct options *options, bool live)
{
    struct pollfd keys = {.fd = live ? STDIN_FILENO : -1, .events = POLLIN};
    char key;

    if (poll(&keys, 1, (int)(options->interval_s * 1000)) > 0 && read(STDIN_FILENO, &key, 1) == 1) {
        ended |= key == 'q';
        options->all ^= key == 'a';
    }
}

static json_t *look(int fd)
{
    json_t *counters = ndfab_ask(fd, json_pack("{s:s}", "command", "counters"));

    if (counters != NULL && !json_is_true(json_object_get(counters, "ok"))) {
        json_decref(counters);
        counters = NULL;
    }
    return counters;
}

static int printed(void)
{
    return ndsim_all_printed("netdam-top") ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(struct options *options)
{
    int fd = ndfab_connect(options->path);
    json_t *before, *now;
    const char *failure;
    bool live;

    if (fd < 0) {
        fprintf(stderr, "netdam-top: %s: %s\n", options->path, errno == EAGAIN ? ndfab_ask_failure() : strerror(errno));
        return EXIT_FAILURE;
    }
    before = look(fd);
    failure = ndfab_ask_failure();
    live = before != NULL && !options->once && !options->json && take_terminal();
    while (before != NULL && !ended) {
        pause_for(options, live);
        if (ended) {
            break;
        }
        now = look(fd);
        failure = ndfab_ask_failure();
        if (now != NULL) {
            show(options, before, now, live);
        }
        json_decref(before);
        before = now;
        /* What nobody reads is not gone on with. */
        ended |= (options->once && now != NULL) || ferror(stdout);
    }
    if (live) {
        restore_terminal();
    }
    close(fd);
    /* A signal that came while it waited for a reply ends it like any other. */
    if (before == NULL && !ended) {
        fprintf(stderr, "netdam-top: %s: %s\n", options->path, failure);
        return EXIT_FAILURE;
    }
    json_decref(before);
    return printed();
}

static int parse(int argc, char **argv, struct options *options)
{
    int option;
    char *end;

    while ((option = getopt_long(argc, argv, "i:1jaVh", long_options, NULL)) != -1) {
        switch (option) {
        case 'i':
            options->interval_s = strtod(optarg, &end);
            if (*end != 0 || !(options->interval_s >= 0.1 && options->interval_s <= 3600)) {
                fprintf(stderr, "netdam-top: --interval %s: expected 0.1 to 3600 seconds\n", optarg);
                return EXIT_USAGE;
            }
            break;
        case '1':
            options->once = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'a':
            options->all = true;
            break;
        case 'V':
            printf("netdam-top: specification %u.%u\n", NETDAM_SPEC_VERSION >> 16, NETDAM_SPEC_VERSION & 0xffffu);
            return printed();
        case 'h':
            fputs(help, stdout);
            return printed();
        default:
            return EXIT_USAGE;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "netdam-top: expected one control socket; --help tells more\n");
        return EXIT_USAGE;
    }
    options->path = argv[optind];
    return -1;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct options options = {.interval_s = 1};
    int status;

    ndsim_hold_streams();
    status = parse(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return run(&options);
}
