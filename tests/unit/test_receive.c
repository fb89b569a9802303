/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: SEND and immediates at the node, receive buffers of every kind, refusals, flushing. */
#include "unit.h"

#define SQ   UINT64_C(0x1000)
#define CQ   UINT64_C(0x3000)
#define RQ   UINT64_C(0x5000)
#define DATA UINT64_C(0x10000) /* where receive buffers lie: region 0 */
#define LIST UINT64_C(0x30000) /* lists of them: region 1 */

static struct unit u;
static struct ndtest_queue queue;
static uint64_t receive_key, number;
static uint32_t posted;
static const uint8_t message[64] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

static void begin(unsigned cq_log2)
{
    uint64_t args[] = {SQ, 3, CQ, cq_log2, RQ, 3, NETDAM_QUEUE_NETDAM | 1u << 16, 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    unit_start(&u, 1, NULL);
    unit_region(&u, DATA, 0x8000, NETDAM_PERMISSION_ALL, UNIT_KEY);
    unit_region(&u, LIST, 0x1000, NETDAM_PERMISSION_LOCAL_READ, 0);
    unit_memory_pattern(&u, DATA - 64, 0x8080, 1);
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), NETDAM_ADMIN_STATUS_OK);
    receive_key = results[1];
    assert_true(receive_key != 0);
    queue = (struct ndtest_queue){
        .node = &u.node, .sq_base = SQ, .cq_base = CQ, .sq_log2 = 3, .cq_log2 = cq_log2, .id = (uint32_t)results[0]};
    number = 10;
    posted = 0;
}

static void post_buffer(const struct netdam_descriptor *d)
{
    struct netdam_ring *ring = (struct netdam_ring *)(void *)(u.node.memory + RQ);

    memcpy(u.node.memory + RQ + sizeof(*ring) + 64 * (posted % 8), d, sizeof(*d));
    ring->producer = ++posted;
}

static void post_plain(uint64_t address, uint32_t length, uint64_t user_data)
{
    struct netdam_descriptor d = {.user_data = user_data, .length = length, .u.buffer.local_address = address};

    post_buffer(&d);
}

static struct unit_request send_request(uint32_t length)
{
    struct unit_request r = {
        .opcode = NETDAM_OP_SEND,
        .length = length,
        .key = receive_key,
        .generation = UNIT_GENERATION,
        .number = number++,
        .payload = message,
        .payload_length = length,
    };

    return r;
}

static void expect_status(const struct unit_request *r, enum netdam_status status, unsigned flags)
{
    struct ndtest_packet answer;

    unit_ask(&u, r, &answer);
    if (answer.status != (uint8_t)status) {
        fail_msg("status %#x, expected %#x", answer.status, (unsigned)status);
    }
    assert_int_equal(answer.flags, flags);
    assert_int_equal(answer.payload_bytes, 0);
}

static struct netdam_completion expect_receive(uint64_t user_data, enum netdam_status status, uint32_t length)
{
    struct netdam_completion c = unit_completion(&queue);

    assert_true(c.user_data == user_data);
    assert_int_equal(c.status, status);
    assert_int_equal(c.length, length);
    assert_true((c.flags & NETDAM_COMPLETION_RECEIVE) != 0);
    assert_int_equal(c.queue_pair, queue.id);
    return c;
}

static void messages_fill_buffers_in_the_order_of_the_ring(void **state)
{
    static const uint32_t lengths[] = {0, 1, 7, 8, 63, 64};

    (void)state;
    begin(3);
    for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct unit_request r = send_request(lengths[i]);
        uint8_t beyond = (uint8_t)unit_memory_get(&u, DATA + 0x100 * i + i + lengths[i], 1);

        post_plain(0x100 * i + i, 64, 500 + i);
        expect_status(&r, NETDAM_STATUS_OK, 0);
        assert_int_equal(expect_receive(500 + i, NETDAM_STATUS_OK, lengths[i]).opcode, NETDAM_OP_SEND);
        assert_memory_equal(u.node.memory + DATA + 0x100 * i + i, message, lengths[i]);
        assert_int_equal(unit_memory_get(&u, DATA + 0x100 * i + i + lengths[i], 1), beyond);
        expect_status(&r, NETDAM_STATUS_OK, NETDAM_FLAG_AGAIN); /* a copy takes no other buffer */
        unit_expect_no_completion(&queue);
    }
    unit_stop(&u);
}

