/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains of a tenant: every hop opens the packet and seals it anew; who lacks the key is passed by nothing. */
#include "tenant.h"

#define MEMORY UINT64_C(0x10000)
#define RESULT UINT64_C(0x12000)
#define LIST   UINT64_C(0x14000)
#define RINGS  UINT64_C(0x80000)
#define KEY    UINT64_C(0x7e4a0000000000a1)

static struct tenant_wire wire;
static struct ndtest_queue queue;
static uint32_t local, far_peer, self_peer;
static uint8_t salts[16][16];
static unsigned salt_count;
static uint64_t sealed, plain;

static bool note_salts(void *opaque, bool from_a, uint8_t *frame, size_t *bytes)
{
    const uint8_t *salt = frame + 42 + 32 + 8;
    bool seen = false;

    (void)opaque;
    (void)from_a;
    (void)bytes;
    if ((frame[42 + 3] & NETDAM_FLAG_TENANT) == 0) {
        plain++;
        return true;
    }
    sealed++;
    for (unsigned i = 0; i < salt_count; i++) {
        seen |= memcmp(salts[i], salt, 16) == 0;
    }
    if (!seen && salt_count < 16) {
        memcpy(salts[salt_count++], salt, 16);
    }
    return true;
}

/* A is the requester and the second node of each chain, B the first. Regions belong to `owner`, peers to `tenant`. */
static void stage(const struct tenant_key *at_a, const struct tenant_key *at_b, uint32_t owner, uint32_t tenant)
{
    struct netdam_fw_config config = unit_config(0);
    const uint64_t self[] = {0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16 | (uint64_t)tenant << 32};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    config.retries = 2;
    tenant_wire_start(&wire, &config);
    wire.tap = note_salts;
    salt_count = 0;
    sealed = plain = 0;
    assert_int_equal(tenant_set(&wire.a, at_a), NETDAM_ADMIN_STATUS_OK);
    if (at_b != NULL) {
        assert_int_equal(tenant_set(&wire.b, at_b), NETDAM_ADMIN_STATUS_OK);
    }
    local = tenant_region(&wire.a, MEMORY, 0x8000, KEY, owner);
    (void)tenant_region(&wire.b, MEMORY, 0x2000, KEY, at_b != NULL ? owner : 0);
    unit_queue(&wire.a, &queue, RINGS, 4);
    (void)tenant_peer(&wire.b, 4, 0); /* for the link-layer address */
    far_peer = tenant_peer(&wire.a, 4, tenant);
    assert_int_equal(unit_admin(&wire.a, NETDAM_ADMIN_PEER_OPEN, self, 3, results), NETDAM_ADMIN_STATUS_OK);
    self_peer = (uint32_t)results[0];
    for (uint64_t i = 0; i < 0x2000; i += 4) {
        unit_memory_put(&wire.a, MEMORY + i, 4, 1000 + i);
        unit_memory_put(&wire.b, MEMORY + i, 4, 5);
    }
}

static void post_chain(uint8_t first, uint8_t second, uint32_t length)
{
    const uint8_t opcodes[] = {first, second};
    bool returns = second != NETDAM_OP_WRITE && second != NETDAM_OP_REDUCE;
    struct netdam_descriptor descriptor = {
        .opcode = NETDAM_OP_CHAIN,
        .list_count = 2,
        .user_data = first,
        .length = length,
        .local_region = first == NETDAM_OP_LOAD ? 0 : local,
        .peer = returns ? local : 0,
        .immediate = local,
        .remote_address = LIST - MEMORY,
        .u.buffer.result_address = returns ? RESULT - MEMORY : 0,
    };

    for (unsigned i = 0; i < 2; i++) {
        bool alu = (netdam_op_flags(opcodes[i]) & NETDAM_OPF_ALU) != 0;
        struct netdam_segment segment = {
            .opcode = opcodes[i],
            .operation = alu ? NETDAM_ALU_SUM : NETDAM_ALU_NONE,
            .type = alu ? NETDAM_TYPE_U32 : NETDAM_TYPE_NONE,
            .peer = i == 0 ? far_peer : self_peer,
            .key = opcodes[i] == NETDAM_OP_FORWARD ? 0 : KEY,
        };

        memcpy(wire.a.node.memory + LIST + i * sizeof(segment), &segment, sizeof(segment));
    }
    unit_post(&wire.a, &queue, &descriptor);
}

static const struct tenant_key *const tenants[] = {&tenant_plain, &tenant_secret};

/* Longer than a packet; the payload is changed at the first hop and comes home by the second. */
static void hops_open_and_seal_anew(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        stage(tenants[t], tenants[t], TENANT_ID, TENANT_ID);
        post_chain(NETDAM_OP_LOAD_REDUCE, NETDAM_OP_FORWARD, 4000);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&queue, NETDAM_OP_LOAD_REDUCE, NETDAM_STATUS_OK);
        for (uint64_t i = 0; i < 4000; i += 4) {
            assert_true(unit_memory_get(&wire.a, RESULT + i, 4) == 1005 + i);
        }
        assert_int_equal(plain, 0);
        assert_int_equal(salt_count, 2); /* the requester's, and the hop's */
        assert_true(unit_counter(&wire.b, NETDAM_COUNTER_FORWARDED) >= 3);

        post_chain(NETDAM_OP_LOAD, NETDAM_OP_WRITE, 3000);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&queue, NETDAM_OP_LOAD, NETDAM_STATUS_OK);
        assert_memory_equal(wire.a.node.memory + MEMORY, wire.b.node.memory + MEMORY, 3000);

        unit_memory_pattern(&wire.a, MEMORY, 2000, 9);
        post_chain(NETDAM_OP_WRITE, NETDAM_OP_WRITE, 2000);
        tenant_wire_run(&wire, UNIT_MS * 1000); /* and confirms */
        unit_expect_completion(&queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
        assert_memory_equal(wire.b.node.memory + MEMORY, wire.a.node.memory + MEMORY, 2000);
        assert_int_equal(plain, 0);
        assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_LANE_WINDOWS), 0);
        assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_RX_TENANT), 0);
        tenant_wire_stop(&wire);
    }
}

