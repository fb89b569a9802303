/* SPDX-License-Identifier: BSD-3-Clause */
/* Requester contexts: numbers, windows, answers, time-outs, generations. */
#include "ndfw.h"

#include "path.h"

#define WINDOW_START 32u
#define WINDOW_LEAST 4u
/* What is lost again and again while others are answered is left to its timer, and that to its bound. */
#define REPAIRS_MOST 8u

bool ndfw_uses_lane(unsigned opcode, bool without)
{
    return (netdam_op_flags(opcode) & NETDAM_OPF_MODIFIES) != 0 && !without;
}

struct ndfw_sequence *ndfw_sequence_for(struct ndfw_peer *peer, const struct netdam_descriptor *descriptor)
{
    bool without = (descriptor->flags & (NETDAM_DESCRIPTOR_RELAXED | NETDAM_DESCRIPTOR_UNRELIABLE)) != 0;

    return descriptor->opcode == NETDAM_OP_CHAIN || ndfw_uses_lane(descriptor->opcode, without) ? &peer->lane
                                                                                                : &peer->laneless;
}

struct ndfw_flight *ndfw_flight_at(const struct ndfw *fw, const struct ndfw_sequence *sequence, uint64_t number)
{
    return &sequence->flights[number & (fw->config.window - 1)];
}

static void start_sequence(const struct ndfw *fw, struct ndfw_sequence *sequence)
{
    memset(sequence->flights, 0, fw->config.window * sizeof(sequence->flights[0]));
    sequence->floor = sequence->next = fw->config.first_number;
    sequence->deadline_ns = NETDAM_FW_NEVER;
    sequence->again = sequence->flying = 0;
}

/*
 * A context id that no open peer has; numbers start anew with it. The node may have begun another epoch since it was
 * heard of last, and nothing of this context can be from before: so it is asked.
 */
void ndfw_peer_renew(struct ndfw *fw, struct ndfw_peer *peer)
{
    peer->context = ndfw_random(fw);
    start_sequence(fw, &peer->lane);
    start_sequence(fw, &peer->laneless);
    peer->confirmed = peer->lane.floor;
    peer->generation = 0;
    ndfw_peer_index(fw);
}

static void start_context(struct ndfw *fw, struct ndfw_peer *peer)
{
    peer->in_use = true;
    peer->closing = false;
    peer->confirm_wanted = false;
    peer->srtt_ns = peer->rttvar_ns = peer->recovery_ns = peer->heard_ns = 0;
    peer->window = fw->config.window < WINDOW_START ? fw->config.window : WINDOW_START;
    peer->window_credit = 0;
    ndfw_paths_start(peer);
    peer->control_tries = 0;
    peer->control_deadline_ns = NETDAM_FW_NEVER;
    peer->list_head = peer->list_tail = NDFW_NONE;
    peer->deferred_head = peer->deferred_tail = peer->ordered = NDFW_NONE;
    memset(&peer->way, 0, sizeof(peer->way));
    peer->way.deadline_ns = NETDAM_FW_NEVER;
    ndfw_peer_renew(fw, peer);
}

void ndfw_peer_start(struct ndfw *fw, struct ndfw_peer *peer)
{
    start_context(fw, peer);
    peer->payload_max =
        netdam_payload_max(fw->config.mtu - (peer->endpoint.family == 6 ? NETDAM_IPV6_BYTES - NETDAM_IPV4_BYTES : 0u)) -
        (peer->tenant != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0u);
    peer->resolved = ndfw_net_resolve(fw, &peer->endpoint);
}

/* Its generations are the ways', and it has no link-layer address to wait for. */
void ndfw_chain_start(struct ndfw *fw)
{
    struct ndfw_peer *chain = ndfw_chain_context(fw);

    memset(&chain->endpoint, 0, sizeof(chain->endpoint));
    chain->tenant = 0;
    chain->path_count = (uint8_t)fw->config.paths;
    start_context(fw, chain);
    chain->resolved = true;
}

void ndfw_peer_index(struct ndfw *fw)
{
    ndfw_map_clear(&fw->peer_by_context);
    fw->peer_end = 0;
    for (uint32_t i = 0; i <= fw->config.peers; i++) {
        if (fw->peers[i].in_use) {
            ndfw_map_insert(&fw->peer_by_context, fw->peers[i].context, i);
            fw->peer_end = i < fw->config.peers ? i + 1 : fw->peer_end;
        }
    }
}

