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
CHECK_FILES :=
SOURCES :=

include $(wildcard firmware/rules.mk sim/rules.mk host-driver/rules.mk device/rules.mk docs/rules.mk tests/rules.mk)

.PHONY: all setup check test lint format compdb clean help
all: $(ALL) ## firmware, soft device, node, library, tools

setup: ## install Debian packages, build QEMU once (both cached)
	$(Q)bash .ci/setup
	$(Q)bash device/qemu/build.sh

check: $(CHECKS) $(CHECK_FILES) ## the quick tests: seconds, no QEMU, no root
	$(Q)mkdir -p $(O) && export O='$(O)' CMOCKA_MESSAGE_OUTPUT=TAP PYTHONDONTWRITEBYTECODE=1; \
	  set -o pipefail; prove --timer --merge -v -e '' $(CHECKS) 2>&1 | tee $(O)/check.log | grep -vE '^(ok|#|1\.\.|TAP version)'

test: setup ## all tests: the quick ones, the model, sanitizers, fuzzers, QEMU, two guests
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) test-programs
	$(Q)$(MAKE) --no-print-directory test-all

.PHONY: test-programs test-all
test-programs: $(CHECKS) $(CHECK_FILES) $(SLOW_TESTS)
test-all: test-programs
	$(Q)mkdir -p $(O) && export O='$(O)' CMOCKA_MESSAGE_OUTPUT=TAP PYTHONDONTWRITEBYTECODE=1; \
	  set -o pipefail; prove --timer --merge -v -e '' $(CHECKS) $(SLOW_TESTS) 2>&1 | tee $(O)/test.log | grep -vE '^(ok|#|1\.\.|TAP version)'

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
