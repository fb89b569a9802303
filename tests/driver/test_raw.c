/* SPDX-License-Identifier: BSD-3-Clause */
/* Ordinary frames between two soft devices on an Ethernet wire, beside NetDAM. */
#define _GNU_SOURCE
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netdam.h"

/* Long enough for a machine that is busy with other things. */
#define SOON       UINT64_C(120000000000)
#define KEY        UINT64_C(0x7261770000000001)
#define ROOM       65536u
#define FRAME_ROOM 9216u
#define BUFFERS    4u

static char directory[] = "/tmp/netdam-raw-XXXXXX";

struct end {
    struct netdam_device *device;
    struct netdam_region *region;
    struct netdam_queue *raw;
    struct netdam_device_info info;
    uint8_t *memory;
};

static struct end ends[2];

static const struct netdam_queue_config raw_config = {
    .submission_depth = 8, .completion_depth = 16, .receive_depth = 8, .type = NETDAM_QUEUE_RAW};

static void open_end(unsigned i)
{
    struct end *end = &ends[i];
    char name[256];
    uint64_t offset;

    snprintf(name, sizeof(name), "udp:10.6.0.%u:20036,memory=1M,mtu=9000,wire=%s/%u:%s/%u", i + 1, directory, i,
             directory, 1 - i);
    assert_int_equal(netdam_open(name, NULL, &end->device), 0);
    assert_int_equal(netdam_query(end->device, &end->info), 0);
    assert_int_equal(netdam_alloc(end->device, ROOM, 0, &offset), 0);
    assert_int_equal(netdam_region_create(end->device, offset, ROOM, NETDAM_PERMISSION_ALL, KEY + i, &end->region), 0);
    end->memory = netdam_region_pointer(end->region);
    assert_int_equal(netdam_queue_create(end->device, &raw_config, &end->raw), 0);
    assert_int_equal(netdam_queue_receive_key(end->raw), 0);
}

static int open_ends(void **state)
{
    (void)state;
    open_end(0);
    open_end(1);
    return 0;
}

static int close_ends(void **state)
{
    (void)state;
    netdam_close(ends[0].device);
    netdam_close(ends[1].device);
    return 0;
}

/* Buffers at the end of the second end's region. */
static void post_buffers(void)
{
    for (unsigned i = 0; i < BUFFERS; i++) {
        struct netdam_receive receive = {
            .user_data = 100 + i, .local = {ends[1].region, ROOM - (i + 1) * FRAME_ROOM}, .length = FRAME_ROOM};

        assert_int_equal(netdam_post_receive(ends[1].raw, &receive, 1), 1);
    }
}

static void make_frame(uint8_t *frame, const uint8_t *to, const uint8_t *from, unsigned type, size_t bytes)
{
    memset(frame, (int)bytes & 0xff, bytes);
    memcpy(frame, to, 6);
    memcpy(frame + 6, from, 6);
    frame[12] = (uint8_t)(type >> 8);
    frame[13] = (uint8_t)type;
}

static struct netdam_completion next(struct netdam_queue *queue)
{
    struct netdam_completion completion;

    assert_int_equal(netdam_wait(queue, &completion, 1, SOON), 1);
    return completion;
}

