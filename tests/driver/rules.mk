# SPDX-License-Identifier: BSD-3-Clause
# Tests of libnetdam and its tools: over a fake device, then over two soft devices.

DRIVER_TEST_DIR := $(O)/tests/driver
DRIVER_TEST_INCLUDES := -Ihost-driver/include -Ihost-driver/src -Ihost-driver/tools -Ifirmware/include -Itests/driver
DRIVER_TESTS := alloc queue device pair

SOURCES += $(wildcard tests/driver/*.c)
INCLUDES_ALL += -Itests/driver -Ihost-driver/tools

$(DRIVER_TEST_DIR)/%.o: tests/driver/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(DRIVER_TEST_INCLUDES) -c -o $@ $<

$(DRIVER_TESTS:%=$(DRIVER_TEST_DIR)/test_%): $(DRIVER_TEST_DIR)/test_%: $(DRIVER_TEST_DIR)/test_%.o \
    $(DRIVER_TEST_DIR)/fake.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ -lcmocka

-include $(wildcard $(DRIVER_TEST_DIR)/*.d)

CHECKS += $(DRIVER_TESTS:%=$(DRIVER_TEST_DIR)/test_%)
