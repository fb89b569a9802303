/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants against who changes, invents, repeats and redirects frames, and against who has another tenant's key. */
#include "tenant.h"

#define REGION  UINT64_C(0x10000)
#define LENGTH  UINT64_C(0x1000)
#define KEY     UINT64_C(0x7e4a0000000000a1)
#define OPEN    UINT64_C(0x7e4a0000000000a2) /* a region of no tenant */
#define OTHERS  UINT64_C(0x7e4a0000000000a3) /* a region of the other tenant */
#define NOBODY  UINT64_C(0x7e4a0000000000a4)
#define CONTEXT UINT64_C(0xc0ffee0000000001)

static struct unit node; /* number 1: what is under attack */
static uint8_t frame[UNIT_FRAME_ROOM];
static size_t frame_bytes;

static void start(const struct tenant_key *tenant, const struct netdam_fw_config *config)
{
    tenant_watch_start();
    tenant_start(&node, 1, config);
    assert_int_equal(tenant_set(&node, tenant), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(tenant_set(&node, &tenant_other), NETDAM_ADMIN_STATUS_OK);
    (void)tenant_region(&node, REGION, LENGTH, KEY, tenant->id);
    (void)tenant_region(&node, REGION, LENGTH, OPEN, 0);
    (void)tenant_region(&node, REGION, LENGTH, OTHERS, TENANT_OTHER);
}

static struct tenant_sender sender_of(const struct tenant_key *tenant, unsigned n)
{
    return (struct tenant_sender){.tenant = tenant, .salt = {0x5a, (uint8_t)n, (uint8_t)(n >> 8), 1}};
}

static struct unit_request write_of(const uint8_t *payload, uint32_t length, uint64_t number)
{
    return (struct unit_request){.opcode = NETDAM_OP_WRITE,
                                 .context = CONTEXT,
                                 .number = number,
                                 .length = length,
                                 .payload_length = length,
                                 .payload = payload,
                                 .key = KEY,
                                 .generation = node.fw->generation};
}

static struct unit_request echo_of(uint64_t number)
{
    return (struct unit_request){
        .opcode = NETDAM_OP_ECHO, .context = CONTEXT, .number = number, .generation = node.fw->generation};
}

static void ask(const struct unit_request *request, struct tenant_sender *sender)
{
    frame_bytes =
        sender != NULL ? tenant_request_frame(frame, 0, request, sender) : unit_request_frame(frame, 0, request);
    unit_receive(&node, frame, frame_bytes);
}

/* The status of the one answer that came, which is opened and checked; -1: none. */
static int answered(const struct tenant_key *tenant, struct ndtest_packet *packet)
{
    static uint8_t copy[UNIT_FRAME_ROOM];
    size_t bytes;
    const uint8_t *sent = unit_sent_frame(&node, &bytes);

    if (sent == NULL) {
        return -1;
    }
    memcpy(copy, sent, bytes);
    assert_int_equal(node.count, 0);
    assert_true(ndtest_packet_read(copy, bytes, NETDAM_UDP_PORT, packet));
    assert_int_equal((packet->flags & NETDAM_FLAG_TENANT) != 0, tenant != NULL);
    assert_true(tenant == NULL || tenant_open(copy, bytes, tenant));
    return packet->status;
}

static int status_of(const struct unit_request *request, struct tenant_sender *sender)
{
    struct ndtest_packet packet;

    ask(request, sender);
    return answered(sender != NULL ? sender->tenant : NULL, &packet);
}

static int status_again(const struct tenant_key *tenant)
{
    struct ndtest_packet packet;

    unit_receive(&node, frame, frame_bytes);
    return answered(tenant, &packet);
}

static uint64_t memory_hash(void)
{
    return ndtest_hash(0, node.node.memory, node.node.config.memory_bytes);
}

static uint64_t count(enum netdam_counter counter)
{
    return unit_counter(&node, counter);
}

/* Every bit of addresses, header, extension, segment, payload: with all checksums made right, and not. */
static void changed_bit_is_noticed(void **state)
{
    static const struct tenant_key *const tenants[] = {&tenant_plain, &tenant_secret};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (unsigned known = 0; known < 2; known++) {
            struct tenant_sender sender = sender_of(tenants[t], 1);
            struct unit_request request, first;
            uint8_t changed[UNIT_FRAME_ROOM];
            uint64_t before;

            start(tenants[t], NULL);
            first = echo_of(1);
            if (known) {
                assert_int_equal(status_of(&first, &sender), NETDAM_STATUS_OK);
            }
            request = write_of((const uint8_t *)"what nobody may change", 22, 1);
            frame_bytes = tenant_request_frame(frame, 0, &request, &sender);
            before = memory_hash();
            for (size_t bit = 42 * 8; bit < frame_bytes * 8; bit++) {
                bool version = bit / 8 == 42;

                memcpy(changed, frame, frame_bytes);
                changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
                /* Its own checksum would be made right again. */
                if (bit / 8 < 42 + 28 || bit / 8 >= 42 + 32) {
                    (void)ndtest_frame_repair(changed, frame_bytes, false);
                }
                unit_receive(&node, changed, frame_bytes);
                assert_int_equal(count(NETDAM_COUNTER_REQUESTS_EXECUTED), known);
                if (version && node.count == 1) {
                    struct ndtest_packet packet;

                    assert_int_equal(answered(NULL, &packet), NETDAM_STATUS_BAD_VERSION);
                }
                unit_expect_silence(&node);
            }
            assert_int_equal(count(NETDAM_COUNTER_REQUESTS_EXECUTED), known);
            assert_int_equal(memory_hash(), before);
            assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), known);
            assert_true(count(NETDAM_COUNTER_RX_TENANT) > 100 * 8);
            assert_int_equal(count(NETDAM_COUNTER_RX_REPLAYED), 0);
            assert_int_equal(status_again(tenants[t]), NETDAM_STATUS_OK);
            assert_memory_equal(node.node.memory + REGION, "what nobody may change", 22);
            unit_stop(&node);
        }
    }
}

