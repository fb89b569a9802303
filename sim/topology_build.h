/* SPDX-License-Identifier: BSD-3-Clause */
/* Putting a topology together: parts by name, cables between them, shapes that are many of both. */
#ifndef NDSIM_TOPOLOGY_BUILD_H
#define NDSIM_TOPOLOGY_BUILD_H

#include "topology_read.h"

struct ndsim_topology_port *ndsim_find_port(const struct ndsim_topology *topology, const char *name);
struct ndsim_topology_node *ndsim_find_node(const struct ndsim_topology *topology, const char *name);
struct ndsim_topology_switch *ndsim_find_switch(const struct ndsim_topology *topology, const char *name);

/* Room for one more element in an array of `count`: doubles it when that is a power of two. */
void *ndsim_grown(void *array, uint32_t count, size_t bytes);

/* Whether a part of this name may be added to `count` of its kind; a message if not. */
bool ndsim_may_add(struct ndsim_reader *reader, const config_setting_t *setting, const char *name, uint32_t count);

/* Whether a path fits into a socket's address. */
bool ndsim_check_socket(struct ndsim_reader *reader, const config_setting_t *setting, const char *path);

/* One group of "ports", "nodes", "switches", "links", "shapes" each. */
bool ndsim_port_read(struct ndsim_reader *reader, const config_setting_t *group);
bool ndsim_node_read(struct ndsim_reader *reader, const config_setting_t *group);
bool ndsim_switch_take(struct ndsim_reader *reader, const config_setting_t *group);
bool ndsim_link_read(struct ndsim_reader *reader, const config_setting_t *group);
bool ndsim_shape_read(struct ndsim_reader *reader, const config_setting_t *group);

/* What several links share: their ways, and where they are captured. */
struct ndsim_cable {
    struct ndsim_topology_way ways[2];
    const char *capture;
};

/* Reads a link's group, of which `extra` are further keys. The way back is as the way there, but for what "back" says. */
bool ndsim_cable_read(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *extra,
                      size_t extra_count, struct ndsim_cable *cable);

/* A switch's group. */
bool ndsim_switch_read(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *extra,
                       size_t extra_count, struct ndsim_topology_switch *sw);

/* Adds a switch whose name is free. False, with a message for `setting`, if it is not, or there are too many. */
bool ndsim_build_switch(struct ndsim_reader *reader, const config_setting_t *setting,
                        const struct ndsim_topology_switch *sw);

/* Joins two ends by name. `name` may be NULL: then it is made of those of the ends. */
bool ndsim_build_link(struct ndsim_reader *reader, const config_setting_t *setting, const char *name, const char *from,
                      const char *to, const struct ndsim_cable *cable);

/*
 * The names that `name` stands for: itself, or its numbered members. Returns how many; 0, with a message, if nothing
 * is called so.
 */
uint32_t ndsim_build_members(struct ndsim_reader *reader, const config_setting_t *setting, const char *name);
/* The i-th of them. */
const char *ndsim_build_member(struct ndsim_reader *reader, const char *name, uint32_t i);

#endif
