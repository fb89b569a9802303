# SPDX-License-Identifier: BSD-3-Clause
# What of the firmware the quick tests that link it reach: built once more, unoptimized and counted.

COVER_O = $(O)/cover
COVER_PROGRAMS = $(patsubst $(O)/%,$(COVER_O)/%,$(UNIT_TESTS) $(GOLDEN_TEST) $(PROPERTY))

.PHONY: cover
cover: ## lines and branches of firmware/ that the unit, golden and property tests reach, and the gaps
	$(Q)$(MAKE) --no-print-directory O='$(COVER_O)' SAN= OPT='-O1 -g' LDFLAGS=--coverage \
	  FW_CFLAGS='-std=c11 -O0 -g --coverage -ffreestanding -fbuiltin -fno-strict-aliasing -ffp-contract=off -MMD -MP $(FW_INCLUDES)' \
	  $(COVER_PROGRAMS)
	$(Q)$(PYTHON) tests/cover/cover.py $(COVER_O) $(COVER_PROGRAMS)
