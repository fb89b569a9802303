/* SPDX-License-Identifier: BSD-3-Clause */
/* The soft device: opening, data between two of them and between it and itself, sleeping, interrupts, dead peers,
 * reset. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <pthread.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CQ_AT 16384

/* Gives up after about 3 * 20 ms. */
static const struct netdam_soft_config impatient = {
    .retries = 3,
    .rto_initial_ns = 10000000,
    .rto_min_ns = 10000000,
    .rto_max_ns = 20000000,
};

static void fill(uint8_t *to, size_t bytes, unsigned seed)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (uint8_t)(seed >> 24);
    }
}

static void impossible_configurations_are_refused(void **state)
{
    static const struct netdam_soft_config table[] = {
        {.listen = NULL, .memory_bytes = 4096},
        {.listen = "", .memory_bytes = 4096},
        {.listen = "127.0.0.1", .memory_bytes = 4096},
        {.listen = "127.0.0.1:", .memory_bytes = 4096},
        {.listen = "127.0.0.1:65536", .memory_bytes = 4096},
        {.listen = "127.0.0.1:-1", .memory_bytes = 4096},
        {.listen = "127.0.0.1:1x", .memory_bytes = 4096},
        {.listen = "127.0.0.256:0", .memory_bytes = 4096},
        {.listen = "localhost:0", .memory_bytes = 4096},
        {.listen = "0.0.0.0:0", .memory_bytes = 4096},
        {.listen = "255.255.255.255:0", .memory_bytes = 4096},
        {.listen = "224.0.0.1:0", .memory_bytes = 4096},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .memif_secret = "x"},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .memif_server = true},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .memif_id = 1},
        {.listen = "127.0.0.1:0", .memory_bytes = 0},
        {.listen = "127.0.0.1:0", .memory_bytes = 4095},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .mtu = 1499},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .mtu = 9001},
        {.listen = "127.0.0.1:0", .memory_bytes = 4096, .queue_pairs = 65},
    };
    struct netdam_soft *soft = NULL;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_int_equal(netdam_soft_open(&table[i], &soft), -EINVAL);
        assert_null(soft);
    }
}

static void a_port_in_use_and_a_foreign_address_are_told(void **state)
{
    struct netdam_soft_config config = {.memory_bytes = 4096};
    struct netdam_soft *soft = NULL;
    char listen[32];
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL);
    snprintf(listen, sizeof(listen), "127.0.0.1:%u", netdam_soft_port(rig.soft));
    config.listen = listen;
    assert_int_equal(netdam_soft_open(&config, &soft), -EADDRINUSE);
    config.listen = "192.0.2.1:0";
    assert_int_equal(netdam_soft_open(&config, &soft), -EADDRNOTAVAIL);
    assert_null(soft);
    rig_close(&rig);
}

static void registers_tell_the_configuration(void **state)
{
    struct netdam_soft_config config = {.mtu = 9000, .queue_pairs = 5};
    struct rig rig;

    (void)state;
    rig_open(&rig, &config);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_ID, 4), NETDAM_ID);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_IPV4, 4), 0x7f000001);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_UDP_PORT, 4), netdam_soft_port(rig.soft));
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_MEMORY_BYTES, 8), RIG_MEMORY);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_MTU, 4), 9000);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_QUEUE_PAIRS, 4), 5);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_VECTORS, 4), 5);
    assert_int_equal(netdam_soft_register_read(rig.soft, NETDAM_REG_MAIN_MEMORY_BYTES, 8), 0);
    /* Refused ones: an odd offset, a doorbell of a wrong width, one beyond the last pair. */
    assert_int_equal((uint32_t)netdam_soft_register_read(rig.soft, 1, 4), UINT32_MAX);
    netdam_soft_register_write(rig.soft, NETDAM_PAGE_DOORBELLS, 2, 1);
    netdam_soft_register_write(rig.soft, NETDAM_PAGE_DOORBELLS + 5 * NETDAM_PAGE_BYTES, 4, 1);
    assert_int_equal(rig_counter(&rig, NETDAM_COUNTER_REGISTER_ERRORS), 3);
    assert_int_equal(netdam_soft_interrupt_fd(rig.soft, 5), -EINVAL);
    assert_int_equal(netdam_soft_interrupt_fd(rig.soft, UINT32_MAX), -EINVAL);
    rig_close(&rig);
}

