/* SPDX-License-Identifier: BSD-3-Clause */
/* The soft device: memory, firmware, the one thread that runs it, registers and interrupts. */
#define _GNU_SOURCE
#include "netdam_soft.h"
#include "address.h"
#include "crypto.h"
#include "port.h"
#include "refusals.h"
#include "turn.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "platform_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Fruitless rounds before the thread gives up its time slice, and before it sleeps. Long spinning starves the peer. */
#define ROUNDS_SPIN  20
#define ROUNDS_YIELD 60

/* Payload of one call of run: less than the port's queue holds, so that it can be flushed in between. */
#define RUN_BUDGET_BYTES 65536

/* ENOBUFS is not followed by POLLOUT: try again after this. */
#define BLOCKED_RETRY_NS UINT64_C(1000000)

#define QUEUE_PAIRS_DEFAULT 16

struct netdam_soft {
    struct ndsim_turn turn; /* everything below, while the thread runs, but for what is said to be atomic or constant */

    const struct netdam_fw_ops *firmware; /* constant */
    struct netdam_fw_config config;
    struct netdam_fw_platform platform;
    void *state;
    uint64_t state_bytes; /* constant */
    struct ndsim_port *port;
    struct ndsim_refusals refusals;

    uint8_t *memory;                              /* constant */
    uint64_t memory_bytes;                        /* constant */
    int memory_fd;                                /* constant */
    int wake_fd;                                  /* constant */
    int interrupt_fd[NETDAM_QUEUE_PAIRS_MAX];     /* constant */
    atomic_uint_least64_t doorbells;              /* one bit per queue pair whose count is not 0 */
    atomic_uint doorbell[NETDAM_QUEUE_PAIRS_MAX]; /* writes that the firmware has not been told of */
    atomic_bool quit;

    pthread_t thread;
    pid_t process; /* of the thread; a child after fork has none */

    void *log_opaque;
    void (*log)(void *opaque, int level, const char *line);
};

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void kick(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));

    (void)written; /* EAGAIN: the count is at its limit, so whoever waits is awake already */
}

static void tell(const struct netdam_soft *soft, int level, const char *line)
{
    if (soft->log != NULL) {
        soft->log(soft->log_opaque, level, line);
    }
}

/* What the firmware calls. The turn is held by whoever called the firmware. */

static uint8_t *platform_transmit_begin(void *opaque, size_t bytes)
{
    struct netdam_soft *soft = opaque;

    return ndsim_port_transmit_begin(soft->port, bytes);
}

static void platform_transmit_end(void *opaque, size_t bytes)
{
    struct netdam_soft *soft = opaque;

    ndsim_port_transmit_end(soft->port, bytes);
}

static void platform_interrupt(void *opaque, unsigned vector)
{
    struct netdam_soft *soft = opaque;

    if (vector < soft->config.vectors) {
        kick(soft->interrupt_fd[vector]);
    }
}

static void platform_entropy(void *opaque, void *buffer, size_t bytes)
{
    uint8_t *at = buffer;

    (void)opaque;
    while (bytes != 0) {
        ssize_t got = getrandom(at, bytes, 0);

        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
        }
    }
}

static void platform_log(void *opaque, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b)
{
    struct netdam_soft *soft = opaque;
    char line[256];

    if (soft->log != NULL) {
        snprintf(line, sizeof(line), "%s (%llu, %llu)", text, (unsigned long long)a, (unsigned long long)b);
        soft->log(soft->log_opaque, (int)level, line);
    }
}

/* The thread. */

static void forward_doorbells(struct netdam_soft *soft, uint64_t now_ns)
{
    uint64_t bits = atomic_exchange_explicit(&soft->doorbells, 0, memory_order_acquire);

    while (bits != 0) {
        unsigned pair = (unsigned)__builtin_ctzll(bits);
        unsigned count = atomic_exchange_explicit(&soft->doorbell[pair], 0, memory_order_relaxed);

        bits &= bits - 1;
        for (; count != 0; count--) {
            soft->firmware->register_write(soft->state, NETDAM_PAGE_DOORBELLS + pair * NETDAM_PAGE_BYTES, 4, 1, now_ns);
        }
    }
}

