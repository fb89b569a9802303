/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive rings, lists of local memory, immediates and the operations of the second round, over the fake device. */
#include "test.h"

#include <string.h>

#include "fake.h"

#define SOON (UINT64_C(1000000000) * 20)

struct rig {
    struct fake *fake;
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    struct netdam_region *region;
    struct netdam_region *other;
};

static struct rig rig_open(uint32_t receive_depth, uint32_t first_index)
{
    const struct netdam_queue_config config = {
        .submission_depth = 4, .completion_depth = 8, .first_index = first_index, .receive_depth = receive_depth};
    struct rig rig = {.fake = fake_open(false)};

    assert_int_equal(netdam_queue_create(rig.fake->device, &config, &rig.queue), 0);
    assert_int_equal(netdam_peer_open(rig.fake->device, "10.0.0.2", &rig.peer), 0);
    assert_int_equal(netdam_region_create(rig.fake->device, 65536, 65536, NETDAM_PERMISSION_ALL, 0, &rig.region), 0);
    assert_int_equal(netdam_region_create(rig.fake->device, 131072, 65536, NETDAM_PERMISSION_ALL, 0, &rig.other), 0);
    return rig;
}

static struct netdam_receive buffer(const struct rig *rig, uint64_t user_data)
{
    return (struct netdam_receive){.user_data = user_data, .local = {rig->region, 512}, .length = 256};
}

/* What the device would read as the list of a descriptor. */
static const struct netdam_list_entry *list_of(const struct rig *rig, const struct netdam_descriptor *descriptor)
{
    /* The list's region was created last. */
    const uint64_t *arguments = rig->fake->last_arguments[NETDAM_ADMIN_REGION_CREATE];

    assert_int_equal(descriptor->local_region, rig->fake->regions - 1);
    assert_int_equal(arguments[2], NETDAM_PERMISSION_LOCAL_READ);
    assert_true(descriptor->u.buffer.local_address + sizeof(struct netdam_list_entry) * descriptor->list_count <=
                arguments[1]);
    return (const void *)(rig->fake->memory + arguments[0] + descriptor->u.buffer.local_address);
}

static void receive_ring_is_made_on_demand(void **state)
{
    struct rig rig = rig_open(5, 77);
    const uint64_t *arguments = rig.fake->last_arguments[NETDAM_ADMIN_QUEUE_CREATE];
    struct netdam_queue_config config = {.receive_depth = 65537};
    struct netdam_receive receive = buffer(&rig, 1);
    struct netdam_queue *queue;

    (void)state;
    assert_int_equal(arguments[5], 3);
    assert_int_equal(arguments[4] % NETDAM_RING_ALIGN, 0);
    assert_true(arguments[4] >= arguments[2] + netdam_ring_bytes(3, sizeof(struct netdam_completion)));
    assert_int_equal(netdam_queue_receive_key(rig.queue), FAKE_RECEIVE_KEY);
    assert_int_equal(netdam_queue_create(rig.fake->device, &config, &queue), -EINVAL);
    assert_int_equal(netdam_queue_create(rig.fake->device, NULL, &queue), 0);
    assert_int_equal(arguments[4], 0);
    assert_int_equal(arguments[5], 0);
    assert_int_equal(netdam_queue_receive_key(queue), 0);
    assert_int_equal(netdam_post_receive(queue, &receive, 1), -EINVAL);
    fake_close(rig.fake);
}

static void refused_receive_ring_leaves_no_memory_behind(void **state)
{
    const struct netdam_queue_config config = {.receive_depth = 16};
    struct fake *fake = fake_open(false);
    struct netdam_queue *queue;
    uint64_t offset;

    (void)state;
    fake->admin_forced = NETDAM_ADMIN_STATUS_UNSUPPORTED;
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), -EOPNOTSUPP);
    fake->admin_forced = 0;
    /* Room for two of the three rings. */
    assert_int_equal(
        netdam_alloc(fake->device, FAKE_MEMORY_BYTES - (256 * 64 + 128) - (256 * 32 + 128) - 64, 0, &offset), 0);
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), -ENOSPC);
    assert_int_equal(netdam_free(fake->device, offset), 0);
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), 0);
    assert_int_equal(netdam_queue_destroy(queue), 0);
    assert_int_equal(netdam_alloc(fake->device, FAKE_MEMORY_BYTES, 0, &offset), 0);
    fake_close(fake);
}

