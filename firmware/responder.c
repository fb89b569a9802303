/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: executes requests on on-board memory and answers them. */
#include "ndfw.h"

static bool refusal_is_allowed(struct ndfw *fw)
{
    uint64_t credit = fw->config.refusal_interval_ns * fw->config.refusal_burst;

    if (fw->refusal_due_ns < fw->now_ns) {
        fw->refusal_due_ns = fw->now_ns;
    }
    if (fw->refusal_due_ns - fw->now_ns >= credit) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_LIMITED, 1);
        return false;
    }
    fw->refusal_due_ns += fw->config.refusal_interval_ns;
    return true;
}

void ndfw_put_payload(const struct ndfw *fw, const struct ndfw_packet *packet, uint8_t *to, const uint8_t *payload,
                      const uint8_t *memory, uint32_t bytes, bool has_crc)
{
    uint32_t crc = 0;

    if (bytes == 0) {
        return;
    }
    if (payload != NULL) {
        if (memory != NULL) {
            ndfw_alu_reduce_into(fw, to, payload, memory, bytes, packet->operation, packet->type);
        } else {
            memcpy(to, payload, bytes);
        }
        crc = has_crc ? ndfw_crc32c(fw, 0, to, bytes) : 0;
    } else if (has_crc) {
        crc = ndfw_crc32c_copy(fw, 0, to, memory, bytes);
    } else {
        ndfw_payload_load(fw, to, memory, bytes);
    }
    if (has_crc) {
        netdam_be32 be = netdam_be32_make(crc);

        memcpy(to + bytes, &be, sizeof(be));
    }
}

void ndfw_answer(struct ndfw *fw, const struct ndfw_packet *packet, const struct ndfw_answer *answer)
{
    uint32_t bytes = ndfw_datagram_bytes(fw, answer->payload_length, false, packet->tenant);
    bool has_crc = ndfw_has_crc(fw, answer->payload_length, packet->tenant);
    struct netdam_wire_header *header;
    struct netdam_wire_answer *body;
    uint8_t *datagram, *at;

    if ((packet->flags & NETDAM_FLAG_UNRELIABLE) != 0 ||
        (answer->status != NETDAM_STATUS_OK && !refusal_is_allowed(fw))) {
        return;
    }
    datagram = ndfw_frame_begin(fw, &packet->from, 0, bytes);
    if (datagram == NULL) {
        ndfw_count(fw, NETDAM_COUNTER_ANSWERS_DROPPED, 1);
        return;
    }
    /* In place: to copy what has just been stored byte by byte would have to wait for it. */
    header = (struct netdam_wire_header *)(void *)datagram;
    memset(header, 0, sizeof(*header));
    header->version = NETDAM_WIRE_VERSION;
    header->kind = NETDAM_KIND_RESPONSE;
    header->flags = netdam_be16_make((uint16_t)(answer->flags | (packet->flags & NETDAM_FLAG_RELAXED) |
                                                (packet->tenant != 0 ? NETDAM_FLAG_TENANT : 0u) |
                                                (has_crc ? NETDAM_FLAG_PAYLOAD_CRC : 0u)));
    header->segment_count = packet->segment_count;
    header->segment_index = packet->hop;
    header->status = (uint8_t)answer->status;
    header->context = netdam_be64_make(packet->context);
    header->number = netdam_be48_make(packet->number);
    header->distance = netdam_be16_make(packet->distance);
    header->payload_length = netdam_be16_make((uint16_t)answer->payload_length);
    at = datagram + sizeof(*header);
    at += ndfw_tenant_extension(at, packet->tenant);
    header->header_length = netdam_be16_make((uint16_t)(at + sizeof(*body) - datagram));

    body = (struct netdam_wire_answer *)(void *)at;
    memset(body, 0, sizeof(*body));
    body->opcode = packet->opcode;
    body->operation = packet->operation;
    body->type = packet->type;
    body->hop = packet->hop;
    body->length = netdam_be32_make(answer->length);
    body->generation = netdam_be64_make(answer->generation);
    body->echo = netdam_be64_make(packet->generation);
    body->floor = netdam_be48_make(answer->floor);

    ndfw_put_payload(fw, packet, at + sizeof(*body), answer->payload, answer->memory, answer->payload_length, has_crc);
    ndfw_seal(fw, &packet->from, datagram, bytes);
    ndfw_trace(fw, NETDAM_FW_TRACE_TX_RESPONSE, answer->status, packet->context, packet->number);
    ndfw_frame_end(fw, &packet->from, bytes);
}

