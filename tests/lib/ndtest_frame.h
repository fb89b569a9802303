/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests' own reader of frames, written from the specification: what a frame says, and its checksums made right. */
#ifndef NDTEST_FRAME_H
#define NDTEST_FRAME_H

#include "netdam/isa.h"
#include "netdam/status.h"
#include "netdam/wire.h"

struct ndtest_packet {
    uint8_t kind;
    uint8_t status;
    uint8_t opcode;
    uint8_t operation;
    uint8_t type;
    uint8_t segment_count;
    uint8_t segment_index; /* RESPONSE: the hop that answers */
    uint8_t node_form;     /* REQUEST: not IMPLICIT for a chain */
    uint16_t from_port; /* UDP */
    uint16_t to_port;
    uint16_t flags;
    uint16_t distance;
    uint32_t payload_bytes;
    uint64_t context;
    uint64_t number;
    uint32_t length;  /* of the current segment, or the answer's */
    uint64_t key;     /* REQUEST */
    uint64_t address; /* REQUEST */
    uint64_t generation;
    uint64_t echo;      /* RESPONSE */
    uint64_t floor;     /* RESPONSE */
    uint64_t immediate; /* 0 without the extension */
    const uint8_t *payload;
    const uint8_t *segments; /* REQUEST: the first; a chain's origin lies before it */
    const uint8_t *header;   /* struct netdam_wire_header */
    size_t header_bytes;     /* up to the payload: what header_crc covers */
};

/* Ports that answers come to: a device's own, and those behind it. The firmware's default. */
#define NDTEST_PATHS 16u

/*
 * Reads a frame. Returns false if it is no NetDAM frame over IPv4 or IPv6 or its lengths contradict one another.
 * Checksums are not looked at: the caller knows whether the frame was damaged.
 */
bool ndtest_packet_read(const uint8_t *frame, size_t bytes, uint16_t udp_port, struct ndtest_packet *packet);

/* CRC32C, bit by bit with a small table; the third one written for this project. */
uint32_t ndtest_crc32c(uint32_t crc, const void *data, size_t bytes);

/*
 * Makes lengths and checksums of IP and UDP and both CRCs agree with the bytes, as far as the frame has such fields.
 * `lengths`: also set the IP and UDP lengths from `bytes`. True if the frame looked like a NetDAM frame.
 */
bool ndtest_frame_repair(uint8_t *frame, size_t bytes, bool lengths);

#endif
