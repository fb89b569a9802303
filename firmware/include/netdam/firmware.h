/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between a firmware image and whatever it runs in: QEMU device, headless node, simulator, test. */
#ifndef NETDAM_FIRMWARE_H
#define NETDAM_FIRMWARE_H

#include "netdam/types.h"

/* Raised whenever a structure or the meaning of a call below changes. */
#define NETDAM_FW_ABI_VERSION 4u

/* The symbol that an image exports: const struct netdam_fw_ops *netdam_fw_entry(void). */
#define NETDAM_FW_ENTRY "netdam_fw_entry"

/* CPU features that the platform has found and the firmware may use. */
#define NETDAM_FW_CPU_SSE42    0x01u /* x86: crc32 instruction */
#define NETDAM_FW_CPU_AVX2     0x02u
#define NETDAM_FW_CPU_AVX512F  0x04u
#define NETDAM_FW_CPU_F16C     0x08u
#define NETDAM_FW_CPU_AVX512BW 0x10u
#define NETDAM_FW_CPU_AVX512DQ 0x20u
#define NETDAM_FW_CPU_AVX512VL 0x40u
#define NETDAM_FW_CPU_PCLMUL   0x80u  /* carry-less multiplication */
#define NETDAM_FW_CPU_VPCLMUL  0x100u /* the same in AVX registers */

/* No timer is running. */
#define NETDAM_FW_NEVER UINT64_MAX

/* Addresses that share their first `prefix` bits. */
struct netdam_fw_network {
    uint8_t family; /* 4, 6, or 0: none */
    uint8_t prefix; /* bits */
    uint8_t address[16];
};

#define NETDAM_FW_NETWORKS 4

/* More would say little new to a switch that chooses among a few ways. */
#define NETDAM_FW_PATHS_MAX 64

/* How the firmware is told to behave. 0 in a field marked (default) chooses the firmware's default. */
struct netdam_fw_config {
    uint32_t abi_version;    /* NETDAM_FW_ABI_VERSION */
    uint32_t function_index; /* 0: physical function */
    uint8_t *memory;         /* on-board memory, aligned to 4096 bytes */
    uint64_t memory_bytes;   /* multiple of 4096 */

    uint8_t mac[6];
    uint16_t udp_port; /* (default) NETDAM_UDP_PORT */
    uint8_t ipv4[4];   /* zeros: none */
    uint8_t ipv4_gateway[4];
    uint8_t ipv6[16];       /* zeros: none */
    uint8_t ipv4_prefix;    /* bits; (default) 24 */
    uint8_t no_payload_crc; /* 1: do not add a CRC to payloads */
    uint8_t no_merge;       /* 1: every descriptor has packets of its own */
    uint8_t no_raw;         /* 1: the port carries NetDAM alone, so there are no RAW queue pairs */
    uint8_t shared_frames;  /* 1: frames lie in memory that somebody else reads and writes, see receive */
    uint16_t vectors;       /* interrupt vectors that exist */

    uint32_t mtu;          /* (default) 1500 */
    uint32_t queue_pairs;  /* (default) 16, at most NETDAM_QUEUE_PAIRS_MAX */
    uint32_t regions;      /* (default) 64 */
    uint32_t peers;        /* (default) 64 */
    uint32_t neighbours;   /* (default) 64 */
    uint32_t operations;   /* requests under way at once; (default) 1024 */
    uint32_t lanes;        /* far-end lanes remembered; (default) 4096 */
    uint32_t lane_windows; /* lanes with something unfinished; (default) 256 */
    uint32_t window;       /* unfinished numbers of the requester per peer; (default) 256; a power of two, at most
                              NETDAM_WINDOW_MAX, which is what every node takes from others */
    uint32_t retries;      /* repetitions before a packet is given up; (default) 10 */

    uint64_t cpu_features; /* NETDAM_FW_CPU_* */

    uint64_t rto_initial_ns;         /* retransmission time-out before the first measurement; (default) 50 ms */
    uint64_t rto_min_ns;             /* (default) 10 ms */
    uint64_t rto_max_ns;             /* (default) 1 s */
    uint64_t confirm_idle_ns;        /* an idle requester confirms its floor after this; (default) 100 ms */
    uint64_t lane_give_up_ns;        /* a silent unconfirmed lane is given up after this; (default) 60 s */
    uint64_t generation_interval_ns; /* between two batches of forgotten lanes at least; (default) 1 s */
    uint64_t refusal_interval_ns;    /* one refusal per this time on average; (default) 10 us */
    uint32_t refusal_burst;          /* refusals at once; (default) 256 */
    uint32_t chains;                 /* chains under way at once; (default) 64 */
    uint32_t tenants;                /* (default) 16 */
    uint32_t tenant_senders;         /* senders of tenants' frames remembered against replays; (default) 256 */
    uint32_t collectives;            /* collectives under way at once; (default) 8 */
    uint32_t replies;                /* what transactions fetched, kept for repetitions; (default) 256 */
    uint64_t first_number;           /* first lane number of a new context; (default) 1 */
    uint32_t paths;                  /* source ports that requests vary, from udp_port on; (default) 16, or as many
                                        as there are */
    uint64_t collective_wait_ns;     /* how long a collective waits for members that are alive; (default) 60 s */

