/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of netdam-node. */
#define _GNU_SOURCE
#include "options_parse.h"
#include "address.h"
#include "memif.h"
#include "netdam/admin.h"
#include "netdam/firmware.h"
#include "netdam/regs.h"
#include "netdam/wire.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#define PERMISSIONS_DEFAULT                                                                                            \
    (NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU)

/* The default port is its argument. */
static const char help[] =
    "usage: netdam-node [OPTION]... [--node NAME [OPTION]...]...\n"
    "Runs NetDAM nodes: memory with an ALU, behind a UDP port, that peers reach by the keys of its regions.\n"
    "\n"
    "Which nodes:\n"
    "      --nodes N            N nodes, node0 and so on, that differ by their port\n"
    "      --step port|address  or by their address: what is counted upward from --listen (port)\n"
    "      --node NAME          options behind it are this node's; those before the first --node hold for all\n"
    "      --topology FILE      the nodes of a topology file; the options hold for all\n"
    "      --only NAME,...      of these, those with such names; the name of a group stands for all of it\n"
    "\n"
    "A node; %%n in a path is the number of the node, from 0:\n"
    "  -l, --listen ADDR:PORT   IPv4 address and UDP port; port 0 takes a free one (127.0.0.1:%u)\n"
    "  -m, --memory SIZE        size of memory, a multiple of 4K (64M)\n"
    "  -k, --key KEY            64-bit key of the whole memory, decimal or 0x and hexadecimal, not 0 (random)\n"
    "  -p, --permissions LIST   what peers may do there: r read, w write, a ALU and atomics (rwa)\n"
    "  -r, --region LIST        instead, a region: at=OFFSET,bytes=SIZE,key=KEY,permissions=LIST and load=FILE,\n"
    "                           pattern=HEX or pattern=count, each may be left out; may be repeated\n"
    "  -f, --load FILE          copy FILE to the start of memory first\n"
    "  -T, --tenant ID:HEX:MODE the regions are a tenant's: number, 32 digits of key, authenticate or encrypt\n"
    "  -M, --mtu N              largest IP packet sent, 1500 to 9000 (1500)\n"
    "  -F, --forward NET/BITS   pass chains on to that network too; up to three times\n"
    "  -w, --wire PATH:PEER     not on the kernel's network but on an Ethernet wire of unix datagrams: bind PATH,\n"
    "                           send to PEER; ADDR is the address on that wire, a /24\n"
    "      --memif PATH[,role=client|server][,id=N][,secret=TEXT]\n"
    "                           or on a memif link by the unix socket PATH, where a client (the default) connects to\n"
    "                           the end that listens; ADDR as on a wire\n"
    "  -L, --limit NAME=N       how much is kept of others; --limit help lists the names\n"
    "  -n, --no-payload-crc     do not add a CRC to payloads\n"
    "  -N, --no-merge           do not put what belongs together into one packet\n"
    "  -P, --paths N            on a wire: source ports that packets vary, 1 to " TEXT(
        NETDAM_FW_PATHS_MAX) " (16)\n"
                             "\n"
                             "What is printed:\n"
                             "      --status FILE        write FILE when all nodes are ready: JSON; removed at the "
                             "end\n"
                             "  -t, --trace              print each datagram by name\n"
                             "  -c, --counters           print all counters at the end\n"
                             "  -j, --json               ready lines and counters as JSON\n"
                             "  -v, --verbose            print the firmware's messages about peers, too\n"
                             "  -V, --version            print versions\n"
                             "  -h, --help               print this\n"
                             "\n"
                             "When a node is ready it prints one line, and when all are that have a name, another "
                             "one:\n"
                             "  netdam-node ready address=A port=P bytes=N key=0xH mtu=N\n"
                             "  netdam-node all-ready nodes=N memory=BYTES state=BYTES\n"
                             "SIGUSR1 prints the counters as JSON. It ends with status 0 on SIGINT, SIGTERM or SIGHUP; "
                             "with 1 when it fails, "
                             "with\n"
                             "2 when an argument is wrong. Sizes take the suffixes K, M, G and T.\n";

enum { OPTION_NODES = 256, OPTION_STEP, OPTION_NODE, OPTION_TOPOLOGY, OPTION_ONLY, OPTION_STATUS, OPTION_MEMIF };

