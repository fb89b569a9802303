/* SPDX-License-Identifier: BSD-3-Clause */
/* A program's standard streams, of which it may have been started without some. */
#ifndef NETDAM_HOLD_STREAMS_H
#define NETDAM_HOLD_STREAMS_H

#include <fcntl.h>
#include <unistd.h>

/*
 * Before anything else is opened: in the place of a closed stream there would be on-board memory, a device or a socket,
 * and what the program prints would be written there. What takes the place is as unreadable, or unwritable, as the closed one.
 */
static inline void ndlib_hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        /* The lowest free descriptor, which is this one. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            _exit(1);
        }
    }
}

#endif
