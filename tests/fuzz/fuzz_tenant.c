/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: tenants' frames. An input is a list of actions: frames with right tags, the same once more, changed, or
 * without tag; answers of the right tenant and of others. The target verifies each frame by itself: memory of a tenant
 * is touched only for a frame that proves that tenant, and for each such frame once.
 */
#include "fuzz.h"

#include "ndtest_crypto.h"

enum action {
    RAW,       /* length 2, bytes */
    SEALED,    /* tenant, salt, counter 2 (0: the next), length 2, bytes of a frame without tag */
    REPLAY,    /* which of those sealed last */
    TAMPER,    /* which, offset 2, value */
    STRIP,     /* which */
    ANSWER,    /* which request of the device, status, tenant, salt, patches, then offset and value each */
    TIME,      /* exponent */
    POST,      /* peer, opcode, operation, type, length 2, remote address 2, local address 2, flags, entries of a
                  transaction */
    CHANGE,    /* what */
    PORT_FULL, /* frames */
    RECEIVE,   /* length 2 */
    ACTION_COUNT,
};

#define USERS       3u /* two tenants, and who is of none */
#define SQ_BASE     0x0000u
#define CQ_BASE     0x2000u
#define RQ_BASE     0x3000u
#define REGION_BASE 0x4000u /* of each user one */
#define PART_BYTES  0x1000u
#define LOCAL_BASE  0xa000u /* of each user a part */
#define OWN_SLOT    (NDTEST_CRYPTO_SLOTS - 1)
#define KEPT        8u
#define SALTS       4u
#define PROVEN_MAX  256u
#define NOBODY      UINT32_MAX

static const struct {
    uint32_t id;
    uint8_t mode;
    uint64_t key[2];
} users[USERS] = {
    {7, NETDAM_TENANT_MODE_AUTHENTICATE, {1, 2}},
    {9, NETDAM_TENANT_MODE_ENCRYPT, {3, 4}},
    {0, NETDAM_TENANT_MODE_NONE, {0, 0}},
};

/* What a frame has proved, and once only. */
struct proof {
    uint32_t tenant;
    uint8_t salt[16];
    uint8_t counter[8];
};

static struct fuzz_device device;
static struct ndtest_crypto crypto;
static uint8_t kept[KEPT][FUZZ_FRAME_BYTES];
static size_t kept_bytes[KEPT];
static unsigned kept_count;
static uint64_t counters[SALTS];
static struct proof proven[PROVEN_MAX];
static unsigned proven_count;
/* Of the frame in hand. */
static bool receiving;
static struct proof claim; /* tenant NOBODY: proves nothing */
static bool touched;

static void put_key(uint8_t to[16], unsigned user)
{
    netdam_be64 be[2] = {netdam_be64_make(users[user].key[0]), netdam_be64_make(users[user].key[1])};

    memcpy(to, be, 16);
}

