/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, their memory, and the nodes that requests go to; and what holds for all of the library. */
#ifndef LIBNETDAM_DEVICE_H
#define LIBNETDAM_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netdam/admin.h>
#include <netdam/counters.h>
#include <netdam/isa.h>
#include <netdam/regs.h>
#include <netdam/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NETDAM_API __attribute__((visibility("default")))
#else
#define NETDAM_API
#endif

/*
 * Conventions
 *
 * Functions that can fail return 0 (or a count) on success and a negative errno value otherwise; what a pointer
 * argument points to is written only on success. The blocking operations know a third kind of result: a positive
 * value is the enum netdam_status with which the request completed. The library never prints and never exits.
 *
 * Threads: functions that take a device, a region or a peer may be called from any thread at any time; the library
 * serializes them. Functions that take a queue pair may be called from any thread, but for one queue pair from one
 * thread at a time. A handle must not be used while or after it is destroyed.
 *
 * Lengths and offsets are bytes, times are nanoseconds. Offsets of on-board memory count from its start, addresses in
 * requests count from the start of the region they name.
 */

/* Time-out that never passes. */
#define NETDAM_FOREVER UINT64_MAX

struct netdam_device; /* an open card or soft device */
struct netdam_region; /* a part of its memory that requests may name */
struct netdam_peer;   /* another node */
struct netdam_queue;  /* a queue pair: submission ring, completion ring and perhaps a receive ring */
struct netdam_chain;  /* nodes that a request visits one after the other, and what it does there */
struct netdam_group;  /* nodes that execute collectives together */

/**
 * netdam_version() - version of the library that is linked, as "major.minor.patch"; static memory.
 */
NETDAM_API const char *netdam_version(void);

/* Severity of a log line. */
enum netdam_log_level {
    NETDAM_LOG_ERROR = 0,   /* an operation fails, and this is why */
    NETDAM_LOG_WARNING = 1, /* something is wrong, but was dealt with */
    NETDAM_LOG_INFO = 2,    /* state */
};

/* How netdam_open() opens. */
enum netdam_open_flag {
    /*
     * Look only: netdam_query(), netdam_counter_read() and netdam_device_name() work, everything else yields -EPERM.
     * Takes no lock and changes nothing, so a card that another process uses can be looked at.
     */
    NETDAM_OPEN_OBSERVE = 0x1,
    /* Do not reset the device. Without this flag a card starts empty, whatever a process that died has left in it. */
    NETDAM_OPEN_NO_RESET = 0x2,
};

/**
 * struct netdam_open_config - optional settings of netdam_open(); zero all of it first
 * @flags: enum netdam_open_flag
 * @reserved: 0
 * @opaque: handed to both callbacks
 * @log: called with one line without line end, or NULL. Lines come from any thread that calls the library and, with the
 *       udp backend, from the soft device's thread; the callback must not call the library.
 * @tap: udp backend only, or NULL: called with every NetDAM datagram sent (outgoing) or received, from the NetDAM
 *       header on. From the soft device's thread; the callback must not call the library and should be quick.
 */
struct netdam_open_config {
    uint32_t flags;
    uint32_t reserved;
    void *opaque;
    void (*log)(void *opaque, enum netdam_log_level level, const char *line);
    void (*tap)(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes);
};

/**
 * netdam_open() - open a device
 * @name: "pci:0000:00:04.0": the card at that PCI address: through vfio-pci where that has it, with interrupts; else
 *        through sysfs, without, which needs root
 *        "pci": the first card found; if a broker listens (at $NETDAM_BROKER, by default /run/netdamd.sock), through it
 *        "broker:PATH": what the broker (netdamd) at that socket holds
 *        "udp:ADDR:PORT[,memory=64M][,mtu=1500][,queue-pairs=16]": a soft device in this process, on a UDP socket bound
 *        to that IPv4 address and port (0: any free one). Sizes take K, M and G. ",merge=off" besides gives every
 *        request packets of its own. Needs no privilege. With ",wire=PATH:PEERPATH" not on the kernel's network but on
 *        an Ethernet wire of unix datagrams, as QEMU's "-netdev dgram" has them: PATH is bound here, PEERPATH is the
 *        other end's; ADDR is the address on that wire, a /24. With ",memif=PATH[,memif-role=client][,memif-id=0]
 *        [,memif-secret=TEXT]" on a memif link by the unix socket PATH, to which a client connects and at which a
 *        server listens; ADDR as on a wire
 * @config: settings, or NULL
 * @device: the handle; netdam_close() releases it
 *
 * A card is locked against other processes that use this library and, unless NETDAM_OPEN_NO_RESET is set, reset.
 * vfio-pci resets it in any case, when it is opened and when it is closed. To observe a card that vfio-pci has is to
 * open it if nobody has it open; otherwise it depends on the kernel (CONFIG_IO_STRICT_DEVMEM), and -EBUSY says no.
 *
 * A broker resets the card once, when it starts; its clients share it: netdam_reset() is refused, on-board memory,
 * queue pairs, regions and peers are limited to what the broker allows, and regions lie in memory from netdam_alloc().
 * When the broker ends, calls fail with -ENODEV or -ESTALE.
 *
 * Errors: -EINVAL (@name or @config is malformed; a log line names the part), -ENODEV (no such card, or what is there
 * is no NetDAM device), -EBUSY (another process has it, or a kernel driver), -EPROTONOSUPPORT (its specification has
 * another major version), -ENOTSUP (@tap without a soft device), -EIO (it does not become ready, or its memory is
 * smaller than it says), -EACCES, -ENOMEM, -EADDRINUSE, -EADDRNOTAVAIL, or what open(2), mmap(2), socket(2),
 * bind(2) or connect(2) say.
 */
