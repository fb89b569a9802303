/* SPDX-License-Identifier: BSD-3-Clause */
/* libnetdam: the user-space driver of the NetDAM card and of the soft device that replaces it on an ordinary socket. */
#ifndef NETDAM_H
#define NETDAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netdam/admin.h>
#include <netdam/counters.h>
#include <netdam/isa.h>
#include <netdam/regs.h>
#include <netdam/ring.h>
#include <netdam/status.h>
#include <netdam/transaction.h>

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
 * Errors: as netdam_peer_open(); also -ENOENT (@tenant is not known).
 */
NETDAM_API int netdam_peer_open_tenant(struct netdam_device *device, const char *address, uint32_t tenant,
                                       struct netdam_peer **peer);

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

/**
 * struct netdam_queue_config - optional settings of netdam_queue_create(); zero all of it first
 * @submission_depth, @completion_depth: entries, rounded up to a power of two, at most 65536; 0: 256
 * @first_index: where the free-running ring indices start; 0 is as good as any, others are for tests
 * @receive_depth: entries of the receive ring, likewise; 0: no receive ring, nothing can be sent to this queue pair.
 *                 Each message that arrives takes a place in the completion ring, too.
 * @tenant: whose messages the receive ring takes, or 0: those without a tenant
 * @type: enum netdam_queue_type. NETDAM_QUEUE_RAW: for Ethernet frames that are not NetDAM's; @tenant is 0 then
 */
struct netdam_queue_config {
    uint32_t submission_depth;
    uint32_t completion_depth;
    uint32_t first_index;
    uint32_t receive_depth;
    uint32_t tenant;
    uint32_t type;
};

/**
 * netdam_queue_create() - create a queue pair
 * @config: settings, or NULL
 * @queue: the handle; netdam_queue_destroy() or netdam_close() releases it
 *
 * The rings take their place from the same on-board memory as netdam_alloc().
 *
 * Errors: -EINVAL (@config), -ENOSPC (all queue pairs are in use, or on-board memory is full), -EOPNOTSUPP (this
 * firmware knows no receive rings; NETDAM_QUEUE_RAW: the device's port carries NetDAM alone, as a UDP socket does, or a
 * broker has it that leases such a pair to privileged clients only), -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_queue_create(struct netdam_device *device, const struct netdam_queue_config *config,
                                   struct netdam_queue **queue);

/**
 * netdam_queue_destroy() - flush what is outstanding, then release the queue pair
 * @queue: the handle, or NULL; invalid afterwards, whatever is returned. Completions not polled are lost.
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone; the rings' memory then stays reserved).
 */
NETDAM_API int netdam_queue_destroy(struct netdam_queue *queue);

/**
 * netdam_queue_outstanding() - requests posted whose completions have not been polled.
 */
NETDAM_API unsigned netdam_queue_outstanding(const struct netdam_queue *queue);

/**
 * netdam_queue_receive_key() - the key that a SEND to this queue pair must name; 0: it has no receive ring, or is RAW.
 */
NETDAM_API uint64_t netdam_queue_receive_key(const struct netdam_queue *queue);

/**
 * netdam_queue_receives() - receive buffers posted whose completions have not been polled.
 */
NETDAM_API unsigned netdam_queue_receives(const struct netdam_queue *queue);

/* Memory of another node: the region that @key names there, @address bytes from its start. */
struct netdam_remote {
    struct netdam_peer *peer;
    uint64_t key;
    uint64_t address;
};

/* Memory of this device: @address bytes from the start of @region. */
struct netdam_local {
    struct netdam_region *region;
    uint64_t address;
};

/* One part of a list: @length bytes at @local. */
struct netdam_piece {
    struct netdam_local local;
    uint32_t length;
    uint32_t reserved; /* 0 */
};

/**
 * struct netdam_hop - what a chain does at one node; zero all of it first
 * @opcode: NETDAM_OP_LOAD: payload = memory, only at the first hop but for FORWARDs; _LOAD_REDUCE: payload = payload op
 *          memory; _COMPARE: stop the chain unless memory equals the payload; _WRITE: memory = payload; _REDUCE: memory
 *          = memory op payload, exactly once; _FORWARD: pass on
 * @operation: enum netdam_alu; @type: enum netdam_type; NONE unless the opcode reduces
 * @remote: the node, and the memory there; FORWARD: key and address 0
 */
