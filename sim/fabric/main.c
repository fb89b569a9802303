/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-fabric: reads a topology, opens its ports, and moves frames until a signal or a command ends it. */
#include "control.h"
#include "gate.h"
#include "streams.h"
#include "wait.h"
#include "netdam/regs.h"

#include <errno.h>
#include <getopt.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_version.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WATCH_NS       UINT64_C(1000000)  /* control and who has come or gone */
#define PASS_NS        UINT64_C(10000000) /* how long DPDK's interrupt thread may be held when nobody is missing */
#define FLUSH_NS       UINT64_C(100000000)
#define EAL_MAX        64u
#define EAL_OWN        12u /* of these, our own and the end */
#define RUNTIME_MAX    1024u
#define MEMORY_OWN_MIB 24u /* of DPDK itself, and of its drivers' rings */

enum { EXIT_USAGE = 2 };

struct options {
    const char *topology;
    const char *control;
    bool poll;
    bool check;
    bool json;
    bool verbose;
    bool pci;
    bool huge;
    char **eal;
    int eal_count;
};

static volatile sig_atomic_t ended;

static const char help[] =
    "usage: netdam-fabric [OPTION]... TOPOLOGY [-- EAL-ARGUMENT...]\n"
    "       netdam-fabric ctl SOCKET COMMAND...\n"
    "Makes the network that the file TOPOLOGY describes, and moves frames in real time until a signal ends it.\n\n"
    "  -c, --control PATH       listen on a control socket there; default: what the file says, or none\n"
    "  -p, --poll               never sleep: burns a core, answers at once\n"
    "  -k, --check              read the file, say what is wrong with it, and end\n"
    "  -j, --json               ready line, and counters at the end, as JSON\n"
    "  -v, --verbose            tell of peers that come, go, or break the protocol\n"
    "      --pci                let DPDK look for PCI devices\n"
    "      --huge               use huge pages\n"
    "  -V, --version            print versions\n"
    "  -h, --help               print this\n\n"
    "When all ports are open it prints one line:\n"
    "  netdam-fabric ready ports=N switches=N links=N control=PATH\n"
    "It ends with status 0 on SIGINT, SIGTERM, SIGHUP or the command quit; with 1 when it fails, with 2 when an "
    "argument\n"
    "or the file is wrong. A COMMAND is a word, such as counters, or a JSON object; see the manual page.\n";

static const struct option long_options[] = {
    {"control", required_argument, NULL, 'c'}, {"poll", no_argument, NULL, 'p'},
    {"check", no_argument, NULL, 'k'},         {"json", no_argument, NULL, 'j'},
    {"verbose", no_argument, NULL, 'v'},       {"pci", no_argument, NULL, 'P'},
    {"huge", no_argument, NULL, 'H'},          {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
};

static void on_signal(int signal)
{
    (void)signal;
    ended = 1;
}

/* Blocked while DPDK starts its threads, so that the one that sleeps is the one that is woken. */
static void take_signals(bool block)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < RTE_DIM(signals); i++) {
        sigaddset(&set, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a capture that has become too long is an error of write(2) */
    pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* One lcore that may run on every CPU that we may. */
static void describe_cpus(char *text, size_t room)
{
    cpu_set_t set;
    size_t used = (size_t)snprintf(text, room, "--lcores=0@(");
    const char *comma = "";

    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && used + 16 < room; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            used += (size_t)snprintf(text + used, room - used, "%s%u", comma, cpu);
            comma = ",";
        }
    }
    snprintf(text + used, room - used, ")");
}

/*
 * DPDK wants a directory for secondary processes, of which there are none, in places that not everybody may write to.
 * It gets one of its own, and what is removed at once does not stay after SIGKILL.
 */
static bool make_runtime(char runtime[RUNTIME_MAX])
{
    const char *top = getenv("TMPDIR");

    if (snprintf(runtime, RUNTIME_MAX, "%s/netdam-fabric-XXXXXX", top != NULL ? top : "/tmp") >= (int)RUNTIME_MAX ||
        mkdtemp(runtime) == NULL) {
        fprintf(stderr, "netdam-fabric: %s: %s\n", runtime, strerror(errno));
        return false;
    }
    setenv("RUNTIME_DIRECTORY", runtime, 1);
    return true;
}