static void without_buffer_key_or_room_a_message_is_refused_for_good(void **state)
{
    struct unit_request r, longer;

    (void)state;
    begin(1); /* two completions */
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_NOT_READY, 0);
    post_plain(0, 64, 1);
    expect_status(&r, NETDAM_STATUS_NOT_READY, NETDAM_FLAG_AGAIN); /* the number is used up */
    longer = send_request(64);
    longer.key ^= 1;
    expect_status(&longer, NETDAM_STATUS_BAD_KEY, 0);
    r = send_request(8);
    r.key = UNIT_KEY; /* a region's key is no receive key */
    expect_status(&r, NETDAM_STATUS_BAD_KEY, 0);
    unit_expect_no_completion(&queue);
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_OK, 0);
    post_plain(64, 16, 2);
    longer = send_request(17);
    expect_status(&longer, NETDAM_STATUS_BAD_LENGTH, 0); /* and the buffer is still there */
    r = send_request(16);
    expect_status(&r, NETDAM_STATUS_OK, 0);
    post_plain(128, 64, 3);
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_NOT_READY, 0); /* the completion ring is full */
    expect_receive(1, NETDAM_STATUS_OK, 8);
    expect_receive(2, NETDAM_STATUS_OK, 16);
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_OK, 0);
    expect_receive(3, NETDAM_STATUS_OK, 8);
    unit_stop(&u);
}

