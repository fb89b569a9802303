/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs over the fake device: order, wrap, full rings, doorbells, broken rings, blocking operations. */
#include "test.h"

#include <poll.h>
#include <string.h>

#include "fake.h"

#define SOON (UINT64_C(1000000000) * 20)

struct rig {
    struct fake *fake;
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    struct netdam_region *region;
};

static struct rig rig_open(uint32_t depth, uint32_t first_index, bool interrupts)
{
    const struct netdam_queue_config config = {
        .submission_depth = depth, .completion_depth = depth, .first_index = first_index};
    struct rig rig = {.fake = fake_open(interrupts)};

    assert_int_equal(netdam_queue_create(rig.fake->device, &config, &rig.queue), 0);
    assert_int_equal(netdam_peer_open(rig.fake->device, "10.0.0.2", &rig.peer), 0);
    assert_int_equal(netdam_region_create(rig.fake->device, 65536, 65536, NETDAM_PERMISSION_ALL, 0, &rig.region), 0);
    return rig;
}

static struct netdam_request write_request(const struct rig *rig, uint64_t user_data)
{
    struct netdam_request request = {
        .opcode = NETDAM_OP_WRITE,
        .user_data = user_data,
        .remote = {rig->peer, 0x1234, 64},
        .local = {rig->region, 128},
        .length = 256,
    };

    return request;
}

static void descriptor_says_what_the_request_says(void **state)
{
    struct rig rig = rig_open(8, 0, false);
    struct netdam_request request = {
        .opcode = NETDAM_OP_REDUCE,
        .operation = NETDAM_ALU_MAX,
        .type = NETDAM_TYPE_F32,
        .list_count = 3,
        .flags = NETDAM_DESCRIPTOR_ORDERED | NETDAM_DESCRIPTOR_LIST,
        .user_data = 0xfeedfacecafebeef,
        .remote = {rig.peer, 0x1122334455667788, 0x99aabbccddeeff00},
        .local = {rig.region, 0x1234567},
        .length = 4000,
        .immediate = 0xabcdef01,
    };
    struct netdam_completion completion;
    const struct netdam_descriptor *taken = rig.fake->taken;

    (void)state;
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(netdam_queue_outstanding(rig.queue), 1);
    assert_int_equal(fake_run(rig.fake, 0, 1), 1);
    assert_int_equal(taken->opcode, NETDAM_OP_REDUCE);
    assert_int_equal(taken->operation, NETDAM_ALU_MAX);
    assert_int_equal(taken->type, NETDAM_TYPE_F32);
    assert_int_equal(taken->list_count, 3);
    assert_int_equal(taken->flags, NETDAM_DESCRIPTOR_ORDERED | NETDAM_DESCRIPTOR_LIST);
    assert_int_equal(taken->peer, 100);
    assert_int_equal(taken->length, 4000);
    assert_int_equal(taken->remote_key, 0x1122334455667788);
    assert_int_equal(taken->remote_address, 0x99aabbccddeeff00);
    assert_int_equal(taken->local_region, netdam_region_index(rig.region));
    assert_int_equal(taken->immediate, 0xabcdef01);
    assert_int_equal(taken->u.buffer.local_address, 0x1234567);
    assert_int_equal(taken->u.buffer.result_address, 0);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.user_data, 0xfeedfacecafebeef);
    assert_int_equal(completion.opcode, NETDAM_OP_REDUCE);
    assert_int_equal(netdam_queue_outstanding(rig.queue), 0);

    request = (struct netdam_request){
        .opcode = NETDAM_OP_CAS, .type = NETDAM_TYPE_U64, .remote = {rig.peer, 1, 8}, .length = 8, .operand = {5, 6}};
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(fake_run(rig.fake, 0, 1), 1);
    assert_int_equal(taken[1].local_region, 0);
    assert_int_equal(taken[1].u.operand[0], 5);
    assert_int_equal(taken[1].u.operand[1], 6);
    fake_close(rig.fake);
}

