# SPDX-License-Identifier: BSD-3-Clause
# The tests: each folder brings its own.

include $(sort $(wildcard tests/*/rules.mk))
