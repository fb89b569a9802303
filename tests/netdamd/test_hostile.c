/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that mean ill, or know no better: netdamd refuses or drops them, never waits, and others do not notice. */
#define _GNU_SOURCE
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define AREA (UINT64_C(64) << 10)

static struct rig rig;
static struct user victim; /* works on, whatever the others do */
static int mute;           /* connected before everything else, never says a word */

static int start(void **state)
{
    (void)state;
    rig_open(&rig);
    rig_start(&rig, NULL);
    mute = raw_connect(&rig);
    assert_true(mute >= 0);
    assert_int_equal(user_open(&victim, rig.device, AREA, 0), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    user_close(&victim);
    assert_int_equal(rig_end(&rig, SIGTERM), 0);
    rig_close(&rig);
    return 0;
}

static void assert_unharmed(void)
{
    assert_int_equal(user_work(&victim, 3), 0);
    assert_true(rig_wait_clients(victim.device, 1));
}

/* Sends bytes on a new connection, greeted or not, and expects to be dropped. */
static void assert_dropped(bool greeted, const void *bytes, size_t count)
{
    struct ndlib_broker_reply reply;
    int fd = greeted ? raw_open(&rig, 0, &reply, NULL) : raw_connect(&rig);

    assert_true(fd >= 0);
    assert_true(raw_send(fd, bytes, count));
    assert_true(raw_ends_mute(fd));
    close(fd);
    assert_unharmed();
}

static struct ndlib_broker_request request_of(unsigned type)
{
    return (struct ndlib_broker_request){
        .version = NDLIB_BROKER_VERSION, .type = (uint16_t)type, .bytes = sizeof(struct ndlib_broker_request)};
}

static void messages_of_a_wrong_size_are_not_read(void **state)
{
    static const size_t sizes[] = {0, 1, 4, 8, 79, 81, 160, 65536};
    static uint8_t bytes[65536];
    struct ndlib_broker_request request = request_of(NDLIB_BROKER_LEASE);

    (void)state;
    memcpy(bytes, &request, sizeof(request));
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        assert_dropped(true, bytes, sizes[i]);
    }
    request = request_of(NDLIB_BROKER_HELLO);
    memcpy(bytes, &request, sizeof(request));
    for (unsigned i = 0; i < COUNT(sizes); i++) {
        assert_dropped(false, bytes, sizes[i]);
    }
}

static void headers_that_lie_are_not_believed(void **state)
{
    static const uint16_t types[] = {0, 9, 10, 255, 256, 257, 0x7fff, 0x8001, 0xffff};
    static const uint32_t lengths[] = {0, 1, 79, 81, 152, UINT32_MAX};
    struct ndlib_broker_request request;

    (void)state;
    for (unsigned i = 0; i < COUNT(types); i++) {
        request = request_of(types[i]);
        assert_dropped(true, &request, sizeof(request));
        assert_dropped(false, &request, sizeof(request));
    }
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        request = request_of(NDLIB_BROKER_LEASE);
        request.bytes = lengths[i];
        assert_dropped(true, &request, sizeof(request));
    }
}

static void values_that_a_request_does_not_have_are_refused(void **state)
{
    static const struct {
        unsigned type;
        unsigned used;
    } table[] = {{NDLIB_BROKER_READ, 2}, {NDLIB_BROKER_DOORBELL, 1}, {NDLIB_BROKER_TAKE, 2},
                 {NDLIB_BROKER_GIVE, 1}, {NDLIB_BROKER_VECTOR, 1},   {NDLIB_BROKER_LEASE, 1}};

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        for (unsigned k = table[i].used; k < NDLIB_BROKER_VALUES; k += 3) {
            struct ndlib_broker_request request = request_of(table[i].type);

            request.values[k] = 1;
            assert_dropped(true, &request, sizeof(request));
        }
    }
}

static void hello_comes_first_and_once(void **state)
{
    struct ndlib_broker_request request = request_of(NDLIB_BROKER_HELLO);
    struct ndlib_broker_reply reply;
    uint64_t flags = 0x2;
    int fd;

    (void)state;
    assert_dropped(true, &request, sizeof(request));
    for (unsigned type = NDLIB_BROKER_READ; type <= NDLIB_BROKER_LEASE; type++) {
        request = request_of(type);
        assert_dropped(false, &request, sizeof(request));
    }
    /* Flags that nobody has defined: refused, and hello may be said again. */
    fd = raw_connect(&rig);
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_HELLO, &flags, 1, &reply), -EINVAL);
    flags = NDLIB_BROKER_OBSERVE;
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_HELLO, &flags, 1, &reply), 0);
    assert_int_equal(reply.descriptors, 0);
    close(fd);
    assert_unharmed();
}

