# SPDX-License-Identifier: BSD-3-Clause
# Tests of topology files.

TOPOLOGY_TEST := $(O)/tests/topology/test_topology

SOURCES += tests/topology/test_topology.c

$(TOPOLOGY_TEST).o: tests/topology/test_topology.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -D_GNU_SOURCE -Isim -Ifirmware/include -c $< -o $@

$(TOPOLOGY_TEST): $(TOPOLOGY_TEST).o $(O)/sim/libndtopology.a $(O)/sim/libndvt.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lconfig -lcmocka

-include $(TOPOLOGY_TEST).d

CHECKS += $(TOPOLOGY_TEST)

# The fuzzer sees the whole parser; libconfig itself is along for the ride.
TOPOLOGY_FUZZ_SOURCES := $(SIM_TOPOLOGY_SOURCES) sim/units.c sim/values.c sim/address.c sim/vt/shape.c

$(FUZZ_DIR)/fuzz_topology: tests/fuzz/fuzz_topology.c $(TOPOLOGY_FUZZ_SOURCES) $(wildcard sim/topology*.h sim/vt/*.h) \
                           $(O)/sim/libndvt.a $(O)/firmware/libndfw.a
	$(Q)command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) is missing: apt-get install clang libclang-rt-dev"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -D_GNU_SOURCE -fsanitize=fuzzer -Isim $(filter %.c %.a,$^) -o $@ -lconfig

# Files that mean something, to begin with.
$(FUZZ_DIR)/seeds/fuzz_topology: $(wildcard docs/topologies/*.conf)
	$(Q)rm -rf $@ && mkdir -p $@ && cp $^ $@

$(FUZZ_DIR)/fuzz_topology.t: | $(FUZZ_DIR)/seeds/fuzz_topology
fuzz: $(FUZZ_DIR)/fuzz_topology.t
SLOW_TESTS += $(FUZZ_DIR)/fuzz_topology.t
