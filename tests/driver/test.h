/* SPDX-License-Identifier: BSD-3-Clause */
/* cmocka with the headers it needs before it. */
#ifndef NETDAM_TEST_H
#define NETDAM_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
