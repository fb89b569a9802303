/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains as a node sees them: executes the current segment, then passes the packet on or answers its origin. */
#include "ndfw.h"

#include "checksum.h"

/* What the list says, as far as this hop is concerned. */
struct hop {
    struct ndfw_endpoint next; /* where the packet goes from here, unless it is the last */
    uint32_t payload_after;    /* bytes of payload behind this segment */
    bool last;
    bool stores_later; /* this segment or a later one */
    bool with_lane;    /* it does, and this one names memory */
    bool returns;      /* the chain's answer carries its payload */
    bool origin_is_sender;
};

static uint32_t stride(const struct ndfw_packet *packet)
{
    return (uint32_t)sizeof(struct netdam_wire_segment) + ndfw_node_bytes(packet->node_form);
}

/* Returns false if no packet could go to such a node. */
static bool read_node(const struct ndfw_packet *packet, const uint8_t *part, struct ndfw_endpoint *endpoint)
{
    memset(endpoint, 0, sizeof(*endpoint));
    endpoint->family = packet->node_form;
    if (packet->node_form == NETDAM_NODE_FORM_IPV4) {
        struct netdam_wire_node_ipv4 node;

        memcpy(&node, part, sizeof(node));
        memcpy(endpoint->address, node.address, sizeof(node.address));
        endpoint->port = netdam_be16_get(node.port);
        return ndfw_is_zero(node.reserved, sizeof(node.reserved)) && node.address[0] != 0 && node.address[0] < 224;
    } else {
        struct netdam_wire_node_ipv6 node;

        memcpy(&node, part, sizeof(node));
        memcpy(endpoint->address, node.address, sizeof(node.address));
        endpoint->port = netdam_be16_get(node.port);
        return ndfw_is_zero(node.reserved, sizeof(node.reserved)) && !ndfw_is_zero(node.address, 16) &&
               node.address[0] != 0xff;
    }
}

static bool is_same_node(const struct ndfw_endpoint *a, const struct ndfw_endpoint *b)
{
    return a->port == b->port && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static const uint8_t *node_part(const struct ndfw_packet *packet, unsigned index)
{
    return packet->segments + index * stride(packet) + sizeof(struct netdam_wire_segment);
}

static bool belongs_in_chain(unsigned opcode)
{
    return (netdam_op_flags(opcode) & NETDAM_OPF_CHAIN) != 0 || opcode == NETDAM_OP_WRITE || opcode == NETDAM_OP_REDUCE;
}

static bool is_blank(const struct netdam_wire_segment *segment)
{
    return netdam_be32_get(segment->length) == 0 && netdam_be64_get(segment->key) == 0 &&
           netdam_be64_get(segment->address) == 0 && netdam_be64_get(segment->generation) == 0;
}

/* Looks at the whole list: every node of a chain finds the same, but for nodes named twice, which each finds of itself. */
static bool read_list(const struct ndfw *fw, const struct ndfw_packet *packet, struct hop *hop)
{
    struct ndfw_endpoint own, node;
    uint32_t length = 0, stores_behind_read = 0, last_store = 0;
    bool reads = false, stores = false, named = false, loads_later = false, compares_read = false;
    struct netdam_wire_segment segment = {0};

    if (packet->from.family != packet->node_form || !read_node(packet, node_part(packet, packet->hop), &own)) {
        return false;
    }
    for (unsigned i = 0; i < packet->segment_count; i++) {
        bool forward, reading;

        memcpy(&segment, packet->segments + i * stride(packet), sizeof(segment));
        forward = segment.opcode == NETDAM_OP_FORWARD;
        reading = segment.opcode == NETDAM_OP_LOAD || segment.opcode == NETDAM_OP_LOAD_REDUCE;
        if (!belongs_in_chain(segment.opcode) || segment.reserved != 0 || (forward && !is_blank(&segment)) ||
            !read_node(packet, node_part(packet, i), &node) || node.port == 0 ||
            (i != packet->hop && (is_same_node(&node, &own) || ndfw_is_self(fw, &node))) ||
            (segment.opcode == NETDAM_OP_LOAD && named) ||
            (!forward && named && netdam_be32_get(segment.length) != length)) {
            return false;
        }
        if (i == packet->hop + 1u) {
            hop->next = node;
        }
        if (forward) {
            continue;
        }
        named = true;
        length = netdam_be32_get(segment.length);
        loads_later |= segment.opcode == NETDAM_OP_LOAD && i >= packet->hop;
        compares_read |= reads && segment.opcode == NETDAM_OP_COMPARE;
        reads |= reading;
        if ((netdam_op_flags(segment.opcode) & NETDAM_OPF_MODIFIES) != 0) {
            stores_behind_read += reads;
            stores = true;
            last_store = i;
        }
    }
    if ((stores && compares_read) ||
        (stores_behind_read != 0 && (stores_behind_read != 1 || last_store + 1u != packet->segment_count))) {
        return false;
    }
    /* `segment` is the last. */
    hop->last = packet->hop + 1u == packet->segment_count;
    hop->stores_later = stores && packet->hop <= last_store;
    hop->with_lane = hop->stores_later && packet->opcode != NETDAM_OP_FORWARD;
    hop->returns = reads && (netdam_op_flags(segment.opcode) & NETDAM_OPF_MODIFIES) == 0;
    hop->payload_after = loads_later && packet->opcode != NETDAM_OP_LOAD ? 0 : length;
    return true;
}

static bool lengths_agree(const struct ndfw *fw, const struct ndfw_packet *packet, const struct hop *hop)
{
    uint32_t ip = packet->node_form == NETDAM_NODE_FORM_IPV6 ? NETDAM_IPV6_BYTES : NETDAM_IPV4_BYTES;
    uint32_t before = packet->opcode == NETDAM_OP_LOAD ? 0 : hop->payload_after;

    return packet->payload_length == before && netdam_is_whole(packet->length, packet->type) &&
           ip + NETDAM_UDP_BYTES + packet->header_length + NETDAM_CRC_BYTES <= fw->config.mtu &&
           hop->payload_after <= fw->config.mtu - ip - NETDAM_UDP_BYTES - packet->header_length - NETDAM_CRC_BYTES;
}

static bool shares_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8;

    return memcmp(a, b, whole) == 0 && (bits % 8 == 0 || (a[whole] ^ b[whole]) >> (8 - bits % 8) == 0);
}

