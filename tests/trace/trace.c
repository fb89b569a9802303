/* SPDX-License-Identifier: BSD-3-Clause */
/* The node of a model as a firmware instance, and the lines of traces. */
#include "trace.h"

#include <inttypes.h>
#include <stdio.h>

#define NUMBERS_MAX 16u
#define TOLD_MAX    10u

#define COUNT_TEXT(name, text) text,
static const char *const count_text[] = {TRACE_COUNT_LIST(COUNT_TEXT)};
#undef COUNT_TEXT

void trace_demand(struct trace *trace, const char *what, uint64_t expected, uint64_t found)
{
    if (expected == found || trace->diverged) {
        return;
    }
    trace->diverged = true;
    if (trace->counts[COUNT_DIVERGED]++ < TOLD_MAX) {
        printf("trace %" PRIu64 ": %s: %s: the model says %#" PRIx64 ", the firmware %#" PRIx64 "\n",
               trace->counts[COUNT_TRACES], trace->line, what, expected, found);
    }
}

void trace_begin(struct trace *trace)
{
    trace->counts[COUNT_TRACES]++;
    trace->random.state = trace->counts[COUNT_TRACES];
    trace->running = true;
    trace->diverged = false;
}

static void create_region(struct trace_node *node)
{
    node->region = unit_region(
        &node->u, TRACE_BASE, TRACE_LENGTH,
        NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU, node->key);
    node->key_valid = true;
}

void trace_node_start(struct trace_node *node, struct trace *trace, unsigned index)
{
    struct netdam_fw_config config = unit_config(index);

    config.refusal_interval_ns = 1;
    config.refusal_burst = 1000000;
    config.lanes = 8;
    config.lane_windows = 8;
    node->trace = trace;
    unit_start(&node->u, index, &config);
    node->key = ndtest_random_next(&trace->random);
    node->address = 8 * ndtest_random_below(&trace->random, TRACE_LENGTH / 8);
    node->generation[0] = 0;
    node->generation[1] = node->u.fw->generation += index; /* no two nodes are in the same */
    node->current = 1;
    create_region(node);
}

void trace_node_stop(struct trace_node *node)
{
    unit_stop(&node->u);
}

void trace_node_turn_key(struct trace_node *node, bool valid)
{
    if (valid) {
        create_region(node);
    } else {
        trace_demand(node->trace, "region destroyed", NETDAM_ADMIN_STATUS_OK,
                     ndtest_region_destroy(&node->u.node, node->region, node->u.now_ns));
        node->key_valid = false;
    }
}

uint64_t trace_node_cell(const struct trace_node *node)
{
    return unit_memory_get(&node->u, TRACE_BASE + node->address, 8);
}

void trace_node_set_cell(struct trace_node *node, uint64_t value)
{
    unit_memory_put(&node->u, TRACE_BASE + node->address, 8, value);
}

uint32_t trace_node_busy(struct trace_node *node)
{
    uint32_t before = node->u.fw->window_free;

    node->u.fw->window_free = NDFW_NONE;
    return before;
}

void trace_node_not_busy(struct trace_node *node, uint32_t before)
{
    trace_demand(node->trace, "windows taken", NDFW_NONE, node->u.fw->window_free);
    node->u.fw->window_free = before;
}

bool trace_ask(struct trace_node *node, struct unit_request *request, struct ndtest_packet *answer)
{
    struct trace *trace = node->trace;
    uint8_t *frame = malloc(UNIT_FRAME_ROOM);
    size_t bytes;
    bool answered;

    unit_advance(&node->u, 1000);
    if (ndtest_random_below(&trace->random, 2) != 0) {
        request->flags |= NETDAM_FLAG_AGAIN; /* means nothing to a node */
    }
    bytes = unit_request_frame(frame, 1 - node->u.node.index, request);
    frame[11] = frame[29] = 1; /* the last bytes of Ethernet and IP source: node 0 */
    ndtest_frame_repair(frame, bytes, false);
    unit_receive(&node->u, frame, bytes);
    free(frame);
    answered = unit_sent(&node->u, answer);
    if (answered) {
        trace_demand(trace, "kind", NETDAM_KIND_RESPONSE, answer->kind);
        trace_demand(trace, "context", request->context, answer->context);
        trace_demand(trace, "number", request->number, answer->number);
        trace_demand(trace, "distance", request->distance, answer->distance);
        trace_demand(trace, "echo", request->generation, answer->echo);
    }
    trace_demand(trace, "more answers", 0, node->u.count);
    return answered;
}

