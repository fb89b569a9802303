/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory of a memif link: makes a client's, and checks what a server is passed before it is touched. */
#define _GNU_SOURCE
#include "memif_link.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CACHE_LINE UINT64_C(64)
#define PAGE       UINT64_C(4096)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static uint64_t ring_bytes(uint32_t slots)
{
    return sizeof(struct memif_ring) + (uint64_t)slots * sizeof(struct memif_descriptor);
}

uint64_t ndsim_memif_memory_bytes(uint32_t slots, uint32_t buffer_bytes)
{
    return round_up(2 * round_up(ring_bytes(slots), CACHE_LINE), PAGE) +
           2 * (uint64_t)slots * round_up(buffer_bytes, CACHE_LINE);
}

int ndsim_memif_memory_create(struct memif_link *link, uint32_t slots)
{
    uint64_t bytes = ndsim_memif_memory_bytes(slots, link->buffer_bytes);
    uint64_t second = round_up(ring_bytes(slots), CACHE_LINE);
    struct memif_region *region = &link->regions[0];
    void *base;

    region->fd = memfd_create("netdam-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0) {
        return -errno;
    }
    region->base = NULL;
    region->bytes = bytes;
    link->region_count = 1;
    if (ftruncate(region->fd, (off_t)bytes) != 0 ||
        fcntl(region->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return -errno;
    }
    /* Here rather than in the first round through the ring. */
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, region->fd, 0);
    if (base == MAP_FAILED) {
        return -errno;
    }
    region->base = base;
    link->stride = (uint32_t)round_up(link->buffer_bytes, CACHE_LINE);
    link->buffers = round_up(2 * second, PAGE);
    link->transmit.slots = (uint16_t)slots;
    link->transmit.ring = base;
    link->receive.slots = (uint16_t)slots;
    link->receive.ring = (struct memif_ring *)(region->base + second);
    link->transmit.ring->cookie = MEMIF_COOKIE;
    link->receive.ring->cookie = MEMIF_COOKIE;
    return 0;
}

static memif_reason check(const struct memif_link *link, uint64_t bytes, int fd, bool *map)
{
    uint64_t all = bytes;
    struct statfs filesystem;
    struct stat status;
    unsigned i;
    int seals;

    for (i = 0; i < link->region_count; i++) {
        all += link->regions[i].bytes;
    }
    /* Other kinds of files know no seals: reading one could block for as long as its owner likes. */
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || fstat(fd, &status) != 0 || fstatfs(fd, &filesystem) != 0) {
        return "a region is not memory of memfd_create";
    }
    /* A page of it can fail to be there at any time, and cannot be written by a system call instead. */
    if (filesystem.f_type == HUGETLBFS_MAGIC) {
        return "regions of huge pages are not taken";
    }
    if (bytes == 0 || status.st_size < 0 || (uint64_t)status.st_size < bytes) {
        return "a region is smaller than announced";
    }
    if (bytes > MEMIF_REGION_BYTES_MAX || all > MEMIF_REGION_BYTES_MAX) {
        return "regions are too large";
    }
    *map = (seals & F_SEAL_SHRINK) != 0;
    return NULL;
}

/*
 * The descriptor that was passed is one open file with the peer's, who could have what is written go to the end of it
 * (O_APPEND), or make the calls fail. What is opened again here is ours alone. Returns -1 if it cannot be.
 */
static int open_again(int fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

memif_reason ndsim_memif_memory_add(struct memif_link *link, uint64_t bytes, int fd)
{
    struct memif_region *region = &link->regions[link->region_count];
    memif_reason reason;
    bool map = false;

    *region = (struct memif_region){.bytes = bytes, .fd = -1};
    reason = check(link, bytes, fd, &map);
    if (reason == NULL && map) {
        void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (base != MAP_FAILED) {
            region->base = base;
        } else {
            reason = "a region cannot be mapped";
        }
    } else if (reason == NULL) {
        region->fd = open_again(fd);
        reason = region->fd < 0 ? "a region cannot be opened" : NULL;
    }
    close(fd);
    link->region_count += reason == NULL;
    return reason;
}

static void release_queue(struct memif_queue *queue)
{
    if (queue->event_fd >= 0) {
        close(queue->event_fd);
        queue->event_fd = -1;
    }
    queue->ring = NULL;
}

void ndsim_memif_memory_release(struct memif_link *link)
{
    unsigned i;

    for (i = 0; i < link->region_count; i++) {
        if (link->regions[i].base != NULL) {
            munmap(link->regions[i].base, link->regions[i].bytes);
        }
        if (link->regions[i].fd >= 0) {
            close(link->regions[i].fd);
        }
    }
    link->region_count = 0;
    release_queue(&link->transmit);
    release_queue(&link->receive);
}

bool ndsim_memif_is_eventfd(int fd)
{
    static const char kind[] = "anon_inode:[eventfd]";
    char path[32];
    char target[sizeof(kind) + 1];
    ssize_t bytes;

    /* Names of files begin with a slash or a bracket: none can look like this. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    bytes = readlink(path, target, sizeof(target));
    return bytes == (ssize_t)sizeof(kind) - 1 && memcmp(target, kind, sizeof(kind) - 1) == 0;
}

bool ndsim_memif_memory_read(const struct memif_region *region, uint32_t offset, uint8_t *bytes, size_t count)
{
    return pread(region->fd, bytes, count, (off_t)offset) == (ssize_t)count;
}

bool ndsim_memif_memory_write(const struct memif_region *region, uint32_t offset, const uint8_t *bytes, size_t count)
{
    /* Beyond the end, which may have come nearer, this would make it longer; the memory is the peer's either way. */
    return pwrite(region->fd, bytes, count, (off_t)offset) == (ssize_t)count;
}