static void another_version_is_told_ours(void **state)
{
    static const uint16_t versions[] = {0, NDLIB_BROKER_VERSION + 1, 0xffff};

    (void)state;
    for (unsigned i = 0; i < COUNT(versions); i++) {
        struct ndlib_broker_request request = request_of(NDLIB_BROKER_HELLO);
        struct ndlib_broker_reply reply;
        int fd = raw_connect(&rig);

        request.version = versions[i];
        assert_true(raw_send(fd, &request, sizeof(request)));
        assert_true(raw_reply(fd, &reply, NULL));
        assert_int_equal(reply.version, NDLIB_BROKER_VERSION);
        assert_int_equal(reply.error, -EPROTONOSUPPORT);
        assert_true(raw_ends(fd));
        close(fd);
    }
    assert_unharmed();
}

static void descriptors_are_not_taken(void **state)
{
    struct ndlib_broker_request request = request_of(NDLIB_BROKER_LEASE);
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    struct ndlib_broker_reply reply;
    int fd = raw_open(&rig, 0, &reply, NULL);
    int ends[2];
    char byte;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &ends[1], sizeof(int));
    assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(request));
    assert_true(raw_ends(fd));
    close(fd);
    /* Nobody holds the pipe's other end: end of file, not a wait. */
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    assert_unharmed();
}

static void what_others_own_does_not_exist(void **state)
{
    const uint64_t queue[] = {0};
    const uint64_t region[] = {netdam_region_index(victim.region)};
    uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};
    struct ndlib_broker_reply reply;
    uint64_t values[2];
    int fd = raw_open(&rig, 0, &reply, NULL);

    (void)state;
    /* The victim was the first: its queue pair and peer are number 0. */
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_QUEUE_QUERY, queue, 1, &reply), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_QUEUE_DESTROY, queue, 1, &reply), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_PEER_CLOSE, queue, 1, &reply), NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_REGION_DESTROY, region, 1, &reply), NETDAM_ADMIN_STATUS_NO_SUCH);
    arguments[0] = UINT64_MAX;
    for (unsigned command = 0; command < 300; command++) {
        if (command != NETDAM_ADMIN_OPCODE_QUERY) {
            assert_int_not_equal(raw_admin(fd, command, arguments, 8, &reply), NETDAM_ADMIN_STATUS_OK);
        }
    }
    assert_int_equal(raw_admin(fd, (UINT64_C(1) << 32) + NETDAM_ADMIN_PEER_OPEN, arguments, 8, &reply),
                     NETDAM_ADMIN_STATUS_BAD_COMMAND);

    /* A region over the victim's memory, rings in it, a region whose immediates go to its queue pair. */
    memset(arguments, 0, sizeof(arguments));
    arguments[0] = victim.offset;
    arguments[1] = 64;
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_REGION_CREATE, arguments, 8, &reply), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    values[0] = UINT64_C(128) << 10;
    values[1] = 0;
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_TAKE, values, 2, &reply), 0);
    values[0] = reply.values[0];
    arguments[0] = values[0];
    arguments[5] = 1;
    assert_int_equal(raw_admin(fd, NETDAM_ADMIN_REGION_CREATE, arguments, 8, &reply), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    for (unsigned ring = 0; ring < 4; ring++) {
        const uint64_t own = values[0];
        const uint64_t rings[NETDAM_ADMIN_ARGS] = {
            ring == 0 ? victim.offset : own,         4,
            ring == 1 ? victim.offset : own + 8192,  4,
            ring == 2 ? victim.offset : own + 16384, ring == 3 ? 64 : 4,
            (uint64_t)NETDAM_VECTOR_NONE << 16,      0,
        };

        assert_int_equal(raw_admin(fd, NETDAM_ADMIN_QUEUE_CREATE, rings, 8, &reply), NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    }
    /* A vector that it was not given; then one that it was; vectors that nobody has. */
    for (unsigned round = 0; round < 2; round++) {
        const uint64_t rings[NETDAM_ADMIN_ARGS] = {values[0], 4, values[0] + 8192, 4, 0, 0, UINT64_C(5) << 16, 0};
        const uint64_t vector = 5;

        assert_int_equal(raw_admin(fd, NETDAM_ADMIN_QUEUE_CREATE, rings, 8, &reply),
                         round == 0 ? NETDAM_ADMIN_STATUS_BAD_ARGUMENT : NETDAM_ADMIN_STATUS_OK);
        assert_int_equal(raw_ask(fd, NDLIB_BROKER_VECTOR, &vector, 1, &reply), 0);
        assert_int_equal(reply.descriptors, 1);
    }
    for (unsigned bit = 6; bit < 64; bit++) {
        const uint64_t vector = UINT64_C(1) << bit;

        assert_int_equal(raw_ask(fd, NDLIB_BROKER_VECTOR, &vector, 1, &reply), -EINVAL);
    }
    values[0] = victim.offset;
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_GIVE, values, 1, &reply), -EINVAL);
    /* Rings nothing. */
    for (unsigned index = 0; index < 1000; index++) {
        const uint64_t pair = index < 100 ? index : UINT64_MAX / index;

        assert_true(raw_request(fd, NDLIB_BROKER_DOORBELL, &pair, 1));
    }
    assert_int_equal(user_work(&victim, 3), 0);
    close(fd);
    assert_unharmed();
}