/* Which counters are taken, one after the other; the window is 1024. */
static void counter_is_taken_once(void **state)
{
    static const struct {
        uint64_t counter;
        bool taken;
    } rows[] = {
        {5, true},
        {5, false},
        {3, true},
        {3, false},
        {4, true},
        {1, true},
        {6, true},
        {6, false},
        {1028, true},
        {5, false},
        {1029, true},
        {6, false},
        {1030, true},
        {7, true},
        {7, false},
        {8, true},
        {2000, true},
        {976, false},
        {977, true},
        {977, false},
        {1030, false},
        {1031, true},
        {1999, true},
        {1999, false},
        {3024, true},
        {2000, false},
        {2001, true},
        {9000, true},
        {3024, false},
        {8999, true},
        {8999, false},
        {7977, true},
        {7976, false},
        {UINT64_MAX, true},
        {UINT64_MAX, false},
        {UINT64_MAX - 1023, true},
        {UINT64_MAX - 1024, false},
        {0, false},
        {9000, false},
    };
    struct tenant_sender sender = sender_of(&tenant_plain, 1);
    uint64_t replayed = 0;

    (void)state;
    start(&tenant_plain, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct unit_request request = echo_of(i);

        sender.counter = rows[i].counter - 1;
        if ((status_of(&request, &sender) == NETDAM_STATUS_OK) != rows[i].taken) {
            fail_msg("row %zu", i);
        }
        replayed += !rows[i].taken;
        assert_int_equal(count(NETDAM_COUNTER_RX_REPLAYED), replayed);
    }
    unit_stop(&node);
}

/* In any order within the window each is taken once. */
static void order_does_not_matter(void **state)
{
    struct tenant_sender sender = sender_of(&tenant_secret, 1);

    (void)state;
    start(&tenant_secret, NULL);
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t n = 0; n < 1024; n++) {
            struct unit_request request = echo_of(n);

            sender.counter = n * 5 % 1024; /* 5 and 1024 have no common divisor */
            assert_int_equal(status_of(&request, &sender), round == 0 ? NETDAM_STATUS_OK : -1);
        }
    }
    assert_int_equal(count(NETDAM_COUNTER_RX_REPLAYED), 1024);
    unit_stop(&node);
}

