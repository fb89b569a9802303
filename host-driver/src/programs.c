/* SPDX-License-Identifier: BSD-3-Clause */
/* Chains and groups: lists in on-board memory that requests refer to, and the blocking calls that use them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <netdam/wire.h>

#include "internal.h"

/* A list in on-board memory, and the region through which the device reads it. */
struct ndlib_program {
    struct ndlib_program *next;
    struct netdam_device *device;
    struct netdam_region *region;
    uint64_t offset;
    unsigned count;
};

struct netdam_chain {
    struct ndlib_program program;
};

struct netdam_group {
    struct ndlib_program program;
    unsigned rank;
    _Atomic uint32_t instance; /* collectives posted */
};

/* Puts `bytes` of list in on-board memory, and the object on the device's list. On failure nothing is taken. */
static int program_create(struct ndlib_program *program, struct netdam_device *device, const void *list, uint64_t bytes)
{
    int rc = netdam_alloc(device, bytes, 0, &program->offset);

    if (rc != 0) {
        return rc;
    }
    rc = netdam_region_create(device, program->offset, bytes, NETDAM_PERMISSION_LOCAL_READ, 0, &program->region);
    if (rc != 0) {
        netdam_free(device, program->offset);
        return rc;
    }
    memcpy(netdam_region_pointer(program->region), list, bytes);
    program->device = device;
    pthread_mutex_lock(&device->mutex);
    program->next = device->programs;
    device->programs = program;
    pthread_mutex_unlock(&device->mutex);
    return 0;
}

/* The memory is never used again if the device has not let go of it. */
static int program_destroy(struct ndlib_program *program)
{
    struct netdam_device *device = program->device;
    struct ndlib_program **link;
    int rc = netdam_region_destroy(program->region);

    if (rc == 0) {
        netdam_free(device, program->offset);
    }
    pthread_mutex_lock(&device->mutex);
    for (link = &device->programs; *link != program; link = &(*link)->next) {
    }
    *link = program->next;
    pthread_mutex_unlock(&device->mutex);
    free(program); /* the first member of what was allocated */
    return rc;
}

void ndlib_programs_destroy(struct netdam_device *device)
{
    while (device->programs) {
        program_destroy(device->programs);
    }
}

static int check_peer(struct netdam_device *device, const struct netdam_peer *peer)
{
    if (!peer || peer->device != device) {
        return -EINVAL;
    }
    return ndlib_is_stale(device, peer->epoch) ? -ESTALE : 0;
}

int netdam_chain_create(struct netdam_device *device, const struct netdam_hop *hops, unsigned count,
                        struct netdam_chain **chain_out)
{
    struct netdam_segment segments[NETDAM_SEGMENTS_MAX] = {0};
    struct netdam_chain *chain;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (count == 0 || count > NETDAM_SEGMENTS_MAX) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < count; i++) {
        rc = check_peer(device, hops[i].remote.peer);
        if (rc != 0) {
            return rc;
        }
        segments[i].opcode = hops[i].opcode;
        segments[i].operation = hops[i].operation;
        segments[i].type = hops[i].type;
        segments[i].peer = hops[i].remote.peer->index;
        segments[i].key = hops[i].remote.key;
        segments[i].address = hops[i].remote.address;
    }
    chain = calloc(1, sizeof(*chain));
    if (!chain) {
        return -ENOMEM;
    }
    chain->program.count = count;
    rc = program_create(&chain->program, device, segments, count * sizeof(segments[0]));
    if (rc != 0) {
        free(chain);
        return rc;
    }
    *chain_out = chain;
    return 0;
}

int netdam_chain_destroy(struct netdam_chain *chain)
{
    return chain ? program_destroy(&chain->program) : 0;
}

int netdam_group_create(struct netdam_device *device, const struct netdam_group_member *members, unsigned count,
                        unsigned rank, struct netdam_region *region, struct netdam_group **group_out)
{
    struct netdam_member list[NETDAM_MEMBERS_MAX] = {0};
    struct netdam_group *group;
    int rc = ndlib_may_change(device);

    if (rc != 0) {
        return rc;
    }
    if (count == 0 || count > NETDAM_MEMBERS_MAX || rank >= count || !region || region->device != device ||
        members[rank].peer) {
        return -EINVAL;
    }
    if (ndlib_is_stale(device, region->epoch)) {
        return -ESTALE;
    }
    for (unsigned i = 0; i < count; i++) {
        rc = i == rank ? 0 : check_peer(device, members[i].peer);
        if (rc != 0) {
            return rc;
        }
        list[i].peer = i == rank ? 0 : members[i].peer->index;
        list[i].region = i == rank ? region->index : 0;
        list[i].key = members[i].key;
        list[i].input = members[i].input;
        list[i].output = members[i].output;
        list[i].control = members[i].control;
    }
    group = calloc(1, sizeof(*group));
    if (!group) {
        return -ENOMEM;
    }
    group->program.count = count;
    group->rank = rank;
    rc = program_create(&group->program, device, list, count * sizeof(list[0]));
    if (rc != 0) {
        free(group);
        return rc;
    }
    *group_out = group;
    return 0;
}

int netdam_group_destroy(struct netdam_group *group)
{
    return group ? program_destroy(&group->program) : 0;
}

static int check_program(const struct netdam_queue *queue, const struct ndlib_program *program)
{
    if (program->device != queue->device) {
        return -EINVAL;
    }
    return ndlib_check_region(queue, program->region);
}

