/* SPDX-License-Identifier: BSD-3-Clause */
/* netdam-mem: writes, reads, fills, compares, reduces and counts in another node's memory. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"
#include "hold_streams.h"
#include "transfer.h"
#include "netdam/wire.h"

const char *tool_name = "netdam-mem";

static const char help[] =
    "Usage: netdam-mem COMMAND --peer ADDR[:PORT] --key KEY [OPTION]... [FILE]\n"
    "Work on another node's memory. FILE is \"-\" or absent for standard input or output.\n"
    "\n"
    "Commands:\n"
    "  write      copy FILE into the node's memory\n"
    "  read       copy --length bytes of the node's memory into FILE\n"
    "  fill       store --value, of --type, over and over in --length bytes\n"
    "  compare    compare the node's memory with FILE; exit status 1 and one line if it differs\n"
    "  reduce     memory = memory OPERATION FILE, element by element of --type\n"
    "  fetch-add  add --value to the element of --type and print what was there before\n"
    "  cas        store --swap in the element of --type if it equals --compare, and print what was there before;\n"
    "             exit status 1 if it did not\n"
    "  echo       have the node return --length bytes, --count times, and print how long each took\n"
    "\n"
    "Which memory:\n"
    "  -p, --peer ADDR[:PORT]  the node; port 20036 if absent\n"
    "  -k, --key KEY           key of the region there, as the node prints it: decimal, or 0x and hexadecimal\n"
    "  -T, --tenant ID:KEY:MODE  whose region it is: number, 32 digits of key, authenticate or encrypt\n"
    "  -a, --address OFFSET    bytes from the region's start (default 0)\n"
    "  -n, --length BYTES      how many (write, compare, reduce: default all of FILE; echo: default 64)\n"
    "\n"
    "What to do:\n"
    "  -t, --type TYPE         u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 (f16 bf16 for reduce); default u64, fill: u8,\n"
    "                          reduce: none\n"
    "  -o, --operation NAME    reduce: sum product min max and or xor sum-saturating\n"
    "  -v, --value VALUE       fill, fetch-add\n"
    "  -c, --compare VALUE     cas\n"
    "  -s, --swap VALUE        cas\n"
    "  -C, --count N           echo (default 4)\n"
    "\n"
    "How:\n"
    "  -d, --device DEVICE     udp[,OPTION...]: a soft device at the local address that leads to the peer (default);\n"
    "                          or udp:ADDR:PORT[,memory=64M][,mtu=1500], pci, pci:ADDRESS. $NETDAM_DEVICE is used\n"
    "                          if this is absent\n"
    "      --chunk BYTES       of one request (default 256K)\n"
    "      --depth N           requests under way at once (default 32)\n"
    "      --trace             print each packet by name on standard error (udp only)\n"
    "  -h, --help              print this\n"
    "  -V, --version           print the version\n"
    "\n"
    "BYTES and OFFSET take K, M and G. Exit status: 0 done, 1 failed or different, 2 wrong usage.\n";

enum {
    OPTION_CHUNK = 256,
    OPTION_DEPTH,
    OPTION_TRACE,
};

static const struct option options[] = {
    {"peer", required_argument, NULL, 'p'},
    {"key", required_argument, NULL, 'k'},
    {"tenant", required_argument, NULL, 'T'},
    {"address", required_argument, NULL, 'a'},
    {"length", required_argument, NULL, 'n'},
    {"type", required_argument, NULL, 't'},
    {"operation", required_argument, NULL, 'o'},
    {"value", required_argument, NULL, 'v'},
    {"compare", required_argument, NULL, 'c'},
    {"swap", required_argument, NULL, 's'},
    {"count", required_argument, NULL, 'C'},
    {"device", required_argument, NULL, 'd'},
    {"chunk", required_argument, NULL, OPTION_CHUNK},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"trace", no_argument, NULL, OPTION_TRACE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

struct mem {
    struct tenant tenant;
    const struct command *command;
    const char *device_name;
    const char *peer_name;
    const char *file_name;
    const char *type_name;
    const char *operation_name;
    const char *value_text;
    const char *compare_text;
    const char *swap_text;
    bool key_given;
    bool length_given;
    bool trace;
    uint64_t key;
    uint64_t address;
    uint64_t length;
    uint64_t count;
    uint64_t chunk;
    uint64_t depth;

    unsigned type;
    unsigned operation;
    uint64_t value; /* as bits of an element; cas: to compare with */
    uint64_t swap;
    int fd;
    uint64_t left; /* of --length; UINT64_MAX: until the file ends */
    uint64_t stream_bytes;
    uint8_t *expected; /* compare: a copy of each chunk of FILE */

    struct netdam_device *device;
    struct netdam_queue *queue;
    struct netdam_region *staging;
    struct netdam_remote remote;
};

