/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card: find it, and hand it to vfio where vfio-pci has it. Otherwise through sysfs: enable it, lock it, map its
 * registers and its memory, without interrupts.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "mmio.h"

struct pci {
    volatile uint8_t *registers;
    uint64_t registers_bytes;
    uint8_t *memory;
    uint64_t memory_bytes;
    int lock_fd;   /* resource0, locked; or -1 */
    int memory_fd; /* resource2, or -1 */
};

static uint64_t pci_register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    struct pci *pci = opaque;

    return ndlib_mmio_read(pci->registers + offset, bytes);
}

static void pci_register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    struct pci *pci = opaque;

    ndlib_mmio_write(pci->registers + offset, bytes, value);
}

static int pci_interrupt_fd(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
    return -ENOTSUP;
}

/*
 * The lock goes with the registers, and ends when the last process that was given them has closed and unmapped them:
 * the card is not free while somebody may still store into its memory.
 */
static int pci_share(void *opaque, struct ndlib_share *share)
{
    const struct pci *pci = opaque;

    if (pci->memory_fd < 0) {
        return -ENOTSUP;
    }
    *share = (struct ndlib_share){.memory_fd = pci->memory_fd, .registers_fd = pci->lock_fd};
    return 0;
}

static void pci_close(void *opaque)
{
    struct pci *pci = opaque;

    if (pci->memory) {
        munmap(pci->memory, pci->memory_bytes);
    }
    if (pci->registers) {
        munmap((void *)(uintptr_t)pci->registers, pci->registers_bytes);
    }
    if (pci->lock_fd >= 0) {
        close(pci->lock_fd); /* ends the lock */
    }
    if (pci->memory_fd >= 0) {
        close(pci->memory_fd);
    }
    free(pci);
}

static const struct ndlib_backend_ops pci_ops = {
    .register_read = pci_register_read,
    .register_write = pci_register_write,
    .interrupt_fd = pci_interrupt_fd,
    .share = pci_share,
    .close = pci_close,
};

/* Opens an attribute of a device; the fd or -errno. */
static int attribute_open(const char *root, const char *address, const char *name, int flags)
{
    char path[PATH_MAX];
    int fd;

    if (snprintf(path, sizeof(path), "%s/%s/%s", root, address, name) >= (int)sizeof(path)) {
        return -ENAMETOOLONG;
    }
    fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Reads an attribute that holds one number; 0 or -errno. */
static int attribute_read(const char *root, const char *address, const char *name, unsigned long *value)
{
    char text[32];
    char *end;
    ssize_t bytes;
    int fd = attribute_open(root, address, name, O_RDONLY);

    if (fd < 0) {
        return fd;
    }
    bytes = read(fd, text, sizeof(text) - 1);
    if (bytes < 0) {
        bytes = -errno;
    }
    close(fd);
    if (bytes < 0) {
        return (int)bytes;
    }
    text[bytes] = '\0';
    *value = strtoul(text, &end, 0);
    return end == text ? -EIO : 0;
}

static bool is_netdam(const char *root, const char *address)
{
    unsigned long vendor;
    unsigned long device;

    return attribute_read(root, address, "vendor", &vendor) == 0 &&
           attribute_read(root, address, "device", &device) == 0 && vendor == NETDAM_PCI_VENDOR_ID &&
           device == NETDAM_PCI_DEVICE_ID;
}

/* The lowest address that is a card's, so that "first" means the same every time. */
static int find_first(const char *root, char *address, size_t address_bytes)
{
    DIR *directory = opendir(root);
    struct dirent *entry;
    bool found = false;

    if (!directory) {
        return errno == ENOENT ? -ENODEV : -errno;
    }
    while ((entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= address_bytes) {
            continue;
        }
        if ((!found || strcmp(entry->d_name, address) < 0) && is_netdam(root, entry->d_name)) {
            memcpy(address, entry->d_name, strlen(entry->d_name) + 1);
            found = true;
        }
    }
    closedir(directory);
    return found ? 0 : -ENODEV;
}

/* The last part of where a link of a device points to: its driver's name, its group's number. 0 or -errno. */
static int link_read(const char *root, const char *address, const char *name, char *target, size_t target_bytes)
{
    char path[PATH_MAX];
    char text[PATH_MAX];
    const char *last;
    ssize_t bytes;

    if (snprintf(path, sizeof(path), "%s/%s/%s", root, address, name) >= (int)sizeof(path)) {
        return -ENAMETOOLONG;
    }
    bytes = readlink(path, text, sizeof(text) - 1);
    if (bytes < 0) {
        return -errno;
    }
    text[bytes] = '\0';
    last = strrchr(text, '/');
    last = last ? last + 1 : text;
    if (strlen(last) >= target_bytes) {
        return -ENAMETOOLONG;
    }
    memcpy(target, last, strlen(last) + 1);
    return 0;
}

static bool vfio_has_it(const char *root, const char *address)
{
    char driver[64];

    return link_read(root, address, "driver", driver, sizeof(driver)) == 0 && strcmp(driver, "vfio-pci") == 0;
}

/* The number of a device's IOMMU group; 0 or -ENODEV. */
static int group_read(const char *root, const char *address, unsigned *group)
{
    char text[16];
    char *end;
    unsigned long number;

    if (link_read(root, address, "iommu_group", text, sizeof(text)) != 0) {
        return -ENODEV;
    }
    number = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || number > INT_MAX) {
        return -ENODEV;
    }
    *group = (unsigned)number;
    return 0;
}

/*
 * Memory decoding must be on before the BARs answer. Bus mastering stays as it is: the device never needs it, and
 * completions are polled.
 */
