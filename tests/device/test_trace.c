/* SPDX-License-Identifier: BSD-3-Clause */
/* QEMU's trace points: each path leaves its mark, and a refusal one with _err_ in its name. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "card.h"

#define ONBOARD_BYTES (1u << 20)

static struct machine machine;
static struct card card;
static char *log_path;

static int setup(void **state)
{
    char *onboard;

    (void)state;
    machine_prepare(&machine);
    onboard = machine_text("%s/onboard", machine.directory);
    log_path = machine_text("%s/log", machine.directory);
    machine_start(
        &machine,
        (const char *const[]){"-object", machine_text("memory-backend-file,id=m,size=1M,share=on,mem-path=%s", onboard),
                              "-device", "netdam,id=nd,memdev=m,ip=10.0.0.1/24,firmware=" NETDAM_TEST_FIRMWARE,
                              "-trace", "netdam*", "-d", "guest_errors", "-D", log_path, NULL});
    card_open(&card, &machine, 0);
    card_map(&card, onboard, ONBOARD_BYTES);
    free(onboard);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    card_close(&card);
    machine_stop(&machine);
    free(log_path);
    return 0;
}

/* How many lines of the log so far contain the text. */
static unsigned lines_with(const char *text)
{
    FILE *file = fopen(log_path, "r");
    char line[1024];
    unsigned count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        count += strstr(line, text) != NULL;
    }
    fclose(file);
    return count;
}

static void perform(struct card_queue *q, const struct netdam_descriptor *d, enum netdam_status status)
{
    struct netdam_completion completion;

    card_post(q, d);
    assert_true(card_poll(q, &completion, 5000));
    assert_int_equal(completion.status, status);
}

static void what_succeeds_is_traced_without_err(void **state)
{
    static const char *const names[] = {
        "netdam_image_load nd: ",    "netdam_fw_admin nd: ", "netdam_register_write nd: ",
        "netdam_register_read nd: ", "netdam_run nd: ",      "netdam_fw_descriptor nd: ",
        "netdam_fw_completion nd: "};
    struct netdam_descriptor d = {
        .opcode = NETDAM_OP_WRITE, .length = 64, .remote_address = 0x100, .user_data = 0xd00d};
    struct card_queue q;
    size_t i;

    (void)state;
    card_queue_create(&q, &card, 0, NETDAM_VECTOR_NONE);
    d.local_region = card_region(&card, 0x10000, 0x1000, &d.remote_key);
    d.peer = card_peer(&card, 1);
    perform(&q, &d, NETDAM_STATUS_OK);
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (lines_with(names[i]) == 0) {
            fail_msg("'%s' is not traced", names[i]);
        }
    }
    assert_int_equal(lines_with("user data 0xd00d"), 2);
    /* But for STALE, by which a requester learns the generation. */
    assert_int_equal(lines_with("_err_"), lines_with("netdam_fw_err_refused nd: status 0x40"));
}

static void a_refusal_is_traced_with_err(void **state)
{
    struct netdam_descriptor d = {.opcode = NETDAM_OP_WRITE, .length = 64, .remote_key = 0xbad, .user_data = 1};
    struct card_queue q;
    uint64_t key;

    (void)state;
    card_queue_create(&q, &card, 0, NETDAM_VECTOR_NONE);
    d.local_region = card_region(&card, 0x10000, 0x1000, &key);
    d.peer = card_peer(&card, 1);
    assert_int_equal(lines_with("_err_"), 0);

    perform(&q, &d, NETDAM_STATUS_BAD_KEY);
    assert_int_equal(lines_with("netdam_fw_err_refused nd: status 0x9"), 1);

    assert_int_equal(card_read(&card, 0x0ffc, 4), UINT32_MAX);
    assert_int_equal(lines_with("netdam_fw_err_register nd: 0xffc, 4 bytes, read"), 1);
    card_write(&card, NETDAM_REG_ID, 4, 1);
    assert_int_equal(lines_with("netdam_fw_err_register nd: 0x0, 4 bytes, write"), 1);

    __atomic_store_n(&q.sq->producer, 5000, __ATOMIC_RELEASE);
    card_doorbell(&card, q.number);
    machine_step(&machine, 1000);
    assert_int_equal(lines_with("netdam_fw_err_ring nd: queue pair 0, producer 5000"), 1);
    /* The event's vector, for which the guest has no MSI-X. */
    assert_int_equal(lines_with("netdam_irq_err_disabled nd: vector 16"), 1);
}

static void trace_points_are_switched_while_qemu_runs(void **state)
{
    unsigned before;

    (void)state;
    machine_monitor(&machine, NULL,
                    "{\"execute\": \"trace-event-set-state\", \"arguments\": {\"name\": \"netdam_register_*\", "
                    "\"enable\": false}}\n");
    before = lines_with("netdam_register_read");
    (void)card_read(&card, NETDAM_REG_ID, 4);
    assert_int_equal(lines_with("netdam_register_read"), before);
    machine_monitor(&machine, NULL,
                    "{\"execute\": \"trace-event-set-state\", \"arguments\": {\"name\": \"netdam_register_*\", "
                    "\"enable\": true}}\n");
    (void)card_read(&card, NETDAM_REG_ID, 4);
    assert_int_equal(lines_with("netdam_register_read"), before + 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_succeeds_is_traced_without_err),
        TEST(a_refusal_is_traced_with_err),
        TEST(trace_points_are_switched_while_qemu_runs),
    };
#undef TEST

    alarm(300);
    return cmocka_run_group_tests_name("device: trace", tests, NULL, NULL);
}
