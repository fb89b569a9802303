/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants: what the right key opens, and that nothing else does; replays, forgotten senders, nonces. */
#include "tenant.h"

#include "crypto.h"

#define REGION UINT64_C(0x10000)
#define LENGTH UINT64_C(0x4000)
#define SOURCE UINT64_C(0x20000)
#define RINGS  UINT64_C(0x80000)
#define KEY    UINT64_C(0x7e4a0000000000a1)
#define OPEN   UINT64_C(0x7e4a0000000000a2) /* a region of no tenant */
#define OTHERS UINT64_C(0x7e4a0000000000a3) /* a region of the other tenant */
#define NOBODY UINT64_C(0x7e4a0000000000a4)

static struct tenant_wire wire;

static size_t unhex(const char *text, uint8_t *to)
{
    size_t n = strlen(text) / 2;

    for (size_t i = 0; i < n; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};

        to[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return n;
}

/* McGrew and Viega, The Galois/Counter Mode of Operation, test cases 1 to 4. */
static void seals_as_known_answers_say(void **state)
{
#define LONG_KEY   "feffe9928665731c6d6a8f9467308308"
#define LONG_NONCE "cafebabefacedbaddecaf888"
#define LONG_TEXT                                                                                                      \
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657" \
    "ba637b39"
#define LONG_CIPHER                                                                                                    \
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97" \
    "3d58e091"
    static const struct {
        const char *key, *nonce, *associated, *text, *cipher, *tag;
    } rows[] = {
        {"00000000000000000000000000000000", "000000000000000000000000", "", "", "",
         "58e2fccefa7e3061367f1d57a4e7455a"},
        {"00000000000000000000000000000000", "000000000000000000000000", "", "00000000000000000000000000000000",
         "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
        {LONG_KEY, LONG_NONCE, "", LONG_TEXT "1aafd255", LONG_CIPHER "473f5985", "4d5c2af327cd64a62cf35abd2ba6fab4"},
        {LONG_KEY, LONG_NONCE, "feedfacedeadbeeffeedfacedeadbeefabaddad2", LONG_TEXT, LONG_CIPHER,
         "5bc94fbc3221a5db94fae95ae7121a47"},
    };
    const struct netdam_fw_crypto *crypto = ndsim_crypto_open();

    (void)state;
    assert_non_null(crypto);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t key[16], nonce[12], associated[64], text[64], cipher[64], tag[16], got[16], out[64];
        size_t associated_bytes, bytes;
        uint32_t slot = (uint32_t)i * 100; /* the table of slots grows */

        unhex(rows[i].key, key);
        unhex(rows[i].nonce, nonce);
        associated_bytes = unhex(rows[i].associated, associated);
        bytes = unhex(rows[i].text, text);
        unhex(rows[i].cipher, cipher);
        unhex(rows[i].tag, tag);
        assert_false(crypto->seal(crypto->opaque, slot, nonce, associated, associated_bytes, text, bytes, got));
        assert_true(crypto->set_key(crypto->opaque, slot, key));
        assert_true(crypto->seal(crypto->opaque, slot, nonce, associated, associated_bytes, text, bytes, got));
        assert_memory_equal(text, cipher, bytes);
        assert_memory_equal(got, tag, 16);
        assert_true(crypto->open(crypto->opaque, slot, nonce, associated, associated_bytes, cipher, bytes, tag, out));
        unhex(rows[i].text, text);
        assert_memory_equal(out, text, bytes);
        tag[15] ^= 1;
        assert_false(crypto->open(crypto->opaque, slot, nonce, associated, associated_bytes, cipher, bytes, tag, out));
    }
    ndsim_crypto_close(crypto);
}

/* RFC 5869, A.1 and A.3: the first 16 bytes. */
static void derives_as_known_answers_say(void **state)
{
    const struct netdam_fw_crypto *crypto = ndsim_crypto_open();
    uint8_t key[22], salt[13], info[10], out[16], expected[16];

    (void)state;
    assert_non_null(crypto);
    memset(key, 0x0b, sizeof(key));
    unhex("000102030405060708090a0b0c", salt);
    unhex("f0f1f2f3f4f5f6f7f8f9", info);
    assert_true(crypto->derive(crypto->opaque, key, 22, salt, 13, info, 10, out));
    unhex("3cb25f25faacd57a90434f64d0362f2a", expected);
    assert_memory_equal(out, expected, 16);
    assert_true(crypto->derive(crypto->opaque, key, 22, salt, 0, info, 0, out));
    unhex("8da4e775a563c18f715f802a063c5a31", expected);
    assert_memory_equal(out, expected, 16);
    ndsim_crypto_close(crypto);
}

/* Node A has a queue and a peer of `at_a`; node B a region of `at_b`, one of the other tenant, and one of nobody. */
struct scene {
    struct ndtest_queue queue;
    uint32_t peer;
    uint32_t local;
};

static struct scene stage(const struct tenant_key *at_a, const struct tenant_key *at_b, unsigned family,
                          const struct netdam_fw_config *config)
{
    struct scene scene;

    tenant_wire_start(&wire, config);
    if (at_a != NULL) {
        assert_int_equal(tenant_set(&wire.a, at_a), NETDAM_ADMIN_STATUS_OK);
    }
    if (at_b != NULL) {
        assert_int_equal(tenant_set(&wire.b, at_b), NETDAM_ADMIN_STATUS_OK);
    }
    if (at_b != &tenant_other) {
        assert_int_equal(tenant_set(&wire.b, &tenant_other), NETDAM_ADMIN_STATUS_OK);
    }
    if (at_b != NULL) {
        (void)tenant_region(&wire.b, REGION, LENGTH, KEY, at_b->id);
    }
    (void)tenant_region(&wire.b, REGION, LENGTH, OPEN, 0);
    (void)tenant_region(&wire.b, REGION, LENGTH, OTHERS, TENANT_OTHER);
    scene.local = tenant_region(&wire.a, SOURCE, LENGTH, 0, 0);
    unit_queue(&wire.a, &scene.queue, RINGS, 4);
    scene.peer = tenant_peer(&wire.a, family, at_a != NULL ? at_a->id : 0);
    (void)tenant_peer(&wire.b, family, 0); /* for the link-layer address */
    unit_memory_pattern(&wire.a, SOURCE, LENGTH, 3);
    unit_memory_pattern(&wire.b, REGION, LENGTH, 77);
    return scene;
}

static struct netdam_descriptor request(const struct scene *scene, unsigned opcode, uint64_t key, uint32_t length)
{
    bool atomic = (netdam_op_flags(opcode) & NETDAM_OPF_ATOMIC) != 0;
    struct netdam_descriptor descriptor = {
        .opcode = (uint8_t)opcode,
        .type = atomic ? NETDAM_TYPE_U64 : NETDAM_TYPE_NONE,
        .user_data = opcode,
        .peer = scene->peer,
        .length = length,
        .remote_key = opcode == NETDAM_OP_ECHO ? 0 : key,
        .local_region = atomic ? 0 : scene->local,
    };

    if (atomic) {
        descriptor.u.operand[0] = 5;
    }
    return descriptor;
}

static void post(struct scene *scene, unsigned opcode, uint64_t key, uint32_t length)
{
    struct netdam_descriptor descriptor = request(scene, opcode, key, length);

    unit_post(&wire.a, &scene->queue, &descriptor);
}

#define TARGET_HASH() ndtest_crc32c(0, wire.b.node.memory, wire.b.node.config.memory_bytes)

static void right_key_does_everything(void **state)
{
    static const struct tenant_key *const tenants[] = {&tenant_plain, &tenant_secret};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        for (unsigned family = 4; family <= 6; family += 2) {
            struct scene scene = stage(tenants[t], tenants[t], family, NULL);
            uint64_t before = unit_memory_get(&wire.b, REGION, 8);
            struct netdam_completion completion;

            post(&scene, NETDAM_OP_READ, KEY, 5000);
            tenant_wire_run(&wire, UNIT_MS);
            unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
            assert_memory_equal(wire.a.node.memory + SOURCE, wire.b.node.memory + REGION, 5000);

            unit_memory_pattern(&wire.a, SOURCE, LENGTH, 3);
            post(&scene, NETDAM_OP_FETCH_ADD, KEY, 8);
            tenant_wire_run(&wire, UNIT_MS);
            completion = unit_completion(&scene.queue);
            assert_int_equal(completion.status, NETDAM_STATUS_OK);
            assert_true(completion.result == before);
            assert_true(unit_memory_get(&wire.b, REGION, 8) == before + 5);

            post(&scene, NETDAM_OP_WRITE, KEY, 5000);
            tenant_wire_run(&wire, UNIT_MS);
            unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
            assert_memory_equal(wire.b.node.memory + REGION, wire.a.node.memory + SOURCE, 5000);

            post(&scene, NETDAM_OP_ECHO, 0, 100);
            post(&scene, NETDAM_OP_READ, KEY + 100, 8);
            tenant_wire_run(&wire, UNIT_MS * 1000);
            unit_expect_completion(&scene.queue, NETDAM_OP_ECHO, NETDAM_STATUS_OK);
            unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_BAD_KEY);
            assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_LANE_WINDOWS), 0); /* the floor was confirmed */
            assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_TENANT_SENDERS), 1);
            assert_int_equal(unit_counter(&wire.a, NETDAM_COUNTER_TENANT_SENDERS), 1);
            tenant_wire_stop(&wire);
        }
    }
}

