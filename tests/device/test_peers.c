/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memif peers of a card that do everything wrong on purpose, one after the other, while the card sends and its thread
 * looks at what they change. QEMU has to live, and the peer that comes afterwards is served.
 *   HOSTILE_SECONDS  how long (default 6)
 *   HOSTILE_SEED     repeats the peers' choices (the timing is never the same)
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"
#include "image.h"
#include "rig.h"

#define FRAME_MAX 9014
#define PATIENCE  60000

static struct machine machine;
static struct card card;
static char *path;
static uint64_t random_state;
static unsigned late; /* peers that the card gave up because one of the two came too late */

static uint64_t next_random(void)
{
    uint64_t z = (random_state += 0x9e3779b97f4a7c15u);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static unsigned below(unsigned limit)
{
    return (unsigned)(next_random() % limit);
}

static int setup(void **state)
{
    (void)state;
    machine_prepare(&machine);
    path = machine_text("%s/link", machine.directory);
    machine_start(&machine, (const char *const[]){
                                "-object", "memory-backend-ram,id=m,size=64K", "-device",
                                machine_text("netdam,id=nd,memdev=m,memif=%s,role=server,memif-id=7,ip=10.0.0.1/24,"
                                             "mtu=9000,firmware=" NETDAM_TEST_IMAGES "/image.so",
                                             path),
                                NULL});
    card_open(&card, &machine, 0);
    card_write(&card, IMAGE_FRAME_BYTES, 8, FRAME_MAX);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    machine_stop(&machine);
    free(path);
    return 0;
}

static uint64_t statistic(const char *name)
{
    return machine_property(&machine, "/machine/peripheral/nd", name);
}

/* What a peer can do to a link. */

struct victim {
    struct script peer;
    unsigned slots;
    uint16_t head[2]; /* as far as it is a good peer's */
};

/* Mostly good, so that much is sent before the link breaks. */
static void describe_something(struct victim *victim, unsigned ring, unsigned slot)
{
    static const uint32_t lengths[] = {0, 1, 59, 60, FRAME_MAX, FRAME_MAX + 1, UINT32_MAX};
    bool bad = below(1000) == 0;
    unsigned region = bad && below(2) == 0 ? below(65536) : 0;
    uint32_t length = bad ? lengths[below(7)] : 1 + below(SCRIPT_BUFFER_BYTES);
    uint32_t offset = bad && below(2) == 0 ? (uint32_t)next_random()
                                           : below((unsigned)victim->peer.memory_bytes - SCRIPT_BUFFER_BYTES);

    /* Buffers over the rings are written too: not often, for the link does not last then. */
    if (ring == SCRIPT_M2S && !bad) {
        offset = (uint32_t)victim->peer.memory_bytes - SCRIPT_BUFFER_BYTES * (1 + below(2 * victim->slots));
    }
    script_describe(victim->peer.ring[ring], slot & (victim->slots - 1), below(8) == 0 ? MEMIF_CHAINED : 0, region,
                    length, offset);
}

static void send_something(struct victim *victim, unsigned ring)
{
    uint16_t taken = (uint16_t)(victim->head[ring] - atomic_load(&victim->peer.ring[ring]->tail));
    unsigned room = taken < victim->slots ? victim->slots - taken : 0;
    unsigned count = below((room < 300 ? room : 300) + 1);

    while (count-- != 0) {
        describe_something(victim, ring, victim->head[ring]++);
    }
    atomic_store(&victim->peer.ring[ring]->head, victim->head[ring]);
}

static void scribble(struct victim *victim)
{
    unsigned words = (unsigned)(victim->peer.memory_bytes / 8);
    unsigned rings = (unsigned)((victim->peer.memory_bytes - 2 * victim->slots * SCRIPT_BUFFER_BYTES) / 8);
    unsigned at = below(2) == 0 ? below(rings) : below(words);
    uint64_t word = next_random() >> below(64);

    memcpy(victim->peer.memory + (size_t)at * 8, &word, sizeof(word));
}

static void fill_or_empty_event(struct victim *victim)
{
    int event = victim->peer.event_fd[below(2)];
    uint64_t count = below(2) == 0 ? 1 : UINT64_MAX - 1;

    assert_int_equal(fcntl(event, F_SETFL, O_NONBLOCK), 0);
    if (below(2) == 0) {
        (void)!write(event, &count, sizeof(count));
    } else {
        (void)!read(event, &count, sizeof(count));
    }
    assert_int_equal(fcntl(event, F_SETFL, 0), 0);
}

static void say_something(struct victim *victim)
{
    uint8_t message[MEMIF_MESSAGE_BYTES];
    int fds[2] = {victim->peer.memory_fd, victim->peer.event_fd[0]};
    unsigned i;

    for (i = 0; i < sizeof(message); i++) {
        message[i] = (uint8_t)next_random();
    }
    script_put(message, MEMIF_TYPE_16, below(10), 16);
    script_send(&victim->peer, message, fds, below(3));
}

static void misbehave(struct victim *victim)
{
    struct memif_ring *ring = victim->peer.ring[below(2)];

    switch (below(200)) {
    case 0:
        atomic_store(&ring->head, (uint16_t)next_random());
        break;
    case 1:
        atomic_store(&ring->tail, (uint16_t)next_random());
        break;
    case 2:
        ring->cookie = 0;
        break;
    case 3:
        say_something(victim);
        break;
    case 4:
        assert_int_equal(fallocate(victim->peer.memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                   (off_t)victim->peer.memory_bytes),
                         0);
        break;
    case 5:
    case 6:
    case 7:
        scribble(victim);
        break;
    case 8:
    case 9:
        atomic_store(&ring->flags, (uint16_t)next_random());
        break;
    case 10:
    case 11:
        card_write(&card, IMAGE_SEND, 8, below(1000));
        break;
    case 12:
    case 13:
    case 14:
    case 15:
        fill_or_empty_event(victim);
        break;
    default:
        send_something(victim, below(2));
        break;
    }
}

/* Some leave in the middle of the set-up, the others whenever they like: what they had begun stays as it is. */
static bool leaves_early(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    (void)fd_count;
    return script_type(message) != MEMIF_CONNECT;
}

static void be_hostile(void)
{
    struct script_client client = {.log2_slots = 1 + below(10), .tamper = below(8) == 0 ? leaves_early : NULL};
    struct victim victim = {.slots = 1u << client.log2_slots};
    unsigned steps = below(200);

    script_init(&victim.peer);
    script_connect(&victim.peer, path);
    /* On a machine so busy that the card's thread does not run for seconds the set-up takes too long. */
    if (!script_be_client(&victim.peer, NULL, &client)) {
        assert_string_equal(victim.peer.reason, "the handshake takes too long");
        steps = 0;
        late++;
    }
    while (client.tamper == NULL && steps-- != 0) {
        misbehave(&victim);
    }
    script_close(&victim.peer);
}

static void check_frame(void *opaque, const uint8_t *frame, size_t bytes)
{
    unsigned *frames = opaque;

    (void)frame;
    *frames += bytes == FRAME_MAX;
}

static void hostile_peers_are_survived(void **state)
{
    const char *seconds = getenv("HOSTILE_SECONDS");
    const char *seed = getenv("HOSTILE_SEED");
    time_t end = time(NULL) + (seconds != NULL ? atoi(seconds) : 6);
    struct ndsim_memif_config config = {.path = path, .role = NDSIM_MEMIF_CLIENT, .id = 7, .frame_bytes = FRAME_MAX};
    struct ndsim_memif *good = NULL;
    unsigned rounds = 0;
    unsigned frames = 0;
    uint64_t received;
    unsigned i;

    (void)state;
    random_state = seed != NULL ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("# HOSTILE_SEED=%llu\n", (unsigned long long)random_state);
    while (time(NULL) < end || statistic("memif-protocol-errors") == 0) {
        be_hostile();
        rounds++;
    }
    printf("# %u peers, %llu frames from them\n", rounds, (unsigned long long)statistic("memif-receive-frames"));
    assert_true(statistic("memif-connects") + late >= rounds / 2);

    assert_int_equal(ndsim_memif_open(&config, &good), 0);
    received = card_read(&card, IMAGE_RECEIVED, 8);
    for (i = 0; card_read(&card, IMAGE_RECEIVED, 8) == received || frames == 0; i++) {
        struct pollfd poller = {.fd = ndsim_memif_fd(good), .events = POLLIN};

        assert_true(i < PATIENCE);
        ndsim_memif_process(good);
        if (ndsim_memif_link_up(good)) {
            rig_send(good, 1, 100);
            ndsim_memif_flush(good);
            card_write(&card, IMAGE_SEND, 8, 1);
        }
        (void)ndsim_memif_receive(good, 64, check_frame, &frames);
        poll(&poller, 1, 1);
    }
    ndsim_memif_close(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hostile_peers_are_survived, setup, teardown),
    };

    alarm(600);
    return cmocka_run_group_tests_name("device: peers", tests, NULL, NULL);
}
