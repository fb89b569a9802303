/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes, atomic additions, and whether they did what they should. */
#include "user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int user_open(struct user *user, const char *device, uint64_t bytes, uint64_t key)
{
    struct netdam_device_info info;
    char address[32];
    int rc;

    memset(user, 0, sizeof(*user));
    rc = netdam_open(device, NULL, &user->device);
    if (rc != 0) {
        return rc;
    }
    rc = netdam_query(user->device, &info);
    if (rc == 0) {
        rc = netdam_alloc(user->device, bytes, 4096, &user->offset);
    }
    if (rc == 0) {
        rc = netdam_region_create(user->device, user->offset, bytes, NETDAM_PERMISSION_ALL, key, &user->region);
    }
    if (rc == 0) {
        rc = netdam_queue_create(user->device, NULL, &user->queue);
    }
    if (rc == 0) {
        snprintf(address, sizeof(address), "%u.%u.%u.%u:%u", info.ipv4[0], info.ipv4[1], info.ipv4[2], info.ipv4[3],
                 info.udp_port);
        rc = netdam_peer_open(user->device, address, &user->self);
    }
    if (rc != 0) {
        user_close(user);
        return rc;
    }
    user->key = netdam_region_key(user->region);
    user->memory = netdam_region_pointer(user->region);
    return 0;
}

void user_close(struct user *user)
{
    netdam_close(user->device);
    user->device = NULL;
}

int user_work(struct user *user, unsigned rounds)
{
    const struct netdam_remote counter = {user->self, user->key, 0};
    const struct netdam_remote there = {user->self, user->key, 4096};
    const struct netdam_local here = {user->region, 8192};

    user->memory[0] = 0;
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t old;
        int rc;

        for (unsigned k = 0; k < 512; k++) {
            user->memory[1024 + k] = (uint64_t)user->offset + i * 512 + k;
        }
        rc = netdam_write(user->queue, there, here, 4096, SOON_NS);
        if (rc == 0) {
            rc = netdam_fetch_add(user->queue, NETDAM_TYPE_U64, counter, 1, &old, SOON_NS);
        }
        if (rc != 0) {
            return rc;
        }
        if (old != i || memcmp(&user->memory[512], &user->memory[1024], 4096) != 0) {
            return -EILSEQ;
        }
    }
    return user->memory[0] == rounds ? 0 : -EILSEQ;
}