static void send_refusal(struct ndfw *fw, const struct ndfw_packet *packet, const struct ndfw_answer *answer)
{
    ndfw_count(fw,
               answer->status == NETDAM_STATUS_STALE  ? NETDAM_COUNTER_REQUESTS_STALE
               : answer->status == NETDAM_STATUS_BUSY ? NETDAM_COUNTER_REQUESTS_BUSY
                                                      : NETDAM_COUNTER_REQUESTS_REFUSED,
               1);
    ndfw_trace(fw, NETDAM_FW_TRACE_ERR_REFUSED, answer->status, packet->context, packet->number);
    ndfw_answer(fw, packet, answer);
}

void ndfw_refuse_at(struct ndfw *fw, const struct ndfw_packet *packet, enum netdam_status status, uint64_t generation,
                    uint64_t floor, unsigned flags)
{
    struct ndfw_answer answer = {.status = status, .generation = generation, .floor = floor, .flags = flags};

    send_refusal(fw, packet, &answer);
}

void ndfw_refuse(struct ndfw *fw, const struct ndfw_packet *packet, enum netdam_status status)
{
    ndfw_refuse_at(fw, packet, status, fw->generation, 0, 0);
}

uint32_t ndfw_permission_for(unsigned opcode)
{
    switch (opcode) {
    case NETDAM_OP_READ:
    case NETDAM_OP_LOAD:
    case NETDAM_OP_LOAD_REDUCE:
    case NETDAM_OP_COMPARE:
        return NETDAM_PERMISSION_REMOTE_READ;
    case NETDAM_OP_WRITE:
        return NETDAM_PERMISSION_REMOTE_WRITE;
    case NETDAM_OP_SWAP:
        return NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_READ;
    case NETDAM_OP_REDUCE:
        return NETDAM_PERMISSION_REMOTE_ALU;
    default:
        return NETDAM_PERMISSION_REMOTE_ALU | NETDAM_PERMISSION_REMOTE_READ;
    }
}

static uint64_t operand(const struct ndfw_packet *packet, unsigned index)
{
    uint64_t value = 0;

    memcpy(&value, packet->payload + (size_t)index * packet->length, packet->length);
    return value;
}

static enum netdam_status execute_send(struct ndfw *fw, const struct ndfw_packet *packet)
{
    uint32_t queue = ndfw_queue_by_receive_key(fw, packet->key, packet->tenant);

    return queue == NDFW_NONE ? NETDAM_STATUS_BAD_KEY : ndfw_queue_receive(fw, queue, packet, NULL);
}

/* An immediate is for the queue pair of the region. It comes with the last packet: all others have been applied. */
static enum netdam_status execute_write_immediate(struct ndfw *fw, const struct ndfw_packet *packet, uint8_t *memory)
{
    uint32_t queue = ndfw_region_find(fw, packet->key, packet->tenant)->queue;

    return queue == 0 ? NETDAM_STATUS_NO_PERMISSION : ndfw_queue_receive(fw, queue - 1, packet, memory);
}

enum netdam_status ndfw_execute(struct ndfw *fw, const struct ndfw_packet *packet, uint64_t *value)
{
    bool whole_elements = packet->opcode != NETDAM_OP_WRITE;
    uint64_t offset;
    enum netdam_status status;
    uint8_t *memory;

