/* SPDX-License-Identifier: BSD-3-Clause */
/* Switches and links of a topology file. */
#include "topology_build.h"

#include <stdio.h>
#include <string.h>

static struct ndsim_topology_link *find_link(const struct ndsim_topology *topology, const char *name)
{
    for (uint32_t i = 0; i < topology->link_count; i++) {
        if (strcmp(topology->links[i].name, name) == 0) {
            return &topology->links[i];
        }
    }
    return NULL;
}

static bool take_spread(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char *const spreads[] = {"ecmp", "spray"};
    int spread = ndsim_reader_choice(reader, setting, spreads, 2);

    *(enum ndsim_spread *)into = spread == 1 ? NDSIM_SPREAD_SPRAY : NDSIM_SPREAD_ECMP;
    return spread >= 0;
}

bool ndsim_switch_read(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *extra,
                       size_t extra_count, struct ndsim_topology_switch *sw)
{
    static const struct ndsim_key keys[] = {
        {"spread", take_spread, offsetof(struct ndsim_topology_switch, config.spread)},
        {"rate", ndsim_take_rate, offsetof(struct ndsim_topology_switch, config.bits_per_s)},
        {"latency", ndsim_take_time, offsetof(struct ndsim_topology_switch, config.latency_ns)},
        {"buffer", ndsim_take_size, offsetof(struct ndsim_topology_switch, config.buffer_bytes)},
        {"queue", ndsim_take_size, offsetof(struct ndsim_topology_switch, config.queue_bytes)},
        {"priorities", ndsim_take_bool, offsetof(struct ndsim_topology_switch, config.priorities)},
        {"overhead", ndsim_take_u32, offsetof(struct ndsim_topology_switch, config.frame_overhead)},
    };
    struct ndsim_keys tables[2] = {NDSIM_KEYS(keys, sw)};

    memset(sw, 0, sizeof(*sw));
    sw->line = config_setting_source_line(group);
    sw->config.frame_overhead = 24;
    if (extra_count != 0) {
        tables[1] = *extra;
    }
    if (!ndsim_reader_group(reader, group, tables, 1 + extra_count)) {
        return false;
    }
    if (sw->config.bits_per_s != 0 &&
        (sw->config.bits_per_s < 1000 || sw->config.bits_per_s > UINT64_C(1000000000000000))) {
        return ndsim_reader_wrong(reader, group, "rate: less than 1000 bits per second, or more than 1000T");
    }
    if (sw->config.bits_per_s != 0 && config_setting_get_member(group, "queue") == NULL) {
        sw->config.queue_bytes = NDSIM_QUEUE_BYTES;
    }
    return (sw->config.frame_overhead <= 1024 && sw->config.latency_ns <= UINT64_C(3600000000000)) ||
           ndsim_reader_wrong(reader, group, "overhead of more than 1024 bytes, or latency of more than an hour");
}

bool ndsim_build_switch(struct ndsim_reader *reader, const config_setting_t *setting,
                        const struct ndsim_topology_switch *sw)
{
    struct ndsim_topology *topology = reader->topology;

    if (!ndsim_may_add(reader, setting, sw->name, topology->switch_count)) {
        return false;
    }
    topology->switches = ndsim_grown(topology->switches, topology->switch_count, sizeof(*topology->switches));
    topology->switches[topology->switch_count++] = *sw;
    return true;
}

bool ndsim_switch_take(struct ndsim_reader *reader, const config_setting_t *group)
{
    static const struct ndsim_key keys[] = {{"name", ndsim_take_name, 0}};
    const char *name = NULL;
    struct ndsim_keys extra = NDSIM_KEYS(keys, &name);
    struct ndsim_topology_switch sw = {0};

    if (!ndsim_switch_read(reader, group, &extra, 1, &sw)) {
        return false;
    }
    sw.name = name;
    return name == NULL ? ndsim_reader_wrong(reader, group, "a switch needs a name")
                        : ndsim_build_switch(reader, group, &sw);
}

static bool read_back(struct ndsim_reader *reader, const config_setting_t *group, struct ndsim_topology_way *way)
{
    struct ndsim_keys tables[] = {ndsim_way_keys(way)};

    return ndsim_reader_group(reader, group, tables, 1) && ndsim_way_check(reader, group, way);
}

struct cable_keys {
    const char *capture;
    const config_setting_t *back;
};

bool ndsim_cable_read(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *extra,
                      size_t extra_count, struct ndsim_cable *cable)
{
    static const struct ndsim_key keys[] = {
        {"capture", ndsim_take_path, offsetof(struct cable_keys, capture)},
        {"back", ndsim_take_group, offsetof(struct cable_keys, back)},
    };
    struct cable_keys own = {0};
    struct ndsim_keys tables[3] = {ndsim_way_keys(&cable->ways[0]), NDSIM_KEYS(keys, &own)};

    ndsim_way_defaults(&cable->ways[0]);
    if (extra_count != 0) {
        tables[2] = *extra;
    }
    if (!ndsim_reader_group(reader, group, tables, 2 + extra_count) ||
        !ndsim_way_check(reader, group, &cable->ways[0])) {
        return false;
    }
    cable->ways[1] = cable->ways[0];
    cable->capture = own.capture;
    return own.back == NULL || read_back(reader, own.back, &cable->ways[1]);
}

/* The end that a name is, if there is room for a link. */
static bool find_end(struct ndsim_reader *reader, const config_setting_t *setting, const char *name,
                     struct ndsim_topology_end *end)
{
    struct ndsim_topology *topology = reader->topology;
    struct ndsim_topology_port *port = ndsim_find_port(topology, name);
    struct ndsim_topology_switch *sw = ndsim_find_switch(topology, name);

