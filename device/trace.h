/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace functions that QEMU's build generates from trace-events. */
#include "trace/trace-hw_netdam.h"
