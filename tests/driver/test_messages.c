/* SPDX-License-Identifier: BSD-3-Clause */
/* Two soft devices on loopback: messages, immediates, lists, ways of delivery, SWAP and FETCH_OP. */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

#define REGION_BYTES (UINT64_C(1) << 18)

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)

struct side {
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_queue *queue; /* with a receive ring */
    struct netdam_peer *peer;   /* the other side */
    struct netdam_region *region;
    uint8_t *memory; /* of the region */
};

static struct side a;
static struct side b;

static void side_open(struct side *side, uint32_t first_index)
{
    const struct netdam_queue_config queue_config = {
        .submission_depth = 64, .completion_depth = 64, .first_index = first_index, .receive_depth = 16};
    struct netdam_region_config region_config = {.bytes = REGION_BYTES, .permissions = NETDAM_PERMISSION_ALL};

    assert_int_equal(netdam_open("udp:127.0.0.1:0,memory=2M", NULL, &side->device), 0);
    assert_int_equal(netdam_query(side->device, &side->info), 0);
    assert_int_equal(netdam_queue_create(side->device, &queue_config, &side->queue), 0);
    assert_int_not_equal(netdam_queue_receive_key(side->queue), 0);
    assert_int_equal(netdam_alloc(side->device, REGION_BYTES, 4096, &region_config.offset), 0);
    region_config.immediates = side->queue;
    assert_int_equal(netdam_region_create_config(side->device, &region_config, &side->region), 0);
    side->memory = netdam_region_pointer(side->region);
}

static void side_connect(struct side *side, const struct side *other)
{
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", other->info.udp_port);
    assert_int_equal(netdam_peer_open(side->device, address, &side->peer), 0);
}

static int open_both(void **state)
{
    (void)state;
    side_open(&a, 0xfffffff0);
    side_open(&b, 0xfffffffd);
    side_connect(&a, &b);
    side_connect(&b, &a);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    netdam_close(a.device);
    netdam_close(b.device);
    return 0;
}

static void fill(uint8_t *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
    }
}

static struct netdam_remote at_b(uint64_t address)
{
    return (struct netdam_remote){a.peer, netdam_region_key(b.region), address};
}

static struct netdam_remote to_b(void)
{
    return (struct netdam_remote){a.peer, netdam_queue_receive_key(b.queue), 0};
}

static struct netdam_local in(const struct side *side, uint64_t address)
{
    return (struct netdam_local){side->region, address};
}

static void offer(const struct side *side, uint64_t user_data, uint64_t address, uint32_t length)
{
    struct netdam_receive receive = {.user_data = user_data, .local = in(side, address), .length = length};

    assert_int_equal(netdam_post_receive(side->queue, &receive, 1), 1);
}

static struct netdam_completion await(const struct side *side)
{
    struct netdam_completion completion;

    assert_int_equal(netdam_wait(side->queue, &completion, 1, SOON), 1);
    return completion;
}

static struct netdam_completion await_message(const struct side *side, uint64_t user_data)
{
    struct netdam_completion completion = await(side);

    assert_int_equal(completion.status, NETDAM_STATUS_OK);
    assert_int_equal(completion.flags & NETDAM_COMPLETION_RECEIVE, NETDAM_COMPLETION_RECEIVE);
    assert_int_equal(completion.user_data, user_data);
    return completion;
}

/* Posts one request and returns how it ended. */
static uint8_t execute(const struct side *side, const struct netdam_request *request)
{
    struct netdam_completion completion;

    assert_int_equal(netdam_post(side->queue, request, 1), 1);
    completion = await(side);
    assert_int_equal(completion.flags & NETDAM_COMPLETION_RECEIVE, 0);
    assert_int_equal(completion.user_data, request->user_data);
    return completion.status;
}

