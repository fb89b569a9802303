/* SPDX-License-Identifier: BSD-3-Clause */
/* Memif peers that lie: in the handshake, about memory and events, in the rings; and peers that just die. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void ignore(void *opaque, const uint8_t *frame, size_t bytes)
{
    (void)opaque;
    (void)frame;
    (void)bytes;
    fail_msg("a frame came from nowhere");
}

static void keep(void *opaque, const uint8_t *frame, size_t bytes)
{
    (void)opaque;
    rig_check(frame, bytes, 1, 100);
}

/* Clients whose handshake differs in one place from a good one. */

static unsigned type_of(const uint8_t *message)
{
    return (unsigned)script_get(message, MEMIF_TYPE_16, 16);
}

/* Changes a field of the messages of one type. */
static bool change(uint8_t *message, unsigned type, unsigned offset, uint64_t value, unsigned bits)
{
    if (type_of(message) == type) {
        script_put(message, offset, value, bits);
    }
    return true;
}

#define CHANGE(name, type, offset, value, bits)                                                                        \
    static bool name(uint8_t *message, int *fds, unsigned *fd_count)                                                   \
    {                                                                                                                  \
        (void)fds;                                                                                                     \
        (void)fd_count;                                                                                                \
        return change(message, type, offset, value, bits);                                                             \
    }

CHANGE(version_1, MEMIF_INIT, MEMIF_INIT_VERSION_16, 0x100, 16)
CHANGE(version_3, MEMIF_INIT, MEMIF_INIT_VERSION_16, 0x300, 16)
CHANGE(other_id, MEMIF_INIT, MEMIF_INIT_ID_32, 8, 32)
CHANGE(ip_mode, MEMIF_INIT, MEMIF_INIT_MODE_8, 1, 8)
CHANGE(unknown_type, MEMIF_INIT, MEMIF_TYPE_16, 99, 16)
CHANGE(type_0, MEMIF_INIT, MEMIF_TYPE_16, 0, 16)
CHANGE(hello_from_client, MEMIF_INIT, MEMIF_TYPE_16, MEMIF_HELLO, 16)
CHANGE(connect_before_init, MEMIF_INIT, MEMIF_TYPE_16, MEMIF_CONNECT, 16)
CHANGE(init_twice, MEMIF_ADD_REGION, MEMIF_TYPE_16, MEMIF_INIT, 16)
CHANGE(connect_without_rings, MEMIF_ADD_REGION, MEMIF_TYPE_16, MEMIF_CONNECT, 16)
CHANGE(region_index_1, MEMIF_ADD_REGION, MEMIF_REGION_INDEX_16, 1, 16)
CHANGE(region_index_high, MEMIF_ADD_REGION, MEMIF_REGION_INDEX_16, 65535, 16)
CHANGE(region_of_0_bytes, MEMIF_ADD_REGION, MEMIF_REGION_BYTES_64, 0, 64)
CHANGE(region_of_all_bytes, MEMIF_ADD_REGION, MEMIF_REGION_BYTES_64, UINT64_MAX, 64)
CHANGE(region_of_negative_bytes, MEMIF_ADD_REGION, MEMIF_REGION_BYTES_64, INT64_MIN, 64)
CHANGE(ring_index_1, MEMIF_ADD_RING, MEMIF_RING_INDEX_16, 1, 16)
CHANGE(ring_in_region_1, MEMIF_ADD_RING, MEMIF_RING_REGION_16, 1, 16)
CHANGE(ring_beyond, MEMIF_ADD_RING, MEMIF_RING_OFFSET_32, 0xfffffff8u, 32)
CHANGE(ring_half_out, MEMIF_ADD_RING, MEMIF_RING_OFFSET_32, 2 * (128 + 16 * 16) + 32 * 2048 - 256, 32)
CHANGE(ring_misaligned, MEMIF_ADD_RING, MEMIF_RING_OFFSET_32, 4, 32)
CHANGE(ring_of_1_slot, MEMIF_ADD_RING, MEMIF_RING_LOG2_SLOTS_8, 0, 8)
CHANGE(ring_of_32768_slots, MEMIF_ADD_RING, MEMIF_RING_LOG2_SLOTS_8, 15, 8)
CHANGE(ring_of_no_end_of_slots, MEMIF_ADD_RING, MEMIF_RING_LOG2_SLOTS_8, 255, 8)
CHANGE(same_ring_twice, MEMIF_ADD_RING, MEMIF_RING_FLAGS_16, MEMIF_RING_FLAG_S2M, 16)

