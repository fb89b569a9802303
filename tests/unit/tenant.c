/* SPDX-License-Identifier: BSD-3-Clause */
/* Cryptography that is watched, two nodes on one wire, and frames sealed by hand, from the specification. */
#include "tenant.h"

#include "crypto.h"

const struct tenant_key tenant_plain = {TENANT_ID, NETDAM_TENANT_MODE_AUTHENTICATE, "0123456789abcde"};
const struct tenant_key tenant_secret = {TENANT_ID, NETDAM_TENANT_MODE_ENCRYPT, "0123456789abcde"};
const struct tenant_key tenant_other = {TENANT_OTHER, NETDAM_TENANT_MODE_ENCRYPT, "another tenant!"};

#define SLOTS_MAX  1024u
#define SEALED_MAX 65536u
/* The tests' own slot, which no firmware uses. */
#define OWN_SLOT (SLOTS_MAX - 1)

struct use {
    uint8_t key[16];
    uint8_t nonce[12];
};

static struct {
    const struct netdam_fw_crypto *library;
    uint8_t keys[2][SLOTS_MAX][16];
    struct use *sealed; /* open addressing; a nonce of zeros means: free */
    size_t count;
    bool fails;
} watch;

static uint8_t (*keys_of(void *opaque))[16]
{
    return watch.keys[(uintptr_t)opaque];
}

/* Each node has slots of its own at the library. */
static uint32_t library_slot(void *opaque, uint32_t slot)
{
    assert_true(slot < SLOTS_MAX);
    return slot + (uint32_t)(uintptr_t)opaque * SLOTS_MAX;
}

static bool watched_derive(void *opaque, const uint8_t *key, size_t key_bytes, const uint8_t *salt, size_t salt_bytes,
                           const uint8_t *info, size_t info_bytes, uint8_t out[16])
{
    (void)opaque;
    return !watch.fails &&
           watch.library->derive(watch.library->opaque, key, key_bytes, salt, salt_bytes, info, info_bytes, out);
}

static bool watched_set_key(void *opaque, uint32_t slot, const uint8_t key[16])
{
    uint32_t at = library_slot(opaque, slot);

    memcpy(keys_of(opaque)[slot], key, 16);
    return !watch.fails && watch.library->set_key(watch.library->opaque, at, key);
}

static void remember(const uint8_t key[16], const uint8_t nonce[12])
{
    struct use use;
    size_t at;

    memcpy(use.key, key, 16);
    memcpy(use.nonce, nonce, 12);
    at = ndtest_crc32c(0, &use, sizeof(use)) % SEALED_MAX;
    while (memcmp(watch.sealed[at].nonce, (uint8_t[12]){0}, 12) != 0) {
        if (memcmp(&watch.sealed[at], &use, sizeof(use)) == 0) {
            fail_msg("a nonce comes twice under one key");
        }
        at = (at + 1) % SEALED_MAX;
    }
    watch.sealed[at] = use;
    watch.count++;
    assert_true(watch.count < SEALED_MAX / 2);
}

static bool watched_seal(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                         size_t associated_bytes, uint8_t *text, size_t text_bytes, uint8_t tag[16])
{
    uint32_t at = library_slot(opaque, slot);

    if (watch.fails) {
        return false;
    }
    remember(keys_of(opaque)[slot], nonce);
    return watch.library->seal(watch.library->opaque, at, nonce, associated, associated_bytes, text, text_bytes, tag);
}

static bool watched_open(void *opaque, uint32_t slot, const uint8_t nonce[12], const uint8_t *associated,
                         size_t associated_bytes, const uint8_t *text, size_t text_bytes, const uint8_t tag[16],
                         uint8_t *out)
{
    return !watch.fails && watch.library->open(watch.library->opaque, library_slot(opaque, slot), nonce, associated,
                                               associated_bytes, text, text_bytes, tag, out);
}

void tenant_watch_start(void)
{
    if (watch.library == NULL) {
        watch.library = ndsim_crypto_open();
        watch.sealed = malloc(SEALED_MAX * sizeof(watch.sealed[0]));
    }
    if (watch.library == NULL) {
        fail_msg("built without cryptography: apt-get install libmbedtls-dev, then make clean");
    }
    memset(watch.sealed, 0, SEALED_MAX * sizeof(watch.sealed[0]));
    watch.count = 0;
    watch.fails = false;
}

size_t tenant_watch_sealed(void)
{
    return watch.count;
}

void tenant_watch_fail(bool fails)
{
    watch.fails = fails;
}

static const struct netdam_fw_crypto *watched(unsigned index)
{
    static struct netdam_fw_crypto crypto[2];

    crypto[index] = (struct netdam_fw_crypto){
        .opaque = (void *)(uintptr_t)index,
        .derive = watched_derive,
        .set_key = watched_set_key,
        .seal = watched_seal,
        .open = watched_open,
    };
    return &crypto[index];
}

