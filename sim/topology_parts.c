/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and nodes of a topology file. */
#include "topology_build.h"
#include "address.h"
#include "netdam/admin.h"
#include "netdam/wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX NDSIM_TOPOLOGY_NAME_MAX

void *ndsim_grown(void *array, uint32_t count, size_t bytes)
{
    if ((count & (count - 1)) != 0) {
        return array;
    }
    array = realloc(array, (count == 0 ? 1 : (size_t)count * 2) * bytes);
    if (array == NULL) {
        abort();
    }
    return array;
}

struct ndsim_topology_port *ndsim_find_port(const struct ndsim_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->port_count; i++) {
        if (strcmp(topology->ports[i].name, name) == 0) {
            return &topology->ports[i];
        }
    }
    return NULL;
}

struct ndsim_topology_node *ndsim_find_node(const struct ndsim_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (strcmp(topology->nodes[i].name, name) == 0) {
            return &topology->nodes[i];
        }
    }
    return NULL;
}

struct ndsim_topology_switch *ndsim_find_switch(const struct ndsim_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->switch_count; i++) {
        if (strcmp(topology->switches[i].name, name) == 0) {
            return &topology->switches[i];
        }
    }
    return NULL;
}

bool ndsim_may_add(struct ndsim_reader *reader, const config_setting_t *setting, const char *name, uint32_t count)
{
    const struct ndsim_topology *topology = reader->topology;
    const struct ndsim_topology_port *port = ndsim_find_port(topology, name);
    const struct ndsim_topology_node *node = ndsim_find_node(topology, name);
    const struct ndsim_topology_switch *sw = ndsim_find_switch(topology, name);

    if (port != NULL || node != NULL || sw != NULL) {
        return ndsim_reader_wrong(reader, setting, "%s is the name of the %s in line %u already", name,
                                  node != NULL   ? "node"
                                  : port != NULL ? "port"
                                                 : "switch",
                                  node != NULL   ? node->line
                                  : port != NULL ? port->line
                                                 : sw->line);
    }
    if (strlen(name) > NAME_MAX) {
        return ndsim_reader_wrong(reader, setting, "%s: a name of more than %u characters", name, NAME_MAX);
    }
    return count < NDSIM_TOPOLOGY_PARTS_MAX ||
           ndsim_reader_wrong(reader, setting, "more than %u of a kind", NDSIM_TOPOLOGY_PARTS_MAX);
}

/* A name, or the i-th of several. */
static const char *numbered(struct ndsim_reader *reader, const char *name, uint32_t count, uint32_t i)
{
    return count == 0 ? name : ndsim_reader_text(reader->topology, "%s%u", name, i);
}

/* Without it there is one, and its name has no number; 0 stands for that. */
static bool take_count(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    uint32_t *count = into;

    return ndsim_take_u32(reader, setting, count) &&
           (*count != 0 || ndsim_reader_wrong(reader, setting, "count: expected at least 1"));
}

static bool check_count(struct ndsim_reader *reader, const config_setting_t *setting, uint32_t count)
{
    return count <= NDSIM_TOPOLOGY_PARTS_MAX ||
           ndsim_reader_wrong(reader, setting, "count: more than %u", NDSIM_TOPOLOGY_PARTS_MAX);
}

bool ndsim_check_socket(struct ndsim_reader *reader, const config_setting_t *setting, const char *path)
{
    return strlen(path) <= NDSIM_SOCKET_PATH_MAX ||
           ndsim_reader_wrong(reader, setting, "the socket's path %s has more than %u characters", path,
                              NDSIM_SOCKET_PATH_MAX);
}

static const char *socket_path(struct ndsim_reader *reader, const char *given, const char *name)
{
    return given != NULL ? given : ndsim_reader_text(reader->topology, "%s%s.sock", reader->base, name);
}

static bool take_role(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char *const roles[] = {"server", "client"};
    int role = ndsim_reader_choice(reader, setting, roles, 2);

    *(enum ndsim_memif_role *)into = role == 1 ? NDSIM_MEMIF_CLIENT : NDSIM_MEMIF_SERVER;
    return role >= 0;
}