static void malformed_receive_buffers_complete_and_the_next_is_tried(void **state)
{
    static const struct {
        const char *what;
        size_t offset;
        unsigned bytes;
        uint64_t value;
        enum netdam_status status;
    } rows[] = {
#define FIELD(member) offsetof(struct netdam_descriptor, member), sizeof(((struct netdam_descriptor *)0)->member)
        {"opcode", FIELD(opcode), NETDAM_OP_SEND, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"operation", FIELD(operation), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"type", FIELD(type), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list without flag", FIELD(list_count), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"flags", FIELD(flags), NETDAM_DESCRIPTOR_FENCE, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"undefined flag", FIELD(flags), 0x80, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"list of nothing", FIELD(flags), NETDAM_DESCRIPTOR_LIST, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"peer", FIELD(peer), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"key", FIELD(remote_key), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"remote address", FIELD(remote_address), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"immediate", FIELD(immediate), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"reserved", FIELD(u.buffer.result_address), 1, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"length", FIELD(length), UINT32_MAX, NETDAM_STATUS_LOCAL_DESCRIPTOR},
        {"no region", FIELD(local_region), 9, NETDAM_STATUS_LOCAL_REGION},
        {"beyond the table", FIELD(local_region), UINT32_MAX, NETDAM_STATUS_LOCAL_REGION},
        {"region to read only", FIELD(local_region), 1, NETDAM_STATUS_LOCAL_PERMISSION},
        {"range", FIELD(length), 0x8001, NETDAM_STATUS_LOCAL_RANGE},
        {"end", FIELD(u.buffer.local_address), 0x8000 - 63, NETDAM_STATUS_LOCAL_RANGE},
        {"wrap", FIELD(u.buffer.local_address), UINT64_MAX - 3, NETDAM_STATUS_LOCAL_RANGE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct netdam_descriptor d = {.user_data = 7, .length = 64};
        struct unit_request r;
        struct netdam_completion c;

        begin(3);
        memcpy((uint8_t *)&d + rows[i].offset, &rows[i].value, rows[i].bytes);
        post_buffer(&d);
        post_plain(0x200, 64, 8);
        r = send_request(32);
        expect_status(&r, NETDAM_STATUS_OK, 0);
        c = unit_completion(&queue);
        if (c.user_data != 7 || c.status != (uint8_t)rows[i].status) {
            fail_msg("%s: status %#x of %llu", rows[i].what, c.status, (unsigned long long)c.user_data);
        }
        assert_int_equal(c.flags, NETDAM_COMPLETION_RECEIVE);
        assert_int_equal(c.length, 0);
        expect_receive(8, NETDAM_STATUS_OK, 32);
        assert_memory_equal(u.node.memory + DATA + 0x200, message, 32);
        unit_stop(&u);
    }
}

static void a_receive_buffer_may_be_a_list(void **state)
{
    struct netdam_list_entry entries[] = {{0, 5, 0x11}, {0, 0, 0}, {0, 20, 0x103}, {0, 39, 0x207}};
    struct netdam_descriptor d = {.user_data = 1,
                                  .length = 64,
                                  .flags = NETDAM_DESCRIPTOR_LIST,
                                  .list_count = 4,
                                  .local_region = 1,
                                  .u.buffer.local_address = 24};
    struct unit_request r;

    (void)state;
    begin(3);
    memcpy(u.node.memory + LIST + 24, entries, sizeof(entries));
    post_buffer(&d);
    r = send_request(64);
    expect_status(&r, NETDAM_STATUS_OK, 0);
    expect_receive(1, NETDAM_STATUS_OK, 64);
    assert_memory_equal(u.node.memory + DATA + 0x11, message, 5);
    assert_memory_equal(u.node.memory + DATA + 0x103, message + 5, 20);
    assert_memory_equal(u.node.memory + DATA + 0x207, message + 25, 39);
    unit_stop(&u);
}

/* Puts the extension with the immediate behind the header of a request frame. */
static size_t add_immediate(uint8_t *frame, size_t bytes, uint64_t value)
{
    memmove(frame + 42 + 40, frame + 42 + 32, bytes - 42 - 32);
    for (unsigned i = 0; i < 8; i++) {
        frame[42 + 32 + i] = (uint8_t)(value >> (56 - 8 * i));
    }
    frame[42 + 3] |= NETDAM_FLAG_IMMEDIATE;
    ndtest_frame_repair(frame, bytes + 8, true);
    return bytes + 8;
}

static void send_with_immediate(const struct unit_request *r, uint64_t value, enum netdam_status status)
{
    uint8_t frame[UNIT_FRAME_ROOM];
    size_t bytes = add_immediate(frame, unit_request_frame(frame, 0, r), value);
    struct ndtest_packet answer;

    unit_receive(&u, frame, bytes);
    unit_expect_sent(&u, &answer);
    if (answer.status != (uint8_t)status) {
        fail_msg("status %#x, expected %#x", answer.status, (unsigned)status);
    }
}

static void immediates_come_with_messages_and_with_writes(void **state)
{
    const uint64_t value = UINT64_C(0xfedcba9876543210);
    uint64_t args[] = {DATA + 0x1000, 0x1000, NETDAM_PERMISSION_ALL, 77, 0, 1};
    struct netdam_completion c;
    struct unit_request r, write = {.opcode = NETDAM_OP_WRITE,
                                    .length = 16,
                                    .payload = message,
                                    .payload_length = 16,
                                    .key = 77,
                                    .address = 8,
                                    .generation = UNIT_GENERATION};

    (void)state;
    begin(3);
    args[5] = queue.id + 1;
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_CREATE, args, 6, NULL), NETDAM_ADMIN_STATUS_OK);
    r = send_request(8);
    post_plain(0, 64, 1);
    send_with_immediate(&r, value, NETDAM_STATUS_OK);
    c = expect_receive(1, NETDAM_STATUS_OK, 8);
    assert_int_equal(c.flags, NETDAM_COMPLETION_RECEIVE | NETDAM_COMPLETION_IMMEDIATE);
    assert_int_equal(c.immediate, 0x76543210);
    assert_true(c.result == value);
    /* A WRITE leaves the buffer as it is, but uses it up. */
    write.number = number++;
    send_with_immediate(&write, value + 1, NETDAM_STATUS_NOT_READY); /* none there: nothing is applied */
    assert_memory_not_equal(u.node.memory + DATA + 0x1008, message, 16);
    post_plain(0x80, 4, 2);
    write.number = number++;
    send_with_immediate(&write, value + 2, NETDAM_STATUS_OK);
    c = expect_receive(2, NETDAM_STATUS_OK, 16);
    assert_int_equal(c.opcode, NETDAM_OP_WRITE);
    assert_true(c.result == value + 2);
    assert_memory_equal(u.node.memory + DATA + 0x1008, message, 16);
    assert_memory_not_equal(u.node.memory + DATA + 0x80, message, 4);
    /* A region without queue pair has nowhere to put it. */
    write.number = number++;
    write.key = UNIT_KEY;
    post_plain(0x80, 4, 3);
    send_with_immediate(&write, value, NETDAM_STATUS_NO_PERMISSION);
    unit_expect_no_completion(&queue);
    /* Neither has one whose queue pair has gone. */
    assert_int_equal(ndtest_queue_destroy(&queue, u.now_ns), NETDAM_ADMIN_STATUS_OK);
    expect_receive(3, NETDAM_STATUS_FLUSHED, 0);
    write.number = number++;
    write.key = 77;
    send_with_immediate(&write, value, NETDAM_STATUS_NO_PERMISSION);
    /* And nothing but WRITE and SEND carries any. */
    r = (struct unit_request){.opcode = NETDAM_OP_READ, .length = 8, .key = UNIT_KEY, .generation = UNIT_GENERATION};
    send_with_immediate(&r, value, NETDAM_STATUS_BAD_FLAGS);
    r.opcode = NETDAM_OP_FETCH_ADD;
    r.type = NETDAM_TYPE_U64;
    r.payload_length = 8;
    send_with_immediate(&r, value, NETDAM_STATUS_BAD_FLAGS);
    unit_stop(&u);
}

