/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions: lists of compares, fetches and writes, all or nothing; and what they fetched, kept for repetitions. */
#include "ndfw.h"

/* A list of entries whose form is right. */
struct list {
    struct netdam_transaction_entry entries[NETDAM_TRANSACTION_ENTRIES_MAX];
    uint32_t data[NETDAM_TRANSACTION_ENTRIES_MAX];    /* where an entry's data begins */
    uint64_t offsets[NETDAM_TRANSACTION_ENTRIES_MAX]; /* of its memory, once that has been checked */
    uint32_t count;
    uint32_t fetch_bytes;
};

static void copy(uint8_t *to, const uint8_t *from, size_t bytes, bool on_board)
{
    if (on_board) {
        ndfw_load(to, from, bytes);
    } else {
        memcpy(to, from, bytes);
    }
}

/* The zeros that fill an entry's data up. */
static bool padding_is_zero(const uint8_t *data, uint32_t length, bool on_board)
{
    static const uint8_t zeros[8] = {0};
    uint32_t bytes = netdam_transaction_data_bytes(NETDAM_TRANSACTION_WRITE, length) - length;
    uint8_t padding[8];

    copy(padding, data + length, bytes, on_board);
    return memcmp(padding, zeros, bytes) == 0;
}

static uint32_t permission_for(unsigned kind)
{
    switch (kind) {
#define PERMISSION_CASE(name, value, permission, data, text)                                                           \
    case value:                                                                                                        \
        return NETDAM_PERMISSION_##permission;
        NETDAM_TRANSACTION_KIND_LIST(PERMISSION_CASE)
#undef PERMISSION_CASE
    default:
        return 0;
    }
}

/* Copies each entry before it looks at it: memory on board may change meanwhile. False if the form is wrong. */
static bool parse(struct list *list, const uint8_t *from, uint32_t bytes, bool on_board)
{
    uint32_t at = 0;

    list->count = list->fetch_bytes = 0;
    while (at < bytes) {
        struct netdam_transaction_entry *entry = &list->entries[list->count];
        uint32_t left = bytes - at;
        uint32_t data_bytes;

        if (list->count == NETDAM_TRANSACTION_ENTRIES_MAX || left < sizeof(*entry)) {
            return false;
        }
        copy((uint8_t *)entry, from + at, sizeof(*entry), on_board);
        at += (uint32_t)sizeof(*entry);
        left -= (uint32_t)sizeof(*entry);
        if (permission_for(entry->kind) == 0 || entry->reserved[0] != 0 || entry->reserved[1] != 0 ||
            entry->reserved[2] != 0) {
            return false;
        }
        if (entry->kind == NETDAM_TRANSACTION_FETCH) {
            if (entry->length > NETDAM_TRANSACTION_FETCH_MAX - list->fetch_bytes) {
                return false;
            }
            list->fetch_bytes += entry->length;
        } else if (entry->length > left) {
            return false;
        }
        data_bytes = netdam_transaction_data_bytes(entry->kind, entry->length);
        if (data_bytes > left || (data_bytes != 0 && !padding_is_zero(from + at, entry->length, on_board))) {
            return false;
        }
        list->data[list->count++] = at;
        at += data_bytes;
    }
    return list->count != 0;
}

bool ndfw_transaction_is_whole(const struct ndfw_packet *packet)
{
    struct list list;

    return parse(&list, packet->payload, packet->payload_length, false);
}

/* The first key decides: who knows none is refused for that one. */
bool ndfw_transaction_names_no_key(const struct ndfw *fw, const struct ndfw_packet *packet)
{
    struct netdam_transaction_entry entry;

    memcpy(&entry, packet->payload, sizeof(entry));
    return ndfw_region_find(fw, entry.key, packet->tenant) == NULL;
}

/* Keys, ranges and permissions of all entries. */
static enum netdam_status check(const struct ndfw *fw, struct list *list, uint32_t tenant, uint64_t *failed)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct netdam_transaction_entry *entry = &list->entries[i];
        enum netdam_status status = ndfw_region_access(fw, entry->key, tenant, entry->address, entry->length,
                                                       permission_for(entry->kind), &list->offsets[i]);

        if (status != NETDAM_STATUS_OK) {
            *failed = i;
            return status;
        }
    }
    return NETDAM_STATUS_OK;
}

