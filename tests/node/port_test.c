/* SPDX-License-Identifier: BSD-3-Clause */
/* The soft device's port: headers put on and taken off, ARP, frames that cannot be sent, and a socket that is full. */
#define _GNU_SOURCE
#include "port.h"
#include "rig.h"
#include "netdam/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IP_AT       14
#define UDP_AT      34
#define DATAGRAM_AT 42

/* The socket's moods: what the fake below does instead of sending. */
static atomic_int refusals; /* this many calls fail with EAGAIN; -1: all */
static atomic_bool moody;   /* EAGAIN, ENOBUFS, EINTR, few messages at a time */
static atomic_uint calls;

/* Takes the place of libc's: a loopback socket is never full. */
int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    unsigned call = atomic_fetch_add(&calls, 1);
    static const int moods[] = {EAGAIN, 0, ENOBUFS, 0, EINTR, 0, 0};

    if (atomic_load(&refusals) != 0) {
        if (atomic_load(&refusals) > 0) {
            atomic_fetch_sub(&refusals, 1);
        }
        errno = EAGAIN;
        return -1;
    }
    if (atomic_load(&moody)) {
        int mood = moods[call % (sizeof(moods) / sizeof(moods[0]))];

        if (mood != 0) {
            errno = mood;
            return -1;
        }
        count = count > 3 ? 1 + call % 3 : count;
    }
    return (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

struct bench {
    struct ndsim_port *port;
    struct sockaddr_in peer; /* of an ordinary socket */
    int peer_fd;
};

static void bench_open(struct bench *bench)
{
    struct sockaddr_in local = {.sin_family = AF_INET};
    socklen_t length = sizeof(bench->peer);

    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(ndsim_port_open(&local, NULL, NULL, &bench->port), 0);
    bench->peer_fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(bench->peer_fd >= 0);
    assert_int_equal(bind(bench->peer_fd, (struct sockaddr *)&local, sizeof(local)), 0);
    assert_int_equal(getsockname(bench->peer_fd, (struct sockaddr *)&bench->peer, &length), 0);
}

static void bench_close(struct bench *bench)
{
    ndsim_port_close(bench->port, true);
    close(bench->peer_fd);
}

static void put16(uint8_t *to, unsigned value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static unsigned get16(const uint8_t *from)
{
    return (unsigned)from[0] << 8 | from[1];
}

/* A frame as the firmware makes it: UDP over IPv4 from the port's own address to the peer. */
static size_t make_frame(const struct bench *bench, uint8_t *frame, const void *datagram, size_t bytes)
{
    struct sockaddr_in local = ndsim_port_local(bench->port);

    memset(frame, 0, DATAGRAM_AT);
    put16(frame + 12, 0x0800);
    frame[IP_AT] = 0x45;
    put16(frame + IP_AT + 2, (unsigned)(28 + bytes));
    frame[IP_AT + 8] = 64;
    frame[IP_AT + 9] = 17;
    memcpy(frame + IP_AT + 12, &local.sin_addr, 4);
    memcpy(frame + IP_AT + 16, &bench->peer.sin_addr, 4);
    memcpy(frame + UDP_AT, &local.sin_port, 2);
    memcpy(frame + UDP_AT + 2, &bench->peer.sin_port, 2);
    put16(frame + UDP_AT + 4, (unsigned)(8 + bytes));
    memcpy(frame + DATAGRAM_AT, datagram, bytes);
    return DATAGRAM_AT + bytes;
}

static bool transmit(struct bench *bench, const uint8_t *frame, size_t bytes)
{
    uint8_t *room = ndsim_port_transmit_begin(bench->port, bytes);

    if (room == NULL) {
        return false;
    }
    memcpy(room, frame, bytes);
    ndsim_port_transmit_end(bench->port, bytes);
    return true;
}

struct caught {
    uint8_t frame[9100];
    size_t bytes;
    unsigned count;
};

static void catch_frame(void *opaque, const uint8_t *frame, size_t bytes)
{
    struct caught *caught = opaque;

    assert_true(bytes <= sizeof(caught->frame));
    memcpy(caught->frame, frame, bytes);
    caught->bytes = bytes;
    caught->count++;
}

static unsigned ones_complement(const uint8_t *data, size_t bytes, unsigned sum)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        sum += i % 2 == 0 ? (unsigned)data[i] << 8 : data[i];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static void received_datagrams_become_frames_with_right_checksums(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 3, 31, 64, 999, 1472, 8971, 8972};
    static uint8_t datagram[9000];
    static struct caught caught;
    struct sockaddr_in local;
    struct bench bench;
    unsigned i;

    (void)state;
    bench_open(&bench);
    local = ndsim_port_local(bench.port);
    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t bytes = lengths[i];
        const uint8_t *ip = caught.frame + IP_AT;
        uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;
        unsigned pseudo;

        memset(datagram, 0xf0 + (int)i, bytes);
        caught.count = 0;
        assert_int_equal(sendto(bench.peer_fd, datagram, bytes, 0, (struct sockaddr *)&local, sizeof(local)), bytes);
        while (ndsim_port_receive(bench.port, catch_frame, &caught) == 0) {
            assert_true(rig_now_ns() < end_ns);
        }
        assert_int_equal(caught.count, 1);
        assert_int_equal(caught.bytes, DATAGRAM_AT + bytes);
        assert_memory_equal(caught.frame, "\x02\x00\x7f\x00\x00\x01\x02\x01\x7f\x00\x00\x01\x08\x00\x45", 15);
        assert_int_equal(get16(ip + 2), 28 + bytes);
        assert_int_equal(ones_complement(ip, 20, 0), 0xffff);
        assert_memory_equal(ip + 12, &bench.peer.sin_addr, 4);
        assert_memory_equal(ip + 16, &local.sin_addr, 4);
        assert_memory_equal(ip + 20, &bench.peer.sin_port, 2);
        assert_memory_equal(ip + 22, &local.sin_port, 2);
        assert_int_equal(get16(ip + 24), 8 + bytes);
        assert_int_not_equal(get16(ip + 26), 0);
        pseudo = ones_complement(ip + 12, 8, 17 + get16(ip + 24));
        assert_int_equal(ones_complement(ip + 20, 8 + bytes, pseudo), 0xffff);
        assert_memory_equal(caught.frame + DATAGRAM_AT, datagram, bytes);
    }
    bench_close(&bench);
}

