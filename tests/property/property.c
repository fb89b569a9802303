/* SPDX-License-Identifier: BSD-3-Clause */
/* Property test of the protocol's invariants: many scenarios from one seed, as TAP. */
#include "world.h"

#include <stdlib.h>

struct options {
    uint64_t seed;
    uint64_t packets;
    uint64_t scenario_packets;
    const char *tamper;
    bool self_test;
    bool one; /* the seed is a scenario's own */
};

static const char *const invariant_text[INVARIANTS + 1] = {
    "",
    "1: every accepted descriptor gets exactly one completion, in bounded time",
    "2: status OK: the effect was applied exactly once, and loads see it",
    "3: a refusal means that nothing of that packet was applied, then or later",
    "4: no byte outside the region a key names is read or written, on either side",
    "5: a copy that arrives after completion changes nothing",
    "6: a response to an old request never lands in a buffer that was given a new use",
    "7: what requesters observe was there between post and completion",
    "8: far-end memory is bounded, configured, and counted",
    "9: reset flushes, and nothing older is executed or completes afterwards",
    "10: the same inputs give the same result, bit for bit",
};

static unsigned tests;
static unsigned failures;

static void result(bool passed, const char *text)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, text);
    failures += !passed;
}

static void print_tally(const struct tally *tally)
{
    printf("# %llu packets delivered (%llu damaged), %llu requests, %llu packets applied, %llu late copies without "
           "effect, %llu resets, %llu partial, %llu ring indices wrapped, %llu contexts used up\n"
           "# %llu messages received, %llu executed again without lane, %llu ordered, %llu lists\n",
           (unsigned long long)tally->delivered, (unsigned long long)tally->damaged,
           (unsigned long long)tally->operations, (unsigned long long)tally->applied,
           (unsigned long long)tally->late_refused, (unsigned long long)tally->resets,
           (unsigned long long)tally->partial, (unsigned long long)tally->wrapped, (unsigned long long)tally->exhausted,
           (unsigned long long)tally->messages, (unsigned long long)tally->repeated, (unsigned long long)tally->ordered,
           (unsigned long long)tally->lists);
    printf("# completions:");
#define PRINT_STATUS(name, value, class_, text)                                                                        \
    if (tally->statuses[value] != 0) {                                                                                 \
        printf(" " #name " %llu", (unsigned long long)tally->statuses[value]);                                         \
    }
    NETDAM_STATUS_LIST(PRINT_STATUS)
#undef PRINT_STATUS
    printf("\n# counters:");
#define PRINT_COUNTER(name, text)                                                                                      \
    if (tally->counters[NETDAM_COUNTER_##name] != 0) {                                                                 \
        printf(" " #name " %llu", (unsigned long long)tally->counters[NETDAM_COUNTER_##name]);                         \
    }
    NETDAM_COUNTER_LIST(PRINT_COUNTER)
#undef PRINT_COUNTER
    printf("\n# frames and memory: hash 0x%016llx\n", (unsigned long long)tally->hash);
}

/* Runs one scenario, twice if `repeat`. */
static bool run(uint64_t seed, const struct options *options, struct tally *tally, bool repeat)
{
    struct scenario_options scenario = {.seed = seed, .packets = options->scenario_packets, .tamper = options->tamper};
    uint64_t first = 0;
    uint64_t second = 0;
    bool passed = scenario_run(&scenario, tally, &first);

    tally->hash = ndtest_mix(tally->hash ^ first);
    if (passed && repeat) {
        passed = scenario_run(&scenario, tally, &second);
        tally->checks[10]++;
        if (passed && first != second) {
            tally->violations[10]++;
            snprintf(tally->first, sizeof(tally->first), "invariant 10: two runs differ: %016llx and %016llx",
                     (unsigned long long)first, (unsigned long long)second);
            passed = false;
        }
    }
    return passed;
}

/* A storm that never got to some corner proves nothing about it. */
static void require_coverage(const struct tally *tally)
{
    static const uint8_t statuses[] = {
        NETDAM_STATUS_OK,
        NETDAM_STATUS_BAD_KEY,
        NETDAM_STATUS_BAD_RANGE,
        NETDAM_STATUS_NO_PERMISSION,
        NETDAM_STATUS_MISALIGNED,
        NETDAM_STATUS_LOCAL_REGION,
        NETDAM_STATUS_LOCAL_RANGE,
        NETDAM_STATUS_LOCAL_PERMISSION,
        NETDAM_STATUS_LOCAL_PEER,
        NETDAM_STATUS_TIMEOUT,
        NETDAM_STATUS_UNKNOWN,
        NETDAM_STATUS_FLUSHED,
        NETDAM_STATUS_NOT_READY,
        NETDAM_STATUS_BAD_LENGTH,
        NETDAM_STATUS_LOCAL_DESCRIPTOR,
    };
    static const uint8_t counters[] = {
        NETDAM_COUNTER_RX_HEADER_CRC,    NETDAM_COUNTER_RX_PAYLOAD_CRC,       NETDAM_COUNTER_REQUESTS_REPEATED,
        NETDAM_COUNTER_REQUESTS_REFUSED, NETDAM_COUNTER_REQUESTS_BELOW_FLOOR, NETDAM_COUNTER_REQUESTS_STALE,
        NETDAM_COUNTER_REQUESTS_BUSY,    NETDAM_COUNTER_ANSWERS_LIMITED,      NETDAM_COUNTER_ANSWERS_DROPPED,
        NETDAM_COUNTER_RETRANSMISSIONS,  NETDAM_COUNTER_RESPONSES_UNMATCHED,  NETDAM_COUNTER_LANES_FORGOTTEN,
        NETDAM_COUNTER_LANES_GIVEN_UP,   NETDAM_COUNTER_RING_ERRORS,
    };
    bool all = tally->partial != 0 && tally->wrapped != 0 && tally->exhausted != 0 && tally->late_refused != 0 &&
               tally->resets != 0 && tally->messages != 0 && tally->repeated != 0 && tally->ordered != 0 &&
               tally->lists != 0;

    for (size_t i = 0; i < sizeof(statuses); i++) {
        if (tally->statuses[statuses[i]] == 0) {
            printf("# no completion with status 0x%x\n", statuses[i]);
            all = false;
        }
    }
    for (size_t i = 0; i < sizeof(counters); i++) {
        if (tally->counters[counters[i]] == 0) {
            printf("# counter %u stayed 0\n", counters[i]);
            all = false;
        }
    }
    result(all, "the storm reached every corner");
}

static void run_all(const struct options *options)
{
    struct tally *tally = calloc(1, sizeof(*tally));
    struct ndtest_random seeds = {options->seed};
    uint64_t scenario = options->seed;
    bool passed = true;

    for (unsigned i = 0; passed && tally->delivered < options->packets; i++) {
        scenario = options->one ? options->seed : ndtest_random_next(&seeds);
        printf("# scenario %u: seed 0x%016llx\n", i, (unsigned long long)scenario);
        fflush(stdout);
        passed = run(scenario, options, tally, i % 8 == 0);
        if (options->one) {
            break;
        }
    }
    if (!passed) {
        printf("# %s\n# replay: build/tests/property/property --one --seed 0x%016llx --scenario-packets %llu%s%s\n",
               tally->first, (unsigned long long)scenario, (unsigned long long)options->scenario_packets,
               options->tamper != NULL ? " --tamper " : "", options->tamper != NULL ? options->tamper : "");
    }
    print_tally(tally);
    for (unsigned i = 1; i <= INVARIANTS; i++) {
        if (tally->checks[i] == 0 && passed) {
            printf("# never checked\n");
        }
        result(tally->violations[i] == 0 && (tally->checks[i] != 0 || !passed), invariant_text[i]);
    }
    if (passed && !options->one && tally->delivered >= 200000) {
        require_coverage(tally);
    }
    free(tally);
}

/* Each fault must be noticed, within a few scenarios, as a violation of the invariant it breaks. */
static void self_test(const struct options *options)
{
    for (unsigned i = 0; i < tamper_count; i++) {
        struct ndtest_random seeds = {options->seed};
        struct options faulty = *options;
        struct tally *tally = calloc(1, sizeof(*tally));
        bool passed = true;
        char text[200];

        faulty.tamper = tamper_kinds[i].name;
        tally->quiet = true;
        /* Another invariant may break first in one scenario or two. */
        for (unsigned n = 0; n < 24 && (passed || tally->violations[tamper_kinds[i].invariant] == 0); n++) {
            passed = run(ndtest_random_next(&seeds), &faulty, tally, tamper_kinds[i].invariant == 10) && passed;
            if (!passed && tamper_kinds[i].invariant == 0) {
                break;
            }
        }
        printf("# %s\n", passed ? "nothing noticed" : tally->first);
        snprintf(text, sizeof(text), "noticed: %s", tamper_kinds[i].text);
        result(!passed && (tamper_kinds[i].invariant == 0 || tally->violations[tamper_kinds[i].invariant] != 0), text);
        free(tally);
    }
}

static void usage(FILE *out)
{
    fprintf(out, "property [--seed N] [--packets N] [--scenario-packets N] [--one] [--self-test] [--tamper NAME]\n"
                 "  --seed N              where everything is drawn from\n"
                 "  --packets N           packets to deliver in all (1000000)\n"
                 "  --scenario-packets N  of these, in each scenario (20000)\n"
                 "  --one                 run the one scenario that has this seed\n"
                 "  --self-test           put faults in and demand that each is noticed\n"
                 "  --tamper NAME         put this fault in:");
    for (unsigned i = 0; i < tamper_count; i++) {
        fprintf(out, " %s", tamper_kinds[i].name);
    }
    fprintf(out, "\n");
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .packets = 1000000, .scenario_packets = 20000};

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return 0;
        } else if (strcmp(argv[i], "--one") == 0) {
            options.one = true;
        } else if (strcmp(argv[i], "--self-test") == 0) {
            options.self_test = true;
        } else if (value != NULL && strcmp(argv[i], "--seed") == 0) {
            options.seed = strtoull(argv[++i], NULL, 0);
        } else if (value != NULL && strcmp(argv[i], "--packets") == 0) {
            options.packets = strtoull(argv[++i], NULL, 0);
        } else if (value != NULL && strcmp(argv[i], "--scenario-packets") == 0) {
            options.scenario_packets = strtoull(argv[++i], NULL, 0);
        } else if (value != NULL && strcmp(argv[i], "--tamper") == 0) {
            options.tamper = argv[++i];
        } else {
            usage(stderr);
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed 0x%llx\n", (unsigned long long)options.seed);
    if (options.self_test) {
        self_test(&options);
    } else {
        run_all(&options);
    }
    printf("1..%u\n", tests);
    return failures != 0;
}
