/* SPDX-License-Identifier: BSD-3-Clause */
/* The memif protocol, version 2.0, as it is on the control socket and in shared memory; all in host byte order. */
#ifndef NDSIM_MEMIF_WIRE_H
#define NDSIM_MEMIF_WIRE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MEMIF_COOKIE  0x3e31f20u
#define MEMIF_VERSION 0x200u

/* Control messages: packets of 128 bytes on a SOCK_SEQPACKET socket, the type first, fields unaligned. */
#define MEMIF_MESSAGE_BYTES 128
#define MEMIF_NAME_BYTES    32
#define MEMIF_SECRET_BYTES  24
#define MEMIF_REASON_BYTES  96

enum memif_message_type {
    MEMIF_ACK = 1,
    MEMIF_HELLO = 2,      /* server: what it supports */
    MEMIF_INIT = 3,       /* client: which interface it wants */
    MEMIF_ADD_REGION = 4, /* client, with a descriptor of memory */
    MEMIF_ADD_RING = 5,   /* client, with an eventfd */
    MEMIF_CONNECT = 6,    /* client: that was all */
    MEMIF_CONNECTED = 7,  /* server: go */
    MEMIF_DISCONNECT = 8, /* either */
};

/* Where fields are; their widths in bits are in their names. */
enum memif_message_offset {
    MEMIF_TYPE_16 = 0,

    MEMIF_HELLO_NAME = 2,
    MEMIF_HELLO_VERSION_MIN_16 = 34,
    MEMIF_HELLO_VERSION_MAX_16 = 36,
    MEMIF_HELLO_REGION_MAX_16 = 38,   /* highest index */
    MEMIF_HELLO_M2S_RING_MAX_16 = 40, /* highest index */
    MEMIF_HELLO_S2M_RING_MAX_16 = 42,
    MEMIF_HELLO_LOG2_SLOTS_MAX_8 = 44,

    MEMIF_INIT_VERSION_16 = 2,
    MEMIF_INIT_ID_32 = 4,
    MEMIF_INIT_MODE_8 = 8, /* 0: Ethernet */
    MEMIF_INIT_SECRET = 9,
    MEMIF_INIT_NAME = 33,

    MEMIF_REGION_INDEX_16 = 2,
    MEMIF_REGION_BYTES_64 = 4,

    MEMIF_RING_FLAGS_16 = 2,
    MEMIF_RING_INDEX_16 = 4,
    MEMIF_RING_REGION_16 = 6,
    MEMIF_RING_OFFSET_32 = 8,
    MEMIF_RING_LOG2_SLOTS_8 = 12,
    MEMIF_RING_PRIVATE_BYTES_16 = 13,

    MEMIF_CONNECT_NAME = 2, /* of CONNECT and CONNECTED */

    MEMIF_DISCONNECT_CODE_32 = 2,
    MEMIF_DISCONNECT_REASON = 6,
};

#define MEMIF_RING_FLAG_S2M 1u /* slave to master: from client to server */

/*
 * A ring of descriptors. The client owns `head`, the server `tail`, of both rings. From client to server, head counts
 * the frames' buffers that the client has filled, and tail those that the server is done with. From server to client,
 * head counts the empty buffers that the client has provided, and tail those that the server has filled. The receiving
 * end owns `flags`.
 */
struct memif_descriptor {
    _Atomic uint64_t low;  /* flags 16, region 16, length 32 */
    _Atomic uint64_t high; /* offset 32, metadata 32 */
};

struct memif_ring {
    uint32_t cookie;
    _Atomic uint16_t flags;
    _Atomic uint16_t head;
    uint8_t reserved0[56];
    _Atomic uint16_t tail;
    uint8_t reserved1[62];
    struct memif_descriptor descriptor[];
};

#define MEMIF_RING_MASKED 1u /* of flags: the receiver does not sleep, and wants no event */
#define MEMIF_CHAINED     1u /* of a descriptor's flags: the frame goes on in the next one */

_Static_assert(sizeof(struct memif_descriptor) == 16, "descriptor");
_Static_assert(offsetof(struct memif_ring, head) == 6, "head");
_Static_assert(offsetof(struct memif_ring, tail) == 64, "tail");
_Static_assert(sizeof(struct memif_ring) == 128, "ring");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words of a descriptor are taken apart by shifts");

#endif