static bool one_ring_only(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    return type_of(message) != MEMIF_ADD_RING || script_get(message, MEMIF_RING_FLAGS_16, 16) != 0;
}

static bool region_without_descriptor(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    *fd_count = type_of(message) == MEMIF_ADD_REGION ? 0 : *fd_count;
    return true;
}

static bool ring_without_descriptor(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    *fd_count = type_of(message) == MEMIF_ADD_RING ? 0 : *fd_count;
    return true;
}

static bool many_descriptors(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (type_of(message) == MEMIF_ADD_REGION) {
        for (; *fd_count < 16; (*fd_count)++) {
            fds[*fd_count] = fds[0];
        }
    }
    return true;
}

static bool two_descriptors(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (type_of(message) == MEMIF_ADD_RING) {
        fds[1] = fds[0];
        *fd_count = 2;
    }
    return true;
}

static bool descriptor_with_init(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (type_of(message) == MEMIF_INIT) {
        fds[0] = STDERR_FILENO;
        *fd_count = 1;
    }
    return true;
}

static bool ring_event_is_a_file(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (type_of(message) == MEMIF_ADD_RING) {
        fds[0] = STDERR_FILENO;
    }
    return true;
}

static int spare[2] = {-1, -1}; /* of a pipe */

static bool ring_event_is_a_pipe(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (type_of(message) == MEMIF_ADD_RING) {
        fds[0] = spare[1];
    }
    return true;
}

static bool region_is_a_pipe(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (type_of(message) == MEMIF_ADD_REGION) {
        fds[0] = spare[0];
    }
    return true;
}

static bool region_is_an_eventfd(uint8_t *message, int *fds, unsigned *fd_count)
{
    static int event = -1;

    (void)fd_count;
    if (type_of(message) == MEMIF_ADD_REGION) {
        event = event < 0 ? eventfd(0, EFD_CLOEXEC) : event;
        fds[0] = event;
    }
    return true;
}