/* Batches of all sizes over rings that start at `first_index`, polled in other batches. */
static void every_request_completes_once_in_order(uint32_t first_index)
{
    enum { DEPTH = 16, TOTAL = 2000 };
    struct rig rig = rig_open(DEPTH, first_index, false);
    unsigned posted = 0;
    unsigned polled = 0;
    unsigned round = 0;

    while (polled < TOTAL) {
        struct netdam_request requests[2 * DEPTH];
        struct netdam_completion completions[2 * DEPTH];
        unsigned wanted = round % (DEPTH + 3);
        int rc;

        if (wanted > TOTAL - posted) {
            wanted = TOTAL - posted;
        }
        for (unsigned i = 0; i < wanted; i++) {
            requests[i] = write_request(&rig, posted + i);
        }
        rc = netdam_post(rig.queue, requests, wanted);
        assert_true(rc >= 0 || rc == -EAGAIN);
        posted += rc > 0 ? (unsigned)rc : 0;
        fake_run(rig.fake, 0, round % 7);
        rc = netdam_poll(rig.queue, completions, 1 + round % 5);
        assert_true(rc >= 0);
        for (int i = 0; i < rc; i++) {
            assert_int_equal(completions[i].user_data, polled);
            polled++;
        }
        assert_int_equal(netdam_queue_outstanding(rig.queue), posted - polled);
        round++;
    }
    assert_int_equal(posted, TOTAL);
    assert_int_equal(rig.fake->taken_count, TOTAL);
    assert_int_equal(rig.fake->queues[0].sq->producer, first_index + TOTAL);
    assert_int_equal(rig.fake->queues[0].cq->consumer, first_index + TOTAL);
    assert_int_equal(rig.fake->log_lines, 0);
    fake_close(rig.fake);
}

static void rings_wrap_from_0(void **state)
{
    (void)state;
    every_request_completes_once_in_order(0);
}

static void indices_wrap_at_32_bits(void **state)
{
    (void)state;
    every_request_completes_once_in_order(0xffffff00);
}

static void full_ring_takes_no_more(void **state)
{
    struct rig rig = rig_open(4, 0xfffffffe, false);
    struct netdam_request requests[6];
    struct netdam_completion completions[8];

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        requests[i] = write_request(&rig, i);
    }
    assert_int_equal(netdam_post(rig.queue, requests, 6), 4);
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EAGAIN);
    assert_int_equal(netdam_post(rig.queue, requests, 0), 0);
    /* Completed but not polled: the submission ring is free again, the completion ring full. */
    assert_int_equal(fake_run(rig.fake, 0, 6), 4);
    assert_int_equal(netdam_post(rig.queue, requests, 6), 4);
    assert_int_equal(fake_run(rig.fake, 0, 6), 0);
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EAGAIN);
    assert_int_equal(netdam_poll(rig.queue, completions, 8), 4);
    assert_int_equal(fake_run(rig.fake, 0, 6), 4);
    assert_int_equal(netdam_poll(rig.queue, completions, 8), 4);
    assert_int_equal(netdam_poll(rig.queue, completions, 8), 0);
    fake_close(rig.fake);
}

static void doorbell_only_on_demand_and_once(void **state)
{
    struct rig rig = rig_open(16, 0, false);
    const struct fake_queue *queue = &rig.fake->queues[0];
    struct netdam_request requests[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        requests[i] = write_request(&rig, i);
    }
    assert_int_equal(netdam_post(rig.queue, requests, 5), 5);
    assert_int_equal(queue->doorbells, 0);
    rig.fake->want_wakeup = true;
    fake_run(rig.fake, 0, 16);
    assert_int_equal(netdam_post(rig.queue, requests, 5), 5);
    assert_int_equal(queue->doorbells, 1);
    rig.fake->want_wakeup = false;
    fake_run(rig.fake, 0, 16);
    assert_int_equal(netdam_post(rig.queue, requests, 1), 1);
    assert_int_equal(queue->doorbells, 1);
    fake_close(rig.fake);
}

static void each_queue_pair_has_its_own_doorbell(void **state)
{
    struct fake *fake = fake_open(false);
    struct netdam_queue *queues[FAKE_QUEUES];
    struct netdam_queue *one_more = NULL;
    struct netdam_peer *peer;

    (void)state;
    fake->want_wakeup = true;
    assert_int_equal(netdam_peer_open(fake->device, "10.0.0.2", &peer), 0);
    for (unsigned i = 0; i < FAKE_QUEUES; i++) {
        assert_int_equal(netdam_queue_create(fake->device, NULL, &queues[i]), 0);
    }
    assert_int_equal(netdam_queue_create(fake->device, NULL, &one_more), -ENOSPC);
    assert_null(one_more);
    for (unsigned i = 0; i < FAKE_QUEUES; i++) {
        struct netdam_request request = {
            .opcode = NETDAM_OP_FETCH_ADD, .type = NETDAM_TYPE_U64, .remote = {peer, 0, 0}, .length = 8};

        for (unsigned j = 0; j <= i; j++) {
            assert_int_equal(netdam_post(queues[i], &request, 1), 1);
        }
    }
    for (unsigned i = 0; i < FAKE_QUEUES; i++) {
        assert_int_equal(fake->queues[i].doorbells, i + 1);
    }
    fake_close(fake);
}

