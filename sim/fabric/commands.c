/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of the control socket. Whatever a line says, it gets a reply. */
#include "control.h"
#include "topology_read.h"

#include <stdarg.h>
#include <stdio.h>

static json_t *good(void)
{
    return json_pack("{s:b}", "ok", 1);
}

static json_t *wrong(const char *reason, ...) __attribute__((format(printf, 1, 2)));
static json_t *wrong(const char *reason, ...)
{
    char text[NDSIM_TOPOLOGY_ERROR_MAX + 200];
    va_list list;

    va_start(list, reason);
    vsnprintf(text, sizeof(text), reason, list);
    va_end(list);
    return json_pack("{s:b,s:s%}", "ok", 0, "error", text, strlen(text));
}

/* False, with a reply, if the request has a key that the command does not know. */
static bool only(const json_t *request, const char *known, json_t **reply)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)request, key, value)
    {
        char spaced[40];

        if (strcmp(key, "command") == 0 || strcmp(key, "id") == 0) {
            continue;
        }
        if (strlen(key) > 30 || strchr(key, ' ') != NULL || snprintf(spaced, sizeof(spaced), " %s ", key) < 0 ||
            strstr(known, spaced) == NULL) {
            *reply = known[1] == 0 ? wrong("unknown key %.40s; this command has none", key)
                                   : wrong("unknown key %.40s; here belong:%s", key, known);
            return false;
        }
    }
    return true;
}

/* The ways that "link" and "direction" name: ways[0] to ways[count - 1]. 0, with a reply, if there are none. */
static unsigned find_ways(struct ndfab_fabric *fabric, const json_t *request, struct ndfab_way *ways[2], json_t **reply)
{
    const char *name = json_string_value(json_object_get(request, "link"));
    const json_t *which = json_object_get(request, "direction");
    const char *direction = which != NULL ? json_string_value(which) : "both";

    if (direction == NULL ||
        (strcmp(direction, "both") != 0 && strcmp(direction, "there") != 0 && strcmp(direction, "back") != 0)) {
        *reply = wrong("direction: expected \"there\", \"back\" or \"both\"");
        return 0;
    }
    for (uint32_t i = 0; name != NULL && i < fabric->topology.link_count; i++) {
        if (strcmp(fabric->topology.links[i].name, name) == 0) {
            ways[0] = &fabric->ways[2 * i + (strcmp(direction, "back") == 0)];
            ways[1] = &fabric->ways[2 * i + 1];
            return strcmp(direction, "both") == 0 ? 2 : 1;
        }
    }
    *reply = name == NULL ? wrong("link: expected the name of a link") : wrong("no link is called %.100s", name);
    return 0;
}

static json_t *command_list(struct ndfab_fabric *fabric, const json_t *request)
{
    json_t *reply;

    return only(request, " ", &reply) ? ndfab_report_list(fabric) : reply;
}

static json_t *command_counters(struct ndfab_fabric *fabric, const json_t *request)
{
    json_t *reply;

    return only(request, " ", &reply) ? ndfab_report_counters(fabric) : reply;
}

static json_t *command_quit(struct ndfab_fabric *fabric, const json_t *request)
{
    json_t *reply;

    if (!only(request, " ", &reply)) {
        return reply;
    }
    fabric->stop = true;
    return good();
}

/* A JSON value as a setting of libconfig, so that control and files understand the same. */
static bool convert(config_setting_t *parent, const char *name, const json_t *value, unsigned depth)
{
    config_setting_t *setting;
    const char *key;
    json_t *inner;
    size_t i;

    if (depth > 4) {
        return false;
    }
    switch (json_typeof(value)) {
    case JSON_STRING:
        setting = config_setting_add(parent, name, CONFIG_TYPE_STRING);
        return setting != NULL && config_setting_set_string(setting, json_string_value(value));
    case JSON_INTEGER:
        setting = config_setting_add(parent, name, CONFIG_TYPE_INT64);
        return setting != NULL && config_setting_set_int64(setting, json_integer_value(value));
    case JSON_TRUE:
    case JSON_FALSE:
        setting = config_setting_add(parent, name, CONFIG_TYPE_BOOL);
        return setting != NULL && config_setting_set_bool(setting, json_is_true(value));
    case JSON_OBJECT:
        setting = config_setting_add(parent, name, CONFIG_TYPE_GROUP);
        json_object_foreach((json_t *)(uintptr_t)value, key, inner)
        {
            if (setting == NULL || !convert(setting, key, inner, depth + 1)) {
                return false;
            }
        }
        return setting != NULL;
    case JSON_ARRAY:
        setting = config_setting_add(parent, name, CONFIG_TYPE_LIST);
        json_array_foreach((json_t *)(uintptr_t)value, i, inner)
        {
            if (setting == NULL || !convert(setting, NULL, inner, depth + 1)) {
                return false;
            }
        }
        return setting != NULL;
    default:
        return false;
    }
}

