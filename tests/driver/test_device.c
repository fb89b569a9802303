/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening devices, administration commands and their errors, names: over the fake device, and over a made-up sysfs. */
#define _GNU_SOURCE
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "internal.h"
#include "netdam/wire.h"

static void every_admin_status_has_its_errno(void **state)
{
    static const struct {
        uint32_t status;
        int error;
    } table[] = {
        {NETDAM_ADMIN_STATUS_OK, 0},
        {NETDAM_ADMIN_STATUS_BAD_COMMAND, -ENOSYS},
        {NETDAM_ADMIN_STATUS_BAD_ARGUMENT, -EINVAL},
        {NETDAM_ADMIN_STATUS_NO_SUCH, -ENOENT},
        {NETDAM_ADMIN_STATUS_NO_SPACE, -ENOSPC},
        {NETDAM_ADMIN_STATUS_EXISTS, -EEXIST},
        {NETDAM_ADMIN_STATUS_UNSUPPORTED, -EOPNOTSUPP},
        {UINT32_MAX, -ENODEV},
        {77, -EIO},
    };
    unsigned listed = 0;

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        assert_int_equal(ndlib_admin_errno(table[i].status), table[i].error);
    }
    /* A status that is added to the list must be added to the library's table: -EIO is for what is not listed. */
#define CHECK_STATUS(name, value, text)                                                                                \
    assert_int_not_equal(ndlib_admin_errno(value), -EIO);                                                              \
    listed++;
    NETDAM_ADMIN_STATUS_LIST(CHECK_STATUS)
#undef CHECK_STATUS
    assert_int_equal(listed, COUNT(table) - 2);
}

static void refused_commands_create_nothing(void **state)
{
    struct fake *fake = fake_open(false);
    struct netdam_region *region = NULL;
    struct netdam_peer *peer = NULL;

    (void)state;
    fake->admin_forced = NETDAM_ADMIN_STATUS_EXISTS;
    assert_int_equal(netdam_region_create(fake->device, 0, 64, NETDAM_PERMISSION_ALL, 5, &region), -EEXIST);
    fake->admin_forced = NETDAM_ADMIN_STATUS_NO_SPACE;
    assert_int_equal(netdam_peer_open(fake->device, "10.0.0.1", &peer), -ENOSPC);
    assert_null(region);
    assert_null(peer);
    fake->admin_forced = UINT32_MAX;
    assert_int_equal(netdam_peer_open(fake->device, "10.0.0.1", &peer), -ENODEV);
    fake->admin_forced = 0;
    fake_close(fake);
}

static void regions_tell_what_they_are(void **state)
{
    struct fake *fake = fake_open(false);
    const uint64_t *arguments = fake->last_arguments[NETDAM_ADMIN_REGION_CREATE];
    struct netdam_region *drawn;
    struct netdam_region *chosen;
    struct netdam_region *none = NULL;

    (void)state;
    assert_int_equal(netdam_region_create(fake->device, 4096, 8192, NETDAM_PERMISSION_REMOTE_READ, 0, &drawn), 0);
    assert_int_equal(arguments[0], 4096);
    assert_int_equal(arguments[1], 8192);
    assert_int_equal(arguments[2], NETDAM_PERMISSION_REMOTE_READ);
    assert_int_equal(arguments[3], 0);
    assert_int_equal(netdam_region_key(drawn), 0x1122334455667788);
    assert_int_equal(netdam_region_bytes(drawn), 8192);
    assert_ptr_equal(netdam_region_pointer(drawn), fake->memory + 4096);
    assert_int_equal(netdam_region_create(fake->device, 0, 64, NETDAM_PERMISSION_ALL, 99, &chosen), 0);
    assert_int_equal(netdam_region_key(chosen), 99);
    assert_int_equal(netdam_region_index(chosen), 1);
    assert_int_equal(netdam_region_create(fake->device, 0, 0, 0, 0, &none), -EINVAL);
    assert_int_equal(netdam_region_create(fake->device, 64, FAKE_MEMORY_BYTES, 0, 0, &none), -EINVAL);
    assert_int_equal(netdam_region_create(fake->device, UINT64_MAX, 64, 0, 0, &none), -EINVAL);
    assert_null(none);
    assert_int_equal(netdam_region_destroy(drawn), 0);
    assert_int_equal(fake->last_arguments[NETDAM_ADMIN_REGION_DESTROY][0], 0);
    fake_close(fake);
}

