/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: one JSON object a line in each direction (docs/fabric.md, "Control"). */
#ifndef NDFAB_CONTROL_H
#define NDFAB_CONTROL_H

#include "fabric.h"

#include <jansson.h>
#include <poll.h>

#define NDFAB_CONTROL_CLIENTS 8u
#define NDFAB_CONTROL_FDS     (NDFAB_CONTROL_CLIENTS + 1)

struct ndfab_control;

/* Listens on `path`; a socket there that nobody listens to is replaced. NULL, with a message on stderr, if not. */
struct ndfab_control *ndfab_control_open(struct ndfab_fabric *fabric, const char *path);
/* Removes the socket. NULL is ignored. */
void ndfab_control_close(struct ndfab_control *control);

/* Answers what has come, without ever waiting. NULL is ignored. */
void ndfab_control_serve(struct ndfab_control *control);

/* What to sleep on until there is something to serve. Returns how many. */
unsigned ndfab_control_fds(const struct ndfab_control *control, struct pollfd fds[NDFAB_CONTROL_FDS]);

/* commands.c: the reply to one line, never NULL. */
json_t *ndfab_command(struct ndfab_fabric *fabric, const char *line, size_t bytes);

/* report.c */
json_t *ndfab_report_list(const struct ndfab_fabric *fabric);
json_t *ndfab_report_counters(const struct ndfab_fabric *fabric);

/* client.c: `netdam-fabric ctl PATH LINE...`; returns the program's exit status. */
int ndfab_client(int argc, char **argv);

#endif
