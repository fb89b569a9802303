/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives: one descriptor on each node, and the devices do the rest. Each member tells the others that it has
 * arrived; then it sends tours that add up its own block, and broadcasts it; then it tells that it is done. The member
 * that will store a block originates its tours, so that no other node's tour reads what this one stores.
 */
#include "members.h"

/* Packets of one tour or broadcast: long enough to fill the pipe, short enough that broadcasts begin early. */
#define PART_PACKETS 16u

enum state {
    STATE_ARRIVE, /* tells the others, waits for them */
    STATE_WORK,
    STATE_DONE,    /* tells the others, waits for them */
    STATE_FAILING, /* ends what is under way, finds out by whom it failed, tells the others */
    STATE_FLUSHED, /* over as soon as its parts have been ended */
};

enum slot_state {
    SLOT_FREE,
    SLOT_REDUCING,
    SLOT_REDUCED, /* the broadcast waits for room */
    SLOT_GATHERING,
};

/* Kinds of children; below, the slots. */
#define CHILD_TELL  100u
#define CHILD_PROBE 200u /* + member */

#define WORD_ERROR   (UINT64_C(1) << 63)
#define WORD_PASS_ON (UINT64_C(1) << 62) /* who tells it could not tell all */

/* For the others: who has refused by itself is at fault, whatever its list says of others. */
static uint64_t make_error(const struct ndfw_collective *c)
{
    uint64_t culprit = c->refused ? c->rank : c->culprit;

    return WORD_ERROR | culprit << 40 | (uint64_t)c->status << 32 | c->instance;
}

static bool reduces(const struct ndfw_collective *c)
{
    return c->opcode == NETDAM_OP_ALL_REDUCE || c->opcode == NETDAM_OP_REDUCE_SCATTER;
}

static bool gathers(const struct ndfw_collective *c)
{
    return c->opcode == NETDAM_OP_ALL_REDUCE || c->opcode == NETDAM_OP_ALL_GATHER || c->opcode == NETDAM_OP_BROADCAST;
}

/* Own memory from an address of the own region, or NULL if the region has gone. */
static uint8_t *own_memory(struct ndfw *fw, const struct ndfw_collective *c, uint64_t address, uint64_t bytes,
                           enum netdam_fw_access access)
{
    uint64_t offset;

    if (ndfw_local_access(fw, c->members[c->rank].region, c->serial, address, bytes,
                          NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, &offset) != NETDAM_STATUS_OK) {
        return NULL;
    }
    return ndfw_memory(fw, offset, bytes, access);
}

static struct ndfw_piece own_piece(const struct ndfw_collective *c, uint64_t address, uint32_t bytes)
{
    return (struct ndfw_piece){
        .address = address, .region = c->members[c->rank].region, .serial = c->serial, .length = bytes};
}

/* Place of a member's words: that it has arrived, and that it is done. */
static uint64_t word_address(const struct ndfw_collective *c, uint32_t at, uint32_t of)
{
    return c->members[at].control + of * 16u;
}

static void fail(struct ndfw *fw, struct ndfw_collective *c, enum netdam_status status, uint32_t culprit)
{
    if (c->state == STATE_FAILING || c->state == STATE_FLUSHED) {
        return;
    }
    c->state = STATE_FAILING;
    c->status = (uint8_t)status;
    c->culprit = (uint8_t)culprit;
    c->asked = c->informed = 1;
    c->told = false;
    fw->collective_due = true;
    ndfw_operations_end(fw, (uint32_t)(c - fw->collectives));
}

/* ---- children ---- */

static bool is_room(const struct ndfw *fw)
{
    return fw->operation_free != NDFW_NONE && fw->tour_free != NDFW_NONE;
}

static struct ndfw_operation *new_child(struct ndfw *fw, struct ndfw_collective *c, uint32_t kind,
                                        const struct netdam_descriptor *descriptor, uint32_t *index)
{
    struct ndfw_operation *child;

    *index = fw->operation_free;
    child = &fw->operations[*index];
    fw->operation_free = child->next;
    memset(child, 0, sizeof(*child));
    child->descriptor = *descriptor;
    child->queue = c->queue;
    child->tour = NDFW_NONE;
    child->parent = (uint32_t)(c - fw->collectives);
    child->kind = kind;
    child->in_use = true;
    c->children++;
    return child;
}

