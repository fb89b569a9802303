#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A longer run of the oracle from a fixed seed; NETDAM_SEED chooses another.
exec "${0%/*}/oracle" --directory "${O:-build}/oracle" --seed "${NETDAM_SEED:-1}" --operations 1200000