static void buffers_are_posted_and_returned_in_order(void **state)
{
    struct rig rig = rig_open(4, 0xfffffffe);
    struct netdam_completion completion;
    struct netdam_descriptor taken;
    const uint32_t immediate = 0xabcdef01;
    uint64_t next = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct netdam_receive receive = buffer(&rig, 100 + i);

        assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        struct netdam_receive receive = buffer(&rig, 104 + i);

        assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), -EAGAIN);
        assert_int_equal(netdam_queue_receives(rig.queue), 4);
        assert_true(fake_message(rig.fake, 0, NETDAM_OP_SEND, 33, i % 2 == 0 ? &immediate : NULL, &taken));
        assert_int_equal(taken.opcode, 0);
        assert_int_equal(taken.flags, 0);
        assert_int_equal(taken.peer, 0);
        assert_int_equal(taken.length, 256);
        assert_int_equal(taken.local_region, netdam_region_index(rig.region));
        assert_int_equal(taken.u.buffer.local_address, 512);
        assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
        assert_int_equal(completion.user_data, 100 + next++);
        assert_int_equal(completion.length, 33);
        assert_int_equal(completion.opcode, NETDAM_OP_SEND);
        if (i % 2 == 0) {
            assert_int_equal(completion.flags, NETDAM_COMPLETION_RECEIVE | NETDAM_COMPLETION_IMMEDIATE);
            assert_int_equal(completion.immediate, immediate);
        } else {
            assert_int_equal(completion.flags, NETDAM_COMPLETION_RECEIVE);
        }
        assert_int_equal(netdam_queue_receives(rig.queue), 3);
        assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), 1);
    }
    assert_int_equal(netdam_queue_outstanding(rig.queue), 0);
    assert_int_equal(rig.fake->log_lines, 0);
    fake_close(rig.fake);
}

static void malformed_buffers_are_refused(void **state)
{
    struct rig rig = rig_open(4, 0);
    struct fake *fake = fake_open(false);
    struct netdam_region *foreign;
    struct netdam_receive receives[2] = {buffer(&rig, 1), buffer(&rig, 2)};

    (void)state;
    assert_int_equal(netdam_region_create(fake->device, 0, 64, NETDAM_PERMISSION_ALL, 0, &foreign), 0);
    receives[1].local.region = NULL;
    assert_int_equal(netdam_post_receive(rig.queue, receives, 2), 1);
    assert_int_equal(netdam_post_receive(rig.queue, receives + 1, 1), -EINVAL);
    receives[1].local.region = foreign;
    assert_int_equal(netdam_post_receive(rig.queue, receives + 1, 1), -EINVAL);
    receives[1] = buffer(&rig, 2);
    receives[1].length = 4097;
    assert_int_equal(netdam_post_receive(rig.queue, receives + 1, 1), -EMSGSIZE);
    assert_int_equal(netdam_post_receive(rig.queue, receives + 1, 0), 0);
    rig.fake->queues[0].rq->consumer = 2;
    assert_int_equal(netdam_post_receive(rig.queue, receives, 1), -EIO);
    assert_int_equal(netdam_reset(rig.fake->device), 0);
    assert_int_equal(netdam_post_receive(rig.queue, receives, 1), -ESTALE);
    fake_close(fake);
    fake_close(rig.fake);
}

static void buffers_wake_nobody(void **state)
{
    struct rig rig = rig_open(8, 0);
    struct netdam_receive receives[3] = {buffer(&rig, 1), buffer(&rig, 2), buffer(&rig, 3)};

    (void)state;
    rig.fake->queues[0].rq->consumer_flags = NETDAM_RING_NEED_WAKEUP;
    assert_int_equal(netdam_post_receive(rig.queue, receives, 3), 3);
    assert_int_equal(rig.fake->queues[0].doorbells, 0);
    fake_close(rig.fake);
}

