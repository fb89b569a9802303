/* SPDX-License-Identifier: BSD-3-Clause */
/* The card through vfio-pci: registers, memory, and interrupts by eventfd. Linux: Documentation/driver-api/vfio.rst. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend.h"
#include "mmio.h"

#define VFIO_DIRECTORY "/dev/vfio"

/* As many as a library's device has bits for (internal.h: vectors_used). */
#define VECTORS_MAX 64u

struct mapping {
    void *address;
    size_t bytes;
    uint64_t offset; /* in the device's file */
};

struct vfio {
    struct ndlib_log log;
    char address[32];
    int container;
    int group;
    int device;
    struct mapping registers;
    struct mapping memory;
    uint64_t config_offset; /* of configuration space in the device's file */
    uint32_t vectors;       /* that the card has; 0: none, or not to be used */
    bool interrupts_on;
    int fds[VECTORS_MAX]; /* eventfds, valid when interrupts are on */
};

static uint64_t vfio_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    struct vfio *vfio = opaque;

    return ndlib_mmio_read((volatile uint8_t *)vfio->registers.address + offset, bytes);
}

static void vfio_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct vfio *vfio = opaque;

    ndlib_mmio_write((volatile uint8_t *)vfio->registers.address + offset, bytes, value);
}

/* Sets bits of the command register; 0 or -errno. */
static int command_set(struct vfio *vfio, uint16_t bits)
{
    off_t offset = (off_t)(vfio->config_offset + PCI_COMMAND);
    uint8_t bytes[2];
    unsigned command;

    if (pread(vfio->device, bytes, sizeof(bytes), offset) != sizeof(bytes)) {
        return -EIO;
    }
    command = bytes[0] | (unsigned)bytes[1] << 8;
    if ((command & bits) == bits) {
        return 0;
    }
    command |= bits;
    bytes[0] = (uint8_t)command;
    bytes[1] = (uint8_t)(command >> 8);
    return pwrite(vfio->device, bytes, sizeof(bytes), offset) == sizeof(bytes) ? 0 : -EIO;
}

/* Has each vector signal the eventfd of the same index. */
static int set_irqs(struct vfio *vfio)
{
    const size_t fd_bytes = vfio->vectors * sizeof(vfio->fds[0]);
    struct vfio_irq_set *set = calloc(1, sizeof(*set) + fd_bytes);
    int rc;

    if (!set) {
        return -ENOMEM;
    }
    set->argsz = (uint32_t)(sizeof(*set) + fd_bytes);
    set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    set->index = VFIO_PCI_MSIX_IRQ_INDEX;
    set->count = vfio->vectors;
    memcpy(set->data, vfio->fds, fd_bytes);
    rc = ioctl(vfio->device, VFIO_DEVICE_SET_IRQS, set) == 0 ? 0 : -errno;
    free(set);
    return rc;
}

static void close_eventfds(struct vfio *vfio, uint32_t count)
{
    while (count > 0) {
        close(vfio->fds[--count]);
    }
}

/*
 * All vectors at once: older kernels cannot add one to a card whose interrupts are on. An interrupt is a write by the
 * card to an address that the interrupt controller owns, hence the bus mastering, which nothing else needs.
 */
static int interrupts_on(struct vfio *vfio)
{
    uint32_t count = 0;
    int rc = 0;

    while (rc == 0 && count < vfio->vectors) {
        vfio->fds[count] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (vfio->fds[count] < 0) {
            rc = -errno;
        } else {
            count++;
        }
    }
    if (rc == 0) {
        rc = set_irqs(vfio);
    }
    if (rc == 0) {
        rc = command_set(vfio, PCI_COMMAND_MASTER);
    }
    if (rc != 0) {
        ndlib_log(&vfio->log, NETDAM_LOG_WARNING, "pci:%s: interrupts cannot be used: %s", vfio->address,
                  strerror(-rc));
        close_eventfds(vfio, count);
        vfio->vectors = 0;
        return rc;
    }
    vfio->interrupts_on = true;
    return 0;
}

/* Called with the library's mutex held. */
static int vfio_interrupt_fd(void *opaque, unsigned vector)
{
    struct vfio *vfio = opaque;
    int rc;

    if (vector >= vfio->vectors) {
        return vfio->vectors == 0 ? -ENOTSUP : -EINVAL;
    }
    if (!vfio->interrupts_on) {
        rc = interrupts_on(vfio);
        if (rc != 0) {
            return rc;
        }
    }
    return vfio->fds[vector];
}

/* Whoever maps these keeps the device open. */
static int vfio_share(void *opaque, struct ndlib_share *share)
{
    const struct vfio *vfio = opaque;

    if (!vfio->memory.address) {
        return -ENOTSUP;
    }
    *share = (struct ndlib_share){
        .memory_fd = vfio->device,
        .memory_offset = vfio->memory.offset,
        .registers_fd = vfio->device,
        .registers_offset = vfio->registers.offset,
    };
    return 0;
}

static void vfio_close(void *opaque)
{
    struct vfio *vfio = opaque;

    if (vfio->registers.address) {
        munmap(vfio->registers.address, vfio->registers.bytes);
    }
    if (vfio->memory.address) {
        munmap(vfio->memory.address, vfio->memory.bytes);
    }
    /* The device's end turns off interrupts and bus mastering, and resets the card. */
    if (vfio->device >= 0) {
        close(vfio->device);
    }
    if (vfio->interrupts_on) {
        close_eventfds(vfio, vfio->vectors);
    }
    if (vfio->group >= 0) {
        close(vfio->group);
    }
    if (vfio->container >= 0) {
        close(vfio->container);
    }
    free(vfio);
}

