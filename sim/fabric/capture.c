/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap files with nanoseconds: the classic format, in this machine's byte order, link type Ethernet. */
#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_NANOSECONDS 0xa1b23c4du
#define LINKTYPE_ETHERNET 1u

struct ndfab_capture {
    FILE *file;
    bool failed;
};

/* Only a file in the narrow sense: a pipe or a terminal that nobody reads would make the whole network wait. */
static FILE *open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    struct stat status;
    FILE *file = NULL;
    int error;

    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &status) == 0) {
        if (S_ISREG(status.st_mode)) {
            file = fdopen(fd, "w");
        } else {
            errno = ENOTSUP;
        }
    }
    if (file == NULL) {
        error = errno;
        close(fd);
        errno = error;
    }
    return file;
}

struct ndfab_capture *ndfab_capture_open(const char *path, uint32_t frame_bytes, int *error)
{
    const uint32_t header[] = {MAGIC_NANOSECONDS, 2u | 4u << 16, 0, 0, frame_bytes, LINKTYPE_ETHERNET};
    struct ndfab_capture *capture = calloc(1, sizeof(*capture));

    if (capture == NULL) {
        *error = ENOMEM;
        return NULL;
    }
    capture->file = open_file(path);
    if (capture->file == NULL) {
        *error = errno;
        free(capture);
        return NULL;
    }
    if (fwrite(header, sizeof(header), 1, capture->file) != 1 || fflush(capture->file) != 0) {
        *error = errno;
        fclose(capture->file);
        free(capture);
        return NULL;
    }
    return capture;
}

bool ndfab_capture_close(struct ndfab_capture *capture)
{
    bool good;

    if (capture == NULL) {
        return true;
    }
    good = fclose(capture->file) == 0 && !capture->failed;
    free(capture);
    return good;
}

void ndfab_capture_frame(struct ndfab_capture *capture, const struct rte_mbuf *frame, uint64_t wall_ns)
{
    const uint32_t header[] = {(uint32_t)(wall_ns / 1000000000), (uint32_t)(wall_ns % 1000000000), frame->pkt_len,
                               frame->pkt_len};

    /* After a failed write the file ends there: a hole in it would make the rest unreadable. */
    if (capture->failed || fwrite(header, sizeof(header), 1, capture->file) != 1) {
        capture->failed = true;
        return;
    }
    for (; frame != NULL; frame = frame->next) {
        if (frame->data_len != 0 &&
            fwrite(rte_pktmbuf_mtod(frame, const void *), frame->data_len, 1, capture->file) != 1) {
            capture->failed = true;
            return;
        }
    }
}

void ndfab_capture_flush(struct ndfab_capture *capture)
{
    if (!capture->failed && fflush(capture->file) != 0) {
        capture->failed = true;
    }
}
