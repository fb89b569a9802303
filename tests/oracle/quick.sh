#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A short run of the oracle from a fixed seed.
exec "${0%/*}/oracle" --directory "${O:-build}/oracle" --seed 20036 --operations 60000
