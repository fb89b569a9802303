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
#include <sys/stat.h>
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

/* Rings on top of each other, and buffers on top of them: whoever made them so reads and writes what it likes. */

static bool both_rings_in_one_place(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    if (script_type(message) == MEMIF_ADD_RING) {
        script_put(message, MEMIF_RING_OFFSET_32, 0, 32);
    }
    return true;
}

static void rings_and_buffers_that_overlap_harm_only_the_link(void **state)
{
    static const struct script_client overlapping[] = {{.tamper = both_rings_in_one_place}, {.log2_slots = 1}};
    unsigned ends = 0;
    unsigned round;

    for (round = 0; round < 80; round++) {
        struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);
        const struct script_client *client = &overlapping[round % 2];
        uint16_t mask = client->log2_slots != 0 ? 1 : 15;
        struct bench bench;
        size_t last = 0;
        unsigned i;

        config.shared_frames = round / 2 % 2 != 0;
        bench.rig = *state;
        bench.memif = rig_open(bench.rig, &config);
        script_init(&bench.peer);
        script_connect(&bench.peer, bench.rig->path);
        assert_true(script_be_client(&bench.peer, bench.memif, client));
        for (i = 0; i < 64 && ndsim_memif_link_up(bench.memif); i++) {
            struct memif_ring *ring = bench.peer.ring[i % 2];

            /* Somewhere in the rings themselves, and a little further with each round. */
            script_describe(ring, i & mask, i % 7 == 0 ? MEMIF_CHAINED : 0, 0, 64 + i, (round * 20 + i * 12) % 800);
            atomic_fetch_add(&ring->head, 1);
            (void)ndsim_memif_receive(bench.memif, 4, count, &last);
            if (ndsim_memif_transmit_begin(bench.memif, 60) != NULL) {
                ndsim_memif_transmit_end(bench.memif, 0);
                rig_send(bench.memif, round + i, 60);
                ndsim_memif_flush(bench.memif);
            }
        }
        ends += !ndsim_memif_link_up(bench.memif);
        close_bench(&bench);
    }
    assert_true(ends > 0);
}

/* Memory. */

#define LOOSE_BYTES 65536

/* As DPDK's endpoint with zero-copy: rings in sealed memory, buffers in a region that is not. */
struct loose {
    struct bench bench;
    uint8_t *memory;
    int fd;
};

static void open_loose(struct loose *loose, void **state, unsigned flags)
{
    struct ndsim_memif_config config = rig_config(*state, NDSIM_MEMIF_SERVER);

    config.shared_frames = true;
    loose->bench.rig = *state;
    loose->bench.memif = rig_open(loose->bench.rig, &config);
    loose->fd = memfd_create("unsealed", MFD_CLOEXEC | flags);
    assert_true(loose->fd >= 0);
    assert_int_equal(ftruncate(loose->fd, LOOSE_BYTES), 0);
    loose->memory = mmap(NULL, LOOSE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, loose->fd, 0);
    assert_true(loose->memory != MAP_FAILED);
    script_init(&loose->bench.peer);
    script_connect(&loose->bench.peer, loose->bench.rig->path);
    assert_true(
        script_be_client(&loose->bench.peer, loose->bench.memif,
                         &(struct script_client){.more_regions = 1, .more_fd = loose->fd, .more_bytes = LOOSE_BYTES}));
}

static void close_loose(struct loose *loose)
{
    munmap(loose->memory, LOOSE_BYTES);
    close(loose->fd);
    close_bench(&loose->bench);
}

/* Sends a frame of 100 bytes into the buffer in the unsealed region. */
static void send_loose(struct loose *loose, uint16_t number)
{
    struct memif_ring *ring = loose->bench.peer.ring[SCRIPT_M2S];

    script_describe(ring, number, 0, 1, 2048, 8192);
    atomic_store(&ring->head, (uint16_t)(number + 1));
    rig_send(loose->bench.memif, 1, 100);
    ndsim_memif_flush(loose->bench.memif);
}

static void a_region_that_is_not_sealed_is_used_and_may_shrink(void **state)
{
    struct loose loose;
    struct bench *bench = &loose.bench;

    open_loose(&loose, state, 0);
    send_loose(&loose, 0);
    assert_int_equal(atomic_load(&bench->peer.ring[SCRIPT_M2S]->tail), 1);
    rig_check(loose.memory + 8192, 100, 1, 100);
    memcpy(loose.memory + 32768, loose.memory + 8192, 100);
    script_describe(bench->peer.ring[SCRIPT_S2M], 0, 0, 1, 100, 32768);
    atomic_store(&bench->peer.ring[SCRIPT_S2M]->head, 1);
    assert_int_equal(ndsim_memif_receive(bench->memif, 100, keep, NULL), 1);

    /* And now it shrinks under a frame: no fault, but an end. */
    assert_int_equal(ftruncate(loose.fd, 4096), 0);
    script_describe(bench->peer.ring[SCRIPT_S2M], 1, 0, 1, 100, 32768);
    atomic_store(&bench->peer.ring[SCRIPT_S2M]->head, 2);
    assert_int_equal(ndsim_memif_receive(bench->memif, 100, ignore, NULL), 1);
    expect_broken(bench, "a frame cannot be read");
    close_loose(&loose);
}

static void a_region_that_cannot_be_written_any_more_breaks_the_link(void **state)
{
    struct loose loose;

    open_loose(&loose, state, MFD_ALLOW_SEALING);
    send_loose(&loose, 0);
    assert_int_equal(ftruncate(loose.fd, 4096), 0);
    assert_int_equal(fcntl(loose.fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    send_loose(&loose, 1);
    expect_broken(&loose.bench, "an empty buffer cannot be written");
    close_loose(&loose);
}

static void flags_of_the_peers_descriptor_do_not_lead_frames_elsewhere(void **state)
{
    struct loose loose;
    struct stat status;

    open_loose(&loose, state, 0);
    assert_int_equal(fcntl(loose.fd, F_SETFL, O_APPEND), 0);
    send_loose(&loose, 0);
    rig_check(loose.memory + 8192, 100, 1, 100);
    assert_int_equal(fstat(loose.fd, &status), 0);
    assert_int_equal(status.st_size, LOOSE_BYTES);
    assert_true(ndsim_memif_link_up(loose.bench.memif));
    close_loose(&loose);
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
        TEST(rings_and_buffers_that_overlap_harm_only_the_link),
        TEST(a_region_that_is_not_sealed_is_used_and_may_shrink),
        TEST(a_region_that_cannot_be_written_any_more_breaks_the_link),
        TEST(flags_of_the_peers_descriptor_do_not_lead_frames_elsewhere),
        TEST(a_link_outlives_its_peer_until_its_owner_looks),
        TEST(a_peer_that_fills_an_event_up_blocks_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
