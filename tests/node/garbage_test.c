/* SPDX-License-Identifier: BSD-3-Clause */
/* Garbage of every length, and well-formed packets with random fields, thrown at nodes from an ordinary socket. */
#define _GNU_SOURCE
#include "rig.h"
#include "netdam/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DATAGRAM_MAX  65507u /* of UDP over IPv4 */
#define LARGEST_TAKEN (NETDAM_MTU_MAX - NETDAM_IPV4_BYTES - NETDAM_UDP_BYTES)

/* Datagrams in the receiver's buffer at once: few enough that the smallest buffer holds them. */
#define BURST 16

static uint64_t seed;

static uint64_t draw(void)
{
    uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void draw_bytes(uint8_t *to, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        to[i] = (uint8_t)draw();
    }
}

static int open_socket(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void throw(int fd, const uint8_t *datagram, size_t bytes)
{
    uint8_t answer[65536];

    assert_int_equal(send(fd, datagram, bytes, 0), bytes);
    while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) >= 0) {
    }
}

/* Waits until the device has looked at `thrown` datagrams, so that none is lost in its socket's buffer. */
static void catch_up(struct rig *rig, uint64_t thrown)
{
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;
    struct netdam_soft_statistics statistics;

    for (;;) {
        netdam_soft_get_statistics(rig->soft, &statistics);
        if (statistics.datagrams_taken + statistics.taken_too_long == thrown) {
            return;
        }
        assert_true(rig_now_ns() < end_ns);
        sched_yield();
    }
}

static uint32_t crc32c(const uint8_t *data, size_t bytes)
{
    uint32_t crc = UINT32_MAX;
    size_t i;
    int bit;

    for (i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        }
    }
    return ~crc;
}

static void put32(uint8_t *to, uint32_t value)
{
    netdam_be32 wire = netdam_be32_make(value);

    memcpy(to, &wire, sizeof(wire));
}

/* Values at which code goes wrong, and others. */
static uint64_t edge(uint64_t limit)
{
    switch (draw() % 6) {
    case 0:
        return 0;
    case 1:
        return limit;
    case 2:
        return limit - draw() % 16;
    case 3:
        return UINT64_MAX - draw() % 16;
    case 4:
        return draw();
    default:
        return limit != 0 ? draw() % limit : 0;
    }
}

/* An instruction that the firmware executes if key, address and generation are right. Returns its payload's length. */
static size_t make_instruction(struct netdam_wire_segment *segment, uint64_t region_bytes)
{
    static const uint8_t opcodes[] = {NETDAM_OP_WRITE,     NETDAM_OP_READ, NETDAM_OP_REDUCE, NETDAM_OP_ECHO,
                                      NETDAM_OP_FETCH_ADD, NETDAM_OP_CAS,  NETDAM_OP_CONFIRM};
    static const uint8_t types[] = {NETDAM_TYPE_I32, NETDAM_TYPE_I64, NETDAM_TYPE_F32, NETDAM_TYPE_F64};
    size_t length = 8 * (draw() % 100);

    segment->opcode = opcodes[draw() % sizeof(opcodes)];
    segment->address = netdam_be64_make(edge(region_bytes) & ~UINT64_C(7));
    segment->length = netdam_be32_make((uint32_t)length);
    switch (segment->opcode) {
    case NETDAM_OP_REDUCE:
        segment->operation = (uint8_t)(NETDAM_ALU_SUM + draw() % 2 * (NETDAM_ALU_MIN - NETDAM_ALU_SUM));
        segment->type = types[draw() % sizeof(types)];
        return length;
    case NETDAM_OP_FETCH_ADD:
    case NETDAM_OP_CAS:
        segment->type = NETDAM_TYPE_U64;
        segment->length = netdam_be32_make(8);
        return segment->opcode == NETDAM_OP_CAS ? 16 : 8;
    case NETDAM_OP_CONFIRM:
        segment->length = netdam_be32_make(0);
        return 0;
    case NETDAM_OP_READ:
        return 0;
    default:
        return length;
    }
}

