/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: anything on the fabric's control socket, in pieces of any size. Each line gets one reply, which is an object
 * with `ok`; afterwards another client is served, frames are carried, and the counters balance.
 */
#include "fabric/control.h"

#include <errno.h>
#include <rte_eal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#define LINE_MAX_BYTES 16384u
#define REPLIES_MAX    (8u << 20)
#define PIECES_MAX     16u
#define FRAMES         16u
#define FRAME_BYTES    64u
#define SECOND_NS      UINT64_C(1000000000)

static const char net[] =
    "ports = ( { name = \"a\"; type = \"pmd\"; devargs = \"x\"; }, { name = \"b\"; type = \"pmd\"; devargs = \"y\"; } "
    ");"
    "switches = ( { name = \"s\"; }, { name = \"t\"; priorities = true; rate = \"1G\"; } );"
    "links = ( { name = \"l\"; from = \"a\"; to = \"s\"; }, { name = \"m\"; from = \"s\"; to = \"t\"; rate = \"1G\"; },"
    " { name = \"n\"; from = \"s\"; to = \"t\"; }, { name = \"o\"; from = \"t\"; to = \"b\"; delay = \"10us\"; } );";

static struct ndsim_topology topology;
static struct rte_mempool *pool;
static char directory[] = "/tmp/fuzz-control-XXXXXX";
static char socket_path[sizeof(directory) + 2];
static unsigned captures;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* What DPDK and libconfig keep is theirs. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig\nleak:librte";
}

/* Captures that write nowhere: a fuzzer that chooses files would destroy some. */
struct ndfab_capture {
    uint64_t frames;
};

struct ndfab_capture *ndfab_capture_open(const char *path, uint32_t frame_bytes, int *error)
{
    struct ndfab_capture *capture = path[0] != 0 && frame_bytes != 0 ? calloc(1, sizeof(*capture)) : NULL;

    *error = ENOENT;
    captures += capture != NULL;
    return capture;
}

bool ndfab_capture_close(struct ndfab_capture *capture)
{
    captures -= capture != NULL;
    free(capture);
    return true;
}

void ndfab_capture_frame(struct ndfab_capture *capture, const struct rte_mbuf *frame, uint64_t wall_ns)
{
    capture->frames += frame->pkt_len != 0 && wall_ns != 0;
}

/* Whoever is at the port takes everything. */
void ndfab_port_send(struct ndfab_port *port, struct rte_mbuf *frame)
{
    port->counts.out_frames++;
    port->counts.out_bytes += frame->pkt_len;
    rte_pktmbuf_free(frame);
}

static void remove_directory(void)
{
    unlink(socket_path);
    rmdir(directory);
}

static void start_dpdk(void)
{
    static char arguments[][32] = {
        "fuzz", "--no-telemetry", "--no-shconf", "--no-pci", "--no-huge", "-m16", "-l", "0", "--log-level=lib.*:error"};
    char *list[RTE_DIM(arguments) + 1] = {NULL};

    snprintf(arguments[7], sizeof(arguments[7]), "%d", sched_getcpu());
    for (size_t i = 0; i < RTE_DIM(arguments); i++) {
        list[i] = arguments[i];
    }
    setenv("RUNTIME_DIRECTORY", directory, 1);
    CHECK(rte_eal_init(RTE_DIM(arguments), list) >= 0);
    pool =
        rte_pktmbuf_pool_create_by_ops("frames", 1024, 0, 0, 256 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY, "ring_mp_mc");
    CHECK(pool != NULL);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char error[NDSIM_TOPOLOGY_ERROR_MAX];

    (void)argc;
    (void)argv;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(socket_path, sizeof(socket_path), "%s/c", directory);
    atexit(remove_directory);
    start_dpdk();
    CHECK(ndsim_topology_parse(&topology, net, error));
    return 0;
}

static void open_fabric(struct ndfab_fabric *fabric)
{
    *fabric = (struct ndfab_fabric){.topology = topology, .pool = pool, .start_ns = SECOND_NS};
    fabric->ports = calloc(topology.port_count, sizeof(*fabric->ports));
    CHECK(fabric->ports != NULL);
    for (uint32_t i = 0; i < topology.port_count; i++) {
        fabric->ports[i].fabric = fabric;
        fabric->ports[i].spec = &topology.ports[i];
        fabric->ports[i].index = i;
    }
    CHECK(ndfab_carry_open(fabric) && ndfab_stations_open(fabric));
}