struct netdam_hop {
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t reserved[5];
    struct netdam_remote remote;
};

/**
 * netdam_chain_create() - prepare a chain
 * @hops: @count of them, 1 to NETDAM_SEGMENTS_MAX (32); copied. No node twice.
 * @chain: the handle; netdam_chain_destroy() or netdam_close() releases it
 *
 * The list takes on-board memory and a region. A chain may be posted any number of times, by several threads too.
 * Behind a hop that reads into the payload at most one may store, and it is the last.
 *
 * Errors: -EINVAL (@count, no peer or one of another device; what else is wrong shows when it is posted), -ESTALE (a
 * peer was reset), -ENOSPC, -ENOMEM, -EPERM, -ENODEV, -EIO.
 */
NETDAM_API int netdam_chain_create(struct netdam_device *device, const struct netdam_hop *hops, unsigned count,
                                   struct netdam_chain **chain);

/**
 * netdam_chain_destroy() - release a chain that no request uses any more
 * @chain: the handle, or NULL; invalid afterwards, whatever is returned
 *
 * Errors: -EIO, -ENODEV (the device refused, or is gone).
 */
NETDAM_API int netdam_chain_destroy(struct netdam_chain *chain);

/**
 * struct netdam_group_member - one node of a group; zero all of it first
 * @peer: the node; NULL at the own place
 * @key: of its region, which permits REMOTE_READ and REMOTE_WRITE to the others and LOCAL_READ and LOCAL_WRITE to itself
 * @input, @output: where in that region its vectors lie: the same address, or without overlap; multiples of 8
 * @control: where in that region NETDAM_CONTROL_BYTES(count) bytes lie that the group uses for itself, all 0 when it is
 *           created; a multiple of 8
 */
struct netdam_group_member {
    struct netdam_peer *peer;
    uint64_t key;
    uint64_t input;
    uint64_t output;
    uint64_t control;
};

/**
 * netdam_group_create() - prepare collectives of several nodes
 * @members: @count of them, 1 to NETDAM_MEMBERS_MAX (33), in the same order on every node; copied
 * @rank: the own place in it
 * @region: the own region, whose key is members[rank].key
 * @group: the handle; netdam_group_destroy() or netdam_close() releases it
 *
 * Every member posts the same collectives in the same order. When one has failed, the group is used up: destroy it,
 * clear `control` on every node, and create it anew.
 *
 * Errors: -EINVAL (@count, @rank, a peer missing or too much, or of another device), -ESTALE, -ENOSPC, -ENOMEM, -EPERM,
 * -ENODEV, -EIO.
 */
NETDAM_API int netdam_group_create(struct netdam_device *device, const struct netdam_group_member *members,
                                   unsigned count, unsigned rank, struct netdam_region *region,
                                   struct netdam_group **group);

/**
 * netdam_group_destroy() - release a group whose collectives have completed; as netdam_chain_destroy()
 */
NETDAM_API int netdam_group_destroy(struct netdam_group *group);