    if (packet->opcode == NETDAM_OP_SEND) {
        return execute_send(fw, packet);
    }
    status = ndfw_region_access(fw, packet->key, packet->tenant, packet->address, packet->length,
                                ndfw_permission_for(packet->opcode), &offset);
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if (whole_elements && !netdam_is_whole(offset, packet->type)) {
        return NETDAM_STATUS_MISALIGNED;
    }
    memory = ndfw_memory(fw, offset, packet->length, whole_elements ? NETDAM_FW_ACCESS_UPDATE : NETDAM_FW_ACCESS_WRITE);
    if (memory == NULL) {
        return NETDAM_STATUS_BAD_RANGE;
    }
    switch (packet->opcode) {
    case NETDAM_OP_WRITE:
        if ((packet->flags & NETDAM_FLAG_IMMEDIATE) != 0) {
            return execute_write_immediate(fw, packet, memory);
        }
        ndfw_payload_store(fw, memory, packet->payload, packet->length);
        break;
    case NETDAM_OP_REDUCE:
        ndfw_alu_reduce(fw, memory, packet->payload, packet->length, packet->operation, packet->type);
        break;
    case NETDAM_OP_FETCH_ADD:
        *value = ndfw_element_load(memory, packet->length);
        ndfw_element_store(memory, packet->length, *value + operand(packet, 0));
        break;
    case NETDAM_OP_FETCH_OP:
        *value = ndfw_element_load(memory, packet->length);
        ndfw_element_store(memory, packet->length,
                           ndfw_alu_apply(*value, operand(packet, 0), packet->operation, packet->type));
        break;
    case NETDAM_OP_SWAP:
        *value = ndfw_element_load(memory, packet->length);
        ndfw_element_store(memory, packet->length, operand(packet, 0));
        break;
    case NETDAM_OP_CAS:
        *value = ndfw_element_load(memory, packet->length);
        if (*value == operand(packet, 0)) {
            ndfw_element_store(memory, packet->length, operand(packet, 1));
        }
        break;
    default:
        return NETDAM_STATUS_UNSUPPORTED;
    }
    return NETDAM_STATUS_OK;
}

/* The answer to a modification that was executed or refused, now or before. */
static void answer_modification(struct ndfw *fw, const struct ndfw_packet *packet,
                                const struct ndfw_lane_result *result, unsigned flags)
{
    bool ok = result->status == NETDAM_STATUS_OK;
    bool returns_value = ok && (netdam_op_flags(packet->opcode) & NETDAM_OPF_ATOMIC) != 0;
    struct ndfw_answer answer = {
        .status = (enum netdam_status)result->status,
        .generation = result->generation,
        .floor = result->floor,
        .flags = flags,
        .length = ok ? packet->length : 0,
        .payload = (const uint8_t *)&result->value,
        .payload_length = returns_value ? packet->length : 0,
    };

    if (packet->opcode == NETDAM_OP_TRANSACTION) {
        answer.length = ndfw_transaction_answer(fw, result, &answer.payload, &answer.payload_length);
    }
    if (ok) {
        ndfw_answer(fw, packet, &answer);
    } else {
        send_refusal(fw, packet, &answer);
    }
}

/* RELAXED and UNRELIABLE: no lane. The generation still has to prove that the requester has heard from this node. */
static void modify_without_lane(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_lane_result result = {0};

    if (!ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &result.generation)) {
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, result.generation, 0, 0);
        return;
    }
    result.status = (uint8_t)ndfw_execute(fw, packet, &result.value);
    ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, result.status == NETDAM_STATUS_OK);
    answer_modification(fw, packet, &result, 0);
}

bool ndfw_names_no_key(const struct ndfw *fw, const struct ndfw_packet *packet)
{
    if (packet->opcode == NETDAM_OP_TRANSACTION) {
        return ndfw_transaction_names_no_key(fw, packet);
    }
    return packet->opcode == NETDAM_OP_SEND ? ndfw_queue_by_receive_key(fw, packet->key, packet->tenant) == NDFW_NONE
                                            : ndfw_region_find(fw, packet->key, packet->tenant) == NULL;
}

static void modify(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_lane_result result = {0};
    uint64_t value = 0;

    if ((packet->flags & (NETDAM_FLAG_RELAXED | NETDAM_FLAG_UNRELIABLE)) != 0) {
        modify_without_lane(fw, packet);
        return;
    }
    switch (ndfw_lane_admit(fw, packet, ndfw_names_no_key(fw, packet), &result)) {
    case NDFW_LANE_EXECUTE:
        result.status = (uint8_t)(packet->opcode == NETDAM_OP_TRANSACTION
                                      ? ndfw_transaction_execute(fw, packet, result.window, &value)
                                      : ndfw_execute(fw, packet, &value));
        if (result.status == NETDAM_STATUS_BUSY) {
            ndfw_refuse_at(fw, packet, NETDAM_STATUS_BUSY, result.generation, result.floor, 0);
            break;
        }
        result.value = value;
        ndfw_lane_consume(result.window, packet->number, result.status, value);
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, result.status == NETDAM_STATUS_OK);
        answer_modification(fw, packet, &result, ndfw_lane_wish(fw));
        break;
    case NDFW_LANE_REPEATED:
        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_REPEATED, 1);
        answer_modification(fw, packet, &result, NETDAM_FLAG_AGAIN | ndfw_lane_wish(fw));
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

