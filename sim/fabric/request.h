/* SPDX-License-Identifier: BSD-3-Clause */
/* The other side of a control socket: one request, one reply. */
#ifndef NDFAB_REQUEST_H
#define NDFAB_REQUEST_H

#include <jansson.h>
#include <stdio.h>

/* Connects. NULL, with errno set, if nobody listens. */
FILE *ndfab_connect(const char *path);

/*
 * Sends a request, which is taken over, and waits for the reply. NULL if the fabric has gone, or answers no JSON; or, with
 * errno EAGAIN, if it does not answer in time: it is stopped, or others hold all of its connections.
 */
json_t *ndfab_ask(FILE *stream, json_t *request);

/* Why there was no reply, by errno, right behind ndfab_ask(). */
const char *ndfab_ask_failure(void);

#endif
