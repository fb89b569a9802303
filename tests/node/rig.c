/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the soft device share: a driver of a few lines, and netdam-node as a child process. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SQ_AT     UINT64_C(0)
#define CQ_AT     UINT64_C(16384)
#define RING_LOG2 6

#define LOCALHOST UINT64_C(0x7f000001)

uint64_t rig_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void rig_nap(void)
{
    struct timespec nap = {.tv_nsec = 1000000};

    nanosleep(&nap, NULL);
}

unsigned rig_admin(const struct rig *rig, unsigned command, const uint64_t *arguments, unsigned count,
                   uint64_t results[NETDAM_ADMIN_RESULTS])
{
    unsigned status;
    unsigned i;

    for (i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        netdam_soft_register_write(rig->soft, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, i < count ? arguments[i] : 0);
    }
    netdam_soft_register_write(rig->soft, NETDAM_REG_ADMIN_COMMAND, 4, command);
    status = (unsigned)netdam_soft_register_read(rig->soft, NETDAM_REG_ADMIN_STATUS, 4);
    for (i = 0; i < NETDAM_ADMIN_RESULTS; i++) {
        results[i] = netdam_soft_register_read(rig->soft, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
    }
    return status;
}

void rig_set_up(struct rig *rig)
{
    uint64_t region[] = {RIG_DATA, RIG_MEMORY - RIG_DATA, NETDAM_PERMISSION_ALL};
    uint64_t queue[] = {SQ_AT, RING_LOG2, CQ_AT, RING_LOG2, 0, 0, NETDAM_QUEUE_NETDAM};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(rig_admin(rig, NETDAM_ADMIN_REGION_CREATE, region, 3, results), NETDAM_ADMIN_STATUS_OK);
    rig->region = (uint32_t)results[0];
    rig->key = results[1];
    assert_int_equal(rig_admin(rig, NETDAM_ADMIN_QUEUE_CREATE, queue, 7, results), NETDAM_ADMIN_STATUS_OK);
    rig->pair = (uint32_t)results[0];
    rig->sq_producer = 0;
    rig->cq_consumer = 0;
}

void rig_open(struct rig *rig, const struct netdam_soft_config *like)
{
    struct netdam_soft_config config = {0};

    if (like != NULL) {
        config = *like;
    }
    config.listen = "127.0.0.1:0";
    config.memory_bytes = RIG_MEMORY;
    memset(rig, 0, sizeof(*rig));
    assert_int_equal(netdam_soft_open(&config, &rig->soft), 0);
    rig->memory = netdam_soft_memory(rig->soft);
    assert_int_equal(netdam_soft_memory_bytes(rig->soft), RIG_MEMORY);
    rig_set_up(rig);
}

void rig_close(struct rig *rig)
{
    netdam_soft_close(rig->soft);
    rig->soft = NULL;
}

uint64_t rig_counter(const struct rig *rig, enum netdam_counter counter)
{
    return netdam_soft_register_read(rig->soft, NETDAM_PAGE_COUNTERS + 8 * (uint32_t)counter, 8);
}

uint32_t rig_peer(const struct rig *rig, uint16_t port)
{
    uint64_t arguments[] = {LOCALHOST, 0, 4 | (uint64_t)port << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(rig_admin(rig, NETDAM_ADMIN_PEER_OPEN, arguments, 3, results), NETDAM_ADMIN_STATUS_OK);
    return (uint32_t)results[0];
}

static struct netdam_ring *ring(const struct rig *rig, uint64_t at)
{
    return (struct netdam_ring *)(void *)(rig->memory + at);
}

bool rig_post(struct rig *rig, const struct netdam_descriptor *descriptor)
{
    return rig_post_all(rig, descriptor, 1);
}

bool rig_post_all(struct rig *rig, const struct netdam_descriptor *descriptors, uint32_t count)
{
    struct netdam_ring *sq = ring(rig, SQ_AT);
    uint32_t consumer = __atomic_load_n(&sq->consumer, __ATOMIC_ACQUIRE);

    if (RIG_ENTRIES - (rig->sq_producer - consumer) < count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(rig->memory + SQ_AT + sizeof(*sq) + rig->sq_producer % RIG_ENTRIES * sizeof(*descriptors),
               &descriptors[i], sizeof(*descriptors));
        rig->sq_producer++;
    }
    /* Sequentially consistent on both sides: either this sees the flag, or the device sees the index. */
    __atomic_store_n(&sq->producer, rig->sq_producer, __ATOMIC_SEQ_CST);
    if ((__atomic_fetch_or(&sq->consumer_flags, 0, __ATOMIC_SEQ_CST) & NETDAM_RING_NEED_WAKEUP) != 0) {
        netdam_soft_register_write(rig->soft, NETDAM_PAGE_DOORBELLS + rig->pair * NETDAM_PAGE_BYTES, 4, 1);
    }
    return true;
}

bool rig_poll(struct rig *rig, struct netdam_completion *completion)
{
    struct netdam_ring *cq = ring(rig, CQ_AT);

    if (__atomic_load_n(&cq->producer, __ATOMIC_ACQUIRE) == rig->cq_consumer) {
        return false;
    }
    memcpy(completion, rig->memory + CQ_AT + sizeof(*cq) + rig->cq_consumer % RIG_ENTRIES * sizeof(*completion),
           sizeof(*completion));
    rig->cq_consumer++;
    __atomic_store_n(&cq->consumer, rig->cq_consumer, __ATOMIC_RELEASE);
    return true;
}

void rig_wait(struct rig *rig, struct netdam_completion *completion)
{
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;

    while (!rig_poll(rig, completion)) {
        if (rig_now_ns() > end_ns) {
            fail_msg("no completion within 30 s");
        }
        rig_nap();
    }
}

struct netdam_completion rig_do(struct rig *rig, const struct netdam_descriptor *descriptor)
{
    struct netdam_completion completion;

    assert_true(rig_post(rig, descriptor));
    rig_wait(rig, &completion);
    assert_int_equal(completion.user_data, descriptor->user_data);
    return completion;
}

struct netdam_descriptor rig_request(const struct rig *rig, unsigned opcode, uint32_t peer, uint64_t key,
                                     uint64_t local, uint64_t remote, uint32_t length)
{
    static uint64_t serial;
    struct netdam_descriptor descriptor = {
        .opcode = (uint8_t)opcode,
        .user_data = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED),
        .peer = peer,
        .length = length,
        .remote_key = key,
        .remote_address = remote,
        .local_region = rig->region,
    };

    descriptor.u.buffer.local_address = local;
    return descriptor;
}

static void run_node(const char *const *arguments, int output)
{
    const char *build = getenv("O");
    const char *argv[16] = {"netdam-node", "--listen", "127.0.0.1:0"};
    char path[512];
    unsigned count = 3;

    snprintf(path, sizeof(path), "%s/sim/netdam-node", build != NULL ? build : "build");
    while (arguments != NULL && *arguments != NULL && count < 15) {
        argv[count++] = *arguments++;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that crashes leaves no node behind */
    dup2(output, STDOUT_FILENO);
    execv(path, (char *const *)(uintptr_t)argv);
    perror(path);
    _exit(127);
}

void rig_node_start(struct rig_node *node, const char *const *arguments)
{
    unsigned long long bytes;
    unsigned long long key;
    char line[256];
    unsigned port;
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    fflush(NULL);
    node->pid = fork();
    if (node->pid == 0) {
        run_node(arguments, fds[1]);
    }
    assert_true(node->pid > 0);
    close(fds[1]);
    node->output = fdopen(fds[0], "r");
    assert_non_null(node->output);
    assert_non_null(fgets(line, sizeof(line), node->output));
    assert_int_equal(
        sscanf(line, "netdam-node ready address=127.0.0.1 port=%u bytes=%llu key=0x%llx", &port, &bytes, &key), 3);
    node->port = (uint16_t)port;
    node->bytes = bytes;
    node->key = key;
}

int rig_node_stop(struct rig_node *node, int signal_number, char *rest, size_t size)
{
    char line[256];
    size_t used = 0;
    int status;

    kill(node->pid, signal_number);
    if (size != 0) {
        rest[0] = 0;
    }
    while (fgets(line, sizeof(line), node->output) != NULL) {
        size_t length = strlen(line);

        if (used + length < size) {
            memcpy(rest + used, line, length + 1);
            used += length;
        }
    }
    fclose(node->output);
    assert_int_equal(waitpid(node->pid, &status, 0), node->pid);
    return status;
}

uint64_t rig_number(const char *text, const char *name)
{
    size_t length = strlen(name);

    while (text != NULL && *text != 0) {
        if (strncmp(text, name, length) == 0 && text[length] == ' ') {
            return strtoull(text + length + 1, NULL, 10);
        }
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return UINT64_MAX;
}
