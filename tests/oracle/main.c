/* SPDX-License-Identifier: BSD-3-Clause */
/* The oracle's command line: cases one after the other, or one again; a failing one is made smaller and kept. */
#include "algebra.h"
#include "oracle.h"
#include "selftest.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>

#define CASE_OPERATIONS 1500u

struct options {
    uint64_t seed;
    uint64_t operations; /* in all */
    uint64_t one;        /* the case to be run alone, and whether there is one */
    bool has_one;
    bool algebra;
    bool self_test;
    bool trace;
    bool no_shrink;
    uint32_t length; /* operations of a case */
    uint32_t sites;
    const char *directory;
    bool *keep;
    struct fault_list faults;
    bool has_faults;
};

static void usage(FILE *to)
{
    fputs(
        "usage: oracle [--seed N] [--operations N] [--length N] [--directory DIR] [--no-shrink]\n"
        "       oracle --case N [--length N] [--sites N] [--keep N,N-N,...] [--faults LINK:KIND:FRAME,...] [--trace]\n"
        "       oracle --algebra | --self-test [--seed N]\n"
        "Runs random programs on clusters in virtual time and judges what was seen. A failing case is made smaller\n"
        "and written to DIR/failure-*.pcap, with the arguments that run it again in DIR/failure-*.args.\n"
        "  --operations N  stop after so many (1000000)\n"
        "  --length N      operations of one case (1500)\n"
        "  --algebra       try the claims of the algebra table instead\n"
        "  --self-test     try the judge of histories instead\n",
        to);
}

static bool parse_keep(struct options *options, const char *text)
{
    options->keep = calloc(options->length + 1, sizeof(*options->keep));
    while (*text != '\0') {
        char *end;
        unsigned long from = strtoul(text, &end, 10);
        unsigned long to = from;

        if (*end == '-') {
            to = strtoul(end + 1, &end, 10);
        }
        if (options->keep == NULL || end == text || to >= options->length) {
            return false;
        }
        for (unsigned long i = from; i <= to; i++) {
            options->keep[i] = true;
        }
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}

static bool parse_faults(struct options *options, const char *text)
{
    options->has_faults = true;
    if (strcmp(text, "none") == 0) {
        return true;
    }
    while (*text != '\0') {
        unsigned link, kind;
        unsigned long long number;
        int used = 0;

        if (sscanf(text, "%u:%u:%llu%n", &link, &kind, &number, &used) != 3) {
            return false;
        }
        fault_add(&options->faults, (struct fault){link, kind, number});
        text += used;
        text += *text == ',';
    }
    return true;
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},   {"operations", required_argument, NULL, 'o'},
        {"length", required_argument, NULL, 'l'}, {"directory", required_argument, NULL, 'd'},
        {"case", required_argument, NULL, 'c'},   {"sites", required_argument, NULL, 'n'},
        {"keep", required_argument, NULL, 'k'},   {"faults", required_argument, NULL, 'f'},
        {"algebra", no_argument, NULL, 'a'},      {"help", no_argument, NULL, 'h'},
        {"no-shrink", no_argument, NULL, 'x'},    {"trace", no_argument, NULL, 'v'},
        {"self-test", no_argument, NULL, 't'},    {NULL, 0, NULL, 0},
    };
    const char *keep = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 's':
            options->seed = strtoull(optarg, NULL, 0);
            break;
        case 'o':
            options->operations = strtoull(optarg, NULL, 0);
            break;
        case 'l':
            options->length = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'd':
            options->directory = optarg;
            break;
        case 'c':
            options->one = strtoull(optarg, NULL, 0);
            options->has_one = true;
            break;
        case 'n':
            options->sites = (uint32_t)strtoul(optarg, NULL, 0);
            break;
        case 'k':
            keep = optarg;
            break;
        case 'f':
            if (!parse_faults(options, optarg)) {
                return false;
            }
            break;
        case 'a':
            options->algebra = true;
            break;
        case 'x':
            options->no_shrink = true;
            break;
        case 'v':
            options->trace = true;
            break;
        case 't':
            options->self_test = true;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            return false;
        }
    }
    return optind == argc && options->length != 0 && (keep == NULL || parse_keep(options, keep));
}