/* In pieces that end where naturally aligned elements do. */
static bool memory_equals(const uint8_t *memory, const uint8_t *data, size_t bytes)
{
    uint8_t piece[64];

    while (bytes > 0) {
        size_t step = sizeof(piece) - ((uintptr_t)memory & 7);

        step = step < bytes ? step : bytes;
        ndfw_load(piece, memory, step);
        if (memcmp(piece, data, step) != 0) {
            return false;
        }
        memory += step;
        data += step;
        bytes -= step;
    }
    return true;
}

static enum netdam_status compare(struct ndfw *fw, const struct list *list, const uint8_t *payload, uint64_t *failed)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct netdam_transaction_entry *entry = &list->entries[i];

        if (entry->kind == NETDAM_TRANSACTION_COMPARE &&
            !memory_equals(ndfw_memory(fw, list->offsets[i], entry->length, NETDAM_FW_ACCESS_READ),
                           payload + list->data[i], entry->length)) {
            *failed = i;
            return NETDAM_STATUS_COMPARE_FAILED;
        }
    }
    return NETDAM_STATUS_OK;
}

static void fetch(struct ndfw *fw, const struct list *list, struct ndfw_reply *reply)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct netdam_transaction_entry *entry = &list->entries[i];

        if (entry->kind == NETDAM_TRANSACTION_FETCH) {
            ndfw_load(reply->bytes + reply->length,
                      ndfw_memory(fw, list->offsets[i], entry->length, NETDAM_FW_ACCESS_READ), entry->length);
            reply->length += entry->length;
        }
    }
}

static void write(struct ndfw *fw, const struct list *list, const uint8_t *payload)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct netdam_transaction_entry *entry = &list->entries[i];

        if (entry->kind == NETDAM_TRANSACTION_WRITE) {
            ndfw_store(ndfw_memory(fw, list->offsets[i], entry->length, NETDAM_FW_ACCESS_WRITE),
                       payload + list->data[i], entry->length);
        }
    }
}

/*
 * A place for what a number fetches, which is its value from now on; or NULL. No context holds more than are free: alone
 * it has half of them, and whoever comes finds some.
 */
static struct ndfw_reply *take_reply(struct ndfw *fw, struct ndfw_window *window, uint64_t number, uint64_t *value)
{
    uint64_t place = number % NETDAM_WINDOW_MAX;
    uint32_t index = fw->reply_free;
    struct ndfw_reply *reply;

    if (index == NDFW_NONE || window->replies >= fw->config.replies - fw->reply_count) {
        return NULL;
    }
    reply = &fw->replies[index];
    fw->reply_free = reply->next_free;
    reply->length = 0;
    *value = index + UINT64_C(1);
    window->replied[place / 64] |= UINT64_C(1) << place % 64;
    window->replies++;
    fw->reply_count++;
    fw->counters[NETDAM_COUNTER_LANE_BYTES] += sizeof(*reply);
    return reply;
}

void ndfw_replies_free(struct ndfw *fw, struct ndfw_window *window, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to && number - from < NETDAM_WINDOW_MAX; number++) {
        uint64_t place = number % NETDAM_WINDOW_MAX;
        uint64_t bit = UINT64_C(1) << place % 64;
        uint32_t index;

        if (window->replied[place / 64] == 0) {
            number |= 63; /* on to the next word */
        } else if ((window->replied[place / 64] & bit) != 0) {
            index = (uint32_t)window->values[place] - 1;
            window->replied[place / 64] &= ~bit;
            window->replies--;
            fw->replies[index].next_free = fw->reply_free;
            fw->reply_free = index;
            fw->reply_count--;
            fw->counters[NETDAM_COUNTER_LANE_BYTES] -= sizeof(fw->replies[index]);
        }
    }
}

void ndfw_replies_start(struct ndfw *fw)
{
    for (uint32_t i = 0; i < fw->config.replies; i++) {
        fw->replies[i].next_free = i + 1 < fw->config.replies ? i + 1 : NDFW_NONE;
    }
    fw->reply_free = 0;
    fw->reply_count = 0;
}

