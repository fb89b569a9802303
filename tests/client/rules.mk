# SPDX-License-Identifier: BSD-3-Clause
# The independent client: written from docs/ alone, shares nothing with firmware and driver.

CHECKS += tests/client/test_golden.py tests/client/test_client.py tests/client/test_lanes.py \
	tests/client/test_modes.py tests/client/test_send.py tests/client/test_malformed.py \
	tests/client/test_transaction.py tests/client/test_chains.py
# AES-GCM comes from python3-cryptography, which the quick tests do without.
SLOW_TESTS += tests/client/test_tenant.py
CHECK_FILES += $(O)/sim/netdam-node $(O)/host-driver/netdam_send_lat
