/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process' status file. Two locks keep others away: that of the file which is being written, under another name, and, the
 * same file being renamed, that of the one which is there.
 */
#define _GNU_SOURCE
#include "status_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns false. */
static bool wrong(const char *path, int error)
{
    fprintf(stderr, "netdam-node: %s: %s\n", path,
            error == EWOULDBLOCK ? "another netdam-node that runs keeps its status there" : strerror(error));
    return false;
}

/* Opens and locks a file, which `flags` may create. -1, with errno set, if that fails: EWOULDBLOCK if somebody has it. */
static int open_locked(const char *path, int flags)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | flags, 0600);
    struct stat status;
    int error = 0;

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) != 0) {
        error = errno;
    } else if (!S_ISREG(status.st_mode)) {
        error = ENOTSUP;
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        error = errno;
    }
    if (error != 0) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* Whether the path still leads to the file that is open. */
static bool is_at(const char *path, int fd)
{
    struct stat there, open;

    return lstat(path, &there) == 0 && fstat(fd, &open) == 0 && there.st_dev == open.st_dev &&
           there.st_ino == open.st_ino;
}

/* Whether nobody keeps the file that is there, if there is one. Sets errno if not. */
static bool is_free(const char *path)
{
    struct stat old;
    int fd;

    if (lstat(path, &old) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISREG(old.st_mode)) {
        errno = S_ISDIR(old.st_mode) ? EISDIR : ENOTSUP;
        return false;
    }
    fd = open_locked(path, 0);
    if (fd < 0) {
        return errno == ENOENT;
    }
    close(fd);
    return true;
}

bool ndsim_status_file_begin(struct ndsim_status_file *file, const char *path)
{
    int fd, error;

    *file = (struct ndsim_status_file){.path = path};
    if (asprintf(&file->fresh, "%s.new", path) < 0) {
        file->fresh = NULL;
        return wrong(path, ENOMEM);
    }
    fd = open_locked(file->fresh, O_CREAT);
    if (fd < 0) {
        return wrong(path, errno);
    }
    if (!is_at(file->fresh, fd)) { /* it was another's, who has renamed it */
        close(fd);
        return wrong(path, EWOULDBLOCK);
    }
    /* It tells keys, so nobody else may read it, whoever left it. */
    if (is_free(path) && fchmod(fd, 0600) == 0 && ftruncate(fd, 0) == 0) {
        file->file = fdopen(fd, "w");
    }
    if (file->file == NULL) {
        error = errno;
        (void)unlink(file->fresh);
        close(fd);
        return wrong(path, error);
    }
    return true;
}

/* Whoever waits for the file finds it whole. */
bool ndsim_status_file_publish(struct ndsim_status_file *file)
{
    errno = 0;
    file->published = fflush(file->file) == 0 && ferror(file->file) == 0 && rename(file->fresh, file->path) == 0;
    return file->published || wrong(file->path, errno != 0 ? errno : EIO);
}

void ndsim_status_file_end(struct ndsim_status_file *file)
{
    const char *name = file->published ? file->path : file->fresh;

    if (file->file != NULL) {
        if (is_at(name, fileno(file->file))) {
            (void)unlink(name);
        }
        fclose(file->file);
    }
    free(file->fresh);
    *file = (struct ndsim_status_file){0};
}
