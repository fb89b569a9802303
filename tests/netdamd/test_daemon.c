/* SPDX-License-Identifier: BSD-3-Clause */
/* netdamd as a program: its socket, its options, its end, and what its end means to clients. */
#define _GNU_SOURCE
#include "rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define AREA      (UINT64_C(64) << 10)
#define SOFT_NAME "udp:127.0.0.1:0,memory=4M"

static bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

/* Runs a netdamd that is expected to end by itself. */
static int run_at(const char *path, char *text, size_t bytes)
{
    const char *const arguments[] = {"netdamd", "-d", SOFT_NAME, "-s", path, NULL};

    return rig_run("netdamd", arguments, text, bytes);
}

static unsigned lines(const char *text)
{
    unsigned count = 0;

    for (; *text; text++) {
        count += *text == '\n';
    }
    return count;
}

static void a_second_one_at_the_same_socket_is_refused(void **state)
{
    char text[4096];
    struct user user;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    rig_start(&rig, NULL);
    assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(run_at(rig.socket, text, sizeof(text)), 1);
        assert_non_null(strstr(text, "another broker listens there"));
        assert_int_equal(lines(text), 1);
        assert_true(exists(rig.socket));
    }
    assert_int_equal(user_work(&user, 3), 0);
    user_close(&user);
    assert_int_equal(rig_end(&rig, SIGTERM), 0);
    assert_false(exists(rig.socket));
    rig_close(&rig);
}

static void what_the_path_must_not_be(void **state)
{
    char text[4096];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct rig rig;
    int fd;

    (void)state;
    rig_open(&rig);
    /* A file. */
    fd = open(rig.socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(run_at(rig.socket, text, sizeof(text)), 1);
    assert_non_null(strstr(text, "a file is there that is no socket"));
    assert_true(exists(rig.socket));
    unlink(rig.socket);
    /* Somebody else's socket, of another type, with a listener. */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(name.sun_path, rig.socket, sizeof(rig.socket));
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(run_at(rig.socket, text, sizeof(text)), 1);
    assert_non_null(strstr(text, "another broker listens there"));
    close(fd);
    unlink(rig.socket);
    /* Nowhere, and nothing. */
    assert_int_equal(run_at("/nonexistent/socket", text, sizeof(text)), 1);
    assert_non_null(strstr(text, "No such file or directory"));
    assert_int_equal(run_at("", text, sizeof(text)), 1);
    memset(text, 'x', 200);
    text[200] = '\0';
    assert_int_equal(run_at(text, text + 201, sizeof(text) - 201), 1);
    assert_non_null(strstr(text + 201, "File name too long"));
    rig_close(&rig);
}

static void a_stale_socket_is_taken_over_and_clients_learn(void **state)
{
    struct netdam_completion completion;
    struct netdam_device_info info;
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .length = 64};
    struct netdam_region *region;
    struct user user;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (unsigned round = 0; round < 3; round++) {
        uint64_t offset;
        int rc;

        rig_start(&rig, NULL);
        assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
        assert_int_equal(user_work(&user, 3), 0);
        assert_int_equal(rig_end(&rig, SIGKILL), -SIGKILL);
        assert_true(exists(rig.socket));

        /* A request that nobody will ever answer: the wait for it ends all the same. */
        request.remote = (struct netdam_remote){user.self, user.key, 0};
        request.local = (struct netdam_local){user.region, 4096};
        netdam_post(user.queue, &request, 1);
        do {
            rc = netdam_wait(user.queue, &completion, 1, SOON_NS);
        } while (rc > 0);
        assert_int_equal(rc, -ESTALE);
        assert_int_equal(netdam_write(user.queue, request.remote, request.local, 64, SOON_NS), -ESTALE);
        assert_int_equal(netdam_query(user.device, &info), -ENODEV);
        assert_int_equal(netdam_alloc(user.device, 64, 0, &offset), -ENODEV);
        assert_int_equal(netdam_region_create(user.device, user.offset, 64, 0, 0, &region), -ENODEV);
        assert_int_equal(netdam_leases(user.device, NULL, 0), -ENODEV);
        user_close(&user);
    }
    rig_start(&rig, NULL);
    assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
    assert_int_equal(user_work(&user, 3), 0);
    user_close(&user);
    assert_int_equal(rig_end(&rig, SIGTERM), 0);
    rig_close(&rig);
}

