/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge of histories, judged. */
#ifndef ORACLE_SELFTEST_H
#define ORACLE_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

/* Prints TAP. Returns false on failure. */
bool selftest_run(uint64_t seed);

#endif
