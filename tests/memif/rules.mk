# SPDX-License-Identifier: BSD-3-Clause
# Tests of what is in sim/platform, mostly of the memif endpoint; the slow one has DPDK's at the other end.

MEMIF_TESTS := test_crowd test_handshake test_hostile test_link test_share
MEMIF_SLOW_TESTS := test_dpdk
MEMIF_TEST_BINARIES := $(MEMIF_TESTS:%=$(O)/tests/memif/%)
MEMIF_SLOW_BINARIES := $(MEMIF_SLOW_TESTS:%=$(O)/tests/memif/%)
MEMIF_DPDK_LIBRARIES := -lrte_eal -lrte_ethdev -lrte_mbuf -lrte_mempool

SOURCES += tests/memif/rig.c $(MEMIF_TESTS:%=tests/memif/%.c) $(MEMIF_SLOW_TESTS:%=tests/memif/%.c)
INCLUDES_ALL += -Itests/memif

$(O)/tests/memif/%.o: tests/memif/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) $(PLATFORM_INCLUDES) -Itests/memif -c -o $@ $<

$(MEMIF_TEST_BINARIES) $(MEMIF_SLOW_BINARIES): %: %.o $(O)/tests/memif/rig.o $(PLATFORM_SOURCES:%.c=$(O)/%.o)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

# DPDK's headers are not written for this project's warnings, and the sanitizers have nothing to say about DPDK.
$(O)/tests/memif/dpdk_peer: tests/memif/dpdk_peer.c sim/fabric/gate.c sim/fabric/gate.h
	$(Q)pkg-config --exists libdpdk || { echo "memif: DPDK is missing: apt-get install libdpdk-dev librte-net-memif23"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CC) -O2 -g -Wall -Wextra $(if $(WERROR),-Werror) $$(pkg-config --cflags libdpdk) -pthread \
	  -Isim/fabric -o $@ $(filter %.c,$^) $(MEMIF_DPDK_LIBRARIES)

$(O)/tests/memif/test_dpdk: | $(O)/tests/memif/dpdk_peer

.SECONDARY: $(MEMIF_TEST_BINARIES:%=%.o) $(MEMIF_SLOW_BINARIES:%=%.o)

-include $(MEMIF_TEST_BINARIES:%=%.d) $(MEMIF_SLOW_BINARIES:%=%.d) $(O)/tests/memif/rig.d

CHECKS += $(MEMIF_TEST_BINARIES)
LONE_TESTS += $(MEMIF_SLOW_BINARIES)

# The sources that see what a peer says guide the fuzzers.
MEMIF_FUZZ_TARGETS := fuzz_memif_control fuzz_memif_rings
MEMIF_FUZZ_SOURCES := $(filter-out sim/platform/memif.c sim/platform/memif_kick.c,$(PLATFORM_SOURCES))

$(MEMIF_FUZZ_TARGETS:%=$(FUZZ_DIR)/%): $(FUZZ_DIR)/%: tests/fuzz/%.c $(MEMIF_FUZZ_SOURCES) $(wildcard sim/platform/*.h)
	$(Q)command -v $(CLANG) >/dev/null || { echo "fuzz: $(CLANG) is missing: apt-get install clang libclang-rt-dev"; exit 1; }
	$(Q)mkdir -p $(@D) && $(CLANG) $(FUZZ_CFLAGS) $(PLATFORM_INCLUDES) -fsanitize=fuzzer $(filter %.c,$^) -o $@

fuzz: $(MEMIF_FUZZ_TARGETS:%=$(FUZZ_DIR)/%.t)
SLOW_TESTS += $(MEMIF_FUZZ_TARGETS:%=$(FUZZ_DIR)/%.t)
