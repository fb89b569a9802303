/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any text as a topology file. What is accepted holds together. */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libconfig forgets some bytes of each file that is not even well formed, such as a string that never ends. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libconfig";
}

static void check_ends(const struct ndsim_topology *topology)
{
    uint32_t used[NDSIM_TOPOLOGY_PARTS_MAX] = {0};

    for (uint32_t i = 0; i < topology->link_count * 2; i++) {
        const struct ndsim_topology_end *end = &topology->links[i / 2].ends[i % 2];

        if (end->kind == NDSIM_END_PORT) {
            CHECK(end->index < topology->port_count);
        } else {
            CHECK(end->index < topology->switch_count);
            CHECK(end->port < topology->switches[end->index].config.ports && end->port < 32);
            CHECK((used[end->index] >> end->port & 1) == 0);
            used[end->index] |= UINT32_C(1) << end->port;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[NDSIM_TOPOLOGY_ERROR_MAX];
    struct ndsim_topology topology;
    char *text = malloc(size + 1);

    CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    if (ndsim_topology_parse(&topology, text, error)) {
        uint32_t masks[NDSIM_TOPOLOGY_PARTS_MAX * NDSIM_SWITCH_TREES_MAX];
        uint32_t trees;

        check_ends(&topology);
        trees = ndsim_topology_trees(&topology, NULL, masks);
        CHECK(trees >= 1 && trees <= NDSIM_SWITCH_TREES_MAX);
        for (uint32_t port = 0; port < topology.port_count && port < 4; port++) {
            ndsim_topology_ways(&topology, NULL, port, masks);
        }
        for (uint32_t i = 0; i < topology.node_count; i++) {
            CHECK(topology.nodes[i].region_count >= 1 && topology.nodes[i].region_count <= NDSIM_NODE_REGIONS_MAX);
        }
    } else {
        CHECK(error[0] != 0 && strchr(error, '\n') == NULL && topology.ports == NULL);
    }
    ndsim_topology_free(&topology);
    free(text);
    return 0;
}
