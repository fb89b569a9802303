/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains as their requester sees them: segment lists, packets, and what is known of each node they visit. All chains of
 * a device share one context, whose numbers are dense here and sparse at each node.
 */
#include "ndfw.h"

#include "checksum.h"
#include "path.h"

static struct ndfw_tour *tour_of(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return &fw->tours[operation->tour];
}

static bool names_memory(const struct netdam_segment *segment)
{
    return segment->opcode != NETDAM_OP_FORWARD;
}

static bool stores(const struct netdam_segment *segment)
{
    return (netdam_op_flags(segment->opcode) & NETDAM_OPF_MODIFIES) != 0;
}

static bool reads(const struct netdam_segment *segment)
{
    return segment->opcode == NETDAM_OP_LOAD || segment->opcode == NETDAM_OP_LOAD_REDUCE;
}

/* True if the packet has a lane at this node. */
static bool has_lane(const struct ndfw_tour *tour, uint32_t hop)
{
    return tour->stores && hop <= tour->last_store && names_memory(&tour->segments[hop]);
}

static bool is_executed(const struct netdam_segment *segment)
{
    struct ndfw_packet packet = {
        .opcode = segment->opcode,
        .operation = segment->operation,
        .type = segment->type,
        .node_form = NETDAM_NODE_FORM_IPV4,
    };

    return ndfw_check_instruction(&packet) == NETDAM_STATUS_OK;
}

/* What can be said of one segment by itself. */
static enum netdam_status check_segment(const struct ndfw *fw, const struct netdam_segment *segment, uint32_t length)
{
    bool belongs = (netdam_op_flags(segment->opcode) & NETDAM_OPF_CHAIN) != 0 || segment->opcode == NETDAM_OP_WRITE ||
                   segment->opcode == NETDAM_OP_REDUCE;

    if (!belongs || segment->reserved != 0 || segment->zero != 0 || !netdam_alu_is_defined(segment->operation) ||
        netdam_algebra(segment->opcode, segment->operation, segment->type) < 0 ||
        !netdam_is_whole(length, segment->type) ||
        (!names_memory(segment) && (segment->key != 0 || segment->address != 0))) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (!is_executed(segment)) {
        return NETDAM_STATUS_LOCAL_UNSUPPORTED;
    }
    if (segment->peer >= fw->config.peers || !fw->peers[segment->peer].in_use || fw->peers[segment->peer].closing) {
        return NETDAM_STATUS_LOCAL_PEER;
    }
    return segment->address > UINT64_MAX - length ? NETDAM_STATUS_BAD_RANGE : NETDAM_STATUS_OK;
}

bool ndfw_is_same_node(const struct ndfw *fw, uint32_t a, uint32_t b)
{
    const struct ndfw_endpoint *first = &fw->peers[a].endpoint;
    const struct ndfw_endpoint *second = &fw->peers[b].endpoint;

    return first->port == second->port && memcmp(first->address, second->address, sizeof(first->address)) == 0;
}