#define WITH_FILE      0x1u
#define WITH_KEY       0x2u
#define WITH_LENGTH    0x4u
#define WITH_TYPE      0x8u
#define WITH_VALUE     0x10u
#define WITH_CAS       0x20u
#define WITH_OPERATION 0x40u
#define FILE_IS_OUTPUT 0x80u

struct command {
    const char *name;
    unsigned with;
    unsigned opcode;
    unsigned type; /* default; UINT32_MAX: must be given */
    int (*run)(struct mem *mem);
};

static const char *file_label(const struct mem *mem)
{
    if (strcmp(mem->file_name, "-") != 0) {
        return mem->file_name;
    }
    return (mem->command->with & FILE_IS_OUTPUT) != 0 ? "standard output" : "standard input";
}

/* Streams. */

/* Reads until `bytes_max` or the end of the file. */
static int read_file(struct mem *mem, uint8_t *buffer, size_t bytes_max, size_t *bytes)
{
    *bytes = 0;
    if (bytes_max > mem->left) {
        bytes_max = (size_t)mem->left;
    }
    while (*bytes < bytes_max) {
        ssize_t got = read(mem->fd, buffer + *bytes, bytes_max - *bytes);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failed("%s: %s", file_label(mem), strerror(errno));
        }
        if (got == 0) {
            break;
        }
        *bytes += (size_t)got;
    }
    if (*bytes < bytes_max && mem->left != UINT64_MAX) {
        return failed("%s ends before --length", file_label(mem));
    }
    if (mem->left != UINT64_MAX) {
        mem->left -= *bytes;
    }
    mem->stream_bytes += *bytes;
    return EXIT_OK;
}

static int next_from_file(void *opaque, unsigned slot, uint8_t *buffer, size_t bytes_max, size_t *bytes)
{
    struct mem *mem = opaque;
    unsigned element = netdam_type_bytes(mem->type);
    int rc = read_file(mem, buffer, bytes_max, bytes);

    (void)slot;
    if (rc == EXIT_OK && element > 1 && *bytes % element != 0) {
        return failed("%s: %" PRIu64 " bytes are no whole number of %s elements", file_label(mem), mem->stream_bytes,
                      mem->type_name);
    }
    return rc;
}

/* compare: the file's bytes stay here, the node's go into the staging buffer. */
static int next_to_compare(void *opaque, unsigned slot, uint8_t *buffer, size_t bytes_max, size_t *bytes)
{
    struct mem *mem = opaque;

    (void)buffer;
    return read_file(mem, mem->expected + slot * mem->chunk, bytes_max, bytes);
}

static int next_by_length(void *opaque, unsigned slot, uint8_t *buffer, size_t bytes_max, size_t *bytes)
{
    struct mem *mem = opaque;

    (void)slot;
    (void)buffer;
    *bytes = mem->left < bytes_max ? (size_t)mem->left : bytes_max;
    mem->left -= *bytes;
    return EXIT_OK;
}

static int next_filled(void *opaque, unsigned slot, uint8_t *buffer, size_t bytes_max, size_t *bytes)
{
    struct mem *mem = opaque;
    unsigned element = netdam_type_bytes(mem->type);
    int rc = next_by_length(opaque, slot, buffer, bytes_max, bytes);

    for (size_t i = 0; i < *bytes; i += element) {
        memcpy(buffer + i, &mem->value, element);
    }
    return rc;
}

static int done_to_file(void *opaque, unsigned slot, const uint8_t *buffer, size_t bytes, uint64_t offset)
{
    struct mem *mem = opaque;

    (void)slot;
    (void)offset;
    while (bytes > 0) {
        ssize_t put = write(mem->fd, buffer, bytes);

        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return failed("%s: %s", file_label(mem), strerror(errno));
        }
        buffer += put;
        bytes -= (size_t)put;
    }
    return EXIT_OK;
}