static void addresses_are_parsed_whole(void **state)
{
    static const struct {
        const char *text;
        uint64_t high;
        uint64_t low;
        uint64_t family_port;
    } good[] = {
        {"10.0.0.1", 0x0a000001, 0, 4 | (uint64_t)NETDAM_UDP_PORT << 16},
        {"192.168.255.3:1", 0xc0a8ff03, 0, 4 | 1 << 16},
        {"127.0.0.1:65535", 0x7f000001, 0, 4 | UINT64_C(65535) << 16},
        {"fd00::1", 0xfd00000000000000, 1, 6 | (uint64_t)NETDAM_UDP_PORT << 16},
        {"[fd00::1]", 0xfd00000000000000, 1, 6 | (uint64_t)NETDAM_UDP_PORT << 16},
        {"[2001:db8::a:b]:4000", 0x20010db800000000, 0x000a000b, 6 | UINT64_C(4000) << 16},
    };
    static const char *const bad[] = {
        "",
        "localhost",
        "10.0.0",
        "10.0.0.1:",
        "10.0.0.1:0",
        "10.0.0.1:65536",
        "10.0.0.1:12x",
        "10.0.0.1 ",
        ":20036",
        "[10.0.0.1]:5",
        "[fd00::1]:",
        "[fd00::1",
        "[fd00::1]5",
        "fd00:::1",
        "10.0.0.1:-5",
        "[]",
        "10.0.0.1:99999999999999999999",
        "11111111111111111111111111111111111111111111111111111111111111111111",
    };
    struct fake *fake = fake_open(false);
    const uint64_t *arguments = fake->last_arguments[NETDAM_ADMIN_PEER_OPEN];
    struct netdam_peer *peer = NULL;

    (void)state;
    for (unsigned i = 0; i < COUNT(good); i++) {
        assert_int_equal(netdam_peer_open(fake->device, good[i].text, &peer), 0);
        assert_int_equal(arguments[0], good[i].high);
        assert_int_equal(arguments[1], good[i].low);
        assert_int_equal(arguments[2], good[i].family_port);
        assert_int_equal(netdam_peer_close(peer), 0);
    }
    assert_int_equal(fake->commands[NETDAM_ADMIN_PEER_CLOSE], COUNT(good));
    for (unsigned i = 0; i < COUNT(bad); i++) {
        fake->log[0] = '\0';
        assert_int_equal(netdam_peer_open(fake->device, bad[i], &peer), -EINVAL);
        assert_non_null(strstr(fake->log, bad[i]));
    }
    assert_int_equal(fake->commands[NETDAM_ADMIN_PEER_OPEN], COUNT(good));
    assert_int_equal(netdam_peer_open_paths(fake->device, "10.0.0.2:7", 9, 3, &peer), 0);
    assert_int_equal(arguments[2], 4 | 3 << 8 | 7 << 16 | UINT64_C(9) << 32);
    assert_int_equal(netdam_peer_close(peer), 0);
    assert_int_equal(netdam_peer_open_paths(fake->device, "10.0.0.2", 0, 256, &peer), -EINVAL);
    assert_int_equal(fake->commands[NETDAM_ADMIN_PEER_OPEN], COUNT(good) + 1);
    fake_close(fake);
}

static void neighbours_have_a_mac_and_no_port(void **state)
{
    static const uint8_t mac[6] = {2, 0x11, 0x22, 0x33, 0x44, 0x55};
    struct fake *fake = fake_open(false);
    const uint64_t *arguments = fake->last_arguments[NETDAM_ADMIN_NEIGHBOUR_SET];

    (void)state;
    assert_int_equal(netdam_neighbour_set(fake->device, "10.1.2.3", mac), 0);
    assert_int_equal(arguments[0], 0x0a010203);
    assert_int_equal(arguments[2], 4);
    assert_int_equal(arguments[3], 0x021122334455);
    assert_int_equal(netdam_neighbour_set(fake->device, "10.1.2.3:9", mac), -EINVAL);
    fake_close(fake);
}