NETDAM_API int netdam_open(const char *name, const struct netdam_open_config *config, struct netdam_device **device);

/**
 * netdam_close() - destroy everything that was created on a device, then release it
 * @device: the handle, or NULL. All its regions, peers, queue pairs and pointers into its memory become invalid.
 */
NETDAM_API void netdam_close(struct netdam_device *device);

/**
 * netdam_device_name() - the name under which the device was found, e.g. "pci:0000:00:04.0"; valid until
 * netdam_close().
 */
NETDAM_API const char *netdam_device_name(const struct netdam_device *device);

/**
 * struct netdam_device_info - what a device is and how it is configured (netdam/regs.h says more)
 * @spec_version: of the specification, major << 16 | minor; @firmware_version: likewise, of the firmware image
 * @firmware_abi: version of the interface between device and firmware
 * @status: NETDAM_DEVICE_* bits
 * @vectors: interrupt vectors
 * @queue_pairs, @regions, @peers: how many can exist at once
 * @mtu: largest IP packet; @payload_max: payload bytes of one packet; @length_max: bytes of one request
 * @window: unfinished modifications towards one node at most
 * @udp_port: own NetDAM port
 * @memory_bytes: size of on-board memory
 * @main_memory_bytes: bytes ever moved between the device and the host's main memory
 * @generation: of the device's lanes; @time_ns: the firmware's clock at its last call
 * @mac, @ipv4, @ipv6: own addresses, all zeros where there is none
 */
struct netdam_device_info {
    uint32_t spec_version;
    uint32_t firmware_version;
    uint32_t firmware_abi;
    uint32_t status;
    uint32_t vectors;
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint32_t mtu;
    uint32_t payload_max;
    uint32_t length_max;
    uint32_t window;
    uint32_t counters;
    uint32_t udp_port;
    uint64_t memory_bytes;
    uint64_t main_memory_bytes;
    uint64_t generation;
    uint64_t time_ns;
    uint8_t mac[6];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
};

/**
 * netdam_query() - read a device's identity and configuration
 *
 * Errors: -ENODEV (the device is gone).
 */
NETDAM_API int netdam_query(struct netdam_device *device, struct netdam_device_info *info);

/**
 * netdam_opcode_query() - ask whether the firmware executes a combination
 * @opcode: enum netdam_op; @operation: enum netdam_alu; @type: enum netdam_type
 * @algebra: NETDAM_ALG_* flags of the combination, or NULL
 *
 * Errors: -EOPNOTSUPP (not executed, or not defined), -EPERM (opened to observe), -ENODEV, -EIO.
 */
NETDAM_API int netdam_opcode_query(struct netdam_device *device, unsigned opcode, unsigned operation, unsigned type,
                                   unsigned *algebra);

/**
 * netdam_reset() - flush everything outstanding, load the firmware image anew, forget all state
 *
 * What was outstanding completes as NETDAM_STATUS_FLUSHED and can still be polled. All regions, peers and queue pairs
 * then answer -ESTALE and remain to be destroyed; memory allocations and their contents stay.
 *
 * Errors: -EPERM (opened to observe or through a broker), -EIO (not ready within a second), -ENODEV, -EPROTONOSUPPORT
 * (the image loaded now speaks another major version).
 */
NETDAM_API int netdam_reset(struct netdam_device *device);