static void malformed_requests_are_refused(void **state)
{
    struct rig rig = rig_open(8, 0, false);
    struct fake *other = fake_open(false);
    struct netdam_peer *other_peer;
    struct netdam_request good = write_request(&rig, 0);
    struct netdam_request requests[2];

    (void)state;
    assert_int_equal(netdam_peer_open(other->device, "10.0.0.3", &other_peer), 0);

    requests[0] = good;
    requests[0].remote.peer = NULL;
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EINVAL);
    requests[0] = good;
    requests[0].remote.peer = other_peer;
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EINVAL);
    requests[0] = good;
    requests[0].local.region = NULL;
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EINVAL);
    requests[0].length = 0;
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EINVAL);
    requests[0] = good;
    requests[0].opcode = NETDAM_OP_FETCH_ADD; /* with a region */
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EINVAL);
    requests[0] = good;
    requests[0].length = 4097; /* the fake's LENGTH_MAX is 4096 */
    assert_int_equal(netdam_post(rig.queue, requests, 1), -EMSGSIZE);
    assert_int_equal(rig.fake->queues[0].sq->producer, 0);

    /* Those before it are posted. */
    requests[1] = requests[0];
    requests[0] = good;
    assert_int_equal(netdam_post(rig.queue, requests, 2), 1);
    assert_int_equal(rig.fake->queues[0].sq->producer, 1);
    fake_close(other);
    fake_close(rig.fake);
}

static void impossible_indices_break_the_queue_pair(void **state)
{
    struct rig rig = rig_open(8, 100, false);
    struct netdam_request request = write_request(&rig, 0);
    struct netdam_completion completion;

    (void)state;
    rig.fake->queues[0].sq->consumer = 101; /* ahead of the producer */
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EIO);
    rig.fake->queues[0].sq->consumer = 100;
    assert_int_equal(netdam_post(rig.queue, &request, 1), -EIO); /* for good */
    fake_close(rig.fake);

    rig = rig_open(8, 100, false);
    rig.fake->queues[0].cq->producer = 109;
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), -EIO);
    rig.fake->queues[0].cq->producer = 100;
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), -EIO);
    assert_int_equal(netdam_wait(rig.queue, &completion, 1, 0), -EIO);
    fake_close(rig.fake);
}

static void completions_nobody_asked_for_are_dropped(void **state)
{
    struct rig rig = rig_open(8, 0, false);
    struct netdam_request request = write_request(&rig, 42);
    struct netdam_completion completion = {.user_data = 0};

    (void)state;
    fake_complete(rig.fake, 0, &completion);
    completion.user_data = 0xffffffff;
    fake_complete(rig.fake, 0, &completion);
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    fake_run(rig.fake, 0, 1);
    /* A second one for the same request. */
    completion.user_data = rig.fake->taken[0].user_data;
    fake_complete(rig.fake, 0, &completion);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.user_data, 42);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 0);
    assert_int_equal(rig.fake->log_lines, 3);
    /* And one for its slot's next use. */
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    completion.user_data = rig.fake->taken[0].user_data;
    fake_complete(rig.fake, 0, &completion);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 0);
    assert_int_equal(rig.fake->log_lines, 4);
    fake_run(rig.fake, 0, 1);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    fake_close(rig.fake);
}

