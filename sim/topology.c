/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a topology file: what concerns the whole, then its parts, whatever order they stand in. */
#include "topology_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool read_list(struct ndsim_reader *reader, const config_setting_t *list,
                      bool (*read)(struct ndsim_reader *reader, const config_setting_t *group))
{
    if (list == NULL) {
        return true;
    }
    if (!config_setting_is_list(list)) {
        return ndsim_reader_wrong(reader, list, "%s: expected a list of groups: ( { ... }, { ... } )",
                                  config_setting_name(list));
    }
    for (int i = 0; i < config_setting_length(list); i++) {
        if (!read(reader, config_setting_get_elem(list, (unsigned)i))) {
            return false;
        }
    }
    return true;
}

/* Whatever order the file has: a link may stand above what it joins. */
struct lists {
    const config_setting_t *ports;
    const config_setting_t *nodes;
    const config_setting_t *switches;
    const config_setting_t *links;
    const config_setting_t *shapes;
};

static bool read_whole(struct ndsim_reader *reader, const config_setting_t *root, struct lists *lists)
{
    static const struct ndsim_key keys[] = {
        {"seed", ndsim_take_u64, offsetof(struct ndsim_topology, seed)},
        {"frame", ndsim_take_u32, offsetof(struct ndsim_topology, frame_bytes)},
        {"buffers", ndsim_take_u32, offsetof(struct ndsim_topology, buffers)},
        {"directory", ndsim_take_path, offsetof(struct ndsim_topology, directory)},
    };
    static const struct ndsim_key list_keys[] = {
        {"ports", ndsim_take_group, offsetof(struct lists, ports)},
        {"nodes", ndsim_take_group, offsetof(struct lists, nodes)},
        {"switches", ndsim_take_group, offsetof(struct lists, switches)},
        {"links", ndsim_take_group, offsetof(struct lists, links)},
        {"shapes", ndsim_take_group, offsetof(struct lists, shapes)},
    };
    const config_setting_t *control = NULL;
    static const struct ndsim_key control_key[] = {{"control", ndsim_take_group, 0}};
    struct ndsim_topology *topology = reader->topology;
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, topology), NDSIM_KEYS(list_keys, lists),
                                  NDSIM_KEYS(control_key, &control)};

    if (!ndsim_reader_group(reader, root, tables, 3)) {
        return false;
    }
    if (topology->frame_bytes < 1514 || topology->frame_bytes > 16384) {
        return ndsim_reader_wrong(reader, config_setting_get_member(root, "frame"),
                                  "frame: expected 1514 to 16384 bytes");
    }
    if (topology->buffers < 64 || topology->buffers > 1u << 20) {
        return ndsim_reader_wrong(reader, config_setting_get_member(root, "buffers"),
                                  "buffers: expected 64 to 1048576 frames");
    }
    if (topology->directory != NULL) {
        const char *slash = topology->directory[strlen(topology->directory) - 1] == '/' ? "" : "/";

        reader->base = ndsim_reader_text(topology, "%s%s", topology->directory, slash);
    }
    topology->directory = ndsim_reader_text(topology, "%s", reader->base[0] != 0 ? reader->base : "./");
    return control == NULL || (ndsim_take_path(reader, control, &topology->control) &&
                               ndsim_check_socket(reader, control, topology->control));
}

/* Everything that frames come into has to have a way out, unless the file describes nodes only. */
static bool check_joined(struct ndsim_reader *reader)
{
    const struct ndsim_topology *topology = reader->topology;
    bool *joined;
    bool all = true;

    if (topology->link_count == 0) {
        return true;
    }
    joined = calloc(topology->port_count + 1, sizeof(*joined));
    if (joined == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < topology->link_count; i++) {
        for (unsigned side = 0; side < 2; side++) {
            if (topology->links[i].ends[side].kind == NDSIM_END_PORT) {
                joined[topology->links[i].ends[side].index] = true;
            }
        }
    }
    for (uint32_t i = 0; i < topology->port_count && all; i++) {
        if (!joined[i]) {
            all = false;
            snprintf(reader->error, NDSIM_TOPOLOGY_ERROR_MAX, "%.200s:%u: no link joins %s", reader->file,
                     topology->ports[i].line, topology->ports[i].name);
        }
    }
    free(joined);
    return all;
}

static bool build(struct ndsim_reader *reader, const config_t *config)
{
    struct lists lists = {0};

    return read_whole(reader, config_root_setting(config), &lists) && read_list(reader, lists.ports, ndsim_port_read) &&
           read_list(reader, lists.nodes, ndsim_node_read) && read_list(reader, lists.switches, ndsim_switch_take) &&
           read_list(reader, lists.shapes, ndsim_shape_read) && read_list(reader, lists.links, ndsim_link_read) &&
           check_joined(reader);
}

static bool finish(struct ndsim_topology *topology, config_t *config, bool read, const char *file, const char *base,
                   char *error)
{
    struct ndsim_reader reader = {.topology = topology, .file = file, .base = base, .error = error};
    bool good = false;

    error[0] = 0;
    memset(topology, 0, sizeof(*topology));
    topology->seed = 1;
    topology->frame_bytes = 9216;
    topology->buffers = 8192;
    if (read) {
        good = build(&reader, config);
    } else {
        file = config_error_file(config) != NULL ? config_error_file(config) : file;
        snprintf(error, NDSIM_TOPOLOGY_ERROR_MAX, "%.200s:%d: %.200s", file, config_error_line(config),
                 config_error_text(config));
    }
    config_destroy(config);
    if (!good) {
        ndsim_topology_free(topology);
    }
    return good;
}

bool ndsim_topology_read(struct ndsim_topology *topology, const char *path, char error[NDSIM_TOPOLOGY_ERROR_MAX])
{
    const char *slash = strrchr(path, '/');
    char base[4096] = "";
    struct stat status;
    config_t config;
    FILE *file;
    bool read;

    memset(topology, 0, sizeof(*topology));
    if (stat(path, &status) != 0 || (S_ISDIR(status.st_mode) && (errno = EISDIR) != 0) ||
        (file = fopen(path, "re")) == NULL) {
        snprintf(error, NDSIM_TOPOLOGY_ERROR_MAX, "%.400s: %s", path, strerror(errno));
        return false;
    }
    fclose(file);
    if (slash != NULL) {
        snprintf(base, sizeof(base), "%.*s", (int)(slash - path + 1), path);
    }
    config_init(&config);
    config_set_include_dir(&config, slash != NULL ? base : ".");
    read = config_read_file(&config, path) == CONFIG_TRUE;
    return finish(topology, &config, read, path, base, error);
}

bool ndsim_topology_parse(struct ndsim_topology *topology, const char *text, char error[NDSIM_TOPOLOGY_ERROR_MAX])
{
    config_t config;
    bool read;

    memset(topology, 0, sizeof(*topology));
    if (strstr(text, "@include") != NULL) {
        snprintf(error, NDSIM_TOPOLOGY_ERROR_MAX, "topology: text may not include files");
        return false;
    }
    config_init(&config);
    read = config_read_string(&config, text) == CONFIG_TRUE;
    return finish(topology, &config, read, "topology", "", error);
}

void ndsim_topology_free(struct ndsim_topology *topology)
{
    struct {
        void *next;
    } *text = topology->strings;

    while (text != NULL) {
        void *next = text->next;

        free(text);
        text = next;
    }
    free(topology->ports);
    free(topology->nodes);
    free(topology->switches);
    free(topology->links);
    memset(topology, 0, sizeof(*topology));
}
