/* SPDX-License-Identifier: BSD-3-Clause */
/* Many memif clients of one server: whoever is first is the peer, and those who take their time keep nobody out. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

static void a_second_client_is_refused_and_the_first_unharmed(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct script first, second;

    script_init(&first);
    script_init(&second);
    script_connect(&first, rig->path);
    assert_true(script_be_client(&first, server, &(struct script_client){0}));
    script_connect(&second, rig->path);
    assert_false(script_be_client(&second, server, &(struct script_client){0}));
    script_expect_end(&second, server, "");
    assert_string_equal(second.reason, "already connected");
    assert_true(ndsim_memif_link_up(server));
    script_close(&second);
    ndsim_memif_close(server);
    script_close(&first);
}

static void a_client_that_comes_back_before_its_end_was_noticed_is_let_in(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct script first, second;

    script_init(&first);
    script_init(&second);
    script_connect(&second, rig->path); /* comes first, talks later */
    script_connect(&first, rig->path);
    assert_true(script_be_client(&first, server, &(struct script_client){0}));
    script_close(&first);
    assert_true(script_be_client(&second, server, &(struct script_client){0}));
    assert_true(ndsim_memif_link_up(server));
    assert_int_equal(rig_statistics(server).connects, 2);
    script_close(&second);
    rig_until_link(server, NULL, false);
    assert_non_null(rig_logged(rig, "the peer went away"));
    ndsim_memif_close(server);
}

static void clients_that_say_nothing_keep_nobody_out(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct script idle[8], good;
    unsigned i;

    script_init(&good);
    for (i = 0; i < 8; i++) {
        script_init(&idle[i]);
        script_connect(&idle[i], rig->path);
        rig_step(server, NULL);
    }
    script_connect(&good, rig->path);
    assert_true(script_be_client(&good, server, &(struct script_client){0}));
    for (i = 0; i < 8; i++) {
        script_close(&idle[i]);
    }
    assert_true(ndsim_memif_link_up(server));
    script_close(&good);
    ndsim_memif_close(server);
}

/* More than a server listens to at once. */
#define CROWD 12

static bool only_init(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    return script_type(message) == MEMIF_INIT;
}

static bool all_but_the_rings(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    return script_type(message) == MEMIF_INIT || script_type(message) == MEMIF_ADD_REGION;
}

static bool all_but_connect(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    return script_type(message) != MEMIF_CONNECT;
}

static void clients_that_stop_half_way_keep_nobody_out(void **state)
{
    static const struct script_client lazy[] = {
        {.tamper = only_init}, {.tamper = all_but_the_rings}, {.tamper = all_but_connect}};
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct script crowd[CROWD], good;
    unsigned kind;
    unsigned i;

    script_init(&good);
    for (kind = 0; kind < sizeof(lazy) / sizeof(lazy[0]); kind++) {
        uint64_t refusals = rig_statistics(server).refusals;

        for (i = 0; i < CROWD; i++) {
            script_init(&crowd[i]);
            script_connect(&crowd[i], rig->path);
            assert_true(script_be_client(&crowd[i], server, &lazy[kind]));
        }
        assert_false(ndsim_memif_link_up(server));
        script_connect(&good, rig->path);
        assert_true(script_be_client(&good, server, &(struct script_client){0}));
        assert_true(ndsim_memif_link_up(server));
        assert_int_equal(rig_statistics(server).refusals, refusals + CROWD);
        script_expect_end(&crowd[0], server, "others are waiting");
        script_expect_end(&crowd[CROWD - 1], server, "another was faster");
        for (i = 0; i < CROWD; i++) {
            script_close(&crowd[i]);
        }
        script_close(&good);
        rig_until_link(server, NULL, false);
    }
    ndsim_memif_close(server);
}

/* Whenever the good client is about to speak, others do something. */
static struct {
    const char *path;
    struct ndsim_memif *server;
    struct script crowd[200];
    unsigned count;
    unsigned newcomers; /* each time */
    uint16_t region;    /* the next one that the whole crowd announces; 0: it says nothing */
} disturbance;

