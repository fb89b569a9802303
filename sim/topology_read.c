/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading settings of libconfig: kinds of values, and a direction of a link, which the fabric's control takes too. */
#include "topology_read.h"
#include "values.h"
#include "netdam/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    struct text *next;
    char characters[];
};

bool ndsim_reader_wrong(struct ndsim_reader *reader, const config_setting_t *setting, const char *reason, ...)
{
    const char *file = config_setting_source_file(setting);
    unsigned line = config_setting_source_line(setting);
    size_t used = 0;
    va_list list;

    if (reader->error[0] != 0) {
        return false;
    }
    if (line != 0) {
        used = (size_t)snprintf(reader->error, NDSIM_TOPOLOGY_ERROR_MAX,
                                "%.200s:%u: ", file != NULL ? file : "topology", line);
    }
    va_start(list, reason);
    vsnprintf(reader->error + used, NDSIM_TOPOLOGY_ERROR_MAX - used, reason, list);
    va_end(list);
    /* What a file has in it may hold anything, and a message is one line. */
    for (char *at = reader->error; *at != 0; at++) {
        if ((unsigned char)*at < ' ') {
            *at = '?';
        }
    }
    return false;
}

const char *ndsim_reader_text(struct ndsim_topology *topology, const char *format, ...)
{
    struct text *text;
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    text = malloc(sizeof(*text) + (size_t)length + 1);
    if (text == NULL) {
        abort();
    }
    va_start(list, format);
    vsnprintf(text->characters, (size_t)length + 1, format, list);
    va_end(list);
    text->next = topology->strings;
    topology->strings = text;
    return text->characters;
}

static const struct ndsim_key *find_key(const struct ndsim_keys *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->keys[i].name, name) == 0) {
            return &table->keys[i];
        }
    }
    return NULL;
}

static bool unknown_key(struct ndsim_reader *reader, const config_setting_t *setting, const struct ndsim_keys *tables,
                        size_t count)
{
    char known[400] = "";
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < tables[i].count && used < sizeof(known); k++) {
            used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used != 0 ? ", " : "",
                                     tables[i].keys[k].name);
        }
    }
    return ndsim_reader_wrong(reader, setting, "unknown key %.40s; here belong: %s", config_setting_name(setting),
                              known);
}

bool ndsim_reader_group(struct ndsim_reader *reader, const config_setting_t *group, const struct ndsim_keys *tables,
                        size_t count)
{
    if (!config_setting_is_group(group)) {
        return ndsim_reader_wrong(reader, group, "expected a group: { key = value; ... }");
    }
    for (int i = 0; i < config_setting_length(group); i++) {
        const config_setting_t *setting = config_setting_get_elem(group, (unsigned)i);
        const struct ndsim_key *key = NULL;
        size_t table = 0;

        while (table < count && (key = find_key(&tables[table], config_setting_name(setting))) == NULL) {
            table++;
        }
        if (key == NULL) {
            return unknown_key(reader, setting, tables, count);
        }
        if (!key->take(reader, setting, (char *)tables[table].into + key->offset)) {
            return false;
        }
    }
    return true;
}

/* The setting's text, or NULL after having told that it is not `expected`. */
static const char *text_of(struct ndsim_reader *reader, const config_setting_t *setting, const char *expected)
{
    const char *text = config_setting_type(setting) == CONFIG_TYPE_STRING ? config_setting_get_string(setting) : NULL;

    if (text == NULL || text[0] == 0) {
        const char *name = config_setting_name(setting);

        ndsim_reader_wrong(reader, setting, "%s: expected %s", name != NULL ? name : "element", expected);
        return NULL;
    }
    return text;
}

bool ndsim_take_group(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    (void)reader;
    *(const config_setting_t **)into = setting;
    return true;
}

bool ndsim_take_text(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *text = text_of(reader, setting, "text in quotation marks");

    if (text == NULL) {
        return false;
    }
    *(const char **)into = ndsim_reader_text(reader->topology, "%s", text);
    return true;
}