    /* Where chains are passed on to, besides the own IPv4 prefix and static neighbours. */
    struct netdam_fw_network forward[NETDAM_FW_NETWORKS];
};

/* Why on-board memory is accessed. */
enum netdam_fw_access {
    NETDAM_FW_ACCESS_READ = 0,
    NETDAM_FW_ACCESS_WRITE = 1,
    NETDAM_FW_ACCESS_UPDATE = 2, /* read, compute, write */
};

enum netdam_fw_log_level {
    NETDAM_FW_LOG_ERROR = 0,
    NETDAM_FW_LOG_GUEST = 1, /* a mistake of the software on this host */
    NETDAM_FW_LOG_PEER = 2,  /* a mistake of another node */
    NETDAM_FW_LOG_INFO = 3,
};

/*
 * X(name, arguments, text): what the trace callback tells.
 */
#define NETDAM_FW_TRACE_LIST(X)                                                                                        \
    X(RX_REQUEST, "opcode, context, number", "a request passed all checks of form")                                    \
    X(RX_RESPONSE, "status, context, number", "an answer passed all checks of form")                                   \
    X(RX_ERR_DROP, "enum netdam_counter, frame bytes, 0", "a frame was dropped; the counter tells why")                \
    X(TX_REQUEST, "opcode, context, number", "a request was sent")                                                     \
    X(TX_RESPONSE, "status, context, number", "an answer was sent")                                                    \
    X(RETRANSMIT, "try, context, number", "a request was sent again")                                                  \
    X(ERR_REFUSED, "status, context, number", "a request was refused")                                                 \
    X(DESCRIPTOR, "opcode, queue pair, user data", "a descriptor was taken")                                           \
    X(COMPLETION, "status, queue pair, user data", "a completion was stored")                                          \
    X(ERR_RING, "queue pair, producer, consumer", "a ring index is impossible")                                        \
    X(ADMIN, "command, status, first argument", "an administration command was executed")                              \
    X(ERR_REGISTER, "offset, bytes, 1 for a write", "a register access was refused")                                   \
    X(GENERATION, "new generation, 0, 0", "lanes were forgotten or given up")                                          \
    X(FORWARD, "opcode, context, number", "a chain packet was passed on to the next node")                             \
    X(ERR_FORWARD, "opcode, context, number", "a chain packet could be neither passed on nor answered")                 \
    X(PATH, "1 retired or 0 in use again, context, path", "what is known of a path has changed")

#define NETDAM_FW_TRACE_ENUM(name, arguments, text) NETDAM_FW_TRACE_##name,
enum netdam_fw_trace { NETDAM_FW_TRACE_LIST(NETDAM_FW_TRACE_ENUM) NETDAM_FW_TRACE_COUNT };
#undef NETDAM_FW_TRACE_ENUM

/*
 * Cryptography for tenants. `slot` names a key that the platform keeps: below tenants + tenant_senders + 1. All
 * return false if they cannot, or, in open, if the tag is wrong; then nothing in `out` may be relied upon.
 */
struct netdam_fw_crypto {
    void *opaque;
    /* The first 16 bytes of HKDF-SHA256 (RFC 5869). */
    bool (*derive)(void *opaque, const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes,
                   const uint8_t *info, size_t info_bytes, uint8_t out[16]);
    /* The AES-128 key of a slot from here on. */
    bool (*set_key)(void *opaque, uint32_t slot, const uint8_t key[16]);
    /* AES-128-GCM with a tag of 16 bytes. Sealing is in place; `out` does not overlap `text`. */
    bool (*seal)(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16]);
    bool (*open)(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                 size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16], uint8_t *out);
};

/*
 * What the platform does for the firmware. Each is called only from within a call of struct netdam_fw_ops, in the same
 * thread. None may call back into the firmware.
 */
