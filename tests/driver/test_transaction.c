/* SPDX-License-Identifier: BSD-3-Clause */
/* Two soft devices on loopback: transactions put together, posted and waited for; a bank of accounts as an example. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam.h"

#define REGION_BYTES (UINT64_C(1) << 16)
#define LIST         UINT64_C(0x100) /* of side a */
#define RESULT       UINT64_C(0x4003)

/* Long enough for a machine that is busy with other things. */
#define SOON UINT64_C(120000000000)

struct side {
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_queue *queue;
    struct netdam_peer *peer; /* side b, from either */
    struct netdam_region *region;
    uint8_t *memory; /* of the region */
};

static struct side a;
static struct side b;

static void side_open(struct side *side)
{
    uint64_t offset;

    assert_int_equal(netdam_open("udp:127.0.0.1:0,memory=2M", NULL, &side->device), 0);
    assert_int_equal(netdam_query(side->device, &side->info), 0);
    assert_int_equal(netdam_queue_create(side->device, NULL, &side->queue), 0);
    assert_int_equal(netdam_alloc(side->device, REGION_BYTES, 4096, &offset), 0);
    assert_int_equal(netdam_region_create(side->device, offset, REGION_BYTES, NETDAM_PERMISSION_ALL, 0, &side->region),
                     0);
    side->memory = netdam_region_pointer(side->region);
}

static int open_both(void **state)
{
    char address[32];

    (void)state;
    side_open(&a);
    side_open(&b);
    snprintf(address, sizeof(address), "127.0.0.1:%u", b.info.udp_port);
    assert_int_equal(netdam_peer_open(a.device, address, &a.peer), 0);
    assert_int_equal(netdam_peer_open(b.device, address, &b.peer), 0);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    netdam_close(a.device);
    netdam_close(b.device);
    return 0;
}

/* Memory of side b, as `side` names it. */
static struct netdam_remote at_b(const struct side *side, uint64_t address)
{
    return (struct netdam_remote){side->peer, netdam_region_key(b.region), address};
}

static struct netdam_local in(const struct side *side, uint64_t address)
{
    return (struct netdam_local){side->region, address};
}

static uint64_t word_at(const uint8_t *memory)
{
    uint64_t word;

    memcpy(&word, memory, sizeof(word));
    return word;
}

static void set_word(uint8_t *memory, uint64_t word)
{
    memcpy(memory, &word, sizeof(word));
}

static void everything_is_done_or_nothing(void **state)
{
    struct netdam_transaction t;
    unsigned failed = 99;

    (void)state;
    memcpy(b.memory, "0123456789abcdef", 16);
    memset(a.memory + RESULT - 1, '.', 16);
    assert_int_equal(netdam_transaction_begin(&t, in(&a, LIST), 256, RESULT), 0);
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 3), "xyz", 3), 0);
    assert_int_equal(netdam_transaction_compare(&t, at_b(&a, 2), "23456", 5), 1);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 4), 3), 2);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 2), 3);
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 5), "!", 1), 4);
    assert_int_equal(t.fetched, 5);
    assert_int_equal(netdam_transact(a.queue, &t, &failed, SOON), 0);
    assert_memory_equal(b.memory, "012xy!6789abcdef", 16);
    assert_memory_equal(a.memory + RESULT - 1, ".45601..........", 16);
    assert_int_equal(failed, 99);

    /* The same list once more: its compare does not hold any longer. */
    assert_int_equal(netdam_transact(a.queue, &t, &failed, SOON), NETDAM_STATUS_COMPARE_FAILED);
    assert_int_equal(failed, 1);
    assert_memory_equal(b.memory, "012xy!6789abcdef", 16);
    assert_memory_equal(a.memory + RESULT - 1, ".45601..........", 16);
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), NETDAM_STATUS_COMPARE_FAILED);
}

static void refusals_name_the_operation(void **state)
{
    const struct {
        struct netdam_remote at;
        int status;
    } rows[] = {
        {{a.peer, netdam_region_key(b.region) ^ 1, 0}, NETDAM_STATUS_BAD_KEY},
        {at_b(&a, REGION_BYTES - 1), NETDAM_STATUS_BAD_RANGE},
        {at_b(&a, 0), NETDAM_STATUS_COMPARE_FAILED},
    };

    (void)state;
    set_word(b.memory, 7);
    for (unsigned i = 0; i < COUNT(rows); i++) {
        struct netdam_transaction t;
        unsigned failed = 99;

        assert_int_equal(netdam_transaction_begin(&t, in(&a, LIST), 256, RESULT), 0);
        for (unsigned k = 0; k < i; k++) {
            assert_int_equal(netdam_transaction_write(&t, at_b(&a, 0), "never", 5), k);
        }
        assert_int_equal(netdam_transaction_compare(&t, rows[i].at, "12", 2), i);
        assert_int_equal(netdam_transact(a.queue, &t, &failed, SOON), rows[i].status);
        assert_int_equal(failed, i);
        assert_true(word_at(b.memory) == 7);
    }
}

