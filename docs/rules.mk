# SPDX-License-Identifier: BSD-3-Clause
# The manual: tables generated from the specification headers, and the check that they and the prose agree with it.

DOCS_TABLES := $(O)/docs/gen/tables
DOCS_LUA := $(O)/docs/gen/lua
SOURCES += docs/gen/tables.c docs/gen/lua.c

$(DOCS_TABLES) $(DOCS_LUA): $(O)/docs/gen/%: docs/gen/%.c $(wildcard firmware/include/netdam/*.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ifirmware/include $< -o $@ $(LDFLAGS_ALL)

.PHONY: docs
docs: $(DOCS_TABLES) $(DOCS_LUA) ## regenerate docs/tables and the dissector's tables from the specification headers
	$(Q)mkdir -p docs/tables
	$(Q)$(DOCS_TABLES) docs/tables
	$(Q)$(DOCS_LUA) docs/wireshark/netdam_tables.lua

CHECKS += docs/check.py docs/wireshark/tables_test.sh
CHECK_FILES += $(DOCS_TABLES) $(DOCS_LUA)
