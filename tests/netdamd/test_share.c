/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that mean well share a device through netdamd: work side by side, limits, death of one, waiting. */
#define _GNU_SOURCE
#include "rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS    4
#define ROUNDS     100
#define SHARED_KEY UINT64_C(0x7368617265643131)
#define AREA       (UINT64_C(64) << 10)

static struct rig rig;
static struct netdam_device *observer;
static int progress[2]; /* a pipe: a child that works says so */

static int start(void **state)
{
    const struct netdam_open_config config = {.flags = NETDAM_OPEN_OBSERVE};

    (void)state;
    rig_open(&rig);
    rig_start(&rig, NULL);
    assert_int_equal(netdam_open(rig.device, &config, &observer), 0);
    assert_int_equal(pipe2(progress, O_CLOEXEC), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    netdam_close(observer);
    close(progress[0]);
    close(progress[1]);
    assert_int_equal(rig_end(&rig, SIGTERM), 0);
    rig_close(&rig);
    return 0;
}

/* Own work, and additions to a counter that another client owns. */
static int work_and_count(void *argument)
{
    struct user user;
    int rc = user_open(&user, rig.device, AREA, 0);

    (void)argument;
    if (rc != 0) {
        return 10;
    }
    if (user_work(&user, ROUNDS) != 0) {
        return 11;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        const struct netdam_remote shared = {user.self, SHARED_KEY, 0};

        if (netdam_fetch_add(user.queue, NETDAM_TYPE_U64, shared, 1, NULL, SOON_NS) != 0) {
            return 12;
        }
    }
    user_close(&user);
    return 0;
}

static void clients_work_side_by_side(void **state)
{
    struct user owner;
    pid_t pids[CLIENTS];

    (void)state;
    assert_int_equal(user_open(&owner, rig.device, AREA, SHARED_KEY), 0);
    owner.memory[0] = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        pids[i] = rig_fork(work_and_count, NULL);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(rig_wait(pids[i]), 0);
    }
    assert_int_equal(owner.memory[0], CLIENTS * ROUNDS);
    /* Children hold copies of the owner's connection; they are gone. */
    user_close(&owner);
    assert_true(rig_wait_clients(observer, 0));
}

/* Keeps its ring full for ever, and says so once a while. */
static int load_for_ever(void *argument)
{
    struct user user;
    unsigned long done = 0;

    (void)argument;
    if (user_open(&user, rig.device, AREA, 0) != 0) {
        return 10;
    }
    for (;;) {
        struct netdam_completion completions[32];
        struct netdam_request request = {
            .opcode = done % 3 == 0 ? NETDAM_OP_READ : NETDAM_OP_WRITE,
            .remote = {user.self, user.key, 0},
            .local = {user.region, 32768},
            .length = 16384,
        };
        int taken;

        while (netdam_post(user.queue, &request, 1) == 1) {
        }
        taken = netdam_wait(user.queue, completions, 32, SOON_NS);
        if (taken < 0) {
            return 11;
        }
        for (int i = 0; i < taken; i++) {
            if (completions[i].status != NETDAM_STATUS_OK) {
                return 12;
            }
        }
        if (done == 0 && write(progress[1], "x", 1) != 1) {
            return 13;
        }
        done++;
    }
}

