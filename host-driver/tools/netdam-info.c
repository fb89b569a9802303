/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-info: prints what a device is, how it is configured, and what it has counted. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "hold_streams.h"

const char *tool_name = "netdam-info";

static const char help[] =
    "Usage: netdam-info [OPTION]...\n"
    "Print what a NetDAM device is and how it is configured; through a broker, also who leases what. Changes nothing "
    "on\n"
    "a card, also while another process uses it.\n"
    "\n"
    "  -d, --device DEVICE  pci, pci:ADDRESS, broker:SOCKET or\n"
    "                       udp:ADDR:PORT[,memory=64M][,mtu=1500][,queue-pairs=16][,merge=on];\n"
    "                       default: $NETDAM_DEVICE, else pci (through a broker if one listens, else the first card)\n"
    "  -c, --counters       also print the counters\n"
    "  -o, --operations     also print what the firmware executes (refused while another process uses a card)\n"
    "  -j, --json           print JSON: stable keys, base units\n"
    "  -h, --help           print this\n"
    "  -V, --version        print the version\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static const struct option options[] = {
    {"device", required_argument, NULL, 'd'},
    {"counters", no_argument, NULL, 'c'},
    {"operations", no_argument, NULL, 'o'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

struct addresses {
    char mac[18];
    char ipv4[INET_ADDRSTRLEN];
    char ipv6[INET6_ADDRSTRLEN];
};

static void format_addresses(const struct netdam_device_info *info, struct addresses *text)
{
    static const uint8_t none[16];

    snprintf(text->mac, sizeof(text->mac), "%02x:%02x:%02x:%02x:%02x:%02x", info->mac[0], info->mac[1], info->mac[2],
             info->mac[3], info->mac[4], info->mac[5]);
    inet_ntop(AF_INET, info->ipv4, text->ipv4, sizeof(text->ipv4));
    inet_ntop(AF_INET6, info->ipv6, text->ipv6, sizeof(text->ipv6));
    if (memcmp(info->ipv4, none, sizeof(info->ipv4)) == 0) {
        text->ipv4[0] = '\0';
    }
    if (memcmp(info->ipv6, none, sizeof(info->ipv6)) == 0) {
        text->ipv6[0] = '\0';
    }
}

static void print_text(struct netdam_device *device, const struct netdam_device_info *info)
{
    struct addresses address = {.mac = ""};

    format_addresses(info, &address);
    printf("device             %s\n", netdam_device_name(device));
    printf("specification      %u.%u\n", info->spec_version >> 16, info->spec_version & 0xffff);
    printf("firmware           %u.%u, interface %u\n", info->firmware_version >> 16, info->firmware_version & 0xffff,
           info->firmware_abi);
    printf("state              %s, link %s%s\n", (info->status & NETDAM_DEVICE_READY) != 0 ? "ready" : "not ready",
           (info->status & NETDAM_DEVICE_LINK_UP) != 0 ? "up" : "down",
           (info->status & NETDAM_DEVICE_FIRMWARE_STALE) != 0 ? ", firmware image could not be loaded" : "");
    printf("on-board memory    %llu bytes\n", (unsigned long long)info->memory_bytes);
    printf("main memory moved  %llu bytes\n", (unsigned long long)info->main_memory_bytes);
    printf("MAC                %s\n", address.mac);
    printf("IPv4               %s\n", address.ipv4[0] ? address.ipv4 : "none");
    printf("IPv6               %s\n", address.ipv6[0] ? address.ipv6 : "none");
    printf("UDP port           %u\n", info->udp_port);
    printf("MTU                %u bytes, %u of payload\n", info->mtu, info->payload_max);
    printf("longest request    %u bytes\n", info->length_max);
    printf("window             %u\n", info->window);
    printf("queue pairs        %u\n", info->queue_pairs);
    printf("regions            %u\n", info->regions);
    printf("peers              %u\n", info->peers);
    printf("vectors            %u\n", info->vectors);
    printf("generation         0x%016llx\n", (unsigned long long)info->generation);
}

/* Device names through a broker hold a path. */
static void print_json_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            printf("\\%c", *text);
        } else if ((unsigned char)*text < ' ') {
            printf("\\u%04x", (unsigned)*text);
        } else {
            putchar(*text);
        }
    }
    putchar('"');
}