static void query_and_counters(void **state)
{
    static const uint8_t mac[6] = {2, 3, 4, 5, 6, 7};
    static const uint8_t ipv4[4] = {10, 0, 0, 1};
    struct fake *fake = fake_open(false);
    struct netdam_device_info info;
    unsigned algebra = 0;
    uint64_t value = 5;

    (void)state;
    assert_string_equal(netdam_device_name(fake->device), "fake");
    assert_int_equal(netdam_query(fake->device, &info), 0);
    assert_int_equal(info.spec_version, NETDAM_SPEC_VERSION);
    assert_int_equal(info.memory_bytes, FAKE_MEMORY_BYTES);
    assert_int_equal(info.length_max, 4096);
    assert_memory_equal(info.mac, mac, 6);
    assert_memory_equal(info.ipv4, ipv4, 4);
    assert_int_equal(netdam_counter_read(fake->device, NETDAM_COUNTER_PINGS, &value), 0);
    assert_int_equal(value, 1000 + NETDAM_COUNTER_PINGS);
    assert_int_equal(netdam_counter_read(fake->device, NETDAM_COUNTER_COUNT, &value), -EINVAL);
    assert_int_equal(value, 1000 + NETDAM_COUNTER_PINGS);
    assert_int_equal(netdam_opcode_query(fake->device, NETDAM_OP_WRITE, 0, 0, &algebra), 0);
    assert_int_equal(algebra, NETDAM_ALG_IDEMPOTENT);
    assert_int_equal(netdam_opcode_query(fake->device, NETDAM_OP_SEND, 0, 0, &algebra), -EOPNOTSUPP);
    fake->id = UINT32_MAX;
    assert_int_equal(netdam_query(fake->device, &info), -ENODEV);
    assert_int_equal(netdam_counter_read(fake->device, 0, &value), -ENODEV);
    fake_close(fake);
}

static void opening_checks_the_device(void **state)
{
    static const struct {
        uint32_t id;
        uint32_t status;
        uint32_t spec_version;
        uint64_t bytes;
        int error;
    } table[] = {
        {NETDAM_ID, NETDAM_DEVICE_READY, NETDAM_SPEC_VERSION, FAKE_MEMORY_BYTES, 0},
        {NETDAM_ID, NETDAM_DEVICE_READY, NETDAM_SPEC_VERSION + 1, FAKE_MEMORY_BYTES / 2, 0},
        {UINT32_MAX, NETDAM_DEVICE_READY, NETDAM_SPEC_VERSION, FAKE_MEMORY_BYTES, -ENODEV},
        {NETDAM_ID, NETDAM_DEVICE_READY, NETDAM_SPEC_VERSION + 0x10000, FAKE_MEMORY_BYTES, -EPROTONOSUPPORT},
        {NETDAM_ID, NETDAM_DEVICE_READY, NETDAM_SPEC_VERSION, FAKE_MEMORY_BYTES + 4096, -EIO},
        {NETDAM_ID, NETDAM_DEVICE_LINK_UP, NETDAM_SPEC_VERSION, FAKE_MEMORY_BYTES, -EIO},
    };

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        struct ndlib_backend backend;
        struct fake *fake = fake_new(false, &backend);
        const struct netdam_open_config config = {.opaque = fake, .log = fake_log};

        backend.reset_on_open = i == 0;
        fake->id = table[i].id;
        fake->status = table[i].status;
        fake->spec_version = table[i].spec_version;
        fake->claimed_bytes = table[i].bytes;
        assert_int_equal(ndlib_device_open(&backend, &config, &fake->device), table[i].error);
        assert_int_equal(fake->resets, i == 0);
        if (table[i].error != 0) {
            assert_null(fake->device);
            assert_int_equal(fake->closes, 1);
            assert_int_equal(fake->log_lines, 1);
        } else {
            assert_int_equal(netdam_memory_bytes(fake->device), table[i].bytes);
        }
        fake_close(fake);
    }
}

