/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-regs: prints a device's registers by name, with what their bits mean; writes one if that is really wanted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common.h"
/* The library hides registers from applications; this tool is there to show them, so it goes behind the library. */
#include "internal.h"
#include "hold_streams.h"

const char *tool_name = "netdam-regs";

static const char help[] =
    "Usage: netdam-regs [OPTION]... [REGISTER]...\n"
    "Print the registers of a NetDAM device, or those named: by name, by counter name, or by offset in BAR0.\n"
    "\n"
    "  -d, --device DEVICE     pci, pci:ADDRESS, broker:SOCKET or\n"
    "                          udp:ADDR:PORT[,memory=64M][,mtu=1500][,queue-pairs=16][,merge=on];\n"
    "                          default: $NETDAM_DEVICE, else pci (through a broker if one listens, else the first "
    "card)\n"
    "  -c, --counters          print the counters, too\n"
    "  -j, --json              print JSON: stable keys, values as hexadecimal strings\n"
    "  -w, --write NAME=VALUE  write a register, then print it. The driver that uses the device does not know of it\n"
    "                          and may fail or lose data: needs --yes-really\n"
    "      --yes-really        yes\n"
    "  -h, --help              print this\n"
    "  -V, --version           print the version\n"
    "\n"
    "Reading changes nothing, also while another process uses the card. Exit status: 0 done, 1 failed, 2 wrong "
    "usage.\n";

enum {
    OPTION_YES = 256,
};

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'},
    {"counters", no_argument, NULL, 'c'},
    {"json", no_argument, NULL, 'j'},
    {"write", required_argument, NULL, 'w'},
    {"yes-really", no_argument, NULL, OPTION_YES},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

enum access { RO, RW };

struct reg {
    const char *name;
    uint32_t offset;
    unsigned bytes;
    enum access access;
    const char *text;
};

#define REG_ROW(name, offset, bytes, access, reset, text) {#name, offset, bytes, access, text},
#define COUNTER_ROW(name, text)                           {#name, NETDAM_PAGE_COUNTERS + 8 * NETDAM_COUNTER_##name, 8, RO, text},

/* Registers first, then counters. */
static const struct reg regs[] = {NETDAM_REG_LIST(REG_ROW) NETDAM_COUNTER_LIST(COUNTER_ROW)};

#undef REG_ROW
#undef COUNTER_ROW

#define REGS     (sizeof(regs) / sizeof(regs[0]))
#define COUNTERS ((size_t)NETDAM_COUNTER_COUNT)

static const char *access_name(const struct reg *reg)
{
    return reg->access == RW ? "rw" : "ro";
}

/* By name in any case, or by offset. NULL: none. */
static const struct reg *find(const char *text)
{
    uint64_t offset = UINT64_MAX;

    parse_size(text, &offset);
    for (size_t i = 0; i < REGS; i++) {
        if (strcasecmp(regs[i].name, text) == 0 || regs[i].offset == offset) {
            return &regs[i];
        }
    }
    return NULL;
}

static const char *admin_name(uint64_t command)
{
    switch (command) {
#define NAME(name, value, arguments, results, text)                                                                    \
    case value:                                                                                                        \
        return #name;
        NETDAM_ADMIN_LIST(NAME)
#undef NAME
    default:
        return command == 0 ? "none yet" : "undefined";
    }
}

static const char *admin_status_name(uint64_t status)
{
    switch (status) {
#define NAME(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return #name ": " text;
        NETDAM_ADMIN_STATUS_LIST(NAME)
#undef NAME
    default:
        return "undefined";
    }
}

static void decode_status(uint64_t value, char *text, size_t bytes)
{
    uint64_t rest = value & ~(uint64_t)(NETDAM_DEVICE_READY | NETDAM_DEVICE_LINK_UP | NETDAM_DEVICE_FIRMWARE_STALE);

    snprintf(text, bytes, "%s %s%s%s", (value & NETDAM_DEVICE_READY) != 0 ? "READY" : "not ready,",
             (value & NETDAM_DEVICE_LINK_UP) != 0 ? "LINK_UP" : "link down",
             (value & NETDAM_DEVICE_FIRMWARE_STALE) != 0 ? " FIRMWARE_STALE" : "",
             rest != 0 ? " and undefined bits" : "");
}

static void decode_size(uint64_t value, char *text, size_t bytes)
{
    static const char units[] = "KMGT";
    unsigned unit = 0;

    while (unit < 4 && value != 0 && value % 1024 == 0) {
        value /= 1024;
        unit++;
    }
    if (unit > 0) {
        snprintf(text, bytes, "%" PRIu64 " %ciB", value, units[unit - 1]);
    } else {
        snprintf(text, bytes, "%" PRIu64, value);
    }
}

