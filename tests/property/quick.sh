#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A short run of the property test from a fixed seed.
exec "${0%/*}/property" --seed 1 --packets 200000
