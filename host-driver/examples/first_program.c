/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of docs/driver.md: writes into a node's memory and reads back. Usage: first_program DEVICE PEER KEY */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

int main(int argc, char **argv)
{
    struct netdam_device *device;
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    uint64_t offset;

    if (argc != 4 || netdam_open(argv[1], NULL, &device) != 0 || netdam_alloc(device, 4096, 0, &offset) != 0 ||
        netdam_region_create(device, offset, 4096, NETDAM_PERMISSION_ALL, 0, &region) != 0 ||
        netdam_queue_create(device, NULL, &queue) != 0 || netdam_peer_open(device, argv[2], &peer) != 0) {
        return 2;
    }
    struct netdam_remote there = {peer, strtoull(argv[3], NULL, 0), 0};
    struct netdam_local here = {region, 0};
    struct netdam_local back = {region, 2048};
    char *memory = netdam_region_pointer(region);
    strcpy(memory, "Hello, memory!");
    int result = netdam_write(queue, there, here, 15, NETDAM_FOREVER);
    if (result == 0) {
        result = netdam_read(queue, back, there, 15, NETDAM_FOREVER);
    }
    puts(result == 0 ? memory + 2048 : result > 0 ? netdam_status_text((unsigned)result) : strerror(-result));
    netdam_close(device);
    return result != 0;
}