static void close_fabric(struct ndfab_fabric *fabric)
{
    for (uint32_t i = 0; i < topology.port_count; i++) {
        ndfab_capture_close(fabric->ports[i].capture);
    }
    ndfab_carry_close(fabric);
    ndfab_stations_close(fabric);
    free(fabric->ports);
    CHECK(captures == 0 && rte_mempool_in_use_count(pool) == 0);
}

static int connect_client(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, socket_path);
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

struct replies {
    int fd;
    size_t bytes;
    size_t count; /* whole ones */
    bool ended;
    char text[REPLIES_MAX];
};

static void check_reply(const char *line, size_t bytes)
{
    json_t *reply = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
    const json_t *ok = json_object_get(reply, "ok");
    const char *error = json_string_value(json_object_get(reply, "error"));

    CHECK(json_is_object(reply) && json_is_boolean(ok));
    CHECK(json_is_true(ok) == (error == NULL));
    CHECK(error == NULL || (error[0] != 0 && strchr(error, '\n') == NULL));
    json_decref(reply);
}

/* Takes what has come, and keeps the half of a reply. */
static void read_replies(struct replies *replies)
{
    ssize_t got;
    char *end;

    while ((got = recv(replies->fd, replies->text + replies->bytes, REPLIES_MAX - replies->bytes, 0)) > 0) {
        replies->bytes += (size_t)got;
        while ((end = memchr(replies->text, '\n', replies->bytes)) != NULL) {
            size_t bytes = (size_t)(end - replies->text);

            check_reply(replies->text, bytes);
            replies->count++;
            replies->bytes -= bytes + 1;
            memmove(replies->text, end + 1, replies->bytes);
        }
        CHECK(replies->bytes < REPLIES_MAX);
    }
    replies->ended |= got == 0 || (errno != EAGAIN && errno != EINTR);
}

/* Lines that a client which sends `data` gets replies to: all whole ones, and one that is too long, which is the last. */
static size_t count_lines(const uint8_t *data, size_t size, bool *too_long)
{
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < size; i++) {
        bytes++;
        if (data[i] == '\n') {
            count++;
            bytes = 0;
        } else if (bytes == LINE_MAX_BYTES) {
            *too_long = true;
            return count + 1;
        }
    }
    return count;
}

static void talk(struct ndfab_control *control, const uint8_t *data, size_t size, size_t piece)
{
    static struct replies replies;
    bool too_long = false;
    size_t lines = count_lines(data, size, &too_long);
    struct pollfd fds[NDFAB_CONTROL_FDS];
    size_t sent = 0;

    replies.fd = connect_client();
    replies.bytes = replies.count = 0;
    replies.ended = false;
    /* Until all is sent and nothing is left to be done at once: what the fabric sleeps on tells. */
    do {
        ssize_t some = send(replies.fd, data + sent, piece < size - sent ? piece : size - sent, MSG_NOSIGNAL);

        sent += some > 0 ? (size_t)some : 0;
        ndfab_control_serve(control);
        read_replies(&replies);
    } while (!replies.ended && (sent < size || poll(fds, ndfab_control_fds(control, fds), 0) > 0));
    CHECK(replies.count == lines && replies.bytes == 0 && replies.ended == too_long);
    close(replies.fd);
    ndfab_control_serve(control);
}

static void carry_frames(struct ndfab_fabric *fabric)
{
    for (unsigned i = 0; i < FRAMES; i++) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);
        uint8_t *data;

        CHECK(frame != NULL);
        data = (uint8_t *)rte_pktmbuf_append(frame, FRAME_BYTES);
        memset(data, 0, FRAME_BYTES);
        memset(data, i < FRAMES / 2 ? 0xff : 2, 6);
        data[6] = 2;
        data[11] = (uint8_t)(i % 2);
        ndfab_carry_in(&fabric->ports[i % 2], frame);
        ndfab_carry_due(fabric, fabric->loop.now_ns + SECOND_NS / 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char counters[] = "{\"command\": \"counters\"}\n";
    struct ndfab_control *control;
    struct ndfab_fabric fabric;
    json_t *report;

    if (size == 0) {
        return 0;
    }
    open_fabric(&fabric);
    control = ndfab_control_open(&fabric, socket_path);
    CHECK(control != NULL);
    talk(control, data + 1, size - 1, 1 + data[0] + size / PIECES_MAX);
    talk(control, (const uint8_t *)counters, sizeof(counters) - 1, sizeof(counters) - 1);
    carry_frames(&fabric);
    report = ndfab_report_counters(&fabric);
    CHECK(json_is_true(json_object_get(json_object_get(report, "totals"), "balanced")));
    json_decref(report);
    ndfab_control_close(control);
    close_fabric(&fabric);
    return 0;
}