/* Who sends how, to whose region: nothing is applied, nothing comes back but what a key that nobody has would bring. */
static void wrong_key_does_nothing(void **state)
{
    static const struct tenant_key wrong_key = {TENANT_ID, NETDAM_TENANT_MODE_ENCRYPT, "0123456789abcdE"};
    static const struct tenant_key wrong_id = {TENANT_ID + 2, NETDAM_TENANT_MODE_ENCRYPT, "0123456789abcde"};
    static const struct {
        const struct tenant_key *a, *b;
        uint64_t key;
        bool silent;
    } rows[] = {
        {&wrong_key, &tenant_secret, KEY, true},
        {&wrong_id, &tenant_secret, KEY, true},
        {&tenant_plain, &tenant_secret, KEY, true}, /* right key, wrong mode */
        {&tenant_secret, &tenant_plain, KEY, true},
        {&tenant_secret, NULL, OPEN, true}, /* tenant not known */
        {NULL, &tenant_secret, KEY, false}, /* no tag at all */
        {NULL, &tenant_plain, OTHERS, false},
        {&tenant_secret, &tenant_secret, OPEN, false}, /* the right key for something else */
        {&tenant_secret, &tenant_secret, OTHERS, false},
        {&tenant_plain, &tenant_plain, OPEN, false},
        {&tenant_secret, &tenant_secret, NOBODY, false},
    };
    static const unsigned opcodes[] = {NETDAM_OP_READ, NETDAM_OP_WRITE, NETDAM_OP_SWAP};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        for (size_t n = 0; n < ARRAY_SIZE(opcodes); n++) {
            struct netdam_fw_config config = unit_config(0);
            struct scene scene;
            uint32_t before;

            config.retries = 2;
            scene = stage(rows[i].a, rows[i].b, 4, &config);
            before = TARGET_HASH();
            post(&scene, opcodes[n], rows[i].key, 8);
            tenant_wire_run(&wire, 10000 * UNIT_MS);
            unit_expect_completion(&scene.queue, opcodes[n],
                                   rows[i].silent ? NETDAM_STATUS_TIMEOUT : NETDAM_STATUS_BAD_KEY);
            assert_int_equal(TARGET_HASH(), before);
            assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_TX_FRAMES) == 0, rows[i].silent);
            assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_RX_TENANT) != 0, rows[i].silent);
            tenant_wire_stop(&wire);
        }
    }
}