/* The context that an answer is for. For the answers of one tenant the contexts of others do not exist. */
static struct ndfw_peer *find_peer(struct ndfw *fw, const struct ndfw_packet *packet)
{
    const struct ndfw_map *map = &fw->peer_by_context;

    for (uint32_t at = ndfw_map_first(map, packet->context); map->slots[at] != 0; at = (at + 1) & map->mask) {
        struct ndfw_peer *peer = &fw->peers[map->slots[at] - 1];

        if (peer->context == packet->context) {
            /* The context of chains serves all tenants, but each chain one of them. */
            const struct ndfw_peer *node = ndfw_is_chain_context(fw, peer) ? ndfw_tour_answering(fw, packet) : peer;

            return node != NULL && node->tenant == packet->tenant ? peer : NULL;
        }
    }
    return NULL;
}

bool ndfw_peer_awaits(struct ndfw *fw, const struct ndfw_packet *packet)
{
    return find_peer(fw, packet) != NULL;
}

uint64_t ndfw_peer_rto_ns(const struct ndfw *fw, const struct ndfw_peer *peer, unsigned tries)
{
    uint64_t rto = peer->srtt_ns == 0 ? fw->config.rto_initial_ns : peer->srtt_ns + 4 * peer->rttvar_ns;

    if (rto < fw->config.rto_min_ns) {
        rto = fw->config.rto_min_ns;
    }
    while (tries-- > 0 && rto < fw->config.rto_max_ns) {
        rto *= 2;
    }
    return rto < fw->config.rto_max_ns ? rto : fw->config.rto_max_ns;
}

/* One packet more for each round trip without loss; half for each with losses that are congestion's. */
static void grow_window(const struct ndfw *fw, struct ndfw_peer *peer)
{
    if (++peer->window_credit >= peer->window) {
        peer->window_credit = 0;
        peer->window += peer->window < fw->config.window;
    }
}

static void shrink_window(const struct ndfw *fw, struct ndfw_peer *peer, uint64_t sent_ns)
{
    if (sent_ns < peer->recovery_ns) {
        return;
    }
    peer->recovery_ns = fw->now_ns;
    peer->window_credit = 0;
    peer->window = peer->window / 2 > WINDOW_LEAST ? peer->window / 2 : WINDOW_LEAST;
    if (peer->window > fw->config.window) {
        peer->window = fw->config.window;
    }
}

void ndfw_flight_finish(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence, uint64_t number,
                        enum netdam_status status, uint8_t hop)
{
    struct ndfw_flight *flight = ndfw_flight_at(fw, sequence, number);
    uint32_t index = flight->operation;
    struct ndfw_operation *operation = &fw->operations[index];

    ndfw_path_left(peer, flight);
    sequence->again -= flight->state == NDFW_FLIGHT_AGAIN;
    flight->state = NDFW_FLIGHT_FINISHED;
    sequence->flying--;
    operation->flights--;
    if (operation->tour != NDFW_NONE) {
        ndfw_tour_lands(fw, operation);
    }
    while (sequence->floor < sequence->next &&
           ndfw_flight_at(fw, sequence, sequence->floor)->state == NDFW_FLIGHT_FINISHED) {
        sequence->floor++;
    }
    if (sequence->flying == 0) {
        sequence->deadline_ns = NETDAM_FW_NEVER;
        if (sequence == &peer->lane && !ndfw_is_chain_context(fw, peer) && peer->generation != 0 &&
            (peer->confirm_wanted || peer->control_deadline_ns == NETDAM_FW_NEVER)) {
            peer->control_tries = 0;
            peer->control_deadline_ns = fw->now_ns + (peer->confirm_wanted ? 0 : fw->config.confirm_idle_ns);
            peer->confirm_wanted = false;
        }
    }
    if (status == NETDAM_STATUS_OK) {
        operation->done_bytes += flight->length;
        if (operation->held && operation->flights == 0) {
            operation->held = false;
            ndfw_operation_list(fw, peer, index);
        }
        ndfw_operation_settle(fw, index);
    } else if (netdam_status_class_of(status) != NETDAM_STATUS_CLASS_REFUSED || !ndfw_merge_split(fw, index)) {
        ndfw_operation_fail(fw, index, status, hop);
    }
}

/* Ends every flight of a sequence that is under way. */
static void finish_all(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence,
                       enum netdam_status status)
{
    uint64_t end = sequence->next;

