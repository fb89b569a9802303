/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers from several threads while data moves both ways: nobody starves, nothing races (SAN=thread watches). */
#define _GNU_SOURCE
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define READERS        4
#define REQUESTS       100
#define READS_AT_LEAST 200

struct reader {
    pthread_t thread;
    struct rig *rig;
    atomic_bool *end;
    atomic_uint reads;
    unsigned wrong;
};

static void *read_registers(void *opaque)
{
    struct reader *reader = opaque;
    uint64_t last = 0;

    while (!atomic_load(reader->end)) {
        uint64_t frames = rig_counter(reader->rig, NETDAM_COUNTER_TX_FRAMES);

        reader->wrong += frames < last;
        reader->wrong += netdam_soft_register_read(reader->rig->soft, NETDAM_REG_ID, 4) != NETDAM_ID;
        netdam_soft_register_write(reader->rig->soft, NETDAM_PAGE_DOORBELLS, 4, 1);
        last = frames;
        atomic_fetch_add(&reader->reads, 1);
    }
    return NULL;
}

static void *move_data(void *opaque)
{
    struct rig **pair = opaque;
    uint32_t peer = rig_peer(pair[0], netdam_soft_port(pair[1]->soft));
    uintptr_t wrong = 0;
    unsigned i;

    for (i = 0; i < REQUESTS; i++) {
        struct netdam_descriptor request =
            rig_request(pair[0], i % 2 == 0 ? NETDAM_OP_WRITE : NETDAM_OP_READ, peer, pair[1]->key, 0, 1 << 20, 10000);
        struct netdam_completion completion;
        uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;

        rig_post(pair[0], &request);
        while (!rig_poll(pair[0], &completion)) {
            if (rig_now_ns() > end_ns) {
                return (void *)(wrong + 1);
            }
            rig_nap();
        }
        wrong += completion.status != NETDAM_STATUS_OK;
    }
    return (void *)wrong;
}

static void registers_and_data_do_not_starve_each_other(void **state)
{
    struct rig rigs[2];
    struct rig *pairs[2][2] = {{&rigs[0], &rigs[1]}, {&rigs[1], &rigs[0]}};
    struct reader readers[READERS] = {0};
    uint64_t end_ns = rig_now_ns() + RIG_PATIENCE_NS;
    pthread_t movers[2];
    atomic_bool end = false;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        rig_open(&rigs[i], NULL);
    }
    for (i = 0; i < READERS; i++) {
        readers[i].rig = &rigs[i % 2];
        readers[i].end = &end;
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_registers, &readers[i]), 0);
    }
    for (i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&movers[i], NULL, move_data, pairs[i]), 0);
    }
    for (i = 0; i < 2; i++) {
        void *wrong;

        assert_int_equal(pthread_join(movers[i], &wrong), 0);
        assert_null(wrong);
    }
    for (i = 0; i < READERS; i++) {
        while (atomic_load(&readers[i].reads) < READS_AT_LEAST) {
            assert_true(rig_now_ns() < end_ns);
            rig_nap();
        }
    }
    atomic_store(&end, true);
    for (i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        assert_int_equal(readers[i].wrong, 0);
    }
    for (i = 0; i < 2; i++) {
        rig_close(&rigs[i]);
    }
}

/* Opening and closing at once, as a program with many short-lived devices does. */
static void *open_and_close(void *opaque)
{
    uintptr_t wrong = 0;
    unsigned i;

    (void)opaque;
    for (i = 0; i < 10; i++) {
        struct netdam_soft_config config = {.listen = "127.0.0.1:0", .memory_bytes = 1 << 20};
        struct netdam_soft *soft;

        if (netdam_soft_open(&config, &soft) != 0) {
            wrong++;
            continue;
        }
        wrong += netdam_soft_register_read(soft, NETDAM_REG_ID, 4) != NETDAM_ID;
        netdam_soft_register_write(soft, NETDAM_REG_CONTROL, 4, NETDAM_CONTROL_RESET);
        wrong += (netdam_soft_register_read(soft, NETDAM_REG_STATUS, 4) & NETDAM_DEVICE_READY) == 0;
        netdam_soft_close(soft);
    }
    return (void *)wrong;
}

static void devices_come_and_go_in_several_threads(void **state)
{
    pthread_t threads[4];
    unsigned i;

    (void)state;
    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    }
    for (i = 0; i < 4; i++) {
        void *wrong;

        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_and_data_do_not_starve_each_other),
        cmocka_unit_test(devices_come_and_go_in_several_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