/* What can be said of the list as a whole; fills in what follows from it. */
static bool check_list(const struct ndfw *fw, struct ndfw_tour *tour, uint32_t flags)
{
    const struct netdam_segment *segments = tour->segments;
    uint32_t last_store = 0, stores_behind_read = 0;
    bool read = false, compares_read = false, named = false;

    tour->family = fw->peers[segments[0].peer].endpoint.family;
    tour->tenant = fw->peers[segments[0].peer].tenant;
    for (uint32_t i = 0; i < tour->count; i++) {
        if (fw->peers[segments[i].peer].endpoint.family != tour->family ||
            fw->peers[segments[i].peer].tenant != tour->tenant || (segments[i].opcode == NETDAM_OP_LOAD && named)) {
            return false;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (ndfw_is_same_node(fw, segments[i].peer, segments[j].peer)) {
                return false;
            }
        }
        if ((flags & NETDAM_DESCRIPTOR_REPRODUCIBLE) != 0 &&
            !ndfw_flags_suit(NETDAM_FLAG_REPRODUCIBLE, segments[i].opcode, segments[i].operation, segments[i].type)) {
            return false;
        }
        tour->loads |= segments[i].opcode == NETDAM_OP_LOAD;
        compares_read |= read && segments[i].opcode == NETDAM_OP_COMPARE;
        read |= reads(&segments[i]);
        named |= names_memory(&segments[i]);
        if (stores(&segments[i])) {
            stores_behind_read += read;
            tour->stores = true;
            last_store = i;
        }
    }
    tour->last_store = (uint8_t)last_store;
    tour->returns = read && !stores(&segments[tour->count - 1]);
    tour->names_memory = named;
    return !(tour->stores && compares_read) &&
           (stores_behind_read == 0 || (stores_behind_read == 1 && last_store + 1 == tour->count));
}

/* The largest payload of one packet, or 0 if the list alone is too long. */
static uint32_t payload_max(const struct ndfw *fw, const struct ndfw_tour *tour)
{
    uint32_t ip = tour->family == 6 ? NETDAM_IPV6_BYTES : NETDAM_IPV4_BYTES;
    uint32_t overhead = ip + NETDAM_UDP_BYTES + tour->header_bytes + NETDAM_CRC_BYTES;

    return overhead >= fw->config.mtu ? 0 : (fw->config.mtu - overhead) & ~UINT32_C(7);
}

static enum netdam_status take_piece(struct ndfw *fw, uint32_t region, uint64_t address, uint32_t length,
                                     uint32_t permission, struct ndfw_piece *piece)
{
    struct ndfw_buffer buffer;
    struct netdam_descriptor descriptor = {.local_region = region, .length = length, .u.buffer.local_address = address};
    enum netdam_status status = ndfw_buffer_take(fw, &descriptor, permission, &buffer);

    *piece = buffer.pieces[0];
    return status;
}

/* The list is copied before it is looked at. */
static enum netdam_status read_list(struct ndfw *fw, const struct ndfw_operation *operation, struct ndfw_tour *tour)
{
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    uint32_t bytes = descriptor->list_count * (uint32_t)sizeof(tour->segments[0]);
    struct ndfw_piece list;
    enum netdam_status status =
        take_piece(fw, descriptor->immediate, descriptor->remote_address, bytes, NETDAM_PERMISSION_LOCAL_READ, &list);
    const uint8_t *memory;

    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    memory = ndfw_memory(fw, fw->regions[list.region].base + list.address, bytes, NETDAM_FW_ACCESS_READ);
    if (memory == NULL) {
        return NETDAM_STATUS_LOCAL_RANGE;
    }
    ndfw_load((uint8_t *)tour->segments, memory, bytes);
    return NETDAM_STATUS_OK;
}

