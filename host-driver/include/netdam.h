/* SPDX-License-Identifier: BSD-3-Clause */
/* libnetdam: the user-space driver of the NetDAM card and of the soft device that replaces it on an ordinary socket. */
#ifndef NETDAM_H
#define NETDAM_H

#include "netdam_device.h"
#include "netdam_queue.h"
#include "netdam_blocking.h"
#include "netdam_transaction.h"
#include "netdam_chain.h"
#include "netdam_collective.h"
#include "netdam_raw.h"
#include "netdam_names.h"

#endif