static const struct ndlib_backend_ops vfio_ops = {
    .register_read = vfio_register_read,
    .register_write = vfio_register_write,
    .interrupt_fd = vfio_interrupt_fd,
    .share = vfio_share,
    .close = vfio_close,
};

/* Logs what failed; returns `rc`. */
static int failed(const struct vfio *vfio, const char *what, int rc)
{
    ndlib_log(&vfio->log, NETDAM_LOG_ERROR, "pci:%s: vfio: %s: %s", vfio->address, what, strerror(-rc));
    return rc;
}

static int open_group(struct vfio *vfio, unsigned number)
{
    struct vfio_group_status status = {.argsz = sizeof(status)};
    char path[sizeof(VFIO_DIRECTORY) + 16];

    vfio->container = open(VFIO_DIRECTORY "/vfio", O_RDWR | O_CLOEXEC);
    if (vfio->container < 0) {
        return failed(vfio, VFIO_DIRECTORY "/vfio", -errno);
    }
    if (ioctl(vfio->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
        ioctl(vfio->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1_IOMMU) != 1) {
        return failed(vfio, "this kernel's version or IOMMU", -ENOTSUP);
    }
    snprintf(path, sizeof(path), VFIO_DIRECTORY "/%u", number);
    vfio->group = open(path, O_RDWR | O_CLOEXEC);
    if (vfio->group < 0) {
        return failed(vfio, errno == EBUSY ? "another process uses it" : path, -errno);
    }
    if (ioctl(vfio->group, VFIO_GROUP_GET_STATUS, &status) != 0) {
        return failed(vfio, path, -errno);
    }
    if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
        return failed(vfio, "another device of its group has a kernel driver", -EBUSY);
    }
    if (ioctl(vfio->group, VFIO_GROUP_SET_CONTAINER, &vfio->container) != 0 ||
        ioctl(vfio->container, VFIO_SET_IOMMU, VFIO_TYPE1_IOMMU) != 0) {
        return failed(vfio, "container", -errno);
    }
    vfio->device = ioctl(vfio->group, VFIO_GROUP_GET_DEVICE_FD, vfio->address);
    return vfio->device < 0 ? failed(vfio, "device", -errno) : 0;
}

static int region_info(const struct vfio *vfio, unsigned index, struct vfio_region_info *info)
{
    *info = (struct vfio_region_info){.argsz = sizeof(*info), .index = index};
    return ioctl(vfio->device, VFIO_DEVICE_GET_REGION_INFO, info) == 0 ? 0 : -errno;
}

static int map(const struct vfio *vfio, unsigned bar, uint64_t minimum, struct mapping *mapping)
{
    struct vfio_region_info info;
    void *address;
    int rc = region_info(vfio, VFIO_PCI_BAR0_REGION_INDEX + bar, &info);

    if (rc != 0) {
        return rc;
    }
    if (info.size < minimum || (info.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
        return -EIO;
    }
    address = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, vfio->device, (off_t)info.offset);
    if (address == MAP_FAILED) {
        return -errno;
    }
    *mapping = (struct mapping){address, info.size, info.offset};
    return 0;
}

static int open_device(struct vfio *vfio, unsigned group, bool observe)
{
    struct vfio_irq_info irq = {.argsz = sizeof(irq), .index = VFIO_PCI_MSIX_IRQ_INDEX};
    struct vfio_region_info config;
    int rc = open_group(vfio, group);

    if (rc != 0) {
        return rc;
    }
    rc = region_info(vfio, VFIO_PCI_CONFIG_REGION_INDEX, &config);
    if (rc == 0) {
        vfio->config_offset = config.offset;
        /* BARs do not answer without it, and touching them would be SIGBUS. */
        rc = command_set(vfio, PCI_COMMAND_MEMORY);
    }
    if (rc != 0) {
        return failed(vfio, "configuration space", rc);
    }
    rc = map(vfio, NETDAM_BAR_REGISTERS, NETDAM_BAR0_BYTES, &vfio->registers);
    if (rc != 0) {
        return failed(vfio, "registers", rc);
    }
    if (observe) {
        return 0;
    }
    rc = map(vfio, NETDAM_BAR_MEMORY, 1, &vfio->memory);
    if (rc != 0) {
        return failed(vfio, "memory", rc);
    }
    if (ioctl(vfio->device, VFIO_DEVICE_GET_IRQ_INFO, &irq) == 0 && (irq.flags & VFIO_IRQ_INFO_EVENTFD) != 0) {
        vfio->vectors = irq.count < VECTORS_MAX ? irq.count : VECTORS_MAX;
    }
    return 0;
}

int ndlib_vfio_open(const char *address, unsigned group, const struct netdam_open_config *config,
                    const struct ndlib_log *log, struct ndlib_backend *backend)
{
    bool observe = (config->flags & NETDAM_OPEN_OBSERVE) != 0;
    struct vfio *vfio = calloc(1, sizeof(*vfio));
    int rc;

    if (!vfio) {
        return -ENOMEM;
    }
    vfio->log = *log;
    vfio->container = vfio->group = vfio->device = -1;
    snprintf(vfio->address, sizeof(vfio->address), "%s", address);
    rc = open_device(vfio, group, observe);
    if (rc != 0) {
        vfio_close(vfio);
        return rc;
    }
    *backend = (struct ndlib_backend){
        .ops = &vfio_ops,
        .opaque = vfio,
        .memory = vfio->memory.address,
        .memory_bytes = vfio->memory.bytes,
        .reset_on_open = !observe && (config->flags & NETDAM_OPEN_NO_RESET) == 0,
    };
    snprintf(backend->name, sizeof(backend->name), "pci:%.31s", address);
    return 0;
}