static void messages_fill_buffers_in_order(void **state)
{
    const uint32_t lengths[] = {0, 1, 7, 8, 100, a.info.payload_max - 1, a.info.payload_max};

    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        memset(b.memory, 0x22, REGION_BYTES);
        for (unsigned i = 0; i < COUNT(lengths); i++) {
            offer(&b, 100 + i, 16384 * (i + 1), a.info.payload_max);
        }
        for (unsigned i = 0; i < COUNT(lengths); i++) {
            struct netdam_completion completion;
            const uint8_t *place = b.memory + 16384 * (uint64_t)(i + 1);

            fill(a.memory, lengths[i], i);
            assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), lengths[i], SOON), 0);
            completion = await_message(&b, 100 + i);
            assert_int_equal(completion.opcode, NETDAM_OP_SEND);
            assert_int_equal(completion.length, lengths[i]);
            assert_int_equal(completion.flags & NETDAM_COMPLETION_IMMEDIATE, 0);
            assert_memory_equal(place, a.memory, lengths[i]);
            assert_int_equal(place[-1], 0x22);
            assert_int_equal(place[lengths[i]], 0x22);
        }
        assert_int_equal(netdam_queue_receives(b.queue), 0);
    }
}

static void refused_messages_take_no_buffer(void **state)
{
    struct netdam_remote wrong = to_b();

    (void)state;
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 8, SOON), NETDAM_STATUS_NOT_READY);
    offer(&b, 7, 0, 8);
    wrong.key ^= 1;
    assert_int_equal(netdam_send(a.queue, wrong, in(&a, 0), 8, SOON), NETDAM_STATUS_BAD_KEY);
    wrong.key = netdam_region_key(b.region);
    assert_int_equal(netdam_send(a.queue, wrong, in(&a, 0), 8, SOON), NETDAM_STATUS_BAD_KEY);
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 9, SOON), NETDAM_STATUS_BAD_LENGTH);
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), a.info.payload_max + 1, SOON),
                     NETDAM_STATUS_LOCAL_DESCRIPTOR);
    wrong = to_b();
    wrong.address = 8;
    assert_int_equal(netdam_send(a.queue, wrong, in(&a, 0), 8, SOON), NETDAM_STATUS_LOCAL_DESCRIPTOR);
    fill(a.memory, 8, 1);
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 8, SOON), 0);
    assert_int_equal(await_message(&b, 7).length, 8);
    assert_memory_equal(a.memory, b.memory, 8);
}

static void immediates_come_with_messages_and_writes(void **state)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_SEND,
        .flags = NETDAM_DESCRIPTOR_IMMEDIATE,
        .user_data = 5,
        .remote = to_b(),
        .local = in(&a, 0),
        .length = 100,
        .immediate = 0xfeedf00d,
    };
    struct netdam_completion completion;

    (void)state;
    offer(&b, 1, 65536, 200);
    fill(a.memory, 100, 3);
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
    completion = await_message(&b, 1);
    assert_int_equal(completion.flags, NETDAM_COMPLETION_RECEIVE | NETDAM_COMPLETION_IMMEDIATE);
    assert_int_equal(completion.immediate, 0xfeedf00d);
    assert_memory_equal(b.memory + 65536, a.memory, 100);

    /* Of many packets: told when all of them are there, the buffer untouched. */
    for (unsigned round = 0; round < 10; round++) {
        memset(b.memory, 0x22, REGION_BYTES);
        fill(a.memory, 100000, round);
        offer(&b, 2, 200000, 64);
        request.opcode = NETDAM_OP_WRITE;
        request.remote = at_b(77);
        request.length = 100000;
        request.immediate = round;
        assert_int_equal(netdam_post(a.queue, &request, 1), 1);
        completion = await_message(&b, 2);
        assert_memory_equal(b.memory + 77, a.memory, 100000);
        assert_int_equal(completion.opcode, NETDAM_OP_WRITE);
        assert_int_equal(completion.immediate, round);
        assert_int_equal(b.memory[200000], 0x22);
        assert_int_equal(await(&a).status, NETDAM_STATUS_OK);
    }
    request.length = 8;
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_NOT_READY);
    request.opcode = NETDAM_OP_REDUCE;
    request.operation = NETDAM_ALU_SUM;
    request.type = NETDAM_TYPE_U8;
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_LOCAL_DESCRIPTOR);
}