static bool take_driver(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char *const drivers[] = {"netdam", "dpdk"};
    int driver = ndsim_reader_choice(reader, setting, drivers, 2);

    *(bool *)into = driver == 1;
    return driver >= 0;
}

static bool add_port(struct ndsim_reader *reader, const config_setting_t *setting,
                     const struct ndsim_topology_port *port)
{
    struct ndsim_topology *topology = reader->topology;

    if (!ndsim_may_add(reader, setting, port->name, topology->port_count)) {
        return false;
    }
    for (uint32_t i = 0; port->has_mac && i < topology->port_count; i++) {
        if (topology->ports[i].has_mac && memcmp(topology->ports[i].mac, port->mac, sizeof(port->mac)) == 0) {
            return ndsim_reader_wrong(reader, setting, "port %s has the mac of port %s", port->name,
                                      topology->ports[i].name);
        }
    }
    for (uint32_t i = 0; port->type == NDSIM_PORT_MEMIF && i < topology->port_count; i++) {
        const struct ndsim_topology_port *other = &topology->ports[i];

        if (other->type == NDSIM_PORT_MEMIF && strcmp(other->path, port->path) == 0 &&
            (other->id == port->id || other->role != port->role)) {
            return ndsim_reader_wrong(reader, setting,
                                      "port %s has path %s and id %u, or the path in another role, already",
                                      other->name, other->path, other->id);
        }
        if (other->type == NDSIM_PORT_MEMIF && strcmp(other->path, port->path) == 0 &&
            port->role == NDSIM_MEMIF_SERVER && !(port->dpdk && other->dpdk)) {
            return ndsim_reader_wrong(reader, setting,
                                      "port %s: to share the socket %s with port %s takes driver = "
                                      "\"dpdk\" for both",
                                      port->name, port->path, other->name);
        }
    }
    topology->ports = ndsim_grown(topology->ports, topology->port_count, sizeof(*topology->ports));
    topology->ports[topology->port_count++] = *port;
    return true;
}

struct port_reading {
    struct ndsim_topology_port port;
    uint32_t count;
    bool given[NDSIM_PORT_PMD + 1]; /* keys that belong to a type */
};

static bool take_port_type(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char *const types[] = {"memif", "tap", "packet", "pcap", "pmd"};
    int type = ndsim_reader_choice(reader, setting, types, 5);

    *(enum ndsim_port_type *)into = type < 0 ? NDSIM_PORT_MEMIF : (enum ndsim_port_type)type;
    return type >= 0;
}

static bool take_station(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    struct ndsim_topology_port *port = into;

    port->has_mac = true;
    return ndsim_take_mac(reader, setting, port->mac);
}

static bool check_port(struct ndsim_reader *reader, const config_setting_t *setting, const struct port_reading *reading)
{
    static const char *const keys[] = {"path, role, id and driver", "interface", "interface", "read and write",
                                       "devargs"};
    const struct ndsim_topology_port *port = &reading->port;
    const bool has[] = {
        port->path != NULL || port->id != 0 || port->dpdk || port->role != NDSIM_MEMIF_SERVER,
        port->interface != NULL,
        port->interface != NULL,
        port->read != NULL || port->write != NULL,
        port->devargs != NULL,
    };

    for (unsigned type = 0; type <= NDSIM_PORT_PMD; type++) {
        if (has[type] && type != port->type && strcmp(keys[type], keys[port->type]) != 0) {
            return ndsim_reader_wrong(reader, setting, "port %s: %s are for ports of another type", port->name,
                                      keys[type]);
        }
    }
    if (port->type != NDSIM_PORT_MEMIF && !has[port->type]) {
        return ndsim_reader_wrong(reader, setting, "port %s: needs %s", port->name,
                                  port->type == NDSIM_PORT_PCAP ? "read or write" : keys[port->type]);
    }
    if (port->type == NDSIM_PORT_TAP || port->type == NDSIM_PORT_PACKET) {
        if (strlen(port->interface) > 11 || strpbrk(port->interface, ",/ ") != NULL) {
            return ndsim_reader_wrong(reader, setting, "port %s: an interface's name has at most 11 characters",
                                      port->name);
        }
    }
    if (reading->count != 0 &&
        ((port->type != NDSIM_PORT_MEMIF && port->type != NDSIM_PORT_TAP) || port->has_mac || port->capture != NULL)) {
        return ndsim_reader_wrong(reader, setting, "port %s: count is for types memif and tap, without mac and capture",
                                  port->name);
    }
    return check_count(reader, setting, reading->count);
}

