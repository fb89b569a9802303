# SPDX-License-Identifier: BSD-3-Clause
# gcc's -fanalyzer over everything that runs outside of QEMU; findings are mended or answered.

.PHONY: analyze
analyze: ## gcc -fanalyzer over firmware, driver, tools and soft device; unanswered findings fail
	$(Q)CC='$(CC)' $(PYTHON) tests/analyze/analyze.py $(FW_SOURCES) $(SIM_SOURCES) $(HOST_DRIVER_SOURCES) \
	  $(HOST_DRIVER_TOOL_SOURCES) $(NETDAMD_SOURCES)