static void message_that_nobody_has_a_buffer_for_is_dropped(void **state)
{
    struct rig rig = rig_open(4, 0);
    struct netdam_receive receive = buffer(&rig, 5);
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE, .remote = {rig.peer, 1, 0}, .local = {rig.region, 0}, .user_data = 6};
    struct netdam_completion completion = {.flags = NETDAM_COMPLETION_RECEIVE};
    struct netdam_descriptor taken;

    (void)state;
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), 1);
    /* A message into a request's slot, and a request's end into a buffer's. */
    completion.user_data = ((const struct netdam_descriptor *)(const void *)(rig.fake->queues[0].sq + 1))->user_data;
    fake_complete(rig.fake, 0, &completion);
    completion.flags = 0;
    completion.user_data = ((const struct netdam_descriptor *)(const void *)(rig.fake->queues[0].rq + 1))->user_data;
    fake_complete(rig.fake, 0, &completion);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 0);
    assert_int_equal(rig.fake->log_lines, 2);
    assert_int_equal(fake_run(rig.fake, 0, 1), 1);
    assert_true(fake_message(rig.fake, 0, NETDAM_OP_SEND, 1, NULL, &taken));
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.user_data, 6);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.user_data, 5);
    fake_close(rig.fake);
}

static void blocking_operations_keep_messages(void **state)
{
    struct rig rig = rig_open(4, 0);
    struct netdam_receive receive = buffer(&rig, 5);
    struct netdam_completion completion;

    (void)state;
    assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), 1);
    assert_true(fake_message(rig.fake, 0, NETDAM_OP_SEND, 9, NULL, NULL));
    rig.fake->want_wakeup = true;
    rig.fake->run_at_doorbell = true;
    fake_run(rig.fake, 0, 0);
    assert_int_equal(netdam_send(rig.queue, (struct netdam_remote){rig.peer, FAKE_RECEIVE_KEY, 0},
                                 (struct netdam_local){rig.region, 64}, 10, SOON),
                     0);
    assert_int_equal(rig.fake->taken[0].opcode, NETDAM_OP_SEND);
    assert_int_equal(rig.fake->taken[0].remote_key, FAKE_RECEIVE_KEY);
    assert_int_equal(rig.fake->taken[0].length, 10);
    assert_int_equal(rig.fake->taken[0].u.buffer.local_address, 64);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.user_data, 5);
    assert_int_equal(completion.length, 9);
    fake_close(rig.fake);
}

