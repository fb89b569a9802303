# SPDX-License-Identifier: BSD-3-Clause
# Tests of the tools that watch a device and of those that measure.

TOOLS_TESTED := $(patsubst %,$(O)/host-driver/%,netdam-stat netdam-regs netdam-tap netdam-perf $(HOST_DRIVER_PERF_TOOLS) netdam-mem netdamd)
ifeq ($(SAN),)
TOOLS_TESTED += $(patsubst %,$(O)/host-driver/static/%,netdam-stat netdam-regs netdam-perf)
endif

SOURCES += $(wildcard tests/tools/*.c)

$(O)/tests/tools/%.o: tests/tools/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ihost-driver/tools -c -o $@ $<

$(O)/tests/tools/test_samples: $(O)/tests/tools/test_samples.o $(O)/host-driver/tools/samples.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

$(O)/tests/tools/udp_echo: $(O)/tests/tools/udp_echo.o $(O)/host-driver/tools/samples.o
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^

-include $(wildcard $(O)/tests/tools/*.d)

tests/tools/test_watch.py tests/tools/test_perf.py tests/tools/test_tap.py: $(TOOLS_TESTED) $(O)/sim/netdam-node \
    $(O)/tests/tools/udp_echo $(O)/host-driver/netdam-info

.PHONY: bench
bench: $(TOOLS_TESTED) $(O)/tests/tools/udp_echo ## latency and throughput per operation beside plain UDP; writes build/bench/bench.json
	$(Q)export O='$(O)'; tests/tools/bench.py

CHECKS += $(O)/tests/tools/test_samples tests/tools/test_watch.py tests/tools/test_perf.py tests/tools/test_tap.py
