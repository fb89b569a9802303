# SPDX-License-Identifier: BSD-3-Clause
# The Wireshark dissector under tshark.

SLOW_TESTS += tests/dissector/dissector_test.py
tests/dissector/dissector_test.py: $(O)/sim/netdam-node $(O)/host-driver/netdam-mem $(wildcard docs/wireshark/*.lua)