static void closing_destroys_what_is_left(void **state)
{
    struct ndlib_backend backend;
    struct fake *fake = fake_new(false, &backend);
    const struct netdam_open_config config = {0};
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    struct netdam_region *region;

    (void)state;
    assert_int_equal(ndlib_device_open(&backend, &config, &fake->device), 0);
    assert_int_equal(netdam_queue_create(fake->device, NULL, &queue), 0);
    assert_int_equal(netdam_peer_open(fake->device, "10.0.0.1", &peer), 0);
    assert_int_equal(netdam_region_create(fake->device, 0, 64, 1, 0, &region), 0);
    netdam_close(fake->device);
    fake->device = NULL;
    assert_int_equal(fake->commands[NETDAM_ADMIN_QUEUE_DESTROY], 1);
    assert_int_equal(fake->commands[NETDAM_ADMIN_PEER_CLOSE], 1);
    assert_int_equal(fake->commands[NETDAM_ADMIN_REGION_DESTROY], 1);
    assert_int_equal(fake->closes, 1);
    netdam_close(NULL);
    fake_close(fake);
}

static void memory_of_a_stuck_queue_pair_is_never_reused(void **state)
{
    struct fake *fake = fake_open(false);
    struct netdam_queue *queue;
    uint64_t offset;

    (void)state;
    assert_int_equal(netdam_queue_create(fake->device, NULL, &queue), 0);
    fake->admin_forced = NETDAM_ADMIN_STATUS_NO_SUCH;
    assert_int_equal(netdam_queue_destroy(queue), -EIO);
    fake->admin_forced = 0;
    assert_int_equal(netdam_alloc(fake->device, FAKE_MEMORY_BYTES, 0, &offset), -ENOSPC);
    fake_close(fake);
}

static void observers_change_nothing(void **state)
{
    static const uint8_t mac[6];
    struct ndlib_backend backend;
    struct fake *fake = fake_new(false, &backend);
    const struct netdam_open_config config = {.flags = NETDAM_OPEN_OBSERVE};
    struct netdam_device *device;
    struct netdam_device_info info;
    struct netdam_region *region;
    struct netdam_queue *queue;
    struct netdam_peer *peer;
    uint64_t value;

    (void)state;
    assert_int_equal(ndlib_device_open(&backend, &config, &fake->device), 0);
    device = fake->device;
    assert_null(netdam_memory(device));
    assert_int_equal(netdam_memory_bytes(device), 0);
    assert_int_equal(netdam_query(device, &info), 0);
    assert_int_equal(info.memory_bytes, FAKE_MEMORY_BYTES);
    assert_int_equal(netdam_counter_read(device, 0, &value), 0);
    assert_int_equal(netdam_reset(device), -EPERM);
    assert_int_equal(netdam_alloc(device, 64, 0, &value), -EPERM);
    assert_int_equal(netdam_region_create(device, 0, 64, 1, 0, &region), -EPERM);
    assert_int_equal(netdam_peer_open(device, "10.0.0.1", &peer), -EPERM);
    assert_int_equal(netdam_neighbour_set(device, "10.0.0.1", mac), -EPERM);
    assert_int_equal(netdam_queue_create(device, NULL, &queue), -EPERM);
    assert_int_equal(netdam_opcode_query(device, NETDAM_OP_WRITE, 0, 0, NULL), -EPERM);
    for (unsigned i = 0; i < COUNT(fake->commands); i++) {
        assert_int_equal(fake->commands[i], 0);
    }
    fake_close(fake);
}

