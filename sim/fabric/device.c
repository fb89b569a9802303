/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are devices of DPDK: the arguments of their drivers, and one queue each way. */
#include "device.h"

#include <errno.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define DESCRIPTORS 512u

static bool fail(const struct ndsim_topology_port *spec, const char *what, int error)
{
    fprintf(stderr, "netdam-fabric: port %s: %s%s%s\n", spec->name, what, error != 0 ? ": " : "",
            error != 0 ? strerror(error < 0 ? -error : error) : "");
    return false;
}

bool ndfab_device_clear(const struct ndsim_topology_port *spec)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    bool stale;
    int fd;

    if (stat(spec->path, &status) != 0) {
        return errno == ENOENT || fail(spec, spec->path, errno);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return fail(spec, spec->path, ENOTSOCK);
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail(spec, "socket", errno);
    }
    strcpy(address.sun_path, spec->path);
    stale = connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (!stale) {
        return fail(spec, spec->path, EADDRINUSE);
    }
    return unlink(spec->path) == 0 || fail(spec, spec->path, errno);
}

/* What DPDK takes apart at commas must not hold any. */
static bool is_plain(const char *text)
{
    return text == NULL || strpbrk(text, ",[]\"= ") == NULL;
}

/* What DPDK would say of this is not to be understood. */
static bool is_allowed(const struct ndsim_topology_port *spec)
{
    bool kernel = spec->type == NDSIM_PORT_TAP || spec->type == NDSIM_PORT_PACKET;
    int fd = kernel ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;

    if (fd >= 0) {
        close(fd);
    } else if (kernel && errno == EPERM) {
        return fail(spec, "tap and packet need root, or CAP_NET_ADMIN and CAP_NET_RAW", 0);
    }
    return true;
}

static bool describe(const struct ndsim_topology_port *spec, char *text, size_t room)
{
    static unsigned number;
    unsigned n = number++;
    char folder[256] = "";

    if (!is_plain(spec->path) || !is_plain(spec->read) || !is_plain(spec->write)) {
        return fail(spec, "DPDK's drivers take no path with commas, brackets, quotation marks, '=' or spaces", 0);
    }
    switch (spec->type) {
    case NDSIM_PORT_MEMIF:
        /* The driver takes only paths that begin at the root. */
        if (spec->path[0] != '/' && (getcwd(folder, sizeof(folder)) == NULL || !is_plain(folder))) {
            return fail(spec, "DPDK's drivers need a shorter or plainer name of this folder", 0);
        }
        snprintf(text, room, "net_memif%u,role=%s,id=%u,socket=%s%s%s,socket-abstract=no,rsize=11", n,
                 spec->role == NDSIM_MEMIF_SERVER ? "server" : "client", spec->id, folder,
                 spec->path[0] != '/' ? "/" : "", spec->path);
        return true;
    case NDSIM_PORT_TAP:
        snprintf(text, room, "net_tap%u,iface=%s", n, spec->interface);
        return true;
    case NDSIM_PORT_PACKET:
        snprintf(text, room, "net_af_packet%u,iface=%s,framesz=16384,blocksz=65536,framecnt=512", n, spec->interface);
        return if_nametoindex(spec->interface) != 0 || fail(spec, spec->interface, errno);
    case NDSIM_PORT_PCAP:
        snprintf(text, room, "net_pcap%u%s%s%s%s", n, spec->read != NULL ? ",rx_pcap=" : "",
                 spec->read != NULL ? spec->read : "", spec->write != NULL ? ",tx_pcap=" : "",
                 spec->write != NULL ? spec->write : "");
        return true;
    default:
        snprintf(text, room, "%s", spec->devargs);
        return true;
    }
}

static bool is_device(const uint16_t *devices, unsigned count, uint16_t device)
{
    for (unsigned i = 0; i < count; i++) {
        if (devices[i] == device) {
            return true;
        }
    }
    return false;
}

/* The device that was not there before. */
static bool probe(const struct ndsim_topology_port *spec, const char *arguments, uint16_t *device)
{
    uint16_t before[RTE_MAX_ETHPORTS];
    unsigned count = 0;
    uint16_t id;
    int error;

    RTE_ETH_FOREACH_DEV(id)
    {
        before[count++] = id;
    }
    error = rte_dev_probe(arguments);
    if (error != 0) {
        return fail(spec, arguments, error);
    }
    RTE_ETH_FOREACH_DEV(id)
    {
        if (!is_device(before, count, id)) {
            *device = id;
            return true;
        }
    }
    return fail(spec, "DPDK has made no port of this", 0);
}

bool ndfab_device_open(const struct ndsim_topology_port *spec, struct rte_mempool *pool, uint16_t *device)
{
    const struct rte_eth_conf configuration = {0};
    char arguments[512];
    int error;

    if (!is_allowed(spec) || !describe(spec, arguments, sizeof(arguments)) || !probe(spec, arguments, device)) {
        return false;
    }
    if ((error = rte_eth_dev_configure(*device, 1, 1, &configuration)) != 0 ||
        (error = rte_eth_rx_queue_setup(*device, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL, pool)) != 0 ||
        (error = rte_eth_tx_queue_setup(*device, 0, DESCRIPTORS, SOCKET_ID_ANY, NULL)) != 0 ||
        (error = rte_eth_dev_start(*device)) != 0) {
        rte_eth_dev_close(*device);
        return fail(spec, "cannot be started", error);
    }
    /* Not every driver has this, and those that have not show everything. */
    rte_eth_promiscuous_enable(*device);
    return true;
}

void ndfab_device_close(const struct ndsim_topology_port *spec, uint16_t device)
{
    rte_eth_dev_stop(device);
    rte_eth_dev_close(device);
    if (spec->type == NDSIM_PORT_MEMIF && spec->role == NDSIM_MEMIF_SERVER) {
        unlink(spec->path);
    }
}

bool ndfab_device_up(uint16_t device)
{
    struct rte_eth_link link;

    return rte_eth_link_get_nowait(device, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}