    for (uint64_t number = sequence->floor; number < end; number++) {
        if (ndfw_flight_at(fw, sequence, number)->state != NDFW_FLIGHT_FINISHED) {
            ndfw_flight_finish(fw, peer, sequence, number, status, 0);
        }
    }
}

void ndfw_peer_fail_waiting(struct ndfw *fw, struct ndfw_peer *peer, enum netdam_status status)
{
    while (peer->list_head != NDFW_NONE) {
        ndfw_operation_fail(fw, peer->list_head, status, 0);
    }
}

void ndfw_peer_release_if_closed(struct ndfw *fw, struct ndfw_peer *peer)
{
    if (peer->closing && peer->confirmed == peer->lane.floor && ndfw_way_is_confirmed(&peer->way)) {
        peer->in_use = false;
        peer->serial++;
        ndfw_peer_index(fw);
    }
}

/* The entry stays until the node has heard that nothing of this context is unfinished, or has not answered to that. */
void ndfw_peer_close(struct ndfw *fw, struct ndfw_peer *peer)
{
    ndfw_collectives_fail_peer(fw, (uint32_t)(peer - fw->peers));
    finish_all(fw, peer, &peer->lane, NETDAM_STATUS_FLUSHED);
    finish_all(fw, peer, &peer->laneless, NETDAM_STATUS_FLUSHED);
    ndfw_peer_fail_waiting(fw, peer, NETDAM_STATUS_FLUSHED);
    ndfw_tour_fail_peer(fw, (uint32_t)(peer - fw->peers), NETDAM_STATUS_FLUSHED, true);
    peer->closing = true;
    peer->way.wanted = false;
    peer->way.tries = 0;
    peer->way.deadline_ns = fw->now_ns;
    peer->control_tries = 0;
    peer->control_deadline_ns = fw->now_ns;
    ndfw_peer_release_if_closed(fw, peer);
}

void ndfw_flight_again(struct ndfw_peer *peer, struct ndfw_sequence *sequence, struct ndfw_flight *flight)
{
    if (flight->state == NDFW_FLIGHT_SENT) {
        ndfw_path_left(peer, flight);
        flight->state = NDFW_FLIGHT_AGAIN;
        sequence->again++;
    }
}

static void send_all_again(const struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence)
{
    for (uint64_t number = sequence->floor; number < sequence->next; number++) {
        ndfw_flight_again(peer, sequence, ndfw_flight_at(fw, sequence, number));
    }
}

/*
 * STALE concerns the whole lane, and only if it echoes the generation that this context uses: any other is a late copy.
 * Within an epoch nothing that was executed can have been forgotten, so everything goes out again under its old number.
 * Across epochs that is not known, and somebody may have written in between: what was sent ends as UNKNOWN.
 */
static void receive_stale(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_packet *packet)
{
    uint64_t before = peer->generation;

    if (packet->echo != before || packet->generation == 0 || packet->generation == before) {
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_UNMATCHED, 1);
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_RESPONSES_MATCHED, 1);
    peer->generation = packet->generation;
    peer->control_tries = 0;
    peer->control_deadline_ns = NETDAM_FW_NEVER;
    /* The node has no lane of this context under the old generation: nothing is left to confirm. */
    peer->confirmed = peer->lane.floor;
    if (before != 0 && netdam_generation_epoch(before) != netdam_generation_epoch(peer->generation)) {
        finish_all(fw, peer, &peer->lane, NETDAM_STATUS_UNKNOWN);
    } else {
        send_all_again(fw, peer, &peer->lane);
    }
    send_all_again(fw, peer, &peer->laneless);
    ndfw_peer_release_if_closed(fw, peer);
}

static void receive_confirmed(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_packet *packet)
{
    /* Who is asked for the generation may not confirm none. */
    if (packet->status == NETDAM_STATUS_OK && packet->generation == peer->generation && packet->generation != 0 &&
        packet->number <= peer->lane.floor && packet->number >= peer->confirmed) {
        /* Somebody listens, if late. What a context that is being closed asks does not change: then late is no excuse. */
        if (packet->number > peer->confirmed && !peer->closing) {
            peer->control_tries = 0;
        }
        peer->confirmed = packet->number;
        if (peer->lane.flying == 0 && peer->confirmed == peer->lane.floor) {
            peer->control_deadline_ns = NETDAM_FW_NEVER;
        }
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_MATCHED, 1);
        ndfw_peer_release_if_closed(fw, peer);
    } else {
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_UNMATCHED, 1);
    }
}

