/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of a topology file: a few lines that stand for many switches and links. */
#include "topology_build.h"
#include "vt/shape.h"

#include <stdlib.h>

struct shape {
    struct ndsim_reader *reader;
    const config_setting_t *group;
    const char *name;
    const char **members;
    struct ndsim_shape numbers;
    struct ndsim_cable link;  /* of each member */
    struct ndsim_cable trunk; /* between switches */
    struct ndsim_topology_switch sw;
    uint32_t switches;
    uint32_t leaves;
};

static const char *switch_name(const struct shape *shape, uint32_t i)
{
    struct ndsim_topology *topology = shape->reader->topology;
    uint32_t leaves = shape->numbers.switches;

    switch (shape->numbers.kind) {
    case NDSIM_SHAPE_RING:
        return ndsim_reader_text(topology, "%s-ring%u", shape->name, i);
    case NDSIM_SHAPE_LEAF_SPINE:
        return i < leaves ? ndsim_reader_text(topology, "%s-leaf%u", shape->name, i)
                          : ndsim_reader_text(topology, "%s-spine%u", shape->name, i - leaves);
    default:
        return shape->name;
    }
}

static const char *end_name(const struct shape *shape, struct ndsim_end end)
{
    return end.is_switch ? switch_name(shape, end.index) : shape->members[end.index];
}