static void remove_runtime(const char *runtime)
{
    char inner[RUNTIME_MAX + 8];

    snprintf(inner, sizeof(inner), "%s/dpdk", runtime);
    rmdir(rte_eal_get_runtime_dir());
    rmdir(inner);
    rmdir(runtime);
}

static bool start_dpdk(const struct options *options, const struct ndsim_topology *topology)
{
    uint64_t frames = (uint64_t)topology->buffers * (topology->frame_bytes + RTE_PKTMBUF_HEADROOM + 256);
    /* net_tap complains about queueing disciplines that it can do without. The first that fits a driver counts. */
    static char always[][40] = {"netdam-fabric",
                                "--no-telemetry",
                                "--no-shconf",
                                "--log-level=lib.*:error",
                                "--log-level=pmd.net.tap:critical",
                                "--log-level=pmd.*:error"};
    static char no_pci[] = "--no-pci", no_huge[] = "--no-huge";
    char cpus[2048], prefix[64], memory[24];
    char runtime[RUNTIME_MAX];
    char *arguments[EAL_MAX];
    int count = 0;
    bool good;

    if (!make_runtime(runtime)) {
        return false;
    }
    describe_cpus(cpus, sizeof(cpus));
    snprintf(prefix, sizeof(prefix), "--file-prefix=netdam-fabric-%ld", (long)getpid());
    snprintf(memory, sizeof(memory), "-m%u", MEMORY_OWN_MIB + (unsigned)(frames >> 20) + 2 * topology->port_count);
    for (size_t i = 0; i < RTE_DIM(always); i++) {
        arguments[count++] = always[i];
    }
    arguments[count++] = prefix;
    arguments[count++] = cpus;
    if (!options->pci) {
        arguments[count++] = no_pci;
    }
    if (!options->huge) {
        arguments[count++] = no_huge;
        arguments[count++] = memory;
    }
    for (int i = 0; i < options->eal_count; i++) {
        arguments[count++] = options->eal[i];
    }
    arguments[count] = NULL;
    good = rte_eal_init(count, arguments) >= 0;
    remove_runtime(runtime);
    if (!good) {
        fprintf(stderr, "netdam-fabric: DPDK does not start: %s\n", rte_strerror(rte_errno));
        return false;
    }
    return true;
}

static bool open_fabric(struct ndfab_fabric *fabric)
{
    const struct ndsim_topology *topology = &fabric->topology;
    struct timespec wall;

    fabric->pool = rte_pktmbuf_pool_create_by_ops("frames", topology->buffers, RTE_MIN(256u, topology->buffers / 4), 0,
                                                  (uint16_t)(topology->frame_bytes + RTE_PKTMBUF_HEADROOM),
                                                  SOCKET_ID_ANY, "ring_mp_mc");
    fabric->ports = calloc(topology->port_count + 1, sizeof(*fabric->ports));
    if (fabric->pool == NULL || fabric->ports == NULL) {
        fprintf(stderr, "netdam-fabric: not enough memory for %u frames of %u bytes\n", topology->buffers,
                topology->frame_bytes);
        return false;
    }
    for (uint32_t i = 0; i < topology->port_count; i++) {
        fabric->ports[i].fabric = fabric;
        fabric->ports[i].spec = &topology->ports[i];
        fabric->ports[i].index = i;
        fabric->ports[i].claims[0] = fabric->ports[i].claims[1] = -1;
    }
    if (!ndfab_ports_open(fabric)) {
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &wall);
    fabric->start_ns = ndfab_clock_ns();
    fabric->wall_ns = (uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec - fabric->start_ns;
    return ndfab_carry_open(fabric) && ndfab_stations_open(fabric);
}

static bool open_captures(struct ndfab_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->topology.link_count; i++) {
        const struct ndsim_topology_link *spec = &fabric->topology.links[i];
        struct ndfab_way *ways = &fabric->ways[2 * i];
        int error;

        if (spec->capture == NULL) {
            continue;
        }
        ways[0].capture = ways[1].capture = ndfab_capture_open(spec->capture, fabric->topology.frame_bytes, &error);
        if (ways[0].capture == NULL) {
            fprintf(stderr, "netdam-fabric: link %s: %s: %s\n", spec->name, spec->capture, ndfab_claim_text(error));
            return false;
        }
    }
    return true;
}