static void bad_device_names_are_named(void **state)
{
    static const struct {
        const char *name;
        const char *part; /* of the log line */
    } table[] = {
        {"", "\"\" names no kind of device"},
        {"usb", "usb"},
        {"pci:", "PCI address"},
        {"pci:../../etc", "../../etc"},
        {"pci:1234567890123456789012345678901234567890", "PCI address"},
        {"udp", "udp"},
        {"udp:", "ADDR:PORT"},
        {"udp:127.0.0.1", "ADDR:PORT"},
        {"udp:127.0.0.1:0,memory", "\"memory\""},
        {"udp:127.0.0.1:0,memory=", "memory"},
        {"udp:127.0.0.1:0,memory=64X", "64X"},
        {"udp:127.0.0.1:0,memory=4097", "udp:127.0.0.1:0,memory=4097"},
        {"udp:127.0.0.1:0,mtu=-1", "-1"},
        {"udp:127.0.0.1:0,mtu=0", "mtu=0"},
        {"udp:127.0.0.1:0,mtu=100", "udp:127.0.0.1:0,mtu=100"},
        {"udp:127.0.0.1:0,queue-pairs=8G", "queue-pairs"},
        {"udp:127.0.0.1:0,memf=/tmp/x", "unknown option \"memf\""},
        {"udp:127.0.0.1:0,merge=1", "merge"},
        {"udp:127.0.0.1:0,colour=1", "colour"},
        {"udp:127.0.0.1:99999", "99999"},
        {"udp:nowhere:0", "nowhere"},
    };
    struct fake *log = calloc(1, sizeof(*log));
    struct netdam_open_config config = {.opaque = log, .log = fake_log};
    struct netdam_device *device = NULL;

    (void)state;
    for (unsigned i = 0; i < COUNT(table); i++) {
        memset(log, 0, sizeof(*log));
        print_message("# %s\n", table[i].name);
        assert_int_equal(netdam_open(table[i].name, &config, &device), -EINVAL);
        assert_null(device);
        assert_true(log->log_lines >= 1);
        assert_non_null(strstr(log->log, table[i].part));
    }
    config.flags = 0x100;
    assert_int_equal(netdam_open("udp:127.0.0.1:0", &config, &device), -EINVAL);
    assert_null(device);
    free(log);
}

/* A directory that looks like /sys/bus/pci/devices. */

static char root[64];

static void put(const char *address, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s/%s", root, address, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void get(const char *address, const char *name, char *text, size_t bytes)
{
    char path[256];
    FILE *file;
    size_t got;

    snprintf(path, sizeof(path), "%s/%s/%s", root, address, name);
    file = fopen(path, "r");
    assert_non_null(file);
    got = fread(text, 1, bytes - 1, file);
    text[got] = '\0';
    fclose(file);
}

static void make_card(const char *address, const char *vendor, const char *device)
{
    char path[256];
    const uint32_t id = NETDAM_ID;
    int fd;

    snprintf(path, sizeof(path), "%s/%s", root, address);
    assert_int_equal(mkdir(path, 0700), 0);
    put(address, "vendor", vendor);
    put(address, "device", device);
    put(address, "enable", "0\n");
    snprintf(path, sizeof(path), "%s/%s/resource0", root, address);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, NETDAM_BAR0_BYTES), 0);
    assert_int_equal(pwrite(fd, &id, sizeof(id), NETDAM_REG_ID), sizeof(id));
    close(fd);
    snprintf(path, sizeof(path), "%s/%s/resource2", root, address);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    close(fd);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/netdam-sysfs-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void cards_are_found_enabled_and_locked(void **state)
{
    const struct netdam_open_config config = {0};
    const struct netdam_open_config observe = {.flags = NETDAM_OPEN_OBSERVE};
    const struct netdam_open_config keep = {.flags = NETDAM_OPEN_NO_RESET};
    const struct ndlib_log log = {0};
    struct ndlib_backend backend;
    struct ndlib_backend second;
    char text[16];

    (void)state;
    make_card("0000:00:01.0", "0x8086\n", "0x4e44\n");
    assert_int_equal(ndlib_pci_open(root, NULL, &config, &log, &backend), -ENODEV);
    make_card("0000:00:05.0", "0x1234\n", "0x4e44\n");
    make_card("0000:00:04.0", "0x1234\n", "0x4e44\n");

    assert_int_equal(ndlib_pci_open(root, NULL, &config, &log, &backend), 0);
    assert_string_equal(backend.name, "pci:0000:00:04.0");
    assert_int_equal(backend.memory_bytes, 1 << 20);
    assert_true(backend.reset_on_open);
    get("0000:00:04.0", "enable", text, sizeof(text));
    assert_string_equal(text, "1\n"); /* the first byte was overwritten: sysfs takes it as a command */
    get("0000:00:05.0", "enable", text, sizeof(text));
    assert_string_equal(text, "0\n");
    assert_int_equal(backend.ops->register_read(backend.opaque, NETDAM_REG_ID, 4), NETDAM_ID);
    backend.ops->register_write(backend.opaque, NETDAM_REG_ADMIN_ARG0, 8, 0x1122334455667788);
    assert_int_equal(backend.ops->register_read(backend.opaque, NETDAM_REG_ADMIN_ARG0, 8), 0x1122334455667788);
    assert_int_equal(backend.ops->register_read(backend.opaque, NETDAM_REG_ADMIN_ARG0, 4), 0x55667788);
    backend.memory[(1 << 20) - 1] = 7;
    assert_int_equal(backend.ops->interrupt_fd(backend.opaque, 0), -ENOTSUP);

    /* Locked for a second user, not for an observer; a card given by address is another one. */
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &config, &log, &second), -EBUSY);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &observe, &log, &second), 0);
    assert_null(second.memory);
    assert_false(second.reset_on_open);
    second.ops->close(second.opaque);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &config, &log, &second), -EBUSY);
    assert_int_equal(ndlib_pci_open(root, "0000:00:05.0", &config, &log, &second), 0);
    second.ops->close(second.opaque);
    backend.ops->close(backend.opaque);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &keep, &log, &second), 0);
    assert_false(second.reset_on_open);
    second.ops->close(second.opaque);
}

