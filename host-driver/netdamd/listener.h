/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket that clients connect to: made once, whatever a broker that died has left there, and removed again. */
#ifndef NDBROKER_LISTENER_H
#define NDBROKER_LISTENER_H

#include <sys/stat.h>

struct ndbroker_listener {
    const char *path;
    int fd;
    dev_t device; /* of the socket file, to remove no other */
    ino_t inode;
};

/*
 * Listens at `path`. A socket file at which nobody listens is replaced. `group` of -1: as it comes. Returns 0,
 * -EADDRINUSE (somebody listens), -EEXIST (a file is there that is no socket), -ENAMETOOLONG, -EINVAL (empty path) or
 * what the system calls say. Nobody can connect before group and mode are set.
 */
int ndbroker_listen(struct ndbroker_listener *listener, const char *path, mode_t mode, gid_t group);

/* Stops listening and removes the file, if it is still ours. */
void ndbroker_unlisten(struct ndbroker_listener *listener);

#endif
