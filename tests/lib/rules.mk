# SPDX-License-Identifier: BSD-3-Clause
# Helpers that several test programs share: a firmware instance under test, a frame reader, virtual time.

NDTEST_SOURCES := $(wildcard tests/lib/*.c)
NDTEST_INCLUDES := -Itests/lib -Ifirmware/include
NDTEST_OBJECTS := $(NDTEST_SOURCES:%.c=$(O)/%.o)
LIBNDTEST := $(O)/tests/lib/libndtest.a

SOURCES += $(NDTEST_SOURCES)
INCLUDES_ALL += -Itests/lib

$(O)/tests/lib/%.o: tests/lib/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) $(NDTEST_INCLUDES) -c $< -o $@

$(LIBNDTEST): $(NDTEST_OBJECTS)
	$(Q)rm -f $@ && ar rcs $@ $^

-include $(NDTEST_OBJECTS:.o=.d)