/* Where the tag of a packet lies. */
static size_t tag_at(const struct ndtest_packet *packet)
{
    return sizeof(struct netdam_wire_header) +
           ((packet->flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(struct netdam_wire_immediate) : 0u);
}

/* Prepares the key of a frame and what is authenticated of it; returns the bytes of the latter. */
static size_t associate(const uint8_t *frame, const struct ndtest_packet *packet, unsigned user, uint8_t *associated,
                        uint8_t nonce[12])
{
    struct netdam_wire_tenant tag;
    uint8_t info[12] = "NetDAM";
    uint8_t key[16], derived[16];
    bool six = frame[12] == 0x86;

    memcpy(&tag, packet->header + tag_at(packet), sizeof(tag));
    info[6] = NETDAM_WIRE_VERSION;
    info[7] = tag.mode;
    memcpy(info + 8, &tag.tenant, 4);
    put_key(key, user);
    crypto.calls.derive(&crypto, key, sizeof(key), tag.salt, sizeof(tag.salt), info, sizeof(info), derived);
    crypto.calls.set_key(&crypto, OWN_SLOT, derived);
    memset(nonce, 0, 4);
    memcpy(nonce + 4, &tag.counter, 8);
    memset(associated, 0, 24);
    if (packet->kind == NETDAM_KIND_REQUEST) {
        memcpy(associated, frame + (six ? 38 : 30), six ? 16 : 4);
        associated[16] = NETDAM_UDP_PORT >> 8;
        associated[17] = NETDAM_UDP_PORT & 0xff;
    }
    memcpy(associated + 24, packet->header, packet->header_bytes);
    memset(associated + 24 + offsetof(struct netdam_wire_header, header_crc), 0, 4);
    memset(associated + 24 + tag_at(packet) + offsetof(struct netdam_wire_tenant, tag), 0, 16);
    if (users[user].mode == NETDAM_TENANT_MODE_AUTHENTICATE) {
        memcpy(associated + 24 + packet->header_bytes, packet->payload, packet->payload_bytes);
        return 24 + packet->header_bytes + packet->payload_bytes;
    }
    return 24 + packet->header_bytes;
}

static size_t text_bytes(const struct ndtest_packet *packet, unsigned user)
{
    return users[user].mode == NETDAM_TENANT_MODE_ENCRYPT ? packet->payload_bytes : 0;
}

/* What a frame proves, as the specification has it. */
static struct proof verify(const uint8_t *frame, size_t bytes)
{
    static uint8_t associated[FUZZ_FRAME_BYTES], out[FUZZ_FRAME_BYTES];
    struct proof proof = {.tenant = NOBODY};
    struct netdam_wire_tenant tag;
    struct ndtest_packet packet;
    uint8_t nonce[12];

    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet)) {
        return proof;
    }
    if ((packet.flags & NETDAM_FLAG_TENANT) == 0) {
        proof.tenant = 0;
        return proof;
    }
    memcpy(&tag, packet.header + tag_at(&packet), sizeof(tag));
    for (unsigned user = 0; user < 2; user++) {
        if (netdam_be32_get(tag.tenant) == users[user].id && tag.mode == users[user].mode) {
            size_t count = associate(frame, &packet, user, associated, nonce);

            if (crypto.calls.open(&crypto, OWN_SLOT, nonce, associated, count, packet.payload,
                                  text_bytes(&packet, user), tag.tag, out)) {
                proof.tenant = users[user].id;
                memcpy(proof.salt, tag.salt, sizeof(proof.salt));
                memcpy(proof.counter, &tag.counter, sizeof(proof.counter));
            }
        }
    }
    return proof;
}

/* The part of memory that belongs to a user, or USERS. */
static unsigned user_of(uint64_t offset)
{
    if (offset >= REGION_BASE && offset < REGION_BASE + USERS * PART_BYTES) {
        return (unsigned)((offset - REGION_BASE) / PART_BYTES);
    }
    if (offset >= LOCAL_BASE && offset < LOCAL_BASE + USERS * PART_BYTES) {
        return (unsigned)((offset - LOCAL_BASE) / PART_BYTES);
    }
    return USERS;
}

static bool permits(uint64_t offset, uint64_t bytes)
{
    unsigned user = user_of(offset);

    (void)bytes;
    if (!receiving || user == USERS) {
        return true;
    }
    touched = true;
    return claim.tenant == users[user].id;
}

static void receive(const uint8_t *frame, size_t bytes)
{
    claim = verify(frame, bytes);
    for (unsigned i = 0; i < PROVEN_MAX && claim.tenant != 0; i++) {
        if (memcmp(&proven[i], &claim, sizeof(claim)) == 0) {
            claim.tenant = NOBODY;
        }
    }
    receiving = true;
    touched = false;
    fuzz_receive(&device, frame, bytes);
    receiving = false;
    if (touched && claim.tenant != 0) {
        proven[proven_count++ % PROVEN_MAX] = claim;
    }
}

static void replace(uint8_t *at, size_t bytes, uint64_t from, uint64_t to)
{
    netdam_be64 old = netdam_be64_make(from), new = netdam_be64_make(to);

    for (size_t i = 0; i + 8 <= bytes; i++) {
        if (memcmp(at + i, &old, 8) == 0) {
            memcpy(at + i, &new, 8);
        }
    }
}