static void blocking_operations_return_the_status(void **state)
{
    static const struct fake_result script[] = {
        {NETDAM_STATUS_OK, 0}, {NETDAM_STATUS_BAD_KEY, 0}, {NETDAM_STATUS_OK, 41}, {NETDAM_STATUS_MISALIGNED, 99},
        {NETDAM_STATUS_OK, 7}, {NETDAM_STATUS_TIMEOUT, 0}, {NETDAM_STATUS_OK, 0},
    };
    struct rig rig = rig_open(8, 0xffffffff, false);
    struct netdam_remote remote = {rig.peer, 0x55, 0};
    struct netdam_local local = {rig.region, 0};
    uint64_t old = 1;

    (void)state;
    rig.fake->want_wakeup = true;
    rig.fake->run_at_doorbell = true;
    fake_run(rig.fake, 0, 0);
    rig.fake->script = script;
    rig.fake->script_count = COUNT(script);
    assert_int_equal(netdam_write(rig.queue, remote, local, 100, SOON), 0);
    assert_int_equal(netdam_read(rig.queue, local, remote, 100, SOON), NETDAM_STATUS_BAD_KEY);
    assert_int_equal(netdam_fetch_add(rig.queue, NETDAM_TYPE_U64, remote, 5, &old, SOON), 0);
    assert_int_equal(old, 41);
    assert_int_equal(netdam_fetch_add(rig.queue, NETDAM_TYPE_U32, remote, 5, &old, SOON), NETDAM_STATUS_MISALIGNED);
    assert_int_equal(old, 41); /* untouched */
    assert_int_equal(rig.fake->taken[3].length, 4);
    assert_int_equal(netdam_cas(rig.queue, NETDAM_TYPE_I16, remote, 7, 8, &old, SOON), 0);
    assert_int_equal(old, 7);
    assert_int_equal(netdam_reduce(rig.queue, NETDAM_ALU_SUM, NETDAM_TYPE_F64, remote, local, 64, SOON),
                     NETDAM_STATUS_TIMEOUT);
    assert_int_equal(netdam_echo(rig.queue, rig.peer, local, 64, SOON), 0);
    assert_int_equal(rig.fake->taken[6].opcode, NETDAM_OP_ECHO);
    assert_int_equal(netdam_reduce(rig.queue, 256, NETDAM_TYPE_F64, remote, local, 64, SOON), -EINVAL);
    fake_close(rig.fake);
}

static void long_operations_are_split(void **state)
{
    static const struct fake_result script[] = {{NETDAM_STATUS_OK, 0}, {NETDAM_STATUS_BAD_RANGE, 0}};
    struct rig rig = rig_open(8, 0, false);
    struct netdam_remote remote = {rig.peer, 0x55, 1000};
    struct netdam_local local = {rig.region, 8};
    const struct netdam_descriptor *taken = rig.fake->taken;

    (void)state;
    rig.fake->want_wakeup = true;
    rig.fake->run_at_doorbell = true;
    fake_run(rig.fake, 0, 0);
    assert_int_equal(netdam_write(rig.queue, remote, local, 2 * 4096 + 5, SOON), 0);
    assert_int_equal(rig.fake->taken_count, 3);
    assert_int_equal(taken[0].length, 4096);
    assert_int_equal(taken[1].remote_address, 1000 + 4096);
    assert_int_equal(taken[1].u.buffer.local_address, 8 + 4096);
    assert_int_equal(taken[2].length, 5);
    assert_int_equal(taken[2].remote_address, 1000 + 8192);
    rig.fake->script = script;
    rig.fake->script_count = COUNT(script);
    assert_int_equal(netdam_write(rig.queue, remote, local, 3 * 4096, SOON), NETDAM_STATUS_BAD_RANGE);
    assert_int_equal(rig.fake->taken_count, 5);
    assert_int_equal(netdam_write(rig.queue, remote, local, 0, SOON), 0);
    assert_int_equal(taken[5].length, 0);
    fake_close(rig.fake);
}

static void blocking_operations_keep_others_completions(void **state)
{
    struct rig rig = rig_open(4, 0, false);
    struct netdam_request requests[3];
    struct netdam_completion completions[8];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        requests[i] = write_request(&rig, 70 + i);
    }
    assert_int_equal(netdam_post(rig.queue, requests, 3), 3);
    rig.fake->want_wakeup = true;
    rig.fake->run_at_doorbell = true;
    rig.fake->queues[0].sq->consumer_flags = NETDAM_RING_NEED_WAKEUP;
    assert_int_equal(
        netdam_write(rig.queue, (struct netdam_remote){rig.peer, 1, 0}, (struct netdam_local){rig.region, 0}, 8, SOON),
        0);
    assert_int_equal(netdam_queue_outstanding(rig.queue), 3);
    assert_int_equal(netdam_poll(rig.queue, completions, 2), 2);
    assert_int_equal(completions[0].user_data, 70);
    assert_int_equal(completions[1].user_data, 71);
    assert_int_equal(netdam_wait(rig.queue, completions, 8, 0), 1);
    assert_int_equal(completions[0].user_data, 72);
    assert_int_equal(netdam_queue_outstanding(rig.queue), 0);
    fake_close(rig.fake);
}

