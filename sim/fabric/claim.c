/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of captures and of ports that play or record: nobody writes to what another one of them uses, whatever it is called. */
#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int ndfab_claim(const char *path, enum ndfab_use use, int *error)
{
    int flags = use == NDFAB_READS ? O_RDONLY : O_WRONLY | O_CREAT;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    struct stat status;

    *error = 0;
    if (fd < 0 || fstat(fd, &status) != 0) {
        *error = errno;
    } else if (use == NDFAB_CAPTURES && !S_ISREG(status.st_mode)) {
        /* A pipe or a terminal that nobody reads would make the whole network wait. */
        *error = ENOTSUP;
    } else if (S_ISREG(status.st_mode) && flock(fd, (use == NDFAB_READS ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 &&
               errno == EWOULDBLOCK) {
        /* File systems without locks give other errors. */
        *error = EBUSY;
    }
    if (*error != 0 && fd >= 0) {
        close(fd);
    }
    return *error == 0 ? fd : -1;
}

const char *ndfab_claim_text(int error)
{
    return error == EBUSY ? "another port or capture uses this file" : strerror(error);
}