bool ndsim_port_read(struct ndsim_reader *reader, const config_setting_t *group)
{
    static const struct ndsim_key keys[] = {
        {"name", ndsim_take_name, offsetof(struct port_reading, port.name)},
        {"count", take_count, offsetof(struct port_reading, count)},
        {"type", take_port_type, offsetof(struct port_reading, port.type)},
        {"path", ndsim_take_path, offsetof(struct port_reading, port.path)},
        {"role", take_role, offsetof(struct port_reading, port.role)},
        {"id", ndsim_take_u32, offsetof(struct port_reading, port.id)},
        {"driver", take_driver, offsetof(struct port_reading, port.dpdk)},
        {"interface", ndsim_take_text, offsetof(struct port_reading, port.interface)},
        {"read", ndsim_take_path, offsetof(struct port_reading, port.read)},
        {"write", ndsim_take_path, offsetof(struct port_reading, port.write)},
        {"devargs", ndsim_take_text, offsetof(struct port_reading, port.devargs)},
        {"mac", take_station, offsetof(struct port_reading, port)},
        {"capture", ndsim_take_path, offsetof(struct port_reading, port.capture)},
    };
    struct port_reading reading = {.port = {.node = UINT32_MAX, .line = config_setting_source_line(group)}};
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, &reading)};

    if (!ndsim_reader_group(reader, group, tables, 1)) {
        return false;
    }
    if (reading.port.name == NULL) {
        return ndsim_reader_wrong(reader, group, "a port needs a name");
    }
    if (!check_port(reader, group, &reading)) {
        return false;
    }
    for (uint32_t i = 0; i < (reading.count == 0 ? 1 : reading.count); i++) {
        struct ndsim_topology_port port = reading.port;

        port.name = numbered(reader, reading.port.name, reading.count, i);
        if (port.type == NDSIM_PORT_MEMIF) {
            port.path = socket_path(reader, reading.port.path, port.name);
            port.id += reading.port.path != NULL ? i : 0;
            if (!ndsim_check_socket(reader, group, port.path)) {
                return false;
            }
        } else if (port.type == NDSIM_PORT_TAP) {
            port.interface = numbered(reader, reading.port.interface, reading.count, i);
        }
        if (!add_port(reader, group, &port)) {
            return false;
        }
    }
    return true;
}

struct node_reading {
    struct ndsim_topology_node node;
    struct ndsim_topology_region whole;
    uint32_t count;
    bool has_mac;
};

static bool take_address(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    struct ndsim_topology_node *node = into;
    const char *text;
    char host[INET_ADDRSTRLEN];
    unsigned prefix = 24;
    size_t length;
    char more;

    if (!ndsim_take_text(reader, setting, &text)) {
        return false;
    }
    length = strcspn(text, "/");
    if (length < sizeof(host)) {
        memcpy(host, text, length);
        host[length] = 0;
        if (inet_pton(AF_INET, host, node->address) == 1 && node->address[0] != 0 && node->address[0] < 224 &&
            (text[length] == 0 || (strspn(text + length + 1, "0123456789") == strlen(text + length + 1) &&
                                   sscanf(text + length, "/%2u%c", &prefix, &more) == 1)) &&
            prefix >= 1 && prefix <= 30) {
            node->prefix = prefix;
            return true;
        }
    }
    return ndsim_reader_wrong(reader, setting,
                              "address: expected one IPv4 address, such as \"10.0.0.1\" or \"10.0.0.1/16\"");
}