static void flush_captures(struct ndfab_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        if (fabric->ports[i].capture != NULL) {
            ndfab_capture_flush(fabric->ports[i].capture);
        }
    }
    for (uint32_t i = 0; i < fabric->topology.link_count; i++) {
        if (fabric->ways[2 * i].capture != NULL) {
            ndfab_capture_flush(fabric->ways[2 * i].capture);
        }
    }
}

/* Only drivers that we have not written need it. */
static bool needs_gate(const struct ndsim_topology *topology)
{
    bool needed = false;

    for (uint32_t i = 0; i < topology->port_count; i++) {
        needed |= topology->ports[i].dpdk || topology->ports[i].type == NDSIM_PORT_PMD;
    }
    return needed;
}

static bool all_up(const struct ndfab_fabric *fabric)
{
    bool all = true;

    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        all &= fabric->ports[i].up;
    }
    return all;
}

static void run(struct ndfab_fabric *fabric, struct ndfab_control *control, struct ndfab_wait *wait,
                struct ndfab_gate *gate)
{
    uint64_t next_watch_ns = 0, next_pass_ns = 0, next_flush_ns = 0;

    while (!ended && !fabric->stop) {
        uint64_t now_ns = ndfab_clock_ns();
        uint64_t work = ndfab_carry_due(fabric, now_ns);
        bool blocked;

        work += ndfab_ports_receive(fabric);
        blocked = ndfab_ports_flush(fabric);
        if (now_ns >= next_watch_ns) {
            if (now_ns >= next_pass_ns) {
                ndfab_gate_pass(gate);
                next_pass_ns = now_ns + (all_up(fabric) ? PASS_NS : 0);
            }
            ndfab_ports_watch(fabric);
            ndfab_control_serve(control);
            next_watch_ns = now_ns + WATCH_NS;
            if (now_ns >= next_flush_ns) {
                flush_captures(fabric);
                next_flush_ns = now_ns + FLUSH_NS;
            }
        }
        if (work != 0) {
            ndfab_wait_busy(wait);
        } else if (ndfab_wait_idle(wait, blocked)) {
            next_watch_ns = 0;
        }
    }
}

static void print_ready(const struct options *options, const struct ndsim_topology *topology, const char *control)
{
    if (options->json) {
        json_t *ready = json_pack("{s:i,s:i,s:i,s:s?}", "ports", (int)topology->port_count, "switches",
                                  (int)topology->switch_count, "links", (int)topology->link_count, "control", control);

        json_dumpf(ready, stdout, JSON_COMPACT);
        json_decref(ready);
        putchar('\n');
    } else {
        printf("netdam-fabric ready ports=%u switches=%u links=%u control=%s\n", topology->port_count,
               topology->switch_count, topology->link_count, control != NULL ? control : "none");
    }
    fflush(stdout);
}

