/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is where: the first frame from a MAC address tells all switches the ways to its port. A port has a share of the
 * table; an address beyond it is not learned, so that a guest that invents addresses cannot push out others. Frames to
 * it are flooded.
 */
#include "fabric.h"

#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

/* A hash function of DPDK's reads its key by words. */
struct station {
    _Alignas(8) uint8_t mac[6];
};

static struct station station_of(const uint8_t *mac)
{
    struct station station = {0};

    memcpy(station.mac, mac, sizeof(station.mac));
    return station;
}

static void route(struct ndfab_fabric *fabric, const uint8_t *mac, uint32_t port)
{
    const uint32_t *masks = &fabric->masks[(size_t)port * fabric->topology.switch_count];

    for (uint32_t i = 0; i < fabric->topology.switch_count; i++) {
        if (masks[i] != 0) {
            ndsim_switch_route(&fabric->switches[i].sw, mac, masks[i]);
        }
    }
}

static bool add(struct ndfab_port *port, const struct station *station)
{
    if (rte_hash_add_key_data(port->fabric->stations, station, (void *)(uintptr_t)port->index) != 0) {
        return false;
    }
    port->station_count++;
    route(port->fabric, station->mac, port->index);
    return true;
}

bool ndfab_stations_open(struct ndfab_fabric *fabric)
{
    const struct ndsim_topology *topology = &fabric->topology;
    struct rte_hash_parameters parameters = {
        .name = "stations",
        .entries = NDFAB_STATIONS * 2,
        .key_len = sizeof(((struct station *)NULL)->mac),
        .hash_func = rte_jhash,
        .socket_id = SOCKET_ID_ANY,
    };

    fabric->stations = rte_hash_create(&parameters);
    fabric->masks = calloc((size_t)topology->port_count * topology->switch_count + 1, sizeof(*fabric->masks));
    fabric->trees = calloc((size_t)topology->switch_count * NDSIM_SWITCH_TREES_MAX + 1, sizeof(*fabric->trees));
    fabric->dead = calloc(topology->link_count + 1, sizeof(*fabric->dead));
    if (fabric->stations == NULL || fabric->masks == NULL || fabric->trees == NULL || fabric->dead == NULL) {
        fprintf(stderr, "netdam-fabric: not enough memory\n");
        return false;
    }
    fabric->station_limit = NDFAB_STATIONS / (topology->port_count + 1);
    ndfab_stations_reroute(fabric);
    for (uint32_t i = 0; i < topology->port_count; i++) {
        const struct station station = station_of(topology->ports[i].mac);

        if (topology->ports[i].has_mac && !add(&fabric->ports[i], &station)) {
            fprintf(stderr, "netdam-fabric: not enough memory\n");
            return false;
        }
    }
    return true;
}

void ndfab_stations_close(struct ndfab_fabric *fabric)
{
    rte_hash_free(fabric->stations);
    free(fabric->masks);
    free(fabric->trees);
    free(fabric->dead);
}

static bool is_pinned(const struct ndfab_port *port, const uint8_t *mac)
{
    return port->spec->has_mac && memcmp(port->spec->mac, mac, 6) == 0;
}

void ndfab_station_learn(struct ndfab_port *port, const uint8_t *mac)
{
    const struct station station = station_of(mac);
    struct ndfab_fabric *fabric = port->fabric;
    void *data;

    if ((mac[0] & 1) != 0) {
        return;
    }
    if (rte_hash_lookup_data(fabric->stations, &station, &data) >= 0) {
        struct ndfab_port *owner = &fabric->ports[(uintptr_t)data];

        if (owner != port) {
            if (is_pinned(owner, mac) || port->station_count >= fabric->station_limit) {
                port->counts.stations_refused++;
                return;
            }
            rte_hash_del_key(fabric->stations, &station);
            owner->station_count--;
            memset(owner->last_station, 0, sizeof(owner->last_station));
            add(port, &station);
        }
    } else if (port->station_count >= fabric->station_limit || !add(port, &station)) {
        port->counts.stations_refused++;
        return;
    }
    memcpy(port->last_station, mac, sizeof(port->last_station));
}

/* The switches' tables cannot forget one address: they are filled anew, with all that are known. */
static void refill(struct ndfab_fabric *fabric)
{
    const void *mac;
    uint32_t next = 0;
    void *data;

    for (uint32_t i = 0; i < fabric->topology.switch_count; i++) {
        memset(fabric->switches[i].sw.entries, 0, sizeof(fabric->switches[i].sw.entries));
        fabric->switches[i].sw.entry_count = 0;
    }
    while (rte_hash_iterate(fabric->stations, &mac, &data, &next) >= 0) {
        route(fabric, mac, (uint32_t)(uintptr_t)data);
    }
}

void ndfab_stations_reroute(struct ndfab_fabric *fabric)
{
    const struct ndsim_topology *topology = &fabric->topology;
    uint32_t tree_count;

    for (uint32_t i = 0; i < topology->port_count; i++) {
        ndsim_topology_ways(topology, fabric->dead, i, &fabric->masks[(size_t)i * topology->switch_count]);
    }
    tree_count = ndsim_topology_trees(topology, fabric->dead, fabric->trees);
    for (uint32_t i = 0; i < topology->switch_count; i++) {
        struct ndsim_switch *sw = &fabric->switches[i].sw;

        sw->tree_count = tree_count;
        for (uint32_t tree = 0; tree < tree_count; tree++) {
            sw->flood[tree] = fabric->trees[(size_t)tree * topology->switch_count + i];
        }
    }
    refill(fabric);
}

void ndfab_stations_forget(struct ndfab_port *port)
{
    struct ndfab_fabric *fabric = port->fabric;
    struct station gone[NDFAB_STATIONS];
    uint32_t count = 0, next = 0;
    const void *mac;
    void *data;

    if (port->station_count == (port->spec->has_mac ? 1u : 0u)) {
        return;
    }
    while (rte_hash_iterate(fabric->stations, &mac, &data, &next) >= 0) {
        if ((uintptr_t)data == port->index && !is_pinned(port, mac) && count < NDFAB_STATIONS) {
            gone[count++] = station_of(mac);
        }
    }
    while (count-- > 0) {
        rte_hash_del_key(fabric->stations, &gone[count]);
        port->station_count--;
    }
    memset(port->last_station, 0, sizeof(port->last_station));
    refill(fabric);
}