/**
 * struct netdam_request - one request to post; zero all of it first
 * @opcode: enum netdam_op; @operation: enum netdam_alu; @type: enum netdam_type
 * @list_count: with @list: how many pieces, 1 to NETDAM_LIST_MAX
 * @flags: NETDAM_DESCRIPTOR_* bits, see below
 * @user_data: returned in the completion
 * @remote: peer always; key and address where the opcode names memory; SEND: @key is the receive key of the queue pair
 *          there, @address 0
 * @local: source of WRITE, SEND and REDUCE, where READ stores, source and store of ECHO, also if @length is 0; atomics:
 *         no region
 * @length: bytes, at most length_max; SEND: at most payload_max; atomics: the element's size; with @list: 0, or the sum
 *          of the pieces
 * @immediate: with NETDAM_DESCRIPTOR_IMMEDIATE
 * @operand: atomics: FETCH_ADD, FETCH_OP, SWAP: value; CAS: compare, swap
 * @list: pieces that, in this order, are what @local says, which is then zero; or NULL. Copied
 * @result_address: TRANSACTION: where in the region of @local what is fetched is stored; netdam_transaction_begin()
 *                  sets it
 * @chain: NETDAM_OP_CHAIN: what to do with @length bytes from @local (none if it begins with LOAD); @remote is zero
 * @result: NETDAM_OP_CHAIN: where what comes back is stored; none if nothing does
 * @group: collectives: NETDAM_OP_ALL_REDUCE, _REDUCE_SCATTER, _ALL_GATHER, _BROADCAST, _BARRIER; with operation, type
 *         and @length, the vector's; @remote and @local are zero
 * @root: NETDAM_OP_BROADCAST: the place of the member whose vector it is
 *
 * Flags. Without any a request is executed exactly once, and in any order with others.
 *   NETDAM_DESCRIPTOR_FENCE: started after all earlier requests of this queue pair have completed
 *   NETDAM_DESCRIPTOR_ORDERED: sent after all earlier ORDERED requests towards this peer have completed
 *   NETDAM_DESCRIPTOR_RELAXED: a late copy may be executed again, even after the completion; only what modifies memory,
 *   is idempotent and returns nothing
 *   NETDAM_DESCRIPTOR_UNRELIABLE: completes when sent, with OK; may be lost, refused, or executed more than once. Only
 *   what modifies memory and returns nothing. The first towards a node waits until the node has been heard from
 *   NETDAM_DESCRIPTOR_IMMEDIATE: WRITE, SEND: the target gets @immediate in a receive completion, after the payload
 *   NETDAM_DESCRIPTOR_REPRODUCIBLE: float sums in one fixed order
 *   NETDAM_DESCRIPTOR_LIST: set by the library when @list is given; without @list the application keeps an array of
 *   struct netdam_list_entry in on-board memory, at @local
 *
 * What the firmware does not do completes as NETDAM_STATUS_LOCAL_UNSUPPORTED.
 */
struct netdam_request {
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t list_count;
    uint32_t flags;
    uint64_t user_data;
    struct netdam_remote remote;
    struct netdam_local local;
    uint32_t length;
    uint32_t immediate;
    uint64_t operand[2];
    const struct netdam_piece *list;
    uint64_t result_address;
    const struct netdam_chain *chain;
    struct netdam_local result;
    struct netdam_group *group;
    uint32_t root;
    uint32_t reserved; /* 0 */
};

/**
 * netdam_post() - hand requests to the device
 * @requests: @count of them; copied
 *
 * Local memory that a request names must stay as it is until the request has completed. The device is woken at most
 * once, and only if it asked for that.
 *
 * Returns how many were posted: all, or those before the first that does not fit or is malformed.
 * Errors, when none was posted: -EAGAIN (the ring is full, or too many completions wait to be polled), -EINVAL (the
 * first is malformed: no peer, handles of another device, a region missing or too much, or an impossible list),
 * -EMSGSIZE (the first is longer than length_max), -ESTALE (the device, or what the request names, was reset), -EIO
 * (the ring is broken: destroy it); and for the first request of a queue pair that has a @list, which needs a region
 * and on-board memory for such lists: -ENOSPC, -ENOMEM.
 */
NETDAM_API int netdam_post(struct netdam_queue *queue, const struct netdam_request *requests, unsigned count);

/**
 * struct netdam_transaction - up to NETDAM_TRANSACTION_ENTRIES_MAX operations on one node, all or nothing
 * @request: what netdam_post() takes when the list is complete. @user_data, @flags (FENCE, ORDERED) and nothing else
 *           may be set by the application
 * @room: bytes of on-board memory for the list
 * @entries: operations so far; @fetched: bytes that they return so far
 *
 * netdam_transaction_begin() fills it, netdam_transaction_compare(), netdam_transaction_fetch() and
 * netdam_transaction_write() add operations. However they are mixed, the node first makes all compares, then all
 * fetches, which like the compares see memory as it was before, then all writes in the order in which they were added;
 * and no other operation of the node comes in between. If a compare fails, or a key, range or permission is not right,
 * nothing is done, and @result of the completion is the index of the operation, counted from 0. Otherwise its @length
 * is the number of bytes fetched.
 *
 * It may be posted more than once, but not again before it has completed, as the list is in use until then.
 */
