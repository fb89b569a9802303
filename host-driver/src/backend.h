/* SPDX-License-Identifier: BSD-3-Clause */
/* What the driver needs of a device, whatever it is made of: registers, memory, interrupts. */
#ifndef NDLIB_BACKEND_H
#define NDLIB_BACKEND_H

#include "netdam.h"

struct ndlib_log {
    void *opaque;
    void (*write)(void *opaque, enum netdam_log_level level, const char *line);
};

/* Formats one line and hands it to the application, if it wants any. */
void ndlib_log(const struct ndlib_log *log, enum netdam_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What another process maps to use the same device. The descriptors are the backend's, good for mmap(2) at the offsets.
 */
struct ndlib_share {
    int memory_fd; /* BAR2 */
    uint64_t memory_offset;
    int registers_fd; /* BAR0, or -1 */
    uint64_t registers_offset;
};

struct ndlib_backend_ops {
    /* BAR0: whole registers of 4 or 8 bytes, aligned. From any thread. */
    uint64_t (*register_read)(void *opaque, uint32_t offset, unsigned bytes);
    void (*register_write)(void *opaque, uint32_t offset, unsigned bytes, uint64_t value);
    /* A file descriptor that a vector's interrupt makes readable, owned by the backend, or -ENOTSUP, -EINVAL. */
    int (*interrupt_fd)(void *opaque, unsigned vector);
    /* Optional: 0, or -errno. */
    int (*share)(void *opaque, struct ndlib_share *share);
    void (*close)(void *opaque);
};

/* What is different when a broker holds the device and this process leases parts of it. */
struct ndlib_lease_ops {
    /* On-board memory: as ndlib_alloc_take() and ndlib_alloc_give(), but from the broker's book. */
    int (*take)(void *opaque, uint64_t bytes, uint64_t alignment, uint64_t *offset);
    int (*give)(void *opaque, uint64_t offset);
    /* The lease of the client after `after` (0: the first): 0, -ENOENT if there is none, or -errno. */
    int (*next)(void *opaque, uint64_t after, struct netdam_lease *lease);
    /* The broker has ended, and all leases with it. Cheap, from any thread. */
    bool (*is_gone)(void *opaque);
};

#define NDLIB_NAME_BYTES 64

struct ndlib_backend {
    const struct ndlib_backend_ops *ops;
    void *opaque;
    uint8_t *memory; /* BAR2; NULL if opened to observe */
    uint64_t memory_bytes;
    bool reset_on_open;                  /* somebody else may have left state in it */
    const struct ndlib_lease_ops *lease; /* NULL: the device is ours alone */
    char name[NDLIB_NAME_BYTES];
};

/*
 * The card at a PCI address, or with NULL the first found; through vfio-pci if that has it, else through sysfs. `root`
 * is where sysfs lists PCI devices. Errors as netdam_open().
 */
int ndlib_pci_open(const char *root, const char *address, const struct netdam_open_config *config,
                   const struct ndlib_log *log, struct ndlib_backend *backend);

/* The card at a PCI address that vfio-pci has, in that IOMMU group. Errors as netdam_open(). */
int ndlib_vfio_open(const char *address, unsigned group, const struct netdam_open_config *config,
                    const struct ndlib_log *log, struct ndlib_backend *backend);

/* A soft device: what follows "udp:" in its name. Errors as netdam_open(). */
int ndlib_udp_open(const char *arguments, const struct netdam_open_config *config, const struct ndlib_log *log,
                   struct ndlib_backend *backend);

/*
 * Where the broker that "pci" asks first would listen, by $NETDAM_BROKER or default; NULL if that is set to nothing.
 */
const char *ndlib_broker_path(void);

/* Connects; the descriptor, or what socket(2) or connect(2) say, or -ENAMETOOLONG. */
int ndlib_broker_connect(const char *path);

/* A device through the broker at the other end of `fd`, which is taken over. Errors as netdam_open(). */
int ndlib_broker_open(int fd, const char *path, const struct netdam_open_config *config, const struct ndlib_log *log,
                      struct ndlib_backend *backend);

/* netdam_open() without asking a broker. */
int ndlib_open_direct(const char *name, const struct netdam_open_config *config, struct netdam_device **device);

/* Takes over `backend` (and closes it on failure). Errors as netdam_open(). */
int ndlib_device_open(const struct ndlib_backend *backend, const struct netdam_open_config *config,
                      struct netdam_device **device);

#endif
