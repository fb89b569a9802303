#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The algebra table as claims, and that each flag of each row matters.
exec "${0%/*}/oracle" --directory "${O:-build}/oracle" --algebra