static int done_compare(void *opaque, unsigned slot, const uint8_t *buffer, size_t bytes, uint64_t offset)
{
    struct mem *mem = opaque;
    const uint8_t *expected = mem->expected + slot * mem->chunk;

    if (memcmp(buffer, expected, bytes) == 0) {
        return EXIT_OK;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (buffer[i] != expected[i]) {
            return failed("%s differs at byte %" PRIu64 ": 0x%02x there, 0x%02x in the node's memory", file_label(mem),
                          offset + i, expected[i], buffer[i]);
        }
    }
    return EXIT_OK;
}

static int run_transfer(struct mem *mem, const struct transfer_ends *ends)
{
    struct transfer transfer = {
        .queue = mem->queue,
        .remote = mem->remote,
        .staging = mem->staging,
        .chunk_bytes = (size_t)mem->chunk,
        .depth = (unsigned)mem->depth,
        .opcode = mem->command->opcode,
        .operation = mem->operation,
        .type = mem->command->opcode == NETDAM_OP_REDUCE ? mem->type : NETDAM_TYPE_NONE,
    };

    return transfer_run(&transfer, ends);
}

/* Commands. */

static int run_write(struct mem *mem)
{
    const struct transfer_ends ends = {.opaque = mem, .next = next_from_file};

    return run_transfer(mem, &ends);
}

static int run_read(struct mem *mem)
{
    const struct transfer_ends ends = {.opaque = mem, .next = next_by_length, .done = done_to_file};

    return run_transfer(mem, &ends);
}

static int run_fill(struct mem *mem)
{
    const struct transfer_ends ends = {.opaque = mem, .next = next_filled};

    return run_transfer(mem, &ends);
}

static int run_compare(struct mem *mem)
{
    const struct transfer_ends ends = {.opaque = mem, .next = next_to_compare, .done = done_compare};
    int rc;

    mem->expected = malloc((size_t)(mem->chunk * mem->depth));
    if (!mem->expected) {
        return failed("%s", strerror(ENOMEM));
    }
    rc = run_transfer(mem, &ends);
    free(mem->expected);
    return rc;
}

static void print_element(unsigned type, uint64_t bits)
{
    unsigned shift = 64 - 8 * netdam_type_bytes(type);

    if (netdam_type_class_of(type) == NETDAM_TYPE_CLASS_SIGNED) {
        printf("%" PRId64 "\n", (int64_t)(bits << shift) >> shift);
    } else {
        printf("%" PRIu64 "\n", bits);
    }
}

static int run_fetch_add(struct mem *mem)
{
    uint64_t old;
    int rc = netdam_fetch_add(mem->queue, mem->type, mem->remote, mem->value, &old, NETDAM_FOREVER);

    if (rc != 0) {
        return failed("fetch-add at %s: %s", mem->peer_name, result_text(rc));
    }
    print_element(mem->type, old);
    return EXIT_OK;
}