struct netdam_transaction {
    struct netdam_request request;
    uint32_t room;
    uint32_t entries;
    uint32_t fetched;
    uint32_t reserved;
};

/**
 * netdam_transaction_begin() - start a list without operations
 * @list: where the list is put together, anywhere in a region with NETDAM_PERMISSION_LOCAL_READ; in use from here until
 *        the completion
 * @room: bytes there: for each operation 24, and those of its data rounded up to a multiple of 8. The list is one
 *        packet: more than payload_max bytes of it complete as NETDAM_STATUS_LOCAL_DESCRIPTOR
 * @result_address: where in the same region what is fetched is stored, one behind the other in the order of the list;
 *                  it then needs NETDAM_PERMISSION_LOCAL_WRITE, too. Not looked at if nothing is fetched
 *
 * Errors: -EINVAL (no region, or @list with @room lies partly outside it).
 */
NETDAM_API int netdam_transaction_begin(struct netdam_transaction *transaction, struct netdam_local list, uint32_t room,
                                        uint64_t result_address);

/**
 * netdam_transaction_compare() - do nothing at all unless memory at @at equals @data
 * @at: peer, key and address; all operations of a transaction name the same peer. Any alignment
 * @data: @bytes, copied
 *
 * Returns the operation's index. Errors, when nothing was added: -EINVAL (another peer than before, or none), -ENOSPC (no
 * room, or too many operations).
 */
NETDAM_API int netdam_transaction_compare(struct netdam_transaction *transaction, struct netdam_remote at,
                                          const void *data, uint32_t bytes);

/**
 * netdam_transaction_fetch() - return @bytes of memory at @at as they were before
 *
 * They are stored behind those of earlier fetches: @fetched bytes, as it was before the call, from the result address.
 *
 * Returns and errors as netdam_transaction_compare(); -EMSGSIZE (more than NETDAM_TRANSACTION_FETCH_MAX in all).
 */
NETDAM_API int netdam_transaction_fetch(struct netdam_transaction *transaction, struct netdam_remote at,
                                        uint32_t bytes);

/**
 * netdam_transaction_write() - store @data in memory at @at if all compares hold
 *
 * Returns and errors as netdam_transaction_compare().
 */
NETDAM_API int netdam_transaction_write(struct netdam_transaction *transaction, struct netdam_remote at,
                                        const void *data, uint32_t bytes);

/**
 * struct netdam_receive - one buffer for a message; zero all of it first
 * @user_data: returned in the completion
 * @local: where the message is stored; the region needs NETDAM_PERMISSION_LOCAL_WRITE
 * @length: room, in bytes; with @list: 0, or the sum of the pieces
 * @list_count, @list: pieces that are filled in this order, instead of @local; as in struct netdam_request
 */
struct netdam_receive {
    uint64_t user_data;
    struct netdam_local local;
    uint32_t length;
    uint32_t list_count;
    const struct netdam_piece *list;
};

/**
 * netdam_post_receive() - give the device buffers for messages
 * @receives: @count of them; copied
 *
 * Each SEND to this queue pair takes one buffer, in the order of posting, and so does each WRITE with an immediate into
 * a region made for that (netdam_region_create_config()), which leaves the buffer as it is. The completion has
 * NETDAM_COMPLETION_RECEIVE in its flags, in @length how long the message is, and with NETDAM_COMPLETION_IMMEDIATE the
 * sender's value in @immediate. Where no buffer is posted the sender's request ends as NETDAM_STATUS_NOT_READY, where
 * it is too short as NETDAM_STATUS_BAD_LENGTH, and nothing happens here.
 *
 * Returns and errors as netdam_post(); -EINVAL also if the queue pair has no receive ring.
 */
NETDAM_API int netdam_post_receive(struct netdam_queue *queue, const struct netdam_receive *receives, unsigned count);

