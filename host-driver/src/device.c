/* SPDX-License-Identifier: BSD-3-Clause */
/* A device as a whole: open, close, identity, reset, counters, administration commands, memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#define VERSION "0.1.0"

#define PCI_ROOT "/sys/bus/pci/devices"

#define READY_TIMEOUT_NS UINT64_C(1000000000)

/* What a register reads as when nobody is behind it. */
#define GONE UINT32_MAX

#define NETDAM_OPEN_FLAGS_DEFINED (NETDAM_OPEN_OBSERVE | NETDAM_OPEN_NO_RESET)

const char *netdam_version(void)
{
    return VERSION;
}

int ndlib_admin_errno(uint32_t admin_status)
{
    static const struct {
        uint32_t status;
        int error;
    } table[] = {
        {NETDAM_ADMIN_STATUS_OK, 0},
        {NETDAM_ADMIN_STATUS_BAD_COMMAND, -ENOSYS},
        {NETDAM_ADMIN_STATUS_BAD_ARGUMENT, -EINVAL},
        {NETDAM_ADMIN_STATUS_NO_SUCH, -ENOENT},
        {NETDAM_ADMIN_STATUS_NO_SPACE, -ENOSPC},
        {NETDAM_ADMIN_STATUS_EXISTS, -EEXIST},
        {NETDAM_ADMIN_STATUS_UNSUPPORTED, -EOPNOTSUPP},
        {GONE, -ENODEV},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].status == admin_status) {
            return table[i].error;
        }
    }
    return -EIO;
}

int ndlib_admin(struct netdam_device *device, enum netdam_admin command, const uint64_t *arguments, unsigned count,
                uint64_t results[NETDAM_ADMIN_RESULTS])
{
    int rc;

    for (unsigned i = 0; i < count; i++) {
        ndlib_write(device, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, arguments[i]);
    }
    ndlib_write(device, NETDAM_REG_ADMIN_COMMAND, 4, command);
    rc = ndlib_admin_errno((uint32_t)ndlib_read(device, NETDAM_REG_ADMIN_STATUS, 4));
    if (rc == 0 && results) {
        for (unsigned i = 0; i < NETDAM_ADMIN_RESULTS; i++) {
            results[i] = ndlib_read(device, NETDAM_REG_ADMIN_RESULT0 + 8 * i, 8);
        }
    }
    return rc;
}

int ndlib_may_change(const struct netdam_device *device)
{
    return (device->flags & NETDAM_OPEN_OBSERVE) != 0 ? -EPERM : 0;
}

/* Waits until the firmware runs, then reads what the driver itself needs. The mutex is held or nobody else is here. */
static int attach(struct netdam_device *device)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    uint64_t deadline = ndlib_now_ns() + READY_TIMEOUT_NS;
    uint32_t version;
    uint64_t bytes;

    if (ndlib_read(device, NETDAM_REG_ID, 4) != NETDAM_ID) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "%s: the identity register is not NetDAM's", device->backend.name);
        return -ENODEV;
    }
    while ((ndlib_read(device, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_READY) == 0) {
        if (ndlib_now_ns() >= deadline) {
            ndlib_log(&device->log, NETDAM_LOG_ERROR, "%s: the firmware does not become ready", device->backend.name);
            return -EIO;
        }
        nanosleep(&nap, NULL);
    }
    version = (uint32_t)ndlib_read(device, NETDAM_REG_SPEC_VERSION, 4);
    if (version >> 16 != NETDAM_SPEC_VERSION >> 16) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "%s: speaks specification %u.%u, this library %u.%u",
                  device->backend.name, version >> 16, version & 0xffff, NETDAM_SPEC_VERSION >> 16,
                  NETDAM_SPEC_VERSION & 0xffff);
        return -EPROTONOSUPPORT;
    }
    bytes = ndlib_read(device, NETDAM_REG_MEMORY_BYTES, 8);
    if (device->backend.memory && bytes > device->backend.memory_bytes) {
        ndlib_log(&device->log, NETDAM_LOG_ERROR, "%s: claims %llu bytes of memory, %llu are mapped",
                  device->backend.name, (unsigned long long)bytes, (unsigned long long)device->backend.memory_bytes);
        return -EIO;
    }
    device->backend.memory_bytes = bytes;
    device->vectors = (uint32_t)ndlib_read(device, NETDAM_REG_VECTORS, 4);
    device->doorbell_stride = (uint32_t)ndlib_read(device, NETDAM_REG_DOORBELL_STRIDE, 4);
    device->length_max = (uint32_t)ndlib_read(device, NETDAM_REG_LENGTH_MAX, 4);
    return 0;
}

