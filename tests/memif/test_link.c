/* SPDX-License-Identifier: BSD-3-Clause */
/* Two memif endpoints back to back: frames of all sizes, full rings, sleeping and waking, coming and going. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct pair {
    struct ndsim_memif *server;
    struct ndsim_memif *client;
};

static struct pair open_pair(struct rig *rig, const struct ndsim_memif_config *like)
{
    struct ndsim_memif_config config = *like;
    struct pair pair;

    config.role = NDSIM_MEMIF_SERVER;
    pair.server = rig_open(rig, &config);
    config.role = NDSIM_MEMIF_CLIENT;
    pair.client = rig_open(rig, &config);
    rig_until_link(pair.server, pair.client, true);
    return pair;
}

static void close_pair(struct pair *pair)
{
    ndsim_memif_close(pair->client);
    ndsim_memif_close(pair->server);
}

/* What comes has to be numbered from `next` on, its size following from the number. */
struct expectation {
    uint64_t next;
    size_t (*size)(uint64_t number);
};

static void expect(void *opaque, const uint8_t *frame, size_t bytes)
{
    struct expectation *expectation = opaque;

    rig_check(frame, bytes, expectation->next, expectation->size(expectation->next));
    expectation->next++;
}

static size_t mixed(uint64_t number)
{
    static const size_t sizes[] = {1, 60, 64, 1514, 2048, 2049, 9014, NDSIM_MEMIF_FRAME_DEFAULT, 4096, 100};

    return sizes[number % 10];
}

static size_t small(uint64_t number)
{
    return 60 + number % 5;
}

static void exchange(struct ndsim_memif *from, struct ndsim_memif *to, size_t (*size)(uint64_t number), uint64_t frames)
{
    struct expectation expectation = {.size = size};
    uint64_t sent = 0;

    while (expectation.next < frames) {
        while (sent < frames && ndsim_memif_transmit_begin(from, size(sent)) != NULL) {
            ndsim_memif_transmit_end(from, 0);
            rig_send(from, sent, size(sent));
            sent++;
        }
        ndsim_memif_flush(from);
        assert_true(ndsim_memif_receive(to, 7, expect, &expectation) != 0);
    }
    assert_int_equal(ndsim_memif_receive(to, 7, expect, &expectation), 0);
}

static void exchange_both_ways(struct rig *rig, const struct ndsim_memif_config *like)
{
    struct pair pair = open_pair(rig, like);
    struct ndsim_memif_statistics statistics;

    exchange(pair.server, pair.client, mixed, 2000);
    exchange(pair.client, pair.server, mixed, 2000);
    statistics = rig_statistics(pair.client);
    assert_int_equal(statistics.transmit_frames, 2000);
    assert_int_equal(statistics.receive_frames, 2000);
    assert_int_equal(statistics.transmit_bytes, statistics.receive_bytes);
    assert_int_equal(statistics.transmit_down + statistics.transmit_stalled + statistics.receive_too_long, 0);
    assert_true(statistics.transmit_full > 0);
    close_pair(&pair);
}

static void frames_of_all_sizes_cross_in_order(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);

    exchange_both_ways(*state, &config);
}

static void frames_cross_without_a_copy_too(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);

    config.shared_frames = true;
    exchange_both_ways(*state, &config);
}

static void frames_longer_than_a_buffer_take_several(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);

    config.buffer_bytes = 2048;
    exchange_both_ways(*state, &config);
    config.shared_frames = true;
    exchange_both_ways(*state, &config);
}

static void rings_of_every_size_run_round(void **state)
{
    static const uint32_t slots[] = {2, 64, NDSIM_MEMIF_SLOTS_MAX};
    unsigned i;

    /* Indices have 16 bits. */
    for (i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
        struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
        struct pair pair;

        config.slots = slots[i];
        config.buffer_bytes = 64;
        pair = open_pair(*state, &config);
        exchange(pair.server, pair.client, small, 70000);
        exchange(pair.client, pair.server, small, 70000);
        close_pair(&pair);
    }
}