struct delivery {
    struct netdam_soft *soft;
    uint64_t now_ns;
};

static void deliver(void *opaque, const uint8_t *frame, size_t bytes)
{
    const struct delivery *delivery = opaque;

    delivery->soft->firmware->receive(delivery->soft->state, frame, bytes, delivery->now_ns);
}

/* Waits for a doorbell, the socket, or `until_ns`. The turn is not held meanwhile. */
static void sleep_until(struct netdam_soft *soft, uint64_t until_ns)
{
    bool blocked = ndsim_port_blocked(soft->port);
    struct pollfd fds[2] = {
        {.fd = soft->wake_fd, .events = POLLIN},
        {.fd = ndsim_port_fd(soft->port), .events = (short)(blocked ? POLLIN | POLLOUT : POLLIN)},
    };
    uint64_t now_ns = clock_ns();
    struct timespec timeout = {0};
    uint64_t count;
    int ready;

    if (blocked && until_ns > now_ns + BLOCKED_RETRY_NS) {
        until_ns = now_ns + BLOCKED_RETRY_NS;
    }
    if (until_ns > now_ns) {
        timeout.tv_sec = (time_t)((until_ns - now_ns) / UINT64_C(1000000000));
        timeout.tv_nsec = (long)((until_ns - now_ns) % UINT64_C(1000000000));
    }
    if (!ndsim_port_arm(soft->port)) {
        ndsim_port_disarm(soft->port);
        return;
    }
    ndsim_turn_pass(&soft->turn);
    ready = ppoll(fds, 2, until_ns == NETDAM_FW_NEVER ? NULL : &timeout, NULL);
    if (ready > 0 && fds[0].revents != 0) {
        ssize_t got = read(soft->wake_fd, &count, sizeof(count));

        (void)got;
    }
    ndsim_turn_take(&soft->turn);
    ndsim_port_disarm(soft->port);
    if (blocked && (ready == 0 || (fds[1].revents & (POLLOUT | POLLERR)) != 0)) {
        ndsim_port_unblock(soft->port);
    }
}

static void *run(void *opaque)
{
    struct netdam_soft *soft = opaque;
    unsigned idle = 0;

    ndsim_turn_take(&soft->turn);
    while (!atomic_load_explicit(&soft->quit, memory_order_acquire)) {
        struct delivery delivery = {.soft = soft, .now_ns = clock_ns()};
        struct netdam_fw_run_result result = {.next_ns = NETDAM_FW_NEVER};
        struct netdam_soft_statistics before;
        struct netdam_soft_statistics after;
        bool busy;

        ndsim_port_statistics(soft->port, &before);
        forward_doorbells(soft, delivery.now_ns);
        busy = ndsim_port_receive(soft->port, deliver, &delivery) != 0;
        soft->firmware->run(soft->state, delivery.now_ns, RUN_BUDGET_BYTES, &result);
        ndsim_port_flush(soft->port);
        ndsim_port_statistics(soft->port, &after);
        busy = busy || result.work_bytes != 0 || after.datagrams_sent != before.datagrams_sent ||
               (result.more && !ndsim_port_blocked(soft->port)) || ndsim_port_has_answers(soft->port);

        ndsim_turn_offer(&soft->turn);
        if (busy) {
            idle = 0;
        } else if (ndsim_port_blocked(soft->port)) {
            /* A pending send is not slept upon: POLLOUT ends this. Rings are looked at then. */
            sleep_until(soft, result.next_ns);
        } else if (idle < ROUNDS_SPIN) {
            idle++;
        } else if (idle < ROUNDS_SPIN + ROUNDS_YIELD) {
            idle++;
            ndsim_turn_pass(&soft->turn);
            sched_yield();
            ndsim_turn_take(&soft->turn);
        } else if (soft->firmware->prepare_sleep(soft->state)) {
            sleep_until(soft, result.next_ns);
            idle = 0;
        }
    }
    ndsim_turn_pass(&soft->turn);
    return NULL;
}

