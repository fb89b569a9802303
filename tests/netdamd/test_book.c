/* SPDX-License-Identifier: BSD-3-Clause */
/* The broker's book over a device that answers what the test wants: order of taking back, and devices that lie. */
#define _GNU_SOURCE
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "book.h"

#define MEMORY_BYTES (UINT64_C(1) << 20)
#define RING_BYTES   4096

enum {
    QUEUES = 4,
    REGIONS = 4,
    PEERS = 4,
    LOG_MAX = 64,
};

/* Every command succeeds with the next index, unless the test says otherwise; commands are kept in order. */
static struct fixture {
    uint64_t arguments[NETDAM_ADMIN_ARGS];
    uint64_t index[16];
    int vector_fd;   /* of every vector */
    uint32_t refuse; /* this command */
    uint32_t status;
    uint64_t forced_index; /* + 1; 0: none */
    uint64_t result;
    uint32_t log[LOG_MAX];
    unsigned log_count;
    struct netdam_device *device;
    struct ndbroker_book *book;
} fixture;

static uint64_t register_read(void *opaque, uint32_t offset, unsigned bytes)
{
    (void)opaque;
    (void)bytes;
    switch (offset) {
    case NETDAM_REG_ID:
        return NETDAM_ID;
    case NETDAM_REG_STATUS:
        return NETDAM_DEVICE_READY;
    case NETDAM_REG_SPEC_VERSION:
        return NETDAM_SPEC_VERSION;
    case NETDAM_REG_MEMORY_BYTES:
        return MEMORY_BYTES;
    case NETDAM_REG_QUEUE_PAIRS:
    case NETDAM_REG_VECTORS:
        return QUEUES;
    case NETDAM_REG_REGIONS:
        return REGIONS;
    case NETDAM_REG_PEERS:
        return PEERS;
    case NETDAM_REG_DOORBELL_STRIDE:
        return NETDAM_PAGE_BYTES;
    case NETDAM_REG_ADMIN_STATUS:
        return fixture.status;
    case NETDAM_REG_ADMIN_RESULT0:
        return fixture.result;
    default:
        return 0;
    }
}

static void register_write(void *opaque, uint32_t offset, unsigned bytes, uint64_t value)
{
    (void)opaque;
    (void)bytes;
    if (offset >= NETDAM_REG_ADMIN_ARG0 && offset < NETDAM_REG_ADMIN_ARG0 + 8 * NETDAM_ADMIN_ARGS) {
        fixture.arguments[(offset - NETDAM_REG_ADMIN_ARG0) / 8] = value;
    }
    if (offset != NETDAM_REG_ADMIN_COMMAND) {
        return;
    }
    assert_true(value < 16 && fixture.log_count < LOG_MAX);
    fixture.log[fixture.log_count++] = (uint32_t)value;
    fixture.status = value == fixture.refuse ? NETDAM_ADMIN_STATUS_NO_SUCH : NETDAM_ADMIN_STATUS_OK;
    fixture.result = fixture.forced_index != 0 ? fixture.forced_index - 1 : fixture.index[value]++;
}

static int interrupt_fd(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
    return fixture.vector_fd;
}

static void close_nothing(void *opaque)
{
    (void)opaque;
}

static int open_book(void **state)
{
    static const struct ndlib_backend_ops ops = {
        .register_read = register_read,
        .register_write = register_write,
        .interrupt_fd = interrupt_fd,
        .close = close_nothing,
    };
    static const struct netdam_open_config config;
    static const struct ndbroker_limits limits = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX};
    static uint8_t memory[MEMORY_BYTES];
    const struct ndlib_backend backend = {.ops = &ops, .memory = memory, .memory_bytes = MEMORY_BYTES, .name = "fake"};

    (void)state;
    memset(&fixture, 0, sizeof(fixture));
    fixture.vector_fd = -ENOTSUP;
    if (ndlib_device_open(&backend, &config, &fixture.device) != 0) {
        return -1;
    }
    return ndbroker_book_open(fixture.device, &limits, &fixture.book);
}

static int close_book(void **state)
{
    (void)state;
    ndbroker_book_close(fixture.book);
    netdam_close(fixture.device);
    return 0;
}

