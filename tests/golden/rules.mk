# SPDX-License-Identifier: BSD-3-Clause
# The golden packets, played to a firmware instance.

GOLDEN_TEST := $(O)/tests/golden/golden_test
SOURCES += tests/golden/golden_test.c
INCLUDES_ALL += -Itests/golden
CHECKS += $(GOLDEN_TEST)

$(GOLDEN_TEST): tests/golden/golden_test.c $(O)/firmware/libndfw.a
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -Ifirmware/include -Itests/golden -o $@ $^ $(LDFLAGS_ALL) -lcmocka

-include $(GOLDEN_TEST).d
