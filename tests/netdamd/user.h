/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that works on its own memory through the device, over the network's loopback. Asserts nothing. */
#ifndef NETDAMD_USER_H
#define NETDAMD_USER_H

#include "netdam.h"

/* Long enough for a machine that is busy with other things. */
#define SOON_NS UINT64_C(120000000000)

/* A client with a region, a queue pair and its own device as a peer. */
struct user {
    struct netdam_device *device;
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_peer *self;
    uint64_t offset;
    uint64_t key;
    uint64_t *memory;
};

/* 0, or what failed first; then it holds nothing. */
int user_open(struct user *user, const char *device, uint64_t bytes, uint64_t key);
void user_close(struct user *user);

/* Operations on the user's own region over the network's loopback: 0 if all were right. */
int user_work(struct user *user, unsigned rounds);

#endif
