# SPDX-License-Identifier: BSD-3-Clause
# Tests of libnetdam and its tools: over a fake device, then over soft devices on loopback.

DRIVER_TEST_DIR := $(O)/tests/driver
DRIVER_TEST_INCLUDES := -Ihost-driver/include -Ihost-driver/src -Ihost-driver/tools -Ifirmware/include -Itests/driver
DRIVER_TESTS := alloc queue receive device describe pair messages transaction programs wire raw

SOURCES += $(wildcard tests/driver/*.c)
INCLUDES_ALL += -Itests/driver -Ihost-driver/tools

$(DRIVER_TEST_DIR)/%.o: tests/driver/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(DRIVER_TEST_INCLUDES) -c -o $@ $<

$(DRIVER_TESTS:%=$(DRIVER_TEST_DIR)/test_%): $(DRIVER_TEST_DIR)/test_%: $(DRIVER_TEST_DIR)/test_%.o \
    $(DRIVER_TEST_DIR)/fake.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^ -lcmocka

# The examples of the manual.
SOURCES += $(wildcard host-driver/examples/*.c)
$(DRIVER_TEST_DIR)/examples/first_program.o: host-driver/examples/first_program.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread -Ihost-driver/include -Ifirmware/include -c -o $@ $<

$(DRIVER_TEST_DIR)/first_program: $(DRIVER_TEST_DIR)/examples/first_program.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $^

$(DRIVER_TEST_DIR)/first_program_static: $(DRIVER_TEST_DIR)/examples/first_program.o $(LIBNETDAM_STATIC)
	$(Q)$(CC) $(LDFLAGS_ALL) -static -pthread -o $@ $^

# Each public header by itself, in both languages, pedantically.
PUBLIC_HEADERS := $(wildcard host-driver/include/netdam*.h)
$(DRIVER_TEST_DIR)/header.%: $(PUBLIC_HEADERS) $(wildcard firmware/include/netdam/*.h)
	$(Q)mkdir -p $(@D) && for header in $(notdir $(PUBLIC_HEADERS)); do \
	  $(if $(filter c,$*),$(CC) -x c -std=c11,$(CXX) -x c++ -std=c++11) -fsyntax-only -Wall -Wextra -Wpedantic -Werror \
	    -Ihost-driver/include -Ifirmware/include -include $$header /dev/null || exit 1; done && touch $@

-include $(wildcard $(DRIVER_TEST_DIR)/*.d $(DRIVER_TEST_DIR)/examples/*.d)

CHECKS += $(DRIVER_TESTS:%=$(DRIVER_TEST_DIR)/test_%) tests/driver/test_tools.py tests/driver/man_test.py
tests/driver/man_test.py: $(filter $(O)/host-driver/netdam%,$(ALL)) $(O)/sim/netdam-node
CHECK_FILES += $(DRIVER_TEST_DIR)/header.c $(DRIVER_TEST_DIR)/header.cpp $(DRIVER_TEST_DIR)/first_program \
               $(O)/host-driver/netdam-info $(O)/host-driver/netdam-mem $(O)/host-driver/libnetdam.so.0 \
               $(O)/sim/netdam-node
ifeq ($(SAN),)
CHECK_FILES += $(DRIVER_TEST_DIR)/first_program_static
endif

ifeq ($(SAN),)
SLOW_TESTS += tests/driver/install_test.sh
endif

# On the card, in a guest without libraries.
$(DRIVER_TEST_DIR)/guest_card $(DRIVER_TEST_DIR)/guest/netdam-info: %:
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -static -pthread -o $@ $^
$(DRIVER_TEST_DIR)/guest_card: $(DRIVER_TEST_DIR)/guest_card.o $(LIBNETDAM_STATIC)
$(DRIVER_TEST_DIR)/guest/netdam-info: $(O)/host-driver/tools/netdam-info.o $(O)/host-driver/tools/common.o $(LIBNETDAM_STATIC)

$(DRIVER_TEST_DIR)/card.cpio: tests/guest/mkinitramfs.sh tests/driver/card-inside.sh $(DRIVER_TEST_DIR)/guest_card \
    $(DRIVER_TEST_DIR)/guest/netdam-info $(BUILD)/guest/init $(BUILD)/guest/vmlinux
	$(Q)bash tests/guest/mkinitramfs.sh -m irqbypass,vfio,vfio_virqfd,vfio_iommu_type1,vfio-pci-core,vfio-pci $@ \
	  $(filter %-inside.sh %guest_card %netdam-info,$^)

ifeq ($(SAN),)
LONE_TESTS += tests/driver/card_test.py
tests/driver/card_test.py: $(BUILD)/guest/vmlinux $(BUILD)/guest/init $(BUILD)/guest/probe.bin $(DRIVER_TEST_DIR)/card.cpio \
    $(BUILD)/firmware/netdam-fw.so | qemu
endif