/* Two queue pairs, two regions and a peer, mixed. */
static void own_some(struct ndbroker_owner *owner)
{
    static const unsigned order[] = {NETDAM_ADMIN_REGION_CREATE, NETDAM_ADMIN_QUEUE_CREATE, NETDAM_ADMIN_PEER_OPEN,
                                     NETDAM_ADMIN_QUEUE_CREATE, NETDAM_ADMIN_REGION_CREATE};

    for (unsigned i = 0; i < COUNT(order); i++) {
        uint64_t results[NETDAM_ADMIN_RESULTS];
        uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};
        uint64_t offset;

        assert_int_equal(ndbroker_take(fixture.book, owner, 2 * RING_BYTES, 0, &offset), 0);
        arguments[0] = offset;
        if (order[i] == NETDAM_ADMIN_QUEUE_CREATE) {
            arguments[1] = 2;
            arguments[2] = offset + RING_BYTES;
            arguments[3] = 2;
            arguments[6] = (uint64_t)NETDAM_VECTOR_NONE << 16;
        } else {
            arguments[1] = 64;
        }
        assert_int_equal(ndbroker_admin(fixture.book, owner, order[i], arguments, results), NETDAM_ADMIN_STATUS_OK);
    }
}

static uint64_t free_bytes(void)
{
    return ndlib_alloc_free_bytes(&fixture.device->alloc);
}

static void queue_pairs_go_first_then_regions_and_peers(void **state)
{
    static const uint32_t expected[] = {NETDAM_ADMIN_QUEUE_DESTROY, NETDAM_ADMIN_QUEUE_DESTROY,
                                        NETDAM_ADMIN_REGION_DESTROY, NETDAM_ADMIN_REGION_DESTROY,
                                        NETDAM_ADMIN_PEER_CLOSE};
    struct ndbroker_owner owner = {.id = 7};
    struct ndbroker_owner other = {.id = 8};

    (void)state;
    own_some(&owner);
    own_some(&other);
    fixture.log_count = 0;
    assert_true(ndbroker_release(fixture.book, &owner));
    assert_int_equal(fixture.log_count, COUNT(expected));
    assert_memory_equal(fixture.log, expected, sizeof(expected));
    assert_int_equal(free_bytes(), MEMORY_BYTES - 10 * RING_BYTES);
    assert_int_equal(other.queue_pairs, 2);
    assert_true(ndbroker_release(fixture.book, &other));
    assert_int_equal(free_bytes(), MEMORY_BYTES);
}

static void memory_that_the_device_keeps_is_not_leased_again(void **state)
{
    static const uint32_t refused[] = {NETDAM_ADMIN_QUEUE_DESTROY, NETDAM_ADMIN_REGION_DESTROY,
                                       NETDAM_ADMIN_PEER_CLOSE};
    static int round;
    struct ndbroker_owner owner = {.id = 7};
    struct ndbroker_owner next = {.id = 8};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    const uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};

    (void)state;
    fixture.refuse = refused[round++ % COUNT(refused)];
    own_some(&owner);
    fixture.log_count = 0;
    assert_false(ndbroker_release(fixture.book, &owner));
    /* It tried everything all the same. */
    assert_int_equal(fixture.log_count, 5);
    assert_int_equal(free_bytes(), MEMORY_BYTES - 10 * RING_BYTES);
    /* And nobody inherits what is left. */
    fixture.log_count = 0;
    assert_int_equal(ndbroker_admin(fixture.book, &next, fixture.refuse, arguments, results),
                     NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(fixture.log_count, 0);
    assert_true(ndbroker_release(fixture.book, &next));
}

static void an_index_that_cannot_be_is_nobodys(void **state)
{
    static const uint64_t indices[] = {PEERS, UINT32_MAX, UINT64_MAX - 1, 0};
    struct ndbroker_owner owner = {.id = 7};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    const uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};

    (void)state;
    /* Number 0 is taken, so the device may not give it again. */
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_PEER_OPEN, arguments, results),
                     NETDAM_ADMIN_STATUS_OK);
    for (unsigned i = 0; i < COUNT(indices); i++) {
        fixture.forced_index = indices[i] + 1;
        assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_PEER_OPEN, arguments, results),
                         NETDAM_ADMIN_STATUS_NO_SPACE);
        assert_int_equal(results[0], 0);
    }
    assert_int_equal(owner.peers, 1);
    assert_true(ndbroker_release(fixture.book, &owner));
}