static void unusable_cards_are_refused(void **state)
{
    const struct netdam_open_config config = {0};
    const struct netdam_open_config tapped = {.tap = (void (*)(void *, bool, const uint8_t *, size_t))(uintptr_t)1};
    struct fake *keeper = calloc(1, sizeof(*keeper));
    const struct ndlib_log log = {.opaque = keeper, .write = fake_log};
    struct ndlib_backend backend;
    char path[256];

    (void)state;
    make_card("0000:00:04.0", "0x1234\n", "0x4e44\n");
    assert_int_equal(ndlib_pci_open(root, "0000:00:09.0", &config, &log, &backend), -ENODEV);
    assert_non_null(strstr(keeper->log, "0000:00:09.0"));
    assert_int_equal(ndlib_pci_open("/nonexistent", NULL, &config, &log, &backend), -ENODEV);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &tapped, &log, &backend), -ENOTSUP);

    snprintf(path, sizeof(path), "%s/0000:00:04.0/resource0", root);
    assert_int_equal(truncate(path, NETDAM_BAR0_BYTES - 4096), 0);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &config, &log, &backend), -EIO);
    assert_non_null(strstr(keeper->log, "resource0"));
    assert_int_equal(truncate(path, NETDAM_BAR0_BYTES), 0);
    snprintf(path, sizeof(path), "%s/0000:00:04.0/resource2", root);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &config, &log, &backend), -EIO);
    assert_non_null(strstr(keeper->log, "resource2"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ndlib_pci_open(root, "0000:00:04.0", &config, &log, &backend), -ENOENT);
    free(keeper);
}

static void put_link(const char *address, const char *name, const char *target)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s/%s", root, address, name);
    assert_true(unlink(path) == 0 || errno == ENOENT);
    assert_int_equal(symlink(target, path), 0);
}

static void cards_of_vfio_are_left_to_vfio(void **state)
{
    const struct netdam_open_config config = {0};
    const struct netdam_open_config observe = {.flags = NETDAM_OPEN_OBSERVE};
    struct fake *keeper = calloc(1, sizeof(*keeper));
    const struct ndlib_log log = {.opaque = keeper, .write = fake_log};
    struct ndlib_backend backend;
    char text[16];

    (void)state;
    make_card("0000:00:04.0", "0x1234\n", "0x4e44\n");
    put_link("0000:00:04.0", "driver", "../../../../bus/pci/drivers/vfio-pci");
    assert_int_equal(ndlib_pci_open(root, NULL, &config, &log, &backend), -ENODEV);
    assert_non_null(strstr(keeper->log, "no IOMMU group"));
    put_link("0000:00:04.0", "iommu_group", "../../../kernel/iommu_groups/12x");
    assert_int_equal(ndlib_pci_open(root, NULL, &config, &log, &backend), -ENODEV);
    assert_non_null(strstr(keeper->log, "no IOMMU group"));
    /* A group that no machine has. */
    put_link("0000:00:04.0", "iommu_group", "../../../kernel/iommu_groups/2147483647");
    assert_true(ndlib_pci_open(root, NULL, &config, &log, &backend) < 0);
    assert_non_null(strstr(keeper->log, "pci:0000:00:04.0: vfio: /dev/vfio/"));
    assert_true(ndlib_pci_open(root, NULL, &observe, &log, &backend) < 0);
    get("0000:00:04.0", "enable", text, sizeof(text));
    assert_string_equal(text, "0\n");

    /* In use through vfio: to look, sysfs is enough. */
    put("0000:00:04.0", "enable", "1\n");
    assert_int_equal(ndlib_pci_open(root, NULL, &observe, &log, &backend), 0);
    assert_int_equal(backend.ops->register_read(backend.opaque, NETDAM_REG_ID, 4), NETDAM_ID);
    backend.ops->close(backend.opaque);

    /* Another driver is the kernel's business. */
    put_link("0000:00:04.0", "driver", "../../../../bus/pci/drivers/vfio-pci-not");
    assert_int_equal(ndlib_pci_open(root, NULL, &config, &log, &backend), 0);
    backend.ops->close(backend.opaque);
    free(keeper);
}