static void clients_that_lie_are_told_why(void **state)
{
    static const struct {
        struct script_client client;
        const char *reason;
    } cases[] = {
        {{.tamper = version_1}, "version is not 2.0"},
        {{.tamper = version_3}, "version is not 2.0"},
        {{.tamper = other_id}, "no interface has this id"},
        {{.tamper = ip_mode}, "only Ethernet mode"},
        {{.tamper = unknown_type}, "unexpected message"},
        {{.tamper = type_0}, "unexpected message"},
        {{.tamper = hello_from_client}, "unexpected message"},
        {{.tamper = connect_before_init}, "unexpected message"},
        {{.tamper = init_twice}, "descriptors"}, /* and one too many at that */
        {{.tamper = connect_without_rings}, "descriptors"},
        {{.tamper = region_index_1}, "index is not the next"},
        {{.tamper = region_index_high}, "index is not the next"},
        {{.tamper = region_of_0_bytes}, "smaller than announced"},
        {{.tamper = region_of_all_bytes}, "smaller than announced"},
        {{.tamper = region_of_negative_bytes}, "smaller than announced"},
        {{.missing_bytes = 1}, "smaller than announced"},
        {{.unsealed = true}, "not sealed against shrinking"},
        {{.tamper = region_is_a_pipe}, "not memory of memfd_create"},
        {{.tamper = region_is_an_eventfd}, "not memory of memfd_create"},
        {{.tamper = region_without_descriptor}, "a region comes without descriptor"},
        {{.tamper = many_descriptors}, "wrong size"},
        {{.tamper = two_descriptors}, "more descriptors"},
        {{.tamper = descriptor_with_init}, "more descriptors"},
        {{.tamper = ring_index_1}, "one ring each way"},
        {{.tamper = ring_in_region_1}, "lies in no region"},
        {{.tamper = ring_beyond}, "within its region"},
        {{.tamper = ring_half_out}, "within its region"},
        {{.tamper = ring_misaligned}, "within its region"},
        {{.tamper = ring_of_1_slot}, "size is not supported"},
        {{.tamper = ring_of_32768_slots}, "size is not supported"},
        {{.tamper = ring_of_no_end_of_slots}, "size is not supported"},
        {{.tamper = same_ring_twice}, "a ring comes twice"},
        {{.tamper = ring_without_descriptor}, "a ring comes without descriptor"},
        {{.tamper = ring_event_is_a_file}, "not an eventfd"},
        {{.tamper = ring_event_is_a_pipe}, "not an eventfd"},
        {{.tamper = one_ring_only}, "a ring is missing"},
        {{.no_cookie = true}, "no cookie"},
    };
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    struct ndsim_memif_statistics statistics;
    struct script client;
    unsigned before;
    unsigned i;

    assert_int_equal(pipe2(spare, O_CLOEXEC), 0);
    script_init(&client);
    before = 0;
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        script_connect(&client, rig->path);
        if (script_be_client(&client, server, &cases[i].client)) {
            fail_msg("case %u, \"%s\", was let in", i, cases[i].reason);
        }
        script_expect_end(&client, server, cases[i].reason);
        script_close(&client);
        if (i == 20) {
            before = open_descriptors();
        }
    }
    assert_int_equal(open_descriptors(), before); /* surplus ones are closed */
    statistics = rig_statistics(server);
    assert_int_equal(statistics.protocol_errors, i);
    assert_int_equal(statistics.refusals, i);
    assert_int_equal(statistics.connects, 0);
    script_connect(&client, rig->path);
    assert_true(script_be_client(&client, server, &(struct script_client){0}));
    assert_true(ndsim_memif_link_up(server));
    script_close(&client);
    close(spare[0]);
    close(spare[1]);
    ndsim_memif_close(server);
}

static void messages_of_other_sizes_are_refused(void **state)
{
    static const size_t sizes[] = {1, 2, 127, 129, 4000};
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    uint8_t message[4096] = {MEMIF_INIT};
    struct script client;
    unsigned i;

    script_init(&client);
    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        script_connect(&client, rig->path);
        assert_int_equal(script_wait(&client, server, message, NULL), MEMIF_HELLO);
        assert_int_equal(send(client.fd, message, sizes[i], MSG_NOSIGNAL), sizes[i]);
        script_expect_end(&client, server, "wrong size");
        script_close(&client);
    }
    ndsim_memif_close(server);
}

static void a_secret_is_needed_where_there_is_one(void **state)
{
    static const struct {
        const char *secret;
        bool enters;
    } cases[] = {{"", false}, {"swordfis", false}, {"swordfish2", false}, {"Swordfish", false}, {"swordfish", true}};
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server;
    unsigned i;

    config.secret = "swordfish";
    server = rig_open(rig, &config);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ndsim_memif *client;
        uint64_t refusals = rig_statistics(server).refusals;

        config = rig_config(rig, NDSIM_MEMIF_CLIENT);
        config.secret = cases[i].secret;
        client = rig_open(rig, &config);
        if (cases[i].enters) {
            rig_until_link(server, client, true);
        } else {
            while (rig_statistics(client).refusals == 0) {
                rig_step(server, client);
            }
            assert_true(rig_statistics(server).refusals > refusals);
            assert_non_null(rig_logged(rig, "the peer disconnected: the secret is wrong"));
            assert_false(ndsim_memif_link_up(server));
        }
        ndsim_memif_close(client);
    }
    ndsim_memif_close(server);
}

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

/* Rings. */

struct bench {
    struct rig *rig;
    struct ndsim_memif *memif;
    struct script peer;
};

