/* SPDX-License-Identifier: BSD-3-Clause */
/* The node of the manifest, the next one of a chain, or their requester: a firmware instance with a port. */
#ifndef GOLDEN_INSTANCE_H
#define GOLDEN_INSTANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/isa.h"
#include "netdam/regs.h"
#include "netdam/ring.h"
#include "netdam/status.h"
#include "netdam/wire.h"

#define MEMORY_BYTES 65536u
#define REGION_BYTES 4096u
#define FRAME_BYTES  (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)
#define FRAMES_MAX   16u
#define NOW_NS       UINT64_C(1000000000)
#define EPOCH        UINT64_C(0x5eed0001)
#define CONTEXT      UINT64_C(0xc0ffee0011223344)
#define KEY_ALL      UINT64_C(0x6b65790123456789)
#define KEY_NO_ALU   UINT64_C(0x6b6579012345678a)
#define KEY_NO_WRITE UINT64_C(0x6b6579012345678b)
#define KEY_RECEIVE  UINT64_C(0x7265637601234567)
#define KEY_NO_READY UINT64_C(0x7265637601234568)

/* Offsets in on-board memory: regions first, then the requester's rings, then those of the node's two queue pairs. */
#define REGIONS_BASE UINT64_C(4096)
#define SQ_BASE      UINT64_C(16384)
#define CQ_BASE      UINT64_C(32768)
#define RING_LOG2    4u
#define PAIR_BASE(i) (UINT64_C(49152) + 4096u * (i))
#define PAIR_CQ      1024u
#define PAIR_RQ      2048u
#define PAIR_LOG2    1u

/* The node's receive buffer, in its first region. */
#define BUFFER_ADDRESS   UINT64_C(0x800)
#define BUFFER_BYTES     64u
#define BUFFER_USER_DATA UINT64_C(0x7573657264617461)

extern const char *golden_directory;

struct instance {
    const struct netdam_fw_ops *ops;
    void *state;
    uint8_t *memory;
    uint8_t *before; /* memory as the node started with it */
    uint64_t entropy;
    uint64_t first_number;
    uint8_t frames[FRAMES_MAX][FRAME_BYTES];
    size_t bytes[FRAMES_MAX];
    unsigned count;
};

/* The link-layer address of a node of the manifest. */
void instance_set_neighbour(struct instance *instance, uint8_t last_byte, unsigned family);
/* The result of an administration command, which must succeed. */
uint64_t instance_command(struct instance *instance, enum netdam_admin command, const uint64_t *arguments,
                          unsigned count);
/* The node of the manifest, with last byte 3 the next of a chain, or with last byte 1 the requester. */
void instance_start(struct instance *instance, uint8_t last_byte);
void instance_receive(struct instance *instance, const uint8_t *frame, size_t bytes);
/* Where the NetDAM header begins in a well-formed frame. */
size_t golden_header_at(const uint8_t *frame);
/* The frame number `at` that was sent, compared with a golden one; says what differs. */
bool instance_sent(const struct instance *instance, const char *name, unsigned at);

/* requester.c */
void requester_sends_golden_requests(void **state);
void requester_sends_golden_chains(void **state);
void requester_asks_for_the_link_layer_address(void **state);

#endif
