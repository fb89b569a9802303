# SPDX-License-Identifier: BSD-3-Clause
# The property test: a million packets in `make test`, ten million by `make stress`, a short run in `make check`.

PROPERTY_SOURCES := $(wildcard tests/property/*.c)
PROPERTY_OBJECTS := $(PROPERTY_SOURCES:%.c=$(O)/%.o)
PROPERTY := $(O)/tests/property/property
SEED ?= $(shell date +%s)

SOURCES += $(PROPERTY_SOURCES)

$(O)/tests/property/%.o: tests/property/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) $(NDTEST_INCLUDES) -c $< -o $@

# By path: tests/property/rules.mk may come before the variables of other folders.
$(PROPERTY): $(PROPERTY_OBJECTS) $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@

# prove runs programs without arguments: one script per kind of run.
$(O)/tests/property/%.t: tests/property/%.sh $(PROPERTY)
	$(Q)install -m 755 $< $@

CHECKS += $(O)/tests/property/quick.t
SLOW_TESTS += $(O)/tests/property/million.t $(O)/tests/property/self-test.t $(O)/tests/property/mutants.t

.PHONY: stress
stress: $(PROPERTY) ## property test, ten million packets from a new seed (SEED=N repeats)
	$(Q)$(PROPERTY) --seed $(SEED) --packets 10000000

-include $(PROPERTY_OBJECTS:.o=.d)