/* Gives a frame that has none a tenant's tag. Returns its bytes, or 0 if it cannot have one. */
static size_t seal(uint8_t *frame, size_t bytes, unsigned user, unsigned salt, uint64_t counter)
{
    static uint8_t associated[FUZZ_FRAME_BYTES + 24];
    struct netdam_wire_tenant tag = {.tenant = netdam_be32_make(users[user].id), .mode = users[user].mode};
    struct ndtest_packet packet;
    uint8_t *header;
    uint8_t nonce[12];
    size_t at, count;

    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet) || (packet.flags & NETDAM_FLAG_TENANT) != 0 ||
        bytes + sizeof(tag) > FUZZ_FRAME_BYTES) {
        return 0;
    }
    header = frame + (packet.header - frame);
    bytes = (size_t)(packet.payload - frame) + packet.payload_bytes; /* the CRC goes */
    at = tag_at(&packet);
    tag.salt[0] = (uint8_t)(1 + salt);
    tag.counter = netdam_be64_make(counter != 0 ? counter : ++counters[salt]);
    memmove(header + at + sizeof(tag), header + at, bytes - (size_t)(header - frame) - at);
    memcpy(header + at, &tag, sizeof(tag));
    bytes += sizeof(tag);
    header[2] = (uint8_t)(packet.flags >> 8);
    header[3] = (uint8_t)((packet.flags & ~(unsigned)NETDAM_FLAG_PAYLOAD_CRC) | NETDAM_FLAG_TENANT);
    header[26] = (uint8_t)((packet.header_bytes + sizeof(tag)) >> 8);
    header[27] = (uint8_t)(packet.header_bytes + sizeof(tag));
    replace(header + sizeof(struct netdam_wire_header), packet.header_bytes + sizeof(tag) - 32, FUZZ_KEY_ALL,
            FUZZ_KEY_ALL + user);
    replace(header + sizeof(struct netdam_wire_header), packet.header_bytes + sizeof(tag) - 32, FUZZ_EPOCH << 32 | 1,
            device.generation);
    ndtest_frame_repair(frame, bytes, true);
    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet)) {
        return 0;
    }
    count = associate(frame, &packet, user, associated, nonce);
    crypto.calls.seal(&crypto, OWN_SLOT, nonce, associated, count, header + packet.header_bytes,
                      text_bytes(&packet, user), header + at + offsetof(struct netdam_wire_tenant, tag));
    ndtest_frame_repair(frame, bytes, true);
    return bytes;
}

/* The opposite: everything but the tag, and nobody's. */
static size_t strip(uint8_t *frame, size_t bytes)
{
    struct ndtest_packet packet;
    uint8_t *header, *tag;

    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet) || (packet.flags & NETDAM_FLAG_TENANT) == 0) {
        return 0;
    }
    header = frame + (packet.header - frame);
    tag = header + tag_at(&packet);
    header[3] = (uint8_t)(packet.flags & ~(unsigned)NETDAM_FLAG_TENANT);
    header[26] = (uint8_t)((packet.header_bytes - sizeof(struct netdam_wire_tenant)) >> 8);
    header[27] = (uint8_t)(packet.header_bytes - sizeof(struct netdam_wire_tenant));
    bytes -= sizeof(struct netdam_wire_tenant);
    memmove(tag, tag + sizeof(struct netdam_wire_tenant), bytes - (size_t)(tag - frame));
    ndtest_frame_repair(frame, bytes, true);
    return bytes;
}

static size_t take_kept(unsigned which, uint8_t *frame)
{
    unsigned place;

    if (kept_count == 0) {
        return 0;
    }
    place = (kept_count - 1 - which % (kept_count < KEPT ? kept_count : KEPT)) % KEPT;
    memcpy(frame, kept[place], kept_bytes[place]);
    return kept_bytes[place];
}

static void receive_sealed(struct fuzz_input *input, uint8_t *frame)
{
    unsigned user = fuzz_u8(input) % 2, salt = fuzz_u8(input) % SALTS;
    uint64_t counter = fuzz_uint(input, 2);
    size_t bytes = fuzz_uint(input, 2) % FUZZ_FRAME_BYTES;
    const uint8_t *at = fuzz_bytes(input, &bytes);

    memcpy(frame, at, bytes);
    ndtest_frame_repair(frame, bytes, true);
    bytes = seal(frame, bytes, user, salt, counter);
    if (bytes != 0) {
        memcpy(kept[kept_count % KEPT], frame, bytes);
        kept_bytes[kept_count++ % KEPT] = bytes;
        receive(frame, bytes);
    }
}

