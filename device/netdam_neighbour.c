/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Static link-layer addresses: the property, and the commands by which the firmware is told of them after each start.
 */
#include "qemu/osdep.h"
#include <arpa/inet.h>
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "netdam/admin.h"
#include "netdam_device.h"

/* NEIGHBOUR_SET's arguments: address (two), family, MAC. */
struct NetdamNeighbour {
    uint64_t arguments[4];
};

static bool netdam_neighbour_mac(const char *text, uint64_t *mac)
{
    unsigned byte[6];
    int end = 0;
    int i;

    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5], &end) !=
            6 ||
        text[end] != '\0') {
        return false;
    }
    *mac = 0;
    for (i = 0; i < 6; i++) {
        *mac = *mac << 8 | byte[i];
    }
    return true;
}

/* ADDRESS=MAC. Whether such a neighbour can be is the firmware's business. */
static bool netdam_neighbour_parse(const char *text, NetdamNeighbour *neighbour)
{
    const char *equals = strchr(text, '=');
    g_autofree char *host = equals ? g_strndup(text, equals - text) : NULL;
    uint8_t address[16];

    if (!host || !netdam_neighbour_mac(equals + 1, &neighbour->arguments[3])) {
        return false;
    }
    if (inet_pton(AF_INET, host, address) == 1) {
        neighbour->arguments[0] = ldl_be_p(address) & UINT32_MAX;
        neighbour->arguments[1] = 0;
        neighbour->arguments[2] = 4;
        return true;
    }
    if (inet_pton(AF_INET6, host, address) == 1) {
        neighbour->arguments[0] = ldq_be_p(address);
        neighbour->arguments[1] = ldq_be_p(address + 8);
        neighbour->arguments[2] = 6;
        return true;
    }
    return false;
}

bool netdam_neighbour_fill(NetdamState *s, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(s->neighbours ?: "", ";", -1);
    unsigned i;

    s->neighbour_list = g_renew(NetdamNeighbour, s->neighbour_list, g_strv_length(parts) + 1);
    s->neighbour_count = 0;
    for (i = 0; parts[i]; i++) {
        if (!netdam_neighbour_parse(parts[i], &s->neighbour_list[s->neighbour_count])) {
            error_setg(errp, "netdam: neighbours: '%s' is not ADDRESS=MAC, such as 10.0.0.2=02:00:00:00:00:02",
                       parts[i]);
            return false;
        }
        s->neighbour_count++;
    }
    return true;
}

bool netdam_neighbour_apply(NetdamState *s, Error **errp)
{
    const struct netdam_fw_ops *ops = s->image.ops;
    uint64_t now = netdam_run_now(s);
    bool good = true;
    unsigned i, j;

    for (i = 0; i < s->neighbour_count && good; i++) {
        for (j = 0; j < ARRAY_SIZE(s->neighbour_list[i].arguments); j++) {
            ops->register_write(s->image.state, NETDAM_REG_ADMIN_ARG0 + 8 * j, 8, s->neighbour_list[i].arguments[j],
                                now);
        }
        ops->register_write(s->image.state, NETDAM_REG_ADMIN_COMMAND, 4, NETDAM_ADMIN_NEIGHBOUR_SET, now);
        good = ops->register_read(s->image.state, NETDAM_REG_ADMIN_STATUS, 4) == NETDAM_ADMIN_STATUS_OK;
    }
    /* The guest finds the arguments as after any reset. */
    for (j = 0; s->neighbour_count > 0 && j < ARRAY_SIZE(s->neighbour_list[0].arguments); j++) {
        ops->register_write(s->image.state, NETDAM_REG_ADMIN_ARG0 + 8 * j, 8, 0, now);
    }
    if (!good) {
        error_setg(errp, "netdam: neighbours: the firmware refuses number %u of '%s'", i, s->neighbours);
    }
    return good;
}