static void frames_that_no_ring_can_hold_are_lost_and_counted(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed};
    struct pair pair;

    config.slots = 2;
    config.buffer_bytes = 64;
    pair = open_pair(*state, &config);
    rig_send(pair.client, 0, 129);
    rig_send(pair.server, 0, 129);
    rig_send(pair.client, 0, 1);
    ndsim_memif_flush(pair.client);
    assert_int_equal(ndsim_memif_receive(pair.server, 7, expect, &expectation), 1);
    assert_int_equal(rig_statistics(pair.client).transmit_too_long, 1);
    assert_int_equal(rig_statistics(pair.server).transmit_too_long, 1);
    close_pair(&pair);
}

static void frames_longer_than_configured_are_refused_or_dropped(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed, .next = 1};
    struct ndsim_memif *server;
    struct ndsim_memif *client;

    config.frame_bytes = 1514;
    server = rig_open(*state, &config);
    config = rig_config(*state, NDSIM_MEMIF_CLIENT);
    client = rig_open(*state, &config);
    rig_until_link(server, client, true);
    assert_null(ndsim_memif_transmit_begin(server, 1515));
    assert_null(ndsim_memif_transmit_begin(server, 0));
    rig_send(client, 0, 1515);
    rig_send(client, 1, 60);
    ndsim_memif_flush(client);
    assert_int_equal(ndsim_memif_receive(server, 7, expect, &expectation), 2);
    assert_int_equal(expectation.next, 2);
    assert_int_equal(rig_statistics(server).receive_too_long, 1);
    ndsim_memif_close(client);
    ndsim_memif_close(server);
}

static void nothing_is_seen_before_flush(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed};
    struct pair pair = open_pair(*state, &config);

    rig_send(pair.server, 0, mixed(0));
    assert_int_equal(ndsim_memif_receive(pair.client, 7, expect, &expectation), 0);
    ndsim_memif_flush(pair.server);
    assert_int_equal(ndsim_memif_receive(pair.client, 7, expect, &expectation), 1);
    close_pair(&pair);
}

static bool readable(const struct ndsim_memif *memif)
{
    struct pollfd fd = {.fd = ndsim_memif_fd(memif), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static void a_peer_is_woken_if_it_sleeps_and_only_then(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed};
    struct pair pair = open_pair(*state, &config);
    unsigned i;

    rig_send(pair.server, 0, mixed(0));
    ndsim_memif_flush(pair.server);
    assert_int_equal(rig_statistics(pair.server).transmit_kicks, 0);
    assert_false(ndsim_memif_arm(pair.client)); /* a frame waits */
    ndsim_memif_disarm(pair.client);
    assert_int_equal(ndsim_memif_receive(pair.client, 7, expect, &expectation), 1);
    for (i = 1; i < 200; i++) {
        assert_true(ndsim_memif_arm(pair.client));
        assert_false(readable(pair.client));
        ndsim_memif_flush(pair.server); /* nothing to tell of */
        assert_false(readable(pair.client));
        rig_send(pair.server, i, mixed(i));
        ndsim_memif_flush(pair.server);
        assert_true(readable(pair.client));
        ndsim_memif_disarm(pair.client);
        ndsim_memif_process(pair.client);
        assert_false(readable(pair.client));
        assert_int_equal(ndsim_memif_receive(pair.client, 7, expect, &expectation), 1);
        assert_int_equal(rig_statistics(pair.server).transmit_kicks, i);
    }
    close_pair(&pair);
}

static void fill(struct ndsim_memif *memif, uint64_t *sent)
{
    while (ndsim_memif_transmit_begin(memif, mixed(*sent)) != NULL) {
        ndsim_memif_transmit_end(memif, 0);
        rig_send(memif, *sent, mixed(*sent));
        (*sent)++;
    }
    ndsim_memif_flush(memif);
}

static void whoever_waits_for_room_is_woken(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct pair pair = open_pair(*state, &config);
    struct ndsim_memif *ends[2] = {pair.server, pair.client};
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct ndsim_memif *sender = ends[i];
        struct ndsim_memif *receiver = ends[1 - i];
        struct expectation expectation = {.size = mixed};
        uint64_t sent = 0;

        fill(sender, &sent);
        assert_int_equal(sent, 16);
        assert_true(ndsim_memif_blocked(sender));
        assert_true(ndsim_memif_arm(sender));
        assert_false(readable(sender));
        assert_int_equal(ndsim_memif_receive(receiver, 7, expect, &expectation), 7);
        assert_true(readable(sender));
        assert_false(ndsim_memif_arm(sender)); /* there is room, no need to sleep */
        ndsim_memif_process(sender);
        ndsim_memif_disarm(sender);
        rig_send(sender, sent, mixed(sent));
        assert_false(ndsim_memif_blocked(sender));
        ndsim_memif_reset(sender);
        assert_int_equal(ndsim_memif_receive(receiver, 16, expect, &expectation), 9);
        assert_int_equal(ndsim_memif_receive(receiver, 16, expect, &expectation), 0);
    }
    close_pair(&pair);
}

