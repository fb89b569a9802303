/* SPDX-License-Identifier: BSD-3-Clause */
/* The memif endpoint with DPDK's at the other end (dpdk_peer.c), which sends back what it gets. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES 6000u
#define WINDOW 100u

struct peer {
    pid_t pid;
    int input;
};

static void start_peer(struct peer *peer, const struct rig *rig, const char *role, const char *zero_copy,
                       const char *buffer_bytes)
{
    const char *output = getenv("O");
    char program[256];
    int input[2];

    snprintf(program, sizeof(program), "%s/tests/memif/dpdk_peer", output != NULL ? output : "build");
    assert_int_equal(pipe(input), 0);
    peer->pid = fork();
    assert_true(peer->pid >= 0);
    if (peer->pid == 0) {
        dup2(input[0], STDIN_FILENO);
        close(input[0]);
        close(input[1]);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl(program, program, rig->path, role, zero_copy, buffer_bytes, (char *)NULL);
        _exit(127);
    }
    close(input[0]);
    peer->input = input[1];
}

static void stop_peer(struct peer *peer, int with)
{
    int status;

    if (with != 0) {
        assert_int_equal(kill(peer->pid, with), 0);
    }
    close(peer->input);
    assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
    if (with == 0) {
        assert_int_equal(status, 0);
    }
}

/* A peer that is not up after this long will never be. */
static void await_link(struct ndsim_memif *memif, struct peer *peer)
{
    struct pollfd fd = {.fd = ndsim_memif_fd(memif), .events = POLLIN};

    while (!ndsim_memif_link_up(memif)) {
        if (waitpid(peer->pid, NULL, WNOHANG) != 0) {
            fail_msg("the peer has ended");
        }
        (void)poll(&fd, 1, 1000);
        ndsim_memif_process(memif);
    }
}

struct traffic {
    uint64_t sent;
    uint64_t returned;
    size_t longest;
};

static size_t size_of(const struct traffic *traffic, uint64_t number)
{
    static const size_t sizes[] = {60, 64, 65, 128, 1000, 1514, 2048, 2049, 4096, 9014, 9280, 61};
    size_t size = sizes[number % 12];

    return size < traffic->longest ? size : traffic->longest - number % 5;
}

static void returned(void *opaque, const uint8_t *frame, size_t bytes)
{
    struct traffic *traffic = opaque;

    rig_check(frame, bytes, traffic->returned, size_of(traffic, traffic->returned));
    traffic->returned++;
}

/* Sends until `frames` have come back, or until the link goes down. Never sleeps with something to do. */
static void run_traffic(struct ndsim_memif *memif, struct traffic *traffic, uint64_t frames)
{
    struct pollfd fd = {.fd = ndsim_memif_fd(memif), .events = POLLIN};
    unsigned idle = 0;

    while (traffic->returned < frames && ndsim_memif_link_up(memif)) {
        bool busy = ndsim_memif_receive(memif, 64, returned, traffic) != 0;

        while (traffic->sent < frames && traffic->sent < traffic->returned + WINDOW &&
               ndsim_memif_transmit_begin(memif, size_of(traffic, traffic->sent)) != NULL) {
            ndsim_memif_transmit_end(memif, 0);
            rig_send(memif, traffic->sent, size_of(traffic, traffic->sent));
            traffic->sent++;
            busy = true;
        }
        ndsim_memif_flush(memif);
        idle = busy ? 0 : idle + 1;
        if (idle > 20) {
            if (ndsim_memif_arm(memif)) {
                int patience = ndsim_memif_blocked(memif) ? 1 : RIG_PATIENCE_MS;

                assert_true(poll(&fd, 1, patience) > 0 || ndsim_memif_blocked(memif));
            }
            ndsim_memif_disarm(memif);
            ndsim_memif_process(memif);
        }
    }
}

static void frames_return(void **state, enum ndsim_memif_role role, const char *zero_copy, bool shared_frames,
                          uint32_t buffer_bytes, size_t longest)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, role);
    struct traffic traffic = {.longest = longest};
    struct ndsim_memif_statistics statistics;
    struct ndsim_memif *memif;
    struct peer peer;
    char bytes[16];

    config.slots = 256;
    config.buffer_bytes = buffer_bytes;
    config.shared_frames = shared_frames;
    snprintf(bytes, sizeof(bytes), "%u", buffer_bytes);
    memif = rig_open(rig, &config);
    start_peer(&peer, rig, role == NDSIM_MEMIF_SERVER ? "client" : "server", zero_copy, bytes);
    await_link(memif, &peer);
    run_traffic(memif, &traffic, FRAMES);
    assert_int_equal(traffic.returned, FRAMES);
    statistics = rig_statistics(memif);
    assert_int_equal(statistics.protocol_errors, 0);
    assert_int_equal(statistics.transmit_kicks, 0); /* it polls */
    stop_peer(&peer, 0);
    ndsim_memif_close(memif);
}