/* A copy of a RELAXED WRITE would be executed again; with a tenant it is not. */
static void relaxed_write_is_not_played_again(void **state)
{
    struct tenant_sender sender = sender_of(&tenant_plain, 1);
    struct unit_request request;

    (void)state;
    start(&tenant_plain, NULL);
    request = write_of((const uint8_t *)"12345678", 8, 1);
    request.flags = NETDAM_FLAG_RELAXED;
    assert_int_equal(status_of(&request, &sender), NETDAM_STATUS_OK);
    memset(node.node.memory + REGION, 0xee, 8);
    assert_int_equal(status_again(NULL), -1);
    assert_int_equal(count(NETDAM_COUNTER_RX_REPLAYED), 1);
    assert_true(unit_memory_get(&node, REGION, 8) == UINT64_C(0xeeeeeeeeeeeeeeee));
    unit_stop(&node);
}

struct captured {
    uint8_t bytes[512];
    size_t count;
};

static void capture(struct captured *captured)
{
    assert_true(frame_bytes <= sizeof(captured->bytes));
    memcpy(captured->bytes, frame, frame_bytes);
    captured->count = frame_bytes;
}

static int play(const struct captured *captured, const struct tenant_key *tenant)
{
    struct ndtest_packet packet;

    unit_receive(&node, captured->bytes, captured->count);
    return answered(tenant, &packet);
}

/* What a sender sent before it was forgotten has no effect afterwards, although nothing remembers its counters. */
static void forgotten_sender_is_not_played_again(void **state)
{
    struct netdam_fw_config config = unit_config(1);
    struct tenant_sender one = sender_of(&tenant_plain, 1), two = sender_of(&tenant_plain, 2),
                         three = sender_of(&tenant_plain, 3);
    struct captured captured[4];
    struct unit_request request;
    uint64_t generation;

    (void)state;
    config.tenant_senders = 2;
    start(&tenant_plain, &config);
    /* A lane that stays, confirmed, under the present generation. */
    generation = node.fw->generation;
    request = write_of((const uint8_t *)"12345678", 8, 1);
    assert_int_equal(status_of(&request, &one), NETDAM_STATUS_OK);
    capture(&captured[0]);
    request.number = 2;
    request.flags = NETDAM_FLAG_RELAXED;
    assert_int_equal(status_of(&request, &one), NETDAM_STATUS_OK);
    capture(&captured[1]);
    request.flags = 0;
    request.opcode = NETDAM_OP_READ;
    request.payload_length = 0;
    request.number = 3;
    assert_int_equal(status_of(&request, &one), NETDAM_STATUS_OK);
    capture(&captured[2]);
    request =
        (struct unit_request){.opcode = NETDAM_OP_CONFIRM, .context = CONTEXT, .number = 2, .generation = generation};
    assert_int_equal(status_of(&request, &one), NETDAM_STATUS_OK);
    capture(&captured[3]);
    request = echo_of(1);
    assert_int_equal(status_of(&request, &two), NETDAM_STATUS_OK);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 2);

    /* No room, and nobody is idle. */
    assert_int_equal(status_of(&request, &three), -1);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS_FULL), 1);
    assert_true(node.fw->generation == generation);

    /* Both have been silent for long: there is room, at the price of an epoch. */
    unit_advance(&node, 60001 * UNIT_MS);
    request.opcode = NETDAM_OP_READ;
    request.key = KEY;
    request.length = 8;
    assert_int_equal(status_of(&request, &three), NETDAM_STATUS_STALE);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS_FORGOTTEN), 2);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 0);
    assert_true(netdam_generation_epoch(node.fw->generation) != netdam_generation_epoch(generation));
    request.generation = node.fw->generation;
    assert_int_equal(status_of(&request, &three), NETDAM_STATUS_OK);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 1);

    memset(node.node.memory + REGION, 0xee, 8);
    for (size_t i = 0; i < ARRAY_SIZE(captured); i++) {
        for (unsigned times = 0; times < 2; times++) {
            assert_int_equal(play(&captured[i], &tenant_plain), NETDAM_STATUS_STALE);
        }
    }
    assert_true(unit_memory_get(&node, REGION, 8) == UINT64_C(0xeeeeeeeeeeeeeeee));
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 1); /* and none of it cost a place */
    unit_stop(&node);
}