static void open_bench(struct bench *bench, void **state, bool memif_is_client, const struct script_client *client)
{
    struct ndsim_memif_config config;

    bench->rig = *state;
    config = rig_config(bench->rig, memif_is_client ? NDSIM_MEMIF_CLIENT : NDSIM_MEMIF_SERVER);
    script_init(&bench->peer);
    if (memif_is_client) {
        script_listen(&bench->peer, bench->rig->path);
        bench->memif = rig_open(bench->rig, &config);
        script_accept(&bench->peer, bench->memif);
        script_be_server(&bench->peer, bench->memif, 4);
    } else {
        bench->memif = rig_open(bench->rig, &config);
        script_connect(&bench->peer, bench->rig->path);
        assert_true(script_be_client(&bench->peer, bench->memif, client));
    }
    assert_true(ndsim_memif_link_up(bench->memif));
}

static void close_bench(struct bench *bench)
{
    script_close(&bench->peer);
    ndsim_memif_close(bench->memif);
}

/* The link is down at once, the peer is told as soon as the endpoint's descriptor has been served. */
static void expect_broken(struct bench *bench, const char *reason)
{
    assert_false(ndsim_memif_link_up(bench->memif));
    assert_true(ndsim_memif_arm(bench->memif));
    ndsim_memif_disarm(bench->memif);
    script_expect_end(&bench->peer, bench->memif, reason);
    assert_int_equal(rig_statistics(bench->memif).protocol_errors, 1);
    assert_int_equal(rig_statistics(bench->memif).disconnects, 1);
}

static const struct script_client plain;

static void receive_index_jumps_break_the_link(void **state)
{
    static const uint16_t heads[] = {17, 32768, 65535};
    unsigned i;

    for (i = 0; i < 3; i++) {
        struct bench bench;

        open_bench(&bench, state, false, &plain);
        atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, heads[i]);
        assert_int_equal(ndsim_memif_receive(bench.memif, 100, ignore, NULL), 0);
        expect_broken(&bench, "index is impossible");
        close_bench(&bench);
    }
    for (i = 0; i < 3; i++) {
        struct bench bench;

        open_bench(&bench, state, true, NULL);
        atomic_store(&bench.peer.ring[SCRIPT_M2S]->tail, heads[i]);
        assert_int_equal(ndsim_memif_receive(bench.memif, 100, ignore, NULL), 0);
        expect_broken(&bench, "index is impossible");
        (void)unlink(bench.rig->path);
        close_bench(&bench);
    }
}

static void transmit_index_jumps_break_the_link(void **state)
{
    static const uint16_t heads[] = {17, 32768, 65535};
    struct bench bench;
    unsigned i;

    for (i = 0; i < 3; i++) {
        open_bench(&bench, state, false, &plain);
        atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, heads[i]);
        rig_send(bench.memif, 0, 60); /* lost */
        expect_broken(&bench, "index is impossible");
        assert_int_equal(rig_statistics(bench.memif).transmit_down, 1);
        close_bench(&bench);
    }
    open_bench(&bench, state, true, NULL);
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->tail, 1); /* nothing has been sent */
    for (i = 0; i < 17; i++) {
        rig_send(bench.memif, 0, 60);
    }
    expect_broken(&bench, "index is impossible");
    (void)unlink(bench.rig->path);
    close_bench(&bench);
}

static void indices_that_go_back_break_the_link(void **state)
{
    struct bench bench;

    open_bench(&bench, state, false, &plain);
    atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, 4);
    rig_send(bench.memif, 0, 60);
    ndsim_memif_flush(bench.memif);
    atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, 3);
    while (rig_statistics(bench.memif).transmit_down == 0) {
        rig_send(bench.memif, 0, 60);
    }
    expect_broken(&bench, "index is impossible");
    close_bench(&bench);
}

static void frames_outside_their_region_break_the_link(void **state)
{
    static const struct {
        unsigned region;
        uint32_t length;
        uint32_t offset;
    } cases[] = {{1, 60, 0},          {65535, 60, 0},
                 {0, 60, 0xffffffff}, {0, 0xffffffff, 64},
                 {0, 0xffffffff, 1},  {0, 0x80000000u, 0x80000000u},
                 {16, 60, 0},         {0, 1, 2 * 384 + 32 * 2048}};
    unsigned shared;
    unsigned i;

    for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench bench;
        struct ndsim_memif_config config;

        shared = i % 2;
        open_bench(&bench, state, false, &plain);
        if (shared != 0) { /* the same with frames that are not copied */
            close_bench(&bench);
            config = rig_config(bench.rig, NDSIM_MEMIF_SERVER);
            config.shared_frames = true;
            bench.memif = rig_open(bench.rig, &config);
            script_connect(&bench.peer, bench.rig->path);
            assert_true(script_be_client(&bench.peer, bench.memif, &plain));
        }
        script_describe(bench.peer.ring[SCRIPT_S2M], 0, 0, cases[i / 2].region, cases[i / 2].length,
                        cases[i / 2].offset);
        atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 1);
        (void)ndsim_memif_receive(bench.memif, 100, ignore, NULL);
        expect_broken(&bench, "a frame lies outside its region");
        close_bench(&bench);
    }
}

