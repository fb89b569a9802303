/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has a firmware instance do what the node of the protocol model did, frame by frame, and compares the answers.
 *
 * The traces come from tests/model/lane.pml, run at random; trace.pml describes their lines. A context of the model
 * becomes a random id, its number n a random 48-bit base + n, its generation g whatever the firmware drew when the
 * model came to g, its memory cell 8 bytes in a region.
 */
#include <inttypes.h>
#include <stdio.h>

#include "unit.h"

#define CONTEXTS    2u
#define GENERATIONS 8u
#define BASE        UINT64_C(0x10000) /* the region's place */
#define LENGTH      UINT64_C(0x1000)
#define TOLD_MAX    10u

/* Answers, as lane.pml numbers them. */
enum { NONE, A_OK, A_REFUSED, A_STALE, A_OTHER };
/* What is lost, as trace.pml numbers it. */
enum { FORGETS = 1, GIVES_UP, RESET, GIVES_UP_ANOTHER };

/* X(name, text) */
#define COUNT_LIST(X)                                                                                                  \
    X(TRACES, "traces")                                                                                                \
    X(EVENTS, "events")                                                                                                \
    X(EXECUTED, "executed")                                                                                            \
    X(REPEATED, "repeated")                                                                                            \
    X(REFUSED, "refused")                                                                                              \
    X(REFUSED_AGAIN, "refused-again")                                                                                  \
    X(DROPPED, "below-floor")                                                                                          \
    X(STALE, "stale")                                                                                                  \
    X(BUSY, "busy")                                                                                                    \
    X(CONFIRMED, "confirmed")                                                                                          \
    X(CONFIRM_STALE, "confirm-stale")                                                                                  \
    X(READ, "read")                                                                                                    \
    X(READ_STALE, "read-stale")                                                                                        \
    X(FORGOTTEN, "forgotten")                                                                                          \
    X(GIVEN_UP, "given-up")                                                                                            \
    X(RESETS, "reset")                                                                                                 \
    X(DIVERGED, "diverged")

#define COUNT_ENUM(name, text) COUNT_##name,
enum { COUNT_LIST(COUNT_ENUM) COUNTS };
#undef COUNT_ENUM

#define COUNT_TEXT(name, text) text,
static const char *const count_text[] = {COUNT_LIST(COUNT_TEXT)};
#undef COUNT_TEXT

struct replay {
    struct unit u;
    struct ndtest_random random;
    const char *line; /* the event that is replayed */
    uint64_t context[CONTEXTS];
    uint64_t first[CONTEXTS]; /* the context's number 0 */
    uint64_t generation[GENERATIONS];
    uint64_t key;
    uint64_t address;
    uint64_t cell; /* what memory has to hold */
    uint64_t read_number;
    uint32_t region;
    unsigned current; /* index of the node's generation */
    bool values;      /* the model knows the cell */
    bool running;
    bool diverged; /* the rest of this trace is passed over */
    uint64_t counts[COUNTS];
};

static void diverge(struct replay *r, const char *what, uint64_t expected, uint64_t found)
{
    r->diverged = true;
    if (r->counts[COUNT_DIVERGED]++ < TOLD_MAX) {
        printf("trace %" PRIu64 ": %s: %s: the model says %#" PRIx64 ", the firmware %#" PRIx64 "\n",
               r->counts[COUNT_TRACES], r->line, what, expected, found);
    }
}

static void demand(struct replay *r, const char *what, uint64_t expected, uint64_t found)
{
    if (expected != found && !r->diverged) {
        diverge(r, what, expected, found);
    }
}

static void create_region(struct replay *r)
{
    r->region = unit_region(
        &r->u, BASE, LENGTH,
        NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU, r->key);
}

static void stop(struct replay *r)
{
    if (r->running) {
        unit_stop(&r->u);
        r->running = false;
    }
}

