/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads "ADDR:PORT". */
#ifndef NDSIM_ADDRESS_H
#define NDSIM_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

/* An IPv4 address in dotted form, a colon, a decimal port from 0 to 65535; nothing else, not even spaces. */
bool ndsim_address_parse(const char *text, struct sockaddr_in *address);

/* Whether one node can have it: neither nobody's nor everybody's nor a group's. */
bool ndsim_address_is_host(const struct sockaddr_in *address);

#endif