/* An answer that was changed, or made by who has no key, or another one, is not taken; the right one is, afterwards. */
struct forger {
    const struct tenant_key *tenant;
    struct ndtest_queue *queue;
    unsigned forged;
};

static bool forge(void *opaque, bool from_a, uint8_t *frame, size_t *bytes)
{
    struct forger *forger = opaque;
    uint8_t changed[UNIT_FRAME_ROOM];
    struct ndtest_packet packet;

    if (from_a || forger->forged != 0 || !ndtest_packet_read(frame, *bytes, NETDAM_UDP_PORT, &packet) ||
        packet.opcode != NETDAM_OP_READ) {
        return true;
    }
    for (size_t bit = 42 * 8; bit < *bytes * 8; bit++) {
        memcpy(changed, frame, *bytes);
        changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (bit / 8 < 42 + 28 || bit / 8 >= 42 + 32) {
            (void)ndtest_frame_repair(changed, *bytes, false);
        }
        unit_receive(&wire.a, changed, *bytes);
        unit_expect_no_completion(forger->queue);
        forger->forged++;
    }
    for (unsigned n = 0; n < 4; n++) {
        static const struct tenant_key wrong = {TENANT_ID, NETDAM_TENANT_MODE_ENCRYPT, "guessed guessed"};
        struct unit_answer answer = {.length = 8, .payload_length = 8, .status = n < 2 ? 0 : NETDAM_STATUS_BAD_KEY};
        struct tenant_sender sender = {.tenant = n % 2 == 0 ? &tenant_other : &wrong, .salt = {9}};
        size_t made;

        packet.opcode = NETDAM_OP_READ;
        made = unit_answer_frame(changed, 1, &packet, &answer);
        unit_receive(&wire.a, changed, made);
        made = tenant_seal(changed, made - NETDAM_CRC_BYTES, &sender);
        unit_receive(&wire.a, changed, made);
        unit_expect_no_completion(forger->queue);
    }
    return true;
}