static void start(struct replay *r, bool values)
{
    struct netdam_fw_config config = unit_config(1);

    stop(r);
    r->counts[COUNT_TRACES]++;
    r->random.state = r->counts[COUNT_TRACES];
    config.refusal_interval_ns = 1;
    config.refusal_burst = 1000000;
    config.lanes = 8;
    config.lane_windows = 8;
    unit_start(&r->u, 1, &config);
    for (unsigned c = 0; c < CONTEXTS; c++) {
        r->context[c] = ndtest_random_next(&r->random);
        r->first[c] = ndtest_random_below(&r->random, NETDAM_NUMBER_MAX - 8);
    }
    r->key = ndtest_random_next(&r->random);
    r->address = 8 * ndtest_random_below(&r->random, LENGTH / 8);
    r->cell = 0;
    r->read_number = ndtest_random_below(&r->random, NETDAM_NUMBER_MAX - 1000);
    r->generation[0] = 0;
    r->current = 1;
    r->generation[1] = r->u.fw->generation;
    r->values = values;
    r->running = true;
    r->diverged = false;
    create_region(r);
}

/* A request that the model's node gets; true if it is answered. */
static bool ask(struct replay *r, struct unit_request *request, struct ndtest_packet *answer)
{
    bool answered;

    unit_advance(&r->u, 1000);
    request->flags |= (uint16_t)(ndtest_random_below(&r->random, 2) != 0 ? NETDAM_FLAG_AGAIN : 0); /* means nothing */
    unit_request(&r->u, request);
    answered = unit_sent(&r->u, answer);
    if (answered) {
        demand(r, "kind", NETDAM_KIND_RESPONSE, answer->kind);
        demand(r, "context", request->context, answer->context);
        demand(r, "number", request->number, answer->number);
        demand(r, "distance", request->distance, answer->distance);
        demand(r, "echo", request->generation, answer->echo);
    }
    demand(r, "more answers", 0, r->u.count);
    return answered;
}

static void demand_cell(struct replay *r)
{
    demand(r, "memory", r->cell, unit_memory_get(&r->u, BASE + r->address, 8));
}

/* mod: context, number, floor, generation, busy, add, answer, again, generation, lane's floor, value, cell */
static void modification(struct replay *r, const unsigned v[12])
{
    uint64_t payload = v[5] ? 1 : 2 + 2 * v[0] + v[1];
    struct unit_request request = {
        .opcode = v[5] ? NETDAM_OP_FETCH_ADD : NETDAM_OP_WRITE,
        .type = v[5] ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE,
        .context = r->context[v[0]],
        .number = r->first[v[0]] + v[1],
        .distance = (uint16_t)(v[1] - v[2]),
        .generation = r->generation[v[3]],
        .key = r->key,
        .address = r->address,
        .length = 8,
        .payload_length = 8,
        .payload = (const uint8_t *)&payload,
    };
    uint64_t floor = r->first[v[0]] + v[9], value = 0;
    uint32_t free_windows = r->u.fw->window_free;
    struct ndtest_packet answer;
    bool answered;

    if (v[4]) {
        r->u.fw->window_free = NDFW_NONE;
    }
    answered = ask(r, &request, &answer);
    if (v[4]) {
        demand(r, "windows taken", NDFW_NONE, r->u.fw->window_free);
        r->u.fw->window_free = free_windows;
    }
    demand(r, "answered", v[6] != NONE, answered);
    if (answered && !r->diverged) {
        static const uint8_t status[] = {0, NETDAM_STATUS_OK, NETDAM_STATUS_BAD_KEY, NETDAM_STATUS_STALE,
                                         NETDAM_STATUS_BUSY};

        demand(r, "status", status[v[6]], answer.status);
        demand(r, "answered again", v[7], (answer.flags & NETDAM_FLAG_AGAIN) != 0);
        demand(r, "generation", r->generation[v[6] == A_STALE ? v[8] : v[3]], answer.generation);
        if (v[6] == A_OK || v[6] == A_REFUSED || (v[6] == A_OTHER && answer.floor != 0)) {
            demand(r, "floor", floor, answer.floor);
        }
        if (v[6] == A_OK && v[5]) {
            demand(r, "payload length", 8, answer.payload_bytes);
            memcpy(&value, answer.payload, 8);
            demand(r, "value", v[10], value);
        }
    }
    if (v[6] == A_OK && !v[7]) {
        r->cell = v[5] ? r->cell + 1 : payload;
    }
    if (r->values) {
        demand(r, "cell", v[11], r->cell);
    }
    demand_cell(r);
    r->counts[v[6] == NONE        ? COUNT_DROPPED
              : v[6] == A_OK      ? (v[7] ? COUNT_REPEATED : COUNT_EXECUTED)
              : v[6] == A_REFUSED ? (v[7] ? COUNT_REFUSED_AGAIN : COUNT_REFUSED)
              : v[6] == A_STALE   ? COUNT_STALE
                                  : COUNT_BUSY]++;
}

