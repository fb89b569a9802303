/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells a NetDAM datagram by names, in one line of text. */
#include "netdam_soft.h"
#include "netdam/isa.h"
#include "netdam/status.h"
#include "netdam/wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *at;
    size_t room; /* with the terminating zero */
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int written;

    if (text->room == 0) {
        return;
    }
    va_start(arguments, format);
    written = vsnprintf(text->at, text->room, format, arguments);
    va_end(arguments);
    if (written > 0) {
        size_t taken = (size_t)written < text->room ? (size_t)written : text->room - 1;

        text->at += taken;
        text->room -= taken;
    }
}

static const char *opcode_name(unsigned opcode)
{
    switch (opcode) {
#define NAME(name, value, flags, text)                                                                                 \
    case value:                                                                                                        \
        return #name;
        NETDAM_OP_LIST(NAME)
#undef NAME
    default:
        return NULL;
    }
}

static const char *operation_name(unsigned operation)
{
    switch (operation) {
#define NAME(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return #name;
        NETDAM_ALU_LIST(NAME)
#undef NAME
    default:
        return "?";
    }
}

static const char *type_name(unsigned type)
{
    switch (type) {
#define NAME(name, value, bytes, class_, text)                                                                         \
    case value:                                                                                                        \
        return #name;
        NETDAM_TYPE_LIST(NAME)
#undef NAME
    default:
        return "?";
    }
}

static const char *status_name(unsigned status)
{
    switch (status) {
#define NAME(name, value, class_, text)                                                                                \
    case value:                                                                                                        \
        return #name;
        NETDAM_STATUS_LIST(NAME)
#undef NAME
    default:
        return NULL;
    }
}

static void add_instruction(struct text *text, unsigned opcode, unsigned operation, unsigned type)
{
    const char *name = opcode_name(opcode);

    if (name != NULL) {
        add(text, " %s", name);
    } else {
        add(text, " opcode 0x%02x", opcode);
    }
    if (operation != NETDAM_ALU_NONE) {
        add(text, ".%s", operation_name(operation));
    }
    if (type != NETDAM_TYPE_NONE) {
        add(text, ".%s", type_name(type));
    }
}

static void add_flags(struct text *text, unsigned kind, unsigned flags)
{
    /* A payload CRC is the rule and not worth a word. */
    unsigned rest = flags & ~netdam_flags_defined(kind);

#define FLAG(name, value, where, meaning)                                                                              \
    if ((flags & ~rest & (value)) != 0 && (value) != NETDAM_FLAG_PAYLOAD_CRC) {                                        \
        add(text, " " #name);                                                                                          \
    }
    NETDAM_FLAG_LIST(FLAG)
#undef FLAG
    if (rest != 0) {
        add(text, " flags 0x%04x", rest);
    }
}

static void add_header(struct text *text, const struct netdam_wire_header *header)
{
    add(text, " ctx %016llx #%llu", (unsigned long long)netdam_be64_get(header->context),
        (unsigned long long)netdam_be48_get(header->number));
}

static void add_request(struct text *text, const struct netdam_wire_header *header, const uint8_t *body, size_t bytes)
{
    struct netdam_wire_segment segment;
    size_t node = header->node_form == NETDAM_NODE_FORM_IPV4   ? sizeof(struct netdam_wire_node_ipv4)
                  : header->node_form == NETDAM_NODE_FORM_IPV6 ? sizeof(struct netdam_wire_node_ipv6)
                                                               : 0;
    size_t at = node + (sizeof(segment) + node) * header->segment_index; /* the origin comes before the segments */

    if (at > bytes || bytes - at < sizeof(segment)) {
        add(text, " without the segment it names");
        add_header(text, header);
        return;
    }
    memcpy(&segment, body + at, sizeof(segment));
    add_instruction(text, segment.opcode, segment.operation, segment.type);
    add_header(text, header);
    add(text, " distance %u gen %016llx", netdam_be16_get(header->distance),
        (unsigned long long)netdam_be64_get(segment.generation));
    if ((netdam_op_flags(segment.opcode) & NETDAM_OPF_MEMORY) != 0) {
        add(text, " key %016llx address 0x%llx", (unsigned long long)netdam_be64_get(segment.key),
            (unsigned long long)netdam_be64_get(segment.address));
    }
    add(text, " length %u", netdam_be32_get(segment.length));
    if (header->segment_count != 1) {
        add(text, " segment %u of %u", header->segment_index + 1, header->segment_count);
    }
}

static void add_response(struct text *text, const struct netdam_wire_header *header, const uint8_t *body, size_t bytes)
{
    const char *status = status_name(header->status);
    struct netdam_wire_answer answer = {0};
    bool whole = bytes >= sizeof(answer);

    if (whole) {
        memcpy(&answer, body, sizeof(answer));
        add_instruction(text, answer.opcode, answer.operation, answer.type);
    }
    if (status != NULL) {
        add(text, " %s", status);
    } else {
        add(text, " status 0x%02x", header->status);
    }
    add_header(text, header);
    if (!whole) {
        add(text, " without answer");
        return;
    }
    add(text, " floor %llu gen %016llx length %u", (unsigned long long)netdam_be48_get(answer.floor),
        (unsigned long long)netdam_be64_get(answer.generation), netdam_be32_get(answer.length));
}

static size_t extension_bytes(unsigned kind, unsigned flags)
{
    size_t bytes = 0;

    if (kind == NETDAM_KIND_REQUEST && (flags & NETDAM_FLAG_IMMEDIATE) != 0) {
        bytes += sizeof(struct netdam_wire_immediate);
    }
    if ((flags & NETDAM_FLAG_TENANT) != 0) {
        bytes += sizeof(struct netdam_wire_tenant);
    }
    return bytes;
}

void netdam_soft_describe(const uint8_t *datagram, size_t bytes, char *line, size_t size)
{
    struct text text = {.at = line, .room = size};
    struct netdam_wire_header header;
    size_t body_at;
    size_t end;
    unsigned flags;

    if (size != 0) {
        line[0] = 0;
    }
    if (bytes < sizeof(header)) {
        add(&text, "MALFORMED %zu bytes, too few for a header", bytes);
        return;
    }
    memcpy(&header, datagram, sizeof(header));
    flags = netdam_be16_get(header.flags);
    body_at = sizeof(header) + extension_bytes(header.kind, flags);
    end = netdam_be16_get(header.header_length);
    if (header.version != NETDAM_WIRE_VERSION || end > bytes || body_at > end) {
        add(&text, "MALFORMED %zu bytes, version %u, header of %zu bytes", bytes, header.version, end);
        return;
    }
    if (header.kind == NETDAM_KIND_REQUEST) {
        add(&text, "REQUEST ");
        add_request(&text, &header, datagram + body_at, end - body_at);
    } else if (header.kind == NETDAM_KIND_RESPONSE) {
        add(&text, "RESPONSE");
        add_response(&text, &header, datagram + body_at, end - body_at);
    } else {
        add(&text, "MALFORMED %zu bytes, kind %u", bytes, header.kind);
        return;
    }
    if (netdam_be16_get(header.payload_length) != 0) {
        add(&text, " payload %u", netdam_be16_get(header.payload_length));
    }
    add_flags(&text, header.kind, flags);
}