static void answer(struct fuzz_input *input, uint8_t *frame)
{
    unsigned which = fuzz_u8(input);
    uint8_t status = fuzz_u8(input);
    size_t bytes = fuzz_make_answer(&device, which, status, frame);
    unsigned user = fuzz_u8(input) % USERS, salt = fuzz_u8(input) % SALTS, patches = fuzz_u8(input) % 4;

    /* The flags of a request's answer are not the tenant's: it was made without tag. */
    bytes = bytes != 0 && user < 2 ? seal(frame, bytes, user, salt, 0) : bytes;
    for (unsigned i = 0; i < patches && bytes != 0; i++) {
        size_t offset = fuzz_u8(input) % bytes;

        frame[offset] = fuzz_u8(input);
        ndtest_frame_repair(frame, bytes, false);
    }
    if (bytes != 0) {
        receive(frame, bytes);
    }
}

static void post(struct ndtest_queue *queue, struct fuzz_input *input)
{
    struct netdam_descriptor d = {.local_region = USERS};
    struct netdam_completion completion;
    unsigned action;

    d.peer = fuzz_u8(input) % USERS;
    d.opcode = fuzz_u8(input);
    d.operation = fuzz_u8(input);
    d.type = fuzz_u8(input);
    d.length = (uint32_t)fuzz_uint(input, 2) & 0x7ff;
    d.remote_address = fuzz_uint(input, 2);
    d.u.operand[0] = fuzz_uint(input, 2);
    d.flags = fuzz_u8(input) & NETDAM_DESCRIPTOR_FLAGS_DEFINED & ~(unsigned)NETDAM_DESCRIPTOR_LIST;
    d.remote_key = d.opcode == NETDAM_OP_SEND ? FUZZ_KEY_RECEIVE : FUZZ_KEY_ALL + d.peer;
    if ((netdam_op_flags(d.opcode) & NETDAM_OPF_ATOMIC) != 0) {
        d.local_region = 0;
    } else {
        d.u.buffer.local_address = (d.u.buffer.local_address & 0x7f8) + d.peer * PART_BYTES;
    }
    if (d.opcode == NETDAM_OP_TRANSACTION) {
        fuzz_put_entries(&device, &d, LOCAL_BASE + d.u.buffer.local_address, fuzz_u8(input) & 0x3b);
    }
    while (ndtest_queue_poll(queue, &completion)) {
    }
    ndtest_queue_post(queue, &d, device.now_ns, &action);
}

static void set_tenant(unsigned user, bool forget)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {users[user].id, users[user].key[0], users[user].key[1],
                                        forget ? NETDAM_TENANT_MODE_NONE : users[user].mode};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(&device, NETDAM_ADMIN_TENANT_SET, args, results);
}

static void create_region(uint64_t base, uint64_t bytes, uint64_t key, uint32_t permissions, uint32_t tenant,
                          uint32_t queue)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {base, bytes, permissions, key, tenant, queue};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(&device, NETDAM_ADMIN_REGION_CREATE, args, results);
}

static void create_user_region(unsigned user)
{
    create_region(REGION_BASE + user * PART_BYTES, PART_BYTES, FUZZ_KEY_ALL + user, NETDAM_PERMISSION_ALL,
                  users[user].id, user == 0 ? 1 : 0);
}

static void open_peer(unsigned user)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {0x0a000001, 0, 4, UINT64_C(0x020000000001)};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    fuzz_admin(&device, NETDAM_ADMIN_NEIGHBOUR_SET, args, results);
    args[2] = 4 | (uint64_t)NETDAM_UDP_PORT << 16 | (uint64_t)users[user].id << 32;
    args[3] = 0;
    fuzz_admin(&device, NETDAM_ADMIN_PEER_OPEN, args, results);
}