static void empty_buffers_outside_their_region_break_the_link(void **state)
{
    static const struct {
        unsigned region;
        uint32_t length;
        uint32_t offset;
    } cases[] = {{1, 2048, 0}, {0, 2048, 0xffffffff}, {0, 0xffffffff, 0}, {0, 0, 0}};
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench bench;

        open_bench(&bench, state, false, &plain);
        script_describe(bench.peer.ring[SCRIPT_M2S], 0, 0, cases[i].region, cases[i].length, cases[i].offset);
        atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, 16);
        rig_send(bench.memif, 0, 60);
        expect_broken(&bench, "an empty buffer lies outside its region");
        close_bench(&bench);
    }
}

static void a_server_that_overfills_a_buffer_breaks_the_link(void **state)
{
    struct bench bench;

    open_bench(&bench, state, true, NULL);
    script_describe(bench.peer.ring[SCRIPT_M2S], 0, 0, 0, NDSIM_MEMIF_FRAME_DEFAULT + 1, 0);
    atomic_store(&bench.peer.ring[SCRIPT_M2S]->tail, 1);
    (void)ndsim_memif_receive(bench.memif, 100, ignore, NULL);
    expect_broken(&bench, "longer than its buffer");
    (void)unlink(bench.rig->path);
    close_bench(&bench);
}

static void chains_without_end_break_the_link(void **state)
{
    struct bench bench;
    unsigned i;

    open_bench(&bench, state, false, &plain);
    for (i = 0; i < 16; i++) {
        script_describe(bench.peer.ring[SCRIPT_S2M], i, MEMIF_CHAINED, 0, 2048, 1024);
    }
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 16);
    (void)ndsim_memif_receive(bench.memif, 100, ignore, NULL);
    expect_broken(&bench, "no end");
    close_bench(&bench);
}

static void chains_longer_than_a_frame_are_dropped(void **state)
{
    struct bench bench;
    unsigned i;

    open_bench(&bench, state, false, &plain);
    for (i = 0; i < 5; i++) {
        script_describe(bench.peer.ring[SCRIPT_S2M], i, i < 4 ? MEMIF_CHAINED : 0, 0, 2048, 1024);
    }
    script_describe(bench.peer.ring[SCRIPT_S2M], 5, MEMIF_CHAINED, 0, 0, 0);
    script_describe(bench.peer.ring[SCRIPT_S2M], 6, 0, 0, 0, 0);
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 7);
    assert_int_equal(ndsim_memif_receive(bench.memif, 100, ignore, NULL), 2);
    assert_int_equal(rig_statistics(bench.memif).receive_too_long, 1);
    assert_int_equal(rig_statistics(bench.memif).receive_empty, 1);
    assert_true(ndsim_memif_link_up(bench.memif));
    assert_int_equal(atomic_load(&bench.peer.ring[SCRIPT_S2M]->tail), 7);
    close_bench(&bench);
}

static void count(void *opaque, const uint8_t *frame, size_t bytes)
{
    size_t *last = opaque;

    (void)frame;
    *last = bytes;
}

