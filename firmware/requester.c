/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester: turns operations into packets, as far as windows and port allow. */
#include "ndfw.h"

#include "path.h"

/* True if a request names something of the node's, and so needs its generation. */
static bool needs_generation(unsigned opcode)
{
    return (netdam_op_flags(opcode) & (NETDAM_OPF_MEMORY | NETDAM_OPF_MODIFIES)) != 0;
}

/* Packets of one operation before the next operation towards the same peer has its turn. */
#define TURN_PACKETS 16u

/*
 * Header and extensions; the segment is returned with nothing in it yet. In place: to copy what has just been stored
 * field by field would have to wait for it.
 */
static struct netdam_wire_segment *put_request(struct ndfw *fw, const struct ndfw_peer *context, uint32_t tenant,
                                               uint8_t *datagram, uint64_t number, uint64_t distance, unsigned flags,
                                               uint64_t immediate, uint32_t payload_length)
{
    struct netdam_wire_header *header = (struct netdam_wire_header *)(void *)datagram;
    struct netdam_wire_immediate extension = {netdam_be64_make(immediate)};
    size_t extension_bytes = (flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(extension) : 0;
    bool has_crc = ndfw_has_crc(fw, payload_length, tenant);
    uint8_t *at = datagram + sizeof(*header);

    memcpy(at, &extension, extension_bytes);
    at += extension_bytes;
    at += ndfw_tenant_extension(at, tenant);
    memset(header, 0, sizeof(*header));
    header->version = NETDAM_WIRE_VERSION;
    header->kind = NETDAM_KIND_REQUEST;
    header->flags = netdam_be16_make(
        (uint16_t)(flags | (has_crc ? NETDAM_FLAG_PAYLOAD_CRC : 0u) | (tenant != 0 ? NETDAM_FLAG_TENANT : 0u)));
    header->segment_count = 1;
    header->node_form = NETDAM_NODE_FORM_IMPLICIT;
    header->context = netdam_be64_make(context->context);
    header->number = netdam_be48_make(number);
    header->distance = netdam_be16_make((uint16_t)distance);
    header->payload_length = netdam_be16_make((uint16_t)payload_length);
    header->header_length = netdam_be16_make((uint16_t)(at + sizeof(struct netdam_wire_segment) - datagram));
    memset(at, 0, sizeof(struct netdam_wire_segment));
    return (struct netdam_wire_segment *)(void *)at;
}

uint32_t ndfw_packet_payload_max(const struct ndfw_peer *peer, const struct netdam_descriptor *descriptor)
{
    bool immediate = (descriptor->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0;

    return peer->payload_max - (immediate ? (uint32_t)sizeof(struct netdam_wire_immediate) : 0u);
}

bool ndfw_send_confirm(struct ndfw *fw, const struct ndfw_peer *context, const struct ndfw_peer *peer,
                       uint64_t generation, uint32_t path)
{
    /* Answers to CONFIRMs of the chains' context, which all nodes know, say by their distance whose they are. */
    uint64_t distance = context == peer ? 0 : ndfw_way_cookie(fw, peer);
    uint32_t bytes = ndfw_datagram_bytes(fw, 0, false, peer->tenant);
    uint8_t *datagram = ndfw_frame_begin(fw, &peer->endpoint, path, bytes);
    struct netdam_wire_segment *segment;

    if (datagram == NULL) {
        return false;
    }
    segment = put_request(fw, context, peer->tenant, datagram, context->lane.floor, distance, 0, 0, 0);
    segment->opcode = NETDAM_OP_CONFIRM;
    segment->generation = netdam_be64_make(generation);
    ndfw_seal(fw, &peer->endpoint, datagram, bytes);
    ndfw_trace(fw, NETDAM_FW_TRACE_TX_REQUEST, NETDAM_OP_CONFIRM, context->context, context->lane.floor);
    ndfw_frame_end(fw, &peer->endpoint, bytes);
    return true;
}

static uint32_t payload_bytes(const struct netdam_descriptor *descriptor, uint32_t length)
{
    unsigned flags = netdam_op_flags(descriptor->opcode);

    if (descriptor->opcode == NETDAM_OP_CAS) {
        return NETDAM_CAS_OPERANDS * length;
    }
    return (flags & (NETDAM_OPF_PAYLOAD | NETDAM_OPF_ATOMIC)) != 0 ? length : 0;
}

unsigned ndfw_wire_flags(const struct netdam_descriptor *descriptor)
{
    return ((descriptor->flags & NETDAM_DESCRIPTOR_RELAXED) != 0 ? NETDAM_FLAG_RELAXED : 0u) |
           ((descriptor->flags & NETDAM_DESCRIPTOR_ORDERED) != 0 ? NETDAM_FLAG_ORDERED : 0u) |
           ((descriptor->flags & NETDAM_DESCRIPTOR_UNRELIABLE) != 0 ? NETDAM_FLAG_UNRELIABLE : 0u) |
           ((descriptor->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 ? NETDAM_FLAG_IMMEDIATE : 0u) |
           ((descriptor->flags & NETDAM_DESCRIPTOR_REPRODUCIBLE) != 0 ? NETDAM_FLAG_REPRODUCIBLE : 0u);
}

/* Of one packet: the immediate goes with the last. */
static unsigned packet_flags(const struct netdam_descriptor *descriptor, const struct ndfw_flight *flight)
{
    bool last = flight->offset + flight->length == descriptor->length;

    return (ndfw_wire_flags(descriptor) & ~(last ? 0u : (unsigned)NETDAM_FLAG_IMMEDIATE)) |
           (flight->tries != 0 ? NETDAM_FLAG_AGAIN : 0u);
}

/* Puts one packet of an operation on the wire. Payload is read from on-board memory now, whatever it was before. */
static enum ndfw_sent send_packet(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_sequence *sequence,
                                  uint64_t number, const struct ndfw_flight *flight, enum netdam_status *status)
{
    const struct ndfw_operation *operation = &fw->operations[flight->operation];
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    unsigned op_flags = netdam_op_flags(descriptor->opcode);
    bool from_memory = (op_flags & NETDAM_OPF_PAYLOAD) != 0;
    uint32_t payload_length = payload_bytes(descriptor, flight->length);
    unsigned flags = packet_flags(descriptor, flight);
    uint32_t bytes = ndfw_datagram_bytes(fw, payload_length, (flags & NETDAM_FLAG_IMMEDIATE) != 0, peer->tenant);
    bool has_crc = ndfw_has_crc(fw, payload_length, peer->tenant);
    struct ndfw_span spans[NDFW_SPANS_MAX];
    uint32_t span_count = 0;
    struct netdam_wire_segment *segment;
    uint8_t *datagram, *payload;
    uint32_t crc = 0;

    if (operation->tour != NDFW_NONE) {
        return ndfw_tour_send(fw, number, flight, status);
    }
    if (from_memory) {
        *status = ndfw_merge_spans(fw, operation, flight, spans, &span_count);
        if (*status != NETDAM_STATUS_OK) {
            return NDFW_SENT_LOCAL_ERROR;
        }
    }
    datagram = ndfw_frame_begin(fw, &peer->endpoint, flight->path, bytes);
    if (datagram == NULL) {
        return NDFW_SENT_PORT_FULL;
    }
    segment =
        put_request(fw, peer, peer->tenant, datagram, number, sequence == &peer->lane ? number - sequence->floor : 0,
                    flags, descriptor->immediate, payload_length);
    segment->opcode = descriptor->opcode;
    segment->operation = descriptor->operation;
    segment->type = descriptor->type;
    segment->length = netdam_be32_make(flight->length);
    if (needs_generation(descriptor->opcode)) {
        segment->key = netdam_be64_make(descriptor->remote_key);
        segment->address = netdam_be64_make(descriptor->remote_address + flight->offset);
        segment->generation = netdam_be64_make(peer->generation);
    }
    payload = (uint8_t *)(segment + 1);
    if (from_memory) {
        crc = ndfw_merge_load(fw, operation, spans, span_count, payload, has_crc);
    } else if (payload_length != 0) {
        memcpy(payload, &descriptor->u.operand[0], flight->length);
        if (descriptor->opcode == NETDAM_OP_CAS) {
            memcpy(payload + flight->length, &descriptor->u.operand[1], flight->length);
        }
        crc = has_crc ? ndfw_crc32c(fw, 0, payload, payload_length) : 0;
    }
    if (has_crc) {
        netdam_be32 be = netdam_be32_make(crc);

        memcpy(payload + payload_length, &be, sizeof(be));
    }
    ndfw_seal(fw, &peer->endpoint, datagram, bytes);
    ndfw_trace(fw, flight->tries != 0 ? NETDAM_FW_TRACE_RETRANSMIT : NETDAM_FW_TRACE_TX_REQUEST,
               flight->tries != 0 ? flight->tries : descriptor->opcode, peer->context, number);
    ndfw_frame_end(fw, &peer->endpoint, bytes);
    return NDFW_SENT_OK;
}

static void start_timer(const struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence,
                        struct ndfw_flight *flight)
{
    uint64_t due = fw->now_ns + ndfw_flight_rto_ns(fw, peer, flight);

    flight->sent_ns = fw->now_ns;
    ndfw_path_sent(peer, flight);
    if (due < sequence->deadline_ns) {
        sequence->deadline_ns = due;
    }
}

static bool modifies(const struct ndfw *fw, const struct ndfw_operation *operation)
{
    return operation->tour != NDFW_NONE ? ndfw_tour_stores(fw, operation)
                                        : (netdam_op_flags(operation->descriptor.opcode) & NETDAM_OPF_MODIFIES) != 0;
}

/* Sends again what expired or what a STALE asked for. Returns false if the port is full. */
static bool pump_again(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence)
{
    uint64_t end = sequence->next;

    for (uint64_t number = sequence->floor; sequence->again > 0 && number < end; number++) {
        struct ndfw_flight *flight = ndfw_flight_at(fw, sequence, number);
        enum netdam_status status;
        uint8_t last_path;

        if (number < sequence->floor || flight->state != NDFW_FLIGHT_AGAIN) {
            continue;
        }
        flight->tries = flight->tries == 0 ? 1 : flight->tries; /* no longer fit for measuring the round trip */
        last_path = flight->path;
        flight->path = ndfw_path_choose(fw, peer, flight);
        switch (send_packet(fw, peer, sequence, number, flight, &status)) {
        case NDFW_SENT_OK:
            ndfw_count(fw, NETDAM_COUNTER_RETRANSMISSIONS, 1);
            flight->state = NDFW_FLIGHT_SENT;
            sequence->again--;
            start_timer(fw, peer, sequence, flight);
            break;
        case NDFW_SENT_PORT_FULL:
            flight->path = last_path;
            return false;
        case NDFW_SENT_LOCAL_ERROR:
            /* What was sent before may have been executed: a modification is not refused any more, but given up. */
            if (modifies(fw, &fw->operations[flight->operation])) {
                status = NETDAM_STATUS_FLUSHED;
            }
            ndfw_flight_finish(fw, peer, sequence, number, status, 0);
            break;
        }
    }
    return true;
}

/* Takes the head of the peer's list out, or puts it at the tail. */
static void pass_turn(struct ndfw *fw, struct ndfw_peer *peer, bool again)
{
    uint32_t index = peer->list_head;
    struct ndfw_operation *operation = &fw->operations[index];

    peer->list_head = operation->next;
    if (peer->list_head == NDFW_NONE) {
        peer->list_tail = NDFW_NONE;
    }
    operation->listed = false;
    if (again) {
        ndfw_operation_list(fw, peer, index);
    }
}

enum emitted {
    EMITTED,
    EMITTED_LAST,
    EMIT_HELD,
    EMIT_WINDOW_FULL,
    EMIT_PORT_FULL,
    EMIT_ENDED, /* out of the list already */
};

static enum emitted emit(struct ndfw *fw, struct ndfw_peer *peer, uint32_t index)
{
    struct ndfw_operation *operation = &fw->operations[index];
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    struct ndfw_sequence *sequence = ndfw_sequence_for(peer, descriptor);
    uint32_t left = descriptor->length - operation->next_offset;
    uint32_t most =
        operation->tour != NDFW_NONE ? ndfw_tour_payload_max(fw, operation) : ndfw_packet_payload_max(peer, descriptor);
    struct ndfw_flight flight = {
        .operation = index,
        .offset = operation->next_offset,
        .length = (uint16_t)(left < most ? left : most),
        .state = NDFW_FLIGHT_SENT,
    };
    struct ndfw_flight *place;
    enum netdam_status status;

    if (sequence->next - sequence->floor >= fw->config.window ||
        peer->lane.flying + peer->laneless.flying >= peer->window || ndfw_peer_is_exhausted(peer)) {
        return EMIT_WINDOW_FULL;
    }
    if ((descriptor->flags & NETDAM_DESCRIPTOR_IMMEDIATE) != 0 && flight.length == left && operation->flights != 0) {
        operation->held = true;
        return EMIT_HELD;
    }
    flight.path = ndfw_path_choose(fw, peer, &flight);
    switch (send_packet(fw, peer, sequence, sequence->next, &flight, &status)) {
    case NDFW_SENT_PORT_FULL:
        return EMIT_PORT_FULL;
    case NDFW_SENT_LOCAL_ERROR:
        if (!ndfw_merge_split(fw, index)) {
            ndfw_operation_fail(fw, index, status, 0);
        }
        return EMIT_ENDED;
    case NDFW_SENT_OK:
        break;
    }
    place = ndfw_flight_at(fw, sequence, sequence->next);
    *place = flight;
    sequence->next++;
    sequence->flying++;
    operation->flights++;
    operation->next_offset += flight.length;
    operation->all_sent = operation->next_offset == descriptor->length;
    if (operation->tour != NDFW_NONE) {
        ndfw_tour_flies(fw, operation, sequence->next - 1);
    }
    start_timer(fw, peer, sequence, place);
    if ((descriptor->flags & NETDAM_DESCRIPTOR_UNRELIABLE) == 0) {
        return operation->all_sent ? EMITTED_LAST : EMITTED;
    }
    /* Nothing will be heard of it. */
    if (!operation->all_sent) {
        ndfw_flight_finish(fw, peer, sequence, sequence->next - 1, NETDAM_STATUS_OK, 0);
        return EMITTED;
    }
    pass_turn(fw, peer, false);
    ndfw_flight_finish(fw, peer, sequence, sequence->next - 1, NETDAM_STATUS_OK, 0);
    return EMIT_ENDED;
}

/* True if what waits may be sent; else the control timer is under way to make it so. */
static bool is_ready(struct ndfw *fw, struct ndfw_peer *peer)
{
    const struct netdam_descriptor *descriptor = &fw->operations[peer->list_head].descriptor;

    if (peer->resolved && (peer->generation != 0 || !needs_generation(descriptor->opcode))) {
        return true;
    }
    if (peer->control_deadline_ns == NETDAM_FW_NEVER) {
        peer->control_tries = 0;
        peer->control_deadline_ns = fw->now_ns;
    }
    ndfw_peer_timer(fw, peer);
    return false;
}

/*
 * The last number is used up: once everything has ended and the node knows it, numbers start anew under another
 * context.
 */
static bool renew_if_exhausted(struct ndfw *fw, struct ndfw_peer *peer)
{
    if (!ndfw_peer_is_exhausted(peer) || peer->lane.flying != 0 || peer->laneless.flying != 0) {
        return false;
    }
    if (ndfw_is_chain_context(fw, peer)) {
        if (ndfw_ways_are_confirmed(fw)) {
            ndfw_ways_renew(fw);
            ndfw_peer_renew(fw, peer);
            return true;
        }
    } else if (peer->confirmed == peer->lane.floor) {
        ndfw_peer_renew(fw, peer);
        peer->control_deadline_ns = NETDAM_FW_NEVER;
        return true;
    } else if (peer->control_tries == 0) {
        peer->control_deadline_ns = fw->now_ns;
        ndfw_peer_timer(fw, peer);
    }
    return false;
}

/* Whoever has nothing to send does not ask which paths there are. */
static bool is_at_work(const struct ndfw_peer *peer)
{
    return peer->list_head != NDFW_NONE || peer->lane.flying + peer->laneless.flying != 0;
}

bool ndfw_peer_pump(struct ndfw *fw, struct ndfw_peer *peer, uint64_t budget_end, bool *more)
{
    uint32_t turn = 0, passed_over = 0;

    if (peer->lane.again + peer->laneless.again != 0 && peer->resolved) {
        if (!pump_again(fw, peer, &peer->lane) || !pump_again(fw, peer, &peer->laneless)) {
            return false;
        }
    }
    if (peer->paths_retired != 0 && is_at_work(peer) && !ndfw_paths_probe(fw, peer)) {
        return false;
    }
    (void)renew_if_exhausted(fw, peer);
    while (peer->list_head != NDFW_NONE) {
        if (ndfw_is_chain_context(fw, peer)) {
            uint32_t head = peer->list_head;

            if (!ndfw_tour_is_ready(fw, &fw->operations[head])) {
                /* Others may visit nodes that are known. */
                if (passed_over++ == fw->config.chains) {
                    return true;
                }
                if (peer->list_head == head) {
                    pass_turn(fw, peer, true);
                }
                continue;
            }
        } else if (!is_ready(fw, peer)) {
            return true;
        }
        if (fw->work_bytes >= budget_end) {
            *more = true;
            return true;
        }
        switch (emit(fw, peer, peer->list_head)) {
        case EMITTED:
            if (++turn == TURN_PACKETS) {
                turn = 0;
                pass_turn(fw, peer, true);
            }
            break;
        case EMITTED_LAST:
        case EMIT_HELD:
            turn = 0;
            pass_turn(fw, peer, false);
            break;
        case EMIT_ENDED:
            turn = 0;
            break;
        case EMIT_WINDOW_FULL:
            /* The last number may have ended at once: nothing is heard of what is UNRELIABLE. */
            if (!renew_if_exhausted(fw, peer)) {
                return true;
            }
            break;
        case EMIT_PORT_FULL:
            return false;
        }
    }
    return true;
}
