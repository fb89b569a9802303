# SPDX-License-Identifier: BSD-3-Clause
# The front door: every command a person types. Each folder brings its rules.mk; everything built lands under build/.

.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash

BUILD := build
SAN ?=
O ?= $(BUILD)$(if $(SAN),/san)
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang
PYTHON ?= /usr/bin/python3
Q := $(if $(V),,@)

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wundef -Wvla \
            $(if $(WERROR),-Werror)
OPT ?= -O2 -g
CFLAGS_ALL = -std=c11 $(OPT) $(WARNINGS) -fvisibility=hidden -fno-strict-aliasing -ffp-contract=off -MMD -MP \
             $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) $(CFLAGS)
LDFLAGS_ALL = $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

CHECKS :=
SLOW_TESTS :=
LONE_TESTS :=
CHECK_FILES :=
SOURCES :=

include $(wildcard firmware/rules.mk sim/rules.mk host-driver/rules.mk device/rules.mk docs/rules.mk tests/rules.mk)

.PHONY: all setup check test lint format compdb clean help
all: $(ALL) ## firmware, soft device, node, library, tools

setup: ## install Debian packages, build QEMU once (both cached)
	$(Q)bash .ci/setup
	$(Q)bash device/qemu/build.sh

# As many test programs at a time as there are processors, each of which then works with one (JOBS=1). What a program said
# goes to the log in one piece: prove keeps it until the end when its own output is no terminal.
JOBS ?= $(shell nproc)
PROVE := prove --timer --merge -v -e ''
PROVE_TOGETHER = JOBS=1 $(PROVE) -j$(JOBS)
TEST_ENVIRONMENT = export O='$(O)' CMOCKA_MESSAGE_OUTPUT=TAP PYTHONDONTWRITEBYTECODE=1
BRIEFLY := grep -vE '^(ok [0-9]|\#|1\.\.|TAP version)'

check: $(CHECKS) $(CHECK_FILES) ## the quick tests: seconds, no QEMU, no root (JOBS=N: so many programs at a time)
	$(Q)mkdir -p $(O) && $(TEST_ENVIRONMENT); set -o pipefail; \
	  $(PROVE_TOGETHER) $(CHECKS) 2>&1 | tee $(O)/check.log | $(BRIEFLY)

test: setup ## all tests: the quick ones, the model, sanitizers, fuzzers, QEMU, two guests
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) test-programs
	$(Q)$(MAKE) --no-print-directory test-all

.PHONY: test-programs test-all
test-programs: $(CHECKS) $(CHECK_FILES) $(SLOW_TESTS) $(LONE_TESTS)
# The slow ones begin, so that no processor waits for the last of them. What needs the machine for itself comes afterwards.
test-all: test-programs
	$(Q)mkdir -p $(O) && $(TEST_ENVIRONMENT); set -o pipefail; \
	  { $(PROVE_TOGETHER) $(SLOW_TESTS) $(CHECKS); together=$$?; $(PROVE) $(LONE_TESTS) && [ $$together = 0 ]; } 2>&1 | \
	  tee $(O)/test.log | $(BRIEFLY)

LINTABLE = $(filter %.c,$(SOURCES))
lint: ## clang-tidy and cppcheck over everything but the QEMU device
	$(Q)printf '%s\n' $(LINTABLE) | xargs -P $$(nproc) -n 4 sh -c 'status=0; for file; do \
	  clang-tidy --quiet "$$file" -- -std=gnu11 -D_GNU_SOURCE -Wno-macro-redefined $(INCLUDES_ALL) $(LINT_INCLUDES) 2>/dev/null || status=1; done; exit $$status' lint
	$(Q)cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability --inline-suppr \
	  --suppress=missingIncludeSystem $(INCLUDES_ALL) $(LINTABLE)

format: ## clang-format in place
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

compdb: ## compile_commands.json for clangd
	$(Q)bear --output $(O)/compile_commands.json -- $(MAKE) --always-make all

clean: ## remove what was compiled here; keeps QEMU, kernel and caches
	$(Q)rm -rf $(O)/firmware $(O)/sim $(O)/host-driver $(O)/tests $(O)/docs $(BUILD)/san

help: ## this list
	$(Q)awk -F ':.*## ' '/^[a-zA-Z_-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
