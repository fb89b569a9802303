/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is and how much went where, as JSON. */
#include "control.h"

#include <inttypes.h>

static const char *const port_types[] = {"memif", "tap", "packet", "pcap", "pmd"};

static const char *end_name(const struct ndfab_fabric *fabric, const struct ndsim_topology_end *end)
{
    return end->kind == NDSIM_END_PORT ? fabric->topology.ports[end->index].name
                                       : fabric->topology.switches[end->index].name;
}

json_t *ndfab_report_list(const struct ndfab_fabric *fabric)
{
    const struct ndsim_topology *topology = &fabric->topology;
    json_t *ports = json_array(), *switches = json_array(), *links = json_array();

    for (uint32_t i = 0; i < topology->port_count; i++) {
        const struct ndsim_topology_port *spec = &topology->ports[i];
        json_t *port = json_pack("{s:s,s:s,s:b,s:b}", "name", spec->name, "type", port_types[spec->type], "node",
                                 (int)(spec->node != UINT32_MAX), "up", (int)fabric->ports[i].up);

        if (spec->path != NULL) {
            json_object_set_new(port, "path", json_string(spec->path));
        }
        if (spec->interface != NULL) {
            json_object_set_new(port, "interface", json_string(spec->interface));
        }
        json_array_append_new(ports, port);
    }
    for (uint32_t i = 0; i < topology->switch_count; i++) {
        json_array_append_new(switches, json_pack("{s:s,s:i}", "name", topology->switches[i].name, "ports",
                                                  (int)topology->switches[i].config.ports));
    }
    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct ndsim_topology_link *link = &topology->links[i];

        json_array_append_new(links,
                              json_pack("{s:s,s:s,s:s}", "name", link->name, "from", end_name(fabric, &link->ends[0]),
                                        "to", end_name(fabric, &link->ends[1])));
    }
    return json_pack("{s:b,s:I,s:o,s:o,s:o}", "ok", 1, "seed", (json_int_t)topology->seed, "ports", ports, "switches",
                     switches, "links", links);
}

/* Sums over the whole fabric: what came in or was doubled has gone out, is lost, or is under way. */
struct sums {
    uint64_t in;
    uint64_t copies;
    uint64_t out;
    uint64_t dropped;
    uint64_t under_way;
};

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *report_port(const struct ndfab_port *port, struct sums *sums)
{
    const struct ndfab_port_counts *counts = &port->counts;

    sums->in += counts->in_frames;
    sums->out += counts->out_frames;
    sums->dropped += counts->out_down + counts->out_full;
    sums->under_way += port->out_count;
    return json_pack("{s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:{s:o,s:o},s:o,s:o,s:o}", "name", port->spec->name, "up",
                     (int)port->up, "in_frames", count(counts->in_frames), "in_bytes", count(counts->in_bytes),
                     "in_bad", count(counts->in_bad), "out_frames", count(counts->out_frames), "out_bytes",
                     count(counts->out_bytes), "dropped", "down", count(counts->out_down), "full",
                     count(counts->out_full), "queued", count(port->out_count), "stations", count(port->station_count),
                     "stations_refused", count(counts->stations_refused));
}

static json_t *report_way(const struct ndfab_fabric *fabric, const struct ndfab_way *way, struct sums *sums)
{
    const struct ndsim_link *link = &way->link;
    const uint64_t *counts = link->counts;
    uint64_t now_ns = fabric->loop.now_ns;

    sums->copies += counts[NDSIM_LINK_DOUBLED];
    sums->dropped +=
        counts[NDSIM_LINK_TAIL_DROPS] + counts[NDSIM_LINK_DOWN_DROPS] + counts[NDSIM_LINK_DROPS] + way->lost_copies;
    sums->under_way += way->in_flight;
    return json_pack("{s:s,s:s,s:s,s:b,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o},s:o,s:o,s:o,s:o,s:o}", "link",
                     way->spec->name, "from", end_name(fabric, &way->spec->ends[way->index % 2]), "to",
                     end_name(fabric, &way->to), "up", (int)ndsim_link_is_up(link, now_ns), "frames",
                     count(counts[NDSIM_LINK_FRAMES]), "bytes", count(counts[NDSIM_LINK_BYTES]), "delivered",
                     count(way->arrived), "in_flight", count(way->in_flight), "dropped", "queue",
                     count(counts[NDSIM_LINK_TAIL_DROPS]), "down", count(counts[NDSIM_LINK_DOWN_DROPS]), "fault",
                     count(counts[NDSIM_LINK_DROPS]), "memory", count(way->lost_copies), "duplicated",
                     count(counts[NDSIM_LINK_DOUBLED]), "reordered", count(counts[NDSIM_LINK_REORDERED]), "corrupted",
                     count(counts[NDSIM_LINK_CORRUPTED]), "spikes", count(counts[NDSIM_LINK_SPIKES]), "queued_bytes",
                     count(ndsim_link_backlog(link, now_ns)));
}