static void frames_to_a_peer_that_takes_none_are_lost_after_a_while(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed};
    struct pair pair = open_pair(*state, &config);
    uint64_t sent = 0;

    fill(pair.server, &sent);
    assert_int_equal(sent, 16);
    while (ndsim_memif_transmit_begin(pair.server, 60) == NULL) {
        assert_true(ndsim_memif_blocked(pair.server));
        (void)poll(NULL, 0, 1);
    }
    assert_false(ndsim_memif_blocked(pair.server));
    ndsim_memif_transmit_end(pair.server, 60);
    assert_int_equal(rig_statistics(pair.server).transmit_stalled, 1);
    assert_int_equal(ndsim_memif_receive(pair.client, 100, expect, &expectation), 16);
    rig_send(pair.server, 16, mixed(16));
    ndsim_memif_flush(pair.server);
    assert_int_equal(ndsim_memif_receive(pair.client, 100, expect, &expectation), 1);
    assert_int_equal(rig_statistics(pair.server).transmit_stalled, 1);
    close_pair(&pair);
}

static void reset_drops_what_waits_on_either_side(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
    struct expectation expectation = {.size = mixed, .next = 5};
    struct pair pair = open_pair(*state, &config);
    unsigned i;

    for (i = 0; i < 3; i++) {
        rig_send(pair.server, i, mixed(i));
    }
    ndsim_memif_flush(pair.server);
    rig_send(pair.client, 3, mixed(3));
    ndsim_memif_reset(pair.client);
    ndsim_memif_flush(pair.client);
    assert_int_equal(ndsim_memif_receive(pair.client, 7, expect, &expectation), 0);
    assert_int_equal(ndsim_memif_receive(pair.server, 7, expect, &expectation), 0);
    assert_int_equal(rig_statistics(pair.client).receive_reset, 3);
    assert_int_equal(rig_statistics(pair.client).transmit_down, 1);
    assert_true(ndsim_memif_link_up(pair.client));
    rig_send(pair.client, 5, mixed(5));
    ndsim_memif_flush(pair.client);
    assert_int_equal(ndsim_memif_receive(pair.server, 7, expect, &expectation), 1);
    close_pair(&pair);
}

static void frames_are_lost_while_the_link_is_down(void **state)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_CLIENT);
    struct ndsim_memif *client = rig_open(*state, &config);
    struct expectation expectation = {.size = mixed};
    unsigned i;

    for (i = 0; i < 100; i++) {
        rig_send(client, 0, 1500);
    }
    ndsim_memif_flush(client);
    assert_false(ndsim_memif_blocked(client));
    assert_true(ndsim_memif_arm(client));
    ndsim_memif_disarm(client);
    ndsim_memif_reset(client);
    assert_int_equal(ndsim_memif_receive(client, 7, expect, &expectation), 0);
    assert_int_equal(rig_statistics(client).transmit_down, 100);
    ndsim_memif_close(client);
}

static void either_end_may_go_and_come_back(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct pair pair = open_pair(rig, &config);
    unsigned i;

    for (i = 0; i < 3; i++) {
        rig_send(pair.server, 0, 60); /* goes down with the link */
        ndsim_memif_close(pair.client);
        rig_until_link(pair.server, NULL, false);
        assert_non_null(rig_logged(rig, "the peer disconnected: closed"));
        config.role = NDSIM_MEMIF_CLIENT;
        pair.client = rig_open(rig, &config);
        rig_until_link(pair.server, pair.client, true);
        exchange(pair.client, pair.server, mixed, 100);

        ndsim_memif_close(pair.server);
        rig_until_link(pair.client, NULL, false);
        config.role = NDSIM_MEMIF_SERVER;
        pair.server = rig_open(rig, &config);
        rig_until_link(pair.server, pair.client, true);
        exchange(pair.server, pair.client, mixed, 100);
    }
    assert_int_equal(rig_statistics(pair.client).connects, 2);
    assert_int_equal(rig_statistics(pair.client).disconnects, 1);
    close_pair(&pair);
}

