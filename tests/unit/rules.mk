# SPDX-License-Identifier: BSD-3-Clause
# Unit tests: one program per module of the firmware, looking inside where the registers do not show enough.

UNIT_NAMES := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
UNIT_HELPERS := $(O)/tests/unit/unit.o $(O)/tests/unit/reference.o
UNIT_TESTS := $(UNIT_NAMES:%=$(O)/tests/unit/%)

SOURCES += $(wildcard tests/unit/*.c)
INCLUDES_ALL += -Itests/unit -Itests/golden

$(O)/tests/unit/%.o: tests/unit/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware -Ifirmware/include -Itests/lib -Itests/golden -Itests/unit -Isim $(PLATFORM_INCLUDES) -c $< -o $@

$(UNIT_TESTS): %: %.o $(UNIT_HELPERS) $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka -lm

# Tenants need cryptography; the others do without.
$(filter $(O)/tests/unit/test_tenant%,$(UNIT_TESTS)): $(O)/tests/unit/tenant.o $(O)/sim/ndcrypto.o

.SECONDARY: $(UNIT_TESTS:%=%.o)

-include $(wildcard $(O)/tests/unit/*.d)

CHECKS += $(UNIT_TESTS) tests/unit/test_image.sh
tests/unit/test_image.sh: $(O)/firmware/netdam-fw.so