static bool take_join(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char *const joins[] = {"memif", "udp"};
    int join = ndsim_reader_choice(reader, setting, joins, 2);

    *(enum ndsim_node_join *)into = join == 1 ? NDSIM_NODE_UDP : NDSIM_NODE_MEMIF;
    return join >= 0;
}

static bool take_node_mac(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    struct node_reading *reading = into;

    reading->has_mac = true;
    return ndsim_take_mac(reader, setting, reading->node.mac);
}

#define REGION_PERMISSIONS                                                                                             \
    (NETDAM_PERMISSION_REMOTE_READ | NETDAM_PERMISSION_REMOTE_WRITE | NETDAM_PERMISSION_REMOTE_ALU)

static bool take_pattern(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *text;

    return ndsim_take_text(reader, setting, &text) &&
           (ndsim_pattern_parse(text, into) ||
            ndsim_reader_wrong(reader, setting, "pattern: expected \"count\", or 1 to %u bytes in hexadecimal digits",
                               NDSIM_PATTERN_BYTES));
}

static bool is_filled(const struct ndsim_pattern *pattern)
{
    return pattern->count || pattern->bytes != 0;
}

static bool take_regions(struct ndsim_reader *reader, const config_setting_t *list, void *into)
{
    static const struct ndsim_key keys[] = {
        {"offset", ndsim_take_size, offsetof(struct ndsim_topology_region, offset)},
        {"bytes", ndsim_take_size, offsetof(struct ndsim_topology_region, bytes)},
        {"key", ndsim_take_key, offsetof(struct ndsim_topology_region, key)},
        {"permissions", ndsim_take_permissions, offsetof(struct ndsim_topology_region, permissions)},
        {"load", ndsim_take_path, offsetof(struct ndsim_topology_region, load)},
        {"pattern", take_pattern, offsetof(struct ndsim_topology_region, pattern)},
    };
    struct ndsim_topology_node *node = into;

    if (!config_setting_is_list(list) || config_setting_length(list) == 0 ||
        config_setting_length(list) > (int)NDSIM_NODE_REGIONS_MAX) {
        return ndsim_reader_wrong(reader, list, "regions: expected a list of 1 to %u groups: ( { ... }, { ... } )",
                                  NDSIM_NODE_REGIONS_MAX);
    }
    node->region_count = 0;
    for (int i = 0; i < config_setting_length(list); i++) {
        struct ndsim_topology_region *region = &node->regions[node->region_count++];
        struct ndsim_keys tables[] = {NDSIM_KEYS(keys, region)};

        *region = (struct ndsim_topology_region){.permissions = REGION_PERMISSIONS};
        if (!ndsim_reader_group(reader, config_setting_get_elem(list, (unsigned)i), tables, 1)) {
            return false;
        }
    }
    return true;
}

