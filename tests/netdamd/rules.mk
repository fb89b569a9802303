# SPDX-License-Identifier: BSD-3-Clause
# Tests of netdamd: over soft devices, and in a guest with a card.

NETDAMD_TEST_DIR := $(O)/tests/netdamd
NETDAMD_TESTS := book share hostile daemon
NETDAMD_TEST_BINARIES := $(NETDAMD_TESTS:%=$(NETDAMD_TEST_DIR)/test_%)
NETDAMD_TEST_INCLUDES := -Ihost-driver/include -Ihost-driver/src -Ihost-driver/netdamd -Ifirmware/include -Itests/driver \
                         -Itests/netdamd

SOURCES += $(wildcard tests/netdamd/*.c)
INCLUDES_ALL += -Ihost-driver/netdamd -Itests/netdamd

$(NETDAMD_TEST_DIR)/%.o: tests/netdamd/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -pthread $(NETDAMD_TEST_INCLUDES) -c -o $@ $<

$(NETDAMD_TEST_BINARIES): %: %.o $(NETDAMD_TEST_DIR)/rig.o $(NETDAMD_TEST_DIR)/user.o $(O)/host-driver/netdamd-objects/book.o $(LIBNETDAM_STATIC) \
    | $(O)/host-driver/netdamd $(O)/host-driver/netdam-info
	$(Q)$(CC) $(LDFLAGS_ALL) -pthread -o $@ $(filter %.o %.a,$^) -lcmocka

.SECONDARY: $(NETDAMD_TEST_BINARIES:%=%.o)

-include $(wildcard $(NETDAMD_TEST_DIR)/*.d)

CHECKS += $(NETDAMD_TEST_BINARIES)

# In a guest, which has no libraries.
NETDAMD_GUEST_PROGRAMS := $(NETDAMD_TEST_DIR)/guest/guest_client $(NETDAMD_TEST_DIR)/guest/netdamd \
                          $(NETDAMD_TEST_DIR)/guest/netdam-info

$(NETDAMD_GUEST_PROGRAMS): %:
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -static -pthread -o $@ $^
$(NETDAMD_TEST_DIR)/guest/guest_client: $(NETDAMD_TEST_DIR)/guest_client.o $(NETDAMD_TEST_DIR)/user.o $(LIBNETDAM_STATIC)
$(NETDAMD_TEST_DIR)/guest/netdamd: $(NETDAMD_OBJECTS) $(LIBNETDAM_STATIC)
$(NETDAMD_TEST_DIR)/guest/netdam-info: $(O)/host-driver/tools/netdam-info.o $(O)/host-driver/tools/common.o $(LIBNETDAM_STATIC)

$(NETDAMD_TEST_DIR)/share.cpio: tests/guest/mkinitramfs.sh tests/netdamd/share-inside.sh $(NETDAMD_GUEST_PROGRAMS) \
    $(BUILD)/guest/init $(BUILD)/guest/vmlinux
	$(Q)bash tests/guest/mkinitramfs.sh -m irqbypass,vfio,vfio_virqfd,vfio_iommu_type1,vfio-pci-core,vfio-pci $@ \
	  tests/netdamd/share-inside.sh $(NETDAMD_GUEST_PROGRAMS)

ifeq ($(SAN),)
LONE_TESTS += tests/netdamd/guest_test.py
tests/netdamd/guest_test.py: $(BUILD)/guest/vmlinux $(BUILD)/guest/init $(BUILD)/guest/probe.bin \
    $(NETDAMD_TEST_DIR)/share.cpio $(BUILD)/firmware/netdam-fw.so | qemu
endif
