/* SPDX-License-Identifier: BSD-3-Clause */
/* pcap files with nanoseconds: the classic format, in this machine's byte order, link type Ethernet. */
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* What was in the file goes when it is certain that nobody uses it. */
static FILE *open_file(const char *path, int *error)
{
    int fd = ndfab_claim(path, NDFAB_CAPTURES, error);
    FILE *file = fd >= 0 && ftruncate(fd, 0) == 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && file == NULL) {
        *error = errno;
        close(fd);
    }
    return file;
}

struct ndfab_capture *ndfab_capture_open(const char *path, uint32_t frame_bytes, int *error)
{
    const uint32_t header[] = {MAGIC_NANOSECONDS, 2u | 4u << 16, 0, 0, frame_bytes, LINKTYPE_ETHERNET};
    struct ndfab_capture *capture = calloc(1, sizeof(*capture));

    *error = ENOMEM;
    if (capture == NULL) {
        return NULL;
    }
    capture->path = strdup(path);
    capture->file = capture->path != NULL ? open_file(path, error) : NULL;
    if (capture->file == NULL || fwrite(header, sizeof(header), 1, capture->file) != 1 || fflush(capture->file) != 0) {
        if (capture->file != NULL) {
            *error = errno;
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
