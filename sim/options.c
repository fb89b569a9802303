/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of netdam-node. */
#define _GNU_SOURCE
#include "options.h"
#include "address.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "netdam/wire.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

/* The default port is its argument. */
static const char help[] =
    "usage: netdam-node [OPTION]...\n"
    "Runs a NetDAM node on a UDP socket: memory with an ALU that peers reach by the key of its one region.\n"
    "\n"
    "  -l, --listen ADDR:PORT   IPv4 address and UDP port; port 0 takes a free one (127.0.0.1:%u)\n"
    "  -m, --memory SIZE        size of memory and region, a multiple of 4K (64M)\n"
    "  -k, --key HEX            64-bit key of the region, not 0 (random)\n"
    "  -T, --tenant ID:HEX:MODE the region is a tenant's: number, 32 digits of key, authenticate or encrypt\n"
    "  -p, --permissions LIST   what peers may do: r read, w write, a ALU and atomics (rwa)\n"
    "  -f, --load FILE          copy FILE to the start of memory first\n"
    "  -M, --mtu N              largest IP packet sent, 1500 to 9000 (1500)\n"
    "  -F, --forward NET/BITS   pass chains on to that network too; up to three times\n"
    "  -w, --wire PATH:PEER     not on the kernel's network but on an Ethernet wire of unix datagrams: bind PATH,\n"
    "                           send to PEER; ADDR is the address on that wire, a /24\n"
    "  -n, --no-payload-crc     do not add a CRC to payloads\n"
    "  -N, --no-merge           do not put what belongs together into one packet\n"
    "  -t, --trace              print each datagram by name\n"
    "  -c, --counters           print all counters at the end\n"
    "  -j, --json               ready line and counters as JSON\n"
    "  -v, --verbose            print the firmware's messages about peers, too\n"
    "  -V, --version            print versions\n"
    "  -h, --help               print this\n"
    "\n"
    "When the node is ready it prints one line:\n"
    "  netdam-node ready address=A port=P bytes=N key=0xH mtu=N\n"
    "It ends with status 0 on SIGINT, SIGTERM or SIGHUP; with 1 when it fails, with 2 when an argument is wrong.\n"
    "Sizes take the suffixes K, M, G and T.\n";

static const struct option long_options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"memory", required_argument, NULL, 'm'},
    {"key", required_argument, NULL, 'k'},
    {"tenant", required_argument, NULL, 'T'},
    {"permissions", required_argument, NULL, 'p'},
    {"load", required_argument, NULL, 'f'},
    {"mtu", required_argument, NULL, 'M'},
    {"forward", required_argument, NULL, 'F'},
    {"wire", required_argument, NULL, 'w'},
    {"no-payload-crc", no_argument, NULL, 'n'},
    {"no-merge", no_argument, NULL, 'N'},
    {"trace", no_argument, NULL, 't'},
    {"counters", no_argument, NULL, 'c'},
    {"json", no_argument, NULL, 'j'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool parse_key(const char *text, uint64_t *key)
{
    size_t digits;

    if (strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0) {
        text += 2;
    }
    digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 16 || text[digits] != 0) {
        return false;
    }
    *key = strtoull(text, NULL, 16);
    return *key != 0;
}

/* ID:KEY:MODE. */
static bool parse_tenant(const char *text, struct ndsim_options *options)
{
    const char *key = strchr(text, ':');
    char half[17] = "", digits[] = "0123456789abcdefABCDEF";
    unsigned long long id;
    char *end;

    if (key == NULL || *text < '0' || *text > '9' || strspn(key + 1, digits) != 32 || key[33] != ':') {
        return false;
    }
    id = strtoull(text, &end, 10);
    memcpy(half, key + 1, 16);
    options->tenant_key[0] = strtoull(half, NULL, 16);
    memcpy(half, key + 17, 16);
    options->tenant_key[1] = strtoull(half, NULL, 16);
    options->tenant = (uint32_t)id;
    options->tenant_mode = strcmp(key + 34, "encrypt") == 0        ? NETDAM_TENANT_MODE_ENCRYPT
                           : strcmp(key + 34, "authenticate") == 0 ? NETDAM_TENANT_MODE_AUTHENTICATE
                                                                   : NETDAM_TENANT_MODE_NONE;
    return end == key && id != 0 && id <= UINT32_MAX && options->tenant_mode != NETDAM_TENANT_MODE_NONE;
}

static bool parse_permissions(const char *text, uint32_t *permissions)
{
    *permissions = 0;
    for (; *text != 0; text++) {
        uint32_t bit = *text == 'r'   ? NETDAM_PERMISSION_REMOTE_READ
                       : *text == 'w' ? NETDAM_PERMISSION_REMOTE_WRITE
                       : *text == 'a' ? NETDAM_PERMISSION_REMOTE_ALU
                                      : 0;

        if (bit == 0) {
            return false;
        }
        *permissions |= bit;
    }
    return *permissions != 0;
}

