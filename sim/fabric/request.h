/* SPDX-License-Identifier: BSD-3-Clause */
/* The other side of a control socket: one request, one reply. */
#ifndef NDFAB_REQUEST_H
#define NDFAB_REQUEST_H

#include <jansson.h>

#define NDFAB_REPLY_MAX (4u << 20) /* bytes of a reply, with the end of its line */

/* Connects. -1, with errno set, if nobody listens. */
int ndfab_connect(const char *path);

/*
 * Sends a request, which is taken over, and waits for the reply. NULL, with errno set, if there is none: EAGAIN if it does
 * not come in time, because the fabric is stopped, or others hold all of its connections; EPROTO if what comes is not one
 * line with a JSON value in it; else the fabric has gone. After that the connection is of no further use.
 */
json_t *ndfab_ask(int fd, json_t *request);

/* Why there was no reply, by errno, right behind ndfab_ask(). */
const char *ndfab_ask_failure(void);

#endif