static int run_cas(struct mem *mem)
{
    uint64_t old;
    int rc = netdam_cas(mem->queue, mem->type, mem->remote, mem->value, mem->swap, &old, NETDAM_FOREVER);

    if (rc != 0) {
        return failed("cas at %s: %s", mem->peer_name, result_text(rc));
    }
    print_element(mem->type, old);
    return old == mem->value ? EXIT_OK : EXIT_FAILED;
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int run_echo(struct mem *mem)
{
    uint8_t *buffer = netdam_region_pointer(mem->staging);

    for (uint64_t round = 0; round < mem->count; round++) {
        double start;
        double stop;
        int rc;

        for (uint64_t i = 0; i < mem->length; i++) {
            buffer[i] = (uint8_t)(i + round);
        }
        start = now_us();
        rc = netdam_echo(mem->queue, mem->remote.peer, (struct netdam_local){mem->staging, 0}, (uint32_t)mem->length,
                         NETDAM_FOREVER);
        stop = now_us();
        if (rc != 0) {
            return failed("echo from %s: %s", mem->peer_name, result_text(rc));
        }
        for (uint64_t i = 0; i < mem->length; i++) {
            if (buffer[i] != (uint8_t)(i + round)) {
                return failed("echo from %s: byte %" PRIu64 " came back changed", mem->peer_name, i);
            }
        }
        printf("%" PRIu64 " bytes from %s in %.1f us\n", mem->length, mem->peer_name, stop - start);
    }
    return EXIT_OK;
}

static const struct command commands[] = {
    {"write", WITH_FILE | WITH_KEY, NETDAM_OP_WRITE, NETDAM_TYPE_NONE, run_write},
    {"read", WITH_FILE | WITH_KEY | WITH_LENGTH | FILE_IS_OUTPUT, NETDAM_OP_READ, NETDAM_TYPE_NONE, run_read},
    {"fill", WITH_KEY | WITH_LENGTH | WITH_TYPE | WITH_VALUE, NETDAM_OP_WRITE, NETDAM_TYPE_U8, run_fill},
    {"compare", WITH_FILE | WITH_KEY, NETDAM_OP_READ, NETDAM_TYPE_NONE, run_compare},
    {"reduce", WITH_FILE | WITH_KEY | WITH_TYPE | WITH_OPERATION, NETDAM_OP_REDUCE, UINT32_MAX, run_write},
    {"fetch-add", WITH_KEY | WITH_TYPE | WITH_VALUE, NETDAM_OP_FETCH_ADD, NETDAM_TYPE_U64, run_fetch_add},
    {"cas", WITH_KEY | WITH_TYPE | WITH_CAS, NETDAM_OP_CAS, NETDAM_TYPE_U64, run_cas},
    {"echo", 0, NETDAM_OP_ECHO, NETDAM_TYPE_NONE, run_echo},
};

/* Arguments. */

static int parse_number(const char *option, const char *text, uint64_t least, uint64_t largest, uint64_t *value)
{
    if (!parse_size(text, value) || *value < least || *value > largest) {
        return misused("--%s: \"%s\" is no size from %" PRIu64 " to %" PRIu64, option, text, least, largest);
    }
    return EXIT_OK;
}

/* Returns an exit code with which to leave, or -1 to go on. */
static int parse_options(struct mem *mem, int argc, char **argv)
{
    int option;
    int rc = EXIT_OK;

    while (rc == EXIT_OK && (option = getopt_long(argc, argv, "p:k:T:a:n:t:o:v:c:s:C:d:hV", options, NULL)) != -1) {
        switch (option) {
        case 'p':
            mem->peer_name = optarg;
            break;
        case 'k':
            mem->key_given = true;
            if (!parse_key(optarg, &mem->key)) {
                rc = misused("--key: \"%s\" is no 64-bit number", optarg);
            }
            break;
        case 'T':
            if (!parse_tenant(optarg, &mem->tenant)) {
                rc = misused("--tenant: \"%s\" is not of the form ID:KEY:MODE", optarg);
            }
            break;
        case 'a':
            rc = parse_number("address", optarg, 0, UINT64_MAX, &mem->address);
            break;
        case 'n':
            mem->length_given = true;
            rc = parse_number("length", optarg, 0, INT64_MAX, &mem->length);
            break;
        case 't':
            mem->type_name = optarg;
            break;
        case 'o':
            mem->operation_name = optarg;
            break;
        case 'v':
            mem->value_text = optarg;
            break;
        case 'c':
            mem->compare_text = optarg;
            break;
        case 's':
            mem->swap_text = optarg;
            break;
        case 'C':
            rc = parse_number("count", optarg, 1, UINT32_MAX, &mem->count);
            break;
        case 'd':
            mem->device_name = optarg;
            break;
        case OPTION_CHUNK:
            rc = parse_number("chunk", optarg, 8, UINT64_C(1) << 30, &mem->chunk);
            mem->chunk &= ~UINT64_C(7);
            break;
        case OPTION_DEPTH:
            rc = parse_number("depth", optarg, 1, TRANSFER_DEPTH_MAX, &mem->depth);
            break;
        case OPTION_TRACE:
            mem->trace = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_OK;
        case 'V':
            printf("netdam-mem %s\n", netdam_version());
            return EXIT_OK;
        default:
            return EXIT_USAGE;
        }
    }
    return rc != EXIT_OK ? rc : -1;
}

/* A value that the command needs, as an element of its type. */
static int need_value(const struct mem *mem, const char *option, const char *text, uint64_t *bits)
{
    if (!text) {
        return misused("%s needs --%s", mem->command->name, option);
    }
    if (!parse_value(text, mem->type, bits)) {
        return misused("--%s: \"%s\" is no value of type %s", option, text, mem->type_name);
    }
    return EXIT_OK;
}

static int check_command(struct mem *mem, int argc, char **argv)
{
    const char *name = optind < argc ? argv[optind++] : NULL;
    int value;
    int rc = EXIT_OK;

    if (!name) {
        return misused("no command given");
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0) {
            mem->command = &commands[i];
        }
    }
    if (!mem->command) {
        return misused("unknown command \"%s\"", name);
    }
    if ((mem->command->with & WITH_FILE) != 0) {
        mem->file_name = optind < argc ? argv[optind++] : "-";
    }
    if (optind < argc) {
        return misused("unexpected argument \"%s\"", argv[optind]);
    }
    if (!mem->peer_name) {
        return misused("%s needs --peer", name);
    }
    if ((mem->command->with & WITH_KEY) != 0 && !mem->key_given) {
        return misused("%s needs --key", name);
    }
    if ((mem->command->with & WITH_LENGTH) != 0 && !mem->length_given) {
        return misused("%s needs --length", name);
    }
    mem->type = mem->command->type;
    if (mem->type_name) {
        value = netdam_type_by_name(mem->type_name);
        if ((mem->command->with & WITH_TYPE) == 0) {
            return misused("%s takes no --type", name);
        }
        if (value <= NETDAM_TYPE_NONE) {
            return misused("--type: unknown type \"%s\"", mem->type_name);
        }
        mem->type = (unsigned)value;
    } else if (mem->type == UINT32_MAX) {
        return misused("%s needs --type", name);
    } else {
        mem->type_name = netdam_type_name(mem->type);
    }
    if ((mem->command->with & WITH_OPERATION) != 0) {
        if (!mem->operation_name) {
            return misused("%s needs --operation", name);
        }
        value = netdam_alu_by_name(mem->operation_name);
        if (value <= NETDAM_ALU_NONE) {
            return misused("--operation: unknown operation \"%s\"", mem->operation_name);
        }
        mem->operation = (unsigned)value;
    } else if (mem->operation_name) {
        return misused("%s takes no --operation", name);
    }
    if ((mem->command->with & WITH_VALUE) != 0) {
        rc = need_value(mem, "value", mem->value_text, &mem->value);
    }
    if (rc == EXIT_OK && (mem->command->with & WITH_CAS) != 0) {
        rc = need_value(mem, "compare", mem->compare_text, &mem->value);
        rc = rc == EXIT_OK ? need_value(mem, "swap", mem->swap_text, &mem->swap) : rc;
    }
    if (rc == EXIT_OK && mem->command->run == run_fill && mem->length % netdam_type_bytes(mem->type) != 0) {
        rc = misused("--length is no whole number of %s elements", mem->type_name);
    }
    return rc;
}

