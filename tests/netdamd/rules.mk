# SPDX-License-Identifier: BSD-3-Clause
# Tests of netdamd: over soft devices, and in a guest with a card.

NETDAMD_TEST_DIR := $(O)/tests/netdamd
NETDAMD_TESTS := share
NETDAMD_TEST_BINARIES := $(NETDAMD_TESTS:%=$(NETDAMD_TEST_DIR)/test_%)
NETDAMD_TEST_INCLUDES := -Ihost-driver/include -Ihost-driver/src -Ihost-driver/netdamd -Ifirmware/include -Itests/driver \
                         -Itests/netdamd

SOURCES += $(wildcard tests/netdamd/*.c)
INCLUDES_ALL += -Ihost-driver/netdamd -Itests/netdamd

$(NETDAMD_TEST_DIR)/%.o: tests/netdamd/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(NETDAMD_TEST_INCLUDES) -c -o $@ $<

$(NETDAMD_TEST_BINARIES): %: %.o $(NETDAMD_TEST_DIR)/rig.o $(O)/host-driver/netdamd-objects/book.o $(LIBNETDAM_STATIC) \
    | $(O)/host-driver/netdamd $(O)/host-driver/netdam-info
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $(filter %.o %.a,$^) -lcmocka

.SECONDARY: $(NETDAMD_TEST_BINARIES:%=%.o)

-include $(wildcard $(NETDAMD_TEST_DIR)/*.d)

CHECKS += $(NETDAMD_TEST_BINARIES)