bool ndsim_take_name(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *text = text_of(reader, setting, "a name in quotation marks");

    if (text == NULL) {
        return false;
    }
    if (strlen(text) > NDSIM_TOPOLOGY_NAME_MAX || text[strspn(text, allowed)] != 0) {
        return ndsim_reader_wrong(reader, setting, "%s: expected at most %u letters, digits, '_', '-' and '.'",
                                  config_setting_name(setting), NDSIM_TOPOLOGY_NAME_MAX);
    }
    *(const char **)into = ndsim_reader_text(reader->topology, "%s", text);
    return true;
}

bool ndsim_take_path(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *text = text_of(reader, setting, "a path in quotation marks");

    if (text == NULL) {
        return false;
    }
    *(const char **)into = ndsim_reader_text(reader->topology, "%s%s", text[0] == '/' ? "" : reader->base, text);
    return true;
}

static bool whole_number(const config_setting_t *setting, uint64_t *value)
{
    int type = config_setting_type(setting);
    long long number = 0;

    if (type == CONFIG_TYPE_INT) {
        number = config_setting_get_int(setting);
    } else if (type == CONFIG_TYPE_INT64) {
        number = config_setting_get_int64(setting);
    }
    if ((type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) || number < 0) {
        return false;
    }
    *value = (uint64_t)number;
    return true;
}

static bool take_number(struct ndsim_reader *reader, const config_setting_t *setting, void *into,
                        bool (*parse)(const char *text, uint64_t *value), const char *expected)
{
    const char *text;

    if (whole_number(setting, into)) {
        return true;
    }
    text = text_of(reader, setting, expected);
    return text != NULL && (parse(text, into) || ndsim_reader_wrong(reader, setting, "%s: expected %s",
                                                                    config_setting_name(setting), expected));
}

bool ndsim_take_size(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    return take_number(reader, setting, into, ndsim_size_parse, "bytes, such as 4096 or \"64K\"");
}

bool ndsim_take_rate(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    return take_number(reader, setting, into, ndsim_rate_parse, "bits per second, such as \"100M\" or \"10G\"");
}

bool ndsim_take_time(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *expected = "a time with its unit, such as \"10us\" or \"1.5ms\"";
    const char *text = text_of(reader, setting, expected);

    return text != NULL && (ndsim_time_parse(text, into) || ndsim_reader_wrong(reader, setting, "%s: expected %s",
                                                                               config_setting_name(setting), expected));
}

bool ndsim_take_u64(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    return whole_number(setting, into) ||
           ndsim_reader_wrong(reader, setting, "%s: expected a whole number, from 2147483648 on with L behind it",
                              config_setting_name(setting));
}

bool ndsim_take_u32(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    uint64_t value = 0;

    if (!ndsim_take_u64(reader, setting, &value)) {
        return false;
    }
    if (value > UINT32_MAX) {
        return ndsim_reader_wrong(reader, setting, "%s: too large", config_setting_name(setting));
    }
    *(uint32_t *)into = (uint32_t)value;
    return true;
}

bool ndsim_take_bool(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    if (config_setting_type(setting) != CONFIG_TYPE_BOOL) {
        return ndsim_reader_wrong(reader, setting, "%s: expected true or false", config_setting_name(setting));
    }
    *(bool *)into = config_setting_get_bool(setting) == CONFIG_TRUE;
    return true;
}

bool ndsim_take_key(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *expected = "a number of 64 bits in quotation marks, decimal or hexadecimal behind 0x, not 0";
    const char *text = text_of(reader, setting, expected);

    return text != NULL && (ndsim_key_parse(text, into) || ndsim_reader_wrong(reader, setting, "%s: expected %s",
                                                                              config_setting_name(setting), expected));
}

bool ndsim_take_permissions(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *expected = "letters out of \"rwa\"";
    const char *text = text_of(reader, setting, expected);

    return text != NULL &&
           (ndsim_permissions_parse(text, into) ||
            ndsim_reader_wrong(reader, setting, "%s: expected %s", config_setting_name(setting), expected));
}