static void timed_out_request_stays_outstanding(void **state)
{
    struct rig rig = rig_open(2, 0, false);
    struct netdam_remote remote = {rig.peer, 1, 0};
    struct netdam_local local = {rig.region, 0};
    struct netdam_request request = write_request(&rig, 9);
    struct netdam_completion completions[4];

    (void)state;
    assert_int_equal(netdam_write(rig.queue, remote, local, 8, 100000), -ETIMEDOUT);
    assert_int_equal(netdam_write(rig.queue, remote, local, 8, 100000), -ETIMEDOUT);
    /* The ring is full of them: nothing was sent. */
    assert_int_equal(netdam_write(rig.queue, remote, local, 8, 100000), -EAGAIN);
    assert_int_equal(netdam_wait(rig.queue, completions, 4, 100000), -ETIMEDOUT);
    assert_int_equal(fake_run(rig.fake, 0, 4), 2);
    /* Their completions are nobody's. */
    assert_int_equal(netdam_poll(rig.queue, completions, 4), 0);
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(fake_run(rig.fake, 0, 4), 1);
    assert_int_equal(netdam_poll(rig.queue, completions, 4), 1);
    assert_int_equal(completions[0].user_data, 9);
    assert_int_equal(rig.fake->log_lines, 0);
    fake_close(rig.fake);
}

static void reset_flushes_and_makes_handles_stale(void **state)
{
    struct rig rig = rig_open(8, 0, false);
    struct netdam_request request = write_request(&rig, 9);
    struct netdam_completion completion;
    struct netdam_queue *queue;
    uint64_t offset;
    uint64_t second;

    (void)state;
    assert_int_equal(netdam_alloc(rig.fake->device, 64, 0, &offset), 0);
    assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
    assert_int_equal(netdam_reset(rig.fake->device), 0);
    assert_int_equal(rig.fake->resets, 1);
    assert_int_equal(netdam_post(rig.queue, &request, 1), -ESTALE);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    assert_int_equal(completion.status, NETDAM_STATUS_FLUSHED);
    assert_int_equal(completion.user_data, 9);
    assert_int_equal(netdam_poll(rig.queue, &completion, 1), -ESTALE);
    assert_int_equal(netdam_wait(rig.queue, &completion, 1, SOON), -ESTALE);
    assert_int_equal(netdam_write(rig.queue, request.remote, request.local, 8, SOON), -ESTALE);

    /* A new queue pair does not take the old handles, and the device hears nothing of what it has forgotten. */
    assert_int_equal(netdam_queue_create(rig.fake->device, NULL, &queue), 0);
    assert_int_equal(netdam_post(queue, &request, 1), -ESTALE);
    assert_int_equal(netdam_queue_destroy(rig.queue), 0);
    assert_int_equal(netdam_peer_close(rig.peer), 0);
    assert_int_equal(netdam_region_destroy(rig.region), 0);
    assert_int_equal(rig.fake->commands[NETDAM_ADMIN_QUEUE_DESTROY], 0);
    assert_int_equal(rig.fake->commands[NETDAM_ADMIN_PEER_CLOSE], 0);
    assert_int_equal(rig.fake->commands[NETDAM_ADMIN_REGION_DESTROY], 0);
    assert_int_equal(netdam_alloc(rig.fake->device, 64, 0, &second), 0);
    assert_int_not_equal(offset, second);
    fake_close(rig.fake);
}

