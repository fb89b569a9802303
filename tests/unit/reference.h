/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU once more, one element at a time, with arithmetic wider than the types, for comparison. */
#ifndef UNIT_REFERENCE_H
#define UNIT_REFERENCE_H

#include "netdam/isa.h"

/* True if `type` is NaN's kind of bits: all exponent bits set, mantissa not 0. */
bool reference_is_nan(unsigned type, uint64_t bits);
/* The one NaN that an operation yields. */
uint64_t reference_canonical_nan(unsigned type);
/* a op b for any combination that REDUCE defines. */
uint64_t reference(unsigned operation, unsigned type, uint64_t a, uint64_t b);

/* Fills `values` with a type's edge values; returns how many, at most REFERENCE_EDGES. */
#define REFERENCE_EDGES 40
unsigned reference_edges(unsigned type, uint64_t *values);

#endif