static void a_killed_client_returns_its_leases_and_the_other_goes_on(void **state)
{
    struct netdam_lease leases[4];
    struct user other;
    uint64_t all;
    char byte;

    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        pid_t pid = rig_fork(load_for_ever, NULL);
        int count;

        assert_int_equal(read(progress[0], &byte, 1), 1);
        /* After the fork, so that the child does not hold this connection too. */
        assert_int_equal(user_open(&other, rig.device, AREA, 0), 0);
        assert_int_equal(user_work(&other, 10), 0);
        count = netdam_leases(observer, leases, 4);
        assert_int_equal(count, 2);
        assert_int_equal(leases[0].pid, pid);
        assert_int_equal(leases[0].uid, getuid());
        assert_int_equal(leases[0].queue_pairs, 1);
        assert_int_equal(leases[0].regions, 1);
        assert_int_equal(leases[0].peers, 1);
        assert_true(leases[0].memory_bytes > AREA);
        assert_int_equal(leases[1].pid, getpid());
        assert_true(leases[1].client > leases[0].client);

        kill(pid, SIGKILL);
        assert_int_equal(user_work(&other, 50), 0);
        assert_int_equal(rig_wait(pid), -SIGKILL);
        assert_true(rig_wait_clients(observer, 1));
        assert_int_equal(user_work(&other, 10), 0);
        user_close(&other);
        assert_true(rig_wait_clients(observer, 0));
    }
    assert_true(rig_said(&rig, "took back 1 queue pairs, 1 regions, 1 peers"));

    /* All of it is there again: memory in one piece, every queue pair. */
    assert_int_equal(netdam_open(rig.device, NULL, &other.device), 0);
    assert_int_equal(netdam_alloc(other.device, UINT64_C(16) << 20, 0, &all), 0);
    assert_int_equal(netdam_free(other.device, all), 0);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(netdam_queue_create(other.device, NULL, &other.queue), 0);
    }
    assert_int_equal(netdam_queue_create(other.device, NULL, &other.queue), -ENOSPC);
    netdam_close(other.device);
}

static void memory_in_use_is_not_given_back(void **state)
{
    struct user user;

    (void)state;
    assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
    assert_int_equal(netdam_free(user.device, user.offset), -EBUSY);
    assert_int_equal(netdam_free(user.device, user.offset + 64), -EINVAL);
    assert_int_equal(netdam_region_destroy(user.region), 0);
    assert_int_equal(netdam_free(user.device, user.offset), 0);
    assert_int_equal(netdam_free(user.device, user.offset), -EINVAL);
    user_close(&user);
}

static void what_concerns_all_clients_is_refused(void **state)
{
    struct netdam_region *region;
    struct user user;

    (void)state;
    assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
    assert_int_equal(netdam_reset(user.device), -EPERM);
    assert_int_equal(user_work(&user, 1), 0);
    /* Memory that was never leased, part of what was leased and part of what follows, nothing. */
    assert_int_equal(netdam_region_create(user.device, UINT64_C(8) << 20, 4096, 0, 0, &region), -EINVAL);
    assert_int_equal(netdam_region_create(user.device, user.offset + 8, UINT64_C(8) << 20, 0, 0, &region), -EINVAL);
    assert_int_equal(netdam_region_create(user.device, user.offset, 0, 0, 0, &region), -EINVAL);
    assert_int_equal(netdam_region_create(user.device, user.offset + 8, AREA - 8, 0, 0, &region), 0);
    user_close(&user);
}

static void an_observer_looks_and_owns_nothing(void **state)
{
    struct netdam_device_info info;
    uint64_t offset;
    uint64_t value;

    (void)state;
    assert_int_equal(netdam_query(observer, &info), 0);
    assert_int_equal(info.memory_bytes, 16 << 20);
    assert_int_equal(netdam_counter_read(observer, NETDAM_COUNTER_ADMIN_ERRORS, &value), 0);
    assert_int_equal(netdam_alloc(observer, 64, 0, &offset), -EPERM);
    assert_null(netdam_memory(observer));
    assert_int_equal(netdam_leases(observer, NULL, 0), 0);
}

static void an_armed_queue_pair_wakes_its_own_client(void **state)
{
    struct netdam_completion completion;
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .length = 64};
    struct user users[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(user_open(&users[i], rig.device, AREA, 0), 0);
        assert_true(netdam_queue_fd(users[i].queue) >= 0);
    }
    for (unsigned round = 0; round < 50; round++) {
        struct user *user = &users[round % 2];
        struct pollfd polls[2];

        for (unsigned i = 0; i < 2; i++) {
            polls[i] = (struct pollfd){.fd = netdam_queue_fd(users[i].queue), .events = POLLIN};
            assert_int_equal(netdam_queue_arm(users[i].queue), 0);
        }
        request.remote = (struct netdam_remote){user->self, user->key, 0};
        request.local = (struct netdam_local){user->region, 4096};
        assert_int_equal(netdam_post(user->queue, &request, 1), 1);
        assert_int_equal(poll(polls, 2, SOON_SECONDS * 1000), 1);
        assert_true(polls[round % 2].revents != 0);
        assert_int_equal(netdam_wait(user->queue, &completion, 1, SOON_NS), 1);
        assert_int_equal(completion.status, NETDAM_STATUS_OK);
    }
    user_close(&users[0]);
    user_close(&users[1]);
}

