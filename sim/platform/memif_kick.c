/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adds to eventfds that another process has too. write(2) to one blocks while its count is at the limit, and the peer
 * can bring it there and take O_NONBLOCK away at any time, for both belong to what is shared. So the kernel is made to
 * signal it, which never blocks: as the completion of an asynchronous read of nothing.
 */
#define _GNU_SOURCE
#include "memif_link.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Completions that the kernel keeps until they are thrown away. */
#define EVENTS 8

void ndsim_memif_kicker_open(struct memif_kicker *kicker)
{
    aio_context_t context = 0;

    kicker->context = 0;
    kicker->file = memfd_create("netdam-memif-kick", MFD_CLOEXEC);
    if (kicker->file >= 0 && syscall(SYS_io_setup, EVENTS, &context) == 0) {
        kicker->context = context;
    }
}

void ndsim_memif_kicker_close(struct memif_kicker *kicker, bool abandon)
{
    if (kicker->context != 0 && !abandon) {
        syscall(SYS_io_destroy, (aio_context_t)kicker->context);
    }
    if (kicker->file >= 0) {
        close(kicker->file);
    }
    kicker->context = 0;
    kicker->file = -1;
}

/* Where there is no asynchronous I/O. A peer that fills the count between the two calls does block this. */
static void kick_plainly(int event_fd)
{
    struct pollfd writable = {.fd = event_fd, .events = POLLOUT};
    uint64_t one = 1;

    if (poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0) {
        ssize_t written = write(event_fd, &one, sizeof(one));

        (void)written;
    }
}

void ndsim_memif_kick(struct memif_kicker *kicker, int event_fd)
{
    struct io_event events[EVENTS];
    struct timespec now = {0};
    struct iocb request = {0};
    struct iocb *requests[1] = {&request};

    if (kicker->context == 0) {
        kick_plainly(event_fd);
        return;
    }
    request.aio_lio_opcode = IOCB_CMD_PREAD;
    request.aio_fildes = (uint32_t)kicker->file;
    request.aio_flags = IOCB_FLAG_RESFD;
    request.aio_resfd = (uint32_t)event_fd;
    while (syscall(SYS_io_submit, (aio_context_t)kicker->context, 1L, requests) != 1 && errno == EAGAIN) {
        if (syscall(SYS_io_getevents, (aio_context_t)kicker->context, 0L, (long)EVENTS, events, &now) <= 0) {
            return; /* the kernel is short of something: the peer's next wake-up tells it of these frames too */
        }
    }
}
