# SPDX-License-Identifier: BSD-3-Clause
# Tests of the tools that watch a device.

TOOLS_TESTED := netdam-stat netdam-regs

tests/tools/test_watch.py: $(TOOLS_TESTED:%=$(O)/host-driver/%) $(O)/host-driver/netdam-mem \
    $(O)/sim/netdam-node

CHECKS += tests/tools/test_watch.py
