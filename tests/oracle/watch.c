/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the wire shows to somebody who reads all of it: that an acknowledged confirmation is a fence, that tenants'
 * payload cannot be read, and that who has no key is told nothing. And a stranger who sends what was captured once more,
 * changed, or without its tag.
 */
#include "oracle.h"

#include "ndtest_frame.h"

#define CAPTURED_MAX 32u
#define FLOORS_MAX   4096u /* a power of two, well above the contexts of a case */
#define FRAME_BYTES  4096u

struct captured {
    uint32_t node;
    uint32_t bytes;
    uint8_t frame[FRAME_BYTES];
};

/* A floor that a node has acknowledged. */
struct floor {
    uint64_t lane; /* 0: none in this place */
    uint64_t number;
};

struct watch {
    struct floor floors[FLOORS_MAX];
    struct captured captured[CAPTURED_MAX];
    uint32_t captured_count;
};

/* The tag of a packet, or zeros. */
static struct netdam_wire_tenant tenant_of(const struct ndtest_packet *packet)
{
    struct netdam_wire_tenant tenant = {0};

    if ((packet->flags & NETDAM_FLAG_TENANT) != 0) {
        memcpy(&tenant,
               packet->header + sizeof(struct netdam_wire_header) +
                   ((packet->flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(struct netdam_wire_immediate) : 0),
               sizeof(tenant));
    }
    return tenant;
}

static struct floor *floor_of(struct watch *watch, uint32_t node, const struct ndtest_packet *packet)
{
    /* One context has a lane for each tenant. */
    uint64_t lane = ndtest_mix(packet->context + node) ^ ndtest_mix(tenant_of(packet).tenant.b[3]);
    uint32_t place = (uint32_t)lane & (FLOORS_MAX - 1);

    lane |= UINT64_C(1) << 63;
    for (uint32_t i = 0; i < FLOORS_MAX; i++, place = (place + 1) & (FLOORS_MAX - 1)) {
        if (watch->floors[place].lane == lane || watch->floors[place].lane == 0) {
            watch->floors[place].lane = lane;
            return &watch->floors[place];
        }
    }
    return NULL;
}

static void watch_answer(struct world *world, uint32_t node, const struct ndtest_packet *packet)
{
    struct floor *floor;
    bool laneless = (packet->flags & (NETDAM_FLAG_RELAXED | NETDAM_FLAG_AGAIN)) != 0;

    if (packet->status != NETDAM_STATUS_OK ||
        (packet->opcode != NETDAM_OP_CONFIRM &&
         (laneless || (netdam_op_flags(packet->opcode) & NETDAM_OPF_MODIFIES) == 0))) {
        return;
    }
    floor = floor_of(world->watch, node, packet);
    if (floor == NULL) {
        return;
    }
    if (packet->opcode == NETDAM_OP_CONFIRM) {
        floor->number = packet->number > floor->number ? packet->number : floor->number;
    } else if (packet->number < floor->number) {
        fail(world, FAILURE_FENCE, "site %u executed number %llu of context 0x%llx after it had confirmed floor %llu",
             node, (unsigned long long)packet->number, (unsigned long long)packet->context,
             (unsigned long long)floor->number);
    }
}

/* What comes back is what was sent, or says how far the asker's own lane is. */
static bool says_nothing(unsigned opcode)
{
    return opcode == NETDAM_OP_ECHO || opcode == NETDAM_OP_FORWARD || opcode == NETDAM_OP_CONFIRM;
}

void watch_left(void *opaque, uint32_t node, const uint8_t *frame, uint32_t bytes, uint64_t now_ns)
{
    struct world *world = opaque;
    struct ndtest_packet packet;

    (void)now_ns;
    if (world->failure != FAILURE_NONE || !ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet)) {
        return;
    }
    if (packet.kind == NETDAM_KIND_RESPONSE) {
        watch_answer(world, node, &packet);
    }
    if ((packet.flags & NETDAM_FLAG_TENANT) != 0) {
        if (packet.kind == NETDAM_KIND_REQUEST && packet.opcode == NETDAM_OP_SEND &&
            tenant_of(&packet).mode == NETDAM_TENANT_MODE_ENCRYPT && message_is_readable(packet.payload)) {
            fail(world, FAILURE_SECRET, "site %u sent a message that everybody can read", node);
        }
    } else if (packet.kind == NETDAM_KIND_RESPONSE && world->tenants[0] != 0 && world->tenants[1] != 0 &&
               !says_nothing(packet.opcode) && (packet.payload_bytes != 0 || packet.status == NETDAM_STATUS_OK)) {
        fail(world, FAILURE_SECRET, "site %u answered who has no key: status 0x%02x, %u bytes", node, packet.status,
             packet.payload_bytes);
    }
}

