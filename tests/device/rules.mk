# SPDX-License-Identifier: BSD-3-Clause
# Tests of the device in QEMU, over the qtest protocol. Test images stand in for the firmware where the device alone is
# meant. They need the QEMU of device/qemu/build.sh, and the images that it can load are those without sanitizers.

DEVICE_TEST_DIR := $(O)/tests/device
DEVICE_TESTS := errors frames hostile interrupts load memif migrate peers port registers reset rings settings trace
DEVICE_MEMIF_TESTS := hostile interrupts load migrate registers reset rings
DEVICE_OTHER_FIRMWARE := $(DEVICE_TEST_DIR)/other/firmware/netdam-fw.so
DEVICE_TEST_IMAGES := image image-2 image-abi image-ops image-entry image-state image-hungry

DEVICE_IMAGE_FLAGS_image-2 := -DIMAGE_VERSION=0x00020003u
DEVICE_IMAGE_FLAGS_image-abi := -DIMAGE_ABI=99
DEVICE_IMAGE_FLAGS_image-ops := -DIMAGE_OPS_BYTES=8
DEVICE_IMAGE_FLAGS_image-entry := -DIMAGE_ENTRY=netdam_fw_other
DEVICE_IMAGE_FLAGS_image-state := -DIMAGE_STATE_BYTES=0
DEVICE_IMAGE_FLAGS_image-hungry := -DIMAGE_STATE_BYTES='((size_t)1<<50)'

SOURCES += $(wildcard tests/device/*.c)
INCLUDES_ALL += -Itests/device

$(DEVICE_TEST_DIR)/%.o: tests/device/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -DNETDAM_TEST_IMAGES='"$(DEVICE_TEST_DIR)"' \
	  -DNETDAM_TEST_FIRMWARE='"$(O)/firmware/netdam-fw.so"' -Ifirmware/include $(PLATFORM_INCLUDES) -Itests/memif -Itests/device -c -o $@ $<

$(DEVICE_TEST_IMAGES:%=$(DEVICE_TEST_DIR)/%.so): $(DEVICE_TEST_DIR)/%.so: tests/device/image.c tests/device/image.h $(wildcard firmware/include/netdam/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -O2 -g $(WARNINGS) -fvisibility=hidden $(DEVICE_IMAGE_FLAGS_$*) -fPIC -shared \
	  -Ifirmware/include -Itests/device -o $@ $<

$(DEVICE_TESTS:%=$(DEVICE_TEST_DIR)/test_%): $(DEVICE_TEST_DIR)/test_%: $(DEVICE_TEST_DIR)/test_%.o $(DEVICE_TEST_DIR)/machine.o \
  $(DEVICE_TEST_DIR)/card.o $(DEVICE_TEST_DIR)/side.o $(DEVICE_TEST_IMAGES:%=$(DEVICE_TEST_DIR)/%.so) | $(O)/firmware/netdam-fw.so
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -lcmocka -pthread

$(DEVICE_TEST_DIR)/test_memif $(DEVICE_TEST_DIR)/test_peers: $(PLATFORM_SOURCES:%.c=$(O)/%.o)
$(DEVICE_TEST_DIR)/test_peers: $(O)/tests/memif/rig.o
$(DEVICE_TEST_DIR)/test_reset: | $(DEVICE_OTHER_FIRMWARE)

# The same firmware after an edit: of another version.
$(DEVICE_OTHER_FIRMWARE): $(O)/firmware/netdam-fw.so
	$(Q)$(MAKE) --no-print-directory O=$(DEVICE_TEST_DIR)/other CFLAGS='$(CFLAGS) -DNDFW_VERSION=0x00630001u' $@

# The same programs by another name: their cards have memif ports, and so a thread each.
$(DEVICE_MEMIF_TESTS:%=$(DEVICE_TEST_DIR)/test_%-memif): %-memif: %
	$(Q)ln -f $< $@

-include $(wildcard $(DEVICE_TEST_DIR)/*.d)

ifeq ($(SAN),)
LONE_TESTS += $(DEVICE_TESTS:%=$(DEVICE_TEST_DIR)/test_%) $(DEVICE_MEMIF_TESTS:%=$(DEVICE_TEST_DIR)/test_%-memif)
LONE_TESTS += tests/device/sanitized.sh
endif