static void write_arguments(FILE *to, const struct plan *plan, const struct shrunk *shrunk)
{
    const char *comma = "";

    fprintf(to, "--case 0x%llx --length %u", (unsigned long long)plan->seed, plan->operations);
    if (shrunk->sites != 0) {
        fprintf(to, " --sites %u", shrunk->sites);
    }
    fprintf(to, " --keep ");
    for (uint32_t i = 0; i < plan->operations; i++) {
        uint32_t to_index = i;

        if (!shrunk->keep[i]) {
            continue;
        }
        while (to_index + 1 < plan->operations && shrunk->keep[to_index + 1]) {
            to_index++;
        }
        fprintf(to, to_index == i ? "%s%u" : "%s%u-%u", comma, i, to_index);
        i = to_index;
        comma = ",";
    }
    if (!shrunk->by_chance) {
        comma = "";
        fprintf(to, shrunk->faults.count != 0 ? " --faults " : " --faults none");
        for (uint32_t i = 0; i < shrunk->faults.count; i++) {
            fprintf(to, "%s%u:%u:%llu", comma, shrunk->faults.at[i].link, shrunk->faults.at[i].kind,
                    (unsigned long long)shrunk->faults.at[i].number);
            comma = ",";
        }
    }
    fprintf(to, "\n");
}

static void make_directory(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        perror(path);
    }
}

/* Makes a failing case smaller, runs it once more with a pcap, and says how to run it again. */
static void keep_failure(const struct options *options, const struct plan *failing, enum failure failure)
{
    struct shrunk shrunk;
    struct plan plan = *failing;
    struct tally tally = {0};
    char path[512];
    char text[400];
    FILE *file;

    shrink(failing, failure, &shrunk);
    plan.keep = shrunk.keep;
    plan.sites = shrunk.sites;
    plan.only = shrunk.by_chance ? failing->only : &shrunk.faults;
    make_directory(options->directory);
    snprintf(path, sizeof(path), "%s/failure-%016llx.pcap", options->directory, (unsigned long long)plan.seed);
    plan.pcap = path;
    plan.tell = true;
    printf("# made smaller in %u runs: %u operations, %u faults\n", shrunk.runs, shrunk.kept, shrunk.faults.count);
    failure = world_run(&plan, &tally, text, sizeof(text));
    printf("# %s (%s): %s\n# frames: %s\n", failure_name(failure), failure_text(failure), text, path);
    memcpy(strrchr(path, '.'), ".args", 6);
    file = fopen(path, "w");
    if (file != NULL) {
        write_arguments(file, &plan, &shrunk);
        fclose(file);
    }
    printf("# run again: oracle ");
    write_arguments(stdout, &plan, &shrunk);
    free(shrunk.keep);
    free(shrunk.faults.at);
}