static void a_child_lets_go_without_anybody_noticing(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct pair pair = open_pair(rig, &config);
    struct stat status;
    pid_t child = fork();
    int result;

    assert_true(child >= 0);
    if (child == 0) {
        ndsim_memif_abandon(pair.server);
        ndsim_memif_abandon(pair.client);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(stat(rig->path, &status), 0);
    ndsim_memif_process(pair.server);
    ndsim_memif_process(pair.client);
    exchange(pair.server, pair.client, mixed, 100);
    assert_true(ndsim_memif_arm(pair.client));
    rig_send(pair.server, 0, 60);
    ndsim_memif_flush(pair.server);
    assert_true(readable(pair.client));
    close_pair(&pair);
}

static void a_client_takes_as_many_slots_as_the_server_allows(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_CLIENT);
    struct ndsim_memif *client;
    struct script server;

    script_init(&server);
    script_listen(&server, rig->path);
    client = rig_open(rig, &config);
    script_accept(&server, client);
    script_be_server(&server, client, 3);
    assert_int_equal(atomic_load(&server.ring[SCRIPT_M2S]->head), 8);
    script_close(&server);
    ndsim_memif_close(client);
}

static void impossible_configurations_are_refused(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif *memif = NULL;
    const struct ndsim_memif_config good = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif_config bad[13];
    char long_path[200];
    unsigned i;

    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = 0;
    for (i = 0; i < 13; i++) {
        bad[i] = good;
    }
    bad[0].path = NULL;
    bad[1].path = "";
    bad[2].path = long_path;
    bad[3].slots = 1;
    bad[4].slots = 48;
    bad[5].slots = 32768;
    bad[6].frame_bytes = 63;
    bad[7].frame_bytes = NDSIM_MEMIF_FRAME_MAX + 1;
    bad[8].buffer_bytes = 63;
    bad[9].buffer_bytes = 65536;
    bad[10].secret = "a secret of more than 24 bytes";
    bad[11].slots = 16384;
    bad[11].buffer_bytes = 65535;
    bad[12].secret = "";
    for (i = 0; i < 13; i++) {
        assert_int_equal(ndsim_memif_open(&bad[i], &memif), -EINVAL);
        assert_null(memif);
    }
    bad[0].path = "/nowhere/at/all";
    assert_int_equal(ndsim_memif_open(&bad[0], &memif), -ENOENT);
}

static void a_path_in_use_is_refused_and_a_dead_one_taken(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *first = rig_open(rig, &config);
    struct ndsim_memif *second = NULL;
    struct stat status;
    FILE *file;

    assert_int_equal(ndsim_memif_open(&config, &second), -EADDRINUSE);
    ndsim_memif_close(first);
    assert_int_equal(stat(rig->path, &status), -1);

    file = fopen(rig->path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(ndsim_memif_open(&config, &second), -EADDRINUSE);
    assert_int_equal(unlink(rig->path), 0);

    first = rig_open(rig, &config);
    ndsim_memif_abandon(first); /* as if it had been killed */
    assert_int_equal(stat(rig->path, &status), 0);
    second = rig_open(rig, &config);
    ndsim_memif_close(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_of_all_sizes_cross_in_order),
        TEST(frames_cross_without_a_copy_too),
        TEST(frames_longer_than_a_buffer_take_several),
        TEST(rings_of_every_size_run_round),
        TEST(frames_that_no_ring_can_hold_are_lost_and_counted),
        TEST(frames_longer_than_configured_are_refused_or_dropped),
        TEST(nothing_is_seen_before_flush),
        TEST(a_peer_is_woken_if_it_sleeps_and_only_then),
        TEST(whoever_waits_for_room_is_woken),
        TEST(frames_to_a_peer_that_takes_none_are_lost_after_a_while),
        TEST(reset_drops_what_waits_on_either_side),
        TEST(frames_are_lost_while_the_link_is_down),
        TEST(either_end_may_go_and_come_back),
        TEST(a_child_lets_go_without_anybody_noticing),
        TEST(a_client_takes_as_many_slots_as_the_server_allows),
        TEST(impossible_configurations_are_refused),
        TEST(a_path_in_use_is_refused_and_a_dead_one_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