int ndlib_device_open(const struct ndlib_backend *backend, const struct netdam_open_config *config,
                      struct netdam_device **device_out)
{
    struct netdam_device *device = calloc(1, sizeof(*device));
    int rc = -ENOMEM;

    if (!device) {
        goto fail_backend;
    }
    device->backend = *backend;
    device->log = (struct ndlib_log){.opaque = config->opaque, .write = config->log};
    device->flags = config->flags;
    if ((config->flags & NETDAM_OPEN_OBSERVE) != 0) {
        device->backend.memory = NULL;
    }
    atomic_init(&device->epoch, 1);
    rc = -pthread_mutex_init(&device->mutex, NULL);
    if (rc != 0) {
        goto fail_device;
    }
    rc = attach(device);
    if (rc == 0 && backend->reset_on_open) {
        ndlib_write(device, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
        rc = attach(device);
    }
    if (rc == 0) {
        rc = ndlib_alloc_init(&device->alloc, device->backend.memory ? device->backend.memory_bytes : 0);
    }
    if (rc != 0) {
        goto fail_mutex;
    }
    device->alloc.lease = backend->lease;
    device->alloc.opaque = backend->opaque;
    *device_out = device;
    return 0;

fail_mutex:
    pthread_mutex_destroy(&device->mutex);
fail_device:
    free(device);
fail_backend:
    backend->ops->close(backend->opaque);
    return rc;
}

/* Asks a broker where `name` says so or allows it. *fd becomes the connection, or -1: open the device directly. */
static int find_broker(const char *name, const struct ndlib_log *log, const char **path, int *fd)
{
    bool is_explicit = strncmp(name, "broker:", 7) == 0;

    *fd = -1;
    *path = is_explicit ? name + 7 : strcmp(name, "pci") == 0 ? ndlib_broker_path() : NULL;
    if (!*path) {
        return 0;
    }
    *fd = ndlib_broker_connect(*path);
    if (*fd >= 0) {
        return 0;
    }
    /* Nobody listens: the card is free, or its holder will say so. */
    if (!is_explicit && (*fd == -ENOENT || *fd == -ECONNREFUSED)) {
        *fd = -1;
        return 0;
    }
    ndlib_log(log, NETDAM_LOG_ERROR, "broker:%s: cannot connect: %s", *path, strerror(-*fd));
    return *fd == -ENOENT || *fd == -ECONNREFUSED ? -ENODEV : *fd;
}

static int open_any(const char *name, const struct netdam_open_config *config, bool ask_broker,
                    struct netdam_device **device)
{
    static const struct netdam_open_config defaults;
    struct ndlib_backend backend;
    struct ndlib_log log;
    const char *path;
    int fd = -1;
    int rc;