/* A chain over all other members, in the order of the ring. There is room for it. */
static void start_chain(struct ndfw *fw, struct ndfw_collective *c, uint32_t kind, struct netdam_segment segment,
                        uint64_t source, uint64_t result, uint32_t bytes,
                        uint64_t (*address)(const struct ndfw_collective *, uint32_t))
{
    struct netdam_descriptor descriptor = {
        .opcode = NETDAM_OP_CHAIN, .flags = c->flags, .length = bytes, .list_count = (uint8_t)(c->count - 1)};
    struct ndfw_tour *tour = &fw->tours[fw->tour_free];
    struct ndfw_operation *child;
    enum netdam_status status;
    uint32_t index;
    uint8_t hop = NETDAM_HOP_NONE;

    for (uint32_t i = 1; i < c->count; i++) {
        uint32_t member = ndfw_member_after(c, i);

        segment.peer = c->members[member].peer;
        segment.key = c->members[member].key;
        tour->segments[i - 1] = segment;
        tour->segments[i - 1].address = segment.address + address(c, member);
    }
    tour->count = c->count - 1;
    status = ndfw_tour_prepare(fw, tour, c->flags, bytes, &hop);
    if (status != NETDAM_STATUS_OK) {
        fail(fw, c, status, ndfw_member_of_hop(c, hop));
        return;
    }
    child = new_child(fw, c, kind, &descriptor, &index);
    child->peer = fw->config.peers;
    child->buffer.count = 1;
    child->buffer.pieces[0] = own_piece(c, source, bytes);
    child->returned = own_piece(c, result, bytes);
    ndfw_tour_take(fw, child);
    ndfw_operation_list(fw, ndfw_chain_context(fw), index);
}

/* A request to one member. There is room for it. */
static void start_request(struct ndfw *fw, struct ndfw_collective *c, uint32_t kind, uint32_t member, unsigned opcode,
                          uint32_t bytes)
{
    struct netdam_descriptor descriptor = {.opcode = (uint8_t)opcode, .peer = c->members[member].peer, .length = bytes};
    struct ndfw_operation *child;
    uint32_t index;

    if (opcode == NETDAM_OP_WRITE) {
        descriptor.remote_key = c->members[member].key;
        descriptor.remote_address = word_address(c, member, c->rank);
    }
    if (!fw->peers[descriptor.peer].in_use || fw->peers[descriptor.peer].closing) {
        return;
    }
    child = new_child(fw, c, kind, &descriptor, &index);
    child->peer = descriptor.peer;
    child->buffer.count = 1;
    child->buffer.pieces[0] = own_piece(c, word_address(c, c->rank, c->rank), bytes);
    ndfw_operation_list(fw, &fw->peers[descriptor.peer], index);
}

/* One word to one member, without own memory, which may be what is wrong. There is room for it. */
static void start_word(struct ndfw *fw, struct ndfw_collective *c, uint32_t member, uint64_t value)
{
    struct netdam_descriptor descriptor = {.opcode = NETDAM_OP_SWAP,
                                           .type = NETDAM_TYPE_U64,
                                           .peer = c->members[member].peer,
                                           .length = 8,
                                           .remote_key = c->members[member].key,
                                           .remote_address = word_address(c, member, c->rank),
                                           .u.operand = {value}};
    uint32_t index;

    new_child(fw, c, CHILD_TELL, &descriptor, &index)->peer = descriptor.peer;
    ndfw_operation_list(fw, &fw->peers[descriptor.peer], index);
}

static uint64_t address_of_arrival(const struct ndfw_collective *c, uint32_t member)
{
    return word_address(c, member, c->rank);
}

static uint64_t address_of_done(const struct ndfw_collective *c, uint32_t member)
{
    return word_address(c, member, c->rank) + 8;
}

static uint64_t address_of_input(const struct ndfw_collective *c, uint32_t member)
{
    return c->members[member].input;
}

static uint64_t address_of_output(const struct ndfw_collective *c, uint32_t member)
{
    return c->members[member].output;
}

