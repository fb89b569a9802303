/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes docs/wireshark/netdam_tables.lua from the specification headers: the names and places a dissector needs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netdam/isa.h"
#include "netdam/status.h"
#include "netdam/transaction.h"
#include "netdam/wire.h"

static void write_values(FILE *f)
{
    fprintf(f, "t.version = %d\nt.port = %d\nt.segments_max = %d\nt.window_max = %d\nt.crc_bytes = %d\n",
            NETDAM_WIRE_VERSION, NETDAM_UDP_PORT, NETDAM_SEGMENTS_MAX, NETDAM_WINDOW_MAX, NETDAM_CRC_BYTES);

#define ROW(name, value, text) fprintf(f, "    [%d] = \"%s\",\n", (value), #name);
    fprintf(f, "t.kind = {\n");
    NETDAM_KIND_LIST(ROW)
    fprintf(f, "}\nt.node_form = {\n");
    NETDAM_NODE_FORM_LIST(ROW)
    fprintf(f, "}\nt.tenant_mode = {\n");
    NETDAM_TENANT_MODE_LIST(ROW)
    fprintf(f, "}\nt.operation = {\n");
    NETDAM_ALU_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
#define ROW(name, value, flags, text) fprintf(f, "    [0x%02x] = \"%s\",\n", (unsigned)(value), #name);
    fprintf(f, "t.opcode = {\n");
    NETDAM_OP_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
#define ROW(name, value, flags, text)                                                                                  \
    if (((flags)&NETDAM_OPF_MODIFIES) != 0) {                                                                          \
        fprintf(f, "    [0x%02x] = true,\n", (unsigned)(value));                                                       \
    }
    fprintf(f, "t.modifies = {\n");
    NETDAM_OP_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
#define ROW(name, value, permission, data, text)                                                                       \
    fprintf(f, "    [%d] = {name = \"%s\", data = %s},\n", (value), #name, (data) != 0 ? "true" : "false");
    fprintf(f, "t.entry_kind = {\n");
    NETDAM_TRANSACTION_KIND_LIST(ROW)
    fprintf(f, "}\nt.entry_bytes = %zu\nt.entries_max = %d\nt.fetch_max = %d\n",
            sizeof(struct netdam_transaction_entry), NETDAM_TRANSACTION_ENTRIES_MAX, NETDAM_TRANSACTION_FETCH_MAX);
#undef ROW
#define ROW(name, value, bytes, class_, text) fprintf(f, "    [0x%02x] = \"%s\",\n", (unsigned)(value), #name);
    fprintf(f, "t.type = {\n");
    NETDAM_TYPE_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
#define ROW(name, value, class_, text) fprintf(f, "    [0x%02x] = \"%s\",\n", (unsigned)(value), #name);
    fprintf(f, "t.status = {\n");
    NETDAM_STATUS_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
#define ROW(name, value, class_, text) fprintf(f, "    [0x%02x] = \"%s\",\n", (unsigned)(value), #class_);
    fprintf(f, "t.status_class = {\n");
    NETDAM_STATUS_LIST(ROW)
    fprintf(f, "}\n");
#undef ROW
    /* In the order of the list, which is that of the extensions. */
#define ROW(name, value, where, text)                                                                                  \
    fprintf(f, "    {name = \"%s\", value = 0x%04x, where = \"%s\"},\n", #name, (unsigned)(value), #where);
    fprintf(f, "t.flag = {\n");
    NETDAM_FLAG_LIST(ROW)
    fprintf(f, "}\nt.flags_defined = {[%d] = 0x%04x, [%d] = 0x%04x}\n", NETDAM_KIND_REQUEST,
            netdam_flags_defined(NETDAM_KIND_REQUEST), NETDAM_KIND_RESPONSE,
            netdam_flags_defined(NETDAM_KIND_RESPONSE));
#undef ROW
}

struct place {
    const char *structure;
    size_t structure_bytes;
    const char *member; /* NULL: a structure begins */
    size_t offset;
    size_t bytes;
};

/* A member that is missing leaves a gap, and a gap is an error: none of these structures has padding. */
static const struct place places[] = {
#define S(type) {#type, sizeof(struct netdam_wire_##type), NULL, 0, 0},
#define M(type, member)                                                                                                \
    {#type, sizeof(struct netdam_wire_##type), #member, offsetof(struct netdam_wire_##type, member),                   \
     sizeof(((struct netdam_wire_##type *)0)->member)},
    /* clang-format off */
    S(header)
    M(header, version) M(header, kind) M(header, flags) M(header, segment_count) M(header, segment_index)
    M(header, node_form) M(header, status) M(header, context) M(header, number) M(header, distance)
    M(header, payload_length) M(header, header_length) M(header, header_crc)
    S(immediate)
    M(immediate, value)
    S(tenant)
    M(tenant, tenant) M(tenant, mode) M(tenant, reserved) M(tenant, salt) M(tenant, counter) M(tenant, tag)
    S(segment)
    M(segment, opcode) M(segment, operation) M(segment, type) M(segment, reserved) M(segment, length)
    M(segment, key) M(segment, address) M(segment, generation)
    S(node_ipv4)
    M(node_ipv4, address) M(node_ipv4, port) M(node_ipv4, reserved)
    S(node_ipv6)
    M(node_ipv6, address) M(node_ipv6, port) M(node_ipv6, reserved)
    S(answer)
    M(answer, opcode) M(answer, operation) M(answer, type) M(answer, hop) M(answer, length) M(answer, generation)
    M(answer, echo) M(answer, floor) M(answer, depth)
/* clang-format on */
#undef S
#undef M
};

static void write_places(FILE *f)
{
    const size_t count = sizeof(places) / sizeof(places[0]);
    size_t end = 0;

    fprintf(f, "-- {offset, bytes}\n");
    for (size_t i = 0; i < count; i++) {
        const struct place *p = &places[i];
        bool is_last = i + 1 == count || places[i + 1].member == NULL;

        if (p->member == NULL) {
            fprintf(f, "t.%s = {\n    bytes = %zu,\n", p->structure, p->structure_bytes);
            end = 0;
            continue;
        }
        if (p->offset != end || (is_last && p->offset + p->bytes != p->structure_bytes)) {
            fprintf(stderr, "lua: a member beside %s.%s is not listed\n", p->structure, p->member);
            exit(1);
        }
        end = p->offset + p->bytes;
        fprintf(f, "    %s = {%zu, %zu},\n%s", p->member, p->offset, p->bytes, is_last ? "}\n" : "");
    }
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: lua FILE\n");
        return 2;
    }
    if (f == NULL) {
        fprintf(stderr, "lua: cannot write %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    fprintf(f, "-- SPDX-License-Identifier: BSD-3-Clause\n"
               "-- Generated by `make docs` from firmware/include/netdam/. Do not edit.\n"
               "local t = {}\n");
    write_values(f);
    write_places(f);
    fprintf(f, "return t\n");
    if (ferror(f) || fclose(f) != 0) {
        fprintf(stderr, "lua: write error in %s\n", argv[1]);
        return 1;
    }
    return 0;
}