static void lists_lie_in_memory_as_given(void **state)
{
    struct rig rig = rig_open(2, 0);
    const struct netdam_piece pieces[4] = {
        {{rig.region, 8}, 100, 0}, {{rig.other, 0x1234}, 1, 0}, {{rig.region, 0}, 0, 0}, {{rig.other, 7}, 3000, 0}};
    const struct netdam_piece parts[2] = {{{rig.other, 1}, 2, 0}, {{rig.region, 3}, 4, 0}};
    struct netdam_request requests[2] = {
        {.opcode = NETDAM_OP_WRITE,
         .remote = {rig.peer, 1, 2},
         .list = pieces,
         .list_count = 4,
         .flags = NETDAM_DESCRIPTOR_FENCE},
        {.opcode = NETDAM_OP_SEND, .remote = {rig.peer, 1, 0}, .list = parts, .list_count = 2, .length = 6},
    };
    struct netdam_receive receive = {.user_data = 3, .list = parts, .list_count = 2};
    const struct netdam_descriptor *taken = rig.fake->taken;
    struct netdam_completion completions[4];
    struct netdam_descriptor received;
    const struct netdam_list_entry *lists[3];

    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        rig.fake->taken_count = 0;
        assert_int_equal(netdam_post(rig.queue, requests, 2), 2);
        assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), 1);
        assert_int_equal(rig.fake->regions, 3); /* made once */
        assert_int_equal(fake_run(rig.fake, 0, 2), 2);
        assert_true(fake_message(rig.fake, 0, NETDAM_OP_SEND, 1, NULL, &received));
        lists[0] = list_of(&rig, &taken[0]);
        lists[1] = list_of(&rig, &taken[1]);
        lists[2] = list_of(&rig, &received);
        assert_int_equal(taken[0].flags, NETDAM_DESCRIPTOR_LIST | NETDAM_DESCRIPTOR_FENCE);
        assert_int_equal(taken[0].list_count, 4);
        assert_int_equal(taken[0].length, 3101);
        assert_int_equal(taken[1].flags, NETDAM_DESCRIPTOR_LIST);
        assert_int_equal(taken[1].list_count, 2);
        assert_int_equal(taken[1].length, 6);
        assert_int_equal(received.flags, NETDAM_DESCRIPTOR_LIST);
        assert_int_equal(received.length, 6);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(lists[0][i].local_region, netdam_region_index(pieces[i].local.region));
            assert_int_equal(lists[0][i].length, pieces[i].length);
            assert_int_equal(lists[0][i].local_address, pieces[i].local.address);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(lists[1][i].local_region, netdam_region_index(parts[i].local.region));
            assert_int_equal(lists[2][i].local_address, parts[i].local.address);
        }
        assert_int_equal(netdam_poll(rig.queue, completions, 4), 3);
    }
    assert_int_equal(rig.fake->commands[NETDAM_ADMIN_REGION_DESTROY], 0);
    assert_int_equal(netdam_queue_destroy(rig.queue), 0);
    assert_int_equal(rig.fake->commands[NETDAM_ADMIN_REGION_DESTROY], 1);
    fake_close(rig.fake);
}

static void malformed_lists_are_refused(void **state)
{
    struct rig rig = rig_open(2, 0);
    struct netdam_piece pieces[5] = {{{rig.region, 8}, 100, 0},
                                     {{rig.region, 8}, 100, 0},
                                     {{rig.region, 8}, 100, 0},
                                     {{rig.region, 8}, 100, 0},
                                     {{rig.region, 8}, 100, 0}};
    struct netdam_request request = {.opcode = NETDAM_OP_WRITE, .remote = {rig.peer, 1, 2}, .list = pieces};
    struct netdam_receive receive = {.list = pieces};
    uint64_t offset;

    (void)state;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), -EINVAL);
    request.list_count = 5;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    receive.list_count = 256 + 1; /* as a byte it would be 1 */
    assert_int_equal(netdam_post_receive(rig.queue, &receive, 1), -EINVAL);
    request.list_count = 2;
    request.length = 199;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    request.length = 0;
    request.local.region = rig.region;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    request.local.region = NULL;
    pieces[1].length = UINT32_MAX; /* the sum would wrap */
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EMSGSIZE);
    pieces[1].length = 1;
    pieces[1].local.region = NULL;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    pieces[1].local.region = rig.region;
    request.opcode = NETDAM_OP_SWAP;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EINVAL);
    request.opcode = NETDAM_OP_WRITE;
    rig.fake->admin_forced = NETDAM_ADMIN_STATUS_NO_SPACE;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -ENOSPC);
    rig.fake->admin_forced = 0;
    assert_int_equal(rig.fake->regions, 2);
    assert_int_equal(netdam_queue_outstanding(rig.queue), 0);
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(netdam_queue_destroy(rig.queue), 0);
    assert_int_equal(netdam_alloc(rig.fake->device, FAKE_MEMORY_BYTES, 0, &offset), 0);
    fake_close(rig.fake);
}

