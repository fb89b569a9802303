/* SPDX-License-Identifier: BSD-3-Clause */
/* Memif peers that lie before the link is up: each is told why and given up. */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Clients whose handshake differs in one place from a good one. */

/* Changes a field of the messages of one type. */
static bool change(uint8_t *message, unsigned type, unsigned offset, uint64_t value, unsigned bits)
{
    if (script_type(message) == type) {
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
    return script_type(message) != MEMIF_ADD_RING || script_get(message, MEMIF_RING_FLAGS_16, 16) != 0;
}

static bool region_without_descriptor(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    *fd_count = script_type(message) == MEMIF_ADD_REGION ? 0 : *fd_count;
    return true;
}

static bool ring_without_descriptor(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fds;
    *fd_count = script_type(message) == MEMIF_ADD_RING ? 0 : *fd_count;
    return true;
}

static bool many_descriptors(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (script_type(message) == MEMIF_ADD_REGION) {
        for (; *fd_count < 16; (*fd_count)++) {
            fds[*fd_count] = fds[0];
        }
    }
    return true;
}

static bool two_descriptors(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (script_type(message) == MEMIF_ADD_RING) {
        fds[1] = fds[0];
        *fd_count = 2;
    }
    return true;
}

static bool descriptor_with_init(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (script_type(message) == MEMIF_INIT) {
        fds[0] = STDERR_FILENO;
        *fd_count = 1;
    }
    return true;
}

static bool ring_event_is_a_file(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (script_type(message) == MEMIF_ADD_RING) {
        fds[0] = STDERR_FILENO;
    }
    return true;
}

static int spare[2] = {-1, -1}; /* of a pipe */

static bool ring_event_is_a_pipe(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (script_type(message) == MEMIF_ADD_RING) {
        fds[0] = spare[1];
    }
    return true;
}

static bool region_is_a_pipe(uint8_t *message, int *fds, unsigned *fd_count)
{
    (void)fd_count;
    if (script_type(message) == MEMIF_ADD_REGION) {
        fds[0] = spare[0];
    }
    return true;
}

static bool region_is_an_eventfd(uint8_t *message, int *fds, unsigned *fd_count)
{
    static int event = -1;

    (void)fd_count;
    if (script_type(message) == MEMIF_ADD_REGION) {
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
            before = rig_descriptors();
        }
    }
    assert_int_equal(rig_descriptors(), before); /* surplus ones are closed */
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

/* Descriptors of other kinds. */

static struct {
    unsigned type; /* of the messages that they come with */
    int fd;
    uint64_t bytes; /* of a region; 0: as many as there would be */
} substitute;

static bool with_substitute(uint8_t *message, int *fds, unsigned *fd_count)
{
    if (script_type(message) == substitute.type) {
        fds[0] = substitute.fd;
        *fd_count = 1;
        if (substitute.bytes != 0) {
            script_put(message, MEMIF_REGION_BYTES_64, substitute.bytes, 64);
        }
    }
    return true;
}

static int make_timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

static int make_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int make_epoll(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int make_memory_of_that_name(void)
{
    return memfd_create("anon_inode:[eventfd]", MFD_CLOEXEC);
}

static int make_memory(off_t bytes, int seals)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static int make_huge_memory(void)
{
    return make_memory(INT64_MAX, F_SEAL_SHRINK);
}

static int make_memory_that_nobody_writes(void)
{
    return make_memory(1 << 20, F_SEAL_SHRINK | F_SEAL_WRITE);
}

/* Opens what `fd` is for reading only, and closes it. */
static int for_reading(int fd)
{
    char path[64];
    int other;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    other = open(path, O_RDONLY | O_CLOEXEC);
    close(fd);
    return other;
}

static int make_memory_for_reading(void)
{
    return for_reading(make_memory(1 << 20, F_SEAL_SHRINK));
}

static int make_unsealed_memory_for_reading(void)
{
    return for_reading(make_memory(1 << 20, F_SEAL_GROW));
}

/* On a file system in memory, where nothing can be sealed. */
static int make_file_in_memory(void)
{
    char path[] = "/dev/shm/netdam-memif-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    return fd;
}

static void descriptors_of_other_kinds_are_refused(void **state)
{
    static const struct {
        unsigned type;
        int (*make)(void);
        uint64_t bytes;
        const char *reason;
    } cases[] = {
        {MEMIF_ADD_RING, make_timer, 0, "not an eventfd"},
        {MEMIF_ADD_RING, make_socket, 0, "not an eventfd"},
        {MEMIF_ADD_RING, make_epoll, 0, "not an eventfd"},
        {MEMIF_ADD_RING, make_memory_of_that_name, 0, "not an eventfd"},
        {MEMIF_ADD_REGION, make_timer, 0, "not memory of memfd_create"},
        {MEMIF_ADD_REGION, make_socket, 0, "not memory of memfd_create"},
        {MEMIF_ADD_REGION, make_epoll, 0, "not memory of memfd_create"},
        {MEMIF_ADD_REGION, make_huge_memory, INT64_MAX, "too large"},
        {MEMIF_ADD_REGION, make_huge_memory, UINT64_C(1) << 63, "smaller than announced"},
        {MEMIF_ADD_REGION, make_huge_memory, 0, "no cookie"}, /* of what is announced everything is there */
        {MEMIF_ADD_REGION, make_memory_that_nobody_writes, 0, "cannot be mapped"},
        {MEMIF_ADD_REGION, make_memory_for_reading, 0, "cannot be mapped"},
        {MEMIF_ADD_REGION, make_unsealed_memory_for_reading, 0, "not sealed against shrinking"},
        {MEMIF_ADD_REGION, make_file_in_memory, 0, "not sealed against shrinking"},
    };
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    unsigned before = rig_descriptors();
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script client;

        substitute.type = cases[i].type;
        substitute.bytes = cases[i].bytes;
        substitute.fd = cases[i].make();
        assert_true(substitute.fd >= 0);
        script_init(&client);
        script_connect(&client, rig->path);
        if (script_be_client(&client, server, &(struct script_client){.tamper = with_substitute})) {
            fail_msg("case %u, \"%s\", was let in", i, cases[i].reason);
        }
        script_expect_end(&client, server, cases[i].reason);
        script_close(&client);
        close(substitute.fd);
    }
    assert_int_equal(rig_descriptors(), before);
    assert_int_equal(rig_statistics(server).refusals, i);
    ndsim_memif_close(server);
}

static void regions_are_limited_in_number_and_together(void **state)
{
    static const struct {
        unsigned more;
        uint64_t bytes;
        const char *reason; /* NULL: let in */
    } cases[] = {
        {15, 4096, NULL}, {16, 4096, "index is not the next"}, {9, 100 << 20, NULL}, {11, 100 << 20, "too large"}};
    struct rig *rig = *state;
    struct ndsim_memif_config config = rig_config(rig, NDSIM_MEMIF_SERVER);
    struct ndsim_memif *server = rig_open(rig, &config);
    int fd = make_memory(100 << 20, F_SEAL_SHRINK);
    unsigned i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script_client wanted = {.more_regions = cases[i].more, .more_fd = fd, .more_bytes = cases[i].bytes};
        struct script client;

        script_init(&client);
        script_connect(&client, rig->path);
        assert_int_equal(script_be_client(&client, server, &wanted), cases[i].reason == NULL);
        if (cases[i].reason != NULL) {
            script_expect_end(&client, server, cases[i].reason);
        }
        script_close(&client);
        rig_until_link(server, NULL, false);
    }
    close(fd);
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
    } cases[] = {{NULL, false}, {"swordfis", false}, {"swordfish2", false}, {"Swordfish", false}, {"swordfish", true}};
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
        TEST(descriptors_of_other_kinds_are_refused),
        TEST(regions_are_limited_in_number_and_together),
        TEST(messages_of_other_sizes_are_refused),
        TEST(a_secret_is_needed_where_there_is_one),
        TEST(servers_that_lie_are_told_why),
        TEST(a_reason_is_logged_without_what_steers_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