static void one_client_sends_to_another(void **state)
{
    const struct netdam_queue_config config = {.receive_depth = 4};
    struct netdam_completion completion;
    struct netdam_receive buffer = {.user_data = 77, .length = 256};
    struct netdam_queue *queue;
    struct user from;
    struct user to;

    (void)state;
    assert_int_equal(user_open(&from, rig.device, AREA, 0), 0);
    assert_int_equal(user_open(&to, rig.device, AREA, 0), 0);
    assert_int_equal(netdam_queue_create(to.device, &config, &queue), 0);
    for (unsigned i = 0; i < 20; i++) {
        struct netdam_remote there = {from.self, netdam_queue_receive_key(queue), 0};

        from.memory[0] = i + 1;
        buffer.local = (struct netdam_local){to.region, 4096};
        assert_int_equal(netdam_post_receive(queue, &buffer, 1), 1);
        assert_int_equal(netdam_send(from.queue, there, (struct netdam_local){from.region, 0}, 8, SOON_NS), 0);
        assert_int_equal(netdam_wait(queue, &completion, 1, SOON_NS), 1);
        assert_int_equal(completion.user_data, 77);
        assert_int_equal(to.memory[512], i + 1);
    }
    user_close(&from);
    user_close(&to);
}

static void a_client_gets_no_more_than_its_share(void **state)
{
    char group[16];
    const char *const options[] = {"--max-queue-pairs", "2", "--max-memory", "1M",  "--max-regions", "3",
                                   "--max-peers",       "2", "--max-clients", "3",  "--mode",        "600",
                                   "--group",           group, NULL};
    struct netdam_region *regions[3];
    struct netdam_queue *queues[2];
    struct netdam_peer *peer;
    struct netdam_device *third;
    struct netdam_device *fourth;
    struct stat status;
    struct user user;
    struct user other;
    struct rig small;
    uint64_t offset;

    (void)state;
    snprintf(group, sizeof(group), "%u", (unsigned)getgid());
    rig_open(&small);
    rig_start(&small, options);
    assert_int_equal(stat(small.socket, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);

    assert_int_equal(user_open(&user, small.device, AREA, 0), 0);
    assert_int_equal(netdam_queue_create(user.device, NULL, &queues[0]), 0);
    assert_int_equal(netdam_queue_create(user.device, NULL, &queues[1]), -ENOSPC);
    assert_int_equal(netdam_region_create(user.device, user.offset, 64, 0, 0, &regions[0]), 0);
    assert_int_equal(netdam_region_create(user.device, user.offset, 64, 0, 0, &regions[1]), 0);
    assert_int_equal(netdam_region_create(user.device, user.offset, 64, 0, 0, &regions[2]), -ENOSPC);
    assert_int_equal(netdam_peer_open(user.device, "127.0.0.1:9", &peer), 0);
    assert_int_equal(netdam_peer_open(user.device, "127.0.0.1:9", &peer), -ENOSPC);
    assert_int_equal(netdam_alloc(user.device, UINT64_C(1) << 20, 0, &offset), -ENOSPC);
    assert_int_equal(netdam_alloc(user.device, UINT64_MAX, 0, &offset), -ENOSPC);
    assert_int_equal(netdam_alloc(user.device, UINT64_MAX - 62, 0, &offset), -ENOSPC);
    assert_int_equal(netdam_alloc(user.device, 0, 0, &offset), -EINVAL);
    assert_int_equal(netdam_alloc(user.device, 64, 3, &offset), -EINVAL);

    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(netdam_alloc(user.device, UINT64_C(768) << 10, 0, &offset), 0);
        assert_int_equal(netdam_free(user.device, offset), 0);
    }

    /* Somebody else's share is not touched, and what is given back can be had again. */
    assert_int_equal(user_open(&other, small.device, UINT64_C(512) << 10, 0), 0);
    assert_int_equal(user_work(&other, 2), 0);
    assert_int_equal(netdam_queue_destroy(queues[0]), 0);
    assert_int_equal(netdam_queue_create(user.device, NULL, &queues[1]), 0);
    assert_int_equal(netdam_region_destroy(regions[1]), 0);
    assert_int_equal(netdam_region_create(user.device, user.offset, 64, 0, 0, &regions[2]), 0);

    assert_int_equal(netdam_open(small.device, NULL, &third), 0);
    assert_int_equal(netdam_open(small.device, NULL, &fourth), -ENODEV);
    netdam_close(third);
    assert_true(rig_wait_clients(user.device, 2));
    assert_int_equal(netdam_open(small.device, NULL, &fourth), 0);
    netdam_close(fourth);
    user_close(&user);
    user_close(&other);
    assert_int_equal(rig_end(&small, SIGTERM), 0);
    rig_close(&small);
}

