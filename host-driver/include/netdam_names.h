/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of statuses, opcodes, types and counters; datagrams in words. */
#ifndef LIBNETDAM_NAMES_H
#define LIBNETDAM_NAMES_H

#include "netdam_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * netdam_describe_datagram() - tell a NetDAM datagram by names, as a @tap has it
 * @datagram: @bytes of anything, from the NetDAM header on
 * @line: gets one line without line end, at most @line_bytes with the terminating zero, which it always has unless
 *        @line_bytes is 0. 240 bytes are enough. The wording is for people and may change.
 */
NETDAM_API void netdam_describe_datagram(const uint8_t *datagram, size_t bytes, char *line, size_t line_bytes);

/*
 * Names, from the lists of the specification: in capitals, as in "BAD_KEY"; NULL if the value is not defined. The
 * opposite direction ignores case and takes '-' for '_'; -ENOENT if there is no such name. Static memory.
 */
NETDAM_API const char *netdam_status_name(unsigned status);
NETDAM_API const char *netdam_status_text(unsigned status); /* a sentence */
NETDAM_API const char *netdam_op_name(unsigned opcode);
NETDAM_API const char *netdam_alu_name(unsigned operation);
NETDAM_API const char *netdam_type_name(unsigned type);
NETDAM_API const char *netdam_counter_name(unsigned counter);
NETDAM_API const char *netdam_counter_text(unsigned counter); /* a sentence */
NETDAM_API int netdam_op_by_name(const char *name);
NETDAM_API int netdam_alu_by_name(const char *name);
NETDAM_API int netdam_type_by_name(const char *name);
NETDAM_API int netdam_counter_by_name(const char *name);

#ifdef __cplusplus
}
#endif

#endif
