/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams by name, for netdam-mem --trace. */
#ifndef NETDAM_TOOLS_DECODE_H
#define NETDAM_TOOLS_DECODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Describes one datagram, from the NetDAM header on, in one line without line end. Anything may be in it: what the wire
 * format does not allow is described as such. `line` is always terminated.
 */
void describe_datagram(const uint8_t *datagram, size_t bytes, char *line, size_t line_bytes);

#endif