/* Stores an own word and, if there are others, sends it to them. False if it has to wait. */
static bool tell_all(struct ndfw *fw, struct ndfw_collective *c, uint32_t word)
{
    uint64_t value = c->instance;
    uint64_t address = word_address(c, c->rank, c->rank) + 8u * word;
    uint8_t *memory;

    if (c->count > 1 && !is_room(fw)) {
        return false;
    }
    memory = own_memory(fw, c, address, 8, NETDAM_FW_ACCESS_WRITE);
    if (memory == NULL) {
        fail(fw, c, NETDAM_STATUS_FLUSHED, c->rank);
        return true;
    }
    ndfw_store(memory, (const uint8_t *)&value, 8);
    if (c->count > 1) {
        start_chain(fw, c, CHILD_TELL, (struct netdam_segment){.opcode = NETDAM_OP_WRITE}, address, 0, 8,
                    word == 0 ? address_of_arrival : address_of_done);
    }
    return true;
}

/* ---- what the others have told ---- */

/* A status that a member may have ended with: words come from outside. */
static enum netdam_status failure_of(unsigned status)
{
    enum netdam_status_class what = netdam_status_class_of(status);

    return what == NETDAM_STATUS_CLASS_NONE || what == NETDAM_STATUS_CLASS_SUCCESS || what == NETDAM_STATUS_CLASS_RETRY
               ? NETDAM_STATUS_UNKNOWN
               : (enum netdam_status)status;
}

/* The first member whose word has not come, or NDFW_NONE. */
static uint32_t missing(struct ndfw *fw, struct ndfw_collective *c, uint32_t word)
{
    uint32_t first = NDFW_NONE;

    for (uint32_t i = 1; i < c->count; i++) {
        uint32_t member = ndfw_member_after(c, i);
        const uint8_t *memory =
            own_memory(fw, c, word_address(c, c->rank, member) + 8u * word, 8, NETDAM_FW_ACCESS_READ);
        uint64_t value;

        if (memory == NULL) {
            fail(fw, c, NETDAM_STATUS_FLUSHED, c->rank);
            return member;
        }
        value = ndfw_element_load(memory, 8);
        if ((value & WORD_ERROR) != 0 && (uint32_t)value == c->instance) {
            uint32_t culprit = value >> 40 & 0xff;

            fail(fw, c, failure_of(value >> 32 & 0xff), culprit < c->count ? culprit : NETDAM_HOP_NONE);
            c->told = (value & WORD_PASS_ON) == 0;
            return member;
        }
        if ((int32_t)((uint32_t)value - c->instance) < 0 && first == NDFW_NONE) {
            first = member;
        }
    }
    return first;
}

static void probe(struct ndfw *fw, struct ndfw_collective *c, uint32_t member)
{
    if (fw->operation_free != NDFW_NONE) {
        start_request(fw, c, CHILD_PROBE + member, member, NETDAM_OP_ECHO, 0);
    }
}

/* Waits for the others' words. From time to time the first that is missing is asked whether it is alive. */
static bool all_told(struct ndfw *fw, struct ndfw_collective *c, uint32_t word)
{
    uint32_t member = missing(fw, c, word);

    if (member == NDFW_NONE) {
        return true;
    }
    if (c->state != STATE_FAILING && fw->now_ns >= c->give_up_ns) {
        fail(fw, c, NETDAM_STATUS_TIMEOUT, member);
    } else if (c->state != STATE_FAILING && fw->now_ns >= c->probe_ns) {
        c->probe_ns = fw->now_ns + fw->config.rto_max_ns;
        if (c->children == 0) {
            probe(fw, c, member);
        }
    }
    return false;
}

/* ---- the work ---- */

/* From the own input to the own output, where a member's own part does not come by the wire. */
static bool copy_own(struct ndfw *fw, struct ndfw_collective *c, uint64_t at, uint32_t bytes)
{
    const struct netdam_member *own = &c->members[c->rank];
    const uint8_t *from;
    uint8_t *to;

    if (own->input == own->output) {
        return true;
    }
    from = own_memory(fw, c, own->input + at, bytes, NETDAM_FW_ACCESS_READ);
    to = own_memory(fw, c, own->output + at, bytes, NETDAM_FW_ACCESS_WRITE);
    if (from == NULL || to == NULL) {
        fail(fw, c, NETDAM_STATUS_FLUSHED, c->rank);
        return false;
    }
    ndfw_payload_store(fw, to, from, bytes);
    fw->work_bytes += bytes;
    return true;
}