static void frames_travel_beside_requests(void **state)
{
    static const uint32_t lengths[] = {14, 60, 1514, 9014};
    struct netdam_piece pieces[2] = {{.local = {ends[0].region, 0}, .length = 14},
                                     {.local = {ends[0].region, 64}, .length = 100}};
    struct netdam_frame gathered = {.user_data = 9, .list_count = 2, .list = pieces};
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    struct netdam_completion c;
    uint64_t count;

    (void)state;
    assert_int_equal(netdam_raw_steer(ends[1].raw, NETDAM_STEERING_DEFAULT, 0), 0);
    assert_int_equal(netdam_queue_create(ends[0].device, NULL, &queue), 0);
    assert_int_equal(netdam_peer_open(ends[0].device, "10.6.0.2", &peer), 0);
    /* Address resolution reaches the other host too: out of the way before anything is counted. */
    assert_int_equal(netdam_echo(queue, peer, (struct netdam_local){ends[0].region, 0}, 64, SOON), 0);
    post_buffers();
    for (unsigned i = 0; i < COUNT(lengths); i++) {
        struct netdam_frame frame = {.user_data = 7 + i, .local = {ends[0].region, 0}, .length = lengths[i]};

        make_frame(ends[0].memory, ends[1].info.mac, ends[0].info.mac, 0x88b5, lengths[i]);
        assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), 1);
        assert_int_equal(
            netdam_fetch_add(queue, NETDAM_TYPE_U64, (struct netdam_remote){peer, KEY + 1, 0}, 1, NULL, SOON), 0);
        c = next(ends[0].raw);
        assert_int_equal(c.user_data, 7 + i);
        assert_int_equal(c.status, NETDAM_STATUS_OK);
        c = next(ends[1].raw);
        assert_int_equal(c.user_data, 100 + i);
        assert_int_equal(c.flags, NETDAM_COMPLETION_RECEIVE);
        assert_int_equal(c.length, lengths[i]);
        assert_memory_equal(ends[1].memory + ROOM - (i + 1) * FRAME_ROOM, ends[0].memory, lengths[i]);
    }
    assert_int_equal(*(const uint64_t *)(const void *)ends[1].memory, COUNT(lengths));

    post_buffers();
    make_frame(ends[0].memory, ends[1].info.mac, ends[0].info.mac, 0x88b5, 14);
    memset(ends[0].memory + 64, 0x77, 100);
    assert_int_equal(netdam_raw_post(ends[0].raw, &gathered, 1), 1);
    assert_int_equal(next(ends[0].raw).status, NETDAM_STATUS_OK);
    c = next(ends[1].raw);
    assert_int_equal(c.length, 114);
    assert_memory_equal(ends[1].memory + ROOM - FRAME_ROOM, ends[0].memory, 14);
    assert_memory_equal(ends[1].memory + ROOM - FRAME_ROOM + 14, ends[0].memory + 64, 100);
    assert_int_equal(netdam_counter_read(ends[0].device, NETDAM_COUNTER_RAW_SENT, &count), 0);
    assert_int_equal(count, COUNT(lengths) + 1);
    assert_int_equal(netdam_counter_read(ends[1].device, NETDAM_COUNTER_RAW_RECEIVED, &count), 0);
    assert_int_equal(count, COUNT(lengths) + 1);
}

static void arrival_ends_a_sleep(void **state)
{
    struct netdam_frame frame = {.local = {ends[0].region, 0}, .length = 60};
    struct pollfd fd = {.fd = netdam_queue_fd(ends[1].raw), .events = POLLIN};

    (void)state;
    assert_int_equal(netdam_raw_steer(ends[1].raw, NETDAM_STEERING_ETHERTYPE, 0x88b5), 0);
    post_buffers();
    assert_int_equal(netdam_queue_arm(ends[1].raw), 0);
    make_frame(ends[0].memory, ends[1].info.mac, ends[0].info.mac, 0x88b5, 60);
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), 1);
    assert_int_equal(poll(&fd, 1, (int)(SOON / 1000000)), 1);
    assert_int_equal(next(ends[1].raw).length, 60);
}