bool ndfw_may_forward(const struct ndfw *fw, const struct ndfw_endpoint *to)
{
    if (ndfw_is_self(fw, to) || ndfw_is_static_neighbour(fw, to) ||
        (to->family == 4 && shares_prefix(to->address, fw->config.ipv4, fw->config.ipv4_prefix))) {
        return true;
    }
    for (unsigned i = 0; i < NETDAM_FW_NETWORKS; i++) {
        const struct netdam_fw_network *network = &fw->config.forward[i];

        if (network->family == to->family && shares_prefix(to->address, network->address, network->prefix)) {
            return true;
        }
    }
    return false;
}

static void not_forwarded(struct ndfw *fw, const struct ndfw_packet *packet)
{
    ndfw_count(fw, NETDAM_COUNTER_FORWARDS_DROPPED, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_ERR_FORWARD, packet->opcode, packet->context, packet->number);
}

/* Finds out where answers go. Returns false if none may, or can at the moment. */
static bool find_origin(struct ndfw *fw, struct ndfw_packet *packet, struct hop *hop, enum netdam_status *status)
{
    struct ndfw_endpoint origin;
    bool plausible = read_node(packet, packet->segments - ndfw_node_bytes(packet->node_form), &origin);

    hop->origin_is_sender = origin.port == 0 && ndfw_is_zero(origin.address, sizeof(origin.address));
    if (hop->origin_is_sender) {
        if (packet->hop != 0 && *status == NETDAM_STATUS_OK) {
            *status = NETDAM_STATUS_BAD_SEGMENTS;
        }
        return true;
    }
    if (!plausible || origin.port == 0 || origin.family != packet->from.family || !ndfw_may_forward(fw, &origin)) {
        return false;
    }
    if (!ndfw_net_resolve(fw, &origin)) {
        ndfw_net_ask(fw, &origin);
        return false;
    }
    packet->from = origin;
    return true;
}

