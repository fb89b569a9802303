# SPDX-License-Identifier: BSD-3-Clause
# Firmware that is wrong in one place at a time, and who notices. Minutes; not part of `make test`.

MUTANTS_O = $(O)/mutants
MUTANTS_PROGRAMS = $(UNIT_TESTS) $(GOLDEN_TEST) $(PROPERTY)

CHECKS += tests/mutants/texts_test.py

.PHONY: mutants
mutants: ## single mutations of the firmware against unit, golden and property tests; 90% must be noticed
	$(Q)$(MAKE) --no-print-directory O='$(MUTANTS_O)' SAN= OPT='-O1' FW_CFLAGS='-std=c11 -O1 $(MUTANTS_FLAGS) -MMD -MP $(FW_INCLUDES)' \
	  $(MUTANTS_PROGRAMS:$(O)/%=$(MUTANTS_O)/%)
	$(Q)CC='$(CC)' $(PYTHON) tests/mutants/mutants.py $(MUTANTS_O) $(ONLY)

MUTANTS_FLAGS := -w -fPIC -ffreestanding -fbuiltin -fno-strict-aliasing -ffp-contract=off