static const struct option long_options[] = {
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"step", required_argument, NULL, OPTION_STEP},
    {"node", required_argument, NULL, OPTION_NODE},
    {"topology", required_argument, NULL, OPTION_TOPOLOGY},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"status", required_argument, NULL, OPTION_STATUS},
    {"listen", required_argument, NULL, 'l'},
    {"memory", required_argument, NULL, 'm'},
    {"key", required_argument, NULL, 'k'},
    {"tenant", required_argument, NULL, 'T'},
    {"permissions", required_argument, NULL, 'p'},
    {"region", required_argument, NULL, 'r'},
    {"load", required_argument, NULL, 'f'},
    {"mtu", required_argument, NULL, 'M'},
    {"forward", required_argument, NULL, 'F'},
    {"wire", required_argument, NULL, 'w'},
    {"memif", required_argument, NULL, OPTION_MEMIF},
    {"limit", required_argument, NULL, 'L'},
    {"no-payload-crc", no_argument, NULL, 'n'},
    {"no-merge", no_argument, NULL, 'N'},
    {"paths", required_argument, NULL, 'P'},
    {"trace", no_argument, NULL, 't'},
    {"counters", no_argument, NULL, 'c'},
    {"json", no_argument, NULL, 'j'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct ndsim_text {
    struct ndsim_text *next;
    char text[];
};

bool ndsim_options_wrong(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "netdam-node: --%s %s: expected %s\n", option, value, expected);
    return false;
}

bool ndsim_options_no_memory(void)
{
    fputs("netdam-node: out of memory\n", stderr);
    return false;
}