/* The place of one tenant's most silent sender, if it holds most. */
static void tenant_cannot_keep_another_out(void **state)
{
    struct netdam_fw_config config = unit_config(1);
    struct unit_request request;
    struct tenant_sender mine[3], others[5];

    (void)state;
    config.tenant_senders = 4;
    start(&tenant_plain, &config);
    for (unsigned n = 0; n < 5; n++) {
        others[n] = sender_of(&tenant_other, 100 + n);
        request = echo_of(n);
        assert_int_equal(status_of(&request, &others[n]), n < 4 ? NETDAM_STATUS_OK : -1);
        unit_advance(&node, UNIT_MS);
    }
    for (unsigned n = 0; n < 3; n++) {
        mine[n] = sender_of(&tenant_plain, n);
        request = echo_of(n);
        assert_int_equal(status_of(&request, &mine[n]), n < 2 ? NETDAM_STATUS_OK : -1); /* makes room, or finds none */
        request = echo_of(n);
        assert_int_equal(status_of(&request, &mine[n]), n < 2 ? NETDAM_STATUS_OK : -1);
        assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 4);
        unit_advance(&node, UNIT_MS);
    }
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS_FORGOTTEN), 2);
    /* The two that were heard last are still there: what they sent is known. */
    for (unsigned n = 2; n < 4; n++) {
        others[n].counter = 0;
        request = echo_of(n);
        assert_int_equal(status_of(&request, &others[n]), -1);
    }
    assert_int_equal(count(NETDAM_COUNTER_RX_REPLAYED), 2);
    unit_stop(&node);
}

/* Whatever was recorded before this node's start: it is stale, and takes no place. */
static void frames_from_before_a_reset_cost_nothing(void **state)
{
    static struct captured captured[20];
    struct unit_request request;

    (void)state;
    start(&tenant_secret, NULL);
    for (unsigned n = 0; n < ARRAY_SIZE(captured); n++) {
        struct tenant_sender sender = sender_of(&tenant_secret, n);

        request = write_of((const uint8_t *)"12345678", 8, 1);
        request.context += n;
        request.flags = n % 2 == 0 ? 0 : NETDAM_FLAG_RELAXED;
        assert_int_equal(status_of(&request, &sender), NETDAM_STATUS_OK);
        capture(&captured[n]);
    }
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), ARRAY_SIZE(captured));
    tenant_restart(&node);
    memset(node.node.memory + REGION, 0xee, 8);
    assert_int_equal(tenant_set(&node, &tenant_secret), NETDAM_ADMIN_STATUS_OK);
    (void)tenant_region(&node, REGION, LENGTH, KEY, TENANT_ID);
    for (unsigned n = 0; n < ARRAY_SIZE(captured); n++) {
        assert_int_equal(play(&captured[n], &tenant_secret), NETDAM_STATUS_STALE);
    }
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 0);
    assert_true(unit_memory_get(&node, REGION, 8) == UINT64_C(0xeeeeeeeeeeeeeeee));
    unit_stop(&node);
}