/* Stores what a READ or ECHO returned. The region may have gone since the request was sent. */
static enum netdam_status store_returned(struct ndfw *fw, const struct ndfw_operation *operation,
                                         const struct ndfw_flight *flight, const struct ndfw_packet *packet)
{
    struct ndfw_buffer returned = {.pieces = {operation->returned}, .count = 1};
    struct ndfw_span spans[NETDAM_LIST_MAX];
    uint32_t count;
    enum netdam_status status =
        ndfw_buffer_spans(fw, operation->tour != NDFW_NONE ? &returned : &operation->buffer, flight->offset,
                          flight->length, NETDAM_PERMISSION_LOCAL_WRITE, spans, &count);

    if (status == NETDAM_STATUS_OK) {
        ndfw_spans_store(fw, spans, count, packet->payload);
    }
    return status;
}

/* Of chains, times are kept per hop: how long one takes depends on how many nodes it visits. */
static uint64_t stretch(const struct ndfw *fw, const struct ndfw_flight *flight)
{
    const struct ndfw_operation *operation = &fw->operations[flight->operation];

    return operation->tour != NDFW_NONE ? (ndfw_tour_nodes(fw, operation) + 1) / 2 + 1 : 1;
}

static uint32_t returned_bytes(unsigned opcode, const struct ndfw_flight *flight)
{
    return (netdam_op_flags(opcode) & (NETDAM_OPF_RETURNS | NETDAM_OPF_ATOMIC)) != 0 ? flight->length : 0;
}

/*
 * An answer to a packet says that those sent before it should have been answered by now: one that is late by more than
 * round trips on its path vary is sent again without waiting for its timer. So many times only, so that there is a bound.
 */
static void repair_losses(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence, uint64_t answered,
                          uint64_t sent_ns)
{
    if (peer->srtt_ns == 0) {
        return;
    }
    for (uint64_t number = sequence->floor; number < answered; number++) {
        struct ndfw_flight *flight = ndfw_flight_at(fw, sequence, number);

        if (flight->state == NDFW_FLIGHT_SENT && flight->path != NDFW_PATH_NONE && flight->repairs < REPAIRS_MOST &&
            flight->sent_ns <= sent_ns &&
            fw->now_ns - flight->sent_ns > ndfw_path_late_ns(peer, flight) * stretch(fw, flight)) {
            flight->repairs++;
            flight->timed = false;
            ndfw_path_lost(fw, peer, flight);
            if (ndfw_peer_is_congested(peer)) {
                shrink_window(fw, peer, flight->sent_ns);
            }
            ndfw_flight_again(peer, sequence, flight);
        }
    }
}

/* What a node may say: not what only the requester itself can find out. */
static bool is_remote(unsigned status)
{
    return netdam_status_class_of(status) <= NETDAM_STATUS_CLASS_RETRY;
}

/* The flight that an answer ends, or NULL. */
static struct ndfw_flight *match(const struct ndfw *fw, const struct ndfw_sequence *sequence,
                                 const struct ndfw_packet *packet)
{
    struct ndfw_flight *flight = ndfw_flight_at(fw, sequence, packet->number);
    const struct netdam_descriptor *descriptor;

    if (packet->number < sequence->floor || packet->number >= sequence->next || flight->state == NDFW_FLIGHT_FINISHED ||
        !is_remote(packet->status)) {
        return NULL;
    }
    descriptor = &fw->operations[flight->operation].descriptor;
    if (descriptor->opcode == NETDAM_OP_TRANSACTION) {
        return ndfw_transaction_agrees(&fw->operations[flight->operation], packet) ? flight : NULL;
    }
    if (fw->operations[flight->operation].tour != NDFW_NONE) {
        return ndfw_tour_matches(fw, flight, packet) ? flight : NULL;
    }
    if (packet->status == NETDAM_STATUS_OK &&
        (packet->opcode != descriptor->opcode || packet->payload_length != returned_bytes(packet->opcode, flight))) {
        return NULL;
    }
    return flight;
}

/* The node is short of room for others: it hears as soon as nothing of this context is under way. */
static void heed_wish(struct ndfw *fw, struct ndfw_peer *peer, const struct ndfw_packet *packet)
{
    if (ndfw_is_chain_context(fw, peer)) {
        ndfw_tour_answering(fw, packet)->way.confirm_wanted = true;
    } else {
        peer->confirm_wanted = true;
    }
}