static void mistakes_are_told_when_an_operation_is_added(void **state)
{
    struct netdam_transaction t;
    struct netdam_remote elsewhere = at_b(&a, 0);
    uint32_t length;

    (void)state;
    assert_int_equal(netdam_transaction_begin(&t, (struct netdam_local){NULL, 0}, 64, 0), -EINVAL);
    assert_int_equal(netdam_transaction_begin(&t, in(&a, REGION_BYTES + 1), 0, 0), -EINVAL);
    assert_int_equal(netdam_transaction_begin(&t, in(&a, REGION_BYTES - 63), 64, 0), -EINVAL);
    assert_int_equal(netdam_transaction_begin(&t, in(&a, REGION_BYTES - 64), 64, 0), 0);
    elsewhere.peer = NULL;
    assert_int_equal(netdam_transaction_fetch(&t, elsewhere, 1), -EINVAL);
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 0), "123456789", 9), 0); /* 40 bytes */
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 0), "1", 1), -ENOSPC);
    assert_int_equal(netdam_transaction_compare(&t, at_b(&a, 0), "1", UINT32_MAX), -ENOSPC);
    elsewhere.peer = b.peer;
    assert_int_equal(netdam_transaction_fetch(&t, elsewhere, 1), -EINVAL);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 8), 1); /* 64 */
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 0), -ENOSPC);
    assert_int_equal(t.fetched, 8);
    length = t.request.length;
    assert_int_equal(length, 64);

    assert_int_equal(netdam_transaction_begin(&t, in(&a, LIST), 4096, RESULT), 0);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 129), -EMSGSIZE);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 100), 0);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), UINT32_MAX), -EMSGSIZE);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 100), 28), 1);
    for (int i = 2; i < NETDAM_TRANSACTION_ENTRIES_MAX; i++) {
        assert_int_equal(netdam_transaction_write(&t, at_b(&a, 200), NULL, 0), i);
    }
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 200), NULL, 0), -ENOSPC);
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), 0);
    assert_memory_equal(a.memory + RESULT, b.memory, 128);
}

static void lists_that_cannot_be_sent_complete_as_such(void **state)
{
    struct netdam_transaction t;

    (void)state;
    assert_int_equal(netdam_transaction_begin(&t, in(&a, LIST), 4096, RESULT), 0);
    t.request.remote.peer = a.peer;
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), NETDAM_STATUS_LOCAL_DESCRIPTOR); /* of nothing */
    assert_int_equal(netdam_transaction_write(&t, at_b(&a, 0), b.memory, a.info.payload_max - 16), 0);
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), NETDAM_STATUS_LOCAL_DESCRIPTOR); /* 8 bytes too long */
    assert_int_equal(netdam_transaction_begin(&t, in(&a, LIST), 4096, REGION_BYTES - 7), 0);
    assert_int_equal(netdam_transaction_fetch(&t, at_b(&a, 0), 8), 0);
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), NETDAM_STATUS_LOCAL_RANGE);
    t.request.remote.peer = NULL;
    assert_int_equal(netdam_transact(a.queue, &t, NULL, SOON), -EINVAL);
}