static void move(struct rig *from, uint32_t peer, struct rig *to)
{
    static const uint32_t lengths[] = {1, 7, 1399, 1400, 1401, 8904, 65536, 1000003};
    struct netdam_descriptor request;
    struct netdam_completion completion;
    unsigned i;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint8_t *source = from->memory + RIG_DATA;
        uint8_t *target = to->memory + RIG_DATA + (4 << 20) + i;
        uint8_t *back = from->memory + RIG_DATA + (2 << 20) + 3;

        fill(source, lengths[i], i + 1);
        request = rig_request(from, NETDAM_OP_WRITE, peer, to->key, 0, (4 << 20) + i, lengths[i]);
        completion = rig_do(from, &request);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.length, lengths[i]);
        assert_memory_equal(source, target, lengths[i]);
        memset(back, 0, lengths[i]);
        request = rig_request(from, NETDAM_OP_READ, peer, to->key, (2 << 20) + 3, (4 << 20) + i, lengths[i]);
        completion = rig_do(from, &request);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_memory_equal(source, back, lengths[i]);
    }
}

static void data_moves_between_two_devices(void **state)
{
    struct netdam_soft_config jumbo = {.mtu = 9000};
    const struct netdam_soft_config *configs[] = {NULL, &jumbo};
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct netdam_soft_statistics statistics;
        struct rig a;
        struct rig b;

        rig_open(&a, configs[i]);
        rig_open(&b, configs[i]);
        move(&a, rig_peer(&a, netdam_soft_port(b.soft)), &b);
        move(&b, rig_peer(&b, netdam_soft_port(a.soft)), &a);
        netdam_soft_get_statistics(a.soft, &statistics);
        assert_true(statistics.datagrams_sent > 100);
        assert_int_equal(statistics.not_sendable, 0);
        assert_int_equal(statistics.send_errors, 0);
        assert_int_equal(rig_counter(&a, NETDAM_COUNTER_RX_CHECKSUM), 0);
        assert_int_equal(rig_counter(&b, NETDAM_COUNTER_RX_CHECKSUM), 0);
        rig_close(&a);
        rig_close(&b);
    }
}

static void a_device_reaches_itself(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, NULL);
    move(&rig, rig_peer(&rig, netdam_soft_port(rig.soft)), &rig);
    rig_close(&rig);
}

static void a_counter_adds_up(void **state)
{
    struct netdam_descriptor request;
    struct netdam_completion completion;
    uint64_t value;
    uint32_t peer;
    struct rig a;
    struct rig b;
    unsigned i;

    (void)state;
    rig_open(&a, NULL);
    rig_open(&b, NULL);
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    for (i = 0; i < 100; i++) {
        request = rig_request(&a, NETDAM_OP_FETCH_ADD, peer, b.key, 0, 64, 8);
        request.local_region = 0;
        request.type = NETDAM_TYPE_U64;
        request.u.operand[0] = 3;
        request.u.operand[1] = 0;
        completion = rig_do(&a, &request);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.result, 3 * i);
    }
    memcpy(&value, b.memory + RIG_DATA + 64, 8);
    assert_int_equal(value, 300);
    rig_close(&a);
    rig_close(&b);
}

static void adjacent_writes_share_packets_unless_that_is_switched_off(void **state)
{
    (void)state;
    for (unsigned off = 0; off < 2; off++) {
        struct netdam_soft_config config = {.no_merge = off != 0};
        struct netdam_descriptor requests[10];
        struct netdam_completion completion;
        uint32_t peer;
        struct rig a;
        struct rig b;
        unsigned i;

        rig_open(&a, &config);
        rig_open(&b, NULL);
        peer = rig_peer(&a, netdam_soft_port(b.soft));
        fill(a.memory + RIG_DATA, 1000, 1);
        for (i = 0; i < 10; i++) {
            requests[i] = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 100 * i, 64 + 100 * i, 100);
        }
        assert_true(rig_post_all(&a, requests, 10));
        for (i = 0; i < 10; i++) {
            rig_wait(&a, &completion);
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
            assert_int_equal(completion.length, 100);
        }
        assert_memory_equal(b.memory + RIG_DATA + 64, a.memory + RIG_DATA, 1000);
        assert_int_equal(rig_counter(&a, NETDAM_COUNTER_MERGED), off ? 0 : 9);
        assert_int_equal(rig_counter(&b, NETDAM_COUNTER_REQUESTS_EXECUTED), off ? 10 : 1);
        rig_close(&a);
        rig_close(&b);
    }
}

