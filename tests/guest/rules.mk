# SPDX-License-Identifier: BSD-3-Clause
# The test guests: kernel, PID 1, accelerator probe, initramfs images.

GUEST := $(BUILD)/guest
GUEST_CFLAGS = -std=c11 -D_GNU_SOURCE -O2 -g $(WARNINGS)

# What every test that boots a guest needs.
GUEST_BOOT := $(GUEST)/vmlinux $(GUEST)/init $(GUEST)/probe.bin

$(GUEST)/vmlinux: tests/guest/kernel.sh tests/guest/cut_vmlinux.py
	$(Q)bash tests/guest/kernel.sh
	$(Q)touch $@

$(GUEST)/init: tests/guest/init.c
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(GUEST_CFLAGS) -static -o $@ $<

# At 0xF0000 stands the code; the last 16 bytes are where a processor starts.
$(GUEST)/probe.bin: tests/guest/probe.S
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -c -o $(@:.bin=.o) $<
	$(Q)ld -nostdlib --build-id=none -Ttext=0xf0000 --section-start=.reset=0xffff0 --oformat=binary -e start \
	  -o $@.part $(@:.bin=.o)
	$(Q)test $$(stat -c %s $@.part) = 65536
	$(Q)mv $@.part $@

$(GUEST)/smoke.cpio: tests/guest/mkinitramfs.sh tests/guest/smoke-inside.sh tests/guest/talk-inside.sh $(GUEST)/init
	$(Q)bash tests/guest/mkinitramfs.sh $@ $(filter %-inside.sh,$^)

$(GUEST)/wire.cpio: tests/guest/mkinitramfs.sh tests/guest/wire-inside.sh $(GUEST)/init $(GUEST)/vmlinux
	$(Q)bash tests/guest/mkinitramfs.sh -m virtio_pci,virtio_net $@ $(filter %-inside.sh,$^)

CHECKS += tests/guest/scan_test.py
LONE_TESTS += tests/guest/boot-smoke.sh tests/guest/boot_test.py
tests/guest/boot-smoke.sh: $(GUEST_BOOT) $(GUEST)/smoke.cpio $(BUILD)/firmware/netdam-fw.so | qemu
tests/guest/boot_test.py: $(GUEST_BOOT) $(GUEST)/smoke.cpio $(GUEST)/wire.cpio | qemu