void ndfw_peer_receive(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_peer *peer = find_peer(fw, packet);
    struct ndfw_sequence *sequence;
    struct ndfw_flight *flight;
    struct ndfw_operation *operation;
    uint64_t sent_ns;
    enum netdam_status status = (enum netdam_status)packet->status;

    bool chain = peer != NULL && ndfw_is_chain_context(fw, peer);

    /* A CONFIRM for chains does not go where chains go. */
    if (peer != NULL && !(chain && packet->opcode == NETDAM_OP_CONFIRM)) {
        ndfw_path_answered(fw, peer, packet->to_port);
    }
    if (peer != NULL && status == NETDAM_STATUS_STALE) {
        (chain ? ndfw_tour_stale(fw, packet) : receive_stale(fw, peer, packet));
        return;
    }
    if (peer != NULL && packet->opcode == NETDAM_OP_CONFIRM) {
        (chain ? ndfw_tour_confirmed(fw, packet) : receive_confirmed(fw, peer, packet));
        return;
    }
    sequence = peer == NULL                                                                 ? NULL
               : chain                                                                      ? &peer->lane
               : ndfw_uses_lane(packet->opcode, (packet->flags & NETDAM_FLAG_RELAXED) != 0) ? &peer->lane
                                                                                            : &peer->laneless;
    flight = peer == NULL ? NULL : match(fw, sequence, packet);
    /* An answer without opcode (BAD_VERSION) may belong to either sequence. */
    if (peer != NULL && flight == NULL && packet->opcode == 0) {
        sequence = &peer->lane;
        flight = match(fw, sequence, packet);
    }
    if (flight == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_RESPONSES_UNMATCHED, 1);
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_RESPONSES_MATCHED, 1);
    peer->heard_ns = fw->now_ns;
    if (flight->tries == 0) { /* Karn: else it is not known which of them was answered */
        uint64_t took_ns = fw->now_ns - flight->sent_ns;

        ndfw_path_measure(fw, peer, flight, chain ? took_ns / stretch(fw, flight) : took_ns);
    }
    sent_ns = flight->sent_ns;
    if (status == NETDAM_STATUS_BUSY) {
        /* The flight stays as it is: its timer sends it again. */
        ndfw_path_left(peer, flight);
        flight->path = NDFW_PATH_NONE;
        shrink_window(fw, peer, flight->sent_ns);
        return;
    }
    grow_window(fw, peer);
    if ((packet->flags & NETDAM_FLAG_CONFIRM_WANTED) != 0) {
        heed_wish(fw, peer, packet);
    }
    operation = &fw->operations[flight->operation];
    if (operation->descriptor.opcode == NETDAM_OP_TRANSACTION) {
        status = ndfw_transaction_receive(fw, operation, flight, packet);
    } else if (status == NETDAM_STATUS_OK) {
        unsigned flags = netdam_op_flags(packet->opcode);

        if (chain ? ndfw_tour_returns(fw, operation) : (flags & NETDAM_OPF_RETURNS) != 0) {
            status = store_returned(fw, operation, flight, packet);
        } else if (!chain && (flags & NETDAM_OPF_ATOMIC) != 0) {
            memcpy(&operation->result, packet->payload, flight->length);
        }
    }
    operation->partial |= chain && status != NETDAM_STATUS_OK && ndfw_tour_stored_before(fw, operation, packet->hop);
    ndfw_flight_finish(fw, peer, sequence, packet->number, status, packet->hop);
    repair_losses(fw, peer, sequence, packet->number, sent_ns);
}

uint64_t ndfw_flight_rto_ns(const struct ndfw *fw, const struct ndfw_peer *peer, const struct ndfw_flight *flight)
{
    uint64_t rto = ndfw_peer_rto_ns(fw, peer, flight->tries) * stretch(fw, flight);

    return rto < fw->config.rto_max_ns ? rto : fw->config.rto_max_ns;
}

