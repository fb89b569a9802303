/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-node: soft devices whose memory is for peers, until a signal ends them. */
#define _GNU_SOURCE
#include "nodes.h"
#include "status_file.h"
#include "streams.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

/* All nodes of the process; the first `count` of them are open. */
struct nodes {
    const struct ndsim_options *options;
    struct ndsim_node *all;
    unsigned count;
    struct ndsim_status_file status;
};

static bool fail(const char *what, int error)
{
    fprintf(stderr, "netdam-node: %s: %s\n", what, strerror(error));
    return false;
}

/* Each node holds a few file descriptors; the usual limit of 1024 is there for select(2), which nobody uses here. */
static void lift_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool open_nodes(struct nodes *nodes)
{
    const struct ndsim_options *options = nodes->options;

    nodes->all = calloc(options->node_count, sizeof(*nodes->all));
    if (nodes->all == NULL) {
        return fail("--nodes", ENOMEM);
    }
    for (; nodes->count < options->node_count; nodes->count++) {
        if (!ndsim_node_open(&nodes->all[nodes->count], options, &options->nodes[nodes->count])) {
            return false;
        }
    }
    return true;
}

static void print_all_ready(const struct nodes *nodes)
{
    unsigned long long memory = 0;
    unsigned long long state = 0;
    unsigned i;

    for (i = 0; i < nodes->count; i++) {
        ndsim_node_print_ready(&nodes->all[i]);
        memory += netdam_soft_memory_bytes(nodes->all[i].soft);
        state += netdam_soft_state_bytes(nodes->all[i].soft);
    }
    if (*nodes->options->nodes[0].name != 0) {
        printf(nodes->options->json
                   ? "{\"event\": \"all-ready\", \"nodes\": %u, \"memory_bytes\": %llu, \"state_bytes\": %llu}\n"
                   : "netdam-node all-ready nodes=%u memory=%llu state=%llu\n",
               nodes->count, memory, state);
        fflush(stdout);
    }
}

static bool write_status(struct nodes *nodes)
{
    struct ndsim_status_file *status = &nodes->status;
    unsigned i;

    if (nodes->options->status == NULL) {
        return true;
    }
    if (!ndsim_status_file_begin(status, nodes->options->status)) {
        return false;
    }
    fprintf(status->file, "{\"pid\": %ld, \"nodes\": [", (long)getpid());
    for (i = 0; i < nodes->count; i++) {
        fputs(i != 0 ? ",\n  " : "\n  ", status->file);
        ndsim_node_print_json(&nodes->all[i], NULL, status->file);
    }
    fputs("\n]}\n", status->file);
    return ndsim_status_file_publish(status);
}

/* Until a signal says that it is enough. */
static void serve(struct nodes *nodes, const sigset_t *signals)
{
    int number = 0;
    unsigned i;

    do {
        if (sigwait(signals, &number) == 0 && number == SIGUSR1) {
            for (i = 0; i < nodes->count; i++) {
                ndsim_node_print_counters(&nodes->all[i], true);
            }
        }
    } while (number != SIGINT && number != SIGTERM && number != SIGHUP);
    for (i = 0; nodes->options->counters && i < nodes->count; i++) {
        ndsim_node_print_counters(&nodes->all[i], nodes->options->json);
    }
}

static int run(const struct ndsim_options *options, const sigset_t *signals)
{
    struct nodes nodes = {.options = options};
    bool good;

    lift_descriptor_limit();
    good = open_nodes(&nodes) && write_status(&nodes);
    if (good) {
        print_all_ready(&nodes);
        serve(&nodes, signals);
        good = !options->counters || ndsim_all_printed("netdam-node");
    }
    ndsim_status_file_end(&nodes.status);
    while (nodes.count != 0) {
        ndsim_node_close(&nodes.all[--nodes.count]);
    }
    free(nodes.all);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct ndsim_options options;
    sigset_t signals;
    int status;

    ndsim_hold_streams();
    switch (ndsim_options_parse(argc, argv, &options)) {
    case NDSIM_OPTIONS_DONE:
        status = ndsim_all_printed("netdam-node") ? EXIT_SUCCESS : EXIT_FAILURE;
        break;
    case NDSIM_OPTIONS_WRONG:
        status = EXIT_USAGE;
        break;
    default:
        setvbuf(stdout, NULL, _IOLBF, 0);
        /* Blocked before any thread exists, so that only sigwait sees them. */
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGHUP);
        sigaddset(&signals, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        status = run(&options, &signals);
        break;
    }
    ndsim_options_free(&options);
    return status;
}