static void datagrams_longer_than_any_mtu_are_counted(void **state)
{
    static uint8_t datagram[10000];
    struct netdam_soft_statistics statistics;
    static struct caught caught;
    struct sockaddr_in local;
    struct bench bench;
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;

    (void)state;
    bench_open(&bench);
    local = ndsim_port_local(bench.port);
    assert_true(sendto(bench.peer_fd, datagram, 8973, 0, (struct sockaddr *)&local, sizeof(local)) == 8973);
    do {
        assert_true(rig_now_ns() < end_ns);
        (void)ndsim_port_receive(bench.port, catch_frame, &caught);
        ndsim_port_statistics(bench.port, &statistics);
    } while (statistics.taken_too_long == 0);
    assert_int_equal(caught.count, 0);
    bench_close(&bench);
}

static void arp_requests_are_answered_for_every_address(void **state)
{
    static const uint8_t request[42] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 0x7f, 0, 0, 1, 0x08, 0x06, /* Ethernet */
        0,    1,    0x08, 0,    6,    4,    0,    1,                            /* who has */
        0x02, 0,    0x7f, 0,    0,    1,    0x7f, 0, 0,    1,                   /* sender */
        0,    0,    0,    0,    0,    0,    10,   1, 2,    3,                   /* target */
    };
    static const uint8_t answer[42] = {
        0x02, 0,    0x7f, 0, 0, 1, 0x02, 0x01, 10, 1, 2, 3, 0x08, 0x06, /* Ethernet */
        0,    1,    0x08, 0, 6, 4, 0,    2,                             /* is at */
        0x02, 0x01, 10,   1, 2, 3, 10,   1,    2,  3,                   /* sender */
        0x02, 0,    0x7f, 0, 0, 1, 0x7f, 0,    0,  1,                   /* target */
    };
    static struct caught caught;
    struct bench bench;
    unsigned i;

    (void)state;
    bench_open(&bench);
    caught.count = 0;
    for (i = 0; i < 100; i++) {
        assert_true(transmit(&bench, request, sizeof(request)));
        assert_int_equal(caught.count, 0); /* not from within the firmware's call */
    }
    assert_true(ndsim_port_has_answers(bench.port));
    assert_true(ndsim_port_receive(bench.port, catch_frame, &caught) > 0);
    assert_false(ndsim_port_has_answers(bench.port));
    assert_in_range(caught.count, 1, 100);
    assert_int_equal(caught.bytes, sizeof(answer));
    assert_memory_equal(caught.frame, answer, sizeof(answer));
    bench_close(&bench);
}