static void start_slot(struct ndfw *fw, struct ndfw_collective *c, uint32_t index)
{
    struct ndfw_slot *slot = &c->slots[index];
    const struct netdam_member *own = &c->members[c->rank];
    uint64_t most = (uint64_t)PART_PACKETS * c->packet_bytes;

    slot->at = c->next;
    slot->bytes = (uint32_t)(c->end - c->next < most ? c->end - c->next : most);
    c->next += slot->bytes;
    if (reduces(c) && c->count > 1) {
        slot->state = SLOT_REDUCING;
        start_chain(
            fw, c, index,
            (struct netdam_segment){
                .opcode = NETDAM_OP_LOAD_REDUCE, .operation = c->operation_code, .type = c->type, .address = slot->at},
            own->input + slot->at, own->output + slot->at, slot->bytes, address_of_input);
    } else if (copy_own(fw, c, slot->at, slot->bytes)) {
        slot->state = gathers(c) && c->count > 1 ? SLOT_REDUCED : SLOT_FREE;
    }
}

static void broadcast_slot(struct ndfw *fw, struct ndfw_collective *c, uint32_t index)
{
    struct ndfw_slot *slot = &c->slots[index];

    slot->state = SLOT_GATHERING;
    start_chain(fw, c, index, (struct netdam_segment){.opcode = NETDAM_OP_WRITE, .address = slot->at},
                c->members[c->rank].output + slot->at, 0, slot->bytes, address_of_output);
}

/* Returns true if there is more to do at once. */
static bool work(struct ndfw *fw, struct ndfw_collective *c, uint64_t budget_end)
{
    uint32_t busy = 0;

    /* Others may know already that it will fail. */
    (void)missing(fw, c, 1);
    for (uint32_t i = 0; i < NDFW_SLOTS && c->state == STATE_WORK; i++) {
        struct ndfw_slot *slot = &c->slots[i];

        if (fw->work_bytes >= budget_end) {
            return true;
        }
        if (slot->state == SLOT_REDUCED && is_room(fw)) {
            broadcast_slot(fw, c, i);
        } else if (slot->state == SLOT_FREE && c->next < c->end && (c->count == 1 || is_room(fw))) {
            start_slot(fw, c, i);
        }
        busy += slot->state != SLOT_FREE;
    }
    if (c->state == STATE_WORK && busy == 0 && c->next == c->end) {
        c->state = STATE_DONE;
        c->told = false;
        c->probe_ns = fw->now_ns + fw->config.rto_max_ns;
        return true;
    }
    return c->count == 1 && c->next < c->end;
}

static void finish(struct ndfw *fw, struct ndfw_collective *c)
{
    struct ndfw_operation *operation = &fw->operations[c->operation];
    uint32_t index = c->operation;

    if (operation->status == NETDAM_STATUS_OK) {
        operation->status = c->status;
        operation->hop = c->culprit;
    }
    operation->done_bytes = operation->status == NETDAM_STATUS_OK ? operation->descriptor.length : 0;
    operation->partial = operation->status != NETDAM_STATUS_OK && c->worked;
    operation->collective = NDFW_NONE;
    operation->flights = 0;
    c->operation = NDFW_NONE;
    fw->collective_count--;
    ndfw_operation_settle(fw, index);
}

/* All have been told who are to be told, and nothing of it is under way. */
static void finish_when_told(struct ndfw *fw, struct ndfw_collective *c)
{
    if (c->children == 0 && c->informed == c->count) {
        finish(fw, c);
    }
}