    if (!config) {
        config = &defaults;
    }
    log = (struct ndlib_log){.opaque = config->opaque, .write = config->log};
    if ((config->flags & ~(uint32_t)NETDAM_OPEN_FLAGS_DEFINED) != 0 || config->reserved != 0) {
        ndlib_log(&log, NETDAM_LOG_ERROR, "open: undefined flags or a reserved field is set");
        return -EINVAL;
    }
    if (ask_broker) {
        rc = find_broker(name, &log, &path, &fd);
        if (rc != 0) {
            return rc;
        }
    }
    if (fd >= 0) {
        rc = ndlib_broker_open(fd, path, config, &log, &backend);
    } else if (strcmp(name, "pci") == 0) {
        rc = ndlib_pci_open(PCI_ROOT, NULL, config, &log, &backend);
    } else if (strncmp(name, "pci:", 4) == 0) {
        rc = ndlib_pci_open(PCI_ROOT, name + 4, config, &log, &backend);
    } else if (strncmp(name, "udp:", 4) == 0) {
        rc = ndlib_udp_open(name + 4, config, &log, &backend);
    } else {
        ndlib_log(&log, NETDAM_LOG_ERROR, "\"%s\" names no kind of device: expected pci, pci:ADDRESS or udp:ADDR:PORT",
                  name);
        return -EINVAL;
    }
    return rc != 0 ? rc : ndlib_device_open(&backend, config, device);
}

int netdam_open(const char *name, const struct netdam_open_config *config, struct netdam_device **device)
{
    return open_any(name, config, true, device);
}

int ndlib_open_direct(const char *name, const struct netdam_open_config *config, struct netdam_device **device)
{
    return open_any(name, config, false, device);
}

void netdam_close(struct netdam_device *device)
{
    if (!device) {
        return;
    }
    /* Queue pairs first: what is outstanding uses peers and regions. */
    while (device->queues) {
        netdam_queue_destroy(device->queues);
    }
    ndlib_programs_destroy(device);
    while (device->peers) {
        netdam_peer_close(device->peers);
    }
    while (device->regions) {
        netdam_region_destroy(device->regions);
    }
    device->backend.ops->close(device->backend.opaque);
    ndlib_alloc_destroy(&device->alloc);
    pthread_mutex_destroy(&device->mutex);
    free(device);
}

const char *netdam_device_name(const struct netdam_device *device)
{
    return device->backend.name;
}

static void store_be(uint8_t *bytes, unsigned count, uint64_t value)
{
    for (unsigned i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> (8 * (count - 1 - i)));
    }
}

int netdam_query(struct netdam_device *device, struct netdam_device_info *info)
{
    if (ndlib_read(device, NETDAM_REG_ID, 4) != NETDAM_ID) {
        return -ENODEV;
    }
    memset(info, 0, sizeof(*info));
    info->spec_version = (uint32_t)ndlib_read(device, NETDAM_REG_SPEC_VERSION, 4);
    info->firmware_version = (uint32_t)ndlib_read(device, NETDAM_REG_FIRMWARE_VERSION, 4);
    info->firmware_abi = (uint32_t)ndlib_read(device, NETDAM_REG_FIRMWARE_ABI, 4);
    info->status = (uint32_t)ndlib_read(device, NETDAM_REG_STATUS, 4);
    info->vectors = (uint32_t)ndlib_read(device, NETDAM_REG_VECTORS, 4);
    info->queue_pairs = (uint32_t)ndlib_read(device, NETDAM_REG_QUEUE_PAIRS, 4);
    info->regions = (uint32_t)ndlib_read(device, NETDAM_REG_REGIONS, 4);
    info->peers = (uint32_t)ndlib_read(device, NETDAM_REG_PEERS, 4);
    info->mtu = (uint32_t)ndlib_read(device, NETDAM_REG_MTU, 4);
    info->payload_max = (uint32_t)ndlib_read(device, NETDAM_REG_PAYLOAD_MAX, 4);
    info->length_max = (uint32_t)ndlib_read(device, NETDAM_REG_LENGTH_MAX, 4);
    info->window = (uint32_t)ndlib_read(device, NETDAM_REG_WINDOW, 4);
    info->counters = (uint32_t)ndlib_read(device, NETDAM_REG_COUNTERS, 4);
    info->udp_port = (uint32_t)ndlib_read(device, NETDAM_REG_UDP_PORT, 4);
    info->memory_bytes = ndlib_read(device, NETDAM_REG_MEMORY_BYTES, 8);
    info->main_memory_bytes = ndlib_read(device, NETDAM_REG_MAIN_MEMORY_BYTES, 8);
    info->generation = ndlib_read(device, NETDAM_REG_GENERATION, 8);
    info->time_ns = ndlib_read(device, NETDAM_REG_TIME_NS, 8);
    store_be(info->mac, 6, ndlib_read(device, NETDAM_REG_MAC, 8));
    store_be(info->ipv4, 4, ndlib_read(device, NETDAM_REG_IPV4, 4));
    store_be(info->ipv6, 8, ndlib_read(device, NETDAM_REG_IPV6_HIGH, 8));
    store_be(info->ipv6 + 8, 8, ndlib_read(device, NETDAM_REG_IPV6_LOW, 8));
    return 0;
}

