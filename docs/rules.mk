# SPDX-License-Identifier: BSD-3-Clause
# The manual: tables generated from the specification headers, and the check that they and the prose agree with it.

DOCS_TABLES := $(O)/docs/gen/tables
SOURCES += docs/gen/tables.c

$(DOCS_TABLES): docs/gen/tables.c $(wildcard firmware/include/netdam/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ifirmware/include $< -o $@ $(LDFLAGS_ALL)

.PHONY: docs
docs: $(DOCS_TABLES) ## regenerate docs/tables from the specification headers
	$(Q)mkdir -p docs/tables
	$(Q)$(DOCS_TABLES) docs/tables

CHECKS += docs/check.py
CHECK_FILES += $(DOCS_TABLES)
