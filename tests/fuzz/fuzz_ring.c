/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: the host. Registers, administration, ring headers, descriptors, all of it also changed between calls and
 * in the middle of them: a guest owns this memory and may write it at any moment.
 */
#include "fuzz.h"

enum action {
    REGISTER_WRITE, /* offset 3, bytes, value 8 */
    REGISTER_READ,  /* offset 3, bytes */
    COMMAND,        /* command, arguments: size, value each */
    POKE,           /* offset 2, bytes, values */
    POKE_LATER,     /* accesses, offset 2, bytes, values */
    RUN,            /* time exponent, budget 2 */
    SLEEP,
    PRODUCE, /* queue, descriptor in short */
    ANSWER,  /* which, status */
    CONSUME, /* queue */
    QUEUE,   /* queue pair with rings in their usual place */
    PEER,    /* last byte of the address */
    REGION,  /* base in KiB, KiB, permissions and queue pair + 1 */
    RECEIVE, /* queue, length 2, region, address 2, in short */
    RAW,     /* RAW queue pair in the usual place, rule, value 2 */
    FRAME,   /* to whom, length 2, bytes */
    SEND,    /* queue, length 2, address 2, odd; bytes of the frame's head */
    ACTION_COUNT,
};

/* Within the place of a queue's rings, and within the region at 16 KiB. */
#define CQ_PLACE    0x400u
#define RQ_PLACE    0xd00u
#define LIST_BASE   0x4000u
#define LIST_PLACE  0x1f00u
#define CHAIN_PLACE 0x1000u

static uint64_t ring_place(unsigned queue)
{
    return (queue & 3) * 0x1000u;
}

static void store32(struct fuzz_device *device, uint64_t offset, uint32_t value)
{
    memcpy(device->node.memory + offset, &value, sizeof(value));
}

static uint32_t load32(const struct fuzz_device *device, uint64_t offset)
{
    uint32_t value;

    memcpy(&value, device->node.memory + offset, sizeof(value));
    return value;
}

/* Where the seeds have a region. */
static void add_list(struct fuzz_device *device, struct netdam_descriptor *d, unsigned count)
{
    if ((d->flags & NETDAM_DESCRIPTOR_LIST) != 0) {
        fuzz_put_list(device, d, LIST_BASE + LIST_PLACE, count & 7, d->local_region, d->u.buffer.local_address);
        d->u.buffer.local_address = LIST_PLACE;
    }
}

/* A receive buffer, behind whatever the ring's header says at the moment. */
static void receive(struct fuzz_device *device, struct fuzz_input *input)
{
    unsigned queue = fuzz_u8(input) & 3;
    uint64_t rq = ring_place(queue) + RQ_PLACE;
    uint32_t producer = load32(device, rq);
    struct netdam_descriptor d = {0};
    unsigned odd;

    d.length = (uint32_t)fuzz_uint(input, 2);
    d.local_region = fuzz_u8(input) & 7;
    d.u.buffer.local_address = fuzz_uint(input, 2);
    odd = fuzz_u8(input);
    d.flags = (odd & 0x40) != 0 ? NETDAM_DESCRIPTOR_LIST : 0;
    add_list(device, &d, odd);
    if ((odd & 0x80) != 0) {
        ((uint8_t *)&d)[odd & 63] = fuzz_u8(input);
    }
    memcpy(device->node.memory + rq + 128 + 64 * (producer & 7), &d, sizeof(d));
    store32(device, rq, producer + 1);
}

