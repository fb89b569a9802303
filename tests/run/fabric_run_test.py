#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The run through netdam-fabric over links with every fault: each check of its result is as exact as without, in TAP."""

import os
import sys

import run_test

if __name__ == "__main__":
    sys.exit(run_test.main("--topology", os.path.join(run_test.HERE, "faulty.conf"), also=("nodes_ok", "fabric_balanced")))