enum netdam_status ndfw_tour_prepare(const struct ndfw *fw, struct ndfw_tour *tour, uint32_t flags, uint32_t length,
                                     uint8_t *hop)
{
    tour->loads = tour->stores = false;
    for (uint32_t i = 0; i < tour->count; i++) {
        enum netdam_status status = check_segment(fw, &tour->segments[i], length);

        if (status != NETDAM_STATUS_OK) {
            *hop = (uint8_t)i;
            return status;
        }
    }
    if (!check_list(fw, tour, flags) || (!tour->names_memory && length != 0)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    tour->header_bytes = (uint32_t)sizeof(struct netdam_wire_header) + ndfw_node_bytes(tour->family) +
                         (tour->tenant != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0u) +
                         tour->count * ((uint32_t)sizeof(struct netdam_wire_segment) + ndfw_node_bytes(tour->family));
    tour->payload_max = payload_max(fw, tour);
    return tour->payload_max == 0 ? NETDAM_STATUS_LOCAL_DESCRIPTOR : NETDAM_STATUS_OK;
}

enum netdam_status ndfw_tour_check(struct ndfw *fw, struct ndfw_operation *operation)
{
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    struct ndfw_tour *tour = &fw->tours[fw->tour_free];
    enum netdam_status status;

    if (descriptor->list_count == 0 || descriptor->list_count > NETDAM_SEGMENTS_MAX || descriptor->remote_key != 0 ||
        descriptor->remote_address % 8 != 0 ||
        (descriptor->flags & ~(uint32_t)(NETDAM_DESCRIPTOR_FENCE | NETDAM_DESCRIPTOR_REPRODUCIBLE)) != 0) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    tour->count = descriptor->list_count;
    status = read_list(fw, operation, tour);
    if (status == NETDAM_STATUS_OK) {
        status = ndfw_tour_prepare(fw, tour, descriptor->flags, descriptor->length, &operation->hop);
    }
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if ((!tour->returns && (descriptor->peer != 0 || descriptor->u.buffer.result_address != 0)) ||
        (tour->loads && (descriptor->local_region != 0 || descriptor->u.buffer.local_address != 0))) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (tour->returns) {
        status = take_piece(fw, descriptor->peer, descriptor->u.buffer.result_address, descriptor->length,
                            NETDAM_PERMISSION_LOCAL_WRITE, &operation->returned);
    }
    if (status != NETDAM_STATUS_OK || tour->loads) {
        return status;
    }
    operation->buffer.count = 1;
    return take_piece(fw, descriptor->local_region, descriptor->u.buffer.local_address, descriptor->length,
                      NETDAM_PERMISSION_LOCAL_READ, &operation->buffer.pieces[0]);
}

void ndfw_tour_take(struct ndfw *fw, struct ndfw_operation *operation)
{
    operation->tour = fw->tour_free;
    fw->tour_free = fw->tours[fw->tour_free].next_free;
}

void ndfw_tour_release(struct ndfw *fw, struct ndfw_operation *operation)
{
    fw->collective_due |= fw->tour_free == NDFW_NONE && fw->collective_count != 0;
    tour_of(fw, operation)->next_free = fw->tour_free;
    fw->tour_free = operation->tour;
}

/* True if all that a packet needs to know of the nodes is known; else their timers are under way to find out. */
bool ndfw_tour_is_ready(struct ndfw *fw, const struct ndfw_operation *operation)
{
    const struct ndfw_tour *tour = tour_of(fw, operation);
    bool ready = true;

    for (uint32_t i = 0; i < tour->count; i++) {
        struct ndfw_peer *peer = &fw->peers[tour->segments[i].peer];
        struct ndfw_way *way = &peer->way;

        if ((i == 0 && !peer->resolved) || (names_memory(&tour->segments[i]) && way->generation == 0)) {
            ready = false;
            if (!way->wanted) {
                way->wanted = true;
                way->tries = 0;
                way->deadline_ns = fw->now_ns;
            }
            ndfw_way_timer(fw, peer);
            if (!operation->listed) {
                return false; /* the timer has given up on it */
            }
        }
    }
    return ready;
}

static void put_node(uint8_t *to, const struct ndfw_endpoint *endpoint)
{
    size_t address_bytes = endpoint->family == 6 ? 16 : 4;

    memset(to, 0, ndfw_node_bytes(endpoint->family));
    memcpy(to, endpoint->address, address_bytes);
    ndfw_put16(to + address_bytes, endpoint->port);
}

static void put_segments(const struct ndfw *fw, const struct ndfw_tour *tour, const struct ndfw_flight *flight,
                         uint8_t *to)
{
    for (uint32_t i = 0; i < tour->count; i++) {
        const struct netdam_segment *from = &tour->segments[i];
        const struct ndfw_peer *peer = &fw->peers[from->peer];
        struct netdam_wire_segment segment;

        memset(&segment, 0, sizeof(segment));
        segment.opcode = from->opcode;
        segment.operation = from->operation;
        segment.type = from->type;
        if (names_memory(from)) {
            segment.length = netdam_be32_make(flight->length);
            segment.key = netdam_be64_make(from->key);
            segment.address = netdam_be64_make(from->address + flight->offset);
            segment.generation = netdam_be64_make(peer->way.generation);
        }
        memcpy(to, &segment, sizeof(segment));
        put_node(to + sizeof(segment), &peer->endpoint);
        to += sizeof(segment) + ndfw_node_bytes(tour->family);
    }
}

enum ndfw_sent ndfw_tour_send(struct ndfw *fw, uint64_t number, const struct ndfw_flight *flight,
                              enum netdam_status *status)
{
    const struct ndfw_operation *operation = &fw->operations[flight->operation];
    const struct ndfw_tour *tour = tour_of(fw, operation);
    const struct ndfw_peer *chain = ndfw_chain_context(fw);
    const struct ndfw_endpoint *to = &fw->peers[tour->segments[0].peer].endpoint;
    uint32_t payload_length = tour->loads ? 0 : flight->length;
    bool has_crc = ndfw_has_crc(fw, payload_length, tour->tenant);
    bool reproducible = (operation->descriptor.flags & NETDAM_DESCRIPTOR_REPRODUCIBLE) != 0;
    uint32_t bytes = tour->header_bytes + payload_length + (has_crc ? NETDAM_CRC_BYTES : 0u);
    struct ndfw_span spans[NETDAM_LIST_MAX];
    struct netdam_wire_header header;
    uint32_t count = 0, crc;
    uint8_t *datagram, *at;

    if (payload_length != 0) {
        *status = ndfw_buffer_spans(fw, &operation->buffer, flight->offset, payload_length,
                                    NETDAM_PERMISSION_LOCAL_READ, spans, &count);
        if (*status != NETDAM_STATUS_OK) {
            return NDFW_SENT_LOCAL_ERROR;
        }
    }
    datagram = ndfw_frame_begin(fw, to, flight->path, bytes);
    if (datagram == NULL) {
        return NDFW_SENT_PORT_FULL;
    }
    memset(&header, 0, sizeof(header));
    header.version = NETDAM_WIRE_VERSION;
    header.kind = NETDAM_KIND_REQUEST;
    header.flags = netdam_be16_make(
        (uint16_t)((has_crc ? NETDAM_FLAG_PAYLOAD_CRC : 0u) | (flight->tries != 0 ? NETDAM_FLAG_AGAIN : 0u) |
                   (reproducible ? NETDAM_FLAG_REPRODUCIBLE : 0u) | (tour->tenant != 0 ? NETDAM_FLAG_TENANT : 0u)));
    header.segment_count = (uint8_t)tour->count;
    header.node_form = tour->family;
    header.context = netdam_be64_make(chain->context);
    header.number = netdam_be48_make(number);
    header.distance = netdam_be16_make((uint16_t)(number - chain->lane.floor));
    header.payload_length = netdam_be16_make((uint16_t)payload_length);
    header.header_length = netdam_be16_make((uint16_t)tour->header_bytes);
    memcpy(datagram, &header, sizeof(header));
    at = datagram + sizeof(header);
    at += ndfw_tenant_extension(at, tour->tenant);
    memset(at, 0, ndfw_node_bytes(tour->family)); /* the origin is the sender */
    put_segments(fw, tour, flight, at + ndfw_node_bytes(tour->family));
    crc = ndfw_spans_load(fw, spans, count, datagram + tour->header_bytes, has_crc);
    if (has_crc) {
        netdam_be32 be = netdam_be32_make(crc);

        memcpy(datagram + tour->header_bytes + payload_length, &be, sizeof(be));
    }
    ndfw_seal(fw, to, datagram, bytes);
    ndfw_trace(fw, flight->tries != 0 ? NETDAM_FW_TRACE_RETRANSMIT : NETDAM_FW_TRACE_TX_REQUEST,
               flight->tries != 0 ? flight->tries : NETDAM_OP_CHAIN, chain->context, number);
    ndfw_frame_end(fw, to, bytes);
    return NDFW_SENT_OK;
}

void ndfw_tour_flies(struct ndfw *fw, const struct ndfw_operation *operation, uint64_t number)
{
    const struct ndfw_tour *tour = tour_of(fw, operation);

    for (uint32_t i = 0; i < tour->count; i++) {
        struct ndfw_way *way = &fw->peers[tour->segments[i].peer].way;

        way->flying++;
        if (has_lane(tour, i)) {
            way->used = number + 1;
        }
    }
}

void ndfw_tour_lands(struct ndfw *fw, const struct ndfw_operation *operation)
{
    const struct ndfw_tour *tour = tour_of(fw, operation);

    for (uint32_t i = 0; i < tour->count; i++) {
        struct ndfw_way *way = &fw->peers[tour->segments[i].peer].way;

        way->flying--;
        if (way->flying == 0 && way->used > way->confirmed &&
            (way->confirm_wanted || way->deadline_ns == NETDAM_FW_NEVER)) {
            way->tries = 0;
            way->deadline_ns = fw->now_ns + (way->confirm_wanted ? 0 : fw->config.confirm_idle_ns);
            way->confirm_wanted = false;
        }
    }
}

/* Index of the segment at a peer's node, or NDFW_NONE. */
static uint32_t visit(const struct ndfw_tour *tour, uint32_t peer)
{
    for (uint32_t i = 0; i < tour->count; i++) {
        if (tour->segments[i].peer == peer) {
            return i;
        }
    }
    return NDFW_NONE;
}

static bool is_tour(const struct ndfw_operation *operation)
{
    return operation->in_use && operation->tour != NDFW_NONE;
}

void ndfw_tour_fail_peer(struct ndfw *fw, uint32_t peer, enum netdam_status status, bool flying_too)
{
    struct ndfw_peer *chain = ndfw_chain_context(fw);
    uint64_t end = chain->lane.next;

    for (uint64_t number = chain->lane.floor; flying_too && number < end; number++) {
        struct ndfw_flight *flight = ndfw_flight_at(fw, &chain->lane, number);

        if (flight->state != NDFW_FLIGHT_FINISHED) {
            uint32_t hop = visit(tour_of(fw, &fw->operations[flight->operation]), peer);

            if (hop != NDFW_NONE) {
                ndfw_flight_finish(fw, chain, &chain->lane, number, status, (uint8_t)hop);
            }
        }
    }
    for (uint32_t i = 0; i < fw->config.operations; i++) {
        struct ndfw_operation *operation = &fw->operations[i];

        if (is_tour(operation) && operation->listed) {
            uint32_t hop = visit(tour_of(fw, operation), peer);

            if (hop != NDFW_NONE) {
                ndfw_operation_fail(fw, i, status, (uint8_t)hop);
            }
        }
    }
}

bool ndfw_tour_matches(const struct ndfw *fw, const struct ndfw_flight *flight, const struct ndfw_packet *packet)
{
    const struct ndfw_tour *tour = tour_of(fw, &fw->operations[flight->operation]);

    if (packet->hop >= tour->count || packet->segment_count != tour->count) {
        return false;
    }
    return packet->status != NETDAM_STATUS_OK ||
           (packet->hop + 1u == tour->count && packet->opcode == tour->segments[packet->hop].opcode &&
            packet->payload_length == (tour->returns ? flight->length : 0));
}

bool ndfw_tour_returns(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return tour_of(fw, operation)->returns;
}

bool ndfw_tour_stores(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return tour_of(fw, operation)->stores;
}

bool ndfw_tour_stored_before(const struct ndfw *fw, const struct ndfw_operation *operation, uint32_t hop)
{
    const struct ndfw_tour *tour = tour_of(fw, operation);

    for (uint32_t i = 0; i < hop && i < tour->count; i++) {
        if (stores(&tour->segments[i])) {
            return true;
        }
    }
    return false;
}

uint32_t ndfw_tour_nodes(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return tour_of(fw, operation)->count;
}

uint32_t ndfw_tour_payload_max(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return tour_of(fw, operation)->payload_max;
}

/* Bits that hold a peer's index. */
static unsigned index_bits(const struct ndfw *fw)
{
    unsigned bits = 0;

    while ((fw->config.peers - 1) >> bits != 0) {
        bits++;
    }
    return bits;
}

uint16_t ndfw_way_cookie(const struct ndfw *fw, const struct ndfw_peer *peer)
{
    return (uint16_t)((uint64_t)peer->serial << index_bits(fw) | (uint64_t)(peer - fw->peers));
}

/* The peer whose CONFIRM carried this; NULL if it has been closed since, or never was. */
static struct ndfw_peer *peer_by_cookie(const struct ndfw *fw, uint16_t cookie)
{
    uint32_t index = cookie & ((UINT32_C(1) << index_bits(fw)) - 1);
    struct ndfw_peer *peer = &fw->peers[index];

    return index < fw->config.peers && peer->in_use && ndfw_way_cookie(fw, peer) == cookie ? peer : NULL;
}

struct ndfw_peer *ndfw_tour_answering(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_peer *chain = ndfw_chain_context(fw);
    struct ndfw_flight *flight = ndfw_flight_at(fw, &chain->lane, packet->number);
    const struct ndfw_tour *tour;

    if (packet->opcode == NETDAM_OP_CONFIRM) {
        return peer_by_cookie(fw, packet->distance);
    }
    if (packet->number < chain->lane.floor || packet->number >= chain->lane.next ||
        flight->state == NDFW_FLIGHT_FINISHED) {
        return NULL;
    }
    tour = tour_of(fw, &fw->operations[flight->operation]);
    return packet->hop < tour->count ? &fw->peers[tour->segments[packet->hop].peer] : NULL;
}

/* As peer.c's receive_stale, of one node out of many: what does not visit it is not concerned. */
void ndfw_tour_stale(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_peer *chain = ndfw_chain_context(fw);
    struct ndfw_peer *peer = ndfw_tour_answering(fw, packet);
    uint64_t before = peer != NULL ? peer->way.generation : 0, end = chain->lane.next;
    bool other_epoch;

    if (peer == NULL || packet->echo != before || packet->generation == 0 || packet->generation == before) {
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_UNMATCHED, 1);
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_RESPONSES_MATCHED, 1);
    other_epoch = before != 0 && netdam_generation_epoch(before) != netdam_generation_epoch(packet->generation);
    peer->way.generation = packet->generation;
    /* What had a lane there has none any more, and nothing left to confirm. */
    peer->way.confirmed = peer->way.used = chain->lane.floor;
    peer->way.wanted = false;
    peer->way.tries = 0;
    peer->way.deadline_ns = NETDAM_FW_NEVER;
    for (uint64_t number = chain->lane.floor; number < end; number++) {
        struct ndfw_flight *flight = ndfw_flight_at(fw, &chain->lane, number);
        const struct ndfw_tour *tour;
        uint32_t hop;

        if (flight->state == NDFW_FLIGHT_FINISHED) {
            continue;
        }
        tour = tour_of(fw, &fw->operations[flight->operation]);
        hop = visit(tour, (uint32_t)(peer - fw->peers));
        if (hop == NDFW_NONE) {
            continue;
        }
        if (other_epoch && has_lane(tour, hop)) {
            ndfw_flight_finish(fw, chain, &chain->lane, number, NETDAM_STATUS_UNKNOWN, (uint8_t)hop);
            continue;
        }
        ndfw_flight_again(chain, &chain->lane, flight);
        /* Sent again under the same numbers: they may have a lane there now. */
        if (has_lane(tour, hop) && peer->way.used <= number) {
            peer->way.used = number + 1;
        }
    }
    ndfw_peer_release_if_closed(fw, peer);
}

