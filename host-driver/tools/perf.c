/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam_write_lat and its relatives: latency and throughput of each operation. The name it is called by says which. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"
#include "hold_streams.h"

#define PROGRAM "netdam-perf"
#define PREFIX  "netdam_"

const char *tool_name = PROGRAM;

static const struct perf_test tests[] = {
    {PREFIX "write_lat", PERF_LATENCY | PERF_MEMORY, NETDAM_OP_WRITE},
    {PREFIX "read_lat", PERF_LATENCY | PERF_MEMORY, NETDAM_OP_READ},
    {PREFIX "atomic_lat", PERF_LATENCY | PERF_MEMORY | PERF_ATOMIC, NETDAM_OP_FETCH_ADD},
    {PREFIX "reduce_lat", PERF_LATENCY | PERF_MEMORY | PERF_REDUCE, NETDAM_OP_REDUCE},
    {PREFIX "send_lat", PERF_LATENCY | PERF_SEND, NETDAM_OP_SEND},
    {PREFIX "write_bw", PERF_BANDWIDTH | PERF_MEMORY | PERF_BOTH_WAYS, NETDAM_OP_WRITE},
    {PREFIX "read_bw", PERF_BANDWIDTH | PERF_MEMORY | PERF_BOTH_WAYS, NETDAM_OP_READ},
    {PREFIX "reduce_bw", PERF_BANDWIDTH | PERF_MEMORY | PERF_BOTH_WAYS | PERF_REDUCE, NETDAM_OP_REDUCE},
    {PREFIX "send_bw", PERF_BANDWIDTH | PERF_SEND, NETDAM_OP_SEND},
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

enum {
    OPTION_ADDRESS = 256,
    OPTION_SERVE,
};

/* The options, for getopt and for --help. Those with features are for tools with one of these only. */
static const struct perf_option {
    const char *name;
    int letter;
    unsigned features;
    const char *argument; /* NULL: none */
    const char *text;
} perf_options[] = {
    {"peer", 'p', 0, "ADDR[:PORT]", "the target: a node, or a card with a region; port 20036 if absent"},
    {"key", 'k', PERF_MEMORY, "KEY", "key of the region there"},
    {"address", OPTION_ADDRESS, PERF_MEMORY, "OFFSET", "bytes from the region's start (default 0)"},
    {"receive-key", 'r', PERF_SEND, "KEY", "receive key of the queue pair there, as --serve prints it"},
    {"size", 's', 0, "BYTES", "payload of one request (default 8; bandwidth 64K; messages 1K)"},
    {"all", 'a', 0, NULL, "all sizes from 2 to 8M, or as far as the operation allows"},
    {"iters", 'n', 0, "N", "requests to measure (default 1000, bandwidth 5000; with --all 256M in all)"},
    {"duration", 'D', 0, "SECONDS", "measure for so long instead"},
    {"tx-depth", 't', PERF_BANDWIDTH, "N", "requests under way at once, 1 to 4096 (default 128)"},
    {"bidirectional", 'b', PERF_BOTH_WAYS, NULL, "every other request in the opposite direction: READ, or WRITE"},
    {"atomic", 'A', PERF_ATOMIC, "NAME", "fetch-add (default), cas or swap"},
    {"operation", 'O', PERF_REDUCE, "NAME", "sum (default), product, min, max, and, or, xor, sum-saturating"},
    {"type", 'T', PERF_REDUCE, "TYPE", "f32 (default), u8 to u64, i8 to i64, f16, bf16, f64"},
    {"warm-up", 'w', 0, "N", "requests before the first that counts (default 16, bandwidth 128)"},
    {"events", 'e', 0, NULL, "sleep on the interrupt at once; else spin, yield, then sleep"},
    {"histogram", 'H', 0, NULL, "print how all samples are distributed"},
    {"device", 'd', 0, "DEVICE", "udp[,OPTION...]: a soft device (default); udp:ADDR:PORT[,OPTION...],"},
    {"serve", OPTION_SERVE, 0, "BYTES", "be a target: a region of so many bytes, and receive buffers"},
    {"json", 'j', 0, NULL, "print JSON: stable keys, base units"},
    {"help", 'h', 0, NULL, "print this"},
    {"version", 'V', 0, NULL, "print the version"},
};

#define OPTIONS (sizeof(perf_options) / sizeof(perf_options[0]))

static bool is_for(const struct perf_option *option, const struct perf_test *test)
{
    return option->features == 0 || (option->features & test->features) != 0;
}

static void print_help(const struct perf_test *test)
{
    printf("Usage: %s --peer ADDR[:PORT] %s KEY [OPTION]...\n"
           "       %s --serve BYTES [OPTION]...\n",
           test->name, (test->features & PERF_SEND) != 0 ? "--receive-key" : "--key", test->name);
    printf(
        (test->features & PERF_LATENCY) != 0
            ? "Measure the latency of %s: one request at a time, from post to completion, in full.\n\n"
            : "Measure the throughput of %s: many requests at a time, and their latency from post to completion.\n\n",
        (test->features & PERF_ATOMIC) != 0 ? "atomics" : netdam_op_name(test->opcode));
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct perf_option *option = &perf_options[i];
        char text[64];

        if (!is_for(option, test)) {
            continue;
        }
        if (option->letter < 256) {
            snprintf(text, sizeof(text), "-%c, --%s %s", option->letter, option->name,
                     option->argument ? option->argument : "");
        } else {
            snprintf(text, sizeof(text), "    --%s %s", option->name, option->argument ? option->argument : "");
        }
        printf("  %-27s %s\n", text, option->text);
        if (option->letter == 'd') {
            printf("%30spci, pci:ADDRESS, broker:SOCKET; $NETDAM_DEVICE is used if this is absent\n", "");
        }
    }
    printf("\nBYTES and OFFSET take K, M and G. Exit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static const struct perf_test *find_test(const char *name)
{
    for (size_t i = 0; i < TESTS; i++) {
        if (strcmp(tests[i].name, name) == 0 || strcmp(tests[i].name + strlen(PREFIX), name) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}

static int parse_number(const char *option, const char *text, uint64_t least, uint64_t largest, uint64_t *value)
{
    if (!parse_size(text, value) || *value < least || *value > largest) {
        return misused("--%s: \"%s\" is no number from %" PRIu64 " to %" PRIu64, option, text, least, largest);
    }
    return EXIT_OK;
}

static int take_key(const char *option, const char *text, bool *given, uint64_t *key)
{
    *given = true;
    return parse_key(text, key) ? EXIT_OK : misused("--%s: \"%s\" is no 64-bit number", option, text);
}

static int parse_duration(const char *text, uint64_t *duration_ns)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end != '\0' || !(seconds >= 0.001 && seconds <= 86400)) {
        return misused("--duration: \"%s\" is no number of seconds from 0.001 to 86400", text);
    }
    *duration_ns = (uint64_t)llround(seconds * 1e9);
    return EXIT_OK;
}

static int parse_option(struct perf *perf, int letter, const char *name, const char *argument)
{
    switch (letter) {
    case 'p':
        perf->peer_name = argument;
        return EXIT_OK;
    case 'k':
        return take_key(name, argument, &perf->key_given, &perf->key);
    case 'r':
        return take_key(name, argument, &perf->receive_key_given, &perf->receive_key);
    case OPTION_ADDRESS:
        return parse_number(name, argument, 0, UINT64_MAX, &perf->address);
    case 's':
        perf->bytes_given = true;
        return parse_number(name, argument, 1, UINT64_C(1) << 30, &perf->bytes);
    case 'a':
        perf->all = true;
        return EXIT_OK;
    case 'n':
        perf->iterations_given = true;
        return parse_number(name, argument, 1, UINT64_C(1) << 40, &perf->iterations);
    case 'D':
        return parse_duration(argument, &perf->duration_ns);
    case 't':
        return parse_number(name, argument, 1, PERF_DEPTH_MAX, &perf->depth);
    case 'b':
        perf->both_ways = true;
        return EXIT_OK;
    case 'A':
        perf->atomic_name = argument;
        return EXIT_OK;
    case 'O':
        perf->operation_name = argument;
        return EXIT_OK;
    case 'T':
        perf->type_name = argument;
        return EXIT_OK;
    case 'w':
        return parse_number(name, argument, 0, UINT64_C(1) << 40, &perf->warm_up);
    case 'e':
        perf->events = true;
        return EXIT_OK;
    case 'H':
        perf->histogram = true;
        return EXIT_OK;
    case 'd':
        perf->device_name = argument;
        return EXIT_OK;
    case OPTION_SERVE:
        perf->serve = true;
        return parse_number(name, argument, 64, UINT64_C(1) << 40, &perf->serve_bytes);
    default:
        perf->json = true;
        return EXIT_OK;
    }
}

/* Returns an exit code with which to leave, or -1 to go on. */
static int parse_options(struct perf *perf, int argc, char **argv)
{
    struct option longs[OPTIONS + 1] = {{.name = NULL}};
    char letters[2 * OPTIONS + 1];
    char *end = letters;
    int letter;
    int rc = EXIT_OK;

    for (size_t i = 0; i < OPTIONS; i++) {
        const struct perf_option *option = &perf_options[i];

        longs[i] = (struct option){
            .name = option->name, .has_arg = option->argument ? required_argument : no_argument, .val = option->letter};
        if (option->letter < 256) {
            *end++ = (char)option->letter;
            if (option->argument) {
                *end++ = ':';
            }
        }
    }
    *end = '\0';
    while (rc == EXIT_OK && (letter = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct perf_option *option = perf_options;

        while (option < perf_options + OPTIONS && option->letter != letter) {
            option++;
        }
        if (option == perf_options + OPTIONS) {
            return EXIT_USAGE;
        }
        if (!is_for(option, perf->test)) {
            return misused("takes no --%s", option->name);
        }
        if (letter == 'h') {
            print_help(perf->test);
            return EXIT_OK;
        }
        if (letter == 'V') {
            printf("%s %s\n", tool_name, netdam_version());
            return EXIT_OK;
        }
        rc = parse_option(perf, letter, option->name, optarg);
    }
    if (rc == EXIT_OK && optind != argc) {
        rc = misused("unexpected argument \"%s\"", argv[optind]);
    }
    return rc != EXIT_OK ? rc : -1;
}

/* Opcode, operation, type, and which sizes these allow. */
static int choose_operation(struct perf *perf)
{
    static const unsigned by_bytes[] = {
        [1] = NETDAM_TYPE_U8, [2] = NETDAM_TYPE_U16, [4] = NETDAM_TYPE_U32, [8] = NETDAM_TYPE_U64};
    unsigned features = perf->test->features;
    int value;

    perf->opcode = perf->test->opcode;
    perf->bytes_least = PERF_BYTES_LEAST;
    perf->bytes_most = perf->bytes > PERF_BYTES_MOST ? perf->bytes : PERF_BYTES_MOST;
    if ((features & PERF_ATOMIC) != 0) {
        value = netdam_op_by_name(perf->atomic_name);
        if (value != NETDAM_OP_FETCH_ADD && value != NETDAM_OP_CAS && value != NETDAM_OP_SWAP) {
            return misused("--atomic: \"%s\" is none of fetch-add, cas, swap", perf->atomic_name);
        }
        if (perf->all) {
            return misused("takes no --all: an atomic has one element");
        }
        if (perf->bytes > 8 || by_bytes[perf->bytes] == NETDAM_TYPE_NONE) {
            return misused("--size: an atomic has 1, 2, 4 or 8 bytes");
        }
        perf->opcode = (unsigned)value;
        perf->type = by_bytes[perf->bytes];
    } else if ((features & PERF_REDUCE) != 0) {
        value = netdam_type_by_name(perf->type_name);
        if (value <= NETDAM_TYPE_NONE) {
            return misused("--type: unknown type \"%s\"", perf->type_name);
        }
        perf->type = (unsigned)value;
        value = netdam_alu_by_name(perf->operation_name);
        if (value <= NETDAM_ALU_NONE) {
            return misused("--operation: unknown operation \"%s\"", perf->operation_name);
        }
        perf->operation = (unsigned)value;
        if (netdam_algebra(perf->opcode, perf->operation, perf->type) < 0) {
            return misused("there is no REDUCE %s of %s", netdam_alu_name(perf->operation),
                           netdam_type_name(perf->type));
        }
        if (!netdam_is_whole(perf->bytes, perf->type)) {
            return misused("--size %" PRIu64 " is no whole number of %s elements", perf->bytes, perf->type_name);
        }
        if (perf->bytes_least < netdam_type_bytes(perf->type)) {
            perf->bytes_least = netdam_type_bytes(perf->type);
        }
    }
    return EXIT_OK;
}

/* What contradicts, what is missing, what was left open. */
static int check_options(struct perf *perf)
{
    bool latency = (perf->test->features & PERF_LATENCY) != 0;
    bool send = (perf->test->features & PERF_SEND) != 0;

    if (perf->serve) {
        return perf->peer_name ? misused("--serve takes no --peer") : EXIT_OK;
    }
    if (!perf->peer_name) {
        return misused("needs --peer, or --serve");
    }
    if (send ? !perf->receive_key_given : !perf->key_given) {
        return misused("needs --%s", send ? "receive-key" : "key");
    }
    if (perf->all && perf->bytes_given) {
        return misused("--all and --size contradict each other");
    }
    if (perf->duration_ns != 0 && perf->iterations_given) {
        return misused("--duration and --iters contradict each other");
    }
    if (latency) {
        perf->depth = 1;
    }
    if (!perf->bytes_given) {
        perf->bytes = latency ? 8 : send ? 1024 : 65536;
    }
    if (!perf->iterations_given) {
        perf->iterations = latency ? 1000 : 5000;
    }
    if (perf->warm_up == UINT64_MAX) {
        perf->warm_up = latency ? 16 : 128;
    }
    return choose_operation(perf);
}

static int measure(struct perf *perf)
{
    static struct perf_result result;
    uint64_t bytes;
    bool first = true;
    int rc = perf_prepare(perf);

    if (rc != EXIT_OK) {
        return rc;
    }
    bytes = perf->all ? perf->bytes_least : perf->bytes;
    for (; rc == EXIT_OK && (first || (perf->all && bytes <= perf->bytes_most)); bytes *= 2) {
        rc = perf_run(perf, bytes, &result);
        if (rc == EXIT_OK) {
            if (first) {
                perf_report_start(perf);
            }
            perf_report(perf, &result, first);
            first = false;
            rc = flush_output();
        }
    }
    if (!first) {
        perf_report_end(perf);
    }
    return rc;
}

static int general_help(void)
{
    printf("Usage: " PROGRAM " TOOL [OPTION]...\n"
           "Measure latency or throughput of an operation. " PROGRAM
           " TOOL --help tells the options of a tool. Called\n"
           "by the name of a tool, the program is that tool:\n\n");
    for (size_t i = 0; i < TESTS; i++) {
        printf("  %s\n", tests[i].name);
    }
    printf("\n  -h, --help     print this\n  -V, --version  print the version\n"
           "\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    struct perf perf = {
        .device_name = getenv("NETDAM_DEVICE"),
        .atomic_name = "fetch-add",
        .type_name = "f32",
        .operation_name = "sum",
        .depth = 128,
        .warm_up = UINT64_MAX,
    };
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    int rc;

    ndlib_hold_streams();
    perf.test = argc > 0 ? find_test(slash ? slash + 1 : argv[0]) : NULL;
    if (!perf.test) {
        if (argc < 2) {
            return misused("no tool named");
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
            return general_help();
        }
        if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
            printf(PROGRAM " %s\n", netdam_version());
            return EXIT_OK;
        }
        perf.test = find_test(argv[1]);
        if (!perf.test) {
            return misused("unknown tool \"%s\"", argv[1]);
        }
        argc--;
        argv++;
    }
    tool_name = perf.test->name;
    argv[0] = (char *)(uintptr_t)tool_name; /* what getopt complains in the name of */
    rc = parse_options(&perf, argc, argv);
    if (rc != -1) {
        return rc;
    }
    rc = check_options(&perf);
    if (rc != EXIT_OK) {
        return rc;
    }
    perf.device_name = device_or(perf.device_name, "udp");
    rc = perf.serve ? perf_serve(&perf) : measure(&perf);
    netdam_close(perf.device);
    return rc == EXIT_OK ? flush_output() : rc;
}
