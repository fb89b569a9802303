# SPDX-License-Identifier: BSD-3-Clause
# The semilattice oracle: random programs on clusters in virtual time, and what was seen of every word of memory.

ORACLE_SOURCES := $(wildcard tests/oracle/*.c)
ORACLE_OBJECTS := $(ORACLE_SOURCES:%.c=$(O)/%.o)
ORACLE := $(O)/tests/oracle/oracle
OPERATIONS ?= 10000000

SOURCES += $(ORACLE_SOURCES)

$(O)/tests/oracle/%.o: tests/oracle/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware -Ifirmware/include -Isim -Itests/lib -Itests/unit -c $< -o $@

$(ORACLE): $(ORACLE_OBJECTS) $(O)/tests/unit/reference.o $(O)/tests/lib/libndtest.a $(O)/sim/libndvt.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -lm -o $@

# prove runs programs without arguments: one script per kind of run.
$(O)/tests/oracle/%.t: tests/oracle/%.sh $(ORACLE)
	$(Q)install -m 755 $< $@

CHECKS += $(O)/tests/oracle/quick.t $(O)/tests/oracle/algebra.t $(O)/tests/oracle/self-test.t
SLOW_TESTS += $(O)/tests/oracle/slice.t $(O)/tests/oracle/mutants.t

.PHONY: oracle
oracle: $(ORACLE) ## random programs against all that memory may hold, 10 million operations (OPERATIONS=N SEED=N)
	$(Q)$(ORACLE) --seed $(SEED) --operations $(OPERATIONS) --directory $(O)/oracle

-include $(ORACLE_OBJECTS:.o=.d)