static void requests_and_frames_do_not_mix(void **state)
{
    struct netdam_frame frame = {.local = {ends[0].region, 0}, .length = 60};
    struct netdam_queue_config with_tenant = raw_config;
    struct netdam_queue_config unknown = raw_config;
    struct netdam_region_config immediates = {
        .bytes = 4096, .permissions = NETDAM_PERMISSION_ALL, .immediates = ends[0].raw};
    struct netdam_queue *queue;
    struct netdam_queue *other;
    struct netdam_region *region;
    struct netdam_peer *peer;

    (void)state;
    with_tenant.tenant = 1;
    unknown.type = NETDAM_QUEUE_RAW + 1;
    assert_int_equal(netdam_queue_create(ends[0].device, &with_tenant, &queue), -EINVAL);
    assert_int_equal(netdam_queue_create(ends[0].device, &unknown, &queue), -EINVAL);
    assert_int_equal(netdam_region_create_config(ends[0].device, &immediates, &region), -EINVAL);
    assert_int_equal(netdam_queue_create(ends[0].device, NULL, &queue), 0);
    assert_int_equal(netdam_peer_open(ends[0].device, "10.6.0.2", &peer), 0);
    assert_int_equal(netdam_raw_post(queue, &frame, 1), -EINVAL);
    assert_int_equal(netdam_raw_steer(queue, NETDAM_STEERING_DEFAULT, 0), -EINVAL);
    assert_int_equal(netdam_echo(ends[0].raw, peer, (struct netdam_local){ends[0].region, 0}, 8, SOON), -EINVAL);
    assert_int_equal(netdam_raw_steer(ends[0].raw, NETDAM_STEERING_DEFAULT, 1), -EINVAL);
    assert_int_equal(netdam_queue_create(ends[0].device, &raw_config, &other), 0);
    assert_int_equal(netdam_raw_steer(ends[0].raw, NETDAM_STEERING_UDP_PORT, 53), 0);
    assert_int_equal(netdam_raw_steer(other, NETDAM_STEERING_UDP_PORT, 53), -EEXIST);
    assert_int_equal(netdam_raw_steer(other, NETDAM_STEERING_PROMISCUOUS, 0), 0);

    /* What is wrong with a frame the device says. */
    make_frame(ends[0].memory, ends[1].info.mac, ends[1].info.mac, 0x88b5, 60);
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), 1);
    assert_int_equal(next(ends[0].raw).status, NETDAM_STATUS_LOCAL_PERMISSION);
    frame.length = 9015;
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), 1);
    assert_int_equal(next(ends[0].raw).status, NETDAM_STATUS_LOCAL_DESCRIPTOR);
    frame.length = UINT32_MAX;
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), -EMSGSIZE);
    frame.local.region = ends[1].region;
    frame.length = 60;
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), -EINVAL);

    assert_int_equal(netdam_reset(ends[0].device), 0);
    frame.local.region = ends[0].region;
    assert_int_equal(netdam_raw_post(ends[0].raw, &frame, 1), -ESTALE);
    assert_int_equal(netdam_raw_steer(ends[0].raw, NETDAM_STEERING_DEFAULT, 0), -ESTALE);
}

static void a_full_ring_takes_what_fits(void **state)
{
    struct netdam_frame frames[20];

    (void)state;
    make_frame(ends[0].memory, ends[1].info.mac, ends[0].info.mac, 0x88b5, 60);
    for (unsigned i = 0; i < COUNT(frames); i++) {
        frames[i] = (struct netdam_frame){.user_data = i, .local = {ends[0].region, 0}, .length = 60};
    }
    for (unsigned sent = 0, completed = 0; completed < COUNT(frames);) {
        int rc = netdam_raw_post(ends[0].raw, frames + sent, COUNT(frames) - sent);

        assert_true(rc >= 0 || rc == -EAGAIN);
        sent += rc > 0 ? (unsigned)rc : 0;
        assert_int_equal(next(ends[0].raw).user_data, completed);
        completed++;
    }
}

static void a_socket_for_netdam_alone_has_none(void **state)
{
    struct netdam_device *device;
    struct netdam_queue *queue;

    (void)state;
    assert_int_equal(netdam_open("udp:127.0.0.1:0,memory=1M", NULL, &device), 0);
    assert_int_equal(netdam_queue_create(device, &raw_config, &queue), -EOPNOTSUPP);
    netdam_close(device);
}

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_travel_beside_requests, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(arrival_ends_a_sleep, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(requests_and_frames_do_not_mix, open_ends, close_ends),
        cmocka_unit_test_setup_teardown(a_full_ring_takes_what_fits, open_ends, close_ends),
        cmocka_unit_test(a_socket_for_netdam_alone_has_none),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