static void confirm(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_lane_result result = {0};

    switch (ndfw_lane_confirm(fw, packet, &result)) {
    case NDFW_LANE_STALE:
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, result.generation, 0, 0);
        break;
    case NDFW_LANE_BUSY:
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_BUSY, result.generation, 0, 0);
        break;
    default: {
        struct ndfw_answer answer = {.generation = result.generation, .floor = result.floor};

        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, 1);
        ndfw_answer(fw, packet, &answer);
        break;
    }
    }
}

static uint32_t answer_payload_max(const struct ndfw *fw, const struct ndfw_packet *packet)
{
    return netdam_payload_max(fw->config.mtu -
                              (packet->from.family == 6 ? NETDAM_IPV6_BYTES - NETDAM_IPV4_BYTES : 0u)) -
           (packet->tenant != 0 ? (uint32_t)sizeof(struct netdam_wire_tenant) : 0u);
}

static void read_memory(struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct ndfw_answer answer = {.length = packet->length, .payload_length = packet->length};
    uint64_t offset = 0;
    enum netdam_status status;

    if (!ndfw_lane_proves(fw, ndfw_lane_id(packet), packet->generation, &answer.generation)) {
        ndfw_refuse_at(fw, packet, NETDAM_STATUS_STALE, answer.generation, 0, 0);
        return;
    }
    status = ndfw_region_access(fw, packet->key, packet->tenant, packet->address, packet->length,
                                ndfw_permission_for(packet->opcode), &offset);
    if (status == NETDAM_STATUS_OK) {
        answer.memory = ndfw_memory(fw, offset, packet->length, NETDAM_FW_ACCESS_READ);
        status = answer.memory != NULL ? NETDAM_STATUS_OK : NETDAM_STATUS_BAD_RANGE;
    }
    if (status != NETDAM_STATUS_OK) {
        ndfw_refuse_at(fw, packet, status, answer.generation, 0, 0);
        return;
    }
    ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, 1);
    ndfw_answer(fw, packet, &answer);
}

void ndfw_respond(struct ndfw *fw, struct ndfw_packet *packet)
{
    enum netdam_status status = ndfw_check_instruction(packet);

    if (packet->node_form != NETDAM_NODE_FORM_IMPLICIT) {
        ndfw_hop(fw, packet, status);
        return;
    }
    if ((status == NETDAM_STATUS_OK || status == NETDAM_STATUS_BAD_LENGTH) &&
        (netdam_op_flags(packet->opcode) & NETDAM_OPF_CHAIN) != 0) {
        status = NETDAM_STATUS_BAD_SEGMENTS;
    }
    if (status == NETDAM_STATUS_OK && (netdam_op_flags(packet->opcode) & NETDAM_OPF_RETURNS) != 0 &&
        packet->length > answer_payload_max(fw, packet)) {
        status = NETDAM_STATUS_BAD_LENGTH;
    }
    if (status != NETDAM_STATUS_OK) {
        ndfw_refuse(fw, packet, status);
        return;
    }
    switch (packet->opcode) {
    case NETDAM_OP_ECHO: {
        struct ndfw_answer answer = {
            .generation = fw->generation,
            .length = packet->length,
            .payload = packet->payload,
            .payload_length = packet->payload_length,
        };

        ndfw_count(fw, NETDAM_COUNTER_REQUESTS_EXECUTED, 1);
        ndfw_answer(fw, packet, &answer);
        break;
    }
    case NETDAM_OP_CONFIRM:
        confirm(fw, packet);
        break;
    case NETDAM_OP_READ:
        read_memory(fw, packet);
        break;
    default:
        modify(fw, packet);
        break;
    }
}
