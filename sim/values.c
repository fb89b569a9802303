/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads values as the command line and topology files write them. */
#include "values.h"
#include "netdam/admin.h"
#include "netdam/regs.h"
#include "netdam/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEX_DIGITS "0123456789abcdefABCDEF"

bool ndsim_number_parse(const char *text, uint64_t *value)
{
    bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = hex ? text + 2 : text;
    size_t length = strspn(digits, hex ? HEX_DIGITS : "0123456789");

    if (length == 0 || digits[length] != 0) {
        return false;
    }
    errno = 0;
    *value = strtoull(digits, NULL, hex ? 16 : 10);
    return errno == 0;
}

bool ndsim_key_parse(const char *text, uint64_t *key)
{
    return ndsim_number_parse(text, key) && *key != 0;
}

bool ndsim_tenant_parse(const char *text, struct ndsim_tenant *tenant)
{
    const char *key = strchr(text, ':');
    char half[17] = "";
    unsigned long long id;
    char *end;

    if (key == NULL || *text < '0' || *text > '9' || strspn(key + 1, HEX_DIGITS) != 32 || key[33] != ':') {
        return false;
    }
    id = strtoull(text, &end, 10);
    memcpy(half, key + 1, 16);
    tenant->key[0] = strtoull(half, NULL, 16);
    memcpy(half, key + 17, 16);
    tenant->key[1] = strtoull(half, NULL, 16);
    tenant->id = (uint32_t)id;
    tenant->mode = strcmp(key + 34, "encrypt") == 0        ? NETDAM_TENANT_MODE_ENCRYPT
                   : strcmp(key + 34, "authenticate") == 0 ? NETDAM_TENANT_MODE_AUTHENTICATE
                                                           : NETDAM_TENANT_MODE_NONE;
    return end == key && id != 0 && id <= UINT32_MAX && tenant->mode != NETDAM_TENANT_MODE_NONE;
}

bool ndsim_permissions_parse(const char *text, uint32_t *permissions)
{
    *permissions = 0;
    for (; *text != 0; text++) {
        uint32_t bit = *text == 'r'   ? NETDAM_PERMISSION_REMOTE_READ
                       : *text == 'w' ? NETDAM_PERMISSION_REMOTE_WRITE
                       : *text == 'a' ? NETDAM_PERMISSION_REMOTE_ALU
                                      : 0;

        if (bit == 0) {
            return false;
        }
        *permissions |= bit;
    }
    return *permissions != 0;
}

bool ndsim_mtu_parse(const char *text, uint32_t *mtu)
{
    uint64_t value;

    if (!ndsim_size_parse(text, &value) || value < NETDAM_MTU_MIN || value > NETDAM_MTU_MAX) {
        return false;
    }
    *mtu = (uint32_t)value;
    return true;
}

bool ndsim_network_parse(const char *text, struct netdam_soft_network *network)
{
    const char *slash = strchr(text, '/');
    char host[INET_ADDRSTRLEN];
    uint64_t prefix;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(host) || !ndsim_size_parse(slash + 1, &prefix) ||
        prefix > 32) {
        return false;
    }
    memcpy(host, text, (size_t)(slash - text));
    host[slash - text] = 0;
    network->prefix = (uint8_t)prefix;
    return inet_pton(AF_INET, host, network->address) == 1;
}

bool ndsim_pattern_parse(const char *text, struct ndsim_pattern *pattern)
{
    size_t digits = strspn(text, HEX_DIGITS);
    unsigned i;

    *pattern = (struct ndsim_pattern){.count = strcmp(text, "count") == 0};
    if (pattern->count) {
        return true;
    }
    if (digits == 0 || digits % 2 != 0 || digits / 2 > NDSIM_PATTERN_BYTES || text[digits] != 0) {
        return false;
    }
    pattern->bytes = (unsigned)(digits / 2);
    for (i = 0; i < pattern->bytes; i++) {
        const char pair[3] = {text[2 * i], text[2 * i + 1], 0};

        pattern->repeated[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}
