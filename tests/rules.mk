# SPDX-License-Identifier: BSD-3-Clause
# The tests: each folder brings its own.

include $(sort $(wildcard tests/*/rules.mk))

# The compiled quick tests; with SAN, those with the sanitizers in.
PROGRAMS = $(filter $(O)/%,$(CHECKS))
.PHONY: programs
programs: $(PROGRAMS)
	$(Q)printf 'program: %s\n' $(PROGRAMS)

SLOW_TESTS += tests/sanitizers.sh