int netdam_opcode_query(struct netdam_device *device, unsigned opcode, unsigned operation, unsigned type,
                        unsigned *algebra)
{
    const uint64_t arguments[] = {opcode, operation, type};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    pthread_mutex_lock(&device->mutex);
    rc = ndlib_admin(device, NETDAM_ADMIN_OPCODE_QUERY, arguments, 3, results);
    pthread_mutex_unlock(&device->mutex);
    if (rc == -EINVAL || (rc == 0 && results[0] == 0)) {
        return -EOPNOTSUPP;
    }
    if (rc == 0 && algebra) {
        *algebra = (unsigned)results[1];
    }
    return rc;
}

int netdam_reset(struct netdam_device *device)
{
    int rc = ndlib_may_change(device);

    /* It is not only ours. */
    if (rc == 0 && device->backend.lease) {
        rc = -EPERM;
    }
    if (rc != 0) {
        return rc;
    }
    pthread_mutex_lock(&device->mutex);
    ndlib_write(device, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
    rc = attach(device);
    /* Release: whoever sees the new epoch also sees the completions that the reset has flushed. */
    atomic_fetch_add_explicit(&device->epoch, 1, memory_order_acq_rel);
    pthread_mutex_unlock(&device->mutex);
    return rc;
}

int netdam_counter_read(struct netdam_device *device, unsigned counter, uint64_t *value)
{
    if (counter >= (uint32_t)ndlib_read(device, NETDAM_REG_COUNTERS, 4) || counter >= NETDAM_PAGE_BYTES / 8) {
        return -EINVAL;
    }
    if (ndlib_read(device, NETDAM_REG_ID, 4) != NETDAM_ID) {
        return -ENODEV;
    }
    *value = ndlib_read(device, NETDAM_PAGE_COUNTERS + 8 * counter, 8);
    return 0;
}

void *netdam_memory(struct netdam_device *device)
{
    return device->backend.memory;
}

uint64_t netdam_memory_bytes(const struct netdam_device *device)
{
    return device->backend.memory ? device->backend.memory_bytes : 0;
}

int netdam_alloc(struct netdam_device *device, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    pthread_mutex_lock(&device->mutex);
    rc = ndlib_alloc_take(&device->alloc, bytes, alignment, offset);
    pthread_mutex_unlock(&device->mutex);
    return rc;
}

int netdam_free(struct netdam_device *device, uint64_t offset)
{
    int rc;

    pthread_mutex_lock(&device->mutex);
    rc = ndlib_alloc_give(&device->alloc, offset);
    pthread_mutex_unlock(&device->mutex);
    return rc;
}

int netdam_leases(struct netdam_device *device, struct netdam_lease *leases, unsigned count)
{
    const struct ndlib_lease_ops *ops = device->backend.lease;
    unsigned found = 0;
    uint64_t after = 0;

    if (!ops) {
        return -ENOTSUP;
    }
    while (found < INT32_MAX) {
        struct netdam_lease lease;
        int rc = ops->next(device->backend.opaque, after, &lease);

        if (rc == -ENOENT) {
            break;
        }
        if (rc != 0) {
            return rc;
        }
        after = lease.client;
        if (found < count) {
            leases[found] = lease;
        }
        found++;
    }
    return (int)found;
}