/* Now and then a tenant's frame that reaches a node. */
void watch_reached(struct world *world, uint32_t node, const uint8_t *frame, uint32_t bytes)
{
    struct watch *watch = world->watch;
    struct captured *captured;
    struct ndtest_packet packet;

    if ((world->tenants[0] == 0 && world->tenants[1] == 0) || bytes > FRAME_BYTES || world->net.delivered % 5 != 0 ||
        !ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet) || (packet.flags & NETDAM_FLAG_TENANT) == 0) {
        return;
    }
    captured = &watch->captured[watch->captured_count++ % CAPTURED_MAX];
    captured->node = node;
    captured->bytes = bytes;
    memcpy(captured->frame, frame, bytes);
}

void watch_init(struct world *world)
{
    world->watch = world_allocate(world, sizeof(*world->watch));
}

/* Takes the tag out, and says that there is none. */
static uint32_t strip(uint8_t *frame, uint32_t bytes)
{
    const uint32_t tag = sizeof(struct netdam_wire_tenant);
    struct ndtest_packet packet;
    struct netdam_wire_header header;
    uint32_t header_at, tag_at;

    if (!ndtest_packet_read(frame, bytes, NETDAM_UDP_PORT, &packet)) {
        return 0;
    }
    header_at = (uint32_t)(packet.header - frame);
    memcpy(&header, packet.header, sizeof(header));
    tag_at = header_at + (uint32_t)sizeof(header) +
             ((packet.flags & NETDAM_FLAG_IMMEDIATE) != 0 ? (uint32_t)sizeof(struct netdam_wire_immediate) : 0);
    if (tag_at + tag > bytes) {
        return 0;
    }
    header.flags = netdam_be16_make((uint16_t)(packet.flags & ~(unsigned)NETDAM_FLAG_TENANT));
    header.header_length = netdam_be16_make((uint16_t)(netdam_be16_get(header.header_length) - tag));
    memcpy(frame + header_at, &header, sizeof(header));
    memmove(frame + tag_at, frame + tag_at + tag, bytes - tag_at - tag);
    return bytes - tag;
}

static bool stranger_draw(struct world *world, struct op *op, struct ndtest_random *random)
{
    draw_route(world, op, random);
    op->d.length = (uint32_t)draw_below(random, 3); /* what it does */
    op->d.immediate = (uint32_t)ndtest_random_next(random);
    op->d.remote_address = ndtest_random_next(random);
    return (world->tenants[0] != 0 || world->tenants[1] != 0) && !world->harmless;
}

static bool stranger_act(struct world *world, struct op *op)
{
    struct watch *watch = world->watch;
    const struct captured *captured;
    uint8_t frame[FRAME_BYTES];
    uint32_t bytes;

    if (watch->captured_count == 0) {
        return false;
    }
    captured = &watch->captured[op->d.immediate %
                                (watch->captured_count < CAPTURED_MAX ? watch->captured_count : CAPTURED_MAX)];
    bytes = captured->bytes;
    memcpy(frame, captured->frame, bytes);
    switch (op->d.length) {
    case 0:
        /* Where senders are forgotten, or not remembered at all, what was dropped may come for the first time. */
        if (world->config.tenant_senders != 0) {
            return false;
        }
        break;
    case 1:
        frame[NETDAM_ETHERNET_BYTES + NETDAM_IPV4_BYTES + NETDAM_UDP_BYTES +
              op->d.remote_address % (bytes - NETDAM_ETHERNET_BYTES - NETDAM_IPV4_BYTES - NETDAM_UDP_BYTES)] ^=
            (uint8_t)(1 + (op->d.remote_address >> 32) % 255);
        if (!ndtest_frame_repair(frame, bytes, false)) {
            return false;
        }
        break;
    default:
        /* Where one user is of no tenant, what names something of that user is permitted without tag. */
        if (world->tenants[0] == 0 || world->tenants[1] == 0) {
            return false;
        }
        bytes = strip(frame, bytes);
        if (bytes == 0 || !ndtest_frame_repair(frame, bytes, true)) {
            return false;
        }
        break;
    }
    ndsim_node_receive(&world->net.nodes[captured->node].node, frame, bytes, world->net.loop.now_ns);
    world->tally->strangers++;
    return true;
}

const struct kind kind_stranger = {"stranger", stranger_draw, stranger_act, NULL};
