/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who takes part in a collective: the list that its descriptor names, copied and checked before anything is begun, and
 * the members' order in the ring.
 */
#include "members.h"

uint32_t ndfw_member_after(const struct ndfw_collective *c, uint32_t step)
{
    uint32_t place = c->rank + step;

    return place < c->count ? place : place - c->count;
}

uint32_t ndfw_member_of_hop(const struct ndfw_collective *c, uint8_t hop)
{
    return hop == NETDAM_HOP_NONE || hop + 1u >= c->count ? NETDAM_HOP_NONE : ndfw_member_after(c, hop + 1u);
}

/* True if the vectors are neither the same nor apart. */
static bool overlap(const struct netdam_member *member, uint32_t length)
{
    return member->input != member->output && member->input < member->output + length &&
           member->output < member->input + length;
}

enum netdam_status ndfw_member_check(const struct ndfw *fw, const struct netdam_descriptor *d,
                                     const struct ndfw_collective *c, uint32_t place)
{
    const struct netdam_member *member = &c->members[place];

    if ((member->input | member->output | member->control) % 8 != 0 || member->input > UINT64_MAX - d->length ||
        member->output > UINT64_MAX - d->length || member->control > UINT64_MAX - NETDAM_CONTROL_BYTES(c->count) ||
        overlap(member, d->length) || (place == c->rank ? member->peer : member->region) != 0) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    if (place == c->rank) {
        return NETDAM_STATUS_OK;
    }
    if (member->peer >= fw->config.peers || !fw->peers[member->peer].in_use || fw->peers[member->peer].closing) {
        return NETDAM_STATUS_LOCAL_PEER;
    }
    if (ndfw_is_self(fw, &fw->peers[member->peer].endpoint)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    for (uint32_t i = 0; i < place; i++) {
        if (i != c->rank && c->members[i].peer < fw->config.peers &&
            ndfw_is_same_node(fw, c->members[i].peer, member->peer)) {
            return NETDAM_STATUS_LOCAL_DESCRIPTOR;
        }
    }
    return NETDAM_STATUS_OK;
}

static bool descriptor_is_well_formed(const struct netdam_descriptor *d)
{
    bool barrier = d->opcode == NETDAM_OP_BARRIER;

    return d->list_count != 0 && d->list_count <= NETDAM_MEMBERS_MAX && d->peer < d->list_count && d->immediate != 0 &&
           d->remote_address % 8 == 0 &&
           (d->opcode == NETDAM_OP_BROADCAST ? d->remote_key < d->list_count : d->remote_key == 0) &&
           d->u.buffer.local_address == 0 && d->u.buffer.result_address == 0 && (!barrier || d->length == 0) &&
           netdam_is_whole(d->length, d->type) &&
           (d->flags & ~(uint32_t)(NETDAM_DESCRIPTOR_FENCE | NETDAM_DESCRIPTOR_REPRODUCIBLE)) == 0;
}

/* Copies the list before it looks at it. */
static enum netdam_status read_members(struct ndfw *fw, const struct netdam_descriptor *d, struct ndfw_collective *c)
{
    uint64_t bytes = d->list_count * sizeof(c->members[0]);
    uint64_t offset;
    const uint8_t *memory;
    enum netdam_status status = ndfw_local_access(
        fw, d->local_region, d->local_region < fw->config.regions ? fw->regions[d->local_region].serial : 0,
        d->remote_address, bytes, NETDAM_PERMISSION_LOCAL_READ, &offset);

    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    memory = ndfw_memory(fw, offset, bytes, NETDAM_FW_ACCESS_READ);
    if (memory == NULL) {
        return NETDAM_STATUS_LOCAL_RANGE;
    }
    ndfw_load((uint8_t *)c->members, memory, bytes);
    return NETDAM_STATUS_OK;
}

static enum netdam_status check_members(struct ndfw *fw, const struct netdam_descriptor *d, struct ndfw_collective *c,
                                        uint8_t *hop)
{
    for (uint32_t i = 0; i < c->count; i++) {
        enum netdam_status status = ndfw_member_check(fw, d, c, i);

        *hop = (uint8_t)i;
        if (status != NETDAM_STATUS_OK) {
            return status;
        }
    }
    return NETDAM_STATUS_OK;
}

static enum netdam_status check_own(const struct ndfw *fw, const struct ndfw_collective *c, uint64_t length)
{
    const struct netdam_member *own = &c->members[c->rank];
    /* If the others could not write here, it would not even learn that they fail by it. */
    const uint32_t needed = NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE |
                            (c->count > 1 ? (uint32_t)NETDAM_PERMISSION_REMOTE_WRITE : 0u);
    uint64_t offset;
    enum netdam_status status =
        ndfw_local_access(fw, own->region, c->serial, own->control, NETDAM_CONTROL_BYTES(c->count), needed, &offset);

    if (status == NETDAM_STATUS_OK) {
        status = ndfw_local_access(fw, own->region, c->serial, own->input, length, needed, &offset);
    }
    return status == NETDAM_STATUS_OK
               ? ndfw_local_access(fw, own->region, c->serial, own->output, length, needed, &offset)
               : status;
}

/* The largest payload of a chain over all others; also whether such a chain is possible at all. */
static enum netdam_status measure_chain(struct ndfw *fw, struct ndfw_collective *c, uint8_t *hop)
{
    struct ndfw_tour *tour = &fw->tours[fw->tour_free];
    enum netdam_status status;

    c->packet_bytes = netdam_payload_max(fw->config.mtu);
    if (c->count == 1) {
        return NETDAM_STATUS_OK;
    }
    for (uint32_t i = 1; i < c->count; i++) {
        tour->segments[i - 1] = (struct netdam_segment){.opcode = NETDAM_OP_WRITE,
                                                        .peer = c->members[ndfw_member_after(c, i)].peer,
                                                        .key = c->members[ndfw_member_after(c, i)].key};
    }
    tour->count = c->count - 1;
    *hop = NETDAM_HOP_NONE;
    status = ndfw_tour_prepare(fw, tour, 0, 8, hop);
    *hop = (uint8_t)ndfw_member_of_hop(c, *hop);
    c->packet_bytes = tour->payload_max;
    return status;
}

/* Members, the own memory, and whether there can be such chains. */
static enum netdam_status check_group(struct ndfw *fw, struct ndfw_operation *operation, struct ndfw_collective *c)
{
    const struct netdam_descriptor *d = &operation->descriptor;
    enum netdam_status status = check_members(fw, d, c, &operation->hop);

    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    operation->hop = (uint8_t)c->rank;
    c->serial = c->members[c->rank].region < fw->config.regions ? fw->regions[c->members[c->rank].region].serial : 0;
    status = check_own(fw, c, d->length);
    if (status == NETDAM_STATUS_OK && c->count > 1 &&
        fw->regions[c->members[c->rank].region].key != c->members[c->rank].key) {
        status = NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    return status == NETDAM_STATUS_OK ? measure_chain(fw, c, &operation->hop) : status;
}

enum netdam_status ndfw_collective_check(struct ndfw *fw, struct ndfw_operation *operation)
{
    const struct netdam_descriptor *d = &operation->descriptor;
    struct ndfw_collective *c = &fw->collectives[ndfw_collective_free(fw)];
    enum netdam_status status;

    operation->hop = NETDAM_HOP_NONE;
    if (fw->config.operations < 2) {
        return NETDAM_STATUS_LOCAL_UNSUPPORTED; /* none would be left for what it consists of */
    }
    if (!descriptor_is_well_formed(d)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    c->count = d->list_count;
    c->rank = d->peer;
    status = read_members(fw, d, c);
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    status = check_group(fw, operation, c);
    if (status != NETDAM_STATUS_OK && c->count > 1) {
        operation->collective = (uint32_t)(c - fw->collectives);
    }
    return status;
}