static int enable(const char *root, const char *address)
{
    unsigned long enabled;
    int rc = attribute_read(root, address, "enable", &enabled);
    int fd;

    if (rc != 0 || enabled != 0) {
        return rc;
    }
    fd = attribute_open(root, address, "enable", O_WRONLY);
    if (fd < 0) {
        return fd;
    }
    rc = write(fd, "1", 1) == 1 ? 0 : -errno;
    close(fd);
    return rc;
}

/* Maps a resource file whole; 0 or -errno. */
static int map(int fd, uint64_t minimum, void **address, uint64_t *bytes)
{
    struct stat status;
    void *mapped;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if (status.st_size <= 0 || (uint64_t)status.st_size < minimum) {
        return -EIO;
    }
    mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        return -errno;
    }
    *address = mapped;
    *bytes = (uint64_t)status.st_size;
    return 0;
}

static int open_resources(struct pci *pci, const char *root, const char *address, bool observe,
                          const struct ndlib_log *log)
{
    const char *what = "resource0";
    void *mapped = NULL;
    int fd;
    int rc;

    fd = attribute_open(root, address, what, O_RDWR);
    if (fd < 0) {
        rc = fd;
        goto fail;
    }
    if (!observe && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
        close(fd);
        ndlib_log(log, NETDAM_LOG_ERROR, "pci:%s: another process uses it", address);
        return rc;
    }
    rc = map(fd, NETDAM_BAR0_BYTES, &mapped, &pci->registers_bytes);
    if (rc != 0) {
        close(fd);
        goto fail;
    }
    pci->registers = mapped;
    if (observe) {
        close(fd);
        return 0;
    }
    pci->lock_fd = fd;

    what = "resource2";
    fd = attribute_open(root, address, what, O_RDWR);
    if (fd < 0) {
        rc = fd;
        goto fail;
    }
    pci->memory_fd = fd;
    rc = map(fd, 1, &mapped, &pci->memory_bytes);
    if (rc != 0) {
        goto fail;
    }
    pci->memory = mapped;
    return 0;

fail:
    ndlib_log(log, NETDAM_LOG_ERROR, "pci:%s: cannot map %s: %s", address, what, strerror(-rc));
    return rc;
}

int ndlib_pci_open(const char *root, const char *address, const struct netdam_open_config *config,
                   const struct ndlib_log *log, struct ndlib_backend *backend)
{
    bool observe = (config->flags & NETDAM_OPEN_OBSERVE) != 0;
    char found[32];
    struct pci *pci;
    bool vfio;
    int rc;

    if (config->tap) {
        ndlib_log(log, NETDAM_LOG_ERROR, "pci: a card's packets cannot be tapped");
        return -ENOTSUP;
    }
    if (!address) {
        rc = find_first(root, found, sizeof(found));
        if (rc != 0) {
            ndlib_log(log, NETDAM_LOG_ERROR, "pci: no card with id %04x:%04x", NETDAM_PCI_VENDOR_ID,
                      NETDAM_PCI_DEVICE_ID);
            return rc;
        }
        address = found;
    } else if (address[0] == '\0' || strchr(address, '/') || address[0] == '.' || strlen(address) >= sizeof(found)) {
        ndlib_log(log, NETDAM_LOG_ERROR, "pci: \"%s\" is no PCI address", address);
        return -EINVAL;
    } else if (!is_netdam(root, address)) {
        ndlib_log(log, NETDAM_LOG_ERROR, "pci:%s: no card with id %04x:%04x", address, NETDAM_PCI_VENDOR_ID,
                  NETDAM_PCI_DEVICE_ID);
        return -ENODEV;
    }

    vfio = vfio_has_it(root, address);
    if (vfio) {
        unsigned long enabled = 0;
        unsigned group;

        /* Somebody has it open: vfio lets nobody else in. To look takes its registers in sysfs, if the kernel allows.
         */
        if (!observe || attribute_read(root, address, "enable", &enabled) != 0 || enabled == 0) {
            rc = group_read(root, address, &group);
            if (rc != 0) {
                ndlib_log(log, NETDAM_LOG_ERROR, "pci:%s: vfio-pci has it, but it is in no IOMMU group", address);
                return rc;
            }
            return ndlib_vfio_open(address, group, config, log, backend);
        }
    }
    rc = enable(root, address);
    if (rc != 0) {
        ndlib_log(log, NETDAM_LOG_ERROR, "pci:%s: cannot enable: %s", address, strerror(-rc));
        return rc;
    }
    pci = calloc(1, sizeof(*pci));
    if (!pci) {
        return -ENOMEM;
    }
    pci->lock_fd = -1;
    pci->memory_fd = -1;
    rc = open_resources(pci, root, address, observe, log);
    if (rc != 0) {
        pci_close(pci);
        /* With CONFIG_IO_STRICT_DEVMEM a BAR that a driver has claimed is nobody else's. */
        if (vfio && rc == -EINVAL) {
            ndlib_log(log, NETDAM_LOG_ERROR,
                      "pci:%s: another process has it through vfio-pci, and this kernel lets "
                      "nobody look meanwhile",
                      address);
            return -EBUSY;
        }
        return rc;
    }
    *backend = (struct ndlib_backend){
        .ops = &pci_ops,
        .opaque = pci,
        .memory = pci->memory,
        .memory_bytes = pci->memory_bytes,
        .reset_on_open = !observe && (config->flags & NETDAM_OPEN_NO_RESET) == 0,
    };
    snprintf(backend->name, sizeof(backend->name), "pci:%.31s", address);
    return 0;
}