static void chains_of_too_many_buffers_are_dropped(void **state)
{
    static const struct script_client many = {.log2_slots = 8};
    static const struct {
        unsigned buffers;
        uint32_t length; /* of each but the last, which has 36 bytes more */
        bool taken;
    } cases[] = {{64, 1, true}, {65, 1, false}, {256, 0, false}, {64, 0, true}, {65, 0, false}};
    struct bench bench;
    struct memif_ring *ring;
    uint64_t dropped = 0;
    uint16_t head = 0;
    unsigned i;
    unsigned at;

    open_bench(&bench, state, false, &many);
    ring = bench.peer.ring[SCRIPT_S2M];
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t last = 0;

        for (at = 1; at <= cases[i].buffers; at++, head++) {
            bool more = at < cases[i].buffers;

            script_describe(ring, head % 256, more ? MEMIF_CHAINED : 0, 0, cases[i].length + (more ? 0 : 36), 16384);
        }
        atomic_store(&ring->head, head);
        assert_int_equal(ndsim_memif_receive(bench.memif, 100, count, &last), 1);
        assert_int_equal(last, cases[i].taken ? 64 * cases[i].length + 36 : 0);
        dropped += !cases[i].taken;
        assert_int_equal(rig_statistics(bench.memif).receive_scattered, dropped);
        assert_int_equal(atomic_load(&ring->tail), head);
    }
    assert_true(ndsim_memif_link_up(bench.memif));
    close_bench(&bench);
}

static void a_chain_mark_left_in_place_means_nothing_the_next_time(void **state)
{
    struct bench bench;
    struct memif_ring *ring;
    size_t last = 0;
    unsigned i;

    /* DPDK's sender never takes the mark away. */
    open_bench(&bench, state, false, &plain);
    ring = bench.peer.ring[SCRIPT_S2M];
    script_describe(ring, 0, MEMIF_CHAINED, 0, 60, 1024);
    for (i = 1; i < 16; i++) {
        script_describe(ring, i, 0, 0, 40, 1024);
    }
    atomic_store(&ring->head, 16);
    assert_int_equal(ndsim_memif_receive(bench.memif, 1, count, &last), 1);
    assert_int_equal(last, 100);
    assert_int_equal(ndsim_memif_receive(bench.memif, 100, count, &last), 14);
    script_describe(ring, 0, (unsigned)atomic_load(&ring->descriptor[0].low) & 0xffffu, 0, 50, 1024);
    atomic_store(&ring->head, 17);
    assert_int_equal(ndsim_memif_receive(bench.memif, 100, count, &last), 1);
    assert_int_equal(last, 50);
    assert_true(ndsim_memif_link_up(bench.memif));
    close_bench(&bench);
}

/* Memory. */

static void a_region_that_is_not_sealed_is_used_and_may_shrink(void **state)
{
    struct bench bench;
    uint8_t message[MEMIF_MESSAGE_BYTES] = {0};
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    uint8_t *memory;
    unsigned i;
    int fd;

    /* As DPDK's endpoint with zero-copy: rings in sealed memory, buffers in a region that is not. */
    bench.rig = rig;
    script_init(&bench.peer);
    config.shared_frames = true;
    bench.memif = rig_open(rig, &config);
    fd = memfd_create("unsealed", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 65536), 0);
    memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED);
    script_connect(&bench.peer, rig->path);
    script_make_memory(&bench.peer, &plain);
    assert_int_equal(script_wait(&bench.peer, bench.memif, message, NULL), MEMIF_HELLO);
    for (i = 0; i < 6; i++) {
        static const unsigned types[] = {MEMIF_INIT,     MEMIF_ADD_REGION, MEMIF_ADD_REGION,
                                         MEMIF_ADD_RING, MEMIF_ADD_RING,   MEMIF_CONNECT};
        int fds[] = {-1, bench.peer.memory_fd, fd, bench.peer.event_fd[0], bench.peer.event_fd[1], -1};

        memset(message, 0, sizeof(message));
        script_put(message, MEMIF_TYPE_16, types[i], 16);
        if (types[i] == MEMIF_INIT) {
            script_put(message, MEMIF_INIT_VERSION_16, MEMIF_VERSION, 16);
            script_put(message, MEMIF_INIT_ID_32, 7, 32);
        } else if (types[i] == MEMIF_ADD_REGION) {
            script_put(message, MEMIF_REGION_INDEX_16, i - 1, 16);
            script_put(message, MEMIF_REGION_BYTES_64, i == 1 ? bench.peer.memory_bytes : 65536, 64);
        } else if (types[i] == MEMIF_ADD_RING) {
            script_put(message, MEMIF_RING_FLAGS_16, i == 3 ? MEMIF_RING_FLAG_S2M : 0, 16);
            script_put(message, MEMIF_RING_OFFSET_32, i == 3 ? 0 : 384, 32);
            script_put(message, MEMIF_RING_LOG2_SLOTS_8, 4, 8);
        }
        script_send(&bench.peer, message, &fds[i], fds[i] >= 0 ? 1 : 0);
        assert_int_equal(script_wait(&bench.peer, bench.memif, message, NULL), i == 5 ? MEMIF_CONNECTED : MEMIF_ACK);
    }

    /* Both ways. */
    script_describe(bench.peer.ring[SCRIPT_M2S], 0, 0, 1, 2048, 8192);
    atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, 1);
    rig_send(bench.memif, 1, 100);
    ndsim_memif_flush(bench.memif);
    assert_int_equal(atomic_load(&bench.peer.ring[SCRIPT_M2S]->tail), 1);
    rig_check(memory + 8192, 100, 1, 100);
    memcpy(memory + 32768, memory + 8192, 100);
    script_describe(bench.peer.ring[SCRIPT_S2M], 0, 0, 1, 100, 32768);
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 1);
    assert_int_equal(ndsim_memif_receive(bench.memif, 100, keep, NULL), 1);

    /* And now it shrinks under a frame: no fault, but an end. */
    assert_int_equal(ftruncate(fd, 4096), 0);
    script_describe(bench.peer.ring[SCRIPT_S2M], 1, 0, 1, 100, 32768);
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 2);
    assert_int_equal(ndsim_memif_receive(bench.memif, 100, ignore, NULL), 1);
    expect_broken(&bench, "a frame cannot be read");
    munmap(memory, 65536);
    close(fd);
    close_bench(&bench);
}

