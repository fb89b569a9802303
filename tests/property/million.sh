#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The property test at its full length; NETDAM_SEED chooses another seed than the fixed one.
exec "${0%/*}/property" --seed "${NETDAM_SEED:-20036}" --packets 1000000