static void region_without_queue_pair_refuses_immediates(void **state)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE, .flags = NETDAM_DESCRIPTOR_IMMEDIATE, .local = in(&a, 0), .length = 8};
    struct netdam_region *plain;
    uint64_t offset;

    (void)state;
    assert_int_equal(netdam_alloc(b.device, 4096, 0, &offset), 0);
    assert_int_equal(netdam_region_create(b.device, offset, 4096, NETDAM_PERMISSION_ALL, 0, &plain), 0);
    memset(netdam_region_pointer(plain), 0x33, 4096);
    request.remote = (struct netdam_remote){a.peer, netdam_region_key(plain), 0};
    offer(&b, 9, 0, 8);
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_NO_PERMISSION);
    assert_int_equal(*(uint8_t *)netdam_region_pointer(plain), 0x33);
    assert_int_equal(netdam_queue_receives(b.queue), 1);
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 0, SOON), 0);
    await_message(&b, 9);
    assert_int_equal(netdam_region_destroy(plain), 0);
    assert_int_equal(netdam_free(b.device, offset), 0);
}

/* A list of four pieces of odd sizes at `side`; their sum. */
static uint32_t make_pieces(const struct side *side, struct netdam_piece pieces[NETDAM_LIST_MAX], uint32_t scale)
{
    const uint32_t lengths[NETDAM_LIST_MAX] = {3 * scale, 1, 5 * scale + 2, scale};
    uint32_t sum = 0;

    for (unsigned i = 0; i < NETDAM_LIST_MAX; i++) {
        pieces[i] = (struct netdam_piece){in(side, 20001 * (uint64_t)(NETDAM_LIST_MAX - i)), lengths[i], 0};
        sum += lengths[i];
    }
    return sum;
}

static void gather(const struct side *side, const struct netdam_piece *pieces, uint8_t *bytes)
{
    for (unsigned i = 0; i < NETDAM_LIST_MAX; i++) {
        memcpy(bytes, side->memory + pieces[i].local.address, pieces[i].length);
        bytes += pieces[i].length;
    }
}

static void lists_gather_and_scatter(void **state)
{
    struct netdam_piece from[NETDAM_LIST_MAX];
    struct netdam_piece into[NETDAM_LIST_MAX];
    static uint8_t sent[REGION_BYTES];
    static uint8_t got[REGION_BYTES];
    const uint32_t scales[] = {1, 50, 1500};

    (void)state;
    for (unsigned i = 0; i < COUNT(scales); i++) {
        uint32_t bytes = make_pieces(&a, from, scales[i]);
        struct netdam_request request = {
            .opcode = NETDAM_OP_WRITE, .remote = at_b(100000), .list = from, .list_count = NETDAM_LIST_MAX};
        struct netdam_receive receive = {.user_data = 4, .list = into, .list_count = NETDAM_LIST_MAX};

        make_pieces(&b, into, scales[i]);
        fill(a.memory, REGION_BYTES, i);
        gather(&a, from, sent);
        memset(b.memory, 0x22, REGION_BYTES);
        assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
        assert_memory_equal(b.memory + 100000, sent, bytes);
        assert_int_equal(b.memory[99999], 0x22);
        assert_int_equal(b.memory[100000 + bytes], 0x22);

        /* Sums of bytes: everything doubles. */
        request.opcode = NETDAM_OP_REDUCE;
        request.operation = NETDAM_ALU_SUM;
        request.type = NETDAM_TYPE_U8;
        assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
        for (uint32_t n = 0; n < bytes; n++) {
            assert_int_equal(b.memory[100000 + n], (uint8_t)(2 * sent[n]));
        }

        /* READ stores into the pieces. */
        request.opcode = NETDAM_OP_READ;
        request.operation = NETDAM_ALU_NONE;
        request.type = NETDAM_TYPE_NONE;
        memset(a.memory, 0x11, REGION_BYTES);
        assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
        gather(&a, from, got);
        assert_memory_equal(got, b.memory + 100000, bytes);

        if (bytes > a.info.payload_max) {
            continue;
        }
        memset(b.memory, 0x22, REGION_BYTES);
        assert_int_equal(netdam_post_receive(b.queue, &receive, 1), 1);
        gather(&a, from, sent);
        request.opcode = NETDAM_OP_SEND;
        request.remote = to_b();
        assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
        assert_int_equal(await_message(&b, 4).length, bytes);
        gather(&b, into, got);
        assert_memory_equal(got, sent, bytes);
    }
}