static void frames_return_from_a_client(void **state)
{
    frames_return(state, NDSIM_MEMIF_SERVER, "no", false, 9280, 9280);
}

static void frames_return_from_a_client_without_copies_here(void **state)
{
    frames_return(state, NDSIM_MEMIF_SERVER, "no", true, 9280, 9280);
}

static void frames_return_from_a_client_with_zero_copy(void **state)
{
    frames_return(state, NDSIM_MEMIF_SERVER, "yes", false, 9280, 9280);
}

static void frames_return_from_a_server(void **state)
{
    frames_return(state, NDSIM_MEMIF_CLIENT, "no", false, 9280, 9280);
}

static void frames_return_from_a_server_without_copies_here(void **state)
{
    frames_return(state, NDSIM_MEMIF_CLIENT, "no", true, 9280, 9280);
}

static void frames_in_several_buffers_return_from_a_client(void **state)
{
    frames_return(state, NDSIM_MEMIF_SERVER, "no", false, 2048, 9280);
}

static void frames_in_several_buffers_return_from_a_client_with_zero_copy(void **state)
{
    frames_return(state, NDSIM_MEMIF_SERVER, "yes", false, 2048, 9280);
}

static void frames_in_several_buffers_return_from_a_server(void **state)
{
    frames_return(state, NDSIM_MEMIF_CLIENT, "no", false, 2048, 9280);
}

/* Killed in the middle of traffic, by which some frames are lost; the next one goes on. */
static void a_killed_peer_is_followed_by_the_next(void **state, enum ndsim_memif_role role)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, role);
    struct ndsim_memif *memif = rig_open(rig, &config);
    struct traffic traffic = {.longest = 9280};
    struct peer peer;
    unsigned i;

    for (i = 0; i < 3; i++) {
        start_peer(&peer, rig, role == NDSIM_MEMIF_SERVER ? "client" : "server", "no", "9280");
        await_link(memif, &peer);
        run_traffic(memif, &traffic, traffic.returned + 500);
        assert_int_equal(rig_statistics(memif).connects, i + 1);
        if (i == 2) {
            break;
        }
        rig_send(memif, 0, 60);
        ndsim_memif_flush(memif);
        stop_peer(&peer, SIGKILL);
        rig_send(memif, 0, 60);
        ndsim_memif_flush(memif);
        rig_until_link(memif, NULL, false);
        (void)unlink(role == NDSIM_MEMIF_CLIENT ? rig->path : "");
        traffic.sent = traffic.returned;
    }
    stop_peer(&peer, 0);
    ndsim_memif_close(memif);
}

static void a_killed_client_is_followed_by_the_next(void **state)
{
    a_killed_peer_is_followed_by_the_next(state, NDSIM_MEMIF_SERVER);
}

static void a_killed_server_is_followed_by_the_next(void **state)
{
    a_killed_peer_is_followed_by_the_next(state, NDSIM_MEMIF_CLIENT);
}

static void dpdk_goes_on_with_the_endpoint_that_follows(void **state, enum ndsim_memif_role role)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, role);
    struct peer peer;
    unsigned i;

    start_peer(&peer, rig, role == NDSIM_MEMIF_SERVER ? "client" : "server", "no", "9280");
    for (i = 0; i < 3; i++) {
        struct ndsim_memif *memif = rig_open(rig, &config);
        struct traffic traffic = {.longest = 9280};

        await_link(memif, &peer);
        run_traffic(memif, &traffic, 500);
        assert_int_equal(traffic.returned, 500);
        ndsim_memif_close(memif);
    }
    stop_peer(&peer, 0);
}

static void a_client_goes_on_with_the_endpoint_that_follows(void **state)
{
    dpdk_goes_on_with_the_endpoint_that_follows(state, NDSIM_MEMIF_SERVER);
}

static void a_server_goes_on_with_the_endpoint_that_follows(void **state)
{
    dpdk_goes_on_with_the_endpoint_that_follows(state, NDSIM_MEMIF_CLIENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_return_from_a_client),
        TEST(frames_return_from_a_client_without_copies_here),
        TEST(frames_return_from_a_client_with_zero_copy),
        TEST(frames_return_from_a_server),
        TEST(frames_return_from_a_server_without_copies_here),
        TEST(frames_in_several_buffers_return_from_a_client),
        TEST(frames_in_several_buffers_return_from_a_client_with_zero_copy),
        TEST(frames_in_several_buffers_return_from_a_server),
        TEST(a_killed_client_is_followed_by_the_next),
        TEST(a_killed_server_is_followed_by_the_next),
        TEST(a_client_goes_on_with_the_endpoint_that_follows),
        TEST(a_server_goes_on_with_the_endpoint_that_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
