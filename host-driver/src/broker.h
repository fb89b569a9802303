/* SPDX-License-Identifier: BSD-3-Clause */
/* What library and broker (netdamd) say to each other over a unix socket, in messages of SOCK_SEQPACKET. */
#ifndef NDLIB_BROKER_H
#define NDLIB_BROKER_H

#include "netdam/types.h"

#define NDLIB_BROKER_SOCKET  "/run/netdamd.sock"
#define NDLIB_BROKER_VERSION 1u

/*
 * X(name, number, values, text). Each request is one struct ndlib_broker_request of which the first `values` values are
 * used and the others 0. Each but DOORBELL is answered by one struct ndlib_broker_reply of the same type, in order; a
 * client that sends more than it reads is dropped, and so is one that sends anything else than this. HELLO comes first,
 * once.
 */
#define NDLIB_BROKER_LIST(X)                                                                                           \
    X(HELLO, 1, 1, "flags -> bytes of on-board memory, where it and BAR0 start in their files; name; the files")       \
    X(READ, 2, 2, "offset, bytes -> a register of the identity or counter page; anything else reads as all ones")      \
    X(ADMIN, 3, 9, "command, arguments -> enum netdam_admin_status, results")                                          \
    X(DOORBELL, 4, 1, "queue pair: wake the device, if the client has that pair; no answer")                           \
    X(TAKE, 5, 2, "bytes, alignment -> offset of a piece of on-board memory")                                          \
    X(GIVE, 6, 1, "offset: give a piece back; -EBUSY while a region or ring lies in it")                               \
    X(VECTOR, 7, 1, "a vector by the client's own count -> its eventfd; QUEUE_CREATE names it by that count")          \
    X(LEASE, 8, 1, "client or 0 -> the lease of the next one; -ENOENT after the last")

#define NDLIB_BROKER_ENUM(name, number, values, text) NDLIB_BROKER_##name = (number),
enum ndlib_broker_type { NDLIB_BROKER_LIST(NDLIB_BROKER_ENUM) };
#undef NDLIB_BROKER_ENUM

/* Flags of HELLO. */
#define NDLIB_BROKER_OBSERVE 0x1u /* READ and LEASE only; no files */

#define NDLIB_BROKER_VALUES      9
#define NDLIB_BROKER_DESCRIPTORS 2 /* file descriptors that come with a reply at most */
#define NDLIB_BROKER_NAME_BYTES  64

/* Both ends are on one machine: its byte order. */
struct ndlib_broker_request {
    uint16_t version; /* NDLIB_BROKER_VERSION */
    uint16_t type;    /* enum ndlib_broker_type */
    uint32_t bytes;   /* of this message */
    uint64_t values[NDLIB_BROKER_VALUES];
};

struct ndlib_broker_reply {
    uint16_t version; /* the broker's; if it is another one than the request's, `error` says so and the rest is 0 */
    uint16_t type;
    uint32_t bytes;
    int32_t error; /* 0 or a negative errno value; then the rest is 0 */
    uint32_t descriptors;
    uint64_t values[NDLIB_BROKER_VALUES];
    char name[NDLIB_BROKER_NAME_BYTES]; /* HELLO: of the device, with a 0 at the end */
};

NETDAM_ASSERT_SIZE(struct ndlib_broker_request, 80);
NETDAM_ASSERT_SIZE(struct ndlib_broker_reply, 152);

#endif