static void tell_tally(const struct tally *tally)
{
    printf("# %llu cases, %llu operations posted, %llu left out, %llu frames, %llu faults, %llu resets\n",
           (unsigned long long)tally->cases, (unsigned long long)tally->posted, (unsigned long long)tally->skipped,
           (unsigned long long)tally->frames, (unsigned long long)tally->faults, (unsigned long long)tally->restarts);
    printf("# %llu histories of %llu steps (%llu too wide to judge), %llu compared with the program's order, "
           "%llu messages, %llu uncertain ends, %llu words of tours (%llu with too many possible values), "
           "%llu collectives, %llu frames of strangers\n",
           (unsigned long long)tally->objects, (unsigned long long)tally->records, (unsigned long long)tally->unjudged,
           (unsigned long long)tally->plain, (unsigned long long)tally->messages, (unsigned long long)tally->late,
           (unsigned long long)tally->tours, (unsigned long long)tally->tours_open,
           (unsigned long long)tally->collectives, (unsigned long long)tally->strangers);
#define STATUS_LINE(name, value, class_, text)                                                                         \
    if (tally->completed[value] != 0) {                                                                                \
        printf("# %12llu %s\n", (unsigned long long)tally->completed[value], #name);                                   \
    }
    NETDAM_STATUS_LIST(STATUS_LINE)
#undef STATUS_LINE
#define OPCODE_LINE(name, value, flags, text)                                                                          \
    if (tally->by_opcode[value] != 0) {                                                                                \
        printf("# %12llu %s\n", (unsigned long long)tally->by_opcode[value], #name);                                   \
    }
    NETDAM_OP_LIST(OPCODE_LINE)
#undef OPCODE_LINE
    printf("# frames: hash 0x%016llx\n", (unsigned long long)tally->hash);
}

static int run_one(const struct options *options)
{
    struct tally tally = {0};
    struct plan plan = {
        .seed = options->one,
        .operations = options->length,
        .sites = options->sites,
        .keep = options->keep,
        .only = options->has_faults ? &options->faults : NULL,
        .tell = true,
        .trace = options->trace,
    };
    char text[400];
    enum failure failure = world_run(&plan, &tally, text, sizeof(text));

    tell_tally(&tally);
    if (failure == FAILURE_NONE) {
        printf("ok 1 - case 0x%llx\n1..1\n", (unsigned long long)plan.seed);
        return 0;
    }
    printf("not ok 1 - case 0x%llx: %s (%s): %s\n1..1\n", (unsigned long long)plan.seed, failure_name(failure),
           failure_text(failure), text);
    if (options->keep == NULL && !options->no_shrink) {
        keep_failure(options, &plan, failure);
    }
    return 1;
}

static int run_many(const struct options *options)
{
    struct tally tally = {0};
    uint64_t told = 0;
    char text[400];

    printf("# seed %llu\n", (unsigned long long)options->seed);
    fflush(stdout);
    for (uint64_t i = 0; tally.posted < options->operations; i++) {
        struct plan plan = {
            .seed = ndtest_mix(options->seed * UINT64_C(0x9e3779b97f4a7c15) + i + 1),
            .operations = options->length,
            .sites = options->sites,
        };
        enum failure failure = world_run(&plan, &tally, text, sizeof(text));

        if (failure != FAILURE_NONE) {
            printf("# after %llu operations, case 0x%llx: %s (%s): %s\n", (unsigned long long)tally.posted,
                   (unsigned long long)plan.seed, failure_name(failure), failure_text(failure), text);
            fflush(stdout);
            if (!options->no_shrink) {
                keep_failure(options, &plan, failure);
            }
            printf("not ok 1 - a difference after %llu operations\n1..1\n", (unsigned long long)tally.posted);
            return 1;
        }
        if (tally.posted / 1000000 != told) {
            told = tally.posted / 1000000;
            printf("# %llu million operations\n", (unsigned long long)told);
            fflush(stdout);
        }
    }
    tell_tally(&tally);
    printf("ok 1 - no difference in %llu operations\n1..1\n", (unsigned long long)tally.posted);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .operations = 1000000, .length = CASE_OPERATIONS, .directory = "build/oracle"};
    int status;

    if (!parse(argc, argv, &options)) {
        usage(stderr);
        free(options.keep);
        free(options.faults.at);
        return 2;
    }
    if (options.algebra) {
        status = !algebra_run(options.seed);
        printf("1..2\n");
    } else if (options.self_test) {
        status = !selftest_run(options.seed);
        printf("1..1\n");
    } else if (options.has_one) {
        status = run_one(&options);
    } else {
        status = run_many(&options);
    }
    judge_fini();
    free(options.keep);
    free(options.faults.at);
    return status;
}
