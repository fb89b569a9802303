/* SPDX-License-Identifier: BSD-3-Clause */
/* One firmware instance with a clock, a port and a far end made of hand-built frames, for tests that look inside. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ndfw.h"
#include "ndtest_frame.h"
#include "ndtest_node.h"

#define UNIT_MS         UINT64_C(1000000)
#define UNIT_FRAME_ROOM 16384u
#define UNIT_FRAMES_MAX 2048u
#define UNIT_CONTEXT    UINT64_C(0xc0ffee0011223344)
#define UNIT_GENERATION UINT64_C(0x5eed000100000003)
#define UNIT_KEY        UINT64_C(0x6b65790123456789)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct unit {
    struct ndtest_node node;
    struct ndfw *fw; /* the node's state, seen from within */
    uint64_t now_ns;
    struct netdam_fw_run_result result; /* of the last run */
    uint32_t port_room;                 /* frames that the port still takes; UINT32_MAX: no end */
    unsigned last_vector;
    struct {
        uint8_t *data;
        size_t bytes;
    } frames[UNIT_FRAMES_MAX]; /* sent and not looked at yet, from `first` on */
    uint32_t first;
    uint32_t count;
    uint8_t *begun;
    uint8_t *shown; /* the frame that was looked at last */
};

/*
 * Starts node `index` (10.0.0.index+1) at 1 s. The generation is UNIT_GENERATION. The other end of every test is node
 * 1 - index. NULL: default configuration.
 */
void unit_start(struct unit *u, unsigned index, const struct netdam_fw_config *config);
/* The configuration that NULL stands for, to be changed. */
struct netdam_fw_config unit_config(unsigned index);
void unit_stop(struct unit *u);

/* From an allocation of exactly `bytes`. */
void unit_receive(struct unit *u, const uint8_t *frame, size_t bytes);
void unit_run(struct unit *u);
void unit_advance(struct unit *u, uint64_t ns);
/* Runs at each time the firmware asks for, until it asks for nothing or `ns` have gone by. */
void unit_run_for(struct unit *u, uint64_t ns);

/* The next frame that was sent, or NULL; valid until the next one is asked for. */
const uint8_t *unit_sent_frame(struct unit *u, size_t *bytes);
/* The next frame that was sent, which must be a NetDAM packet with right checksums. False if none was. */
bool unit_sent(struct unit *u, struct ndtest_packet *packet);
/* As unit_sent, but there must be one. */
void unit_expect_sent(struct unit *u, struct ndtest_packet *packet);
void unit_expect_silence(struct unit *u);
void unit_drop_sent(struct unit *u);
uint64_t unit_counter(struct unit *u, enum netdam_counter counter);

/* A request with one implicit segment. */
struct unit_request {
    uint8_t opcode, operation, type;
    unsigned family; /* 0: 4 */
    uint16_t flags;  /* without PAYLOAD_CRC, which is added */
    uint16_t distance;
    uint32_t length;
    uint32_t payload_length;
    uint64_t context; /* 0: UNIT_CONTEXT */
    uint64_t number;
    uint64_t key;
    uint64_t address;
    uint64_t generation;
    const uint8_t *payload;
    bool no_crc;
};
/* Into UNIT_FRAME_ROOM bytes, from node `from` to 1 - from. By the specification, not by the firmware. */
size_t unit_request_frame(uint8_t *frame, unsigned from, const struct unit_request *request);
/* Receives the request. */
void unit_request(struct unit *u, const struct unit_request *request);
/* Receives the request and reads the answer, which must come. */
void unit_ask(struct unit *u, const struct unit_request *request, struct ndtest_packet *answer);

/* What the far end says to a request. */
struct unit_answer {
    uint8_t status;
    uint64_t generation; /* 0: the request's */
    uint64_t echo;       /* 0: the request's generation; UNIT_ECHO_NONE: 0 */
    uint16_t flags;
    uint32_t length;
    uint32_t payload_length;
    const uint8_t *payload;
};
#define UNIT_ECHO_NONE UINT64_MAX
size_t unit_answer_frame(uint8_t *frame, unsigned from, const struct ndtest_packet *request,
                         const struct unit_answer *answer);
/* The node receives the answer, and runs. */
void unit_answer(struct unit *u, const struct ndtest_packet *request, const struct unit_answer *answer);
/* OK with the payload that the request wants: `payload` or zeros. */
void unit_answer_ok(struct unit *u, const struct ndtest_packet *request, const uint8_t *payload);

uint32_t unit_region(struct unit *u, uint64_t base, uint64_t length, uint32_t permissions, uint64_t key);
/* A peer handle for the other end, whose link-layer address is known; its generation too if `generation` is not 0. */
uint32_t unit_peer(struct unit *u, unsigned family, uint64_t generation);
enum netdam_admin_status unit_admin(struct unit *u, enum netdam_admin command, const uint64_t *args, unsigned count,
                                    uint64_t results[NETDAM_ADMIN_RESULTS]);
/* 2^log2 entries in SQ and CQ, rings at `base` and behind. */
void unit_queue(struct unit *u, struct ndtest_queue *queue, uint64_t base, unsigned log2);
/* Stores the descriptor into the ring; the firmware takes it when it next runs. */
void unit_post(struct unit *u, struct ndtest_queue *queue, const struct netdam_descriptor *descriptor);
/* The next completion, which must be there. */
struct netdam_completion unit_completion(struct ndtest_queue *queue);
void unit_expect_completion(struct ndtest_queue *queue, uint64_t user_data, enum netdam_status status);
void unit_expect_no_completion(struct ndtest_queue *queue);

/* What this firmware executes when a request or a chain names it, of what the specification defines. */
bool unit_is_executed(unsigned opcode, unsigned operation, unsigned type);

/* Host-order access to the node's memory at any alignment. */
uint64_t unit_memory_get(const struct unit *u, uint64_t offset, unsigned bytes);
void unit_memory_put(struct unit *u, uint64_t offset, unsigned bytes, uint64_t value);
void unit_memory_pattern(struct unit *u, uint64_t offset, size_t bytes, unsigned seed);

void unit_put16(uint8_t *to, unsigned value);
/* The checksum that an IPv4 header needs, whatever it says, and none of UDP: what ndtest_frame_repair() leaves alone. */
void unit_repair_ipv4(uint8_t *frame);

#endif