/* What the way is now, changed by `faults`. */
static bool read_faults(struct ndfab_way *way, const json_t *faults, struct ndsim_topology_way *changed, char *error)
{
    struct ndsim_reader reader = {.topology = &way->fabric->topology, .base = "", .error = error};
    struct ndsim_keys tables[] = {ndsim_way_keys(changed)};
    config_t config;
    bool read;

    memset(changed, 0, sizeof(*changed));
    changed->config = way->link.config;
    error[0] = 0;
    config_init(&config);
    if (!convert(config_root_setting(&config), "faults", faults, 0)) {
        snprintf(error, NDSIM_TOPOLOGY_ERROR_MAX, "faults: a key or value that no topology file could have");
        config_destroy(&config);
        return false;
    }
    read = ndsim_reader_group(&reader, config_lookup(&config, "faults"), tables, 1) &&
           ndsim_way_check(&reader, config_lookup(&config, "faults"), changed);
    config_destroy(&config);
    if (read && changed->down_count != 0) {
        snprintf(error, NDSIM_TOPOLOGY_ERROR_MAX, "down: for files; here is a command for it");
        return false;
    }
    return read;
}

static json_t *command_faults(struct ndfab_fabric *fabric, const json_t *request)
{
    const json_t *faults = json_object_get(request, "faults");
    struct ndsim_topology_way changed[2];
    char error[NDSIM_TOPOLOGY_ERROR_MAX];
    struct ndfab_way *ways[2];
    json_t *reply = NULL;
    unsigned count;

    if (!only(request, " link direction faults ", &reply) || (count = find_ways(fabric, request, ways, &reply)) == 0) {
        return reply;
    }
    if (!json_is_object(faults)) {
        return wrong("faults: expected an object, such as {\"drop\": \"1%%\"}");
    }
    for (unsigned i = 0; i < count; i++) {
        if (!read_faults(ways[i], faults, &changed[i], error)) {
            return wrong("%s", error);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        ways[i]->link.config = changed[i].config;
        if (json_object_get(faults, "flap") != NULL) {
            ways[i]->by_hand = true;
            ndsim_link_flap(&ways[i]->link, fabric->loop.now_ns + changed[i].flap_up_ns,
                            changed[i].flap_up_ns + changed[i].flap_down_ns, changed[i].flap_down_ns);
        }
        ndfab_way_changed(ways[i]);
    }
    return good();
}

static json_t *set_link(struct ndfab_fabric *fabric, const json_t *request, bool up)
{
    const json_t *noticed = json_object_get(request, "noticed");
    struct ndfab_way *ways[2];
    json_t *reply = NULL;
    unsigned count;

    if (!only(request, up ? " link direction " : " link direction noticed ", &reply) ||
        (count = find_ways(fabric, request, ways, &reply)) == 0) {
        return reply;
    }
    if (noticed != NULL && !json_is_boolean(noticed)) {
        return wrong("noticed: expected true or false");
    }
    for (unsigned i = 0; i < count; i++) {
        ndfab_way_set(ways[i], up);
    }
    /* What the switches know, they go round. */
    if (fabric->dead[ways[0]->index / 2] != (!up && json_is_true(noticed))) {
        fabric->dead[ways[0]->index / 2] = !up && json_is_true(noticed);
        ndfab_stations_reroute(fabric);
    }
    return good();
}

static json_t *command_down(struct ndfab_fabric *fabric, const json_t *request)
{
    return set_link(fabric, request, false);
}

static json_t *command_up(struct ndfab_fabric *fabric, const json_t *request)
{
    return set_link(fabric, request, true);
}

/* Where the capture of the port or link that the request names is kept; of a link, in both ways. */
struct capture_places {
    struct ndfab_capture **first;
    struct ndfab_capture **second; /* or NULL */
};

static bool find_captures(struct ndfab_fabric *fabric, const json_t *request, struct capture_places *places,
                          json_t **reply)
{
    const char *name = json_string_value(json_object_get(request, "port"));
    struct ndfab_way *ways[2];

    *places = (struct capture_places){0};
    if (name == NULL) {
        if (find_ways(fabric, request, ways, reply) == 0) {
            return false;
        }
        places->first = &ways[0]->capture;
        places->second = &ways[1]->capture;
        return true;
    }
    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        if (strcmp(fabric->topology.ports[i].name, name) == 0) {
            places->first = &fabric->ports[i].capture;
            return true;
        }
    }
    *reply = wrong("no port is called %.100s", name);
    return false;
}