static void print_json_address(const char *key, const char *value)
{
    if (value[0]) {
        printf(",\n  \"%s\": \"%s\"", key, value);
    } else {
        printf(",\n  \"%s\": null", key);
    }
}

static void print_json(struct netdam_device *device, const struct netdam_device_info *info)
{
    struct addresses address = {.mac = ""};

    format_addresses(info, &address);
    printf("{\n  \"device\": ");
    print_json_string(netdam_device_name(device));
    printf(",\n  \"library_version\": \"%s\"", netdam_version());
    printf(",\n  \"spec_version\": \"%u.%u\"", info->spec_version >> 16, info->spec_version & 0xffff);
    printf(",\n  \"firmware_version\": \"%u.%u\"", info->firmware_version >> 16, info->firmware_version & 0xffff);
    printf(",\n  \"firmware_abi\": %u", info->firmware_abi);
    printf(",\n  \"ready\": %s", (info->status & NETDAM_DEVICE_READY) != 0 ? "true" : "false");
    printf(",\n  \"link_up\": %s", (info->status & NETDAM_DEVICE_LINK_UP) != 0 ? "true" : "false");
    printf(",\n  \"firmware_stale\": %s", (info->status & NETDAM_DEVICE_FIRMWARE_STALE) != 0 ? "true" : "false");
    printf(",\n  \"memory_bytes\": %llu", (unsigned long long)info->memory_bytes);
    printf(",\n  \"main_memory_bytes\": %llu", (unsigned long long)info->main_memory_bytes);
    print_json_address("mac", address.mac);
    print_json_address("ipv4", address.ipv4);
    print_json_address("ipv6", address.ipv6);
    printf(",\n  \"udp_port\": %u", info->udp_port);
    printf(",\n  \"mtu_bytes\": %u", info->mtu);
    printf(",\n  \"payload_max_bytes\": %u", info->payload_max);
    printf(",\n  \"length_max_bytes\": %u", info->length_max);
    printf(",\n  \"window\": %u", info->window);
    printf(",\n  \"queue_pairs\": %u", info->queue_pairs);
    printf(",\n  \"regions\": %u", info->regions);
    printf(",\n  \"peers\": %u", info->peers);
    printf(",\n  \"vectors\": %u", info->vectors);
    printf(",\n  \"generation\": \"0x%016llx\"", (unsigned long long)info->generation);
    printf(",\n  \"time_ns\": %llu", (unsigned long long)info->time_ns);
}

/* Returns an exit code. */
static int print_counters(struct netdam_device *device, unsigned count, bool json)
{
    if (json) {
        printf(",\n  \"counters\": {");
    }
    for (unsigned i = 0; i < count && netdam_counter_name(i); i++) {
        uint64_t value;
        int rc = netdam_counter_read(device, i, &value);

        if (rc != 0) {
            return failed("counter %s: %s", netdam_counter_name(i), result_text(rc));
        }
        if (json) {
            printf("%s\n    \"", i == 0 ? "" : ",");
            print_lower(netdam_counter_name(i));
            printf("\": %llu", (unsigned long long)value);
        } else {
            printf("%20llu  ", (unsigned long long)value);
            print_lower(netdam_counter_name(i));
            printf(": %s\n", netdam_counter_text(i));
        }
    }
    if (json) {
        printf("\n  }");
    }
    return EXIT_OK;
}

static void print_lease(const struct netdam_lease *lease, bool json, bool first)
{
    if (json) {
        printf(
            "%s\n    {\"client\": %llu, \"pid\": %u, \"uid\": %u, \"queue_pairs\": %u, \"regions\": %u, \"peers\": %u, "
            "\"memory_bytes\": %llu}",
            first ? "" : ",", (unsigned long long)lease->client, lease->pid, lease->uid, lease->queue_pairs,
            lease->regions, lease->peers, (unsigned long long)lease->memory_bytes);
        return;
    }
    printf("lease              client %llu, pid %u, uid %u: %u queue pairs, %u regions, %u peers, %llu bytes\n",
           (unsigned long long)lease->client, lease->pid, lease->uid, lease->queue_pairs, lease->regions, lease->peers,
           (unsigned long long)lease->memory_bytes);
}