static void list_outside_its_region_is_refused(void **state)
{
    struct netdam_piece pieces[2] = {{in(&a, 0), 8, 0}, {in(&a, REGION_BYTES - 4), 5, 0}};
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .remote = at_b(0), .list = pieces, .list_count = 2};

    (void)state;
    memset(b.memory, 0x22, 64);
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_LOCAL_RANGE);
    assert_int_equal(b.memory[0], 0x22);
}

static void ways_of_delivery_deliver(void **state)
{
    static const struct {
        uint32_t flags;
        uint8_t opcode;
        uint8_t operation;
        uint8_t type;
        uint8_t status;
    } table[] = {
        {NETDAM_DESCRIPTOR_ORDERED, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, NETDAM_STATUS_OK},
        {NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, NETDAM_STATUS_OK},
        {NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_REDUCE, NETDAM_ALU_MAX, NETDAM_TYPE_U8, NETDAM_STATUS_OK},
        {NETDAM_DESCRIPTOR_ORDERED, NETDAM_OP_REDUCE, NETDAM_ALU_SUM, NETDAM_TYPE_U8, NETDAM_STATUS_OK},
        {NETDAM_DESCRIPTOR_FENCE, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, NETDAM_STATUS_OK},
        {NETDAM_DESCRIPTOR_FENCE | NETDAM_DESCRIPTOR_ORDERED, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE,
         NETDAM_STATUS_OK},
        /* What is not idempotent cannot be relaxed. */
        {NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_REDUCE, NETDAM_ALU_SUM, NETDAM_TYPE_U8, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_ORDERED, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE,
         NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {NETDAM_DESCRIPTOR_RELAXED, NETDAM_OP_READ, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {0x80, NETDAM_OP_WRITE, NETDAM_ALU_NONE, NETDAM_TYPE_NONE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        struct netdam_request request = {
            .opcode = table[i].opcode,
            .operation = table[i].operation,
            .type = table[i].type,
            .flags = table[i].flags,
            .remote = at_b(64),
            .local = in(&a, 0),
            .length = 20000,
        };

        print_message("# row %u\n", i);
        fill(a.memory, 20000, i);
        memset(b.memory, 0, 40000);
        assert_int_equal(execute(&a, &request), table[i].status);
        if (table[i].status == NETDAM_STATUS_OK) {
            assert_memory_equal(b.memory + 64, a.memory, 20000);
        }
    }
}

/* Each overwrites the one before: without order some older one would win now and then. */
static void ordered_writes_keep_their_order(void **state)
{
    struct netdam_request requests[32];
    struct netdam_completion completion;

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < COUNT(requests); i++) {
            memcpy(a.memory + 8 * (uint64_t)i, &i, sizeof(i));
            requests[i] = (struct netdam_request){
                .opcode = NETDAM_OP_WRITE,
                .flags = NETDAM_DESCRIPTOR_ORDERED,
                .remote = at_b(0),
                .local = in(&a, 8 * (uint64_t)i),
                .length = 4,
            };
        }
        assert_int_equal(netdam_post(a.queue, requests, COUNT(requests)), COUNT(requests));
        for (uint32_t i = 0; i < COUNT(requests); i++) {
            completion = await(&a);
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
        }
        assert_int_equal(b.memory[0], COUNT(requests) - 1);
    }
}

static void unreliable_writes_complete_by_themselves(void **state)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE,
        .flags = NETDAM_DESCRIPTOR_UNRELIABLE,
        .remote = at_b(0),
        .local = in(&a, 0),
        .length = 8,
    };
    bool arrived = false;

    (void)state;
    fill(a.memory, 8, 99);
    memset(b.memory, 0, 8);
    /* Any one may be lost, but not all of them. The READ between is for time to pass. */
    for (unsigned i = 0; i < 1000 && !arrived; i++) {
        assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
        assert_int_equal(netdam_read(a.queue, in(&a, 64), at_b(0), 8, SOON), 0);
        arrived = memcmp(a.memory, a.memory + 64, 8) == 0;
    }
    assert_true(arrived);
    /* Nor is there anybody to refuse it. */
    request.remote.key ^= 1;
    assert_int_equal(execute(&a, &request), NETDAM_STATUS_OK);
}

