/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads "ADDR:PORT". */
#include "address.h"

#include <arpa/inet.h>
#include <string.h>

bool ndsim_address_parse(const char *text, struct sockaddr_in *address)
{
    const char *colon = strchr(text, ':');
    char host[INET_ADDRSTRLEN];
    unsigned port = 0;
    const char *digit;

    if (colon == NULL || (size_t)(colon - text) >= sizeof(host) || colon[1] == 0) {
        return false;
    }
    for (digit = colon + 1; *digit != 0; digit++) {
        if (*digit < '0' || *digit > '9') {
            return false;
        }
        port = port * 10 + (unsigned)(*digit - '0');
        if (port > 65535) {
            return false;
        }
    }
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = 0;
    memset(address, 0, sizeof(*address));
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &address->sin_addr) == 1;
}

bool ndsim_address_is_host(const struct sockaddr_in *address)
{
    uint32_t ipv4 = ntohl(address->sin_addr.s_addr);

    return ipv4 != INADDR_ANY && ipv4 != INADDR_BROADCAST && !IN_MULTICAST(ipv4);
}
