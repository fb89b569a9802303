# SPDX-License-Identifier: BSD-3-Clause
# Tests of virtual time: loop, link, switch with exact times, and whole runs that one seed repeats.

VT_NAMES := $(patsubst tests/vt/%.c,%,$(wildcard tests/vt/test_*.c))
VT_TESTS := $(VT_NAMES:%=$(O)/tests/vt/%)

SOURCES += $(VT_NAMES:%=tests/vt/%.c)

$(O)/tests/vt/%.o: tests/vt/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware/include -Isim -Itests/lib -Itests/vt -c $< -o $@

$(VT_TESTS): %: %.o $(O)/sim/libndvt.a $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

.SECONDARY: $(VT_TESTS:%=%.o)

-include $(VT_TESTS:%=%.d)

CHECKS += $(VT_TESTS) tests/vt/symbols_test.sh
tests/vt/symbols_test.sh: $(O)/sim/libndvt.a
