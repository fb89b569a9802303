/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two soft devices on an Ethernet wire of unix datagrams, such as QEMU's netdev dgram, or on a memif link: ARP and all.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netdam.h"

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)
#define KEY  UINT64_C(0x7769726500000001)

static char directory[] = "/tmp/netdam-wire-XXXXXX";

static struct netdam_device *open_wire(unsigned end)
{
    struct netdam_device *device;
    char name[256];

    snprintf(name, sizeof(name), "udp:10.5.0.%u:20036,memory=1M,mtu=9000,wire=%s/%u:%s/%u", end + 1, directory, end,
             directory, 1 - end);
    assert_int_equal(netdam_open(name, NULL, &device), 0);
    return device;
}

static struct netdam_device *open_memif(unsigned end)
{
    struct netdam_device *device;
    char name[256];

    snprintf(name, sizeof(name),
             "udp:10.5.0.%u:20036,memory=1M,mtu=9000,memif=%s/link,memif-role=%s,memif-id=3,memif-secret=sesame",
             end + 1, directory, end == 0 ? "client" : "server");
    assert_int_equal(netdam_open(name, NULL, &device), 0);
    return device;
}

static void reach_one_another(struct netdam_device *(*open_end)(unsigned end))
{
    struct netdam_device *devices[2] = {open_end(0), open_end(1)};
    struct netdam_region *regions[2];
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    uint64_t offset;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(netdam_alloc(devices[i], 65536, 0, &offset), 0);
        assert_int_equal(netdam_region_create(devices[i], offset, 65536, NETDAM_PERMISSION_ALL, KEY + i, &regions[i]),
                         0);
    }
    assert_int_equal(netdam_queue_create(devices[0], NULL, &queue), 0);
    assert_int_equal(netdam_peer_open(devices[0], "10.5.0.2", &peer), 0);
    memset(netdam_region_pointer(regions[0]), 0xa5, 65536);
    assert_int_equal(netdam_write(queue, (struct netdam_remote){peer, KEY + 1, 0}, (struct netdam_local){regions[0], 0},
                                  65536, SOON),
                     0);
    assert_memory_equal(netdam_region_pointer(regions[0]), netdam_region_pointer(regions[1]), 65536);

    /* Whoever goes and comes again is found again. */
    netdam_close(devices[1]);
    devices[1] = open_end(1);
    assert_int_equal(netdam_echo(queue, peer, (struct netdam_local){regions[0], 0}, 4096, SOON), 0);
    netdam_close(devices[0]);
    netdam_close(devices[1]);
}

static void ends_of_a_wire_reach_one_another(void **state)
{
    (void)state;
    reach_one_another(open_wire);
}

static void ends_of_a_memif_link_reach_one_another(void **state)
{
    (void)state;
    reach_one_another(open_memif);
}

/* A node at the server's end, ready when this returns. */
static pid_t start_node(void)
{
    const char *output = getenv("O");
    char program[256], link[128], line[256] = "";
    int ready[2];
    FILE *stream;
    pid_t pid;

    snprintf(program, sizeof(program), "%s/sim/netdam-node", output ? output : "build");
    snprintf(link, sizeof(link), "%s/link,role=server,id=3,secret=sesame", directory);
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ready[1], STDOUT_FILENO);
        execl(program, program, "--listen", "10.5.0.2:20036", "--memory", "1M", "--mtu", "9000", "--key",
              "0x7769726500000002", "--memif", link, (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    stream = fdopen(ready[0], "r");
    assert_non_null(stream);
    assert_non_null(fgets(line, sizeof(line), stream));
    assert_non_null(strstr(line, "netdam-node ready address=10.5.0.2 port=20036"));
    fclose(stream);
    return pid;
}

static void a_node_that_is_killed_is_followed_by_the_next(void **state)
{
    struct netdam_device *device = open_memif(0);
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    uint64_t offset;
    uint8_t *bytes;

    (void)state;
    assert_int_equal(netdam_alloc(device, 131072, 0, &offset), 0);
    assert_int_equal(netdam_region_create(device, offset, 131072, NETDAM_PERMISSION_ALL, KEY, &region), 0);
    assert_int_equal(netdam_queue_create(device, NULL, &queue), 0);
    assert_int_equal(netdam_peer_open(device, "10.5.0.2", &peer), 0);
    bytes = netdam_region_pointer(region);
    for (unsigned life = 0; life < 3; life++) {
        pid_t pid = start_node();
        unsigned writes = 0;

        /* What the last one has taken with it ends with an error, once. */
        while (writes < 50) {
            int rc;

            memset(bytes, (int)(life * 50 + writes + 1), 65536);
            rc = netdam_write(queue, (struct netdam_remote){peer, KEY + 1, 4096}, (struct netdam_local){region, 0},
                              65536, SOON);
            assert_true(rc == 0 || writes == 0);
            writes += rc == 0;
        }
        assert_int_equal(netdam_read(queue, (struct netdam_local){region, 65536},
                                     (struct netdam_remote){peer, KEY + 1, 4096}, 65536, SOON),
                         0);
        assert_memory_equal(bytes, bytes + 65536, 65536);
        assert_int_equal(kill(pid, life < 2 ? SIGKILL : SIGTERM), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    netdam_close(device);
}

static void impossible_wires_are_refused(void **state)
{
    static const struct {
        const char *wire;
        int expected;
    } cases[] = {
        {"10.5.0.1:20036,wire=", -EINVAL},
        {"10.5.0.1:20036,wire=/tmp/x", -EINVAL},
        {"10.5.0.1:20036,wire=:/tmp/x", -EINVAL},
        {"10.5.0.1:20036,wire=/tmp/x:", -EINVAL},
        {"10.5.0.1:0,wire=/tmp/x:/tmp/y", -EINVAL},
        {"10.5.0.1:20036,wire=/nowhere/x:/tmp/y", -ENOENT},
        {"10.5.0.1:20036,memif=", -EINVAL},
        {"10.5.0.1:0,memif=/tmp/x", -EINVAL},
        {"10.5.0.1:20036,memif=/tmp/x,memif-role=master", -EINVAL},
        {"10.5.0.1:20036,memif=/tmp/x,memif-id=4G", -EINVAL},
        {"10.5.0.1:20036,memif=/tmp/x,memif-secret=longer-than-24-characters", -EINVAL},
        {"10.5.0.1:20036,memif=/tmp/x,memif-secret=", -EINVAL},
        {"127.0.0.1:0,memif-secret=sesame", -EINVAL},
        {"127.0.0.1:0,memif-role=server", -EINVAL},
        {"127.0.0.1:0,memif-id=1", -EINVAL},
        {"10.5.0.1:20036,memif=/tmp/x,wire=/tmp/y:/tmp/z", -EINVAL},
        {"10.5.0.1:20036,memif=/nowhere/x,memif-role=server", -ENOENT},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct netdam_device *device;
        char name[128];

        snprintf(name, sizeof(name), "udp:%s", cases[i].wire);
        assert_int_equal(netdam_open(name, NULL, &device), cases[i].expected);
    }
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

/* The sockets have been unlinked. */
static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_a_wire_reach_one_another),
        cmocka_unit_test(ends_of_a_memif_link_reach_one_another),
        cmocka_unit_test(a_node_that_is_killed_is_followed_by_the_next),
        cmocka_unit_test(impossible_wires_are_refused),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