char *ndsim_options_keep(struct ndsim_options *options, const char *format, ...)
{
    struct ndsim_text *text;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    text = malloc(sizeof(*text) + (size_t)length + 1);
    if (text == NULL) {
        ndsim_options_no_memory();
        return NULL;
    }
    va_start(arguments, format);
    vsnprintf(text->text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->next = options->texts;
    options->texts = text;
    return text->text;
}

static bool parse_wire(struct ndsim_options *options, const char *value, struct ndsim_node_options *node)
{
    const char *colon = strchr(value, ':');

    if (colon == NULL || colon == value || colon[1] == 0) {
        return false;
    }
    node->wire_path = ndsim_options_keep(options, "%.*s", (int)(colon - value), value);
    node->wire_peer_path = colon + 1;
    return node->wire_path != NULL;
}

static bool parse_memif(struct ndsim_options *options, const char *value, struct ndsim_node_options *node)
{
    char *rest = ndsim_options_keep(options, "%s", value);
    uint64_t number;
    char *name;

    node->memif_path = strsep(&rest, ",");
    if (node->memif_path == NULL || *node->memif_path == 0) {
        return false;
    }
    while ((name = strsep(&rest, ",")) != NULL) {
        char *setting = strchr(name, '=');

        if (setting == NULL) {
            return false;
        }
        *setting++ = 0;
        if (strcmp(name, "role") == 0 && (strcmp(setting, "client") == 0 || strcmp(setting, "server") == 0)) {
            node->memif_server = *setting == 's';
        } else if (strcmp(name, "id") == 0 && ndsim_size_parse(setting, &number) && number <= UINT32_MAX) {
            node->memif_id = (uint32_t)number;
        } else if (strcmp(name, "secret") == 0 && *setting != 0 && strlen(setting) <= NDSIM_MEMIF_SECRET_BYTES) {
            node->memif_secret = setting;
        } else {
            return false;
        }
    }
    return true;
}

static bool parse_limit(const char *value, struct netdam_soft_limits *limits)
{
    const char *equals = strchr(value, '=');
    uint64_t number;

    if (equals == NULL || !ndsim_size_parse(equals + 1, &number) || number == 0 || number > UINT32_MAX) {
        return false;
    }
#define LIMIT(field, text)                                                                                             \
    if (strlen(#field) == (size_t)(equals - value) && memcmp(value, #field, sizeof(#field) - 1) == 0) {                \
        limits->field = (uint32_t)number;                                                                              \
        return true;                                                                                                   \
    }
    NETDAM_SOFT_LIMIT_LIST(LIMIT)
#undef LIMIT
    return false;
}

static void print_limits(void)
{
#define LIMIT(field, text) printf("%-16s %s\n", #field, text);
    NETDAM_SOFT_LIMIT_LIST(LIMIT)
#undef LIMIT
}

/* One NAME=VALUE of --region; a region without at= begins where the last one ended. */
static bool parse_region_value(const char *name, const char *value, struct ndsim_region *region)
{
    if (strcmp(name, "at") == 0) {
        return ndsim_size_parse(value, &region->offset) && region->offset % 8 == 0;
    }
    if (strcmp(name, "bytes") == 0) {
        return ndsim_size_parse(value, &region->bytes) && region->bytes != 0;
    }
    if (strcmp(name, "key") == 0) {
        return ndsim_key_parse(value, &region->key);
    }
    if (strcmp(name, "permissions") == 0) {
        return ndsim_permissions_parse(value, &region->permissions);
    }
    if (strcmp(name, "load") == 0) {
        region->load = value;
        return *value != 0;
    }
    if (strcmp(name, "pattern") == 0) {
        return ndsim_pattern_parse(value, &region->pattern);
    }
    return false;
}

static bool parse_region(struct ndsim_options *options, const char *text, struct ndsim_node_options *node)
{
    struct ndsim_region *region = &node->regions[node->region_count];
    char *rest = ndsim_options_keep(options, "%s", text);
    char *name;

    if (rest == NULL) {
        return false;
    }
    if (node->region_count == NDSIM_REGIONS_MAX) {
        return ndsim_options_wrong("region", text, "at most " TEXT(NDSIM_REGIONS_MAX) " of them");
    }
    *region = (struct ndsim_region){.offset = UINT64_MAX, .permissions = PERMISSIONS_DEFAULT};
    while ((name = strsep(&rest, ",")) != NULL) {
        char *value = strchr(name, '=');

        if (value != NULL) {
            *value++ = 0;
        }
        if (value == NULL || !parse_region_value(name, value, region)) {
            return ndsim_options_wrong(
                "region", text,
                "NAME=VALUE,... of at (a multiple of 8), bytes, key, permissions (letters out of r, w, a), "
                "load, pattern (hexadecimal digits in pairs, or count)");
        }
    }
    node->region_count++;
    return true;
}

static bool parse_paths(const char *value, uint32_t *paths)
{
    uint64_t number;

    if (!ndsim_size_parse(value, &number) || number == 0 || number > NETDAM_FW_PATHS_MAX) {
        return false;
    }
    *paths = (uint32_t)number;
    return true;
}

static bool parse_value(struct ndsim_options *options, int option, const char *value, struct ndsim_draft *draft)
{
    struct ndsim_node_options *node = &draft->node;
    struct sockaddr_in address;

    switch (option) {
    case 'l':
        node->listen = value;
        return (ndsim_address_parse(value, &address) && ndsim_address_is_host(&address)) ||
               ndsim_options_wrong("listen", value,
                                   "ADDR:PORT with one IPv4 address of this machine, such as 127.0.0.1:0");
    case 'm':
        return (ndsim_size_parse(value, &node->memory_bytes) && node->memory_bytes != 0 &&
                node->memory_bytes % 4096 == 0 && node->memory_bytes <= NDSIM_MEMORY_MAX) ||
               ndsim_options_wrong("memory", value, "a multiple of 4K, such as 64M, up to 65536T");
    case 'k':
        draft->whole = true;
        return ndsim_key_parse(value, &draft->key) ||
               ndsim_options_wrong("key", value, "a number of 64 bits, not 0: decimal, or hexadecimal behind 0x");
    case 'T':
        return ndsim_tenant_parse(value, &node->tenant) ||
               ndsim_options_wrong("tenant", value, "ID:KEY:MODE, such as 7:00112233445566778899aabbccddeeff:encrypt");
    case 'p':
        draft->whole = true;
        return ndsim_permissions_parse(value, &draft->permissions) ||
               ndsim_options_wrong("permissions", value, "letters out of r, w, a");
    case 'r':
        return parse_region(options, value, node);
    case 'f':
        node->load = value;
        return true;
    case 'M':
        return ndsim_mtu_parse(value, &node->mtu) ||
               ndsim_options_wrong("mtu", value, TEXT(NETDAM_MTU_MIN) " to " TEXT(NETDAM_MTU_MAX));
    case 'F':
        return (node->forward_count < NETDAM_SOFT_NETWORKS &&
                ndsim_network_parse(value, &node->forward[node->forward_count++])) ||
               ndsim_options_wrong("forward", value, "an IPv4 network such as 10.1.0.0/16, at most three times");
    case 'w':
        return parse_wire(options, value, node) || ndsim_options_wrong("wire", value, "PATH:PEER");
    case OPTION_MEMIF:
        return parse_memif(options, value, node) ||
               ndsim_options_wrong("memif", value, "PATH[,role=client|server][,id=N][,secret=1 to 24 characters]");
    case 'L':
        return parse_limit(value, &node->limits) ||
               ndsim_options_wrong("limit", value, "NAME=N; --limit help tells the names");
    case 'n':
        node->no_payload_crc = true;
        return true;
    case 'P':
        return parse_paths(value, &node->paths) ||
               ndsim_options_wrong("paths", value, "1 to " TEXT(NETDAM_FW_PATHS_MAX));
    default:
        node->no_merge = true;
        return true;
        return true;
    }
}

static void print_version(void)
{
    uint32_t firmware = netdam_fw_entry()->firmware_version;

    printf("netdam-node: specification %u.%u, firmware %s %u.%u\n", NETDAM_SPEC_VERSION >> 16,
           NETDAM_SPEC_VERSION & 0xffffu, netdam_fw_entry()->name, firmware >> 16, firmware & 0xffffu);
}

struct ndsim_draft *ndsim_options_begin_node(struct ndsim_parser *parser, const char *name)
{
    unsigned i;
    struct ndsim_draft *drafts;

    if (*name == 0 || strlen(name) >= NDSIM_NAME_BYTES ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != strlen(name)) {
        ndsim_options_wrong("node", name, "a name of at most 31 letters, digits, - _ and .");
        return NULL;
    }
    for (i = 0; i < parser->draft_count; i++) {
        if (strcmp(parser->drafts[i].node.name, name) == 0) {
            ndsim_options_wrong("node", name, "another name for each node");
            return NULL;
        }
    }
    if (parser->draft_count == NDSIM_NODES_MAX) {
        ndsim_options_wrong("node", name, "at most " TEXT(NDSIM_NODES_MAX) " nodes");
        return NULL;
    }
    drafts = realloc(parser->drafts, (parser->draft_count + 1) * sizeof(*drafts));
    if (drafts == NULL) {
        ndsim_options_no_memory();
        return NULL;
    }
    parser->drafts = drafts;
    drafts += parser->draft_count++;
    *drafts = parser->common;
    snprintf(drafts->node.name, NDSIM_NAME_BYTES, "%s", name);
    return drafts;
}

/* Options of the process. NDSIM_OPTIONS_RUN: go on. */
static enum ndsim_options_result parse_global(struct ndsim_parser *parser, int option, const char *value, bool *taken)
{
    struct ndsim_options *options = parser->options;
    bool right = true;

    *taken = true;
    switch (option) {
    case 'h':
        printf(help, (unsigned)NETDAM_UDP_PORT);
        return NDSIM_OPTIONS_DONE;
    case 'V':
        print_version();
        return NDSIM_OPTIONS_DONE;
    case 'L':
        *taken = strcmp(value, "help") == 0;
        if (*taken) {
            print_limits();
            return NDSIM_OPTIONS_DONE;
        }
        break;
    case OPTION_NODES:
        right = (ndsim_size_parse(value, &parser->count) && parser->count != 0 && parser->count <= NDSIM_NODES_MAX) ||
                ndsim_options_wrong("nodes", value, "1 to " TEXT(NDSIM_NODES_MAX));
        break;
    case OPTION_STEP:
        parser->step_address = strcmp(value, "address") == 0;
        right =
            parser->step_address || strcmp(value, "port") == 0 || ndsim_options_wrong("step", value, "port or address");
        break;
    case OPTION_TOPOLOGY:
        parser->topology = value;
        break;
    case OPTION_ONLY:
        parser->only = value;
        break;
    case OPTION_STATUS:
        options->status = value;
        break;
    case 't':
        options->trace = true;
        break;
    case 'c':
        options->counters = true;
        break;
    case 'j':
        options->json = true;
        break;
    case 'v':
        options->verbose = true;
        break;
    default:
        *taken = false;
        break;
    }
    return right ? NDSIM_OPTIONS_RUN : NDSIM_OPTIONS_WRONG;
}

/* The names of the nodes of --nodes, and what is counted upward. */
static bool count_nodes(struct ndsim_parser *parser)
{
    struct sockaddr_in first;
    uint64_t i;

    (void)ndsim_address_parse(parser->common.node.listen, &first);
    for (i = 0; i < parser->count; i++) {
        unsigned port = ntohs(first.sin_port);
        uint64_t address = ntohl(first.sin_addr.s_addr);
        char name[NDSIM_NAME_BYTES];
        struct ndsim_draft *draft;

        snprintf(name, sizeof(name), "node%llu", (unsigned long long)i);
        draft = ndsim_options_begin_node(parser, name);
        if (draft == NULL) {
            return false;
        }
        if (parser->step_address) {
            address += i;
        } else if (port != 0) {
            port += (unsigned)i;
        }
        if (port > UINT16_MAX || address > UINT32_MAX) {
            return ndsim_options_wrong("listen", parser->common.node.listen,
                                       "an address and port from which --nodes can be counted");
        }
        draft->node.listen = ndsim_options_keep(parser->options, "%u.%u.%u.%u:%u", (unsigned)(address >> 24) & 255,
                                                (unsigned)(address >> 16) & 255, (unsigned)(address >> 8) & 255,
                                                (unsigned)address & 255, port);
        if (draft->node.listen == NULL) {
            return false;
        }
    }
    return true;
}

/* A path with %n replaced by the number of the node. */
static bool number_path(struct ndsim_options *options, const char **path, unsigned number)
{
    const char *place = *path != NULL ? strstr(*path, "%n") : NULL;

    if (place == NULL) {
        return true;
    }
    *path = ndsim_options_keep(options, "%.*s%u%s", (int)(place - *path), *path, number, place + 2);
    return *path != NULL;
}

static bool number_paths(struct ndsim_options *options, struct ndsim_node_options *node, unsigned number)
{
    bool right = number_path(options, &node->load, number) && number_path(options, &node->wire_path, number) &&
                 number_path(options, &node->wire_peer_path, number) && number_path(options, &node->memif_path, number);
    unsigned i;

    for (i = 0; right && i < node->region_count; i++) {
        right = number_path(options, &node->regions[i].load, number);
    }
    return right;
}

/* Where regions begin and end if that was not said; or the one region that is the whole memory. */
static bool place_regions(struct ndsim_draft *draft)
{
    struct ndsim_node_options *node = &draft->node;
    const char *name = node->name;
    const char *colon = *name != 0 ? ": " : "";
    uint64_t end = 0;
    unsigned i;

    if (node->region_count == 0) {
        node->regions[0] =
            (struct ndsim_region){.bytes = node->memory_bytes, .key = draft->key, .permissions = draft->permissions};
        node->region_count = 1;
        return true;
    }
    if (draft->whole) {
        fprintf(stderr, "netdam-node: %s%s--key and --permissions are of the whole memory: expected them in --region\n",
                name, colon);
        return false;
    }
    for (i = 0; i < node->region_count; i++) {
        struct ndsim_region *region = &node->regions[i];

        if (region->offset == UINT64_MAX) {
            region->offset = (end + 7) / 8 * 8;
        }
        if (region->bytes == 0 && region->offset < node->memory_bytes) {
            region->bytes = node->memory_bytes - region->offset;
        }
        if (region->offset >= node->memory_bytes || region->bytes > node->memory_bytes - region->offset) {
            fprintf(stderr, "netdam-node: %s%s--region %u at %llu: expected it within the memory of %llu bytes\n", name,
                    colon, i, (unsigned long long)region->offset, (unsigned long long)node->memory_bytes);
            return false;
        }
        end = region->offset + region->bytes;
    }
    return true;
}

static const char *name_of(const struct ndsim_node_options *node)
{
    return *node->name != 0 ? node->name : "the node";
}

/* That node `number` has one link, and that none of those before it has the same. */
static bool check_link(const struct ndsim_options *options, unsigned number)
{
    const struct ndsim_node_options *node = &options->nodes[number];
    unsigned i;

    if (node->memif_path == NULL) {
        return true;
    }
    if (node->wire_path != NULL) {
        fprintf(stderr, "netdam-node: %s: --wire, --memif: expected one of them\n", name_of(node));
        return false;
    }
    if (strlen(node->memif_path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
        return ndsim_options_wrong("memif", node->memif_path, "a path of at most 107 bytes");
    }
    for (i = 0; i < number; i++) {
        const struct ndsim_node_options *other = &options->nodes[i];

        if (other->memif_path != NULL && other->memif_id == node->memif_id &&
            other->memif_server == node->memif_server && strcmp(other->memif_path, node->memif_path) == 0) {
            fprintf(stderr,
                    "netdam-node: --memif %s: %s and %s have this end: expected another path (%%n in it is the "
                    "number of the node) or id\n",
                    node->memif_path, name_of(other), name_of(node));
            return false;
        }
    }
    return true;
}

static bool finish(struct ndsim_parser *parser)
{
    struct ndsim_options *options = parser->options;
    struct ndsim_draft *drafts;
    unsigned i;

    if ((parser->count != 0) + (parser->draft_count != 0) + (parser->topology != NULL) > 1) {
        fputs("netdam-node: --nodes, --node, --topology: expected one of them\n", stderr);
        return false;
    }
    if (parser->only != NULL && parser->topology == NULL) {
        return ndsim_options_wrong("only", parser->only, "--topology beside it");
    }
    if ((parser->count != 0 && !count_nodes(parser)) ||
        (parser->topology != NULL && !ndsim_options_add_topology(parser))) {
        return false;
    }
    if (parser->draft_count == 0) {
        drafts = &parser->common;
        options->node_count = 1;
    } else {
        drafts = parser->drafts;
        options->node_count = parser->draft_count;
    }
    options->nodes = calloc(options->node_count, sizeof(*options->nodes));
    if (options->nodes == NULL) {
        return ndsim_options_no_memory();
    }
    for (i = 0; i < options->node_count; i++) {
        if (!number_paths(options, &drafts[i].node, i) || !place_regions(&drafts[i])) {
            return false;
        }
        options->nodes[i] = drafts[i].node;
        if (!check_link(options, i)) {
            return false;
        }
    }
    return true;
}

static enum ndsim_options_result parse(struct ndsim_parser *parser, int argc, char **argv)
{
    struct ndsim_draft *draft = &parser->common;
    enum ndsim_options_result result;
    bool taken;
    int option;

    while ((option = getopt_long(argc, argv, "l:m:k:T:p:r:f:M:F:w:L:P:nNtcjvVh", long_options, NULL)) != -1) {
        if (option == '?') {
            return NDSIM_OPTIONS_WRONG;
        }
        if (option == OPTION_NODE) {
            draft = ndsim_options_begin_node(parser, optarg);
            if (draft == NULL) {
                return NDSIM_OPTIONS_WRONG;
            }
            continue;
        }
        result = parse_global(parser, option, optarg, &taken);
        if (result != NDSIM_OPTIONS_RUN) {
            return result;
        }
        if (!taken && !parse_value(parser->options, option, optarg, draft)) {
            return NDSIM_OPTIONS_WRONG;
        }
    }
    if (optind != argc) {
        fprintf(stderr, "netdam-node: %s: there are no arguments but options\n", argv[optind]);
        return NDSIM_OPTIONS_WRONG;
    }
    return finish(parser) ? NDSIM_OPTIONS_RUN : NDSIM_OPTIONS_WRONG;
}

enum ndsim_options_result ndsim_options_parse(int argc, char **argv, struct ndsim_options *options)
{
    struct ndsim_parser parser = {
        .options = options,
        .common = {.node = {.listen = "127.0.0.1:" TEXT(NETDAM_UDP_PORT),
                            .memory_bytes = UINT64_C(64) << 20,
                            .mtu = NETDAM_MTU_MIN},
                   .permissions = PERMISSIONS_DEFAULT},
    };
    enum ndsim_options_result result;

    *options = (struct ndsim_options){0};
    result = parse(&parser, argc, argv);
    free(parser.drafts);
    return result;
}

void ndsim_options_free(struct ndsim_options *options)
{
    while (options->texts != NULL) {
        struct ndsim_text *text = options->texts;

        options->texts = text->next;
        free(text);
    }
    free(options->nodes);
}