static void swap_returns_what_was_there(void **state)
{
    uint64_t value = UINT64_C(0x1122334455667788);
    uint64_t old = 0;

    (void)state;
    for (unsigned type = NETDAM_TYPE_U8; type <= NETDAM_TYPE_I64; type++) {
        unsigned bits = 8 * netdam_type_bytes(type);
        uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

        memset(b.memory, 0, 24);
        memcpy(b.memory + 8, &value, 8);
        assert_int_equal(netdam_swap(a.queue, type, at_b(8), 0x5a & mask, &old, SOON), 0);
        assert_int_equal(old, value & mask);
        assert_int_equal(b.memory[8], 0x5a);
        assert_int_equal(b.memory[7], 0);
        assert_int_equal(netdam_swap(a.queue, type, at_b(8), old, NULL, SOON), 0);
        assert_memory_equal(b.memory + 8, &value, 8);
    }
    assert_int_equal(netdam_swap(a.queue, NETDAM_TYPE_F32, at_b(8), 0, &old, SOON), NETDAM_STATUS_LOCAL_DESCRIPTOR);
    assert_int_equal(netdam_swap(a.queue, NETDAM_TYPE_U64, at_b(4), 0, &old, SOON), NETDAM_STATUS_MISALIGNED);
}

static uint64_t u32_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static void fetch_op_returns_what_was_there(void **state)
{
    const struct {
        unsigned operation;
        unsigned type;
        uint64_t memory;
        uint64_t value;
        uint64_t result;
    } table[] = {
        {NETDAM_ALU_SUM, NETDAM_TYPE_U32, 0xffffffff, 2, 1},
        {NETDAM_ALU_PRODUCT, NETDAM_TYPE_I16, 0xfffd, 5, 0xfff1}, /* -3 * 5 */
        {NETDAM_ALU_MIN, NETDAM_TYPE_I8, 0x80, 0x7f, 0x80},
        {NETDAM_ALU_MIN, NETDAM_TYPE_U8, 0x80, 0x7f, 0x7f},
        {NETDAM_ALU_MAX, NETDAM_TYPE_I64, UINT64_MAX, 0, 0},
        {NETDAM_ALU_AND, NETDAM_TYPE_U64, 0xff00, 0x0ff0, 0x0f00},
        {NETDAM_ALU_OR, NETDAM_TYPE_U16, 0xff00, 0x0ff0, 0xfff0},
        {NETDAM_ALU_XOR, NETDAM_TYPE_U16, 0xff00, 0x0ff0, 0xf0f0},
        {NETDAM_ALU_SUM, NETDAM_TYPE_F32, u32_of(1.5f), u32_of(0.25f), u32_of(1.75f)},
        {NETDAM_ALU_MAX, NETDAM_TYPE_F32, u32_of(-2), u32_of(3), u32_of(3)},
        {NETDAM_ALU_SUM, NETDAM_TYPE_F16, 0x3c00, 0x3c00, 0x4000},  /* 1 + 1 = 2 */
        {NETDAM_ALU_SUM, NETDAM_TYPE_BF16, 0x3f80, 0x3f80, 0x4000}, /* 1 + 1 = 2 */
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        unsigned bytes = netdam_type_bytes(table[i].type);
        uint64_t old = 1;
        uint64_t now = 0;

        print_message("# %s %s\n", netdam_alu_name(table[i].operation), netdam_type_name(table[i].type));
        memset(b.memory, 0x77, 32);
        memcpy(b.memory + 8, &table[i].memory, bytes);
        assert_int_equal(
            netdam_fetch_op(a.queue, table[i].operation, table[i].type, at_b(8), table[i].value, &old, SOON), 0);
        assert_int_equal(old, table[i].memory);
        memcpy(&now, b.memory + 8, bytes);
        assert_int_equal(now, table[i].result);
        assert_int_equal(b.memory[8 + bytes], 0x77);
    }
}

