/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lets others work on this machine's card: registers a part of its on-board memory under a key, prints one line when
 * that is done, and keeps it until it is told to end.
 * Usage: netdam-share KEY [BYTES [DEVICE]]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

#define DEFAULT_BYTES (UINT64_C(16) << 20)

static void fail(const char *what, int result)
{
    fprintf(stderr, "netdam-share: %s: %s\n", what, strerror(-result));
    exit(1);
}

/* Only the named signals end it, and the device is closed properly then. */
static void wait_for_signal(const sigset_t *signals)
{
    int number;

    while (sigwait(signals, &number) != 0) {
    }
}

int main(int argc, char **argv)
{
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_region *region;
    char address[INET_ADDRSTRLEN];
    uint64_t key = argc > 1 ? strtoull(argv[1], NULL, 16) : 0;
    uint64_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : DEFAULT_BYTES;
    uint64_t offset;
    sigset_t signals;
    int result;

    if (key == 0 || bytes == 0 || argc > 4) {
        fprintf(stderr, "usage: netdam-share KEY [BYTES [DEVICE]]   KEY in hexadecimal, not 0\n");
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    if ((result = netdam_open(argc > 3 ? argv[3] : "pci", NULL, &device)) != 0) {
        fail("cannot open the device", result);
    }
    if ((result = netdam_alloc(device, bytes, 4096, &offset)) != 0) {
        fail("cannot allocate on-board memory", result);
    }
    if ((result = netdam_region_create(device, offset, bytes, NETDAM_PERMISSION_ALL, key, &region)) != 0) {
        fail("cannot register it", result);
    }
    if ((result = netdam_query(device, &info)) != 0) {
        fail("cannot ask the device", result);
    }
    inet_ntop(AF_INET, info.ipv4, address, sizeof(address));
    printf("netdam-share ready address=%s port=%u bytes=%" PRIu64 " key=0x%" PRIx64 "\n", address, info.udp_port, bytes,
           netdam_region_key(region));
    fflush(stdout);
    wait_for_signal(&signals);
    netdam_close(device);
    return 0;
}