static int serve(const struct options *options, struct ndfab_fabric *fabric)
{
    const char *path = options->control != NULL ? options->control : fabric->topology.control;
    struct ndfab_control *control = NULL;
    struct ndfab_gate *gate = NULL;
    struct ndfab_wait wait = {0};
    bool good = open_fabric(fabric) && open_captures(fabric);

    if (good && path != NULL) {
        control = ndfab_control_open(fabric, path);
        good = control != NULL;
    }
    if (good && needs_gate(&fabric->topology)) {
        gate = ndfab_gate_open();
        good = gate != NULL;
    }
    good = good && ndfab_wait_open(&wait, fabric, control, options->poll);
    if (good) {
        ndfab_ports_watch(fabric);
        print_ready(options, &fabric->topology, path);
        run(fabric, control, &wait, gate);
        if (options->json) {
            json_t *counters = ndfab_report_counters(fabric);

            json_dumpf(counters, stdout, JSON_COMPACT);
            json_decref(counters);
            putchar('\n');
            good = ndsim_all_printed("netdam-fabric");
        }
    }
    ndfab_gate_close(gate);
    ndfab_wait_close(&wait);
    ndfab_control_close(control);
    ndfab_ports_close(fabric);
    ndfab_carry_close(fabric);
    ndfab_stations_close(fabric);
    if (good && rte_mempool_in_use_count(fabric->pool) != 0) {
        fprintf(stderr, "netdam-fabric: %u buffers have been lost\n", rte_mempool_in_use_count(fabric->pool));
        good = false;
    }
    rte_mempool_free(fabric->pool);
    free(fabric->ports);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int printed(void)
{
    return ndsim_all_printed("netdam-fabric") ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    int option;

    while ((option = getopt_long(argc, argv, "+c:pkjvVh", long_options, NULL)) != -1) {
        switch (option) {
        case 'c':
            options->control = optarg;
            if (*optarg == 0) {
                /* The kernel would make a socket of it that has no owner. */
                fprintf(stderr, "netdam-fabric: --control: expected a path\n");
                return EXIT_USAGE;
            }
            break;
        case 'p':
            options->poll = true;
            break;
        case 'k':
            options->check = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'P':
            options->pci = true;
            break;
        case 'H':
            options->huge = true;
            break;
        case 'V':
            printf("netdam-fabric: specification %u.%u, %s\n", NETDAM_SPEC_VERSION >> 16, NETDAM_SPEC_VERSION & 0xffffu,
                   rte_version());
            return printed();
        case 'h':
            fputs(help, stdout);
            return printed();
        default:
            return EXIT_USAGE;
        }
    }
    if (optind == argc || (optind + 1 < argc && strcmp(argv[optind + 1], "--") != 0)) {
        fprintf(stderr, "netdam-fabric: expected one topology file; --help tells more\n");
        return EXIT_USAGE;
    }
    options->topology = argv[optind];
    if (optind + 2 < argc) {
        options->eal = argv + optind + 2;
        options->eal_count = argc - optind - 2;
        if ((unsigned)options->eal_count > EAL_MAX - EAL_OWN) {
            fprintf(stderr, "netdam-fabric: more than %u arguments for DPDK\n", EAL_MAX - EAL_OWN);
            return EXIT_USAGE;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    char error[NDSIM_TOPOLOGY_ERROR_MAX];
    struct ndfab_fabric fabric = {0};
    struct options options = {0};
    int status;

    ndsim_hold_streams();
    if (argc > 1 && strcmp(argv[1], "ctl") == 0) {
        return ndfab_client(argc - 2, argv + 2);
    }
    status = parse(argc, argv, &options);
    if (status >= 0) {
        return status;
    }
    if (!ndsim_topology_read(&fabric.topology, options.topology, error)) {
        fprintf(stderr, "netdam-fabric: %s\n", error);
        return EXIT_USAGE;
    }
    if (fabric.topology.link_count == 0) {
        fprintf(stderr, "netdam-fabric: %s: there are no links\n", options.topology);
        status = EXIT_USAGE;
    } else if (fabric.topology.port_count > RTE_MAX_ETHPORTS) {
        fprintf(stderr, "netdam-fabric: %s: more than %u ports\n", options.topology, RTE_MAX_ETHPORTS);
        status = EXIT_USAGE;
    } else if (options.check) {
        status = EXIT_SUCCESS;
    } else {
        fabric.verbose = options.verbose;
        take_signals(true);
        status = start_dpdk(&options, &fabric.topology) ? EXIT_SUCCESS : EXIT_FAILURE;
        take_signals(false);
        if (status == EXIT_SUCCESS) {
            status = serve(&options, &fabric);
            rte_eal_cleanup();
        }
    }
    ndsim_topology_free(&fabric.topology);
    return status;
}