static bool parse_mtu(const char *text, uint32_t *mtu)
{
    uint64_t value;

    if (!ndsim_size_parse(text, &value) || value < NETDAM_MTU_MIN || value > NETDAM_MTU_MAX) {
        return false;
    }
    *mtu = (uint32_t)value;
    return true;
}

static bool parse_network(const char *text, struct ndsim_options *options)
{
    struct netdam_soft_network *network = &options->forward[options->forward_count];
    const char *slash = strchr(text, '/');
    char host[INET_ADDRSTRLEN];
    uint64_t prefix;

    if (options->forward_count == NETDAM_SOFT_NETWORKS || slash == NULL || (size_t)(slash - text) >= sizeof(host) ||
        !ndsim_size_parse(slash + 1, &prefix) || prefix > 32) {
        return false;
    }
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = 0;
    network->prefix = (uint8_t)prefix;
    options->forward_count++;
    return inet_pton(AF_INET, host, network->address) == 1;
}

static bool parse_wire(char *text, struct ndsim_options *options)
{
    char *colon = strchr(text, ':');

    if (colon == NULL || colon == text || colon[1] == 0) {
        return false;
    }
    *colon = 0;
    options->wire_path = text;
    options->wire_peer_path = colon + 1;
    return true;
}

static bool wrong(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "netdam-node: --%s %s: expected %s\n", option, value, expected);
    return false;
}

static bool parse_value(int option, char *value, struct ndsim_options *options)
{
    struct sockaddr_in address;

    switch (option) {
    case 'l':
        options->listen = value;
        return (ndsim_address_parse(value, &address) && address.sin_addr.s_addr != 0) ||
               wrong("listen", value, "ADDR:PORT with one IPv4 address of this machine, such as 127.0.0.1:0");
    case 'm':
        return (ndsim_size_parse(value, &options->memory_bytes) && options->memory_bytes != 0 &&
                options->memory_bytes % 4096 == 0) ||
               wrong("memory", value, "a multiple of 4K, such as 64M");
    case 'k':
        return parse_key(value, &options->key) || wrong("key", value, "1 to 16 hexadecimal digits, not all 0");
    case 'T':
        return parse_tenant(value, options) ||
               wrong("tenant", value, "ID:KEY:MODE, such as 7:00112233445566778899aabbccddeeff:encrypt");
    case 'p':
        return parse_permissions(value, &options->permissions) || wrong("permissions", value, "letters out of r, w, a");
    case 'f':
        options->load = value;
        return true;
    case 'M':
        return parse_mtu(value, &options->mtu) || wrong("mtu", value, TEXT(NETDAM_MTU_MIN) " to " TEXT(NETDAM_MTU_MAX));
    case 'F':
        return parse_network(value, options) ||
               wrong("forward", value, "an IPv4 network such as 10.1.0.0/16, at most three times");
    case 'w':
        return parse_wire(value, options) || wrong("wire", value, "PATH:PEER");
    case 'n':
        options->no_payload_crc = true;
        return true;
    case 'N':
        options->no_merge = true;
        return true;
    case 't':
        options->trace = true;
        return true;
    case 'c':
        options->counters = true;
        return true;
    case 'j':
        options->json = true;
        return true;
    default:
        options->verbose = true;
        return true;
    }
}

static void print_version(void)
{
    uint32_t firmware = netdam_fw_entry()->firmware_version;

    printf("netdam-node: specification %u.%u, firmware %s %u.%u\n", NETDAM_SPEC_VERSION >> 16,
           NETDAM_SPEC_VERSION & 0xffffu, netdam_fw_entry()->name, firmware >> 16, firmware & 0xffffu);
}

enum ndsim_options_result ndsim_options_parse(int argc, char **argv, struct ndsim_options *options)
{
    int option;

    *options = (struct ndsim_options){
        .listen = "127.0.0.1:" TEXT(NETDAM_UDP_PORT),
        .memory_bytes = UINT64_C(64) << 20,
        .mtu = NETDAM_MTU_MIN,
        .permissions = NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU,
    };
    while ((option = getopt_long(argc, argv, "l:m:k:T:p:f:M:F:w:nNtcjvVh", long_options, NULL)) != -1) {
        if (option == 'h') {
            printf(help, (unsigned)NETDAM_UDP_PORT);
            return NDSIM_OPTIONS_DONE;
        }
        if (option == 'V') {
            print_version();
            return NDSIM_OPTIONS_DONE;
        }
        if (option == '?' || !parse_value(option, optarg, options)) {
            return NDSIM_OPTIONS_WRONG;
        }
    }
    if (optind != argc) {
        fprintf(stderr, "netdam-node: %s: there are no arguments but options\n", argv[optind]);
        return NDSIM_OPTIONS_WRONG;
    }
    return NDSIM_OPTIONS_RUN;
}