static void what_a_refused_destruction_names_is_kept(void **state)
{
    struct ndbroker_owner owner = {.id = 7};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    const uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};

    (void)state;
    own_some(&owner);
    fixture.refuse = NETDAM_ADMIN_QUEUE_DESTROY;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_DESTROY, arguments, results),
                     NETDAM_ADMIN_STATUS_NO_SUCH);
    assert_int_equal(owner.queue_pairs, 2);
    fixture.refuse = 0;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_DESTROY, arguments, results),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(owner.queue_pairs, 1);
    assert_true(ndbroker_release(fixture.book, &owner));
}

static void rings_and_regions_lie_within_one_piece(void **state)
{
    struct ndbroker_owner owner = {.id = 7};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t first;
    uint64_t second;

    (void)state;
    assert_int_equal(ndbroker_take(fixture.book, &owner, 4096, 0, &first), 0);
    assert_int_equal(ndbroker_take(fixture.book, &owner, 4096, 0, &second), 0);
    assert_int_equal(second, first + 4096);
    const struct {
        uint64_t base;
        uint64_t bytes;
        bool good;
    } table[] = {
        {first, 4096, true},         {first + 8, 4088, true},   {second, 4096, true},
        {first, 4097, false},        {first, 8192, false},      {first + 8, 4096, false},
        {second, 4097, false},       {first, 0, false},         {first, UINT64_MAX, false},
        {UINT64_MAX - 7, 16, false}, {second + 4096, 8, false}, {first + 4088, UINT64_MAX - 4000, false},
    };
    for (unsigned i = 0; i < COUNT(table); i++) {
        const uint64_t arguments[NETDAM_ADMIN_ARGS] = {table[i].base, table[i].bytes};

        assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_REGION_CREATE, arguments, results),
                         table[i].good ? NETDAM_ADMIN_STATUS_OK : NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    }
    assert_int_equal(ndbroker_give(fixture.book, &owner, first), -EBUSY);
    assert_true(ndbroker_release(fixture.book, &owner));
}

static void neighbours_are_set_by_the_privileged(void **state)
{
    struct ndbroker_owner owner = {.id = 7};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    const uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};

    (void)state;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_NEIGHBOUR_SET, arguments, results),
                     NETDAM_ADMIN_STATUS_UNSUPPORTED);
    assert_int_equal(fixture.log_count, 0);
    owner.is_privileged = true;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_NEIGHBOUR_SET, arguments, results),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(fixture.log_count, 1);
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_STEERING_SET, arguments, results),
                     NETDAM_ADMIN_STATUS_NO_SUCH);
}

static void raw_queue_pairs_are_for_the_privileged(void **state)
{
    struct ndbroker_owner owner = {.id = 7};
    uint64_t arguments[NETDAM_ADMIN_ARGS] = {0, 4, 0, 4, 0, 4, NETDAM_QUEUE_RAW | (uint64_t)NETDAM_VECTOR_NONE << 16};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t rings;

    (void)state;
    assert_int_equal(ndbroker_take(fixture.book, &owner, 16384, 64, &rings), 0);
    arguments[0] = rings;
    arguments[2] = rings + 4096;
    arguments[4] = rings + 8192;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_CREATE, arguments, results),
                     NETDAM_ADMIN_STATUS_UNSUPPORTED);
    assert_int_equal(fixture.log_count, 0);
    owner.is_privileged = true;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_CREATE, arguments, results),
                     NETDAM_ADMIN_STATUS_OK);
    assert_true(ndbroker_release(fixture.book, &owner));
}