/* A packet whose checksums hold and whose fields are random, often all of them right. */
static size_t make_packet(uint8_t *datagram, uint64_t key, uint64_t region_bytes, uint64_t generation)
{
    static uint64_t number = 1024;
    struct netdam_wire_header header = {
        .version = NETDAM_WIRE_VERSION, .kind = NETDAM_KIND_REQUEST, .segment_count = 1};
    struct netdam_wire_segment segment = {0};
    size_t length = make_instruction(&segment, region_bytes);
    size_t bytes = sizeof(header) + sizeof(segment);
    unsigned flags = length != 0 ? NETDAM_FLAG_PAYLOAD_CRC : 0;

    segment.key = netdam_be64_make(draw() % 8 != 0 ? key : draw());
    segment.generation = netdam_be64_make(draw() % 4 != 0 ? generation : edge(generation));
    if (segment.opcode == NETDAM_OP_ECHO || segment.opcode == NETDAM_OP_CONFIRM) {
        segment.key = netdam_be64_make(0);
        segment.address = netdam_be64_make(0);
    }
    /* Four contexts count as they should. A wild number ends most of what a context can still do: others do that. */
    header.context = netdam_be64_make(draw() % 4);
    header.number = netdam_be48_make(++number);
    if (draw() % 4 == 0) {
        header.context = netdam_be64_make(4 + draw() % 100);
        header.number = netdam_be48_make(edge(2000) & NETDAM_NUMBER_MAX);
    }
    header.distance = netdam_be16_make((uint16_t)(draw() % 4 != 0 ? draw() % 16 : edge(1024)));
    switch (draw() % 16) { /* in half of all, one thing is wrong */
    case 0:
        header.version = (uint8_t)draw();
        break;
    case 1:
        header.kind = (uint8_t)(draw() % 5);
        break;
    case 2:
        flags = (unsigned)draw() & 0xffff;
        break;
    case 3:
        header.segment_count = (uint8_t)draw();
        header.segment_index = (uint8_t)draw();
        header.node_form = (uint8_t)(draw() % 8);
        break;
    case 4:
        segment.opcode = (uint8_t)draw();
        break;
    case 5:
        header.status = (uint8_t)draw();
        break;
    case 6:
        segment.operation = (uint8_t)draw();
        segment.type = (uint8_t)(draw() % 16);
        break;
    case 7:
        segment.length = netdam_be32_make((uint32_t)edge(region_bytes));
        segment.address = netdam_be64_make(edge(region_bytes));
        break;
    default:
        break;
    }
    header.flags = netdam_be16_make((uint16_t)flags);
    header.payload_length = netdam_be16_make((uint16_t)(draw() % 16 != 0 ? length : draw()));
    header.header_length = netdam_be16_make((uint16_t)(draw() % 16 != 0 ? bytes : edge(bytes)));
    memcpy(datagram, &header, sizeof(header));
    memcpy(datagram + sizeof(header), &segment, sizeof(segment));
    if (netdam_be16_get(header.header_length) >= sizeof(header) && netdam_be16_get(header.header_length) <= bytes) {
        put32(datagram + offsetof(struct netdam_wire_header, header_crc),
              crc32c(datagram, netdam_be16_get(header.header_length)));
    }
    draw_bytes(datagram + bytes, length);
    if (length != 0) {
        put32(datagram + bytes + length, crc32c(datagram + bytes, length));
        length += NETDAM_CRC_BYTES;
    }
    return bytes + length;
}

/* Memory below RIG_DATA holds rings; a second region in the middle of the rest is what the packets name. */
#define TARGET_AT    UINT64_C(0x234560)
#define TARGET_BYTES UINT64_C(0x12340)