static bool disturbed(uint8_t *message, int *fds, unsigned *fd_count)
{
    unsigned i;

    (void)fds;
    (void)fd_count;
    for (i = 0; i < disturbance.newcomers; i++, disturbance.count++) {
        script_init(&disturbance.crowd[disturbance.count]);
        script_connect(&disturbance.crowd[disturbance.count], disturbance.path);
        ndsim_memif_process(disturbance.server);
    }
    if (script_type(message) == MEMIF_INIT) {
        disturbance.newcomers *= 4; /* whoever has shown that it knows the secret stays, whatever comes */
    }
    for (i = 0; disturbance.region != 0 && i < disturbance.count; i++) {
        uint8_t another[MEMIF_MESSAGE_BYTES] = {0};

        script_put(another, MEMIF_TYPE_16, MEMIF_ADD_REGION, 16);
        script_put(another, MEMIF_REGION_INDEX_16, disturbance.region, 16);
        script_put(another, MEMIF_REGION_BYTES_64, 4096, 64);
        script_send(&disturbance.crowd[i], another, &disturbance.crowd[i].memory_fd, 1);
    }
    disturbance.region += disturbance.region != 0;
    return true;
}

static void end_disturbance(void)
{
    while (disturbance.count != 0) {
        script_close(&disturbance.crowd[--disturbance.count]);
    }
    disturbance.newcomers = 0;
    disturbance.region = 0;
}

static void clients_that_go_on_and_on_keep_nobody_out(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct script good;

    for (disturbance.count = 0; disturbance.count < 6; disturbance.count++) {
        script_init(&disturbance.crowd[disturbance.count]);
        script_connect(&disturbance.crowd[disturbance.count], rig->path);
        assert_true(script_be_client(&disturbance.crowd[disturbance.count], server,
                                     &(struct script_client){.tamper = all_but_the_rings}));
    }
    disturbance.region = 1;
    script_init(&good);
    script_connect(&good, rig->path);
    assert_true(script_be_client(&good, server, &(struct script_client){.tamper = disturbed}));
    assert_true(ndsim_memif_link_up(server));
    assert_true(disturbance.region > 5);
    end_disturbance();
    script_close(&good);
    ndsim_memif_close(server);
}

static void a_flood_of_clients_keeps_nobody_out_and_costs_little(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    unsigned before = rig_descriptors();
    struct script good;

    disturbance.path = rig->path;
    disturbance.server = server;
    disturbance.newcomers = 6;
    script_init(&good);
    script_connect(&good, rig->path);
    assert_true(script_be_client(&good, server, &(struct script_client){.tamper = disturbed}));
    assert_true(ndsim_memif_link_up(server));
    assert_int_equal(disturbance.count, 6 + 4 * 24);
    /* The test's own ends, and of the server's seven and the peer's two events. */
    assert_in_range(rig_descriptors(), before, before + disturbance.count + 4 + 7 + 3);
    end_disturbance();
    script_close(&good);
    ndsim_memif_close(server);
}

static void without_descriptors_a_server_sleeps_until_there_are_some(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct pollfd ready = {.fd = ndsim_memif_fd(server), .events = POLLIN};
    struct rlimit limit;
    struct rlimit none;
    struct script good;
    unsigned tries = 0;
    int next;

    script_init(&good);
    script_connect(&good, rig->path);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    next = dup(STDERR_FILENO);
    assert_true(next >= 0);
    close(next);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(poll(&ready, 1, RIG_PATIENCE_MS), 1);
    do { /* it may be time to try again; but not always */
        ndsim_memif_process(server);
        tries++;
    } while (poll(&ready, 1, 0) == 1 && tries < 1000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(tries < 1000);
    assert_true(script_be_client(&good, server, &(struct script_client){0}));
    script_close(&good);
    ndsim_memif_close(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_second_client_is_refused_and_the_first_unharmed),
        TEST(a_client_that_comes_back_before_its_end_was_noticed_is_let_in),
        TEST(clients_that_say_nothing_keep_nobody_out),
        TEST(clients_that_stop_half_way_keep_nobody_out),
        TEST(clients_that_go_on_and_on_keep_nobody_out),
        TEST(a_flood_of_clients_keeps_nobody_out_and_costs_little),
        TEST(without_descriptors_a_server_sleeps_until_there_are_some),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
