#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Faults put in on purpose: each must be noticed.
exec "${0%/*}/property" --self-test