/* The same key set again: the counters seen are forgotten, and so is what they were seen with. */
static void frames_from_before_a_new_key_are_stale(void **state)
{
    struct tenant_sender sender = sender_of(&tenant_secret, 1);
    struct unit_request request;

    (void)state;
    start(&tenant_secret, NULL);
    request = write_of((const uint8_t *)"12345678", 8, 1);
    request.flags = NETDAM_FLAG_RELAXED;
    assert_int_equal(status_of(&request, &sender), NETDAM_STATUS_OK);
    memset(node.node.memory + REGION, 0xee, 8);
    assert_int_equal(tenant_set(&node, &tenant_secret), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 0);
    assert_int_equal(status_again(&tenant_secret), NETDAM_STATUS_STALE);
    assert_true(unit_memory_get(&node, REGION, 8) == UINT64_C(0xeeeeeeeeeeeeeeee));
    /* In the other mode the key is another one. */
    assert_int_equal(tenant_set(&node, &tenant_plain), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(status_again(&tenant_secret), -1);
    unit_stop(&node);
}

/* Of an answer, everything but where it says which request it is for, the floor that this claimed, and the seal. */
static uint32_t answer_hash(const struct tenant_key *tenant, size_t *bytes)
{
    static uint8_t copy[UNIT_FRAME_ROOM];
    const uint8_t *sent = unit_sent_frame(&node, bytes);

    assert_non_null(sent);
    memcpy(copy, sent, *bytes);
    assert_true(tenant == NULL || tenant_open(copy, *bytes, tenant));
    memset(copy + 42 + 8, 0, 14);                                  /* context and number */
    memset(copy + 42 + 32 + (tenant != NULL ? 48 : 0) + 24, 0, 6); /* floor */
    memset(copy + 42 + 28, 0, 4);                                  /* header_crc */
    memset(copy + 42 + 32 + 24, 0, tenant != NULL ? 24 : 0);       /* counter and tag */
    unit_expect_silence(&node);
    return ndtest_crc32c(0, copy, *bytes);
}

/* Regions and queue pairs of others answer, and count, as if there were none. */
static void others_keys_are_as_keys_of_nobody(void **state)
{
    static const struct tenant_key *const tenants[] = {NULL, &tenant_plain, &tenant_other};
    static const uint8_t opcodes[] = {NETDAM_OP_READ, NETDAM_OP_WRITE, NETDAM_OP_SWAP,     NETDAM_OP_FETCH_ADD,
                                      NETDAM_OP_CAS,  NETDAM_OP_SEND,  NETDAM_OP_FETCH_OP, NETDAM_OP_REDUCE};
    static const uint16_t flags[] = {0, NETDAM_FLAG_RELAXED};
    uint64_t receive_keys[3];
    uint64_t before;

    (void)state;
    start(&tenant_plain, NULL);
    for (unsigned n = 0; n < 3; n++) {
        static const uint64_t owner[] = {0, TENANT_ID, TENANT_OTHER};
        uint64_t args[] = {0x80000 + n * 0x1000,
                           1,
                           0x80400 + n * 0x1000,
                           2,
                           0x80800 + n * 0x1000,
                           1,
                           (uint64_t)NETDAM_VECTOR_NONE << 16 | owner[n] << 32,
                           0};
        uint64_t results[NETDAM_ADMIN_RESULTS];

        assert_int_equal(unit_admin(&node, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), NETDAM_ADMIN_STATUS_OK);
        receive_keys[n] = results[1];
    }
    node.fw->config.refusal_burst = 1u << 20;
    before = memory_hash();
    for (size_t t = 0; t < ARRAY_SIZE(tenants); t++) {
        struct tenant_sender sender = sender_of(tenants[t], 1);

        for (size_t n = 0; n < ARRAY_SIZE(opcodes) * ARRAY_SIZE(flags); n++) {
            const uint64_t regions[] = {OPEN, KEY, OTHERS, NOBODY};
            const uint64_t pairs[] = {receive_keys[0], receive_keys[1], receive_keys[2], NOBODY};
            uint8_t opcode = opcodes[n % ARRAY_SIZE(opcodes)];
            bool atomic = (netdam_op_flags(opcode) & NETDAM_OPF_ATOMIC) != 0;
            bool alu = (netdam_op_flags(opcode) & NETDAM_OPF_ALU) != 0;
            uint32_t expected = 0;
            uint64_t counted[NETDAM_COUNTER_COUNT] = {0};

            if (flags[n / ARRAY_SIZE(opcodes)] != 0 && opcode != NETDAM_OP_WRITE && opcode != NETDAM_OP_REDUCE) {
                continue;
            }
            for (size_t k = 4; k-- > 0;) { /* nobody's first */
                struct unit_request request = {
                    .opcode = opcode,
                    .operation = alu ? NETDAM_ALU_MAX : NETDAM_ALU_NONE,
                    .type = atomic || alu ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE,
                    .flags = flags[n / ARRAY_SIZE(opcodes)],
                    .context = CONTEXT + 1000 * t,
                    .number = 10 * n + 3 - k,
                    .length = 8,
                    .payload_length = opcode == NETDAM_OP_READ  ? 0
                                      : opcode == NETDAM_OP_CAS ? 16
                                                                : 8,
                    .key = opcode == NETDAM_OP_SEND ? pairs[k] : regions[k],
                    .generation = node.fw->generation,
                };
                bool own = k == t;
                uint64_t now[NETDAM_COUNTER_COUNT];
                size_t bytes;
                uint32_t hash;

                if (own) {
                    continue;
                }
                for (unsigned c = 0; c < NETDAM_COUNTER_COUNT; c++) {
                    now[c] = count((enum netdam_counter)c);
                }
                ask(&request, tenants[t] != NULL ? &sender : NULL);
                hash = answer_hash(tenants[t], &bytes);
                for (unsigned c = 0; c < NETDAM_COUNTER_COUNT; c++) {
                    now[c] = count((enum netdam_counter)c) - now[c];
                }
                if (k == 3) {
                    expected = hash;
                    /* What the first request of a context brings about by itself. */
                    memcpy(counted, now, sizeof(now));
                    continue;
                }
                assert_int_equal(hash, expected);
                for (unsigned c = 0; c < NETDAM_COUNTER_COUNT; c++) {
                    if (n != 0 && c != NETDAM_COUNTER_LANES && c != NETDAM_COUNTER_LANE_WINDOWS &&
                        c != NETDAM_COUNTER_LANE_BYTES) {
                        assert_int_equal(now[c], counted[c]);
                    }
                }
            }
        }
    }
    assert_int_equal(memory_hash(), before);
    unit_stop(&node);
}

/* One context, two tenants: two lanes. Who knows a context without the key cannot do anything to its lane. */
static void lane_belongs_to_its_tenant(void **state)
{
    struct tenant_sender mine = sender_of(&tenant_plain, 1), other = sender_of(&tenant_other, 2);
    struct unit_request request, stranger;

    (void)state;
    start(&tenant_plain, NULL);
    request = write_of((const uint8_t *)"12345678", 8, 1);
    assert_int_equal(status_of(&request, &mine), NETDAM_STATUS_OK);
    stranger = request;
    stranger.key = OPEN;
    stranger.payload = (const uint8_t *)"abcdefgh";
    assert_int_equal(status_of(&stranger, NULL), NETDAM_STATUS_OK); /* not taken for a copy of the other */
    assert_memory_equal(node.node.memory + REGION, "abcdefgh", 8);
    stranger = (struct unit_request){
        .opcode = NETDAM_OP_CONFIRM, .context = CONTEXT, .number = 1000, .generation = node.fw->generation};
    assert_int_equal(status_of(&stranger, NULL), NETDAM_STATUS_OK);
    assert_int_equal(status_of(&stranger, &other), NETDAM_STATUS_OK);
    request.number = 2;
    assert_int_equal(status_of(&request, &mine), NETDAM_STATUS_OK); /* not below a floor that others claimed */
    assert_int_equal(count(NETDAM_COUNTER_LANES), 3);
    unit_stop(&node);
}

/* A frame that is carried to another node of the same tenant, where the same key names something. */
static void frame_is_for_one_node_only(void **state)
{
    static const struct {
        unsigned family;
        size_t at; /* of the last byte of the destination's address, or port */
    } rows[] = {{4, 33}, {4, 37}, {6, 53}, {6, 38}, {6, 57}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct tenant_sender sender = sender_of(&tenant_secret, 1);
        struct netdam_fw_config config = unit_config(1);
        struct unit_request request = {
            .opcode = NETDAM_OP_ECHO, .family = rows[i].family, .length = 8, .payload_length = 8};

        frame_bytes = 0;
        tenant_watch_start();
        frame_bytes = tenant_request_frame(frame, 0, &request, &sender);
        frame[rows[i].at] ^= 8;
        if (rows[i].family == 4) {
            memcpy(config.ipv4, frame + 30, 4);
        } else {
            memcpy(config.ipv6, frame + 38, 16);
        }
        config.udp_port = (uint16_t)(frame[rows[i].family == 4 ? 36 : 56] << 8 | frame[rows[i].family == 4 ? 37 : 57]);
        assert_true(ndtest_frame_repair(frame, frame_bytes, false));
        tenant_start(&node, 1, &config);
        assert_int_equal(tenant_set(&node, &tenant_secret), NETDAM_ADMIN_STATUS_OK);
        unit_receive(&node, frame, frame_bytes);
        unit_expect_silence(&node);
        assert_int_equal(count(NETDAM_COUNTER_RX_TENANT), 1);
        unit_stop(&node);
    }
}

/* Refusals that depend on the packet alone are sealed as well; a version that is not known has no tag to check. */
static void refusals_are_sealed(void **state)
{
    static const struct {
        struct unit_request request;
        enum netdam_status status;
    } rows[] = {
        {{.opcode = 0x77}, NETDAM_STATUS_BAD_OPCODE},
        {{.opcode = NETDAM_OP_WRITE, .length = 9}, NETDAM_STATUS_BAD_LENGTH},
        {{.opcode = NETDAM_OP_WRITE, .flags = NETDAM_FLAG_PAYLOAD_CRC}, NETDAM_STATUS_BAD_FLAGS},
        {{.opcode = NETDAM_OP_WRITE, .flags = 0x8000}, NETDAM_STATUS_BAD_FLAGS},
        {{.opcode = NETDAM_OP_ECHO, .flags = NETDAM_FLAG_RELAXED}, NETDAM_STATUS_BAD_FLAGS},
        {{.opcode = NETDAM_OP_READ, .length = 1353}, NETDAM_STATUS_BAD_LENGTH},
        {{.opcode = NETDAM_OP_READ, .length = 1352}, NETDAM_STATUS_STALE},
        {{.opcode = NETDAM_OP_ECHO, .length = 1352, .payload_length = 1352}, NETDAM_STATUS_OK},
        {{.opcode = NETDAM_OP_ECHO, .length = 1353, .payload_length = 1353}, NETDAM_STATUS_BAD_LENGTH},
        {{.opcode = NETDAM_OP_CONFIRM}, NETDAM_STATUS_STALE},
    };
    struct tenant_sender sender = sender_of(&tenant_secret, 1);

    (void)state;
    start(&tenant_secret, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (status_of(&rows[i].request, &sender) != (int)rows[i].status) {
            fail_msg("row %zu", i);
        }
    }
    assert_int_equal(count(NETDAM_COUNTER_TENANT_SENDERS), 0);
    unit_stop(&node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_bit_is_noticed),
        cmocka_unit_test(counter_is_taken_once),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(relaxed_write_is_not_played_again),
        cmocka_unit_test(forgotten_sender_is_not_played_again),
        cmocka_unit_test(tenant_cannot_keep_another_out),
        cmocka_unit_test(frames_from_before_a_reset_cost_nothing),
        cmocka_unit_test(frames_from_before_a_new_key_are_stale),
        cmocka_unit_test(others_keys_are_as_keys_of_nobody),
        cmocka_unit_test(lane_belongs_to_its_tenant),
        cmocka_unit_test(frame_is_for_one_node_only),
        cmocka_unit_test(refusals_are_sealed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