/* Sends the packet to the next node. `memory` is what the segment read, or NULL. */
static void pass_on(struct ndfw *fw, const struct ndfw_packet *packet, struct hop *hop, const uint8_t *memory)
{
    bool has_crc = hop->payload_after != 0 && packet->tenant == 0 &&
                   (!fw->config.no_payload_crc || (packet->flags & NETDAM_FLAG_PAYLOAD_CRC) != 0);
    uint32_t bytes = packet->header_length + hop->payload_after + (has_crc ? NETDAM_CRC_BYTES : 0u);
    struct netdam_wire_header header;
    uint8_t *datagram;

    if (!ndfw_net_resolve(fw, &hop->next)) {
        ndfw_net_ask(fw, &hop->next);
        not_forwarded(fw, packet);
        return;
    }
    /* The path that the originator chose, all the way round: its port is the one that answers go to. */
    datagram =
        ndfw_frame_begin(fw, &hop->next, (uint16_t)(packet->from.port - fw->config.udp_port) % fw->config.paths, bytes);
    if (datagram == NULL) {
        not_forwarded(fw, packet);
        return;
    }
    memcpy(datagram, packet->datagram, packet->header_length);
    memcpy(&header, packet->datagram, sizeof(header));
    header.segment_index++;
    header.payload_length = netdam_be16_make((uint16_t)hop->payload_after);
    header.flags = netdam_be16_make((uint16_t)((packet->flags & ~(unsigned)NETDAM_FLAG_PAYLOAD_CRC) |
                                               (has_crc ? (unsigned)NETDAM_FLAG_PAYLOAD_CRC : 0u)));
    memcpy(datagram, &header, sizeof(header));
    if (hop->origin_is_sender) {
        uint8_t *origin = datagram + (packet->segments - packet->datagram) - ndfw_node_bytes(packet->node_form);
        size_t address_bytes = packet->node_form == NETDAM_NODE_FORM_IPV6 ? 16 : 4;

        memcpy(origin, packet->from.address, address_bytes);
        ndfw_put16(origin + address_bytes, packet->from.port);
    }
    ndfw_put_payload(fw, packet, datagram + packet->header_length,
                     packet->opcode == NETDAM_OP_LOAD ? NULL : packet->payload, memory, hop->payload_after, has_crc);
    ndfw_seal(fw, &hop->next, datagram, bytes);
    ndfw_count(fw, NETDAM_COUNTER_FORWARDED, 1);
    ndfw_trace(fw, NETDAM_FW_TRACE_FORWARD, packet->opcode, packet->context, packet->number);
    ndfw_frame_end(fw, &hop->next, bytes);
}

static bool memory_equals(const uint8_t *memory, const uint8_t *payload, size_t bytes)
{
    uint8_t part[64];

    for (size_t done = 0; done < bytes; done += sizeof(part)) {
        size_t step = bytes - done < sizeof(part) ? bytes - done : sizeof(part);

        ndfw_load(part, memory + done, step);
        if (memcmp(part, payload + done, step) != 0) {
            return false;
        }
    }
    return true;
}

static bool goes_nowhere(const struct ndfw *fw, const struct hop *hop)
{
    return !hop->last && !ndfw_may_forward(fw, &hop->next);
}

/* What a segment that reads finds; *memory is where. */
static enum netdam_status look(struct ndfw *fw, const struct ndfw_packet *packet, const uint8_t **memory)
{
    uint64_t offset;
    enum netdam_status status = ndfw_region_access(fw, packet->key, packet->tenant, packet->address, packet->length,
                                                   ndfw_permission_for(packet->opcode), &offset);

    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if (!netdam_is_whole(offset, packet->type)) {
        return NETDAM_STATUS_MISALIGNED;
    }
    *memory = ndfw_memory(fw, offset, packet->length, NETDAM_FW_ACCESS_READ);
    if (*memory == NULL) {
        return NETDAM_STATUS_BAD_RANGE;
    }
    if (packet->opcode == NETDAM_OP_COMPARE) {
        bool equal = memory_equals(*memory, packet->payload, packet->length);

        *memory = NULL;
        return equal ? NETDAM_STATUS_OK : NETDAM_STATUS_COMPARE_FAILED;
    }
    return NETDAM_STATUS_OK;
}

static enum netdam_status execute_segment(struct ndfw *fw, const struct ndfw_packet *packet, const struct hop *hop,
                                          const uint8_t **memory)
{
    uint64_t value;

    if (goes_nowhere(fw, hop)) {
        return NETDAM_STATUS_NOT_FORWARDED;
    }
    if ((netdam_op_flags(packet->opcode) & NETDAM_OPF_MODIFIES) != 0) {
        return ndfw_execute(fw, packet, &value);
    }
    return look(fw, packet, memory);
}

/* Goes on behind a segment that was executed, now or before. */
static void go_on(struct ndfw *fw, const struct ndfw_packet *packet, struct hop *hop,
                  const struct ndfw_lane_result *result, const uint8_t *memory, unsigned flags)
{
    struct ndfw_answer answer = {
        .generation = result->generation,
        .floor = result->floor,
        .flags = flags,
        .length = packet->length,
        .payload = packet->opcode == NETDAM_OP_LOAD ? NULL : packet->payload,
        .memory = memory,
        .payload_length = hop->returns ? hop->payload_after : 0,
    };

    if (hop->last) {
        ndfw_answer(fw, packet, &answer);
    } else {
        pass_on(fw, packet, hop, memory);
    }
}