static json_t *report_switch(const struct ndfab_switch *at, uint64_t now_ns, struct sums *sums)
{
    const uint64_t *counts = at->sw.counts;
    json_t *queued = json_array();

    for (uint32_t port = 0; port < at->sw.config.ports; port++) {
        json_array_append_new(queued, count(ndsim_switch_queued(&at->sw, port, now_ns)));
    }
    sums->copies += at->copies;
    sums->dropped += counts[NDSIM_SWITCH_QUEUE_DROPS] + counts[NDSIM_SWITCH_BUFFER_DROPS] +
                     counts[NDSIM_SWITCH_NO_WAY] + at->lost_copies;
    sums->under_way += at->waiting;
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o},s:o,s:o,s:o}", "name", at->spec->name, "frames",
                     count(counts[NDSIM_SWITCH_FRAMES]), "forwarded", count(counts[NDSIM_SWITCH_FORWARDED]), "flooded",
                     count(counts[NDSIM_SWITCH_FLOODED]), "copies", count(at->copies), "dropped", "queue",
                     count(counts[NDSIM_SWITCH_QUEUE_DROPS]), "buffer", count(counts[NDSIM_SWITCH_BUFFER_DROPS]),
                     "no_way", count(counts[NDSIM_SWITCH_NO_WAY]), "memory", count(at->lost_copies), "waiting",
                     count(at->waiting), "stations", count(at->sw.entry_count), "queued_bytes", queued);
}

/* Part for part: what each link was given is accounted for. */
static bool ways_balance(const struct ndfab_fabric *fabric)
{
    uint64_t in_flight = 0;
    bool balanced = true;

    for (uint32_t i = 0; i < fabric->topology.link_count * 2; i++) {
        const struct ndfab_way *way = &fabric->ways[i];
        const uint64_t *counts = way->link.counts;

        balanced &= counts[NDSIM_LINK_FRAMES] + counts[NDSIM_LINK_DOUBLED] ==
                    way->arrived + way->in_flight + way->lost_copies + counts[NDSIM_LINK_TAIL_DROPS] +
                        counts[NDSIM_LINK_DOWN_DROPS] + counts[NDSIM_LINK_DROPS];
        in_flight += way->in_flight;
    }
    return balanced && in_flight == ndfab_carry_pending(fabric);
}

json_t *ndfab_report_counters(const struct ndfab_fabric *fabric)
{
    json_t *ports = json_array(), *ways = json_array(), *switches = json_array();
    uint64_t now_ns = fabric->loop.now_ns;
    struct sums sums = {0};
    bool balanced;

    for (uint32_t i = 0; i < fabric->topology.port_count; i++) {
        json_array_append_new(ports, report_port(&fabric->ports[i], &sums));
    }
    for (uint32_t i = 0; i < fabric->topology.link_count * 2; i++) {
        json_array_append_new(ways, report_way(fabric, &fabric->ways[i], &sums));
    }
    for (uint32_t i = 0; i < fabric->topology.switch_count; i++) {
        json_array_append_new(switches, report_switch(&fabric->switches[i], now_ns, &sums));
    }
    balanced = sums.in + sums.copies == sums.out + sums.dropped + sums.under_way && ways_balance(fabric);
    return json_pack("{s:b,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o,s:o,s:b}}", "ok", 1, "uptime_ns",
                     count(now_ns - fabric->start_ns), "ports", ports, "links", ways, "switches", switches, "totals",
                     "in", count(sums.in), "copies", count(sums.copies), "out", count(sums.out), "dropped",
                     count(sums.dropped), "under_way", count(sums.under_way), "balanced", (int)balanced);
}
