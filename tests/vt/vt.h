/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of virtual time share: cmocka, and the models. */
#ifndef VT_H
#define VT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vt/net.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