/* Looks for flights whose time is over, and for the next one's. */
static void expire(struct ndfw *fw, struct ndfw_peer *peer, struct ndfw_sequence *sequence)
{
    uint64_t end = sequence->next;
    uint64_t deadline = NETDAM_FW_NEVER;
    bool silent = false, doubtful = false;

    if (fw->now_ns < sequence->deadline_ns) {
        return;
    }
    for (uint64_t number = sequence->floor; number < end; number++) {
        struct ndfw_flight *flight = ndfw_flight_at(fw, sequence, number);
        uint64_t due;

        if (flight->state != NDFW_FLIGHT_SENT) {
            continue;
        }
        due = flight->sent_ns + ndfw_flight_rto_ns(fw, peer, flight);
        if (due > fw->now_ns) {
            deadline = due < deadline ? due : deadline;
        } else if (flight->tries >= fw->config.retries) {
            silent |= peer->heard_ns < flight->sent_ns;
            ndfw_count(fw, NETDAM_COUNTER_TIMEOUTS, 1);
            ndfw_flight_finish(fw, peer, sequence, number, NETDAM_STATUS_TIMEOUT,
                               ndfw_is_chain_context(fw, peer) ? NETDAM_HOP_NONE : 0);
        } else {
            doubtful |= flight->tries >= NDFW_DOUBT_TRIES && peer->heard_ns < flight->sent_ns;
            shrink_window(fw, peer, flight->sent_ns);
            flight->timed = true;
            ndfw_path_lost(fw, peer, flight);
            ndfw_flight_again(peer, sequence, flight);
            flight->tries++;
        }
    }
    sequence->deadline_ns = sequence->flying == 0 ? NETDAM_FW_NEVER : deadline;
    if (ndfw_is_chain_context(fw, peer)) {
        return; /* other chains visit other nodes */
    }
    if (doubtful) {
        ndfw_net_doubt(fw, &peer->endpoint);
    }
    /* Nobody there: what waits behind is not made to find that out a few packets at a time. */
    if (silent) {
        ndfw_peer_fail_waiting(fw, peer, NETDAM_STATUS_TIMEOUT);
    }
}

bool ndfw_peer_is_exhausted(const struct ndfw_peer *peer)
{
    return peer->lane.next == NETDAM_NUMBER_MAX || peer->laneless.next == NETDAM_NUMBER_MAX;
}

static bool has_to_confirm(const struct ndfw_peer *peer)
{
    return peer->lane.flying == 0 && peer->confirmed != peer->lane.floor && peer->generation != 0;
}

/* Another one for each try: the first may be dead. */
static uint32_t control_path(const struct ndfw_peer *peer)
{
    return ((uint32_t)peer->path_steady + peer->control_tries) % peer->path_count;
}

/*
 * The control timer serves, one at a time: resolving the link-layer address, learning the generation, and, when idle,
 * confirming the floor. The first two hold back operations, which fail when nobody answers.
 */
static void control(struct ndfw *fw, struct ndfw_peer *peer)
{
    bool holding = peer->list_head != NDFW_NONE && (!peer->resolved || peer->generation == 0);

    if (fw->now_ns < peer->control_deadline_ns) {
        return;
    }
    if (!holding && !has_to_confirm(peer)) {
        peer->control_deadline_ns = NETDAM_FW_NEVER;
        peer->control_tries = 0;
        return;
    }
    if (peer->control_tries > fw->config.retries) {
        peer->control_deadline_ns = NETDAM_FW_NEVER;
        peer->control_tries = 0;
        if (holding) {
            ndfw_peer_fail_waiting(fw, peer, peer->resolved ? NETDAM_STATUS_TIMEOUT : NETDAM_STATUS_UNREACHABLE);
        } else {
            peer->confirmed = peer->lane.floor; /* nobody listens; the node will give the lane up by itself */
            ndfw_peer_release_if_closed(fw, peer);
        }
        return;
    }
    if (!peer->resolved) {
        ndfw_net_solicit(fw, &peer->endpoint);
    } else if (!ndfw_send_confirm(fw, peer, peer, peer->generation, control_path(peer))) {
        return; /* the port is full: as soon as it has room */
    } else if (peer->control_tries >= NDFW_DOUBT_TRIES) {
        ndfw_net_doubt(fw, &peer->endpoint);
    }
    peer->control_deadline_ns = fw->now_ns + ndfw_peer_rto_ns(fw, peer, peer->control_tries);
    peer->control_tries++;
}

void ndfw_peer_timer(struct ndfw *fw, struct ndfw_peer *peer)
{
    expire(fw, peer, &peer->lane);
    expire(fw, peer, &peer->laneless);
    if (!ndfw_is_chain_context(fw, peer)) {
        control(fw, peer);
        ndfw_way_timer(fw, peer);
    }
}

uint64_t ndfw_peer_next_ns(const struct ndfw_peer *peer)
{
    uint64_t next =
        peer->lane.deadline_ns < peer->laneless.deadline_ns ? peer->lane.deadline_ns : peer->laneless.deadline_ns;

    next = peer->control_deadline_ns < next ? peer->control_deadline_ns : next;
    return peer->way.deadline_ns < next ? peer->way.deadline_ns : next;
}
