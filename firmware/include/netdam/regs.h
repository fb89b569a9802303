/* SPDX-License-Identifier: BSD-3-Clause */
/* PCI identity, BARs and registers. */
#ifndef NETDAM_REGS_H
#define NETDAM_REGS_H

#include "netdam/counters.h"
#include "netdam/types.h"

/* 0x1234 is the vendor id that emulators use for devices nobody sells. */
#define NETDAM_PCI_VENDOR_ID 0x1234
#define NETDAM_PCI_DEVICE_ID 0x4e44
#define NETDAM_PCI_CLASS     0x0580 /* memory controller, other */
#define NETDAM_PCI_REVISION  1

#define NETDAM_BAR_REGISTERS 0 /* memory-mapped registers and doorbells */
#define NETDAM_BAR_MEMORY    2 /* on-board memory: 64 bit, prefetchable */
#define NETDAM_BAR_MSIX      4 /* MSI-X table and pending bits */

/*
 * BAR0 in 4 KiB pages, so that each can be mapped, or kept back, by itself:
 *   0x0000  identity and configuration, read only
 *   0x1000  administration
 *   0x2000  counters, 8 bytes each, in the order of NETDAM_COUNTER_LIST
 *   0x10000 doorbells: one page per queue pair, DOORBELL_STRIDE bytes apart; any 4-byte write to a page's first word
 *           wakes the device for that pair; reads yield 0
 *
 * Registers are little-endian and are accessed with their whole width, naturally aligned; 8-byte registers also as two
 * 4-byte halves, each as it is at that moment. Any other access is counted (REGISTER_ERRORS), reads as all ones
 * and changes nothing.
 */
#define NETDAM_PAGE_IDENTITY  0x0000u
#define NETDAM_PAGE_ADMIN     0x1000u
#define NETDAM_PAGE_COUNTERS  0x2000u
#define NETDAM_PAGE_DOORBELLS 0x10000u
#define NETDAM_PAGE_BYTES     0x1000u

#define NETDAM_QUEUE_PAIRS_MAX 64u
#define NETDAM_BAR0_BYTES      0x80000u

NETDAM_STATIC_ASSERT(NETDAM_PAGE_DOORBELLS + NETDAM_QUEUE_PAIRS_MAX * NETDAM_PAGE_BYTES <= NETDAM_BAR0_BYTES,
                     "doorbells fit BAR0");
NETDAM_STATIC_ASSERT(NETDAM_COUNTER_COUNT * 8 <= NETDAM_PAGE_BYTES, "counters fit their page");

#define NETDAM_ID           0x4d41444eu /* "NDAM" */
#define NETDAM_SPEC_VERSION 0x00010000u /* major << 16 | minor */

/*
 * X(name, offset, bytes, access, reset, text). access: RO or RW. reset: the value after reset, or CONFIG where it
 * depends on how the device was configured.
 */