static void frames_that_a_socket_cannot_send_are_counted(void **state)
{
    struct netdam_soft_statistics statistics;
    uint8_t good[DATAGRAM_AT + 8];
    uint8_t frame[DATAGRAM_AT + 8];
    struct bench bench;
    uint8_t byte;
    size_t bytes;
    unsigned i;
    static const struct {
        unsigned at;
        uint8_t value;
    } table[] = {
        {12, 0x86},        /* EtherType */
        {IP_AT, 0x65},     /* version */
        {IP_AT, 0x44},     /* header length below the least */
        {IP_AT, 0x4f},     /* header length beyond the packet */
        {IP_AT + 2, 1},    /* longer than the frame */
        {IP_AT + 3, 27},   /* too short for UDP */
        {IP_AT + 6, 0x20}, /* more fragments */
        {IP_AT + 7, 1},    /* a fragment */
        {IP_AT + 9, 1},    /* ICMP */
        {IP_AT + 15, 9},   /* another's address */
        {UDP_AT + 4, 1},   /* UDP longer than IP */
        {UDP_AT + 5, 7},   /* UDP shorter than its header */
    };

    (void)state;
    bench_open(&bench);
    bytes = make_frame(&bench, good, "12345678", 8);
    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        memcpy(frame, good, bytes);
        frame[table[i].at] = table[i].value;
        assert_true(transmit(&bench, frame, bytes));
    }
    memcpy(frame, good, bytes);
    frame[UDP_AT] ^= 0x40; /* another source port */
    assert_true(transmit(&bench, frame, bytes));
    for (i = 0; i < DATAGRAM_AT; i++) {
        assert_true(transmit(&bench, good, i));
    }
    assert_null(ndsim_port_transmit_begin(bench.port, 14 + 9001));
    ndsim_port_flush(bench.port);
    ndsim_port_statistics(bench.port, &statistics);
    assert_int_equal(statistics.not_sendable, sizeof(table) / sizeof(table[0]) + 1 + DATAGRAM_AT);
    assert_int_equal(statistics.datagrams_sent, 0);
    assert_true(recv(bench.peer_fd, &byte, 1, 0) < 0);

    assert_true(transmit(&bench, good, bytes));
    ndsim_port_flush(bench.port);
    assert_int_equal(recv(bench.peer_fd, frame, sizeof(frame), 0), 8);
    assert_memory_equal(frame, "12345678", 8);
    bench_close(&bench);
}

static void a_full_socket_is_a_full_port_and_loses_nothing(void **state)
{
    uint8_t frame[DATAGRAM_AT + 4];
    struct bench bench;
    uint32_t sent = 0;
    uint32_t got = 0;
    uint32_t value;
    unsigned round;

    (void)state;
    bench_open(&bench);
    for (round = 0; round < 10; round++) {
        atomic_store(&refusals, -1);
        while (transmit(&bench, frame, make_frame(&bench, frame, &sent, sizeof(sent)))) {
            sent++;
            assert_true(sent < 100000);
        }
        assert_true(ndsim_port_blocked(bench.port));
        assert_true(recv(bench.peer_fd, &value, sizeof(value), 0) < 0);
        atomic_store(&refusals, 1); /* the first try after that fails once more */
        while (got < sent) {
            ndsim_port_unblock(bench.port);
            ndsim_port_flush(bench.port);
            while (recv(bench.peer_fd, &value, sizeof(value), 0) == sizeof(value)) {
                assert_int_equal(value, got);
                got++;
            }
        }
        assert_false(ndsim_port_blocked(bench.port));
    }
    assert_true(sent >= 10);
    bench_close(&bench);
}

/* Never sleep with a pending send: were a frame or an answer forgotten, retransmission would hide it, so it is off. */
static void devices_over_a_moody_socket_need_no_retransmission(void **state)
{
    struct netdam_soft_config config = {
        .rto_initial_ns = RIG_PATIENCE_NS, .rto_min_ns = RIG_PATIENCE_NS, .rto_max_ns = RIG_PATIENCE_NS};
    struct netdam_soft_statistics statistics;
    struct netdam_descriptor request;
    uint32_t peer;
    struct rig a;
    struct rig b;
    unsigned i;

    (void)state;
    rig_open(&a, &config);
    rig_open(&b, &config);
    peer = rig_peer(&a, netdam_soft_port(b.soft));
    atomic_store(&moody, true);
    for (i = 0; i < 200; i++) {
        uint32_t bytes = i % 10 == 0 ? 40000 : 8;

        memset(a.memory + RIG_DATA, (int)i, bytes);
        request = rig_request(&a, i % 2 == 0 ? NETDAM_OP_WRITE : NETDAM_OP_READ, peer, b.key, 0, 1 << 20, bytes);
        assert_int_equal(rig_do(&a, &request).status, NETDAM_STATUS_OK);
        assert_memory_equal(a.memory + RIG_DATA, b.memory + RIG_DATA + (1 << 20), bytes);
    }
    atomic_store(&moody, false);
    netdam_soft_get_statistics(a.soft, &statistics);
    assert_true(statistics.send_blocked > 0);
    assert_int_equal(statistics.send_errors, 0);
    assert_int_equal(rig_counter(&a, NETDAM_COUNTER_RETRANSMISSIONS), 0);
    rig_close(&a);
    rig_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(received_datagrams_become_frames_with_right_checksums),
        cmocka_unit_test(datagrams_longer_than_any_mtu_are_counted),
        cmocka_unit_test(arp_requests_are_answered_for_every_address),
        cmocka_unit_test(frames_that_a_socket_cannot_send_are_counted),
        cmocka_unit_test(a_full_socket_is_a_full_port_and_loses_nothing),
        cmocka_unit_test(devices_over_a_moody_socket_need_no_retransmission),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