static bool build(struct shape *shape)
{
    struct ndsim_shape_plan plan;

    if (!ndsim_shape_plan(&shape->numbers, &plan)) {
        return ndsim_reader_wrong(shape->reader, shape->group,
                                  "the shape is larger than %u members, %u switches or %u links", NDSIM_NET_NODES_MAX,
                                  NDSIM_NET_SWITCHES_MAX, NDSIM_NET_LINKS_MAX / 2);
    }
    for (uint32_t i = 0; i < plan.switch_count; i++) {
        struct ndsim_topology_switch sw = shape->sw;

        sw.name = switch_name(shape, i);
        if (!ndsim_build_switch(shape->reader, shape->group, &sw)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < plan.edge_count; i++) {
        if (!ndsim_build_link(shape->reader, shape->group, NULL, end_name(shape, plan.edges[i].a),
                              end_name(shape, plan.edges[i].b), plan.edges[i].trunk ? &shape->trunk : &shape->link)) {
            return false;
        }
    }
    return true;
}

/* What a kind needs, and cannot have been told by the plan. */
static bool check_numbers(struct shape *shape)
{
    const struct ndsim_shape *numbers = &shape->numbers;

    switch (numbers->kind) {
    case NDSIM_SHAPE_PAIR:
        return numbers->nodes == 2 ||
               ndsim_reader_wrong(shape->reader, shape->group, "a pair has two members, not %u", numbers->nodes);
    case NDSIM_SHAPE_RING:
        return numbers->switches >= 3 ||
               ndsim_reader_wrong(shape->reader, shape->group, "a ring has three switches or more, not %u",
                                  numbers->switches);
    case NDSIM_SHAPE_LEAF_SPINE:
        return (numbers->switches != 0 && numbers->planes != 0) ||
               ndsim_reader_wrong(shape->reader, shape->group, "a leaf-spine needs leaves and planes");
    default:
        return true;
    }
}

static const char *const kinds[] = {"pair", "star", "ring", "leaf-spine"};
enum { PAIR = NDSIM_SHAPE_PAIR, STAR = NDSIM_SHAPE_STAR, RING = NDSIM_SHAPE_RING, LEAF_SPINE = NDSIM_SHAPE_LEAF_SPINE };

static bool take_kind(struct ndsim_reader *reader, const config_setting_t *setting, void *into)
{
    *(int *)into = ndsim_reader_choice(reader, setting, kinds, sizeof(kinds) / sizeof(kinds[0]));
    return *(int *)into >= 0;
}

/* The names of the list, those that stand for several spelled out. */
static bool gather_members(struct shape *shape, const config_setting_t *list)
{
    if (list == NULL || (!config_setting_is_list(list) && !config_setting_is_array(list))) {
        return ndsim_reader_wrong(shape->reader, list != NULL ? list : shape->group,
                                  "a shape needs members = ( \"NAME\", ... )");
    }
    for (int i = 0; i < config_setting_length(list); i++) {
        const config_setting_t *element = config_setting_get_elem(list, (unsigned)i);
        const char *name = config_setting_type(element) == CONFIG_TYPE_STRING ? config_setting_get_string(element) : "";
        uint32_t count = ndsim_build_members(shape->reader, element, name);

        for (uint32_t k = 0; k < count; k++) {
            shape->members = ndsim_grown(shape->members, shape->numbers.nodes, sizeof(*shape->members));
            shape->members[shape->numbers.nodes++] = ndsim_build_member(shape->reader, name, k);
        }
        if (count == 0 || shape->numbers.nodes > NDSIM_TOPOLOGY_PARTS_MAX) {
            return ndsim_reader_wrong(shape->reader, element, "more than %u members", NDSIM_TOPOLOGY_PARTS_MAX);
        }
    }
    return shape->numbers.nodes != 0 || ndsim_reader_wrong(shape->reader, list, "a shape without members");
}

static bool read_cable(struct ndsim_reader *reader, const config_setting_t *group, struct ndsim_cable *cable)
{
    if (group == NULL) {
        ndsim_way_defaults(&cable->ways[0]);
        cable->ways[1] = cable->ways[0];
        cable->capture = NULL;
        return true;
    }
    return ndsim_cable_read(reader, group, NULL, 0, cable) &&
           (cable->capture == NULL || ndsim_reader_wrong(reader, group, "capture belongs to one port or link"));
}

static bool read_parts(struct shape *shape, const config_setting_t *link, const config_setting_t *trunk,
                       const config_setting_t *sw, int kind)
{
    if ((trunk != NULL && kind != RING && kind != LEAF_SPINE) || (sw != NULL && kind == PAIR) ||
        (shape->switches != 0 && kind != RING) ||
        ((shape->leaves | shape->numbers.planes) != 0 && kind != LEAF_SPINE)) {
        return ndsim_reader_wrong(shape->reader, shape->group, "a %s takes no %s", kinds[kind],
                                  kind == PAIR   ? "trunk, switch, switches, leaves and planes"
                                  : kind == STAR ? "trunk, switches, leaves and planes"
                                  : kind == RING ? "leaves and planes"
                                                 : "switches");
    }
    if (sw == NULL) {
        shape->sw = (struct ndsim_topology_switch){.line = config_setting_source_line(shape->group),
                                                   .config.frame_overhead = 24};
    } else if (!ndsim_switch_read(shape->reader, sw, NULL, 0, &shape->sw)) {
        return false;
    }
    shape->numbers.kind = (enum ndsim_shape_kind)kind;
    shape->numbers.switches = kind == LEAF_SPINE ? shape->leaves : shape->switches;
    return read_cable(shape->reader, link, &shape->link) && read_cable(shape->reader, trunk, &shape->trunk);
}

bool ndsim_shape_read(struct ndsim_reader *reader, const config_setting_t *group)
{
    struct groups {
        const config_setting_t *members;
        const config_setting_t *link;
        const config_setting_t *trunk;
        const config_setting_t *sw;
        int kind;
    } groups = {.kind = -1};
    static const struct ndsim_key keys[] = {
        {"name", ndsim_take_name, offsetof(struct shape, name)},
        {"switches", ndsim_take_u32, offsetof(struct shape, switches)},
        {"leaves", ndsim_take_u32, offsetof(struct shape, leaves)},
        {"planes", ndsim_take_u32, offsetof(struct shape, numbers.planes)},
    };
    static const struct ndsim_key group_keys[] = {
        {"kind", take_kind, offsetof(struct groups, kind)},
        {"members", ndsim_take_group, offsetof(struct groups, members)},
        {"link", ndsim_take_group, offsetof(struct groups, link)},
        {"trunk", ndsim_take_group, offsetof(struct groups, trunk)},
        {"switch", ndsim_take_group, offsetof(struct groups, sw)},
    };
    struct shape shape = {.reader = reader, .group = group};
    struct ndsim_keys tables[] = {NDSIM_KEYS(keys, &shape), NDSIM_KEYS(group_keys, &groups)};
    bool built;

    if (!ndsim_reader_group(reader, group, tables, 2)) {
        return false;
    }
    if (groups.kind < 0 || (shape.name == NULL && groups.kind != PAIR)) {
        return ndsim_reader_wrong(reader, group, "a shape needs a kind and, but for pairs, a name");
    }
    built =
        read_parts(&shape, groups.link, groups.trunk, groups.sw, groups.kind) && gather_members(&shape, groups.members);
    if (built && groups.kind == RING && shape.numbers.switches == 0) {
        shape.numbers.switches = shape.numbers.nodes;
    }
    built = built && check_numbers(&shape) && build(&shape);
    free(shape.members);
    return built;
}
