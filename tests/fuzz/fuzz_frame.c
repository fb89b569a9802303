/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: frames. An input is a list of actions; frames come raw, or with lengths and CRCs made right so that what
 * lies behind the CRC is reached, or as answers to what the device has sent, changed here and there.
 */
#include "fuzz.h"

enum action {
    FRAME_RAW,      /* length 2, bytes */
    FRAME_REPAIRED, /* length 2, bytes */
    FRAME_CRC,      /* length 2, bytes; checksums right, lengths as they are */
    ANSWER,         /* which, status, patches, then offset and value each */
    REFLECTION,     /* as ANSWER: a request of the device comes back to it */
    TIME,           /* exponent */
    POST,           /* opcode, operation, type, length 2, remote address 2, local address 2, flags, list entries,
                       entries of a transaction, segments of a chain */
    CHANGE,         /* what */
    PORT_FULL,      /* frames */
    RECEIVE,        /* length 2, local address 2, list entries */
    ACTION_COUNT,
};

#define SQ_BASE     0x0000u
#define CQ_BASE     0x2000u
#define RQ_BASE     0x3000u
#define REGION_BASE 0x4000u
#define LOCAL_BASE  0xa000u
#define LIST_PLACE  0x3f00u /* in the local region */
#define CHAIN_PLACE 0x3000u

static void receive_patched(struct fuzz_device *device, struct fuzz_input *input, uint8_t *frame, size_t bytes)
{
    unsigned patches = fuzz_u8(input) % 8;

    for (unsigned i = 0; i < patches; i++) {
        size_t offset = fuzz_uint(input, 1) % (bytes != 0 ? bytes : 1);

        frame[offset] = fuzz_u8(input);
    }
    if (bytes != 0) {
        ndtest_frame_repair(frame, bytes, false);
        fuzz_receive(device, frame, bytes);
    }
}

static void reflect(struct fuzz_device *device, struct fuzz_input *input, uint8_t *frame)
{
    size_t bytes = 0;

    if (device->frame_count != 0) {
        unsigned place = (device->frame_count - 1) % FUZZ_FRAMES;
        uint8_t address[6];

        bytes = device->frame_bytes[place];
        memcpy(frame, device->frames[place], bytes);
        memcpy(address, frame, 6);
        memcpy(frame, frame + 6, 6);
        memcpy(frame + 6, address, 6);
        memcpy(address, frame + 26, 4);
        memcpy(frame + 26, frame + 30, 4);
        memcpy(frame + 30, address, 4);
    }
    receive_patched(device, input, frame, bytes);
}

static void post(struct fuzz_device *device, struct ndtest_queue *queue, struct fuzz_input *input)
{
    struct netdam_descriptor d = {0};
    struct netdam_completion completion;
    unsigned action;
    bool collect;

    d.opcode = fuzz_u8(input);
    d.operation = fuzz_u8(input);
    d.type = fuzz_u8(input);
    d.length = (uint32_t)fuzz_uint(input, 2);
    d.remote_address = fuzz_uint(input, 2);
    d.u.operand[0] = fuzz_uint(input, 2);
    d.flags = fuzz_u8(input);
    collect = (d.flags & 0x80) != 0; /* lazy software lets the small completion ring fill up */
    d.flags &= NETDAM_DESCRIPTOR_FLAGS_DEFINED;
    d.remote_key = d.opcode == NETDAM_OP_SEND ? FUZZ_KEY_RECEIVE : FUZZ_KEY_ALL;
    d.immediate = (d.flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 ? 0x1234567 : 0;
    if ((d.flags & NETDAM_DESCRIPTOR_LIST) != 0) {
        fuzz_put_list(device, &d, LOCAL_BASE + LIST_PLACE, fuzz_u8(input) & 7, 1, d.u.operand[0]);
        d.u.operand[0] = LIST_PLACE;
    }
    if (d.opcode == NETDAM_OP_TRANSACTION) {
        fuzz_put_entries(device, &d, LOCAL_BASE + d.u.buffer.local_address, fuzz_u8(input));
    }
    d.local_region = (netdam_op_flags(d.opcode) & NETDAM_OPF_ATOMIC) != 0 ? 0 : 1;
    d.peer = d.operation >> 4 & 1;
    if (d.opcode == NETDAM_OP_CHAIN) {
        fuzz_put_segments(device, &d, LOCAL_BASE + CHAIN_PLACE, CHAIN_PLACE, 1, input);
    }
    d.operation &= 15;
    while (collect && ndtest_queue_poll(queue, &completion)) {
    }
    ndtest_queue_post(queue, &d, device->now_ns, &action);
    fuzz_device_run(device, 65536);
}

static void post_receive(struct fuzz_device *device, struct ndtest_queue *queue, struct fuzz_input *input)
{
    struct netdam_descriptor d = {.local_region = 1};
    unsigned count;

    d.length = (uint32_t)fuzz_uint(input, 2);
    d.u.buffer.local_address = fuzz_uint(input, 2);
    count = fuzz_u8(input) & 15;
    if (count != 0) {
        d.flags = NETDAM_DESCRIPTOR_LIST;
        fuzz_put_list(device, &d, LOCAL_BASE + LIST_PLACE + 0x80, count & 7, 1, d.u.buffer.local_address);
        d.u.buffer.local_address = LIST_PLACE + 0x80;
    }
    ndtest_queue_post_receive(queue, &d);
    (void)device;
}

static void open_peer(struct fuzz_device *device, unsigned last)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {0x0a000000u + last, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16,
                                        UINT64_C(0x020000000000) + last};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    args[2] = 4;
    fuzz_admin(device, NETDAM_ADMIN_NEIGHBOUR_SET, args, results);
    args[2] = 4 | (uint64_t)NETDAM_UDP_PORT << 16;
    args[3] = 0;
    fuzz_admin(device, NETDAM_ADMIN_PEER_OPEN, args, results);
}

