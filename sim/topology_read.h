/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading settings of libconfig into structures: tables of keys, and messages that name the line. */
#ifndef NDSIM_TOPOLOGY_READ_H
#define NDSIM_TOPOLOGY_READ_H

#include "topology.h"

#include <libconfig.h>
#include <stddef.h>

/* Bytes that wait for a line of a rate where the file says nothing; 0 says: without limit. */
#define NDSIM_QUEUE_BYTES (UINT64_C(1) << 20)

struct ndsim_reader {
    struct ndsim_topology *topology;
    const char *file;
    const char *base; /* directory that relative paths begin at; "" for the working directory */
    char *error;
};

/* One key of a group, and how its value is stored. */
struct ndsim_key {
    const char *name;
    bool (*take)(struct ndsim_reader *reader, const config_setting_t *setting, void *into);
    size_t offset; /* of the field in the structure */
};

struct ndsim_keys {
    const struct ndsim_key *keys;
    size_t count;
    void *into;
};

#define NDSIM_KEYS(table, structure)                                                                                   \
    {                                                                                                                  \
        table, sizeof(table) / sizeof((table)[0]), structure                                                           \
    }

/* Keeps "FILE:LINE: reason", if no earlier one is kept. Returns false. */
bool ndsim_reader_wrong(struct ndsim_reader *reader, const config_setting_t *setting, const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes each setting of a group by the first table that knows its key; others are errors. */
bool ndsim_reader_group(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *tables,
                        size_t count);

/* Text that lives as long as the topology. */
const char *ndsim_reader_text(struct ndsim_topology *topology, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Kinds of values; `into` points to the type that is named. */
bool ndsim_take_text(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* const char * */
bool ndsim_take_name(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* const char * */
bool ndsim_take_path(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* const char * */
bool ndsim_take_size(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint64_t */
bool ndsim_take_rate(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint64_t */
bool ndsim_take_time(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint64_t */
bool ndsim_take_u64(struct ndsim_reader *reader, const config_setting_t *setting, void *into);
bool ndsim_take_u32(struct ndsim_reader *reader, const config_setting_t *setting, void *into);
bool ndsim_take_bool(struct ndsim_reader *reader, const config_setting_t *setting, void *into);
bool ndsim_take_key(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint64_t, hex */
bool ndsim_take_permissions(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint32_t */
/* The setting itself, for later; into is const config_setting_t ** */
bool ndsim_take_group(struct ndsim_reader *reader, const config_setting_t *setting, void *into);
bool ndsim_take_mac(struct ndsim_reader *reader, const config_setting_t *setting, void *into); /* uint8_t[6] */

/* Where the text of a setting is in a list, or -1 after having told what there is. */
int ndsim_reader_choice(struct ndsim_reader *reader, const config_setting_t *setting, const char *const *choices,
                        size_t count);

/* A link's direction: what it is before anything is said, and the table of its keys. */
void ndsim_way_defaults(struct ndsim_topology_way *way);
struct ndsim_keys ndsim_way_keys(struct ndsim_topology_way *way);
/* That what was taken fits together. */
bool ndsim_way_check(struct ndsim_reader *reader, const config_setting_t *setting,
                     const struct ndsim_topology_way *way);

#endif