static void change(unsigned what)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {(what >> 4) % USERS};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    switch (what & 7) {
    case 0:
    case 1:
        set_tenant(what & 1, false);
        break;
    case 2:
        set_tenant((what >> 4) % 2, true); /* refused while it is used */
        break;
    case 3:
        fuzz_admin(&device, NETDAM_ADMIN_REGION_DESTROY, args, results);
        create_user_region((what >> 4) % USERS);
        break;
    case 4:
        fuzz_admin(&device, NETDAM_ADMIN_PEER_CLOSE, args, results);
        break;
    default:
        open_peer((what >> 4) % USERS);
        break;
    }
}

static void post_receive(struct ndtest_queue *queue, struct fuzz_input *input)
{
    struct netdam_descriptor d = {.local_region = USERS, .length = (uint32_t)fuzz_uint(input, 2) & 0x7ff};

    d.u.buffer.local_address = PART_BYTES / 2; /* in the first tenant's part, as the queue pair is */
    ndtest_queue_post_receive(queue, &d);
}

static void open_all(struct ndtest_queue *queue)
{
    uint64_t args[NETDAM_ADMIN_ARGS] = {
        SQ_BASE, 4, CQ_BASE, 2, RQ_BASE, 3, (uint64_t)NETDAM_VECTOR_NONE << 16 | (uint64_t)users[0].id << 32, 0};
    uint64_t results[NETDAM_ADMIN_RESULTS];

    device.crypto = &crypto.calls;
    device.permits = permits;
    receiving = false;
    kept_count = proven_count = 0;
    memset(proven, 0, sizeof(proven));
    memset(counters, 0, sizeof(counters));
    ndtest_crypto_init(&crypto);
    fuzz_device_open(&device);
    set_tenant(0, false);
    set_tenant(1, false);
    fuzz_admin(&device, NETDAM_ADMIN_QUEUE_CREATE, args, results);
    for (unsigned user = 0; user < USERS; user++) {
        create_user_region(user);
    }
    create_region(LOCAL_BASE, USERS * PART_BYTES, FUZZ_KEY_ALL + USERS,
                  NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, 0, 0);
    for (unsigned user = 0; user < USERS; user++) {
        open_peer(user);
    }
    *queue = (struct ndtest_queue){.node = &device.node,
                                   .sq_base = SQ_BASE,
                                   .cq_base = CQ_BASE,
                                   .rq_base = RQ_BASE,
                                   .sq_log2 = 4,
                                   .cq_log2 = 2,
                                   .rq_log2 = 3,
                                   .id = (uint32_t)results[0],
                                   .open = true};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t frame[FUZZ_FRAME_BYTES];
    struct fuzz_input input = {data, size};
    struct ndtest_queue queue;

    device.shared_frames = (size & 1) != 0;
    open_all(&queue);
    while (input.left != 0) {
        size_t bytes = 0;
        const uint8_t *at;

        switch (fuzz_u8(&input) % ACTION_COUNT) {
        case RAW:
            bytes = fuzz_uint(&input, 2) % FUZZ_FRAME_BYTES;
            at = fuzz_bytes(&input, &bytes);
            memcpy(frame, at, bytes);
            ndtest_frame_repair(frame, bytes, true);
            break;
        case SEALED:
            receive_sealed(&input, frame);
            break;
        case REPLAY:
            bytes = take_kept(fuzz_u8(&input), frame);
            break;
        case TAMPER:
            bytes = take_kept(fuzz_u8(&input), frame);
            if (bytes != 0) {
                size_t offset = fuzz_uint(&input, 2) % bytes;

                frame[offset] ^= fuzz_u8(&input);
                ndtest_frame_repair(frame, bytes, false);
            }
            break;
        case STRIP:
            bytes = strip(frame, take_kept(fuzz_u8(&input), frame));
            break;
        case ANSWER:
            answer(&input, frame);
            break;
        case TIME:
            device.now_ns += UINT64_C(1) << fuzz_u8(&input) % 38;
            break;
        case POST:
            post(&queue, &input);
            break;
        case CHANGE:
            change(fuzz_u8(&input));
            break;
        case PORT_FULL:
            device.port_full = fuzz_u8(&input) % 8;
            break;
        default:
            post_receive(&queue, &input);
            break;
        }
        if (bytes != 0) {
            receive(frame, bytes);
        }
        fuzz_device_run(&device, 65536);
        fuzz_check(&device);
    }
    fuzz_device_close(&device);
    return 0;
}