/* The value is the entry that failed, or the place of what was fetched plus 1, or 0. */
enum netdam_status ndfw_transaction_execute(struct ndfw *fw, const struct ndfw_packet *packet,
                                            struct ndfw_window *window, uint64_t *value)
{
    struct ndfw_reply *reply = NULL;
    struct list list;
    enum netdam_status status;

    if (!parse(&list, packet->payload, packet->payload_length, false)) {
        return NETDAM_STATUS_BAD_LENGTH;
    }
    status = check(fw, &list, packet->tenant, value);
    if (status == NETDAM_STATUS_OK) {
        status = compare(fw, &list, packet->payload, value);
    }
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if (list.fetch_bytes != 0) {
        reply = take_reply(fw, window, packet->number, value);
        if (reply == NULL) {
            return NETDAM_STATUS_BUSY;
        }
        fetch(fw, &list, reply);
    }
    write(fw, &list, packet->payload);
    return NETDAM_STATUS_OK;
}

uint32_t ndfw_transaction_answer(const struct ndfw *fw, const struct ndfw_lane_result *result, const uint8_t **payload,
                                 uint32_t *payload_length)
{
    *payload_length = 0;
    if (result->status != NETDAM_STATUS_OK) {
        return (uint32_t)result->value;
    }
    if (result->value != 0) {
        const struct ndfw_reply *reply = &fw->replies[result->value - 1];

        *payload = reply->bytes;
        *payload_length = reply->length;
    }
    return *payload_length;
}

enum netdam_status ndfw_transaction_take(struct ndfw *fw, const struct netdam_descriptor *descriptor,
                                         struct ndfw_buffer *buffer)
{
    struct ndfw_span span[NETDAM_LIST_MAX];
    struct list list;
    uint64_t offset;
    uint32_t count;
    enum netdam_status status;

    if ((descriptor->flags & NETDAM_DESCRIPTOR_LIST) != 0) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    status = ndfw_buffer_spans(fw, buffer, 0, descriptor->length, NETDAM_PERMISSION_LOCAL_READ, span, &count);
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    if (!parse(&list, span[0].memory, descriptor->length, true)) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    buffer->result_bytes = list.fetch_bytes;
    if (list.fetch_bytes == 0) {
        return NETDAM_STATUS_OK;
    }
    return ndfw_local_access(fw, descriptor->local_region, buffer->pieces[0].serial,
                             descriptor->u.buffer.result_address, list.fetch_bytes, NETDAM_PERMISSION_LOCAL_WRITE,
                             &offset);
}

/* Software relies on the bounds: an answer beyond them is none. */
bool ndfw_transaction_agrees(const struct ndfw_operation *operation, const struct ndfw_packet *packet)
{
    if (packet->status == NETDAM_STATUS_OK) {
        return packet->opcode == NETDAM_OP_TRANSACTION && packet->payload_length <= operation->buffer.result_bytes;
    }
    return packet->payload_length == 0 && packet->length < NETDAM_TRANSACTION_ENTRIES_MAX;
}

enum netdam_status ndfw_transaction_receive(struct ndfw *fw, struct ndfw_operation *operation,
                                            struct ndfw_flight *flight, const struct ndfw_packet *packet)
{
    const struct netdam_descriptor *descriptor = &operation->descriptor;
    uint64_t offset;

    if (packet->status == NETDAM_STATUS_BAD_LENGTH && flight->tries != 0) {
        /* No trace of this copy: another one, from before software changed the list, may still be executed. */
        return NETDAM_STATUS_FLUSHED;
    }
    if (packet->status != NETDAM_STATUS_OK) {
        operation->result = packet->length;
        return (enum netdam_status)packet->status;
    }
    flight->length = (uint16_t)packet->payload_length;
    if (packet->payload_length == 0) {
        return NETDAM_STATUS_OK;
    }
    if (ndfw_local_access(fw, descriptor->local_region, operation->buffer.pieces[0].serial,
                          descriptor->u.buffer.result_address, packet->payload_length, NETDAM_PERMISSION_LOCAL_WRITE,
                          &offset) != NETDAM_STATUS_OK) {
        return NETDAM_STATUS_FLUSHED; /* executed, but what it returned has no place any more */
    }
    ndfw_store(ndfw_memory(fw, offset, packet->payload_length, NETDAM_FW_ACCESS_WRITE), packet->payload,
               packet->payload_length);
    return NETDAM_STATUS_OK;
}
