/* SPDX-License-Identifier: BSD-3-Clause */
/* Local buffers: one range of on-board memory, or a list of up to four, as a descriptor names them. */
#include "ndfw.h"

static enum netdam_status take_piece(struct ndfw *fw, uint32_t region, uint64_t address, uint32_t length,
                                     uint32_t permission, struct ndfw_piece *piece)
{
    uint64_t offset;

    piece->region = region;
    piece->serial = region < fw->config.regions ? fw->regions[region].serial : 0;
    piece->address = address;
    piece->length = length;
    return ndfw_local_access(fw, region, piece->serial, address, length, permission, &offset);
}

/* The list is copied before it is looked at: software may change it meanwhile. */
static enum netdam_status take_list(struct ndfw *fw, const struct netdam_descriptor *descriptor, uint32_t permission,
                                    struct ndfw_buffer *buffer)
{
    struct netdam_list_entry entries[NETDAM_LIST_MAX];
    uint64_t bytes = descriptor->list_count * sizeof(entries[0]);
    struct ndfw_piece list;
    enum netdam_status status;
    uint64_t offset, total = 0;
    const uint8_t *memory;

    if (descriptor->list_count == 0 || descriptor->list_count > NETDAM_LIST_MAX) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    status = take_piece(fw, descriptor->local_region, descriptor->u.buffer.local_address, (uint32_t)bytes,
                        NETDAM_PERMISSION_LOCAL_READ, &list);
    if (status != NETDAM_STATUS_OK) {
        return status;
    }
    offset = fw->regions[list.region].base + list.address;
    memory = ndfw_memory(fw, offset, bytes, NETDAM_FW_ACCESS_READ);
    if (memory == NULL) {
        return NETDAM_STATUS_LOCAL_RANGE;
    }
    ndfw_load((uint8_t *)entries, memory, bytes);
    buffer->count = descriptor->list_count;
    for (uint32_t i = 0; i < buffer->count; i++) {
        status = take_piece(fw, entries[i].local_region, entries[i].local_address, entries[i].length, permission,
                            &buffer->pieces[i]);
        if (status != NETDAM_STATUS_OK) {
            return status;
        }
        total += entries[i].length;
    }
    return total == descriptor->length ? NETDAM_STATUS_OK : NETDAM_STATUS_LOCAL_DESCRIPTOR;
}

enum netdam_status ndfw_buffer_take(struct ndfw *fw, const struct netdam_descriptor *descriptor, uint32_t permission,
                                    struct ndfw_buffer *buffer)
{
    if ((descriptor->flags & NETDAM_DESCRIPTOR_LIST) != 0) {
        return take_list(fw, descriptor, permission, buffer);
    }
    if (descriptor->list_count != 0) {
        return NETDAM_STATUS_LOCAL_DESCRIPTOR;
    }
    buffer->count = 1;
    return take_piece(fw, descriptor->local_region, descriptor->u.buffer.local_address, descriptor->length, permission,
                      &buffer->pieces[0]);
}

enum netdam_status ndfw_buffer_spans(struct ndfw *fw, const struct ndfw_buffer *buffer, uint64_t offset, uint64_t bytes,
                                     uint32_t permission, struct ndfw_span *spans, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < buffer->count; i++) {
        const struct ndfw_piece *piece = &buffer->pieces[i];
        enum netdam_status status;
        uint64_t step, at;

        if (offset >= piece->length && buffer->count > 1) {
            offset -= piece->length;
            continue;
        }
        step = piece->length - offset < bytes ? piece->length - offset : bytes;
        status = ndfw_local_access(fw, piece->region, piece->serial, piece->address + offset, step, permission, &at);
        if (status != NETDAM_STATUS_OK) {
            return status;
        }
        spans[*count].memory = ndfw_memory(
            fw, at, step, permission == NETDAM_PERMISSION_LOCAL_WRITE ? NETDAM_FW_ACCESS_WRITE : NETDAM_FW_ACCESS_READ);
        spans[*count].bytes = (uint32_t)step;
        if (spans[*count].memory == NULL) {
            return NETDAM_STATUS_LOCAL_RANGE;
        }
        (*count)++;
        bytes -= step;
        offset = 0;
        if (bytes == 0) {
            break;
        }
    }
    return NETDAM_STATUS_OK;
}

void ndfw_spans_store(const struct ndfw *fw, const struct ndfw_span *spans, uint32_t count, const uint8_t *from)
{
    for (uint32_t i = 0; i < count; i++) {
        ndfw_payload_store(fw, spans[i].memory, from, spans[i].bytes);
        from += spans[i].bytes;
    }
}

uint32_t ndfw_spans_load(const struct ndfw *fw, const struct ndfw_span *spans, uint32_t count, uint8_t *to,
                         bool with_crc)
{
    uint32_t crc = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (with_crc) {
            crc = ndfw_crc32c_copy(fw, crc, to, spans[i].memory, spans[i].bytes);
        } else {
            ndfw_payload_load(fw, to, spans[i].memory, spans[i].bytes);
        }
        to += spans[i].bytes;
    }
    return crc;
}
