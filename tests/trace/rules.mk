# SPDX-License-Identifier: BSD-3-Clause
# The firmware does what the protocol model does: traces of the model, replayed frame by frame.

REPLAY := $(O)/tests/trace/replay

SOURCES += tests/trace/replay.c

$(O)/tests/trace/replay.o: tests/trace/replay.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware -Ifirmware/include -Itests/lib -Itests/unit -c $< -o $@

$(REPLAY): $(O)/tests/trace/replay.o $(O)/tests/unit/unit.o $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka -lm

-include $(wildcard $(O)/tests/trace/*.d)

SLOW_TESTS += tests/trace/trace_test.py
tests/trace/trace_test.py: $(REPLAY)