/* The device. */

static void trace(void *opaque, bool outgoing, const uint8_t *datagram, size_t bytes)
{
    char line[240];

    (void)opaque;
    netdam_describe_datagram(datagram, bytes, line, sizeof(line));
    fprintf(stderr, "%s %4zu bytes  %s\n", outgoing ? "->" : "<-", bytes, line);
}

/* The local IPv4 address that the kernel would send to the peer from. */
static int local_address(const char *peer_name, char address[INET_ADDRSTRLEN])
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(NETDAM_UDP_PORT)};
    socklen_t name_bytes = sizeof(name);
    char host[INET_ADDRSTRLEN];
    size_t host_bytes = strcspn(peer_name, ":");
    int fd;
    int rc;

    if (host_bytes >= sizeof(host)) {
        return -EINVAL;
    }
    memcpy(host, peer_name, host_bytes);
    host[host_bytes] = '\0';
    if (inet_pton(AF_INET, host, &name.sin_addr) != 1) {
        return -EINVAL;
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    rc = connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 &&
                 getsockname(fd, (struct sockaddr *)&name, &name_bytes) == 0
             ? 0
             : -errno;
    close(fd);
    if (rc == 0) {
        inet_ntop(AF_INET, &name.sin_addr, address, INET_ADDRSTRLEN);
    }
    return rc;
}

static int open_device(struct mem *mem)
{
    const struct netdam_open_config config = {.log = remember_error, .tap = mem->trace ? trace : NULL};
    const char *name = mem->device_name;
    char full_name[256];
    int rc;

    if (strcmp(name, "udp") == 0 || strncmp(name, "udp,", 4) == 0) {
        char address[INET_ADDRSTRLEN];

        rc = local_address(mem->peer_name, address);
        if (rc != 0) {
            return failed("--peer %s: %s", mem->peer_name,
                          rc == -EINVAL ? "not of the form ADDR or ADDR:PORT with an IPv4 address" : strerror(-rc));
        }
        /* What the user says comes after, and counts. */
        snprintf(full_name, sizeof(full_name), "udp:%s:0,memory=%" PRIu64 "%s", address,
                 (mem->chunk * mem->depth + (UINT64_C(1) << 20) + 4095) & ~UINT64_C(4095), name + 3);
        name = full_name;
    }
    rc = netdam_open(name, &config, &mem->device);
    return rc == 0 ? EXIT_OK : device_failed(name, rc);
}