static bool check_node(struct ndsim_reader *reader, const config_setting_t *setting, const struct node_reading *reading)
{
    const struct ndsim_topology_node *node = &reading->node;
    struct sockaddr_in address;

    if (node->memory_bytes == 0 || node->memory_bytes % 4096 != 0) {
        return ndsim_reader_wrong(reader, setting, "node %s: memory is not a multiple of 4K", node->name);
    }
    if (node->memory_bytes > NDSIM_MEMORY_MAX) {
        return ndsim_reader_wrong(reader, setting, "node %s: memory of more than 65536T", node->name);
    }
    if (node->mtu < NETDAM_MTU_MIN || node->mtu > NETDAM_MTU_MAX) {
        return ndsim_reader_wrong(reader, setting, "node %s: mtu is not within %u and %u", node->name, NETDAM_MTU_MIN,
                                  NETDAM_MTU_MAX);
    }
    for (uint32_t i = 0; i < node->region_count; i++) {
        const struct ndsim_topology_region *region = &node->regions[i];

        if (region->offset % 4096 != 0 || region->offset >= node->memory_bytes ||
            region->bytes > node->memory_bytes - region->offset) {
            return ndsim_reader_wrong(reader, setting,
                                      "node %s: region %u does not begin at a multiple of 4K within "
                                      "memory, or goes beyond its end",
                                      node->name, i);
        }
    }
    if (node->join == NDSIM_NODE_UDP) {
        if (node->listen == NULL || !ndsim_address_parse(node->listen, &address) || !ndsim_address_is_host(&address)) {
            return ndsim_reader_wrong(reader, setting, "node %s: needs listen = \"ADDR:PORT\", with one IPv4 address",
                                      node->name);
        }
        if (node->path != NULL || node->prefix != 0 || reading->has_mac || node->capture != NULL) {
            return ndsim_reader_wrong(reader, setting,
                                      "node %s: path, address, mac and capture are not for join = \"udp\"", node->name);
        }
        if (reading->count != 0 && ntohs(address.sin_port) + reading->count > 65536) {
            return ndsim_reader_wrong(reader, setting, "node %s: there are not so many ports", node->name);
        }
    } else if (node->listen != NULL) {
        return ndsim_reader_wrong(reader, setting, "node %s: listen is for join = \"udp\"", node->name);
    } else if (node->prefix == 0) {
        return ndsim_reader_wrong(reader, setting, "node %s: needs an address", node->name);
    }
    if (reading->count != 0 && (reading->has_mac || node->capture != NULL)) {
        return ndsim_reader_wrong(reader, setting, "node %s: mac and capture do not go with count", node->name);
    }
    return check_count(reader, setting, reading->count);
}

static bool add_node(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_topology_node *node)
{
    struct ndsim_topology *topology = reader->topology;
    uint32_t hosts = UINT32_MAX >> node->prefix;
    uint32_t host = ((uint32_t)node->address[0] << 24 | (uint32_t)node->address[1] << 16 |
                     (uint32_t)node->address[2] << 8 | node->address[3]) &
                    hosts;

    if (node->join == NDSIM_NODE_MEMIF && (host == 0 || host == hosts)) {
        return ndsim_reader_wrong(reader, group, "node %s: %u.%u.%u.%u/%u is the address of no host in its network",
                                  node->name, node->address[0], node->address[1], node->address[2], node->address[3],
                                  (unsigned)node->prefix);
    }
    for (uint32_t i = 0; i < topology->node_count && node->join == NDSIM_NODE_MEMIF; i++) {
        if (topology->nodes[i].join == NDSIM_NODE_MEMIF && memcmp(topology->nodes[i].address, node->address, 4) == 0) {
            return ndsim_reader_wrong(reader, group, "node %s: has the address of node %s", node->name,
                                      topology->nodes[i].name);
        }
    }
    if (node->join == NDSIM_NODE_MEMIF) {
        struct ndsim_topology_port port = {
            .name = node->name,
            .line = node->line,
            .type = NDSIM_PORT_MEMIF,
            .role = node->role == NDSIM_MEMIF_SERVER ? NDSIM_MEMIF_CLIENT : NDSIM_MEMIF_SERVER,
            .id = node->id,
            .path = node->path,
            .capture = node->capture,
            .has_mac = true,
            .node = topology->node_count,
        };

        memcpy(port.mac, node->mac, sizeof(port.mac));
        if (!ndsim_check_socket(reader, group, node->path) || !add_port(reader, group, &port)) {
            return false;
        }
    } else if (!ndsim_may_add(reader, group, node->name, topology->node_count)) {
        return false;
    }
    topology->nodes = ndsim_grown(topology->nodes, topology->node_count, sizeof(*topology->nodes));
    topology->nodes[topology->node_count++] = *node;
    return true;
}

/* The i-th node of a group: the next name, address, id or UDP port. */
static struct ndsim_topology_node nth_node(struct ndsim_reader *reader, const struct node_reading *reading, uint32_t i)
{
    struct ndsim_topology_node node = reading->node;
    struct sockaddr_in listen;
    uint32_t address;