static void forged_answer_is_not_taken(void **state)
{
    static const struct tenant_key *const tenants[] = {&tenant_plain, &tenant_secret};

    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct scene scene = stage(tenants[t], tenants[t], 4, NULL);
        struct forger forger = {.tenant = tenants[t], .queue = &scene.queue};

        assert_int_equal(tenant_set(&wire.a, &tenant_other), NETDAM_ADMIN_STATUS_OK);
        wire.tap = forge;
        wire.opaque = &forger;
        post(&scene, NETDAM_OP_READ, KEY, 8);
        tenant_wire_run(&wire, UNIT_MS);
        assert_true(forger.forged > 100 * 8);
        unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
        assert_memory_equal(wire.a.node.memory + SOURCE, wire.b.node.memory + REGION, 8);
        assert_true(unit_counter(&wire.a, NETDAM_COUNTER_RX_TENANT) >= forger.forged / 2);
        assert_true(unit_counter(&wire.a, NETDAM_COUNTER_RESPONSES_UNMATCHED) >= 4);
        tenant_wire_stop(&wire);
    }
}

/* What a capture shows. */
struct listener {
    bool saw_text;
    bool saw_crc;
    size_t longest;
};

static bool listen_to(void *opaque, bool from_a, uint8_t *frame, size_t *bytes)
{
    struct listener *listener = opaque;

    (void)from_a;
    for (size_t i = 0; i + 16 <= *bytes; i++) {
        listener->saw_text |= memcmp(frame + i, "do not read this", 16) == 0;
    }
    listener->saw_crc |= (frame[42 + 3] & NETDAM_FLAG_PAYLOAD_CRC) != 0;
    listener->longest = *bytes > listener->longest ? *bytes : listener->longest;
    return true;
}

static void only_encrypted_payload_is_hidden(void **state)
{
    static const struct tenant_key *const tenants[] = {NULL, &tenant_plain, &tenant_secret};

    (void)state;
    for (size_t t = 0; t < ARRAY_SIZE(tenants); t++) {
        struct scene scene = stage(tenants[t], tenants[t], 4, NULL);
        struct listener listener = {0};
        uint64_t key = tenants[t] != NULL ? KEY : OPEN;

        wire.tap = listen_to;
        wire.opaque = &listener;
        memcpy(wire.a.node.memory + SOURCE, "do not read this", 16);
        post(&scene, NETDAM_OP_WRITE, key, 16);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
        assert_int_equal(listener.saw_text, tenants[t] != &tenant_secret);
        assert_int_equal(listener.saw_crc, tenants[t] == NULL);
        listener.saw_text = false;
        post(&scene, NETDAM_OP_READ, key, 16);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
        assert_int_equal(listener.saw_text, tenants[t] != &tenant_secret);
        tenant_wire_stop(&wire);
    }
}