static void the_node_still_works(struct rig *rig)
{
    struct netdam_descriptor request;
    struct rig other;

    rig_open(&other, NULL);
    request = rig_request(&other, NETDAM_OP_WRITE, rig_peer(&other, netdam_soft_port(rig->soft)), rig->key, 0, 8, 5000);
    memset(other.memory + RIG_DATA, 0x77, 5000);
    assert_int_equal(rig_do(&other, &request).status, NETDAM_STATUS_OK);
    assert_memory_equal(other.memory + RIG_DATA, rig->memory + RIG_DATA + 8, 5000);
    rig_close(&other);
}

static void garbage_of_every_length_is_counted_and_changes_nothing(void **state)
{
    static uint8_t datagram[DATAGRAM_MAX];
    struct netdam_soft_statistics statistics;
    struct rig rig;
    uint8_t *copy;
    uint64_t thrown = 0;
    uint64_t dropped;
    size_t bytes;
    int fd;

    (void)state;
    rig_open(&rig, NULL);
    fd = open_socket(netdam_soft_port(rig.soft));
    copy = malloc(RIG_MEMORY);
    assert_non_null(copy);
    draw_bytes(rig.memory + RIG_DATA, RIG_MEMORY - RIG_DATA);
    memcpy(copy + RIG_DATA, rig.memory + RIG_DATA, RIG_MEMORY - RIG_DATA);
    for (bytes = 0; bytes <= DATAGRAM_MAX; bytes += bytes < 1500 ? 1 : bytes < 8000 || bytes > 9000 ? 997 : 1) {
        draw_bytes(datagram, bytes < 128 ? bytes : 128);
        throw(fd, datagram, bytes);
        thrown++;
        if (thrown % BURST == 0 || bytes > 4096) {
            catch_up(&rig, thrown);
        }
    }
    catch_up(&rig, thrown);
    /* Rings may change; nothing else may. */
    assert_memory_equal(rig.memory + RIG_DATA, copy + RIG_DATA, RIG_MEMORY - RIG_DATA);
    netdam_soft_get_statistics(rig.soft, &statistics);
    assert_true(statistics.taken_too_long > 0);
    dropped = rig_counter(&rig, NETDAM_COUNTER_RX_MALFORMED) + rig_counter(&rig, NETDAM_COUNTER_RX_HEADER_CRC);
    assert_int_equal(dropped + statistics.taken_too_long, thrown);
    assert_int_equal(statistics.datagrams_sent, 0); /* nothing of it is worth an answer */
    the_node_still_works(&rig);
    free(copy);
    close(fd);
    rig_close(&rig);
}