    node.name = numbered(reader, reading->node.name, reading->count, i);
    if (node.join == NDSIM_NODE_UDP) {
        if (i != 0 && ndsim_address_parse(node.listen, &listen) && listen.sin_port != 0) {
            node.listen = ndsim_reader_text(reader->topology, "%.*s:%u", (int)strcspn(node.listen, ":"), node.listen,
                                            ntohs(listen.sin_port) + i);
        }
        return node;
    }
    memcpy(&address, node.address, 4);
    address = htonl(ntohl(address) + i);
    memcpy(node.address, &address, 4);
    if (!reading->has_mac) {
        node.mac[0] = 0x02;
        memcpy(node.mac + 2, node.address, 4);
    }
    node.path = socket_path(reader, reading->node.path, node.name);
    node.id += reading->node.path != NULL ? i : 0;
    return node;
}

bool ndsim_node_read(struct ndsim_reader *reader, const config_setting_t *group)
{
    static const struct ndsim_key keys[] = {
        {"name", ndsim_take_name, offsetof(struct node_reading, node.name)},
        {"count", take_count, offsetof(struct node_reading, count)},
        {"join", take_join, offsetof(struct node_reading, node.join)},
        {"path", ndsim_take_path, offsetof(struct node_reading, node.path)},
        {"role", take_role, offsetof(struct node_reading, node.role)},
        {"id", ndsim_take_u32, offsetof(struct node_reading, node.id)},
        {"listen", ndsim_take_text, offsetof(struct node_reading, node.listen)},
        {"address", take_address, offsetof(struct node_reading, node)},
        {"mac", take_node_mac, 0},
        {"memory", ndsim_take_size, offsetof(struct node_reading, node.memory_bytes)},
        {"mtu", ndsim_take_u32, offsetof(struct node_reading, node.mtu)},
        {"regions", take_regions, offsetof(struct node_reading, node)},
        {"key", ndsim_take_key, offsetof(struct node_reading, whole.key)},
        {"permissions", ndsim_take_permissions, offsetof(struct node_reading, whole.permissions)},
        {"load", ndsim_take_path, offsetof(struct node_reading, whole.load)},
        {"pattern", take_pattern, offsetof(struct node_reading, whole.pattern)},
        {"payload_crc", ndsim_take_bool, offsetof(struct node_reading, node.payload_crc)},
        {"merge", ndsim_take_bool, offsetof(struct node_reading, node.merge)},
        {"capture", ndsim_take_path, offsetof(struct node_reading, node.capture)},
    };
    struct node_reading reading = {
        .node = {.line = config_setting_source_line(group),
                 .role = NDSIM_MEMIF_CLIENT,
                 .memory_bytes = UINT64_C(64) << 20,
                 .mtu = NETDAM_MTU_MIN,
                 .payload_crc = true,
                 .merge = true},
        .whole = {.permissions = REGION_PERMISSIONS},
    };
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, &reading)};

    if (!ndsim_reader_group(reader, group, tables, 1)) {
        return false;
    }
    if (reading.node.name == NULL) {
        return ndsim_reader_wrong(reader, group, "a node needs a name");
    }
    if (reading.node.region_count == 0) {
        reading.node.regions[reading.node.region_count++] = reading.whole;
    } else if (reading.whole.key != 0 || reading.whole.load != NULL || is_filled(&reading.whole.pattern) ||
               reading.whole.permissions != REGION_PERMISSIONS) {
        return ndsim_reader_wrong(reader, group,
                                  "node %s: key, permissions, load and pattern belong to one of its regions",
                                  reading.node.name);
    }
    if (!check_node(reader, group, &reading)) {
        return false;
    }
    for (uint32_t i = 0; i < (reading.count == 0 ? 1 : reading.count); i++) {
        struct ndsim_topology_node node = nth_node(reader, &reading, i);

        if (!add_node(reader, group, &node)) {
            return false;
        }
    }
    return true;
}