static int start_thread(struct netdam_soft *soft)
{
    sigset_t all;
    sigset_t old;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(&soft->thread, NULL, run, soft);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0) {
        pthread_setname_np(soft->thread, "netdam-soft");
        soft->process = getpid();
    }
    return -error;
}

/* Opening and closing. */

static int open_memory(struct netdam_soft *soft, uint64_t bytes)
{
    void *memory;

    soft->memory_fd = memfd_create("netdam-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (soft->memory_fd < 0) {
        return -errno;
    }
    if (ftruncate(soft->memory_fd, (off_t)bytes) != 0) {
        return errno == EFBIG || errno == EINVAL ? -ENOMEM : -errno;
    }
    /* Another process that was given the memfd could otherwise take the pages away under the firmware. */
    if (fcntl(soft->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return -errno;
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, soft->memory_fd, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    soft->memory = memory;
    soft->memory_bytes = bytes;
    return 0;
}

static int open_events(struct netdam_soft *soft, unsigned vectors)
{
    unsigned i;

    soft->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (soft->wake_fd < 0) {
        return -errno;
    }
    for (i = 0; i < vectors; i++) {
        soft->interrupt_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (soft->interrupt_fd[i] < 0) {
            return -errno;
        }
    }
    return 0;
}

/* Of a node whose routing is the kernel's: all others lie behind a gateway. */
#define ROUTED_PREFIX 32

static void route_by_kernel(struct netdam_fw_config *fw)
{
    /*
     * Routing is the kernel's: everything goes to one gateway, whose address only has to differ from the own one. So
     * the neighbour table does not fill up however many peers there are.
     */
    memcpy(fw->ipv4_gateway, fw->ipv4, 4);
    fw->ipv4_gateway[3] ^= 1;
}

/* Chains are passed on within this machine, or within the /24 that the own address lies in, and where it is said. */
static void set_forward(struct netdam_fw_config *fw, const struct netdam_soft_config *config)
{
    unsigned i;

    _Static_assert(NETDAM_SOFT_NETWORKS + 1 == NETDAM_FW_NETWORKS, "one is the own network");
    fw->forward[0] = (struct netdam_fw_network){.family = 4, .prefix = fw->ipv4[0] == 127 ? 8 : 24};
    memcpy(fw->forward[0].address, fw->ipv4, 4);
    for (i = 0; i < config->forward_count && i < NETDAM_SOFT_NETWORKS; i++) {
        fw->forward[i + 1] = (struct netdam_fw_network){.family = 4, .prefix = config->forward[i].prefix};
        memcpy(fw->forward[i + 1].address, config->forward[i].address, 4);
    }
}

static void set_limits(struct netdam_fw_config *fw, const struct netdam_soft_limits *limits)
{
#define SET(field, text) fw->field = limits->field;
    NETDAM_SOFT_LIMIT_LIST(SET)
#undef SET
}

/* Frames as the firmware makes them go out, not what a socket makes of them. */
static bool has_wire(const struct netdam_soft_config *config)
{
    return config->wire_path != NULL || config->memif_path != NULL;
}

/* A memif link's frames stay where they are; but a tap is not prepared for frames that change. */
static bool shares_frames(const struct netdam_soft_config *config)
{
    return config->memif_path != NULL && config->tap == NULL;
}

static void configure(struct netdam_soft *soft, const struct netdam_soft_config *config, unsigned vectors)
{
    struct netdam_fw_config *fw = &soft->config;
    struct sockaddr_in local = ndsim_port_local(soft->port);

    *fw = (struct netdam_fw_config){
        .abi_version = NETDAM_FW_ABI_VERSION,
        .memory = soft->memory,
        .memory_bytes = soft->memory_bytes,
        .udp_port = ntohs(local.sin_port),
        .ipv4_prefix = ROUTED_PREFIX,
        .no_payload_crc = config->no_payload_crc ? 1 : 0,
        .no_merge = config->no_merge ? 1 : 0,
        .vectors = (uint16_t)vectors,
        .shared_frames = shares_frames(config),
        .mtu = config->mtu,
        .queue_pairs = vectors,
        .retries = config->retries,
        .cpu_features = ndfw_platform_cpu_features(),
        .rto_initial_ns = config->rto_initial_ns,
        .rto_min_ns = config->rto_min_ns,
        .rto_max_ns = config->rto_max_ns,
        .paths = has_wire(config) ? config->paths : 1,
    };
    ndsim_port_own_mac(local.sin_addr.s_addr, fw->mac);
    if (memcmp(config->wire_mac, (const uint8_t[6]){0}, 6) != 0) {
        memcpy(fw->mac, config->wire_mac, 6);
    }
    memcpy(fw->ipv4, &local.sin_addr, 4);
    set_forward(fw, config);
    set_limits(fw, &config->limits);
    if (has_wire(config)) {
        fw->ipv4_prefix = config->wire_prefix;
    } else {
        route_by_kernel(fw);
        fw->no_raw = 1; /* a UDP socket has no other frames */
    }
    soft->platform = (struct netdam_fw_platform){
        .opaque = soft,
        .transmit_begin = platform_transmit_begin,
        .transmit_end = platform_transmit_end,
        .interrupt = platform_interrupt,
        .entropy = platform_entropy,
        .log = platform_log,
        .crypto = ndsim_crypto_open(),
    };
}

/*
 * Other nodes may share the own IP address and differ by port, but no ARP answer may claim that address: so its
 * link-layer address is set by hand. Registers end as they were after reset, but for ADMIN_COMMAND.
 */
static void introduce_own_address(struct netdam_soft *soft, uint64_t now_ns)
{
    const struct netdam_fw_config *fw = &soft->config;
    uint8_t mac[6];
    uint64_t arguments[4] = {0};
    unsigned i;

    ndsim_port_peer_mac(ndsim_port_local(soft->port).sin_addr.s_addr, mac);
    arguments[2] = 4;
    for (i = 0; i < 4; i++) {
        arguments[0] = arguments[0] << 8 | fw->ipv4[i];
    }
    for (i = 0; i < 6; i++) {
        arguments[3] = arguments[3] << 8 | mac[i];
    }
    for (i = 0; i < 4; i++) {
        soft->firmware->register_write(soft->state, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, arguments[i], now_ns);
    }
    soft->firmware->register_write(soft->state, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_NEIGHBOUR_SET, now_ns);
    for (i = 0; i < 4; i++) {
        soft->firmware->register_write(soft->state, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, 0, now_ns);
    }
}

static void start_firmware(struct netdam_soft *soft, uint64_t now_ns)
{
    soft->firmware->start(soft->state, &soft->config, &soft->platform, now_ns);
    if (soft->config.ipv4_prefix == ROUTED_PREFIX) {
        introduce_own_address(soft, now_ns);
    }
}

static int open_firmware(struct netdam_soft *soft)
{
    const char *field = NULL;
    char line[128];
    size_t bytes;

    soft->firmware = netdam_fw_entry();
    if (soft->firmware->abi_version != NETDAM_FW_ABI_VERSION) {
        tell(soft, NETDAM_FW_LOG_ERROR, "the firmware was built for another version of its interface");
        return -EINVAL;
    }
    bytes = soft->firmware->state_bytes(&soft->config, &field);
    if (bytes == 0) {
        snprintf(line, sizeof(line), "the firmware refuses the configuration: %s", field != NULL ? field : "no reason");
        tell(soft, NETDAM_FW_LOG_ERROR, line);
        return -EINVAL;
    }
    soft->state_bytes = bytes;
    soft->state = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (soft->state == NULL) {
        return -ENOMEM;
    }
    start_firmware(soft, clock_ns());
    return 0;
}

/* In a child after fork nobody takes turns any more, and what has a name is the parent's. */
static void release(struct netdam_soft *soft)
{
    bool owner = soft->process == 0 || soft->process == getpid();
    unsigned i;

    free(soft->state);
    ndsim_crypto_close(soft->platform.crypto);
    if (soft->port != NULL) {
        ndsim_port_close(soft->port, owner);
    }
    for (i = 0; i < NETDAM_QUEUE_PAIRS_MAX; i++) {
        if (soft->interrupt_fd[i] >= 0) {
            close(soft->interrupt_fd[i]);
        }
    }
    if (soft->wake_fd >= 0) {
        close(soft->wake_fd);
    }
    if (soft->memory != NULL) {
        munmap(soft->memory, soft->memory_bytes);
    }
    if (soft->memory_fd >= 0) {
        close(soft->memory_fd);
    }
    if (owner) {
        ndsim_turn_destroy(&soft->turn);
    }
    free(soft);
}

static void log_memif(void *opaque, enum ndsim_memif_level level, const char *line)
{
    static const int levels[] = {
        [NDSIM_MEMIF_LOG_ERROR] = NETDAM_FW_LOG_ERROR,
        [NDSIM_MEMIF_LOG_PEER] = NETDAM_FW_LOG_PEER,
        [NDSIM_MEMIF_LOG_INFO] = NETDAM_FW_LOG_INFO,
    };

    struct netdam_soft *soft = opaque;
    const struct ndsim_memif *memif = soft->port != NULL ? ndsim_port_memif(soft->port) : NULL;
    bool refused = level == NDSIM_MEMIF_LOG_PEER && ndsim_refusals_show(&soft->refusals, memif, clock_ns());

    /* Most often it is this host that has the wrong path, identity or secret. */
    tell(soft, refused ? NETDAM_FW_LOG_GUEST : levels[level], line);
}

static int open_port(struct netdam_soft *soft, const struct netdam_soft_config *config, const struct sockaddr_in *local)
{
    struct ndsim_memif_config memif = {
        .path = config->memif_path,
        .role = config->memif_server ? NDSIM_MEMIF_SERVER : NDSIM_MEMIF_CLIENT,
        .id = config->memif_id,
        .secret = config->memif_secret,
        .name = "netdam-soft",
        .shared_frames = shares_frames(config),
        .log_opaque = soft,
        .log = log_memif,
    };

    if (config->memif_path != NULL) {
        return ndsim_port_open_memif(&memif, local, config->tap, config->log_opaque, &soft->port);
    }
    if (config->wire_path != NULL) {
        return ndsim_port_open_wire(config->wire_path, config->wire_peer_path, local, config->tap, config->log_opaque,
                                    &soft->port);
    }
    return ndsim_port_open(local, config->tap, config->log_opaque, &soft->port);
}

/* A wire and a link know names only, and there is one port. */
static bool has_place(const struct netdam_soft_config *config, const struct sockaddr_in *local)
{
    if (config->wire_path != NULL && (config->memif_path != NULL || config->wire_peer_path == NULL)) {
        return false;
    }
    if (config->memif_path == NULL && (config->memif_server || config->memif_id != 0 || config->memif_secret != NULL)) {
        return false;
    }
    return !has_wire(config) || local->sin_port != 0;
}

static int open_parts(struct netdam_soft *soft, const struct netdam_soft_config *config,
                      const struct sockaddr_in *local)
{
    unsigned vectors = config->queue_pairs != 0 ? config->queue_pairs : QUEUE_PAIRS_DEFAULT;
    int error = open_port(soft, config, local);

    if (error == 0) {
        error = open_memory(soft, config->memory_bytes);
    }
    if (error == 0) {
        error = open_events(soft, vectors);
    }
    if (error == 0) {
        configure(soft, config, vectors);
        error = open_firmware(soft);
    }
    return error != 0 ? error : start_thread(soft);
}

int netdam_soft_open(const struct netdam_soft_config *config, struct netdam_soft **result)
{
    struct netdam_soft *soft;
    struct sockaddr_in local;
    unsigned i;
    int error;

    if (config == NULL || result == NULL || config->listen == NULL || !ndsim_address_parse(config->listen, &local) ||
        !ndsim_address_is_host(&local) || !has_place(config, &local) || config->memory_bytes == 0 ||
        config->memory_bytes % 4096 != 0 || config->memory_bytes > INT64_MAX ||
        config->queue_pairs > NETDAM_QUEUE_PAIRS_MAX || (!has_wire(config) && config->paths > 1)) {
        return -EINVAL;
    }
    soft = calloc(1, sizeof(*soft));
    if (soft == NULL) {
        return -ENOMEM;
    }
    ndsim_turn_init(&soft->turn);
    soft->memory_fd = -1;
    soft->wake_fd = -1;
    for (i = 0; i < NETDAM_QUEUE_PAIRS_MAX; i++) {
        soft->interrupt_fd[i] = -1;
    }
    soft->log = config->log;
    soft->log_opaque = config->log_opaque;
    error = open_parts(soft, config, &local);
    if (error != 0) {
        release(soft);
        return error;
    }
    *result = soft;
    return 0;
}

void netdam_soft_close(struct netdam_soft *soft)
{
    if (soft == NULL) {
        return;
    }
    if (getpid() == soft->process) {
        atomic_store_explicit(&soft->quit, true, memory_order_release);
        kick(soft->wake_fd);
        pthread_join(soft->thread, NULL);
        soft->firmware->stop(soft->state, clock_ns());
        ndsim_port_flush(soft->port);
    }
    release(soft);
}

/* Access from other threads. */

uint16_t netdam_soft_port(const struct netdam_soft *soft)
{
    struct sockaddr_in local = ndsim_port_local(soft->port);

    return ntohs(local.sin_port);
}

uint8_t *netdam_soft_memory(struct netdam_soft *soft)
{
    return soft->memory;
}

uint64_t netdam_soft_memory_bytes(const struct netdam_soft *soft)
{
    return soft->memory_bytes;
}

int netdam_soft_memory_fd(const struct netdam_soft *soft)
{
    return soft->memory_fd;
}

uint64_t netdam_soft_state_bytes(const struct netdam_soft *soft)
{
    return soft->state_bytes;
}

int netdam_soft_interrupt_fd(struct netdam_soft *soft, unsigned vector)
{
    return vector < NETDAM_QUEUE_PAIRS_MAX && soft->interrupt_fd[vector] >= 0 ? soft->interrupt_fd[vector] : -EINVAL;
}

void netdam_soft_get_statistics(struct netdam_soft *soft, struct netdam_soft_statistics *statistics)
{
    ndsim_turn_take(&soft->turn);
    ndsim_port_statistics(soft->port, statistics);
    ndsim_turn_pass(&soft->turn);
}

uint64_t netdam_soft_register_read(struct netdam_soft *soft, uint32_t offset, unsigned bytes)
{
    uint64_t value;

    ndsim_turn_take(&soft->turn);
    value = soft->firmware->register_read(soft->state, offset, bytes);
    ndsim_turn_pass(&soft->turn);
    return value;
}

static bool is_doorbell(const struct netdam_soft *soft, uint32_t offset, unsigned bytes, unsigned *pair)
{
    unsigned pairs = soft->config.vectors;

    *pair = (offset - NETDAM_PAGE_DOORBELLS) / NETDAM_PAGE_BYTES;
    return bytes == 4 && offset >= NETDAM_PAGE_DOORBELLS && offset % NETDAM_PAGE_BYTES == 0 && *pair < pairs;
}

void netdam_soft_register_write(struct netdam_soft *soft, uint32_t offset, unsigned bytes, uint64_t value)
{
    uint64_t now_ns;
    unsigned action;
    unsigned pair;

    if (is_doorbell(soft, offset, bytes, &pair)) {
        /* Release: the ring's new producer index is seen by the thread that sees the bit. */
        atomic_fetch_add_explicit(&soft->doorbell[pair], 1, memory_order_relaxed);
        atomic_fetch_or_explicit(&soft->doorbells, UINT64_C(1) << pair, memory_order_release);
        kick(soft->wake_fd);
        return;
    }
    ndsim_turn_take(&soft->turn);
    now_ns = clock_ns();
    action = soft->firmware->register_write(soft->state, offset, bytes, value, now_ns);
    if ((action & NETDAM_FW_ACTION_RESET) != 0) {
        soft->firmware->stop(soft->state, now_ns);
        ndsim_port_reset(soft->port);
        start_firmware(soft, now_ns);
    }
    ndsim_turn_pass(&soft->turn);
    kick(soft->wake_fd); /* the access may have started a timer or queued a frame */
}