/* Prints who has what, if a broker holds the device. Returns an exit code. */
static int print_leases(struct netdam_device *device, bool json)
{
    struct netdam_lease *leases = NULL;
    unsigned room = 0;
    int count = netdam_leases(device, NULL, 0);

    if (count == -ENOTSUP) {
        return EXIT_OK;
    }
    /* A client may come in between: it is not shown. */
    if (count > 0) {
        room = (unsigned)count;
        leases = calloc(room, sizeof(*leases));
        count = leases ? netdam_leases(device, leases, room) : -ENOMEM;
    }
    if (count < 0) {
        free(leases);
        return failed("leases: %s", result_text(count));
    }
    if (json) {
        printf(",\n  \"leases\": [");
    }
    for (unsigned i = 0; i < room && i < (unsigned)count; i++) {
        print_lease(&leases[i], json, i == 0);
    }
    if (json) {
        printf("\n  ]");
    }
    free(leases);
    return EXIT_OK;
}

static void print_operation(unsigned opcode, unsigned operation, unsigned type, bool json, bool first)
{
    if (json) {
        printf("%s\n    {\"opcode\": \"", first ? "" : ",");
        print_lower(netdam_op_name(opcode));
        printf("\", \"operation\": \"");
        print_lower(netdam_alu_name(operation));
        printf("\", \"type\": \"");
        print_lower(netdam_type_name(type));
        printf("\"}");
        return;
    }
    printf("executes           ");
    print_lower(netdam_op_name(opcode));
    if (operation != NETDAM_ALU_NONE) {
        putchar(' ');
        print_lower(netdam_alu_name(operation));
    }
    if (type != NETDAM_TYPE_NONE) {
        putchar(' ');
        print_lower(netdam_type_name(type));
    }
    putchar('\n');
}

/* Asks for every combination that the specification defines. Returns an exit code. */
static int print_operations(struct netdam_device *device, bool json)
{
    bool first = true;

    if (json) {
        printf(",\n  \"operations\": [");
    }
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        for (unsigned operation = 0; netdam_alu_name(operation); operation++) {
            for (unsigned type = 0; netdam_type_name(type); type++) {
                int rc;

                if (netdam_algebra(opcode, operation, type) < 0) {
                    continue;
                }
                rc = netdam_opcode_query(device, opcode, operation, type, NULL);
                if (rc == -EOPNOTSUPP) {
                    continue;
                }
                if (rc != 0) {
                    return failed("asking for %s: %s", netdam_op_name(opcode), result_text(rc));
                }
                print_operation(opcode, operation, type, json, first);
                first = false;
            }
        }
    }
    if (json) {
        printf("\n  ]");
    }
    return EXIT_OK;
}

int main(int argc, char **argv)
{
    const char *name = getenv("NETDAM_DEVICE");
    struct netdam_open_config config = {.flags = NETDAM_OPEN_OBSERVE, .log = remember_error};
    struct netdam_device *device;
    struct netdam_device_info info;
    bool counters = false;
    bool operations = false;
    bool json = false;
    int option;
    int rc;

    ndlib_hold_streams();
    while ((option = getopt_long(argc, argv, "+d:cojhV", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            name = optarg;
            break;
        case 'c':
            counters = true;
            break;
        case 'o':
            operations = true;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_OK;
        case 'V':
            printf("netdam-info %s\n", netdam_version());
            return EXIT_OK;
        default:
            return EXIT_USAGE;
        }
    }
    if (optind != argc) {
        return misused("unexpected argument \"%s\"", argv[optind]);
    }
    name = device_or(name, "pci");
    if (operations) {
        config.flags = NETDAM_OPEN_NO_RESET;
    }
    rc = netdam_open(name, &config, &device);
    if (rc != 0) {
        return device_failed(name, rc);
    }
    rc = netdam_query(device, &info);
    if (rc != 0) {
        rc = failed("%s: %s", netdam_device_name(device), result_text(rc));
        netdam_close(device);
        return rc;
    }
    if (json) {
        print_json(device, &info);
    } else {
        print_text(device, &info);
    }
    rc = print_leases(device, json);
    if (rc == 0 && operations) {
        rc = print_operations(device, json);
    }
    if (rc == 0 && counters) {
        rc = print_counters(device, info.counters, json);
    }
    if (json) {
        printf("\n}\n");
    }
    netdam_close(device);
    return rc == EXIT_OK ? flush_output() : rc;
}