static void keep_capture(const struct capture_places *places, struct ndfab_capture *capture)
{
    *places->first = capture;
    if (places->second != NULL) {
        *places->second = capture;
    }
}

static json_t *command_capture(struct ndfab_fabric *fabric, const json_t *request)
{
    const char *path = json_string_value(json_object_get(request, "file"));
    struct ndfab_capture *capture;
    struct capture_places places;
    json_t *reply = NULL;
    int error = 0;

    if (!only(request, " port link file ", &reply) || !find_captures(fabric, request, &places, &reply)) {
        return reply;
    }
    if (path == NULL) {
        return wrong("file: expected a path");
    }
    if (*places.first != NULL) {
        return wrong("a capture is under way already");
    }
    capture = ndfab_capture_open(path, fabric->topology.frame_bytes, &error);
    if (capture == NULL) {
        return wrong("%.300s: %s", path, ndfab_claim_text(error));
    }
    keep_capture(&places, capture);
    return good();
}

static json_t *command_capture_stop(struct ndfab_fabric *fabric, const json_t *request)
{
    struct capture_places places;
    json_t *reply = NULL;
    bool written;

    if (!only(request, " port link ", &reply) || !find_captures(fabric, request, &places, &reply)) {
        return reply;
    }
    if (*places.first == NULL) {
        return wrong("no capture is under way");
    }
    written = ndfab_capture_close(*places.first);
    keep_capture(&places, NULL);
    return written ? good() : wrong("the capture could not be written to its end");
}

static const struct {
    const char *name;
    json_t *(*run)(struct ndfab_fabric *fabric, const json_t *request);
} commands[] = {
    {"list", command_list},     {"counters", command_counters},
    {"faults", command_faults}, {"down", command_down},
    {"up", command_up},         {"capture", command_capture},
    {"quit", command_quit},     {"capture-stop", command_capture_stop},
};

static json_t *run(struct ndfab_fabric *fabric, const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "command"));
    char known[200] = "";

    if (!json_is_object(request)) {
        return wrong("expected an object, such as {\"command\": \"counters\"}");
    }
    for (size_t i = 0; i < RTE_DIM(commands); i++) {
        if (name != NULL && strcmp(commands[i].name, name) == 0) {
            return commands[i].run(fabric, request);
        }
        strcat(strcat(known, " "), commands[i].name);
    }
    return wrong("command: expected one of:%s", known);
}

json_t *ndfab_command(struct ndfab_fabric *fabric, const char *line, size_t bytes)
{
    json_error_t error;
    json_t *request = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &error);
    json_t *reply = request != NULL ? run(fabric, request) : wrong("%s", error.text);
    json_t *id = json_object_get(request, "id");

    if (reply == NULL) {
        reply = json_pack("{s:b,s:s}", "ok", 0, "error", "not enough memory, or text that is not UTF-8");
    }
    /* Whoever has several requests under way can tell the replies apart. */
    if (id != NULL) {
        json_object_set(reply, "id", id);
    }
    json_decref(request);
    return reply;
}