/* The flag appears when the thread goes to sleep, and only then; a doorbell then is enough. */
static void an_idle_device_sleeps_and_a_doorbell_wakes_it(void **state)
{
    struct netdam_descriptor request;
    struct netdam_ring *sq;
    uint32_t peer;
    unsigned i;
    struct rig a;
    struct rig b;

    (void)state;
    rig_open(&a, NULL);
    rig_open(&b, NULL);
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    sq = (struct netdam_ring *)(void *)a.memory;
    for (i = 0; i < 20; i++) {
        uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;

        while ((__atomic_load_n(&sq->consumer_flags, __ATOMIC_ACQUIRE) & NETDAM_RING_NEED_WAKEUP) == 0) {
            assert_true(rig_now_ns() < end_ns);
            rig_nap();
        }
        request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
        assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    }
    assert_true(rig_counter(&a, NETDAM_COUNTER_DOORBELLS) > 0);
    rig_close(&a);
    rig_close(&b);
}

static void each_doorbell_write_counts(void **state)
{
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;
    struct rig rig;
    unsigned i;

    (void)state;
    rig_open(&rig, NULL);
    for (i = 0; i < 1000; i++) {
        netdam_soft_register_write(rig.soft, NETDAM_PAGE_DOORBELLS + i % 16 * NETDAM_PAGE_BYTES, 4, 1);
    }
    while (rig_counter(&rig, NETDAM_COUNTER_DOORBELLS) != 1000) {
        assert_true(rig_now_ns() < end_ns);
        rig_nap();
    }
    rig_close(&rig);
}

static void an_armed_completion_raises_its_interrupt(void **state)
{
    struct netdam_descriptor request;
    struct netdam_completion completion;
    struct netdam_ring *cq;
    struct pollfd poll_fd;
    eventfd_t count;
    uint32_t peer;
    struct rig a;
    struct rig b;

    (void)state;
    rig_open(&a, NULL);
    rig_open(&b, NULL);
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    poll_fd.fd = netdam_soft_interrupt_fd(a.soft, 0);
    poll_fd.events = POLLIN;
    assert_true(poll_fd.fd >= 0);

    request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    assert_int_equal(poll(&poll_fd, 1, 0), 0); /* not armed: none */

    cq = (struct netdam_ring *)(void *)(a.memory + CQ_AT);
    __atomic_fetch_add(&cq->arm, 1, __ATOMIC_SEQ_CST);
    request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
    assert_true(rig_post(&a, &request));
    assert_int_equal(poll(&poll_fd, 1, (int)(RIG_PATIENCE_NS / 1000000)), 1);
    assert_int_equal(eventfd_read(poll_fd.fd, &count), 0);
    assert_int_equal(count, 1);
    rig_wait(&a, &completion);
    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    rig_close(&a);
    rig_close(&b);
}

