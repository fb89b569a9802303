# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer targets: the firmware's sources and the test harness compiled for them with clang.

FUZZ_TARGETS := fuzz_frame fuzz_ring fuzz_tenant
FUZZ_SECONDS ?= 60
FUZZ_DIR := $(O)/tests/fuzz
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(FUZZ_DIR)/%)
FUZZ_CFLAGS := -std=c11 -g -O2 -fno-omit-frame-pointer -fno-strict-aliasing -ffp-contract=off \
               -fsanitize=address,undefined -fno-sanitize-recover=all -Itests/fuzz -Itests/lib -Ifirmware/include
FUZZ_HEADERS = $(wildcard firmware/*.h firmware/include/netdam/*.h tests/lib/*.h tests/fuzz/*.h)
# Only the firmware and the targets guide the fuzzer; the harness is along for the ride.
FUZZ_FIRMWARE_OBJECTS = $(patsubst firmware/%.c,$(FUZZ_DIR)/firmware/%.o,$(wildcard firmware/*.c))
FUZZ_HARNESS_OBJECTS = $(patsubst tests/%.c,$(FUZZ_DIR)/harness/%.o,$(wildcard tests/lib/*.c) tests/fuzz/fuzz.c)

SOURCES += $(wildcard tests/fuzz/*.c)
INCLUDES_ALL += -Itests/fuzz

$(FUZZ_DIR)/firmware/%.o: firmware/%.c $(FUZZ_HEADERS)
	$(Q)command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) is missing: apt-get install clang libclang-rt-dev"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link -c $< -o $@

$(FUZZ_DIR)/harness/%.o: tests/%.c $(FUZZ_HEADERS)
	$(Q)command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) is missing: apt-get install clang libclang-rt-dev"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) -c $< -o $@

$(FUZZ_PROGRAMS): $(FUZZ_DIR)/%: tests/fuzz/%.c $(FUZZ_HEADERS) $(FUZZ_FIRMWARE_OBJECTS) $(FUZZ_HARNESS_OBJECTS)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer $(filter %.c %.o,$^) -o $@

# Golden packets, as inputs.
$(FUZZ_DIR)/seeds.stamp: tests/fuzz/seeds.py $(wildcard tests/golden/*.hex)
	$(Q)mkdir -p $(FUZZ_DIR) && $(PYTHON) tests/fuzz/seeds.py tests/golden $(FUZZ_DIR)/seeds && touch $@

$(FUZZ_DIR)/%.t: tests/fuzz/run.sh $(FUZZ_DIR)/% $(FUZZ_DIR)/seeds.stamp
	$(Q)install -m 755 $< $@

SLOW_TESTS += $(FUZZ_TARGETS:%=$(FUZZ_DIR)/%.t)

.PHONY: fuzz
fuzz: $(FUZZ_TARGETS:%=$(FUZZ_DIR)/%.t) ## each fuzz target for FUZZ_SECONDS (60)
	$(Q)export FUZZ_SECONDS=$(FUZZ_SECONDS); status=0; for t in $^; do $$t || status=1; done; exit $$status

# The fabric's control socket. The fuzzer sees what reads and answers; DPDK is along for the ride.
CONTROL_FUZZ_SOURCES := $(patsubst %,sim/fabric/%.c,carry claim commands control report stations) $(SIM_TOPOLOGY_SOURCES) \
                        sim/units.c sim/values.c sim/address.c

$(FUZZ_DIR)/fuzz_control: tests/fuzz/fuzz_control.c $(CONTROL_FUZZ_SOURCES) $(wildcard sim/*.h sim/fabric/*.h sim/vt/*.h) \
                          $(O)/sim/libndvt.a $(O)/firmware/libndfw.a | fabric-needs
	$(Q)command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) is missing: apt-get install clang libclang-rt-dev"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) $(DPDK_CFLAGS) -fsanitize=fuzzer -Isim $(PLATFORM_INCLUDES) $(filter %.c %.a,$^) \
	  -o $@ $(DPDK_LIBS) -ljansson -lconfig

# What each command looks like, to begin with.
$(FUZZ_DIR)/seeds/fuzz_control: tests/fuzz/control_seeds.txt
	$(Q)rm -rf $@ && mkdir -p $@ && split -l 1 $< $@/line- && sed '2,$$s/^.//' $< >$@/all

$(FUZZ_DIR)/fuzz_control.t: | $(FUZZ_DIR)/seeds/fuzz_control
fuzz: $(FUZZ_DIR)/fuzz_control.t
SLOW_TESTS += $(FUZZ_DIR)/fuzz_control.t