void ndfw_tour_confirmed(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_peer *chain = ndfw_chain_context(fw);
    struct ndfw_peer *peer = ndfw_tour_answering(fw, packet);

    if (peer == NULL || packet->status != NETDAM_STATUS_OK || packet->generation != peer->way.generation ||
        packet->generation == 0 || packet->number > chain->lane.floor || packet->number < peer->way.confirmed) {
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_UNMATCHED, 1);
        return;
    }
    if (packet->number > peer->way.confirmed && !peer->closing) {
        peer->way.tries = 0;
    }
    peer->way.confirmed = packet->number;
    if (peer->way.confirmed >= peer->way.used && !peer->way.wanted) {
        peer->way.deadline_ns = NETDAM_FW_NEVER;
    }
    ndfw_count(fw, NETDAM_COUNTER_RESPONSES_MATCHED, 1);
    ndfw_peer_release_if_closed(fw, peer);
}

/*
 * The way's timer serves, one at a time: resolving the node's link-layer address, learning its generation, and, when no
 * chain visits it, confirming the floor.
 */
void ndfw_way_timer(struct ndfw *fw, struct ndfw_peer *peer)
{
    struct ndfw_way *way = &peer->way;
    const struct ndfw_peer *chain = ndfw_chain_context(fw);
    bool holding = way->wanted && (!peer->resolved || way->generation == 0);
    bool confirming = !holding && way->flying == 0 && way->used > way->confirmed && way->generation != 0;

    if (fw->now_ns < way->deadline_ns) {
        return;
    }
    way->wanted = holding;
    if (!holding && !confirming) {
        way->deadline_ns = NETDAM_FW_NEVER;
        way->tries = 0;
        return;
    }
    if (confirming && chain->lane.floor < way->used) {
        way->deadline_ns = fw->now_ns + fw->config.confirm_idle_ns; /* older ones are under way elsewhere */
        return;
    }
    if (way->tries > fw->config.retries) {
        way->deadline_ns = NETDAM_FW_NEVER;
        way->tries = 0;
        way->wanted = false;
        if (holding) {
            ndfw_tour_fail_peer(fw, (uint32_t)(peer - fw->peers),
                                peer->resolved ? NETDAM_STATUS_TIMEOUT : NETDAM_STATUS_UNREACHABLE, false);
        } else {
            way->confirmed = way->used;
            fw->chains_due = true; /* they may wait for new numbers */
            ndfw_peer_release_if_closed(fw, peer);
        }
        return;
    }
    if (!peer->resolved) {
        ndfw_net_solicit(fw, &peer->endpoint);
    } else if (!ndfw_send_confirm(fw, chain, peer, way->generation, (uint32_t)way->tries % peer->path_count)) {
        return;
    } else if (way->tries >= NDFW_DOUBT_TRIES) {
        ndfw_net_doubt(fw, &peer->endpoint);
    }
    way->deadline_ns = fw->now_ns + ndfw_peer_rto_ns(fw, peer, way->tries);
    way->tries++;
}

bool ndfw_way_is_confirmed(const struct ndfw_way *way)
{
    return way->confirmed >= way->used;
}

/* The chain context's numbers start anew: the nodes' lanes of the old context are confirmed. They are asked anew. */
void ndfw_ways_renew(struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        struct ndfw_way *way = &fw->peers[i].way;

        way->used = way->confirmed = way->generation = 0;
    }
}

bool ndfw_ways_are_confirmed(const struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.peers; i++) {
        if (fw->peers[i].in_use && !ndfw_way_is_confirmed(&fw->peers[i].way)) {
            return false;
        }
    }
    return true;
}