static void a_link_outlives_its_peer_until_its_owner_looks(void **state)
{
    struct bench bench;

    open_bench(&bench, state, false, &plain);
    atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, 16);
    memset(bench.peer.memory + 4096, 1, 100);
    script_describe(bench.peer.ring[SCRIPT_S2M], 0, 0, 0, 100, 4096);
    atomic_store(&bench.peer.ring[SCRIPT_S2M]->head, 1);
    rig_send(bench.memif, 0, 60);
    script_close(&bench.peer);
    ndsim_memif_flush(bench.memif);
    rig_send(bench.memif, 0, 60);
    rig_until_link(bench.memif, NULL, false);
    assert_int_equal(rig_statistics(bench.memif).transmit_down, 1);
    assert_int_equal(rig_statistics(bench.memif).transmit_frames, 1);
    rig_send(bench.memif, 0, 60);
    ndsim_memif_flush(bench.memif);
    assert_int_equal(rig_statistics(bench.memif).transmit_down, 2);
    close_bench(&bench);
}

static void a_peer_that_fills_an_event_up_blocks_nobody(void **state)
{
    struct bench bench;
    uint64_t full = UINT64_MAX - 1;
    struct pollfd writable;
    unsigned i;

    open_bench(&bench, state, false, &plain);
    writable = (struct pollfd){.fd = bench.peer.event_fd[SCRIPT_M2S], .events = POLLOUT};
    assert_int_equal(write(writable.fd, &full, sizeof(full)), sizeof(full));
    assert_int_equal(poll(&writable, 1, 0), 0); /* a write would block now */
    assert_int_equal(fcntl(writable.fd, F_GETFL) & O_NONBLOCK, 0);
    for (i = 0; i < 1000; i++) {
        atomic_store(&bench.peer.ring[SCRIPT_M2S]->head, (uint16_t)(i + 16));
        rig_send(bench.memif, i, 60);
        ndsim_memif_flush(bench.memif);
    }
    assert_int_equal(rig_statistics(bench.memif).transmit_kicks, 1000);

    /* And of the other event somebody else reads the count away. */
    assert_true(ndsim_memif_arm(bench.memif));
    full = 1;
    assert_int_equal(write(bench.peer.event_fd[SCRIPT_S2M], &full, sizeof(full)), sizeof(full));
    assert_int_equal(read(bench.peer.event_fd[SCRIPT_S2M], &full, sizeof(full)), sizeof(full));
    ndsim_memif_process(bench.memif);
    ndsim_memif_disarm(bench.memif);
    close_bench(&bench);
}

