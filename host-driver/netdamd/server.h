/* SPDX-License-Identifier: BSD-3-Clause */
/* The broker's clients: connections, messages and what they may do. */
#ifndef NDBROKER_SERVER_H
#define NDBROKER_SERVER_H

#include "book.h"

/*
 * Serves clients at the listening socket until `stop_fd` becomes readable, then takes everything back from them. Never
 * waits for a client. Returns 0, -ENODEV (the device is gone), -ENOMEM, or what poll(2) says.
 */
int ndbroker_serve(struct ndbroker_book *book, struct netdam_device *device, unsigned clients_max, int listen_fd,
                   int stop_fd);

#endif