/* confirm: context, floor, generation, answer, generation, lane's floor */
static void confirmation(struct replay *r, const unsigned v[12])
{
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = r->context[v[0]],
        .number = r->first[v[0]] + v[1],
        .generation = r->generation[v[2]],
    };
    struct ndtest_packet answer;

    demand(r, "answered", true, ask(r, &request, &answer));
    if (!r->diverged) {
        demand(r, "status", v[3] == A_STALE ? NETDAM_STATUS_STALE : NETDAM_STATUS_OK, answer.status);
        demand(r, "generation", r->generation[v[3] == A_STALE ? v[4] : v[2]], answer.generation);
        demand(r, "floor", v[3] == A_STALE ? 0 : r->first[v[0]] + v[5], answer.floor);
    }
    demand_cell(r);
    r->counts[v[3] == A_STALE ? COUNT_CONFIRM_STALE : COUNT_CONFIRMED]++;
}

/* read: generation, answer, generation, cell */
static void reading(struct replay *r, const unsigned v[12])
{
    struct unit_request request = {
        .opcode = NETDAM_OP_READ,
        .context = r->context[0],
        .number = r->read_number++,
        .generation = r->generation[v[0]],
        .key = r->key,
        .address = r->address,
        .length = 8,
    };
    struct ndtest_packet answer;
    uint64_t value;

    demand(r, "answered", true, ask(r, &request, &answer));
    if (!r->diverged) {
        demand(r, "status", v[1] == A_STALE ? NETDAM_STATUS_STALE : NETDAM_STATUS_OK, answer.status);
    }
    if (!r->diverged && v[1] == A_STALE) {
        demand(r, "generation", r->generation[v[2]], answer.generation);
    } else if (!r->diverged) {
        demand(r, "payload length", 8, answer.payload_bytes);
        memcpy(&value, answer.payload, 8);
        demand(r, "value", v[3], value);
    }
    r->counts[v[1] == A_STALE ? COUNT_READ_STALE : COUNT_READ]++;
}

/* A newcomer finds the table full: all lanes at rest are forgotten. */
static void forget(struct replay *r, unsigned lanes)
{
    uint64_t before = unit_counter(&r->u, NETDAM_COUNTER_LANES_FORGOTTEN);
    uint32_t room = r->u.fw->config.lanes;
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = ndtest_random_next(&r->random),
        .number = 1,
        .generation = r->generation[r->current],
    };
    struct ndtest_packet answer;

    unit_advance(&r->u, r->u.fw->config.generation_interval_ns);
    r->u.fw->config.lanes = r->u.fw->lane_count;
    demand(r, "newcomer answered", true, ask(r, &request, &answer));
    r->u.fw->config.lanes = room;
    if (!r->diverged) {
        demand(r, "newcomer's status", NETDAM_STATUS_STALE, answer.status);
    }
    demand(r, "lanes forgotten", before + lanes, unit_counter(&r->u, NETDAM_COUNTER_LANES_FORGOTTEN));
    demand(r, "generation", r->generation[r->current] + 1, r->u.fw->generation);
    r->counts[COUNT_FORGOTTEN]++;
}

/* The requester of one lane has been silent for too long, that of the others not. */
static void give_up(struct replay *r, uint64_t context)
{
    uint64_t before = unit_counter(&r->u, NETDAM_COUNTER_LANES_GIVEN_UP);

    unit_advance(&r->u, 2 * r->u.fw->config.lane_give_up_ns);
    for (uint32_t i = 0; i < r->u.fw->config.lane_windows; i++) {
        struct ndfw_window *window = &r->u.fw->windows[i];

        if (window->in_use && window->context != context) {
            window->seen_ns = r->u.now_ns;
        }
    }
    unit_run(&r->u);
    demand(r, "lanes given up", before + 1, unit_counter(&r->u, NETDAM_COUNTER_LANES_GIVEN_UP));
    r->counts[COUNT_GIVEN_UP]++;
}