static void decode_ipv6(struct netdam_device *device, char *text, size_t bytes)
{
    uint64_t halves[2] = {ndlib_read(device, NETDAM_REG_IPV6_HIGH, 8), ndlib_read(device, NETDAM_REG_IPV6_LOW, 8)};
    uint8_t address[16];

    for (unsigned i = 0; i < 16; i++) {
        address[i] = (uint8_t)(halves[i / 8] >> (56 - 8 * (i % 8)));
    }
    if (halves[0] == 0 && halves[1] == 0) {
        snprintf(text, bytes, "none");
    } else {
        inet_ntop(AF_INET6, address, text, (socklen_t)bytes);
    }
}

/* What a value means. */
static void decode(struct netdam_device *device, const struct reg *reg, uint64_t value, char *text, size_t bytes)
{
    unsigned byte[8];

    for (unsigned i = 0; i < 8; i++) {
        byte[i] = (unsigned)(value >> (8 * i)) & 0xff;
    }
    switch (reg->offset) {
    case NETDAM_REG_ID:
        snprintf(text, bytes, "%s", value == NETDAM_ID ? "\"NDAM\"" : "not a NetDAM device");
        break;
    case NETDAM_REG_SPEC_VERSION:
    case NETDAM_REG_FIRMWARE_VERSION:
        snprintf(text, bytes, "%" PRIu64 ".%" PRIu64, value >> 16, value & 0xffff);
        break;
    case NETDAM_REG_STATUS:
        decode_status(value, text, bytes);
        break;
    case NETDAM_REG_MEMORY_BYTES:
    case NETDAM_REG_LENGTH_MAX:
        decode_size(value, text, bytes);
        break;
    case NETDAM_REG_MAC:
        snprintf(text, bytes, "%02x:%02x:%02x:%02x:%02x:%02x", byte[5], byte[4], byte[3], byte[2], byte[1], byte[0]);
        break;
    case NETDAM_REG_IPV4:
        snprintf(text, bytes, value == 0 ? "none" : "%u.%u.%u.%u", byte[3], byte[2], byte[1], byte[0]);
        break;
    case NETDAM_REG_IPV6_HIGH:
    case NETDAM_REG_IPV6_LOW:
        decode_ipv6(device, text, bytes);
        break;
    case NETDAM_REG_GENERATION:
        snprintf(text, bytes, "epoch 0x%08" PRIx64 ", count %" PRIu64, value >> 32, value & UINT32_MAX);
        break;
    case NETDAM_REG_TIME_NS:
        snprintf(text, bytes, "%.9f s", (double)value / 1e9);
        break;
    case NETDAM_REG_CONTROL:
        snprintf(text, bytes, "writing 1 resets");
        break;
    case NETDAM_REG_ADMIN_COMMAND:
        snprintf(text, bytes, "%s", admin_name(value));
        break;
    case NETDAM_REG_ADMIN_STATUS:
        snprintf(text, bytes, "%s", admin_status_name(value));
        break;
    default:
        snprintf(text, bytes, "%" PRIu64, value);
        break;
    }
}

/* A broker answers for identity and counters, but keeps administration to itself. */
static bool is_withheld(struct netdam_device *device, const struct reg *reg)
{
    return strncmp(netdam_device_name(device), "broker:", 7) == 0 &&
           reg->offset / NETDAM_PAGE_BYTES == NETDAM_PAGE_ADMIN / NETDAM_PAGE_BYTES;
}

static void print_reg(struct netdam_device *device, const struct reg *reg, bool json, bool first)
{
    uint64_t value = ndlib_read(device, reg->offset, reg->bytes);
    int digits = 2 * (int)reg->bytes;
    char decoded[96];

    decode(device, reg, value, decoded, sizeof(decoded));
    if (!json) {
        printf("0x%04x  %-22s %s  %*s0x%0*" PRIx64 "  %s\n", reg->offset, reg->name, access_name(reg), 16 - digits, "",
               digits, value, decoded);
        return;
    }
    printf("%s\n    {\"name\": \"", first ? "" : ",");
    print_lower(reg->name);
    printf("\", \"offset\": %u, \"bytes\": %u, \"access\": \"%s\", \"value\": \"0x%0*" PRIx64 "\", \"decoded\": \"",
           reg->offset, reg->bytes, access_name(reg), digits, value);
    for (const char *c = decoded; *c; c++) {
        printf(*c == '"' ? "\\%c" : "%c", *c);
    }
    printf("\"}");
}