static void region_names_the_queue_pair_of_its_immediates(void **state)
{
    struct rig rig = rig_open(2, 0);
    struct netdam_region_config config = {.offset = 64, .bytes = 128, .key = 77, .permissions = 9, .tenant = 3};
    const uint64_t *arguments = rig.fake->last_arguments[NETDAM_ADMIN_REGION_CREATE];
    struct netdam_region *region;
    struct netdam_queue *deaf;

    (void)state;
    assert_int_equal(netdam_queue_create(rig.fake->device, NULL, &deaf), 0);
    config.immediates = deaf;
    assert_int_equal(netdam_region_create_config(rig.fake->device, &config, &region), -EINVAL);
    config.immediates = rig.queue;
    assert_int_equal(netdam_region_create_config(rig.fake->device, &config, &region), 0);
    assert_int_equal(arguments[0], 64);
    assert_int_equal(arguments[1], 128);
    assert_int_equal(arguments[2], 9);
    assert_int_equal(arguments[3], 77);
    assert_int_equal(arguments[4], 3);
    assert_int_equal(arguments[5], 1);
    config.immediates = NULL;
    assert_int_equal(netdam_region_create_config(rig.fake->device, &config, &region), 0);
    assert_int_equal(arguments[5], 0);
    assert_int_equal(netdam_reset(rig.fake->device), 0);
    config.immediates = rig.queue;
    assert_int_equal(netdam_region_create_config(rig.fake->device, &config, &region), -ESTALE);
    fake_close(rig.fake);
}

static void swap_and_fetch_op_say_what_they_do(void **state)
{
    static const struct fake_result script[] = {
        {NETDAM_STATUS_OK, 41}, {NETDAM_STATUS_OK, 42}, {NETDAM_STATUS_MISALIGNED, 9}};
    struct rig rig = rig_open(0, 0);
    struct netdam_remote at = {rig.peer, 0x55, 8};
    const struct netdam_descriptor *taken = rig.fake->taken;
    uint64_t old = 0;

    (void)state;
    rig.fake->want_wakeup = true;
    rig.fake->run_at_doorbell = true;
    fake_run(rig.fake, 0, 0);
    rig.fake->script = script;
    rig.fake->script_count = COUNT(script);
    assert_int_equal(netdam_swap(rig.queue, NETDAM_TYPE_U16, at, 7, &old, SOON), 0);
    assert_int_equal(old, 41);
    assert_int_equal(taken[0].opcode, NETDAM_OP_SWAP);
    assert_int_equal(taken[0].type, NETDAM_TYPE_U16);
    assert_int_equal(taken[0].length, 2);
    assert_int_equal(taken[0].u.operand[0], 7);
    assert_int_equal(netdam_fetch_op(rig.queue, NETDAM_ALU_MAX, NETDAM_TYPE_F32, at, 0x3f800000, &old, SOON), 0);
    assert_int_equal(old, 42);
    assert_int_equal(taken[1].opcode, NETDAM_OP_FETCH_OP);
    assert_int_equal(taken[1].operation, NETDAM_ALU_MAX);
    assert_int_equal(taken[1].type, NETDAM_TYPE_F32);
    assert_int_equal(taken[1].length, 4);
    assert_int_equal(taken[1].u.operand[0], 0x3f800000);
    assert_int_equal(netdam_swap(rig.queue, NETDAM_TYPE_U64, at, 7, &old, SOON), NETDAM_STATUS_MISALIGNED);
    assert_int_equal(old, 42);
    assert_int_equal(netdam_fetch_op(rig.queue, 256, NETDAM_TYPE_U64, at, 7, &old, SOON), -EINVAL);
    fake_close(rig.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receive_ring_is_made_on_demand),
        cmocka_unit_test(refused_receive_ring_leaves_no_memory_behind),
        cmocka_unit_test(buffers_are_posted_and_returned_in_order),
        cmocka_unit_test(malformed_buffers_are_refused),
        cmocka_unit_test(buffers_wake_nobody),
        cmocka_unit_test(message_that_nobody_has_a_buffer_for_is_dropped),
        cmocka_unit_test(blocking_operations_keep_messages),
        cmocka_unit_test(lists_lie_in_memory_as_given),
        cmocka_unit_test(malformed_lists_are_refused),
        cmocka_unit_test(region_names_the_queue_pair_of_its_immediates),
        cmocka_unit_test(swap_and_fetch_op_say_what_they_do),
    };

    return cmocka_run_group_tests_name("driver receive rings and lists", tests, NULL, NULL);
}
