# SPDX-License-Identifier: BSD-3-Clause
# Tests of the memif endpoint.

MEMIF_TESTS := test_link
MEMIF_TEST_BINARIES := $(MEMIF_TESTS:%=$(O)/tests/memif/%)

SOURCES += tests/memif/rig.c $(MEMIF_TESTS:%=tests/memif/%.c)
INCLUDES_ALL += -Itests/memif

$(O)/tests/memif/%.o: tests/memif/%.c
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) $(PLATFORM_INCLUDES) -Itests/memif -c -o $@ $<

$(MEMIF_TEST_BINARIES): %: %.o $(O)/tests/memif/rig.o $(PLATFORM_SOURCES:%.c=$(O)/%.o)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka

.SECONDARY: $(MEMIF_TEST_BINARIES:%=%.o)

-include $(MEMIF_TEST_BINARIES:%=%.d) $(O)/tests/memif/rig.d

CHECKS += $(MEMIF_TEST_BINARIES)