/* Stores the failure in the own words, for the others to be sent. False if they have gone. */
static bool note_failure(struct ndfw *fw, const struct ndfw_collective *c)
{
    uint64_t words[2];
    uint8_t *memory = own_memory(fw, c, word_address(c, c->rank, c->rank), sizeof(words), NETDAM_FW_ACCESS_WRITE);

    if (memory == NULL) {
        return false;
    }
    words[0] = words[1] = make_error(c);
    ndfw_store(memory, (const uint8_t *)words, sizeof(words));
    return true;
}

/*
 * Tells all whom the list names rightly that this member is not to be waited for. They have not begun to work, so their
 * first words are what they look at. If there are others, who hears of it passes it on.
 */
static void run_refused(struct ndfw *fw, struct ndfw_collective *c)
{
    const struct netdam_descriptor *descriptor = &fw->operations[c->operation].descriptor;
    uint64_t word = make_error(c);

    for (uint32_t i = 1; i < c->count; i++) {
        word |= ndfw_member_check(fw, descriptor, c, ndfw_member_after(c, i)) != NETDAM_STATUS_OK ? WORD_PASS_ON : 0;
    }
    for (; c->informed < c->count && fw->operation_free != NDFW_NONE; c->informed++) {
        uint32_t member = ndfw_member_after(c, c->informed);

        if (ndfw_member_check(fw, descriptor, c, member) == NETDAM_STATUS_OK) {
            start_word(fw, c, member, word);
        }
    }
    finish_when_told(fw, c);
}

/*
 * Finds out by whom it failed, and tells those who may not know, as many at a time as there is room for. Who has heard
 * it from another tells only the culprit, if that one is likely to be there: it waits too.
 */
static void run_failing(struct ndfw *fw, struct ndfw_collective *c)
{
    if (c->refused) {
        run_refused(fw, c);
        return;
    }
    while (c->culprit == NETDAM_HOP_NONE && c->asked < c->count && fw->operation_free != NDFW_NONE) {
        probe(fw, c, ndfw_member_after(c, c->asked++));
    }
    if (c->children != 0 || (c->culprit == NETDAM_HOP_NONE && c->asked < c->count)) {
        return;
    }
    if (c->informed == 1 && !note_failure(fw, c)) {
        c->informed = c->count;
    }
    for (; c->informed < c->count && fw->operation_free != NDFW_NONE; c->informed++) {
        uint32_t member = ndfw_member_after(c, c->informed);

        if (member == c->culprit ? c->status != NETDAM_STATUS_TIMEOUT && c->status != NETDAM_STATUS_UNREACHABLE
                                 : !c->told) {
            start_request(fw, c, CHILD_TELL, member, NETDAM_OP_WRITE, NETDAM_CONTROL_BYTES(1));
        }
    }
    finish_when_told(fw, c);
}

static bool run_one(struct ndfw *fw, struct ndfw_collective *c, uint64_t budget_end)
{
    switch (c->state) {
    case STATE_ARRIVE:
        if (!c->told) {
            c->told = tell_all(fw, c, 0);
        } else if (all_told(fw, c, 0) && c->children == 0) {
            if (c->opcode == NETDAM_OP_BARRIER) {
                finish(fw, c);
                return false;
            }
            c->state = STATE_WORK;
            c->worked = true;
            return true;
        }
        return false;
    case STATE_WORK:
        return work(fw, c, budget_end);
    case STATE_DONE:
        if (!c->told) {
            c->told = tell_all(fw, c, 1);
            return c->count == 1;
        }
        if (all_told(fw, c, 1) && c->children == 0) {
            finish(fw, c);
        }
        return false;
    default:
        run_failing(fw, c);
        return false;
    }
}

bool ndfw_collectives_run(struct ndfw *fw, uint64_t budget_end)
{
    bool more = false;

    fw->collective_due = false;
    for (uint32_t i = 0; i < fw->config.collectives && fw->collective_count != 0; i++) {
        if (fw->collectives[i].operation != NDFW_NONE) {
            more |= run_one(fw, &fw->collectives[i], budget_end);
        }
    }
    return more;
}

