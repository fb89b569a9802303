/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that the image carries, for the C library's fopen: read only, by their paths. */
#include "board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_NUMBER 3
#define OPEN_MAX_    8

static struct {
    const struct board_file *file;
    size_t at;
} opened[OPEN_MAX_];

static int slot_of(int number)
{
    int slot = number - FIRST_NUMBER;

    if (slot < 0 || slot >= OPEN_MAX_ || opened[slot].file == NULL) {
        errno = EBADF;
        return -1;
    }
    return slot;
}

int open(const char *path, int flags, ...)
{
    if ((flags & O_ACCMODE) != O_RDONLY) {
        errno = EROFS;
        return -1;
    }
    for (size_t i = 0; i < board_file_count; i++) {
        if (strcmp(path, board_files[i].path) != 0) {
            continue;
        }
        for (int slot = 0; slot < OPEN_MAX_; slot++) {
            if (opened[slot].file == NULL) {
                opened[slot].file = &board_files[i];
                opened[slot].at = 0;
                return slot + FIRST_NUMBER;
            }
        }
        errno = EMFILE;
        return -1;
    }
    errno = ENOENT;
    return -1;
}

int mkdir(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    errno = EROFS;
    return -1;
}

int close(int number)
{
    int slot = slot_of(number);

    if (slot < 0) {
        return -1;
    }
    opened[slot].file = NULL;
    return 0;
}

ssize_t read(int number, void *to, size_t bytes)
{
    int slot = slot_of(number);
    size_t left;

    if (slot < 0) {
        return -1;
    }
    left = opened[slot].file->bytes - opened[slot].at;
    if (bytes > left) {
        bytes = left;
    }
    memcpy(to, opened[slot].file->data + opened[slot].at, bytes);
    opened[slot].at += bytes;
    return (ssize_t)bytes;
}

ssize_t write(int number, const void *from, size_t bytes)
{
    (void)number;
    (void)from;
    (void)bytes;
    errno = EBADF;
    return -1;
}

off_t lseek(int number, off_t offset, int whence)
{
    int slot = slot_of(number);
    size_t base;

    if (slot < 0) {
        return -1;
    }
    base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? opened[slot].at : opened[slot].file->bytes;
    if (offset < 0 ? (size_t)-offset > base : (size_t)offset > opened[slot].file->bytes - base) {
        errno = EINVAL;
        return -1;
    }
    opened[slot].at = offset < 0 ? base - (size_t)-offset : base + (size_t)offset;
    return (off_t)opened[slot].at;
}