/* One descriptor with mostly sensible fields, behind whatever the ring's header says at the moment. */
static void produce(struct fuzz_device *device, struct fuzz_input *input)
{
    unsigned queue = fuzz_u8(input) & 3;
    uint64_t sq = ring_place(queue);
    uint32_t producer = load32(device, sq);
    struct netdam_descriptor d = {0};
    unsigned odd;

    d.opcode = fuzz_u8(input);
    d.operation = fuzz_u8(input);
    d.type = fuzz_u8(input);
    d.peer = fuzz_u8(input) & 7;
    d.length = (uint32_t)fuzz_uint(input, 2);
    d.remote_key = d.opcode == NETDAM_OP_SEND ? FUZZ_KEY_RECEIVE : FUZZ_KEY_ALL;
    d.remote_address = fuzz_uint(input, 2);
    d.local_region = fuzz_u8(input) & 7;
    d.u.operand[0] = fuzz_uint(input, 2);
    odd = fuzz_u8(input);
    if ((odd & 0x40) != 0) {
        d.flags = fuzz_u8(input);
        d.immediate = (d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 ? 0x1234567 : 0;
        add_list(device, &d, odd);
    }
    if (d.opcode == NETDAM_OP_TRANSACTION) {
        fuzz_put_entries(device, &d, LIST_BASE + d.u.buffer.local_address, fuzz_u8(input));
    }
    if (d.opcode == NETDAM_OP_CHAIN) {
        fuzz_put_segments(device, &d, LIST_BASE + CHAIN_PLACE, CHAIN_PLACE, d.local_region, input);
    }
    if ((odd & 0x80) != 0) {
        /* One byte anywhere. */
        ((uint8_t *)&d)[odd & 63] = fuzz_u8(input);
    }
    memcpy(device->node.memory + sq + 128 + 64 * (producer & 7), &d, sizeof(d));
    store32(device, sq, producer + 1);
    fuzz_register_write(device, NETDAM_PAGE_DOORBELLS + queue * NETDAM_PAGE_BYTES, 4, 1);
}

static void command(struct fuzz_device *device, struct fuzz_input *input)
{
    unsigned which = fuzz_u8(input) % 16;
    uint64_t args[NETDAM_ADMIN_ARGS];
    uint64_t results[NETDAM_ADMIN_RESULTS];

    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        unsigned form = fuzz_u8(input);

        args[i] = fuzz_uint(input, form & 8 ? 8 : form & 3);
        args[i] <<= form >> 4 & 15;
    }
    fuzz_admin(device, (enum netdam_admin)which, args, results);
}

static void queue_create(struct fuzz_device *device, unsigned which, enum netdam_queue_type type)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {ring_place(which),
                                        3,
                                        ring_place(which) + CQ_PLACE,
                                        3 + (which >> 6),
                                        ring_place(which) + RQ_PLACE,
                                        3,
                                        type | (uint64_t)(which >> 2 & 7) << 16,
                                        UINT64_C(0xfffffffa)};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(device, NETDAM_ADMIN_QUEUE_CREATE, args, results);
}

static void peer_open(struct fuzz_device *device, unsigned last)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {0x0a000000u + last, 0, 4, UINT64_C(0x020000000000) + last};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(device, NETDAM_ADMIN_NEIGHBOUR_SET, args, results);
    args[2] |= (uint64_t)NETDAM_UDP_PORT << 16;
    args[3] = 0;
    fuzz_admin(device, NETDAM_ADMIN_PEER_OPEN, args, results);
}

static void region_create(struct fuzz_device *device, uint64_t base, uint64_t bytes, unsigned permissions)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {base, bytes, permissions & 31, FUZZ_KEY_ALL, 0, permissions >> 5};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(device, NETDAM_ADMIN_REGION_CREATE, args, results);
}

static void poke(struct fuzz_device *device, struct fuzz_input *input, bool later)
{
    unsigned after = later ? fuzz_u8(input) : 0;
    uint64_t offset = fuzz_uint(input, 2);
    size_t bytes = fuzz_u8(input) % sizeof(device->poke);
    const uint8_t *at = fuzz_bytes(input, &bytes);

    if (bytes > FUZZ_MEMORY_BYTES - offset) {
        bytes = FUZZ_MEMORY_BYTES - offset;
    }
    if (!later) {
        memcpy(device->node.memory + offset, at, bytes);
        return;
    }
    memcpy(device->poke, at, bytes);
    device->poke_after = after;
    device->poke_offset = offset;
    device->poke_bytes = bytes;
}

/* A RAW queue pair, and a rule for whichever is the first. */
static void raw_create(struct fuzz_device *device, struct fuzz_input *input)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {0};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    unsigned which = fuzz_u8(input);

    queue_create(device, which, NETDAM_QUEUE_RAW);
    args[0] = which >> 6;
    args[1] = fuzz_u8(input) & 7;
    args[2] = fuzz_uint(input, 2);
    fuzz_admin(device, NETDAM_ADMIN_STEERING_SET, args, results);
}

/* Link-layer addresses as they should be, mostly; then anything. */
static void put_head(const struct fuzz_device *device, uint8_t *frame, unsigned odd, bool from_device)
{
    memset(frame, odd & 1 ? 0xff : odd & 2 ? 0x22 : 0, 12);
    memcpy(frame + (from_device ? 6 : 0), device->node.config.mac, (odd & 3) == 3 ? 5 : (odd & 3) == 0 ? 6 : 0);
    if (from_device && (odd & 8) == 0) {
        memcpy(frame + 6, device->node.config.mac, 6);
    }
}