static void every_listed_name_is_found_both_ways(void **state)
{
    (void)state;
#define CHECK_OP(name, value, flags, text)                                                                             \
    assert_string_equal(netdam_op_name(value), #name);                                                                 \
    assert_int_equal(netdam_op_by_name(#name), value);
    NETDAM_OP_LIST(CHECK_OP)
#undef CHECK_OP
#define CHECK_ALU(name, value, text)                                                                                   \
    assert_string_equal(netdam_alu_name(value), #name);                                                                \
    assert_int_equal(netdam_alu_by_name(#name), value);
    NETDAM_ALU_LIST(CHECK_ALU)
#undef CHECK_ALU
#define CHECK_TYPE(name, value, bytes, class_, text)                                                                   \
    assert_string_equal(netdam_type_name(value), #name);                                                               \
    assert_int_equal(netdam_type_by_name(#name), value);
    NETDAM_TYPE_LIST(CHECK_TYPE)
#undef CHECK_TYPE
#define CHECK_STATUS(name, value, class_, sentence)                                                                    \
    assert_string_equal(netdam_status_name(value), #name);                                                             \
    assert_string_equal(netdam_status_text(value), sentence);
    NETDAM_STATUS_LIST(CHECK_STATUS)
#undef CHECK_STATUS
    for (unsigned i = 0; i < NETDAM_COUNTER_COUNT; i++) {
        assert_int_equal(netdam_counter_by_name(netdam_counter_name(i)), i);
        assert_non_null(netdam_counter_text(i));
    }
    assert_int_equal(netdam_type_by_name("f32"), NETDAM_TYPE_F32);
    assert_int_equal(netdam_alu_by_name("sum-saturating"), NETDAM_ALU_SUM_SATURATING);
    assert_int_equal(netdam_alu_by_name("summ"), -ENOENT);
    assert_int_equal(netdam_alu_by_name("su"), -ENOENT);
    assert_int_equal(netdam_op_by_name(""), -ENOENT);
    assert_null(netdam_op_name(0));
    assert_null(netdam_status_name(0xff));
    assert_null(netdam_counter_name(NETDAM_COUNTER_COUNT));
    assert_non_null(netdam_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_admin_status_has_its_errno),
        cmocka_unit_test(refused_commands_create_nothing),
        cmocka_unit_test(regions_tell_what_they_are),
        cmocka_unit_test(addresses_are_parsed_whole),
        cmocka_unit_test(neighbours_have_a_mac_and_no_port),
        cmocka_unit_test(query_and_counters),
        cmocka_unit_test(opening_checks_the_device),
        cmocka_unit_test(closing_destroys_what_is_left),
        cmocka_unit_test(memory_of_a_stuck_queue_pair_is_never_reused),
        cmocka_unit_test(observers_change_nothing),
        cmocka_unit_test(bad_device_names_are_named),
        cmocka_unit_test_setup_teardown(cards_are_found_enabled_and_locked, make_root, remove_root),
        cmocka_unit_test_setup_teardown(unusable_cards_are_refused, make_root, remove_root),
        cmocka_unit_test_setup_teardown(cards_of_vfio_are_left_to_vfio, make_root, remove_root),
        cmocka_unit_test(every_listed_name_is_found_both_ways),
    };

    return cmocka_run_group_tests_name("driver devices", tests, NULL, NULL);
}