/*
 * Ordinary frames: a queue pair of type NETDAM_QUEUE_RAW makes the device a network card. What it may send, and which
 * frames reach it, is in docs/rings.md. Buffers are posted with netdam_post_receive(), and filled with one frame each:
 * the completion has NETDAM_COMPLETION_RECEIVE in its flags, and in @length how long the frame is. A frame for which
 * there is no buffer, or only one that is too short, is dropped (NETDAM_COUNTER_RAW_DROPPED).
 */

/**
 * struct netdam_frame - one Ethernet frame to send; zero all of it first
 * @user_data: returned in the completion
 * @local: where it lies, from the destination address on; the region needs NETDAM_PERMISSION_LOCAL_READ
 * @length: bytes, from 14 to the device's MTU and 14; with @list: 0, or the sum of the pieces
 * @list_count, @list: pieces that follow one another, instead of @local; as in struct netdam_request
 */
struct netdam_frame {
    uint64_t user_data;
    struct netdam_local local;
    uint32_t length;
    uint32_t list_count;
    const struct netdam_piece *list;
};

/**
 * netdam_raw_post() - put frames into the submission ring of a queue pair of type NETDAM_QUEUE_RAW
 * @frames: @count of them; what they and their lists say is copied, the bytes stay in use until the completion
 *
 * They leave in this order. A frame completes when it has left, or as NETDAM_STATUS_LOCAL_PERMISSION: its source is not
 * the device's MAC (and the queue pair has no rule NETDAM_STEERING_PROMISCUOUS), or it would pass for a NetDAM packet of
 * this device. Whether it arrives nobody tells.
 *
 * Returns and errors as netdam_post(); -EINVAL also for a queue pair of another type, for which netdam_post() is, as
 * that is not for this type.
 */
NETDAM_API int netdam_raw_post(struct netdam_queue *queue, const struct netdam_frame *frames, unsigned count);

/**
 * netdam_raw_steer() - have a queue pair of type NETDAM_QUEUE_RAW get the frames that a rule names
 * @rule: enum netdam_steering; @value: an EtherType or a UDP port, otherwise 0
 *
 * The rule lasts as long as the queue pair.
 *
 * Errors: -EINVAL (@value is not of the rule; the queue pair is of another type or has no receive ring), -EEXIST
 * (another queue pair has the rule), -ENOSPC (too many rules), -ESTALE, -EOPNOTSUPP (a broker's client that is not
 * privileged), -ENODEV, -EIO.
 */
NETDAM_API int netdam_raw_steer(struct netdam_queue *queue, enum netdam_steering rule, unsigned value);

/**
 * netdam_poll() - take completions without waiting
 * @completions: room for @count
 *
 * Completions come in any order. Those with NETDAM_COMPLETION_RECEIVE in their @flags are messages: their @user_data is
 * the receive buffer's, their @opcode the sender's. The others' are the request's. @status is an enum netdam_status.
 *
 * Returns how many were taken, 0 if none is there.
 * Errors: -ESTALE (none is left, and the device was reset), -EIO (the ring is broken: destroy the queue pair).
 */
NETDAM_API int netdam_poll(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count);

/**
 * netdam_wait() - take completions, waiting for the first
 * @timeout_ns: how long at most, or NETDAM_FOREVER
 *
 * Spins shortly, then yields the CPU, then sleeps: on the interrupt where the device has one for this queue pair,
 * otherwise for 50 us to 1 ms at a time.
 *
 * Returns how many were taken, at least 1.
 * Errors: -ETIMEDOUT, -EINVAL (@count is 0), -ESTALE, -EIO as netdam_poll().
 */
NETDAM_API int netdam_wait(struct netdam_queue *queue, struct netdam_completion *completions, unsigned count,
                           uint64_t timeout_ns);

/**
 * netdam_queue_fd() - a descriptor for poll(2): readable when a completion has arrived after netdam_queue_arm()
 *
 * Belongs to the queue pair; do not read or close it.
 *
 * Returns the descriptor. Errors: -ENOTSUP (this device or queue pair has no interrupt).
 */
NETDAM_API int netdam_queue_fd(const struct netdam_queue *queue);

/**
 * netdam_queue_arm() - ask for one interrupt at the next completion
 *
 * Returns 0: sleep in poll(2). Errors: -EAGAIN (completions are there already: poll them), -ENOTSUP, -ESTALE, -EIO.
 */
