# SPDX-License-Identifier: BSD-3-Clause
# Many paths in virtual time: tests, and the figures of make bench-fabric that need no clock.

PATHS_OUT := $(O)/tests/paths
PATHS_SOURCES := $(wildcard tests/paths/*.c)
PATHS_LIBRARIES := $(O)/sim/libndvt.a $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a

SOURCES += $(PATHS_SOURCES)
INCLUDES_ALL += -Itests/paths

$(PATHS_OUT)/%.o: tests/paths/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware/include -Ifirmware -Isim -Itests/lib -Itests/paths -c $< -o $@

$(PATHS_OUT)/test_paths: $(PATHS_OUT)/test_paths.o $(PATHS_OUT)/traffic.o $(PATHS_LIBRARIES)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

$(PATHS_OUT)/test_tours: $(PATHS_OUT)/test_tours.o $(PATHS_LIBRARIES)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

$(PATHS_OUT)/bench-paths: $(PATHS_OUT)/bench.o $(PATHS_OUT)/traffic.o $(PATHS_LIBRARIES)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^

-include $(PATHS_SOURCES:%.c=$(O)/%.d)

CHECKS += $(PATHS_OUT)/test_paths $(PATHS_OUT)/test_tours
SLOW_TESTS += tests/paths/plot_test.py
tests/paths/plot_test.py: $(PATHS_OUT)/bench-paths

.PHONY: bench-virtual
bench-virtual: $(PATHS_OUT)/bench-paths ## throughput over loss, gain of many paths, dead planes, in virtual time; JSON in build/bench/fabric.json
	$(Q)O='$(O)' $(PYTHON) tests/paths/bench.py
