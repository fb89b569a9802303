/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports that are devices of DPDK. */
#ifndef NDFAB_DEVICE_H
#define NDFAB_DEVICE_H

#include "topology.h"

#include <rte_mempool.h>

/* Creates and starts the device of a port. False, with a message on stderr, if it cannot be. */
bool ndfab_device_open(const struct ndsim_topology_port *spec, struct rte_mempool *pool, uint16_t *device);

/*
 * Makes room for a memif server's socket: DPDK's driver does not replace one that nobody listens to any more. False,
 * with a message, if somebody does.
 */
bool ndfab_device_clear(const struct ndsim_topology_port *spec);
void ndfab_device_close(const struct ndsim_topology_port *spec, uint16_t device);
bool ndfab_device_up(uint16_t device);

#endif