static void an_impossible_index_stops_the_pair_and_messages_are_not_ready(void **state)
{
    struct unit_request r;

    (void)state;
    begin(3);
    ((struct netdam_ring *)(void *)(u.node.memory + RQ))->producer = 9;
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_NOT_READY, 0);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RING_ERRORS), 1);
    ((struct netdam_ring *)(void *)(u.node.memory + RQ))->producer = 1; /* too late */
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_NOT_READY, 0);
    assert_int_equal(unit_counter(&u, NETDAM_COUNTER_RING_ERRORS), 1);
    unit_expect_no_completion(&queue);
    unit_stop(&u);
}

static void a_pair_without_receive_ring_takes_neither_messages_nor_immediates(void **state)
{
    uint64_t args[] = {DATA + 0x1000, 0x1000, NETDAM_PERMISSION_ALL, 77, 0, 0};
    struct ndtest_queue plain;
    struct unit_request r, write = {.opcode = NETDAM_OP_WRITE,
                                    .length = 16,
                                    .payload = message,
                                    .payload_length = 16,
                                    .key = 77,
                                    .generation = UNIT_GENERATION};

    (void)state;
    begin(3);
    unit_queue(&u, &plain, 0x8000, 3);
    args[5] = plain.id + 1;
    assert_int_equal(unit_admin(&u, NETDAM_ADMIN_REGION_CREATE, args, 6, NULL), NETDAM_ADMIN_STATUS_OK);
    r = send_request(8);
    r.key = 0; /* not even of a ring that has none */
    expect_status(&r, NETDAM_STATUS_BAD_KEY, 0);
    write.number = number++;
    send_with_immediate(&write, 5, NETDAM_STATUS_NOT_READY);
    assert_memory_not_equal(u.node.memory + DATA + 0x1000, message, 16);
    unit_expect_no_completion(&plain);
    unit_expect_no_completion(&queue);
    unit_stop(&u);
}

static void interrupts_come_for_messages_too(void **state)
{
    struct unit_request r;

    (void)state;
    begin(3);
    post_plain(0, 64, 1);
    ((struct netdam_ring *)(void *)(u.node.memory + CQ))->arm++;
    r = send_request(8);
    expect_status(&r, NETDAM_STATUS_OK, 0);
    assert_int_equal(u.node.interrupts, 1);
    assert_int_equal(u.last_vector, 1);
    unit_stop(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_fill_buffers_in_the_order_of_the_ring),
        cmocka_unit_test(without_buffer_key_or_room_a_message_is_refused_for_good),
        cmocka_unit_test(malformed_receive_buffers_complete_and_the_next_is_tried),
        cmocka_unit_test(a_receive_buffer_may_be_a_list),
        cmocka_unit_test(immediates_come_with_messages_and_with_writes),
        cmocka_unit_test(an_impossible_index_stops_the_pair_and_messages_are_not_ready),
        cmocka_unit_test(a_pair_without_receive_ring_takes_neither_messages_nor_immediates),
        cmocka_unit_test(interrupts_come_for_messages_too),
    };

    return cmocka_run_group_tests_name("receive", tests, NULL, NULL);
}