/* Both ways at once, many times round every ring, sleeping on the interrupts. */
static void thousands_of_messages_there_and_back(void **state)
{
    const uint64_t count = 3000;
    uint64_t received = 0;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        offer(&a, i, 131072 + 64 * (uint64_t)i, 64);
        offer(&b, i, 131072 + 64 * (uint64_t)i, 64);
    }
    memcpy(a.memory, &received, sizeof(received));
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 8, SOON), 0);
    while (received < count) {
        const struct side *side = received % 2 == 0 ? &b : &a;
        const struct side *other = received % 2 == 0 ? &a : &b;
        struct netdam_remote to = {side->peer, netdam_queue_receive_key(other->queue), 0};
        struct netdam_completion completion = await(side);
        uint64_t value;

        assert_int_equal(completion.status, NETDAM_STATUS_OK);
        assert_int_equal(completion.flags, NETDAM_COMPLETION_RECEIVE);
        memcpy(&value, side->memory + 131072 + 64 * completion.user_data, sizeof(value));
        assert_int_equal(value, received);
        offer(side, completion.user_data, 131072 + 64 * completion.user_data, 64);
        received++;
        memcpy(side->memory, &received, sizeof(received));
        assert_int_equal(netdam_send(side->queue, to, in(side, 0), 8, SOON), 0);
    }
    /* The last one's answer is still under way to be taken. */
    await(received % 2 == 0 ? &b : &a);
}

static void sleeper_is_woken_by_a_message(void **state)
{
    struct pollfd pollfd = {.fd = netdam_queue_fd(b.queue), .events = POLLIN};

    (void)state;
    assert_true(pollfd.fd >= 0);
    offer(&b, 55, 0, 64);
    assert_int_equal(netdam_queue_arm(b.queue), 0);
    assert_int_equal(netdam_send(a.queue, to_b(), in(&a, 0), 8, SOON), 0);
    assert_int_equal(poll(&pollfd, 1, 120000), 1);
    /* Into one of those that were offered before. */
    assert_int_equal(await(&b).flags, NETDAM_COMPLETION_RECEIVE);
}

/* Last: afterwards nothing of b is left. */
static void reset_returns_the_buffers(void **state)
{
    struct netdam_remote gone = to_b();
    struct netdam_completion completion = {.user_data = 0};
    unsigned posted = netdam_queue_receives(b.queue);

    (void)state;
    offer(&b, 71, 0, 64);
    offer(&b, 72, 64, 64);
    assert_int_equal(netdam_reset(b.device), 0);
    for (unsigned i = 0; i < posted + 2; i++) {
        assert_int_equal(netdam_poll(b.queue, &completion, 1), 1);
        assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
        assert_int_equal(completion.flags, NETDAM_COMPLETION_RECEIVE);
    }
    assert_int_equal(completion.user_data, 72);
    assert_int_equal(netdam_poll(b.queue, &completion, 1), -ESTALE);
    assert_int_equal(netdam_queue_receives(b.queue), 0);
    /* The lists' region went with the rest, and destroying the queue pair does not destroy another's. */
    assert_int_equal(netdam_queue_destroy(b.queue), 0);
    /* What is under way when the far end starts anew may have been executed by the old one. */
    assert_int_equal(netdam_send(a.queue, gone, in(&a, 0), 8, SOON), NETDAM_STATUS_UNKNOWN);
    assert_int_equal(netdam_send(a.queue, gone, in(&a, 0), 8, SOON), NETDAM_STATUS_BAD_KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_fill_buffers_in_order),
        cmocka_unit_test(refused_messages_take_no_buffer),
        cmocka_unit_test(immediates_come_with_messages_and_writes),
        cmocka_unit_test(region_without_queue_pair_refuses_immediates),
        cmocka_unit_test(lists_gather_and_scatter),
        cmocka_unit_test(list_outside_its_region_is_refused),
        cmocka_unit_test(ways_of_delivery_deliver),
        cmocka_unit_test(ordered_writes_keep_their_order),
        cmocka_unit_test(unreliable_writes_complete_by_themselves),
        cmocka_unit_test(swap_returns_what_was_there),
        cmocka_unit_test(fetch_op_returns_what_was_there),
        cmocka_unit_test(thousands_of_messages_there_and_back),
        cmocka_unit_test(sleeper_is_woken_by_a_message),
        cmocka_unit_test(reset_returns_the_buffers),
    };

    return cmocka_run_group_tests_name("driver messages", tests, open_both, close_both);
}