static void armed_queue_pair_wakes_poll(void **state)
{
    struct rig rig = rig_open(8, 0, true);
    struct netdam_request request = write_request(&rig, 1);
    struct pollfd pollfd = {.fd = netdam_queue_fd(rig.queue), .events = POLLIN};
    struct netdam_completion completion;

    (void)state;
    assert_true(pollfd.fd >= 0);
    assert_int_equal(rig.fake->queues[0].vector, 0);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(netdam_post(rig.queue, &request, 1), 1);
        assert_int_equal(netdam_queue_arm(rig.queue), 0);
        assert_int_equal(poll(&pollfd, 1, 0), 0);
        fake_run(rig.fake, 0, 1);
        assert_int_equal(poll(&pollfd, 1, 0), 1);
        assert_int_equal(netdam_queue_arm(rig.queue), -EAGAIN);
        assert_int_equal(netdam_poll(rig.queue, &completion, 1), 1);
    }
    fake_close(rig.fake);
}

static void vectors_are_never_shared(void **state)
{
    struct fake *fake = fake_open(true);
    struct netdam_queue *queues[4];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(netdam_queue_create(fake->device, NULL, &queues[i]), 0);
    }
    assert_int_equal(netdam_queue_fd(queues[0]), fake->fds[0]);
    assert_int_equal(netdam_queue_fd(queues[1]), fake->fds[1]);
    assert_int_equal(netdam_queue_fd(queues[2]), -ENOTSUP);
    assert_int_equal(netdam_queue_arm(queues[2]), -ENOTSUP);
    assert_int_equal(fake->queues[2].vector, NETDAM_VECTOR_NONE);
    assert_int_equal(netdam_queue_destroy(queues[0]), 0);
    assert_int_equal(netdam_queue_create(fake->device, NULL, &queues[3]), 0);
    assert_int_equal(netdam_queue_fd(queues[3]), fake->fds[0]);
    fake_close(fake);
}

static void depths_are_rounded_and_limited(void **state)
{
    struct fake *fake = fake_open(false);
    struct netdam_queue_config config = {.submission_depth = 5, .completion_depth = 1};
    struct netdam_queue *queue;
    uint64_t *arguments = fake->last_arguments[NETDAM_ADMIN_QUEUE_CREATE];

    (void)state;
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), 0);
    assert_int_equal(arguments[1], 3);
    assert_int_equal(arguments[3], NETDAM_RING_LOG2_MIN);
    assert_int_equal(netdam_queue_destroy(queue), 0);
    assert_int_equal(netdam_queue_create(fake->device, NULL, &queue), 0);
    assert_int_equal(arguments[1], 8);
    assert_int_equal(arguments[3], 8);
    config.submission_depth = 65537;
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), -EINVAL);
    config.submission_depth = 65536; /* 4 MiB of descriptors, and the fake has 1 MiB */
    assert_int_equal(netdam_queue_create(fake->device, &config, &queue), -ENOSPC);
    fake_close(fake);
}

static void refused_queue_pair_leaves_no_memory_behind(void **state)
{
    struct fake *fake = fake_open(false);
    struct netdam_queue *queue = NULL;
    uint64_t offset;

    (void)state;
    fake->admin_forced = NETDAM_ADMIN_STATUS_BAD_ARGUMENT;
    assert_int_equal(netdam_queue_create(fake->device, NULL, &queue), -EINVAL);
    assert_null(queue);
    fake->admin_forced = 0;
    assert_int_equal(netdam_alloc(fake->device, FAKE_MEMORY_BYTES, 0, &offset), 0);
    fake_close(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptor_says_what_the_request_says),
        cmocka_unit_test(rings_wrap_from_0),
        cmocka_unit_test(indices_wrap_at_32_bits),
        cmocka_unit_test(full_ring_takes_no_more),
        cmocka_unit_test(doorbell_only_on_demand_and_once),
        cmocka_unit_test(each_queue_pair_has_its_own_doorbell),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(impossible_indices_break_the_queue_pair),
        cmocka_unit_test(completions_nobody_asked_for_are_dropped),
        cmocka_unit_test(blocking_operations_return_the_status),
        cmocka_unit_test(long_operations_are_split),
        cmocka_unit_test(blocking_operations_keep_others_completions),
        cmocka_unit_test(timed_out_request_stays_outstanding),
        cmocka_unit_test(reset_flushes_and_makes_handles_stale),
        cmocka_unit_test(armed_queue_pair_wakes_poll),
        cmocka_unit_test(vectors_are_never_shared),
        cmocka_unit_test(depths_are_rounded_and_limited),
        cmocka_unit_test(refused_queue_pair_leaves_no_memory_behind),
    };

    return cmocka_run_group_tests_name("driver queue pairs", tests, NULL, NULL);
}