NETDAM_API int netdam_queue_arm(struct netdam_queue *queue);

/*
 * Blocking operations: post one request, wait for it, return its status. Completions of other requests that arrive
 * meanwhile are kept for netdam_poll().
 *
 * All return 0 if the request was applied exactly once, a positive enum netdam_status if it completed otherwise, or
 * -ETIMEDOUT (no completion within @timeout_ns: the request stays outstanding, may still be applied, and may still use
 * local memory until the peer is closed, the queue pair destroyed or the device reset; its completion is thrown away),
 * -EAGAIN (the ring stayed full, or too many completions wait to be polled: nothing was sent), -EINVAL, -ESTALE, -EIO
 * as netdam_post().
 *
 * The device gives up by itself after bounded retries, with NETDAM_STATUS_TIMEOUT: @timeout_ns may be NETDAM_FOREVER.
 */

/**
 * netdam_write() - copy @bytes from @from to @to
 *
 * More than length_max is sent as several requests one after the other; a failure then leaves those before it applied.
 */
NETDAM_API int netdam_write(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from,
                            uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_read() - copy @bytes from @from to @to; split as netdam_write()
 */
NETDAM_API int netdam_read(struct netdam_queue *queue, struct netdam_local to, struct netdam_remote from,
                           uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_reduce() - memory at @to = memory at @to @operation memory at @from, element by element
 * @operation: enum netdam_alu; @type: enum netdam_type
 * @bytes: a multiple of the element's size; split as netdam_write()
 */
NETDAM_API int netdam_reduce(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote to,
                             struct netdam_local from, uint64_t bytes, uint64_t timeout_ns);

/**
 * netdam_fetch_add() - add @value to the element at @at
 * @type: an integer type; sums wrap
 * @old: what was there before, zero-extended; or NULL
 */
NETDAM_API int netdam_fetch_add(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value,
                                uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_cas() - store @swap in the element at @at if it equals @compare
 * @type: an integer type
 * @old: what was there before, zero-extended; the store took place if it equals @compare. Or NULL
 */
NETDAM_API int netdam_cas(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t compare,
                          uint64_t swap, uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_swap() - store @value in the element at @at
 * @type: an integer type
 * @old: what was there before, zero-extended; or NULL
 */
NETDAM_API int netdam_swap(struct netdam_queue *queue, unsigned type, struct netdam_remote at, uint64_t value,
                           uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_fetch_op() - element at @at = element at @at @operation @value
 * @operation: enum netdam_alu; @type: enum netdam_type
 * @value: the bits of one element, zero-extended
 * @old: what was there before, likewise; or NULL
 */
NETDAM_API int netdam_fetch_op(struct netdam_queue *queue, unsigned operation, unsigned type, struct netdam_remote at,
                               uint64_t value, uint64_t *old, uint64_t timeout_ns);

/**
 * netdam_send() - put @bytes from @from into the next receive buffer of a queue pair
 * @to: @key is that queue pair's netdam_queue_receive_key(), @address 0
 * @bytes: at most payload_max: a message is one packet
 *
 * NETDAM_STATUS_NOT_READY: there was no buffer, nothing has changed; try again later.
 */
NETDAM_API int netdam_send(struct netdam_queue *queue, struct netdam_remote to, struct netdam_local from,
                           uint32_t bytes, uint64_t timeout_ns);

/**
 * netdam_transact() - apply a transaction, all of it or nothing
 * @transaction: complete; may be used again if the result is not -ETIMEDOUT
 * @failed: gets the index of the operation because of which nothing was done, if the result is
 *          NETDAM_STATUS_COMPARE_FAILED, BAD_KEY, BAD_RANGE or NO_PERMISSION; or NULL
 */
NETDAM_API int netdam_transact(struct netdam_queue *queue, const struct netdam_transaction *transaction,
                               unsigned *failed, uint64_t timeout_ns);

/**
 * netdam_echo() - have a node send @bytes from @buffer back into @buffer
 * @bytes: at most length_max; more than payload_max travels as several packets
 */
NETDAM_API int netdam_echo(struct netdam_queue *queue, struct netdam_peer *peer, struct netdam_local buffer,
                           uint32_t bytes, uint64_t timeout_ns);

/**
 * netdam_chain_run() - send @bytes from @from through a chain
 * @from: the payload; no region if the chain begins with LOAD
 * @to: where what comes back is stored; no region if nothing does. Of a chain that reads and does not end with a store
 * @bytes: at most length_max; more than fits a packet makes the tour in several
 * @hop: at which hop it failed, or NETDAM_HOP_NONE; or NULL
 */
NETDAM_API int netdam_chain_run(struct netdam_queue *queue, const struct netdam_chain *chain, struct netdam_local from,
                                struct netdam_local to, uint32_t bytes, unsigned *hop, uint64_t timeout_ns);

/*
 * Collectives, each called by every member of the group. Member i owns block i of a vector (netdam_block()). If one
 * fails, all others fail too, with the same status, and *@member is the place of the one that it is due to
 * (NETDAM_HOP_NONE: not known; or NULL).
 */

/**
 * netdam_all_reduce() - the outputs of all = the inputs of all, combined element by element
 * @operation: enum netdam_alu; @type: enum netdam_type; @bytes: of the vector, a multiple of the element's size
 *
 * Each block is combined in one order, from its owner on round the group: float sums are the same, bit for bit, on every
 * member, in every run.
 */
NETDAM_API int netdam_all_reduce(struct netdam_queue *queue, struct netdam_group *group, unsigned operation,
                                 unsigned type, uint32_t bytes, unsigned *member, uint64_t timeout_ns);

/**
 * netdam_reduce_scatter() - as netdam_all_reduce(), but each member's output gets the own block only, at its place
 */
NETDAM_API int netdam_reduce_scatter(struct netdam_queue *queue, struct netdam_group *group, unsigned operation,
                                     unsigned type, uint32_t bytes, unsigned *member, uint64_t timeout_ns);

/**
 * netdam_all_gather() - the outputs of all = the blocks of all, each from its owner's input
 */
NETDAM_API int netdam_all_gather(struct netdam_queue *queue, struct netdam_group *group, uint32_t bytes,
                                 unsigned *member, uint64_t timeout_ns);

/**
 * netdam_broadcast() - the outputs of all = the input of the member at place @root
 */
NETDAM_API int netdam_broadcast(struct netdam_queue *queue, struct netdam_group *group, unsigned root, uint32_t bytes,
                                unsigned *member, uint64_t timeout_ns);

/**
 * netdam_barrier() - return when every member has called it
 */
NETDAM_API int netdam_barrier(struct netdam_queue *queue, struct netdam_group *group, unsigned *member,
                              uint64_t timeout_ns);

/**
 * netdam_describe_datagram() - tell a NetDAM datagram by names, as a @tap has it
 * @datagram: @bytes of anything, from the NetDAM header on
 * @line: gets one line without line end, at most @line_bytes with the terminating zero, which it always has unless
 *        @line_bytes is 0. 240 bytes are enough. The wording is for people and may change.
 */
NETDAM_API void netdam_describe_datagram(const uint8_t *datagram, size_t bytes, char *line, size_t line_bytes);

/*
 * Names, from the lists of the specification: in capitals, as in "BAD_KEY"; NULL if the value is not defined. The
 * opposite direction ignores case and takes '-' for '_'; -ENOENT if there is no such name. Static memory.
 */
NETDAM_API const char *netdam_status_name(unsigned status);
NETDAM_API const char *netdam_status_text(unsigned status); /* a sentence */
NETDAM_API const char *netdam_op_name(unsigned opcode);
NETDAM_API const char *netdam_alu_name(unsigned operation);
NETDAM_API const char *netdam_type_name(unsigned type);
NETDAM_API const char *netdam_counter_name(unsigned counter);
NETDAM_API const char *netdam_counter_text(unsigned counter); /* a sentence */
NETDAM_API int netdam_op_by_name(const char *name);
NETDAM_API int netdam_alu_by_name(const char *name);
NETDAM_API int netdam_type_by_name(const char *name);
NETDAM_API int netdam_counter_by_name(const char *name);

#ifdef __cplusplus
}
#endif

#endif