static void it_ends_cleanly_with_clients_connected(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct netdam_completion completion;
    struct user user;
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (unsigned i = 0; i < COUNT(signals); i++) {
        rig_start(&rig, NULL);
        assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
        assert_int_equal(user_work(&user, 3), 0);
        assert_int_equal(rig_end(&rig, signals[i]), 0);
        assert_false(exists(rig.socket));
        assert_true(rig_said(&rig, "ended with the broker; took back 1 queue pairs, 1 regions, 1 peers"));
        assert_int_equal(netdam_wait(user.queue, &completion, 1, SOON_NS), -ESTALE);
        user_close(&user);
    }
    rig_close(&rig);
}

/* The socket file may have been replaced by somebody's: it is not ours to remove. */
static void a_file_that_is_not_its_own_stays(void **state)
{
    struct rig rig;
    int fd;

    (void)state;
    rig_open(&rig);
    rig_start(&rig, NULL);
    assert_int_equal(unlink(rig.socket), 0);
    fd = open(rig.socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(rig_end(&rig, SIGTERM), 0);
    assert_true(exists(rig.socket));
    rig_close(&rig);
}

static void usage(void **state)
{
    static const struct {
        const char *arguments[4];
        int status;
        const char *says;
    } table[] = {
        {{"--help"}, 0, "This is no security boundary"},
        {{"--version"}, 0, "netdamd 0."},
        {{"--nonsense"}, 2, "nonsense"},
        {{"extra"}, 2, "unexpected argument \"extra\""},
        {{"--mode", "888"}, 2, "\"888\" is out of range"},
        {{"--mode", "1777"}, 2, "out of range"},
        {{"--mode", ""}, 2, "out of range"},
        {{"--group", "no such group"}, 2, "there is no group"},
        {{"--group", "4294967295"}, 2, "there is no group"},
        {{"--max-clients", "0"}, 2, "out of range"},
        {{"--max-clients", "4097"}, 2, "out of range"},
        {{"--max-queue-pairs", "-1"}, 2, "out of range"},
        {{"--max-memory", "1Q"}, 2, "out of range"},
        {{"--max-peers"}, 2, "requires an argument"},
        {{"--device", "udp:nonsense"}, 1, "not of the form"},
        {{"--device", "broker:/tmp/x"}, 1, "names no kind of device"},
    };
    char text[8192];
    struct rig rig;

    (void)state;
    rig_open(&rig);
    for (unsigned i = 0; i < COUNT(table); i++) {
        const char *arguments[8] = {"netdamd", "-s", rig.socket, table[i].arguments[0], table[i].arguments[1], NULL};

        assert_int_equal(rig_run("netdamd", arguments, text, sizeof(text)), table[i].status);
        assert_non_null(strstr(text, table[i].says));
        if (table[i].status != 0) {
            assert_int_equal(lines(text), 1);
        }
        assert_false(exists(rig.socket));
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_one_at_the_same_socket_is_refused),
        cmocka_unit_test(what_the_path_must_not_be),
        cmocka_unit_test(a_stale_socket_is_taken_over_and_clients_learn),
        cmocka_unit_test(it_ends_cleanly_with_clients_connected),
        cmocka_unit_test(a_file_that_is_not_its_own_stays),
        cmocka_unit_test(usage),
    };

    return cmocka_run_group_tests_name("netdamd, the program", tests, NULL, NULL);
}