/* Somebody else's lane with something unfinished in it, refused so that it leaves the cell alone. */
static uint64_t another(struct replay *r)
{
    struct unit_request request = {
        .opcode = NETDAM_OP_WRITE,
        .context = ndtest_random_next(&r->random),
        .number = 7,
        .generation = r->generation[r->current],
        .key = ~r->key,
        .length = 8,
        .payload_length = 8,
    };
    struct ndtest_packet answer;

    demand(r, "another answered", true, ask(r, &request, &answer));
    if (!r->diverged) {
        demand(r, "another's status", NETDAM_STATUS_BAD_KEY, answer.status);
    }
    return request.context;
}

/* lost: what, context (2: all), generation */
static void loss(struct replay *r, const unsigned v[12])
{
    bool had_region = ndfw_region_find(r->u.fw, r->key) != NULL;

    switch (v[0]) {
    case FORGETS:
        forget(r, v[1] == 2 ? 2 : 1);
        break;
    case GIVES_UP:
        give_up(r, r->context[v[1]]);
        break;
    case GIVES_UP_ANOTHER:
        give_up(r, another(r));
        break;
    default:
        ndtest_node_stop(&r->u.node, r->u.now_ns);
        ndtest_node_start(&r->u.node, r->u.now_ns);
        if (had_region) {
            create_region(r);
        }
        r->counts[COUNT_RESETS]++;
        break;
    }
    for (unsigned g = 1; g <= r->current && v[0] != FORGETS; g++) {
        demand(r, "a new epoch", true,
               netdam_generation_epoch(r->u.fw->generation) != netdam_generation_epoch(r->generation[g]));
    }
    r->current = v[2] < GENERATIONS ? v[2] : 0;
    r->generation[r->current] = r->u.fw->generation;
    demand_cell(r);
}

/* key: valid */
static void turn_key(struct replay *r, const unsigned v[12])
{
    if (v[0]) {
        create_region(r);
    } else {
        demand(r, "region destroyed", NETDAM_ADMIN_STATUS_OK,
               ndtest_region_destroy(&r->u.node, r->region, r->u.now_ns));
    }
}

/* written: cell */
static void written(struct replay *r, const unsigned v[12])
{
    r->cell = v[0];
    unit_memory_put(&r->u, BASE + r->address, 8, r->cell);
}

static const struct {
    const char *name;
    unsigned count; /* numbers behind it */
    void (*replay)(struct replay *r, const unsigned v[12]);
} events[] = {
    {"mod", 12, modification}, {"confirm", 6, confirmation}, {"read", 4, reading},
    {"lost", 3, loss},         {"key", 1, turn_key},         {"written", 1, written},
};

/* False if the line is no line of a trace. */
static bool replay_line(struct replay *r, const char *line)
{
    char name[16];
    unsigned v[12];
    int end;
    int found = sscanf(line, "@%15s%n %u %u %u %u %u %u %u %u %u %u %u %u", name, &end, &v[0], &v[1], &v[2], &v[3],
                       &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10], &v[11]);

    r->line = line;
    if (found == 2 && strcmp(name, "trace") == 0) {
        start(r, v[0] != 0);
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
        if (strcmp(name, events[i].name) == 0 && found == (int)events[i].count + 1) {
            if (r->running && !r->diverged) {
                events[i].replay(r, v);
                r->counts[COUNT_EVENTS]++;
            }
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static struct replay r;
    static char line[256];
    bool first = argc > 1 && strcmp(argv[1], "--first") == 0; /* one divergence is enough */

    for (int i = first ? 2 : 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "r");

        if (file == NULL) {
            perror(argv[i]);
            return 2;
        }
        while (fgets(line, sizeof(line), file) != NULL && !(first && r.diverged)) {
            line[strcspn(line, "\n")] = '\0';
            if (line[0] == '@' && !replay_line(&r, line)) {
                printf("%s: no event: %s\n", argv[i], line);
                return 2;
            }
        }
        fclose(file);
        stop(&r);
        if (first && r.diverged) {
            break;
        }
    }
    for (unsigned i = 0; i < COUNTS; i++) {
        printf("%s %" PRIu64 "\n", count_text[i], r.counts[i]);
    }
    return r.counts[COUNT_DIVERGED] == 0 ? 0 : 1;
}