static void the_pieces_of_one_client_are_counted(void **state)
{
    struct netdam_device *device;
    uint64_t offset;
    unsigned count = 0;
    int rc;

    (void)state;
    assert_int_equal(netdam_open(rig.device, NULL, &device), 0);
    while ((rc = netdam_alloc(device, 1, 0, &offset)) == 0) {
        count++;
    }
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(count, 4096);
    netdam_close(device);
}

static void the_name_pci_asks_the_broker_first(void **state)
{
    struct netdam_device *device;

    (void)state;
    setenv("NETDAM_BROKER", rig.socket, 1);
    assert_int_equal(netdam_open("pci", NULL, &device), 0);
    assert_int_equal(strncmp(netdam_device_name(device), "broker:", 7), 0);
    netdam_close(device);
    unsetenv("NETDAM_BROKER");
    assert_int_equal(netdam_open("broker:/nonexistent/socket", NULL, &device), -ENODEV);
    assert_int_equal(netdam_open("broker:", NULL, &device), -EINVAL);
}

static void netdam_info_shows_leases(void **state)
{
    const char *const plain[] = {"netdam-info", "-d", rig.device, NULL};
    const char *const json[] = {"netdam-info", "-j", "-o", "-c", "-d", rig.device, NULL};
    char expected[128];
    char text[65536];
    struct user user;

    (void)state;
    assert_int_equal(user_open(&user, rig.device, AREA, 0), 0);
    assert_int_equal(rig_run("netdam-info", plain, text, sizeof(text)), 0);
    snprintf(expected, sizeof(expected), "pid %d, uid %u: 1 queue pairs, 1 regions, 1 peers,", (int)getpid(),
             (unsigned)getuid());
    assert_non_null(strstr(text, expected));
    assert_int_equal(rig_run("netdam-info", json, text, sizeof(text)), 0);
    snprintf(expected, sizeof(expected), "\"pid\": %d, \"uid\": %u, \"queue_pairs\": 1,", (int)getpid(),
             (unsigned)getuid());
    assert_non_null(strstr(text, expected));
    assert_non_null(strstr(text, "\"fetch_add\""));
    user_close(&user);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_work_side_by_side),
        cmocka_unit_test(a_killed_client_returns_its_leases_and_the_other_goes_on),
        cmocka_unit_test(memory_in_use_is_not_given_back),
        cmocka_unit_test(what_concerns_all_clients_is_refused),
        cmocka_unit_test(an_observer_looks_and_owns_nothing),
        cmocka_unit_test(an_armed_queue_pair_wakes_its_own_client),
        cmocka_unit_test(one_client_sends_to_another),
        cmocka_unit_test(a_client_gets_no_more_than_its_share),
        cmocka_unit_test(the_pieces_of_one_client_are_counted),
        cmocka_unit_test(the_name_pci_asks_the_broker_first),
        cmocka_unit_test(netdam_info_shows_leases),
    };

    return cmocka_run_group_tests_name("netdamd, sharing", tests, start, stop);
}
