/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes nodes from a topology file (docs/topology.md), as if they had been described on the command line. */
#include "options_parse.h"

#include <stdio.h>
#include <string.h>

#ifdef NDSIM_NO_TOPOLOGY

bool ndsim_options_add_topology(struct ndsim_parser *parser)
{
    fprintf(stderr, "netdam-node: --topology %s: this program was built without libconfig (libconfig-dev)\n",
            parser->topology);
    return false;
}

#else

#include "netdam/wire.h"
#include "topology.h"

/* Whether a word of --only means this node: by its name, or, where no node is called so, by that of its group. */
static bool is_meant(const struct ndsim_topology *topology, const char *name, const char *word, size_t length)
{
    uint32_t i;

    if (strncmp(name, word, length) != 0) {
        return false;
    }
    for (i = 0; i < topology->node_count; i++) {
        if (strncmp(topology->nodes[i].name, word, length) == 0 && topology->nodes[i].name[length] == 0) {
            return name[length] == 0;
        }
    }
    return strspn(name + length, "0123456789") == strlen(name + length);
}

/* Takes the next word from a list with commas; NULL at its end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list;

    if (word != NULL) {
        *length = strcspn(word, ",");
        *list = word[*length] != 0 ? word + *length + 1 : NULL;
    }
    return word;
}

static bool is_wanted(const struct ndsim_topology *topology, const char *name, const char *only)
{
    const char *word;
    size_t length;

    while ((word = next_word(&only, &length)) != NULL) {
        if (is_meant(topology, name, word, length)) {
            return true;
        }
    }
    return false;
}

/* Each word of --only means something. */
static bool check_only(const struct ndsim_parser *parser, const struct ndsim_topology *topology)
{
    const char *only = parser->only;
    const char *word;
    size_t length;

    while ((word = next_word(&only, &length)) != NULL) {
        uint32_t i = 0;

        while (i < topology->node_count && !is_meant(topology, topology->nodes[i].name, word, length)) {
            i++;
        }
        if (length == 0 || i == topology->node_count) {
            return ndsim_options_wrong("only", parser->only, "names of nodes in the topology file");
        }
    }
    return true;
}

static bool copy_text(struct ndsim_options *options, const char **into, const char *text)
{
    *into = text != NULL ? ndsim_options_keep(options, "%s", text) : NULL;
    return text == NULL || *into != NULL;
}

static bool add_regions(struct ndsim_options *options, struct ndsim_node_options *node,
                        const struct ndsim_topology_node *from)
{
    _Static_assert(NDSIM_NODE_REGIONS_MAX <= NDSIM_REGIONS_MAX, "a node of a file has room");
    uint32_t i;

    for (i = 0; i < from->region_count; i++) {
        node->regions[i] = (struct ndsim_region){.offset = from->regions[i].offset,
                                                 .bytes = from->regions[i].bytes,
                                                 .key = from->regions[i].key,
                                                 .permissions = from->regions[i].permissions,
                                                 .pattern = from->regions[i].pattern};
        if (!copy_text(options, &node->regions[i].load, from->regions[i].load)) {
            return false;
        }
    }
    node->region_count = from->region_count;
    return true;
}

/* A node whose port is an end of a memif link to the fabric. */
static bool add_link(struct ndsim_options *options, struct ndsim_node_options *node,
                     const struct ndsim_topology_node *from)
{
    node->memif_server = from->role == NDSIM_MEMIF_SERVER;
    node->memif_id = from->id;
    node->prefix = (uint8_t)from->prefix;
    memcpy(node->mac, from->mac, sizeof(node->mac));
    node->listen = ndsim_options_keep(options, "%u.%u.%u.%u:%u", from->address[0], from->address[1], from->address[2],
                                      from->address[3], (unsigned)NETDAM_UDP_PORT);
    return node->listen != NULL && copy_text(options, &node->memif_path, from->path);
}

static bool add_node(struct ndsim_parser *parser, const struct ndsim_topology_node *from)
{
    struct ndsim_draft *draft = ndsim_options_begin_node(parser, from->name);
    struct ndsim_node_options *node = draft != NULL ? &draft->node : NULL;

    if (node == NULL) {
        return false;
    }
    if (from->join == NDSIM_NODE_MEMIF && !add_link(parser->options, node, from)) {
        return false;
    }
    node->memory_bytes = from->memory_bytes;
    node->mtu = from->mtu;
    node->no_payload_crc = node->no_payload_crc || !from->payload_crc;
    node->no_merge = node->no_merge || !from->merge;
    return add_regions(parser->options, node, from) &&
           (from->join == NDSIM_NODE_MEMIF || copy_text(parser->options, &node->listen, from->listen));
}

bool ndsim_options_add_topology(struct ndsim_parser *parser)
{
    const struct ndsim_draft *common = &parser->common;
    struct ndsim_topology topology;
    char error[NDSIM_TOPOLOGY_ERROR_MAX];
    bool good;
    uint32_t i;

    if (common->whole || common->node.region_count != 0 || common->node.load != NULL ||
        common->node.wire_path != NULL || common->node.memif_path != NULL) {
        fputs("netdam-node: --key, --permissions, --region, --load, --wire, --memif: with --topology expected in the "
              "file\n",
              stderr);
        return false;
    }
    if (!ndsim_topology_read(&topology, parser->topology, error)) {
        fprintf(stderr, "netdam-node: %s\n", error);
        return false;
    }
    good = check_only(parser, &topology);
    if (good && topology.node_count == 0) {
        good = ndsim_options_wrong("topology", parser->topology, "a file with nodes");
    }
    for (i = 0; good && i < topology.node_count; i++) {
        if (parser->only == NULL || is_wanted(&topology, topology.nodes[i].name, parser->only)) {
            good = add_node(parser, &topology.nodes[i]);
        }
    }
    ndsim_topology_free(&topology);
    return good;
}

#endif