static void only_open_registers_are_read(void **state)
{
    static const struct {
        uint64_t offset;
        uint64_t bytes;
    } table[] = {{NETDAM_REG_ADMIN_STATUS, 4},
                 {NETDAM_REG_CONTROL, 4},
                 {NETDAM_PAGE_DOORBELLS, 4},
                 {0x2fff, 4},
                 {NETDAM_REG_ID, 0},
                 {NETDAM_REG_ID, 1},
                 {NETDAM_REG_ID, 3},
                 {NETDAM_REG_ID, 16},
                 {0x3000, 4},
                 {UINT64_MAX, 8},
                 {UINT64_C(1) << 32, 4},
                 {0x6, 4}};
    struct ndlib_broker_reply reply;
    uint64_t values[2] = {NETDAM_REG_ID, 4};
    int fd = raw_open(&rig, NDLIB_BROKER_OBSERVE, &reply, NULL);

    (void)state;
    assert_int_equal(raw_ask(fd, NDLIB_BROKER_READ, values, 2, &reply), 0);
    assert_int_equal(reply.values[0], NETDAM_ID);
    for (unsigned i = 0; i < COUNT(table); i++) {
        values[0] = table[i].offset;
        values[1] = table[i].bytes;
        assert_int_equal(raw_ask(fd, NDLIB_BROKER_READ, values, 2, &reply), 0);
        assert_true(reply.values[0] == UINT64_MAX);
    }
    /* An observer owns nothing. */
    memset(values, 0, sizeof(values));
    for (unsigned type = NDLIB_BROKER_ADMIN; type < NDLIB_BROKER_LEASE; type++) {
        if (type != NDLIB_BROKER_DOORBELL) {
            assert_int_equal(raw_ask(fd, type, values, 1, &reply), -EPERM);
        }
    }
    close(fd);
    assert_unharmed();
}

static void the_memory_cannot_be_cut_away(void **state)
{
    struct ndlib_broker_reply reply;
    int fds[NDLIB_BROKER_DESCRIPTORS] = {-1, -1};
    int fd = raw_open(&rig, 0, &reply, fds);

    (void)state;
    assert_int_equal(reply.descriptors, 1);
    assert_int_equal(ftruncate(fds[0], 4096), -1);
    assert_int_equal(errno, EPERM);
    close(fds[0]);
    close(fd);
    assert_unharmed();
}

static void who_never_reads_is_dropped(void **state)
{
    const uint64_t after = 0;
    struct ndlib_broker_reply reply;
    int fd = raw_open(&rig, 0, &reply, NULL);

    (void)state;
    /* Ends when the broker hangs up; while it does not, it reads on, and so this ends. */
    while (raw_request(fd, NDLIB_BROKER_LEASE, &after, 1)) {
    }
    assert_true(rig_says(&rig, "does not read its answers"));
    close(fd);
    assert_unharmed();
}

/* Sends doorbells, which nobody answers, or requests, whose answers it reads, as fast as it can. */
static int flood(void *argument)
{
    const bool doorbells = *(bool *)argument;
    struct ndlib_broker_reply reply;
    const uint64_t flags = 0;
    const uint64_t zero[2] = {0};
    int fd = raw_connect(&rig);

    if (fd < 0 || raw_ask(fd, NDLIB_BROKER_HELLO, &flags, 1, &reply) != 0) {
        return 10;
    }
    for (;;) {
        if (doorbells ? !raw_request(fd, NDLIB_BROKER_DOORBELL, zero, 1)
                      : raw_ask(fd, NDLIB_BROKER_READ, zero, 2, &reply) != 0) {
            return 11;
        }
    }
}

static void floods_do_not_keep_others_out(void **state)
{
    bool doorbells[] = {true, false, true};
    pid_t pids[COUNT(doorbells)];

    (void)state;
    for (unsigned i = 0; i < COUNT(doorbells); i++) {
        pids[i] = rig_fork(flood, &doorbells[i]);
    }
    assert_true(rig_wait_clients(victim.device, 1 + COUNT(doorbells)));
    for (unsigned round = 0; round < 5; round++) {
        struct user other;

        assert_int_equal(user_open(&other, rig.device, AREA, 0), 0);
        assert_int_equal(user_work(&other, 3), 0);
        assert_int_equal(user_work(&victim, 3), 0);
        user_close(&other);
    }
    for (unsigned i = 0; i < COUNT(doorbells); i++) {
        kill(pids[i], SIGKILL);
        assert_int_equal(rig_wait(pids[i]), -SIGKILL);
    }
    assert_unharmed();
}