uint64_t ndfw_collectives_next_ns(const struct ndfw *fw)
{
    uint64_t next = NETDAM_FW_NEVER;

    for (uint32_t i = 0; i < fw->config.collectives && fw->collective_count != 0; i++) {
        const struct ndfw_collective *c = &fw->collectives[i];

        if (c->operation != NDFW_NONE && (c->state == STATE_ARRIVE || c->state == STATE_DONE)) {
            next = c->probe_ns < next ? c->probe_ns : next;
            next = c->give_up_ns < next ? c->give_up_ns : next;
        }
    }
    return next;
}

void ndfw_collective_child(struct ndfw *fw, uint32_t index, uint32_t kind, enum netdam_status status, uint8_t hop)
{
    struct ndfw_collective *c = &fw->collectives[index];

    c->children--;
    fw->collective_due = true;
    if (kind >= CHILD_PROBE) {
        if (status != NETDAM_STATUS_OK && status != NETDAM_STATUS_FLUSHED) {
            if (c->state == STATE_FAILING && c->culprit == NETDAM_HOP_NONE) {
                c->culprit = (uint8_t)(kind - CHILD_PROBE);
            }
            fail(fw, c, status, kind - CHILD_PROBE);
        }
        return;
    }
    if (status != NETDAM_STATUS_OK) {
        fail(fw, c, status, ndfw_member_of_hop(c, hop));
    } else if (kind < NDFW_SLOTS && c->state == STATE_WORK) {
        struct ndfw_slot *slot = &c->slots[kind];

        slot->state = slot->state == SLOT_REDUCING && gathers(c) ? SLOT_REDUCED : SLOT_FREE;
    }
}

void ndfw_collectives_fail_peer(struct ndfw *fw, uint32_t peer)
{
    for (uint32_t i = 0; i < fw->config.collectives; i++) {
        struct ndfw_collective *c = &fw->collectives[i];

        for (uint32_t m = 1; c->operation != NDFW_NONE && m < c->count; m++) {
            if (c->members[ndfw_member_after(c, m)].peer == peer) {
                fail(fw, c, NETDAM_STATUS_FLUSHED, ndfw_member_after(c, m));
            }
        }
    }
}

void ndfw_collectives_flush(struct ndfw *fw, uint32_t queue)
{
    for (uint32_t i = 0; i < fw->config.collectives; i++) {
        struct ndfw_collective *c = &fw->collectives[i];

        if (c->operation != NDFW_NONE && c->queue == queue) {
            c->state = STATE_FLUSHED;
            c->status = NETDAM_STATUS_FLUSHED;
            c->culprit = (uint8_t)c->rank;
            ndfw_operations_end(fw, i);
            finish(fw, c);
        }
    }
}

void ndfw_collective_start(struct ndfw *fw, uint32_t index, enum netdam_status status)
{
    struct ndfw_operation *operation = &fw->operations[index];
    const struct netdam_descriptor *d = &operation->descriptor;
    uint32_t place = ndfw_collective_free(fw);
    struct ndfw_collective *c = &fw->collectives[place];
    uint64_t bytes;

    c->culprit = operation->hop;
    operation->collective = place;
    operation->peer = fw->config.peers;
    operation->hop = 0;
    operation->all_sent = true;
    operation->flights = 1; /* until the collective is over */
    c->operation = index;
    c->queue = operation->queue;
    c->opcode = d->opcode;
    c->operation_code = d->operation;
    c->type = d->type;
    c->flags = d->flags & NETDAM_DESCRIPTOR_REPRODUCIBLE;
    c->instance = d->immediate;
    c->status = (uint8_t)status;
    c->refused = status != NETDAM_STATUS_OK;
    c->state = c->refused ? STATE_FAILING : STATE_ARRIVE;
    c->culprit = c->refused ? c->culprit : 0;
    c->informed = 1;
    c->told = c->worked = false;
    c->children = 0;
    memset(c->slots, 0, sizeof(c->slots));
    c->probe_ns = fw->now_ns + fw->config.rto_max_ns;
    c->give_up_ns = fw->now_ns + fw->config.collective_wait_ns;
    if (d->opcode == NETDAM_OP_BROADCAST) {
        c->next = 0;
        c->end = d->remote_key == c->rank ? d->length : 0;
    } else {
        c->next = netdam_block(d->length, c->count, c->rank, &bytes);
        c->end = c->next + bytes;
    }
    fw->collective_count++;
}