#define NETDAM_REG_CONFIG UINT64_MAX
#define NETDAM_REG_LIST(X)                                                                                             \
    X(ID, 0x0000, 4, RO, NETDAM_ID, "identifies the device: \"NDAM\"")                                                 \
    X(SPEC_VERSION, 0x0004, 4, RO, NETDAM_SPEC_VERSION, "version of this specification, major << 16 | minor")          \
    X(FIRMWARE_VERSION, 0x0008, 4, RO, NETDAM_REG_CONFIG, "version of the firmware image, major << 16 | minor")        \
    X(FIRMWARE_ABI, 0x000c, 4, RO, NETDAM_REG_CONFIG, "version of the interface between device and firmware")          \
    X(STATUS, 0x0010, 4, RO, NETDAM_REG_CONFIG, "NETDAM_DEVICE_* bits")                                                \
    X(VECTORS, 0x0014, 4, RO, NETDAM_REG_CONFIG,                                                                       \
      "MSI-X vectors; the last tells that STATUS or a pair's state changed")                                           \
    X(MEMORY_BYTES, 0x0018, 8, RO, NETDAM_REG_CONFIG, "size of on-board memory")                                       \
    X(QUEUE_PAIRS, 0x0020, 4, RO, NETDAM_REG_CONFIG, "queue pairs that can exist at once")                             \
    X(DOORBELL_STRIDE, 0x0024, 4, RO, NETDAM_PAGE_BYTES, "bytes from one queue pair's doorbell to the next")           \
    X(REGIONS, 0x0028, 4, RO, NETDAM_REG_CONFIG, "regions that can exist at once")                                     \
    X(PEERS, 0x002c, 4, RO, NETDAM_REG_CONFIG, "peers that can be open at once")                                       \
    X(MTU, 0x0030, 4, RO, NETDAM_REG_CONFIG, "largest IP packet in bytes")                                             \
    X(PAYLOAD_MAX, 0x0034, 4, RO, NETDAM_REG_CONFIG, "payload bytes of one packet; longer requests are split")         \
    X(LENGTH_MAX, 0x0038, 4, RO, NETDAM_REG_CONFIG, "bytes of one descriptor at most")                                 \
    X(WINDOW, 0x003c, 4, RO, NETDAM_REG_CONFIG, "unfinished numbers of one lane at most")                              \
    X(MAC, 0x0040, 8, RO, NETDAM_REG_CONFIG, "own Ethernet address, first byte in bits 47 to 40")                      \
    X(IPV4, 0x0048, 4, RO, NETDAM_REG_CONFIG, "own IPv4 address, first byte in bits 31 to 24; 0: none")                \
    X(UDP_PORT, 0x004c, 4, RO, NETDAM_REG_CONFIG, "own NetDAM port")                                                   \
    X(IPV6_HIGH, 0x0050, 8, RO, NETDAM_REG_CONFIG, "own IPv6 address, first 8 bytes; 0: none")                         \
    X(IPV6_LOW, 0x0058, 8, RO, NETDAM_REG_CONFIG, "own IPv6 address, last 8 bytes")                                    \
    X(MAIN_MEMORY_BYTES, 0x0060, 8, RO, 0, "bytes ever moved between the device and the host's main memory")           \
    X(GENERATION, 0x0068, 8, RO, NETDAM_REG_CONFIG, "current generation of this node's lanes")                         \
    X(TIME_NS, 0x0070, 8, RO, NETDAM_REG_CONFIG, "the firmware's clock at its last call, in ns")                       \
    X(COUNTERS, 0x0078, 4, RO, NETDAM_COUNTER_COUNT, "number of counters")                                             \
    X(CONTROL, 0x1000, 4, RW, 0, "NETDAM_CONTROL_* bits; reads as 0")                                                  \
    X(ADMIN_COMMAND, 0x1008, 4, RW, 0, "a write executes the command with the arguments below; reads as the last one") \
    X(ADMIN_STATUS, 0x100c, 4, RO, 0, "enum netdam_admin_status of the last command")                                  \
    X(ADMIN_ARG0, 0x1010, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG1, 0x1018, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG2, 0x1020, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG3, 0x1028, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG4, 0x1030, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG5, 0x1038, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG6, 0x1040, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_ARG7, 0x1048, 8, RW, 0, "argument")                                                                        \
    X(ADMIN_RESULT0, 0x1050, 8, RO, 0, "result")                                                                       \
    X(ADMIN_RESULT1, 0x1058, 8, RO, 0, "result")                                                                       \
    X(ADMIN_RESULT2, 0x1060, 8, RO, 0, "result")                                                                       \
    X(ADMIN_RESULT3, 0x1068, 8, RO, 0, "result")

#define NETDAM_REG_ENUM(name, offset, bytes, access, reset, text) NETDAM_REG_##name = (offset),
enum netdam_register { NETDAM_REG_LIST(NETDAM_REG_ENUM) };
#undef NETDAM_REG_ENUM

#define NETDAM_ADMIN_ARGS    8
#define NETDAM_ADMIN_RESULTS 4

/* STATUS */
#define NETDAM_DEVICE_READY   0x1u /* firmware runs */
#define NETDAM_DEVICE_LINK_UP 0x2u /* the port has a link */
#define NETDAM_DEVICE_FIRMWARE_STALE                                                                                   \
    0x4u /* the image could not be loaded at the last reset; the one before it runs                                    \
          */

/* CONTROL */
#define NETDAM_CONTROL_RESET 0x1u /* flush everything outstanding, load the firmware image anew, forget all state */

#endif