bool ndsim_take_mac(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *expected = "an address of one station, such as \"02:00:00:00:00:01\"";
    const char *text = text_of(reader, setting, expected);
    unsigned bytes[6];
    char more;

    if (text == NULL) {
        return false;
    }
    if (strlen(text) != 17 || strspn(text, "0123456789abcdefABCDEF:") != 17 ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5],
               &more) != 6 ||
        (bytes[0] & 1) != 0 || strcmp(text, "00:00:00:00:00:00") == 0) {
        return ndsim_reader_wrong(reader, setting, "%s: expected %s", config_setting_name(setting), expected);
    }
    for (unsigned i = 0; i < 6; i++) {
        ((uint8_t *)into)[i] = (uint8_t)bytes[i];
    }
    return true;
}

int ndsim_reader_choice(struct ndsim_reader *reader, const config_setting_t *setting, const char *const *choices,
                        size_t count)
{
    char known[200] = "one of:";
    size_t used = strlen(known);
    const char *text;

    for (size_t i = 0; i < count && used < sizeof(known); i++) {
        used += (size_t)snprintf(known + used, sizeof(known) - used, " \"%s\"", choices[i]);
    }
    text = text_of(reader, setting, known);
    for (size_t i = 0; text != NULL && i < count; i++) {
        if (strcmp(text, choices[i]) == 0) {
            return (int)i;
        }
    }
    ndsim_reader_wrong(reader, setting, "%s: expected %s", config_setting_name(setting), known);
    return -1;
}

static bool take_chance(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    const char *expected = "a chance, such as \"1%\" or \"20ppm\"";
    const char *text = text_of(reader, setting, expected);

    return text != NULL &&
           (ndsim_chance_parse(text, into) ||
            ndsim_reader_wrong(reader, setting, "%s: expected %s", config_setting_name(setting), expected));
}

static bool take_anywhere(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    bool anywhere = false;

    if (!ndsim_take_bool(reader, setting, &anywhere)) {
        return false;
    }
    *(uint32_t *)into = anywhere ? 0 : NDSIM_TOPOLOGY_ETHERNET_BYTES;
    return true;
}

/* "1%", or { chance, nth, every } and what the fault has besides. Replaces what was there. */
static bool take_fault(struct ndsim_reader *reader, const config_setting_t *setting, struct ndsim_when *when,
                       const struct ndsim_key *own, void *own_into)
{
    static const struct ndsim_key keys[] = {
        {"chance", take_chance, offsetof(struct ndsim_when, parts_per_million)},
        {"nth", ndsim_take_u64, offsetof(struct ndsim_when, nth)},
        {"every", ndsim_take_u64, offsetof(struct ndsim_when, every)},
    };
    struct ndsim_when taken = {0};
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, &taken), {own, own != NULL ? 1 : 0, own_into}};

    if (!config_setting_is_group(setting)) {
        if (!take_chance(reader, setting, &taken.parts_per_million)) {
            return false;
        }
    } else if (!ndsim_reader_group(reader, setting, tables, 2)) {
        return false;
    }
    if (taken.every != 0 && taken.nth == 0) {
        taken.nth = taken.every;
    }
    *when = taken;
    return true;
}

#define FAULT(fault, table, field)                                                                                     \
    static bool take_##fault(struct ndsim_reader *reader, const config_setting_t *setting, void *into)                 \
    {                                                                                                                  \
        struct ndsim_topology_way *way = into;                                                                         \
        return take_fault(reader, setting, &way->config.fault, table, field);                                          \
    }

static const struct ndsim_key by_key[] = {{"by", ndsim_take_time, 0}};
static const struct ndsim_key anywhere_key[] = {{"anywhere", take_anywhere, 0}};

FAULT(drop, NULL, NULL)
FAULT(twice, NULL, NULL)
FAULT(reorder, by_key, &way->config.reorder_ns)
FAULT(corrupt, anywhere_key, &way->config.corrupt_from)
FAULT(spike, by_key, &way->config.spike_ns)

