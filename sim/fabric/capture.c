/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap files with nanoseconds: the classic format, in this machine's byte order, link type Ethernet. */
#include "fabric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_NANOSECONDS 0xa1b23c4du
#define LINKTYPE_ETHERNET 1u

struct ndfab_capture {
    FILE *file;
    char *path;
    bool failed;
};

/* Told at once: whoever waits for the file would find out at its end only. After that the file is left as it is. */
static void fail(struct ndfab_capture *capture, int error)
{
    capture->failed = true;
    fprintf(stderr, "netdam-fabric: %s: %s: the capture ends here\n", capture->path, strerror(error));
}

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
    capture->path = strdup(path);
    capture->file = capture->path != NULL ? open_file(path) : NULL;
    if (capture->file == NULL || fwrite(header, sizeof(header), 1, capture->file) != 1 || fflush(capture->file) != 0) {
        *error = errno;
        if (capture->file != NULL) {
            fclose(capture->file);
        }
        free(capture->path);
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
    ndfab_capture_flush(capture);
    good = fclose(capture->file) == 0 && !capture->failed;
    free(capture->path);
    free(capture);
    return good;
}

void ndfab_capture_frame(struct ndfab_capture *capture, const struct rte_mbuf *frame, uint64_t wall_ns)
{
    const uint32_t header[] = {(uint32_t)(wall_ns / 1000000000), (uint32_t)(wall_ns % 1000000000), frame->pkt_len,
                               frame->pkt_len};

    bool written;

    /* After a failed write the file ends there: a hole in it would make the rest unreadable. */
    if (capture->failed) {
        return;
    }
    written = fwrite(header, sizeof(header), 1, capture->file) == 1;
    for (; written && frame != NULL; frame = frame->next) {
        written = frame->data_len == 0 ||
                  fwrite(rte_pktmbuf_mtod(frame, const void *), frame->data_len, 1, capture->file) == 1;
    }
    if (!written) {
        fail(capture, errno);
    }
}

void ndfab_capture_flush(struct ndfab_capture *capture)
{
    if (!capture->failed && fflush(capture->file) != 0) {
        fail(capture, errno);
    }
}
