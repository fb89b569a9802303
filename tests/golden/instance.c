/* SPDX-License-Identifier: BSD-3-Clause */
/* A firmware instance as the manifest describes it. */
#include "instance.h"

const char *golden_directory = "tests/golden";

static uint8_t *transmit_begin(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    return instance->count < FRAMES_MAX && bytes <= FRAME_BYTES ? instance->frames[instance->count] : NULL;
}

static void transmit_end(void *opaque, size_t bytes)
{
    struct instance *instance = opaque;

    instance->bytes[instance->count++] = bytes;
}

static void interrupt(void *opaque, unsigned vector)
{
    (void)opaque;
    (void)vector;
}

/* Every draw yields the same: the epoch or a receive key of the manifest's node, or the context of its requester. */
static void entropy(void *opaque, void *buffer, size_t bytes)
{
    const struct instance *instance = opaque;

    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)buffer)[i] = (uint8_t)(instance->entropy >> 8 * (i % 8));
    }
}

static void write_register(struct instance *instance, uint32_t offset, unsigned bytes, uint64_t value)
{
    (void)instance->ops->register_write(instance->state, offset, bytes, value, NOW_NS);
}

uint64_t instance_command(struct instance *instance, enum netdam_admin command_, const uint64_t *arguments,
                          unsigned count)
{
    for (unsigned i = 0; i < NETDAM_ADMIN_ARGS; i++) {
        write_register(instance, NETDAM_REG_ADMIN_ARG0 + 8 * i, 8, i < count ? arguments[i] : 0);
    }
    write_register(instance, NETDAM_REG_ADMIN_COMMAND, 4, command_);
    assert_int_equal(instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_STATUS, 4), NETDAM_ADMIN_STATUS_OK);
    return instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_RESULT0, 8);
}

/* The region number `index`; `queue`: the queue pair that gets the immediates, plus 1, or 0. */
static void create_region(struct instance *instance, unsigned index, uint64_t permissions, uint64_t key, uint64_t queue)
{
    const uint64_t arguments[] = {
        REGIONS_BASE + (uint64_t)index * REGION_BYTES, REGION_BYTES, permissions, key, 0, queue};

    assert_int_equal(instance_command(instance, NETDAM_ADMIN_REGION_CREATE, arguments, 6), index);
}

static void create_pair(struct instance *instance, unsigned index, uint64_t receive_key)
{
    const uint64_t base = PAIR_BASE(index);
    const uint64_t arguments[] = {
        base, PAIR_LOG2, base + PAIR_CQ, PAIR_LOG2, base + PAIR_RQ, PAIR_LOG2, (uint64_t)NETDAM_VECTOR_NONE << 16};
    const uint64_t before = instance->entropy;

    instance->entropy = receive_key;
    assert_int_equal(instance_command(instance, NETDAM_ADMIN_QUEUE_CREATE, arguments, 7), index);
    instance->entropy = before;
    assert_true(instance->ops->register_read(instance->state, NETDAM_REG_ADMIN_RESULT1, 8) == receive_key);
}

static void post_buffer(struct instance *instance, unsigned pair)
{
    struct netdam_ring *ring = (void *)(instance->memory + PAIR_BASE(pair) + PAIR_RQ);
    const struct netdam_descriptor descriptor = {
        .user_data = BUFFER_USER_DATA,
        .length = BUFFER_BYTES,
        .local_region = 0,
        .u.buffer.local_address = BUFFER_ADDRESS,
    };

    memcpy(ring + 1, &descriptor, sizeof(descriptor));
    ring->producer++;
}

/* The link-layer address of a node of the manifest. */
void instance_set_neighbour(struct instance *instance, uint8_t last_byte, unsigned family)
{
    const uint64_t arguments[] = {family == 6 ? UINT64_C(0xfd00000000000000) : UINT64_C(0x0a000000) + last_byte,
                                  family == 6 ? last_byte : 0, family, UINT64_C(0x020000000000) + last_byte};

    (void)instance_command(instance, NETDAM_ADMIN_NEIGHBOUR_SET, arguments, 4);
}