void trace_confirm(struct trace_node *node, const struct unit_request *request, enum trace_answer answer,
                   uint64_t generation, uint64_t floor)
{
    struct trace *trace = node->trace;
    struct unit_request confirm = *request;
    struct ndtest_packet found;
    bool stale = answer == A_STALE;

    trace_demand(trace, "answered", true, trace_ask(node, &confirm, &found));
    if (!trace->diverged) {
        trace_demand(trace, "status", stale ? NETDAM_STATUS_STALE : NETDAM_STATUS_OK, found.status);
        trace_demand(trace, "generation", stale ? generation : request->generation, found.generation);
        trace_demand(trace, "floor", stale ? 0 : floor, found.floor);
    }
    trace->counts[stale ? COUNT_CONFIRM_STALE : COUNT_CONFIRMED]++;
}

/* A newcomer finds the table full: all lanes at rest are forgotten. */
static void forget(struct trace_node *node, unsigned lanes)
{
    struct ndfw *fw = node->u.fw;
    uint64_t before = unit_counter(&node->u, NETDAM_COUNTER_LANES_FORGOTTEN);
    uint32_t room = fw->config.lanes;
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = ndtest_random_next(&node->trace->random),
        .number = 1,
        .generation = node->generation[node->current],
    };

    unit_advance(&node->u, fw->config.generation_interval_ns);
    fw->config.lanes = fw->lane_count;
    trace_confirm(node, &request, A_STALE, node->generation[node->current] + 1, 0);
    fw->config.lanes = room;
    trace_demand(node->trace, "lanes forgotten", before + lanes,
                 unit_counter(&node->u, NETDAM_COUNTER_LANES_FORGOTTEN));
    trace_demand(node->trace, "generation", node->generation[node->current] + 1, fw->generation);
    node->trace->counts[COUNT_FORGOTTEN]++;
}

/* The requester of one lane has been silent for too long, that of the others not. */
static void give_up(struct trace_node *node, uint64_t context)
{
    uint64_t before = unit_counter(&node->u, NETDAM_COUNTER_LANES_GIVEN_UP);

    unit_advance(&node->u, 2 * node->u.fw->config.lane_give_up_ns);
    for (uint32_t i = 0; i < node->u.fw->config.lane_windows; i++) {
        struct ndfw_window *window = &node->u.fw->windows[i];

        if (window->in_use && window->context != context) {
            window->seen_ns = node->u.now_ns;
        }
    }
    unit_run(&node->u);
    trace_demand(node->trace, "lanes given up", before + 1, unit_counter(&node->u, NETDAM_COUNTER_LANES_GIVEN_UP));
    node->trace->counts[COUNT_GIVEN_UP]++;
}

/* Somebody else's lane with something unfinished in it, refused so that it leaves the cell alone. */
static uint64_t another_unfinished(struct trace_node *node)
{
    struct unit_request request = {
        .opcode = NETDAM_OP_WRITE,
        .context = ndtest_random_next(&node->trace->random),
        .number = 7,
        .generation = node->generation[node->current],
        .key = ~node->key,
        .length = 8,
        .payload_length = 8,
    };
    struct ndtest_packet answer;

    trace_demand(node->trace, "another answered", true, trace_ask(node, &request, &answer));
    if (!node->trace->diverged) {
        trace_demand(node->trace, "another's status", NETDAM_STATUS_BAD_KEY, answer.status);
    }
    return request.context;
}