struct write {
    const struct reg *reg; /* NULL: nothing is written */
    uint64_t value;
};

static int parse_write(char *text, struct write *write)
{
    char *value = strchr(text, '=');

    if (!value) {
        return misused("--write: \"%s\" is not of the form NAME=VALUE", text);
    }
    *value++ = '\0';
    write->reg = find(text);
    if (!write->reg) {
        return misused("--write: no register is called \"%s\"", text);
    }
    if (write->reg->access != RW) {
        return misused("--write: %s is read only", write->reg->name);
    }
    if (!parse_value(value, write->reg->bytes == 8 ? NETDAM_TYPE_U64 : NETDAM_TYPE_U32, &write->value)) {
        return misused("--write: \"%s\" is no value of %u bytes", value, write->reg->bytes);
    }
    return EXIT_OK;
}

/* Whether all that is named can be had; fails before anything is written or printed. */
static int check_access(struct netdam_device *device, const struct write *write, char **names)
{
    const struct reg *withheld = write->reg && is_withheld(device, write->reg) ? write->reg : NULL;

    for (size_t i = 0; names[i]; i++) {
        const struct reg *reg = find(names[i]);

        withheld = is_withheld(device, reg) ? reg : withheld;
    }
    return withheld ? failed("%s: %s is the broker's own", netdam_device_name(device), withheld->name) : EXIT_OK;
}

/* Prints the registers named, or all that can be had. */
static void print_regs(struct netdam_device *device, const struct write *write, char **names, bool counters, bool json)
{
    size_t count = counters ? REGS : REGS - COUNTERS;
    bool first = true;

    if (json) {
        printf("{\n  \"device\": \"%s\",\n  \"registers\": [", netdam_device_name(device));
    }
    if (write->reg) {
        print_reg(device, write->reg, json, first);
        first = false;
    }
    for (size_t i = 0; names[i]; i++) {
        print_reg(device, find(names[i]), json, first);
        first = false;
    }
    if (first) {
        for (size_t i = 0; i < count; i++) {
            if (!is_withheld(device, &regs[i])) {
                print_reg(device, &regs[i], json, first);
                first = false;
            }
        }
    }
    if (json) {
        printf("\n  ]\n}\n");
    }
}

int main(int argc, char **argv)
{
    const struct netdam_open_config config = {.flags = NETDAM_OPEN_OBSERVE, .log = remember_error};
    const char *device_name = getenv("NETDAM_DEVICE");
    struct netdam_device *device;
    struct write write = {.reg = NULL};
    bool counters = false;
    bool json = false;
    bool yes = false;
    int option;
    int rc = EXIT_OK;

    ndlib_hold_streams();
    while (rc == EXIT_OK && (option = getopt_long(argc, argv, "d:cjw:hV", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            device_name = optarg;
            break;
        case 'c':
            counters = true;
            break;
        case 'j':
            json = true;
            break;
        case 'w':
            rc = parse_write(optarg, &write);
            break;
        case OPTION_YES:
            yes = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_OK;
        case 'V':
            printf("netdam-regs %s\n", netdam_version());
            return EXIT_OK;
        default:
            return EXIT_USAGE;
        }
    }
    for (int i = optind; rc == EXIT_OK && i < argc; i++) {
        if (!find(argv[i])) {
            rc = misused("no register is called \"%s\" or starts there", argv[i]);
        }
    }
    if (rc == EXIT_OK && write.reg && !yes) {
        rc = misused("--write %s goes behind the back of whoever uses the device: needs --yes-really", write.reg->name);
    }
    if (rc != EXIT_OK) {
        return rc;
    }
    device_name = device_or(device_name, "pci");
    rc = netdam_open(device_name, &config, &device);
    if (rc != 0) {
        return device_failed(device_name, rc);
    }
    rc = check_access(device, &write, argv + optind);
    if (rc != EXIT_OK) {
        netdam_close(device);
        return rc;
    }
    if (write.reg) {
        fprintf(stderr, "%s: warning: writing 0x%" PRIx64 " to %s of %s; its driver does not know\n", tool_name,
                write.value, write.reg->name, netdam_device_name(device));
        ndlib_write(device, write.reg->offset, write.reg->bytes, write.value);
    }
    print_regs(device, &write, argv + optind, counters, json);
    netdam_close(device);
    return flush_output();
}
