/* SPDX-License-Identifier: BSD-3-Clause */
/* The algebra table as claims: each is tried on edge values and random ones, bit for bit. */
#ifndef ORACLE_ALGEBRA_H
#define ORACLE_ALGEBRA_H

#include <stdbool.h>
#include <stdint.h>

/* Prints TAP for the table as it is, and for the table with each flag of each row flipped. Returns false on failure. */
bool algebra_run(uint64_t seed);

#endif