static void create_region(struct fuzz_device *device, uint64_t base, uint64_t bytes, uint64_t key)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {base, bytes, NETDAM_PERMISSION_ALL, key, 0, key == FUZZ_KEY_ALL ? 1 : 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(device, NETDAM_ADMIN_REGION_CREATE, args, results);
}

static void change(struct fuzz_device *device, unsigned what)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {what >> 4};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    switch (what & 3) {
    case 0:
        fuzz_admin(device, NETDAM_ADMIN_REGION_DESTROY, args, results);
        break;
    case 1:
        create_region(device, REGION_BASE, 4096, FUZZ_KEY_ALL);
        break;
    case 2:
        fuzz_admin(device, NETDAM_ADMIN_PEER_CLOSE, args, results);
        break;
    default:
        open_peer(device, 1);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_device device;
    static uint8_t frame[FUZZ_FRAME_BYTES];
    struct fuzz_input input = {data, size};
    struct ndtest_queue queue;
    uint64_t args[NETDAM_ADMIN_ARGS] = {SQ_BASE,    4, CQ_BASE, 2, RQ_BASE, 3, (uint64_t)NETDAM_VECTOR_NONE << 16,
                                        0xfffffff8u};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    device.shared_frames = (size & 1) != 0;
    fuzz_device_open(&device);
    fuzz_admin(&device, NETDAM_ADMIN_QUEUE_CREATE, args, results);
    create_region(&device, REGION_BASE, 4096, FUZZ_KEY_ALL);
    create_region(&device, LOCAL_BASE, 0x4000, FUZZ_KEY_ALL + 1);
    queue = (struct ndtest_queue){.node = &device.node,
                                  .sq_base = SQ_BASE,
                                  .cq_base = CQ_BASE,
                                  .sq_log2 = 4,
                                  .cq_log2 = 2,
                                  .rq_base = RQ_BASE,
                                  .rq_log2 = 3,
                                  .receive_produced = 0xfffffff8u,
                                  .id = (uint32_t)results[0],
                                  .produced = 0xfffffff8u,
                                  .consumed = 0xfffffff8u,
                                  .open = true};
    open_peer(&device, 1);
    open_peer(&device, 2);
    open_peer(&device, 3);
    open_peer(&device, 4);
    while (input.left != 0) {
        unsigned kind = fuzz_u8(&input) % ACTION_COUNT;
        size_t bytes;
        const uint8_t *at;

        switch (kind) {
        case FRAME_RAW:
        case FRAME_REPAIRED:
        case FRAME_CRC:
            bytes = fuzz_uint(&input, 2) % FUZZ_FRAME_BYTES;
            at = fuzz_bytes(&input, &bytes);
            memcpy(frame, at, bytes);
            if (kind != FRAME_RAW) {
                ndtest_frame_repair(frame, bytes, kind == FRAME_REPAIRED);
            }
            fuzz_receive(&device, frame, bytes);
            break;
        case ANSWER: {
            unsigned which = fuzz_u8(&input);

            bytes = fuzz_make_answer(&device, which, fuzz_u8(&input), frame);
            receive_patched(&device, &input, frame, bytes);
            break;
        }
        case REFLECTION:
            reflect(&device, &input, frame);
            break;
        case TIME:
            device.now_ns += UINT64_C(1) << fuzz_u8(&input) % 38;
            break;
        case POST:
            post(&device, &queue, &input);
            break;
        case CHANGE:
            change(&device, fuzz_u8(&input));
            break;
        case RECEIVE:
            post_receive(&device, &queue, &input);
            break;
        default:
            device.port_full = fuzz_u8(&input) % 8;
            break;
        }
        fuzz_device_run(&device, 65536);
        fuzz_check(&device);
        if (ndtest_queue_ready(&queue) > 1u << queue.cq_log2) {
            fuzz_fail("more completions than places", ndtest_queue_ready(&queue), 0);
        }
    }
    fuzz_device_close(&device);
    return 0;
}