/* A port where nobody answers. */
static int silent_socket(uint32_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void a_silent_peer_times_out(void **state)
{
    struct netdam_descriptor request;
    struct rig rig;
    uint32_t port;
    int fd;

    (void)state;
    rig_open(&rig, &impatient);
    fd = silent_socket(&port);
    request = rig_request(&rig, NETDAM_OP_WRITE, rig_peer(&rig, (uint16_t)port), 1, 0, 0, 8);
    assert_int_equal(rig_do(&rig, &request).status, NETDAM_STATUS_TIMEOUT);
    rig_close(&rig);
    close(fd);
}

static void a_peer_that_was_never_there_times_out(void **state)
{
    struct netdam_descriptor request;
    struct rig gone;
    struct rig rig;
    uint16_t port;

    (void)state;
    rig_open(&gone, NULL);
    port = netdam_soft_port(gone.soft);
    rig_close(&gone);
    rig_open(&rig, &impatient);
    request = rig_request(&rig, NETDAM_OP_WRITE, rig_peer(&rig, port), 1, 0, 0, 8);
    assert_int_equal(rig_do(&rig, &request).status, NETDAM_STATUS_TIMEOUT);
    rig_close(&rig);
}

/* Every descriptor gets exactly one completion: OK before the end, TIMEOUT after it, nothing else, none twice. */
static void a_peer_killed_midway_times_out(void **state)
{
    static const char *const arguments[] = {"--memory", "4M", NULL};
    enum { REQUESTS = 24, KILLED_AFTER = 12 };
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;
    struct netdam_descriptor request;
    struct netdam_completion completion;
    uint8_t seen[REQUESTS] = {0};
    struct rig_node node;
    unsigned completed = 0;
    unsigned timeouts = 0;
    unsigned posted = 0;
    uint64_t first;
    uint32_t peer;
    struct rig rig;

    (void)state;
    rig_node_start(&node, arguments);
    assert_int_equal(node.bytes, 4 << 20);
    rig_open(&rig, &impatient);
    peer = rig_peer(&rig, node.port);
    do { /* until the node has come up to speed: this rig gives up early */
        request = rig_request(&rig, NETDAM_OP_WRITE, peer, node.key, 0, 0, 8);
    } while (rig_do(&rig, &request).status != NETDAM_STATUS_OK && rig_now_ns() < end_ns);
    first = request.user_data + 1;
    while (completed < REQUESTS) {
        if (posted < REQUESTS) {
            request = rig_request(&rig, NETDAM_OP_WRITE, peer, node.key, 0, 0, 20000);
            assert_true(rig_post(&rig, &request));
            posted++;
            if (posted == KILLED_AFTER) {
                char rest[16];

                assert_true(WIFSIGNALED(rig_node_stop(&node, SIGKILL, rest, sizeof(rest))));
            }
            continue;
        }
        rig_wait(&rig, &completion);
        assert_in_range(completion.user_data, first, first + REQUESTS - 1);
        assert_int_equal(seen[completion.user_data - first], 0);
        seen[completion.user_data - first] = 1;
        completed++;
        if (completion.status != NETDAM_STATUS_OK) {
            assert_int_equal(completion.status, NETDAM_STATUS_TIMEOUT);
            timeouts++;
        }
    }
    assert_true(timeouts >= REQUESTS - KILLED_AFTER);
    assert_false(rig_poll(&rig, &completion));
    rig_close(&rig);
}

static void reset_forgets_regions_and_queues(void **state)
{
    struct netdam_descriptor request;
    struct rig a;
    struct rig b;
    uint64_t generation;
    uint64_t old_key;
    unsigned status;
    uint32_t peer;

    (void)state;
    rig_open(&a, NULL);
    rig_open(&b, NULL);
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    generation = netdam_soft_register_read(b.soft, NETDAM_REG_GENERATION, 8);
    old_key = b.key;
    netdam_soft_register_write(b.soft, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    assert_true(netdam_soft_register_read(b.soft, NETDAM_REG_GENERATION, 8) != generation);
    assert_int_equal(rig_counter(&b, NETDAM_COUNTER_REQUESTS_EXECUTED), 0);

    /* Sent under the old generation, or under the new one if that was learnt meanwhile: refused either way. */
    request = rig_request(&a, NETDAM_OP_WRITE, peer, old_key, 0, 0, 8);
    status = rig_do(&a, &request).status;
    assert_true(status == NETDAM_STATUS_UNKNOWN || status == NETDAM_STATUS_BAD_KEY);
    request = rig_request(&a, NETDAM_OP_READ, peer, old_key, 0, 0, 8);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_BAD_KEY);

    rig_set_up(&b);
    assert_true(b.key != old_key);
    request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    move(&b, rig_peer(&b, netdam_soft_port(a.soft)), &a);
    rig_close(&a);
    rig_close(&b);
}

/* The child shares memory and sockets: it must neither flush the parent's request nor send anything. */
struct reader {
    struct netdam_soft *soft;
    atomic_bool enough;
};

static void *read_on(void *opaque)
{
    struct reader *reader = opaque;

    while (!atomic_load(&reader->enough)) {
        (void)netdam_soft_register_read(reader->soft, NETDAM_REG_ID, 4);
    }
    return NULL;
}

/* At the moment of the fork somebody waits for the firmware's turn; the child has neither that thread nor its wait. */
static void a_forked_child_lets_go_whoever_waits(void **state)
{
    struct reader reader = {0};
    pthread_t threads[2];
    struct rig a;

    (void)state;
    rig_open(&a, NULL);
    reader.soft = a.soft;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &reader), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        int status;
        pid_t child;

        fflush(NULL);
        child = fork();
        if (child == 0) {
            alarm(60);
            netdam_soft_close(a.soft);
            _exit(7);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    atomic_store(&reader.enough, true);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    rig_close(&a);
}

static void a_forked_child_lets_go_without_harm(void **state)
{
    struct netdam_soft_config patient = {.rto_initial_ns = RIG_PATIENCE_NS, .rto_max_ns = RIG_PATIENCE_NS};
    struct netdam_descriptor request;
    struct netdam_completion completion;
    uint32_t silent;
    uint32_t peer;
    struct rig a;
    struct rig b;
    int socket_fd;
    int status;
    pid_t child;

    (void)state;
    rig_open(&a, &patient);
    rig_open(&b, NULL);
    socket_fd = silent_socket(&silent);
    request = rig_request(&a, NETDAM_OP_WRITE, rig_peer(&a, (uint16_t)silent), 1, 0, 0, 8);
    assert_true(rig_post(&a, &request));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        netdam_soft_close(a.soft);
        netdam_soft_close(b.soft);
        _exit(7);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_false(rig_poll(&a, &completion));
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    request = rig_request(&a, NETDAM_OP_WRITE, peer, b.key, 0, 0, 8);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    rig_close(&a);
    rig_close(&b);
    close(socket_fd);
}

/* The number after "SigBlk:" in a thread's status, or 0 if the thread does not have this name. */
static uint64_t blocked_signals(const char *thread, const char *name)
{
    uint64_t blocked = 0;
    char path[300];
    char line[256];
    bool named = false;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        named = named || (strncmp(line, "Name:", 5) == 0 && strstr(line, name) != NULL);
        if (strncmp(line, "SigBlk:", 7) == 0) {
            blocked = strtoull(line + 7, NULL, 16);
        }
    }
    fclose(file);
    return named ? blocked : 0;
}