/**
 * netdam_counter_read() - read a counter
 * @counter: enum netdam_counter
 *
 * Errors: -EINVAL (no such counter on this device), -ENODEV.
 */
NETDAM_API int netdam_counter_read(struct netdam_device *device, unsigned counter, uint64_t *value);

/**
 * struct netdam_lease - what one client of a broker holds
 * @client: the broker's number of it, never used again
 * @pid, @uid: of the process when it connected
 * @queue_pairs, @regions, @peers: how many
 * @memory_bytes: of on-board memory
 */
struct netdam_lease {
    uint64_t client;
    uint64_t memory_bytes;
    uint32_t pid;
    uint32_t uid;
    uint32_t queue_pairs;
    uint32_t regions;
    uint32_t peers;
    uint32_t reserved;
};

/**
 * netdam_leases() - ask the broker through which the device was opened who holds what
 * @leases: room for @count, oldest client first; the caller is one of them
 *
 * Returns how many clients there are, which may be more than @count. Errors: -ENOTSUP (no broker), -ENODEV (it has
 * ended).
 */
NETDAM_API int netdam_leases(struct netdam_device *device, struct netdam_lease *leases, unsigned count);

/*
 * On-board memory. It is mapped into the process as long as the device is open; loads and stores of 1 to 8 aligned
 * bytes are single accesses. A read-modify-write by the CPU is not atomic against the device: use an operation for
 * that.
 */

/**
 * netdam_memory() - where on-board memory is mapped; NULL if opened to observe. Belongs to the device.
 */
NETDAM_API void *netdam_memory(struct netdam_device *device);

/**
 * netdam_memory_bytes() - size of the mapping.
 */
NETDAM_API uint64_t netdam_memory_bytes(const struct netdam_device *device);

/**
 * netdam_alloc() - reserve a piece of on-board memory
 * @bytes: size, at least 1; rounded up to a multiple of 64
 * @alignment: of the offset; a power of two, or 0 for 64
 * @offset: where it starts. The contents are whatever was there before.
 *
 * The book is kept in this process: two allocations never overlap, nothing more is enforced. First fit.
 *
 * Errors: -EINVAL (@bytes or @alignment impossible), -ENOSPC (no gap is large enough), -ENOMEM, -EPERM.
 */
NETDAM_API int netdam_alloc(struct netdam_device *device, uint64_t bytes, uint64_t alignment, uint64_t *offset);

/**
 * netdam_free() - give an allocation back
 * @offset: as netdam_alloc() yielded it
 *
 * Destroy regions over it first; the library does not check that.
 *
 * Errors: -EINVAL (nothing is allocated there), -EBUSY (a broker does check).
 */
NETDAM_API int netdam_free(struct netdam_device *device, uint64_t offset);

/**
 * netdam_region_create() - let requests access a part of on-board memory
 * @offset, @bytes: which part
 * @permissions: NETDAM_PERMISSION_* bits
 * @key: what a remote node must name, or 0: the device draws a random one
 * @region: the handle; netdam_region_destroy() or netdam_close() releases it
 *
 * Errors: -EINVAL (outside the memory, or permissions undefined), -EEXIST (@key is in use), -ENOSPC (all regions are in
 * use), -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_region_create(struct netdam_device *device, uint64_t offset, uint64_t bytes, unsigned permissions,
                                    uint64_t key, struct netdam_region **region);

/**
 * struct netdam_region_config - everything that can be said of a region; zero all of it first
 * @offset, @bytes, @key: as netdam_region_create()
 * @permissions: NETDAM_PERMISSION_* bits
 * @tenant: whom it belongs to, or 0
 * @immediates: queue pair with a receive ring that gets the immediates of WRITEs into the region, or NULL: they are
 *              refused
 */
struct netdam_region_config {
    uint64_t offset;
    uint64_t bytes;
    uint64_t key;
    uint32_t permissions;
    uint32_t tenant;
    struct netdam_queue *immediates;
};

/**
 * netdam_region_create_config() - netdam_region_create() with all settings
 *
 * Errors: as netdam_region_create(); also -EINVAL (@immediates is of another device or has no receive ring), -ESTALE
 * (@immediates was reset) and -EOPNOTSUPP (this firmware does not do it).
 */
NETDAM_API int netdam_region_create_config(struct netdam_device *device, const struct netdam_region_config *config,
                                           struct netdam_region **region);

/**
 * netdam_region_destroy() - end all access through a region
 * @region: the handle, or NULL; invalid afterwards, whatever is returned
 *
 * Requests that use it fail from here on.
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone).
 */