/* In whose name requests are sent, and to whom memory and messages go. */
static void tenants_are_named_by_the_privileged(void **state)
{
    static const struct {
        uint32_t command;
        unsigned argument;
        unsigned shift;
    } names[] = {
        {NETDAM_ADMIN_QUEUE_CREATE, 6, 32}, {NETDAM_ADMIN_REGION_CREATE, 4, 0}, {NETDAM_ADMIN_PEER_OPEN, 2, 32}};
    struct ndbroker_owner owner = {.id = 7};
    uint64_t results[NETDAM_ADMIN_RESULTS];
    uint64_t memory;

    (void)state;
    assert_int_equal(ndbroker_take(fixture.book, &owner, 2 * RING_BYTES, 0, &memory), 0);
    for (unsigned i = 0; i < COUNT(names); i++) {
        uint64_t arguments[NETDAM_ADMIN_ARGS] = {memory};

        if (names[i].command == NETDAM_ADMIN_QUEUE_CREATE) {
            arguments[2] = memory + RING_BYTES;
            arguments[6] = (uint64_t)NETDAM_VECTOR_NONE << 16;
        } else {
            arguments[1] = 64;
        }
        for (unsigned bit = 0; bit < 32; bit++) {
            const uint64_t without = arguments[names[i].argument];

            arguments[names[i].argument] |= UINT64_C(1) << (names[i].shift + bit);
            fixture.log_count = 0;
            assert_int_equal(ndbroker_admin(fixture.book, &owner, names[i].command, arguments, results),
                             NETDAM_ADMIN_STATUS_UNSUPPORTED);
            assert_int_equal(fixture.log_count, 0);
            arguments[names[i].argument] = without;
        }
        owner.is_privileged = true;
        arguments[names[i].argument] |= UINT64_C(0x80000005) << names[i].shift;
        assert_int_equal(ndbroker_admin(fixture.book, &owner, names[i].command, arguments, results),
                         NETDAM_ADMIN_STATUS_OK);
        assert_memory_equal(fixture.arguments, arguments, sizeof(arguments));
        owner.is_privileged = false;
    }
    assert_true(ndbroker_release(fixture.book, &owner));
}

static void a_vector_is_translated_and_the_tenant_kept(void **state)
{
    struct ndbroker_owner other = {.id = 7};
    struct ndbroker_owner owner = {.id = 8, .is_privileged = true};
    uint64_t arguments[NETDAM_ADMIN_ARGS] = {0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    fixture.vector_fd = 0;
    assert_int_equal(ndbroker_vector(fixture.book, &other, 0), 0);
    assert_int_equal(ndbroker_vector(fixture.book, &owner, 3), 0);
    assert_int_equal(ndbroker_take(fixture.book, &owner, 2 * RING_BYTES, 0, &arguments[0]), 0);
    arguments[2] = arguments[0] + RING_BYTES;
    arguments[6] = (uint64_t)2 << 16 | (uint64_t)5 << 32;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_CREATE, arguments, results),
                     NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
    arguments[6] = (uint64_t)3 << 16 | (uint64_t)5 << 32;
    assert_int_equal(ndbroker_admin(fixture.book, &owner, NETDAM_ADMIN_QUEUE_CREATE, arguments, results),
                     NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(fixture.arguments[6], (uint64_t)1 << 16 | (uint64_t)5 << 32);
    assert_true(ndbroker_release(fixture.book, &owner));
    assert_true(ndbroker_release(fixture.book, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(queue_pairs_go_first_then_regions_and_peers, open_book, close_book),
        cmocka_unit_test_setup_teardown(memory_that_the_device_keeps_is_not_leased_again, open_book, close_book),
        cmocka_unit_test_setup_teardown(memory_that_the_device_keeps_is_not_leased_again, open_book, close_book),
        cmocka_unit_test_setup_teardown(memory_that_the_device_keeps_is_not_leased_again, open_book, close_book),
        cmocka_unit_test_setup_teardown(an_index_that_cannot_be_is_nobodys, open_book, close_book),
        cmocka_unit_test_setup_teardown(what_a_refused_destruction_names_is_kept, open_book, close_book),
        cmocka_unit_test_setup_teardown(rings_and_regions_lie_within_one_piece, open_book, close_book),
        cmocka_unit_test_setup_teardown(neighbours_are_set_by_the_privileged, open_book, close_book),
        cmocka_unit_test_setup_teardown(raw_queue_pairs_are_for_the_privileged, open_book, close_book),
        cmocka_unit_test_setup_teardown(tenants_are_named_by_the_privileged, open_book, close_book),
        cmocka_unit_test_setup_teardown(a_vector_is_translated_and_the_tenant_kept, open_book, close_book),
    };

    return cmocka_run_group_tests_name("netdamd, the book", tests, NULL, NULL);
}