static void well_formed_packets_with_random_fields_stay_inside_the_region(void **state)
{
    uint64_t region[] = {TARGET_AT, TARGET_BYTES,
                         NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    static uint8_t datagram[2048];
    uint64_t generation;
    struct rig rig;
    uint8_t *copy;
    unsigned i;
    int fd;

    (void)state;
    rig_open(&rig, NULL);
    fd = open_socket(netdam_soft_port(rig.soft));
    assert_int_equal(rig_admin(&rig, NETDAM_ADMIN_REGION_CREATE, region, 3, results), NETDAM_ADMIN_STATUS_OK);
    generation = netdam_soft_register_read(rig.soft, NETDAM_REG_GENERATION, 8);
    copy = malloc(RIG_MEMORY);
    assert_non_null(copy);
    draw_bytes(rig.memory + RIG_DATA, RIG_MEMORY - RIG_DATA);
    memcpy(copy + RIG_DATA, rig.memory + RIG_DATA, RIG_MEMORY - RIG_DATA);
    for (i = 1; i <= 20000; i++) {
        throw(fd, datagram, make_packet(datagram, results[1], TARGET_BYTES, generation));
        if (i % BURST == 0) {
            catch_up(&rig, i);
        }
    }
    assert_memory_equal(rig.memory + RIG_DATA, copy + RIG_DATA, TARGET_AT - RIG_DATA);
    assert_memory_equal(rig.memory + TARGET_AT + TARGET_BYTES, copy + TARGET_AT + TARGET_BYTES,
                        RIG_MEMORY - TARGET_AT - TARGET_BYTES);
    /* The packets did get through the checks: some were executed, some refused, some dropped. */
    assert_true(rig_counter(&rig, NETDAM_COUNTER_REQUESTS_EXECUTED) > 1000);
    assert_true(rig_counter(&rig, NETDAM_COUNTER_REQUESTS_REFUSED) > 100);
    assert_true(rig_counter(&rig, NETDAM_COUNTER_RX_MALFORMED) > 100);
    assert_memory_not_equal(rig.memory + TARGET_AT, copy + TARGET_AT, TARGET_BYTES);
    the_node_still_works(&rig);
    free(copy);
    close(fd);
    rig_close(&rig);
}

/* The same against the program: no peer may write here, so all its memory must be as the file it loaded. */
static void netdam_node_survives_a_flood(void **state)
{
    static const char *const arguments[] = {"--memory", "1M", "--permissions", "r", "--counters", NULL};
    static uint8_t datagram[2048];
    static char rest[65536];
    uint64_t executed;
    struct rig_node node;
    struct rig rig;
    struct netdam_descriptor request;
    unsigned i;
    int status;
    int fd;

    (void)state;
    rig_node_start(&node, arguments);
    fd = open_socket(node.port);
    for (i = 0; i < 20000; i++) {
        /* Faster than the node is: what its socket drops does not matter here. */
        throw(fd, datagram, i % 2 == 0 ? make_packet(datagram, node.key, node.bytes, draw()) : draw() % 1400);
    }
    rig_open(&rig, NULL);
    memset(rig.memory + RIG_DATA, 0xff, 1 << 20);
    request = rig_request(&rig, NETDAM_OP_READ, rig_peer(&rig, node.port), node.key, 0, 0, 1 << 20);
    assert_int_equal(rig_do(&rig, &request).status, NETDAM_STATUS_OK);
    for (i = 0; i < 1 << 20; i++) {
        if (rig.memory[RIG_DATA + i] != 0) {
            fail_msg("byte %u has changed", i);
        }
    }
    rig_close(&rig);
    close(fd);
    status = rig_node_stop(&node, SIGTERM, rest, sizeof(rest));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    executed = rig_number(rest, "REQUESTS_EXECUTED");
    assert_true(executed != UINT64_MAX && executed > 700);
    assert_true(rig_number(rest, "RX_MALFORMED") > 0);
    assert_int_equal(rig_number(rest, "MAIN_MEMORY_BYTES"), 0);
}

/* Describing is safe for any bytes: the line ends within its room, whatever the size. */
static void any_bytes_can_be_described(void **state)
{
    static uint8_t datagram[2048];
    char line[300];
    unsigned i;

    (void)state;
    for (i = 0; i < 50000; i++) {
        size_t bytes = i % 3 == 0 ? draw() % 200 : make_packet(datagram, 1, 1 << 20, 1);
        size_t room = draw() % sizeof(line);
        uint8_t *exact = malloc(bytes != 0 ? bytes : 1);

        assert_non_null(exact);
        if (i % 3 == 0) {
            draw_bytes(datagram, bytes);
            datagram[0] = NETDAM_WIRE_VERSION;
            datagram[1] = (uint8_t)(draw() % 4);
        }
        memcpy(exact, datagram, bytes);
        memset(line, 0x7f, sizeof(line));
        netdam_soft_describe(exact, bytes, line, room);
        assert_true(room == 0 || memchr(line, 0, room) != NULL);
        assert_int_equal(line[room], 0x7f);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_of_every_length_is_counted_and_changes_nothing),
        cmocka_unit_test(well_formed_packets_with_random_fields_stay_inside_the_region),
        cmocka_unit_test(netdam_node_survives_a_flood),
        cmocka_unit_test(any_bytes_can_be_described),
    };
    const char *given = getenv("SEED");

    seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("# SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