static bool take_down(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const struct ndsim_key keys[] = {
        {"from", ndsim_take_time, offsetof(struct ndsim_down_window, from_ns)},
        {"until", ndsim_take_time, offsetof(struct ndsim_down_window, until_ns)},
    };
    struct ndsim_topology_way *way = into;

    if (!config_setting_is_list(setting) || config_setting_length(setting) > (int)NDSIM_DOWN_WINDOWS_MAX) {
        return ndsim_reader_wrong(reader, setting, "down: expected a list of at most %u groups: ( { from; until } )",
                                  NDSIM_DOWN_WINDOWS_MAX);
    }
    way->down_count = 0;
    for (int i = 0; i < config_setting_length(setting); i++) {
        const config_setting_t *group = config_setting_get_elem(setting, (unsigned)i);
        struct ndsim_down_window window = {0, UINT64_MAX};
        struct ndsim_keys tables[] = {NDSIM_KEYS(keys, &window)};

        if (!ndsim_reader_group(reader, group, tables, 1)) {
            return false;
        }
        if (window.until_ns <= window.from_ns) {
            return ndsim_reader_wrong(reader, group, "down: until is not after from");
        }
        if (i > 0 && window.from_ns <= way->down[i - 1].until_ns) {
            return ndsim_reader_wrong(reader, group, "down: begins before the one above it has ended");
        }
        way->down[way->down_count++] = window;
    }
    return true;
}

static bool take_flap(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    static const struct ndsim_key keys[] = {
        {"up", ndsim_take_time, offsetof(struct ndsim_topology_way, flap_up_ns)},
        {"down", ndsim_take_time, offsetof(struct ndsim_topology_way, flap_down_ns)},
    };
    struct ndsim_topology_way *way = into;
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, way)};

    if (!ndsim_reader_group(reader, setting, tables, 1)) {
        return false;
    }
    return (way->flap_up_ns == 0) == (way->flap_down_ns == 0) ||
           ndsim_reader_wrong(reader, setting, "flap: needs both up and down");
}

void ndsim_way_defaults(struct ndsim_topology_way *way)
{
    memset(way, 0, sizeof(*way));
    way->config.queue_bytes = NDSIM_QUEUE_BYTES;
    way->config.frame_overhead = 24; /* preamble 8, frame check sequence 4, gap 12 */
    way->config.corrupt_from = NDSIM_TOPOLOGY_ETHERNET_BYTES;
    way->config.reorder_ns = 100000;
    way->config.spike_ns = 1000000;
}

struct ndsim_keys ndsim_way_keys(struct ndsim_topology_way *way)
{
    static const struct ndsim_key keys[] = {
        {"rate", ndsim_take_rate, offsetof(struct ndsim_topology_way, config.bits_per_s)},
        {"delay", ndsim_take_time, offsetof(struct ndsim_topology_way, config.propagation_ns)},
        {"jitter", ndsim_take_time, offsetof(struct ndsim_topology_way, config.jitter_ns)},
        {"queue", ndsim_take_size, offsetof(struct ndsim_topology_way, config.queue_bytes)},
        {"overhead", ndsim_take_u32, offsetof(struct ndsim_topology_way, config.frame_overhead)},
        {"drop", take_drop, 0},
        {"duplicate", take_twice, 0},
        {"reorder", take_reorder, 0},
        {"corrupt", take_corrupt, 0},
        {"spike", take_spike, 0},
        {"down", take_down, 0},
        {"flap", take_flap, 0},
    };

    return (struct ndsim_keys)NDSIM_KEYS(keys, way);
}

bool ndsim_way_check(struct ndsim_reader *reader, const config_setting_t *setting, const struct ndsim_topology_way *way)
{
    const struct ndsim_link_config *config = &way->config;
    const uint64_t longest = UINT64_C(3600) * 1000000000;

    if (config->frame_overhead > 1024) {
        return ndsim_reader_wrong(reader, setting, "overhead: more than 1024 bytes");
    }
    if (config->propagation_ns > longest || config->jitter_ns > longest || config->reorder_ns > longest ||
        config->spike_ns > longest) {
        return ndsim_reader_wrong(reader, setting, "a delay of more than an hour");
    }
    if (config->bits_per_s != 0 && (config->bits_per_s < 1000 || config->bits_per_s > UINT64_C(1000000000000000))) {
        return ndsim_reader_wrong(reader, setting, "rate: less than 1000 bits per second, or more than 1000T");
    }
    return way->down_count == 0 || way->flap_up_ns == 0 ||
           ndsim_reader_wrong(reader, setting, "down and flap exclude each other");
}
