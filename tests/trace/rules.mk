# SPDX-License-Identifier: BSD-3-Clause
# The firmware does what the protocol models do: traces of the models, replayed frame by frame.

TRACE_SOURCES := $(wildcard tests/trace/*.c)
TRACE_PROGRAMS := $(O)/tests/trace/requests $(O)/tests/trace/hops

SOURCES += $(TRACE_SOURCES)
.SECONDARY: $(TRACE_PROGRAMS:%=%.o)
INCLUDES_ALL += -Itests/trace

$(O)/tests/trace/%.o: tests/trace/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -Ifirmware -Ifirmware/include -Itests/lib -Itests/unit -c $< -o $@

TRACE_HELPERS := $(O)/tests/trace/trace.o $(O)/tests/unit/unit.o

$(TRACE_PROGRAMS): %: %.o $(TRACE_HELPERS) $(O)/tests/lib/libndtest.a $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka -lm

-include $(wildcard $(O)/tests/trace/*.d)

SLOW_TESTS += tests/trace/trace_test.py
tests/trace/trace_test.py: $(TRACE_PROGRAMS)