NETDAM_API int netdam_region_destroy(struct netdam_region *region);

/**
 * netdam_region_key() - the key that gives a remote node access.
 */
NETDAM_API uint64_t netdam_region_key(const struct netdam_region *region);

/**
 * netdam_region_index() - the device's number of the region, for gather lists (struct netdam_list_entry).
 */
NETDAM_API uint32_t netdam_region_index(const struct netdam_region *region);

/**
 * netdam_region_pointer() - where the region's first byte is mapped; valid until netdam_close().
 */
NETDAM_API void *netdam_region_pointer(const struct netdam_region *region);

/**
 * netdam_region_bytes() - the region's size.
 */
NETDAM_API uint64_t netdam_region_bytes(const struct netdam_region *region);

/**
 * netdam_peer_open() - prepare requests to a node
 * @address: "ADDR", "ADDR:PORT" or, IPv6 with a port, "[ADDR]:PORT"; numbers only. Without port: NETDAM_UDP_PORT
 * @peer: the handle; netdam_peer_close() or netdam_close() releases it
 *
 * Nothing is sent yet: whether somebody answers shows with the first request.
 *
 * Errors: -EINVAL (@address is malformed; a log line says so), -ENOSPC (all peers are in use), -EOPNOTSUPP (the
 * firmware does not speak this family), -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_peer_open(struct netdam_device *device, const char *address, struct netdam_peer **peer);

/**
 * netdam_peer_open_tenant() - netdam_peer_open() with a tenant's key
 * @tenant: what netdam_tenant_set() made known, or 0: none
 *
 * All requests to this peer are sealed, and only answers of the tenant are taken.
 *
 * Errors: as netdam_peer_open(); also -ENOENT (@tenant is not known), -EOPNOTSUPP (a broker has the device, which lets
 * privileged clients alone name a tenant).
 */
NETDAM_API int netdam_peer_open_tenant(struct netdam_device *device, const char *address, uint32_t tenant,
                                       struct netdam_peer **peer);

/**
 * netdam_peer_open_paths() - netdam_peer_open_tenant() for requests that take so many ways through the network
 * @tenant: as there, or 0: none
 * @paths: source ports that requests to this peer vary, not more than the device has; 0: as many as the device has
 *
 * A soft device on a UDP socket has one. With 1, all packets to this peer belong to one flow.
 *
 * Errors: as netdam_peer_open_tenant(); also -EINVAL (@paths is more than the device has).
 */
NETDAM_API int netdam_peer_open_paths(struct netdam_device *device, const char *address, uint32_t tenant,
                                      unsigned paths, struct netdam_peer **peer);

/**
 * netdam_tenant_set() - make a tenant known to the device, give it another key, or forget it
 * @tenant: its number, not 0
 * @key: 16 bytes; not looked at with NETDAM_TENANT_MODE_NONE
 * @mode: NETDAM_TENANT_MODE_AUTHENTICATE, NETDAM_TENANT_MODE_ENCRYPT, or NETDAM_TENANT_MODE_NONE: forget it
 *
 * The device keeps the key and gives it to nobody. Netdamd takes this from privileged clients only.
 *
 * Errors: -EINVAL, -ENOENT (nothing to forget), -EEXIST (not forgotten: regions, queue pairs or peers belong to it),
 * -ENOSPC (too many tenants), -EOPNOTSUPP (the device has no cryptography), -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_tenant_set(struct netdam_device *device, uint32_t tenant, const uint8_t key[16], unsigned mode);

/**
 * netdam_peer_close() - flush what is outstanding towards a node, then forget it
 * @peer: the handle, or NULL; invalid afterwards, whatever is returned
 *
 * What was outstanding completes as NETDAM_STATUS_FLUSHED, or, where the device had not taken it out of the ring yet, as
 * NETDAM_STATUS_LOCAL_PEER. Take these completions before another peer is opened: the device gives its number to that
 * one, and what is still in a ring would go there.
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone).
 */
NETDAM_API int netdam_peer_close(struct netdam_peer *peer);

/**
 * netdam_neighbour_set() - give a node's link-layer address instead of having it asked for
 * @address: "ADDR", numbers only
 * @mac: its Ethernet address
 *
 * Errors: -EINVAL (@address is malformed), -ENOSPC, -EOPNOTSUPP, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_neighbour_set(struct netdam_device *device, const char *address, const uint8_t mac[6]);

#ifdef __cplusplus
}
#endif

#endif