/* Payload gives way to the extension: a packet is never longer than the MTU, and full ones are as long as it. */
static void extension_counts_against_the_mtu(void **state)
{
    (void)state;
    for (unsigned family = 4; family <= 6; family += 2) {
        struct scene scene = stage(&tenant_secret, &tenant_secret, family, NULL);
        struct listener listener = {0};
        struct netdam_descriptor send = request(&scene, NETDAM_OP_SEND, 1, 1353);
        uint32_t most = family == 4 ? 1352 : 1336;

        wire.tap = listen_to;
        wire.opaque = &listener;
        post(&scene, NETDAM_OP_WRITE, KEY, 10000);
        post(&scene, NETDAM_OP_READ, KEY, 10000);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
        unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
        assert_int_equal(wire.a.fw->peers[scene.peer].payload_max, most);
        assert_int_equal(listener.longest, (family == 4 ? 154u : 174u) + most);
        assert_true(listener.longest <= NETDAM_ETHERNET_BYTES + NETDAM_MTU_MIN);
        send.length = most + 1;
        unit_post(&wire.a, &scene.queue, &send);
        send.length = most - 7;
        send.flags = NETDAM_DESCRIPTOR_IMMEDIATE;
        unit_post(&wire.a, &scene.queue, &send);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&scene.queue, NETDAM_OP_SEND, NETDAM_STATUS_LOCAL_DESCRIPTOR);
        unit_expect_completion(&scene.queue, NETDAM_OP_SEND, NETDAM_STATUS_LOCAL_DESCRIPTOR);
        tenant_wire_stop(&wire);
    }
}

/* A queue pair takes the messages of its tenant, and immediates of its tenant's regions. */
static void message_needs_the_pairs_tenant(void **state)
{
    (void)state;
    for (unsigned owner = 0; owner < 3; owner++) {
        static const uint32_t owners[] = {TENANT_ID, TENANT_OTHER, 0};
        struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);
        uint64_t args[] = {
            0x90000, 1, 0x91000, 2, 0x92000, 1, (uint64_t)NETDAM_VECTOR_NONE << 16 | (uint64_t)owners[owner] << 32, 0};
        uint64_t region[] = {REGION, LENGTH, NETDAM_PERMISSION_ALL, KEY + 50, TENANT_ID, 1};
        uint64_t results[NETDAM_ADMIN_RESULTS];
        struct netdam_descriptor buffer = {.user_data = 99, .length = 64};
        struct ndtest_queue pair;

        assert_int_equal(unit_admin(&wire.b, NETDAM_ADMIN_QUEUE_CREATE, args, 8, results), NETDAM_ADMIN_STATUS_OK);
        pair = (struct ndtest_queue){.node = &wire.b.node,
                                     .rq_base = args[4],
                                     .rq_log2 = 1,
                                     .cq_base = args[2],
                                     .cq_log2 = 2,
                                     .id = (uint32_t)results[0]};
        buffer.local_region = tenant_region(&wire.b, SOURCE, LENGTH, 0, owners[owner]);
        assert_true(ndtest_queue_post_receive(&pair, &buffer));
        post(&scene, NETDAM_OP_SEND, results[1], 16);
        tenant_wire_run(&wire, UNIT_MS);
        unit_expect_completion(&scene.queue, NETDAM_OP_SEND, owner == 0 ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_KEY);
        assert_int_equal(ndtest_queue_ready(&pair), owner == 0);
        assert_int_equal(memcmp(wire.b.node.memory + SOURCE, wire.a.node.memory + SOURCE, 16) == 0, owner == 0);
        assert_int_equal(unit_admin(&wire.b, NETDAM_ADMIN_REGION_CREATE, region, 6, NULL),
                         owner == 0 ? NETDAM_ADMIN_STATUS_OK : NETDAM_ADMIN_STATUS_BAD_ARGUMENT);
        tenant_wire_stop(&wire);
    }
}