static void the_thread_takes_no_signal(void **state)
{
    uint64_t wanted = UINT64_C(1) << (SIGALRM - 1) | UINT64_C(1) << (SIGINT - 1) | UINT64_C(1) << (SIGPIPE - 1);
    struct dirent *entry;
    unsigned found = 0;
    sigset_t mask;
    struct rig rig;
    DIR *tasks;

    (void)state;
    rig_open(&rig, NULL);
    tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL) {
        uint64_t blocked = blocked_signals(entry->d_name, "netdam-soft");

        if (blocked != 0) {
            assert_int_equal(blocked & wanted, wanted);
            found++;
        }
    }
    closedir(tasks);
    assert_int_equal(found, 1);
    /* The caller's own mask is as before. */
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGALRM));
    rig_close(&rig);
}

static unsigned taps[2];

static void count_tap(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes)
{
    char line[256];

    netdam_soft_describe(datagram, bytes, line, sizeof(line));
    if (strstr(line, outgoing ? "REQUEST  WRITE" : "RESPONSE WRITE OK") != NULL) {
        (*(unsigned(*)[2])opaque)[outgoing]++;
    }
}

static void the_tap_sees_both_directions_by_name(void **state)
{
    struct netdam_soft_config config = {.tap = count_tap, .log_opaque = taps};
    struct netdam_descriptor request;
    struct rig a;
    struct rig b;

    (void)state;
    rig_open(&a, &config);
    rig_open(&b, NULL);
    request = rig_request(&a, NETDAM_OP_WRITE, rig_peer(&a, netdam_soft_port(b.soft)), b.key, 0, 0, 14000);
    assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
    rig_close(&a); /* joins the thread that counts */
    rig_close(&b);
    assert_true(taps[1] >= 10);
    assert_true(taps[0] >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_configurations_are_refused),
        cmocka_unit_test(a_port_in_use_and_a_foreign_address_are_told),
        cmocka_unit_test(registers_tell_the_configuration),
        cmocka_unit_test(data_moves_between_two_devices),
        cmocka_unit_test(a_device_reaches_itself),
        cmocka_unit_test(a_counter_adds_up),
        cmocka_unit_test(adjacent_writes_share_packets_unless_that_is_switched_off),
        cmocka_unit_test(an_idle_device_sleeps_and_a_doorbell_wakes_it),
        cmocka_unit_test(each_doorbell_write_counts),
        cmocka_unit_test(an_armed_completion_raises_its_interrupt),
        cmocka_unit_test(a_silent_peer_times_out),
        cmocka_unit_test(a_peer_that_was_never_there_times_out),
        cmocka_unit_test(a_peer_killed_midway_times_out),
        cmocka_unit_test(reset_forgets_regions_and_queues),
        cmocka_unit_test(a_forked_child_lets_go_whoever_waits),
        cmocka_unit_test(a_forked_child_lets_go_without_harm),
        cmocka_unit_test(the_thread_takes_no_signal),
        cmocka_unit_test(the_tap_sees_both_directions_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
