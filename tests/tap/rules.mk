# SPDX-License-Identifier: BSD-3-Clause
# Two guests that use their cards as network cards.

TAP_DIR := $(O)/tests/tap
# Programs of the host, with their libraries: what a kernel's network is tried with.
TAP_HOST_PROGRAMS := iperf3 dropbear dropbearkey dbclient
TAP_GUEST_PROGRAMS := $(O)/host-driver/static/netdam-tap $(O)/host-driver/static/netdam-stat \
                      $(O)/tests/netdamd/guest/netdamd

$(TAP_DIR)/tap.cpio: tests/guest/mkinitramfs.sh tests/tap/tap-inside.sh $(TAP_GUEST_PROGRAMS) \
    $(O)/host-driver/static/netdam-perf $(GUEST)/init $(GUEST)/vmlinux
	$(Q)bash tests/guest/mkinitramfs.sh -m irqbypass,vfio,vfio_virqfd,vfio_iommu_type1,vfio-pci-core,vfio-pci,tun \
	  $(TAP_HOST_PROGRAMS:%=-p %) $@ tests/tap/tap-inside.sh $(TAP_GUEST_PROGRAMS) \
	  $(O)/host-driver/static/netdam-perf:/bin/netdam_write_bw

ifeq ($(SAN),)
LONE_TESTS += tests/tap/tap_test.py
tests/tap/tap_test.py: $(GUEST_BOOT) $(TAP_DIR)/tap.cpio $(BUILD)/firmware/netdam-fw.so | qemu
endif