void tenant_restart(struct unit *u)
{
    ndtest_node_start(&u->node, u->now_ns);
}

void tenant_start(struct unit *u, unsigned index, const struct netdam_fw_config *config)
{
    unit_start(u, index, config);
    u->node.platform.crypto = watched(index);
    u->node.entropy.state = 1000 + index; /* nodes draw different salts */
    tenant_restart(u);
}

static uint64_t get_be64(const uint8_t *from)
{
    netdam_be64 be;

    memcpy(&be, from, sizeof(be));
    return netdam_be64_get(be);
}

enum netdam_admin_status tenant_set(struct unit *u, const struct tenant_key *tenant)
{
    uint64_t args[] = {tenant->id, get_be64(tenant->key), get_be64(tenant->key + 8), tenant->mode};

    return unit_admin(u, NETDAM_ADMIN_TENANT_SET, args, 4, NULL);
}

uint32_t tenant_region(struct unit *u, uint64_t base, uint64_t bytes, uint64_t key, uint32_t tenant)
{
    uint64_t args[] = {base, bytes, NETDAM_PERMISSION_ALL, key, tenant};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(u, NETDAM_ADMIN_REGION_CREATE, args, 5, results), NETDAM_ADMIN_STATUS_OK);
    return (uint32_t)results[0];
}

uint32_t tenant_peer(struct unit *u, unsigned family, uint32_t tenant)
{
    uint64_t other = 1 - u->node.index;
    uint64_t neighbour[] = {family == 6 ? UINT64_C(0xfd) << 56 : 0x0a000001 + other, family == 6 ? other + 1 : 0,
                            family, UINT64_C(0x020000000001) + other};
    uint64_t peer[] = {neighbour[0], neighbour[1], family | (uint64_t)NETDAM_UDP_PORT << 16 | (uint64_t)tenant << 32};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    assert_int_equal(unit_admin(u, NETDAM_ADMIN_NEIGHBOUR_SET, neighbour, 4, results), NETDAM_ADMIN_STATUS_OK);
    assert_int_equal(unit_admin(u, NETDAM_ADMIN_PEER_OPEN, peer, 3, results), NETDAM_ADMIN_STATUS_OK);
    return (uint32_t)results[0];
}

void tenant_wire_start(struct tenant_wire *wire, const struct netdam_fw_config *config)
{
    memset(wire, 0, sizeof(*wire));
    tenant_watch_start();
    for (unsigned i = 0; i < 2; i++) {
        struct netdam_fw_config chosen = config != NULL ? *config : unit_config(i);
        struct netdam_fw_config own = unit_config(i);

        memcpy(chosen.mac, own.mac, sizeof(own.mac));
        memcpy(chosen.ipv4, own.ipv4, sizeof(own.ipv4));
        memcpy(chosen.ipv6, own.ipv6, sizeof(own.ipv6));
        tenant_start(i == 0 ? &wire->a : &wire->b, i, &chosen);
    }
}

void tenant_wire_stop(struct tenant_wire *wire)
{
    unit_stop(&wire->a);
    unit_stop(&wire->b);
}

static bool carry(struct tenant_wire *wire, struct unit *from, struct unit *to)
{
    const uint8_t *frame;
    size_t bytes;
    bool carried = false;

    while ((frame = unit_sent_frame(from, &bytes)) != NULL) {
        uint8_t *copy = malloc(bytes);

        memcpy(copy, frame, bytes);
        wire->passed++;
        carried = true;
        if (wire->tap == NULL || wire->tap(wire->opaque, from == &wire->a, copy, &bytes)) {
            unit_receive(to, copy, bytes);
        }
        free(copy);
    }
    return carried;
}

static void settle(struct tenant_wire *wire)
{
    bool carried;

    do {
        unit_run(&wire->a);
        unit_run(&wire->b);
        carried = carry(wire, &wire->a, &wire->b);
        carried |= carry(wire, &wire->b, &wire->a);
    } while (carried);
}

void tenant_wire_run(struct tenant_wire *wire, uint64_t ns)
{
    uint64_t end = wire->a.now_ns + ns;

    for (unsigned i = 0; i < 100000; i++) {
        uint64_t next;

        settle(wire);
        next = wire->a.result.next_ns < wire->b.result.next_ns ? wire->a.result.next_ns : wire->b.result.next_ns;
        if (next >= end) {
            wire->a.now_ns = wire->b.now_ns = end;
            settle(wire);
            return;
        }
        wire->a.now_ns = wire->b.now_ns = next > wire->a.now_ns ? next : wire->a.now_ns + 1;
    }
    fail_msg("the two do not come to rest");
}

/* Where things are in a frame of one segment or answer. */
struct place {
    bool six;
    size_t header;
    size_t extension;
    size_t payload;
    size_t payload_bytes;
};

static struct place find(const uint8_t *frame)
{
    struct place place = {.six = frame[12] == 0x86};
    const uint8_t *header;

