/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants' frames in shared memory: nothing is there before it is sealed, and what was sealed is what is opened. */
#include "tenant.h"

#define BASE   UINT64_C(0x2000)
#define LENGTH UINT64_C(0x4000)
#define BYTES  1200u
#define BLANK  0xee

struct watch {
    struct unit u;
    uint8_t *received; /* overwritten whenever the firmware calls out */
    size_t bytes;
    size_t begun_bytes;
    unsigned looks;
    uint8_t *(*begin)(void *opaque, struct ndtest_node *node, size_t bytes);
};

static struct watch watch;

static void look(void)
{
    if (watch.received != NULL) {
        memset(watch.received, 0x55, watch.bytes);
    }
    for (size_t i = 0; watch.u.begun != NULL && i < watch.begun_bytes; i++) {
        assert_int_equal(watch.u.begun[i], BLANK);
        watch.looks++;
    }
}

static void on_trace(void *opaque, struct ndtest_node *node, enum netdam_fw_trace event, uint64_t a, uint64_t b,
                     uint64_t c)
{
    (void)opaque, (void)node, (void)event, (void)a, (void)b, (void)c;
    look();
}

static void on_access(void *opaque, struct ndtest_node *node, uint64_t offset, uint64_t bytes,
                      enum netdam_fw_access access)
{
    (void)opaque, (void)node, (void)offset, (void)bytes, (void)access;
    look();
}

static uint8_t *on_begin(void *opaque, struct ndtest_node *node, size_t bytes)
{
    uint8_t *frame = watch.begin(opaque, node, bytes);

    memset(frame, BLANK, bytes);
    watch.begun_bytes = bytes;
    return frame;
}

/* The crypto calls, between which the frame is as blank. */
static struct netdam_fw_crypto watched;
static const struct netdam_fw_crypto *inner;

static bool watched_seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                         size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    bool done;

    look();
    done = inner->seal(opaque, slot, nonce, associated, associated_bytes, text, text_bytes, tag);
    look();
    return done;
}

static void start(const struct tenant_key *tenant)
{
    struct netdam_fw_config config = unit_config(1);

    tenant_watch_start();
    memset(&watch, 0, sizeof(watch));
    config.shared_frames = 1;
    tenant_start(&watch.u, 1, &config);
    watch.u.node.hooks.trace = on_trace;
    watch.u.node.hooks.access = on_access;
    watch.begin = watch.u.node.hooks.transmit_begin;
    watch.u.node.hooks.transmit_begin = on_begin;
    inner = watch.u.node.platform.crypto;
    watched = *inner;
    watched.seal = watched_seal;
    watch.u.fw->platform.crypto = &watched;
    assert_int_equal(tenant_set(&watch.u, tenant), NETDAM_ADMIN_STATUS_OK);
    tenant_region(&watch.u, BASE, LENGTH, UNIT_KEY, tenant->id);
    unit_memory_pattern(&watch.u, 0, 0x8000, 5);
}

static void receive(const uint8_t *frame, size_t bytes)
{
    watch.received = malloc(bytes);
    watch.bytes = bytes;
    memcpy(watch.received, frame, bytes);
    /* No UDP checksum, as the firmware sends them: for one all of the frame would be copied anyway. */
    unit_put16(watch.received + NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + 6, 0);
    watch.u.node.ops->receive(watch.u.node.state, watch.received, bytes, watch.u.now_ns);
    free(watch.received);
    watch.received = NULL;
}

static const struct tenant_key *const modes[] = {&tenant_plain, &tenant_secret};

static void answers_are_sealed_before_they_can_be_seen(void **state)
{
    static uint8_t frame[UNIT_FRAME_ROOM];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct tenant_sender sender = {.tenant = modes[i], .salt = {3}};
        struct unit_request request = {.opcode = NETDAM_OP_READ,
                                       .length = BYTES,
                                       .number = 1,
                                       .key = UNIT_KEY,
                                       .no_crc = true};
        const uint8_t *answer;
        uint8_t copy[UNIT_FRAME_ROOM];
        size_t bytes;

        start(modes[i]);
        /* Who is not known yet proves first that it hears the answers: the second one is executed. */
        for (unsigned n = 0; n < 2; n++) {
            unit_drop_sent(&watch.u);
            request.number = n + 1;
            request.generation = watch.u.fw->generation;
            receive(frame, tenant_request_frame(frame, 0, &request, &sender));
        }
        answer = unit_sent_frame(&watch.u, &bytes);
        assert_non_null(answer);
        assert_true(watch.looks > 100);
        memcpy(copy, answer, bytes);
        assert_true(tenant_open(copy, bytes, modes[i]));
        assert_memory_equal(copy + bytes - BYTES, watch.u.node.memory + BASE, BYTES);
        unit_stop(&watch.u);
    }
}

static void what_was_sealed_is_what_is_written(void **state)
{
    static uint8_t frame[UNIT_FRAME_ROOM], payload[BYTES];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct tenant_sender sender = {.tenant = modes[i], .salt = {4}};
        struct unit_request request = {.opcode = NETDAM_OP_WRITE,
                                       .length = BYTES,
                                       .payload_length = BYTES,
                                       .key = UNIT_KEY,
                                       .payload = payload,
                                       .no_crc = true};

        start(modes[i]);
        for (unsigned n = 0; n < 2; n++) {
            memset(payload, (int)(0x70 + n), BYTES);
            request.number = n + 1;
            request.generation = watch.u.fw->generation;
            receive(frame, tenant_request_frame(frame, 0, &request, &sender));
        }
        assert_memory_equal(watch.u.node.memory + BASE, payload, BYTES);
        assert_int_equal(unit_counter(&watch.u, NETDAM_COUNTER_RX_TENANT), 0);
        unit_stop(&watch.u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_sealed_before_they_can_be_seen),
        cmocka_unit_test(what_was_sealed_is_what_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