    if (port != NULL) {
        *end = (struct ndsim_topology_end){NDSIM_END_PORT, (uint32_t)(port - topology->ports), 0};
        for (uint32_t i = 0; i < topology->link_count; i++) {
            for (unsigned side = 0; side < 2; side++) {
                const struct ndsim_topology_end *taken = &topology->links[i].ends[side];

                if (taken->kind == NDSIM_END_PORT && taken->index == end->index) {
                    return ndsim_reader_wrong(reader, setting, "%s has a link already, in line %u", name,
                                              topology->links[i].line);
                }
            }
        }
        return true;
    }
    if (sw != NULL) {
        *end = (struct ndsim_topology_end){NDSIM_END_SWITCH, (uint32_t)(sw - topology->switches), sw->config.ports};
        return sw->config.ports < NDSIM_SWITCH_PORTS_MAX ||
               ndsim_reader_wrong(reader, setting, "switch %s has more than %u links", name, NDSIM_SWITCH_PORTS_MAX);
    }
    if (ndsim_find_node(topology, name) != NULL) {
        return ndsim_reader_wrong(reader, setting, "node %s is on the kernel's network, and can have no link", name);
    }
    return ndsim_reader_wrong(reader, setting, "nothing is called %s", name);
}

bool ndsim_build_link(struct ndsim_reader *reader, const config_setting_t *setting, const char *name, const char *from,
                      const char *to, const struct ndsim_cable *cable)
{
    struct ndsim_topology *topology = reader->topology;
    struct ndsim_topology_link link = {
        .line = config_setting_source_line(setting),
        .ways = {cable->ways[0], cable->ways[1]},
        .capture = cable->capture,
    };
    unsigned again = 1;

    if (strcmp(from, to) == 0) {
        return ndsim_reader_wrong(reader, setting, "a link from %s to itself", from);
    }
    if (!find_end(reader, setting, from, &link.ends[0]) || !find_end(reader, setting, to, &link.ends[1])) {
        return false;
    }
    if (name != NULL && find_link(topology, name) != NULL) {
        return ndsim_reader_wrong(reader, setting, "%s is the name of the link in line %u already", name,
                                  find_link(topology, name)->line);
    }
    link.name = name != NULL ? name : ndsim_reader_text(topology, "%s-%s", from, to);
    while (find_link(topology, link.name) != NULL) {
        link.name = ndsim_reader_text(topology, "%s-%s.%u", from, to, ++again);
    }
    if (topology->link_count == NDSIM_TOPOLOGY_PARTS_MAX) {
        return ndsim_reader_wrong(reader, setting, "more than %u links", NDSIM_TOPOLOGY_PARTS_MAX);
    }
    for (unsigned side = 0; side < 2; side++) {
        if (link.ends[side].kind == NDSIM_END_SWITCH) {
            topology->switches[link.ends[side].index].config.ports++;
        }
    }
    topology->links = ndsim_grown(topology->links, topology->link_count, sizeof(*topology->links));
    topology->links[topology->link_count++] = link;
    return true;
}

uint32_t ndsim_build_members(struct ndsim_reader *reader, const config_setting_t *setting, const char *name)
{
    const struct ndsim_topology *topology = reader->topology;
    char member[NDSIM_TOPOLOGY_NAME_MAX + 12];
    uint32_t count = 0;

    if (ndsim_find_port(topology, name) != NULL || ndsim_find_switch(topology, name) != NULL ||
        ndsim_find_node(topology, name) != NULL) {
        return 1;
    }
    do {
        snprintf(member, sizeof(member), "%s%u", name, count++);
    } while (ndsim_find_port(topology, member) != NULL);
    if (--count == 0) {
        ndsim_reader_wrong(reader, setting, "nothing is called %s", name);
    }
    return count;
}

const char *ndsim_build_member(struct ndsim_reader *reader, const char *name, uint32_t i)
{
    const struct ndsim_topology *topology = reader->topology;

    if (ndsim_find_port(topology, name) != NULL || ndsim_find_switch(topology, name) != NULL ||
        ndsim_find_node(topology, name) != NULL) {
        return name;
    }
    return ndsim_reader_text(reader->topology, "%s%u", name, i);
}

struct link_reading {
    const char *name;
    const char *from;
    const char *to;
};

bool ndsim_link_read(struct ndsim_reader *reader, const config_setting_t *group)
{
    static const struct ndsim_key keys[] = {
        {"name", ndsim_take_name, offsetof(struct link_reading, name)},
        {"from", ndsim_take_name, offsetof(struct link_reading, from)},
        {"to", ndsim_take_name, offsetof(struct link_reading, to)},
    };
    struct link_reading reading = {0};
    struct ndsim_keys extra = NDSIM_KEYS(keys, &reading);
    struct ndsim_cable cable;
    uint32_t members;

    if (!ndsim_cable_read(reader, group, &extra, 1, &cable)) {
        return false;
    }
    if (reading.from == NULL || reading.to == NULL) {
        return ndsim_reader_wrong(reader, group, "a link needs from and to");
    }
    members = ndsim_build_members(reader, group, reading.from);
    if (members > 1 && (reading.name != NULL || cable.capture != NULL)) {
        return ndsim_reader_wrong(reader, group, "name and capture do not go with the %u links that %s stands for",
                                  members, reading.from);
    }
    for (uint32_t i = 0; i < members; i++) {
        if (!ndsim_build_link(reader, group, reading.name, ndsim_build_member(reader, reading.from, i), reading.to,
                              &cable)) {
            return false;
        }
    }
    return members != 0;
}
