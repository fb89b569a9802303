/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads datagrams by the specification's headers alone; shares no code with the firmware. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decode.h"
#include "netdam.h"
#include "netdam/wire.h"

struct text {
    char *next;
    size_t left;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int bytes;

    va_start(arguments, format);
    bytes = vsnprintf(text->next, text->left, format, arguments);
    va_end(arguments);
    if (bytes < 0 || (size_t)bytes >= text->left) {
        text->next += text->left > 0 ? text->left - 1 : 0;
        text->left = text->left > 0 ? 1 : 0;
        return;
    }
    text->next += bytes;
    text->left -= (size_t)bytes;
}

/* Adds a name, or the number where there is none. */
static void add_name(struct text *text, const char *name, unsigned value)
{
    if (name) {
        add(text, "%s", name);
    } else {
        add(text, "0x%02x?", value);
    }
}

static void add_flags(struct text *text, unsigned flags)
{
    unsigned rest = flags;
    const char *separator = " [";

    if (flags == 0) {
        return;
    }
#define ADD_FLAG(name, value, where, explanation)                                                                      \
    if ((flags & (value)) != 0) {                                                                                      \
        add(text, "%s" #name, separator);                                                                              \
        separator = " ";                                                                                               \
        rest &= ~(unsigned)(value);                                                                                    \
    }
    NETDAM_FLAG_LIST(ADD_FLAG)
#undef ADD_FLAG
    if (rest != 0) {
        add(text, "%s0x%04x?", separator, rest);
    }
    add(text, "]");
}

static void add_instruction(struct text *text, unsigned opcode, unsigned operation, unsigned type)
{
    add_name(text, netdam_op_name(opcode), opcode);
    if (operation != NETDAM_ALU_NONE) {
        add(text, " ");
        add_name(text, netdam_alu_name(operation), operation);
    }
    if (type != NETDAM_TYPE_NONE) {
        add(text, " ");
        add_name(text, netdam_type_name(type), type);
    }
}

static size_t segment_bytes(unsigned node_form)
{
    switch (node_form) {
    case NETDAM_NODE_FORM_IMPLICIT:
        return sizeof(struct netdam_wire_segment);
    case NETDAM_NODE_FORM_IPV4:
        return sizeof(struct netdam_wire_segment) + sizeof(struct netdam_wire_node_ipv4);
    case NETDAM_NODE_FORM_IPV6:
        return sizeof(struct netdam_wire_segment) + sizeof(struct netdam_wire_node_ipv6);
    default:
        return 0;
    }
}

static void add_request(struct text *text, const struct netdam_wire_header *header, const uint8_t *body, size_t bytes)
{
    unsigned flags = netdam_be16_get(header->flags);
    size_t one = segment_bytes(header->node_form);
    struct netdam_wire_segment segment;

    if (one == 0) {
        add(text, "malformed request: node form %u", header->node_form);
        return;
    }
    if (header->segment_index >= header->segment_count) {
        add(text, "malformed request: segment %u of %u", header->segment_index, header->segment_count);
        return;
    }
    if (bytes < one * header->segment_count) {
        add(text, "malformed request: ends within its segments");
        return;
    }
    memcpy(&segment, body + one * header->segment_index, sizeof(segment));
    add_instruction(text, segment.opcode, segment.operation, segment.type);
    add(text, " number %llu distance %u", (unsigned long long)netdam_be48_get(header->number),
        netdam_be16_get(header->distance));
    add(text, " length %u", netdam_be32_get(segment.length));
    if ((netdam_op_flags(segment.opcode) & NETDAM_OPF_MEMORY) != 0) {
        add(text, " address 0x%llx", (unsigned long long)netdam_be64_get(segment.address));
    }
    add(text, " generation 0x%016llx", (unsigned long long)netdam_be64_get(segment.generation));
    if (header->segment_count > 1) {
        add(text, " segment %u of %u", header->segment_index + 1, header->segment_count);
    }
    add_flags(text, flags);
}

static void add_response(struct text *text, const struct netdam_wire_header *header, const uint8_t *body, size_t bytes)
{
    struct netdam_wire_answer answer;

    if (bytes < sizeof(answer)) {
        add(text, "malformed response: ends within its answer");
        return;
    }
    memcpy(&answer, body, sizeof(answer));
    add_name(text, netdam_status_name(header->status), header->status);
    add(text, " to ");
    add_instruction(text, answer.opcode, answer.operation, answer.type);
    add(text, " number %llu length %u", (unsigned long long)netdam_be48_get(header->number),
        netdam_be32_get(answer.length));
    add(text, " floor %llu", (unsigned long long)netdam_be48_get(answer.floor));
    if (header->status == NETDAM_STATUS_STALE) {
        add(text, " generation 0x%016llx instead of 0x%016llx", (unsigned long long)netdam_be64_get(answer.generation),
            (unsigned long long)netdam_be64_get(answer.echo));
    }
    if (answer.hop != 0) {
        add(text, " hop %u", answer.hop);
    }
    add_flags(text, netdam_be16_get(header->flags));
}

void describe_datagram(const uint8_t *datagram, size_t bytes, char *line, size_t line_bytes)
{
    struct text text = {line, line_bytes};
    struct netdam_wire_header header;
    size_t offset = sizeof(header);
    unsigned flags;
    bool request;

    if (bytes < sizeof(header)) {
        add(&text, "malformed: %zu bytes are no header", bytes);
        return;
    }
    memcpy(&header, datagram, sizeof(header));
    if (header.version != NETDAM_WIRE_VERSION) {
        add(&text, "version %u, number %llu", header.version, (unsigned long long)netdam_be48_get(header.number));
        return;
    }
    request = header.kind == NETDAM_KIND_REQUEST;
    if (!request && header.kind != NETDAM_KIND_RESPONSE) {
        add(&text, "malformed: kind %u", header.kind);
        return;
    }
    flags = netdam_be16_get(header.flags);
    offset += (flags & NETDAM_FLAG_IMMEDIATE) != 0 ? sizeof(struct netdam_wire_immediate) : 0;
    offset += (flags & NETDAM_FLAG_TENANT) != 0 ? sizeof(struct netdam_wire_tenant) : 0;
    if (offset > bytes) {
        add(&text, "malformed: ends within its extensions");
        return;
    }
    if (request) {
        add_request(&text, &header, datagram + offset, bytes - offset);
    } else {
        add_response(&text, &header, datagram + offset, bytes - offset);
    }
}
