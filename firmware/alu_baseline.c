/* SPDX-License-Identifier: BSD-3-Clause */
/* The ALU with the instructions that every CPU of the architecture has. */
#include "ndfw.h"

#include "alu.h"

#define ALU_LEVEL baseline
#include "alu_kernels.h"