static void execute_without_lane(struct ndfw *fw, const struct ndfw_packet *packet, struct hop *hop)
{
    struct ndfw_lane_result result = {.generation = fw->generation};
    const uint8_t *memory = NULL;
    enum netdam_status status = NETDAM_STATUS_OK;

    if (packet->opcode != NETDAM_OP_FORWARD) {
        status = ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation)
                     ? look(fw, packet, &memory)
                     : NETDAM_STATUS_STALE;
    }
    if (status != NETDAM_STATUS_OK) {
        ndfw_refuse_at(fw, packet, status, result.generation, 0, 0);
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, 1);
    go_on(fw, packet, hop, &result, memory, 0);
}

/* The lane remembers the verdict on what reads as well: what a copy was refused for must not be stored later by another. */
static void execute_with_lane(struct ndfw *fw, const struct ndfw_packet *packet, struct hop *hop)
{
    struct ndfw_lane_result result = {0};
    const uint8_t *memory = NULL;

    switch (ndfw_lane_admit(fw, packet, ndfw_names_no_key(fw, packet), &result)) {
    case NDFW_LANE_EXECUTE:
        result.status = (uint8_t)execute_segment(fw, packet, hop, &memory);
        ndfw_lane_consume(result.window, packet->number, result.status, packet->hop);
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, result.status == NETDAM_STATUS_OK);
        if (result.status == NETDAM_STATUS_OK) {
            go_on(fw, packet, hop, &result, memory, ndfw_lane_wish(fw));
        } else {
            ndfw_refuse_at(fw, packet, (enum netdam_status)result.status, result.generation, result.floor,
                           ndfw_lane_wish(fw));
        }
        break;
    case NDFW_LANE_REPEATED:
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_REPEATED, 1);
        if (result.status != NETDAM_STATUS_OK) {
            ndfw_refuse_at(fw, packet, (enum netdam_status)result.status, result.generation, result.floor,
                           NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw));
        } else if (result.value != packet->hop || goes_nowhere(fw, hop) ||
                   ((packet->opcode == NETDAM_OP_LOAD || packet->opcode == NETDAM_OP_LOAD_REDUCE) &&
                    look(fw, packet, &memory) != NETDAM_STATUS_OK)) {
            /* Not refused: a copy that was not may be on its way. Nor passed on where this node has two names. */
            not_forwarded(fw, packet);
        } else {
            go_on(fw, packet, hop, &result, memory, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw));
        }
        break;
    case NDFW_LANE_STALE:
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, result.generation, 0, 0);
        break;
    case NDFW_LANE_BUSY:
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_BUSY, result.generation, result.floor, 0);
        break;
    case NDFW_LANE_DROP:
        break;
    }
}

void ndfw_hop(struct ndfw *fw, struct ndfw_packet *packet, enum netdam_status status)
{
    const unsigned unsuited =
        NETDAM_FLAG_IMMEDIATE | NETDAM_FLAG_RELAXED | NETDAM_FLAG_ORDERED | NETDAM_FLAG_UNRELIABLE;
    struct hop hop = {0};

    if (status == NETDAM_STATUS_OK && (packet->flags & unsuited) != 0) {
        status = NETDAM_STATUS_BAD_FLAGS;
    }
    if (status == NETDAM_STATUS_OK && !read_list(fw, packet, &hop)) {
        status = NETDAM_STATUS_BAD_SEGMENTS;
    }
    if (!find_origin(fw, packet, &hop, &status)) {
        not_forwarded(fw, packet);
        return;
    }
    if (status == NETDAM_STATUS_OK && !lengths_agree(fw, packet, &hop)) {
        status = NETDAM_STATUS_BAD_LENGTH;
    }
    if (status == NETDAM_STATUS_OK && !hop.with_lane && goes_nowhere(fw, &hop)) {
        status = NETDAM_STATUS_NOT_FORWARDED;
    }
    if (status != NETDAM_STATUS_OK && hop.stores_later && !hop.with_lane) {
        not_forwarded(fw, packet); /* no lane to remember a refusal */
    } else if (status != NETDAM_STATUS_OK) {
        ndfw_refuse(fw, packet, status);
    } else if (hop.with_lane) {
        execute_with_lane(fw, packet, &hop);
    } else {
        execute_without_lane(fw, packet, &hop);
    }
}
