/* SPDX-License-Identifier: BSD-3-Clause */
/* Two soft devices on an Ethernet wire of unix datagrams, such as QEMU's netdev dgram: ARP and all. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netdam.h"

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)
#define KEY  UINT64_C(0x7769726500000001)

static char directory[] = "/tmp/netdam-wire-XXXXXX";

static struct netdam_device *open_end(unsigned end)
{
    struct netdam_device *device;
    char name[256];

    snprintf(name, sizeof(name), "udp:10.5.0.%u:20036,memory=1M,mtu=9000,wire=%s/%u:%s/%u", end + 1, directory, end,
             directory, 1 - end);
    assert_int_equal(netdam_open(name, NULL, &device), 0);
    return device;
}

static void both_ends_reach_one_another(void **state)
{
    struct netdam_device *devices[2] = {open_end(0), open_end(1)};
    struct netdam_region *regions[2];
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    uint64_t offset;

    (void)state;
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

static void impossible_wires_are_refused(void **state)
{
    static const struct {
        const char *wire;
        int expected;
    } cases[] = {
        {"10.5.0.1:20036,wire=", -EINVAL},          {"10.5.0.1:20036,wire=/tmp/x", -EINVAL},
        {"10.5.0.1:20036,wire=:/tmp/x", -EINVAL},   {"10.5.0.1:20036,wire=/tmp/x:", -EINVAL},
        {"10.5.0.1:0,wire=/tmp/x:/tmp/y", -EINVAL}, {"10.5.0.1:20036,wire=/nowhere/x:/tmp/y", -ENOENT},
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
        cmocka_unit_test(both_ends_reach_one_another),
        cmocka_unit_test(impossible_wires_are_refused),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
