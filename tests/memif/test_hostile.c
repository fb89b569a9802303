/* SPDX-License-Identifier: BSD-3-Clause */
/* Memif peers that lie while the link is up: in the rings, about memory and events; and peers that just die. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