static void many_are_posted_at_once(void **state)
{
    enum { MANY = 40 };
    struct netdam_transaction t[MANY];
    bool seen[MANY] = {false};

    (void)state;
    memset(b.memory, 0, 8 * MANY);
    for (unsigned i = 0; i < MANY; i++) {
        uint64_t zero = 0, one = i + 1;

        assert_int_equal(netdam_transaction_begin(&t[i], in(&a, 0x8000 + 128 * i), 128, 0x4000 + 8 * i), 0);
        assert_int_equal(netdam_transaction_compare(&t[i], at_b(&a, 8 * (i & ~1u)), &zero, 8), 0);
        assert_int_equal(netdam_transaction_fetch(&t[i], at_b(&a, 8 * i), 8), 1);
        assert_int_equal(netdam_transaction_write(&t[i], at_b(&a, 8 * (i & ~1u)), &one, 8), 2);
        t[i].request.user_data = i;
        t[i].request.flags = NETDAM_DESCRIPTOR_ORDERED;
        assert_int_equal(netdam_post(a.queue, &t[i].request, 1), 1);
    }
    for (unsigned i = 0; i < MANY; i++) { /* of each two, the second finds what the first has written */
        struct netdam_completion completion;

        assert_int_equal(netdam_wait(a.queue, &completion, 1, SOON), 1);
        assert_true(completion.user_data < MANY && !seen[completion.user_data]);
        seen[completion.user_data] = true;
        assert_int_equal(completion.opcode, NETDAM_OP_TRANSACTION);
        assert_int_equal(completion.status,
                         completion.user_data % 2 == 0 ? NETDAM_STATUS_OK : NETDAM_STATUS_COMPARE_FAILED);
        assert_int_equal(completion.length, completion.user_data % 2 == 0 ? 8 : 0);
        assert_int_equal(completion.result, 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(word_at(b.memory + 8 * i) == (i % 2 == 0 ? i + 1 : 0));
    }
}

/*
 * The bank: a version, then the accounts. Every transfer raises the version, so that it fails if anything has changed
 * since the balances were looked at.
 */
#define BANK     UINT64_C(0x1000) /* in side b */
#define ACCOUNTS 4u

struct clerk {
    const struct side *side;
    struct netdam_queue *queue;
    uint64_t place; /* in the side's region: for lists and results */
    unsigned number;
    unsigned transfers, retries;
    int rc; /* the first that was neither OK nor a lost race */
};

static struct netdam_remote account(const struct side *side, unsigned index)
{
    return at_b(side, BANK + 8 + 8 * index);
}

/* Moves money between two accounts if it is there. 0, a status, or a negative errno value. */
static int transfer(struct clerk *clerk, unsigned from, unsigned to, uint64_t amount)
{
    const struct side *side = clerk->side;
    struct netdam_local list = in(side, clerk->place);
    uint64_t result = clerk->place + 512;
    const uint8_t *seen = side->memory + result;
    struct netdam_transaction t;
    uint64_t version, next, debit, credit;
    int rc;

    do {
        /* Look: one transaction, so that version and balances belong together. */
        netdam_transaction_begin(&t, list, 512, result);
        netdam_transaction_fetch(&t, at_b(side, BANK), 8);
        netdam_transaction_fetch(&t, account(side, from), 8);
        netdam_transaction_fetch(&t, account(side, to), 8);
        rc = netdam_transact(clerk->queue, &t, NULL, SOON);
        if (rc != 0) {
            return rc;
        }
        version = word_at(seen);
        debit = word_at(seen + 8);
        credit = word_at(seen + 16) + amount;
        if (debit < amount) {
            return 0; /* it is not there */
        }
        debit -= amount;
        next = version + 1;

        /* Act, unless somebody was faster. */
        netdam_transaction_begin(&t, list, 512, result);
        netdam_transaction_compare(&t, at_b(side, BANK), &version, 8);
        netdam_transaction_write(&t, at_b(side, BANK), &next, 8);
        netdam_transaction_write(&t, account(side, from), &debit, 8);
        netdam_transaction_write(&t, account(side, to), &credit, 8);
        rc = netdam_transact(clerk->queue, &t, NULL, SOON);
        clerk->retries += rc == NETDAM_STATUS_COMPARE_FAILED;
    } while (rc == NETDAM_STATUS_COMPARE_FAILED);
    clerk->transfers += rc == 0;
    return rc;
}

static void *work(void *opaque)
{
    struct clerk *clerk = opaque;

    for (unsigned i = 0; i < 200 && clerk->rc == 0; i++) {
        unsigned from = (i + clerk->number) % ACCOUNTS;

        clerk->rc = transfer(clerk, from, (from + 1 + i / 7 % (ACCOUNTS - 1)) % ACCOUNTS, 1 + i % 90);
    }
    return NULL;
}

/* Three clerks on two machines, one of them the bank's own, which goes through its device like the others. */
static void accounts_of_a_bank_add_up_whoever_transfers(void **state)
{
    struct clerk clerks[3] = {
        {.side = &a, .place = 0xc000}, {.side = &a, .place = 0xd000}, {.side = &b, .place = 0xc000}};
    uint64_t sum = 0, transfers = 0;
    pthread_t threads[3];

    (void)state;
    set_word(b.memory + BANK, 0);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        set_word(b.memory + BANK + 8 + 8 * i, 250);
    }
    for (unsigned i = 0; i < 3; i++) {
        clerks[i].number = i;
        assert_int_equal(netdam_queue_create(clerks[i].side->device, NULL, &clerks[i].queue), 0);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &clerks[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(clerks[i].rc, 0);
        assert_true(clerks[i].transfers > 0);
        transfers += clerks[i].transfers;
        assert_int_equal(netdam_queue_destroy(clerks[i].queue), 0);
    }
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        assert_true(word_at(b.memory + BANK + 8 + 8 * i) <= 1000); /* none was overdrawn */
        sum += word_at(b.memory + BANK + 8 + 8 * i);
    }
    assert_int_equal(sum, 1000);
    assert_int_equal(word_at(b.memory + BANK), transfers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_done_or_nothing),
        cmocka_unit_test(refusals_name_the_operation),
        cmocka_unit_test(mistakes_are_told_when_an_operation_is_added),
        cmocka_unit_test(lists_that_cannot_be_sent_complete_as_such),
        cmocka_unit_test(many_are_posted_at_once),
        cmocka_unit_test(accounts_of_a_bank_add_up_whoever_transfers),
    };

    return cmocka_run_group_tests_name("transaction", tests, open_both, close_both);
}