/* The node of the manifest, with last byte 3 the next of a chain, or with last byte 1 the requester. */
void instance_start(struct instance *instance, uint8_t last_byte)
{
    struct netdam_fw_config config = {
        .paths = 1,
        .abi_version = NETDAM_FW_ABI_VERSION,
        .memory = instance->memory,
        .memory_bytes = MEMORY_BYTES,
        .mac = {2, 0, 0, 0, 0, last_byte},
        .ipv4 = {10, 0, 0, last_byte},
        .ipv4_prefix = 24,
        .ipv6 = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last_byte},
        .peers = 4,
        .lanes = 64,
        .lane_windows = 8,
        .operations = 16,
        .first_number = instance->first_number,
    };
    struct netdam_fw_platform platform = {
        .opaque = instance,
        .transmit_begin = transmit_begin,
        .transmit_end = transmit_end,
        .interrupt = interrupt,
        .entropy = entropy,
    };
    const char *error = NULL;
    size_t bytes;

    for (size_t i = 0; i < MEMORY_BYTES; i++) {
        instance->memory[i] = (uint8_t)i;
    }
    instance->count = 0;
    bytes = instance->ops->state_bytes(&config, &error);
    assert_null(error);
    if (instance->state == NULL) {
        instance->state = aligned_alloc(64, (bytes + 63) / 64 * 64);
        assert_non_null(instance->state);
    }
    instance->ops->start(instance->state, &config, &platform, NOW_NS);
    if (last_byte != 1) {
        for (uint8_t other = 1; other <= 3; other++) {
            instance_set_neighbour(instance, other, 4);
            instance_set_neighbour(instance, other, 6);
        }
        create_pair(instance, 0, KEY_RECEIVE);
        create_pair(instance, 1, KEY_NO_READY);
    }
    create_region(instance, 0, NETDAM_PERMISSION_ALL, KEY_ALL, last_byte != 1 ? 1 : 0);
    create_region(instance, 1, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE, KEY_NO_ALU, 0);
    create_region(instance, 2, NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_ALU, KEY_NO_WRITE, 0);
    if (last_byte != 1) {
        post_buffer(instance, 0);
    }
    memcpy(instance->before, instance->memory, MEMORY_BYTES);
}

void instance_receive(struct instance *instance, const uint8_t *frame, size_t bytes)
{
    /* A copy of exactly this size, so that a sanitizer sees every byte read too much. */
    uint8_t *copy = malloc(bytes);

    assert_non_null(copy);
    memcpy(copy, frame, bytes);
    instance->ops->receive(instance->state, copy, bytes, NOW_NS);
    free(copy);
}

/* Where the NetDAM header begins in a well-formed frame. */
size_t golden_header_at(const uint8_t *frame)
{
    return (frame[12] == 0x08 ? NETDAM_IPV4_BYTES : NETDAM_IPV6_BYTES) + NETDAM_ETHERNET_BYTES + NETDAM_UDP_BYTES;
}

/* The frame number `at` that was sent, compared with a golden one; says what differs. */
bool instance_sent(const struct instance *instance, const char *name, unsigned at)
{
    static uint8_t expected[FRAME_BYTES];
    size_t bytes = golden_load(golden_directory, name, expected, sizeof(expected));

    if (at >= instance->count || bytes == 0 || instance->bytes[at] != bytes) {
        print_error("%s: frame %u of %u has %zu bytes, not %zu\n", name, at, instance->count,
                    at < instance->count ? instance->bytes[at] : (size_t)0, bytes);
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (instance->frames[at][i] != expected[i]) {
            print_error("%s: byte %zu is %02x, not %02x\n", name, i, instance->frames[at][i], expected[i]);
            return false;
        }
    }
    return true;
}
