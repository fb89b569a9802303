# SPDX-License-Identifier: BSD-3-Clause
# Verifies the Spin models of the lane protocol.

.PHONY: check-model
check-model: ## verify the protocol models (Spin) and show that broken variants fail
	$(Q)BUILD='$(O)' prove -v -e '' tests/model/check-model.sh

SLOW_TESTS += tests/model/check-model.sh