static int encode_chain(struct netdam_queue *queue, const struct netdam_request *request,
                        struct netdam_descriptor *descriptor)
{
    int rc;

    if (!request->chain || request->group) {
        return -EINVAL;
    }
    rc = check_program(queue, &request->chain->program);
    if (rc != 0) {
        return rc;
    }
    if (request->local.region) {
        rc = ndlib_encode_local(queue, descriptor, request->local, request->length, NULL, 0);
    }
    if (rc == 0 && request->result.region) {
        rc = ndlib_check_region(queue, request->result.region);
        descriptor->peer = request->result.region->index;
        descriptor->u.buffer.result_address = request->result.address;
    }
    descriptor->immediate = request->chain->program.region->index;
    descriptor->list_count = (uint8_t)request->chain->program.count;
    return rc;
}

static int encode_collective(struct netdam_queue *queue, const struct netdam_request *request,
                             struct netdam_descriptor *descriptor)
{
    struct netdam_group *group = request->group;
    int rc;

    if (!group || request->chain || request->local.region || request->result.region) {
        return -EINVAL;
    }
    rc = check_program(queue, &group->program);
    if (rc != 0) {
        return rc;
    }
    descriptor->local_region = group->program.region->index;
    descriptor->list_count = (uint8_t)group->program.count;
    descriptor->peer = group->rank;
    descriptor->remote_key = request->root;
    descriptor->immediate = ++group->instance;
    return 0;
}

int ndlib_encode_program(struct netdam_queue *queue, const struct netdam_request *request,
                         struct netdam_descriptor *descriptor)
{
    if (request->remote.peer || request->remote.key != 0 || request->remote.address != 0 || request->list ||
        request->immediate != 0 || request->result_address != 0 || (request->root != 0 && request->opcode != NETDAM_OP_BROADCAST)) {
        return -EINVAL;
    }
    memset(descriptor, 0, sizeof(*descriptor));
    descriptor->opcode = request->opcode;
    descriptor->operation = request->operation;
    descriptor->type = request->type;
    descriptor->flags = request->flags;
    descriptor->length = request->length;
    return request->opcode == NETDAM_OP_CHAIN ? encode_chain(queue, request, descriptor)
                                              : encode_collective(queue, request, descriptor);
}

/* Executes, and tells which hop or member is at fault if it fails. */
static int run(struct netdam_queue *queue, const struct netdam_request *request, unsigned *at, uint64_t timeout_ns)
{
    struct netdam_completion completion;
    int rc = ndlib_execute(queue, request, ndlib_deadline(timeout_ns), &completion);

    if (rc > 0 && at) {
        *at = completion.hop;
    }
    return rc;
}

int netdam_chain_run(struct netdam_queue *queue, const struct netdam_chain *chain, struct netdam_local from,
                     struct netdam_local to, uint32_t bytes, unsigned *hop, uint64_t timeout_ns)
{
    const struct netdam_request request = {
        .opcode = NETDAM_OP_CHAIN, .chain = chain, .local = from, .result = to, .length = bytes};

    return run(queue, &request, hop, timeout_ns);
}

int netdam_all_reduce(struct netdam_queue *queue, struct netdam_group *group, unsigned operation, unsigned type,
                      uint32_t bytes, unsigned *member, uint64_t timeout_ns)
{
    const struct netdam_request request = {.opcode = NETDAM_OP_ALL_REDUCE,
                                           .operation = (uint8_t)operation,
                                           .type = (uint8_t)type,
                                           .flags = NETDAM_DESCRIPTOR_REPRODUCIBLE,
                                           .group = group,
                                           .length = bytes};

    return operation > UINT8_MAX || type > UINT8_MAX ? -EINVAL : run(queue, &request, member, timeout_ns);
}

int netdam_reduce_scatter(struct netdam_queue *queue, struct netdam_group *group, unsigned operation, unsigned type,
                          uint32_t bytes, unsigned *member, uint64_t timeout_ns)
{
    const struct netdam_request request = {.opcode = NETDAM_OP_REDUCE_SCATTER,
                                           .operation = (uint8_t)operation,
                                           .type = (uint8_t)type,
                                           .flags = NETDAM_DESCRIPTOR_REPRODUCIBLE,
                                           .group = group,
                                           .length = bytes};

    return operation > UINT8_MAX || type > UINT8_MAX ? -EINVAL : run(queue, &request, member, timeout_ns);
}

int netdam_all_gather(struct netdam_queue *queue, struct netdam_group *group, uint32_t bytes, unsigned *member,
                      uint64_t timeout_ns)
{
    const struct netdam_request request = {.opcode = NETDAM_OP_ALL_GATHER, .group = group, .length = bytes};

    return run(queue, &request, member, timeout_ns);
}

int netdam_broadcast(struct netdam_queue *queue, struct netdam_group *group, unsigned root, uint32_t bytes,
                     unsigned *member, uint64_t timeout_ns)
{
    const struct netdam_request request = {
        .opcode = NETDAM_OP_BROADCAST, .group = group, .length = bytes, .root = root};

    return run(queue, &request, member, timeout_ns);
}

int netdam_barrier(struct netdam_queue *queue, struct netdam_group *group, unsigned *member, uint64_t timeout_ns)
{
    const struct netdam_request request = {.opcode = NETDAM_OP_BARRIER, .group = group};

    return run(queue, &request, member, timeout_ns);
}