    place.header = place.six ? 62 : 42;
    header = frame + place.header;
    place.extension = place.header + 32 + ((header[3] & NETDAM_FLAG_IMMEDIATE) != 0 ? 8u : 0u);
    place.payload = place.header + ((size_t)header[26] << 8 | header[27]);
    place.payload_bytes = (size_t)header[24] << 8 | header[25];
    return place;
}

/* Returns the bytes of `associated`. */
static size_t associate(const uint8_t *frame, const struct place *place, bool with_payload, uint8_t *associated)
{
    size_t header_bytes = place->payload - place->header;

    memset(associated, 0, 24);
    if (frame[place->header + 1] == NETDAM_KIND_REQUEST) {
        memcpy(associated, frame + (place->six ? 38 : 30), place->six ? 16 : 4);
        memcpy(associated + 16, frame + place->header - 6, 2);
    }
    memcpy(associated + 24, frame + place->header, header_bytes);
    memset(associated + 24 + 28, 0, 4);
    memset(associated + 24 + (place->extension - place->header) + 32, 0, 16);
    if (with_payload) {
        memcpy(associated + 24 + header_bytes, frame + place->payload, place->payload_bytes);
    }
    return 24 + header_bytes + (with_payload ? place->payload_bytes : 0);
}

static void own_key(const struct tenant_key *tenant, const uint8_t salt[16])
{
    uint8_t info[12] = {'N', 'e', 't', 'D', 'A', 'M', 1, tenant->mode, 0, 0, 0, (uint8_t)tenant->id};
    uint8_t key[16];

    assert_true(watch.library->derive(watch.library->opaque, tenant->key, 16, salt, 16, info, sizeof(info), key));
    assert_true(watch.library->set_key(watch.library->opaque, OWN_SLOT, key));
}

size_t tenant_seal(uint8_t *frame, size_t bytes, struct tenant_sender *sender)
{
    struct place place = find(frame);
    bool encrypts = sender->tenant->mode == NETDAM_TENANT_MODE_ENCRYPT;
    uint8_t associated[UNIT_FRAME_ROOM], nonce[12] = {0};
    netdam_be32 id = netdam_be32_make(sender->tenant->id);
    netdam_be64 counter = netdam_be64_make(++sender->counter);
    size_t associated_bytes;

    /* Between header, or immediate, and body. */
    memmove(frame + place.extension + TENANT_BYTES, frame + place.extension, bytes - place.extension);
    memset(frame + place.extension, 0, TENANT_BYTES);
    bytes += TENANT_BYTES;
    frame[place.header + 3] |= NETDAM_FLAG_TENANT;
    unit_put16(frame + place.header + 26, (unsigned)(place.payload - place.header + TENANT_BYTES));
    place.payload += TENANT_BYTES;
    memcpy(frame + place.extension, &id, 4);
    frame[place.extension + 4] = sender->tenant->mode;
    memcpy(frame + place.extension + 8, sender->salt, 16);
    memcpy(frame + place.extension + 24, &counter, 8);
    memcpy(nonce + 4, &counter, 8);
    own_key(sender->tenant, sender->salt);
    associated_bytes = associate(frame, &place, !encrypts, associated);
    assert_true(watch.library->seal(watch.library->opaque, OWN_SLOT, nonce, associated, associated_bytes,
                                    frame + place.payload, encrypts ? place.payload_bytes : 0,
                                    frame + place.extension + 32));
    ndtest_frame_repair(frame, bytes, true);
    return bytes;
}

size_t tenant_request_frame(uint8_t *frame, unsigned from, const struct unit_request *request,
                            struct tenant_sender *sender)
{
    struct unit_request without = *request;

    without.no_crc = true;
    return tenant_seal(frame, unit_request_frame(frame, from, &without), sender);
}

bool tenant_open(uint8_t *frame, size_t bytes, const struct tenant_key *tenant)
{
    struct place place = find(frame);
    bool encrypts = tenant->mode == NETDAM_TENANT_MODE_ENCRYPT;
    uint8_t associated[UNIT_FRAME_ROOM], clear[UNIT_FRAME_ROOM], nonce[12] = {0};
    size_t associated_bytes, text_bytes = encrypts ? place.payload_bytes : 0;

    if ((frame[place.header + 3] & NETDAM_FLAG_TENANT) == 0 || place.payload + place.payload_bytes != bytes) {
        return false;
    }
    own_key(tenant, frame + place.extension + 8);
    memcpy(nonce + 4, frame + place.extension + 24, 8);
    associated_bytes = associate(frame, &place, !encrypts, associated);
    if (!watch.library->open(watch.library->opaque, OWN_SLOT, nonce, associated, associated_bytes,
                             frame + place.payload, text_bytes, frame + place.extension + 32, clear)) {
        return false;
    }
    memcpy(frame + place.payload, clear, text_bytes);
    return true;
}