/* Servers that lie to a client. */

static void servers_that_lie_are_told_why(void **state)
{
    static const struct {
        unsigned type;
        uint16_t version_min, version_max;
        unsigned log2_slots;
        const char *reason;
    } cases[] = {
        {MEMIF_HELLO, 0x100, 0x1ff, 10, "no common version"},
        {MEMIF_HELLO, 0x201, 0x300, 10, "no common version"},
        {MEMIF_HELLO, 0x200, 0x200, 0, "rings of one slot"},
        {MEMIF_ACK, 0, 0, 0, "unexpected message"},
        {MEMIF_CONNECTED, 0, 0, 0, "unexpected message"},
        {MEMIF_ADD_REGION, 0, 0, 0, "unexpected message"},
        {77, 0, 0, 0, "unexpected message"},
    };
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_CLIENT);
    struct ndsim_memif *client;
    struct script server;
    unsigned i;

    script_init(&server);
    script_listen(&server, rig->path);
    client = rig_open(rig, &config);
    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t message[MEMIF_MESSAGE_BYTES] = {0};

        script_accept(&server, client); /* it tries again every time */
        script_put(message, MEMIF_TYPE_16, cases[i].type, 16);
        script_put(message, MEMIF_HELLO_VERSION_MIN_16, cases[i].version_min, 16);
        script_put(message, MEMIF_HELLO_VERSION_MAX_16, cases[i].version_max, 16);
        script_put(message, MEMIF_HELLO_LOG2_SLOTS_MAX_8, cases[i].log2_slots, 8);
        script_send(&server, message, NULL, 0);
        script_expect_end(&server, client, cases[i].reason);
        close(server.fd);
        server.fd = -1;
    }
    script_accept(&server, client);
    script_be_server(&server, client, 4);
    script_close(&server);
    ndsim_memif_close(client);
}

static void a_reason_is_logged_without_what_steers_a_terminal(void **state)
{
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    uint8_t message[MEMIF_MESSAGE_BYTES];
    struct script client;

    script_init(&client);
    script_connect(&client, rig->path);
    assert_int_equal(script_wait(&client, server, message, NULL), MEMIF_HELLO);
    memset(message, 'x', sizeof(message));
    script_put(message, MEMIF_TYPE_16, MEMIF_DISCONNECT, 16);
    memcpy(message + MEMIF_DISCONNECT_REASON, "\033[31mred\n", 9);
    script_send(&client, message, NULL, 0);
    script_expect_end(&client, server, "");
    assert_non_null(rig_logged(rig, "?[31mred?xxx"));
    script_close(&client);
    ndsim_memif_close(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(clients_that_lie_are_told_why),
        TEST(messages_of_other_sizes_are_refused),
        TEST(a_secret_is_needed_where_there_is_one),
        TEST(a_second_client_is_refused_and_the_first_unharmed),
        TEST(a_client_that_comes_back_before_its_end_was_noticed_is_let_in),
        TEST(clients_that_say_nothing_keep_nobody_out),
        TEST(receive_index_jumps_break_the_link),
        TEST(transmit_index_jumps_break_the_link),
        TEST(indices_that_go_back_break_the_link),
        TEST(frames_outside_their_region_break_the_link),
        TEST(empty_buffers_outside_their_region_break_the_link),
        TEST(a_server_that_overfills_a_buffer_breaks_the_link),
        TEST(chains_without_end_break_the_link),
        TEST(chains_longer_than_a_frame_are_dropped),
        TEST(chains_of_too_many_buffers_are_dropped),
        TEST(a_chain_mark_left_in_place_means_nothing_the_next_time),
        TEST(a_region_that_is_not_sealed_is_used_and_may_shrink),
        TEST(a_link_outlives_its_peer_until_its_owner_looks),
        TEST(a_peer_that_fills_an_event_up_blocks_nobody),
        TEST(servers_that_lie_are_told_why),
        TEST(a_reason_is_logged_without_what_steers_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
