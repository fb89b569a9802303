/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fuzz targets share: reading an input as a list of actions, and a device whose every access is judged. */
#ifndef NDTEST_FUZZ_H
#define NDTEST_FUZZ_H

#include "ndtest_frame.h"
#include "ndtest_node.h"
#include "netdam/transaction.h"

#define FUZZ_MEMORY_BYTES 65536u
#define FUZZ_RANGES       64u
#define FUZZ_FRAMES       8u
#define FUZZ_FRAME_BYTES  (NETDAM_ETHERNET_BYTES + NETDAM_MTU_MAX)

/* The values that the golden packets use. */
#define FUZZ_KEY_ALL UINT64_C(0x6b65790123456789)
#define FUZZ_EPOCH   UINT64_C(0x5eed0001)

/* Receive key of the first queue pair that has a receive ring; one more for each after it. */
#define FUZZ_KEY_RECEIVE UINT64_C(0x7ece17e000000001)

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->at++;
}

static inline uint64_t fuzz_uint(struct fuzz_input *input, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)fuzz_u8(input) << 8 * i;
    }
    return value;
}

/* Up to `bytes` bytes, in place. */
static inline const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t *bytes)
{
    const uint8_t *at = input->at;

    if (*bytes > input->left) {
        *bytes = input->left;
    }
    input->at += *bytes;
    input->left -= *bytes;
    return at;
}

/* A part of memory that the device may use, because software has said so. */
struct fuzz_range {
    uint64_t base;
    uint64_t bytes;
    uint32_t kind; /* enum netdam_admin of the command that made it */
    uint32_t index;
    bool in_use;
};

struct fuzz_device {
    struct ndtest_node node;
    uint64_t now_ns;
    struct fuzz_range ranges[FUZZ_RANGES];
    uint8_t outgoing[FUZZ_FRAME_BYTES];
    uint8_t frames[FUZZ_FRAMES][FUZZ_FRAME_BYTES]; /* requests it has sent, newest last */
    size_t frame_bytes[FUZZ_FRAMES];
    unsigned frame_count;
    unsigned port_full; /* the next so many frames find no room */
    unsigned entropy_draws;
    unsigned receive_keys; /* drawn so far */
    /* Completions of receive buffers: the last place stored to, whether such a one is there, and how many there were.
     */
    uint64_t entry;
    bool entry_receives;
    uint64_t receives;
    /* Memory changes under the device's hands: after so many accesses from now, if bytes is not 0. */
    unsigned poke_after;
    uint64_t poke_offset;
    uint8_t poke[64];
    size_t poke_bytes;
    bool admin_running;
    uint64_t generation; /* the newest that it has begun */
    /* The frame being received, which somebody changes whenever the device calls out, if frames are shared. */
    uint8_t *incoming;
    size_t incoming_bytes;
    /* Set before fuzz_device_open, and kept. */
    bool shared_frames;
    const struct netdam_fw_crypto *crypto; /* of tenants, or NULL: it has none */
    /* False if the device must not look at this part of its memory at present. NULL: it may. */
    bool (*permits)(uint64_t offset, uint64_t bytes);
};

/* Says what is wrong and aborts, for the fuzzer to keep the input. */
void fuzz_fail(const char *text, uint64_t a, uint64_t b) __attribute__((noreturn));

void fuzz_device_open(struct fuzz_device *device);
/* Stops the device; everything taken must have been completed by then. */
void fuzz_device_close(struct fuzz_device *device);
void fuzz_device_run(struct fuzz_device *device, uint64_t budget);
/* A register write, with what it makes of the device's ranges. */
void fuzz_register_write(struct fuzz_device *device, uint32_t offset, unsigned bytes, uint64_t value);
enum netdam_admin_status fuzz_admin(struct fuzz_device *device, enum netdam_admin command, const uint64_t *args,
                                    uint64_t results[NETDAM_ADMIN_RESULTS]);
/* A list of `count` entries at `offset`, whose lengths add up to d->length, in region `region` from `address` on. */
void fuzz_put_list(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, unsigned count,
                   uint32_t region, uint64_t address);
/*
 * A transaction's list of count & 7 entries at `offset`, where d's local buffer lies, if it fits there, and the other
 * fields as a transaction has them. Their kinds come from the upper bits of `count`.
 */
void fuzz_put_entries(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, unsigned count);
/*
 * A chain's list at `offset`, which is `address` in the local region `region`, and the other fields as a chain has them:
 * a byte of input says how many segments, one more for each which opcode and which peer.
 */
void fuzz_put_segments(struct fuzz_device *device, struct netdam_descriptor *d, uint64_t offset, uint64_t address,
                       uint32_t region, struct fuzz_input *input);
/* Guards, counters, bounds. */
void fuzz_check(struct fuzz_device *device);
void fuzz_receive(struct fuzz_device *device, const uint8_t *frame, size_t bytes);
/* Answers a request that the device has sent, `which` counted from the newest, as an honest node would. 0: none. */
size_t fuzz_make_answer(struct fuzz_device *device, unsigned which, uint8_t status, uint8_t *frame);

#endif