/* Counters start anew at each reset, and at each TENANT_SET: the watch fails the test if a nonce came twice. */
static void no_nonce_is_used_twice(void **state)
{
    (void)state;
    tenant_watch_start();
    tenant_start(&wire.a, 0, NULL);
    for (unsigned reset = 0; reset < 1000; reset++) {
        uint32_t peer;

        tenant_restart(&wire.a);
        for (unsigned set = 0; set < 2; set++) {
            assert_int_equal(tenant_set(&wire.a, reset % 2 == 0 ? &tenant_secret : &tenant_plain),
                             NETDAM_ADMIN_STATUS_OK);
            assert_int_equal(tenant_set(&wire.a, &tenant_other), NETDAM_ADMIN_STATUS_OK);
            for (unsigned n = 0; n < 2; n++) {
                peer = tenant_peer(&wire.a, 4, n == 0 ? TENANT_ID : TENANT_OTHER);
                assert_true(ndfw_send_confirm(wire.a.fw, &wire.a.fw->peers[peer], &wire.a.fw->peers[peer], 0, 0));
                assert_true(ndfw_send_confirm(wire.a.fw, &wire.a.fw->peers[peer], &wire.a.fw->peers[peer], 0, 0));
            }
        }
        unit_drop_sent(&wire.a);
    }
    assert_int_equal(tenant_watch_sealed(), 1000 * 2 * 2 * 2);
    unit_stop(&wire.a);
}