struct netdam_fw_platform {
    void *opaque;
    /*
     * Room for one outgoing Ethernet frame of `bytes`, or NULL while the port is full. The next call is transmit_end.
     * With shared_frames others may look at it from the start; what is a secret before it is sealed is sealed elsewhere.
     */
    uint8_t *(*transmit_begin)(void *opaque, size_t bytes);
    void (*transmit_end)(void *opaque, size_t bytes);
    /* Every access to on-board memory passes here before it is made. May be NULL. */
    void (*memory_access)(void *opaque, uint64_t offset, uint64_t bytes, enum netdam_fw_access access);
    void (*interrupt)(void *opaque, unsigned vector);
    /* Fills `bytes` random bytes: unpredictable in real time, seeded in simulation. */
    void (*entropy)(void *opaque, void *buffer, size_t bytes);
    /* May be NULL: no tenants. Calls as above. */
    const struct netdam_fw_crypto *crypto;
    /* May be NULL. `text` is static; a and b are numbers that it speaks of. */
    void (*log)(void *opaque, enum netdam_fw_log_level level, const char *text, uint64_t a, uint64_t b);
    /* May be NULL. */
    void (*trace)(void *opaque, enum netdam_fw_trace event, uint64_t a, uint64_t b, uint64_t c);
    /* MAIN_MEMORY_BYTES. May be NULL: 0. */
    uint64_t (*main_memory_bytes)(void *opaque);
    /* NETDAM_DEVICE_LINK_UP and NETDAM_DEVICE_FIRMWARE_STALE as they are now. May be NULL: link up. */
    uint32_t (*device_status)(void *opaque);
};

/* What register_write asks of the platform. */
#define NETDAM_FW_ACTION_RUN   0x1u /* call run soon */
#define NETDAM_FW_ACTION_RESET 0x2u /* reset the device: stop, load the image anew, start */

/* What a call of run found. */
struct netdam_fw_run_result {
    uint64_t next_ns;    /* call run no later than at this time; NETDAM_FW_NEVER if no timer runs */
    uint64_t work_bytes; /* bytes copied or computed in this call: what virtual time charges for */
    bool more;           /* the budget ran out or something waits for the port: call again without sleeping, or, if
                            transmit_begin yielded NULL, when the port has room */
    bool port_full;      /* transmit_begin yielded NULL */
};

/*
 * The firmware. All state lives in one block of state_bytes() bytes, aligned to 64, that the platform provides; the
 * image has no variables. Calls for one state come from one thread at a time. `now_ns` never runs backwards.
 */
struct netdam_fw_ops {
    uint32_t abi_version;      /* NETDAM_FW_ABI_VERSION; nothing else is looked at if it differs */
    uint32_t ops_bytes;        /* sizeof(struct netdam_fw_ops) */
    uint32_t firmware_version; /* major << 16 | minor */
    uint32_t reserved;
    const char *name;

    /* Bytes of state for this configuration; 0 if the configuration is impossible, with *error naming the field. */
    size_t (*state_bytes)(const struct netdam_fw_config *config, const char **error);
    /* Both structures are copied. Everything from before is forgotten; generation and contexts are drawn anew. */
    void (*start)(void *state, const struct netdam_fw_config *config, const struct netdam_fw_platform *platform,
                  uint64_t now_ns);
    /* Completes everything outstanding as FLUSHED. The state may then be started again or thrown away. */
    void (*stop)(void *state, uint64_t now_ns);
    /*
     * One Ethernet frame. It is not changed and not kept. It must not change during the call, unless shared_frames says
     * that it may: then all that is interpreted is copied first, and of a payload each byte has one of the values that it
     * had during the call, perhaps not the one that its CRC was checked with. Answers are sent within the call; what an
     * answer makes possible is done by the next run, which is due after each batch of frames.
     */
    void (*receive)(void *state, const uint8_t *frame, size_t bytes, uint64_t now_ns);
    /* Timers, rings, and sending, for about `budget_bytes` of payload. */
    void (*run)(void *state, uint64_t now_ns, uint64_t budget_bytes, struct netdam_fw_run_result *result);
    /*
     * To be called before sleeping. Sets NEED_WAKEUP in all submission rings, and returns true if the platform may
     * sleep: no ring holds a descriptor that could be taken. False: call run again. The flags are cleared by run.
     */
    bool (*prepare_sleep)(void *state);
    /* BAR0. Reads yield all ones if refused. Writes return NETDAM_FW_ACTION_*. */
    uint64_t (*register_read)(void *state, uint32_t offset, unsigned bytes);
    unsigned (*register_write)(void *state, uint32_t offset, unsigned bytes, uint64_t value, uint64_t now_ns);
};

const struct netdam_fw_ops *netdam_fw_entry(void);

#endif
