/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the socket, safe against another broker that starts at the same moment. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"

/* Another broker holds the lock only while it starts. */
#define LOCK_TRIES  200
#define LOCK_NAP_NS 10000000

/* Locks the directory, so that no lock file is left behind. The descriptor or -errno; closing it ends the lock. */
static int lock_directory(const char *path)
{
    const struct timespec nap = {.tv_nsec = LOCK_NAP_NS};
    char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
    int error;
    int fd;

    memcpy(copy, path, strlen(path) + 1);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return fd;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            break;
        }
        nanosleep(&nap, NULL);
    }
    error = errno;
    close(fd);
    return -error;
}

/* Removes a socket file at which nobody listens. 0 if the path is free now. */
static int clear_path(const struct sockaddr_un *name)
{
    struct stat status;
    int error = 0;
    int fd;

    if (lstat(name->sun_path, &status) != 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISSOCK(status.st_mode)) {
        return -EEXIST;
    }
    /* Not blocking: a listener that is busy is one. */
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)name, sizeof(*name)) != 0) {
        error = errno;
    }
    close(fd);
    if (error == ECONNREFUSED) {
        return unlink(name->sun_path) == 0 || errno == ENOENT ? 0 : -errno;
    }
    /* EPROTOTYPE: somebody listens, with another type of socket. */
    return error == 0 || error == EAGAIN || error == EPROTOTYPE ? -EADDRINUSE : -error;
}

int ndbroker_listen(struct ndbroker_listener *listener, const char *path, mode_t mode, gid_t group)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat status;
    int lock;
    int rc;

    *listener = (struct ndbroker_listener){.path = path, .fd = -1};
    if (path[0] == '\0') {
        return -EINVAL;
    }
    if (strlen(path) >= sizeof(name.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(name.sun_path, path, strlen(path) + 1);
    lock = lock_directory(path);
    if (lock < 0) {
        return lock;
    }
    rc = clear_path(&name);
    if (rc != 0) {
        close(lock);
        return rc;
    }
    listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0 || bind(listener->fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
        rc = -errno;
    } else if (lstat(path, &status) != 0) {
        rc = -errno;
    } else {
        listener->device = status.st_dev;
        listener->inode = status.st_ino;
        /* Before listen(2), so that nobody slips in. */
        if (lchown(path, (uid_t)-1, group) != 0 || chmod(path, mode) != 0 || listen(listener->fd, SOMAXCONN) != 0) {
            rc = -errno;
        }
    }
    if (rc != 0) {
        ndbroker_unlisten(listener);
    }
    close(lock);
    return rc;
}

void ndbroker_unlisten(struct ndbroker_listener *listener)
{
    struct stat status;

    if (listener->inode != 0 && lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
        status.st_ino == listener->inode) {
        unlink(listener->path);
    }
    if (listener->fd >= 0) {
        close(listener->fd);
    }
    *listener = (struct ndbroker_listener){.path = listener->path, .fd = -1};
}