/* Somebody else's lane at rest. */
static void another_at_rest(struct trace_node *node)
{
    struct unit_request request = {
        .opcode = NETDAM_OP_CONFIRM,
        .context = ndtest_random_next(&node->trace->random),
        .number = 7,
        .generation = node->generation[node->current],
    };

    trace_confirm(node, &request, A_OTHER, 0, 7);
}

void trace_lose(struct trace_node *node, enum trace_loss what, uint64_t context, unsigned lanes, unsigned now)
{
    struct ndfw *fw = node->u.fw;
    uint64_t cell = trace_node_cell(node);
    bool forgets = what == FORGETS || what == FORGETS_ANOTHER;

    switch (what) {
    case FORGETS:
        forget(node, lanes);
        break;
    case FORGETS_ANOTHER:
        another_at_rest(node);
        forget(node, 1);
        break;
    case GIVES_UP:
        give_up(node, context);
        break;
    case GIVES_UP_ANOTHER:
        give_up(node, another_unfinished(node));
        break;
    case RESET:
        ndtest_node_stop(&node->u.node, node->u.now_ns);
        ndtest_node_start(&node->u.node, node->u.now_ns);
        if (node->key_valid) {
            create_region(node);
        }
        node->trace->counts[COUNT_RESETS]++;
        break;
    }
    for (unsigned g = 1; g <= node->current && !forgets; g++) {
        trace_demand(node->trace, "a new epoch", true,
                     netdam_generation_epoch(fw->generation) != netdam_generation_epoch(node->generation[g]));
    }
    node->current = now < TRACE_GENERATIONS ? now : 0;
    node->generation[node->current] = fw->generation;
    trace_demand(node->trace, "memory", cell, trace_node_cell(node));
}

/* The event's name, and its numbers; false if the line is no event. */
static bool read_line(const char *line, char name[16], unsigned v[NUMBERS_MAX], unsigned *count)
{
    int used;

    if (sscanf(line, "@%15s%n", name, &used) != 1) {
        return false;
    }
    for (*count = 0; *count < NUMBERS_MAX; ++*count) {
        int more;

        line += used;
        if (sscanf(line, "%u%n", &v[*count], &more) != 1) {
            return line[strspn(line, " ")] == '\0';
        }
        used = more;
    }
    return false;
}

static bool replay_file(struct trace *trace, FILE *file, bool first,
                        bool (*replay)(const char *name, const unsigned *v, unsigned count))
{
    static char line[256];
    char name[16];
    unsigned v[NUMBERS_MAX], count;

    trace->line = line;
    while (fgets(line, sizeof(line), file) != NULL && !(first && trace->diverged)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '@') {
            continue;
        }
        if (!read_line(line, name, v, &count)) {
            return false;
        }
        if (strcmp(name, "trace") == 0 || (trace->running && !trace->diverged)) {
            trace->counts[COUNT_EVENTS] += strcmp(name, "trace") != 0;
            if (!replay(name, v, count)) {
                return false;
            }
        }
    }
    return true;
}

int trace_replay(struct trace *trace, int argc, char **argv,
                 bool (*replay)(const char *name, const unsigned *v, unsigned count), void (*stop)(void))
{
    bool first = argc > 1 && strcmp(argv[1], "--first") == 0;

    for (int i = first ? 2 : 1; i < argc && !(first && trace->diverged); i++) {
        FILE *file = fopen(argv[i], "r");
        bool read;

        if (file == NULL) {
            perror(argv[i]);
            return 2;
        }
        read = replay_file(trace, file, first, replay);
        fclose(file);
        stop();
        if (!read) {
            printf("%s: no event: %s\n", argv[i], trace->line);
            return 2;
        }
    }
    for (unsigned i = 0; i < COUNTS; i++) {
        printf("%s %" PRIu64 "\n", count_text[i], trace->counts[i]);
    }
    return trace->counts[COUNT_DIVERGED] == 0 ? 0 : 1;
}