/* After the last counter there is another salt, which the other end takes for another sender. */
static void last_counter_brings_a_new_salt(void **state)
{
    struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);
    uint8_t salt[16];

    (void)state;
    post(&scene, NETDAM_OP_WRITE, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    memcpy(salt, wire.a.fw->tenants[0].salt, sizeof(salt));
    wire.a.fw->tenants[0].counter = UINT64_MAX - 1;
    post(&scene, NETDAM_OP_WRITE, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    assert_memory_equal(salt, wire.a.fw->tenants[0].salt, sizeof(salt));
    post(&scene, NETDAM_OP_WRITE, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    assert_memory_not_equal(salt, wire.a.fw->tenants[0].salt, sizeof(salt));
    assert_true(wire.a.fw->tenants[0].counter < 10);
    for (unsigned n = 0; n < 3; n++) {
        unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
    }
    assert_int_equal(unit_counter(&wire.b, NETDAM_COUNTER_TENANT_SENDERS), 2);
    tenant_wire_stop(&wire);
}

/* What cannot be sealed leaves without payload and without a tag that anybody takes. */
static void what_cannot_be_sealed_gives_nothing_away(void **state)
{
    struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);
    struct listener listener = {0};

    (void)state;
    post(&scene, NETDAM_OP_WRITE, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
    wire.tap = listen_to;
    wire.opaque = &listener;
    memcpy(wire.a.node.memory + SOURCE, "do not read this", 16);
    wire.a.fw->tenants[0].counter = UINT64_MAX; /* a new salt is due as well */
    tenant_watch_fail(true);
    post(&scene, NETDAM_OP_WRITE, KEY, 16);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_no_completion(&scene.queue);
    assert_int_equal(listener.longest, 170);
    assert_false(listener.saw_text);
    tenant_watch_fail(false);
    tenant_wire_run(&wire, 1000 * UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
    tenant_wire_stop(&wire);
}

/* Both ends get a new key, one after the other: what is under way in between is sent again under the new one. */
static void new_key_takes_over(void **state)
{
    static const struct tenant_key renewed = {TENANT_ID, NETDAM_TENANT_MODE_AUTHENTICATE, "the second key!"};
    struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);

    (void)state;
    post(&scene, NETDAM_OP_READ, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
    assert_int_equal(tenant_set(&wire.b, &renewed), NETDAM_ADMIN_STATUS_OK);
    post(&scene, NETDAM_OP_READ, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_no_completion(&scene.queue);
    assert_int_equal(tenant_set(&wire.a, &renewed), NETDAM_ADMIN_STATUS_OK);
    tenant_wire_run(&wire, 1000 * UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
    assert_true(unit_counter(&wire.b, NETDAM_COUNTER_RX_TENANT) != 0);
    tenant_wire_stop(&wire);
}

/* A node is its own peer too. */
static void loopback_is_sealed_as_well(void **state)
{
    struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);
    const uint64_t args[] = {0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16 | (uint64_t)TENANT_ID << 32};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    (void)state;
    (void)tenant_region(&wire.a, REGION, LENGTH, KEY, TENANT_ID);
    assert_int_equal(unit_admin(&wire.a, NETDAM_ADMIN_PEER_OPEN, args, 3, results), NETDAM_ADMIN_STATUS_OK);
    scene.peer = (uint32_t)results[0];
    post(&scene, NETDAM_OP_WRITE, KEY, 3000);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_WRITE, NETDAM_STATUS_OK);
    assert_memory_equal(wire.a.node.memory + REGION, wire.a.node.memory + SOURCE, 3000);
    assert_int_equal(unit_counter(&wire.a, NETDAM_COUNTER_TENANT_SENDERS), 1);
    tenant_wire_stop(&wire);
}

static void commands_check_their_arguments(void **state)
{
    static const struct {
        enum netdam_admin command;
        uint64_t args[8];
        enum netdam_admin_status status;
    } rows[] = {
        {NETDAM_ADMIN_TENANT_SET, {0, 1, 2, 1}, NETDAM_ADMIN_STATUS_BAD_ARGUMENT},
        {NETDAM_ADMIN_TENANT_SET, {UINT64_C(1) << 32, 1, 2, 1}, NETDAM_ADMIN_STATUS_BAD_ARGUMENT},
        {NETDAM_ADMIN_TENANT_SET, {1, 1, 2, 3}, NETDAM_ADMIN_STATUS_BAD_ARGUMENT},
        {NETDAM_ADMIN_TENANT_SET, {1, 1, 2, UINT64_C(1) << 32}, NETDAM_ADMIN_STATUS_BAD_ARGUMENT},
        {NETDAM_ADMIN_TENANT_SET, {1, 1, 2, 0}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_TENANT_SET, {1, 1, 2, 1}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {UINT32_MAX, 3, 4, 2}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {3, 1, 2, 1}, NETDAM_ADMIN_STATUS_NO_SPACE},
        {NETDAM_ADMIN_TENANT_SET, {1, 5, 6, 2}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_REGION_CREATE, {0, 64, 0x1f, 10, 1}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_REGION_CREATE, {0, 64, 0x1f, 10, 0}, NETDAM_ADMIN_STATUS_EXISTS}, /* whoever's it is */
        {NETDAM_ADMIN_REGION_CREATE, {0, 64, 0x1f, 11, 3}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_REGION_CREATE, {0, 64, 0x1f, 11, UINT64_C(1) << 32 | 1}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_TENANT_SET, {1, 0, 0, 0}, NETDAM_ADMIN_STATUS_EXISTS},
        {NETDAM_ADMIN_REGION_DESTROY, {0}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, UINT64_C(0x303e70004)}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_PEER_OPEN, {0x0a000002, 0, UINT64_C(0x103e70004)}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {1, 0, 0, 0}, NETDAM_ADMIN_STATUS_EXISTS},
        {NETDAM_ADMIN_PEER_CLOSE, {0}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_QUEUE_CREATE, {0, 1, 0x1000, 1, 0, 0, UINT64_C(0x3ffff0000), 0}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_QUEUE_CREATE, {0, 1, 0x1000, 1, 0, 0, UINT64_C(0x1ffff0000), 0}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {1, 0, 0, 0}, NETDAM_ADMIN_STATUS_EXISTS},
        {NETDAM_ADMIN_QUEUE_DESTROY, {0}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {1, 0, 0, 0}, NETDAM_ADMIN_STATUS_OK},
        {NETDAM_ADMIN_TENANT_SET, {1, 0, 0, 0}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_REGION_CREATE, {0, 64, 0x1f, 11, 1}, NETDAM_ADMIN_STATUS_NO_SUCH},
        {NETDAM_ADMIN_TENANT_SET, {3, 1, 2, 1}, NETDAM_ADMIN_STATUS_OK},
    };
    struct netdam_fw_config config = unit_config(0);

    (void)state;
    config.tenants = 2;
    tenant_watch_start();
    tenant_start(&wire.a, 0, &config);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (unit_admin(&wire.a, rows[i].command, rows[i].args, 8, NULL) != rows[i].status) {
            fail_msg("row %zu", i);
        }
        if (rows[i].command == NETDAM_ADMIN_TENANT_SET) {
            assert_true(ndtest_node_register(&wire.a.node, NETDAM_REG_ADMIN_ARG0) == rows[i].args[0]);
            assert_true(ndtest_node_register(&wire.a.node, NETDAM_REG_ADMIN_ARG1) == 0);
            assert_true(ndtest_node_register(&wire.a.node, NETDAM_REG_ADMIN_ARG2) == 0);
        }
    }
    unit_stop(&wire.a);
}

/* No key is left behind: not of a tenant that is gone, nor where its number was. */
static void removed_key_is_nowhere(void **state)
{
    struct tenant_key gone = tenant_other;
    size_t found = 0;

    (void)state;
    tenant_watch_start();
    tenant_start(&wire.a, 0, NULL);
    assert_int_equal(tenant_set(&wire.a, &gone), NETDAM_ADMIN_STATUS_OK);
    gone.mode = NETDAM_TENANT_MODE_NONE;
    assert_int_equal(tenant_set(&wire.a, &gone), NETDAM_ADMIN_STATUS_OK);
    for (size_t i = 0; i + 8 <= wire.a.node.state_bytes; i++) {
        found += memcmp((const uint8_t *)wire.a.node.state + i, gone.key, 8) == 0;
    }
    assert_int_equal(found, 0);
    unit_stop(&wire.a);
}

static void without_cryptography_there_are_no_tenants(void **state)
{
    struct unit *u = &wire.a;
    struct tenant_sender sender = {.tenant = &tenant_plain};
    const struct unit_request echo = {.opcode = NETDAM_OP_ECHO};
    uint8_t frame[UNIT_FRAME_ROOM];

    (void)state;
    tenant_watch_start();
    unit_start(u, 0, NULL);
    assert_int_equal(tenant_set(u, &tenant_plain), NETDAM_ADMIN_STATUS_UNSUPPORTED);
    unit_receive(u, frame, tenant_request_frame(frame, 1, &echo, &sender));
    unit_expect_silence(u);
    assert_int_equal(unit_counter(u, NETDAM_COUNTER_RX_TENANT), 1);
    unit_stop(u);
}

/* The platform may fail: nothing has changed then, and the old key goes on. */
static void failed_set_changes_nothing(void **state)
{
    static const struct tenant_key renewed = {TENANT_ID, NETDAM_TENANT_MODE_AUTHENTICATE, "the second key!"};
    static const struct tenant_key third = {3, NETDAM_TENANT_MODE_AUTHENTICATE, "a third tenant!"};
    struct scene scene = stage(&tenant_secret, &tenant_secret, 4, NULL);

    (void)state;
    tenant_watch_fail(true);
    assert_int_equal(tenant_set(&wire.a, &renewed), NETDAM_ADMIN_STATUS_NO_SPACE);
    assert_int_equal(tenant_set(&wire.a, &third), NETDAM_ADMIN_STATUS_NO_SPACE);
    tenant_watch_fail(false);
    post(&scene, NETDAM_OP_READ, KEY, 8);
    tenant_wire_run(&wire, UNIT_MS);
    unit_expect_completion(&scene.queue, NETDAM_OP_READ, NETDAM_STATUS_OK);
    assert_null(ndfw_tenant_find(wire.a.fw, 3));
    tenant_wire_stop(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seals_as_known_answers_say),
        cmocka_unit_test(derives_as_known_answers_say),
        cmocka_unit_test(right_key_does_everything),
        cmocka_unit_test(wrong_key_does_nothing),
        cmocka_unit_test(forged_answer_is_not_taken),
        cmocka_unit_test(only_encrypted_payload_is_hidden),
        cmocka_unit_test(extension_counts_against_the_mtu),
        cmocka_unit_test(message_needs_the_pairs_tenant),
        cmocka_unit_test(no_nonce_is_used_twice),
        cmocka_unit_test(last_counter_brings_a_new_salt),
        cmocka_unit_test(what_cannot_be_sealed_gives_nothing_away),
        cmocka_unit_test(new_key_takes_over),
        cmocka_unit_test(loopback_is_sealed_as_well),
        cmocka_unit_test(commands_check_their_arguments),
        cmocka_unit_test(removed_key_is_nowhere),
        cmocka_unit_test(without_cryptography_there_are_no_tenants),
        cmocka_unit_test(failed_set_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