/* A hop that does not hold the key takes, changes and passes on nothing. */
static void hop_without_the_key_is_silent(void **state)
{
    static const struct tenant_key *const at_hop[] = {NULL, &tenant_other, &tenant_plain};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(at_hop); i++) {
        uint32_t before;

        stage(&tenant_secret, at_hop[i], 0, TENANT_ID);
        before = ndtest_crc32c(0, wire.b.node.memory, wire.b.node.config.memory_bytes);
        post_chain(NETDAM_OP_LOAD_REDUCE, NETDAM_OP_FORWARD, 8);
        tenant_wire_run(&wire, 10000 * UNIT_MS);
        unit_expect_completion(&queue, NETDAM_OP_LOAD_REDUCE, NETDAM_STATUS_TIMEOUT);
        assert_int_equal(ndtest_crc32c(0, wire.b.node.memory, wire.b.node.config.memory_bytes), before);
        assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_TX_FRAMES), 0);
        assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_FORWARDED), 0);
        tenant_wire_stop(&wire);
    }
}

/* Regions of others: as if there were none, at whichever hop. */
static void segment_names_its_tenants_regions_only(void **state)
{
    static const struct {
        uint32_t owner, tenant;
    } rows[] = {{0, TENANT_ID}, {TENANT_ID, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        stage(&tenant_secret, &tenant_secret, rows[i].owner, rows[i].tenant);
        post_chain(NETDAM_OP_LOAD_REDUCE, NETDAM_OP_FORWARD, 8);
        tenant_wire_run(&wire, 100 * UNIT_MS);
        unit_expect_completion(&queue, NETDAM_OP_LOAD_REDUCE, NETDAM_STATUS_BAD_KEY);
        post_chain(NETDAM_OP_WRITE, NETDAM_OP_WRITE, 8);
        tenant_wire_run(&wire, 100 * UNIT_MS);
        unit_expect_completion(&queue, NETDAM_OP_WRITE, NETDAM_STATUS_BAD_KEY);
        assert_true(unit_memory_get(&wire.b, MEMORY, 4) == 5);
        tenant_wire_stop(&wire);
    }
}

/* One packet has one tag: all nodes of a chain are peers of one tenant. */
static void chain_is_of_one_tenant(void **state)
{
    (void)state;
    stage(&tenant_secret, &tenant_secret, TENANT_ID, TENANT_ID);
    far_peer = tenant_peer(&wire.a, 4, 0);
    post_chain(NETDAM_OP_LOAD_REDUCE, NETDAM_OP_FORWARD, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&queue, NETDAM_OP_LOAD_REDUCE, NETDAM_STATUS_LOCAL_DESCRIPTOR);
    assert_int_equal(sealed + plain, 0);
    tenant_wire_stop(&wire);
}

/* Answers in the chains' context from who has no key: they end nothing. */
static bool answer_plainly(void *opaque, bool from_a, uint8_t *frame, size_t *bytes)
{
    struct ndtest_packet packet;

    (void)opaque;
    if (from_a && ndtest_packet_read(frame, *bytes, NETDAM_UDP_PORT, &packet) && packet.segment_count == 2) {
        struct unit_answer answer = {.status = NETDAM_STATUS_BAD_KEY};
        struct tenant_sender other = {.tenant = &tenant_other, .salt = {1}};
        uint8_t forged[UNIT_FRAME_ROOM];
        size_t made = unit_answer_frame(forged, 1, &packet, &answer);

        forged[42 + 4] = 2; /* segment_count */
        (void)ndtest_frame_repair(forged, made, false);
        unit_receive(&wire.a, forged, made);
        made = tenant_seal(forged, made, &other);
        unit_receive(&wire.a, forged, made);
        unit_expect_no_completion(&queue);
        plain++;
    }
    return true;
}

static void forged_answer_ends_no_chain(void **state)
{
    (void)state;
    stage(&tenant_secret, &tenant_secret, TENANT_ID, TENANT_ID);
    assert_int_equal(tenant_set(&wire.a, &tenant_other), NETDAM_ADMIN_STATUS_OK);
    wire.tap = answer_plainly;
    post_chain(NETDAM_OP_LOAD_REDUCE, NETDAM_OP_FORWARD, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&queue, NETDAM_OP_LOAD_REDUCE, NETDAM_STATUS_OK);
    assert_true(plain != 0);
    assert_true(unit_counter(&wire.a, NETDAM_COUNTER_RESPONSES_UNMATCHED) >= 2);
    tenant_wire_stop(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hops_open_and_seal_anew),
        cmocka_unit_test(hop_without_the_key_is_silent),
        cmocka_unit_test(segment_names_its_tenants_regions_only),
        cmocka_unit_test(chain_is_of_one_tenant),
        cmocka_unit_test(forged_answer_ends_no_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