/* Owns something, asks for more, and is gone before the answer. */
static int die_in_the_middle(void *argument)
{
    const unsigned round = *(unsigned *)argument;
    const uint64_t take[] = {4096, 0};
    uint64_t create[1 + NETDAM_ADMIN_ARGS] = {NETDAM_ADMIN_REGION_CREATE, 0, 4096};
    struct ndlib_broker_reply reply;
    const uint64_t flags = 0;
    int fd = raw_connect(&rig);

    if (fd < 0 || raw_ask(fd, NDLIB_BROKER_HELLO, &flags, 1, &reply) != 0 ||
        raw_ask(fd, NDLIB_BROKER_TAKE, take, 2, &reply) != 0) {
        return 10;
    }
    create[1] = reply.values[0];
    for (unsigned i = 0; i <= round % 5; i++) {
        if (!raw_request(fd, NDLIB_BROKER_ADMIN, create, 1 + NETDAM_ADMIN_ARGS)) {
            return 11;
        }
    }
    raise(SIGKILL);
    return 12;
}

static void clients_that_die_in_the_middle_leave_nothing(void **state)
{
    struct netdam_region *regions[63];
    uint64_t offset;

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        assert_int_equal(rig_wait(rig_fork(die_in_the_middle, &round)), -SIGKILL);
    }
    assert_unharmed();
    /* All regions but the victim's own are free. */
    assert_int_equal(netdam_alloc(victim.device, 4096, 0, &offset), 0);
    for (unsigned i = 0; i < COUNT(regions); i++) {
        assert_int_equal(netdam_region_create(victim.device, offset, 4096, 0, 0, &regions[i]), 0);
    }
    for (unsigned i = 0; i < COUNT(regions); i++) {
        assert_int_equal(netdam_region_destroy(regions[i]), 0);
    }
    assert_int_equal(netdam_free(victim.device, offset), 0);
}

static void noise_is_survived(void **state)
{
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        struct ndlib_broker_reply reply;
        int fd = raw_open(&rig, 0, &reply, NULL);
        bool open = true;

        for (unsigned i = 0; i < 20 && open; i++) {
            struct ndlib_broker_request request;
            unsigned used[] = {9, 9, 2, 9, 1, 2, 1, 1, 1};

            /* Mostly well-formed, so that it gets past the first checks; small numbers, so that some hit. */
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            request = request_of(2 + seed % 7);
            for (unsigned k = 0; k < used[request.type]; k++) {
                uint64_t bits = seed >> (4 * k);

                request.values[k] = (bits & 3) == 0 ? bits : (bits & 3) == 1 ? bits & 15 : (bits & 0xffff) << 6;
            }
            if (request.type == NDLIB_BROKER_READ && seed % 50 == 0) {
                request.bytes ^= (uint32_t)(seed >> 32);
            }
            open = raw_send(fd, &request, sizeof(request));
            if (open && request.type != NDLIB_BROKER_DOORBELL) {
                open = raw_reply(fd, &reply, NULL);
            }
        }
        close(fd);
    }
    assert_unharmed();
}

static void who_never_says_hello_is_dropped(void **state)
{
    (void)state;
    assert_true(raw_ends(mute));
    close(mute);
    assert_true(rig_said(&rig, "did not say hello in time"));
    assert_unharmed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_a_wrong_size_are_not_read),
        cmocka_unit_test(headers_that_lie_are_not_believed),
        cmocka_unit_test(values_that_a_request_does_not_have_are_refused),
        cmocka_unit_test(hello_comes_first_and_once),
        cmocka_unit_test(another_version_is_told_ours),
        cmocka_unit_test(descriptors_are_not_taken),
        cmocka_unit_test(what_others_own_does_not_exist),
        cmocka_unit_test(only_open_registers_are_read),
        cmocka_unit_test(the_memory_cannot_be_cut_away),
        cmocka_unit_test(who_never_reads_is_dropped),
        cmocka_unit_test(floods_do_not_keep_others_out),
        cmocka_unit_test(clients_that_die_in_the_middle_leave_nothing),
        cmocka_unit_test(noise_is_survived),
        cmocka_unit_test(who_never_says_hello_is_dropped),
    };

    return cmocka_run_group_tests_name("netdamd, hostile clients", tests, start, stop);
}