static void receive_frame(struct fuzz_device *device, struct fuzz_input *input)
{
    static uint8_t frame[FUZZ_FRAME_BYTES];
    unsigned odd = fuzz_u8(input);
    size_t bytes = fuzz_uint(input, 2) % FUZZ_FRAME_BYTES;
    size_t given = bytes;
    const uint8_t *at = fuzz_bytes(input, &given);

    memset(frame, 0, sizeof(frame));
    put_head(device, frame, odd, false);
    memcpy(frame + 12, at, given < FUZZ_FRAME_BYTES - 12 ? given : FUZZ_FRAME_BYTES - 12);
    if ((odd & 4) != 0) {
        ndtest_frame_repair(frame, bytes, false);
    }
    fuzz_receive(device, frame, bytes);
}

/* From where the seeds have a region. */
static void send_frame(struct fuzz_device *device, struct fuzz_input *input)
{
    unsigned queue = fuzz_u8(input) & 3;
    uint64_t sq = ring_place(queue);
    uint32_t producer = load32(device, sq);
    struct netdam_descriptor d = {.length = (uint32_t)fuzz_uint(input, 2)};
    uint8_t head[96] = {0};
    size_t given = sizeof(head) - 12;
    const uint8_t *at;
    unsigned odd;

    d.u.buffer.local_address = fuzz_uint(input, 2) & 0x1fff;
    odd = fuzz_u8(input);
    at = fuzz_bytes(input, &given);
    put_head(device, head, odd, true);
    memcpy(head + 12, at, given);
    memcpy(device->node.memory + LIST_BASE + d.u.buffer.local_address, head, sizeof(head));
    if ((odd & 0x40) != 0) {
        d.flags = NETDAM_DESCRIPTOR_LIST;
        add_list(device, &d, odd);
    }
    memcpy(device->node.memory + sq + 128 + 64 * (producer & 7), &d, sizeof(d));
    store32(device, sq, producer + 1);
    fuzz_register_write(device, NETDAM_PAGE_DOORBELLS + queue * NETDAM_PAGE_BYTES, 4, 1);
}

static void act(struct fuzz_device *device, struct fuzz_input *input)
{
    static uint8_t frame[FUZZ_FRAME_BYTES];
    struct ndtest_node *node = &device->node;
    unsigned queue;
    unsigned which;
    uint32_t offset;
    unsigned bytes;
    size_t answer;

    switch (fuzz_u8(input) % ACTION_COUNT) {
    case REGISTER_WRITE:
        offset = (uint32_t)fuzz_uint(input, 3);
        bytes = fuzz_u8(input) % 9;
        fuzz_register_write(device, offset, bytes, fuzz_uint(input, 8));
        break;
    case REGISTER_READ:
        offset = (uint32_t)fuzz_uint(input, 3);
        bytes = fuzz_u8(input) % 9;
        node->ops->register_read(node->state, offset, bytes);
        break;
    case COMMAND:
        command(device, input);
        break;
    case POKE:
        poke(device, input, false);
        break;
    case POKE_LATER:
        poke(device, input, true);
        break;
    case RUN:
        device->now_ns += UINT64_C(1) << fuzz_u8(input) % 38;
        fuzz_device_run(device, fuzz_uint(input, 2));
        break;
    case SLEEP:
        node->ops->prepare_sleep(node->state);
        break;
    case PRODUCE:
        produce(device, input);
        break;
    case ANSWER:
        which = fuzz_u8(input);
        answer = fuzz_make_answer(device, which, fuzz_u8(input), frame);
        if (answer != 0) {
            fuzz_receive(device, frame, answer);
        }
        break;
    case CONSUME:
        queue = fuzz_u8(input);
        store32(device, ring_place(queue) + CQ_PLACE + 64, load32(device, ring_place(queue) + CQ_PLACE));
        break;
    case QUEUE:
        queue_create(device, fuzz_u8(input), NETDAM_QUEUE_NETDAM);
        break;
    case RAW:
        raw_create(device, input);
        break;
    case FRAME:
        receive_frame(device, input);
        break;
    case SEND:
        send_frame(device, input);
        break;
    case PEER:
        peer_open(device, fuzz_u8(input) & 3);
        break;
    case RECEIVE:
        receive(device, input);
        break;
    default:
        which = fuzz_u8(input) & 63;
        bytes = fuzz_u8(input) & 63;
        region_create(device, which * 1024u, bytes * 1024u, fuzz_u8(input));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_device device;
    struct fuzz_input input = {data, size};

    fuzz_device_open(&device);
    while (input.left != 0) {
        act(&device, &input);
        fuzz_check(&device);
    }
    fuzz_device_run(&device, 65536);
    fuzz_device_close(&device);
    return 0;
}