/* Everything a command needs on the device. */
static int prepare(struct mem *mem)
{
    const struct netdam_queue_config queue_config = {
        .submission_depth = TRANSFER_DEPTH_MAX,
        .completion_depth = TRANSFER_DEPTH_MAX,
    };
    struct netdam_device_info info;
    uint64_t staging_bytes;
    uint64_t staging;
    int rc = netdam_query(mem->device, &info);

    if (rc != 0) {
        return failed("%s: %s", netdam_device_name(mem->device), result_text(rc));
    }
    if (mem->chunk > info.length_max) {
        mem->chunk = info.length_max & ~UINT32_C(7);
    }
    staging_bytes = mem->chunk * mem->depth;
    if (mem->command->run == run_echo &&
        mem->length > (staging_bytes < info.length_max ? staging_bytes : info.length_max)) {
        return misused("--length: echo has room for %" PRIu64 " bytes", staging_bytes);
    }
    if (mem->tenant.id != 0) {
        rc = netdam_tenant_set(mem->device, mem->tenant.id, mem->tenant.key, mem->tenant.mode);
        if (rc != 0) {
            return failed("--tenant: %s", result_text(rc));
        }
    }
    rc = netdam_peer_open_tenant(mem->device, mem->peer_name, mem->tenant.id, &mem->remote.peer);
    if (rc != 0) {
        return failed("--peer %s: %s", mem->peer_name,
                      rc == -EINVAL ? "not of the form ADDR, ADDR:PORT or [ADDR]:PORT" : result_text(rc));
    }
    rc = netdam_queue_create(mem->device, &queue_config, &mem->queue);
    if (rc != 0) {
        return failed("%s: queue pair: %s", netdam_device_name(mem->device), result_text(rc));
    }
    rc = netdam_alloc(mem->device, staging_bytes, 4096, &staging);
    if (rc != 0) {
        return failed("%s: no %" PRIu64 " bytes of on-board memory for staging: lower --depth or --chunk",
                      netdam_device_name(mem->device), staging_bytes);
    }
    rc = netdam_region_create(mem->device, staging, staging_bytes,
                              NETDAM_PERMISSION_LOCAL_READ | NETDAM_PERMISSION_LOCAL_WRITE, 0, &mem->staging);
    if (rc != 0) {
        return failed("%s: staging region: %s", netdam_device_name(mem->device), result_text(rc));
    }
    mem->remote.key = mem->key;
    mem->remote.address = mem->address;
    mem->left = mem->length_given ? mem->length : UINT64_MAX;
    return EXIT_OK;
}

static int open_file(struct mem *mem)
{
    bool output = (mem->command->with & FILE_IS_OUTPUT) != 0;

    mem->fd = output ? STDOUT_FILENO : STDIN_FILENO;
    if (!mem->file_name || strcmp(mem->file_name, "-") == 0) {
        return EXIT_OK;
    }
    mem->fd = open(mem->file_name, (output ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | O_CLOEXEC, 0666);
    return mem->fd >= 0 ? EXIT_OK : failed("%s: %s", mem->file_name, strerror(errno));
}

int main(int argc, char **argv)
{
    struct mem mem = {
        .device_name = getenv("NETDAM_DEVICE"),
        .length = 64,
        .count = 4,
        .chunk = UINT64_C(256) << 10,
        .depth = 32,
    };
    int rc;

    ndlib_hold_streams();
    rc = parse_options(&mem, argc, argv);
    if (rc != -1) {
        return rc;
    }
    rc = check_command(&mem, argc, argv);
    if (rc != EXIT_OK || !mem.command) {
        return rc;
    }
    mem.device_name = device_or(mem.device_name, "udp");
    rc = open_file(&mem);
    if (rc == EXIT_OK) {
        rc = open_device(&mem);
    }
    if (rc == EXIT_OK) {
        rc = prepare(&mem);
    }
    if (rc == EXIT_OK) {
        rc = mem.command->run(&mem);
    }
    netdam_close(mem.device);
    if (mem.file_name && mem.fd > STDERR_FILENO && close(mem.fd) != 0 && rc == EXIT_OK) {
        rc = failed("%s: %s", mem.file_name, strerror(errno));
    }
    return rc == EXIT_OK ? flush_output() : rc;
}
