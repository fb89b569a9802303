# SPDX-License-Identifier: BSD-3-Clause
# The golden packets, played to a firmware instance.

GOLDEN_TEST := $(O)/tests/golden/golden_test
GOLDEN_SOURCES := $(wildcard tests/golden/*.c)
GOLDEN_OBJECTS := $(GOLDEN_SOURCES:%.c=$(O)/%.o)
SOURCES += $(GOLDEN_SOURCES)
INCLUDES_ALL += -Itests/golden
CHECKS += $(GOLDEN_TEST)

$(O)/tests/golden/%.o: tests/golden/%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ifirmware/include -Itests/golden -c -o $@ $<

$(GOLDEN_TEST): $(GOLDEN_OBJECTS) $(O)/firmware/libndfw.a
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

-include $(GOLDEN_OBJECTS:.o=.d)
